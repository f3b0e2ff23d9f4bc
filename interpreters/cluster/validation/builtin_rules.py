"""Validation of objects of built-in kinds, and of changes to them.

The rules come from `pkg/apis/*/validation`, as far as operators meet them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from fnop.interpreters.cluster.kinds.kinds import Kind
from fnop.interpreters.cluster.validation.admission_rules import hook_faults
from fnop.interpreters.cluster.validation.autoscaling_rules import autoscaler_faults
from fnop.interpreters.cluster.validation.config_map_rules import config_faults
from fnop.interpreters.cluster.validation.event_rules import (
    event_changes,
    event_faults,
    strict_event_faults,
)
from fnop.interpreters.cluster.validation.faults import (
    at_least,
    bad,
    forbidden,
    immutable,
    one_of,
    required,
)
from fnop.interpreters.cluster.validation.field_rules import (
    label_faults,
    path_segment,
    subdomain,
)
from fnop.interpreters.cluster.validation.network_rules import (
    endpoints_faults,
    ingress_class_changes,
    ingress_class_faults,
    ingress_faults,
    new_ingress_faults,
    policy_faults,
    service_changes,
    service_faults,
    slice_changes,
    slice_faults,
)
from fnop.interpreters.cluster.validation.pod_rules import (
    pod_faults,
    pod_update_faults,
    spaced_images,
)
from fnop.interpreters.cluster.validation.quota_rules import (
    limit_range_faults,
    priority_changes,
    priority_faults,
    quota_changes,
    quota_faults,
)
from fnop.interpreters.cluster.validation.selector_rules import (
    matches_unchecked,
    selector_faults,
)
from fnop.interpreters.cluster.validation.storage_rules import (
    claim_changes,
    claim_faults,
    class_changes,
    class_faults,
    volume_changes,
    volume_object_faults,
)
from fnop.interpreters.cluster.values.metadata import STANDARD_FINALIZERS, key_faults
from fnop.interpreters.cluster.values.numbers import whole
from fnop.interpreters.cluster.values.objects import Object, Resource
from fnop.interpreters.cluster.values.status import Fault

__all__ = ["builtin_faults"]

Spec = dict[str, Any]
Check = Callable[[Object], Iterator[Fault]]
Change = Callable[[Object, Object], Iterator[Fault]]


def _spec(obj: Object) -> Spec:
    return obj.get("spec") or {}


# -------------------------------------------------------------------- workloads

OTHER_LABELS = "`selector` does not match template `labels`"


def _selector_faults(
    spec: Spec, empty: str, invalid: str | None, *, needed: bool = True
) -> Iterator[Fault]:
    """Yield the faults of a workload whose selector does not match its own template."""
    selector = spec.get("selector")
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    if selector is None:
        if needed:
            yield required("spec.selector")
        yield bad("spec.template.metadata.labels", labels, OTHER_LABELS)
        return
    wrong = [*selector_faults(selector, "spec.selector")]
    yield from wrong
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield bad("spec.selector", selector, f"empty selector is invalid for {empty}")
    if wrong:
        if invalid is not None:
            yield bad("spec.selector", selector, invalid)
    elif not matches_unchecked(selector, labels):
        yield bad("spec.template.metadata.labels", labels, OTHER_LABELS)


def _template_faults(spec: Spec, *, checked: bool = True) -> Iterator[Fault]:
    """Yield the faults of a template; its pods must have restartPolicy Always."""
    template = spec.get("template") or {}
    pod = template.get("spec") or {}
    path = "spec.template.spec"
    policy = pod.get("restartPolicy", "Always")
    yield from _marks(template, "spec.template")
    if checked:
        # An unknown policy is reported once, as not supported.
        yield from (
            fault
            for fault in pod_faults(pod, path)
            if fault.field != f"{path}.restartPolicy"
        )
    yield from one_of(f"{path}.restartPolicy", policy, ("Always",))
    yield from _refuse_deadline(spec)
    if checked and spec.get("replicas", 1) > 1:
        yield from _shared_disks(pod, path)


def _marks(template: Spec, path: str) -> Iterator[Fault]:
    """Yield the faults of a template's labels and annotations, at the real paths."""
    metadata = template.get("metadata") or {}
    yield from label_faults(f"{path}.labels", metadata.get("labels"))
    for key in metadata.get("annotations") or ():
        yield from (
            bad(f"{path}.annotations", key, why) for why in key_faults(key.lower())
        )


def _deployment(obj: Object) -> Iterator[Fault]:
    spec = _spec(obj)
    numbers = ("replicas", "minReadySeconds", "revisionHistoryLimit")
    yield from at_least(spec, "spec", *numbers, "progressDeadlineSeconds")
    yield from _selector_faults(spec, "deployment", "invalid label selector")
    yield from _template_faults(spec)
    yield from _strategy(spec.get("strategy") or {})
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        why = "must be greater than minReadySeconds"
        yield bad("spec.progressDeadlineSeconds", deadline, why)


def _strategy(strategy: Spec) -> Iterator[Fault]:
    path = "spec.strategy.rollingUpdate"
    match strategy.get("type"):
        case "Recreate":
            if "rollingUpdate" in strategy:
                why = "may not be specified when strategy `type` is 'Recreate'"
                yield forbidden(path, why)
        case "RollingUpdate":
            rolling = strategy.get("rollingUpdate")
            if rolling is None:
                why = "this should be defaulted and never be nil"
                yield required(path, why)
            else:
                yield from _rolling_faults(rolling, path)
        case kind:
            shown = {"Type": kind, "RollingUpdate": strategy.get("rollingUpdate")}
            known = ("Recreate", "RollingUpdate")
            yield from (_unsupported_struct("spec.strategy", shown, known),)


def _unsupported_struct(field: str, shown: Spec, known: tuple[str, ...]) -> Fault:
    text = bad(field, shown, "").message.removeprefix("Invalid value: ")
    values = ", ".join(f'"{each}"' for each in known)
    message = f"Unsupported value: {text}supported values: {values}"
    return Fault(field, "FieldValueNotSupported", message)


PERCENT = re.compile(r"[0-9]+%")
NOT_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. "
    "'1%',  or '93%', regex used for validation is '[0-9]+%')"
)


def _share(field: str, value: Any) -> Iterator[Fault]:
    """Yield the faults of a number or percentage, which must not be negative."""
    if isinstance(value, int):
        if value < 0:
            yield bad(field, value, "must be greater than or equal to 0")
    elif not PERCENT.fullmatch(value):
        yield bad(field, value, NOT_PERCENT)


def _rolling_faults(rolling: Spec, path: str) -> Iterator[Fault]:
    most, more = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    yield from _share(f"{path}.maxUnavailable", most)
    yield from _share(f"{path}.maxSurge", more)
    if most in (0, "0%") and more in (0, "0%"):
        why = "may not be 0 when `maxSurge` is 0"
        yield bad(f"{path}.maxUnavailable", most, why)
    yield from _at_most_all(f"{path}.maxUnavailable", most)


def _at_most_all(field: str, value: Any) -> Iterator[Fault]:
    if isinstance(value, str) and PERCENT.fullmatch(value) and whole(value[:-1]) > 100:
        yield bad(field, value, "must not be greater than 100%")


def _shared_disks(pod: Spec, path: str) -> Iterator[Fault]:
    for index, volume in enumerate(pod.get("volumes") or ()):
        disk = volume.get("gcePersistentDisk")
        if disk is not None and not disk.get("readOnly"):
            field = f"{path}.volumes[{index}].gcePersistentDisk.readOnly"
            why = (
                "must be true for replicated pods > 1; GCE PD can only be mounted on "
                "multiple machines if it is read-only"
            )
            yield bad(field, False, why)


def _refuse_deadline(spec: Spec) -> Iterator[Fault]:
    """Refuse activeDeadlineSeconds in pods that always restart."""
    pod = (spec.get("template") or {}).get("spec") or {}
    if "activeDeadlineSeconds" in pod:
        why = "activeDeadlineSeconds in a set of pods is not Supported"
        yield forbidden("spec.template.spec.activeDeadlineSeconds", why)


def _replica_set(obj: Object) -> Iterator[Fault]:
    spec = _spec(obj)
    yield from at_least(spec, "spec", "replicas", "minReadySeconds")
    # The real server copied the words from deployments.
    yield from _selector_faults(spec, "deployment", "invalid label selector")
    yield from _template_faults(spec)


def _stateful_set(obj: Object) -> Iterator[Fault]:
    spec = _spec(obj)
    policy = spec.get("podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        why = "must be 'OrderedReady' or 'Parallel'"
        yield bad("spec.podManagementPolicy", policy, why)
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") not in ("RollingUpdate", "OnDelete"):
        shown = {"Type": strategy["type"], "RollingUpdate": None}
        why = "must be 'RollingUpdate' or 'OnDelete'"
        yield bad("spec.updateStrategy", shown, why)
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") == "OnDelete" and rolling is not None:
        shown = {
            "Partition": rolling.get("partition", 0),
            "MaxUnavailable": rolling.get("maxUnavailable"),
        }
        why = "only allowed for updateStrategy 'RollingUpdate'"
        yield bad("spec.updateStrategy.rollingUpdate", shown, why)
    yield from at_least(spec, "spec", "replicas", "minReadySeconds")
    yield from _selector_faults(spec, "statefulset", "")
    yield from _template_faults(spec, checked=False)


def _daemon_set(obj: Object) -> Iterator[Fault]:
    spec = _spec(obj)
    yield from _selector_faults(spec, "daemonset", None, needed=False)
    yield from _template_faults(spec)
    numbers = ("minReadySeconds", "revisionHistoryLimit")
    yield from at_least(spec, "spec", *numbers)
    strategy = spec.get("updateStrategy") or {}
    match strategy.get("type", "RollingUpdate"):
        case "RollingUpdate":
            rolling = strategy.get("rollingUpdate") or {}
            path = "spec.updateStrategy.rollingUpdate"
            most = rolling.get("maxUnavailable", 1)
            yield from _share(f"{path}.maxUnavailable", most)
            if most in (0, "0%") and rolling.get("maxSurge", 0) in (0, "0%"):
                why = "cannot be 0 when maxSurge is 0"
                yield bad(f"{path}.maxUnavailable", most, why)
        case "OnDelete":
            pass
        case kind:
            shown = {"Type": kind, "RollingUpdate": None}
            known = ("RollingUpdate", "OnDelete")
            yield _unsupported_struct("spec.updateStrategy", shown, known)


JOB_NUMBERS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
)


def _job(obj: Object) -> Iterator[Fault]:
    spec = _spec(obj)
    yield from _job_spec(spec, "spec")
    selector = spec.get("selector")
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels")
    if selector is None:
        yield required("spec.selector")
    elif not spec.get("manualSelector"):
        metadata = obj["metadata"]
        names = metadata.get("uid", ""), metadata.get("name", "")
        yield from _job_labels(template, *names)
        if not matches_unchecked(selector, _generated_labels(*names)):
            yield bad("spec.selector", selector, "`selector` not auto-generated")
    if selector is None or not matches_unchecked(selector, labels or {}):
        yield bad("spec.template.metadata.labels", labels, OTHER_LABELS)


def _job_labels(template: Spec, uid: str, name: str) -> Iterator[Fault]:
    """Yield the labels of a generated selector that the template lacks."""
    labels = (template.get("metadata") or {}).get("labels") or {}
    for key, wanted in _generated_labels(uid, name).items():
        field = "spec.template.metadata.labels"
        if key not in labels:
            yield required(f"{field}[{key}]", f"must be '{wanted}'")
        elif labels[key] != wanted:
            yield bad(field, labels, f"must be '{wanted}'")


def _generated_labels(uid: str, name: str) -> dict[str, str]:
    """The labels of a job's pods, under the old and the new names."""
    return {
        f"{prefix}{key}": value
        for prefix in ("", "batch.kubernetes.io/")
        for key, value in (("controller-uid", uid), ("job-name", name))
    }


def _job_spec(spec: Spec, path: str) -> Iterator[Fault]:
    yield from at_least(spec, path, *JOB_NUMBERS)
    template = spec.get("template") or {}
    yield from _marks(template, f"{path}.template")
    pod = template.get("spec") or {}
    where = f"{path}.template.spec"
    policy = pod.get("restartPolicy")
    yield from (
        fault
        for fault in pod_faults(pod, where)
        if fault.field != f"{where}.restartPolicy"
    )
    if policy in (None, "", "Always"):
        yield required(f"{where}.restartPolicy", 'valid values: "OnFailure", "Never"')
    else:
        known = ("OnFailure", "Never")
        yield from one_of(f"{where}.restartPolicy", policy, known)


CRON = re.compile(r"@(yearly|annually|monthly|weekly|daily|midnight|hourly|every .+)")
PART = re.compile(r"(\*|\?|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[0-9]+)?")


def _cron_job(obj: Object) -> Iterator[Fault]:
    spec = _spec(obj)
    if len(obj["metadata"].get("name", "")) > 52:
        name = obj["metadata"]["name"]
        yield bad("metadata.name", name, "must be no more than 52 characters")
    schedule = spec.get("schedule", "")
    if not schedule:
        yield required("spec.schedule")
    elif why := _cron_fault(schedule):
        yield bad("spec.schedule", schedule, why)
    known = ("Allow", "Forbid", "Replace")
    policy = spec.get("concurrencyPolicy", "Allow")
    yield from one_of("spec.concurrencyPolicy", policy, known)
    numbers = ("startingDeadlineSeconds", "successfulJobsHistoryLimit")
    yield from at_least(spec, "spec", *numbers, "failedJobsHistoryLimit")
    inner = (spec.get("jobTemplate") or {}).get("spec") or {}
    yield from _job_spec(inner, "spec.jobTemplate.spec")
    if "selector" in inner:
        field = "spec.jobTemplate.spec.selector"
        yield bad(field, inner["selector"], "`selector` will be auto-generated")


def _cron_fault(schedule: str) -> str:
    if CRON.fullmatch(schedule):
        return ""
    if schedule.startswith("@"):
        return f"unrecognized descriptor: {schedule}"
    fields = schedule.split()
    if len(fields) != 5:
        shown = " ".join(fields)
        return f"expected exactly 5 fields, found {len(fields)}: [{shown}]"
    limits = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
    for field, (least, most) in zip(fields, limits, strict=True):
        for part in field.split(","):
            if not PART.fullmatch(part):
                return f"failed to parse int from {part}: invalid syntax"
            for number in re.findall(r"[0-9]+", part.partition("/")[0]):
                if whole(number) > most:
                    return f"end of range ({number}) above maximum ({most}): {part}"
                if whole(number) < least:
                    return (
                        f"beginning of range ({number}) below minimum ({least}): {part}"
                    )
    return ""


# ------------------------------------------------------------------- permissions

GROUP = "rbac.authorization.k8s.io"


def _role(obj: Object, *, namespaced: bool = True) -> Iterator[Fault]:
    for index, rule in enumerate(obj.get("rules") or ()):
        path = f"rules[{index}]"
        if not rule.get("verbs"):
            yield required(f"{path}.verbs", "verbs must contain at least one value")
        if rule.get("nonResourceURLs"):
            if namespaced:
                why = "namespaced rules cannot apply to non-resource URLs"
                yield bad(f"{path}.nonResourceURLs", rule["nonResourceURLs"], why)
            named = ("apiGroups", "resources", "resourceNames")
            if any(rule.get(name) for name in named):
                why = (
                    "rules cannot apply to both regular resources and non-resource URLs"
                )
                yield bad(f"{path}.nonResourceURLs", rule["nonResourceURLs"], why)
            continue
        for name, why in (
            ("apiGroups", "resource rules must supply at least one api group"),
            ("resources", "resource rules must supply at least one resource"),
        ):
            if not rule.get(name):
                yield required(f"{path}.{name}", why)


def _cluster_role(obj: Object) -> Iterator[Fault]:
    yield from _role(obj, namespaced=False)
    rule = obj.get("aggregationRule")
    if rule is None:
        return
    path, selectors = (
        "aggregationRule.clusterRoleSelectors",
        rule.get("clusterRoleSelectors"),
    )
    if not selectors:
        why = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        yield required(path, why)
    for index, selector in enumerate(selectors or ()):
        field = f"{path}[{index}]"
        wrong = [*selector_faults(selector, field)]
        yield from wrong
        if wrong:
            yield bad(field, selector, "invalid label selector.")


def _binding_faults(obj: Object, *, namespaced: bool = True) -> Iterator[Fault]:
    target = obj.get("roleRef") or {}
    yield from one_of("roleRef.apiGroup", target.get("apiGroup"), (GROUP,))
    known = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    yield from one_of("roleRef.kind", target.get("kind", ""), known)
    if name := target.get("name"):
        yield from path_segment("roleRef.name", name)
    else:
        yield required("roleRef.name")
    for index, one in enumerate(obj.get("subjects") or ()):
        yield from _subject(one, f"subjects[{index}]", namespaced=namespaced)


def _cluster_binding(obj: Object) -> Iterator[Fault]:
    yield from _binding_faults(obj, namespaced=False)


def _subject(one: Spec, path: str, *, namespaced: bool) -> Iterator[Fault]:
    if not one.get("name"):
        yield required(f"{path}.name")
    match one.get("kind", ""):
        case "ServiceAccount":
            if name := one.get("name"):
                yield from subdomain(f"{path}.name", name)
            yield from one_of(f"{path}.apiGroup", one.get("apiGroup", ""), ("",))
            if not namespaced and not one.get("namespace"):
                yield required(f"{path}.namespace")
        case "User" | "Group":
            yield from one_of(f"{path}.apiGroup", one.get("apiGroup"), (GROUP,))
        case kind:
            known = ("ServiceAccount", "User", "Group")
            yield from one_of(f"{path}.kind", kind, known)


def _binding_changes(new: Object, old: Object) -> Iterator[Fault]:
    if new.get("roleRef") != old.get("roleRef"):
        yield bad("roleRef", _go_fields(new["roleRef"]), "cannot change roleRef")


def _go_fields(target: Spec) -> Spec:
    names = (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))
    return {go: target.get(name, "") for go, name in names}


# ------------------------------------------------------------------------ others


def _lease(obj: Object) -> Iterator[Fault]:
    spec = _spec(obj)
    if spec.get("leaseDurationSeconds", 1) <= 0:
        value = spec["leaseDurationSeconds"]
        yield bad("spec.leaseDurationSeconds", value, "must be greater than 0")
    if spec.get("leaseTransitions", 0) < 0:
        value = spec["leaseTransitions"]
        yield bad("spec.leaseTransitions", value, "must be greater than or equal to 0")


def _budget(obj: Object) -> Iterator[Fault]:
    spec = _spec(obj)
    if "minAvailable" in spec and "maxUnavailable" in spec:
        why = "minAvailable and maxUnavailable cannot be both set"
        shown = {**spec}
        yield bad("spec", shown, why)
    for name in ("minAvailable", "maxUnavailable"):
        if name in spec:
            yield from _share(f"spec.{name}", spec[name])
            yield from _at_most_all(f"spec.{name}", spec[name])
    yield from selector_faults(spec.get("selector"), "spec.selector")


def _pod(obj: Object) -> Iterator[Fault]:
    yield from pod_faults(_spec(obj), "spec")
    yield from spaced_images(_spec(obj), "spec")


def _replication_controller(obj: Object) -> Iterator[Fault]:
    spec = _spec(obj)
    yield from at_least(spec, "spec", "replicas", "minReadySeconds")
    selector = spec.get("selector") or {}
    if not selector:
        yield required("spec.selector")
    if "template" not in spec:
        yield required("spec.template")
        return
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    if selector and not selector.items() <= labels.items():
        yield bad("spec.template.metadata.labels", labels, OTHER_LABELS)
    yield from _template_faults(spec)


def _namespace(obj: Object) -> Iterator[Fault]:
    for name in _spec(obj).get("finalizers") or ():
        for why in key_faults(name):
            yield bad("spec.finalizers", name, why)
        if "/" not in name and name not in STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield bad("spec.finalizers", name, why)


def _revision(obj: Object) -> Iterator[Fault]:
    if obj.get("data") is None:
        yield required("data", "data is mandatory")
    if obj.get("revision", 0) < 0:
        why = "must be greater than or equal to 0"
        yield bad("revision", obj["revision"], why)


def _revision_changes(new: Object, old: Object) -> Iterator[Fault]:
    yield from immutable(new, old, "", "data")


# ---------------------------------------------------------------------- changes


def _immutable_fields(*names: str) -> Change:
    """A rule that fields of spec do not change."""

    def check(new: Object, old: Object) -> Iterator[Fault]:
        yield from immutable(_spec(new), _spec(old), "spec", *names)

    return check


SET_LOCKED = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', "
    "'template', 'updateStrategy', 'revisionHistoryLimit', "
    "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
SET_FREE = frozenset(
    (
        "minReadySeconds",
        "ordinals",
        "persistentVolumeClaimRetentionPolicy",
        "replicas",
        "revisionHistoryLimit",
        "template",
        "updateStrategy",
    )
)


def _set_changes(new: Object, old: Object) -> Iterator[Fault]:
    after, before = _spec(new), _spec(old)
    names = (after.keys() | before.keys()) - SET_FREE
    if any(after.get(name) != before.get(name) for name in names):
        yield forbidden("spec", SET_LOCKED)


def _replica_set_changes(new: Object, old: Object) -> Iterator[Fault]:
    # Its strategy checks the new object, and so does the comparison of both.
    yield from _replica_set(new)
    yield from immutable(_spec(new), _spec(old), "spec", "selector")


def _job_changes(new: Object, old: Object) -> Iterator[Fault]:
    after, before = _spec(new), _spec(old)
    yield from immutable(after, before, "spec", "completions", "selector")
    # A waiting job may still be moved elsewhere, but only schedulers do this.
    yield from immutable(after, before, "spec", "template")


# By the group of the request, not of the storage: events have two kinds of rules.
CHECKS: dict[Resource, Check] = {
    ("", "endpoints"): endpoints_faults,
    ("", "events"): event_faults,
    ("", "limitranges"): limit_range_faults,
    ("", "namespaces"): _namespace,
    ("", "persistentvolumeclaims"): claim_faults,
    ("", "persistentvolumes"): volume_object_faults,
    ("", "pods"): _pod,
    ("", "replicationcontrollers"): _replication_controller,
    ("", "resourcequotas"): quota_faults,
    ("", "services"): service_faults,
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): hook_faults,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): hook_faults,
    ("apps", "controllerrevisions"): _revision,
    ("apps", "daemonsets"): _daemon_set,
    ("apps", "deployments"): _deployment,
    ("apps", "replicasets"): _replica_set,
    ("apps", "statefulsets"): _stateful_set,
    ("autoscaling", "horizontalpodautoscalers"): autoscaler_faults,
    ("batch", "cronjobs"): _cron_job,
    ("batch", "jobs"): _job,
    ("coordination.k8s.io", "leases"): _lease,
    ("discovery.k8s.io", "endpointslices"): slice_faults,
    ("events.k8s.io", "events"): event_faults,
    ("networking.k8s.io", "ingressclasses"): ingress_class_faults,
    ("networking.k8s.io", "ingresses"): ingress_faults,
    ("networking.k8s.io", "networkpolicies"): policy_faults,
    ("policy", "poddisruptionbudgets"): _budget,
    ("storage.k8s.io", "storageclasses"): class_faults,
    (GROUP, "clusterrolebindings"): _cluster_binding,
    (GROUP, "clusterroles"): _cluster_role,
    (GROUP, "rolebindings"): _binding_faults,
    (GROUP, "roles"): _role,
}
# Rules for new objects.
CREATIONS: dict[Resource, Check] = {
    ("events.k8s.io", "events"): strict_event_faults,
    ("networking.k8s.io", "ingresses"): new_ingress_faults,
    ("scheduling.k8s.io", "priorityclasses"): priority_faults,
}
CHANGES: dict[Resource, Change] = {
    ("", "persistentvolumeclaims"): claim_changes,
    ("", "persistentvolumes"): volume_changes,
    ("", "pods"): pod_update_faults,
    ("", "resourcequotas"): quota_changes,
    ("", "services"): service_changes,
    ("apps", "controllerrevisions"): _revision_changes,
    ("apps", "daemonsets"): _immutable_fields("selector"),
    ("apps", "deployments"): _immutable_fields("selector"),
    ("apps", "replicasets"): _replica_set_changes,
    ("apps", "statefulsets"): _set_changes,
    ("batch", "jobs"): _job_changes,
    ("discovery.k8s.io", "endpointslices"): slice_changes,
    ("events.k8s.io", "events"): event_changes,
    ("networking.k8s.io", "ingressclasses"): ingress_class_changes,
    ("scheduling.k8s.io", "priorityclasses"): priority_changes,
    ("storage.k8s.io", "storageclasses"): class_changes,
    (GROUP, "clusterrolebindings"): _binding_changes,
    (GROUP, "rolebindings"): _binding_changes,
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
        yield from check(obj) if check is not None else ()
        return
    faults = [*_update_faults(kind, obj, old)]
    if faults:
        known = {*config_faults(kind.resource, old, None)}
        known.update(check(old) if check is not None else ())
        yield from (each for each in faults if each not in known)


def _update_faults(kind: Kind, obj: Object, old: Object) -> Iterator[Fault]:
    yield from config_faults(kind.resource, obj, old)
    # An unchanged object has been validated before.
    if _same_content(obj, old):
        return
    asked = (kind.group, kind.plural)
    check, change = CHECKS.get(asked), CHANGES.get(asked)
    if check is not None:
        yield from check(obj)
    if change is not None:
        yield from change(obj, old)


ASIDE = frozenset(("apiVersion", "kind", "metadata", "status"))


def _same_content(new: Object, old: Object) -> bool:
    return all(
        new.get(name) == old.get(name) for name in (new.keys() | old.keys()) - ASIDE
    )
