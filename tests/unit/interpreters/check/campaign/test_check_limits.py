"""A check whose benign run fails already: it stops at its limits, and at signals."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest

import fnop as facade
from fnop.adapters.check import folder as check_folder, run as check_run
from fnop.adapters.check.run import Checking
from fnop.adapters.check.trials import HASH_SEEDS, OtherOrder
from fnop.adapters.cli.check import options_of_check
from fnop.adapters.reports.check_report import as_lines
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign import shrink
from fnop.interpreters.check.campaign.explore import Case, Explorer, Failure
from fnop.interpreters.check.campaign.reports import Report
from fnop.interpreters.check.properties import FAULTLESS, OF_ADMISSION, PROPERTIES
from fnop.interpreters.runtime.clock import SystemClock
from fnop.interpreters.simulation.actions import apply
from tests.checks import CRD, OBJECT
from tests.patience import patience

SPEC = dict.fromkeys("ab", 1)
INTERRUPTED = "fnop: interrupted; what is known by now"
# What the handler does before it fails; an error of that is its own affair.
ACTS: list[Callable[[], None]] = []


def failing(how: str) -> Case:
    """An operator that fails for a missing field, once or again and again.

    In another script it fails differently: no run shows both.
    """
    registry, mode = Registry(), facade.ErrorsMode(how)

    @facade.on.create("xs.example.com", errors=mode, registry=registry)
    def made(spec: Any, **_: Any) -> None:
        with suppress(BaseException):
            while ACTS:
                ACTS.pop()()
        if how == "permanent":
            spec["missing"]
        raise ConnectionError("nobody answers")

    script = (apply({**OBJECT, "spec": SPEC}),)
    return Case(Program(registry.handlers, Settings()), (CRD,), script, name=how)


class Tries:
    """Counts the smaller versions that are tried; within the first `act` is done."""

    def __init__(self) -> None:
        self.number = 0
        self.act: Callable[[], None] = lambda: None

    def note(self) -> None:
        """One more is tried."""
        self.number += 1
        if self.number == 1:
            ACTS.append(self.act)


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tries]:
    found, real = Tries(), shrink._still

    def still(*given: Any) -> Any:
        found.note()
        return real(*given)

    monkeypatch.setattr(shrink, "_still", still)
    yield found
    ACTS.clear()


def checking(folder: Path, **options: Any) -> Checking:
    given = {"save": str(folder), "only": ("total", "settles"), **options}
    cases = [failing(each) for each in ("permanent", "temporary")]
    return Checking(["op.py"], options_of_check(**given), cases)


def recorded(folder: Path) -> list[str]:
    """The properties that have recordings."""
    return sorted(each.name.partition("-")[0] for each in folder.glob("*.fnop"))


BOTH = ["settles", "total"]


def test_all_shrinking_has_the_budget_of_the_schedules(
    tmp_path: Path, tries: Tries
) -> None:
    assert checking(tmp_path, budget=3).run() == 1
    assert tries.number == 3
    assert recorded(tmp_path) == BOTH
    assert checking(tmp_path / "others", budget=20).run() == 1
    assert tries.number >= 3 + 2 * len(SPEC), "each field is left out, for both"


def test_without_time_nothing_is_shrunk(
    tmp_path: Path, tries: Tries, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = checking(tmp_path, budget=8)
    monkeypatch.setattr(limited.limits, "has_time", lambda: not tries.number)
    assert limited.run() == 1
    assert tries.number == 1
    assert recorded(tmp_path) == BOTH


def test_a_signal_within_a_handler_ends_the_search(
    tmp_path: Path, tries: Tries, capsys: pytest.CaptureFixture[str]
) -> None:
    """The handler takes the interruption for an error of its own."""
    former = signal.getsignal(signal.SIGTERM)
    tries.act = lambda: signal.raise_signal(signal.SIGTERM)
    assert checking(tmp_path, budget=8).run() == 1
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
    """Further violations of a run are not known then; the failure is shown."""
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
    checking(tmp_path, budget=2).run()
    told = capsys.readouterr().err
    line = "fnop: looking for the smallest schedule that violates total\n"
    assert (line in told) is not is_terminal
    assert ("shrinking total" in told) is is_terminal
    checking(tmp_path, budget=1, quiet=True).run()
    assert capsys.readouterr().err == ""


# ------------------------------------------------------------------------- the time


def stuck() -> None:
    while True:  # without holding a core that other tests need
        threading.Event().wait(0.005)


def stubborn() -> None:
    """Take the alarm for an error of its own, once."""
    with suppress(BaseException):
        stuck()
    stuck()


def slow_case(act: Callable[[], object]) -> Case:
    """An operator whose handler does not come to an end."""
    registry = Registry()

    @facade.on.create("xs.example.com", registry=registry)
    def made(**_: Any) -> None:
        act()

    script = (apply(OBJECT),)
    return Case(Program(registry.handlers, Settings()), (CRD,), script, name="create")


def restless() -> Case:
    """An operator with a rival that changes its Secret whenever it has changed."""
    registry = Registry()

    @facade.on.create("xs.example.com", registry=registry)
    async def made(name: str, **_: Any) -> None:
        metadata = {"name": name}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
        await facade.adopt(secret)

    def rival(found: dict[str, Any]) -> dict[str, Any]:
        number = int((found["metadata"].get("labels") or {}).get("n", 0))
        return {"metadata": {"labels": {"n": str(number + 1)}}}

    case = slow_case(stuck)._replace(rivals={"secrets": rival})
    return case._replace(program=Program(registry.handlers, Settings()))


def circling() -> Case:
    """An operator that changes its object whenever that has changed."""
    registry = Registry()

    @facade.on.event("xs.example.com", registry=registry)
    def made(spec: Any, **_: Any) -> Any:
        return facade.patch(spec={"size": spec["size"] + 1})

    case = slow_case(stuck)
    return case._replace(program=Program(registry.handlers, Settings()), name="made")


# The alarm may ring in a callback of the collector, whose errors Python only prints.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "case",
    [slow_case(stuck), slow_case(stubborn), restless()],
    ids=["stuck", "stubborn", "restless"],
)
def test_the_time_ends_the_runs_without_faults(
    case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They would not end by themselves."""
    former = signal.getsignal(signal.SIGALRM)
    given = options_of_check(save=str(tmp_path / "none"), seconds=0.3)
    checking = Checking(["op.py"], given, [case])
    assert checking.run() == 3
    assert signal.getsignal(signal.SIGALRM) is former
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    told = capsys.readouterr()
    words = "the time was over before anything was tried"
    assert told.out.count(words) == len(PROPERTIES)
    assert "give more with --time" in told.out
    assert INTERRUPTED not in told.err


def test_a_trial_that_has_no_end_is_ended_by_the_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is the third run of the handler after the campaign is prepared."""
    ACTS.clear()
    limited = checking(tmp_path, seconds=patience(10))
    ACTS.append(stuck)
    limited.limits._end = SystemClock().now().mono + patience(0.2)
    assert limited.run() in (1, 3)
    ACTS.clear()
    told = capsys.readouterr()
    assert "beyond the limits (the time was over)" in told.out
    assert INTERRUPTED not in told.err


# The alarm may ring in a callback of the collector, whose errors Python only prints.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_handler_that_does_not_come_back_is_named(
    jobs: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """It goes in a circle at once, or in the processes that try faults."""
    ACTS.clear()
    monkeypatch.setattr("fnop.adapters.check.trials.PATIENCE_SECONDS", 0.05)
    seconds = patience(0.4 if jobs == 1 else 20)
    given = options_of_check(save=str(tmp_path), seconds=seconds, jobs=jobs)
    act = stuck if jobs == 1 else lambda: [each() for each in ACTS]
    limited = Checking(["op.py"], given, [slow_case(act)])
    ACTS.append(stuck)
    limited.limits._end = SystemClock().now().mono + patience(0.8)
    assert limited.run() == 3
    ACTS.clear()
    told = capfd.readouterr()
    assert "the operator has been blocked for " in told.err
    assert "test_check_limits.py:" in told.err


def test_it_is_told_what_has_ended_the_search(tmp_path: Path) -> None:
    assert checking(tmp_path).limits.cut == "budget"
    late = checking(tmp_path, seconds=100.0).limits
    assert late.cut == "budget"
    late._end = 0.0
    assert late.cut == "time"
    with late.interruptible():
        raise KeyboardInterrupt
    assert late.cut == "signal"


class Unhurried:
    """Stands for the runs under another hash seed, which are not done yet."""

    is_done = False

    @classmethod
    @contextmanager
    def begun(cls, arguments: object, at_once: int) -> Iterator[Unhurried]:
        yield cls()

    def go_on(self) -> None:
        """Begin nothing: there are no processes."""

    def differing(self, campaign: object) -> Iterator[NoReturn]:
        stuck()
        yield from ()


class Ended:
    """A process that ends when its output is requested."""

    returncode = 0

    def __init__(self, under_way: set[Any]) -> None:
        self._under_way = under_way
        under_way.add(self)

    def poll(self) -> int | None:
        return None if self in self._under_way else 0

    def communicate(self) -> tuple[bytes, None]:
        self._under_way.discard(self)
        return b"{}", None


@pytest.mark.parametrize("at_once", [1, 2, 9])
def test_so_many_processes_of_other_hash_seeds_run_at_once(
    at_once: int, tmp_path: Path
) -> None:
    campaign = checking(tmp_path).campaign
    assert campaign is not None
    under_way, seeds, most = set[Any](), list[str](), 0

    def begin(seed: str) -> Any:
        nonlocal most
        seeds.append(seed)
        found = Ended(under_way)
        most = max(most, len(under_way))
        return found

    other = OtherOrder(begin, at_once)
    assert len(seeds) == min(at_once, len(HASH_SEEDS))
    assert not other.is_done
    other.go_on()
    assert [*other.differing(campaign)] == []
    assert (other.is_done, most) == (True, min(at_once, len(HASH_SEEDS)))
    assert seeds == [*HASH_SEEDS]


def test_other_processes_are_not_awaited_when_the_time_is_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_run, "OtherOrder", Unhurried)
    limited = checking(tmp_path, seconds=patience(10), budget=2, only=("pure",))
    limited._is_own = True
    limited.limits._end = SystemClock().now().mono + patience(0.3)
    assert limited.run() == 0
    assert "hash seed has taken too long" in capsys.readouterr().err


# ---------------------------------------------------------------- what is not known


def report_of(folder: Path, case: Case, **options: Any) -> tuple[int, Report, str]:
    """The status of a check, its report, and the last lines that it has printed."""
    given = options_of_check(save=str(folder), quiet=True, **options)
    checked = Checking(["op.py"], given, [case])
    told: list[Report] = []
    real = checked._write

    def write(report: Report, shown: Any) -> None:
        told.append(report)
        real(report, shown)

    checked._write = write  # type: ignore[method-assign]
    status = checked.run()
    return status, told[0], "\n".join(as_lines(told[0], ()))


ENDLESS = "no fault was tried: the run without faults does not end"


def test_where_the_run_without_faults_has_no_end_it_is_told(tmp_path: Path) -> None:
    case = circling()
    status, report, text = report_of(tmp_path, case, only=("same_end", "heeds"))
    assert status == 3
    assert report.unsure["same_end"] == ENDLESS
    assert report.unsure["heeds"] == "the run without faults does not end"
    words = "no fault was tried in the script 'made': its run without faults does not"
    assert words in text
    assert report_of(tmp_path, case)[0] == 1, "it does not settle"


def test_only_what_a_run_without_faults_can_show_is_known_of_one(
    tmp_path: Path,
) -> None:
    case = slow_case(lambda: None)
    status, report, _ = report_of(tmp_path, case, budget=1, without=("idle",))
    assert status == 3
    known = [each for each in report.properties if report.verdict(each) == "pass"]
    assert {*known} == FAULTLESS - {"idle"} - OF_ADMISSION
    assert report.unsure["same_end"] == "no fault was tried: the budget was used up"
    assert report_of(tmp_path, case, budget=1, only=("heeds", "apart"))[0] == 0
    assert report_of(tmp_path, case, budget=4, without=("idle",))[0] == 0


def test_a_shard_without_schedules_is_no_failure(tmp_path: Path) -> None:
    case = slow_case(lambda: None)
    status, report, text = report_of(tmp_path, case, shard=(900, 1000))
    assert (status, report.tried) == (0, 0)
    assert {*report.unsure.values()} == {"this shard has no schedules"}
    assert "this shard has no schedules: there are fewer of them than shards" in text
    status, report, _ = report_of(tmp_path, case, shard=(1, 1000), without=("idle",))
    assert (status, report.tried) == (0, 1)
    assert report.unsure["same_end"] == "this shard has no schedule with a fault"
