"""Validation of services, endpoints, ingresses and network policies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from ipaddress import ip_network
from typing import Any

from fnop.interpreters.cluster.validation.faults import (
    bad,
    duplicate,
    forbidden,
    required,
    too_long,
)
from fnop.interpreters.cluster.validation.field_rules import (
    address,
    domain,
    parsed_address,
    port_name,
    port_number,
    reachable_address,
    service_name,
    subdomain,
)
from fnop.interpreters.cluster.validation.rules import Rule, Spec, must, one_of
from fnop.interpreters.cluster.validation.selector_rules import label_selector
from fnop.interpreters.cluster.validation.tables import (
    Among,
    each,
    filled,
    has,
    needed,
    of_spec,
    table,
    unique,
    unless,
    when,
)
from fnop.interpreters.cluster.values.objects import Object
from fnop.interpreters.cluster.values.status import Fault

__all__ = [
    "ENDPOINTS",
    "ENDPOINT_SLICE",
    "INGRESS",
    "INGRESS_CLASS",
    "NETWORK_POLICY",
    "NEW_INGRESS",
    "service_changes",
    "service_faults",
]


def _spec(obj: Object) -> Spec:
    return obj.get("spec") or {}


# -------------------------------------------------------------------- services

OUTSIDE = ("NodePort", "LoadBalancer")


def service_faults(obj: Object, path: str) -> Iterable[Fault]:
    """The faults of a service; for a valid one, the faults of its node ports."""
    spec = _spec(obj)
    return [*SERVICE(spec, "spec")] or NODE_PORTS(spec, "spec")


def _cluster_addresses(spec: Spec, path: str) -> Iterator[Fault]:
    kind, location = spec.get("type", ""), spec.get("clusterIP", "")
    field = f"{path}.clusterIPs"
    if not spec.get("ports") and kind != "ExternalName" and location != "None":
        yield required(f"{path}.ports")
    if kind == "ExternalName":
        if location:
            yield forbidden(field, "may not be set for ExternalName services")
        name = (spec.get("externalName") or "").removesuffix(".")
        yield from needed(subdomain)(name, f"{path}.externalName")
        return
    if location == "None" and kind in OUTSIDE:
        why = f"may not be set to 'None' for {kind} services"
        yield bad(f"{field}[0]", location, why)
        return
    addresses = spec.get("clusterIPs") or [location]
    if location and addresses[0] != location:
        yield bad(field, addresses, "first value must match `clusterIP`")
    for index, text in enumerate(addresses):
        if text and text != "None":
            yield from address(text, f"{field}[{index}]")


@cache
def _service_ports(*, is_alone: bool, is_internal: bool) -> Rule:
    no_nodes = "nodePort: filled; unset (may not be used when `type` is 'ClusterIP')"
    return each(
        table("name: filled; DNS label" if is_alone else "name: needed; DNS label"),
        unique("name"),
        table(
            "port: port number",
            "protocol: needed; SCTP | TCP | UDP",
            "targetPort: port",
            "appProtocol: given; qualified name",
            *((no_nodes,) if is_internal else ()),
        ),
    )


def _ports(spec: Spec, path: str) -> Iterable[Fault]:
    ports, is_internal = spec.get("ports") or (), spec.get("type") == "ClusterIP"
    check = _service_ports(is_alone=len(ports) == 1, is_internal=is_internal)
    return check(ports, f"{path}.ports")


def _distinct_port(one: Spec, path: str, seen: set[Any]) -> Iterator[Fault]:
    key = (one.get("protocol"), one.get("port"))
    if key in seen:
        shown = {
            "Name": "",
            "Protocol": key[0],
            "AppProtocol": None,
            "Port": key[1],
            "TargetPort": 0,
            "NodePort": 0,
        }
        yield duplicate(path, shown)
    seen.add(key)


def _distinct_node_port(one: Spec, path: str, seen: set[Any]) -> Iterator[Fault]:
    number = one.get("nodePort")
    key = (one.get("protocol"), number)
    if number and key in seen:
        yield duplicate(f"{path}.nodePort", number)
    seen.add(key)


def _ranges(ranges: Any, path: str) -> Iterator[Fault]:
    if any(_network(text.strip()) is None for text in ranges or ()):
        why = "must be a list of IP ranges. For example, 10.240.0.0/24,10.250.0.0/24"
        yield bad(path, ranges, why)


def _traffic(spec: Spec, path: str) -> Iterator[Fault]:
    """Yield the faults of the fields for services that are reachable from outside."""
    kind, policy = spec.get("type", ""), spec.get("externalTrafficPolicy", "")
    field = f"{path}.externalTrafficPolicy"
    if policy and kind not in OUTSIDE and not spec.get("externalIPs"):
        yield bad(field, policy, "may only be set for externally-accessible services")
    elif policy not in ("", "Cluster", "Local"):
        why = "ExternalTrafficPolicy must be empty, Cluster or Local"
        yield bad(field, policy, why)
    number = spec.get("healthCheckNodePort", 0)
    if number and not (kind == "LoadBalancer" and policy == "Local"):
        why = (
            "may only be set when `type` is 'LoadBalancer' and "
            "`externalTrafficPolicy` is 'Local'"
        )
        yield bad(f"{path}.healthCheckNodePort", number, why)


FOR_CLIENTS = "present (when session affinity type is ClientIP)"
RANGES = "loadBalancerSourceRanges as LoadBalancerSourceRanges"
BALANCED_ONLY = "unset (may only be used when `type` is 'LoadBalancer')"
SERVICE = table(
    _cluster_addresses,
    _ports,
    ("ports[]", Among(_distinct_port), Among(_distinct_node_port)),
    "selector: labels",
    "sessionAffinity: needed; ClientIP | None",
    when(
        has("sessionAffinity", "None"),
        "sessionAffinityConfig: unset (must not be set when session affinity is None)",
    ),
    when(
        has("sessionAffinity", "ClientIP"),
        f"sessionAffinityConfig: {FOR_CLIENTS}",
        f"sessionAffinityConfig?.clientIP: {FOR_CLIENTS}",
        f"sessionAffinityConfig.clientIP?.timeoutSeconds: {FOR_CLIENTS}; "
        "1..86400 (must be greater than 0 and less than 86400)",
    ),
    "externalIPs[]: reachable address",
    "type: needed; ClusterIP | ExternalName | LoadBalancer | NodePort",
    unless(has("type", "LoadBalancer"), f"{RANGES}: filled; {BALANCED_ONLY}"),
    (RANGES, _ranges),
    unless(
        has("type", "LoadBalancer"), f"allocateLoadBalancerNodePorts: {BALANCED_ONLY}"
    ),
    unless(
        has("type", "ExternalName"),
        "ipFamilyPolicy: given; PreferDualStack | RequireDualStack | SingleStack",
        "internalTrafficPolicy: given; Cluster | Local",
    ),
    _traffic,
)
NODE_PORTS = table(
    "ports[].nodePort: filled; 30000..32767 (provided port is not in the valid range. "
    "The range of valid ports is 30000-32767)"
)


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


def _some_address(subset: Spec, path: str) -> Iterator[Fault]:
    if not subset.get("addresses") and not subset.get("notReadyAddresses"):
        yield required(path, "must specify `addresses` or `notReadyAddresses`")


def _endpoint_ports(ports: Any, path: str) -> Iterable[Fault]:
    return (ONLY_PORT if len(ports or ()) == 1 else PORTS)(ports, path)


PORT = table(
    "port: port number",
    "protocol: needed; SCTP | TCP | UDP",
    "appProtocol: given; qualified name",
)
ONLY_PORT = each(table("name: filled; DNS label"), PORT)
PORTS = each(table("name: needed; DNS label"), PORT)
ENDPOINT = table(
    "ip: reachable address",
    "hostname: filled; DNS label",
    "nodeName: given; subdomain",
)
ENDPOINTS = table(
    (
        "subsets[]",
        _some_address,
        table(
            ("addresses[], notReadyAddresses[]", ENDPOINT),
            ("ports", _endpoint_ports),
        ),
    )
)


def _family(version: int) -> Rule:
    def check(text: str, path: str) -> Iterator[Fault]:
        found = parsed_address(text)
        if found is None or found.version != version:
            yield bad(path, text, f"must be a valid IPv{version} address")
        if found is not None:
            yield from reachable_address(text, path)

    return check


def _full_name(text: str, path: str) -> Iterable[Fault]:
    return subdomain(text.removesuffix("."), path)


ADDRESSES = {"FQDN": _full_name, "IPv4": _family(4), "IPv6": _family(6)}


def _slice_endpoints(obj: Object, path: str) -> Iterable[Fault]:
    check = SLICE_ENDPOINTS.get(obj.get("addressType", ""), OF_NO_FAMILY)
    return check(obj.get("endpoints"), "endpoints")


def _endpoints_of(*addresses: Rule) -> Rule:
    return each(
        table(
            "addresses: needed (must contain at least 1 address)",
            ("addresses[]", *addresses),
            "nodeName: given; subdomain",
            "hostname: given; DNS label",
        )
    )


OF_NO_FAMILY = _endpoints_of()
SLICE_ENDPOINTS = {family: _endpoints_of(check) for family, check in ADDRESSES.items()}
ENDPOINT_SLICE = table(
    ("addressType", needed(one_of(*ADDRESSES))),
    _slice_endpoints,
    (
        "ports[]",
        table("name: filled; DNS label"),
        unique("name", counted=True),
        table(
            "protocol: present; SCTP | TCP | UDP",
            "appProtocol: given; qualified name",
        ),
    ),
)

# ------------------------------------------------------------ network policies


def _end_port(one: Spec, path: str) -> Iterator[Fault]:
    if "endPort" not in one:
        return
    if "port" not in one:
        yield required(f"{path}.port", "must be specified when `endPort` is specified")
    elif isinstance(one["port"], str):
        why = "may not be specified when `port` is non-numeric"
        yield forbidden(f"{path}.endPort", why)
    elif one["endPort"] < one["port"]:
        why = "must be greater than or equal to `port`"
        yield bad(f"{path}.endPort", one["endPort"], why)


def _only_block(peer: Spec, path: str) -> Iterator[Fault]:
    if "ipBlock" in peer and len(peer) > 1:
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
    for index, excepted in enumerate(block.get("except") or ()):
        field, part = f"{path}.except[{index}]", _network(excepted)
        if part is None:
            yield bad(field, excepted, NOT_NETWORK)
            return
        if part.version != whole.version or part == whole or not part.subnet_of(whole):
            yield bad(field, excepted, "must be a strict subset of `cidr`")


def _policy_types(kinds: Any, path: str) -> Iterable[Fault]:
    if len(kinds or ()) > 2:
        return (bad(path, kinds, "may not specify more than two policyTypes"),)
    return POLICY_TYPES(kinds, path)


POLICY_TYPES = each(one_of("Egress", "Ingress"))
POLICY_PORT = table("protocol: SCTP | TCP | UDP", "port: given; port", _end_port)
PEER = needed(
    ("podSelector, namespaceSelector", label_selector),
    ("ipBlock?", _block),
    _only_block,
    why="must specify a peer",
)
NETWORK_POLICY = of_spec(
    ("podSelector", label_selector),
    ("ingress[]", table(("ports[]", POLICY_PORT), ("from[]", PEER))),
    ("egress[]", table(("ports[]", POLICY_PORT), ("to[]", PEER))),
    ("policyTypes", _policy_types),
)

# ------------------------------------------------------------------- ingresses

CLASS = "kubernetes.io/ingress.class"
PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
STRANGE = ("//", "/./", "/../", "%2f", "%2F")
STRANGE_ENDS = ("/..", "/.")


def _some_backend(spec: Spec | None, path: str) -> Iterator[Fault]:
    if not spec or (not spec.get("rules") and "defaultBackend" not in spec):
        yield bad(path, None, "either `defaultBackend` or `rules` must be specified")


def _class_once(obj: Object, path: str) -> Iterator[Fault]:
    annotations = obj["metadata"].get("annotations", {})
    if CLASS in annotations and "ingressClassName" in _spec(obj):
        why = "can not be set when the class field is also set"
        yield bad(f"annotations.{CLASS}", annotations[CLASS], why)


def _http_path(one: Spec, path: str) -> Iterator[Fault]:
    kind, text = one.get("pathType"), one.get("path", "")
    if kind is None:
        yield required(f"{path}.pathType", "pathType must be specified")
        return
    yield from one_of(*PATH_TYPES)(kind, f"{path}.pathType")
    is_exact, field = kind in ("Exact", "Prefix"), f"{path}.path"
    if kind in PATH_TYPES and (text or is_exact) and not text.startswith("/"):
        yield bad(field, text, "must be an absolute path")
    if is_exact:
        for part in STRANGE:
            if part in text:
                yield bad(field, text, f"must not contain '{part}'")
        for end in STRANGE_ENDS:
            if text.endswith(end):
                yield bad(field, text, f"cannot end with '{end}'")
    yield from _backend(one.get("backend") or {}, f"{path}.backend")


def _backend(backend: Spec, path: str) -> Iterable[Fault]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is None and resource is None:
        return (bad(path, "", "resource or service backend is required"),)
    if service is not None and resource is not None:
        return (bad(path, "", "cannot set both resource and service backends"),)
    if service is None:
        return TYPED_REFERENCE(resource, f"{path}.resource")
    name = needed(service_name)(service.get("name"), f"{path}.service.name")
    return [*name, *_service_port(service.get("port") or {}, path)]


def _service_port(of: Spec, path: str) -> Iterable[Fault]:
    name, number = of.get("name"), of.get("number")
    if name and number:
        return (bad(path, "", "cannot set both port name & port number"),)
    if name:
        return port_name(name, f"{path}.service.port.name")
    if number:
        return port_number(number, f"{path}.service.port.number")
    return (required(path, "port name or number is required"),)


TYPED_REFERENCE = table(
    "apiGroup: given; subdomain",
    "kind: needed (kind is required); path segment",
    "name: needed (name is required); path segment",
)
_not_an_address = must(
    lambda host: parsed_address(host) is None, "must be a DNS name, not an IP address"
)
INGRESS = of_spec(
    _some_backend,
    ("defaultBackend?", _backend),
    (
        "rules[]",
        table(
            ("host", _not_an_address, filled(domain)),
            ("http?.paths", needed(each(_http_path))),
        ),
    ),
    ("tls[]", table("hosts[]: domain", "secretName: filled; subdomain")),
    "ingressClassName: given; subdomain",
)
# The class of a new ingress is named in one place only.
NEW_INGRESS = table(INGRESS, _class_once)

# ------------------------------------------------------------- ingress classes

HTTP_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
NOT_HTTP_PATH = (
    r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')"
)


def _controller(text: str | None, path: str) -> Iterator[Fault]:
    text = text or ""
    host, _, rest = text.partition("/")
    if len(text) > 250:
        yield too_long(path, 250)
    if not text:
        yield required(path)
    elif not (host and rest):
        yield bad(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from subdomain(host, path)
        if not HTTP_PATH.fullmatch(rest):
            yield bad(path, rest, NOT_HTTP_PATH)


SCOPE = '(`parameters.scope` is set to "{}")'
PARAMETERS = table(
    TYPED_REFERENCE,
    "scope: Cluster | Namespace",
    when(has("scope", "Namespace"), f"namespace: needed {SCOPE.format('Namespace')}"),
    when(has("scope", "Cluster"), f"namespace: unset {SCOPE.format('Cluster')}"),
)
INGRESS_CLASS = of_spec(("controller", _controller), ("parameters?", PARAMETERS))
