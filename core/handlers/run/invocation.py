"""Drive a handler through its journal to its next effect, or to its end.

A handler is a function, a coroutine or a generator; all three are the same
conversation. Its state is its *journal*: the answers that it has received so far.
Driving it from its start through the journal always leads to the same point. So a live
coroutine is only a cache for the end of the journal.

Guarantees: no event loop is needed. Exceptions of a handler do not escape. The same
handler, situation and journal give the same `Advance`, or a failure that names both
effects.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from msgspec import Struct

from fnop.core.children.conditions import telling
from fnop.core.children.siblings import has_failed
from fnop.core.children.synchronise import ChildrenFailed, Synchronised, synchronise
from fnop.core.handlers.declare.declaring import Declaring
from fnop.core.handlers.declare.forms import Form
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.plans import (
    EFFECTS,
    bare_children,
    desired_in,
    identity,
    plan_of,
    refuse_lost,
)
from fnop.core.handlers.declare.roles import Role
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.declare.writers import Transform
from fnop.core.handlers.run.arguments import Situation, Writers, arguments_for
from fnop.core.handlers.run.impure import call_of, ended
from fnop.core.handlers.run.misuse import is_misuse, remedy_of
from fnop.core.memory.progress import Failure
from fnop.core.seam.effect_rules import AnswerForm, rule_of
from fnop.core.values.body import View
from fnop.core.values.errors import (
    AdmissionError,
    CallFailed,
    Cancelled,
    NotPure,
    PermanentError,
    Refused,
    TemporaryError,
    described,
    parts_of,
    text_of,
)
from fnop.core.values.models import Unfit
from fnop.effects import (
    Again,
    Answer,
    Applied,
    Conflict,
    Effect,
    Log,
    Missing,
    Outcome,
    Patch,
    Raised,
    Return,
    Unknown,
    Unreachable,
    Witness,
    outcomes,
)
from fnop.effects.desired import Desired, label_of
from fnop.effects.structs import replace
from fnop.effects.values import read_only, thaw_json, type_name
from fnop.effects.wire import digest_of

__all__ = [
    "Advance",
    "Ending",
    "Journal",
    "JournalEntry",
    "LiveCache",
    "advance",
    "cancel",
]


class JournalEntry(Struct, frozen=True):
    """One answer: the digest of the effect, its outcome, and the wall time.

    `stopped` is the reason why a daemon is to stop, if there was one at that time.
    """

    digest: str
    outcome: Outcome
    wall: float
    stopped: str = ""


Journal = tuple[JournalEntry, ...]


class Ending(Struct, frozen=True):
    """The end of an attempt: its plan, or its failure.

    The argument `patch` collected the `patches`. The argument of admission handlers
    collected the `warnings`. `children` are the sub-handlers that it has declared,
    `settings` the ones that a startup handler has returned. For a reconciler's
    children, it records how they were `synchronised`; without a keeper, it records the
    `desired` ones.
    """

    plan: tuple[Effect, ...] = ()
    patches: tuple[Patch | Transform, ...] = ()
    failure: Failure | None = None
    children: tuple[Handler, ...] = ()
    settings: Settings | None = None
    synchronised: Synchronised | None = None
    desired: Desired | None = None
    warnings: tuple[str, ...] = ()


class Desires(Struct, frozen=True):
    """The author's part of a reconciler: the desired children, and everything else."""

    desired: Desired
    plan: tuple[Effect, ...] = ()
    patches: tuple[Patch | Transform, ...] = ()


class Advance(Struct, frozen=True):
    """The result of driving: an effect that needs an answer, or the end.

    `lines` are the log lines since the end of the journal. `desires` is set if the
    author's part has ended since then, and attempts are traced. Effects from then on
    keep the children.
    """

    lines: tuple[Log, ...]
    asks: Effect | None = None
    end: Ending | None = None
    children: tuple[Handler, ...] = ()
    desires: Desires | None = None


class _Drive:
    """A live conversation, which is in a cache and not in the state."""

    __slots__ = (
        "conversation",
        "declaring",
        "desired",
        "desires",
        "rest",
        "situation",
        "synchronised",
        "taken",
        "told",
        "witness",
        "writers",
    )

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self.writers = Writers()
        self.witness = Witness(is_driven=True)
        self.taken: set[int] = set()
        self.told = 0
        self.declaring = Declaring(situation.handler, situation.indices)
        self.conversation: Any = None
        # The part of a result that is not desired children.
        self.rest: Any = None
        self.synchronised: Synchronised | None = None
        self.desired: Desired | None = None
        self.desires: Desires | None = None

    def guarded(self, move: Callable[[], Any]) -> Any:
        """Run the author's code, and collect its effects and sub-handlers."""
        outer = Witness.current.set(self.witness)
        parent = Declaring.current.set(self.declaring)
        depth = sys.get_coroutine_origin_tracking_depth()
        # It shows the line of a coroutine that is dropped; a debugger may want more.
        sys.set_coroutine_origin_tracking_depth(depth or 1)
        try:
            return move()
        finally:
            sys.set_coroutine_origin_tracking_depth(depth)
            Witness.current.reset(outer)
            Declaring.current.reset(parent)

    @property
    def children(self) -> tuple[Handler, ...]:
        """The sub-handlers declared so far."""
        return tuple(self.declaring.children)

    def begin(self) -> Any:
        """Call the handler; return `_Asked` or `_Returned`."""
        handler = self.situation.handler
        arguments = arguments_for(self.situation, self.writers)
        found = self.guarded(lambda: handler.call(arguments))
        if handler.signature.form is Form.PLAN:
            return self.ended(found)
        self.conversation = found
        return self.go(lambda: found.send(None))

    def go(self, move: Callable[[], Any]) -> Any:
        try:
            asked = self.guarded(move)
        except StopIteration as stop:
            return self.ended(stop.value)
        if not isinstance(asked, EFFECTS) or isinstance(asked, (Again, Return)):
            raise TypeError(_misuse_of_await(asked))
        self.taken.add(identity(asked))
        self.witness.unasked = 0
        return _Asked(asked)

    def ended(self, value: Any) -> Any:
        """End the author's part; then make its desired children, and end that, too."""
        keeping = self.situation.keeping
        if isinstance(value, Synchronised):
            return _Returned(self.settled(value))
        if keeping is None:
            return _Returned(value)
        desired, self.rest = desired_in(value)
        if remedy := bare_children(value if desired is None else self.rest):
            found = "a list" if isinstance(value, (list, tuple)) else "a manifest"
            raise TypeError(
                f"a reconcile handler has returned {found}; {remedy} to have its "
                "children made"
            )
        if desired is None:
            return _Returned(value)
        self.taken.add(identity(desired))
        if keeping.keeper is None:
            self.desired = desired
            return _Returned(self.rest or None)
        if self.situation.settings.traces:
            self.desires = Desires(desired, *self._changes_beside())
        self.conversation = synchronise(
            desired, keeping.owned, keeping.keeper, keeping.beside
        )
        return self.go(lambda: self.conversation.send(None))

    def _changes_beside(
        self,
    ) -> tuple[tuple[Effect, ...], tuple[Patch | Transform, ...]]:
        """The plan without the desired children, and the changes of the object.

        Errors in it are refused at the end.
        """
        with suppress(TypeError, ValueError):
            return plan_of(self.rest or None), self.writers.patch.changes()
        return (), ()

    def settled(self, found: Synchronised) -> list[Effect]:
        """Return the plan after all children are synchronised; raise if one has failed.

        The reports about them are written even then.
        """
        self.synchronised = found
        self.writers.patch.status.update(thaw_json(found.status))
        if found.failure is not None:
            raise found.failure
        return [*plan_of(self.rest or None), *found.effects]

    def answer(self, effect: Effect, entry: JournalEntry) -> Any:
        """Send the answer of `effect` to the conversation that awaits it."""
        if entry.stopped:
            self.writers.stopped.reason = entry.stopped
        found = _answer_of(rule_of(effect).answer, entry)
        if isinstance(found, Exception):
            return self.go(lambda: self.conversation.throw(found))
        return self.go(lambda: self.conversation.send(found))

    @property
    def patches(self) -> tuple[Patch | Transform, ...]:
        """The changes of the object by the argument `patch`, and by its conditions.

        Raises `TypeError` or `ValueError` for changes that cannot be written.
        """
        found, keeping = self.writers.patch.changes(), self.situation.keeping
        end = self.synchronised
        keeper = None if keeping is None else keeping.keeper
        if end is None or keeper is None or not end.conditions:
            return found
        return *found, Transform(partial(end.tell, keeper))

    def fresh_lines(self) -> tuple[Log, ...]:
        lines = tuple(self.writers.lines[self.told :])
        self.told = len(self.writers.lines)
        return lines

    def fresh_desires(self) -> Desires | None:
        found, self.desires = self.desires, None
        return found

    def close(self) -> None:
        # Guarded: closing a coroutine here is not an error of the author.
        if self.conversation is not None:
            self.guarded(self.conversation.close)


class _Asked(Struct, frozen=True):
    effect: Effect


class _Returned(Struct, frozen=True):
    value: Any


def _misuse_of_await(asked: Any) -> str:
    if isinstance(asked, (Again, Return)):
        return (
            f"{asked.kind} is a handler's last word: return it instead of awaiting it"
        )
    return (
        f"a handler awaited a value of type {type_name(asked)}, which is not an "
        "effect; work outside of the handler goes through fnop.call(function, ...)"
    )


@dataclass(slots=True)
class LiveCache:
    """Live conversations at the end of their journals, keyed by the exact journal.

    An entry is removed when it is used. So a state that is stepped twice is driven
    again the second time. Correctness never depends on the cache.
    """

    drives: dict[tuple[Any, ...], tuple[Journal, _Drive, Effect]] = field(
        default_factory=dict
    )
    # Called for each driving, for example by an eye of `fnop check`; it changes
    # nothing.
    hears: Callable[[Situation, Journal], None] | None = None

    def put(
        self, key: tuple[Any, ...], journal: Journal, drive: _Drive, asked: Effect
    ) -> None:
        self.drop(key)
        self.drives[key] = (journal, drive, asked)

    def take(
        self, key: tuple[Any, ...], journal: Journal
    ) -> tuple[_Drive, Effect] | None:
        """Remove and return the conversation at the end of exactly this journal."""
        found = self.drives.get(key)
        if found is None or len(found[0]) != len(journal):
            return None
        if not all(map(operator.is_, found[0], journal)):
            return None
        del self.drives[key]
        return found[1], found[2]

    def drop(self, key: tuple[Any, ...]) -> None:
        found = self.drives.pop(key, None)
        if found is not None:
            _close_drive(found[1])

    def clear(self) -> None:
        for key in list(self.drives):
            self.drop(key)


def _close_drive(drive: _Drive) -> None:
    # The conversation is over, and its errors do not matter now.
    with suppress(BaseException):
        drive.close()


def advance(
    situation: Situation, journal: Journal, live: LiveCache, key: tuple[Any, ...]
) -> Advance:
    """Drive the handler to its next effect, or to its end.

    `journal` holds all answers, the newest last; `key` names the invocation in the
    cache.
    """
    if live.hears is not None:
        live.hears(situation, journal)
    if situation.handler.function:
        return _outside(situation, journal)
    # The key in the cache is the journal without its newest answer.
    cached = live.take(key, journal[:-1]) if journal else None
    live.drop(key)
    drive = cached[0] if cached else _Drive(situation)
    try:
        if cached:
            step = drive.answer(cached[1], journal[-1])
        else:
            step = _redrive(drive, journal)
    except BaseException as problem:  # any error of a handler is an outcome
        return _end_failed(drive, problem)
    # It has caught a refusal and continued, or has dropped a coroutine (R3).
    slip = drive.witness.refused or drive.witness.dropped
    if slip is not None:
        return _end_failed(drive, slip)
    if isinstance(step, _Asked):
        live.put(key, journal, drive, step.effect)
        lines, desires = drive.fresh_lines(), drive.fresh_desires()
        return Advance(lines, step.effect, None, drive.children, desires)
    return _end_returned(drive, step.value)


def _outside(situation: Situation, journal: Journal) -> Advance:
    """Drive an impure handler: it makes one call, and ends with its answer (R9)."""
    changes: tuple[Patch | Transform, ...] = ()
    warnings: tuple[str, ...] = ()
    try:
        if not journal:
            return Advance((), call_of(situation))
        found = _answer_of(AnswerForm.VALUE, journal[-1])
        outcome = journal[-1].outcome
        if isinstance(found, Exception):
            raise found
        fns = outcome.fns if isinstance(outcome, Answer) else ()
        value, changes, failure, warnings = ended(found, fns)
        if failure is not None and isinstance(outcome, Answer):
            failure = replace(failure, exception=outcome.exception)
        plan = () if failure is not None else plan_of(value)
    except Exception as problem:
        plan, failure = (), failure_of(problem)
    return Advance((), end=Ending(plan, changes, failure, warnings=warnings))


def _redrive(drive: _Drive, journal: Journal) -> Any:
    step = drive.begin()
    for position, entry in enumerate(journal):
        if not isinstance(step, _Asked):
            raise PermanentError(
                f"the handler is not deterministic: it ended where it had asked for "
                f"effect {position} before"
            )
        if digest_of(step.effect) != entry.digest:
            raise PermanentError(
                f"the handler is not deterministic: effect {position} is now "
                f"{_label_of(step.effect)}, which is not the one that was answered "
                f"(digest {entry.digest}: {type_name(entry.outcome)})"
            )
        if position == len(journal) - 1:
            drive.fresh_lines()  # these were already logged
            drive.fresh_desires()
        step = drive.answer(step.effect, entry)
    return step


def _end_failed(drive: _Drive, problem: BaseException) -> Advance:
    _close_drive(drive)
    lines = drive.fresh_lines()
    refused = drive.witness.refused  # even if the handler has raised another error
    failure = failure_of(refused or problem)
    patches = (*_patches_of(drive), *_tell_nothing_desired(drive, str(failure)))
    ending = Ending(
        (),
        patches,
        failure,
        synchronised=drive.synchronised,
        warnings=drive.writers.warned(),
    )
    return Advance(lines, end=ending, desires=drive.fresh_desires())


def _tell_nothing_desired(drive: _Drive, why: str | None) -> tuple[Transform, ...]:
    """The condition of an object whose handler has ended before desiring anything.

    `why` is its failure; None if it desires nothing.
    """
    keeping = drive.situation.keeping
    keeper = None if keeping is None else keeping.keeper
    if keeping is None or keeper is None or drive.synchronised is not None:
        return ()
    own = None if why is None else has_failed(why)
    tell = telling(keeper, keeping.beside, own)
    return () if tell is None else (Transform(tell),)


# The remedy, for asyncio's message that there is no running event loop.
_NO_LOOP = (
    "; a handler waits by fnop.sleep, and asks the world by fnop.call: "
    "one that needs asyncio is declared with impure=True"
)


def failure_of(problem: BaseException) -> Failure:
    """The failure that a handler's exception means: this function alone decides it."""
    name = type(problem).__name__
    message = text_of(problem)
    if message == "no running event loop":
        message += _NO_LOOP
    match problem:
        case TemporaryError():
            return Failure(name, message, temporary=problem.delay, exception=problem)
        case ChildrenFailed():
            return Failure(name, message)  # not an error in the author's code
        case AdmissionError():
            field = getattr(problem, "field", "")
            return Failure(
                *(name, message),
                permanent=True,
                exception=problem,
                code=problem.code,
                field=field,
            )
        case Unfit():  # the author's code is not responsible
            others = problem.parts if problem.others else ()
            return Failure(
                *(name, message),
                permanent=True,
                code=422,
                field=problem.field,
                parts=tuple(map(failure_of, others)),
                misfit=problem.of,
            )
        case PermanentError() | NotPure():
            return Failure(name, message, permanent=True, exception=problem)
        case _:
            misuse = is_misuse(problem)
            message += remedy_of(problem) if misuse else ""
            return Failure(
                *(name, message),
                exception=problem,
                misuse=misuse,
                parts=tuple(map(failure_of, parts_of(problem))),
            )


def _patches_of(drive: _Drive) -> tuple[Patch | Transform, ...]:
    try:
        return drive.patches
    except (TypeError, ValueError):
        return ()


def _end_returned(drive: _Drive, value: Any) -> Advance:
    settings = None
    try:
        if isinstance(value, Settings):
            settings, value = _settings_for(drive, value), None
        _refuse_lost_settings(drive, settings)
        plan = _plan_of(drive, value)
        refuse_lost(drive.witness, plan, "return it, yield it or await it", drive.taken)
        patches = (*drive.patches, *_tell_nothing_desired(drive, None))
    except (TypeError, ValueError) as problem:
        return _end_failed(drive, problem)
    ending = Ending(
        *(plan, patches, None, drive.children, settings),
        *(drive.synchronised, drive.desired, drive.writers.warned()),
    )
    lines, desires = drive.fresh_lines(), drive.fresh_desires()
    return Advance(lines, None, ending, drive.children, desires)


def _plan_of(drive: _Drive, value: Any) -> tuple[Effect, ...]:
    """The plan of a handler; the author returned any error in it."""
    try:
        return plan_of(value)
    except (TypeError, ValueError) as problem:
        place = drive.situation.handler.place
        where = f"; the handler at {place} returned it" if place else ""
        raise type(problem)(f"{problem}{where}") from None


def _refuse_lost_settings(drive: _Drive, kept: Settings | None) -> None:
    """Raise `TypeError` for settings that a startup handler has made and lost.

    It may make others on the way to the settings that it returns. But if it returns
    none, or has made further ones from those, a `return` or a name is missing.
    """
    if drive.situation.handler.role is not Role.STARTUP:
        return
    for _, base, where in reversed(drive.witness.made):
        if kept is None or base is kept:
            raise TypeError(
                f"the settings made at {where} have no effect: return them, as in "
                "return settings.replace(...)"
            )


def _settings_for(drive: _Drive, settings: Settings) -> Settings:
    if drive.situation.handler.role is not Role.STARTUP:
        raise TypeError("settings can be changed by startup handlers alone")
    if settings.state_keys != drive.situation.settings.state_keys:
        raise ValueError(
            "state_keys= is given before the operator starts, as by --state-key-file; "
            "return settings.replace(...) without it"
        )
    return settings


def cancel(
    situation: Situation, journal: Journal, live: LiveCache, key: tuple[Any, ...]
) -> tuple[tuple[Log, ...], BaseException | None]:
    """End a waiting conversation with `Cancelled`, which it can catch (R16).

    Returns its last log lines, and the error that the last line is about if it has
    failed meanwhile. If the cache has lost it, it is first driven to the end of its
    journal. So the result does not depend on the cache.
    """
    if situation.handler.function:
        return (), None
    failure: BaseException | None = None
    found = live.take(key, journal)
    live.drop(key)
    drive = found[0] if found else _Drive(situation)
    try:
        if found is None:
            _redrive(drive, journal)
            drive.fresh_lines()  # these were already logged
        if drive.conversation is not None:
            _throw_cancelled(drive)
    except BaseException as problem:
        if not isinstance(problem, Cancelled):
            line = f"failed while it was being cancelled: {described(problem)}"
            drive.writers.lines.append(Log("warning", line))
            failure = problem
    return drive.fresh_lines(), failure


def _label_of(effect: Effect) -> str:
    """The effect and its object; its fields may hold a secret."""
    manifest = getattr(effect, "manifest", None)
    target = getattr(effect, "target", None)
    if manifest is not None:
        return f"{effect.kind} of {label_of(manifest)}"
    return f"{effect.kind} of {target.kind}/{target.name}" if target else effect.kind


def _throw_cancelled(drive: _Drive) -> None:
    error = Cancelled("the conversation is over; it cannot be gone on with")
    try:
        asked = drive.guarded(lambda: drive.conversation.throw(error))
    except StopIteration:
        return
    kind = getattr(asked, "kind", type_name(asked))
    _close_drive(drive)
    raise TypeError(
        f"a cancelled handler asked for {kind}, but no effect can be awaited any "
        "more; clean up in an on.delete handler"
    )


def _answer_of(form: AnswerForm, entry: JournalEntry) -> Any:
    """The answer to the conversation: a value, or an exception to raise in it."""
    match entry.outcome:
        case Applied() | Answer() as done:
            return _value_of(form, done, entry.wall)
        case Missing(message=message):
            return _absence_of(form, message)
        case Conflict(message=message, reason=reason):
            return Refused(409, reason, message)
        case outcomes.Refused(status=status, message=message, reason=reason):
            return Refused(status, reason, message)
        case Unreachable(message=message) | Unknown(message=message):
            return TemporaryError(message)
        case Raised() as raised:
            return _exception_of(raised)


def _value_of(form: AnswerForm, done: Applied | Answer, wall: float) -> Any:
    value = done.object if isinstance(done, Applied) else done.value
    match form:
        case AnswerForm.EXISTENCE:
            return True
        case AnswerForm.OBJECTS:
            return [View.of(item, wall) for item in value]
        case AnswerForm.BYTES:
            return bytes.fromhex(value) if isinstance(value, str) else value
        case _ if isinstance(done, Applied):
            return None if value is None else View.of(value, wall)
        case _:
            return read_only(value)


def _absence_of(form: AnswerForm, message: str) -> Any:
    """The answer if the object is missing."""
    match form:
        case AnswerForm.EXISTENCE:
            return False
        case AnswerForm.OBJECT_OR_NONE:
            return None
        case _:
            return Refused(404, "NotFound", message)


def _exception_of(raised: Raised) -> Exception:
    if raised.permanent:
        return PermanentError(raised.message)
    if raised.delay_seconds is not None:
        return TemporaryError(raised.message, raised.delay_seconds)
    problem = CallFailed(raised.type, raised.message)
    problem.__cause__ = raised.exception  # shown in the traceback
    return problem
