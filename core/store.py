"""The store of watched objects, as a fold over what is seen of them.

Guarantees: an object is known from its first sight to its deletion, by its uid;
a state from before an own write never replaces the state after it (R24).
"""

from __future__ import annotations

from fnop.core.arguments import Situation
from fnop.core.attempts import let_go
from fnop.core.errors import described
from fnop.core.indexing import indexed, unindexed
from fnop.core.known import IDLE, Known, Sighting, Work
from fnop.core.kubernetes_events import report_event
from fnop.core.last_seen import (
    Stored,
    Unreadable,
    essence_of,
    read_stored,
    restated,
    see,
)
from fnop.core.lifecycle import Phase
from fnop.core.objects import Body, Key, is_behind
from fnop.core.pace import CALM
from fnop.core.program import Kind
from fnop.core.registry import Handler
from fnop.core.selection import sees
from fnop.core.takeover import taken_over
from fnop.core.turn import Turn
from fnop.core.watcher import Stream
from fnop.effects import Event
from fnop.effects.values import same_json

__all__ = ["aside", "observe"]

# So many versions are remembered, to tell an own answer that the watch has overtaken.
_SHOWN_MAX = 15
# A spy that is slower than its events loses the oldest.
SIGHTINGS_MAX = 100


def observe(turn: Turn, stream: Stream, key: Key, type: str | None, body: Body) -> None:
    """Put what was seen of an object into the store; its key is due."""
    in_service = turn.lifecycle.phase in (Phase.SERVING, Phase.STANDBY)
    if not in_service or _is_over(turn, stream, key, type, body):
        return
    known = was = turn.objects.get(key)
    before: Work | None = None
    if known is not None and known.body.uid != body.uid:
        if type == "DELETED":
            return  # of an object that has been replaced already
        before = _replaced(turn, key, known)
        known = was = None
    if known is None:
        if type == "DELETED":
            return
        known = _first_sight(turn, key, body, listed=type is None and not stream.lists)
        known = known._replace(work=before, memo=turn.lifecycle.memo)
    elif known.stale and known.work is None and type != "DELETED":
        known = aside(turn, key, known._replace(body=body))
    else:
        known = _refreshed(
            turn, _at_its_pace(turn, key, known, body), stream, type, body
        )
    if known.stale or turn.lifecycle.phase is Phase.STANDBY:
        known = known._replace(stale=turn.lifecycle.phase is Phase.STANDBY)
    if type is None:
        known = known._replace(listing=stream.id)
    kind = turn.kind(key)
    if kind.indexers:
        unindexed(turn, key) if type == "DELETED" else indexed(turn, key, body)
    if kind.spies and turn.lifecycle.phase is Phase.SERVING:
        known = _sighted(turn, key, known, kind, type, body)
    if kind.waits_for_idleness and _has_changed(was, body, kind):
        known = known._replace(changed=turn.now.mono)
    turn.objects.put(key, known)
    turn.objects.due(key)


def _is_over(
    turn: Turn, stream: Stream, key: Key, type: str | None, body: Body
) -> bool:
    """Whether the object is known to be gone, and this is from before its end."""
    grave = turn.objects.graves.get(key)
    if grave is None or grave.uid != body.uid:
        return False
    if type == "DELETED" or (type is None and stream.begun > grave.step):
        turn.objects.exhume(key)
        return False
    return True


def aside(turn: Turn, key: Key, known: Known) -> Known:
    """The object as it says itself that it was handled, and not as it is known here.

    So it is read again with each sight of it, until something is done about it here.
    """
    fresh = _first_sight(turn, key, known.body, listed=False)
    return fresh._replace(
        memo=known.memo, initial=known.initial, listing=known.listing, stale=True
    )


def _replaced(turn: Turn, key: Key, known: Known) -> Work | None:
    """Another object has the name: what is under way was for the one before.

    What spies have not looked at yet goes on, and that it is gone is seen too.
    """
    let_go(turn, key, known)
    kind = turn.kind(key)
    if kind.spies and not known.gone:
        known = _sighted(turn, key, known, kind, "DELETED", known.body)
    turn.drop(key)
    work = known.work or IDLE
    left = Work(spying=work.spying, sightings=work.sightings)
    return None if left.is_over else left


def _first_sight(turn: Turn, key: Key, body: Body, *, listed: bool) -> Known:
    text = turn.settings.places.text(body)
    stored = read_stored(text, body.uid)
    match stored:
        case Unreadable(problem):
            turn.say(
                "warning",
                "its stored state cannot be read and is left as it is; the object "
                f"counts as handled before: {problem}",
                key=key,
                body=body,
            )
            seen = see(body, turn.kind(key).observation)
            return Known(body, Stored(seen), readable=False, initial=listed)
        case None:
            return _predecessors(turn, key, body, listed=listed)
        case _:
            observation = turn.kind(key).observation
            return Known(body, restated(stored, body, observation), initial=listed)


def _predecessors(turn: Turn, key: Key, body: Body, *, listed: bool) -> Known:
    """An object without a state of ours; of whom this one takes over from, perhaps."""
    kopf = turn.settings.predecessor
    if kopf is None:
        return Known(body, Stored(), initial=listed)
    kind = turn.kind(key)
    handlers = [each.id for each in kind.changes]
    match taken_over(body, kopf, kind.observation, handlers):
        case Unreadable(problem):
            turn.failed()
            text = (
                "it was handled by the operator that is taken over, and is left alone: "
                f"{problem}; set takes_over_key= or takes_over_field= to where that "
                "operator kept it, or take the finalizer off to have it created anew"
            )
            turn.say("error", text, key=key, body=body)
            seen = Stored(see(body, kind.observation))
            known = Known(body, seen, readable=False)
            event = Event("NotTakenOver", problem, "Warning")
            return report_event(turn, key, known, event)
        case stored:
            return Known(body, stored or Stored(), initial=listed)


def _refreshed(
    turn: Turn, known: Known, stream: Stream, type: str | None, body: Body
) -> Known:
    """Take a newer state in; one from before a live answer is known to be old.

    An answer to an own write, or to a live read, is ahead of a watch that is late.
    """
    if type == "DELETED":
        return known._replace(body=body, gone=True, echo=None)
    is_fresh = type is None and stream.begun > known.learned
    if known.vanished and not is_fresh:
        return _doubted(turn, known)
    if is_behind(body.version, known.body.version) and not is_fresh:
        return known
    if body.version == known.body.version and not is_fresh:
        body = known.body  # the answer to the end of the last finalizer has it, too
    if known.work is None and known.echo is None:
        return known._replace(body=body, shown=(body.version,))
    versions = (*known.shown[-_SHOWN_MAX:], body.version)
    echo = known.echo
    if (
        echo is None
        or known.vanished  # it is still, or again, there: take it as it is said to be
        or body.version == echo.version
        or (type is None and stream.begun > echo.step)
    ):
        return known._replace(body=body, vanished=False, echo=None, shown=versions)
    return known._replace(shown=versions)


def _doubted(turn: Turn, known: Known) -> Known:
    """The watch shows what a live answer did not know: another look decides, now."""
    echo = known.echo
    if echo is None or echo.looking:
        return known
    return known._replace(echo=echo._replace(deadline=turn.now.mono))


def _at_its_pace(turn: Turn, key: Key, known: Known, body: Body) -> Known:
    """Whoever else changes the object ends a loop: what is new is handled at once."""
    if not (known.pace.is_loop or known.odds.is_loop):
        return known
    if body.version == known.body.version or _is_written(turn, key, known):
        return known
    observation = turn.kind(key).observation
    same = see(known.body, observation).digests == see(body, observation).digests
    return known if same else known._replace(pace=CALM, odds=CALM)


def _is_written(turn: Turn, key: Key, known: Known) -> bool:
    """Whether a change of the object by this operator is under way."""
    if known.work is not None and known.work.writing is not None:
        return True
    for ticket in turn.requests.pending.values():
        author = turn.objects.get(ticket.key) if ticket.key else None
        for each in ((author and author.work) or IDLE).invocations:
            errand = each.errand
            if errand and errand.base and errand.requests[0].address.key == key:
                return True
    return False


def _has_changed(was: Known | None, body: Body, kind: Kind) -> bool:
    """Whether it is new, or not what it was but for its status."""
    if was is None:
        return True
    hidden = kind.observation.hidden
    return not same_json(essence_of(was.body, hidden), essence_of(body, hidden))


def _sighted(
    turn: Turn, key: Key, known: Known, kind: Kind, type: str | None, body: Body
) -> Known:
    fresh = tuple(
        Sighting(handler, type, body)
        for handler in kind.spies
        # Indices may not be full yet: then it is judged when its turn comes.
        if handler.filters.asks_indices
        or spy_wants(turn, key, known, handler, type, body)
    )
    if not fresh:
        return known
    work = known.work or IDLE
    sightings = (*work.sightings, *fresh)
    if len(sightings) > SIGHTINGS_MAX:
        sightings = sightings[-SIGHTINGS_MAX:]
        turn.warn_once(
            f"sightings {key}",
            "watch events come faster than the on.event handlers look at them; "
            "the oldest are left out",
            key,
        )
    return known._replace(work=work._replace(sightings=sightings))


def spy_wants(
    turn: Turn, key: Key, known: Known, handler: Handler, type: str | None, body: Body
) -> bool:
    """Whether a spy's filters let it look at a watch event."""
    situation = Situation(
        handler,
        turn.settings,
        turn.now,
        turn.kind(key).resource,
        body,
        type,
        memo=known.memo,
        indices=turn.objects.indices,
    )
    try:
        return sees(handler, situation)
    except KeyboardInterrupt:
        raise
    except BaseException as problem:
        text = described(problem)
        turn.say(
            "error",
            f"a filter of {handler.id} failed, so it is not called: {text}",
            key=key,
            body=body,
            handler=handler.id,
            error=text,
            exception=problem,
        )
        return False
