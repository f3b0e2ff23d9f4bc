"""The operator of examples/deployment as a process, with its manifests' rights."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

from tests.cluster.envtest import ApiServer, dying_with_us, end, free_ports, kubeconfig
from tests.cluster.operating import User
from tests.deployments import FOLDER, SPEC, one
from tests.patience import eventually, patience
from tests.simulations import ROOT, example

RBAC = "/apis/rbac.authorization.k8s.io/v1"


PLACES = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "Role": f"{RBAC}/namespaces/{{}}/roles",
    "RoleBinding": f"{RBAC}/namespaces/{{}}/rolebindings",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
}


ENDED_BY_SERVER = re.compile(r"the stream of \S+ broke: eof")


def applied(api: ApiServer, found: list[dict[str, Any]], served: str) -> list[str]:
    """Create what the manifests hold; `served` takes the place of `default`."""
    paths = []
    for each in found:
        meta = dict(each["metadata"])
        if meta.get("namespace") == "default":
            meta["namespace"] = served
        place = PLACES[each["kind"]].format(meta.get("namespace"))
        status, answer = api.raw("POST", place, {**each, "metadata": meta})
        assert status in (201, 409), answer
        paths.append(f"{place}/{meta['name']}")
    return paths


def token_of(api: ApiServer) -> str:
    account = PLACES["ServiceAccount"].format("fnop-operator") + "/fnop-operator"
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {},
    }
    status, answer = api.raw("POST", f"{account}/token", body)
    assert status == 201, answer
    token: str = answer["status"]["token"]
    return token


class Pod:
    """The container of a Deployment as a process: its variables, account and probes."""

    def __init__(
        self, api: ApiServer, file: str, served: str | None, log: Path
    ) -> None:
        (self._port,) = free_ports(1)
        self.name, self.log = log.stem, log
        spec = one(file, "Deployment")["spec"]["template"]["spec"]["containers"][0]
        self._spec = spec
        config = log.with_suffix(".kubeconfig")
        user = {"token": token_of(api)}
        config.write_text(json.dumps(kubeconfig(api.pki, api.url, user)))
        env = {each["name"]: each.get("value", self.name) for each in spec["env"]}
        env["FNOP_RUN_LIVENESS"] = env["FNOP_RUN_LIVENESS"].replace(
            "0.0.0.0:8080", f"127.0.0.1:{self._port}"
        )
        if "FNOP_RUN_LEADER_ELECT" in env:  # elsewhere the pod knows its namespace
            env["FNOP_RUN_LEASE_NAMESPACE"] = "fnop-operator"
        if served is not None:
            env["FNOP_RUN_NAMESPACE"] = served
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [*dying_with_us(), sys.executable, "-m", "fnop", "run", "operator.py"],
                cwd=FOLDER,
                env={
                    "PATH": os.environ["PATH"],
                    "PYTHONPATH": str(ROOT),
                    "PYTHONDONTWRITEBYTECODE": "1",
                    "KUBECONFIG": str(config),
                    **env,
                },
                stdout=output,
                stderr=output,
            )

    @property
    def text(self) -> str:
        return self.log.read_text()

    def passes(self, probe: str) -> bool:
        """As a kubelet finds it."""
        path = self._spec[probe]["httpGet"]["path"]
        url = f"http://127.0.0.1:{self._port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=patience(5)) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def stop(self) -> int:
        end(self.process)
        return self.process.returncode


def live_through(user: User, pods: list[Pod]) -> None:
    """Run an object's life, from its creation to its end, with the probes."""

    def otherwise() -> str:
        return "\n".join(each.text for each in pods)

    for pod in pods:
        for probe in ("livenessProbe", "readinessProbe"):
            eventually(partial(pod.passes, probe), otherwise=otherwise)
    found = example("example-1", **SPEC)
    found["metadata"]["labels"] = {"somelabel": "x"}
    user.create(found)

    def status() -> dict[str, Any]:
        return (user.get("fnopexamples", "example-1") or {}).get("status") or {}

    eventually(lambda: "create_pod" in status(), otherwise=otherwise)
    (child,) = user.objects("pods")
    assert child["metadata"]["ownerReferences"][0]["name"] == "example-1"

    def has_told(count: int) -> bool:
        events = [
            each for each in user.objects("events") if each["reason"] == "Changed"
        ]
        return [each["count"] for each in events] == [count]

    for count in (1, 2):
        change = {"spec": {"duration": f"{count + 1}m"}}
        user.edit("fnopexamples", "example-1", change)
        eventually(partial(has_told, count), otherwise=otherwise)
    user.delete("fnopexamples", "example-1")
    eventually(
        lambda: user.get("fnopexamples", "example-1") is None, otherwise=otherwise
    )


def assert_all_is_well(text: str, namespace: str) -> None:
    """An operator of all namespaces may log objects that other tests have left."""
    lines = [json.loads(each) for each in text.splitlines()]
    places = (None, namespace)
    own = [each for each in lines if each.get("object", {}).get("namespace") in places]
    assert own
    bad = [each for each in own if each["severity"] in ("warning", "error")]
    # An API server may end a watch whenever it likes, and does so for a kind whose
    # definition another test has just replaced; the operator resumes it.
    mine = [each for each in bad if not ENDED_BY_SERVER.fullmatch(each["message"])]
    assert mine == [], mine
    assert "forbidden" not in str(own)
