"""Label selectors: `app=db,tier in (web, api),!legacy`.

The API server evaluates them in listings and watches. A review comes for each object of
a kind, so for reviews the operator evaluates them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from fnop.effects.names import is_label_name, is_label_value

__all__ = ["Requirement", "check_selector", "fits", "requirements"]

# Kubernetes: labels.Parse. Words end at spaces and special symbols.
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
    for each in requirements(selector):
        _check_requirement(each, selector)


def _check_requirement(wanted: Requirement, selector: str) -> None:
    """Raise `ValueError` for a clause about an impossible label.

    The API server accepts it neither in a request, nor in a webhook's object selector.
    """
    if not is_label_name(wanted.key):
        raise ValueError(
            f"{wanted.key!r} in the label selector {selector!r} cannot be the name of "
            "a label: it has letters, digits, -, _ and ., 63 at most, and perhaps a "
            "domain before it, as in example.com/tier"
        )
    for value in wanted.values:
        if wanted.operator in ("Gt", "Lt") and not _INTEGER.fullmatch(value):
            raise ValueError(
                f"{value!r} in the label selector {selector!r} is no whole number; "
                "> and < compare numbers"
            )
        if not is_label_value(value):
            raise ValueError(
                f"{value!r} in the label selector {selector!r} cannot be the value of "
                "a label: it is empty, or has letters, digits, -, _ and ., 63 at most, "
                "and begins and ends with a letter or digit"
            )


class Requirement(NamedTuple):
    """One clause of a selector, as `matchExpressions` has it.

    `operator` is In, NotIn, Exists or DoesNotExist. Only texts may also have Gt or Lt.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()


_PART = re.compile(
    rf"""\s*(?:
    !\s*(?P<absent>{_WORD})
  | (?P<key>{_WORD}) (?:
        \s*(?P<sign>==|=|!=|<|>)\s*(?P<value>{_WORD})?
      | \s+(?P<word>in|notin)\s*\((?P<values>[^)]*)\)
    )?
)\s*(?:,|$)""",
    re.VERBOSE,
)
_SIGNS = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_WORDS = {"in": "In", "notin": "NotIn"}


def requirements(selector: str) -> tuple[Requirement, ...]:
    """The clauses of a selector that `check_selector` accepts.

    >>> [each.operator for each in requirements("app=db, tier in (web,api),!old,x,n>3")]
    ['In', 'In', 'DoesNotExist', 'Exists', 'Gt']
    >>> requirements("tier notin (web, api)")[0].values
    ('web', 'api')
    """
    return tuple(map(_requirement_of, _PART.finditer(selector)))


def _requirement_of(found: re.Match[str]) -> Requirement:
    if found["absent"]:
        return Requirement(found["absent"], "DoesNotExist")
    if found["word"]:
        values = tuple(each.strip() for each in found["values"].split(","))
        return Requirement(found["key"], _WORDS[found["word"]], values)
    if found["sign"]:
        return Requirement(found["key"], _SIGNS[found["sign"]], (found["value"] or "",))
    return Requirement(found["key"], "Exists")


def fits(selector: str, labels: Mapping[str, object]) -> bool:
    """Whether labels meet all clauses of a selector (Kubernetes: Requirement.Matches).

    >>> fits("app=db,tier!=web,!old", {"app": "db"}), fits("n>3", {"n": "3"})
    (True, False)
    """
    return all(_is_met(each, labels.get(each.key)) for each in requirements(selector))


def _is_met(wanted: Requirement, value: object) -> bool:
    match wanted.operator:
        case "In":
            return value in wanted.values
        case "NotIn":
            return value not in wanted.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return _is_beyond(wanted, str(value or ""))


def _is_beyond(wanted: Requirement, value: str) -> bool:
    (limit,) = wanted.values
    if not (_INTEGER.fullmatch(value) and _INTEGER.fullmatch(limit)):
        return False
    bigger = int(value) > int(limit)
    return bigger if wanted.operator == "Gt" else int(value) < int(limit)


_INTEGER = re.compile(r"[-+]?[0-9]{1,19}")
