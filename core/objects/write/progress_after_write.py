"""The consequences for handlers of the operator's own writes on their object.

A handler's progress is about one state of the object, by digest. An own write makes
another state, but not a new change for a handler that is at work. The handler's
progress follows, so that its delays, retries and timeout hold. Its next attempt gets
the object as it is then. A write of any other client is a new change. So is an own
write for handlers that are done, except for the handlers that wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fnop.core.handlers.declare.handler import Handler, declarer_of
from fnop.core.handlers.declare.writers import Transform
from fnop.core.handlers.program.program import Kind
from fnop.core.memory.observation import (
    digest_at,
    essence_of,
    is_state,
    observed_at,
)
from fnop.core.memory.progress import Progress
from fnop.core.memory.stored_state import Stored
from fnop.core.state.record import Declared, ObjectRecord, Work
from fnop.core.values.body import Body
from fnop.core.values.diff import Path, pointer
from fnop.core.values.errors import joined
from fnop.core.values.merge import OperationFailed, applied, difference, operated
from fnop.effects import Patch
from fnop.effects.structs import replace

__all__ = [
    "Moves",
    "asks_for_the_same",
    "authors_of",
    "changed_fields",
    "generation_after",
    "loop_told",
    "made_by",
    "moved_handlers",
    "moved_progress",
    "moves_of",
    "with_generation",
    "with_moves",
    "with_undoing",
]

# The digests, by handler, of its observed state before its own write, and after.
Moves = Mapping[str, tuple[str, str]]


def moved_handlers(record: ObjectRecord, authors: Iterable[str]) -> tuple[str, ...]:
    """The handlers whose progress follows an own write: its authors, and all not done.

    The latter get the object as it is then at their next attempt.
    """
    all_progress = {
        **record.stored.progress,
        **(record.work.progress if record.work else {}),
    }
    unfinished = [name for name, each in all_progress.items() if not each.is_finished]
    return tuple(sorted({*authors, *unfinished}))


def moves_of(kind: Kind, names: Iterable[str], before: Body, after: Body) -> Moves:
    """The digests before and after a write, of handlers whose digest has changed."""
    found: dict[str, tuple[str, str]] = {}
    for name in names:
        handler = _handler_of(kind, name)
        if handler is None or handler.id in found:
            continue
        was = digest_at(before, handler.scope, kind.observation)
        now = digest_at(after, handler.scope, kind.observation)
        if was != now:
            found[handler.id] = was, now
    return found


def moved_progress(
    all_progress: Mapping[str, Progress], kind: Kind, moves: Moves
) -> Mapping[str, Progress]:
    """Return all progress; a follower's progress is about the new state.

    The digest that a handler has acted upon and succeeded with stays: fnop treats the
    handler's own change like any other.
    """
    return {
        name: _move_progress(progress, move)
        if (move := _move_of(kind, moves, name))
        else progress
        for name, progress in all_progress.items()
    }


def with_undoing(kind: Kind, after: Stored, before: Body, made: Body) -> Stored:
    """The state at the end of a change, after its own write has made `made`.

    If another client undoes that write before it is handled, the object is as it was
    last seen. That still is a change: the digests that the handlers have acted upon
    show it.
    """
    ahead = {
        handler.id: Progress("", acted=now)
        for handler in kind.changes
        if handler.rule.compares and handler.id not in after.progress
        for was in (digest_at(before, handler.scope, kind.observation),)
        for now in (digest_at(made, handler.scope, kind.observation),)
        if was != now
    }
    return replace(after, progress={**after.progress, **ahead}) if ahead else after


def with_moves(record: ObjectRecord, kind: Kind, moves: Moves) -> ObjectRecord:
    """Return the record with all work in progress moved to the authors' new state."""
    work = record.work
    if work is None or not moves:
        return record
    change = work.change
    if change is not None:
        aims = {
            name: _move_aim(aim, move) if (move := _move_of(kind, moves, name)) else aim
            for name, aim in change.aims.items()
        }
        change = replace(change, aims=aims)
    return replace(
        record,
        work=replace(
            work,
            change=change,
            progress=moved_progress(work.progress, kind, moves),
            declared=_move_declared(work, kind, moves),
        ),
    )


def _move_declared(work: Work, kind: Kind, moves: Moves) -> Mapping[str, Declared]:
    return {
        name: Declared(_move_aim(each.aim, move), each.children)
        if (move := _move_of(kind, moves, name))
        else each
        for name, each in work.declared.items()
    }


def _move_of(kind: Kind, moves: Moves, name: str) -> tuple[str, str] | None:
    """The change of a handler's digest, or of its declarer's for a sub-handler."""
    handler = _handler_of(kind, name)
    return None if handler is None else moves.get(handler.id)


def _handler_of(kind: Kind, name: str) -> Handler | None:
    handlers = {each.id: each for each in kind.changes}
    return handlers.get(declarer_of(name, handlers))


def _move_aim(aim: str, move: tuple[str, str]) -> str:
    reason, _, observed = aim.partition(":")
    return f"{reason}:{move[1]}" if observed == move[0] else aim


def _move_progress(progress: Progress, move: tuple[str, str]) -> Progress:
    was, now = move
    if progress.has_succeeded:
        return replace(progress, aim=_move_aim(progress.aim, move))
    return replace(
        progress,
        aim=_move_aim(progress.aim, move),
        acted=now if progress.acted == was else progress.acted,
        handled=now if progress.handled == was else progress.handled,
    )


def generation_after(handled: int | None, before: Body, after: Body) -> int | None:
    """The generation that is handled, after an own write has made `after`.

    The API server increments it with each change except in metadata and status
    (Kubernetes API conventions: metadata). A change that another client made before is
    not handled yet. Neither is a change on top of it.
    """
    if handled is None or handled != before.generation:
        return handled
    return handled + 1 if after.generation == handled + 1 else handled


def with_generation(record: ObjectRecord, before: Body, after: Body) -> ObjectRecord:
    """Return the record, with the generation of an own write as the handled one."""
    work = record.work
    if work is None or work.change is None:
        return record
    change = work.change
    generation = generation_after(change.generation, before, after)
    if generation == change.generation:
        return record
    return replace(
        record, work=replace(work, change=replace(change, generation=generation))
    )


def asks_for_the_same(one: Body, other: Body) -> bool:
    """Whether two states of an object differ in metadata and status at most."""
    keys = (one.data.keys() | other.data.keys()) - {"metadata", "status"}
    return all(one.data.get(key) == other.data.get(key) for key in keys)


def made_by(patch: Patch, before: Body) -> Body:
    """The state after a patch alone; the state before, if the patch does not fit."""
    try:
        return Body(operated(patch.json, applied(patch.merge or {}, before.data)))
    except OperationFailed:
        return before


def changed_fields(kind: Kind, before: Body, after: Body) -> tuple[str, ...]:
    """The fields that differ in two states for handlers of changes, as pointers."""
    hidden, own = kind.observation.hidden, kind.observation.own
    was, now = essence_of(before, hidden), essence_of(after, hidden)
    found = [pointer(path) for path in _paths_of_leaves(difference(was, now), ())]
    for path in kind.observation.scopes:
        if path[:1] == ("status",):
            one, other = (
                observed_at(each, path, own, hidden) for each in (before, after)
            )
            found += [pointer(path)] if one != other else []
    return tuple(found)


def authors_of(
    kind: Kind,
    patches: Sequence[tuple[str, Patch | Transform | None]],
    before: Body,
    after: Body,
) -> dict[str, tuple[str, ...]]:
    """The authors of changes that lead to calls of handlers, and the fields.

    The fields are JSON pointers. If several patches were written at once, the effect of
    each alone shows who made which change: if a patch does not change a field, its
    author did not change it. A handler of watch events is called for any field, and
    counts for all its own changes.
    """
    fields = changed_fields(kind, before, after) if kind.changes else ()
    found: dict[str, tuple[str, ...]] = {}
    for name in dict.fromkeys(name for name, _ in patches):
        own = [patch for author, patch in patches if author == name]
        made = after if len(own) == len(patches) else _made_by_all(own, before, after)
        if part := _calling_fields(kind, name, before, made):
            found[name] = part
    return found or ({name: fields for name, _ in patches} if fields else {})


def _calling_fields(
    kind: Kind, author: str, before: Body, made: Body
) -> tuple[str, ...]:
    """The fields of an author's own changes that lead to calls, as JSON pointers."""
    if any(each.id == author for each in kind.event_handlers):
        return _touched(kind, before, made)
    if any(each.id == author for each in kind.reconcilers):
        # It is called for any change except in the status.
        touched = _touched(kind, before, made)
        return tuple(each for each in touched if not each.startswith("/status"))
    return changed_fields(kind, before, made) if kind.changes else ()


def _made_by_all(
    patches: Iterable[Patch | Transform | None], before: Body, after: Body
) -> Body:
    """The state after some patches; the effects of functions are inseparable."""
    for patch in patches:
        if not isinstance(patch, Patch):
            return after
        before = made_by(patch, before)
    return before


# Fields that change with every write.
_OF_ANY_WRITE = frozenset(("resourceVersion", "generation", "managedFields"))


def _touched(kind: Kind, before: Body, after: Body) -> tuple[str, ...]:
    """All fields that differ in two states, except for the operator's own."""
    return tuple(
        pointer(path)
        for path in _paths_of_leaves(difference(before.data, after.data), ())
        if not (path[0] == "metadata" and path[1:2] and path[1] in _OF_ANY_WRITE)
        and not any(path[: len(own)] == own for own in kind.observation.own)
        and not is_state(after.at(path) or before.at(path))
    )


def _paths_of_leaves(change: Mapping[str, Any], path: Path) -> Iterator[Path]:
    for key, value in change.items():
        if isinstance(value, Mapping) and value:
            yield from _paths_of_leaves(value, (*path, key))
        else:
            yield (*path, key)


def loop_told(
    kind: Kind, found: Mapping[str, tuple[str, ...]], fields: list[str], times: int
) -> str:
    """The log line about a loop: its handlers, the fields, and the remedy."""
    who, what = joined(sorted(found)), ", ".join(fields[:5]) or "the object"
    background = {each.id for each in kind.background}
    verb, it, be, them = _ONE if len(found) == 1 else _SEVERAL
    if background.issuperset(found):
        circle = f"{who} {verb} {what} again and again, and others are called for that"
    else:
        circle = f"{who} {verb} {what} whenever {it} {be} called, and {be} called for"
        circle += " that"
    return (
        f"{circle}: {times} times in a row; the next calls wait for growing pauses; "
        f"let {them} write only what differs{_other_remedy(kind, found, fields)}"
    )


_ONE, _SEVERAL = ("changes", "it", "is", "it"), ("change", "they", "are", "them")


def _other_remedy(kind: Kind, found: Iterable[str], fields: list[str]) -> str:
    """A further remedy of a loop; handlers of events, or of the fields, ignore nothing.

    >>> from fnop.core.handlers.program.program import kind_of
    >>> from fnop.core.api.resources import Resource
    >>> kind = kind_of(Resource("", "v1", "pods", "Pod"), ())
    >>> _other_remedy(kind, ["count"], ["/spec/n"])
    ', or name the field in ignored_fields='
    """
    scopes = [pointer(scope) for scope in kind.observation.scopes if scope]
    event_handlers = {each.id for each in kind.event_handlers}
    if not event_handlers.isdisjoint(found):
        return "; a handler of events is called for any field"
    if any(f"{field}/".startswith(f"{scope}/") for scope in scopes for field in fields):
        return ""
    return ", or name the field in ignored_fields="
