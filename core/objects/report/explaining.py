"""Debug lines about an object: what fnop sees, and why it calls handlers.

fnop logs them with `Settings(explain=True)`, which `fnop run -v` sets. They name fields
and never values, which may be secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import assert_never

from fnop.core.api.cluster_changes import told_of
from fnop.core.children.owned import owners_of
from fnop.core.handlers.declare.roles import Family
from fnop.core.handlers.program.program import Kind
from fnop.core.handlers.run.arguments import Situation
from fnop.core.memory.observation import essence_of, is_state, value_at
from fnop.core.memory.progress import Progress
from fnop.core.state.context import Context
from fnop.core.state.in_flight import InFlight
from fnop.core.state.invocation import Invocation
from fnop.core.state.record import ObjectRecord, ReconcilerState
from fnop.core.values.body import Body, Key
from fnop.core.values.diff import Diff, Path, diff, resolve
from fnop.core.values.merge import leaves
from fnop.effects import Answer, Applied, Call, Missing, Outcome, Patch, Raised
from fnop.effects.outcomes import Conflict, Refused, Unknown, Unreachable

__all__ = [
    "log_reconciler_call",
    "tell_answered",
    "tell_asked",
    "tell_begun",
    "tell_handled",
    "tell_seen",
    "tell_superseded",
    "tell_writing",
    "tell_written",
]

FIELDS_MAX = 8
# These change with each write.
_ALWAYS = {("metadata", "managedFields"), ("metadata", "resourceVersion")}


def fields_of(found: Diff, at: Sequence[str] = ()) -> str:
    """The fields of a diff, dotted; `at` is the field that the diff is about.

    >>> fields_of(diff({"spec": {"a": 1}}, {"spec": {"b": 1}, "status": {}}))
    'spec.a removed, spec.b added, status added'
    >>> fields_of(diff({"a": 1}, {"a": 2}), ("spec",))
    'spec.a'
    """
    words = {"add": " added", "remove": " removed", "change": ""}
    shown = [
        ".".join((*at, *each.field)) + words[each.operation]
        for each in found
        if each.field[:2] not in _ALWAYS
    ]
    return _list_words([each.strip() or "all of it" for each in shown])


def _list_words(words: Iterable[str]) -> str:
    """
    >>> _list_words(map(str, range(11)))
    '0, 1, 2, 3, 4, 5, 6, 7 and 3 more'
    """
    words = [*words]
    more = len(words) - FIELDS_MAX
    text = ", ".join(islice(words, FIELDS_MAX))
    return f"{text} and {more} more" if more > 0 else text


# -------------------------------------------------------------------- what is seen


def tell_seen(context: Context, type: str | None, was: Body | None, body: Body) -> None:
    """Log a version of the object that a list or watch shows."""
    if not context.settings.explain or _is_foreign(context.kind, body):
        return
    what = context.kind.resource.kind
    if type == "DELETED":
        line = f"{what} is gone"
    elif was is None:
        line = f"{what} is there"
    elif was.version != body.version:
        changed = fields_of(diff(was.data, body.data)) or "nothing but its version"
        line = f"{what} has changed: {changed}"
    else:
        return
    context.say("debug", f"{line} (version {body.version})", body=body)


def _is_foreign(kind: Kind, body: Body) -> bool:
    """Whether an object is followed only because others of its kind are owned."""
    if kind.has_handlers or not kind.owned_by:
        return False
    owners = owners_of(body)
    return not any(each.is_of(by.resource) for each in owners for by in kind.owned_by)


# -------------------------------------------------------------------- attempts


def tell_begun(context: Context, invocation: Invocation) -> None:
    """Log an attempt, and its cause."""
    if context.settings.explain:
        _tell_begun(context, invocation, _cause_of(invocation.situation))


def log_reconciler_call(
    context: Context, record: ObjectRecord, invocation: Invocation, was: ReconcilerState
) -> None:
    """Log a reconcile call, and the differences from the previous call."""
    if context.settings.explain:
        _tell_begun(context, invocation, _reason_of_call(context, record, was))


def _tell_begun(context: Context, invocation: Invocation, cause: str) -> None:
    situation = invocation.situation
    handler, retry = situation.handler, situation.retry
    attempt = f", attempt {retry + 1}" if retry else ""
    context.say(
        "debug",
        f"{handler.label} begins{attempt}: {cause}",
        body=situation.body,
        handler=handler.id,
    )


def _cause_of(situation: Situation) -> str:
    """The reason why a handler is called, for people."""
    rule, reason = situation.handler.rule, situation.reason
    match rule.family:
        case Family.ACTIVITY:
            return f"the operator's {reason}"
        case Family.CLUSTER:
            assert situation.cluster_change is not None
            return told_of(situation.cluster_change)
        case Family.EVENT:
            return f"watch event {reason}" if reason else "it was listed"
        case Family.LOG:
            return f"a line of container {situation.container}"
        case Family.BACKGROUND:
            return "it runs" if rule.lasts else "its time has come"
        case Family.CHANGE:
            return _cause_of_change(situation)
        case Family.RECONCILER | Family.INDEX | Family.OUTSIDE | Family.ADMISSION:
            raise AssertionError("it has no cause")
        case never:
            assert_never(never)


def _cause_of_change(situation: Situation) -> str:
    known = _CAUSES.get(situation.reason or "")
    return known or f"changed since it was handled: {_changed_fields(situation)}"


_CAUSES = {
    "create": "the object is new",
    "resume": "another process has handled the object",
    "delete": "the object is being deleted",
}


def _changed_fields(situation: Situation) -> str:
    """The fields that lead to an update handler's call, if the last state is kept."""
    body, field, before = situation.body, situation.handler.field, situation.before
    assert body is not None
    if situation.handler.entries:
        return f"the index {situation.handler.entries[1]}"
    old = value_at(before, field)
    if old is None and not field:
        return "its essence (which is kept as a digest alone)"
    new = resolve(essence_of(body, situation.settings.hidden), field)
    return fields_of(diff(old, new), field) or ".".join(field) or "its essence"


def _reason_of_call(
    context: Context, record: ObjectRecord, was: ReconcilerState
) -> str:
    """The reason why a reconciler is called."""
    if was.body is None:
        return "this process has not called it yet"
    hidden = context.settings.hidden
    found = fields_of(
        diff(essence_of(was.body, hidden), essence_of(record.body, hidden))
    )
    now = context.children
    both = {**was.children, **now}
    changed = [key for key in both if was.children.get(key) != now.get(key)]
    reasons = [f"changed: {found}"] if found else []
    if changed:
        reasons.append(
            f"changed children: {_list_words(sorted(map(_child_label, changed)))}"
        )
    if reasons:
        return "; ".join(reasons)
    if was.has_failed:
        return "it has failed before"
    asked = "a reconcile handler has requeued it"
    return asked if was.asked else "its time has come, or a mapping names it"


def _child_label(key: Key) -> str:
    return f"{key.resource.split('.')[0]}/{key.name}"


# -------------------------------------------------------------------- effects


def tell_asked(context: Context, invocation: Invocation, in_flight: InFlight) -> None:
    """Log that a request for an effect is sent."""
    if not context.settings.explain:
        return
    reads = in_flight.looking or in_flight.reads_first
    first = ", which is read first" if reads else ""
    again = f", try {in_flight.tries + 1}" if in_flight.tries else ""
    _tell(context, invocation, f"asks: {_label_of(in_flight)}{first}{again}")


def tell_answered(
    context: Context, invocation: Invocation, in_flight: InFlight, outcome: Outcome
) -> None:
    """Log the answer to that request."""
    if context.settings.explain:
        line = f"is answered: {_label_of(in_flight)}: {told(outcome)}"
        _tell(context, invocation, line)


def _tell(context: Context, invocation: Invocation, line: str) -> None:
    handler = invocation.handler
    context.say(
        "debug",
        f"{handler.label} {line}",
        body=invocation.situation.body,
        handler=handler.id,
    )


def _label_of(in_flight: InFlight) -> str:
    effect = in_flight.effect
    if isinstance(effect, Call):
        return f"Call {effect.function.partition(':')[2]}"
    return in_flight.label


def told(outcome: Outcome) -> str:
    """Describe an answer in words, without values.

    >>> told(Applied({"metadata": {"resourceVersion": "7"}}))
    'done, version 7'
    >>> told(Refused(403, "not yours", "Forbidden"))
    'refused with 403 Forbidden: not yours'
    """
    match outcome:
        case Applied(object={"metadata": {"resourceVersion": version}}):
            return f"done, version {version}"
        case Applied() | Answer(exception=None):
            return "done"
        case Answer(exception=problem):
            return f"failed with {type(problem).__name__}"
        case Missing(message=message):
            return f"missing: {message}"
        case Conflict(message=message):
            return f"a conflict: {message}"
        case Refused(status=status, message=message, reason=reason):
            return f"refused with {status} {reason}: {message}".replace(" :", ":")
        case Unreachable(message=message):
            return f"not sent: {message}"
        case Unknown(message=message):
            return f"no reply: {message}"
        case Raised(type=name, message=message):
            return f"raised {name}: {message}"
        case never:
            assert_never(never)


# -------------------------------------------------------------------- own writes


def tell_writing(
    context: Context, endpoint: str, patch: Patch, authors: Sequence[str]
) -> None:
    """Log a write of the object: its handlers' changes, and its state."""
    if not context.settings.explain:
        return
    paths = context.settings.places.paths
    fields = _list_words(_written_fields(patch, paths))
    where = f" ({endpoint})" if endpoint else ""
    by = f", for {', '.join(authors)}" if authors else ""
    context.say("debug", f"writes{where}: {fields}{by}")


def tell_written(context: Context, outcome: Outcome) -> None:
    """Log the answer to a write, or to the read before it."""
    if context.settings.explain:
        context.say("debug", f"the write is answered: {told(outcome)}")


def tell_handled(context: Context, record: ObjectRecord) -> None:
    """Log the end of a change: how many of its handlers have succeeded, and failed."""
    settings, work = context.settings, record.work
    if not (settings.explain or settings.as_kopf) or context.is_activity:
        return
    if work is None or work.change is None or not work.change.selected:
        return
    reason = work.change.reason.value
    names = {each.id for each in work.change.selected if not each.parent}
    ends = [record.progress_of(name) for name in names]
    if settings.as_kopf:
        # Kopf counts those that have ended before, and that are selected no more.
        others = {each.id for each in context.kind.changes} - names
        found = [record.progress_of(name) for name in others]
        ends += [each for each in found if each and each.aim == f"{reason}:"]
    if any(each is not None and not each.is_finished for each in ends):
        return  # the change was reverted meanwhile; Kopf logs no end, either
    succeeded = sum(each is not None and each.has_succeeded for each in ends)
    failed = len(ends) - succeeded
    context.say(
        "debug",
        f"the {reason} is handled: {succeeded} succeeded, {failed} failed",
        fields=(("handled", reason), ("succeeded", succeeded), ("failed", failed)),
    )


def tell_superseded(context: Context, record: ObjectRecord, reason: str) -> None:
    """Log that a change begins before an earlier one has ended, as Kopf does.

    The earlier change has left records: `aim` begins with its reason.
    """
    if not context.settings.as_kopf or context.is_activity:
        return
    former: dict[str, list[Progress]] = {}
    # Handlers of several causes may share an id, and then have one record.
    for name in dict.fromkeys(each.id for each in context.kind.changes):
        progress = record.stored.progress.get(name)
        was = progress.aim.partition(":")[0] if progress else ""
        if progress and was and was != reason:
            former.setdefault(was, []).append(progress)
    for was, left in former.items():
        succeeded = sum(each.finished == "success" for each in left)
        failed = sum(each.finished == "failure" for each in left)
        running = len(left) - succeeded - failed
        context.say(
            "debug",
            f"the {was} is superseded by the {reason}: "
            f"{succeeded} succeeded, {failed} failed, {running} left",
            fields=(
                ("superseded", was),
                ("by", reason),
                ("succeeded", succeeded),
                ("failed", failed),
                ("left", running),
            ),
        )


def _written_fields(patch: Patch, own: Sequence[Path]) -> list[str]:
    """The fields of a patch, as deep as they carry information."""
    fields: dict[str, None] = {}
    state: list[str] = []
    merge = patch.merge or {}
    for path in leaves(merge):
        value = resolve(merge, path)
        if any(path[: len(each)] == each for each in own) or is_state(value):
            state = ["the operator's state"]
        elif path[:2] not in _ALWAYS and path != ("metadata", "uid"):
            depth = 3 if path[:1] == ("metadata",) else 2
            fields[".".join(path[:depth])] = None
    for operation in patch.json or ():
        fields[str(operation.get("path", "")).strip("/").replace("/", ".")] = None
    return [*fields, *state]
