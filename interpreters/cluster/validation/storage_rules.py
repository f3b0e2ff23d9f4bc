"""Validation of volume claims, persistent volumes and storage classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fnop.interpreters.cluster.validation.faults import (
    bad,
    duplicate,
    forbidden,
    immutable,
    required,
    unsupported,
)
from fnop.interpreters.cluster.validation.field_rules import (
    positive_quantity,
    qualified,
    quantity,
    quantity_of,
)
from fnop.interpreters.cluster.validation.rules import Spec, one_of
from fnop.interpreters.cluster.validation.selector_rules import (
    label_selector,
    node_selector,
)
from fnop.interpreters.cluster.validation.tables import (
    Among,
    entries,
    needed,
    of_spec,
    present,
    table,
)
from fnop.interpreters.cluster.validation.volume_rules import source_faults
from fnop.interpreters.cluster.values.objects import Object
from fnop.interpreters.cluster.values.status import Fault

__all__ = [
    "CLAIM",
    "STORAGE_CLASS",
    "VOLUME",
    "claim_changes",
    "class_changes",
    "volume_changes",
]

MODES = one_of("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def _spec(obj: Object) -> Spec:
    return obj.get("spec") or {}


# ---------------------------------------------------------------------- claims


def _claim_source(source: Spec, path: str) -> Iterator[Fault]:
    if not source.get("apiGroup") and source.get("kind") != "PersistentVolumeClaim":
        yield bad(path, source.get("kind", ""), "")


CLAIM = of_spec(
    "accessModes: needed (at least 1 access mode is required)",
    ("selector", label_selector),
    ("accessModes[*]", MODES),
    "resources.requests.storage as resources[storage]: present; positive quantity",
    "storageClassName: filled; subdomain",
    "volumeMode: given; Block | Filesystem",
    ("dataSource?", table("name, kind: needed", _claim_source)),
)
CLAIM_LOCKED = (
    "spec is immutable after creation except resources.requests and "
    "volumeAttributesClassName for bound claims"
)


def claim_changes(new: Object, old: Object) -> Iterator[Fault]:
    """Yield the changes to a claim that are not allowed."""
    after, before = _spec(new), _spec(old)
    # The volume of a claim may be set later; after that the claim may grow.
    free = {"volumeName"} if not before.get("volumeName") else set()
    if (old.get("status") or {}).get("phase") == "Bound":
        free.add("resources")
    names = (after.keys() | before.keys()) - free
    if any(after.get(name) != before.get(name) for name in names):
        yield forbidden("spec", CLAIM_LOCKED)
    yield from immutable(after, before, "", "volumeMode")
    if _asked_storage(after) < _asked_storage(before):
        why = "field can not be less than status.capacity"
        yield forbidden("spec.resources.requests.storage", why)


def _asked_storage(spec: Spec) -> Any:
    requests = (spec.get("resources") or {}).get("requests") or {}
    return quantity_of(requests.get("storage", "0"))


# --------------------------------------------------------------------- volumes

# In the order in which the real server checks them.
SOURCES = (
    *("hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker"),
    *("nfs", "rbd", "quobyte", "cephfs", "iscsi", "cinder", "fc", "flexVolume"),
    *("azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume"),
    *("azureDisk", "scaleIO", "local", "storageos", "csi"),
)


def _only_storage(capacity: Spec | None, path: str) -> Iterator[Fault]:
    if [*(capacity or ())] != ["storage"]:
        yield unsupported(path, capacity or {}, ("storage",))


def _amount(name: str, value: Any, path: str) -> Iterator[Fault]:
    yield from quantity(value, path)
    yield from positive_quantity(value, path)


def _source(spec: Spec, path: str) -> Iterator[Fault]:
    yield from source_faults(spec, SOURCES, path)
    first = next((name for name in SOURCES if name in spec), "")
    if first == "csi":
        yield from CSI(spec["csi"], f"{path}.csi")
    elif first == "local" and "nodeAffinity" not in spec:
        yield required(f"{path}.nodeAffinity", "Local volume requires node affinity")


# References to secrets that are in another namespace. The space is the real server's.
SECRET = table("name, namespace: needed")
CSI = table(
    "volumeHandle: needed",
    ("controllerPublishSecretRef?, controllerExpandSecretRef?", SECRET),
    ("nodePublishSecretRef as nodePublishSecretRef ?", SECRET),
    ("nodeExpandSecretRef?", SECRET),
)
NO_NODES = "must specify required node constraints"
VOLUME = of_spec(
    "accessModes: needed",
    ("accessModes[*]", MODES),
    "capacity: needed",
    ("capacity", _only_storage, entries(_amount)),
    "persistentVolumeReclaimPolicy: given; Delete | Recycle | Retain",
    ("nodeAffinity?.required", present(node_selector, why=NO_NODES)),
    _source,
    "storageClassName: filled; subdomain",
    "volumeMode: given; Block | Filesystem",
)


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


def _provisioner(name: str, path: str) -> Iterator[Fault]:
    yield from qualified(name.lower(), path)


def _no_empty_name(parameters: Spec | None, path: str) -> Iterator[Fault]:
    if "" in (parameters or {}):
        yield bad(path, "", "field can not be empty.")


def _topology(term: Spec, path: str, seen: set[Any]) -> Iterator[Fault]:
    path, wanted = f"{path}.matchLabelExpressions", dict[str, frozenset[str]]()
    for place, one in enumerate(term.get("matchLabelExpressions") or ()):
        field, key = f"{path}[{place}]", one.get("key", "")
        values = one.get("values") or ()
        if not values:
            yield required(f"{field}.values")
        for at, value in enumerate(values):
            if value in values[:at]:
                yield duplicate(f"{field}.values[{at}]", value)
        yield from qualified(key, f"{field}.key")
        if key in wanted:
            yield duplicate(f"{field}.key", key)
        wanted[key] = frozenset(values)
    # The real server finds an empty term among the terms that it has not read yet.
    if not wanted or frozenset(wanted.items()) in seen:
        yield duplicate(path, "")
    seen.add(frozenset(wanted.items()))


STORAGE_CLASS = table(
    ("provisioner", needed(_provisioner)),
    ("parameters", _no_empty_name),
    "reclaimPolicy: filled; Delete | Retain",
    "volumeBindingMode: present; Immediate | WaitForFirstConsumer",
    ("allowedTopologies[]", Among(_topology)),
)


def class_changes(new: Object, old: Object) -> Iterator[Fault]:
    """Refuse other parameters for a storage class."""
    for name in ("parameters", "provisioner", "reclaimPolicy"):
        if new.get(name) != old.get(name):
            yield forbidden(name, f"updates to {name} are forbidden.")
    yield from immutable(new, old, "", "volumeBindingMode")
