"""`timeout=`: it ends whatever a handler begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import given, settings, strategies as st

import fnop
from fnop.core.handlers.declare.registry import Registry
from tests.simulations import Scenario, example

KIND = "fnopexamples"
# Each write, and each restart, may take a moment of its own.
_MOMENT = 1.0

OthersChange = tuple[str, float]
SECONDS = st.sampled_from([0.1, 1.0, 2.5, 7.0, 100.0])
ACTS = st.tuples(
    st.sampled_from(["succeeds", "fails", "breaks", "again", "sleeps", "never"]),
    SECONDS,
)


class Part(NamedTuple):
    """A handler: what it does itself, its limits, and its own parts."""

    act: OthersChange
    executes: bool
    timeout: float | None
    retries: int | None
    parts: tuple[Part, ...]


def parts(below: st.SearchStrategy[Part] | None = None) -> st.SearchStrategy[Part]:
    inner = st.just(()) if below is None else st.lists(below, max_size=2).map(tuple)
    return st.builds(
        Part,
        ACTS,
        st.booleans(),
        st.none() | SECONDS,
        st.none() | st.integers(1, 3),
        inner,
    )


HANDLERS = parts(parts(parts()))


def handler_of(part: Part, name: str, begins: Callable[[str], None]) -> Any:
    """An author's function that behaves so, and reports the start of each attempt."""
    inner = {
        f"p{number}": handler_of(each, f"{name}/p{number}", begins)
        for number, each in enumerate(part.parts)
    }

    async def handler(**_: Any) -> Any:
        begins(name)
        if part.executes and inner:
            await fnop.execute(inner)
        for number, each in enumerate(() if part.executes else part.parts):
            fnop.register(
                inner[f"p{number}"],
                id=f"p{number}",
                timeout=each.timeout,
                retries=each.retries,
            )
        match part.act:
            case ("fails", seconds):
                raise fnop.TemporaryError("no", delay=seconds)
            case ("breaks", _):
                raise RuntimeError("no")
            case ("again", seconds):
                return fnop.again(after=seconds)
            case ("sleeps", seconds):
                await fnop.sleep(seconds)
            case ("never", _):
                raise fnop.PermanentError("never")
            case _:
                return None
        return None

    return handler


def deleting(part: Part, timeout: float) -> tuple[Scenario, list[tuple[str, float]]]:
    """An object whose deletion such a handler has begun, and the log of attempts."""
    begun: list[tuple[str, float]] = []
    registry = Registry()
    function = handler_of(part, "v", lambda name: begun.append((name, since())))
    fnop.on.delete(KIND, registry=registry, id="v", timeout=timeout)(function)
    run = Scenario(registry, [example()])
    run.wait(0)
    start = run.clock.elapsed

    def since() -> float:
        return run.clock.elapsed - start

    run.delete(KIND)
    return run, begun


@settings(max_examples=30, deadline=None)
@given(HANDLERS, st.sampled_from([0.5, 3.0, 20.0]))
def test_no_attempt_of_a_part_begins_after_its_handler_s_deadline(
    part: Part, timeout: float
) -> None:
    run, begun = deleting(part, timeout)
    assert run.wait(timeout + _MOMENT)
    assert run.get(KIND) is None, run.lines
    assert begun
    # A plain function that is called again and again leaves others a moment.
    assert [each for each in begun if each[1] >= timeout] == []


@settings(max_examples=20, deadline=None)
@given(
    HANDLERS,
    st.sampled_from([3.0, 20.0]),
    st.lists(st.sampled_from([0.0, 1.0, 4.0]), min_size=1, max_size=3),
)
def test_a_deletion_with_a_timeout_always_ends(
    part: Part, timeout: float, crashes: list[float]
) -> None:
    """A crash may lose the first attempt; the clock begins again then at the latest."""
    run, _ = deleting(part, timeout)
    for seconds in crashes:
        run.wait(seconds)
        run.crash()
    assert run.wait(timeout + _MOMENT)
    assert run.get(KIND) is None, run.lines
