"""The streams of the operator, by key and by number.

A number belongs to one listing or watch. An input whose number is closed is late, and
is ignored.

`Streams` is the value between two steps. `OpenStreams` collects the changes of one
step, and is closed into the next value.
"""

from __future__ import annotations

from msgspec import Struct

from fnop.core.streams.stream import Stream, StreamKey, StreamPhase, StreamPurpose
from fnop.core.values.body import Key
from fnop.core.values.table import NOTHING, Table

__all__ = ["OpenStreams", "Streams"]

_AT_REST = (StreamPhase.WATCHING, StreamPhase.PAUSED)


class Streams(Struct, frozen=True):
    """The streams, in the order of their beginning.

    Only if it `may_wait`, a stream may wait to be opened: each step asks that.
    """

    followed: Table[StreamKey, Stream] = Table()
    # The open listings and watches, by number.
    numbers: Table[int, StreamKey] = Table()
    may_wait: bool = False

    @property
    def are_at_rest(self) -> bool:
        """Whether all streams are watching or paused."""
        return all(each.phase in _AT_REST for each in self.followed.values())


class OpenStreams:
    """The streams while one step changes them."""

    __slots__ = ("followed", "may_wait", "numbers")

    def __init__(self, streams: Streams) -> None:
        self.followed, self.numbers = streams.followed, streams.numbers
        self.may_wait = streams.may_wait

    def of(self, number: int) -> Stream | None:
        """The stream of an input; None for a late input."""
        key = self.numbers.get(number)
        return None if key is None else self.followed[key]

    def is_open(self, stream: Stream) -> bool:
        """Whether the stream has an open listing or watch, which can be closed."""
        return stream.id in self.numbers

    def each(self, purpose: StreamPurpose) -> tuple[Stream, ...]:
        """All streams with this purpose."""
        return tuple(one for one in self.followed.values() if one.purpose is purpose)

    def unseen(self, key: Key) -> str:
        """The reason why no stream would show this object; "" if one would."""
        purpose = StreamPurpose.OBJECTS.value
        for place in ("", key.namespace):
            found = self.followed.get((key.resource, place, purpose))
            if found is None:
                continue
            if not found.refusal:
                return ""
            told = f"cannot be seen: may not follow {found.label}: {found.refusal}"
            return f"{told}; grant the verbs list and watch to this operator"
        return (
            f"is in the namespace {key.namespace}, which is not served: name it "
            "with -n, too, or run with -A"
        )

    def is_blind(self, resource: str) -> bool:
        """Whether the API server refuses to show objects of a kind, by its key."""
        return any(
            each.refusal
            for each in self.each(StreamPurpose.OBJECTS)
            if each.resource.key == resource
        )

    def waiting(self) -> tuple[Stream, ...]:
        """All streams that wait to be opened at their due time."""
        each = self.followed.values()
        found = tuple([one for one in each if one.phase is StreamPhase.WAITING])
        self.may_wait = bool(found)
        return found

    def put(self, stream: Stream) -> None:
        """Store the stream."""
        if stream.phase is StreamPhase.WAITING:
            self.may_wait = True
        key = self.numbers.get(stream.id) or stream.key
        self.followed = self.followed.set(key, stream)

    def opened(self, stream: Stream, before: int) -> None:
        """Store the stream, which is open under a new number instead of `before`."""
        self.numbers = self.numbers.discard(before).set(stream.id, stream.key)
        self.put(stream)

    def closed(self, stream: Stream) -> None:
        """Store the stream, whose listing or watch has ended, to be opened again."""
        self.numbers = self.numbers.discard(stream.id)
        self.put(stream)

    def drop(self, stream: Stream) -> None:
        """Remove the stream: its collection is not followed now."""
        self.numbers = self.numbers.discard(stream.id)
        self.followed = self.followed.discard(stream.key)

    def drop_all(self) -> None:
        """Remove all streams."""
        self.followed, self.numbers, self.may_wait = NOTHING, NOTHING, False

    def close(self) -> Streams:
        """The next value."""
        return Streams(self.followed, self.numbers, self.may_wait)
