"""Properties of admission handlers, which the runs without faults show.

Their writes are tried again (`fnop.interpreters.check.admission.admitting`).
"""

from __future__ import annotations

from collections.abc import Iterator

from fnop.interpreters.check.properties.evidence import (
    Benign,
    Property,
    Scope,
    Seen,
    Violation,
    told,
)

__all__ = [
    "PROPERTIES",
    "accepted",
    "admits_itself",
    "deletable",
    "idempotent",
    "steady",
    "traceless",
    "updatable",
]


def idempotent(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """Mutations do not change their own result again."""
    if seen is benign.seen:
        yield from told("idempotent", benign.admitting.idempotent)


def accepted(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """An accepted object is still accepted after its mutations."""
    if seen is benign.seen:
        yield from told("accepted", benign.admitting.accepted)


def traceless(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """A denied write and a dry run leave nothing behind outside."""
    if seen is benign.seen:
        yield from told("traceless", benign.admitting.traceless)


def steady(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """Validations give the same answer to the same question."""
    if seen is benign.seen:
        yield from told("steady", benign.admitting.steady)


def deletable(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """Each object can be deleted, and disappears after the deletion."""
    if seen is benign.seen:
        yield from told("deletable", benign.admitting.deletable)


def updatable(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """Each stored object can be updated."""
    if seen is benign.seen:
        yield from told("updatable", benign.admitting.updatable)


def admits_itself(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """The operator's own writes are admitted."""
    if seen is benign.seen:
        yield from told("admits_itself", benign.admitting.admits_itself)


PROPERTIES = (
    Property(
        deletable,
        "each object can be deleted, and goes once it is",
        240,
        Scope.FAULTLESS | Scope.ADMISSION,
    ),
    Property(
        updatable,
        "each stored object can be updated, if only its labels",
        250,
        Scope.FAULTLESS | Scope.ADMISSION,
    ),
    Property(
        admits_itself,
        "the operator's own writes are admitted",
        260,
        Scope.FAULTLESS | Scope.ADMISSION,
    ),
    Property(
        idempotent,
        "mutations change nothing that they have changed already",
        270,
        Scope.FAULTLESS | Scope.ADMISSION,
    ),
    Property(
        accepted,
        "what mutations make is accepted by validations and the schema",
        280,
        Scope.FAULTLESS | Scope.ADMISSION,
    ),
    Property(
        traceless,
        "denied writes and dry runs leave nothing behind outside",
        290,
        Scope.FAULTLESS | Scope.ADMISSION,
    ),
    Property(
        steady,
        "validations give one answer to one question, in any order",
        300,
        Scope.FAULTLESS | Scope.ADMISSION,
    ),
)
