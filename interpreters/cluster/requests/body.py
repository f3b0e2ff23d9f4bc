"""Decoding of a request's body into an object of a kind."""

from __future__ import annotations

from typing import Any

import orjson

from fnop.interpreters.cluster.kinds.crds import CRDS
from fnop.interpreters.cluster.kinds.gotypes import (
    Misfit,
    read_as,
    read_owners,
    unknown_in,
)
from fnop.interpreters.cluster.kinds.kinds import Kind
from fnop.interpreters.cluster.validation.crd_rules import check_crd_shape
from fnop.interpreters.cluster.values.golang import go_name
from fnop.interpreters.cluster.values.metadata import METADATA, NEVER_STORED
from fnop.interpreters.cluster.values.objects import Object
from fnop.interpreters.cluster.values.status import (
    Fault,
    Refusal,
    bad_request,
    invalid,
    quoted,
)
from fnop.interpreters.runtime.protocol import MalformedBody

__all__ = ["decoded", "unknown_fields"]


def decoded(kind: Kind, body: Any, live: Object | None = None) -> Object:
    """A body as an object of the kind, or the refusal of the real decoder.

    The result of a patch of a `live` object is refused for its type later, and in other
    words. Metadata that it shares with that object has been read before.
    """
    if not isinstance(body, dict):
        raise _unrecognized_body(kind, body)
    _check_type(kind, body, of_patch=live is not None)
    if kind.resource == CRDS:
        check_crd_shape(body)
    elif not kind.custom:
        body = _known_parts(kind, body)
    metadata = body.get("metadata")
    if live is None or metadata is not live["metadata"]:
        metadata = _metadata(kind, metadata)
    return {
        **body,
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": metadata,
    }


def _check_type(kind: Kind, body: dict[str, Any], *, of_patch: bool) -> None:
    api_version, name = body.get("apiVersion"), body.get("kind")
    if name == kind.kind and api_version == kind.api_version:
        return
    if not kind.custom:
        # If the body of a built-in object lacks its type, the path decides.
        name, api_version = name or kind.kind, api_version or kind.api_version
        if name == kind.kind and api_version == kind.api_version:
            return
    if kind.custom and name and not of_patch and api_version != kind.api_version:
        _metadata(kind, body.get("metadata"))  # is decoded before the comparison
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
    """The body without fields that the built-in type lacks, or its refusal."""
    try:
        parts = read_as(kind, body)
    except Misfit as misfit:
        raise _undecodable_body(kind, misfit.text) from None
    return {**parts, "metadata": body.get("metadata")}


def unknown_fields(kind: Kind, body: dict[str, Any]) -> list[str]:
    """The fields of a body that the type of its built-in kind does not have."""
    return unknown_in(kind, body)


STRUCT = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)


def _unrecognized_body(kind: Kind, body: Any) -> Refusal:
    """The refusal of a body that is not a JSON object."""
    if body is None:
        why, shown = "unexpected end of JSON input", "<empty>"
    elif isinstance(body, MalformedBody):
        why, shown = body.message, "..."
    else:
        why = f"json: cannot unmarshal {go_name(body)} into Go value of type {STRUCT}"
        # A body that may be a secret is shown in hex.
        shown = orjson.dumps(body).hex()
    return bad_request(
        f"the object provided is unrecognized (must be of type {kind.kind}): "
        f"couldn't get version/kind; json parse error: {why} ({shown})"
    )


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


GO_TYPES = {
    "annotations": "map[string]string",
    "finalizers": "[]string",
    "generation": "int64",
    "deletionGracePeriodSeconds": "int64",
    "labels": "map[string]string",
    "ownerReferences": "[]v1.OwnerReference",
}


def _metadata(kind: Kind, raw: Any) -> dict[str, Any]:
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise _undecodable_body(
            kind,
            f"json: cannot unmarshal {go_name(raw)} into Go struct field "
            f"{kind.kind}.metadata of type v1.ObjectMeta",
        )
    metadata: dict[str, Any] = {}
    for name, value in raw.items():
        fits = METADATA.get(name)
        # Unknown fields are dropped; empty ones count as absent (omitempty).
        if fits is None or value is None or name in NEVER_STORED:
            continue
        if type(value) is not str:
            value = _without_nulls(name, value)
        if not fits(value):
            raise _undecodable_body(
                kind,
                f"json: cannot unmarshal {go_name(value)} into Go struct field "
                f"ObjectMeta.metadata.{name} of type {GO_TYPES.get(name, 'string')}",
            )
        if value or value == 0:
            metadata[name] = value
    if "ownerReferences" in metadata:
        metadata["ownerReferences"] = _owners(kind, metadata["ownerReferences"])
    return metadata


def _owners(kind: Kind, given: list[Any]) -> list[dict[str, Any]]:
    try:
        references = read_owners(given)
    except Misfit as misfit:
        raise _undecodable_body(kind, misfit.text) from None
    # DedupOwnerReferences: a repeated reference counts once.
    found: dict[bytes, dict[str, Any]] = {}
    for one in references:
        found.setdefault(orjson.dumps(one, option=orjson.OPT_SORT_KEYS), one)
    return [*found.values()]


def _without_nulls(name: str, value: Any) -> Any:
    """Replace null by the zero value, as Go's decoder does.

    It is "" for texts and {} for structs.
    """
    if name == "ownerReferences":
        return value
    if isinstance(value, dict) and None in value.values():
        return {k: "" if v is None else v for k, v in value.items()}
    if isinstance(value, list) and None in value:
        return ["" if one is None else one for one in value]
    return value


def _undecodable_body(kind: Kind, why: str) -> Refusal:
    return bad_request(
        f'{kind.kind} in version "{kind.version}" cannot be handled as a '
        f"{kind.kind}: {why}"
    )
