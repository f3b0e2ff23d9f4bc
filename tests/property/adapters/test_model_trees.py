"""A definition admits what the class reads, for random classes and values."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given, settings

from fnop.adapters.definitions.classes import definitions_of
from tests.conformance.servers import DEFINITIONS
from tests.conformance.suite import Simulated
from tests.model_trees import Modelled, assert_alike, modelled
from tests.thorough import examples


@settings(max_examples=examples(40), deadline=None)
@given(modelled())
def test_the_server_admits_what_the_class_reads(found: Modelled) -> None:
    (definition,) = definitions_of([found.kind])
    server, numbers = Simulated(), itertools.count()
    assert server.raw("POST", DEFINITIONS, definition)[0] == 201
    spec: dict[str, Any] = definition["spec"]
    path = f"/apis/{spec['group']}/v1/namespaces/default/{spec['names']['plural']}"
    body = {"apiVersion": f"{spec['group']}/v1", "kind": spec["names"]["kind"]}

    def create(value: dict[str, Any]) -> tuple[int, Any]:
        metadata = {"name": f"thing-{next(numbers)}"}
        return server.raw("POST", path, {**body, "metadata": metadata, "spec": value})

    assert_alike(found, create)
