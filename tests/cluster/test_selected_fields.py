"""Field selectors on a real API server: fields that it knows, and that it refuses."""

from __future__ import annotations

import asyncio
from typing import Any

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from tests.cluster.envtest import ApiServer
from tests.cluster.operated import operated


def manifest(kind: str, name: str, **stanzas: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **stanzas}


def test_fields_select_on_the_server_or_else_here(
    apiserver: ApiServer, namespace: str
) -> None:
    registry, seen = Registry(), set()

    @fnop.index("secrets", fields={"type": "example.com/a"}, registry=registry)
    def typed(name: str, **_: Any) -> None:
        seen.add(f"secret {name}")

    @fnop.index("configmaps", fields={"data.a": "1"}, registry=registry)
    def chosen(name: str, **_: Any) -> None:
        seen.add(f"config {name}")

    core = f"/api/v1/namespaces/{namespace}"
    for name in ("a", "b"):
        body = manifest("Secret", name, type=f"example.com/{name}")
        assert apiserver.raw("POST", f"{core}/secrets", body)[0] == 201
    for name, value in (("x", "1"), ("y", "2")):
        body = manifest("ConfigMap", name, data={"a": value})
        assert apiserver.raw("POST", f"{core}/configmaps", body)[0] == 201
    settings = Settings(namespaces=(namespace,))
    program = Program(registry.handlers, settings)
    requests = asyncio.run(
        operated(apiserver, namespace, lambda: len(seen) >= 2, program=program)
    )
    assert seen == {"secret a", "config x"}
    asked = {
        (each.path.rpartition("/")[2], dict(each.query).get("fieldSelector", ""))
        for each in requests
        if each.path.endswith(("/secrets", "/configmaps"))
    }
    assert asked == {
        ("secrets", "type=example.com/a"),
        *(("configmaps", "data.a=1"), ("configmaps", "")),
    }
