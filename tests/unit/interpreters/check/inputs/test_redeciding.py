"""A decision that is made again and does not come to an end is ended."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest

from fnop.interpreters.check.inputs import redeciding
from fnop.interpreters.runtime.clock import ProcessClock

SECONDS = 0.1


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(redeciding, "SECONDS_MAX", SECONDS)
    with redeciding.quietly():
        yield


def ended(body: Callable[[], None]) -> bool:
    """Whether a decision is ended in this."""
    redeciding._PATIENCE.begin()
    try:
        body()
    except redeciding._Endless:
        return True
    finally:
        redeciding._PATIENCE.end()
    return False


def busy(rings: int) -> None:
    """Let the alarm ring so often, as long as nothing is raised."""
    clock = ProcessClock()
    until = clock.busy() + rings * SECONDS
    while clock.busy() < until:
        pass


def stubborn() -> None:
    try:
        busy(20)
    except BaseException:
        busy(20)


class Slow:
    """An object whose end takes long."""

    def __del__(self) -> None:
        busy(3)


def test_a_loop_is_ended() -> None:
    assert ended(lambda: busy(20))


def test_what_comes_to_an_end_is_not() -> None:
    assert not ended(lambda: None)


def test_one_that_catches_everything_is_ended_at_the_next_ring() -> None:
    assert ended(stubborn)


def test_a_destructor_is_not_where_it_is_ended() -> None:
    def body() -> None:
        slow = Slow()
        del slow
        gone.append(True)
        busy(20)

    gone: list[bool] = []
    assert ended(body)
    assert gone  # what was raised in it was dropped


def test_nor_is_a_callback_of_the_garbage_collector() -> None:
    collected = []

    def callback(phase: str, info: dict[str, int]) -> None:
        busy(3)

    def body() -> None:
        gc.callbacks.append(callback)
        gc.collect(0)
        gc.callbacks.remove(callback)
        collected.append(True)
        busy(20)

    try:
        assert ended(body)
    finally:
        gc.callbacks[:] = [each for each in gc.callbacks if each is not callback]
    assert collected
