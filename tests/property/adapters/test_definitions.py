"""Definitions of random types: a server takes them, and fills in Python's defaults."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from fnop.adapters.common.manifests import parse_yaml
from fnop.adapters.definitions.classes import definitions_of, definitions_yaml
from tests.conformance.servers import DEFINITIONS
from tests.conformance.suite import Simulated
from tests.thorough import examples
from tests.type_trees import Kind, kinds


@settings(max_examples=examples(15), deadline=None)
@given(kinds())
def test_the_server_fills_in_what_python_would(kind: Kind) -> None:
    (definition,) = definitions_of([kind.cls])
    server = Simulated()
    assert server.raw("POST", DEFINITIONS, definition)[0] == 201
    spec: dict[str, Any] = definition["spec"]
    path = f"/apis/{spec['group']}/v1/namespaces/default/{spec['names']['plural']}"
    body = {"apiVersion": f"{spec['group']}/v1", "kind": spec["names"]["kind"]}
    status, empty = server.raw("POST", path, {**body, "metadata": {"name": "empty"}})
    assert (status, empty.get("spec")) == (201, kind.spec)
    # What it has filled in is what it takes.
    whole = {**body, "metadata": {"name": "whole"}, "spec": kind.spec}
    status, found = server.raw("POST", path, whole)
    assert (status, found.get("spec")) == (201, kind.spec)


@settings(max_examples=examples(12), deadline=None)
@given(kinds())
def test_what_is_printed_is_read_back(kind: Kind) -> None:
    definitions = definitions_of([kind.cls])
    text = definitions_yaml(definitions)
    assert parse_yaml(text) == definitions[0]
    assert definitions_yaml(definitions_of([kind.cls])) == text
