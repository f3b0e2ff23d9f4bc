"""The definition and the object of a peering."""

from __future__ import annotations

from typing import Any


def peering_definition(plural: str = "clusterkopfpeerings") -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.kopf.dev"},
        "spec": {
            "group": "kopf.dev",
            "scope": "Cluster" if plural.startswith("cluster") else "Namespaced",
            "names": {"plural": plural, "kind": "ClusterKopfPeering"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "x-kubernetes-preserve-unknown-fields": True,
                        }
                    },
                }
            ],
        },
    }


PEERING_OBJECT = {
    "apiVersion": "kopf.dev/v1",
    "kind": "ClusterKopfPeering",
    "metadata": {"name": "default"},
}
