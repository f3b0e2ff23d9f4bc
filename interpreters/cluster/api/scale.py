"""The `/scale` subresource: the replicas of any kind that has them.

`ScaleREST` of the kind and `managedfields.ScaleHandler` connect the object and its
Scale. The latter moves the managers of the replicas from one to the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from fnop.effects.structs import replace
from fnop.interpreters.cluster.admission.webhooks import Form
from fnop.interpreters.cluster.api.admitting import check_write, mutated
from fnop.interpreters.cluster.api.create import Answer
from fnop.interpreters.cluster.api.write import (
    Admission,
    check_identity,
    check_uid,
    replaced,
    unfit_patch,
)
from fnop.interpreters.cluster.apply.apply import (
    check_type,
    configuration,
    conflicting,
    fault_text,
)
from fnop.interpreters.cluster.apply.fieldsets import (
    Tree,
    difference,
    field_key,
    has,
)
from fnop.interpreters.cluster.apply.managed import (
    Entry,
    Identity,
    each_once,
    entry_of,
    entry_with,
    identity,
    ordered,
    with_entries,
)
from fnop.interpreters.cluster.apply.patch import patched
from fnop.interpreters.cluster.apply.shapes import shape_of
from fnop.interpreters.cluster.apply.typed import shape_faults
from fnop.interpreters.cluster.kinds.conversion import served
from fnop.interpreters.cluster.kinds.kinds import Kind, Scale
from fnop.interpreters.cluster.requests.found import plain
from fnop.interpreters.cluster.requests.options import (
    check_options,
    is_apply,
    is_forced,
    writer_of,
)
from fnop.interpreters.cluster.requests.request import Call
from fnop.interpreters.cluster.storage.store import Cluster
from fnop.interpreters.cluster.validation.scale_rules import (
    LARGEST,
    Inaccessible,
    number_at,
    text_at,
)
from fnop.interpreters.cluster.values.objects import Object
from fnop.interpreters.cluster.values.status import (
    Fault,
    Refusal,
    bad_request,
    failure,
    internal,
    invalid,
    method_not_allowed,
    not_found,
)
from fnop.interpreters.runtime.protocol import ApiResponse

__all__ = ["answer_scale"]

# The metadata of the object that its Scale shows.
SHOWN = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
SCALE_VERSION = "autoscaling/v1"
SCALE = Kind("autoscaling", "v1", "Scale", "scales", "scale", "ScaleList")
FORM = Form(SCALE.group, SCALE.version, SCALE.kind)
# The number that patches find if a custom object has no replicas.
UNSET = -(2**31)


def answer_scale(cluster: Cluster, call: Call) -> Answer:
    """GET, PUT and PATCH of `/scale`."""
    kind, method = call.kind, call.request.method
    if method not in ("GET", "PUT", "PATCH"):
        raise _unsupported_method(kind, method)
    if method == "PUT":
        check_options(call, "UpdateOptions")
        wanted = _decode_scale(kind, call.request.body, _undecodable_scale)
        check_identity(call, wanted)
    old = plain(cluster, kind, call.key)
    if old is None:
        raise _scale_not_found(kind, call.route.name or "")
    live = served(kind, old)
    if method == "GET":
        return cluster, ApiResponse(200, _read_scale(kind, live)), ()
    if method == "PATCH" and is_apply(call):
        return _apply_scale(cluster, call, old, live)
    if method == "PUT":
        check_uid(call, wanted, old["metadata"]["uid"])
    else:
        wanted = _patched_scale(call, live)
    who = (writer_of(call).manager or "unknown", "Update", "", "scale")
    return _set_replicas(
        cluster, call, old, wanted, _entries_after(kind, live, wanted, who)
    )


def _unsupported_method(kind: Kind, method: str) -> Refusal:
    if not kind.custom:
        return method_not_allowed()
    verb = {"POST": "create", "DELETE": "delete"}.get(method, method)
    named = f"{kind.plural}.{kind.group}"
    return failure(
        405,
        "MethodNotAllowed",
        f'{verb} is not supported on resources of kind "{named}"',
        {"group": kind.group, "kind": kind.plural},
    )


def _scale_not_found(kind: Kind, name: str) -> Refusal:
    """404 in the words of the kind's registry."""
    if kind.custom:
        return not_found(kind.group, kind.plural, name)
    return not_found(kind.group or "autoscaling", f"{kind.plural}/scale", name)


# --------------------------------------------------------------------- writing


def _set_replicas(
    cluster: Cluster, call: Call, old: Object, wanted: Object, entries: list[Entry]
) -> Answer:
    """The object with the replicas and the resourceVersion of a Scale."""
    kind = call.kind
    live = served(kind, old)
    shown = {"kind": SCALE.kind, "apiVersion": SCALE_VERSION, **wanted}
    wanted = mutated(cluster, call, shown, _scale_of(kind, live), FORM)
    replicas = _replicas(wanted)
    if replicas < 0 and not kind.custom:
        message = f"Invalid value: {replicas}: must be greater than or equal to 0"
        fault = Fault("spec.replicas", "FieldValueInvalid", message)
        raise invalid("autoscaling", "Scale", live["metadata"]["name"], [fault])
    metadata = dict(live["metadata"])
    version = wanted["metadata"].get("resourceVersion")
    if version:
        metadata["resourceVersion"] = version
    new = _with_value_at({**live, "metadata": metadata}, _rule(kind).spec, replicas)
    main = replace(call, route=call.route._replace(subresource=None))
    cluster, response, events = replaced(
        cluster,
        main,
        new,
        old,
        lambda new: with_entries(new, ordered(entries)),
        filled=True,
        admission=_admission(cluster, call),
    )
    return cluster, ApiResponse(200, _scale_of(kind, response.body)), events


def _admission(cluster: Cluster, call: Call) -> Admission:
    """Admission of the object behind a Scale: webhooks review the Scale."""

    def check(new: Object, old: Object) -> None:
        after, before = (_scale_of(call.kind, obj) for obj in (new, old))
        check_write(cluster, call, after, before, FORM)

    return Admission(lambda new, old: new, check)


def _patched_scale(call: Call, live: Object) -> Object:
    """The Scale after a patch."""
    kind = call.kind
    current = _scale_of(kind, live)
    if kind.custom and number_at(live, _rule(kind).spec) is None:
        current = {**current, "spec": {"replicas": UNSET}}
    body = patched(kind, call.request)(current)
    check_options(call, "PatchOptions")
    shown = orjson.dumps(body).decode()
    found = _decode_scale(kind, body, lambda kind, why: unfit_patch(shown, why))
    if _replicas(found) == UNSET:
        path = ".".join(("", *_rule(kind).spec))
        raise bad_request(f'the spec replicas field "{path}" cannot be empty')
    return found


def _replicas(scale: Object) -> int:
    number: int = (scale.get("spec") or {}).get("replicas") or 0
    return number


def _with_value_at(obj: Any, path: tuple[str, ...], value: Any) -> Any:
    if not path:
        return value
    inner = obj if isinstance(obj, dict) else {}
    return {**inner, path[0]: _with_value_at(inner.get(path[0]), path[1:], value)}


# -------------------------------------------------------------------- decoding

Refuse = Callable[[Kind, str], Refusal]


def _undecodable_scale(kind: Kind, why: str) -> Refusal:
    if kind.custom:
        # Its server looks for a type that it could convert, and does not find one.
        return bad_request(
            "no kind is registered for the type v1.Scale in scheme "
            '"pkg/apiserver/customresource_handler.go:781"'
        )
    return bad_request(f'Scale in version "v1" cannot be handled as a Scale: {why}')


def _decode_scale(kind: Kind, body: Any, refuse: Refuse) -> Object:
    """A body as a Scale, with the fields that are used."""
    if not isinstance(body, dict):
        raise refuse(kind, "json: cannot unmarshal into Go value of type v1.Scale")
    for name, expected in (("kind", "Scale"), ("apiVersion", SCALE_VERSION)):
        if body.get(name) not in (None, "", expected):
            raise refuse(
                kind,
                f'no kind "{body.get("kind")}" is registered for version '
                f'"{body.get("apiVersion")}"',
            )
    metadata = body.get("metadata") or {}
    spec = body.get("spec") or {}
    replicas = spec.get("replicas") if isinstance(spec, dict) else spec
    fits = replicas is None or (type(replicas) is int and UNSET <= replicas <= LARGEST)
    if not fits or not isinstance(metadata, dict):
        raise refuse(
            kind,
            "json: cannot unmarshal into Go struct field ScaleSpec.spec.replicas of "
            "type int32",
        )
    return {
        "metadata": metadata,
        "spec": {"replicas": replicas} if replicas else {},
        "status": body.get("status") or {"replicas": 0},
    }


# ---------------------------------------------------------------- who manages it

# Whether each manager manages the replicas; False: other fields of a Scale only.
Managers = dict[Identity, bool]


def _path(kind: Kind) -> tuple[str, ...]:
    return tuple(map(field_key, _rule(kind).spec))


def _tree(path: tuple[str, ...]) -> Tree:
    tree: Tree = {}
    for key in reversed(path):
        tree = {key: tree}
    return tree


def _entries(live: Object) -> list[Entry]:
    found: list[Entry] = live["metadata"].get("managedFields", [])
    return [*each_once(found)]


def _managers(kind: Kind, entries: list[Entry]) -> Managers:
    """The managers of replicas, as a Scale names them (ScaleHandler.ToSubresource)."""
    path = _path(kind)
    owners = (identity(entry) for entry in entries if has(entry["fieldsV1"], path))
    return {
        (manager, operation, version and SCALE_VERSION, subresource): True
        for manager, operation, version, subresource in owners
    }


def _entries_of(kind: Kind, entries: list[Entry], managers: Managers) -> list[Entry]:
    """The entries of the object, given its Scale's entries (ScaleHandler.ToParent).

    Managers that only update are not recognized, because the Scale has another version.
    The replicas get an entry of their own, without a time.
    """
    path = _path(kind)
    left, result = dict(managers), []
    for entry in entries:
        if not has(entry["fieldsV1"], path):
            result.append(entry)
        elif identity(entry) in left:
            result.append(entry)
            del left[identity(entry)]
        elif rest := entry_with(entry, difference(entry["fieldsV1"], _tree(path))):
            result.append(rest)
    result += [
        entry_of(who, kind.api_version, _tree(path), None)
        for who, has_replicas in left.items()
        if has_replicas
    ]
    return result


def _entries_after(
    kind: Kind, live: Object, wanted: Object, who: Identity
) -> list[Entry]:
    """The entries after a write of a Scale: its writer manages a changed number.

    A number of 0 has no manager, because a Scale omits it. Fields without managers are
    not tracked until they are applied.
    """
    entries = _entries(live)
    managers = _managers(kind, entries)
    replicas = _replicas(wanted)
    if managers and replicas != number_at(live, _rule(kind).spec):
        managers = {who: True} if replicas else {}
    return _entries_of(kind, entries, managers)


def _apply_scale(cluster: Cluster, call: Call, old: Object, live: Object) -> Answer:
    """Apply a Scale."""
    kind = call.kind
    check_options(call, "PatchOptions", applies=True)
    config = configuration(call.request.body)
    check_type(config, SCALE_VERSION, "Scale")
    entries = _entries(live)
    managers = _managers(kind, entries)
    if kind.custom and not managers:
        raise _conversion_error(
            "failed to create manager for existing fields: ", "live"
        )
    _check_shape(config)
    present = number_at(live, _rule(kind).spec)
    wanted = (config.get("spec") or {}).get("replicas")
    who = (writer_of(call).manager, "Apply", "", "scale")
    is_lost = managers.keys() == {who} if wanted is None else wanted != present
    if wanted is None:
        after = _release_replicas(managers, who, config)
    elif is_lost:
        after = _take_replicas(call, managers, who)
    else:
        after = {**managers, who: True}
    metadata, shown = config.get("metadata") or {}, _scale_of(kind, live)
    before = shown["metadata"]
    is_other = any(before.get(name) != value for name, value in metadata.items())
    if kind.custom and (is_lost or is_other):
        raise _conversion_error("", "new", metadata.get("name"))
    replicas = present if wanted is None else wanted
    scale = {
        **shown,
        "metadata": metadata,
        "spec": {"replicas": replicas} if replicas else {},
    }
    kept = _entries_of(kind, entries, after)
    return _set_replicas(cluster, call, old, scale, kept)


def _release_replicas(managers: Managers, who: Identity, config: Object) -> Managers:
    """The managers after an apply without a number of replicas."""
    if config.get("spec") is None:
        return {one: has for one, has in managers.items() if one != who}
    return {**managers, who: False}


def _take_replicas(call: Call, managers: Managers, who: Identity) -> Managers:
    """The managers after an apply that changes the number; others may object."""
    others = [*managers.keys() - {who}]
    if others and not is_forced(call):
        raise conflicting([(one, ("f:spec", "f:replicas")) for one in others])
    return {who: True}


def _check_shape(config: Object) -> None:
    """Refuse an applied Scale with fields that a Scale does not have."""
    if text := fault_text(shape_faults(config, shape_of(SCALE))):
        name = (config.get("metadata") or {}).get("name")
        where = f"/{name}; autoscaling/v1, Kind=Scale"
        raise internal(
            f"failed to create typed patch object ({where}): {text}", bare=True
        )


def _conversion_error(before: str, which: str, name: str | None = "") -> Refusal:
    """The error of custom kinds, whose converter does not know Scale."""
    return internal(
        f"{before}failed to convert {which} object (/{name}; autoscaling/v1, "
        "Kind=Scale) to proper version: request to convert CR to an invalid "
        "group/version: autoscaling/v1",
        bare=True,
    )


# --------------------------------------------------------------------- showing


def _rule(kind: Kind) -> Scale:
    assert kind.scale is not None
    return kind.scale


def _read_scale(kind: Kind, live: Object) -> Object:
    """The Scale of an object, for GET."""
    try:
        found = _scale_of(kind, live)
        is_there = number_at(live, _rule(kind).spec) is not None
    except Inaccessible as problem:
        raise internal(str(problem), bare=True) from None
    if kind.custom and not is_there:
        path = ".".join(("", *_rule(kind).spec))
        raise internal(f'the spec replicas field "{path}" does not exist')
    return found


def _scale_of(kind: Kind, obj: Object) -> Object:
    rule, metadata = _rule(kind), obj["metadata"]
    status: dict[str, Any] = {"replicas": number_at(obj, rule.status) or 0}
    selector = _selector(kind, obj)
    if selector:
        status["selector"] = selector
    replicas = number_at(obj, rule.spec)
    return {
        "kind": "Scale",
        "apiVersion": SCALE_VERSION,
        "metadata": {name: metadata[name] for name in SHOWN if name in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def _selector(kind: Kind, obj: Object) -> str:
    rule = _rule(kind)
    if kind.custom:
        return text_at(obj, rule.selector) if rule.selector else ""
    labels = (obj.get("spec") or {}).get("selector") or {}
    if kind.kind != "ReplicationController":
        labels = labels.get("matchLabels") or {}
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
