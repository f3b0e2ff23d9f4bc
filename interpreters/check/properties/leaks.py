"""Partial leaks: a deletion removes some things outside, but leaves others.

An operator creates two records and deletes one. Or it creates a bucket and a user, and
its deletion handler forgets the user. The system outside differs from before, but not
all remaining things are meant to stay.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson
from msgspec import Struct

from fnop.interpreters.check.properties.orphans import Sort, kind_of, kinds_made_for
from fnop.interpreters.check.state.records import Phase
from fnop.interpreters.check.state.worlds import UID, digests_of
from fnop.interpreters.check.trials.trial import Trial
from fnop.interpreters.cluster import Cluster
from fnop.interpreters.simulation.actions import Delete
from fnop.interpreters.simulation.externals import (
    External,
    PostService,
    PutService,
    externals_of,
)

__all__ = ["left_partly"]

# The names of things in each collection.
_State = Mapping["_Place", frozenset[str]]
# Words of a spec by which a user makes things stay.
_RETAINS = re.compile(
    r"retain|retention|reclaim|preserve|orphan|protect|keep|deletion|cleanup|prune",
    re.I,
)


class _Place(Struct, frozen=True):
    """A collection outside: a system's alias, and the attribute of its model, or ""."""

    system: str
    attribute: str

    def __str__(self) -> str:
        return f"{self.system} {self.attribute}".rstrip()


def left_partly(trial: Trial) -> list[str]:
    """The things outside that remain after deletions which remove others.

    They are judged if the script ends with deletions and no remaining object can need
    them. A thing must be removed if its siblings are, that is, others of the same
    collection. It must also be removed if a function for its collection exists that the
    operator does not call.
    """
    kinds = kinds_made_for(trial)
    shelves = trial.journal.ends[Phase.RESTARTED].cluster.shelves
    if not _ends_with_deletion(trial, kinds) or any(map(shelves.get, kinds)):
        return []
    if any(_is_retained(e.cluster, kinds) for e in trial.journal.rests.values()):
        return []
    calls = trial.run.calls.models
    before = [_state_of(each, calls) for each in trial.journal.outside]
    collections = [*_changes(before, _state_of(digests_of(calls), calls))]
    if not any(each.gone for each in collections):
        return []  # it removes nothing: `left_outside` handles that
    return [
        f"{each.place} has {UID.sub('<uid>', name)}"
        for each in collections
        if each.gone or _may_take_from(each.place, calls)
        for name in sorted(each.left)
    ]


def _ends_with_deletion(trial: Trial, kinds: frozenset[Sort]) -> bool:
    script = trial.scene.script
    last = script[-1] if script else None
    known = (
        len(trial.journal.outside) == len(script) + 1
    )  # no fault, and each action has ended
    return known and isinstance(last, Delete) and kind_of(trial, last) in kinds


class _Changed(Struct, frozen=True):
    """The things made in a collection: those removed at the end, and those left."""

    place: _Place
    gone: frozenset[str]
    left: frozenset[str]


def _changes(states: list[_State], end: _State) -> Iterator[_Changed]:
    for place, names in end.items():
        first, *later = (each.get(place, frozenset()) for each in states)
        made = frozenset[str]().union(*later[:-1]) - first
        yield _Changed(place, made - names, made & names)


def _state_of(digests: Mapping[str, bytes], calls: Mapping[str, Any]) -> _State:
    """The names of the things in each collection of the models."""
    found: dict[_Place, frozenset[str]] = {}
    for alias, model in _models(calls):
        state = orjson.loads(digests[alias]) if alias in digests else None
        if isinstance(model, PutService | PostService):
            found[_Place(alias, "")] = _names_in(state)
        elif isinstance(state, dict):
            for attribute, each in state.items():
                found[_Place(alias, attribute)] = _names_in(each)
    return found


def _models(calls: Mapping[str, Any]) -> Iterator[tuple[str, External]]:
    return zip(digests_of(calls), _temporary_models(calls), strict=True)


def _temporary_models(calls: Mapping[str, Any]) -> list[External]:
    """The models whose things have to be removed again."""
    return [each for each in externals_of(calls) if not each.keeps_records]


def _names_in(collection: Any) -> frozenset[str]:
    """The names of things: keys, ids, or texts.

    >>> sorted(_names_in({"b": {}, "a": {}})), sorted(_names_in([{"id": "x"}, "y", 1]))
    (['a', 'b'], ['x', 'y'])
    """
    if isinstance(collection, dict):
        return frozenset(collection)
    names = []
    for each in collection if isinstance(collection, list) else ():
        names.append(each.get("id") if isinstance(each, dict) else each)
    return frozenset(each for each in names if isinstance(each, str))


def _may_take_from(place: _Place, calls: Mapping[str, Any]) -> bool:
    """Whether one of the called functions removes things from a collection."""
    model = dict(_models(calls))[place.system]
    held = re.escape(place.attribute)
    if held:
        takes = re.compile(rf"del self\.{held}\[|self\.{held}\.(pop|discard|remove)\(")
    else:
        takes = re.compile(r"\.delete\(|del self\._things\[")
    functions = [e for e in calls.values() if getattr(e, "__self__", None) is model]
    return any(takes.search(_source_of(each)) for each in functions)


def _source_of(function: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):  # it does not come from a file
        return ""


def _is_retained(cluster: Cluster, kinds: frozenset[Sort]) -> bool:
    """Whether a spec or an annotation may say that something should stay."""
    objects = (
        each for kind in kinds for each in cluster.shelves.get(kind, {}).values()
    )
    return any(
        _RETAINS.search(orjson.dumps(stanza).decode())
        for each in objects
        for stanza in (each.get("spec"), each["metadata"].get("annotations"))
    )
