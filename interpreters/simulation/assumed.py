"""Definitions of kinds that a foreign cluster serves, for a simulated one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.interpreters.cluster import Cluster

__all__ = ["assumed_definitions"]


def assumed_definitions(
    catalogue: Catalogue, cluster: Cluster, definitions: Iterable[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Definitions of the kinds that are served, and that no other definition covers.

    They are kinds of aggregated APIs, of other versions of Kubernetes, and of
    definitions that may not be read. They allow any field.
    """
    known = {(kind.group, kind.plural) for kind in cluster.registry.by_path.values()}
    known |= {(e["spec"]["group"], e["spec"]["names"]["plural"]) for e in definitions}
    missing: dict[tuple[str, str], list[Resource]] = {}
    for each in catalogue.resources:
        path = (each.group, each.plural)
        if path not in known and "list" in each.verbs:
            missing.setdefault(path, []).append(each)
    return [_definition(versions) for versions in missing.values()]


def _definition(versions: Sequence[Resource]) -> dict[str, Any]:
    first = next((each for each in versions if each.preferred), versions[0])
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "metadata": {"name": f"{first.plural}.{first.group}"},
        "spec": {
            "group": first.group,
            "scope": "Namespaced" if first.namespaced else "Cluster",
            "names": {
                "plural": first.plural,
                "singular": first.singular or first.kind.lower(),
                "kind": first.kind,
                "listKind": f"{first.kind}List",
                "shortNames": list(first.shortcuts),
                "categories": list(first.categories),
            },
            "versions": [
                {
                    "name": each.version,
                    "served": True,
                    "storage": each is first,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}} if each.has_status else {},
                }
                for each in versions
            ],
        },
    }
