"""Validation of pod placement: affinity, tolerations, topology spread."""

from __future__ import annotations

from collections.abc import Iterator

from fnop.interpreters.cluster.validation.faults import bad, duplicate
from fnop.interpreters.cluster.validation.field_rules import qualified
from fnop.interpreters.cluster.validation.rules import Spec, one_of
from fnop.interpreters.cluster.validation.selector_rules import (
    label_selector,
    node_selector,
    node_term,
)
from fnop.interpreters.cluster.validation.tables import Among, table
from fnop.interpreters.cluster.values.metadata import value_faults
from fnop.interpreters.cluster.values.status import Fault

__all__ = ["PLACEMENT"]

NEEDED = "requiredDuringSchedulingIgnoredDuringExecution"
WISHED = "preferredDuringSchedulingIgnoredDuringExecution"


def _unlike_earlier(one: Spec, path: str, seen: set[object]) -> Iterator[Fault]:
    pair = (one.get("topologyKey", ""), one.get("whenUnsatisfiable", ""))
    if pair in seen:
        field = f"{path}.{{topologyKey, whenUnsatisfiable}}"
        yield duplicate(field, f"{{{pair[0]}, {pair[1]}}}")
    seen.add(pair)


def _toleration(one: Spec, path: str) -> Iterator[Fault]:
    key, operator = one.get("key", ""), one.get("operator", "")
    effect, value = one.get("effect", ""), one.get("value", "")
    if key:
        yield from qualified(key, f"{path}.key")
    elif operator != "Exists":
        why = (
            "operator must be Exists when `key` is empty, which means "
            '"match all values and all keys"'
        )
        yield bad(f"{path}.operator", operator, why)
    if "tolerationSeconds" in one and effect != "NoExecute":
        why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield bad(f"{path}.effect", effect, why)
    match operator:
        case "Equal" | "":
            if wrong := value_faults(value):
                yield bad(f"{path}.operator", value, ";".join(wrong))
        case "Exists":
            if value:
                why = "value must be empty when `operator` is 'Exists'"
                yield bad(f"{path}.operator", one, why)
        case _:
            yield from one_of("Equal", "Exists")(operator, f"{path}.operator")


WEIGHT = "weight: 1..100 (must be in the range 1-100)"
# The real server reports an empty key twice.
TERM = table(
    ("labelSelector, namespaceSelector", label_selector),
    "namespaces as namespace[*]: DNS label",
    "topologyKey: needed (can not be empty)",
    "topologyKey: qualified name",
)
PODS = table(
    (f"{NEEDED}[]", TERM),
    (f"{WISHED}[]", table(WEIGHT, ("podAffinityTerm", TERM))),
)
PLACEMENT = table(
    (f"affinity.nodeAffinity.{NEEDED}?", node_selector),
    (f"affinity.nodeAffinity.{WISHED}[]", table(WEIGHT, ("preference", node_term))),
    ("affinity.podAffinity, affinity.podAntiAffinity", PODS),
    (
        "topologySpreadConstraints[]",
        table(
            "maxSkew: positive",
            "topologyKey: needed (can not be empty); qualified name",
            "whenUnsatisfiable: DoNotSchedule | ScheduleAnyway",
        ),
        Among(_unlike_earlier),
        table(("labelSelector", label_selector)),
    ),
    (
        "tolerations[]",
        _toleration,
        table("effect: filled; NoSchedule | PreferNoSchedule | NoExecute"),
    ),
)
