"""The tests in this folder run against a real API server, or not at all."""

from pathlib import Path

import pytest

from tests.cluster.envtest import missing

HERE = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cluster: runs against a real API server")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = missing()
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.cluster)
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=reason))
