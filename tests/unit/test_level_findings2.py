"""What users found when they attacked reconcile handlers once more.

Those that are marked by `found` are known and not mended yet; each fails when it is.
"""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.handlers.settings import Settings
from fnop.core.objects.events import event_manifest
from fnop.core.seam.commands import Subject
from fnop.core.values.now import Now
from tests.unit.test_level_beside import Both
from tests.unit.test_levels import config_map


def found(reason: str) -> pytest.MarkDecorator:
    """A mark of what is not so; it fails when it is."""
    return pytest.mark.xfail(strict=True, reason=reason, raises=AssertionError)


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
