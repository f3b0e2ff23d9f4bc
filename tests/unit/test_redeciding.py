"""A decision that is made again and does not come to an end is ended."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from fnop.interpreters.check import redeciding

SECONDS = 0.05


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(redeciding, "SECONDS_MAX", SECONDS)
    with redeciding.quietly():
        redeciding._PATIENCE.begin()
        yield
        redeciding._PATIENCE.end()


def busy(rings: int) -> None:
    """Let the alarm ring so often, as long as nothing is raised."""
    clock = redeciding.ProcessClock()
    until = clock.busy() + rings * SECONDS
    while clock.busy() < until:
        pass


def stubborn() -> None:
    try:
        busy(40)
    except BaseException:
        busy(40)


class Slow:
    """An object whose end takes long."""

    ended = False

    def __del__(self) -> None:
        busy(4)
        Slow.ended = True


def test_a_loop_is_ended() -> None:
    with pytest.raises(redeciding._Endless):
        busy(40)


def test_one_that_catches_everything_is_ended_at_the_next_ring() -> None:
    with pytest.raises(redeciding._Endless):
        stubborn()


def test_a_destructor_is_not_where_it_is_ended() -> None:
    slow = Slow()
    del slow  # what is raised in it is dropped, and reported
    assert Slow.ended
    with pytest.raises(redeciding._Endless):
        busy(40)


def test_nor_is_a_callback_of_the_garbage_collector() -> None:
    ended = []

    def callback(phase: str, info: dict[str, int]) -> None:
        busy(4)
        ended.append(phase)

    gc.callbacks.append(callback)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(callback)
    assert ended == ["start", "stop"]
    with pytest.raises(redeciding._Endless):
        busy(40)
