"""The operator as something that is fed: the one place where `step` is called."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol

from fnop.core.commands import Command
from fnop.core.inputs import Input
from fnop.core.now import Now
from fnop.core.operator import NEW, State, step
from fnop.core.program import Program
from fnop.core.settings import Settings
from fnop.core.turn import settings_of

__all__ = ["Machine", "Observer"]


class Observer(Protocol):
    """Sees every step: a recorder, a log, a meter.  It changes nothing."""

    def observe(self, now: Now, input: Input, commands: tuple[Command, ...]) -> None:
        """One step has been taken; its commands are not performed yet."""
        ...


class Machine:
    """A program with its present state."""

    def __init__(self, program: Program, observers: Iterable[Observer] = ()) -> None:
        self.program = program
        self.state: State = NEW
        self._observers = tuple(observers)

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return settings_of(self.program, self.state)

    def feed(self, now: Now, input: Input) -> tuple[Command, ...]:
        """Take one input in; the commands to perform.

        Handlers are driven where no event loop is visible, so that starting a
        task in one fails the same way everywhere.
        """
        loop = asyncio._get_running_loop()
        if loop is None:
            self.state, commands = step(self.program, self.state, now, input)
        else:
            asyncio._set_running_loop(None)
            try:
                self.state, commands = step(self.program, self.state, now, input)
            finally:
                asyncio._set_running_loop(loop)
        for observer in self._observers:
            observer.observe(now, input, commands)
        return commands

    def close(self) -> None:
        """Let go of conversations that are still open."""
        self.program.live.clear()
