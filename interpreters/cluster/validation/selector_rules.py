"""Validation of label selectors and node selectors."""

from __future__ import annotations

from collections.abc import Iterator

from fnop.core.kubernetes.label_selectors import OPERATORS, matches
from fnop.interpreters.cluster.validation.faults import bad, forbidden, required
from fnop.interpreters.cluster.validation.rules import Rule, Spec, must
from fnop.interpreters.cluster.validation.tables import each, needed, table
from fnop.interpreters.cluster.values.status import Fault

__all__ = ["label_selector", "matches_unchecked", "node_selector", "node_term"]


def _operator(*, ordered: bool) -> Rule:
    """The rule of an operator and its values; Gt and Lt are for nodes only."""

    def check(one: Spec, path: str) -> Iterator[Fault]:
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
                    why = "must be specified single value when `operator` is 'Lt' or "
                    yield required(f"{path}.values", f"{why}'Gt'")
            case operator:
                yield bad(f"{path}.operator", operator, "not a valid selector operator")

    return check


EXPRESSION = table("key: qualified name")
VALUES = table("values[]: label value")
# `metav1/validation`; the values of expressions are checked since 1.27.
label_selector = table(
    "matchLabels: labels",
    ("matchExpressions[]", _operator(ordered=False), EXPRESSION, VALUES),
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


def _field_operator(one: Spec, path: str) -> Iterator[Fault]:
    if one.get("operator") in ("In", "NotIn"):
        if len(one.get("values") or ()) != 1:
            why = "must be only one value when `operator` is 'In' or 'NotIn' for node "
            yield required(f"{path}.values", f"{why}field selector")
    else:
        why = "not a valid selector operator"
        yield bad(f"{path}.operator", one.get("operator", ""), why)


NAME = must(
    lambda key: key == "metadata.name", "not a valid field selector key", zero=""
)
node_term = table(
    ("matchExpressions[]", _operator(ordered=True), EXPRESSION),
    ("matchFields[]", _field_operator, table(("key", NAME))),
)
NO_TERM = "must have at least one node selector term"
node_selector = table(("nodeSelectorTerms", needed(each(node_term), why=NO_TERM)))
