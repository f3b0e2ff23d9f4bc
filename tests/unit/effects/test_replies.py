"""The tables of effects and replies: they are complete, and follow the rulings."""

from __future__ import annotations

from typing import get_args

import pytest

from fnop.core.seam.effect_rules import (
    EFFECTS,
    Immediate,
    Needs,
    Pausing,
    Requested,
    Sent,
)
from fnop.core.seam.replies import (
    NEXT,
    UNSERVED_TRIES,
    EffectPurpose,
    LeasePurpose,
    Next,
    PeeringPurpose,
    Purpose,
    Replies,
    Reply,
    WritePurpose,
    next_after,
    reply_of,
)
from fnop.effects import Adopt, Effect, Outcome
from fnop.effects.outcomes import (
    Answer,
    Applied,
    Conflict,
    Missing,
    Raised,
    Refused,
    Unknown,
    Unreachable,
)

# One outcome, or several, for each reply.
OUTCOMES: dict[Reply, tuple[Outcome, ...]] = {
    Reply.DONE: (Applied({}), Answer(1)),
    Reply.MISSING: (Missing("gone"),),
    Reply.UNSERVED: (Missing("no such kind", unserved=True),),
    Reply.EXISTS: (Conflict("taken", "AlreadyExists"),),
    Reply.CONFLICT: (Conflict("changed"),),
    Reply.REJECTED: tuple(Refused(code, "no") for code in (400, 405, 413, 415, 422)),
    Reply.REFUSED: tuple(Refused(code, "no") for code in (401, 403, 500)),
    Reply.RAISED: (Raised("ValueError", "no"),),
    Reply.UNREACHABLE: (Unreachable("away"),),
    Reply.UNKNOWN: (Unknown("cut off"),),
}
PURPOSES = (*EffectPurpose, *WritePurpose, *PeeringPurpose, *LeasePurpose)
WRITES = (
    EffectPurpose.APPLY,
    EffectPurpose.PATCH,
    EffectPurpose.GUARDED_PATCH,
    EffectPurpose.CREATE,
    EffectPurpose.ADOPT,
    WritePurpose.WRITE,
    LeasePurpose.CREATE,
    LeasePurpose.TAKE,
    LeasePurpose.RENEW,
    LeasePurpose.RELEASE,
)


def test_each_purpose_has_a_row_and_each_reply_a_place_in_it() -> None:
    assert set(NEXT) == set(PURPOSES)
    assert [each.name.lower() for each in Reply] == list(Replies._fields)
    assert [each.value for each in Reply] == list(range(len(Replies._fields)))


def test_each_outcome_counts_as_one_reply() -> None:
    assert {type(each) for some in OUTCOMES.values() for each in some} == {
        *get_args(Outcome)
    }
    for reply, outcomes in OUTCOMES.items():
        assert {reply_of(each) for each in outcomes} == {reply}


@pytest.mark.parametrize("purpose", WRITES, ids=str)
def test_r28_a_write_without_a_reply_is_looked_for_and_not_repeated(
    purpose: Purpose,
) -> None:
    assert next_after(purpose, Unknown("cut off")) is Next.LOOK


@pytest.mark.parametrize(
    "purpose", [each for each in PURPOSES if each not in WRITES], ids=str
)
def test_nothing_else_is_looked_for_when_no_reply_comes(purpose: Purpose) -> None:
    look_before_a_write = Next.LOOK if purpose is WritePurpose.READ else None
    after = next_after(purpose, Unknown("cut off"))
    assert after in (Next.LATER, Next.TAKE, look_before_a_write)
    assert (after is Next.TAKE) == (purpose is EffectPurpose.CALL)


@pytest.mark.parametrize("purpose", PURPOSES, ids=str)
def test_an_api_server_that_is_away_fails_no_request(purpose: Purpose) -> None:
    outside = purpose in (EffectPurpose.CALL, EffectPurpose.RANDOM)
    expected = Next.TAKE if outside else Next.LATER
    assert next_after(purpose, Unreachable("away")) is expected


@pytest.mark.parametrize("purpose", PURPOSES, ids=str)
def test_a_kind_that_stays_unserved_is_missing(purpose: Purpose) -> None:
    unserved, missing = Missing("no kind", unserved=True), Missing("gone")
    believed = next_after(purpose, unserved, UNSERVED_TRIES)
    assert believed is next_after(purpose, missing)


def test_each_effect_has_a_row() -> None:
    assert set(EFFECTS) == set(get_args(Effect))


def test_the_rows_of_effects_are_what_their_types_say() -> None:
    assert {each for each in EFFECTS if EFFECTS[each].purpose} == {*get_args(Requested)}
    assert {e for e in EFFECTS if EFFECTS[e].needs is Needs.TIME} == {
        *get_args(Pausing)
    }
    assert {e for e in EFFECTS if EFFECTS[e].needs is Needs.NOTHING} == {
        *get_args(Immediate)
    }
    for rule in EFFECTS.values():
        assert (rule.purpose is None) == (rule.needs in (Needs.TIME, Needs.NOTHING))


def test_an_effect_that_is_looked_for_says_what_a_live_read_means() -> None:
    for rule in EFFECTS.values():
        looks = rule.purpose is not None and Next.LOOK in NEXT[rule.purpose]
        assert looks == (rule.live_read is not None)


def test_a_request_to_the_api_server_has_rights() -> None:
    for rule in EFFECTS.values():
        assert bool(rule.verbs) == (rule.needs is Needs.API)
    assert {each for each in EFFECTS if EFFECTS[each].needs is Needs.API} == {
        *get_args(Sent),
        Adopt,  # it is sent as a creation
    }
