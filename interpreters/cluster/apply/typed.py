"""Values by their shape: the set of their fields, their difference, their merger.

The rules come from `structured-merge-diff/v6/typed`. Maps and structs are walked, sets
and associative lists are compared by their items, and atomic values are one field.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator, Sequence
from typing import Any, NamedTuple

from fnop.interpreters.cluster.apply.fieldsets import (
    EMPTY,
    MEMBER,
    Tree,
    element_text,
    field_key,
    is_member,
    item_key,
    joined,
    value_key,
)
from fnop.interpreters.cluster.apply.shapes import DEDUCED, Shape
from fnop.interpreters.cluster.values.golang import go_text
from fnop.interpreters.cluster.values.status import quoted

__all__ = [
    "Comparison",
    "Untypable",
    "compared",
    "fields_of",
    "fits",
    "merged",
    "reconciled",
    "shape_faults",
    "whole",
    "without",
]

ABSENT: Any = object()


class Untypable(Exception):
    """A list has two items with the same key, or one without."""


class Comparison(NamedTuple):
    """The difference of two values: members new or changed, and members removed."""

    changed: Tree
    removed: Tree

    @property
    def is_same(self) -> bool:
        """Whether the values do not differ at all."""
        return not self.changed and not self.removed


def _form_of(value: Any, shape: Shape) -> str:
    """The kind of a value by its shape: map, list, scalar (deduceAtom, handleAtom)."""
    kind = type(value)
    if kind is dict:
        if shape.is_map:
            return "map"
    elif kind is list:
        if shape.list_type:
            return "list"
    elif value is not None and shape.scalar:
        return "scalar"
    if shape.is_map:
        return "map"
    return "scalar" if shape.scalar else "list"


def _map(value: Any) -> dict[str, Any]:
    return value if type(value) is dict else EMPTY


def _list(value: Any) -> list[Any]:
    return value if type(value) is list else []


def _shape_below(shape: Shape, name: str) -> Shape:
    found = shape.fields.get(name) or shape.additional
    # A field that is not in the schema did not exist when it was stored.
    return DEDUCED if found is None else found


def key_of(item: Any, shape: Shape) -> str:
    """The key of an item in a set or an associative list."""
    if shape.list_type == "map":
        if item is None:
            raise Untypable("associative list with keys may not have a null element")
        if type(item) is not dict:
            raise Untypable("associative list with keys may not have non-map elements")
        found = {**shape.key_defaults, **item}
        values = {name: found[name] for name in shape.keys if name in found}
        if not values:
            names = " ".join(map(quoted, shape.keys))
            raise Untypable(
                "associative list with keys has an element that omits all key fields "
                f"[{names}] (and doesn't have default values for any key fields)"
            )
        return item_key(values)
    if type(item) is dict:
        raise Untypable(
            "associative list without keys has an element that's a map type"
        )
    if type(item) is list:
        raise Untypable("not supported: associative list with lists as elements")
    if item is None:
        raise Untypable(
            "associative list without keys has an element that's an explicit null"
        )
    return value_key(item)


def _items_by_key(items: list[Any], shape: Shape) -> dict[str, list[Any]]:
    """The items by their keys; stored built-in objects may contain duplicates."""
    result: dict[str, list[Any]] = {}
    for item in items:
        result.setdefault(key_of(item, shape), []).append(item)
    return result


# --------------------------------------------------------------- sets of fields


def fields_of(value: Any, shape: Shape) -> Tree:
    """All fields that an applied configuration mentions (ToFieldSet).

    Structs are not among them; maps and their entries are.
    """
    return _fields(value, shape)[0]


def _fields(value: Any, shape: Shape) -> tuple[Tree, bool]:
    """The fields below a value, and whether it is one of them itself."""
    form = _form_of(value, shape)
    if form == "scalar":
        return EMPTY, True
    if form == "map":
        if shape.atomic:
            return EMPTY, True
        result = {}
        for name, item in _map(value).items():
            below, is_field = _fields(item, _shape_below(shape, name))
            is_field = is_field or item is None or item == {}
            if is_field or name not in shape.fields:
                result[field_key(name)] = {".": MEMBER, **below} if below else MEMBER
            elif below:
                result[field_key(name)] = below
        return result, False
    if shape.list_type == "atomic":
        return EMPTY, True
    return _item_fields(value, shape), False


def _item_fields(value: Any, shape: Shape) -> Tree:
    assert shape.items is not None
    result: Tree = {}
    for key, items in _items_by_key(_list(value), shape).items():
        below = _fields(items[0], shape.items)[0] if len(items) == 1 else EMPTY
        result[key] = {".": MEMBER, **below} if below else MEMBER
    return result


def whole(value: Any, shape: Shape) -> Tree:
    """The node of a value that did not exist before: every part of it is new."""
    kind = type(value)
    result: Tree
    if kind is dict:
        if not value or not shape.is_map or shape.atomic:
            return MEMBER
        result = {".": MEMBER}
        fields, additional = shape.fields, shape.additional or DEDUCED
        for name, item in value.items():
            below = fields.get(name) or additional
            result[field_key(name)] = (
                whole(item, below) if type(item) in CONTAINERS else MEMBER
            )
        return result
    if kind is list:
        if not value or shape.list_type in ("", "atomic"):
            return MEMBER
        assert shape.items is not None
        result = {".": MEMBER}
        for key, items in _items_by_key(value, shape).items():
            one = len(items) == 1
            result[key] = whole(items[0], shape.items) if one else MEMBER
        return result
    return MEMBER


CONTAINERS = frozenset((dict, list))


# ------------------------------------------------------------------- comparing


def compared(old: Any, new: Any, shape: Shape) -> Comparison:
    """The difference of two objects of a shape; parts that are shared are skipped."""
    changed, removed = _compared_maps(_map(old), _map(new), shape)
    return Comparison(changed, removed)


def _compared_maps(
    old: dict[str, Any], new: dict[str, Any], shape: Shape
) -> tuple[Tree, Tree]:
    changed: Tree = {}
    removed: Tree = {}
    other = [n for n, value in new.items() if old.get(n, ABSENT) is not value]
    for name in other:
        before, value = old.get(name, ABSENT), new[name]
        below = _shape_below(shape, name)
        if before is ABSENT and name in shape.present:
            before = _empty_value(below, value)
        _note(field_key(name), before, value, below, changed, removed)
    if not old.keys() <= new.keys():
        for name in old.keys() - new.keys():
            before, below = old[name], _shape_below(shape, name)
            value = _empty_value(below, before) if name in shape.present else ABSENT
            _note(field_key(name), before, value, below, changed, removed)
    return changed, removed


def _empty_value(shape: Shape, other: Any) -> Any:
    """Go's empty value for a field that is always written."""
    form = _form_of(other, shape)
    if form == "scalar":
        return ABSENT
    return {} if form == "map" else []


def _note(
    key: str, old: Any, new: Any, shape: Shape, changed: Tree, removed: Tree
) -> None:
    """Record the difference of the values under one key."""
    if old is new:
        return
    if old is ABSENT:
        changed[key] = whole(new, shape)
    elif new is ABSENT:
        removed[key] = whole(old, shape)
    elif type(old) is type(new) and type(old) not in CONTAINERS:
        if old != new:
            changed[key] = MEMBER
    else:
        other, gone = _compared_values(old, new, shape)
        if other is not None:
            changed[key] = other
        if gone is not None:
            removed[key] = gone


def _compared_values(
    old: Any, new: Any, shape: Shape
) -> tuple[Tree | None, Tree | None]:
    """The changed and the removed part of a field that both have."""
    if type(old) is type(new) is dict and old and shape.is_map and not shape.atomic:
        # A shortcut for the most frequent case.
        other, gone = _compared_maps(old, new, shape)
        return other or None, gone or None
    changed: Tree | None = None
    removed: Tree | None = None
    # If only one of them is a map, they are compared in both forms.
    for form in dict.fromkeys((_form_of(old, shape), _form_of(new, shape))):
        if _is_leaf(old, new, shape, form):
            if not equal(old, new):
                changed = _join_nodes(changed, MEMBER)
            continue
        if form == "map":
            other, gone = _compared_maps(_map(old), _map(new), shape)
        else:
            other, gone = _compared_lists(_list(old), _list(new), shape)
        changed = _join_nodes(changed, other or None)
        removed = _join_nodes(removed, gone or None)
    return changed, removed


def _join_nodes(node: Tree | None, more: Tree | None) -> Tree | None:
    if node is None or more is None:
        return node if more is None else more
    return joined(node, more)


def _is_leaf(old: Any, new: Any, shape: Shape, form: str) -> bool:
    if form == "scalar":
        return True
    if form == "map":
        return shape.atomic or not (_map(old) or _map(new))
    return shape.list_type == "atomic" or not (_list(old) or _list(new))


def equal(one: Any, other: Any) -> bool:
    """Equal as JSON: 1 is 1.0, but true is not 1.

    >>> equal([1], [1.0]), equal({"a": True}, {"a": 1})
    (True, False)
    """
    if one is other:
        return True
    if type(one) is dict and type(other) is dict:
        return len(one) == len(other) and all(
            name in other and equal(value, other[name]) for name, value in one.items()
        )
    if type(one) is list and type(other) is list:
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other) and isinstance(one, bool) is isinstance(other, bool)


def _compared_lists(old: list[Any], new: list[Any], shape: Shape) -> tuple[Tree, Tree]:
    assert shape.items is not None
    changed: Tree = {}
    removed: Tree = {}
    before, after = _items_by_key(old, shape), _items_by_key(new, shape)
    for key in dict.fromkeys((*before, *after)):
        ours, theirs = before.get(key, []), after.get(key, [])
        if len(ours) <= 1 and len(theirs) <= 1:
            was = ours[0] if ours else ABSENT
            now = theirs[0] if theirs else ABSENT
            _note(key, was, now, shape.items, changed, removed)
        elif len(ours) > 1 and len(theirs) > 1:
            if not equal(ours, theirs):
                changed[key] = MEMBER
        elif len(ours) > 1:
            removed[key] = MEMBER
            if theirs:
                changed[key] = whole(theirs[0], shape.items)
        else:
            changed[key] = MEMBER
            if ours:
                removed[key] = whole(ours[0], shape.items)
    return changed, removed


# --------------------------------------------------------------------- merging


def merged(live: Any, config: Any, shape: Shape) -> Any:
    """The live value, changed by a configuration (TypedValue.Merge)."""
    if live is config:
        return live
    form = _form_of(config, shape)
    if _is_leaf(live, config, shape, form):
        return config
    if form == "map":
        result = dict(_map(live))
        for name, value in _map(config).items():
            before = result.get(name, ABSENT)
            if before is ABSENT:
                result[name] = value
            else:
                result[name] = merged(before, value, _shape_below(shape, name))
        return result
    return _merged_lists(_list(live), _list(config), shape)


def _merged_lists(live: list[Any], config: list[Any], shape: Shape) -> list[Any]:
    """Merge the items of both lists, in the order of the configuration.

    The other items keep their places between the items that both lists have.
    """
    assert shape.items is not None
    before, after = _items_by_key(live, shape), _items_by_key(config, shape)
    rest = deque((key_of(item, shape), item) for item in live)
    # The common items that are still to come, in the order of the configuration.
    shared = deque(key for key in after if key in before)
    result: list[Any] = []
    for key, items in after.items():
        result += _take_leading(rest, after, shared)
        is_next = bool(shared) and key == shared[0]
        if rest and (is_next or not shared):
            rest.popleft()
        if is_next:
            shared.popleft()
        result.append(_merged_item(before.get(key, []), items[0], shape.items))
    result += [item for key, item in rest if key not in after]
    return result


def _take_leading(
    rest: deque[tuple[str, Any]], after: Container[str], shared: Sequence[str]
) -> Iterator[Any]:
    """Take the live items before the next common item, and yield those to keep.

    A common item whose turn comes later or has passed is dropped: it has its place in
    the configuration.
    """
    while rest:
        key, item = rest[0]
        if key not in after:
            yield item
        elif not shared or key == shared[0]:
            return
        rest.popleft()


def _merged_item(live: list[Any], config: Any, shape: Shape) -> Any:
    # An item that occurs more than once is replaced, not merged.
    return merged(live[0], config, shape) if len(live) == 1 else config


# -------------------------------------------------------------------- removing


def without(value: Any, fields: Tree, shape: Shape) -> Any:
    """A value without the given fields and items (RemoveItems).

    None if nothing is left.
    """
    form = _form_of(value, shape)
    if form == "scalar":
        return value
    if form == "map":
        if shape.atomic or not _map(value):
            return None
        return _without_fields(_map(value), fields, shape)
    if shape.list_type == "atomic" or not _list(value):
        return None
    assert shape.items is not None
    result = []
    for item in _list(value):
        node = fields.get(key_of(item, shape))
        if node is None:
            result.append(item)
        elif not is_member(node):
            result.append(without(item, node, shape.items))
    return result or None


def _without_fields(value: dict[str, Any], fields: Tree, shape: Shape) -> Any:
    result = {}
    for name, item in value.items():
        node = fields.get(field_key(name))
        if node is None:
            result[name] = item
        elif not is_member(node):
            result[name] = without(item, node, _shape_below(shape, name))
    return result or None


# ----------------------------------------------------------------- new schemas


def reconciled(fields: Tree, shape: Shape) -> Tree:
    """A set that was written under another schema (ReconcileFieldSetWithSchema).

    A value that is atomic now becomes one field.
    """
    result: Tree | None = None
    for key, node in fields.items():
        below = shape.of(key[2:]) if key[:2] == "f:" else shape.items
        if not node or below is None or _is_anything(below):
            continue
        new = MEMBER if _is_whole(below) else reconciled(node, below)
        if new is not node:
            result = dict(fields) if result is None else result
            result[key] = new
    return fields if result is None else result


def _is_anything(shape: Shape) -> bool:
    return shape.is_map and not shape.fields and shape.additional is DEDUCED


def _is_whole(shape: Shape) -> bool:
    if shape.is_map:
        return shape.atomic
    return not shape.scalar and shape.list_type == "atomic"


# ------------------------------------------------------------------- validating


def fits(value: Any, shape: Shape) -> bool:
    """Whether a value is of its type; an item may occur more than once.

    >>> fits({"a": [1, 1]}, DEDUCED), fits(1, Shape("string"))
    (True, False)
    """
    if value is None or shape is DEDUCED:
        return True
    kind = type(value)
    if kind is dict:
        if not shape.is_map:
            return False
        fields, additional = shape.fields, shape.additional
        for name, item in value.items():
            below = fields.get(name) or additional
            # Fields that are not in the schema have been pruned.
            if below is not None and not fits(item, below):
                return False
        return True
    if kind is list:
        if shape.list_type:
            return _items_fit(value, shape)
    elif shape.scalar:
        return kind in SCALARS.get(shape.scalar, ALL_SCALARS)
    return next(shape_faults(value, shape), None) is None


ALL_SCALARS = frozenset((str, bool, int, float))
# The types of the values of a typed scalar.
SCALARS = {
    "numeric": frozenset((int, float)),
    "string": frozenset((str,)),
    "boolean": frozenset((bool,)),
}


def _items_fit(value: list[Any], shape: Shape) -> bool:
    below = shape.items
    assert below is not None
    if shape.list_type != "atomic":
        try:
            for item in value:
                key_of(item, shape)
        except Untypable:
            return False
    return all(fits(item, below) for item in value)


def shape_faults(
    value: Any, shape: Shape, place: str = "", *, repeats: bool = False
) -> Iterator[str]:
    """The reasons why a value is not of its type, in the server's words.

    With `repeats`, items may occur more than once; this is allowed only in stored
    values.
    """
    form = _form_of(value, shape)
    if value is None:
        return
    if form == "scalar":
        yield from _scalar_faults(value, shape, place)
    elif form == "map":
        if type(value) is not dict:
            yield _with_place(place, f"expected map, got {_go_struct(value)}")
            return
        for name, item in value.items():
            below = shape.of(name)
            if below is None:
                yield _with_place(f"{place}.{name}", "field not declared in schema")
                return
            yield from shape_faults(item, below, f"{place}.{name}", repeats=repeats)
    elif type(value) is not list:
        yield _with_place(place, f"expected list, got {_go_struct(value)}")
    else:
        yield from _list_faults(value, shape, place, repeats)


def _list_faults(
    value: list[Any], shape: Shape, place: str, repeats: bool
) -> Iterator[str]:
    assert shape.items is not None
    seen: set[str] = set()
    for index, item in enumerate(value):
        element = f"[{index}]"
        if shape.list_type != "atomic":
            try:
                key = key_of(item, shape)
            except Untypable as fault:
                yield _with_place(place, f"element {index}: {fault}")
                return
            element = element_text(key)
            if key in seen and not repeats:
                yield _with_place(place, f"duplicate entries for key {element}")
            seen.add(key)
        below = place + element
        yield from shape_faults(item, shape.items, below, repeats=repeats)


def _scalar_faults(value: Any, shape: Shape, place: str) -> Iterator[str]:
    kind = type(value)
    if kind in SCALARS.get(shape.scalar, ALL_SCALARS):
        return
    if shape.scalar == "numeric":
        yield _with_place(
            place, f"expected numeric (int or float), got {GO_TYPES[kind]}"
        )
    elif shape.scalar == "string":
        yield _with_place(place, f"expected string, got {_go_syntax(value)}")
    elif shape.scalar == "boolean":
        yield _with_place(place, f"expected boolean, got {_go_struct(value)}")


GO_TYPES = {
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    dict: "map[string]interface {}",
    list: "[]interface {}",
}


def _with_place(place: str, why: str) -> str:
    return f"{place}: {why}" if place else why


def _go_struct(value: Any) -> str:
    return f"&{{{go_text(value)}}}"


def _go_syntax(value: Any) -> str:
    """A scalar value as Go's `%#v` prints it."""
    return f"&value.valueUnstructured{{Value:{go_text(value)}}}"
