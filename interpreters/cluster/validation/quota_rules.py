"""Validation of limit ranges, resource quotas and priority classes."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from fnop.core.kubernetes.quantities import is_whole
from fnop.interpreters.cluster.validation.faults import (
    bad,
    forbidden,
    immutable,
    required,
)
from fnop.interpreters.cluster.validation.field_rules import (
    qualified,
    quantity,
    quantity_of,
)
from fnop.interpreters.cluster.validation.rules import Spec
from fnop.interpreters.cluster.validation.tables import (
    entries,
    of_spec,
    row,
    table,
    unique,
)
from fnop.interpreters.cluster.values.objects import Object
from fnop.interpreters.cluster.values.status import Fault

__all__ = [
    "LIMIT_RANGE",
    "PRIORITY_CLASS",
    "QUOTA",
    "container_resource",
    "priority_changes",
    "quota_changes",
]

# --------------------------------------------------------- names of resources

OF_CONTAINERS = frozenset(("cpu", "memory", "ephemeral-storage"))
COUNTED = frozenset(
    (
        *("pods", "services", "replicationcontrollers", "resourcequotas", "secrets"),
        *("configmaps", "persistentvolumeclaims", "services.nodeports"),
        "services.loadbalancers",
    )
)
OF_QUOTAS = COUNTED | frozenset(
    (
        *("cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory"),
        *("requests.storage", "requests.ephemeral-storage", "limits.cpu"),
        *("limits.memory", "limits.ephemeral-storage"),
    )
)
STANDARD = OF_QUOTAS | {"storage"}


def _is_huge(name: str) -> bool:
    return name.startswith(("hugepages-", "requests.hugepages-"))


def _resource(name: str, path: str) -> Iterator[Fault]:
    """Yield the faults of a resource's name."""
    wrong = [*qualified(name, path)]
    yield from wrong
    if not wrong and "/" not in name and not (name in STANDARD or _is_huge(name)):
        yield bad(path, name, "must be a standard resource type or fully qualified")


def container_resource(name: str, path: str) -> Iterator[Fault]:
    """Yield the faults of the name of a resource that containers can ask for."""
    yield from _resource(name, path)
    if "/" not in name:
        if not (name in OF_CONTAINERS or name.startswith("hugepages-")):
            yield bad(path, name, "must be a standard resource for containers")
        return
    prefix = name.partition("/")[0]
    is_native = prefix.endswith("kubernetes.io")
    if not is_native and name.startswith("requests."):
        yield bad(path, name, "doesn't follow extended resource name standard")


# ---------------------------------------------------------------- limit ranges

AMOUNTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
# Pairs of bounds: the first must not exceed the second, reported at the third.
ORDERED = (
    ("min", "max", "min"),
    ("min", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "max", "defaultRequest"),
    ("defaultRequest", "default", "defaultRequest"),
    ("min", "default", "default"),
    ("default", "max", "default"),
)


def _limit_type(kind: str | None, path: str) -> Iterator[Fault]:
    kind = kind or ""
    wrong = [*qualified(kind, path)]
    yield from wrong
    known = ("Container", "PersistentVolumeClaim", "Pod")
    if not wrong and "/" not in kind and kind not in known:
        yield bad(path, kind, "must be a standard limit type or fully qualified")


def _limit(limit: Spec, path: str) -> Iterator[Fault]:
    kind = limit.get("type", "")
    check = container_resource if kind in ("Pod", "Container") else _resource
    bounds: dict[str, dict[str, Decimal]] = {}
    for part in AMOUNTS:
        values = limit.get(part) or {}
        if kind == "Pod" and part.startswith("default") and values:
            why = "may not be specified when `type` is 'Pod'"
            yield forbidden(f"{path}.{part}", why)
            continue
        for name, value in values.items():
            yield from check(name, f"{path}.{part}[{name}]")
            bounds.setdefault(name, {})[part] = quantity_of(value)
    if kind == "PersistentVolumeClaim" and not any(
        "storage" in (limit.get(part) or {}) for part in ("min", "max")
    ):
        why = "either minimum or maximum storage value is required, but neither was "
        yield required(f"{path}.limits", f"{why}provided")
    for name, of_name in bounds.items():
        yield from _bounds_faults(name, of_name, limit, path)


def _bounds_faults(
    name: str, bounds: dict[str, Decimal], limit: Spec, path: str
) -> Iterator[Fault]:
    for lower, upper, told in ORDERED:
        if lower in bounds and upper in bounds and bounds[lower] > bounds[upper]:
            value = limit[told][name]
            why = f"{lower} value is greater than {upper} value"
            yield bad(f"{path}.{told}[{name}]", value, why)
    ratio = bounds.get("maxLimitRequestRatio")
    if ratio is None:
        return
    field = f"{path}.maxLimitRequestRatio[{name}]"
    shown = limit["maxLimitRequestRatio"][name]
    if ratio < 1:
        yield bad(field, shown, f"ratio {shown} is less than 1")
    least, most = bounds.get("min"), bounds.get("max")
    if least and most is not None and ratio > most / least:
        why = f"ratio {shown} is greater than max/min = {most / least}"
        yield bad(field, shown, why)


LIMIT_RANGE = of_spec(
    ("limits[]", row("type", _limit_type)[0], unique("type", counted=True), _limit)
)

# ---------------------------------------------------------------------- quotas

SCOPES: dict[str, frozenset[str] | None] = {
    # None: for any resource of pods; else the only resources to which they apply.
    "Terminating": None,
    "NotTerminating": None,
    "NotBestEffort": None,
    "PriorityClass": None,
    "CrossNamespacePodAffinity": None,
    "BestEffort": frozenset(("pods",)),
    "VolumeAttributesClass": frozenset(("persistentvolumeclaims", "requests.storage")),
}
OF_PODS = frozenset(
    ("pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu")
) | {"limits.memory"}
OPPOSED = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
EXISTING = frozenset(
    (
        *("BestEffort", "NotBestEffort", "Terminating", "NotTerminating"),
        "CrossNamespacePodAffinity",
    )
)
ONLY_EXISTS = (
    "must be 'Exist' only operator when scope is any of "
    "ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
    "ResourceQuotaScopeCrossNamespacePodAffinity"
)
NO_VALUE = "must be at least one value when `operator` is 'In' or 'NotIn' for scope "
VALUES = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope "


def _hard(name: str, value: Any, path: str) -> Iterator[Fault]:
    yield from _resource(name, path)
    prefix, slash, _ = name.partition("/")
    if not slash and not (name in OF_QUOTAS or _is_huge(name)):
        yield bad(path, name, "must be a standard resource for quota")
    yield from quantity(value, path)
    is_counted = name in COUNTED or (slash and not prefix.endswith("kubernetes.io"))
    if is_counted and not is_whole(value):
        yield bad(path, value, "must be an integer")


def _requirement(one: Spec, path: str) -> Iterator[Fault]:
    scope, values = one.get("scopeName", ""), one.get("values") or ()
    operator = one.get("operator", "")
    if scope not in SCOPES:
        yield bad(f"{path}.scopeName", scope, "unsupported scope")
    if scope in EXISTING and operator != "Exists":
        yield bad(f"{path}.operator", operator, ONLY_EXISTS)
    match operator:
        case "In" | "NotIn":
            if not values:
                yield required(f"{path}.values", f"{NO_VALUE}selector")
        case "Exists" | "DoesNotExist":
            if values:
                yield bad(f"{path}.values", values, f"{VALUES}selector")
        case _:
            yield bad(f"{path}.operator", operator, "not a valid selector operator")


def _scopes(spec: Spec, path: str) -> Iterator[Fault]:
    hard, scopes = [*(spec.get("hard") or ())], spec.get("scopes") or ()
    yield from _scopes_faults(scopes, hard, f"{path}.scopes", scopes)
    selector = spec.get("scopeSelector")
    if selector is None:
        return
    expressions = selector.get("matchExpressions") or ()
    path = f"{path}.scopeSelector.matchExpressions"
    for one in expressions:
        yield from _requirement(one, path)
    named = [one["scopeName"] for one in expressions if one.get("scopeName") in SCOPES]
    yield from _scopes_faults(named, hard, path, selector)


def _scopes_faults(
    scopes: Any, hard: list[str], path: str, shown: Any
) -> Iterator[Fault]:
    for scope in scopes:
        if scope not in SCOPES:
            yield bad(path, shown, "unsupported scope")
        allowed = SCOPES.get(scope, frozenset())
        allowed = OF_PODS if allowed is None else allowed
        for name in hard:
            if name in OF_QUOTAS and name not in allowed:
                yield bad(path, shown, "unsupported scope applied to resource")
    for pair in OPPOSED:
        if {*pair} <= {*scopes}:
            yield bad(path, shown, "conflicting scopes")


QUOTA = of_spec(("hard", entries(_hard)), _scopes)


def quota_changes(new: Object, old: Object) -> Iterator[Fault]:
    """Yield changes to the scopes of a quota."""
    after = (new.get("spec") or {}).get("scopes") or ()
    before = (old.get("spec") or {}).get("scopes") or ()
    if {*after} != {*before}:
        yield bad("spec.scopes", after, "field is immutable")


# -------------------------------------------------------------------- priority

HIGHEST = 10**9
OF_THE_SYSTEM = {
    "system-node-critical": 2 * HIGHEST + 1000,
    "system-cluster-critical": 2 * HIGHEST,
}


def _priority(obj: Object, path: str) -> Iterator[Fault]:
    name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
    if name.startswith("system-"):
        if OF_THE_SYSTEM.get(name) != value:
            why = "names with the prefix 'system-' are reserved for system use only"
            yield forbidden("metadata.name", why)
    elif value > HIGHEST:
        why = f"maximum allowed value of a user defined priority is {HIGHEST}"
        yield forbidden("value", why)


PRIORITY_CLASS = table(
    _priority, "preemptionPolicy: given; needed; PreemptLowerPriority | Never"
)


def priority_changes(new: Object, old: Object) -> Iterator[Fault]:
    """Yield changes to the value of a priority class."""
    if new.get("value", 0) != old.get("value", 0):
        yield forbidden("value", "may not be changed in an update.")
    yield from immutable(new, old, "", "preemptionPolicy")
