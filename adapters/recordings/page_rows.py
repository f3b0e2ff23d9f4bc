"""The timeline of a page: rows in groups, with lanes as inline SVG."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from fnop.adapters.common.plain import one_line
from fnop.core.values.errors import number_of
from fnop.interpreters.recording.model.account import Crash, ReferenceLine
from fnop.interpreters.recording.model.refs import Ref
from fnop.interpreters.recording.model.revisions import Revision
from fnop.interpreters.recording.model.times import clock
from fnop.interpreters.recording.questions.lanes import (
    Lane,
    arrow_of,
    calls_of,
    lanes_of,
    operator_of,
)
from fnop.interpreters.recording.questions.timeline import Event

__all__ = ["Group", "Lanes", "Row", "as_html", "escaped", "grouped", "lane_width"]

# From this number on, similar rows are folded.
FOLDED_MIN = 4
# The largest number of rows in a group without a landmark.
GROUP_MAX = 200


def escaped(text: object) -> str:
    """Foreign text as HTML: one line of plain text.

    >>> escaped("<b>")
    '&lt;b&gt;'
    """
    return html.escape(one_line(str(text)))


@dataclass
class Row:
    """One event of the run, or one that only the reference has."""

    event: Event | None
    ghost: ReferenceLine | None = None
    is_equal: bool = False
    anchor: str = ""
    crashes: list[Crash] = field(default_factory=list)
    drawing: str = ""


@dataclass
class Group:
    """Rows that belong together."""

    title: str
    rows: list[Row] = field(default_factory=list)


# ------------------------------------------------------------------------------ groups

_RESTS = {
    "all faults end": "The faults end, and all comes to rest",
    "the operator restarts": "The operator restarts",
}


def grouped(rows: Sequence[Row], *, has_marks: bool) -> Iterator[Group]:
    """The rows by phases of a check, by lives of the operator, or by hundreds."""
    group = Group("The script, with its faults" if has_marks else "The run")
    for row in rows:
        title = _title(row, group, has_marks=has_marks)
        if title:
            if group.rows:
                yield group
            group = Group(title)
        group.rows.append(row)
    if group.rows:
        yield group


def _title(row: Row, group: Group, *, has_marks: bool) -> str:
    event = row.event
    if event is None:
        return ""
    if event.sort == "rest":
        return _RESTS.get(event.text, event.text)
    if event.sort == "start" and not has_marks and group.rows:
        if event.process:
            return f"{event.process} starts"
        return "The operator starts again"
    if len(group.rows) >= GROUP_MAX:
        return f"From #{event.step} on, {clock(event.wall)}"
    return ""


def as_html(group: Group, brief: Callable[[str], str], *, where: bool) -> Iterator[str]:
    """A group as an element; with `where`, each row names its object.

    `brief` shortens the names of objects in a text. If there are several processes,
    each row names its process.
    """
    count = sum(row.event is not None for row in group.rows)
    troubles = sum(row.event is not None and row.event.is_trouble for row in group.rows)
    told = number_of(count, "event")
    bad = f", <span class=bad>{troubles} in trouble</span>" if troubles else ""
    yield f"<details open><summary>{escaped(group.title)} <small>{told}{bad}</small>"
    yield "</summary>"
    for fold, rows in _stretches(group.rows):
        if fold:
            yield f"<details class=eq><summary>{number_of(len(rows), 'event')} {fold}"
            yield f" <small>{_span(rows)}</small></summary>"
        yield from _table_of_rows(rows, brief, where=where)
        yield "</details>" if fold else ""
    yield "</details>"


def _stretches(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """The rows, split around stretches that are folded, with the reasons."""
    plain: list[Row] = []
    for fold, run in groupby(rows, _fold):
        found = [*run]
        if fold and len(found) >= FOLDED_MIN:
            if plain:
                yield "", plain
            plain = []
            yield fold, found
        else:
            plain += found
    if plain:
        yield "", plain


def _fold(row: Row) -> str:
    """The reason to fold many rows like this one; else ""."""
    if row.is_equal:
        return "as in the run without faults"
    is_change = row.event is not None and row.event.sort == "change"
    if is_change and row.event is not None and row.event.by == "cluster":
        return "of the cluster's controllers"
    return ""


def _span(rows: Sequence[Row]) -> str:
    steps = [row.event.step for row in rows if row.event is not None]
    return f"#{steps[0]} to #{steps[-1]}"


def _table_of_rows(
    rows: Sequence[Row], brief: Callable[[str], str], *, where: bool
) -> Iterator[str]:
    yield '<table aria-label="events: a crash here, step, time, lanes, text"><tbody>'
    for row in rows:
        yield _row(row, brief, where=where)
    yield "</tbody></table>"


def _row(row: Row, brief: Callable[[str], str], *, where: bool) -> str:
    cell = f"<td class=g><svg aria-hidden=true>{row.drawing}</svg>"
    if row.event is None:
        text = escaped(brief(row.ghost.text if row.ghost is not None else ""))
        empty = "<td class=k><td class=n><td class=at>"
        words = f"<td class=x>only without faults: {text}"
        return f"<tr class=ghost>{empty}{cell}{words}"
    event = row.event
    classes = f'"{event.sort} bad"' if event.is_trouble else event.sort
    named = where and event.where
    about = f"<span class=o>{escaped(event.where)}</span> " if named else ""
    about = (
        f"<b class=o>{escaped(event.process)}</b> {about}" if event.process else about
    )
    depth = '"x d1"' if event.depth else "x"
    words = escaped(brief(event.told)).replace(" -&gt; ", " → ")
    return (
        f"<tr id={row.anchor} class={classes}><td class=k>{_crash(row.crashes)}"
        f"<td class=n><a href=#{row.anchor}{_own_step(event)}>#{event.step}</a>"
        f"<td class=at>{clock(event.wall)}{cell}"
        f"<td class={depth}>{about}{words}"
    )


def _own_step(event: Event) -> str:
    """The step in the recording of the process, if the page has several."""
    if not event.process:
        return ""
    return f' title="step {event.own_step} of {escaped(event.process)}"'


def _crash(crashes: Sequence[Crash]) -> str:
    if not crashes:
        return ""
    fails = sorted({name for each in crashes for name in each.fails})
    if not fails:
        return "<i title='a crash here does not matter'></i>"
    told = escaped(f"a crash here matters: {', '.join(fails)}")
    return f'<i class=m title="{told}"></i><span class=hid>{told}</span> '


# ------------------------------------------------------------------------------- lanes

PITCH, FIRST, MIDDLE = 18, 9, 12


def lane_width(lanes: Sequence[Lane]) -> int:
    """The width of all lanes in pixels."""
    return PITCH * max(1, len(lanes))


class Lanes:
    """Draw the lanes next to the rows: the objects present, and who acts on whom."""

    def __init__(
        self, events: Sequence[Event], objects: Mapping[Ref, Sequence[Revision]]
    ) -> None:
        self.lanes = lanes_of(events)
        self._places = {lane: FIRST + PITCH * n for n, lane in enumerate(self.lanes)}
        self._refs = {each for each in self.lanes if isinstance(each, Ref)}
        self._versions = {ref: objects.get(ref, ()) for ref in self._refs}
        names = {each.namespace for each in self._refs if each.namespace}
        self._place = _place_in(*names) if len(names) == 1 else None
        self._next = dict.fromkeys(self._refs, 0)
        self._alive: set[Ref] = set()
        # The lanes of the calls that begin with an event, and that end with one.
        self._begun: dict[int, list[str]] = {}
        self._ended: dict[int, list[str]] = {}
        for first, last in calls_of(events):
            if first < last:
                lane = operator_of(events[first])
                self._begun.setdefault(first, []).append(lane)
                self._ended.setdefault(last, []).append(lane)
        self._open = Counter[str]()
        self._works = False
        self._drawings: dict[str, int] = {}

    def brief(self, text: str) -> str:
        """A text without the namespace of objects, if all have the same."""
        return text if self._place is None else self._place.sub(r"\1/", text)

    def head(self) -> str:
        """The names of the lanes, slanted above them; on a phone, a numbered list."""
        names = "".join(
            f'<text transform="translate({x + 4} 0) rotate(-50)">'
            f"<title>{escaped(_label_of(lane))}</title>{escaped(_short_name(lane))}</text>"
            for lane, x in self._places.items()
        )
        longest = max((len(_short_name(each)) for each in self.lanes), default=0)
        height = 24 + 5 * longest
        return (
            f'<svg role=img aria-label="the lanes" style="height:{height}px">'
            f'<g transform="translate(0 {height - 8})">{names}</g></svg>'
            f"{self._legend()}"
        )

    def _legend(self) -> str:
        """The lanes by their numbers, for screens on which no name fits above one."""
        listed = "".join(f"<li>{escaped(_label_of(each))}" for each in self._places)
        numbers = "".join(
            f"<span style=--x:{x}>{number}</span>"
            for number, x in enumerate(self._places.values(), 1)
        )
        return f"<ol class=names>{listed}</ol><div class=numbers>{numbers}</div>"

    def definitions(self) -> str:
        """All drawings that rows refer to."""
        drawn = (f"<g id=d{n}>{each}</g>" for each, n in self._drawings.items())
        return f"<svg class=none><defs>{''.join(drawn)}</defs></svg>"

    def _drawing_reference(self, drawn: str) -> str:
        """A reference to a drawing: many rows share one."""
        number = self._drawings.setdefault(drawn, len(self._drawings))
        return f'<use href="#d{number}"/>'

    def gap(self) -> str:
        """The lanes next to a row that has no event of this run."""
        return self._drawing_reference(self._state(self._alive))

    def draw(self, number: int, event: Event) -> str:
        """The lanes next to the next event."""
        return self._drawing_reference(self._draw_event(number, event))

    def _draw_event(self, number: int, event: Event) -> str:
        before = {*self._alive}
        came, went = self._turn(event)
        self._alive = (self._alive | came) - went
        if event.sort in ("start", "stop"):
            self._works = True
        self._open.update(self._begun.get(number, ()))
        drawn = self._state(before - went)
        self._open.subtract(self._ended.get(number, ()))
        for ref in sorted(came - before):
            drawn += f'<path class=l d="M{self._places[ref]} {MIDDLE}V999"/>'
        for ref in sorted(went & before):
            x = self._places[ref]
            drawn += f'<path class=l d="M{x} 0V{MIDDLE}"/>{_cross(x)}'
        return drawn + self._arrow(event)

    def _turn(self, event: Event) -> tuple[set[Ref], set[Ref]]:
        """The objects that are created, and those that are deleted, with an event."""
        came: set[Ref] = set()
        went: set[Ref] = set()
        for ref, versions in self._versions.items():
            place = self._next[ref]
            while place < len(versions) and versions[place].since <= event.step:
                (went if versions[place].gone else came).add(ref)
                (came if versions[place].gone else went).discard(ref)
                place += 1
            self._next[ref] = place
        made = event.revision if event.request is None else event.request.made
        if made is not None and made.ref in self._refs:
            (went if made.gone else came).add(made.ref)
            (came if made.gone else went).discard(made.ref)
        return came, went

    def _state(self, alive: set[Ref]) -> str:
        lasting = [
            each for each in self.lanes if each in alive or each not in self._refs
        ]
        bar = "".join(
            f"M{x} 0V999" for lane, x in self._places.items() if self._open[str(lane)]
        )
        line = "".join(f"M{self._places[each]} 0V999" for each in lasting)
        drawn = f'<path class=l d="{line}"/>'
        return drawn + (f'<path class=b d="{bar}"/>' if bar else "")

    def _arrow(self, event: Event) -> str:
        if event.sort == "rest":
            return ""
        arrow = arrow_of(event, self._refs)
        source = self._places.get(arrow.source)
        target = self._places.get(arrow.target) if arrow.target else None
        if source is None:
            return ""
        if event.sort == "fault":
            return _cross(source)
        if target is None or target == source:
            bad = " f" if event.is_trouble else ""
            return f'<path class="p{bad}" d="M{source} {MIDDLE}h0"/>'
        kind = "f" if event.is_trouble else _stroke_class(event)
        both = bool(event.answer) and event.sort == "send"
        line = f"M{source} {MIDDLE}H{target}{_arrow_tip(source, target)}"
        line += f"M{source} {MIDDLE}{_arrow_tip(target, source)}" if both else ""
        lost = event.sort == "send" and not event.answer and _is_lost(event)
        return f'<path class={kind} d="{line}"/>' + (_cross(source) if lost else "")


def _place_in(namespace: str) -> re.Pattern[str]:
    """The kind and the namespace of an object, as in its label."""
    return re.compile(rf"(?<![\w/-])([a-z][a-z0-9]*)/{re.escape(namespace)}/(?=[^\s/])")


def _is_lost(event: Event) -> bool:
    return event.request is not None and not event.request.answered


def _stroke_class(event: Event) -> str:
    """The stroke of an arrow, by its actor."""
    if event.sort in ("user", "change"):
        return "u"
    is_write = event.request is not None and event.request.is_write
    return "w" if is_write else "r" if event.request is not None else "s"


def _arrow_tip(source: int, target: int) -> str:
    back = -4 if target > source else 4
    return f"m{back} -3l{-back} 3l{back} 3"


def _cross(x: int) -> str:
    return f'<path class=f d="M{x - 4} {MIDDLE - 4}l8 8m0-8l-8 8"/>'


def _label_of(lane: Lane) -> str:
    return lane.label if isinstance(lane, Ref) else lane


_LENGTH_MAX, _KIND_LENGTH_MAX = 19, 8


def _short_name(lane: Lane) -> str:
    """The shortened name of a lane.

    >>> _short_name(Ref("persistentvolumeclaims", "default", "data"))
    'persist…/data'
    """
    if not isinstance(lane, Ref):
        return lane
    kind = lane.kind.partition(".")[0]
    if len(kind) + len(lane.name) >= _LENGTH_MAX and len(kind) > _KIND_LENGTH_MAX:
        kind = f"{kind[: _KIND_LENGTH_MAX - 1]}…"
    return f"{kind}/{_cut_middle(lane.name, _LENGTH_MAX - len(kind) - 1)}"


def _cut_middle(text: str, length: int) -> str:
    """A text without its middle, if it is too long."""
    if len(text) <= length:
        return text
    tail = length // 2
    return f"{text[: length - tail - 1]}…{text[-tail:]}"
