"""Kinds of others: statuses that have no place for the operator's own words.

The author's status fits each of them. It must be written even if fnop's own words
cannot be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.simulations import DEFINITION

__all__ = ["STATUSES", "definition_with"]

_TEXT = {"type": "string"}
_USUAL = {"type": _TEXT, "status": _TEXT, "reason": _TEXT, "message": _TEXT}
_MORE = {**_USUAL, "severity": _TEXT, "lastTransitionTime": {"type": "string"}}


def _conditions(properties: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    item = {"type": "object", "properties": dict(properties), **more}
    return {"conditions": {"type": "array", "items": item}}


def _words(*words: str) -> dict[str, Any]:
    return {"type": "string", "enum": [*words]}


# The properties of a status, its required fields, and what an author writes there.
STATUSES: dict[str, tuple[dict[str, Any], tuple[str, ...], dict[str, Any]]] = {
    "no conditions": ({}, (), {}),
    "conditions with a further required field": (
        _conditions(_MORE, required=["type", "status", "severity"]),
        (),
        {},
    ),
    "conditions of the author's": (
        _conditions(_MORE, required=["severity"]),
        (),
        {"conditions": [{"type": "Ready", "status": "True", "severity": "low"}]},
    ),
    "conditions of few types": (
        _conditions({**_MORE, "type": _words("Ready", "Stalled")}),
        (),
        {},
    ),
    "a boolean status": (_conditions({**_MORE, "status": {"type": "boolean"}}), (), {}),
    "a status of other words": (
        _conditions({**_MORE, "status": _words("yes", "no")}),
        (),
        {},
    ),
    "another time": (
        _conditions({**_MORE, "lastTransitionTime": {"type": "integer"}}),
        (),
        {},
    ),
    "short reasons": (
        _conditions({**_MORE, "reason": {"type": "string", "maxLength": 3}}),
        (),
        {},
    ),
    "conditions as a map": (
        {"conditions": {"type": "object", "additionalProperties": _TEXT}},
        (),
        {"conditions": {"ready": "yes"}},
    ),
    "conditions as words": (
        {"conditions": {"type": "array", "items": _TEXT}},
        (),
        {"conditions": ["ready"]},
    ),
    "one condition": (
        {"conditions": {"type": "array", "maxItems": 1, "items": {"type": "object"}}},
        (),
        {"conditions": [{}]},
    ),
    "a required phase": ({}, ("phase",), {}),
}


def definition_with(name: str, number: int | None = None) -> dict[str, Any]:
    """The definition of FnopExample with such a status, whose phase is a text.

    With a `number` it defines another kind, such as Foreign7 of foreign7s.
    """
    properties, required, _ = STATUSES[name]
    status: dict[str, Any] = {
        "type": "object",
        "properties": {"phase": _TEXT, **properties},
    }
    if required:
        status["required"] = [*required]
    loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": loose, "status": status}}
    spec = DEFINITION["spec"]
    version = {**spec["versions"][0], "schema": {"openAPIV3Schema": schema}}
    if number is None:
        return {**DEFINITION, "spec": {**spec, "versions": [version]}}
    kind, plural = f"Foreign{number}", f"foreign{number}s"
    names = {"kind": kind, "plural": plural, "singular": kind.lower()}
    spec = {**spec, "names": names, "versions": [version]}
    return {**DEFINITION, "metadata": {"name": f"{plural}.fnop.dev"}, "spec": spec}
