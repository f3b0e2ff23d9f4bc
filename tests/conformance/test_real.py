"""The real API servers answer as written down, as recorded, and as the simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http.client import RemoteDisconnected

import pytest

from fnop.interpreters.cluster import Cluster
from tests.conformance.cases import CASES, TOPICS
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

# One case in this number is played at once.
SHARE = 3


def chosen() -> Iterator[str]:
    """The first case of each subject, such as "crds: ", and a part of the others.

    What a real server answers to a case does not change while neither does: the
    simulated one plays all of the recorded transcripts at once (test_simulated.py).
    """
    for topic, cases in TOPICS.items():
        known: set[str] = set()
        for number, case in enumerate(cases):
            subject, colon, _ = case.name.partition(":")
            if number % SHARE == 0 or (subject if colon else topic) not in known:
                yield case.name
            known.add(subject if colon else topic)


CHOSEN = frozenset(chosen())


def marks(case: Case, server: str) -> tuple[pytest.MarkDecorator, ...]:
    """The last server that a case is for plays it at once, the others take long."""
    is_first = case.name in CHOSEN and server == case.servers[-1]
    return () if is_first and not case.slow else (pytest.mark.long,)


COMPARED = [
    pytest.param(case, server, id=f"{case.name} ({server})", marks=marks(case, server))
    for case in CASES
    for server in case.servers
]


@pytest.mark.parametrize(("case", "server"), COMPARED)
def test_both_answer_alike(
    case: Case, server: str, real: Callable[[str], Real], base: Cluster
) -> None:
    try:
        answers, namespace = real(server).play(case)
    except RemoteDisconnected:
        if not case.slow:
            raise
        pytest.skip("the real server has hung up, as it does here now and then")
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
