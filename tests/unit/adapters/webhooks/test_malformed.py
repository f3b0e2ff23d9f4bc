"""Bad input for webhooks: there is always a well-formed answer, and others are served.

Reviews are malformed, truncated, oversized or of another version; connections are slow,
half-open, or very many.
"""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

import orjson
import pytest
from hypothesis import given, settings, strategies as st

import fnop
from fnop.adapters.webhooks.connections import Limits, Refusal
from fnop.adapters.webhooks.protocol import WebhookFn
from fnop.adapters.webhooks.server import WebhookServer
from fnop.core.api.reviews import MalformedReview, Request, request_in
from fnop.core.handlers.declare.registry import Registry
from fnop.effects.structs import replace
from tests.patience import patience
from tests.thorough import examples
from tests.webhook_servers import KIND, Client, fn_of, next_of, review_of, serving

pytest.importorskip("cryptography")

JSON: TypeAlias = Any


def judging() -> WebhookFn:
    """The function of an operator that looks at most of a review."""
    registry = Registry()

    @fnop.on.mutate(KIND, registry=registry, id="sized")
    def sized(spec: Any, patch: Any, meta: Any, **_: Any) -> None:
        if "size" not in spec:
            patch.spec["size"] = 1
            patch.metadata["labels"] = {"by": meta["name"]}

    @fnop.on.validate(KIND, registry=registry, id="small", labels={"a": fnop.ABSENT})
    def small(spec: Any, old: Any, diff: Any, userinfo: Any, **_: Any) -> None:
        if spec["size"] > 100 or userinfo.get("username") == "nobody":
            raise fnop.Denied(f"it is too large: {[*diff]}", field="spec.size")

    return fn_of(registry)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda deeper: (
        st.lists(deeper, max_size=3) | st.dictionaries(st.text(), deeper, max_size=3)
    ),
    max_leaves=5,
)


def places_in(value: JSON, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values within a value."""
    found: list[tuple[Any, ...]] = []
    items = value.items() if isinstance(value, dict) else ()
    for key, item in items:
        found += [(*before, key), *places_in(item, (*before, key))]
    return found


def changed(review: JSON, place: tuple[Any, ...], value: JSON) -> JSON:
    """A review with another value in one place; nothing there, if it is `...`."""
    found = copy.deepcopy(review)
    inner = found
    for key in place[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return found


REVIEWS = (
    review_of(),
    review_of(size=5),
    review_of("UPDATE", review_of(size=4)["request"]["object"], size=500),
    review_of("DELETE", review_of(size=4)["request"]["object"]),
)


@st.composite
def strange_reviews(draw: Callable[..., Any]) -> JSON:
    """Reviews with up to three values changed, or missing."""
    review = draw(st.sampled_from(REVIEWS))
    for _ in range(draw(st.integers(1, 3))):
        places = places_in(review)
        if places:
            place = draw(st.sampled_from(places))
            review = changed(review, place, draw(st.just(...) | values))
    return review


def check_answer(review: JSON, found: JSON) -> None:
    """An answer is one that an API server takes (VerifyAdmissionResponse)."""
    assert found["apiVersion"] == review["apiVersion"]
    assert found["kind"] == "AdmissionReview"
    response = found["response"]
    assert response["uid"] == review["request"]["uid"]
    assert isinstance(response["allowed"], bool)
    assert ("patch" in response) == (response.get("patchType") == "JSONPatch")
    assert response["allowed"] or response["status"]["message"]


@given(strange_reviews() | values)
@settings(max_examples=examples(150))
def test_every_review_is_answered_or_refused(review: JSON) -> None:
    async def ask() -> None:
        found: Any
        try:
            found = await judging()(review)
        except Refusal as refusal:
            found = refusal
        if isinstance(found, Refusal):
            assert found.status in (400, 404)
            assert str(found.args[0])
        else:
            check_answer(review, orjson.loads(orjson.dumps(found)))

    asyncio.run(ask())


TYPES: dict[str, Any] = {
    **dict.fromkeys(("uid", "operation", "version", "plural", "kind"), str),
    **dict.fromkeys(("group", "subresource", "name", "api_version"), str),
    **dict.fromkeys(("namespace",), (str, type(None))),
    **dict.fromkeys(("object", "old"), (dict, type(None))),
    "dry_run": bool,
}


@given(strange_reviews() | values)
@settings(max_examples=examples(150))
def test_a_request_is_read_or_refused(review: JSON) -> None:
    try:
        request = request_in(review)
    except MalformedReview:
        return
    assert isinstance(request, Request)
    for name, kind in TYPES.items():
        assert isinstance(getattr(request, name), kind), name
    assert request.operation in ("CREATE", "UPDATE", "DELETE", "CONNECT")
    assert isinstance(request.user, str)
    assert isinstance(request.label, str)
    assert isinstance(request.is_ending, bool)


@pytest.mark.parametrize("levels", [150, 500, 900, 1_100, 9_000])
async def test_deep_objects_are_answered_or_refused(
    levels: int, caplog: pytest.LogCaptureFixture
) -> None:
    value: JSON = b"[" * levels + b"]" * levels
    review = orjson.dumps(review_of(size=1, deep="HERE")).replace(b'"HERE"', value)
    async with (
        serving(WebhookServer(addr="127.0.0.1"), judging()) as configs,
        Client(await next_of(configs)) as client,
    ):
        found = await client.send(review)
    assert "Traceback" not in caplog.text
    if levels < 1_000 and found.status == 200:
        assert isinstance(found.response["allowed"], bool)
    else:
        assert (found.status, found.body["reason"]) == (400, "BadRequest")
        assert "nested too deeply" in found.body["message"]


# ------------------------------------------------------------ hostile connections


class Hurried(WebhookServer):
    """A server that is short of patience, so that tests need not wait."""

    limits = Limits(
        connections=40,
        handshake_seconds=patience(0.1),
        head_seconds=patience(0.1),
        body_seconds=patience(0.1),
        idle_seconds=patience(0.3),
        farewell_seconds=patience(0.05),
    )


@asynccontextmanager
async def hurried(**options: Any) -> AsyncIterator[Client]:
    server = Hurried(addr="127.0.0.1", **options)
    async with (
        serving(server, judging()) as configs,
        Client(await next_of(configs)) as client,
    ):
        yield client


async def said_to(client: Client, data: bytes, *, ends: bool = False) -> bytes:
    """The whole answer to some bytes, until the server closes the connection."""
    reader, writer = await client.connect()
    try:
        writer.write(data)
        if ends and writer.can_write_eof():
            writer.write_eof()
        async with asyncio.timeout(patience(10)):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def posted(body: bytes, length: int | None = None) -> bytes:
    """A request of HTTP, which may claim another length than it has."""
    size = len(body) if length is None else length
    how = f"Connection: close\r\nContent-Length: {size}"
    head = f"POST /sized HTTP/1.1\r\nHost: h\r\n{how}\r\n\r\n"
    return head.encode() + body


REVIEW = orjson.dumps(review_of(size=1))
SLOW: dict[str, tuple[bytes, bytes]] = {
    "a silent connection": (b"", b"408"),
    "half of a head": (b"POST /sized HTTP/1.1\r\nHost: h", b"408"),
    "half of a body": (posted(REVIEW[:100], len(REVIEW)), b"408"),
    "a body that does not come": (posted(b"", 10), b"408"),
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"400"),
    "a head that is too long": (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n", b"400"),
    "too many headers": (
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 100_000 + b"\r\n",
        b"400",
    ),
    "a length that is none": (
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n",
        b"400",
    ),
    "two lengths": (
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"400",
    ),
    "broken chunks": (
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"400",
    ),
    "a body that is too long": (posted(b"", 10**12), b"413"),
    "a path that is none": (b"POST /%zz%00?timeout=%ff HTTP/1.1\r\n\r\n", b"4"),
}


async def test_slow_and_half_open_connections_are_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with hurried() as client:
        asked = (said_to(client, data) for data, _ in SLOW.values())
        answers = await asyncio.gather(*asked)
        assert (await client.send(REVIEW)).status == 200
    for (what, (_, status)), answer in zip(SLOW.items(), answers, strict=True):
        first = answer.partition(b"\r\n")[0]
        assert first.startswith((b"HTTP/1.1 " + status, b"HTTP/1.0 " + status)), what
        assert b"Traceback" not in answer
    (warning,) = caplog.messages  # of the one that is too large, once
    assert "is refused, so its write may be, too: the body has more than" in warning


async def test_a_handshake_that_does_not_come_is_given_up() -> None:
    async with hurried() as client:
        reader, writer = await asyncio.open_connection(client.host, client.port)
        async with asyncio.timeout(patience(10)):
            assert await reader.read() == b""
        writer.close()
        assert (await client.send(REVIEW)).status == 200


async def test_others_are_served_while_very_many_never_greet() -> None:
    async with hurried() as client:
        count = 8 * Hurried.limits.connections
        silent = [
            await asyncio.open_connection(client.host, client.port)
            for _ in range(count)
        ]
        for _ in range(5):
            assert (await client.send(REVIEW)).status == 200
        for _, writer in silent:
            writer.close()


async def test_others_are_served_while_very_many_wait() -> None:
    async with hurried() as client:
        silent = [
            await asyncio.open_connection(
                client.host, client.port, ssl=client.tls or None
            )
            for _ in range(3 * Hurried.limits.connections)
        ]
        for _ in range(5):
            assert (await client.send(REVIEW)).status == 200
        for _, writer in silent:
            writer.close()


async def test_bodies_that_are_read_at_once_are_bounded() -> None:
    class Small(Hurried):
        limits = replace(Hurried.limits, body=2_000_000, held=500_000)

    async with (
        serving(Small(addr="127.0.0.1"), judging()) as configs,
        Client(await next_of(configs)) as client,
    ):
        large = orjson.dumps(review_of(size=1, text="a" * 1_500_000))
        refused = await client.send(large)
        assert (refused.status, refused.body["reason"]) == (503, "ServiceUnavailable")
        assert (await client.send(REVIEW)).status == 200


async def test_who_sends_much_and_slowly_keeps_nobody_out() -> None:
    class Small(Hurried):
        limits = replace(
            Hurried.limits, body=2_000_000, held=1_000_000, body_seconds=600.0
        )

    async with (
        serving(Small(addr="127.0.0.1"), judging()) as configs,
        Client(await next_of(configs)) as client,
    ):
        slow = []
        for _ in range(5):
            reader, writer = await asyncio.open_connection(
                client.host, client.port, ssl=client.tls or None
            )
            head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1900000\r\n\r\n"
            writer.write(head + b" " * 400_000)
            slow.append((reader, writer))
        for _ in range(5):
            assert (await client.send(REVIEW)).status == 200
        for _, writer in slow:
            writer.close()


async def test_the_largest_objects_are_reviewed() -> None:
    """3 MiB, twice: as much as an API server reads."""
    large = review_of(size=1, text="a" * (3 * 1024 * 1024))
    large["request"]["oldObject"] = large["request"]["object"]
    large["request"]["operation"] = "UPDATE"
    async with (
        serving(WebhookServer(addr="127.0.0.1"), judging()) as configs,
        Client(await next_of(configs)) as client,
    ):
        assert (await client.send(large)).response["allowed"]
        # The API server writes < as six bytes.
        escaped = b"\\u003c" * (1536 * 1024)
        text = orjson.dumps(review_of(size=1, text="HERE")).replace(b"HERE", escaped)
        old = orjson.dumps(review_of(size=1)["request"]["object"])
        both = text.replace(b'"oldObject":null', b'"oldObject":' + old)
        assert (await client.send(both)).response["allowed"]
        refused = await client.send(b" " * (21 * 1024 * 1024))
        assert refused.status == 413


# ------------------------------------------------------------------------- many


def bad_request(chance: random.Random) -> tuple[bytes, bool]:
    """The bytes of a bad request, and whether the client says no more after them."""
    review = copy.deepcopy(chance.choice(REVIEWS))
    match chance.randrange(7):
        case 0:  # malformed
            garbled = bytearray(orjson.dumps(review))
            for _ in range(chance.randrange(1, 5)):
                garbled[chance.randrange(len(garbled))] = chance.randrange(256)
            return posted(bytes(garbled)), False
        case 1:  # truncated, and the client waits
            data = posted(orjson.dumps(review))
            return data[: chance.randrange(len(data))], False
        case 2:  # truncated, and the client is gone
            data = posted(orjson.dumps(review))
            return data[: chance.randrange(len(data))], True
        case 3:  # another version
            review["apiVersion"] = chance.choice(["admission.k8s.io/v2", "v1", None])
            return posted(orjson.dumps(review)), False
        case 4:  # other types
            place = chance.choice(places_in(review))
            value: JSON = chance.choice([None, 1, "x", [], {}, ..., True])
            return posted(orjson.dumps(changed(review, place, value))), False
        case 5:  # no HTTP at all
            return chance.randbytes(chance.randrange(1, 200)) + b"\r\n\r\n", False
        case _:  # too large, now and then
            size = 3_000_000 if chance.random() < 0.02 else 30_000
            review["request"]["options"]["text"] = "a" * size
            return posted(orjson.dumps(review)), False


async def bombarded(count: int, seed: int) -> None:
    """Send very many bad requests, and good ones among them.

    Each bad one has an answer that is HTTP, or the client has left.
    """
    chance = random.Random(seed)
    bad = [bad_request(chance) for _ in range(count)]
    async with hurried() as client:
        done = 0

        async def send_bad() -> None:
            nonlocal done
            while bad:
                data, leaves = bad.pop()
                found = await said_to(client, data, ends=leaves)
                assert not found or found.startswith((b"HTTP/1.1 ", b"HTTP/1.0 "))
                assert b"Traceback" not in found
                done += 1

        senders = {asyncio.create_task(send_bad()) for _ in range(30)}
        pending = senders
        while pending:
            assert (await client.send(REVIEW)).response["allowed"]
            _, pending = await asyncio.wait(pending, timeout=0.05)
        await asyncio.gather(*senders)
        assert done == count


async def test_bad_requests_harm_nobody(caplog: pytest.LogCaptureFixture) -> None:
    await bombarded(200, seed=1)
    assert not [each for each in caplog.records if each.exc_info]


@pytest.mark.long
async def test_ten_thousand_bad_requests_harm_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    await bombarded(10_000, seed=2)
    assert not [each for each in caplog.records if each.exc_info]
