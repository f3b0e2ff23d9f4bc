"""The inputs and commands of a step that a timeline does not show, in words.

They are the operator's housekeeping: listings and bookmarks, discovery, alarms, and log
lines without any trouble.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fnop.interpreters.explain.recorded import took
from fnop.interpreters.recording.questions.story import brief, log_told, outcome_told

__all__ = ["Aside", "Asides"]

Json = Mapping[str, Any]


# Commands whose names say everything.
_WORDS = {
    "Ready": "is ready",
    "Refresh": "shows an impure daemon the new state of its object",
}


class Aside(NamedTuple):
    """The input and commands of a step other than its events; "" and () if empty."""

    heard: str = ""
    done: tuple[str, ...] = ()


@dataclass
class Asides:
    """The fold: takes records in, returns asides."""

    # The kinds of streams, and the paths of discovery requests.
    _streams: dict[int, str] = field(default_factory=dict)
    _fetched: dict[int, str] = field(default_factory=dict)
    _logs: dict[int, str] = field(default_factory=dict)
    # Equal asides are kept once, because many steps have the same.
    _known: dict[Aside, Aside] = field(default_factory=dict)

    def add(self, record: Json) -> Aside:
        """The aside of one more record. Raises the same errors as `Attempts.add`."""
        if "gap" in record:
            return Aside()
        input = record["input"]
        if input["in"] == "Started":
            self._streams.clear()
            self._logs.clear()
            self._fetched.clear()
        heard = self._words_for_input(input)
        found = Aside(
            heard, (*self._words_for_commands(record["commands"], record["mono"]),)
        )
        return self._known.setdefault(found, found)

    def _words_for_input(self, input: Json) -> str:
        match input:
            case {"in": "AlarmRang"}:
                return "its alarm rings"
            case {"in": "ListDone", "stream": stream, "version": version}:
                known = f"as of version {brief(version)}"
                return f"{self._kind(stream)} are listed, {known}"
            case {"in": "Bookmark", "stream": stream, "version": version}:
                return f"{self._kind(stream)} are at version {brief(version)}"
            case {"in": "LogLines", "stream": stream, "lines": list(lines)}:
                count = f"{len(lines)} lines of {self._logs.get(stream, 'a log')}"
                return count if lines else ""
            case {"in": "WriteDenied", "handler": handler}:
                return f"a denial by {brief(handler)} is to be a Kubernetes Event"
            case {"in": "Answered", "id": number, "outcome": outcome}:
                path = self._fetched.pop(number, None)
                if path is None:
                    return ""
                is_done = outcome["is"] == "Applied"
                return f"GET {path} -> {'done' if is_done else outcome_told(outcome)}"
            case _:
                return ""

    def _words_for_commands(self, commands: Any, mono: float) -> Iterator[str]:
        for command in commands:
            yield from self._words_for_command(command, mono)

    def _words_for_command(self, command: Json, mono: float) -> Iterator[str]:
        match command:
            case {"stream": int(stream)}:
                yield from self._words_for_stream(command, stream)
            case {"do": "Fetch", "id": number, "path": path}:
                self._fetched[number] = brief(path)
                yield f"GET {brief(path)}"
            case {"do": "Alarm", "at": at}:
                yield f"sets its alarm, in {took(max(0.0, at - mono))}"
            case {"do": "Say", "level": level, "message": message}:
                if level not in ("warning", "error"):
                    yield f"{level}: {brief(message)}"
            case {"do": "Interrupt", "reason": reason}:
                yield f"asks an impure handler to stop: {brief(reason)}"
            case {"do": "Exit", "reason": reason}:
                yield f"exits with {command.get('status', 0)}: {brief(reason)}"
            case {"do": str(verb)} if verb in _WORDS:
                yield _WORDS[verb]
            case _:
                pass

    def _words_for_stream(self, command: Json, stream: int) -> Iterator[str]:
        match command:
            case {"do": "ListPage", "resource": resource}:
                yield f"lists {self._follow(stream, resource)}"
            case {"do": "Watch", "resource": resource}:
                since = brief(command.get("version"))
                kind = self._follow(stream, resource)
                begins = f"from version {since}" if since else "from the beginning"
                yield f"watches {kind} {begins}"
            case {"do": "FollowLog"}:
                name = self._logs[stream] = f"the log of {log_told(command)}"
                yield f"reads {name}"
            case {"do": "CloseStream"} if stream in self._logs:
                yield f"reads {self._logs[stream]} no longer"
            case {"do": "CloseStream"}:
                yield f"watches {self._kind(stream)} no longer"
            case _:
                pass

    def _follow(self, stream: int, resource: Any) -> str:
        kind = self._streams[stream] = brief(resource).partition(".")[0]
        return kind

    def _kind(self, stream: Any) -> str:
        return self._streams.get(stream, "objects")
