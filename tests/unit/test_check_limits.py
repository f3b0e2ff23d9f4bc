"""A check whose benign run fails already: it stops at its limits, and at signals."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest

import fnop as facade
from fnop.adapters import check_folder
from fnop.adapters.check_command import options_of_check
from fnop.adapters.check_run import Checking
from fnop.core.handlers.program import Program
from fnop.core.handlers.registry import Registry
from fnop.core.handlers.settings import Settings
from fnop.interpreters.actions import apply
from fnop.interpreters.check import shrink
from fnop.interpreters.check.explore import Case, Explorer, Failure
from tests.unit.test_check_command import CRD, OBJECT

SPEC = dict.fromkeys("abcd", 1)
INTERRUPTED = "fnop: interrupted; what is known by now"
# What the handler does before it fails; an error of that is its own affair.
DEEDS: list[Callable[[], None]] = []


def failing(how: str) -> Case:
    """An operator that fails for a field that nobody writes, once or again and again.

    In another script it fails otherwise: no run shows both.
    """
    registry, mode = Registry(), facade.ErrorsMode(how)

    @facade.on.create("xs.example.com", errors=mode, registry=registry)
    def made(spec: Any, **_: Any) -> None:
        with suppress(BaseException):
            while DEEDS:
                DEEDS.pop()()
        if how == "permanent":
            spec["missing"]
        raise ConnectionError("nobody answers")

    script = (apply({**OBJECT, "spec": SPEC}),)
    return Case(Program(registry.handlers, Settings()), (CRD,), script, name=how)


class Tries:
    """Counts the smaller versions that are tried; within the first `deed` is done."""

    def __init__(self) -> None:
        self.number = 0
        self.deed: Callable[[], None] = lambda: None

    def note(self) -> None:
        """One more is tried."""
        self.number += 1
        if self.number == 1:
            DEEDS.append(self.deed)


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tries]:
    found, real = Tries(), shrink._still

    def still(*given: Any) -> Any:
        found.note()
        return real(*given)

    monkeypatch.setattr(shrink, "_still", still)
    yield found
    DEEDS.clear()


def checking(folder: Path, **options: Any) -> Checking:
    given = {"save": str(folder), "only": ("total", "settles"), **options}
    cases = [failing(each) for each in ("permanent", "temporary")]
    return Checking(["op.py"], options_of_check(**given), cases)


def recorded(folder: Path) -> list[str]:
    """The properties of which there are recordings."""
    return sorted(each.name.partition("-")[0] for each in folder.glob("*.fnop"))


BOTH = ["settles", "total"]


def test_all_shrinking_has_the_budget_of_the_schedules(
    tmp_path: Path, tries: Tries
) -> None:
    assert checking(tmp_path, budget=3).run() == 1
    assert tries.number == 3
    assert recorded(tmp_path) == BOTH
    assert checking(tmp_path / "others").run() == 1
    assert tries.number >= 3 + 2 * len(SPEC), "each field is left out, for both"


def test_without_time_nothing_is_shrunk(
    tmp_path: Path, tries: Tries, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = checking(tmp_path)
    monkeypatch.setattr(limited.limits, "has_time", lambda: not tries.number)
    assert limited.run() == 1
    assert tries.number == 1
    assert recorded(tmp_path) == BOTH


def test_a_signal_within_a_handler_ends_the_search(
    tmp_path: Path, tries: Tries, capsys: pytest.CaptureFixture[str]
) -> None:
    """The handler takes the interruption for an error of its own."""
    former = signal.getsignal(signal.SIGTERM)
    tries.deed = lambda: signal.raise_signal(signal.SIGTERM)
    assert checking(tmp_path).run() == 1
    assert tries.number == 1
    told = capsys.readouterr()
    assert told.err.count(INTERRUPTED) == 1
    assert "FAIL  total" in told.out
    assert "fnop diff" not in told.out, "the run without faults is the failure"
    assert recorded(tmp_path) == BOTH
    assert signal.getsignal(signal.SIGTERM) is former


def test_a_signal_while_a_failure_is_recorded_leaves_no_part_of_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def record(file: Path, *_: Any) -> None:
        file.write_bytes(b"a part")
        raise KeyboardInterrupt

    monkeypatch.setattr(check_folder, "write_failure", record)
    assert checking(tmp_path, budget=2).run() == 1
    assert recorded(tmp_path) == []
    told = capsys.readouterr()
    assert told.err.count("fnop: interrupted; no further recordings are written") == 1
    assert told.out.count("schedule  benign") == 2
    assert "recording" not in told.out


def test_a_signal_while_a_run_is_looked_at_again_loses_no_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a run violates beside is not known then; the failure is shown."""
    real = check_folder.Folder.saved

    class Interrupted:
        @property
        def violations(self) -> NoReturn:
            raise KeyboardInterrupt

    def saved(folder: Any, explorer: Explorer, failure: Failure) -> tuple[str, str]:
        found = real(folder, explorer, failure)
        monkeypatch.setattr(explorer, "benign", Interrupted())
        return found

    monkeypatch.setattr(check_folder.Folder, "saved", saved)
    assert checking(tmp_path, budget=2).run() == 1
    told = capsys.readouterr()
    assert told.err.count(INTERRUPTED) == 2
    assert told.out.count("schedule  benign") == 2


@pytest.mark.parametrize("is_terminal", [False, True])
def test_shrinking_is_told(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    is_terminal: bool,
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal, raising=False)
    checking(tmp_path, budget=30).run()
    told = capsys.readouterr().err
    line = "fnop: looking for the smallest schedule that violates total\n"
    assert (line in told) is not is_terminal
    assert ("shrinking total" in told) is is_terminal
    checking(tmp_path, budget=1, quiet=True).run()
    assert capsys.readouterr().err == ""
