"""A part of a recorded run as a scenario: for a test, and for faults around it.

The objects are those that the operator had seen by a step. Later changes by others are
a script of actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.core.values.body import Body
from fnop.effects import Answer, Outcome, Raised
from fnop.effects.values import thaw_json
from fnop.effects.wire import digest_of
from fnop.interpreters.cluster import Off, empty_cluster
from fnop.interpreters.recording.model.calls import Recorded
from fnop.interpreters.recording.model.excerpt import Excerpt, resource_of, runs_pods
from fnop.interpreters.recording.model.refs import Place
from fnop.interpreters.recording.model.world import Foreign, change_of
from fnop.interpreters.simulation.actions import (
    Action,
    Apply,
    Delete,
    Edit,
    SetPace,
    Wait,
)
from fnop.interpreters.simulation.assumed import assumed_definitions
from fnop.interpreters.simulation.scenario import is_own

__all__ = ["Fit", "Incident", "fit_of", "incident_of"]

Json = dict[str, Any]

# Shorter pauses are not intended.
PAUSE_MIN = 0.5
_APPROVED = "api-approved.kubernetes.io"


class Incident(Struct, frozen=True):
    """A part of a recorded run.

    `definitions` are those of kinds that a simulated cluster does not know. `restored`
    are the objects at the beginning, `start` its time, and `script` the later actions
    of others. `answers` are the values and errors that called functions gave, by the
    function and their arguments, in their order. `end` are the objects at the end.
    `left` is the time from the end of the script until the last answer of a function
    that differs from the one before. `left_out` are sentences about things that a
    simulated cluster cannot have.
    """

    definitions: Sequence[Json]
    restored: Sequence[Json]
    start: float
    script: Sequence[Action]
    answers: Mapping[str, Sequence[tuple[Json, Answer | Raised]]]
    end: Mapping[Place, Json]
    left: float
    left_out: Sequence[str]


def incident_of(excerpt: Excerpt, definitions: Sequence[Json] = ()) -> Incident:
    """The incident in an excerpt; `definitions` are the available ones.

    Kinds without a definition allow any field: a recording has no schemas.
    """
    assumed = [*map(_manifest, _definitions_of_kinds(excerpt, definitions))]
    known = {
        (each["spec"]["group"], each["spec"]["names"]["plural"])
        for each in (*definitions, *assumed)
    }
    catalogue = excerpt.catalogue
    builtin = {(kind.group, kind.plural) for kind in _registry()}
    lacking = {
        f"{resource.plural}: a simulated cluster does not have them"
        for resource in _resources(catalogue, excerpt.places)
        if (resource.group, resource.plural) not in known | builtin
    }

    def is_known(place: Place) -> bool:
        resource = resource_of(catalogue, place)
        if resource is None or is_own(place.kind, place.name) or place.kind == "Event":
            return False
        return (resource.group, resource.plural) in known | builtin

    changes = [each for each in excerpt.changes if is_known(each.place)]
    return Incident(
        [*definitions, *assumed],
        [each for place, each in excerpt.objects.items() if is_known(place)],
        excerpt.wall,
        [
            *([] if runs_pods(excerpt) else [SetPace("kubelet", Off())]),
            *_script(excerpt, changes),
        ],
        _answers_by_function(excerpt.answers),
        {place: each for place, each in excerpt.end.items() if is_known(place)},
        _wait_after_changes(excerpt, changes),
        sorted(lacking),
    )


# -------------------------------------------------------------------- definitions


class Fit(Struct, frozen=True):
    """The agreement of definitions with the kinds of a recorded part, by their names.

    `lacking` are custom kinds without a definition. `unused` are the definitions of
    kinds that do not occur in the part. `others` are the custom kinds with their
    version (`databases.fnop.dev/v1`) that their definition does not serve.
    """

    lacking: Sequence[str]
    unused: Sequence[str]
    others: Sequence[str]


def fit_of(excerpt: Excerpt, definitions: Sequence[Json]) -> Fit:
    """Compare definitions with the kinds of a part of a run.

    Raises `ValueError` in a sentence for a definition that does not name its kind.
    """
    known = dict(map(_served_versions, definitions))
    builtin = {(kind.group, kind.plural) for kind in _registry()}
    present = _resources(excerpt.catalogue, excerpt.places)
    watched = [e for e in excerpt.catalogue.resources if e.key in excerpt.watched]
    custom = {
        f"{each.plural}.{each.group}": each
        for each in (*watched, *present)
        if each.group and (each.group, each.plural) not in builtin
    }
    return Fit(
        [*(each for each in custom if each not in known)],
        [*(each for each in known if each not in custom)],
        [
            f"{name}/{each.version}"
            for name, each in custom.items()
            if name in known and each in present
            if (each.version, each.kind) not in known[name]
        ],
    )


def _served_versions(definition: Json) -> tuple[str, set[tuple[str, str]]]:
    """The kind of a definition, and its served versions with their kinds."""
    try:
        spec = definition["spec"]
        names = spec["names"]
        versions = {
            (str(each["name"]), str(names["kind"]))
            for each in spec["versions"]
            if each.get("served")
        }
        return f"{names['plural']}.{spec['group']}", versions
    except (AttributeError, KeyError, TypeError) as problem:
        raise ValueError(
            f"the definition {definition['metadata'].get('name')} is no whole one: it "
            "needs spec.group, spec.names with plural and kind, and spec.versions"
        ) from problem


def _registry() -> Iterable[Any]:
    return empty_cluster().registry.by_path.values()


def _resources(catalogue: Catalogue, places: Iterable[Place]) -> list[Resource]:
    found = (resource_of(catalogue, each) for each in places)
    return [*dict.fromkeys(each for each in found if each is not None)]


def _definitions_of_kinds(excerpt: Excerpt, definitions: Sequence[Json]) -> list[Json]:
    """Definitions of the kinds that the operator has watched, or worked with."""
    wanted = {each.key for each in _resources(excerpt.catalogue, excerpt.places)}
    wanted |= excerpt.watched
    kinds = [each for each in excerpt.catalogue.resources if each.key in wanted]
    groups = {(each.group, each.plural) for each in kinds}
    served = [e for e in excerpt.catalogue.resources if (e.group, e.plural) in groups]
    catalogue = Catalogue(tuple(each for each in served if each.group))
    return assumed_definitions(catalogue, empty_cluster(), definitions)


def _manifest(definition: Json) -> Json:
    metadata = dict(definition["metadata"])
    if definition["spec"]["group"].endswith(("k8s.io", "kubernetes.io")):
        metadata["annotations"] = {_APPROVED: "unapproved, assumed of a recording"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": definition["spec"],
    }


# ------------------------------------------------------------------------- script


def _script(excerpt: Excerpt, changes: Iterable[Foreign]) -> Iterator[Action]:
    wall = excerpt.wall
    for each in changes:
        if each.wall - wall >= PAUSE_MIN:
            yield Wait(round(each.wall - wall, 3))
        wall = max(wall, each.wall)
        resource = resource_of(excerpt.catalogue, each.place)
        if resource is not None:
            yield from _actions(resource, each)


def _actions(resource: Resource, change: Foreign) -> Iterator[Action]:
    place, before, after = change.place, change.before, change.after
    where = f"{resource.plural}.{resource.group}".rstrip(".") + f"/{place.name}"
    namespace = place.namespace or None
    if after is None:
        yield Delete(where, namespace)
        return
    main, status = change_of(before or {}, after)
    if before is None:
        yield Apply(main)
    elif main := {key: value for key, value in main.items() if value != {}}:
        yield Edit(where, main, namespace)
    if status:
        yield Edit(where, {"status": status}, namespace)
    was_deleting = before is not None and Body(before).is_deleting
    if Body(after).is_deleting and not was_deleting:
        yield Delete(where, namespace)


# ------------------------------------------------------------------------ answers


def _answers_by_function(
    found: Iterable[Recorded],
) -> dict[str, list[tuple[Json, Answer | Raised]]]:
    """The answers by functions; answers to equal arguments are together."""
    answers: dict[str, dict[str, list[tuple[Json, Answer | Raised]]]] = {}
    for call, outcome, *_ in found:
        # An impure handler is called with the object as it was: nothing asks that
        # again.
        if isinstance(outcome, Answer | Raised) and not call.as_handler:
            pair = thaw_json(call.arguments), outcome
            equal = answers.setdefault(call.function, {})
            equal.setdefault(digest_of(call), []).append(pair)
    return {
        function: [pair for each in equal.values() for pair in each]
        for function, equal in answers.items()
    }


def _wait_after_changes(excerpt: Excerpt, changes: Sequence[Foreign]) -> float:
    """The time after the last change until the last answer that is new."""
    last: dict[str, Outcome] = {}
    until = begun = max((each.wall for each in changes), default=excerpt.wall)
    for call, outcome, _, wall in excerpt.answers:
        key = digest_of(call)
        if key in last and last[key] != outcome:
            until = max(until, wall)
        last[key] = outcome
    left = until - begun
    return round(left, 3) if left >= PAUSE_MIN else 0.0
