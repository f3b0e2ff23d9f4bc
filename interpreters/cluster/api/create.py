"""Create: the rules of `registry/generic/registry/store.go` for new objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fnop.effects.structs import replace
from fnop.interpreters.cluster.api.admitting import check_write, is_mutated, mutated
from fnop.interpreters.cluster.api.signing import SIGNING, asked_by
from fnop.interpreters.cluster.apply.managed import tracked, with_entries
from fnop.interpreters.cluster.kinds.builtins import (
    allocated,
    born,
    defaulted,
    fresh_status,
)
from fnop.interpreters.cluster.kinds.conversion import as_read, served, to_storage
from fnop.interpreters.cluster.kinds.crds import CRDS, unseen_status
from fnop.interpreters.cluster.kinds.kinds import Kind
from fnop.interpreters.cluster.requests.body import decoded
from fnop.interpreters.cluster.requests.field_validation import check_fields
from fnop.interpreters.cluster.requests.options import check_options, writer_of
from fnop.interpreters.cluster.requests.request import Call
from fnop.interpreters.cluster.schema.schema import object_faults as schema_faults
from fnop.interpreters.cluster.storage.commit import NAMESPACES, stored
from fnop.interpreters.cluster.storage.store import (
    Cluster,
    StoredEvent,
    fresh_uid,
    lookup,
    name_suffix,
    remembered,
)
from fnop.interpreters.cluster.validation.builtin_rules import builtin_faults
from fnop.interpreters.cluster.validation.crd_rules import crd_faults
from fnop.interpreters.cluster.validation.scale_rules import scale_faults
from fnop.interpreters.cluster.values.metadata import (
    finalizer_faults,
    metadata_faults,
    name_faults,
)
from fnop.interpreters.cluster.values.numbers import whole
from fnop.interpreters.cluster.values.objects import Object, Resource, timestamp
from fnop.interpreters.cluster.values.status import (
    Fault,
    already_exists,
    bad_request,
    failure,
    forbidden,
    internal,
    invalid,
    method_not_allowed,
    no_such_path,
    not_found,
    quoted,
)
from fnop.interpreters.runtime.protocol import ApiResponse

__all__ = [
    "Answer",
    "Track",
    "check_namespace",
    "create",
    "created",
    "object_faults",
    "recorded",
]

Answer = tuple[Cluster, ApiResponse, tuple[StoredEvent, ...]]
# Takes an object as its client wants it, and adds its managed fields.
Track = Callable[[Object], Object]


def create(cluster: Cluster, call: Call) -> Answer:
    """POST on a collection."""
    kind, route = call.kind, call.route
    if route.subresource:
        raise _not_creatable_error(kind)
    if kind.namespaced and not route.namespace:
        raise no_such_path() if kind.custom else method_not_allowed()
    if route.name and not kind.custom:
        raise method_not_allowed()
    check_options(call, "CreateOptions")
    body = call.request.body
    obj = decoded(kind, body)
    check_fields(call, body)
    return created(cluster, call, obj, recorded(cluster, call, None, body))


def recorded(cluster: Cluster, call: Call, old: Object | None, body: Object) -> Track:
    """A function that notes the writer in managedFields; `body` is what was sent."""
    writer = writer_of(call)
    given = (body.get("metadata") or {}).get("managedFields")
    return lambda new: tracked(cluster.registry, call.kind, old, new, writer, given)


def created(
    cluster: Cluster,
    call: Call,
    obj: Object,
    track: Track,
    known: Sequence[Fault] = (),
) -> Answer:
    """Create an object: the part of POST, PUT and apply; some faults are `known`."""
    kind, namespace = call.kind, call.route.namespace or ""
    check_namespace(call, obj)
    given = obj["metadata"]
    # Its name is not generated yet.
    called = given.get("name") or given.get("generateName", "")
    _admit(cluster, kind, namespace, called)
    obj = _admitted_object(cluster, call, obj, namespace, track)
    name = obj["metadata"].get("name", "")
    known = [*known, *_name_faults(kind, obj["metadata"])]
    faults = [*known, *object_faults(kind, obj, None, call.warnings, known)]
    if faults:
        raise invalid(kind.group, kind.kind, name, faults)
    check_write(cluster, call, served(kind, obj))
    key = (namespace, name)
    _check_unversioned(call, obj)
    present = lookup(cluster, kind.resource, key)
    if present is not None:
        is_going = "deletionTimestamp" in present["metadata"]
        raise already_exists(kind.group, kind.plural, name, is_going=is_going)
    raw = to_storage(kind, obj)
    obj = as_read(kind, raw)
    if call.dry_run:
        return cluster, ApiResponse(201, served(kind, obj)), ()
    cluster, events = stored(cluster, kind, key, obj, None, call.now)
    cluster = remembered(cluster, kind.resource, key, raw, obj)
    return cluster, ApiResponse(201, served(kind, events[0].object)), events


def _check_unversioned(call: Call, obj: Object) -> None:
    """Refuse a resourceVersion on a new object, as the real store does.

    A dry run does not refuse it.
    """
    version = obj["metadata"].get("resourceVersion", "")
    if call.request.method != "POST" or call.dry_run or not version.isdecimal():
        return
    if whole(version):
        message = "resourceVersion should not be set on objects to be created"
        raise internal(message, bare=True)


def _not_creatable_error(kind: Kind) -> Exception:
    if not kind.custom:
        return method_not_allowed()
    return failure(
        405,
        "MethodNotAllowed",
        f'create is not supported on resources of kind "{kind.plural}.{kind.group}"',
        {"group": kind.group, "kind": kind.plural},
    )


def check_namespace(call: Call, obj: Object) -> None:
    """Refuse a body whose namespace differs from the path."""
    given = obj["metadata"].get("namespace")
    if given and given != (call.route.namespace or ""):
        raise bad_request(
            "the namespace of the provided object does not match the namespace "
            "sent on the request"
        )


def _admitted_object(
    cluster: Cluster, call: Call, obj: Object, namespace: str, track: Track
) -> Object:
    """A new object with the fields that the server and admission webhooks set."""
    kind = call.kind
    sent, obj = obj, _with_creator_fields(cluster, call, obj, namespace, track)
    if is_mutated(cluster, call):
        seen = _view_for_webhooks(kind, obj, sent)
        changed = mutated(cluster, call, seen)
        if changed is not seen:
            check_namespace(call, changed)
            entries = changed["metadata"].get("managedFields", ())
            obj = _with_creator_fields(
                cluster,
                call,
                changed,
                namespace,
                lambda new: with_entries(new, entries),
            )
    if not kind.custom:
        obj = allocated(kind, born(kind, obj), cluster.variant)
    return _with_fresh_status(kind, obj)


def _with_creator_fields(
    cluster: Cluster, call: Call, obj: Object, namespace: str, track: Track
) -> Object:
    """A new object with its identity, its defaults, and the fields of its creator."""
    kind = call.kind
    metadata = {
        **obj["metadata"],
        "uid": _uid(cluster, call),
        "creationTimestamp": timestamp(call.now),
    }
    # BeforeCreate: an object is not created as deleted.
    metadata.pop("deletionTimestamp", None)
    metadata.pop("deletionGracePeriodSeconds", None)
    if kind.generation:  # elsewhere the creator's value stays
        metadata["generation"] = 1
    if namespace:
        metadata["namespace"] = namespace
    if kind.resource == LIMIT_RANGES and "name" not in metadata:
        metadata["name"] = metadata[
            "uid"
        ]  # the only kind whose objects name themselves
    if "name" not in metadata and "generateName" in metadata:
        metadata["name"] = _generate_name(
            cluster, kind, namespace, metadata["generateName"]
        )
    obj = {
        **obj,
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": metadata,
    }
    if kind.schema is not None:
        obj = kind.schema.filled(obj)
    sent = obj
    if kind.resource == SIGNING:
        obj = asked_by(call.request.user, obj)
    if not kind.custom:
        obj = defaulted(kind, to_storage(kind, obj))
    seen = served(kind, _without_late_defaults(kind, obj, sent))
    entries = track(seen)["metadata"].get("managedFields")
    return with_entries(obj, entries or ())


# The fields that the registry sets after webhooks were asked: they do not see them.
LATE = (NAMESPACES, SIGNING)


def _view_for_webhooks(kind: Kind, obj: Object, sent: Object) -> Object:
    """A new object as mutating webhooks see it, in the version of the request.

    It has defaults, but neither a uid nor a generated name. It has the status that was
    sent, which is dropped later.
    """
    given = sent["metadata"]
    metadata = {**obj["metadata"]}
    del metadata["uid"], metadata["creationTimestamp"]
    for name in ("generation", "name"):
        metadata.pop(name, None)
        if name in given:
            metadata[name] = given[name]
    obj = {**obj, "metadata": metadata}
    if kind.resource in LATE:
        obj = _without_late_defaults(kind, obj, sent)
    return served(kind, obj)


LIMIT_RANGES: Resource = ("", "limitranges")

# Fields of spec that admission and strategies set. They come after the fields were
# attributed to the creator, so these fields have no manager.
ADMITTED: dict[Resource, frozenset[str]] = {
    ("", "namespaces"): frozenset(("finalizers",)),
    ("", "pods"): frozenset(
        (
            "preemptionPolicy",
            "priority",
            "serviceAccount",
            "serviceAccountName",
            "tolerations",
            "volumes",
        )
    ),
    SIGNING: frozenset(("username", "uid", "groups", "extra")),
}


def _without_late_defaults(kind: Kind, obj: Object, sent: Object) -> Object:
    names = ADMITTED.get(kind.resource)
    if names is None or "spec" not in obj:
        return obj
    given = sent.get("spec") or {}
    spec = {
        name: value
        for name, value in obj["spec"].items()
        if name not in names or name in given
    }
    return {**obj, "spec": spec}


def _uid(cluster: Cluster, call: Call) -> str:
    # A dry run must not use the uid of the object that is created next.
    if call.dry_run:
        return fresh_uid(replace(cluster, seed=f"{cluster.seed}/dry"))
    return fresh_uid(cluster)


def _with_fresh_status(kind: Kind, obj: Object) -> Object:
    """A new object with an empty status: the main endpoint does not write status."""
    if not kind.status:
        return obj
    if kind.custom:
        return {k: v for k, v in obj.items() if k != "status"}
    if kind.resource == CRDS:
        return {**obj, "status": unseen_status(obj)}
    return {**obj, "status": fresh_status(kind, obj)}


def _generate_name(cluster: Cluster, kind: Kind, namespace: str, base: str) -> str:
    # names.SimpleNameGenerator: 58 letters of the base, and 5 generated ones. Since
    # 1.30 the server tries up to eight names before it gives up.
    names = (base[:58] + name_suffix(cluster, attempt) for attempt in range(8))
    name = ""
    for name in names:
        if lookup(cluster, kind.resource, (namespace, name)) is None:
            break
    return name


def _admit(cluster: Cluster, kind: Kind, namespace: str, name: str) -> None:
    """Refuse a namespace or a definition that is being deleted (NamespaceLifecycle)."""
    if kind.terminating:
        why = "create not allowed while custom resource definition is terminating"
        raise forbidden(kind.group, kind.plural, name, why)
    if not namespace:
        return
    found = lookup(cluster, NAMESPACES, ("", namespace))
    if found is None:
        raise not_found("", "namespaces", namespace)
    if "deletionTimestamp" in found["metadata"]:
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
        why = (
            f"unable to create new content in namespace {namespace} because it is "
            "being terminated"
        )
        raise forbidden(kind.group, kind.plural, name, why, [cause])


def _name_faults(kind: Kind, metadata: dict[str, Any]) -> Iterator[Fault]:
    prefix = metadata.get("generateName")
    if prefix:
        # A letter or digit must follow a dash (maskTrailingDash).
        masked = f"{prefix[:-1]}a" if prefix.endswith("-") else prefix
        for why in name_faults((kind.group, kind.plural), masked):
            message = f"Invalid value: {quoted(prefix)}: {why}"
            yield Fault("metadata.generateName", "FieldValueInvalid", message)
    name = metadata.get("name")
    if not name:
        message = "Required value: name or generateName is required"
        yield Fault("metadata.name", "FieldValueRequired", message)
        return
    for why in name_faults((kind.group, kind.plural), name):
        message = f"Invalid value: {quoted(name)}: {why}"
        yield Fault("metadata.name", "FieldValueInvalid", message)


def object_faults(
    kind: Kind,
    obj: Object,
    old: Object | None = None,
    warnings: list[str] | None = None,
    known: Sequence[Fault] = (),
) -> Iterator[Fault]:
    """Yield the faults of a whole object; faults of its `old` state may be warnings.

    Some faults are `known` already: they decide whether rules are evaluated.
    """
    found = [*metadata_faults(obj["metadata"])]
    yield from found
    if kind.schema is not None:
        yield from scale_faults(kind.scale, obj)
        known = [*known, *found]
        yield from schema_faults(kind.schema, obj, old, warnings, known)
    elif kind.resource == CRDS:
        yield from crd_faults(obj, warnings)
    else:
        yield from finalizer_faults(kind.group, kind.plural, obj["metadata"])
        yield from builtin_faults(kind, obj, old)
