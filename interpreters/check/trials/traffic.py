"""Traffic at rest: requests that an operator keeps sending while nothing happens.

An operator may read the world as often as it likes. It may apply its desired objects at
each turn of a timer: that is how it finds drift. Some repetitions are defects. The
operator deletes missing objects, creates existing ones, or requests its next call
without a look at anything in between. The API server pays for each such request and
object.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType

from msgspec import Struct

from fnop.core.admission.decisions import Decision
from fnop.core.api.reviews import Request
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import Family
from fnop.core.handlers.run.arguments import Situation
from fnop.core.handlers.run.invocation import Journal
from fnop.core.seam.commands import Perform
from fnop.effects import Call, Conflict, Create, Delete, Missing, Outcome, Raised
from fnop.interpreters.check.inputs.input_variation import CHANGING
from fnop.interpreters.check.state.worlds import outside_of
from fnop.interpreters.check.trials.trial import Trial
from fnop.interpreters.simulation.director import Director
from fnop.interpreters.simulation.watches import Delivery

__all__ = ["SECONDS", "Window"]

# Requests at longer intervals are a resync, which costs next to nothing.
SECONDS_MIN = 30.0
# The number of repetitions that make a habit.
TIMES_MIN = 4
# The virtual seconds that show a habit.
SECONDS = SECONDS_MIN * (TIMES_MIN + 1)
# Words at the beginning of a function's name: it removes something, or writes it. A
# function that ensures something, or synchronises, may look first.
_TAKES_AWAY = re.compile(
    r"_*(delete|deprovision|deregister|destroy|drop|remove|revoke|unregister)(_|$)"
)
_WRITES = re.compile(
    r"_*(add|create|grant|insert|post|put|register|replace|set|store|update|upload"
    r"|upsert|write)(_|$)"
)


class _Habit(Struct, frozen=True):
    """A request in vain: its handler, its object, and its result."""

    handler: str
    subject: str
    request: str
    answer: str
    remedy: str


def _vain_requests(
    habits: Mapping[_Habit, list[float]], handlers: Mapping[str, Handler]
) -> Iterator[str]:
    for habit, times in habits.items():
        pace = _pace(times)
        if pace is not None:
            place = _place(handlers.get(habit.handler))
            yield (
                f"`{habit.request}` of {habit.handler}{place} is answered "
                f"{habit.answer}, every {pace:g} s for ever: {habit.remedy}"
            )


def _needless_calls(calls: _Calls, handlers: Mapping[str, Handler]) -> Iterator[str]:
    """The handlers that ask to be called again, and cannot learn anything new."""
    for (handler, _), times in calls.blind.items():
        pace = _pace(times)
        if pace is not None:
            yield (
                f"{handler}{_place(handlers.get(handler))} asks to be called again "
                f"every {pace:g} s for ever, and looks at its object alone, whose "
                "changes call it anyway: leave `again=` out, or look at what it waits "
                "for"
            )


def _pace(times: Sequence[float]) -> float | None:
    """The seconds between calls; None if they are few, or far apart.

    >>> _pace([0, 10, 20, 30]), _pace([0, 60, 120, 180]), _pace([0, 10])
    (10.0, None, None)
    """
    if len(times) < TIMES_MIN:
        return None
    pace = (times[-1] - times[0]) / (len(times) - 1)
    return round(pace, 1) if pace < SECONDS_MIN else None


def _place(handler: Handler | None) -> str:
    return f" ({handler.place})" if handler and handler.place else ""


class Window(Director):
    """A window on a run at rest: it notes requests in vain, and their times.

    It directs the run like the trial for which it is opened.
    """

    def __init__(self, trial: Trial) -> None:
        self._trial, self._calls = trial, _Calls()
        self._habits: defaultdict[_Habit, list[float]] = defaultdict(list)
        trial.run.director, trial.run.machine.eye = self, self._calls

    def told(self, handlers: Sequence[Handler]) -> tuple[str, ...]:
        """A sentence for each thing that goes on in vain."""
        by_id = {each.id: each for each in handlers}
        found = [
            *_vain_requests(self._habits, by_id),
            *_needless_calls(self._calls, by_id),
        ]
        return tuple(dict.fromkeys(found))

    def choose(self, inbox: Sequence[Delivery]) -> int | None:
        """The delivery that the trial chooses."""
        return self._trial.director.choose(inbox)

    def performs(
        self, command: Perform, perform: Callable[[], Outcome | None]
    ) -> Outcome | None:
        """Perform the command, and note whether it was in vain."""
        effect, run = command.effect, self._trial.run
        asks = isinstance(effect, Call) and _changes(effect)
        before = outside_of(run.calls.models) if asks else None
        outcome = self._trial.director.performs(command, perform)
        after = outside_of(run.calls.models) if asks else None
        vain = _vain_habit(command, outcome, before == after)
        if vain is not None and command.handler:
            times, now = self._habits[vain], run.clock.elapsed
            if times[-1:] != [now]:  # simultaneous requests count once
                times.append(now)
        return outcome

    def reviews(
        self,
        request: Request,
        asks: frozenset[str],
        decide: Callable[[], Decision],
    ) -> Decision | None:
        """The decision of its handlers about a write."""
        return self._trial.director.reviews(request, asks, decide)


def _vain_habit(
    command: Perform, outcome: Outcome | None, still: bool
) -> _Habit | None:
    """The words for a request without effect; `still` is the state outside."""
    subject = command.subject.label if command.subject else ""
    match command.effect, outcome:
        case Delete(), Missing():
            request, answer = f"fnop.delete {_target(command)}", "404 (Not Found)"
            remedy = "ask whether it is there first, or forget it once it is gone"
        case Create(), Conflict(reason="AlreadyExists"):
            request, answer = f"fnop.create {_target(command)}", "409 (AlreadyExists)"
            remedy = "ask whether it is there first, or apply it"
        case Call() as call, _ if still and _changes(call):
            request = f"fnop.call({_name_of(call)})"
            answer = outcome.type if isinstance(outcome, Raised) else "without effect"
            remedy = "ask what is there, and write what differs"
            if _TAKES_AWAY.match(_name_of(call)):
                remedy = "note what was made, and take that away once"
        case _:
            return None
    return _Habit(command.handler or "", subject, request, answer, remedy)


def _target(command: Perform) -> str:
    plural = command.resource.plural if command.resource else ""
    name = command.name or _manifest_name(command.effect)
    return f"{plural}/{name}"


def _manifest_name(effect: object) -> str:
    manifest = getattr(effect, "manifest", None) or {}
    return str((manifest.get("metadata") or {}).get("name") or "")


def _name_of(call: Call) -> str:
    return call.function.rpartition(":")[2].rpartition(".")[2]


def _changes(call: Call) -> bool:
    """Whether a function's name says that it changes something."""
    name = _name_of(call)
    is_told = _TAKES_AWAY.match(name) or _WRITES.match(name)
    return not call.as_handler and is_told is not None


class _Calls:
    """The calls of reconcile handlers without requests; an eye of a machine."""

    def __init__(self) -> None:
        self._begun: dict[int, tuple[Situation, Journal]] = {}

    def open(self) -> None:
        """A step begins."""

    def shut(self) -> None:
        """The step has ended."""

    def acted(self, deed: str, frame: FrameType | None) -> None:
        """Ignore an act."""

    def drove(self, situation: Situation, journal: Journal) -> None:
        """Keep a call as far as it has progressed."""
        self._begun[id(situation)] = situation, journal

    @property
    def blind(self) -> dict[tuple[str, str], list[float]]:
        """The times of calls that only saw their object, by handler and object.

        A handler that makes any request, even once, is skipped with all its calls: it
        may wait for the result.
        """
        found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        asking = set[str]()
        for situation, journal in self._begun.values():
            handler, body = situation.handler, situation.body
            if journal or _may_see_more(situation):
                asking.add(handler.id)
            elif body is not None and handler.resync is None:
                found[handler.id, body.uid or ""].append(situation.now.mono)
        return {key: each for key, each in found.items() if key[0] not in asking}


def _may_see_more(situation: Situation) -> bool:
    """Whether a handler gets data that may change without a call of the handler."""
    handler = situation.handler
    if handler.rule.family is not Family.RECONCILER or handler.function:
        return True
    shown = handler.signature
    others = {*(CHANGING - {"status"}), *situation.indices, "retry"}
    return shown.rest or not others.isdisjoint(shown.wants)
