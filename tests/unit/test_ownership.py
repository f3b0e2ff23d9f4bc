"""Children and their owners."""

import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from fnop.core.ownership import Claim, claim_of, owned, stable_name

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
