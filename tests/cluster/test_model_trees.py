"""A real API server admits what classes that pydantic reads admit."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import HealthCheck, Phase, assume, given, seed, settings

from fnop.adapters.definitions.classes import definitions_of
from tests.cluster.envtest import ApiServer
from tests.conformance.servers import DEFINITIONS
from tests.model_trees import Modelled, assert_alike, modelled
from tests.patience import eventually


def test_the_server_admits_what_the_class_reads(
    apiserver: ApiServer, namespace: str
) -> None:
    numbers, admitted = itertools.count(), []

    @seed(1)
    @settings(
        max_examples=8,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(modelled())
    def play(found: Modelled) -> None:
        (definition,) = definitions_of([found.kind])
        # The validator of 1.20 takes an empty text for null.
        assume('""' not in json.dumps([definition, found.values, found.others]))
        status, answer = apiserver.raw("POST", DEFINITIONS, definition)
        assert status == 201, answer["message"]
        spec: dict[str, Any] = definition["spec"]
        group, names = spec["group"], spec["names"]
        path = f"/apis/{group}/v1/namespaces/{namespace}/{names['plural']}"

        def create(value: dict[str, Any]) -> tuple[int, Any]:
            metadata = {"name": f"thing-{next(numbers)}"}
            body = {"apiVersion": f"{group}/v1", "kind": names["kind"]}
            return apiserver.raw(
                "POST", path, {**body, "metadata": metadata, "spec": value}
            )

        # A real server serves a kind a while after it has been defined.
        eventually(lambda: create(found.values[0])[0] != 404)
        admitted.append(assert_alike(found, create))
        apiserver.raw("DELETE", f"{DEFINITIONS}/{definition['metadata']['name']}")

    play()
    assert sum(admitted)
