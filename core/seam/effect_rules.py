"""A table of effects: the needs of each, and its request's purpose.

A new effect gets a row here, and its place in one of the unions below. The tests prove
that the rows cover all effects. The type checker proves that each function which
distinguishes effects has a case for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from fnop.core.seam.replies import EffectPurpose
from fnop.effects import (
    Adopt,
    Again,
    Apply,
    Call,
    Create,
    Delete,
    Effect,
    Event,
    Execute,
    Freeze,
    Get,
    List,
    Log,
    Patch,
    Random,
    Remember,
    Requeue,
    Resume,
    Return,
    Sleep,
    Wait,
)

__all__ = [
    "EFFECTS",
    "Described",
    "EffectRule",
    "Immediate",
    "Needs",
    "Pausing",
    "Requested",
    "Targeted",
    "rule_of",
]


class Needs(Enum):
    """The needs of an effect."""

    # The step itself answers it.
    NOTHING = "nothing"
    # It waits: for a time, for the request to stop, or for sub-handlers.
    TIME = "time"
    # It is a request to the API server.
    API = "api"
    # It needs something else outside of the core: an author's function, the system.
    OUTSIDE = "outside"


class EffectRule(NamedTuple):
    """A row: the needs of an effect, and the purpose of its request.

    `fnop.core.seam.replies.NEXT` has the next action for each reply to that request. An
    effect that `reads` changes nothing anywhere. It may be repeated, and needs no note
    on the object before it (`write_ahead=`). An effect that `lasts` may take any time:
    its handler counts as waiting.
    """

    needs: Needs
    purpose: EffectPurpose | None = None
    reads: bool = False
    lasts: bool = False

    @property
    def is_outside(self) -> bool:
        """Whether it needs something outside of the core other than the API server."""
        return self.needs is Needs.OUTSIDE


EFFECTS: Mapping[type[Effect], EffectRule] = {
    Patch: EffectRule(Needs.API, EffectPurpose.PATCH),
    Apply: EffectRule(Needs.API, EffectPurpose.APPLY),
    Create: EffectRule(Needs.API, EffectPurpose.CREATE),
    Adopt: EffectRule(Needs.API, EffectPurpose.ADOPT),
    Delete: EffectRule(Needs.API, EffectPurpose.DELETE),
    Get: EffectRule(Needs.API, EffectPurpose.GET, reads=True),
    List: EffectRule(Needs.API, EffectPurpose.LIST, reads=True),
    Call: EffectRule(Needs.OUTSIDE, EffectPurpose.CALL, lasts=True),
    Random: EffectRule(Needs.OUTSIDE, EffectPurpose.RANDOM, reads=True),
    Sleep: EffectRule(Needs.TIME),
    Wait: EffectRule(Needs.TIME),
    Execute: EffectRule(Needs.TIME),
    Event: EffectRule(Needs.NOTHING),
    Log: EffectRule(Needs.NOTHING),
    Remember: EffectRule(Needs.NOTHING),
    Requeue: EffectRule(Needs.NOTHING),
    Freeze: EffectRule(Needs.NOTHING),
    Resume: EffectRule(Needs.NOTHING),
    Return: EffectRule(Needs.NOTHING),
    Again: EffectRule(Needs.NOTHING),
}


# The same as types, so that the type checker finds a missing effect. The address of a
# request comes from its target or from its manifest, or follows a rule of its own.
Targeted = Get | Delete
Described = Create | Apply
Requested = Targeted | Described | Patch | Adopt | List | Call | Random
Pausing = Sleep | Wait | Execute
Immediate = Event | Log | Remember | Requeue | Freeze | Resume | Return | Again


def rule_of(effect: Effect) -> EffectRule:
    """The row of an effect in the table."""
    return EFFECTS[type(effect)]
