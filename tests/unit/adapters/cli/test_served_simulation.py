"""`fnop run --simulate ... --served`: the operator's own clients act, too."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml

from fnop.adapters.serving.live_cluster import served_here
from tests.commands import begun, fnop, heard, manifest, write
from tests.patience import patience
from tests.simulations import DEFINITION, example

# The same work of a client that knows nothing of fnop, which KUBECONFIG leads.
CLIENT = """
import json, os, urllib.request
import yaml

def server():
    with open(os.environ["KUBECONFIG"]) as file:
        return yaml.safe_load(file)["clusters"][0]["cluster"]["server"]

FOUND_AT_IMPORT = server()

def create_config_map(namespace, name):
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    url = f"{FOUND_AT_IMPORT}/api/v1/namespaces/{namespace}/configmaps"
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["metadata"]["uid"]
"""
PURE = """
import fnop
from client import create_config_map

@fnop.on.create("fnopexamples", impure=True)
def created(namespace, name, **_):
    return {"uid": create_config_map(namespace, f"{name}-cm")}
"""
# Its handler of fnop makes an object for one of Kopf.
KOPF = """
import fnop
import kopf
from client import create_config_map

@kopf.on.create("fnopexamples")
def created(namespace, name, **_):
    return {"uid": create_config_map(namespace, f"{name}-cm")}

@fnop.on.create("fnopexamples")
def pure(name):
    meta = {"name": f"{name}-secret", "labels": {"by": "fnop"}}
    return fnop.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta})

@kopf.on.create("secrets", labels={"by": "fnop"})
def seen(**_):
    pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "client.py", CLIENT)
    write(tmp_path, "pure.py", PURE)
    write(tmp_path, "with_kopf.py", KOPF)
    manifest(tmp_path, "objects.yaml", DEFINITION, example("x"))
    return tmp_path


def objects_in(text: str) -> list[dict[str, Any]]:
    """The objects after the lines of the log."""
    begin = re.search(r"^apiVersion:", text, re.MULTILINE)
    assert begin is not None, text
    return [each for each in yaml.safe_load_all(text[begin.start() :]) if each]


def served(folder: Path, *command: str, until: tuple[str, ...]) -> list[dict[str, Any]]:
    """The final objects of a run that was stopped after these words in its log."""
    given = ("run", *command, "--simulate", "objects.yaml", "--served")
    with begun(folder, *given) as child:
        heard(child, "serving a simulated cluster at http://127.0.0.1:")
        heard(child, "export KUBECONFIG=")
        left = {*until}
        while left:
            line = heard(child, "succeeded")
            left = {words for words in left if words not in line}
        child.send_signal(signal.SIGINT)
        assert child.stdout is not None
        found = objects_in(child.stdout.read())
        assert child.wait(patience(20)) == 0
    return found


def test_clients_of_the_operator_act_in_the_simulated_cluster(folder: Path) -> None:
    found = served(folder, "pure.py", until=("create handler created",))
    made, handled = found
    assert (made["kind"], made["metadata"]["name"]) == ("ConfigMap", "x-cm")
    assert handled["status"]["created"] == {"uid": made["metadata"]["uid"]}


def test_an_operator_may_have_handlers_of_kopf_and_of_fnop(folder: Path) -> None:
    ends = ("Handler 'created' succeeded.", "Handler 'seen' succeeded.")
    found = served(folder, "--kopf", "with_kopf.py", until=ends)
    by_kind = {each["kind"]: each for each in found}
    uid = by_kind["ConfigMap"]["metadata"]["uid"]
    assert by_kind["FnopExample"]["status"]["created"] == {"uid": uid}
    assert by_kind["Secret"]["metadata"]["name"] == "x-secret"


@pytest.mark.parametrize("command", [("pure.py",), ("--kopf", "with_kopf.py")])
def test_it_ends_when_its_time_is_over(folder: Path, command: tuple[str, ...]) -> None:
    given = ("--simulate", "objects.yaml", "--served", "--for", "0.01")
    done = fnop("run", *command, *given, folder=folder)
    assert done.status == 0, done
    assert "FnopExample" in {each["kind"] for each in done.documents}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("pure.py --served", "--served needs --simulate"),
        (
            "pure.py --simulate objects.yaml --served --real-calls",
            "the operator calls its functions themselves; leave out --calls",
        ),
        (
            "pure.py --simulate objects.yaml --served --context x",
            "--context cannot be used with --simulate",
        ),
        ("--kopf with_kopf.py --simulate objects.yaml", "add --served"),
        ("--kopf with_kopf.py --served", "--served needs --simulate MANIFEST..."),
        ("--kopf with_kopf.py --for 3s", "--for needs --served"),
        (
            "--kopf with_kopf.py --simulate objects.yaml --served --context x",
            "use either --served, or --kubeconfig and --context",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    folder: Path, arguments: str, complaint: str
) -> None:
    done = fnop("run", *arguments.split(), folder=folder)
    assert (done.status, complaint in done.err) == (2, True), done


@pytest.mark.parametrize("command", [("pure.py",), ("--kopf", "with_kopf.py")])
def test_an_object_that_the_cluster_refuses_is_named(
    folder: Path, command: tuple[str, ...]
) -> None:
    manifest(folder, "objects.yaml", example("x"))
    given = ("--simulate", "objects.yaml", "--served")
    done = fnop("run", *command, *given, folder=folder)
    assert done.status == 1
    assert "the cluster has no kind FnopExample of fnop.dev/v1" in done.err


def test_no_client_finds_the_cluster_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulation that acts on the cluster of its pod would be a disaster."""
    monkeypatch.setenv("KUBECONFIG", "/mine")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.delenv("KUBERNETES_SERVICE_PORT", raising=False)
    before = dict(os.environ)
    with served_here():
        assert Path(os.environ["KUBECONFIG"]).is_file()
        assert "KUBERNETES_SERVICE_HOST" not in os.environ
    assert dict(os.environ) == before
