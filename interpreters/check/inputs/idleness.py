"""Handlers that do nothing in any state: their author forgot the effect.

If every line of a handler has run, it produced no effect, and none of its code could
produce one, then it does nothing in any state. Python reports each line and instruction
of the author's code (`sys.settrace`), in one run of a check and never in production.
The code itself shows what could have an effect.
"""

from __future__ import annotations

import builtins
import dis
import inspect
import sys
from collections.abc import Iterable
from types import CodeType, FrameType
from typing import Any

from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.run.arguments import Situation
from fnop.core.handlers.run.invocation import Journal
from fnop.core.seam.effect_rules import EFFECTS
from fnop.effects import Effect, Sleep

__all__ = ["Idleness"]

# Instructions that change what others can see, as `patch.status["x"] = 1` does.
_STORES = frozenset(
    ("STORE_ATTR", "STORE_SUBSCR", "STORE_GLOBAL", "DELETE_ATTR", "DELETE_SUBSCR")
)
# Functions and methods that change an argument, or report something.
_TELLING = frozenset(
    (
        *("append", "add", "extend", "pop", "remove", "setdefault", "update", "clear"),
        *("debug", "info", "warn", "warning", "error", "exception", "critical", "log"),
        *("subhandler", "register"),  # others with an effect
        *("print", "write", "send", "put", "set", "insert", "__setitem__", "setattr"),
    )
)
# Instructions that fetch a possible callee from an outer scope.
_FETCHES = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"))
# Line numbers of a function.
_Lines = set[int]


class Idleness:
    """Watches the handlers of one run; it is an eye of a `Machine`.

    `idle` are the ids of handlers that do nothing, according to the observations.
    Impure handlers are not judged, nor are handlers that have not begun, or whose lines
    have not all run.
    """

    def __init__(self, handlers: Iterable[Handler]) -> None:
        self._names: dict[CodeType, str] = {}
        for each in handlers:
            code = getattr(inspect.unwrap(each.declared), "__code__", None)
            if code is not None and not each.function:
                self._names.setdefault(code, each.id)
        self._files = {code.co_filename for code in self._names}
        self._lines: dict[CodeType, _Lines] = {}
        self._places: dict[CodeType, set[int]] = {}  # the instructions that have run
        # The code that each handler's code has called, itself first.
        self._reached: dict[CodeType, set[CodeType]] = {}
        self._busy: set[CodeType] = set()
        self._before: Any = None

    @property
    def idle(self) -> tuple[str, ...]:
        """The ids of the handlers that do nothing, in the order of the program."""
        return tuple(
            name
            for code, name in self._names.items()
            if code in self._reached
            and code not in self._busy
            and all(map(self._is_harmless, self._reached[code]))
        )

    def open(self) -> None:
        """Watch this thread."""
        self._before = sys.gettrace()
        sys.settrace(self._trace_call)

    def shut(self) -> None:
        """Stop watching it."""
        sys.settrace(self._before)

    def acted(self, deed: str, frame: FrameType | None) -> None:
        """Acts are for the purity gate."""

    def drove(self, situation: Situation, journal: Journal) -> None:
        """Attempts are for others."""

    def _trace_call(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if code.co_filename not in self._files:
            return None
        self._lines.setdefault(code, set()).add(frame.f_lineno)
        self._places.setdefault(code, set())
        frame.f_trace_opcodes = True
        for root in self._roots(frame):
            self._reached.setdefault(root, set()).add(code)
        return self._trace_line

    def _roots(self, frame: FrameType | None) -> list[CodeType]:
        """The handlers that a frame runs for: nested ones count for both."""
        found = []
        while frame is not None:
            if frame.f_code in self._names:
                found.append(frame.f_code)
            frame = frame.f_back
        return found

    def _trace_line(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if event == "line":
            self._lines[code].add(frame.f_lineno)
        elif event == "opcode":
            self._places[code].add(frame.f_lasti)
        elif (event == "exception" and not _is_end(argument)) or (
            event == "return" and code in self._names and not _is_nothing(argument)
        ):
            self._busy.update(self._roots(frame))
        return self._trace_line

    def _is_harmless(self, code: CodeType) -> bool:
        """Whether all of it has run, and nothing in it changes or reports anything."""
        lines = {line for *_, line in code.co_lines() if line is not None}
        begun = {code.co_firstlineno, min(lines, default=0)}
        if not lines - begun <= self._lines[code]:
            return False
        if not _TELLING.isdisjoint(code.co_names):
            return False
        return not any(
            each.opname in _STORES or self._is_left_out(each, code)
            for each in dis.get_instructions(code)
        )

    def _is_left_out(self, found: dis.Instruction, code: CodeType) -> bool:
        """Whether it fetches something unreached, on a line that has run.

        So `if not others: await fnop.delete(body)` has an effect in another state.
        """
        fetches = found.opname in _FETCHES and not hasattr(builtins, str(found.argval))
        return fetches and found.offset not in self._places[code]


def _is_end(argument: Any) -> bool:
    """Whether Python raises an exception to signal the end of something.

    An awaited object signals its end, with its answer, in the same way.
    """
    return issubclass(argument[0], (StopIteration, GeneratorExit))


def _is_nothing(value: Any) -> bool:
    """Whether a result, or an intermediate request, has no effect."""
    if isinstance(value, Sleep):
        return True
    if isinstance(value, Effect):
        rule = EFFECTS.get(type(value))
        return rule is not None and rule.reads
    return value is None
