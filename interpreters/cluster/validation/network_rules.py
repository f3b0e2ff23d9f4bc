"""Validation of services, endpoints, ingresses and network policies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import ip_network
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
    address,
    dns_label,
    label_faults,
    parsed_address,
    path_segment,
    port_name,
    port_number,
    port_of,
    protocol,
    qualified,
    service_name,
    special_address,
    subdomain,
    wildcard,
)
from fnop.interpreters.cluster.validation.selector_rules import selector_faults
from fnop.interpreters.cluster.values.objects import Object
from fnop.interpreters.cluster.values.status import Fault

__all__ = [
    "endpoints_faults",
    "ingress_class_changes",
    "ingress_class_faults",
    "ingress_faults",
    "new_ingress_faults",
    "policy_faults",
    "service_changes",
    "service_faults",
    "slice_changes",
    "slice_faults",
]

Spec = dict[str, Any]


def _spec(obj: Object) -> Spec:
    return obj.get("spec") or {}


# -------------------------------------------------------------------- services

SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
OUTSIDE = ("NodePort", "LoadBalancer")
LONGEST_AFFINITY = 86400


def service_faults(obj: Object) -> Iterator[Fault]:
    """Yield the faults of a service; for a valid one, the faults of its node ports."""
    found = [*_service_faults(obj)]
    yield from found or _node_ports(_spec(obj).get("ports") or ())


def _service_faults(obj: Object) -> Iterator[Fault]:
    spec = _spec(obj)
    kind, location = spec.get("type", ""), spec.get("clusterIP", "")
    ports = spec.get("ports") or ()
    if not ports and kind != "ExternalName" and location != "None":
        yield required("spec.ports")
    if kind == "ExternalName":
        yield from _external(spec)
    elif location == "None" and kind in OUTSIDE:
        why = f"may not be set to 'None' for {kind} services"
        yield bad("spec.clusterIPs[0]", location, why)
    else:
        yield from _locations(spec, location)
    names: set[str] = set()
    for index, port in enumerate(ports):
        field = f"spec.ports[{index}]"
        yield from _service_port(port, field, names, alone=len(ports) == 1)
        if kind == "ClusterIP" and port.get("nodePort"):
            why = "may not be used when `type` is 'ClusterIP'"
            yield forbidden(f"{field}.nodePort", why)
    yield from _duplicate_ports(ports)
    yield from label_faults("spec.selector", spec.get("selector"))
    yield from _affinity(spec)
    for index, each in enumerate(spec.get("externalIPs") or ()):
        yield from special_address(f"spec.externalIPs[{index}]", each)
    if not kind:
        yield required("spec.type")
    else:
        yield from one_of("spec.type", kind, SERVICE_TYPES)
    yield from _traffic(spec, kind)


def _external(spec: Spec) -> Iterator[Fault]:
    if spec.get("clusterIP"):
        why = "may not be set for ExternalName services"
        yield forbidden("spec.clusterIPs", why)
    name = (spec.get("externalName") or "").removesuffix(".")
    if not name:
        yield required("spec.externalName")
    else:
        yield from subdomain("spec.externalName", name)


def _locations(spec: Spec, location: str) -> Iterator[Fault]:
    given = spec.get("clusterIPs") or [location]
    if location and given[0] != location:
        why = "first value must match `clusterIP`"
        yield bad("spec.clusterIPs", given, why)
    for index, each in enumerate(given):
        if each and each != "None":
            yield from address(f"spec.clusterIPs[{index}]", each)


def _affinity(spec: Spec) -> Iterator[Fault]:
    kind, config = spec.get("sessionAffinity", ""), spec.get("sessionAffinityConfig")
    path = "spec.sessionAffinityConfig"
    if not kind:
        yield required("spec.sessionAffinity")
    else:
        yield from one_of("spec.sessionAffinity", kind, ("ClientIP", "None"))
    if kind == "None" and config is not None:
        yield forbidden(path, "must not be set when session affinity is None")
    if kind != "ClientIP":
        return
    why = "when session affinity type is ClientIP"
    client = (config or {}).get("clientIP")
    seconds = (client or {}).get("timeoutSeconds")
    if config is None:
        yield required(path, why)
    elif client is None:
        yield required(f"{path}.clientIP", why)
    elif seconds is None:
        yield required(f"{path}.clientIP.timeoutSeconds", why)
    elif not 0 < seconds <= LONGEST_AFFINITY:
        why = f"must be greater than 0 and less than {LONGEST_AFFINITY}"
        yield bad(f"{path}.clientIP.timeoutSeconds", seconds, why)


CHOICES = (
    ("ipFamilyPolicy", ("PreferDualStack", "RequireDualStack", "SingleStack")),
    ("internalTrafficPolicy", ("Cluster", "Local")),
)


def _traffic(spec: Spec, kind: str) -> Iterator[Fault]:
    """Yield the faults of the fields for services that are reachable from outside."""
    only = "may only be used when `type` is 'LoadBalancer'"
    ranges = spec.get("loadBalancerSourceRanges")
    if ranges and kind != "LoadBalancer":
        yield forbidden("spec.LoadBalancerSourceRanges", only)
    for each in ranges or ():
        if _network(each.strip()) is None:
            why = (
                "must be a list of IP ranges. For example, 10.240.0.0/24,10.250.0.0/24"
            )
            yield bad("spec.LoadBalancerSourceRanges", ranges, why)
            break
    if "allocateLoadBalancerNodePorts" in spec and kind != "LoadBalancer":
        yield forbidden("spec.allocateLoadBalancerNodePorts", only)
    for name, known in CHOICES:
        if name in spec and kind != "ExternalName":
            yield from one_of(f"spec.{name}", spec[name], known)
    policy, field = spec.get("externalTrafficPolicy", ""), "spec.externalTrafficPolicy"
    if policy and kind not in OUTSIDE and not spec.get("externalIPs"):
        yield bad(field, policy, "may only be set for externally-accessible services")
    elif policy not in ("", "Cluster", "Local"):
        why = "ExternalTrafficPolicy must be empty, Cluster or Local"
        yield bad(field, policy, why)
    number, field = spec.get("healthCheckNodePort", 0), "spec.healthCheckNodePort"
    if number and not (kind == "LoadBalancer" and policy == "Local"):
        why = (
            "may only be set when `type` is 'LoadBalancer' and "
            "`externalTrafficPolicy` is 'Local'"
        )
        yield bad(field, number, why)


def _service_port(
    port: Spec, path: str, names: set[str], *, alone: bool
) -> Iterator[Fault]:
    name = port.get("name", "")
    if not name and not alone:
        yield required(f"{path}.name")
    elif name:
        yield from dns_label(f"{path}.name", name)
        if name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)
    yield from port_number(f"{path}.port", port.get("port", 0))
    yield from protocol(f"{path}.protocol", port.get("protocol"))
    yield from port_of(f"{path}.targetPort", port.get("targetPort", 0))
    yield from _app_protocol(port, path)


def _app_protocol(port: Spec, path: str) -> Iterator[Fault]:
    if "appProtocol" in port:
        yield from qualified(f"{path}.appProtocol", port["appProtocol"])


def _duplicate_ports(ports: Any) -> Iterator[Fault]:
    seen: set[Any] = set()
    on_nodes: set[Any] = set()
    for index, port in enumerate(ports):
        field, number = f"spec.ports[{index}]", port.get("nodePort")
        key = (port.get("protocol"), port.get("port"))
        if key in seen:
            shown = {
                "Name": "",
                "Protocol": key[0],
                "AppProtocol": None,
                "Port": key[1],
                "TargetPort": 0,
                "NodePort": 0,
            }
            yield duplicate(field, shown)
        seen.add(key)
        if number and (key[0], number) in on_nodes:
            yield duplicate(f"{field}.nodePort", number)
        on_nodes.add((key[0], number))


def _node_ports(ports: Any) -> Iterator[Fault]:
    for index, port in enumerate(ports):
        number = port.get("nodePort", 0)
        if number and not 30000 <= number <= 32767:
            why = (
                "provided port is not in the valid range. The range of valid ports is "
                "30000-32767"
            )
            yield bad(f"spec.ports[{index}].nodePort", number, why)


def service_changes(new: Object, old: Object) -> Iterator[Fault]:
    """Yield changes to the address of a service."""
    after, before = _spec(new), _spec(old)
    location = before.get("clusterIP")
    is_external = "ExternalName" in (after.get("type"), before.get("type"))
    if location and not is_external and after.get("clusterIP") != location:
        why = "may not change once set"
        shown = after.get("clusterIPs") or [after.get("clusterIP", "")]
        yield bad("spec.clusterIPs[0]", shown, why)


# ------------------------------------------------------------------- endpoints


def endpoints_faults(obj: Object) -> Iterator[Fault]:
    """Yield the faults of the endpoints of a service."""
    for index, subset in enumerate(obj.get("subsets") or ()):
        path = f"subsets[{index}]"
        parts = ("addresses", "notReadyAddresses")
        if not any(subset.get(part) for part in parts):
            yield required(path, "must specify `addresses` or `notReadyAddresses`")
        for part in parts:
            for place, one in enumerate(subset.get(part) or ()):
                yield from _endpoint(one, f"{path}.{part}[{place}]")
        ports = subset.get("ports") or ()
        for place, port in enumerate(ports):
            yield from _endpoint_port(
                port, f"{path}.ports[{place}]", alone=len(ports) == 1
            )


def _endpoint(one: Spec, path: str) -> Iterator[Fault]:
    yield from special_address(f"{path}.ip", one.get("ip", ""))
    if name := one.get("hostname"):
        yield from dns_label(f"{path}.hostname", name)
    if "nodeName" in one:
        yield from subdomain(f"{path}.nodeName", one["nodeName"])


def _endpoint_port(port: Spec, path: str, *, alone: bool) -> Iterator[Fault]:
    if name := port.get("name"):
        yield from dns_label(f"{path}.name", name)
    elif not alone:
        yield required(f"{path}.name")
    yield from port_number(f"{path}.port", port.get("port", 0))
    yield from protocol(f"{path}.protocol", port.get("protocol"))
    yield from _app_protocol(port, path)


FAMILIES = ("FQDN", "IPv4", "IPv6")
VERSIONS = {"IPv4": 4, "IPv6": 6}


def slice_faults(obj: Object) -> Iterator[Fault]:
    """Yield the faults of an endpoint slice."""
    kind = obj.get("addressType", "")
    if not kind:
        yield required("addressType")
    else:
        yield from one_of("addressType", kind, FAMILIES)
    for index, one in enumerate(obj.get("endpoints") or ()):
        yield from _address_faults(one, kind, f"endpoints[{index}]")
    names = set()
    for index, port in enumerate(obj.get("ports") or ()):
        path, name = f"ports[{index}]", port.get("name") or ""
        if name:
            yield from dns_label(f"{path}.name", name)
        if name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)
        if "protocol" not in port:
            yield required(f"{path}.protocol")
        else:
            yield from one_of(
                f"{path}.protocol", port["protocol"], ("SCTP", "TCP", "UDP")
            )
        yield from _app_protocol(port, path)


def _address_faults(one: Spec, kind: str, path: str) -> Iterator[Fault]:
    given = one.get("addresses") or ()
    if not given:
        yield required(f"{path}.addresses", "must contain at least 1 address")
    for index, text in enumerate(given):
        field = f"{path}.addresses[{index}]"
        if kind == "FQDN":
            yield from subdomain(field, text.removesuffix("."))
        elif kind in VERSIONS:
            found = parsed_address(text)
            if found is None or found.version != VERSIONS[kind]:
                yield bad(field, text, f"must be a valid {kind} address")
            if found is not None:
                yield from special_address(field, text)
    if "nodeName" in one:
        yield from subdomain(f"{path}.nodeName", one["nodeName"])
    if "hostname" in one:
        yield from dns_label(f"{path}.hostname", one["hostname"])


def slice_changes(new: Object, old: Object) -> Iterator[Fault]:
    """Yield changes to the address family of a slice."""
    yield from immutable(new, old, "", "addressType")


# ------------------------------------------------------------ network policies


def policy_faults(obj: Object) -> Iterator[Fault]:
    """Yield the faults of a network policy."""
    spec = _spec(obj)
    yield from selector_faults(spec.get("podSelector"), "spec.podSelector")
    for part, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(part) or ()):
            path = f"spec.{part}[{index}]"
            for place, port in enumerate(rule.get("ports") or ()):
                yield from _policy_port(port, f"{path}.ports[{place}]")
            for place, peer in enumerate(rule.get(peers) or ()):
                yield from _peer_faults(peer, f"{path}.{peers}[{place}]")
    kinds = spec.get("policyTypes") or ()
    if len(kinds) > 2:
        why = "may not specify more than two policyTypes"
        yield bad("spec.policyTypes", kinds, why)
        return
    for index, kind in enumerate(kinds):
        yield from one_of(f"spec.policyTypes[{index}]", kind, ("Egress", "Ingress"))


def _policy_port(port: Spec, path: str) -> Iterator[Fault]:
    known = ("SCTP", "TCP", "UDP")
    yield from one_of(f"{path}.protocol", port.get("protocol"), known)
    if "port" in port:
        yield from port_of(f"{path}.port", port["port"])
    if "endPort" not in port:
        return
    if "port" not in port:
        yield required(f"{path}.port", "must be specified when `endPort` is specified")
    elif isinstance(port["port"], str):
        why = "may not be specified when `port` is non-numeric"
        yield forbidden(f"{path}.endPort", why)
    elif port["endPort"] < port["port"]:
        why = "must be greater than or equal to `port`"
        yield bad(f"{path}.endPort", port["endPort"], why)


def _peer_faults(peer: Spec, path: str) -> Iterator[Fault]:
    if not peer:
        yield required(path, "must specify a peer")
    for name in ("podSelector", "namespaceSelector"):
        yield from selector_faults(peer.get(name), f"{path}.{name}")
    if "ipBlock" in peer:
        yield from _block(peer["ipBlock"], f"{path}.ipBlock")
        if len(peer) > 1:
            yield forbidden(path, "may not specify both ipBlock and another peer")


def _network(text: str) -> Any:
    """A network as Go parses it: any address in it counts; None if it is invalid."""
    head, slash, bits = text.partition("/")
    if parsed_address(head) is None or not slash or not bits.isdecimal():
        return None
    try:
        return ip_network(f"{parsed_address(head)}/{bits}", strict=False)
    except ValueError:
        return None


NOT_NETWORK = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def _block(block: Spec, path: str) -> Iterator[Fault]:
    text = block.get("cidr", "")
    if not text:
        yield required(f"{path}.cidr")
        return
    whole = _network(text)
    if whole is None:
        yield bad(f"{path}.cidr", text, NOT_NETWORK)
        return
    for index, each in enumerate(block.get("except") or ()):
        field, part = f"{path}.except[{index}]", _network(each)
        if part is None:
            yield bad(field, each, NOT_NETWORK)
            return
        if part.version != whole.version or part == whole or not part.subnet_of(whole):
            yield bad(field, each, "must be a strict subset of `cidr`")


# ------------------------------------------------------------------- ingresses


def ingress_faults(obj: Object) -> Iterator[Fault]:
    """Yield the faults of an ingress."""
    spec = _spec(obj)
    if not spec.get("rules") and "defaultBackend" not in spec:
        why = "either `defaultBackend` or `rules` must be specified"
        yield bad("spec", None, why)
    if "defaultBackend" in spec:
        yield from _backend(spec["defaultBackend"], "spec.defaultBackend")
    for index, rule in enumerate(spec.get("rules") or ()):
        path, host = f"spec.rules[{index}]", rule.get("host", "")
        if parsed_address(host) is not None:
            why = "must be a DNS name, not an IP address"
            yield bad(f"{path}.host", host, why)
        if host:
            yield from _host(f"{path}.host", host)
        if "http" in rule:
            yield from _http(rule["http"], f"{path}.http")
    for index, one in enumerate(spec.get("tls") or ()):
        path = f"spec.tls[{index}]"
        for place, host in enumerate(one.get("hosts") or ()):
            yield from _host(f"{path}.hosts[{place}]", host)
        if name := one.get("secretName"):
            yield from subdomain(f"{path}.secretName", name)
    if "ingressClassName" in spec:
        yield from subdomain("spec.ingressClassName", spec["ingressClassName"])


def _http(rule: Spec, path: str) -> Iterator[Fault]:
    paths = rule.get("paths") or ()
    if not paths:
        yield required(f"{path}.paths")
    for place, one in enumerate(paths):
        yield from _http_path(one, f"{path}.paths[{place}]")


CLASS = "kubernetes.io/ingress.class"


def new_ingress_faults(obj: Object) -> Iterator[Fault]:
    """Yield the faults of a new ingress: its class is named in one place only."""
    yield from ingress_faults(obj)
    given = obj["metadata"].get("annotations", {})
    if CLASS in given and "ingressClassName" in _spec(obj):
        why = "can not be set when the class field is also set"
        yield bad(f"annotations.{CLASS}", given[CLASS], why)


def _host(field: str, host: str) -> Iterator[Fault]:
    check = wildcard if "*" in host else subdomain
    yield from check(field, host)


PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
STRANGE = ("//", "/./", "/../", "%2f", "%2F")
STRANGE_ENDS = ("/..", "/.")


def _http_path(one: Spec, path: str) -> Iterator[Fault]:
    kind, text = one.get("pathType"), one.get("path", "")
    if kind is None:
        yield required(f"{path}.pathType", "pathType must be specified")
        return
    yield from one_of(f"{path}.pathType", kind, PATH_TYPES)
    is_exact = kind in ("Exact", "Prefix")
    if kind in PATH_TYPES and (text or is_exact) and not text.startswith("/"):
        yield bad(f"{path}.path", text, "must be an absolute path")
    if is_exact:
        for each in STRANGE:
            if each in text:
                yield bad(f"{path}.path", text, f"must not contain '{each}'")
        for each in STRANGE_ENDS:
            if text.endswith(each):
                yield bad(f"{path}.path", text, f"cannot end with '{each}'")
    yield from _backend(one.get("backend") or {}, f"{path}.backend")


def _backend(backend: Spec, path: str) -> Iterator[Fault]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        yield bad(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        yield from _typed_reference(resource, f"{path}.resource")
    elif service is not None:
        yield from _service_backend(service, path)
    else:
        yield bad(path, "", "resource or service backend is required")


def _service_backend(service: Spec, path: str) -> Iterator[Fault]:
    if name := service.get("name"):
        yield from service_name(f"{path}.service.name", name)
    else:
        yield required(f"{path}.service.name")
    port = service.get("port") or {}
    called, number = port.get("name"), port.get("number")
    if called and number:
        yield bad(path, "", "cannot set both port name & port number")
    elif called:
        yield from port_name(f"{path}.service.port.name", called)
    elif number:
        yield from port_number(f"{path}.service.port.number", number)
    else:
        yield required(path, "port name or number is required")


def _typed_reference(reference: Spec, path: str) -> Iterator[Fault]:
    if reference.get("apiGroup") is not None:
        yield from subdomain(f"{path}.apiGroup", reference["apiGroup"])
    for name in ("kind", "name"):
        if text := reference.get(name):
            yield from path_segment(f"{path}.{name}", text)
        else:
            yield required(f"{path}.{name}", f"{name} is required")


# ------------------------------------------------------------- ingress classes

HTTP_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


def ingress_class_faults(obj: Object) -> Iterator[Fault]:
    """Yield the faults of an ingress class."""
    spec = _spec(obj)
    text, field = spec.get("controller", ""), "spec.controller"
    host, slash, rest = text.partition("/")
    if len(text) > 250:
        message = "Too long: may not be more than 250 bytes"
        yield Fault(field, "FieldValueTooLong", message)
    if not text:
        yield required(field)
    elif not (host and slash and rest):
        yield bad(field, text, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from subdomain(field, host)
        if not HTTP_PATH.fullmatch(rest):
            why = (
                "Invalid path (regex used for validation is "
                r"'[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')"
            )
            yield bad(field, rest, why)
    if "parameters" in spec:
        yield from _parameters(spec["parameters"], "spec.parameters")


def _parameters(reference: Spec, path: str) -> Iterator[Fault]:
    yield from _typed_reference(reference, path)
    scope, space = reference.get("scope"), reference.get("namespace")
    yield from one_of(f"{path}.scope", scope, ("Cluster", "Namespace"))
    if scope == "Namespace" and not space:
        why = '`parameters.scope` is set to "Namespace"'
        yield required(f"{path}.namespace", why)
    elif scope == "Cluster" and space is not None:
        why = '`parameters.scope` is set to "Cluster"'
        yield forbidden(f"{path}.namespace", why)


def ingress_class_changes(new: Object, old: Object) -> Iterator[Fault]:
    """Yield changes to the controller of a class."""
    yield from immutable(_spec(new), _spec(old), "spec", "controller")
