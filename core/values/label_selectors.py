"""The syntax of label selectors: `app=db,tier in (web, api),!legacy`.

The API server evaluates them; here they are only checked before they are sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

__all__ = ["check_selector", "requirements_of"]

# Kubernetes: labels.Parse.  Words end at spaces and special symbols.
_WORD = r"[^=!(),<>\s]+"
_VALUES = rf"\(\s*(?:{_WORD})?(?:\s*,\s*(?:{_WORD})?)*\s*\)"
_CLAUSE = rf"""\s*(?:
    !\s*{_WORD}                                 # the label is absent
  | {_WORD} (?:
        \s*(?:==|=|!=)\s*(?:{_WORD})?           # has the value, or another
      | \s+(?:in|notin)\s*{_VALUES}             # one of the values, or none of them
      | \s*[<>]\s*{_WORD}                       # is a number below or above
    )?                                          # or is there
)\s*"""
_SELECTOR = re.compile(rf"\s*|{_CLAUSE}(?:,{_CLAUSE})*", re.VERBOSE)


_PARTS = re.compile(_CLAUSE, re.VERBOSE)
_ABSENT = re.compile(rf"!\s*({_WORD})")
_ONE = re.compile(rf"({_WORD})\s*(==|=|!=)\s*({_WORD})?")
_SEVERAL = re.compile(rf"({_WORD})\s+(in|notin)\s*\((.*)\)", re.DOTALL)


def requirements_of(selector: str) -> list[dict[str, Any]]:
    """A selector as `matchExpressions`, without what these cannot say: numbers.

    >>> for each in requirements_of("app=db,tier in (web, api),!legacy,n>3"):
    ...     print(each["key"], each["operator"], *each.get("values", ()))
    app In db
    tier In web api
    legacy DoesNotExist
    """
    texts = (each[0].strip() for each in _PARTS.finditer(selector))
    return [found for text in texts if text for found in _requirement(text)]


def _requirement(clause: str) -> Iterator[dict[str, Any]]:
    if found := _ABSENT.fullmatch(clause):
        yield {"key": found[1], "operator": "DoesNotExist"}
    elif found := _SEVERAL.fullmatch(clause):
        values = [each.strip() for each in found[3].split(",")]
        operator = "In" if found[2] == "in" else "NotIn"
        yield {"key": found[1], "operator": operator, "values": values}
    elif found := _ONE.fullmatch(clause):
        operator = "NotIn" if found[2] == "!=" else "In"
        yield {"key": found[1], "operator": operator, "values": [found[3] or ""]}
    elif re.fullmatch(_WORD, clause):
        yield {"key": clause, "operator": "Exists"}


def check_selector(selector: str) -> None:
    """Raise `ValueError` for a text that is not a label selector.

    >>> check_selector("app=db,tier in (web, api),!legacy")
    >>> check_selector("app in db")
    Traceback (most recent call last):
        ...
    ValueError: 'app in db' is not a label selector; write such as 'app=db,a in (b, c)'
    """
    if not _SELECTOR.fullmatch(selector):
        raise ValueError(
            f"{selector!r} is not a label selector; write such as 'app=db,a in (b, c)'"
        )
