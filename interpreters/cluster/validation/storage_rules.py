"""Validation of volume claims, persistent volumes and storage classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fnop.interpreters.cluster.validation.faults import (
    bad,
    duplicate,
    forbidden,
    immutable,
    one_of,
    required,
)
from fnop.interpreters.cluster.validation.field_rules import (
    qualified,
    quantity,
    subdomain,
)
from fnop.interpreters.cluster.validation.selector_rules import (
    node_selector_faults,
    selector_faults,
)
from fnop.interpreters.cluster.validation.volume_rules import source_faults
from fnop.interpreters.cluster.values.objects import Object
from fnop.interpreters.cluster.values.quantities import amount
from fnop.interpreters.cluster.values.status import Fault

__all__ = [
    "claim_changes",
    "claim_faults",
    "class_changes",
    "class_faults",
    "volume_changes",
    "volume_object_faults",
]

Spec = dict[str, Any]

MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")


def _spec(obj: Object) -> Spec:
    return obj.get("spec") or {}


def _modes(modes: Iterable[str]) -> Iterator[Fault]:
    for mode in modes:
        yield from one_of("spec.accessModes", mode, MODES)


# ---------------------------------------------------------------------- claims


def claim_faults(obj: Object) -> Iterator[Fault]:
    """Yield the faults of a volume claim."""
    spec = _spec(obj)
    modes = spec.get("accessModes") or ()
    if not modes:
        yield required("spec.accessModes", "at least 1 access mode is required")
    yield from selector_faults(spec.get("selector"), "spec.selector")
    yield from _modes(modes)
    asked = (spec.get("resources") or {}).get("requests") or {}
    if "storage" not in asked:
        yield required("spec.resources[storage]")
    else:
        yield from quantity("spec.resources[storage]", asked["storage"], positive=True)
    if name := spec.get("storageClassName"):
        yield from subdomain("spec.storageClassName", name)
    mode = spec.get("volumeMode", "Filesystem")
    yield from one_of("spec.volumeMode", mode, VOLUME_MODES)
    if "dataSource" in spec:
        yield from _data_source(spec["dataSource"], "spec.dataSource")


def _data_source(source: Spec, path: str) -> Iterator[Fault]:
    for name in ("name", "kind"):
        if not source.get(name):
            yield required(f"{path}.{name}")
    if not source.get("apiGroup") and source.get("kind") != "PersistentVolumeClaim":
        yield bad(path, source.get("kind", ""), "")


CLAIM_LOCKED = (
    "spec is immutable after creation except resources.requests and "
    "volumeAttributesClassName for bound claims"
)


def claim_changes(new: Object, old: Object) -> Iterator[Fault]:
    """Yield the changes to a claim that are not allowed."""
    after, before = _spec(new), _spec(old)
    is_bound = (old.get("status") or {}).get("phase") == "Bound"
    # The volume of a claim may be set later; after that the claim may grow.
    free = {"volumeName"} if not before.get("volumeName") else set()
    if is_bound:
        free.add("resources")
    names = (after.keys() | before.keys()) - free
    if any(after.get(name) != before.get(name) for name in names):
        yield forbidden("spec", CLAIM_LOCKED)
    if after.get("volumeMode") != before.get("volumeMode"):
        yield bad("volumeMode", after.get("volumeMode"), "field is immutable")
    yield from _shrink_faults(after, before)


def _shrink_faults(after: Spec, before: Spec) -> Iterator[Fault]:
    new, old = (
        amount(
            ((spec.get("resources") or {}).get("requests") or {}).get("storage", "0")
        )
        for spec in (after, before)
    )
    if (new or 0) < (old or 0):
        why = "field can not be less than status.capacity"
        yield forbidden("spec.resources.requests.storage", why)


# --------------------------------------------------------------------- volumes

# In the order in which the real server checks them.
SOURCES = (
    *("hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker"),
    *("nfs", "rbd", "quobyte", "cephfs", "iscsi", "cinder", "fc", "flexVolume"),
    *("azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume"),
    *("azureDisk", "scaleIO", "local", "storageos", "csi"),
)
RECLAIMS = ("Delete", "Recycle", "Retain")


def volume_object_faults(obj: Object) -> Iterator[Fault]:
    """Yield the faults of a persistent volume."""
    spec = _spec(obj)
    modes = spec.get("accessModes") or ()
    if not modes:
        yield required("spec.accessModes")
    yield from _modes(modes)
    capacity = spec.get("capacity") or {}
    if not capacity:
        yield required("spec.capacity")
    if [*capacity] != ["storage"]:
        yield from one_of("spec.capacity", capacity, ("storage",))
    for name, value in capacity.items():
        yield from quantity(f"spec.capacity[{name}]", value)
        yield from quantity(f"spec.capacity[{name}]", value, positive=True)
    policy = spec.get("persistentVolumeReclaimPolicy", "Retain")
    yield from one_of("spec.persistentVolumeReclaimPolicy", policy, RECLAIMS)
    if "nodeAffinity" in spec:
        wanted = spec["nodeAffinity"].get("required")
        if wanted is None:
            why = "must specify required node constraints"
            yield required("spec.nodeAffinity.required", why)
        else:
            yield from node_selector_faults(wanted, "spec.nodeAffinity.required")
    yield from source_faults(spec, SOURCES, "spec")
    yield from _source_faults(spec)
    if name := spec.get("storageClassName"):
        yield from subdomain("spec.storageClassName", name)
    mode = spec.get("volumeMode", "Filesystem")
    yield from one_of("spec.volumeMode", mode, VOLUME_MODES)


# References to secrets that are in another namespace.
SECRETS = (
    *("controllerPublishSecretRef", "controllerExpandSecretRef", "nodeStageSecretRef"),
    *("nodePublishSecretRef", "nodeExpandSecretRef"),
)


def _source_faults(spec: Spec) -> Iterator[Fault]:
    given = [name for name in SOURCES if name in spec]
    if given[:1] == ["csi"]:
        yield from _csi(spec["csi"])
    elif given[:1] == ["local"] and "nodeAffinity" not in spec:
        why = "Local volume requires node affinity"
        yield required("spec.nodeAffinity", why)


def _csi(csi: Spec) -> Iterator[Fault]:
    if not csi.get("volumeHandle"):
        yield required("spec.csi.volumeHandle")
    for name in SECRETS:
        if name not in csi or name == "nodeStageSecretRef":
            continue
        # The space in one of the paths is the real server's.
        blank = " " if name == "nodePublishSecretRef" else ""
        for part in ("name", "namespace"):
            if not csi[name].get(part):
                yield required(f"spec.csi.{name}{blank}.{part}")


def _without_expansion(after: Spec, before: Spec) -> Spec:
    """A source without the secret for its expansion, which may be added later."""
    name = "controllerExpandSecretRef"
    if "csi" not in after or name in before.get("csi", {name: {}}):
        return after
    return {**after, "csi": {k: v for k, v in after["csi"].items() if k != name}}


def volume_changes(new: Object, old: Object) -> Iterator[Fault]:
    """Refuse another source for a persistent volume."""
    after, before = _spec(new), _spec(old)
    sources = _without_expansion(after, before)
    if any(sources.get(name) != before.get(name) for name in SOURCES):
        why = "spec.persistentvolumesource is immutable after creation"
        yield forbidden("spec.persistentvolumesource", why)
    yield from immutable(after, before, "", "volumeMode")
    if before.get("nodeAffinity") is not None:
        yield from immutable(after, before, "", "nodeAffinity")


# --------------------------------------------------------------------- classes


def class_faults(obj: Object) -> Iterator[Fault]:
    """Yield the faults of a storage class."""
    name = obj.get("provisioner", "")
    if not name:
        yield required("provisioner", name)
    else:
        yield from qualified("provisioner", name.lower())
    if "" in (obj.get("parameters") or {}):
        yield bad("parameters", "", "field can not be empty.")
    if policy := obj.get("reclaimPolicy"):
        yield from one_of("reclaimPolicy", policy, ("Delete", "Retain"))
    mode = obj.get("volumeBindingMode")
    if mode is None:
        yield required("volumeBindingMode")
    else:
        known = ("Immediate", "WaitForFirstConsumer")
        yield from one_of("volumeBindingMode", mode, known)
    yield from _topologies(obj.get("allowedTopologies") or ())


def _topologies(terms: Iterable[Spec]) -> Iterator[Fault]:
    seen: list[dict[str, set[str]]] = []
    for index, term in enumerate(terms):
        path = f"allowedTopologies[{index}]"
        wanted: dict[str, set[str]] = {}
        for place, one in enumerate(term.get("matchLabelExpressions") or ()):
            field, key = f"{path}.matchLabelExpressions[{place}]", one.get("key", "")
            values = one.get("values") or ()
            if not values:
                yield required(f"{field}.values")
            for at, value in enumerate(values):
                if value in values[:at]:
                    yield duplicate(f"{field}.values[{at}]", value)
            yield from qualified(f"{field}.key", key)
            if key in wanted:
                yield duplicate(f"{field}.key", key)
            wanted[key] = {*values}
        # The real server finds an empty term among the terms that it has not read yet.
        if not wanted or wanted in seen:
            yield duplicate(f"{path}.matchLabelExpressions", "")
        seen.append(wanted)


def class_changes(new: Object, old: Object) -> Iterator[Fault]:
    """Refuse other parameters for a storage class."""
    for name in ("parameters", "provisioner", "reclaimPolicy"):
        if new.get(name) != old.get(name):
            yield forbidden(name, f"updates to {name} are forbidden.")
    yield from immutable(new, old, "", "volumeBindingMode")
