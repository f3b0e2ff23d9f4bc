"""Recordings of strangers: limits hold, and nothing in them is executed.

A recording may come from an attacker, or be damaged in any way. With any content, a
replay ends with a sentence.
"""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import fnop as fnop_api
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.program.program import Program
from fnop.core.seam.inputs import AlarmRang
from fnop.core.values.now import Now, wall_text
from fnop.interpreters.recording.format.reader import (
    UNLIMITED,
    RecordingLimits,
    RecordingProblem,
    read_header,
    read_records,
)
from fnop.interpreters.recording.format.recorder import (
    FORMAT_VERSION,
    Recorder,
    header_of,
)
from fnop.interpreters.recording.model.times import clock, moment
from fnop.interpreters.recording.redaction import Redaction
from fnop.interpreters.recording.replay.replay import (
    Replayed,
    recorded_settings,
    replay_file,
)
from tests.commands import fnop
from tests.histories import History
from tests.property.strategies import json_values
from tests.recordings import (
    HEADER,
    STEP,
    bomb,
    compressed,
    inflated,
    lines_of,
    records_in,
)
from tests.simulations import ROOT, Scenario, example_handlers, manifests_of
from tests.thorough import examples

HANDLERS = ROOT / "examples" / "05-handlers" / "example.py"


def file_of(*records: Any) -> io.BytesIO:
    return io.BytesIO(compressed(lines_of(HEADER, *records)))


def read(file: io.BytesIO, limits: RecordingLimits | None = None) -> list[Any]:
    records = read_records(file, limits or RecordingLimits())
    return [read_header(records), *records]


# ------------------------------------------------------------------------- bounds


def old_bomb(megabytes: int) -> bytes:
    """The same as earlier releases could have written it."""
    packer = zlib.compressobj(9, wbits=31)
    found = packer.compress(lines_of(HEADER) + b'{"a":"')
    for _ in range(megabytes):
        found += packer.compress(b"a" * 1_000_000)
    return found + packer.compress(b'"}\n') + packer.flush()


@pytest.mark.parametrize("made", [bomb, old_bomb])
def test_a_bomb_is_refused_before_it_goes_off(made: Callable[[int], bytes]) -> None:
    file = io.BytesIO(made(150))
    tracemalloc.start()
    with pytest.raises(RecordingProblem, match=r"more than .*--trusted"):
        read(file)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64_000_000


def test_many_small_blocks_are_counted_together() -> None:
    block = compressed(b'{"a":"' + b"a" * 400_000 + b'"}\n')
    file = io.BytesIO(compressed(lines_of(HEADER)) + block * 500)
    with pytest.raises(RecordingProblem, match="more than 200 times"):
        read(file)


def test_a_bomb_in_the_command(tmp_path: Path) -> None:
    (tmp_path / "bomb.fnop").write_bytes(bomb(60))
    done = fnop("replay", "bomb.fnop", HANDLERS, folder=tmp_path)
    assert (done.status, done.out) == (3, "")
    assert done.complaint.startswith("fnop: the recording becomes more than 200 times")


def test_an_own_recording_may_be_of_any_size(tmp_path: Path) -> None:
    (tmp_path / "large.fnop").write_bytes(bomb(60))
    done = fnop("replay", "--trusted", "large.fnop", HANDLERS, folder=tmp_path)
    assert done.status == 3
    assert "record 1 of the recording cannot be understood" in done.complaint


def test_a_run_of_equal_records_is_no_bomb() -> None:
    """Alarms that ring for a day compress well, and are a recording like others."""
    ring = {**STEP, "input": {"in": "AlarmRang"}}
    records = [{**ring, "mono": float(each)} for each in range(50_000)]
    assert len(read(file_of(*records))) == 50_001


def nested(depth: int) -> Any:
    found: Any = {}
    for _ in range(depth):
        found = {"a": found}
    return found


@pytest.mark.parametrize("depth", [250, 900, 5_000])
def test_a_record_that_is_nested_too_deep(depth: int) -> None:
    text = b'{"a":' * depth + b"1" + b"}" * depth
    file = io.BytesIO(compressed(lines_of(HEADER) + text + b"\n"))
    with pytest.raises(RecordingProblem, match=r"nested deeper than 200.*--trusted"):
        read(file)


def test_what_is_nested_as_deep_as_objects_are_is_read() -> None:
    assert read(file_of(nested(150)))[1] == nested(150)


def test_many_brackets_side_by_side_are_not_deep() -> None:
    wide: dict[str, Any] = {"a": [{} for _ in range(1_000)]}
    assert read(file_of(wide))[1] == wide


def test_a_record_that_is_too_long() -> None:
    limits = RecordingLimits(record_bytes=1_000)
    assert len(read(file_of({"a": "x" * 900}), limits)) == 2
    with pytest.raises(RecordingProblem, match=r"more than 1000 bytes.*--trusted"):
        read(file_of({"a": "x" * 1_100}), limits)
    cut_off = io.BytesIO(compressed(lines_of(HEADER) + b"x" * 1_000_000))
    with pytest.raises(RecordingProblem, match="more than 1000 bytes"):
        read(cut_off, limits)


def test_too_many_records() -> None:
    limits = RecordingLimits(records=10)
    assert len(read(file_of(*[STEP] * 10), limits)) == 11
    with pytest.raises(RecordingProblem, match=r"more than 10 records.*--trusted"):
        read(file_of(*[STEP] * 11), limits)


def test_without_limits_all_of_them_are_read() -> None:
    file = file_of(nested(150), *[STEP] * 3)
    assert len(read(file, UNLIMITED)) == 5


# ---------------------------------------------------------------- other than records


def flipped(data: bytes, at: int) -> bytes:
    """Data with another byte, counted from the end."""
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


UNPACKABLE = "damaged after step [0-9]+: it cannot be unpacked there: .*; only what is"
STEPS_OF_MANY = [{**STEP, "wall": each / 7} for each in range(500)]
# The content of the file, and the sentence about it.
OTHERS = {
    "empty": (b"", "is empty; make one with `fnop run"),
    "an empty block": (compressed(b""), "is empty; make one with"),
    "text": (b"apiVersion: v1\n", "not a recording of fnop; make one with"),
    "a zip file": (
        b"PK\x03\x04" + b"\0" * 100,
        "not a recording of fnop; make one with",
    ),
    "an archive": (compressed(b"./\0\0\0ustar  \0" * 99), "not a recording of fnop"),
    "a log": (compressed(b'{"level": "info"}\n'), "not a recording of fnop"),
    "cut off": (
        compressed(lines_of(HEADER))[:20],
        "cut off before its first record",
    ),
    "of an earlier release": (
        compressed(lines_of({**HEADER, "format": 1})),
        r"format 1, and this fnop reads 2 and 3; replay it with the release that made",
    ),
    "of a newer release": (
        compressed(lines_of({**HEADER, "format": 4, "fnop": "9.0"})),
        r"format 4, and this fnop reads 2 and 3; .*\('9.0'\), or record the run again",
    ),
    "of no release": (
        compressed(lines_of({**HEADER, "format": {"a": ["x" * 1000]}})),
        r"has format .{,40}, and",
    ),
    "a damaged block": (
        compressed(lines_of(HEADER)) + b"\x28\xb5\x2f\xfd" + b"\xff" * 50,
        UNPACKABLE,
    ),
    "a damaged block of earlier releases": (
        gzip.compress(lines_of(HEADER)) + b"\x1f\x8b\x08\0" + b"\xff" * 50,
        UNPACKABLE,
    ),
    "a block of a too large window": (
        compressed(lines_of(HEADER)) + b"\x28\xb5\x2f\xfd\x04\xa0" + b"\0" * 50,
        UNPACKABLE,
    ),
    "a changed byte": (
        flipped(compressed(lines_of(HEADER, *STEPS_OF_MANY)), -3),
        UNPACKABLE,
    ),
    "a changed byte of a short one": (
        flipped(compressed(lines_of(HEADER)), -3),
        "damaged at its beginning: it cannot be unpacked there: .*; make one with",
    ),
    "an old file that is cut off": (
        gzip.compress(lines_of(HEADER))[:20],
        "cut off before its first record",
    ),
    "something appended": (
        compressed(lines_of(HEADER)) + b"hello",
        UNPACKABLE,
    ),
    "a damaged line": (
        compressed(lines_of(HEADER, STEP) + b'{"wall": \n'),
        "damaged after step 1: a line is not JSON: .*; only what is before it can be",
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_what_is_no_recording_or_a_damaged_one_is_named(
    case: str, tmp_path: Path
) -> None:
    content, sentence = OTHERS[case]
    with pytest.raises(RecordingProblem, match=sentence) as found:
        read(io.BytesIO(content))
    assert "\n" not in str(found.value)
    assert len(str(found.value)) < 250


def test_such_a_file_on_the_command_line(tmp_path: Path) -> None:
    for case in ("an empty block", "a zip file", "of a newer release"):
        content, _ = OTHERS[case]
        (tmp_path / "file.fnop").write_bytes(content)
        done = fnop("replay", "file.fnop", HANDLERS, folder=tmp_path)
        status = 5 if "release" in case else 3
        assert (done.status, done.out) == (status, "")
        assert done.err.startswith("fnop: ")
        assert done.err.count("\n") == 1


HEADERS: dict[str, dict[str, Any]] = {
    "an operator's name": {"operator": "../../x"},
    "another operator": {"operator": 5},
    "no operator": {"operator": None},
    "namespaces": {"namespaces": [1]},
    "a selector": {"selector": "a in ("},
    "a peering": {"peering": {"mode": "eval"}},
    "another peering": {"peering": {"nobody": 1}},
    "an election": {"election": {"timing": 5}},
    "another election": {"election": []},
}


@pytest.mark.parametrize("case", HEADERS)
def test_a_header_that_cannot_be(case: str) -> None:
    with pytest.raises(RecordingProblem, match="header is damaged"):
        recorded_settings(read_header(iter([{**HEADER, **HEADERS[case]}])))


# ---------------------------------------------------------------- nothing is run

EVIL = [
    STEP,
    {
        **STEP,
        "input": {
            "in": "Answered",
            "id": 1,
            "outcome": {
                "is": "Answer",
                "value": {"is": "Call", "function": "os:system", "arguments": ["id"]},
            },
        },
    },
    {
        **STEP,
        "redacted": True,
        "input": {
            "in": "ListItem",
            "stream": 1,
            "body": {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "x", "annotations": {"a": "!!python/object:os"}},
                "__reduce__": ["os.system", ["id"]],
            },
        },
    },
]


def test_a_recording_imports_opens_and_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "evil.fnop").write_bytes(file_of(*EVIL).getvalue())
    (tmp_path / "os.py").write_text("raise SystemExit('imported')")
    script = """
import sys
from fnop.core.handlers.program.program import Program
from fnop.interpreters.recording.replay.replay import RecordingProblem, replay_file
from tests.simulations import example_handlers

def end(file, handlers):
    try:
        return replay_file(file, Program(handlers))
    except RecordingProblem as problem:
        return problem

handlers = example_handlers("05-handlers")
path = sys.argv[1]
seen = []
with open(path, "rb") as file:
    end(file, handlers)  # what is loaded lazily by anything is loaded
    sys.addaudithook(lambda event, _: seen.append(event))
    end(file, handlers)
banned = ("import", "exec", "compile", "open", "os.", "subprocess.", "socket.")
print(sorted({event for event in seen if event.startswith(banned)}))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "evil.fnop")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_a_recording_commands_no_terminal(tmp_path: Path) -> None:
    header = {**HEADER, "fnop": "0.1\x1b]0;owned\x07\u202e"}
    say = {
        "do": "Say",
        "level": "info",
        "message": "\x1b[2J",
        "subject": "\x9b31m\x1b[",
    }
    content = compressed(lines_of(header, {**STEP, "commands": [say]}))
    (tmp_path / "evil.fnop").write_bytes(content)
    done = fnop("replay", "evil.fnop", HANDLERS, folder=tmp_path)
    assert done.status == 1
    assert done.out.startswith("different at step 1: ")
    assert all(each.isprintable() or each == "\n" for each in done.out + done.err)


# ------------------------------------------------------------------- any change


def recorded() -> bytes:
    file = io.BytesIO()
    program = Program(HANDLERS_OF_IT)
    recorder = Recorder(file, header_of(program, "test"), Redaction(b"k" * 16, program))
    sim = Scenario(program.handlers, observers=[recorder])
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "default"},
        "stringData": {"password": "correct horse battery staple"},
    }
    sim.apply(*manifests_of("05-handlers")[1:], secret)
    sim.settle()
    recorder.finish()
    assert recorder.problem is None
    return file.getvalue()


HANDLERS_OF_IT = example_handlers("05-handlers")
WRITTEN = recorded()
RECORDED = records_in(WRITTEN)
# The same steps as they are written in the present format.
STEPS = [json.loads(line) for line in inflated(WRITTEN).splitlines()[1:]]
PRESENT = {**HEADER, "format": FORMAT_VERSION}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all that a record holds."""
    found = [path] if path else []
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
    return found + [each for key, item in items for each in places(item, (*path, key))]


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    found = dict(value) if isinstance(value, dict) else list(value)
    found[path[0]] = changed(value[path[0]], path[1:], new)
    return found


hostile: st.SearchStrategy[Any] = json_values | st.sampled_from(
    [-1, 2**63, 1e300, "", "\0", [], {}, None, True]
)


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_whatever_is_changed_in_a_recording_a_replay_ends_with_a_sentence(
    data: st.DataObject,
) -> None:
    records = list(RECORDED)
    for _ in range(data.draw(st.integers(1, 3), "how many changes")):
        position = data.draw(st.integers(0, len(records) - 1), "which record")
        path = data.draw(st.sampled_from(places(records[position])), "where")
        records[position] = changed(
            records[position], path, data.draw(hostile, "what is there")
        )
    program = Program(HANDLERS_OF_IT)
    with suppress(RecordingProblem):
        assert isinstance(replay_file(file_of(*records), program), Replayed)


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_whatever_is_changed_in_a_step_a_replay_ends_with_a_sentence(
    data: st.DataObject,
) -> None:
    steps = list(STEPS)
    for _ in range(data.draw(st.integers(1, 3), "how many changes")):
        position = data.draw(st.integers(0, len(steps) - 1), "which step")
        path = data.draw(st.sampled_from(places(steps[position])), "where")
        new = data.draw(hostile, "what is there")
        steps[position] = changed(steps[position], path, new)
    content = compressed(lines_of(PRESENT, *steps))
    program = Program(HANDLERS_OF_IT)
    with suppress(RecordingProblem):
        assert isinstance(replay_file(io.BytesIO(content), program), Replayed)


def test_the_recording_as_it_is_replays_identically() -> None:
    for file in (file_of(*RECORDED), io.BytesIO(WRITTEN)):
        found = replay_file(file, Program(HANDLERS_OF_IT))
        assert found.difference is None
        assert found.steps == len(RECORDED)


def test_a_step_that_swells_a_text_again_and_again() -> None:
    large = {"input": {"in": "Started", "seed": "x" * 500_000}, "commands": []}
    first = {"t": [0, 0], "r": [0, large]}
    steps = [first, *[{"t": [0, 0], "r": [0]}] * 2_000]
    file = io.BytesIO(compressed(lines_of(PRESENT, *steps)))
    with pytest.raises(RecordingProblem, match=r"steps are more than .*--trusted"):
        read(file)


def test_steps_that_keep_too_many_texts() -> None:
    large = {"input": {"in": "Started", "seed": "x" * 500_000}, "commands": []}
    steps = [{"t": [0, 0], "r": [slot, large]} for slot in range(100)]
    file = io.BytesIO(compressed(lines_of(PRESENT, *steps)))
    with pytest.raises(RecordingProblem, match="refers to more texts"):
        read(file, RecordingLimits(ratio=10_000))


@given(st.data())
def test_whatever_is_written_of_a_file_is_read(data: st.DataObject) -> None:
    """A process may be killed at any moment, and a write may be done in part."""
    end = data.draw(st.integers(0, len(WRITTEN) - 1), "so many bytes are there")
    records = [*read_records(io.BytesIO(WRITTEN[:end]))]
    if records in ([], [None]):
        return
    found = read(io.BytesIO(WRITTEN[:end]))
    assert found[-1] is None, "it shows as cut off"
    assert found[1:-1] == RECORDED[: len(found) - 2]


def test_what_is_flushed_is_read_while_the_run_goes_on() -> None:
    file, program = io.BytesIO(), Program(HANDLERS_OF_IT)
    redaction = Redaction(b"k" * 16, program)
    recorder = Recorder(file, header_of(program, "test"), redaction)
    for second in range(5):
        recorder.observe(Now(second, second), AlarmRang(), ())
        recorder.save()
        records = [*read_records(io.BytesIO(file.getvalue()))]
        assert [each["mono"] for each in records[1:-1] if each] == [*range(second + 1)]
        assert records[-1] is None


# ------------------------------------------------------------------------- times

WALLS: list[Any] = ["x", None, True, [], 1e300, -1e300, 253_402_300_900]
ASKED = {
    "story": (),
    "story without the rest": ("--changes-only",),
    "why": ("--object", "example-1", "--why", "metadata.name"),
    "shadow": (HANDLERS, "--shadow"),
}


@pytest.fixture(scope="module")
def whole() -> list[dict[str, Any]]:
    """The records of a run, with traces."""
    registry = Registry()

    @fnop_api.on.create("fnopexamples", registry=registry)
    def made(**_: Any) -> None: ...

    return History(registry).records()


@pytest.mark.parametrize("mode", ASKED)
@pytest.mark.parametrize("wall", WALLS, ids=str)
def test_a_time_that_is_none_is_told_in_a_sentence(
    mode: str, wall: Any, whole: list[dict[str, Any]], tmp_path: Path
) -> None:
    *good, last = whole
    lines = lines_of({**HEADER, "traces": True}, *good, {**last, "wall": wall})
    (tmp_path / "run.fnop").write_bytes(compressed(lines))
    done = fnop("replay", "run.fnop", *ASKED[mode], folder=tmp_path)
    assert done.status == 3
    assert "Traceback" not in done.err
    assert done.complaint.startswith(
        f"fnop: record {len(whole)} of the recording cannot be understood: ValueError: "
    )
    assert "its time is" in done.complaint
    if mode != "story":
        assert done.out == "", "nothing is told before it is understood"


@given(json_values, json_values)
def test_whatever_a_time_is_it_is_one_or_refused(wall: Any, mono: Any) -> None:
    with suppress(ValueError):
        found = moment({"wall": wall, "mono": mono})
        assert clock(found.wall).count(":") == 2
        assert wall_text(found.wall)
