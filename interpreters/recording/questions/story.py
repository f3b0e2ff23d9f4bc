"""The story of a run: cause, handler, effects and outcomes, line by line.

Fields are named as `--why` takes them.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fnop.core.admission.wire import REVIEWED
from fnop.core.api.reviews import Request
from fnop.core.memory.observation import essence_of
from fnop.core.values.body import Body, Key
from fnop.core.values.diff import path_at
from fnop.core.values.errors import number_of
from fnop.core.values.paths import path_text
from fnop.effects.desired import label_of
from fnop.interpreters.explain.advice import span
from fnop.interpreters.explain.recorded import took
from fnop.interpreters.recording.model.attempts import Attempt, Attempts
from fnop.interpreters.recording.model.fields import changes_of, fields_text, listed
from fnop.interpreters.recording.model.revisions import ref_of
from fnop.interpreters.recording.questions.others import Others
from fnop.interpreters.recording.questions.reasons import Reasons

__all__ = [
    "Line",
    "Story",
    "brief",
    "desired_told",
    "end_told",
    "named",
    "outcome_told",
]

Json = Mapping[str, Any]

_TEXT_LENGTH_MAX = 300


class Line(NamedTuple):
    """One line: the step and its time, the object as `namespace/name`, and the text.

    `depth` is 0 for the beginning of a call, and for what the operator does by itself.
    It is 1 for what belongs to a call. `attempt` is the attempt that the line belongs
    to. `request` is the number of the request that is sent or answered. `object` is the
    object of the request, or the one that others have changed: `pods/default/web`.

    `sort` is one of these:

    - "start", "stop", "call", "ask", "desire", "send", "answer", "end", and "gap".
    - "say" for trouble.
    - "note" for a repair, or when another peer takes over the work.
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
    request: int | None = None
    object: str = ""


class _Shown(NamedTuple):
    """The view of a handler, and the number of its process, from 1."""

    body: Body
    children: Mapping[Key, str]
    process: int


class _Sent(NamedTuple):
    where: str
    text: str
    wall: float
    object: str


@dataclass
class Story:
    """The fold: takes records in, returns lines.

    `manager` is the operator's name in managed fields, if it is known. `places` are the
    files and lines of handlers.
    """

    attempts: Attempts = field(default_factory=Attempts)
    manager: str = ""
    places: Mapping[str, str] = field(default_factory=dict)
    _last: dict[tuple[str, str], _Shown] = field(default_factory=dict)
    _sent: dict[int, _Sent] = field(default_factory=dict)
    _others: Others = field(default_factory=Others)
    _reasons: Reasons = field(default_factory=Reasons)
    _process: int = 0
    _is_to_stop: bool = False
    _wall: float = 0.0

    def __post_init__(self) -> None:
        self._others.manager = self.manager

    def add(self, record: Json) -> list[Line]:
        """The lines of one more record, including a review.

        Raises the same errors as `Attempts.add`.
        """
        if record.get("input", {}).get("in") == REVIEWED:
            return [*self._lines_for_review(record)]
        lines = [each for each in self.told(record) if each.sort != "send"]
        step, wall = self.attempts.steps, self._wall
        changes_of_others = () if "gap" in record else self._others.add(record)
        others = (
            Line(step, wall, where, text, sort="other", object=label)
            for where, text, label in changes_of_others
        )
        return [*others, *lines]

    def _lines_for_review(self, record: Json) -> Iterator[Line]:
        """The denials of a write, and whether it was changed."""
        request, (decision,) = record["input"]["request"], record["commands"]
        found = Request(**request)
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
        step = self.attempts.steps
        for text in texts:
            yield Line(
                *(step, record["wall"], found.label, text),
                sort="review",
                object=label,
            )

    def _handler_with_place(self, handler: str) -> str:
        place = self.places.get(handler)
        return f"{handler} ({place})" if place else handler

    def told(self, record: Json) -> list[Line]:
        """The lines of one more record, with one for each request that is sent."""
        if "gap" in record:
            return [self._line_for_missing(record["gap"])]
        self._wall = record["wall"]
        step, wall, input = self.attempts.steps + 1, record["wall"], record["input"]
        known = {each.number: each for each in self.attempts.add(record)}
        known |= self.attempts.open
        if input["in"] == "Started":
            self._process += 1
        lines = [*self._lines_for_input(input, step, wall)]
        commands = record["commands"]
        if any(each.get("do") == "Exit" for each in commands):
            self._is_to_stop = True
        told = {each.get("handler") for each in commands if _is_trouble(each)}
        timed = input["in"] == "AlarmRang"
        for command in commands:
            lines += self._lines_for_command(
                command, known, told, step, wall, timed=timed
            )
        return lines

    def _words_for_start(self) -> str:
        """The beginning of a process; the last one may have been killed.

        It was killed if it was not to stop.
        """
        was_killed = self._process > 1 and not self._is_to_stop
        self._is_to_stop = False
        if self._process == 1:
            return "the operator starts"
        killed = ": the process before has ended without a stop" if was_killed else ""
        return f"the operator starts again{killed}"

    def _line_for_missing(self, count: Any) -> Line:
        if not isinstance(count, int):
            raise TypeError("the number of missing steps is none")
        self.attempts.add({"gap": count})
        self._last.clear()
        self._reasons.miss()
        self._others.miss()
        text = f"{number_of(count, 'step')} could not be recorded"
        return Line(self.attempts.steps, self._wall, "", text, sort="gap")

    def _lines_for_input(self, input: Json, step: int, wall: float) -> Iterator[Line]:
        match input:
            case {"in": "Started"}:
                yield Line(step, wall, "", self._words_for_start(), sort="start")
            case {"in": "StopRequested", "reason": reason}:
                self._is_to_stop = True
                text = f"the operator is to stop: {brief(reason)}"
                yield Line(step, wall, "", text, sort="stop")
            case {"in": "Answered", "id": number, "outcome": outcome}:
                sent = self._sent.pop(number, None)
                if sent is not None:
                    seconds = wall - sent.wall
                    text = f"{sent.text} -> {outcome_told(outcome)} ({took(seconds)})"
                    where = sent.where
                    yield Line(
                        *(step, wall, where, text, 1, "answer", None),
                        *(number, sent.object),
                    )
            case _:
                pass

    def _lines_for_command(
        self,
        command: Json,
        known: Mapping[int, Attempt],
        told: Container[str | None],
        step: int,
        wall: float,
        *,
        timed: bool,
    ) -> Iterator[Line]:
        """The lines about a command; `told` are handlers whose failure is logged.

        `timed` means that nothing has happened except that a time has come.
        """
        attempt = known.get(command.get("attempt", -1))
        where = "" if attempt is None else attempt.where
        if attempt is not None:
            self._reasons.note(command, attempt, step)
        match command:
            case {"do": "Began"} if attempt is not None:
                text = self._words_for_call(attempt, timed=timed)
                yield Line(step, wall, where, text, 0, "call", attempt)
            case {"do": "Asked", "effect": effect} if not _is_sent(effect):
                text = f"asks for {named(effect)}"
                yield Line(step, wall, where, text, 1, "ask", attempt)
            case {"do": "Desires", "desired": desired}:
                text = f"desires {desired_told(desired)}"
                yield Line(step, wall, where, text, 1, "desire", attempt)
            case {"do": "Ended"} if attempt is not None:
                if "failure" in command and attempt.handler in told:
                    return
                text = end_told(command, attempt)
                yield Line(step, wall, where, text, 1, "end", attempt)
            case {"do": "Perform", "id": number, "effect": effect}:
                where = brief(command.get("subject") or "")
                about = _object_of_request(command)
                text = _request(command, effect, about)
                self._sent[number] = _Sent(where, text, wall, about)
                yield Line(step, wall, where, text, 1, "send", None, number, about)
            case {"do": "Say", "message": message} if _is_trouble(command):
                where = brief(command.get("subject") or "")
                text = f"{command['level']}: {brief(message)}"
                by = _attempt_of_line(known, command.get("handler"), where)
                yield Line(step, wall, where, text, 1 if where else 0, "say", by)
            case {"do": "Say", "message": message} if _is_notable(command):
                where = brief(command.get("subject") or "")
                yield Line(step, wall, where, brief(message), 1 if where else 0, "note")
            case _:
                pass

    def _words_for_call(self, attempt: Attempt, *, timed: bool) -> str:
        """The beginning of a call: the handler, the reason, and what it is shown."""
        body, name = attempt.body, attempt.handler
        retry = f", attempt {attempt.retry + 1}" if attempt.retry else ""
        reason = f" for {attempt.reason}" if attempt.reason else ""
        key = name, "" if attempt.object is None else attempt.object.uid
        was = self._last.pop(key, None)
        if body is None:
            return f"{name} is called{reason}{retry}"
        children = {key: each.version for key, each in attempt.children.items()}
        shown = _Shown(body, children, self._process)
        if attempt.unknown:  # the recording lacks a part of its view
            was = None
        else:
            self._last[key] = shown
        words = [
            *self._reasons_of_call(attempt),
            *(() if was is None else _differences_since(was, shown)),
        ]
        if not words:
            words = [*self._words_without_reason(attempt, was, timed=timed)]
        said = "".join(f", {each}" for each in words)
        return f"{name} is called{reason}{retry}: version {body.version}{said}"

    def _reasons_of_call(self, attempt: Attempt) -> Iterator[str]:
        uid = "" if attempt.body is None else attempt.body.uid
        newest = next((each.version for each in self.attempts.versions.of(uid)), "")
        kinds = self.attempts.catalogue.resources
        about = "" if attempt.object is None else attempt.object.resource
        resource = next((each for each in kinds if each.key == about), None)
        yield from self._reasons.of(attempt, newest, resource)

    def _words_without_reason(
        self, attempt: Attempt, was: _Shown | None, *, timed: bool
    ) -> Iterator[str]:
        """The words for a call without a reason or a change of the essence."""
        if was is None or attempt.body is None:
            return
        beside = changes_of(was.body.data, attempt.body.data)
        if self._reasons.is_timed(attempt, at_its_time=timed):
            yield "its time has come"
        elif beside:
            yield f"changed: {fields_text(beside)}"
        elif attempt.reason is None:
            yield "nothing new in its essence"


def _differences_since(was: _Shown, now: _Shown) -> Iterator[str]:
    """The differences from the call before."""
    if was.process != now.process:
        yield "the first call of this process"
    found = fields_text(changes_of(essence_of(was.body), essence_of(now.body)))
    both = {**was.children, **now.children}
    changed = [
        each for each in both if was.children.get(each) != now.children.get(each)
    ]
    names = sorted(f"{key.resource.partition('.')[0]}/{key.name}" for key in changed)
    if found:
        yield f"changed: {found}"
    if names:
        yield f"changed children: {listed(names)}"


def _attempt_of_line(
    known: Mapping[int, Attempt], handler: Any, where: str
) -> Attempt | None:
    """The attempt that a log line is about."""
    found = (each for each in known.values() if each.handler == handler)
    return next((each for each in found if each.where == where), None)


def _is_trouble(command: Json) -> bool:
    return command["do"] == "Say" and command.get("level") in ("warning", "error")


# The beginnings of log lines about who works (`core.peers`: election, freezing).
_OF_PEERS = ("leading: ", "standing by: ", "frozen: ", "serving again")


def _is_notable(command: Json) -> bool:
    """Whether a log line reports a repair, or that another peer took over the work."""
    if command.get("level") != "info":
        return False
    fields = command.get("fields") or ()
    is_repair = any(list(each)[:1] == ["repaired"] for each in fields)
    return is_repair or str(command["message"]).startswith(_OF_PEERS)


def _is_sent(effect: Json) -> bool:
    """Whether an effect becomes a request, which has its own line."""
    return effect["is"] not in ("Sleep", "Wait", "Execute")


def end_told(trace: Json, attempt: Attempt) -> str:
    """The end of a call in words: its result, or the failure."""
    failure = trace.get("failure")
    if failure is not None:
        message = brief(failure.get("message") or "")
        again = f", again in {failure['delay']:g} s" if "delay" in failure else ""
        final = ", for good" if failure.get("permanent") else ""
        return f"fails{again}{final}: {failure['type']}: {message}"
    patches = [each for each in trace.get("patches", ()) if each]
    words = [named(each) for each in (*trace.get("plan", ()), *patches)]
    parts = [f"part {each}" for each in trace.get("parts", ())]
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


def _request(command: Json, effect: Json, about: str) -> str:
    by = f", for {command['handler']}" if command.get("handler") else ""
    return f"{named(effect, about)}{by}"


def _object_of_request(command: Json) -> str:
    """The object of a request: `pods/default/web`; "" for a call outside."""
    resource = str(command.get("resource") or "")
    names = command.get("namespace"), command.get("name")
    return ref_of(resource, *names).label if resource else ""


def named(effect: Json, about: str = "") -> str:
    """An effect in a few words, with its fields but without their values."""
    kind = effect["is"]
    match kind:
        case "Patch":
            fields = [*_fields(effect.get("merge") or {}, ())]
            patched = (path_at(str(e.get("path"))) for e in effect.get("json") or ())
            fields += [path_text(each) or "all of it" for each in patched]
            where = f" {about}" if about else ""
            return f"Patch{where} ({listed(fields) or 'nothing'})"
        case "Sleep":
            return f"Sleep {_duration_in_words(effect['seconds'])}"
        case "Again":
            return f"Again in {_duration_in_words(effect['after'])}"
        case "Event":
            return f"Event {brief(effect.get('reason') or '')}"
        case "Call":
            return f"Call {brief(effect['function'].rpartition(':')[2])}"
        case _:
            return f"{kind} {about or _object_of_effect(effect)}".strip()


def _object_of_effect(effect: Json) -> str:
    manifest = effect.get("manifest") or effect.get("child")
    if isinstance(manifest, Mapping) and (manifest.get("metadata") or {}).get("name"):
        return label_of(manifest)
    target = effect.get("target") or {}
    names = (target.get("kind") or target.get("resource"), target.get("name"))
    return "/".join(str(each) for each in names if each)


def _fields(value: Json, path: tuple[str, ...]) -> Iterator[str]:
    for name, each in value.items():
        here = (*path, name)
        if here in (("metadata", "resourceVersion"), ("metadata", "uid")):
            continue
        if isinstance(each, Mapping) and each and len(here) < 3:
            yield from _fields(each, here)
        else:
            yield path_text(here)


def log_told(command: Json) -> str:
    """The container log that a command is about.

    >>> log_told({"namespace": "default", "name": "web-0", "container": "app"})
    'pods/default/web-0 (app)'
    """
    place, name = command.get("namespace"), command.get("name")
    return f"pods/{brief(place)}/{brief(name)} ({brief(command.get('container'))})"


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
    return (
        f"{told} (to be asked again in {_duration_in_words(pause)})" if pause else told
    )


def _duration_in_words(seconds: float) -> str:
    """
    >>> _duration_in_words(0.5), _duration_in_words(2592000)
    ('0.5s', '30d')
    """
    return f"{seconds:g}s" if seconds < 120 else span(seconds)


def brief(text: Any) -> str:
    """A text from someone else, on one line."""
    line = " ".join(str(text).split())
    return line if len(line) <= _TEXT_LENGTH_MAX else f"{line[:_TEXT_LENGTH_MAX]}..."
