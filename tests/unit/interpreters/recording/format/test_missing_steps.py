"""Recordings that lack steps: each command says so, and does not blame others.

If a disk is too slow, steps are skipped and counted. No reader fails because of that,
or reports a missing step as a difference: it reports that steps are missing.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from fnop.adapters.cli.main import main
from fnop.adapters.recordings.recording_files import recorder_to
from fnop.core.api.resources import Resource
from fnop.core.handlers.program.program import Program
from fnop.core.values.paths import parse_path
from fnop.interpreters.explain.recorded import recorded_of
from fnop.interpreters.recording.format.reader import read_header, read_records
from fnop.interpreters.recording.format.recorder import Recorder
from fnop.interpreters.recording.model.excerpt import Incomplete, excerpt_of
from fnop.interpreters.recording.model.history import History, Step
from fnop.interpreters.recording.model.presence import Presence
from fnop.interpreters.recording.model.records import Gap
from fnop.interpreters.recording.questions.busy import Busy
from fnop.interpreters.recording.questions.links import Behind
from fnop.interpreters.recording.questions.others import Others
from fnop.interpreters.recording.questions.provenance import Provenance, Why
from fnop.interpreters.recording.questions.story import Story
from fnop.interpreters.recording.questions.timeline import Timeline
from fnop.interpreters.recording.redaction import Redaction
from fnop.interpreters.shadow.attempts import shadow
from tests.commands import fnop
from tests.recordings import HEADER, STEP, TRACED, lines_of
from tests.simulations import Scenario, example, handlers_in

OPERATOR = """
import fnop

@fnop.index("configmaps")
def levels(name, body, **_):
    return {body.get("data", {}).get("level", ""): name}

@fnop.reconcile("fnopexamples", owns=["configmaps"], id="kept")
def kept(spec, name, levels, **_):
    return fnop.desired(
        [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
          "data": {"level": spec["level"]}}],
        status={"level": spec["level"], "known": len(levels)},
    )

@fnop.on.update("fnopexamples", field="spec.level")
async def moved(old, new, name, **_):
    found = await fnop.get("configmaps", name=name)
    return {"from": old, "to": new, "there": found is not None}

@fnop.on.create("fnopexamples")
async def slow(name, **_):
    await fnop.sleep(2)
    await fnop.apply({"apiVersion": "v1", "kind": "ConfigMap",
                      "metadata": {"name": f"{name}-slow"}, "data": {"level": "slow"}})

@fnop.on.update("fnopexamples", field="spec.level")
def late(runtime, **_):
    if runtime.total_seconds() < 1:
        return fnop.again(after=1, because="it is too early")
    return "now"

@fnop.on.create("fnopexamples")
def made(**_):
    @fnop.subhandler(id="part")
    def part(**_):
        return "done"
"""
EXAMPLE = Resource("fnop.dev", "v1", "fnopexamples", "FnopExample", namespaced=True)


class Lossy:
    """A recorder on a disk that does not take the steps from one to another."""

    def __init__(self, recorder: Recorder, begin: int, end: int) -> None:
        self.recorder = recorder
        self.steps = 0
        self._begin, self._end = begin, end

    def observe(self, *step: Any) -> None:
        self.steps += 1
        if self.steps == self._begin:
            self.recorder.gap(self._end - self._begin)
        if not self._begin <= self.steps < self._end:
            self.recorder.observe(*step)


def recorded(folder: Path, name: str, begin: int = 0, end: int = 0) -> int:
    """Record a run without some steps; the number of all."""
    file = folder / "operator.py"
    file.write_text(OPERATOR)
    program = Program(handlers_in(file), TRACED)
    recorder = recorder_to(folder / name, program, Redaction(b"k" * 16, program))
    lossy = Lossy(recorder, begin, end)
    sim = Scenario(program.handlers, settings=TRACED, observers=[lossy])
    for each in ("a", "b"):
        sim.apply(example(each, level="low"))
    assert sim.settle(), sim.unsettled
    for level in ("middle", "high"):
        for each in ("a", "b"):
            sim.edit("fnopexamples", each, spec={"level": level})
        assert sim.settle(), sim.unsettled
    sim.delete("fnopexamples", "b")
    assert sim.settle(), sim.unsettled
    recorder.close()
    assert recorder.problem is None, recorder.problem
    return lossy.steps


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """The folder of a recording without gaps, and its steps."""
    folder = tmp_path_factory.mktemp("gaps")
    return folder, recorded(folder, "whole.fnop")


@pytest.fixture(scope="module", params=[0.3, 0.5, 0.8])
def lossy(
    request: pytest.FixtureRequest, whole: tuple[Path, int]
) -> tuple[Path, int, int]:
    """The folder of a recording that lacks steps from one to another."""
    folder, steps = whole
    begin = int(steps * request.param)
    end = begin + steps // 6
    recorded(folder, "partial.fnop", begin, end)
    return folder, begin, end


# The arguments of the command; the exit status; the output.  `WHOLE` and `PARTIAL` are
# the recordings, `OP` the operator, `AFTER` a step after the gap.
READERS = {
    "replay": ("replay PARTIAL OP", 4, "identical for BEFORE steps, where the recor"),
    "story": ("replay PARTIAL", 0, "#LAST COUNT steps could not be recorded"),
    "of one": ("replay PARTIAL --object fnopexamples/default/a", 0, "made is called"),
    "changes": ("replay PARTIAL --changes-only", 0, "COUNT steps could not be recor"),
    "why": (
        "replay PARTIAL --object fnopexamples/default/a --why status.level",
        0,
        "fnopexamples.fnop.dev default/a: status.level = ",
    ),
    "shadow": (
        "replay PARTIAL OP --shadow --fail-on any",
        0,
        "COUNT steps of the run are not in the recording",
    ),
    "from before": (
        "replay PARTIAL OP --from 5",
        4,
        "the recording lacks COUNT steps after #BEFORE",
    ),
    "from after": ("replay PARTIAL OP --from AFTER", None, "COUNT steps before #AFTER"),
    "explore": (
        "replay PARTIAL OP --explore --from 5",
        4,
        "the recording lacks COUNT steps after #BEFORE",
    ),
    "as a test": (
        "replay PARTIAL OP --as-test --at 5",
        4,
        "the recording lacks COUNT steps after #BEFORE",
    ),
    "as a test after": (
        "replay PARTIAL OP --as-test --at AFTER",
        4,
        "no test can be made of this part: the recorded operator fails it",
    ),
    "step": ("replay PARTIAL --step --at LAST", 0, "COUNT steps are missing"),
    "html": ("replay PARTIAL --html page.html", 0, "page.html: "),
    "perfetto": ("replay PARTIAL --perfetto page.trace", 0, "page.trace: "),
    "diff": ("diff WHOLE PARTIAL", 4, "no difference in"),
    "reversed": ("diff PARTIAL WHOLE", 4, "PARTIAL lacks COUNT steps after #BEFORE"),
    "itself": ("diff PARTIAL PARTIAL", 4, "no difference in"),
}


@pytest.mark.parametrize("reader", READERS)
def test_each_reader_tells_that_steps_are_missing(
    reader: str, lossy: tuple[Path, int, int]
) -> None:
    folder, begin, end = lossy
    words, status, text = READERS[reader]
    names = {
        "WHOLE": "whole.fnop",
        "PARTIAL": "partial.fnop",
        "OP": "operator.py",
        "AFTER": str(end),
        "BEFORE": str(begin - 1),
        "LAST": str(end - 1),
        "COUNT": str(end - begin),
    }
    # A process: it imports the operator.
    done = fnop(*(names.get(each, each) for each in words.split()), folder=folder)
    wanted = re.sub("[A-Z]{2,}", lambda each: names.get(each[0], each[0]), text)
    assert wanted in re.sub(" +", " ", f"{done.out}{done.err}")
    assert status in (None, done.status), done
    assert "Traceback" not in done.err


@pytest.fixture
def lines(lossy: tuple[Path, int, int]) -> list[str]:
    """The story of the recording that lacks steps, by lines."""
    done = CliRunner().invoke(main, ["replay", str(lossy[0] / "partial.fnop")])
    return done.output.splitlines()


def test_the_operators_own_deeds_are_not_told_as_those_of_others(
    lines: list[str], whole: tuple[Path, int]
) -> None:
    """Only the user, who edits and deletes, does anything in this run."""
    changes_of_others = re.compile(r"is (changed|to be deleted|deleted|gone)\b.*")
    told = {found[0] for each in lines if (found := changes_of_others.search(each))}
    done = CliRunner().invoke(main, ["replay", str(whole[0] / "whole.fnop")])
    known = {each[0] for each in changes_of_others.finditer(done.output)}
    assert known
    assert told <= known


def test_why_names_no_other_author_than_without_the_gap(
    lossy: tuple[Path, int, int],
) -> None:
    folder, *_ = lossy
    authors = []
    for name in ("whole", "partial"):
        args = ["replay", str(folder / f"{name}.fnop"), "--object", "configmaps/a"]
        done = CliRunner().invoke(main, [*args, "--why", "data.level"])
        assert done.exit_code == 0, done.output
        (author,) = re.findall("written (.*)", done.output)
        authors.append(author)
    assert "for handler kept" in authors[0]
    if authors[0] != authors[1]:
        _, begin, end = lossy
        steps = (
            f"{end - begin} steps after #{begin - 1} are missing: the value may have"
        )
        assert steps in done.output


def test_why_tells_of_missing_steps_where_the_value_may_be_of_them(
    whole: tuple[Path, int],
) -> None:
    """The request is missing that has made it, and the first sight of what it made."""
    folder, _ = whole
    why = ["--object", "configmaps/a", "--why", "data.level"]
    told = CliRunner().invoke(main, ["replay", str(folder / "whole.fnop"), *why])
    (sent,) = re.findall(r"sent at #(\d+)", told.output)
    recorded(folder, "author.fnop", int(sent), int(sent) + 1)
    done = CliRunner().invoke(main, ["replay", str(folder / "author.fnop"), *why])
    gap = f"1 step after #{int(sent) - 1} is missing: the value may have appeared"
    assert gap in done.output
    assert (
        "written by this operator, with a request that is not recorded" in done.output
    )


def test_a_page_tells_no_request_as_lost_whose_answer_is_missing(
    whole: tuple[Path, int],
) -> None:
    folder, steps = whole
    with (folder / "whole.fnop").open("rb") as file:
        records = read_records(file)
        read_header(records)
        asks = next(
            number
            for number, (one, following) in enumerate(pairwise(records), 1)
            if one and any(each["do"] == "Perform" for each in one["commands"])
            if following and following["input"]["in"] == "Answered"
        )
    recorded(folder, "answer.fnop", asks + 1, asks + 2)
    page = folder / "answer.html"
    args = ["replay", str(folder / "answer.fnop"), "--html", str(page)]
    assert CliRunner().invoke(main, args).exit_code == 0
    assert "steps are missing" in page.read_text()
    assert "no reply" not in page.read_text()
    assert asks < steps


def test_fnop_explain_tells_of_missing_steps(lossy: tuple[Path, int, int]) -> None:
    folder, begin, end = lossy
    with (folder / "partial.fnop").open("rb") as file:
        records = read_records(file)
        read_header(records)
        told = recorded_of(records, EXAMPLE, "default", "a")
    text = f"steps that could not be recorded: {end - begin}"
    assert [each.what for each in told].count(text) == 1


@pytest.mark.parametrize("option", ["text", "json"])
def test_what_differs_before_the_gap_is_told_all_the_same(
    option: str, lossy: tuple[Path, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, begin, _ = lossy
    other = folder / "other"
    other.mkdir(exist_ok=True)
    monkeypatch.setitem(globals(), "OPERATOR", OPERATOR.replace("len(", "-len("))
    recorded(other, "other.fnop")
    files = [str(folder / "partial.fnop"), str(other / "other.fnop")]
    done = CliRunner().invoke(main, ["diff", "-o", option, *files])
    args = ["diff", "-o", option, str(folder / "whole.fnop"), files[1]]
    known = CliRunner().invoke(main, args)
    assert (done.exit_code, known.exit_code) == (1, 1)
    if option == "json":
        ours, theirs = json.loads(done.stdout), json.loads(known.stdout)
        assert [each["missing"] > 0 for each in ours["runs"]] == [True, False]
        keys = ("sort", "handler", "object", "steps", "fields")
        for each in ("first", "decision"):
            assert ours[each]["steps"][0] < begin
            assert [ours[each][k] for k in keys] == [theirs[each][k] for k in keys]
    else:
        first = [
            next(each for each in out.splitlines() if each.startswith("first"))
            for out in (done.stdout, known.stdout)
        ]
        assert first[0] == first[1]


# ---------------------------------------------------------- folds of single records


def shown(version: int, manager: str, **spec: int) -> dict[str, Any]:
    """A watch event of an object, whose spec one manager has written."""
    fields: dict[str, Any] = {"f:spec": {f"f:{key}": {} for key in spec}}
    managed = [{"manager": manager, "operation": "Update", "fieldsV1": fields}]
    meta = {"name": "x", "uid": "u", "resourceVersion": str(version)}
    body = {"apiVersion": "v1", "kind": "X", "spec": spec}
    body["metadata"] = {**meta, "managedFields": managed}
    return {"in": "WatchEvent", "type": "MODIFIED", "stream": 1, "body": body}


def step(input: dict[str, Any], *commands: dict[str, Any]) -> dict[str, Any]:
    return {"wall": 0.0, "mono": 0.0, "input": input, "commands": [*commands]}


def test_after_the_gap_only_what_others_manage_is_theirs() -> None:
    others = Others("me")
    began = {"do": "Began", "attempt": 1, "handler": "keep"}
    began["object"] = ["xs.v1.", "", "x", "u", "1"]
    assert others.add(step(shown(1, "me", a=1), began)) == []
    others.miss(Gap(2, 4))  # with requests
    assert others.add(step(shown(3, "me", a=3))) == []  # who knows since when
    assert others.add(step(shown(4, "me", a=4))) == []
    (act,) = others.add(step(shown(5, "alice", a=5)))
    assert act.text == "xs/x is changed by alice: spec.a"
    assert others.add(step({"in": "Started"})) == []
    (act,) = others.add(step(shown(6, "me", a=6)))  # no request of this process
    assert act.text.startswith("xs/x is changed")


def test_after_the_gap_a_request_belongs_to_the_call_that_asks_for_it() -> None:
    began = {"do": "Began", "attempt": 1, "handler": "keep"}
    began["object"] = ["xs.v1.", "", "x", "u", "1"]
    effect = {"is": "Get", "target": {"resource": "ys", "name": "y"}}
    asked = {"do": "Asked", "attempt": 1, "effect": effect}
    sent = {"do": "Perform", "effect": effect, "handler": "keep", "subject": "x"}
    history = History()
    history.read(step(shown(1, "me", a=1), began))
    history.read({"gap": 2})
    alarm = {"in": "AlarmRang"}
    first = history.read(step(alarm, {**sent, "id": 7}))  # of another call, perhaps
    second = history.read(step(alarm, asked, {**sent, "id": 8}))
    assert isinstance(first, Step)
    assert isinstance(second, Step)
    assert first.requests[7].attempts == ()
    assert [each.handler for each in second.requests[8].attempts] == ["keep"]


def test_a_listing_in_which_steps_are_missing_lacks_nothing() -> None:
    listing = {"do": "ListPage", "stream": 1, "resource": "xs.v1."}
    begun, item = step({"in": "Started"}, listing), shown(1, "me", a=1)
    listed = step({**item, "in": "ListItem"})
    done = step({"in": "ListDone", "stream": 1, "version": "1"})
    for missing in (True, False):
        presence = Presence()
        for each in (begun, listed, done, begun):
            assert presence.add(each) == []
        if missing:  # and with them the first page
            presence.miss(Gap(5, 5))
            more = {**listing, "continue_token": "more"}
            assert presence.add(step({"in": "AlarmRang"}, more)) == []
        departures = presence.add(done)  # without the item
        assert [each.uid for each in departures] == ([] if missing else ["u"])


# ------------------------------------------------------------ wherever the gap is

LENGTHS = (1, 4, 11)


class Whole(NamedTuple):
    """A recording without gaps: its header, its records, and its program."""

    header: dict[str, Any]
    records: list[Any]
    program: Program

    def lacking(self) -> Iterator[tuple[int, int, list[Any]]]:
        """Without some steps in a row, wherever these are: from, to, and the rest."""
        for count in LENGTHS:
            for begin in range(1, len(self.records) - count):
                before, after = self.records[:begin], self.records[begin + count :]
                yield begin, begin + count, [*before, {"gap": count}, *after]


@pytest.fixture(scope="module")
def run(whole: tuple[Path, int]) -> Whole:
    folder, _ = whole
    with (folder / "whole.fnop").open("rb") as file:
        records = read_records(file)
        header = read_header(records)
        handlers = handlers_in(folder / "operator.py")
        return Whole(header, [*records], Program(handlers, TRACED))


def changes_of_others(records: list[Any]) -> list[tuple[int, str]]:
    """What others did, by the story."""
    story = Story(manager=TRACED.marker)
    lines = [line for each in records for line in story.add(each)]
    return [(each.step, each.text) for each in lines if each.sort == "other"]


def test_nobody_else_did_what_the_operator_may_have_done(run: Whole) -> None:
    known = {text for _, text in changes_of_others(run.records)}
    assert len(known) > 3
    for begin, _, records in run.lacking():
        assert {text for _, text in changes_of_others(records)} <= known, begin


def calls_in(records: list[Any]) -> dict[int, list[set[str]]]:
    """By step: the causes of the calls that begin there."""
    story, found = Story(manager=TRACED.marker), dict[int, list[set[str]]]()
    for each in records:
        for line in story.add(each):
            if line.sort == "call":
                _, _, causes = line.text.partition(": version ")
                found.setdefault(line.step, []).append({*causes.split(", ")[1:]})
    return found


def test_a_call_has_no_other_cause_than_without_the_gap(run: Whole) -> None:
    whole = calls_in(run.records)
    for begin, _, records in run.lacking():
        for step, calls in calls_in(records).items():
            for told, known in zip(calls, whole[step], strict=True):
                assert told <= known, (begin, step)


def test_what_is_missing_changes_no_decision(run: Whole) -> None:
    for begin, _, records in run.lacking():
        found = shadow(iter(records), run.header, run.program)
        assert (found.changed, found.reindexed) == ([], []), begin
        assert (found.missing, found.unindexed) == ({}, {}), begin
        assert found.lost


def test_calls_that_may_have_done_something_are_not_left_out(run: Whole) -> None:
    whole = Busy()
    for each in run.records:
        whole.add(each)
    for begin, end, records in run.lacking():
        partial = Busy()
        for each in records:
            partial.add(each)
        seen = {(step, n) for step, n in whole.calls if not begin < step <= end}
        assert seen <= partial.calls, begin


def test_a_version_is_nobody_elses_request_and_no_other_calls_than_its_own(
    run: Whole,
) -> None:
    """The author of a version, and the call: shown as in the whole, or not at all."""
    known = made_in(run.records)
    assert sum(each is not None for each in known.values()) > 4
    for begin, _, records in run.lacking():
        for version, maker in made_in(records).items():
            assert maker in (None, known[version]), (begin, version)


def made_in(records: list[Any]) -> dict[tuple[str, str], Any]:
    """By version: the step of the request that created it, and the call's step."""
    timeline = Timeline()
    for each in records:
        timeline.add(each)
    timeline.end()
    found: dict[tuple[str, str], Any] = {}
    behind = Behind(timeline.events, timeline.revisions)
    for event in timeline.events:
        if event.sort == "shown" and event.revision is not None:
            revision = event.revision
            found.setdefault((revision.uid, revision.version), None)
        request = event.request
        if event.sort == "send" and request is not None and request.made is not None:
            calls = tuple(each.step for each in request.attempts)
            links = [each.text for each in behind.links(event) if not each.depth]
            if calls:
                assert "decided by fnop itself, for its own notes" not in links
                made = request.made
                found[made.uid, made.version] = request.step, calls
    return found


@pytest.mark.parametrize("name", ["a", "b"])
@pytest.mark.parametrize(
    "field", ["status.level", "spec.level", "status[moved/spec.level].to"]
)
def test_why_names_the_author_or_that_steps_are_missing(
    name: str, field: str, run: Whole
) -> None:
    whole = why_of(run.records, name, field)
    assert whole is not None
    for begin, _, records in run.lacking():
        found = why_of(records, name, field)
        if found is None:
            continue
        if whole.write is not None and found.write is not None:
            calls = [each.attempt and each.attempt.step for each in (found, whole)]
            is_same = found.write.step == whole.write.step
            assert not is_same or calls[0] in (None, calls[1]), begin
        if found.missing:
            continue
        told, known = (
            (each.shown.body.version, each.write and each.write.step, each.author)
            for each in (found, whole)
        )
        assert told == known, begin


def why_of(records: list[Any], name: str, field: str) -> Why | None:
    provenance = Provenance(EXAMPLE, "default", name, TRACED.marker)
    for each in records:
        provenance.add(each)
    return provenance.why(parse_path(field))


def test_what_others_did_after_the_gap_is_done_again_and_no_more(run: Whole) -> None:
    for begin, end, records in run.lacking():
        if end < len(run.records):
            whole = excerpt_of(partial(iter, run.records), end + 1)
            excerpt = excerpt_of(partial(iter, records), end + 1)
            assert excerpt.missing == end - begin
            known = [(each.step, each.after) for each in whole.changes]
            assert all((e.step, e.after) in known for e in excerpt.changes), begin
        with pytest.raises(Incomplete, match=f"after #{begin}"):
            excerpt_of(partial(iter, records), begin)


CUT_OFF = "fnop: the recording is cut off: its end was never written"


DROPPED = (
    "fnop: the recording has only the last of a run, without its first 7 steps: its "
    "first ones stand for what was known by then"
)


EARLIER = (
    "fnop: an earlier release made this recording: it does not hold what handlers were "
    "shown and decided"
)


@pytest.mark.parametrize(
    "mode", [(), ("--step",), ("--html", "a.html"), ("--perfetto", "a.pb")]
)
def test_what_is_lacking_is_told(mode: tuple[str, ...], tmp_path: Path) -> None:
    text = gzip.compress(lines_of({**HEADER, "dropped": 7}, STEP))
    (tmp_path / "run.fnop").write_bytes(text[:-8])
    found = fnop("replay", "run.fnop", *mode, folder=tmp_path)
    assert found.status == 0, found.err
    assert found.err.splitlines() == [CUT_OFF, DROPPED, EARLIER]
    (tmp_path / "run.fnop").write_bytes(
        gzip.compress(lines_of({**HEADER, "traces": True}, STEP))
    )
    whole = fnop("replay", "run.fnop", *mode, folder=tmp_path)
    assert (whole.status, whole.err) == (0, "")
