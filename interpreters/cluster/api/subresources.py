"""The subresources of built-in kinds that are neither status nor scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from fnop.effects.structs import replace
from fnop.interpreters.cluster.access.tokens import answer_token
from fnop.interpreters.cluster.admission.webhooks import Form
from fnop.interpreters.cluster.api.admitting import check_write, mutated, reviewed
from fnop.interpreters.cluster.api.create import Answer
from fnop.interpreters.cluster.api.eviction import answer_eviction
from fnop.interpreters.cluster.api.logs import answer_log, container_of
from fnop.interpreters.cluster.api.signing import SIGNING, condition_faults
from fnop.interpreters.cluster.apply.patch import patched
from fnop.interpreters.cluster.kinds.conversion import served
from fnop.interpreters.cluster.requests.body import decoded
from fnop.interpreters.cluster.requests.request import Call
from fnop.interpreters.cluster.requests.structs import checked
from fnop.interpreters.cluster.storage.commit import is_released, removed, stored
from fnop.interpreters.cluster.storage.store import Cluster, lookup
from fnop.interpreters.cluster.values.objects import Object, Resource, same, timestamp
from fnop.interpreters.cluster.values.status import (
    Fault,
    bad_request,
    conflict,
    failure,
    internal,
    invalid,
    method_not_allowed,
    not_found,
    quoted,
    unknown_resource,
)
from fnop.interpreters.runtime.protocol import ApiResponse

__all__ = ["SUBRESOURCES", "Subresource", "bind_named"]

PODS: Resource = ("", "pods")


def is_text(value: Any) -> bool:
    """Whether a JSON value is a string."""
    return isinstance(value, str)


class Subresource(Struct, frozen=True):
    """One subresource: its entry in discovery, and the function that answers."""

    kind: str
    verbs: tuple[str, ...]
    answer: Callable[[Cluster, Call], Answer]
    # The group and version of the kind, if it is not in the group of the resource.
    group: str = ""
    version: str = ""


def _get_object(cluster: Cluster, call: Call) -> Object:
    obj = lookup(cluster, call.kind.resource, call.key)
    if obj is None:
        raise not_found(call.kind.group, call.kind.plural, call.route.name or "")
    return obj


def _check_method(call: Call, *methods: str) -> None:
    if call.request.method not in methods:
        raise method_not_allowed()


def _check_version(call: Call, new: Any, old: Object) -> None:
    given = new["metadata"].get("resourceVersion")
    if given and given != old["metadata"]["resourceVersion"]:
        raise conflict(call.kind.group, call.kind.plural, old["metadata"]["name"])


# --------------------------------------------------------------------- binding


def _bind(cluster: Cluster, call: Call) -> Answer:
    """POST of a Binding: put a pod on a node, as schedulers do."""
    _check_method(call, "POST")
    binding = reviewed(cluster, call, "Binding", Form("", "v1", "Binding"))
    metadata, target = binding.get("metadata", {}), binding.get("target", {})
    name = call.route.name or ""
    if metadata.get("name") != name:
        raise bad_request("name in URL does not match name in Binding object")
    _check_target(target)
    pod = _get_object(cluster, call)
    node = (pod.get("spec") or {}).get("nodeName")
    why = ""
    if "deletionTimestamp" in pod["metadata"]:
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif node:
        why = f"pod {name} is already assigned to node {quoted(node)}"
    if why:
        raise conflict("", "pods/binding", name, why)
    done = ApiResponse(201, _success(201))
    if call.dry_run:
        return cluster, done, ()
    bound = _pod_on_node(pod, metadata.get("annotations", {}), target["name"], call.now)
    cluster, events = stored(cluster, call.kind, call.key, bound, pod, call.now)
    return cluster, done, events


def bind_named(cluster: Cluster, call: Call) -> Answer:
    """POST of a Binding that names its pod only in its body."""
    if call.route.name or call.route.subresource:
        raise unknown_resource()
    _check_method(call, "POST")
    name = checked("Binding", "v1", call.request.body).get("metadata", {}).get("name")
    if not name:
        raise bad_request("name is required")
    route = call.route._replace(plural="pods", name=name, subresource="binding")
    pods = cluster.registry.by_kind["", "Pod"]
    return _bind(cluster, replace(call, kind=pods, route=route))


def _success(code: int) -> dict[str, Any]:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}}
    return {**status, "status": "Success", "code": code}


def _check_target(target: dict[str, Any]) -> None:
    faults = []
    if target.get("kind") not in (None, "", "Node"):
        kind = quoted(target["kind"])
        supported = 'supported values: "Node", "<empty>"'
        faults.append(f"target.kind: Unsupported value: {kind}: {supported}")
    if not target.get("name"):
        faults.append("target.name: Required value")
    if faults:
        text = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
        raise internal(text, bare=True)


def _pod_on_node(
    pod: Object, annotations: dict[str, str], node: str, now: float
) -> Object:
    metadata, status = pod["metadata"], pod.get("status") or {}
    if annotations:
        merged = {**metadata.get("annotations", {}), **annotations}
        metadata = {**metadata, "annotations": merged}
    condition = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(now),
    }
    others = [c for c in status.get("conditions", ()) if c["type"] != "PodScheduled"]
    return {
        **pod,
        "metadata": metadata,
        "spec": {**pod.get("spec", {}), "nodeName": node},
        "status": {**status, "conditions": [*others, condition]},
    }


# -------------------------------------------------------------------- finalize


def _finalizers_of(namespace: Object) -> list[str]:
    """The finalizers of a namespace's content; 400 or 422 for wrong ones."""
    finalizers = (namespace.get("spec") or {}).get("finalizers") or []
    if not isinstance(finalizers, list) or not all(map(is_text, finalizers)):
        raise bad_request(
            'Namespace in version "v1" cannot be handled as a Namespace: json: cannot '
            "unmarshal into Go struct field NamespaceSpec.spec.finalizers of type "
            "[]v1.FinalizerName"
        )
    faults = [
        Fault(
            f"spec.finalizers[{index}]",
            "FieldValueInvalid",
            f"Invalid value: {quoted(each)}: name is neither a standard finalizer name "
            "nor is it fully qualified",
        )
        for index, each in enumerate(finalizers)
        if each != "kubernetes" and "/" not in each
    ]
    if faults:
        raise invalid("", "Namespace", namespace["metadata"]["name"], faults)
    return finalizers


def _finalize(cluster: Cluster, call: Call) -> Answer:
    """PUT on a namespace's `/finalize`: the only way to change spec.finalizers."""
    _check_method(call, "PUT")
    kind, name = call.kind, call.route.name or ""
    new = decoded(kind, call.request.body)
    if new["metadata"].get("name") != name:
        raise bad_request(
            f"the name of the object ({new['metadata'].get('name', '')}) does not "
            f"match the name on the URL ({name})"
        )
    old = _get_object(cluster, call)
    new = mutated(cluster, call, new, served(kind, old))
    _check_version(call, new, old)
    new = _namespace_finalized(new, old, _finalizers_of(new))
    check_write(cluster, call, served(kind, new), served(kind, old))
    if call.dry_run:
        return cluster, ApiResponse(200, served(kind, new)), ()
    if is_released(new):
        cluster, events = removed(cluster, kind, call.key)
        return cluster, ApiResponse(200, served(kind, new)), events
    if same(new, old):
        return cluster, ApiResponse(200, served(kind, old)), ()
    cluster, events = stored(cluster, kind, call.key, new, old, call.now)
    return cluster, ApiResponse(200, served(kind, events[0].object)), events


FREE = ("labels", "annotations", "finalizers", "ownerReferences")


def _namespace_finalized(new: Object, old: Object, finalizers: list[str]) -> Object:
    metadata = {k: v for k, v in old["metadata"].items() if k not in FREE}
    metadata |= {k: v for k, v in new["metadata"].items() if k in FREE}
    name = metadata["name"]
    labels = {"kubernetes.io/metadata.name": name, **metadata.get("labels", {})}
    spec = {"finalizers": finalizers} if finalizers else {}
    return {**old, "metadata": {**metadata, "labels": labels}, "spec": spec}


# Takes the stored object and the object that the client wants; returns the answer.
Change = Callable[[Cluster, Call, Object, Object], Answer]


def _shown_or_changed(change: Change) -> Callable[[Cluster, Call], Answer]:
    """A subresource that GET shows as the whole object, and PUT and PATCH change."""

    def answer(cluster: Cluster, call: Call) -> Answer:
        _check_method(call, "GET", "PUT", "PATCH")
        old, body = _get_object(cluster, call), call.request.body
        shown = served(call.kind, old)
        if call.request.method == "GET":
            return cluster, ApiResponse(200, shown), ()
        if call.request.method == "PATCH":
            body = patched(call.kind, call.request)(shown)
        new = mutated(cluster, call, decoded(call.kind, body), shown)
        _check_version(call, new, old)
        return change(cluster, call, old, new)

    return answer


def _store_object(cluster: Cluster, call: Call, old: Object, new: Object) -> Answer:
    """Store an object, unless this is a dry run, and answer with it."""
    check_write(cluster, call, served(call.kind, new), served(call.kind, old))
    if call.dry_run:
        return cluster, ApiResponse(200, served(call.kind, new)), ()
    cluster, events = stored(cluster, call.kind, call.key, new, old, call.now)
    return cluster, ApiResponse(200, served(call.kind, events[0].object)), events


# -------------------------------------------------------- ephemeral containers


def _add_ephemeral(cluster: Cluster, call: Call, old: Object, new: Object) -> Answer:
    """Add ephemeral containers to a pod; none can be removed."""
    field = "ephemeralContainers"
    wanted = (new.get("spec") or {}).get(field) or []
    if not isinstance(wanted, list) or not all(isinstance(w, dict) for w in wanted):
        raise bad_request(
            'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal '
            "into Go struct field PodSpec.spec.ephemeralContainers of type "
            "[]v1.EphemeralContainer"
        )
    have = (old.get("spec") or {}).get(field) or []
    names = {each.get("name") for each in wanted}
    lost = [each["name"] for each in have if each["name"] not in names]
    if lost:
        what = f"existing ephemeral containers {quoted(lost[0])}"
        message = f"Forbidden: {what} may not be removed"
        fault = Fault(f"spec.{field}", "FieldValueForbidden", message)
        raise invalid("", "Pod", call.route.name or "", [fault])
    if same(wanted, have):
        return cluster, ApiResponse(200, served(call.kind, old)), ()
    defaults = {
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    filled = [{**defaults, **each} for each in wanted]
    pod = {**old, "spec": {**old.get("spec", {}), field: filled}}
    return _store_object(cluster, call, old, pod)


# -------------------------------------------------------------------- approval


def _approve(cluster: Cluster, call: Call, old: Object, new: Object) -> Answer:
    """Set the conditions of a request for a certificate, approval among them."""
    kind = call.kind
    status = {**(old.get("status") or {})}
    faults = [*condition_faults(new, old, deciding=True)]
    if faults:
        raise invalid(kind.group, kind.kind, call.route.name or "", faults)
    conditions = (new.get("status") or {}).get("conditions")
    if conditions:
        now = timestamp(call.now)
        filled = {"lastUpdateTime": now, "lastTransitionTime": now}
        given = [{**filled, **_without_nulls(each)} for each in conditions]
        status["conditions"] = given
    result = {**old, "status": status}
    if same(result, old):
        return cluster, ApiResponse(200, served(kind, result)), ()
    return _store_object(cluster, call, old, result)


def _without_nulls(value: dict[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in value.items() if item is not None}


# ------------------------------------------------------ what containers would do


NO_CONTAINERS = "the simulated cluster runs no containers: there is nothing to {} here"


def _stream(cluster: Cluster, call: Call) -> Answer:
    """Refuse exec, attach and port-forward: there are no processes."""
    _check_method(call, "GET", "POST")
    pod = _get_object(cluster, call)
    what = call.route.subresource or ""
    if what != "portforward":
        container_of(pod, call.query.get("container", ""))
    if not (pod.get("spec") or {}).get("nodeName"):
        name = pod["metadata"]["name"]
        raise bad_request(f"pod {name} does not have a host assigned")
    raise bad_request(NO_CONTAINERS.format(what))


def _proxy(cluster: Cluster, call: Call) -> Answer:
    """Refuse to proxy to pods, services and nodes: nothing listens there."""
    obj = lookup(cluster, call.kind.resource, _proxied_key(call))
    if obj is None:
        raise not_found("", call.kind.plural, _proxied_key(call)[1])
    if call.kind.resource == PODS and not (obj.get("status") or {}).get("podIP"):
        raise bad_request("address not allowed")
    raise failure(503, "ServiceUnavailable", NO_CONTAINERS.format("proxy to"))


def _proxied_key(call: Call) -> tuple[str, str]:
    """The parts of a proxied name, such as https:name:443."""
    namespace, name = call.key
    parts = name.split(":")
    return namespace, parts[1] if len(parts) == 3 else parts[0]


def _token(cluster: Cluster, call: Call) -> Answer:
    return cluster, answer_token(cluster, call), ()


STREAM = ("create", "get")
PROXY = ("create", "delete", "get", "patch", "update")
CHANGED = ("get", "patch", "update")
SUBRESOURCES: dict[tuple[Resource, str], Subresource] = {
    (("", "namespaces"), "finalize"): Subresource("Namespace", ("update",), _finalize),
    (("", "nodes"), "proxy"): Subresource("NodeProxyOptions", PROXY, _proxy),
    (PODS, "attach"): Subresource("PodAttachOptions", STREAM, _stream),
    (PODS, "binding"): Subresource("Binding", ("create",), _bind),
    (PODS, "ephemeralcontainers"): Subresource(
        "Pod", CHANGED, _shown_or_changed(_add_ephemeral)
    ),
    (PODS, "eviction"): Subresource(
        "Eviction", ("create",), answer_eviction, "policy", "v1"
    ),
    (PODS, "exec"): Subresource("PodExecOptions", STREAM, _stream),
    (PODS, "log"): Subresource("Pod", ("get",), answer_log),
    (PODS, "portforward"): Subresource("PodPortForwardOptions", STREAM, _stream),
    (PODS, "proxy"): Subresource("PodProxyOptions", PROXY, _proxy),
    (("", "serviceaccounts"), "token"): Subresource(
        "TokenRequest", ("create",), _token, "authentication.k8s.io", "v1"
    ),
    (("", "services"), "proxy"): Subresource("ServiceProxyOptions", PROXY, _proxy),
    (SIGNING, "approval"): Subresource(
        "CertificateSigningRequest",
        ("get", "patch", "update"),
        _shown_or_changed(_approve),
    ),
}
