"""Report failures of the author's code on an object, once for each state of it."""

from __future__ import annotations

from fnop.core.state.context import Context
from fnop.core.state.record import ObjectRecord
from fnop.core.values.errors import described
from fnop.effects.structs import replace

__all__ = ["complain"]


def complain(
    context: Context, record: ObjectRecord, line: str, problem: BaseException
) -> None:
    """Log once for each state of the object that the author's code fails on it."""
    about = f"{record.body.version} {line}"
    if about in record.reports.complaints:
        return
    text = described(problem)
    context.say("error", f"{line}: {text}", error=text, exception=problem)
    context.turn.failed()
    version = f"{record.body.version} "
    kept = [each for each in record.reports.complaints if each.startswith(version)]
    now = context.record or record
    reports = replace(now.reports, complaints=(*kept, about))
    context.put(replace(now, reports=reports))
