"""Recordings of operators that create, copy and encode Secrets replay identically."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.program.program import Program
from fnop.interpreters.recording.format.recorder import Recorder, header_of
from fnop.interpreters.recording.redaction import TOKEN, Redaction
from fnop.interpreters.recording.replay.replay import Replayed, replay_file
from tests.recordings import TRACED, records_in, text_of
from tests.simulations import Scenario, example

KIND = "fnopexamples"
PASSWORD = "hC7!kq/+Zt9$wMv2#pL"


def encoded(value: bytes | str) -> str:
    raw = value.encode() if isinstance(value, str) else value
    return base64.b64encode(raw).decode()


PLANTED = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "planted", "namespace": "default"},
    "data": {"key": encoded(PASSWORD)},
}


def recorded(handlers: tuple[Handler, ...]) -> tuple[Scenario, bytes]:
    """A run with a Secret and an object, and its recording."""
    program, file = Program(handlers, TRACED), io.BytesIO()
    redaction = Redaction(b"k" * 16, program)
    recorder = Recorder(file, header_of(program, "test"), redaction)
    sim = Scenario(handlers, settings=TRACED, observers=[recorder])
    sim.apply(PLANTED, example())
    sim.settle()
    recorder.finish()
    assert recorder.problem is None
    return sim, file.getvalue()


def replayed(handlers: tuple[Handler, ...], data: bytes) -> Replayed:
    return replay_file(io.BytesIO(data), Program(handlers, TRACED))


# ------------------------------------------------------------- tokens made of a uid


def order(token: str, password: str) -> str:
    return "ordered"


def test_a_token_that_is_made_of_a_uid_is_no_secret() -> None:
    registry = fnop.Registry()

    @fnop.on.create(KIND, registry=registry)
    async def provision(uid: str, **_: Any) -> Any:
        await fnop.call(order, token=f"{uid}/disk-1", password=f"{uid}/{PASSWORD}")

    program, file = Program(registry.handlers, TRACED), io.BytesIO()
    recorder = Recorder(file, header_of(program, "test"), Redaction(b"k" * 16, program))
    sim = Scenario(
        registry.handlers,
        settings=TRACED,
        observers=[recorder],
        calls={order: lambda **_: "ordered"},
    )
    sim.apply(example())
    sim.settle()
    recorder.finish()
    text = text_of(file.getvalue())
    assert "/disk-1" in text
    assert PASSWORD not in text


# --------------------------------------------- made as text, and copied as it is stored


def drawn(raw: bytes) -> str:
    return raw.hex()


def drawn_and_framed(raw: bytes) -> str:
    return f"user:{raw.hex()}@host"


def drawn_in_base64(raw: bytes) -> str:
    return encoded(raw)


def keeping(made: Callable[[bytes], str], label: bool) -> tuple[Handler, ...]:
    registry = fnop.Registry()

    @fnop.reconcile(KIND, owns=["secrets"], registry=registry)
    async def provision(name: str, children: Any, **_: Any) -> Any:
        old = children["secrets"].get(f"{name}-mq")
        meta: dict[str, Any] = {"name": f"{name}-mq"}
        if old:
            body: dict[str, Any] = {"data": dict(old["data"])}
            meta |= {"labels": {"kept": "yes"}} if label else {}
        else:
            body = {"stringData": {"key": made(await fnop.random(18, secret=True))}}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta}
        return fnop.desired({**secret, **body})

    return registry.handlers


@pytest.mark.parametrize("made", [drawn, drawn_and_framed, drawn_in_base64])
@pytest.mark.parametrize("label", [False, True])
def test_what_is_drawn_may_be_applied_again_as_it_is_stored(
    made: Callable[[bytes], str], label: bool
) -> None:
    handlers = keeping(made, label)
    _, data = recorded(handlers)
    found = replayed(handlers, data)
    assert found.difference is None
    assert found.steps > 10


def copying(label: bool) -> tuple[Handler, ...]:
    registry = fnop.Registry()

    @fnop.reconcile(KIND, owns=["secrets"], registry=registry)
    async def provision(name: str, children: Any, **_: Any) -> Any:
        old = children["secrets"].get(name)
        meta: dict[str, Any] = {"name": name}
        if old:
            body: dict[str, Any] = {"data": dict(old["data"])}
            meta |= {"labels": {"kept": "yes"}} if label else {}
        else:
            found = await fnop.get("secrets", name="planted")
            assert found is not None
            body = {
                "stringData": {"key": base64.b64decode(found["data"]["key"]).decode()}
            }
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta}
        return fnop.desired({**secret, **body})

    return registry.handlers


@pytest.mark.parametrize("label", [False, True])
def test_what_is_copied_may_be_applied_again_as_it_is_stored(label: bool) -> None:
    handlers = copying(label)
    _, data = recorded(handlers)
    assert PASSWORD not in text_of(data)
    assert replayed(handlers, data).difference is None


@pytest.mark.parametrize("handlers", [copying(label=False), keeping(drawn, True)])
def test_the_digests_are_those_of_what_is_recorded(
    handlers: tuple[Handler, ...],
) -> None:
    """Not of what was applied: a reader could check a guess of the password by it."""
    sim, data = recorded(handlers)
    sent = [each.body for each in sim.requests if each.method == "PATCH"]
    digests = [
        found.split(".")[-1] for each in sent if (found := _mark(each)) is not None
    ]
    assert len(digests) >= 2
    text = text_of(data)
    assert [each for each in digests if each in text] == []


def _mark(manifest: Any) -> str | None:
    notes = manifest.get("metadata", {}).get("annotations", {})
    found: str | None = notes.get("fnop.dev/applied")
    return found


# ------------------------------------------------------------------- after other bytes

FRAMES = (b"\x00\x01", b"\xff", b"\xc3", b"\x00\xff\xfe", b"")


def packing(end: bytes) -> tuple[Handler, ...]:
    registry = fnop.Registry()

    @fnop.on.create(KIND, registry=registry)
    async def pack(name: str, **_: Any) -> Any:
        found = await fnop.get("secrets", name="planted")
        assert found is not None
        raw = base64.b64decode(found["data"]["key"])
        packed = {f"b{at}": encoded(each + raw + end) for at, each in enumerate(FRAMES)}
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        await fnop.apply({**config, "binaryData": packed})
        return {"packed": json.dumps(packed)}

    return registry.handlers


@pytest.mark.parametrize("end", [b"", b"\x80", b"tail", b"\0" * 50])
def test_a_secret_between_bytes_that_are_no_text_is_replaced_by_bytes(
    end: bytes,
) -> None:
    handlers = packing(end)
    _, data = recorded(handlers)
    found = [*_packed(records_in(data))]
    assert len(found) >= 3 * len(FRAMES), "asked for, watched, and answered"
    for name, text in found:
        raw = base64.b64decode(text, validate=True)
        before = FRAMES[int(name[1:])]
        assert raw.startswith(before)
        assert raw.endswith(end)
        token = raw[len(before) : len(raw) - len(end)].decode()
        assert TOKEN.fullmatch(token)
    assert replayed(handlers, data).difference is None


def _packed(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        binary = value.get("binaryData")
        if isinstance(binary, dict):
            yield from binary.items()
        for each in value.values():
            yield from _packed(each)
    elif isinstance(value, list):
        for each in value:
            yield from _packed(each)


@pytest.mark.parametrize("offset", range(3))
def test_a_part_of_base64_with_a_secret_stays_base64(offset: int) -> None:
    """Such as one that is cut off, which cannot be decoded."""
    redaction = Redaction(b"k" * 16, Program(()))
    whole = encoded(b"\0" * offset + PASSWORD.encode() + b"x" * 9)
    record = {
        "input": {"in": "WatchEvent", "stream": 1, "type": "ADDED", "body": PLANTED},
        "commands": [{"do": "Say", "level": "info", "message": whole[:-3]}],
    }
    (found,) = redaction.scrubbed([record])
    message = found["commands"][0]["message"]
    assert message != whole[:-3]
    assert TOKEN.search(message)
    assert base64.b64decode(message[: len(message) // 4 * 4], validate=True)
