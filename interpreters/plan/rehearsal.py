"""An operator in a simulated cluster that was restored from a real one.

Requests for objects that have not been read yet are held until the planner reads them.
Functions that run outside are held for ever: the rehearsal does not call them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from fnop.core.admission.configurations import NAME_LABEL
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import INFORMING
from fnop.core.handlers.program.program import Kind, Program
from fnop.core.operator.unserved import unserved
from fnop.core.seam.commands import (
    Command,
    Interrupt,
    ListPage,
    Perform,
    Refresh,
    Watch,
)
from fnop.core.state.lifecycle import Phase
from fnop.effects import Call, Create, List, Random
from fnop.effects.structs import replace
from fnop.interpreters import cluster as simulated
from fnop.interpreters.cluster import Cluster
from fnop.interpreters.cluster.storage.store import lookup
from fnop.interpreters.plan.observations import (
    Observations,
    place_in,
    words_for_startup,
)
from fnop.interpreters.plan.source import Known, Need
from fnop.interpreters.runtime.answers import refused
from fnop.interpreters.runtime.clock import VirtualClock
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse
from fnop.interpreters.simulation.director import Director
from fnop.interpreters.simulation.simulation import SimulatedRun

__all__ = ["Rehearsal"]

# A round lasts this long: it does not include retries that are due later ...
PATIENCE_SECONDS = 0.1
# ... but the operator may take this long to begin: a startup handler may fail at first.
STARTUP_SECONDS = 60.0
# The cluster's own controllers get this long to settle between two rounds ...
CONTROLLERS_SECONDS = 600.0
# ... and this many turns.
TURNS_MAX = 1_000
# An operator that only waits is woken in a later round if its wait is not longer.
WAIT_SECONDS_MAX = 24 * 3600.0
# The versions of two variants of a cluster are this far apart.
_SHIFT = 7_919
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
EVENTS = (("", "events"), ("events.k8s.io", "events"))
# The kinds that controllers read, in the namespace of an object of the kinds below.
_PODS = (("", "pods"),)
_SETS = (("apps", "replicasets"), *_PODS)
_ENDPOINTS = (("", "endpoints"), ("discovery.k8s.io", "endpointslices"), *_PODS)
SUPPORT = {
    ("apps", "deployments"): _SETS,
    ("apps", "replicasets"): _SETS,
    ("apps", "statefulsets"): _PODS,
    ("apps", "daemonsets"): (("", "nodes"), *_PODS),
    ("batch", "jobs"): _PODS,
    ("", "services"): _ENDPOINTS,
    ("", "pods"): (("", "services"), *_ENDPOINTS, *_SETS),
}


class Knowledge:
    """The parts of the cluster that have been read."""

    def __init__(self) -> None:
        self._whole: set[tuple[str, str, str | None]] = set()
        self._named: set[tuple[str, str, str, str]] = set()
        self._chosen: set[Need] = set()
        self.refused: dict[Need, ApiResponse] = {}

    def has(self, need: Need) -> bool:
        """Whether the need, or a collection that includes it, has been read."""
        group, plural = need.resource.group, need.resource.plural
        places = {None, need.namespace}
        if any((group, plural, place) in self._whole for place in places):
            return True
        if need.name:
            return (group, plural, need.namespace or "", need.name) in self._named
        return need in self._chosen

    def add(self, need: Need) -> None:
        """Note that the need has been read."""
        group, plural = need.resource.group, need.resource.plural
        if need.name:
            self._named.add((group, plural, need.namespace or "", need.name))
        elif need.selectors.labels or need.selectors.fields:
            self._chosen.add(need)
        else:
            self._whole.add((group, plural, need.namespace or None))


class Rehearsal(Director):
    """One operator in the restored cluster, round by round.

    It directs the operator's run: it holds requests and calls. A second run shows what
    cannot be foreseen. It has another seed, another time and another `variant` of the
    cluster, with other versions, too.
    """

    def __init__(
        self,
        program: Program,
        cluster: Cluster,
        *,
        seed: str,
        wall: float,
        variant: int = 0,
    ) -> None:
        self._shift = variant * _SHIFT
        version = cluster.version + self._shift
        self.seen = Observations(program.handlers)
        self.run = SimulatedRun(
            program,
            replace(cluster, version=version, variant=variant),
            seed=seed,
            clock=VirtualClock(wall),
            on_say=lambda say, _: self.seen.note_log_line(say),
        )
        self.run.director = self
        # Controllers have their turn between two rounds.
        self.run.has_controllers = False
        # The objects that were read, by kind, namespace and name.
        self.found: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._knows = Knowledge()
        self._needs: dict[Need, list[Command]] = {}
        self._outside: set[int] = set()
        self._lists: set[Need] = set()
        self._until = 0.0
        self._begun_at: float | None = None

    # ---------------------------------------------------------------- rounds

    def begin_round(self) -> None:
        """Begin the next round; the controllers settle before all but the first one."""
        self.seen.round += 1
        if self.seen.round > 1:
            self._settle_controllers()
            self._wake()
        self._until = self.run.clock.elapsed + PATIENCE_SECONDS
        self.run.prospects.watch_for_circles(bounded=True)

    def rest(self) -> tuple[Need, ...]:
        """Let the operator run alone until it rests; return the needs it waits for.

        The run's `unsettled` says why it does not settle.
        """
        run = self.run
        while not run.unsettled and self._take_step():
            run.unsettled = run.prospects.restless.reason()
        return tuple(self._needs)

    def _take_step(self) -> bool:
        """Take one step; False if the operator has nothing left to do now."""
        run = self.run
        if run.deliverable() is None:
            at, end = run.next_at(), self._end_of_round
            if self._needs or at is None or at > end:
                return False
            run.pass_time(end)
        place = run.deliverable()
        if place is not None:
            run.take(place)
        return True

    @property
    def _end_of_round(self) -> float:
        """The end of the round: its time begins when the operator serves."""
        if self._begun_at is None:
            return self._until + STARTUP_SECONDS
        return max(self._until, self._begun_at + PATIENCE_SECONDS)

    @property
    def waits(self) -> bool:
        """Whether the start waits for a call, or for an unreadable object."""
        return self._begun_at is None and bool(self.seen.unmade or self.seen.unread)

    def hindrances(self) -> tuple[str, ...]:
        """The reasons why the operator would not serve, in sentences, if known."""
        if self.waits:
            return ()
        exit = self.run.exit
        if exit is None and not self._is_starting:
            return self._missing_kinds()
        failing = [each for each in self.seen.failures if each.subject is None]
        if failing and self._begun_at is None:
            return tuple(dict.fromkeys(map(words_for_startup, failing)))
        return (exit.reason if exit else "its startup does not end",)

    @property
    def _is_starting(self) -> bool:
        return self.run.machine.state.lifecycle.phase is Phase.STARTING

    def _missing_kinds(self) -> tuple[str, ...]:
        """The reasons why no handler is called, if kinds are missing."""
        survey = self.run.machine.state.survey
        handlers = self.run.machine.program.handlers
        wanted = {each.id for each in handlers if each.selector and _is_acting(each)}
        served = {
            each.id for kind in survey.kinds.values() for each in _handlers_called(kind)
        }
        if not wanted or wanted & served:
            return ()
        found = unserved(handlers, survey.kinds, survey.catalogue)
        return tuple(each.sentence for each in found)

    def _settle_controllers(self) -> None:
        run = self.run
        end = run.clock.elapsed + CONTROLLERS_SECONDS
        for _ in range(TURNS_MAX):
            if run.control():
                continue
            at = run.controllers_at()
            if at is None or at > end:
                return
            run.clock.advance_to(at)

    def _wake(self) -> None:
        """Let the time pass until the operator is due, if nothing else has happened."""
        at = None if self.run.has_input else self.run.next_at()
        if at is not None and at <= self.run.clock.elapsed + WAIT_SECONDS_MAX:
            self.run.clock.advance_to(at)

    # ------------------------------------------------------------- knowledge

    def support(self) -> tuple[Need, ...]:
        """The collections that controllers of written objects read."""
        found: dict[Need, None] = {}
        kinds = {(r.group, r.plural): r for r in self._served_resources()}
        for each in self.seen.writes:
            plural, _, group = each.place.resource.partition(".")
            for other in SUPPORT.get((group, plural), ()):
                resource = kinds.get(other)
                if resource is not None:
                    place = each.place.namespace if resource.namespaced else None
                    found[Need(resource, place)] = None
        return tuple(each for each in found if not self._knows.has(each))

    def _served_resources(self) -> Iterable[Resource]:
        return self.run.machine.state.survey.catalogue.resources

    def learn(self, found: Iterable[Known]) -> None:
        """Restore the objects that were read, and resume the requests for them."""
        for known in found:
            self._restore(known)
        waiting, self._needs = self._needs, {}
        for commands in waiting.values():
            for command in commands:
                self.run.perform(command)

    def _restore(self, known: Known) -> None:
        need = known.need
        if known.refusal is not None:
            self._knows.refused[need] = known.refusal
            return
        path = (need.resource.group, need.resource.version, need.resource.plural)
        fresh = []
        for each in known.objects:
            metadata = each["metadata"]
            place = metadata.get("namespace", "")
            one = Need(need.resource, place, metadata["name"])
            if not self._knows.has(one):  # else the object may have changed here since
                fresh.append(each)
                self._knows.add(one)
                self.found[need.resource.label, place, one.name] = each
        cluster = simulated.restored(self.run.cluster, path, fresh)
        version = int(known.version) if known.version.isdecimal() else 0
        version = max(cluster.version, version + self._shift)
        self.run.cluster = replace(cluster, version=version)
        self._knows.add(need)

    def served(self) -> Iterator[tuple[Kind, dict[str, Any]]]:
        """Yield the objects that the operator lists, as they were read, by kind."""
        for kind in self.run.machine.state.survey.kinds.values():
            label = kind.resource.label
            places = {e.namespace for e in self._lists if e.resource == kind.resource}
            for (resource, namespace, _), body in self.found.items():
                if resource == label and {None, namespace} & places:
                    yield kind, body

    def _has_known(self, need: Need) -> bool:
        """Whether the need is known, by reading or because the object was made here."""
        if self._knows.has(need):
            return True
        return (
            bool(need.name)
            and self._stored_object(need.resource, need.namespace or "", need.name)
            is not None
        )

    def _stored_object(
        self, resource: Resource, namespace: str, name: str
    ) -> dict[str, Any] | None:
        stored = (resource.group, resource.plural)
        return lookup(self.run.cluster, stored, (namespace, name))

    def _need_of(self, command: Perform) -> Need | None:
        """The need that a request has before it can be answered, if any."""
        resource = command.resource
        assert resource is not None, "only effects with an address become requests"
        if (resource.group, resource.plural) in EVENTS:
            return None
        place = (command.namespace or "") if resource.namespaced else ""
        match command.effect:
            case List():
                # The rest of a selection may be requested as well, so everything is
                # read.
                return Need(resource, command.namespace)
            case Create(manifest=manifest):
                name = manifest.get("metadata", {}).get("name") or ""
            case _:
                name = command.name or ""
        return Need(resource, place, name) if name else None

    # -------------------------------------------------------------- commands

    def holds(self, command: Command) -> bool:
        """Whether a command has to wait for an object, or waits for ever."""
        match command:
            case Perform():
                return self._holds_effect(command)
            case ListPage():
                return self._holds_list(command)
            case Watch():
                return not command.version and self._holds_list(command)
            case Interrupt() | Refresh():
                return command.id in self._outside
            case _:
                return False

    def _holds_effect(self, command: Perform) -> bool:
        match command.effect:
            case Call() as call:
                self._outside.add(command.id)
                self.seen.note_call(command, call)
                return True
            case Random():
                return False
            case _:
                pass
        need = self._need_of(command)
        if need is None or self._has_known(need):
            self._have_namespace(command.resource, command.namespace)
            return False
        refusal = self._knows.refused.get(need)
        if refusal is None:
            self._needs.setdefault(need, []).append(command)
        else:  # it is held for ever
            self.seen.note_unreadable(need, refusal, command)
        return True

    def _holds_list(self, command: ListPage | Watch) -> bool:
        if self._begun_at is None and not self._is_starting:
            self._begun_at = self.run.clock.elapsed
        need = Need(command.resource, command.namespace, "", command.selectors)
        self._lists.add(need)
        if self._knows.has(need) or self._knows.has(need.collection):
            return False
        refusal = self._knows.refused.get(need)
        if refusal is None:
            self._needs.setdefault(need, []).append(command)
        else:
            self.seen.note_unreadable(need, refusal)
            end = refused(command.stream, refusal)
            self.run.reads.watches.reject(command, end)
        return True

    @property
    def sees_nothing(self) -> bool:
        """Whether the operator may not list any of its kinds."""
        return bool(self._lists) and self._lists <= self._knows.refused.keys()

    def _have_namespace(self, resource: Resource | None, name: str | None) -> None:
        """Assume that an unreadable namespace exists if a request is about it."""
        if resource is None or not resource.namespaced or not name:
            return
        if self._knows.has(Need(NAMESPACES, "", name)):
            return
        if self._stored_object(NAMESPACES, "", name) is None:
            body = {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {
                    "name": name,
                    "labels": {NAME_LABEL: name},
                    "resourceVersion": "0",
                },
                "status": {"phase": "Active"},
            }
            path = ("", "v1", "namespaces")
            self.run.cluster = simulated.restored(self.run.cluster, path, [body])

    def sends(
        self,
        command: Perform,
        request: ApiRequest,
        send: Callable[[ApiRequest], ApiResponse],
    ) -> ApiResponse:
        """The response of the simulated cluster; a request that writes is noted."""
        if request.method == "GET":
            return send(request)
        resource, name = command.resource, command.name or ""
        assert resource is not None, "only effects with an address become requests"
        namespace = (command.namespace or "") if resource.namespaced else ""
        before = self._stored_object(resource, namespace, name) if name else None
        response = send(request)
        name = name or _name_given(request, response)
        after = self._stored_object(resource, namespace, name)
        place = place_in(resource, namespace, name)
        self.seen.note_write(command, request, response, place, before, after)
        return response


def _is_acting(handler: Handler) -> bool:
    """Whether a handler may do something: others only inform handlers."""
    return handler.role not in INFORMING


def _handlers_called(kind: Kind) -> tuple[Handler, ...]:
    return (*kind.changes, *kind.event_handlers, *kind.background, *kind.reconcilers)


def _name_given(request: ApiRequest, response: ApiResponse) -> str:
    """The name of a created object; without one, the beginning of its name."""
    for body, key in ((response.body, "name"), (request.body, "generateName")):
        metadata = body.get("metadata") if isinstance(body, Mapping) else None
        if metadata and metadata.get(key):
            return str(metadata[key])
    return ""
