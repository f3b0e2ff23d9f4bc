"""Eviction: a deletion that a PodDisruptionBudget may forbid for now.

`pkg/registry/core/pod/storage/eviction.go` in Kubernetes.
"""

from __future__ import annotations

from typing import Any

from fnop.core.kubernetes.label_selectors import matches
from fnop.interpreters.cluster.admission.webhooks import Form
from fnop.interpreters.cluster.api.admitting import reviewed
from fnop.interpreters.cluster.api.create import Answer
from fnop.interpreters.cluster.api.delete import Options, deleted
from fnop.interpreters.cluster.requests.request import Call
from fnop.interpreters.cluster.storage.commit import stored
from fnop.interpreters.cluster.storage.store import Cluster, StoredEvent, lookup, shelf
from fnop.interpreters.cluster.values.objects import Object, timestamp
from fnop.interpreters.cluster.values.status import (
    Refusal,
    bad_request,
    failure,
    internal,
    method_not_allowed,
    not_found,
)
from fnop.interpreters.runtime.protocol import ApiResponse

__all__ = ["answer_eviction"]

BUDGETS = ("policy", "poddisruptionbudgets")
SUCCESS = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Success",
    "code": 201,
}
# Such pods serve no traffic, so budgets do not protect them.
IDLE = ("Pending", "Succeeded", "Failed")


def answer_eviction(cluster: Cluster, call: Call) -> Answer:
    """POST on `pods/NAME/eviction`."""
    if call.request.method != "POST":
        raise method_not_allowed()
    eviction = _eviction(cluster, call)
    pod = lookup(cluster, call.kind.resource, call.key)
    if pod is None:
        raise not_found("", "pods", call.route.name or "")
    options = _options(eviction)
    budget = None if _is_unprotected(pod) else _budget(cluster, call, pod)
    spent = None if budget is None else _budget_after_eviction(budget, pod, call.now)
    if call.dry_run or options.dry_run:
        return cluster, ApiResponse(201, SUCCESS), ()
    events: tuple[StoredEvent, ...] = ()
    if budget is not None and spent is not None:
        kind = cluster.registry.by_kind["policy", "PodDisruptionBudget"]
        key = (call.key[0], budget["metadata"]["name"])
        cluster, events = stored(cluster, kind, key, spent, budget, call.now)
    cluster, _, more = deleted(cluster, call.kind, call.key, options, call.now)
    return cluster, ApiResponse(201, SUCCESS), events + more


def _eviction(cluster: Cluster, call: Call) -> dict[str, Any]:
    body = reviewed(cluster, call, "Eviction", Form("policy", "v1", "Eviction"))
    kind, version = body.get("kind", "Eviction"), body.get("apiVersion", "policy/v1")
    if kind != "Eviction":
        number = version.rpartition("/")[2]
        raise bad_request(
            f'{kind} in version "{number}" cannot be handled as a Eviction: converting '
            f"({number}.{kind}) to (policy.Eviction): unknown conversion"
        )
    if body.get("metadata", {}).get("name") != call.route.name:
        raise bad_request("name in URL does not match name in Eviction object")
    return body


def _options(eviction: dict[str, Any]) -> Options:
    given = eviction.get("deleteOptions", {})
    conditions = given.get("preconditions", {})
    return Options(
        policy=given.get("propagationPolicy"),
        uid=conditions.get("uid"),
        version=conditions.get("resourceVersion"),
        grace=given.get("gracePeriodSeconds"),
        dry_run="All" in given.get("dryRun", ()),
    )


def _is_unprotected(pod: Object) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase in IDLE or "deletionTimestamp" in pod["metadata"]


def _budget(cluster: Cluster, call: Call, pod: Object) -> Object | None:
    labels = pod["metadata"].get("labels", {})
    found = [
        budget
        for (namespace, _), budget in sorted(shelf(cluster, BUDGETS).items())
        if namespace == call.key[0]
        and matches((budget.get("spec") or {}).get("selector"), labels)
    ]
    if len(found) > 1:
        raise internal(
            "This pod has more than one PodDisruptionBudget, which the eviction "
            "subresource does not support.",
            bare=True,
        )
    return found[0] if found else None


def _budget_after_eviction(budget: Object, pod: Object, now: float) -> Object | None:
    """The budget after this disruption; None if the disruption is free."""
    metadata, status = budget["metadata"], budget.get("status") or {}
    if _costs_nothing(budget, pod):
        return None
    name = metadata["name"]
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        why = f"The disruption budget {name} is still being processed by the server."
        raise _too_many(why, 10)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 1:
        desired, healthy = (
            status.get(field, 0) for field in ("desiredHealthy", "currentHealthy")
        )
        raise _too_many(
            f"The disruption budget {name} needs {desired} healthy pods and has "
            f"{healthy} currently"
        )
    disrupted = {
        **(status.get("disruptedPods") or {}),
        pod["metadata"]["name"]: timestamp(now),
    }
    left = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
    return {**budget, "status": left}


def _costs_nothing(budget: Object, pod: Object) -> bool:
    """Whether the pod's eviction is free: it is not ready, and the policy allows it."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    if any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions):
        return False
    spec, status = budget.get("spec") or {}, budget.get("status") or {}
    if spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    desired: int = status.get("desiredHealthy", 0)
    healthy: int = status.get("currentHealthy", 0)
    return healthy >= desired > 0


def _too_many(why: str, seconds: int | None = None) -> Refusal:
    details: dict[str, Any] = {
        "causes": [{"reason": "DisruptionBudget", "message": why}]
    }
    if seconds is not None:
        details["retryAfterSeconds"] = seconds
    refusal = failure(
        429,
        "TooManyRequests",
        "Cannot evict pod as it would violate the pod's disruption budget.",
        details,
    )
    response = refusal.response
    return Refusal(ApiResponse(response.status, response.body, seconds))
