"""Validation of workloads: what controllers make pods of, and budgets for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from fnop.interpreters.cluster.validation.faults import (
    bad,
    forbidden,
    required,
    unsupported,
)
from fnop.interpreters.cluster.validation.field_rules import PERCENT, share
from fnop.interpreters.cluster.validation.pod_rules import pod_faults
from fnop.interpreters.cluster.validation.rules import (
    Rule,
    Spec,
    must,
    one_of,
    unchanged,
)
from fnop.interpreters.cluster.validation.selector_rules import (
    label_selector,
    matches_unchecked,
)
from fnop.interpreters.cluster.validation.tables import (
    given,
    has,
    needed,
    of_spec,
    table,
    unless,
    when,
)
from fnop.interpreters.cluster.values.metadata import key_faults
from fnop.interpreters.cluster.values.numbers import whole
from fnop.interpreters.cluster.values.objects import Object
from fnop.interpreters.cluster.values.status import Fault

__all__ = [
    "BUDGET",
    "CRON_JOB",
    "DAEMON_SET",
    "DEPLOYMENT",
    "JOB",
    "REPLICATION_CONTROLLER",
    "REPLICA_SET",
    "STATEFUL_SET",
    "replica_set_changes",
    "stateful_set_changes",
]

# ----------------------------------------------------------------------- templates

OTHER_LABELS = "`selector` does not match template `labels`"


def _labels_of(spec: Spec) -> dict[str, str]:
    """The labels of a workload's template."""
    metadata = (spec.get("template") or {}).get("metadata") or {}
    return metadata.get("labels") or {}


def _selector(of: str, invalid: str | None, *, is_needed: bool = True) -> Rule:
    """The rule of a workload whose selector must match its own template."""

    def check(spec: Spec, path: str) -> Iterator[Fault]:
        field, selector = f"{path}.selector", spec.get("selector")
        labels = _labels_of(spec)
        if selector is None:
            if is_needed:
                yield required(field)
            yield bad(f"{path}.template.metadata.labels", labels, OTHER_LABELS)
            return
        wrong = [*label_selector(selector, field)]
        yield from wrong
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            yield bad(field, selector, f"empty selector is invalid for {of}")
        if wrong:
            if invalid is not None:
                yield bad(field, selector, invalid)
        elif not matches_unchecked(selector, labels):
            yield bad(f"{path}.template.metadata.labels", labels, OTHER_LABELS)

    return check


def _annotation_keys(annotations: Any, path: str) -> Iterator[Fault]:
    for key in annotations or ():
        yield from (bad(path, key, why) for why in key_faults(key.lower()))


def _pod(pod: Spec | None, path: str) -> list[Fault]:
    """The faults of a template's pod, except those of its restartPolicy."""
    field = f"{path}.restartPolicy"
    return [fault for fault in pod_faults(pod or {}, path) if fault.field != field]


def _shared_disks(spec: Spec, path: str) -> Iterator[Fault]:
    pod = (spec.get("template") or {}).get("spec") or {}
    for index, volume in enumerate(pod.get("volumes") or ()):
        disk = volume.get("gcePersistentDisk")
        if disk is not None and not disk.get("readOnly"):
            field = f"volumes[{index}].gcePersistentDisk.readOnly"
            why = (
                "must be true for replicated pods > 1; GCE PD can only be mounted on "
                "multiple machines if it is read-only"
            )
            yield bad(f"{path}.template.spec.{field}", False, why)


# At the real server's paths.
MARKS = table(
    "metadata.labels as labels: labels",
    ("metadata.annotations as annotations", _annotation_keys),
)
_always = given(one_of("Always"))
RESTARTED = table(
    ("template.spec.restartPolicy", _always),
    "template.spec.activeDeadlineSeconds: "
    "unset (activeDeadlineSeconds in a set of pods is not Supported)",
)
TEMPLATE = table(
    ("template", MARKS),
    ("template.spec", _pod),
    RESTARTED,
    when(lambda spec: spec.get("replicas", 1) > 1, _shared_disks),
)

# ----------------------------------------------------------------------- replicas

NONE = (0, "0%")


def _some_moves(why: str) -> Rule:
    """The rule of a rolling update: `maxUnavailable` and `maxSurge` are not both 0."""

    def check(rolling: Spec, path: str) -> Iterator[Fault]:
        most = rolling.get("maxUnavailable", 0)
        if most in NONE and rolling.get("maxSurge", 0) in NONE:
            yield bad(f"{path}.maxUnavailable", most, why)

    return check


def _unknown(*known: str, is_shown: bool = False) -> Rule:
    """The fault of a strategy of another type."""

    def check(strategy: Spec, path: str) -> Iterator[Fault]:
        rolling = strategy.get("rollingUpdate") if is_shown else None
        shown = {"Type": strategy.get("type"), "RollingUpdate": rolling}
        yield unsupported(path, shown, known)

    return unless(has("type", *known), check)


def _deadline(spec: Spec, path: str) -> Iterator[Fault]:
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        why = "must be greater than minReadySeconds"
        yield bad(f"{path}.progressDeadlineSeconds", deadline, why)


at_most_all = must(
    lambda value: (
        not (
            isinstance(value, str)
            and PERCENT.fullmatch(value)
            and whole(value[:-1]) > 100
        )
    ),
    "must not be greater than 100%",
)
ROLLING = table(
    "maxUnavailable, maxSurge: given; share",
    _some_moves("may not be 0 when `maxSurge` is 0"),
    ("maxUnavailable", at_most_all),
)
STRATEGY = table(
    when(
        has("type", "Recreate"),
        "rollingUpdate: "
        "unset (may not be specified when strategy `type` is 'Recreate')",
    ),
    when(
        has("type", "RollingUpdate"),
        "rollingUpdate: present (this should be defaulted and never be nil)",
        ("rollingUpdate?", ROLLING),
    ),
    _unknown("Recreate", "RollingUpdate", is_shown=True),
)
DEPLOYMENT = of_spec(
    "replicas, minReadySeconds, revisionHistoryLimit, progressDeadlineSeconds: 0..",
    _selector("deployment", "invalid label selector"),
    TEMPLATE,
    ("strategy", STRATEGY),
    _deadline,
)
REPLICA_SET = of_spec(
    "replicas, minReadySeconds: 0..",
    # The real server copied the words from deployments.
    _selector("deployment", "invalid label selector"),
    TEMPLATE,
)


def replica_set_changes(new: Object, old: Object) -> Iterable[Fault]:
    """The faults of a changed replica set.

    Its strategy checks the new object, and so does the comparison of both.
    """
    return [*REPLICA_SET(new, ""), *unchanged("spec", "selector")(new, old)]


def _map_selector(spec: Spec, path: str) -> Iterator[Fault]:
    selector, labels = spec.get("selector") or {}, _labels_of(spec)
    if selector and not selector.items() <= labels.items():
        yield bad(f"{path}.template.metadata.labels", labels, OTHER_LABELS)


REPLICATION_CONTROLLER = of_spec(
    "replicas, minReadySeconds: 0..",
    "selector: needed",
    "template: present",
    when(lambda spec: "template" in spec, _map_selector, TEMPLATE),
)

# ----------------------------------------------------------------------- sets


def _set_strategy(strategy: Spec | None, path: str) -> Iterator[Fault]:
    kind = (strategy or {}).get("type", "RollingUpdate")
    rolling = (strategy or {}).get("rollingUpdate")
    if kind not in ("RollingUpdate", "OnDelete"):
        shown = {"Type": kind, "RollingUpdate": None}
        yield bad(path, shown, "must be 'RollingUpdate' or 'OnDelete'")
    if kind == "OnDelete" and rolling is not None:
        partition, most = rolling.get("partition", 0), rolling.get("maxUnavailable")
        shown = {"Partition": partition, "MaxUnavailable": most}
        why = "only allowed for updateStrategy 'RollingUpdate'"
        yield bad(f"{path}.rollingUpdate", shown, why)


_pod_management = must(
    lambda policy: policy in ("OrderedReady", "Parallel"),
    "must be 'OrderedReady' or 'Parallel'",
    "",
)
STATEFUL_SET = of_spec(
    ("podManagementPolicy", _pod_management),
    ("updateStrategy", _set_strategy),
    "replicas, minReadySeconds: 0..",
    _selector("statefulset", ""),
    ("template", MARKS),
    RESTARTED,
)
SET_LOCKED = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', "
    "'template', 'updateStrategy', 'revisionHistoryLimit', "
    "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
SET_FREE = frozenset(
    (
        *("minReadySeconds", "ordinals", "persistentVolumeClaimRetentionPolicy"),
        *("replicas", "revisionHistoryLimit", "template", "updateStrategy"),
    )
)


def stateful_set_changes(new: Object, old: Object) -> Iterator[Fault]:
    """Yield the changes to a stateful set that are not allowed."""
    after, before = new.get("spec") or {}, old.get("spec") or {}
    names = (after.keys() | before.keys()) - SET_FREE
    if any(after.get(name) != before.get(name) for name in names):
        yield forbidden("spec", SET_LOCKED)


DAEMON_MOVES = table(
    "maxUnavailable: given; share", _some_moves("cannot be 0 when maxSurge is 0")
)
DAEMON_STRATEGY = table(
    when(has("type", "RollingUpdate", ""), ("rollingUpdate?", DAEMON_MOVES)),
    unless(has("type", ""), _unknown("RollingUpdate", "OnDelete")),
)
DAEMON_SET = of_spec(
    _selector("daemonset", None, is_needed=False),
    TEMPLATE,
    "minReadySeconds, revisionHistoryLimit: 0..",
    ("updateStrategy?", DAEMON_STRATEGY),
)

# ----------------------------------------------------------------------- jobs


def _generated_labels(uid: str, name: str) -> dict[str, str]:
    """The labels of a job's pods, under the old and the new names."""
    return {
        f"{prefix}{key}": value
        for prefix in ("", "batch.kubernetes.io/")
        for key, value in (("controller-uid", uid), ("job-name", name))
    }


def _job_selector(obj: Object, path: str) -> Iterator[Fault]:
    spec, field = obj.get("spec") or {}, "spec.template.metadata.labels"
    metadata, selector = obj["metadata"], spec.get("selector")
    labels = _labels_of(spec)
    if selector is None:
        yield required("spec.selector")
    elif not spec.get("manualSelector"):
        own = _generated_labels(metadata.get("uid", ""), metadata.get("name", ""))
        for key, wanted in own.items():
            if key not in labels:
                yield required(f"{field}[{key}]", f"must be '{wanted}'")
            elif labels[key] != wanted:
                yield bad(field, labels, f"must be '{wanted}'")
        if not matches_unchecked(selector, own):
            yield bad("spec.selector", selector, "`selector` not auto-generated")
    if selector is None or not matches_unchecked(selector, labels):
        shown = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
        yield bad(field, shown, OTHER_LABELS)


def _ending(policy: str | None, path: str) -> Iterable[Fault]:
    if policy in (None, "", "Always"):
        return (required(path, 'valid values: "OnFailure", "Never"'),)
    return one_of("OnFailure", "Never")(policy, path)


JOB_SPEC = table(
    "parallelism, completions, activeDeadlineSeconds, backoffLimit: 0..",
    "ttlSecondsAfterFinished: 0..",
    ("template", MARKS),
    ("template.spec", _pod),
    ("template.spec.restartPolicy", _ending),
)
JOB = table(("spec", JOB_SPEC), _job_selector)
CRON = re.compile(r"@(yearly|annually|monthly|weekly|daily|midnight|hourly|every .+)")
PART = re.compile(r"(\*|\?|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[0-9]+)?")


def _schedule_problem(schedule: str) -> str:
    """The reason why a schedule is wrong; "" if it is not."""
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


def _schedule(schedule: str, path: str) -> Iterator[Fault]:
    if why := _schedule_problem(schedule):
        yield bad(path, schedule, why)


_short = must(lambda name: len(name) <= 52, "must be no more than 52 characters")
_generated = must(lambda selector: False, "`selector` will be auto-generated")
HISTORY = "spec.successfulJobsHistoryLimit, spec.failedJobsHistoryLimit"
CRON_JOB = table(
    ("metadata.name", _short),
    ("spec.schedule", needed(_schedule)),
    "spec.concurrencyPolicy: given; Allow | Forbid | Replace",
    f"spec.startingDeadlineSeconds, {HISTORY}: 0..",
    ("spec.jobTemplate.spec", JOB_SPEC),
    ("spec.jobTemplate.spec.selector", _generated),
)

# ----------------------------------------------------------------------- budgets


def _one_limit(spec: Spec, path: str) -> Iterator[Fault]:
    if "minAvailable" in spec and "maxUnavailable" in spec:
        yield bad(path, spec, "minAvailable and maxUnavailable cannot be both set")


BUDGET = of_spec(
    _one_limit,
    ("minAvailable?, maxUnavailable?", share, at_most_all),
    ("selector", label_selector),
)
