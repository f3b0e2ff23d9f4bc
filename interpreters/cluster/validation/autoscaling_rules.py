"""Validation of horizontal pod autoscalers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fnop.interpreters.cluster.validation.faults import bad, forbidden, one_of, required
from fnop.interpreters.cluster.validation.field_rules import dns_label, path_segment
from fnop.interpreters.cluster.values.objects import Object
from fnop.interpreters.cluster.values.quantities import amount
from fnop.interpreters.cluster.values.status import Fault

__all__ = ["autoscaler_faults"]

Spec = dict[str, Any]


def autoscaler_faults(obj: Object) -> Iterator[Fault]:
    """Yield the faults of a horizontal pod autoscaler."""
    spec = obj.get("spec") or {}
    least, most = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    if least is not None and least < 1:
        yield bad("spec.minReplicas", least, "must be greater than or equal to 1")
    if most < 1:
        yield bad("spec.maxReplicas", most, "must be greater than 0")
    if least is not None and most < least:
        why = "must be greater than or equal to `minReplicas`"
        yield bad("spec.maxReplicas", most, why)
    yield from _target_faults(spec.get("scaleTargetRef") or {}, "spec.scaleTargetRef")
    for index, metric in enumerate(spec.get("metrics") or ()):
        yield from _metric_faults(metric, f"spec.metrics[{index}]")
    kinds = {metric.get("type") for metric in spec.get("metrics") or ()}
    if least == 0 and not kinds & {"Object", "External"}:
        why = (
            "must specify at least one Object or External metric to support scaling to "
            "zero replicas"
        )
        yield forbidden("spec.metrics", why)
    behavior = spec.get("behavior") or {}
    for name in ("scaleUp", "scaleDown"):
        if name in behavior:
            yield from _scaling_faults(behavior[name], f"spec.behavior.{name}")


def _target_faults(reference: Spec, path: str) -> Iterator[Fault]:
    for name in ("kind", "name"):
        if text := reference.get(name):
            yield from path_segment(f"{path}.{name}", text)
        else:
            yield required(f"{path}.{name}")


def _scaling_faults(rules: Spec, path: str) -> Iterator[Fault]:
    window = rules.get("stabilizationWindowSeconds", 0)
    field = f"{path}.stabilizationWindowSeconds"
    if window < 0:
        yield bad(field, window, "must be greater than or equal to zero")
    elif window > 3600:
        yield bad(field, window, "must be less than or equal to 3600")
    if "selectPolicy" in rules:
        choice = rules["selectPolicy"]
        yield from one_of(f"{path}.selectPolicy", choice, ("Disabled", "Max", "Min"))
    policies = rules.get("policies") or ()
    if not policies:
        yield required(f"{path}.policies", "must specify at least one Policy")
    for index, policy in enumerate(policies):
        field = f"{path}.policies[{index}]"
        known = ("Percent", "Pods")
        yield from one_of(f"{field}.type", policy.get("type", ""), known)
        for name in ("value", "periodSeconds"):
            if policy.get(name, 0) <= 0:
                yield bad(
                    f"{field}.{name}", policy.get(name, 0), "must be greater than zero"
                )
        if policy.get("periodSeconds", 0) > 1800:
            why = "must be less than or equal to 1800"
            yield bad(f"{field}.periodSeconds", policy["periodSeconds"], why)


# --------------------------------------------------------------------- metrics


def _object(source: Spec, path: str) -> Iterator[Fault]:
    field = f"{path}.describedObject"
    yield from _target_faults(source.get("describedObject") or {}, field)
    yield from _named_metric_faults(source, path)
    target = source.get("target") or {}
    if "value" not in target and "averageValue" not in target:
        why = "must set either a target value or averageValue"
        yield required(f"{path}.target.averageValue", why)


def _external(source: Spec, path: str) -> Iterator[Fault]:
    yield from _named_metric_faults(source, path)
    target = source.get("target") or {}
    if "value" not in target and "averageValue" not in target:
        why = "must set either a target value for metric or a per-pod target"
        yield required(f"{path}.target.averageValue", why)
    if "value" in target and "averageValue" in target:
        why = "may not set both a target value for metric and a per-pod target"
        yield forbidden(f"{path}.target.value", why)


def _pods(source: Spec, path: str) -> Iterator[Fault]:
    yield from _named_metric_faults(source, path)
    if "averageValue" not in (source.get("target") or {}):
        why = "must specify a positive target averageValue"
        yield required(f"{path}.target.averageValue", why)


def _container_resource(source: Spec, path: str) -> Iterator[Fault]:
    if not source.get("container"):
        yield required(f"{path}.container", "must specify a container")
    else:
        yield from dns_label(f"{path}.container", source["container"])
    yield from _resource(source, path)


def _resource(source: Spec, path: str) -> Iterator[Fault]:
    if not source.get("name"):
        yield required(f"{path}.name", "must specify a resource name")
    target = source.get("target") or {}
    yield from _value_faults(target, f"{path}.target")
    if "averageUtilization" not in target and "averageValue" not in target:
        why = "must set either a target raw value or a target utilization"
        yield required(f"{path}.target.averageUtilization", why)
    if "averageUtilization" in target and "averageValue" in target:
        why = "may not set both a target raw value and a target utilization"
        yield forbidden(f"{path}.target.averageValue", why)


def _named_metric_faults(source: Spec, path: str) -> Iterator[Fault]:
    if name := (source.get("metric") or {}).get("name"):
        yield from path_segment(f"{path}.metric.name", name)
    else:
        yield required(f"{path}.metric.name", "must specify a metric name")
    yield from _value_faults(source.get("target") or {}, f"{path}.target")


def _value_faults(target: Spec, path: str) -> Iterator[Fault]:
    kind = target.get("type", "")
    if not kind:
        yield required(f"{path}.type", "must specify a metric target type")
    if kind not in ("Utilization", "Value", "AverageValue"):
        why = "must be either Utilization, Value, or AverageValue"
        yield bad(f"{path}.type", kind, why)
    for name in ("value", "averageValue"):
        if name in target and (amount(target[name]) or 0) <= 0:
            yield bad(f"{path}.{name}", target[name], "must be positive")
    share = target.get("averageUtilization", 1)
    if share < 1:
        yield bad(f"{path}.averageUtilization", share, "must be greater than 0")


# The field in which each type of metric has its source, in the validator's order.
SOURCES: dict[str, tuple[str, Callable[[Spec, str], Iterator[Fault]]]] = {
    "Object": ("object", _object),
    "External": ("external", _external),
    "Pods": ("pods", _pods),
    "Resource": ("resource", _resource),
    "ContainerResource": ("containerResource", _container_resource),
}


def _metric_faults(metric: Spec, path: str) -> Iterator[Fault]:
    kind = metric.get("type", "")
    if not kind:
        yield required(f"{path}.type", "must specify a metric source type")
    yield from one_of(f"{path}.type", kind, sorted(SOURCES))
    given = [(name, check) for name, check in SOURCES.values() if name in metric]
    for name, check in given[:1]:  # further sources are too many
        yield from check(metric[name], f"{path}.{name}")
    wanted = SOURCES[kind][0] if kind in SOURCES else ""
    if wanted and wanted not in metric:
        why = "must populate information for the given metric source"
        yield required(f"{path}.{wanted}", why)
    if len(given) != 1:
        for name, _ in given:
            if name != wanted:
                why = "must populate the given metric source only"
                yield forbidden(f"{path}.{name}", why)
