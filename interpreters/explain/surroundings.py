"""The surroundings of an object: operators, conditions, children, Events, writers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fnop.core.children.marks import APPLIED_ANNOTATION, KEEP_ANNOTATION, SET_LABEL
from fnop.core.children.owned import OWNER_ANNOTATION, owners_of
from fnop.core.memory.storage import PREFIX
from fnop.core.memory.takeover import last_handled_places
from fnop.core.operator.uninstalling import alive_peers, lease_holder
from fnop.core.peers.lease import parse_lease
from fnop.core.peers.peers import FREEZE_PRIORITY, parse_peers
from fnop.core.values.body import Body
from fnop.interpreters.explain.facts import (
    ChildFact,
    Evidence,
    fields_within,
    items,
    line,
    mapping,
    moment,
    unique,
)
from fnop.interpreters.explain.story import (
    Child,
    ConditionTold,
    Deletion,
    EventTold,
    HeldLease,
    Operator,
    OwnerTold,
    Peering,
    Subject,
    Touch,
    Writer,
)

__all__ = [
    "child_of",
    "conditions_of",
    "events_of",
    "freezes",
    "operator_of",
    "operators_on",
    "rivals",
    "subject_of",
    "writers_of",
]

# Annotations of fnop that do not hold an operator's state.
_MARKS = frozenset((OWNER_ANNOTATION, APPLIED_ANNOTATION, KEEP_ANNOTATION))
_FIELDS_MAX = 20


# ------------------------------------------------------------------- the object


def subject_of(evidence: Evidence, body: Body) -> Subject:
    """The object itself."""
    meta, resource = body.meta, evidence.resource
    owners = tuple(
        OwnerTold(
            line(each.kind, 63),
            line(each.group, 253),
            line(each.namespace, 63),
            line(each.name, 253),
        )
        for each in owners_of(body)
    )
    finalizers = _finalizers(body)
    return Subject(
        resource.label,
        line(evidence.body.get("kind"), 63) or resource.kind,
        body.name,
        body.namespace,
        body.uid,
        body.generation,
        body.version,
        moment(meta.get("creationTimestamp")),
        owners,
        bool(owners) and APPLIED_ANNOTATION in body.mapping("annotations"),
        finalizers,
        _deletion_of(evidence, body, finalizers),
    )


def _finalizers(body: Body) -> tuple[str, ...]:
    found = body.meta.get("finalizers")
    names = found if isinstance(found, list) else ()
    return unique(each for each in names if isinstance(each, str))


def _deletion_of(
    evidence: Evidence, body: Body, finalizers: tuple[str, ...]
) -> Deletion | None:
    if not body.is_deleting:
        return None
    own = tuple(e for e in finalizers if e in evidence.settings.finalizers)
    rest = tuple(e for e in finalizers if e not in own)
    others = tuple(e for e in rest if e.startswith(f"{PREFIX}/"))
    foreign = tuple(e for e in rest if e not in others)
    since = moment(body.meta.get("deletionTimestamp"))
    return Deletion(since, own, others, foreign)


# ------------------------------------------------------------------ the operator


def operators_on(body: Body) -> tuple[str, ...]:
    """The names of the operators of fnop that have left marks on an object, sorted.

    >>> operators_on(Body({"metadata": {"finalizers": ["fnop.dev/db", "x"]}}))
    ('db',)
    """
    prefix = f"{PREFIX}/"
    annotations = [each for each in body.mapping("annotations") if each not in _MARKS]
    status = body.stanza("status")
    types = [line(each.get("type")) for each in items(status.get("conditions"))]
    managers = [line(each.get("manager")) for each in _managed_entries(body)]
    marks = {*annotations, *status, *types, *managers, *_finalizers(body)}
    return tuple(sorted(e.removeprefix(prefix) for e in marks if e.startswith(prefix)))


def operator_of(evidence: Evidence, body: Body) -> Operator:
    """The operator in question, and whether it is alive."""
    name, marker = evidence.settings.operator, evidence.settings.marker
    leases = tuple(_lease_of(Body(dict(e)), evidence.wall) for e in evidence.leases)
    peerings = [Body(dict(each)) for each in evidence.peerings]
    peers = tuple(found for e in peerings for found in _peerings_in(e, evidence.wall))
    on = operators_on(body)
    wrote = max(_times_of_writes(evidence, body, marker), default=None)
    life = _life_of(leases, peers, has_peering=bool(peerings))
    if wrote is not None and wrote > _silent_since(life, leases, evidence.wall):
        life = "unknown"  # the operator works without it
    if life in ("dead", "absent") and not evidence.sees_operators:
        life = "unknown"  # it may be alive, but the Lease may not be read
    return Operator(
        name,
        life,
        leases,
        peers,
        tuple(map(_place_of, peerings)),
        wrote,
        name in on,
        tuple(each for each in on if each != name),
        tuple(last_handled_places(body)),
        evidence.sees_operators,
    )


# Times written by others are in whole seconds, and come from other clocks.
_CLOCK_SECONDS = 10.0
_FRESH_SECONDS = 60.0


def _silent_since(life: str, leases: tuple[HeldLease, ...], wall: float) -> float:
    """The time after which an operator that is gone cannot have written anything."""
    match life:
        case "dead":
            renewed = [each.renewed for each in leases if each.renewed is not None]
            return max(renewed, default=0.0) + _CLOCK_SECONDS
        case "absent":
            return wall - _FRESH_SECONDS
        case _:
            return math.inf


def _times_of_writes(evidence: Evidence, body: Body, marker: str) -> Iterator[float]:
    """The times at which an operator has written the object, a child, or an Event."""
    for each in (body, *(Body(dict(child.body)) for child in evidence.children)):
        yield from (
            wrote.at
            for wrote in writers_of(each)
            if wrote.manager == marker and wrote.at is not None
        )
    for event in evidence.events:
        at = moment(event.get("lastTimestamp"))
        if at is not None and event.get("reportingComponent") == marker:
            yield at


def _lease_of(body: Body, wall: float) -> HeldLease:
    renewed = moment(body.stanza("spec").get("renewTime"))
    try:
        holder, held = parse_lease(body).holder, lease_holder(body, wall) is not None
    except OverflowError:  # a duration that no clock can represent
        holder, held = "", False
    return HeldLease(body.namespace, line(holder, 253), renewed, held)


def _place_of(body: Body) -> str:
    return f"{body.namespace}/{body.name}" if body.namespace else body.name


def _peerings_in(body: Body, wall: float) -> Iterator[Peering]:
    alive = {each.identity for each in alive_peers(body, wall)}
    for each in parse_peers(body.stanza("status"))[0]:
        until = None if each.lastseen is None else each.lastseen + each.lifetime
        yield Peering(
            _place_of(body),
            line(each.identity, 253),
            each.priority,
            each.lastseen,
            until,
            each.identity in alive,
            line(each.message, 253),
        )


def _life_of(
    leases: tuple[HeldLease, ...], peers: tuple[Peering, ...], *, has_peering: bool
) -> str:
    if freezes(peers) or rivals(peers):
        return "frozen"
    if any(each.alive for each in peers) or any(each.held for each in leases):
        return "alive"
    if leases:
        return "dead"
    return "absent" if has_peering else "unknown"


def freezes(peers: Iterable[Peering]) -> list[Peering]:
    """The records of a person that freeze all operators (`fnop freeze`).

    Such a record has a message, or that command's priority and the identity of a person
    instead of a process. No record in the peering object has a higher priority.
    """
    return [each for each in _highest_peers(peers) if _is_a_person(each)]


def rivals(peers: Iterable[Peering]) -> list[Peering]:
    """The operators that all freeze because they share the highest priority."""
    highest = _highest_peers(peers)
    places = [each.place for each in highest]
    return [each for each in highest if places.count(each.place) > 1]


def _highest_peers(peers: Iterable[Peering]) -> list[Peering]:
    alive = [each for each in peers if each.alive]
    tops = {
        place: max(each.priority for each in alive if each.place == place)
        for place in {each.place for each in alive}
    }
    return [each for each in alive if each.priority == tops[each.place]]


def _is_a_person(peer: Peering) -> bool:
    is_manual = "@" in peer.identity and "/" not in peer.identity
    return bool(peer.message) or (is_manual and peer.priority == FREEZE_PRIORITY)


# ----------------------------------------------------- conditions and managers


def conditions_of(evidence: Evidence, body: Body) -> tuple[ConditionTold, ...]:
    """The object's conditions, in the order of its status."""
    present = body.generation
    found = []
    for each in items(body.stanza("status").get("conditions")):
        about = each.get("observedGeneration")
        known = about if type(about) is int else None
        kind = line(each.get("type"), 253)
        found.append(
            ConditionTold(
                kind,
                line(each.get("status"), 20),
                line(each.get("reason"), 253),
                line(each.get("message")),
                moment(each.get("lastTransitionTime")),
                known,
                known is not None and present is not None and known < present,
                kind == evidence.settings.marker,
            )
        )
    return tuple(found)


def _managed_entries(body: Body) -> Iterator[Mapping[str, Any]]:
    return items(body.meta.get("managedFields"))


def writers_of(body: Body) -> tuple[Writer, ...]:
    """The field managers of an object, the last one first.

    >>> entry = {"manager": "kubectl", "operation": "Update",
    ...          "time": "1970-01-01T00:00:01Z", "fieldsV1": {"f:spec": {"f:a": {}}}}
    >>> writers_of(Body({"metadata": {"managedFields": [entry]}}))[0].fields
    1
    """
    found = [
        Writer(
            line(each.get("manager"), 128),
            line(each.get("operation"), 20),
            line(each.get("subresource"), 63) or _guessed_endpoint(each),
            moment(each.get("time")),
            len(fields_within(each.get("fieldsV1"))),
        )
        for each in _managed_entries(body)
    ]
    return tuple(sorted(found, key=lambda each: -(each.at or 0.0)))


def _guessed_endpoint(entry: Mapping[str, Any]) -> str:
    """The status endpoint, which servers before 1.22 do not name."""
    return "status" if [*mapping(entry.get("fieldsV1"))] == ["f:status"] else ""


# ------------------------------------------------------------------- children


def child_of(evidence: Evidence, fact: ChildFact) -> Child:
    """Describe a child."""
    body = Body(dict(fact.body))
    annotations, labels = body.mapping("annotations"), body.mapping("labels")
    marks = {
        SET_LABEL: SET_LABEL in labels,
        APPLIED_ANNOTATION: APPLIED_ANNOTATION in annotations,
    }
    lacks = tuple(name for name, there in marks.items() if not there)
    # A workload's own controller copies the workload's annotations to its ReplicaSets.
    is_copied = fact.depth > 0 and SET_LABEL in lacks
    is_applied = len(lacks) < len(marks) and not is_copied
    told, behind = _health_of_child(body)
    return Child(
        f"{_singular_name(fact)}/{body.name}",
        fact.depth,
        body.namespace,
        moment(body.meta.get("creationTimestamp")),
        moment(body.meta.get("deletionTimestamp")),
        body.is_deleting,
        is_applied,
        lacks if is_applied else (),
        _touches_since_apply(body, evidence.settings.marker) if is_applied else (),
        told,
        behind,
    )


def _singular_name(fact: ChildFact) -> str:
    name, group = fact.resource.singular or fact.resource.kind, fact.resource.group
    return f"{name.lower()}.{group}" if group else name.lower()


def _touches_since_apply(body: Body, marker: str) -> tuple[Touch, ...]:
    """The managers that have written the object itself since fnop's last apply."""
    ours = [
        moment(each.get("time"))
        for each in _managed_entries(body)
        if each.get("manager") == marker and each.get("operation") == "Apply"
    ]
    since = max((each for each in ours if each is not None), default=None)
    found = []
    for each in _managed_entries(body):
        at, who = moment(each.get("time")), line(each.get("manager"), 128)
        is_later = since is not None and at is not None and at >= since
        if who == marker or each.get("subresource") or not is_later:
            continue
        fields = [
            path
            for path in fields_within(each.get("fieldsV1"))
            if path.partition(".")[0] not in ("status", "metadata")
        ]
        if fields:
            found.append(Touch(who, at, tuple(fields[:_FIELDS_MAX])))
    return tuple(found)


def _health_of_child(body: Body) -> tuple[str, bool]:
    """The health of a child by its status, in a few words, and whether it lags.

    >>> body = Body({"spec": {"replicas": 3}, "status": {"readyReplicas": 1}})
    >>> _health_of_child(body)
    ('1 of 3 ready', True)
    >>> _health_of_child(Body({"status": {"phase": "Pending"}}))
    ('Pending', True)
    """
    spec, status = body.stanza("spec"), body.stanza("status")
    wanted, ready = spec.get("replicas"), status.get("readyReplicas", 0)
    if type(wanted) is int and type(ready) is int:
        return f"{ready} of {wanted} ready", ready < wanted
    phase = line(status.get("phase"), 63)
    troubles = unique(_container_problems(status))
    if troubles:
        return ", ".join((*filter(None, [phase]), *troubles)), True
    for each in items(status.get("conditions")):
        if each.get("type") in ("Ready", "Synced") and each.get("status") == "False":
            why = line(each.get("message"), 120) or line(each.get("reason"), 120)
            return f"not {line(each['type'])}: {why}", True
    return phase, phase in ("Pending", "Failed", "Lost")


def _container_problems(status: Mapping[str, Any]) -> Iterator[str]:
    """The reasons why a pod's containers do not run."""
    for name in ("initContainerStatuses", "containerStatuses"):
        for each in items(status.get(name)):
            waiting = mapping(mapping(each.get("state")).get("waiting"))
            if waiting.get("reason") and waiting["reason"] != "PodInitializing":
                yield line(waiting["reason"], 63)
            if _count(each.get("restartCount")):
                yield f"{_count(each['restartCount'])} restarts"
    for each in items(status.get("conditions")):
        is_unscheduled = each.get("type") == "PodScheduled"
        if is_unscheduled and each.get("status") == "False":
            yield line(each.get("message"), 120) or line(each.get("reason"), 63)


# --------------------------------------------------------------------- events


def events_of(evidence: Evidence, body: Body) -> tuple[EventTold, ...]:
    """The Events about the object and its children, the newest last.

    Events with the same content are merged.
    """
    labels = {
        line(mapping(each.body.get("metadata")).get("uid")): f"{_singular_name(each)}/"
        for each in evidence.children
    }
    found: dict[tuple[str, ...], EventTold] = {}
    for each in evidence.events:
        told = _event_told(each, labels, body.uid)
        key = (told.type, told.reason, told.message, told.about)
        same = found.get(key)
        found[key] = told if same is None else _merged_events(same, told)
    return tuple(sorted(found.values(), key=lambda each: each.at or 0.0))


def _event_told(
    event: Mapping[str, Any], labels: Mapping[str, str], uid: str
) -> EventTold:
    regarding = mapping(event.get("involvedObject"))
    whose = line(regarding.get("uid"))
    name = line(regarding.get("name"), 253)
    kind = labels.get(whose, f"{line(regarding.get('kind'), 63).lower()}/")
    series = mapping(event.get("series"))
    times = (
        series.get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        event.get("firstTimestamp"),
        mapping(event.get("metadata")).get("creationTimestamp"),
    )
    by = event.get("reportingComponent") or mapping(event.get("source")).get(
        "component"
    )
    return EventTold(
        next((at for at in map(moment, times) if at is not None), None),
        max(1, _count(event.get("count")), _count(series.get("count"))),
        line(event.get("type"), 20),
        line(event.get("reason"), 128),
        line(event.get("message")),
        "" if whose == uid else f"{kind}{name}",
        line(by, 128),
    )


def _count(value: Any) -> int:
    return value if type(value) is int else 0


def _merged_events(one: EventTold, other: EventTold) -> EventTold:
    last = max(one, other, key=lambda each: each.at or 0.0)
    return EventTold(
        last.at,
        one.count + other.count,
        last.type,
        last.reason,
        last.message,
        last.about,
        last.by,
    )
