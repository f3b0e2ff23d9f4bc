"""A stand-in for the interpreter of an operator that only decides."""

from __future__ import annotations

from typing import Any

from fnop.core.state.turn import State
from fnop.interpreters.runtime.machine import Machine

__all__ = ["Deciding"]


class Deciding:
    """Serves an operator in a plan or a replay: its state is that of a machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    @property
    def state(self) -> State:
        """The state of the operator."""
        return self._machine.state

    def post(self, handler: str, manifest: dict[str, Any]) -> None:
        """Post nothing: no handler runs, and recorded Events are inputs."""
