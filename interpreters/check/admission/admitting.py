"""The writes of a run, tried again: the laws that admission handlers keep.

A webhook decides about everybody's writes, so its defects stop others. Some objects can
then never be deleted, some stored objects can never be changed, or an operator denies
its own writes. The handlers are functions of the request. So the writes of a run
without faults are tried again in the world at their time, also with other objects. In
addition, each stored object is tried with the writes that it will meet: by users, the
garbage collector, and the operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any

from fnop.core.admission.decisions import Decision
from fnop.core.api.resources import Resource, path_of
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import ADMISSION
from fnop.core.handlers.program.program import Program
from fnop.effects.structs import replace
from fnop.interpreters.check.admission.laws import (
    changes_again,
    is_frozen,
    is_held,
    leaves_traces,
    spoils,
    stays,
    unjudged,
    wavers,
)
from fnop.interpreters.check.inputs.input_reads import below
from fnop.interpreters.check.inputs.likely import constants_of, others_of
from fnop.interpreters.check.inputs.redeciding import (
    ABSENT,
    Inputs,
    quietly,
)
from fnop.interpreters.check.state.grounds import (
    STRICT,
    Asked,
    Ground,
    Stored,
    fresh,
    named,
)
from fnop.interpreters.check.state.sites import object_path
from fnop.interpreters.check.trials.trial import Trial
from fnop.interpreters.runtime.protocol import ApiRequest, User
from fnop.interpreters.simulation.admission import ACCOUNT, has_admission
from fnop.interpreters.simulation.scenario import is_own

__all__ = ["Admitting"]

# The creations of a run that are tried with other objects, and the number of these.
CREATIONS_MAX, OTHERS_MAX = 4, 40
# The values of one field that are tried, and the states of objects.
VALUES_MAX, OBJECTS_MAX = 6, 40


class Admitting:
    """The defects of a run's admission handlers: a few sentences for each law."""

    def __init__(self, trial: Trial | None = None) -> None:
        is_asked = trial is not None and has_admission(trial.scene.program)
        self._trial = trial if is_asked else None

    # --------------------------------------------------------------------- the laws

    @cached_property
    def idempotent(self) -> tuple[str, ...]:
        """Mutations that change their own result again."""
        return self._distinct_sentences(
            changes_again(each) for each in self._asked_decisions
        )

    @cached_property
    def accepted(self) -> tuple[str, ...]:
        """Mutations that turn a good object into one that is refused."""
        return self._distinct_sentences(spoils(each) for each in self._asked_decisions)

    @cached_property
    def traceless(self) -> tuple[str, ...]:
        """Handlers that act outside although nothing is stored."""
        return self._distinct_sentences(
            leaves_traces(each) for each in self._asked_decisions
        )

    @cached_property
    def steady(self) -> tuple[str, ...]:
        """Validations that answer the same question in two ways."""
        return self._distinct_sentences(wavers(each) for each in self._asked_decisions)

    @cached_property
    def deletable(self) -> tuple[str, ...]:
        """Objects that users cannot delete, or that never disappear once deleted."""
        return self._distinct_sentences(
            sentences
            for each in self._last_states
            for sentences in (stays(each), is_held(each))
        )

    @cached_property
    def updatable(self) -> tuple[str, ...]:
        """Objects that users can no longer change."""
        stored = (*self._stored_objects, *self._formerly_stored_objects)
        return self._distinct_sentences(is_frozen(each) for each in stored)

    @cached_property
    def admits_itself(self) -> tuple[str, ...]:
        """Writes of the operator, or on its behalf, that it denies for ever."""
        return self._distinct_sentences(
            (self._own_denials(), self._denials_on_behalf())
        )

    def _distinct_sentences(self, found: Iterable[Iterable[str]]) -> tuple[str, ...]:
        if self._trial is None:
            return ()
        with quietly():
            return tuple(dict.fromkeys(each for one in found for each in one))

    # ------------------------------------------------------------------------ requests

    @property
    def handlers(self) -> tuple[Handler, ...]:
        """The operator's handlers, if it has any for admission."""
        return () if self._trial is None else self._trial.scene.program.handlers

    @property
    def reviewed(self) -> list[Decision]:
        """The decisions of the run."""
        return (
            []
            if self._trial is None
            else [e.decision for e in self._trial.journal.reviews.decided]
        )

    @cached_property
    def unjudged(self) -> list[tuple[Handler, str]]:
        """The handlers that deny deletions because of other things, and those."""
        with quietly():
            return [found for each in self._last_states for found in unjudged(each)]

    @property
    def decisions(self) -> list[Decision]:
        """These decisions, and those about writes that are tried again."""
        with quietly():
            return [each.decision for each in self._asked_decisions]

    @cached_property
    def _asked_decisions(self) -> list[Asked]:
        """The decisions of the run, and those about objects like the created ones."""
        if self._trial is None:
            return []
        found = [
            Asked(e.decision, self._ground_of(e))
            for e in self._trial.journal.reviews.decided
        ]
        for each in self._creations:
            found += _similar_decisions(each)
        for stored in self._last_states:  # the cluster's controllers make some
            for request in _usual_writes(stored):
                found += stored.asked(request)
        return [*found, *self._decisions_for_other_kinds()]

    def _decisions_for_other_kinds(self) -> Iterator[Asked]:
        """The decisions about objects of kinds that the run does not create."""
        assert self._trial is not None
        trial = self._trial
        place = max(trial.journal.rests, default=None)
        if place is None:
            return
        reviewed = {e.decision.request.plural for e in trial.journal.reviews.decided}
        reviewed |= {each.name.partition("/")[0] for each in self._stored_objects}
        ground = self._ground_at(place)
        for kind in _kinds_of(trial.scene.program, ground.state).values():
            if kind.plural not in reviewed:
                path = path_of(kind, trial.scene.namespace if kind.namespaced else None)
                post = ApiRequest(
                    "POST", path, (), _minimal_object(kind, trial.scene.program)
                )
                if ground.after(post) is not None:
                    for decision in ground.tried(post).decisions:
                        yield Asked(decision, ground)

    def _ground_at(self, place: int) -> Ground:
        """The world at the rest after a number of actions."""
        assert self._trial is not None
        trial = self._trial
        cluster, _, state, _ = trial.journal.rests[place]
        assert state is not None, "the operator has admission handlers"
        wall = trial.run.clock.now().wall
        return Ground(trial.scene.program, wall, cluster, state, trial.run.calls.models)

    def _ground_of(self, found: Any) -> Ground:
        assert self._trial is not None
        program, wall = self._trial.scene.program, self._trial.run.clock.now().wall
        return Ground(program, wall, found.cluster, found.state, found.calls)

    @cached_property
    def _stored_objects(self) -> list[Stored]:
        """The objects of the run that concern handlers, in each state."""
        if self._trial is None:
            return []
        trial, known = self._trial, dict[tuple[str, str], Stored]()
        given = _uids(trial.scene.base.cluster)
        seen: set[str] = set()
        for place in sorted(trial.journal.rests):
            ground = self._ground_at(place)
            reviewed = _kinds_of(trial.scene.program, ground.state)
            for resource, found in ground.objects():
                meta = found["metadata"]
                key = meta["uid"], meta["resourceVersion"]
                if resource not in reviewed or "deletionTimestamp" in meta:
                    continue
                if is_own(reviewed[resource].kind, meta["name"]):
                    continue  # the cluster creates it
                path = object_path(trial.run, found, meta.get("namespace", ""))
                if path is None or key in known:
                    continue
                name = f"{resource[1]}/{meta['name']}"
                is_given, is_new = meta["uid"] in given, meta["uid"] not in seen
                body = ground.tried(ApiRequest("GET", path)).response.body
                known[key] = Stored(body, ground, path, name, is_given, is_new)
                seen.add(meta["uid"])
        return [*known.values()][:OBJECTS_MAX]

    @cached_property
    def _formerly_stored_objects(self) -> list[Stored]:
        """Objects that the former code has admitted, or would have admitted."""
        former = None if self._trial is None else self._trial.scene.former
        if former is None:
            return []
        found = []
        for each in self._creations:
            before = replace(each.ground, program=former)
            given = fresh(each.decision.request.object or {})
            path = object_path(
                before.run(), given, each.decision.request.namespace or ""
            )
            if path is None:
                continue
            own = ApiRequest("POST", path.rpartition("/")[0], (), given)
            for post in (own, *_similar_creations(each)):
                tried = before.tried(post)
                if tried.response.status < 300:
                    ground = replace(each.ground, cluster=tried.cluster)
                    name = f"{each.decision.request.plural}/{given['metadata']['name']}"
                    body = tried.response.body
                    found.append(
                        Stored(body, ground, path, name, is_given=True, is_new=True)
                    )
        return found

    @property
    def _creations(self) -> list[Asked]:
        """Some reviewed creations of the run."""
        assert self._trial is not None
        found = [
            Asked(each.decision, self._ground_of(each))
            for each in self._trial.journal.reviews.decided
            if each.decision.request.operation == "CREATE"
        ]
        return found[:CREATIONS_MAX]

    @property
    def _last_states(self) -> list[Stored]:
        """Each object in its last state."""
        return [
            *{
                each.found["metadata"]["uid"]: each for each in self._stored_objects
            }.values()
        ]

    # ----------------------------------------------------------------- own writes

    def _own_denials(self) -> Iterator[str]:
        assert self._trial is not None
        last: dict[tuple[str, ...], Decision] = {}
        for each in self._trial.journal.reviews.decided:
            request = each.decision.request
            if request.user == ACCOUNT.name:
                key = request.plural, request.label, request.operation
                last[key] = each.decision
        for (plural, label, operation), decision in last.items():
            for denial in decision.denials:
                yield (
                    f"{named(denial)} denies the operator's own write, and the "
                    f"operator never gets it through: {operation} of {plural}/{label}: "
                    f"{denial.message}; let it pass, or do without own_writes=True"
                )

    def _denials_on_behalf(self) -> Iterator[str]:
        """Denials of objects that the controllers of the cluster have created."""
        assert self._trial is not None
        mine = {
            e.body["metadata"]["uid"]
            for e in self._trial.journal.writes
            if _is_whole(e)
        }
        reviewed = {
            (each.decision.request.plural, each.decision.request.label)
            for each in self._trial.journal.reviews.decided
        }
        for each in self._stored_objects:
            meta = each.found["metadata"]
            owners = [e for e in meta.get("ownerReferences", ()) if e.get("controller")]
            label = "/".join(filter(None, (meta.get("namespace"), meta["name"])))
            kind = each.name.partition("/")[0]
            if each.is_given or not owners or meta["uid"] in mine:
                continue
            if (kind, label) in reviewed or not _is_of_controllers(owners[0]):
                continue
            controller = owners[0]["kind"].lower()
            user = User(f"system:serviceaccount:kube-system:{controller}-controller")
            gone = each.ground.after(each.sends("DELETE", {"gracePeriodSeconds": 0}))
            if gone is None:
                continue
            body = fresh(each.found)
            path = each.path.rpartition("/")[0]
            tried = gone.tried(ApiRequest("POST", path, (), body, user=user))
            for denial in tried.denials:
                yield (
                    f"{named(denial)} denies what the cluster makes on the operator's "
                    f"behalf: the {controller} controller cannot create {each.name}: "
                    f"{denial.message}"
                )


def _usual_writes(stored: Stored) -> Iterator[ApiRequest]:
    """The writes that any object may meet."""
    yield stored.sends("PUT", stored.found)
    yield stored.sends("DELETE")
    yield stored.sends("PUT", stored.found, sub="/status")
    scale = stored.ground.tried(stored.sends("GET", sub="/scale")).response
    if scale.status == 200:
        yield stored.sends("PUT", scale.body, sub="/scale")


def _uids(cluster: Any) -> frozenset[str]:
    return frozenset(
        found["metadata"]["uid"]
        for shelf in cluster.shelves.values()
        for found in shelf.values()
    )


def _kinds_of(program: Program, state: Any) -> dict[tuple[str, str], Resource]:
    """The kinds that admission handlers are asked about, by group and plural."""
    return {
        (each.group, each.plural): each
        for handler in program.handlers
        if handler.role in ADMISSION and handler.selector is not None
        for each in state.survey.catalogue.find(handler.selector)
    }


def _minimal_object(kind: Resource, program: Program) -> dict[str, Any]:
    """A new object of a kind with the labels that handlers select, and little else."""
    labels = {
        name: value if isinstance(value, str) else "x"
        for handler in program.handlers
        if handler.role in ADMISSION
        for name, value in handler.filters.labels
    }
    containers = [{"name": "main", "image": "main"}]
    spec = {"spec": {"containers": containers}} if kind.kind == "Pod" else {}
    meta = {"name": "x", "labels": labels}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **spec}


def _is_whole(write: Any) -> bool:
    return isinstance(write.body, dict) and "uid" in (write.body.get("metadata") or {})


def _is_of_controllers(owner: Mapping[str, Any]) -> bool:
    """Whether the cluster's own controllers create the objects of an owner."""
    group = str(owner.get("apiVersion")).rpartition("/")[0]
    return group in ("apps", "batch")


# --------------------------------------------------------------------- other objects

_LABELS = ("metadata", "labels")


def _similar_decisions(asked: Asked) -> Iterator[Asked]:
    """The decisions about objects that differ in one field from a created one."""
    for post in _similar_creations(asked):
        for decision in asked.ground.tried(post).decisions:
            yield Asked(decision, asked.ground)


def _similar_creations(asked: Asked) -> Iterator[ApiRequest]:
    """The creations of such objects, as far as the cluster accepts them."""
    request, ground = asked.decision.request, asked.ground
    found = request.object or {}
    path = object_path(ground.run(), found, request.namespace or "")
    if path is None:
        return
    known = [
        constant
        for handler in ground.program.handlers
        if handler.id in asked.decision.asked
        for constant in constants_of(handler.declared)
    ]
    whole = Inputs(fresh(found), ())
    stanzas = [("object", *each) for each in (("spec",), ("data",), _LABELS)]
    fields = [path for each in stanzas for path in below(each, whole.at(each))]
    fields += [each for each in stanzas if whole.at(each) is not ABSENT]
    others = (
        whole.with_(field, value).object
        for field in fields
        for value in (
            ABSENT,
            *islice(others_of(whole.at(field), known), VALUES_MAX),
        )
    )
    for body in islice(others, OTHERS_MAX):
        post = ApiRequest("POST", path.rpartition("/")[0], STRICT, body)
        if ground.after(post) is not None:
            yield post
