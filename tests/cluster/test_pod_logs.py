"""Logs of pods on a real API server, behind which is a kubelet for tests."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from fnop.adapters.common.loading import resolve
from fnop.adapters.generate.rights import Account
from fnop.adapters.kubernetes.client import connect
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import Say
from fnop.interpreters.runtime.run import Runner
from tests.cluster.accounts import an_account
from tests.cluster.envtest import ApiServer
from tests.cluster.operating import User
from tests.fake_kubelet import FakeKubelet, Pods
from tests.log_scenarios import SCENARIOS, World, reading
from tests.long import parameters
from tests.patience import eventually, patience

CONTAINER = "c"
MERGE_PATCH = "application/merge-patch+json"
# The times of lines are off by this number of milliseconds, in turn.
OFF_MS = (0, -3, 2, -7, 1, 0, -1)


@pytest.fixture(scope="module")
def kubelet() -> Iterator[FakeKubelet]:
    with FakeKubelet() as kubelet:
        yield kubelet


class LogsWorld:
    """A namespace with pods on a node of its own, and an operator in a thread."""

    def __init__(self, api: ApiServer, namespace: str, kubelet: FakeKubelet) -> None:
        self.namespace, self.kubelet = namespace, kubelet
        self.kubeconfig = api.kubeconfig
        self.said: list[Say] = []
        self._api, self._names = api, set[str]()
        self._off = cycle(OFF_MS)
        self._thread: threading.Thread | None = None
        self._stop: Callable[[], object] = lambda: None
        # Pods need an account first.
        User(api, namespace).define()
        self.pods = Pods(api, kubelet.port, namespace, kubelet)

    def close(self) -> None:
        self.stop()
        for name in self._names:
            self.kubelet.remove(self.namespace, name)
        self.pods.close()

    # -------------------------------------------------------------- the operator

    @property
    def warnings(self) -> list[str]:
        return [e.message for e in self.said if e.level in ("warning", "error")]

    def begin(self, registry: Registry) -> None:
        began = threading.Event()
        work = self._operate(registry, began)
        self._thread = threading.Thread(target=asyncio.run, args=(work,))
        self._thread.start()
        assert began.wait(patience(20))

    async def _operate(self, registry: Registry, began: threading.Event) -> None:
        loop = asyncio.get_running_loop()
        api = await connect(kubeconfig=str(self.kubeconfig), context=None)
        settings = Settings(namespaces=(self.namespace,))
        runner = Runner(
            Program(registry.handlers, settings),
            api,
            seed="run",
            resolve=resolve,
            random=os.urandom,
            on_say=self.said.append,
        )
        self._stop = lambda: loop.call_soon_threadsafe(runner.stop, "done")
        began.set()
        try:
            await runner.run()
        finally:
            await api.close()

    def stop(self) -> None:
        if self._thread is not None:
            self._stop()
            self._thread.join(patience(20))
            assert not self._thread.is_alive()
            self._thread = None

    # ------------------------------------------------------------------ the pods

    @property
    def now(self) -> datetime:
        return datetime.now(UTC)

    def create(self, name: str) -> None:
        # Its containers do not belong to a former pod of this name.
        self.kubelet.remove(self.namespace, name)
        self.pods.create(name, CONTAINER)
        self._names.add(name)

    def run(self, name: str) -> None:
        self.pods.run(name, CONTAINER)

    def end(self, name: str) -> None:
        self.pods.end(name, CONTAINER)

    def remove(self, name: str) -> None:
        self.kubelet.end(self.namespace, name, CONTAINER)
        self.pods.delete(name)

    def write(self, name: str, *lines: str) -> None:
        now = time.time_ns()
        times = [now + next(self._off) * 1_000_000 + at for at in range(len(lines))]
        self.pods.write(name, *lines, container=CONTAINER, at=times)

    def age(self, name: str, lines: Mapping[str, float]) -> None:
        now = time.time_ns()
        times = [now - int(each * 1_000_000_000) for each in lines.values()]
        self.pods.write(name, *lines, container=CONTAINER, at=times)

    def cut(self, name: str) -> None:
        self.kubelet.halve(self.namespace, name, CONTAINER)

    def cuts_left(self) -> int:
        each = (
            self.kubelet.cuts_left(self.namespace, e, CONTAINER) for e in self._names
        )
        return sum(each)

    def annotation(self, name: str, key: str) -> str | None:
        status, found = self._api.raw("GET", self.pods.path(name))
        assert status == 200, found
        value: str | None = found["metadata"].get("annotations", {}).get(key)
        return value

    def until(self, holds: Callable[[], bool]) -> None:
        eventually(holds, otherwise=lambda: "\n".join(e.message for e in self.said))


@contextmanager
def a_world(
    api: ApiServer, namespace: str, kubelet: FakeKubelet
) -> Iterator[LogsWorld]:
    world = LogsWorld(api, namespace, kubelet)
    try:
        yield world
    finally:
        world.close()


# A log that breaks while its container runs goes on after ten seconds, and this one
# breaks twice.  The simulated cluster has all (unit/objects/test_log_scenarios.py).
AT_ONCE = [each.__name__ for each in SCENARIOS if "twice" not in each.__name__]


@pytest.mark.parametrize(
    "scenario", parameters(SCENARIOS, AT_ONCE, lambda each: each.__name__)
)
def test_lines_are_read(
    scenario: Callable[[World], None],
    apiserver: ApiServer,
    namespace: str,
    kubelet: FakeKubelet,
) -> None:
    with a_world(apiserver, namespace, kubelet) as world:
        scenario(world)
        assert world.warnings == []
        assert world.cuts_left() == 0


def test_a_user_without_the_right_to_logs_is_told_which_it_is(
    apiserver: ApiServer, namespace: str, kubelet: FakeKubelet, tmp_path: Path
) -> None:
    """Once it is granted, the log is read."""
    account = Account(namespace, "operator")
    metadata = {"name": account.name, "namespace": namespace}
    pods = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}
    logs = {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}
    rbac = "rbac.authorization.k8s.io"
    role = {"kind": "Role", "apiVersion": f"{rbac}/v1", "metadata": metadata}
    made: list[dict[str, Any]] = [
        {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": metadata},
        {**role, "rules": [pods]},
        {
            **{**role, "kind": "RoleBinding"},
            "roleRef": {"kind": "Role", "name": account.name, "apiGroup": rbac},
            "subjects": [{"kind": "ServiceAccount", **metadata}],
        },
    ]
    registry, found = Registry(), list[str]()
    reading(registry, found, since="start")
    with (
        an_account(apiserver, made, account, tmp_path) as config,
        a_world(apiserver, namespace, kubelet) as world,
    ):
        world.kubeconfig = config
        world.create("p")
        world.run("p")
        world.write("p", "line")
        world.begin(registry)
        world.until(lambda: bool(world.warnings))
        (warning,) = world.warnings
        assert warning.startswith('may not read the log of p/c: pods "p" is forbidden')
        assert warning.endswith("; grant the verb get on pods/log to this operator")
        path = f"/apis/{rbac}/v1/namespaces/{namespace}/roles/{account.name}"
        change = {"rules": [pods, logs]}
        assert apiserver.raw("PATCH", path, change, MERGE_PATCH)[0] == 200
        world.until(lambda: found == ["line"])
