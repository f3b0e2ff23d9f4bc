"""Renewals of a lease and of a record go past a backlog of requests that hang."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path

import yaml

from fnop.core.peers.lease import Candidate, Timing
from fnop.core.peers.peers import Member, Mode
from fnop.core.state.lifecycle import Phase
from tests.cluster.envtest import ApiServer
from tests.cluster.fault_proxy import Fault, Silence, Upstream, proxying
from tests.cluster.fault_world import Operated, User, operated
from tests.simulations import ROOT

MANIFEST = ROOT / "examples" / "06-peering" / "peering.yaml"
OBJECTS = 48
# A lease and a record that are lost by anything that takes a while.
TIMING = Timing(lease_seconds=3, renew_deadline_seconds=2.0, retry_seconds=0.5)
LIFETIME = 5
PATIENCE_SECONDS = 30.0
WATCHED_SECONDS = 6.0


async def test_a_backlog_that_hangs_costs_neither_the_lease_nor_the_record(
    apiserver: ApiServer, tmp_path: Path
) -> None:
    """All slots are taken, and there are few requests a second."""
    namespace = f"renewals-{time.monotonic_ns()}"
    upstream = Upstream(apiserver)
    user = User(upstream, namespace)
    try:
        await user.define()
        peering = await _peering(user)
        for number in range(OBJECTS):
            await user.create(f"object-{number}", 1)
        async with (
            proxying(upstream) as proxy,
            operated(
                proxy.kubeconfig(tmp_path),
                namespace,
                election=Candidate("me", namespace, "operator", TIMING),
                peering=Member("me", lifetime=LIFETIME, mode=Mode.MANDATORY),
                requests_per_second=20.0,
            ) as operator,
        ):
            proxy.arm(Fault(Silence(), method="POST", path="/configmaps$"))
            await _until_serving(operator)
            await asyncio.sleep(WATCHED_SECONDS)  # the time in which it could lose them
            assert operator.runner.state.lifecycle.phase is Phase.SERVING
            lines = [each for each in operator.lines if "leading" in each]
            assert len(lines) == 1, operator.lines
            assert not any("frozen: " in each for each in operator.lines)
            renewals = Counter(
                each.path.rsplit("/", 2)[-2]
                for each in proxy.records
                if each.method == "PATCH" and each.path in (peering, _lease(namespace))
            )
            assert renewals["leases"] >= WATCHED_SECONDS / TIMING.renew_deadline_seconds
            assert renewals["fnoppeerings"] >= WATCHED_SECONDS / LIFETIME
            assert proxy.struck >= 32, "all slots were taken"
            assert proxy.struck >= 32, "all slots were taken"
            proxy.disarm()
    finally:
        await upstream.close()


async def _peering(user: User) -> str:
    """The path of a peering object in the user's namespace, which is served."""
    for each in yaml.safe_load_all(MANIFEST.read_text()):
        if each["kind"] == "CustomResourceDefinition":
            path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            status, answer = await user.upstream.ask("POST", path, each)
            assert status in (201, 409), answer
    path = f"/apis/fnop.dev/v1/namespaces/{user.namespace}/fnoppeerings"
    body = {"apiVersion": "fnop.dev/v1", "kind": "FnopPeering"}
    async with asyncio.timeout(PATIENCE_SECONDS):
        manifest = {**body, "metadata": {"name": "default"}}
        while (await user.upstream.ask("POST", path, manifest))[0] != 201:
            await asyncio.sleep(0.1)
    return f"{path}/default"


def _lease(namespace: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/operator"


async def _until_serving(operator: Operated) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while operator.runner.state.lifecycle.phase is not Phase.SERVING:
            await asyncio.sleep(0.05)
