"""A recording that a command reads, as often as it needs, and what its header tells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

from fnop.adapters.plain import echo
from fnop.core.history.account import Account

__all__ = [
    "CUT_OFF",
    "Read",
    "Recording",
    "account_in",
    "lacks",
    "places_in",
    "tell_what_lacks",
    "understood",
]

Header = Mapping[str, Any]


class Read(NamedTuple):
    """The end of a reading: how many steps there were, and whether it is cut off.

    Where it was to end at a step, the record behind that one is counted, too.
    """

    steps: int
    truncated: bool


class Recording(NamedTuple):
    """A recording.

    All methods raise `fnop.interpreters.recordings.RecordingProblem`.
    """

    path: str
    file: BinaryIO
    limits: Any

    def opened(self) -> tuple[dict[str, Any], Iterator[dict[str, Any] | None]]:
        """The header, and the records from the first one on (`read_records`)."""
        from fnop.interpreters.recordings import read_header, read_records

        self.file.seek(0)
        records = read_records(self.file, self.limits)
        return read_header(records), records

    @property
    def header(self) -> dict[str, Any]:
        """The header."""
        return self.opened()[0]

    @property
    def manager(self) -> str:
        """The recorded operator's name in managed fields."""
        from fnop.interpreters.replay import recorded_settings

        return recorded_settings(self.header).marker

    def whole(self) -> Iterator[dict[str, Any]]:
        """The records, as far as they were written."""
        return (each for each in self.opened()[1] if each is not None)

    def into(
        self,
        add: Callable[[dict[str, Any]], Any],
        until: int | None = None,
        then: Callable[[Any], None] = lambda found: None,
    ) -> Read:
        """Read the records into a fold, up to a step.

        `then` is given what each record has added.
        """
        from fnop.interpreters.recordings import understood

        steps = 0
        for number, record in enumerate(self.opened()[1], 1):
            if record is None:
                return Read(steps, True)
            with understood(number):
                steps += record.get("gap", 1)
                if until is not None and steps > until:
                    break
                found = add(record)
            then(found)
        return Read(steps, False)


@contextmanager
def understood(*answers: type[Exception]) -> Iterator[None]:
    """Raise `RecordingProblem` where what a recording holds makes no sense.

    It may be hostile: any error is the recording's, but for `answers`.
    """
    from fnop.interpreters.recordings import RecordingProblem

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
    """Where the handlers were written, by their ids.

    >>> places_in({"places": {"made": "operator.py:4"}}), places_in({"places": 1})
    ({'made': 'operator.py:4'}, {})
    """
    places = header.get("places")
    known = places if isinstance(places, dict) else {}
    return {str(name): str(place) for name, place in known.items()}


def account_in(header: Header) -> Account:
    """The account of a check, which tells more than the steps.

    Raises `fnop.interpreters.recordings.RecordingProblem`.
    """
    from fnop.core.history.account import account_from_json
    from fnop.interpreters.recordings import RecordingProblem

    check = header.get("check")
    told = check.get("account") if isinstance(check, dict) else None
    try:
        return account_from_json(told)
    except ValueError as problem:
        raise RecordingProblem(str(problem)) from problem


CUT_OFF = "is cut off: its end was never written"


def lacks(header: Header, *, truncated: bool) -> Iterator[str]:
    """Sentences about what a recording does not hold.

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
    """Say on stderr what a recording does not hold."""
    for sentence in lacks(header, truncated=truncated):
        echo(f"fnop: {sentence}", err=True)
