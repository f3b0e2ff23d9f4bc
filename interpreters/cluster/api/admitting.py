"""Admission: the webhooks that may change or refuse the content of a request."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from fnop.interpreters.cluster.access.reviews import ADMIN
from fnop.interpreters.cluster.admission.chain import Read, Reviewers
from fnop.interpreters.cluster.admission.webhooks import Form, Write
from fnop.interpreters.cluster.apply.managed import (
    decoded as decoded_entries,
    with_entries,
)
from fnop.interpreters.cluster.kinds.builtins import defaulted, fresh_status
from fnop.interpreters.cluster.kinds.conversion import served, to_storage
from fnop.interpreters.cluster.kinds.crds import CRDS, unseen_status
from fnop.interpreters.cluster.kinds.kinds import Kind
from fnop.interpreters.cluster.requests.body import decoded
from fnop.interpreters.cluster.requests.request import Call
from fnop.interpreters.cluster.requests.structs import checked
from fnop.interpreters.cluster.storage.commit import NAMESPACES
from fnop.interpreters.cluster.storage.store import Cluster
from fnop.interpreters.cluster.values.objects import Object, Resource, same
from fnop.interpreters.cluster.values.status import Fault, Refusal, internal, invalid

__all__ = [
    "check_deletion",
    "check_write",
    "is_mutated",
    "is_reviewed",
    "mutated",
    "reviewed",
]

PODS: Resource = ("", "pods")
META = "meta.k8s.io/v1"
# The options of a request that its review shows; a patch has the options of an update.
SHOWN = ("fieldManager", "fieldValidation")


def is_mutated(cluster: Cluster, call: Call) -> bool:
    """Whether any webhook could change a write."""
    return _reviewers(cluster, call).are_mutating


def is_reviewed(cluster: Cluster, call: Call) -> bool:
    """Whether there are any webhooks."""
    found = _reviewers(cluster, call)
    return found.are_mutating or found.are_validating


def _reviewers(cluster: Cluster, call: Call) -> Reviewers:
    return Reviewers(cluster, call.ask, call.beside, call.warnings)


def mutated(
    cluster: Cluster,
    call: Call,
    new: Object,
    old: Object | None = None,
    form: Form | None = None,
) -> Object:
    """The new object after the mutating webhooks; itself if they do not change it.

    Objects are in the version of the request. A body with a `form` of its own, such as
    a Scale, is not read as an object of the kind.
    """
    reviewers = _reviewers(cluster, call)
    if not reviewers.are_mutating:
        return new
    read: Read = partial(_object, call.kind) if form is None else _body
    seen = new if form is not None else _with_status(call.kind, new)
    result = reviewers.mutated(_write(call, seen, old, form), read)
    if result is None or same(result, seen):
        return new
    if form is not None:
        return result
    if call.kind.schema is not None:
        result = call.kind.schema.filled(result)
    return _with_valid_managers(call, result, new)


def _with_status(kind: Kind, new: Object) -> Object:
    """A new object as Go writes it: built-in kinds always have a status."""
    if kind.custom or not kind.status or "status" in new:
        return new
    if kind.resource == CRDS:
        return {**new, "status": unseen_status(new)}
    # The strategy of pods sets a phase later, and no default does.
    empty = {} if kind.resource == PODS else fresh_status(kind, new)
    return {**new, "status": empty}


def check_write(
    cluster: Cluster,
    call: Call,
    new: Object,
    old: Object | None = None,
    form: Form | None = None,
) -> None:
    """Refuse a write that a validating webhook denies.

    The new object is as it would be stored, in the version of the request.
    """
    reviewers = _reviewers(cluster, call)
    if reviewers.are_validating:
        reviewers.check(_write(call, new, old, form))


def reviewed(cluster: Cluster, call: Call, struct: str, form: Form) -> dict[str, Any]:
    """The body of a subresource that can only be created, after all webhooks.

    It has a `form` of its own, and only the fields of that struct.
    """
    body = checked(struct, form.version, call.request.body)
    if not is_reviewed(cluster, call):
        return body
    api_version = f"{form.group}/{form.version}" if form.group else form.version
    named = {"kind": form.kind, "apiVersion": api_version}
    shown = {**named, **body, "metadata": body.get("metadata") or {}}
    result = mutated(cluster, call, shown, None, form)
    check_write(cluster, call, result, None, form)
    return checked(struct, form.version, result)


def check_deletion(
    cluster: Cluster, call: Call, old: Object, options: Mapping[str, Any]
) -> None:
    """Refuse a deletion that a mutating or a validating webhook denies."""
    shown = {"kind": "DeleteOptions", "apiVersion": META, **options}
    name = call.route.name or ""  # for a collection, no object is named
    write = Write(
        "DELETE",
        call.kind,
        "",
        _namespace(call, name),
        name,
        None,
        served(call.kind, old),
        shown,
        call.request.user or ADMIN,
        bool(options.get("dryRun")),
    )
    reviewers = _reviewers(cluster, call)
    reviewers.mutated(write, _body)
    reviewers.check(write)


def _write(call: Call, new: Object, old: Object | None, form: Form | None) -> Write:
    operation = "CREATE" if old is None else "UPDATE"
    name = call.route.name or new["metadata"].get("name", "")
    return Write(
        operation,
        call.kind,
        call.route.subresource or "",
        _namespace(call, name),
        name,
        new,
        old,
        _options(call, operation),
        call.request.user or ADMIN,
        call.dry_run,
        form,
    )


def _namespace(call: Call, name: str) -> str:
    """The namespace of a request; a Namespace is in itself."""
    if call.kind.resource == NAMESPACES:
        return name
    return call.route.namespace or ""


def _options(call: Call, operation: str) -> dict[str, Any]:
    result: dict[str, Any] = {
        "kind": f"{operation.capitalize()}Options",
        "apiVersion": META,
    }
    if call.dry_run:
        result["dryRun"] = ["All"]
    return result | {name: call.query[name] for name in SHOWN if call.query.get(name)}


# ------------------------------------------------------------- what a patch leaves


def _body(kind: Kind, body: Any) -> Object:
    """The value after a patch of a body that is not an object of the kind."""
    if not isinstance(body, dict) or not isinstance(body.get("metadata", {}), dict):
        raise internal(f"json: cannot unmarshal the patched body of {kind.plural}")
    return {**body, "metadata": body.get("metadata") or {}}


def _object(own: Kind, kind: Kind, body: Any) -> Object:
    """The value after a patch as an object of the kind, with its defaults.

    If its version is not the request's `own`, fields that only this version has are
    kept.
    """
    if kind.custom and isinstance(body, dict):
        # The dispatcher converts to the version of the request, regardless of the
        # apiVersion.
        body = {**body, "apiVersion": kind.api_version}
        if body.get("kind") != kind.kind:
            raise _wrong_kind_error(kind, body)
    try:
        obj = decoded(kind, body)
    except Refusal as refusal:
        raise internal(refusal.response.body["message"]) from None
    # Clients do not send managed fields; webhooks are shown them, and send them back.
    obj = with_entries(obj, (body.get("metadata") or {}).get("managedFields") or ())
    if kind.schema is not None and kind is own:
        filled: Object = kind.schema.filled(obj)
        return filled
    if kind.custom:
        return obj
    return served(kind, defaulted(kind, to_storage(kind, obj)))


def _wrong_kind_error(kind: Kind, body: dict[str, Any]) -> Refusal:
    given = body.get("kind") or ""
    name = (body.get("metadata") or {}).get("name", "")
    message = f'Invalid value: "{given}": must be {kind.kind}'
    fault = Fault("kind", "FieldValueInvalid", message)
    return invalid(kind.group, given, name, [fault])


INVALID_ENTRIES = (
    ".metadata.managedFields was in an invalid state after admission; this could be "
    "caused by an outdated mutating admission controller; please fix your requests: {}"
)


def _with_valid_managers(call: Call, new: Object, before: Object) -> Object:
    """The object with the managed fields from `before` webhooks if theirs are invalid.

    Changes by webhooks have no manager: fields are attributed before admission.
    """
    entries = new["metadata"].get("managedFields")
    known = before["metadata"].get("managedFields")
    if not entries or entries == known:
        return new
    try:
        decoded_entries(entries)
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        call.warnings.append(INVALID_ENTRIES.format(problem))
        return with_entries(new, known or ())
    return new
