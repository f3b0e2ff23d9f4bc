"""Rules: the parts of the validation tables.

A *rule* takes a value, which is None if it is missing, and the path of the value. It
returns the faults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fnop.interpreters.cluster.validation.faults import (
    bad,
    forbidden,
    immutable,
    unsupported,
)
from fnop.interpreters.cluster.values.status import Fault

__all__ = [
    "Change",
    "Rule",
    "Spec",
    "between",
    "in_order",
    "must",
    "one_of",
    "unchanged",
    "unset",
]

Spec = dict[str, Any]
Rule = Callable[[Any, str], Iterable[Fault]]
Change = Callable[[Spec, Spec], Iterable[Fault]]


def in_order(*rules: Rule) -> Rule:
    """All these rules of one value.

    >>> small = in_order(between(0, 9), must(lambda n: n != 4, "must not be 4"))
    >>> [fault.message for fault in small(4, "n")]
    ['Invalid value: 4: must not be 4']
    """
    if len(rules) == 1:
        return rules[0]

    def check(value: Any, path: str) -> list[Fault]:
        found: list[Fault] = []
        for rule in rules:
            found += rule(value, path)
        return found

    return check


def must(test: Callable[[Any], Any], why: str, zero: Any = None) -> Rule:
    """The value must pass a test; a missing one counts as `zero`, or passes."""

    def check(value: Any, path: str) -> Iterable[Fault]:
        value = zero if value is None else value
        return () if value is None or test(value) else (bad(path, value, why),)

    return check


def between(least: float, most: float, why: str = "", zero: int | None = None) -> Rule:
    """A number must be in a range, which may be open at one end."""
    usual = f"must be between {least} and {most}, inclusive"
    if most == float("inf"):
        usual = f"must be greater than or equal to {least}"
    return must(lambda number: least <= number <= most, why or usual, zero)


def one_of(*known: str) -> Rule:
    """The value must be one of a few texts."""

    def check(value: Any, path: str) -> Iterable[Fault]:
        value = "" if value is None else value
        return () if value in known else (unsupported(path, value, known),)

    return check


def unset(why: str) -> Rule:
    """A field that must be missing."""
    return lambda value, path: () if value is None else (forbidden(path, why),)


def unchanged(owner: str, *names: str) -> Change:
    """Fields that must not change, in `owner` or, if that is "", in the object."""

    def check(new: Spec, old: Spec) -> Iterable[Fault]:
        after, before = ((obj.get(owner) or {}) if owner else obj for obj in (new, old))
        return immutable(after, before, owner, *names)

    return check
