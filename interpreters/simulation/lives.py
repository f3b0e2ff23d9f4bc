"""Operators that live in this process: each of their processes is a life.

A program is a value: it can start again, and be copied at any moment. Handlers of a
Kopf operator also use values of their process, such as modules, memos and clients. Such
an operator is loaded again for each life, and a life has no copy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import Interrupt, Refresh
from fnop.effects import Call, Log, Outcome
from fnop.interpreters.runtime.machine import Observer

__all__ = ["Life", "Threads"]


class Threads(Protocol):
    """The calls of an operator that are under way, by the numbers of their commands."""

    @property
    def calls(self) -> Collection[int]:
        """The calls that may last as long as their objects."""

    @property
    def wakes(self) -> list[float]:
        """The virtual seconds at which waiting calls continue."""

    def begin(
        self,
        id: int,
        function: Callable[..., Any],
        call: Call,
        say: Callable[[Log], None],
    ) -> Outcome | None:
        """Begin a call; its outcome if it has ended, None if it waits."""

    def wake(self) -> list[tuple[int, Outcome]]:
        """Continue the calls that are due; return the outcomes of those that end."""

    def tell(self, command: Interrupt | Refresh) -> Outcome | None:
        """Pass a command on to a call; its outcome if it ends because of it."""

    def close(self) -> None:
        """End all calls: the operator is gone."""


class Life(Protocol):
    """One process of an operator: its program, and what exists only in the process.

    `functions` are those that its calls name. `close` ends it, as a crash does.
    """

    @property
    def program(self) -> Program: ...
    @property
    def observers(self) -> tuple[Observer, ...]: ...
    @property
    def threads(self) -> Threads: ...
    @property
    def functions(self) -> Mapping[str, Callable[..., Any]]: ...
    def close(self) -> None: ...
