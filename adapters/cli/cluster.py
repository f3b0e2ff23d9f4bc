"""The command `fnop cluster`: a simulated cluster behind HTTP."""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import signal
import ssl
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from fnop.adapters.cli.option_fields import option, takes
from fnop.adapters.common.durations import seconds_in
from fnop.adapters.common.endings import fail, warn
from fnop.adapters.common.plain import echo
from fnop.adapters.serving.cluster_kubeconfig import (
    KubeconfigProblem,
    write_kubeconfig,
)

if TYPE_CHECKING:
    from fnop.adapters.serving.certificates import Authority, Pair
    from fnop.interpreters.cluster import Cluster
    from fnop.interpreters.cluster.controllers.paces import Pace

__all__ = ["cluster"]

ADMIN, ADMINS = "kubernetes-admin", "system:masters"


@dataclass(frozen=True, kw_only=True)
class ClusterCommandOptions:
    """The options of `fnop cluster`."""

    port: int = option(
        "--port",
        type=click.IntRange(0, 65535),
        default=8001,
        show_default=True,
        help="The port to listen on; 0 takes a free one.",
    )
    host: str = option(
        "--host",
        default="127.0.0.1",
        show_default=True,
        metavar="ADDRESS",
        help="The address to listen on. An address for other machines needs TLS.",
    )
    kubeconfig: str | None = option(
        "--kubeconfig",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help="Write a kubeconfig of the cluster's admin.",
    )
    manifests: tuple[str, ...] = option(
        "-f",
        "--filename",
        multiple=True,
        type=click.Path(exists=True, allow_dash=True),
        metavar="MANIFEST",
        help="Begin with the objects of this file or folder (- for standard input); "
        "repeat it for several.",
    )
    rbac: bool = option(
        "--rbac",
        is_flag=True,
        help="Authorize requests by roles and bindings. Implies --tls.",
    )
    tokens: str | None = option(
        "--tokens",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help='Bearer tokens of users, in lines of: token,user,uid,"group1,group2". '
        "Implies --tls.",
    )
    tls: bool | None = option(
        "--tls/--no-tls",
        default=None,
        help="Serve HTTPS, with a certificate authority made at the start.",
    )
    controllers: tuple[str, ...] = option(
        "--controllers",
        multiple=True,
        metavar="NAME=PACE",
        help="Set a built-in controller on, off, stuck, or late by some time, such as "
        "deployment=stuck or kubelet=5s; repeat it for several.",
    )
    services: tuple[str, ...] = option(
        "--service",
        multiple=True,
        metavar="NAMESPACE/NAME=PORT",
        help="The port of 127.0.0.1 at which a Service's webhooks listen.",
    )
    seed: str | None = option(
        "--seed", metavar="TEXT", help="The seed of uids and generated names."
    )

    def __post_init__(self) -> None:
        if self.is_secured and self.tls is False:
            raise click.UsageError("--rbac and --tokens are served with TLS only")
        if not _is_loopback(self.host) and not self.has_tls:
            raise click.UsageError(
                f"--host {self.host} lets other machines in: that needs --tls, "
                "better with --rbac"
            )
        if self.has_tls and self.kubeconfig is None:
            raise click.UsageError(
                "--tls needs --kubeconfig FILE, for the certificates"
            )

    @property
    def is_secured(self) -> bool:
        """Whether clients have to say who they are."""
        return self.rbac or self.tokens is not None

    @property
    def has_tls(self) -> bool:
        return self.is_secured or bool(self.tls)


@click.command()
@takes(ClusterCommandOptions)
def cluster(given: ClusterCommandOptions) -> None:
    """Serve a simulated Kubernetes cluster over HTTP until it is stopped.

    It needs no containers and no binaries, keeps everything in memory, and ends
    with the command.  Any client can use it:

    \b
      fnop cluster --kubeconfig kc -f crd.yaml
      kubectl --kubeconfig kc get namespaces
      fnop run operator.py --kubeconfig kc

    Anyone who reaches the cluster may do everything, unless --rbac or --tokens forbid
    it.

    Exit status: 0 when stopped, 1 when it cannot serve, 2 for a wrong call.
    """
    _log()
    _allow_files()
    try:
        _loop_runner()(_serve(given))
    except (ServingProblem, KubeconfigProblem) as problem:
        fail(str(problem))


class ServingProblem(Exception):
    """The cluster cannot be served; the text is one sentence."""


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _allow_files() -> None:
    """Raise the limit of open files for connections; many systems begin with 1,024."""
    try:
        import resource
    except ImportError:  # Windows
        return
    from fnop.adapters.serving.api_limits import CONNECTIONS_MAX

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS_MAX + 100
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _log() -> None:
    from fnop.adapters.common.logs import configure

    configure(level="warning", format="text", prefix=None)


def _loop_runner() -> Any:
    """uvloop if it is installed; else asyncio's own loop."""
    try:
        return import_module("uvloop").run
    except ImportError:
        return asyncio.run


# ------------------------------------------------------------------- serving


async def _serve(given: ClusterCommandOptions) -> None:
    from fnop.adapters.serving.api_server import HttpServer
    from fnop.adapters.serving.cluster_host import Host
    from fnop.adapters.serving.webhook_calls import WebhookCaller
    from fnop.interpreters.runtime.clock import SystemClock

    clock = SystemClock()
    call = WebhookCaller(dict(map(_service, given.services)))
    host = Host(_initial_cluster(given, clock.now().wall), clock, call)
    found = _secrets(given, clock.now().wall) if given.has_tls else None
    server = HttpServer(host, _login(host, given))
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows: Ctrl-C ends the loop
            loop.add_signal_handler(number, stopped.set)
    try:
        port = await server.start(
            given.host,
            given.port,
            None if found is None else found.context,
        )
    except OSError as problem:
        raise ServingProblem(_why_not(given, problem)) from problem
    try:
        _announce(given, port, found)
        await stopped.wait()
    finally:
        await server.close()


def _why_not(given: ClusterCommandOptions, problem: OSError) -> str:
    import errno

    where = f"{given.host}:{given.port}"
    if problem.errno == errno.EADDRINUSE:
        return f"{where} is taken; choose another --port, or 0 for a free one"
    return f"cannot listen on {where}: {problem.strerror or problem}"


def _initial_cluster(given: ClusterCommandOptions, now: float) -> Cluster:
    """The cluster with the objects of the manifests."""
    from fnop.interpreters.cluster import answer, empty_cluster, paced

    seed = given.seed or secrets.token_hex(4)
    state = empty_cluster(seed, now, rbac=given.rbac)
    try:
        state = paced(state, dict(map(_pace, given.controllers)))
    except ValueError as problem:
        raise ServingProblem(f"--controllers {problem}") from problem
    from fnop.adapters.common.manifests import ManifestProblem, read_manifests
    from fnop.adapters.serving.cluster_client import ObjectProblem, populate
    from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse

    def send(request: ApiRequest) -> ApiResponse:
        nonlocal state
        state, response, _ = answer(state, request, now)
        return response

    try:
        populate(lambda: state.registry, send, read_manifests(given.manifests, warn))
    except (ManifestProblem, ObjectProblem) as problem:
        raise ServingProblem(str(problem)) from problem
    return state


def _pace(text: str) -> tuple[str, Pace]:
    from fnop.interpreters.cluster import Off, On, Slow, Stuck

    name, _, said = text.partition("=")
    known: dict[str, Pace] = {"on": On(), "off": Off(), "stuck": Stuck()}
    if said in known:
        return name, known[said]
    try:
        return name, Slow(seconds_in(said))
    except ValueError:
        raise ServingProblem(
            f"--controllers {text}: write NAME=on, NAME=off, NAME=stuck, or NAME=5s"
        ) from None


def _service(text: str) -> tuple[tuple[str, str], int]:
    named, _, port = text.partition("=")
    namespace, slash, name = named.partition("/")
    is_port = port.isdecimal() and 0 < int(port[:6]) < 65536
    if not (namespace and slash and name and is_port):
        raise ServingProblem(
            f"--service {text}: write NAMESPACE/NAME=PORT, such as default/hooks=9443"
        )
    return (namespace, name), int(port)


class Secrets(Struct, frozen=True):
    """The server's TLS settings, its authority, and the admin's certificate."""

    context: ssl.SSLContext
    authority: Authority
    admin: Pair


def _secrets(given: ClusterCommandOptions, now: float) -> Secrets:
    from fnop.adapters.serving.certificates import Authority, TlsMissing, server_context

    try:
        authority = Authority(now)
    except TlsMissing as problem:
        raise ServingProblem(str(problem)) from problem
    names = dict.fromkeys((given.host, "127.0.0.1", "::1", "localhost"))
    pair = authority.for_server((*names, "kubernetes", "kubernetes.default.svc"))
    admin = authority.for_client(ADMIN, (ADMINS,))
    return Secrets(server_context(authority, pair), authority, admin)


def _login(host: Any, given: ClusterCommandOptions) -> Any:
    from fnop.adapters.serving.cluster_login import (
        Admin,
        Authentication,
        TokenProblem,
        read_tokens,
    )

    if not given.is_secured:
        return Admin(host)
    try:
        tokens = read_tokens(given.tokens) if given.tokens else {}
    except TokenProblem as problem:
        raise ServingProblem(str(problem)) from problem
    return Authentication(host, tokens)


def _announce(given: ClusterCommandOptions, port: int, found: Secrets | None) -> None:
    url = f"{'https' if found else 'http'}://{_host_in_url(given.host)}:{port}"
    path = given.kubeconfig
    if path is not None:
        admin = None if found is None else (found.authority.certificate, found.admin)
        write_kubeconfig(path, url, admin)
    if not _is_loopback(given.host):
        echo(
            f"fnop: warning: other machines can reach {given.host}:{port}",
            err=True,
        )
    echo(f"serving a simulated cluster at {url}")
    if path is not None:
        echo(f"export KUBECONFIG={Path(path).absolute()}")
    else:
        echo(f"kubectl --server {url} get namespaces")
    sys.stdout.flush()


def _host_in_url(host: str) -> str:
    """An address as URLs have it; a wildcard address is reached through loopback."""
    if host in ("0.0.0.0", ""):
        return "127.0.0.1"
    if host == "::":
        return "[::1]"
    return f"[{host}]" if ":" in host else host
