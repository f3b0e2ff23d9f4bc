"""The containers of a pod, as its status shows them to readers of their logs.

kubelet keeps the log of a container's present instance and of the one before it
(`previous`). An instance is identified by its containerID, or without one by the number
of restarts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from fnop.core.values.body import Body

__all__ = ["Container", "container_ids", "containers_of"]

_STATUSES = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")


class Container(Struct, frozen=True):
    """A started container: its present `instance`, and the previous one, or "".

    With `has_ended` the present instance writes nothing more.
    """

    name: str
    instance: str
    previous: str = ""
    has_ended: bool = False


def containers_of(pod: Body) -> tuple[Container, ...]:
    """The started containers of a pod: also init and ephemeral ones."""
    found = map(_container_of, _container_statuses(pod.stanza("status")))
    return tuple(each for each in found if each is not None)


def container_ids(status: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ids of the containers, also previous ones, in the status of a pod.

    >>> [*container_ids({"containerStatuses": [{"name": "c", "containerID": "x://1"}]})]
    ['x://1']
    """
    for each in _container_statuses(status):
        ended = _state_in(each, "state").get("terminated")
        before = _state_in(each, "lastState").get("terminated")
        for found in (each, ended, before):
            name = found.get("containerID") if isinstance(found, dict) else None
            if isinstance(name, str) and name:
                yield name


def _container_statuses(status: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The statuses of all containers that have one."""
    for name in _STATUSES:
        given = status.get(name)
        for each in given if isinstance(given, list) else ():
            if isinstance(each, dict) and isinstance(each.get("name"), str):
                yield each


def _container_of(status: Mapping[str, Any]) -> Container | None:
    """The container of a status; None if it has not begun yet.

    A container that waits for its restart still shows the log of the instance that has
    ended (kubelet: validateContainerLogStatus).
    """
    name, state = status["name"], _state_in(status, "state")
    before = _state_in(status, "lastState").get("terminated")
    last = before if isinstance(before, dict) else None
    restarts = status.get("restartCount")
    count = restarts if isinstance(restarts, int) else 0
    own = str(status.get("containerID") or count)
    former = "" if last is None else str(last.get("containerID") or count - 1)
    ended = state.get("terminated")
    if isinstance(ended, dict):
        return Container(name, str(ended.get("containerID") or own), former, True)
    if isinstance(state.get("running"), dict):
        return Container(name, own, former)
    if last is not None:
        return Container(name, str(last.get("containerID") or count), "", True)
    return None


def _state_in(status: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = status.get(name)
    return found if isinstance(found, dict) else {}
