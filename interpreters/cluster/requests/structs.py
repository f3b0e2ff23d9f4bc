"""Bodies of reviews and subresources, checked as Go decodes them into structs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fnop.interpreters.cluster.values.golang import go_name
from fnop.interpreters.cluster.values.status import bad_request

__all__ = ["STRUCTS", "checked"]

# A shape is a Go type's name, a list of one shape, a map ("*") or a struct.
Shape = Any

TEXT, NUMBER, TEXTS = "string", "int64", ["string"]
METADATA = {
    "name": TEXT,
    "generateName": TEXT,
    "namespace": TEXT,
    "uid": TEXT,
    "resourceVersion": TEXT,
    "labels": {"*": TEXT},
    "annotations": {"*": TEXT},
}
RESOURCE = dict.fromkeys(
    ("namespace", "verb", "group", "version", "resource", "subresource", "name"), TEXT
)
PATH = {"path": TEXT, "verb": TEXT}
ACCESS = {"resourceAttributes": RESOURCE, "nonResourceAttributes": PATH}
OTHERS = {
    **ACCESS,
    "user": TEXT,
    "groups": TEXTS,
    "extra": {"*": TEXTS},
    "uid": TEXT,
}
REFERENCE = {"kind": TEXT, "apiVersion": TEXT, "name": TEXT, "uid": TEXT}
OPTIONS = {
    "gracePeriodSeconds": NUMBER,
    "preconditions": {"uid": TEXT, "resourceVersion": TEXT},
    "propagationPolicy": TEXT,
    "dryRun": TEXTS,
}

# The parts of each kind that are read, in addition to kind and apiVersion.
STRUCTS: dict[str, Mapping[str, Shape]] = {
    "Binding": {"metadata": METADATA, "target": REFERENCE},
    "Eviction": {"metadata": METADATA, "deleteOptions": OPTIONS},
    "LocalSubjectAccessReview": {"spec": OTHERS},
    "SelfSubjectAccessReview": {"spec": ACCESS},
    "SelfSubjectReview": {},
    "SelfSubjectRulesReview": {"spec": {"namespace": TEXT}},
    "SubjectAccessReview": {"spec": OTHERS},
    "TokenRequest": {
        "metadata": METADATA,
        "spec": {
            "audiences": TEXTS,
            "expirationSeconds": NUMBER,
            "boundObjectRef": REFERENCE,
        },
    },
    "TokenReview": {"spec": {"token": TEXT, "audiences": TEXTS}},
}


def checked(kind: str, version: str, body: Any) -> dict[str, Any]:
    """A body as a struct: without nulls and unknown fields; 400 if it does not fit.

    >>> checked("TokenReview", "v1", {"spec": {"token": "x", "y": None}})
    {'spec': {'token': 'x'}}
    """
    if not isinstance(body, dict):
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind}): couldn't "
            "get version/kind; json parse error: json: cannot unmarshal "
            f"{go_name(body)} into Go value of type struct"
        )
    shape = {"kind": TEXT, "apiVersion": TEXT, **STRUCTS[kind]}
    try:
        found: dict[str, Any] = _fit_value(body, shape, kind)
    except _Unfit as unfit:
        raise bad_request(
            f'{kind} in version "{version}" cannot be handled as a {kind}: json: '
            f"cannot unmarshal {unfit}"
        ) from None
    return found


class _Unfit(Exception):
    """A value does not have the type of its field."""


def _fit_value(value: Any, shape: Shape, where: str) -> Any:
    if isinstance(shape, str):
        return _scalar(value, shape, where)
    if isinstance(shape, list):
        if not isinstance(value, list):
            raise _unfit_value(value, where, "[]string")
        return ["" if v is None else _fit_value(v, shape[0], where) for v in value]
    if not isinstance(value, dict):
        raise _unfit_value(value, where, "struct" if "*" not in shape else "map")
    parts = (
        (name, part, shape.get(name, shape.get("*")))
        for name, part in value.items()
        if part is not None
    )
    return {
        name: _fit_value(part, inner, f"{where}.{name}")
        for name, part, inner in parts
        if inner is not None
    }


def _scalar(value: Any, shape: str, where: str) -> Any:
    wanted = str if shape == TEXT else int
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise _unfit_value(value, where, shape)
    return value


def _unfit_value(value: Any, where: str, wanted: str) -> _Unfit:
    return _Unfit(f"{go_name(value)} into Go struct field {where} of type {wanted}")
