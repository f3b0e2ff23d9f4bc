"""Validation of horizontal pod autoscalers."""

from __future__ import annotations

from collections.abc import Iterator

from fnop.interpreters.cluster.validation.faults import bad, forbidden, required
from fnop.interpreters.cluster.validation.field_rules import quantity_of
from fnop.interpreters.cluster.validation.rules import Rule, Spec, must, one_of
from fnop.interpreters.cluster.validation.tables import of_spec, table
from fnop.interpreters.cluster.values.status import Fault

__all__ = ["AUTOSCALER"]


# --------------------------------------------------------------------- metrics


def _either(first: str, second: str, at: str, missing: str, both: str = "") -> Rule:
    """The rule of a source: its target has one of two fields; `both` forbids two."""

    def check(source: Spec, path: str) -> Iterator[Fault]:
        target = source.get("target") or {}
        if first not in target and second not in target:
            yield required(f"{path}.target.{at}", missing)
        if both and first in target and second in target:
            other = second if at == first else first
            yield forbidden(f"{path}.target.{other}", both)

    return check


TARGET_TYPES = ("Utilization", "Value", "AverageValue")
_target_type = must(
    lambda kind: kind in TARGET_TYPES,
    "must be either Utilization, Value, or AverageValue",
    "",
)
_amount = must(lambda value: quantity_of(value) > 0, "must be positive")
REFERENCE = table("kind, name: needed; path segment")
TARGET = table(
    "type: needed (must specify a metric target type)",
    ("type", _target_type),
    ("value, averageValue", _amount),
    "averageUtilization: 1.. (must be greater than 0)",
)
NAMED = table(
    "metric.name: needed (must specify a metric name); path segment",
    ("target", TARGET),
)
RESOURCE = table(
    "name: needed (must specify a resource name)",
    ("target", TARGET),
    _either(
        *("averageUtilization", "averageValue", "averageUtilization"),
        "must set either a target raw value or a target utilization",
        "may not set both a target raw value and a target utilization",
    ),
)
VALUES = ("value", "averageValue", "averageValue")
OBJECT = table(
    ("describedObject", REFERENCE),
    NAMED,
    _either(*VALUES, "must set either a target value or averageValue"),
)
EXTERNAL = table(
    NAMED,
    _either(
        *VALUES,
        "must set either a target value for metric or a per-pod target",
        "may not set both a target value for metric and a per-pod target",
    ),
)
NO_MEAN = "must specify a positive target averageValue"
PODS = table(NAMED, f"target.averageValue: present ({NO_MEAN})")
CONTAINER_RESOURCE = table(
    "container: needed (must specify a container); DNS label", RESOURCE
)
# The field in which each type of metric has its source, in the validator's order.
SOURCES: dict[str, tuple[str, Rule]] = {
    "Object": ("object", OBJECT),
    "External": ("external", EXTERNAL),
    "Pods": ("pods", PODS),
    "Resource": ("resource", RESOURCE),
    "ContainerResource": ("containerResource", CONTAINER_RESOURCE),
}


def _source(metric: Spec, path: str) -> Iterator[Fault]:
    kind = metric.get("type", "")
    found = [(name, check) for name, check in SOURCES.values() if name in metric]
    for name, check in found[:1]:  # further sources are too many
        yield from check(metric[name], f"{path}.{name}")
    wanted = SOURCES[kind][0] if kind in SOURCES else ""
    if wanted and wanted not in metric:
        why = "must populate information for the given metric source"
        yield required(f"{path}.{wanted}", why)
    if len(found) != 1:
        for name, _ in found:
            if name != wanted:
                why = "must populate the given metric source only"
                yield forbidden(f"{path}.{name}", why)


METRIC = table(
    "type: needed (must specify a metric source type)",
    ("type", one_of(*sorted(SOURCES))),
    _source,
)

# ----------------------------------------------------------------- autoscalers


def _least_and_most(spec: Spec, path: str) -> Iterator[Fault]:
    least = spec.get("minReplicas")
    most = spec.get("maxReplicas", 0)
    if least is not None and most < least:
        why = "must be greater than or equal to `minReplicas`"
        yield bad(f"{path}.maxReplicas", most, why)


def _scaling_to_zero(spec: Spec, path: str) -> Iterator[Fault]:
    kinds = {metric.get("type") for metric in spec.get("metrics") or ()}
    if spec.get("minReplicas") == 0 and not kinds & {"Object", "External"}:
        why = (
            "must specify at least one Object or External metric to support scaling to "
            "zero replicas"
        )
        yield forbidden(f"{path}.metrics", why)


SCALING = table(
    "stabilizationWindowSeconds: 0.. (must be greater than or equal to zero); "
    "..3600 (must be less than or equal to 3600)",
    "selectPolicy: given; Disabled | Max | Min",
    "policies: needed (must specify at least one Policy)",
    (
        "policies[]",
        table(
            "type: Percent | Pods",
            "value, periodSeconds: positive",
            "periodSeconds: ..1800 (must be less than or equal to 1800)",
        ),
    ),
)
AUTOSCALER = of_spec(
    "minReplicas: 1..",
    "maxReplicas: zero; 1.. (must be greater than 0)",
    _least_and_most,
    ("scaleTargetRef", REFERENCE),
    ("metrics[]", METRIC),
    _scaling_to_zero,
    ("behavior.scaleUp?, behavior.scaleDown?", SCALING),
)
