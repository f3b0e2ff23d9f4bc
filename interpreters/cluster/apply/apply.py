"""Server-side apply: the object after a configuration was applied to it.

It is `merge.Updater.Apply` of structured-merge-diff, with the additions of
`managedfields` in apimachinery: managers from before the first apply, and kubectl's
last configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson
from msgspec import Struct

from fnop.effects.structs import replace
from fnop.interpreters.cluster.apply.fieldsets import (
    EMPTY,
    Tree,
    difference,
    has,
    intersection,
    named,
    path_text,
    paths,
    pruned,
    union,
)
from fnop.interpreters.cluster.apply.managed import (
    Entry,
    Identity,
    Inconvertible,
    Writer,
    after_update,
    comparison_in,
    entry_of,
    entry_with,
    identity,
    is_typable,
    kind_in,
    ordered,
    resets,
    stripped,
    under_schema,
    versioned,
    with_entries,
)
from fnop.interpreters.cluster.apply.shapes import Shape, shape_of
from fnop.interpreters.cluster.apply.typed import (
    Untypable,
    compared,
    equal,
    fields_of,
    merged,
    shape_faults,
    without,
)
from fnop.interpreters.cluster.kinds.kinds import Kind, Registry
from fnop.interpreters.cluster.schema.rules import Place
from fnop.interpreters.cluster.schema.schema import NOTHING, Schema
from fnop.interpreters.cluster.values.golang import go_name
from fnop.interpreters.cluster.values.objects import Object, timestamp
from fnop.interpreters.cluster.values.status import (
    Fault,
    Refusal,
    bad_request,
    failure,
    internal,
)
from fnop.interpreters.runtime.protocol import MalformedBody

__all__ = [
    "Applying",
    "Conflicts",
    "applied",
    "changes",
    "check_type",
    "configuration",
    "conflicting",
    "fault_text",
    "null_faults",
]

Conflicts = list[tuple[Identity, tuple[str, ...]]]
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Conflicting(Exception):
    """A configuration changes fields of other managers."""

    def __init__(self, conflicts: Conflicts) -> None:
        super().__init__("conflicts")
        self.conflicts = conflicts


class Applying(Struct, frozen=True):
    """One apply: its kind, its manager, and whether it is forced."""

    registry: Registry
    kind: Kind
    writer: Writer
    force: bool = False

    @property
    def who(self) -> Identity:
        """The identity of the applier's entry, the same in all versions."""
        return (self.writer.manager, "Apply", "", self.writer.subresource)

    @property
    def shape(self) -> Shape:
        """The shape of the objects."""
        return shape_of(self.kind)

    def shape_in(self, api_version: str) -> Shape | None:
        """The same in another version."""
        kind = kind_in(self.registry, self.kind, api_version)
        return None if kind is None else shape_of(kind)


def applied(applying: Applying, live: Object | None, config: Object) -> Object:
    """The object after an apply, with its managed fields.

    `live` is None if the object does not exist yet. Raises the refusal of a
    configuration that does not fit, or that conflicts with the fields of others.
    """
    _check(applying, config)
    try:
        result = _apply_for_kubectl(applying, live, config)
    except Conflicting as met:
        raise conflicting(met.conflicts) from None
    except Inconvertible as fault:
        raise internal(f"failed to {fault}", bare=True) from None
    except Untypable as fault:
        raise internal(f"failed to merge config: {fault}", bare=True) from None
    return _with_last_applied(applying, result, config)


def _check(applying: Applying, config: Object) -> None:
    check_type(config, applying.kind.api_version, applying.kind.kind)
    metadata = config.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    if text := fault_text(shape_faults(config, applying.shape)):
        raise internal(
            f"failed to create typed patch object ({_place_text(config)}): {text}",
            bare=True,
        )


def _check_live(applying: Applying, live: Object) -> None:
    """Refuse a live object that does not fit the present type."""
    if is_typable(applying.kind, live):
        return
    faults = shape_faults(_without_managers(live), applying.shape, repeats=True)
    where, text = _place_text(live), fault_text(faults)
    if live["metadata"].get("managedFields"):
        why = f"failed to create typed live object ({where}): {text}"
    else:
        why = (
            "failed to create manager for existing fields: "
            f"failed to convert new object ({where}) to smd typed: {text}"
        )
    raise internal(why, bare=True)


def fault_text(faults: Iterable[str]) -> str:
    """All faults in one text; empty if there are none."""
    found = list(faults)
    if len(found) < 2:
        return "".join(found)
    return "\n  ".join(["errors:", *found])


def configuration(body: Any) -> Object:
    """The body of an apply; refused if it is not a map."""
    if isinstance(body, MalformedBody):
        raise bad_request(f"error decoding YAML: {body.message}")
    if body is not None and not isinstance(body, dict):
        raise bad_request(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: "
            f"cannot unmarshal {go_name(body)} into Go value of type "
            "map[string]interface {}"
        )
    return body or {}


def check_type(config: Object, api_version: str, kind: str) -> None:
    """Refuse a configuration whose apiVersion or kind is missing or differs."""
    if config.get("apiVersion") != api_version or config.get("kind") != kind:
        raise bad_request(f"invalid object type: {_type_text(config)}")


def _type_text(obj: Object) -> str:
    """A GroupVersionKind as Go prints it."""
    return f"{_version_text(obj.get('apiVersion'))}, Kind={obj.get('kind') or ''}"


def _version_text(api_version: Any) -> str:
    text = api_version if isinstance(api_version, str) else ""
    return text if "/" in text else f"/{text}"


def _place_text(obj: Object) -> str:
    metadata = obj.get("metadata")
    named_ = metadata if isinstance(metadata, dict) else {}
    place = f"{named_.get('namespace', '')}/{named_.get('name', '')}"
    return f"{place}; {_type_text(obj)}"


# -------------------------------------------------------------------- merging


def _apply_for_kubectl(
    applying: Applying, live: Object | None, config: Object
) -> Object:
    """Apply; kubectl overrides fields that client-side `kubectl apply` has written."""
    try:
        return _merge_config(applying, live, config)
    except Conflicting as conflicting:
        if applying.writer.manager != "kubectl" or live is None:
            raise
        mine = _last_applied_fields(applying, live)
        if mine is None:
            raise
        rest = [one for one in conflicting.conflicts if not has(mine, one[1])]
        if rest:
            raise Conflicting(rest) from None
        return _merge_config(replace(applying, force=True), live, config)


def _merge_config(applying: Applying, live: Object | None, config: Object) -> Object:
    kind, writer = applying.kind, applying.writer
    if live is not None:
        _check_live(applying, live)
    entries = _entries_before(applying, live)
    base: Object = live or {"apiVersion": kind.api_version, "kind": kind.kind}
    last = next((entry for entry in entries if identity(entry) == applying.who), None)
    others = [entry for entry in entries if entry is not last]
    fields = pruned(fields_of(config, applying.shape), resets(kind, writer.subresource))
    new: Object = merged(base, config, applying.shape)
    if last is not None:
        managed = [*others, entry_of(applying.who, kind.api_version, fields, None)]
        new = _prune_dropped_fields(applying, new, managed, last) or {}
    kept = _kept(applying, base, new, others)
    mine = stripped(fields)
    time = last.get("time") if last is not None else None
    if live is None or not equal(_without_managers(base), _without_managers(new)):
        time = timestamp(writer.now)
    if mine:
        kept.append(entry_of(applying.who, kind.api_version, mine, time))
    return with_entries(new, ordered(kept))


def changes(live: Object, result: Object) -> bool:
    """Whether an apply has changed the object, apart from managed fields."""
    return not equal(_without_managers(live), _without_managers(result))


def _without_managers(obj: Object) -> Object:
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    rest = {name: each for name, each in metadata.items() if name != "managedFields"}
    return {**obj, "metadata": rest}


def _entries_before(applying: Applying, live: Object | None) -> Sequence[Entry]:
    """The entries so far; fields without any manager belong to "before-first-apply"."""
    if live is None:
        return ()
    known: Sequence[Entry] = live["metadata"].get("managedFields", ())
    if known:
        return under_schema(applying.registry, applying.kind, known)
    writer = replace(applying.writer, manager="before-first-apply")
    return after_update(applying.registry, applying.kind, {}, live, (), writer)


def _kept(
    applying: Applying, live: Object, new: Object, others: Sequence[Entry]
) -> list[Entry]:
    """The other managers' entries after an apply; raises `Conflicting`."""
    kind, subresource = applying.kind, applying.writer.subresource
    versions = comparison_in(applying.registry, kind, live, new, subresource)
    conflicts: Conflicts = []
    result = []
    for entry in others:
        differs = versions(entry["apiVersion"])
        if differs is None:
            continue
        fields = entry["fieldsV1"]
        contested = intersection(fields, differs.changed)
        conflicts += [(identity(entry), path) for path in paths(contested)]
        left = difference(difference(fields, contested), differs.removed)
        kept = entry if left is fields else entry_with(entry, left)
        if kept is not None:
            result.append(kept)
    if conflicts and not applying.force:
        raise Conflicting(conflicts)
    return result


# ------------------------------------------------------- fields no longer applied


def _prune_dropped_fields(
    applying: Applying, obj: Object, managed: Sequence[Entry], last: Entry
) -> Any:
    """Remove the fields that the applier has dropped and no other manager has."""
    shape = applying.shape_in(last["apiVersion"])
    before: Tree = last["fieldsV1"]
    if shape is None or not before or _is_all_applied(applying, managed, before):
        return obj
    kind = kind_in(applying.registry, applying.kind, last["apiVersion"])
    if kind is not None:
        where = "prune fields: failed to convert merged object to last applied version"
        versioned(applying.kind, obj, kind, where)
    rest = without(obj, named(before, shape), shape)
    # The version of the last time first, as some fields may only exist there.
    by_version: dict[str, Tree] = {last["apiVersion"]: EMPTY}
    for entry in managed:
        version = entry["apiVersion"]
        by_version[version] = union(by_version.get(version, EMPTY), entry["fieldsV1"])
    for version, fields in by_version.items():
        other = applying.shape_in(version)
        if other is not None and fields:
            _check_kept(applying, obj, version)
            keep = union(
                named(fields_of(rest, other), other),
                named(fields, other),
            )
            lost = difference(named(fields_of(obj, other), other), keep)
            rest = without(obj, lost, other)
    # Fields that the applier has never managed stay.
    gone = difference(
        named(fields_of(obj, shape), shape), named(fields_of(rest, shape), shape)
    )
    return without(obj, intersection(gone, named(before, shape)), shape)


def _is_all_applied(applying: Applying, managed: Sequence[Entry], before: Tree) -> bool:
    """Whether the applier, whose entry is the last, has dropped none of its fields.

    Nothing is pruned then, because all its fields are still applied. Entries of other
    versions are checked nevertheless, as they may not fit.
    """
    return not difference(before, managed[-1]["fieldsV1"]) and all(
        kind_in(applying.registry, applying.kind, each["apiVersion"]) is applying.kind
        for each in managed
    )


def _check_kept(applying: Applying, obj: Object, version: str) -> None:
    """Refuse an object that cannot be converted to the version of another manager."""
    kind = kind_in(applying.registry, applying.kind, version)
    if kind is not None:
        why = f"failed to convert merged object at version {version}"
        where = f"prune fields: failed add back owned items: {why}"
        versioned(applying.kind, obj, kind, where)


# ------------------------------------------------------------------ conflicts


def conflicting(conflicts: Conflicts) -> Refusal:
    """409 with a cause for every contested field."""
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_manager_text(who)}",
            "field": path_text(path),
        }
        for who, path in conflicts
    ]
    return failure(409, "Conflict", _conflict_text(conflicts), {"causes": causes})


def _conflict_text(conflicts: Conflicts) -> str:
    if len(conflicts) == 1:
        ((who, path),) = conflicts
        found = f"conflict with {_manager_text(who)}: {path_text(path)}"
        return f"Apply failed with 1 conflict: {found}"
    lines = []
    for who in sorted({who for who, _ in conflicts}):
        lines.append(f"conflicts with {_manager_text(who)}:")
        lines += [f"- {path_text(path)}" for other, path in conflicts if other == who]
    found = "\n".join(lines)
    return f"Apply failed with {len(conflicts)} conflicts: {found}"


def _manager_text(who: Identity) -> str:
    manager, operation, api_version, subresource = who
    text = orjson.dumps(manager).decode()
    if subresource:
        text += f' with subresource "{subresource}"'
    return f"{text} using {api_version}" if operation == "Update" else text


# ------------------------------------------------- kubectl's last configuration


def _annotation(obj: Object) -> str:
    metadata = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    found = annotations.get(LAST_APPLIED) if isinstance(annotations, dict) else None
    return found if isinstance(found, str) else ""


def _last_applied_fields(applying: Applying, live: Object) -> Tree | None:
    """The fields that client-side `kubectl apply` wrote and no other client changed."""
    try:
        config = orjson.loads(_annotation(live) or b"null")
    except ValueError:
        return None
    if not isinstance(config, dict):
        return None
    if config.get("apiVersion") != applying.kind.api_version:
        return None
    shape = applying.shape
    changed, removed = compared(config, live, shape)
    return difference(difference(fields_of(config, shape), changed), removed)


def _with_last_applied(applying: Applying, obj: Object, config: Object) -> Object:
    """The object with kubectl's last-applied annotation kept up to date."""
    if applying.writer.manager != "kubectl" or not _annotation(obj):
        return obj
    metadata = config["metadata"]
    if "annotations" in metadata:
        rest = {**metadata["annotations"]}
        rest.pop(LAST_APPLIED, None)
        config = {**config, "metadata": {**metadata, "annotations": rest}}
    options = orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    text = orjson.dumps(config, option=options).decode()
    annotations = {**obj["metadata"]["annotations"], LAST_APPLIED: text}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


# ---------------------------------------------------------------------- nulls


def null_faults(schema: Schema, value: Any, place: Place = None) -> Iterator[Fault]:
    """The nulls of an applied object that its schema does not allow.

    Other writes drop them; apply only fills in defaults.
    """
    if isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            yield from null_faults(schema.items, item, (place, index))
    elif isinstance(value, dict):
        for name, item in value.items():
            below = schema.properties.get(name, schema.additional)
            if below is None:
                continue
            if item is not None:
                yield from null_faults(below, item, (place, name))
            elif not below.expected.nullable and below.default is NOTHING:
                yield from below.faults(None, (place, name))
