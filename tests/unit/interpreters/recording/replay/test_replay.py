"""Recordings and replays: content, differences, and operators that do not load."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from fnop.core.handlers.program.program import Program
from fnop.core.memory.observation import FormerValues, Seen
from fnop.core.memory.stored_state import Stored, read_stored, write_stored
from fnop.interpreters.recording.redaction import TOKEN, Redaction
from tests.commands import Done, fnop
from tests.recorded_examples import EXAMPLES, record
from tests.recordings import compressed, inflated, text_of
from tests.simulations import DEFINITION, ROOT, example


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of 05-handlers."""
    return record("05-handlers", tmp_path_factory.mktemp("recording"))


HANDLERS = ROOT / "examples" / "05-handlers"


DAMAGED, CUT_OFF, UNSUPPORTED = 3, 4, 5


def replay(recording: Path, operator: Path, folder: Path) -> Done:
    return fnop("replay", recording, operator, folder=folder)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_recorded_example_replays_identically(name: str, tmp_path: Path) -> None:
    operator = ROOT / "examples" / name / "example.py"
    recording = record(name, tmp_path)
    done = replay(recording, operator, tmp_path)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("identical: ")
    shadow = fnop("replay", recording, operator, "--shadow", folder=tmp_path)
    assert (shadow.status, shadow.err) == (0, "")
    assert re.match(r"0 of [1-9]\d* recorded decisions change\n", shadow.out)


def test_a_recording_changes_nothing(tmp_path: Path) -> None:
    run = ("run", HANDLERS / "example.py", "--simulate", HANDLERS / "object.yaml")
    plain = fnop(*run, folder=tmp_path)
    recorded = fnop(*run, "--record", "run.fnop", folder=tmp_path)
    assert (plain.out, plain.err) == (recorded.out, recorded.err)


def test_two_recordings_of_one_run_differ_in_nothing(tmp_path: Path) -> None:
    first, second = (
        inflated(record("05-handlers", tmp_path).read_bytes()) for _ in range(2)
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
    text = text_of((tmp_path / "run.fnop").read_bytes())
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
    assert done.status == 4, "the second Secret held what the first one held"
    assert "make" in done.out


# ------------------------------------------------------------ changed handlers


# What is changed in the example, and what the replay has to name: the handler, the
# effect, and both values.
CHANGES = {
    "another result": (
        'return {"field": spec["field"]}',
        'return {"field": "another"}',
        ("the decision about default/example-1, of handler create_fn", '"another"'),
    ),
    "another patch": (
        'patch.status["seen"] = reason',
        'patch.status["seen"] = "never"',
        ("the decision about default/example-1", "known", '"create"', '"never"'),
    ),
    "one effect less": (
        'patch.status["seen"] = reason',
        "pass",
        # What writes nothing has succeeded at once.
        ("Say about default/example-1", "nothing", "create handler known succeeded"),
    ),
    "another log line": (
        'logger.info("the operator starts")',
        'logger.info("hello")',
        ("Say", "handler started", '"the operator starts"', '"hello"'),
    ),
    "a failure": (
        'return {"field": spec["field"]}',
        'raise ValueError("changed my mind")',
        # Its success was reported with its write.
        ("Say about default/example-1", "create_fn", "nothing", "changed my mind"),
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


# -------------------------------------------------------------- other handlers

FIRST = """
import fnop

@fnop.on.create("fnopexamples")
def first(**_): ...
"""
SECOND = FIRST.replace("first", "second")
OTHERS = {
    "another order": (
        ("second.py", "first.py"),
        "fnop: the handlers are declared in another order than in the recording "
        "(first, second, and now second, first); name the files in its order\n",
    ),
    "one less": (
        ("first.py",),
        "fnop: handlers of the recording are missing now: second\n",
    ),
    "another one": (
        ("first.py", "third.py"),
        "fnop: handlers of the recording are missing now: second; "
        "handlers are not in the recording: third\n",
    ),
    "the same": (("first.py", "second.py"), ""),
}


@pytest.mark.parametrize("case", OTHERS)
def test_who_replays_other_handlers_is_told(case: str, tmp_path: Path) -> None:
    for name, text in {
        "first.py": FIRST,
        "second.py": SECOND,
        "third.py": SECOND.replace("second", "third"),
    }.items():
        (tmp_path / name).write_text(text)
    command = ("run", "first.py", "second.py", "--record", "r.fnop")
    objects = ("--simulate", HANDLERS / "object.yaml")
    assert fnop(*command, *objects, folder=tmp_path).status == 0
    files, sentence = OTHERS[case]
    done = fnop("replay", "r.fnop", *files, folder=tmp_path)
    assert done.err == sentence
    assert done.status == (1 if sentence else 0)
    assert done.out.startswith("different at step " if sentence else "identical: ")


OWNING = """
import os
import fnop

@fnop.reconcile("fnopexamples", owns=["secrets"])
def keep(name, **_):
    meta = {"name": name + os.environ.get("SUFFIX", "")}
    return fnop.desired([{"apiVersion": "v1", "kind": "Secret", "metadata": meta}])
"""


def test_who_replays_with_other_children_or_in_another_environment_is_told(
    tmp_path: Path,
) -> None:
    (tmp_path / "owning.py").write_text(OWNING)
    objects = ("--simulate", HANDLERS / "object.yaml")
    command = ("run", "owning.py", "--record", "r.fnop")
    assert fnop(*command, *objects, folder=tmp_path).status == 0
    more = OWNING.replace('["secrets"]', '["secrets", "pods"]')
    (tmp_path / "more.py").write_text(more)
    done = fnop("replay", "r.fnop", "more.py", folder=tmp_path)
    told = "fnop: keep owns secrets, pods now, and secrets in the recording\n"
    assert (done.status, done.err) == (1, told)
    other = {"SUFFIX": "-x"}
    done = fnop("replay", "r.fnop", "owning.py", folder=tmp_path, variables=other)
    assert done.status == 1
    assert done.err.startswith("fnop: the code of keep is the same, so what it takes")
    assert "the environment's variables" in done.err


@pytest.mark.parametrize("text", ["1 / 0", "def f(:", "import no_such_module"])
def test_an_operator_that_cannot_be_imported_is_no_difference(
    text: str, recording: Path, tmp_path: Path
) -> None:
    (tmp_path / "broken.py").write_text(text)
    for more in ((), ("--shadow",), ("--from", "3")):
        done = fnop("replay", recording, "broken.py", *more, folder=tmp_path)
        assert (done.status, done.out) == (2, "")
        assert done.err.startswith("fnop: ")


# ------------------------------------------------------------- damaged files


def damaged(recording: Path, folder: Path, content: bytes) -> Done:
    path = folder / "damaged.fnop"
    path.write_bytes(content)
    done = replay(path, HANDLERS / "example.py", folder)
    assert done.status in (DAMAGED, CUT_OFF, UNSUPPORTED)
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
    lines = inflated(recording.read_bytes()).splitlines(keepends=True)
    done = replay(
        damaged_file(tmp_path, compressed(b"".join(lines[:-2]))),
        HANDLERS / "example.py",
        tmp_path,
    )
    # The present part is right; the file cannot show what is missing.
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
    "some gzip": compressed(b"hello\n"),
    "some JSON": compressed(b'{"a": 1}\n'),
    "a list": compressed(b"[]\n"),
    "another format": compressed(b'{"format": 99, "fnop": "9.0"}\n'),
    "a bad record": compressed(
        b'{"format": 2, "fnop": "0.1", "operator": "default", "namespaces": null,'
        b'"selector": ""}\n'
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
    recorded = text_of((tmp_path / "run.fnop").read_bytes())
    assert '"password"' in recorded
    assert encoded not in recorded
    assert password.decode() not in recorded
    replayed = replay(tmp_path / "run.fnop", operator, tmp_path)
    assert (replayed.status, replayed.err) == (0, ""), replayed.out


# -------------------------------------------- secrets that are words, and their copies

COPIES = (ROOT / "tests" / "cluster" / "operators" / "copying.py").read_text()

DECIDES = """
import base64, fnop

@fnop.on.create("fnopexamples")
async def created(namespace):
    secret = await fnop.get("secrets", name="s", namespace=namespace)
    mode = base64.b64decode(secret["data"]["mode"]).decode()
    await fnop.patch(labels={"mode": "on" if mode == "true" else "off"})
"""


def run_with_secret(
    text: str, folder: Path, *options: str, **values: str
) -> tuple[Path, str]:
    """The operator's file, and the text of a recording of its run."""
    data = {
        key: base64.b64encode(each.encode()).decode() for key, each in values.items()
    }
    metadata = {"name": "s", "namespace": "default"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
    objects, operator = folder / "objects.yaml", folder / "secrets_operator.py"
    found = example(field=values.get("field", "x"))
    objects.write_text(yaml.safe_dump_all([DEFINITION, secret, found]))
    operator.write_text(text)
    done = fnop(
        *("run", operator, "--simulate", objects, "--record", "run.fnop"),
        *options,
        folder=folder,
    )
    assert done.status == 0, done
    return operator, text_of((folder / "run.fnop").read_bytes())


WORDS = ("default", "a", "true", "1", "example-1", "fnop.dev/default", "FnopExample")


@pytest.mark.parametrize("password", [*WORDS, "hC7!kq/+Zt9$wMv2#pL"])
def test_copies_of_a_secret_replay_identically_whatever_it_is(
    password: str, tmp_path: Path
) -> None:
    operator, text = run_with_secret(COPIES, tmp_path, password=password)
    assert '"finalizers":["fnop.dev/default"]' in text
    assert '"name":"example-1","namespace":"default"' in text
    assert (password in text) == (password in WORDS)
    done = replay(tmp_path / "run.fnop", operator, tmp_path)
    assert (done.status, done.err) == (0, ""), done.out


def test_a_change_beside_a_secret_is_shown(tmp_path: Path) -> None:
    operator, _ = run_with_secret(COPIES, tmp_path, password="default")
    # Of another length: Python distinguishes sources by their second and their size.
    operator.write_text(COPIES.replace("example.com", "example.org.uk"))
    done = replay(tmp_path / "run.fnop", operator, tmp_path)
    assert done.status == 4, "it may come from the secret"
    assert "example.org" in done.out


def test_a_secret_that_decides_cannot_be_compared(tmp_path: Path) -> None:
    """Nothing in the recording shows its value, and no difference is claimed."""
    operator, _ = run_with_secret(DECIDES, tmp_path, mode="true")
    done = replay(tmp_path / "run.fnop", operator, tmp_path)
    assert (done.status, done.err) == (4, "")
    first, *rest = done.out.splitlines()
    assert first.startswith("cannot be compared at step ")
    assert first.endswith(
        "of handler created: its handler was given a secret, and the recording holds a "
        "token instead; --shadow asks all others"
    )
    assert any('"off"' in each for each in rest)


def test_fields_that_are_listed_are_redacted(tmp_path: Path) -> None:
    options = ("--redact", "spec.field")
    operator, text = run_with_secret(
        COPIES, tmp_path, *options, password="x", field="a blue moon over Paris"
    )
    assert "a blue moon over Paris" not in text
    assert '"field":"redacted-' in text
    done = replay(tmp_path / "run.fnop", operator, tmp_path)
    assert (done.status, done.err) == (0, ""), done.out


# Fields of an object, and whether their values are in its recording.
FIELDS = [
    ({"password": "a"}, False),
    ({"apiKey": "word"}, False),
    ({"api_key": "word"}, False),
    ({"clientSecret": "word"}, False),
    ({"token": "word"}, False),
    ({"tokens": ["word", "other"]}, False),
    ({"secretAccessKey": "word"}, False),
    ({"env": [{"name": "DB_PASSWORD", "value": "word"}]}, False),
    ({"credentials": "user:word?"}, False),
    ({"secret": "9f86d081884c7d659a2feaa0c55ad015"}, False),
    ({"secret": "my-credentials"}, True),  # a Secret's name
    ({"passwordSecretRef": {"name": "my-credentials", "key": "password"}}, True),
    ({"secretName": "my-credentials"}, True),
    ({"tokenExpirationSeconds": 600}, True),
    ({"imagePullSecrets": [{"name": "my-credentials"}]}, True),
    ({"user": "admin"}, True),
]


@pytest.mark.parametrize(("spec", "is_shown"), FIELDS)
def test_fields_are_secrets_by_their_names(
    spec: dict[str, Any], is_shown: bool
) -> None:
    body = {**example(), "spec": spec}
    text = orjson.dumps(scrubbed_body(body)["spec"]).decode()
    assert (text == orjson.dumps(spec).decode()) == is_shown
    assert is_shown or '"word' not in text


def scrubbed_body(*bodies: dict[str, Any]) -> Any:
    """The last of some objects, as a recording has it."""
    redaction = Redaction(b"k" * 16, Program(()))
    records = [
        {
            "input": {"in": "WatchEvent", "stream": 1, "type": "ADDED", "body": body},
            "commands": [],
        }
        for body in bodies
    ]
    *_, found = redaction.scrubbed(records)
    return found["input"]["body"]


PASSWORD = "correct horse battery staple"


def test_what_is_kept_of_a_secret_in_annotations_is_redacted() -> None:
    """By kubectl, and as the state: plain, and compressed."""
    encoded = base64.b64encode(PASSWORD.encode()).decode()
    data = {"password": encoded, "short": "YQ=="}
    kept = {"kind": "Secret", "data": data}
    filler = {f"key-{each}": "x" * 500 for each in range(20)}
    seen = Seen({"": "1:" + 20 * "0"}, FormerValues({"": {"data": data, **filler}}))
    annotations = {
        "kubectl.kubernetes.io/last-applied-configuration": json.dumps(kept) + "\n",
        "fnop.dev/default": write_stored(Stored(seen), "u"),
        "fnop.dev/other": write_stored(
            Stored(Seen(seen.digests, FormerValues({"": {"data": data}}))), "u"
        ),
    }
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "uid": "u", "annotations": annotations},
    }
    found = scrubbed_body(secret)["metadata"]
    assert (found["name"], found["uid"]) == ("s", "u")
    for key in ("fnop.dev/default", "fnop.dev/other"):
        stored = read_stored(found["annotations"][key], "u")
        assert isinstance(stored, Stored)
        assert stored.seen is not None
        assert stored.seen.values is not None
        was = stored.seen.values.parsed[""]
        assert was["data"].keys() == data.keys()
        assert all(TOKEN.fullmatch(each) for each in was["data"].values())
    applied = found["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    assert applied.endswith("\n")
    assert json.loads(applied)["data"].keys() == data.keys()
    assert PASSWORD not in applied
    assert encoded not in applied


def test_the_parts_of_a_secret_are_hidden_where_they_stand_alone() -> None:
    """A password in a URL, a line of a key."""
    url = "postgres://user:9f86d081884c7d65@db.default.svc/x?sslmode=require"
    encoded = base64.b64encode(url.encode()).decode()
    secret = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"url": encoded}}
    spec = {
        "args": ["--key=9f86d081884c7d65"],
        "host": "db.default.svc",
        "user": "user",
    }
    found = scrubbed_body(secret, {**example(), "spec": spec})["spec"]
    assert "9f86d081884c7d65" not in json.dumps(found)
    assert (found["host"], found["user"]) == ("db.default.svc", "user")


def test_a_listing_shows_secrets_without_their_kind() -> None:
    redaction = Redaction(b"k" * 16, Program(()))
    listing = {"do": "Perform", "id": 7, "resource": "secrets.v1."}
    effect = {"is": "List", "resource": "secrets"}
    items = [{"metadata": {"name": "s"}, "data": {"key": "YQ=="}}]
    records: list[dict[str, Any]] = [
        {"input": {"in": "AlarmRang"}, "commands": [{**listing, "effect": effect}]},
        {
            "input": {
                "in": "Answered",
                "id": 7,
                "outcome": {"is": "Answer", "value": items},
            },
            "commands": [],
        },
    ]
    *_, last = redaction.scrubbed(records)
    (found,) = last["input"]["outcome"]["value"]
    assert found["metadata"] == {"name": "s"}
    assert TOKEN.fullmatch(found["data"]["key"])


def test_a_patch_of_a_secret_shows_nothing_of_it() -> None:
    redaction = Redaction(b"k" * 16, Program(()))
    operations = [
        {"op": "replace", "path": "/data/key", "value": "YQ=="},
        {"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/a"},
    ]
    patch = {"is": "Patch", "json": operations, "merge": {"stringData": {"key": "abc"}}}
    command = {"do": "Perform", "id": 7, "resource": "secrets.v1.", "effect": patch}
    record: dict[str, Any] = {"input": {"in": "AlarmRang"}, "commands": [command]}
    (scrubbed,) = redaction.scrubbed([record])
    (found,) = scrubbed["commands"]
    first, second = found["effect"]["json"]
    assert TOKEN.fullmatch(first["value"])
    assert second == operations[1]
    assert TOKEN.fullmatch(found["effect"]["merge"]["stringData"]["key"])


def test_a_secret_that_is_read_late_is_hidden_in_what_was_observed_before(
    tmp_path: Path,
) -> None:
    body = {**example(), "status": {"seen": PASSWORD}}
    encoded = base64.b64encode(PASSWORD.encode()).decode()
    secret = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"key": encoded}}
    redaction = Redaction(b"k" * 16, Program(()))
    records = [
        {
            "input": {"in": "WatchEvent", "stream": 1, "type": "ADDED", "body": each},
            "commands": [],
        }
        for each in (body, secret)
    ]
    first, _ = redaction.scrubbed(records)
    assert PASSWORD.encode() not in orjson.dumps(first)
