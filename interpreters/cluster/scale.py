"""The `/scale` subresource: replicas, wherever a kind keeps them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fnop.interpreters.cluster.apply import (
    Conflicts,
    check_type,
    configuration,
    conflicting,
)
from fnop.interpreters.cluster.conversion import served
from fnop.interpreters.cluster.create import Answer, recorded
from fnop.interpreters.cluster.fieldsets import (
    Tree,
    difference,
    field_key,
    intersection,
)
from fnop.interpreters.cluster.kinds import Kind, Scale
from fnop.interpreters.cluster.managed import (
    Entry,
    entry_of,
    entry_with,
    identity,
    ordered,
    with_entries,
)
from fnop.interpreters.cluster.options import (
    check_options,
    is_apply,
    is_forced,
    writer_of,
)
from fnop.interpreters.cluster.patch import patched
from fnop.interpreters.cluster.request import Call
from fnop.interpreters.cluster.status import (
    Fault,
    Refusal,
    bad_request,
    internal,
    invalid,
    method_not_allowed,
    not_found,
)
from fnop.interpreters.cluster.store import Cluster, Object, lookup
from fnop.interpreters.cluster.write import replaced
from fnop.interpreters.protocol import ApiResponse

__all__ = ["answer_scale"]

# The metadata that a Scale shows of the object behind it.
SHOWN = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def answer_scale(cluster: Cluster, call: Call) -> Answer:
    """GET, PUT and PATCH of `/scale`."""
    kind = call.kind
    old = lookup(cluster, kind.resource, call.key)
    if old is None:
        raise _absent(kind, call.route.name or "")
    current = _scale_of(kind, old)
    match call.request.method:
        case "GET":
            return cluster, ApiResponse(200, current), ()
        case "PUT":
            wanted = call.request.body
        case "PATCH" if is_apply(call):
            return _applied(cluster, call, old)
        case "PATCH":
            wanted = patched(kind, call.request)(current)
        case _:
            raise method_not_allowed()
    new = _scaled(kind, served(kind, old), wanted)
    main = replace(call, route=call.route._replace(subresource=None))
    # Who scales manages the replicas, as one who writes through /scale.
    track = recorded(cluster, call, served(kind, old), {})
    cluster, response, events = replaced(cluster, main, new, old, track)
    return cluster, ApiResponse(200, _scale_of(kind, response.body)), events


SCALE_VERSION = "autoscaling/v1"


def _applied(cluster: Cluster, call: Call, old: Object) -> Answer:
    """Apply of the replicas alone (managedfields.ScaleHandler)."""
    kind = call.kind
    check_options(call, "PatchOptions", applies=True)
    config = configuration(call.request.body)
    check_type(config, SCALE_VERSION, "Scale")
    live = served(kind, old)
    rule = _rule(kind).spec
    wanted = _at(config, ("spec", "replicas"))
    changes = wanted is not None and wanted != _at(live, rule)
    writer = writer_of(call)
    who = (writer.manager, "Apply", "", "scale")
    fields: Tree = _tree(rule)
    entries: list[Entry] = []
    conflicts: Conflicts = []
    for entry in live["metadata"].get("managedFields", ()):
        if identity(entry) == who:
            continue
        if changes and intersection(entry["fieldsV1"], fields):
            manager, operation, version, subresource = identity(entry)
            version = version and SCALE_VERSION
            other = (manager, operation, version, subresource)
            conflicts.append((other, ("f:spec", "f:replicas")))
            left = entry_with(entry, difference(entry["fieldsV1"], fields))
        else:
            left = entry
        if left is not None:
            entries.append(left)
    if conflicts and not is_forced(call):
        raise conflicting(conflicts)
    if kind.custom:
        # Its converter does not know scales.
        raise internal(
            f"failed to convert new object (/{_at(config, ('metadata', 'name'))}; "
            "autoscaling/v1, Kind=Scale) to proper version: request to convert CR to "
            "an invalid group/version: autoscaling/v1",
            bare=True,
        )
    if wanted is not None:
        entries.append(entry_of(who, kind.api_version, fields, None))
    scale = {**config, "spec": {"replicas": wanted or 0}}
    new = _scaled(kind, live, scale if wanted is not None else _scale_of(kind, old))
    main = replace(call, route=call.route._replace(subresource=None))
    cluster, response, events = replaced(
        cluster, main, new, old, lambda new: with_entries(new, ordered(entries))
    )
    return cluster, ApiResponse(200, _scale_of(kind, response.body)), events


def _tree(path: tuple[str, ...]) -> Tree:
    tree: Tree = {}
    for name in reversed(path):
        tree = {field_key(name): tree}
    return tree


def _absent(kind: Kind, name: str) -> Refusal:
    """Built-in kinds name the subresource, the oldest also the group of Scale."""
    if kind.custom:
        return not_found(kind.group, kind.plural, name)
    return not_found(kind.group or "autoscaling", f"{kind.plural}/scale", name)


def _at(obj: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj


def _with(obj: Any, path: tuple[str, ...], value: Any) -> Any:
    if not path:
        return value
    inner = obj if isinstance(obj, dict) else {}
    return {**inner, path[0]: _with(inner.get(path[0]), path[1:], value)}


def _rule(kind: Kind) -> Scale:
    assert kind.scale is not None
    return kind.scale


def _scale_of(kind: Kind, obj: Object) -> Object:
    rule, metadata = _rule(kind), obj["metadata"]
    status = {"replicas": _at(obj, rule.status) or 0}
    selector = _selector(kind, obj)
    if selector:
        status["selector"] = selector
    replicas = _at(obj, rule.spec)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in SHOWN if name in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def _selector(kind: Kind, obj: Object) -> str:
    rule = _rule(kind)
    if kind.custom:
        text = _at(obj, rule.selector) if rule.selector else ""
        return text if isinstance(text, str) else ""
    labels = _at(obj, ("spec", "selector", "matchLabels"))
    if kind.kind == "ReplicationController":
        labels = _at(obj, ("spec", "selector"))
    if not isinstance(labels, dict):
        return ""
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items()))


def _scaled(kind: Kind, old: Object, wanted: Any) -> Object:
    """The object with the replicas, and the precondition, of a Scale."""
    if not isinstance(wanted, dict) or wanted.get("kind") != "Scale":
        raise bad_request("the object provided is unrecognized (must be of type Scale)")
    name = old["metadata"]["name"]
    replicas = _at(wanted, ("spec", "replicas")) or 0
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise bad_request(
            'Scale in version "v1" cannot be handled as a Scale: json: cannot '
            "unmarshal into Go struct field ScaleSpec.spec.replicas of type int32"
        )
    if replicas < 0:
        message = f"Invalid value: {replicas}: must be greater than or equal to 0"
        fault = Fault("spec.replicas", "FieldValueInvalid", message)
        raise invalid("autoscaling", "Scale", name, [fault])
    metadata = dict(old["metadata"])
    version = _at(wanted, ("metadata", "resourceVersion"))
    if isinstance(version, str) and version:
        metadata["resourceVersion"] = version
    new: Object = _with({**old, "metadata": metadata}, _rule(kind).spec, replicas)
    return new
