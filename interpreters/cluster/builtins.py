"""What a server fills into built-in objects: the part operators meet daily."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any

from fnop.interpreters.cluster.crds import CRDS, crd_defaults
from fnop.interpreters.cluster.defaults import SCHEMAS
from fnop.interpreters.cluster.kinds import Kind
from fnop.interpreters.cluster.store import Object, Resource

__all__ = ["defaulted", "fresh_status"]


def _namespace(obj: Object) -> Object:
    name = obj["metadata"].get("name", "")
    # Since 1.21 every namespace is labelled with its own name.
    labels = {**obj["metadata"].get("labels", {}), "kubernetes.io/metadata.name": name}
    return {
        **obj,
        "metadata": {**obj["metadata"], "labels": labels},
        "spec": {"finalizers": ["kubernetes"], **(obj.get("spec") or {})},
    }


def _secret(obj: Object) -> Object:
    plain = obj.get("stringData")
    result = {"type": "Opaque", **obj}
    if isinstance(plain, dict):
        # stringData is write-only: it becomes data.
        encoded = {
            key: b64encode(str(value).encode()).decode() for key, value in plain.items()
        }
        result["data"] = {**(obj.get("data") or {}), **encoded}
        del result["stringData"]
    return result


DEFAULTS: dict[Resource, Callable[[Object], Object]] = {
    ("", "namespaces"): _namespace,
    ("", "secrets"): _secret,
    CRDS: crd_defaults,
}

STATUS: dict[Resource, dict[str, Any]] = {
    ("", "namespaces"): {"phase": "Active"},
    ("", "pods"): {"phase": "Pending", "qosClass": "BestEffort"},
    ("", "persistentvolumeclaims"): {"phase": "Pending"},
    ("", "persistentvolumes"): {"phase": "Pending"},
    ("", "services"): {"loadBalancer": {}},
    ("networking.k8s.io", "ingresses"): {"loadBalancer": {}},
}


def defaulted(kind: Kind, obj: Object) -> Object:
    """The object with the defaults of its built-in kind."""
    schema = SCHEMAS.get(kind.resource)
    if schema is not None:
        obj = schema.filled(obj)
    fill = DEFAULTS.get(kind.resource)
    return obj if fill is None else fill(obj)


def fresh_status(kind: Kind) -> dict[str, Any]:
    """The status of a built-in object that was just created."""
    return STATUS.get(kind.resource, {})
