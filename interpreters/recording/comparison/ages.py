"""Times as ages: two runs do not share a clock, but elapsed times can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from fnop.core.values.diff import Diff, DiffItem, Path
from fnop.core.values.now import parse_time
from fnop.interpreters.recording.comparison.runs import Call, Run
from fnop.interpreters.recording.identities.volatile import is_time

__all__ = ["ages_of", "differing_ages", "is_delay", "is_one_moment"]

# A smaller difference of ages does not count as a cause: timestamps have whole seconds.
_SECONDS = 1.0
# The names of delays in effects and failures.
_DELAYS = frozenset(("after", "again", "delay", "seconds"))
# A rounded clock makes a delay longer by up to `_ROUNDED_SECONDS`. No author changes a
# delay of `_LONG_SECONDS` or more by so little.
_ROUNDED_SECONDS = 1.0
_LONG_SECONDS = 60.0


def ages_of(run: Run, call: Call) -> Mapping[Path, float]:
    """The ages of a call, in seconds.

    They are the seconds since the process began, since the call before, and since each
    time in the objects that the call was shown.
    """
    return dict(_moments_with_ages(run, call))


def _moments_with_ages(run: Run, call: Call) -> Iterator[tuple[Path, float]]:
    now = call.attempt.now.wall
    began = run.walls[run.started[call.process - 1] - 1]
    yield ("the start of the process",), now - began
    before = (each for each in reversed(run.calls) if each.step < call.step)
    last = next((each for each in before if _is_alike(each, call)), None)
    if last is not None:
        yield ("the call before",), now - last.attempt.now.wall
    attempt = call.attempt
    shown = [("", attempt.body)]
    for key, body in attempt.children.items():
        shown.append((f"{key.resource.partition('.')[0]}/{key.name}", body))
    for label, found in shown:
        path = (label,) if label else ()
        for place, text in _timestamps({} if found is None else found.data, path):
            with suppress(ValueError):
                yield place, now - parse_time(text)


def _is_alike(one: Call, other: Call) -> bool:
    """Whether two calls are of the same handler, for the same object."""
    mine, yours = one.attempt.object, other.attempt.object
    is_same_object = (mine and mine.uid) == (yours and yours.uid)
    return one.attempt.handler == other.attempt.handler and is_same_object


def _timestamps(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            if key != "managedFields":
                yield from _timestamps(each, (*path, key))
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from _timestamps(each, (*path, f"[{place}]"))
    elif is_time(value):
        yield path, value


def differing_ages(here: Mapping[Path, float], there: Mapping[Path, float]) -> Diff:
    """The ages that differ in two runs, in seconds."""
    return tuple(
        DiffItem("change", path, round(here[path], 3), round(there[path], 3))
        for path in sorted(here.keys() & there.keys())
        if abs(here[path] - there[path]) >= _SECONDS
    )


def is_one_moment(
    item: DiffItem, here: Mapping[Path, float], there: Mapping[Path, float]
) -> bool:
    """Whether two delays end at one moment, counted from a time that both calls saw.

    >>> item = DiffItem("change", ("plan", "0", "after"), 597.0, 590.5)
    >>> is_one_moment(item, {("status", "since"): 3.0}, {("status", "since"): 10.0})
    True
    >>> is_one_moment(item, {("status", "since"): 3.0}, {("status", "since"): 3.0})
    False
    """
    if not is_delay(item):
        return False
    apart = item.old - item.new
    if abs(apart) < _ROUNDED_SECONDS:
        return bool(min(item.old, item.new) >= _LONG_SECONDS)
    ages = differing_ages(here, there)
    return any(abs(apart + each.old - each.new) < _ROUNDED_SECONDS for each in ages)


def is_delay(item: DiffItem) -> bool:
    """Whether the item is about a delay in seconds that both runs have."""
    both = isinstance(item.old, int | float) and isinstance(item.new, int | float)
    return both and item.field[-1:] != () and item.field[-1] in _DELAYS
