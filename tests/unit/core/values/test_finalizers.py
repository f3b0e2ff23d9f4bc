"""Finalizers: when one is added and removed, over all combinations of facts."""

from itertools import product

import pytest

from fnop.core.values.finalizers import (
    TABLE,
    Duty,
    finalizer_duty,
    with_finalizer,
    without_finalizer,
)


@pytest.mark.parametrize(
    ("needed", "present", "deleting"), list(product((False, True), repeat=3))
)
def test_every_combination(needed: bool, present: bool, deleting: bool) -> None:
    duty = finalizer_duty(needed=needed, present=present, deleting=deleting)
    if needed and not present and not deleting:
        assert duty is Duty.ADD
    elif not needed and present:
        assert duty is Duty.REMOVE
    else:
        assert duty is Duty.NONE


def test_the_table_is_complete() -> None:
    assert set(TABLE) == set(product((False, True), repeat=3))


def test_others_keep_their_finalizers_and_their_order() -> None:
    assert with_finalizer(("b", "a"), "own") == ["b", "a", "own"]
    assert without_finalizer(("b", "own", "a"), "own") == ["b", "a"]
    assert with_finalizer(("own",), "own") == ["own"]
