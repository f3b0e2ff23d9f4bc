"""Observations of a rehearsal: writes, failures, and everything that stayed unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import INDICES
from fnop.core.seam.commands import Perform, Say
from fnop.effects import Call
from fnop.effects.structs import replace
from fnop.effects.values import thaw_json
from fnop.interpreters.plan.facts import (
    Failure,
    Place,
    Source,
    Unmade,
    Unread,
    Write,
    place_of,
    sources_of,
)
from fnop.interpreters.plan.source import Need
from fnop.interpreters.runtime.answers import message_of
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse

__all__ = ["Observations", "place_in", "words_for_startup"]

# The levels of log lines that a plan shows.
_SHOWN_LEVELS = ("warning", "error")


@dataclass
class Observations:
    """Everything that an operator with these handlers does in its rounds."""

    handlers: Sequence[Handler]
    round: int = 0
    writes: list[Write] = field(default_factory=list)
    unmade: list[Unmade] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    warnings: dict[str, None] = field(default_factory=dict)
    _equal: Counter[tuple[Any, ...]] = field(default_factory=Counter)

    def note_call(self, command: Perform, call: Call) -> None:
        """Note a function that runs outside, and is not called."""
        self.unmade.append(
            Unmade(
                self.round,
                call.function,
                call.as_handler,
                command.handler or "",
                self._sources_of(command.handler),
                _place_of_subject(command),
            )
        )

    def note_unreadable(
        self, need: Need, refusal: ApiResponse, command: Perform | None = None
    ) -> None:
        """Note an object, or a collection, that the user may not read.

        Handlers ask for it by the `command`; without one, the operator lists it.
        """
        place = place_in(need.resource, need.namespace or "", need.name or "*")
        handlers = None if command is None else command.handler
        about = None if command is None else _place_of_subject(command)
        why, sources = message_of(refusal), self._sources_of(handlers)
        found = Unread(self.round, place, why, sources, about)
        if found not in self.unread:
            self.unread.append(found)

    def note_write(
        self,
        command: Perform,
        request: ApiRequest,
        response: ApiResponse,
        place: Place,
        before: dict[str, Any] | None,
        after: dict[str, Any] | None,
    ) -> None:
        """Note a request that writes, with the object's states around it."""
        write = Write(
            self.round,
            place,
            command.handler or "",
            _place_of_subject(command),
            request.method,
            request.path,
            request.query,
            thaw_json(request.body),
            request.content_type,
            before,
            after,
            response.status,
            message_of(response) if response.status >= 300 else "",
        )
        sequence = self._equal[write.identity]
        self._equal[write.identity] += 1
        self.writes.append(replace(write, sequence=sequence))

    def note_log_line(self, say: Say) -> None:
        """Note a failure, or a warning of the operator."""
        about = None if say.subject is None else place_of(say.subject)
        if say.handler is not None and say.ended is not None:
            if say.error and say.ended.result == "error":
                self._note_failure(say, say.error, about, retried=say.ended.retried)
        elif say.error and self._is_index(say.handler):  # they have no attempts
            self._note_failure(say, say.error, about, retried=False)
        elif (say.handler is None or about is None) and say.level in _SHOWN_LEVELS:
            self.warnings[say.message] = None

    def _note_failure(
        self, say: Say, error: str, about: Place | None, *, retried: bool
    ) -> None:
        sources = self._sources_of(say.handler)
        self.failures.append(Failure(self.round, error, retried, sources, about))

    def _is_index(self, handler: str | None) -> bool:
        return any(e.id == handler and e.role in INDICES for e in self.handlers)

    def _sources_of(self, names: str | None) -> tuple[Source, ...]:
        return sources_of(self.handlers, names or "")


def words_for_startup(failure: Failure) -> str:
    """The sentence about a startup handler that fails.

    >>> failure = Failure(1, "ValueError: no", False, (Source("go", "", 0),), None)
    >>> words_for_startup(failure)
    'startup handler go fails for good: ValueError: no'
    """
    names = ", ".join(each.handler for each in failure.sources)
    how = "fails each time" if failure.retried else "fails for good"
    return f"startup handler {names} {how}: {failure.message}"


def place_in(resource: Resource, namespace: str, name: str) -> Place:
    """The place of an object of a kind."""
    return Place(resource.api_version, resource.kind, resource.label, namespace, name)


def _place_of_subject(command: Perform) -> Place | None:
    return None if command.subject is None else place_of(command.subject)
