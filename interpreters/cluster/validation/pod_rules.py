"""Validation of the specification of a pod (`apis/core/validation`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from fnop.interpreters.cluster.validation.faults import (
    at_least,
    bad,
    duplicate,
    forbidden,
    one_of,
    required,
)
from fnop.interpreters.cluster.validation.field_rules import (
    dns_label,
    label_faults,
    label_name,
    parsed_address,
    port_name,
    port_number,
    port_of,
    protocol,
    qualified,
    subdomain,
)
from fnop.interpreters.cluster.validation.placement_rules import placement_faults
from fnop.interpreters.cluster.validation.quota_rules import container_resource_faults
from fnop.interpreters.cluster.validation.security_rules import (
    context_faults,
    pod_context_faults,
)
from fnop.interpreters.cluster.validation.volume_rules import (
    field_faults,
    local_path,
    resource_field,
    volume_faults,
)
from fnop.interpreters.cluster.values.quantities import amount, is_whole
from fnop.interpreters.cluster.values.status import Fault

__all__ = ["pod_faults", "pod_update_faults", "spaced_images"]

Spec = dict[str, Any]

ENV_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
NOT_ENV_NAME = (
    "a valid environment variable name must consist of alphabetic characters, digits, "
    "'_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or "
    "'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is "
    "'[-._a-zA-Z][-._a-zA-Z0-9]*')"
)
ONE_SOURCE = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
    "`secretKeyRef` or `fileKeyRef`"
)
SOURCES = (
    *("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"),
)
KEY = re.compile(r"[-._a-zA-Z0-9]+")


# ----------------------------------------------------------------------- a pod

RESTARTS = ("Always", "OnFailure", "Never")
DNS = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")


def pod_faults(spec: Spec, path: str) -> Iterator[Fault]:
    """Yield the faults of the specification of a pod, or of a pod template."""
    names: set[str] = set()
    yield from volume_faults(spec.get("volumes") or (), f"{path}.volumes", names)
    containers = spec.get("containers") or ()
    if not containers:
        yield required(f"{path}.containers")
    yield from _containers(containers, f"{path}.containers", spec, names)
    taken = [one.get("name") for one in containers]
    first = spec.get("initContainers") or ()
    yield from _containers(first, f"{path}.initContainers", spec, names, taken)
    for index, one in enumerate(first):
        yield from _init_probe_faults(one, f"{path}.initContainers[{index}]")
    if spec.get("ephemeralContainers"):
        yield forbidden(f"{path}.ephemeralContainers", "cannot be set on create")
    yield from _choice(f"{path}.restartPolicy", spec.get("restartPolicy"), RESTARTS)
    yield from _choice(f"{path}.dnsPolicy", spec.get("dnsPolicy", "Default"), DNS)
    yield from label_faults(f"{path}.nodeSelector", spec.get("nodeSelector"))
    context = spec.get("securityContext") or {}
    yield from _host_network(spec, path)
    yield from pod_context_faults(context, f"{path}.securityContext")
    yield from placement_faults(spec, path)
    yield from _dns(spec, f"{path}.dnsConfig")
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        field = f"{path}.readinessGates[{index}].conditionType"
        yield from qualified(field, gate.get("conditionType", ""))
    yield from _names(spec, path)
    deadline = spec.get("activeDeadlineSeconds", 1)
    if not 1 <= deadline <= 2**31 - 1:
        why = "must be between 1 and 2147483647, inclusive"
        yield bad(f"{path}.activeDeadlineSeconds", deadline, why)
    for alias in spec.get("hostAliases") or ():
        if parsed_address(alias.get("ip", "")) is None:
            field = f"{path}.hostAliases.ip"
            yield bad(field, alias.get("ip", ""), "must be valid IP address")
        for name in alias.get("hostnames") or ():
            yield from subdomain(f"{path}.hostAliases.hostnames", name)
    if "preemptionPolicy" in spec:
        known = ("PreemptLowerPriority", "Never")
        policy = spec["preemptionPolicy"]
        yield from _choice(f"{path}.preemptionPolicy", policy, known)
    for name, value in (spec.get("overhead") or {}).items():
        yield from _resource(f"{path}.overhead[{name}]", name, value)


def _choice(field: str, value: Any, known: tuple[str, ...]) -> Iterator[Fault]:
    """Yield the faults of a required value that is one of a few."""
    if not value:
        yield required(field)
    else:
        yield from one_of(field, value, known)


def _names(spec: Spec, path: str) -> Iterator[Fault]:
    for name in ("serviceAccountName", "nodeName", "priorityClassName"):
        if text := spec.get(name):
            yield from subdomain(f"{path}.{name}", text)
    if "runtimeClassName" in spec:
        yield from subdomain(f"{path}.runtimeClassName", spec["runtimeClassName"])
    for name in ("hostname", "subdomain"):
        if text := spec.get(name):
            yield from dns_label(f"{path}.{name}", text)


def _host_network(spec: Spec, path: str) -> Iterator[Fault]:
    if not spec.get("hostNetwork"):
        return
    for index, container in enumerate(spec.get("containers") or ()):
        for place, port in enumerate(container.get("ports") or ()):
            number = port.get("containerPort", 0)
            if port.get("hostPort", 0) != number:
                field = f"{path}.containers[{index}].ports[{place}].containerPort"
                why = "must match `hostPort` when `hostNetwork` is true"
                yield bad(field, number, why)


def _dns(spec: Spec, path: str) -> Iterator[Fault]:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not config.get("nameservers"):
            why = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield required(f"{path}.nameservers", why)
            return
    config = config or {}
    servers = config.get("nameservers") or ()
    if len(servers) > 3:
        why = "must not have more than 3 nameservers"
        yield bad(f"{path}.nameservers", servers, why)
    for index, server in enumerate(servers):
        if parsed_address(server) is None:
            field = f"{path}.nameservers[{index}]"
            yield bad(field, server, "must be valid IP address")
    for index, search in enumerate(config.get("searches") or ()):
        yield from subdomain(f"{path}.searches[{index}]", search.removesuffix("."))
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            yield required(f"{path}.options[{index}]", "must not be empty")


# ------------------------------------------------------------------ containers


def _containers(
    containers: Iterable[Spec],
    path: str,
    spec: Spec,
    volumes: set[str],
    taken: Iterable[Any] = (),
) -> Iterator[Fault]:
    seen = set(taken)
    for index, one in enumerate(containers):
        field = f"{path}[{index}]"
        name = one.get("name", "")
        yield from label_name(f"{field}.name", name)
        if name and name in seen:
            yield duplicate(f"{field}.name", name)
        seen.add(name)
        image = one.get("image", "")
        if not image:
            yield required(f"{field}.image")
        yield from _container(one, field, spec, volumes)


def _init_probe_faults(one: Spec, path: str) -> Iterator[Fault]:
    """Yield the probes of an init container that ends: it must not have probes."""
    if one.get("restartPolicy") == "Always":
        return
    for name in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
        if name in one:
            why = "may not be set for init containers without restartPolicy=Always"
            yield forbidden(f"{path}.{name}", why)


def spaced_images(spec: Spec, path: str) -> Iterator[Fault]:
    """Yield images with spaces around them, in pods only."""
    for part in ("containers", "initContainers"):
        for index, one in enumerate(spec.get(part) or ()):
            image = one.get("image", "")
            if image != image.strip():
                why = "must not have leading or trailing whitespace"
                yield bad(f"{path}.{part}[{index}].image", image, why)


ENDS = ("File", "FallbackToLogsOnError")


def _container(one: Spec, path: str, spec: Spec, volumes: set[str]) -> Iterator[Fault]:
    known = ("Always", "IfNotPresent", "Never")
    yield from _choice(f"{path}.imagePullPolicy", one.get("imagePullPolicy"), known)
    policy = one.get("terminationMessagePolicy", "File")
    if policy not in ENDS:
        why = "must be 'File' or 'FallbackToLogsOnError'"
        yield bad(f"{path}.terminationMessagePolicy", policy, why)
    yield from _ports(one.get("ports") or (), f"{path}.ports")
    for index, variable in enumerate(one.get("env") or ()):
        yield from _variable_faults(variable, f"{path}.env[{index}]")
    yield from _variables(one.get("envFrom") or (), f"{path}.envFrom")
    yield from _mounts(one, path, volumes)
    yield from _devices(one, path, spec, volumes)
    yield from _resources(one.get("resources") or {}, f"{path}.resources")
    yield from context_faults(
        one.get("securityContext") or {}, f"{path}.securityContext"
    )
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in one:
            yield from _probe(one[name], f"{path}.{name}", name != "readinessProbe")
    hooks = one.get("lifecycle") or {}
    for name in ("postStart", "preStop"):
        if name in hooks:
            yield from _handler(hooks[name], f"{path}.lifecycle.{name}", HOOKS)


def _ports(ports: Iterable[Spec], path: str) -> Iterator[Fault]:
    seen, on_host = set(), set()
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
        if number := port.get("hostPort"):
            yield from port_number(f"{field}.hostPort", number)
            key = f"{port.get('protocol')}/{port.get('hostIP', '')}/{number}"
            if key in on_host:
                yield duplicate(f"{field}.hostPort", key)
            on_host.add(key)
        yield from protocol(f"{field}.protocol", port.get("protocol"))


def _env_name(field: str, name: str) -> Iterator[Fault]:
    if not ENV_NAME.fullmatch(name):
        yield bad(field, name, NOT_ENV_NAME)
    elif name.startswith(".."):
        yield bad(field, name, "must not start with '..'")
    elif name == ".":
        yield bad(field, name, "must not be '.'")


IN_VARIABLES = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName"),
    *("spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP"),
    "status.podIPs",
)


def _variable_faults(variable: Spec, path: str) -> Iterator[Fault]:
    name = variable.get("name")
    if not name:
        yield required(f"{path}.name")
    else:
        yield from _env_name(f"{path}.name", name)
    source = variable.get("valueFrom")
    if source is None:
        return
    field = f"{path}.valueFrom"
    given = [each for each in SOURCES if each in source]
    if "fieldRef" in source:
        yield from field_faults(source["fieldRef"], IN_VARIABLES, f"{field}.fieldRef")
    if "resourceFieldRef" in source:
        yield from resource_field(
            source["resourceFieldRef"], f"{field}.resourceFieldRef"
        )
    for each in ("configMapKeyRef", "secretKeyRef"):
        if each in source:
            yield from _key_faults(source[each], f"{field}.{each}")
    if not given:
        yield bad(field, "", ONE_SOURCE)
    elif variable.get("value"):
        yield bad(field, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield bad(field, "", "may not have more than one field specified at a time")


def _key_faults(reference: Spec, path: str) -> Iterator[Fault]:
    yield from subdomain(f"{path}.name", reference.get("name", ""))
    key = reference.get("key", "")
    if not key:
        yield required(f"{path}.key")
    elif len(key) > 253 or not KEY.fullmatch(key) or key in (".", ".."):
        why = (
            "a valid config key must consist of alphanumeric characters, '-', '_' or "
            "'.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for "
            "validation is '[-._a-zA-Z0-9]+')"
        )
        yield bad(f"{path}.key", key, why)


def _variables(sources: Iterable[Spec], path: str) -> Iterator[Fault]:
    for index, one in enumerate(sources):
        field = f"{path}[{index}]"
        if prefix := one.get("prefix"):
            yield from _env_name(f"{field}.prefix", prefix)
        given = [name for name in ("configMapRef", "secretRef") if name in one]
        for name in given:
            if called := one[name].get("name"):
                yield from subdomain(f"{field}.{name}.name", called)
            else:
                yield required(f"{field}.{name}.name")
        if not given:
            why = "must specify one of: `configMapRef` or `secretRef`"
            yield bad(path, "", why)
        elif len(given) > 1:
            why = "may not have more than one field specified at a time"
            yield bad(path, "", why)


def _mounts(container: Spec, path: str, volumes: set[str]) -> Iterator[Fault]:
    path, seen = f"{path}.volumeMounts", set()
    devices = container.get("volumeDevices") or ()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        field, name = f"{path}[{index}]", mount.get("name", "")
        if not name:
            yield required(f"{field}.name")
        if name not in volumes:
            yield _not_found_fault(f"{field}.name", name)
        place = mount.get("mountPath", "")
        if not place:
            yield required(f"{field}.mountPath")
        if place in seen:
            yield bad(f"{field}.mountPath", place, "must be unique")
        seen.add(place)
        for device in devices:
            if device.get("name") == name:
                why = "must not already exist in volumeDevices"
                yield bad(f"{field}.name", name, why)
        # For these, the real server does not name the mount.
        for part in ("subPath", "subPathExpr"):
            if text := mount.get(part):
                yield from local_path(f"{path}.{part}", text)
        if mount.get("subPath") and mount.get("subPathExpr"):
            why = "subPathExpr and subPath are mutually exclusive"
            yield bad(f"{field}.subPathExpr", mount["subPathExpr"], why)
        if "mountPropagation" in mount:
            yield from _propagation(mount["mountPropagation"], container, path)


def _propagation(kind: str, container: Spec, path: str) -> Iterator[Fault]:
    field = f"{path}.mountPropagation"
    known = ("Bidirectional", "HostToContainer", "None")
    yield from one_of(field, kind, known)
    context = container.get("securityContext") or {}
    if kind == "Bidirectional" and not context.get("privileged"):
        why = (
            "Bidirectional mount propagation is available only to privileged containers"
        )
        yield forbidden(field, why)


def _not_found_fault(field: str, name: str) -> Fault:
    return Fault(field, "FieldValueNotFound", f'Not found: "{name}"')


def _devices(
    container: Spec, path: str, spec: Spec, volumes: set[str]
) -> Iterator[Fault]:
    claims = {
        one.get("name")
        for one in spec.get("volumes") or ()
        if "persistentVolumeClaim" in one or "ephemeral" in one
    }
    for index, device in enumerate(container.get("volumeDevices") or ()):
        field, name = f"{path}.volumeDevices[{index}]", device.get("name", "")
        if not name:
            yield required(f"{field}.name")
        if name not in volumes:
            yield _not_found_fault(f"{field}.name", name)
        elif name not in claims:
            why = (
                "can only use volume source type of PersistentVolumeClaim or Ephemeral "
                "for block mode"
            )
            yield bad(f"{field}.name", name, why)
        if not device.get("devicePath"):
            yield required(f"{field}.devicePath")


# ------------------------------------------------------------------- resources


def _resource(field: str, name: str, value: str) -> Iterator[Fault]:
    yield from container_resource_faults(field, name)
    found = amount(value) or 0
    if found < 0:
        yield bad(field, value, "must be greater than or equal to 0")
    if "/" in name and not is_whole(value):
        yield bad(field, value, "must be an integer")


def _resources(resources: Spec, path: str) -> Iterator[Fault]:
    limits, requests = (resources.get(part) or {} for part in ("limits", "requests"))
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, value in amounts.items():
            yield from _resource(f"{path}.{part}[{name}]", name, value)
    for name, value in requests.items():
        most = amount(limits[name]) if name in limits else None
        if most is not None and (amount(value) or 0) > most:
            why = f"must be less than or equal to {name} limit of {limits[name]}"
            yield bad(f"{path}.requests", value, why)
    for name, value in requests.items():
        if not name.startswith("hugepages-") and _is_native(name):
            continue
        # Resources that cannot be shared have limits equal to their requests.
        if name not in limits:
            why = "Limit must be set for non overcommitable resources"
            yield required(f"{path}.limits", why)
        elif amount(value) != amount(limits[name]):
            why = f"must be equal to {name} limit of {limits[name]}"
            yield bad(f"{path}.requests", value, why)


def _is_native(name: str) -> bool:
    prefix, slash, _ = name.partition("/")
    return not slash or prefix.endswith("kubernetes.io")


# ---------------------------------------------------------------------- probes

HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
HOOKS = ("exec", "httpGet", "tcpSocket", "sleep")
HEADER = re.compile(r"[-A-Za-z0-9]+")


def _handler(one: Spec, path: str, known: tuple[str, ...]) -> Iterator[Fault]:
    found = [name for name in known if name in one]
    for name in found[1:]:
        yield forbidden(f"{path}.{name}", "may not specify more than 1 handler type")
    match found[0] if found else "":
        case "":
            yield required(path, "must specify a handler type")
        case "exec" if not one["exec"].get("command"):
            yield required(f"{path}.exec.command")
        case "httpGet":
            yield from _http(one["httpGet"], f"{path}.httpGet")
        case "tcpSocket":
            yield from port_of(
                f"{path}.tcpSocket.port", one["tcpSocket"].get("port", 0)
            )
        case _:
            pass


def _http(action: Spec, path: str) -> Iterator[Fault]:
    if not action.get("path"):
        yield required(f"{path}.path")
    yield from port_of(f"{path}.port", action.get("port", 0))
    yield from one_of(f"{path}.scheme", action.get("scheme", "HTTP"), ("HTTP", "HTTPS"))
    for header in action.get("httpHeaders") or ():
        name = header.get("name", "")
        if not HEADER.fullmatch(name):
            why = (
                "a valid HTTP header must consist of alphanumeric characters or '-' "
                "(e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"
            )
            yield bad(f"{path}.httpHeaders", name, why)


def _probe(probe: Spec, path: str, is_once: bool) -> Iterator[Fault]:
    yield from _handler(probe, path, HANDLERS)
    numbers = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds")
    thresholds = ("successThreshold", "failureThreshold")
    yield from at_least(probe, path, *numbers, *thresholds)
    if is_once and probe.get("successThreshold", 1) != 1:
        yield bad(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


# --------------------------------------------------------------------- changes

CHANGEABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
    "(allow it to be set to 1 if it was previously negative)"
)


def pod_update_faults(new: Spec, old: Spec) -> Iterator[Fault]:
    """Yield the forbidden changes to a pod: nearly all except images."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    for part in ("containers", "initContainers"):
        if len(before.get(part) or ()) != len(after.get(part) or ()):
            why = "pod updates may not add or remove containers"
            yield forbidden(f"spec.{part}", why)
            return
    yield from _deadline_changes(after, before)
    if _immutable_spec(before) != _immutable_spec(after):
        yield forbidden("spec", CHANGEABLE)
        return
    kept = [*map(_without_seconds, after.get("tolerations") or ())]
    if any(
        _without_seconds(each) not in kept for each in before.get("tolerations") or ()
    ):
        why = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden("spec.tolerations", why)


def _without_seconds(toleration: Spec) -> Spec:
    return {k: v for k, v in toleration.items() if k != "tolerationSeconds"}


def _deadline_changes(after: Spec, before: Spec) -> Iterator[Fault]:
    """Yield the faults of a changed deadline: it may only become shorter."""
    field = "spec.activeDeadlineSeconds"
    new, old = after.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if new is None:
        if old is not None:
            yield bad(
                field, new, "must not update from a positive integer to nil value"
            )
    elif not 0 <= new <= 2**31 - 1:
        yield bad(field, new, "must be between 0 and 2147483647, inclusive")
    elif old is not None and new > old:
        yield bad(field, new, "must be less than or equal to previous value")


def _immutable_spec(spec: Spec) -> Spec:
    result = {
        name: value
        for name, value in spec.items()
        if name not in ("activeDeadlineSeconds", "tolerations")
    }
    for part in ("containers", "initContainers"):
        result[part] = [{**one, "image": ""} for one in spec.get(part) or ()]
    return result
