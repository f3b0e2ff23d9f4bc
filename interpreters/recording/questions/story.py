"""The story of a run: cause, handler, effects and outcomes, line by line.

Fields are named as `--why` takes them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from fnop.core.admission.wire import REVIEWED
from fnop.core.api.reviews import Request as Reviewed
from fnop.core.values.body import Body
from fnop.core.values.errors import number_of
from fnop.effects.desired import label_of
from fnop.interpreters.explain.recorded import took
from fnop.interpreters.recording.model import records
from fnop.interpreters.recording.model.attempts import Attempt
from fnop.interpreters.recording.model.effects import duration, is_request, named
from fnop.interpreters.recording.model.fields import (
    brief,
    changes_of,
    fields_text,
    listed,
)
from fnop.interpreters.recording.model.history import (
    History,
    Question,
    Request,
    Step,
)
from fnop.interpreters.recording.questions.others import Others
from fnop.interpreters.recording.questions.reasons import Reason, Reasons, words_of

__all__ = [
    "Line",
    "Story",
    "desired_told",
    "end_told",
    "log_told",
    "outcome_told",
]

Json = Mapping[str, Any]


class Line(Struct, frozen=True):
    """One line: the step and its time, the object as `namespace/name`, and the text.

    `depth` is 0 for the beginning of a call, and for what the operator does by itself.
    It is 1 for what belongs to a call. `attempt` is the attempt that the line belongs
    to. `request` is the request that is sent or answered. `object` is the object of the
    request, or the one that others have changed: `pods/default/web`.

    `sort` is one of these:

    - "start", "stop", "call", "ask", "desire", "send", "answer", "end", and "gap".
    - "say" for trouble.
    - "repair" when fnop repairs a child that others have changed.
    - "peer" when it changes which process works: leader election, peering.
    - "review" for a write that is denied or changed.
    - "other" for the actions of others.
    """

    step: int
    wall: float
    where: str
    text: str
    depth: int = 0
    sort: str = ""
    attempt: Attempt | None = None
    request: Request | None = None
    object: str = ""


@dataclass
class Story(Question):
    """The lines of a recording's steps.

    `manager` is the operator's name in managed fields, if it is known. `places` are the
    files and lines of handlers.
    """

    history: History = field(default_factory=History)
    manager: str = ""
    places: Mapping[str, str] = field(default_factory=dict)
    _is_to_stop: bool = False

    def __post_init__(self) -> None:
        """Note what others do in the same history, and why handlers are called."""
        self._reasons = Reasons(self.history)
        self._others = Others(self.manager, self.history)

    def add(self, record: Json) -> list[Line]:
        """The lines of one more record, or of a review; raises as `History.read`."""
        if record.get("input", {}).get("in") == REVIEWED:
            return [*self._lines_for_review(record)]
        lines: list[Line] = super().add(record)
        return lines

    def see(self, step: Step) -> list[Line]:
        """The lines of one more step."""
        others = (
            Line(step.number, step.wall, where, text, sort="other", object=label)
            for where, text, label in self._others.see(step)
        )
        lines = (each for each in self.lines(step) if each.sort != "send")
        return [*others, *lines]

    def miss(self, gap: records.Gap) -> list[Line]:
        """The line about missing steps."""
        self._reasons.miss()
        self._others.miss(gap)
        text = f"{number_of(gap.steps, 'step')} could not be recorded"
        return [Line(gap.last, self.history.wall, "", text, sort="gap")]

    def _lines_for_review(self, record: Json) -> Iterator[Line]:
        """The denials of a write, and whether it was changed."""
        request, (decision,) = record["input"]["request"], record["commands"]
        found = Reviewed(**request)
        what = f"{found.operation}{f' by {found.user}' if found.user else ''}"
        texts = [
            f"{what} is denied by {self._handler_with_place(each['handler'])}: "
            f"{each['message']}"
            for each in decision["denials"]
        ]
        if "object" in decision:
            changes = changes_of(request["object"], decision["object"])
            texts.append(f"{what} is changed: {fields_text(changes)}")
        label = f"{found.plural}/{found.label}"
        step = self.history.steps
        for text in texts:
            yield Line(
                *(step, record["wall"], found.label, text),
                sort="review",
                object=label,
            )

    def _handler_with_place(self, handler: str) -> str:
        place = self.places.get(handler)
        return f"{handler} ({place})" if place else handler

    def lines(self, step: Step) -> list[Line]:
        """The lines of one more step, with one for each request that is sent.

        Actions of others are not among them.
        """
        at = step.number, step.wall
        lines = [*self._lines_for_input(step)]
        said = [each for each in step.commands if isinstance(each, records.Say)]
        if any(isinstance(each, records.Exit) for each in step.commands):
            self._is_to_stop = True
        told = {each.handler for each in said if each.is_trouble}
        for command in step.commands:
            number = getattr(command, "attempt", None)
            attempt = None if number is None else step.attempts.get(number)
            if attempt is not None:
                self._reasons.note(command, attempt, step.number)
            if number is not None:
                lines += self._lines_for_trace(command, attempt, step, told)
            elif isinstance(command, records.Perform):
                request = step.requests[command.id]
                where, text = brief(request.subject), _request(request)
                sent = Line(*at, where, text, 1, "send", None, request, _label(request))
                lines.append(sent)
            elif isinstance(command, records.Say):
                lines += _lines_for_log(command, step)
        return lines

    def _words_for_start(self, step: Step) -> str:
        """The beginning of a process; the last one may have been killed.

        It was killed if it was not to stop.
        """
        was_killed = step.process > 1 and not self._is_to_stop
        self._is_to_stop = False
        if step.process == 1:
            return "the operator starts"
        killed = ": the process before has ended without a stop" if was_killed else ""
        return f"the operator starts again{killed}"

    def _lines_for_input(self, step: Step) -> Iterator[Line]:
        at = step.number, step.wall
        match step.input:
            case records.Started():
                yield Line(*at, "", self._words_for_start(step), sort="start")
            case records.StopRequested(reason=reason):
                self._is_to_stop = True
                text = f"the operator is to stop: {brief(reason)}"
                yield Line(*at, "", text, sort="stop")
            case records.Answered(outcome=outcome) if step.request is not None:
                sent = step.request
                answer = f"{outcome_told(outcome)} ({took(step.wall - sent.wall)})"
                text, where = f"{_request(sent)} -> {answer}", brief(sent.subject)
                yield Line(*at, where, text, 1, "answer", None, sent, _label(sent))
            case _:
                pass

    def _lines_for_trace(
        self,
        trace: records.Command,
        attempt: Attempt | None,
        step: Step,
        told: Container[str],
    ) -> Iterator[Line]:
        """The lines about an attempt; `told` are handlers whose failure is logged.

        The attempt is None if the recording lacks its beginning.
        """
        at = step.number, step.wall, "" if attempt is None else attempt.where
        match trace:
            case records.Began() if attempt is not None:
                timed = isinstance(step.input, records.AlarmRang)
                reasons = self._reasons.of(attempt, timed=timed)
                text = _words_for_call(attempt, reasons)
                yield Line(*at, text, 0, "call", attempt)
            case records.Asked(effect=effect) if not is_request(effect["is"]):
                yield Line(*at, f"asks for {named(effect)}", 1, "ask", attempt)
            case records.Desires(decision={"desired": desired}):
                text = f"desires {desired_told(desired)}"
                yield Line(*at, text, 1, "desire", attempt)
            case records.Ended(decision=decision) if attempt is not None:
                if "failure" not in decision or attempt.handler not in told:
                    text = end_told(decision, attempt)
                    yield Line(*at, text, 1, "end", attempt)
            case _:
                pass


def _words_for_call(attempt: Attempt, reasons: Iterable[Reason]) -> str:
    """The beginning of a call: the handler, the reason, and what it is shown."""
    called = f"{attempt.handler} is called{attempt.reason_text}{attempt.retry_text}"
    if attempt.body is None:
        return called
    said = "".join(f", {words_of(each)}" for each in reasons)
    return f"{called}: version {attempt.body.version}{said}"


def _lines_for_log(said: records.Say, step: Step) -> Iterator[Line]:
    """The line about a log line that reports trouble, a repair, or another peer."""
    where, message = brief(said.subject), brief(said.message)
    at = step.number, step.wall, where
    if said.is_trouble:
        by = _attempt_of_line(step.attempts, said.handler, where)
        yield Line(*at, f"{said.level}: {message}", 1 if where else 0, "say", by)
    elif note := _note_of(said):
        yield Line(*at, message, 1 if where else 0, note)


def _attempt_of_line(
    known: Mapping[int, Attempt], handler: Any, where: str
) -> Attempt | None:
    """The attempt that a log line is about."""
    found = (each for each in known.values() if each.handler == handler)
    return next((each for each in found if each.where == where), None)


# The beginnings of log lines about who works (`core.peers`: election, freezing).
_OF_PEERS = ("leading: ", "standing by: ", "frozen: ", "serving again")


def _note_of(said: records.Say) -> str:
    """The sort of a log line that reports a repair, or who works; else ""."""
    if said.level != "info":
        return ""
    if any(list(each)[:1] == ["repaired"] for each in said.fields):
        return "repair"
    return "peer" if said.message.startswith(_OF_PEERS) else ""


def end_told(decision: Json, attempt: Attempt) -> str:
    """The end of a call in words: its result, or the failure."""
    failure = decision.get("failure")
    if failure is not None:
        message = brief(failure.get("message") or "")
        again = f", again in {failure['delay']:g} s" if "delay" in failure else ""
        final = ", for good" if failure.get("permanent") else ""
        return f"fails{again}{final}: {failure['type']}: {message}"
    patches = [each for each in decision.get("patches", ()) if each]
    words = [named(each) for each in (*decision.get("plan", ()), *patches)]
    parts = [f"part {each}" for each in decision.get("parts", ())]
    told = listed([*words, *parts])
    if told:
        return f"ends with {told}"
    return "ends" if attempt.desires is None else "ends, all is as desired"


def desired_told(desired: Json) -> str:
    """The desired state in words: children by their names, and conditions."""
    if desired.get("unchanged"):
        return "its children as they are"
    children = [label_of(each["manifest"]) for each in desired.get("children", ())]
    conditions = [
        f"{each['type']}={each['status']}" for each in desired.get("conditions", ())
    ]
    return listed([*children, *conditions]) or "no children"


def _request(request: Request) -> str:
    by = f", for {request.handler}" if request.handler else ""
    return f"{named(request.effect, _label(request))}{by}"


def _label(request: Request) -> str:
    """The object of a request: `pods/default/web`; "" for a call outside."""
    return "" if request.object is None else request.object.label


def log_told(log: records.FollowLog) -> str:
    """The container log that a command is about.

    >>> log_told(records.FollowLog(1, "default", "web-0", "app"))
    'pods/default/web-0 (app)'
    """
    return f"pods/{brief(log.namespace)}/{brief(log.name)} ({brief(log.container)})"


def outcome_told(outcome: Json) -> str:
    """An answer in words: the resulting version, or the problem.

    >>> busy = {"is": "Unreachable", "message": "busy", "retry_after_seconds": 10.0}
    >>> outcome_told(busy)
    'Unreachable: busy (to be asked again in 10s)'
    """
    found = outcome.get("object")
    if isinstance(found, Mapping) and "metadata" in found:
        return f"version {Body(dict(found)).version}"
    message = outcome.get("message")
    kind = "done" if outcome["is"] in ("Applied", "Answer") else outcome["is"]
    told = f"{kind}: {brief(message)}" if message else kind
    pause = outcome.get("retry_after_seconds")
    return f"{told} (to be asked again in {duration(pause)})" if pause else told
