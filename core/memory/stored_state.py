"""The stored state of a handled object: its written and read form.

It is one JSON text, versioned and bound to the object's uid. A text that cannot be
read, or that a newer release wrote, is kept untouched. It means "handled before,
details unknown".
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from msgspec import Struct

from fnop.core.memory.observation import (
    FormerValues,
    Observation,
    Scope,
    Seen,
    digest_of,
    essence_of,
    hidden_of,
    scope_name,
    without,
)
from fnop.core.memory.progress import Progress, progress_from_json, progress_to_json
from fnop.core.memory.storage import Unreadable
from fnop.core.values.body import Body
from fnop.core.values.diff import Path, path_at, resolve
from fnop.core.values.merge import applied
from fnop.core.values.table import NOTHING
from fnop.effects.structs import replace
from fnop.effects.values import canonical

__all__ = [
    "STATE_LENGTH_MAX",
    "UNSTORED",
    "Stored",
    "Unreadable",
    "read_stored",
    "restated",
    "shared",
    "write_stored",
]

STATE_VERSION = 1

# All annotations of an object together may hold 256 KiB (Kubernetes:
# ValidateAnnotationsSize); fnop leaves the rest to others.
STATE_LENGTH_MAX = 200 * 1024
_COMPRESSED_FROM = 4 * 1024
# Above the size of any object: etcd refuses requests of 1.5 MiB.
_UNPACKED_MAX = 16 * 1024 * 1024


class Stored(Struct, frozen=True):
    """The state of one object as this operator stores it.

    `creating` means that `seen` belongs to a creation that has not finished. `results`
    are the results that have no place in the object's status. After reading, `ignoring`
    are the fields that were excluded from the essence when the state was written.
    """

    seen: Seen | None = None
    creating: bool = False
    progress: Mapping[str, Progress] = NOTHING
    results: Mapping[str, Any] = NOTHING
    ignoring: tuple[Scope, ...] = ()


# An object has this state before anything is stored on it.
UNSTORED = Stored()
_HANDLED = Stored(Seen({}))


def shared(stored: Stored, before: Stored = UNSTORED) -> Stored:
    """The state, or an equal one that is already in memory.

    That is the state `before`, or a shared one for all objects whose states hold
    nothing of their own. Previous values in another order are not the same: handlers
    see the order.

    >>> shared(Stored()) is UNSTORED
    True
    """
    found = next((e for e in (before, UNSTORED, _HANDLED) if e == stored), stored)
    now, was = (each.seen.values if each.seen else None for each in (stored, found))
    if now is None or was is None or now.is_same(was):
        return found
    now.pack_as(was)
    return stored


def write_stored(stored: Stored, uid: str, ignored: tuple[Path, ...] = ()) -> str:
    """Return the JSON text of a state; raise `ValueError` if it is too long to store.

    `ignored` are the fields that are excluded from the essence.
    """
    found: dict[str, Any] = {"v": STATE_VERSION, "uid": uid}
    if stored.seen is not None:
        found["seen"] = dict(stored.seen.digests)
        if stored.seen.values is not None:
            found["was"] = _pack_values(stored.seen.values.parsed)
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


def _pack_values(values: Mapping[Scope, Any]) -> Any:
    raw = canonical(dict(values))
    if len(raw) < _COMPRESSED_FROM:
        return dict(values)
    return base64.b64encode(zlib.compress(raw, 6)).decode()


def read_stored(text: Any, uid: str) -> Stored | Unreadable | None:
    """Return the state from its text; None without a text, or with another object's.

    The text contains the object's uid, because a patch for one object can reach its
    re-created namesake.
    """
    if text is None or isinstance(text, Unreadable):
        return text
    try:
        found = orjson.loads(text) if isinstance(text, str) else text
        if not isinstance(found, dict) or not isinstance(found.get("v"), int):
            return Unreadable("it is not a state of fnop")
        if found["v"] > STATE_VERSION:
            return Unreadable(f"it was written by a newer release (v{found['v']})")
        if found.get("uid") != uid:
            return None
        return _parse_stored(found)
    except (ValueError, TypeError, KeyError, zlib.error, binascii.Error) as problem:
        return Unreadable(str(problem))


def _parse_stored(found: dict[str, Any]) -> Stored:
    seen = None
    if found.get("seen") is not None:
        digests = {k: str(v) for k, v in _mapping_field(found, "seen").items()}
        was = found.get("was")
        if isinstance(was, str):
            found = {**found, "was": orjson.loads(_unpack_text(was))}
        known = None if was is None else FormerValues(_mapping_field(found, "was"))
        seen = Seen(digests, known)
    progress = {
        name: progress_from_json(each)
        for name, each in _mapping_field(found, "progress").items()
    }
    creating, results = bool(found.get("creating")), _mapping_field(found, "results")
    ignoring = tuple(map(str, found.get("ignoring") or ()))
    return shared(Stored(seen, creating, progress or NOTHING, results, ignoring))


def restated(stored: Stored, body: Body, observation: Observation) -> Stored:
    """Return a stored state, converted to the fields that are ignored now.

    So fnop does not handle an object again because the settings have changed. It counts
    as changed if it has changed under the previous setting. If the old values are
    stored, it must have changed under both settings.
    """
    formerly = tuple(map(path_at, stored.ignoring))
    if formerly == observation.ignored:
        return stored
    own = hidden_of((), observation.own)
    was = digest_of(essence_of(body, (*formerly, *own)))
    now = essence_of(body, observation.hidden)
    new = digest_of(now)
    seen = stored.seen
    if seen is not None and seen.digest("") == was:
        seen = _with_essence(seen, now)
    elif seen is not None and seen.values is not None and "" in seen.values.parsed:
        before = seen.values.parsed[""]
        whole = _with_fields(before, essence_of(body, own), formerly)
        seen = _with_essence(seen, without(whole, observation.ignored))
    progress = {
        name: _replace_digest(each, was, new) for name, each in stored.progress.items()
    }
    return replace(stored, seen=seen, progress=progress, ignoring=())


def _with_essence(seen: Seen, essence: Any) -> Seen:
    values = seen.values
    if values is not None and "" in values.parsed:
        values = FormerValues({**values.parsed, "": essence})
    return Seen({**seen.digests, "": digest_of(essence)}, values)


def _replace_digest(record: Progress, was: str, new: str) -> Progress:
    """Return a record with the digest `was` of the object's state replaced by `new`."""
    reason, _, observed = record.aim.partition(":")
    if observed == was:
        record = replace(record, aim=f"{reason}:{new}")
    if record.handled == was:
        record = replace(record, handled=new)
    return replace(record, acted=new) if record.acted == was else record


def _with_fields(old: Any, body: Any, paths: Iterable[Path]) -> Any:
    """The old value, with the present values of fields that were not stored."""
    for path in paths:
        found = resolve(body, path)
        for key in reversed(path) if found is not None else ():
            found = {key: found}
        old = old if found is None else applied(found, old)
    return old


def _unpack_text(text: str) -> bytes:
    """Return the bytes of a `_pack_values` text; others may have written one."""
    inflater = zlib.decompressobj()
    raw = inflater.decompress(base64.b64decode(text, validate=True), _UNPACKED_MAX)
    if not inflater.eof:
        raise ValueError("what was before is cut off, or larger than any object")
    return raw


def _mapping_field(found: dict[str, Any], name: str) -> dict[str, Any]:
    value = found.get(name)
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"its {name} is not a mapping")
    return value or NOTHING
