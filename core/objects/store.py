"""The store of watched objects, as a fold over what is seen of them.

Guarantees: an object is known from its first sight to its deletion, by its uid;
a state from before an own write never replaces the state after it (R24).
"""

from __future__ import annotations

from fnop.core.handlers.arguments import Situation
from fnop.core.handlers.handler import Handler
from fnop.core.handlers.program import Kind
from fnop.core.memory.last_seen import Stored, Unreadable, read_stored, restated
from fnop.core.memory.observation import essence_of, see
from fnop.core.memory.takeover import taken_over
from fnop.core.objects.attempts import let_go
from fnop.core.objects.events import report_event
from fnop.core.objects.indexing import indexed, unindexed
from fnop.core.objects.selection import sees
from fnop.core.state.context import Context
from fnop.core.state.lifecycle import Phase
from fnop.core.state.record import IDLE, Known, Sighting, Work
from fnop.core.state.requests import OfObject
from fnop.core.streams.stream import Stream
from fnop.core.values.body import Body, is_behind
from fnop.core.values.errors import described
from fnop.core.values.pace import CALM
from fnop.effects import Event
from fnop.effects.values import same_json

__all__ = ["aside", "observe"]

# So many versions are remembered, to tell an own answer that the watch has overtaken.
_SHOWN_MAX = 15
# A spy that is slower than its events loses the oldest.
SIGHTINGS_MAX = 100


def observe(context: Context, stream: Stream, type: str | None, body: Body) -> None:
    """Put what was seen of an object into the store; its key is due."""
    in_service = context.phase in (Phase.SERVING, Phase.STANDBY)
    if not in_service or _is_over(context, stream, type, body):
        return
    known = was = context.known
    before: Work | None = None
    if known is not None and known.body.uid != body.uid:
        if type == "DELETED":
            return  # of an object that has been replaced already
        before = _replaced(context, known)
        known = was = None
    if known is None:
        if type == "DELETED":
            return
        known = _first_sight(context, body, listed=type is None and not stream.lists)
        known = known._replace(work=before, memo=context.memo)
    elif known.stale and known.work is None and type != "DELETED":
        known = aside(context, known._replace(body=body))
    else:
        known = _refreshed(
            context, _at_its_pace(context, known, body), stream, type, body
        )
    if known.stale or context.phase is Phase.STANDBY:
        known = known._replace(stale=context.phase is Phase.STANDBY)
    if type is None:
        known = known._replace(listing=stream.id)
    kind = context.kind
    if kind.indexers:
        unindexed(context) if type == "DELETED" else indexed(context, body)
    if kind.spies and context.phase is Phase.SERVING:
        known = _sighted(context, known, kind, type, body)
    if kind.waits_for_idleness and _has_changed(was, body, kind):
        known = known._replace(changed=context.now.mono)
    context.put(known)
    context.due()


def _is_over(context: Context, stream: Stream, type: str | None, body: Body) -> bool:
    """Whether the object is known to be gone, and this is from before its end."""
    grave = context.grave
    if grave is None or grave.uid != body.uid:
        return False
    if type == "DELETED" or (type is None and stream.begun > grave.step):
        context.exhume()
        return False
    return True


def aside(context: Context, known: Known) -> Known:
    """The object as it says itself that it was handled, and not as it is known here.

    So it is read again with each sight of it, until something is done about it here.
    """
    fresh = _first_sight(context, known.body, listed=False)
    return fresh._replace(
        memo=known.memo, initial=known.initial, listing=known.listing, stale=True
    )


def _replaced(context: Context, known: Known) -> Work | None:
    """Another object has the name: what is under way was for the one before.

    What spies have not looked at yet goes on, and that it is gone is seen too.
    """
    let_go(context, known)
    kind = context.kind
    if kind.spies and not known.gone:
        known = _sighted(context, known, kind, "DELETED", known.body)
    context.drop()
    work = known.work or IDLE
    left = Work(spying=work.spying, sightings=work.sightings)
    return None if left.is_over else left


def _first_sight(context: Context, body: Body, *, listed: bool) -> Known:
    text = context.settings.places.text(body)
    stored = read_stored(text, body.uid)
    match stored:
        case Unreadable(problem):
            context.say(
                "warning",
                "its stored state cannot be read and is left as it is; the object "
                f"counts as handled before: {problem}",
                body=body,
            )
            seen = see(body, context.kind.observation)
            return Known(body, Stored(seen), readable=False, initial=listed)
        case None:
            return _predecessors(context, body, listed=listed)
        case _:
            observation = context.kind.observation
            return Known(body, restated(stored, body, observation), initial=listed)


def _predecessors(context: Context, body: Body, *, listed: bool) -> Known:
    """An object without a state of ours; of whom this one takes over from, perhaps."""
    kopf = context.settings.predecessor
    if kopf is None:
        return Known(body, Stored(), initial=listed)
    kind = context.kind
    handlers = [each.id for each in kind.changes]
    match taken_over(body, kopf, kind.observation, handlers):
        case Unreadable(problem):
            context.failed()
            text = (
                "it was handled by the operator that is taken over, and is left alone: "
                f"{problem}; set takes_over_key= or takes_over_field= to where that "
                "operator kept it, or take the finalizer off to have it created anew"
            )
            context.say("error", text, body=body)
            seen = Stored(see(body, kind.observation))
            known = Known(body, seen, readable=False)
            event = Event("NotTakenOver", problem, "Warning")
            return report_event(context, known, event)
        case stored:
            return Known(body, stored or Stored(), initial=listed)


def _refreshed(
    context: Context, known: Known, stream: Stream, type: str | None, body: Body
) -> Known:
    """Take a newer state in; one from before a live answer is known to be old.

    An answer to an own write, or to a live read, is ahead of a watch that is late.
    """
    if type == "DELETED":
        return known._replace(body=body, gone=True, echo=None)
    is_fresh = type is None and stream.begun > known.learned
    if known.vanished and not is_fresh:
        return _doubted(context, known)
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


def _doubted(context: Context, known: Known) -> Known:
    """The watch shows what a live answer did not know: another look decides, now."""
    echo = known.echo
    if echo is None or echo.looking:
        return known
    return known._replace(echo=echo._replace(deadline=context.now.mono))


def _at_its_pace(context: Context, known: Known, body: Body) -> Known:
    """Whoever else changes the object ends a loop: what is new is handled at once."""
    if not (known.pace.is_loop or known.odds.is_loop):
        return known
    if body.version == known.body.version or _is_written(context, known):
        return known
    observation = context.kind.observation
    same = see(known.body, observation).digests == see(body, observation).digests
    return known if same else known._replace(pace=CALM, odds=CALM)


def _is_written(context: Context, known: Known) -> bool:
    """Whether a change of the object by this operator is under way."""
    if known.work is not None and known.work.writing is not None:
        return True
    for ticket in context.pending:
        if not isinstance(ticket, OfObject):
            continue
        author = context.of(ticket.key).known
        for each in ((author and author.work) or IDLE).invocations:
            errand = each.errand
            if errand and errand.base and errand.requests[0].address.key == context.key:
                return True
    return False


def _has_changed(was: Known | None, body: Body, kind: Kind) -> bool:
    """Whether it is new, or not what it was but for its status."""
    if was is None:
        return True
    hidden = kind.observation.hidden
    return not same_json(essence_of(was.body, hidden), essence_of(body, hidden))


def _sighted(
    context: Context, known: Known, kind: Kind, type: str | None, body: Body
) -> Known:
    fresh = tuple(
        Sighting(handler, type, body)
        for handler in kind.spies
        # Indices may not be full yet: then it is judged when its turn comes.
        if handler.filters.asks_indices
        or spy_wants(context, known, handler, type, body)
    )
    if not fresh:
        return known
    work = known.work or IDLE
    sightings = (*work.sightings, *fresh)
    if len(sightings) > SIGHTINGS_MAX:
        sightings = sightings[-SIGHTINGS_MAX:]
        context.warn_once(
            f"sightings {context.key}",
            "watch events come faster than the on.event handlers look at them; "
            "the oldest are left out",
        )
    return known._replace(work=work._replace(sightings=sightings))


def spy_wants(
    context: Context, known: Known, handler: Handler, type: str | None, body: Body
) -> bool:
    """Whether a spy's filters let it look at a watch event."""
    situation = Situation(
        handler,
        context.settings,
        context.now,
        context.kind.resource,
        body,
        type,
        memo=known.memo,
        indices=context.indices,
    )
    try:
        return sees(handler, situation)
    except BaseException as problem:
        text = described(problem)
        context.say(
            "error",
            f"a filter of {handler.id} failed, so it is not called: {text}",
            body=body,
            handler=handler.id,
            error=text,
            exception=problem,
        )
        return False
