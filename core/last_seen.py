"""What is remembered of a handled object, on the object itself.

The *essence* is what an author's handlers are about: everything but the
identity, the status and bookkeeping annotations.  Per observed scope (the
essence, or a handler's `field=`) a digest is kept; the values themselves only
where a handler can look at `old` or `diff`.  So no secret is copied into an
annotation without need, and adding a handler changes nobody else's cause.

The stored state is one JSON text, versioned and bound to the object's uid.
What cannot be read, or was written by a newer release, is kept untouched and
means "handled before, details unknown".
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from fnop.core.diff import Path, path_at, pointer, resolve
from fnop.core.evolve import quick
from fnop.core.merge import applied
from fnop.core.objects import Body
from fnop.core.progress import Progress, progress_from_json, progress_to_json
from fnop.core.storage import Unreadable
from fnop.core.table import NOTHING
from fnop.effects.values import canonical, digest

__all__ = [
    "STATE_LENGTH_MAX",
    "Observation",
    "Seen",
    "Stored",
    "Unreadable",
    "digest_at",
    "essence_of",
    "had_value",
    "hidden_of",
    "observed_at",
    "read_stored",
    "restated",
    "scope_name",
    "see",
    "write_stored",
]

STATE_VERSION = 1
DIGEST_VERSION = "1"

# All annotations of an object together may hold 256 KiB (Kubernetes:
# ValidateAnnotationsSize); the rest is left to others.
STATE_LENGTH_MAX = 200 * 1024
_COMPRESSED_FROM = 4 * 1024

_IDENTITY = frozenset(("apiVersion", "kind", "metadata", "status"))
# Written by operators and clients for their own bookkeeping, not by the author.
_BOOKKEEPING = (
    "fnop.dev/",
    "kopf.zalando.org/",
    "kubectl.kubernetes.io/last-applied-configuration",
)

Scope = str


@dataclass(frozen=True, slots=True)
class Observation:
    """What the handlers of a kind can observe across time.

    `scopes` are field paths, the empty one being the essence; `kept` are those of
    which some handler looks at what was before.  `ignored` are fields that are no part
    of the essence, and `own` those in which the operator itself keeps its state;
    `hidden` are all that have to be taken out of an essence.
    """

    scopes: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()
    ignored: tuple[Path, ...] = ()
    own: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Seen:
    """What an object was when it was last handled, per observed scope."""

    digests: Mapping[Scope, str]
    values: Mapping[Scope, Any] | None = None


@quick
class Stored(NamedTuple):
    """The state of one object as this operator stores it.

    `creating` marks that `seen` belongs to a creation which is not finished.
    `results` are those that have no place in the object's status.  Of one that was
    just read, `ignoring` are the fields that were no part of the essence then.
    """

    seen: Seen | None = None
    creating: bool = False
    progress: Mapping[str, Progress] = NOTHING
    results: Mapping[str, Any] = NOTHING
    ignoring: tuple[Scope, ...] = ()


def scope_name(path: Path) -> Scope:
    """A scope's name: the JSON pointer of its path.

    >>> scope_name(()), scope_name(("metadata", "labels", "a/b"))
    ('', '/metadata/labels/a~1b')
    """
    return pointer(path)


def essence_of(body: Body, hidden: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The part of an object that its author writes, without the hidden fields.

    >>> body = Body({"kind": "K", "metadata": {"name": "x"}, "spec": {"a": 1, "b": 2}})
    >>> essence_of(body), essence_of(body, (("spec", "b"),))
    ({'spec': {'a': 1, 'b': 2}}, {'spec': {'a': 1}})
    """
    essence = {key: value for key, value in body.data.items() if key not in _IDENTITY}
    labels = body.mapping("labels")
    annotations = body.mapping("annotations")
    if annotations:
        kept: tuple[str, ...] = _BOOKKEEPING
        foreign = [key[:-12] for key in annotations if key.endswith("/kopf-managed")]
        if foreign:  # the mark of a Kopf operator's own prefix
            kept = (*kept, *foreign)
        annotations = {
            key: value
            for key, value in annotations.items()
            if not key.startswith(kept) and not _is_state(value)
        }
    if labels or annotations:
        essence["metadata"] = {
            name: value
            for name, value in (("labels", labels), ("annotations", annotations))
            if value
        }
    return without(essence, hidden) if hidden else essence


# A state as `write_stored` makes it: whose it is may be told by a name of its own.
_STATE = re.compile(r'\{.*"uid":"[^"]*","v":\d+[,}]', re.DOTALL)


def _is_state(annotation: Any) -> bool:
    """Whether it is the state of an operator of fnop, under whatever name."""
    return (
        isinstance(annotation, str)
        and annotation[:1] == "{"
        and _STATE.match(annotation) is not None
    )


def without(value: Any, paths: Iterable[Path]) -> Any:
    """A JSON value without some fields, and without mappings that had nothing else.

    >>> without({"a": {"b": 1}, "c": {"d": 2, "e": 3}}, [("a", "b"), ("c", "d")])
    {'c': {'e': 3}}
    """
    for path in paths:
        value = _without(value, path)
    return value


def _without(value: Any, path: Path) -> Any:
    if not isinstance(value, dict) or path[0] not in value:
        return value
    rest = {key: each for key, each in value.items() if key != path[0]}
    if len(path) > 1:
        below = _without(value[path[0]], path[1:])
        if below != {}:
            rest = {**value, path[0]: below}
    return rest


def observed_at(body: Body, path: Path, own: tuple[Path, ...]) -> Any:
    """A field as handlers observe it: without the operator's own state.

    >>> body = Body({"status": {"mine": "{...}"}})
    >>> observed_at(body, ("status",), (("status", "mine"),)) is None
    True
    """
    value, depth = body.at(path), len(path)
    for each in own:
        if each[:depth] == path and len(each) > depth:
            value = _without(value, each[depth:]) or None
    return value


def see(body: Body, observation: Observation) -> Seen:
    """What there is to remember of this state of the object.

    Computed once for a body: a pass over an object asks for it several times.
    """
    if body.seen is None or body.seen[0] is not observation:
        body.seen = observation, _see(body, observation)
    found: Seen = body.seen[1]
    return found


def digest_at(body: Body, path: Path, observation: Observation) -> str:
    """The digest of what a handler of this field observes, kept or not."""
    found = see(body, observation).digests.get(scope_name(path))
    if found is not None:
        return found
    if path:
        return digest(observed_at(body, path, observation.own))
    return digest(essence_of(body, observation.hidden))


def _see(body: Body, observation: Observation) -> Seen:
    digests: dict[Scope, str] = {}
    values: dict[Scope, Any] | None = {} if observation.kept else None
    whole = () in observation.scopes
    essence = essence_of(body, observation.hidden) if whole else None
    for path in observation.scopes:
        value = observed_at(body, path, observation.own) if path else essence
        scope = scope_name(path)
        digests[scope] = _digest(value)
        if values is None or path not in observation.kept:
            continue
        # A field of an essence that is kept is kept once, with it.
        if not path or () not in observation.kept or resolve(essence, path) != value:
            values[scope] = value
    return Seen(digests, values)


def hidden_of(ignored: tuple[Path, ...], own: tuple[Path, ...]) -> tuple[Path, ...]:
    """What has to be taken out of an essence: of `own` only what would be in it."""
    return (*ignored, *(path for path in own if _is_of_essence(path)))


def _is_of_essence(path: Path) -> bool:
    if path[:2] == ("metadata", "annotations"):
        return len(path) < 3 or not path[2].startswith(_BOOKKEEPING)
    return path[0] not in _IDENTITY


def _digest(value: Any) -> str:
    return f"{DIGEST_VERSION}:{digest(value)}"


def value_at(seen: Seen | None, path: Path) -> Any:
    """What a field was then; None when it was absent or is not known."""
    if seen is None or seen.values is None:
        return None
    scope = scope_name(path)
    if scope in seen.values:
        return seen.values[scope]
    return resolve(seen.values.get(""), path)


def had_value(seen: Seen | None, path: Path) -> bool:
    """Whether a field had any value then, as far as its digest tells."""
    found = None if seen is None else seen.digests.get(scope_name(path))
    return found is not None and found != _digest(None)


def write_stored(stored: Stored, uid: str, ignored: tuple[Path, ...] = ()) -> str:
    """The JSON text of a state; `ValueError` if it is too long to be stored.

    `ignored` are the fields that are no part of the essence.
    """
    found: dict[str, Any] = {"v": STATE_VERSION, "uid": uid}
    if stored.seen is not None:
        found["seen"] = dict(stored.seen.digests)
        if stored.seen.values is not None:
            found["was"] = _packed(stored.seen.values)
    if stored.creating:
        found["creating"] = True
    if stored.progress:
        found["progress"] = {
            name: progress_to_json(each) for name, each in stored.progress.items()
        }
    if stored.results:
        found["results"] = dict(stored.results)
    if ignored:
        found["ignoring"] = list(map(scope_name, ignored))
    raw = canonical(found)
    if len(raw) > STATE_LENGTH_MAX:
        raise ValueError(
            f"the state to remember is {len(raw)} bytes long, over the "
            f"{STATE_LENGTH_MAX} that fit into an annotation; let no handler of this "
            "kind ask for `old` or `diff`, or narrow them with field="
        )
    return raw.decode()


def _packed(values: Mapping[Scope, Any]) -> Any:
    raw = canonical(dict(values))
    if len(raw) < _COMPRESSED_FROM:
        return dict(values)
    return base64.b64encode(zlib.compress(raw, 6)).decode()


def read_stored(text: Any, uid: str) -> Stored | Unreadable | None:
    """The state of its text; None if there is none, or another object's.

    Stored state carries the uid, for a patch that was meant for an object can
    land on its re-created namesake.
    """
    if text is None or isinstance(text, Unreadable):
        return text
    try:
        found = orjson.loads(text) if isinstance(text, str) else text
        if not isinstance(found, dict) or not isinstance(found.get("v"), int):
            return Unreadable("it is no state of fnop")
        if found["v"] > STATE_VERSION:
            return Unreadable(f"it was written by a newer release (v{found['v']})")
        if found.get("uid") != uid:
            return None
        return _stored(found)
    except (ValueError, TypeError, KeyError, zlib.error, binascii.Error) as problem:
        return Unreadable(str(problem))


def _stored(found: dict[str, Any]) -> Stored:
    seen = None
    if found.get("seen") is not None:
        digests = {k: str(v) for k, v in _mapping(found, "seen").items()}
        was = found.get("was")
        if isinstance(was, str):
            raw = zlib.decompress(base64.b64decode(was, validate=True))
            found = {**found, "was": orjson.loads(raw)}
        seen = Seen(digests, None if was is None else _mapping(found, "was"))
    progress = {
        name: progress_from_json(each)
        for name, each in _mapping(found, "progress").items()
    }
    creating, results = bool(found.get("creating")), _mapping(found, "results")
    ignoring = tuple(map(str, found.get("ignoring") or ()))
    return Stored(seen, creating, progress, results, ignoring)


def restated(stored: Stored, body: Body, observation: Observation) -> Stored:
    """A stored state as if the same fields had been ignored when it was stored.

    So an object is not handled again because the settings have changed.  It has been
    changed where it was by the former rule, or, with the values at hand, where it is
    by both.
    """
    formerly = tuple(map(path_at, stored.ignoring))
    if formerly == observation.ignored:
        return stored
    own = hidden_of((), observation.own)
    was = _digest(essence_of(body, (*formerly, *own)))
    now = essence_of(body, observation.hidden)
    new = _digest(now)
    seen = stored.seen
    if seen is not None and seen.digests.get("") == was:
        seen = _with_essence(seen, now)
    elif seen is not None and seen.values is not None and "" in seen.values:
        whole = _with_fields(seen.values[""], essence_of(body, own), formerly)
        seen = _with_essence(seen, without(whole, observation.ignored))
    progress = {
        name: _record_restated(each, was, new) for name, each in stored.progress.items()
    }
    return stored._replace(seen=seen, progress=progress, ignoring=())


def _with_essence(seen: Seen, essence: Any) -> Seen:
    values = seen.values
    if values is not None and "" in values:
        values = {**values, "": essence}
    return Seen({**seen.digests, "": _digest(essence)}, values)


def _record_restated(record: Progress, was: str, new: str) -> Progress:
    """A record that is about this very state of the object stays so."""
    reason, _, observed = record.aim.partition(":")
    if observed == was:
        record = record._replace(aim=f"{reason}:{new}")
    if record.handled == was:
        record = record._replace(handled=new)
    return record._replace(acted=new) if record.acted == was else record


def _with_fields(old: Any, body: Any, paths: Iterable[Path]) -> Any:
    """With what is there now in fields of which nobody knows what they were."""
    for path in paths:
        found = resolve(body, path)
        for key in reversed(path) if found is not None else ():
            found = {key: found}
        old = old if found is None else applied(found, old)
    return old


def _mapping(found: dict[str, Any], name: str) -> dict[str, Any]:
    value = found.get(name)
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"its {name} is no mapping")
    return value or {}
