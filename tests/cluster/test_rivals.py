"""Candidates and peers over a real API server, which accepts their writes as intended.

Their clocks are virtual, so no test waits.
"""

from __future__ import annotations

from typing import Any

import yaml

from fnop.core.api.resources import path_of
from fnop.core.peers.election import Resign, has_resigned
from fnop.core.peers.memberships import Leave, has_left
from fnop.interpreters.cluster import empty_cluster
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse
from tests.cluster.envtest import ApiServer
from tests.patience import eventually
from tests.rivals import (
    LEASES,
    LIFETIME,
    PEERINGS,
    Bulletin,
    Host,
    Operator,
    Replica,
    World,
)
from tests.simulations import ROOT

MANIFEST = ROOT / "examples" / "06-peering" / "peering.yaml"


class RealWorld(World):
    """Virtual time over a real server."""

    def __init__(self, api: ApiServer) -> None:
        super().__init__(empty_cluster())
        self.api = api

    def reply(self, request: ApiRequest) -> ApiResponse:
        status, body = self.api.raw(
            request.method,
            request.path,
            request.body,
            request.content_type,
            dict(request.query),
        )
        return ApiResponse(status, body)


def test_a_lease_goes_from_hand_to_hand(apiserver: ApiServer, namespace: str) -> None:
    world = RealWorld(apiserver)
    first = Replica(world, Host("first", dies=40.0), namespace=namespace)
    second = Replica(world, Host("second", starts=1.0), namespace=namespace)
    path = path_of(LEASES, namespace, "operator")

    def spec() -> dict[str, Any]:
        status, body = apiserver.raw("GET", path)
        assert status == 200, body
        found: dict[str, Any] = body["spec"]
        return found

    world.run(10)
    assert (first.may_start, second.may_start) == (True, False)
    assert spec()["holderIdentity"] == "first"
    assert spec()["leaseTransitions"] == 0
    assert spec()["acquireTime"] == "2026-01-01T00:00:00.020000Z"
    # One that is late is refused by the version that it names.
    stale = {"metadata": {"resourceVersion": "1"}, "spec": {"holderIdentity": "x"}}
    status, _ = apiserver.raw(
        "PATCH", path, stale, content_type="application/merge-patch+json"
    )
    assert status == 409
    world.run(60)
    assert second.may_start
    assert spec()["holderIdentity"] == "second"
    assert spec()["leaseTransitions"] == 1
    world.on(second.host, 60, lambda: second.feed(Resign()))
    world.run(61)
    assert has_resigned(second.election)
    assert spec()["holderIdentity"] == ""
    assert spec()["leaseDurationSeconds"] == 1
    third = Replica(world, Host("third", starts=61.0), namespace=namespace)
    world.run(62)
    assert third.may_start
    assert spec()["leaseTransitions"] == 2


def test_records_come_and_go(apiserver: ApiServer) -> None:
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for each in yaml.safe_load_all(MANIFEST.read_text()):
        status, answer = apiserver.raw("POST", crds, each)
        assert status in (201, 409), answer
    path = path_of(PEERINGS, None)
    body = {
        "apiVersion": PEERINGS.api_version,
        "kind": PEERINGS.kind,
        "metadata": {"name": "default"},
    }
    apiserver.raw("DELETE", f"{path}/default")
    eventually(lambda: apiserver.raw("POST", path, body)[0] == 201)
    world = RealWorld(apiserver)
    board = Bulletin(world, [0.01])
    low = Operator(board, Host("low"), 1)
    dies = 50.0
    top = Operator(board, Host("top", starts=5.0, dies=dies), 9)
    world.run(4)
    assert low.serves
    world.run(dies - 1)
    assert (top.serves, low.serves) == (True, False)
    assert set(board.read()["status"]) == {"low", "top"}
    world.run(dies + LIFETIME + 1)
    assert low.serves
    world.run(dies + 3 * LIFETIME)
    assert set(board.read()["status"]) == {"low"}, "the dead are tidied away"
    world.on(low.host, world.time, lambda: low.feed(Leave()))
    world.run(world.time + 1)
    assert has_left(low.peering)
    assert not board.read().get("status")
    apiserver.raw("DELETE", f"{path}/default")
