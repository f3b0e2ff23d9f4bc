"""The log streams of the operator, by container and by number.

There may be more containers than streams at once. The others wait in the order of their
due times.
"""

from __future__ import annotations

from immutables import Map
from msgspec import Struct

from fnop.core.streams.log_stream import LogKey, LogStream
from fnop.core.values.body import Key
from fnop.core.values.workqueue import EMPTY, WorkQueue
from fnop.effects.structs import replace

__all__ = ["LogStreams"]


class LogStreams(Struct, frozen=True):
    """All log streams; `queue` has the streams that wait to be opened."""

    read: Map[LogKey, LogStream] = Map()
    # The open streams, by number.
    numbers: Map[int, LogKey] = Map()
    queue: WorkQueue = EMPTY
    # The streams of a pod.
    pods: Map[Key, tuple[LogKey, ...]] = Map()

    def of(self, number: int) -> LogStream | None:
        """The stream of an input; None for a late input."""
        key = self.numbers.get(number)
        return None if key is None else self.read[key]

    def of_pod(self, pod: Key) -> tuple[LogStream, ...]:
        """The streams of a pod, also of an earlier pod with the same name."""
        return tuple(self.read[each] for each in self.pods.get(pod, ()))

    def open_until(self, pod: Key) -> float | None:
        """The end of the wait for a pod's open logs (monotonic)."""
        return max(
            (each.due for each in self.of_pod(pod) if each.is_open), default=None
        )

    @property
    def are_at_rest(self) -> bool:
        """Whether each stream is open, or finished, or waits for a slot."""
        return not len(self.queue)

    def put(self, stream: LogStream) -> LogStreams:
        """Store a stream, which is open, or finished."""
        key, pod = stream.key, stream.key.pod
        before, numbers = self.read.get(key), self.numbers
        pods = self.pods
        if before is None:
            pods = pods.set(pod, (*pods.get(pod, ()), key))
        elif before.is_open and (not stream.is_open or before.id != stream.id):
            numbers = numbers.delete(before.id)
        if stream.is_open:
            numbers = numbers.set(stream.id, key)
        return LogStreams(self.read.set(key, stream), numbers, self.queue, pods)

    def waits(self, stream: LogStream) -> LogStreams:
        """Store a stream that waits, to be opened at its due time."""
        found = self.put(stream)
        queue = found.queue.discard(stream.key).add(stream.key, stream.due)
        return replace(found, queue=queue)

    def drop(self, stream: LogStream) -> LogStreams:
        """Forget a stream."""
        key, pod = stream.key, stream.key.pod
        numbers = self.numbers
        if numbers.get(stream.id) == key:
            numbers = numbers.delete(stream.id)
        rest = tuple(each for each in self.pods[pod] if each != key)
        pods = self.pods.set(pod, rest) if rest else self.pods.delete(pod)
        queue = self.queue.discard(key)
        return LogStreams(self.read.delete(key), numbers, queue, pods)
