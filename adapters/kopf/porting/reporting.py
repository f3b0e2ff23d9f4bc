"""The report about porting as lines, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fnop.adapters.kopf.porting.findings import (
    Finding,
    NameUse,
    Ported,
    Porting,
    Verdict,
)
from fnop.core.values.errors import number_of

__all__ = ["as_json", "as_lines"]

_TITLES: Mapping[str, str] = {
    "missing": "Names that fnop does not have:",
    "other": "Names with another meaning in fnop:",
    "private": "Private modules of Kopf:",
}
_WORDS: Mapping[Verdict, str] = {
    Verdict.PURE: "pure",
    Verdict.CHANGES: "changes",
    Verdict.IMPURE: "impure",
}
_LOADS = "Modules that only a run finds; name their files, too, if they have handlers:"
_CHOICES = "Decorators that only a run chooses; this report lacks their handlers:"
_INDENT = "  "
_PLACES_MOST = 8
# The functions between a handler and a line; of more, only the ends are shown.
_NAMES_MOST = 3


def as_lines(found: Porting) -> Iterator[str]:
    """The report in lines: each handler with its findings, the names, and a summary."""
    for handler in found.handlers:
        yield _title(handler)
        for each in handler.findings:
            yield _INDENT + _line(each)
    for sort, title in _TITLES.items():
        names = [each for each in found.names if each.sort == sort]
        if names:
            yield ""
            yield title
            yield from (_INDENT + _name(each) for each in names)
    for title, places in ((_LOADS, found.loads), (_CHOICES, found.choices)):
        if places:
            yield ""
            yield title
            yield from (f"{_INDENT}{each.place}: {each.code}" for each in places)
    yield ""
    yield _summary(found)


def _title(handler: Ported) -> str:
    decorators = ", ".join(handler.decorators)
    return f"{handler.place}: {handler.name} ({decorators}): {handler.label}"


def _line(finding: Finding) -> str:
    names = finding.via
    if len(names) > _NAMES_MOST:
        names = (names[0], "...", names[-1])
    via = f" (in {' > '.join(names)})" if names else ""
    return f"{finding.place}: {finding.code}{via}: {finding.advice}"


def _name(use: NameUse) -> str:
    shown = [str(each) for each in use.places[:_PLACES_MOST]]
    more = len(use.places) - len(shown)
    places = ", ".join(shown) + (f", and {more} more" if more else "")
    return f"kopf.{use.name} ({places}): {use.advice}"


def _summary(found: Porting) -> str:
    counts = [found.count(each) for each in Verdict]
    pure, changes, impure = counts
    return (
        f"{number_of(len(found.handlers), 'handler')}: {pure} pure already, "
        f"{changes} pure after changes, {impure} impure"
    )


def as_json(found: Porting) -> dict[str, Any]:
    """The report as JSON; verdicts are `pure`, `changes` and `impure`."""
    return {
        "handlers": [_handler_as_json(each) for each in found.handlers],
        "names": [
            {
                "name": f"kopf.{each.name}",
                "sort": each.sort,
                "advice": each.advice,
                "places": [str(place) for place in each.places],
            }
            for each in found.names
        ],
        "loads": [
            {"place": str(each.place), "code": each.code} for each in found.loads
        ],
        "choices": [
            {"place": str(each.place), "code": each.code} for each in found.choices
        ],
        "counts": {word: found.count(verdict) for verdict, word in _WORDS.items()},
    }


def _handler_as_json(handler: Ported) -> dict[str, Any]:
    return {
        "name": handler.name,
        "decorators": [*handler.decorators],
        "file": handler.place.file,
        "line": handler.place.line,
        "verdict": _WORDS[handler.verdict],
        "label": handler.label,
        "findings": [
            {
                "file": each.place.file,
                "line": each.place.line,
                "code": each.code,
                "verdict": _WORDS[each.verdict],
                "advice": each.advice,
                "via": [*each.via],
            }
            for each in handler.findings
        ],
    }
