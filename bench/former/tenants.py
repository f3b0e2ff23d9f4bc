"""The example 20-tenants, by causes."""

from typing import Any

import fnop

TEMPLATE = {"tenant-template": fnop.PRESENT}
OF_TENANT = {"tenant": fnop.PRESENT, "tenant-namespace": fnop.PRESENT}
CLOSED = {"pods": "0"}


@fnop.index("tenants")
def users(
    name: str, namespace: str | None, spec: fnop.Spec, **_: Any
) -> dict[str, str]:
    return {f"{namespace}/{spec['template']}": name}


@fnop.on.create("tenants")
@fnop.on.resume("tenants")
@fnop.on.update("tenants")
async def tenant(body: fnop.Body, now: Any, **_: Any) -> None:
    await build(body, now)


@fnop.on.delete("tenants")
async def gone(name: str, namespace: str | None, **_: Any) -> None:
    """Delete the namespace, with everything in it."""
    await fnop.delete("namespaces", name=f"{namespace}-{name}")
    if await fnop.get("namespaces", name=f"{namespace}-{name}") is not None:
        raise fnop.TemporaryError("the namespace is still there", delay=2)


@fnop.on.event("configmaps", labels=TEMPLATE)
async def template_seen(
    name: str,
    namespace: str | None,
    now: Any,
    users: fnop.Index[str, str] = fnop.INDEX,
    **_: Any,
) -> None:
    for each in users.get(f"{namespace}/{name}", ()):
        found = await fnop.get("tenants", name=each, namespace=namespace)
        if found is not None and "deletionTimestamp" not in found["metadata"]:
            await build(found, now)


@fnop.on.event("namespaces", labels=OF_TENANT)
@fnop.on.event("resourcequotas", labels=OF_TENANT)
@fnop.on.event("networkpolicies.networking.k8s.io", labels=OF_TENANT)
@fnop.on.event("rolebindings.rbac.authorization.k8s.io", labels=OF_TENANT)
async def child_seen(
    body: fnop.Body, labels: fnop.Labels, type: str | None, now: Any, **_: Any
) -> None:
    """Repair a child that was deleted, or that is not as desired."""
    where = {"name": labels["tenant"], "namespace": labels["tenant-namespace"]}
    found = await fnop.get("tenants", **where)
    if found is None or "deletionTimestamp" in found["metadata"]:
        return
    quota = await quota_of(found)
    for wanted in children(found, CLOSED if quota is None else quota):
        if wanted["kind"] == body["kind"] and (
            type == "DELETED" or differs(wanted, body)
        ):
            await build(found, now)
            return
    if body["kind"] == "Namespace":
        await tell(found, quota, body, now)


async def build(body: Any, now: Any) -> None:
    quota = await quota_of(body)
    space: Any = {}
    for wanted in children(body, CLOSED if quota is None else quota):
        try:
            made = await fnop.apply(wanted, force=True)
        except fnop.Refused as problem:
            # The role of a binding is immutable.
            if problem.status != 422 or wanted["kind"] != "RoleBinding":
                raise
            place = wanted["metadata"]["namespace"]
            await fnop.delete("rolebindings", name="tenant", namespace=place)
            made = await fnop.apply(wanted, force=True)
        if wanted["kind"] == "Namespace":
            space = made
    await tell(body, quota, space, now)


async def quota_of(body: Any) -> dict[str, str] | None:
    meta = body["metadata"]
    name, namespace = body["spec"]["template"], meta["namespace"]
    found = await fnop.get("configmaps", name=name, namespace=namespace)
    if found is None or "tenant-template" not in found["metadata"].get("labels", {}):
        return None
    return dict(found.get("data", {}))


async def tell(body: Any, quota: Any, space: Any, now: Any) -> None:
    """Merge the condition Ready into the conditions, if it has changed."""
    meta, status = body["metadata"], body.get("status", {})
    active = space.get("status", {}).get("phase") == "Active"
    reason = "NoTemplate" if quota is None else "Served" if active else "Starting"
    told = {
        "type": "Ready",
        "status": "True" if reason == "Served" else "False",
        "reason": reason,
        "message": "",
        "observedGeneration": meta["generation"],
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    present = status.get("conditions", [])
    for each in present:
        if each["type"] == "Ready" and each["status"] == told["status"]:
            told["lastTransitionTime"] = each["lastTransitionTime"]
    conditions = [*(each for each in present if each["type"] != "Ready"), told]
    place = f"{meta['namespace']}-{meta['name']}"
    if conditions != present or status.get("namespace") != place:
        where = fnop.target("tenants", name=meta["name"], namespace=meta["namespace"])
        await fnop.patch(where, status={"conditions": conditions, "namespace": place})


def children(body: Any, hard: dict[str, str]) -> list[dict[str, Any]]:
    meta, spec = body["metadata"], body["spec"]
    place = f"{meta['namespace']}-{meta['name']}"
    labels = {"tenant": meta["name"], "tenant-namespace": meta["namespace"]}
    group = "rbac.authorization.k8s.io"
    inside = {"name": "tenant", "namespace": place, "labels": labels}
    subjects = [
        {"apiGroup": group, "kind": "User", "name": each}
        for each in spec.get("members", ())
    ]
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": place, "labels": labels},
        },
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": inside,
            "spec": {"hard": hard},
        },
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": inside,
            "spec": {
                "podSelector": {},
                "policyTypes": ["Ingress"],
                "ingress": [{"from": [{"podSelector": {}}]}],
            },
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": inside,
            "roleRef": {
                "apiGroup": group,
                "kind": "ClusterRole",
                "name": spec.get("role", "edit"),
            },
            "subjects": subjects,
        },
    ]


def differs(wanted: Any, found: Any) -> bool:
    """Whether a field is not as wanted; the API server fills in others."""
    if isinstance(wanted, dict):
        return any(differs(each, found.get(key, {})) for key, each in wanted.items())
    if isinstance(wanted, list):
        if len(wanted) != len(found):
            return True
        return any(
            differs(one, other) for one, other in zip(wanted, found, strict=True)
        )
    return bool(wanted != found)
