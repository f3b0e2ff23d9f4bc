"""Validation of pod placement: affinity, tolerations, topology spread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fnop.interpreters.cluster.validation.faults import bad, duplicate, one_of, required
from fnop.interpreters.cluster.validation.field_rules import dns_label, qualified
from fnop.interpreters.cluster.validation.selector_rules import (
    node_selector_faults,
    node_term_faults,
    selector_faults,
)
from fnop.interpreters.cluster.values.metadata import value_faults
from fnop.interpreters.cluster.values.status import Fault

__all__ = ["placement_faults"]

Spec = dict[str, Any]

NEEDED = "requiredDuringSchedulingIgnoredDuringExecution"
WISHED = "preferredDuringSchedulingIgnoredDuringExecution"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def placement_faults(spec: Spec, path: str) -> Iterator[Fault]:
    """Yield the faults of a pod's affinity, tolerations and topology spread."""
    affinity = spec.get("affinity") or {}
    if "nodeAffinity" in affinity:
        yield from _node(affinity["nodeAffinity"], f"{path}.affinity.nodeAffinity")
    for name in ("podAffinity", "podAntiAffinity"):
        if name in affinity:
            yield from _pods(affinity[name], f"{path}.affinity.{name}")
    yield from _spread_faults(spec, f"{path}.topologySpreadConstraints")
    for index, one in enumerate(spec.get("tolerations") or ()):
        yield from _toleration(one, f"{path}.tolerations[{index}]")


def _weight_faults(one: Spec, path: str) -> Iterator[Fault]:
    weight = one.get("weight", 0)
    if not 1 <= weight <= 100:
        yield bad(f"{path}.weight", weight, "must be in the range 1-100")


def _node(affinity: Spec, path: str) -> Iterator[Fault]:
    if NEEDED in affinity:
        yield from node_selector_faults(affinity[NEEDED], f"{path}.{NEEDED}")
    for index, one in enumerate(affinity.get(WISHED) or ()):
        field = f"{path}.{WISHED}[{index}]"
        yield from _weight_faults(one, field)
        yield from node_term_faults(one.get("preference") or {}, f"{field}.preference")


def _pods(affinity: Spec, path: str) -> Iterator[Fault]:
    for index, term in enumerate(affinity.get(NEEDED) or ()):
        yield from _term_faults(term, f"{path}.{NEEDED}[{index}]")
    for index, one in enumerate(affinity.get(WISHED) or ()):
        field = f"{path}.{WISHED}[{index}]"
        yield from _weight_faults(one, field)
        yield from _term_faults(
            one.get("podAffinityTerm") or {}, f"{field}.podAffinityTerm"
        )


def _term_faults(term: Spec, path: str) -> Iterator[Fault]:
    for name in ("labelSelector", "namespaceSelector"):
        yield from selector_faults(term.get(name), f"{path}.{name}")
    for name in term.get("namespaces") or ():
        yield from dns_label(f"{path}.namespace", name)
    yield from _topology(term, path)


def _topology(one: Spec, path: str) -> Iterator[Fault]:
    key = one.get("topologyKey", "")
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from qualified(f"{path}.topologyKey", key)


SCHEDULED = ("DoNotSchedule", "ScheduleAnyway")


def _spread_faults(spec: Spec, path: str) -> Iterator[Fault]:
    seen = set()
    for index, one in enumerate(spec.get("topologySpreadConstraints") or ()):
        field = f"{path}[{index}]"
        if one.get("maxSkew", 0) <= 0:
            yield bad(
                f"{field}.maxSkew", one.get("maxSkew", 0), "must be greater than zero"
            )
        if not one.get("topologyKey"):
            yield required(f"{field}.topologyKey", "can not be empty")
        else:
            yield from qualified(f"{field}.topologyKey", one["topologyKey"])
        when = one.get("whenUnsatisfiable", "")
        yield from one_of(f"{field}.whenUnsatisfiable", when, SCHEDULED)
        pair = (one.get("topologyKey", ""), when)
        if pair in seen:
            shown = f"{{{pair[0]}, {pair[1]}}}"
            yield duplicate(f"{field}.{{topologyKey, whenUnsatisfiable}}", shown)
        seen.add(pair)
        yield from selector_faults(one.get("labelSelector"), f"{field}.labelSelector")


def _toleration(one: Spec, path: str) -> Iterator[Fault]:
    key, operator = one.get("key", ""), one.get("operator", "")
    effect, value = one.get("effect", ""), one.get("value", "")
    if key:
        yield from qualified(f"{path}.key", key)
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
            yield from one_of(f"{path}.operator", operator, ("Equal", "Exists"))
    if effect:
        yield from one_of(f"{path}.effect", effect, EFFECTS)
