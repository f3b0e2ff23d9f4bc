"""The examples, unchanged, on `fnop cluster`: as on a real cluster, over HTTPS."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from tests.clients.conftest import running
from tests.cluster.envtest import ApiServer
from tests.cluster.telling import tell
from tests.example_scenarios import STORIES, Story
from tests.long import parameters


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    folder = tmp_path_factory.mktemp("cluster")
    with (
        running(folder, "--rbac", "--controllers", "kubelet=off") as served,
        closing(ApiServer(served.url, folder, tls_of(served.kubeconfig))) as api,
    ):
        yield api


def tls_of(kubeconfig: Path) -> ssl.SSLContext:
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    tls = ssl.create_default_context(cadata=authority)
    pair = kubeconfig.with_name("admin.pem")
    names = ("client-certificate-data", "client-key-data")
    pair.write_bytes(b"".join(base64.b64decode(user[name]) for name in names))
    tls.load_cert_chain(pair)
    return tls


# Built-in kinds and levels: a real API server reports more at once.
AT_ONCE = ("10-builtins", "19-database")


@pytest.mark.parametrize(
    "story", parameters(STORIES, AT_ONCE, lambda story: story.example)
)
def test_the_example_does_what_it_says(
    story: Story, server: ApiServer, tmp_path: Path
) -> None:
    tell(story, server, server.namespace(), tmp_path)
