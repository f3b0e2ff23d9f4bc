"""The end of an attempt: it is judged, told, and what it wants written is kept."""

from __future__ import annotations

from fnop.core.handlers.handler import ACTIVITIES, BACKGROUND, Role
from fnop.core.memory.observation import scope_name, see
from fnop.core.memory.progress import (
    Judgement,
    Progress,
    judge_again,
    succeeded,
)
from fnop.core.objects.background import rested, with_standing
from fnop.core.objects.consequences import told
from fnop.core.objects.events import note_line
from fnop.core.seam.commands import AttemptEnded, Say
from fnop.core.state.context import Context
from fnop.core.state.record import IDLE, Invocation, Known, Standing
from fnop.core.values.errors import act_of
from fnop.core.values.evolve import replace

__all__ = ["finish", "keep", "left", "report"]


def left(
    invocations: tuple[Invocation, ...], ended: Invocation
) -> tuple[Invocation, ...]:
    return tuple(each for each in invocations if each.serial != ended.serial)


def keep(context: Context, known: Known, *, ends: bool) -> None:
    """Put the record back; at the end of a cycle its work is dropped."""
    if ends:
        work = (known.work or IDLE)._replace(
            cycle=None, progress={}, declared={}, results={}
        )
        work = told(context, work, ends=True)
        known = known._replace(work=work, initial=False)
    if known.work is not None and known.work.is_over:
        known = known._replace(work=None)
    context.put(known)


def finish(context: Context, known: Known, invocation: Invocation) -> None:
    """An attempt is over: judge it, and keep what it wants written."""
    work = known.work
    assert work is not None
    handler = invocation.handler
    patches, results, progress = work.patches, work.results, work.progress
    if not known.gone and _is_about(known, invocation):
        patches += tuple((handler.id, patch) for patch in invocation.patches)
        if invocation.result is not None and invocation.failure is None:
            results = {**results, handler.id: invocation.result.value}
    # Whether the server takes what it wants written is yet to be seen.
    unwritten = (len(patches), results) != (len(work.patches), work.results)
    said: Say | None = None
    if handler.role is Role.EVENT:
        _spied(context, invocation)
    elif handler.role in BACKGROUND:
        known, said = _tended(context, known, invocation, unwritten=unwritten)
    else:
        record = progress[handler.id]
        judged, said = _judged(context, invocation, record, unwritten=unwritten)
        judged = _acted(context, known, invocation, judged)
        progress = {**progress, handler.id: judged}
    work = work._replace(
        running=left(work.running, invocation),
        spying=left(work.spying, invocation),
        tending=left(work.tending, invocation),
        patches=patches,
        results=results,
        progress=progress,
        successes=(*work.successes, (handler, said)) if said else work.successes,
    )
    keep(context, known._replace(work=work), ends=False)


def _is_about(known: Known, invocation: Invocation) -> bool:
    """Whether an attempt was about this object, and not about one of its name."""
    body = invocation.situation.body
    return body is not None and body.uid == known.body.uid


def _spied(context: Context, invocation: Invocation) -> None:
    failure = invocation.failure
    if failure is not None:
        line = f"failed, which is ignored: {failure}"
        ended = AttemptEnded("error", rejected=failure.rejected)
        report(context, invocation, "error", line, ended)
    elif invocation.again is not None:
        line = "asks to be called again, but only the next watch event calls it"
        report(context, invocation, "warning", line)


def _tended(
    context: Context, known: Known, invocation: Invocation, *, unwritten: bool
) -> tuple[Known, Say | None]:
    """A run of a daemon or timer is over: when it begins again, if it does."""
    handler = invocation.handler
    standing = known.background.get(handler.id) or Standing(None)
    judgement = _judgement(context, invocation, standing.progress)
    is_routine = judgement.progress.has_succeeded and handler.role is Role.TIMER
    if is_routine:
        judgement = replace(judgement, level="debug")
    said = _told(context, invocation, judgement, unwritten=unwritten)
    if invocation.stopped:
        # It begins anew, if it is wanted again.
        return with_standing(known, handler, None), said
    if judgement.progress.finished == "failure":
        context.failed()
    after = rested(handler, standing, judgement.progress, context.now)
    return with_standing(known, handler, after), said


def _judged(
    context: Context, invocation: Invocation, progress: Progress, *, unwritten: bool
) -> tuple[Progress, Say | None]:
    judgement = _judgement(context, invocation, progress)
    said = _told(context, invocation, judgement, unwritten=unwritten)
    if judgement.progress.finished == "failure":
        context.failed()
        if invocation.handler.role in ACTIVITIES:
            context.activity_failed()
    return judgement.progress, said


def _told(
    context: Context,
    invocation: Invocation,
    judgement: Judgement,
    *,
    unwritten: bool,
) -> Say | None:
    """Tell how an attempt has ended; or the line, where a write is to come before it.

    What has failed or waits does so whatever comes of the write.
    """
    is_success = judgement.progress.has_succeeded and invocation.failure is None
    if unwritten and is_success:
        return _line(
            context, invocation, judgement.level, judgement.line, judgement.ended
        )
    report(context, invocation, judgement.level, judgement.line, judgement.ended)
    return None


def _acted(
    context: Context, known: Known, invocation: Invocation, record: Progress
) -> Progress:
    """The record, with what has been acted upon where something may have been done.

    Who is at work on going back to what was handled before is not done with the state
    that it had acted upon: until it is, that is what tells of the change.
    """
    body = invocation.situation.body
    if body is None or not context.is_served:
        return record
    kind = context.kind
    if not record.is_finished and not invocation.acts:
        return record
    seen = see(body, kind.observation)
    acted = seen.digests.get(scope_name(invocation.handler.field), "")
    if not record.is_finished and acted == known.handled_by(invocation.handler):
        return record
    was = seen if record.is_finished else record.seen
    return record._replace(acted=acted, seen=was)


def _judgement(
    context: Context, invocation: Invocation, progress: Progress
) -> Judgement:
    handler, failure = invocation.handler, invocation.failure
    if failure is not None:
        return context.judge(handler, progress, failure)
    if invocation.again is not None:
        again = invocation.again
        return judge_again(
            progress,
            context.now,
            after=again.after,
            because=again.because,
            timeout=handler.timeout,
        )
    if invocation.parts:
        # It has succeeded when its sub-handlers have.
        waiting = progress._replace(retries=progress.retries + 1, delegated=True)
        number = len(invocation.parts)
        what = "1 sub-handler" if number == 1 else f"{number} sub-handlers"
        ended = AttemptEnded("delegated")
        return Judgement(waiting, "debug", f"waits for {what}", ended)
    ended = AttemptEnded("success")
    return Judgement(succeeded(progress), "info", "succeeded", ended)


def report(
    context: Context,
    invocation: Invocation,
    level: str,
    line: str,
    ended: AttemptEnded | None = None,
) -> None:
    """Tell of an attempt, and how it has ended if it has."""
    said = _line(context, invocation, level, line, ended)
    note_line(context, invocation.handler, level, said.message)
    context.emit(said)


def _line(
    context: Context,
    invocation: Invocation,
    level: str,
    line: str,
    ended: AttemptEnded | None,
) -> Say:
    handler, failure = invocation.handler, invocation.failure
    return context.line(
        level,
        f"{handler.role.value} handler {handler.id} {line}",
        body=invocation.situation.body,
        handler=handler.id,
        error=str(failure) if failure else None,
        exception=failure.exception if failure and not failure.is_expected else None,
        took=context.now.mono - invocation.situation.now.mono,
        ended=ended,
        act=act_of(failure.exception) if failure else None,
    )
