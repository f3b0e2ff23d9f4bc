"""Recordings of operators that call functions and pass uids on."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from fnop import __version__
from fnop.core.values.body import Body
from fnop.interpreters.recording.model.excerpt import excerpt_of
from fnop.interpreters.recording.model.refs import Place
from fnop.interpreters.recording.model.world import Own, World, authors_of
from tests.commands import fnop
from tests.recorded_operators import MODELS, recorded_run, run_again
from tests.recordings import compressed, inflated

OPERATOR = """
import fnop

def price_of(name, token):
    raise ConnectionError("not in a test")

@fnop.on.create("fnopexamples")
@fnop.on.resume("fnopexamples")
async def made(name, uid, **_):
    price = await fnop.call(price_of, name=name, token=uid)
    return fnop.patch(status={"price": price})
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return recorded_run(tmp_path, OPERATOR, "op.py")


def test_a_file_of_another_name_is_the_same_operator(folder: Path) -> None:
    shutil.copy(folder / "op.py", folder / "new_op.py")
    same = fnop("replay", "run.fnop", "new_op.py", folder=folder)
    assert (same.status, same.err) == (0, "")
    assert same.out.startswith("identical: ")
    shadow = ("--shadow", "--fail-on", "any")
    told = fnop("replay", "run.fnop", "new_op.py", *shadow, folder=folder)
    assert told.status == 0, told.out
    assert told.out.startswith("0 of ")
    assert run_again(folder, "new_op.py", "new.fnop").status == 0
    assert fnop("diff", "run.fnop", "new.fnop", folder=folder).status == 0
    on = fnop("replay", "run.fnop", "new_op.py", "--from", "1", folder=folder)
    assert on.out.endswith("the end is as recorded\n"), on.out + on.err


def test_another_decision_is_told_with_the_codes_of_both(folder: Path) -> None:
    other = OPERATOR.replace('{"price": price}', '{"price": price + 1}')
    (folder / "op.py").write_text(other)
    found = fnop("replay", "run.fnop", "op.py", folder=folder)
    assert found.status == 1
    assert f"recorded (fnop {__version__}, code " in found.out
    told = fnop("replay", "run.fnop", "op.py", "--shadow", folder=folder)
    assert "\nthe code of made is another one\n" in told.out


def test_a_uid_is_no_secret_wherever_it_is_a_token(folder: Path) -> None:
    why = ("--object", "example-1", "--why", "status.price")
    found = fnop("replay", "run.fnop", *why, folder=folder)
    assert found.status == 0, found.err
    assert "it was shown fnopexamples" in found.out
    assert "from before the recording" not in found.out
    told = fnop("replay", "run.fnop", "op.py", "--shadow", folder=folder)
    assert "is not in the recording" not in told.out


def test_models_come_before_recorded_answers(folder: Path) -> None:
    (folder / "models.py").write_text(MODELS.replace("7", "777"))
    explore = ("--explore", "--budget", "4", "--calls", "models.py", "--from", "1")
    found = fnop("replay", "run.fnop", "op.py", *explore, folder=folder)
    assert found.status == 0, found.out + found.err
    # The object is recreated with another uid: the recorded answer is known for it.
    plain = fnop("replay", "run.fnop", "op.py", *explore[:3], folder=folder)
    assert plain.status == 0, plain.out + plain.err
    test = fnop("replay", "run.fnop", "op.py", "--at", "1", "--as-test", folder=folder)
    assert "'price': 7" in test.out
    assert "Recorded(" in test.out


# ---------------------------------------------------------------- files that are there


def test_a_recording_is_kept_when_another_one_is_made(folder: Path) -> None:
    before = (folder / "run.fnop").read_bytes()
    done = run_again(folder, "op.py")
    assert done.status == 0
    assert "the recording that was in run.fnop is in run.1.fnop now" in done.err
    assert (folder / "run.1.fnop").read_bytes() == before
    again = run_again(folder, "op.py")
    assert "is in run.2.fnop now" in again.err
    own = run_again(folder, "op.py", "op.py")
    assert (own.status, (folder / "op.py").read_text()) == (2, OPERATOR)
    assert "op.py is there, and is not a recording: give another name" in own.complaint


@pytest.mark.parametrize("option", ["--html", "--perfetto"])
def test_a_picture_does_not_replace_a_recording(folder: Path, option: str) -> None:
    before = (folder / "run.fnop").read_bytes()
    done = fnop("replay", "run.fnop", option, "run.fnop", folder=folder)
    assert (done.status, done.out) == (2, "")
    assert done.complaint == "fnop: run.fnop is a recording: give another name"
    assert (folder / "run.fnop").read_bytes() == before


# ------------------------------------------------------------------- what is the truth


def event(version: str, *managers: str, kind: str = "MODIFIED") -> dict[str, Any]:
    """The step in which a version is shown."""
    input = {"in": "WatchEvent", "stream": 1, "type": kind, "body": found(version)}
    fields = [{"manager": each, "time": version} for each in managers]
    input["body"]["metadata"]["managedFields"] = fields  # type: ignore[index]
    return {"input": input, "commands": [], "wall": 0.0, "mono": 0.0}


def found(version: str) -> dict[str, Any]:
    meta = {"name": "x", "namespace": "n", "uid": "u-1", "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


PLACE = Place("v1", "ConfigMap", "n", "x")


def test_an_answer_does_not_bring_back_an_older_version() -> None:
    outcome = {"is": "Applied", "object": found("5")}
    answer = {"in": "Answered", "id": 3, "outcome": outcome}
    world = World(Own())
    world.add(event("7", "alice"))
    assert world.add({"input": answer, "commands": [], "wall": 0.0, "mono": 0.0}) == []
    assert world.objects[PLACE]["metadata"]["resourceVersion"] == "7"


def changed(version: str, **values: str) -> dict[str, Any]:
    """The step that shows data, each of a manager; the entries have one time."""
    record = event(version)
    body = record["input"]["body"]
    body["data"] = values
    body["metadata"]["managedFields"] = [
        {"manager": each, "fieldsV1": {"f:data": {f"f:{each}": {}}}} for each in values
    ]
    return record


CONTROLLER = "kube-controller-manager"


@pytest.mark.parametrize(
    ("after", "authors"),
    [
        ({"me": "1", CONTROLLER: "2", "alice": "1"}, (CONTROLLER,)),
        ({"me": "2", CONTROLLER: "2", "alice": "1"}, ("me", CONTROLLER)),
        ({"me": "1", CONTROLLER: "1", "alice": "2"}, ("alice",)),
        ({"me": "1", CONTROLLER: "2", "alice": "2"}, (CONTROLLER, "alice")),
    ],
)
def test_who_gives_another_value_to_the_same_fields(
    after: dict[str, str], authors: tuple[str, ...]
) -> None:
    """The entries stay: controllers often write twice in a second."""
    world = World(Own(), "me")
    before = {"me": "1", CONTROLLER: "1", "alice": "1"}
    first, second = changed("5", **before), changed("7", **after)
    world.add(first)
    assert bool(world.add(second)) is ("alice" in authors)
    was, body = (Body(each["input"]["body"]) for each in (first, second))
    assert {*authors_of(was, body)} == {*authors}


def test_a_recording_without_steps_shows_nothing(folder: Path) -> None:
    header = inflated((folder / "run.fnop").read_bytes()).partition(b"\n")[0]
    (folder / "none.fnop").write_bytes(compressed(header + b"\n"))
    done = fnop("replay", "none.fnop", "op.py", folder=folder)
    assert (done.status, done.out) == (4, "")
    assert done.complaint.startswith("fnop: the recording holds no steps")


@pytest.mark.parametrize(
    ("managers", "is_foreign"),
    [
        (("me",), False),  # its answer was lost
        (("me", "kube-controller-manager"), False),
        (("alice",), True),
        (("me", "alice"), True),
    ],
)
def test_whose_change_a_version_is(managers: tuple[str, ...], is_foreign: bool) -> None:
    world = World(Own(), "me")
    world.add(event("5", "alice", kind="ADDED"))
    assert bool(world.add(event("7", *managers))) is is_foreign


def test_a_part_that_is_not_there_is_told() -> None:
    with pytest.raises(ValueError, match="becomes ready in none"):
        excerpt_of(lambda: iter([event("5")]))
