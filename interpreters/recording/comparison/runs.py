"""A recorded run in a form to be compared: calls, requests, and objects shown."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson
from msgspec import Struct

from fnop.effects import Random
from fnop.interpreters.recording.identities.volatile import Names
from fnop.interpreters.recording.model import records
from fnop.interpreters.recording.model.attempts import Attempt
from fnop.interpreters.recording.model.history import (
    History,
    Question,
    Request,
    Step,
)
from fnop.interpreters.recording.questions.provenance import Shown

__all__ = ["Call", "Item", "Moment", "Run"]

Json = Mapping[str, Any]

# Requests for these kinds are not decisions of the operator: it only reports by them.
_TOLD = ("events.v1.", "events.v1.events.k8s.io")


class Moment(Struct, frozen=True):
    """A call asks for something, is given it, desires, or ends, in a step."""

    kind: Literal["asks", "given", "desires", "ends"]
    step: int
    what: Any


@dataclass(slots=True)
class Call:
    """One attempt of a handler with everything it does; `brought` is its first step."""

    attempt: Attempt
    process: int
    brought: Step
    moments: list[Moment] = field(default_factory=list)

    @property
    def step(self) -> int:
        """The step in which the attempt begins."""
        return self.attempt.step

    @property
    def is_finished(self) -> bool:
        """Whether the attempt has ended."""
        return self.attempt.end is not None


Item = Call | Request


@dataclass
class Run(Question):
    """A recording in this form; processes begin in the steps `started`.

    If `is_open`, it is not known what follows the last step. Either the recording was
    cut off there, or it lacks the next `missing` steps. Steps after a gap are skipped,
    because they can be understood only in part.
    """

    history: History = field(default_factory=History)
    names: Names = field(default_factory=Names)
    calls: list[Call] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    started: list[int] = field(default_factory=list)
    walls: list[float] = field(default_factory=list)
    # All versions of each object, by its uid, in the order in which they were shown.
    shown: dict[str, list[Shown]] = field(default_factory=dict)
    is_open: bool = False
    missing: int = 0
    _indexed: list[tuple[int, records.Indexed]] = field(default_factory=list)
    _open: dict[int, Call] = field(default_factory=dict)

    # ------------------------------------------------------------------- the steps

    def add(self, record: Json) -> None:
        """Take one record in; raises as `History.read`."""
        if self.missing:
            return
        if record.get("redacted"):
            self.names.conceal(orjson.dumps(record).decode())
        super().add(record)

    def miss(self, gap: records.Gap) -> None:
        """Take note of missing steps."""
        self.missing, self.is_open = gap.steps, True

    def see(self, step: Step) -> None:
        """Take one step in."""
        if step.process > len(self.started):
            self.started.append(step.number)
            self._open.clear()
        self.walls.append(step.wall)
        self.names.tick(step.wall)
        for each in step.shown:
            body = self.names.learn(each.data)
            shown = Shown(step.number, step.wall, step.way, body)
            self.shown.setdefault(body.uid, []).append(shown)
        if step.request is not None and step.request.verb == Random.__name__:
            self.names.draw(_drawn_hex(step.request.outcome or {}))
        for command in step.commands:
            self._note(command, step)
        self.requests += filter(_is_about_objects, step.requests.values())

    def _note(self, command: records.Command, step: Step) -> None:
        match command:
            case records.Began(attempt=number):
                call = Call(step.attempts[number], step.process, step)
                self.calls.append(call)
                self._open[number] = call
            case records.Asked(effect=effect):
                self._add_moment(command, Moment("asks", step.number, effect))
            case records.Given():
                given = self._given_answer(command, step)
                self._add_moment(command, Moment("given", step.number, given))
            case records.Desires(decision=decision):
                self._add_moment(command, Moment("desires", step.number, decision))
            case records.Ended(decision=decision):
                self._add_moment(command, Moment("ends", step.number, decision))
                self._open.pop(command.attempt, None)
            case records.Indexed():
                self._indexed.append((step.number, command))
            case _:
                pass

    def _add_moment(
        self,
        trace: records.Trace,
        moment: Moment,
    ) -> None:
        call = self._open.get(trace.attempt)
        if call is not None:
            call.moments.append(moment)

    def _given_answer(self, trace: records.Given, step: Step) -> Json:
        """The answer that a call is given, as JSON."""
        outcome, call = trace.outcome or step.outcome, self._open.get(trace.attempt)
        if call is not None:
            attempts = self.history.attempts
            outcome = attempts.outcome_of(call.attempt, trace, step.outcome)
        found: dict[str, Any] = {"outcome": outcome}
        if trace.stopped:
            found["stopped"] = trace.stopped
        return found

    # ------------------------------------------------------------------- questions

    @property
    def steps(self) -> int:
        """The number of steps."""
        return self.history.steps - self.missing

    @property
    def items(self) -> list[Item]:
        """All calls and requests."""
        return [*self.calls, *self.requests]

    def may_go_on(self, process: int) -> bool:
        """Whether the process may have done more than the recording shows."""
        return self.is_open and process == len(self.started)

    def ended(self, process: int) -> int:
        """The last step of a process."""
        later = self.started[process:]
        return later[0] - 1 if later else self.steps

    def of_name(self, kind: str, namespace: str | None, name: str) -> Iterator[Shown]:
        """All that a run was shown of objects whose name both runs have."""
        for shown in self.shown.values():
            body = shown[0].body
            is_there = (body.namespace or "") == (namespace or "")
            is_alike = is_there and body.data.get("kind") == kind
            if is_alike and self.names.name(body.name) == name:
                yield from shown

    def shown_after(self, step: int) -> Sequence[Shown]:
        """Everything listed and watched after a step, in order."""
        found = (each for shown in self.shown.values() for each in shown)
        later = [each for each in found if each.step > step and each.by != "answered"]
        return sorted(later, key=lambda each: each.step)

    def kind_of(self, resource: str) -> str:
        """The kind of a resource; "" if the resource was not served."""
        found = self.history.resource(resource)
        return "" if found is None else found.kind

    def indexed(self, step: int) -> Mapping[tuple[str, ...], Any]:
        """The values of objects in indices at a step, by names that both runs have."""
        found: dict[tuple[str, ...], Any] = {}
        begun = self.started[bisect_left(self.started, step + 1) - 1]
        for at, each in self._indexed:
            if begun <= at <= step:
                resource, namespace, name = each.object
                key = each.name, resource, namespace, self.names.name(name)
                found[key] = each.values or None
        return found


def _is_about_objects(request: Request) -> bool:
    """Whether a request is for an object or a handler, and does more than report."""
    is_ours = request.subject or request.handler
    return bool(is_ours) and request.resource not in _TOLD


def _drawn_hex(outcome: Json) -> str:
    value = outcome.get("value")
    found = value.get("hex") if isinstance(value, Mapping) else value
    return found if isinstance(found, str) else ""
