"""`fnop check`, from the command line and in tests of an operator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from fnop.adapters.check import (
    places as check_places,
    run as check_run,
    trials as check_trials,
)
from fnop.adapters.cli.main import main
from fnop.adapters.testing import cases as checking
from fnop.interpreters.check.campaign.explore import Verdict
from fnop.interpreters.check.campaign.reports import Result as TaskResult, Task
from fnop.interpreters.check.properties import EXPLAINED, PROPERTIES
from fnop.interpreters.check.properties.evidence import Violation
from fnop.testing import (
    Simulation,
    checks,
    crash,
    create,
    explore,
    fault,
    keep_data,
    leave_no_orphans,
    never_create_twice,
    stabilise,
)
from tests.checks import (
    BUGGY,
    CALLING,
    CRD,
    FIXED,
    OBJECT,
    called,
    folder as folder,
    operator,
)
from tests.commands import fnop as command, pytest_of
from tests.long import parameters

WORDS = "benign, except: crash after `create secrets/x-a` (1st, handler certify)"


def creation(folder: Path) -> tuple[str, ...]:
    """Options for one script alone, which has a fifth of the schedules of all."""
    scripts = f"SCRIPTS = {{'create': [apply({OBJECT})]}}"
    (folder / "script.py").write_text(f"from fnop.testing import apply\n{scripts}")
    return "--crd", "crd.yaml", "--script", "script.py", "--without", "pure"


def test_a_bug_is_found_told_and_written_down(folder: Path) -> None:
    file = operator(folder, BUGGY)
    result = called(file, "--without", "pure", "--budget", "60")
    assert result.exit_code == 1, result.output
    assert "FAIL  same_end" in result.stdout
    assert "1. same_end: secrets/x-b is missing" in result.stdout
    assert f"schedule  {WORDS}" in result.stdout
    recording = result.stdout.partition("   recording ")[2].splitlines()[0]

    # A process of its own: this one has run the file, and does not run it again.
    replayed = command("replay", recording, file, folder=folder)
    assert replayed.status == 0, replayed.err
    assert replayed.out.startswith("identical")

    # The run without faults is next to it: the difference is the fault.
    benign, failed = result.stdout.partition("compared  fnop diff ")[2].split()[:2]
    assert (Path(benign).parent, failed) == (Path(recording).parent, recording)
    assert Path(benign).name.startswith("benign-create-")
    diff = CliRunner().invoke(main, ["diff", benign, failed])
    assert diff.exit_code == 1
    assert "first difference: the process of b ended" in diff.stdout
    assert "before the answer to Create secrets/default/x-a, for certify" in diff.stdout
    assert command("replay", benign, file, folder=folder).status == 0
    no_failure = called("--as-test", benign)
    assert no_failure.exit_code == 2

    test = called("--as-test", recording)
    assert test.exit_code == 0
    (folder / "test_found.py").write_text(test.stdout)
    mended = operator(folder, FIXED, "mended")
    (folder / "test_mended.py").write_text(test.stdout.replace(file, mended))
    again = pytest_of("test_found.py", "test_mended.py", folder=folder)
    assert "1 failed, 1 passed" in again.out
    assert "test_found.py::test_same_end - AssertionError" in again.out
    assert "same_end: secrets/x-b is missing" in again.out


def test_an_operator_without_bugs_passes(folder: Path) -> None:
    result = called(operator(folder, FIXED), "--budget", "60")
    assert result.exit_code == 0, result.output
    assert "no property is violated" in result.stdout
    assert "with object.yaml" not in result.stdout  # notes are for people
    assert not (folder / "fnop-failures").exists()


def test_shards_are_parts_of_the_whole(folder: Path) -> None:
    """Even if each shard knows the findings of those before it."""
    file, options = operator(folder, BUGGY), ("-o", "json", *creation(folder))
    whole = json.loads(called(file, *options, "--save", "whole").stdout)
    for number in (1, 2, 3):
        called(file, *options, "--shard", f"{number}/3", "--results", "parts")
    assert len([*Path("parts").glob("*.json")]) == 3
    merged = json.loads(called("--merge", "parts", "-o", "json").stdout)
    assert (merged.pop("shards"), merged.pop("missing")) == (3, [])
    assert merged == whole
    assert {each["property"] for each in merged["failures"]} == {"same_end"}
    assert called("--merge", "parts").exit_code == 1


def test_several_processes_find_the_same(folder: Path) -> None:
    file, options = operator(folder, BUGGY), ("-o", "json", *creation(folder))
    one = called(file, *options, "--save", "one").stdout
    two = called(file, *options, "--jobs", "2", "--save", "two").stdout
    assert json.loads(one) == json.loads(two)
    assert json.loads(one)["failures"]


@pytest.mark.parametrize("jobs", parameters(["1", "2"], ["2"]))
def test_the_budget_counts_schedules(
    folder: Path, jobs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not tasks: each of those that come last tries several pairs."""
    # A process does not stop before the end of what it is given.
    monkeypatch.setattr(check_trials, "CHUNK", 1)
    file, options = operator(folder, FIXED), ("-o", "json", *creation(folder))
    limits = ("--depth", "2", "--budget", "90", "--jobs", jobs)
    found = json.loads(called(file, *options, *limits).stdout)
    # A likely pair that is near as well is tried twice, and counts once.
    assert 85 <= found["tried"] <= 90
    assert sum(found["faults"].values()) > 90


def test_equal_calls_give_equal_reports_under_any_hash_seed(folder: Path) -> None:
    file = operator(folder, BUGGY)
    limits = ("--budget", "30", "--without", "pure")
    texts = {
        command(
            *("check", file, "-o", "json", "--save", seed, *limits),
            variables={"PYTHONHASHSEED": seed},
            folder=folder,
        ).out
        for seed in ("0", "1")
    }
    assert len(texts) == 1
    assert json.loads(texts.pop())["tried"] == 30


def test_an_order_that_depends_on_the_hash_seed_is_not_pure(folder: Path) -> None:
    source = FIXED.replace('"ab"', '{"alpha", "beta", "gamma", "delta", "epsilon"}')
    file = operator(folder, source)
    limits = ("--property", "pure", "--budget", "3")  # the runs without faults
    result = command("check", file, *limits, folder=folder)
    assert result.status == 1
    assert "goes otherwise under another PYTHONHASHSEED" in result.out


def test_what_was_not_tried_is_told(folder: Path) -> None:
    limits = ("--depth", "1", "--budget", "20", "--without", "pure")
    result = called(operator(folder, FIXED), *limits)
    assert result.exit_code == 0
    reason = "beyond the limits (the budget was used up)"
    assert f" schedules {reason}" in result.stdout
    assert "not tried: at least" not in result.stdout
    assert "20 schedules of 3 scripts tried" in result.stdout


def test_of_pairs_it_is_told_how_many_are_left_at_least(folder: Path) -> None:
    file, options = operator(folder, FIXED), creation(folder)
    found = called(file, *options, "--depth", "2", "--budget", "60")
    assert "not tried: at least " in found.stdout
    limits = ("--depth", "1", "--budget", "9", "-o", "json")
    report = json.loads(called(file, *options, *limits).stdout)
    assert (report["left at least"], report["cut"]) == (False, ["budget"])


class OtherSeed:
    """Stands for the runs under another hash seed: they differ."""

    is_done = True

    @classmethod
    @contextmanager
    def begun(cls, arguments: object, at_once: int) -> Iterator[OtherSeed]:
        yield cls()

    def go_on(self) -> None:
        """Begin nothing: there are no processes."""

    def differing(self, campaign: object) -> Iterator[TaskResult]:
        violation = Violation("pure", "it goes otherwise")
        yield TaskResult(Task(0, ()), (Verdict((), (violation,)),))


def test_runs_under_another_hash_seed_are_no_schedules(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_run, "OtherOrder", OtherSeed)
    file, options = operator(folder, FIXED), ("--budget", "12", "-o", "json")
    usual = json.loads(called(file, *options, "--without", "pure").stdout)
    found = json.loads(called(file, *options).stdout)
    assert found["properties"]["pure"] == "fail"
    assert (found["tried"], found["left"]) == (12, usual["left"])


def test_reports_for_machines(folder: Path) -> None:
    file = operator(folder, BUGGY)
    limits = ("--depth", "1", *creation(folder))
    result = called(file, "-o", "github", "--junit", "j.xml", *limits)
    (line,) = result.stdout.splitlines()
    # The one of the handler's first decorator.
    assert line.startswith(f"::error file={file},line=4,title=fnop check: same_end::")
    suite = ElementTree.parse("j.xml").getroot()
    assert suite.get("failures") == "1"
    assert len(suite.findall("testcase")) == int(suite.get("tests") or 0)


def test_what_an_operator_prints_is_no_part_of_a_report(folder: Path) -> None:
    source = f"print('loaded')\n{FIXED}".replace(
        "    if True:", "    if print('called') is None:"
    )
    options = ("--property", "pure", "--budget", "3", "-o", "json")
    done = command("check", operator(folder, source), *options, folder=folder)
    assert json.loads(done.out)["properties"] == {"pure": "pass"}
    assert "loaded" in done.err
    assert "called" in done.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "name the operator's file"),
        (("{file}", "--shard", "4/3"), "is not a shard"),
        (("{file}", "--property", "nice"), "there is no property nice"),
        (("{file}", "--property", "pure", "--without", "pure"), "no property is left"),
        (("{file}", "--name", "a b"), "the operator's name 'a b' must be"),
        (("{file}", "--time", "nan"), "is not a duration"),
        (("{file}", "--time", "0s"), "is not more than 0s"),
        (("--as-test", "object.yaml"), "is not a recording of a failure"),
        (("--merge", "."), "there are no results in ."),
        (
            ("{file}", "--object", "crd.yaml", "--crd", "object.yaml", "--budget", "9"),
            None,
        ),
    ],
)
def test_wrong_calls_have_a_sentence(
    folder: Path, arguments: tuple[str, ...], sentence: str | None
) -> None:
    file = operator(folder, FIXED)
    result = called(*(each.format(file=file) for each in arguments))
    if sentence is None:
        assert result.exit_code == 0  # either option takes any manifest
    else:
        assert result.exit_code == 2
        assert sentence in result.output


def test_without_manifests_they_are_made_up(tmp_path: Path) -> None:
    file = str(tmp_path / operator(tmp_path, FIXED))
    limits = ("--without", "pure", "--budget", "20")
    result = called(file, "--save", str(tmp_path / "found"), *limits)
    assert result.exit_code == 0, result.output
    assert "made up a definition of xs that takes any spec; give --crd" in result.output
    assert "made up X x; give your own with --object" in result.output


# ----------------------------------------------------------------------- in tests


def test_a_simulation_under_faults(folder: Path) -> None:
    faults = [crash.after("certify", create="secrets/x-a")]
    sim = Simulation(operator(folder, BUGGY), crds="crd.yaml", faults=faults)
    sim.apply(OBJECT).settle().heal()
    assert "secrets/x-a" in sim
    with pytest.raises(AssertionError, match="secrets/x-b is missing"):
        sim.must_equal_benign()
    with pytest.raises(AssertionError, match="secrets/x-b is missing"):
        sim.must_hold(stabilise, "total")
    sim.must_hold(never_create_twice, leave_no_orphans, keep_data)
    with pytest.raises(ValueError, match="there is no property 'same_ends'"):
        sim.must_hold("same_ends")


def test_a_fault_that_does_not_come_about_is_no_success(folder: Path) -> None:
    faults = [crash.after("certify", create="secrets/x-c")]
    sim = Simulation(operator(folder, BUGGY), crds="crd.yaml", faults=faults)
    with pytest.raises(AssertionError, match="the fault did not occur: crash"):
        sim.apply(OBJECT).settle().heal()


SCRIPT = """
from fnop.testing import External

class Till(External):
    def __init__(self):
        self.charged = []

    def charge(self, who):
        self.created(who)
        self.charged.append(who)

CALLS = {"charge": Till().charge}
"""
BY_NAME = "charge = Till().charge"


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("--script", SCRIPT),
        ("--calls", SCRIPT),
        ("--calls", SCRIPT.replace('CALLS = {"charge": Till().charge}', BY_NAME)),
    ],
    ids=["script", "CALLS", "by name"],
)
def test_the_test_of_a_failure_has_its_models(
    option: str, text: str, folder: Path
) -> None:
    file = operator(folder, CALLING)
    (folder / "outside.py").write_text(text)
    limits = "--property", "creates_once", "--budget", "20"
    result = called(file, option, "outside.py", *limits)
    assert "2 things are made outside, 1 in the benign run" in result.stdout
    recording = result.stdout.partition("   recording ")[2].splitlines()[0]
    (folder / "test_found.py").write_text(called("--as-test", recording).stdout)
    again = pytest_of("test_found.py", folder=folder)
    assert "things are made outside" in again.out, again.out


def test_a_function_that_uses_a_model_is_told(folder: Path) -> None:
    file = operator(folder, CALLING)
    function = "TILL = Till()\ndef charge(who):\n    TILL.charge(who)\n"
    (folder / "outside.py").write_text(SCRIPT.partition("CALLS")[0] + function)
    result = called(file, "--calls", "outside.py")
    assert result.exit_code == 2
    assert "the model of charge is a function that uses TILL" in result.stderr


def test_functions_of_a_script_are_no_models(folder: Path) -> None:
    file = operator(folder, CALLING)
    (folder / "outside.py").write_text("def charge(who):\n    pass\n")
    result = called(file, "--script", "outside.py")
    assert result.exit_code == 2
    assert "is not simulated; give a model of it" in result.stderr


def test_models_in_a_simulation_go_by_bare_names_too(folder: Path) -> None:
    seen: list[str] = []
    calls = {"charge": lambda who: seen.append(who)}
    file = operator(folder, CALLING)
    sim = Simulation(file, crds="crd.yaml", objects=OBJECT, calls=calls)
    assert sim.settle().settled
    assert seen == ["x"]


def test_a_finalized_namespace_that_is_held_can_be_changed(folder: Path) -> None:
    sim = Simulation(operator(folder, CALLING), crds="crd.yaml")
    held = {"name": "team", "finalizers": ["example.com/held"]}
    sim.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": held})
    sim.delete("namespaces/team").settle()
    sim.edit("namespaces/team", metadata={"finalizers": None}).settle()
    assert "namespaces/team" not in sim


def test_a_script_is_explored(folder: Path) -> None:
    bad = operator(folder, BUGGY)
    explored = explore(bad, create(OBJECT), crds="crd.yaml")
    explored.must(never_create_twice)
    with pytest.raises(AssertionError, match="secrets/x-b is missing"):
        explored.must(stabilise, never_create_twice)
    with pytest.raises(ValueError, match="there is no property 'nice'"):
        explored.must("nice")


def test_there_is_a_check_for_each_script_and_sort_of_fault(folder: Path) -> None:
    found = checks(operator(folder, FIXED), crds="crd.yaml", objects="object.yaml")
    names = [each.__name__ for each in found]
    assert names[:3] == ["create-benign", "create-F1", "create-F10"]
    assert len(names) == len(set(names))
    for each in found[:2]:
        each()


def test_each_property_is_explained_in_a_line() -> None:
    assert set(EXPLAINED) == set(PROPERTIES)


def test_faults_are_named_by_their_sites() -> None:
    made = fault("F2:action", event="ADDED xs/x", nth=2)
    assert "the event `ADDED xs/x` (2nd)" in str(made)
    assert str(crash.at_rest(1)).startswith("crash when all has come to rest")
    with pytest.raises(ValueError, match="there is no fault 'F99'"):
        fault("F99", create="xs/x")
    with pytest.raises(ValueError, match="strikes a event, not a write"):
        fault("F2:action", "c", create="xs/x")
    with pytest.raises(ValueError, match="name one effect"):
        fault("F1:after", "c")


def test_a_run_is_shown_once_whatever_it_violates(folder: Path) -> None:
    file = operator(
        folder,
        """
import fnop

@fnop.on.create("xs.example.com")
def make(spec, **_):
    return fnop.patch(status={"size": spec["missing"]})
""",
    )
    result = called(file, *creation(folder), "--budget", "1", "--without", "serves")
    lines = result.stdout.splitlines()
    failed = [each.split()[1] for each in lines if each.startswith("  FAIL")]
    shown = [each for each in lines if each[:2] in ("1.", "2.")]
    beside = [each for each in lines if each.startswith("   as well")]
    assert failed == ["total", "settles"]
    assert (len(shown), len(beside)) == (1, 1)
    assert shown[0].startswith("1. total: make raises KeyError")
    assert "further" not in result.stdout


def test_no_object_is_made_up_where_scripts_bring_their_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of such a schema none can be made up: no text is so short."""
    monkeypatch.setattr(checking, "DRAWN_MAX", 1)
    definition = json.loads(json.dumps(CRD))
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    size: dict[str, Any] = {"type": "string", "pattern": "^[0-9]+Gi$", "maxLength": 1}
    spec = {"type": "object", "required": ["size"], "properties": {"size": size}}
    schema["properties"]["spec"] = spec
    (folder / "crd.yaml").write_text(json.dumps(definition))
    (folder / "object.yaml").unlink()
    file = operator(folder, FIXED)
    options = (file, "--crd", "crd.yaml", "--budget", "9", "--without", "pure")
    refused = called(*options)
    assert refused.exit_code == 2
    assert "give one with --object" in refused.stderr

    size["maxLength"] = 5
    (folder / "crd.yaml").write_text(json.dumps(definition))
    thing = {**OBJECT, "spec": {"size": "2Gi"}}
    script = f"from fnop.testing import apply\nSCRIPT = [apply({thing})]"
    (folder / "script.py").write_text(script)
    taken = called(*options, "--script", "script.py")
    assert taken.exit_code == 0, taken.output
    assert "made up" not in taken.stderr


@pytest.mark.parametrize(
    ("scripts", "complaint"),
    [
        ("SCRIPTS = {'a': 'apply'}", "SCRIPTS['a'] is not a list of actions"),
        ("SCRIPTS = [apply({})]", "SCRIPTS is not a dict"),
        ("SCRIPTS = {}", "SCRIPTS is empty"),
        ("SCRIPT = []", "SCRIPT is not a list of actions"),
        ("SCRIPT = [apply]", "SCRIPT holds <function apply"),
    ],
)
def test_what_is_no_script_is_told(folder: Path, scripts: str, complaint: str) -> None:
    (folder / "own.py").write_text(f"from fnop.testing import apply\n{scripts}")
    file = operator(folder, FIXED)
    found = called(file, "--crd", "crd.yaml", "--script", "own.py")
    assert found.exit_code == 2
    assert f"fnop: {complaint}" in found.stderr


@pytest.mark.parametrize(
    ("option", "place", "reason"),
    [
        ("--junit", "file/below", "there is no folder file; make it first"),
        ("--junit", "nodir/x.xml", "there is no folder nodir; make it first"),
        ("--results", "file/below", "file is not a folder; name another place"),
        ("--save", "file/below", "file is not a folder; name another place"),
    ],
)
@pytest.mark.parametrize("merges", [False, True])
def test_a_place_that_cannot_be_written_to_is_told_before_all(
    folder: Path,
    option: str,
    place: str,
    reason: str,
    merges: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (folder / "file").touch()
    monkeypatch.setattr(check_run, "Campaign", None)  # nothing is tried
    file = ("--merge", ".") if merges else (operator(folder, FIXED),)
    found = called(*file, option, place)
    assert found.exit_code == 2, found.output
    assert reason in found.stderr


def test_a_place_that_can_no_longer_be_written_to_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device", "j.xml")

    file, limits = operator(folder, FIXED), ("--budget", "5")
    monkeypatch.setattr(Path, "write_text", full)
    found = called(file, "--without", "pure", *limits, "--junit", "j.xml")
    assert found.exit_code == 2, found.output
    assert "no property is violated" in found.stdout
    assert "fnop: j.xml cannot be written: No space left on device" in found.stderr


def test_the_usual_folder_need_not_be_writable_without_a_failure(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_places, "_folder_reason", lambda _: "it is read-only")
    file, limits = operator(folder, FIXED), ("--budget", "5", "--without", "pure")
    assert called(file, *limits).exit_code == 0
    found = called(file, *limits, "--save", "mine")
    assert found.exit_code == 2
    assert "--save mine cannot be written: it is read-only" in found.stderr


def test_an_expectation_of_an_unknown_kind_is_told(folder: Path) -> None:
    (folder / "own.py").write_text(
        "from fnop.testing import expect\n"
        "@expect('xz.example.com')\n"
        "def is_known(x, world):\n"
        "    return False"
    )
    options = ("--crd", "crd.yaml", "--script", "own.py", "--budget", "5")
    found = called(operator(folder, FIXED), *options)
    assert found.exit_code == 2
    complaint = "@expect('xz.example.com'): the cluster serves no kind 'xz.example.com'"
    assert complaint in found.stderr
