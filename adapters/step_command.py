"""`fnop replay --step`: going through a recording in a terminal, or by a script."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import click

from fnop.adapters.plain import echo
from fnop.adapters.programs import EXIT_ERROR, fail
from fnop.adapters.recorded import (
    Read,
    Recording,
    account_in,
    places_in,
    tell_what_lacks,
    understood,
)
from fnop.adapters.step_report import (
    around_lines,
    object_lines,
    present_lines,
    step_lines,
    stretch_lines,
    title_of,
    view_lines,
    writer_lines,
)
from fnop.adapters.story_report import why_lines
from fnop.core.history.attempts import Attempts
from fnop.core.history.contents import Named, NoSuchObject
from fnop.core.history.cursor import Cursor, NoAnswer
from fnop.core.history.predicates import Predicate, parse_predicate
from fnop.core.history.provenance import Provenance
from fnop.core.history.revisions import Ref
from fnop.core.history.steps import Steps
from fnop.core.history.versions import Packed, Versions
from fnop.core.values.errors import number_of
from fnop.core.values.paths import FieldPath, parse_path, path_text

__all__ = ["Session", "stepped"]

_AROUND = 4
# Of so many objects the answers to why and who are kept.
_PROVENANCES_MAX = 4
_PIECE = 500
# A recording of less is read in a second.
_QUICK_BYTES = 200_000


class _Command(NamedTuple):
    """A command: its names, the short one last, what follows, and what it does."""

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
    """The session is to end."""


class Unclear(Exception):
    """No command is written so; the text is one sentence."""


class Session:
    """The commands on a cursor; what they tell comes as lines.

    `provenance` makes the answers to why and who, of an object.
    """

    def __init__(
        self, cursor: Cursor, provenance: Callable[[Named], Provenance]
    ) -> None:
        self.cursor = cursor
        self._provenance = provenance
        self._known: dict[Named, Provenance] = {}

    def do(self, line: str) -> Iterator[str]:
        """The lines of a command.

        Raises `NoAnswer`, `NoSuchObject` or `Unclear` with a sentence, and `Quit`.
        """
        word, _, given = line.strip().partition(" ")
        name, given = _command(word, given.strip())
        run: Callable[[str], Iterator[str]] = getattr(self, f"_{name}")
        return run(given)

    # --------------------------------------------------------------------- moving

    def _moved(self, cursor: Cursor) -> Iterator[str]:
        self.cursor = cursor
        return step_lines(cursor)

    def _next(self, given: str) -> Iterator[str]:
        return self._towards(given, back=False)

    def _back(self, given: str) -> Iterator[str]:
        return self._towards(given, back=True)

    def _towards(self, given: str, *, back: bool) -> Iterator[str]:
        """To a step that is counted, or to one of a sort."""
        word, _, rest = given.partition(" ")
        if not word or word.isdecimal():
            count = _count(given, 1)
            return self._moved(self.cursor.moved(-count if back else count))
        name = _NAMES.get(word, "")
        if name not in _SEEKS:
            raise Unclear(
                f"next and back take a number, {', '.join(_SEEKS)}; and not {word!r}"
            )
        return self._moved(_SEEKS[name](self, rest.strip(), back))

    def _call(self, given: str) -> Iterator[str]:
        return self._moved(self._to_call(given, back=False))

    def _write(self, given: str) -> Iterator[str]:
        return self._moved(self._to_write(given, back=False))

    def _change(self, given: str) -> Iterator[str]:
        return self._moved(self._to_change(given, back=False))

    def _failed(self, given: str) -> Iterator[str]:
        return self._moved(self._to_trouble(given, back=False))

    def _to_call(self, given: str, back: bool) -> Cursor:
        return self.cursor.to_call(given, back=back)

    def _to_write(self, given: str, back: bool) -> Cursor:
        ref = self._meant(given) if given else self.cursor.chosen
        return self.cursor.to_write(ref, back=back)

    def _to_change(self, given: str, back: bool) -> Cursor:
        ref = self._meant(given) if given else self.cursor.object
        return self.cursor.to_change(ref, back=back)

    def _to_trouble(self, given: str, back: bool) -> Cursor:
        return self.cursor.to_trouble(back=back)

    def _goto(self, given: str) -> Iterator[str]:
        return self._moved(self.cursor.goto(self._step(given)))

    def _step(self, given: str) -> int:
        steps = self.cursor.steps
        match given.removeprefix("#"):
            case "first" | "start":
                return steps.first
            case "last" | "end":
                return steps.last
            case number if number.isdecimal() and len(number) < 20:
                return int(number)
            case _:
                raise Unclear(f"a step is a number, first or last, not {given!r}")

    # -------------------------------------------------------------------- looking

    def _show(self, given: str) -> Iterator[str]:
        return step_lines(self.cursor)

    def _list(self, given: str) -> Iterator[str]:
        return around_lines(self.cursor, _count(given, _AROUND))

    def _object(self, given: str) -> Iterator[str]:
        if given:
            chosen = None if given == "-" else self._meant(given)
            self.cursor = self.cursor.choosing(chosen)
        if self.cursor.chosen is None:
            yield "no object is chosen: commands are about that of the step"
        else:
            yield f"commands are about {self.cursor.chosen.label}"

    def _get(self, given: str) -> Iterator[str]:
        words = "/".join(given.split())
        kind = self.cursor.steps.kind_meant(words)
        if kind or words == "all":
            return present_lines(self.cursor, kind)
        ref = self._meant(words) if words else self.cursor.object
        return object_lines(self.cursor, ref)

    def _objects(self, given: str) -> Iterator[str]:
        return present_lines(self.cursor, "")

    def _saw(self, given: str) -> Iterator[str]:
        return view_lines(self.cursor)

    # ------------------------------------------------------------------ questions

    def _why(self, given: str) -> Iterator[str]:
        path, named = _path(given), self._named(self.cursor.object)
        found = self._asked(named).why(path, self.cursor.step)
        if found is None:
            raise NoAnswer(
                f"the operator was shown no {path_text(path)} of {named} up to "
                f"#{self.cursor.step}"
            )
        return why_lines(named, path_text(path), found, self.cursor.steps.places)

    def _who(self, given: str) -> Iterator[str]:
        path, named = _path(given), self._named(self.cursor.object)
        found = self._asked(named).changes(path)
        if not found:
            raise NoAnswer(f"{named} never had a field {path_text(path)}")
        return writer_lines(found, self.cursor.steps.places, self.cursor.step)

    def _when(self, given: str) -> Iterator[str]:
        ref, predicate = self.cursor.object, _predicate(given)
        found = self.cursor.stretches(ref, predicate)
        if not found:
            raise NoAnswer(f"{predicate} never holds of {ref.label}")
        yield from stretch_lines(f"{predicate} of {ref.label}", found)
        yield from self._at(self.cursor.goto(found[0].first), ref)

    def _find(self, given: str) -> Iterator[str]:
        ref, predicate = self.cursor.object, _predicate(given)
        return self._at(self.cursor.to_stretch(ref, predicate), ref)

    def _bisect(self, given: str) -> Iterator[str]:
        good, bad, rest = _three(given)
        ref, predicate = self.cursor.object, _predicate(rest)
        ends = self._step(good), self._step(bad)
        return self._at(self.cursor.bisected(ref, predicate, *ends), ref)

    def _at(self, cursor: Cursor, ref: Ref) -> Iterator[str]:
        """At a step that was found for an object, which stays the one in question."""
        return self._moved(cursor.choosing(ref))

    def _meant(self, words: str) -> Ref:
        return self.cursor.steps.meant("/".join(words.split()))

    def _named(self, ref: Ref) -> Named:
        named = self.cursor.steps.named.get(ref)
        if named is None:
            raise NoAnswer(f"the recording does not tell of which kind {ref.label} is")
        return named

    def _asked(self, named: Named) -> Provenance:
        """The answers of an object; the recording is read for the first one."""
        if named not in self._known:
            if len(self._known) >= _PROVENANCES_MAX:
                del self._known[next(iter(self._known))]
            self._known[named] = self._provenance(named)
        return self._known[named]

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
    """The command that a word means: its name, one of its letters, or a beginning."""
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


def _three(given: str) -> tuple[str, str, str]:
    parts = given.split(maxsplit=2)
    if len(parts) < 3:
        raise Unclear(
            "bisect takes two steps and a predicate, as in bisect 1 last status.phase "
            "= Failed"
        )
    return parts[0], parts[1], parts[2]


# ------------------------------------------------------------------------ the recording


def _into(recording: Recording, add: Callable[[dict[str, Any]], Any]) -> Read:
    """Read all records into a fold, with a bar where that takes long."""
    size = Path(recording.path).stat().st_size
    hidden = size < _QUICK_BYTES or not sys.stderr.isatty()
    numbers = count(1)
    with click.progressbar(
        length=size, label="reading", file=sys.stderr, hidden=hidden
    ) as bar:

        def then(_found: Any) -> None:
            if next(numbers) % _PIECE == 0:
                bar.update(recording.file.tell() - bar.pos)

        return recording.into(add, then=then)


def _steps_of(recording: Recording) -> Steps:
    """The steps of a recording; what it lacks is told. Raises `RecordingProblem`."""
    header = recording.header
    steps = Steps(account_in(header), recording.manager, places_in(header))
    read = _into(recording, steps.add)
    with understood():
        steps.end()
        steps.prepare()
    tell_what_lacks(header, truncated=read.truncated)
    left = steps.timeline.count - len(steps.events)
    if left > 0:
        events = number_of(left, "event")
        echo(f"fnop: the first {events} are left out: too many to keep", err=True)
    return steps


# ----------------------------------------------------------------------------- the loop


def stepped(recording: Recording, about: str | None, at: int | None) -> int:
    """Go through a recording by the commands of a terminal, or of standard input.

    The exit status is 1 where a command of a script has no answer.  Raises
    `fnop.interpreters.recordings.RecordingProblem`.
    """
    gc.set_threshold(50_000, 50, 100)  # there are hardly any cycles
    steps = _steps_of(recording)
    gc.freeze()
    if not steps.numbers:
        fail("the recording has no steps: its run ended before it began")
    try:
        cursor = _begun(steps, about, at)
    except (NoAnswer, NoSuchObject) as problem:
        fail(str(problem))

    def provenance(named: Named) -> Provenance:
        attempts = Attempts(Versions(Packed))
        found = Provenance(*named, steps.manager, attempts)
        _into(recording, found.add)
        return found

    session = Session(cursor, provenance)
    echo(title_of(Path(recording.path).name, steps))
    _tell(step_lines(cursor))
    if sys.stdin.isatty():
        _converse(session)
        return 0
    return EXIT_ERROR if _scripted(session, sys.stdin) else 0


def _begun(steps: Steps, about: str | None, at: int | None) -> Cursor:
    """Where the session begins: at a step, or where the object is there first."""
    cursor = Cursor(steps, steps.first)
    if about is not None:
        cursor = cursor.choosing(steps.meant(about))
    if at is not None:
        return cursor.goto(at)
    past = steps.pasts.get(cursor.chosen) if cursor.chosen else None
    first = past.since[0] if past else steps.first
    return cursor.goto(max(steps.first, min(first, steps.last)))


def _converse(session: Session) -> None:
    """Read commands from a terminal; Enter repeats the last one."""
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
        except KeyboardInterrupt:
            echo("fnop: interrupted", err=True)


def _with_readline(session: Session) -> None:
    """Let a line be edited, and names be completed, where that is to be had."""
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


def _scripted(session: Session, lines: Iterable[str]) -> int:
    """Do the commands of a script, one in a line; how many have no answer."""
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
    """Do a command and tell what comes of it; False where it has no answer."""
    from fnop.interpreters.recordings import RecordingProblem

    try:
        with understood(NoAnswer, NoSuchObject, Quit, Unclear):
            _tell(session.do(line))
    except (NoAnswer, NoSuchObject, RecordingProblem, Unclear) as problem:
        echo(f"fnop: {problem}", err=True)
        return False
    return True


def _tell(lines: Iterable[str]) -> None:
    for each in lines:
        echo(each)
