"""What users found when they attacked reconcile handlers, and what holds since."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from click.testing import CliRunner

import fnop
from fnop.adapters.cli import main
from fnop.adapters.definitions import definitions_of
from fnop.adapters.type_fields import DefinitionProblem
from fnop.core.children.applying import is_immutable
from fnop.core.children.fields import lost_fields, managers_of
from fnop.core.handlers.program import Program
from fnop.core.handlers.registry import Registry
from fnop.core.handlers.settings import Settings
from fnop.interpreters.simulation import SimulatedRun
from fnop.testing import Simulation
from tests.reconcilers import (
    KIND,
    NAME,
    Desiring,
    condition,
    config_map,
    data_of,
    secret,
    simulation,
)
from tests.simulations import DEFINITION, example

ME = "fnop.dev/default"


def upgraded(
    op: Desiring, registry: Registry, settings: Settings | None = None
) -> Simulation:
    """The same cluster with another operator, after the first one has stopped."""
    run = op.sim._run
    op.sim._run = SimulatedRun(
        Program(registry.handlers, settings or Settings()),
        run.cluster,
        clock=run.clock,
        on_say=run.on_say,
    )
    return op.sim


# ----------------------------------------------------------- data loss and a wrong end


@pytest.mark.parametrize(
    "message",
    [
        'ConfigMap "one" is invalid: data[immutable key]: Invalid value: "immutable '
        "key\": a valid config key must consist of alphanumeric characters, '-', '_'",
        'Service "immutable" is invalid: spec.ports[0].port: Invalid value: 0: must be '
        "between 1 and 65535, inclusive",
    ],
)
def test_a_word_in_a_refused_value_is_no_immutability(message: str) -> None:
    assert not is_immutable(message)


def test_an_address_that_cannot_be_unset_is_immutable() -> None:
    """As Kubernetes 1.20 words it where `clusterIP: None` is no longer named."""
    assert is_immutable(
        'Service "s" is invalid: spec.clusterIPs[0]: Invalid value: []string(nil): '
        "primary clusterIP can not be unset"
    )


def test_a_wrong_manifest_does_not_delete_a_child_that_may_be_replaced() -> None:
    good = config_map("one", a="1")
    op = Desiring(fnop.child(good, on_immutable="replace")).begin()
    op.wanted = [
        fnop.child(
            config_map("one", **{"a": "1", "immutable key": "x"}),
            on_immutable="replace",
        )
    ]
    op.sim.edit(NAME, spec={"round": 2}).wait(30)
    assert data_of(op.sim, "one") == {"a": "1"}


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("near", "default"),
        ("far", "kube-public"),
    ],
)
def test_orphaned_children_stay(name: str, place: str) -> None:
    op = Desiring(config_map("near"), config_map("far", "kube-public")).begin()
    op.sim.delete(NAME, propagation="Orphan").settle()
    assert op.sim.get(NAME) is None
    assert data_of(op.sim, name, namespace=place) is not None


def test_an_orphaned_child_is_not_taken_over_by_a_stranger() -> None:
    op = Desiring(config_map("shared", a="1")).begin()
    op.sim.delete(NAME, propagation="Orphan").settle()
    op.sim.edit("configmaps/shared", data={"a": "precious"})
    op.sim.apply(example("stranger")).wait(30)
    assert data_of(op.sim, "shared") == {"a": "precious"}


def test_a_copy_that_somebody_makes_of_a_child_is_not_deleted() -> None:
    op = Desiring(config_map("one", a="1")).begin()
    original = op.sim.get("configmaps/one")
    assert original is not None
    meta = {**original["metadata"], "name": "one-backup"}
    for name in ("uid", "resourceVersion", "managedFields", "creationTimestamp"):
        del meta[name]
    op.sim.apply({**original, "metadata": meta}).settle()
    assert data_of(op.sim, "one-backup") == {"a": "1"}


# Kubernetes 1.36, custom resource, a field with x-kubernetes-preserve-unknown-fields;
# after a merge patch {"spec": {"any": {"x": {"y": 2}}}} by somebody else.
UNTYPED = {
    "metadata": {
        "managedFields": [
            {
                "manager": ME,
                "operation": "Apply",
                "fieldsV1": {"f:spec": {"f:any": {"f:x": {}}}},
            },
            {
                "manager": "kubectl-patch",
                "operation": "Update",
                "fieldsV1": {"f:spec": {"f:any": {"f:x": {"f:y": {}}}}},
            },
        ]
    },
    "spec": {"any": {"x": {"y": 2}}},
}
# Kubernetes 1.20, custom resource, `m` is a map of texts: each map has its own item
# there, `".": {}`, which is written `{}` when it is the last one.
TYPED = {
    "metadata": {
        "managedFields": [
            {"manager": ME, "operation": "Apply", "fieldsV1": {"f:spec": {"f:m": {}}}},
            {
                "manager": "kubectl-patch",
                "operation": "Update",
                "fieldsV1": {"f:spec": {"f:m": {"f:a": {}}}},
            },
        ]
    },
    "spec": {"m": {"a": "theirs"}},
}


@pytest.mark.parametrize(
    ("manifest", "live", "path"),
    [
        pytest.param(
            {"spec": {"any": {"x": {"y": 1}}}}, UNTYPED, "spec.any.x.y", id="1.36"
        ),
        pytest.param({"spec": {"m": {"a": "b"}}}, TYPED, "spec.m.a", id="1.20"),
    ],
)
def test_the_last_field_of_a_mapping_is_lost(
    manifest: Any, live: Any, path: str
) -> None:
    assert lost_fields(manifest, live, ME) == [path]


THING = yaml.safe_load(
    """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.e.com}
spec:
  group: e.com
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              any: {x-kubernetes-preserve-unknown-fields: true}
"""
)


def test_drift_in_a_field_of_a_free_form_is_repaired() -> None:
    thing = {"apiVersion": "e.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    op = Desiring({**thing, "spec": {"any": {"x": {"y": 1}}}}, owns="things.e.com")
    op.sim.apply(THING)
    op.begin()
    op.sim.edit("things/t", spec={"any": {"x": {"y": 2}}}).settle()
    assert op.sim["things/t"]["spec"] == {"any": {"x": {"y": 1}}}


@pytest.mark.parametrize("moves_on", [False, True])
def test_a_former_manifest_that_lands_late_is_undone(moves_on: bool) -> None:
    """A write whose reply was lost, a former leader, or a former release."""
    op, former = Desiring(config_map("one", a="1")), list[Any]()

    @fnop.on.event("configmaps", registry=op.registry)
    def land(name: str, **_: Any) -> Any:
        return fnop.apply(former[0], force=True) if name == "trigger" else None

    op.sim = simulation(op.registry)
    op.begin()
    live = op.sim["configmaps/one"]
    marks = ("name", "namespace", "labels", "annotations", "ownerReferences")
    meta = {key: live["metadata"][key] for key in marks}
    former.append({**live, "metadata": meta})
    op.desire(config_map("one", a="2"))
    assert data_of(op.sim, "one") == {"a": "2"}
    op.sim.apply(config_map("trigger")).settle()
    if moves_on:  # not even the next call sees it
        op.sim.edit(NAME, metadata={"labels": {"any": "change"}}).settle()
    assert data_of(op.sim, "one") == {"a": "2"}


def test_a_renamed_handler_leaves_nothing_behind_elsewhere() -> None:
    op = Desiring(config_map("far", "kube-public")).begin()
    op.sim.stop().delete(NAME)
    renamed = Registry()

    @fnop.reconcile(KIND, owns=["configmaps"], registry=renamed, id="renamed")
    def keep(**_: Any) -> fnop.Desired:
        return fnop.desired(config_map("far", "kube-public"))

    sim = upgraded(op, renamed)
    sim.settle()
    assert sim.get(NAME) is None
    assert data_of(sim, "far", namespace="kube-public") is None


@pytest.mark.parametrize("still", ["another kind", "no reconcile handler"])
def test_a_new_release_tells_that_it_may_leave_something_behind(still: str) -> None:
    op = Desiring(config_map("far", "kube-public")).begin()
    op.sim.stop()
    later = Registry()
    if still == "another kind":

        @fnop.reconcile(KIND, owns=["secrets"], registry=later, id="keep")
        def keep(**_: Any) -> fnop.Desired:
            return fnop.desired()
    else:

        @fnop.on.update(KIND, registry=later)
        def updated(**_: Any) -> None: ...

    sim = upgraded(op, later)
    sim.settle()
    sim.delete(NAME).wait(60)
    is_told = any("that a former release has made" in each for each in sim.log)
    assert is_told or data_of(sim, "far", namespace="kube-public") is None


@pytest.mark.parametrize("deleted", [False, True])
def test_a_child_elsewhere_has_one_owner(deleted: bool) -> None:
    """The other one is told to be content, and keeps so when the child has gone."""
    op = Desiring(config_map("shared", "kube-public", a="1"))
    op.sim.apply([example("example-1"), example("example-2")]).wait(60)
    child = op.sim.get("configmaps/shared", namespace="kube-public")
    assert child is not None
    owner = child["metadata"]["annotations"]["fnop.dev/owner"].split("/")[2]
    (other,) = {"example-1", "example-2"} - {owner}
    if deleted:
        op.sim.delete(f"{KIND}/{owner}").wait(120)
        assert data_of(op.sim, "shared", namespace="kube-public") == {"a": "1"}
    else:
        (synced,) = op.sim[f"{KIND}/{other}"].status["conditions"]
        assert synced["status"] == "False"


def test_an_owner_that_does_not_match_any_more_can_be_deleted() -> None:
    op = Desiring(config_map("far", "kube-public"), labels={"on": "yes"})
    owner = example()
    owner["metadata"]["labels"] = {"on": "yes"}
    op.sim.apply(owner).settle()
    op.sim.edit(NAME, metadata={"labels": {"on": None}}).settle()
    op.sim.delete(NAME).wait(600)
    assert op.sim.get(NAME) is None
    assert data_of(op.sim, "far", namespace="kube-public") is None


def test_an_owner_that_does_not_match_any_more_is_not_said_to_be_synced() -> None:
    op = Desiring(config_map("one", a="1"), labels={"on": "yes"})
    owner = example()
    owner["metadata"]["labels"] = {"on": "yes"}
    op.sim.apply(owner).settle()
    op.sim.edit(NAME, metadata={"labels": {"on": None}}).settle()
    op.sim.edit("configmaps/one", data={"a": "2"}).settle()
    assert data_of(op.sim, "one") != {"a": "2"} or op.synced()[0] != "True"


def test_a_renamed_operator_removes_fields_that_are_not_named_any_more() -> None:
    op = Desiring(config_map("one", a="1", b="2")).begin()
    op.sim.stop()
    op.wanted = [config_map("one", a="1")]
    sim = upgraded(op, op.registry, Settings(operator="latter"))
    sim.settle()
    assert op.synced()[0] == "True"
    assert data_of(sim, "one") == {"a": "1"}


def test_a_child_in_a_namespace_that_is_not_served_is_told() -> None:
    op = Desiring(config_map("far", "kube-public"))
    here = Settings(namespaces=("default",))
    op.sim = simulation(op.registry, settings=here)
    op.sim.apply(example()).wait(30)
    status = op.synced()[0]
    op.sim.stop().delete(NAME)
    op.sim.restart().wait(60)
    is_left = data_of(op.sim, "far", namespace="kube-public") is not None
    assert op.sim.get(NAME) is None
    assert (status, is_left) == ("False", False)


def test_again_at_once_is_again() -> None:
    op = Desiring()
    op.more = {"again": 0}
    op.sim.apply(example())
    with suppress(AssertionError):  # time may not pass
        op.sim.wait(10)
    assert len(op.calls) > 1


def test_a_mapping_that_fails_once_is_tried_again() -> None:
    registry, calls, fails = Registry(), list[str](), [True]

    @fnop.reconcile(KIND, registry=registry)
    def look(name: str, **_: Any) -> fnop.Desired:
        calls.append(name)
        return fnop.desired()

    @fnop.maps("configmaps", to=KIND, registry=registry)
    def users(name: str, **_: Any) -> Any:
        if name == "template" and fails:
            fails.pop()
            raise fnop.TemporaryError("not yet", delay=1)
        return "example-1"

    sim = simulation(registry)
    sim.apply(example()).settle()
    calls.clear()
    sim.apply(config_map("template")).wait(120)
    assert calls == ["example-1"]


def test_a_mapping_may_name_many() -> None:
    registry, calls = Registry(), list[str]()

    @fnop.reconcile(KIND, registry=registry)
    def look(name: str, **_: Any) -> fnop.Desired:
        calls.append(name)
        return fnop.desired()

    @fnop.maps("configmaps", to=KIND, registry=registry)
    def users(name: str, **_: Any) -> Any:
        others = [f"other-{number}" for number in range(10_000)]
        return [*others, "example-1"] if name == "template" else ()

    sim = simulation(registry)
    sim.apply(example()).settle()
    calls.clear()
    sim.apply(config_map("template")).settle()
    assert calls == ["example-1"]


# -------------------------------------------------------------- secrets, endless writes


def test_a_value_of_a_secret_is_not_told() -> None:
    op = Desiring(secret("s", pin=987654321), owns="secrets")
    op.sim.apply(example()).wait(30)
    told = [*op.sim.log, *op.synced()]
    assert not [each for each in told if "987654321" in each]


def test_two_handlers_that_desire_one_child_do_not_write_without_end() -> None:
    """On a real API server 160 writes a second, and nothing in the log."""
    op = Desiring(config_map("one", a="1"))

    @fnop.reconcile(KIND, owns=["configmaps"], registry=op.registry, id="other")
    def other(**_: Any) -> fnop.Desired:
        return fnop.desired(config_map("one", b="2"))

    op.sim = simulation(op.registry)
    op.sim.apply(example())
    op.sim.wait(60)  # fails where no time passes
    assert len(op.calls) < 30


def test_two_handlers_that_desire_one_child_are_told() -> None:
    op = Desiring(config_map("one", a="1"))

    @fnop.reconcile(KIND, owns=["configmaps"], registry=op.registry, id="other")
    def other(**_: Any) -> fnop.Desired:
        return fnop.desired(config_map("one", a="2"))

    op.sim = simulation(op.registry)
    op.sim.apply(example()).wait(60)
    assert op.synced()[0] == "False"


@pytest.mark.parametrize("is_data", [True, False])
def test_who_desires_another_child_at_each_call_is_slowed_down(is_data: bool) -> None:
    """On a real API server 163 writes a second, and nothing in the log."""
    registry, calls = Registry(), list[int]()

    @fnop.reconcile(KIND, owns="configmaps", registry=registry)
    def restless(**_: Any) -> fnop.Desired:
        calls.append(len(calls))
        turn = str(len(calls))
        if is_data:
            return fnop.desired(config_map("one", turn=turn))
        return fnop.desired(config_map("ab"[len(calls) % 2]))

    sim = simulation(registry)
    sim.apply(example())
    sim.wait(100)  # fails where no time passes
    assert len(calls) < 50


def test_twins_are_told_though_one_names_its_namespace() -> None:
    op = Desiring(config_map("one", a="1"), config_map("one", "default", a="2"))
    op.sim.apply(example()).wait(30)
    status = op.sim[NAME].get("status", {})
    told = [each["status"] for each in status.get("conditions", ())]
    assert op.sim.errors or "False" in told


def test_what_a_server_does_not_keep_is_told_once() -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80, "protocol": "TCP"}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
    }
    op = Desiring(service, owns="services")
    op.more = {"again": 5}
    op.sim.apply(example()).wait(60)
    assert len([each for each in op.sim.log if "does not keep" in each]) == 1


# ------------------------------------------------------------------- what is told wrong


def test_synced_tells_of_each_handler() -> None:
    op, registry = Desiring(), Registry()

    @fnop.reconcile(KIND, registry=registry, id="failing")
    def failing(**_: Any) -> fnop.Desired:
        return fnop.desired(secret("not-owned"))

    @fnop.reconcile(KIND, owns="configmaps", registry=registry, id="good")
    def good(**_: Any) -> fnop.Desired:
        return fnop.desired(config_map("one", a="1"))

    op.sim = simulation(registry)
    op.sim.apply(example()).wait(300)
    assert condition(op.sim, "Synced")[0] == "False"
    op.sim.edit("configmaps/one", data={"a": "2"}).wait(2)
    assert condition(op.sim, "Synced")[0] == "False"


def test_after_finds_a_child_that_names_its_namespace() -> None:
    wrong = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s", "namespace": "default"},
        "spec": {"ports": [{"port": 0}]},
    }
    late = fnop.child(config_map("late"), after="service/s")
    op = Desiring(wrong, late, owns=["configmaps", "services"])
    op.sim.apply(example()).wait(30)
    assert data_of(op.sim, "late") is None


@pytest.mark.parametrize("before", ["service/misspelt", "configmap/late"])
def test_after_that_cannot_be_is_told(before: str) -> None:
    op = Desiring(fnop.child(config_map("late"), after=before))
    op.sim.apply(example()).wait(30)
    assert op.sim.errors or op.synced()[0] == "False"


def test_who_has_changed_a_key_with_a_dot() -> None:
    entry = {
        "manager": "kubectl",
        "operation": "Update",
        "fieldsV1": {"f:data": {"f:app.conf": {}}},
    }
    live = {"metadata": {"managedFields": [entry]}, "data": {"app.conf": "2"}}
    (path,) = lost_fields({"data": {"app.conf": "1"}}, live, ME)
    assert managers_of(live, path) == ["kubectl"]


def test_a_bare_manifest_is_no_answer() -> None:
    registry = Registry()
    fnop.reconcile(KIND, owns="configmaps", registry=registry, id="forgot")(
        lambda **_: config_map("one")
    )
    sim = simulation(registry)
    sim.apply(example()).wait(30)
    assert sim.errors or "configmaps/one" in sim


def test_a_malformed_condition_of_somebody_hinders_nobody() -> None:
    op = Desiring(config_map("one", a="1"))
    op.sim.apply(example())
    op.sim.edit(NAME, status={"conditions": [{"type": ["x"]}]}).wait(30)
    assert op.sim.errors == []


def test_a_child_with_malformed_labels_fails_alone() -> None:
    wrong = config_map("wrong")
    wrong["metadata"]["labels"] = "app"
    op = Desiring(wrong, config_map("one", a="1"))
    op.sim.apply(example()).wait(30)
    told = [each for each in op.sim.errors if "is not a mapping" in each]
    assert data_of(op.sim, "one") == {"a": "1"} or "labels" in told[0]


def test_an_object_is_not_its_own_child() -> None:
    itself = fnop.child(example("example-1", size=3), adopt=True)
    op = Desiring(itself, owns=[KIND])
    op.sim.apply(example()).wait(30)
    assert not op.sim[NAME].metadata.get("ownerReferences")


def test_who_requeues_itself_is_slowed_down() -> None:
    registry, calls = Registry(), list[str]()

    @fnop.reconcile(KIND, registry=registry)
    def again(name: str, **_: Any) -> Any:
        calls.append(name)
        return [fnop.requeue(KIND, name=name), fnop.desired()]

    sim = Simulation(registry, crds=[DEFINITION])
    sim.apply(example())
    sim.wait(20)  # fails where no time passes
    assert len(calls) < 100


@pytest.mark.parametrize("limit", [math.inf, math.nan])
def test_limits_that_are_no_numbers_are_refused(limit: float) -> None:
    @dataclass
    class Spec:
        size: Annotated[float, fnop.schema(maximum=limit)]

    Spec.__annotations__["size"] = Annotated[float, fnop.schema(maximum=limit)]

    @fnop.definition("sizes.v1.example.com")
    @dataclass
    class Size:
        spec: Spec

    Size.__annotations__["spec"] = Spec
    try:
        text = yaml.safe_dump(definitions_of([Size]))
    except DefinitionProblem:
        return
    assert ".inf" not in text
    assert ".nan" not in text


@pytest.mark.parametrize("image", ["", "Upper/case", "two words"])
def test_an_image_that_cannot_be_is_told(image: str, tmp_path: Path) -> None:
    (tmp_path / "operator.py").write_text(
        "import fnop\n\n\n@fnop.reconcile('fnopexamples')\n"
        "def keep(**_):\n    return fnop.desired()\n"
    )
    (tmp_path / "crd.yaml").write_text(yaml.safe_dump(DEFINITION))
    (tmp_path / "object.yaml").write_text(yaml.safe_dump(example()))
    words = ["olm", str(tmp_path / "operator.py"), "--version", "1.0.0"]
    done = CliRunner().invoke(
        main, [*words, "--image", image, "--output", str(tmp_path / "bundle")]
    )
    assert done.exit_code != 0


def test_a_kind_that_rbac_does_not_know_is_told(tmp_path: Path) -> None:
    (tmp_path / "operator.py").write_text(
        "import fnop\n\n\n@fnop.reconcile('fnopexamples', owns='widgets.example.com')\n"
        "def keep(**_):\n    return fnop.desired()\n"
    )
    (tmp_path / "crd.yaml").write_text(yaml.safe_dump(DEFINITION))
    (tmp_path / "object.yaml").write_text(yaml.safe_dump(example()))
    done = CliRunner().invoke(main, ["rbac", str(tmp_path / "operator.py")])
    assert done.exit_code == 0, done.output
    assert "widgets" in done.output
