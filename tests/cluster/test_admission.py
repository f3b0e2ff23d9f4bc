"""An operator's webhooks on a real API server, over TLS."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fnop.adapters.generate.rights import Account, Wishes, studied
from fnop.adapters.generate.roles import manifests_for
from fnop.adapters.serving.certificates import Authority
from fnop.core.admission.keeping import OWNER, SERVED_BY
from tests.cluster.accounts import an_account
from tests.cluster.envtest import ApiServer
from tests.cluster.operating import MERGE_PATCH, Operator, operating, serve
from tests.commands import closed_port, fnop
from tests.patience import eventually, patience
from tests.simulations import ROOT

FILE = ROOT / "tests/cluster/operators/admitting.py"
GROUP = "/apis/admissionregistration.k8s.io/v1"
NAME = "admitting.fnop.dev"
SORTS = ("mutating", "validating")
OWN = ("system:serviceaccount:default:admitter", "system:masters")
WORDS = ("--webhooks", "--webhook-events", "--name", "admitting", "--standalone", "-A")
OPTIONS = (*WORDS, "--as", OWN[0], "--as-group", OWN[1])
EVENTS = "/api/v1/namespaces/default/events"
TOLD = r"UPDATE by \S+ is denied by shrinks_not \(\S*admitting\.py:\d+\): it must .*"
CLAIMS = "/apis/admission.fnop.dev/v1/namespaces/default/claims"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "claims.admission.fnop.dev"},
    "spec": {
        "group": "admission.fnop.dev",
        "scope": "Namespaced",
        "names": {"plural": "claims", "singular": "claim", "kind": "Claim"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


def path_of(sort: str, name: str = NAME) -> str:
    return f"{GROUP}/{sort}webhookconfigurations/{name}"


def claim(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "admission.fnop.dev/v1",
        "kind": "Claim",
        "metadata": {"name": name},
        "spec": spec,
    }


class Cluster:
    """The user's view of the operator."""

    def __init__(self, api: ApiServer) -> None:
        self.api = api
        self.names = 0

    def stored(self, sort: str, name: str = NAME) -> dict[str, Any] | None:
        status, found = self.api.raw("GET", path_of(sort, name))
        return found if status == 200 else None

    def webhooks(self, sort: str = "validating") -> list[dict[str, Any]]:
        return (self.stored(sort) or {}).get("webhooks") or []

    @property
    def listed(self) -> list[str]:
        found = self.stored("validating") or {"metadata": {}}
        annotations = found["metadata"].get("annotations") or {}
        return str(annotations.get(SERVED_BY, "")).split()

    def create(self, **spec: Any) -> tuple[int, Any]:
        self.names += 1
        return self.api.raw("POST", CLAIMS, claim(f"c{self.names}", **spec))

    def shrink(self, namespace: str = "default", **headers: str) -> tuple[int, str]:
        """Try to make a claim smaller, in a dry run; the status and the message."""
        change, dry = {"spec": {"size": 1}}, {"dryRun": "All"}
        path = f"{CLAIMS}/big".replace("/default/", f"/{namespace}/")
        status, found = self.api.raw("PATCH", path, change, MERGE_PATCH, dry, headers)
        return status, found.get("message", "")

    @property
    def denials(self) -> list[dict[str, Any]]:
        """The Events of denials."""
        query = {"fieldSelector": "reason=Denied"}
        found = self.api.raw("GET", EVENTS, query=query)[1]["items"]
        return [each for each in found if each["involvedObject"]["name"] == "big"]

    @property
    def denies(self) -> bool:
        """Whether the validation is asked, and answers."""
        return self.shrink()[0] == 422


@pytest.fixture(scope="module")
def cluster(apiserver: ApiServer) -> Cluster:
    serve(apiserver, DEFINITION)
    found = Cluster(apiserver)
    eventually(lambda: apiserver.raw("GET", CLAIMS)[0] == 200)
    eventually(
        lambda: apiserver.raw("POST", CLAIMS, claim("big", size=5))[0] in (201, 409)
    )
    return found


@pytest.fixture(scope="module")
def operator(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    folder = tmp_path_factory.mktemp("admitting")
    with operating(FILE, cluster.api, "default", folder, *OPTIONS) as found:
        found.start()
        working(cluster, found)
        yield found


def working(cluster: Cluster, operator: Operator) -> None:
    """Wait until the webhooks are asked."""
    eventually(
        lambda: all(map(cluster.webhooks, SORTS)) and cluster.denies,
        otherwise=lambda: operator.lines,
    )


@pytest.fixture
def at_work(cluster: Cluster, operator: Operator) -> Operator:
    if not operator.is_running:
        operator.start()
    working(cluster, operator)
    return operator


def test_objects_are_created_changed_warned_about_and_denied(
    cluster: Cluster, at_work: Operator
) -> None:
    status, found = cluster.create()
    assert (status, found["spec"]) == (201, {"size": 1})
    assert not cluster.api.warnings
    status, _ = cluster.create(size=101)
    assert status == 201
    assert cluster.api.warnings == ["claims of more than 100 take an hour"]
    webhook = f"shrinks-not.{NAME}"
    denial = f'admission webhook "{webhook}" denied the request: it must not shrink'
    assert cluster.shrink() == (422, denial)
    done = subprocess.run(
        [
            *("kubectl", "--kubeconfig", str(cluster.api.kubeconfig)),
            *("patch", "claims.admission.fnop.dev", "big", "--type=merge"),
            *("-p", '{"spec": {"size": 1}}'),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(30),
    )
    assert done.returncode == 1
    assert "it must not shrink" in done.stderr
    # A dry run creates no Event.
    eventually(lambda: cluster.denials)
    (event,) = cluster.denials
    assert event["type"] == "Warning"
    assert re.fullmatch(TOLD, event["message"]), event
    assert event["involvedObject"]["kind"] == "Claim"


def test_the_operator_s_own_writes_are_admitted(
    cluster: Cluster, at_work: Operator
) -> None:
    own = {"Impersonate-User": OWN[0], "Impersonate-Group": OWN[1]}
    assert cluster.shrink(**own)[0] == 200
    assert cluster.denies


def edit(cluster: Cluster, sort: str, change: dict[str, Any]) -> None:
    status, found = cluster.api.raw("PATCH", path_of(sort), change, MERGE_PATCH)
    assert status == 200, found


def test_a_deleted_or_edited_configuration_is_healed_and_then_left_in_peace(
    cluster: Cluster, at_work: Operator
) -> None:
    for sort in SORTS:
        before = cluster.webhooks(sort)
        assert cluster.api.raw("DELETE", path_of(sort))[0] == 200
        eventually(partial(cluster.webhooks, sort))
        assert cluster.webhooks(sort) == before
    wrong = [{**each, "failurePolicy": "Ignore"} for each in cluster.webhooks()]
    edit(cluster, "validating", {"webhooks": wrong})
    eventually(lambda: cluster.webhooks() == before)
    eventually(lambda: cluster.denies)
    label = f"ValidatingWebhookConfiguration {NAME}"
    for done in ("deleted", "changed"):
        said = f"somebody has {done} {label}; it is"
        assert sum(said in line for line in at_work.lines) == 1
    # An API server of 1.20 drops the conditions, and nothing is written for that.
    versions = [*map(cluster.stored, SORTS)]
    edit(cluster, "mutating", {"webhooks": []})
    eventually(lambda: cluster.webhooks("mutating"))
    assert cluster.stored("validating") == versions[1]


def test_after_a_kill_the_failure_policy_decides_until_the_restart(
    cluster: Cluster, at_work: Operator
) -> None:
    at_work.kill()
    status, message = cluster.shrink()
    assert status == 500
    assert f'failed calling webhook "shrinks-not.{NAME}"' in message
    assert cluster.create(size=2)[0] == 500
    killed = cluster.listed
    at_work.start()
    eventually(lambda: cluster.denies, 15)
    assert cluster.create(size=2)[0] == 201
    # The killed process is no longer listed.
    eventually(lambda: len(cluster.listed) == 1 and cluster.listed != killed)


def test_what_a_killed_operator_has_registered_is_uninstalled(
    cluster: Cluster, at_work: Operator, tmp_path: Path
) -> None:
    at_work.kill()
    assert cluster.shrink()[0] == 500
    done = fnop(
        *("uninstall", FILE, "--name", "admitting", "--yes"),
        *("--kubeconfig", cluster.api.kubeconfig),
        folder=tmp_path,
    )
    assert (done.status, done.err) == (0, "")
    assert f"ValidatingWebhookConfiguration {NAME}: deleted" in done.out
    assert [*map(cluster.stored, SORTS)] == [None, None]
    assert cluster.shrink()[0] == 200


def test_of_two_replicas_one_may_end_and_the_last_one_empties_it(
    cluster: Cluster, at_work: Operator, tmp_path: Path
) -> None:
    with operating(FILE, cluster.api, "default", tmp_path, *OPTIONS) as other:
        other.start()
        eventually(lambda: len(cluster.listed) == 2, otherwise=lambda: other.lines)
        assert cluster.denies
        assert at_work.stop() == 0
        assert cluster.denies
        assert len(cluster.listed) == 1
        assert any("waits up to 7.5 s" in line for line in at_work.lines)
        assert other.stop() == 0
        assert any("webhooks are unregistered: " in line for line in other.lines)
    assert [*map(cluster.webhooks, SORTS)] == [[], []]
    assert cluster.listed == []
    assert cluster.shrink()[0] == 200


def test_of_two_replicas_without_a_service_the_living_one_is_asked(
    cluster: Cluster, at_work: Operator, tmp_path: Path
) -> None:
    """Each has an address of its own, and the newer one's is registered."""

    def address() -> str:
        return str(cluster.webhooks()[0]["clientConfig"]["url"])

    before = address()
    with operating(FILE, cluster.api, "default", tmp_path, *OPTIONS) as other:
        other.start()
        eventually(lambda: address() != before, otherwise=lambda: other.lines)
        eventually(lambda: any("has another address" in e for e in at_work.lines))
        eventually(lambda: len(cluster.listed) == 2)
        other.kill()
        assert cluster.shrink()[0] == 500
        eventually(lambda: cluster.denies, 15, otherwise=lambda: at_work.lines)
        assert address() == before
        assert len(cluster.listed) == 1
    assert at_work.stop() == 0


def test_somebody_else_s_configuration_is_left_alone(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    other = CLAIMS.replace("/default/", f"/{namespace}/")
    assert cluster.api.raw("POST", other, claim("big", size=5))[0] == 201
    for sort in SORTS:
        cluster.api.raw("DELETE", path_of(sort))
    theirs = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME},
    }
    path = f"{GROUP}/validatingwebhookconfigurations"
    assert cluster.api.raw("POST", path, theirs)[0] == 201
    before = cluster.stored("validating")
    # In one namespace: Kubernetes 1.20 does not label namespaces with their names.
    options = [each for each in OPTIONS if each != "-A"]
    with operating(FILE, cluster.api, "default", tmp_path, *options) as found:
        found.start()
        eventually(lambda: any("is somebody else's" in line for line in found.lines))
        # Once it is gone, the operator has both of its own.
        assert cluster.stored("validating") == before
        assert cluster.webhooks("mutating") == []
        assert cluster.api.raw("DELETE", path_of("validating"))[0] == 200
        eventually(lambda: cluster.denies)
        assert cluster.shrink(namespace)[0] == 200
        annotations = (cluster.stored("validating") or {})["metadata"]["annotations"]
        assert annotations[OWNER] == "admitting"
        assert found.stop() == 0
    assert cluster.webhooks() == []


def test_the_rights_that_are_printed_are_enough(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    for sort in SORTS:
        cluster.api.raw("DELETE", path_of(sort))
    definition = tmp_path / "crd.json"
    definition.write_text(json.dumps(DEFINITION))
    account = Account(namespace, "operator")
    files, crds = (str(FILE),), (str(definition),)
    wishes = Wishes(
        files, account, "admitting", crds=crds, budget=0, webhook_events=True
    )
    found = studied(wishes)
    made = manifests_for(found.needs, account)
    with (
        an_account(cluster.api, made, account, tmp_path) as config,
        operating(
            FILE, cluster.api, "default", tmp_path, *WORDS, config=config
        ) as operator,
    ):
        operator.start()
        working(cluster, operator)
        # The token identifies the operator.
        own = {
            "Impersonate-User": f"system:serviceaccount:{namespace}:operator",
            "Impersonate-Group": "system:masters",
        }
        assert cluster.shrink(**own)[0] == 200
        assert operator.stop() == 0
    assert not any("may not" in each or "forbidden" in each for each in operator.lines)
    assert [*map(cluster.webhooks, SORTS)] == [[], []]


def test_what_is_applied_by_hand_leads_to_an_operator_that_only_serves(
    cluster: Cluster, tmp_path: Path
) -> None:
    for sort in SORTS:
        cluster.api.raw("DELETE", path_of(sort))
    (tmp_path / "crd.json").write_text(json.dumps(DEFINITION))
    authority = Authority(time.time())
    pair = authority.for_server(("127.0.0.1",))
    for name, content in (
        ("ca.crt", authority.certificate),
        ("tls.crt", pair.certificate),
        ("tls.key", pair.key),
    ):
        (tmp_path / name).write_bytes(content)
    port = closed_port()
    url, ca = f"https://127.0.0.1:{port}", str(tmp_path / "ca.crt")
    words = ("--name", "admitting", "--url", url, "--ca", ca, "--crd", "crd.json")
    printed = fnop("webhooks", FILE, *words, "--kube-version", "1.20", folder=tmp_path)
    assert printed.status == 0, printed.err
    done = subprocess.run(
        ["kubectl", "--kubeconfig", str(cluster.api.kubeconfig), "apply", "-f", "-"],
        input=printed.out,
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(30),
    )
    assert done.returncode == 0, done.stderr
    before = [*map(cluster.stored, SORTS)]
    options = (
        *(*OPTIONS, "--webhook-unmanaged", "--webhook-addr", f"127.0.0.1:{port}"),
        *("--webhook-cert", str(tmp_path / "tls.crt")),
        *("--webhook-key", str(tmp_path / "tls.key")),
    )
    with operating(FILE, cluster.api, "default", tmp_path, *options) as operator:
        operator.start()
        working(cluster, operator)
        assert operator.stop() == 0
    assert [*map(cluster.stored, SORTS)] == before
    for sort in SORTS:
        cluster.api.raw("DELETE", path_of(sort))
