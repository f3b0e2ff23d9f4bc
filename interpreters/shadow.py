"""Asking every recorded attempt again, of other handlers than those that decided it.

Nothing can act: what the author's code tries to do to the world is refused, and impure
handlers are not asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fnop.core.handlers.handler import Handler
from fnop.core.handlers.program import Program
from fnop.core.history.attempts import Attempt, Attempts
from fnop.core.history.shadow import (
    Changed,
    Same,
    Surroundings,
    Untold,
    Verdict,
    asked_again,
)
from fnop.core.objects.indexing import empty_indices
from fnop.interpreters.guard import Act, Guard
from fnop.interpreters.recordings import Unsupported, understood
from fnop.interpreters.redaction import has_token

__all__ = ["Judged", "Shadow", "shadow"]


class Judged(NamedTuple):
    """An attempt with the decision that is another one now."""

    attempt: Attempt
    handler: Handler
    changed: Changed


@dataclass
class Shadow:
    """The verdict on a recording: how many decisions there are, and which change.

    `untold` counts the attempts that could not be asked again, by the reason; so does
    `concealed` those whose difference may come from tokens in place of secrets alone.
    `acts` is what the author's code was forbidden to do.
    """

    attempts: int = 0
    changed: list[Judged] = field(default_factory=list)
    untold: Counter[str] = field(default_factory=Counter)
    concealed: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    truncated: bool = False
    acts: tuple[Act, ...] = ()


def shadow(
    records: Iterator[dict[str, Any] | None],
    header: Mapping[str, Any],
    program: Program,
) -> Shadow:
    """Ask all attempts of a recording again; `records` are those after the header.

    Raises `RecordingProblem` for a recording without traces, and for records that
    cannot be understood.
    """
    if header.get("traces") is not True:
        raise Unsupported(
            "the recording does not hold what handlers were shown: an earlier "
            f"release ({header.get('fnop')!r:.40}) made it; leave out --shadow, "
            "or record the run again"
        )
    run = _Shadow(program)
    for number, record in enumerate(records, 1):
        if record is None:
            run.found.truncated = True
            break
        with understood(number):
            run.add(record)
    return run.end()


class _Shadow:
    """A recording that is read, and its verdict so far."""

    def __init__(self, program: Program) -> None:
        self.attempts = Attempts()
        self.found = Shadow()
        self._handlers = {each.id: each for each in program.handlers}
        self._settings = program.settings
        self._empty = empty_indices(program)
        self._guard = Guard(refuses=True) if program.settings.guard else None
        # Attempts of sub-handlers that end before the one that declares them.
        self._waiting: dict[str, list[Attempt]] = {}

    def add(self, record: dict[str, Any]) -> None:
        for each in self.attempts.add(record):
            self._ask(each)

    def end(self) -> Shadow:
        for each in self.attempts.cut_off():
            self._ask(each)
        for name, waiting in self._waiting.items():
            self.found.missing[name] += len(waiting)
            self.found.attempts += len(waiting)
        if self._guard is not None:
            self.found.acts = tuple(self._guard.news())
        return self.found

    def _ask(self, attempt: Attempt) -> None:
        handler = self._handlers.get(attempt.handler)
        if handler is None:
            self._waiting.setdefault(attempt.handler, []).append(attempt)
            return
        self.found.attempts += 1
        verdict = self._verdict(attempt, handler)
        match verdict:
            case Same(settings, parts):
                self._settings = settings or self._settings
                self._declare(parts)
            case Changed():
                self._note(attempt, handler, verdict)
                self._declare(verdict.parts)
            case Untold(why):
                self.found.untold[why] += 1

    def _verdict(self, attempt: Attempt, handler: Handler) -> Verdict:
        around = Surroundings(
            self.attempts.catalogue, self._settings, self.attempts.versions, self._empty
        )
        if self._guard is None:
            return asked_again(attempt, handler, around)
        with self._guard:
            return asked_again(attempt, handler, around)

    def _note(self, attempt: Attempt, handler: Handler, changed: Changed) -> None:
        if changed.fields and all(map(_may_be_concealed, changed.fields)):
            self.found.concealed += 1
        else:
            self.found.changed.append(Judged(attempt, handler, changed))

    def _declare(self, parts: tuple[Handler, ...]) -> None:
        """Know sub-handlers, and ask those of their attempts that have ended."""
        for each in parts:
            self._handlers[each.id] = each
            for attempt in self._waiting.pop(each.id, ()):
                self._ask(attempt)


def _may_be_concealed(item: Any) -> bool:
    """Whether a difference is of texts of which one holds a token for a secret."""
    texts = (str(item.old), str(item.new))
    return any(has_token(each.encode()) for each in texts)
