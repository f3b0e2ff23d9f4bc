"""Label selectors in manifests: `matchLabels` and `matchExpressions`.

The rules are the API server's (Kubernetes: ValidateLabelSelector). The API server
ignores fields that it does not know, and would select too much. So fnop refuses these,
too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from fnop.core.kubernetes.label_selectors import OPERATORS
from fnop.core.values.errors import joined, nearest
from fnop.effects.names import is_label_name, is_label_value
from fnop.effects.values import freeze_json, shown

__all__ = ["selector_of"]

FIELDS = ("matchLabels", "matchExpressions")
OF_EXPRESSIONS = ("key", "operator", "values")
WITH_VALUES, WITHOUT = ("In", "NotIn"), ("Exists", "DoesNotExist")


def selector_of(given: Any, where: str) -> Mapping[str, Any]:
    """The label selector of an author: a selector, or labels with their values.

    `where` names the option for errors. Raises `ValueError` for selectors that the API
    server refuses, and for fields that it would ignore; `TypeError` for values that are
    not JSON.

    >>> selector_of({"tier": "prod"}, "object_selector=")
    {'matchLabels': {'tier': 'prod'}}
    >>> selector_of({"matchLabels": {"tier": 1}}, "object_selector=")
    Traceback (most recent call last):
        ...
    ValueError: object_selector=: the label 'tier' has the value 1, ...; write '1'
    """
    found = freeze_json(given, where)
    if not isinstance(found, Mapping):
        raise ValueError(
            f"{where} takes labels, such as {{'tier': 'prod'}}, or a selector with "
            f"matchLabels or matchExpressions, not {_describe_value(found)}"
        )
    if not found.keys() & {*FIELDS} and not _is_mistyped(found):
        found = {"matchLabels": found}
    _check_fields(found, FIELDS, f"{where}: a selector", "labels go into matchLabels")
    labels, expressions = (found.get(name) for name in FIELDS)
    selector: dict[str, Any] = {}
    if labels is not None:
        _check_labels(labels, where)
        selector["matchLabels"] = labels
    if expressions is not None:
        _check_expressions(expressions, where)
        selector["matchExpressions"] = expressions
    frozen: Mapping[str, Any] = freeze_json(selector or {"matchLabels": {}}, where)
    return frozen


def _is_mistyped(found: Mapping[str, Any]) -> bool:
    """Whether a mapping is a selector with a misspelled field, and not labels."""
    return any(
        isinstance(value, (Mapping, list)) and _nearest_name(name, FIELDS)
        for name, value in found.items()
    )


def _describe_value(value: Any) -> str:
    """A value as an error names it."""
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, list) else shown(value)


def _check_fields(
    found: Mapping[str, Any], known: Collection[str], what: str, advice: str
) -> None:
    for name in found:
        if name not in known:
            near = _nearest_name(name, known)
            hint = f"did you mean {near!r}?" if near else advice
            raise ValueError(f"{what} has no field {shown(name)}; {hint}")


def _nearest_name(name: Any, known: Collection[str]) -> str | None:
    """The most similar known name, ignoring case."""
    lower = {each.lower(): each for each in known}
    found = nearest(str(name).lower(), lower)
    return lower[found] if found else None


def _check_labels(labels: Any, where: str) -> None:
    if not isinstance(labels, Mapping):
        raise ValueError(
            f"{where}: matchLabels is a mapping, such as {{'tier': 'prod'}}, not "
            f"{_describe_value(labels)}"
        )
    for key, value in labels.items():
        _check_key(key, where)
        if value is None:
            raise ValueError(
                f"{where}: the label {shown(key)} has no value; for any value write "
                f"{{'matchExpressions': [{{'key': {shown(key)}, "
                "'operator': 'Exists'}]}"
            )
        _check_value(key, value, where)


def _check_key(key: Any, where: str) -> None:
    if not is_label_name(key):
        raise ValueError(
            f"{where}: {shown(key)} cannot be the name of a label: it has letters, "
            "digits, -, _ and ., 63 at most, and perhaps a domain before it, as in "
            "example.com/tier"
        )


def _check_value(key: str, value: Any, where: str) -> None:
    if isinstance(value, list):
        raise ValueError(
            f"{where}: the label {shown(key)} has one value; for several write "
            f"{{'matchExpressions': [{{'key': {shown(key)}, 'operator': 'In', "
            "'values': [...]}]}"
        )
    if isinstance(value, (bool, int, float)):
        text = str(value).lower() if isinstance(value, bool) else str(value)
        raise ValueError(
            f"{where}: the label {shown(key)} has the value {value!r}, but values of "
            f"labels are texts; write {text!r}"
        )
    if not is_label_value(value):
        raise ValueError(
            f"{where}: the label {shown(key)} cannot have the value "
            f"{_describe_value(value)}: a value is empty, or has letters, digits, -, _ "
            "and ., 63 at most, and begins and ends with a letter or digit"
        )


def _check_expressions(expressions: Any, where: str) -> None:
    if not isinstance(expressions, list):
        raise ValueError(
            f"{where}: matchExpressions is a list, such as [{{'key': 'tier', "
            f"'operator': 'Exists'}}], not {_describe_value(expressions)}"
        )
    for number, one in enumerate(expressions):
        place = f"{where}: matchExpressions[{number}]"
        if not isinstance(one, Mapping):
            raise ValueError(
                f"{place} is a mapping, such as {{'key': 'tier', 'operator': "
                f"'Exists'}}, not {_describe_value(one)}"
            )
        advice = f"there are {joined(OF_EXPRESSIONS)}"
        _check_fields(one, OF_EXPRESSIONS, place, advice)
        _check_expression(one, place)


def _check_expression(one: Mapping[str, Any], place: str) -> None:
    key, operator, values = (one.get(name) for name in OF_EXPRESSIONS)
    if key is None:
        raise ValueError(f"{place} has no key; name a label, as in 'key': 'tier'")
    _check_key(key, place)
    if operator is None:
        raise ValueError(f"{place} has no operator; there are {joined(OPERATORS)}")
    if operator not in OPERATORS:
        near = _nearest_name(operator, OPERATORS)
        hint = f"did you mean {near!r}?" if near else f"there are {joined(OPERATORS)}"
        raise ValueError(
            f"{place} has the operator {_describe_value(operator)}; {hint}"
        )
    if values is not None and not isinstance(values, list):
        raise ValueError(
            f"{place}: values is a list of texts, such as ['prod'], not "
            f"{_describe_value(values)}"
        )
    if operator in WITH_VALUES and not values:
        raise ValueError(
            f"{place}: {operator} needs values, such as ['prod']; Exists and "
            "DoesNotExist have none"
        )
    if operator in WITHOUT and values:
        raise ValueError(
            f"{place}: {operator} takes no values, not {_describe_value(values[0])}; "
            "leave them out, or write In or NotIn"
        )
    for value in values or ():
        _check_value(key, value, place)
