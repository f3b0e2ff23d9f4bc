"""`fieldValidation`: refusals and warnings for fields that a kind does not have.

`Strict` refuses them, `Warn` (the default) reports them, and `Ignore` drops them
silently. Duplicate fields in a body are not found, because it arrives parsed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fnop.interpreters.cluster.kinds.crds import CRDS
from fnop.interpreters.cluster.kinds.gotypes import unknown_in
from fnop.interpreters.cluster.kinds.kinds import Kind
from fnop.interpreters.cluster.requests.request import Call
from fnop.interpreters.cluster.schema.rules import place_text
from fnop.interpreters.cluster.schema.schema import Schema
from fnop.interpreters.cluster.validation.crd_rules import unknown_crd_fields
from fnop.interpreters.cluster.values.golang import go_json, go_name
from fnop.interpreters.cluster.values.metadata import METADATA
from fnop.interpreters.cluster.values.status import Fault, Refusal, bad_request, failure

__all__ = ["check_fields", "check_patched_fields", "unknown_fields"]

OWNER_REFERENCE = frozenset(
    ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
)
OBJECT_META = frozenset((*METADATA, "selfLink", "managedFields"))


def unknown_fields(
    kind: Kind, body: dict[str, Any], old: dict[str, Any] | None = None
) -> list[str]:
    """The fields of a body that its kind does not have, as the server lists them.

    A custom kind without a schema has every field. A built-in kind has the fields of
    its Go type. Parts of a custom object that equal parts of the stored `old` one count
    as known.
    """
    if kind.resource == CRDS:
        found = sorted((*_unknown_metadata(body), *unknown_crd_fields(body)))
        return found
    if kind.schema is None:
        return [] if kind.custom else unknown_in(kind, body)
    inside: list[str] = []  # embedded objects are checked later
    found = [*_unknown_in_value(kind.schema, body, "", inside, old)]
    if old is None or body.get("metadata") is not old["metadata"]:
        found += _unknown_metadata(body)
    return sorted(found) + sorted(inside)


def _unknown_metadata(body: dict[str, Any], path: str = "metadata") -> Iterator[str]:
    metadata = body.get("metadata")
    if not isinstance(metadata, dict):
        return
    for name in metadata:
        if name not in OBJECT_META:
            yield f"{path}.{name}"
    references = metadata.get("ownerReferences")
    for index, reference in enumerate(references or ()):
        if isinstance(reference, dict):
            for name in reference:
                if name not in OWNER_REFERENCE:
                    yield f"{path}.ownerReferences[{index}].{name}"


def _unknown_in_value(
    schema: Schema, value: Any, path: str, inside: list[str], old: Any = None
) -> Iterable[str]:
    kind = type(value)
    if schema.opaque:
        return ()
    if kind is dict and value is not old:
        return _unknown_in_object(schema, value, path, inside, old)
    if kind is list and (inner := schema.inner) is not None:
        return _unknown_in_list(inner, value, path, inside)
    return ()


def _unknown_in_object(
    schema: Schema, value: dict[str, Any], path: str, inside: list[str], old: Any
) -> Iterator[str]:
    if schema.embedded:
        inside += _unknown_metadata(value, f"{path}.metadata")
    before = old if type(old) is dict else {}
    is_object = schema.root or schema.embedded
    for name, item in value.items():
        if before.get(name, ABSENT) is item or (is_object and name in TYPE_META):
            continue
        child = schema.properties.get(name, schema.additional)
        if child is None:
            if not schema.preserving:
                yield f"{path}.{name}" if path else name
        elif type(item) in NESTED:
            where = f"{path}.{name}" if path else name
            yield from _unknown_in_value(child, item, where, inside, before.get(name))


def _unknown_in_list(
    schema: Schema, value: list[Any], path: str, inside: list[str]
) -> Iterator[str]:
    for index, item in enumerate(value):
        if type(item) in NESTED:
            yield from _unknown_in_value(schema, item, f"{path}[{index}]", inside)


ABSENT: Any = object()
NESTED = frozenset((dict, list))
TYPE_META = ("apiVersion", "kind", "metadata")


def check_fields(call: Call, body: dict[str, Any]) -> None:
    """Refuse (400) a body's unknown fields, or warn about them, as the request asks."""
    _check_embedded(call.kind, body)
    texts = _complaints(call, body)
    if texts and call.query.get("fieldValidation") == "Strict":
        kind = call.kind
        raise bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a '
            f"{kind.kind}: strict decoding error: {', '.join(texts)}"
        )
    call.warnings.extend(texts)


def check_patched_fields(
    call: Call, patched: dict[str, Any], old: dict[str, Any] | None = None
) -> None:
    """Check the result of a patch in the same way; it is refused with 422."""
    texts = _complaints(call, patched, old)
    if texts and call.query.get("fieldValidation") == "Strict":
        shown = go_json(go_json(patched))
        fault = Fault(
            "patch",
            "FieldValueInvalid",
            f"Invalid value: {shown}: strict decoding error: {', '.join(texts)}",
        )
        cause = {"reason": fault.reason, "message": fault.message, "field": "patch"}
        message = f' "" is invalid: patch: {fault.message}'
        raise failure(422, "Invalid", message, {"causes": [cause]})
    call.warnings.extend(texts)


def _check_embedded(kind: Kind, body: dict[str, Any]) -> None:
    """Refuse embedded objects that cannot be decoded (objectmeta.Coerce)."""
    if kind.schema is None or not kind.schema.has_embedded:
        return
    for value, place in kind.schema.embedded_values(body, None):
        where = place_text(place)
        for name in ("apiVersion", "kind"):
            given = value.get(name, "")
            if not isinstance(given, str):
                shown = f"{where}.{name}: Invalid value: {go_json(given)}"
                raise _undecodable_body(kind, f"{shown}: must be a string")
        metadata = value.get("metadata")
        if metadata is not None and (misfit := metadata_misfit(metadata)):
            shown = f"{where}.metadata: Invalid value: {go_json(metadata)}"
            raise _undecodable_body(kind, f"{shown}: json: {misfit}")


def metadata_misfit(metadata: Any) -> str | None:
    """The reason why a value is not an ObjectMeta, in the words of Go's decoder."""
    if not isinstance(metadata, dict):
        return (
            f"cannot unmarshal {go_name(metadata)} into Go value of type v1.ObjectMeta"
        )
    for name, value in metadata.items():
        fits = METADATA.get(name)
        if fits is None or value is None or fits(value):
            continue
        if name in ("labels", "annotations") and isinstance(value, dict):
            value = next(item for item in value.values() if not isinstance(item, str))
        return (
            f"cannot unmarshal {go_name(value)} into Go struct field ObjectMeta.{name} "
            f"of type {GO_TYPES.get(name, 'string')}"
        )
    return None


GO_TYPES = {"finalizers": "[]string", "ownerReferences": "[]v1.OwnerReference"}


def _undecodable_body(kind: Kind, why: str) -> Refusal:
    return bad_request(
        f'{kind.kind} in version "{kind.version}" cannot be handled as a '
        f"{kind.kind}: {why}"
    )


def _complaints(
    call: Call, body: dict[str, Any], old: dict[str, Any] | None = None
) -> list[str]:
    if call.query.get("fieldValidation") == "Ignore":
        return []
    return [f'unknown field "{name}"' for name in unknown_fields(call.kind, body, old)]
