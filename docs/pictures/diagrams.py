"""Diagrams of the documentation, as SVG: `make pictures`.

A diagram is data: sequences of messages between lanes, or boxes and arrows. Names of
code are taken from the code, and the schedule of faults from a run of `fnop check`.

The files are 400 pixels wide, so their text is readable on a phone. They are light or
dark as the reader's system is; the site inlines them and sets their colours by its own
theme (`docs/conf.py`, `docs/_static/site.css`).
"""

from __future__ import annotations

import html
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from fnop.adapters.recordings.recorded import account_in, opened_recording
from fnop.core.handlers.declare.roles import Role
from fnop.core.objects.attempt.attempts import answer_effect
from fnop.core.objects.decide.next_action import next_action
from fnop.core.objects.store.store import observe
from fnop.core.operator.step import step
from fnop.core.seam.commands import Perform
from fnop.core.seam.inputs import Answered, WatchEvent
from fnop.interpreters.recording.format.reader import UNLIMITED
from fnop.interpreters.recording.questions.timeline import Event, Timeline

__all__ = ["DIAGRAMS", "Drawing", "Words", "a_crash_between_two_requests"]

HERE = Path(__file__).parent
PICTURES = HERE.parent / "_static" / "pictures"
WIDTH = 400
# Estimated widths of a character, in pixels: of text, of bold text, and of code.
_TEXT, _BOLD, _CODE = 6.7, 7.3, 7.3

_STYLE = """
.diagram { --ink: #1f2328; --mute: #59636e; --line: #8c959f; --fill: #f6f8fa;
  --back: #fff; --blue: #1f5fae; --red: #b91c26; }
@media (prefers-color-scheme: dark) { .diagram { --ink: #cfd0d0; --mute: #9ca0a5;
  --line: #6e7681; --fill: #1a1c1e; --back: #131416; --blue: #8ab8f5;
  --red: #ff8a82; } }
.diagram text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif;
  fill: var(--ink); }
.diagram .b { font-weight: 600; }
.diagram .c { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.diagram .m { fill: var(--mute); }
.diagram .bad { fill: var(--red); }
.diagram .on { stroke: var(--back); stroke-width: 5px; paint-order: stroke;
  stroke-linejoin: round; }
.diagram rect { fill: var(--fill); stroke: var(--line); }
.diagram rect.core { stroke: var(--blue); stroke-width: 2; }
.diagram rect.bar { fill: var(--blue); stroke: none; }
.diagram path { fill: none; stroke: var(--line); }
.diagram path.a { stroke: var(--blue); stroke-width: 1.5; }
.diagram path.x { stroke: var(--red); stroke-width: 2; }
.diagram path.lane { stroke-dasharray: 2 4; }
"""


class Words(NamedTuple):
    """A line of text; its style is "", "b" (bold), "c" (code), "m" (muted) or "bad"."""

    text: str
    style: str = ""

    @property
    def width(self) -> float:
        """An estimate of the width in pixels."""
        return len(self.text) * {"b": _BOLD, "c": _CODE}.get(self.style, _TEXT)


@dataclass
class Drawing:
    """The elements of a diagram, and the sentences that describe it."""

    name: str
    title: str
    sentences: list[str] = field(default_factory=list)
    height: float = 0
    _under: list[str] = field(default_factory=list)
    _elements: list[str] = field(default_factory=list)

    def text(
        self,
        x: float,
        y: float,
        words: Words,
        *,
        anchor: str = "middle",
        style: str = "",
    ) -> None:
        """A line of text, which stays within the diagram."""
        width = words.width
        left = {"start": x, "middle": x - width / 2, "end": x - width}[anchor]
        x += max(0.0, 2 - left) - max(0.0, left + width - (WIDTH - 2))
        kinds = " ".join(filter(None, (words.style, style)))
        of_kind = f' class="{kinds}"' if kinds else ""
        self._elements.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{of_kind}>'
            f"{html.escape(words.text)}</text>"
        )

    def box(
        self,
        left: float,
        top: float,
        width: float,
        lines: Sequence[Words],
        kind: str = "",
    ) -> float:
        """A box with lines of text; return its lower edge.

        Raises `ValueError` if a line is too long.
        """
        for each in lines:
            if each.width > width - 6:
                raise ValueError(f"{self.name}: too long for its box: {each.text!r}")
        height = 12 + 18 * len(lines)
        of_kind = f' class="{kind}"' if kind else ""
        self._elements.append(
            f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" '
            f'rx="5"{of_kind}/>'
        )
        for number, each in enumerate(lines):
            self.text(left + width / 2, top + 19 + 18 * number, each)
        self.height = max(self.height, top + height + 4)
        return top + height

    def bar(self, x: float, top: float, bottom: float) -> None:
        """A bar on a lane, under the texts: a handler is under way."""
        self.block(x - 3, top, 6, bottom - top)

    def block(self, left: float, top: float, width: float, height: float) -> None:
        """A filled rectangle under the texts."""
        self._under.append(
            f'<rect class="bar" x="{left:g}" y="{top:g}" width="{width:g}" '
            f'height="{height:g}"/>'
        )

    def lane(self, x: float, bottom: float) -> None:
        """The line of a lane, under everything else."""
        self._under.append(f'<path class="lane" d="M{x:g} 38V{bottom:g}"/>')

    def line(self, path: str, kind: str = "") -> None:
        """A line without a tip."""
        of_kind = f' class="{kind}"' if kind else ""
        self._elements.append(f'<path d="{path}"{of_kind}/>')

    def arrow(self, *points: tuple[float, float], kind: str = "a") -> None:
        """An arrow along some points, whose last part is horizontal or vertical."""
        (x1, y1), (x2, y2) = points[-2:]
        dx, dy = _sign(x2 - x1), _sign(y2 - y1)
        # the two ends of the tip: 7 back, 4 to each side
        tips = [
            (x2 - 7 * dx + 4 * dy * side, y2 - 7 * dy + 4 * dx * side)
            for side in (-1, 1)
        ]
        line = "L".join(f"{x:g} {y:g}" for x, y in points)
        (ax, ay), (bx, by) = tips
        self.line(f"M{line}M{ax:g} {ay:g}L{x2:g} {y2:g}L{bx:g} {by:g}", kind)

    def cross(self, x: float, y: float) -> None:
        """A red cross."""
        self.line(f"M{x - 6:g} {y - 6:g}l12 12m0 -12l-12 12", "x")

    def svg(self) -> str:
        """The file."""
        names = f"diagram-{self.name}-title diagram-{self.name}-desc"
        body = "\n".join((*self._under, *self._elements))
        told = html.escape(" ".join(self.sentences))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="diagram" role="img" '
            f'aria-labelledby="{names}" viewBox="0 0 {WIDTH} {self.height:g}" '
            f'width="{WIDTH}" height="{self.height:g}">\n'
            f'<title id="diagram-{self.name}-title">{html.escape(self.title)}</title>\n'
            f'<desc id="diagram-{self.name}-desc">{told}</desc>\n'
            f"<style>{_STYLE}</style>\n{body}\n</svg>\n"
        )


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)


# ---------------------------------------------------------------------------- sequences


class Message(NamedTuple):
    """A row of a sequence: an arrow between two lanes, or a moment on one.

    A message that is `lost` ends in a cross. `call` is 1 where a call of a handler
    begins, and -1 where it ends.
    """

    source: str
    target: str
    text: str
    style: str = ""
    lost: bool = False
    call: int = 0


_ROW, _HEAD = 42, 48


def sequence(
    name: str, title: str, lanes: Sequence[str], messages: Sequence[Message]
) -> Drawing:
    """A sequence chart with one row for each message."""
    found = Drawing(name, title)
    pitch = WIDTH / len(lanes)
    places = {lane: pitch * (number + 0.5) for number, lane in enumerate(lanes)}
    bottom = _HEAD + _ROW * len(messages) + 4
    for lane, x in places.items():
        found.lane(x, bottom)
        found.box(x - pitch / 2 + 4, 4, pitch - 8, [Words(lane, "b")])
    begun: dict[str, float] = {}
    for number, each in enumerate(messages):
        y = _HEAD + _ROW * (number + 1) - 8
        _draw_message(found, each, places, y)
        if each.call > 0:
            begun[each.source] = y
        elif each.source in begun and (each.call < 0 or each.lost):
            found.bar(places[each.source], begun.pop(each.source), y)
        found.sentences.append(_sentence(number, each))
    found.height = bottom + 4
    return found


def _draw_message(
    found: Drawing, each: Message, places: dict[str, float], y: float
) -> None:
    source, target = places[each.source], places[each.target]
    words = Words(each.text, each.style)
    if source == target:
        found.text(source - 8, y + 4, words, anchor="end", style="on")
        if each.lost:
            found.cross(source, y)
        return
    found.text((source + target) / 2, y - 8, words, style="on")
    found.arrow((source, y), (target, y))


def _sentence(number: int, each: Message) -> str:
    where = each.source
    if each.target != each.source:
        where = f"{each.source} to {each.target}"
    return f"{number + 1}. {where}: {each.text}."


SERVER, RUNTIME, CORE = "API server", "runtime", "core"


def _code(function: Any) -> str:
    return str(function.__name__)


def an_event_becomes_an_effect() -> Drawing:
    """The path from a watch event to a request, and back to the answer."""
    return sequence(
        "event-to-effect",
        "A watch event becomes an effect",
        (SERVER, RUNTIME, CORE),
        (
            Message(SERVER, RUNTIME, "a line of the watch"),
            Message(RUNTIME, CORE, _code(WatchEvent), "c"),
            Message(CORE, CORE, f"{_code(step)}: state, input", "c", call=1),
            Message(CORE, CORE, f"{_code(observe)}, {_code(next_action)}", "c"),
            Message(CORE, CORE, "your handler", "b"),
            Message(CORE, CORE, "next state, commands", call=-1),
            Message(CORE, RUNTIME, _code(Perform), "c"),
            Message(RUNTIME, SERVER, "a request: PATCH"),
            Message(SERVER, RUNTIME, "its response: 200"),
            Message(RUNTIME, CORE, _code(Answered), "c"),
            Message(CORE, CORE, f"{_code(step)}: state, input", "c", call=1),
            Message(CORE, CORE, _code(answer_effect), "c"),
            Message(CORE, CORE, "your handler goes on", "b", call=-1),
        ),
    )


# -------------------------------------------------------------- the schedule of a fault

USER, OPERATOR, BANK = "user", "operator", "bank"
_SHORT = {"orders/default/order-1": "order-1", "orders.shop.example/order-1": "order-1"}


def timeline_of_a_failure() -> tuple[dict[str, Any], Timeline]:
    """The failure that `fnop check` finds first in the pictures' operator."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "orders")
        shutil.copytree(HERE / "orders", place)
        few = {"FNOP_CHECK_BUDGET": "40", "FNOP_CHECK_FAST": "1"}
        subprocess.run(
            [sys.executable, "-m", "fnop", "check", "shop.py", "--calls", "models.py"],
            capture_output=True,
            cwd=place,
            env={**os.environ, **few},
            check=False,
        )
        (file, *_) = sorted((place / "fnop-failures").glob("creates_once-*.fnop"))
        with opened_recording(str(file), UNLIMITED) as recording:
            header = recording.header
            timeline = Timeline(account_in(header))
            recording.into(timeline.add)
            timeline.end()
    return header, timeline


def a_crash_between_two_requests() -> Drawing:
    """The schedule of the failure, from the user's action to the faults' end."""
    header, timeline = timeline_of_a_failure()
    found = sequence(
        "crash",
        f"A schedule of fnop check: {header['check']['words']}",
        (USER, SERVER, OPERATOR, BANK),
        [*_messages(timeline.events, header["check"]["words"])],
    )
    message = header["check"]["message"]
    found.text(WIDTH / 2, found.height + 14, Words(message, "bad"))
    found.sentences.append(f"{message}.")
    found.height += 24
    return found


def _messages(events: Iterable[Event], schedule: str) -> Iterator[Message]:
    for each in events:
        text = each.text
        for long, short in _SHORT.items():
            text = text.replace(long, short)
        match each.sort:
            case "rest":
                return
            case "user":
                yield Message(USER, SERVER, text)
            case "start":
                yield Message(OPERATOR, OPERATOR, text.partition(":")[0], "b")
            case "shown" if each.revision is not None and not each.revision.made:
                yield Message(SERVER, OPERATOR, text)
            case "call":
                yield Message(
                    OPERATOR, OPERATOR, text.partition(" is ")[0], "c", call=1
                )
            case "send" if each.request is not None:
                yield from _exchange(each, text, schedule)
            case "fault":
                yield Message(OPERATOR, OPERATOR, "crash", "bad", lost=True)
            case "end":
                yield Message(OPERATOR, OPERATOR, f"pay {text}", "m", call=-1)
            case _:
                pass


def _exchange(event: Event, text: str, schedule: str) -> Iterator[Message]:
    """A request, with its answer if it has one.

    If the operator crashes after a request, the request has had its effect.
    """
    request = event.request
    assert request is not None
    other = SERVER if request.object is not None else BANK
    what = text.partition(", for ")[0].partition(" (")[0].lower()
    yield Message(OPERATOR, other, what)
    if other is BANK:
        if request.is_finished or "crash after" in schedule:
            yield Message(BANK, BANK, "a receipt", "b")
        if request.is_finished:
            yield Message(BANK, OPERATOR, "its number")


# ------------------------------------------------------------------- boxes and arrows


def one_core() -> Drawing:
    """The core, and the interpreters that perform its commands."""
    found = Drawing("interpreters", "One pure core, three interpreters")
    found.sentences = [
        "Your handlers run in the core, which takes inputs and returns commands.",
        "The runtime performs the commands on a real cluster, for fnop run.",
        "The simulation performs them on a simulated cluster, on virtual time. "
        "fnop run --simulate, fnop check, fnop plan and tests build on it.",
        "The replay compares them with a recording, for fnop replay.",
    ]
    y = found.box(
        60,
        4,
        280,
        [Words("your handlers", "b"), Words("functions that return effects", "m")],
    )
    found.arrow((200, y), (200, y + 22))
    core = [
        Words("core", "b"),
        Words("step(program, state, now, input)", "c"),
        Words("→ next state, commands", "c"),
    ]
    y = found.box(60, y + 22, 280, core, "core")
    columns = (
        ("runtime", ("real time", "a cluster"), ("fnop run",)),
        (
            "simulation",
            ("virtual time", "simulated cluster"),
            ("run --simulate", "fnop check", "fnop plan", "fnop.testing"),
        ),
        ("replay", ("recorded time", "a recording"), ("fnop replay",)),
    )
    top = y + 56
    rail = y + 38
    found.text(112, y + 20, Words("commands", "m"), anchor="end", style="on")
    found.text(288, y + 20, Words("inputs", "m"), anchor="start", style="on")
    found.line(f"M120 {y:g}V{rail:g}")
    found.arrow((280, rail), (280, y))
    found.line(f"M67 {rail:g}H333")
    for number, (name, world, commands) in enumerate(columns):
        x = 67 + 133 * number
        found.arrow((x, rail), (x, top))
        lower = found.box(
            x - 63, top, 126, [Words(name, "b"), *(Words(each, "m") for each in world)]
        )
        for line, each in enumerate(commands):
            found.text(x, lower + 24 + 19 * line, Words(each, "c"))
    found.height = lower + 24 + 19 * 4
    return found


def the_life_of_an_object() -> Drawing:
    """The handlers that are called in the life of an object."""
    found = Drawing("lifecycle", "The life of an object, and its handlers")
    steps = (
        ("a client creates the object", ""),
        ("fnop adds its finalizer, if needed", ""),
        (f"@fnop.on.{Role.CREATE.value}", "c"),
        ("handled: fnop stores what it has seen", ""),
        ("a client deletes it: deletionTimestamp", ""),
        (f"@fnop.on.{Role.DELETE.value}", "c"),
        ("fnop removes its finalizer", ""),
        ("gone", ""),
    )
    y, tops = 4.0, list[float]()
    for text, style in steps:
        if tops:
            found.arrow((200, y), (200, y + 20))
            y += 20
        tops.append(y)
        kind = "core" if style else ""
        y = found.box(60, y, 280, [Words(text, style)], kind)
        if text.startswith("handled"):
            y = _loops(found, y)
    found.sentences = [f"{n}. {text}." for n, (text, _) in enumerate(steps, 1)]
    found.sentences += [
        "While the object is handled, each change calls the update and field handlers.",
        "After a restart of the operator, the resume handlers are called.",
    ]
    return found


def _loops(found: Drawing, y: float) -> float:
    """The two loops at an object that is handled; return their lower edge."""
    loops = (
        (4, "a client changes it", (Role.UPDATE, Role.FIELD)),
        (204, "the operator restarts", (Role.RESUME,)),
    )
    top = y + 30
    for left, why, roles in loops:
        lines = [Words(f"@fnop.on.{each.value}", "c") for each in roles]
        lines += [Words("")] * (2 - len(lines))
        x = left + 96
        found.arrow((x - 12, y), (x - 12, top))
        lower = found.box(left, top, 192, [Words(why), *lines], "core")
        found.arrow((x + 12, top), (x + 12, y))
    found.line(f"M200 {y:g}V{lower:g}")
    return lower


DIAGRAMS = (
    an_event_becomes_an_effect,
    one_core,
    the_life_of_an_object,
    a_crash_between_two_requests,
)


def main() -> None:
    """Draw all diagrams."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for each in DIAGRAMS:
        drawing = each()
        (PICTURES / f"{drawing.name}.svg").write_text(drawing.svg())


if __name__ == "__main__":
    main()
