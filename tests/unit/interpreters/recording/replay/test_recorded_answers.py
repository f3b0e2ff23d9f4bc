"""Recorded answers of called functions, used again when a run goes on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fnop.effects import Answer, Call
from fnop.interpreters.recording.model.calls import Recorded, Replies, part_of
from tests.commands import Done, fnop, pytest_of
from tests.recorded_operators import OBJECT

POLLING = """
import fnop

def size_of(name):
    raise ConnectionError("not in a test")

@fnop.timer("fnopexamples", interval=4)
async def measure(name, **_):
    return {"size": await fnop.call(size_of, name=name)}
"""
GROWING = """
SIZES = iter(range(10, 1000, 10))

def size_of(name):
    return next(SIZES)
"""
FIVE = {
    "a function": "def size_of(name):\n    return 5\n",
    "by a name": "def five(name):\n    return 5\nCALLS = {'size_of': five}\n",
    "by both": "def five(name):\n    return 5\nCALLS = {'poll:size_of': five}\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An operator that polls what grows, and a recording of eighty seconds."""
    folder = tmp_path_factory.mktemp("polling")
    (folder / "poll.py").write_text(POLLING)
    (folder / "models.py").write_text(GROWING)
    simulated = ("--simulate", OBJECT, "--calls", "models.py", "--for", "80s")
    run = ("run", "poll.py", *simulated, "--record", "run.fnop")
    assert fnop(*run, folder=folder).status == 0
    return folder


def gone_on(folder: Path, step: int, *options: str, operator: str = "poll.py") -> Done:
    asked = ("--from", str(step), *options)
    return fnop("replay", "run.fnop", operator, *asked, folder=folder)


def answers_at(folder: Path, step: int) -> int:
    """The number of answers that the operator had got by a step."""
    told = fnop("replay", "run.fnop", "--every-line", folder=folder).out
    steps = (int(each) for each in re.findall(r"#(\d+) .* ends with Return", told))
    return sum(each <= step for each in steps)


# ----------------------------------------------------------------- which model counts


@pytest.mark.parametrize("form", FIVE)
def test_a_model_counts_before_the_recorded_answers(folder: Path, form: str) -> None:
    (folder / "five.py").write_text(FIVE[form])
    found = gone_on(folder, 30, "--calls", "five.py")
    assert (found.status, found.err) == (1, "")
    (line,) = (each for each in found.out.splitlines() if "otherwise" in each)
    assert "status.measure.size is 5 instead of 210" in line


def test_a_model_that_answers_nothing_is_told(folder: Path) -> None:
    (folder / "typo.py").write_text("def sise_of(name):\n    return 5\n")
    found = gone_on(folder, 30, "--calls", "typo.py")
    assert found.complaint == (
        "fnop: no call was answered by the model sise_of (did you mean size_of?)"
    )


# ----------------------------------------------------------------- in order, and time


@pytest.mark.parametrize("step", [6, 30, 60])
def test_a_poll_goes_on_where_it_was(folder: Path, step: int) -> None:
    found = gone_on(folder, step)
    assert (found.status, found.err) == (0, ""), found.out
    assert found.out.endswith("the end is as recorded\n")
    # Each of the later values is written once, at its time.
    writes = re.findall(r"^00:(\d\d):(\d\d).*Patch .*measure.size", found.out, re.M)
    assert len(writes) == 21 - answers_at(folder, step)
    last = int(writes[-1][0]) * 60 + int(writes[-1][1])
    assert 76 <= last <= 84


def test_who_asks_less_often_is_answered_by_the_time(folder: Path) -> None:
    (folder / "seldom.py").write_text(POLLING.replace("interval=4", "interval=12"))
    found = gone_on(folder, 30, operator="seldom.py")
    assert found.out.endswith("the end is as recorded\n"), found.out


def of(value: int, wall: float, name: str = "a", step: int = 0) -> Recorded:
    call = Call("m:f", {"name": name})
    return Recorded(call, Answer(value), step or round(wall), wall)


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ((0, 4, 8, 12, 16), (1, 1, 2, 3, 3)),  # as often, and once more
        ((0, 1, 2, 3, 4, 5, 7, 8), (1, 1, 1, 1, 1, 1, 2, 2)),  # never early
        ((0, 9, 100), (1, 2, 3)),  # late: what is past is left out
        ((50,), (3,)),
    ],
)
def test_an_answer_is_given_at_about_its_time(
    asked: tuple[float, ...], given: tuple[int, ...]
) -> None:
    replies = Replies([of(1, 4), of(2, 8), of(3, 12)])
    found = [replies.answer(of(0, 0).call, wall) for wall in asked]
    assert found == [Answer(each) for each in given]
    assert replies.until == 16


def test_several_at_one_time_are_given_in_their_order() -> None:
    replies = Replies([of(1, 4.0), of(2, 4.1), of(3, 60), of(7, 4.0, "b")])
    found = [replies.answer(of(0, 0).call, 4.0) for _ in range(4)]
    assert found == [Answer(each) for each in (1, 2, 2, 2)]
    assert replies.answer(of(0, 0, "c").call, 4.0) is None


def test_a_part_has_the_answers_after_its_beginning() -> None:
    told = [of(1, 4), of(2, 8), of(3, 12), of(7, 1, "b"), of(9, 20, "c")]

    def part(step: int, until: int | None = None) -> set[int]:
        outcomes = (each.outcome for each in part_of(told, step, until))
        return {each.value for each in outcomes if isinstance(each, Answer)}

    assert part(4) == {2, 3, 7, 9}
    assert part(4, 8) == {2, 7, 9}
    assert part(30) == {3, 7, 9}


# -------------------------------------------------------------- in a test, in a check


def test_a_test_has_the_answers_in_their_order(folder: Path) -> None:
    test = fnop("replay", "run.fnop", "--at", "30", "--as-test", folder=folder)
    begun = 10 * (answers_at(folder, 30) + 1)
    first = test.out.index(f"({{'name': 'example-1'}}, {begun}),")
    assert first < test.out.index("({'name': 'example-1'}, 210),")
    assert "'example-1'}, 10)," not in test.out
    (folder / "test_incident.py").write_text(test.out)
    done = pytest_of("test_incident.py", folder=folder)
    assert done.status == 0, done.out
    # A mistake in the operator is found by it.
    (folder / "poll.py").write_text(POLLING.replace('{"size"', '{"length"'))
    done = pytest_of("test_incident.py", folder=folder)
    (folder / "poll.py").write_text(POLLING)
    assert done.status == 1, done.out


def test_faults_are_tried_with_the_last_answers(folder: Path) -> None:
    """Else each delay by a fault would make another end."""
    explore = ("--explore", "--budget", "6", "--save", "failures")
    found = gone_on(folder, 30, *explore)
    assert found.status in (0, 4), found.out + found.err  # 4: a small budget
    assert "FAIL" not in found.out


def test_equal_answers_are_folded(tmp_path: Path) -> None:
    (tmp_path / "poll.py").write_text(POLLING)
    (tmp_path / "models.py").write_text("def size_of(name):\n    return 7\n")
    simulated = ("--simulate", OBJECT, "--calls", "models.py", "--for", "20s")
    run = ("run", "poll.py", *simulated, "--record", "run.fnop")
    assert fnop(*run, folder=tmp_path).status == 0
    test = fnop("replay", "run.fnop", "--at", "4", "--as-test", folder=tmp_path)
    assert "*[({'name': 'example-1'}, 7)] * 6," in test.out
    assert "sim.wait" not in test.out
    (tmp_path / "test_incident.py").write_text(test.out)
    assert pytest_of("test_incident.py", folder=tmp_path).status == 0


# ------------------------------------------------------------------ concealed arguments

ACCOUNTS = """
import fnop

def account_of(name, password):
    raise ConnectionError("not in a test")

@fnop.reconcile("fnopexamples", owns="secrets")
async def keep(name, children, **_):
    secret = children["secrets"].get(name)
    if secret is not None:
        return fnop.desired(fnop.UNCHANGED)
    password = {password}
    account = await fnop.call(account_of, name=name, password=password)
    data = {{"password": password, "account": account["id"]}}
    meta = {{"name": name, "labels": {{"account": account["id"]}}}}
    return fnop.desired({{"apiVersion": "v1", "kind": "Secret", "metadata": meta,
                          "stringData": data}})
"""
DRAWN = "(await fnop.random(15, secret=True)).hex()"
MODEL = """
def account_of(name, password):
    return {"id": f"account-{name}"}
"""


@pytest.fixture(scope="module", params=[DRAWN, f"'Pw-' + {DRAWN}"])
def drawing(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """An operator that gives a password that it draws to a call, and a recording."""
    folder = tmp_path_factory.mktemp("drawing")
    (folder / "poll.py").write_text(ACCOUNTS.format(password=request.param))
    (folder / "models.py").write_text(MODEL)
    simulated = ("--simulate", OBJECT, "--calls", "models.py", "--for", "10s")
    run = ("run", "poll.py", *simulated, "--record", "run.fnop")
    assert fnop(*run, folder=folder).status == 0
    return folder


def test_a_call_is_answered_though_its_password_is_drawn_anew(drawing: Path) -> None:
    done = gone_on(drawing, 1)
    assert (done.status, "not simulated" in done.out) == (0, False), done.out


def test_so_is_that_of_a_test_made_of_the_recording(drawing: Path) -> None:
    options = ("run.fnop", "poll.py", "--at", "1", "--as-test")
    made = fnop("replay", *options, folder=drawing)
    assert made.status == 0, made.err
    (drawing / "test_incident.py").write_text(made.out)
    assert "redacted-" in made.out
    done = pytest_of("test_incident.py", folder=drawing)
    assert done.status == 0, done.out


def test_what_a_recording_conceals_may_be_any_text() -> None:
    token = "redacted-0123456789abcdef01234567"
    call = Call("m:f", {"name": "a", "password": f"Pw-{token}"})
    replies = Replies([Recorded(call, Answer(1), 1, 1.0)])
    assert replies.answer(Call("m:f", {"name": "a", "password": "x"}), 1) == Answer(1)
    for arguments in ({"name": "b", "password": "x"}, {"name": "a", "password": 1}):
        assert replies.answer(Call("m:f", arguments), 1) is None
