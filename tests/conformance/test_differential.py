"""Random sequences of requests: the simulated and the real servers cannot be told
apart by their answers, by the objects that are left, or by what watches show.

FNOP_SEQUENCES says how many are tried with each real server, FNOP_SEED which.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.conformance.differential import arena
from tests.conformance.sequences import DEFINITIONS_OF_KINDS, KINDS, Op, sequences
from tests.conformance.servers import (
    DEFINITIONS,
    SERVERS,
    install,
    missing,
    running,
)
from tests.conformance.suite import Simulated

COUNT = int(os.environ.get("FNOP_SEQUENCES") or 0)
SEED = int(os.environ.get("FNOP_SEED") or 1)
PLURALS = {
    "1.20": tuple(KINDS),
    "1.36": tuple(plural for plural, kind in KINDS.items() if kind.custom),
}


@pytest.mark.parametrize("server", SERVERS)
def test_both_do_the_same(server: str, tmp_path: Path) -> None:
    if not COUNT:
        pytest.skip("FNOP_SEQUENCES is not set")
    if (reason := missing(server)) is not None:
        pytest.skip(reason)
    simulated = Simulated()
    for crd in DEFINITIONS_OF_KINDS:
        assert simulated.raw("POST", DEFINITIONS, crd)[0] == 201
    with running(server, tmp_path, controllers=False) as api:
        install(api, DEFINITIONS_OF_KINDS)
        with arena(
            api, simulated.cluster, PLURALS[server], old=server == "1.20"
        ) as both:

            @settings(
                max_examples=COUNT,
                database=None,
                phases=(Phase.generate, Phase.shrink),
                suppress_health_check=list(HealthCheck),
            )
            @seed(SEED)
            @given(sequences(PLURALS[server]))
            def play(ops: tuple[Op, ...]) -> None:
                both.play(ops)

            play()
