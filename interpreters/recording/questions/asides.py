"""The inputs and commands of a step that a timeline does not show, in words.

They are the operator's housekeeping: listings and bookmarks, discovery, alarms, and log
lines without any trouble.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec import Struct

from fnop.interpreters.explain.recorded import took
from fnop.interpreters.recording.model import records
from fnop.interpreters.recording.model.fields import brief
from fnop.interpreters.recording.model.history import History, Question, Step
from fnop.interpreters.recording.questions.story import log_told, outcome_told

__all__ = ["Aside", "Asides"]


class Aside(Struct, frozen=True):
    """The input and commands of a step other than its events; "" and () if empty."""

    heard: str = ""
    done: tuple[str, ...] = ()


@dataclass
class Asides(Question):
    """The asides of a recording's steps."""

    history: History = field(default_factory=History)
    # Equal asides are kept once, because many steps have the same.
    _known: dict[Aside, Aside] = field(default_factory=dict)

    def miss(self, gap: records.Gap) -> Aside:
        """The aside of missing steps."""
        return Aside()

    def see(self, step: Step) -> Aside:
        """The aside of one more step."""
        words = (self._words_for_command(each, step.now.mono) for each in step.commands)
        found = Aside(self._words_for_input(step), (*filter(None, words),))
        return self._known.setdefault(found, found)

    def _words_for_input(self, step: Step) -> str:
        match step.input:
            case records.AlarmRang():
                return "its alarm rings"
            case records.ListDone(stream=stream, version=version):
                known = f"as of version {brief(version)}"
                return f"{self._stream(stream)} are listed, {known}"
            case records.Bookmark(stream=stream, version=version):
                return f"{self._stream(stream)} are at version {brief(version)}"
            case records.LogLines(stream=stream, lines=lines) if lines:
                return f"{len(lines)} lines of {self._stream(stream, 'a log')}"
            case records.EventPosted(handler=handler):
                return f"{brief(handler)} posts a Kubernetes Event"
            case records.WriteDenied(handler=handler):
                return f"a denial by {brief(handler)} is to be a Kubernetes Event"
            case records.Answered(outcome=outcome) if step.fetched:
                is_done = outcome["is"] == "Applied"
                answer = "done" if is_done else outcome_told(outcome)
                return f"GET {brief(step.fetched)} -> {answer}"
            case _:
                return ""

    def _words_for_command(self, command: records.Command, mono: float) -> str:
        match command:
            case records.ListPage(stream=stream):
                return f"lists {self._stream(stream)}"
            case records.Watch(stream=stream, version=since):
                begins = f"from version {brief(since)}" if since else _FIRST
                return f"watches {self._stream(stream)} {begins}"
            case records.FollowLog(stream=stream):
                return f"reads {self._stream(stream)}"
            case records.CloseStream(stream=stream):
                is_log = isinstance(self.history.streams.get(stream), records.FollowLog)
                does = "reads" if is_log else "watches"
                return f"{does} {self._stream(stream)} no longer"
            case records.Fetch(path=path):
                return f"GET {brief(path)}"
            case records.Alarm(at=at):
                return f"sets its alarm, in {took(max(0.0, at - mono))}"
            case records.Say(is_trouble=False):
                return f"{command.level}: {brief(command.message)}"
            case records.Interrupt(reason=reason):
                return f"asks an impure handler to stop: {brief(reason)}"
            case records.Exit(reason=reason, status=status):
                return f"exits with {status}: {brief(reason)}"
            case records.Ready():
                return "is ready"
            case records.Refresh():
                return "shows an impure daemon the new state of its object"
            case _:
                return ""

    def _stream(self, number: int, unknown: str = "objects") -> str:
        """The kind of a listing or a watch, or the log that is read."""
        match self.history.streams.get(number):
            case records.FollowLog() as log:
                return f"the log of {log_told(log)}"
            case records.ListPage(resource=resource) | records.Watch(resource=resource):
                return brief(resource).partition(".")[0]
            case None:
                return unknown


_FIRST = "from the beginning"
