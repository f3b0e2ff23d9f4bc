"""Credential plugins: their input, and the messages about failing ones."""

from __future__ import annotations

import asyncio
import doctest
import json
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fnop.adapters.kubernetes import exec_plugins
from fnop.adapters.kubernetes.exec_plugins import (
    PluginProblem,
    answered,
    ill_typed,
    problems_in,
)
from tests.patience import patience

V1, V1BETA1 = (f"client.authentication.k8s.io/{each}" for each in ("v1", "v1beta1"))
# It returns its input as its token.
ECHO = """
import json, os, sys
told = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
seen = [told["spec"], sys.argv[1:], os.environ.get("MARK"), sys.stdin.read()]
token = json.dumps(seen)
status = {"token": token, **json.loads(os.environ.get("STATUS", "{}"))}
print(json.dumps({**told, "status": status}))
"""


def plugin(code: str = ECHO, *args: str, **fields: Any) -> dict[str, Any]:
    usual = {"apiVersion": V1, "command": sys.executable, "interactiveMode": "Never"}
    return {**usual, "args": ["-ISc", code, *args], **fields}


async def told(given: dict[str, Any], cluster: dict[str, Any]) -> list[Any]:
    found: list[Any] = json.loads((await answered(given, cluster))["token"])
    return found


async def test_a_plugin_is_told_of_its_cluster_if_it_wants() -> None:
    settings = {"name": "client.authentication.k8s.io/exec", "extension": {"a": 1}}
    other = {"name": "other", "extension": 5}
    cluster: dict[str, Any] = {"server": "https://h", "tls-server-name": "n", "x": 1}
    cluster |= {"extensions": [other, settings], "insecure-skip-tls-verify": False}
    given = plugin(ECHO, "a b", env=[{"name": "MARK", "value": "m"}])
    assert await told(given, cluster) == [{"interactive": False}, ["a b"], "m", ""]
    spec, *_ = await told(given | {"provideClusterInfo": True}, cluster)
    seen = {"server": "https://h", "tls-server-name": "n", "config": {"a": 1}}
    assert spec == {"interactive": False, "cluster": seen}


async def test_an_authority_in_a_file_is_told_as_data(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"abc")
    cluster = {"server": "s", "certificate-authority": str(tmp_path / "ca.pem")}
    spec, *_ = await told(plugin(provideClusterInfo=True), cluster)
    assert spec["cluster"]["certificate-authority-data"] == "YWJj"


async def test_an_answer_may_expire_and_have_a_certificate() -> None:
    status = {
        "expirationTimestamp": "2030-01-01T00:00:00Z",
        "clientCertificateData": "c",
        "clientKeyData": "k",
    }
    found = await answered(
        plugin(env=[{"name": "STATUS", "value": json.dumps(status)}]), {}
    )
    assert found["expiration"] == datetime(2030, 1, 1, tzinfo=UTC)
    assert (found["certificate_data"], found["private_key_data"]) == ("c", "k")


SAYS = "import sys; print({!r}); sys.exit({})"


def answer(**status: Any) -> str:
    found = {"kind": "ExecCredential", "apiVersion": V1, "status": status}
    return SAYS.format(json.dumps(found), 0)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (plugin("import sys; sys.exit('go away')"), "exit code 1: go away"),
        (plugin("import sys; sys.exit(3)"), "fails with exit code 3$"),
        (
            plugin("import sys; sys.exit('at https://me:s3cr3t@idp')"),
            r"at https://\*\*\*@idp$",
        ),
        (
            plugin(command="no-such-plugin", installHint="Get it\n  from me."),
            "no-such-plugin cannot be run: No such file or directory; Get it from me.",
        ),
        (plugin(SAYS.format("no", 0)), "does not answer in JSON"),
        (plugin(SAYS.format("[]", 0)), "answers no ExecCredential"),
        (plugin(answer()), "neither a token nor a certificate"),
        (plugin(answer(clientKeyData="k")), "a certificate or a key, and not both"),
        (plugin(answer(token=5)), "answers a token that is not a text"),
        (plugin(answer(clientKeyData={})), "a clientKeyData that is not a text"),
        (
            plugin(answer(token="t", expirationTimestamp="soon")),
            "'soon', which is no RFC",
        ),
        (
            plugin(answer(token="t"), apiVersion=V1BETA1),
            "not in that of the kubeconfig",
        ),
        (plugin(apiVersion="v1alpha1"), "apiVersion 'v1alpha1'; write one of"),
        (plugin(interactiveMode="Always"), "always asks at a terminal"),
    ],
)
async def test_a_plugin_without_an_answer_says_why(
    given: dict[str, Any], text: str
) -> None:
    with pytest.raises(PluginProblem, match=text) as problem:
        await answered(given, {})
    assert "\n" not in str(problem.value)
    assert "s3cr3t" not in str(problem.value)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"command": None}, "has no command"),
        ({"command": ""}, "has no command"),
        ({"apiVersion": None}, f"has no apiVersion; write {V1}"),
        ({"interactiveMode": None}, "interactiveMode None; write one of Never"),
        ({"interactiveMode": "Maybe"}, "interactiveMode 'Maybe'"),
        ({"env": [{"value": "5"}]}, "a variable (env) without a name"),
    ],
)
def test_what_a_kubeconfig_says_wrongly_is_told(
    given: dict[str, Any], text: str
) -> None:
    (found,) = problems_in(plugin() | given)
    assert text in found


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, []),
        ({"args": None, "env": None, "installHint": "x"}, []),
        ({"args": [5]}, ["args"]),
        ({"args": "a"}, ["args"]),
        ({"env": [{"name": "A", "value": 5}]}, ["env"]),
        ({"env": ["A=5"]}, ["env"]),
        ({"env": {"A": "5"}}, ["env"]),
        (
            {"command": 5, "provideClusterInfo": "yes"},
            ["command", "provideClusterInfo"],
        ),
    ],
)
def test_types_that_a_field_has_not_are_found(
    given: dict[str, Any], names: list[str]
) -> None:
    assert [*ill_typed(plugin() | given)] == names


def test_the_older_version_may_ask_if_there_is_a_terminal() -> None:
    assert [*problems_in(plugin(apiVersion=V1BETA1, interactiveMode=None))] == []
    assert doctest.testmod(exec_plugins).failed == 0


async def test_a_plugin_that_is_not_awaited_any_more_ends(tmp_path: Path) -> None:
    code = "import os, signal, sys; open(sys.argv[1], 'w').write(str(os.getpid())); "
    file = tmp_path / "pid"
    task = asyncio.create_task(answered(plugin(code + "signal.pause()", str(file)), {}))
    while not (file.exists() and file.read_text()):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not Path(f"/proc/{file.read_text()}").exists()


async def test_what_a_plugin_leaves_running_is_not_awaited(tmp_path: Path) -> None:
    code = """
import subprocess, sys
idle = [sys.executable, "-ISc", "import signal; signal.pause()"]
quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
left = subprocess.Popen(idle, **quiet)
open(sys.argv[1], "w").write(str(left.pid))
"""
    file = tmp_path / "pid"
    given = plugin(code + answer(token="t"), str(file))
    try:
        async with asyncio.timeout(patience(5)):
            assert (await answered(given, {}))["token"] == "t"
    finally:
        os.kill(int(file.read_text()), signal.SIGKILL)


async def test_an_answer_may_be_in_yaml() -> None:
    lines = f"kind: ExecCredential\napiVersion: {V1}\nstatus:\n  token: t\n"
    lines += "  expirationTimestamp: 2030-01-01T00:00:00Z\n"
    found = await answered(plugin(f"print({lines!r})"), {})
    assert found["token"] == "t"
    assert found["expiration"] == datetime(2030, 1, 1, tzinfo=UTC)


async def test_a_plugin_is_found_by_our_path_and_not_by_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my-login").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / "my-login").chmod(0o755)
    given = plugin(command="my-login", env=[{"name": "PATH", "value": "/nowhere"}])
    with pytest.raises(PluginProblem, match="No such file"):
        await answered(given, {})
    monkeypatch.setenv("PATH", str(tmp_path))
    assert await answered(given, {})
