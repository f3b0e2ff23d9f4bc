"""The operator of examples/deployment, with the rights and variables of its manifests.

On a real API server with RBAC; the kubelet's part, to start and to probe it, is ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.deploying import Pod, applied, assert_all_is_well, live_through
from tests.cluster.envtest import ApiServer, end
from tests.cluster.operating import User
from tests.deployments import manifests


@contextmanager
def deployed(api: ApiServer, files: list[str], served: str) -> Iterator[None]:
    """The manifests' objects, except for the namespace, which other tests may use."""
    paths = [path for file in files for path in applied(api, manifests(file), served)]
    try:
        yield
    finally:
        for path in paths:
            if not path.startswith("/api/v1/namespaces/fnop-operator"):
                api.raw("DELETE", path)


@pytest.mark.parametrize("rights", ["rbac.yaml", "rbac-namespaced.yaml"])
def test_everything_is_handled_with_these_rights(
    apiserver: ApiServer, namespace: str, tmp_path: Path, rights: str
) -> None:
    user = User(apiserver, namespace)
    user.define()
    served = namespace if rights == "rbac-namespaced.yaml" else None
    with deployed(apiserver, [rights], namespace):
        pod = Pod(apiserver, "deployment.yaml", served, tmp_path / "pod-1.log")
        try:
            live_through(user, [pod])
            assert pod.stop() == 0, pod.text
        finally:
            end(pod.process)
    assert_all_is_well(pod.text, namespace)


def test_of_two_replicas_one_serves(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    user = User(apiserver, namespace)
    user.define()
    files = ["rbac.yaml", "leader-elect.yaml"]
    with deployed(apiserver, files, namespace):
        pods = [
            Pod(apiserver, "leader-elect.yaml", None, tmp_path / f"pod-{number}.log")
            for number in (1, 2)
        ]
        try:
            live_through(user, pods)
            assert [pod.stop() for pod in pods] == [0, 0]
        finally:
            for pod in pods:
                end(pod.process)
    for pod in pods:
        assert_all_is_well(pod.text, namespace)
    served = [pod.name for pod in pods if "and its Pod with it" in pod.text]
    assert len(served) == 1
