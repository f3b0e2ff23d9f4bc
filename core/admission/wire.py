"""Reviews as JSON: the request, the answers to its handlers, and the decision.

Headers and the peer are omitted: they hold credentials.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct

from fnop.core.admission.decisions import Decision
from fnop.core.api.reviews import Request
from fnop.core.values.now import Now
from fnop.effects import Outcome
from fnop.effects.values import thaw_json
from fnop.effects.wire import from_wire, to_wire

__all__ = [
    "REVIEWED",
    "Review",
    "decision_to_wire",
    "review_from_wire",
    "review_to_wire",
]

# The mark of a recorded review, in place of an input's.
REVIEWED = "Reviewed"
_LEFT_OUT = frozenset(("headers", "peer"))


class Review(Struct, frozen=True):
    """A decided review: the facts in addition to the operator's state.

    `asks` are the ids of the handlers, and `account` is the operator's user. `answers`
    are the answers to the handlers' requests, each with its time.
    """

    request: Request
    asks: tuple[str, ...] = ()
    account: str = ""
    answers: tuple[tuple[Now, Outcome], ...] = ()


def review_to_wire(
    request: Request,
    asks: Collection[str],
    account: str,
    answers: Sequence[tuple[Now, Outcome]],
) -> dict[str, Any]:
    """The JSON form of a review.

    >>> request = Request("1", "DELETE", "", "v1", "pods", "Pod")
    >>> review_from_wire(review_to_wire(request, ["a"], "me", [])).request == request
    True
    """
    told = request._asdict()
    return {
        "in": REVIEWED,
        "request": {k: thaw_json(v) for k, v in told.items() if k not in _LEFT_OUT},
        "asks": sorted(asks),
        "account": account,
        "answers": [
            {"wall": now.wall, "mono": now.mono, "outcome": to_wire(outcome)}
            for now, outcome in answers
        ],
    }


def review_from_wire(wire: Mapping[str, Any]) -> Review:
    """Return a review from its JSON form; raise `ValueError` or similar for others."""
    answers = (
        (Now(each["wall"], each["mono"]), from_wire(each["outcome"]))
        for each in wire["answers"]
    )
    return Review(
        Request(**wire["request"]),
        tuple(map(str, wire["asks"])),
        str(wire["account"]),
        tuple(answers),
    )


def decision_to_wire(decision: Decision) -> dict[str, Any]:
    """The JSON form of a decision; it contains the object if a mutation changed it."""
    found: dict[str, Any] = {
        "do": "Decided",
        "allowed": decision.allowed,
        "denials": [
            {
                "handler": each.handler,
                "message": each.message,
                "code": each.code,
                "field": each.field,
            }
            for each in decision.denials
        ],
        "warnings": [*decision.warnings],
    }
    if decision.patch:
        found["object"] = thaw_json(decision.object)
    if decision.denials:
        found["handler"] = decision.denials[0].handler
    return found
