"""Operators as processes on the real API server, with their users."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.cluster.envtest import ApiServer, dying_with_us, end
from tests.commands import fnop
from tests.patience import eventually
from tests.simulations import DEFINITION, ROOT, example, manifests_of

__all__ = [
    "PROGRAMS",
    "Operator",
    "Program",
    "User",
    "assert_replays",
    "operating",
    "serve",
]

MERGE_PATCH = "application/merge-patch+json"
POD = manifests_of("08-event-spies")[0]

# The kinds that are not of the core group.
GROUPS = {
    **dict.fromkeys(
        (
            *("fnopexamples", "databases", "tenants", "records", "sites"),
            *("trainings", "shops", "monitors"),
        ),
        "fnop.dev/v1",
    ),
    "jobs": "batch/v1",
    **dict.fromkeys(("deployments", "replicasets", "statefulsets"), "apps/v1"),
    "networkpolicies": "networking.k8s.io/v1",
    "rolebindings": "rbac.authorization.k8s.io/v1",
}
# The examples with a definition of their own.
OWN_KINDS = (
    *("19-database", "20-tenants", "21-records", "22-admission"),
    *("23-logs", "24-cluster"),
)

Manifest = dict[str, Any]


def serve(api: ApiServer, definition: Manifest) -> None:
    """Have a kind served as a definition says; examples may share its name."""
    group = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    status, answer = api.raw("POST", group, definition)
    if status == 409:
        change = {"spec": definition["spec"]}
        path = f"{group}/{definition['metadata']['name']}"
        status, answer = api.raw("PATCH", path, change, MERGE_PATCH)
    assert status in (200, 201), answer


# ------------------------------------------------------------------ the user


class User:
    """A user with the rights of an admin, at work in one namespace."""

    def __init__(self, api: ApiServer, namespace: str) -> None:
        self.api = api
        self.namespace = namespace

    def define(self, name: str = "01-minimal") -> None:
        """Make sure that an example's kind is served, and that pods are admitted."""
        definition, *_, thing = (
            [DEFINITION, example("trial")]
            if name not in OWN_KINDS
            else manifests_of(name)
        )
        serve(self.api, definition)
        plural = definition["spec"]["names"]["plural"]
        eventually(lambda: self._admits(plural, thing))
        eventually(lambda: self._admits("pods", POD))

    def _admits(self, kind: str, manifest: Manifest) -> bool:
        """Whether such an object could be created now; pods need an account first."""
        metadata = {**manifest["metadata"], "namespace": self.namespace}
        body, query = {**manifest, "metadata": metadata}, {"dryRun": "All"}
        return self.api.raw("POST", self.path(kind), body, query=query)[0] == 201

    def path(self, kind: str, name: str = "", namespace: str | None = None) -> str:
        root = f"/apis/{GROUPS[kind]}" if kind in GROUPS else "/api/v1"
        tail = f"/{name}" if name else ""
        if kind == "namespaces":
            return f"{root}/{kind}{tail}"
        return f"{root}/namespaces/{namespace or self.namespace}/{kind}{tail}"

    def get(
        self, kind: str, name: str, namespace: str | None = None
    ) -> Manifest | None:
        status, found = self.api.raw("GET", self.path(kind, name, namespace))
        assert status in (200, 404), found
        return found if status == 200 else None

    def objects(self, kind: str) -> list[Manifest]:
        status, found = self.api.raw("GET", self.path(kind))
        assert status == 200, found
        items: list[Manifest] = found["items"]
        return items

    def create(self, manifest: Manifest) -> None:
        metadata = {**manifest["metadata"], "namespace": self.namespace}
        path = self.path(manifest["kind"].lower() + "s")
        status, answer = self.api.raw("POST", path, {**manifest, "metadata": metadata})
        assert status == 201, answer

    def edit(self, kind: str, name: str, change: Manifest) -> None:
        path = self.path(kind, name)
        status, answer = self.api.raw("PATCH", path, change, MERGE_PATCH)
        assert status == 200, answer

    def delete(self, kind: str, name: str) -> None:
        status, answer = self.api.raw("DELETE", self.path(kind, name))
        assert status in (200, 202), answer


# -------------------------------------------------------------- the operator


class Program(NamedTuple):
    """The program that runs an operator's file, and its log words when it is ready."""

    module: str
    is_at_work: str


FNOP = Program("fnop", "serving ")
KOPF = Program("kopf", "Initial authentication has finished")
KOPF_ON_FNOP = Program("fnop.kopf", "Initial authentication has finished")
PROGRAMS = {each.module: each for each in (FNOP, KOPF, KOPF_ON_FNOP)}


class Operator:
    """An operator that is started, stopped and killed; its log goes on."""

    def __init__(
        self,
        file: Path,
        kubeconfig: Path,
        namespace: str,
        folder: Path,
        options: tuple[str, ...] = ("--standalone",),
        program: Program = FNOP,
    ) -> None:
        self.log = folder / "operator.log"
        self.program = program
        self.recordings: list[Path] = []
        self._folder = folder
        everywhere = {"-A", "--all-namespaces"} & {*options}
        self._command = [
            *dying_with_us(),
            *(sys.executable, "-m", program.module, "run", str(file), *options),
            *(() if everywhere else ("--namespace", namespace)),
        ]
        self._kubeconfig = str(kubeconfig)
        # More variables of the process.
        self.variables: dict[str, str] = {}
        self._child: subprocess.Popen[bytes] | None = None

    def start(self, *, record: bool = False) -> None:
        command = self._command
        if record:
            name = f"run-{len(self.recordings) + 1}.fnop"
            self.recordings.append(self._folder / name)
            command = [*command, "--record", str(self.recordings[-1])]
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={
                    **os.environ,
                    "KUBECONFIG": self._kubeconfig,
                    **self.variables,
                },
            )

    @property
    def lines(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def stop(self) -> int:
        """Ask it to end; its exit status."""
        assert self._child is not None
        end(self._child)
        return self._child.returncode

    def kill(self) -> None:
        """Kill it at its present state."""
        assert self._child is not None
        os.kill(self._child.pid, signal.SIGKILL)
        self._child.wait()

    def close(self) -> None:
        if self.is_running and self._child is not None:
            end(self._child)


@contextmanager
def operating(
    file: Path,
    api: ApiServer,
    namespace: str,
    folder: Path,
    *options: str,
    config: Path | None = None,
    program: Program = FNOP,
) -> Iterator[Operator]:
    """An operator that is not started yet; it ends with the block at the latest.

    It has no peers, unless `options` say otherwise, and all rights, unless it has a
    kubeconfig of its own.
    """
    options = options or ("--standalone",)
    config = config or api.kubeconfig
    operator = Operator(file, config, namespace, folder, options, program)
    try:
        yield operator
    finally:
        operator.close()


def assert_replays(recording: Path, file: Path) -> None:
    done = fnop("replay", recording, file, folder=ROOT)
    assert (done.status, done.err) == (0, ""), done.out
    assert done.out.startswith("identical")
