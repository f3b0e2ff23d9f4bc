"""A table of effects: the needs of each, its request's purpose, and its answers.

A new effect gets a row here, and its place in one of the unions below. The tests prove
that the rows cover all effects. The type checker proves that each function which
distinguishes effects has a case for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import Any

from msgspec import Struct

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
    "AnswerForm",
    "Described",
    "EffectRule",
    "Immediate",
    "LiveRead",
    "Needs",
    "Pausing",
    "Requested",
    "Sent",
    "Targeted",
    "rule_of",
    "uid_meant",
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


class AnswerForm(Enum):
    """The value that a handler gets as the answer of its effect."""

    # The object after the request; the handler gets an error if it is missing.
    OBJECT = "object"
    # The object, or None if it is missing.
    OBJECT_OR_NONE = "object or none"
    # Whether the object existed.
    EXISTENCE = "existence"
    # The objects of a list.
    OBJECTS = "objects"
    BYTES = "bytes"
    # Any JSON value.
    VALUE = "value"


class LiveRead(Enum):
    """The meaning of an object that a live read finds after an answer was lost."""

    # It is this operator's: the request has made it. Otherwise the name is taken.
    CLAIM = "claim"
    # The request is sent again, as a repetition changes nothing more.
    REPEAT = "repeat"
    # The request is done if the object has its changes, and is sent again otherwise.
    COMPARE = "compare"


def _no_uid(effect: Any) -> str | None:
    return None


def _uid_of_target(patch: Patch) -> str | None:
    return patch.target.uid if patch.target is not None else None


def _uid_of_manifest(apply: Apply) -> str | None:
    return apply.manifest.get("metadata", {}).get("uid") or None


class EffectRule(Struct, frozen=True):
    """A row: the needs of an effect, its request's purpose, and its answers.

    `fnop.core.seam.replies.NEXT` has the next action for each reply to that request. An
    effect that `reads` changes nothing anywhere. It may be repeated, and needs no note
    on the object before it (`write_ahead=`). An effect that `lasts` may take any time:
    its handler counts as waiting. `verbs` are the RBAC rights of its request, on the
    `subresource` if it always addresses one. `uid` returns the uid of the only object
    that a change may reach, if it names one.
    """

    needs: Needs
    purpose: EffectPurpose | None = None
    reads: bool = False
    lasts: bool = False
    verbs: tuple[str, ...] = ()
    subresource: str = ""
    answer: AnswerForm = AnswerForm.VALUE
    live_read: LiveRead | None = None
    uid: Callable[[Any], str | None] = _no_uid

    @property
    def is_outside(self) -> bool:
        """Whether it needs something outside of the core other than the API server."""
        return self.needs is Needs.OUTSIDE

    @property
    def writes(self) -> bool:
        """Whether it changes an object by a request to the API server."""
        return self.needs is Needs.API and not self.reads

    @property
    def may_miss(self) -> bool:
        """Whether a missing object is an answer, and no error."""
        return self.answer in (AnswerForm.OBJECT_OR_NONE, AnswerForm.EXISTENCE)


_request = partial(EffectRule, Needs.API, answer=AnswerForm.OBJECT)

EFFECTS: Mapping[type[Effect], EffectRule] = {
    Patch: _request(
        EffectPurpose.PATCH,
        verbs=("patch",),
        live_read=LiveRead.COMPARE,
        uid=_uid_of_target,
    ),
    Apply: _request(
        EffectPurpose.APPLY,
        # The API server requires `create` if the object does not exist yet.
        verbs=("patch", "create"),
        live_read=LiveRead.REPEAT,
        uid=_uid_of_manifest,
    ),
    Create: _request(EffectPurpose.CREATE, verbs=("create",), live_read=LiveRead.CLAIM),
    Adopt: _request(EffectPurpose.ADOPT, verbs=("create",), live_read=LiveRead.CLAIM),
    Delete: _request(
        EffectPurpose.DELETE, verbs=("delete",), answer=AnswerForm.EXISTENCE
    ),
    Get: _request(
        EffectPurpose.GET,
        reads=True,
        verbs=("get",),
        answer=AnswerForm.OBJECT_OR_NONE,
    ),
    List: _request(
        EffectPurpose.LIST, reads=True, verbs=("list",), answer=AnswerForm.OBJECTS
    ),
    Call: EffectRule(Needs.OUTSIDE, EffectPurpose.CALL, lasts=True),
    Random: EffectRule(
        Needs.OUTSIDE, EffectPurpose.RANDOM, reads=True, answer=AnswerForm.BYTES
    ),
    Sleep: EffectRule(Needs.TIME, answer=AnswerForm.OBJECT),
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
# `Sent` are the effects that have a request of their own.
Targeted = Get | Delete
Described = Create | Apply
Sent = Targeted | Described | Patch | List
Requested = Sent | Adopt | Call | Random
Pausing = Sleep | Wait | Execute
Immediate = Event | Log | Remember | Requeue | Freeze | Resume | Return | Again


def rule_of(effect: Effect) -> EffectRule:
    """The row of an effect in the table."""
    return EFFECTS[type(effect)]


def uid_meant(effect: Effect) -> str | None:
    """The uid of the only object that a change may reach, if it names one.

    >>> from fnop.effects import Target
    >>> uid_meant(Patch(Target("pods", "p", uid="u-1"), {"spec": {}}))
    'u-1'
    """
    return EFFECTS[type(effect)].uid(effect)
