"""The API server's treatment of changes with a uid, and of parts of an object."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse
from tests.cluster import crd_server
from tests.cluster.envtest import ApiServer
from tests.in_flight import OBJECTS, Asking, assert_split, assert_uid_decides
from tests.patience import eventually
from tests.simulations import DEFINITION, example

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(params=["1.20", "1.36"])
def ask(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Asking]:
    if request.param == "1.20":
        yield asking(request.getfixturevalue("apiserver"))
        return
    if (reason := crd_server.missing()) is not None:
        pytest.skip(reason)
    with crd_server.running(tmp_path_factory.mktemp("crd-server")) as api:
        yield asking(api)


def asking(api: ApiServer) -> Asking:
    status, answer = api.raw("POST", DEFINITIONS, DEFINITION)
    assert status in (201, 409), answer
    trial, query = example("trial"), {"dryRun": "All"}
    eventually(lambda: api.raw("POST", OBJECTS, trial, query=query)[0] == 201)

    def ask(sent: ApiRequest) -> ApiResponse:
        of_type = sent.content_type or "application/json"
        found = api.raw(sent.method, sent.path, sent.body, of_type, dict(sent.query))
        return ApiResponse(*found)

    return ask


def test_a_uid_decides_which_object_is_changed(ask: Asking) -> None:
    assert_uid_decides(ask)


def test_a_json_patch_goes_to_the_endpoint_of_each_part(ask: Asking) -> None:
    assert_split(ask)
