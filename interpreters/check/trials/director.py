"""The director of a trial's run: which delivery is next, and the outcomes of requests.

It notes the requests and decisions of the operator, and lets faults strike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from fnop.core.admission.decisions import Decision
from fnop.core.api.reviews import Request
from fnop.core.seam.commands import Perform, Say
from fnop.core.seam.effect_rules import uid_meant
from fnop.core.seam.inputs import Bookmark, LogLines, StreamEnded, WatchEvent
from fnop.effects import (
    Answer,
    Applied,
    Apply as ApplyEffect,
    Delete as DeleteEffect,
    Outcome,
    Patch,
    Random,
    Refused,
)
from fnop.interpreters.check.state.grounds import Ground
from fnop.interpreters.check.state.kinds import Place, Site
from fnop.interpreters.check.state.records import (
    Absence,
    Phase,
    Rejection,
    Reviewed,
    Write,
)
from fnop.interpreters.check.state.sites import asked_at, sent_at, target_of
from fnop.interpreters.check.state.state import TrialState
from fnop.interpreters.check.state.user import is_reached
from fnop.interpreters.check.trials import catalogue
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse
from fnop.interpreters.simulation.director import Crashed, Director
from fnop.interpreters.simulation.externals import forked
from fnop.interpreters.simulation.logs import LOG_OF
from fnop.interpreters.simulation.watches import Delivery

__all__ = ["TrialDirector"]


class Sight(Struct, frozen=True):
    """An object as a handler has seen it: nothing is known if it has not looked."""

    version: int | None = None
    uid: str | None = None
    generation: int | None = None


class TrialDirector(Director):
    """The director of one trial, which directs its run from now on."""

    def __init__(self, state: TrialState) -> None:
        self._state = state
        self._delivered: Delivery | None = None
        # The objects that each handler has read, by its subject and its id.
        self._seen: dict[tuple[str, str], dict[str, Sight]] = {}
        state.run.director = self
        state.run.on_say = self.hears

    def fork(self, state: TrialState) -> TrialDirector:
        """Direct a forked trial in the same way."""
        fork = TrialDirector(state)
        fork._delivered = self._delivered
        fork._seen = {key: each.copy() for key, each in self._seen.items()}
        return fork

    # ---------------------------------------------------------------- deliveries

    def choose(self, inbox: Sequence[Delivery]) -> int | None:
        """The oldest delivery that is not held."""
        state, force = self._state, self._state.in_force
        is_absent = force.down or state.absence is not Absence.NONE
        if is_absent or (force.is_backlog and state.phase is Phase.SCRIPT):
            return None
        if not force.holds:
            return 0
        for place, (source, input) in enumerate(inbox):
            waits = isinstance(input, (WatchEvent, Bookmark, LogLines, StreamEnded))
            if source not in force.holds or not waits:
                return place
        return None

    def arrives(self, delivery: Delivery) -> bool:
        """Whether it is delivered now: a fault may strike an event before."""
        found = self._site_of(delivery)
        if found is None or delivery is self._delivered:
            return True
        self._delivered = delivery
        fault = self._state.due(self._state.counted(found))
        if fault is None:
            return True
        catalogue.strike_event(self._state, fault, delivery.source)
        return False  # look again: it may be held, or gone

    def _site_of(self, delivery: Delivery) -> Site | None:
        """The site of a watch event, or of lines of a log, that is to arrive."""
        source, kind = delivery.source, delivery.source.partition(".")[0]
        match delivery.input:
            case WatchEvent(type=type, body=body):
                name = target_of(kind, body.data, self._state.drawn)
                return Site(Place.EVENT, "", type, name)
            case LogLines(lines=lines) if lines:
                return Site(Place.LOG, "", "lines", source.removeprefix(LOG_OF))
            case _:
                return None

    # ------------------------------------------------------------------ requests

    def performs(
        self, command: Perform, perform: Callable[[], Outcome | None]
    ) -> Outcome | None:
        """Perform a request or a call, or let a fault strike it. Raises `Crashed`."""
        state = self._state
        if isinstance(command.effect, Random):
            return perform()
        site = asked_at(state.run, command)
        if site is None:  # it is no part of the operator's work
            before = state.run.cluster.version
            outcome = perform()
            state.noted += state.run.cluster.version - before
            return outcome
        site = state.counted(site)

        def performed() -> Outcome | None:
            return self._perform_command(command, site, perform)

        version = state.run.cluster.version
        answer: Outcome | None = None
        try:
            answer = catalogue.answer(state, command, site, performed)
            return answer
        finally:
            state.note_asked(site, version, answer)

    def _perform_command(
        self, command: Perform, site: Site, perform: Callable[[], Outcome | None]
    ) -> Outcome | None:
        state = self._state
        before = state.run.cluster.version
        view = self._view(command)
        state.begins("operator")
        outcome = perform()
        after = state.run.cluster.version
        path = _path(command)
        if after != before:
            state.noted += 0 if site.handler else after - before
            state.tell("operator", site)
            uid = (command.subject.uid or "") if command.subject else ""
            # The precondition alone shows what the handler knows by a watch.
            meant = _required_uid(command) or view.uid
            state.journal.writes.append(
                Write(
                    *(site, before, after, path, view.version, view.generation),
                    *(uid, state.phase, getattr(outcome, "object", None), meant),
                )
            )
        self._note(command, path, outcome)
        self._note_user(command, outcome)
        if isinstance(outcome, Refused):
            rejection = Rejection(site, outcome, _subject_and_handler(command)[0])
            state.journal.rejections.append(rejection)
        return outcome

    def _view(self, command: Perform) -> Sight:
        """The target as the handler has seen it."""
        subject, resource = command.subject, command.resource
        if subject is not None and resource is not None:
            key = subject.key
            own = (resource.key, command.namespace or "", command.name)
            record = self._state.run.machine.state.objects.records.get(key)
            if own == key and record is not None:
                change = record.work.change if record.work else None
                body = change.body if change else record.body
                return Sight(_number(body.version), body.uid, body.generation)
        seen = self._seen.get(_subject_and_handler(command), {})
        return seen.get(_path(command), Sight())

    def _note(self, command: Perform, path: str, outcome: Outcome | None) -> None:
        """Remember which versions a handler's attempt has read."""
        found: list[Any] = []
        match outcome:
            case Applied(object=dict() as one):
                found = [one]
            case Answer(value=list() as several):
                found = [each for each in several if isinstance(each, dict)]
            case _:
                return
        resource = command.resource
        if resource is None or not found or not command.handler:
            return
        seen = self._seen.setdefault(_subject_and_handler(command), {})
        for each in found:
            meta = each.get("metadata") or {}
            where = f"{meta.get('namespace') or ''}/{meta.get('name')}"
            version = _number(meta.get("resourceVersion"))
            if version is not None:
                sight = Sight(version, meta.get("uid"))
                seen[f"{resource.group}/{resource.plural}/{where}"] = sight

    def _note_user(self, command: Perform, outcome: Outcome | None) -> None:
        """Remember the objects that a handler has, unless it deletes them."""
        subject, effect = command.subject, command.effect
        if subject is None or isinstance(effect, DeleteEffect) or not command.handler:
            return
        if isinstance(outcome, Applied) and isinstance(outcome.object, dict):
            uid = (outcome.object.get("metadata") or {}).get("uid")
            self._state.journal.users.add((str(uid), subject.uid or ""))

    def sends(
        self,
        command: Perform,
        request: ApiRequest,
        send: Callable[[ApiRequest], ApiResponse],
    ) -> ApiResponse:
        """The response to the request, as webhooks of others change it."""
        return send(catalogue.admitted(self._state, request))

    def asks(
        self,
        handler: str,
        request: ApiRequest,
        send: Callable[[ApiRequest], ApiResponse],
    ) -> ApiResponse:
        """The response to the client of a handler. Raises `Crashed`, after it."""
        state = self._state
        site = sent_at(state.run, handler, request)
        if site is None:
            return send(request)
        site, before = state.counted(site), state.run.cluster.version
        fault = state.due(site)
        response = send(request)
        if state.run.cluster.version != before:
            state.tell("operator", site)
        if fault is not None:  # a crash: no other fault strikes here
            raise Crashed
        return response

    # ------------------------------------------------------------------- reviews

    def reviews(
        self,
        request: Request,
        asks: frozenset[str],
        decide: Callable[[], Decision],
    ) -> Decision | None:
        """The decision about a write; None if the handlers are not reached.

        A decision that comes too late may have had effects outside.
        """
        state, reviews = self._state, self._state.journal.reviews
        outage, is_shared = state.in_force.outage, state.in_force.is_shared
        is_late = outage is not None and outage.until == "slow"
        run = state.run
        operator, calls = run.machine.state, forked(run.calls.models)
        found: Decision | None = None
        if is_reached(state) and is_shared and len(reviews.decided) % 2:
            found = self._former_decision(request, asks)
        elif is_reached(state) or (is_late and run.ready):
            found = decide()
        if found is None or is_late:
            reviews.unanswered += 1
            reviews.are_skipped |= any(
                each.id in asks and each.webhook.ignore_failures
                for each in state.scene.program.handlers
                if each.webhook is not None
            )
            return None
        reviews.decided.append(Reviewed(found, run.cluster, operator, calls))
        return found

    def _former_decision(self, request: Request, asks: frozenset[str]) -> Decision:
        """The decision of the former code, as far as it has such handlers."""
        run, former = self._state.run, self._state.scene.former
        assert former is not None, "the fault is of a former code"
        known = [each.id for each in former.handlers if each.id in asks]
        if not known:
            return Decision(request, object=request.object)
        wall, state = run.clock.now().wall, run.machine.state
        return Ground(former, wall, run.cluster, state, run.calls.models).decision(
            request, known
        )

    # ----------------------------------------------------------------- log lines

    def hears(self, say: Say, wall: float) -> None:
        """Take in a line of the log; the end of an attempt ends what it has read."""
        state, journal = self._state, self._state.journal
        if say.level in ("warning", "error"):
            journal.lines.append((state.phase, say))
        if not (state.left or state.struck):
            journal.said.append((state.phase, state.user.place, say))
        if {"repaired", "anew"} <= dict(say.fields).keys():
            self._forget_refusal(say)
        if say.ended is not None and say.handler is not None:
            self._seen.pop((say.subject.label if say.subject else "", say.handler), "")

    def _forget_refusal(self, say: Say) -> None:
        """Forget a refusal that is not the author's: fnop replaced a child's lists."""
        subject = say.subject.label if say.subject else ""
        rejections = self._state.journal.rejections
        for number, (site, _, whose) in reversed([*enumerate(rejections)]):
            if (site.handler, whose, site.verb) == (say.handler, subject, "apply"):
                del rejections[number]
                return


def _path(command: Perform) -> str:
    resource = command.resource
    if resource is None:
        return ""
    place = command.namespace or ""
    return f"{resource.group}/{resource.plural}/{place}/{command.name or ''}"


def _subject_and_handler(command: Perform) -> tuple[str, str]:
    return command.subject.label if command.subject else "", command.handler or ""


def _required_uid(command: Perform) -> str | None:
    """The uid that a request names: it changes no object that has another one.

    A precondition that does not hold is a conflict (Kubernetes: "Precondition failed:
    UID in precondition").
    """
    match command.effect:
        case DeleteEffect(uid=uid):
            return uid
        case Patch() | ApplyEffect() as change:
            return uid_meant(change)
        case _:
            return None


def _number(version: str | None) -> int | None:
    return int(version) if version and version.isdecimal() else None
