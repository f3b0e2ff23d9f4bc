"""Scenarios in which the world is slow, forgetful or contested, on request."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from fnop.core.seam.commands import Command, ListPage, Perform, Watch
from fnop.core.seam.inputs import Answered, Input, ListDone, ListItem, WatchEvent
from fnop.core.values.now import Now
from fnop.effects import Answer, Call, Outcome, Unknown
from fnop.interpreters.cluster import StoredEvent
from fnop.interpreters.runtime.machine import Observer
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse
from fnop.interpreters.simulation.watches import Delivery
from tests.example_scenarios import own_status
from tests.simulations import DEFINITION, Scenario

__all__ = ["Story", "Trace", "definition", "outside"]

# What happens to a request of the operator on its way: an outcome replaces the
# request, None lets it through.
Fate = Callable[["Story", Perform], Outcome | None]

MARKER = "fnop.dev/default"
# No story is so long: who needs more steps spins.
STEPS_MAX = 5_000


def outside(**arguments: Any) -> Any:
    """A function for `fnop.call`; a story answers it."""
    raise AssertionError("a simulated call is answered by the story")


def definition(*, status: Any = None, subresource: bool = True) -> dict[str, Any]:
    """The FnopExample definition with another schema of its status."""
    found: dict[str, Any] = {**DEFINITION, "spec": {**DEFINITION["spec"]}}
    version = {**found["spec"]["versions"][0]}
    schema = {**version["schema"]["openAPIV3Schema"]}
    if status is not None:
        schema["properties"] = {**schema["properties"], "status": status}
    version["schema"] = {"openAPIV3Schema": schema}
    if not subresource:
        del version["subresources"]
    found["spec"]["versions"] = [version]
    return found


class Trace:
    """An observer that keeps all steps, with their times."""

    def __init__(self) -> None:
        self.steps: list[tuple[Now, Input, tuple[Command, ...]]] = []

    def observe(self, now: Now, input: Input, commands: Iterable[Command]) -> None:
        self.steps.append((now, input, tuple(commands)))

    @property
    def performed(self) -> list[tuple[float, Perform]]:
        """The commands that were due, with their times in virtual seconds."""
        return [
            (now.mono, command)
            for now, _, commands in self.steps
            for command in commands
            if isinstance(command, Perform)
        ]


class Story(Scenario):
    """A scenario whose watch events, listings, calls and requests can be held up.

    While `late_events` is set watch events wait for `let_events_through`, in
    their order; the same for listings and calls.
    """

    late_events = False
    late_lists = False
    late_calls = False

    def __init__(
        self,
        handlers: Any,
        manifests: Iterable[dict[str, Any]] = (),
        *,
        crd: dict[str, Any] | None = None,
        observers: Iterable[Observer] = (),
        **options: Any,
    ) -> None:
        self.trace = Trace()
        self.events: deque[StoredEvent] = deque()
        self.lists: deque[Delivery] = deque()
        self.called: list[tuple[int, Call]] = []
        self.fate: Fate = lambda story, command: None
        self.sent_at: list[float] = []
        self._crd = crd
        observers = [self.trace, *observers]
        super().__init__(handlers, (), observers=observers, **options)
        self.apply(*manifests)

    def request(self, request: ApiRequest) -> ApiResponse:
        # The definition that every scenario begins with can be another one.
        if self._crd is not None and request.body == DEFINITION:
            request = ApiRequest("POST", request.path, (), self._crd)
        return super().request(request)

    # -------------------------------------------------------------- watch events

    def _deliver(self, events: Iterable[StoredEvent]) -> None:
        if self.late_events:
            self.events.extend(events)
        else:
            super()._deliver(events)

    def _watch(self, command: Watch) -> None:
        """Held events come later, and not also with the backlog of a watch."""
        before = len(self.inbox)
        super().perform(command)
        held = {str(each.version) for each in self.events}
        self.inbox.extend(
            each
            for each in self.taken_back(before)
            if not isinstance(each.input, WatchEvent)
            or each.input.body.version not in held
        )

    def taken_back(self, before: int) -> list[Delivery]:
        """The inputs after this number, which leave the inbox."""
        late = [*self.inbox][before:]
        for _ in late:
            self.inbox.pop()
        return late

    def let_events_through(self, number: int | None = None) -> Story:
        """Deliver the oldest of the held events; without a number, all for good."""
        for _ in range(len(self.events) if number is None else number):
            super()._deliver((self.events.popleft(),))
        if number is None:
            self.late_events = False
        return self

    def lose_events(self) -> Story:
        """The held events are never delivered: a gap that only a listing closes."""
        self.events.clear()
        return self

    def crash(self, program: Any = None) -> None:
        self.events.clear()
        self.lists.clear()
        self.called.clear()
        super().crash(program)

    # ------------------------------------------------------------------ listings

    def _list(self, command: ListPage) -> None:
        if not self.late_lists:
            super().perform(command)
            return
        before = len(self.inbox)
        super().perform(command)
        self.lists.extend(self.taken_back(before))

    def let_lists_through(self) -> Story:
        """Deliver the listings as they were when they were asked for."""
        self.inbox.extend(self.lists)
        assert any(isinstance(each.input, ListDone | ListItem) for each in self.lists)
        self.lists.clear()
        self.late_lists = False
        return self

    @property
    def streams(self) -> dict[str, int]:
        """The present stream of each resource followed, by its key."""
        return {
            stream.resource.key: stream.id
            for stream in self.machine.state.streams.followed.values()
        }

    def feed(self, *inputs: Input | Delivery) -> Story:
        """Something that the world says on its own."""
        for each in inputs:
            self.inbox.append(
                each if isinstance(each, Delivery) else Delivery("", each)
            )
        return self

    def take(self, place: int = 0) -> tuple[Command, ...]:
        assert self.steps < STEPS_MAX, "the operator is busy with nothing"
        return super().take(place)

    # ------------------------------------------------------------------ requests

    def perform(self, command: Command) -> None:
        if isinstance(command, Perform):
            if isinstance(command.effect, Call) and self.late_calls:
                self.called.append((command.id, command.effect))
                return
            self.sent_at.append(self.clock.elapsed)
        match command:
            case Watch():
                self._watch(command)
            case ListPage():
                self._list(command)
            case _:
                super().perform(command)

    def answer_call(self, value: Any = None) -> Story:
        """Answer the oldest call that waits."""
        number, _ = self.called.pop(0)
        self.inbox.add(Answered(number, Answer(value)))
        return self

    def _outcome(self, command: Perform) -> Outcome | None:
        fate = self.fate(self, command)
        return super()._outcome(command) if fate is None else fate

    def applied_but_unknown(self, command: Perform) -> Outcome:
        """The request arrives, its answer does not."""
        super()._outcome(command)
        return Unknown("the connection broke")

    # -------------------------------------------------------------------- words

    @property
    def bodies(self) -> list[tuple[str, Any]]:
        """The operator's writes as `METHOD tail-of-path`, with their bodies."""
        return [
            (f"{each.method} {tail_of(each.path)}", each.body)
            for each in self.requests
            if each.method != "GET"
        ]

    @property
    def sent(self) -> list[str]:
        """The operator's writes as `METHOD tail-of-path`."""
        return [words for words, _ in self.bodies]

    @property
    def read_paths(self) -> list[str]:
        return [tail_of(each.path) for each in self.requests if each.method == "GET"]

    def status(self, name: str = "example-1") -> dict[str, Any]:
        """The status of an example, without what is the operator's own."""
        found = self.get("fnopexamples", name)
        assert found is not None
        return dict(own_status(found) or {})

    def user_sets_status(
        self, change: dict[str, Any], name: str = "example-1"
    ) -> Story:
        """A merge patch of `/status` by another client."""
        path = self.path("fnopexamples", name) + "/status"
        request = ApiRequest(
            "PATCH", path, (), {"status": change}, "application/merge-patch+json"
        )
        response = self.request(request)
        assert response.status == 200, response
        return self

    def said_at(self, level: str) -> list[str]:
        """The log lines of a level."""
        return [say.message for say in self.said if say.level == level]


def tail_of(path: str) -> str:
    """A path from its plural on."""
    parts = path.split("/")
    start = 7 if parts[1] == "apis" else 6
    if parts[start - 3 : start - 2] != ["namespaces"]:
        start -= 2
    return "/".join(parts[start - 1 :])
