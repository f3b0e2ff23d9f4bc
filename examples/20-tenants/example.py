"""Tenants: a namespace for each, with a quota, rights and a firewall."""

from collections.abc import Sequence
from typing import Any

import fnop

TEMPLATE = {"tenant-template": fnop.PRESENT}
OWNS = [
    *("namespaces", "resourcequotas"),
    *("networkpolicies.networking.k8s.io", "rolebindings.rbac.authorization.k8s.io"),
]
# Where there is no template nothing may run.
CLOSED = {"pods": "0"}


@fnop.index("configmaps", labels=TEMPLATE)
def quotas(name: str, namespace: str, body: fnop.Body, **_: Any) -> dict[str, Any]:
    return {f"{namespace}/{name}": body.get("data", {})}


@fnop.index("tenants")
def users(name: str, namespace: str, spec: fnop.Spec, **_: Any) -> dict[str, str]:
    return {f"{namespace}/{spec['template']}": f"{namespace}/{name}"}


@fnop.maps("configmaps", to="tenants", labels=TEMPLATE)
def users_of(
    name: str, namespace: str, users: fnop.Index[str, str] = fnop.INDEX, **_: Any
) -> Sequence[str]:
    """A template that changes or goes is the affair of the tenants that use it."""
    return users.get(f"{namespace}/{name}", ())


@fnop.reconcile("tenants", owns=OWNS)
def tenant(
    spec: fnop.Spec,
    name: str,
    namespace: str,
    children: Any,
    quotas: fnop.Index[str, Any] = fnop.INDEX,
    **_: Any,
) -> fnop.Desired:
    """All of it is outside of the tenant's namespace, and goes before the tenant."""
    place = f"{namespace}-{name}"
    found = quotas.get(f"{namespace}/{spec['template']}", ())
    hard = dict(found[0]) if found else CLOSED
    space = children["namespaces"].get(place, {})
    is_active = space.get("status", {}).get("phase") == "Active"
    reason = "Served" if found and is_active else "Starting" if found else "NoTemplate"
    return fnop.desired(
        [
            manifest("v1", "Namespace", place),
            inside(place, "v1", "ResourceQuota", spec={"hard": hard}),
            inside(
                place, "networking.k8s.io/v1", "NetworkPolicy", spec=from_inside_alone()
            ),
            inside(
                place,
                "rbac.authorization.k8s.io/v1",
                "RoleBinding",
                roleRef=role(spec.get("role", "edit")),
                subjects=[user(each) for each in spec.get("members", ())],
            ),
        ],
        conditions=fnop.condition("Ready", reason == "Served", reason),
        status={"namespace": place},
    )


def manifest(
    version: str, kind: str, name: str, namespace: str | None = None, **stanzas: Any
) -> dict[str, Any]:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": meta, **stanzas}


def inside(place: str, version: str, kind: str, **stanzas: Any) -> fnop.Child:
    """A child in the tenant's namespace, and after it.

    The role of a binding is for good: the binding is made anew for another one.
    """
    found = manifest(version, kind, "tenant", place, **stanzas)
    return fnop.child(found, after=f"namespace/{place}", on_immutable="replace")


def from_inside_alone() -> dict[str, Any]:
    return {
        "podSelector": {},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": {}}]}],
    }


def role(name: str) -> dict[str, str]:
    group = "rbac.authorization.k8s.io"
    return {"apiGroup": group, "kind": "ClusterRole", "name": name}


def user(name: str) -> dict[str, str]:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}
