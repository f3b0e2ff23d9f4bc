"""Record a run: each input, and the commands that followed.

The format consists of compressed blocks (`fnop.interpreters.recording.format.blocks`)
of about 4 MiB, with one JSON record per line. Each block ends with a checksum. The
written part of an open block can be read, so a crash does not lose it. The first record
is the header; each other record is a step:

    {"t": [1200, 1200], "r": ENTRY, "b": ENTRY}

or {"gap": 12} if 12 steps could not be written. After 8 KiB of lines, and at the end, a
record carries `"s"`, the CRC-32 of all lines before its own. The lines before it are
certain, even if the file is damaged later on
(`fnop.interpreters.recording.format.sums`).

A review is a record like a step's, with the request, the answers to its handlers and
the decision (`fnop.core.admission.wire`). A review is not a step, and readers of steps
do not get it.

The fields of a step:

- `t` is the time since the step before, in microseconds of the wall clock and of the
  monotonic clock. If that is not exact, it is both clocks in seconds, as floats.
- `r` is the text of its input and its commands.
- `b` is the text of the object that the input shows, which `r` does not contain.

The texts are differences from earlier texts
(`fnop.interpreters.recording.format.deltas`). Secrets are replaced by keyed tokens
before they are written (`fnop.interpreters.recording.redaction`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, BinaryIO

import orjson
from msgspec import Struct, to_builtins

from fnop.core.handlers.program.program import Program
from fnop.core.memory.seals import without_seals
from fnop.core.seam.commands import Command
from fnop.core.seam.inputs import Input
from fnop.core.seam.wire import apart, command_to_wire, together
from fnop.core.values.body import Body
from fnop.core.values.now import Now
from fnop.effects.structs import replace
from fnop.effects.values import canonical
from fnop.interpreters.recording.format.blocks import Block
from fnop.interpreters.recording.format.deltas import DeltaWriter
from fnop.interpreters.recording.format.digests import KIND, PYTHON, digests_of
from fnop.interpreters.recording.format.sums import Sums
from fnop.interpreters.recording.redaction import Redaction

__all__ = ["FORMAT_VERSION", "Recorder", "header_of"]

# Since format 2, secrets are found by their place and replaced, and digests with them.
# Since format 3, texts are differences from earlier texts.
FORMAT_VERSION = 3
# Steps are written once their texts reach the first size. A block ends at the second.
_CHUNK = 256 * 1024
_BLOCK = 4 * 1024 * 1024


def header_of(program: Program, version: str) -> dict[str, Any]:
    """The first record: the operator's version, settings and handlers."""
    settings = program.settings
    return {
        "fnop": version,
        "format": FORMAT_VERSION,
        "sums": True,
        "handlers": [handler.id for handler in program.handlers],
        "places": {each.id: each.place for each in program.handlers if each.place},
        "code": digests_of(program.handlers),
        "python": PYTHON,
        "digests": KIND,
        "operator": settings.operator,
        "namespaces": None if settings.namespaces is None else [*settings.namespaces],
        "selector": settings.selector,
        "peering": None
        if settings.peering is None
        else _identity_as_json(settings.peering),
        "election": None
        if settings.election is None
        else _identity_as_json(settings.election),
        "explain": settings.explain,
        "wait_for_kinds": settings.wait_for_kinds,
        "owns": {
            e.id: [word for word, _ in e.owns] for e in program.handlers if e.owns
        },
        "traces": settings.traces,
    }


def _identity_as_json(value: Any) -> dict[str, Any]:
    """The operator's identity among its peers, as JSON: its decisions depend on it."""
    found: dict[str, Any] = to_builtins(value)
    return found


class _Step(Struct, frozen=True):
    """A step to write: its record without the object of its input, and the object."""

    now: Now
    record: dict[str, Any]
    text: bytes
    body: bytes | None
    uid: str

    @property
    def key(self) -> tuple[Hashable, int]:
        """The key of the step's text, which it shares with steps of the same kind."""
        record = self.record
        family = record["input"]["in"], *(each["do"] for each in record["commands"])
        return family, self.text.count(b",")


class _Draft(Struct, frozen=True):
    """A step with its line."""

    step: _Step
    line: bytes
    is_concerned: bool

    @property
    def texts(self) -> tuple[bytes, ...]:
        """All texts of the step."""
        return self.step.text, self.step.body or b""

    def whole(self) -> dict[str, Any]:
        """The record with the object, as a reader restores it."""
        step = self.step
        if step.body is None:
            return step.record
        found: dict[str, Any] = orjson.loads(step.text)
        together(found["input"], orjson.loads(step.body))
        return found


class Recorder:
    """Observes a run and writes it to a file.

    Steps are written when enough have accumulated, and at the latest with the first
    step after a second. A crash can lose at most that much. Recording never harms the
    run: it stops if it cannot go on, and `problem` holds the reason.
    """

    def __init__(
        self, file: BinaryIO, header: dict[str, Any], redaction: Redaction
    ) -> None:
        self._file = file
        self._redaction = redaction
        self._texts = DeltaWriter()
        # The steps that are not written yet.
        self._steps: list[_Step] = []
        self._size = 0
        self._flushed_at = float("-inf")
        # The time of the last written step, in microseconds.
        self._then = 0, 0
        # The open block, and the amount of text in it.
        self._block, self._filled = Block(), 0
        self._sums = Sums()
        self.problem: Exception | None = None
        self._write([canonical(header)])

    def observe(self, now: Now, input: Input, commands: Iterable[Command]) -> None:
        """Record one step."""
        self._try_write(self._record, now, input, commands)

    def reviewed(
        self, now: Now, review: dict[str, Any], decision: dict[str, Any]
    ) -> None:
        """Record a review, which is not a step."""
        record = {"input": review, "commands": [decision]}
        self._try_write(
            lambda: self._keep(_Step(now, record, _encoded_json(record), None, ""))
        )

    def gap(self, count: int) -> None:
        """Record that `count` steps are missing here."""
        self._try_write(self._write_gap, count)

    def save(self) -> None:
        """Make everything so far readable in the file."""
        self._try_write(self.flush)

    def finish(self) -> None:
        """Write the rest and the end; without the end a file shows as cut off."""
        self._try_write(self._write_end)

    def close(self) -> None:
        """Write the end, and close the file."""
        self.finish()
        try:
            self._file.close()
        except OSError as problem:
            self.problem = self.problem or problem

    def _try_write(self, write: Callable[..., None], *given: Any) -> None:
        """Write, unless there was a problem; after any error the run goes on."""
        if self.problem is None:
            try:
                write(*given)
            except Exception as problem:
                self.problem = problem

    def _write_gap(self, count: int) -> None:
        self.flush()
        self._write([b'{"gap":%d}' % count])

    def _write_end(self) -> None:
        self.flush(last=True)
        self._file.write(self._block.end())
        self._file.flush()

    def _record(self, now: Now, input: Input, commands: Iterable[Command]) -> None:
        wire, body = apart(input)
        record = {"input": wire, "commands": [*map(command_to_wire, commands)]}
        self._keep(_Step(now, record, _encoded_json(record), *self._text_and_uid(body)))

    def _keep(self, step: _Step) -> None:
        now = step.now
        if step.uid:
            self._redaction.know_uid(step.uid)
        self._steps.append(step)
        self._size += len(step.text) + len(step.body or b"")
        if self._size >= _CHUNK or now.mono - self._flushed_at >= _FLUSH_SECONDS:
            self._flushed_at = now.mono
            self.flush()

    def _text_and_uid(
        self, body: Body | dict[str, Any] | None
    ) -> tuple[bytes | None, str]:
        """The text of an object, and its uid."""
        if body is None:
            return None, ""
        if isinstance(body, dict):
            return _encoded_json(body), str(body["metadata"].get("uid") or "")
        raw = body.raw
        if not body.has_text:
            return without_seals(raw), body.uid
        if raw == self._texts.text_of(body.uid):
            return raw, body.uid  # the answer to a write has shown this version
        return _encoded_json(orjson.loads(raw)), body.uid

    def flush(self, *, last: bool = False) -> None:
        """Write all steps so far; raise any error that prevents this."""
        if self._steps:
            steps, self._steps, self._size = self._steps, [], 0
            then = self._then
            drafts = [*map(self._draft_step, steps)]
            redacted = self._redaction.redacted(drafts)
            if any(each is not None for each in redacted):
                self._texts.forget()
                self._then = then
                drafts = [*map(self._draft_without_secrets, drafts, redacted)]
            self._texts.keep()
            self._write([each.line for each in drafts], last=last)

    def _draft_step(self, step: _Step) -> _Draft:
        """A step as it is written if it does not contain a secret."""
        line, news = self._line_of_step(step)
        is_concerned = self._redaction.concerns(step.record, news)
        if is_concerned:
            self._watch(step)
        return _Draft(step, line, is_concerned)

    def _draft_without_secrets(
        self, draft: _Draft, redacted: dict[str, Any] | None
    ) -> _Draft:
        """A step as it is written without its secrets."""
        step = (
            draft.step if redacted is None else _step_with_record(draft.step, redacted)
        )
        line, _ = self._line_of_step(step)
        if draft.is_concerned or redacted is not None:
            self._watch(step)
        return _Draft(step, line, draft.is_concerned)

    def _watch(self, step: _Step) -> None:
        """Let texts that are written as differences from it be searched in full."""
        self._texts.watch(step.key)
        self._texts.watch(step.uid)

    def _line_of_step(self, step: _Step) -> tuple[bytes, bytes]:
        """The line of a step, and the part of it that was not written before."""
        key = step.key
        found = self._texts.write(key, key[0], step.text)
        time = self._encoded_time(step.now)
        if step.body is None:
            return b'{"t":%b,"r":%b}' % (time, found.entry), found.news
        body = self._texts.write(step.uid, "", step.body)
        line = b'{"t":%b,"r":%b,"b":%b}' % (time, found.entry, body.entry)
        return line, found.news + b"\n" + body.news

    def _encoded_time(self, now: Now) -> bytes:
        """Microseconds since the step before; or seconds, if these are not exact."""
        wall, mono = round(now.wall * 1e6), round(now.mono * 1e6)
        if (wall / 1e6, mono / 1e6) != now:
            return orjson.dumps([float(now.wall), float(now.mono)])
        was, self._then = self._then, (wall, mono)
        return b"[%d,%d]" % (wall - was[0], mono - was[1])

    def _write(self, lines: list[bytes], *, last: bool = False) -> None:
        text = b"".join(self._sums.summed(lines, last=last))
        self._file.write(self._block.write(text))
        self._filled += len(text)
        if self._filled >= _BLOCK:
            self._file.write(self._block.end())
            self._block, self._filled = Block(), 0
        self._file.flush()


def _encoded_json(value: Any) -> bytes:
    return without_seals(orjson.dumps(value))


def _step_with_record(step: _Step, record: dict[str, Any]) -> _Step:
    """A step with another record, and the object kept apart as before."""
    if step.body is None:
        return replace(step, record=record, text=orjson.dumps(record))
    input = record["input"]
    if "body" in input:
        body, rest = input["body"], {**input, "body": None}
    else:
        outcome = input["outcome"]
        body, rest = (
            outcome["object"],
            {**input, "outcome": {**outcome, "object": None}},
        )
    record = {**record, "input": rest}
    return replace(
        step, record=record, text=orjson.dumps(record), body=orjson.dumps(body)
    )


_FLUSH_SECONDS = 1.0
