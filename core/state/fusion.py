"""The object's own write: all changes of one reconcile in the fewest requests.

fnop fuses the patches of handlers, their results, and the state to store. The result is
at most one request to the main endpoint and one to `/status`. Parts that change nothing
are dropped. The request that says "done" is the last.

fnop computes the write again from the freshest body after each answer: a conflict costs
another request, but does not call a handler again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from fnop.core.api.resources import Resource
from fnop.core.api.statuses import UNDESCRIBED, StatusSchema
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.declare.writers import Transform
from fnop.core.memory.conditions import (
    Condition,
    conditions_in,
    conditions_with,
    is_of,
    keeping,
)
from fnop.core.memory.storage import Place
from fnop.core.memory.stored_state import Stored, write_stored
from fnop.core.state.splitting import changed, endpoints_of
from fnop.core.state.writing import Contents, Sent
from fnop.core.values.body import Body
from fnop.core.values.finalizers import Duty, with_finalizer, without_finalizer
from fnop.core.values.merge import OperationFailed, applied, difference
from fnop.core.values.now import wall_seconds
from fnop.effects import Patch

__all__ = [
    "authors_at",
    "dropped_fields",
    "next_write",
    "tells_own",
    "was_pruned",
]


class NextWrite(NamedTuple):
    """A patch for an endpoint, "" or "status"; with `more`, another may follow."""

    endpoint: str
    patch: Patch
    more: bool


def next_write(
    contents: Contents,
    body: Body,
    resource: Resource,
    settings: Settings,
    place: Place,
    *,
    taken: frozenset[str] = frozenset(),
    unsaid: bool = False,
    conditions: bool = False,
    own: Collection[str] = (),
    schema: StatusSchema = UNDESCRIBED,
    restated: Callable[[Stored, Body], Stored] = lambda after, made: after,
) -> NextWrite | None:
    """The patch that is due next; None when all is written.

    `place` is the location of this kind's state. The endpoints `taken` have got their
    part. `conditions` is whether the status takes conditions; with `unsaid`, it does
    not take the operator's own. Conditions of the types `own` are the operator's:
    handlers cannot remove them. The operator reports none without the fields that the
    `schema` requires. `restated` computes the state to store from the object as the
    write makes it.

    Raises `ValueError` when the state is too long to store. Raises `StorageFailed` when
    an author's storage cannot write it. Raises `OperationFailed` when a JSON patch or a
    function does not fit the object.
    """
    target: Any = _target(contents, body, settings)
    target = _keeping_conditions(target, body, own)
    if contents.after is not None:
        after, split = contents.after, resource.has_status
        if contents.patches:
            after = restated(after, Body(target))
        text = partial(write_stored, after, body.uid, settings.ignored)
        places = settings.places
        for patch in places.patches(after, body, Body(target), place, text, split):
            target = applied(patch, target)
    if conditions and contents.condition is not None:
        target = _with_condition(target, settings.marker, contents.condition)
    if unsaid or _lacks_fields(target, schema):
        target = _without_conditions(target, body, own)
    parts = _parts_by_endpoint(target, body, split=resource.has_status)
    # The request that says "done" is the last (R20). For a deletion the finalizer says
    # it: with records removed before it, handlers would be called again after a crash.
    says_done = contents.after is not None and contents.finalizer is None
    state_last = says_done and not place.in_status
    return _next_part(parts, body, taken, state_last=state_last)


def _next_part(
    parts: Mapping[str, Any], body: Body, sent: frozenset[str], *, state_last: bool
) -> NextWrite | None:
    """The part for the next endpoint; the main one comes first, or last."""
    for endpoint in ("status", "") if state_last else ("", "status"):
        part = parts.get(endpoint)
        if part and endpoint not in sent:
            merge = _bound(part, body)
            more = any(parts[each] for each in parts if each != endpoint)
            return NextWrite(endpoint, Patch.of_parts(merge, endpoint or None), more)
    return None


def _parts_by_endpoint(
    target: Any, body: Body, *, split: bool
) -> dict[str, dict[str, Any]]:
    """The changes, by the endpoint that takes them."""
    for name in ("metadata", "status"):
        stanza = target.get(name, {}) if isinstance(target, dict) else None
        if not isinstance(stanza, dict) and stanza is not body.data.get(name, {}):
            raise OperationFailed(f"a patch must leave {name} a mapping")
    change = difference(body.data, target)
    if split and "status" in change:
        return {"status": {"status": change.pop("status")}, "": change}
    return {"": change}


def _target(contents: Contents, body: Body, settings: Settings) -> dict[str, Any]:
    """The freshest body with all changes except the state."""
    target: dict[str, Any] = body.data
    for _, patch in contents.patches:
        target = changed(target, patch)
    for handler, value in contents.results.items():
        target = applied({"status": {handler: value}}, target)
    if contents.finalizer is not None:
        change = with_finalizer if contents.finalizer is Duty.ADD else without_finalizer
        names = change(body.finalizers, *settings.finalizers)
        target = applied({"metadata": {"finalizers": names}}, target)
    return target


def _lacks_fields(target: Any, schema: StatusSchema) -> bool:
    status = target.get("status") if isinstance(target, dict) else None
    return schema.lacks(status if isinstance(status, dict) else ())


def _keeping_conditions(target: Any, body: Body, own: Collection[str]) -> Any:
    """Apply the handlers' changes of conditions, but keep the operator's own."""
    status = target.get("status") if isinstance(target, dict) else None
    given = status.get("conditions") if isinstance(status, dict) else None
    kept = keeping(given, body, own)
    return (
        target if kept is given else applied({"status": {"conditions": kept}}, target)
    )


def _with_condition(
    target: dict[str, Any], marker: str, condition: Condition
) -> dict[str, Any]:
    """The target with the operator's own condition; all other conditions stay.

    Conditions of another form, such as a mapping, stay as they are.
    """
    status = target.get("status") or {}
    given = status.get("conditions") if isinstance(status, dict) else None
    if not isinstance(given or [], list):
        return target
    now = wall_seconds(condition.wall)
    found = conditions_with(given or [], marker, condition, now)
    with_it: dict[str, Any] = applied({"status": {"conditions": found}}, target)
    return with_it


def _without_conditions(
    target: dict[str, Any], body: Body, own: Collection[str]
) -> dict[str, Any]:
    """Return the target with the operator's own conditions as the object has them.

    A status without them stays without them, whatever its schema says about conditions.
    """
    status = target.get("status")
    given = status.get("conditions") if isinstance(status, dict) else None
    if not isinstance(status, dict) or not isinstance(given, list):
        return target
    now = body.stanza("status")
    before = now.get("conditions")
    found = [e for e in given if not is_of(e, *own)]
    found += [e for e in conditions_in(now) if is_of(e, *own)]
    left = {**status, "conditions": found}
    if not found and not isinstance(before, list):
        left = {key: each for key, each in status.items() if key != "conditions"}
        left |= {} if before is None else {"conditions": before}
    if not left and "status" not in body.data:
        return {key: each for key, each in target.items() if key != "status"}
    return {**target, "status": left}


def tells_own(sent: Sent, own: Collection[str]) -> bool:
    """Whether a request had conditions of these types."""
    status = (sent.patch.merge or {}).get("status")
    return any(is_of(each, *own) for each in conditions_in(status))


def _bound(part: dict[str, Any], body: Body) -> dict[str, Any]:
    """The patch, bound to the version that it was computed from (R21).

    fnop must not apply a decision about one state of an object to another state, nor to
    a re-created namesake. The API server compares a patch's resourceVersion with the
    object's own, and answers 409 if they differ.
    """
    meta = {**part.get("metadata", {}), "resourceVersion": body.version}
    return {**part, "metadata": meta}


def authors_at(contents: Contents, endpoint: str, *, split: bool) -> tuple[str, ...]:
    """The handlers whose changes are in the request to an endpoint.

    `split` means that status has an endpoint of its own.
    """
    found = [
        name
        for name, patch in contents.patches
        if endpoint in endpoints_of(patch, split=split)
    ]
    if not split or endpoint == "status":
        found += contents.results
    return tuple(dict.fromkeys(found))


def was_pruned(
    contents: Contents, response: Body, place: Place
) -> tuple[bool, set[str]]:
    """Whether the server dropped the state, and the names of the dropped results.

    A schema that does not know a field prunes it and answers 200 without it.
    """
    status = response.stanza("status")
    lost_state = contents.after is not None and place.read(response) is None
    lost = {name for name in contents.results if name not in status}
    return lost_state, lost


def dropped_fields(
    contents: Contents, sent: Sent, response: Body
) -> list[tuple[str, str]]:
    """The fields that handlers changed and the server dropped: (handler, pointer).

    A schema that does not know a field prunes it and answers 200 without it
    (Kubernetes: field pruning). Only a field that the last request has set counts as
    dropped.
    """
    if not contents.patches:
        return []
    dropped = set(_absent_pointers(sent.patch.merge or {}, response.data, ""))
    return [
        (author, pointer)
        for author, change in (contents.patches if dropped else ())
        for pointer in _absent_pointers(
            _merge_patch_of(change, sent.base), response.data, ""
        )
        if pointer in dropped
    ]


def _merge_patch_of(change: Patch | Transform, base: Body) -> Mapping[str, Any]:
    """A change as a merge patch of the object that a request was computed from."""
    if isinstance(change, Patch) and not change.json:
        return change.merge or {}
    try:
        return difference(base.data, changed(base.data, change))
    except OperationFailed:
        return {}  # it depends on others' changes


def _absent_pointers(
    merge: Mapping[str, Any], found: Mapping[str, Any], at: str
) -> Iterator[str]:
    """The pointers of fields that a merge patch sets and an object lacks.

    >>> merge = {"a": 1, "b": None, "c": {"d": 2, "e": 3}}
    >>> list(_absent_pointers(merge, {"c": {"d": 0}}, ""))
    ['/a', '/c/e']
    """
    for key, value in merge.items():
        if value is None or value in ({}, []):  # which servers omit
            continue
        have = found.get(key)
        if isinstance(value, dict) and isinstance(have, dict):
            yield from _absent_pointers(value, have, f"{at}/{key}")
        elif have is None and not _only_removes(value):
            yield f"{at}/{key}"


def _only_removes(value: Any) -> bool:
    """Whether a merge patch only removes fields."""
    if isinstance(value, dict):
        return all(_only_removes(each) for each in value.values())
    return value is None
