"""What users found when they attacked reconcile handlers once more.

Those that are marked by `found` are known and not mended yet; each fails when it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest

import fnop
from fnop.core.children.marks import APPLIED_ANNOTATION, ChildSet
from fnop.core.handlers.registry import Registry
from fnop.core.handlers.settings import Settings
from fnop.core.objects.events import event_manifest
from fnop.core.seam.commands import Subject
from fnop.core.values.now import Now
from fnop.effects.values import digest
from tests.unit.test_level_beside import Both
from tests.unit.test_level_findings import upgraded
from tests.unit.test_levels import NAME, Desiring, config_map, data_of


def found(reason: str) -> pytest.MarkDecorator:
    """A mark of what is not so; it fails when it is."""
    return pytest.mark.xfail(strict=True, reason=reason, raises=AssertionError)


# ------------------------------------------------------ children of an earlier release


@contextmanager
def earlier_marks(handler: str = "keep") -> Iterator[None]:
    """Children are marked as fnop did before their marks told the owner.

    The label was a digest of both names; the annotation began with it.
    """
    label = digest(f"fnop.dev/default/{handler}")[:16]

    def mark(self: ChildSet, _: Any, manifest: str) -> str:
        return f"{label}.{manifest}"

    def made(self: ChildSet, _: Any, body: Any) -> bool:
        applied = body.mapping("annotations").get(APPLIED_ANNOTATION)
        return str(applied).startswith(f"{label}.")

    with (
        mock.patch.object(ChildSet, "mark", mark),
        mock.patch.object(ChildSet, "made", made),
        mock.patch.object(ChildSet, "label", label),
    ):
        yield


def of_an_earlier_release(*wanted: Any) -> Desiring:
    """An operator that was upgraded while it was down, with its children."""
    op = Desiring(*wanted)
    with earlier_marks():
        op.begin()
        applied = op.sim["configmaps/near"]["metadata"]["annotations"]
        assert len(applied[APPLIED_ANNOTATION].split(".")[0]) == 16
    upgraded(op, op.registry)
    return op


NEAR, FAR = config_map("near", a="1"), config_map("far", "kube-public", a="1")


def test_children_of_an_earlier_release_are_taken_over_by_one_apply_each() -> None:
    op = of_an_earlier_release(NEAR, FAR)
    writes = op.writes()
    op.sim.settle()
    assert sorted(writes) == ["PATCH configmaps/far", "PATCH configmaps/near"]
    assert "Repaired" not in [each["reason"] for each in op.sim.events()]


@pytest.mark.parametrize(
    ("name", "place"), [("near", "default"), ("far", "kube-public")]
)
def test_children_of_an_earlier_release_that_are_not_desired_any_more_go(
    name: str, place: str
) -> None:
    op = of_an_earlier_release(NEAR, FAR)
    op.wanted = []
    op.sim.settle()
    assert data_of(op.sim, name, namespace=place) is None


def test_a_child_elsewhere_goes_with_an_owner_that_is_deleted_during_an_upgrade() -> (
    None
):
    op = of_an_earlier_release(NEAR, FAR)
    op.sim.delete(NAME)
    op.sim.settle()
    assert op.sim.get(NAME) is None
    assert data_of(op.sim, "far", namespace="kube-public") is None


def test_a_child_elsewhere_goes_with_an_owner_whose_handler_has_another_name() -> None:
    op = of_an_earlier_release(NEAR, FAR)
    registry = Registry()

    @fnop.reconcile("fnopexamples", owns="configmaps", registry=registry, id="other")
    def other(**_: Any) -> fnop.Desired:
        return fnop.desired()

    upgraded(op, registry)
    op.sim.settle()
    op.sim.delete(NAME).settle()
    assert data_of(op.sim, "far", namespace="kube-public") is None


def test_a_copy_of_a_child_of_an_earlier_release_stays() -> None:
    op = of_an_earlier_release(NEAR, FAR)
    original = op.sim["configmaps/near"]
    meta = {**original["metadata"], "name": "backup"}
    for name in ("uid", "resourceVersion", "managedFields", "creationTimestamp"):
        del meta[name]
    op.sim.apply({**original, "metadata": meta}).settle()
    assert data_of(op.sim, "backup") == {"a": "1"}


# ------------------------------------------------------------- on Kubernetes 1.20


def test_an_event_about_a_cluster_scoped_object_is_one_that_old_servers_take() -> None:
    """Those before 1.21 refuse it in `default` if it has `eventTime`."""
    now, settings = Now(0.0, 0.0), Settings()
    manifests = [
        event_manifest(
            fnop.event("Repaired", "it"),
            Subject("namespaces.v1.", place, "n", "u", "Namespace", "v1"),
            settings,
            now,
            "x",
        )
        for place in (None, "default")
    ]
    assert [each["metadata"]["namespace"] for each in manifests] == ["default"] * 2
    assert ["eventTime" in each for each in manifests] == [False, True]


# ---------------------------------------------------- Synced of handlers beside others


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "others", [fnop.UNCHANGED, ValueError("no zone"), config_map("two")]
)
@pytest.mark.parametrize(
    "own", [fnop.UNCHANGED, ValueError("no size"), fnop.PermanentError("no size")]
)
def test_what_several_tell_is_the_same_after_a_restart(
    own: Any, others: Any, reverse: bool
) -> None:
    op = Both(reverse=reverse)
    op.answers |= {"a": own, "b": others}
    op.begin().sim.wait(100)
    before = len(op.sim.writes)
    op.sim.restart().wait(100)
    assert [e for e in op.sim.writes[before:] if "/events" not in e] == []
