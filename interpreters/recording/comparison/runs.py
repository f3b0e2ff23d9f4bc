"""A recorded run in a form to be compared: calls, requests, and objects shown."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import orjson

from fnop.interpreters.recording.identities.volatile import Names
from fnop.interpreters.recording.model.attempts import Attempt, Attempts
from fnop.interpreters.recording.model.versions import objects_in
from fnop.interpreters.recording.questions.provenance import Shown, way

__all__ = ["Call", "Item", "Moment", "Request", "Run"]

Json = Mapping[str, Any]

# Requests for these kinds are not decisions of the operator: it only reports by them.
_TOLD = ("events.v1.", "events.v1.events.k8s.io")


class Moment(NamedTuple):
    """A call asks for something, is given it, desires, or ends, in a step."""

    kind: Literal["asks", "given", "desires", "ends"]
    step: int
    what: Any


@dataclass(slots=True)
class Call:
    """One attempt of a handler with everything it does; `input` is what brought it."""

    attempt: Attempt
    process: int
    input: Json
    moments: list[Moment] = field(default_factory=list)

    @property
    def step(self) -> int:
        """The step in which the attempt begins."""
        return self.attempt.step

    @property
    def is_finished(self) -> bool:
        """Whether the attempt has ended."""
        return self.attempt.end is not None


@dataclass(slots=True)
class Request:
    """A request of the operator about an object that it handles, or a call outside.

    `answered` is the step of the answer, or None if no answer has come.
    """

    step: int
    process: int
    effect: Json
    handler: str
    subject: str
    resource: str
    namespace: str
    name: str
    answered: int | None = None
    outcome: Json | None = None

    @property
    def is_finished(self) -> bool:
        """Whether the request was answered."""
        return self.answered is not None


Item = Call | Request


@dataclass
class Run:
    """The fold of a recording; `started` are the steps in which processes begin.

    If `is_open`, it is not known what follows the last step. Either the recording was
    cut off there, or it lacks the next `missing` steps. Steps after a gap are skipped,
    because they can be understood only in part.
    """

    attempts: Attempts = field(default_factory=Attempts)
    names: Names = field(default_factory=Names)
    calls: list[Call] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    started: list[int] = field(default_factory=list)
    walls: list[float] = field(default_factory=list)
    # All versions of each object, by its uid, in the order in which they were shown.
    shown: dict[str, list[Shown]] = field(default_factory=dict)
    is_open: bool = False
    missing: int = 0
    _indexed: list[tuple[int, Json]] = field(default_factory=list)
    _open: dict[int, Call] = field(default_factory=dict)
    _asked: dict[int, Request] = field(default_factory=dict)

    # ------------------------------------------------------------------- the fold

    def add(self, record: Json) -> None:
        """Take one record in. Raises the same errors as `Attempts.add`."""
        if self.missing:
            return
        if "gap" in record:
            self.missing, self.is_open = record["gap"], True
            return
        step, input = self.attempts.steps + 1, record["input"]
        self._note_time(record["wall"])
        if input["in"] == "Started" or not self.started:
            self.started.append(step)
            self._open.clear()
            self._asked.clear()
        known = {each.number: each for each in self.attempts.add(record)}
        known |= self.attempts.open
        if record.get("redacted"):
            self.names.conceal(orjson.dumps(record).decode())
        self._note_objects(input, step, record["wall"])
        for command in record["commands"]:
            self._note(command, known, input, step)

    def _note_time(self, wall: float) -> None:
        self.walls.append(wall)
        self.names.tick(wall)

    def _note_objects(self, input: Json, step: int, wall: float) -> None:
        by = way(input)
        for each in objects_in(input):
            body = self.names.learn(each)
            self.shown.setdefault(body.uid, []).append(Shown(step, wall, by, body))
        if input["in"] == "Answered":
            self._answer(input, step)

    def _answer(self, input: Json, step: int) -> None:
        request = self._asked.pop(input["id"], None)
        if request is None:
            return
        request.answered, request.outcome = step, input["outcome"]
        if request.effect["is"] == "Random":
            self.names.draw(_drawn_hex(input["outcome"]))

    def _note(
        self, command: Json, known: Mapping[int, Attempt], input: Json, step: int
    ) -> None:
        match command["do"]:
            case "Began":
                number = command["attempt"]
                self._begin(Call(known[number], len(self.started), input))
            case "Asked":
                self._add_moment(command, Moment("asks", step, command["effect"]))
            case "Given":
                given = self._given_answer(command, input)
                self._add_moment(command, Moment("given", step, given))
            case "Desires":
                self._add_moment(
                    command, Moment("desires", step, _trace_content(command))
                )
            case "Ended":
                self._add_moment(command, Moment("ends", step, _trace_content(command)))
                self._open.pop(command["attempt"], None)
            case "Indexed":
                self._index(command, step)
            case "Perform" if _is_about_objects(command):
                self._ask(command, step)
            case _:
                pass

    def _begin(self, call: Call) -> None:
        _check_texts(call.attempt.handler, *(call.attempt.object or ()))
        self.calls.append(call)
        self._open[call.attempt.number] = call

    def _add_moment(self, command: Json, moment: Moment) -> None:
        call = self._open.get(command["attempt"])
        if call is not None:
            call.moments.append(moment)

    def _given_answer(self, command: Json, input: Json) -> Json:
        """The answer that a call is given, as JSON."""
        outcome = command.get("outcome") or input.get("outcome")
        call = self._open.get(command["attempt"])
        if "version" in command and call is not None and call.attempt.object:
            shown = call.attempt.object._replace(version=command["version"])
            body = self.attempts.versions.find(shown)
            outcome = {"is": "Applied", "object": body.data if body else None}
        found: dict[str, Any] = {"outcome": outcome}
        if command.get("stopped"):
            found["stopped"] = command["stopped"]
        return found

    def _index(self, command: Json, step: int) -> None:
        _check_texts(command["index"], *command["object"])
        self._indexed.append((step, command))

    def _ask(self, command: Json, step: int) -> None:
        effect = command["effect"]
        names = ("handler", "subject", "resource", "namespace", "name")
        about: dict[str, Any] = {each: command.get(each) or "" for each in names}
        _check_texts(effect["is"], *about.values())
        request = Request(step, len(self.started), effect, **about)
        self.requests.append(request)
        self._asked[command["id"]] = request

    # ------------------------------------------------------------------- questions

    @property
    def steps(self) -> int:
        """The number of steps."""
        return self.attempts.steps

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
        known = self.attempts.catalogue.resources
        return next((each.kind for each in known if each.key == resource), "")

    def indexed(self, step: int) -> Mapping[tuple[str, ...], Any]:
        """The values of objects in indices at a step, by names that both runs have."""
        found: dict[tuple[str, ...], Any] = {}
        begun = self.started[bisect_left(self.started, step + 1) - 1]
        for at, each in self._indexed:
            if begun <= at <= step:
                resource, namespace, name = each["object"]
                key = each["index"], resource, namespace, self.names.name(name)
                found[key] = each.get("values") or None
        return found


def _trace_content(command: Json) -> Json:
    """A trace without its kind and its attempt."""
    return {key: each for key, each in command.items() if key not in ("do", "attempt")}


def _is_about_objects(command: Json) -> bool:
    """Whether the command is for an object or a handler, and does more than report."""
    is_ours = command.get("subject") or command.get("handler")
    return bool(is_ours) and command.get("resource") not in _TOLD


def _check_texts(*values: object) -> None:
    """Refuse a record whose names are not texts: fnop did not write it."""
    if not all(isinstance(each, str) for each in values):
        raise TypeError("a name is no text")


def _drawn_hex(outcome: Json) -> str:
    value = outcome.get("value")
    found = value.get("hex") if isinstance(value, Mapping) else value
    return found if isinstance(found, str) else ""
