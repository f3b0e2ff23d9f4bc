"""Children and their owners."""

import doctest
import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

import fnop
from fnop.core import hierarchies, ownership
from fnop.core.ownership import Claim, claim_of, owned, stable_name
from fnop.core.registry import Registry
from tests.simulations import Scenario, example

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
    child = {"metadata": {"namespace": "other", "labels": {"app": "mine"}}}
    meta = owned(child, OWNER)["metadata"]
    assert meta["namespace"] == "other"
    assert meta["labels"] == {"app": "mine", "tier": "front"}


def test_a_cluster_scoped_child_gets_no_namespace() -> None:
    assert "namespace" not in owned({}, OWNER, namespaced=False)["metadata"]


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
    with pytest.raises(TypeError, match="str is no manifest"):
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
