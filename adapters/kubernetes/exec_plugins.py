"""Credential plugins: commands in a kubeconfig that print a token or a certificate.

fnop runs them as kubectl does (Kubernetes: client-go credential plugins): with the
cluster in KUBERNETES_EXEC_INFO if they ask for it, and with the terminal if they may
prompt. Their complaints belong in fnop's sentence, not between the lines of a log.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from errno import ENOENT
from pathlib import Path
from typing import Any

from returns.result import Success

from fnop.adapters.common.manifests import parsed_yaml
from fnop.core.values.errors import text_of
from fnop.effects.values import without_userinfo

__all__ = ["PluginProblem", "answered", "exec_info", "ill_typed", "problems_in"]

_GROUP = "client.authentication.k8s.io"
_VERSIONS = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")
# The name under which a cluster has settings for plugins.
_EXTENSION = f"{_GROUP}/exec"
_KIND = "ExecCredential"
_MODES = ("Never", "IfAvailable", "Always")
# The longest part of a plugin's complaint that is shown.
_COMPLAINT = 500
# The seconds to wait for its last output after it has ended.
_LAST_WORDS_SECONDS = 1.0

Section = Mapping[str, Any]


class PluginProblem(Exception):
    """A plugin has no answer; the text contains its complaint, and the reason."""


async def answered(plugin: Section, cluster: Section) -> dict[str, Any]:
    """Run a plugin without any `problems_in` it.

    Its credentials are fields of a `ConnectionInfo`. Raises `PluginProblem`.
    """
    command, version = plugin["command"], plugin["apiVersion"]
    if version not in _VERSIONS:
        raise PluginProblem(
            f"the plugin {command} has the apiVersion {version!r}; write one of "
            f"{', '.join(_VERSIONS)}"
        )
    interactive = _may_ask(plugin)
    given = plugin.get("env") or ()
    environment = os.environ | {e["name"]: e.get("value") or "" for e in given}
    info = exec_info(plugin, cluster, interactive=interactive)
    environment["KUBERNETES_EXEC_INFO"] = json.dumps(info)
    output = await _output(plugin, command, environment, interactive=interactive)
    return _credentials(output, version, command)


def exec_info(
    plugin: Section, cluster: Section, *, interactive: bool
) -> dict[str, Any]:
    """Describe the cluster to a plugin: an `ExecCredential` without a status.

    >>> plugin = {"apiVersion": "client.authentication.k8s.io/v1"}
    >>> exec_info(plugin, {}, interactive=False)["spec"]
    {'interactive': False}
    """
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.get("provideClusterInfo"):
        copied = (
            *("server", "tls-server-name", "insecure-skip-tls-verify"),
            *("certificate-authority-data", "proxy-url", "disable-compression"),
        )
        found = {key: cluster[key] for key in copied if cluster.get(key)}
        found["config"] = None
        if path := cluster.get("certificate-authority"):
            with suppress(OSError):  # the connection reports it
                data = b64encode(Path(path).read_bytes()).decode()
                found["certificate-authority-data"] = data
        for each in filter(None, cluster.get("extensions") or ()):
            if each.get("name") == _EXTENSION:
                found["config"] = each.get("extension")
        spec["cluster"] = found
    version = plugin["apiVersion"]
    return {"kind": _KIND, "apiVersion": version, "spec": spec}


def ill_typed(plugin: Section) -> Iterator[str]:
    """The names of a plugin's fields whose values have another type.

    >>> [*ill_typed({"command": "x", "args": [5], "provideClusterInfo": "true"})]
    ['provideClusterInfo', 'args']
    """
    for name, kind in _TYPES.items():
        value = plugin.get(name)
        if value is not None and not isinstance(value, kind):
            yield name
    if not _are_texts(_list_or_empty(plugin.get("args"))):
        yield "args"
    if not all(_is_variable(each) for each in _list_or_empty(plugin.get("env"))):
        yield "env"


def _list_or_empty(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


_TYPES: Mapping[str, type] = {
    **dict.fromkeys(("command", "apiVersion", "interactiveMode", "installHint"), str),
    "args": list,
    "env": list,
    "provideClusterInfo": bool,
}


def _are_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(each, str | None) for each in values)


def _is_variable(entry: Any) -> bool:
    known = isinstance(entry, dict)
    return known and _are_texts([entry.get("name", ""), entry.get("value", "")])


def problems_in(plugin: Section) -> Iterator[str]:
    """A sentence for each field that a kubeconfig lacks about a plugin.

    >>> [*problems_in({"apiVersion": "client.authentication.k8s.io/v1"})][0]
    "its user's exec has no command; write the name of the plugin"
    """
    command = plugin.get("command")
    if not command:
        yield "its user's exec has no command; write the name of the plugin"
    if not plugin.get("apiVersion"):
        yield f"the plugin {command} has no apiVersion; write {_VERSIONS[0]}"
    if _mode(plugin) not in _MODES:
        yield (
            f"the plugin {command} has the interactiveMode {_mode(plugin)!r}; write "
            f"one of {', '.join(_MODES)}"
        )
    if not all(each.get("name") for each in plugin.get("env") or ()):
        yield f"the plugin {command} has a variable (env) without a name"


def _mode(plugin: Section) -> Any:
    """The `interactiveMode`; the older version has one by default."""
    default = "IfAvailable" if plugin.get("apiVersion") == _VERSIONS[1] else None
    return plugin.get("interactiveMode") or default


def _may_ask(plugin: Section) -> bool:
    """Whether a plugin may prompt at the terminal, by its `interactiveMode`."""
    mode = _mode(plugin)
    terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
    if mode == "Always" and not terminal:
        raise PluginProblem(
            f"the plugin {plugin['command']} always asks at a terminal "
            "(interactiveMode), and there is none"
        )
    return mode != "Never" and terminal


class _Complaint(asyncio.Protocol):
    """The complaint of a plugin on standard error, of which only the end is kept."""

    def __init__(self) -> None:
        self.said, self.has_ended = bytearray(), asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.said += data
        del self.said[: -4 * _COMPLAINT]

    def connection_lost(self, problem: Exception | None) -> None:
        self.has_ended.set()

    def __str__(self) -> str:
        said = " ".join(self.said.decode(errors="replace").split())
        return without_userinfo(said)[-_COMPLAINT:]


async def _output(
    plugin: Section, command: str, environment: dict[str, str], *, interactive: bool
) -> bytes:
    """The output of a plugin, once it has ended.

    A process that it leaves behind may keep its standard error open. So this uses a
    pipe of its own.
    """
    complaint, ends = _Complaint(), os.pipe()
    with open(ends[0], "rb", 0) as reading, open(ends[1], "wb", 0) as writing:
        connected = asyncio.get_running_loop().connect_read_pipe
        transport, _ = await connected(lambda: complaint, reading)
        try:
            stderr = None if interactive else writing
            process = await _start_plugin(plugin, command, environment, stderr)
            writing.close()
            output = await _answer_of(process)
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS_SECONDS):
                    await complaint.has_ended.wait()
        finally:
            transport.close()
    if process.returncode:
        said = str(complaint)
        raise PluginProblem(
            f"the plugin {command} fails with exit code {process.returncode}"
            f"{f': {said}' if said else ''}"
        )
    return output


async def _start_plugin(
    plugin: Section, command: str, environment: dict[str, str], stderr: Any
) -> asyncio.subprocess.Process:
    # As in Go, the plugin is searched for in fnop's PATH, not in the PATH of its own
    # environment.
    found = command if os.sep in command else shutil.which(command)
    try:
        if found is None:
            raise FileNotFoundError(ENOENT, os.strerror(ENOENT))
        return await asyncio.create_subprocess_exec(
            found,
            *(each or "" for each in plugin.get("args") or ()),
            stdin=None if stderr is None else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            env=environment,
        )
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or text_of(problem)
        hint = " ".join(str(plugin.get("installHint") or "").split())
        raise PluginProblem(
            f"the plugin {command} cannot be run: {why}{f'; {hint}' if hint else ''}"
        ) from None


async def _answer_of(process: asyncio.subprocess.Process) -> bytes:
    try:
        output, _ = await process.communicate()
    except BaseException:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    return output


def _credentials(output: bytes, version: str, command: str) -> dict[str, Any]:
    try:
        found = json.loads(output)
    except ValueError:
        found = _parse_yaml(output)
    if found is None:
        raise PluginProblem(f"the plugin {command} does not answer in JSON") from None
    if not isinstance(found, dict) or found.get("kind", _KIND) != _KIND:
        raise PluginProblem(f"the plugin {command} answers no ExecCredential")
    if found.get("apiVersion") != version:
        raise PluginProblem(
            f"the plugin {command} answers in the apiVersion "
            f"{found.get('apiVersion')!r}, and not in that of the kubeconfig, {version}"
        )
    status = found.get("status")
    status = status if isinstance(status, dict) else {}
    for name in ("token", "clientCertificateData", "clientKeyData"):
        if not isinstance(status.get(name), str | None):
            raise PluginProblem(
                f"the plugin {command} answers a {name} that is not a text"
            )
    token = status.get("token") or None
    certificate = status.get("clientCertificateData") or None
    key = status.get("clientKeyData") or None
    if (certificate is None) != (key is None):
        raise PluginProblem(
            f"the plugin {command} answers a certificate or a key, and not both"
        )
    if token is None and certificate is None:
        raise PluginProblem(
            f"the plugin {command} answers neither a token nor a certificate"
        )
    return {
        "token": token,
        "certificate_data": certificate,
        "private_key_data": key,
        "expiration": _moment(status.get("expirationTimestamp"), command),
    }


def _parse_yaml(output: bytes) -> Section | None:
    """The answer in YAML, which kubectl reads as well."""
    try:
        read = parsed_yaml(output.decode())
    except UnicodeDecodeError:
        return None
    found = read.unwrap() if isinstance(read, Success) else None
    return found if isinstance(found, dict) else None


def _moment(text: Any, command: str) -> datetime | None:
    if text is None:
        return None
    with suppress(ValueError, TypeError):
        return datetime.fromisoformat(text)
    raise PluginProblem(
        f"the plugin {command} answers the expirationTimestamp {text!r}, which is no "
        "RFC 3339 time"
    )
