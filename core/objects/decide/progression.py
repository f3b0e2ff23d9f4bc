"""The progress of each handler with the present change, and its success's aim."""

from __future__ import annotations

from fnop.core.handlers.declare.handler import Handler
from fnop.core.memory.observation import ABSENT, Seen, digest_at, scope_name, see
from fnop.core.memory.progress import Progress, abandoned, anew, concluded
from fnop.core.objects.decide.selection import Circumstances
from fnop.core.state.invocation import Invocation
from fnop.core.state.record import Change, ObjectRecord, Work
from fnop.core.values.body import Body
from fnop.core.values.cause import Reason
from fnop.effects.structs import replace

__all__ = [
    "acts_upon",
    "aim_of",
    "current_progress",
    "current_progress_by_id",
    "declared_by",
    "ended_above",
    "has_delegated",
    "keeps_back",
    "mark_of",
    "may_save",
]


def acts_upon(at: Circumstances, invocation: Invocation) -> str:
    body, scope = invocation.situation.body, invocation.handler.scope
    # A handler sees the indices as they were when its attempt began.
    observation = at.kind.observation.as_of(invocation.situation.indices)
    return "" if body is None else digest_at(body, scope, observation)


def keeps_back(at: Circumstances, record: ObjectRecord) -> bool:
    """Whether the operator is in a loop with itself, and pauses before continuing."""
    is_ending = record.gone or record.body.is_deleting
    return record.backoff.pace.until > at.now.mono and not is_ending


def declared_by(work: Work, change: Change, parent: Handler) -> tuple[Handler, ...]:
    """The sub-handlers that a handler has declared for this very change."""
    found = work.declared.get(parent.id)
    if found is None or found.aim != change.aims[parent.id]:
        return ()
    return found.children


def has_delegated(
    record: ObjectRecord, work: Work, change: Change, handler: Handler
) -> tuple[Handler, ...]:
    """The sub-handlers that a handler waits for after its own part is done.

    A handler that failed or waits after declaring them is yet to be called again.
    """
    if not current_progress_by_id(record, work, change, handler.id).delegated:
        return ()
    return () if _is_running(work, handler) else declared_by(work, change, handler)


def ended_above(
    record: ObjectRecord, work: Work, change: Change, handler: Handler
) -> str:
    """The ended handler that this one is a part of; else "".

    A part never outlives its handler. After a handler has failed, its parts do not
    continue. Its deadline is also theirs.
    """
    above = handler.parent
    parents = {each.id: each.parent for each in change.selected} if above else {}
    while above and above in change.aims:
        if current_progress_by_id(record, work, change, above).is_finished:
            return above
        above = parents.get(above, "")
    return ""


def current_progress(
    record: ObjectRecord, work: Work, change: Change, handler: Handler
) -> Progress:
    """The handler's progress if it is about this change, else fresh progress.

    The progress of a handler with sub-handlers follows from theirs. They end with it.
    """
    found = current_progress_by_id(record, work, change, handler.id)
    if found.is_finished:
        return found
    above = ended_above(record, work, change, handler) if handler.parent else ""
    if above:
        return abandoned(found, f"{above} has ended before it")
    if not found.delegated:
        return found
    children = has_delegated(record, work, change, handler)
    if not children:
        return found
    selected = [each for each in children if each.id in change.aims]
    parts = [current_progress(record, work, change, each) for each in selected]
    if not all(each.is_finished for each in parts):
        return found
    failed = next((each for each in parts if not each.has_succeeded), None)
    if failed is None:
        return concluded(found)
    return replace(found, finished="failure", message=failed.message, delegated=False)


def _is_running(work: Work, handler: Handler) -> bool:
    return any(each.handler.id == handler.id for each in work.running)


def current_progress_by_id(
    record: ObjectRecord, work: Work, change: Change, name: str
) -> Progress:
    aim, found = change.aims[name], record.progress_of(name)
    if found is not None and found.aim.endswith(":") and aim.endswith(":"):
        # By Kopf's rules all that is unfinished belongs to one handling, whose reason
        # may change: a resumption becomes an update, and an update a deletion.
        return found if found.aim == aim else replace(found, aim=aim)
    if found is not None and (
        _is_for(found, aim) or _is_done_before(change, name, found, aim)
    ):
        return found
    return anew(found, aim)


def _is_done_before(change: Change, name: str, found: Progress, aim: str) -> bool:
    """Whether a comparing handler has succeeded before the object's deletion began.

    A deletion changes no field. That update is not over, so the last-seen state does
    not contain it.
    """
    if change.reason is not Reason.DELETE or not found.has_succeeded:
        return False
    compares = any(each.id == name and each.rule.compares for each in change.selected)
    return compares and found.aim.partition(":")[2] == aim.partition(":")[2]


def aim_of(
    at: Circumstances, body: Body, reason: Reason, handler: Handler, known: Seen
) -> str:
    """The handler's aim: the reason, and the digest of the state it observes.

    Entries of an index that are unknown now count as they were `known` before.
    """
    if at.settings.as_kopf:
        return f"{reason.value}:"  # one handling, whatever changes meanwhile
    if handler.rule.is_for_resuming:
        return f"resume:{at.seed}"  # once per process, whatever the object is
    observation, scope = at.kind.observation, scope_name(handler.scope)
    if handler.entries and scope not in see(body, observation).digests:
        return f"{reason.value}:{known.digest(scope, ABSENT)}"
    return f"{reason.value}:{digest_at(body, handler.scope, observation)}"


def _is_for(progress: Progress, aim: str) -> bool:
    """Whether progress counts for this aim: it is its own, or was made once for all.

    A creation or a deletion that has succeeded is never repeated. A change after the
    creation is an update (R15). An edit during the deletion is deleted with the object.
    """
    if progress.aim == aim:
        return True
    reason = aim.partition(":")[0]
    return (
        reason in _ONCE
        and progress.has_succeeded
        and progress.aim.partition(":")[0] == reason
    )


_ONCE = (Reason.CREATE.value, Reason.DELETE.value)


def may_save(at: Circumstances, record: ObjectRecord) -> bool:
    """Whether a state may be written.

    fnop does not overwrite a state that it cannot read, nor write soon after the server
    refused one.
    """
    return record.readable and record.backoff.unsaved_until <= at.now.mono


def mark_of(own_progress: Progress) -> Progress:
    """The mark that an attempt has begun to act, and upon which state.

    fnop needs it in case that state is reverted.
    """
    return Progress(
        own_progress.aim, acted=own_progress.acted, handled=own_progress.handled
    )
