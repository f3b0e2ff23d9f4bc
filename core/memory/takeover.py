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
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson
from msgspec import Struct

from fnop.core.memory.observation import Observation, see
from fnop.core.memory.progress import Progress
from fnop.core.memory.storage import Unreadable, is_copied_to
from fnop.core.memory.stored_state import Stored
from fnop.core.values.body import Body
from fnop.core.values.cause import Reason
from fnop.core.values.diff import Path

__all__ = [
    "KOPF_FINALIZER",
    "LAST_HANDLED",
    "Predecessor",
    "annotation_names",
    "last_handled_places",
    "progress_by",
    "purposes_anywhere",
    "taken_over",
]

# Kopf's finalizer, unless an operator chooses its own.
KOPF_FINALIZER = "kopf.zalando.org/KopfFinalizerMarker"
LAST_HANDLED = "last-handled-configuration"
_NAME_LENGTH_MAX = 63
_IN_NAMES = str.maketrans({"/": ".", "<": "_", ">": "_", ":": "_"})
# Each record has one of them; a field or an annotation of users hardly does.
_RECORD_FIELDS = frozenset(("started", "purpose"))


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
    progress = {
        name: Progress(f"{Reason.CREATE.value}:", finished="success")
        for name in handlers
        if _has_created(progress_by(body, kopf, name))
    }
    if progress:
        return Stored(see(body, observation), creating=True, progress=progress)
    kept = status.get("progress")
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


def _has_created(progress: Progress | None) -> bool:
    """Whether a handler of an unfinished creation has already succeeded."""
    if progress is None or not progress.has_succeeded:
        return False
    return progress.aim == f"{Reason.CREATE.value}:"


def _is_creation(record: Mapping[str, Any]) -> bool:
    return _purpose_of(record) == Reason.CREATE.value


def _purpose_of(record: Mapping[str, Any]) -> str:
    """The reason of the change that a record of Kopf is about; old ones have none."""
    return str(record.get("purpose") or Reason.CREATE.value)


def progress_by(body: Body, kopf: Predecessor, handler: str) -> Progress | None:
    """The progress of a handler in the record that Kopf has left on an object.

    >>> kopf = Predecessor("kopf.zalando.org", "kopf.zalando.org/KopfFinalizerMarker")
    >>> body = Body({"metadata": {"annotations": {
    ...     "kopf.zalando.org/fn": '{"purpose":"update","retries":2}'}}})
    >>> found = progress_by(body, kopf, "fn")
    >>> found.aim, found.retries, found.has_succeeded
    ('update:', 2, False)
    """
    annotations, kept = body.mapping("annotations"), body.at((*kopf.field, "progress"))
    names = annotation_names(kopf.prefix, handler)
    found = [_parse_json(annotations.get(each)) for each in names]
    found += [kept.get(handler)] if isinstance(kept, dict) else []
    record = next((each for each in found if isinstance(each, dict)), None)
    if record is None:
        return None
    retries, finished = record.get("retries"), None
    if record.get("success") is True:
        finished = "success"
    elif record.get("failure") is True:
        finished = "failure"
    return Progress(
        f"{_purpose_of(record)}:",
        retries if isinstance(retries, int) else 0,
        finished=finished,
    )


def purposes_anywhere(body: Body, handler: str) -> Iterator[str]:
    """The reasons of the changes in the records of a handler by any Kopf operator.

    >>> body = Body({"status": {"mine": {"progress": {"fn": {"purpose": "update"}}}}})
    >>> [*purposes_anywhere(body, "fn")], [*purposes_anywhere(body, "other")]
    (['update'], [])
    """
    found: list[Any] = []
    annotations = {} if is_copied_to(body.data) else body.mapping("annotations")
    for prefix in {name.partition("/")[0] for name in annotations if "/" in name}:
        names = dict.fromkeys(annotation_names(prefix, handler))
        found += [_parse_json(annotations.get(each)) for each in names]
    for value in body.stanza("status").values():
        kept = value.get("progress") if isinstance(value, Mapping) else None
        found.append(kept.get(handler) if isinstance(kept, Mapping) else None)
    for record in found:
        if isinstance(record, Mapping) and not _RECORD_FIELDS.isdisjoint(record):
            yield _purpose_of(record)


def last_handled_places(body: Body) -> Iterator[str]:
    """The places with a last-handled configuration of any Kopf operator, in words.

    A ReplicaSet may have that of its Deployment, whose annotations are copied to it.

    >>> body = Body({"status": {"kopf": {"last-handled-configuration": "{}"}}})
    >>> [*last_handled_places(body)]
    ['status.kopf.last-handled-configuration']
    """
    for name in () if is_copied_to(body.data) else body.mapping("annotations"):
        if name.endswith(f"/{LAST_HANDLED}"):
            yield f"the annotation {name}"
    for name, value in body.stanza("status").items():
        if isinstance(value, Mapping) and LAST_HANDLED in value:
            yield f"status.{name}.{LAST_HANDLED}"


def annotation_names(prefix: str, handler: str) -> tuple[str, str]:
    """The annotations of a handler's progress in Kopf: the newer name, the older one.

    >>> annotation_names("kopf.zalando.org", "create_fn/spec")
    ('kopf.zalando.org/create_fn.spec', 'kopf.zalando.org/create_fn.spec')

    The id of a lambda has a colon, which Kubernetes accepts in no annotation's name, so
    Kopf stores no progress of lambdas.
    """
    safe = handler.translate(_IN_NAMES)
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
