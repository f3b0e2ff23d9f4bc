"""Causes: which one an object has, over all combinations of facts."""

from itertools import product

import pytest

from fnop.core.values.cause import TABLE, Cause, Facts, Reason, detect_cause

ALL = [Facts(*bits) for bits in product((False, True), repeat=6)]


def specified(facts: Facts) -> Cause:
    """The same decision in prose, written independently of the table."""
    if facts.gone:
        return Cause(Reason.GONE, bool(facts.initial))
    if facts.deleting:
        reason = Reason.DELETE if facts.blocked else Reason.FREE
        return Cause(reason, bool(facts.initial))
    if not facts.seen:
        return Cause(Reason.CREATE, False)
    if facts.changed:
        return Cause(Reason.UPDATE, bool(facts.initial))
    if facts.initial:
        return Cause(Reason.RESUME, True)
    return Cause(Reason.NOOP, False)


@pytest.mark.parametrize("facts", ALL, ids=str)
def test_every_combination_of_facts(facts: Facts) -> None:
    assert detect_cause(facts) == specified(facts)


def test_every_row_decides_something() -> None:
    deciding = set()
    for facts in ALL:
        for number, (row, _) in enumerate(TABLE):
            if all(w is None or w == h for w, h in zip(row, facts, strict=True)):
                deciding.add(number)
                break
    assert deciding == set(range(len(TABLE)))
