"""The conditions in an object's status, as its reconcilers report them.

Others' conditions stay. A condition that already says the same is not written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from fnop.core.children.planning import Keeper
from fnop.core.children.siblings import SYNCED, Beside, as_desired, has_failed
from fnop.core.memory.conditions import Condition, conditions_with
from fnop.core.values.now import wall_seconds
from fnop.effects.desired import StatusCondition

__all__ = ["is_told", "tell", "telling", "told_by_all"]


def tell(
    conditions: Iterable[StatusCondition], keeper: Keeper, body: dict[str, Any]
) -> None:
    """Merge conditions into an object, by their types; others' stay.

    Conditions of another form, such as a mapping, stay as they are.
    """
    found = body.get("status")
    status = found if isinstance(found, dict) else {}
    if not isinstance(status.get("conditions") or [], list):
        return
    body["status"] = {
        **status,
        "conditions": _merge_conditions(conditions, keeper, status),
    }


def telling(
    keeper: Keeper, beside: Beside, own: StatusCondition | None
) -> Callable[[dict[str, Any]], None] | None:
    """The change of an object whose handler has desired nothing.

    `own` is the handler's report, if any. None if the object already shows it, or shows
    no conditions.
    """
    status = keeper.owner.stanza("status")
    told = told_by_all(keeper, beside, own)
    if told is None and own is None and not beside.awaits:
        # It may have failed before: this is outdated then.
        told = as_desired() if _tells_failure(status) else None
    if told is None or not keeper.reports or is_told(told, keeper, status):
        return None
    return partial(tell, (told,), keeper)


def told_by_all(
    keeper: Keeper, beside: Beside, own: StatusCondition | None
) -> StatusCondition | None:
    """The joint report of the object's handlers, as far as it is known.

    None while others are awaited, for example after a restart, and the object already
    reports a problem of this generation: that may be theirs.
    """
    told = beside.told(own)
    if told is None or not beside.awaits:
        return told
    is_known = any(
        each.get("type") == SYNCED
        and each.get("status") != "True"
        and each.get("observedGeneration") == keeper.owner.generation
        for each in _conditions_in(keeper.owner.stanza("status"))
    )
    return None if is_known else told


def _conditions_in(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The conditions in a status that are well-formed."""
    present = status.get("conditions")
    found = present if isinstance(present, list) else ()
    return [each for each in found if isinstance(each, dict)]


def _tells_failure(status: Mapping[str, Any]) -> bool:
    """Whether an object reports that a handler failed before it desired anything."""
    failed = {"type": SYNCED, "status": "False", "reason": has_failed("").reason}
    return any(failed.items() <= each.items() for each in _conditions_in(status))


def _merge_conditions(
    conditions: Iterable[StatusCondition], keeper: Keeper, status: Mapping[str, Any]
) -> list[Any]:
    present = status.get("conditions")
    merged: list[Any] = list(present) if isinstance(present, list) else []
    moment = wall_seconds(keeper.wall)
    for each in conditions:
        merged = conditions_with(merged, each.type, _condition_of(each, keeper), moment)
    return merged


def is_told(
    condition: StatusCondition, keeper: Keeper, status: Mapping[str, Any]
) -> bool:
    """Whether a status already has a condition: merging it would change nothing."""
    for each in _conditions_in(status):
        if each.get("type") == condition.type:
            found = conditions_with(
                [each], condition.type, _condition_of(condition, keeper), ""
            )
            return bool(found == [each] and each["lastTransitionTime"])
    return False


def _condition_of(condition: StatusCondition, keeper: Keeper) -> Condition:
    # An API server before 1.23 takes an empty text of a typed status for null.
    words = condition.status, condition.reason, condition.message or condition.reason
    return Condition(*words, keeper.wall, keeper.owner.generation)
