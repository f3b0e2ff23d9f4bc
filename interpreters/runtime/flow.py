"""The way of objects through the work queue, and the durations of attempts.

This observer serves metrics only, so that other operators do not pay for it. It
compares the queue before a step with the queue after it, which are two values. An
object that is missing in the second has been served.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from fnop.core.operator.step import State
from fnop.core.seam.commands import Command, Say
from fnop.core.seam.inputs import Input, ListItem, WatchEvent
from fnop.core.state.turn import NEW
from fnop.core.streams.stream import StreamPurpose
from fnop.core.values.body import Key
from fnop.core.values.now import Now
from fnop.core.values.workqueue import WorkQueue
from fnop.interpreters.runtime.meter import Histogram, counted_as

__all__ = ["Flow", "served"]

# Seconds: client-go's buckets of the queue, controller-runtime's of a reconciliation.
QUEUE_BOUNDS = tuple(10.0**power for power in range(-8, 4))
ATTEMPT_BOUNDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5),
    *(0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0),
    *(6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0),
)


class Flow:
    """An observer (`fnop.interpreters.runtime.machine.Observer`); all is by kind key.

    `adds` counts how often an object became due, by an observation or because its time
    had come. It counts once until the object is served. `waits` are the times until
    then. `works` and `attempts` are the durations of handlers' attempts, in two scales.
    A duration runs from the beginning to the end and includes every wait. `retries`
    counts attempts that are followed by another one.
    """

    def __init__(self, state: Callable[[], State] = lambda: NEW) -> None:
        self.state = state
        self.adds: Counter[str] = Counter()
        self.retries: Counter[str] = Counter()
        self.waits: dict[str, Histogram] = {}
        self.works: dict[str, Histogram] = {}
        self.attempts: dict[str, Histogram] = {}
        self._before = NEW.objects.queue
        self._counted: set[Key] = set()

    def observe(self, now: Now, input: Input, commands: tuple[Command, ...]) -> None:
        """Take one step into account."""
        state, moment = self.state(), now.mono
        if isinstance(input, (WatchEvent, ListItem)):
            self._on_sight(state, input, moment)
        self._on_served(state, moment)
        self._before = state.objects.queue
        for command in commands:
            if isinstance(command, Say) and command.handler is not None:
                self._on_line(command)

    def _on_sight(
        self, state: State, input: WatchEvent | ListItem, moment: float
    ) -> None:
        """Note that an object was seen: it is due, unless it already was."""
        stream = state.streams.numbers.get(input.stream)
        if stream is None or stream[2] != StreamPurpose.OBJECTS.value:
            return
        key = Key(stream[0], input.body.namespace or "", input.body.name)
        was, found = self._before.due.get(key), state.objects.queue.due.get(key)
        if was is not None and was[0] <= moment:
            return
        self.adds[key.resource] += 1
        if found is not None and found[0] <= moment:
            self._counted.add(key)
        else:
            self._has_waited(key, 0.0)

    def _on_served(self, state: State, moment: float) -> None:
        """Count the objects that were due before the step and have left the queue."""
        for key, due in served(self._before, state, moment):
            if key in self._counted:
                self._counted.discard(key)
            else:
                self.adds[key.resource] += 1
            self._has_waited(key, moment - due)

    def _has_waited(self, key: Key, seconds: float) -> None:
        _add(self.waits, key.resource, seconds, QUEUE_BOUNDS)

    def _on_line(self, say: Say) -> None:
        ended, subject = say.ended, say.subject
        if ended is None or subject is None or counted_as(say) is None:
            return
        resource = subject.resource
        if ended.retried:
            self.retries[resource] += 1
        if say.took is not None:
            _add(self.works, resource, say.took, QUEUE_BOUNDS)
            _add(self.attempts, resource, say.took, ATTEMPT_BOUNDS)


def served(
    queue: WorkQueue, state: State, moment: float
) -> Iterator[tuple[Key, float]]:
    """The objects that have left a former queue, with the times when they were due."""
    due = state.objects.queue.due
    while True:
        key, rest = queue.take(moment)
        if key is None or due.get(key) == queue.due[key]:
            return
        yield key, queue.due[key][0]
        queue = rest


def _add(
    times: dict[str, Histogram], name: str, seconds: float, bounds: tuple[float, ...]
) -> None:
    if name not in times:
        times[name] = Histogram(bounds)
    times[name].add(seconds)
