"""`fnop check --merge`: the results of shards, put together or refused."""

from __future__ import annotations

import json
from contextlib import chdir
from pathlib import Path
from shutil import copy, copytree
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import Result

from tests.checks import BUGGY, CRD, OBJECT, called

FILE = "op_shards.py"
SCRIPTS = f"""
from fnop.testing import apply, wait

SCRIPTS = {{
    "create": [apply({OBJECT})],
    "create and wait": [apply({OBJECT}), wait(1)],
}}
"""
USUAL = ("--crd", "crd.yaml", "--script", "script.py", "--property", "same_end")


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the results of an operator's two shards, of its two scripts."""
    place = tmp_path_factory.mktemp("shards")
    (place / "crd.yaml").write_text(json.dumps(CRD))
    (place / "script.py").write_text(SCRIPTS)
    (place / FILE).write_text(BUGGY)
    with chdir(place):
        for number in (1, 2):
            check("--shard", f"{number}/2", "--results", "parts")
    return place


@pytest.fixture
def parts(begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the results, with the operator's folder as the present one."""
    monkeypatch.chdir(begun)
    return Path(copytree("parts", tmp_path / "parts"))


def check(*options: str) -> Result:
    return called(FILE, *USUAL, "--budget", "12", *options)


def changed(file: Path, **changes: Any) -> None:
    """Let the results in a file say something else; the file gets another name."""
    found = json.loads(file.read_text())
    for key, value in changes.items():
        found[key] = {**found[key], **value} if isinstance(value, dict) else value
    file.with_name(f"other-{file.name}").write_text(json.dumps(found))


def test_the_whole_has_verdicts_and_failures_of_each_script(parts: Path) -> None:
    result = called("--merge", str(parts), "-o", "json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert found["properties"] == {"same_end": "fail"}
    assert {each["script"] for each in found["failures"]} == {
        "create",
        "create and wait",
    }
    assert (found["tried"], found["shards"], found["missing"]) == (24, 2, [])


def test_the_whole_is_told_as_one_check(parts: Path, tmp_path: Path) -> None:
    text = called("--merge", str(parts)).stdout
    assert "FAIL  same_end" in text
    assert "1. same_end: secrets/x-b is missing" in text
    assert "   recording fnop-failures/same_end-" in text
    assert "24 schedules of 2 scripts tried in 2 shards: 2 failures" in text
    junit = tmp_path / "j.xml"
    report = called("--merge", str(parts), "-o", "github", "--junit", str(junit))
    assert report.exit_code == 1
    assert f"::error file={FILE},line=4,title=fnop check: same_end::" in report.stdout
    assert ElementTree.parse(junit).getroot().get("failures") == "1"


def test_doubted_and_broken_schedules_are_told_of_all(parts: Path) -> None:
    for file in parts.iterdir():
        found = json.loads(file.read_text())
        broken, doubted = ["KeyError: 'x'"], found["report"]["failures"][:1]
        report = {**found["report"], "broken": broken, "doubted": doubted}
        file.write_text(json.dumps({**found, "report": report}))
    text = called("--merge", str(parts)).stdout
    assert "broken: 2 schedules in which the simulator itself fails" in text
    assert "in doubt: " in text


def without_failures(parts: Path) -> list[Path]:
    """The results, as if nothing had been found."""
    files = sorted(parts.iterdir())
    for file in files:
        found = json.loads(file.read_text())
        found["report"]["failures"] = found["shown"] = []
        file.write_text(json.dumps(found))
    return files


def test_a_missing_shard_is_told_and_nothing_is_known(parts: Path) -> None:
    _, second = without_failures(parts)
    assert called("--merge", str(parts)).exit_code == 0
    second.unlink()
    result = called("--merge", str(parts))
    assert result.exit_code == 3
    assert "missing: the results of shard 2 of 2" in result.stdout
    assert "nothing is known" in result.stdout


def test_a_missing_shard_does_not_hide_a_failure(parts: Path) -> None:
    sorted(parts.iterdir())[1].unlink()
    assert called("--merge", str(parts)).exit_code == 1


def test_a_shard_that_is_given_twice_counts_once(parts: Path) -> None:
    """The one that has tried more, or found something."""
    first, _ = sorted(parts.iterdir())
    copy(first, parts / "again.json")
    changed(first, report={"tried": 1, "failures": []})
    found = json.loads(called("--merge", str(parts), "-o", "json").stdout)
    assert found["tried"] == 24
    assert {each["like it"] for each in found["failures"]} == {
        each["like it"]
        for file in (first, *parts.glob("2-*"))
        for each in json.loads(file.read_text())["report"]["failures"]
    }


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"campaign": {"--depth": 2}}, "--depth differ"),
        ({"campaign": {"the operator's files": ["b.py"]}}, "the operator's files"),
        ({"campaign": {"the handlers' code": {}}}, "the handlers' code differ"),
        ({"shards": 3}, "the numbers of shards differ"),
    ],
)
def test_results_of_different_calls_are_refused(
    parts: Path, changes: dict[str, Any], words: str
) -> None:
    first, _ = sorted(parts.iterdir())
    changed(first, **changes)
    result = called("--merge", str(parts))
    assert result.exit_code == 2
    assert "are of different calls" in result.stderr
    assert words in result.stderr


def test_shards_of_another_call_are_told_from_these(parts: Path, begun: Path) -> None:
    result = check("--shard", "1/2", "--results", str(parts), "--seed", "7")
    assert result.exit_code == 1
    assert called("--merge", str(parts)).exit_code == 2


@pytest.mark.parametrize("text", ["{", "[]", "{}", '"text"', '{"fnop check": 2}', ""])
def test_a_file_that_has_no_results_is_told(parts: Path, text: str) -> None:
    (parts / "package.json").write_text(text)
    result = called("--merge", str(parts))
    assert result.exit_code == 2
    assert "package.json has no results of fnop check" in result.stderr


def test_a_shard_that_is_tried_again_takes_the_place_of_its_results(
    parts: Path,
) -> None:
    before = sorted(each.name for each in parts.iterdir())
    check("--shard", "1/2", "--results", str(parts))
    assert sorted(each.name for each in parts.iterdir()) == before
