"""The facts of an audit: what admission handlers say of the objects that are there."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from fnop.interpreters.plan.facts import Place, Source, Unread
from fnop.interpreters.plan.fields import FieldChange

__all__ = ["Answer", "Audit", "Finding"]


class Answer(StrEnum):
    """What a handler says of an object, the worst first."""

    REFUSED = "refused"
    CHANGED = "changed"
    KEPT = "kept"  # a deletion is denied
    WARNED = "warned"
    UNKNOWN = "unknown"


class Finding(NamedTuple):
    """An answer of a handler about one object that is not simply let through.

    `message` is the denial, the warning, or what the answer waits for, and `field` the
    one that a denial names; `fields` are those that a mutation changes.
    """

    answer: Answer
    source: Source
    place: Place
    message: str = ""
    fields: tuple[FieldChange, ...] = ()
    field: str = ""

    @property
    def text(self) -> str:
        """The message, after the field that it is about."""
        about = f"{self.field}: " if self.field else ""
        return about + self.message.removeprefix(about)


class Audit(NamedTuple):
    """The findings about all objects that were asked about."""

    findings: tuple[Finding, ...]
    asked: int
    reads: int
    unread: tuple[Unread, ...] = ()
    notes: tuple[str, ...] = ()

    def count(self, answer: Answer) -> int:
        """The number of objects with such an answer.

        >>> Audit((), 3, 1).count(Answer.REFUSED)
        0
        """
        return len({each.place for each in self.findings if each.answer is answer})

    @property
    def is_clean(self) -> bool:
        """Whether no object would be refused or changed."""
        return not (self.count(Answer.REFUSED) or self.count(Answer.CHANGED))
