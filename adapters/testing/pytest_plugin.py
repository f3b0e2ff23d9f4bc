"""The pytest fixture `fnop_cluster`: a simulated cluster for one test.

pytest loads this file in every environment with fnop. So large modules are imported
only when a test first uses the fixture.
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
