"""The operator: the objects that should exist for each __Kind__."""

from typing import Any

import fnop

from __package__ import kinds

Manifest = dict[str, Any]


@fnop.reconcile(
    kinds.__Kind__,
    owns=["deployments.apps", "services"],
)
def reconcile(
    spec: kinds.__Kind__Spec,
    name: str,
    children: fnop.Children,
    **_: Any,
) -> fnop.Desired:
    """Called whenever a __Kind__, or an object that it owns, has changed."""
    found: Any = children["deployments.apps"].get(name, {})
    status, wanted = found.get("status", {}), spec.replicas
    is_ready = is_rolled_out(found, wanted)
    counts = f"{status.get('readyReplicas', 0)}/{wanted}"
    return fnop.desired(
        [deployment(name, spec), service(name)],
        conditions=fnop.condition("Ready", is_ready, "Replicas", counts),
        status=kinds.__Kind__Status(
            replicas=status.get("replicas", 0),
        ),
    )


def is_rolled_out(deployment: Any, wanted: int) -> bool:
    """Whether there are as many pods as wanted, all up to date and available."""
    if not deployment:
        return False
    status = deployment.get("status", {})
    if status.get("observedGeneration") != deployment["metadata"]["generation"]:
        return False
    counts = ("replicas", "updatedReplicas", "availableReplicas")
    return all(status.get(count, 0) == wanted for count in counts)


def labels(name: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "__kind__",
        "app.kubernetes.io/instance": name,
    }


def deployment(
    name: str,
    spec: kinds.__Kind__Spec,
) -> Manifest:
    container = {
        "name": "main",
        "image": spec.image,
        "ports": [{"name": "http", "containerPort": spec.port, "protocol": "TCP"}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels(name)},
        "spec": {
            "replicas": spec.replicas,
            "selector": {"matchLabels": labels(name)},
            "template": {
                "metadata": {"labels": labels(name)},
                "spec": {"containers": [container]},
            },
        },
    }


def service(name: str) -> Manifest:
    port = {"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": labels(name)},
        "spec": {"selector": labels(name), "ports": [port]},
    }
