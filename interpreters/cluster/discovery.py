"""Discovery: which groups, versions and resources there are."""

from __future__ import annotations

from typing import Any

from fnop.interpreters.cluster.kinds import Kind, Registry
from fnop.interpreters.cluster.status import no_such_path
from fnop.interpreters.protocol import ApiResponse

__all__ = ["discover"]

VERSION = {
    "major": "1",
    "minor": "34",
    "gitVersion": "v1.34.0",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "go1.24.0",
    "compiler": "gc",
    "platform": "linux/amd64",
}
CUSTOM_VERBS = (
    "delete", "deletecollection", "get", "list", "patch", "create", "update", "watch",
)  # fmt: skip
BUILTIN_VERBS = tuple(sorted(CUSTOM_VERBS))


def discover(registry: Registry, path: str) -> ApiResponse:
    """Answer a GET outside the resource paths."""
    match path.strip("/").split("/"):
        case ["version"]:
            return ApiResponse(200, VERSION)
        case ["healthz" | "readyz" | "livez"]:
            return ApiResponse(200, "ok")
        case ["api"]:
            return ApiResponse(200, {"kind": "APIVersions", "versions": ["v1"]})
        case ["api", version]:
            return _resources(registry, "", version)
        case ["apis"]:
            return _groups(registry)
        case ["apis", group]:
            return _group(registry, group)
        case ["apis", group, version]:
            return _resources(registry, group, version)
        case _:
            raise no_such_path()


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
    return {group: sorted(names, key=_priority) for group, names in found.items()}


def _priority(version: str) -> tuple[int, int, int, str]:
    """Version order: v2 before v1 before v1beta2 before v1beta1 before v1alpha1."""
    head, _, tail = version[1:].partition("beta")
    if tail and head.isdecimal() and tail.isdecimal():
        return (1, -int(head), -int(tail), "")
    head, _, tail = version[1:].partition("alpha")
    if tail and head.isdecimal() and tail.isdecimal():
        return (2, -int(head), -int(tail), "")
    if version[:1] == "v" and version[1:].isdecimal():
        return (0, -int(version[1:]), 0, "")
    return (3, 0, 0, version)


def _group_body(group: str, versions: list[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{group}/{v}", "version": v} for v in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def _groups(registry: Registry) -> ApiResponse:
    groups = [_group_body(*item) for item in _versions(registry).items()]
    return ApiResponse(
        200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    )


def _group(registry: Registry, group: str) -> ApiResponse:
    versions = _versions(registry).get(group)
    if versions is None:
        raise no_such_path()
    body = {"kind": "APIGroup", "apiVersion": "v1", **_group_body(group, versions)}
    return ApiResponse(200, body)


def _resources(registry: Registry, group: str, version: str) -> ApiResponse:
    kinds = [
        kind
        for kind in _kinds(registry)
        if kind.group == group and kind.version == version and kind.served
    ]
    if not kinds:
        raise no_such_path()
    # The list of the core group, the oldest, does without its apiVersion.
    body = {
        "kind": "APIResourceList",
        **({"apiVersion": "v1"} if group else {}),
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": [entry for kind in kinds for entry in _entries(kind)],
    }
    return ApiResponse(200, body)


def _entries(kind: Kind) -> list[dict[str, Any]]:
    verbs = CUSTOM_VERBS if kind.custom else BUILTIN_VERBS
    if kind.resource == ("", "namespaces"):
        # Namespaces end one by one.
        verbs = tuple(verb for verb in verbs if verb != "deletecollection")
    main: dict[str, Any] = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(verbs),
    }
    if kind.short_names:
        main["shortNames"] = list(kind.short_names)
    if kind.categories:
        main["categories"] = list(kind.categories)
    entries = [main]
    part = {"singularName": "", "namespaced": kind.namespaced}
    some = ["get", "patch", "update"]
    if kind.scale is not None:
        scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
        entries.append({"name": f"{kind.plural}/scale", **part, **scale, "verbs": some})
    if kind.status:
        name = f"{kind.plural}/status"
        entries.append({"name": name, **part, "kind": kind.kind, "verbs": some})
    return entries
