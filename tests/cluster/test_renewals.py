"""Renewals of a lease and of a record go past a backlog of requests that hang."""

from __future__ import annotations

import time
from collections import Counter
from math import ceil
from pathlib import Path

import yaml

from fnop.core.handlers.declare.settings import Settings
from fnop.core.peers.lease import Candidate, Timing
from fnop.core.peers.peers import Member, Mode
from fnop.core.state.lifecycle import Phase
from tests.cluster.envtest import ApiServer
from tests.cluster.fault_proxy import Fault, Silence, Upstream, proxying
from tests.cluster.fault_world import Operated, User, operated
from tests.patience import patience, soon
from tests.simulations import ROOT

MANIFEST = ROOT / "examples" / "06-peering" / "peering.yaml"
OBJECTS = 48
SLOTS = Settings().request_concurrency
# No load may cost the operator its lease and record; waiting for a slot, it would renew
# neither.
TIMING = Timing(ceil(patience(3)), patience(2), retry_seconds=0.5)
LIFETIME = ceil(patience(1))
# It holds a slot for longer than the test takes.
REQUEST_SECONDS = patience(600)


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
                REQUEST_SECONDS,
                election=Candidate("me", namespace, "operator", TIMING),
                peering=Member("me", lifetime=LIFETIME, mode=Mode.MANDATORY),
                requests_per_second=20.0,
            ) as operator,
        ):
            proxy.arm(Fault(Silence(), method="POST", path="/configmaps$"))
            await soon(lambda: _phase(operator) is Phase.SERVING)
            await soon(lambda: proxy.struck == SLOTS, otherwise=lambda: proxy.struck)
            before = len(proxy.records)

            def renewals() -> Counter[str]:
                return Counter(
                    each.path.rsplit("/", 2)[-2]
                    for each in [*proxy.records][before:]
                    if each.path in (peering, _lease(namespace))
                    and (each.method, each.answered) == ("PATCH", 200)
                )

            await soon(lambda: renewals() >= Counter(leases=6, fnoppeerings=1))
            assert proxy.struck == SLOTS, "all slots are still taken"
            assert _phase(operator) is Phase.SERVING
            lines = [each for each in operator.lines if "leading" in each]
            assert len(lines) == 1, operator.lines
            assert not any("frozen: " in each for each in operator.lines)
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
    manifest = {**body, "metadata": {"name": "default"}}

    async def is_made() -> bool:
        return (await user.upstream.ask("POST", path, manifest))[0] == 201

    await soon(is_made, every=0.1)
    return f"{path}/default"


def _lease(namespace: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/operator"


def _phase(operator: Operated) -> Phase:
    return operator.runner.state.lifecycle.phase
