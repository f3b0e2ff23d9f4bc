"""One change as requests to two endpoints: the object and its status.

A change sees one version of the object, however many requests it needs. The next
request omits the parts that an endpoint has taken. It is still computed from that
version (`left_of`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from fnop.core.handlers.declare.writers import Transform
from fnop.core.state.address import Address, Request, Steps
from fnop.core.values.body import Body
from fnop.core.values.merge import OperationFailed, applied, operated, transformed
from fnop.effects import (
    Effect,
    Patch,
)

__all__ = [
    "Changes",
    "cannot_split",
    "changed",
    "endpoints_of",
    "left_of",
    "split",
]

# Changes of the handled object, each with its author.
Changes: TypeAlias = tuple[tuple[str, Patch | Transform], ...]


def split(patch: Patch, address: Address) -> tuple[Request, ...]:
    """The requests of a patch: status has its own if the kind has the subresource."""
    if not _can_split(patch, address):
        return (Request(patch, address),)
    merge = patch.merge or {}
    main, status = _split_steps(patch.json)
    rest = {key: value for key, value in merge.items() if key != "status"}
    found = []
    if rest or main:
        found.append(Patch(patch.target, rest or None, main))
    if "status" in merge:
        found.append(Patch(patch.target, {"status": merge["status"]}, (), "status"))
    elif status:
        found.append(Patch(patch.target, None, status, "status"))
    return tuple(Request(each, address) for each in found)


def _can_split(patch: Patch, address: Address) -> bool:
    resource = address.resource
    return not patch.subresource and resource is not None and resource.has_status


def _split_steps(steps: Steps) -> tuple[Steps, Steps]:
    """The JSON patch operations for the main endpoint, and for `/status`.

    Each endpoint sees the whole object, and keeps only its own part of it. So a patch
    of one part stays whole. If a patch changes both parts, the status tests before its
    first change are repeated in the first request.
    """
    written = _written_parts(steps)
    if True not in written:
        return steps, ()
    if False not in written:
        return (), steps
    main: list[Any] = []
    status: list[Any] = []
    is_changed = False
    for step in steps:
        is_test = step["op"] == "test"
        if not _is_of_status(step["path"]):
            main.append(step)
            continue
        status.append(step)
        if is_test and not is_changed:
            main.append(step)
        is_changed = is_changed or not is_test
    return tuple(main), tuple(status)


def _written_parts(steps: Steps) -> set[bool]:
    """The parts that a JSON patch changes: True for the status, False for the rest."""
    pointers = [step["path"] for step in steps if step["op"] != "test"]
    pointers += [step.get("from") for step in steps if step["op"] == "move"]
    return {_is_of_status(each) for each in pointers}


def _is_of_status(pointer: Any) -> bool:
    return str(pointer).split("/")[1:2] == ["status"]


def cannot_split(effect: Effect, address: Address) -> str | None:
    """The reason why a JSON patch cannot be split into two requests; None if it can."""
    if not isinstance(effect, Patch) or not _can_split(effect, address):
        return None
    crosses = any(
        _is_of_status(step["from"]) != _is_of_status(step["path"])
        for step in effect.json
        if "from" in step
    )
    if not crosses or len(_written_parts(effect.json)) < 2:
        return None
    return (
        "a JSON patch that changes the status and something else is two requests, and "
        "cannot move or copy from one to the other; give the value itself"
    )


# ------------------------------------------------------- changes of several authors


def changed(target: Any, change: Patch | Transform) -> Any:
    """Return the object after one of an author's changes.

    Raises `OperationFailed` if the change does not fit the object.
    """
    if isinstance(change, Transform):
        return transformed(change.change, target)
    return operated(change.json, applied(change.merge or {}, target))


def endpoints_of(change: Patch | Transform, *, split: bool) -> set[str]:
    """The endpoints that a change goes to; with `split`, status has its own.

    >>> sorted(endpoints_of(Patch(merge={"spec": {}, "status": {}}), split=True))
    ['', 'status']
    """
    if not split:
        return {""}
    if isinstance(change, Transform):
        # Either or both: only the function knows.
        rest = change.change
        return {rest.endpoint} if isinstance(rest, _Rest) else {"", "status"}
    roots = {_is_of_status(step.get("path")) for step in change.json}
    roots |= {key == "status" for key in change.merge or {}}
    return {"status" if is_status else "" for is_status in roots}


class _Rest(Struct, frozen=True):
    """The part of a change for one endpoint, after the other one has taken its part.

    As it was in `seen`: the change always sees the other endpoint's part like that.
    """

    change: Patch | Transform
    endpoint: str
    seen: Mapping[str, Any]

    def __call__(self, found: dict[str, Any]) -> None:
        is_status = self.endpoint == "status"
        here, there = _split_object(found, is_status)
        _, as_it_was = _split_object(self.seen, is_status)
        made = changed({**as_it_was, **here}, self.change)
        if not isinstance(made, Mapping):
            raise OperationFailed("a patch must leave an object")
        found.clear()
        found.update({**there, **_split_object(made, is_status)[0]})


def _split_object(
    found: Mapping[str, Any], is_status: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The part of an object that an endpoint takes, and the part that it does not.

    >>> _split_object({"spec": 1, "status": 2}, True)
    ({'status': 2}, {'spec': 1})
    """
    here = {k: v for k, v in found.items() if (k == "status") == is_status}
    return here, {k: v for k, v in found.items() if k not in here}


def left_of(changes: Changes, endpoint: str, before: Body, *, split: bool) -> Changes:
    """Return the changes without the parts that an endpoint has taken.

    They were computed from the object `before`, each from the result of the previous
    ones. `split` means that the status has an endpoint of its own.
    """
    found = []
    seen: Any = before.data
    for place, (author, change) in enumerate(changes):
        rest = _without(change, endpoint, seen) if split else None
        if rest is not None:
            found.append((author, rest))
        if _needs_more(changes[place + 1 :]):
            seen = changed(seen, change)
    return tuple(found)


def _needs_more(changes: Iterable[tuple[str, Patch | Transform]]) -> bool:
    """Whether any of the changes depends on the result of the previous ones."""
    return any(isinstance(each, Transform) or each.json for _, each in changes)


def _without(
    change: Patch | Transform, endpoint: str, seen: Mapping[str, Any]
) -> Patch | Transform | None:
    """A change without its part for an endpoint; None if nothing of it remains."""
    left = endpoints_of(change, split=True) - {endpoint}
    if not left:
        return None
    if endpoints_of(change, split=True) == left:
        return change
    (other,) = left
    if isinstance(change, Patch) and not change.json:
        merge = _split_object(change.merge or {}, other == "status")[0]
        return Patch(change.target, merge)
    return Transform(_Rest(change, other, seen))
