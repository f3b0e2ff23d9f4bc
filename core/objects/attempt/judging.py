"""Judge the end of an attempt, and log it."""

from __future__ import annotations

from fnop.core.memory.progress import (
    Judgement,
    Progress,
    judge_again,
    succeeded,
)
from fnop.core.objects.report.events import note_line
from fnop.core.seam.commands import AttemptEnded, Say
from fnop.core.state.context import Context
from fnop.core.state.invocation import Invocation
from fnop.core.values.errors import act_of
from fnop.effects.structs import replace

__all__ = ["judgement_of", "log_end", "report"]


def log_end(
    context: Context,
    invocation: Invocation,
    judgement: Judgement,
    *,
    unwritten: bool,
) -> Say | None:
    """Log the end of an attempt; or return the line, if a write must come first.

    Only a success waits for the write. A failure or a delay does not depend on it.
    """
    is_success = judgement.progress.has_succeeded and invocation.failure is None
    if unwritten and is_success:
        return _end_line(
            context, invocation, judgement.level, judgement.line, judgement.ended
        )
    report(context, invocation, judgement.level, judgement.line, judgement.ended)
    return None


def judgement_of(
    context: Context, invocation: Invocation, progress: Progress
) -> Judgement:
    handler, end = invocation.handler, invocation.performance
    if end.failure is not None:
        return context.turn.judge(handler, progress, end.failure)
    if end.again is not None:
        again = end.again
        return judge_again(
            progress,
            context.now,
            after=again.after,
            because=again.because,
            timeout=handler.timeout,
        )
    if end.parts:
        # It succeeds when its sub-handlers have succeeded.
        waiting = replace(progress, retries=progress.retries + 1, delegated=True)
        number = len(end.parts)
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
    """Log a line about an attempt, with its end if it has ended."""
    said = _end_line(context, invocation, level, line, ended)
    note_line(context, invocation.handler, level, said.message)
    context.turn.emit(said)


def _end_line(
    context: Context,
    invocation: Invocation,
    level: str,
    line: str,
    ended: AttemptEnded | None,
) -> Say:
    handler, failure = invocation.handler, invocation.failure
    return context.line(
        level,
        f"{handler.label} {line}",
        body=invocation.situation.body,
        handler=handler.id,
        error=str(failure) if failure else None,
        exception=failure.exception if failure and not failure.is_expected else None,
        took=context.now.mono - invocation.situation.now.mono,
        ended=ended,
        act=act_of(failure.exception) if failure else None,
    )
