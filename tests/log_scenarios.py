"""Handlers of logs: the same scenarios in simulation and on a real API server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

import fnop
from fnop.core.handlers.declare.registry import Registry

__all__ = ["SCENARIOS", "World"]

MARK = "example.com/read-until"

Lines = list[str]


class World(Protocol):
    """A namespace with an operator, and with pods of one container each."""

    @property
    def now(self) -> datetime: ...

    @property
    def warnings(self) -> list[str]:
        """The operator's warnings and errors so far."""
        ...

    def begin(self, registry: Registry) -> None:
        """Start the operator."""
        ...

    def stop(self) -> None: ...

    def create(self, name: str) -> None:
        """Create a pod whose container does not run yet."""
        ...

    def run(self, name: str) -> None:
        """Start the container, or its next instance."""
        ...

    def end(self, name: str) -> None:
        """End the container."""
        ...

    def remove(self, name: str) -> None:
        """End the container and delete the pod at once."""
        ...

    def write(self, name: str, *lines: str) -> None:
        """Let the container write; the times may be a little out of order."""
        ...

    def age(self, name: str, lines: Mapping[str, float]) -> None:
        """Let the container have written each line this number of seconds ago."""
        ...

    def cut(self, name: str) -> None:
        """Break kubelet's connection in the middle of the bytes that come next."""
        ...

    def annotation(self, name: str, key: str) -> str | None:
        """The value of an annotation of a pod."""
        ...

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for a condition."""
        ...


def reading(registry: Registry, found: Lines, **options: Any) -> None:
    """Declare a handler that keeps its lines."""

    def read(line: str, **_: Any) -> None:
        found.append(line)

    id = f"read-{len(registry.handlers)}"
    fnop.on.log("pods", registry=registry, id=id, **options)(read)


def begun(world: World, **options: Any) -> Lines:
    """The lines that the operator reads of the pod p, which runs."""
    registry, found = Registry(), Lines()
    reading(registry, found, **options)
    world.create("p")
    world.run("p")
    world.begin(registry)
    return found


def numbered(first: int, end: int) -> Lines:
    """Lines of all sorts of lengths."""
    return [f"{number} {'=' * (number * 7 % 23)}" for number in range(first, end)]


def until(world: World, found: Lines, expected: Lines) -> None:
    """Wait for lines, and for no others.  One that came twice would come before."""
    world.until(lambda: len(found) >= len(expected))
    assert found == expected


# -------------------------------------------------------------------------- scenarios


def lines_come_once_and_in_order(world: World) -> None:
    found, lines = begun(world, since="start"), numbered(0, 700)
    for at in range(0, 700, 70):
        world.write("p", *lines[at : at + 70])
    until(world, found, lines)
    world.write("p", "last")
    until(world, found, [*lines, "last"])


def broken_off(world: World, found: Lines, lines: Lines) -> None:
    """Let the pod write lines; a log breaks after less than half of them."""
    part = len(lines) // 5
    world.write("p", *lines[:part])
    until(world, found, lines[:part])
    world.cut("p")
    world.write("p", *lines[part : 2 * part])
    world.until(lambda: len(found) > part)
    world.write("p", *lines[2 * part :])


def a_log_is_cut_within_lines_until_its_end_is_read(world: World) -> None:
    """On the connection that follows it, and when the container has ended."""
    found, lines = begun(world, since="start"), numbered(0, 300)
    broken_off(world, found, lines)
    world.cut("p")
    world.end("p")
    until(world, found, lines)
    world.run("p")
    world.write("p", "next")
    until(world, found, [*lines, "next"])


def a_log_that_is_followed_is_cut_twice(world: World) -> None:
    found, lines = begun(world, since="start"), numbered(0, 500)
    world.write("p", *lines[:100])
    until(world, found, lines[:100])
    for cut in (100, 300):
        world.cut("p")
        world.write("p", *lines[cut : cut + 200])
        world.until(lambda cut=cut: len(found) > cut + 80)  # type: ignore[misc]
    until(world, found, lines)
    world.write("p", "last")
    until(world, found, [*lines, "last"])


def a_container_that_restarts_is_read_to_its_end(world: World) -> None:
    """The connection has broken before, and does again: only `previous` shows it."""
    found, lines = begun(world, since="start"), numbered(0, 300)
    broken_off(world, found, lines)
    world.cut("p")
    world.run("p")
    world.write("p", "two")
    until(world, found, [*lines, "two"])


def a_running_container_is_read_since(world: World) -> None:
    world.create("p")
    world.run("p")
    world.age("p", {"first": 2000, "second": 500, "third": 20})
    registry, moment = Registry(), world.now - timedelta(seconds=90)
    expected: dict[Any, Lines] = {
        "now": [],
        "start": ["first", "second", "third"],
        1000: ["second", "third"],
        moment: ["third"],
    }
    found: dict[Any, Lines] = {}
    for since in expected:
        reading(registry, found.setdefault(since, []), since=since)
    function = found.setdefault("function", [])
    expected["function"] = ["second", "third"]
    reading(registry, function, since=lambda name, **_: {"p": 1000}[name])
    world.begin(registry)
    world.until(lambda: all(map(len, [found["start"], function, found[moment]])))
    # "now" begins behind the lines that are there when the operator looks.
    number = 0

    def are_read() -> bool:
        nonlocal number
        if not found["now"]:
            world.write("p", f"new {number}")
            number += 1
        return bool(found["now"])

    world.until(are_read)
    world.write("p", "last")
    new = [*(f"new {each}" for each in range(number)), "last"]
    world.until(lambda: all("last" in each for each in found.values()))
    since_now = found.pop("now")
    assert since_now == new[-len(since_now) :]
    assert found == {each: [*expected[each], *new] for each in found}


def a_restarted_operator_goes_on_from_its_mark(world: World) -> None:
    """The line of the mark comes again, and none before it."""
    registry, found = Registry(), Lines()

    def read_until(annotations: Mapping[str, str], **_: Any) -> str:
        return annotations.get(MARK, "start")

    @fnop.on.log("pods", since=read_until, registry=registry)
    def read(line: str, time: datetime, patch: fnop.Patch, **_: Any) -> None:
        found.append(line)
        patch.meta["annotations"] = {MARK: time.isoformat(), "line": line}

    world.create("p")
    world.run("p")
    world.age("p", {"first": 120, "second": 60})
    world.begin(registry)
    until(world, found, ["first", "second"])
    world.until(lambda: world.annotation("p", "line") == "second")
    world.stop()
    world.write("p", "third")
    world.begin(registry)
    until(world, found, ["first", "second", "second", "third"])


def the_last_line_of_a_pod_that_goes_is_read(world: World) -> None:
    found = begun(world, since="start")
    world.write("p", "first")
    until(world, found, ["first"])
    world.write("p", "last")
    world.remove("p")
    until(world, found, ["first", "last"])
    # Another pod of this name is read from its first line.
    world.create("p")
    world.run("p")
    world.write("p", "other")
    until(world, found, ["first", "last", "other"])


SCENARIOS: tuple[Callable[[World], None], ...] = (
    lines_come_once_and_in_order,
    a_log_is_cut_within_lines_until_its_end_is_read,
    a_log_that_is_followed_is_cut_twice,
    a_container_that_restarts_is_read_to_its_end,
    a_running_container_is_read_since,
    a_restarted_operator_goes_on_from_its_mark,
    the_last_line_of_a_pod_that_goes_is_read,
)
