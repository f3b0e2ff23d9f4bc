"""Properties of rest: the operator settles, and a restart finds no work."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from fnop.core.handlers.declare.roles import BACKGROUND, Family
from fnop.interpreters.check.properties.aging import ages, clocked_in, is_aged
from fnop.interpreters.check.properties.evidence import (
    Benign,
    Property,
    Scope,
    Seen,
    Violation,
    tampers,
    told,
)
from fnop.interpreters.check.state.records import Phase, Write
from fnop.interpreters.check.state.worlds import records_in, world_of
from fnop.interpreters.check.trials.differences import differences
from fnop.interpreters.check.trials.trial import Trial

__all__ = [
    "PROPERTIES",
    "WORK_FACTOR",
    "WORK_MORE",
    "bounded_work",
    "no_more_writes",
    "quiet",
    "settles",
]

# The trial may make this multiple of the benign run's writes, and some more.
WORK_FACTOR, WORK_MORE = 3, 12


def settles(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """After the faults everything settles."""
    known = benign.seen.trial.journal.unsettled
    for phase, found in seen.trial.journal.unsettled.items():
        if seen is not benign.seen and (phase is Phase.SCRIPT or phase in known):
            continue
        if seen is benign.seen and found.waits:
            continue  # for an event that the script does not have
        if benign.mistake and phase is Phase.SCRIPT:
            continue  # before it is corrected
        if found.endless or not tampers(seen.trial):
            yield Violation("settles", found.reason)
            return


def no_more_writes(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """The last restart at the end changes nothing: the second one, or the third.

    In a run without faults, even the first one changes nothing that others look at.
    Timers and daemons may keep writing to their own object that they are alive. They
    may create objects with the time in their names, as they would have done without the
    restart. Everything else that they have made stays as it is.
    """
    yield from _changes_by_resuming(benign, seen)
    last = max(seen.trial.journal.ends)
    if last in seen.trial.journal.unsettled:
        return
    again = [
        each
        for each in seen.trial.journal.writes
        if each.phase is last
        and not (benign.background and _kind_of(each) in benign.handled)
    ]
    if again and any(_moment_of(benign, each) for each in again):
        due = {
            _sort_of_write(benign, each)
            for each in seen.trial.written_by_time()
            if _moment_of(benign, each) is not None
        }
        again = [each for each in again if _sort_of_write(benign, each) not in due]
    clocked = clocked_in(seen.trial.scene.program)
    again = [each for each in again if not _takes_what_is_old(each, clocked)]
    if again and _only_notes(seen.trial, last):
        again = [each for each in again if each.site.handler]
    if again:
        what = ", ".join(str(each.site) for each in again[:3])
        yield Violation(
            "no_more_writes", f"a restart at the end changes something again: {what}"
        )


def _only_notes(trial: Trial, last: Phase) -> bool:
    """Whether the last restart of a Kopf operator has left the world as it was.

    Kopf notes the end of each resuming handler on the object, if there are several, and
    removes the notes after the last one.
    """
    if trial.run.begin is None:
        return False
    base, ends = trial.scene.base.cluster, trial.journal.ends
    before, after = (
        world_of(ends[each].cluster, base, None, trial.drawn, trial.storage)
        for each in (Phase(last - 1), last)
    )
    return before == after


def _changes_by_resuming(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """The changes that only a restart makes, to other objects and outside.

    A note of a resuming handler on its own object, such as a counter, is about the
    restart itself.
    """
    if seen is not benign.seen or seen.trial.journal.unsettled:
        return
    written, aged = {*_aliases_by_resuming(seen)}, ages(seen)
    records = records_in(seen.trial.run.calls.models)
    handlers = seen.trial.scene.program.handlers
    # Other handlers are called by time, or whenever a process starts.
    only_objects = all(each.rule.family in _OF_OBJECTS for each in handlers)
    found = [
        each
        for each in differences(
            *(seen.world, seen.healed, benign.volatile), without_status=benign.handled
        )
        if each.alias not in records
        and not is_aged(each, aged)
        and (each.alias in written or (_is_outside(each.alias) and only_objects))
    ]
    yield from told(
        "no_more_writes",
        [
            f"{each} until the operator restarts; let handlers of creations and "
            "changes do what resuming does"
            for each in found
        ],
    )


_OF_OBJECTS = (Family.CHANGE, Family.RECONCILER, Family.INDEX)


def _is_outside(alias: str) -> bool:
    """Whether an alias names a system outside."""
    return "/" not in alias


def _aliases_by_resuming(seen: Seen) -> Iterator[str]:
    """The aliases of objects that a restart writes, except by timers and daemons.

    The handled object itself is not among them.
    """
    trial = seen.trial
    others = {e.id for e in trial.scene.program.handlers if e.role in BACKGROUND}
    for event in seen.events:
        write = seen.writes.get(event.version)
        if write is None or write.phase is not Phase.RESTARTED:
            continue
        if event.object["metadata"]["uid"] == write.subject:
            continue
        if others.isdisjoint(write.site.handler.split(", ")):
            yield seen.alias_of(event.resource, event.object)


def _takes_what_is_old(write: Write, clocked: Collection[str]) -> bool:
    """Whether a handler that looks at the clock deletes what has become old by now."""
    return write.site.verb == "delete" and write.site.handler in clocked


def _sort_of_write(benign: Benign, write: Write) -> tuple[str, str, str | None]:
    """The sort of a write, for writes that a timer makes whenever it is called."""
    return write.site.handler, write.site.verb, _moment_of(benign, write)


def _moment_of(benign: Benign, write: Write) -> str | None:
    """The alias of the written object without the moment in its name, if it has one."""
    *_, namespace, name = ("", "", *write.path.split("/"))
    if not name and isinstance(write.body, Mapping):
        name = (write.body.get("metadata") or {}).get("name") or ""
    where = f" in {namespace}" if namespace not in ("", "default") else ""
    return benign.volatile.moment_in(f"{_kind_of(write)}/{name}{where}")


def _kind_of(write: Write) -> str:
    """The kind of the written object, as aliases name it."""
    group, _, rest = write.path.partition("/")
    return f"{rest.partition('/')[0]}.{group}".rstrip(".")


def bounded_work(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """The operator writes at most three times as often as in the benign run.

    Timers and daemons write as often as they are due, and an operator that has them
    runs for long. They do not count, nor do notes on handlers that fail.
    """
    usual, now = (_number_of_writes(each.trial, benign) for each in (benign.seen, seen))
    # An operator that waits may check again every second.
    waited = max(0.0, seen.trial.state.waited - benign.seen.trial.state.waited)
    # A failed attempt may be noted on the object (`retry`, the delay).
    failed = max(0, _failures(seen.trial) - _failures(benign.seen.trial))
    most = WORK_FACTOR * usual + WORK_MORE + 2 * waited + failed
    if now > most:
        yield Violation(
            "bounded_work", f"{now} writes, where the benign run has {usual}"
        )


def quiet(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """At rest the operator does not repeat requests that lead to nothing."""
    if seen is benign.seen:
        yield from told("quiet", benign.aftermath.vain)


def _number_of_writes(trial: Trial, benign: Benign) -> int:
    """The number of writes; with timers, only writes of handlers with a cause."""
    if not benign.background:
        return len(trial.journal.writes)
    handlers = trial.scene.program.handlers
    others = {"", *(each.id for each in handlers if each.role in BACKGROUND)}
    return sum(
        others.isdisjoint(e.site.handler.split(", ")) for e in trial.journal.writes
    )


def _failures(trial: Trial) -> int:
    """The number of attempts that have failed."""
    return sum(say.ended is not None for _, say in trial.journal.lines)


PROPERTIES = (
    Property(
        settles,
        "everything settles once the faults have ended",
        30,
        Scope.END,
    ),
    Property(
        no_more_writes,
        "a second restart at the end changes nothing",
        130,
        Scope.END,
    ),
    Property(
        bounded_work,
        "at most three times the writes of the benign run",
        150,
    ),
    Property(
        quiet,
        "at rest nothing is asked for in vain again and again",
        160,
        Scope.FAULTLESS,
    ),
)
