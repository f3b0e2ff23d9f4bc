"""Changes that a user can make to an object: of each field, by value and schema.

A field gets another value, is unset, or is set if it was absent. A map loses a key and
gets one; a list becomes shorter and longer. The API server decides which changes it
accepts (`fnop.interpreters.check.campaign.walks`).
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from typing import Any

from msgspec import Struct

__all__ = ["Change", "Sort", "at", "changes_of", "others_like"]

Schema = Mapping[str, Any]
# The keys of a map, and the items of a list, that are edited.
_KEYS_MAX = 3
_PAUSES = re.compile(
    "pause|suspend|freez|frozen|hibernat|unmanaged|maintenance|(dry.?run)",
    re.IGNORECASE,
)
# Fields that do not express a user's wish, but belong to the stored object.
_HEAD = frozenset(("apiVersion", "kind", "metadata", "status"))
# Values that schemas often accept, and operators do not.
_ODD: Mapping[type, tuple[Any, ...]] = {
    str: ("", "not valid!"),
    int: (0, -1),
    float: (0.0, -1.0),
    list: ([],),
}


class Sort(Enum):
    """The sorts of changes, by their effect on a field."""

    CHANGE = "change"
    SWITCH = "switch"  # to another one of few values, which may turn a part off
    UNSET = "unset"
    SET = "set"
    ODD = "odd"  # a value that may be a mistake


class Change(Struct, frozen=True):
    """A change of one field as a merge patch, and the patch that reverts it.

    A field is `optional` if its schema names it, and does not require it.
    """

    sort: Sort
    path: str
    there: dict[str, Any]
    back: dict[str, Any]
    optional: bool = False

    @property
    def is_of_pauses(self) -> bool:
        """Whether the field's name says that the operator must do nothing.

        Existing objects then stay as they were, regardless of the rest of the spec.

        >>> Change(Sort.CHANGE, "spec.suspend", {}, {}).is_of_pauses
        True
        """
        return _PAUSES.search(self.path.rpartition(".")[2]) is not None

    @property
    def resumes(self) -> bool:
        """Whether it is the end of a pause.

        >>> there, back = {"spec": {"paused": False}}, {"spec": {"paused": True}}
        >>> Change(Sort.SWITCH, "spec.paused", there, back).resumes
        True
        """
        found: Any = self.there
        while isinstance(found, Mapping) and found:
            found = next(iter(found.values()))
        return self.sort is Sort.SWITCH and found is False and self.is_of_pauses


def changes_of(
    manifest: Mapping[str, Any],
    schema: Schema,
    sampled: Callable[[Schema], Any],
) -> Iterator[Change]:
    """The changes of all fields of a manifest, by the schema of its kind.

    A field may have several changes of a sort: the likeliest comes first. `sampled`
    returns a value for a schema. Without a schema (`{}`) only the present fields are
    known.

    >>> made = changes_of({"spec": {"size": 1}}, {}, str)
    >>> [(each.sort.value, each.there["spec"]) for each in made][:3]
    [('change', {'size': 2}), ('change', {'size': 0}), ('odd', {'size': 0})]
    """
    known, manifest = schema.get("properties") or {}, _as_stored(manifest)
    for stanza, value in manifest.items():
        if stanza not in _HEAD and isinstance(value, Mapping):
            node = known.get(stanza) or _map_of(stanza)
            encoded = stanza == "data" and manifest.get("kind") == "Secret"
            yield from _Reader(sampled, encoded).inside(value, node, (stanza,))
    for stanza, node in known.items():
        if stanza not in _HEAD and stanza not in manifest:
            yield Change(Sort.SET, stanza, {stanza: sampled(node)}, {stanza: None})
    meta = manifest.get("metadata") or {}
    for stanza in ("labels", "annotations"):
        if isinstance(meta.get(stanza), Mapping):
            node = {"additionalProperties": {"type": "string"}}
            found = meta[stanza]
            yield from _Reader(sampled).inside(found, node, ("metadata", stanza))


def _as_stored(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """A manifest as the API server stores it: the texts of a Secret are data.

    Removing a text later changes nothing.

    >>> _as_stored({"kind": "Secret", "stringData": {"token": "abc"}})
    {'kind': 'Secret', 'data': {'token': 'YWJj'}}
    """
    texts = manifest.get("stringData")
    if manifest.get("kind") != "Secret" or not isinstance(texts, Mapping):
        return manifest
    encoded = {key: b64encode(str(e).encode()).decode() for key, e in texts.items()}
    rest = {key: each for key, each in manifest.items() if key != "stringData"}
    return {**rest, "data": {**(manifest.get("data") or {}), **encoded}}


def _map_of(stanza: str) -> Schema:
    """The schema of a stanza of built-in kinds: data maps names to texts."""
    is_map = stanza in ("data", "binaryData")
    return {"additionalProperties": {"type": "string"}} if is_map else {}


class _Reader(Struct, frozen=True):
    """Derives changes from a value and its schema; `encoded` values are in base64."""

    sampled: Callable[[Schema], Any]
    encoded: bool = False

    def inside(
        self, found: Mapping[str, Any], node: Schema, path: tuple[str, ...]
    ) -> Iterator[Change]:
        """The changes of the fields of a mapping."""
        fields: Mapping[str, Schema] = node.get("properties") or {}
        values = node.get("additionalProperties")
        values = values if isinstance(values, Mapping) else None
        for number, (key, value) in enumerate(found.items()):
            if values is not None and key not in fields and number >= _KEYS_MAX:
                continue
            yield from self._changes_of_field(
                value, fields.get(key) or values or {}, (*path, key)
            )
            yield Change(
                Sort.UNSET,
                ".".join((*path, key)),
                at(path, {key: None}),
                at(path, {key: value}),
                key in fields and key not in (node.get("required") or ()),
            )
        for key, child in fields.items():
            if key not in found:
                yield self._set_field(path, key, self.sampled(child))
        if values is not None and (found or not fields):
            like = next(iter(found.values()), None)
            yield self._set_field(path, "added", like or self.sampled(values))

    def _set_field(self, path: tuple[str, ...], key: str, value: Any) -> Change:
        there, back = at(path, {key: value}), at(path, {key: None})
        return Change(Sort.SET, ".".join((*path, key)), there, back)

    def _changes_of_field(
        self, value: Any, node: Schema, path: tuple[str, ...]
    ) -> Iterator[Change]:
        """The changes of a present field: of its content, or of all of it."""
        if isinstance(value, Mapping) and value:
            yield from self.inside(value, node, path)
            return
        is_switch = isinstance(value, bool) or bool(node.get("enum"))
        for sort, values in (
            (
                Sort.SWITCH if is_switch else Sort.CHANGE,
                self._other_values(value, node),
            ),
            (Sort.ODD, iter(_ODD.get(type(value), ()))),
        ):
            for other in values:
                if other != value:
                    yield Change(sort, ".".join(path), at(path, other), at(path, value))

    def _other_values(self, value: Any, node: Schema) -> Iterator[Any]:
        yield from (each for each in node.get("enum") or () if each != value)
        if self.encoded and isinstance(value, str):
            yield from _others_in_base64(value)
            return
        yield from others_like(value)
        if isinstance(value, list):
            items = node.get("items") or {}
            another = self.sampled(items) if items else None
            if another and another not in value:
                yield [*value, another]


def _others_in_base64(value: str) -> Iterator[str]:
    """Other texts in base64; empty for any other text.

    >>> [*_others_in_base64("YQ==")]
    ['YS0y']
    """
    with suppress(ValueError):
        for other in others_like(b64decode(value, validate=True).decode()):
            yield b64encode(other.encode()).decode()


def others_like(value: Any) -> Iterator[Any]:
    """Other values of the same type, the likeliest first.

    Shorter lists come first: the operator has to delete what it made for the removed
    item.

    >>> [*others_like("1Gi")], [*others_like(["a", "b"])]
    (['2Gi', '1Gi-2'], [['a'], ['a', 'b', 'b-2']])
    """
    match value:
        case bool():
            yield not value
        case int():
            yield value + 1
            if value > 0:
                yield value - 1
        case float():
            yield value + 0.5
        case str():
            number = re.match(r"\d+", value)
            if number:
                yield f"{int(number[0]) + 1}{value[number.end() :]}"
            yield f"{value}-2" if value else "changed"
        case [*rest, last]:
            others = [*_items_like(last)]
            if not rest:
                yield from ([other] for other in others)
            yield rest
            yield from ([*value, other] for other in others[:1] if other not in value)
        case _:
            pass


def _items_like(value: Any) -> Iterator[Any]:
    """Other items of a list: a mapping differs in its first changeable field."""
    if not isinstance(value, Mapping):
        yield from others_like(value)
        return
    for key, each in value.items():
        for other in others_like(each):
            yield {**value, key: other}


def at(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """The merge patch that puts a value at a path.

    >>> at(("spec", "size"), 2)
    {'spec': {'size': 2}}
    """
    for key in reversed(path):
        value = {key: value}
    found: dict[str, Any] = value
    return found
