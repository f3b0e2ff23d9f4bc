"""The test server itself: it starts, answers, and has its controllers."""

from tests.cluster.envtest import ApiServer


def test_it_answers_as_the_admin(apiserver: ApiServer, namespace: str) -> None:
    status, found = apiserver.raw("GET", f"/api/v1/namespaces/{namespace}")
    assert (status, found["metadata"]["name"]) == (200, namespace)
    assert "apiserver_request_total" in apiserver.metrics()


def test_namespaces_are_fresh(apiserver: ApiServer) -> None:
    assert apiserver.namespace() != apiserver.namespace()


def test_errors_are_answers(apiserver: ApiServer, namespace: str) -> None:
    status, problem = apiserver.raw("GET", f"/api/v1/namespaces/{namespace}/pods/x")
    assert (status, problem["reason"]) == (404, "NotFound")
