"""One patch as requests to two endpoints: the object and its status."""

from __future__ import annotations

from typing import Any

from fnop.core.state.address import Address, Request, Steps
from fnop.effects import (
    Effect,
    Patch,
)

__all__ = ["cannot_split", "split"]


def split(patch: Patch, address: Address) -> tuple[Request, ...]:
    """The requests of a patch: status has its own if the kind has the subresource."""
    if not _can_split(patch, address):
        return (Request(patch, address),)
    merge = patch.merge or {}
    main, status = _parts(patch.json)
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


def _parts(steps: Steps) -> tuple[Steps, Steps]:
    """The JSON patch operations for the main endpoint, and those for `/status`.

    Each endpoint sees the whole object, and keeps only its own part of it.  So a patch
    of one part stays whole.  In a patch of both parts, the tests of the status that
    come before its first change are repeated in the first request.
    """
    written = _written(steps)
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


def _written(steps: Steps) -> set[bool]:
    """Which parts a JSON patch changes: True for the status, False for the rest."""
    pointers = [step["path"] for step in steps if step["op"] != "test"]
    pointers += [step.get("from") for step in steps if step["op"] == "move"]
    return {_is_of_status(each) for each in pointers}


def _is_of_status(pointer: Any) -> bool:
    return str(pointer).split("/")[1:2] == ["status"]


def cannot_split(effect: Effect, address: Address) -> str | None:
    """The reason why a JSON patch cannot be split in two requests; None if it can."""
    if not isinstance(effect, Patch) or not _can_split(effect, address):
        return None
    crosses = any(
        _is_of_status(step["from"]) != _is_of_status(step["path"])
        for step in effect.json
        if "from" in step
    )
    if not crosses or len(_written(effect.json)) < 2:
        return None
    return (
        "a JSON patch that changes the status and something else is two requests, and "
        "cannot move or copy from one to the other; give the value itself"
    )
