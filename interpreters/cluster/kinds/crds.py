"""CustomResourceDefinitions: defaults, status, and the kinds they register."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fnop.interpreters.cluster.kinds.kinds import Registry, kinds_of_crd
from fnop.interpreters.cluster.schema.crd_written import written_spec
from fnop.interpreters.cluster.values.objects import Object

__all__ = [
    "APPROVAL",
    "CLEANUP",
    "CRDS",
    "crd_defaults",
    "establishing",
    "is_established",
    "is_protected",
    "registry_with",
    "terminating",
    "unseen_status",
]

APPROVAL = "api-approved.kubernetes.io"
CRDS = ("apiextensions.k8s.io", "customresourcedefinitions")
# The finalizer of a CRD that is being deleted, until all its instances are gone.
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


def is_protected(group: str) -> bool:
    """Whether a group is one of Kubernetes' own.

    >>> [is_protected(group) for group in ("k8s.io", "metrics.k8s.io", "x-k8s.io")]
    [True, True, False]
    """
    return f".{group}".endswith((".k8s.io", ".kubernetes.io"))


def is_established(crd: Object) -> bool:
    """Whether a CRD's kind is, or has been, served."""
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(
        one["type"] == "Established" and one["status"] == "True" for one in conditions
    )


def crd_defaults(obj: Object) -> Object:
    """Fill in names derived from the kind, absent flags, the conversion strategy."""
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
    return {**obj, "spec": written_spec(filled)}


def _stored_versions(obj: Object) -> list[str]:
    versions = (obj.get("spec") or {}).get("versions") or ()
    return [version.get("name", "") for version in versions if version["storage"]]


def unseen_status(obj: Object) -> dict[str, Any]:
    """The status of a CRD that no controller has seen yet."""
    return {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": _stored_versions(obj)[:1],
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
NOT_ACCEPTED = _condition(
    "Established", "False", "NotAccepted", "not all names are accepted"
)
TERMINATING = _condition(
    "Terminating",
    "True",
    "InstanceDeletionInProgress",
    "CustomResource deletion is in progress",
)


def _names_of(names: dict[str, Any]) -> tuple[set[str], set[str]]:
    """The names that a CRD reserves in its group: for resources, and for kinds."""
    resources = {names.get("plural") or "", names.get("singular") or ""}
    resources |= set(names.get("shortNames") or ())
    kinds = {names.get("kind") or "", names.get("listKind") or ""}
    return resources - {""}, kinds - {""}


def _accept_names(
    crd: Object, others: Sequence[Object]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The names that a CRD gets among the others of its group, and the verdict.

    If a name is taken, the name that was accepted before stays (naming controller).
    """
    wanted = crd["spec"]["names"]
    names = {"plural": "", "kind": "", **_accepted_names(crd)}
    taken: tuple[set[str], set[str]] = (set(), set())
    for other in others:
        for used, found in zip(taken, _names_of(_accepted_names(other)), strict=True):
            used |= found
    verdict = ACCEPTED
    for field, used, reason in (
        ("plural", taken[0], "PluralConflict"),
        ("singular", taken[0], "SingularConflict"),
        ("shortNames", taken[0], "ShortNamesConflict"),
        ("kind", taken[1], "KindConflict"),
        ("listKind", taken[1], "ListKindConflict"),
    ):
        given = wanted.get(field)
        clash = used & set(given if isinstance(given, list) else [given])
        if clash:
            message = f'"{min(clash)}" is already in use'
            verdict = _condition("NamesAccepted", "False", reason, message)
        elif given:
            names[field] = given
        else:
            names.pop(field, None)
    names.pop("categories", None)
    if wanted.get("categories"):
        names["categories"] = wanted["categories"]
    return names, verdict


def _accepted_names(crd: Object) -> dict[str, Any]:
    return (crd.get("status") or {}).get("acceptedNames") or {}


def _approval(crd: Object) -> dict[str, str] | None:
    """The condition about the approval of a CRD in Kubernetes' own groups, or None."""
    if not is_protected(crd["spec"]["group"]):
        return None
    text = (crd["metadata"].get("annotations") or {}).get(APPROVAL, "")
    if text.startswith("unapproved"):
        status, reason, why = "False", "UnapprovedAnnotation", f'not approved: "{text}"'
    else:
        status, reason, why = "True", "ApprovedAnnotation", f"approved in {text}"
    return _condition("KubernetesAPIApprovalPolicyConformant", status, reason, why)


def establishing(
    obj: Object, moment: str, others: Sequence[Object] = ()
) -> Iterator[Object]:
    """The states through which the controllers lead a CRD that was written.

    First the naming controller accepts the names, unless others of the group have them.
    Then the establishing controller lets the kind be served.
    """
    status = obj.get("status") or {}
    present = {c["type"]: c for c in status.get("conditions") or ()}
    stored = _stored_versions(obj)
    known = status.get("storedVersions") or ()
    names, verdict = _accept_names(obj, others)
    is_served = present.get("Established", {}).get("status") == "True"
    steps = [[verdict, INSTALLING if verdict is ACCEPTED else NOT_ACCEPTED]]
    if is_served:
        steps = [[verdict]]
    elif verdict is ACCEPTED:
        steps.append([verdict, ESTABLISHED])
    if approval := _approval(obj):
        steps[-1].append(approval)
    for wanted in steps:
        for condition in wanted:
            present[condition["type"]] = _with_transition_time(
                present, condition, moment
            )
        after = {
            "conditions": list(present.values()),
            "acceptedNames": names,
            "storedVersions": list(dict.fromkeys([*known, *stored])),
        }
        if after != status:
            obj, status = {**obj, "status": after}, after
            yield obj


def _with_transition_time(
    present: dict[str, dict[str, str]], wanted: dict[str, str], moment: str
) -> dict[str, str]:
    """A condition; its time moves only when its status flips."""
    old = present.get(wanted["type"])
    flipped = old is None or old["status"] != wanted["status"]
    since = moment if old is None or flipped else old["lastTransitionTime"]
    return {**wanted, "lastTransitionTime": since}


def terminating(obj: Object, moment: str) -> Object:
    """The CRD as its finalizing controller marks it; itself if it is marked already."""
    status = obj.get("status") or {}
    conditions = status.get("conditions") or []
    if any(condition["type"] == "Terminating" for condition in conditions):
        return obj
    ending = {**TERMINATING, "lastTransitionTime": moment}
    return {**obj, "status": {**status, "conditions": [*conditions, ending]}}


def registry_with(registry: Registry, crd: Object, old: Object | None) -> Registry:
    """The registry after a CRD was written: established ones are served."""
    spec = crd["spec"]
    if old is not None:
        registry = registry.without(
            old["spec"]["group"], old["spec"]["names"]["plural"]
        )
    if not is_established(crd):
        return registry
    accepted = {**crd, "spec": {**spec, "names": _accepted_names(crd)}}
    return registry.with_kinds(kinds_of_crd(accepted))
