"""The simulation for tests: an operator, a cluster and virtual time in one value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fnop.adapters.common.manifests import namespace_for
from fnop.adapters.common.yaml_values import teach_yaml
from fnop.adapters.testing.cases import CheckProblem, heeded_in
from fnop.adapters.testing.laws import Law, names_of
from fnop.adapters.testing.setup import Manifests, Operator, Setup, manifests_in
from fnop.core.api.resources import Resource, path_of
from fnop.core.children.fields import lacking
from fnop.core.handlers.declare.settings import Settings
from fnop.core.seam.commands import Say
from fnop.core.values.body import View
from fnop.effects.values import check_seconds
from fnop.interpreters.check.campaign.explore import (
    Case,
    Explorer,
    benign_run,
    prepared,
)
from fnop.interpreters.check.properties import judged
from fnop.interpreters.check.properties.evidence import seen_by
from fnop.interpreters.check.state.kinds import Fault, in_words
from fnop.interpreters.check.state.records import Phase
from fnop.interpreters.check.trials.trial import Trial
from fnop.interpreters.cluster import Pace, empty_cluster
from fnop.interpreters.runtime.clock import EPOCH, VirtualClock
from fnop.interpreters.runtime.protocol import ApiRequest
from fnop.interpreters.simulation.actions import (
    Action,
    ActionRefused,
    Apply,
    Delete,
    Edit,
    SetPace,
    Wait,
    WriteLog,
    act,
    address_of,
    outage,
    upgrade,
)
from fnop.interpreters.simulation.scenario import (
    ApplyProblem,
    catalogue_of,
    objects_of,
    restore,
)
from fnop.interpreters.simulation.simulation import SimulatedRun, begin_reviewing

__all__ = ["Simulation"]

# pytest shows the author's line, and skips the lines of this module.
__tracebackhide__ = True


class Simulation:
    """A cluster in memory with one operator, on virtual time.

    `operator` and the arguments up to `script` are those of a `World`, which describes
    them. `seed` varies random values; equal seeds lead to equal runs, to the byte. No
    network is used, and no real time passes.

    With `faults`, made by `crash` and `fault`, actions are done when the simulation
    settles, and the operator meets each fault at its site (docs/reference/faults.md).
    Only then `script` and `former` count. Raises `TypeError` if these two are given
    without `faults`, and `DefinitionProblem` for a class that cannot be defined.

    `restored` are objects of another cluster, for example from `kubectl get -o yaml`,
    with their uids, versions and status. They exist before the operator begins. `start`
    is the time then; give one with a time zone.

    Objects are named as in kubectl: `claims/c`, or `claims.example.com/c`, in
    `namespace` unless a verb gets another one: `get("claims/c", namespace="b")`. Raises
    `AssertionError` for a manifest that the cluster refuses.

        def test_a_claim_gets_its_phase():
            sim = Simulation("operator.py", crds="crd.yaml", objects="claim.yaml")
            assert sim.settle()["claims/c"].status["phase"] == "Bound"
            assert not sim.errors
    """

    def __init__(
        self,
        operator: Operator = None,
        *,
        crds: Manifests = (),
        objects: Manifests = (),
        namespace: str = "default",
        settings: Settings | None = None,
        leader_elect: bool = False,
        calls: Mapping[Any, Callable[..., Any]] | None = None,
        seed: str = "0",
        guard: bool = True,
        faults: Iterable[Fault] | None = None,
        script: str | Path | None = None,
        former: Operator = None,
        restored: Manifests = (),
        start: datetime | None = None,
    ) -> None:
        setup = Setup(
            operator,
            crds=crds,
            objects=objects,
            namespace=namespace,
            settings=settings,
            leader_elect=leader_elect,
            guard=guard,
            calls=calls,
            script=script,
            former=former,
        )
        self._begin(setup, seed, faults, restored, start)

    @classmethod
    def of(
        cls,
        setup: Setup,
        *,
        seed: str = "0",
        faults: Iterable[Fault] | None = None,
        restored: Manifests = (),
        start: datetime | None = None,
    ) -> Simulation:
        """Simulate a `setup`, such as a `World`."""
        found = cls.__new__(cls)
        found._begin(setup, seed, faults, restored, start)
        return found

    def _begin(
        self,
        setup: Setup,
        seed: str,
        faults: Iterable[Fault] | None,
        restored: Manifests,
        start: datetime | None,
    ) -> None:
        teach_yaml()
        if faults is None and not (setup.script is None and setup.former is None):
            raise TypeError("script= and former= count for faults alone: give faults=")
        self.namespace = setup.namespace
        self._said: list[Say] = []
        self._trial: Trial | None = None
        self.settled = False
        """Whether the last `settle` has come to rest; `unsettled` tells why not."""
        case = _case_of(setup, restored, EPOCH if start is None else start.timestamp())
        if faults is not None:
            self._begin_trial(case, setup, [*faults])
            return
        self._run = SimulatedRun(
            case.program,
            empty_cluster(seed, case.start),
            seed=seed,
            clock=VirtualClock(case.start),
            calls=setup.models(),
            on_say=lambda say, _: self._said.append(say),
        )
        self._fill(case)

    def _fill(self, case: Case) -> None:
        """Create what exists before the user begins."""
        if case.namespace != "default":
            self.apply(namespace_for(case.namespace))
        self.apply(case.definitions)
        try:
            restore(self._run, case.restored)
        except ApplyProblem as problem:
            raise AssertionError(str(problem)) from problem
        self.apply(case.given)

    def _begin_trial(self, case: Case, setup: Setup, faults: list[Fault]) -> None:
        try:
            heeded = heeded_in(setup.script_module())
        except CheckProblem as problem:
            raise AssertionError(str(problem)) from None
        (self._case,) = setup.add_others([case._replace(**heeded)])
        trial = Trial(prepared(self._case), tuple(faults))
        trial.is_open = True
        self._trial, self._run = trial, trial.run
        heard = trial.director.hears

        def hears(say: Say, wall: float) -> None:
            self._said.append(say)
            heard(say, wall)

        self._run.on_say = hears

    # --------------------------------------------------------------- the user

    def apply(self, manifests: Manifests) -> Simulation:
        """Create the objects of `manifests`, or merge them into those that exist.

        Raises `AssertionError` with the server's sentence if it refuses one.
        """
        for manifest in sorted(manifests_in(manifests), key=_order):
            self._act(Apply(manifest))
        return self

    def edit(
        self, where: str, *, namespace: str | None = None, **changes: Any
    ) -> Simulation:
        """Merge changes into an object: `edit("claims/c", spec={"size": "2Gi"})`.

        `where` names the object, as kind/name; `namespace` is the simulation's by
        default. `changes` are top-level stanzas; None removes a field. A `status` is
        written to the status subresource if there is one. Raises `AssertionError` if
        the server refuses the edit.
        """
        self._act(Edit(where, changes, namespace))
        return self

    def delete(
        self,
        where: str,
        *,
        namespace: str | None = None,
        propagation: str | None = None,
    ) -> Simulation:
        """Delete an object, as `kubectl delete --wait=false` does.

        `where` names the object, as kind/name; `namespace` is the simulation's by
        default; `propagation` is "Background", "Foreground" or "Orphan".
        """
        self._act(Delete(where, namespace, propagation))
        return self

    def pace(self, controller: str, pace: Pace) -> Simulation:
        """Set a controller's pace: `On()`, `Off()`, `Stuck()`, `Slow(5)`.

        `controller` is its name, such as "deployment"; "kubelet" runs pods. The `pace`
        is one of `fnop.testing`.
        """
        self._act(SetPace(controller, pace))
        return self

    def upgrade(self, release: str) -> Simulation:
        """Upgrade the API server to a release, such as `"1.37"`; it restarts.

        Raises `ValueError` for any other text.
        """
        self._act(upgrade(release))
        return self

    def outage(self, duration: timedelta | float) -> Simulation:
        """Stop the API server from answering the operator for a `duration` from now.

        It is a timedelta, or seconds. No time passes during this call: `wait` or
        `settle` follow. Raises `ValueError` if it is not positive.
        """
        self._act(outage(_seconds_of(duration)))
        return self

    def log_line(
        self,
        where: str,
        text: str,
        *,
        container: str | None = None,
        namespace: str | None = None,
    ) -> Simulation:
        """Let a container write `text`, one or more lines, to its log.

        `where` names the pod, as `pods/web-0`; `container` may be left out if there is
        only one; `namespace` is the simulation's by default. Raises `AssertionError` if
        there is no such container, or if it does not run.
        """
        self._act(WriteLog(where, text, container, namespace))
        return self

    # --------------------------------------------------------------- the time

    def settle(self) -> Simulation:
        """Run the operator and the cluster until nothing is left to do.

        Virtual time passes as needed, a week at most. Timers and daemons never end: the
        run has settled when each of them has had its turn and nothing was written. A
        run that loops or fails forever is given up. Then `settled` is False, and
        `unsettled` is a sentence with the reason.
        """
        if self._trial is not None:
            if self._trial.phase is not Phase.DONE:
                self._trial.settle()
            self.settled = not self._trial.journal.unsettled
        else:
            self.settled = self._run.settle()
        return self

    def heal(self) -> Simulation:
        """End all faults, let everything settle, and restart the operator twice.

        No action may follow: do all actions before. Raises `AssertionError` if the
        simulation has no `faults`, if one of them has not occurred, and for an action
        that the cluster refuses without faults as well.
        """
        trial = self._required_trial()
        if trial.journal.refusals:  # by a fault, or whatever happens?
            case = self._case._replace(script=trial.scene.script)
            for each in benign_run(case).trial.journal.refusals:
                raise AssertionError(str(each))
        if trial.state.left:
            raise AssertionError(
                f"the fault did not occur: {trial.state.left[0]}; a site is named "
                "by its handler, its effect and its target, as fnop check prints them"
            )
        trial.is_open = False
        trial.play()
        return self

    def must_have(self, manifests: Manifests) -> Simulation:
        """Fail unless the objects of `manifests` exist, with all their fields.

        Fields that a manifest does not name do not matter; null means that the field is
        missing. Raises `AssertionError` with the differences.
        """
        wrong: list[str] = []
        for each in manifests_in(manifests):
            meta = each["metadata"]
            resource = catalogue_of(self._run).of_manifest(each)
            place = meta.get("namespace") or self.namespace
            found = resource and self._found(resource, meta["name"], place)
            where = f"{resource.label if resource else each['kind']} {meta['name']}"
            if not found:
                wrong.append(f"{where} is not there")
            else:
                wrong += [f"{where}: {one}" for one in lacking(each, found)]
        if wrong:
            raise AssertionError("\n  ".join(("the end is another one:", *wrong)))
        return self

    def must_equal_benign(self) -> Simulation:
        """Fail unless the world equals the world of the same script without faults.

        Raises `AssertionError` with the differences.
        """
        return self.must_hold("same_end")

    def must_hold(self, *properties: str | Law) -> Simulation:
        """Fail unless these properties of `fnop check` hold; without any, all of them.

        Each is a name, or one of those that `explore(...).must` takes. Heals first, if
        that was not done. Raises `AssertionError` if one is violated, and `ValueError`
        for an unknown name.
        """
        names = names_of(properties)
        trial = self._required_trial()
        if trial.phase is not Phase.DONE:
            self.heal()
        explorer = Explorer(self._case._replace(script=trial.scene.script))
        found = judged(explorer.reference.benign, seen_by(trial), names)
        if not trial.struck:
            found = list(explorer.benign.violations)
            found = [each for each in found if each.property in names]
        for sentence in (*explorer.mistakes, *map(str, explorer.refused)):
            raise AssertionError(sentence)
        if found:
            lines = [in_words(tuple(trial.struck))]
            for each in found:
                lines += [f"{each.property}: {each.message}", *each.details[1:]]
            raise AssertionError("\n  ".join(lines))
        return self

    def _required_trial(self) -> Trial:
        if self._trial is None:
            raise AssertionError("the simulation has no faults: give it faults=[...]")
        return self._trial

    def wait(self, duration: timedelta | float) -> Simulation:
        """Let a `duration` pass: a timedelta, or seconds, from 0 to ten years.

        Raises `AssertionError` if virtual time does not pass because fnop calls the
        operator again and again at once. Raises `TypeError` or `ValueError` for
        anything but a duration.
        """
        duration = _seconds_of(duration)
        check_seconds(duration, "the time to wait")
        if self._trial is not None:
            self._add(self._trial, Wait(duration))
            return self
        if not self._run.wait(duration):
            raise AssertionError(f"the time does not pass: {self.unsettled}")
        return self

    def restart(self) -> Simulation:
        """Kill the operator at its present state, and start a new one."""
        self._run.crash()
        return self

    def stop(self) -> Simulation:
        """Ask the operator to end in order, and let it."""
        self._run.stop()
        self._run.settle(seconds=120)
        return self

    # --------------------------------------------------------------- the look

    @property
    def unsettled(self) -> str:
        """The reason why the last `settle` has not settled, in a sentence; or ""."""
        return self._run.unsettled

    def __repr__(self) -> str:
        """The text that a failed `assert sim.settled` shows."""
        state = "settled" if self.settled else f"not settled: {self.unsettled}"
        return f"<Simulation after {self.elapsed}, {state.removesuffix(': ')}>"

    def __getitem__(self, where: str) -> View:
        """An object that must exist: `sim["claims/c"].status["phase"]`.

        Raises `KeyError` with the names of existing objects of the kind.
        """
        found = self.get(where)
        if found is None:
            raise NoSuchObject(self._absence(where))
        return found

    def __contains__(self, where: str) -> bool:
        """Whether an object exists: `"claims/c" in sim`."""
        return self.get(where) is not None

    def get(self, where: str, *, namespace: str | None = None) -> View | None:
        """Read an object; None if it does not exist.

        `where` names it, as kind/name; `namespace` is the simulation's by default.
        """
        resource, name = self._address(where)
        found = self._found(resource, name, namespace or self.namespace)
        return None if found is None else View.of(found, self._run.clock.now().wall)

    def objects(self, kind: str) -> list[View]:
        """Read all objects of a `kind`, in all namespaces."""
        wall = self._run.clock.now().wall
        resource = self._resource(kind)
        return [View.of(each, wall) for each in objects_of(self._run, resource)]

    def events(self, where: str | None = None) -> list[View]:
        """Read the Kubernetes Events, or only those about one object.

        `where` names the object, as kind/name.
        """
        found = self.objects("events.v1.")
        if where is None:
            return found
        resource, name = self._address(where)
        about = (resource.kind, name)
        return [
            each
            for each in found
            if (each["involvedObject"].get("kind"), each["involvedObject"].get("name"))
            == about
        ]

    @property
    def elapsed(self) -> timedelta:
        """The virtual time that has passed."""
        return timedelta(seconds=self._run.clock.elapsed)

    @property
    def now(self) -> datetime:
        """The time of the virtual wall clock."""
        return datetime.fromtimestamp(self._run.clock.now().wall, UTC)

    @property
    def log(self) -> list[str]:
        """The messages that the operator has logged."""
        return [say.message for say in self._said]

    @property
    def errors(self) -> list[str]:
        """The messages that the operator has logged as errors."""
        return [say.message for say in self._said if say.level == "error"]

    @property
    def writes(self) -> list[str]:
        """The operator's own writing requests, as `PATCH /api/v1/...`."""
        requests = (each for each in self._run.requests if each.method != "GET")
        return [f"{each.method} {each.path}" for each in requests]

    # ---------------------------------------------------------------- plumbing

    def _act(self, action: Action) -> None:
        if self._trial is not None:
            self._add(self._trial, action)
            return
        if not (isinstance(action, Apply) and action.manifest.get("kind") in _FIRST):
            begin_reviewing(self._run)
        try:
            act(self._run, action, self.namespace)
        except ActionRefused as problem:
            raise AssertionError(str(problem)) from None

    def _add(self, trial: Trial, action: Action) -> None:
        if trial.phase is Phase.DONE:
            raise AssertionError(
                f"`{action}` comes after heal(), which ends the story: do it before, "
                "or in another Simulation"
            )
        trial.add(action)

    def _resource(self, kind: str) -> Resource:
        catalogue = catalogue_of(self._run)
        found = catalogue.lookup(kind)
        if found is None:
            raise AssertionError(
                catalogue.absence(
                    kind, "the cluster", "; give its definition with crds="
                )
            )
        return found

    def _address(self, where: str) -> tuple[Resource, str]:
        try:
            return address_of(self._run, where)
        except ActionRefused as problem:
            raise AssertionError(str(problem)) from None

    def _absence(self, where: str) -> str:
        """The sentence about an object that does not exist."""
        resource, _ = self._address(where)
        names = [
            f"{each.name} in {each.namespace}" if each.namespace else str(each.name)
            for each in self.objects(where.partition("/")[0])
        ]
        place = f" in {self.namespace}" if resource.namespaced else ""
        there = f"there is {', '.join(names)}" if names else "there is none"
        late = "" if self._run.steps else "; the operator has not run yet: settle()"
        return f"there is no {where}{place}; of {resource.plural} {there}{late}"

    def _found(
        self, resource: Resource, name: str, namespace: str
    ) -> dict[str, Any] | None:
        response = self._run.request(
            ApiRequest("GET", path_of(resource, namespace, name))
        )
        return response.body if response.status == 200 else None


class NoSuchObject(KeyError):
    """A KeyError whose sentence is shown unchanged, without quotes around it."""

    def __str__(self) -> str:
        return str(self.args[0])


def _case_of(setup: Setup, restored: Manifests, start: float) -> Case:
    """The world of a setup, without a script."""
    program = setup.program()
    crds, objects = manifests_in(setup.crds), manifests_in(setup.objects)
    before = manifests_in(restored)
    own = setup.class_definitions(program, (*crds, *before, *objects))
    return Case(
        program,
        [*own, *crds],
        (),
        objects,
        setup.models(),
        namespace=setup.namespace,
        restored=before,
        start=start,
    )


def _order(manifest: Mapping[str, Any]) -> int:
    return _FIRST.get(manifest.get("kind", ""), len(_FIRST))


# Kinds on which others depend: they are applied first.
_FIRST = {"CustomResourceDefinition": 0, "Namespace": 1}


def _seconds_of(duration: timedelta | float) -> float:
    """A duration in seconds."""
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    return duration
