"""Label selectors as they stand in objects: matchLabels and matchExpressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["OPERATORS", "matches"]

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def matches(selector: Any, labels: Mapping[str, str]) -> bool:
    """Whether labels match a `metav1.LabelSelector`; an absent one matches none.

    >>> matches({"matchLabels": {"app": "web"}}, {"app": "web", "tier": "1"})
    True
    >>> matches({}, {}), matches(None, {})
    (True, False)
    """
    if not isinstance(selector, Mapping):
        return False
    # A loop, because each pod is tested for each service: a generator would take twice
    # as long.
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    return all(
        _expression_holds(labels, each)
        for each in selector.get("matchExpressions") or ()
    )


def _expression_holds(labels: Mapping[str, str], expression: Mapping[str, Any]) -> bool:
    value = labels.get(expression.get("key", ""))
    values = expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return False
