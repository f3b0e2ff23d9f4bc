"""Validation of limit ranges, resource quotas and priority classes."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from fnop.interpreters.cluster.validation.faults import (
    bad,
    duplicate,
    forbidden,
    immutable,
    one_of,
    required,
)
from fnop.interpreters.cluster.validation.field_rules import qualified, quantity
from fnop.interpreters.cluster.values.objects import Object
from fnop.interpreters.cluster.values.quantities import amount, is_whole
from fnop.interpreters.cluster.values.status import Fault

__all__ = [
    "container_resource_faults",
    "limit_range_faults",
    "priority_changes",
    "priority_faults",
    "quota_changes",
    "quota_faults",
]

Spec = dict[str, Any]

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
NOT_STANDARD = "must be a standard resource type or fully qualified"


def _is_huge(name: str) -> bool:
    return name.startswith(("hugepages-", "requests.hugepages-"))


def _resource_faults(field: str, name: str) -> Iterator[Fault]:
    """Yield the faults of a resource's name."""
    wrong = [*qualified(field, name)]
    yield from wrong
    if not wrong and "/" not in name and not (name in STANDARD or _is_huge(name)):
        yield bad(field, name, NOT_STANDARD)


def container_resource_faults(field: str, name: str) -> Iterator[Fault]:
    """Yield the faults of the name of a resource that containers can ask for."""
    yield from _resource_faults(field, name)
    if "/" not in name:
        if not (name in OF_CONTAINERS or name.startswith("hugepages-")):
            yield bad(field, name, "must be a standard resource for containers")
        return
    prefix = name.partition("/")[0]
    is_native = prefix.endswith("kubernetes.io")
    if not is_native and name.startswith("requests."):
        yield bad(field, name, "doesn't follow extended resource name standard")


# ---------------------------------------------------------------- limit ranges

TYPES = ("Container", "PersistentVolumeClaim", "Pod")
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


def limit_range_faults(obj: Object) -> Iterator[Fault]:
    """Yield the faults of a limit range."""
    seen = set()
    for index, limit in enumerate((obj.get("spec") or {}).get("limits") or ()):
        path, kind = f"spec.limits[{index}]", limit.get("type", "")
        wrong = [*qualified(f"{path}.type", kind)]
        yield from wrong
        if not wrong and "/" not in kind and kind not in TYPES:
            why = "must be a standard limit type or fully qualified"
            yield bad(f"{path}.type", kind, why)
        if kind in seen:
            yield duplicate(f"{path}.type", kind)
        seen.add(kind)
        yield from _limit_faults(limit, kind, path)


def _limit_faults(limit: Spec, kind: str, path: str) -> Iterator[Fault]:
    of_container = kind in ("Pod", "Container")
    check = container_resource_faults if of_container else _resource_faults
    given: dict[str, dict[str, Decimal]] = {}
    for part in AMOUNTS:
        values = limit.get(part) or {}
        if kind == "Pod" and part.startswith("default") and values:
            why = "may not be specified when `type` is 'Pod'"
            yield forbidden(f"{path}.{part}", why)
            continue
        for name, value in values.items():
            yield from check(f"{path}.{part}[{name}]", name)
            given.setdefault(name, {})[part] = amount(value) or Decimal(0)
    if kind == "PersistentVolumeClaim" and not any(
        "storage" in (limit.get(part) or {}) for part in ("min", "max")
    ):
        why = (
            "either minimum or maximum storage value is required, but neither was "
            "provided"
        )
        yield required(f"{path}.limits", why)
    for name, bounds in given.items():
        yield from _bounds_faults(name, bounds, limit, path)


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
        yield bad(
            field, shown, f"ratio {shown} is greater than max/min = {most / least}"
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


def _is_counted(name: str) -> bool:
    prefix, slash, _ = name.partition("/")
    return name in COUNTED or (bool(slash) and not prefix.endswith("kubernetes.io"))


def quota_faults(obj: Object) -> Iterator[Fault]:
    """Yield the faults of a resource quota."""
    spec = obj.get("spec") or {}
    hard = spec.get("hard") or {}
    for name, value in hard.items():
        field = f"spec.hard[{name}]"
        yield from _resource_faults(field, name)
        if "/" not in name and not (name in OF_QUOTAS or _is_huge(name)):
            yield bad(field, name, "must be a standard resource for quota")
        yield from quantity(field, value)
        if _is_counted(name) and not is_whole(value):
            yield bad(field, value, "must be an integer")
    scopes = spec.get("scopes") or ()
    yield from _scopes_faults(scopes, [*hard], "spec.scopes", scopes)
    selector = spec.get("scopeSelector")
    if selector is None:
        return
    expressions = selector.get("matchExpressions") or ()
    path = "spec.scopeSelector.matchExpressions"
    for one in expressions:
        if one.get("scopeName", "") not in SCOPES:
            yield bad(
                f"{path}.scopeName", one.get("scopeName", ""), "unsupported scope"
            )
        yield from _requirement_faults(one, path)
    named = [one["scopeName"] for one in expressions if one.get("scopeName") in SCOPES]
    yield from _scopes_faults(named, [*hard], path, selector)


def _scope_allows(scope: str, name: str) -> bool:
    only = SCOPES.get(scope, frozenset())
    return name in (OF_PODS if only is None else only)


def _scopes_faults(
    scopes: Any, hard: list[str], path: str, shown: Any
) -> Iterator[Fault]:
    for scope in scopes:
        if scope not in SCOPES:
            yield bad(path, shown, "unsupported scope")
        for name in hard:
            if name in OF_QUOTAS and not _scope_allows(scope, name):
                yield bad(path, shown, "unsupported scope applied to resource")
    for pair in OPPOSED:
        if {*pair} <= {*scopes}:
            yield bad(path, shown, "conflicting scopes")


def _requirement_faults(one: Spec, path: str) -> Iterator[Fault]:
    operator, values = one.get("operator", ""), one.get("values") or ()
    if one.get("scopeName") in EXISTING and operator != "Exists":
        why = "must be 'Exist' only operator when scope is any of "
        names = (
            "ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
            "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
            "ResourceQuotaScopeCrossNamespacePodAffinity"
        )
        yield bad(f"{path}.operator", operator, why + names)
    match operator:
        case "In" | "NotIn":
            if not values:
                why = (
                    "must be at least one value when `operator` is 'In' or 'NotIn' for "
                    "scope selector"
                )
                yield required(f"{path}.values", why)
        case "Exists" | "DoesNotExist":
            if values:
                why = (
                    "must be no value when `operator` is 'Exist' or 'DoesNotExist' for "
                    "scope selector"
                )
                yield bad(f"{path}.values", values, why)
        case _:
            yield bad(f"{path}.operator", operator, "not a valid selector operator")


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


def priority_faults(obj: Object) -> Iterator[Fault]:
    """Yield the faults of a priority class."""
    name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
    if name.startswith("system-"):
        if OF_THE_SYSTEM.get(name) != value:
            why = "names with the prefix 'system-' are reserved for system use only"
            yield forbidden("metadata.name", why)
    elif value > HIGHEST:
        why = f"maximum allowed value of a user defined priority is {HIGHEST}"
        yield forbidden("value", why)
    policy = obj.get("preemptionPolicy", "Never")
    if not policy:
        yield required("preemptionPolicy")
    else:
        known = ("PreemptLowerPriority", "Never")
        yield from one_of("preemptionPolicy", policy, known)


def priority_changes(new: Object, old: Object) -> Iterator[Fault]:
    """Yield changes to the value of a priority class."""
    if new.get("value", 0) != old.get("value", 0):
        yield forbidden("value", "may not be changed in an update.")
    yield from immutable(new, old, "", "preemptionPolicy")
