"""Kopf's storages: where an operator keeps progress and the last-handled object.

The names and texts on objects are those of Kopf 1.45, so that either framework
continues what the other has begun. Operators may subclass the storages.
"""

from __future__ import annotations

import abc
import json
import warnings
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
)
from functools import lru_cache
from typing import Any, TypeAlias, TypedDict

from fnop.adapters.kopf.arguments.bodies import MappingView
from fnop.core.memory.storage import is_copied_to
from fnop.core.memory.takeover import LAST_HANDLED, annotation_names
from fnop.core.values.diff import parse_field
from fnop.effects.values import thaw_json

__all__ = [
    "AnnotationsDiffBaseStorage",
    "AnnotationsProgressStorage",
    "DiffBaseStorage",
    "MultiDiffBaseStorage",
    "MultiProgressStorage",
    "ProgressRecord",
    "ProgressStorage",
    "SmartProgressStorage",
    "StatusDiffBaseStorage",
    "StatusProgressStorage",
    "is_ours",
    "members_of",
    "put_at",
]

PREFIX = "kopf.zalando.org"
# Kubernetes: a key has a prefix of up to 253 characters; 63 more are for the name.
_PREFIX_LENGTH_WARNED = 189

Json: TypeAlias = dict[str, Any]
Essence: TypeAlias = dict[str, Any]
FieldSpec: TypeAlias = "str | tuple[str, ...] | list[str] | None"
# Annotations that clients write for their own bookkeeping.
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class ProgressRecord(TypedDict, total=False):
    """The progress of one handler, as it is stored; times are ISO 8601 texts."""

    started: str | None
    stopped: str | None
    delayed: str | None
    purpose: str | None
    retries: int | None
    success: bool | None
    failure: bool | None
    message: str | None
    subrefs: Collection[str] | None


# ---------------------------------------------------------------------- conventions


def _plain(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object itself: a view looks at it again at each access."""
    return body.plain() if isinstance(body, MappingView) else body


def _value_at(body: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    found: Any = _plain(body)
    for key in path:
        # A dict is found at once; other mappings are looked up in an ABC's registry.
        if found is None or not isinstance(found, (dict, Mapping)):
            return None
        found = found.get(key)
    return found


def put_at(patch: MutableMapping[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Set a field, and make the mappings above it."""
    for key in path[:-1]:
        patch = patch.setdefault(key, {})
    patch[path[-1]] = value


def _remove(place: Any, path: tuple[str, ...]) -> None:
    """Remove a field, and the mappings above it that are empty then."""
    if not isinstance(place, dict) or not path:
        return
    first, *rest = path
    if not rest:
        place.pop(first, None)
    elif first in place:
        _remove(place[first], tuple(rest))
        if place[first] == {}:
            del place[first]


def _purge(body: Mapping[str, Any], patch: Any, path: tuple[str, ...]) -> None:
    """Remove a field by the patch, and from it if the object does not have it."""
    if _has(body, path):
        put_at(patch, path, None)
    else:
        _remove(patch, path)


def _has(body: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    above = _value_at(body, path[:-1])
    return bool(above) and isinstance(above, (dict, Mapping)) and path[-1] in above


def _annotations(body: Mapping[str, Any]) -> Mapping[str, Any]:
    found = _value_at(body, ("metadata", "annotations"))
    return found if isinstance(found, (dict, Mapping)) else {}


# Each object asks for the same few.
_names_of = lru_cache(maxsize=1024)(annotation_names)


class _Cleaning:
    """Methods of Kopf's storages that `build` and `clear` of authors' classes call."""

    @staticmethod
    def remove_annotations(essence: Essence, keys_to_remove: Collection[str]) -> None:
        """Remove these annotations from an essence, in place."""
        _drop_annotations(essence, lambda name: name in keys_to_remove)

    @staticmethod
    def remove_empty_stanzas(essence: Essence) -> None:
        """Remove the stanzas that an essence lacks if they are empty, in place."""
        _remove_empty(essence)


class _Annotated:
    """A storage in annotations under one prefix; subclasses may form other names."""

    def __init__(self, *, prefix: str, v1: bool) -> None:
        if not prefix:
            raise ValueError("a storage in annotations needs a prefix, as a domain")
        if len(prefix) > _PREFIX_LENGTH_WARNED:
            warnings.warn(
                f"the prefix {prefix[:20]}... is longer than {_PREFIX_LENGTH_WARNED} "
                "characters: keys of annotations may be too long",
                UserWarning,
                stacklevel=3,
            )
        self.prefix = prefix
        self.v1 = v1

    def make_keys(
        self, key: str, *, body: Mapping[str, Any] | None = None
    ) -> tuple[str, ...]:
        """The annotations of one key: the newer name, and with `v1` the older one."""
        if body is not None:
            key = self.mark_key(key, body=body)
        newer = self.make_v2_key(key)
        older = self.make_v1_key(key) if self.v1 else newer
        return (newer, older) if older != newer else (newer,)

    def mark_key(self, key: str, *, body: Mapping[str, Any]) -> str:
        """The key on this object.

        A Deployment's annotations are copied to its ReplicaSets, which have others.
        """
        return f"{key}-ofDRS" if is_copied_to(_plain(body)) else key

    def make_v2_key(self, key: str) -> str:
        """The newer name of a key, as far as Kubernetes accepts it."""
        return _names_of(self.prefix, key)[0]

    def make_v1_key(self, key: str) -> str:
        """The older name, which is short together with the prefix."""
        return _names_of(self.prefix, key)[1]

    def _mark(self, patch: MutableMapping[str, Any], body: Mapping[str, Any]) -> None:
        """Mark the prefix as one of Kopf's, for other operators with Kopf."""
        marker = f"{self.prefix}/kopf-managed"
        if not self.prefix.startswith("kopf.") and marker not in _annotations(body):
            put_at(patch, ("metadata", "annotations", marker), "yes")


def _prefixes(annotations: Mapping[str, Any]) -> set[str]:
    """The prefixes of all operators with Kopf on an object."""
    found = {PREFIX}
    for key in annotations:
        prefix, slash, name = key.partition("/")
        if slash and (name == "kopf-managed" or prefix.endswith(f".{PREFIX}")):
            found.add(prefix)
    return found


# ------------------------------------------------------------------------- progress


class ProgressStorage(_Cleaning, abc.ABC):
    """The place of the progress of handlers; an operator may subclass it."""

    @abc.abstractmethod
    def fetch(self, *, key: str, body: Mapping[str, Any]) -> ProgressRecord | None:
        """The record of a handler; None without one."""

    @abc.abstractmethod
    def store(
        self, *, key: str, record: ProgressRecord, body: Mapping[str, Any], patch: Any
    ) -> None:
        """Write a record into the patch."""

    @abc.abstractmethod
    def purge(self, *, key: str, body: Mapping[str, Any], patch: Any) -> None:
        """Remove a record by the patch."""

    @abc.abstractmethod
    def touch(self, *, body: Mapping[str, Any], patch: Any, value: str | None) -> None:
        """Write a value that means nothing."""

    @abc.abstractmethod
    def clear(self, *, essence: Essence) -> Essence:
        """A copy of the essence without the fields of this storage."""
        return thaw_json(essence)  # type: ignore[no-any-return]

    def flush(self) -> None:
        """Forget what is cached."""


class AnnotationsProgressStorage(_Annotated, ProgressStorage):
    """Keeps records as JSON texts in annotations `<prefix>/<handler>`."""

    def __init__(
        self,
        *,
        prefix: str = PREFIX,
        verbose: bool = False,
        touch_key: str = "touch-dummy",
        v1: bool = True,
    ) -> None:
        super().__init__(prefix=prefix, v1=v1)
        self.verbose = verbose
        self.touch_key = touch_key

    def fetch(self, *, key: str, body: Mapping[str, Any]) -> ProgressRecord | None:
        for name in self.make_keys(key, body=body):
            text = _annotations(body).get(name)
            if text is not None:
                record: ProgressRecord = json.loads(text)
                return record
        return None

    def store(
        self, *, key: str, record: ProgressRecord, body: Mapping[str, Any], patch: Any
    ) -> None:
        given = {k: v for k, v in record.items() if self.verbose or v is not None}
        text = json.dumps(given, separators=(",", ":"))
        for name in self.make_keys(key, body=body):
            put_at(patch, ("metadata", "annotations", name), text)
        self._mark(patch, body)

    def purge(self, *, key: str, body: Mapping[str, Any], patch: Any) -> None:
        for name in self.make_keys(key, body=body):
            _purge(body, patch, ("metadata", "annotations", name))

    def touch(self, *, body: Mapping[str, Any], patch: Any, value: str | None) -> None:
        for name in self.make_keys(self.touch_key, body=body):
            if _annotations(body).get(name) != value:
                put_at(patch, ("metadata", "annotations", name), value)
                self._mark(patch, body)

    def clear(self, *, essence: Essence) -> Essence:
        cleared = super().clear(essence=essence)
        _remove_annotations(cleared, lambda name: _prefix_of(name) == self.prefix)
        return cleared


class _InStatus:
    """A storage in a field, whose path may have the placeholder `{name}`."""

    name: str

    @property
    def field(self) -> tuple[str, ...]:
        return self._field

    @field.setter
    def field(self, field: FieldSpec) -> None:
        self._field = _named_field(field, self.name)


class StatusProgressStorage(_InStatus, ProgressStorage):
    """Keeps records in a field of the status, by the ids of the handlers."""

    def __init__(
        self,
        *,
        name: str = "kopf",
        field: FieldSpec = "status.{name}.progress",
        touch_field: FieldSpec = "status.{name}.dummy",
    ) -> None:
        self.name = name
        self.field = field
        self.touch_field = touch_field

    @property
    def touch_field(self) -> tuple[str, ...]:
        return self._touch_field

    @touch_field.setter
    def touch_field(self, field: FieldSpec) -> None:
        self._touch_field = _named_field(field, self.name)

    def fetch(self, *, key: str, body: Mapping[str, Any]) -> ProgressRecord | None:
        found: ProgressRecord | None = _value_at(body, (*self.field, key))
        return found

    def store(
        self, *, key: str, record: ProgressRecord, body: Mapping[str, Any], patch: Any
    ) -> None:
        put_at(patch, (*self.field, key), dict(record))

    def purge(self, *, key: str, body: Mapping[str, Any], patch: Any) -> None:
        _purge(body, patch, (*self.field, key))

    def touch(self, *, body: Mapping[str, Any], patch: Any, value: str | None) -> None:
        if _value_at(body, self.touch_field) != value:
            put_at(patch, self.touch_field, value)

    def clear(self, *, essence: Essence) -> Essence:
        cleared = super().clear(essence=essence)
        _remove(cleared, self.field)
        _remove_empty(cleared)
        return cleared


class MultiProgressStorage(ProgressStorage):
    """Writes to several storages, and reads from the first that has the record."""

    def __init__(self, storages: Collection[ProgressStorage]) -> None:
        self.storages = storages

    def fetch(self, *, key: str, body: Mapping[str, Any]) -> ProgressRecord | None:
        for each in self.storages:
            record = each.fetch(key=key, body=body)
            if record is not None:
                return record
        return None

    def store(
        self, *, key: str, record: ProgressRecord, body: Mapping[str, Any], patch: Any
    ) -> None:
        for each in self.storages:
            each.store(key=key, record=record, body=body, patch=patch)

    def purge(self, *, key: str, body: Mapping[str, Any], patch: Any) -> None:
        for each in self.storages:
            each.purge(key=key, body=body, patch=patch)

    def touch(self, *, body: Mapping[str, Any], patch: Any, value: str | None) -> None:
        for each in self.storages:
            each.touch(body=body, patch=patch, value=value)

    def clear(self, *, essence: Essence) -> Essence:
        for each in self.storages:
            essence = each.clear(essence=essence)
        return essence


class _FormerStatusStorage(StatusProgressStorage):
    """The status, which older releases of Kopf wrote: it is read and emptied only."""

    def store(
        self, *, key: str, record: ProgressRecord, body: Mapping[str, Any], patch: Any
    ) -> None:
        """Write nothing."""

    def touch(self, *, body: Mapping[str, Any], patch: Any, value: str | None) -> None:
        """Write nothing."""


class SmartProgressStorage(MultiProgressStorage):
    """Writes annotations, and reads the status of older releases, too: the default."""

    def __init__(
        self,
        *,
        name: str = "kopf",
        field: FieldSpec = "status.{name}.progress",
        touch_key: str = "touch-dummy",
        touch_field: FieldSpec = "status.{name}.dummy",
        prefix: str = PREFIX,
        v1: bool = True,
        verbose: bool = False,
    ) -> None:
        annotations = AnnotationsProgressStorage(
            prefix=prefix, verbose=verbose, touch_key=touch_key, v1=v1
        )
        status = _FormerStatusStorage(name=name, field=field, touch_field=touch_field)
        super().__init__([annotations, status])


# ------------------------------------------------------------- last-handled object


class DiffBaseStorage(_Cleaning, abc.ABC):
    """The place of the last-handled object; an operator may subclass it.

    `ignored_fields` are no part of the essence: their changes are no updates.
    """

    def __init__(self, ignored_fields: Iterable[FieldSpec] | None = None) -> None:
        super().__init__()
        self.ignored_fields = list(ignored_fields or ())

    def build(
        self,
        *,
        body: Mapping[str, Any],
        extra_fields: Iterable[FieldSpec] | None = None,
    ) -> Essence:
        """The essence of an object: what counts as a change of it.

        These are the labels, the annotations, and all stanzas but the status. With
        `extra_fields` it also has fields of the metadata or the status.
        """
        found: Essence = {
            key: thaw_json(value)
            for key, value in body.items()
            if key not in _NO_ESSENCE
        }
        _pick(body, found, (("metadata", "labels"), ("metadata", "annotations")))
        prefixes = _prefixes(_annotations(body))
        _remove_annotations(
            found, lambda name: name == _APPLIED or _prefix_of(name) in prefixes
        )
        _pick(body, found, map(parse_field, extra_fields or ()))
        _remove_empty(found)
        for field in self.ignored_fields:
            _remove(found, parse_field(field))
        return found

    @abc.abstractmethod
    def fetch(self, *, body: Mapping[str, Any]) -> Essence | None:
        """The last-handled essence; None without one."""

    @abc.abstractmethod
    def store(self, *, body: Mapping[str, Any], patch: Any, essence: Essence) -> None:
        """Write the handled essence into the patch."""


_NO_ESSENCE = frozenset(("apiVersion", "kind", "metadata", "status"))


def _pick(
    body: Mapping[str, Any], essence: Essence, paths: Iterable[tuple[str, ...]]
) -> None:
    """Copy fields of an object into its essence, if it has them."""
    for path in paths:
        if path and _has(body, path):
            put_at(essence, path, thaw_json(_value_at(body, path)))


def _remove_empty(essence: Essence) -> None:
    """Remove the stanzas that an essence lacks if they are empty."""
    meta = essence.get("metadata")
    if isinstance(meta, dict):
        for name in ("annotations", "labels"):
            if name in meta and not meta[name]:
                del meta[name]
    for name in ("metadata", "status"):
        if name in essence and not essence[name]:
            del essence[name]


def _remove_annotations(essence: Essence, is_own: Callable[[str], bool]) -> None:
    """Remove annotations of operators from an essence."""
    _drop_annotations(essence, is_own)
    _remove_empty(essence)


def _drop_annotations(essence: Essence, is_own: Callable[[str], bool]) -> None:
    known = _annotations(essence)
    if any(map(is_own, known)):
        left = {name: text for name, text in known.items() if not is_own(name)}
        put_at(essence, ("metadata", "annotations"), left)


def _prefix_of(name: str) -> str:
    prefix, slash, _ = name.partition("/")
    return prefix if slash else ""


class AnnotationsDiffBaseStorage(_Annotated, DiffBaseStorage):
    """Keeps the essence as a JSON text in the annotation `<prefix>/<key>`."""

    def __init__(
        self,
        *,
        prefix: str = PREFIX,
        key: str = LAST_HANDLED,
        ignored_fields: Iterable[FieldSpec] | None = None,
        v1: bool = True,
    ) -> None:
        _Annotated.__init__(self, prefix=prefix, v1=v1)
        self.ignored_fields = list(ignored_fields or ())
        self.key = key

    def build(
        self,
        *,
        body: Mapping[str, Any],
        extra_fields: Iterable[FieldSpec] | None = None,
    ) -> Essence:
        essence = super().build(body=body, extra_fields=extra_fields)
        own = self.make_keys(self.key, body=body)
        _remove_annotations(essence, lambda name: name in own)
        return essence

    def fetch(self, *, body: Mapping[str, Any]) -> Essence | None:
        for name in self.make_keys(self.key, body=body):
            text = _annotations(body).get(name)
            if text is not None:
                essence: Essence = json.loads(text)
                return essence
        return None

    def store(self, *, body: Mapping[str, Any], patch: Any, essence: Essence) -> None:
        text = json.dumps(essence, separators=(",", ":")) + "\n"
        for name in self.make_keys(self.key, body=body):
            put_at(patch, ("metadata", "annotations", name), text)
        self._mark(patch, body)


class StatusDiffBaseStorage(_InStatus, DiffBaseStorage):
    """Keeps the essence as a JSON text in a field of the status."""

    def __init__(
        self,
        *,
        name: str = "kopf",
        field: FieldSpec = "status.{name}.last-handled-configuration",
        ignored_fields: Iterable[FieldSpec] | None = None,
    ) -> None:
        super().__init__(ignored_fields)
        self.name = name
        self.field = field

    def build(
        self,
        *,
        body: Mapping[str, Any],
        extra_fields: Iterable[FieldSpec] | None = None,
    ) -> Essence:
        essence = super().build(body=body, extra_fields=extra_fields)
        _remove(essence, self.field)
        return essence

    def fetch(self, *, body: Mapping[str, Any]) -> Essence | None:
        text = _value_at(body, self.field)
        if text is None:
            return None
        essence: Essence = json.loads(text)
        return essence

    def store(self, *, body: Mapping[str, Any], patch: Any, essence: Essence) -> None:
        put_at(patch, self.field, json.dumps(essence, separators=(",", ":")))


class MultiDiffBaseStorage(DiffBaseStorage):
    """Writes to several storages, and reads from the first that has the essence."""

    def __init__(self, storages: Collection[DiffBaseStorage]) -> None:
        super().__init__()
        self.storages = storages

    def build(
        self,
        *,
        body: Mapping[str, Any],
        extra_fields: Iterable[FieldSpec] | None = None,
    ) -> Essence:
        fields = [*(extra_fields or ())]
        essence = super().build(body=body, extra_fields=fields)
        for each in self.storages:
            # Each removes its own fields from the essence of those before it.
            essence = each.build(body=essence, extra_fields=fields)
        return essence

    def fetch(self, *, body: Mapping[str, Any]) -> Essence | None:
        for each in self.storages:
            essence = each.fetch(body=body)
            if essence is not None:
                return essence
        return None

    def store(self, *, body: Mapping[str, Any], patch: Any, essence: Essence) -> None:
        for each in self.storages:
            each.store(body=body, patch=patch, essence=essence)


def members_of(storage: Any) -> Iterator[Any]:
    """Yield the storages that a storage writes to: itself, or its members.

    >>> [type(each).__name__ for each in members_of(SmartProgressStorage())]
    ['AnnotationsProgressStorage', '_FormerStatusStorage']
    """
    if type(storage).store in (MultiProgressStorage.store, MultiDiffBaseStorage.store):
        for each in storage.storages:
            yield from members_of(each)
    else:
        yield storage


def is_ours(storage: ProgressStorage | DiffBaseStorage) -> bool:
    """Whether a storage has no code of an author: neither itself nor a part of it.

    >>> is_ours(SmartProgressStorage()), is_ours(MultiDiffBaseStorage([]))
    (True, True)
    """
    parts = getattr(storage, "storages", ())
    return type(storage).__module__ == __name__ and all(map(is_ours, parts))


def _named_field(field: FieldSpec, name: str) -> tuple[str, ...]:
    """
    >>> _named_field("status.{name}.progress", "kopf")
    ('status', 'kopf', 'progress')
    """
    return parse_field(field.format(name=name) if isinstance(field, str) else field)
