"""`fnop replay --shadow`: the decisions that change with another version."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from fnop.adapters.cli.main import main
from fnop.interpreters.shadow.attempts import Shadow
from tests.commands import fnop
from tests.simulations import ROOT

DATABASE = ROOT / "examples" / "19-database"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of 19-database, and versions of the operator next to it."""
    folder = tmp_path_factory.mktemp("shadow")
    done = fnop(
        *("run", DATABASE / "example.py", "--simulate", DATABASE / "object.yaml"),
        *("--record", "run.fnop"),
        folder=folder,
    )
    assert done.status == 0
    text = (DATABASE / "example.py").read_text()
    (folder / "port.py").write_text(text.replace("5432", "5433"))
    (folder / "raises.py").write_text(text.replace("spec.size", "spec.no_size"))
    (folder / "other.py").write_text(
        "import fnop\n\n@fnop.on.create('pods')\ndef other(**_): ...\n"
    )
    return folder


def test_what_changes_is_told_by_handler_line_and_field(folder: Path) -> None:
    done = fnop("replay", "run.fnop", "port.py", "--shadow", folder=folder)
    assert (done.status, done.err) == (0, "")
    first, code, _, group, *lines = done.out.splitlines()
    assert first == "6 of 6 recorded decisions change"
    assert code == "the code of database is another one"
    assert group.startswith("6 x reconcile handler database (port.py:")
    assert group.endswith("ends otherwise")
    assert (
        '  desired.status.endpoint: "example-1.default.svc:5432" -> '
        '"example-1.default.svc:5433"'
    ) in lines
    assert any("service/example-1.manifest.spec.ports" in each for each in lines)
    assert lines[-1].startswith("  at default/example-1 (steps #")


def test_a_pipeline_fails_where_nothing_could_be_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Shadow(attempts=2, untold=Counter({"version 108 is not there": 2}))
    monkeypatch.setattr("fnop.interpreters.shadow.attempts.shadow", lambda *_: found)
    operator, wanted = str(folder / "port.py"), ("--fail-on", "delete")
    call = ("replay", str(folder / "run.fnop"), operator, "--shadow")
    done = CliRunner().invoke(main, [*call, *wanted])
    assert done.exit_code == 4
    assert "no recorded decision could be asked again" in done.stderr
    assert CliRunner().invoke(main, call).exit_code == 0


@pytest.mark.parametrize(
    ("operator", "fail_on", "status"),
    [
        ("port.py", "delete,raise", 0),
        ("port.py", "any", 1),
        ("raises.py", "raise", 1),
        ("raises.py", "create", 0),
        ("other.py", "any", 1),
        ("other.py", "removed", 1),
        ("other.py", "change,delete,raise", 0),
        ("port.py", "change", 1),
    ],
)
def test_a_pipeline_fails_on_what_it_names(
    folder: Path, operator: str, fail_on: str, status: int
) -> None:
    done = fnop(
        "replay", "run.fnop", operator, "--shadow", "--fail-on", fail_on, folder=folder
    )
    assert done.status == status, done
    if status:
        assert done.complaint.startswith("fnop: decisions change that --fail-on names:")


def test_handlers_that_are_no_more_are_told(folder: Path) -> None:
    done = fnop("replay", "run.fnop", "other.py", "--shadow", folder=folder)
    first, gone, new = done.out.splitlines()
    assert first == "0 of 6 recorded decisions change"
    assert gone == "6 decisions of database, which is no handler now"
    assert new == "create handler other (other.py:3) is not in the recording"


def test_a_wrong_name_is_refused(folder: Path) -> None:
    done = fnop(
        "replay", "run.fnop", "port.py", "--shadow", "--fail-on", "x", folder=folder
    )
    assert done.status == 2
    assert "--fail-on knows any, raise, delete" in done.complaint
    done = fnop("replay", "run.fnop", "port.py", "--fail-on", "any", folder=folder)
    assert done.status == 2
    assert "--fail-on goes with --shadow" in done.complaint


def test_a_recording_of_an_earlier_release_says_what_it_lacks(tmp_path: Path) -> None:
    old = ROOT / "tests" / "replays" / "format-2" / "simulated-01-minimal.fnop"
    operator = ROOT / "examples" / "01-minimal" / "example.py"
    done = fnop("replay", old, operator, "--shadow", folder=tmp_path)
    assert done.status == 5
    assert "does not hold what handlers were shown" in done.complaint
