"""The account of a check: what its recording says in addition to the operator's steps.

The steps are what the operator saw. `fnop check` also knows what the user and the
faults did, each change of the cluster, and how the run went without faults. A header is
untrusted, like the rest of a recording. So only plain values of the expected types are
read from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple, get_type_hints

__all__ = [
    "Account",
    "Change",
    "Crash",
    "Differing",
    "Mark",
    "ReferenceLine",
    "account_from_json",
    "account_to_json",
]


class Mark(NamedTuple):
    """An action after a step: its lane, and a description.

    `wall` is the virtual time (Unix seconds), and `version` is the cluster's version by
    then. The lanes are "user", "fault" and "rest".
    """

    step: int
    wall: float
    lane: str
    text: str
    version: int


class Change(NamedTuple):
    """A change of the cluster, in effect from a step on.

    `type` is the type of a watch event. `by` is the author: "user", "operator",
    "cluster" for its own controllers, or "rival" for any other client. `body` is the
    object without secrets.
    """

    since: int
    version: int
    kind: str
    namespace: str
    name: str
    uid: str
    type: str
    by: str
    body: dict[str, Any]


class Differing(NamedTuple):
    """A difference of two worlds; None stands for something that does not exist."""

    object: str
    field: str
    expected: Any
    found: Any


class ReferenceLine(NamedTuple):
    """A line of the reference: the key that makes lines equal, and its text."""

    key: str
    text: str


class Crash(NamedTuple):
    """The outcome of a crash at one place of the run without faults.

    `step` is the same place in the recorded run, or 0 if that run lacks it before its
    first fault. `handler` and `verb` say which request of the step it is. `fails` are
    the properties that the crash violates; it is empty if the crash does not matter.
    """

    step: int
    text: str
    handler: str
    verb: str
    fails: list[str]


class Account(NamedTuple):
    """Everything that the header says.

    `differences` are the differences from the world `beside`. That can be the world of
    the run without faults, whose lines are the `reference`. `untried` counts the places
    of crashes that were not tried.
    """

    marks: tuple[Mark, ...] = ()
    changes: tuple[Change, ...] = ()
    beside: str = ""
    differences: tuple[Differing, ...] = ()
    reference: tuple[ReferenceLine, ...] = ()
    crashes: tuple[Crash, ...] = ()
    untried: int = 0


_PARTS: dict[str, type[NamedTuple]] = {
    "marks": Mark,
    "changes": Change,
    "differences": Differing,
    "reference": ReferenceLine,
    "crashes": Crash,
}


def account_to_json(account: Account) -> dict[str, Any]:
    """The account as plain JSON.

    >>> account_to_json(Account(reference=(ReferenceLine("a", "b"),)))["reference"]
    [{'key': 'a', 'text': 'b'}]
    """
    return {
        name: [each._asdict() for each in value] if name in _PARTS else value
        for name, value in account._asdict().items()
    }


def account_from_json(found: Any) -> Account:
    """The account of a header; an empty one if the header lacks it.

    Raises `ValueError` with a sentence for anything else.

    >>> account_from_json({"untried": 2}).untried
    2
    """
    if found is None:
        return Account()
    try:
        parts = {
            name: tuple(_read(cls, each) for each in found.get(name, ()))
            for name, cls in _PARTS.items()
        }
        beside, untried = found.get("beside", ""), found.get("untried", 0)
    except (AttributeError, KeyError, TypeError) as problem:
        raise ValueError(_DAMAGED) from problem
    if not isinstance(beside, str) or not isinstance(untried, int):
        raise ValueError(_DAMAGED)
    return Account(beside=beside, untried=untried, **parts)


_DAMAGED = (
    "the recording's account of its check is damaged, or was not written by fnop; "
    "leave out --html and --perfetto to read the rest"
)


def _read(cls: type[NamedTuple], found: Mapping[str, Any]) -> Any:
    """A value of the class, if its fields have the types that the class declares."""
    given = {}
    for name, kind in _field_types(cls).items():
        value = given[name] = found[name]
        if not _is_of_type(value, kind):
            raise TypeError(name)
    build: Any = cls
    return build(**given)


@cache
def _field_types(cls: type[NamedTuple]) -> dict[str, Any]:
    return get_type_hints(cls)


def _is_of_type(value: Any, kind: Any) -> bool:
    match kind:
        case _ if kind is Any:
            return True
        case _ if kind is float:
            return isinstance(value, int | float)
        case _ if kind == list[str]:
            return isinstance(value, list) and _are_texts(value)
        case _ if kind == dict[str, Any]:
            return isinstance(value, dict)
        case _:
            return isinstance(value, kind)


def _are_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(each, str) for each in values)
