"""Plans, recordings and shadows over many built-in kinds, as a real server has them.

An operator handles an object of each kind, and desires it as a child of a FnopExample.
The server fills in defaults, and its controllers write statuses: once all is handled,
neither a plan nor a replay finds a difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fnop.interpreters.runtime.protocol import MERGE_PATCH
from tests.cluster.envtest import ApiServer
from tests.cluster.operating import User, assert_replays, operating
from tests.commands import fnop
from tests.conformance.samples import Sample, samples
from tests.patience import eventually
from tests.simulations import ROOT, example

Json = dict[str, Any]
# A child has a namespace.  A quota or limit would refuse the others, Events expire, and
# a recording has tokens in the place of what an operator's code has for a Secret.
LEFT_OUT = ("LimitRange", "ResourceQuota", "Event", "Secret")
SAMPLES = tuple(
    each
    for each in samples()
    if "{ns}" in each.at and each.object["kind"] not in LEFT_OUT
)
OPERATOR = """
import json
import fnop

CHILDREN = json.loads({children!r})
KINDS = json.loads({kinds!r})
NAMES = [each["metadata"]["name"] for each in CHILDREN]

def is_child(name, **_):
    # Others make objects from these, and copy the labels and annotations.
    return name in NAMES

@fnop.reconcile("fnopexamples", owns=KINDS)
def keep(**_):
    return fnop.desired(CHILDREN, status={{"kept": len(CHILDREN)}})

for kind in KINDS:
    @fnop.on.create(kind, when=is_child, id=f"create-{{kind}}")
    @fnop.on.update(kind, when=is_child, id=f"update-{{kind}}")
    def handled(**_):
        pass

    @fnop.on.delete(kind, when=is_child, optional=True, id=f"delete-{{kind}}")
    def deleted(**_):
        pass
"""


def kind_of(sample: Sample) -> str:
    """The kind as operators name it, such as `deployments.v1.apps`."""
    root, *parts, _, _, plural = sample.at.strip("/").split("/")
    group, version = ("", parts[0]) if root == "api" else parts
    return f"{plural}.{version}.{group}".strip(".")


def child_of(sample: Sample, namespace: str) -> Json:
    child = sample.named(f"kind-{sample.number}", namespace)
    kept = ("name", "labels", "annotations")
    return {**child, "metadata": {key: child["metadata"][key] for key in kept}}


class Handled(NamedTuple):
    """The objects of all kinds after a run, and its recording."""

    api: ApiServer
    namespace: str
    file: Path
    recording: Path

    def path(self, sample: Sample) -> str:
        name = f"kind-{sample.number}"
        return f"{sample.at.replace('{ns}', self.namespace)}/{name}"

    def is_kept(self) -> bool:
        found = User(self.api, self.namespace).get("fnopexamples", "all") or {}
        return "kept" in found.get("status", {})

    def told(self) -> list[str]:
        """The changes of a plan, a line for each."""
        return [json.dumps(each) for each in self.plan()["changes"]]

    def plan(self, *options: str) -> Json:
        config = ("--kubeconfig", self.api.kubeconfig)
        command = ("plan", self.file, "-n", self.namespace, "-o", "json")
        done = fnop(*command, *options, *config, folder=self.file.parent)
        assert done.status == 0, done.err
        found: Json = json.loads(done.out)
        return found


@pytest.fixture(scope="module")
def handled(
    apiserver: ApiServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Handled]:
    namespace, folder = apiserver.namespace(), tmp_path_factory.mktemp("kinds")
    file = folder / "operator.py"
    children = json.dumps([child_of(each, namespace) for each in SAMPLES])
    kinds = json.dumps([*dict.fromkeys(map(kind_of, SAMPLES))])
    file.write_text(OPERATOR.format(children=children, kinds=kinds))
    user = User(apiserver, namespace)
    user.define()
    with operating(file, apiserver, namespace, folder) as operator:
        operator.start(record=True)
        user.create(example("all"))

        found = Handled(apiserver, namespace, file, operator.recordings[0])
        # The controllers write for a while, and the operator handles what they make.
        eventually(
            lambda: found.is_kept() and found.plan()["changes"] == [],
            otherwise=lambda: "\n".join([*operator.lines, *found.told()]),
        )
        assert operator.stop() == 0, operator.lines
        yield found


def test_there_are_many_kinds() -> None:
    assert len({each.object["kind"] for each in SAMPLES}) >= 20


@pytest.mark.parametrize("options", [(), ("--server-dry-run",)], ids=str)
def test_a_plan_finds_nothing_to_do(options: tuple[str, ...], handled: Handled) -> None:
    found = handled.plan(*options)
    assert found["changes"] == [], handled.told()


def test_the_recording_replays(handled: Handled) -> None:
    assert_replays(handled.recording, handled.file)


def test_a_shadow_of_the_same_operator_decides_the_same(handled: Handled) -> None:
    command = ("replay", handled.recording, handled.file, "--shadow")
    done = fnop(*command, "--fail-on", "any", folder=ROOT)
    assert done.status == 0, (done.out, done.err)
    assert done.out.startswith("0 of "), done.out


# A user changes a field of these, or some.
EDITS: dict[str, Json] = {
    "ConfigMap": {"data": {"a": "edited"}},
    "CronJob": {"spec": {"schedule": "1 * * * *"}},
    "DaemonSet": {"spec": {"minReadySeconds": 7}},
    "Deployment": {"spec": {"replicas": 7}},
    "HorizontalPodAutoscaler": {"spec": {"maxReplicas": 9}},
    "Ingress": {"spec": {"ingressClassName": "edited"}},
    "Lease": {"spec": {"holderIdentity": "edited"}},
    "NetworkPolicy": {"spec": {"podSelector": {"matchLabels": {"app": "edited"}}}},
    "PodDisruptionBudget": {"spec": {"minAvailable": "9%"}},
    "Service": {"spec": {"selector": {"app": "edited"}}},
    "ServiceAccount": {"automountServiceAccountToken": True},
    "StatefulSet": {"spec": {"replicas": 7}},
}


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """The values of an object by their paths, without what fnop and the server note."""
    if not isinstance(value, dict) or not value:
        return {path: value}
    found: dict[str, Any] = {}
    for key, each in value.items():
        found |= leaves(each, f"{path}/{key}")
    return {
        key: each
        for key, each in found.items()
        if "/annotations/fnop.dev/" not in key
        and key not in ("/metadata/generation", "/metadata/resourceVersion")
    }


def test_an_edited_field_is_the_only_change(handled: Handled) -> None:
    edited = [each for each in SAMPLES if each.object["kind"] in EDITS]
    for each in edited:
        edit = EDITS[each.object["kind"]]
        status, answer = handled.api.raw("PATCH", handled.path(each), edit, MERGE_PATCH)
        assert status == 200, answer
    changes = {each["name"]: each for each in handled.plan()["changes"]}
    assert {*changes} == {f"kind-{each.number}" for each in edited}
    for each in edited:
        change = changes[f"kind-{each.number}"]
        before, after = leaves(change["before"]), leaves(change["after"])
        differing = {key for key in before | after if before.get(key) != after.get(key)}
        assert change["actions"] == ["change"]
        assert differing == {*leaves(EDITS[each.object["kind"]])}
