"""An index that calls handlers of causes again, on a real API server."""

from __future__ import annotations

import asyncio
from typing import Any

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from tests.cluster.envtest import ApiServer
from tests.cluster.operated import operated

MERGE = "application/merge-patch+json"


def test_a_change_while_the_operator_is_down_is_handled_once(
    apiserver: ApiServer, namespace: str
) -> None:
    registry, calls = Registry(), list[str]()

    @fnop.index("secrets", registry=registry)
    def secrets(name: str, namespace: str, body: Any, **_: Any) -> Any:
        return {f"{namespace}/{name}": body.get("data")}

    @fnop.on.create("configmaps", registry=registry, id="use", labels={"uses": "s"})
    @fnop.on.update(
        *("configmaps",),
        registry=registry,
        id="use",
        labels={"uses": "s"},
        requeue_on={secrets: lambda labels, namespace, **_: f"{namespace}/s"},
    )
    def use(name: str, reason: str, secrets: Any = fnop.INDEX, **_: Any) -> None:
        ((found),) = secrets[f"{namespace}/s"]
        calls.append(f"{reason} {name} {found['text']}")

    def put(text: str) -> None:
        change = {"data": {"text": text}}
        path = f"/api/v1/namespaces/{namespace}/secrets/s"
        assert apiserver.raw("PATCH", path, change, content_type=MERGE)[0] == 200

    core, head = f"/api/v1/namespaces/{namespace}", {"apiVersion": "v1"}
    meta: Any = {"name": "s"}
    secret = {**head, "kind": "Secret", "metadata": meta, "data": {"text": "YQ=="}}
    assert apiserver.raw("POST", f"{core}/secrets", secret)[0] == 201
    meta = {"name": "one", "labels": {"uses": "s"}}
    user = {**head, "kind": "ConfigMap", "metadata": meta}
    assert apiserver.raw("POST", f"{core}/configmaps", user)[0] == 201
    program = Program(registry.handlers, Settings(namespaces=(namespace,)))

    def serve(*expected: str) -> None:
        calls.clear()

        def done() -> bool:
            if calls == ["create one YQ=="] and len(expected) > 1:
                put("Yg==")
            return calls == [*expected]

        asyncio.run(operated(apiserver, namespace, done, program=program))

    serve("create one YQ==", "update one Yg==")
    put("Yw==")
    serve("update one Yw==")
