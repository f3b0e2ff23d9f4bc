"""A recording as one HTML page: its verdict, its timeline, and a cursor.

The page sends no requests: its policy forbids the network, and allows only its own
script. All content of the recording is foreign data, and is shown as text.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain
from string import Template
from typing import Any

import fnop
from fnop.adapters.recordings.page_data import PageData, as_script
from fnop.adapters.recordings.page_rows import (
    Lanes,
    Row,
    as_html,
    escaped,
    grouped,
    lane_width,
)
from fnop.adapters.recordings.recorded import places_in
from fnop.core.values.errors import number_of
from fnop.interpreters.recording.comparison.alignment import aligned
from fnop.interpreters.recording.model.account import Account, Crash, Differing
from fnop.interpreters.recording.model.times import stamp
from fnop.interpreters.recording.questions.headlines import Sort, headlines_of
from fnop.interpreters.recording.questions.links import Behind
from fnop.interpreters.recording.questions.processes import Processes
from fnop.interpreters.recording.questions.timeline import Event, Timeline

__all__ = ["joint_header", "page_of"]

_STORY_MAX, _WORLDS_MAX, _FAILURES_SHOWN, _LINKS_MAX = 14, 40, 2, 6
_BAD_SORTS = frozenset((Sort.FAULT, Sort.FAILURE, Sort.REFUSAL, Sort.GAP))


def page_of(
    header: Mapping[str, Any],
    timeline: Timeline | Processes,
    name: str,
    *,
    cut_off: bool,
) -> str:
    """The page of a recording with this name, whose timeline has ended.

    It may be the timeline of several recordings, under their `joint_header`.
    """
    page = _Page(header, timeline, name, cut_off)
    return page.html()


def joint_header(headers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The facts of several headers that a page shows.

    >>> joint_header([{"handlers": [{"id": "a"}], "traces": True, "dropped": 3},
    ...               {"handlers": [{"id": "a"}], "traces": True, "dropped": 1}])
    {'handlers': [{'id': 'a'}], 'places': {}, 'traces': True, 'dropped': 4}
    """
    found = [*headers]
    handlers: list[Any] = []
    for each in found:
        of_each = each.get("handlers")
        known = of_each if isinstance(of_each, list) else []
        handlers += [one for one in known if one not in handlers]
    places = {name: place for h in found for name, place in places_in(h).items()}
    dropped = [each.get("dropped") for each in found]
    return {
        "handlers": handlers,
        "places": places,
        "traces": all(each.get("traces") is True for each in found),
        "dropped": sum(each for each in dropped if isinstance(each, int)),
    }


@dataclass
class _Page:
    header: Mapping[str, Any]
    timeline: Timeline | Processes
    name: str
    cut_off: bool

    def __post_init__(self) -> None:
        self.account: Account = self.timeline.account
        found = self.timeline
        self.processes = [*found.processes] if isinstance(found, Processes) else []
        self.events = [*self.timeline.events]
        self.objects = self.timeline.revisions.of_objects()
        self.rows = [*_rows(self.events, self.account)]
        _mark_crashes(self.rows, self.account.crashes)
        checked = self.header.get("check")
        self.check: Mapping[str, Any] = checked if isinstance(checked, dict) else {}

    def html(self) -> str:
        """The whole page."""
        script, style = _part("page.js"), _part("page.css")
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        lanes = Lanes(self.events, self.objects)
        data = self._data(lanes)
        timeline = "".join(self._timeline(lanes))
        return Template(_part("page.html")).substitute(
            script_hash=f"sha256-{digest}",
            release=escaped(fnop.__version__),
            title=escaped(self._title()),
            style=style,
            width=lane_width(lanes.lanes),
            digits=max(4, len(str(self.timeline.steps)) + 1),
            verdict="\n".join(self._verdict()),
            timeline=timeline,
            footer="\n".join(self._footer()),
            data=as_script(data),
            script=script,
        )

    # -------------------------------------------------------------------- the verdict

    def _title(self) -> str:
        if self.check:
            return f"{self.check.get('property')}: {self.check.get('message')}"
        return f"The run in {self.name}"

    def _verdict(self) -> Iterator[str]:
        troubles = sum(each.is_trouble for each in self.events)
        bad = bool(self.check or troubles)
        word = "FAIL" if self.check else number_of(troubles, "trouble")
        kind = "badge bad" if bad else "badge"
        yield f"<span class='{kind}'>{word if bad else 'no trouble'}</span>"
        yield f"<span class=sub>{escaped(self._told_by())}</span>"
        yield f"<h1>{escaped(self._title())}</h1>"
        yield from self._facts()
        yield from self._headlines()
        yield "<div class=facts>"
        yield from self._story()
        yield from self._lives()
        yield from _worlds(self.account)
        yield from self._crashes()
        yield "</div>"

    def _told_by(self) -> str:
        handlers = self.header.get("handlers")
        count = len(handlers) if isinstance(handlers, list) else 0
        parts = [self.name, number_of(self.timeline.steps, "step")]
        parts += [number_of(count, "handler")] if count else []
        if self.events:
            parts.append(stamp(self.events[0].wall))
        return ", ".join(parts)

    def _facts(self) -> Iterator[str]:
        found: dict[str, str] = {}
        if self.check:
            name = str(self.check.get("property"))
            from fnop.interpreters.check.properties import EXPLAINED

            found["property"] = EXPLAINED.get(name, "")
            found["schedule"] = str(self.check.get("words", ""))
        dropped = self.header.get("dropped")
        if isinstance(dropped, int) and dropped:
            steps = number_of(dropped, "step")
            found["not recorded"] = f"the first {steps}, which the ring had dropped"
        if self.cut_off:
            found["cut off"] = "the recording's end was never written"
        if self.header.get("traces") is not True:
            found["not recorded"] = "what handlers were shown: an earlier release"
        if self.timeline.left_out:
            has = f"the page has {len(self.events):,}"
            found["left out"] = f"{self.timeline.left_out}: {has}"
        told = {key: value for key, value in found.items() if value}
        if told:
            pairs = (f"<dt>{k}</dt><dd>{escaped(v)}</dd>" for k, v in told.items())
            yield f"<dl>{''.join(pairs)}</dl>"

    def _headlines(self) -> Iterator[str]:
        """The occurrences of each sort: their number, and links to the first ones."""
        anchors = {id(e.event): e.anchor for e in self.rows if e.event is not None}
        found = headlines_of(self.events)
        if not found:
            return
        yield "<ul class=heads>"
        for sort, events in found:
            bad = " class=bad" if sort in _BAD_SORTS else ""
            count = number_of(len(events), sort.value)
            links = " ".join(
                f'<a href="#{anchors[id(each)]}" title="{escaped(each.told)}">'
                f"#{each.step}</a>"
                for each in events[:_LINKS_MAX]
            )
            more = ", ..." if len(events) > _LINKS_MAX else ""
            yield f"<li><b{bad}>{escaped(count)}</b> {links}{more}</li>"
        yield "</ul>"

    def _story(self) -> Iterator[str]:
        """The landmarks, with links to them."""
        marks = [*_landmarks(self.rows)]
        if len(marks) < 2:
            return
        yield "<section><h2>What happened</h2><ol>"
        for row in marks[:_STORY_MAX]:
            assert row.event is not None
            event = row.event
            bad = " class=bad" if event.is_trouble else ""
            link = f'<a class=n href="#{row.anchor}">#{event.step}</a>'
            lane = f"{event.sort}: " if event.sort in ("user", "fault") else ""
            lane = f"{event.process}: " if event.process else lane
            yield f"<li{bad}>{link}{lane}{escaped(event.told)}</li>"
        more = len(marks) - _STORY_MAX
        if more > 0:
            yield f"<li class=key>and {more} more</li>"
        yield "</ol></section>"

    def _lives(self) -> Iterator[str]:
        """The processes, if there are several: their steps and times."""
        if not self.processes:
            return
        yield "<section><h2>Processes</h2><ol class=lives>"
        for each in self.processes:
            steps = number_of(each.steps, "step")
            times = f"{stamp(each.first)} to {stamp(each.last)}"
            yield f"<li><b>{escaped(each.name)}</b> {escaped(f'{steps}, {times}')}"
        yield "</ol><p class=key>The steps of all processes are numbered together."
        yield "</p></section>"

    def _crashes(self) -> Iterator[str]:
        crashes = self.account.crashes
        if not crashes:
            return
        bad = [each for each in crashes if each.fails]
        yield "<section><h2>Where a crash would matter</h2>"
        yield "<p class=key>In the run without faults, from its beginning to its end: "
        yield f"a crash violates a property at {len(bad)} of {len(crashes)} places."
        if self.account.untried:
            yield f" {number_of(self.account.untried, 'place')} more, not tried."
        yield "</p><div class=strip>"
        yield from map(_tick, crashes)
        yield "</div>"
        if bad:
            yield "<details><summary>These places</summary><ol>"
            for each in bad:
                yield f"<li>{_step(each.step)} {escaped(each.text)}: "
                yield f"<span class=bad>{escaped(', '.join(each.fails))}</span></li>"
            yield "</ol></details>"
        yield "</section>"

    # ------------------------------------------------------------------- the timeline

    def _timeline(self, lanes: Lanes) -> Iterator[str]:
        self._draw(lanes)
        where = len({each.where for each in self.events if each.where}) > 1
        yield lanes.definitions()
        yield f"<div class=lanes>{lanes.head()}{_TOOLS}</div>"
        for group in grouped(self.rows, has_marks=bool(self.account.marks)):
            yield from as_html(group, lanes.brief, where=where)

    def _draw(self, lanes: Lanes) -> None:
        number = 0
        for row in self.rows:
            if row.event is None:
                row.drawing = lanes.gap()
            else:
                row.drawing = lanes.draw(number, row.event)
                number += 1

    def _data(self, lanes: Lanes) -> dict[str, Any]:
        places = places_in(self.header)
        behind = Behind(self.events, self.timeline.revisions, places)
        began = self.events[0].wall if self.events else 0.0
        data = PageData(
            *(self.events, self.objects, behind, began, lanes.brief, self.processes)
        )
        told = [data.of_event(each) for each in self.events]
        return data.whole(told, _first_trouble(self.events))

    def _footer(self) -> Iterator[str]:
        truth = (
            "Truth is what was in the simulated cluster at that step."
            if self.account.changes
            else "Truth is what the recording shows, also later: a version was there "
            "when a later one of its kind was shown."
        )
        yield f"<p>{truth} Secrets are tokens.</p>"
        yield f"<p>Made by <code>fnop replay {escaped(self.name)} --html</code>, "
        yield f"fnop {escaped(fnop.__version__)}.</p>"


def _part(name: str) -> str:
    return (
        files("fnop.adapters.recordings").joinpath(name).read_text("utf-8").rstrip("\n")
    )


_TOOLS = (
    "<div class=tools><input id=filter type=search placeholder='Filter' "
    "aria-label='Filter the events'> <output id=told></output>"
    "<div class=hint><span><kbd>←</kbd> <kbd>→</kbd> event</span> "
    "<span><kbd>p</kbd> <kbd>n</kbd> write to the object</span> "
    "<span><kbd>/</kbd> filter</span></div></div>"
)


# ------------------------------------------------------------------------------- parts


def _rows(events: Sequence[Event], account: Account) -> Iterator[Row]:
    """The events with their anchors, and between them the reference's own events."""
    anchors = _anchors(events)
    if not account.reference:
        yield from (Row(event, anchor=next(anchors)) for event in events)
        return
    places = account.reference
    own, other = (
        _keys_with_phase(each.key for each in found) for found in (events, places)
    )
    for pair in aligned([*own], [*other]):
        if pair.own is None:
            assert pair.other is not None
            yield Row(None, places[pair.other])
        else:
            is_equal = pair.other is not None
            yield Row(events[pair.own], is_equal=is_equal, anchor=next(anchors))


def _keys_with_phase(keys: Iterable[str]) -> Iterator[str]:
    """The keys, each equal only to keys between the same rests of a check."""
    phase = 0
    for key in keys:
        phase += key.startswith("rest/")
        yield f"{phase} {key}"


def _anchors(events: Iterable[Event]) -> Iterator[str]:
    """The step of each event, with a number for further events of one step."""
    counts: dict[int, int] = {}
    for event in events:
        count = counts[event.step] = counts.get(event.step, 0) + 1
        yield str(event.step) if count == 1 else f"{event.step}.{count}"


def _mark_crashes(rows: Iterable[Row], crashes: Iterable[Crash]) -> None:
    """Find the row of each crash: its request's row, or the first one of its step."""
    of_step: dict[int, list[Row]] = {}
    for row in rows:
        if row.event is not None:
            of_step.setdefault(row.event.step, []).append(row)
    for crash in crashes:
        found = of_step.get(crash.step, [])
        asked = [row for row in found if _is_asked(row, crash)]
        for row in (asked or found)[:1]:
            row.crashes.append(crash)


def _is_asked(row: Row, crash: Crash) -> bool:
    request = None if row.event is None else row.event.request
    if request is None or row.event is None or row.event.sort != "send":
        return False
    return (request.verb.lower(), request.handler) == (crash.verb, crash.handler)


def _landmarks(rows: Iterable[Row]) -> Iterator[Row]:
    """The actions of users, faults, starts, repairs, and the first failures."""
    rest, failures = False, Counter[str]()
    for row in rows:
        event = row.event
        if event is None:
            continue
        is_failure = event.is_trouble and event.sort in ("say", "end")
        who = event.attempt.handler if event.attempt is not None else ""
        failures[who] += is_failure
        is_failure = is_failure and failures[who] <= _FAILURES_SHOWN
        is_start = event.sort == "start" and not rest  # a rest reports the others
        rest = event.sort == "rest"
        if is_start or is_failure or event.sort in _HEADLINES:
            yield row


_HEADLINES = frozenset(("user", "fault", "rest", "stop", "repair", "peer"))


def _first_trouble(events: Sequence[Event]) -> int:
    """The event at which the cursor begins."""
    faults = (n for n, each in enumerate(events) if each.sort == "fault")
    troubles = (n for n, each in enumerate(events) if each.is_trouble)
    calls = (n for n, each in enumerate(events) if each.sort == "call")
    return next(chain(faults, troubles, calls), 0 if events else -1)


def _tick(crash: Crash) -> str:
    told = f"{crash.text}: {', '.join(crash.fails) or 'it does not matter'}"
    kind = " class=m" if crash.fails else ""
    inside = f'title="{escaped(told)}"><span class=hid>{escaped(told)}</span>'
    if crash.step:
        return f'<a{kind} href="#{crash.step}" {inside}</a>'
    return f"<span{kind} {inside}</span>"


def _step(step: int) -> str:
    return f'<a href="#{step}">#{step}</a>' if step else ""


def _worlds(account: Account) -> Iterator[str]:
    """The differences of the two worlds."""
    if not account.differences:
        return
    beside = escaped(account.beside)
    yield f"<section><h2>Two worlds: how this run ends, beside {beside}</h2>"
    yield "<table class=worlds><thead><tr><th>object<th>field<th>there<th>here</thead>"
    for each in account.differences[:_WORLDS_MAX]:
        field = f"<code>{escaped(each.field)}</code>" if each.field else ""
        yield f"<tr><td>{escaped(each.object)}<td>{field}"
        yield f"<td>{_value_in_world(each, each.expected)}"
        yield f"<td>{_value_in_world(each, each.found)}"
    yield "</table>"
    more = len(account.differences) - _WORLDS_MAX
    if more > 0:
        yield f"<p class=key>and {number_of(more, 'difference')} more</p>"
    yield "</section>"


_VALUE_LENGTH = 160


def _value_in_world(differing: Differing, value: Any) -> str:
    """A value of one world; for an object that only one has, that it exists."""
    is_whole = not differing.field and None in (differing.expected, differing.found)
    if value is None:
        return "missing" if is_whole else "absent"
    if is_whole:
        return "there"
    text = json.dumps(value, ensure_ascii=False)
    short = text if len(text) <= _VALUE_LENGTH else f"{text[:_VALUE_LENGTH]}..."
    return f"<code>{escaped(short)}</code>"
