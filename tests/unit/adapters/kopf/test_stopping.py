"""The argument `stopped`: true or false, and something to wait for."""

from __future__ import annotations

import asyncio
import threading

import pytest

from fnop import kopf
from fnop.adapters.kopf.arguments.stopping import DaemonStopped, DaemonStoppingReason
from fnop.core.handlers.declare.writers import DaemonStoppingReason as CoreReason


def test_a_stop_wakes_a_thread_that_waits() -> None:
    stopped = DaemonStopped(None)
    found = []

    def daemon() -> None:
        found.append(bool(stopped))
        found.append(bool(stopped.wait()))

    thread = threading.Thread(target=daemon)
    thread.start()
    stopped.set("operator_exiting")
    thread.join()
    assert found[-1] is True
    assert stopped.is_set()


@pytest.mark.parametrize("reason", list(CoreReason))
def test_its_reason_is_a_flag_as_in_kopf(reason: CoreReason) -> None:
    assert DaemonStopped(None).reason is None
    stopped = DaemonStopped(None)
    stopped.set(reason.value)
    found = stopped.reason
    assert found is DaemonStoppingReason[reason.name]
    assert found in found | DaemonStoppingReason.DAEMON_SIGNALLED
    assert kopf.DaemonStoppingReason is DaemonStoppingReason


def test_a_stage_of_the_end_adds_to_the_reason() -> None:
    reasons = DaemonStoppingReason
    stopped = DaemonStopped(None)
    stopped.set("filters_mismatch")
    stopped.add(reasons.DAEMON_CANCELLED)
    assert stopped.reason == reasons.FILTERS_MISMATCH | reasons.DAEMON_CANCELLED
    assert not stopped.is_abandoned
    stopped.add(reasons.DAEMON_ABANDONED)
    assert stopped.is_abandoned


def test_a_call_that_is_cancelled_is_to_stop_too() -> None:
    stopped = DaemonStopped(None)
    stopped.set("cancelled")
    assert stopped.is_set()
    assert stopped.reason is DaemonStoppingReason.DAEMON_CANCELLED


def test_a_wait_of_a_thread_may_end_before() -> None:
    stopped = DaemonStopped(None)
    assert not stopped.wait(0)
    assert not stopped.is_set()
    assert repr(stopped) == "<DaemonStopped: no>"
    stopped.set("FILTERS_MISMATCH")
    assert stopped.wait(0)
    assert repr(stopped) == "<DaemonStopped: FILTERS_MISMATCH>"


async def test_a_coroutine_awaits_it() -> None:
    stopped = DaemonStopped(asyncio.get_running_loop())

    async def daemon() -> bool:
        return bool(await stopped)

    running = asyncio.create_task(daemon())
    await asyncio.sleep(0)
    assert not running.done()
    stopped.set("RESOURCE_DELETED")
    assert await running
    assert await stopped.wait()
    assert await stopped.wait(0)


async def test_a_wait_of_a_coroutine_may_end_before() -> None:
    stopped = DaemonStopped(asyncio.get_running_loop())
    assert not await stopped.wait(0)
    assert not stopped


async def test_another_thread_stops_a_coroutine() -> None:
    stopped = DaemonStopped(asyncio.get_running_loop())
    waiting = asyncio.create_task(stopped.wait())
    await asyncio.sleep(0)
    await asyncio.to_thread(stopped.set, "OPERATOR_EXITING")
    assert await waiting
    assert bool(stopped)
