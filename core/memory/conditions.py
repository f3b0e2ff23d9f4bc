"""The operator's condition in the status of a handled object.

While handlers wait, or when one has failed permanently, `status.conditions` has an
entry of the operator's own type that reports it. Other objects get no such entry.

Kubernetes API conventions (typical status properties): a condition's type is unique,
`lastTransitionTime` changes with its status. Writers leave others' conditions alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec import Struct

from fnop.core.memory.progress import Progress
from fnop.core.values.body import Body
from fnop.core.values.now import parse_time
from fnop.effects.structs import beside

__all__ = [
    "Condition",
    "condition_by",
    "condition_of",
    "conditions_in",
    "conditions_with",
    "is_of",
    "keeping",
]

MESSAGE_LENGTH_MAX = 1024


@beside("wall", "generation")
class Condition(Struct, frozen=True):
    """A condition, written at `wall` (Unix seconds) about a `generation`.

    Two conditions with the same status, reason and message are equal, whenever they
    were written.
    """

    status: str  # "True" or "False"
    reason: str
    message: str
    wall: float
    generation: int | None = None

    def is_told_by(self, other: Condition | None) -> bool:
        """Whether another condition is equal, and not of an older generation."""
        if other is None or self != other:
            return False
        if self.generation is None or other.generation is None:
            return True  # a schema may drop observedGeneration
        return self.generation <= other.generation


def condition_of(
    what: str,
    records: Mapping[str, Progress],
    *,
    ended: bool,
    generation: int | None,
    wall: float,
) -> Condition | None:
    """The condition that follows from the handlers' records; None if not needed.

    `what` is the handled reason, such as "create", of a `generation` of the object.
    Failures take precedence over waiting. A retry after an error is only logged.
    """
    what = what.capitalize()
    failed = {
        k: each
        for k, each in records.items()
        if each.finished == "failure" or each.is_halted
    }
    waiting = {k: each for k, each in records.items() if each.waits}
    if failed:
        return Condition(
            "False", f"{what}Failed", _text_of_messages(failed), wall, generation
        )
    if waiting:
        return Condition(
            "False", f"{what}Waiting", _text_of_messages(waiting), wall, generation
        )
    if ended:
        return Condition("True", "Succeeded", "", wall, generation)
    return None


def _text_of_messages(records: Mapping[str, Progress]) -> str:
    lines = (f"{name}: {each.message}" for name, each in sorted(records.items()))
    return "; ".join(lines)[:MESSAGE_LENGTH_MAX]


def conditions_in(status: Any) -> list[Any]:
    """The conditions in a status; empty if they have another form than a list."""
    found = status.get("conditions") if isinstance(status, Mapping) else None
    return list(found) if isinstance(found, (list, tuple)) else []


def is_of(condition: Any, *types: str) -> bool:
    """Whether a value is a condition of one of these types.

    >>> is_of({"type": "Ready"}, "Synced", "Ready"), is_of("Ready", "Ready")
    (True, False)
    """
    return isinstance(condition, Mapping) and condition.get("type") in types


def condition_by(body: Body, type: str) -> Condition | None:
    """The object's condition of a type; None without one."""
    for each in conditions_in(body.stanza("status")):
        if is_of(each, type):
            words = [str(each.get(k, "")) for k in ("status", "reason", "message")]
            generation = each.get("observedGeneration")
            known = generation if isinstance(generation, int) else None
            return Condition(
                words[0], words[1], words[2], _transition_time(each), known
            )
    return None


def _transition_time(condition: Mapping[str, Any]) -> float:
    try:
        return parse_time(str(condition.get("lastTransitionTime")))
    except ValueError:
        return 0.0


def keeping(conditions: Any, body: Body, types: Collection[str]) -> Any:
    """A patch's list of conditions, plus the object's conditions of `types`.

    A merge patch replaces a list as a whole. A handler that writes its own conditions
    does not intend to remove the operator's.

    >>> body = Body({"status": {"conditions": [{"type": "fnop", "status": "True"}]}})
    >>> [each["type"] for each in keeping([{"type": "Ready"}], body, ["fnop"])]
    ['Ready', 'fnop']
    >>> keeping([{"type": "fnop"}], body, ["fnop"]), keeping(None, body, ["fnop"])
    ([{'type': 'fnop'}], [{'type': 'fnop', 'status': 'True'}])
    """
    given = () if conditions is None else conditions
    if not isinstance(given, (list, tuple)):
        return conditions
    told = {each.get("type") for each in given if isinstance(each, Mapping)}
    present = conditions_in(body.stanza("status"))
    ours = [e for t in types if t not in told for e in present if is_of(e, t)]
    return [*given, *ours] if ours else conditions


def conditions_with(
    conditions: Iterable[Any], type: str, condition: Condition, moment: str
) -> list[Any]:
    """An object's conditions, with the one of `type` replaced or added.

    >>> ready = Condition("True", "Succeeded", "", 0.0)
    >>> was = [{"type": "Ready", "status": "False", "lastTransitionTime": "then"}]
    >>> conditions_with(was, "Ready", ready, "now")[0]["lastTransitionTime"]
    'now'
    >>> conditions_with([], "Ready", ready, "now")[0]["status"]
    'True'
    """
    found = list(conditions)
    at = next((n for n, each in enumerate(found) if is_of(each, type)), len(found))
    was = found[at] if at < len(found) else {}
    if was.get("status") == condition.status and was.get("lastTransitionTime"):
        moment = was["lastTransitionTime"]
    new: dict[str, Any] = {
        "type": type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": moment,
    }
    if condition.generation is not None:
        new["observedGeneration"] = condition.generation
    found[at:] = [new, *found[at + 1 :]]
    return found
