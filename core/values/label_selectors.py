"""The syntax of label selectors: `app=db,tier in (web, api),!legacy`.

The API server evaluates them; here they are only checked before they are sent.
"""

from __future__ import annotations

import re

__all__ = ["check_selector"]

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
