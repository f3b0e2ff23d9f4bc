"""Kopf's lifecycles: those of fnop, under Kopf's names."""

from __future__ import annotations

import logging

import pytest

from fnop import kopf
from fnop.adapters.kopf.declaring import lifecycles
from fnop.core.handlers.declare import lifecycles as ours

theirs = pytest.importorskip("kopf")

NAMES = ("all_at_once", "asap", "one_by_one", "randomized", "shuffled")


@pytest.mark.parametrize("name", NAMES)
def test_each_lifecycle_of_kopf_is_one_of_fnop(name: str) -> None:
    assert getattr(kopf.lifecycles, name) is getattr(ours, name)
    assert callable(getattr(theirs.lifecycles, name))


def test_there_is_a_default_that_can_be_replaced(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert kopf.get_default_lifecycle() is ours.asap
    kopf.set_default_lifecycle(ours.one_by_one)
    assert lifecycles.get_default_lifecycle() is ours.one_by_one
    kopf.set_default_lifecycle(None)
    assert kopf.get_default_lifecycle() is ours.asap
    assert [each.levelno for each in caplog.records] == [logging.WARNING] * 2
    former = f"The default lifecycle is already set to {ours.one_by_one}"
    assert caplog.messages[1] == f"{former}, overriding it to None."
