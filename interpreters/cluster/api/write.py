"""Update, patch and apply: the rules of `registry/generic/registry/store.go`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import orjson
from msgspec import Struct

from fnop.interpreters.cluster.api.admitting import check_write, is_reviewed, mutated
from fnop.interpreters.cluster.api.create import (
    Answer,
    Track,
    check_namespace,
    create,
    created,
    object_faults,
    recorded,
)
from fnop.interpreters.cluster.api.signing import SIGNING, condition_faults, unchanged
from fnop.interpreters.cluster.apply.apply import (
    Applying,
    applied,
    changes,
    configuration,
    null_faults,
)
from fnop.interpreters.cluster.apply.managed import Entry, with_entries
from fnop.interpreters.cluster.apply.patch import patched
from fnop.interpreters.cluster.kinds.builtins import allocated, defaulted, kept
from fnop.interpreters.cluster.kinds.conversion import as_read, served, to_storage
from fnop.interpreters.cluster.kinds.crds import CRDS
from fnop.interpreters.cluster.kinds.kinds import Kind
from fnop.interpreters.cluster.requests.body import decoded
from fnop.interpreters.cluster.requests.field_validation import (
    check_fields,
    check_patched_fields,
)
from fnop.interpreters.cluster.requests.found import as_found, plain
from fnop.interpreters.cluster.requests.options import (
    check_options,
    is_apply,
    is_forced,
    writer_of,
)
from fnop.interpreters.cluster.requests.request import Call
from fnop.interpreters.cluster.schema.schema import in_status, status_faults
from fnop.interpreters.cluster.storage.commit import is_released, removed, stored
from fnop.interpreters.cluster.storage.store import Cluster, lookup, remembered, written
from fnop.interpreters.cluster.validation.crd_rules import crd_update_faults
from fnop.interpreters.cluster.validation.scale_rules import scale_faults
from fnop.interpreters.cluster.values.objects import Object, Resource, same
from fnop.interpreters.cluster.values.status import (
    Fault,
    Refusal,
    bad_request,
    conflict,
    internal,
    invalid,
    method_not_allowed,
    not_found,
    quoted,
)
from fnop.interpreters.runtime.protocol import ApiResponse

__all__ = [
    "Admission",
    "Answer",
    "check_identity",
    "check_uid",
    "create",
    "patch",
    "replaced",
    "unfit_patch",
    "update",
]


def _status_faults(
    call: Call, new: Object, old: Object, known: Sequence[Fault]
) -> Iterator[Fault]:
    """Yield the faults of a write through `/status`, which validates status only."""
    kind = call.kind
    if kind.resource == SIGNING:
        yield from condition_faults(new, old, deciding=False)
    if kind.custom:
        yield from scale_faults(kind.scale, new, status_only=True)
    if kind.schema is not None:
        yield from status_faults(kind.schema, new, old, call.warnings, known)


def update(cluster: Cluster, call: Call) -> Answer:
    """PUT on an object or one of its subresources."""
    kind = call.kind
    if not call.route.name:
        raise _missing_name_error(kind)
    check_options(call, "UpdateOptions")
    body = call.request.body
    new = decoded(kind, body)
    check_fields(call, body)
    check_identity(call, new)
    old = plain(cluster, kind, call.key)
    if old is None:
        if kind.creates_on_update and not call.route.subresource:
            check_uid(call, new, "")
            new["metadata"].pop("resourceVersion", None)
            return created(cluster, call, new, recorded(cluster, call, None, body))
        raise not_found(kind.group, kind.plural, call.route.name)
    check_uid(call, new, old["metadata"]["uid"])
    if "resourceVersion" not in new["metadata"] and not kind.unconditional:
        message = "Invalid value: 0: must be specified for an update"
        fault = Fault("metadata.resourceVersion", "FieldValueInvalid", message)
        raise invalid(kind.group, kind.plural, call.route.name, [fault])
    live = served(kind, old)
    return replaced(cluster, call, new, old, recorded(cluster, call, live, body))


def _missing_name_error(kind: Kind) -> Exception:
    return bad_request("name must be provided") if kind.custom else method_not_allowed()


def patch(cluster: Cluster, call: Call) -> Answer:
    """PATCH on an object or one of its subresources."""
    kind, name = call.kind, call.route.name
    if not name:
        raise _missing_name_error(kind)
    if is_apply(call):
        return _apply(cluster, call)
    apply_patch = patched(kind, call.request)
    check_options(call, "PatchOptions")
    old = lookup(cluster, kind.resource, call.key)
    if old is None:
        raise not_found(kind.group, kind.plural, name)
    live = served(kind, old)
    body = apply_patch(live)
    new = _decoded_result(kind, body, live)
    check_patched_fields(call, body, live)
    check_identity(call, new)
    old = plain(cluster, kind, call.key) or old
    track = recorded(cluster, call, served(kind, old), body)
    return replaced(cluster, call, new, old, track)


def _decoded_result(kind: Kind, body: Any, live: Object) -> Object:
    """Decode a patched object; if that fails, the refusal blames the patch."""
    try:
        return decoded(kind, body, live)
    except Refusal as refusal:
        if refusal.response.status != 400:
            raise
        raise _undecodable_body(kind, body, refusal.response.body["message"]) from None


def _undecodable_body(kind: Kind, body: Any, message: str) -> Refusal:
    text = orjson.dumps(body, option=orjson.OPT_SORT_KEYS).decode()
    _, found, why = message.partition("json: ")
    if found:
        why = found + why
    elif not isinstance(body, dict):
        why = message
    elif kind.custom and body.get("kind"):
        why = "Object 'apiVersion' is missing in 'object has no apiVersion field'"
        return internal(why)
    elif kind.custom:
        why = f"Object 'Kind' is missing in '{text}'"
    else:
        version = str(body.get("apiVersion"))
        why = (
            f'no kind "{body.get("kind")}" is registered for version "{version}" in '
            'scheme "pkg/api/legacyscheme/scheme.go:30"'
        )
    return unfit_patch(text, why)


def unfit_patch(text: str, why: str) -> Refusal:
    """The refusal of a patch whose result is not an object of the kind."""
    fault = Fault("patch", "FieldValueInvalid", f"Invalid value: {quoted(text)}: {why}")
    refusal = invalid("", "", "", [fault])
    del refusal.response.body["details"]["kind"]
    return refusal


def _apply(cluster: Cluster, call: Call) -> Answer:
    """PATCH with a configuration: apply it; create the object if it does not exist."""
    kind = call.kind
    check_options(call, "PatchOptions", applies=True)
    old = lookup(cluster, kind.resource, call.key)
    if old is None and call.route.subresource:
        raise not_found(kind.group, kind.plural, call.route.name or "")
    config = configuration(call.request.body)
    applying = Applying(cluster.registry, kind, writer_of(call), is_forced(call))
    live = None if old is None else served(kind, old)
    result = applied(applying, live, config)
    nulls = _null_faults(call, result)
    new = _decode_result(kind, result)
    entries = (result.get("metadata") or {}).get("managedFields", ())
    check_identity(call, new)
    if old is not None:
        # An apply without changes adds no defaults of this version.
        is_same = live is not None and not changes(live, result)
        track = _keep_entries(entries)
        old = plain(cluster, kind, call.key) or old
        return replaced(cluster, call, new, old, track, nulls, filled=is_same)
    uid = new["metadata"].get("uid")
    if uid:
        why = (
            f"uid mismatch: the provided object specified uid {uid}, and no existing "
            "object was found"
        )
        raise conflict(kind.group, kind.plural, call.route.name or "", why)
    new["metadata"].pop("resourceVersion", None)
    return created(cluster, call, new, _keep_entries(entries), nulls)


def _null_faults(call: Call, result: Object) -> list[Fault]:
    """The nulls that an apply has left and that the schema does not allow."""
    schema = call.kind.schema
    if schema is None:
        return []
    if call.route.subresource != "status":
        return [*null_faults(schema, result)]
    status = schema.properties.get("status")
    if status is None or result.get("status") is None:
        return []
    return [*map(in_status, null_faults(status, result["status"]))]


def _decode_result(kind: Kind, result: Object) -> Object:
    """The result of an apply as an object; 500 if it does not fit its type."""
    try:
        return decoded(kind, result)
    except Refusal as refusal:
        if kind.custom:
            raise
        why = refusal.response.body["message"].partition(": ")[2]
        raise internal(
            "failed to convert new object to proper version: unable to convert "
            f"unstructured object to {kind.group}/{kind.version}, Kind={kind.kind}: "
            f"{why}",
            bare=True,
        ) from None


def _keep_entries(entries: list[Entry]) -> Track:
    """A function that sets the managed fields which an apply has computed."""
    return lambda new: with_entries(new, entries)


def check_identity(call: Call, new: Object) -> None:
    name, expected = new["metadata"].get("name"), call.route.name
    if not name:
        raise bad_request(
            f"the name of the object ({expected} based on URL) was undeterminable: "
            "name must be provided"
        )
    if name != expected:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL "
            f"({expected})"
        )
    check_namespace(call, new)


def check_uid(call: Call, new: Object, present: str) -> None:
    """Refuse a PUT that names another uid than the present one."""
    kind, uid = call.kind, new["metadata"].get("uid")
    if uid and uid != present:
        where = "/".join(part for part in (kind.plural, *call.key) if part)
        if kind.custom:
            where = f"{kind.group}/{where}"
        raise conflict(
            kind.group,
            kind.plural,
            call.route.name or "",
            f"StorageError: invalid object, Code: 4, Key: /registry/{where}, "
            "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "
            f"precondition: {uid}, UID in object meta: {present}",
        )


def _check_version(kind: Kind, new: Object, old: Object) -> None:
    given = new["metadata"].get("resourceVersion")
    if given is None or given == old["metadata"]["resourceVersion"]:
        return
    if not given.isdecimal():
        message = f'strconv.ParseUint: parsing "{given}": invalid syntax'
        raise internal(message, bare=True)
    raise conflict(kind.group, kind.plural, old["metadata"]["name"])


class Admission(Struct, frozen=True):
    """The steps of admission in an update; both take the new and the old object."""

    mutated: Callable[[Object, Object], Object]
    check: Callable[[Object, Object], None]


UNREVIEWED = Admission(lambda new, old: new, lambda new, old: None)


def _admission(cluster: Cluster, call: Call) -> Admission:
    if not is_reviewed(cluster, call):
        return UNREVIEWED
    return Admission(
        partial(mutated, cluster, call), partial(check_write, cluster, call)
    )


def replaced(
    cluster: Cluster,
    call: Call,
    new: Object,
    old: Object,
    track: Track,
    known: Sequence[Fault] = (),
    *,
    filled: bool = False,
    admission: Admission | None = None,
) -> Answer:
    """Replace `old` by `new`: the part that update, patch and apply share.

    `new` gets its defaults, unless it is `filled` already, as stored objects are. `old`
    is in its plain form. Webhooks review the object itself, unless another `admission`
    is given.
    """
    kind, key = call.kind, call.key
    present = lookup(cluster, kind.resource, key) or old
    admission = admission or _admission(cluster, call)
    if kind.schema is not None and not filled:
        # Stored objects are filled already, by the schema of their own version.
        new = kind.schema.filled(new, old if kind.storage else None)
    # Changes are attributed before webhooks and the strategy make further changes.
    new = track(new if kind.custom else _with_defaults(kind, new))
    new = _mutate_again(call, admission, new, served(kind, old))
    _check_version(kind, new, old)
    asked = _prepare_update(call, new, old, cluster.variant)
    new = _without_time_changes(to_storage(kind, asked), old)
    if call.route.subresource == "status":
        found = _status_faults(call, new, old, known)
    else:
        found = _object_faults(call, new, old, known)
    faults = [*known, *_update_faults(new, old), *found]
    if faults:
        raise invalid(kind.group, kind.kind, new["metadata"].get("name", ""), faults)
    admission.check(served(kind, new), served(kind, old))
    is_same = same(new, written(cluster, kind.resource, key, old))
    if present is not old:
        new = as_found(new, old, present)
    if not call.dry_run and is_released(new):
        # The last finalizer is removed. The answer shows the new object at its old
        # version, and the DELETED event shows the stored object at a new version.
        cluster, events = removed(cluster, kind, key)
        return cluster, ApiResponse(200, asked), events
    if is_same and not call.dry_run:
        # A write that changes nothing does not count.
        return cluster, ApiResponse(200, served(kind, present)), ()
    return _stored_update(cluster, call, new, present)


def _stored_update(
    cluster: Cluster, call: Call, raw: Object, present: Object
) -> Answer:
    """Store an object instead of the `present` one, unless it is a dry run."""
    kind, key = call.kind, call.key
    new = as_read(kind, raw)
    if call.dry_run:
        return cluster, ApiResponse(200, served(kind, new)), ()
    cluster, events = stored(cluster, kind, key, new, present, call.now)
    cluster = remembered(cluster, kind.resource, key, raw, new)
    return cluster, ApiResponse(200, served(kind, events[0].object)), events


def _mutate_again(
    call: Call, admission: Admission, new: Object, live: Object
) -> Object:
    """The new object after mutating webhooks, which see it before it is compared."""
    changed = admission.mutated(new, live)
    if changed is not new:
        check_namespace(call, changed)
    return changed


def _prepare_update(call: Call, new: Object, old: Object, variant: int) -> Object:
    """`new` as its kind's strategy lets it replace `old` (PrepareForUpdate)."""
    kind = call.kind
    live = served(kind, old)
    if call.route.subresource == "status":
        new = _status_only(kind, new, live)
    elif kind.status:
        new = _with_old_status(new, live)
    if kind.resource == SIGNING:
        new = unchanged(new, old)
    new = {**new, "metadata": _carry_metadata(new["metadata"], old["metadata"])}
    if not kind.custom and not call.route.subresource:
        stays = kept(kind, to_storage(kind, new), old)
        new = served(kind, allocated(kind, stays, variant))
    if kind.generation and "generation" in old["metadata"]:
        # Older servers do not count generations for every kind. Changes are counted as
        # the version of the request shows them.
        count = _generation(kind, new, live, call.route.subresource)
        counted = {**new["metadata"], "generation": count}
        new = {**new, "metadata": counted}
    return new


def _with_defaults(kind: Kind, new: Object) -> Object:
    """A built-in object with its defaults, in the version of the request."""
    return served(kind, defaulted(kind, to_storage(kind, new)))


def _without_time_changes(new: Object, old: Object) -> Object:
    """The new object; with the old entries if only their times would change.

    A write that would only change the time of managed fields changes nothing
    (IgnoreManagedFieldsTimestampsTransformer).
    """
    after = new["metadata"].get("managedFields")
    before = old["metadata"].get("managedFields")
    if after is before or not after or not before or len(after) != len(before):
        return new
    if [each.get("time") for each in after] == [each.get("time") for each in before]:
        return new
    if [*map(_without_time, after)] != [*map(_without_time, before)]:
        return new
    calm = with_entries(new, before)
    return calm if same(calm, old) else new


def _without_time(entry: Entry) -> Entry:
    return {**entry, "time": ""}


# Fields other than spec that the status strategies of built-in kinds protect.
PROTECTED: dict[Resource, tuple[str, ...]] = {
    ("", "pods"): ("ownerReferences",),
    ("apps", "deployments"): ("labels",),
    CRDS: ("labels", "annotations", "finalizers", "ownerReferences"),
}


def _status_only(kind: Kind, new: Object, old: Object) -> Object:
    """`old` with the status of `new`; for built-in kinds also with its metadata."""
    result = {**old}
    if "status" in new:
        result["status"] = new["status"]
    else:
        result.pop("status", None)
    if kind.custom:
        # Their metadata does not change, but a stale version is still a conflict.
        return with_entries(result, new["metadata"].get("managedFields", ()))
    metadata = {**new["metadata"]}
    for name in PROTECTED.get(kind.resource, ()):
        metadata.pop(name, None)
        if name in old["metadata"]:
            metadata[name] = old["metadata"][name]
    return {**result, "metadata": metadata}


def _with_old_status(new: Object, old: Object) -> Object:
    """Keep the old status: if `/status` exists, only that endpoint writes it."""
    if new.get("status") is old.get("status"):
        return new
    result = {**new}
    if "status" in old:
        result["status"] = old["status"]
    else:
        result.pop("status", None)
    return result


def _carry_metadata(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """New metadata with the server's fields from the old."""
    metadata = {
        **new,
        "uid": new.get("uid") or old["uid"],
        "creationTimestamp": old["creationTimestamp"],
        "resourceVersion": old["resourceVersion"],
    }
    if "namespace" in old:
        metadata["namespace"] = old["namespace"]
    if "deletionTimestamp" in old:
        metadata["deletionTimestamp"] = old["deletionTimestamp"]
        # A namespace that is being deleted has none.
        if "deletionGracePeriodSeconds" in old:
            metadata.setdefault(
                "deletionGracePeriodSeconds", old["deletionGracePeriodSeconds"]
            )
    metadata.pop("generation", None)
    if "generation" in old:
        metadata["generation"] = old["generation"]
    return metadata


ABSENT: Any = object()
# The only kind whose annotations count, too.
DEPLOYMENTS: Resource = ("apps", "deployments")
# Their generation is always 1.
UNCOUNTED = frozenset((("scheduling.k8s.io", "priorityclasses"),))


def _generation(kind: Kind, new: Object, old: Object, subresource: str | None) -> int:
    """The generation after a write: it counts changes outside of metadata and
    `/status`.
    """
    outside = ("metadata", "status") if kind.status else ("metadata",)
    current: int = old["metadata"].get("generation", 1)
    if kind.resource in UNCOUNTED:
        return current
    if kind.resource == DEPLOYMENTS and not subresource:
        after, before = new["metadata"], old["metadata"]
        if after.get("annotations") != before.get("annotations"):
            return current + 1
    for name in old.keys() | new.keys():
        if name in outside:
            continue
        after, before = new.get(name, ABSENT), old.get(name, ABSENT)
        if after is not before and not same(after, before):
            return current + 1
    return current


def _update_faults(new: Object, old: Object) -> Iterator[Fault]:
    after, before = new["metadata"], old["metadata"]
    if old["kind"] == "CustomResourceDefinition":
        yield from crd_update_faults(new, old)
    if "deletionTimestamp" in before:
        yield from _late_finalizers(after, before)
    for name in ("name", "uid", "deletionTimestamp", "deletionGracePeriodSeconds"):
        value = after.get(name)
        if value != before.get(name):
            text = quoted(value) if isinstance(value, str) else str(value)
            fault = Fault(
                f"metadata.{name}",
                "FieldValueInvalid",
                f"Invalid value: {text}: field is immutable",
            )
            # Both the generic validation and the kind's own find it.
            yield from (fault, fault)


def _object_faults(
    call: Call, new: Object, old: Object, known: Sequence[Fault]
) -> Iterator[Fault]:
    """Yield the faults of an object that replaces another.

    Several layers of the real server look at metadata, and each reports what it finds.
    """
    kind = call.kind
    for fault in object_faults(kind, new, old, call.warnings, known):
        yield fault
        if fault.field.startswith("metadata."):
            few = fault.field == "metadata.finalizers"
            again = (0 if few else 2) if kind.custom else (1 if few else 3)
            yield from [fault] * again


def _late_finalizers(after: dict[str, Any], before: dict[str, Any]) -> Iterator[Fault]:
    known = before.get("finalizers", ())
    added = sorted({*after.get("finalizers", ())} - {*known})
    if added:
        names = ", ".join(map(quoted, added))
        fault = Fault(
            "metadata.finalizers",
            "FieldValueForbidden",
            "Forbidden: no new finalizers can be added if the object is being "
            f"deleted, found new finalizers []string{{{names}}}",
        )
        yield from (fault, fault)
