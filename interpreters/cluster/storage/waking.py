"""The reminders that a write makes for controllers.

    what changes                     who is reminded
    -------------------------------  ---------------------------------------------
    anything with owners, deleted    garbage (see commit.py: it holds for all kinds)
    namespaces                       serviceaccount, root-ca, namespace
    definitions                      definition
    service accounts, config maps    serviceaccount, root-ca: for the two they make
    cluster roles                    clusterrole-aggregation: of all that aggregate
    pods                             kubelet; the controller that owns it, or all that
                                     select it; the services and budgets that select it
    replica sets                     replicaset; the deployment that owns it
    deployments, stateful sets,      the controller of their name
    daemon sets, jobs
    nodes                            daemonset: of all
    services, disruption budgets     endpoints, endpointslice; disruption

Resources that are not in WAKES do not wake any controller, and cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fnop.core.kubernetes.label_selectors import matches
from fnop.interpreters.cluster.storage.selections import selecting, selector_of
from fnop.interpreters.cluster.storage.store import Cluster, Task, shelf
from fnop.interpreters.cluster.values.objects import Key, Object, Resource

__all__ = ["PRIMARY", "WAKES", "Wake"]

# Takes the state after a change, the key, the object (as it is, or was last), and the
# one before; yields reminders.
Wake = Callable[[Cluster, Key, Object, Object | None], Iterator[Task]]

NAMESPACES: Resource = ("", "namespaces")
PODS: Resource = ("", "pods")
SERVICES: Resource = ("", "services")
NODES: Resource = ("", "nodes")
DEPLOYMENTS: Resource = ("apps", "deployments")
REPLICA_SETS: Resource = ("apps", "replicasets")
STATEFUL_SETS: Resource = ("apps", "statefulsets")
DAEMON_SETS: Resource = ("apps", "daemonsets")
JOBS: Resource = ("batch", "jobs")
BUDGETS: Resource = ("policy", "poddisruptionbudgets")
CLUSTER_ROLES: Resource = ("rbac.authorization.k8s.io", "clusterroles")

# Controllers, and the resource of whose objects they are reminded.
PRIMARY: dict[str, Resource] = {
    "serviceaccount": NAMESPACES,
    "root-ca": NAMESPACES,
    "clusterrole-aggregation": CLUSTER_ROLES,
    "replicaset": REPLICA_SETS,
    "deployment": DEPLOYMENTS,
    "statefulset": STATEFUL_SETS,
    "daemonset": DAEMON_SETS,
    "job": JOBS,
    "endpoints": SERVICES,
    "endpointslice": SERVICES,
    "disruption": BUDGETS,
    "kubelet": PODS,
}
OWNERS = {
    "ReplicaSet": ("replicaset", REPLICA_SETS),
    "Deployment": ("deployment", DEPLOYMENTS),
    "StatefulSet": ("statefulset", STATEFUL_SETS),
    "DaemonSet": ("daemonset", DAEMON_SETS),
    "Job": ("job", JOBS),
}
NODE_OF_THE_STUB = Task("kubelet", NODES, ("", "stub-node"))


def _owner(obj: Object | None, namespace: str) -> Iterator[Task]:
    for reference in obj["metadata"].get("ownerReferences", ()) if obj else ():
        if reference.get("controller") and (known := OWNERS.get(reference["kind"])):
            yield Task(*known, (namespace, reference["name"]))


def _selecting_tasks(
    cluster: Cluster, controller: str, namespace: str, labels: dict[str, str]
) -> Iterator[Task]:
    resource = PRIMARY[controller]
    present = shelf(cluster, resource)
    for key in selecting(cluster.selections, resource, namespace, labels):
        if matches(selector_of(resource, present[key]), labels):
            yield Task(controller, resource, key)


def _pod(cluster: Cluster, key: Key, obj: Object, old: Object | None) -> Iterator[Task]:
    yield Task("kubelet", PODS, key)
    namespace, owners = key[0], [*_owner(obj, key[0])]
    yield from owners
    if old is not None and old is not obj:
        yield from _owner(old, namespace)
    for each in (obj, old):
        labels = each["metadata"].get("labels", {}) if each else {}
        if labels or not owners:
            kinds = ["endpoints", "endpointslice", "disruption"]
            if not owners:
                kinds += ["replicaset", "statefulset", "daemonset"]
            for controller in kinds:
                yield from _selecting_tasks(cluster, controller, namespace, labels)
    for task in owners:
        if task.controller == "replicaset":
            found = shelf(cluster, REPLICA_SETS).get(task.key)
            yield from _owner(found, namespace)


def _replica_set(
    cluster: Cluster, key: Key, obj: Object, old: Object | None
) -> Iterator[Task]:
    yield Task("replicaset", REPLICA_SETS, key)
    owners = [*_owner(obj, key[0]), *_owner(old, key[0])]
    yield from owners
    if not owners:
        labels = obj["metadata"].get("labels", {})
        yield from _selecting_tasks(cluster, "deployment", key[0], labels)


def _job(cluster: Cluster, key: Key, obj: Object, old: Object | None) -> Iterator[Task]:
    yield Task("job", JOBS, key)
    yield from _owner(obj, key[0])


def _wake_itself(controller: str) -> Wake:
    def wake(
        cluster: Cluster, key: Key, obj: Object, old: Object | None
    ) -> Iterator[Task]:
        yield Task(controller, PRIMARY[controller], key)

    return wake


def _daemon_set(
    cluster: Cluster, key: Key, obj: Object, old: Object | None
) -> Iterator[Task]:
    # Daemons run on nodes; the first one needs the node of the stub.
    yield NODE_OF_THE_STUB
    yield Task("daemonset", DAEMON_SETS, key)


def _node(
    cluster: Cluster, key: Key, obj: Object, old: Object | None
) -> Iterator[Task]:
    for each in shelf(cluster, DAEMON_SETS):
        yield Task("daemonset", DAEMON_SETS, each)


def _namespace(
    cluster: Cluster, key: Key, obj: Object, old: Object | None
) -> Iterator[Task]:
    if old is None:
        yield Task("serviceaccount", NAMESPACES, key)
        yield Task("root-ca", NAMESPACES, key)


def _wake_namespace(controller: str, name: str) -> Wake:
    def wake(
        cluster: Cluster, key: Key, obj: Object, old: Object | None
    ) -> Iterator[Task]:
        if key[1] == name:
            yield Task(controller, NAMESPACES, ("", key[0]))

    return wake


def _cluster_role(
    cluster: Cluster, key: Key, obj: Object, old: Object | None
) -> Iterator[Task]:
    for each, role in shelf(cluster, CLUSTER_ROLES).items():
        if role.get("aggregationRule"):
            yield Task("clusterrole-aggregation", CLUSTER_ROLES, each)


def _service(
    cluster: Cluster, key: Key, obj: Object, old: Object | None
) -> Iterator[Task]:
    yield Task("endpoints", SERVICES, key)
    yield Task("endpointslice", SERVICES, key)


WAKES: dict[Resource, Wake] = {
    NAMESPACES: _namespace,
    ("", "serviceaccounts"): _wake_namespace("serviceaccount", "default"),
    ("", "configmaps"): _wake_namespace("root-ca", "kube-root-ca.crt"),
    CLUSTER_ROLES: _cluster_role,
    PODS: _pod,
    REPLICA_SETS: _replica_set,
    DEPLOYMENTS: _wake_itself("deployment"),
    STATEFUL_SETS: _wake_itself("statefulset"),
    DAEMON_SETS: _daemon_set,
    JOBS: _job,
    NODES: _node,
    SERVICES: _service,
    BUDGETS: _wake_itself("disruption"),
}
