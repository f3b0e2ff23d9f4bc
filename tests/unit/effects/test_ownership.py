"""Owner references: `fnop.adopt`, `fnop.owned`, and the children of an object."""

import copy
import doctest
import re
from datetime import UTC, date, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

import fnop
from fnop.core.api import hierarchies, ownership
from fnop.core.api.ownership import Claim, claim_of, owned, stable_name
from fnop.core.handlers.declare.registry import Registry
from fnop.effects import manifests
from fnop.effects.manifests import manifest_of
from fnop.effects.wire import from_wire, to_wire
from fnop.testing import Simulation
from tests.simulations import DEFINITION, Scenario, example

OWNER: dict[str, Any] = {
    "apiVersion": "fnop.dev/v1",
    "kind": "FnopExample",
    "metadata": {
        "name": "parent",
        "namespace": "ns",
        "uid": "u-1",
        "labels": {"app": "x", "tier": "front"},
    },
}
REFERENCE = {
    "apiVersion": "fnop.dev/v1",
    "kind": "FnopExample",
    "name": "parent",
    "uid": "u-1",
    "controller": True,
    "blockOwnerDeletion": True,
}


def test_a_child_is_referenced_namespaced_and_labelled_after_its_owner() -> None:
    child = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "c"}}
    assert owned(child, OWNER) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "c",
            "namespace": "ns",
            "labels": {"app": "x", "tier": "front"},
            "ownerReferences": [REFERENCE],
        },
    }
    assert child == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "c"}}


def test_what_a_child_says_itself_stays() -> None:
    child = {"metadata": {"labels": {"app": "mine"}}}
    meta = owned(child, OWNER)["metadata"]
    assert meta["labels"] == {"app": "mine", "tier": "front"}


def test_a_cluster_scoped_child_gets_no_namespace() -> None:
    owner = {**OWNER, "metadata": {"name": "parent", "uid": "u-1"}}
    assert "namespace" not in owned({}, owner, namespaced=False)["metadata"]
    assert (
        owned({"metadata": {"namespace": "a"}}, owner)["metadata"]["namespace"] == "a"
    )


@pytest.mark.parametrize(
    ("make", "where"),
    [
        (fnop.owned, "ConfigMap c is in other, and its owner parent in ns: "),
        (fnop.append_owner_reference, "ConfigMap c is in other, and its owner parent"),
        (
            lambda child, owner: fnop.owned([child], owner),
            "ConfigMap c is in other, and its owner parent in ns: ",
        ),
        (
            lambda child, owner: fnop.owned({"kind": "N"}, owner, namespaced=False),
            "N is in no namespace, and its owner parent in ns: ",
        ),
    ],
)
def test_a_child_that_the_garbage_collector_would_delete_is_refused(
    make: Any, where: str
) -> None:
    meta = {"name": "c", "namespace": "other"}
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    with pytest.raises(ValueError, match=f"^{where}"):
        make(child, OWNER)


def test_owning_twice_is_owning_once_and_other_owners_stay() -> None:
    other = {"uid": "u-2", "kind": "K", "name": "o", "apiVersion": "v1"}
    once = owned({"metadata": {"ownerReferences": [other]}}, OWNER)
    assert once["metadata"]["ownerReferences"] == [other, REFERENCE]
    assert owned(once, OWNER) == once


# ------------------------------------------------------------------------ names


def test_a_name_depends_on_owner_handler_and_role_alone() -> None:
    name = stable_name(OWNER, "create", "0")
    assert name == stable_name(OWNER, "create", "0")
    others = {
        stable_name(OWNER, "create", "1"),
        stable_name(OWNER, "update", "0"),
        stable_name({"metadata": {"name": "parent", "uid": "u-2"}}, "create", "0"),
    }
    assert len(others | {name}) == 4
    assert name.startswith("parent-")


@given(st.text(), st.text(), st.text(), st.text(max_size=8))
def test_every_name_is_one_that_all_kinds_take(
    name: str, uid: str, handler: str, role: str
) -> None:
    owner = {"metadata": {"name": name, "uid": uid}}
    found = stable_name(owner, handler, role)
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", found), found
    assert len(found) <= 63


# ----------------------------------------------------------------------- claims


@pytest.mark.parametrize(
    ("meta", "claim"),
    [
        ({"ownerReferences": [{"uid": "u-1"}]}, Claim.OURS),
        ({"ownerReferences": [{"uid": "u-2"}, {"uid": "u-1"}]}, Claim.OURS),
        (
            {"ownerReferences": [{"uid": "u-1"}], "deletionTimestamp": "t"},
            Claim.ENDING,
        ),
        ({"ownerReferences": [{"uid": "u-2"}]}, Claim.THEIRS),
        ({"ownerReferences": [{"uid": "u-2"}], "deletionTimestamp": "t"}, Claim.THEIRS),
        ({"ownerReferences": []}, Claim.THEIRS),
        ({}, Claim.THEIRS),
    ],
)
def test_whose_an_existing_object_is(meta: dict[str, Any], claim: Claim) -> None:
    assert claim_of({"metadata": meta}, "u-1") is claim


def test_an_object_without_metadata_is_not_ours() -> None:
    assert claim_of({}, "u-1") is Claim.THEIRS


# ------------------------------------------------------ manifests of children


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(hierarchies).failed == 0
    assert doctest.testmod(ownership).failed == 0
    assert doctest.testmod(manifests).failed == 0


DEPLOYMENT: dict[str, Any] = {
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"app": "own"}},
    "spec": {"template": {"metadata": {"labels": {"app": "own"}}}},
}


def test_labels_reach_nested_parts_that_are_there() -> None:
    found = fnop.label(
        DEPLOYMENT, {"app": "x", "tier": "y"}, nested=["spec.template", "spec.other"]
    )
    assert found["metadata"]["labels"] == {"app": "own", "tier": "y"}
    assert found["spec"] == {
        "template": {"metadata": {"labels": {"app": "own", "tier": "y"}}}
    }
    forced = fnop.label(DEPLOYMENT, {"app": "x"}, forced=True, nested="spec.template")
    assert forced["spec"]["template"]["metadata"]["labels"] == {"app": "x"}


@pytest.mark.parametrize(
    "nested", ["spec.template", ("spec", "template"), [("spec", "template")]]
)
def test_a_nested_path_is_written_in_any_form(nested: Any) -> None:
    found = fnop.label({"spec": {"template": {}}}, {"a": "b"}, nested=nested)
    assert found["spec"]["template"]["metadata"]["labels"] == {"a": "b"}


def test_several_manifests_are_answered_by_several() -> None:
    one, two = fnop.label([{"kind": "A"}, {"kind": "B"}], {"a": "b"})
    assert (one["kind"], two["kind"]) == ("A", "B")
    assert one["metadata"]["labels"] == two["metadata"]["labels"] == {"a": "b"}


def test_names_are_kept_unless_forced() -> None:
    assert fnop.harmonize_naming({"metadata": {"name": "x"}}, "y") == {
        "metadata": {"name": "x"}
    }
    assert fnop.harmonize_naming({"metadata": {"name": "x"}}, "y", forced=True) == {
        "metadata": {"generateName": "y-"}
    }


def test_namespaces_are_kept_unless_forced() -> None:
    child = {"metadata": {"namespace": "mine"}}
    assert fnop.adjust_namespace(child, "other") == child
    assert fnop.adjust_namespace(child, "other", forced=True) == {
        "metadata": {"namespace": "other"}
    }


def test_owner_references_come_and_go_by_uid() -> None:
    once = fnop.append_owner_reference({}, OWNER, controller=False)
    assert fnop.append_owner_reference(once, OWNER) == once
    (reference,) = once["metadata"]["ownerReferences"]
    assert reference["controller"] is False
    gone = fnop.remove_owner_reference(once, OWNER)
    assert gone == {"metadata": {"ownerReferences": []}}


def test_what_is_no_manifest_is_refused() -> None:
    broken: Any = "a text"
    with pytest.raises(TypeError, match="str is not a manifest"):
        fnop.label(broken, {})


def test_an_adopted_child_is_labelled_within() -> None:
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    def create(**_: Any) -> fnop.Effect:
        child = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"app": "x"}},
                "template": {
                    "metadata": {"labels": {"app": "x"}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        }
        return fnop.adopt(child, nested="spec.template")

    owner = example()
    owner["metadata"]["labels"] = {"team": "red"}
    run = Scenario(registry, [owner])
    assert run.settle()
    (made,) = run.objects("deployments")
    template = made["spec"]["template"]["metadata"]["labels"]
    assert template == {"app": "x", "team": "red"}
    with pytest.raises(ValueError, match="dotted paths"):
        fnop.adopt({"apiVersion": "v1", "kind": "Pod"}, nested=["", "a"])


# What Argo CD, Helm, Flux and others put on the objects that they apply.
TRACKED = {
    "app.kubernetes.io/instance": "shop",
    "app.kubernetes.io/managed-by": "Helm",
    "applyset.kubernetes.io/part-of": "applyset-1",
    "argocd.argoproj.io/instance": "shop",
    "helm.sh/chart": "shop-1.0.0",
    "helm.toolkit.fluxcd.io/name": "shop",
    "kapp.k14s.io/app": "1",
    "kustomize.toolkit.fluxcd.io/namespace": "prod",
    "objectset.rio.cattle.io/hash": "1",
    "olm.owner": "shop",
    "pod-template-hash": "1",
}
OWN = {"app": "shop", "app.kubernetes.io/name": "shop", "example.com/tier": "front"}


def tracked() -> dict[str, Any]:
    owner = example()
    owner["metadata"]["labels"] = {**TRACKED, **OWN}
    return owner


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (None, OWN),
        ((), {}),
        (["*"], {**TRACKED, **OWN}),
        (("app", "example.com/*"), {"app": "shop", "example.com/tier": "front"}),
        ({"helm.sh/chart"}, {"helm.sh/chart": "shop-1.0.0"}),
    ],
)
@pytest.mark.parametrize("way", ["owned", "adopted", "applied", "by the settings"])
def test_which_labels_a_child_gets(way: str, wanted: Any, found: Any) -> None:
    registry = Registry()
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child"}}
    settings = fnop.Settings()

    if way == "owned":
        meta = owned(child, tracked(), labels=wanted, nested="spec")["metadata"]
        assert meta.get("labels", {}) == found
        return
    if way == "by the settings":
        settings = fnop.Settings(inherited_labels=wanted)

    @fnop.on.create("fnopexamples", registry=registry)
    def create(body: Any, **_: Any) -> fnop.Effect:
        if way == "applied":
            return fnop.apply(fnop.owned(child, body, labels=wanted))
        chosen = wanted if way == "adopted" else None
        return fnop.adopt(child, labels=chosen)

    run = Scenario(registry, [tracked()], settings=settings)
    assert run.settle()
    made = run.get("configmaps", "child")
    assert made is not None
    assert made["metadata"].get("labels", {}) == found


@given(st.dictionaries(st.sampled_from([*TRACKED, *OWN]), st.text(max_size=3)))
def test_what_a_child_says_of_itself_is_no_tracking_label_of_its_owner(
    own: dict[str, str],
) -> None:
    found = owned({"metadata": {"labels": own}}, tracked())["metadata"]["labels"]
    assert found == {**OWN, **own}


@pytest.mark.parametrize("labels", ["app", {"app": "x"}, [1], 5])
def test_labels_of_an_owner_are_named(labels: Any) -> None:
    child = {"apiVersion": "v1", "kind": "Pod"}
    for slip in (
        lambda: fnop.adopt(child, labels=labels),
        lambda: fnop.owned(child, tracked(), labels=labels),
        lambda: fnop.Settings(inherited_labels=labels),
    ):
        with pytest.raises(TypeError, match="labels= names those of the owner's lab"):
            slip()


def test_the_labels_of_an_effect_survive_the_wire() -> None:
    effect = fnop.adopt({"apiVersion": "v1", "kind": "Pod"}, labels=["app"])
    assert from_wire(to_wire(effect)) == effect
    assert from_wire(to_wire(effect)).labels == ("app",)


# -------------------------------------------------------------------- references


def test_k_5_42_references_leave_out_what_is_not_said() -> None:
    assert fnop.build_object_reference(OWNER) == {
        "apiVersion": "fnop.dev/v1",
        "kind": "FnopExample",
        "name": "parent",
        "namespace": "ns",
        "uid": "u-1",
    }
    assert fnop.build_owner_reference(OWNER) == REFERENCE
    assert fnop.build_owner_reference(
        {"kind": "K", "metadata": {"name": "o", "uid": None}},
        controller=False,
        block_owner_deletion=False,
    ) == {"kind": "K", "name": "o", "controller": False, "blockOwnerDeletion": False}


# ----------------------------------------------------- models of client libraries

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"app": "x"}},
    "spec": {
        "containers": [{"name": "c", "image": "i", "env": [{"name": "E", "value": ""}]}]
    },
}


def kubernetes_pod() -> Any:
    client = pytest.importorskip("kubernetes_asyncio.client")
    variable = client.V1EnvVar(name="E", value="")
    container = client.V1Container(name="c", image="i", env=[variable])
    return client.V1Pod(
        api_version="v1",
        kind="Pod",
        metadata=client.V1ObjectMeta(name="p", labels={"app": "x"}),
        spec=client.V1PodSpec(containers=[container]),
    )


def lightkube_pod() -> Any:
    core = pytest.importorskip("lightkube.models.core_v1")
    meta = pytest.importorskip("lightkube.models.meta_v1")
    pods = pytest.importorskip("lightkube.resources.core_v1")
    variable = core.EnvVar(name="E", value="")
    container = core.Container(name="c", image="i", env=[variable])
    return pods.Pod(
        metadata=meta.ObjectMeta(name="p", labels={"app": "x"}),
        spec=core.PodSpec(containers=[container]),
    )


def lightkube_generic() -> Any:
    generic = pytest.importorskip("lightkube.generic_resource")
    meta = pytest.importorskip("lightkube.models.meta_v1")
    make = generic.create_namespaced_resource
    kind = generic.get_generic_resource("v1", "Pod") or make("", "v1", "Pod", "pods")
    metadata = meta.ObjectMeta(name="p", labels={"app": "x"})
    return kind(apiVersion="v1", kind="Pod", metadata=metadata, spec=POD["spec"])


def kr8s_pod() -> Any:
    return pytest.importorskip("kr8s.asyncio.objects").Pod(copy.deepcopy(POD))


def older_kr8s_pod() -> Any:
    return SimpleNamespace(raw=POD)


def pykube_pod() -> Any:
    return SimpleNamespace(obj=POD)


MODELS = [
    kubernetes_pod,
    lightkube_pod,
    lightkube_generic,
    kr8s_pod,
    older_kr8s_pod,
    pykube_pod,
]


@pytest.fixture(params=MODELS, ids=lambda each: each.__name__)
def model(request: pytest.FixtureRequest) -> Any:
    return request.param()


def test_k_9_1_models_are_manifests(model: Any) -> None:
    for effect in (fnop.create(model), fnop.apply(model)):
        assert effect.manifest == POD
    assert fnop.adopt(model).child == POD
    assert fnop.delete(model).target == fnop.target("Pod.v1.", name="p")
    assert fnop.event("Seen", about=model).target == fnop.delete(model).target
    assert fnop.label(model, {}) == POD
    named = fnop.harmonize_naming(model, "q", strict=True, forced=True)
    assert named["metadata"]["name"] == "q"
    assert fnop.adjust_namespace(model, "ns")["metadata"]["namespace"] == "ns"
    assert fnop.owned(model, OWNER) == fnop.owned(POD, OWNER)
    assert fnop.owned(POD, model) == fnop.owned(POD, POD)
    assert fnop.build_owner_reference(model)["kind"] == "Pod"
    assert fnop.label(POD, {}) == POD, "and nothing is changed in place"


def test_k_9_1_iterables_of_manifests_may_be_nested(model: Any) -> None:
    nested: Any = [model, (POD,)]
    labelled: Any = fnop.label(nested, {"a": "b"})
    assert [labelled[0], labelled[1][0]] == [fnop.label(POD, {"a": "b"})] * 2
    owners = fnop.append_owner_reference((each for each in [model, POD]), OWNER)
    assert [e["metadata"]["ownerReferences"] for e in owners] == [[REFERENCE]] * 2
    builders: list[Any] = [fnop.adopt, fnop.create, fnop.apply]
    for build in builders:
        assert build([model, iter([POD, [model]])]) == [build(POD)] * 3


def test_k_9_1_a_plan_of_models_is_done() -> None:
    registry = Registry()
    client = pytest.importorskip("kubernetes_asyncio.client")

    @fnop.on.create("fnopexamples", registry=registry)
    def create(**_: Any) -> list[fnop.Effect]:
        maps = [
            client.V1ConfigMap(
                api_version="v1",
                kind="ConfigMap",
                metadata=client.V1ObjectMeta(name=name),
                data={"a": name},
            )
            for name in ("one", "two")
        ]
        lease = client.V1Lease(
            api_version="coordination.k8s.io/v1",
            kind="Lease",
            metadata=client.V1ObjectMeta(name="l"),
            spec=client.V1LeaseSpec(acquire_time=datetime(2026, 1, 2, tzinfo=UTC)),
        )
        return [*fnop.adopt(maps), fnop.create(lease)]

    run = Scenario(registry, [example()])
    assert run.settle()
    assert [each["data"] for each in run.objects("configmaps")] == [
        {"a": "one"},
        {"a": "two"},
    ]
    (lease,) = run.objects("leases")
    assert lease["spec"]["acquireTime"] == "2026-01-02T00:00:00.000000Z"


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 1, 2, 3, 4, 5), "2026-01-02T03:04:05.000000Z"),  # noqa: DTZ001
        (
            datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=timezone(timedelta(hours=2))),
            "2026-01-02T01:04:05.000006Z",
        ),
        (date(2026, 1, 2), "2026-01-02"),
    ],
)
def test_k_9_1_dates_are_written_as_kubernetes_does(moment: date, text: str) -> None:
    client = pytest.importorskip("kubernetes_asyncio.client")
    meta = client.V1ObjectMeta(creation_timestamp=moment)
    assert manifest_of(client.V1Pod(metadata=meta)) == {
        "metadata": {"creationTimestamp": text}
    }


@pytest.mark.parametrize(
    ("broken", "name"),
    [
        (None, "NoneType"),
        (5, "int"),
        ("pods", "str"),
        (b"pods", "bytes"),
        (SimpleNamespace(obj="pods"), "SimpleNamespace"),
        (dict, "the class dict"),
        (["pods"], "str"),
        ({"a": 1}.items(), "str"),
    ],
)
def test_k_9_1_anything_else_is_no_manifest(broken: Any, name: str) -> None:
    for build in (fnop.adopt, fnop.create, fnop.apply):
        with pytest.raises(TypeError, match=f"^{name} is not a manifest"):
            build(broken)
    with pytest.raises(TypeError, match=f"^{name} is not a manifest"):
        fnop.label(broken, {})
    with pytest.raises(TypeError, match="is not a manifest"):
        fnop.build_owner_reference(broken)


def test_k_9_1_a_class_of_models_is_none() -> None:
    client = pytest.importorskip("kubernetes_asyncio.client")
    with pytest.raises(TypeError, match="the class V1Pod is not a manifest"):
        fnop.create(client.V1Pod)


def test_k_9_1_a_role_is_for_one_child() -> None:
    children: Any = [POD, POD]
    with pytest.raises(ValueError, match="a role is for one child"):
        fnop.adopt(children, role="main")


def test_an_adopted_child_is_applied_over_and_nobody_else_s_fields_are() -> None:
    """To the server what was created and what is applied are two managers' fields."""
    registry = Registry()

    def child(spec: Any) -> dict[str, Any]:
        metadata = {"name": "child"}
        data = {"text": spec["text"]}
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": data,
        }

    @fnop.on.create("fnopexamples", registry=registry)
    def create(spec: Any, **_: Any) -> fnop.Effect:
        return fnop.adopt(child(spec))

    @fnop.on.update("fnopexamples", registry=registry, retries=1)
    def update(spec: Any, body: Any, **_: Any) -> fnop.Effect:
        return fnop.apply(fnop.owned(child(spec), body))

    sim = Simulation(registry, crds=DEFINITION, objects=example(text="a"))
    sim.settle().edit("fnopexamples/example-1", spec={"text": "b"}).settle()
    assert sim["configmaps/child"]["data"] == {"text": "b"}
    assert sim.errors == []
    sim.edit("configmaps/child", data={"text": "a person's"}).settle()
    sim.edit("fnopexamples/example-1", spec={"text": "c"}).settle()
    assert sim["configmaps/child"]["data"] == {"text": "a person's"}
    assert "Conflict" in sim.errors[-1]
