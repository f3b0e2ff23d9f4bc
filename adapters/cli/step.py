"""`fnop replay --step`: going through a recording in a terminal, or by a script."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from fnop.adapters.common.endings import EXIT_ERROR, fail, warn
from fnop.adapters.common.plain import echo
from fnop.adapters.recordings.recorded import (
    CUT_OFF,
    Recording,
    Unfolding,
    account_in,
    places_in,
    tell_what_lacks,
    understood,
)
from fnop.adapters.recordings.step_report import (
    around_lines,
    object_lines,
    present_lines,
    step_lines,
    stretch_lines,
    title_of,
    view_lines,
    writer_lines,
)
from fnop.adapters.recordings.story_report import why_lines
from fnop.core.values.errors import number_of
from fnop.core.values.paths import FieldPath, parse_path, path_text
from fnop.effects.structs import replace
from fnop.interpreters.recording.model.contents import NoSuchObject
from fnop.interpreters.recording.model.history import History
from fnop.interpreters.recording.model.predicates import Predicate, parse_predicate
from fnop.interpreters.recording.model.refs import Named, Ref
from fnop.interpreters.recording.model.versions import Packed, Versions
from fnop.interpreters.recording.questions.cursor import Cursor, NoAnswer
from fnop.interpreters.recording.questions.provenance import Provenance
from fnop.interpreters.recording.questions.steps import Reading, Steps

__all__ = ["AHEAD", "Session", "stepped"]

_AROUND = 4
# The least number of steps read beyond the shown one: they contain the answers to its
# requests, and show the objects that already existed.
AHEAD = 2_500
# The number of objects whose answers to why and who are kept.
_PROVENANCES_MAX = 4


class _Command(Struct, frozen=True):
    """A command: its names, with the short one last, its arguments, and its action."""

    names: tuple[str, ...]
    given: str
    help: str


_COMMANDS: Mapping[str, _Command] = {
    each.names[0]: each
    for each in (
        _Command(("next", "n"), "[COUNT]", "the next step"),
        _Command(("back", "b"), "[COUNT]", "the step before"),
        _Command(("call", "c"), "[HANDLER]", "the next call of a handler"),
        _Command(("write", "w"), "[OBJECT]", "the next request that writes"),
        _Command(("change", "ch"), "[OBJECT]", "the next step that finds it changed"),
        _Command(("failed", "f"), "", "the next failure, refusal or fault"),
        _Command(("goto", "g"), "STEP", "that step; also a number, first or last"),
        _Command(("show", "s"), "", "the step once more"),
        _Command(("list", "l"), "[COUNT]", "the steps around it"),
        _Command(("object", "o"), "[OBJECT]", "choose an object; - chooses none"),
        _Command(("get",), "[OBJECT or KIND]", "the object as it is here; a kind's"),
        _Command(("objects",), "", "all objects that are there"),
        _Command(("saw",), "", "what the handler was shown, beside the truth"),
        _Command(("why",), "FIELD", "why a field of the object has its value"),
        _Command(("who",), "FIELD", "all who have written it, up to the end"),
        _Command(("when",), "FIELD OP VALUE", "the first step at which that holds"),
        _Command(("find",), "FIELD OP VALUE", "the next step since which it holds"),
        _Command(
            ("bisect",), "GOOD BAD FIELD OP VALUE", "the step between that broke it"
        ),
        _Command(("help", "h", "?"), "", "this"),
        _Command(("quit", "q", "exit"), "", "the end"),
    )
}
_NAMES = {name: each for each, found in _COMMANDS.items() for name in found.names}
_NOTES = """\
back call, back write, back change and back failed go the other way.
FIELD is as for --why, OP is = != < <= > >= ~ (contains), exists or absent.
The object is the one that was chosen by object, or else the step's.
Enter repeats the last command."""


class Quit(Exception):
    """Raised to end the session."""


class Unclear(Exception):
    """The input is not a command; the text is one sentence."""


_Found = TypeVar("_Found")


class Session:
    """The commands on a cursor; they return lines.

    `read_on` reads up to a step, or to the end, and returns the steps so far. It
    returns None if there is nothing more to read. `provenance` makes the answers to why
    and who about an object, from the records up to a step, or to the end. A step is
    shown with information from `ahead` more steps.
    """

    def __init__(
        self,
        cursor: Cursor,
        read_on: Callable[[int | None], Steps | None],
        provenance: Callable[[Named, int | None], Provenance],
        ahead: int = AHEAD,
    ) -> None:
        self.cursor = cursor
        self._ahead = ahead
        self._read_on = read_on
        self._provenance = provenance

    def begin(self, about: str | None, at: int | None) -> Iterator[str]:
        """Begin at a step, or at the first step of a chosen object.

        Raises `NoAnswer` or `NoSuchObject`.
        """
        if about is not None:
            self.cursor = self.cursor.choosing(self._find_ref(about))
        if at is not None:
            return self._goto(str(at))
        steps, chosen = self.cursor.steps, self.cursor.chosen
        past = steps.pasts.get(chosen) if chosen else None
        first = past.since[0] if past else steps.first
        return self._goto(str(max(steps.first, min(first, steps.last))))

    def do(self, line: str) -> Iterator[str]:
        """The lines of a command.

        Raises `NoAnswer`, `NoSuchObject` or `Unclear` with a sentence, and `Quit`.
        """
        word, _, given = line.strip().partition(" ")
        name, given = _command(word, given.strip())
        run: Callable[[str], Iterator[str]] = getattr(self, f"_{name}")
        return run(given)

    # -------------------------------------------------------------------- reading on

    def _read(self, until: int | None = None) -> bool:
        """Read up to a step, or to the end; whether there was something to read."""
        steps = self._read_on(until)
        if steps is not None:
            here = max(self.cursor.step, steps.first)
            self.cursor = replace(self.cursor, steps=steps, step=here)
        return steps is not None

    def _look_ahead(self, step: int) -> bool:
        """Read the following steps; more than needed now, for the next steps."""
        is_near = self.cursor.steps.last < step + self._ahead
        return is_near and self._read(step + 2 * self._ahead)

    def _search(self, seek: Callable[[], _Found]) -> _Found:
        """The result of a search, which reads on as long as it finds nothing."""
        while True:
            try:
                return seek()
            except (NoAnswer, NoSuchObject):
                if not self._read(2 * self.cursor.steps.last):
                    raise

    # --------------------------------------------------------------------- moving

    def _move_to(self, cursor: Cursor) -> Iterator[str]:
        """Move to another step, and return its lines."""
        self.cursor = cursor
        self._look_ahead(cursor.step)
        while self.cursor.is_unanswered and self._look_ahead(self.cursor.steps.last):
            pass  # an answer may come late
        return step_lines(self.cursor)

    def _next(self, given: str) -> Iterator[str]:
        return self._move_towards(given, back=False)

    def _back(self, given: str) -> Iterator[str]:
        return self._move_towards(given, back=True)

    def _move_towards(self, given: str, *, back: bool) -> Iterator[str]:
        """Move by a number of steps, or to the nearest step of a sort."""
        word, _, rest = given.partition(" ")
        if not word or word.isdecimal():
            count = _count(given, 1)
            if not back:
                self._read(self.cursor.step + count)
            return self._move_to(self.cursor.moved(-count if back else count))
        name = _NAMES.get(word, "")
        if name not in _SEEKS:
            raise Unclear(
                f"next and back take a number, {', '.join(_SEEKS)}; and not {word!r}"
            )
        rest, seek = rest.strip(), _SEEKS[name]
        if back:
            return self._move_to(seek(self, rest, True))
        return self._move_to(self._search(lambda: seek(self, rest, False)))

    def _call(self, given: str) -> Iterator[str]:
        return self._move_towards(f"call {given}", back=False)

    def _write(self, given: str) -> Iterator[str]:
        return self._move_towards(f"write {given}", back=False)

    def _change(self, given: str) -> Iterator[str]:
        return self._move_towards(f"change {given}", back=False)

    def _failed(self, given: str) -> Iterator[str]:
        return self._move_towards("failed", back=False)

    def _to_call(self, given: str, back: bool) -> Cursor:
        return self.cursor.to_call(given, back=back)

    def _to_write(self, given: str, back: bool) -> Cursor:
        ref = self._find_ref(given) if given else self.cursor.chosen
        return self.cursor.to_write(ref, back=back)

    def _to_change(self, given: str, back: bool) -> Cursor:
        ref = self._find_ref(given) if given else self.cursor.object
        return self.cursor.to_change(ref, back=back)

    def _to_trouble(self, given: str, back: bool) -> Cursor:
        return self.cursor.to_trouble(back=back)

    def _goto(self, given: str) -> Iterator[str]:
        step = self._step(given)
        return self._move_to(self._search(lambda: self.cursor.goto(step)))

    def _step(self, given: str) -> int:
        """The step that a user names; the recording is read up to it."""
        match given.removeprefix("#"):
            case "first" | "start":
                return self.cursor.steps.first
            case "last" | "end":
                self._read()
                return self.cursor.steps.last
            case number if number.isdecimal() and len(number) < 20:
                self._read(int(number))
                return int(number)
            case _:
                raise Unclear(f"a step is a number, first or last, not {given!r}")

    # -------------------------------------------------------------------- looking

    def _show(self, given: str) -> Iterator[str]:
        return step_lines(self.cursor)

    def _list(self, given: str) -> Iterator[str]:
        count = _count(given, _AROUND)
        self._look_ahead(self.cursor.step + count)
        return around_lines(self.cursor, count)

    def _object(self, given: str) -> Iterator[str]:
        if given:
            chosen = None if given == "-" else self._find_ref(given)
            self.cursor = self.cursor.choosing(chosen)
        if self.cursor.chosen is None:
            yield "no object is chosen: commands are about that of the step"
        else:
            yield f"commands are about {self.cursor.chosen.label}"

    def _get(self, given: str) -> Iterator[str]:
        words = "/".join(given.split())
        return self._search(lambda: self._lines_of_objects(words))

    def _lines_of_objects(self, words: str) -> Iterator[str]:
        kind = self.cursor.steps.kind_meant(words)
        if kind or words == "all":
            return present_lines(self.cursor, kind)
        ref = self.cursor.steps.meant(words) if words else self.cursor.object
        return object_lines(self.cursor, ref)

    def _objects(self, given: str) -> Iterator[str]:
        return present_lines(self.cursor, "")

    def _saw(self, given: str) -> Iterator[str]:
        return view_lines(self.cursor)

    # ------------------------------------------------------------------ questions

    def _why(self, given: str) -> Iterator[str]:
        path, named = _path(given), self._named_object(self.cursor.object)
        known = self._provenance(named, self.cursor.step + self._ahead)
        found = known.why(path, self.cursor.step)
        if found is None:
            raise NoAnswer(
                f"the operator was shown no {path_text(path)} of {named} up to "
                f"#{self.cursor.step}"
            )
        return why_lines(named, path_text(path), found, self.cursor.steps.places)

    def _who(self, given: str) -> Iterator[str]:
        path, named = _path(given), self._named_object(self.cursor.object)
        found = self._provenance(named, None).changes(path)
        if not found:
            raise NoAnswer(f"{named} never had a field {path_text(path)}")
        return writer_lines(found, self.cursor.steps.places, self.cursor.step)

    def _when(self, given: str) -> Iterator[str]:
        ref, predicate = self.cursor.object, _predicate(given)
        self._read()
        found = self.cursor.stretches(ref, predicate)
        if not found:
            raise NoAnswer(f"{predicate} never holds of {ref.label}")
        yield from stretch_lines(f"{predicate} of {ref.label}", found)
        yield from self._move_to_object(self.cursor.goto(found[0].first), ref)

    def _find(self, given: str) -> Iterator[str]:
        ref, predicate = self.cursor.object, _predicate(given)
        found = self._search(lambda: self.cursor.to_stretch(ref, predicate))
        return self._move_to_object(found, ref)

    def _bisect(self, given: str) -> Iterator[str]:
        good, bad, rest = _bisect_arguments(given)
        ref, predicate = self.cursor.object, _predicate(rest)
        ends = self._step(good), self._step(bad)
        self._look_ahead(max(ends))
        return self._move_to_object(self.cursor.bisected(ref, predicate, *ends), ref)

    def _move_to_object(self, cursor: Cursor, ref: Ref) -> Iterator[str]:
        """Move to a step that was found for an object, which stays the current one."""
        return self._move_to(cursor.choosing(ref))

    def _find_ref(self, words: str) -> Ref:
        name = "/".join(words.split())
        return self._search(lambda: self.cursor.steps.meant(name))

    def _named_object(self, ref: Ref) -> Named:
        named = self.cursor.steps.named.get(ref)
        if named is None:
            raise NoAnswer(f"the recording does not tell of which kind {ref.label} is")
        return named

    # ----------------------------------------------------------------------- rest

    def _help(self, given: str) -> Iterator[str]:
        for each in _COMMANDS.values():
            usage = f"{', '.join(each.names)} {each.given}"
            yield f"{usage:32} {each.help}"
        yield from _NOTES.splitlines()

    def _quit(self, given: str) -> Iterator[str]:
        raise Quit

    def completions(self, text: str) -> list[str]:
        """The commands, and the names of objects, that begin with a text."""
        objects = (each.label for each in self.cursor.steps.pasts)
        return [each for each in (*_COMMANDS, *objects) if each.startswith(text)]


_Seek = Callable[[Session, str, bool], Cursor]
_SEEKS: Mapping[str, _Seek] = {
    "call": Session._to_call,
    "write": Session._to_write,
    "change": Session._to_change,
    "failed": Session._to_trouble,
}


def _command(word: str, given: str) -> tuple[str, str]:
    """The command that a word means: by its name, its letter, or a prefix."""
    number = word.removeprefix("#")
    if number.isdecimal():
        return "goto", number
    name = _NAMES.get(word.lower())
    if name is not None:
        return name, given
    meant = [each for each in _COMMANDS if word and each.startswith(word.lower())]
    if len(meant) == 1:
        return meant[0], given
    known = ", ".join(meant) if meant else "help lists them"
    raise Unclear(f"there is no command {word!r}: {known}")


def _count(given: str, default: int) -> int:
    if not given:
        return default
    if not given.isdecimal() or len(given) > 9 or int(given) < 1:
        raise Unclear(f"a count is a number from 1 on, and not {given!r}")
    return int(given)


def _path(given: str) -> FieldPath:
    try:
        return parse_path(given)
    except ValueError as problem:
        raise Unclear(str(problem)) from problem


def _predicate(given: str) -> Predicate:
    try:
        return parse_predicate(given)
    except ValueError as problem:
        raise Unclear(str(problem)) from problem


def _bisect_arguments(given: str) -> tuple[str, str, str]:
    parts = given.split(maxsplit=2)
    if len(parts) < 3:
        raise Unclear(
            "bisect takes two steps and a predicate, as in bisect 1 last status.phase "
            "= Failed"
        )
    return parts[0], parts[1], parts[2]


# ------------------------------------------------------------------------ the recording


class _Source:
    """The recording of a session, which is read as far as needed."""

    def __init__(self, recording: Recording) -> None:
        self.header = header = recording.header
        self._recording = recording
        self._manager = recording.manager
        told = account_in(header), self._manager, places_in(header)
        self._reading = Unfolding(recording, lambda: Reading(*told))
        self._lined_up = 0, False
        self._provenances: dict[Named, Unfolding[Provenance]] = {}

    @property
    def is_whole(self) -> bool:
        """Whether all of it is read."""
        return self._reading.is_over

    def read_on(self, until: int | None) -> Steps | None:
        """The steps up to one, or to the end; None if there are no new ones."""
        reading = self._reading
        if not reading.is_over:
            # An interrupted reading begins again.
            wanted = None if until is None else max(until, self._lined_up[0])
            try:
                reading.to(wanted)
            finally:
                if reading.is_over:
                    self._end_reading(reading.fold)
        known = reading.steps, reading.is_over
        if known == self._lined_up:
            return None
        with understood():
            steps = reading.fold.steps()
            steps.prepare()
        self._lined_up = known
        gc.freeze()
        return steps

    def _end_reading(self, reading: Reading) -> None:
        """Report, at the end of the recording, its gaps and the skipped parts."""
        with understood():
            reading.end()
        if self._reading.truncated and not self._recording.problem:
            warn(f"the recording {CUT_OFF}")  # damage is reported at the very end
        if reading.left_out:
            events = number_of(reading.left_out, "event")
            warn(f"the first {events} are left out: too many to keep")

    def provenance(self, named: Named, until: int | None) -> Provenance:
        """The answers about an object, with the records up to a step at least."""
        found = self._provenances.pop(named, None)
        if found is None:
            found = Unfolding(self._recording, lambda: self._provenance(named))
        self._provenances[named] = found
        if len(self._provenances) > _PROVENANCES_MAX:
            del self._provenances[next(iter(self._provenances))]
        found.to(until)
        return found.fold

    def _provenance(self, named: Named) -> Provenance:
        history = History(Versions(Packed))
        return Provenance(*named, self._manager, history)


# ----------------------------------------------------------------------------- the loop


def stepped(recording: Recording, about: str | None, at: int | None) -> int:
    """Go through a recording by the commands of a terminal, or of standard input.

    The exit status is 1 if a command of a script has no answer.  Raises
    `fnop.interpreters.recording.format.reader.RecordingProblem`.
    """
    source = _Source(recording)
    steps = source.read_on(2 * AHEAD)
    is_empty = steps is None or not steps.numbers
    if is_empty and recording.problem:
        return EXIT_ERROR
    tell_what_lacks(source.header, truncated=False)
    if steps is None or is_empty:
        fail("the recording has no steps: its run ended before it began")
    cursor = Cursor(steps, steps.first)
    session = Session(cursor, source.read_on, source.provenance, AHEAD)
    try:
        lines = session.begin(about, at)
    except (NoAnswer, NoSuchObject) as problem:
        fail(str(problem))
    name = Path(recording.path).name
    echo(title_of(name, session.cursor.steps, is_whole=source.is_whole))
    _tell(lines)
    if sys.stdin.isatty():
        _read_commands(session)
        return 0
    return EXIT_ERROR if _run_script(session, sys.stdin) else 0


def _read_commands(session: Session) -> None:
    """Read commands from a terminal; Enter repeats the last one."""
    from fnop.interpreters.recording.format.reader import RecordingProblem

    _with_readline(session)
    echo("help lists the commands, quit ends")
    last = "next"
    while True:
        try:
            line = input(f"(#{session.cursor.step}) ").strip()
        except EOFError:
            echo()
            return
        except KeyboardInterrupt:
            echo()
            continue
        last = line or last
        try:
            _answer(session, last)
        except Quit:
            return
        except RecordingProblem as problem:
            warn(str(problem))
        except KeyboardInterrupt:
            echo("fnop: interrupted", err=True)


def _with_readline(session: Session) -> None:
    """Allow line editing and completion of names, if readline is available."""
    try:
        import readline
    except ImportError:  # not in every Python
        return
    readline.set_completer_delims(" ")
    readline.parse_and_bind("tab: complete")

    def complete(text: str, number: int) -> str | None:
        found = session.completions(text)
        return found[number] if number < len(found) else None

    readline.set_completer(complete)


def _run_script(session: Session, lines: Iterable[str]) -> int:
    """Run the commands of a script, one per line; return the number that failed."""
    failures = 0
    for line in lines:
        if not line.strip() or line.lstrip().startswith("# "):
            continue
        try:
            failures += not _answer(session, line)
        except Quit:
            break
    return failures


def _answer(session: Session, line: str) -> bool:
    """Run a command and print its result; return False if it has no answer."""
    try:
        with understood(NoAnswer, NoSuchObject, Quit, Unclear):
            _tell(session.do(line))
    except (NoAnswer, NoSuchObject, Unclear) as problem:
        warn(str(problem))
        return False
    return True


def _tell(lines: Iterable[str]) -> None:
    for each in lines:
        echo(each)
