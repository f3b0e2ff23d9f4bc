"""The real API servers answer as written down, as recorded, and as the simulated."""

from __future__ import annotations

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
    answers, theirs = real(server).play(case)
    for step, (status, body) in zip(case.steps, answers, strict=True):
        check_step(step, status, body, server=server)
    ours = normalized(case, play(case, fork(base), NAMESPACE), NAMESPACE, server)
    assert_alike(case, ours, theirs, f"Kubernetes {server} answers")
    golden = recorded(case, server)
    assert golden is None or golden == theirs, "the recorded transcript is not current"
