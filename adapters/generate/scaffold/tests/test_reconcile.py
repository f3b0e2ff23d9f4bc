"""Decisions: the handler is a plain function of the spec and the children."""

from typing import Any

import fnop
import pytest

from __package__ import (
    kinds,
    operator,
)


def deployment(**status: int) -> dict[str, Any]:
    return {
        "metadata": {"generation": 1},
        "status": {"observedGeneration": 1, **status},
    }


def desired(**deployments: Any) -> fnop.Desired:
    spec = kinds.__Kind__Spec(
        image="nginx",
        replicas=2,
    )
    children: Any = {"deployments.apps": deployments, "services": {}}
    return operator.reconcile(spec=spec, name="example", children=children)


def test_there_is_a_deployment_behind_a_service() -> None:
    workload, service = (child.manifest for child in desired().children)
    pods = workload["spec"]["template"]
    assert workload["spec"]["replicas"] == 2
    assert pods["spec"]["containers"][0]["image"] == "nginx"
    assert workload["spec"]["selector"]["matchLabels"] == pods["metadata"]["labels"]
    assert service["spec"]["selector"] == pods["metadata"]["labels"]


def test_the_status_tells_how_many_pods_are_ready() -> None:
    found = desired(example=deployment(replicas=2, readyReplicas=1))
    (ready,) = found.conditions
    assert (ready.type, ready.status, ready.message) == ("Ready", "False", "1/2")
    assert found.status == {"replicas": 2}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, True),
        ({"observedGeneration": 0}, False),
        ({"updatedReplicas": 1}, False),
        ({"availableReplicas": 1}, False),
        ({"replicas": 3}, False),
    ],
)
def test_a_rollout_ends_when_all_pods_are_up_to_date_and_available(
    change: dict[str, int], expected: bool
) -> None:
    done = {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}
    assert operator.is_rolled_out(deployment(**done | change), 2) is expected
