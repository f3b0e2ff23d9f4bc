"""CustomResourceDefinitions: defaults, status, and the kinds they register."""

from __future__ import annotations

from typing import Any

from fnop.interpreters.cluster.kinds import Registry, kinds_of_crd
from fnop.interpreters.cluster.store import Object

__all__ = [
    "CLEANUP",
    "CRDS",
    "crd_defaults",
    "established",
    "registry_with",
    "unseen_status",
]

CRDS = ("apiextensions.k8s.io", "customresourcedefinitions")
# Held by a CRD being deleted until all its instances are gone.
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


def crd_defaults(obj: Object) -> Object:
    """Names that follow from the kind, and the conversion strategy."""
    spec = obj.get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get("names"), dict):
        return obj
    names = spec["names"]
    kind = names.get("kind") or ""
    full = {
        **names,
        "singular": names.get("singular") or kind.lower(),
        "listKind": names.get("listKind") or f"{kind}List",
    }
    conversion = spec.get("conversion") or {"strategy": "None"}
    return {**obj, "spec": {**spec, "names": full, "conversion": conversion}}


def unseen_status(obj: Object) -> dict[str, Any]:
    """The status of a CRD that no controller has seen yet."""
    stored = [
        version["name"] for version in obj["spec"]["versions"] if version["storage"]
    ]
    return {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": stored,
    }


def established(obj: Object, moment: str) -> Object:
    """The CRD as the naming and establishing controllers leave it."""
    conditions = [
        {
            "type": "NamesAccepted",
            "status": "True",
            "lastTransitionTime": moment,
            "reason": "NoConflicts",
            "message": "no conflicts found",
        },
        {
            "type": "Established",
            "status": "True",
            "lastTransitionTime": moment,
            "reason": "InitialNamesAccepted",
            "message": "the initial names have been accepted",
        },
    ]
    stored = list(
        dict.fromkeys(
            [
                *((obj.get("status") or {}).get("storedVersions") or ()),
                *(v["name"] for v in obj["spec"]["versions"] if v["storage"]),
            ]
        )
    )
    status = {
        "conditions": conditions,
        "acceptedNames": obj["spec"]["names"],
        "storedVersions": stored,
    }
    return {**obj, "status": status}


def registry_with(registry: Registry, crd: Object, old: Object | None) -> Registry:
    """The registry after a CRD was written."""
    if old is not None:
        registry = registry.without(
            old["spec"]["group"], old["spec"]["names"]["plural"]
        )
    return registry.with_kinds(kinds_of_crd(crd))
