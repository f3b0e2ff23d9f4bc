"""Create, update and patch: the rules of `registry/generic/registry/store.go`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fnop.interpreters.cluster.body import decoded
from fnop.interpreters.cluster.builtins import defaulted, fresh_status
from fnop.interpreters.cluster.commit import NAMESPACES, is_released, removed, stored
from fnop.interpreters.cluster.conversion import served, to_storage
from fnop.interpreters.cluster.crd_rules import crd_faults, crd_update_faults
from fnop.interpreters.cluster.crds import CRDS, unseen_status
from fnop.interpreters.cluster.kinds import Kind
from fnop.interpreters.cluster.metadata import metadata_faults, name_faults
from fnop.interpreters.cluster.patch import patched
from fnop.interpreters.cluster.request import Call
from fnop.interpreters.cluster.status import (
    Fault,
    already_exists,
    bad_request,
    conflict,
    failure,
    forbidden,
    internal,
    invalid,
    method_not_allowed,
    no_such_path,
    not_found,
    quoted,
)
from fnop.interpreters.cluster.store import (
    Cluster,
    Object,
    Resource,
    StoredEvent,
    fresh_uid,
    lookup,
    name_suffix,
    same,
    timestamp,
)
from fnop.interpreters.protocol import ApiResponse

__all__ = ["Answer", "create", "patch", "replaced", "update"]

Answer = tuple[Cluster, ApiResponse, tuple[StoredEvent, ...]]


def create(cluster: Cluster, call: Call) -> Answer:
    """POST on a collection."""
    kind, route = call.kind, call.route
    if route.subresource:
        raise _not_creatable(kind)
    if kind.namespaced and not route.namespace:
        raise no_such_path() if kind.custom else method_not_allowed()
    if route.name and not kind.custom:
        raise method_not_allowed()
    return _create(cluster, call, decoded(kind, call.request.body))


def _create(cluster: Cluster, call: Call, obj: Object) -> Answer:
    kind, namespace = call.kind, call.route.namespace or ""
    _check_namespace(call, obj)
    if "resourceVersion" in obj["metadata"]:
        message = "resourceVersion should not be set on objects to be created"
        raise internal(message, bare=True)
    obj = _born(cluster, call, obj, namespace)
    name = obj["metadata"].get("name", "")
    _admit(cluster, kind, namespace, name)
    faults = [*_name_faults(kind, obj["metadata"]), *_faults(kind, obj)]
    if faults:
        raise invalid(kind.group, kind.kind, name, faults)
    key = (namespace, name)
    present = lookup(cluster, kind.resource, key)
    if present is not None:
        is_going = "deletionTimestamp" in present["metadata"]
        raise already_exists(kind.group, kind.plural, name, is_going=is_going)
    if call.dry_run:
        return cluster, ApiResponse(201, served(kind.api_version, obj)), ()
    cluster, events = stored(cluster, kind, key, to_storage(kind, obj), None, call.now)
    return cluster, ApiResponse(201, served(kind.api_version, events[0].object)), events


def _not_creatable(kind: Kind) -> Exception:
    if not kind.custom:
        return method_not_allowed()
    return failure(
        405,
        "MethodNotAllowed",
        f'create is not supported on resources of kind "{kind.plural}.{kind.group}"',
        {"group": kind.group, "kind": kind.plural},
    )


def _check_namespace(call: Call, obj: Object) -> None:
    given = obj["metadata"].get("namespace")
    if given and given != (call.route.namespace or ""):
        raise bad_request(
            "the namespace of the provided object does not match the namespace "
            "sent on the request"
        )


def _born(cluster: Cluster, call: Call, obj: Object, namespace: str) -> Object:
    """The object with what only the server may say, said by the server."""
    kind = call.kind
    metadata = {
        **obj["metadata"],
        "uid": fresh_uid(cluster),
        "creationTimestamp": timestamp(call.now),
    }
    # BeforeCreate: an object is not born deleted.
    metadata.pop("deletionTimestamp", None)
    metadata.pop("deletionGracePeriodSeconds", None)
    metadata.pop("generation", None)
    if kind.generation:
        metadata["generation"] = 1
    if namespace:
        metadata["namespace"] = namespace
    if "name" not in metadata and "generateName" in metadata:
        metadata["name"] = _generated(
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
    if not kind.custom:
        obj = defaulted(kind, to_storage(kind, obj))
    return _with_fresh_status(kind, obj)


def _with_fresh_status(kind: Kind, obj: Object) -> Object:
    """Status is not written through the main endpoint: it starts empty."""
    if not kind.status:
        return obj
    if kind.custom:
        return (
            {k: v for k, v in obj.items() if k != "status"} if "status" in obj else obj
        )
    if kind.resource == CRDS:
        return {**obj, "status": unseen_status(obj)}
    return {**obj, "status": fresh_status(kind)}


def _generated(cluster: Cluster, kind: Kind, namespace: str, base: str) -> str:
    # names.SimpleNameGenerator: 58 letters of the base, 5 of its own; since 1.30
    # the server tries up to eight names before it gives up.
    names = (base[:58] + name_suffix(cluster, attempt) for attempt in range(8))
    name = ""
    for name in names:
        if lookup(cluster, kind.resource, (namespace, name)) is None:
            break
    return name


def _admit(cluster: Cluster, kind: Kind, namespace: str, name: str) -> None:
    """The admission plugin NamespaceLifecycle, and the end of definitions."""
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
    name = metadata.get("name")
    if not name:
        message = "Required value: name or generateName is required"
        yield Fault("metadata.name", "FieldValueRequired", message)
        return
    for why in name_faults(kind.resource, name):
        message = f"Invalid value: {quoted(name)}: {why}"
        yield Fault("metadata.name", "FieldValueInvalid", message)


def _faults(kind: Kind, obj: Object) -> Iterator[Fault]:
    yield from metadata_faults(obj["metadata"])
    if kind.schema is not None:
        yield from kind.schema.faults(obj, None)
    elif kind.resource == CRDS:
        yield from crd_faults(obj)


def _status_faults(kind: Kind, obj: Object) -> Iterator[Fault]:
    """Through `/status`, only status is checked; its messages begin there."""
    schema = kind.schema.properties.get("status") if kind.schema else None
    if schema is None or "status" not in obj:
        return
    for fault in schema.faults(obj["status"], None):
        field = f"status.{fault.field}" if fault.field else "status"
        yield Fault(field, fault.reason, fault.message)


def update(cluster: Cluster, call: Call) -> Answer:
    """PUT on an object or one of its subresources."""
    kind = call.kind
    if not call.route.name:
        raise _unnamed(kind)
    new = decoded(kind, call.request.body)
    _check_identity(call, new)
    old = lookup(cluster, kind.resource, call.key)
    if old is None:
        if kind.creates_on_update and not call.route.subresource:
            return _create(cluster, call, new)
        raise not_found(kind.group, kind.plural, call.route.name)
    _check_uid(call, new, old)
    if "resourceVersion" not in new["metadata"] and not kind.unconditional:
        message = "Invalid value: 0: must be specified for an update"
        fault = Fault("metadata.resourceVersion", "FieldValueInvalid", message)
        raise invalid(kind.group, kind.plural, call.route.name, [fault])
    return replaced(cluster, call, new, old)


def _unnamed(kind: Kind) -> Exception:
    return bad_request("name must be provided") if kind.custom else method_not_allowed()


def patch(cluster: Cluster, call: Call) -> Answer:
    """PATCH on an object or one of its subresources."""
    kind, name = call.kind, call.route.name
    if not name:
        raise _unnamed(kind)
    apply_patch = patched(kind, call.request)
    old = lookup(cluster, kind.resource, call.key)
    if old is None:
        raise not_found(kind.group, kind.plural, name)
    new = decoded(kind, apply_patch(served(kind.api_version, old)))
    _check_identity(call, new)
    return replaced(cluster, call, new, old)


def _check_identity(call: Call, new: Object) -> None:
    name, expected = new["metadata"].get("name"), call.route.name
    if not name:
        raise bad_request(
            f"the name of the object ({expected} based on URL) was undeterminable: "
            "name must be provided"
        )
    if name != expected:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL "
            f"({expected})"
        )
    _check_namespace(call, new)


def _check_uid(call: Call, new: Object, old: Object) -> None:
    """A PUT that names a uid means that very object."""
    kind, uid = call.kind, new["metadata"].get("uid")
    if uid and uid != old["metadata"]["uid"]:
        where = "/".join(part for part in (kind.plural, *call.key) if part)
        if kind.group:
            where = f"{kind.group}/{where}"
        raise conflict(
            kind.group,
            kind.plural,
            call.route.name or "",
            f"StorageError: invalid object, Code: 4, Key: /registry/{where}, "
            "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "
            f"precondition: {uid}, UID in object meta: {old['metadata']['uid']}",
        )


def _check_version(kind: Kind, new: Object, old: Object) -> None:
    given = new["metadata"].get("resourceVersion")
    if given is None or given == old["metadata"]["resourceVersion"]:
        return
    if not given.isdecimal():
        message = f'strconv.ParseUint: parsing "{given}": invalid syntax'
        raise internal(message, bare=True)
    raise conflict(kind.group, kind.plural, old["metadata"]["name"])


def replaced(cluster: Cluster, call: Call, new: Object, old: Object) -> Answer:
    """The common end of update and patch: `new` wants to take the place of `old`."""
    kind, key = call.kind, call.key
    _check_version(kind, new, old)
    new = _prepared(call, new, old)
    if call.route.subresource == "status":
        faults = [*_update_faults(new, old), *_status_faults(kind, new)]
    else:
        faults = [*_update_faults(new, old), *_faults(kind, new)]
    if faults:
        raise invalid(kind.group, kind.kind, old["metadata"]["name"], faults)
    if call.dry_run:
        return cluster, ApiResponse(200, served(kind.api_version, new)), ()
    if is_released(new):
        # The last finalizer is gone: the answer shows the new object at its old
        # version, the DELETED event shows the stored one at a new version.
        cluster, events = removed(cluster, kind, key)
        return cluster, ApiResponse(200, served(kind.api_version, new)), events
    if same(new, old):
        # A write that changes nothing is none.
        return cluster, ApiResponse(200, served(kind.api_version, old)), ()
    cluster, events = stored(cluster, kind, key, new, old, call.now)
    return cluster, ApiResponse(200, served(kind.api_version, events[0].object)), events


def _prepared(call: Call, new: Object, old: Object) -> Object:
    """`new` as its kind's strategy lets it replace `old` (PrepareForUpdate)."""
    kind = call.kind
    if call.route.subresource == "status":
        new = _status_only(kind, new, old)
    elif kind.status:
        new = _status_kept(new, old)
    metadata = _carried(new["metadata"], old["metadata"])
    new = to_storage(kind, {**new, "metadata": metadata})
    if kind.schema is not None:
        new = kind.schema.filled(new)
    if not kind.custom:
        new = defaulted(kind, new)
    if kind.generation:
        counted = {**new["metadata"], "generation": _generation(kind, new, old)}
        new = {**new, "metadata": counted}
    return new


# What the status strategies of built-in kinds protect beside spec.
PROTECTED: dict[Resource, tuple[str, ...]] = {
    ("", "pods"): ("ownerReferences",),
    ("apps", "deployments"): ("labels",),
    CRDS: ("labels", "annotations", "finalizers", "ownerReferences"),
}


def _status_only(kind: Kind, new: Object, old: Object) -> Object:
    """Through `/status` only status is written; on built-in kinds also metadata."""
    result = {**old}
    if "status" in new:
        result["status"] = new["status"]
    else:
        result.pop("status", None)
    if kind.custom:
        # Their metadata stays as it is, but a stale version is still a conflict.
        return result
    metadata = {**new["metadata"]}
    for name in PROTECTED.get(kind.resource, ()):
        metadata.pop(name, None)
        if name in old["metadata"]:
            metadata[name] = old["metadata"][name]
    return {**result, "metadata": metadata}


def _status_kept(new: Object, old: Object) -> Object:
    """Where `/status` exists, the main endpoint leaves status alone."""
    if new.get("status") is old.get("status"):
        return new
    result = {**new}
    if "status" in old:
        result["status"] = old["status"]
    else:
        result.pop("status", None)
    return result


def _carried(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """New metadata with what nobody can change by leaving it out."""
    metadata = {
        **new,
        "uid": new.get("uid") or old["uid"],
        "creationTimestamp": old["creationTimestamp"],
        "resourceVersion": old["resourceVersion"],
    }
    if "namespace" in old:
        metadata["namespace"] = old["namespace"]
    if "deletionTimestamp" in old:
        metadata["deletionTimestamp"] = old["deletionTimestamp"]
        metadata.setdefault(
            "deletionGracePeriodSeconds", old.get("deletionGracePeriodSeconds", 0)
        )
    metadata.pop("generation", None)
    if "generation" in old:
        metadata["generation"] = old["generation"]
    return metadata


def _generation(kind: Kind, new: Object, old: Object) -> int:
    """Counts changes of anything but metadata and, where it has its own endpoint,
    status."""
    outside = ("metadata", "status") if kind.status else ("metadata",)
    current: int = old["metadata"].get("generation", 1)
    for name in old.keys() | new.keys():
        if name not in outside and not same(new.get(name), old.get(name)):
            return current + 1
    return current


def _update_faults(new: Object, old: Object) -> Iterator[Fault]:
    after, before = new["metadata"], old["metadata"]
    if old["kind"] == "CustomResourceDefinition":
        yield from crd_update_faults(new, old)
    if "deletionTimestamp" in before:
        yield from _late_finalizers(after, before)
    for name in ("uid", "deletionTimestamp", "deletionGracePeriodSeconds"):
        value = after.get(name)
        if value != before.get(name):
            text = quoted(value) if isinstance(value, str) else str(value)
            fault = Fault(
                f"metadata.{name}",
                "FieldValueInvalid",
                f"Invalid value: {text}: field is immutable",
            )
            # Both the generic and the kind's own validation find it.
            yield from (fault, fault)


def _late_finalizers(after: dict[str, Any], before: dict[str, Any]) -> Iterator[Fault]:
    known = before.get("finalizers", ())
    added = [name for name in after.get("finalizers", ()) if name not in known]
    if added:
        names = ", ".join(map(quoted, added))
        fault = Fault(
            "metadata.finalizers",
            "FieldValueForbidden",
            "Forbidden: no new finalizers can be added if the object is being "
            f"deleted, found new finalizers []string{{{names}}}",
        )
        yield from (fault, fault)
