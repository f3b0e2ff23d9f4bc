"""Whether the filters of event and log handlers select a watch event, or a line."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import LOGS
from fnop.core.handlers.run.arguments import Situation
from fnop.core.objects.decide.selection import reads_log_of, sees, wants_line
from fnop.core.state.context import Context
from fnop.core.state.record import ObjectRecord, PendingEvent
from fnop.core.values.body import Body
from fnop.core.values.errors import described

__all__ = [
    "event_handler_wants",
    "log_handler_reads",
    "pod_situation",
    "wanted_events",
]


def event_handler_wants(
    context: Context, record: ObjectRecord, event: PendingEvent
) -> bool:
    """Whether a handler's filters select an event; failing filters do not."""
    handler = event.handler
    situation = Situation(
        handler,
        context.settings,
        context.now,
        context.kind.resource,
        event.body,
        event.type,
        memo=record.memo,
        indices=context.turn.objects.indices,
        line=event.line,
        container=event.container,
    )
    selects = wants_line if handler.role in LOGS else sees
    return _is_selected(
        context, handler, event.body, lambda: selects(handler, situation)
    )


def wanted_events(
    context: Context, record: ObjectRecord, events: Iterable[PendingEvent]
) -> tuple[PendingEvent, ...]:
    """Return the events that handlers may want.

    Indices may not be filled yet. Then filters that ask for them are evaluated later.
    """
    return tuple(
        each
        for each in events
        if each.handler.filters.asks_indices
        or event_handler_wants(context, record, each)
    )


def log_handler_reads(context: Context, handler: Handler, pod: Body) -> bool:
    """Whether a log handler selects a pod; if its filters fail, it does not."""
    situation = pod_situation(context, handler, pod)
    return _is_selected(context, handler, pod, lambda: reads_log_of(handler, situation))


def pod_situation(context: Context, handler: Handler, pod: Body) -> Situation:
    """The facts about a pod before it has logged a line."""
    record = context.record
    return Situation(
        handler,
        context.settings,
        context.now,
        context.kind.resource,
        pod,
        memo=context.turn.lifecycle.memo if record is None else record.memo,
        indices=context.turn.objects.indices,
    )


def _is_selected(
    context: Context, handler: Handler, body: Body, select: Callable[[], bool]
) -> bool:
    try:
        return select()
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
