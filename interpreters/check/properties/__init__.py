"""The properties by which fnop judges each trial.

Each is a function of the benign run and of a trial, and returns the violations that it
finds; the benign run is judged as well. They never look at the operator's code.
Properties that need no input from an author are always on.

Each module of this package may have `PROPERTIES`, and is found here.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Collection, Iterator, Mapping
from importlib import import_module

from fnop.interpreters.check.properties.evidence import (
    Benign,
    Property,
    Scope,
    Seen,
    Violation,
    has_struck,
)
from fnop.interpreters.check.state.kinds import Trait

__all__ = [
    "EXPLAINED",
    "FAULTLESS",
    "OF_ADMISSION",
    "OF_DECISIONS",
    "PROPERTIES",
    "judged",
]


def _found() -> Iterator[Property]:
    for each in pkgutil.iter_modules(__path__):
        module = import_module(f"{__name__}.{each.name}")
        yield from getattr(module, "PROPERTIES", ())


# In the order of judgement: an error is often why a run does not settle.
PROPERTIES: Mapping[str, Property] = {
    each.name: each for each in sorted(_found(), key=lambda each: each.rank)
}
# The meaning of each property, in a line.
EXPLAINED = {name: each.words for name, each in PROPERTIES.items()}


def _within(scope: Scope) -> frozenset[str]:
    return frozenset(name for name, each in PROPERTIES.items() if scope & each.scope)


# Properties of operators with admission handlers; others have nothing to judge.
OF_ADMISSION = _within(Scope.ADMISSION)
# Properties of handlers that only decide: they take a decision for repeatable.
OF_DECISIONS = _within(Scope.DECISIONS)
# Properties that only runs without faults can show.
FAULTLESS = _within(Scope.FAULTLESS)
_OF_THE_END = _within(Scope.END)
_OF_MISTAKES = _within(Scope.MISTAKES)


def judged(
    benign: Benign, seen: Seen, only: Collection[str] | None = None
) -> list[Violation]:
    """The violations of all properties, or of some."""
    names = set(PROPERTIES if only is None else only)
    if has_struck(seen.trial, Trait.REWINDS):
        names &= _OF_THE_END  # versions count again from the backup on
    if benign.mistake:
        names -= _OF_MISTAKES
    return [
        found
        for name, each in PROPERTIES.items()
        if name in names
        for found in each.judge(benign, seen)
    ]
