"""From a request's body to an object of a kind: decoding and metadata."""

from __future__ import annotations

from typing import Any

from fnop.interpreters.cluster.config_maps import Undecodable, config_parts
from fnop.interpreters.cluster.crd_rules import check_crd_shape
from fnop.interpreters.cluster.crds import CRDS
from fnop.interpreters.cluster.kinds import Kind
from fnop.interpreters.cluster.metadata import METADATA, NEVER_STORED
from fnop.interpreters.cluster.status import (
    Fault,
    Refusal,
    bad_request,
    invalid,
    quoted,
)
from fnop.interpreters.cluster.store import Object

__all__ = ["decoded"]


def decoded(kind: Kind, body: Any, *, of_patch: bool = False) -> Object:
    """A body as an object of the kind, or the refusal of the real decoder.

    The result of a patch is refused later, and in other words, for its type.
    """
    if not isinstance(body, dict):
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind.kind}): "
            "couldn't get version/kind; json parse error: json: cannot unmarshal "
            f"{go_name(body)} into Go value of type struct"
        )
    _check_type(kind, body, of_patch=of_patch)
    if kind.resource == CRDS:
        check_crd_shape(body)
    elif not kind.custom:
        body = _known_parts(kind, body)
    return {
        **body,
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": _metadata(kind, body.get("metadata")),
    }


def _check_type(kind: Kind, body: dict[str, Any], *, of_patch: bool) -> None:
    api_version, name = body.get("apiVersion"), body.get("kind")
    if name == kind.kind and api_version == kind.api_version:
        return
    if not kind.custom:
        # The path says what a built-in object is where its body does not.
        name, api_version = name or kind.kind, api_version or kind.api_version
        if name == kind.kind and api_version == kind.api_version:
            return
    if kind.custom and name and not of_patch and api_version != kind.api_version:
        raise bad_request(
            f"the API version in the data ({api_version or ''}) does not match the "
            f"expected API version ({kind.api_version})"
        )
    if not isinstance(name, str) or not isinstance(api_version, str):
        raise bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a '
            f"{kind.kind}: Object 'Kind' or 'apiVersion' is missing"
        )
    if kind.custom:
        raise _foreign_type(kind, body, name, api_version)
    version = api_version.rpartition("/")[2]
    raise bad_request(
        f'{name} in version "{version}" cannot be handled as a {kind.kind}'
    )


def _known_parts(kind: Kind, body: dict[str, Any]) -> dict[str, Any]:
    """The parts of a built-in type, as far as they are known to be of some type."""
    for name in ("spec", "status"):
        part = body.get(name)
        if part is not None and not isinstance(part, dict):
            raise _undecodable(kind, f"cannot unmarshal {go_name(part)} into {name}")
    try:
        parts = config_parts(kind.resource, body)
    except Undecodable as problem:
        raise _undecodable(kind, str(problem)) from None
    return parts if parts is body else {**parts, "metadata": body.get("metadata")}


def _foreign_type(
    kind: Kind, body: dict[str, Any], name: str, api_version: str
) -> Refusal:
    faults = [
        Fault(
            field, "FieldValueInvalid", f"Invalid value: {quoted(got)}: must be {want}"
        )
        for field, got, want in (
            ("kind", name, kind.kind),
            ("apiVersion", api_version, kind.api_version),
        )
        if got != want
    ]
    metadata = body.get("metadata")
    called = metadata.get("name") if isinstance(metadata, dict) else ""
    group = api_version.rpartition("/")[0]
    return invalid(group, name, called if isinstance(called, str) else "", faults)


def _metadata(kind: Kind, raw: Any) -> dict[str, Any]:
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise _undecodable(kind, f"cannot unmarshal {go_name(raw)} into ObjectMeta")
    metadata: dict[str, Any] = {}
    for name, value in raw.items():
        fits = METADATA.get(name)
        # Unknown fields are dropped; empty ones are as good as absent (omitempty).
        if fits is None or value is None or name in NEVER_STORED:
            continue
        value = _without_nulls(name, value)
        if not fits(value):
            raise _undecodable(
                kind, f"cannot unmarshal {go_name(value)} into ObjectMeta.{name}"
            )
        if value or value == 0:
            metadata[name] = value
    references = metadata.get("ownerReferences", ())
    if len(references) > 1:
        # DedupOwnerReferences: the same one twice is one.
        metadata["ownerReferences"] = [
            one for n, one in enumerate(references) if one not in references[:n]
        ]
    return metadata


def _without_nulls(name: str, value: Any) -> Any:
    """Go's decoder takes null for the zero value: of texts "", of structs {}."""
    if name == "ownerReferences" and isinstance(value, list):
        return [
            {k: v for k, v in (one or {}).items() if v is not None}
            if one is None or isinstance(one, dict)
            else one
            for one in value
        ]
    if isinstance(value, dict) and None in value.values():
        return {k: "" if v is None else v for k, v in value.items()}
    if isinstance(value, list) and None in value:
        return ["" if one is None else one for one in value]
    return value


def _undecodable(kind: Kind, why: str) -> Refusal:
    return bad_request(
        f'{kind.kind} in version "{kind.version}" cannot be handled as a '
        f"{kind.kind}: json: {why}"
    )


def go_name(value: Any) -> str:
    """How Go's JSON decoder calls a JSON type.

    >>> go_name([])
    'array'
    """
    if isinstance(value, bool):
        return "bool"
    names = {dict: "object", list: "array", str: "string", int: "number"}
    return names.get(type(value), "number" if isinstance(value, float) else "null")
