"""Pages of recordings, and what a browser would make of their text."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from fnop.adapters.recordings.html_report import page_of
from fnop.interpreters.recording.format.reader import read_header, read_records
from fnop.interpreters.recording.model.account import account_from_json
from fnop.interpreters.recording.questions.timeline import Timeline

__all__ = [
    "HOSTILE",
    "STRUCTURE",
    "Seen",
    "page_text",
    "read_recording",
    "seen_in",
    "spoilt",
    "timeline_of",
]

Json = dict[str, Any]


def read_recording(path: Path) -> tuple[Json, list[Json]]:
    """The header of a recording, and its records."""
    with path.open("rb") as file:
        records = read_records(file)
        header = read_header(records)
        return header, [each for each in records if each is not None]


def timeline_of(header: Json, records: list[Json]) -> Timeline:
    """The timeline of a whole recording."""
    told = (header.get("check") or {}).get("account")
    timeline = Timeline(account_from_json(told))
    for each in records:
        timeline.add(each)
    timeline.end()
    return timeline


def page_text(header: Json, records: list[Json]) -> str:
    """The page of a recording."""
    timeline = timeline_of(header, records)
    return page_of(header, timeline, "run.fnop", cut_off=False)


@dataclass
class Seen(HTMLParser):
    """The elements of a page with their attributes, its script, its style, its data."""

    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    _inside: str = ""

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.elements.append((tag, found))
        self._inside = ""
        if tag in ("script", "style"):
            self._inside = found.get("type") or tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.texts[self._inside] = self.texts.get(self._inside, "") + data
        else:
            self.words.append(data)

    @property
    def rows(self) -> list[str]:
        """The anchors of the events, in their order."""
        return [
            str(found["id"])
            for tag, found in self.elements
            if tag == "tr" and "id" in found
        ]

    @property
    def data(self) -> Json:
        """The data for the script."""
        found: Json = json.loads(self.texts["application/json"])
        return found


def seen_in(page: str) -> Seen:
    """The page as a browser reads it."""
    found = Seen()
    found.feed(page)
    found.close()
    return found


HOSTILE = "</script><img src=x onerror=alert(1)>\"'&<!--\u202e"
# The texts that identify a record; all other texts are foreign.
STRUCTURE = frozenset(("in", "do", "is", "level", "lane", "sort", "type", "fnop"))


def spoilt(value: Any) -> Any:
    """The value with the hostile text in each of its texts, and in its keys' values."""
    if isinstance(value, dict):
        return {
            key: each if key in STRUCTURE else spoilt(each)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [spoilt(each) for each in value]
    return value + HOSTILE if isinstance(value, str) else value
