"""Recordings of processes that ran at the same time: one timeline, and one page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from fnop.interpreters.recording.questions.headlines import Sort, headlines_of
from fnop.interpreters.recording.questions.lanes import calls_of, lanes_of
from fnop.interpreters.recording.questions.processes import (
    Processes,
    by_time,
    names_of,
)
from tests.checks import failure
from tests.commands import Done, fnop
from tests.pages import read_recording, seen_in
from tests.replicas import record_replicas


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("replicas")
    record_replicas(place)
    return place


@pytest.fixture(scope="module")
def together(folder: Path) -> Processes:
    names = ("pod-a", "pod-b")
    found = Processes(names)
    records = {name: read_recording(folder / f"{name}.fnop")[1] for name in names}
    for name, record in by_time(records):
        found.add(name, record)
    found.end()
    return found


def test_events_are_in_the_order_of_time(together: Processes) -> None:
    events = [*together.events]
    assert [each.step for each in events] == sorted(each.step for each in events)
    assert [each.wall for each in events] == sorted(each.wall for each in events)
    assert {each.process for each in events} == {"pod-a", "pod-b"}
    steps = [each.steps for each in together.processes]
    assert sum(steps) == together.steps
    for each, count in zip(("pod-a", "pod-b"), steps, strict=True):
        own = [one.own_step for one in events if one.process == each]
        assert own == sorted(own)
        assert 0 < own[0] <= own[-1] <= count


def test_the_events_of_each_process_are_those_of_its_recording(
    folder: Path, together: Processes
) -> None:
    for name in ("pod-a", "pod-b"):
        alone = Processes((name,))
        for record in read_recording(folder / f"{name}.fnop")[1]:
            alone.add(name, record)
        alone.end()
        expected = [(each.own_step, each.sort, each.text) for each in alone.events]
        found = [
            (each.own_step, each.sort, each.text)
            for each in together.events
            if each.process == name
        ]
        assert found == expected


def test_a_version_names_the_process_step_that_made_it(together: Processes) -> None:
    """The second process sees a child that the first one has made."""
    (seen, *_) = (
        each
        for each in together.events
        if each.process == "pod-b" and each.sort == "shown"
        if each.object is not None and each.object.kind == "configmaps"
    )
    assert seen.revision is not None
    made = seen.revision.made
    (maker,) = {e.process for e in together.events if e.step == made}
    assert maker == "pod-a"


def test_the_states_of_the_processes(together: Processes) -> None:
    one, two = together.processes
    first = [text.partition(":")[0] for _, text in one.states]
    second = [text.partition(":")[0] for _, text in two.states]
    ended = "its recording has ended"
    assert first == ["it serves", "leading", "it is to stop", ended]
    assert second == ["it serves", "standing by", "leading", ended]


def test_the_headlines_are_of_all_processes(together: Processes) -> None:
    found = {each.sort: each.events for each in headlines_of(together.events)}
    assert [each.process for each in found[Sort.REPAIR]] == ["pod-a", "pod-b"]
    assert [each.process for each in found[Sort.TAKEOVER]] == ["pod-b"]
    assert Sort.RESTART not in found
    assert Sort.FAILURE not in found


def test_each_process_has_a_lane_and_its_calls(together: Processes) -> None:
    events = [*together.events]
    lanes = lanes_of(events)
    assert lanes[-2:] == ["operator pod-a", "operator pod-b"]
    for first, last in calls_of(events):
        assert events[first].process == events[last].process


walls = st.lists(st.integers(0, 20).map(lambda wall: {"wall": float(wall)}))


@given(st.dictionaries(st.sampled_from("abc"), walls))
def test_each_record_comes_once_and_a_process_keeps_its_order(
    recordings: dict[str, list[dict[str, Any]]],
) -> None:
    found = [*by_time(recordings)]
    for name, records in recordings.items():
        own = [each for process, each in found if process == name]
        assert [*map(id, own)] == [*map(id, records)]
    assert len(found) == sum(map(len, recordings.values()))


def test_paths_without_a_difference_have_numbers() -> None:
    assert names_of(["run.fnop", "./run.fnop", "run.fnop"]) == ["1", "2", "3"]


# -------------------------------------------------------------------------- the command


def page_of(folder: Path, *recordings: str) -> tuple[Done, str]:
    done = fnop("replay", "--html", "page.html", *recordings, folder=folder)
    page = folder / "page.html"
    return done, page.read_text() if page.exists() else ""


@pytest.mark.parametrize("recordings", [["pod-a.fnop", "pod-b.fnop"], ["."]])
def test_several_recordings_are_one_page(folder: Path, recordings: list[str]) -> None:
    done, page = page_of(folder, *recordings)
    assert (done.status, done.err) == (0, "")
    seen = seen_in(page)
    assert [each[0] for each in seen.data["p"]] == ["pod-a", "pod-b"]
    words = " ".join(" ".join(seen.words).split())
    assert "2 repairs" in words
    assert "1 takeover" in words
    assert "no trouble" in words
    assert len({*seen.rows}) == len(seen.rows) == len(seen.data["e"])


def test_a_process_that_was_killed_has_a_recording_that_is_cut_off(
    folder: Path, tmp_path: Path
) -> None:
    for name in ("pod-a", "pod-b"):
        data = (folder / f"{name}.fnop").read_bytes()
        kept = len(data) - 40 if name == "pod-a" else len(data)
        (tmp_path / f"{name}.fnop").write_bytes(data[:kept])
    done, page = page_of(tmp_path, "pod-a.fnop", "pod-b.fnop")
    assert done.status == 0
    assert "pod-a is cut off" in done.err
    assert "pod-b" not in done.err
    assert "end was never written" in page


def test_a_failure_of_a_check_has_a_page_of_its_own(
    folder: Path, tmp_path: Path
) -> None:
    done, page = page_of(tmp_path, str(failure(tmp_path)), str(folder / "pod-b.fnop"))
    assert (done.status, page) == (2, "")
    assert "a failure of fnop check has a page of its own" in done.err


def test_the_page_of_one_recording_has_no_processes(folder: Path) -> None:
    done, page = page_of(folder, "pod-a.fnop")
    assert done.status == 0
    assert seen_in(page).data["p"] == []
    assert "Processes" not in page


def test_other_questions_take_one_recording(folder: Path) -> None:
    done = fnop("replay", "pod-a.fnop", "pod-b.fnop", folder=folder)
    assert done.status == 2
    assert "only --html takes several recordings" in done.err
