"""The same webhooks of Kopf and of fnop, called by `fnop cluster`: all is equal."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from fnop.adapters.serving.certificates import Authority
from fnop.interpreters.runtime.clock import SystemClock
from tests.clients.boats import BOAT, CRD
from tests.clients.conftest import FnopCluster, running
from tests.cluster.envtest import dying_with_us, end
from tests.patience import eventually

boat: dict[str, Any] = yaml.safe_load(BOAT)
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BOATS = "/apis/harbour.dev/v1/namespaces/default/boats"
CONFIGURATION = (
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/"
    "auto.harbour.dev"
)
# The handlers; each framework has a beginning of its own.
HANDLERS = """
@framework.on.mutate("harbour.dev", "v1", "boats", operations=["CREATE", "UPDATE"])
def painted(spec, patch, dryrun, **_):
    if "colour" not in spec:
        patch.spec["colour"] = "white"
    if "crew" in spec and "cat" not in spec["crew"]:
        patch.fns.append(lambda body: body["spec"]["crew"].append("cat"))
    patch.metadata.annotations["harbour.dev/seen"] = "yes"

@framework.on.validate("harbour.dev", "v1", "boats", operations=["CREATE", "UPDATE"])
def balanced(spec, old, operation, userinfo, warnings, **_):
    warnings.append(f"{operation} by {userinfo['username']}: {spec.get('oars')} oars")
    if spec.get("oars", 0) % 2:
        raise framework.AdmissionError("an odd number of oars", code=400)
    if old is not None and old["spec"].get("colour") != spec.get("colour"):
        raise framework.PermanentError("a boat keeps its colour")

@framework.on.validate("harbour.dev", "v1", "boats", operations=["DELETE"],
                       labels={"pier": "north"})
def moored(name, **_):
    raise framework.AdmissionError(f"{name} is moored in the north", code=423)
"""
BY_KOPF = """
import kopf as framework

@framework.on.startup()
def configure(settings, **_):
    settings.admission.managed = "auto.harbour.dev"
    settings.admission.server = framework.WebhookServer(
        addr="127.0.0.1", host="localhost", cafile="ca.pem",
        certfile="cert.pem", pkeyfile="key.pem",
    )
"""
BY_FNOP = "import fnop as framework\n"
KOPF = ("-m", "kopf", "run", "operator.py", "--standalone", "-n", "default")
FNOP = (
    *("-m", "fnop", "run", "operator.py", "--standalone", "-n", "default"),
    *("--webhooks", "--webhook-name", "auto.harbour.dev"),
)


class Answer(NamedTuple):
    """An answer: its status, the message of an error, the warnings, and the spec."""

    status: int
    message: str
    warnings: tuple[str, ...]
    spec: Any


def ask(
    server: FnopCluster, method: str, path: str, body: Any = None, type: str = "json"
) -> tuple[int, Any, list[str]]:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": f"application/{type}"}
    request = urllib.request.Request(server.url + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request) as response:
            found = response
            text = found.read()
    except urllib.error.HTTPError as problem:
        with problem:
            found, text = problem, problem.read()
    return found.status, json.loads(text), found.headers.get_all("Warning") or []


def answered(server: FnopCluster, *request: Any) -> Answer:
    status, found, warnings = ask(server, *request)
    message = found.get("message", "") if status >= 400 else ""
    return Answer(
        status,
        # Webhooks are named after their handlers, each framework in its own way.
        re.sub(r'admission webhook "[^"]*"', "admission webhook", message),
        tuple(sorted(warnings)),
        None
        if status >= 400
        else (found.get("spec"), found["metadata"].get("annotations")),
    )


@contextmanager
def operated(
    server: FnopCluster, folder: Path, source: str, command: tuple[str, ...]
) -> Iterator[None]:
    (folder / "operator.py").write_text(source + HANDLERS)
    log = folder / "operator.log"
    with log.open("wb") as out:
        operator = subprocess.Popen(
            [*dying_with_us(), sys.executable, *command],
            cwd=folder,
            env={"KUBECONFIG": str(server.kubeconfig), "HOME": str(folder)},
            stdout=out,
            stderr=out,
        )
    try:
        eventually(lambda: registered(server), otherwise=log.read_text)
        yield
    finally:
        end(operator)


def registered(server: FnopCluster) -> bool:
    status, found, _ = ask(server, "GET", CONFIGURATION)
    return status == 200 and bool(found.get("webhooks"))


def story(server: FnopCluster) -> list[Answer]:
    """A user at work."""
    anna = f"{BOATS}/anna"
    merge = "merge-patch+json"

    def created(name: str, **spec: Any) -> Answer:
        metadata = {"name": name, "labels": {"pier": "north"}}
        return answered(
            server, "POST", BOATS, {**boat, "metadata": metadata, "spec": spec}
        )

    def changed(**stanzas: Any) -> Answer:
        return answered(server, "PATCH", anna, stanzas, merge)

    return [
        created("anna", oars=2, crew=["ben"]),
        created("odd", oars=3),
        created("bare"),
        changed(spec={"oars": 4}),
        changed(spec={"oars": 5}),
        changed(spec={"colour": "red"}),
        changed(spec={"crew": ["cat", "carl"]}),
        answered(server, "PATCH", f"{anna}?dryRun=All", {"spec": {"oars": 8}}, merge),
        answered(server, "DELETE", anna),
        changed(metadata={"labels": {"pier": "south"}}),
        answered(server, "DELETE", anna),
    ]


def test_a_kopf_operator_s_webhooks_and_fnop_s_answer_alike(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    pytest.importorskip("kopf")
    authority = Authority(SystemClock().now().wall)
    pair = authority.for_server(("localhost", "127.0.0.1"))
    found = {}
    for name, begin, command in (("kopf", BY_KOPF, KOPF), ("fnop", BY_FNOP, FNOP)):
        folder = tmp_path_factory.mktemp(name)
        (folder / "ca.pem").write_bytes(authority.certificate)
        (folder / "cert.pem").write_bytes(pair.certificate)
        (folder / "key.pem").write_bytes(pair.key)
        with running(folder) as server:
            ask(server, "POST", DEFINITIONS, yaml.safe_load(CRD))
            with operated(server, folder, begin, command):
                found[name] = story(server)
    assert found["fnop"] == found["kopf"]
    assert [each.status for each in found["fnop"]] == [
        *(201, 400, 201, 200, 400, 500, 200, 200, 423, 200, 200),
    ]
