"""Validation of the volumes of pods, and of the sources of persistent volumes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fnop.interpreters.cluster.validation.faults import (
    bad,
    duplicate,
    forbidden,
    one_of,
    required,
)
from fnop.interpreters.cluster.validation.field_rules import (
    dns_label,
    label_name,
    qualified,
    quantity,
)
from fnop.interpreters.cluster.values.metadata import NOT_SUBDOMAIN, SUBDOMAIN
from fnop.interpreters.cluster.values.status import Fault

__all__ = [
    "backsteps",
    "driver_faults",
    "field_faults",
    "local_path",
    "resource_field",
    "source_faults",
    "volume_faults",
]

Spec = dict[str, Any]
Check = Callable[[Spec, str], Iterator[Fault]]

# In the order in which the real server checks them.
VOLUMES = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk"),
    *("awsElasticBlockStore", "secret", "nfs", "iscsi", "glusterfs", "flocker"),
    *("persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte"),
    *("downwardAPI", "fc", "configMap", "azureFile", "flexVolume"),
    *("vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk"),
    *("storageos", "projected", "scaleIO", "csi", "ephemeral", "image"),
)
# The fields that a source must have.
NEEDED: dict[str, tuple[str, ...]] = {
    "awsElasticBlockStore": ("volumeID",),
    "azureDisk": ("diskName", "diskURI"),
    "azureFile": ("secretName", "shareName"),
    "cephfs": ("monitors",),
    "cinder": ("volumeID",),
    "configMap": ("name",),
    "csi": ("driver",),
    "flexVolume": ("driver",),
    "gcePersistentDisk": ("pdName",),
    "gitRepo": ("repository",),
    "glusterfs": ("endpoints", "path"),
    "hostPath": ("path",),
    "iscsi": ("targetPortal", "iqn"),
    "local": ("path",),
    "nfs": ("server", "path"),
    "persistentVolumeClaim": ("claimName",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "rbd": ("monitors", "image"),
    "scaleIO": ("gateway", "system", "volumeName"),
    "secret": ("secretName",),
    "vsphereVolume": ("volumePath",),
}
MODE = "must be a number between 0 and 0777 (octal), both inclusive"


def volume_faults(
    volumes: Iterable[Spec], path: str, names: set[str]
) -> Iterator[Fault]:
    """Yield the faults of volumes; the names of valid ones are added to `names`."""
    for index, volume in enumerate(volumes):
        field, name = f"{path}[{index}]", volume.get("name", "")
        found = [*source_faults(volume, VOLUMES, field)]
        found += label_name(f"{field}.name", name)
        if name in names:
            found.append(duplicate(f"{field}.name", name))
        yield from found
        if not found:
            names.add(name)


def source_faults(volume: Spec, known: Iterable[str], path: str) -> Iterator[Fault]:
    """Yield the faults of a volume's source: it has exactly one."""
    given = [name for name in known if name in volume]
    if not given:
        yield required(path, "must specify a volume type")
        return
    first, *others = given
    field = f"{path}.{CHECKED_AS.get(first, first)}"
    for name in NEEDED.get(first, ()):
        if not volume[first].get(name):
            yield required(f"{field}.{name}")
    if first in FURTHER:
        yield from FURTHER[first](volume[first], field)
    for name in others:
        why = "may not specify more than 1 volume type"
        yield forbidden(f"{path}.{FORBIDDEN_AS.get(name, name)}", why)


# Sources whose names in the real server's paths differ from the API.
CHECKED_AS = {"gcePersistentDisk": "persistentDisk"}
FORBIDDEN_AS = {"cephfs": "cephFS"}


# ----------------------------------------------------------------------- paths


def backsteps(field: str, text: str) -> Iterator[Fault]:
    """Yield ".." in a path."""
    if ".." in text.split("/"):
        yield bad(field, text, "must not contain '..'")


def local_path(field: str, text: str, *, reserved: bool = False) -> Iterator[Fault]:
    """Yield the faults of a relative path; in volumes it must not begin with ".."."""
    if text.startswith("/"):
        yield bad(field, text, "must be a relative path")
    yield from backsteps(field, text)
    is_back = ".." in text.split("/")
    if reserved and text.startswith("..") and not is_back:
        yield bad(field, text, "must not start with '..'")


def _mode(source: Spec, field: str) -> Iterator[Fault]:
    name = field.rpartition(".")[2]
    if not 0 <= source.get(name, 0) <= 0o777:
        yield bad(field, source[name], MODE)


# --------------------------------------------------------------------- sources


def _empty_dir_faults(source: Spec, path: str) -> Iterator[Fault]:
    if "sizeLimit" in source:
        found = [*quantity(f"{path}.sizeLimit", source["sizeLimit"])]
        if found:
            yield forbidden(
                f"{path}.sizeLimit", "SizeLimit field must be a valid resource"
            )


HOST_TYPES = (
    *("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File"),
    *("FileOrCreate", "Socket"),
)


def _host(source: Spec, path: str) -> Iterator[Fault]:
    if not source.get("path"):
        return
    yield from backsteps(f"{path}.path", source["path"])
    yield from one_of(f"{path}.type", source.get("type") or "", HOST_TYPES)


def _git(source: Spec, path: str) -> Iterator[Fault]:
    yield from local_path(f"{path}.directory", source.get("directory", ""))


def _keyed_faults(source: Spec, path: str) -> Iterator[Fault]:
    """Yield the faults of a config map or secret whose keys become files."""
    yield from _mode(source, f"{path}.defaultMode")
    for index, item in enumerate(source.get("items") or ()):
        yield from _file(item, f"{path}.items[{index}]")


def _file(item: Spec, path: str) -> Iterator[Fault]:
    for name in ("key", "path"):
        if not item.get(name):
            yield required(f"{path}.{name}")
    yield from local_path(f"{path}.path", item.get("path", ""), reserved=True)
    yield from _mode(item, f"{path}.mode")


def _downward_faults(source: Spec, path: str) -> Iterator[Fault]:
    yield from _mode(source, f"{path}.defaultMode")
    for item in source.get("items") or ():
        yield from _downward_file(item, path)


def _downward_file(item: Spec, path: str) -> Iterator[Fault]:
    """Yield the faults of a file of the downward API, with the path of the list."""
    if not item.get("path"):
        yield required(f"{path}.path")
    yield from local_path(f"{path}.path", item.get("path", ""), reserved=True)
    if "fieldRef" in item:
        yield from field_faults(item["fieldRef"], IN_FILES, f"{path}.fieldRef")
        if "resourceFieldRef" in item:
            why = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield bad(path, "resource", why)
    elif "resourceFieldRef" in item:
        yield from resource_field(
            item["resourceFieldRef"], f"{path}.resourceFieldRef", named=True
        )
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    yield from _mode(item, f"{path}.mode")


RESOURCES = tuple(
    f"{part}.{name}"
    for part in ("limits", "requests")
    for name in ("cpu", "ephemeral-storage", "memory")
)


def resource_field(source: Spec, path: str, *, named: bool = False) -> Iterator[Fault]:
    """Yield the faults of a reference to a container's resource."""
    if named and not source.get("containerName"):
        yield required(f"{path}.containerName")
    elif not source.get("resource"):
        yield required(f"{path}.resource")
    elif not source["resource"].startswith(
        ("limits.hugepages-", "requests.hugepages-")
    ):
        yield from one_of(f"{path}.resource", source["resource"], RESOURCES)


IN_FILES = (
    *("metadata.annotations", "metadata.labels", "metadata.name"),
    *("metadata.namespace", "metadata.uid"),
)
# The fields that can be referred to.
FIELDS = frozenset(
    (
        *IN_FILES,
        *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName"),
        *("spec.serviceAccountName", "spec.hostNetwork", "status.phase"),
        *("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
    )
)
# Fields whose keys can be referred to.
MAPS = ("metadata.annotations", "metadata.labels")


def field_faults(source: Spec, known: Iterable[str], path: str) -> Iterator[Fault]:
    """Yield the faults of a reference to a field of the pod."""
    for name in ("apiVersion", "fieldPath"):
        if not source.get(name):
            yield required(f"{path}.{name}")
            return
    field = f"{path}.fieldPath"
    text = source["fieldPath"]
    head, bracket, rest = text.partition("['")
    is_keyed = bool(bracket) and rest.endswith("']")
    if not (text in FIELDS or (is_keyed and head in MAPS)):
        why = f"error converting fieldPath: field label not supported: {text}"
        yield bad(field, text, why)
    elif is_keyed:
        key = rest.removesuffix("']")
        lower = key.lower() if head == "metadata.annotations" else key
        yield from qualified(path, lower)
    else:
        yield from one_of(field, text, known)


def _projected_faults(source: Spec, path: str) -> Iterator[Fault]:
    yield from _mode(source, f"{path}.defaultMode")
    taken: set[str] = set()
    for index, one in enumerate(source.get("sources") or ()):
        field = f"{path}.sources[{index}]"
        given = [name for name in PROJECTED if name in one]
        for name in given:
            yield from PROJECTED[name](one[name], f"{field}.{name}")
            for item in one[name].get("items") or ():
                place = item.get("path", "")
                if place and place in taken:
                    yield bad(path, place, "conflicting duplicate paths")
                taken.add(place)
        if len(given) > 1:
            yield forbidden(field, "may not specify more than 1 volume type")


def _projected_keys(source: Spec, path: str) -> Iterator[Fault]:
    if not source.get("name"):
        yield required(f"{path}.name")
    for index, item in enumerate(source.get("items") or ()):
        yield from _file(item, f"{path}.items[{index}]")


def _projected_fields(source: Spec, path: str) -> Iterator[Fault]:
    for item in source.get("items") or ():
        yield from _downward_file(item, path)


def _token(source: Spec, path: str) -> Iterator[Fault]:
    seconds = source.get("expirationSeconds", 3600)
    field = f"{path}.expirationSeconds"
    if seconds < 600:
        why = "may not specify a duration less than 10 minutes"
        yield bad(field, seconds, why)
    elif seconds > 1 << 32:
        why = "may not specify a duration larger than 2^32 seconds"
        yield bad(field, seconds, why)
    if not source.get("path"):
        # The fault is reported for the volume.
        yield required(f"{path.partition('.sources[')[0]}.path")


PROJECTED: dict[str, Check] = {
    "secret": _projected_keys,
    "configMap": _projected_keys,
    "downwardAPI": _projected_fields,
    "serviceAccountToken": _token,
}


def _nfs(source: Spec, path: str) -> Iterator[Fault]:
    if not source.get("path", "").startswith("/"):
        yield bad(f"{path}.path", source.get("path", ""), "must be an absolute path")


def _fibre_faults(source: Spec, path: str) -> Iterator[Fault]:
    names, field = source.get("targetWWNs"), f"{path}.targetWWNs"
    if not names and not source.get("wwids"):
        yield required(field, "must specify either targetWWNs or wwids, but not both")
    if names and source.get("wwids"):
        why = "targetWWNs and wwids can not be specified simultaneously"
        yield bad(field, names, why)
    if names and "lun" not in source:
        yield required(f"{path}.lun", "lun is required if targetWWNs is specified")


def _flocker(source: Spec, path: str) -> Iterator[Fault]:
    name, uuid = source.get("datasetName"), source.get("datasetUUID")
    if not name and not uuid:
        yield required(path, "one of datasetName and datasetUUID is required")
    if name and uuid:
        why = "datasetName and datasetUUID can not be specified simultaneously"
        yield bad(path, "resource", why)
    if name and "/" in name:
        yield bad(f"{path}.datasetName", name, "must not contain '/'")


def _quobyte(source: Spec, path: str) -> Iterator[Fault]:
    why = "must be a host:port pair or multiple pairs separated by commas"
    registry = source.get("registry", "")
    if not registry:
        yield required(f"{path}.registry", why)
    for pair in registry.split(",") if registry else ():
        if pair.count(":") != 1:
            yield bad(f"{path}.registry", registry, why)
    if not source.get("volume"):
        yield required(f"{path}.volume")


def _storage_os(source: Spec, path: str) -> Iterator[Fault]:
    if name := source.get("volumeName"):
        yield from dns_label(f"{path}.volumeName", name)
    else:
        yield required(f"{path}.volumeName")
    if space := source.get("volumeNamespace"):
        yield from dns_label(f"{path}.volumeNamespace", space)


AZURE = (
    ("cachingMode", ("None", "ReadOnly", "ReadWrite")),
    ("kind", ("Dedicated", "Managed", "Shared")),
)


def _azure_disk(source: Spec, path: str) -> Iterator[Fault]:
    for name, known in AZURE:
        if name in source:
            yield from one_of(f"{path}.{name}", source[name], known)
    is_managed = source.get("kind") == "Managed"
    start = "/subscriptions/" if is_managed else "https://"
    if "kind" in source and not source.get("diskURI", "").startswith(start):
        yield from one_of(
            f"{path}.diskURI", source.get("diskURI", ""), (f"{start}...",)
        )


def driver_faults(field: str, name: str) -> Iterator[Fault]:
    """Yield the faults of a CSI driver's name, if there is one."""
    if len(name) > 63:
        message = "Too long: may not be more than 63 bytes"
        yield Fault(field, "FieldValueTooLong", message)
    if not SUBDOMAIN.fullmatch(name.lower()):
        yield bad(field, name, NOT_SUBDOMAIN)


def _csi(source: Spec, path: str) -> Iterator[Fault]:
    yield from driver_faults(f"{path}.driver", source.get("driver", ""))
    for name in SECRETS:
        # The space in the path is the real server's.
        if name in source and not source[name].get("name"):
            yield required(f"{path}.{name} .name")


SECRETS = ("nodePublishSecretRef",)


def _iscsi(source: Spec, path: str) -> Iterator[Fault]:
    name = source.get("iqn", "")
    if name and not name.startswith(("iqn", "eui", "naa")):
        why = "must be valid format starting with iqn, eui, or naa"
        yield bad(f"{path}.iqn", name, why)
    if not 0 <= source.get("lun", 0) <= 255:
        why = "must be between 0 and 255, inclusive"
        yield bad(f"{path}.lun", source["lun"], why)


def _ephemeral_faults(source: Spec, path: str) -> Iterator[Fault]:
    if "volumeClaimTemplate" not in source:
        yield required(f"{path}.volumeClaimTemplate")


FURTHER: dict[str, Check] = {
    "azureDisk": _azure_disk,
    "csi": _csi,
    "emptyDir": _empty_dir_faults,
    "ephemeral": _ephemeral_faults,
    "fc": _fibre_faults,
    "flocker": _flocker,
    "iscsi": _iscsi,
    "nfs": _nfs,
    "quobyte": _quobyte,
    "storageos": _storage_os,
    "hostPath": _host,
    "gitRepo": _git,
    "secret": _keyed_faults,
    "configMap": _keyed_faults,
    "downwardAPI": _downward_faults,
    "projected": _projected_faults,
}
