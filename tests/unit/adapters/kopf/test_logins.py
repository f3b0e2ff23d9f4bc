"""Logins of Kopf operators: for fnop, and for the author's client libraries."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fnop import kopf
from fnop.adapters.kopf.declaring.registry import OperatorRegistry
from fnop.adapters.kopf.running import logins
from fnop.adapters.kopf.running.logins import (
    AiohttpSession,
    connection_of,
    default_logins,
    login_via_async_client,
    login_via_client,
    login_via_pykube,
)
from fnop.core.handlers.declare.connection import ConnectionInfo, LoginError
from fnop.core.values.errors import ErrorsMode

INFO = ConnectionInfo(server="https://10.0.0.1:6443", token="t")


@pytest.mark.parametrize(
    ("given", "headers"),
    [
        ({"token": "t"}, {"Authorization": "Bearer t"}),
        ({"token": "t", "scheme": "Digest"}, {"Authorization": "Digest t"}),
        ({"username": "me", "password": "pw"}, {"Authorization": "Basic bWU6cHc="}),
        ({"insecure": True, "trust_env": True}, {}),
    ],
)
def test_clients_of_the_author_may_use_the_credentials(
    given: dict[str, Any], headers: dict[str, str]
) -> None:
    info = kopf.ConnectionInfo(server="https://10.0.0.1:6443", **given)
    assert info.as_http_headers() == headers
    assert info.as_ssl_context().check_hostname is not bool(info.insecure)
    with pytest.warns(DeprecationWarning, match="as_http_headers"):
        assert info.as_aiohttp_basic_auth() is None


@pytest.mark.parametrize("path", ["/ca.crt", b"/ca.crt", Path("/ca.crt")], ids=repr)
def test_the_paths_of_credentials_have_any_type(path: Any) -> None:
    info = kopf.ConnectionInfo(server="https://10.0.0.1:6443", ca_path=path)
    assert info.ca_path == "/ca.crt"
    assert dataclasses.replace(info, priority=1).priority == 1
    assert connection_of(info) is info


def test_credentials_are_passed_on() -> None:
    assert connection_of(INFO) is INFO
    assert connection_of(None) is None


def test_a_session_of_aiohttp_is_refused_with_the_remedy() -> None:
    session = AiohttpSession(server="https://x", aiohttp_session=object())
    with pytest.raises(LoginError, match=r"kopf\.ConnectionInfo"):
        connection_of(session)


@pytest.mark.parametrize("wrong", ["token", {"server": "x"}, object()], ids=range(3))
def test_what_cannot_be_credentials_is_refused(wrong: Any) -> None:
    with pytest.raises(LoginError, match=r"kopf\.ConnectionInfo, not "):
        connection_of(wrong)


class Library(types.ModuleType):
    """Stands for a client library with one place for its configuration."""

    class ConfigException(Exception):
        pass

    def __init__(self, name: str, *, in_cluster: bool, has_config: bool) -> None:
        super().__init__(name)
        self.calls: list[str] = []
        self.in_cluster, self.has_config = in_cluster, has_config

    def load_incluster_config(self) -> None:
        self.calls.append("in cluster")
        if not self.in_cluster:
            raise self.ConfigException("not in a cluster")

    def load_kube_config(self, **given: str) -> Any:
        self.calls.append("kubeconfig")
        self.given = given
        if not self.has_config:
            raise self.ConfigException("no kubeconfig")

        async def done() -> None: ...

        return done() if self.__name__.startswith("kubernetes_asyncio") else None


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A function that lets libraries be installed; all others are not."""
    installed: dict[str, Library] = {}
    known = importlib.util.find_spec

    def find_spec(name: str) -> Any:
        libraries = ("kubernetes", "kubernetes_asyncio", "pykube")
        return installed.get(name) if name in libraries else known(name)

    monkeypatch.setattr(logins, "find_spec", find_spec)
    monkeypatch.setattr(logins, "login_with_service_account", lambda **_: None)
    monkeypatch.setattr(logins, "login_with_kubeconfig", lambda **_: INFO)
    monkeypatch.delitem(sys.modules, "kubernetes_asyncio", raising=False)

    def add(name: str, *, in_cluster: bool = False, has_config: bool = True) -> Library:
        found = Library(f"{name}.config", in_cluster=in_cluster, has_config=has_config)
        installed[name] = found
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        monkeypatch.setitem(sys.modules, f"{name}.config", found)
        return found

    return add


async def logged_in(name: str, **cluster: str) -> Any:
    if name == "kubernetes_asyncio":
        return await login_via_async_client(**cluster)
    return {"kubernetes": login_via_client, "pykube": login_via_pykube}[name](
        logger=None, settings=None, **cluster
    )


LIBRARIES = ["kubernetes", "kubernetes_asyncio", "pykube"]


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.usefixtures("install")
async def test_a_library_that_is_not_installed_returns_none(name: str) -> None:
    assert await logged_in(name) is None


@pytest.mark.parametrize("name", LIBRARIES)
async def test_a_library_is_configured_and_fnop_has_the_same_credentials(
    install: Callable[..., Any], name: str
) -> None:
    library = install(name)
    assert await logged_in(name) is INFO
    wanted = [] if name == "pykube" else ["in cluster", "kubeconfig"]
    assert library.calls == wanted


async def test_the_account_of_the_pod_comes_first(install: Callable[..., Any]) -> None:
    library = install("kubernetes", in_cluster=True)
    assert await logged_in("kubernetes") is INFO
    assert library.calls == ["in cluster"]


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize(
    ("cluster", "options"),
    [
        ({"kubeconfig": "/a"}, {"config_file": "/a"}),
        ({"context": "staging"}, {"context": "staging"}),
    ],
    ids=["kubeconfig", "context"],
)
async def test_the_chosen_cluster_comes_before_all_others(
    install: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    cluster: dict[str, str],
    options: dict[str, str],
) -> None:
    library = install(name, in_cluster=True)
    asked: list[dict[str, str | None]] = []

    def login(**given: str | None) -> ConnectionInfo:
        asked.append(given)
        return INFO

    monkeypatch.setattr(logins, "login_with_kubeconfig", login)
    assert await logged_in(name, **cluster) is INFO
    assert asked == [{"kubeconfig": None, "context": None, **cluster}]
    if name != "pykube":
        assert (library.calls, library.given) == (["kubeconfig"], options)


async def test_a_library_that_finds_no_cluster_is_an_error(
    install: Callable[..., Any],
) -> None:
    install("kubernetes", has_config=False)
    with pytest.raises(
        LoginError, match="kubernetes cannot be configured: no kubeconfig"
    ):
        await logged_in("kubernetes")


def names(registry: OperatorRegistry) -> list[str]:
    return [each.fn.__name__ for each in default_logins(registry)]


def test_installed_libraries_log_an_operator_in(install: Callable[..., Any]) -> None:
    registry = OperatorRegistry()
    assert names(registry) == []
    install("pykube")
    install("kubernetes")
    assert names(registry) == ["login_via_pykube", "login_via_client"]
    options = [each.options["errors"] for each in default_logins(registry)]
    assert options == [ErrorsMode.IGNORED] * 2


def test_the_asynchronous_library_counts_if_the_operator_uses_it(
    install: Callable[..., Any],
) -> None:
    registry = OperatorRegistry()
    install("kubernetes_asyncio")
    assert names(registry) == ["login_via_async_client"]
    del sys.modules["kubernetes_asyncio"]
    assert names(registry) == []


def test_logins_of_the_author_replace_the_others(install: Callable[..., Any]) -> None:
    install("pykube")
    registry = OperatorRegistry()
    kopf.on.login(registry=registry)(lambda **_: INFO)
    assert default_logins(registry) == []
