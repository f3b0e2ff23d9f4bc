"""CustomResourceDefinitions: defaults, status, and the kinds they register."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fnop.interpreters.cluster.kinds import Registry, kinds_of_crd
from fnop.interpreters.cluster.store import Object

__all__ = [
    "CLEANUP",
    "CRDS",
    "crd_defaults",
    "establishing",
    "registry_with",
    "terminating",
    "unseen_status",
]

CRDS = ("apiextensions.k8s.io", "customresourcedefinitions")
# Held by a CRD being deleted until all its instances are gone.
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


def crd_defaults(obj: Object) -> Object:
    """Names that follow from the kind, absent flags, the conversion strategy."""
    spec = obj.get("spec")
    if spec is None:
        return obj
    names = spec.get("names") or {}
    kind = names.get("kind") or ""
    full = {
        **names,
        "singular": names.get("singular") or kind.lower(),
        "listKind": names.get("listKind") or f"{kind}List",
    }
    versions = [
        {
            **version,
            "served": version.get("served") or False,
            "storage": version.get("storage") or False,
        }
        for version in spec.get("versions") or ()
    ]
    conversion = spec.get("conversion") or {"strategy": "None"}
    filled = {**spec, "names": full, "versions": versions, "conversion": conversion}
    return {**obj, "spec": filled}


def _stored_versions(obj: Object) -> list[str]:
    versions = (obj.get("spec") or {}).get("versions") or ()
    return [version.get("name", "") for version in versions if version["storage"]]


def unseen_status(obj: Object) -> dict[str, Any]:
    """The status of a CRD that no controller has seen yet."""
    return {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": _stored_versions(obj),
    }


def _condition(kind: str, status: str, reason: str, message: str) -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


ACCEPTED = _condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")
INSTALLING = _condition(
    "Established", "False", "Installing", "the initial names have been accepted"
)
ESTABLISHED = _condition(
    "Established",
    "True",
    "InitialNamesAccepted",
    "the initial names have been accepted",
)
TERMINATING = _condition(
    "Terminating",
    "True",
    "InstanceDeletionInProgress",
    "CustomResource deletion is in progress",
)


def establishing(obj: Object, moment: str) -> Iterator[Object]:
    """The states through which the controllers lead a CRD that was written.

    First the naming controller accepts the names, then the establishing
    controller lets the kind be served.
    """
    status = obj.get("status") or {}
    present = {c["type"]: c for c in status.get("conditions") or ()}
    stored = _stored_versions(obj)
    known = status.get("storedVersions") or ()
    for wanted in ((ACCEPTED, INSTALLING), (ACCEPTED, ESTABLISHED)):
        if wanted[1] is INSTALLING and "Established" in present:
            continue
        for condition in wanted:
            present[condition["type"]] = _moved(present, condition, moment)
        after = {
            "conditions": list(present.values()),
            "acceptedNames": obj["spec"]["names"],
            "storedVersions": list(dict.fromkeys([*known, *stored])),
        }
        if after != status:
            obj, status = {**obj, "status": after}, after
            yield obj


def _moved(
    present: dict[str, dict[str, str]], wanted: dict[str, str], moment: str
) -> dict[str, str]:
    """A condition; its time moves only when its status flips."""
    old = present.get(wanted["type"])
    flipped = old is None or old["status"] != wanted["status"]
    since = moment if old is None or flipped else old["lastTransitionTime"]
    return {**wanted, "lastTransitionTime": since}


def terminating(obj: Object, moment: str) -> Object:
    """The CRD as its finalizing controller marks it; itself if that was done."""
    status = obj.get("status") or {}
    conditions = status.get("conditions") or []
    if any(condition["type"] == "Terminating" for condition in conditions):
        return obj
    ending = {**TERMINATING, "lastTransitionTime": moment}
    return {**obj, "status": {**status, "conditions": [*conditions, ending]}}


def registry_with(registry: Registry, crd: Object, old: Object | None) -> Registry:
    """The registry after a CRD was written."""
    if old is not None:
        registry = registry.without(
            old["spec"]["group"], old["spec"]["names"]["plural"]
        )
    return registry.with_kinds(kinds_of_crd(crd))
