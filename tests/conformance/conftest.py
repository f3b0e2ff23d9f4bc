"""The real servers of the conformance cases: one of each, which end with the tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fnop.interpreters.cluster import Cluster
from tests.conformance.servers import Real, missing, prepared, started


@pytest.fixture(scope="session")
def base() -> Cluster:
    """The simulated cluster that every case forks."""
    return prepared()


@pytest.fixture(scope="package")
def real(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[str], Real]]:
    """Start a real server of a version, or skip the test if there is none."""
    found: dict[str, Real] = {}
    with ExitStack() as stack:

        def start(version: str) -> Real:
            if (reason := missing(version)) is not None:
                pytest.skip(reason)
            if version not in found:
                folder = tmp_path_factory.mktemp(f"server-{version}")
                found[version] = stack.enter_context(started(version, folder))
            return found[version]

        yield start


@pytest.fixture(scope="module")
def folder() -> Path:
    """The packages of well-known projects, which `make definitions` fetches."""
    named = os.environ.get("FNOP_DEFINITIONS")
    if not named:
        pytest.skip("needs packages of npm and PyPI: run make definitions")
    return Path(named)
