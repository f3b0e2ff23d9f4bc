"""The command `fnop cluster`, who it lets in, and the fixture for tests."""

import json
import signal
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from fnop.adapters.serving.api_server import Credentials
from fnop.adapters.serving.cluster_client import ObjectProblem
from fnop.adapters.serving.cluster_host import Host
from fnop.adapters.serving.cluster_kubeconfig import MARK
from fnop.adapters.serving.cluster_login import (
    Authentication,
    TokenProblem,
    read_tokens,
)
from fnop.adapters.serving.protobuf import MAGIC, NotProtobuf, object_of
from fnop.adapters.testing.cluster_fixture import SimulatedCluster
from fnop.interpreters.cluster import Slow, Stuck, empty_cluster
from fnop.interpreters.runtime.clock import VirtualClock
from fnop.interpreters.runtime.protocol import ApiResponse, User
from tests.commands import fnop
from tests.patience import patience
from tests.simulations import ROOT

COMMAND = [sys.executable, "-m", "fnop", "cluster"]
CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "one"},
    "data": {"a": "b"},
}


def refused(*options: str) -> tuple[int, str]:
    """The exit status of a command that cannot serve, and its last line."""
    done = fnop("cluster", *options, folder=ROOT)
    return done.status, done.err.splitlines()[-1]


@contextmanager
def serving(*options: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """The process, its URL, and its second line."""
    with subprocess.Popen(
        [*COMMAND, "--port", "0", *options], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        try:
            first, second = child.stdout.readline(), child.stdout.readline()
            yield child, first.split()[-1], second.strip()
        finally:
            child.kill()


def fetch(url: str, tls: ssl.SSLContext | None = None, **headers: str) -> Any:
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=patience(20), context=tls) as answer:
        return json.load(answer)


# ------------------------------------------------------------------- the command


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_stopped(tmp_path: Path, number: int) -> None:
    kubeconfig = tmp_path / "kc"
    manifest = tmp_path / "one.yaml"
    manifest.write_text(json.dumps(CONFIG_MAP))
    with serving("--kubeconfig", str(kubeconfig), "-f", str(manifest)) as served:
        child, url, second = served
        assert second == f"export KUBECONFIG={kubeconfig}"
        config = yaml.safe_load(kubeconfig.read_text())
        assert config["clusters"][0]["cluster"] == {"server": url}
        assert kubeconfig.stat().st_mode & 0o777 == 0o600
        found = fetch(f"{url}/api/v1/namespaces/default/configmaps/one")
        assert found["data"] == {"a": "b"}
        child.send_signal(number)
        assert child.wait(patience(20)) == 0


def test_the_api_server_has_a_service(tmp_path: Path) -> None:
    """As on a real cluster, unless the manifests bring one of their own."""
    path = "/api/v1/namespaces/default/services/kubernetes"
    with serving() as (_, url, _):
        assert fetch(f"{url}{path}")["metadata"]["labels"]["provider"] == "kubernetes"
    manifest = tmp_path / "own.yaml"
    own = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "kubernetes"}}
    manifest.write_text(json.dumps({**own, "spec": {"ports": [{"port": 6443}]}}))
    with serving("-f", str(manifest)) as (_, url, _):
        assert fetch(f"{url}{path}")["spec"]["ports"][0]["port"] == 6443


def test_a_port_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        status, line = refused("--port", str(port))
    assert status == 1
    assert line == (
        f"fnop: 127.0.0.1:{port} is taken; choose another --port, or 0 for a free one"
    )


def test_manifests_that_cannot_be_used(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [")
    status, line = refused("-f", str(broken))
    assert (status, line.startswith(f"fnop: {broken}:")) == (1, True)
    broken.write_text("apiVersion: nobody.dev/v1\nkind: Thing\nmetadata: {name: a}\n")
    status, line = refused("-f", str(broken))
    assert status == 1
    assert line.startswith("fnop: the cluster has no kind Thing of nobody.dev/v1")
    broken.write_text(json.dumps({**CONFIG_MAP, "metadata": {"name": "No!"}}))
    assert "ConfigMap No! is refused" in refused("-f", str(broken))[1]


def test_calls_that_make_no_sense(tmp_path: Path) -> None:
    assert refused("--host", "0.0.0.0", "--kubeconfig", "x")[0] == 2
    assert refused("--rbac", "--no-tls", "--kubeconfig", "x")[0] == 2
    assert refused("--tls")[0] == 2
    assert refused("--controllers", "nobody=on")[0] == 1
    assert refused("--controllers", "kubelet=fast")[0] == 1
    assert refused("--controllers", "nobody=5m")[0] == 1
    for service in ("default/hooks", "hooks=1", "/hooks=1", "a/b=0", "a/b=70000"):
        status, line = refused("--service", service)
        assert status == 1
        assert line.startswith(f"fnop: --service {service}: write NAMESPACE/NAME=PORT")
    tokens = tmp_path / "tokens"
    tokens.write_text("only-one-column\n")
    kubeconfig = str(tmp_path / "kc")
    status, line = refused("--tokens", str(tokens), "--kubeconfig", kubeconfig)
    assert status == 1
    assert line.endswith('write: token,user,uid,"group1,group2"')


def test_a_kubeconfig_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text("apiVersion: v1\n")
    status, line = refused("--port", "0", "--kubeconfig", str(kubeconfig))
    assert (status, "exists" in line) == (1, True)
    assert kubeconfig.read_text() == "apiVersion: v1\n"
    kubeconfig.write_text(f"{MARK}\nold\n")
    with serving("--kubeconfig", str(kubeconfig)):
        assert "current-context" in kubeconfig.read_text()


def test_tokens_and_certificates_with_rbac(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    tokens, kubeconfig = tmp_path / "tokens", tmp_path / "kc"
    tokens.write_text('of-the-boss,boss,1,"system:masters"\nof-jane,jane,2\n')
    options = ("--rbac", "--tokens", str(tokens), "--kubeconfig", str(kubeconfig))
    with serving(*options) as (_, url, _second):
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authority = b64decode(cluster["certificate-authority-data"]).decode()
        tls = ssl.create_default_context(cadata=authority)
        path = f"{url}/api/v1/namespaces"
        assert fetch(path, tls, Authorization="Bearer of-the-boss")["items"]
        for headers, code in (
            ({"Authorization": "Bearer of-jane"}, 403),
            ({"Authorization": "Bearer wrong"}, 401),
            ({}, 403),
        ):
            with pytest.raises(urllib.error.HTTPError) as caught:
                fetch(path, tls, **headers)
            with caught.value as answer:
                status = json.load(answer)
            assert (answer.code, status["code"]) == (code, code)
        pair = tmp_path / "pair"
        names = ("client-certificate-data", "client-key-data")
        pair.write_bytes(b"".join(b64decode(user[name]) for name in names))
        tls.load_cert_chain(pair)
        assert fetch(path, tls)["items"]


# --------------------------------------------------------------------- the login


def test_token_files(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text('\nabc,jane,1,"a, b"\ndef,joe,2\n')
    everybody = "system:authenticated"
    assert read_tokens(str(file)) == {
        "abc": User("jane", ("a", "b", everybody), "1"),
        "def": User("joe", (everybody,), "2"),
    }
    with pytest.raises(TokenProblem, match="cannot be read"):
        read_tokens(str(tmp_path / "nothing"))


@pytest.mark.parametrize(
    ("rbac", "authorization", "name"),
    [
        (True, "Bearer abc", "jane"),
        (True, "bearer  abc ", "jane"),
        (True, "Bearer wrong", None),
        (True, "Basic abc", "system:anonymous"),
        (True, None, "system:anonymous"),
        (False, None, None),
    ],
)
def test_who_somebody_is(
    rbac: bool, authorization: str | None, name: str | None
) -> None:
    host = Host(empty_cluster(rbac=rbac), VirtualClock())
    login = Authentication(host, {"abc": User("jane")})
    found = login(Credentials(authorization, None, ()))
    if name is None:
        assert isinstance(found, ApiResponse)
        assert found.status == 401
    else:
        assert isinstance(found, User)
        assert found.name == name


def test_who_may_act_as_somebody_else() -> None:
    host = Host(empty_cluster(rbac=True), VirtualClock())
    boss = User("boss", ("system:masters", "system:authenticated"))
    login = Authentication(host, {"boss": boss, "jane": User("jane")})
    headers = (("impersonate-user", "joe"),)
    found = login(Credentials("Bearer boss", None, headers))
    assert isinstance(found, User)
    assert found.name == "joe"
    refusal = login(Credentials("Bearer jane", None, headers))
    assert isinstance(refusal, ApiResponse)
    assert refusal.status == 403


# --------------------------------------------------------------------- protobuf


def varint(value: int) -> bytes:
    found = b""
    while value > 0x7F:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def field(number: int, value: bytes | int | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def message(*fields: tuple[int, bytes | int | str]) -> bytes:
    return b"".join(field(*each) for each in fields)


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return MAGIC + message((1, message((1, api_version), (2, kind))), (2, raw))


def test_protobuf_is_what_json_would_be() -> None:
    label = message((1, "app"), (2, "web"))
    meta = message((1, "web"), (2, ""), (8, b""), (11, label))
    port = message((1, "http"), (3, 8080), (2, 0))
    probe = message(
        (1, message((2, message((1, "/"), (2, message((1, 1), (3, "http"))))))), (2, 5)
    )
    container = message((1, "c"), (2, "i"), (6, port), (10, probe), (8, b""))
    mount = message((1, message((1, "cfg"))))
    volume = message((1, "v"), (2, message((19, mount))))
    pod = message((1, volume), (2, container), (4, 0), (21, 0))
    template = message((1, message((11, label), (8, b""))), (2, pod))
    spec = message((1, 0), (2, message((1, label))), (3, template), (4, b""), (5, 0))
    body = message((1, meta), (2, spec), (3, message((1, 0))))
    assert object_of(envelope("apps/v1", "Deployment", body)) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "volumes": [{"name": "v", "configMap": {"name": "cfg"}}],
                    "containers": [
                        {
                            "name": "c",
                            "image": "i",
                            "ports": [{"name": "http", "containerPort": 8080}],
                            "livenessProbe": {
                                "httpGet": {"path": "/", "port": "http"},
                                "initialDelaySeconds": 5,
                            },
                        }
                    ],
                    "terminationGracePeriodSeconds": 0,
                    "automountServiceAccountToken": False,
                },
            },
        },
    }


def test_protobuf_of_bytes_and_moments() -> None:
    entry = message((1, "a"), (2, b"b"))
    moment = message((1, 1_700_000_000), (2, 123_456_000))
    body = message((1, message((1, "s"), (8, moment))), (2, entry))
    secret = object_of(envelope("v1", "Secret", body))
    assert secret["data"] == {"a": b64encode(b"b").decode()}
    assert secret["metadata"]["creationTimestamp"] == "2023-11-14T22:13:20Z"
    options = message((1, 0), (4, "Foreground"), (99, "of another version"))
    assert object_of(envelope("v1", "DeleteOptions", options)) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Foreground",
    }


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        MAGIC,
        MAGIC + b"\xff" * 20,
        envelope("v1", "Nothing", b""),
        envelope("v1", "Secret", b"\x0a\x7f"),
        envelope("v1", "Secret", message((1, 5))),
        envelope("v1", "Secret", message((1, message((1, b"\xff"))))),
        envelope("v1", "Secret", b"\x0b"),
    ],
)
def test_what_is_no_protobuf(content: bytes) -> None:
    with pytest.raises(NotProtobuf):
        object_of(content)


# ------------------------------------------------------------------- the fixture


def test_the_fixture_is_a_cluster_in_memory(fnop_cluster: SimulatedCluster) -> None:
    made = fnop_cluster.apply(CONFIG_MAP)
    assert made[0]["metadata"]["uid"]
    fnop_cluster.apply({**CONFIG_MAP, "data": {"a": "c"}})
    found = fnop_cluster.get("configmaps", "one")
    assert found is not None
    assert found["data"] == {"a": "c"}
    assert [each["kind"] for each in fnop_cluster.list("cm")] == ["ConfigMap"]
    assert fnop_cluster.list("cm", labels="a=b") == []
    response = fnop_cluster.request("GET", "/api/v1/namespaces/default/configmaps/two")
    assert response.status == 404
    fnop_cluster.delete("ConfigMap", "one")
    assert fnop_cluster.get("cm", "one") is None
    with pytest.raises(ObjectProblem, match='"one" not found'):
        fnop_cluster.delete("cm", "one")
    with pytest.raises(ObjectProblem, match="no kind"):
        fnop_cluster.get("things", "one")


def test_files_and_folders_are_applied(
    fnop_cluster: SimulatedCluster, tmp_path: Path
) -> None:
    (tmp_path / "one.yaml").write_text(json.dumps(CONFIG_MAP))
    assert len(fnop_cluster.apply(tmp_path)) == 1
    assert len(fnop_cluster.apply(str(tmp_path / "one.yaml"))) == 1


def test_it_can_be_rewound(fnop_cluster: SimulatedCluster) -> None:
    before = fnop_cluster.cluster
    fnop_cluster.apply(CONFIG_MAP)
    fnop_cluster.cluster = before
    assert fnop_cluster.get("cm", "one") is None


def deployment(replicas: int = 2) -> dict[str, Any]:
    labels = {"app": "web"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": "i:1"}]},
            },
        },
    }


def ready(cluster: SimulatedCluster) -> int:
    found = cluster.get("deploy", "web")
    assert found is not None
    return int(found["status"].get("readyReplicas", 0))


def test_controllers_work_on_virtual_time(fnop_cluster: SimulatedCluster) -> None:
    fnop_cluster.pace("kubelet", Slow(3600))
    fnop_cluster.apply(deployment())
    begin = fnop_cluster.now
    fnop_cluster.settle()
    assert (ready(fnop_cluster), fnop_cluster.now) == (0, begin)
    fnop_cluster.settle(2 * 3600)
    assert (ready(fnop_cluster), fnop_cluster.now) == (2, begin + 7200)


def test_a_controller_can_be_stuck(fnop_cluster: SimulatedCluster) -> None:
    fnop_cluster.pace("deployment", Stuck())
    fnop_cluster.apply(deployment())
    fnop_cluster.settle(60)
    assert fnop_cluster.list("pods") == []


def test_it_can_be_served(fnop_cluster: SimulatedCluster) -> None:
    fnop_cluster.apply(CONFIG_MAP)
    with fnop_cluster.serve() as served:
        assert served.kubeconfig.exists()
        found = fetch(f"{served.url}/api/v1/namespaces/default/configmaps/one")
        assert found == fnop_cluster.get("cm", "one")
        fnop_cluster.apply({**CONFIG_MAP, "metadata": {"name": "two"}})
        with pytest.raises(RuntimeError):
            fnop_cluster.settle()
    assert not served.kubeconfig.exists()
    assert fnop_cluster.get("cm", "two") is not None
    with pytest.raises(urllib.error.URLError):
        fetch(served.url)


def modules(*names: str) -> Sequence[str]:
    script = "import fnop.adapters.testing.pytest_plugin, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True
    )
    return [name for name in names if name in done.stdout.split()]


def test_the_plugin_loads_nothing_large() -> None:
    large = ("asyncio", "httptools", "fnop.interpreters.cluster", "aiohttp", "ssl")
    assert modules(*large) == []
