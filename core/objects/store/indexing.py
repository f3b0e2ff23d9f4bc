"""Indices: values that the author's functions compute from all objects of some kinds.

An index is a persistent map. So a handler sees it as it was when its attempt began,
however long the attempt lasts. fnop fills all indices before it calls any handler: see
`are_filled`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from immutables import Map

from fnop.core.handlers.declare.handler import Handler, declarer_of
from fnop.core.handlers.declare.roles import INDICES
from fnop.core.handlers.program.program import Kind, Program
from fnop.core.handlers.run.arguments import Situation, Writers, arguments_for
from fnop.core.memory.progress import anew
from fnop.core.objects.decide.selection import sees
from fnop.core.objects.report.tracing import trace_indexed
from fnop.core.state.context import Context
from fnop.core.state.turn import Turn
from fnop.core.streams.stream import Stream, StreamPurpose
from fnop.core.values.body import Body, Key
from fnop.core.values.errors import (
    ErrorsMode,
    PermanentError,
    TemporaryError,
    act_of,
    described,
    number_of,
)
from fnop.effects.structs import replace
from fnop.effects.values import canonical, read_only, same_json

__all__ = [
    "Index",
    "are_filled",
    "call_observers",
    "empty_indices",
    "index_the_rest",
    "indexed",
    "keeps_former",
    "unindexed",
    "values_for",
]

# fnop stops waiting for a kind whose stream has failed this many times.
FAILURES_MAX = 3

_NONE: Map[Any, Any] = Map()


class Index(Mapping[Any, tuple[Any, ...]]):
    """An index as handlers see it: each key with the values of all its objects.

    >>> index = Index().with_object(Key("pods", "n", "p"), {"a": 1})
    >>> index["a"], list(index), "b" in index
    ((1,), ['a'], False)
    """

    __slots__ = ("_names", "_values")

    def __init__(
        self,
        values: Map[Any, Map[Key, Any]] = _NONE,
        names: Map[Key, tuple[Any, ...]] = _NONE,
    ) -> None:
        self._values = values
        self._names = names  # the index keys of each object

    def __getitem__(self, key: Any) -> tuple[Any, ...]:
        found = self._values[key]
        return tuple(found[each] for each in sorted(found))

    def __iter__(self) -> Iterator[Any]:
        # Sorted, so that the order does not depend on hashes: a replay sees the same.
        return iter(sorted(self._values, key=repr))

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<Index of {number_of(len(self), 'key')}>"

    def entries(self) -> Iterator[tuple[Any, Key, Any]]:
        """Yield each key with each of its objects, and that object's value.

        >>> index = Index().with_object(Key("pods", "n", "p"), {"a": 1})
        >>> [(key, of.name, value) for key, of, value in index.entries()]
        [('a', 'p', 1)]
        """
        for key in self:
            found = self._values[key]
            yield from ((key, each, found[each]) for each in sorted(found))

    def keys_of(self, key: Key) -> tuple[Any, ...]:
        """The keys under which an object has values."""
        return self._names.get(key, ())

    def objects_at(self, key: Any) -> tuple[Key, ...]:
        """The objects that have a value under a key."""
        return tuple(sorted(self._values.get(key, _NONE)))

    @property
    def objects(self) -> tuple[Key, ...]:
        """All objects that have a value."""
        return tuple(sorted(self._names))

    def of_object(self, key: Key) -> dict[Any, Any]:
        """The values of an object, by their keys."""
        return {name: self._values[name][key] for name in self.keys_of(key)}

    def with_object(self, key: Key, found: Mapping[Any, Any]) -> Index:
        """Return the index with these values of an object in place of its old ones."""
        had = self._names.get(key, ())
        if not had and not found:
            return self
        values, names = self._values, self._names
        for name in had:
            rest = values[name].delete(key)
            values = values.set(name, rest) if rest else values.delete(name)
        for name, value in found.items():
            values = values.set(name, values.get(name, _NONE).set(key, value))
        if found:
            return Index(values, names.set(key, tuple(found)))
        return Index(values, names.delete(key))


def empty_indices(program: Program) -> Map[str, Index]:
    """All indices of a program, empty, so that handlers can use them from the start."""
    return Map({each.id: Index() for each in program.handlers if each.role in INDICES})


def indexed(context: Context, body: Body) -> None:
    """Add the present values of an object to the indices of its kind."""
    for handler in context.kind.indexers:
        if not handler.needs or _are_known(context.turn, handler):
            _index(context, body, handler)


def index_the_rest(turn: Turn, kind: Kind) -> None:
    """Call the index functions that have waited for the indices of a kind.

    All objects of the kind have been listed for the first time.
    """
    new = {each.id for each in kind.indexers}
    for other in turn.survey.kinds.values():
        for handler in other.indexers:
            if not new.isdisjoint(handler.needs) and _are_known(turn, handler):
                for key, record in turn.objects.all():
                    if key.resource == other.resource.key and not record.gone:
                        _index(Context(turn, key), record.body, handler)


def _are_known(turn: Turn, handler: Handler) -> bool:
    """Whether the indices that an index function needs are filled, or never will be."""
    needs = frozenset(handler.needs)
    return all(
        _is_listed_or_never(stream)
        or needs.isdisjoint(
            each.id for each in turn.survey.kinds[stream.resource.key].indexers
        )
        for stream in turn.streams.each(StreamPurpose.OBJECTS)
    )


def _index(context: Context, body: Body, handler: Handler) -> None:
    found = _found(context, body, handler)
    if found is not None:
        _put_values(context, handler, found)


def unindexed(context: Context) -> None:
    """Remove the values of an object that is gone."""
    for handler in context.kind.indexers:
        _put_values(context, handler, {})


def _put_values(context: Context, handler: Handler, found: Mapping[Any, Any]) -> None:
    trace_indexed(context, handler, found)
    index: Index = context.turn.objects.indices[handler.id]
    context.turn.objects.index(handler.id, index.with_object(context.key, found))
    observers = context.turn.program.observers.get(handler.id, ())
    if observers:
        _call_again(context, observers, index.of_object(context.key), found)


def _call_again(
    context: Context,
    observers: tuple[str, ...],
    before: Mapping[Any, Any],
    found: Mapping[Any, Any],
) -> None:
    """Reconcile the objects whose entries of an index have changed."""
    changed = [
        key
        for key in {**before, **found}
        if not (key in before and key in found and same_json(before[key], found[key]))
    ]
    for name in observers:
        keys: Index = context.turn.objects.indices[name]
        for key in changed:
            for each in keys.objects_at(key):
                if each != context.key:  # its own changes do not void its retries
                    _void_retries(context.of(each), name)
                context.of(each).due()


def _void_retries(context: Context, name: str) -> None:
    """Void the retries of waiting handlers, as any change of their input does."""
    record = context.record
    if record is None or record.work is None:
        return
    work, kind = record.work, context.kind
    ids = {each.repeats for each in kind.changes if each.entries[2:] == (name,)}
    running = {each.handler.id for each in work.running}
    begun = {
        each: anew(found, found.aim)
        for each, found in work.progress.items()
        if declarer_of(each, ids) and each not in running and not found.is_finished
    }
    if begun:
        progress = {**work.progress, **begun}
        context.put(replace(record, work=replace(work, progress=progress)))


def call_observers(turn: Turn, kind: Kind) -> None:
    """Reconcile all objects whose handlers observe entries of the indices of a kind.

    All objects of the kind have been listed for the first time. Until then fnop knows
    no entry.
    """
    for handler in kind.indexers:
        for name in turn.program.observers.get(handler.id, ()):
            keys: Index = turn.objects.indices[name]
            for key in keys.objects:
                turn.objects.due(key)


def _found(context: Context, body: Body, handler: Handler) -> Mapping[Any, Any] | None:
    """Return the function's values for an object; None: keep the index."""
    resource = context.kind.resource
    record = context.record
    memo = context.turn.lifecycle.memo if record is None else record.memo
    situation = Situation(
        handler, context.settings, context.now, resource, body, memo=memo
    )
    try:
        values = values_for(handler, situation)
        if values and context.turn.program.observers.get(handler.id, ()):
            canonical([*values.values()])  # raises if it is not JSON
        return values
    except BaseException as problem:
        text = described(problem)
        line = f"index {handler.id} failed for this state: {text}"
        act = act_of(problem)
        context.say(
            *("error", line),
            body=body,
            handler=handler.id,
            error=text,
            exception=problem,
            act=act,
        )
        context.turn.failed()
        return None if keeps_former(handler, problem) else {}


def values_for(handler: Handler, situation: Situation) -> Mapping[Any, Any] | None:
    """Return the values that an index function returns for an object it selects.

    None changes nothing. Raises any exception of the author's code.
    """
    if not sees(handler, situation):
        return {}
    return _values(handler.call(arguments_for(situation, Writers())))


def keeps_former(handler: Handler, problem: BaseException) -> bool:
    """Whether the previous values stay after an error, though maybe outdated."""
    if isinstance(problem, (PermanentError, TemporaryError)):
        return False
    return handler.errors is ErrorsMode.IGNORED


def _values(result: Any) -> Mapping[Any, Any] | None:
    """Return the values by key; a result that is not a mapping has the key None.

    The result None changes nothing.
    """
    if result is None:
        return None
    given = result if isinstance(result, Mapping) else {None: result}
    for key in given:
        hash(key)
    return {key: read_only(value) for key, value in given.items()}


def are_filled(turn: Turn) -> bool:
    """Whether handlers may be called: all kinds that others depend on were listed.

    These are the kinds with an index, the kinds that are owned, and their owners.

    fnop does not wait for a kind whose listing is refused or broken.
    """
    return all(
        _is_listed_or_never(stream)
        or not _is_awaited(turn.survey.kinds[stream.resource.key])
        for stream in turn.streams.each(StreamPurpose.OBJECTS)
    )


def _is_listed_or_never(stream: Stream) -> bool:
    return bool(stream.lists or stream.refusal or stream.failures >= FAILURES_MAX)


def _is_awaited(kind: Kind) -> bool:
    return bool(kind.indexers or kind.reconcilers or kind.owned_by)
