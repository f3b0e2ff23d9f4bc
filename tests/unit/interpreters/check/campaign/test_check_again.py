"""A check after another one: what has failed, and what has changed, is tried first."""

from __future__ import annotations

import json
from contextlib import chdir
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from fnop.adapters.check import folder as check_folder
from fnop.adapters.check.folder import Folder
from fnop.adapters.check.limits import Limits
from fnop.adapters.check.recordings import failure_in
from fnop.adapters.check.run import Checking
from fnop.adapters.cli.check import options_of_check
from fnop.core.handlers.declare.registry import Registry, default_registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.explore import Case
from fnop.interpreters.check.campaign.reports import Result
from fnop.interpreters.simulation.actions import apply
from tests.checks import BUGGY, CRD, FIXED, OBJECT, called
from tests.long import parameters

# The script has two objects; a failure needs one of them, without its labels.
SMALLER = {**OBJECT, "metadata": {"name": "x", "labels": {"a": "b"}}}
OTHER = {**OBJECT, "metadata": {"name": "y"}}
SCRIPT = f"""
from fnop.testing import apply

SCRIPTS = {{"two": [apply({SMALLER}), apply({OTHER})]}}
"""
LIMITS = ("--crd", "crd.yaml", "--script", "script.py", "--without", "pure")
FILE = "op_again.py"
NAMED = "found before: same_end-"
NOWHERE = {"place": "write", "handler": "certify", "verb": "create", "target": "a/b"}


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which an operator has failed, in a smaller script than its author's.

    Next to it is one without the bug.
    """
    place = tmp_path_factory.mktemp("again")
    (place / "crd.yaml").write_text(json.dumps(CRD))
    (place / "script.py").write_text(SCRIPT)
    (place / "op_again.py").write_text(BUGGY)
    (place / "op_mended.py").write_text(FIXED)
    with chdir(place):
        found = called(FILE, *LIMITS, "--budget", "40", "--save", "first")
    assert found.exit_code == 1, found.output
    return place


@pytest.fixture
def failed(begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of its recordings, with the present folder changed to it."""
    monkeypatch.chdir(begun)
    return Path(copytree("first", tmp_path / "failures"))


def tried(file: str, *arguments: str) -> dict[str, Any]:
    """The report of a further check, in JSON."""
    found = called(file, *arguments, *LIMITS, "-o", "json")
    report: dict[str, Any] = json.loads(found.stdout)
    return report


def told_otherwise(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Let the headers of failures contain something else."""

    def told(file: Path) -> dict[str, Any] | None:
        found = failure_in(file)
        return found and {**found, **changes}

    monkeypatch.setattr(check_folder, "failure_in", told)


def test_a_failure_is_tried_first_with_its_own_script(failed: Path) -> None:
    options = ("--budget", "1", "--save", str(failed))
    found = tried(FILE, *options)
    assert found["tried"] == found["found before"] == 1
    (failure,) = found["failures"]
    assert failure["script"].startswith(NAMED)
    assert (failure["property"], failure["like it"]) == ("same_end", 1)
    assert found["scripts"] == ["two", failure["script"]]
    text = called(FILE, *options, *LIMITS).stdout
    assert f"   known     {NAMED}" in text
    assert "apply X y" not in text
    assert "1 schedule of 1 script, and of 1 failure found before, tried" in text


def test_kinds_are_as_they_are_defined_now(
    failed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told_otherwise(monkeypatch, definitions=[])
    found = tried(FILE, "--budget", "1", "--save", str(failed))
    assert found["found before"] == 1
    assert len(found["failures"]) == 1


@pytest.mark.parametrize("jobs", parameters(["1", "2"], ["1"]))
def test_a_failure_that_others_show_as_well_counts_once(
    failed: Path, jobs: str
) -> None:
    first = tried(FILE, "--budget", "40", "--save", str(failed / "others"))
    again = tried(FILE, "--budget", "41", "--save", str(failed), "--jobs", jobs)
    assert [each["like it"] for each in again["failures"]] == [
        each["like it"] for each in first["failures"]
    ]
    assert again["tried"] == first["tried"] + 1
    recordings = sorted(each.name for each in failed.glob("*.fnop"))
    assert len(recordings) == 2, "the same failure, and the run without faults"


def test_a_failure_that_is_mended_is_no_failure(
    failed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told_otherwise(monkeypatch, operator=["op_mended.py"])
    found = tried("op_mended.py", "--budget", "20", "--save", str(failed))
    assert found["failures"] == []
    assert found["tried"] == 20
    assert found["found before"] == 1


@pytest.mark.parametrize(
    "damage",
    [
        {"operator": ["other.py"]},
        {"former": "former.py"},
        {"name": "another"},
        {"script": [{"do": "dance"}]},
        {"script": None},
        {"schedule": [{"fault": "F99"}]},
        {"definitions": [], "given": [OBJECT]},
        {"schedule": [{"fault": "F1:after", "site": NOWHERE}]},
    ],
)
def test_a_recording_that_is_of_no_use_is_left_out(
    failed: Path, damage: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    told_otherwise(monkeypatch, **damage)
    found = tried(FILE, "--budget", "1", "--save", str(failed))
    assert found["failures"] == []
    assert found["broken"] == []
    assert found["unknown"] == 0
    assert found["tried"] == 1, "a run without faults"


def test_a_file_that_is_no_recording_is_left_out(failed: Path) -> None:
    (failed / "a.fnop").write_bytes(b"\x00no recording")
    assert tried(FILE, "--budget", "1", "--save", str(failed))["found before"] == 1


def test_a_path_may_be_named_otherwise(failed: Path, begun: Path) -> None:
    whole = str(begun / FILE)
    assert tried(whole, "--budget", "1", "--save", str(failed))["found before"] == 1


def test_the_first_shard_alone_tries_what_was_found_before(failed: Path) -> None:
    options = ("--budget", "2", "--save", str(failed))
    parts = [tried(FILE, *options, "--shard", f"{each}/2") for each in (1, 2)]
    assert [each["found before"] for each in parts] == [1, 0]


# ------------------------------------------------------------------- changed handlers

TWO = """
import fnop

@fnop.on.create("xs.example.com")
async def first(name, **_):
    await fnop.adopt({"apiVersion": "v1", "kind": "Secret",
                      "metadata": {"name": f"{name}-first"}})

@fnop.on.create("xs.example.com")
async def second(name, **_):
    await fnop.adopt({"apiVersion": "v1", "kind": "Secret",
                      "metadata": {"name": f"{name}-second"}})
"""


def case_of(source: str) -> Case:
    """The case of an operator whose handlers are in a source."""
    registry = Registry()
    with default_registry.set_aside():
        exec(source, {"__name__": "changed"})
        for each in default_registry.handlers:
            registry.add(each)
    script = (apply(OBJECT),)
    return Case(Program(registry.handlers, Settings()), (CRD,), script, name="create")


def handlers_tried(folder: Path, source: str, **options: Any) -> list[str]:
    """The handlers at which single faults have struck, in their order."""
    given = options_of_check(save=str(folder), quiet=True, **options)
    checking = Checking(["op.py"], given, [case_of(source)])
    checking.run()
    results: list[Result] = checking._results
    schedules = [each.task.schedule for each in results if each.task.schedule]
    return [each[0].site.handler for each in schedules if each[0].site.handler]


def test_faults_at_a_changed_handler_come_first(tmp_path: Path) -> None:
    """The folder is there, so that it is known what has changed."""
    tmp_path.joinpath("kept").mkdir()
    kept, changed = tmp_path / "kept", TWO.replace("-second", "-other")
    usual = handlers_tried(kept, TWO, budget=40)
    assert {*usual[:4]} == {"first", "second"}
    assert handlers_tried(kept, TWO, budget=40) == usual
    found = handlers_tried(kept, changed, budget=20)
    assert found != usual[: len(found)]
    assert found == sorted(found, reverse=True), "the second one has changed"
    assert handlers_tried(kept, changed, budget=40) == usual


def test_the_memory_of_handlers_is_of_one_operator_and_one_shard(
    tmp_path: Path,
) -> None:
    tmp_path.joinpath("kept").mkdir()
    handlers = case_of(TWO).program.handlers
    changed = case_of(TWO.replace("-second", "-other")).program.handlers

    def folder(file: str, shard: tuple[int, int] = (1, 1)) -> Folder:
        call = {"operator": [file]}
        return Folder(tmp_path / "kept", call, Limits(), shard)

    folder("a.py").remember(handlers)
    folder("b.py").remember(changed)
    assert folder("a.py").changed(changed) == {"second"}
    assert folder("a.py").changed(handlers) == folder("b.py").changed(changed) == set()
    assert folder("a.py", (1, 2)).changed(changed) == set(), "it is not known"
    text = (tmp_path / "kept" / "handlers.json").read_bytes()
    folder("b.py").remember(changed)
    assert (tmp_path / "kept" / "handlers.json").read_bytes() == text
    (tmp_path / "kept" / "handlers.json").write_text("damaged")
    assert folder("a.py").changed(changed) == set()


def test_a_check_without_failures_makes_no_folder(tmp_path: Path) -> None:
    handlers_tried(tmp_path / "none", TWO, budget=4)
    assert not (tmp_path / "none").exists()
