"""What may stand in the specification of a pod (`apis/core/validation`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from fnop.interpreters.cluster.faults import (
    at_least,
    bad,
    duplicate,
    forbidden,
    one_of,
    required,
)
from fnop.interpreters.cluster.metadata import (
    LABEL,
    NOT_LABEL,
    key_faults,
    value_faults,
)
from fnop.interpreters.cluster.quantities import amount
from fnop.interpreters.cluster.status import Fault

__all__ = ["label_name", "pod_faults", "pod_update_faults", "port_name", "port_number"]

Spec = dict[str, Any]

PROTOCOLS = ("SCTP", "TCP", "UDP")
ENV_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
NOT_ENV_NAME = (
    "a valid environment variable name must consist of alphabetic characters, digits, "
    "'_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or "
    "'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is "
    "'[-._a-zA-Z][-._a-zA-Z0-9]*')"
)
SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef")
ONE_SOURCE = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
    "`secretKeyRef` or `fileKeyRef`"
)
FIELD = re.compile(
    r"metadata\.(name|namespace|uid|annotations|labels)(\['.*'\])?"
    r"|spec\.(nodeName|restartPolicy|serviceAccountName)"
    r"|status\.(phase|hostIPs?|podIPs?)"
)


def label_name(field: str, name: str) -> Iterator[Fault]:
    """A name that must be there and a DNS label."""
    if not name:
        yield required(field)
        return
    if len(name) > 63:
        yield bad(field, name, "must be no more than 63 bytes")
    if not LABEL.fullmatch(name):
        yield bad(field, name, NOT_LABEL)


def port_number(field: str, value: Any) -> Iterator[Fault]:
    """A port is a number of 16 bits, but not 0."""
    if not 1 <= value <= 65535:
        yield bad(field, value, "must be between 1 and 65535, inclusive")


def port_name(field: str, name: str) -> Iterator[Fault]:
    """The name of a port, as IANA wants it."""
    if len(name) > 15:
        yield bad(field, name, "must be no more than 15 characters")
    if not re.fullmatch(r"[-a-z0-9]*", name):
        why = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
        yield bad(field, name, why)
    if not re.search(r"[a-z]", name):
        yield bad(field, name, "must contain at least one letter (a-z)")
    if "--" in name:
        yield bad(field, name, "must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        yield bad(field, name, "must not begin or end with a hyphen")


def pod_faults(spec: Spec, path: str) -> Iterator[Fault]:
    """What is wrong with the specification of a pod, or of the pods of a template."""
    volumes = spec.get("volumes", ())
    yield from _volume_faults(volumes, f"{path}.volumes")
    names = {one.get("name") for one in volumes}
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    yield from _containers(spec.get("containers", ()), f"{path}.containers", names)
    taken = [one.get("name") for one in spec.get("containers", ())]
    first = spec.get("initContainers", ())
    yield from _containers(first, f"{path}.initContainers", names, taken)
    policies = ("Always", "OnFailure", "Never")
    yield from one_of(f"{path}.restartPolicy", spec.get("restartPolicy"), policies)
    if "dnsPolicy" in spec:
        known = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
        yield from one_of(f"{path}.dnsPolicy", spec["dnsPolicy"], known)
    deadline = spec.get("activeDeadlineSeconds", 1)
    if deadline < 1:
        why = "must be between 1 and 2147483647, inclusive"
        yield bad(f"{path}.activeDeadlineSeconds", deadline, why)
    for key, value in (spec.get("nodeSelector") or {}).items():
        where = f"{path}.nodeSelector"
        yield from (bad(where, key, why) for why in key_faults(key))
        yield from (bad(where, value, why) for why in value_faults(value))
    if spec.get("nodeName") and not re.fullmatch(r"[a-z0-9.-]+", spec["nodeName"]):
        yield bad(f"{path}.nodeName", spec["nodeName"], NOT_LABEL)


def _containers(
    containers: Iterable[Spec], path: str, volumes: set[Any], taken: Iterable[Any] = ()
) -> Iterator[Fault]:
    seen = set(taken)
    for index, one in enumerate(containers):
        field = f"{path}[{index}]"
        name = one.get("name", "")
        yield from label_name(f"{field}.name", name)
        if name and name in seen:
            yield duplicate(f"{field}.name", name)
        seen.add(name)
        if not one.get("image"):
            yield required(f"{field}.image")
        yield from _container(one, field, volumes)


def _container(one: Spec, path: str, volumes: set[Any]) -> Iterator[Fault]:
    known = ("Always", "IfNotPresent", "Never")
    yield from one_of(f"{path}.imagePullPolicy", one.get("imagePullPolicy"), known)
    policy = one.get("terminationMessagePolicy", "File")
    if policy not in ("File", "FallbackToLogsOnError"):
        why = "must be 'File' or 'FallbackToLogsOnError'"
        yield bad(f"{path}.terminationMessagePolicy", policy, why)
    yield from _ports(one.get("ports", ()), f"{path}.ports")
    for index, variable in enumerate(one.get("env", ())):
        yield from _variable(variable, f"{path}.env[{index}]")
    yield from _mounts(one.get("volumeMounts", ()), f"{path}.volumeMounts", volumes)
    yield from _resources(one.get("resources") or {}, f"{path}.resources")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in one:
            yield from _probe(one[name], f"{path}.{name}", name != "readinessProbe")


def _ports(ports: Iterable[Spec], path: str) -> Iterator[Fault]:
    seen = set()
    for index, port in enumerate(ports):
        field = f"{path}[{index}]"
        if name := port.get("name"):
            found = [*port_name(f"{field}.name", name)]
            yield from found
            if not found and name in seen:
                yield duplicate(f"{field}.name", name)
            seen.add(name)
        if not port.get("containerPort"):
            yield required(f"{field}.containerPort")
        else:
            yield from port_number(f"{field}.containerPort", port["containerPort"])
        if port.get("hostPort"):
            yield from port_number(f"{field}.hostPort", port["hostPort"])
        yield from one_of(f"{field}.protocol", port.get("protocol"), PROTOCOLS)


def _variable(variable: Spec, path: str) -> Iterator[Fault]:
    name = variable.get("name")
    if not name:
        yield required(f"{path}.name")
    elif not ENV_NAME.fullmatch(name):
        yield bad(f"{path}.name", name, NOT_ENV_NAME)
    source = variable.get("valueFrom")
    if source is None:
        return
    if not any(each in source for each in SOURCES):
        yield bad(f"{path}.valueFrom", "", ONE_SOURCE)
        return
    if variable.get("value"):
        why = "may not be specified when `value` is not empty"
        yield bad(f"{path}.valueFrom", "", why)
    for each in ("configMapKeyRef", "secretKeyRef"):
        if each in source and not source[each].get("key"):
            yield required(f"{path}.valueFrom.{each}.key")
    field = (source.get("fieldRef") or {}).get("fieldPath", "metadata.name")
    if not FIELD.fullmatch(field):
        why = f"error converting fieldPath: field label not supported: {field}"
        yield bad(f"{path}.valueFrom.fieldRef.fieldPath", field, why)


NEEDED = {"hostPath": "path", "persistentVolumeClaim": "claimName"}


def _volume_faults(volumes: Iterable[Spec], path: str) -> Iterator[Fault]:
    seen = set()
    for index, volume in enumerate(volumes):
        field = f"{path}[{index}]"
        sources = [one for one in VOLUMES if one in volume]
        for one in sources[1:]:
            why = "may not specify more than 1 volume type"
            yield forbidden(f"{field}.{one}", why)
        for one, name in NEEDED.items():
            if one in volume and not volume[one].get(name):
                yield required(f"{field}.{one}.{name}")
        name = volume.get("name", "")
        yield from label_name(f"{field}.name", name)
        if name in seen:
            yield duplicate(f"{field}.name", name)
        seen.add(name)


# In the order in which the real server looks at them.
VOLUMES = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk"),
    *("awsElasticBlockStore", "secret", "nfs", "iscsi", "glusterfs", "flocker"),
    *("persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte"),
    *("downwardAPI", "fc", "configMap", "azureFile", "flexVolume"),
    *("vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk"),
    *("storageos", "projected", "scaleIO", "csi", "ephemeral", "image"),
)


def _mounts(mounts: Iterable[Spec], path: str, volumes: set[Any]) -> Iterator[Fault]:
    seen = set()
    for index, mount in enumerate(mounts):
        field, name = f"{path}[{index}]", mount.get("name", "")
        if not name:
            yield required(f"{field}.name")
        if name not in volumes:
            message = f'Not found: "{name}"'
            yield Fault(f"{field}.name", "FieldValueNotFound", message)
        place = mount.get("mountPath")
        if not place:
            yield required(f"{field}.mountPath")
        if place in seen:
            yield bad(f"{field}.mountPath", place, "must be unique")
        seen.add(place)


STANDARD = frozenset(("cpu", "memory", "ephemeral-storage"))


def _resources(resources: Spec, path: str) -> Iterator[Fault]:
    limits, requests = (resources.get(part) or {} for part in ("limits", "requests"))
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, value in amounts.items():
            field = f"{path}.{part}[{name}]"
            if not ("/" in name or name in STANDARD or name.startswith("hugepages-")):
                why = "must be a standard resource type or fully qualified"
                yield bad(field, name, why)
                yield bad(field, name, "must be a standard resource for containers")
            if (amount(value) or 0) < 0:
                yield bad(field, value, "must be greater than or equal to 0")
    for name, value in requests.items():
        most = amount(limits[name]) if name in limits else None
        if most is not None and (amount(value) or 0) > most:
            why = f"must be less than or equal to {name} limit of {limits[name]}"
            yield bad(f"{path}.requests", value, why)


HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")


def _probe(probe: Spec, path: str, is_once: bool) -> Iterator[Fault]:
    found = [name for name in HANDLERS if name in probe]
    for name in found[1:]:
        yield forbidden(f"{path}.{name}", "may not specify more than 1 handler type")
    match found[0] if found else "":
        case "":
            yield required(path, "must specify a handler type")
        case "exec" if not probe["exec"].get("command"):
            yield required(f"{path}.exec.command")
        case "httpGet" | "tcpSocket" as name:
            yield from _port(f"{path}.{name}.port", probe[name].get("port", 0))
        case _:
            pass
    numbers = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds")
    thresholds = ("successThreshold", "failureThreshold")
    yield from at_least(probe, path, *numbers, *thresholds)
    if is_once and probe.get("successThreshold", 1) != 1:
        yield bad(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


def _port(field: str, port: Any) -> Iterator[Fault]:
    check = port_number if isinstance(port, int) else port_name
    yield from check(field, port)


CHANGEABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
    "(allow it to be set to 1 if it was previously negative)"
)


def pod_update_faults(new: Spec, old: Spec) -> Iterator[Fault]:
    """Of a pod, hardly anything but the images can be changed."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    for part in ("containers", "initContainers"):
        if len(before.get(part, ())) != len(after.get(part, ())):
            why = "pod updates may not add or remove containers"
            yield forbidden(f"spec.{part}", why)
            return
    if _fixed(before) != _fixed(after):
        yield forbidden("spec", CHANGEABLE)
        return
    kept = after.get("tolerations", [])
    if any(each not in kept for each in before.get("tolerations", ())):
        why = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden("spec.tolerations", why)


def _fixed(spec: Spec) -> Spec:
    result = {
        name: value
        for name, value in spec.items()
        if name not in ("activeDeadlineSeconds", "tolerations")
    }
    for part in ("containers", "initContainers"):
        result[part] = [{**one, "image": ""} for one in spec.get(part, ())]
    return result
