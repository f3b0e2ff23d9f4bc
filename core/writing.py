"""The object's own write as a machine: send, verify, resolve conflicts, go on.

An outcome is never lost: a write that fails is tried again, with backoff, from
the freshest body; the handlers behind it are not run again (R22).
"""

from __future__ import annotations

from fnop.core.backoff import backoff_seconds
from fnop.core.errands import Address
from fnop.core.evolve import replace
from fnop.core.finalizers import Duty
from fnop.core.fusion import Home, Writing, home_of, next_write, was_pruned
from fnop.core.known import Echo, Known, Work
from fnop.core.kubernetes_events import report_event
from fnop.core.last_seen import Seen, Stored
from fnop.core.merge import OperationFailed, applied, collisions
from fnop.core.objects import Body, Key
from fnop.core.progress import Failure, Progress, judge_failure
from fnop.core.registry import Handler
from fnop.core.turn import Ticket, Turn
from fnop.effects import (
    Applied,
    Conflict,
    Event,
    Get,
    Missing,
    Outcome,
    Target,
    Unknown,
    Unreachable,
)
from fnop.effects.outcomes import Refused

__all__ = ["answer_echo", "answer_write", "begin_write", "look_at", "shown"]

_IDLE = Work()

# Conflicts are answered by an immediate live read; a rival who writes without
# end is met with backoff.
_QUICK_TRIES = 3
# Refusals that are about the request itself: sending it again cannot help.
_FINAL_REFUSALS = frozenset((400, 405, 413, 415, 422))


def shown(turn: Turn, known: Known, body: Body) -> Known:
    """Take the answer to an own write as the freshest state of the object.

    The object is not reconciled before the watch has shown that version; an
    answer that changed nothing has nothing to be shown (R24).
    """
    if body.version == known.body.version:
        return replace(known, body=body)
    deadline = turn.now.mono + turn.settings.echo_timeout_seconds
    return replace(known, body=body, echo=Echo(body.version, turn.step, deadline))


def begin_write(turn: Turn, key: Key, known: Known, writing: Writing) -> None:
    """Start a write, or go on with it."""
    if known.work is None or known.work.writing is None:
        if len(writing.patches) > 1:
            writing = _in_order(turn, key, writing)
            _warn_collisions(turn, key, writing)
        if writing.finalizer is None:
            work = replace(known.work or _IDLE, patches=(), results={})
            known = replace(known, work=work)
        writing = _housed(turn, key, writing)
    _send(turn, key, known, writing)


def _in_order(turn: Turn, key: Key, writing: Writing) -> Writing:
    """Patches in the order of their handlers' registration, not of their ends."""
    kind = turn.kinds[key.resource]
    order = {each.id: at for at, each in enumerate((*kind.spies, *kind.changes))}
    patches = sorted(writing.patches, key=lambda patch: order[patch[0]])
    return replace(writing, patches=tuple(patches))


def _warn_collisions(turn: Turn, key: Key, writing: Writing) -> None:
    """Two handlers, two values for one field: the later registration wins (R18)."""
    so_far: dict[str, object] = {}
    for handler, patch in writing.patches:
        merge = patch.merge or {}
        for pointer in collisions(so_far, merge):
            turn.say(
                "warning",
                f"several handlers set {pointer} to different values; "
                f"the one of {handler} is written",
                key=key,
                handler=handler,
            )
        so_far = applied(merge, so_far)


def _housed(turn: Turn, key: Key, writing: Writing) -> Writing:
    """Results without a place in the status go with the state (R25)."""
    resource = turn.kinds[key.resource].resource
    if not writing.results or not resource.is_built_in:
        return writing
    return _homeless(turn, key, writing, set(writing.results))


def _homeless(turn: Turn, key: Key, writing: Writing, names: set[str]) -> Writing:
    for name in sorted(names):
        turn.warn_once(
            f"result {key.resource} {name}",
            f"the status of this kind has no place for the result of {name}; it is "
            f"kept in the annotation {turn.settings.marker}",
            key,
        )
    if writing.after is None:
        return replace(
            writing,
            results={k: v for k, v in writing.results.items() if k not in names},
        )
    moved = {name: writing.results[name] for name in names}
    after = replace(writing.after, results={**writing.after.results, **moved})
    return replace(
        writing,
        results={k: v for k, v in writing.results.items() if k not in names},
        after=after,
        memory=after,
    )


def _home(turn: Turn, key: Key) -> Home:
    resource = turn.kinds[key.resource].resource
    return home_of(resource, prunes_status=key.resource in turn.annotated)


def _send(turn: Turn, key: Key, known: Known, writing: Writing) -> None:
    resource = turn.kinds[key.resource].resource
    address = Address(resource, key.namespace or None, key.name)
    authors = sorted({name for name, _ in writing.patches} | set(writing.results))
    ticket = Ticket("write", key, handler=", ".join(authors))
    if writing.looking:
        target = Target(resource.key, key.name, key.namespace or None)
        number = turn.perform(Get(target), address, ticket, turn.subject(key))
        _put(turn, key, known, replace(writing, id=number, due=None))
        return
    if writing.finalizer == Duty.ADD.value and known.body.is_deleting:
        # Too late: no finalizer can be added any more.
        _done(turn, key, known, writing)
        return
    try:
        found = next_write(
            writing, known.body, resource, turn.settings.marker, _home(turn, key)
        )
    except ValueError as problem:
        _too_long(turn, key, known, writing, str(problem))
        return
    except OperationFailed as problem:
        _refused(turn, key, known, writing, str(problem))
        return
    if found is None:
        _done(turn, key, known, writing)
        return
    endpoint, patch, more = found
    number = turn.perform(patch, address, ticket, turn.subject(key, known.body))
    sent = replace(writing, id=number, due=None, endpoint=endpoint, more=more)
    _put(turn, key, known, sent)


def _put(turn: Turn, key: Key, known: Known, writing: Writing | None) -> None:
    work = replace(known.work or _IDLE, writing=writing)
    kept = replace(known, work=None if work.is_over else work)
    turn.put(key, kept)


def _too_long(
    turn: Turn, key: Key, known: Known, writing: Writing, problem: str
) -> None:
    """A state that cannot be stored is the object's error, not the operator's.

    Digests always fit: they keep a restart from handling the object as a new one.
    """
    turn.failures += 1
    turn.say("error", f"cannot be remembered on the object: {problem}", key=key)
    report_event(turn, key, known, Event("StateTooLong", problem, "Warning"))
    assert writing.after is not None
    seen = writing.after.seen
    least = Stored(seen and Seen(seen.digests), writing.after.creating)
    memory = least if writing.memory is not None else None
    _send(turn, key, known, replace(writing, after=least, memory=memory))


def _done(turn: Turn, key: Key, known: Known, writing: Writing) -> None:
    """Everything is written: now it is what is remembered."""
    work, echo, ends = known.work or _IDLE, known.echo, writing.ends
    work = replace(
        work,
        writing=None,
        cycle=None if ends else work.cycle,
        progress={} if ends else work.progress,
    )
    if writing.finalizer == Duty.ADD.value and echo is not None:
        echo = replace(echo, passes=True)
    kept = replace(
        known,
        stored=known.stored if writing.memory is None else writing.memory,
        initial=known.initial and not ends,
        echo=echo,
        work=None if work.is_over else work,
    )
    turn.put(key, kept)
    turn.due(key)


def answer_write(turn: Turn, number: int, ticket: Ticket, outcome: Outcome) -> None:
    """A request of an own write has been answered."""
    key = ticket.key
    assert key is not None
    known = turn.known(key)
    if known is None or known.work is None or known.work.writing is None:
        return
    writing = known.work.writing
    if writing.id != number:
        return
    writing = replace(writing, id=None)
    match outcome:
        case Applied(object=dict() as found):
            body = Body(found)
            if body.uid and known.body.uid and body.uid != known.body.uid:
                _abandon(turn, key, known)
            elif writing.looking:
                fresh = replace(writing, looking=False, sent=frozenset())
                _send(turn, key, shown(turn, known, body), fresh)
            else:
                _written(turn, key, shown(turn, known, body), writing, body)
        case Missing():
            _abandon(turn, key, known)
        case Conflict() | Unknown():
            _look_again(turn, key, known, writing)
        case Refused(status=status, message=message) if status in _FINAL_REFUSALS:
            _refused(turn, key, known, writing, message)
        case Refused(message=message) | Unreachable(message=message):
            _later(turn, key, known, writing, message)
        case _:
            _later(turn, key, known, writing, f"an unexpected answer: {outcome!r:.80}")


def _written(turn: Turn, key: Key, known: Known, writing: Writing, body: Body) -> None:
    """One endpoint has taken its part; verify it, and go on with the rest."""
    writing = replace(writing, sent=writing.sent | {writing.endpoint}, tries=0)
    resource = turn.kinds[key.resource].resource
    if writing.endpoint == "status" or not resource.has_status:
        lost_state, lost = was_pruned(writing, body, turn.settings.marker)
        if _home(turn, key) is Home.STATUS and lost_state:
            turn.annotated |= {key.resource}
        if lost:
            writing = _homeless(turn, key, writing, lost)
            writing = replace(writing, sent=writing.sent - {""})
        if lost_state or lost:
            _send(turn, key, known, writing)
            return
    if writing.more:
        _send(turn, key, known, writing)
    else:
        _done(turn, key, known, writing)


def _look_again(turn: Turn, key: Key, known: Known, writing: Writing) -> None:
    """Somebody was quicker, or nobody knows: read the object, then fuse anew."""
    writing = replace(writing, looking=True, tries=writing.tries + 1)
    if writing.tries <= _QUICK_TRIES:
        _send(turn, key, known, writing)
    else:
        _wait(turn, key, known, writing)


def _later(turn: Turn, key: Key, known: Known, writing: Writing, message: str) -> None:
    writing = replace(writing, tries=writing.tries + 1)
    if writing.tries in (1, 5) or writing.tries % 20 == 0:
        turn.say(
            "warning", f"cannot be written, will be tried again: {message}", key=key
        )
    _wait(turn, key, known, writing)


def _wait(turn: Turn, key: Key, known: Known, writing: Writing) -> None:
    due = turn.now.mono + backoff_seconds(writing.tries, turn.jitter())
    _put(turn, key, known, replace(writing, due=due))
    turn.due(key, due)


def _abandon(turn: Turn, key: Key, known: Known) -> None:
    """The object is gone, or another one has its name: there is nothing to write.

    The watch is to say so too; until then nothing is done about the object.
    """
    deadline = turn.now.mono + turn.settings.echo_timeout_seconds
    echo = Echo("", turn.step, deadline)
    _put(turn, key, replace(known, vanished=True, echo=echo), None)
    turn.due(key)


def _refused(
    turn: Turn, key: Key, known: Known, writing: Writing, message: str
) -> None:
    """The server takes the content for invalid: its authors' attempts fail."""
    authors = {name for name, _ in writing.patches} | set(writing.results)
    if not authors:
        turn.failures += not writing.tries
        _later(turn, key, known, writing, f"the API server refuses it: {message}")
        return
    work = known.work
    assert work is not None
    progress = dict(work.progress)
    for handler in turn.kinds[key.resource].changes:
        if handler.id in authors and handler.id in progress:
            authors.discard(handler.id)
            progress[handler.id] = _blamed(turn, key, known, handler, message)
    for name in sorted(authors):
        turn.say("error", f"the patch of {name} is refused: {message}", key=key)
    work = replace(work, writing=None, progress=progress)
    turn.put(key, replace(known, work=work))
    turn.due(key)


def _blamed(
    turn: Turn, key: Key, known: Known, handler: Handler, message: str
) -> Progress:
    work = known.work
    assert work is not None
    was = replace(work.progress[handler.id], finished=None)
    judgement = judge_failure(
        replace(was, retries=max(0, was.retries - 1)),
        Failure("Refused", f"the patch is refused: {message}"),
        turn.now,
        errors=handler.errors,
        timeout=handler.timeout,
        retries=handler.retries,
        backoff=turn.settings.default_backoff_seconds
        if handler.backoff is None
        else handler.backoff,
    )
    turn.say(
        judgement.level,
        f"{handler.role.value} handler {handler.id} {judgement.line}",
        key=key,
        body=known.body,
        handler=handler.id,
        error=message,
    )
    if judgement.progress.finished == "failure":
        turn.failures += 1
    return judgement.progress


def look_at(turn: Turn, key: Key, known: Known) -> None:
    """The watch has not shown an own write in time: a live read, never blind."""
    assert known.echo is not None
    resource = turn.kinds[key.resource].resource
    target = Target(resource.key, key.name, key.namespace or None)
    address = Address(resource, key.namespace or None, key.name)
    turn.perform(Get(target), address, Ticket("echo", key), turn.subject(key))
    deadline = turn.now.mono + turn.settings.echo_timeout_seconds
    echo = replace(known.echo, looking=True, deadline=deadline)
    turn.put(key, replace(known, echo=echo))


def answer_echo(turn: Turn, ticket: Ticket, outcome: Outcome) -> None:
    """The live read after an echo that did not come."""
    key = ticket.key
    assert key is not None
    known = turn.known(key)
    if known is None or known.echo is None:
        return
    echo = known.echo
    match outcome:
        case Applied(object=dict() as found):
            body = Body(found)
            if body.uid == known.body.uid:
                # The watch is late: what it shows before this version is older.
                deadline = turn.now.mono + turn.settings.echo_timeout_seconds
                echo = Echo(body.version, turn.step, deadline, passes=True)
                known = replace(known, body=body, vanished=False, echo=echo)
            else:
                known = replace(known, gone=True, echo=None)
        case Missing():
            known = replace(known, gone=True, echo=None)
        case _:
            again = turn.now.mono + turn.settings.echo_timeout_seconds
            waiting = replace(echo, looking=False, deadline=again)
            known = replace(known, echo=waiting)
    turn.put(key, known)
    turn.due(key)
