"""The operator as a process beside an API server: a simulated one, and a real one."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from lightkube import ApiError, Client, KubeConfig
from lightkube.codecs import load_all_yaml
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import Namespace
from lightkube.types import PatchType

ROOT = Path(__file__).parents[1]
CRD, SAMPLE = ROOT / "deploy/crd.yaml", ROOT / "example.yaml"
KIND = create_namespaced_resource(
    "__group__",
    "v1",
    "__Kind__",
    "__plural__",
)
DEADLINE_SECONDS = 60


def eventually(holds: Callable[[], object]) -> None:
    """Wait until it holds; what is not there yet, or not served yet, is tried again."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not attempt(holds):
        assert time.monotonic() < deadline, "it does not hold in time"
        time.sleep(0.1)


def attempt(holds: Callable[[], object]) -> object:
    try:
        return holds()
    except ApiError as problem:
        if problem.status.code in (404, 429):
            return False
        raise


@pytest.fixture(params=["simulated", "real"])
def kubeconfig(request: pytest.FixtureRequest) -> Iterator[Path]:
    if request.param == "simulated":
        with request.getfixturevalue("fnop_cluster").serve() as served:
            yield served.kubeconfig
    elif path := os.environ.get("TEST_KUBECONFIG"):
        yield Path(path)
    else:
        pytest.skip("TEST_KUBECONFIG does not name the kubeconfig of a test cluster")


@pytest.fixture
def client(kubeconfig: Path) -> Iterator[Client]:
    """A client in a namespace of its own; the definition stays when that is deleted."""
    name = f"test-{uuid4().hex[:8]}"
    client = Client(KubeConfig.from_file(kubeconfig), name, field_manager="test")
    for definition in load_all_yaml(CRD.read_text("utf-8")):
        client.apply(definition, force=True)
    eventually(lambda: [*client.list(KIND)] == [])
    client.create(Namespace(metadata=ObjectMeta(name=name)))
    yield client
    client.delete(Namespace, name)


@pytest.fixture
def operator(kubeconfig: Path, client: Client) -> Iterator[None]:
    command = [
        sys.executable,
        "-m",
        "fnop",
        "run",
        "--module=__package__.operator",
        f"--kubeconfig={kubeconfig}",
        f"--namespace={client.namespace}",
        "--standalone",
    ]
    process = subprocess.Popen(command)
    yield
    process.terminate()
    assert process.wait(DEADLINE_SECONDS) == 0


@pytest.mark.usefixtures("operator")
def test_the_deployment_follows_its_owner(client: Client) -> None:
    def is_synced() -> bool:
        status: Any = client.get(KIND, "example").status or {}
        found = {each["type"]: each["status"] for each in status.get("conditions", [])}
        return found.get("Synced") == "True"

    def replicas() -> int | None:
        spec = client.get(Deployment, "example").spec
        return spec.replicas if spec else None

    (sample,) = load_all_yaml(SAMPLE.read_text("utf-8"))
    client.create(sample)
    eventually(is_synced)
    assert replicas() == 2

    change = {"spec": {"replicas": 3}}
    client.patch(KIND, "example", change, patch_type=PatchType.MERGE)
    eventually(lambda: replicas() == 3)

    client.delete(KIND, "example")
    eventually(lambda: [*client.list(Deployment)] == [])
