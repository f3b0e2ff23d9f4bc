"""A recording that a command reads, once or several times, and its header's content."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain, count
from pathlib import Path
from typing import Any, BinaryIO, Generic, Protocol, TypeVar

import click
from msgspec import Struct

from fnop.adapters.common.endings import warn
from fnop.interpreters.recording.model.account import Account

__all__ = [
    "CUT_OFF",
    "Read",
    "Recording",
    "Unfolding",
    "account_in",
    "kopf_start_in",
    "lacks",
    "opened_recording",
    "places_in",
    "tell_what_lacks",
    "understood",
]

Header = Mapping[str, Any]


class Read(Struct, frozen=True):
    """The end of a reading: the number of steps, and whether it is cut off.

    If reading was to end at a step, the record after it is counted, too.
    """

    steps: int
    truncated: bool


class _Apart:
    """A file from its beginning, with a position of its own."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.position = file, 0

    def read(self, size: int) -> bytes:
        """The next bytes."""
        self._file.seek(self.position)
        found = self._file.read(size)
        self.position += len(found)
        return found


class Recording(Struct, frozen=True):
    """A recording, which may be read several times at once.

    It may consist of several files, the `parts`, of processes that ran one after
    another. Then `file` belongs to the first one. All methods raise
    `fnop.interpreters.recording.format.reader.RecordingProblem`.
    """

    path: str
    file: BinaryIO
    limits: Any
    parts: tuple[Recording, ...] = ()

    def opened(
        self, file: _Apart | None = None, *, reviews: bool = False
    ) -> tuple[dict[str, Any], Iterator[dict[str, Any] | None]]:
        """The header, and the records from the first one on (`read_records`)."""
        from fnop.interpreters.recording.format.reader import read_header, read_records

        source = file or _Apart(self.file)
        records = read_records(source, self.limits, reviews=reviews)
        header = read_header(records)
        if not self.parts:
            return header, records
        return header, _join_records(records, self.parts[1:], reviews=reviews)

    @property
    def began(self) -> float:
        """The wall time of its first step, in seconds; 0 if it has no step."""
        first = next(self.opened()[1], None)
        return float(first["wall"]) if first and "wall" in first else 0.0

    @property
    def problem(self) -> str:
        """The damage at which reading ended, or "": a recording may also be cut off."""
        damage = self.limits.damage
        return "" if not damage else str(damage.problem)

    @property
    def header(self) -> dict[str, Any]:
        """The header."""
        return self.opened()[0]

    @property
    def manager(self) -> str:
        """The recorded operator's name in managed fields."""
        from fnop.interpreters.recording.replay.replay import recorded_settings

        return recorded_settings(self.header).marker

    def whole(self) -> Iterator[dict[str, Any]]:
        """The records, as far as they were written."""
        return (each for each in self.opened()[1] if each is not None)

    def into(
        self,
        add: Callable[[dict[str, Any]], Any],
        until: int | None = None,
        then: Callable[[Any], None] = lambda found: None,
        *,
        reviews: bool = False,
    ) -> Read:
        """Read the records into a fold, up to a step.

        `then` is called with the result of each record. Reviews are not steps, and are
        skipped unless requested.
        """
        from fnop.interpreters.recording.format.reader import is_review, understood

        steps = 0
        _, records = self.opened(reviews=reviews)
        for number, record in enumerate(records, 1):
            if record is None:
                return Read(steps, True)
            with understood(number):
                steps += 0 if is_review(record) else record.get("gap", 1)
                if until is not None and steps > until:
                    break
                found = add(record)
            then(found)
        return Read(steps, False)


def _join_records(
    records: Iterator[dict[str, Any] | None],
    others: Sequence[Recording],
    *,
    reviews: bool = False,
) -> Iterator[dict[str, Any] | None]:
    """The records of several files, as if they were one; the end of the last counts.

    A process that was killed has not written the end of its file, and another process
    continues. Raises `AtOnce` if two ran at once.
    """
    from fnop.interpreters.recording.format.reader import AtOnce

    wall, last = 0.0, None
    for each in chain([records], (e.opened(reviews=reviews)[1] for e in others)):
        last, is_first = None, True
        for record in each:
            last = record
            if record is None:
                break
            now = record.get("wall", wall)
            if is_first and now < wall:
                raise AtOnce(
                    "two of the recordings are of the same time, so they are no story "
                    "of one process after another; name one of them, or use --html"
                )
            wall, is_first = max(now, wall), False
            yield record
    if last is None:
        yield None


# ---------------------------------------------------------------------------- folders


@contextmanager
def opened_recording(path: str, limits: Any) -> Iterator[Recording]:
    """The recording in a file, or in all files of a folder, in their order of time.

    Raises `fnop.interpreters.recording.format.reader.RecordingProblem`.
    """
    place = Path(path)
    with ExitStack() as stack:
        if not place.is_dir():
            yield Recording(path, stack.enter_context(place.open("rb")), limits)
            return
        found = [
            Recording(str(each), stack.enter_context(each.open("rb")), limits)
            for each in sorted(place.glob("*.fnop"))
        ]
        _must_be_one_run(path, [(each.path, each.header) for each in found])
        parts = tuple(sorted(found, key=lambda each: (each.began, each.path)))
        yield Recording(path, parts[0].file, limits, parts)


def _must_be_one_run(path: str, found: Sequence[tuple[str, Header]]) -> None:
    """Raise `RecordingProblem` if the files of a folder are not a single run."""
    from fnop.interpreters.recording.format.reader import RecordingProblem

    if not found:
        raise RecordingProblem(f"{path} has no recordings: no file ends with .fnop")
    operators = {str(each.get("operator")): name for name, each in found}
    if len(operators) > 1:
        files = ", ".join(f"{name} ({file})" for name, file in operators.items())
        raise RecordingProblem(f"{path} has recordings of {files}; name one of them")
    for name, each in found:
        if each.get("dropped") and len(found) > 1:
            raise RecordingProblem(
                f"{name} has only the last of a run, so it goes on from no other "
                "recording; name it alone"
            )


# ------------------------------------------------------------- as far as it is needed

_Record = dict[str, Any]


class _Fold(Protocol):
    def add(self, record: _Record, /) -> Any:
        """Take one record in."""


_F = TypeVar("_F", bound=_Fold)
# Steps, and bytes of a file, that are read in a second.
_QUICK_STEPS, _QUICK_BYTES = 10_000, 200_000
_PIECE = 500


class Unfolding(Generic[_F]):
    """A fold of a recording, which reads on when more is requested.

    `steps` is the number of steps read. `is_over` means that there are no more;
    `truncated`, that the recording was cut off. If the reading is interrupted, possibly
    within a record, the fold begins again.
    """

    def __init__(self, recording: Recording, begun: Callable[[], _F]) -> None:
        self._recording, self._begun = recording, begun
        self._begin()

    def _begin(self) -> None:
        self.fold = self._begun()
        self._file = _Apart(self._recording.file)
        self._records = enumerate(self._recording.opened(self._file)[1], 1)
        self.steps, self.is_over, self.truncated = 0, False, False

    def to(self, step: int | None) -> bool:
        """Read up to a step, or to the end; whether there was something to read.

        The part before an unreadable record is kept, and counts as everything. Raises
        `fnop.interpreters.recording.format.reader.RecordingProblem`.
        """
        from fnop.interpreters.recording.format.reader import RecordingProblem

        known = self.steps
        try:
            with self._progress(step) as told:
                while not self.is_over and (step is None or self.steps < step):
                    self._read()
                    told()
        except RecordingProblem:
            self.is_over = True
            raise
        except KeyboardInterrupt:
            self._begin()
            raise
        return self.steps > known

    def _read(self) -> None:
        from fnop.interpreters.recording.format.reader import understood

        number, record = next(self._records, (0, None))
        if record is None:
            self.is_over, self.truncated = True, number > 0
            return
        with understood(number):
            self.fold.add(record)
            self.steps += record.get("gap", 1)

    @contextmanager
    def _progress(self, step: int | None) -> Iterator[Callable[[], None]]:
        """A bar if reading takes long; the yielded callable is called for each step."""
        began, numbers = self._file.position, count(1)
        left = Path(self._recording.path).stat().st_size - began
        is_quick = step is not None and step - self.steps < _QUICK_STEPS
        hidden = is_quick or left < _QUICK_BYTES or not sys.stderr.isatty()
        # the size of the whole is unknown
        hidden = hidden or bool(self._recording.parts)
        with click.progressbar(
            length=left, label="reading", file=sys.stderr, hidden=hidden
        ) as bar:

            def told() -> None:
                if next(numbers) % _PIECE == 0:
                    bar.update(self._file.position - began - bar.pos)

            yield told


@contextmanager
def understood(*answers: type[Exception]) -> Iterator[None]:
    """Raise `RecordingProblem` if the content of a recording makes no sense.

    A recording may be hostile: any error is blamed on the recording, except for
    `answers`.
    """
    from fnop.interpreters.recording.format.reader import RecordingProblem

    try:
        yield
    except Exception as problem:
        if isinstance(problem, (RecordingProblem, *answers)):
            raise
        raise RecordingProblem(
            "the recording cannot be understood: "
            f"{type(problem).__name__}: {problem!s:.200}; it is damaged, or was not "
            "written by fnop"
        ) from problem


# -------------------------------------------------------------------------- the header


def places_in(header: Header) -> dict[str, str]:
    """The places in the source of the handlers, by their ids.

    >>> places_in({"places": {"made": "operator.py:4"}}), places_in({"places": 1})
    ({'made': 'operator.py:4'}, {})
    """
    places = header.get("places")
    known = places if isinstance(places, dict) else {}
    return {str(name): str(place) for name, place in known.items()}


def kopf_start_in(header: Header) -> str | None:
    """The start of the recorded Kopf operator; None for an operator of fnop.

    fnop has loaded its "files", or a "program" has started it. The "check" is one of
    `fnop check --kopf`.

    >>> kopf_start_in({"kopf": "files"}), kopf_start_in({"check": {"kopf": True}})
    ('files', 'check')
    """
    check = header.get("check")
    if isinstance(check, dict) and check.get("kopf"):
        return "check"
    found = header.get("kopf")
    return found if found in ("files", "program") else None


def account_in(header: Header) -> Account:
    """The account of a check, which contains more than the steps.

    Raises `fnop.interpreters.recording.format.reader.RecordingProblem`.
    """
    from fnop.interpreters.recording.format.reader import RecordingProblem
    from fnop.interpreters.recording.model.account import account_from_json

    check = header.get("check")
    told = check.get("account") if isinstance(check, dict) else None
    try:
        return account_from_json(told)
    except ValueError as problem:
        raise RecordingProblem(str(problem)) from problem


CUT_OFF = "is cut off: its end was never written"


def lacks(header: Header, *, truncated: bool) -> Iterator[str]:
    """Sentences about the content that a recording lacks.

    >>> [*lacks({"traces": True}, truncated=True)]
    ['the recording is cut off: its end was never written']
    """
    if truncated:
        yield f"the recording {CUT_OFF}"
    dropped = header.get("dropped")
    if isinstance(dropped, int) and dropped:
        yield (
            f"the recording has only the last of a run, without its first {dropped} "
            "steps: its first ones stand for what was known by then"
        )
    if header.get("traces") is not True:
        yield (
            "an earlier release made this recording: it does not hold what handlers "
            "were shown and decided"
        )


def tell_what_lacks(header: Header, *, truncated: bool) -> None:
    """Print the content that a recording lacks on stderr."""
    for sentence in lacks(header, truncated=truncated):
        warn(sentence)
