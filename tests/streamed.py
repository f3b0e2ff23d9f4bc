"""A cluster whose streaming lists can be refused, cut off, or crossed by changes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from fnop.core.handlers.declare.settings import Settings
from fnop.core.seam.commands import ListPage, Watch
from fnop.core.seam.inputs import ListDone, StreamEnded
from fnop.effects.structs import replace
from fnop.interpreters.cluster import Cluster
from fnop.interpreters.simulation.watches import Delivery
from tests.simulations import example
from tests.stories import Story

__all__ = ["PAGES", "REFUSALS", "STREAMING", "Refusal", "Streamed", "things"]

KIND = "fnopexamples"
STREAMING = Settings(initial_streaming=True)
PAGES = "the API server does not stream the list of fnopexamples: it is listed page"

Refusal = tuple[str, int | None, str]
REFUSALS: dict[str, Refusal] = {
    "422": ("refused", 422, "sendInitialEvents: Forbidden: the gate is off"),
    "400": ("refused", 400, "resourceVersionMatch is forbidden for watch"),
    "eof": ("eof", None, ""),
    "silent": ("silent", None, "nothing came for 330 seconds"),
}


class Streamed(Story):
    """A cluster whose initial events can be refused, cut off, or crossed by changes.

    A watch that begins takes the next of the `fates`: a `Refusal` in its place; a
    number of lines, after which it stands still; or a function that changes the
    cluster, behind the objects and before the end.
    """

    def __init__(
        self,
        handlers: Any,
        manifests: Iterable[dict[str, Any]] = (),
        *,
        settings: Settings = STREAMING,
        plural: str = KIND,
        **options: Any,
    ) -> None:
        self.fates: deque[Refusal | int | Callable[[], object]] = deque()
        self.lacks: Refusal | None = None
        self.of = plural
        self.rest: list[Delivery] = []
        super().__init__(handlers, manifests, settings=settings, **options)

    @property
    def resource(self) -> str:
        return next(key for key in self.streams if key.startswith(f"{self.of}."))

    def _watch(self, command: Watch) -> None:
        if command.version or command.resource.plural != self.of:
            super()._watch(command)
            return
        fate = self.lacks or (self.fates.popleft() if self.fates else None)
        if isinstance(fate, tuple):
            self.reads.watches.reject(command, StreamEnded(command.stream, *fate))
            return
        inbox, before = self.inbox, len(self.inbox)
        super()._watch(command)
        lines = self.taken_back(before)
        if fate is None:
            inbox.extend(lines)
        elif isinstance(fate, int):
            inbox.extend(lines[:fate])
            self.rest = lines[fate:]
        else:
            inbox.extend(lines[:-1])
            watched = self.reads.watches._open[command.stream]
            self.reads.watches._open[command.stream] = replace(watched, initial=True)
            fate()
            self.reads.watches._open[command.stream] = replace(watched, initial=False)
            done = ListDone(command.stream, str(self.cluster.version))
            self.feed(Delivery(command.resource.key, done))

    def let_rest_through(self) -> None:
        self.inbox.extend(self.rest)
        self.rest = []

    def take_all(self) -> None:
        """All that has arrived, but nothing that takes time."""
        while self.has_input:
            self.take()

    def loses(self, reason: str, status: int | None = None, text: str = "") -> None:
        """The open watch of the kind ends; what was on the way arrives."""
        number = self.streams[self.resource]
        self.reads.watches._open.pop(number, None)
        self.feed(StreamEnded(number, reason, status, text))

    def restore(self, backup: Cluster) -> None:
        self.cluster = backup
        for stream in tuple(self.reads.watches._open):
            self.feed(StreamEnded(stream, "unreachable", None, "away"))
        self.reads.watches._open.clear()

    @property
    def asked(self) -> list[str]:
        """The questions of the operator, in order: `begin`, `watch`, `page`, `look`."""
        found = []
        for _, _, commands in self.trace.steps:
            for each in commands:
                if isinstance(each, Watch) and each.resource.plural == self.of:
                    found.append("watch" if each.version else "begin")
                elif isinstance(each, ListPage) and each.resource.plural == self.of:
                    found.append("look" if each.limit == 1 else "page")
        return found

    @property
    def names(self) -> list[str]:
        records = self.machine.state.objects.records
        return sorted(each.name for each in records)


def things(names: str, size: int = 1) -> list[dict[str, Any]]:
    return [example(name, size=size) for name in names]
