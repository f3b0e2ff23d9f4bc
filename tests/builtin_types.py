"""Make `builtin_types.json` (in `cluster/kinds`): the types of the built-in kinds.

    pip download --no-deps kubernetes-validate==1.37.0 -d DIR
    python -m tests.builtin_types DIR/kubernetes_validate-1.37.0-py3-none-any.whl

It reads the JSON schemas that the package `kubernetes-validate` has made of the
OpenAPI document of Kubernetes 1.36, and undoes what was done to them: every type may
be null there, references have another place, the TypeMeta of kinds is narrowed.
Only what the kinds of `kinds/kinds.py` need is kept, and no prose.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fnop.interpreters.cluster.kinds.kinds import builtin_registry

INSIDE = "kubernetes_validate/kubernetes-json-schema/v1.36.0-local/_definitions.json"
ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "interpreters/cluster/kinds/builtin_types.json"
KINDS = "x-kubernetes-group-version-kind"
# What the schemas call by alternatives has a name of its own in OpenAPI.
SPECIAL = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "format": "int-or-string",
        "type": "string",
    },
}
# Kinds that are not resources, or are kinds of subresources: group, version, kind.
FURTHER = {
    ("", "v1", "Status"),
    ("", "v1", "DeleteOptions"),
    ("", "v1", "APIGroup"),
    ("", "v1", "APIGroupList"),
    ("", "v1", "APIResourceList"),
    ("", "v1", "APIVersions"),
    ("authentication.k8s.io", "v1", "TokenRequest"),
    ("autoscaling", "v1", "Scale"),
    ("policy", "v1", "Eviction"),
}


def plain(schema: Any) -> Any:
    """A schema as OpenAPI 2 has it: without prose, and without null."""
    if isinstance(schema, list):
        return [plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {}
    for name, value in schema.items():
        if name == "properties":
            result[name] = {field: plain(part) for field, part in value.items()}
        elif name == "type" and isinstance(value, list):
            (result[name],) = (one for one in value if one != "null")
        elif name == "$ref":
            result[name] = value.replace("#/$defs/", "#/definitions/")
        elif name not in ("description", "enum"):
            result[name] = plain(value)
    return result


def references(schema: Any) -> Iterator[str]:
    """The names of all definitions that a schema refers to."""
    if isinstance(schema, dict):
        for name, value in schema.items():
            if name == "$ref" and isinstance(value, str):
                yield value.rpartition("/")[2]
            else:
                yield from references(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from references(item)


def wanted() -> set[tuple[str, str, str]]:
    """The group, version and kind of all that is served, and of its lists."""
    kinds = builtin_registry().by_path.values()
    served = {
        (kind.group, kind.version, name)
        for kind in kinds
        for name in (kind.kind, kind.list_kind)
    }
    return served | FURTHER


def kept(definitions: dict[str, Any]) -> dict[str, Any]:
    """The definitions of what is wanted, and of all that they refer to."""
    wishes = wanted()
    pending = [
        name
        for name, schema in definitions.items()
        for kind in schema.get(KINDS, ())
        if (kind["group"], kind["version"], kind["kind"]) in wishes
    ]
    found: dict[str, Any] = {}
    while pending:
        name = pending.pop()
        if name not in found:
            found[name] = plain(SPECIAL.get(name, definitions[name]))
            pending += references(found[name])
    return found


def main(package: str) -> None:
    """Write the file again."""
    with zipfile.ZipFile(package) as archive:
        definitions = json.loads(archive.read(INSIDE))["$defs"]
    compact = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
    lines = [
        f"{compact(name)}:{compact(schema)}"
        for name, schema in sorted(kept(definitions).items())
    ]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1])
