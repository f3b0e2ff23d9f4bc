"""Models, which answer `fnop.call` in a simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

from fnop.core.handlers.declare.roles import BACKGROUND
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import Perform
from fnop.effects import Call, Log, Outcome, Raised
from fnop.interpreters.runtime.calls import called
from fnop.interpreters.simulation.externals import forked, set_now

__all__ = ["Model", "SimulatedCalls", "may_wait", "named"]

Model = Callable[..., Any]
# Takes the log lines of a function.
Says = Callable[[Log], None]


class SimulatedCalls:
    """A model per function, by `module:name` or by the function itself."""

    def __init__(self, models: Mapping[str, Model] | None = None) -> None:
        self.models = {} if models is None else models
        # Called functions without a model, each with a sentence.
        self.unmodelled: dict[str, str] = {}

    def fork(self) -> SimulatedCalls:
        """A copy with forks of the external systems."""
        fork = copy(self)
        fork.models = forked(self.models)
        fork.unmodelled = {**self.unmodelled}
        return fork

    def of(self, call: Call) -> Model | None:
        """The model of a called function."""
        return self.models.get(call.function)

    def answer(self, call: Call, wall: float, say: Says) -> Outcome:
        """The outcome of a call at a wall time; `say` takes its log lines."""
        model = self.of(call)
        if model is None:
            # Further attempts would not find one: it fails for good.
            sentence = self.unmodelled[call.function] = self.lack(call.function)
            return Raised("NotSimulated", sentence, permanent=True)
        set_now(model, wall)
        return called(model, call, say)

    def lack(self, function: str) -> str:
        """The sentence about a function without a model, with the author's name for it.

        >>> SimulatedCalls().lack("fnop_script_shop:charge").partition(";")[0]
        'shop:charge is not simulated'
        """
        function = named(function)
        return (
            f"{function} is not simulated; give a model of it: in a test "
            f"Simulation(calls={{{function.partition(':')[2]}: ...}}), for fnop run "
            "and fnop check --calls FILE, or for fnop run --real-calls"
        )


def may_wait(
    program: Program, command: Perform, call: Call, *, in_life: bool = False
) -> bool:
    """Whether a call lasts as long as its object, or can wait for its stop.

    In a life each call can wait, and only a daemon's lasts.
    """
    background = [
        each
        for each in program.handlers
        if each.function and each.id == command.handler and each.role in BACKGROUND
    ]
    if not call.as_handler or not background:
        return False
    lasts = any(each.rule.lasts for each in background)
    return lasts or (not in_life and "stopped" in call.arguments["wants"])


# The prefix of the names of modules that are loaded as files.
_SCRIPT = "fnop_script_"


def named(function: str) -> str:
    """The name of a function in the words of the author of its model.

    >>> named("fnop_script_shop:charge")
    'shop:charge'
    """
    return function.removeprefix(_SCRIPT)
