"""The collections that are followed: each stream by its key, and by its number.

A number is of one listing or watch.  What comes under a number that is not open any
more is late, and of no use.

`Streams` is the value between two steps; `OpenStreams` takes what one step changes, and
is closed into the next value.
"""

from __future__ import annotations

from typing import NamedTuple

from fnop.core.streams.stream import Stream, StreamKey, StreamPhase, StreamPurpose
from fnop.core.values.evolve import quick
from fnop.core.values.table import Table

__all__ = ["OpenStreams", "Streams"]

_AT_REST = (StreamPhase.WATCHING, StreamPhase.PAUSED)


@quick
class Streams(NamedTuple):
    """What is followed, in the order in which it was begun."""

    followed: Table[StreamKey, Stream] = Table()
    # The listings and watches that are open.
    numbers: Table[int, StreamKey] = Table()

    @property
    def are_at_rest(self) -> bool:
        """Whether all are watched, or paused."""
        return all(each.phase in _AT_REST for each in self.followed.values())


class OpenStreams:
    """Streams while one step changes them."""

    __slots__ = ("followed", "numbers")

    def __init__(self, streams: Streams) -> None:
        self.followed, self.numbers = streams

    def of(self, number: int) -> Stream | None:
        """The stream of an input; None where the input is a late one."""
        key = self.numbers.get(number)
        return None if key is None else self.followed[key]

    def is_open(self, stream: Stream) -> bool:
        """Whether its listing or watch is to be closed, where it is of no use."""
        return stream.id in self.numbers

    def each(self, purpose: StreamPurpose) -> tuple[Stream, ...]:
        """All that are followed for this."""
        return tuple(one for one in self.followed.values() if one.purpose is purpose)

    def waiting(self) -> tuple[Stream, ...]:
        """All that are to be opened at the time when they are due."""
        found = self.followed.values()
        return tuple(one for one in found if one.phase is StreamPhase.WAITING)

    def put(self, stream: Stream) -> None:
        """Keep this of the stream."""
        self.followed = self.followed.set(stream.key, stream)

    def opened(self, stream: Stream, before: int) -> None:
        """The stream goes on under another number than before."""
        self.numbers = self.numbers.discard(before).set(stream.id, stream.key)
        self.put(stream)

    def closed(self, stream: Stream) -> None:
        """Its listing or watch is over; it is to be opened again."""
        self.numbers = self.numbers.discard(stream.id)
        self.put(stream)

    def drop(self, stream: Stream) -> None:
        """The stream is followed no more."""
        self.numbers = self.numbers.discard(stream.id)
        self.followed = self.followed.discard(stream.key)

    def drop_all(self) -> None:
        """Nothing is followed any more."""
        self.followed, self.numbers = Streams()

    def close(self) -> Streams:
        """The next value."""
        return Streams(self.followed, self.numbers)
