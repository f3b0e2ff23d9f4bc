"""Validation of the volumes of pods, and of the sources of persistent volumes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fnop.core.kubernetes.names import SUBDOMAIN
from fnop.interpreters.cluster.validation.faults import (
    bad,
    duplicate,
    forbidden,
    required,
    too_long,
    unsupported,
)
from fnop.interpreters.cluster.validation.field_rules import (
    no_backsteps,
    qualified,
    quantity,
)
from fnop.interpreters.cluster.validation.rules import (
    Rule,
    Spec,
    in_order,
    must,
    one_of,
)
from fnop.interpreters.cluster.validation.tables import given, needed, table, when
from fnop.interpreters.cluster.values.metadata import NOT_SUBDOMAIN
from fnop.interpreters.cluster.values.status import Fault

__all__ = [
    "field_reference",
    "local_path",
    "resource_reference",
    "source_faults",
    "volume_faults",
]

# In the order in which the real server checks them.
VOLUMES = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk"),
    *("awsElasticBlockStore", "secret", "nfs", "iscsi", "glusterfs", "flocker"),
    *("persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte"),
    *("downwardAPI", "fc", "configMap", "azureFile", "flexVolume"),
    *("vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk"),
    *("storageos", "projected", "scaleIO", "csi", "ephemeral", "image"),
)
# Sources whose names in the real server's paths differ from the API.
CHECKED_AS = {"gcePersistentDisk": "persistentDisk"}
FORBIDDEN_AS = {"cephfs": "cephFS"}


NAMED = table("name: needed; DNS label")


def volume_faults(
    volumes: Iterable[Spec], path: str, names: set[str]
) -> Iterator[Fault]:
    """Yield the faults of volumes; the names of valid ones are added to `names`."""
    for index, volume in enumerate(volumes):
        field, name = f"{path}[{index}]", volume.get("name", "")
        found = [*source_faults(volume, VOLUMES, field)]
        found += NAMED(volume, field)
        if name in names:
            found.append(duplicate(f"{field}.name", name))
        yield from found
        if not found:
            names.add(name)


def source_faults(volume: Spec, known: Iterable[str], path: str) -> Iterator[Fault]:
    """Yield the faults of a volume's source: it has exactly one."""
    given_names = [name for name in known if name in volume]
    if not given_names:
        yield required(path, "must specify a volume type")
        return
    first, *others = given_names
    if first in SOURCES:
        yield from SOURCES[first](
            volume[first], f"{path}.{CHECKED_AS.get(first, first)}"
        )
    for name in others:
        why = "may not specify more than 1 volume type"
        yield forbidden(f"{path}.{FORBIDDEN_AS.get(name, name)}", why)


# ----------------------------------------------------------------------- files

MODE = must(
    lambda mode: 0 <= mode <= 0o777,
    "must be a number between 0 and 0777 (octal), both inclusive",
)
_relative = must(lambda text: not text.startswith("/"), "must be a relative path")
local_path = in_order(_relative, given(no_backsteps))
# In volumes a path must not begin with "..", which names the kubelet's own files.
_in_volume = in_order(
    local_path,
    must(
        lambda text: not text.startswith("..") or ".." in text.split("/"),
        "must not start with '..'",
    ),
)
FILE = table("key, path: needed", ("path", _in_volume), ("mode", MODE))
# A config map or secret whose keys become files.
KEYS = table(("defaultMode", MODE), ("items[]", FILE))

RESOURCES = tuple(
    f"{part}.{name}"
    for part in ("limits", "requests")
    for name in ("cpu", "ephemeral-storage", "memory")
)


def resource_reference(*, named: bool = False) -> Rule:
    """The rule of a reference to a container's resource."""
    known = one_of(*RESOURCES)

    def check(source: Spec, path: str) -> Iterator[Fault]:
        resource = source.get("resource")
        if named and not source.get("containerName"):
            yield required(f"{path}.containerName")
        elif not resource:
            yield required(f"{path}.resource")
        elif not resource.startswith(("limits.hugepages-", "requests.hugepages-")):
            yield from known(resource, f"{path}.resource")

    return check


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


def field_reference(*known: str) -> Rule:
    """The rule of a reference to one of these fields of the pod."""
    is_known = one_of(*known)

    def check(source: Spec, path: str) -> Iterator[Fault]:
        for name in ("apiVersion", "fieldPath"):
            if not source.get(name):
                yield required(f"{path}.{name}")
                return
        field, text = f"{path}.fieldPath", source["fieldPath"]
        head, bracket, rest = text.partition("['")
        is_keyed = bool(bracket) and rest.endswith("']")
        if not (text in FIELDS or (is_keyed and head in MAPS)):
            why = f"error converting fieldPath: field label not supported: {text}"
            yield bad(field, text, why)
        elif is_keyed:
            key = rest.removesuffix("']")
            yield from qualified(key.lower() if head == MAPS[0] else key, path)
        else:
            yield from is_known(text, field)

    return check


def _one_reference(item: Spec, path: str) -> Iterator[Fault]:
    if "fieldRef" in item:
        yield from FIELD_IN_FILE(item["fieldRef"], f"{path}.fieldRef")
        if "resourceFieldRef" in item:
            why = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield bad(path, "resource", why)
    elif "resourceFieldRef" in item:
        field = f"{path}.resourceFieldRef"
        yield from RESOURCE_IN_FILE(item["resourceFieldRef"], field)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")


FIELD_IN_FILE = field_reference(*IN_FILES)
RESOURCE_IN_FILE = resource_reference(named=True)
DOWNWARD_FILE = table(
    "path: needed", ("path", _in_volume), _one_reference, ("mode", MODE)
)


def _downward_faults(source: Spec, path: str) -> Iterator[Fault]:
    """Yield the faults of files; the real server reports them at their source."""
    for item in source.get("items") or ():
        yield from DOWNWARD_FILE(item, path)


# ----------------------------------------------------------------------- sources


def _projected_faults(source: Spec, path: str) -> Iterator[Fault]:
    taken: set[str] = set()
    for index, one in enumerate(source.get("sources") or ()):
        field = f"{path}.sources[{index}]"
        given_names = [name for name in PROJECTED if name in one]
        for name in given_names:
            yield from PROJECTED[name](one[name], f"{field}.{name}")
            for item in one[name].get("items") or ():
                place = item.get("path", "")
                if place and place in taken:
                    yield bad(path, place, "conflicting duplicate paths")
                taken.add(place)
        if len(given_names) > 1:
            yield forbidden(field, "may not specify more than 1 volume type")


def _token_path(source: Spec, path: str) -> Iterator[Fault]:
    if not source.get("path"):
        # The fault is reported for the volume.
        yield required(f"{path.partition('.sources[')[0]}.path")


NAMED_KEYS = table("name: needed", ("items[]", FILE))
PROJECTED: dict[str, Rule] = {
    "secret": NAMED_KEYS,
    "configMap": NAMED_KEYS,
    "downwardAPI": _downward_faults,
    "serviceAccountToken": table(
        "expirationSeconds: 600.. (may not specify a duration less than 10 minutes); "
        "..4294967296 (may not specify a duration larger than 2^32 seconds)",
        _token_path,
    ),
}


def _empty_dir(source: Spec, path: str) -> Iterator[Fault]:
    field = f"{path}.sizeLimit"
    if "sizeLimit" in source and [*quantity(source["sizeLimit"], field)]:
        yield forbidden(field, "SizeLimit field must be a valid resource")


def _fibre(source: Spec, path: str) -> Iterator[Fault]:
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


PAIRS = "must be a host:port pair or multiple pairs separated by commas"


def _pairs(registry: str, path: str) -> Iterator[Fault]:
    for pair in registry.split(","):
        if pair.count(":") != 1:
            yield bad(path, registry, PAIRS)


def _azure_uri(source: Spec, path: str) -> Iterator[Fault]:
    is_managed = source.get("kind") == "Managed"
    start = "/subscriptions/" if is_managed else "https://"
    uri = source.get("diskURI", "")
    if "kind" in source and not uri.startswith(start):
        yield unsupported(f"{path}.diskURI", uri, (f"{start}...",))


def _driver(name: str | None, path: str) -> Iterator[Fault]:
    """Yield the faults of a CSI driver's name."""
    name = name or ""
    if len(name) > 63:
        yield too_long(path, 63)
    if not SUBDOMAIN.fullmatch(name.lower()):
        yield bad(path, name, NOT_SUBDOMAIN)


_host_type = one_of(
    *("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File"),
    *("FileOrCreate", "Socket"),
)
_iscsi_name = must(
    lambda name: not name or name.startswith(("iqn", "eui", "naa")),
    "must be valid format starting with iqn, eui, or naa",
)
_absolute = must(lambda text: text.startswith("/"), "must be an absolute path", "")
SOURCES: dict[str, Rule] = {
    "awsElasticBlockStore": table("volumeID: needed"),
    "azureDisk": table(
        "diskName, diskURI: needed",
        "cachingMode: given; None | ReadOnly | ReadWrite",
        "kind: given; Dedicated | Managed | Shared",
        _azure_uri,
    ),
    "azureFile": table("secretName, shareName: needed"),
    "cephfs": table("monitors: needed"),
    "cinder": table("volumeID: needed"),
    "configMap": table("name: needed", KEYS),
    "csi": table(
        "driver: needed",
        ("driver", _driver),
        # The space in the path is the real server's.
        "nodePublishSecretRef as nodePublishSecretRef ?.name: needed",
    ),
    "downwardAPI": table(("defaultMode", MODE), _downward_faults),
    "emptyDir": _empty_dir,
    "ephemeral": table("volumeClaimTemplate: present"),
    "fc": _fibre,
    "flexVolume": table("driver: needed"),
    "flocker": _flocker,
    "gcePersistentDisk": table("pdName: needed"),
    "gitRepo": table("repository: needed", ("directory", local_path)),
    "glusterfs": table("endpoints, path: needed"),
    "hostPath": table(
        ("path", needed(no_backsteps)),
        when(lambda source: source.get("path"), ("type", _host_type)),
    ),
    "iscsi": table("targetPortal, iqn: needed", ("iqn", _iscsi_name), "lun: 0..255"),
    "local": table("path: needed"),
    "nfs": table("server, path: needed", ("path", _absolute)),
    "persistentVolumeClaim": table("claimName: needed"),
    "photonPersistentDisk": table("pdID: needed"),
    "portworxVolume": table("volumeID: needed"),
    "projected": table(("defaultMode", MODE), _projected_faults),
    "quobyte": table(("registry", needed(_pairs, why=PAIRS)), "volume: needed"),
    "rbd": table("monitors, image: needed"),
    "scaleIO": table("gateway, system, volumeName: needed"),
    "secret": table("secretName: needed", KEYS),
    "storageos": table(
        "volumeName: needed; DNS label", "volumeNamespace: filled; DNS label"
    ),
    "vsphereVolume": table("volumePath: needed"),
}
