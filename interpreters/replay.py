"""Feeding a recording to a program, and comparing what it decides.

A replay has no interpreter that could act: it cannot touch a cluster.  It stops
at the first difference, for everything after it would be noise.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import orjson

from fnop.core.election import Candidate, Timing
from fnop.core.now import Now
from fnop.core.peers import Member, Mode
from fnop.core.program import Program
from fnop.core.settings import Settings
from fnop.core.wire import command_to_wire, input_from_wire
from fnop.effects.values import canonical
from fnop.interpreters.guard import Act
from fnop.interpreters.machine import Machine
from fnop.interpreters.recorder import FORMAT_VERSION, TOKEN

__all__ = [
    "Difference",
    "RecordingProblem",
    "Replayed",
    "among_others",
    "read_header",
    "read_records",
    "replay",
]


class RecordingProblem(Exception):
    """A recording that cannot be read, in one sentence."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first decision that is not the recorded one.

    `recorded` and `now` are commands as JSON; None where there is none.
    """

    step: int
    input: dict[str, Any]
    recorded: dict[str, Any] | None
    now: dict[str, Any] | None

    @property
    def handler(self) -> str | None:
        """The handler whose decision differs, where a command names one."""
        for command in (self.now, self.recorded):
            if command is not None and command.get("handler"):
                return str(command["handler"])
        return None


@dataclass(frozen=True, slots=True)
class Replayed:
    """How a replay went.  `truncated` tells that the recording ends mid-block.

    `acts` is what the author's code was forbidden to do in the world, where it is only
    to decide: by handler, the first act of each.
    """

    steps: int
    difference: Difference | None
    truncated: bool
    acts: tuple[Act, ...] = ()


def _blocks(file: BinaryIO) -> Iterator[bytes | None]:
    """The text of each block; a last None when the file ends within one.

    What can be had of a block that was cut off is had, up to its last whole line.
    """
    data = file.read()
    while data:
        inflater = zlib.decompressobj(wbits=31)
        try:
            text = inflater.decompress(data)
        except zlib.error as problem:
            raise RecordingProblem(f"the recording is corrupt: {problem}") from problem
        if not inflater.eof:
            yield text[: text.rfind(b"\n") + 1]
            yield None
            return
        yield text
        data = inflater.unused_data


def read_records(file: BinaryIO) -> Iterator[dict[str, Any] | None]:
    """The records of a recording; a last None when it was cut off.

    Raises `RecordingProblem` for a file that is none.
    """
    for block in _blocks(file):
        if block is None:
            yield None
            return
        for line in block.splitlines():
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError as problem:
                raise RecordingProblem(
                    f"the recording has a line that is no JSON: {problem}"
                ) from problem
            if not isinstance(record, dict):
                raise RecordingProblem("the recording has a line that is no record")
            yield record


def read_header(records: Iterator[dict[str, Any] | None]) -> dict[str, Any]:
    """The header; `RecordingProblem` if this is no recording we can read."""
    header = next(records, {})
    if header is None:
        raise RecordingProblem("the recording is cut off before its first record")
    if "format" not in header:
        raise RecordingProblem(
            "this is no recording of fnop; make one with `fnop run ... --record FILE`"
        )
    if header["format"] != FORMAT_VERSION:
        raise RecordingProblem(
            f"the recording has format {header['format']}, and this fnop reads "
            f"{FORMAT_VERSION}; replay it with fnop {header.get('fnop')}"
        )
    return header


def among_others(settings: Settings, header: dict[str, Any]) -> Settings:
    """The settings with who the recorded operator was among others."""
    member, candidate = header.get("peering"), header.get("election")
    if member is not None:
        member = Member(**{**member, "mode": Mode(member["mode"])})
    if candidate is not None:
        candidate = Candidate(**{**candidate, "timing": Timing(**candidate["timing"])})
    return settings.replace(peering=member, election=candidate)


def replay(records: Iterator[dict[str, Any] | None], program: Program) -> Replayed:
    """Fold the recorded inputs and compare the commands, up to the first difference."""
    machine, secrets = Machine(program), _Secrets()
    steps, difference, truncated = 0, None, False
    acts: list[Act] = []
    try:
        for record in records:
            if record is None:
                truncated = True
                break
            difference = _replay_step(machine, record, steps, secrets)
            acts += machine.acts()
            if difference is not None:
                break
            steps += 1
    finally:
        machine.close()
    return Replayed(steps, difference, truncated, tuple(acts))


def _replay_step(
    machine: Machine, record: dict[str, Any], steps: int, secrets: _Secrets
) -> Difference | None:
    try:
        input = input_from_wire(record["input"])
        now = Now(record["wall"], record["mono"])
        recorded = list(record["commands"])
    except (KeyError, TypeError, ValueError) as problem:
        raise RecordingProblem(
            f"record {steps + 1} of the recording cannot be understood: {problem}"
        ) from problem
    decided = [command_to_wire(command) for command in machine.feed(now, input)]
    for position in range(max(len(recorded), len(decided))):
        was = recorded[position] if position < len(recorded) else None
        is_ = decided[position] if position < len(decided) else None
        if not _same(was, is_, secrets if record.get("redacted") else None):
            return Difference(steps, record["input"], was, is_)
    return None


class _Secrets:
    """Which value stands behind which token of a redacted recording.

    The program of a replay makes real values where the recording has tokens: what
    they are is not compared, but that equal ones are equal and others are not.
    """

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._tokens: dict[str, str] = {}

    def matches(self, recorded: str, text: str) -> bool:
        """Whether a text is the recorded one, with values in place of its tokens."""
        tokens = TOKEN.findall(recorded)
        if not tokens:
            return False
        pattern = "(.+)".join(map(re.escape, TOKEN.split(recorded)))
        found = re.fullmatch(pattern, text, re.DOTALL)
        return found is not None and all(
            self._is_for(token, value)
            for token, value in zip(tokens, found.groups(), strict=True)
        )

    def _is_for(self, token: str, value: str) -> bool:
        known = self._values.setdefault(token, value)
        return known == value and self._tokens.setdefault(value, token) == token


def _same(recorded: Any, decided: Any, secrets: _Secrets | None) -> bool:
    """Whether two commands say the same; `secrets` if the recorded one is redacted."""
    if canonical(recorded) == canonical(decided):
        return True
    return secrets is not None and _alike(recorded, decided, secrets)


_DIGEST = re.compile(r"\b1:[0-9a-f]{20}\b")


def _alike(recorded: Any, decided: Any, secrets: _Secrets) -> bool:
    match recorded, decided:
        case dict(), dict():
            return recorded.keys() == decided.keys() and all(
                _alike(recorded[key], decided[key], secrets) for key in recorded
            )
        case list(), list():
            return len(recorded) == len(decided) and all(
                _alike(one, other, secrets)
                for one, other in zip(recorded, decided, strict=True)
            )
        case str(), str():
            # A digest that was made from values in clear text says nothing.
            one, other = _DIGEST.sub("1:", recorded), _DIGEST.sub("1:", decided)
            return one == other or secrets.matches(one, other)
        case _:
            return canonical(recorded) == canonical(decided)
