"""The object's own write as a machine: send, verify, resolve conflicts, go on.

An outcome is never lost: a write that fails is tried again, with backoff, from
the freshest body; the handlers behind it are not run again (R22).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fnop.core.handlers.handler import Handler, declarer_of
from fnop.core.handlers.program import Kind
from fnop.core.handlers.writers import Transform
from fnop.core.memory.conditions import told_by
from fnop.core.memory.last_seen import Stored
from fnop.core.memory.observation import Seen
from fnop.core.memory.progress import Failure, Progress
from fnop.core.memory.storage import Place, StorageFailed
from fnop.core.objects.events import note_line, report_event
from fnop.core.objects.own_writes import (
    authors_of,
    followed,
    followers,
    generation_after,
    loop_told,
    moves_of,
    with_generation,
    with_moves,
)
from fnop.core.state.address import Address
from fnop.core.state.context import Context
from fnop.core.state.fusion import (
    Writing,
    authors_at,
    dropped_fields,
    endpoints_of,
    next_write,
    was_pruned,
)
from fnop.core.state.in_flight import UNSERVED_TRIES
from fnop.core.state.record import IDLE, Echo, Known, Work
from fnop.core.state.requests import Ticket
from fnop.core.values.backoff import backoff_seconds
from fnop.core.values.body import Body, is_behind
from fnop.core.values.evolve import replace
from fnop.core.values.finalizers import Duty
from fnop.core.values.merge import OperationFailed, applied, collisions, shows
from fnop.core.values.pace import culprits, paced
from fnop.effects import (
    Applied,
    Conflict,
    Event,
    Get,
    Missing,
    Outcome,
    Patch,
    Target,
    Unknown,
    Unreachable,
)
from fnop.effects.outcomes import Refused

__all__ = [
    "answer_echo",
    "answer_write",
    "begin_write",
    "keeping_pace",
    "look_at",
    "shown",
    "told",
    "vanished",
]


# Conflicts are answered by an immediate live read; a rival who writes without
# end is met with backoff.
_QUICK_TRIES = 3
_NOT_KEPT = "the API server does not keep what the storage writes"
# Refusals that are about the request itself: sending it again cannot help.
_FINAL_REFUSALS = frozenset((400, 405, 413, 415, 422))


def shown(context: Context, known: Known, body: Body) -> Known:
    """Take the answer to an own write as the freshest state of the object.

    The object is not reconciled before the watch has shown that version; an
    answer that changed nothing has nothing to be shown (R24).
    """
    if body.version == known.body.version:
        return known._replace(body=body, learned=context.step)
    if body.version in known.shown or is_behind(body.version, known.body.version):
        return known  # the watch has shown it, and what came after it
    echo = _echo(context, body.version)
    return known._replace(body=body, echo=echo, learned=context.step)


def _echo(context: Context, version: str, *, passes: bool = False) -> Echo:
    """Wait for the watch to show this version, for a bounded time."""
    deadline = context.now.mono + context.settings.echo_timeout_seconds
    return Echo(version, context.step, deadline, passes=passes)


def vanished(context: Context, known: Known) -> Known:
    """A live answer does not know the object any more; the watch is to say so too."""
    step = context.step
    return known._replace(vanished=True, echo=_echo(context, ""), learned=step)


def begin_write(context: Context, known: Known, writing: Writing) -> None:
    """Start a write, or go on with it."""
    if known.work is None or known.work.writing is None:
        if len(writing.patches) > 1:
            writing = _in_order(context, writing)
            _warn_collisions(context, writing)
        if writing.finalizer is None:
            work = known.work or IDLE
            later = {k: v for k, v in work.results.items() if k not in writing.results}
            known = known._replace(work=work._replace(patches=(), results=later))
        writing = _housed(context, known, writing)
    _send(context, known, writing)


def _in_order(context: Context, writing: Writing) -> Writing:
    """Patches in the order of their handlers' registration, not of their ends."""
    kind = context.kind
    handlers = (*kind.spies, *kind.background, *kind.changes)
    order = {each.id: at for at, each in enumerate(handlers)}
    patches = sorted(writing.patches, key=lambda patch: _place(order, patch[0]))
    return writing._replace(patches=tuple(patches))


def _place(order: Mapping[str, int], name: str) -> int:
    """Where a handler stands; a sub-handler where its parent does."""
    return order.get(declarer_of(name, order), len(order))


def _warn_collisions(context: Context, writing: Writing) -> None:
    """Two handlers, two values for one field: the later registration wins (R18)."""
    so_far: dict[str, object] = {}
    for handler, patch in writing.patches:
        merge = patch.merge or {}
        for pointer in collisions(so_far, merge):
            context.say(
                "warning",
                f"several handlers set {pointer} to different values; "
                f"the one of {handler} is written",
                handler=handler,
            )
        so_far = applied(merge, so_far)


def _housed(context: Context, known: Known, writing: Writing) -> Writing:
    """Results without a place in the status go with the state (R25)."""
    resource = context.kind.resource
    if not writing.results or not resource.is_built_in:
        return writing
    return _homeless(context, known, writing, set(writing.results))


def _homeless(
    context: Context, known: Known, writing: Writing, names: set[str]
) -> Writing:
    for name in sorted(names):
        context.warn_once(
            f"result {context.key.resource} {name}",
            f"the status of this kind has no place for the result of {name}; it is "
            f"kept with the state, in {_named(_home(context))}",
        )
    left = {k: v for k, v in writing.results.items() if k not in names}
    if not known.readable:
        return writing._replace(results=left)
    moved = {name: writing.results[name] for name in names}
    base = writing.after or writing.memory or known.stored
    after = base._replace(results={**base.results, **moved})
    return writing._replace(results=left, after=after, memory=after)


def _home(context: Context) -> Place:
    """Where the state of this kind is kept."""
    resource = context.kind.resource
    is_pruned = context.key.resource in context.notes.annotated
    return context.settings.places.on(resource, refused=is_pruned)


def _falls_back(context: Context, place: Place, why: str) -> bool:
    """From now on the state of this kind goes elsewhere, where that is possible."""
    places = context.settings.places
    if places.fallback is None or place is places.fallback:
        return False
    context.note(context.notes.pruning(context.key.resource))
    if not places.quietly:
        context.warn_once(
            f"storage {context.key.resource}",
            f"{why}: the state of this kind is kept in {_named(places.fallback)} "
            f"and not in {_named(place)}",
        )
    return True


def _named(place: Place) -> str:
    return ", ".join(
        f"the annotation {path[2]}" if path[0] == "metadata" else ".".join(path)
        for path in place.paths
    )


def _takes_conditions(context: Context) -> bool:
    """Whether the kind is the author's own, and its status has room for them."""
    resource = context.kind.resource
    fits = resource.has_status and not resource.is_built_in
    return fits and context.key.resource not in context.notes.unconditioned


def _send(context: Context, known: Known, writing: Writing) -> None:
    resource = context.kind.resource
    address = Address(resource, context.key.namespace or None, context.key.name)
    authors = sorted({name for name, _ in writing.patches} | set(writing.results))
    ticket = Ticket("write", context.key, handler=", ".join(authors))
    if writing.looking:
        number = _read(context, ticket)
        _put(context, known, writing._replace(id=number, due=None))
        return
    if writing.finalizer == Duty.ADD.value and known.body.is_deleting:
        # Too late: no finalizer can be added any more.
        _done(context, known, writing)
        return
    place = _home(context)
    try:
        found = next_write(
            writing,
            known.body,
            resource,
            context.settings,
            place,
            conditions=_takes_conditions(context),
            restated=lambda after, made: _restated(
                context, known, writing, after, made
            ),
        )
    except ValueError as problem:
        _too_long(context, known, writing, str(problem))
        return
    except StorageFailed as problem:
        _falls_back(context, place, f"the storage has failed with {problem}")
        _send(context, known, writing)
        return
    except OperationFailed as problem:
        _judge_refusal(
            context, known, writing, str(problem), split=False, final=problem.final
        )
        return
    if found is None:
        _done(context, known, writing)
        return
    endpoint, patch, more = found
    number = context.perform(patch, address, ticket, context.subject(known.body))
    sent = writing._replace(
        id=number, due=None, endpoint=endpoint, more=more, base=known.body, asked=patch
    )
    _put(context, known, sent)


def _restated(
    context: Context, known: Known, writing: Writing, after: Stored, made: Body
) -> Stored:
    """What is to be remembered, for the state that its authors make of the object."""
    kind = context.kind
    names = followers(known, {name for name, _ in writing.patches})
    moves = moves_of(kind, names, known.body, made)
    return after._replace(progress=followed(after.progress, kind, moves))


def _read(context: Context, ticket: Ticket) -> int:
    """Read the handled object live."""
    resource, namespace = (
        context.kind.resource,
        context.key.namespace or None,
    )
    read = Get(Target.existing(resource.key, context.key.name, namespace))
    address = Address(resource, namespace, context.key.name)
    return context.perform(read, address, ticket, context.subject())


def _put(context: Context, known: Known, writing: Writing | None) -> None:
    work = (known.work or IDLE)._replace(writing=writing)
    kept = known._replace(work=None if work.is_over else work)
    context.put(kept)


def _too_long(context: Context, known: Known, writing: Writing, problem: str) -> None:
    """A state that cannot be stored is the object's error, not the operator's.

    Digests always fit: they keep a restart from handling the object as a new one.
    """
    context.failed()
    context.say("error", f"cannot be remembered on the object: {problem}")
    known = report_event(context, known, Event("StateTooLong", problem, "Warning"))
    assert writing.after is not None
    seen = writing.after.seen
    least = Stored(seen and Seen(seen.digests), writing.after.creating)
    memory = least if writing.memory is not None else None
    _send(context, known, writing._replace(after=least, memory=memory))


def _done(context: Context, known: Known, writing: Writing) -> None:
    """Everything is written: now it is what is remembered."""
    if writing.sent and writing.patches:
        _warn_dropped(context, known, writing)
    if writing.then:
        _send(context, known, writing.then[0]._replace(then=writing.then[1:]))
        return
    if writing.after is not None:
        known = known._replace(unsaved_until=0.0, unsaved_tries=0)
    if writing.condition is not None:
        known = known._replace(told=writing.condition)
    work, echo, ends = known.work or IDLE, known.echo, writing.ends
    work = work._replace(
        writing=None,
        cycle=None if ends else work.cycle,
        progress={} if ends else work.progress,
        results={} if ends else work.results,
        declared={} if ends else work.declared,
    )
    work = told(context, work, ends=ends)
    if writing.finalizer == Duty.ADD.value and echo is not None:
        echo = echo._replace(passes=True)
    kept = known._replace(
        stored=known.stored if writing.memory is None else writing.memory,
        initial=known.initial and not ends,
        released=known.released or (ends and writing.finalizer == Duty.REMOVE.value),
        echo=echo,
        work=None if work.is_over else work,
    )
    if writing.finalizer is not None and not known.body.is_deleting:
        kept = _at_odds(context, kept)
    context.put(kept)
    context.due()


def told(context: Context, work: Work, *, ends: bool) -> Work:
    """Tell of the attempts that have succeeded, of which nothing is left to be written.

    At the end of a cycle that is so of all.
    """
    if not work.successes:
        return work
    unwritten = {name for name, _ in work.patches} | set(work.results)
    kept = []
    for handler, say in work.successes:
        if handler.id in unwritten and not ends:
            kept.append((handler, say))
            continue
        note_line(context, handler, say.level, say.message)
        context.emit(say)
    return work._replace(successes=tuple(kept))


def _at_odds(context: Context, known: Known) -> Known:
    """Count a change of the finalizer; who undoes it each time wants another one.

    Two operators of one name, of which one handles deletions, do so without end.
    """
    odds = paced(known.odds, context.now.mono, {})
    if odds.is_loop:
        marker = context.settings.marker
        context.warn_once(
            f"finalizer {context.key.resource}",
            f"somebody undoes what is done with the finalizer {marker}, "
            f"{odds.changes} times in a row, from now on after growing pauses; if "
            "another operator of this name is running, stop it or give it a --name of "
            "its own",
        )
    return known._replace(odds=odds)


def answer_write(
    context: Context, number: int, ticket: Ticket, outcome: Outcome
) -> None:
    """A request of an own write has been answered."""
    known = context.known
    if known is None or known.work is None or known.work.writing is None:
        return
    writing = known.work.writing
    if writing.id != number:
        return
    writing = writing._replace(id=None)
    match outcome:
        case Applied(object=dict() as found):
            _answered(context, known, writing, Body(found))
        case Missing(unserved=True) if writing.tries < UNSERVED_TRIES:
            context.rediscover()
            _later(context, known, writing, outcome.message)
        case Missing(message=message):
            _missing(context, known, writing, message)
        case Conflict(message=message):
            _look_again(context, known, writing, message)
        case Unknown(message=message):
            doubted = writing._replace(doubted=not writing.looking or writing.doubted)
            _look_again(context, known, doubted, message)
        case Refused(status=status, message=message) if status in _FINAL_REFUSALS:
            _refused(context, known, writing, message)
        case Unreachable(message=message, retry_after_seconds=after):
            _later(context, known, writing, message, after or 0.0)
        case Refused(message=message):
            _later(context, known, writing, message)
        case _:
            _later(context, known, writing, f"an unexpected answer: {outcome!r:.80}")


def _answered(context: Context, known: Known, writing: Writing, body: Body) -> None:
    """The object, as an own request has left it, or as a live read shows it."""
    if body.uid and known.body.uid and body.uid != known.body.uid:
        _abandon(context, known)
        return
    known = shown(context, known, body)
    if not writing.looking or (writing.doubted and _has_landed(writing, body)):
        done = writing._replace(looking=False, doubted=False)
        _written(context, known, done, body)
    else:
        fresh = writing._replace(looking=False, doubted=False)
        _send(context, known, fresh)


def _has_landed(writing: Writing, body: Body) -> bool:
    """Whether a request that was not answered has been done, as the object shows.

    It was for one version alone: where the object still has that, it was not.
    """
    base, asked = writing.base, writing.asked
    if base is None or asked is None or body.version == base.version:
        return False
    meta = {**asked.merge.get("metadata", {}), "resourceVersion": body.version}
    made = applied({**asked.merge, "metadata": meta}, base.data)
    return shows(base.data, made, body.data)


def _written(context: Context, known: Known, writing: Writing, body: Body) -> None:
    """One endpoint has taken its part; verify it, and go on with the rest."""
    known, writing = _followed(context, known, writing, body)
    known, writing, raised = _of_generation(known, writing, body)
    writing = writing._replace(sent=writing.sent | {writing.endpoint}, tries=0)
    resource = context.kind.resource
    place = _home(context)
    lost_state, lost = was_pruned(writing, body, place)
    of_status = writing.endpoint == "status" or not resource.has_status
    if (
        of_status
        and writing.condition is not None
        and not told_by(body, context.settings.marker)
    ):
        context.note(context.notes.conditionless(context.key.resource))
    carried_state = place.in_status == of_status or not resource.has_status
    moves = lost_state and carried_state and _falls_back(context, place, _NOT_KEPT)
    if of_status and lost:
        writing = _homeless(context, known, writing, lost)
    if moves or (of_status and lost):
        # What the main endpoint was sent before is not all that it gets.
        _send(context, known, writing._replace(sent=writing.sent - {""}))
    elif writing.more:
        _send(context, known, writing)
    elif raised and "status" in writing.sent:
        # The condition has been told already, of the generation before.
        _warn_dropped(context, known, writing)
        rest = writing._replace(patches=(), results={}, sent=frozenset())
        _send(context, known, rest)
    else:
        _done(context, known, writing)


def _of_generation(
    known: Known, writing: Writing, body: Body
) -> tuple[Known, Writing, bool]:
    """The condition is about the generation that the own write has made, if it has."""
    condition, base = writing.condition, writing.base
    if base is None:
        return known, writing, False
    known = with_generation(known, base, body)
    if condition is None:
        return known, writing, False
    generation = generation_after(condition.generation, base, body)
    if generation == condition.generation:
        return known, writing, False
    condition = replace(condition, generation=generation)
    return known, writing._replace(condition=condition), True


def _followed(
    context: Context, known: Known, writing: Writing, body: Body
) -> tuple[Known, Writing]:
    """The records of those who have written, for the state that they have made."""
    kind, base = context.kind, writing.base
    names = sorted({name for name, _ in writing.patches})
    if base is None or not names or not _is_observed(kind, writing.endpoint):
        return known, writing
    moves = moves_of(kind, followers(known, names), base, body)
    known = with_moves(known, kind, moves)
    after, memory = (
        each and each._replace(progress=followed(each.progress, kind, moves))
        for each in (writing.after, writing.memory)
    )
    known = keeping_pace(context, known, writing.patches, base, body)
    return known, writing._replace(after=after, memory=memory)


def _is_observed(kind: Kind, endpoint: str) -> bool:
    """Whether handlers may be called for what an endpoint changes."""
    if endpoint != "status" or kind.spies:
        return True
    return any(path[:1] == ("status",) for path in kind.observation.scopes)


def keeping_pace(
    context: Context,
    known: Known,
    patches: Sequence[tuple[str, Patch | Transform | None]],
    before: Body,
    after: Body,
    attempt: int | None = None,
) -> Known:
    """Count an own change that the operator is itself called for; tell of a loop.

    `patches` are what handlers have changed, as far as that is known apart, `attempt`
    the serial of the conversation in which one did.
    """
    kind = context.kind
    if before.version == after.version or not (kind.changes or kind.spies):
        return known
    by = authors_of(kind, patches, before, after)
    if not by:
        return known
    pace = paced(known.pace, context.now.mono, by, attempt)
    found = culprits(pace)
    if found:
        # The fields are in no order that would be kept from one turn to the next.
        about = sorted({field for fields in found.values() for field in fields})
        context.warn_once(
            f"loop {context.key.resource} {sorted(found)} {about}",
            loop_told(kind, found, about, pace.changes),
        )
    return known._replace(pace=pace)


def _warn_dropped(context: Context, known: Known, writing: Writing) -> None:
    resource = context.kind.resource
    for handler, pointer in dropped_fields(writing, known.body):
        about = f"dropped {context.key.resource} {pointer}"
        is_of_status = pointer.startswith("/status")
        if (
            is_of_status
            and not resource.has_status
            and about not in context.notes.warned
        ):
            context.rediscover()  # the kind may have a status of its own by now
        context.warn_once(
            about,
            f"{handler} writes {pointer}, which the API server does not keep: the "
            "definition of this kind has no such field",
        )


def _look_again(context: Context, known: Known, writing: Writing, message: str) -> None:
    """Somebody was quicker, or nobody knows: read the object, then fuse anew."""
    writing = writing._replace(looking=True, tries=writing.tries + 1)
    if writing.tries == 5 or writing.tries % 20 == 0:
        _warn_unwritten(context, message)
    if writing.tries <= _QUICK_TRIES:
        _send(context, known, writing)
    else:
        _wait(context, known, writing)


def _later(
    context: Context,
    known: Known,
    writing: Writing,
    message: str,
    at_least: float = 0.0,
) -> None:
    writing = writing._replace(tries=writing.tries + 1)
    if writing.tries in (1, 5) or writing.tries % 20 == 0:
        _warn_unwritten(context, message)
    _wait(context, known, writing, at_least)


def _warn_unwritten(context: Context, message: str) -> None:
    line = f"cannot be written, will be tried again: {message}"
    context.say("warning", line)


def _wait(
    context: Context, known: Known, writing: Writing, at_least: float = 0.0
) -> None:
    pause = max(backoff_seconds(writing.tries, context.jitter()), at_least)
    due = context.now.mono + pause
    _put(context, known, writing._replace(due=due))
    context.due(due)


def _missing(context: Context, known: Known, writing: Writing, message: str) -> None:
    """The object is gone, or its kind has no status of its own any more: look."""
    if writing.looking or writing.endpoint != "status":
        _abandon(context, known)
        return
    if writing.tries:
        context.rediscover()
    _look_again(context, known, writing, message)


def _abandon(context: Context, known: Known) -> None:
    """The object is gone, or another one has its name: there is nothing to write.

    The watch is to say so too; until then nothing is done about the object.  Should it
    be there after all, what was to be written still is.
    """
    work = known.work or IDLE
    kept = _unsent(work.writing, split=context.kind.resource.has_status)
    work = work._replace(
        patches=(*kept.patches, *work.patches), results={**kept.results, **work.results}
    )
    _put(context, vanished(context, known._replace(work=work)), None)
    context.due()


def _unsent(writing: Writing | None, *, split: bool) -> Writing:
    """What of a write, and of those that were to follow it, has not been sent yet."""
    if writing is None:
        return Writing()
    patches, results = writing.patches, dict(writing.results)
    if writing.sent:
        patches = tuple(
            (name, patch)
            for name, patch in patches
            if not endpoints_of(patch, split=split) <= writing.sent
        )
        results = {} if "status" in writing.sent or not split else results
    for each in writing.then:
        patches, results = (*patches, *each.patches), {**results, **each.results}
    return Writing(patches, results)


def _refused(context: Context, known: Known, writing: Writing, message: str) -> None:
    """The server takes the content for invalid: find out whose fault it is."""
    split = context.kind.resource.has_status
    if writing.endpoint == "status" and _drops_condition(context, writing):
        _send(context, known, writing._replace(unsaid=True))
    elif writing.endpoint == "status" and _moves_state(context, writing):
        _send(context, known, writing._replace(moved=True))
    elif writing.finalizer is not None:
        if not writing.tries:
            context.failed()
        _later(context, known, writing, f"the API server refuses it: {message}")
    else:
        _judge_refusal(context, known, writing, message, split=split)


def _judge_refusal(
    context: Context,
    known: Known,
    writing: Writing,
    message: str,
    *,
    split: bool,
    final: bool = False,
) -> None:
    match authors_at(writing, writing.endpoint, split=split):
        case ():
            _unsaved(context, known, writing, message)
        case (author,):
            _blame(context, known, writing, author, message, final)
        case authors:
            _one_by_one(context, known, writing, authors)


def _drops_condition(context: Context, writing: Writing) -> bool:
    """A status schema may have conditions of its own making: try without ours."""
    if writing.unsaid:
        # It was not the condition.
        context.note(context.notes.conditioned(context.key.resource))
        return False
    if writing.condition is None or not _takes_conditions(context):
        return False
    context.note(context.notes.conditionless(context.key.resource))
    return True


def _moves_state(context: Context, writing: Writing) -> bool:
    """A schema may refuse the state, not only prune it: try without (R25)."""
    if writing.moved:
        # It was not the state.
        context.note(context.notes.keeping(context.key.resource))
        return False
    place = _home(context)
    if writing.after is None or not place.in_status:
        return False
    return _falls_back(context, place, "the API server refuses it")


def _unsaved(context: Context, known: Known, writing: Writing, message: str) -> None:
    """A state that is refused is remembered here, and tried again in a while."""
    tries = known.unsaved_tries + 1
    if tries == 1:
        context.failed()
    if tries in (1, 5) or tries % 20 == 0:
        text = f"what was handled cannot be stored on the object: {message}"
        context.say("error", text)
    until = context.now.mono + backoff_seconds(tries + 3, context.jitter(), most=30.0)
    kept = known._replace(unsaved_until=until, unsaved_tries=tries)
    _done(context, kept, writing._replace(after=None))


def _one_by_one(
    context: Context, known: Known, writing: Writing, authors: tuple[str, ...]
) -> None:
    """Write what each author wants alone: only the guilty one fails."""
    parts = [
        Writing(
            tuple(patch for patch in writing.patches if patch[0] == author),
            {k: v for k, v in writing.results.items() if k == author},
        )
        for author in authors
    ]
    _send(context, known, parts[0]._replace(then=tuple(parts[1:])))


def _blame(
    context: Context,
    known: Known,
    writing: Writing,
    author: str,
    message: str,
    final: bool,
) -> None:
    """The attempt whose patch or result is refused has failed.

    What the others want written waits for the next write; what of it has been
    written already is no change any more.
    """
    work = known.work or IDLE
    others = tuple(patch for patch in writing.patches if patch[0] != author)
    results = {k: v for k, v in writing.results.items() if k != author}
    work = work._replace(
        patches=(*others, *work.patches),
        results={**results, **work.results},
        successes=tuple(each for each in work.successes if each[0].id != author),
    )
    handler = next(
        (each for each in context.kind.changes if each.id == author),
        None,
    )
    if handler is None or author not in work.progress:
        context.say("error", f"the patch of {author} is refused: {message}")
    else:
        judged = _blamed(context, known, handler, message, final)
        work = work._replace(progress={**work.progress, author: judged})
    known = known._replace(work=work)
    # What was to be remembered holds no longer; what is left is decided anew.
    ended = writing._replace(after=None, memory=None, ends=False)
    _done(context, known, ended)


def _blamed(
    context: Context, known: Known, handler: Handler, message: str, final: bool
) -> Progress:
    work = known.work
    assert work is not None
    was = work.progress[handler.id]._replace(finished=None)
    judgement = context.judge(
        handler,
        was._replace(retries=max(0, was.retries - 1)),
        Failure("Refused", f"the patch is refused: {message}", permanent=final),
    )
    context.say(
        judgement.level,
        f"{handler.role.value} handler {handler.id} {judgement.line}",
        body=known.body,
        handler=handler.id,
        error=message,
    )
    if judgement.progress.finished == "failure":
        context.failed()
    return judgement.progress


def look_at(context: Context, known: Known) -> None:
    """The watch has not shown an own write in time: a live read, never blind."""
    assert known.echo is not None
    _read(context, Ticket("echo", context.key, uid=known.body.uid))
    deadline = context.now.mono + context.settings.echo_timeout_seconds
    echo = known.echo._replace(looking=True, deadline=deadline)
    context.put(known._replace(echo=echo))


def answer_echo(context: Context, ticket: Ticket, outcome: Outcome) -> None:
    """The live read after an echo that did not come."""
    known = context.known
    if known is None or known.echo is None or known.body.uid != ticket.uid:
        return
    echo = known.echo
    match outcome:
        case Applied(object=dict() as found):
            body = Body(found)
            if body.uid != known.body.uid:
                context.bury(known.body.uid)
                known = known._replace(gone=True, echo=None)
            elif body.version in (*known.shown, echo.version):
                # Nothing newer: the watch has shown it, or will not any more.
                known = known._replace(body=body, vanished=False, echo=None)
            else:
                # The watch is late: what it shows before this version is older.
                fresh = _echo(context, body.version, passes=True)
                known = known._replace(
                    body=body, vanished=False, echo=fresh, learned=context.step
                )
        case Missing(unserved=False):
            context.bury(known.body.uid)
            known = known._replace(gone=True, echo=None)
        case _:
            again = context.now.mono + context.settings.echo_timeout_seconds
            waiting = echo._replace(looking=False, deadline=again)
            known = known._replace(echo=waiting)
    context.put(known)
    context.due()
