"""The legacy provider of a kubeconfig: tokens are renewed, and written back."""

from __future__ import annotations

import asyncio
import doctest
import json
import os
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import yaml

from fnop.adapters.kubernetes import oidc
from fnop.adapters.kubernetes.kubeconfig import ConfigurationProblem, find_source
from fnop.adapters.kubernetes.oidc import Home, OidcProblem, refreshed
from fnop.adapters.kubernetes.transports import cut
from fnop.interpreters.runtime.clock import SystemClock
from tests.scripted_server import http

FUTURE = SystemClock().now().wall + 3600


def token(expiry: float, mark: str = "x") -> str:
    claims = b64encode(json.dumps({"exp": int(expiry)}).encode()).decode().rstrip("=")
    return f"e30.{claims}.{mark}"


class Provider:
    """An identity provider: each refresh token is good for one use."""

    def __init__(
        self, *, secret: str = "", header: bool = True, **answers: Any
    ) -> None:
        self.good, self.secret, self.header = "first", secret, header
        self.answers, self.asked = answers, 0
        self.url = ""

    async def __aenter__(self) -> Provider:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                size = head.partition("content-length: ")[2].partition("\r")[0]
                body = await reader.readexactly(int(size or 0))
                writer.write(self._answer(head, parse_qs(body.decode())))
        except (asyncio.IncompleteReadError, OSError):
            cut(writer.transport)

    def _answer(self, head: str, form: dict[str, list[str]]) -> bytes:
        if head.startswith("get /.well-known/openid-configuration"):
            return http(json.dumps({"token_endpoint": f"{self.url}/token"}).encode())
        self.asked += 1
        basic = b64encode(f"fnop:{self.secret}".encode()).decode().lower()
        by_header = f"authorization: basic {basic}" in head
        by_form = form.get("client_id") == ["fnop"] and form.get(
            "client_secret", [""]
        ) == [self.secret]
        known = by_header if self.header and self.secret else by_form
        if not known or form["refresh_token"] != [self.good]:
            error = {"error": "invalid_grant", "error_description": "go away"}
            return http(json.dumps(error).encode(), "400 Bad Request")
        self.good = f"refresh {self.asked}"
        found = {"id_token": token(FUTURE, "new"), "refresh_token": self.good}
        return http(json.dumps({**found, **self.answers}).encode())


def written(folder: Path, provider: Provider, **config: Any) -> Path:
    settings = {
        "idp-issuer-url": f"{provider.url}/",
        "client-id": "fnop",
        "id-token": token(5),
        "refresh-token": "first",
    } | ({"client-secret": provider.secret} if provider.secret else {})
    chosen = {key: e for key, e in (settings | config).items() if e is not None}
    user = {"auth-provider": {"name": "oidc", "config": chosen}}
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://h"}}],
        "users": [
            {"name": "other", "user": {"token": "ü"}},
            {"name": "u", "user": user},
        ],
    }
    file = folder / "config"
    file.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    file.chmod(0o640)
    return file


def settings_in(file: Path) -> dict[str, Any]:
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    found: dict[str, Any] = document["users"][1]["user"]["auth-provider"]["config"]
    return found


@pytest.mark.parametrize(
    ("secret", "header"),
    [("", False), ("s/e cret", True), ("secret", False)],
    ids=["a public client", "a secret in the header", "a secret in the form"],
)
async def test_a_token_is_renewed_again_and_again(
    tmp_path: Path, secret: str, header: bool
) -> None:
    """As from one run to the next: the new refresh token is the one that counts."""
    if header:
        secret = secret.replace("/", "").replace(" ", "")
    async with Provider(secret=secret, header=header) as provider:
        file = written(tmp_path, provider)
        info = await find_source(str(file), None).login()
        assert info.token == token(FUTURE, "new")
        assert info.expiration is not None
        assert info.expiration.timestamp() == int(FUTURE) - oidc.EXPIRY_SECONDS
        assert settings_in(file)["refresh-token"] == provider.good
        await find_source(str(file), None).login()
        known = settings_in(file)
        assert known["id-token"] == token(FUTURE, "new")
        file.write_text(file.read_text().replace(known["id-token"], token(5)))
        await find_source(str(file), None).login()
        assert settings_in(file)["refresh-token"] == provider.good
    assert file.stat().st_mode & 0o777 == 0o640
    assert yaml.safe_load(file.read_text(encoding="utf-8"))["users"][0] == {
        "name": "other",
        "user": {"token": "ü"},
    }
    assert [each.name for each in tmp_path.iterdir()] == ["config"]


async def test_an_answer_without_a_new_refresh_token_keeps_the_old_one(
    tmp_path: Path,
) -> None:
    async with Provider(refresh_token=None) as provider:
        file = written(tmp_path, provider)
        await find_source(str(file), None).login()
        assert settings_in(file)["refresh-token"] == "first"


@pytest.mark.parametrize(
    ("config", "answers", "text"),
    [
        ({"refresh-token": None}, {}, "there is no refresh-token to renew it with"),
        ({"client-id": None}, {}, "there is no client-id"),
        ({"refresh-token": "other"}, {}, r"HTTP 400\): invalid_grant go away"),
        ({}, {"id_token": None}, "answers no id_token; log in with the scope openid"),
        (
            {"idp-issuer-url": "http://127.0.0.1:1"},
            {},
            "identity provider .*127.0.0.1:1",
        ),
        ({"idp-certificate-authority": "/nowhere"}, {}, "idp-certificate-authority"),
        ({"idp-certificate-authority-data": "YQ=="}, {}, "idp-certificate-authority"),
    ],
)
async def test_what_keeps_a_token_from_being_renewed_is_said(
    tmp_path: Path, config: dict[str, Any], answers: dict[str, Any], text: str
) -> None:
    async with Provider(**answers) as provider:
        file = written(tmp_path, provider, **config)
        before = file.read_text(encoding="utf-8")
        with pytest.raises(ConfigurationProblem, match=text) as problem:
            await find_source(str(file), None).login()
    assert str(problem.value).startswith(f"{file}: ")
    assert file.read_text(encoding="utf-8") == before


async def test_a_kubeconfig_that_kubectl_writes_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oidc, "LOCK_SECONDS", 0.01)
    async with Provider() as provider:
        file = written(tmp_path, provider)
        lock = tmp_path / "config.lock"
        lock.touch()
        provider_section = {"name": "oidc", "config": settings_in(file)}
        with pytest.raises(OidcProblem, match=r"config.lock exists; remove it"):
            await refreshed(provider_section, Home(file, "u"))
        assert lock.exists()


async def test_a_link_to_a_kubeconfig_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    async with Provider() as provider:
        file = written(tmp_path / "real", provider)
        link = tmp_path / "link"
        os.symlink(file, link)
        await find_source(str(link), None).login()
        assert link.is_symlink()
        assert settings_in(file)["refresh-token"] == provider.good


def test_the_examples_hold() -> None:
    assert doctest.testmod(oidc).failed == 0
