"""Definitions that the benchmark bugs share."""


def crd(
    plural: str = "xs",
    kind: str = "X",
    group: str = "example.com",
    scope: str = "Namespaced",
) -> dict[str, object]:
    """A definition with a status of its own that takes any spec and status.

    >>> crd()["metadata"]
    {'name': 'xs.example.com'}
    """
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"spec": anything, "status": anything},
                        }
                    },
                }
            ],
        },
    }


def custom(
    name: str = "x",
    kind: str = "X",
    group: str = "example.com",
    namespace: str | None = "default",
    **spec: object,
) -> dict[str, object]:
    """An object of such a kind, with this spec.

    >>> custom(size=2)["spec"]
    {'size': 2}
    """
    place = {} if namespace is None else {"namespace": namespace}
    return {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": name, **place},
        "spec": spec,
    }
