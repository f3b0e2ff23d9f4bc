"""Metadata alone on a real API server: what is asked for, and what handlers see."""

from __future__ import annotations

import asyncio
from typing import Any

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from tests.cluster.envtest import ApiServer
from tests.cluster.operated import operated


def test_a_listing_and_a_watch_bring_metadata(
    apiserver: ApiServer, namespace: str
) -> None:
    registry, seen = Registry(), list[tuple[Any, str, str]]()
    core = f"/api/v1/namespaces/{namespace}/configmaps"
    written = set[str]()

    @fnop.on.event("configmaps", registry=registry)
    def labelled(name: str, type: Any, labels: Any, resource: Any, **_: Any) -> Any:
        seen.append((type, name, labels.get("a", "")))
        if name == "first" and "second" not in written:
            written.add("second")
            meta = {"name": "second", "labels": {"a": "2"}}
            return fnop.create(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
            )
        return fnop.event("Seen", resource.kind)

    meta = {"name": "first", "labels": {"a": "1"}}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    assert apiserver.raw("POST", core, {**manifest, "data": {"x": "y"}})[0] == 201
    program = Program(registry.handlers, Settings(namespaces=(namespace,)))
    requests = asyncio.run(
        operated(apiserver, namespace, lambda: len(seen) >= 2, program=program)
    )
    names = [each for each in seen if each[1] in ("first", "second")]
    assert names == [(None, "first", "1"), ("ADDED", "second", "2")]
    read = [e for e in requests if e.method == "GET" and e.path == core]
    assert read
    assert all("as=PartialObjectMetadataList" in each.accept for each in read)
