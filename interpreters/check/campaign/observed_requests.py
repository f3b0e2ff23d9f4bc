"""The requests of an operator in the runs of its scripts, also under faults.

A fault makes the operator request things that it does not need on a good day. It reads
an object again after a conflict, or looks for a child after a lost answer. Refusals
because of a missing right are skipped: the operator does not need their consequences if
it has the right.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.program.program import Program
from fnop.core.handlers.program.rights import Need, Who, needs_of
from fnop.core.seam.commands import (
    Command,
    FollowLog,
    ListPage,
    Perform,
    Say,
    Watch,
)
from fnop.effects import Call
from fnop.effects.structs import replace
from fnop.interpreters.check.campaign.explore import Case, Explorer, is_special, sort_of
from fnop.interpreters.check.state.kinds import Schedule, Trait
from fnop.interpreters.check.state.records import Phase
from fnop.interpreters.check.trials.trial import Trial
from fnop.interpreters.runtime.interrupts import interruptible
from fnop.interpreters.simulation.simulation import CannotFork

__all__ = [
    "OPERATOR",
    "Heard",
    "Hearing",
    "heard",
    "played",
    "schedules_of",
    "stopped",
]

# The virtual seconds that an operator has to end.
END_SECONDS = 60.0
# The needs that do not come from a handler.
OPERATOR = Who("the operator itself", is_handler=False)


class Heard(Struct, frozen=True):
    """The findings: the requests, and the handlers that were called.

    `unfinished` are the handlers that were called and have never succeeded. `functions`
    are the names of functions that ran outside, each with the ids of the handlers that
    called it. `unmodelled` are sentences about functions without a model. `schedules`
    is the number of tried ones, `left` the number that the budget has cut.
    """

    needs: frozenset[Need]
    called: frozenset[str]
    unfinished: frozenset[str]
    functions: dict[str, frozenset[str]]
    unmodelled: tuple[str, ...]
    schedules: int
    left: int


class Hearing:
    """Hears the commands of runs; `program` is the program of these runs."""

    def __init__(self, program: Program) -> None:
        self.needs: set[Need] = set()
        self.called: set[str] = set()
        # Whether handlers that have ended have succeeded.
        self.succeeded: dict[str, bool] = {}
        self.functions: dict[str, set[str]] = {}
        self.program = Program(
            tuple(map(self._recording_handler, program.handlers)), program.settings
        )

    def _recording_handler(self, handler: Handler) -> Handler:
        """The handler, with its calls noted."""

        @functools.wraps(handler.fn)
        def called(*args: Any, **kwargs: Any) -> Any:
            self.called.add(handler.id)
            return handler.fn(*args, **kwargs)

        return replace(handler, fn=called)

    def __call__(self, command: Command) -> None:
        """Note a command."""
        if isinstance(command, Say):
            if command.ended is not None and command.handler is not None:
                good = command.ended.result in ("success", "delegated")
                known = self.succeeded.get(command.handler, False)
                self.succeeded[command.handler] = known or good
            return
        for who in self._handlers_behind(command):
            self.needs.update(needs_of(command, who))
        if isinstance(command, Perform):
            ids = _handler_ids(command)
            self.called.update(ids)
            if isinstance(command.effect, Call):
                self.functions.setdefault(command.effect.function, set()).update(ids)

    def _handlers_behind(self, command: Command) -> Iterator[Who]:
        match command:
            case ListPage(resource=resource) | Watch(resource=resource):
                yield from self._followers(resource)
            case FollowLog(handlers=handlers):
                yield from map(Who, handlers)
            case Perform():
                yield from map(Who, _handler_ids(command))
                if not command.handler:
                    yield OPERATOR
            case _:
                return

    def _followers(self, resource: Resource) -> list[Who]:
        found = [
            Who(each.id)
            for each in self.program.handlers
            if each.rule.follows
            for selector in (each.selector, each.owner)
            if selector is not None and selector.matches(resource)
        ]
        return [*dict.fromkeys(found)] or [OPERATOR]


def _handler_ids(command: Perform) -> list[str]:
    """The ids of the handlers behind an effect: a write often has several."""
    return command.handler.split(", ") if command.handler else []


def heard(
    hearing: Hearing,
    cases: Sequence[Case],
    *,
    budget: int | None = None,
    each: Callable[[int, int], Any] = lambda done, all: None,
) -> Heard:
    """Run the cases, and each with one fault of every sort; return the requests.

    At most `budget` schedules are tried; `each` receives the progress. Raises
    `fnop.interpreters.simulation.scenario.ApplyProblem` if the cluster refuses a
    manifest.
    """
    explorers = [
        Explorer(
            case._replace(program=hearing.program, listener=hearing), watched=False
        )
        for case in cases
    ]
    for explorer in explorers[:1]:
        stopped(explorer)
    found = [*schedules_of(explorers)]
    chosen = found[:budget]
    for number, (explorer, schedule) in enumerate(chosen):
        each(number, len(chosen))
        played(explorer.trial_of(schedule))
    unmodelled = dict.fromkeys(e for one in explorers for e in one.unmodelled)
    return Heard(
        frozenset(hearing.needs),
        frozenset(hearing.called),
        frozenset(name for name, good in hearing.succeeded.items() if not good),
        {name: frozenset(ids) for name, ids in sorted(hearing.functions.items())},
        tuple(unmodelled),
        len(chosen),
        len(found) - len(chosen),
    )


def stopped(explorer: Explorer) -> None:
    """Let the operator end in order after its script, which calls cleanup handlers."""
    with suppress(CannotFork):
        run = explorer.reference.benign.seen.trial.run.fork()
        run.stop()
        run.settle(seconds=END_SECONDS)


def played(trial: Trial) -> None:
    """Play a trial until its faults have ended and everything has settled.

    After a crash, the consequences of restarts are heard, too.
    """
    with interruptible():
        while trial.phase <= Phase.HEALED and not trial.is_endless:
            trial.go_on()


def schedules_of(
    explorers: Sequence[Explorer],
) -> Iterator[tuple[Explorer, Schedule]]:
    """One fault of every sort, in the first script that it can strike."""
    sorts = set()
    for explorer in explorers:
        for schedule in explorer.singles():
            (fault,) = schedule
            if fault.kind.has(Trait.DENIES) or is_special(schedule):
                continue
            if sort_of(fault) not in sorts:
                sorts.add(sort_of(fault))
                yield explorer, schedule
