"""The forbidden events, by the calls of handlers and the API server's writes."""

from __future__ import annotations

import json
import re
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster.fault_proxy import Record
from tests.patience import SLOWNESS

__all__ = ["MARKER", "Judge", "Ledger", "Manifest", "bad_lines", "view_of"]

MARKER = "fnop.dev/default"
# A result has the name of its handler.
RESULTS = {"made": "made", "changed": "changed", "fielded/spec.other": "fielded"}
# The proxy and the operator read one clock, and are not woken at once.
SLACK_SECONDS = 0.05 * SLOWNESS
# How long an object may have been gone for the operator to begin something about it:
# a call that was on its way.
GONE_SECONDS = 1.0 * SLOWNESS

Manifest = dict[str, Any]


@dataclass(frozen=True, order=True)
class View:
    """A handler's view of an object: both numbers only grow."""

    generation: int
    touched: int

    def is_within(self, other: View) -> bool:
        """Whether the other one has seen all of this."""
        return self.generation <= other.generation and self.touched <= other.touched


@dataclass
class Judge:
    """Compares the calls with the states that the API server has stored.

    A success is stored when the API server has answered a write that has the handler's
    result with 200, whether or not the operator got that answer.  From then on, no
    process

    - calls a creation handler for that uid,
    - calls an update handler for a state that it has seen with this success or one
      before, or for a state that all handlers of the creation have seen (R15: a state
      that the first successful one of them has not seen is an update); the handler's
      own write is another state, for which it is called once more,
    - calls a field handler for the value that it has succeeded with, unless the field
      had another one in between.

    A call before that, also of a process that was killed then, is not a repetition: it
    was not stored.
    """

    stored: dict[tuple[str, str], tuple[float, Manifest]] = field(default_factory=dict)
    created: dict[tuple[str, str], Manifest] = field(default_factory=dict)
    # The first calls: a success of theirs may be stored, and its answer unheard.
    first: dict[tuple[str, str], View] = field(default_factory=dict)
    answers: int = 0
    alone: bool = True  # no other replica takes over, which ends daemons unheard
    specs: dict[str, dict[int, Manifest]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    gone: dict[str, float] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)  # by the operator's own finalizer
    ended: set[str] = field(default_factory=set)
    daemons: Counter[tuple[int, str]] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    trace: deque[str] = field(default_factory=lambda: deque(maxlen=200_000))

    def saw(self, body: Manifest) -> None:
        """The object as the API server has it, from wherever."""
        metadata = body["metadata"]
        specs = self.specs.setdefault(metadata["uid"], {})
        specs[metadata["generation"]] = body["spec"]
        self.names[metadata["uid"]] = metadata["name"]
        if MARKER in metadata.get("finalizers", ()):
            self.held.add(metadata["uid"])

    def heard(self, record: Record, answer: bytes) -> None:
        """The API server's answer to a request of the operator."""
        self.answers += 1
        if record.method != "PATCH" or "/fnopexamples/" not in record.path:
            return
        now = time.time()
        sent = record.body.decode(errors="replace")
        self.trace.append(
            f"{now:.3f} PATCH {record.target[-60:]} {sent} -> {record.answered} "
            f"{record.fault or ''}"
        )
        if record.answered != 200:
            return
        body = json.loads(answer)
        self.saw(body)
        uid, status = body["metadata"]["uid"], body.get("status") or {}
        metadata = body["metadata"]
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            self.gone.setdefault(uid, now)
        written = json.loads(record.body)
        changed = written.get("status") if isinstance(written, dict) else None
        for name, handler in RESULTS.items():
            if name in (changed or {}) and isinstance(status.get(name), dict):
                self.store(uid, handler, now, status[name])

    def store(self, uid: str, handler: str, at: float, result: Manifest) -> None:
        """A success that the API server has stored."""
        self.stored[uid, handler] = at, result
        self.created.setdefault((uid, handler), result)

    def judge(self, lines: Iterable[Manifest]) -> None:
        """Calls, in the order of the ledger."""
        for line in lines:
            self.trace.append(f"{line['at']:.3f} CALL {json.dumps(line)}")
            handler, uid = line["handler"], line["uid"]
            self.calls[handler] += 1
            self.first.setdefault((uid, handler), view_of(line))
            problem = self._problem(line, handler, uid)
            if problem:
                self.violations.append(
                    f"{line['at']:.3f} {line['name']}: {handler} {problem}: {line}"
                )

    def _problem(self, line: Manifest, handler: str, uid: str) -> str | None:
        if handler == "followed":
            return self._daemon(line, uid)
        if handler == "ended":
            self.ended.add(uid)
        gone = self.gone.get(uid)
        if gone is not None and line["at"] > gone + GONE_SECONDS:
            return f"is called {line['at'] - gone:.2f} s after the object was gone"
        success = self._success(line, handler, uid)
        if success is None:
            return None
        at, result = success
        return f"is called {line['at'] - at:.2f} s after its success with {result}"

    def _success(
        self, line: Manifest, handler: str, uid: str
    ) -> tuple[float, Manifest] | None:
        """A stored success that should have kept it from being called."""
        others = ("made", "changed") if handler == "changed" else (handler,)
        for other in others:
            found = self.stored.get((uid, other))
            if found is None or line["at"] <= found[0] + SLACK_SECONDS:
                continue
            if other != handler and not self._by_creation(line, uid):
                continue
            if other != handler or self._covers(handler, found[1], line, uid):
                return found
        return None

    def _by_creation(self, line: Manifest, uid: str) -> bool:
        """Whether all handlers of the creation have seen what an update is about."""
        return all(self._created_by(each, line, uid) for each in ("made", "fielded"))

    def _created_by(self, handler: str, line: Manifest, uid: str) -> bool:
        """Whether a handler of the creation is known to have seen this state."""
        result = self.created.get((uid, handler))
        if result is None or line["mark"] != result["mark"]:
            return False
        done = view_of(result)
        is_creation = self.first.get((uid, handler), done) == done
        return is_creation and view_of(line).is_within(done)

    def _covers(self, handler: str, result: Manifest, line: Manifest, uid: str) -> bool:
        view, done = view_of(line), view_of(result)
        match handler:
            case "made":
                return True
            case "changed":
                return view.is_within(done) and line["mark"] == result["mark"]
            case "fielded":
                between = range(done.generation, view.generation + 1)
                specs = self.specs.get(uid, {})
                # An unknown generation may have had another value.
                return all(
                    specs.get(number, {}).get("other") == result["other"]
                    for number in between
                )
            case _:
                return False

    def _daemon(self, line: Manifest, uid: str) -> str | None:
        running = (line["pid"], uid)
        if line["phase"] == "ends":
            self.daemons[running] -= 1
            return None
        self.daemons[running] += 1
        if self.daemons[running] > 1 and self.alone:
            return "runs twice"
        return None


def view_of(seen: Manifest) -> View:
    return View(seen["generation"], seen["touched"])


class Ledger:
    """The lines that the operators have written since last time."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._at = 0

    def read(self) -> Iterator[Manifest]:
        if not self.file.exists():
            return
        with self.file.open("rb") as file:
            file.seek(self._at)
            text = file.read()
        whole, newline, _ = text.rpartition(b"\n")
        self._at += len(whole) + len(newline)
        yield from map(json.loads, whole.splitlines())


# What a log must not have, whatever fails around the operator.
BAD = re.compile(
    r"Unclosed|was never (awaited|retrieved)|ResourceWarning|Task was destroyed"
    r"|RuntimeError|KeyError|AttributeError|TypeError|AssertionError|StopIteration"
    r"|failed for good|cannot be remembered|in a row, from now on"
)
# A handler does not catch that the API server refuses what it wants.
EXPECTED = "fnop.core.values.errors.Refused: "


def bad_lines(lines: Iterable[str]) -> Iterator[str]:
    """The lines that should not be there, including tracebacks."""
    within = False
    for line in map(str.rstrip, lines):
        if line.startswith("Traceback"):
            within = True
        elif within and not line.startswith(" "):
            within = False
            if not line.startswith(EXPECTED):
                yield f"the log says: Traceback: {line[:300]}"
        elif BAD.search(line):
            yield f"the log says: {line[:300]}"
