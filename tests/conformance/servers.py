"""The servers that cases are played on, prepared with the kinds that these need."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fnop.interpreters.cluster import Cluster
from tests.cluster import crd_server, envtest
from tests.cluster.envtest import ApiServer
from tests.conformance.cases import CRDS, CRDS_136
from tests.conformance.hooks import Hooked, serving
from tests.conformance.suite import Case, Simulated, play
from tests.patience import happens

__all__ = [
    "DEFINITIONS",
    "NAMESPACE",
    "SERVERS",
    "Real",
    "fork",
    "install",
    "missing",
    "prepared",
    "running",
    "started",
]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAMESPACE = "case-space"  # of the simulated cluster
SERVERS = ("1.20", "1.36")


def prepared() -> Cluster:
    """A simulated cluster with the kinds and the namespace of the cases."""
    server = Simulated()
    for crd in (*CRDS, *CRDS_136):
        status, found = server.raw("POST", DEFINITIONS, crd)
        assert status == 201, found
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    assert server.raw("POST", "/api/v1/namespaces", body)[0] == 201
    return server.cluster


def fork(cluster: Cluster) -> Simulated:
    """A server of one case's own."""
    return Simulated(cluster)


@dataclass
class Real:
    """A real server, and how cases get namespaces in it."""

    version: str
    api: ApiServer
    names: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def namespace(self) -> str:
        if self.version == "1.20":
            return self.api.namespace()
        return f"test-{os.getpid()}-{next(self.names)}"  # all exist there

    def play(self, case: Case) -> tuple[list[tuple[int, Any]], str]:
        """The answers to a case, and the namespace that it was played in."""
        namespace = self.namespace()
        if not case.hooks:
            return play(case, self.api, namespace), namespace
        with serving(case.hooks, self.api.pki) as server:
            hooked = Hooked(self.api, server)
            try:
                return play(case, hooked, namespace), namespace
            finally:
                hooked.close()


def missing(version: str) -> str | None:
    """Why that real server cannot be started here, or None."""
    return envtest.missing() if version == "1.20" else crd_server.missing()


@contextmanager
def started(version: str, folder: Path) -> Iterator[Real]:
    """Start a real server and install the kinds of the cases."""
    with running(version, folder) as api:
        install(api, CRDS if version == "1.20" else (*CRDS, *CRDS_136))
        yield Real(version, api)


@contextmanager
def running(
    version: str, folder: Path, *, controllers: bool = True
) -> Iterator[ApiServer]:
    """Start a real server of that version."""
    if version == "1.20":
        with envtest.running(folder, controllers=controllers) as api:
            yield api
    else:
        with crd_server.running(folder) as api:
            yield api


def install(api: ApiServer, crds: tuple[dict[str, Any], ...]) -> None:
    """Make definitions and wait until their kinds are served."""
    for crd in crds:
        status, body = api.raw("POST", DEFINITIONS, crd)
        assert status == 201, body
    for crd in crds:
        spec = crd["spec"]
        version = next(each["name"] for each in spec["versions"] if each["served"])
        path = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"
        assert happens(partial(is_served, api, path)), f"{path} is not served"


def is_served(api: ApiServer, path: str) -> bool:
    return api.raw("GET", path)[0] == 200
