"""The pytest fixture `fnop_cluster`: a simulated cluster for one test.

pytest loads this file wherever fnop is installed: what is large is imported when a
test first asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fnop.adapters.testing.cluster_fixture import SimulatedCluster


@pytest.fixture
def fnop_cluster() -> SimulatedCluster:
    """A simulated Kubernetes cluster: `.apply()`, `.get()`, `.settle()`, `.serve()`."""
    from fnop.adapters.testing.cluster_fixture import SimulatedCluster

    return SimulatedCluster()
