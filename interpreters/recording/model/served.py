"""The kinds that the API server has served, by the discovery in a recording."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from immutables import Map

from fnop.core.api import discovery as discovering
from fnop.core.api.catalogue import Catalogue
from fnop.effects.structs import replace
from fnop.effects.wire import from_wire
from fnop.interpreters.recording.model.records import Answered

__all__ = ["Served"]

Json = Mapping[str, Any]


class Served:
    """The fold of discovery requests and their answers."""

    def __init__(self) -> None:
        self._discovery = discovering.begun({})
        self._pages: dict[str, discovering.Document] = {}
        self._known: dict[str, tuple[discovering.Document, Json]] = {}

    @property
    def catalogue(self) -> Catalogue:
        """The kinds, as far as they are recorded."""
        return self._discovery.catalogue

    def answer(self, path: str, answer: Answered) -> None:
        """Take note of the answer to the request for a path."""
        if not discovering.lists_kinds(path):
            return
        number, page = answer.id, self._pages.get(path, discovering.Document(path))
        # An operator asks every few minutes, and nearly always gets the same answer.
        heard = page, answer.outcome
        if self._known.get(path) == heard:
            return
        self._known[path] = heard
        asked = replace(self._discovery, pending=Map({number: page}))
        outcome = from_wire(answer.outcome)
        self._discovery, more = discovering.answered(asked, number, outcome)
        self._pages.update({each.path: each for each in more})
