"""The example's operator of a typed kind on a real API server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.envtest import ApiServer
from tests.cluster.operating import (
    MERGE_PATCH,
    assert_replays,
    operating,
    serve,
)
from tests.patience import eventually
from tests.simulations import ROOT

FOLDER = ROOT / "examples" / "18-definitions"


def test_the_operator_of_a_typed_kind_does_what_it_says(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    crd = yaml.safe_load((FOLDER / "crd.yaml").read_text())
    manifest = yaml.safe_load((FOLDER / "object.yaml").read_text())
    serve(apiserver, crd)
    path = f"/apis/fnop.dev/v1/namespaces/{namespace}/databases"
    trial = {"dryRun": "All"}
    eventually(lambda: apiserver.raw("POST", path, manifest, query=trial)[0] == 201)
    child = f"/api/v1/namespaces/{namespace}/configmaps/example-1-settings"

    def size() -> Any:
        return (apiserver.raw("GET", child)[1].get("data") or {}).get("size")

    def database() -> Any:
        return apiserver.raw("GET", f"{path}/example-1")[1]

    file = FOLDER / "databases.py"
    with operating(file, apiserver, namespace, tmp_path) as operator:

        def told() -> str:
            return "\n".join(operator.lines)

        operator.start(record=True)
        assert apiserver.raw("POST", path, manifest)[0] == 201
        eventually(
            lambda: size() == "10Gi", otherwise=lambda: "\n".join(operator.lines)
        )
        eventually(lambda: (database().get("status") or {}).get("fnop.dev/default"))
        found = database()
        assert found["spec"]["backup"] == {"schedule": "0 3 * * *", "keep": 7}
        assert json.loads(found["status"]["fnop.dev/default"])
        assert "fnop.dev/default" not in found["metadata"].get("annotations", {})
        change = {"spec": {"size": "20Gi", "replicas": 3}}
        apiserver.raw("PATCH", f"{path}/example-1", change, MERGE_PATCH)
        eventually(
            lambda: size() == "20Gi", otherwise=lambda: "\n".join(operator.lines)
        )
        scale = f"{path}/example-1/scale"
        eventually(
            lambda: apiserver.raw("GET", scale)[1]["status"].get("replicas") == 3
        )
        assert operator.stop() == 0, operator.lines
    (recording,) = operator.recordings
    assert_replays(recording, file)
