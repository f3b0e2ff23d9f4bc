"""What each effect needs of the world: one row for each.

A new effect gets a row here and a case in `fnop.core.objects.effects.perform`; the
tests prove that the rows cover the union, and the type checker that the cases do.
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
    """What performing an effect needs."""

    # It is answered within the step.
    NOTHING = "nothing"
    # It waits for a time, for being told, or for sub-handlers.
    TIME = "time"
    # A request to the API server.
    API = "api"
    # Something else outside of the core: a function of the author's, the system.
    OUTSIDE = "outside"


class EffectRule(NamedTuple):
    """A row: what an effect needs, and what its request is for.

    What follows from each reply to that request is in `fnop.core.seam.replies.NEXT`.
    `reads` tells that it changes nothing anywhere, so that it may be repeated, and the
    object need not say first that its handler has begun to act (`write_ahead=`).
    `lasts` tells that it may take as long as it likes: its handler counts as waiting.
    """

    needs: Needs
    purpose: EffectPurpose | None = None
    reads: bool = False
    lasts: bool = False

    @property
    def is_outside(self) -> bool:
        """Whether its request goes elsewhere than to the API server."""
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
    Freeze: EffectRule(Needs.NOTHING),
    Resume: EffectRule(Needs.NOTHING),
    Return: EffectRule(Needs.NOTHING),
    Again: EffectRule(Needs.NOTHING),
}


# The same as types, so that the type checker finds an effect that is forgotten.  What
# is requested is addressed by its target, by its manifest, or in a way of its own.
Targeted = Get | Delete
Described = Create | Apply
Requested = Targeted | Described | Patch | Adopt | List | Call | Random
Pausing = Sleep | Wait | Execute
Immediate = Event | Log | Remember | Freeze | Resume | Return | Again


def rule_of(effect: Effect) -> EffectRule:
    """The row of an effect."""
    return EFFECTS[type(effect)]
