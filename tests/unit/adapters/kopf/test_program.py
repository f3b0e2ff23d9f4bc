"""`python -m fnop.kopf`: programs, modules and the commands of Kopf."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fnop.adapters.kopf.commands.program import main

pytestmark = pytest.mark.usefixtures("without_kopf")

PROGRAM = """
import sys, kopf
print(__name__, kopf.__name__, sys.argv[1:], getattr(kopf, "Memo").__module__)
"""


@pytest.fixture(autouse=True)
def arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore what programs change."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", [*sys.argv])


def run(*given: str) -> None:
    sys.argv = ["python -m fnop.kopf", *given]
    main()


def test_a_file_is_a_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "operator.py"
    file.write_text(PROGRAM)
    run(str(file), "--own", "option")
    wanted = (
        "__main__ fnop.kopf ['--own', 'option'] fnop.adapters.kopf.arguments.memos\n"
    )
    assert capsys.readouterr().out == wanted
    assert sys.path[0] == str(tmp_path), "its own modules can be imported"


def test_a_file_that_is_named_from_its_folder_knows_its_whole_path(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "operator.py"
    file.write_text("print(__file__, (lambda: 0).__code__.co_filename)")
    monkeypatch.chdir(tmp_path)
    run("operator.py")
    assert capsys.readouterr().out == f"{file} {file}\n"


def test_a_module_is_a_program(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "my_operator_module.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(tmp_path)
    run("-m", "my_operator_module", "a")
    assert capsys.readouterr().out.startswith("__main__ fnop.kopf ['a']")


@pytest.mark.parametrize("given", [[], ["--help"], ["run", "--help"]], ids=range(3))
def test_commands_are_those_of_kopf(
    capsys: pytest.CaptureFixture[str], given: list[str]
) -> None:
    with pytest.raises(SystemExit) as found:
        run(*given)
    printed = "".join(capsys.readouterr())
    assert "Usage: python -m fnop.kopf" in printed
    assert ("--liveness" in printed) is ("run" in given)
    assert found.value.code in ((0,) if given else (0, 2))


def test_the_help_has_the_options_of_programs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        run("--help")
    printed = capsys.readouterr().out
    assert "python -m fnop.kopf [OPTIONS] -- FILE" in printed
    for name in ("--record", "--metrics", "--kubeconfig", "--context", "--served"):
        assert f"  {name} " in printed


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["no.py"], "there is no file no.py"),
        (["-m", "no_such_module"], "there is no module no_such_module"),
        (["-m", "no_such.module"], "there is no module no_such.module"),
    ],
    ids=["file", "module", "package"],
)
def test_a_program_that_is_not_there_is_named(
    capsys: pytest.CaptureFixture[str], given: list[str], words: str
) -> None:
    with pytest.raises(SystemExit) as found:
        run(*given)
    assert found.value.code == 1
    assert capsys.readouterr().err == f"fnop: {words}\n"


def test_a_program_that_starts_no_operator_gets_the_other_command(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    declared = "import kopf\n@kopf.on.create('pods')\ndef fn(**_): pass\n"
    Path("declared.py").write_text(declared)
    run("declared.py")
    assert "write: fnop run --kopf declared.py\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    "given", [["-m"], ["--unknown"], ["-x", "file.py"]], ids=range(3)
)
def test_a_wrong_call_prints_the_usage(given: list[str]) -> None:
    with pytest.raises(SystemExit, match=r"usage: python -m fnop\.kopf"):
        run(*given)
