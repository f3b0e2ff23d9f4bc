"""Controllers that put a service account and the server's certificate in namespaces."""

from __future__ import annotations

from fnop.interpreters.cluster.access.rbac import aggregated
from fnop.interpreters.cluster.controllers.turns import Desk, Turn, is_going
from fnop.interpreters.cluster.storage.store import Cluster, Task, lookup
from fnop.interpreters.cluster.values.objects import Object

__all__ = ["aggregating", "publishing", "serving"]

# A simulated cluster has no TLS; over HTTP the kubeconfig has the certificate to trust.
CERTIFICATE = "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n"
CERTIFIED = ("c2ltdWxhdGVk", "YW5vdGhlciBvbmU=")


def serving(cluster: Cluster, task: Task, now: float) -> Turn:
    """serviceaccounts_controller.go: keep `default` in every namespace."""
    body = {"metadata": {"name": "default"}}
    return _create_or_restore(
        cluster, task, now, "ServiceAccount", "serviceaccounts", body
    )


def publishing(cluster: Cluster, task: Task, now: float) -> Turn:
    """rootcacertpublisher: keep `kube-root-ca.crt` in every namespace."""
    about = "Contains a CA bundle that can be used to verify the kube-apiserver when "
    about += "using internal endpoints such as the internal service IP or "
    about += "kubernetes.default.svc. No other usage is guaranteed across "
    about += "distributions of Kubernetes clusters."
    body = {
        "metadata": {
            "name": "kube-root-ca.crt",
            "annotations": {"kubernetes.io/description": about},
        },
        "data": {"ca.crt": CERTIFICATE.format(CERTIFIED[cluster.variant % 2])},
    }
    return _create_or_restore(cluster, task, now, "ConfigMap", "configmaps", body)


def _create_or_restore(
    cluster: Cluster, task: Task, now: float, kind: str, plural: str, body: Object
) -> Turn:
    """Create the object in the namespace, or restore its data."""
    namespace = lookup(cluster, task.resource, task.key)
    if namespace is None or is_going(namespace):
        return Turn(cluster)
    name = task.key[1]
    present = lookup(cluster, ("", plural), (name, body["metadata"]["name"]))
    desk = Desk(cluster, now)
    if present is None:
        metadata = {**body["metadata"], "namespace": name}
        desk.create({"apiVersion": "v1", "kind": kind, **body, "metadata": metadata})
    elif "data" in body and present.get("data") != body["data"]:
        desk.patch(
            present,
            {"data": {**dict.fromkeys(present.get("data") or {}), **body["data"]}},
        )
    return desk.turn()


def aggregating(cluster: Cluster, task: Task, now: float) -> Turn:
    """clusterroleaggregation_controller.go: write the rules of aggregated roles."""
    role = lookup(cluster, task.resource, task.key)
    rules = None if role is None else aggregated(cluster, role)
    if role is None or rules is None:
        return Turn(cluster)
    desk = Desk(cluster, now, "clusterrole-aggregation-controller")
    desk.store({**role, "rules": rules}, role)
    return desk.turn()
