"""The real API servers answer as written down, as recorded, and as the simulated."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from fnop.interpreters.cluster import Cluster
from tests.conformance.cases import CASES
from tests.conformance.golden import recorded
from tests.conformance.servers import NAMESPACE, Real, fork
from tests.conformance.suite import (
    Case,
    assert_alike,
    check_step,
    kept,
    normalized,
    play,
)

COMPARED = [
    pytest.param(case, server, id=f"{case.name} ({server})")
    for case in CASES
    for server in case.servers
]


@pytest.mark.parametrize(("case", "server"), COMPARED)
def test_both_answer_alike(
    case: Case, server: str, real: Callable[[str], Real], base: Cluster
) -> None:
    if case.slow and not os.environ.get("FNOP_SLOW"):
        pytest.skip("slow: set FNOP_SLOW, or see the recorded transcript")
    answers, namespace = real(server).play(case)
    for step, (status, body) in zip(case.steps, answers, strict=True):
        check_step(step, status, body, server=server)
    golden = recorded(case, server)
    scopes = kept(case, server, golden)
    theirs = normalized(case, answers, namespace, server, scopes)
    ours = play(case, fork(base), NAMESPACE)
    assert_alike(
        case,
        normalized(case, ours, NAMESPACE, server, scopes),
        theirs,
        f"Kubernetes {server} answers",
    )
    assert golden is None or golden == theirs, "the recorded transcript is not current"
