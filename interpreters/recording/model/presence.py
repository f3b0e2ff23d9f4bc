"""The objects that exist, and those that are gone: by watch events, and by listings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec import Struct

from fnop.interpreters.recording.model import records
from fnop.interpreters.recording.model.history import History, Question, Step

__all__ = ["Departure", "Presence"]

# The scope of lists and watches: the kind, the namespace, and the selectors.
Scope = tuple[str, str, str]


class Departure(Struct, frozen=True):
    """An object that is gone, by its uid, and how that was seen.

    `listed` means that a listing lacks it: it was deleted, or is no longer selected.
    """

    uid: str
    listed: bool = False


@dataclass
class Presence(Question):
    """The objects that exist, as far as listings and watches show them."""

    history: History = field(default_factory=History)
    # The streams that have begun since steps were missing.
    _scopes: dict[int, Scope] = field(default_factory=dict)
    _present: dict[Scope, set[str]] = field(default_factory=dict)
    # The current listings whose beginning is known.
    _listed: dict[Scope, set[str]] = field(default_factory=dict)

    def miss(self, gap: records.Gap) -> None:
        """Take note of missing steps: no listing and no stream is known completely."""
        self._scopes.clear()
        self._listed.clear()

    def see(self, step: Step) -> list[Departure]:
        """Take one step in; return the objects that are gone with it."""
        if step.is_start:
            self._scopes.clear()
        found = [*self._note_departures(step)]
        for command in step.commands:
            if isinstance(command, records.ListPage | records.Watch):
                scope = (
                    command.resource,
                    command.namespace,
                    str(command.selectors or ""),
                )
                self._scopes[command.stream] = scope
                if command.begins_list:
                    self._listed[scope] = set()
        return found

    def _note_departures(self, step: Step) -> Iterator[Departure]:
        scope = self._scopes.get(getattr(step.input, "stream", -1))
        uids = [each.uid for each in step.shown]
        match step.input:
            case records.WatchEvent(type="DELETED"):
                for uid in uids:
                    self._present_in(scope).discard(uid)
                    if scope is not None and scope in self._listed:
                        self._listed[scope].discard(uid)  # the list is still streamed
                    yield Departure(uid)
            case records.WatchEvent():
                self._present_in(scope).update(uids)
            case records.ListItem() if scope is not None and scope in self._listed:
                self._listed[scope].update(uids)
            case records.ListDone(continue_token=token) if scope in self._listed:
                if not token:
                    found = self._listed.pop(scope)
                    gone = self._present_in(scope) - found
                    self._present[scope] = found
                    yield from (Departure(uid, listed=True) for uid in sorted(gone))
            case _:
                pass

    def _present_in(self, scope: Scope | None) -> set[str]:
        return set() if scope is None else self._present.setdefault(scope, set())
