"""The collections that are followed: each stream by its key, and by its number.

A number is of one listing or watch.  What comes under a number that is not open any
more is late, and of no use.
"""

from __future__ import annotations

from typing import NamedTuple

from fnop.core.streams.stream import Stream, StreamKey, StreamPhase, StreamPurpose
from fnop.core.values.evolve import quick
from fnop.core.values.table import Table

__all__ = ["Streams"]

_AT_REST = (StreamPhase.WATCHING, StreamPhase.PAUSED)


@quick
class Streams(NamedTuple):
    """What is followed, in the order in which it was begun."""

    followed: Table[StreamKey, Stream] = Table()
    # The listings and watches that are open.
    numbers: Table[int, StreamKey] = Table()

    def of(self, number: int) -> Stream | None:
        """The stream of an input; None where the input is a late one."""
        key = self.numbers.get(number)
        return None if key is None else self.followed[key]

    def is_open(self, stream: Stream) -> bool:
        """Whether its listing or watch is to be closed, where it is of no use."""
        return stream.id in self.numbers

    def put(self, stream: Stream) -> Streams:
        """The stream as it is now."""
        return self._replace(followed=self.followed.set(stream.key, stream))

    def opened(self, stream: Stream, before: int) -> Streams:
        """It goes on under another number than before."""
        numbers = self.numbers.discard(before).set(stream.id, stream.key)
        return Streams(self.followed.set(stream.key, stream), numbers)

    def closed(self, stream: Stream) -> Streams:
        """Its listing or watch is over; it is to be opened again."""
        numbers = self.numbers.discard(stream.id)
        return Streams(self.followed.set(stream.key, stream), numbers)

    def without(self, stream: Stream) -> Streams:
        """It is followed no more."""
        numbers = self.numbers.discard(stream.id)
        return Streams(self.followed.discard(stream.key), numbers)

    def each(self, purpose: StreamPurpose) -> tuple[Stream, ...]:
        """All that are followed for this."""
        return tuple(one for one in self.followed.values() if one.purpose is purpose)

    def waiting(self) -> tuple[Stream, ...]:
        """All that are to be opened at the time when they are due."""
        found = self.followed.values()
        return tuple(one for one in found if one.phase is StreamPhase.WAITING)

    @property
    def are_at_rest(self) -> bool:
        """Whether all are watched, or paused."""
        return all(each.phase in _AT_REST for each in self.followed.values())
