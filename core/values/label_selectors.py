"""Label selectors: `app=db,tier in (web, api),!legacy`.

The API server evaluates them in listings and watches. A review comes for each object of
a kind, so for reviews the operator evaluates them.
"""

from __future__ import annotations

from collections.abc import Mapping

from fnop.core.kubernetes.label_selectors import (
    Requirement,
    Unreadable,
    requirements,
    whole_number,
)
from fnop.effects.names import is_label_name, is_label_value

__all__ = ["check_selector", "fits"]


def check_selector(selector: str) -> None:
    """Raise `ValueError` for a text that is not a label selector.

    >>> check_selector("app=db,tier in (web, api),!legacy")
    >>> check_selector("app in db")
    Traceback (most recent call last):
        ...
    ValueError: 'app in db' is not a label selector; write such as 'app=db,a in (b, c)'
    """
    try:
        clauses = requirements(selector)
    except Unreadable:
        raise ValueError(
            f"{selector!r} is not a label selector; write such as 'app=db,a in (b, c)'"
        ) from None
    for each in clauses:
        _check_requirement(each, selector)


def _check_requirement(wanted: Requirement, selector: str) -> None:
    """Raise `ValueError` for a clause about an impossible label.

    The API server accepts it neither in a request, nor in a webhook's object selector.
    """
    if not is_label_name(wanted.key):
        raise ValueError(
            f"{wanted.key!r} in the label selector {selector!r} cannot be the name of "
            "a label: it has letters, digits, -, _ and ., 63 at most, and perhaps a "
            "domain before it, as in example.com/tier"
        )
    for value in wanted.values:
        if wanted.operator in ("Gt", "Lt") and whole_number(value) is None:
            raise ValueError(
                f"{value!r} in the label selector {selector!r} is not a whole number; "
                "> and < compare numbers"
            )
        if not is_label_value(value):
            raise ValueError(
                f"{value!r} in the label selector {selector!r} cannot be the value of "
                "a label: it is empty, or has letters, digits, -, _ and ., 63 at most, "
                "and begins and ends with a letter or digit"
            )


def fits(selector: str, labels: Mapping[str, object]) -> bool:
    """Whether labels meet all clauses of a selector (Kubernetes: Requirement.Matches).

    >>> fits("app=db,tier!=web,!old", {"app": "db"}), fits("n>3", {"n": "3"})
    (True, False)
    """
    return all(each.holds(labels) for each in requirements(selector))
