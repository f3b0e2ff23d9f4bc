"""`fnop explain` shows the requests to the API server about an object's kind."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource, Selectors
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.interpreters.explain.facts import Requested
from fnop.interpreters.explain.fitting import requested_for

PODS = Resource("", "v1", "pods", "Pod")
SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")


def named(name: str, **_: Any) -> None: ...


def whole(spec: Any, **_: Any) -> None: ...


CHOSEN: dict[str, Any] = {"labels": {"a": "b"}, "fields": {"spec.nodeName": "n"}}
CASES: list[tuple[list[tuple[Any, str, Any, Any]], Requested | None]] = [
    ([], None),
    ([(fnop.on.event, "replicasets", named, {})], None),
    (
        [(fnop.on.event, "pods", named, {})],
        Requested(Selectors(), metadata_only=True),
    ),
    (
        [(fnop.index, "pods", whole, CHOSEN)],
        Requested(Selectors("a=b", "spec.nodeName=n"), metadata_only=False),
    ),
    (
        [
            (fnop.on.event, "pods", named, {"labels": {"a": "b"}}),
            (fnop.reconcile, "replicasets", whole, {"owns": ["pods"]}),
        ],
        Requested(Selectors(), metadata_only=False),
    ),
]


@pytest.mark.parametrize(("declared", "expected"), CASES, ids=range(len(CASES)))
def test_the_handlers_of_a_kind_decide(
    declared: list[tuple[Any, str, Any, Any]], expected: Requested | None
) -> None:
    registry = Registry()
    for number, (decorator, kind, fn, options) in enumerate(declared):
        decorator(kind, registry=registry, id=f"h{number}", **options)(fn)
    catalogue = Catalogue((PODS, SETS))
    found = requested_for(registry.handlers, catalogue, PODS, Settings())
    assert found == expected
