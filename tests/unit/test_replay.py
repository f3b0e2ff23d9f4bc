"""Recordings: what is in them, what a replay finds, and damaged ones."""

from __future__ import annotations

import base64
import gzip
from pathlib import Path

import pytest
import yaml

from tests.commands import Done, fnop
from tests.example_scenarios import STORIES
from tests.simulations import DEFINITION, ROOT, example

EXAMPLES = sorted(path.parent.name for path in ROOT.glob("examples/*/example.py"))
HANDLERS = ROOT / "examples" / "05-handlers"

MEANT_TO_FAIL = {story.example for story in STORIES if story.failing}


def record(example_name: str, folder: Path) -> Path:
    """The recording of an example's simulated run."""
    case = ROOT / "examples" / example_name
    done = fnop(
        *("run", case / "example.py", "--simulate", case / "object.yaml"),
        *("--record", "run.fnop"),
        folder=folder,
    )
    assert done.status == (1 if example_name in MEANT_TO_FAIL else 0), done
    return folder / "run.fnop"


def replay(recording: Path, operator: Path, folder: Path) -> Done:
    return fnop("replay", recording, operator, folder=folder)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of 05-handlers."""
    return record("05-handlers", tmp_path_factory.mktemp("recording"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_recorded_example_replays_identically(name: str, tmp_path: Path) -> None:
    operator = ROOT / "examples" / name / "example.py"
    done = replay(record(name, tmp_path), operator, tmp_path)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("identical: ")


def test_a_recording_changes_nothing(tmp_path: Path) -> None:
    run = ("run", HANDLERS / "example.py", "--simulate", HANDLERS / "object.yaml")
    plain = fnop(*run, folder=tmp_path)
    recorded = fnop(*run, "--record", "run.fnop", folder=tmp_path)
    assert (plain.out, plain.err) == (recorded.out, recorded.err)


def test_two_recordings_of_one_run_differ_in_nothing(tmp_path: Path) -> None:
    first, second = (
        gzip.decompress(record("05-handlers", tmp_path).read_bytes()) for _ in range(2)
    )
    assert first == second


MAKER = """
import fnop

@fnop.on.create("fnopexamples")
def make():
    secret = {"apiVersion": "v1", "kind": "Secret", "data": {"password": "c2VzYW1l"}}
    return fnop.adopt(secret)
"""


def test_the_run_of_an_operator_that_makes_secrets_replays_identically(
    tmp_path: Path,
) -> None:
    operator, objects = tmp_path / "maker.py", tmp_path / "object.yaml"
    operator.write_text(MAKER)
    objects.write_text(yaml.safe_dump_all([DEFINITION, example()]))
    run = ("run", operator, "--simulate", objects, "--record", "run.fnop")
    assert fnop(*run, folder=tmp_path).status == 0
    done = replay(tmp_path / "run.fnop", operator, tmp_path)
    assert (done.status, done.err) == (0, ""), done.out


DRAWER = """
import base64
import fnop

@fnop.on.create("fnopexamples")
async def make():
    drawn = await fnop.random(24, secret=True)
    again = await fnop.random(24)
    password = base64.b64encode(drawn).decode()
    for name in ("one", "two"):
        secret = {"apiVersion": "v1", "kind": "Secret", "data": {"password": password}}
        await fnop.adopt({**secret, "metadata": {"name": name}})
    return {"public": again.hex(), "hint": f"it ends with {drawn.hex()}"}
"""


def test_drawn_secrets_are_in_no_recording_and_replay_identically(
    tmp_path: Path,
) -> None:
    operator, objects = tmp_path / "drawer.py", tmp_path / "object.yaml"
    operator.write_text(DRAWER)
    objects.write_text(yaml.safe_dump_all([DEFINITION, example()]))
    run = ("run", operator, "--simulate", objects, "--record", "run.fnop")
    made = fnop(*run, folder=tmp_path)
    assert made.status == 0
    found = {each["metadata"]["name"]: each for each in yaml.safe_load_all(made.out)}
    password = found["one"]["data"]["password"]
    drawn = base64.b64decode(password)
    status = found["example-1"]["status"]["make"]
    assert status["hint"] == f"it ends with {drawn.hex()}"
    text = gzip.decompress((tmp_path / "run.fnop").read_bytes()).decode()
    assert password not in text
    assert drawn.hex() not in text
    assert status["public"] in text, "what is no secret is there"
    done = replay(tmp_path / "run.fnop", operator, tmp_path)
    assert (done.status, done.err) == (0, ""), done.out


def test_where_a_recording_has_one_secret_a_replay_has_one(tmp_path: Path) -> None:
    operator, objects = tmp_path / "drawer.py", tmp_path / "object.yaml"
    operator.write_text(DRAWER)
    objects.write_text(yaml.safe_dump_all([DEFINITION, example()]))
    run = ("run", operator, "--simulate", objects, "--record", "run.fnop")
    assert fnop(*run, folder=tmp_path).status == 0
    another = '{"password": password if name == "one" else "c2VzYW1l"}'
    operator.write_text(DRAWER.replace('{"password": password}', another))
    done = replay(tmp_path / "run.fnop", operator, tmp_path)
    assert done.status == 1, "the second Secret held what the first one held"
    assert "make" in done.out


# ------------------------------------------------------------ changed handlers


# What is changed in the example, and what the replay has to name: the handler, the
# effect, and both values.
CHANGES = {
    "another result": (
        'return {"field": spec["field"]}',
        'return {"field": "another"}',
        ("Patch about default/example-1", "create_fn", '"value"', '"another"'),
    ),
    "another patch": (
        'patch.status["seen"] = reason',
        'patch.status["seen"] = "never"',
        ("Patch about default/example-1", "known", '"create"', '"never"'),
    ),
    "one effect less": (
        'patch.status["seen"] = reason',
        "pass",
        ("Patch about default/example-1", "known", '"create"', "nothing"),
    ),
    "another log line": (
        'logger.info("the operator starts")',
        'logger.info("hello")',
        ("Say", "handler started", '"the operator starts"', '"hello"'),
    ),
    "a failure": (
        'return {"field": spec["field"]}',
        'raise ValueError("changed my mind")',
        ("create_fn", "create handler create_fn succeeded", "changed my mind"),
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_changed_handler_is_shown(case: str, recording: Path, tmp_path: Path) -> None:
    was, is_, words = CHANGES[case]
    text = (HANDLERS / "example.py").read_text()
    assert was in text
    changed = tmp_path / "example.py"
    changed.write_text(text.replace(was, is_))
    done = replay(recording, changed, tmp_path)
    assert (done.status, done.err) == (1, "")
    assert done.out.startswith("different at step ")
    assert "recorded (fnop " in done.out
    assert "now (fnop " in done.out
    for word in words:
        assert word in done.out


# ------------------------------------------------------------- damaged files


def damaged(recording: Path, folder: Path, content: bytes) -> Done:
    path = folder / "damaged.fnop"
    path.write_bytes(content)
    done = replay(path, HANDLERS / "example.py", folder)
    assert done.status == 1
    assert "Traceback" not in done.err
    assert done.complaint.startswith("fnop: ")
    return done


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_truncated_recording(share: float, recording: Path, tmp_path: Path) -> None:
    whole = recording.read_bytes()
    done = damaged(recording, tmp_path, whole[: int(len(whole) * share)])
    assert "cut off" in done.complaint


def test_a_recording_cut_between_blocks_lacks_its_end(
    recording: Path, tmp_path: Path
) -> None:
    lines = gzip.decompress(recording.read_bytes()).splitlines(keepends=True)
    done = replay(
        damaged_file(tmp_path, gzip.compress(b"".join(lines[:-2]))),
        HANDLERS / "example.py",
        tmp_path,
    )
    # What is there is right; what is not, nobody can tell from the file.
    assert (done.status, done.out) == (0, f"identical: {len(lines) - 3} steps\n")


def damaged_file(folder: Path, content: bytes) -> Path:
    path = folder / "shortened.fnop"
    path.write_bytes(content)
    return path


def test_a_corrupt_recording(recording: Path, tmp_path: Path) -> None:
    whole = bytearray(recording.read_bytes())
    middle = len(whole) // 2
    whole[middle : middle + 8] = b"\xff" * 8
    done = damaged(recording, tmp_path, bytes(whole))
    assert "corrupt" in done.complaint or "cannot be understood" in done.complaint


STRANGERS = {
    "empty": b"",
    "text": b"apiVersion: v1\n",
    "some gzip": gzip.compress(b"hello\n"),
    "some JSON": gzip.compress(b'{"a": 1}\n'),
    "a list": gzip.compress(b"[]\n"),
    "another format": gzip.compress(b'{"format": 99, "fnop": "9.0"}\n'),
    "a bad record": gzip.compress(
        b'{"format": 1, "fnop": "0.1", "operator": "default", "namespaces": null}\n'
        b'{"wall": "soon"}\n'
    ),
}


@pytest.mark.parametrize("case", STRANGERS)
def test_a_file_that_is_no_recording(
    case: str, recording: Path, tmp_path: Path
) -> None:
    done = damaged(recording, tmp_path, STRANGERS[case])
    assert done.out == ""
    assert "recording" in done.complaint


# -------------------------------------------------------------------- secrets


READS_A_SECRET = """
import fnop

@fnop.on.create("fnopexamples")
async def created(namespace):
    secret = await fnop.get("secrets", name="s", namespace=namespace)
    await fnop.patch(secret, metadata={"labels": {"read": "yes"}})
    return {"keys": sorted(secret["data"])}
"""

WATCHES_SECRETS = """
import fnop

@fnop.on.update("secrets")
@fnop.on.create("secrets")
def created(body, old, new, diff):
    return fnop.patch(annotations={"keys": ",".join(sorted(body["data"]))})
"""


@pytest.mark.parametrize("text", [READS_A_SECRET, WATCHES_SECRETS])
def test_secrets_are_not_recorded(text: str, tmp_path: Path) -> None:
    password = b"correct horse battery staple"
    encoded = base64.b64encode(password).decode()
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "default"},
        "data": {"password": encoded},
    }
    objects = tmp_path / "objects.yaml"
    objects.write_text(yaml.safe_dump_all([DEFINITION, secret, example()]))
    operator = tmp_path / "secrets_operator.py"
    operator.write_text(text)
    done = fnop(
        *("run", operator, "--simulate", objects, "--record", "run.fnop"),
        folder=tmp_path,
    )
    assert done.status == 0, done
    assert "password" in done.out
    recorded = gzip.decompress((tmp_path / "run.fnop").read_bytes())
    assert b'"password"' in recorded
    assert encoded.encode() not in recorded
    assert password not in recorded
    replayed = replay(tmp_path / "run.fnop", operator, tmp_path)
    assert (replayed.status, replayed.err) == (0, ""), replayed.out
