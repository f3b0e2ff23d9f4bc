"""The simulated and the real API server answer alike."""

from __future__ import annotations

import time

import pytest

from tests.cluster.envtest import ApiServer
from tests.conformance.cases import CASES, CRDS
from tests.conformance.suite import Case, Simulated, check_step, compare, play

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def version(apiserver: ApiServer) -> str:
    """The version of the real server, with the kinds of the cases installed."""
    for crd in CRDS:
        status, body = apiserver.raw("POST", DEFINITIONS, crd)
        assert status == 201, body
    for crd in CRDS:
        spec = crd["spec"]
        path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}"
        path += f"/{spec['names']['plural']}"
        deadline = time.monotonic() + 20
        while apiserver.raw("GET", path)[0] != 200:
            assert time.monotonic() < deadline, path
            time.sleep(0.05)
    found = apiserver.raw("GET", "/version")[1]
    return f"{found['major']}.{found['minor'].rstrip('+')}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_both_answer_alike(case: Case, apiserver: ApiServer, version: str) -> None:
    namespace = apiserver.namespace()
    simulated = Simulated()
    for crd in CRDS:
        assert simulated.raw("POST", DEFINITIONS, crd)[0] == 201
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    assert simulated.raw("POST", "/api/v1/namespaces", body)[0] == 201
    ours = play(case, simulated, namespace)
    theirs = play(case, apiserver, namespace)
    for step, (status, found) in zip(case.steps, theirs, strict=True):
        check_step(step, status, found, version=version)
    compare(case, ours, theirs, version=version)
