"""Replays and tests of recordings whose results are made of secrets."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.commands import Done, fnop, pytest_of
from tests.recorded_operators import OBJECT

# A password is drawn; its digest is in a ConfigMap, and in the status.
DRAWING = """
import base64, hashlib, fnop

def child(kind, name, data):
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": kind, "metadata": meta, "data": data}

@fnop.reconcile("fnopexamples", owns=["secrets", "configmaps"])
async def provision(name, children, spec, **_):
    old = children["secrets"].get(f"{name}-mq")
    if old is None:
        password = (await fnop.random(18, secret=True)).hex()
    else:
        password = base64.b64decode(old["data"]["password"]).decode()
    data = {"password": base64.b64encode(password.encode()).decode()}
    digest = hashlib.sha256(password.encode()).hexdigest()
    conf = {"digest": digest, "level": "info", "of": hashlib.sha1(b"x").hexdigest()}
    return fnop.desired(
        [child("Secret", f"{name}-mq", data), child("ConfigMap", f"{name}-conf", conf)],
        status={"line": f"sha256:{digest}"},
    )
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drawing")
    (folder / "operator.py").write_text(DRAWING)
    simulated = ("--simulate", OBJECT, "--record", "run.fnop")
    assert fnop("run", "operator.py", *simulated, folder=folder).status == 0
    return folder


@pytest.fixture
def folder(recorded: Path, tmp_path: Path) -> Path:
    return shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)


def gone_on(folder: Path, operator: str = DRAWING) -> Done:
    """From a step on at which the Secret is there, with random bytes in its place."""
    (folder / "operator.py").write_text(operator)
    told = fnop("replay", "run.fnop", folder=folder).out
    ends = next(e for e in told.splitlines() if "ends, all is as desired" in e)
    step = ends.partition("#")[2].partition(" ")[0]
    return fnop("replay", "run.fnop", "operator.py", "--from", step, folder=folder)


def test_what_is_made_of_a_secret_is_not_compared(folder: Path) -> None:
    found = gone_on(folder)
    assert (found.status, found.err) == (0, ""), found.out
    *_, line, end = found.out.splitlines()
    assert line == (
        "not compared, made of a secret or of randomness: 2 fields: "
        "configmaps/example-1-conf data.digest, "
        "fnopexamples.fnop.dev/example-1 status.line"
    )
    assert end == "the end is as recorded"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"info"', '"debug"', 'data.level is "debug" instead of "info"'),
        ('"digest": digest, ', "", "data.digest is absent instead of"),
        ('"digest": digest', '"digest": "none"', 'data.digest is "none" instead of'),
        ('b"x"', 'b"y"', "data.of is"),
    ],
)
def test_what_is_otherwise_besides_is_told(
    folder: Path, old: str, new: str, told: str
) -> None:
    found = gone_on(folder, DRAWING.replace(old, new))
    assert found.status == 1
    (line,) = (e for e in found.out.splitlines() if "otherwise than recorded" in e)
    assert told in line


def test_what_changes_by_itself_is_no_secret(folder: Path) -> None:
    """A model that counts answers otherwise in the same run, too."""
    counting = DRAWING.replace('"info"', "str(next(NUMBERS))").replace(
        "def child", "NUMBERS = iter(range(99, 10**6))\n\ndef child"
    )
    found = gone_on(folder, counting)
    assert found.status == 1
    assert "data.level is" in found.out


@pytest.mark.parametrize("step", ["1", "8"])
def test_a_test_does_not_expect_what_is_made_of_a_secret(
    folder: Path, step: str
) -> None:
    test = fnop("replay", "run.fnop", "--at", step, "--as-test", folder=folder)
    assert test.err == (
        # A digest that is always the same looks like one of a secret.
        "fnop: left out of EXPECTED: 3 texts made of a secret: another one in each "
        "run\n"
    )
    expected = test.out.partition("EXPECTED =")[2]
    assert "'level': 'info'" in expected
    assert "sha256:" not in expected
    (folder / "test_incident.py").write_text(test.out)
    done = pytest_of("test_incident.py", folder=folder)
    assert done.status == 0, done.out


# The secret is foreign: a token in the recording.
READING = """
import base64, hashlib, fnop

@fnop.on.create("fnopexamples")
@fnop.on.resume("fnopexamples")
async def read(spec, **_):
    found = await fnop.get("secrets", name="theirs")
    password = base64.b64decode(found["data"]["password"])
    digest = hashlib.sha256(password).hexdigest()
    return fnop.patch(status={"digest": digest, "size": spec.get("size", 1)})
"""
THEIRS = """
apiVersion: v1
kind: Secret
metadata: {name: theirs}
data: {password: S2o4I2ZHMnBRdyF6WDk=}
"""


def test_what_is_made_of_a_token_is_not_compared(tmp_path: Path) -> None:
    (tmp_path / "operator.py").write_text(READING)
    (tmp_path / "theirs.yaml").write_text(THEIRS)
    simulated = ("--simulate", OBJECT, "theirs.yaml", "--record", "run.fnop")
    assert fnop("run", "operator.py", *simulated, folder=tmp_path).status == 0
    told = fnop("replay", "run.fnop", folder=tmp_path).out
    ends = next(each for each in told.splitlines() if "ends with" in each)
    step = ends.partition("#")[2].partition(" ")[0]
    at = ("--from", step)
    same = fnop("replay", "run.fnop", "operator.py", *at, folder=tmp_path)
    assert (same.status, same.err) == (0, ""), same.out
    assert "fnopexamples.fnop.dev/example-1 status.digest\n" in same.out
    (tmp_path / "operator.py").write_text(READING.replace('"size", 1', '"size", 2'))
    other = fnop("replay", "run.fnop", "operator.py", *at, folder=tmp_path)
    assert other.status == 1
    assert "status.size is 2 instead of 1" in other.out


# The password goes outside, too: the recorded answer is to a call with it.
CALLING = DRAWING.replace(
    "def child",
    """
def declare(name, password):
    raise ConnectionError("not in a test")

def child""",
).replace(
    "    data = {",
    "    port = await fnop.call(declare, name=name, password=password)\n    data = {",
)


def test_calls_with_a_secret_are_answered_in_both_runs(tmp_path: Path) -> None:
    (tmp_path / "operator.py").write_text(CALLING.replace('"info"', "str(port)"))
    (tmp_path / "models.py").write_text("def declare(**_):\n    return 5672\n")
    simulated = ("--simulate", OBJECT, "--calls", "models.py", "--record", "run.fnop")
    assert fnop("run", "operator.py", *simulated, folder=tmp_path).status == 0
    found = gone_on(tmp_path, (tmp_path / "operator.py").read_text())
    assert (found.status, found.err) == (0, ""), found.out
    assert "2 fields: configmaps/example-1-conf data.digest, " in found.out
