"""Login handlers: what they answer, how they fail, and when they are asked again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

import fnop
from fnop.adapters.kubernetes import service_account
from fnop.adapters.kubernetes.client import KubernetesApi, connect
from fnop.adapters.kubernetes.kubeconfig import ConfigurationProblem, find_source
from fnop.adapters.kubernetes.login_and_probes import Surroundings
from fnop.adapters.kubernetes.logins import HandledLogins
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import Say
from fnop.core.values.errors import RegistrationError
from fnop.interpreters.runtime.clock import EPOCH, Clock, VirtualClock
from fnop.interpreters.runtime.protocol import Unreachable
from tests.scripted_server import GET, Seen, http, server, write_kubeconfig

HERE = "https://here:6443"


class Logins:
    """Login handlers, their clock, and their log lines."""

    def __init__(self, registry: Registry, kubeconfig: str | None = None) -> None:
        self.clock = VirtualClock()
        self.said: list[Say] = []
        handlers = registry.handlers
        around = Surroundings(
            Program(handlers), ThreadPoolExecutor(1), self.said.append, self.clock
        )
        self.threads = around.threads
        self.source = HandledLogins(
            handlers, around, lambda: find_source(kubeconfig, None)
        )


@pytest.fixture
def registry() -> Registry:
    return Registry()


def answer(registry: Registry, *found: Any, id: str = "login", **options: Any) -> None:
    """Declare a login handler that answers this, one after the other."""
    answers = iter(found)

    @fnop.on.login(registry=registry, id=id, **options)
    def login(**_: Any) -> fnop.ConnectionInfo | None:
        each = next(answers)
        if isinstance(each, Exception):
            raise each
        info: fnop.ConnectionInfo | None = each
        return info


def info(server: str = HERE, **fields: Any) -> fnop.ConnectionInfo:
    return fnop.ConnectionInfo(server=server, **fields)


async def tokens(logins: Logins, times: int = 1) -> list[str]:
    """The tokens of requests after each login."""
    found = []
    for _ in range(times):
        found.append(f"Bearer {(await logins.source.login()).token}")
    return found


# ------------------------------------------------------------------ the answer


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"server": "here:6443"}, "is not an address"),
        ({"ca_path": "a", "ca_data": "b"}, "either ca_path= or ca_data="),
        ({"certificate_path": "a"}, "go together"),
        ({"private_key_data": "a"}, "go together"),
        ({"username": "a"}, "go together"),
        ({"username": "a", "password": "b", "token": "c"}, "either a token"),
        ({"impersonate": fnop.Impersonation("a\nb")}, "Impersonate-User: 'a.*header"),
        ({"impersonate": fnop.Impersonation("a", ("b\0",))}, "Impersonate-Group: "),
    ],
)
def test_what_cannot_work_is_refused(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        fnop.ConnectionInfo(**({"server": HERE} | fields))


def test_secrets_are_not_shown() -> None:
    key = {"certificate_path": "a", "private_key_data": "secret3"}
    shown = repr(info(token="secret1")) + repr(
        info(username="me", password="secret2", **key)
    )
    assert "secret" not in shown
    assert "me" in shown


@pytest.mark.parametrize(
    ("fields", "header"),
    [
        ({"token": "t"}, "bearer t"),
        ({"token": "t", "scheme": "Custom"}, "custom t"),
        ({"username": "me", "password": "secret"}, "basic bwu6c2vjcmv0"),
        ({}, None),
    ],
)
async def test_credentials_travel_as_they_are_meant(
    registry: Registry, fields: dict[str, Any], header: str | None
) -> None:
    async def script(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(http(b"{}"))

    async with server(script) as (url, seen):
        answer(registry, info(url, **fields))
        async with client(Logins(registry)) as api:
            await api.send(GET)
    assert seen[0].headers.get("authorization") == header


@asynccontextmanager
async def client(
    logins: Logins, clock: Clock | None = None
) -> AsyncIterator[KubernetesApi]:
    source = logins.source
    api = await connect(kubeconfig=None, context=None, source=source, clock=clock)
    try:
        yield api
    finally:
        await api.close()


async def test_a_coroutine_is_awaited_and_gets_what_it_asks_for(
    registry: Registry,
) -> None:
    @fnop.on.login(registry=registry, param="p")
    async def login(
        param: str, settings: fnop.Settings, activity: str, retry: int, **_: Any
    ) -> fnop.ConnectionInfo:
        await asyncio.sleep(0)
        return info(token=f"{param} {settings.operator} {activity} {retry}")

    assert await tokens(Logins(registry)) == ["Bearer p default login 0"]


# ---------------------------------------------------------- several, and none


@pytest.mark.parametrize(
    ("infos", "token"),
    [
        ([info(token="a"), info(token="b")], "a"),
        ([info(token="a"), info(token="b", priority=1)], "b"),
        ([None, info(token="b")], "b"),
        (
            [
                info(token="a", expiration=datetime(2025, 1, 1, tzinfo=UTC)),
                info(token="b"),
            ],
            "b",
        ),
        ([fnop.PermanentError("no"), info(token="b")], "b"),
    ],
)
async def test_the_best_answer_of_several_is_used(
    registry: Registry, infos: Iterable[Any], token: str
) -> None:
    for number, each in enumerate(infos):
        answer(registry, each, id=str(number))
    assert await tokens(Logins(registry)) == [f"Bearer {token}"]


async def test_where_nobody_knows_anything_it_is_the_kubeconfig(
    registry: Registry, tmp_path: Path
) -> None:
    file = write_kubeconfig(tmp_path, "https://there", {"token": "t"})
    answer(registry, None)
    login = await Logins(registry, file).source.login()
    assert login.server == "https://there"


async def test_what_was_rejected_is_tried_again_only_where_there_is_nothing_else(
    registry: Registry,
) -> None:
    answer(registry, *[info(token="a", priority=1)] * 3, id="a")
    answer(registry, *[info(token="b")] * 3, id="b")
    found = await tokens(Logins(registry), times=3)
    assert found == ["Bearer a", "Bearer b", "Bearer a"]


# -------------------------------------------------------------------- failures


async def test_a_handler_that_fails_for_good_says_why(registry: Registry) -> None:
    answer(registry, fnop.LoginError("the vault is sealed"))
    logins = Logins(registry)
    text = "login handler login failed for good: LoginError: the vault is sealed"
    with pytest.raises(ConfigurationProblem, match=text):
        await logins.source.login()
    assert [(say.level, say.message) for say in logins.said] == [("error", text)]


@pytest.mark.parametrize(
    ("answers", "options", "found"),
    [
        ([fnop.TemporaryError("later", delay=0)], {}, "Bearer t"),
        ([ValueError("oops")], {"backoff": 0}, "Bearer t"),
        ([ValueError("oops")] * 2, {"backoff": 0, "retries": 2}, "after 2 attempts"),
        ([ValueError("a")], {"errors": fnop.ErrorsMode.PERMANENT}, "ValueError: a"),
        ([ValueError("a")], {"timeout": 5, "backoff": 6}, "times out in 5 s, before"),
        (["a token"], {}, "it answers str, and not fnop.ConnectionInfo or None"),
        ([info(expiration=datetime(2020, 1, 1, tzinfo=UTC))], {}, "has expired"),
    ],
)
async def test_errors_are_judged_as_those_of_all_handlers(
    registry: Registry, answers: list[Any], options: dict[str, Any], found: str
) -> None:
    answer(registry, *answers, info(token="t"), **options)
    logins = Logins(registry)
    if found.startswith("Bearer"):
        assert await tokens(logins) == [found]
        assert "again in" in logins.said[0].message
    else:
        with pytest.raises(ConfigurationProblem, match=found):
            await logins.source.login()


async def test_a_handler_whose_errors_are_ignored_knows_nothing(
    registry: Registry, tmp_path: Path
) -> None:
    file = write_kubeconfig(tmp_path, "https://there")
    answer(registry, ValueError("oops"), errors=fnop.ErrorsMode.IGNORED)
    login = await Logins(registry, file).source.login()
    assert login.server == "https://there"


async def test_a_handler_that_hangs_is_not_waited_for(registry: Registry) -> None:
    @fnop.on.login(registry=registry, id="hangs", timeout=0.05)
    async def hangs(**_: Any) -> None:
        await asyncio.Future()

    with pytest.raises(ConfigurationProblem, match=r"no answer within 0\.05 s"):
        await Logins(registry).source.login()


def test_a_login_has_no_effects_to_yield(registry: Registry) -> None:
    with pytest.raises(RegistrationError, match="has no effects to yield"):

        @fnop.on.login(registry=registry)
        def yields(**_: Any) -> Any:
            yield fnop.sleep(1)


# --------------------------------------------------------------------- renewal


async def test_rejected_credentials_are_asked_for_anew(registry: Registry) -> None:
    """Also when the new ones are for another address."""

    async def script(seen: Seen, writer: asyncio.StreamWriter) -> None:
        good = seen.headers["authorization"] == "bearer t2"
        writer.write(http(b"{}", "200 OK" if good else "401 Unauthorized"))

    async with server(script) as (first, one), server(script) as (second, other):
        answer(registry, info(first, token="t1"), info(second, token="t2"))
        async with client(Logins(registry)) as api:
            answers = await asyncio.gather(*(api.send(GET) for _ in range(4)))
            assert (await api.send(GET)).status == 200
    assert [each.status for each in answers] == [200] * 4
    assert {each.headers["authorization"] for each in one} == {"bearer t1"}
    assert {each.headers["authorization"] for each in other} == {"bearer t2"}


def until(seconds: float, token: str) -> fnop.ConnectionInfo:
    moment = datetime.fromtimestamp(EPOCH + seconds, UTC)
    return info(token=token, expiration=moment)


async def test_expired_credentials_are_asked_for_anew(registry: Registry) -> None:
    async def script(seen: Seen, writer: asyncio.StreamWriter) -> None:
        good = seen.headers["authorization"] != "bearer t3"
        writer.write(http(b"{}", "200 OK" if good else "401 Unauthorized"))

    async with server(script) as (url, seen):

        def until(seconds: float, token: str) -> fnop.ConnectionInfo:
            moment = datetime.fromtimestamp(EPOCH + seconds, UTC)
            return info(url, token=token, expiration=moment)

        answers = [until(30, "t1"), until(60, "t2"), until(90, "t3"), ValueError("a")]
        answer(registry, *answers, retries=1)
        logins = Logins(registry)
        async with client(logins, clock=logins.clock) as api:

            async def sent(seconds: float) -> str:
                logins.clock.advance_to(seconds)
                await asyncio.gather(*(api.send(GET) for _ in range(3)))
                return seen[-1].headers["authorization"]

            assert [await sent(each) for each in (29.0, 30.0)] == [
                "bearer t1",
                "bearer t2",
            ]
            logins.clock.advance_to(89.0)
            assert (await api.send(GET)).status == 401
            logins.clock.advance_to(95.0)
            with pytest.raises(Unreachable, match="have expired and cannot be renewed"):
                await api.send(GET)


# --------------------------------------------------- what is found on the machine


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any credentials."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(service_account, "FOLDER", tmp_path / "account")
    return tmp_path


def kubeconfig(folder: Path, name: str = "config", **parts: Any) -> Path:
    """A file with a context `a`, of a cluster `a` and a user `a`."""
    given = {"server": HERE} | parts.get("cluster", {})
    document = {
        "current-context": "a",
        "contexts": [
            {
                "name": "a",
                "context": {"cluster": "a", "user": "a", "namespace": "mine"},
            }
        ],
        "clusters": [{"name": "a", "cluster": given}],
        "users": [{"name": "a", "user": parts.get("user", {"token": "t"})}],
    }
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(document | parts.get("more", {})))
    return file


async def test_a_login_handler_of_kopf_needs_another_name_alone(
    registry: Registry, home: Path
) -> None:
    kubeconfig(home, ".kube/config", user={"token": "secret"})

    @fnop.on.login(registry=registry, retries=3)
    def login(**kwargs: Any) -> fnop.ConnectionInfo | None:
        inside = fnop.login_with_service_account(**kwargs)
        return inside or fnop.login_with_kubeconfig(**kwargs)

    assert await tokens(Logins(registry)) == ["Bearer secret"]


def test_where_nothing_is_there_is_no_answer(home: Path) -> None:
    assert fnop.login_with_kubeconfig() is None
    assert fnop.login_with_service_account() is None


def test_who_has_no_home_has_no_kubeconfig_there(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a pod with a number that belongs to no user (OpenShift)."""

    def unknown(number: int) -> object:
        raise KeyError(number)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert fnop.login_with_kubeconfig() is None


def test_what_a_kubeconfig_says_is_taken_over(home: Path) -> None:
    (home / "token").write_text("from a file\n")
    (home / "folder").mkdir()
    for path in (home / "folder" / "ca.crt", home / "key"):
        path.touch()
    file = kubeconfig(
        home / "folder",
        cluster={"certificate-authority": "ca.crt", "proxy-url": "http://proxy:1"},
        user={"tokenFile": "../token"},
    )
    assert fnop.login_with_kubeconfig(kubeconfig=str(file)) == info(
        default_namespace="mine",
        ca_path=str(home / "folder" / "ca.crt"),
        proxy_url="http://proxy:1",
        token="from a file",
    )
    user = {"client-certificate-data": "Yw==", "client-key": str(home / "key")}
    cluster = {"insecure-skip-tls-verify": True}
    file = kubeconfig(home, cluster=cluster, user=user)
    assert fnop.login_with_kubeconfig(kubeconfig=str(file)) == info(
        default_namespace="mine",
        insecure=True,
        certificate_data="Yw==",
        private_key_path=str(home / "key"),
    )


def test_of_several_files_the_first_that_names_it_counts(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = {"contexts": [{"name": "b", "context": {"cluster": "a", "user": "b"}}]}
    users = {"users": [{"name": "b", "user": {"username": "me", "password": "p"}}]}
    first = kubeconfig(home, "first")
    second = kubeconfig(
        home, "second", cluster={"server": "https://there"}, more=there | users
    )
    monkeypatch.setenv("KUBECONFIG", f"{first}{os.pathsep}{home}/none:{second}")
    found = fnop.login_with_kubeconfig()
    assert found == info(token="t", default_namespace="mine")
    found = fnop.login_with_kubeconfig(context="b")
    assert found == info(username="me", password="p")


PLUGIN = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "command": "x",
    "interactiveMode": "Never",
}


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"user": {"exec": PLUGIN}}, "'exec', which .* answer None"),
        ({"user": {"exec": {"command": "x"}}}, "plugin x has no apiVersion; write"),
        ({"user": {"as-uid": "1"}}, "has as-uid, but nobody to be: add as: NAME"),
        ({"user": {"as": "a\nb"}}, "Impersonate-User: .* has a line's end"),
        ({"cluster": {"server": "ftp://h"}}, "'ftp://h' is not an http or https"),
        ({"more": {"current-context": "b"}}, "no context 'b' in .*; available: a"),
        (
            {"more": {"clusters": []}},
            "cluster 'a', which is not among its clusters",
        ),
        ({"cluster": {"extensions": [5]}}, "extensions of the cluster .* write mapp"),
        ({"cluster": {"extensions": {}}}, "extensions of the cluster .* is a mapping"),
        ({"more": {"users": "?"}}, "users is a text; write a list"),
        ({"more": {"users": []}}, "user 'a', which is not among its users"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_says_why(
    home: Path, parts: dict[str, Any], text: str
) -> None:
    file = kubeconfig(home, **parts)
    with pytest.raises(fnop.LoginError, match=text):
        fnop.login_with_kubeconfig(kubeconfig=str(file))


def test_schemes_may_be_in_capitals(home: Path) -> None:
    cluster = {"server": "HTTPS://H", "proxy-url": "HTTP://p:1"}
    found = fnop.login_with_kubeconfig(
        kubeconfig=str(kubeconfig(home, cluster=cluster, user={"token": "t"}))
    )
    assert found is not None
    assert (found.server, found.proxy_url) == ("https://H", "HTTP://p:1")


def test_a_file_that_is_no_kubeconfig_says_so(home: Path) -> None:
    with pytest.raises(fnop.LoginError, match="nowhere does not exist"):
        fnop.login_with_kubeconfig(kubeconfig="nowhere")
    for text, why in (("[", "broken:1 is not YAML: "), ("a", "no mapping")):
        (home / "broken").write_text(text)
        with pytest.raises(fnop.LoginError, match=why):
            fnop.login_with_kubeconfig(kubeconfig=str(home / "broken"))


@pytest.mark.parametrize(
    ("environment", "server"),
    [
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "https://10.0.0.1:443"),
        (
            {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"},
            "https://[fd00::1]:6443",
        ),
        ({}, "https://kubernetes.default.svc:443"),
    ],
)
def test_the_account_of_a_pod(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    server: str,
) -> None:
    for name in ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    account = home / "account"
    account.mkdir()
    (account / "token").write_text("t\n")
    assert fnop.login_with_service_account() == info(server, token="t")
    (account / "ca.crt").write_text("")
    (account / "namespace").write_text("mine")
    (account / "token").write_text("another")
    assert fnop.login_with_service_account() == info(
        server,
        token="another",
        ca_path=str(account / "ca.crt"),
        default_namespace="mine",
    )
