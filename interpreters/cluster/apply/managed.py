"""Managed fields: `metadata.managedFields`, as apimachinery's managedfields has them.

A writer that changes a field becomes its only manager. A writer that applies it manages
it together with all others that apply the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, TypeVar

from msgspec import Struct

from fnop.interpreters.cluster.apply.fieldsets import (
    EMPTY,
    MEMBER,
    Tree,
    canonical,
    difference,
    interned,
    pruned,
    union,
)
from fnop.interpreters.cluster.apply.shapes import shape_of
from fnop.interpreters.cluster.apply.typed import (
    Comparison,
    Untypable,
    compared,
    fits,
    reconciled,
    shape_faults,
)
from fnop.interpreters.cluster.kinds.conversion import renamed, served, to_storage
from fnop.interpreters.cluster.kinds.crds import CRDS
from fnop.interpreters.cluster.kinds.kinds import Kind, Registry
from fnop.interpreters.cluster.values.objects import Object, timestamp

__all__ = [
    "CONTROLLER_MANAGER",
    "Entry",
    "Identity",
    "Inconvertible",
    "Writer",
    "after_update",
    "each_once",
    "entry_of",
    "entry_with",
    "given_entries",
    "identity",
    "is_typable",
    "kind_in",
    "ordered",
    "resets",
    "stripped",
    "tracked",
    "under_schema",
    "versioned",
    "with_entries",
]

Entry = dict[str, Any]
Entries = Sequence[Entry]
# manager, operation, apiVersion ("" of appliers), subresource.
Identity = tuple[str, str, str, str]


class Writer(Struct, frozen=True):
    """The manager of a write, its time, and its subresource."""

    manager: str
    now: float
    subresource: str = ""


# The manager name of the built-in controllers' writes.
CONTROLLER_MANAGER = "kube-controller-manager"

# Fields that only the server sets, or that identify the object, have no manager.
STRIPPED: Tree = {
    "f:apiVersion": MEMBER,
    "f:kind": MEMBER,
    "f:metadata": {
        ".": MEMBER,
        **dict.fromkeys(
            (
                "f:name",
                "f:namespace",
                "f:creationTimestamp",
                "f:selfLink",
                "f:uid",
                "f:clusterName",
                "f:generation",
                "f:managedFields",
                "f:resourceVersion",
            ),
            MEMBER,
        ),
    },
}


def stripped(fields: Tree) -> Tree:
    """A set without the fields that are never managed."""
    # The shortcut for most writes, which do not touch such fields.
    if fields.keys().isdisjoint(STRIPPED):
        return fields
    return difference(fields, STRIPPED)


# Fields other than spec that writes through the status of built-in kinds do not reach
# (GetResetFields of their strategies).
RESETS: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "pods"): ("f:deletionTimestamp", "f:ownerReferences"),
    ("apps", "deployments"): ("f:labels",),
}


def resets(kind: Kind, subresource: str) -> Tree:
    """The fields that keep their old values: status, or everything except status."""
    if subresource != "status":
        return {"f:status": MEMBER} if kind.status else EMPTY
    if kind.custom or kind.resource == CRDS:
        return {"f:metadata": MEMBER, "f:spec": MEMBER}
    names = RESETS.get(kind.resource)
    metadata = {"f:metadata": dict.fromkeys(names, MEMBER)} if names else {}
    return {"f:spec": MEMBER, **metadata}


# ------------------------------------------------------------------- entries


def identity(entry: Entry) -> Identity:
    """The parts of an entry that identify it among the entries of its object."""
    operation = entry["operation"]
    return (
        entry.get("manager", ""),
        operation,
        "" if operation == "Apply" else entry["apiVersion"],
        entry.get("subresource", ""),
    )


def entry_of(who: Identity, api_version: str, fields: Tree, time: str | None) -> Entry:
    """One entry of `managedFields`."""
    manager, operation, _, subresource = who
    entry: Entry = {"manager": manager, "operation": operation}
    entry["apiVersion"] = api_version
    if time is not None:
        entry["time"] = time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = interned(fields)
    if subresource:
        entry["subresource"] = subresource
    return entry


def ordered(entries: Iterable[Entry]) -> list[Entry]:
    """Sort in the server's order: appliers first, then by time, manager and version."""
    return sorted(entries, key=_rank)


def _rank(entry: Entry) -> tuple[str, ...]:
    return (
        entry["operation"],
        entry.get("time") or "",
        entry.get("manager", ""),
        entry["apiVersion"],
        entry.get("subresource", ""),
    )


def given_entries(given: Any, live: Entries, *, main: bool, custom: bool) -> Entries:
    """The entries from which a write starts (decodeLiveOrNew).

    A body may bring its own entries. An empty list, or one empty entry, removes all.
    Entries that cannot be read, and those sent to a subresource, are ignored.
    """
    if given is None or given is live or given == live or not main:
        return live
    if given in ([], [{}]):
        # An empty list is lost on the way to a custom object.
        return live if custom and not given else ()
    try:
        return decoded(given) or live
    except (ValueError, TypeError, KeyError):
        return live


def decoded(given: Any) -> list[Entry]:
    """Entries from a client; ValueError if they are malformed."""
    result: dict[Identity, Entry] = {}
    for entry in given:
        if entry.get("operation") not in ("Apply", "Update"):
            raise ValueError("operation must be `Apply` or `Update`")
        if not entry.get("apiVersion") or entry.get("fieldsType") != "FieldsV1":
            raise ValueError("apiVersion and fieldsType must be there")
        fields = canonical(entry.get("fieldsV1") or {})
        known = entry_of(
            identity(entry), entry["apiVersion"], fields, entry.get("time")
        )
        result[identity(known)] = known
    return ordered(result.values())


# ------------------------------------------------------------------- versions


class Inconvertible(Untypable):
    """An object cannot be converted to another version."""


def kind_in(registry: Registry, kind: Kind, api_version: str) -> Kind | None:
    """The same kind in another version, or None if that version does not exist."""
    if api_version == kind.api_version:
        return kind
    group, _, version = api_version.rpartition("/")
    found = registry.by_path.get((group, version, kind.plural))
    return found if found is not None and found.resource == kind.resource else None


def versioned(kind: Kind, obj: Object, other: Kind, what: str) -> Object:
    """An object, converted to another version of its kind.

    Raises `Inconvertible` if the other version lacks a field of it, or if a set has an
    item twice. `what` says which action failed.
    """
    if kind is other:
        return obj
    if not kind.custom:
        return served(other, to_storage(kind, obj))
    found = renamed(other, obj)
    # Nothing is pruned on the way: a field that the other version lacks has no type.
    why = next(shape_faults(_without_managers(found), shape_of(other)), None)
    if why is not None:
        raise Inconvertible(f"{what}: {why}")
    return found


def comparison_in(
    registry: Registry, kind: Kind, old: Object, new: Object, subresource: str
) -> Callable[[str], Comparison | None]:
    """The difference of two objects in a version; None if the version is gone."""

    @cache
    def found(api_version: str) -> Comparison | None:
        other = kind_in(registry, kind, api_version)
        if other is None:
            return None
        before = versioned(kind, old, other, "convert old object")
        after = versioned(kind, new, other, "convert new object")
        return compared_objects(other, before, after, subresource)

    return found


def compared_objects(
    kind: Kind, old: Object, new: Object, subresource: str
) -> Comparison:
    """The difference of two objects in the fields that can be managed."""
    if old.get("metadata") is not new.get("metadata"):
        old, new = _without_managers(old), _without_managers(new)
    changed, removed = compared(old, new, shape_of(kind))
    ignored = resets(kind, subresource)
    return Comparison(
        stripped(pruned(changed, ignored)), stripped(pruned(removed, ignored))
    )


def _without_managers(obj: Object) -> Object:
    """The object without managedFields, which are not managed themselves."""
    metadata = obj.get("metadata")
    if not metadata or "managedFields" not in metadata:
        return obj
    metadata = {**metadata}
    del metadata["managedFields"]
    return {**obj, "metadata": metadata}


# -------------------------------------------------------------------- updates


def tracked(
    registry: Registry,
    kind: Kind,
    old: Object | None,
    new: Object,
    writer: Writer,
    given: Any = None,
) -> Object:
    """The new object with its managed fields, after any write but apply.

    Both objects are in the version of `kind`; `old` is None for a creation. `given` are
    the managed fields of the body.
    """
    live: Entries = old["metadata"].get("managedFields", ()) if old else ()
    main = not writer.subresource
    entries = given_entries(given, live, main=main, custom=kind.custom)
    if old is not None and not entries:
        # Objects without known managers are not tracked until a client applies them.
        return with_entries(new, ())
    if not (old is None or is_typable(kind, old)) or not is_typable(kind, new):
        return with_entries(new, ())
    try:
        entries = after_update(registry, kind, old or {}, new, entries, writer)
    except Untypable:
        entries = ()
    return with_entries(new, entries)


def is_typable(kind: Kind, obj: Object) -> bool:
    """Whether an object fits its type; if not, it has no managers (UpdateNoErrors).

    An object that does not fit gets this far if the write does not touch that part, or
    if it was stored under another schema.
    """
    if not kind.custom or kind.source is None:
        return True
    shape = shape_of(kind)
    known: dict[int, Any] = kind.memo.setdefault("typed", {})
    for name, value in obj.items():
        if name in HEAD or known.get(identity_of(value)) is value:
            continue
        below = shape.of(name)
        if below is not None and not fits(value, below):
            return False
        _remember_value(known, value)
    return True


# The fields of every object, which Go holds in TypeMeta and ObjectMeta.
HEAD = frozenset(("apiVersion", "kind", "metadata"))


def with_entries(obj: Object, entries: Entries) -> Object:
    """The object with these managed fields."""
    metadata = obj.get("metadata") or {}
    present = metadata.get("managedFields")
    if present is entries or (present is None and not entries):
        return obj
    metadata = {**metadata, "managedFields": entries}
    if not entries:
        del metadata["managedFields"]
    return {**obj, "metadata": metadata}


def after_update(
    registry: Registry,
    kind: Kind,
    old: Object,
    new: Object,
    entries: Entries,
    writer: Writer,
) -> Entries:
    """The entries after a writer changed `old` to `new` (Updater.Update)."""
    entries = under_schema(registry, kind, entries)
    differs = compared_objects(kind, old, new, writer.subresource)
    found = _same_for_all(differs)
    if any(entry["apiVersion"] != kind.api_version for entry in entries):
        found = comparison_in(registry, kind, old, new, writer.subresource)
    elif differs.is_same:
        return entries
    manager = writer.manager or "unknown"
    who = (manager, "Update", kind.api_version, writer.subresource)
    result: list[Entry] = []
    mine: Entry | None = None
    for entry in entries:
        other = found(entry["apiVersion"])
        is_mine = entry.get("manager") == manager and identity(entry) == who
        if is_mine and differs.changed:
            mine = entry
            continue
        kept = None if other is None else _entry_after_loss(entry, other)
        if kept is not None:
            result.append(kept)
    if differs.changed:
        result.append(_entry_after_change(mine, who, differs, writer))
    if len(result) == len(entries) and all(map(_is_same_entry, result, entries)):
        return entries
    # Entries that follow from entries under a schema are under it, too.
    return _remember_value(kind.memo["entries"], ordered(_merge_oldest_updates(result)))


def _same_for_all(differs: Comparison) -> Callable[[str], Comparison | None]:
    return lambda api_version: differs


def _is_same_entry(one: Entry, other: Entry) -> bool:
    return one is other


# Not `id`: Python reports each call of it to audit hooks, such as the guard's.
identity_of = object.__hash__

# The number of parts of a kind that are remembered as fitting its schema.
MOST_FITTING = 512

T = TypeVar("T")


def _remember_value(known: dict[int, T], value: T) -> T:
    """The value, which is recognized by its identity from now on.

    A kept value cannot be mistaken for another one, because its identity is not reused.
    """
    if len(known) >= MOST_FITTING:
        known.clear()
    known[identity_of(value)] = value
    return value


def under_schema(registry: Registry, kind: Kind, entries: Entries) -> Entries:
    """The entries under the present schema, which may have changed since."""
    known: dict[int, Entries] = kind.memo.setdefault("entries", {})
    if known.get(identity_of(entries)) is entries:
        return entries
    once = each_once(entries)
    result = [_reconcile_entry(registry, kind, entry) for entry in once]
    return _remember_value(
        known, once if all(map(_is_same_entry, result, once)) else result
    )


def each_once(entries: Entries) -> Entries:
    """The entries by identity; of two equal ones the last counts.

    Writes through `/scale` may leave two (see `scale`).
    """
    last = {identity(entry): entry for entry in entries}
    return entries if len(last) == len(entries) else [*last.values()]


def _reconcile_entry(registry: Registry, kind: Kind, entry: Entry) -> Entry:
    known = kind_in(registry, kind, entry["apiVersion"])
    if known is None:
        return entry
    fields = entry["fieldsV1"]
    fitting: dict[int, Tree] = known.memo.setdefault("fitting", {})
    if fitting.get(identity_of(fields)) is fields:
        return entry
    new = reconciled(fields, shape_of(known))
    _remember_value(fitting, new if new is fields else interned(new))
    return entry if new is fields else {**entry, "fieldsV1": new}


def _entry_after_loss(entry: Entry, differs: Comparison) -> Entry | None:
    """An entry without the fields that its manager has lost."""
    fields = entry["fieldsV1"]
    left = difference(difference(fields, differs.changed), differs.removed)
    return entry if left is fields else entry_with(entry, left)


def entry_with(entry: Entry, fields: Tree) -> Entry | None:
    """An entry with other fields; None if there are none."""
    return {**entry, "fieldsV1": interned(fields)} if fields else None


def _entry_after_change(
    mine: Entry | None, who: Identity, differs: Comparison, writer: Writer
) -> Entry:
    """The writer's entry after it has changed fields."""
    # The server drops the time of writers that scale.
    time = None if writer.subresource == "scale" else timestamp(writer.now)
    if mine is None:
        return entry_of(who, who[2], differs.changed, time)
    before = mine["fieldsV1"]
    fields = union(difference(before, differs.removed), differs.changed)
    if fields is before and time is not None:
        # The frequent case: the manager changes fields that it already manages.
        return mine if mine.get("time") == time else {**mine, "time": time}
    return entry_of(who, who[2], fields, time)


# Beyond this number, entries of updates are merged (DefaultMaxUpdateManagers).
MOST_UPDATERS = 10
ANCIENT = "ancient-changes"


def _merge_oldest_updates(entries: list[Entry]) -> list[Entry]:
    """The entries; the oldest updates of a version are merged if there are too many."""
    updates = [entry for entry in entries if entry["operation"] == "Update"]
    excess = len(updates) - MOST_UPDATERS
    if excess <= 0:
        return entries
    kept = {identity(entry): entry for entry in entries}
    first: dict[str, Identity] = {}
    for entry in sorted(updates, key=_age):
        if excess <= 0:
            break
        who, version = identity(entry), entry["apiVersion"]
        if version not in first:
            first[version] = who
            continue
        bucket = (ANCIENT, "Update", version, "")
        base = kept[bucket] if bucket in kept else kept.pop(first[version])
        del kept[who]
        fields = union(entry["fieldsV1"], base["fieldsV1"])
        kept[bucket] = entry_of(bucket, version, fields, entry.get("time"))
        excess -= 1
    return list(kept.values())


def _age(entry: Entry) -> tuple[str, ...]:
    return (entry.get("time") or "", *identity(entry))
