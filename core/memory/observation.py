"""The parts of an object that handlers observe across time, and their digests.

The *essence* is everything except the identity, the status and bookkeeping annotations.
fnop stores a digest for each observed scope (the essence, or a handler's `field=`). It
stores the values themselves only if a handler can ask for `old` or `diff`. So it does
not copy secrets into an annotation without need, and a new handler does not change the
causes of others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeAlias, overload

import orjson
from msgspec import Struct, field

from fnop.core.values.body import Body
from fnop.core.values.diff import Path, pointer, resolve
from fnop.core.values.entries import entries_at, is_known, is_of_entries
from fnop.core.values.packing import Packing
from fnop.core.values.table import NOTHING, Table
from fnop.effects.regexes import regex
from fnop.effects.structs import replace
from fnop.effects.values import DIGEST_BYTES, digest

__all__ = [
    "ABSENT",
    "ANNOTATIONS",
    "DIGEST_VERSION",
    "Essence",
    "FormerValues",
    "Hidden",
    "Observation",
    "Scope",
    "Seen",
    "completed",
    "digest_at",
    "digest_of",
    "essence_of",
    "had_value",
    "hidden_of",
    "is_state",
    "observed",
    "observed_at",
    "scope_name",
    "see",
    "value_at",
    "without",
]

DIGEST_VERSION = "1"


_IDENTITY = frozenset(("apiVersion", "kind", "metadata", "status"))


# Annotations that operators and clients write for their own bookkeeping.
_BOOKKEEPING = (
    "fnop.dev/",
    "kopf.zalando.org/",
    "kubectl.kubernetes.io/last-applied-configuration",
)


Scope = str


class Observation(Struct, frozen=True):
    """The fields that the handlers of a kind observe across time.

    `scopes` are field paths; the empty path is the essence. `kept` are those whose
    previous values some handler needs. `ignored` are fields that are excluded from the
    essence. `own` are the fields that keep the operator's own state. `hidden` are all
    fields that must be removed from an essence. Scopes may be entries of the present
    `indices`, for an object of the kind `resource`; entries of other kinds are not
    observed.
    """

    scopes: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()
    ignored: tuple[Path, ...] = ()
    own: tuple[Path, ...] = ()
    hidden: Hidden = ()
    resource: str = ""
    indices: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    # Whether any scope is about entries: read all the time.
    has_entries: bool = False

    def as_of(self, indices: Mapping[str, Any]) -> Observation:
        """Return the same observation with the same indices, at another time."""
        if all(indices[name] is each for name, each in self.indices.items()):
            return self
        return replace(self, indices={name: indices[name] for name in self.indices})


class FormerValues:
    """Previous values of scopes, kept as JSON text: it takes a fifth of the memory.

    >>> FormerValues({"/spec": {"size": 1}}).parsed
    {'/spec': {'size': 1}}
    """

    __slots__ = ("_like", "_values")

    def __init__(self, values: Mapping[Scope, Any]) -> None:
        # A value that is nested too deeply for the serializer is kept as it is.
        self._values: bytes | Mapping[Scope, Any] = values
        with suppress(TypeError):
            # A copy with the exact size: the serializer leaves slack at the end.
            self._values = bytes(memoryview(orjson.dumps(values)))
        self._like: Body | None = None

    @property
    def parsed(self) -> Mapping[Scope, Any]:
        """The values, parsed again at each access."""
        text = self._text()
        if not isinstance(text, bytes):
            return text
        found: dict[Scope, Any] = orjson.loads(text)
        return found

    def _text(self) -> bytes | Mapping[Scope, Any]:
        text = self._values
        if isinstance(text, bytes) and self._like is not None:
            return Packing(self._like.raw).text_of(text)
        return text

    def pack(self, like: Body) -> None:
        """Keep only the differences from the text of the present object.

        Most objects have not changed since they were handled. Then only some dozen
        bytes remain, and the object's text is kept in any case.
        """
        text, packed = self._values, self._like is not None
        if isinstance(text, bytes) and not packed and like.can_be_packed:
            self._values, self._like = Packing(like.raw).packed(text), like

    def pack_as(self, other: FormerValues) -> None:
        """Pack it in the same way as another value, or leave it as it is."""
        if other._like is not None:
            self.pack(other._like)

    def is_same(self, other: FormerValues) -> bool:
        """Whether the values are equal, and their members in the same order."""
        return self is other or self._text() == other._text()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FormerValues) and (
            self.is_same(other) or self.parsed == other.parsed
        )

    def __repr__(self) -> str:
        return f"FormerValues({self.parsed!r})"


class Seen:
    """The digests, and some values, of the observed scopes of a handled object.

    Digests of this version are kept as bytes, and their scopes are shared by all
    objects. Together they take a quarter of the memory of a dict.

    >>> Seen({"/spec": digest_of(1)}).digests == {"/spec": digest_of(1)}
    True
    """

    __slots__ = ("_digests", "_scopes", "values")

    values: FormerValues | None

    def __init__(
        self, digests: Mapping[Scope, str], values: FormerValues | None = None
    ) -> None:
        self.values = values
        self._scopes = _share_scopes(tuple(digests))
        self._digests: bytes | tuple[str, ...] = _pack_digests(digests.values())

    @property
    def digests(self) -> Mapping[Scope, str]:
        """The digests by scope."""
        return Table(zip(self._scopes, self._texts(), strict=True))

    @overload
    def digest(self, scope: Scope) -> str | None: ...

    @overload
    def digest(self, scope: Scope, default: str) -> str: ...

    def digest(self, scope: Scope, default: str | None = None) -> str | None:
        """The digest of a scope, or else the default."""
        scopes, found = self._scopes, self._digests
        if scope not in scopes:
            return default
        at = scopes.index(scope)
        if isinstance(found, tuple):
            return found[at]
        return f"{_PREFIX}{found[at * DIGEST_BYTES : (at + 1) * DIGEST_BYTES].hex()}"

    def _texts(self) -> Iterable[str]:
        found = self._digests
        if isinstance(found, tuple):
            return found
        size = DIGEST_BYTES
        places = range(0, len(found), size)
        return [f"{_PREFIX}{found[at : at + size].hex()}" for at in places]

    def has_digests_of(self, other: Seen) -> bool:
        """Whether the digests of all scopes are those of another state."""
        if self._scopes is other._scopes:  # nearly always, for they are shared
            return self._digests == other._digests
        return self.digests == other.digests

    def covers(self, other: Seen) -> bool:
        """Whether it has a digest of each scope that another state has."""
        return self._scopes is other._scopes or {*other._scopes} <= {*self._scopes}

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Seen)
            and self.has_digests_of(other)
            and self.values == other.values
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Seen({self.digests!r}, {self.values!r})"


_PREFIX = f"{DIGEST_VERSION}:"
_PACKABLE = regex(rf"{_PREFIX}[0-9a-f]{{{2 * DIGEST_BYTES}}}")


@lru_cache(maxsize=1024)
def _share_scopes(scopes: tuple[Scope, ...]) -> tuple[Scope, ...]:
    """The one tuple of these scopes."""
    return scopes


def _pack_digests(digests: Iterable[str]) -> bytes | tuple[str, ...]:
    """Return the bytes of digests, or their texts if `digest_of` did not make them.

    The stored state may come from another version, or be written by hand.
    """
    texts = tuple(digests)
    if all(map(_PACKABLE.fullmatch, texts)):
        return bytes.fromhex("".join(each.removeprefix(_PREFIX) for each in texts))
    return texts


@lru_cache(maxsize=1024)
def scope_name(path: Path) -> Scope:
    """A scope's name: the JSON pointer of its path.

    >>> scope_name(()), scope_name(("metadata", "labels", "a/b"))
    ('', '/metadata/labels/a~1b')
    """
    return pointer(path)


class Essence(Struct, frozen=True):
    """The author's own rule for the part of an object whose changes are updates."""

    build: Callable[[Mapping[str, Any]], dict[str, Any]]


Hidden: TypeAlias = tuple[Path, ...] | Essence
"""The fields to remove from an essence, or a rule that says what it is."""


def essence_of(body: Body, hidden: Hidden = ()) -> dict[str, Any]:
    """The part of an object that its author writes, without the hidden fields.

    >>> body = Body({"kind": "K", "metadata": {"name": "x"}, "spec": {"a": 1, "b": 2}})
    >>> essence_of(body), essence_of(body, (("spec", "b"),))
    ({'spec': {'a': 1, 'b': 2}}, {'spec': {'a': 1}})
    """
    if isinstance(hidden, Essence):
        return hidden.build(body.data)
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
            if not key.startswith(kept) and not is_state(value)
        }
    if labels or annotations:
        essence["metadata"] = {
            name: value
            for name, value in (("labels", labels), ("annotations", annotations))
            if value
        }
    return without(essence, hidden) if hidden else essence


# A state as `write_stored` makes it; its annotation may have any name.
_STATE = regex(r'\{.*"uid":"[^"]*","v":\d+[,}]', re.DOTALL)


def is_state(annotation: Any) -> bool:
    """Whether an annotation's value is the state of any fnop operator."""
    return (
        isinstance(annotation, str)
        and annotation[:1] == "{"
        and _STATE.match(annotation) is not None
    )


def without(value: Any, paths: Iterable[Path]) -> Any:
    """Return a JSON value without some fields, nor mappings that are then empty.

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


def observed_at(
    body: Body, path: Path, own: tuple[Path, ...], hidden: Hidden = ()
) -> Any:
    """A field as handlers observe it: without the operator's own state.

    Of the whole metadata, only labels and annotations count: each write changes the
    rest. An author's rule for the essence decides about its fields, too.

    >>> body = Body({"status": {"mine": "{...}"}})
    >>> observed_at(body, ("status",), (("status", "mine"),)) is None
    True
    """
    if isinstance(hidden, Essence):
        return resolve(hidden.build(body.data), path)
    value, depth = body.at(path), len(path)
    if path == METADATA:
        value = essence_of(body).get("metadata")
    for each in own:
        if each[:depth] == path and len(each) > depth:
            value = _without(value, each[depth:]) or None
    if path == ANNOTATIONS and value is not None:
        states = [key for key, v in body.mapping("annotations").items() if is_state(v)]
        for key in states:
            value = _without(value, (*ANNOTATIONS[depth:], key)) or None
    return value


def observed(body: Body, path: Path, observation: Observation) -> Any:
    """The value of a field, of the essence, or of entries of an index."""
    if is_of_entries(path):
        if not is_known(path, observation.indices):
            return None
        return entries_at(path, body, observation.indices, observation.resource)
    if path:
        return observed_at(body, path, observation.own, observation.hidden)
    return essence_of(body, observation.hidden)


ANNOTATIONS = ("metadata", "annotations")
METADATA = ANNOTATIONS[:1]


def see(body: Body, observation: Observation) -> Seen:
    """The digests and values to store for this state of the object.

    They are computed once per body, as a pass over an object needs them several times.
    """
    if body.seen is None or body.seen[0] is not observation:
        body.seen = observation, _see_scopes(body, observation)
    found: Seen = body.seen[1]
    return found


def digest_at(body: Body, path: Path, observation: Observation) -> str:
    """The digest of the value that a handler of this field observes."""
    found = see(body, observation).digest(scope_name(path))
    return digest_of(observed(body, path, observation)) if found is None else found


def _see_scopes(body: Body, observation: Observation) -> Seen:
    digests: dict[Scope, str] = {}
    values: dict[Scope, Any] | None = {} if observation.kept else None
    whole = () in observation.scopes
    essence = essence_of(body, observation.hidden) if whole else None
    for path in observation.scopes:
        if is_of_entries(path) and not is_known(path, observation.indices):
            continue
        value = observed(body, path, observation) if path else essence
        scope = scope_name(path)
        digests[scope] = digest_of(value)
        if values is None or path not in observation.kept:
            continue
        # A field's value is not stored again if the essence contains it.
        if not path or () not in observation.kept or resolve(essence, path) != value:
            values[scope] = value
    return Seen(digests or NOTHING, None if values is None else FormerValues(values))


def hidden_of(ignored: tuple[Path, ...], own: tuple[Path, ...]) -> tuple[Path, ...]:
    """The fields to remove from an essence: `ignored`, and those of `own` in it.

    The state is mostly in fields that are outside of the essence anyway.
    """
    return (*ignored, *(path for path in own if _is_of_essence(path)))


def _is_of_essence(path: Path) -> bool:
    if path[:2] == ("metadata", "annotations"):
        return len(path) < 3 or not path[2].startswith(_BOOKKEEPING)
    return path[0] not in _IDENTITY


def digest_of(value: Any) -> str:
    """The digest of an observed value, as it is stored."""
    return f"{DIGEST_VERSION}:{digest(value)}"


# The digest of an absent field.
ABSENT = digest_of(None)


def completed(was: Seen, now: Seen) -> Seen:
    """Return stored digests, plus the present ones of scopes not observed then.

    A later release of an operator may have handlers of other fields.
    """
    return Seen({**now.digests, **was.digests}, was.values or now.values)


def value_at(seen: Seen | None, path: Path) -> Any:
    """The previous value of a field; None if it was absent or is unknown."""
    if seen is None or seen.values is None:
        return None
    scope, values = scope_name(path), seen.values.parsed
    return values[scope] if scope in values else resolve(values.get(""), path)


def had_value(seen: Seen | None, path: Path) -> bool:
    """Whether a field had a value, by its digest; False if unknown."""
    found = None if seen is None else seen.digest(scope_name(path))
    return found is not None and found != digest_of(None)
