"""Operators within other programs, and who watches over them, on a real API server."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

import fnop
from fnop.core.handlers.declare.registry import Registry
from tests.cluster.envtest import ApiServer, dying_with_us, end, free_ports
from tests.cluster.operating import User, operating
from tests.patience import eventually, patience
from tests.simulations import ROOT, example

KIND = "fnopexamples"


def greeting(name: str) -> Registry:
    """Handlers that write under a name."""
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, id=name)
    def greet(**_: Any) -> str:
        return f"hello from {name}"

    return registry


def status_of(user: User, name: str = "example-1") -> dict[str, Any]:
    found = user.get(KIND, name)
    return {} if found is None else found.get("status") or {}


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=patience(10)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()
    except OSError as problem:
        return 0, str(problem)


def test_the_example_in_a_thread(apiserver: ApiServer, namespace: str) -> None:
    user = User(apiserver, namespace)
    user.define()
    file = ROOT / "examples/12-embedded/example.py"
    child = subprocess.Popen(
        [*dying_with_us(), sys.executable, str(file), namespace],
        env={"KUBECONFIG": str(apiserver.kubeconfig), "PATH": "/usr/bin:/bin"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        assert child.stdout is not None
        assert b"the operator is ready" in child.stdout.readline()
        user.create(example())
        wanted = {"greet": {"message": "hello, example-1"}}
        eventually(lambda: wanted.items() <= status_of(user).items())
        said, _ = child.communicate(b"\n", timeout=patience(10))
        assert said == b"the program ends\n"
        assert child.returncode == 0
    finally:
        end(child)


async def test_two_in_one_loop_and_one_in_a_thread(
    apiserver: ApiServer, namespace: str
) -> None:
    user = User(apiserver, namespace)
    await asyncio.to_thread(user.define)
    ready, stop = threading.Event(), threading.Event()

    def options(name: str) -> dict[str, Any]:
        return {
            "registry": greeting(name),
            "settings": fnop.Settings(name, (namespace,)),
            "kubeconfig": str(apiserver.kubeconfig),
        }

    def operate() -> None:
        fnop.run(**options("three"), ready_flag=ready, stop_flag=stop)

    thread = threading.Thread(target=operate)
    thread.start()
    try:
        async with (
            fnop.operator(**options("one")) as one,
            fnop.operator(**options("two")) as two,
        ):
            await one.ready()
            await two.ready()
            assert await asyncio.to_thread(ready.wait, patience(20))
            await asyncio.to_thread(user.create, example())
            wanted = {name: f"hello from {name}" for name in ("one", "two", "three")}

            def all_greet() -> bool:
                return wanted.items() <= status_of(user).items()

            await asyncio.to_thread(eventually, all_greet)
    finally:
        stop.set()
        await asyncio.to_thread(thread.join, patience(10))
    assert not thread.is_alive()


def test_liveness_readiness_and_metrics_of_a_process(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    user = User(apiserver, namespace)
    user.define()
    (port,) = free_ports(1)
    base = f"http://127.0.0.1:{port}"
    file = ROOT / "examples/13-hooks/example.py"
    with operating(file, apiserver, namespace, tmp_path) as operator:
        operator._command += ["--liveness", f"{base}/healthz"]
        operator._command += ["--metrics", f"{base}/metrics"]
        operator.start()
        eventually(lambda: get(f"{base}/readyz") == (200, "{}"))
        status, text = get(f"{base}/healthz")
        assert status == 200
        assert json.loads(text).keys() == {"now", "attempts"}
        user.create(example())
        eventually(lambda: "greet" in status_of(user))
        eventually(lambda: 'result="success"' in get(f"{base}/metrics")[1])
        host = apiserver.url.removeprefix("https://")
        patched = (
            f'rest_client_requests_total{{code="200",host="{host}",method="PATCH"}}'
        )
        assert patched in get(f"{base}/metrics")[1]
        assert operator.stop() == 0, operator.lines


class Tokens:
    """The credentials that a kubeconfig has, as a login handler answers them."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        self._cluster = config["clusters"][0]["cluster"]
        self._user = config["users"][0]["user"]

    def info(self, **more: Any) -> fnop.ConnectionInfo:
        authority = self._cluster["certificate-authority-data"]
        return fnop.ConnectionInfo(
            server=self._cluster["server"], ca_data=authority, **more
        )

    def good(self, **more: Any) -> fnop.ConnectionInfo:
        return self.info(
            certificate_data=self._user["client-certificate-data"],
            private_key_data=self._user["client-key-data"],
            **more,
        )


async def test_rejected_credentials_stop_nothing_for_good(
    apiserver: ApiServer, namespace: str
) -> None:
    user, registry = User(apiserver, namespace), greeting("one")
    await asyncio.to_thread(user.define)
    tokens = Tokens(apiserver.kubeconfig)
    answers = iter([tokens.info(token="bad"), tokens.good()])

    @fnop.on.login(registry=registry)
    def login(**_: Any) -> fnop.ConnectionInfo:
        soon = datetime.now(UTC) + timedelta(hours=1)
        return next(answers, tokens.good(expiration=soon))

    async with fnop.operator(registry=registry, namespaces=[namespace]) as running:
        async with asyncio.timeout(patience(20)):
            await running.ready()
        await asyncio.to_thread(user.create, example())
        await asyncio.to_thread(eventually, lambda: "one" in status_of(user))
