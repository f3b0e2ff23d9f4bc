"""The status that new objects of built-in kinds have."""

from __future__ import annotations

import pytest

from fnop.interpreters.cluster import answer, empty_cluster
from fnop.interpreters.cluster.kinds.builtins import fresh_status
from fnop.interpreters.cluster.kinds.kinds import Kind, builtin_registry
from fnop.interpreters.cluster.kinds.types import PREFIX, definition, source_of
from fnop.interpreters.runtime.protocol import ApiRequest

WITH_STATUS = [
    kind
    for kind in builtin_registry().by_path.values()
    if kind.status and kind.group != "apiextensions.k8s.io"
]


@pytest.mark.parametrize("kind", WITH_STATUS, ids=lambda kind: kind.plural)
def test_a_fresh_status_has_what_clients_require(kind: Kind) -> None:
    """The models of the official client refuse a status that lacks these fields."""
    source = source_of(kind.group, kind.version, kind.kind)
    assert source is not None
    reference = source["properties"]["status"]["$ref"]
    required = definition(reference.removeprefix(PREFIX)).get("required", [])
    assert set(required) <= fresh_status(kind, {"metadata": {}}).keys()


def test_a_disruption_budget_begins_with_zeros() -> None:
    """Its schema no longer requires them; Go writes them all the same."""
    _, made, _ = answer(
        empty_cluster(),
        ApiRequest(
            "POST",
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            body={"metadata": {"name": "b"}, "spec": {"minAvailable": 1}},
        ),
        0.0,
    )
    assert made.body["status"] == {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    }
