"""Discovery: groups and kinds; and the paths outside resources, such as `/version`.

Discovery comes in two forms: list by list, and aggregated. The aggregated form has
everything in one answer to `/api` and one to `/apis` (KEP-3352).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from fnop.interpreters.cluster.api.logs import is_log
from fnop.interpreters.cluster.api.subresources import SUBRESOURCES
from fnop.interpreters.cluster.kinds.kinds import Kind, Registry
from fnop.interpreters.cluster.output.negotiation import (
    discovery_form,
    is_plain,
    not_acceptable,
    router_refusal,
    wants_yaml,
)
from fnop.interpreters.cluster.output.openapi import PROTOBUF_V2, openapi
from fnop.interpreters.cluster.values.status import (
    method_not_allowed,
    no_such_path,
    unknown_resource,
)
from fnop.interpreters.runtime.protocol import JSON, ApiRequest, ApiResponse

__all__ = ["content_type", "discover"]

BUILD = {
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "go1.26.0",
    "compiler": "gc",
    "platform": "linux/amd64",
}
ADDRESSES = [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}]
CUSTOM_VERBS = (
    "delete", "deletecollection", "get", "list", "patch", "create", "update", "watch",
)  # fmt: skip
BUILTIN_VERBS = tuple(sorted(CUSTOM_VERBS))
OFFERED = (JSON, "application/yaml", "application/vnd.kubernetes.protobuf")


# The number of documents about the same kinds that are kept.
MOST_DOCUMENTS = 256


def discover(registry: Registry, request: ApiRequest, release: str) -> ApiResponse:
    """Answer a request outside the resource paths, of a server of this release.

    Documents about the same kinds are built once, and never changed afterwards.
    """
    if request.path.strip("/") == "version" and request.method == "GET":
        return _version(release, request.accept)
    if request.method != "GET" or not request.path.startswith("/api"):
        return _discovery_response(registry, request)
    known: dict[tuple[str, str], ApiResponse] = registry.memo.setdefault("pages", {})
    key = request.path, request.accept
    if key not in known:
        if len(known) >= MOST_DOCUMENTS:
            known.clear()
        known[key] = _discovery_response(registry, request)
    return known[key]


def _discovery_response(registry: Registry, request: ApiRequest) -> ApiResponse:
    parts = request.path.strip("/").split("/")
    if parts[0] in CHECKS:
        return _health(registry, parts, dict(reversed(request.query)))
    if parts[0] == "openapi" and request.method == "GET":
        document = openapi(registry, request.path, request.query, request.accept)
        if document is not None:
            return document
    if parts[0] not in ("api", "apis", "version", ""):
        raise _path_not_found(registry)
    if request.method != "GET":
        raise method_not_allowed()
    match parts:
        case [""]:
            return ApiResponse(200, {"paths": _paths(registry)})
        case ["api"] | ["apis"]:
            return _root(registry, parts[0], request.accept)
        case ["api", version]:
            return _resource_list(registry, "", version, request.accept)
        case ["apis", group]:
            return _group(registry, group, request.accept)
        case ["apis", group, version]:
            return _resource_list(registry, group, version, request.accept)
        case _:
            is_builtin = parts[0] == "api" or parts[1] in RANKS
            raise unknown_resource() if is_builtin else no_such_path()


def _version(release: str, accept: str) -> ApiResponse:
    """The answer of `/version`; since 1.34 it includes the emulated versions."""
    if accept != JSON and not is_plain(accept):
        raise router_refusal((JSON,))
    major, minor, *_ = release.split(".")
    told = {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": f"v{release}",
        **BUILD,
    }
    return ApiResponse(200, told)


def content_type(request: ApiRequest, response: ApiResponse) -> str:
    """The Content-Type of an answer.

    For aggregated discovery it names the kind, which clients evaluate.
    """
    body = response.body
    if isinstance(body, str):
        # A log has the type that kube-apiserver gives it, regardless of its content.
        is_plain_log = response.status == 200 and is_log(request.path)
        return "text/plain" if is_plain_log else "text/plain; charset=utf-8"
    if isinstance(body, bytes):
        return PROTOBUF_V2
    media = "application/yaml" if wants_yaml(request.accept) else JSON
    if isinstance(body, Mapping) and body.get("kind") == "APIGroupDiscoveryList":
        group, _, version = body["apiVersion"].partition("/")
        return f"{media};g={group};v={version};as=APIGroupDiscoveryList"
    return media


# ---------------------------------------------------------------------- health

HOOKS = (
    "start-apiserver-admission-initializer",
    "generic-apiserver-start-informers",
    "priority-and-fairness-config-consumer",
    "priority-and-fairness-filter",
    "storage-object-count-tracker-hook",
    "start-apiextensions-informers",
    "start-apiextensions-controllers",
    "crd-informer-synced",
    "start-system-namespaces-controller",
    "rbac/bootstrap-roles",
    "scheduling/bootstrap-system-priority-classes",
    "priority-and-fairness-config-producer",
    "start-kubernetes-service-cidr-controller",
    "start-kube-aggregator-informers",
    "apiservice-registration-controller",
    "apiservice-discovery-controller",
    "kube-apiserver-autoregistration",
    "apiservice-openapi-controller",
    "apiservice-openapiv3-controller",
)
HEALTH = ("ping", "log", "etcd", *(f"poststarthook/{hook}" for hook in HOOKS))
CHECKS = {
    "healthz": HEALTH,
    "livez": HEALTH,
    "readyz": (
        "ping", "log", "etcd", "etcd-readiness", "informer-sync", *HEALTH[3:],
        "shutdown",
    ),
}  # fmt: skip


def _health(
    registry: Registry, parts: list[str], query: Mapping[str, str]
) -> ApiResponse:
    """The answer of the health checks: everything is healthy."""
    root, checks = parts[0], CHECKS[parts[0]]
    if len(parts) > 1:
        if "/".join(parts[1:]) not in checks:
            raise _path_not_found(registry)
        return ApiResponse(200, "ok")
    if "verbose" not in query:
        return ApiResponse(200, "ok")
    left_out = query.get("exclude")
    lines = [
        f"[+]{name} excluded: ok" if name == left_out else f"[+]{name} ok"
        for name in checks
    ]
    if left_out is not None and left_out not in checks:
        lines.append(
            f'warn: some health checks cannot be excluded: no matches for "{left_out}"'
        )
    return ApiResponse(200, "\n".join([*lines, f"{root} check passed\n"]))


def _paths(registry: Registry) -> list[str]:
    """The index of the server."""
    found = ["/api", "/api/v1", "/apis", "/apis/", "/version"]
    found += ["/openapi/v2", "/openapi/v3", "/openapi/v3/"]
    for group, versions in _versions(registry).items():
        found.append(f"/apis/{group}")
        found += [f"/apis/{group}/{version}" for version in versions]
    for root, checks in CHECKS.items():
        found += [f"/{root}", *(f"/{root}/{name}" for name in checks)]
    return sorted(found)


def _path_not_found(registry: Registry) -> Exception:
    """404 with the index of paths."""
    refusal = no_such_path()
    refusal.response = ApiResponse(404, {"paths": _paths(registry)})
    return refusal


# ---------------------------------------------------------------------- groups

# Built-in groups come in the order of their priorities, custom groups by name.
GROUPS = (
    "apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io",
    "authorization.k8s.io", "autoscaling", "batch", "certificates.k8s.io",
    "networking.k8s.io", "policy", "rbac.authorization.k8s.io", "storage.k8s.io",
    "admissionregistration.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io",
    "coordination.k8s.io", "node.k8s.io", "discovery.k8s.io",
)  # fmt: skip
RANKS = {group: rank for rank, group in enumerate(GROUPS)}


def _kinds(registry: Registry) -> list[Kind]:
    return [registry.by_path[path] for path in sorted(registry.by_path)]


def _versions(registry: Registry) -> dict[str, list[str]]:
    """The served versions of each group, the preferred one first."""
    found: dict[str, list[str]] = {}
    for kind in _kinds(registry):
        if kind.group and kind.served:
            versions = found.setdefault(kind.group, [])
            if kind.version not in versions:
                versions.append(kind.version)
    groups = sorted(found, key=lambda group: (RANKS.get(group, len(GROUPS)), group))
    return {group: sorted(found[group], key=_priority) for group in groups}


def _priority(version: str) -> tuple[int, int, int, str]:
    """The sort key of a version: v2 before v1 before v1beta2 before v1beta1 before
    v1alpha1.
    """
    head, _, tail = version[1:].partition("beta")
    if tail and head.isdecimal() and tail.isdecimal():
        return (1, -int(head), -int(tail), "")
    head, _, tail = version[1:].partition("alpha")
    if tail and head.isdecimal() and tail.isdecimal():
        return (2, -int(head), -int(tail), "")
    if version[:1] == "v" and version[1:].isdecimal():
        return (0, -int(version[1:]), 0, "")
    return (3, 0, 0, version)


def _root(registry: Registry, root: str, accept: str) -> ApiResponse:
    form = "" if accept == JSON else discovery_form(accept)
    if form is None:
        raise not_acceptable(OFFERED)
    if form:
        return _aggregated_discovery(registry, root, form)
    if root == "api":
        body = {"kind": "APIVersions", "versions": ["v1"]}
        return ApiResponse(200, {**body, "serverAddressByClientCIDRs": ADDRESSES})
    groups = [_group_body(*item) for item in _versions(registry).items()]
    return ApiResponse(
        200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    )


def _check_plain(accept: str) -> None:
    """Refuse forms other than JSON, which only `/api` and `/apis` have."""
    if accept != JSON and not is_plain(accept):
        raise not_acceptable(OFFERED)


def _group_body(group: str, versions: list[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{group}/{v}", "version": v} for v in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def _group(registry: Registry, group: str, accept: str) -> ApiResponse:
    versions = _versions(registry).get(group)
    if versions is None:
        raise no_such_path()
    _check_plain(accept)
    body = {"kind": "APIGroup", "apiVersion": "v1", **_group_body(group, versions)}
    return ApiResponse(200, body)


# ------------------------------------------------------------------- resources

Entry = dict[str, Any]


def _at_version(registry: Registry, group: str, version: str) -> list[Kind]:
    return [
        kind
        for kind in _kinds(registry)
        if kind.group == group and kind.version == version and kind.served
    ]


def _resource_list(
    registry: Registry, group: str, version: str, accept: str
) -> ApiResponse:
    kinds = _at_version(registry, group, version)
    if not kinds:
        is_builtin = not group or group in RANKS
        raise unknown_resource() if is_builtin else no_such_path()
    _check_plain(accept)
    # The list of the core group, the oldest, lacks its apiVersion.
    body = {
        "kind": "APIResourceList",
        **({"apiVersion": "v1"} if group else {}),
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": [entry for kind in kinds for entry in _entries(kind)],
    }
    return ApiResponse(200, body)


def _verbs(kind: Kind) -> list[str]:
    if kind.create_only:
        return ["create"]
    verbs = CUSTOM_VERBS if kind.custom else BUILTIN_VERBS
    if kind.resource == ("", "namespaces"):
        # Namespaces are deleted one by one.
        verbs = tuple(verb for verb in verbs if verb != "deletecollection")
    return list(verbs)


def _entries(kind: Kind) -> Iterator[Entry]:
    """The entries of a kind in a resource list: itself, then its subresources."""
    main: Entry = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": _verbs(kind),
    }
    if kind.short_names:
        main["shortNames"] = list(kind.short_names)
    if kind.categories:
        main["categories"] = list(kind.categories)
    if not kind.create_only:
        main["storageVersionHash"] = _storage_hash(kind)
    yield main
    for name, group, version, of, verbs in _subresources(kind):
        entry: Entry = {
            "name": f"{kind.plural}/{name}",
            "singularName": "",
            "namespaced": kind.namespaced,
        }
        # For a kind of the same group and version, both are omitted.
        if (group, version) != (kind.group, kind.version):
            entry |= {"group": group, "version": version}
        yield {**entry, "kind": of, "verbs": list(verbs)}


def _storage_hash(kind: Kind) -> str:
    """A digest of the version in which a kind is stored, for clients that cache it."""
    group, version = kind.group, kind.storage_version or kind.version
    if kind.resource == ("", "events"):
        group, version = "", "v1"
    text = f"{group}/{version}/{kind.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


SOME = ("get", "patch", "update")


def _subresources(
    kind: Kind,
) -> Iterator[tuple[str, str, str, str, tuple[str, ...]]]:
    """Name, group, version, kind and verbs of each subresource."""
    found: dict[str, tuple[str, str, str, tuple[str, ...]]] = {}
    for (resource, name), each in SUBRESOURCES.items():
        if resource == (kind.group, kind.plural):
            group, version = each.group or kind.group, each.version or kind.version
            found[name] = (group, version, each.kind, each.verbs)
    if kind.scale is not None:
        found["scale"] = ("autoscaling", "v1", "Scale", SOME)
    if kind.status:
        found["status"] = (kind.group, kind.version, kind.kind, SOME)
    # For custom kinds the status comes first.
    names = sorted(found, reverse=kind.custom)
    yield from ((name, *found[name]) for name in names)


# ------------------------------------------------------------------ aggregated


def _aggregated_discovery(registry: Registry, root: str, form: str) -> ApiResponse:
    groups: dict[str, list[str]] = {"": ["v1"]}
    if root == "apis":
        groups = _versions(registry)
    items = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [
                {
                    "version": version,
                    "resources": [
                        _aggregated_entry(kind)
                        for kind in _at_version(registry, group, version)
                    ],
                    "freshness": "Current",
                }
                for version in versions
            ],
        }
        for group, versions in groups.items()
    ]
    body = {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{form}",
        "metadata": {},
        "items": items,
    }
    return ApiResponse(200, body)


def _aggregated_entry(kind: Kind) -> Entry:
    entry: Entry = {
        "resource": kind.plural,
        "responseKind": _group_version_kind(kind.group, kind.version, kind.kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": _verbs(kind),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    parts = [
        {
            "subresource": name,
            "responseKind": _group_version_kind(group, version, of),
            "verbs": list(verbs),
        }
        for name, group, version, of, verbs in _subresources(kind)
    ]
    if parts:
        entry["subresources"] = parts
    return entry


def _group_version_kind(group: str, version: str, kind: str) -> dict[str, str]:
    return {"group": group, "version": version, "kind": kind}
