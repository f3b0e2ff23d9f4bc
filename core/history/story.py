"""The story of a run: cause, handler, effects and outcomes, line by line."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fnop.core.explaining.advice import span
from fnop.core.explaining.recorded import took
from fnop.core.history.attempts import Attempt, Attempts
from fnop.core.memory.observation import essence_of
from fnop.core.objects.explaining import fields_of
from fnop.core.values.body import Body, Key
from fnop.core.values.diff import diff
from fnop.effects.desired import label_of

__all__ = ["Line", "Story", "desired_told", "end_told", "named", "outcome_told"]

Json = Mapping[str, Any]

_TEXT_LENGTH_MAX = 300
_NAMES_SHOWN = 8


class Line(NamedTuple):
    """One line: the step and its time, the object as `namespace/name`, and the text.

    `depth` is 0 for the beginning of a call and for what the operator does by itself,
    1 for what belongs to a call.
    """

    step: int
    wall: float
    where: str
    text: str
    depth: int = 0


class _Shown(NamedTuple):
    body: Body
    children: Mapping[Key, str]


class _Sent(NamedTuple):
    where: str
    text: str
    wall: float


@dataclass
class Story:
    """The fold: records in, lines out."""

    attempts: Attempts = field(default_factory=Attempts)
    _last: dict[tuple[str, str], _Shown] = field(default_factory=dict)
    _sent: dict[int, _Sent] = field(default_factory=dict)

    def add(self, record: Json) -> list[Line]:
        """The lines of one more record. Raises as `Attempts.add`."""
        step, wall, input = self.attempts.steps + 1, record["wall"], record["input"]
        known = {each.number: each for each in self.attempts.add(record)}
        known |= self.attempts.open
        lines = [*self._heard(input, step, wall)]
        commands = record["commands"]
        told = {each.get("handler") for each in commands if _is_trouble(each)}
        for command in commands:
            lines += self._done(command, known, told, step, wall)
        return lines

    def _heard(self, input: Json, step: int, wall: float) -> Iterator[Line]:
        match input:
            case {"in": "Started"}:
                yield Line(step, wall, "", "the operator starts")
            case {"in": "StopRequested", "reason": reason}:
                yield Line(step, wall, "", f"the operator is to stop: {_brief(reason)}")
            case {"in": "Answered", "id": number, "outcome": outcome}:
                sent = self._sent.pop(number, None)
                if sent is not None:
                    seconds = wall - sent.wall
                    text = f"{sent.text} -> {outcome_told(outcome)} ({took(seconds)})"
                    yield Line(step, wall, sent.where, text, 1)
            case _:
                pass

    def _done(
        self,
        command: Json,
        known: Mapping[int, Attempt],
        told: Container[str | None],
        step: int,
        wall: float,
    ) -> Iterator[Line]:
        """The lines about a command; `told` are handlers whose failure is logged."""
        attempt = known.get(command.get("attempt", -1))
        where = "" if attempt is None else attempt.where
        match command:
            case {"do": "Began"} if attempt is not None:
                yield Line(step, wall, where, self._called(attempt))
            case {"do": "Asked", "effect": effect} if not _is_sent(effect):
                yield Line(step, wall, where, f"asks for {named(effect)}", 1)
            case {"do": "Desires", "desired": desired}:
                yield Line(step, wall, where, f"desires {desired_told(desired)}", 1)
            case {"do": "Ended"} if attempt is not None:
                if "failure" in command and attempt.handler in told:
                    return
                yield Line(step, wall, where, end_told(command, attempt), 1)
            case {"do": "Perform", "id": number, "effect": effect}:
                where = _brief(command.get("subject") or "")
                text = _request(command, effect)
                self._sent[number] = _Sent(where, text, wall)
            case {"do": "Say", "message": message} if _is_trouble(command):
                where = _brief(command.get("subject") or "")
                text = f"{command['level']}: {_brief(message)}"
                yield Line(step, wall, where, text, 1 if where else 0)
            case _:
                pass

    def _called(self, attempt: Attempt) -> str:
        """The beginning of a call: what is called, why, and what it is shown."""
        body, name = attempt.body, attempt.handler
        retry = f", attempt {attempt.retry + 1}" if attempt.retry else ""
        reason = f" for {attempt.reason}" if attempt.reason else ""
        if body is None:
            return f"{name} is called{reason}{retry}"
        was = self._last.get((name, body.uid))
        children = {key: each.version for key, each in attempt.children.items()}
        self._last[name, body.uid] = shown = _Shown(body, children)
        news = "" if was is None else _news(was, shown)
        return f"{name} is called{reason}{retry}: version {body.version}{news}"


def _news(was: _Shown, now: _Shown) -> str:
    """The differences from the call before."""
    found = fields_of(diff(essence_of(was.body), essence_of(now.body)))
    both = {**was.children, **now.children}
    changed = [
        each for each in both if was.children.get(each) != now.children.get(each)
    ]
    names = sorted(f"{key.resource.partition('.')[0]}/{key.name}" for key in changed)
    news = f", changed: {found}" if found else ""
    news += f", changed children: {_listed(names)}" if names else ""
    return news or ", nothing new in its essence"


def _is_trouble(command: Json) -> bool:
    return command["do"] == "Say" and command.get("level") in ("warning", "error")


def _is_sent(effect: Json) -> bool:
    """Whether an effect becomes a request, which has a line of its own."""
    return effect["is"] not in ("Sleep", "Wait", "Execute")


def end_told(trace: Json, attempt: Attempt) -> str:
    """The end of a call in words: with what, or of what it fails."""
    failure = trace.get("failure")
    if failure is not None:
        message = _brief(failure.get("message") or "")
        again = f", again in {failure['delay']:g} s" if "delay" in failure else ""
        final = ", for good" if failure.get("permanent") else ""
        return f"fails{again}{final}: {failure['type']}: {message}"
    patches = [each for each in trace.get("patches", ()) if each]
    words = [named(each) for each in (*trace.get("plan", ()), *patches)]
    parts = [f"part {each}" for each in trace.get("parts", ())]
    told = _listed([*words, *parts])
    if told:
        return f"ends with {told}"
    return "ends" if attempt.desires is None else "ends, all is as desired"


def desired_told(desired: Json) -> str:
    """What is desired in words: children by their names, and conditions."""
    if desired.get("unchanged"):
        return "its children as they are"
    children = [label_of(each["manifest"]) for each in desired.get("children", ())]
    conditions = [
        f"{each['type']}={each['status']}" for each in desired.get("conditions", ())
    ]
    return _listed([*children, *conditions]) or "no children"


def _request(command: Json, effect: Json) -> str:
    resource = str(command.get("resource") or "")
    place = f"{command['namespace']}/" if command.get("namespace") else ""
    about = f"{resource.partition('.')[0]}/{place}{command.get('name') or ''}"
    by = f", for {command['handler']}" if command.get("handler") else ""
    return f"{named(effect, about if resource else '')}{by}"


def named(effect: Json, about: str = "") -> str:
    """An effect in a few words, with its fields and without their values."""
    kind = effect["is"]
    match kind:
        case "Patch":
            fields = [*_fields(effect.get("merge") or {}, ())]
            fields += [str(each.get("path")) for each in effect.get("json") or ()]
            where = f" {about}" if about else ""
            return f"Patch{where} ({_listed(fields) or 'nothing'})"
        case "Sleep":
            return f"Sleep {_span(effect['seconds'])}"
        case "Again":
            return f"Again in {_span(effect['after'])}"
        case "Event":
            return f"Event {_brief(effect.get('reason') or '')}"
        case "Call":
            return f"Call {_brief(effect['function'].rpartition(':')[2])}"
        case _:
            return f"{kind} {about or _about(effect)}".strip()


def _about(effect: Json) -> str:
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
            yield ".".join(here)


def outcome_told(outcome: Json) -> str:
    """An answer in words: the version that came of it, or what is wrong."""
    found = outcome.get("object")
    if isinstance(found, Mapping) and "metadata" in found:
        return f"version {Body(dict(found)).version}"
    message = outcome.get("message")
    kind = "done" if outcome["is"] in ("Applied", "Answer") else outcome["is"]
    return f"{kind}: {_brief(message)}" if message else kind


def _span(seconds: float) -> str:
    """
    >>> _span(0.5), _span(2592000)
    ('0.5s', '30d')
    """
    return f"{seconds:g}s" if seconds < 120 else span(seconds)


def _listed(words: Iterable[str]) -> str:
    found = [*words]
    more = len(found) - _NAMES_SHOWN
    text = ", ".join(found[:_NAMES_SHOWN])
    return f"{text} and {more} more" if more > 0 else text


def _brief(text: Any) -> str:
    """A text of somebody else's, in one line."""
    line = " ".join(str(text).split())
    return line if len(line) <= _TEXT_LENGTH_MAX else f"{line[:_TEXT_LENGTH_MAX]}..."
