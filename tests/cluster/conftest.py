"""The tests in this folder run against a real API server, or not at all."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.envtest import ApiServer, missing, running

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


@pytest.fixture(scope="package")
def apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """One API server for all of these tests, which ends with them; see `ApiServer`."""
    if (reason := missing()) is not None:
        pytest.skip(reason)
    with running(tmp_path_factory.mktemp("apiserver")) as server:
        yield server


@pytest.fixture
def namespace(apiserver: ApiServer) -> str:
    """The name of a namespace that was just created, for this test alone."""
    return apiserver.namespace()
