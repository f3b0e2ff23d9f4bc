"""Sets of fields in the form in which `managedFields` shows them (FieldsV1).

A set is a tree of dicts: `{"f:spec": {"f:size": {}}}`. A node without children is a
member of the set. A node with children is a member, too, if it holds `"."`. Trees are
never changed once they are made. Operations share unchanged parts, and return their
first argument itself if nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import orjson

from fnop.interpreters.cluster.apply.shapes import Shape
from fnop.interpreters.cluster.values.status import quoted

__all__ = [
    "EMPTY",
    "MEMBER",
    "Tree",
    "canonical",
    "difference",
    "element_text",
    "field_key",
    "has",
    "interned",
    "intersection",
    "is_member",
    "item_key",
    "joined",
    "named",
    "path_text",
    "paths",
    "pruned",
    "union",
    "value_key",
]

Tree = dict[str, Any]
Path = tuple[str, ...]
EMPTY: Tree = {}
MEMBER: Tree = {}


def is_member(node: Tree) -> bool:
    """Whether a node is itself in the set."""
    return not node or "." in node


# ------------------------------------------------------------------- algebra


def union(one: Tree, other: Tree) -> Tree:
    """All members of both.

    >>> union({"f:a": {}}, {"f:a": {"f:b": {}}})
    {'f:a': {'.': {}, 'f:b': {}}}
    """
    result: Tree | None = None
    for key, node in other.items():
        mine = one.get(key)
        if mine is None:
            new = node
        else:
            new = joined(mine, node)
            if new is mine:
                continue
        if result is None:
            result = dict(one)
        result[key] = new
    return one if result is None else result


def joined(mine: Tree, node: Tree) -> Tree:
    """The union of the nodes under one key in two sets."""
    if mine is node:
        return mine
    if not mine:
        return _with_self(node) if node else mine
    return union(mine, node) if node else _with_self(mine)


def _with_self(node: Tree) -> Tree:
    return node if "." in node else {".": MEMBER, **node}


def difference(one: Tree, other: Tree) -> Tree:
    """The members of the first that the second does not have.

    Parents and children are separate members (Set.Difference):

    >>> difference({"f:a": {".": {}, "f:b": {}}}, {"f:a": {}})
    {'f:a': {'f:b': {}}}
    """
    if not one or not other:
        return one
    return _subtract_node(one, other) or EMPTY


def _subtract_node(mine: Tree, node: Tree) -> Tree | None:
    """A node without the members of another; None if nothing is left."""
    if not mine:
        return None if is_member(node) else mine
    result: Tree | None = None
    if not node:
        if "." not in mine:
            return mine
        result = dict(mine)
        del result["."]
        return result
    for key, theirs in node.items():
        ours = mine.get(key)
        if ours is None:
            continue
        new = None if key == "." else _subtract_node(ours, theirs)
        if new is ours:
            continue
        if result is None:
            result = dict(mine)
        if new is None:
            del result[key]
        else:
            result[key] = new
    return mine if result is None else _normalized_node(result)


def _normalized_node(node: Tree) -> Tree | None:
    """A node from which members were removed, in its written form."""
    if len(node) == 1 and "." in node:
        return MEMBER
    return node or None


def pruned(one: Tree, other: Tree) -> Tree:
    """The first set without the members of the second and those below them.

    >>> pruned({"f:a": {"f:b": {}}, "f:c": {}}, {"f:a": {}})
    {'f:c': {}}
    """
    result: Tree | None = None
    for key, theirs in other.items():
        ours = one.get(key)
        if ours is None or key == ".":
            continue
        new = None if is_member(theirs) else pruned(ours, theirs)
        if new is ours:
            continue
        if result is None:
            result = dict(one)
        new = _normalized_node(new) if new else None
        if new is None:
            del result[key]
        else:
            result[key] = new
    return one if result is None else result


def intersection(one: Tree, other: Tree) -> Tree:
    """The members that both sets have.

    >>> intersection({"f:a": {".": {}, "f:b": {}}}, {"f:a": {}})
    {'f:a': {}}
    """
    result = {}
    for key, ours in one.items():
        theirs = other.get(key)
        if theirs is not None and key != ".":
            common = _common_node(ours, theirs)
            if common is not None:
                result[key] = common
    return result


def _common_node(ours: Tree, theirs: Tree) -> Tree | None:
    if ours is theirs:
        return ours
    children = intersection(ours, theirs)
    if is_member(ours) and is_member(theirs):
        return {".": MEMBER, **children} if children else MEMBER
    return children or None


def has(tree: Tree, path: Path) -> bool:
    """Whether the field at a path is a member.

    >>> has({"f:a": {"f:b": {}}}, ("f:a",))
    False
    """
    node: Tree | None = tree
    for key in path:
        node = None if node is None else node.get(key)
    return node is not None and is_member(node)


def named(tree: Tree, shape: Shape | None) -> Tree:
    """The set with all structs that hold a member (EnsureNamedFieldsAreMembers).

    Sets of applied configurations hold the fields of structs, not the structs.
    """
    result = {}
    for key, node in tree.items():
        below = _shape_below(shape, key)
        if node and key != ".":
            node = named(node, below)
            is_field = shape is not None and key[:2] == "f:" and key[2:] in shape.fields
            if is_field:
                node = _with_self(node)
        result[key] = node
    return result


def _shape_below(shape: Shape | None, key: str) -> Shape | None:
    if shape is None:
        return None
    if key[:2] == "f:":
        return shape.of(key[2:])
    return shape.items if key[:2] == "k:" else None


# ----------------------------------------------------------- path elements


@lru_cache(maxsize=16384)
def field_key(name: str) -> str:
    """The key of a field: always the same string object.

    >>> field_key("size")
    'f:size'
    """
    return f"f:{name}"


def value_key(value: Any) -> str:
    """The key of an item of a set.

    >>> value_key("x")
    'v:"x"'
    """
    return f"v:{_json(value)}"


def item_key(values: dict[str, Any]) -> str:
    """The key of an item of an associative list, by the values of its key fields.

    >>> item_key({"protocol": "TCP", "port": 80})
    'k:{"port":80,"protocol":"TCP"}'
    """
    return f"k:{_json(values)}"


def _json(value: Any) -> str:
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    # Go's encoder escapes what could end a script in HTML.
    if "<" in text or ">" in text or "&" in text:
        for letter in "<>&":
            text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _rank(key: str) -> tuple[Any, ...]:
    """The order of path elements: fields, keys, values, indices."""
    kind, rest = key[:2], key[2:]
    if kind == "f:":
        return (0, rest)
    if kind == "k:":
        values = sorted(orjson.loads(rest).items())
        return (1, [(name, _value_rank(value)) for name, value in values])
    if kind == "v:":
        return (2, _value_rank(orjson.loads(rest)))
    return (3, int(rest))


def _value_rank(value: Any) -> tuple[Any, ...]:
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, (int, float)):
        return (0, value)
    return (1, value) if isinstance(value, str) else (3, str(value))


def paths(tree: Tree, prefix: Path = ()) -> Iterator[Path]:
    """All members in the server's order: a node before the members below it."""
    keys = sorted((key for key in tree if key != "."), key=_rank)
    for key in keys:
        if is_member(tree[key]):
            yield (*prefix, key)
    for key in keys:
        yield from paths(tree[key], (*prefix, key))


def path_text(path: Path) -> str:
    """A path as the server prints it.

    >>> path_text(("f:ports", 'k:{"port":80}', "f:name"))
    '.ports[port=80].name'
    """
    return "".join(map(element_text, path))


def element_text(key: str) -> str:
    """One element of a path as the server prints it."""
    kind, rest = key[:2], key[2:]
    if kind == "f:":
        return f".{rest}"
    if kind == "k:":
        fields = sorted(orjson.loads(rest).items())
        return f"[{','.join(f'{name}={_value_text(value)}' for name, value in fields)}]"
    if kind == "v:":
        return f"[={_value_text(orjson.loads(rest))}]"
    return f"[{rest}]"


def _value_text(value: Any) -> str:
    return quoted(value) if isinstance(value, str) else orjson.dumps(value).decode()


# ------------------------------------------------------------- their storage


def interned(tree: Tree) -> Tree:
    """The tree with its keys in order; equal trees become one object.

    Thousands of similar objects have the same few sets.
    """
    return _cached_tree(orjson.dumps(tree, option=orjson.OPT_SORT_KEYS))


@lru_cache(maxsize=4096)
def _cached_tree(text: bytes) -> Tree:
    tree: Tree = orjson.loads(text)
    return tree


KINDS = frozenset(("f:", "k:", "v:", "i:"))


def canonical(raw: Any) -> Tree:
    """A set from a client in the canonical form; ValueError if it is malformed.

    >>> canonical({"f:a": {".": {}}, "x:b": {}})
    {'f:a': {}}
    """
    return {key: node for key, node in _canonical_tree(raw).items() if key != "."}


def _canonical_tree(raw: Any) -> Tree:
    if not isinstance(raw, dict):
        raise ValueError("not a set of fields")
    result: Tree = {}
    for key, below in raw.items():
        if key == ".":
            result[key] = MEMBER
            continue
        if len(key) < 2 or key[1] != ":":
            raise ValueError(f"missing colon: {key}")
        if key[:2] not in KINDS:
            continue  # perhaps a later version knows it
        result[_canonical_key(key)] = _canonical_tree(below)
    return MEMBER if set(result) == {"."} else result


def _canonical_key(key: str) -> str:
    kind, rest = key[:2], key[2:]
    if kind == "f:":
        return field_key(rest)
    if kind == "i:":
        return f"i:{int(rest)}"
    value = orjson.loads(rest)  # its errors are ValueErrors
    if kind == "v:":
        return value_key(value)
    if not isinstance(value, dict):
        raise ValueError(f"not a key: {key}")
    return item_key(value)
