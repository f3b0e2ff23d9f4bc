"""The manifests of examples/deployment: the rights are enough, and none too many."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import fnop
from fnop.adapters.cli.main import main
from fnop.adapters.cli.run import run
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.peers.lease import Candidate
from fnop.core.seam.commands import Command, Say, Watch
from fnop.effects.structs import replace
from fnop.interpreters import cluster as simulated
from fnop.interpreters.cluster import Off, empty_cluster, paced
from fnop.interpreters.cluster.requests.request import attributes_of
from fnop.interpreters.runtime.clock import EPOCH
from fnop.interpreters.runtime.protocol import (
    MERGE_PATCH,
    ApiRequest,
    ApiResponse,
    User,
)
from fnop.interpreters.runtime.requests import watch_request
from fnop.interpreters.simulation.scenario import apply_manifests
from fnop.interpreters.simulation.simulation import SimulatedRun
from tests.deployments import FOLDER, SPEC, manifests, one
from tests.simulations import DEFINITION, ROOT, handlers_in

ACCOUNT = User(
    "system:serviceaccount:fnop-operator:fnop-operator",
    (
        "system:serviceaccounts",
        "system:serviceaccounts:fnop-operator",
        "system:authenticated",
    ),
)
EXAMPLES = "/apis/fnop.dev/v1/namespaces/default/fnopexamples"


handlers_of = cache(handlers_in)


# ----------------------------------------------------------- a life with rights


def is_own_write(request: ApiRequest) -> bool:
    return request.method == "PATCH" and request.path.startswith(EXAMPLES)


class Guarded(SimulatedRun):
    """An operator that has just the rights of its account, and an unlucky day.

    Another client changes an object just before the operator writes to it, and the
    answer to the creation of a child is lost.
    """

    def __init__(
        self, handlers: tuple[Handler, ...], rights: list[Any], settings: Settings
    ) -> None:
        self.said: list[Say] = []
        self.refused: set[tuple[str, str]] = set()
        self.acting = False
        self.meddles = self.loses = True
        super().__init__(
            Program(handlers, settings),
            paced(empty_cluster(now=EPOCH, rbac=True), {"kubelet": Off()}),
            on_say=lambda say, wall: self.said.append(say),
        )
        apply_manifests(self, [DEFINITION, *rights])
        self.account = ACCOUNT

    def perform(self, command: Command) -> None:
        if isinstance(command, Watch):
            self.note_refused_watch(command)
        self.acting = True
        super().perform(command)
        self.acting = False

    def request(self, request: ApiRequest) -> ApiResponse:
        if not self.acting:
            return super().request(request)
        if self.meddles and is_own_write(request):
            self.meddles = self.acting = False
            self.edit("example-1", metadata={"labels": {"a": "b"}})
            self.acting = True
        response = super().request(replace(request, user=ACCOUNT))
        self.note(request, response)
        if request.method == "POST" and self.loses and "/pods" in request.path:
            self.loses = False
            return ApiResponse(500, {"message": "the answer is lost"})
        return response

    def note_refused_watch(self, command: Watch) -> None:
        request = replace(watch_request(command), user=ACCOUNT)
        found = simulated.backlog(self.cluster, request)
        if isinstance(found, ApiResponse):
            self.note(request, found)

    def note(self, request: ApiRequest, response: ApiResponse) -> None:
        if response.status == 403:
            asked = attributes_of(request)
            sub = f"/{asked.subresource}" if asked.subresource else ""
            self.refused.add((asked.verb, f"{asked.resource}{sub}"))

    def edit(self, name: str, **change: Any) -> None:
        path = f"{EXAMPLES}/{name}"
        found = self.request(ApiRequest("PATCH", path, (), change, MERGE_PATCH))
        assert found.status == 200, found

    def get(self, name: str, path: str = EXAMPLES) -> dict[str, Any] | None:
        found = self.request(ApiRequest("GET", f"{path}/{name}"))
        return None if found.status == 404 else found.body

    @property
    def complaints(self) -> list[str]:
        return [
            each.message for each in self.said if each.level in ("warning", "error")
        ]


def lived(
    rights: list[Any],
    *,
    file: Path = FOLDER / "operator.py",
    namespaces: tuple[str, ...] | None = None,
    elects: bool = False,
) -> Guarded:
    """Everything that happens to an object, from its creation to its end."""
    lease = Candidate("pod-1", "fnop-operator", "fnop-default") if elects else None
    settings = Settings("default", namespaces, election=lease)
    run = Guarded(handlers_of(file), rights, settings)
    metadata = {"name": "example-1", "namespace": "default"}
    body = {
        "apiVersion": "fnop.dev/v1",
        "kind": "FnopExample",
        "metadata": {**metadata, "labels": {"somelabel": "x"}},
        "spec": SPEC,
    }
    assert run.request(ApiRequest("POST", EXAMPLES, (), body)).status == 201
    run.wait(100)
    for duration in ("2m", "3m"):
        if run.get("example-1") is not None:
            run.edit("example-1", spec={"duration": duration})
            run.wait(30)
    run.request(ApiRequest("DELETE", f"{EXAMPLES}/example-1"))
    run.wait(30)
    run.stop()
    run.wait(30)
    return run


LEASE_RIGHTS = [
    each for each in manifests("leader-elect.yaml") if each["kind"] != "Deployment"
]


@pytest.mark.parametrize(
    "file",
    ["deployment/operator.py", "02-children/example.py", "01-minimal/example.py"],
)
@pytest.mark.parametrize(
    ("rights", "namespaces"),
    [("rbac.yaml", None), ("rbac-namespaced.yaml", ("default",))],
)
def test_the_rights_are_enough(
    file: str, rights: str, namespaces: tuple[str, ...] | None
) -> None:
    path = ROOT / "examples" / file
    run = lived(manifests(rights), file=path, namespaces=namespaces)
    assert run.refused == set()
    assert run.complaints == []
    assert run.get("example-1") is None
    assert run.exit is not None
    assert run.exit.status == 0


def test_all_of_that_has_happened() -> None:
    """Otherwise the rights that it takes would not be asked for."""
    run = lived(manifests("rbac.yaml"))
    assert not run.meddles
    assert not run.loses
    events = "/api/v1/namespaces/default/events"
    (event,) = run.request(ApiRequest("GET", events)).body["items"]
    assert event["count"] == 2
    assert any("goes, and its Pod with it" in each.message for each in run.said)


def test_the_rights_of_replicas_are_enough() -> None:
    run = lived([*manifests("rbac.yaml"), *LEASE_RIGHTS], elects=True)
    assert run.refused == set()
    path = "/apis/coordination.k8s.io/v1/namespaces/fnop-operator/leases"
    lease = run.get("fnop-default", path)
    assert lease is not None
    assert lease["spec"]["holderIdentity"] == ""
    assert run.get("example-1") is None


def single_rights(role: dict[str, Any]) -> Iterator[tuple[int, str, str]]:
    for at, rule in enumerate(role["rules"]):
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                yield at, resource, verb


def without(role: dict[str, Any], at: int, verb: str) -> dict[str, Any]:
    found = copy.deepcopy(role)
    found["rules"][at]["verbs"].remove(verb)
    if not found["rules"][at]["verbs"]:
        del found["rules"][at]
    return found


def cases() -> Iterator[Any]:
    for file, kind in (
        ("rbac.yaml", "ClusterRole"),
        ("rbac-namespaced.yaml", "Role"),
        ("leader-elect.yaml", "Role"),
    ):
        for at, resource, verb in single_rights(one(file, kind)):
            yield pytest.param(
                file, kind, at, resource, verb, id=f"{file}-{verb}-{resource}"
            )


@pytest.mark.parametrize(("file", "kind", "at", "resource", "verb"), [*cases()])
def test_each_right_is_needed(
    file: str, kind: str, at: int, resource: str, verb: str
) -> None:
    """Without it that very thing is refused, and the log says so."""
    elects = file == "leader-elect.yaml"
    rights = LEASE_RIGHTS if elects else manifests(file)
    rights = [
        without(each, at, verb) if each["kind"] == kind else each for each in rights
    ]
    if elects:
        rights = [*manifests("rbac.yaml"), *rights]
    namespaces = ("default",) if file == "rbac-namespaced.yaml" else None
    run = lived(rights, namespaces=namespaces, elects=elects)
    assert run.refused == {(verb, resource)}
    told = f'cannot {verb} resource "{resource}"'
    said = [each.message for each in run.said]
    said.append(run.exit.reason if run.exit is not None else "")
    assert any(told in each for each in said), said
    if resource != "events":  # Events fail nothing: a line of debugging
        assert any(told in each for each in (*run.complaints, said[-1]))


# ------------------------------------------------------------------ the manifests


@pytest.mark.parametrize("file", ["deployment.yaml", "leader-elect.yaml"])
def test_the_variables_are_options(file: str) -> None:
    pod = one(file, "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert main.context_settings["auto_envvar_prefix"] == "FNOP"
    options = {each.name for each in run.params}
    names = [each["name"] for each in container["env"]]
    assert "POD_ID" in names
    for name in names:
        option = name.removeprefix("FNOP_RUN_").lower()
        assert name == "POD_ID" or option in options
    assert ("FNOP_RUN_LEADER_ELECT" in names) is (file == "leader-elect.yaml")


@pytest.mark.parametrize("file", ["deployment.yaml", "leader-elect.yaml"])
def test_the_deployment_fits_the_account_and_is_admitted(file: str) -> None:
    deployment = one(file, "Deployment")
    account = one("rbac.yaml", "ServiceAccount")["metadata"]
    assert deployment["metadata"]["namespace"] == account["namespace"]
    pod = deployment["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == account["name"]
    run = SimulatedRun(Program(()), empty_cluster(now=EPOCH))
    apply_manifests(run, [*manifests("rbac.yaml"), *manifests(file)])
    bound = [
        each["subjects"]
        for name in ("rbac.yaml", "rbac-namespaced.yaml", "leader-elect.yaml")
        for each in manifests(name)
        if each["kind"].endswith("Binding")
    ]
    subject = {"kind": "ServiceAccount", **account}
    assert bound == [[subject]] * 3


def test_one_namespace_needs_what_the_cluster_needs() -> None:
    rules = one("rbac.yaml", "ClusterRole")["rules"]
    assert one("rbac-namespaced.yaml", "Role")["rules"] == rules


def test_the_image_is_based_on_this_release() -> None:
    text = (FOLDER / "Dockerfile").read_text()
    assert f"\nARG FNOP=fnop:{fnop.__version__}\nFROM ${{FNOP}}\n" in text
