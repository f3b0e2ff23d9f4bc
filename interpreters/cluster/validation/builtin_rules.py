"""Validation of objects of built-in kinds, and of changes to them.

The rules come from `pkg/apis/*/validation`, as far as operators meet them.
"""

from __future__ import annotations

from collections.abc import Iterator

from fnop.interpreters.cluster.kinds.kinds import Kind
from fnop.interpreters.cluster.validation.access_rules import (
    BINDING,
    CLUSTER_BINDING,
    CLUSTER_ROLE,
    GROUP,
    ROLE,
    binding_changes,
)
from fnop.interpreters.cluster.validation.admission_rules import HOOKS
from fnop.interpreters.cluster.validation.autoscaling_rules import AUTOSCALER
from fnop.interpreters.cluster.validation.config_map_rules import config_faults
from fnop.interpreters.cluster.validation.event_rules import (
    EVENT,
    STRICT_EVENT,
    event_changes,
)
from fnop.interpreters.cluster.validation.field_rules import qualified
from fnop.interpreters.cluster.validation.network_rules import (
    ENDPOINT_SLICE,
    ENDPOINTS,
    INGRESS,
    INGRESS_CLASS,
    NETWORK_POLICY,
    NEW_INGRESS,
    service_changes,
    service_faults,
)
from fnop.interpreters.cluster.validation.pod_rules import (
    SPACED_IMAGES,
    pod_faults,
    pod_update_faults,
)
from fnop.interpreters.cluster.validation.quota_rules import (
    LIMIT_RANGE,
    PRIORITY_CLASS,
    QUOTA,
    priority_changes,
    quota_changes,
)
from fnop.interpreters.cluster.validation.rules import Change, Rule, must, unchanged
from fnop.interpreters.cluster.validation.storage_rules import (
    CLAIM,
    STORAGE_CLASS,
    VOLUME,
    claim_changes,
    class_changes,
    volume_changes,
)
from fnop.interpreters.cluster.validation.tables import of_spec, table
from fnop.interpreters.cluster.validation.workload_rules import (
    BUDGET,
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    replica_set_changes,
    stateful_set_changes,
)
from fnop.interpreters.cluster.values.metadata import STANDARD_FINALIZERS
from fnop.interpreters.cluster.values.objects import Object, Resource
from fnop.interpreters.cluster.values.status import Fault

__all__ = ["builtin_faults"]

_finalizer = must(
    lambda name: "/" in name or name in STANDARD_FINALIZERS,
    "name is neither a standard finalizer name nor is it fully qualified",
)
LEASE = table(
    "spec.leaseDurationSeconds: 1.. (must be greater than 0)",
    "spec.leaseTransitions: 0..",
)
NAMESPACE = table(("spec.finalizers[*]", qualified, _finalizer))
REVISION = table("data: present (data is mandatory)", "revision: 0..")

# By the group of the request, not of the storage: events have two kinds of rules.
CHECKS: dict[Resource, Rule] = {
    ("", "endpoints"): ENDPOINTS,
    ("", "events"): EVENT,
    ("", "limitranges"): LIMIT_RANGE,
    ("", "namespaces"): NAMESPACE,
    ("", "persistentvolumeclaims"): CLAIM,
    ("", "persistentvolumes"): VOLUME,
    ("", "pods"): of_spec(pod_faults, SPACED_IMAGES),
    ("", "replicationcontrollers"): REPLICATION_CONTROLLER,
    ("", "resourcequotas"): QUOTA,
    ("", "services"): service_faults,
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): HOOKS,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): HOOKS,
    ("apps", "controllerrevisions"): REVISION,
    ("apps", "daemonsets"): DAEMON_SET,
    ("apps", "deployments"): DEPLOYMENT,
    ("apps", "replicasets"): REPLICA_SET,
    ("apps", "statefulsets"): STATEFUL_SET,
    ("autoscaling", "horizontalpodautoscalers"): AUTOSCALER,
    ("batch", "cronjobs"): CRON_JOB,
    ("batch", "jobs"): JOB,
    ("coordination.k8s.io", "leases"): LEASE,
    ("discovery.k8s.io", "endpointslices"): ENDPOINT_SLICE,
    ("events.k8s.io", "events"): EVENT,
    ("networking.k8s.io", "ingressclasses"): INGRESS_CLASS,
    ("networking.k8s.io", "ingresses"): INGRESS,
    ("networking.k8s.io", "networkpolicies"): NETWORK_POLICY,
    ("policy", "poddisruptionbudgets"): BUDGET,
    ("storage.k8s.io", "storageclasses"): STORAGE_CLASS,
    (GROUP, "clusterrolebindings"): CLUSTER_BINDING,
    (GROUP, "clusterroles"): CLUSTER_ROLE,
    (GROUP, "rolebindings"): BINDING,
    (GROUP, "roles"): ROLE,
}
# Rules for new objects.
CREATIONS: dict[Resource, Rule] = {
    ("events.k8s.io", "events"): STRICT_EVENT,
    ("networking.k8s.io", "ingresses"): NEW_INGRESS,
    ("scheduling.k8s.io", "priorityclasses"): PRIORITY_CLASS,
}
CHANGES: dict[Resource, Change] = {
    ("", "persistentvolumeclaims"): claim_changes,
    ("", "persistentvolumes"): volume_changes,
    ("", "pods"): pod_update_faults,
    ("", "resourcequotas"): quota_changes,
    ("", "services"): service_changes,
    ("apps", "controllerrevisions"): unchanged("", "data"),
    ("apps", "daemonsets"): unchanged("spec", "selector"),
    ("apps", "deployments"): unchanged("spec", "selector"),
    ("apps", "replicasets"): replica_set_changes,
    ("apps", "statefulsets"): stateful_set_changes,
    # A waiting job may still be moved elsewhere, but only schedulers do this.
    ("batch", "jobs"): unchanged("spec", "completions", "selector", "template"),
    ("discovery.k8s.io", "endpointslices"): unchanged("", "addressType"),
    ("events.k8s.io", "events"): event_changes,
    ("networking.k8s.io", "ingressclasses"): unchanged("spec", "controller"),
    ("scheduling.k8s.io", "priorityclasses"): priority_changes,
    ("storage.k8s.io", "storageclasses"): class_changes,
    (GROUP, "clusterrolebindings"): binding_changes,
    (GROUP, "rolebindings"): binding_changes,
}


def builtin_faults(kind: Kind, obj: Object, old: Object | None) -> Iterator[Fault]:
    """Yield the faults of an object of a built-in kind.

    A fault that the `old` object has as well does not count: it came from a server that
    allows it.
    """
    asked = (kind.group, kind.plural)
    check = CHECKS.get(asked)
    if old is None:
        yield from config_faults(kind.resource, obj, old)
        check = CREATIONS.get(asked, check)
        yield from check(obj, "") if check is not None else ()
        return
    faults = [*_update_faults(kind, obj, old)]
    if faults:
        known = {*config_faults(kind.resource, old, None)}
        known.update(check(old, "") if check is not None else ())
        yield from (each for each in faults if each not in known)


def _update_faults(kind: Kind, obj: Object, old: Object) -> Iterator[Fault]:
    yield from config_faults(kind.resource, obj, old)
    # An unchanged object has been validated before.
    if _same_content(obj, old):
        return
    asked = (kind.group, kind.plural)
    check, change = CHECKS.get(asked), CHANGES.get(asked)
    if check is not None:
        yield from check(obj, "")
    if change is not None:
        yield from change(obj, old)


ASIDE = frozenset(("apiVersion", "kind", "metadata", "status"))


def _same_content(new: Object, old: Object) -> bool:
    return all(
        new.get(name) == old.get(name) for name in (new.keys() | old.keys()) - ASIDE
    )
