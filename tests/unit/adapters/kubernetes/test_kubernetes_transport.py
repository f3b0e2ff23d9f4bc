"""The client of a real cluster, on servers that misbehave to order."""

import asyncio
import doctest
import io
import json
import logging
import re
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from fnop.adapters.common import deep_json
from fnop.adapters.common.logs import configure
from fnop.adapters.kubernetes import client as kubernetes, kubeconfig, service_account
from fnop.adapters.kubernetes.client import ConfigurationProblem, KubernetesApi, connect
from fnop.core.handlers.declare.connection import ConnectionInfo
from fnop.core.seam.commands import Say
from fnop.core.values.errors import described, text_of
from fnop.effects.structs import replace
from fnop.interpreters.runtime.answers import message_of
from fnop.interpreters.runtime.clock import SystemClock
from fnop.interpreters.runtime.protocol import (
    ApiRequest,
    ApiResponse,
    StreamRefused,
    StreamSilent,
    StreamUndecodable,
    Unreachable,
    WatchLine,
)
from tests.patience import patience
from tests.scripted_server import GET, Script, Seen, http, server, write_kubeconfig
from tests.thorough import examples

# A time that is to pass, but not before the request has arrived.
LITTLE = patience(0.05)
LITTLE_TOLD = f"answer within {re.escape(f'{LITTLE:.3g}')} s"


def answering(answer: bytes) -> Script:
    async def script(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)

    return script


async def hanging_up(seen: Seen, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def silent(seen: Seen, writer: asyncio.StreamWriter) -> None:
    pass


def streaming(*pieces: bytes, ended: bool = True) -> Script:
    """A watch that is sent in these pieces, each a chunk of its own."""

    async def script(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for piece in pieces:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        if ended:
            writer.write(b"0\r\n\r\n")

    return script


@asynccontextmanager
async def client(
    folder: Path, url: str, user: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[KubernetesApi]:
    file = write_kubeconfig(folder, url, user)
    api = await connect(kubeconfig=file, context=None, **options)
    try:
        yield api
    finally:
        await api.close()


async def send(folder: Path, script: Script) -> ApiResponse:
    async with server(script) as (url, _), client(folder, url) as api:
        return await api.send(GET)


async def follow(
    folder: Path, script: Script, silence: float = patience(5)
) -> list[WatchLine]:
    async with server(script) as (url, _), client(folder, url) as api:
        return [line async for line in api.watch(GET, silence_seconds=silence)]


# --------------------------------------------------------------------- requests


async def test_an_answer_is_parsed(tmp_path: Path) -> None:
    answer = await send(tmp_path, answering(http(b'{"a": [1, "\\u00fc"]}')))
    assert answer == ApiResponse(200, {"a": [1, "ü"]})


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        (http(b"{}", "429 Too Many Requests", retry_after="7"), 7),
        (http(b'{"details": {"retryAfterSeconds": 2}}', "503 Busy"), 2),
        (http(b"{}", "429 Too Many Requests", retry_after="9" * 400), 1e9),
        (
            http(b'{"details": {"retryAfterSeconds": %s}}' % (b"9" * 18), "429 Busy"),
            1e9,
        ),
        (http(b'{"details": {"retryAfterSeconds": -5}}', "429 Busy"), None),
        (http(b'{"details": {"retryAfterSeconds": 2}}'), None),
        (http(b'{"details": "?"}', "503 Busy"), None),
        (http(b"{}", "503 Busy", retry_after="Wed, 21 Oct 2026 07:28:00 GMT"), None),
    ],
)
async def test_advice_to_wait_is_passed_on(
    tmp_path: Path, answer: bytes, seconds: float | None
) -> None:
    assert (await send(tmp_path, answering(answer))).retry_after_seconds == seconds


async def test_an_error_in_text_becomes_a_status(tmp_path: Path) -> None:
    text = http(b"404 page not found\n", "404 Not Found", content_type="text/plain")
    answer = await send(tmp_path, answering(text))
    assert answer.status == 404
    assert answer.body["kind"] == "Status"
    assert answer.body["message"] == "404 page not found"


async def test_a_refusal_in_a_page_is_not_blamed_on_the_api_server(
    tmp_path: Path,
) -> None:
    html = b"<html>\n<h1>403 Forbidden</h1>\n" + b"x" * 5000
    page = http(html, "403 Forbidden", content_type="text/html")
    answer = await send(tmp_path, answering(page))
    message = answer.body["message"]
    assert "no API server sends" in message
    assert "load balancers" in message
    assert "403 Forbidden" in message
    assert "\n" not in message
    assert len(message) < 400


async def test_a_login_page_is_no_empty_list(tmp_path: Path) -> None:
    page = http(b"<html>Please sign in</html>", content_type="text/html")
    with pytest.raises(Unreachable, match="Please sign in") as problem:
        await send(tmp_path, answering(page))
    assert problem.value.sent


async def test_a_redirection_is_not_followed(tmp_path: Path) -> None:
    answer = await send(tmp_path, answering(http(b"", "302 Found", location="/login")))
    assert answer.status == 302


async def test_refused_connections_were_not_sent(tmp_path: Path) -> None:
    with socket.socket() as taken:  # bound, but not listening
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with client(tmp_path, url) as api:
            with pytest.raises(Unreachable) as problem:
                await api.send(GET)
            with pytest.raises(Unreachable):
                await anext(api.watch(GET, silence_seconds=patience(5)))
    assert not problem.value.sent
    assert str(problem.value) == f"cannot connect to {url}: Connection refused"


@pytest.mark.parametrize("method", ["GET", "PATCH"])
async def test_a_broken_connection_may_have_been_sent(
    tmp_path: Path, method: str
) -> None:
    async with server(hanging_up) as (url, _), client(tmp_path, url) as api:
        with pytest.raises(Unreachable, match="broke") as problem:
            await api.send(ApiRequest(method, "/x", body={}))
    assert problem.value.sent


async def test_no_answer_in_time_may_have_been_sent(tmp_path: Path) -> None:
    async with (
        server(silent) as (url, _),
        client(tmp_path, url, request_seconds=LITTLE) as api,
    ):
        with pytest.raises(Unreachable, match=LITTLE_TOLD) as problem:
            await api.send(GET)
    assert problem.value.sent


async def test_a_request_may_have_less_time_than_others(tmp_path: Path) -> None:
    async with server(silent) as (url, _), client(tmp_path, url) as api:
        with pytest.raises(Unreachable, match=LITTLE_TOLD):
            await api.send(replace(GET, seconds=LITTLE))


async def test_a_request_has_no_more_time_than_others(tmp_path: Path) -> None:
    async with (
        server(silent) as (url, _),
        client(tmp_path, url, request_seconds=LITTLE) as api,
    ):
        with pytest.raises(Unreachable, match=LITTLE_TOLD):
            await api.send(replace(GET, seconds=60.0))


async def test_the_wanted_forms_travel_with_the_request(tmp_path: Path) -> None:
    script = answering(http(b"{}"))
    async with server(script) as (url, seen), client(tmp_path, url) as api:
        await api.send(GET)
        await api.send(replace(GET, accept="application/json;as=Other,*/*"))
    forms = [each.headers["accept"] for each in seen]
    assert forms == ["application/json", "application/json;as=other,*/*"]


async def test_half_an_answer_may_have_been_sent(tmp_path: Path) -> None:
    async def script(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(http(b'{"a": 1}')[:-3])
        await writer.drain()
        writer.close()

    with pytest.raises(Unreachable, match="broke") as problem:
        await send(tmp_path, script)
    assert problem.value.sent


async def test_connections_are_kept(tmp_path: Path) -> None:
    async with (
        server(answering(http(b"{}"))) as (url, seen),
        client(tmp_path, url) as api,
    ):
        for _ in range(3):
            await api.send(GET)
    assert [each.connection for each in seen] == [1, 1, 1]


async def test_cancelled_requests_leave_nothing_behind(tmp_path: Path) -> None:
    arrived = asyncio.Event()

    async def script(seen: Seen, writer: asyncio.StreamWriter) -> None:
        arrived.set()

    async with server(script) as (url, _), client(tmp_path, url) as api:
        task = asyncio.ensure_future(api.send(GET))
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    # Warnings about unclosed connections are errors here.


async def test_requests_at_work_are_bounded(tmp_path: Path) -> None:
    together = most = 0
    two = asyncio.Event()

    async def script(seen: Seen, writer: asyncio.StreamWriter) -> None:
        nonlocal together, most
        together += 1
        most = max(most, together)
        if together == 2:
            two.set()
        await two.wait()  # the second connection may take longer than an answer
        for _ in range(10):
            await asyncio.sleep(0)
        together -= 1
        writer.write(http(b"{}"))

    async with server(script) as (url, seen):
        file = write_kubeconfig(tmp_path, url)
        api = await connect(kubeconfig=file, context=None, concurrency=2)
        await asyncio.gather(*(api.send(GET) for _ in range(8)))
        await api.close()
    assert (most, len(seen)) == (2, 8)


async def has_to_wait(request: Awaitable[object]) -> bool:
    done, waiting = await asyncio.wait((asyncio.ensure_future(request),), timeout=0.2)
    for each in waiting:
        each.cancel()
    return not done


async def test_a_server_that_fails_is_asked_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes, "_FAILING_BURST", 5.0)
    monkeypatch.setattr(kubernetes, "_FAILING_PER_SECOND", 0.001)
    busy = answering(http(b"{}", "503 Busy"))
    async with (
        server(busy) as (url, seen),
        client(tmp_path, url, concurrency=1) as api,
    ):
        for _ in range(2):
            await api.send(GET)
            with pytest.raises(StreamRefused):
                await anext(api.watch(GET, silence_seconds=patience(5)))
        await api.send(GET)
        assert len(seen) == 5
        assert await has_to_wait(api.send(GET))


@pytest.mark.parametrize("status", ["200 OK", "404 Not Found", "409 Conflict"])
async def test_a_server_that_answers_is_asked_as_often_as_there_is_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    monkeypatch.setattr(kubernetes, "_FAILING_BURST", 5.0)
    monkeypatch.setattr(kubernetes, "_FAILING_PER_SECOND", 0.001)
    async with (
        server(answering(http(b"{}", status))) as (url, seen),
        client(tmp_path, url, concurrency=1) as api,
    ):
        for _ in range(20):
            await api.send(GET)
    assert len(seen) == 20


async def test_a_request_whose_time_has_passed_is_not_begun(tmp_path: Path) -> None:
    """It may have waited for its turn until the lease was another's."""
    async with (
        server(answering(http(b"{}"))) as (url, seen),
        client(tmp_path, url) as api,
    ):
        now = SystemClock().now().mono
        await api.send(replace(GET, before=now + patience(60)))
        with pytest.raises(Unreachable) as caught:
            await api.send(replace(GET, before=now))
    assert not caught.value.sent
    assert len(seen) == 1


async def test_requests_can_have_a_rate(tmp_path: Path) -> None:
    async with (
        server(answering(http(b"{}"))) as (url, seen),
        client(tmp_path, url, requests_per_second=0.01) as api,
    ):
        await api.send(GET)
        assert await has_to_wait(api.send(GET))
    assert len(seen) == 1


async def test_an_urgent_request_waits_for_no_slot_and_no_turn(tmp_path: Path) -> None:
    """A server that is slow, or asked little, must not cost an operator its lease."""
    ordinary = asyncio.Event()

    async def script(seen: Seen, writer: asyncio.StreamWriter) -> None:
        if "urgent" in seen.line:
            writer.write(http(b"{}"))
        else:
            ordinary.set()

    urgent = ApiRequest("GET", "/urgent", urgent=True)
    async with (
        server(script) as (url, seen),
        client(tmp_path, url, concurrency=2, requests_per_second=0.01) as api,
    ):
        waiting = [asyncio.ensure_future(api.send(GET)) for _ in range(4)]
        for _ in range(10):
            assert (await api.send(urgent)).status == 200
        await asyncio.wait_for(ordinary.wait(), patience(5))
        for each in waiting:
            each.cancel()
    assert len(seen) == 11, "the first ordinary one took the only turn"


async def test_an_urgent_request_ends_when_its_answer_is_of_no_use(
    tmp_path: Path,
) -> None:
    """Another one is sent then: they would pile up."""
    async with server(silent) as (url, _), client(tmp_path, url) as api:
        soon = SystemClock().now().mono + LITTLE
        with pytest.raises(Unreachable, match=r"answer within (?!60 )") as caught:
            await api.send(replace(GET, before=soon, urgent=True))
    assert caught.value.sent


# ---------------------------------------------------------------------- watches

OBJECT = b'{"kind":"A","metadata":{"name":"\xc3\xbc"}}'
LINE = b'{"type":"ADDED","object":%s}\n' % OBJECT


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
async def test_lines_come_whole_however_they_are_cut(tmp_path: Path, size: int) -> None:
    text = LINE * 3 + b'\n{"type":"BOOKMARK","object":{}}\n'
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    lines = await follow(tmp_path, streaming(*pieces))
    added = WatchLine("ADDED", json.loads(OBJECT), OBJECT)
    assert lines == [added] * 3 + [WatchLine("BOOKMARK", {}, b"{}")]


async def test_a_line_longer_than_every_buffer(tmp_path: Path) -> None:
    value = b"y" * 3_000_000
    line = b'{"type":"MODIFIED","object":{"v":"%s"}}\n' % value
    pieces = [line[at : at + 50_000] for at in range(0, len(line), 50_000)]
    (got,) = await follow(tmp_path, streaming(*pieces))
    assert got.object == {"v": value.decode()}
    assert got.raw == b'{"v":"%s"}' % value


DEEP = b'{"a":' * 1500 + b"1" + b"}" * 1500


async def test_an_object_that_is_too_deep_does_not_hide_others(tmp_path: Path) -> None:
    text = b'{"items":[{"x":"[{"},%s,{"y":2}]}' % DEEP
    answer = await send(tmp_path, answering(http(text)))
    first, deep, last = answer.body["items"]
    assert (first, last) == ({"x": "[{"}, {"y": 2})
    alone = await send(tmp_path, answering(http(DEEP)))
    (event,) = await follow(tmp_path, streaming(b'{"type":"T","object":%s}\n' % DEEP))
    assert deep == alone.body == event.object, "it is one object, wherever it is read"
    assert event.raw is None
    assert levels_of(deep) == deep_json.LEVELS_MAX


def levels_of(found: Any) -> int:
    levels = 0
    while found is not None:
        found, levels = found["a"], levels + 1
    return levels


def test_the_examples_of_deep_json_hold() -> None:
    assert doctest.testmod(deep_json).failed == 0


def cut(value: Any, levels: int) -> Any:
    if not isinstance(value, (list, dict)):
        return value
    if levels == 0:
        return None
    if isinstance(value, list):
        return [cut(item, levels - 1) for item in value]
    return {key: cut(item, levels - 1) for key, item in value.items()}


JSON = st.recursive(
    st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(max_examples=examples(40))
@given(JSON, st.integers(0, 4))
def test_what_is_too_deep_is_null_and_nothing_else(value: Any, levels: int) -> None:
    text = json.dumps(value).encode()
    assert json.loads(deep_json.shallow(text, levels)) == cut(value, levels)
    assert deep_json.shallow(text) == text


@pytest.mark.parametrize(
    "line",
    [
        b'{"object":{"a":1},"type":"ADDED"}',
        b'{ "type": "ADDED", "object": {"a":1} }',
        b'{"type":"ADDED","object":{"a":1},"more":2}',
    ],
)
async def test_other_forms_of_a_line_have_no_raw(tmp_path: Path, line: bytes) -> None:
    assert await follow(tmp_path, streaming(line + b"\n")) == [
        WatchLine("ADDED", {"a": 1}, None)
    ]


@pytest.mark.parametrize(
    "line", [b"oops", b'{"type":"ADDED"}', b"[1]", b'{"type":"ADDED","object":{"a"}}']
)
async def test_what_is_no_watch_event_is_refused(tmp_path: Path, line: bytes) -> None:
    with pytest.raises(StreamUndecodable):
        await follow(tmp_path, streaming(line + b"\n"))


async def test_errors_in_the_stream_are_lines(tmp_path: Path) -> None:
    gone = b'{"type":"ERROR","object":{"kind":"Status","code":410}}\n'
    (line,) = await follow(tmp_path, streaming(gone))
    assert (line.type, line.object["code"]) == ("ERROR", 410)


async def test_a_refused_watch_says_why(tmp_path: Path) -> None:
    body = b'{"kind":"Status","message":"too old","code":410}'
    with pytest.raises(StreamRefused, match="too old") as refused:
        await follow(tmp_path, answering(http(body, "410 Gone")))
    assert refused.value.status == 410


async def test_a_refused_watch_says_when_to_come_again(tmp_path: Path) -> None:
    busy = http(b"{}", "429 Too Many Requests", retry_after="7")
    with pytest.raises(StreamRefused) as refused:
        await follow(tmp_path, answering(busy))
    assert refused.value.retry_after_seconds == 7


def dripping(head: bytes) -> Script:
    """Byte after byte, and never the end of anything."""

    async def script(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 %s\r\ntransfer-encoding: chunked\r\n\r\n" % head)
        while not writer.transport.is_closing():
            writer.write(b"1\r\nx\r\n")
            await asyncio.sleep(0.01)

    return script


@pytest.mark.parametrize("head", [b"200 OK", b"500 Internal Server Error"])
async def test_bytes_that_make_no_line_are_silence(tmp_path: Path, head: bytes) -> None:
    async with asyncio.timeout(patience(5)):
        with pytest.raises(StreamSilent):
            await follow(tmp_path, dripping(head), silence=0.1)


async def test_half_a_line_at_the_end_is_dropped(tmp_path: Path) -> None:
    assert len(await follow(tmp_path, streaming(LINE, LINE[:20]))) == 1


async def test_a_stream_that_breaks_is_unreachable(tmp_path: Path) -> None:
    async def script(seen: Seen, writer: asyncio.StreamWriter) -> None:
        await streaming(LINE, ended=False)(seen, writer)
        writer.close()

    async with server(script) as (url, _), client(tmp_path, url) as api:
        stream = api.watch(GET, silence_seconds=patience(5))
        assert (await anext(stream)).type == "ADDED"
        with pytest.raises(Unreachable):
            await anext(stream)


@pytest.mark.parametrize("script", [silent, streaming(LINE, ended=False)])
async def test_silence_ends_a_watch(tmp_path: Path, script: Script) -> None:
    with pytest.raises(StreamSilent):
        await follow(tmp_path, script, silence=0.05)


# ------------------------------------------------------------- identity and ways


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({"token": "secret"}, "Bearer secret"),
        ({"username": "me", "password": "pw"}, "Basic bWU6cHc="),
        ({}, None),
    ],
)
async def test_who_we_are_is_said(
    tmp_path: Path, user: dict[str, str], header: str | None
) -> None:
    async with (
        server(answering(http(b"{}")), secure=True) as (url, seen),
        client(tmp_path, url, user) as api,
    ):
        await api.send(GET)
    said = seen[0].headers.get("authorization")
    assert said == (header.lower() if header else None)


async def test_a_plugin_is_asked_again_after_a_401(tmp_path: Path) -> None:
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "import json, pathlib\n"
        "count = pathlib.Path(__file__).with_name('count')\n"
        "n = int(count.read_text()) + 1 if count.exists() else 1\n"
        "count.write_text(str(n))\n"
        "head = {'apiVersion': 'client.authentication.k8s.io/v1'}\n"
        "status = {'token': f't{n}'}\n"
        "print(json.dumps({**head, 'kind': 'ExecCredential', 'status': status}))\n"
    )
    exec_ = {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable}
    user = {"exec": {**exec_, "args": [str(plugin)], "interactiveMode": "Never"}}

    async def script(seen: Seen, writer: asyncio.StreamWriter) -> None:
        good = seen.headers["authorization"] == "bearer t2"
        writer.write(http(b"{}", "200 OK" if good else "401 Unauthorized"))

    async with (
        server(script, secure=True) as (url, seen),
        client(tmp_path, url, user) as api,
    ):
        answers = await asyncio.gather(*(api.send(GET) for _ in range(4)))
        await api.send(GET)
    assert [answer.status for answer in answers] == [200] * 4
    assert (tmp_path / "count").read_text() == "2"
    assert seen[-1].headers["authorization"] == "bearer t2"


async def test_a_plugin_that_fails_later_is_named(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first")
    user = {"tokenFile": "token"}
    answer = answering(http(b"{}", "401 Unauthorized"))
    async with (
        server(answer) as (url, _),
        client(tmp_path, url, user) as api,
    ):
        (tmp_path / "kubeconfig").unlink()
        with pytest.raises(Unreachable, match="cannot be renewed") as problem:
            await api.send(GET)
    assert not problem.value.sent


async def test_a_webhook_s_denial_with_401_costs_no_login(tmp_path: Path) -> None:
    """A webhook may choose the code of its denial, and the credentials are good."""
    (tmp_path / "token").write_text("first")
    said = b'{"message": "admission webhook \\"a.b.c\\" denied the request: no"}'
    answer = answering(http(said, "401 Unauthorized"))
    async with (
        server(answer) as (url, seen),
        client(tmp_path, url, {"tokenFile": "token"}) as api,
    ):
        (tmp_path / "kubeconfig").unlink()
        response = await api.send(GET)
    assert (response.status, len(seen)) == (401, 1)
    assert "denied the request" in message_of(response)


async def test_a_login_that_does_not_come_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(self: kubeconfig.Source) -> ConnectionInfo:
        return await asyncio.Future()

    answer = answering(http(b"{}", "401 Unauthorized"))
    async with server(answer) as (url, _), client(tmp_path, url) as api:
        monkeypatch.setattr(kubernetes, "LOGIN_SECONDS", 0.05)
        monkeypatch.setattr(kubernetes, "RENEWAL_SECONDS", patience(5))
        monkeypatch.setattr(kubeconfig.Source, "login", never)
        async with asyncio.timeout(patience(5)):
            with pytest.raises(Unreachable, match=r"within 0\.05 s") as problem:
                await api.send(GET)
            assert not problem.value.sent
            assert (await api.send(GET)).status == 401, "and is not asked at once"


async def test_the_proxy_of_the_environment_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with server(answering(http(b"{}"))) as (url, seen):
        monkeypatch.setenv("http_proxy", url.removeprefix("http://"))
        async with client(tmp_path, "http://cluster.invalid") as api:
            await api.send(GET)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        async with client(tmp_path, url) as api:
            await api.send(GET)
    assert [each.line for each in seen] == [
        "GET http://cluster.invalid/x HTTP/1.1",
        "GET /x HTTP/1.1",
    ]


# What an address may begin with, escaped and not.
PASSWORDS = ["s3cr3t", "s3c/r3t", "s3c#r3t", "p@s3cr3t", "s3c%2Fr3t"]
USERINFO = ["s3cr3t", *(f"me:{each}" for each in PASSWORDS)]


def leaked(*texts: str) -> list[str]:
    return [text for text in texts for word in ("s3c", "r3t") if word in text]


def texts_of(problem: BaseException) -> Iterator[str]:
    """The texts of it that fnop keeps and logs, with its causes."""
    yield text_of(problem)
    yield described(problem)
    yield str(problem)
    for form in ("text", "json"):
        stream = io.StringIO()
        console = configure(format=form, level="debug", prefix=None, stream=stream)
        logging.getLogger("fnop").error("lost: %s", problem, exc_info=problem)
        logging.getLogger("fnop").error("lost", extra={"why": str(problem)})
        console.say(Say("error", "lost", error=str(problem), exception=problem))
        console.close()
        yield stream.getvalue()


async def asked(folder: Path, url: str, user: dict[str, Any] | None = None) -> None:
    async with client(folder, url, user) as api:
        assert leaked(api.server) == []
        await api.send(GET)


async def watched(folder: Path, url: str) -> None:
    async with client(folder, url) as api:
        await anext(api.watch(GET, silence_seconds=patience(10)))


@pytest.mark.parametrize("userinfo", USERINFO)
@pytest.mark.parametrize("act", [asked, watched])
async def test_the_password_of_a_proxy_is_in_no_text(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[Path, str], Awaitable[None]],
    userinfo: str,
) -> None:
    async with server(answering(http(b"no", "502 Bad Gateway"))) as (url, _):
        monkeypatch.setenv("https_proxy", url.replace("//", f"//{userinfo}@"))
        with pytest.raises((Unreachable, ConfigurationProblem)) as problem:
            await act(tmp_path, "https://cluster.invalid")
    assert leaked(*texts_of(problem.value)) == []


@pytest.mark.parametrize("userinfo", USERINFO)
@pytest.mark.parametrize("scheme", ["http://", "ftp://", ""])
async def test_the_password_of_an_api_server_is_in_no_text(
    tmp_path: Path, scheme: str, userinfo: str
) -> None:
    async with server(hanging_up) as (url, _):
        address = url.replace("http://", f"{scheme}{userinfo}@")
        with pytest.raises((Unreachable, ConfigurationProblem)) as problem:
            await asked(tmp_path, address)
    assert leaked(*texts_of(problem.value)) == []
    with pytest.raises(ValueError, match=r"go together|is not an address") as other:
        ConnectionInfo(server=address, username="me too")
    assert leaked(*texts_of(other.value)) == []


@pytest.mark.parametrize(
    "user",
    [
        {},
        {"token": "t"},
        {"username": "a", "password": "b"},
    ],
)
async def test_a_user_in_the_servers_address_counts_most(
    tmp_path: Path, user: dict[str, str]
) -> None:
    async with server(answering(http(b"{}")), secure=True) as (url, seen):
        address = url.replace("//", "//m%65:p%3Aw@") + "/?a=b#c"
        async with client(tmp_path, address, user) as api:
            await api.send(GET)
            assert api.server == url
    assert [each.headers["authorization"] for each in seen] == ["basic bwu6cdp3"]


async def test_the_password_in_a_plugins_complaint_is_in_no_text(
    tmp_path: Path,
) -> None:
    complains = "import sys; sys.exit('cannot reach https://me:s3cr3t@idp.example')"
    version = "client.authentication.k8s.io/v1"
    plugin = {"command": sys.executable, "args": ["-c", complains]}
    user = {"exec": {"apiVersion": version, "interactiveMode": "Never", **plugin}}
    with pytest.raises(ConfigurationProblem, match="https://") as problem:
        await asked(tmp_path, "https://cluster.invalid", user)
    assert leaked(*texts_of(problem.value)) == []


def test_credentials_for_the_cluster_are_not_shown() -> None:
    info = ConnectionInfo(
        server="https://me:s3cr3t@h", proxy_url="http://me:s3cr3t@p", token="s3cr3t"
    )
    assert leaked(repr(info), str(info), str([info])) == []
    assert "server='https://***@h'" in repr(info)


# ---------------------------------------------------------------- configuration


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither a kubeconfig nor a pod."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")


async def problem_of(file: str | None, context: str | None = None) -> str:
    with pytest.raises(ConfigurationProblem) as problem:
        await connect(kubeconfig=file, context=context)
    assert "\n" not in str(problem.value)
    return str(problem.value)


@pytest.mark.usefixtures("nowhere")
async def test_no_cluster_at_all() -> None:
    assert "no cluster is configured" in await problem_of(None)


@pytest.mark.usefixtures("nowhere")
async def test_the_usual_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home" / ".kube").mkdir(parents=True)
    file = Path(write_kubeconfig(tmp_path, "http://a", namespace="mine"))
    file.rename(tmp_path / "home" / ".kube" / "config")
    api = await connect(kubeconfig=None, context=None)
    assert (api.server, api.default_namespace) == ("http://a", "mine")
    await api.close()

    monkeypatch.setenv("KUBECONFIG", write_kubeconfig(tmp_path, "http://b/"))
    api = await connect(kubeconfig=None, context="there")
    assert (api.server, api.default_namespace) == ("http://b", None)
    await api.close()


@pytest.mark.usefixtures("nowhere")
async def test_in_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    assert "service account" in await problem_of(None)
    assert "context 'x'" in await problem_of(None, "x")

    for name in ("token", "ca.crt", "namespace"):
        (tmp_path / name).write_text(f"the {name}\n")
    monkeypatch.setattr(service_account, "FOLDER", tmp_path)
    login = await kubeconfig.find_source(None, None).login()
    assert login.default_namespace == "the namespace"
    assert login.server == "https://10.0.0.1:443"
    assert login.token == "the token"


async def test_files_that_are_no_kubeconfig(tmp_path: Path) -> None:
    file = tmp_path / "config"
    assert f"{file} does not exist" in await problem_of(str(file))
    assert f"{tmp_path} is a directory" in await problem_of(str(tmp_path))
    for text, expected in (
        ("a: [1", f"{file}:1 is not YAML"),
        ("- 1", "holds no mapping"),
        ("{}", "has no contexts; is it the kubeconfig that you mean?"),
        (
            "contexts: [{name: a}]",
            "selects no context; choose one with --context, or context= in Python: a",
        ),
    ):
        file.write_text(text)
        assert expected in await problem_of(str(file))


async def test_contexts_that_lead_nowhere(tmp_path: Path) -> None:
    file = write_kubeconfig(tmp_path, "http://a")
    expected = f"there is no context 'prod' in {file}; available: here, there"
    assert await problem_of(file, "prod") == expected

    broken = json.loads(Path(file).read_text())
    broken["users"] = []
    broken["clusters"][0]["cluster"]["server"] = "https://a"
    Path(file).write_text(json.dumps(broken))
    assert "names the user 'u', which is not among its users" in await problem_of(file)

    file = write_kubeconfig(tmp_path, "ftp://a")
    assert "'ftp://a' is not an http or https address" in await problem_of(file)


async def test_certificates_that_cannot_be_used(tmp_path: Path) -> None:
    file = write_kubeconfig(tmp_path, "https://a")
    config = json.loads(Path(file).read_text())
    (tmp_path / "ca").write_text("no certificate")
    config["clusters"][0]["cluster"] = {
        "server": "https://a",
        "certificate-authority": "ca",
    }
    Path(file).write_text(json.dumps(config))
    assert "certificates" in await problem_of(file)
