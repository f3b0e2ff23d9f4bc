"""The simulated API server keeps what the conformance cases write down.

The same cases run against a real server in tests/cluster.
"""

from __future__ import annotations

import pytest

from fnop.interpreters.cluster import Cluster
from tests.conformance.cases import CASES, CRDS
from tests.conformance.suite import Case, Simulated, check_step, play

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def prepared() -> Cluster:
    """A cluster with the kinds and the namespace of the cases: cases fork it."""
    server = Simulated()
    for crd in CRDS:
        assert server.raw("POST", DEFINITIONS, crd)[0] == 201
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "here"}}
    assert server.raw("POST", "/api/v1/namespaces", body)[0] == 201
    return server.cluster


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_simulated_answers_as_written_down(case: Case, prepared: Cluster) -> None:
    server = Simulated()
    server.cluster = prepared
    for step, (status, body) in zip(
        case.steps, play(case, server, "here"), strict=True
    ):
        check_step(step, status, body)
