"""`fnop replay --explore` and `--as-test`, as a user calls them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from fnop.adapters.recordings.recording_files import recorder_to
from fnop.core.handlers.program.program import Program
from fnop.interpreters.recording.redaction import Redaction
from tests.commands import Done, fnop, pytest_of
from tests.recorded_operators import OBJECT, recorded_run
from tests.recordings import TRACED
from tests.simulations import Scenario, example, handlers_in

BUGGY = """
import fnop

def price_of(name):
    raise ConnectionError("not in a test")

def child(name, size):
    data, meta = {"size": str(size)}, {"name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}

@fnop.on.create("fnopexamples")
async def made(name, **_):
    price = await fnop.call(price_of, name=name)
    if await fnop.get("configmaps", name=f"{name}-a") is None:
        await fnop.adopt(child(f"{name}-a", price))
        await fnop.adopt(child(f"{name}-b", price))
"""
MENDED = f"""{BUGGY.partition("    if")[0]}
    for each in (f"{{name}}-a", f"{{name}}-b"):
        if await fnop.get("configmaps", name=each) is None:
            await fnop.adopt(child(each, price))
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded_run(tmp_path_factory.mktemp("recorded"), BUGGY, "operator.py")


@pytest.fixture
def folder(recorded: Path, tmp_path: Path) -> Path:
    """An operator with a bug, and a recording of a run of it."""
    return shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)


def passes(folder: Path, test: str, source: str) -> bool:
    (folder / test).write_text(source)
    done = pytest_of(test, folder=folder)
    assert done.status in (0, 1), done.out
    return done.status == 0


def test_a_fault_is_found_around_a_run_that_went_well(folder: Path) -> None:
    explore = ("--explore", "--from", "1", "--budget", "80")
    found = fnop("replay", "run.fnop", "operator.py", *explore, folder=folder)
    assert found.status == 1, found.err
    assert "from #1, simulated: 0 objects as shown by then, 1 change" in found.err
    assert "same_end: configmaps/example-1-b is missing" in found.out
    (failure,) = (folder / "fnop-failures").glob("same_end*.fnop")
    # The called function is not there in a test: its recorded answers are.
    test = fnop("check", "--as-test", failure, folder=folder)
    assert not passes(folder, "test_regression.py", test.out)
    (folder / "operator.py").write_text(MENDED)
    assert passes(folder, "test_regression.py", test.out)


def test_faults_strike_what_the_operator_does_at_once(folder: Path) -> None:
    """By default the objects are those at the time when it was ready."""
    explore = ("--explore", "--save", "failures")
    found = fnop("replay", "run.fnop", "operator.py", *explore, folder=folder)
    assert found.status == 1, found.err
    assert ", simulated: 1 object as shown by then, 0 changes" in found.err
    assert "crash after `create configmaps/example-1-a`" in found.out
    (failure,) = (folder / "failures").glob("same_end*.fnop")
    test = fnop("check", "--as-test", failure, folder=folder)
    assert "restored=RESTORED" in test.out
    assert not passes(folder, "test_regression.py", test.out)


@pytest.mark.parametrize("operator", [(), ("operator.py",)])
def test_a_run_becomes_a_test(folder: Path, operator: tuple[str, ...]) -> None:
    asked = ("replay", "run.fnop", *operator, "--at", "1", "--as-test")
    found = fnop(*asked, folder=folder)
    assert (found.status, found.err) == (0, "")
    assert passes(folder, "test_incident.py", found.out)
    other = found.out.replace("'size': '7'", "'size': '8'")
    assert other != found.out
    assert not passes(folder, "test_other.py", other)


def test_a_part_of_the_world(folder: Path) -> None:
    asked = ("replay", "run.fnop", "operator.py", "--as-test")
    whole = fnop(*asked, "--object", "example-1", folder=folder)
    assert "'name': 'example-1'" in whole.out
    early = fnop(*asked, "--at", "1", "--until", "2", folder=folder)
    assert "sim.apply" not in early.out
    absent = fnop(*asked, "--object", "nobody", folder=folder)
    assert (absent.status, absent.out) == (1, "")
    assert "the recording shows no object 'nobody'" in absent.err
    late = fnop(*asked, "--at", "999", folder=folder)
    assert (late.status, late.out) == (2, "")
    assert "and no step 999" in late.err


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--at", "9", "--until", "3"), "#3 comes before #9, at which the part begins"),
        (("--at", "99", "--until", "3"), "#3 comes before #99, at which the part"),
        (("--until", "1"), "the operator is not ready by #1: give a later --until, or"),
    ],
)
def test_a_part_that_ends_before_it_begins(
    folder: Path, options: tuple[str, ...], complaint: str
) -> None:
    found = fnop("replay", "run.fnop", "--as-test", *options, folder=folder)
    assert (found.status, found.out) == (2, "")
    assert complaint in found.complaint


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("operator.py", "--as-test", "--crd", "models.py"), "models.py"),
        (("operator.py", "--as-test", "--crd", str(OBJECT)), "definitions of kinds"),
    ],
)
def test_definitions_that_are_none(
    folder: Path, options: tuple[str, ...], complaint: str
) -> None:
    found = fnop("replay", "run.fnop", *options, folder=folder)
    assert (found.status, found.out) == (2, "")
    assert complaint in found.complaint


KILLED = """
import fnop

@fnop.on.create("fnopexamples")
@fnop.on.update("fnopexamples")
def noted(spec, **_):
    return fnop.patch(status={"n": spec.get("n")})
"""


def test_a_test_of_a_killed_process_ends_before_what_has_no_answer(
    tmp_path: Path,
) -> None:
    """The last edit was shown, and the process died before its write."""
    (tmp_path / "operator.py").write_text(KILLED)
    program = Program(handlers_in(tmp_path / "operator.py"), TRACED)
    redaction = Redaction(b"k" * 16, program)
    recorder = recorder_to(tmp_path / "run.fnop", program, redaction)
    sim = Scenario(program.handlers, settings=TRACED, observers=[recorder])
    sim.apply(example(n=0))
    for number in (1, 2):
        assert sim.settle()
        sim.edit("fnopexamples", spec={"n": number})
    sim.advance()  # the watch shows the edit
    recorder.close()
    asked = ("replay", "run.fnop", "operator.py", "--at", "1", "--as-test")
    found = fnop(*asked, folder=tmp_path)
    assert found.status == 0, found.err
    assert "the test ends before #" in found.err
    assert "somebody changes fnopexample/example-1" in found.err
    assert "'n': 1" in found.out
    assert "'n': 2" not in found.out
    assert passes(tmp_path, "test_run.py", found.out)


DEFINITION, _ = yaml.safe_load_all(OBJECT.read_text())
NAMES = {"plural": "others", "kind": "Other"}


def defined(**spec: Any) -> dict[str, Any]:
    """The example's definition with another specification."""
    plural = spec.get("names", DEFINITION["spec"]["names"])["plural"]
    metadata = {"name": f"{plural}.fnop.dev"}
    return {**DEFINITION, "metadata": metadata, "spec": {**DEFINITION["spec"], **spec}}


def as_test(folder: Path, *definitions: dict[str, Any]) -> Done:
    (folder / "crd.yaml").write_text(yaml.safe_dump_all(definitions))
    asked = ("replay", "run.fnop", "operator.py", "--as-test", "--crd", "crd.yaml")
    return fnop(*asked, folder=folder)


LACKING = (
    "fnop: --crd has no definition of fnopexamples.fnop.dev: any field is allowed "
    "there; give its CustomResourceDefinition, too"
)
UNUSED = "fnop: --crd defines others.fnop.dev: the recording has none of it"
OLD = [{**DEFINITION["spec"]["versions"][0], "name": "v0"}]


@pytest.mark.parametrize(
    ("definitions", "told"),
    [
        ([DEFINITION], []),
        ([defined(names=NAMES)], [LACKING, UNUSED]),
        ([DEFINITION, defined(names=NAMES)], [UNUSED]),
    ],
)
def test_definitions_are_compared_with_what_the_recording_has(
    folder: Path, definitions: list[dict[str, Any]], told: list[str]
) -> None:
    found = as_test(folder, *definitions)
    assert (found.status, found.err.splitlines()) == (0, told)
    assert "DEFINITIONS = " in found.out


@pytest.mark.parametrize(
    ("definition", "complaint"),
    [
        (
            defined(versions=OLD),
            "fnop: --crd: no definition serves fnopexamples.fnop.dev/v1, as which the "
            "recording has objects; give one that does, or none of that kind",
        ),
        (
            {**DEFINITION, "spec": {"group": "fnop.dev"}},
            "fnop: --crd: the definition fnopexamples.fnop.dev is no whole one: it "
            "needs spec.group, spec.names with plural and kind, and spec.versions",
        ),
    ],
)
def test_definitions_that_cannot_serve_the_objects(
    folder: Path, definition: dict[str, Any], complaint: str
) -> None:
    found = as_test(folder, definition)
    assert (found.status, found.out, found.err) == (2, "", f"{complaint}\n")


SIGNING = """
import fnop

@fnop.on.create("fnopexamples")
def made(**_):
    return fnop.patch(status={"phase": "New"})

@fnop.on.delete("fnopexamples")
def gone(**_):
    pass
"""


def test_a_test_has_the_settings_of_the_command_line(tmp_path: Path) -> None:
    """The name is in finalizers, and in the managed fields that are expected."""
    (tmp_path / "operator.py").write_text(SIGNING)
    asked = ("--name", "acme", "-n", "default", "-l", "!off")
    simulated = ("--simulate", OBJECT, *asked, "--record", "run.fnop")
    assert fnop("run", "operator.py", *simulated, folder=tmp_path).status == 0
    test = fnop("replay", "run.fnop", "--at", "1", "--as-test", folder=tmp_path)
    assert "settings=fnop.Settings(operator='acme', namespaces=('default',), " in (
        test.out
    )
    assert "'fnop.dev/acme'" in test.out
    assert passes(tmp_path, "test_incident.py", test.out)
