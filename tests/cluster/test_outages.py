"""kube-apiserver and etcd are killed while an operator is at work, and come back."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial

import aiohttp
import pytest

from tests.cluster.envtest import missing
from tests.cluster.fault_proxy import Upstream
from tests.cluster.fault_world import Operated, User, operated, repeated, until_met
from tests.cluster.servers import Servers
from tests.patience import soon

OBJECTS = 8


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    if (reason := missing()) is not None:
        pytest.skip(reason)
    servers = Servers(tmp_path_factory.mktemp("outages"))
    try:
        servers.start("etcd", "kube-apiserver")
        yield servers
    finally:
        servers.close()


BOTH = ("kube-apiserver", "etcd")


OUTAGES = (
    pytest.param(BOTH, signal.SIGTERM, 0, id="both, in order"),
    pytest.param(("kube-apiserver",), signal.SIGKILL, 0, id="kube-apiserver"),
    pytest.param(("etcd",), signal.SIGKILL, 3, id="etcd"),
)
# One in every run, all of them by `make faults`.
ALL = os.environ.get("FNOP_FAULTS") == "all"
CHOSEN = OUTAGES if ALL else OUTAGES[:1]


@pytest.mark.parametrize(("names", "by", "away"), CHOSEN)
async def test_after_an_outage_it_catches_up(
    names: Sequence[str], by: signal.Signals, away: float, servers: Servers
) -> None:
    """Objects are being handled when the servers go, and others change afterwards."""
    namespace = f"outage-{time.monotonic_ns()}"
    upstream = Upstream(servers.api)
    user = User(upstream, namespace)
    try:
        await user.define()
        for number in range(OBJECTS):
            await user.create(f"old-{number}", 1)
        async with operated(servers.api.kubeconfig, namespace) as operator:
            await until_met(user, operator)
            await _bustle(user, operator)
            await servers.aside(partial(servers.end, *names, by=by))
            await asyncio.sleep(away)  # the outage itself
            await servers.aside(partial(servers.start, *reversed(names)))
            await _change(user)
            await until_met(user, operator)
        assert repeated(user, operator) == []
        if "kube-apiserver" in names:
            assert any("the API server answers again" in e for e in operator.lines)
    finally:
        await upstream.close()


@pytest.mark.skipif(not ALL, reason="three restarts of the servers: make faults")
async def test_after_a_restore_from_a_backup_it_follows_what_there_is(
    servers: Servers,
) -> None:
    """Versions go back: watches of later ones are open, and silent for a long time."""
    namespace = f"restored-{time.monotonic_ns()}"
    upstream = Upstream(servers.api)
    user = User(upstream, namespace)

    async def while_stopped(work: Callable[[], None]) -> None:
        await servers.aside(partial(servers.end, *BOTH, by=signal.SIGTERM))
        await servers.aside(work)
        await servers.aside(partial(servers.start, *reversed(BOTH)))

    try:
        await user.define()
        for number in range(OBJECTS):
            await user.create(f"old-{number}", 1)
        async with operated(servers.api.kubeconfig, namespace) as operator:
            await until_met(user, operator)
            await while_stopped(servers.back_up)
            for value in range(2, 6):
                for number in range(OBJECTS):
                    await _insistently(partial(user.edit, f"old-{number}", value))
            await user.create("late", 1)
            await until_met(user, operator)
            await while_stopped(servers.restore)
            await _insistently(lambda: user.edit("old-1", 7))
            await _insistently(lambda: user.create("new", 1))
            await until_met(user, operator)
        assert any("has gone back from version" in line for line in operator.lines)
    finally:
        await upstream.close()


async def _bustle(user: User, operator: Operated) -> None:
    """Give the operator work, and leave it in the middle of it."""
    for number in range(OBJECTS):
        await user.create(f"new-{number}", 1)
        await user.edit(f"old-{number}", 2)
    await soon(lambda: "new-0" in operator.store, every=0.001)


async def _change(user: User) -> None:
    """Change objects as soon as the servers are back."""
    await _insistently(lambda: user.edit("new-1", 2))
    await _insistently(lambda: user.delete("old-1"))
    await _insistently(lambda: user.remove("old-2"))
    await _insistently(lambda: user.create("newest", 1))


async def _insistently(act: Callable[[], Awaitable[None]]) -> None:
    """A connection of the user's own may have broken, too."""
    for _ in range(3):
        with suppress(aiohttp.ClientError):
            return await act()
    raise AssertionError("the API server is not back")
