"""Taking over from Kopf: its state on live objects, read as if it were fnop's own.

An operator that was written with Kopf leaves on each object its last-handled
configuration, the progress of its handlers, and a finalizer. Its successor reads the
first two, so that it does not handle a creation a second time. It replaces Kopf's
finalizer with its own. The annotations stay, so that a user can go back.

The rules follow Kopf 1.44's storages: annotations under one prefix, or a field of the
status. An object with that operator's finalizer was handled by it. If the object has no
record of that, it is not new, and its state counts as unreadable.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from msgspec import Struct

from fnop.core.memory.observation import Observation, see
from fnop.core.memory.progress import Progress
from fnop.core.memory.storage import Unreadable
from fnop.core.memory.stored_state import Stored
from fnop.core.values.body import Body
from fnop.core.values.cause import Reason
from fnop.core.values.diff import Path

__all__ = ["LAST_HANDLED", "Predecessor", "annotation_names", "taken_over"]

LAST_HANDLED = "last-handled-configuration"
_NAME_LENGTH_MAX = 63


class Predecessor(Struct, frozen=True):
    """The places of a Kopf operator's state on objects, and its finalizer.

    Annotations are `prefix`/`key` for the last-handled configuration and
    `prefix`/(handler) for progress. Both may be under the path `field` instead, as
    `key` and `progress`.
    """

    prefix: str
    finalizer: str
    key: str = LAST_HANDLED
    field: Path = ("status", "kopf")


def taken_over(
    body: Body, kopf: Predecessor, observation: Observation, handlers: Iterable[str]
) -> Stored | Unreadable | None:
    """The state that Kopf has stored on an object, for handlers of these ids.

    None if Kopf has never handled the object. `Unreadable` if it has, but left no
    record.

    >>> kopf = Predecessor("kopf.zalando.org", "kopf.zalando.org/KopfFinalizerMarker")
    >>> body = Body({"metadata": {"annotations": {
    ...     "kopf.zalando.org/last-handled-configuration": '{"spec":{"a":1}}'}}})
    >>> found = taken_over(body, kopf, Observation(((),)), [])
    >>> same = see(Body({"spec": {"a": 1}}), Observation(((),)))
    >>> found.seen.digests == same.digests
    True
    """
    annotations = body.mapping("annotations")
    field = body.at(kopf.field)
    status: Mapping[str, Any] = field if isinstance(field, dict) else {}
    for text in (annotations.get(f"{kopf.prefix}/{kopf.key}"), status.get(kopf.key)):
        essence = _parse_json(text)
        if essence is not None:
            return Stored(see(Body(essence), observation))
    kept = status.get("progress")
    progress = {
        name: Progress(f"{Reason.CREATE.value}:", finished="success")
        for name in handlers
        if _has_created(annotations, kopf.prefix, name)
        or _is_success(kept.get(name) if isinstance(kept, dict) else None)
    }
    if progress:
        return Stored(see(body, observation), creating=True, progress=progress)
    if kopf.finalizer in body.finalizers and not _is_under_way(annotations, kopf, kept):
        return Unreadable(
            f"it carries the finalizer {kopf.finalizer}, but neither the annotation "
            f"{kopf.prefix}/{kopf.key} nor the field {'.'.join(kopf.field)} says how "
            "it was handled"
        )
    return None


def _is_under_way(annotations: Mapping[str, Any], kopf: Predecessor, kept: Any) -> bool:
    """Whether a creation has begun, but no handler of it has succeeded yet."""
    records = [
        _parse_json(v)
        for k, v in annotations.items()
        if k.startswith(f"{kopf.prefix}/")
    ]
    records += list(kept.values()) if isinstance(kept, dict) else []
    found = [each for each in records if isinstance(each, dict) and "started" in each]
    return bool(found) and all(_is_creation(each) for each in found)


def _parse_json(text: Any) -> dict[str, Any] | None:
    try:
        found = orjson.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _has_created(annotations: Mapping[str, Any], prefix: str, handler: str) -> bool:
    """Whether a handler of an unfinished creation has already succeeded."""
    for name in annotation_names(prefix, handler):
        record = _parse_json(annotations.get(name))
        if record is not None:
            return _is_success(record)
    return False


def _is_success(record: Any) -> bool:
    if not isinstance(record, dict) or not _is_creation(record):
        return False
    return record.get("success") is True


def _is_creation(record: Mapping[str, Any]) -> bool:
    return record.get("purpose") in (None, Reason.CREATE.value)


def annotation_names(prefix: str, handler: str) -> tuple[str, str]:
    """The annotations of a handler's progress in Kopf: the newer name, the older one.

    >>> annotation_names("kopf.zalando.org", "create_fn/spec")
    ('kopf.zalando.org/create_fn.spec', 'kopf.zalando.org/create_fn.spec')
    """
    safe = handler.replace("/", ".").replace("<", "_").replace(">", "_")
    name = safe
    if len(handler) > _NAME_LENGTH_MAX:
        suffix = _suffix_of(handler)
        name = safe[: _NAME_LENGTH_MAX - len(suffix)] + suffix
    older, room = safe, _NAME_LENGTH_MAX - len(prefix) - 1
    if len(safe) > room:
        suffix = _suffix_of(safe)
        older = safe[: max(0, room - len(suffix))] + suffix
    return f"{prefix}/{name}", f"{prefix}/{older}"


def _suffix_of(text: str) -> str:
    digest = hashlib.blake2b(text.encode(), digest_size=4).digest()
    return "-" + base64.b64encode(digest, b"-.").decode().rstrip("=-.")
