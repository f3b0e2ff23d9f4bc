"""A project of `fnop new` on a real API server: definition, test and rights."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from fnop.adapters.generate.rights import Account
from tests.cluster import crd_server
from tests.cluster.accounts import an_account
from tests.cluster.envtest import ApiServer
from tests.cluster.operating import MERGE_PATCH, operating, serve
from tests.commands import PYTEST, fnop
from tests.patience import eventually, patience
from tests.simulations import ROOT

GROUP = "new.example.com"


def documents(file: Path) -> list[dict[str, Any]]:
    return [*yaml.safe_load_all(file.read_text())]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new")
    done = fnop("new", "my-operator", "--group", GROUP, folder=folder)
    assert done.status == 0, done.err
    return folder / "my-operator"


@pytest.fixture
def project(made: Path, apiserver: ApiServer, tmp_path: Path) -> Path:
    """A new project, whose definition the server has taken as it is."""
    folder = shutil.copytree(made, tmp_path / "my-operator")
    file = folder / "deploy" / "crd.yaml"
    (definition,) = documents(file)
    serve(apiserver, definition)
    # 1.20 takes the empty text, which a message may be, for null.
    (version,) = definition["spec"]["versions"]
    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
    condition = status["properties"]["conditions"]["items"]["properties"]
    condition["message"]["nullable"] = True
    file.write_text(yaml.safe_dump(definition))
    serve(apiserver, definition)
    return folder


def test_a_server_of_today_takes_its_definition_and_example(
    made: Path, tmp_path: Path
) -> None:
    if (reason := crd_server.missing()) is not None:
        pytest.skip(reason)
    (definition,) = documents(made / "deploy" / "crd.yaml")
    (example,) = documents(made / "example.yaml")
    path = f"/apis/{GROUP}/v1/namespaces/default/websites"
    with crd_server.running(tmp_path) as api:
        serve(api, definition)
        eventually(lambda: api.raw("POST", path, example)[0] == 201)
        bad = {**example, "metadata": {"name": "bad"}, "spec": {"image": " "}}
        assert api.raw("POST", path, bad)[0] == 422


def test_its_own_test_passes(apiserver: ApiServer, project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", *PYTEST, "tests/test_cluster.py"],
        cwd=project,
        env={
            **os.environ,
            **path_of(project),
            "TEST_KUBECONFIG": str(apiserver.kubeconfig),
        },
        capture_output=True,
        text=True,
        timeout=patience(30),
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "= 2 passed in" in done.stdout


def path_of(project: Path) -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join((str(project / "src"), str(ROOT)))}


def test_it_works_with_the_rights_that_it_is_deployed_with(
    apiserver: ApiServer, namespace: str, project: Path, tmp_path: Path
) -> None:
    path = f"/apis/{GROUP}/v1/namespaces/{namespace}/websites"
    deployment = f"/apis/apps/v1/namespaces/{namespace}/deployments/example"
    service = f"/api/v1/namespaces/{namespace}/services/example"
    (example,) = documents(project / "example.yaml")
    made = [
        each
        for name in ("namespace.yaml", "rbac.yaml")
        for each in documents(project / "deploy" / name)
    ]

    def get(path: str) -> dict[str, Any]:
        status, found = apiserver.raw("GET", path)
        return found if status == 200 else {}

    def synced() -> str | None:
        found = get(f"{path}/example").get("status", {}).get("conditions", [])
        return {each["type"]: each["status"] for each in found}.get("Synced")

    file = project / "src/my_operator/operator.py"
    account = Account("my-operator", "my-operator")
    with (
        an_account(apiserver, made, account, tmp_path) as config,
        operating(
            file, apiserver, "", tmp_path, "--standalone", "-A", config=config
        ) as operator,
    ):
        operator.variables = path_of(project)

        def told() -> str:
            return "\n".join(operator.lines)

        operator.start()
        eventually(lambda: apiserver.raw("POST", path, example)[0] == 201)
        eventually(lambda: synced() == "True", otherwise=told)
        uid = get(service)["metadata"]["uid"]
        apiserver.raw("DELETE", service)
        change = {"spec": {"replicas": 3}}
        apiserver.raw("PATCH", f"{path}/example", change, MERGE_PATCH)
        eventually(
            lambda: (
                get(deployment)["spec"]["replicas"] == 3
                and get(service).get("metadata", {}).get("uid", uid) != uid
            ),
            otherwise=told,
        )
        # Another client changes a child: the operator repairs it, and reports it in an
        # Event.
        apiserver.raw("PATCH", deployment, {"spec": {"replicas": 7}}, MERGE_PATCH)
        eventually(lambda: get(deployment)["spec"]["replicas"] == 3, otherwise=told)
        assert operator.stop() == 0, told()
    assert [each for each in operator.lines if "forbidden" in each] == []
    assert [each for each in operator.lines if "cannot" in each] == []
