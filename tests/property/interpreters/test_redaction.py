"""Redaction: what recordings hold of secrets, over drawn operators and values.

A Secret may hold anything: an ordinary word, one letter, the name of an object, or a
key.  Whatever it is, the recording of an operator replays identically with that
operator; nothing that names anything is changed; and no long secret is in its bytes.
"""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example as case, given, settings, strategies as st

import fnop
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import Command
from fnop.core.seam.inputs import Input
from fnop.core.seam.wire import command_to_wire, input_to_wire
from fnop.core.values.now import Now
from fnop.effects.values import canonical
from fnop.interpreters.recording.format.recorder import Recorder, header_of
from fnop.interpreters.recording.redaction import TOKEN, Redaction, is_telling
from fnop.interpreters.recording.replay.replay import Replayed, replay_file
from tests.recordings import records_in, text_of
from tests.simulations import Scenario, example
from tests.thorough import examples

KIND = "fnopexamples"
SECRETS = ("s", "t")


def encoded(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def clear(secret: Any, key: str = "key") -> str:
    return base64.b64decode(secret["data"][key]).decode()


def secret_of(name: str, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "default"},
        "data": {key: encoded(value) for key, value in data.items()},
    }


def config(called: str, **data: str) -> dict[str, Any]:
    metadata = {"name": called, "namespace": "default"}
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    return {**kind, "metadata": metadata, "data": data}


# ------------------------------------------------------------------- behaviours


def copies(on: Registry, value: str) -> None:
    """In clear text, encoded, and within other texts."""

    @fnop.on.create(KIND, registry=on, id="copies")
    @fnop.on.update(KIND, registry=on, id="copies")
    async def handler(name: str, **_: Any) -> Any:
        secret = await fnop.get("secrets", name="s")
        if secret is None:
            raise fnop.TemporaryError("no secret", delay=3)
        plain = clear(secret)
        data = {
            "plain": plain,
            "same": secret["data"]["key"],
            "name": plain,
            "basic": "Basic " + encoded(f"user:{plain}"),
            "json": json.dumps({"key": plain, "of": name}),
            "quoted": quote(plain, safe=""),
            "form": quote_plus(plain),
            "shown": repr([plain]),
            "upper": plain.encode().hex().upper(),
            "page": f"<b>{html.escape(plain)}</b>",
            "text": f"{name} has {plain}, as the Secret",
        }
        await fnop.apply(config(f"{name}-copies", **data))
        await fnop.event("Copied", f"{plain} is {len(plain)} long")
        return {"copied": plain}


def hashes(on: Registry, value: str) -> None:
    """As who restarts pods whenever a Secret changes."""

    @fnop.on.create(KIND, registry=on, id="hashes")
    @fnop.on.update(KIND, registry=on, id="hashes")
    async def handler(name: str, annotations: Any, logger: Any, **_: Any) -> Any:
        secret = await fnop.get("secrets", name="s")
        if secret is None:
            return None
        text = json.dumps(dict(secret["data"]), sort_keys=True)
        found = hashlib.sha256(text.encode()).hexdigest()
        if annotations.get("example.com/sum") == found:
            return {"changed": "no"}
        await fnop.patch(annotations={"example.com/sum": found})
        logger.info(f"the sum is {found} now")
        return {"changed": "yes", "length": len(clear(secret))}


def makes(on: Registry, value: str) -> None:
    @fnop.on.create(KIND, registry=on, id="makes")
    async def handler(name: str, **_: Any) -> Any:
        child = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": f"{name}-1"},
        }
        await fnop.adopt({**child, "stringData": {"key": value}})
        found = await fnop.get("secrets", name=f"{name}-1")
        other = {**child, "metadata": {"name": f"{name}-2"}}
        await fnop.adopt({**other, "data": {"key": encoded(value)}})
        return {"same": found is not None and found["data"]["key"] == encoded(value)}


def draws(on: Registry, value: str) -> None:
    @fnop.on.create(KIND, registry=on, id="draws")
    async def handler(name: str, **_: Any) -> Any:
        drawn = await fnop.random(18, secret=True)
        child = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": f"{name}-d"},
        }
        password = base64.b64encode(drawn).decode()
        await fnop.adopt({**child, "stringData": {"key": password}})
        sum_ = hashlib.sha256(drawn).hexdigest()
        await fnop.patch(annotations={"example.com/drawn": sum_})
        return {"hint": f"it begins with {password}"}


def watches(on: Registry, value: str) -> None:
    @fnop.on.create("secrets", registry=on, id="watches")
    @fnop.on.update("secrets", registry=on, id="watches")
    def handler(body: Any, old: Any, diff: Any, logger: Any, **_: Any) -> Any:
        fields = sorted("/".join(each.field) for each in diff)
        keys = ".".join(sorted(body.get("data") or {}))
        logger.info(f"{fields} changed, it was {old}")
        return fnop.patch(annotations={"example.com/keys": keys})


def follows(on: Registry, value: str) -> None:
    @fnop.on.field("secrets", field="data.key", registry=on, id="follows")
    def handler(old: Any, new: Any, **_: Any) -> Any:
        return fnop.patch(
            annotations={"example.com/had": "no" if old is None else "yes"}
        )


def fails(on: Registry, value: str) -> None:
    @fnop.on.create(KIND, registry=on, id="fails", retries=2, backoff=1)
    async def handler(**_: Any) -> None:
        secret = await fnop.get("secrets", name="t")
        raise ValueError(f"cannot use {clear(secret) if secret else None!r}")


def lists(on: Registry, value: str) -> None:
    @fnop.on.create(KIND, registry=on, id="lists")
    async def handler(**_: Any) -> Any:
        found = await fnop.list("secrets")
        values = [each["data"].get("key") for each in found if "data" in each]
        return {"number": len(found), "different": len(set(values))}


def keeps(on: Registry, value: str) -> None:
    """Made as text, and later applied as it is stored."""

    @fnop.reconcile(KIND, owns=["secrets"], registry=on, id="keeps")
    async def handler(name: str, children: Any, **_: Any) -> Any:
        old = children["secrets"].get(f"{name}-k")
        drawn = await fnop.random(18, secret=True)
        texts = {"key": value, "drawn": drawn.hex(), "name": name}
        body = {"data": dict(old["data"])} if old else {"stringData": texts}
        metadata = {"name": f"{name}-k"}
        kind = {"apiVersion": "v1", "kind": "Secret"}
        return fnop.desired({**kind, "metadata": metadata, **body})


def packs(on: Registry, value: str) -> None:
    """Among bytes that are not text."""

    @fnop.on.create(KIND, registry=on, id="packs")
    async def handler(name: str, **_: Any) -> Any:
        secret = await fnop.get("secrets", name="s")
        raw = clear(secret).encode() if secret else b""
        packed = base64.b64encode(b"\x00\xff" + raw + b"\xfe").decode()
        body = {"metadata": {"name": f"{name}-p"}, "binaryData": {"p": packed}}
        await fnop.apply({"apiVersion": "v1", "kind": "ConfigMap", **body})
        return {"packed": packed}


def reads_spec(on: Registry, value: str) -> None:
    """A password in the spec, with what is remembered of it."""

    @fnop.on.create(KIND, registry=on, id="spec")
    @fnop.on.update(KIND, registry=on, id="spec")
    def handler(spec: Any, name: str, old: Any, **_: Any) -> Any:
        before = (old or {}).get("spec", {}).get("field")
        found = spec.get("field")
        return [
            fnop.patch(status={"seen": found, "before": before}),
            fnop.apply(
                {
                    **secret_of(f"{name}-spec"),
                    "stringData": {"password": str(found), "of": name},
                }
            ),
        ]


def bystander(on: Registry, value: str) -> None:
    """It has nothing to do with secrets, but with names, and a finalizer."""

    @fnop.on.create(KIND, registry=on, id="bystander")
    @fnop.on.delete(KIND, registry=on, id="bystander")
    def handler(name: str, namespace: str | None, reason: str, **_: Any) -> Any:
        return [
            fnop.patch(status={"by": f"{namespace}/{name}", "true": reason}),
            fnop.event("Told", f"{namespace}/{name}: {reason}"),
        ]


Behaviour = Callable[[Registry, str], None]
BEHAVIOURS: tuple[Behaviour, ...] = (
    copies,
    hashes,
    makes,
    draws,
    watches,
    follows,
    fails,
    lists,
    packs,
    reads_spec,
    bystander,
)


def handlers_of(behaviours: Sequence[Behaviour], value: str) -> tuple[Handler, ...]:
    registry = Registry()
    for each in behaviours:
        each(registry, value)
    return registry.handlers


# ------------------------------------------------------------------------ values

SHORT = ("default", "a", "e", "true", "1", "key", "one", "Secret", "v1", "fnop.dev")
NAMES = (
    *(
        "fnop.dev/default",
        "default/one",
        "configmaps.v1.",
        "FnopExample",
        "example.com/sum",
    ),
    *("succeeded", "kopf.zalando.org/KopfFinalizerMarker", "one-copies", "metadata"),
)
LONG = (
    "correct horse battery staple",
    "9f86d081884c7d659a2feaa0c55ad015",
    'a "quoted" \\ k3y of 28 signs\n',
    "ключ от квартиры, где деньги лежат",
    "Zm9vYmFyYmF6cXV4cXV1eA==",
    "hC7!kq/+Zt9$wMv2#pL",
    "hC7!kq/+Zt9'wMv2#pL",  # repr() quotes it in another way
)
values = st.sampled_from((*SHORT, *NAMES, *LONG)) | st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")),
    min_size=1,
    max_size=40,
)

actions = st.one_of(
    st.tuples(st.just("create"), st.sampled_from(("one", "two")), values),
    st.tuples(st.just("edit"), st.sampled_from(("one", "two")), values),
    st.tuples(st.just("delete"), st.sampled_from(("one", "two")), st.just("")),
    st.tuples(st.just("set"), st.sampled_from(SECRETS), values),
    st.tuples(st.just("wait"), st.just(""), st.just("")),
    st.tuples(st.just("restart"), st.just(""), st.just("")),
)
Script = Sequence[tuple[str, str, str]]


class Raw:
    """The content of a recording if nothing were redacted."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def observe(self, now: Now, input: Input, commands: tuple[Command, ...]) -> None:
        wires = [command_to_wire(each) for each in commands]
        found = {"input": input_to_wire(input), "commands": wires}
        self.records.append(json.loads(canonical(found)))


class Told:
    """A story, and a recording of each process of the operator in it."""

    def __init__(self, behaviours: Sequence[Behaviour], value: str) -> None:
        self.program = Program(handlers_of(behaviours, value))
        self.files: list[io.BytesIO] = []
        self.raws: list[Raw] = []
        self.recorder = self._recorder()
        self.run = Scenario(self.program.handlers, observers=[self])
        self.values = {value}

    def _recorder(self) -> Recorder:
        self.files.append(io.BytesIO())
        self.raws.append(Raw())
        header = header_of(self.program, "test")
        redaction = Redaction(b"k" * 16, self.program, ["spec.field"])
        return Recorder(self.files[-1], header, redaction)

    def observe(self, now: Now, input: Input, commands: tuple[Command, ...]) -> None:
        self.raws[-1].observe(now, input, commands)
        self.recorder.observe(now, input, commands)

    def act(self, verb: str, name: str, value: str) -> None:
        kind = "secrets" if verb == "set" else KIND
        there = bool(name) and self.run.get(kind, name) is not None
        self.values.add(value)
        match verb:
            case "create" if not there:
                self.run.apply(example(name, field=value))
            case "edit" if there:
                self.run.edit(KIND, name, spec={"field": value})
            case "delete" if there:
                self.run.delete(KIND, name)
            case "set" if there:
                self.run.edit("secrets", name, data={"key": encoded(value)})
            case "set":
                self.run.apply(secret_of(name, key=value, mode="default"))
            case "restart":
                self.finish()
                self.run.crash()
                self.recorder = self._recorder()
            case _:
                pass
        self.run.settle(seconds=30 if verb == "wait" else 1)

    def finish(self) -> None:
        self.recorder.finish()
        assert self.recorder.problem is None

    def replays(self) -> list[Replayed]:
        """Of each process, with a program that knows nothing of the run."""
        handlers = self.program.handlers
        return [replay_file(file, Program(handlers)) for file in self.files]

    @property
    def records(self) -> list[list[dict[str, Any]]]:
        return [records_in(file.getvalue()) for file in self.files]


def told(behaviours: Sequence[Behaviour], value: str, script: Script) -> Told:
    found = Told(behaviours, value)
    for action in script:
        found.act(*action)
    assert found.run.settle(seconds=200), found.run.lines[-5:]
    found.finish()
    return found


begins = [("set", "s", "default"), ("create", "one", "true")]
operators = st.lists(st.sampled_from(BEHAVIOURS), min_size=1, max_size=4, unique=True)
scripts = st.builds(
    lambda value, rest: [("set", "s", value), ("create", "one", value), *rest],
    values,
    st.lists(actions, max_size=8),
)


@settings(max_examples=examples(8), deadline=None)
@given(operators, values, scripts)
@case([copies], "default", [("set", "s", LONG[-1]), ("create", "one", "")])
# What has to be escaped in the JSON text of the state.
@case([reads_spec, makes], LONG[2], [("set", "s", LONG[2]), ("create", "one", LONG[2])])
def test_whatever_secrets_hold_an_unchanged_operator_replays_identically(
    behaviours: Sequence[Behaviour], value: str, script: Script
) -> None:
    story = told(behaviours, value, script)
    for position, found in enumerate(story.replays()):
        assert not found.truncated
        if position and found.difference is not None:
            # What an earlier process has stored may be made of the secrets themselves.
            assert found.difference.doubt is not None
        else:
            assert found.difference is None


@settings(max_examples=examples(8), deadline=None)
@given(values, scripts)
def test_what_is_made_as_text_may_be_applied_as_it_is_stored(
    value: str, script: Script
) -> None:
    """By itself: with handlers for updates of the same kind it would not settle.

    Not across a restart, for that would compare what an earlier process has stored.
    """
    story = told([keeps], value, [each for each in script if each[0] != "restart"])
    (found,) = story.replays()
    assert found.difference is None


# Fields with the type of a thing, and its place, at any position.
NAMING = (
    "name",
    "namespace",
    "uid",
    "finalizers",
    "resourceVersion",
    "ownerReferences",
)


def naming(value: Any, path: tuple[str, ...] = ()) -> Any:
    """A record without what it says of anything: its keys, and what names objects."""
    if isinstance(value, dict):
        if value.get("op") and str(value.get("path")).startswith(
            "/metadata/finalizers"
        ):
            return value
        return {
            key: item
            if (path[-1:] == ("metadata",) and key in NAMING)
            or ("metadata" in value and key in ("kind", "apiVersion"))
            or (
                path in ((), ("input",))
                and key in ("do", "in", "name", "resource", "handler")
            )
            else naming(item, (*path, key))
            for key, item in value.items()
            if key != "redacted"
        }
    if isinstance(value, list):
        return [naming(item, path if path != ("commands",) else ()) for item in value]
    return None if isinstance(value, str) else value


@settings(max_examples=examples(8), deadline=None)
@given(operators, values, scripts)
def test_keys_names_kinds_uids_and_finalizers_are_never_redacted(
    behaviours: Sequence[Behaviour], value: str, script: Script
) -> None:
    story = told(behaviours, value, script)
    for raw, recorded in zip(story.raws, story.records, strict=True):
        assert len(raw.records) == len(recorded)
        for was, is_ in zip(raw.records, recorded, strict=True):
            kept = {key: is_[key] for key in ("input", "commands")}
            assert naming(kept) == naming(was)


def forms(value: str) -> list[str]:
    """The encodings in which operators write a value, with any surroundings."""
    raw = value.encode()
    inner = [
        base64.b64encode(b"\0" * offset + raw)[
            4 if offset else 0 : (offset + len(raw)) // 3 * 4
        ]
        for offset in range(3)
    ]
    once = json.dumps(value, ensure_ascii=False)[1:-1]
    return [
        value,
        once,
        json.dumps(once, ensure_ascii=False)[1:-1],
        json.dumps(value)[1:-1],
        raw.hex(),
        raw.hex().upper(),
        html.escape(value),
        quote(value, safe=""),
        quote_plus(value),
        repr(value)[1:-1],
        *(each.decode() for each in inner),
        *(each.decode().translate(str.maketrans("+/", "-_")) for each in inner),
    ]


@settings(max_examples=examples(8), deadline=None)
@given(operators, st.sampled_from(LONG), scripts)
def test_no_long_secret_is_in_the_bytes_of_a_recording(
    behaviours: Sequence[Behaviour], value: str, script: Script
) -> None:
    script = [each for each in script if each[0] != "restart"]
    story = told(
        list({*behaviours, copies, makes}), value, [*script, ("set", "s", value)]
    )
    secrets = {each for each in story.values if is_telling(each)}
    assert value in secrets
    for file in story.files:
        line = text_of(file.getvalue())
        for secret in secrets:
            for form in forms(secret):
                assert form not in line
    drawn = [
        clear(each)
        for each in story.run.objects("secrets")
        if each["metadata"]["name"].endswith("-d")
    ]
    for each in drawn:
        assert all(each not in text_of(f.getvalue()) for f in story.files)


breaks = st.sampled_from(("\n", "\r\n", "\n    ", "\\n", "\\r\\n", "\\\\n  "))
KEY = "\n".join(
    (
        "-----BEGIN PRIVATE KEY-----",
        *(encoded(hashlib.sha384(bytes([each])).hexdigest()[:48]) for each in range(5)),
        "-----END PRIVATE KEY-----\n",
    )
)
longest = st.sampled_from(
    (KEY, LONG[1] * 3, "S3cr3tPl4nt-9xQ7_vLmZ2/k+W8&t<" * 2, LONG[0] + " and others")
)
before = st.sampled_from(("", "x", "bad key: ", "prefix" * 9))


@settings(max_examples=examples(100), deadline=None)
@given(longest, before, st.integers(5, 90), breaks, st.booleans())
def test_no_window_of_a_secret_stays_where_it_is_broken_into_lines(
    secret: str, start: str, width: int, line_break: str, is_encoded: bool
) -> None:
    text = encoded(start + secret) if is_encoded else start + secret
    lines = [text[at : at + width] for at in range(0, len(text), width)]
    record: dict[str, Any] = {
        "input": {
            "in": "WatchEvent",
            "stream": 1,
            "type": "ADDED",
            "body": secret_of("s", key=secret),
        },
        "commands": [{"do": "Say", "level": "info", "message": line_break.join(lines)}],
    }
    found = scrubbed(Redaction(b"k" * 16, Program(())), record)
    message = found["commands"][0]["message"]
    for each in (line_break, "\n", "\r", " "):
        message = message.replace(each, "")
    for hidden in (secret, encoded(secret)):
        hidden = "".join(hidden.split())
        windows = {hidden[at : at + 12] for at in range(len(hidden) - 11)}
        assert [each for each in windows if each in message] == []


def written_otherwise(value: str) -> dict[str, str]:
    raw = value.encode()
    json_text = json.dumps({"p": value})
    return {
        "percent": "".join(f"%{each:02X}" for each in raw),
        "escaped": "".join(f"\\u{ord(each):04x}" for each in value),
        "colons": raw.hex(":"),
        "base32": base64.b32encode(raw).decode(),
        "utf-16": base64.b64encode(value.encode("utf-16-le")).decode(),
        "json in json in json": json.dumps(json.dumps(json_text)),
    }


@pytest.mark.parametrize("form", written_otherwise(""))
@pytest.mark.parametrize("value", [LONG[4], 'a"bC7!kq/+Zt9$wMv2#pL'])
def test_other_forms_of_a_secret_are_found(form: str, value: str) -> None:
    text = written_otherwise(value)[form]
    record: dict[str, Any] = {
        "input": {
            "in": "WatchEvent",
            "stream": 1,
            "type": "ADDED",
            "body": secret_of("s", key=value),
        },
        "commands": [{"do": "Say", "level": "info", "message": f"it is {text}."}],
    }
    found = scrubbed(Redaction(b"k" * 16, Program(())), record)
    message = found["commands"][0]["message"]
    assert message.startswith("it is ")
    windows = {text[at : at + 24] for at in range(len(text) - 30)} - {text[:24]}
    assert [each for each in windows if each in message] == []


def scrubbed(redaction: Redaction, record: dict[str, Any]) -> Any:
    (found,) = redaction.scrubbed([record])
    return found


@settings(max_examples=examples(15), deadline=None)
@given(values, values)
def test_equal_values_have_equal_tokens_and_others_have_others(
    one: str, other: str
) -> None:
    program = Program(())
    redaction = Redaction(b"k" * 16, program)
    body = secret_of("s", one=one, two=one, three=other)
    record = {
        "input": {"in": "WatchEvent", "stream": 1, "type": "ADDED", "body": body},
        "commands": [],
    }
    data = scrubbed(redaction, record)["input"]["body"]["data"]
    assert data["one"] == data["two"]
    assert (data["three"] == data["one"]) == (one == other)
    for each in data.values():
        assert TOKEN.fullmatch(each)
        assert TOKEN.fullmatch(base64.b64decode(each).decode())
    key = Redaction(b"l" * 16, program)
    assert scrubbed(key, record)["input"]["body"]["data"]["one"] != data["one"]


@pytest.mark.parametrize("value", [*SHORT, *NAMES[:5]])
def test_an_ordinary_word_stays_where_it_is_no_secret(value: str) -> None:
    redaction = Redaction(b"k" * 16, Program(()))
    record: dict[str, Any] = {
        "input": {
            "in": "WatchEvent",
            "stream": 1,
            "type": "ADDED",
            "body": secret_of("s", key=value),
        },
        "commands": [{"do": "Say", "level": "info", "message": f"hello {value}"}],
    }
    found = scrubbed(redaction, record)
    assert found["commands"] == record["commands"]
    assert value not in json.dumps(found["input"]["body"]["data"]).replace("key", "")


class Thorough(Redaction):
    """Looks for the places of secrets in all records, whatever clues they have."""

    def is_hinted(self, text: bytes) -> bool:
        return True


fields = st.sampled_from(
    (
        *("password", "dbPasswords", "PWD", "passphrase", "api-key", "apiKeys"),
        *("secret_access_key", "Authorization", "clientSecret", "credentials"),
        *("name", "value", "key", "seen", "note", "token", "secretName"),
    )
)
words = st.sampled_from(("DB_PASSWORD", "hunter2", "9f86d081884c7d65", "", "a,b"))
pairs = st.tuples(fields | words, words)
places = (
    st.builds(lambda name, held: {name: held}, fields, words | st.lists(words))
    | pairs.map(lambda pair: {"name": pair[0], "value": pair[1]})
    | pairs.map(lambda pair: {"value": pair[1], "name": pair[0]})
    | words.map(lambda word: {"kind": "Secret", "data": {"a": word}})
    | words.map(lambda word: {"kind": "SecretList", "items": [{"data": {"a": word}}]})
)
wrappers: tuple[Callable[[Any], Any], ...] = (
    lambda value: {"note": value},
    lambda value: [{"a": 1}, value],
    lambda value: {"note": json.dumps(value)},
    lambda value: {"note": json.dumps(value, indent=2)},
    lambda value: {"note": json.dumps(value, separators=(" ,", " :\n "))},
)


def wrapped(value: Any, layers: Sequence[Callable[[Any], Any]]) -> Any:
    for wrap in layers:
        value = wrap(value)
    return value


@settings(max_examples=examples(200), deadline=None)
@given(places, st.lists(st.sampled_from(wrappers), max_size=3))
def test_no_place_of_a_secret_is_without_a_clue(
    place: Any, layers: Sequence[Callable[[Any], Any]]
) -> None:
    record = {
        "input": {
            "in": "WatchEvent",
            "stream": 1,
            "type": "ADDED",
            "body": {"spec": wrapped(place, layers)},
        },
        "commands": [],
    }
    program = Program(())
    thorough = scrubbed(Thorough(b"k" * 16, program), record)
    assert scrubbed(Redaction(b"k" * 16, program), record) == thorough
