"""`fnop replay --html`: the page is complete, small, and safe from its content."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings, strategies as st

from fnop.adapters.cli.main import main
from fnop.adapters.common.plain import one_line
from fnop.adapters.recordings import pictures
from fnop.adapters.recordings.html_report import page_of
from fnop.interpreters.recording.comparison.alignment import aligned
from fnop.interpreters.recording.format.reader import RecordingProblem, understood
from fnop.interpreters.recording.model.account import account_from_json
from fnop.interpreters.recording.model.revisions import leaves_of
from fnop.interpreters.recording.questions.story import Story
from fnop.interpreters.recording.questions.timeline import EVENTS_MAX, Timeline
from tests.checks import failure
from tests.commands import fnop
from tests.pages import Seen, page_text, read_recording, seen_in, spoilt, timeline_of
from tests.property.strategies import json_values
from tests.recorded_examples import EXAMPLES, record
from tests.recordings import compressed
from tests.simulations import ROOT
from tests.thorough import examples

Json = dict[str, Any]
SIZE_MAX = 500_000
SCRIPT_MAX = 6 * 1024


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> tuple[Json, list[Json]]:
    return read_recording(record("19-database", tmp_path_factory.mktemp("page")))


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Json, list[Json]]:
    return read_recording(failure(tmp_path_factory.mktemp("failure")))


# ---------------------------------------------------------------------- the whole story


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_line_of_the_story_is_on_the_page(name: str, tmp_path: Path) -> None:
    header, records = read_recording(record(name, tmp_path))
    story = Story()
    lines = [line for each in records for line in story.add(each)]
    page = page_text(header, records)
    seen = seen_in(page)
    timeline = timeline_of(header, records)
    told = " ".join(each.told for each in timeline.events)
    assert lines
    sights = {each.step for each in timeline.events if each.sort == "shown"}
    for line in lines:
        if line.sort == "other":  # it is shown when the operator sees it
            assert line.step in sights
        else:
            assert line.text in told
    assert len(seen.rows) == len(timeline.events) == len(seen.data["e"])
    assert len(page) < SIZE_MAX
    assert_alone(seen)


def test_each_event_has_an_anchor_of_its_step(failed: tuple[Json, list[Json]]) -> None:
    seen, timeline = seen_in(page_text(*failed)), timeline_of(*failed)
    assert len({*seen.rows}) == len(seen.rows)
    for anchor, event in zip(seen.rows, timeline.events, strict=True):
        assert int(anchor.partition(".")[0]) == event.step
    links = [str(found.get("href")) for tag, found in seen.elements if tag == "a"]
    assert {link.removeprefix("#") for link in links} <= {*seen.rows}


def test_recordings_of_earlier_releases_have_a_page() -> None:
    old = ROOT / "tests" / "replays" / "format-2" / "churn-outages-1.fnop"
    header, records = read_recording(old)
    page = page_text(header, records)
    assert "what handlers were shown: an earlier release" in page
    assert_alone(seen_in(page))


# ------------------------------------------------------------- a failure of fnop check


def test_a_failure_shows_its_verdict_its_worlds_and_its_crashes(
    failed: tuple[Json, list[Json]],
) -> None:
    page = page_text(*failed)
    words = " ".join(seen_in(page).words)
    assert "same_end: secrets/x-b is missing" in words
    assert "how this run ends, beside the run without faults" in words
    assert "only without faults: Create secrets/x-b, for certify" in words
    assert re.search(r"\d+ events as in the run without faults", words)
    assert "a crash violates a property at 1 of" in words
    assert "user: apply X x" in words
    rows = re.findall(
        r'<tr id=[\d.]+ class="?([a-z ]+)"?><td class=k>(<i class=m)?', page
    )
    matters = [kind for kind, mark in rows if mark]
    assert matters == ["send"]


def test_the_truth_is_beside_what_the_handler_saw(
    failed: tuple[Json, list[Json]],
) -> None:
    """At the crash the Secret is there, and the handler had read that it is not."""
    data = seen_in(page_text(*failed)).data
    timeline = timeline_of(*failed)
    (at,) = (n for n, each in enumerate(timeline.events) if each.sort == "fault")
    event = data["e"][at]
    (attempt,) = event["a"]
    _, _, sightings, _, ended = data["a"][attempt]
    assert ended == 0  # the process has died
    secret = [name for name, _ in data["o"]].index("secrets/x-a")
    assert [version for _, of, version in sightings if of == secret] == [-1]
    ((_, since, shown, *_),) = data["o"][secret][1]
    assert since <= event["t"] < shown
    told = [data["t"][text] for _, text, _ in event["y"]]
    assert "it had asked for secrets/x-a: none" in told


def test_deltas_make_up_the_versions(database: tuple[Json, list[Json]]) -> None:
    timeline = timeline_of(*database)
    objects = {
        (each[0].version, each[-1].version): each
        for each in timeline.revisions.of_objects().values()
    }
    data = seen_in(page_text(*database)).data
    compared = 0
    for _, versions in data["o"]:
        found = objects[versions[0][0], versions[-1][0]]
        built: Json = {}
        for (number, _, _, _, fresh, gone, *_), revision in zip(
            versions, found, strict=True
        ):
            built = {k: v for k, v in built.items() if k not in gone} | fresh
            assert number == revision.version
            if revision.gone:
                continue
            assert {*built} == {*revision.leaves}
            for path, value in revision.leaves.items():
                shown = one_line(value) if isinstance(value, str) else value
                assert built[path] == shown or len(str(value)) > 200
            compared += 1
    assert compared > len(data["o"])


# ------------------------------------------------------------------------ it is alone


def assert_alone(seen: Seen) -> None:
    """Check that it sends no requests, and runs only its own script."""
    for tag, found in seen.elements:
        assert tag not in ("base", "form", "iframe", "img", "link", "object", "embed")
        assert not any(name.startswith("on") for name in found)
        for name in ("src", "href", "action", "srcset", "data", "xlink:href"):
            value = found.get(name)
            assert value is None or value.startswith("#"), (tag, found)
    (policy,) = (
        found["content"]
        for tag, found in seen.elements
        if tag == "meta" and found.get("http-equiv") == "Content-Security-Policy"
    )
    script = seen.texts["script"]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; ")
    assert f"script-src 'sha256-{digest}';" in policy
    assert [tag for tag, _ in seen.elements].count("script") == 2
    assert not re.search(r"url\(|@import|https?:", seen.texts["style"])
    assert not re.search(
        r"fetch|XMLHttp|WebSocket|import|eval|innerHTML|https?:|localStorage", script
    )
    assert seen.texts["style"].strip() == part("page.css")
    assert script == part("page.js")


def part(name: str) -> str:
    return (
        files("fnop.adapters.recordings").joinpath(name).read_text("utf-8").rstrip("\n")
    )


def test_the_script_is_small() -> None:
    assert (
        len((ROOT / "adapters" / "recordings" / "page.js").read_bytes()) <= SCRIPT_MAX
    )


def test_the_same_recording_has_the_same_page(
    failed: tuple[Json, list[Json]], tmp_path: Path
) -> None:
    write(tmp_path / "run.fnop", *failed)
    pages = set()
    # Under the hash seed of a process that the system has started, and another one.
    for seed in ({}, {"PYTHONHASHSEED": "1"}):
        done = fnop(
            *("replay", "run.fnop", "--html", "page.html", "--perfetto", "trace.pb"),
            folder=tmp_path,
            variables=seed,
        )
        assert (done.status, done.err) == (0, "")
        page, trace = tmp_path / "page.html", tmp_path / "trace.pb"
        assert page.stat().st_mode & 0o777 == 0o600
        pages.add((page.read_bytes(), trace.read_bytes()))
    assert len(pages) == 1


def write(path: Path, header: Json, records: list[Json]) -> None:
    """Write a recording of format 2, whose steps are whole records."""
    whole = ({**header, "format": 2}, *records)
    lines = (json.dumps(each).encode() + b"\n" for each in whole)
    path.write_bytes(compressed(b"".join(lines)))


# -------------------------------------------------------------------------- hostility


@pytest.mark.parametrize("which", ["database", "failed"])
def test_nothing_in_a_recording_is_more_than_text(
    which: str, request: pytest.FixtureRequest
) -> None:
    header, records = request.getfixturevalue(which)
    page = page_text(spoilt(header), [spoilt(each) for each in records])
    seen = seen_in(page)
    assert_alone(seen)
    assert "\u202e" not in page
    data = json.dumps(seen.data)
    assert "</script><img src=x onerror=alert(1)>" in data
    assert any("<img src=x onerror=alert(1)>" in each for each in seen.words)


@settings(max_examples=examples(50))
@given(st.data())
def test_any_record_makes_a_page_or_a_sentence(
    database: tuple[Json, list[Json]], data: st.DataObject
) -> None:
    header, records = database
    number = data.draw(st.integers(0, len(records) - 1))
    spoiled = json.loads(json.dumps(records[number]))
    places = [*containers(spoiled)]
    place, key = data.draw(st.sampled_from(places))
    place[key] = data.draw(json_values)
    timeline = Timeline()
    try:
        for each in (*records[:number], spoiled, *records[number + 1 :]):
            with understood(1):
                timeline.add(each)
    except RecordingProblem:
        return
    timeline.end()
    assert_alone(seen_in(page_of(header, timeline, "run.fnop", cut_off=False)))


def containers(value: Any) -> list[tuple[Any, Any]]:
    """All places in a JSON value: containers, with a key or an index."""
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    found = []
    for key, each in items:
        found += [(value, key), *containers(each)]
    return found


@settings(max_examples=examples(40))
@given(st.data())
def test_any_account_makes_a_page_or_a_sentence(
    failed: tuple[Json, list[Json]], data: st.DataObject
) -> None:
    header, records = failed
    spoiled = json.loads(json.dumps(header))
    places = [*containers({"check": spoiled["check"], "places": spoiled["places"]})]
    place, key = data.draw(st.sampled_from(places))
    place[key] = data.draw(json_values)
    check = spoiled["check"]
    told = check.get("account") if isinstance(check, dict) else None
    try:
        account = account_from_json(told)
    except ValueError:
        return
    timeline = Timeline(account)
    for each in records:
        timeline.add(each)
    timeline.end()
    assert_alone(seen_in(page_of(spoiled, timeline, "run.fnop", cut_off=False)))


def test_a_damaged_account_is_told_in_a_sentence(
    failed: tuple[Json, list[Json]], tmp_path: Path
) -> None:
    header, records = failed
    account = {**header["check"]["account"], "marks": [{"step": "no"}]}
    check = {**header["check"], "account": account}
    write(tmp_path / "run.fnop", {**header, "check": check}, records)
    done = fnop("replay", "run.fnop", "--html", "page.html", folder=tmp_path)
    assert done.status == 3
    assert done.complaint.startswith("fnop: the recording's account of its check is")
    assert not (tmp_path / "page.html").exists()
    plain = fnop("replay", "run.fnop", folder=tmp_path)
    assert plain.status == 0


# --------------------------------------------------------------------------- the caps


def test_a_page_has_the_last_events_and_says_so(
    database: tuple[Json, list[Json]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert EVENTS_MAX == 10_000
    monkeypatch.setattr(pictures, "EVENTS_MAX", 12)
    write(tmp_path / "run.fnop", *database)
    page = tmp_path / "page.html"
    done = CliRunner().invoke(
        main, ["replay", str(tmp_path / "run.fnop"), "--html", str(page)]
    )
    assert done.exit_code == 0, done.output
    events = timeline_of(*database).events
    left = f"{len(events) - 12} of {len(events)} events"
    assert f"page.html has no place for the first {left}" in done.output
    seen = seen_in(page.read_text())
    assert len(seen.rows) == 12 == len(seen.data["e"])
    assert seen.rows[-1].partition(".")[0] == str(events[-1].step)
    assert any(f"the first {left}: the page has 12" in e for e in seen.words)


def test_the_page_of_a_failure_can_be_sent_around(
    database: tuple[Json, list[Json]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A failing run that never rests is long: then its middle is left out."""
    header, records = database
    check = {"property": "settles", "message": "it never rests", "words": "benign"}
    write(tmp_path / "run.fnop", {**header, "check": check}, records)
    page, args = tmp_path / "page.html", ["replay", str(tmp_path / "run.fnop")]
    whole = CliRunner().invoke(main, [*args, "--html", str(page)])
    assert whole.exit_code == 0, whole.output
    assert "no place" not in whole.output
    events = seen_in(page.read_text()).rows
    monkeypatch.setattr(pictures, "EVENTS_MIN", 10)
    monkeypatch.setattr(pictures, "PAGE_BYTES", page.stat().st_size - 4_000)
    short = CliRunner().invoke(main, [*args, "--html", str(page)])
    assert page.stat().st_size <= pictures.PAGE_BYTES
    rows = seen_in(page.read_text()).rows
    left = f"{len(events) - len(rows)} of {len(events)} events in the middle"
    assert f"page.html has no place for {left}" in short.output
    assert (rows[0], rows[-1]) == (events[0], events[-1])


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ((__file__,), "asks the recording alone: leave the files out"),
        (("--object", "a"), "--object goes with the story, "),
        (("--shadow",), "use one of --html and --shadow at a time"),
    ],
)
def test_a_picture_is_of_the_whole_recording(
    more: tuple[str, ...], complaint: str, tmp_path: Path
) -> None:
    recording = ROOT / "tests" / "replays" / "format-2" / "simulated-01-minimal.fnop"
    done = fnop("replay", recording, "--html", "a.html", *more, folder=tmp_path)
    assert done.status == 2
    assert complaint in done.complaint


# --------------------------------------------------------------------------- its parts


@given(st.lists(st.sampled_from("abcd")), st.lists(st.sampled_from("abcd")))
def test_an_alignment_keeps_both_orders(own: list[str], other: list[str]) -> None:
    pairs = [*aligned(own, other)]
    assert [each.own for each in pairs if each.own is not None] == [*range(len(own))]
    theirs = [each.other for each in pairs if each.other is not None]
    assert theirs == [*range(len(other))]
    for mine, yours in pairs:
        assert mine is not None or yours is not None
        if mine is not None and yours is not None:
            assert own[mine] == other[yours]


@given(json_values)
def test_leaves_are_no_containers(value: Any) -> None:
    for _, leaf in leaves_of(value):
        assert leaf in ({}, []) or not isinstance(leaf, dict | list)


def test_a_gap_is_told(database: tuple[Json, list[Json]], tmp_path: Path) -> None:
    header, records = database
    write(tmp_path / "run.fnop", header, [*records[:12], {"gap": 7}, *records[19:]])
    story = fnop("replay", "run.fnop", folder=tmp_path)
    assert (story.status, story.err) == (0, "")
    assert "#19 7 steps could not be recorded" in story.out
    done = fnop(
        *("replay", "run.fnop", "--html", "page.html", "--perfetto", "trace.pb"),
        folder=tmp_path,
    )
    assert done.status == 0
    page = (tmp_path / "page.html").read_text()
    assert '<tr id=19 class="gap bad">' in page
    assert seen_in(page).rows[-1] == seen_in(page_text(header, records)).rows[-1]


@pytest.mark.parametrize("gap", ["no", 1.5, None, []])
def test_a_gap_that_is_none_is_damage(gap: Any, tmp_path: Path) -> None:
    old = ROOT / "tests" / "replays" / "format-2" / "simulated-01-minimal.fnop"
    header, records = read_recording(old)
    write(tmp_path / "run.fnop", header, [*records, {"gap": gap}])
    done = fnop("replay", "run.fnop", "--html", "page.html", folder=tmp_path)
    assert done.status == 3
    assert "cannot be understood" in done.complaint
