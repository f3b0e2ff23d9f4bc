"""Random sequences of requests, on the simulated and the real servers.

The servers must agree in their answers, in the objects that are left, and in the events
of watches.

FNOP_SEQUENCES is the number of sequences tried with each real server, FNOP_SEED selects
them: `make differential` tries 2,000.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.conformance.differential import FAMILY, Arena, Family, arena
from tests.conformance.sequences import (
    DEFINITIONS_OF_KINDS,
    Op,
    families,
    sequences,
)
from tests.conformance.servers import (
    DEFINITIONS,
    SERVERS,
    install,
    missing,
    running,
)
from tests.conformance.suite import Simulated
from tests.long import parameters

COUNT = int(os.environ.get("FNOP_SEQUENCES") or 30)
SEED = int(os.environ.get("FNOP_SEED") or 1)
PLURALS = {
    "1.20": ("configmaps", "secrets", "things", "plains", "globes"),
    "1.36": ("things", "plains", "globes", "crates", "crates@v1beta1"),
}


FAMILIES = COUNT // 20  # each takes a second or two


@contextmanager
def servers(
    server: str, folder: Path, plurals: tuple[str, ...], *, controllers: bool
) -> Iterator[Arena]:
    """A real server and the simulated one with the kinds of the sequences."""
    if (reason := missing(server)) is not None:
        pytest.skip(reason)
    simulated = Simulated()
    for crd in DEFINITIONS_OF_KINDS:
        assert simulated.raw("POST", DEFINITIONS, crd)[0] == 201
    with running(server, folder, controllers=controllers) as api:
        install(api, DEFINITIONS_OF_KINDS)
        with arena(api, simulated.cluster, plurals, old=server == "1.20") as both:
            yield both


def many(count: int) -> settings:
    return settings(
        max_examples=count,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )


# The older server is slow: test_field_faults.py covers its built-in kinds.
@pytest.mark.parametrize("server", parameters(SERVERS, SERVERS[-1:]))
def test_both_do_the_same(server: str, tmp_path: Path) -> None:
    plurals = PLURALS[server]
    with servers(server, tmp_path, plurals, controllers=False) as both:

        @many(COUNT)
        @seed(SEED)
        @given(sequences(plurals))
        def play(ops: tuple[Op, ...]) -> None:
            both.play(ops)

        play()
        print(f"\n{server}, seed {SEED}: {both.told()}, no difference")


def test_both_collect_the_same(tmp_path: Path) -> None:
    with servers("1.20", tmp_path, FAMILY, controllers=True) as both:
        played: list[Family] = []

        @many(FAMILIES)
        @seed(SEED)
        @given(families(FAMILY))
        def play(ops: tuple[Op, ...]) -> None:
            played.append(both.play_family(ops))

        play()
        print(f"\nfamilies, seed {SEED}: {both.told()}, no difference")
        # Nothing happened behind our back.
        assert [found for family in played if (found := family.unlike())] == []
