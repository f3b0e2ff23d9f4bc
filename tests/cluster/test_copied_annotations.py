"""The deployment controller copies the operator's state to the ReplicaSets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cluster.envtest import ApiServer, has_manager
from tests.cluster.operating import Operator, User, operating
from tests.patience import eventually

OPERATOR = Path(__file__).parent / "operators" / "copied.py"
DEPLOYMENT = "/apis/apps/v1/namespaces/{}/deployments"


def deployment(image: str) -> dict[str, Any]:
    labels = {"app": "web"}
    spec = {"containers": [{"name": "web", "image": image}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def calls(operator: Operator, reason: str) -> list[str]:
    """The objects that were called for a reason, sorted."""
    lines = [each for each in operator.lines if each.endswith(f"called: {reason}")]
    return sorted(each.rpartition("] ")[0].rpartition("[")[2] for each in lines)


@pytest.mark.skipif(not has_manager(), reason="needs kube-controller-manager")
def test_each_replica_set_is_created_once(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    user, path = User(apiserver, namespace), DEPLOYMENT.format(namespace)

    def states() -> list[bool]:
        found = user.objects("replicasets")
        return [_has_own_state(each) for each in found]

    with operating(OPERATOR, apiserver, namespace, tmp_path) as operator:

        def told() -> str:
            return "\n".join(operator.lines)

        operator.start()
        status, answer = apiserver.raw("POST", path, deployment("web:1"))
        assert status == 201, answer
        eventually(lambda: states() == [True], otherwise=told)
        # A rollout: the state is copied to the next ReplicaSet when it is made.
        merge = "application/strategic-merge-patch+json"
        template = deployment("web:2")["spec"]["template"]
        changed = {"spec": {"template": template}}
        status, answer = apiserver.raw("PATCH", f"{path}/web", changed, merge)
        assert status == 200, answer
        eventually(lambda: states() == [True] * 2, otherwise=told)
        operator.stop()
        operator.start()
        eventually(
            lambda: len(calls(operator, "resume")) == 3,
            otherwise=told,
        )
        created = calls(operator, "create")
        assert len(created) == len({*created}) == 3, created


def _has_own_state(replica_set: dict[str, Any]) -> bool:
    names = replica_set["metadata"].get("annotations", {})
    return any(name.startswith("fnop.dev/default.") for name in names)
