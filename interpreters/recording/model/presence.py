"""The objects that exist, and those that are gone: by watch events, and by listings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fnop.core.values.body import Body
from fnop.interpreters.recording.model.versions import objects_in

__all__ = ["Departure", "Presence"]

Json = Mapping[str, Any]

# The scope of lists and watches: the kind, the namespace, and the selectors.
Scope = tuple[str, str, str]


class Departure(NamedTuple):
    """An object that is gone, by its uid, and how that was seen.

    `listed` means that a listing lacks it: it was deleted, or is no longer selected.
    """

    uid: str
    listed: bool = False


class Presence:
    """The fold: takes records in, returns departures."""

    def __init__(self) -> None:
        self._scopes: dict[int, Scope] = {}
        self._present: dict[Scope, set[str]] = {}
        # The current listings whose beginning is known.
        self._listed: dict[Scope, set[str]] = {}

    def miss(self) -> None:
        """Steps are missing, so no listing and no stream is known completely."""
        self._scopes.clear()
        self._listed.clear()

    def add(self, record: Json) -> list[Departure]:
        """Take one record in; return the objects that are gone with it."""
        input = record["input"]
        if input["in"] == "Started":
            self._scopes.clear()
        found = [*self._note_departures(input)]
        for command in record["commands"]:
            if command["do"] in ("ListPage", "Watch"):
                self._begin(command)
        return found

    def _begin(self, command: Json) -> None:
        selectors = str(command.get("selectors") or "")
        scope = command["resource"], command.get("namespace") or "", selectors
        self._scopes[command["stream"]] = scope
        # A watch without a version begins with a list.
        token = "version" if command["do"] == "Watch" else "continue_token"
        if not command.get(token):
            self._listed[scope] = set()

    def _note_departures(self, input: Json) -> Iterator[Departure]:
        scope = self._scopes.get(input.get("stream", -1))
        match input:
            case {"in": "WatchEvent", "type": "DELETED"}:
                for uid in _uids(input):
                    self._present_in(scope).discard(uid)
                    if scope is not None and scope in self._listed:
                        self._listed[scope].discard(uid)  # the list is still streamed
                    yield Departure(uid)
            case {"in": "WatchEvent"}:
                self._present_in(scope).update(_uids(input))
            case {"in": "ListItem"} if scope is not None and scope in self._listed:
                self._listed[scope].update(_uids(input))
            case {"in": "ListDone"} if scope is not None and scope in self._listed:
                if not input.get("continue_token"):
                    found = self._listed.pop(scope)
                    gone = self._present_in(scope) - found
                    self._present[scope] = found
                    yield from (Departure(uid, listed=True) for uid in sorted(gone))
            case _:
                pass

    def _present_in(self, scope: Scope | None) -> set[str]:
        return set() if scope is None else self._present.setdefault(scope, set())


def _uids(input: Json) -> Iterator[str]:
    return (Body(each).uid for each in objects_in(input))
