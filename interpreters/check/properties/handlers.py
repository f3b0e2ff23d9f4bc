"""Properties of handlers: they are total and pure, and heed what they look at."""

from __future__ import annotations

from collections.abc import Iterator

from fnop.core.values.errors import text_of
from fnop.interpreters.check.inputs.redeciding import OWN_ERRORS
from fnop.interpreters.check.properties.evidence import (
    Benign,
    Property,
    Scope,
    Seen,
    Violation,
    told,
)
from fnop.interpreters.check.trials.trial import Trial

__all__ = ["PROPERTIES", "heeds", "idle", "pure", "serves", "total"]


def total(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """Handlers do not fail with an error of their own, in Python's sense."""
    known = _own_errors(benign.seen.trial) if seen is not benign.seen else {}
    for (who, name), message in _own_errors(seen.trial).items():
        if (who, name) not in known:
            yield Violation("total", f"{who} raises {name}: {message}")
            return
    if seen is benign.seen and not benign.calm:
        yield from told("total", benign.heeding.unforeseen)


def _own_errors(trial: Trial) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for _, say in trial.journal.lines:
        if isinstance(say.exception, OWN_ERRORS):
            name = type(say.exception).__name__
            found[say.handler or "the operator", name] = text_of(say.exception)
    return found


def pure(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """Handlers decide by their arguments alone.

    The caller has to check that the run is the same in another process.
    """
    if seen is benign.seen and benign.impure:
        yield Violation("pure", benign.impure[0], benign.impure)


def idle(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """Handlers do something: if not in this state, then in another one."""
    if seen is benign.seen:
        for each in benign.idle:
            yield Violation("idle", f"{each} does nothing, in whatever state")


def heeds(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """Each input that a handler looks at matters to one of its decisions."""
    if seen is benign.seen:
        yield from told("heeds", benign.heeding.unheeded)


def serves(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """The operator starts, and each called handler can succeed in the end."""
    if seen is not benign.seen:
        return
    ended = seen.trial.scene.booted.exit
    if ended is not None and ended.status:
        yield Violation("serves", f"the operator does not start: {ended.reason}")
    yield from told("serves", benign.heeding.fruitless)


PROPERTIES = (
    Property(
        total,
        "no handler fails of an error of its own",
        20,
        Scope.END | Scope.MISTAKES,
    ),
    Property(
        pure,
        "handlers decide by their arguments alone",
        170,
        Scope.FAULTLESS | Scope.DECISIONS,
    ),
    Property(
        idle,
        "each handler does something",
        180,
        Scope.FAULTLESS | Scope.DECISIONS,
    ),
    Property(
        heeds,
        "what a handler looks at matters",
        190,
        Scope.FAULTLESS | Scope.DECISIONS,
    ),
    Property(
        serves,
        "the operator starts, and its handlers may come to a good end",
        200,
        Scope.FAULTLESS | Scope.MISTAKES,
    ),
)
