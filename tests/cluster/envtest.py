"""A real API server of its own: etcd, kube-apiserver and, if there, the controllers.

The binaries are searched for in the folder that KUBEBUILDER_ASSETS names, as
`setup-envtest` and other tools leave them. Everything listens on 127.0.0.1, on free
ports, and lives in one folder. The processes end with `stop()` and, if the system
supports it, with the process that started them.
"""

from __future__ import annotations

import base64
import http.client
import itertools
import json
import os
import select
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.patience import happens, patience

__all__ = ["ApiServer", "missing", "running"]

# For an answer that comes, and for one that says whether a server is ready.
WAIT_SECONDS, READY_SECONDS = patience(20), patience(2)
SERVER_SECONDS = 2.0

CONTROLLERS = (
    "garbagecollector,namespace,serviceaccount,serviceaccount-token,"
    "root-ca-cert-publisher,clusterrole-aggregation,deployment,replicaset,"
    "statefulset,daemonset,job,cronjob,endpoint,endpointslice,resourcequota,disruption"
)

SERVER_NAMES = (
    "subjectAltName=IP:127.0.0.1,IP:10.0.0.1,DNS:localhost,DNS:kubernetes,"
    "DNS:kubernetes.default,DNS:kubernetes.default.svc"
)

# The tokens of the server: one may do everything, RBAC grants the other nothing.
ADMIN_TOKEN, NOBODY_TOKEN = "token-of-the-admin", "token-of-nobody"

# What any request may be answered, and every client sends again: the watch cache of a
# kind starts anew after an edit of its definition (Kubernetes 1.31 and later), or
# priority and fairness have no seat. Nothing has been done then.
NOT_READY = (b"storage is (re)initializing", b"too many requests, please try again")


def assets() -> Path:
    """The folder with the binaries; it may be a folder that does not exist."""
    return Path(os.environ.get("KUBEBUILDER_ASSETS") or "/nonexistent")


def missing() -> str | None:
    """Why no API server can be started here, or None."""
    needed = [assets() / name for name in ("etcd", "kube-apiserver")]
    if not all(os.access(path, os.X_OK) for path in needed):
        return (
            "needs a real API server: "
            "set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver"
        )
    if shutil.which("openssl") is None:
        return "needs a real API server: its certificates are made with openssl"
    return None


class ApiServer:
    """A running API server and a plain client of it, which has nothing of ours."""

    def __init__(
        self, url: str, folder: Path, tls: ssl.SSLContext | None = None
    ) -> None:
        self.url = url
        self.kubeconfig = folder / "kubeconfig"
        """Cluster admin with a client certificate."""
        self.token_kubeconfig = folder / "kubeconfig.token"
        """Cluster admin with a bearer token."""
        self.nobody_kubeconfig = folder / "kubeconfig.nobody"
        """A user whom RBAC grants nothing."""
        self.pki = folder / "pki"
        """ca.crt, admin.crt and admin.key."""
        self.warnings: list[str] = []
        """The texts of the warnings of the last answer."""
        self._tls = tls
        self._connection: http.client.HTTPSConnection | None = None
        self._lock = threading.Lock()
        self._names = itertools.count(1)

    def raw(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        """Send one request as the admin; its HTTP status and parsed JSON (or text).

        What the server refuses because it is not ready is sent again: see `NOT_READY`.
        """
        target = path if not query else f"{path}?{urlencode(query)}"
        data = None if body is None else compact(body)
        given = {"Content-Type": content_type, "Accept": "application/json"}
        sent = [
            (name, each)
            for name, value in {**given, **(headers or {})}.items()
            # The one header that is sent once for each of its values.
            for each in (value.split(",") if name == "Impersonate-Group" else [value])
        ]
        status, text = 0, b""

        def is_answered() -> bool:
            nonlocal status, text
            with self._lock:
                status, text = self._exchange(method, target, data, sent)
            return not is_not_ready(status, text)

        happens(is_answered, every=0.05)
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text.decode()

    def _exchange(
        self,
        method: str,
        target: str,
        data: bytes | None,
        headers: Sequence[tuple[str, str]] = (),
    ) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = self._connected(WAIT_SECONDS)
        if _is_dropped(self._connection.sock):
            self._connection.close()  # it was idle for too long
        try:
            self._connection.putrequest(method, target)
            for name, value in headers:
                self._connection.putheader(name, value)
            if method != "GET":
                self._connection.putheader("Content-Length", str(len(data or b"")))
            self._connection.endheaders(data)
            response = self._connection.getresponse()
            self.warnings = warnings_of(response)
            return response.status, response.read()
        except (http.client.HTTPException, OSError):
            self._connection.close()  # the next request opens a new connection
            raise

    def _connected(self, timeout: float | None) -> http.client.HTTPSConnection:
        host, _, port = self.url.removeprefix("https://").partition(":")
        tls = self._tls or admin_tls(self.pki)
        return http.client.HTTPSConnection(
            host, int(port), timeout=timeout, context=tls
        )

    @contextmanager
    def watching(
        self,
        path: str,
        query: Mapping[str, str],
        *,
        timeout: float | None = WAIT_SECONDS,
    ) -> Iterator[tuple[int, Iterator[Any]]]:
        """Follow a watch on a connection of its own: its status and its lines.

        The lines end when the block has ended, in whatever thread they are read.
        """
        connection = self._connected(timeout)
        connection.connect()
        stream: socket.socket = connection.sock  # the response takes it over
        try:
            connection.request("GET", f"{path}?{urlencode({'watch': 'true', **query})}")
            response = connection.getresponse()
            yield response.status, map(json.loads, lines_of(response))
        finally:
            with suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)
            connection.close()

    def metrics(self) -> str:
        """The text of the server's metrics."""
        with self._lock:
            status, text = self._exchange("GET", "/metrics", None)
        assert status == 200, text
        return text.decode()

    def namespace(self) -> str:
        """Create a namespace that no other test uses; return its name."""
        name = f"test-{os.getpid()}-{next(self._names)}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        status, answer = self.raw("POST", "/api/v1/namespaces", body)
        assert status == 201, answer
        return name

    def close(self) -> None:
        """Close the plain client's connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def is_not_ready(status: int, text: bytes) -> bool:
    """Whether the server answered about itself, before it looked at the request."""
    return status == 429 and any(words in text.lower() for words in NOT_READY)


def warnings_of(response: http.client.HTTPResponse) -> list[str]:
    """The texts in the headers Warning: 299 - "text"."""
    values = response.headers.get_all("Warning") or []
    return [json.loads(value.split(" ", 2)[2]) for value in values]


def compact(body: Any) -> bytes:
    """A body without blanks, as most clients send it."""
    return json.dumps(body, separators=(",", ":")).encode()


def _is_dropped(stream: socket.socket | None) -> bool:
    """Whether an idle connection has something to read: that is its end."""
    return stream is not None and bool(select.select([stream], [], [], 0)[0])


def lines_of(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """The lines until the server, or we ourselves, end the connection."""
    with suppress(http.client.HTTPException, OSError, ValueError, AttributeError):
        yield from response


# ----------------------------------------------------------------- processes


@contextmanager
def running(folder: Path, *, controllers: bool = True) -> Iterator[ApiServer]:
    """Start everything in the folder; end all of it on the way out, whatever happens.

    Without `controllers` nothing happens in the cluster but what clients do.
    Raises `RuntimeError` with the tail of the log if a process does not get ready.
    """
    make_certificates(folder / "pki")
    etcd_port, peer_port, port, manager_port = free_ports(4)
    managed = controllers and has_manager()
    url = f"https://127.0.0.1:{port}"
    write_kubeconfigs(folder, url)
    tls, anyone = admin_tls(folder / "pki"), ssl._create_unverified_context()
    api = ApiServer(url, folder)
    with ExitStack() as started:

        def start(name: str, flags: Sequence[str], ready: Callable[[], bool]) -> None:
            started.enter_context(serving(assets() / name, flags, folder, ready))

        start(
            "etcd",
            etcd_flags(folder, etcd_port, peer_port),
            lambda: http_ok(etcd_port, "/health"),
        )
        start(
            "kube-apiserver",
            apiserver_flags(folder, port, etcd_port, managed=managed),
            # It is ready a moment before it has made the namespace.
            lambda: (
                http_ok(port, "/readyz", tls)
                and http_ok(port, "/api/v1/namespaces/default", tls)
            ),
        )
        if managed:
            start(
                "kube-controller-manager",
                manager_flags(folder, manager_port),
                lambda: http_ok(manager_port, "/healthz", anyone),
            )
        started.callback(api.close)
        yield api


@contextmanager
def serving(
    binary: Path, flags: Sequence[str], folder: Path, ready: Callable[[], bool]
) -> Iterator[None]:
    """Run one binary for as long as the block, which begins when it is ready."""
    log = folder / f"{binary.name}.log"
    with process(binary, flags, log) as child:
        wait_until(ready, child, log)
        yield


@contextmanager
def process(
    binary: Path, flags: Sequence[str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run one binary for as long as the block."""
    with log.open("wb") as output:
        child = subprocess.Popen(
            [*dying_with_us(), str(binary), *flags],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, "GOGC": "40"},
            start_new_session=True,  # Ctrl-C is for us: we end it in order
        )
    try:
        yield child
    finally:
        # A server waits for its clients. What it keeps is thrown away with it.
        end(child, SERVER_SECONDS)


def dying_with_us() -> list[str]:
    """A prefix for commands that shall not outlive us, even when we are killed."""
    tool = shutil.which("setpriv")
    return [tool, "--pdeathsig", "KILL", "--"] if tool else []


def end(child: subprocess.Popen[bytes], seconds: float | None = None) -> None:
    """End a process: ask first, insist after some seconds."""
    child.terminate()
    try:
        child.wait(patience(10) if seconds is None else seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def wait_until(
    ready: Callable[[], bool], child: subprocess.Popen[bytes], log: Path
) -> None:
    """Wait for a process; the tail of its log is in the error if it takes too long."""
    is_over = happens(lambda: child.poll() is not None or ready(), every=0.05)
    if not is_over or child.poll() is not None:
        tail = log.read_text(errors="replace").splitlines()[-15:]
        raise RuntimeError("\n".join([f"{log.stem} did not get ready:", *tail]))


def http_ok(port: int, path: str, tls: ssl.SSLContext | None = None) -> bool:
    """Does the local port answer this path with 200?"""
    connection = (
        http.client.HTTPConnection("127.0.0.1", port, timeout=READY_SECONDS)
        if tls is None
        else http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=READY_SECONDS, context=tls
        )
    )
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (http.client.HTTPException, OSError):
        return False
    finally:
        connection.close()


def free_ports(count: int) -> list[int]:
    """This number of ports of 127.0.0.1 that are free at this moment."""
    with ExitStack() as open_ones:
        sockets = [open_ones.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


# --------------------------------------------------------------------- flags


def etcd_flags(folder: Path, port: int, peer_port: int) -> list[str]:
    client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
    return [
        "--name=default",
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--logger=zap",
        "--log-level=warn",
        # One member: no other one could win.
        "--heartbeat-interval=20",
        "--election-timeout=200",
    ]


def apiserver_flags(
    folder: Path, port: int, etcd_port: int, *, managed: bool
) -> list[str]:
    pki = folder / "pki"
    flags = [
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        "--endpoint-reconciler-type=none",
        f"--cert-dir={pki}",
        f"--tls-cert-file={pki / 'server.crt'}",
        f"--tls-private-key-file={pki / 'server.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--token-auth-file={pki / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--allow-privileged=true",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={pki / 'accounts.key'}",
        f"--service-account-key-file={pki / 'accounts.pub'}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--profiling=false",
    ]
    if not managed:  # no controller makes the accounts that it would insist on
        flags.append("--disable-admission-plugins=ServiceAccount")
    return flags


def has_manager() -> bool:
    return os.access(assets() / "kube-controller-manager", os.X_OK)


def manager_flags(folder: Path, port: int) -> list[str]:
    pki, kubeconfig = folder / "pki", folder / "kubeconfig.manager"
    flags = [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder / 'controllers'}",
        "--leader-elect=false",
        "--use-service-account-credentials",
        f"--root-ca-file={pki / 'ca.crt'}",
        f"--service-account-private-key-file={pki / 'accounts.key'}",
        "--profiling=false",
        f"--controllers={CONTROLLERS}",
    ]
    binary = assets() / "kube-controller-manager"
    known = subprocess.run([binary, "--help"], capture_output=True, check=False).stdout
    if b" --port " in known:  # before 1.24 it also listened on a plain, fixed port
        flags.append("--port=0")
    return flags


# -------------------------------------------------------------- certificates


def make_certificates(pki: Path) -> None:
    """An authority, the server's and the clients' certificates, tokens and keys."""
    pki.mkdir(parents=True)
    openssl(
        *("req", "-x509", *new_key(pki / "ca.key"), "-subj", "/CN=ca", "-days", "30"),
        *("-addext", "basicConstraints=critical,CA:TRUE"),
        *("-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature"),
        *("-out", str(pki / "ca.crt")),
    )
    sign(
        pki,
        "server",
        "/CN=kube-apiserver",
        f"extendedKeyUsage=serverAuth\n{SERVER_NAMES}",
    )
    sign(pki, "admin", "/O=system:masters/CN=admin", "extendedKeyUsage=clientAuth")
    manager = "/CN=system:kube-controller-manager"
    sign(pki, "manager", manager, "extendedKeyUsage=clientAuth")
    key = str(pki / "accounts.key")
    openssl("genrsa", "-out", key, "2048")
    openssl("rsa", "-in", key, "-pubout", "-out", str(pki / "accounts.pub"))
    (pki / "tokens.csv").write_text(
        f'{ADMIN_TOKEN},token-admin,token-admin,"system:masters"\n'
        f'{NOBODY_TOKEN},nobody,nobody,"plain"\n'
    )


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def new_key(path: Path) -> list[str]:
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    return [*curve, "-nodes", "-keyout", str(path)]


def sign(pki: Path, name: str, subject: str, extensions: str) -> None:
    """Make `<name>.key` and `<name>.crt`, signed by the authority."""
    request, extension = pki / f"{name}.csr", pki / f"{name}.ext"
    extension.write_text(extensions + "\n")
    openssl(
        "req",
        "-new",
        *new_key(pki / f"{name}.key"),
        "-subj",
        subject,
        "-out",
        str(request),
    )
    openssl(
        *("x509", "-req", "-in", str(request), "-days", "30", "-sha256"),
        *("-CA", str(pki / "ca.crt"), "-CAkey", str(pki / "ca.key")),
        *("-set_serial", str(int.from_bytes(os.urandom(8)))),
        *("-extfile", str(extension), "-out", str(pki / f"{name}.crt")),
    )


def admin_tls(pki: Path) -> ssl.SSLContext:
    tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    tls.load_cert_chain(str(pki / "admin.crt"), str(pki / "admin.key"))
    return tls


# --------------------------------------------------------------- kubeconfigs


def write_kubeconfigs(folder: Path, url: str) -> None:
    pki = folder / "pki"
    users = {
        "kubeconfig": certificate_user(pki, "admin"),
        "kubeconfig.manager": certificate_user(pki, "manager"),
        "kubeconfig.token": {"token": ADMIN_TOKEN},
        "kubeconfig.nobody": {"token": NOBODY_TOKEN},
    }
    for name, user in users.items():
        # JSON is YAML.
        (folder / name).write_text(json.dumps(kubeconfig(pki, url, user), indent=1))


def kubeconfig(pki: Path, url: str, user: dict[str, str]) -> dict[str, Any]:
    cluster = {"server": url, "certificate-authority-data": encoded(pki / "ca.crt")}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": cluster}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "users": [{"name": "test", "user": user}],
    }


def certificate_user(pki: Path, name: str) -> dict[str, str]:
    return {
        "client-certificate-data": encoded(pki / f"{name}.crt"),
        "client-key-data": encoded(pki / f"{name}.key"),
    }


def encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
