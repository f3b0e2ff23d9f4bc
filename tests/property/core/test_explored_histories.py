"""Random histories of one object: whatever happens, nothing is lost or done twice.

`make explore-core` plays 20,000 of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings

from tests.explored import Move, Shape, broken_laws, played
from tests.explorer import CASES, histories
from tests.thorough import examples


def law_abiding(shape: Shape, script: Sequence[Move]) -> None:
    run = played(shape, script)
    laws = broken_laws(run)
    assert laws == [], "\n".join(run.told)


@pytest.mark.parametrize("case", CASES)
def test_what_was_once_lost_or_done_twice(case: str) -> None:
    law_abiding(*CASES[case])


@settings(max_examples=examples(300))
@given(histories())
def test_nothing_is_lost_or_done_twice(history: tuple[Shape, list[Move]]) -> None:
    law_abiding(*history)
