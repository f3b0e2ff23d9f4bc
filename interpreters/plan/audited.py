"""The facts of an audit: the admission handlers' answers about stored objects."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from fnop.interpreters.plan.facts import Place, Source, Unread
from fnop.interpreters.plan.fields import FieldChange

__all__ = ["Answer", "Audit", "Finding"]


class Answer(StrEnum):
    """The answer of a handler about an object, the worst first."""

    REFUSED = "refused"
    CHANGED = "changed"
    KEPT = "kept"  # a deletion is denied
    WARNED = "warned"
    UNKNOWN = "unknown"


class Finding(Struct, frozen=True):
    """An answer of a handler about one object, other than plain admission.

    `message` is the denial, the warning, or what the answer waits for. `field` is the
    field that a denial names; `fields` are those that a mutation changes.
    """

    answer: Answer
    source: Source
    place: Place
    message: str = ""
    fields: tuple[FieldChange, ...] = ()
    field: str = ""

    @property
    def text(self) -> str:
        """The message, after the field that it concerns."""
        about = f"{self.field}: " if self.field else ""
        return about + self.message.removeprefix(about)


class Audit(Struct, frozen=True):
    """The findings about all objects in the audit."""

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
        """Whether all objects would be admitted without a change."""
        return not (self.count(Answer.REFUSED) or self.count(Answer.CHANGED))
