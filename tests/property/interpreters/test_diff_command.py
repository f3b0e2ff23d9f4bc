"""`fnop diff`: it names exactly what is changed in one place of a recording.

A recording is changed in one field: of what a handler has decided, of an object that it
was shown, of an answer.  The comparison with the recording as it was names that field
of that call, and nothing else.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from hypothesis import assume, example, given, settings, strategies as st

from bench.diffs import recorded, traced
from bench.sweep import cases_named
from fnop.interpreters.recording.comparison.causes import Told, compared
from fnop.interpreters.recording.comparison.divergence import Sort
from fnop.interpreters.recording.comparison.runs import Run
from fnop.interpreters.recording.identities.volatile import Names, Renaming, is_time
from tests.property.strategies import scalars
from tests.thorough import examples

Path = tuple[Any, ...]

# Operators by causes and by levels, with children, indices, calls, and randomness.
NAMES = ("02-children", "05-handlers", "16-indexing", "17-models", "19-database")
# What every two runs have otherwise, and what lists are compared by.
_OTHERWISE = {
    *("uid", "resourceVersion", "managedFields", "name", "type", "namespace"),
    *("clusterIP", "clusterIPs", "podIP", "podIPs", "hostIP", "hostIPs", "nodePort"),
}
# No number below this is a time.
_TIMES = 1e9
_DECIDED = {"Asked", "Desires", "Ended"}


class Place(NamedTuple):
    """A leaf of a recording: the record, the way to it, and what it is a part of."""

    record: int
    path: Path
    part: str


# ------------------------------------------------------------------- the recordings


@cache
def records_of(name: str) -> Sequence[Any]:
    """The records of an example's longest script."""
    cases = cases_named(name)
    case = max(cases, key=lambda each: len(each.script))
    kept: list[Any] = []

    class Kept(Run):
        def add(self, record: Any) -> None:
            kept.append(record)
            super().add(record)

    recorded(traced(case), into=Kept())
    return kept


@cache
def run_of(name: str) -> Run:
    return folded(records_of(name))


def folded(records: Sequence[Any]) -> Run:
    run = Run()
    for each in records:
        run.add(each)
    return run


@cache
def places_of(name: str) -> Sequence[Place]:
    """All leaves that may be changed."""
    return [*_places(records_of(name))]


def _places(records: Sequence[Any]) -> Iterator[Place]:
    asked: set[int] = set()
    for number, record in enumerate(records):
        input = record["input"]
        if input["in"] == "Started":
            asked.clear()
        if "body" in input:
            for stanza in ("spec", "data"):
                path = ("input", "body", stanza)
                yield from _leaves(number, record, path, "view")
        if input["in"] == "Answered" and input["id"] in asked:
            yield from _leaves(number, record, ("input", "outcome"), "answer")
        for place, command in enumerate(record["commands"]):
            if command["do"] in _DECIDED:
                yield from _leaves(number, record, ("commands", place), "decision")
            is_ours = command.get("handler") and command["do"] == "Perform"
            if is_ours and command["effect"]["is"] != "Random":
                asked.add(command["id"])


def _leaves(number: int, record: Any, start: Path, part: str) -> Iterator[Place]:
    def within(value: Any, path: Path) -> Iterator[Path]:
        if isinstance(value, dict):
            for key, each in value.items():
                if key not in _OTHERWISE and not key.startswith("fnop.dev/"):
                    yield from within(each, (*path, key))
        elif isinstance(value, list):
            for place, each in enumerate(value):
                yield from within(each, (*path, place))
        elif value is not None and not _is_time(value):
            yield path

    for path in within(at(record, start), start):
        if path[-1] not in ("do", "is", "attempt", "exception"):
            yield Place(number, path, part)


def _is_time(value: Any) -> bool:
    return is_time(value) or (isinstance(value, int | float) and value >= _TIMES)


def at(value: Any, path: Path) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else value[key]
        if value is None:
            return None
    return value


def other(value: Any) -> Any:
    """Another value of the same type, which is not another name of the same thing."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case _:
            return f"{value}-other"


def changed(records: Sequence[Any], place: Place) -> tuple[Run, Any, Any]:
    """The run with another leaf; the leaf as it was and as it is."""
    record = copy.deepcopy(records[place.record])
    *way, last = place.path
    holder = at(record, tuple(way))
    was = holder[last]
    holder[last] = now = other(was)
    found = [*records]
    found[place.record] = record
    return folded(found), was, now


def compare(name: str, place: Place) -> tuple[Told | None, Any, Any]:
    run, was, now = changed(records_of(name), place)
    return compared(run_of(name), run).first, was, now


def drawn(data: st.DataObject, part: str) -> tuple[str, Place]:
    name = data.draw(st.sampled_from(NAMES))
    places = [each for each in places_of(name) if each.part == part]
    assume(places)
    return name, data.draw(st.sampled_from(places))


# --------------------------------------------------------------------- the properties


@given(st.data())
@settings(deadline=None, max_examples=examples(30))
def test_another_decision_is_named_with_its_field(data: st.DataObject) -> None:
    name, place = drawn(data, "decision")
    first, was, now = compare(name, place)
    assert first is not None
    found = first.found
    assert (found.sort, found.steps) == (Sort.DECISION, (place.record + 1,) * 2)
    assert [(each.old, each.new) for each in found.fields] == [(was, now)]
    assert _plain(found.fields[0].field) == _plain(
        place.path[-len(found.fields[0].field) :]
    )
    assert first.cause.inputs == ()  # the code differs


@given(st.data())
@settings(deadline=None, max_examples=examples(30))
def test_another_object_is_named_with_its_field(data: st.DataObject) -> None:
    name, place = drawn(data, "view")
    body = records_of(name)[place.record]["input"]["body"]
    calls = [
        each
        for each in run_of(name).calls
        if each.attempt.body and each.attempt.body.data is body
    ]
    assume(calls)
    first, was, now = compare(name, place)
    assert first is not None
    assert first.found.sort in (Sort.VIEW, Sort.ANSWER)  # an answer may refer to it
    fields = first.found.fields or first.cause.inputs[0].fields
    assert [(each.old, each.new) for each in fields] == [(was, now)]
    assert _plain(fields[0].field)[-1] == _plain(place.path)[-1]
    if first.found.sort is Sort.VIEW:
        assert first.found.steps[0] == calls[0].step
        assert len(first.cause.inputs) == 1
        shown = first.cause.inputs[0].shown[0]
        assert shown is not None
        assert shown.body.uid == body["metadata"]["uid"]


@given(st.data())
@settings(deadline=None, max_examples=examples(30))
def test_another_answer_is_named_with_its_field(data: st.DataObject) -> None:
    name, place = drawn(data, "answer")
    first, was, now = compare(name, place)
    assert first is not None
    assert first.found.sort is Sort.ANSWER
    assert first.found.steps == (place.record + 1,) * 2
    assert [(each.old, each.new) for each in first.found.fields] == [(was, now)]
    assert _plain(first.found.fields[0].field)[-1] == _plain(place.path)[-1]


def _plain(path: Path) -> list[str]:
    """A path without how items of lists are called: by their names, or by numbers."""
    return ["[]" if isinstance(e, int) or e.startswith("[") else e for e in path]


@given(st.data())
@settings(deadline=None, max_examples=examples(30))
def test_a_run_that_is_cut_off_differs_in_nothing_that_it_has(
    data: st.DataObject,
) -> None:
    name = data.draw(st.sampled_from(NAMES))
    records = records_of(name)
    # Another process is another matter: the end of one is a difference.
    starts = [n for n, each in enumerate(records) if each["input"]["in"] == "Started"]
    length = data.draw(st.integers(1, starts[1]))
    whole, part = folded(records[: starts[1]]), folded(records[:length])
    for runs, shorter in (((whole, part), 1), ((part, whole), 0)):
        found = compared(*runs)
        assert found.first is None or found.shorter == shorter


@given(st.data())
@settings(deadline=None, max_examples=examples(30))
def test_steps_that_are_missing_are_no_difference(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES))
    whole, part = run_of(name), folded(lacking(records_of(name), data))
    for runs in ((whole, part), (part, whole), (part, part)):
        found = compared(*runs)
        assert found.first is None
        assert not any(each.ours or each.theirs for each in found.lanes)


@given(st.data())
@settings(deadline=None, max_examples=examples(15))
def test_what_differs_before_missing_steps_is_named_as_without_them(
    data: st.DataObject,
) -> None:
    name, place = drawn(data, data.draw(st.sampled_from(("decision", "answer"))))
    records = records_of(name)
    run, _, _ = changed(records, place)
    whole = compared(run_of(name), run).first
    begin = data.draw(st.integers(place.record + 1, len(records)))
    part = folded([*records[:begin], {"gap": 3}, *records[begin:]])
    for runs in ((part, run), (run, part)):
        found = compared(*runs).first
        assert (found is None) == (whole is None)
        if found is not None and whole is not None:
            assert found.found.sort is whole.found.sort
            assert found.found.steps == whole.found.steps
            fields = {each.field for each in found.found.fields}
            assert fields == {each.field for each in whole.found.fields}


def lacking(records: Sequence[Any], data: st.DataObject) -> list[Any]:
    """The records without some consecutive steps, with a gap that reports them."""
    begin = data.draw(st.integers(0, len(records) - 1))
    end = data.draw(st.integers(begin + 1, len(records)))
    return [*records[:begin], {"gap": end - begin}, *records[end:]]


# ------------------------------------------------------------------------- the names

UIDS = [f"{n:08x}-0000-4000-8000-000000000000" for n in range(1, 6)]
_UID = re.compile("|".join(UIDS))
OTHERS = [f"{n:08x}-1111-4111-8111-111111111111" for n in range(1, 6)]


def texts(names: list[str]) -> st.SearchStrategy[str]:
    return st.sampled_from([*names, *(f"of {each}, v1" for each in names)])


values_with_uids = st.recursive(
    scalars | texts(UIDS),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4)
    ),
    max_leaves=10,
)


def renamed(value: Any, names: dict[str, str]) -> Any:
    match value:
        case dict():
            return {key: renamed(each, names) for key, each in value.items()}
        case list():
            return [renamed(each, names) for each in value]
        case str():
            return _UID.sub(lambda found: names[found[0]], value)
        case _:
            return value


@given(values_with_uids, st.permutations(OTHERS))
def test_names_that_correspond_one_to_one_are_no_difference(
    value: Any, names: list[str]
) -> None:
    theirs = renamed(value, dict(zip(UIDS, names, strict=True)))
    assert Renaming(Names(), Names()).is_same(value, theirs)


@given(st.lists(st.sampled_from(UIDS), min_size=2), st.data())
@example([UIDS[0], UIDS[0]], None)
def test_names_that_do_not_are(uids: list[str], data: st.DataObject | None) -> None:
    theirs = renamed(uids, dict(zip(UIDS, OTHERS, strict=True)))
    places = [n for n, each in enumerate(uids) if uids.count(each) > 1]
    assume(places)
    place = places[-1] if data is None else data.draw(st.sampled_from(places))
    theirs[place] = "0000ffff-2222-4222-8222-222222222222"
    assert not Renaming(Names(), Names()).is_same(uids, theirs)
    assert not Renaming(Names(), Names()).is_same(theirs, uids)
