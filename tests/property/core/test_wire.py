"""The wire form of effects and outcomes: complete, and unique for each value."""

import random
from typing import Any

from hypothesis import given, settings, strategies as st

from fnop.effects import Patch
from fnop.effects.values import ReadOnlyDict, ReadOnlyList, canonical, freeze_json
from fnop.effects.wire import decode, digest_of, encode
from tests.property.strategies import all_effects, all_outcomes, json_values, shuffled
from tests.thorough import examples


@given(all_effects | all_outcomes)
def test_what_is_decoded_is_what_was_encoded(value: Any) -> None:
    back = decode(encode(value))
    assert type(back) is type(value)
    assert encode(back) == encode(value)
    assert digest_of(back) == digest_of(value)


@settings(max_examples=examples(50))
@given(json_values, st.randoms(use_true_random=False))
def test_the_order_of_keys_is_not_visible(value: Any, chance: random.Random) -> None:
    assert canonical(shuffled(value, chance)) == canonical(value)


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=3))
def test_a_patch_of_known_parts_is_the_one_of_checked_values(
    merge: dict[str, Any],
) -> None:
    known = Patch.of_parts(merge, "status")
    assert known == Patch(None, merge, (), "status")
    assert type(known.merge) is ReadOnlyDict


@given(json_values)
def test_frozen_json_is_equal_and_deeply_read_only(value: Any) -> None:
    frozen = freeze_json(value, "value")
    assert canonical(frozen) == canonical(value)
    pending = [frozen]
    while pending:
        each = pending.pop()
        assert type(each) not in (dict, list)
        if isinstance(each, ReadOnlyDict):
            pending += each.values()
        elif isinstance(each, ReadOnlyList):
            pending += each
