"""The kinds that the API server has served, by the discovery in a recording."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from immutables import Map

from fnop.core.api import discovery as discovering
from fnop.core.api.catalogue import Catalogue
from fnop.core.values.evolve import replace
from fnop.effects.wire import from_wire

__all__ = ["Served"]

Json = Mapping[str, Any]


class Served:
    """The fold of discovery requests and their answers."""

    def __init__(self) -> None:
        self._discovery = discovering.begun({})
        self._pages: dict[str, discovering.Document] = {}
        self._fetched: dict[int, str] = {}
        self._known: dict[str, tuple[discovering.Document, Json]] = {}

    @property
    def catalogue(self) -> Catalogue:
        """The kinds, as far as they are recorded."""
        return self._discovery.catalogue

    def add(self, record: Json) -> None:
        """Take one record in."""
        if record["input"]["in"] == "Started":
            self._fetched.clear()  # another process reuses the numbers of requests
        self._answer(record["input"])
        for command in record["commands"]:
            if command["do"] == "Fetch":
                self._fetched[command["id"]] = command["path"]

    def _answer(self, input: Json) -> None:
        if input["in"] != "Answered":
            return
        path = self._fetched.pop(input["id"], None)
        if path is None or not discovering.lists_kinds(path):
            return
        number, page = input["id"], self._pages.get(path, discovering.Document(path))
        # An operator asks every few minutes, and nearly always gets the same answer.
        heard = page, input["outcome"]
        if self._known.get(path) == heard:
            return
        self._known[path] = heard
        asked = replace(self._discovery, pending=Map({number: page}))
        outcome = from_wire(input["outcome"])
        self._discovery, more = discovering.answered(asked, number, outcome)
        self._pages.update({each.path: each for each in more})
