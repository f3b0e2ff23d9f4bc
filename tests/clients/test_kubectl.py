"""kubectl does with `fnop cluster` what people do with kubectl."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.clients.boats import BOAT, CRD
from tests.clients.conftest import FnopCluster, running
from tests.patience import patience

KUBECTL = shutil.which("kubectl")
# How long kubectl waits for what it is to see.
TIMEOUT = f"--timeout={patience(10):.0f}s"
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="needs kubectl on the PATH")

CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {speed: slow, depth: "3"}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web:1}]}
"""


class Kubectl:
    """kubectl in a folder of its own, with the kubeconfig of the cluster."""

    def __init__(self, server: FnopCluster, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "KUBECONFIG": str(server.kubeconfig),
        }

    def run(
        self, *arguments: str, given: str = "", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(KUBECTL), *arguments],
            cwd=self.folder,
            env={**self.environment, **environment},
            input=given,
            capture_output=True,
            text=True,
            timeout=patience(20),
            check=False,
        )

    def __call__(self, *arguments: str, given: str = "", **environment: str) -> str:
        """Return its output; it must succeed."""
        done = self.run(*arguments, given=given, **environment)
        assert done.returncode == 0, f"{arguments}: {done.stderr}{done.stdout}"
        return done.stdout

    def refused(self, *arguments: str, given: str = "") -> str:
        """Return its complaint; it must fail."""
        done = self.run(*arguments, given=given)
        assert done.returncode != 0, done.stdout
        return done.stderr

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))


@pytest.fixture
def kubectl(fnop_server: FnopCluster, tmp_path: Path) -> Kubectl:
    return Kubectl(fnop_server, tmp_path)


def test_apply_get_and_apply_again(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", given=CONFIG) == "configmap/settings created\n"
    again = kubectl("apply", "-f", "-", given=CONFIG)
    assert again == "configmap/settings unchanged\n"
    changed = CONFIG.replace("slow", "fast").replace(', depth: "3"', "")
    done = kubectl("apply", "-f", "-", given=changed)
    assert done == "configmap/settings configured\n"
    assert kubectl.json("get", "cm", "settings")["data"] == {"speed": "fast"}
    assert "settings" in kubectl("get", "configmaps", "--no-headers")


def test_server_side_apply_and_its_conflicts(kubectl: Kubectl) -> None:
    apply = ("apply", "--server-side", "-f", "-")
    done = kubectl(*apply, given=CONFIG)
    assert done == "configmap/settings serverside-applied\n"
    other = CONFIG.replace("slow", "fast")
    problem = kubectl.refused(*apply, "--field-manager=other", given=other)
    assert "conflict" in problem
    assert ".data.speed" in problem
    kubectl(*apply, "--field-manager=other", "--force-conflicts", given=other)
    assert kubectl.json("get", "cm", "settings")["data"]["speed"] == "fast"


def test_custom_kinds_and_their_columns(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=CRD)
    kubectl("wait", "--for=condition=Established", "crd/boats.harbour.dev")
    kubectl("apply", "-f", "-", given=BOAT)
    head, row = kubectl("get", "bt").splitlines()
    assert head.split() == ["NAME", "COLOUR"]
    assert row.split()[:2] == ["anna", "red"]
    wide = kubectl("get", "boats.harbour.dev", "-o", "wide").splitlines()
    assert wide[0].split() == ["NAME", "COLOUR", "OARS"]
    assert "anna" in kubectl("get", "all")
    assert "Colour:  red" in kubectl("describe", "boat", "anna")
    problem = kubectl.refused(
        "apply", "-f", "-", given=BOAT.replace("oars: 2", "oars: -1")
    )
    assert "spec.oars" in problem


def test_yaml_and_selectors(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=CONFIG)
    kubectl("label", "cm", "settings", "tier=one")
    found = yaml.safe_load(kubectl("get", "cm", "settings", "-o", "yaml"))
    assert found["metadata"]["labels"] == {"tier": "one"}
    assert "settings" in kubectl("get", "cm", "-l", "tier in (one)", "-o", "name")
    others = kubectl("get", "cm", "-l", "tier!=one", "-o", "name")
    assert "settings" not in others
    field = "metadata.name=settings"
    assert kubectl("get", "cm", "--field-selector", field, "-o", "name")
    assert "settings" in kubectl("get", "cm", "-A")


def test_label_annotate_patch_and_edit(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=CONFIG)
    kubectl("label", "cm", "settings", "tier=one")
    kubectl("annotate", "cm", "settings", "note=some text")
    kubectl("patch", "cm", "settings", "-p", '{"data": {"speed": "fast"}}')
    remove = '[{"op": "remove", "path": "/data/depth"}]'
    kubectl("patch", "cm", "settings", "--type=json", "-p", remove)
    kubectl("edit", "cm", "settings", EDITOR="sed -i s/fast/faster/")
    found = kubectl.json("get", "cm", "settings")
    assert found["data"] == {"speed": "faster"}
    assert found["metadata"]["annotations"]["note"] == "some text"
    kubectl("label", "cm", "settings", "tier-")
    assert "labels" not in kubectl.json("get", "cm", "settings")["metadata"]
    problem = kubectl.refused("label", "cm", "settings", "tier=not a value")
    assert "a valid label" in problem


def test_scale_and_wait(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=DEPLOYMENT)
    kubectl("scale", "deployment", "web", "--replicas=3")
    kubectl("wait", "deploy/web", "--for=jsonpath={.spec.replicas}=3", TIMEOUT)
    kubectl("scale", "deployment", "web", "--replicas=0")
    assert kubectl.json("get", "deploy", "web")["spec"]["replicas"] == 0
    kubectl("set", "image", "deployment/web", "web=web:2")
    template = kubectl.json("get", "deploy", "web")["spec"]["template"]
    assert template["spec"]["containers"][0]["image"] == "web:2"
    kubectl("apply", "-f", "-", given=CRD)
    kubectl("apply", "-f", "-", given=BOAT)
    kubectl("scale", "boat", "anna", "--replicas=7")
    assert kubectl.json("get", "boat", "anna")["spec"]["oars"] == 7


def test_delete_and_wait_for_it(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "place")
    kubectl("-n", "place", "apply", "-f", "-", given=CONFIG)
    done = kubectl("-n", "place", "delete", "cm", "settings")
    assert done.startswith('configmap "settings" deleted')
    problem = kubectl.refused("-n", "place", "get", "cm", "settings")
    assert 'configmaps "settings" not found' in problem
    kubectl("-n", "place", "apply", "-f", "-", given=CONFIG)
    kubectl("delete", "namespace", "place", TIMEOUT)
    assert "place" not in kubectl("get", "namespaces", "-o", "name")


def test_watch(kubectl: Kubectl) -> None:
    kubectl("create", "secret", "generic", "settings")
    command = [str(KUBECTL), "get", "secrets", "-w", "-o", "name"]
    with subprocess.Popen(
        command,
        cwd=kubectl.folder,
        env=kubectl.environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline() == "secret/settings\n"
        kubectl("create", "secret", "generic", "second")
        assert watching.stdout.readline() == "secret/second\n"
        watching.terminate()


def test_explain_and_resources(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=CRD)
    found = kubectl("api-resources")
    assert "boats" in found
    assert "deployments" in found
    assert "harbour.dev/v1" in kubectl("api-versions")
    assert "What it is painted with." in kubectl("explain", "boat.spec.colour")
    assert "replicas" in kubectl("explain", "deployment.spec")


def test_create_what_kubectl_has_words_for(kubectl: Kubectl) -> None:
    """These bodies are protobuf."""
    kubectl("create", "configmap", "words", "--from-literal=a=b")
    assert kubectl.json("get", "cm", "words")["data"] == {"a": "b"}
    kubectl("create", "secret", "generic", "hidden", "--from-literal=a=b")
    assert kubectl.json("get", "secret", "hidden")["data"] == {"a": "Yg=="}
    kubectl("create", "deployment", "web", "--image=web:1", "--replicas=2")
    deployment = kubectl.json("get", "deployment", "web")
    assert deployment["spec"]["replicas"] == 2
    assert deployment["spec"]["template"]["metadata"]["labels"] == {"app": "web"}
    kubectl("expose", "deployment", "web", "--port=80", "--target-port=http")
    ports = kubectl.json("get", "service", "web")["spec"]["ports"]
    assert (ports[0]["port"], ports[0]["targetPort"]) == (80, "http")
    kubectl("create", "job", "once", "--image=web:1", "--", "echo", "hello")
    job = kubectl.json("get", "job", "once")["spec"]["template"]["spec"]
    assert job["containers"][0]["command"] == ["echo", "hello"]
    kubectl("create", "cronjob", "often", "--image=i", "--schedule=* * * * *")
    kubectl("create", "serviceaccount", "robot")
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods,cm")
    kubectl(
        "create",
        "rolebinding",
        "may",
        "--role=reader",
        "--serviceaccount=default:robot",
    )
    assert kubectl("create", "token", "robot").count(".") == 2


def test_auth_without_rbac(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", "pods") == "yes\n"


def test_replace_and_diff(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", given=CONFIG)
    kubectl("replace", "-f", "-", given=CONFIG.replace("slow", "fast"))
    assert kubectl.json("get", "cm", "settings")["data"]["speed"] == "fast"
    assert "AlreadyExists" in kubectl.refused("create", "-f", "-", given=CONFIG)
    done = kubectl.run("diff", "-f", "-", given=CONFIG)
    assert done.returncode == 1, done.stderr
    assert "+  speed: slow" in done.stdout


def test_the_version_and_the_rest(kubectl: Kubectl) -> None:
    assert kubectl.json("version")["serverVersion"]["major"] == "1"
    assert kubectl("get", "--raw", "/healthz") == "ok"
    assert "is running at" in kubectl("cluster-info")
    kubectl("get", "events")
    problem = kubectl.refused("get", "nothings")
    assert "the server doesn't have a resource type" in problem


def test_rollout(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=DEPLOYMENT)
    kubectl("rollout", "status", "deployment/web", TIMEOUT)
    assert kubectl.json("get", "deploy", "web")["status"]["readyReplicas"] == 2
    kubectl("rollout", "restart", "deployment/web")
    kubectl("rollout", "status", "deployment/web", TIMEOUT)


POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, annotations: {simulated.fnop.dev/log: "one\\ntwo\\n"}}
spec: {containers: [{name: web, image: web:1}]}
"""
LINES = "simulated.fnop.dev/log=one\ntwo\nthree\n"


def test_logs(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=POD)
    kubectl("wait", "pod/web", "--for=condition=Ready", TIMEOUT)
    assert kubectl("logs", "web") == "one\ntwo\n"
    assert kubectl("logs", "web", "--tail=1") == "two\n"
    first, *_ = kubectl("logs", "web", "--timestamps").splitlines()
    moment, line = first.split()
    assert (len(moment), line) == (len("2006-01-02T15:04:05.000000000Z"), "one")
    assert kubectl("logs", "web", f"--since-time={moment}", "--limit-bytes=3") == "one"
    assert kubectl("logs", "web", "--since=1h") == "one\ntwo\n"
    assert "previous terminated" in kubectl.refused("logs", "web", "-p")
    command = [str(KUBECTL), "logs", "-f", "web", "--tail=1"]
    with subprocess.Popen(
        command,
        cwd=kubectl.folder,
        env=kubectl.environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as following:
        assert following.stdout is not None
        assert following.stdout.readline() == "two\n"
        kubectl("annotate", "--overwrite", "pod", "web", LINES)
        assert following.stdout.readline() == "three\n"
        kubectl("delete", "pod", "web")
        assert following.stdout.read() == ""
        assert following.wait(patience(20)) == 0


def test_users_and_their_permissions(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('token-of-jane,jane,1,"people"\n')
    with running(tmp_path, "--rbac", "--tokens", str(tokens)) as server:
        kubectl = Kubectl(server, tmp_path)
        assert server.url.startswith("https://")
        kubectl("create", "role", "reader", "--verb=get,list", "--resource=configmaps")
        kubectl("create", "rolebinding", "people", "--role=reader", "--group=people")
        kubectl("create", "serviceaccount", "robot")
        ca = yaml.safe_load(server.kubeconfig.read_text())["clusters"][0]["cluster"]
        other = tmp_path / "other"
        other.write_text(json.dumps({"clusters": [{"name": "c", "cluster": ca}]}))
        someone = ("--kubeconfig", str(other), "--cluster=c")
        jane = (*someone, "--token=token-of-jane")
        assert kubectl(*jane, "get", "cm", "-o", "name") is not None
        assert kubectl(*jane, "auth", "can-i", "list", "configmaps") == "yes\n"
        problem = kubectl.refused(*jane, "get", "secrets")
        assert 'User "jane" cannot list resource "secrets"' in problem
        robot = (*someone, "--token=" + kubectl("create", "token", "robot").strip())
        problem = kubectl.refused(*robot, "get", "configmaps")
        assert "system:serviceaccount:default:robot" in problem
        problem = kubectl.refused(*someone, "--token=wrong", "get", "cm")
        assert "Unauthorized" in problem or "logged in" in problem
        mine = kubectl.run("auth", "can-i", "get", "secrets", "--as=jane")
        assert mine.stdout == "no\n"
