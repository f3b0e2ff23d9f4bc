"""The documented rules for a finalizer that is added while its object is deleted."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from tests.cluster import crd_server
from tests.cluster.envtest import ApiServer
from tests.patience import eventually
from tests.simulations import DEFINITION, example

TRIES = 1_000
HOLD = {"metadata": {"finalizers": ["example.com/hold"]}}
RELEASE = {"metadata": {"finalizers": None}}
MERGE = "application/merge-patch+json"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OBJECTS = "/apis/fnop.dev/v1/namespaces/default/fnopexamples"


@pytest.fixture(params=["1.20", "1.36"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApiServer]:
    if request.param == "1.20":
        yield request.getfixturevalue("apiserver")
        return
    if (reason := crd_server.missing()) is not None:
        pytest.skip(reason)
    with crd_server.running(tmp_path_factory.mktemp("crd-server")) as api:
        yield api


def another(api: ApiServer, found: ExitStack) -> ApiServer:
    """A client with a connection of its own."""
    client = ApiServer(api.url, api.kubeconfig.parent, api._tls)
    found.callback(client.close)
    return client


def test_a_finalizer_that_was_stored_may_not_hold_a_deletion(server: ApiServer) -> None:
    """The object is gone, although a patch that added a finalizer was answered 200.

    The API server decides by what it has read whether it deletes at once, and compares
    no version when it does (k8s.io/apiserver, registry/generic: Store.Delete).
    """
    define(server)
    with ExitStack() as open_ones, ThreadPoolExecutor(2) as pool:
        first, second = another(server, open_ones), another(server, open_ones)
        for number in range(TRIES):
            manifest = example(f"raced-{number}")
            assert server.raw("POST", OBJECTS, manifest)[0] == 201
            path = f"{OBJECTS}/raced-{number}"
            patching = pool.submit(first.raw, "PATCH", path, HOLD, MERGE)
            deleting = pool.submit(second.raw, "DELETE", path)
            (patched, stored), (deleted, answer) = patching.result(), deleting.result()
            assert deleted == 200, answer
            is_there = server.raw("GET", path)[0] == 200
            if is_there:
                assert server.raw("PATCH", path, RELEASE, MERGE)[0] == 200
            elif patched == 200:
                assert_held(stored)
                return
    pytest.fail(f"not seen in {TRIES} tries")


def define(server: ApiServer) -> None:
    status, answer = server.raw("POST", DEFINITIONS, DEFINITION)
    assert status in (201, 409), answer
    trial, query = example("trial"), {"dryRun": "All"}
    eventually(lambda: server.raw("POST", OBJECTS, trial, query=query)[0] == 201)


def assert_held(stored: Any) -> None:
    metadata = stored["metadata"]
    assert metadata["finalizers"] == HOLD["metadata"]["finalizers"]
    assert "deletionTimestamp" not in metadata
