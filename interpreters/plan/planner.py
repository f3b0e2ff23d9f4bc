"""Plan what an operator would do to a cluster that can be read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

from fnop.core.api.namespaces import has_patterns, served_namespaces
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import ACTIVITIES
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.operator.absent_namespaces import ABSENT
from fnop.effects.structs import replace
from fnop.interpreters import cluster as simulated
from fnop.interpreters.cluster import Cluster
from fnop.interpreters.plan.changes import changes_of, notices_of
from fnop.interpreters.plan.dry_run import DryRunOnly, asked, tried, untried, updates
from fnop.interpreters.plan.facts import (
    Change,
    Due,
    Failure,
    Notice,
    Place,
    Plan,
    Stale,
    Unfound,
    Unmade,
    Write,
    sources_of,
)
from fnop.interpreters.plan.failing import failures_of
from fnop.interpreters.plan.masking import Masking
from fnop.interpreters.plan.rehearsal import NAMESPACES, Rehearsal
from fnop.interpreters.plan.source import Cluster as RealCluster, Known, Need
from fnop.interpreters.plan.takeover import due_in
from fnop.interpreters.plan.trying import corrected
from fnop.interpreters.recording.redaction import Redaction
from fnop.interpreters.runtime.answers import message_of, version_of
from fnop.interpreters.runtime.machine import Machine
from fnop.interpreters.runtime.protocol import Asked
from fnop.interpreters.simulation.assumed import assumed_definitions

__all__ = ["PlanProblem", "Planner"]

CRDS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
Told = TypeVar("Told", Failure, Notice)
# The second run, which shows what cannot be foreseen, starts this much later.
_LATER_SECONDS = 1.5


class PlanProblem(Exception):
    """A plan cannot be made as requested; the text says why."""


class Planner:
    """Plans what an operator would do to a cluster.

    `wall` is the present time (Unix seconds); `seed` generates random numbers. `pause`
    waits the given number of seconds, `jitter` is a number from 0 to 1. Secrets are
    masked: the secrets of recordings, or as `masking` does it. `begins` is called with
    the machine of each rehearsal, for a program that looks at the operator's state.
    Raises `PlanProblem`, `ReadProblem`, and `Unreachable` when the server does not
    answer.
    """

    def __init__(
        self,
        program: Program,
        api: Asked,
        *,
        wall: float,
        seed: str = "plan",
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = lambda: 0.5,
        masking: Masking | None = None,
        begins: Callable[[Machine], None] = lambda machine: None,
    ) -> None:
        self._api, self._begins = api, begins
        self.source = RealCluster(api, pause=pause, jitter=jitter)
        self._given = program
        self._wall, self._seed = wall, seed
        skipped, kept = _split(program.handlers)
        self._skipped = skipped
        self._program = Program(kept, _settings_alone(program.settings))
        self._masking = masking or Masking(Redaction(seed.encode(), program))
        self.notes: list[str] = []
        self.first: Rehearsal | None = None
        self.second: Rehearsal | None = None

    async def plan(
        self,
        rounds: int = 1,
        *,
        takeover: bool = False,
        dry_run: bool = False,
    ) -> Plan:
        """Read the cluster, rehearse, and re-read the objects that would change.

        With `takeover`, the plan has the handlers that an operator calls when it takes
        over from Kopf. With `dry_run`, the planner also sends the requests of the first
        round as dry runs.
        """
        base, basis = await self._restored()
        self.first = self._new_rehearsal(base, basis, self._seed, self._wall, 0)
        await self._rehearse(self.first, rounds)
        self._masking.learn(self.first.found.values())
        self._masking.learn(each.after for each in self.first.seen.writes)
        self._check_service(self.first)
        due, unfound = self._due_after_takeover(self.first) if takeover else (None, ())
        later = self._wall + _LATER_SECONDS
        seed = f"{self._seed}-2"  # it becomes a part of Events' names
        self.second = self._new_rehearsal(base, basis, seed, later, 1)
        await self._rehearse(self.second, rounds)
        absent = await self._missing_namespaces(self.first, basis)
        self.notes += absent
        found = self._found(self.first, self.second)
        stale = await self._stale_objects(found)
        plan = self._plan_from(found, stale, due, rounds)
        plan = replace(plan, unfound=unfound, absent=tuple(absent))
        return await self._try_requests(plan) if dry_run else plan

    def _check_service(self, rehearsal: Rehearsal) -> None:
        """Refuse a plan of an operator that lacks everything it needs to work."""
        if rehearsal.sees_nothing:
            why = "; ".join(dict.fromkeys(each.why for each in rehearsal.seen.unread))
            raise PlanProblem(f"nothing that the operator serves can be read: {why}")
        if hindrances := rehearsal.hindrances():
            why = self._masking.text("; ".join(hindrances))
            raise PlanProblem(f"the operator would not serve: {why}")

    async def _missing_namespaces(
        self, rehearsal: Rehearsal, basis: Iterable[Known]
    ) -> list[str]:
        """Sentences about selected namespaces that do not exist, as far as is known.

        A user who may not list namespaces may still be allowed to get one of them.
        """
        given = rehearsal.run.machine.settings.namespaces or ()
        every = next((e for e in basis if e.need.resource == NAMESPACES), None)
        if every is None:
            return []  # the server has no namespaces
        names = [each for each in given if not has_patterns([each])]
        needs = [Need(NAMESPACES, "", each) for each in names]
        found = await self.source.objects(needs)
        notes = [
            f"the namespace {need.name} does not exist"
            for need, body in found.items()
            if body is None
        ]
        present = [each["metadata"]["name"] for each in every.objects]
        if every.refusal is None and not served_namespaces(given, present):
            notes += [f"no namespace fits {each}" for each in given]
        return notes

    async def _try_requests(self, plan: Plan) -> Plan:
        assert self.second is not None, "it was rehearsed"
        api = DryRunOnly(self._api)
        twins = {each.identity: each for each in self.second.seen.writes}
        answers = await asked(api, plan.requests)
        self._masking.learn(e.body for _, e in answers if isinstance(e.body, dict))
        left = [each.label for each in untried(plan.requests)]
        notes = [f"not tried, for its namespace is not there yet: {e}" for e in left]
        stored = updates(answers)
        notes += [_stored_note(each.place) for each in stored]
        known = self._changes(stored, stored)
        return replace(
            plan,
            changes=corrected(plan.changes, known) if stored else plan.changes,
            tried=tried(answers, twins, self._masking),
            tries=api.tries,
            notes=(*plan.notes, *notes),
        )

    # --------------------------------------------------------------- reading

    async def _restored(self) -> tuple[Cluster, list[Known]]:
        """The cluster before any request: its kinds and namespaces."""
        catalogue, problem = await self.source.catalogue()
        if problem is not None:
            self.notes.append(f"not all kinds of the server are known: {problem}")
        needs = [Need(each, None) for each in (CRDS, NAMESPACES)]
        served = {(r.group, r.version, r.plural) for r in catalogue.resources}
        cluster = simulated.blank_cluster(self._seed, 0, served)
        found = await self.source.read(
            each for each in needs if _path(each.resource) in served
        )
        for known in found:
            if known.refusal is not None:
                why = message_of(known.refusal)
                label = known.need.resource.label
                remedy = _ASSUMED[known.need.resource.plural]
                self.notes.append(f"{label} cannot be read ({why}): {remedy}")
        definitions = [e for each in found for e in each.objects if _is_crd(e)]
        assumed = assumed_definitions(catalogue, cluster, definitions)
        return simulated.describing(cluster, assumed), found

    def _new_rehearsal(
        self,
        base: Cluster,
        basis: Sequence[Known],
        seed: str,
        wall: float,
        variant: int,
    ) -> Rehearsal:
        made = Rehearsal(self._program, base, seed=seed, wall=wall, variant=variant)
        self._begins(made.run.machine)
        made.learn(basis)
        return made

    async def _rehearse(self, rehearsal: Rehearsal, rounds: int) -> None:
        for number in range(rounds):
            if number:
                rehearsal.learn(await self.source.read(rehearsal.support()))
            rehearsal.begin_round()
            while needs := rehearsal.rest():
                rehearsal.learn(await self.source.read(needs))
        rehearsal.run.machine.close()

    # ------------------------------------------------------------- reporting

    def _found(self, one: Rehearsal, other: Rehearsal) -> tuple[Change, ...]:
        return self._changes(one.seen.writes, other.seen.writes)

    def _changes(
        self, writes: Iterable[Write], others: Iterable[Write]
    ) -> tuple[Change, ...]:
        assert self.first is not None, "it was rehearsed"
        handlers, settings = self._program.handlers, self.first.run.machine.settings
        return changes_of(writes, others, handlers, settings, self._masking.shown)

    async def _stale_objects(self, changes: Iterable[Change]) -> tuple[Stale, ...]:
        """The objects of the first round that have changed since they were read."""
        needs: dict[Need, Change] = {}
        for each in changes:
            resource, place = self._resource(each), each.place
            if each.round == 1 and resource is not None and place.name:
                needs[Need(resource, place.namespace, place.name)] = each
        found = await self.source.again(needs)
        reasons = (
            (needs[need], _change_meanwhile(needs[need], found[need])) for need in found
        )
        return tuple(Stale(each.place, why) for each, why in reasons if why)

    def _resource(self, change: Change) -> Resource | None:
        assert self.first is not None, "it was rehearsed"
        place = change.place
        for each in self.first.run.machine.state.survey.catalogue.resources:
            if (each.api_version, each.kind) == (place.api_version, place.kind):
                return each
        return None

    def _due_after_takeover(
        self, rehearsal: Rehearsal
    ) -> tuple[tuple[Due, ...], tuple[Unfound, ...]]:
        settings = rehearsal.run.machine.settings
        if not settings.succeeds_kopf:
            raise PlanProblem(
                "the operator takes over from nobody: let a startup handler return "
                'settings.replace(takes_over="kopf.zalando.org")'
            )
        if rehearsal.waits:
            raise PlanProblem(
                "--takeover has no answer: the startup handlers wait for a call, which "
                "a plan does not make"
            )
        state = rehearsal.run.machine.state
        due, unfound = due_in(state, settings, rehearsal.served(), self._wall)
        mask = self._masking.text
        return due, tuple(replace(each, why=mask(each.why)) for each in unfound)

    def _plan_from(
        self,
        changes: tuple[Change, ...],
        stale: tuple[Stale, ...],
        due: tuple[Due, ...] | None,
        rounds: int,
    ) -> Plan:
        rehearsal = self.first
        assert rehearsal is not None, "it was rehearsed"
        seen = rehearsal.seen
        handlers, masked = self._program.handlers, self._mask_messages
        # `_missing_namespaces` reports absent namespaces, and may know more.
        notes = [
            each for each in _notes_of_run(rehearsal) if not each.startswith(ABSENT)
        ]
        return Plan(
            changes,
            (*_startup_calls(self._skipped), *seen.unmade),
            masked(notices_of(seen.writes, handlers)),
            masked(failures_of(seen.failures, seen.writes, handlers)),
            tuple(replace(e, why=self._masking.text(e.why)) for e in seen.unread),
            stale,
            due,
            tuple(map(self._masking.text, (*self.notes, *notes))),
            rounds=rounds,
            reads=self.source.reads,
            is_restless=bool(rehearsal.run.unsettled),
            requests=tuple(seen.writes),
        )

    def _mask_messages(self, told: Iterable[Told]) -> tuple[Told, ...]:
        """Failures and Events, with the secrets in their messages masked."""
        return tuple(
            replace(each, message=self._masking.text(each.message)) for each in told
        )


def _stored_note(place: Place) -> str:
    """A sentence about a write that only the simulated server refuses."""
    return (
        f"{place.label}: the server accepts the request that the simulated one "
        "refuses, so its answer is shown; the plan's failures and Events, and its "
        "other changes, may follow from that refusal"
    )


def _change_meanwhile(change: Change, present: dict[str, Any] | None) -> str:
    """The change that an object has had meanwhile, in words, or ""."""
    if change.before is None:
        return "" if present is None else "somebody has created it"
    if present is None:
        return "somebody has deleted it"
    return "" if version_of(present) == change.version else "somebody has changed it"


_ASSUMED = {
    "customresourcedefinitions": "kinds are taken to have no schema",
    "namespaces": "those of the operator's objects are taken to be there",
}


def _path(resource: Resource) -> tuple[str, str, str]:
    return resource.group, resource.version, resource.plural


def _is_crd(body: dict[str, Any]) -> bool:
    return bool(body.get("kind") == CRDS.kind)


def _settings_alone(settings: Settings) -> Settings:
    """The settings of an operator that neither looks nor waits for others."""
    return settings.replace(peering=None, election=None)


def _split(
    handlers: Iterable[Handler],
) -> tuple[tuple[Handler, ...], tuple[Handler, ...]]:
    """The impure activity handlers, which must not block the plan; the others.

    The plan assumes that the impure handlers succeed.
    """
    skipped: list[Handler] = []
    kept: list[Handler] = []
    for each in handlers:
        is_outside = bool(each.function) and each.role in ACTIVITIES
        (skipped if is_outside else kept).append(each)
    return tuple(skipped), tuple(kept)


def _startup_calls(handlers: Iterable[Handler]) -> list[Unmade]:
    return [
        Unmade(1, each.function, True, each.id, sources_of([each], each.id), None)
        for each in handlers
        if each.role.value == "startup"
    ]


def _notes_of_run(rehearsal: Rehearsal) -> list[str]:
    """Sentences about the limits of the plan."""
    notes = [*rehearsal.seen.warnings]
    if rehearsal.run.unsettled:
        notes.append(f"the operator does not come to rest: {rehearsal.run.unsettled}")
    if rehearsal.waits:
        wait = "the startup handlers wait for what is not known"
        notes.append(f"{wait}, so nothing else is foreseen")
    return notes
