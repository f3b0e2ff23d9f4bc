"""A wall clock that is set forwards and back fails no handler, and holds none up.

Deadlines are in monotonic time; what is stored is in wall time, so that each difference
of stored times may be negative, or years (NTP, a virtual machine that was suspended).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given, settings, strategies as st

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.values.now import Now
from fnop.interpreters.runtime.clock import EPOCH, VirtualClock
from tests.simulations import Scenario, example

YEAR = 365 * 24 * 3600.0


class LeapingClock(VirtualClock):
    """Its wall clock may be set; the monotonic one goes on."""

    offset = 0.0

    def now(self) -> Now:
        wall, mono = super().now()
        return Now(wall + self.offset, mono)


def operator() -> Registry:
    """Handlers of all sorts that look at times, or whose times are stored."""
    registry = Registry()
    given: Any = {"registry": registry}

    @fnop.on.create("fnopexamples", retries=3, timeout=60, backoff=5, **given)
    def created(retry: int, runtime: timedelta, **_: Any) -> None:
        assert runtime >= timedelta()
        if retry < 2:
            raise fnop.TemporaryError("not yet", delay=10)

    @fnop.on.update("fnopexamples", **given)
    def updated(spec: fnop.Spec, **_: Any) -> dict[str, Any]:
        return {"field": spec.get("field")}

    @fnop.on.delete("fnopexamples", **given)
    def deleted(retry: int, **_: Any) -> None:
        if not retry:
            raise fnop.TemporaryError("soon", delay=5)

    @fnop.reconcile("fnopexamples", owns=["configmaps"], **given)
    def kept(name: str, **_: Any) -> Any:
        metadata = {"name": f"{name}-kept"}
        child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        return fnop.desired([child])

    @fnop.timer("fnopexamples", interval=7, idle=3, initial_delay=2, **given)
    def beating(**_: Any) -> None:
        """Nothing but its times is of interest."""

    @fnop.timer("fnopexamples", cron="*/5 * * * *", **given)
    async def by_the_clock(**_: Any) -> None:
        await fnop.info("five minutes have passed")

    @fnop.daemon("fnopexamples", **given)
    async def going(**_: Any) -> None:
        while True:
            await fnop.sleep(4)

    return registry


LEAPS = st.one_of(
    st.floats(-120, 120),
    st.sampled_from([-EPOCH, -3600.0, 3600.0, -YEAR, YEAR, 50 * YEAR]),
)
ACTIONS = st.sampled_from(["wait", "edit", "restart", "delete"])


@settings(max_examples=40)
@given(st.lists(st.tuples(LEAPS, ACTIONS), min_size=1, max_size=6))
def test_no_leap_of_the_wall_clock_fails_or_stops_a_handler(
    leaps: list[tuple[float, str]],
) -> None:
    clock = LeapingClock()
    run = Scenario(operator(), [example()], clock=clock)
    run.settle(seconds=1)
    for number, (offset, action) in enumerate(leaps):
        clock.offset = offset
        match action:
            case "edit" if run.get("fnopexamples"):
                run.edit("fnopexamples", spec={"field": str(number)})
            case "delete" if run.get("fnopexamples"):
                run.delete("fnopexamples")
            case "restart":
                run.crash()
            case _:
                pass
        run.settle(seconds=30)
    run.settle(seconds=120)
    problems = [
        say
        for say in run.said
        if say.exception is not None
        and not isinstance(say.exception, fnop.TemporaryError)
    ]
    assert problems == []
    assert not run.failures
    if run.get("fnopexamples") is not None:
        run.apply(example("after"))
        run.settle(seconds=120)
        assert run.get("configmaps", "after-kept") is not None
        run.delete("fnopexamples")
        run.settle(seconds=120)
    assert run.get("fnopexamples") is None
