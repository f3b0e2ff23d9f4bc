"""The consequences of an own write for handlers, for the pace, and for the log."""

from __future__ import annotations

from collections.abc import Sequence

from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.writers import Transform
from fnop.core.handlers.program.program import Kind
from fnop.core.objects.report.events import note_line
from fnop.core.objects.write.progress_after_write import (
    authors_of,
    generation_after,
    loop_told,
    moved_handlers,
    moved_progress,
    moves_of,
    with_generation,
    with_moves,
    with_undoing,
)
from fnop.core.state.context import Context
from fnop.core.state.fusion import dropped_fields
from fnop.core.state.record import ObjectRecord, Work
from fnop.core.state.writing import Contents, Sent
from fnop.core.values.body import Body
from fnop.core.values.pace import culprits, paced
from fnop.effects import (
    Patch,
)
from fnop.effects.structs import replace

__all__ = [
    "after_own_write",
    "contended",
    "keeping_pace",
    "log_successes",
    "of_generation",
    "paced_by_index",
    "warn_dropped",
]


def log_successes(context: Context, work: Work) -> Work:
    """Log the successes of attempts whose changes are all written."""
    if not work.successes:
        return work
    unwritten = {name for name, _ in work.patches} | set(work.results)
    kept = []
    for handler, say in work.successes:
        if not unwritten.isdisjoint((handler.id, handler.result_id)):
            kept.append((handler, say))
            continue
        note_line(context, handler, say.level, say.message)
        context.turn.emit(say)
    return replace(work, successes=tuple(kept))


# A change that is undone later than this is undone for another reason.
_SOON_SECONDS = 60.0


def contended(context: Context, record: ObjectRecord, what: str) -> ObjectRecord:
    """Count a change of finalizer or state, which others may undo each time.

    Two operators of one name do so without end, if only one of them handles deletions.
    So do controllers that write whole metadata, such as the EndpointSlice controller:
    it may take them a while.
    """
    contention, now = record.backoff.contention, context.now.mono
    follows = now - contention.last <= 2 * contention.pause + _SOON_SECONDS
    contention = paced(contention, now, {}, began=contention.last if follows else None)
    if contention.is_loop:
        context.warn_once(
            f"contention {what} {context.key.resource}",
            f"another client has undone this operator's change of {what} "
            f"{contention.changes} times in a row; the next changes wait for growing "
            "pauses; if another operator of this name is running, stop it or give it "
            "a --name of its own; if a controller writes these objects, leave them out "
            "by labels=, for a restart would handle them as new",
        )
    return record.backing_off(contention=contention)


def of_generation(
    record: ObjectRecord, contents: Contents, sent: Sent, body: Body
) -> tuple[ObjectRecord, Contents, bool]:
    """Set the condition's generation to the one that the own write made, if any."""
    condition = contents.condition
    record = with_generation(record, sent.base, body)
    if condition is None:
        return record, contents, False
    generation = generation_after(condition.generation, sent.base, body)
    if generation == condition.generation:
        return record, contents, False
    condition = replace(condition, generation=generation)
    return record, replace(contents, condition=condition), True


def after_own_write(
    context: Context, record: ObjectRecord, contents: Contents, sent: Sent, body: Body
) -> tuple[ObjectRecord, Contents]:
    """Return the progress of the handlers that wrote, for the state they made."""
    kind, base = context.kind, sent.base
    names = sorted({name for name, _ in contents.patches})
    if not names or not _is_observed(kind, sent.endpoint):
        return record, contents
    moves = moves_of(kind, moved_handlers(record, names), base, body)
    record = with_moves(record, kind, moves)
    after, memory = (
        each and replace(each, progress=moved_progress(each.progress, kind, moves))
        for each in (contents.after, contents.memory)
    )
    if contents.ends and after is not None and not context.settings.as_kopf:
        after = memory = with_undoing(kind, after, base, body)
    record = keeping_pace(context, record, contents.patches, base, body)
    return record, replace(contents, after=after, memory=memory)


def _is_observed(kind: Kind, endpoint: str) -> bool:
    """Whether handlers may be called for changes at an endpoint."""
    if endpoint != "status" or kind.event_handlers:
        return True
    return any(path[:1] == ("status",) for path in kind.observation.scopes)


def keeping_pace(
    context: Context,
    record: ObjectRecord,
    patches: Sequence[tuple[str, Patch | Transform | None]],
    before: Body,
    after: Body,
    attempt: int | None = None,
) -> ObjectRecord:
    """Count an own change that leads to calls of handlers; warn about a loop.

    `patches` are the handlers' changes, as far as fnop can distinguish them; `attempt`
    is the serial of the conversation that made one.
    """
    kind = context.kind
    if before.version == after.version or not kind.may_loop:
        return record
    by = authors_of(kind, patches, before, after)
    if not by:
        return record
    pace = paced(record.backoff.pace, context.now.mono, by, attempt)
    found = culprits(pace)
    if found:
        # The order of the fields may differ from one round to the next.
        about = sorted({field for fields in found.values() for field in fields})
        context.warn_once(
            f"loop {context.key.resource} {sorted(found)} {about}",
            loop_told(kind, found, about, pace.changes),
        )
    return record.backing_off(pace=pace)


def paced_by_index(
    context: Context, record: ObjectRecord, handler: Handler
) -> ObjectRecord:
    """Count a call for index entries, if it has changed anything.

    The index may cover the very objects that the handler changes.
    """
    pace = paced(record.backoff.pace, context.now.mono, {})
    if pace.is_loop:
        index = handler.entries[1]
        context.warn_once(
            f"loop {context.key.resource} {handler.id}",
            f"{handler.id} is called for the index {index} again and again: "
            f"{pace.changes} times in a row; the next calls wait for growing pauses; "
            "if it changes objects that the index is of, let it write only what "
            "differs",
        )
    return record.backing_off(pace=pace)


def warn_dropped(
    context: Context, contents: Contents, sent: Sent, response: Body
) -> None:
    """Warn about fields that a request has set and the response lacks."""
    resource = context.kind.resource
    for handler, pointer in dropped_fields(contents, sent, response):
        about = f"dropped {context.key.resource} {pointer}"
        is_of_status = pointer.startswith("/status")
        if (
            is_of_status
            and not resource.has_status
            and about not in context.turn.notes.warned
        ):
            context.turn.rediscover()  # the kind may have a status of its own by now
        context.warn_once(
            about,
            f"{handler} writes {pointer}, which the API server does not keep: the "
            "definition of this kind has no such field",
        )
