"""The fields of an object that a field manager owns, read from `managedFields`.

Kubernetes (server-side apply, field management): each manager's fields are a tree. Its
keys are `f:<name>` for a field, `k:<keys>` and `v:<value>` for an element of a list,
and `.` for the item itself. A tree without keys is a field that is owned as a whole.
Any other client that changes a field takes it from the managers that had applied it. So
a field that has stopped being ours has drifted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import orjson

from fnop.core.values.paths import Part, element_of
from fnop.core.values.table import NOTHING
from fnop.effects.regexes import regex
from fnop.effects.values import digest, same_json

__all__ = [
    "applied_alone",
    "applied_with",
    "differing",
    "fields_digest",
    "folded",
    "lacking",
    "lost_fields",
    "managers_at",
    "managers_of",
    "manages",
    "names_in",
    "owned_element",
]

# Not kept among a manager's fields, since they name the object itself.
_NAMES = frozenset(("apiVersion", "kind"))
_METADATA = frozenset(("name", "namespace", "uid", "resourceVersion"))


def lost_fields(
    manifest: Mapping[str, Any], live: Mapping[str, Any], manager: str
) -> list[str]:
    """The fields of an applied manifest that its manager has lost.

    They are paths such as `spec.ports[0].port`, in the manifest's order. A number with
    another value is lost, too: no server changes the form of a number, as it does with
    quantities and times.

    >>> entry = {"manager": "me", "operation": "Apply",
    ...          "fieldsV1": {"f:spec": {"f:size": {}}}}
    >>> live = {"metadata": {"managedFields": [entry]}}
    >>> lost_fields({"spec": {"size": 1, "mode": "a"}}, live, "me")
    ['spec.mode']
    """
    owned = _fields_of(live, manager)
    others = [
        each.get("fieldsV1")
        for each in _managed_entries(live)
        if not _is_by(each, manager, "Apply")
    ]
    found: list[str] = []
    for name, value in manifest.items():
        if name in _NAMES:
            continue
        if name == "metadata" and isinstance(value, Mapping):
            value = {k: v for k, v in value.items() if k not in _METADATA}
            if not value:
                continue
        theirs = _trees_below(others, name)
        found += _lost_paths(
            value, owned.get(f"f:{name}"), live.get(name), name, theirs
        )
    return found


def _fields_of(live: Mapping[str, Any], manager: str) -> Mapping[str, Any]:
    for entry in _managed_entries(live):
        if _is_by(entry, manager, "Apply"):
            fields = entry.get("fieldsV1")
            return fields if isinstance(fields, Mapping) else {}
    return {}


def fields_digest(live: Mapping[str, Any], manager: str) -> str:
    """A digest of the fields that a manager owns in the object itself, and its spec.

    API servers before 1.22 let the scale subresource change a spec and leave the
    managed fields unchanged.

    >>> entry = {"manager": "me", "operation": "Apply", "fieldsV1": {"f:data": {}}}
    >>> live = {"metadata": {"managedFields": [entry, {"manager": "you"}]}}
    >>> fields_digest(live, "me") == fields_digest(live, "you")
    False
    """
    mine = [
        [each.get("operation"), each.get("fieldsV1")]
        for each in _managed_entries(live)
        if each.get("manager") == manager and not each.get("subresource")
    ]
    return digest([mine, live.get("spec")])


def differing(manifest: Mapping[str, Any], live: Mapping[str, Any]) -> list[str]:
    """The fields of a manifest that have other values in an object, as paths.

    It is for people: a quantity may have another form in the object.

    >>> differing({"kind": "K", "data": {"a": 1, "b": 2}}, {"data": {"a": 1, "b": 3}})
    ['data.b']
    """
    found: list[str] = []
    for name, value in manifest.items():
        if name not in _NAMES:
            found += _differing_paths(value, live.get(name), name)
    return found


def _differing_paths(value: Any, live: Any, path: str) -> Iterator[str]:
    if isinstance(value, Mapping) and isinstance(live, Mapping):
        for name, item in value.items():
            if path != "metadata" or name not in _METADATA:
                yield from _differing_paths(
                    item, live.get(name), _join_path(path, name)
                )
    elif value is not None and not same_json(value, live):
        yield path


def lacking(expected: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """The fields that are expected in an object and missing or different, as sentences.

    Unexpected fields do not matter. A list must have as many items as expected. null
    stands for an absent field.

    >>> lacking({"a": [{"b": 1}], "c": None}, {"a": [{"b": 2, "d": 3}], "e": 4})
    ['a[0].b is 2, expected 1']
    """
    return [*_lacking_paths(expected, found, "")]


def _lacking_paths(expected: Any, found: Any, path: str) -> Iterator[str]:
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        for name, value in expected.items():
            if value is not None or found.get(name) is not None:
                below = _join_path(path, name) if path else str(name)
                yield from _lacking_paths(value, found.get(name), below)
    elif (
        isinstance(expected, list)
        and isinstance(found, list)
        and len(expected) == len(found)
    ):
        for number, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from _lacking_paths(one, other, f"{path}[{number}]")
    elif not same_json(expected, found):
        yield f"{path} is {_json_text(found)}, expected {_json_text(expected)}"


def _json_text(value: Any) -> str:
    return "missing" if value is None else orjson.dumps(value).decode()


def applied_alone(live: Mapping[str, Any], manager: str) -> bool:
    """Whether all fields of an object that anybody manages are applied by one manager.

    >>> mine = {"manager": "me", "operation": "Apply"}
    >>> applied_alone({"metadata": {"managedFields": [mine]}}, "me")
    True
    >>> applied_alone({"metadata": {"managedFields": [mine, {"manager": "x"}]}}, "me")
    False
    """
    entries = [*_managed_entries(live)]
    return len(entries) == 1 and _is_by(entries[0], manager, "Apply")


def _is_by(entry: Mapping[str, Any], manager: str, operation: str) -> bool:
    """Whether an entry belongs to a manager, and is about the object itself."""
    is_whole = not entry.get("subresource")
    found = entry.get("manager"), entry.get("operation")
    return is_whole and found == (manager, operation)


def _managed_entries(live: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    found = (live.get("metadata") or {}).get("managedFields")
    entries = found if isinstance(found, list) else ()
    yield from (each for each in entries if isinstance(each, Mapping))


def _join_path(path: str, name: str) -> str:
    """The path of a field, as Kubernetes writes it for keys with dots.

    >>> _join_path("data", "app.conf"), _join_path("spec", "size")
    ('data[app.conf]', 'spec.size')
    """
    return f"{path}[{name}]" if "." in name else f"{path}.{name}"


def names_in(path: str) -> list[str]:
    """The names in a path of `lost_fields`, up to the first list.

    >>> names_in("metadata.annotations[e.com/a]"), names_in("spec.ports[0].port")
    (['metadata', 'annotations', 'e.com/a'], ['spec', 'ports'])
    """
    found: list[str] = []
    for each in _NAME.finditer(path):
        if each[1] is not None and each[1].isdigit():
            break
        found.append(each[1] or each[2])
    return found


_NAME = regex(r"\[([^\]]*)\]|([^.\[\]]+)")


def _trees_below(trees: Iterable[Any], name: str) -> list[Any]:
    """The parts of some field trees below a field."""
    key = f"f:{name}"
    return [each[key] for each in trees if isinstance(each, dict) and key in each]


def _lost_paths(
    value: Any, owned: Any, live: Any, path: str, others: Sequence[Any] = ()
) -> Iterator[str]:
    """The fields within a JSON value that a tree of owned fields lacks.

    `others` are the trees of other managers, for the same value.
    """
    if not isinstance(owned, dict):
        yield from _leaf_paths(value, live, path, others)
    elif _is_dropped(value, live):
        return
    elif not owned and isinstance(value, dict):
        yield from _taken(value, live, path, others)
    elif not owned or not isinstance(value, (dict, list)):
        if isinstance(value, int) and isinstance(live, int) and value != live:
            yield path  # by the scale subresource, which older servers do not track
    elif isinstance(value, dict):
        for name, item in value.items():
            theirs, where = _trees_below(others, name), _join_path(path, name)
            yield from _lost_paths(
                item, owned.get(f"f:{name}"), _item_at(live, name), where, theirs
            )
    else:
        for place, item in enumerate(value):
            yield from _lost_paths(
                item, owned_element(item, owned), None, f"{path}[{place}]"
            )


def _taken(
    value: Mapping[str, Any], live: Any, path: str, others: Sequence[Any]
) -> Iterator[str]:
    """The fields of a mapping that others have taken, or that are missing.

    Its manager owns the mapping as a whole. Or it owns only the mapping itself, after
    its last field was taken away. Both are written as `{}`.
    """
    for name, item in value.items():
        theirs, where = _trees_below(others, name), _join_path(path, name)
        if isinstance(item, dict) and item:
            yield from _taken(item, _item_at(live, name), where, theirs)
        elif theirs:
            yield where
        elif isinstance(live, dict) and name not in live:
            yield from () if item in (None, {}, []) else (where,)


def _item_at(live: Any, name: str) -> Any:
    return live.get(name) if isinstance(live, dict) else None


def _leaf_paths(
    value: Any, live: Any, path: str, others: Sequence[Any]
) -> Iterator[str]:
    """Yield the fields within mappings; a list is one field.

    If the API server has put defaults into an empty mapping, such as a Deployment's
    `strategy: {}`, no manager owns it. The same is true if others have put fields into
    it. It is then as it was applied. But a manager that owns it as a whole, such as a
    `podSelector`, has replaced it.
    """
    if isinstance(value, dict) and value:
        for name, item in value.items():
            theirs, where = _trees_below(others, name), _join_path(path, name)
            yield from _leaf_paths(item, _item_at(live, name), where, theirs)
    elif value == {} and isinstance(live, dict):
        yield from (path,) if live and {} in others else ()
    elif not _is_dropped(value, live):
        yield path


def _is_dropped(value: Any, live: Any) -> bool:
    """Whether a value counts as absent: the API server may drop empty values."""
    return value is None or (value in ({}, []) and not live)


def owned_element(item: Any, owned: Mapping[str, Any]) -> Any:
    """The tree of the fields of a list's element; None if it is not owned.

    >>> owned_element({"name": "x"}, {'k:{"name":"x"}': {"f:name": {}}})
    {'f:name': {}}
    >>> owned_element("a", {'v:"a"': {}}), owned_element("b", {'v:"a"': {}})
    ({}, None)
    """
    for key, tree in owned.items():
        kind, _, text = key.partition(":")
        if kind == "v" and _parse_json(text) == item:
            return tree
        if kind == "k" and isinstance(item, Mapping):
            keys = _parse_json(text)
            # Keys may have defaults, such as a port's protocol.
            if all(item.get(name, value) == value for name, value in keys.items()):
                return tree
    return None


def _parse_json(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}


def folded(
    live: Mapping[str, Any],
    manager: str,
    mark: Sequence[str] = (),
    manifest: Mapping[str, Any] = NOTHING,
) -> list[dict[str, Any]] | None:
    """The managed fields, with a manager's updates counted as applied by it.

    None if they are so already. Suppose the same manager has both applied and updated a
    field, for example by creating the object. The field would then stay when it is not
    applied any longer (Kubernetes: "upgrading from client-side apply to server-side
    apply"). So would a field that the manager has applied under a former name: any
    manager that has applied the field of the path `mark` counts as the same.

    A child may be an object that the operator also handles. The finalizer and the state
    that it has put there are not applied, and stay.

    Other managers do not keep a bare mapping whose fields are in the manifest. API
    servers before 1.21 would give such a manager all of the fields at the next update,
    so that they would stay, too.

    >>> mine = {"manager": "me", "operation": "Update", "fieldsV1": {"f:data": {}}}
    >>> folded({"metadata": {"managedFields": [mine]}}, "me")
    [{'manager': 'me', 'operation': 'Apply', 'fieldsV1': {'f:data': {}}}]
    """
    parts = [_split_entry(each, manager) for each in _managed_entries(live)]
    entries = [rest for rest, _ in parts if rest is not None]
    states = [state for _, state in parts if state is not None]
    applied = [each for each in entries if _is_by(each, manager, "Apply")]
    merged = _entries_to_merge(entries, manager, mark)
    found = [each for each in entries if each not in (*applied, *merged)] + states
    mine = _fields_of(live, manager)
    others = [_without_bare(each, mine, manifest, live) for each in found]
    if not merged and others == found:
        return None
    ours = [_one_entry((*applied, *merged), manager)] if merged else applied
    return [*map(dict, ours), *(dict(each) for each in others if each.get("fieldsV1"))]


def _entries_to_merge(
    entries: Sequence[Mapping[str, Any]], manager: str, mark: Sequence[str]
) -> list[Mapping[str, Any]]:
    """The entries of the manager's updates, and of what it applied by former names."""
    updates = [each for each in entries if _is_by(each, manager, "Update")]
    if not mark:
        return updates
    return updates + [each for each in entries if _is_former(each, manager, mark)]


def _one_entry(entries: Sequence[Mapping[str, Any]], manager: str) -> dict[str, Any]:
    """Merge managed fields into one entry of the manager, as if it had applied all."""
    tree: Mapping[str, Any] = {}
    for each in entries:
        tree = _unite_trees(tree, each.get("fieldsV1") or {})
    words = {"manager": manager, "operation": "Apply", "fieldsV1": tree}
    return {**entries[0], **words}


_Entry: TypeAlias = Mapping[str, Any]


def _split_entry(entry: _Entry, manager: str) -> tuple[_Entry | None, _Entry | None]:
    """Split an entry: the rest, and the object's state that the manager has updated.

    >>> tree = {"f:data": {}, "f:metadata": {"f:finalizers": {".": {}}}}
    >>> entry = {"manager": "me", "operation": "Update", "fieldsV1": tree}
    >>> [each["fieldsV1"] for each in _split_entry(entry, "me")]
    [{'f:data': {}}, {'f:metadata': {'f:finalizers': {'.': {}}}}]
    """
    tree = entry.get("fieldsV1")
    if not _is_by(entry, manager, "Update") or not isinstance(tree, Mapping):
        return entry, None
    state = _state_of(tree, manager)
    rest = _rest_of(tree, state)
    return (
        {**entry, "fieldsV1": rest} if rest else None,
        {**entry, "fieldsV1": state} if state else None,
    )


def _state_of(tree: Mapping[str, Any], manager: str) -> dict[str, Any]:
    """The status, the finalizers, and the annotations with the operator's name.

    The status is an ordinary field if it is not a subresource.
    """
    meta, name = _item_at(tree, "f:metadata"), manager.rpartition("/")[2]
    notes = _item_at(meta, "f:annotations")
    own = {
        key: each
        for key, each in (notes.items() if isinstance(notes, Mapping) else ())
        if key.rpartition("/")[2] == name
    }
    marks = {
        "f:finalizers": _item_at(meta, "f:finalizers"),
        "f:annotations": own or None,
    }
    kept = {key: each for key, each in marks.items() if each is not None}
    state = {"f:status": _item_at(tree, "f:status"), "f:metadata": kept or None}
    return {key: each for key, each in state.items() if each is not None}


def _rest_of(tree: Mapping[str, Any], taken: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tree without the fields of another one, nor mappings left bare."""
    found: dict[str, Any] = {}
    for key, inner in tree.items():
        if key not in taken:
            found[key] = inner
        elif inner != taken[key]:
            rest = _rest_of(inner, taken[key])
            found |= {key: rest} if rest.keys() - {"."} else {}
    return found


def _without_bare(
    entry: Mapping[str, Any], mine: Any, manifest: Any, live: Any
) -> Mapping[str, Any]:
    """Another's managed fields, without mappings whose last field we take away."""
    tree = entry.get("fieldsV1")
    if entry.get("operation") != "Update" or not isinstance(tree, Mapping):
        return entry
    return {**entry, "fieldsV1": _free_fields(tree, mine, manifest, live)}


def _free_fields(
    tree: Mapping[str, Any], mine: Any, wanted: Any, live: Any
) -> dict[str, Any]:
    if not isinstance(wanted, Mapping):
        return dict(tree)
    found: dict[str, Any] = {}
    for key, inner in tree.items():
        name = key.removeprefix("f:")
        if key == "." and all(_is_taken(*each, wanted, live) for each in tree.items()):
            continue
        value, ours = wanted.get(name), _item_at(mine, key)
        is_mapping = key.startswith("f:") and bool(value) and isinstance(value, Mapping)
        if is_mapping and inner:
            inner = _free_fields(inner, ours, value, _item_at(live, name))
            found |= {key: inner} if inner else {}
        elif not (is_mapping and ours):  # without ours it may be one value as a whole
            found[key] = inner
    return found


def _is_taken(key: str, inner: Any, wanted: Mapping[str, Any], live: Any) -> bool:
    """Whether an apply takes a field from its manager, by setting another value."""
    name = key.removeprefix("f:")
    if key == "." or inner:
        return key == "."
    return name in wanted and not same_json(wanted[name], _item_at(live, name))


def _is_former(entry: Mapping[str, Any], manager: str, mark: Sequence[str]) -> bool:
    """Whether another manager has applied the field of this path."""
    name = entry.get("manager")
    is_apply = isinstance(name, str) and _is_by(entry, name, "Apply")
    return is_apply and name != manager and _has_field(entry.get("fieldsV1"), mark)


def _unite_trees(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    both = {k: _unite_trees(one[k], v) for k, v in other.items() if k in one}
    return {**one, **other, **both}


def managers_of(live: Mapping[str, Any], path: str) -> list[str]:
    """The managers that own a field now, by a path of `lost_fields`, in no list.

    >>> entry = {"manager": "kubectl", "operation": "Update",
    ...          "fieldsV1": {"f:spec": {"f:size": {}}}}
    >>> managers_of({"metadata": {"managedFields": [entry]}}, "spec.size")
    ['kubectl']
    """
    return managers_at(live, names_in(path))


def managers_at(live: Mapping[str, Any], path: Iterable[Part]) -> list[str]:
    """The managers that own a field now, by its path, which may lead into lists.

    An entry may have a mapping without its fields. It counts only if no manager owns
    the field itself: it may own all of the mapping, or nothing more of it.

    >>> ready = {"type": "Ready", "status": "True"}
    >>> tree = {"f:conditions": {'k:{"type":"Ready"}': {"f:status": {}}}}
    >>> entry = {"manager": "me", "fieldsV1": {"f:status": tree}}
    >>> live = {"status": {"conditions": [ready]}}
    >>> live["metadata"] = {"managedFields": [entry]}
    >>> managers_at(live, ("status", "conditions", 0, "status"))
    ['me']
    """
    parts = [*path]
    own, whole = dict[str, None](), dict[str, None]()
    for entry in _managed_entries(live):
        tree: Any = entry.get("fieldsV1")
        value: Any = live
        found = own
        for part in parts:
            if tree == {}:
                found = whole
                break
            below = element_of(value, part)
            tree = _tree_of(below, part, value, tree)
            value = below
        if tree is not None:
            found[str(entry.get("manager"))] = None
    return [*(own or whole)]


def _tree_of(item: Any, part: Part, whole: Any, tree: Any) -> Any:
    """The fields of an item of a mapping or a list; None if they are not owned."""
    if not isinstance(tree, Mapping):
        return None
    return (
        owned_element(item, tree) if isinstance(whole, list) else tree.get(f"f:{part}")
    )


def manages(live: Mapping[str, Any], manager: str, names: Iterable[str]) -> bool:
    """Whether a manager has applied a field, by the names on its path.

    >>> mine = {"manager": "me", "operation": "Apply", "fieldsV1": {"f:data": {}}}
    >>> live = {"metadata": {"managedFields": [mine]}}
    >>> manages(live, "me", ["data"]), manages(live, "me", ["spec", "size"])
    (True, False)
    """
    return _has_field(_fields_of(live, manager), names)


def applied_with(
    live: Mapping[str, Any], names: Sequence[str]
) -> Mapping[str, Any] | None:
    """The fields of the manager that applied the field of this path; None without one.

    >>> mine = {"manager": "me", "operation": "Apply", "fieldsV1": {"f:data": {}}}
    >>> applied_with({"metadata": {"managedFields": [mine]}}, ["data"])
    {'f:data': {}}
    """
    for entry in _managed_entries(live):
        tree = entry.get("fieldsV1")
        if entry.get("operation") == "Apply" and _has_field(tree, names):
            return tree if isinstance(tree, Mapping) else None
    return None


def _has_field(tree: Any, names: Iterable[str]) -> bool:
    for name in names:
        tree = tree.get(f"f:{name}") if isinstance(tree, Mapping) else None
    return tree is not None
