"""Validation of label selectors and node selectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fnop.interpreters.cluster.validation.faults import bad, forbidden, required
from fnop.interpreters.cluster.validation.field_rules import qualified
from fnop.interpreters.cluster.values.label_selector import OPERATORS, matches
from fnop.interpreters.cluster.values.metadata import value_faults
from fnop.interpreters.cluster.values.status import Fault

__all__ = [
    "matches_unchecked",
    "node_selector_faults",
    "node_term_faults",
    "selector_faults",
]

Spec = dict[str, Any]


def selector_faults(selector: Spec | None, path: str) -> Iterator[Fault]:
    """Yield the faults of a LabelSelector (`metav1/validation`)."""
    if selector is None:
        return
    for key, value in (selector.get("matchLabels") or {}).items():
        yield from qualified(f"{path}.matchLabels", key)
        for why in value_faults(value):
            yield bad(f"{path}.matchLabels", value, why)
    for index, one in enumerate(selector.get("matchExpressions") or ()):
        yield from _expression_faults(one, f"{path}.matchExpressions[{index}]")


def _expression_faults(one: Spec, path: str) -> Iterator[Fault]:
    yield from _operator_faults(one, path)
    yield from qualified(f"{path}.key", one.get("key", ""))
    for index, value in enumerate(one.get("values") or ()):
        # Since 1.27, for new objects.
        yield from (
            bad(f"{path}.values[{index}]", value, why) for why in value_faults(value)
        )


def matches_unchecked(selector: Spec, labels: dict[str, str]) -> bool:
    """Whether a selector that may be faulty selects these labels.

    An operator that does not exist counts as DoesNotExist; `matches` selects nothing
    then.

    >>> faulty = {"matchExpressions": [{"key": "app", "operator": "Near"}]}
    >>> matches_unchecked(faulty, {}), matches(faulty, {})
    (True, False)
    """
    expressions = [
        one if one.get("operator") in OPERATORS else {**one, "operator": "DoesNotExist"}
        for one in selector.get("matchExpressions") or ()
    ]
    return matches({**selector, "matchExpressions": expressions}, labels)


# ----------------------------------------------------------------------- nodes


def node_selector_faults(selector: Spec, path: str) -> Iterator[Fault]:
    """Yield the faults of a NodeSelector."""
    terms = selector.get("nodeSelectorTerms") or ()
    field = f"{path}.nodeSelectorTerms"
    if not terms:
        yield required(field, "must have at least one node selector term")
    for index, term in enumerate(terms):
        yield from node_term_faults(term, f"{field}[{index}]")


def node_term_faults(term: Spec, path: str) -> Iterator[Fault]:
    """Yield the faults of one term of a NodeSelector."""
    for index, one in enumerate(term.get("matchExpressions") or ()):
        field = f"{path}.matchExpressions[{index}]"
        yield from _operator_faults(one, field, ordered=True)
        yield from qualified(f"{field}.key", one.get("key", ""))
    for index, one in enumerate(term.get("matchFields") or ()):
        yield from _field_faults(one, f"{path}.matchFields[{index}]")


def _operator_faults(one: Spec, path: str, *, ordered: bool = False) -> Iterator[Fault]:
    """Yield the faults of an operator; Gt and Lt are for nodes only."""
    values = one.get("values") or ()
    match one.get("operator", ""):
        case "In" | "NotIn":
            if not values:
                why = "must be specified when `operator` is 'In' or 'NotIn'"
                yield required(f"{path}.values", why)
        case "Exists" | "DoesNotExist":
            if values:
                why = "may not be specified when `operator` is 'Exists' or "
                yield forbidden(f"{path}.values", f"{why}'DoesNotExist'")
        case "Gt" | "Lt" if ordered:
            if len(values) != 1:
                why = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                yield required(f"{path}.values", why)
        case operator:
            yield bad(f"{path}.operator", operator, "not a valid selector operator")


def _field_faults(one: Spec, path: str) -> Iterator[Fault]:
    """Yield the faults of a term on fields: nodes only have metadata.name."""
    if one.get("operator") in ("In", "NotIn"):
        if len(one.get("values") or ()) != 1:
            why = (
                "must be only one value when `operator` is 'In' or 'NotIn' for node "
                "field selector"
            )
            yield required(f"{path}.values", why)
    else:
        why = "not a valid selector operator"
        yield bad(f"{path}.operator", one.get("operator", ""), why)
    if one.get("key") != "metadata.name":
        yield bad(f"{path}.key", one.get("key", ""), "not a valid field selector key")
