"""The property that an author adds: the expectations hold."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from immutables import Map
from msgspec import Struct

from fnop.effects import Answer, Applied
from fnop.effects.structs import replace
from fnop.interpreters.check.properties.evidence import (
    Benign,
    Property,
    Scope,
    Seen,
    Violation,
    has_struck,
    tampers,
)
from fnop.interpreters.check.state.expectations import Expectation, error_in
from fnop.interpreters.check.state.kinds import Trait
from fnop.interpreters.check.state.pictures import Past, Picture, Request
from fnop.interpreters.check.state.records import Asked, Glimpse, Phase
from fnop.interpreters.check.trials.trial import Trial
from fnop.interpreters.cluster import Cluster, StoredEvent
from fnop.interpreters.simulation.scenario import catalogue_of

__all__ = ["PROPERTIES", "errors_of_expectations", "matches"]

# The past participles of the verbs, for messages.
_DONE = {"create": "created", "update": "changed", "delete": "deleted"}


def matches(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """The expectations of the author hold after the faults, and stay true."""
    if tampers(seen.trial):
        return
    for each in _unmet_expectations(seen):
        yield Violation("matches", each.message)
        return


def errors_of_expectations(seen: Seen) -> tuple[str, ...]:
    """A sentence for each expectation that fails itself, and so proves nothing."""
    errors = (each.message for each in _unmet_expectations(seen) if each.is_error)
    return tuple(dict.fromkeys(errors))


class _Unmet(Struct, frozen=True):
    """An expectation that does not hold; whether by an error of its own."""

    message: str
    is_error: bool = False


def _unmet_expectations(seen: Seen) -> Iterator[_Unmet]:
    """The expectations that do not hold: at each rest, and always."""
    expectations = seen.trial.scene.expectations
    for picture in _pictures_at_rest(seen) if expectations else ():
        for each in expectations:
            yield from _unmet_in_picture(picture, each)
    always = [each for each in expectations if each.always]
    # A moment after a deletion by others, or a restored backup, is not the operator's.
    if not always or has_struck(seen.trial, Trait.DELETES):
        return
    for event, picture in _moments(seen):
        for each in always:
            change = picture.change_of(event)
            when = f", right after {change.target} is {_DONE[change.verb]}"
            yield from _unmet_in_picture(picture, each, when)


def _unmet_in_picture(
    picture: Picture, expectation: Expectation, when: str = ""
) -> Iterator[_Unmet]:
    """The objects of a picture that violate an expectation."""
    kind, holds = expectation.kind, expectation.holds
    name = getattr(holds, "__name__", "the expectation")
    for each in picture.objects(kind):
        is_going = each.metadata.deletion_timestamp is not None
        if is_going and not expectation.deleting:
            continue
        where = f"{kind}/{each.name}"
        try:
            if not holds(each, picture):
                yield _Unmet(f"{name} does not hold for {where}{when}")
        except Exception as problem:
            error = error_in(holds, problem)
            yield _Unmet(
                f"the expectation {name} itself raises {error} for {where}{when}; "
                "let it answer False where something is missing",
                True,
            )


# ---------------------------------------------------------------------- pictures


def _pictures_at_rest(seen: Seen) -> Iterator[Picture]:
    """The world at each rest after the faults."""
    trial = seen.trial
    wall = trial.run.clock.now().wall
    for phase in (Phase.HEALED, Phase.RESTARTED, Phase.AGAIN):
        end = trial.journal.ends[phase].cluster
        past = Past(
            partial(_events_until, seen, end.version),
            partial(_requests_by_phase, trial, phase),
            trial.journal.kept.models.get(phase, {}),
            trial.drawn,
        )
        yield _picture_of(trial, end, wall, past)


def _moments(seen: Seen) -> Iterator[tuple[StoredEvent, Picture]]:
    """Each change of the cluster since the script began, and the world after it."""
    trial, cluster = seen.trial, seen.trial.journal.beginning
    glimpses = iter(trial.journal.kept.glimpses)
    glimpse, following = Glimpse(0, 0.0, {}), next(glimpses, None)
    for event in seen.events:
        while following is not None and following.version < event.version:
            glimpse, following = following, next(glimpses, None)
        cluster = _cluster_after(cluster, event)
        past = Past(
            partial(_events_until, seen, event.version),
            partial(_requests_before, trial, event.version),
            glimpse.calls,
            trial.drawn,
        )
        yield event, _picture_of(trial, cluster, glimpse.wall, past)


def _picture_of(trial: Trial, cluster: Cluster, wall: float, past: Past) -> Picture:
    return Picture(cluster, catalogue_of(trial.run), wall, trial.scene.namespace, past)


def _cluster_after(cluster: Cluster, event: StoredEvent) -> Cluster:
    """The cluster with the objects as they are after an event."""
    shelf = cluster.shelves.get(event.resource, Map[tuple[str, str], Any]())
    key = (event.namespace or "", event.object["metadata"]["name"])
    is_gone = event.type == "DELETED"
    shelf = shelf.delete(key) if is_gone else shelf.set(key, event.object)
    shelves = {**cluster.shelves, event.resource: shelf}
    return replace(cluster, version=event.version, shelves=shelves)


def _events_until(seen: Seen, version: int) -> list[StoredEvent]:
    return [each for each in seen.events if each.version <= version]


def _requests_by_phase(trial: Trial, phase: Phase) -> list[Request]:
    return [_request(each) for each in trial.journal.kept.asked if each.phase <= phase]


def _requests_before(trial: Trial, version: int) -> list[Request]:
    return [
        _request(each) for each in trial.journal.kept.asked if each.version < version
    ]


def _request(asked: Asked) -> Request:
    match asked.outcome:
        case None:
            answer = ""
        case Applied() | Answer():
            answer = "accepted"
        case other:
            answer = type(other).__name__.lower()
    site = asked.site
    return Request(site.verb, site.target, site.handler, answer)


PROPERTIES = (
    Property(
        matches,
        "what the author expects holds after the faults, and stays true",
        10,
        Scope.END,
    ),
)
