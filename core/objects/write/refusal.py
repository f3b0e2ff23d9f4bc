"""A refused write: the handler that is responsible, and the next write."""

from __future__ import annotations

from msgspec import Struct

from fnop.core.children.conditions import telling
from fnop.core.children.siblings import has_failed
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.writers import Transform
from fnop.core.memory.progress import Failure, Progress
from fnop.core.objects.write.child_owner import beside_of, keeper_of
from fnop.core.objects.write.state_location import (
    falls_back,
    home_of,
    own_conditions,
    takes_conditions,
)
from fnop.core.state.context import Context
from fnop.core.state.fusion import (
    authors_at,
    tells_own,
)
from fnop.core.state.record import IDLE, ObjectRecord
from fnop.core.state.writing import Contents, Sent, Writing
from fnop.core.values.backoff import backoff_seconds, is_worth_logging
from fnop.core.values.merge import OPERATION
from fnop.effects.outcomes import TOO_LARGE
from fnop.effects.structs import replace

__all__ = ["AfterRefusal", "Done", "Later", "Send", "judge_refusal", "refused"]


class Send(Struct, frozen=True):
    """Send this write now."""

    record: ObjectRecord
    writing: Writing


class Later(Struct, frozen=True):
    """Send this write again after a backoff."""

    record: ObjectRecord
    writing: Writing
    why: str


class Done(Struct, frozen=True):
    """End this write: nothing of it is left."""

    record: ObjectRecord
    writing: Writing


AfterRefusal = Send | Later | Done


def refused(
    context: Context, record: ObjectRecord, writing: Writing, message: str
) -> AfterRefusal:
    """Decide what to do about a write that the server refuses as invalid."""
    sent = writing.sent
    assert sent is not None
    of_status = sent.endpoint == "status"
    if of_status and _drops_condition(context, writing, sent):
        return Send(record, replace(writing, unsaid=True))
    if of_status and _moves_state(context, record, writing):
        return Send(record, replace(writing, moved=True))
    if writing.contents.finalizer is not None:
        if not writing.tries:
            context.turn.failed()
        return Later(record, writing, f"the API server refuses it: {message}")
    split = context.kind.resource.has_status
    authors = authors_at(writing.contents, sent.endpoint, split=split)
    return judge_refusal(context, record, writing, authors, message)


def judge_refusal(
    context: Context,
    record: ObjectRecord,
    writing: Writing,
    authors: tuple[str, ...],
    message: str,
    *,
    final: bool = False,
) -> AfterRefusal:
    """Decide what to do about a request that cannot be written as it is.

    `authors` are the handlers whose changes it has; one of them is responsible.
    """
    if any(text in message for text in TOO_LARGE):
        final = True  # as it is, it is too large for the next try as well
    match authors:
        case ():
            return _keep_in_process(context, record, writing, message)
        case (author,):
            return _fail_author(context, record, writing, author, message, final)
        case _:
            return _write_one_by_one(record, writing, authors)


def _drops_condition(context: Context, writing: Writing, sent: Sent) -> bool:
    """Whether to try without our conditions: the schema may have its own."""
    if writing.unsaid:
        # The conditions were not the reason.
        context.turn.notes = context.turn.notes.conditioned(context.key.resource)
        return False
    tells = tells_own(sent, own_conditions(context))
    if not tells or not takes_conditions(context):
        return False
    context.turn.notes = context.turn.notes.conditionless(context.key.resource)
    return True


def _moves_state(context: Context, record: ObjectRecord, writing: Writing) -> bool:
    """Whether to try without the state: a schema may refuse it, or prune (R25)."""
    if writing.moved:
        # The state was not the reason.
        context.turn.notes = context.turn.notes.keeping(context.key.resource)
        return False
    place = home_of(context, record.body)
    if writing.contents.after is None or not place.in_status:
        return False
    return falls_back(context, place, "the API server refuses it")


def _keep_in_process(
    context: Context, record: ObjectRecord, writing: Writing, message: str
) -> AfterRefusal:
    """End the write; keep a refused state in this process, and try again later."""
    tries = record.backoff.unsaved_tries + 1
    if tries == 1:
        context.turn.failed()
    if is_worth_logging(tries):
        text = (
            f"the record of what was handled cannot be stored on the object: {message}"
        )
        context.say("error", text)
    until = context.now.mono + backoff_seconds(
        tries + 3, context.turn.jitter(), most=30.0
    )
    kept = record.backing_off(unsaved_until=until, unsaved_tries=tries)
    return Done(kept, writing.carrying(after=None))


def _write_one_by_one(
    record: ObjectRecord, writing: Writing, authors: tuple[str, ...]
) -> AfterRefusal:
    """Write each author's changes alone: only the guilty author fails."""
    contents = writing.contents
    first, *then = (
        Contents(
            tuple(patch for patch in contents.patches if patch[0] == author),
            {k: v for k, v in contents.results.items() if k == author},
        )
        for author in authors
    )
    return Send(record, Writing(first, tuple(then)))


def _fail_author(
    context: Context,
    record: ObjectRecord,
    writing: Writing,
    author: str,
    message: str,
    final: bool,
) -> AfterRefusal:
    """Fail the attempt whose patch or result is refused.

    The changes of other authors wait for the next write. Changes that were already
    written are dropped from it.
    """
    work, contents = record.work or IDLE, writing.contents
    results = {k: v for k, v in contents.results.items() if k != author}
    author = context.kind.author_of(author, work.progress)
    others = tuple(patch for patch in contents.patches if patch[0] != author)
    work = replace(
        work,
        patches=(*others, *work.patches),
        results={**results, **work.results},
        successes=tuple(each for each in work.successes if each[0].id != author),
    )
    record = replace(record, work=work)
    level = next((e for e in context.kind.reconcilers if e.id == author), None)
    handler = next((e for e in context.kind.changes if e.id == author), None)
    if level is not None and author in record.reconcilers:
        record = _blamed_reconciler(context, record, level, message, final)
    elif handler is not None and author in work.progress:
        judged = _progress_after_blame(context, record, handler, message, final)
        work = replace(work, progress={**work.progress, author: judged})
        record = replace(record, work=work)
    else:
        context.say("error", f"the patch of {author} is refused: {message}")
    # The state that was to be stored is outdated. The rest is decided again.
    ended = writing.carrying(after=None, memory=None, ends=False)
    return Done(record, ended)


def _progress_after_blame(
    context: Context, record: ObjectRecord, handler: Handler, message: str, final: bool
) -> Progress:
    work = record.work
    assert work is not None
    was = replace(work.progress[handler.id], finished=None)
    was = replace(was, retries=max(0, was.retries - 1))
    where = f" of {handler.place}" if message.startswith(OPERATION) else ""
    text = f"the patch{where} is refused: {message}"
    failure = Failure("Refused", text, permanent=final, rejected=True)
    return _judged(context, record, handler, was, failure)


def _blamed_reconciler(
    context: Context, record: ObjectRecord, handler: Handler, message: str, final: bool
) -> ObjectRecord:
    """Fail the reconcile call whose status or patch is refused.

    fnop also reports it on the object, unless exactly that report was refused.
    """
    text = f"its status is refused: {message}"
    failure = Failure("Refused", text, permanent=final, rejected=True)
    own, state = has_failed(str(failure)), record.reconcilers[handler.id]
    was = state.refused
    judged = _judged(context, record, handler, was, failure)
    over = judged.is_finished
    start = None if over else judged.due_at(context.now)
    state = replace(
        state, start=start, over=over, progress=judged, refused=judged, synced=own
    )
    state = replace(state, synced=has_failed(str(failure)))
    record = replace(record, reconcilers={**record.reconcilers, handler.id: state})
    keeper, beside = keeper_of(context, record, handler), beside_of(record, handler)
    tell = telling(keeper, beside, own)
    if tell is None or was.message == judged.message:
        return record
    work = record.work or IDLE
    patches = (*work.patches, (handler.id, Transform(tell)))
    return replace(record, work=replace(work, patches=patches))


def _judged(
    context: Context,
    record: ObjectRecord,
    handler: Handler,
    was: Progress,
    failure: Failure,
) -> Progress:
    judgement = context.turn.judge(handler, was, failure)
    context.say_of(
        handler,
        judgement.level,
        judgement.line,
        body=record.body,
        error=failure.message,
        ended=judgement.ended,
    )
    if judgement.progress.finished == "failure":
        context.turn.failed()
    return judgement.progress
