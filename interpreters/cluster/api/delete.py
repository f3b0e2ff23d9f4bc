"""Deletion: finalizers, propagation, preconditions, grace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import orjson
from msgspec import Struct

from fnop.interpreters.cluster.api.admitting import check_deletion, is_reviewed
from fnop.interpreters.cluster.api.read import list_body, selected
from fnop.interpreters.cluster.api.write import Answer
from fnop.interpreters.cluster.kinds.conversion import as_read, served, to_storage
from fnop.interpreters.cluster.kinds.crds import CLEANUP, CRDS
from fnop.interpreters.cluster.kinds.kinds import Kind
from fnop.interpreters.cluster.requests.request import Call
from fnop.interpreters.cluster.storage.commit import (
    FOREGROUND,
    NAMESPACES,
    ORPHAN,
    removed,
    stored,
)
from fnop.interpreters.cluster.storage.store import (
    Cluster,
    StoredEvent,
    lookup,
    remembered,
    shelf,
    written,
)
from fnop.interpreters.cluster.values.golang import go_name
from fnop.interpreters.cluster.values.numbers import query_integer
from fnop.interpreters.cluster.values.objects import Key, Object, same, timestamp
from fnop.interpreters.cluster.values.status import (
    Fault,
    Refusal,
    bad_request,
    conflict,
    forbidden,
    invalid,
    method_not_allowed,
    not_found,
    quoted,
    success,
)
from fnop.interpreters.runtime.protocol import ApiResponse

__all__ = ["Options", "delete", "delete_collection", "deleted"]

PODS = ("", "pods")
POLICIES = ("Background", "Foreground", "Orphan")
# Kinds that leave their dependents behind by default, for old clients.
ORPHANING = frozenset({("", "replicationcontrollers"), ("batch", "jobs")})
# These may not be deleted (NamespaceLifecycle).
IMMORTAL = ("default", "kube-system", "kube-public")


class Options(Struct, frozen=True):
    """The parts of DeleteOptions that affect the result."""

    policy: str | None = None
    uid: str | None = None
    version: str | None = None
    grace: int | None = None
    dry_run: bool = False


def delete(cluster: Cluster, call: Call) -> Answer:
    """DELETE of one object."""
    kind, name = call.kind, call.route.name
    if not name or call.route.subresource:
        raise method_not_allowed()
    options = _options(call)
    obj = lookup(cluster, kind.resource, call.key)
    if kind.resource == NAMESPACES and name in IMMORTAL:
        raise forbidden("", "namespaces", name, "this namespace may not be deleted")
    if obj is None:
        raise not_found(kind.group, kind.plural, name)
    _check_preconditions(kind, options, obj)
    _check_last_finalizer(call, options, obj)
    check = _check(cluster, call, obj)
    after, left, events = deleted(cluster, kind, call.key, options, call.now, check)
    if options.dry_run:
        after, events = cluster, ()
        left = left and _with_version_of(obj, left)
    if left is not None:
        return after, ApiResponse(200, served(kind, left)), events
    return after, _deletion_response(kind, obj), events


# Asks, in a cluster, whether an object may be deleted; raises `Refusal` if not.
Check = Callable[[Cluster, Object], None]


def _allow_deletion(cluster: Cluster, obj: Object) -> None:
    """Allow any deletion: for controllers, and for callers without webhooks."""


def _check(cluster: Cluster, call: Call, obj: Object) -> Check:
    if not is_reviewed(cluster, call):
        return _allow_deletion
    given = _sent_options(call)
    if call.kind.resource in (NAMESPACES, CRDS):
        # Their registries delete only the object that was found.
        found, conditions = {"uid": obj["metadata"]["uid"]}, given.get("preconditions")
        conditions = conditions if isinstance(conditions, dict) else {}
        given = {**given, "preconditions": {**found, **conditions}}
    return lambda cluster, obj: check_deletion(cluster, call, obj, given)


def _with_version_of(obj: Object, marked: Object) -> Object:
    """The marked object of a dry run at its stored version, because none was stored."""
    version = obj["metadata"]["resourceVersion"]
    return {**marked, "metadata": {**marked["metadata"], "resourceVersion": version}}


def _deletion_response(kind: Kind, obj: Object) -> ApiResponse:
    if kind.resource in RETURNS_OBJECT:
        return ApiResponse(200, obj)
    details = {"name": obj["metadata"]["name"]}
    if kind.group:
        details["group"] = kind.group
    details |= {"kind": kind.plural, "uid": obj["metadata"]["uid"]}
    return success(details)


# Most deletions are answered by a Status. Some are answered by the deleted object
# (ReturnDeletedObject in the registries).
RETURNS_OBJECT = frozenset(
    {
        ("", "serviceaccounts"),
        ("", "services"),  # not yet in 1.20
        ("", "persistentvolumes"),
        ("", "persistentvolumeclaims"),
        ("", "podtemplates"),
        ("", "resourcequotas"),
        ("policy", "podsecuritypolicies"),
        ("storage.k8s.io", "storageclasses"),
    }
)


def _options(call: Call) -> Options:
    """The DeleteOptions of the body; without a body, the options of the query.

    So `?dryRun=All` with a body without `dryRun` really deletes: DeleteResource reads
    the query only in the place of an empty body.
    """
    raw = _sent_options(call)
    policy, orphan, dry = (
        raw.get(name) for name in ("propagationPolicy", "orphanDependents", "dryRun")
    )
    if faults := [*_policy_faults(policy, orphan), *_dry_run_faults(dry)]:
        raise invalid("meta.k8s.io", "DeleteOptions", "", faults)
    if not policy and isinstance(orphan, bool):
        policy = "Orphan" if orphan else "Background"
    conditions = raw.get("preconditions")
    conditions = conditions if isinstance(conditions, dict) else {}
    grace = raw.get("gracePeriodSeconds")
    if grace is not None and (isinstance(grace, bool) or not isinstance(grace, int)):
        raise bad_request(
            f"json: cannot unmarshal {go_name(grace)} into Go struct field "
            "DeleteOptions.gracePeriodSeconds of type int64"
        )
    return Options(
        policy or None,
        conditions.get("uid"),
        conditions.get("resourceVersion"),
        grace,
        bool(dry),
    )


def _sent_options(call: Call) -> dict[str, Any]:
    """The DeleteOptions as they were sent, without their type."""
    body = call.request.body
    if body is None:
        return _query_options(call.query)
    if not isinstance(body, dict):
        raise bad_request("couldn't get version/kind; json parse error")
    return {
        name: value
        for name, value in body.items()
        if name not in ("kind", "apiVersion") and value is not None
    }


def _query_options(query: dict[str, str]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if "propagationPolicy" in query:
        options["propagationPolicy"] = query["propagationPolicy"]
    if "dryRun" in query:
        options["dryRun"] = [query["dryRun"]]
    if "orphanDependents" in query:
        options["orphanDependents"] = query["orphanDependents"] in ("true", "1")
    if grace := query.get("gracePeriodSeconds"):
        options["gracePeriodSeconds"] = query_integer(grace)
    return options


def _policy_faults(policy: Any, orphan: Any) -> Iterator[Fault]:
    if policy and isinstance(orphan, bool):
        yield Fault(
            "propagationPolicy",
            "FieldValueInvalid",
            f"Invalid value: {quoted(str(policy))}: orphanDependents and "
            "deletionPropagation cannot be both set",
        )
    elif policy and policy not in POLICIES:
        known = ", ".join(map(quoted, ("Foreground", "Background", "Orphan", "nil")))
        yield Fault(
            "propagationPolicy",
            "FieldValueNotSupported",
            f"Unsupported value: {quoted(str(policy))}: supported values: {known}",
        )


def _dry_run_faults(dry: Any) -> Iterator[Fault]:
    if dry and dry != ["All"]:
        yield Fault(
            "dryRun",
            "FieldValueNotSupported",
            f'Unsupported value: {orjson.dumps(dry).decode()}: supported values: "All"',
        )


def _check_preconditions(kind: Kind, options: Options, obj: Object) -> None:
    metadata = obj["metadata"]
    name = metadata["name"]
    if kind.resource in (NAMESPACES, CRDS):
        _check_own_way(kind, options, metadata)
        return
    if options.uid is not None and options.uid != metadata["uid"]:
        raise conflict(
            kind.group,
            kind.kind,
            name,
            f"the UID in the precondition ({options.uid}) does not match the UID in "
            f"record ({metadata['uid']}). The object might have been deleted and then "
            "recreated",
        )
    if options.version is not None and options.version != metadata["resourceVersion"]:
        raise conflict(
            kind.group,
            kind.kind,
            name,
            f"the ResourceVersion in the precondition ({options.version}) does not "
            f"match the ResourceVersion in record ({metadata['resourceVersion']}). "
            "The object might have been modified",
        )


def _check_own_way(kind: Kind, options: Options, metadata: dict[str, Any]) -> None:
    """Refuse unmet preconditions in the words of namespaces and definitions."""
    for what, wanted, present in (
        ("UID", options.uid, metadata["uid"]),
        ("ResourceVersion", options.version, metadata["resourceVersion"]),
    ):
        if wanted is not None and wanted != present:
            raise conflict(
                kind.group,
                kind.plural,
                metadata["name"],
                f"Precondition failed: {what} in precondition: {wanted}, {what} in "
                f"object meta: {present}",
            )


def _check_last_finalizer(call: Call, options: Options, obj: Object) -> None:
    """Refuse a resourceVersion if the policy removes the last finalizers.

    The real server blanks the version of the object that it changes before it deletes
    it, and then misses it. So nothing is deleted.
    """
    kind, metadata = call.kind, obj["metadata"]
    loses = metadata.get("finalizers") and not _finalizers(kind, obj, options.policy)
    if options.version is None or options.dry_run or not loses:
        return
    where = "/".join(part for part in (kind.plural, *call.key) if part)
    if kind.custom:
        where = f"{kind.group}/{where}"
    raise conflict(
        kind.group,
        kind.plural,
        metadata["name"],
        f"StorageError: invalid object, Code: 4, Key: /registry/{where}, "
        "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: ResourceVersion "
        "in precondition: , ResourceVersion in object meta: "
        f"{metadata['resourceVersion']}",
    )


def deleted(
    cluster: Cluster,
    kind: Kind,
    key: Key,
    options: Options,
    now: float,
    check: Check = _allow_deletion,
) -> tuple[Cluster, Object | None, tuple[StoredEvent, ...]]:
    """Delete an object, or mark it; the marked object is the second result."""
    obj = lookup(cluster, kind.resource, key)
    assert obj is not None
    finalizers = _finalizers(kind, obj, options.policy)
    if kind.resource == PODS:
        return _pod_deleted(cluster, kind, key, options, now, check)
    if kind.resource not in (NAMESPACES, CRDS) or not _is_marked(obj):
        check(cluster, obj)
    if not finalizers and kind.resource != NAMESPACES:
        cluster, events = removed(cluster, kind, key)
        return cluster, None, events
    # The object is written in the version of the request, and loses the fields that
    # this version lacks.
    raw = to_storage(
        kind, _with_deletion_mark(kind, served(kind, obj), finalizers, 0, now)
    )
    if same(raw, written(cluster, kind.resource, key, obj)):
        return cluster, obj, ()
    marked = as_read(kind, raw)
    cluster, events = stored(cluster, kind, key, marked, obj, now)
    cluster = remembered(cluster, kind.resource, key, raw, marked)
    return cluster, events[0].object, events


def _is_marked(obj: Object) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def _pod_deleted(
    cluster: Cluster,
    kind: Kind,
    key: Key,
    options: Options,
    now: float,
    check: Check,
) -> tuple[Cluster, Object, tuple[StoredEvent, ...]]:
    """Delete a pod: mark it, and remove it at once if its grace is 0."""
    pod = shelf(cluster, PODS)[key]
    finalizers = _finalizers(kind, pod, options.policy)
    grace = _grace(pod, options)
    marked = _with_deletion_mark(kind, pod, finalizers, grace, now)
    events: tuple[StoredEvent, ...] = ()
    if not same(marked, pod):
        check(cluster, pod)
        cluster, events = stored(cluster, kind, key, marked, pod, now)
        marked = events[0].object
    if grace or finalizers:
        return cluster, marked, events
    # One write marks it and another removes it: webhooks see both.
    check(cluster, marked)
    cluster, more = removed(cluster, kind, key)
    return cluster, marked, events + more


def _finalizers(kind: Kind, obj: Object, policy: str | None) -> list[str]:
    """The finalizers, with the garbage collector's as the policy requires."""
    present = obj["metadata"].get("finalizers", [])
    if policy is None:
        # Without a policy, the existing finalizers decide.
        orphan, foreground = ORPHAN in present, FOREGROUND in present
        if not foreground and kind.resource in ORPHANING:
            orphan = True
    else:
        orphan, foreground = policy == "Orphan", policy == "Foreground"
    kept = [name for name in present if name not in (ORPHAN, FOREGROUND)]
    if orphan:
        kept.append(ORPHAN)
    if foreground:
        kept.append(FOREGROUND)
    if set(kept) == set(present):
        kept = list(present)  # in any order
    if kind.resource == CRDS and CLEANUP not in kept:
        kept.append(CLEANUP)
    return kept


def _grace(pod: Object, options: Options) -> int:
    """The grace of a pod: 0 unless it is scheduled and still runs."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in ("Failed", "Succeeded"):
        return 0
    grace = options.grace
    if grace is None:
        given = spec.get("terminationGracePeriodSeconds")
        grace = given if isinstance(given, int) else 30
    # A later request can shorten the grace, never lengthen it.
    running: int = pod["metadata"].get("deletionGracePeriodSeconds", grace)
    return min(grace, running)


def _with_deletion_mark(
    kind: Kind, obj: Object, finalizers: list[str], grace: int, now: float
) -> Object:
    metadata = {**obj["metadata"]}
    metadata.pop("finalizers", None)
    if finalizers:
        metadata["finalizers"] = finalizers
    is_new = "deletionTimestamp" not in metadata
    # Namespaces and CRDs are marked by their own registries, which have no grace.
    if kind.resource in (NAMESPACES, CRDS):
        metadata.setdefault("deletionTimestamp", timestamp(now))
    elif is_new or grace < metadata.get("deletionGracePeriodSeconds", 0):
        metadata["deletionTimestamp"] = timestamp(now + grace)
        metadata["deletionGracePeriodSeconds"] = grace
        if is_new and "generation" in metadata:
            # A deletion counts as a change of the desired state.
            metadata["generation"] += 1
    if kind.resource == NAMESPACES:
        status = {**(obj.get("status") or {}), "phase": "Terminating"}
        return {**obj, "metadata": metadata, "status": status}
    return {**obj, "metadata": metadata}


def delete_collection(cluster: Cluster, call: Call) -> Answer:
    """DELETE of a collection: each selected object by itself."""
    options = _options(call)
    found = [obj for _, obj in selected(cluster, call)]
    body = list_body(cluster, call.kind, found)
    after, response = cluster, ApiResponse(200, body)
    events: tuple[StoredEvent, ...] = ()
    for obj in found:
        metadata = obj["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        check = _check(after, call, obj)
        try:
            after, _, more = deleted(after, call.kind, key, options, call.now, check)
        except Refusal as refusal:
            # Earlier objects stay deleted.
            response = refusal.response
            break
        events += more
    if options.dry_run:
        return cluster, response, ()
    return after, response, events
