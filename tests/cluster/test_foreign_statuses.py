"""Foreign statuses on a real API server, as in the simulated cluster."""

from __future__ import annotations

import asyncio
from typing import Any

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from tests.cluster.envtest import ApiServer
from tests.cluster.operated import operated
from tests.cluster.operating import User, serve
from tests.foreign_statuses import STATUSES, definition_with
from tests.patience import eventually


def test_the_authors_status_is_written(apiserver: ApiServer, namespace: str) -> None:
    registry = Registry()
    user = User(apiserver, namespace)
    user.define()
    for number, (name, (_, _, status)) in enumerate(STATUSES.items()):
        serve(apiserver, definition_with(name, number))
        kind = f"foreign{number}s"
        wanted = {"phase": "Ready", **status}

        @fnop.reconcile(kind, owns=["configmaps"], id=kind, registry=registry)
        def serve_it(name: str, wanted: Any = wanted, **_: Any) -> Any:
            child = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name},
            }
            return fnop.desired([child], status=wanted)

        thing = {"apiVersion": "fnop.dev/v1", "kind": f"Foreign{number}"}
        manifest = {**thing, "metadata": {"name": kind}, "spec": {"size": 1}}
        path = f"/apis/fnop.dev/v1/namespaces/{namespace}/{kind}"
        eventually(
            lambda path=path, manifest=manifest: (  # type: ignore[misc]
                apiserver.raw("POST", path, manifest)[0] in (201, 409)
            )
        )

    def phases() -> list[Any]:
        found = []
        for number in range(len(STATUSES)):
            kind = f"foreign{number}s"
            path = f"/apis/fnop.dev/v1/namespaces/{namespace}/{kind}/{kind}"
            _, answer = apiserver.raw("GET", path)
            found.append(answer.get("status", {}).get("phase"))
        return found

    program = Program(registry.handlers, Settings(namespaces=(namespace,)))
    ready = ["Ready"] * len(STATUSES)
    asyncio.run(
        operated(apiserver, namespace, lambda: phases() == ready, program=program)
    )
