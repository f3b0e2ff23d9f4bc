"""Guarded work on an object: an error of fnop itself harms that object alone.

The object pauses then, whatever happens to it meanwhile, and begins again. A call that
was under way is made once more, as after a restart. A watch event whose handler was
being called is lost, so that it does not block the object's other handlers.
"""

from __future__ import annotations

from collections.abc import Callable

from fnop.core.handlers.declare.writers import DaemonStoppingReason
from fnop.core.objects.attempt.attempts import let_go
from fnop.core.objects.decide.background import with_run_state
from fnop.core.state.context import Context
from fnop.core.state.lifecycle import Phase
from fnop.core.state.record import IDLE, ObjectRecord, PendingEvent, Work
from fnop.core.values.errors import described
from fnop.core.values.table import NOTHING
from fnop.effects.structs import replace

__all__ = ["guarded", "pause_of"]

# The pause of an object after an unexpected error.
_BEGIN_ANEW_SECONDS = 60.0


def guarded(
    context: Context,
    before: ObjectRecord | None,
    work: Callable[[], None],
    event: PendingEvent | None = None,
) -> bool:
    """Work on an object, maybe on a watch event; return whether it succeeded.

    `before` is the object's record as the work begins.

    A step is total. If an unexpected error occurs, fnop ends the work on the object,
    logs the error, and reconciles the object again after a pause. An error in startup
    or cleanup ends the operator.
    """
    try:
        work()
    except BaseException as problem:
        context.turn.failed()
        text = described(problem)
        what = "an unexpected error stopped the work on this object; it starts anew in"
        context.say(
            "error",
            f"an unexpected error ends the operator: {text}"
            if context.is_activity and context.change is None
            else f"{what} {_BEGIN_ANEW_SECONDS:g} s: {text}",
            error=text,
            exception=problem,
        )
        _restart_work(context, before, event)
        return False
    return True


def pause_of(context: Context) -> float | None:
    """The monotonic time before which fnop leaves the object alone; None: now.

    An operator that is stopping does not wait for a pause.
    """
    record = context.record
    until = 0.0 if record is None else record.backoff.paused_until
    is_paused = (
        until > context.now.mono and context.turn.lifecycle.phase is Phase.SERVING
    )
    return until if is_paused else None


def _restart_work(
    context: Context, record: ObjectRecord | None, event: PendingEvent | None
) -> None:
    if context.is_activity and context.change is None:
        context.turn.end(1, "a startup or cleanup handler could not be run")
    elif context.is_activity:
        context.drop()
    elif record is not None:
        let_go(context, record, DaemonStoppingReason.OPERATOR_PAUSING)
        until = context.now.mono + _BEGIN_ANEW_SECONDS
        context.put(_without_begun_work(record, event).backing_off(paused_until=until))
        context.due(until)


def _without_begun_work(
    record: ObjectRecord, event: PendingEvent | None
) -> ObjectRecord:
    """Return the record as if the work under way had not begun; watch events wait."""
    work = record.work or IDLE
    for each in work.background_runs:
        record = with_run_state(record, each.handler, None)
    reconcilers = dict(record.reconcilers)
    for each in work.reconciler_runs:
        state = reconcilers[each.handler.id]
        reconcilers[each.handler.id] = replace(state, body=None, children=NOTHING)
    waiting = tuple(each for each in work.pending_events if each is not event)
    left = Work(pending_events=waiting)
    expected = record.expected and replace(record.expected, looking=False)
    return replace(
        record,
        reconcilers=reconcilers,
        work=None if left.is_over else left,
        expected=expected,
    )
