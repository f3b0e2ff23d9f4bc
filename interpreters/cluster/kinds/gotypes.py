"""From JSON to the Go types of built-in kinds, as Go's decoder reads them.

Fields that a type does not have are dropped. Null means absence (and in a list or map
the zero value). Numbers and texts are not converted to each other. Error texts come
from `sigs.k8s.io/json`.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from fnop.core.kubernetes.quantities import canonical
from fnop.interpreters.cluster.kinds import types
from fnop.interpreters.cluster.kinds.kinds import Kind
from fnop.interpreters.cluster.values.golang import go_name

__all__ = ["Misfit", "read_as", "read_owners", "unknown_in", "zero_status"]

Source = dict[str, Any]


class Misfit(Exception):
    """A value does not fit its Go type."""

    def __init__(self, why: str, wanted: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.wanted = wanted
        self.struct = ""
        self.path: tuple[str, ...] = ()

    def inside(self, struct: str, name: str) -> Misfit:
        """The same error, seen from the struct that has the field."""
        self.struct = self.struct or struct
        self.path = (name, *self.path)
        return self

    @property
    def text(self) -> str:
        """The message of the decoder."""
        if not self.wanted:
            return self.why
        where = f"Go struct field {self.struct}.{'.'.join(self.path)} of type "
        return f"json: cannot unmarshal {self.why} into {where}{self.wanted}"


Read = Callable[[Any], Any]
BAD_QUANTITY = (
    "quantities must match the regular expression "
    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
LIMITS = {"uint8": 2**8, "int32": 2**31, "int64": 2**63}


def _text(value: Any) -> Any:
    if type(value) is str:
        return value
    raise Misfit(go_name(value), "string")


def _flag(value: Any) -> Any:
    if value is True or value is False:
        return value
    raise Misfit(go_name(value), "bool")


def _integer(name: str) -> Read:
    limit = LIMITS.get(name, 2**63)
    least = 0 if name.startswith("u") else -limit

    def read(value: Any) -> Any:
        if type(value) is int and least <= value < limit:
            return value
        shown = f"number {value}" if go_name(value) == "number" else go_name(value)
        raise Misfit(shown, name)

    return read


def _number(value: Any) -> Any:
    if type(value) in (int, float):
        return value
    raise Misfit(go_name(value), "float64")


def _base64(value: Any) -> Any:
    """Decode bytes; Go also takes a list of numbers."""
    if type(value) is list:
        read = _integer("uint8")
        return b64encode(
            bytes(0 if one is None else read(one) for one in value)
        ).decode()
    if type(value) is not str:
        raise Misfit(go_name(value), "[]uint8")
    try:
        b64decode(re.sub(r"[\r\n]", "", value), validate=True)
    except (binascii.Error, ValueError):
        good = re.match(r"[A-Za-z0-9+/]*", value)
        place = good.end() if good else 0
        raise Misfit(f"illegal base64 data at input byte {place}") from None
    return value


def _quantity(value: Any) -> Any:
    text = str(value) if type(value) in (int, float) else value
    found = canonical(text.strip()) if type(text) is str else None
    if found is None:
        raise Misfit(BAD_QUANTITY)
    return found


def _int_or_string(value: Any) -> Any:
    if type(value) is str or type(value) is int:
        return value
    raise Misfit(f"json: cannot unmarshal {go_name(value)} into Go value of type int32")


TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


def _time(value: Any) -> Any:
    if type(value) is not str:
        raise Misfit(
            f"json: cannot unmarshal {go_name(value)} into Go value of type string"
        )
    if not TIME.fullmatch(value):
        layout = "2006-01-02T15:04:05Z07:00"
        raise Misfit(
            f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"'
        )
    return value


def _any_value(value: Any) -> Any:
    return value


def _list_of(items: Read, name: str, zero: Callable[[], Any]) -> Read:
    def read(value: Any) -> Any:
        if type(value) is not list:
            raise Misfit(go_name(value), f"[]{name}")
        return [zero() if item is None else items(item) for item in value]

    return read


def _map_of(items: Read, name: str, zero: Callable[[], Any]) -> Read:
    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise Misfit(go_name(value), f"map[string]{name}")
        return {k: zero() if item is None else items(item) for k, item in value.items()}

    return read


# Facts about Go's structs that OpenAPI lacks. Their tags omit empty values (omitempty)
# unless they are pointers; required fields are always written. Structs are named by
# group, version and name if the name alone is ambiguous.

# Texts behind pointers: an empty text is a value.
TEXT_POINTERS: dict[str, tuple[str, ...]] = {
    "AzureDiskVolumeSource": ("cachingMode", "fsType", "kind"),
    "AzureFilePersistentVolumeSource": ("secretNamespace",),
    "CSIVolumeSource": ("fsType",),
    "Endpoint": ("hostname", "nodeName", "zone"),
    "EndpointAddress": ("nodeName",),
    "core.v1.EndpointPort": ("appProtocol",),
    "discovery.v1.EndpointPort": ("appProtocol", "name", "protocol"),
    "GlusterfsPersistentVolumeSource": ("endpointsNamespace",),
    "HPAScalingRules": ("selectPolicy",),
    "HTTPIngressPath": ("pathType",),
    "HostPathVolumeSource": ("type",),
    "ISCSIPersistentVolumeSource": ("initiatorName",),
    "ISCSIVolumeSource": ("initiatorName",),
    "IngressClassParametersReference": ("apiGroup", "namespace", "scope"),
    "IngressSpec": ("ingressClassName",),
    "JobSpec": ("completionMode", "managedBy", "podReplacementPolicy"),
    "LeaseSpec": ("holderIdentity", "preferredHolder", "strategy"),
    "LocalVolumeSource": ("fsType",),
    "MutatingWebhook": (
        *("failurePolicy", "matchPolicy", "reinvocationPolicy", "sideEffects"),
    ),
    "NetworkPolicyPort": ("protocol",),
    "PersistentVolumeClaimSpec": (
        *("storageClassName", "volumeAttributesClassName", "volumeMode"),
    ),
    "PersistentVolumeSpec": ("volumeAttributesClassName", "volumeMode"),
    "PodDNSConfigOption": ("value",),
    "PodDisruptionBudgetSpec": ("unhealthyPodEvictionPolicy",),
    "PodSecurityContext": ("fsGroupChangePolicy", "seLinuxChangePolicy"),
    "PodSpec": ("hostnameOverride", "preemptionPolicy", "runtimeClassName"),
    "PortStatus": ("error",),
    "PriorityClass": ("preemptionPolicy",),
    "RuleWithOperations": ("scope",),
    "SeccompProfile": ("localhostProfile",),
    "SecurityContext": ("procMount",),
    "ServicePort": ("appProtocol",),
    "ServiceReference": ("path",),
    "ServiceSpec": (
        *("internalTrafficPolicy", "ipFamilyPolicy", "loadBalancerClass"),
        "trafficDistribution",
    ),
    "StorageClass": ("reclaimPolicy", "volumeBindingMode"),
    "TopologySpreadConstraint": ("nodeAffinityPolicy", "nodeTaintsPolicy"),
    "TypedLocalObjectReference": ("apiGroup",),
    "TypedObjectReference": ("apiGroup", "namespace"),
    "ValidatingWebhook": ("failurePolicy", "matchPolicy", "sideEffects"),
    "VolumeMount": ("mountPropagation", "recursiveReadOnly"),
    "WebhookClientConfig": ("url",),
    "WindowsSecurityContextOptions": (
        *("gmsaCredentialSpec", "gmsaCredentialSpecName", "runAsUserName"),
    ),
}
# Numbers that are not pointers: 0 means absence.
PLAIN_NUMBERS: dict[str, tuple[str, ...]] = {
    "AWSElasticBlockStoreVolumeSource": ("partition",),
    "ContainerPort": ("hostPort",),
    "ContainerStateTerminated": ("signal",),
    "DaemonSetSpec": ("minReadySeconds",),
    "DeploymentSpec": ("minReadySeconds",),
    "GCEPersistentDiskVolumeSource": ("partition",),
    "Probe": (
        *("failureThreshold", "initialDelaySeconds", "periodSeconds"),
        *("successThreshold", "timeoutSeconds"),
    ),
    "ObjectMeta": ("generation",),
    "ReplicaSetSpec": ("minReadySeconds",),
    "ReplicationControllerSpec": ("minReadySeconds",),
    "ServiceBackendPort": ("number",),
    "ServicePort": ("nodePort",),
    "ServiceSpec": ("healthCheckNodePort",),
    "StatefulSetSpec": ("minReadySeconds",),
    "core.v1.Event": ("count",),
    "core.v1.EventSeries": ("count",),
    "events.v1.Event": ("deprecatedCount",),
}
# Numbers in a status are omitted if they are 0, except these.
STATUS_NUMBERS = frozenset(
    (
        *("availableReplicas", "collisionCount", "currentHealthy", "currentReplicas"),
        *("desiredHealthy", "disruptionsAllowed", "expectedPods", "ready"),
        *("restartCount", "terminating"),
    )
)
# The same for flags, and fields of the same names that are pointers nevertheless.
PLAIN_FLAGS = frozenset(
    (
        *("chapAuthDiscovery", "chapAuthSession", "globalDefault", "hostIPC"),
        *("hostNetwork", "hostPID", "paused", "publishNotReadyAddresses", "readOnly"),
        *("sslEnabled", "stdin", "stdinOnce", "tty", "unschedulable"),
    )
)
FLAG_POINTERS = frozenset(("AzureDiskVolumeSource", "CSIVolumeSource"))
# Kinds whose specification is embedded, not a pointer.
SPECIFIED = (
    *("CronJob", "DaemonSet", "Deployment", "HorizontalPodAutoscaler", "Ingress"),
    *("IngressClass", "Job", "Lease", "PersistentVolume", "Pod"),
    *("PodDisruptionBudget", "ReplicaSet", "ReplicationController", "ResourceQuota"),
    *("Service", "StatefulSet"),
)
# Fields that Go writes even if they are empty, in addition to the required ones.
WRITTEN: dict[str, dict[str, Any]] = {
    "Endpoint": {"conditions": {}},
    "EndpointSlice": {"endpoints": None, "ports": None},
    "EventSeries": {"lastObservedTime": None},
    **{kind: {"spec": {}} for kind in SPECIFIED},
    "HorizontalPodAutoscalerStatus": {"currentMetrics": None, "currentReplicas": 0},
    "JobTemplateSpec": {"metadata": {}},
    "PersistentVolumeClaimSpec": {"resources": {}},
    "PriorityClass": {"value": 0},
    "LimitRange": {"spec": {"limits": None}},
    "LimitRangeSpec": {"limits": None},
    "NetworkPolicy": {"spec": {"podSelector": {}}},
    "NetworkPolicySpec": {"podSelector": {}},
    "PersistentVolumeClaim": {"metadata": {}, "spec": {"resources": {}}},
    "PodDisruptionBudgetStatus": {
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "disruptionsAllowed": 0,
        "expectedPods": 0,
    },
    "CephFSPersistentVolumeSource": {"monitors": None},
    "CephFSVolumeSource": {"monitors": None},
    "ProjectedVolumeSource": {"sources": None},
    "RBDPersistentVolumeSource": {"monitors": None},
    "RBDVolumeSource": {"monitors": None},
    "PodTemplateSpec": {"metadata": {}},
    "StatefulSetSpec": {"serviceName": ""},
    "StatefulSetStatus": {"availableReplicas": 0},
    "core.v1.Event": {
        "eventTime": None,
        "firstTimestamp": None,
        "involvedObject": {},
        "lastTimestamp": None,
        "reportingComponent": "",
        "reportingInstance": "",
        "source": {},
    },
    "TypedLocalObjectReference": {"apiGroup": None},
    "events.v1.EventSeries": {"count": 0},
}


# Lists for which the defaults distinguish empty from missing.
EMPTY_LISTS = {"HPAScalingRules": ("policies",)}


def _entry_for_struct(table: Mapping[str, Any], struct: str) -> Any:
    """The entry of a table for a struct, by its full or its short name."""
    parts = struct.split(".")
    return table.get(".".join(parts[-3:])) or table.get(parts[-1]) or ()


class Struct:
    """A Go struct: its fields, and a reader for each."""

    __slots__ = ("fields", "go", "name", "omitted", "zeros")

    def __init__(self, name: str) -> None:
        version, short = name.split(".")[-2:]
        self.name = short
        self.go = f"{version}.{short}"
        self.fields: dict[str, Read] = {}
        self.omitted: frozenset[str] = frozenset()
        # The fields that are written even if they are empty.
        self.zeros: dict[str, Any] = {}

    def __call__(self, value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise Misfit(go_name(value), self.go)
        result = dict(self.zeros)
        fields, omitted = self.fields, self.omitted
        for name, item in value.items():
            read = fields.get(name)
            if read is None or item is None:
                continue
            try:
                item = read(item)
            except Misfit as misfit:
                raise misfit.inside(self.name, name) from None
            if item or not (name in omitted or self.zeros.get(name, item) is None):
                result[name] = item
        return result


# Structs that are being read, for types that contain themselves.
STRUCTS: dict[str, Struct] = {}


@cache
def _definition(name: str) -> Read:
    """A reader for the values of a definition."""
    source = types.definition(name)
    if name.endswith(".Quantity"):
        return _quantity
    if "properties" not in source:
        return _reader(source)[0]
    struct = STRUCTS[name] = Struct(name)
    required = frozenset(source.get("required", ()))
    omitted = set()
    for field, part in source["properties"].items():
        struct.fields[field] = _reader(part)[0]
        if field not in required and _is_omitted(name, field, part):
            omitted.add(field)
        is_pointer = field in _entry_for_struct(TEXT_POINTERS, name)
        if field in required and part.get("type") in ZEROS and not is_pointer:
            struct.zeros[field] = ZEROS[part["type"]]
    struct.zeros.update(_entry_for_struct(WRITTEN, name))
    told = {*struct.zeros, *_entry_for_struct(EMPTY_LISTS, name)}
    struct.omitted = frozenset(omitted - told)
    return struct


# Required lists and structs that are missing are refused later, if they matter.
ZEROS: dict[str, Any] = {"integer": 0, "string": "", "boolean": False}


def _is_omitted(struct: str, field: str, part: Source) -> bool:
    match part.get("type"):
        case "string":
            return field not in _entry_for_struct(TEXT_POINTERS, struct)
        case "array":
            return True
        case "object":
            return "additionalProperties" in part
        case "integer" if struct.endswith("Status"):
            return field not in STATUS_NUMBERS or field == "availableReplicas"
        case "integer":
            return field in _entry_for_struct(PLAIN_NUMBERS, struct)
        case "boolean":
            is_pointer = struct.rpartition(".")[2] in FLAG_POINTERS
            return field in PLAIN_FLAGS and not is_pointer
        case _:
            return False


Zero = Callable[[], Any]
Reading = tuple[Read, str, Zero]


def _reader(source: Source) -> Reading:
    """The reader of a schema's values, the name of the Go type, and the zero value."""
    reference = source.get("$ref")
    if reference is not None:
        return _read_reference(reference.removeprefix(types.PREFIX))
    form = source.get("format")
    match source.get("type"):
        case "string":
            return TEXTS.get(form or "", (_text, "string", str))
        case "integer":
            return _integer(form or "int64"), form or "int64", int
        case "number":
            return _number, "float64", int
        case "boolean":
            return _flag, "bool", bool
        case "array":
            items, go, zero = _reader(source["items"])
            return _list_of(items, go, zero), f"[]{go}", list
        case "object" if "additionalProperties" in source:
            items, go, zero = _reader(source["additionalProperties"])
            return _map_of(items, go, zero), f"map[string]{go}", dict
        case _:
            return _any_value, "", _untyped_zero


def _untyped_zero() -> None:
    """The zero value of an untyped field."""


def _read_reference(name: str) -> Reading:
    read = STRUCTS.get(name) or _definition(name)
    go = ".".join(name.split(".")[-2:])
    if isinstance(read, Struct):
        return read, go, lambda: read({})
    return read, go, (lambda: "0") if read is _quantity else str


TEXTS: dict[str, Reading] = {
    "byte": (_base64, "[]uint8", str),
    "date-time": (_time, "v1.Time", str),
    "int-or-string": (_int_or_string, "intstr.IntOrString", int),
}
OWNER = "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference"


def read_owners(references: Any) -> Any:
    """Owner references as their type holds them.

    Raises `Misfit`.

    >>> read_owners([{"name": "a", "of": "b", "controller": None}])[0]["name"]
    'a'
    """
    read, go, zero = _read_reference(OWNER)
    return _list_of(read, go, zero)(references)


SKIPPED = ("apiVersion", "kind", "metadata")


def _struct_of(kind: Kind) -> Struct | None:
    if "struct" not in kind.memo:
        name = types.name_of(kind.group, kind.typed, kind.kind)
        read = None if name is None else _definition(name)
        kind.memo["struct"] = read if isinstance(read, Struct) else None
    found: Struct | None = kind.memo["struct"]
    return found


def read_as(kind: Kind, body: dict[str, Any]) -> dict[str, Any]:
    """A body as the kind's type holds it, except its apiVersion, kind, metadata.

    Raises `Misfit`.
    """
    struct = _struct_of(kind)
    if struct is None:
        return body
    return struct({k: v for k, v in body.items() if k not in SKIPPED})


def zero_status(kind: Kind) -> dict[str, Any]:
    """The fields that Go writes for an empty status."""
    struct = _struct_of(kind)
    read = None if struct is None else struct.fields.get("status")
    return read({}) if isinstance(read, Struct) else {}


def unknown_in(kind: Kind, body: dict[str, Any]) -> list[str]:
    """The fields of a body that the kind's type does not have."""
    name = types.name_of(kind.group, kind.typed, kind.kind)
    if name is None:
        return []
    return sorted(_unknown_in_value({"$ref": types.PREFIX + name}, body, ""))


def _unknown_in_value(source: Source, value: Any, path: str) -> Iterator[str]:
    reference = source.get("$ref")
    if reference is not None:
        source = types.definition(reference)
    if isinstance(value, dict):
        yield from _unknown_fields(source, value, path)
    elif isinstance(value, list) and "items" in source:
        for index, item in enumerate(value):
            yield from _unknown_in_value(source["items"], item, f"{path}[{index}]")


def _unknown_fields(source: Source, value: dict[str, Any], path: str) -> Iterator[str]:
    fields = source.get("properties")
    additional = source.get("additionalProperties")
    for name, item in value.items():
        where = f"{path}.{name}" if path else name
        part = additional if fields is None else fields.get(name)
        if part is not None:
            yield from _unknown_in_value(part, item, where)
        elif fields is not None:
            yield where
