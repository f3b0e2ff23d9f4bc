"""An object's story in a recording: observations, requests, answers and log lines.

The records are read as JSON. Decisions are not repeated here: a replay does that.
Commands name their object as `namespace/name`, without its kind. The story therefore
includes actions on another object of the same name.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fnop.core.admission.wire import REVIEWED
from fnop.core.api.resources import Resource
from fnop.core.values.table import NOTHING
from fnop.effects.values import same_json
from fnop.interpreters.explain.facts import Recorded, items, line, mapping

__all__ = ["LINES_MAX", "recorded_of", "took"]

# The number of last lines that are kept.
LINES_MAX = 200
_TEXT_LENGTH_MAX = 300


def recorded_of(
    records: Iterable[Mapping[str, Any] | None],
    resource: Resource,
    namespace: str | None,
    name: str,
    places: Mapping[str, str] = NOTHING,
) -> tuple[Recorded, ...]:
    """The last lines of an object's story, the oldest first.

    `records` are the records after the header, with reviews; None ends them if the file
    is cut off. `places` are the files and lines of handlers, by id.
    """
    tale = _Tale(resource, namespace, name, places)
    for record in records:
        if record is None:
            break
        tale.add(record)
    return tuple(Recorded(*each) for each in tale.lines)


@dataclass
class _Tale:
    """The story so far, and the requests without an answer by their ids."""

    resource: Resource
    namespace: str | None
    name: str
    places: Mapping[str, str]
    lines: deque[list[Any]] = field(default_factory=lambda: deque(maxlen=LINES_MAX))
    asked: dict[Any, tuple[list[Any], float]] = field(default_factory=dict)
    last: Mapping[str, Any] | None = None
    at: float = 0.0

    @property
    def label(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def add(self, record: Mapping[str, Any]) -> None:
        if "gap" in record:
            self._note_missing(record["gap"])
            return
        wall = record.get("wall")
        at = self.at = float(wall) if isinstance(wall, (int, float)) else 0.0
        input = mapping(record.get("input"))
        match input.get("in"):
            case "Started":
                self._say(at, "fnop", "the operator starts")
                self.asked.clear()
            case "ListItem" | "WatchEvent":
                self._add_object(at, input)
            case "Answered":
                self._answered(at, input)
            case "StopRequested":
                self._say(at, "fnop", f"stopping: {line(input.get('reason'), 100)}")
            case kind if kind == REVIEWED:
                self._add_review(at, input, items(record.get("commands")))
                return
            case _:
                pass
        for command in items(record.get("commands")):
            if command.get("subject") == self.label:
                self._add_command(at, command)

    def _add_review(
        self, at: float, input: Mapping[str, Any], decisions: Iterable[Any]
    ) -> None:
        """Add the denials of a write to this object."""
        request = mapping(input.get("request"))
        names = request.get("namespace"), request.get("name")
        kind = request.get("group"), request.get("plural")
        own = self.resource.group, self.resource.plural
        if names != (self.namespace, self.name) or kind != own:
            return
        user = line(mapping(request.get("user_info")).get("username"), 128)
        by = f" by {user}" if user else ""
        for decision in decisions:
            for denial in items(mapping(decision).get("denials")):
                found = mapping(denial)
                handler = line(found.get("handler"), 128)
                place = self.places.get(handler)
                why = line(found.get("message"), _TEXT_LENGTH_MAX)
                what = f"denies the {line(request.get('operation'), 20)}{by}: {why}"
                self._say(at, f"{handler} ({place})" if place else handler, what)

    def _note_missing(self, count: Any) -> None:
        """Note missing steps, with answers and perhaps the end of the object."""
        self._say(self.at, "fnop", f"steps that could not be recorded: {count}")
        self.asked.clear()
        self.last = None

    def _say(self, at: float, who: str, what: str) -> list[Any]:
        told = [at, line(who, 128), what]
        self.lines.append(told)
        return told

    def _add_object(self, at: float, input: Mapping[str, Any]) -> None:
        body = mapping(input.get("body"))
        meta = mapping(body.get("metadata"))
        names = meta.get("namespace"), meta.get("name")
        if names != (self.namespace, self.name) or not self._is_of_kind(body):
            return
        if input.get("type") == "DELETED":
            self._say(at, "cluster", "it is gone")
            self.last = None
            return
        text = _news_about(self.last, body)
        self.last = body
        if text:
            self._say(at, "cluster", text)

    def _is_of_kind(self, body: Mapping[str, Any]) -> bool:
        """Whether an object is of the kind; items of a listing may lack their kind."""
        return body.get("kind") in (None, self.resource.kind)

    def _add_command(self, at: float, command: Mapping[str, Any]) -> None:
        who = command.get("handler") or "fnop"
        match command.get("do"):
            case "Say":
                self._say(at, who, line(command.get("message"), _TEXT_LENGTH_MAX))
            case "Perform":
                told = self._say(at, who, self._words_for_request(command))
                number = command.get("id")
                if isinstance(number, int):
                    self.asked[number] = told, at
            case _:
                pass

    def _words_for_request(self, command: Mapping[str, Any]) -> str:
        effect = mapping(command.get("effect"))
        verb = line(effect.get("is"), 20).lower() or "do something"
        if effect.get("function"):
            return f"{verb} {line(effect['function'], 200)}"
        resource, name = line(command.get("resource"), 200), command.get("name")
        where = f"{resource.partition('.')[0]}/{line(name, 253)}"
        is_own = (resource, name) == (self.resource.key, self.name)
        if is_own and verb == "patch":
            return f"writes {_fields(effect)}"
        return f"{verb} {where}" if resource else verb

    def _answered(self, at: float, input: Mapping[str, Any]) -> None:
        number = input.get("id")
        found = self.asked.pop(number, None) if isinstance(number, int) else None
        if found is None:
            return
        told, since = found
        outcome = mapping(input.get("outcome"))
        answer = line(outcome.get("is"), 20).lower() or "answered"
        message = line(outcome.get("message"), _TEXT_LENGTH_MAX)
        why = f": {message}" if message else ""
        told[2] = f"{told[2]} → {answer}{why} ({took(at - since)})"


def took(seconds: float) -> str:
    """The duration of an answer, in words.

    >>> took(0.0064), took(2.04)
    ('6 ms', '2.0 s')
    """
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _news_about(was: Mapping[str, Any] | None, now: Mapping[str, Any]) -> str:
    """The news about an object; "" if nothing differs that its author writes."""
    meta = mapping(now.get("metadata"))
    generation = line(meta.get("generation"), 20)
    named = f", generation {generation}" if generation else ""
    if was is None:
        going = ", and is being deleted" if meta.get("deletionTimestamp") else ""
        return f"it is there{named}{going}"
    before = mapping(was.get("metadata"))
    if meta.get("deletionTimestamp") and not before.get("deletionTimestamp"):
        return "it is being deleted"
    changed = [
        name
        for name in sorted({*was, *now} - {"metadata", "status", "apiVersion", "kind"})
        if not same_json(was.get(name), now.get(name))
    ]
    changed += [
        f"metadata.{name}"
        for name in ("labels", "annotations")
        if not same_json(before.get(name), meta.get(name))
    ]
    return f"changed: {', '.join(changed)}{named}" if changed else ""


def _fields(effect: Mapping[str, Any]) -> str:
    """The fields of the operator's own write, down to two levels."""
    found: list[str] = []
    for name, value in mapping(effect.get("merge")).items():
        below = [key for key in mapping(value) if key != "resourceVersion"]
        found += [f"{name}.{key}" for key in below]
        if not isinstance(value, Mapping):
            found.append(str(name))
    found += [line(each.get("path"), 200) for each in items(effect.get("json"))]
    return line(", ".join(found) or "it", _TEXT_LENGTH_MAX)
