"""`fnop diff`: two recordings of an example, and the differences it prints."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given, settings, strategies as st

from fnop.adapters.cli.main import main
from tests.commands import Done, fnop
from tests.property.strategies import json_values
from tests.recordings import HEADER, STEP, compressed, inflated, lines_of
from tests.simulations import ROOT
from tests.thorough import examples

DATABASE = ROOT / "examples" / "19-database"
TRACED = {**HEADER, "traces": True}

SAME, DIFFERS, WRONG, DAMAGED, INCOMPLETE, UNSUPPORTED = range(6)


def run(folder: Path, to: str, operator: Path | str, objects: Path | str) -> None:
    done = fnop(
        *("run", operator, "--simulate", objects, "--record", to), folder=folder
    )
    assert done.status == 0, done


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings of 19-database, of other code, and with another object."""
    folder = tmp_path_factory.mktemp("diff")
    text = (DATABASE / "example.py").read_text()
    objects = (DATABASE / "object.yaml").read_text()
    (folder / "port.py").write_text("\n" + text.replace("5432", "5433"))
    (folder / "renamed.py").write_text(text.replace("def database(", "def base("))
    (folder / "larger.yaml").write_text(objects.replace("size: 3", "size: 2"))
    assert (folder / "larger.yaml").read_text() != objects
    run(folder, "a.fnop", DATABASE / "example.py", DATABASE / "object.yaml")
    run(folder, "b.fnop", DATABASE / "example.py", DATABASE / "object.yaml")
    run(folder, "port.fnop", "port.py", DATABASE / "object.yaml")
    run(folder, "renamed.fnop", "renamed.py", DATABASE / "object.yaml")
    run(folder, "larger.fnop", DATABASE / "example.py", "larger.yaml")
    return folder


def diff(folder: Path, *args: str | Path) -> Done:
    return fnop("diff", *args, folder=folder)


def test_two_runs_of_one_scenario_have_no_difference(folder: Path) -> None:
    for other in ("a.fnop", "b.fnop"):
        done = diff(folder, "a.fnop", other)
        assert (done.status, done.err) == (SAME, "")
        ours, theirs, last = done.out.splitlines()
        assert ours.startswith("a: a.fnop (fnop 0.")
        assert theirs.startswith(f"b: {other} (fnop 0.")
        assert last == "no difference in 6 decisions of handlers"


def test_other_code_is_told_with_the_field_and_both_lines(folder: Path) -> None:
    done = diff(folder, "a.fnop", "port.fnop")
    assert done.status == DIFFERS
    first = next(e for e in done.out.splitlines() if e.startswith("first difference"))
    assert first.startswith(
        "first difference: what database of default/example-1 (example.py:"
    )
    assert "port.py:" in first
    assert "decides, called at #" in first
    assert (
        '    desired.status.endpoint: a "example-1.default.svc:5432", '
        'b "example-1.default.svc:5433"\n'
    ) in done.out
    assert "  its inputs are equal: the code differs (a: fnop " in done.out
    assert "first decision that differs" not in done.out  # it is the first difference
    assert done.out.splitlines()[2] == "the code of database is another one"


def test_another_object_is_told_with_the_steps_that_brought_it(folder: Path) -> None:
    done = diff(folder, "a.fnop", "larger.fnop")
    assert done.status == DIFFERS
    assert re.search(
        "  databases/default/example-1\n"
        "    spec.size: a 3, b 2\n"
        r"    a: version 108, listed at #\d+ \(never in b\)\n"
        r"    b: version 108, listed at #\d+ \(never in a\)\n",
        done.out,
    )
    assert "first decision that differs: what database of default/example-1" in done.out
    assert "  by the first difference\n" in done.out


TWO_HANDLERS = """
import fnop

@fnop.on.create("fnopexamples")
def made(**_):
    return fnop.patch(status={"is": "made"})

@fnop.reconcile("fnopexamples")
def seen(**_):
    return fnop.desired()
"""


def test_an_object_that_one_run_alone_has_is_the_cause(tmp_path: Path) -> None:
    """Its call has waited: the input that came then is about another object."""
    example = ROOT / "examples" / "01-minimal" / "object.yaml"
    *_, another = yaml.safe_load_all(example.read_text())
    another["metadata"]["name"] = "zz"
    text = f"{example.read_text()}\n---\n{yaml.safe_dump(another)}"
    (tmp_path / "two.yaml").write_text(text)
    (tmp_path / "operator.py").write_text(TWO_HANDLERS)
    run(tmp_path, "one.fnop", "operator.py", example)
    run(tmp_path, "two.fnop", "operator.py", "two.yaml")
    done = diff(tmp_path, "one.fnop", "two.fnop")
    _, _, _, first, _, shown, never, *_ = done.out.splitlines()
    assert first.startswith("first difference: b alone calls made of default/zz")
    assert re.match(r"  b was shown FnopExample default/zz, version \d+, listed", shown)
    assert never == "  a never was"


def test_a_handler_that_the_other_operator_lacks(folder: Path) -> None:
    done = diff(folder, "a.fnop", "renamed.fnop")
    assert done.status == DIFFERS
    (who,) = re.findall("first difference: ([ab]) alone calls", done.out)
    lacks = {"a": "b has no handler database", "b": "a has no handler base"}
    assert f"  {lacks[who]}\n" in done.out


def test_json_has_the_same(folder: Path) -> None:
    done = diff(folder, "-o", "json", "a.fnop", "port.fnop")
    assert done.status == DIFFERS
    found = json.loads(done.out)
    assert (found["version"], found["differs"]) == (1, True)
    assert found["other_code"] == ["database"]
    assert [each["file"] for each in found["runs"]] == ["a.fnop", "port.fnop"]
    first = found["first"]
    assert (first["sort"], first["handler"]) == ("decision", "database")
    assert first["object"] == "default/example-1"
    fields = {".".join(each["field"]): each for each in first["fields"]}
    assert fields["desired.status.endpoint"]["b"].endswith(":5433")
    same = json.loads(diff(folder, "-o", "json", "a.fnop", "b.fnop").out)
    assert (same["differs"], same["first"], same["decision"]) == (False, None, None)


# ------------------------------------------------------------------------- statuses


def test_a_recording_that_is_cut_off(folder: Path, tmp_path: Path) -> None:
    whole = (folder / "a.fnop").read_bytes()
    (tmp_path / "cut.fnop").write_bytes(whole[: len(whole) - 20])
    done = diff(tmp_path, folder / "a.fnop", "cut.fnop")
    assert done.status in (DIFFERS, INCOMPLETE)
    assert "fnop: cut.fnop is cut off: its end was never written" in done.err
    both = diff(tmp_path, "cut.fnop", "cut.fnop")
    assert both.status == INCOMPLETE


def test_a_run_that_goes_on_longer(folder: Path, tmp_path: Path) -> None:
    lines = inflated((folder / "a.fnop").read_bytes()).splitlines(keepends=True)
    (tmp_path / "short.fnop").write_bytes(compressed(b"".join(lines[:20])))
    done = diff(tmp_path, folder / "a.fnop", "short.fnop")
    assert done.status == DIFFERS
    assert "b does nothing that a does not do; it ends at #19\n" in done.out


def test_recordings_that_lack_what_is_asked_for(folder: Path, tmp_path: Path) -> None:
    old = ROOT / "tests" / "replays" / "format-2" / "simulated-01-minimal.fnop"
    done = diff(tmp_path, folder / "a.fnop", old)
    assert done.status == UNSUPPORTED
    assert "does not hold what handlers were shown and decided" in done.complaint
    _write(tmp_path / "format.fnop", {**TRACED, "format": 1})
    assert diff(tmp_path, "format.fnop", "format.fnop").status == UNSUPPORTED
    _write(tmp_path / "ring.fnop", {**TRACED, "dropped": 7}, STEP)
    done = diff(tmp_path, folder / "a.fnop", "ring.fnop")
    assert done.status == INCOMPLETE
    assert "ring.fnop has only the last of a run" in done.complaint


def test_a_recording_without_steps_is_not_compared(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "none.fnop").write_bytes(compressed(lines_of(TRACED)))
    for pair in (("none.fnop", folder / "a.fnop"), (folder / "a.fnop", "none.fnop")):
        done = diff(tmp_path, *pair)
        assert (done.status, done.out) == (INCOMPLETE, "")
        assert "none.fnop holds no steps, and nothing was compared" in done.err


def test_files_that_are_no_recordings(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "text.fnop").write_text("hello")
    done = diff(tmp_path, folder / "a.fnop", "text.fnop")
    assert done.status == DAMAGED
    assert "text.fnop: this is not a recording of fnop" in done.complaint
    assert diff(tmp_path, folder / "a.fnop").status == WRONG
    assert diff(tmp_path, folder / "a.fnop", "no such file").status == WRONG


def _write(file: Path, *records: Any) -> None:
    file.write_bytes(compressed(lines_of(*records)))


# -------------------------------------------------------------------- hostile records

# Values of a record that a reader does not expect.
_COMMANDS = st.fixed_dictionaries(
    {
        "do": st.sampled_from(["Began", "Asked", "Given", "Ended", "Perform", "x"]),
    },
    optional={
        "attempt": st.just(1) | json_values,
        "handler": st.just("h") | json_values,
        "object": st.just(["a.v1.", "", "a", "u", "1"]) | json_values,
        "effect": st.just({"is": "Get"}) | json_values,
        "id": st.just(1) | json_values,
        "reason": json_values,
        "plan": json_values,
        "failure": json_values,
        "subject": st.just("a") | json_values,
    },
)
_INPUTS = st.fixed_dictionaries(
    {"in": st.sampled_from(["Started", "WatchEvent", "Answered", "ListItem"])},
    optional={
        "id": st.just(1) | json_values,
        "type": st.just("ADDED") | json_values,
        "body": st.just({"metadata": {"uid": "u", "resourceVersion": "1"}})
        | json_values,
        "outcome": st.just({"is": "Applied"}) | json_values,
    },
)
_RECORDS = st.lists(
    st.builds(
        lambda input, commands: {**STEP, "input": input, "commands": commands},
        _INPUTS,
        st.lists(_COMMANDS, max_size=4) | json_values,
    ),
    max_size=4,
)


@given(_RECORDS, _RECORDS, st.sampled_from(["text", "json"]))
@settings(deadline=None, max_examples=examples(30))
def test_whatever_is_in_a_recording_a_sentence_is_the_end(
    ours: list[Any], theirs: list[Any], output: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("a.fnop", "b.fnop")]
        _write(files[0], TRACED, *ours)
        _write(files[1], TRACED, *theirs)
        done = CliRunner().invoke(main, ["diff", "-o", output, *map(str, files)])
    assert done.exit_code in (SAME, DIFFERS, DAMAGED, INCOMPLETE), done
    assert isinstance(done.exception, SystemExit | None), done.exception
    assert "Traceback" not in done.output
