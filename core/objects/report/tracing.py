"""Traces of attempts: what they receive, what they ask for, and how they end.

fnop writes them with `Settings(traces=True)`, which a recording sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.writers import Transform
from fnop.core.handlers.run.arguments import Situation
from fnop.core.handlers.run.invocation import Advance, Ending
from fnop.core.memory.observation import value_at
from fnop.core.seam import traces
from fnop.core.seam.traces import Version
from fnop.core.state.context import Context
from fnop.core.state.invocation import Conversation, Invocation
from fnop.core.state.writing import Contents
from fnop.core.values.body import Body, Key
from fnop.core.values.diff import pointer
from fnop.core.values.merge import leaves
from fnop.core.values.table import NOTHING
from fnop.effects import Applied, Outcome, Patch
from fnop.effects.values import digest_in_order

__all__ = [
    "trace_advanced",
    "trace_begun",
    "trace_given",
    "trace_indexed",
    "trace_write",
]


def trace_begun(context: Context, invocation: Invocation) -> None:
    """Trace the facts at the beginning of an attempt."""
    if not context.settings.traces:
        return
    situation = invocation.situation
    keeping = situation.keeping
    children = {} if keeping is None else keeping.owned.bodies
    body = situation.body
    began = traces.Began(
        invocation.serial,
        situation.handler.id,
        None if body is None else _version_of(context.key, body),
        situation.reason,
        situation.retry,
        situation.started,
        _traced_seen(situation),
        situation.memo or None,
        tuple(_version_of(key, children[key]) for key in sorted(children)),
        _traced_line(situation),
    )
    context.turn.emit(began)


def _traced_line(situation: Situation) -> tuple[str, int, str] | None:
    line = situation.line
    return None if line is None else (situation.container, line.time, line.text)


def _version_of(key: Key, body: Body) -> Version:
    return Version(key.resource, key.namespace, key.name, body.uid, body.version)


def _traced_seen(situation: Situation) -> traces.Seen | None:
    before = situation.before
    if before is None:
        return None
    old = value_at(before, situation.handler.field)
    known = None if before.values is None else digest_in_order(old)
    return traces.Seen(dict(before.digests), known)


def trace_advanced(context: Context, invocation: Invocation, found: Advance) -> None:
    """The next move of the author's code: it asks for an effect, desires, or ends."""
    if not context.settings.traces:
        return
    attempt = invocation.serial
    if found.desires is not None:
        desires = found.desires
        patches = _plain_patches(desires.patches)
        context.turn.emit(
            traces.Desires(attempt, desires.desired, desires.plan, patches)
        )
    elif found.asks is not None and not _keeps(invocation):
        context.turn.emit(traces.Asked(attempt, found.asks))
    if found.end is not None:
        context.turn.emit(_ended(attempt, found.end))


def _keeps(invocation: Invocation) -> bool:
    """Whether its requests keep the children of a reconciler."""
    phase = invocation.phase
    return isinstance(phase, Conversation) and phase.keeps


def _ended(attempt: int, end: Ending) -> traces.Ended:
    return traces.Ended(
        attempt,
        end.plan,
        _plain_patches(end.patches),
        None if end.failure is None else end.failure.to_wire(),
        tuple(each.id for each in end.children),
    )


def _plain_patches(patches: Sequence[Patch | Transform]) -> tuple[Patch | None, ...]:
    return tuple(None if isinstance(each, Transform) else each for each in patches)


def trace_given(context: Context, invocation: Invocation, outcome: Outcome) -> None:
    """The answer to what an attempt has asked for."""
    if not context.settings.traces or _keeps(invocation):
        return
    attempt, stopped = invocation.serial, invocation.stopped or None
    if outcome is context.turn.answer:
        context.turn.emit(traces.Given(attempt, stopped=stopped))
        return
    version = _version_in(context, outcome)
    told = None if version else outcome
    context.turn.emit(traces.Given(attempt, told, version, stopped))


def _version_in(context: Context, outcome: Outcome) -> str | None:
    """The version of the object, if the answer is the object as it is now."""
    record = context.record
    found = outcome.object if isinstance(outcome, Applied) else None
    if record is None or found is not record.body.data:
        return None
    return record.body.version


def trace_write(context: Context, number: int, contents: Contents) -> None:
    """Trace the handlers whose changes are in a write of the object.

    The results that they return come last, because they overwrite the patches.
    """
    if not context.settings.traces:
        return
    patched: dict[str, tuple[str, ...]] = {}
    for name, patch in contents.patches:
        if isinstance(patch, Patch):
            patched[name] = (*patched.get(name, ()), *_pointers_in(patch))
    work = context.record.work if context.record else None
    begun = work.progress if work else NOTHING
    returned = (
        (
            context.kind.author_of(name, begun),
            tuple(map(pointer, leaves({"status": {name: value}}))),
        )
        for name, value in contents.results.items()
    )
    fields = (*patched.items(), *returned)
    if fields:
        context.turn.emit(traces.Wrote(number, fields))


def _pointers_in(patch: Patch) -> Iterator[str]:
    yield from map(pointer, leaves(patch.merge or {}))
    yield from (str(each.get("path", "")) for each in patch.json or ())


def trace_indexed(context: Context, handler: Handler, found: Mapping[Any, Any]) -> None:
    """The values of an object in an index."""
    if context.settings.traces:
        key, values = context.key, tuple(found.items())
        where = key.resource, key.namespace, key.name
        context.turn.emit(traces.Indexed(handler.id, where, values))
