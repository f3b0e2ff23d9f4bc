"""The operator's state on an object: the last handled change, and the work under way.

Not everything is in it. fnop does not store a retry that comes within a minute (R19).
It stores nothing about reconcile handlers, which are called for the present state.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from fnop.core.memory.observation import (
    Observation,
    Seen,
    digest_at,
    essence_of,
    hidden_of,
    observed_at,
    see,
)
from fnop.core.memory.progress import Progress
from fnop.core.memory.seals import is_sealed
from fnop.core.memory.storage import Place, Places, Unreadable
from fnop.core.memory.stored_state import Stored, read_stored
from fnop.core.values.body import Body
from fnop.core.values.cause import Reason
from fnop.core.values.diff import diff, path_at, pointer
from fnop.core.values.entries import is_of_entries
from fnop.effects.structs import replace
from fnop.interpreters.explain.facts import Evidence, line, unique
from fnop.interpreters.explain.story import ConditionTold, HandlerState, State

__all__ = ["dotted", "state_of", "with_condition"]

_NOTHING = State("", "", "none", "unknown", (), ())


def state_of(evidence: Evidence, body: Body) -> State:
    """Describe the operator's state on an object; never raises."""
    places = evidence.settings.places
    there = [each for each in places.of_object(body) if _read_at(each, body)]
    mine = (e for e in there if read_stored(_read_at(e, body), body.uid) is not None)
    found = next(mine, next(iter(there), None))
    if found is None:
        return _NOTHING
    raw = _read_at(found, body)
    if isinstance(raw, Unreadable):
        return _unreadable_state(_place_name(found), raw.problem, "none")
    signature = _signature_of(places, raw)
    if signature == "bad":
        problem = "no key that was given has signed it for this object"
        return _unreadable_state(_place_name(found), problem, signature)
    try:
        stored = read_stored(raw, body.uid)
        if stored is None:
            problem = "it is of another object, which had this name before"
            return _unreadable_state(
                _place_name(found), problem, signature, handled="no"
            )
        if isinstance(stored, Unreadable):
            return _unreadable_state(_place_name(found), stored.problem, signature)
        return _state_told(evidence, body, stored, _place_name(found), signature)
    except (ValueError, TypeError, OverflowError, RecursionError) as problem:
        why = f"it cannot be compared with the object: {problem}"
        return _unreadable_state(_place_name(found), why, signature)


def _read_at(place: Place, body: Body) -> Any:
    return place.read(body)


def _place_name(place: Place) -> str:
    if place.in_status:
        return "status"
    is_annotation = bool(place.paths) and place.paths[0][:2] == (
        "metadata",
        "annotations",
    )
    return "annotation" if is_annotation else "other"


def _unreadable_state(
    place: str, problem: str, signature: str, handled: str = "unknown"
) -> State:
    return State(place, line(problem, 300), signature, handled, (), ())


def _signature_of(places: Places, raw: Any) -> str:
    if places.seal is not None:
        if not places.seal.opens(raw):
            return "bad"
        return "good" if is_sealed(raw) else "none"
    return "unchecked" if is_sealed(raw) else "none"


def _state_told(
    evidence: Evidence, body: Body, stored: Stored, place: str, signature: str
) -> State:
    observation = _observation(evidence, stored)
    now = see(Body(body.data), observation)
    handled = "no" if stored.seen is None else "creating" if stored.creating else "yes"
    changed: tuple[str, ...] = ()
    if stored.seen is not None:
        changed = _changed_fields(stored.seen, now, body, observation)
    whole = digest_at(body, (), observation)
    known = frozenset((*now.digests.values(), whole)) if changed else None
    handlers = _handlers(stored, known, is_deleting=body.is_deleting)
    paths = map(path_at, () if stored.seen is None else stored.seen.digests)
    indices = dict.fromkeys(path[1] for path in paths if is_of_entries(path))
    return State(
        place, "", signature, handled, changed, tuple(handlers), tuple(indices)
    )


def _observation(evidence: Evidence, stored: Stored) -> Observation:
    """The view that the operator had of the object when it wrote the state."""
    ignored = tuple(map(path_at, stored.ignoring))
    own = evidence.settings.places.paths
    stored_scopes = () if stored.seen is None else map(path_at, stored.seen.digests)
    # Only the operator knows the entries of indices.
    scopes = tuple(each for each in stored_scopes if not is_of_entries(each))
    return Observation(scopes, (), ignored, own, hidden_of(ignored, own))


def _changed_fields(
    was: Seen, now: Seen, body: Body, observation: Observation
) -> tuple[str, ...]:
    """The fields that differ now, by the stored values or else by digests."""
    found: list[str] = []
    differing = [s for s, each in now.digests.items() if was.digests.get(s) != each]
    for scope in differing:
        path = path_at(scope)
        if was.values is None or scope not in was.values.parsed:
            found.append(dotted(path))
            continue
        value = (
            observed_at(body, path, observation.own, observation.hidden)
            if path
            else essence_of(body, observation.hidden)
        )
        items = diff(was.values.parsed[scope], value, path)
        # If a field is null instead of absent, only its digest differs.
        found += [dotted(each.field) for each in items] or [dotted(path)]
    return _without_parents(unique(found))


def _without_parents(paths: Iterable[str]) -> tuple[str, ...]:
    """The paths without the parents of other paths in the list.

    >>> _without_parents(["", "spec.size"]), _without_parents(["spec", "spec.size"])
    (('spec.size',), ('spec.size',))
    """
    every = tuple(paths)
    return tuple(
        each
        for each in every
        if not any(
            other != each and other.startswith(f"{each}." if each else "")
            for other in every
        )
    )


def dotted(path: tuple[str, ...]) -> str:
    """A path as people write it; a JSON pointer if a key has a dot.

    >>> dotted(("spec", "size")), dotted(("metadata", "labels", "a.b/c"))
    ('spec.size', '/metadata/labels/a.b~1c')
    """
    return pointer(path) if any("." in key for key in path) else ".".join(path)


# A condition's message: each handler with its result (`core/memory/conditions.py`). A
# failure begins with one of these phrases.
_FAILED = re.compile(r"(?:^|; )(?=[^\s;:]+: (?:failed for good|has timed out))")


def with_condition(state: State, condition: ConditionTold | None) -> State:
    """The state, with the handlers that appear only in the operator's condition.

    The operator shortens a state once a change is handled. Handlers that failed for
    good, or that wait for less than a minute, are then only in the condition.
    """
    if condition is None or condition.status != "False":
        return state
    reason, stage = condition.reason.removesuffix("Waiting"), "waiting"
    if condition.reason.endswith("Failed"):
        reason, stage = condition.reason.removesuffix("Failed"), "failed"
    known = {each.id for each in state.handlers if each.stage == stage}
    found = [
        HandlerState(name, stage, reason.lower(), 0, None, None, text)
        for name, text in _handlers_in_message(condition.message, stage)
        if name not in known
    ]
    return replace(state, handlers=(*state.handlers, *found))


def _handlers_in_message(message: str, stage: str) -> Iterator[tuple[str, str]]:
    """The handlers that a message names, with their texts.

    >>> message = "a: failed for good: no; sorry; b: has timed out"
    >>> [*_handlers_in_message(message, "failed")]
    [('a', 'no; sorry'), ('b', 'has timed out')]
    """
    parts = _FAILED.split(message) if stage == "failed" else [message]
    for part in filter(None, parts):
        name, colon, text = part.partition(": ")
        if colon:
            yield name, _failure_message(text)


def _failure_message(message: str) -> str:
    """The message of a failure without the verdict, which `stage` holds.

    >>> _failure_message("failed for good: no")
    'no'
    >>> _failure_message("failed for good after 3 attempts: no")
    'after 3 attempts: no'
    """
    return message.removeprefix("failed for good").lstrip(": ")


def _handlers(
    stored: Stored, digests: frozenset[str] | None, *, is_deleting: bool
) -> Iterator[HandlerState]:
    """The handlers' records; `digests` is None for an object that has not changed."""
    for name, each in stored.progress.items():
        reason, _, observed = each.aim.partition(":")
        if reason != Reason.DELETE.value and is_deleting:
            continue  # a deletion has begun: other changes are no longer handled
        stage = _stage_of(each, observed, reason, digests)
        yield HandlerState(
            line(name, 253),
            stage,
            line(reason, 20),
            each.retries,
            each.started,
            each.until,
            _failure_message(line(each.message, 512)),
        )


def _stage_of(
    record: Progress, observed: str, reason: str, digests: frozenset[str] | None
) -> str:
    if not record.aim:
        return "again"
    is_bound = reason in (Reason.CREATE.value, Reason.UPDATE.value)
    is_of_now = digests is None or observed in digests or not is_bound
    if record.finished == "success":
        # fnop never repeats a creation that has succeeded (R15).
        return "done" if is_of_now or reason == Reason.CREATE.value else "again"
    if not is_of_now:
        return "again"
    if record.finished == "failure":
        return "failed"
    if record.waits:
        return "waiting"
    return "retrying" if record.until is not None else "started"
