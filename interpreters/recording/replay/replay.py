"""Feed a recording to a program, and compare its decisions.

A replay has no interpreter that could act, so it cannot touch a cluster. It stops at
the first difference: everything after it would be noise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, BinaryIO

from msgspec import Struct

from fnop.core.admission.wire import decision_to_wire, review_from_wire
from fnop.core.children.owned import owners_of
from fnop.core.handlers.declare.roles import INDICES
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.peers.lease import Candidate, Timing
from fnop.core.peers.peers import Member, Mode
from fnop.core.seam.inputs import Input, Started
from fnop.core.seam.traces import Trace, Version
from fnop.core.seam.wire import command_to_wire, input_from_wire
from fnop.core.values.body import Body
from fnop.core.values.now import Now
from fnop.effects.structs import replace
from fnop.effects.values import canonical
from fnop.interpreters.recording.format.reader import (
    UNLIMITED,
    RecordingLimits,
    RecordingProblem,
    Unsupported,
    is_review,
    read_header,
    read_records,
    understood,
)
from fnop.interpreters.recording.identities.tokens import another_token, draws_secret
from fnop.interpreters.recording.model.carried import told_alike
from fnop.interpreters.recording.redaction import has_token
from fnop.interpreters.recording.redaction.likeness import Likeness, Retold
from fnop.interpreters.runtime.guard import Act
from fnop.interpreters.runtime.machine import Machine

__all__ = [
    "UNLIMITED",
    "Difference",
    "RecordingLimits",
    "RecordingProblem",
    "Replayed",
    "Unsupported",
    "other_handlers",
    "read_header",
    "read_records",
    "recorded_settings",
    "replay",
    "replay_file",
]


_LIMITS = RecordingLimits()


class Difference(Struct, frozen=True):
    """The first decision that differs from the recorded one.

    `recorded` and `now` are commands as JSON; each is None if there is no such command.
    `doubt` says why the difference may come from the redaction alone, and is None if it
    cannot. It is "derived" if the decision is derived from a secret, and "given" if the
    handler was given a secret. A caller may have other doubts. `attempt` is the handler
    and the object (`namespace/name`) of the attempt that decides differently, if an
    attempt does.
    """

    step: int
    input: dict[str, Any]
    recorded: dict[str, Any] | None
    now: dict[str, Any] | None
    doubt: str | None = None
    attempt: tuple[str, str] | None = None

    @property
    def handler(self) -> str | None:
        """The handler whose decision differs, if a command names one."""
        for command in (self.now, self.recorded):
            if command is not None and command.get("handler"):
                return str(command["handler"])
        return None if self.attempt is None else self.attempt[0]


class Replayed(Struct, frozen=True):
    """The result of a replay; `truncated` if the recording ends within a block.

    `known` are the values that handlers made themselves and that tokens stand for.
    `acts` are the forbidden actions of the author's code in the world, although it may
    only decide: the first one of each handler. Next come `missing` steps that were
    never written: the replay cannot go on without them.
    """

    steps: int
    difference: Difference | None
    truncated: bool
    known: Mapping[str, str]
    acts: tuple[Act, ...] = ()
    missing: int = 0


def recorded_settings(header: dict[str, Any]) -> Settings:
    """The settings of the recorded operator, with its identity among its peers.

    Raises `RecordingProblem` for an invalid header.
    """
    namespaces, selector = header["namespaces"], header["selector"]
    member, candidate = header.get("peering"), header.get("election")
    try:
        if member is not None:
            member = Member(**{**member, "mode": Mode(member["mode"])})
        if candidate is not None:
            timing = Timing(**candidate["timing"])
            candidate = Candidate(**{**candidate, "timing": timing})
        served = None if namespaces is None else tuple(namespaces)
        found = Settings(header["operator"], served, selector)
        told = {name: header.get(name) is True for name in ("explain", "traces")}
        # Earlier releases have always waited.
        told["wait_for_kinds"] = header.get("wait_for_kinds", True) is True
        return found.replace(peering=member, election=candidate, **told)
    except (KeyError, TypeError, ValueError) as problem:
        raise RecordingProblem(
            f"the recording's header is damaged: {problem!s:.200}"
        ) from problem


def other_handlers(header: dict[str, Any], program: Program) -> str:
    """The difference between the present and the recorded handlers; or "".

    A replay with other handlers, or with the files in another order, shows a difference
    that no handler's decision causes.
    """
    names = header.get("handlers")
    recorded = [str(each) for each in names] if isinstance(names, list) else []
    now = [handler.id for handler in program.handlers]
    if not recorded:
        return ""
    if now == recorded:
        return _other_children(header, program)
    lacks, has = Counter(recorded) - Counter(now), Counter(now) - Counter(recorded)
    found = []
    if lacks:
        found.append(
            f"handlers of the recording are missing now: {_first_names(lacks)}"
        )
    if has:
        found.append(f"handlers are not in the recording: {_first_names(has)}")
    if not found:
        found.append(
            "the handlers are declared in another order than in the recording "
            f"({_first_names(recorded)}, and now {_first_names(now)}); name the files "
            "in its order"
        )
    return "; ".join(found)


def _other_children(header: dict[str, Any], program: Program) -> str:
    """The handlers whose `owns=` differs from the recording."""
    owns = header.get("owns")
    if not isinstance(owns, dict):
        return ""  # the recording is from an earlier release
    now = {each.id: [word for word, _ in each.owns] for each in program.handlers}
    others = [
        f"{name} owns {_first_names(words) or 'nothing'} now, "
        f"and {_first_names(was) or 'nothing'} in the recording"
        for name, words in now.items()
        if (was := owns.get(name) or []) != words
    ]
    return "; ".join(others)


def _first_names(names: Iterable[str]) -> str:
    found = [*names]
    more = ", ..." if len(found) > _NAMES_SHOWN else ""
    return ", ".join(found[:_NAMES_SHOWN]) + more


_NAMES_SHOWN = 8


def replay(
    records: Iterator[dict[str, Any] | None],
    program: Program,
    known: Mapping[str, str] | None = None,
    begin: Callable[[], Machine] | None = None,
) -> Replayed:
    """Fold the recorded inputs and compare the commands, up to the first difference.

    `known` are values of tokens (`Replayed.known`). `begin` makes the machine of each
    process; by default they have nothing but the program. Raises `RecordingProblem` for
    records that cannot be understood.
    """
    run, steps, missing = _Run(program, known or {}, begin), 0, 0
    difference, truncated = None, False
    try:
        for record in records:
            if record is None:
                truncated = True
                break
            missing = record.get("gap", 0)
            if missing:
                break
            if is_review(record):
                difference = run.review(record, steps)
            else:
                difference = run.step(record, steps)
                steps += difference is None
            if difference is not None:
                break
    finally:
        run.close()
    return Replayed(steps, difference, truncated, run.known, tuple(run.acts), missing)


def replay_file(
    file: BinaryIO,
    program: Program,
    limits: RecordingLimits = _LIMITS,
    begin: Callable[[], Machine] | None = None,
) -> Replayed:
    """Replay a recording; start again whenever values of tokens are found.

    The value of a token is found if a handler makes the value itself, or if a copy was
    too ordinary to be hidden. The value may have influenced earlier decisions. `begin`
    makes machines, as for `replay`. Raises `RecordingProblem`.
    """
    known: Mapping[str, str] = {}
    for _ in range(_PASSES_MAX):
        file.seek(0)
        records = read_records(file, limits, reviews=True)
        read_header(records)
        found = replay(records, program, known, begin)
        is_certain = found.difference is None or found.difference.doubt is None
        if is_certain or found.known == known:
            break
        known = found.known
    return found


_PASSES_MAX = 50


class _Run:
    """A replay under way."""

    def __init__(
        self,
        program: Program,
        known: Mapping[str, str],
        begin: Callable[[], Machine] | None,
    ) -> None:
        self._begin = begin or partial(Machine, program)
        self._machine = self._begin()
        self._known = known
        self._given = _Given(program)
        # Set from the first record with a token on.
        self._twins: _Twins | None = None
        self.acts: list[Act] = []
        # The handlers and objects of the attempts, by number.
        self._attempts: dict[int, tuple[str, str]] = {}

    def step(self, record: dict[str, Any], steps: int) -> Difference | None:
        with understood(steps + 1):
            now, input, recorded = _read(record)
            if steps and isinstance(input, Started):
                self._begin_anew()
            redacted = bool(record.get("redacted"))
            self._given.input(record["input"], redacted=redacted)
            if redacted and self._twins is None:
                self._twins = _Twins(self._machine, self._known, self._given)
            if self._twins is None:
                found = _first_difference(
                    steps, record, recorded, self._decided(now, input)
                )
            else:
                found = self._twins.step(now, record, steps)
            self.acts += self._machine.acts()
            self._given.commands(recorded)
            self._note_begun(recorded)
            found = found and self._with_attempt(found)
        return found

    def review(self, record: dict[str, Any], steps: int) -> Difference | None:
        """Decide a review again, in the state between two steps."""
        with understood(steps + 1):
            now = Now(record["wall"], record["mono"])
            told = review_from_wire(record["input"])
            (was,) = record["commands"]
            conversation = self._machine.review(
                now, told.request, told.asks, told.account
            )
            decision, answers = None, iter(told.answers)
            try:
                next(conversation)
                while (answer := next(answers, None)) is not None:
                    conversation.send(answer)
            except StopIteration as stop:
                decision = decision_to_wire(stop.value)
            finally:
                conversation.close()
            self.acts += self._machine.acts()
            if canonical(was) == canonical(decision) or record["input"].get("behind"):
                return None  # the operator's state was different when the review began
            doubt = "given" if record.get("redacted") else None
            return Difference(steps, record["input"], was, decision, doubt)

    def _note_begun(self, recorded: list[dict[str, Any]]) -> None:
        for each in recorded:
            if each["do"] == "Began":
                found = each.get("object")
                where = "" if found is None else Version(*found).where
                self._attempts[each["attempt"]] = each["handler"], where

    def _with_attempt(self, difference: Difference) -> Difference:
        """The difference, with the attempt that its trace belongs to."""
        number = (difference.now or difference.recorded or {}).get("attempt")
        found = None if number is None else self._attempts.get(number)
        return replace(difference, attempt=found)

    @property
    def known(self) -> Mapping[str, str]:
        return self._known if self._twins is None else self._twins.known

    def _begin_anew(self) -> None:
        """Forget everything: the process has ended there, and another has begun."""
        known = self.known
        self.close()
        self._machine, self._known, self._twins = self._begin(), known, None

    def _decided(self, now: Now, input: Input) -> list[dict[str, Any]]:
        return _decided(self._machine, now, input)

    def close(self) -> None:
        self._machine.close()
        if self._twins is not None:
            self._twins.close()


def _read(record: dict[str, Any]) -> tuple[Now, Input, list[dict[str, Any]]]:
    wall, mono, commands = record["wall"], record["mono"], record["commands"]
    if not (_is_number(wall) and _is_number(mono)):
        raise ValueError("its time is not a number")
    if not isinstance(commands, list) or not all(
        isinstance(each, dict) and isinstance(each.get("do"), str) for each in commands
    ):
        raise ValueError("it has no list of commands")
    return Now(wall, mono), input_from_wire(record["input"]), _in_order(commands)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _decided(machine: Machine, now: Now, input: Input) -> list[dict[str, Any]]:
    return _in_order([command_to_wire(each) for each in machine.feed(now, input)])


def _in_order(commands: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The commands of a step, followed by the traces about them."""
    return sorted(commands, key=lambda each: each["do"] in _TRACES)


_TRACES = frozenset(each.__name__ for each in Trace.__subclasses__())


def _first_difference(
    steps: int,
    record: dict[str, Any],
    recorded: list[dict[str, Any]],
    decided: list[dict[str, Any]],
) -> Difference | None:
    longer = len(decided) - len(recorded)
    for position in range(max(len(recorded), len(decided))):
        was, is_ = _command_at(recorded, position), _command_at(decided, position)
        if canonical(was) != canonical(is_) and not told_alike(was, is_):
            return Difference(steps, record["input"], *_pair_to_show(was, is_, longer))
    return None


def _pair_to_show(
    was: dict[str, Any] | None, is_: dict[str, Any] | None, longer: int
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """The two commands to show as a difference; None if one has no counterpart.

    If two commands are of different kinds, one is additional, and the other comes
    later. `longer` is the number of commands now, minus the number recorded.
    """
    if was is None or is_ is None or was["do"] == is_["do"] or not longer:
        return was, is_
    return (None, is_) if longer > 0 else (was, None)


def _command_at(commands: list[dict[str, Any]], position: int) -> dict[str, Any] | None:
    return commands[position] if position < len(commands) else None


class _Twins:
    """Two operators with the same inputs, but other tokens in place of secrets."""

    def __init__(
        self, machine: Machine, known: Mapping[str, str], given: _Given
    ) -> None:
        program = machine.program
        self._machine = machine
        # Open conversations are driven again, from their journals.
        self._twin: Machine | None = Machine(
            Program(program.handlers, program.settings)
        )
        self._twin.state = machine.state
        self._told, self._twins = (
            Retold(program),
            Retold(program, another_token, given.drawing),
        )
        self._likeness = Likeness(self._told, self._twins, known)
        self._parted: int | None = None
        self._given = given

    @property
    def known(self) -> Mapping[str, str]:
        return self._likeness.known

    def step(self, now: Now, record: dict[str, Any], steps: int) -> Difference | None:
        input, recorded = record["input"], _in_order(record["commands"])
        self._likeness.see(input)
        told = input_from_wire(self._told.input(input))
        decided = _decided(self._machine, now, told)
        others = self._twin_commands(now, input, decided, steps)
        for position in range(max(len(recorded), len(decided))):
            was, is_ = _command_at(recorded, position), _command_at(decided, position)
            counterpart = None if others is None else _command_at(others, position)
            if told_alike(was, is_):
                continue
            if not self._likeness.alike(self._told.command(was), is_, counterpart):
                doubt = self._doubt_about(steps, is_ or was or {})
                return Difference(steps, input, was, is_, doubt)
        return None

    def _twin_commands(
        self, now: Now, input: dict[str, Any], decided: list[dict[str, Any]], steps: int
    ) -> list[dict[str, Any]] | None:
        """The counterpart's commands; None once it decides differently."""
        if self._twin is None:
            return None
        told = input_from_wire(self._twins.input(input))
        others = _decided(self._twin, now, told)
        if list(map(_shape, others)) == list(map(_shape, decided)):
            return others
        self._twin.close()
        self._twin, self._parted = None, steps
        return None

    def _doubt_about(self, steps: int, command: dict[str, Any]) -> str | None:
        if self._likeness.is_derived or self._parted == steps:
            return "derived"
        return "given" if self._given.has_reached(command) else None

    def close(self) -> None:
        if self._twin is not None:
            self._twin.close()


def _shape(command: dict[str, Any]) -> tuple[Any, ...]:
    effect = command.get("effect") or {}
    return command["do"], command.get("id"), effect.get("is")


class _Given:
    """The objects, by their labels, whose handlers may have been given tokens.

    An index shows an object to the handlers of all other objects.
    """

    def __init__(self, program: Program) -> None:
        self._has_indices = any(each.role in INDICES for each in program.handlers)
        self._all = False
        self._reached: set[str] = set()
        # The subject of each request, by the request's id.
        self._asked: dict[int, str] = {}
        # Requests for random bytes that are a secret.
        self.drawing: set[int] = set()
        # The subject of the present input.
        self._about = ""

    def input(self, input: dict[str, Any], *, redacted: bool) -> None:
        is_answer = input["in"] == "Answered"
        drawn = is_answer and input["id"] in self.drawing
        if is_answer:
            self._about = self._asked.pop(input["id"], "")
        else:
            self._about = _label(input.get("body"))
        if drawn or (redacted and has_token(canonical(input))):
            self._reached.update((self._about, *_owners(input.get("body"))))
            self._all = self._all or self._has_indices

    def commands(self, commands: list[dict[str, Any]]) -> None:
        for each in commands:
            if each["do"] == "Perform":
                self._asked[each["id"]] = each.get("subject") or ""
                if each["do"] == "Perform" and draws_secret(each["effect"]):
                    self.drawing.add(each["id"])

    def has_reached(self, command: dict[str, Any]) -> bool:
        """Whether the author of a command may have been given a token."""
        about = command.get("subject", self._about)
        return self._all or about in self._reached


def _owners(body: Any) -> Iterator[str]:
    """The labels of an object's owners, because their handlers see the object."""
    for each in owners_of(Body(body)) if isinstance(body, dict) else ():
        # A cluster-scoped owner has no namespace, but a reference does not say so.
        yield f"{each.namespace}/{each.name}"
        yield each.name


def _label(body: Any) -> str:
    """An object's `namespace/name`, as commands name it (`Subject.label`)."""
    metadata = (body or {}).get("metadata") or {}
    name, namespace = metadata.get("name"), metadata.get("namespace")
    return f"{namespace}/{name}" if namespace else str(name or "")
