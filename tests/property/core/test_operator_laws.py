"""Laws 1, 2, 3 and 5, over drawn operators and scripts of a user.

Operators are made of a small set of behaviours; scripts create, edit and delete
objects, kill the operator, and let watch events come late.  Everything runs in
the simulated cluster, on virtual time.
"""

from __future__ import annotations

import enum
import hashlib
import io
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from inspect import isfunction
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from hypothesis import given, settings, strategies as st
from immutables import Map
from msgspec import Struct

import fnop
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.program.program import Program
from fnop.core.handlers.run import invocation
from fnop.core.memory.observation import FormerValues, Seen
from fnop.core.operator.step import is_settled
from fnop.core.seam.commands import Alarm, Command, Exit, Fetch, ListPage, Perform, Say
from fnop.core.seam.inputs import (
    AlarmRang,
    Answered,
    Bookmark,
    Input,
    ListDone,
    ListItem,
    Started,
    StopRequested,
    StreamEnded,
    WatchEvent,
)
from fnop.core.seam.wire import command_to_wire, input_from_wire, input_to_wire
from fnop.core.values.body import Body
from fnop.core.values.now import Now
from fnop.core.values.table import Table
from fnop.effects.structs import replace
from fnop.effects.values import ReadOnlyDict, ReadOnlyList, canonical
from fnop.interpreters.recording.format.recorder import Recorder, header_of
from fnop.interpreters.recording.redaction import Redaction
from fnop.interpreters.recording.replay.replay import read_header, read_records, replay
from fnop.interpreters.runtime.machine import Machine
from fnop.interpreters.simulation.scenario import final_objects
from tests.property.strategies import all_outcomes, json_values, shuffled
from tests.simulations import ROOT, example
from tests.stories import MARKER, Story
from tests.thorough import examples

KIND = "fnopexamples"
Wire = list[dict[str, Any]]

# ------------------------------------------------------------------- behaviours


def config(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def plan(on: Registry) -> None:
    @fnop.on.create(KIND, registry=on, id="plan")
    def handler(spec: dict[str, Any], **_: Any) -> list[fnop.Effect]:
        return [
            fnop.patch(status={"size": spec.get("size"), "by": "plan"}),
            fnop.adopt({"apiVersion": "v1", "kind": "ConfigMap"}),
            fnop.event("Planned"),
            fnop.sleep(3),
            fnop.patch(labels={"planned": "yes"}),
        ]


def converse(on: Registry) -> None:
    @fnop.on.create(KIND, registry=on, id="converse")
    async def handler(spec: dict[str, Any], name: str, **_: Any) -> dict[str, Any]:
        found = await fnop.get("configmaps", name="none")
        shown = await fnop.patch(status={"by": "converse"})
        view = await fnop.sleep(5)
        everything = await fnop.list("configmaps")
        return {
            "found": found is not None,
            "shown": shown.status["by"],
            "size": view.spec.get("size"),
            "some": bool(everything),
        }


def generate(on: Registry) -> None:
    @fnop.on.update(KIND, registry=on, id="generate")
    def handler(old: Any, spec: dict[str, Any], **_: Any) -> Iterator[fnop.Effect]:
        yield fnop.sleep(2)
        before = old["spec"].get("size") if old and "spec" in old else None
        yield fnop.patch(status={"was": before, "is": spec.get("size")})


def fails(on: Registry) -> None:
    @fnop.on.create(KIND, registry=on, id="fails")
    @fnop.on.update(KIND, registry=on, id="fails")
    def handler(**_: Any) -> None:
        raise fnop.PermanentError("never")


def retries(on: Registry) -> None:
    @fnop.on.create(KIND, registry=on, id="retries")
    @fnop.on.update(KIND, registry=on, id="retries")
    def handler(retry: int, spec: dict[str, Any], **_: Any) -> dict[str, Any]:
        if retry < 2:
            raise fnop.TemporaryError("not yet", delay=5)
        return {"size": spec.get("size")}


def retries_long(on: Registry) -> None:
    @fnop.on.create(KIND, registry=on, id="retries_long", retries=3)
    @fnop.on.update(KIND, registry=on, id="retries_long", retries=3, backoff=70)
    def handler(retry: int, **_: Any) -> None:
        raise RuntimeError("again and again")


def waits(on: Registry) -> None:
    @fnop.on.create(KIND, registry=on, id="waits", timeout=100)
    def handler(runtime: Any, **_: Any) -> Any:
        if runtime.total_seconds() < 7:
            return fnop.again(after=4, because="it is too early")
        return {"ready": True}


def deletes(on: Registry) -> None:
    @fnop.on.delete(KIND, registry=on, id="deletes")
    async def handler(retry: int, **_: Any) -> fnop.Effect:
        await fnop.sleep(1)
        if not retry:
            raise fnop.TemporaryError("not yet", delay=2)
        return fnop.patch(status={"by": "deletes"})


def follows(on: Registry) -> None:
    @fnop.on.field(KIND, field="spec.size", registry=on, id="follows")
    def handler(old: Any, new: Any, **_: Any) -> dict[str, Any]:
        return {"old": old, "new": new}


def spies(on: Registry) -> None:
    @fnop.on.event(KIND, registry=on, id="spies")
    def handler(type: str | None, spec: dict[str, Any], **_: Any) -> fnop.Effect | None:
        if type == "DELETED":
            return None
        return fnop.patch(annotations={"example.com/size": str(spec.get("size"))})


def _is_sized(spec: dict[str, Any], **_: Any) -> bool:
    return bool(spec["size"])


def crashes(on: Registry) -> None:
    @fnop.on.create(KIND, registry=on, id="crashes", retries=2)
    @fnop.on.update(KIND, registry=on, id="crashes", retries=2, when=_is_sized)
    def handler(**_: Any) -> fnop.Effect:
        return fnop.create(config("Not_A_Name"))


def rolls(on: Registry) -> None:
    @fnop.on.create(KIND, registry=on, id="rolls")
    async def handler(status: dict[str, Any], **_: Any) -> Any:
        return {"dice": (await fnop.random(4)).hex()}


Behaviour = Callable[[Registry], None]
BEHAVIOURS: tuple[Behaviour, ...] = (
    plan,
    converse,
    generate,
    fails,
    retries,
    retries_long,
    waits,
    deletes,
    follows,
    spies,
    crashes,
    rolls,
)


def handlers_of(behaviours: Sequence[Behaviour]) -> tuple[Handler, ...]:
    """An operator, freshly declared."""
    registry = Registry()
    for each in behaviours:
        each(registry)
    return registry.handlers


# ---------------------------------------------------------------------- scripts

NAMES = ("one", "two")
sizes = st.integers(0, 3)
names = st.sampled_from(NAMES)
actions = st.one_of(
    st.tuples(st.just("create"), names, sizes),
    st.tuples(st.just("edit"), names, sizes),
    st.tuples(st.just("label"), names, sizes),
    st.tuples(st.just("touch"), names, sizes),
    st.tuples(st.just("delete"), names, st.just(0)),
    st.tuples(st.just("wait"), st.just(""), st.sampled_from([0, 1, 4, 30, 100])),
    st.tuples(st.just("steps"), st.just(""), st.integers(1, 12)),
    st.tuples(st.just("late"), st.just(""), st.just(0)),
    st.tuples(st.just("catch up"), st.just(""), st.integers(1, 3)),
    st.tuples(st.just("expire"), st.just(""), st.just(0)),
)
crash = st.tuples(st.just("crash"), st.just(""), st.just(0))
Script = Sequence[tuple[str, str, int]]

operators = st.lists(st.sampled_from(BEHAVIOURS), min_size=1, max_size=4, unique=True)
begins = st.just(("create", "one", 1))
calm_scripts = st.builds(
    lambda first, rest: [first, *rest], begins, st.lists(actions, max_size=10)
)
scripts = st.builds(
    lambda first, rest: [first, *rest], begins, st.lists(actions | crash, max_size=10)
)


def is_unforeseen(command: Command) -> bool:
    """Whether the core reports that it had to give up something unforeseen."""
    return isinstance(command, Say) and (
        "an unexpected error" in command.message
        or "cannot be decided" in command.message
    )


class Life(Story):
    """A story that follows a script."""

    def _list(self, command: ListPage) -> None:
        """A gap in the watch: a listing has all that is held, and makes up for it."""
        self.lose_events()
        super()._list(command)

    def act(self, verb: str, name: str, size: int) -> None:
        if name:
            self.act_on(verb, name, size, there=self.get(KIND, name) is not None)
            return
        match verb:
            case "wait":
                self.settle(seconds=size)
            case "steps":
                for _ in range(size):
                    self.advance(self.clock.elapsed)
            case "late":
                self.late_events = True
            case "catch up":
                self.let_events_through(min(size, len(self.events)))
            case "expire":
                for number in self.streams.values():
                    self.feed(StreamEnded(number, "refused", 410, "too old"))
            case "crash":
                self.crash()
            case _:
                raise AssertionError(verb)

    def act_on(self, verb: str, name: str, size: int, *, there: bool) -> None:
        """A user's action on one object, if it is possible."""
        match verb:
            case "create" if not there:
                self.apply(example(name, size=size))
            case "edit" if there:
                self.edit(KIND, name, spec={"size": size})
            case "label" if there:
                self.edit(KIND, name, metadata={"labels": {"tier": str(size)}})
            case "touch" if there:
                self.user_sets_status({"touched": size}, name)
            case "delete" if there:
                self.delete(KIND, name)
            case _:
                pass

    def follow(self, script: Script) -> None:
        for action in script:
            self.act(*action)
        self.let_events_through()
        assert self.settle(), self.lines[-5:]
        assert not any(map(is_unforeseen, self.said))


def live(
    behaviours: Sequence[Behaviour],
    script: Script,
    *,
    cls: type[Life] = Life,
    observers: Sequence[Any] = (),
) -> Life:
    life = cls(handlers_of(behaviours))
    life.machine._observers = (*life.machine._observers, *observers)
    life.follow(script)
    return life


def wires(commands: Sequence[Command]) -> list[bytes]:
    return [canonical(command_to_wire(command)) for command in commands]


def processes(life: Life) -> list[list[tuple[Now, Input, tuple[Command, ...]]]]:
    """The steps of a life, process by process."""
    found: list[list[tuple[Now, Input, tuple[Command, ...]]]] = []
    for each in life.trace.steps:
        if isinstance(each[1], Started):
            found.append([])
        found[-1].append(each)
    return found


# ------------------------------------------------------- 1: equal in, equal out


@settings(max_examples=examples(15))
@given(operators, scripts, st.none() | st.randoms(use_true_random=False))
def test_law_1_the_same_inputs_lead_to_the_same_commands(
    behaviours: Sequence[Behaviour], script: Script, chance: random.Random | None
) -> None:
    """With a fresh program, without any cache, and with re-ordered mappings."""
    life = live(behaviours, script)
    for steps in processes(life):
        machine = Machine(Program(handlers_of(behaviours)))
        for now, input, commands in steps:
            wire = input_to_wire(input)
            if chance is not None:
                wire = shuffled(wire, chance)
                machine.live.clear()
            again = machine.feed(now, input_from_wire(wire))
            assert wires(again) == wires(commands)
        machine.close()


def as_text(input: Input) -> Input:
    """The input as a transport gives it: an object is its JSON text."""
    match input:
        case ListItem() | WatchEvent():
            return replace(input, body=Body(None, orjson.dumps(input.body.data)))
        case _:
            return input


@settings(max_examples=examples(15))
@given(operators, scripts)
def test_law_1_packed_texts_change_nothing(
    behaviours: Sequence[Behaviour], script: Script
) -> None:
    """Even if nothing is kept but packed texts, however few objects there are."""
    life = live(behaviours, script)
    with (
        patch("fnop.interpreters.runtime.machine.PLAIN_MAX", -1),
        patch("fnop.core.values.body._PARSED_MAX", 1),
    ):
        for steps in processes(life):
            machine = Machine(Program(handlers_of(behaviours)))
            for now, input, commands in steps:
                assert wires(machine.feed(now, as_text(input))) == wires(commands)
            machine.close()


SCRIPT: Script = [
    ("create", "one", 1),
    ("create", "two", 2),
    ("wait", "", 4),
    ("edit", "one", 2),
    ("label", "two", 1),
    ("steps", "", 3),
    ("late", "", 0),
    ("edit", "two", 3),
    ("wait", "", 30),
    ("crash", "", 0),
    ("wait", "", 1),
    ("delete", "one", 0),
    ("touch", "two", 1),
]


def digest_of_everything() -> str:
    """One text for all commands of one eventful life of one large operator."""
    found = hashlib.blake2b()
    life = live(BEHAVIOURS, SCRIPT)
    for _, input, commands in life.trace.steps:
        found.update(canonical(input_to_wire(input)))
        for wire in wires(commands):
            found.update(wire)
    for each in final_objects(life):
        found.update(canonical(each))
    return f"{len(life.trace.steps)} {found.hexdigest()}"


def test_law_1_in_another_process_under_another_hash_seed() -> None:
    code = (
        "from tests.property.core.test_operator_laws import digest_of_everything;"
        "print(digest_of_everything())"
    )
    # Another seed than this process has, which is random unless the environment sets
    # it.
    seed = "1" if os.environ.get("PYTHONHASHSEED") == "0" else "0"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        here = digest_of_everything()
        said, _ = running.communicate(timeout=120)
    assert said.strip() == here


# --------------------------------------------- 2: nothing that is there is changed


class Frozen:
    """The value of a state, and whether anything in it could be changed.

    Parsed JSON is the only thing that may be reached as a plain dict or list: a
    read-only view over what the API server sent, or a mapping field.  Its value is part
    of the fingerprint, so that any write to it is found.
    """

    def __init__(self) -> None:
        self.known: dict[int, tuple[Any, Any]] = {}

    def of(self, value: Any) -> Any:
        """A JSON-able form, equal for equal values; fails for what is mutable."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, bytes):
            return value.hex()
        if isinstance(value, enum.Enum):
            return value.name
        if isinstance(value, Body):
            return {"body": value.data}
        if isinstance(value, FormerValues):
            return {"former": value.parsed}
        if isinstance(value, Seen):
            return {"digests": dict(value.digests), "values": self.of(value.values)}
        if isinstance(value, (ReadOnlyDict, ReadOnlyList)):
            return value
        if isinstance(value, Handler):
            return value.id
        if isinstance(value, BaseException):
            return repr(value)
        if isfunction(value):
            return f"{value.__module__}.{value.__qualname__}"
        return self.of_container(value)

    def of_container(self, value: Any) -> Any:
        if isinstance(value, (Map, Table)):
            items = [[self.of(key), self.of(item)] for key, item in value.items()]
            return sorted(items, key=canonical)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            types = type(value).__annotations__
            return {
                name: self.of_field(getattr(value, name), _declared(types[name]))
                for name in value._fields
            }
        if isinstance(value, tuple):
            return [self.of(item) for item in value]
        if isinstance(value, frozenset):
            return sorted((self.of(item) for item in value), key=canonical)
        assert isinstance(value, Struct), f"a state reaches a {type(value).__name__}"
        kind: Any = type(value)
        assert kind.__struct_config__.frozen, f"{kind.__name__} is not frozen"
        return {
            name: self.of_field(getattr(value, name), _annotation(kind, name))
            for name in kind.__struct_fields__
        }

    def of_field(self, value: Any, declared: str) -> Any:
        if type(value) is dict and declared.startswith("Mapping["):
            return {key: self.of_item(item) for key, item in value.items()}
        if type(value) in (dict, list) and declared in ("Any", "dict[str, Any]"):
            return value
        return self.of(value)

    def of_item(self, value: Any) -> Any:
        return value if type(value) in (dict, list) else self.of(value)


def _annotation(kind: Any, name: str) -> str:
    found = next(each for each in kind.__mro__ if name in each.__annotations__)
    return str(found.__annotations__[name])


def _declared(annotation: Any) -> str:
    """A type as it was written."""
    return str(getattr(annotation, "__forward_arg__", annotation))


class Watched(Life):
    """A life, with a comparison before and after each step."""

    drives = 0

    def take(self, place: int = 0) -> tuple[Command, ...]:
        frozen = Frozen()
        input, state = self.inbox[place].input, self.machine.state
        was = canonical(input_to_wire(input))
        state_was = canonical(frozen.of(state))
        commands = super().take(place)
        assert canonical(input_to_wire(input)) == was, "an input was modified"
        assert canonical(frozen.of(state)) == state_was, "an old state was modified"
        self.kept.append((state, state_was))
        return commands

    @property
    def kept(self) -> list[tuple[Any, bytes]]:
        found: list[tuple[Any, bytes]] = self.__dict__.setdefault("_kept", [])
        return found


@settings(max_examples=examples(10))
@given(operators, scripts)
def test_law_2_inputs_and_states_stay_what_they_are(
    behaviours: Sequence[Behaviour], script: Script
) -> None:
    life = live(behaviours, script, cls=Watched)
    assert isinstance(life, Watched)
    canonical(Frozen().of(life.machine.state))
    # Old states are time travel: none has changed since, and each can be stepped.
    for state, was in life.kept[:: max(1, len(life.kept) // 10)]:
        assert canonical(Frozen().of(state)) == was


def test_law_2_an_old_state_can_be_stepped_again() -> None:
    """Time travel: the same step from the same state, long after."""
    behaviours = (plan, converse, deletes)
    life = live(behaviours, SCRIPT)
    machine = Machine(Program(handlers_of(behaviours)))
    states, steps = [], processes(life)[0]
    for now, input, _ in steps:
        states.append(machine.state)
        machine.feed(now, input)
    for state, (now, input, commands) in reversed(
        list(zip(states, steps, strict=True))
    ):
        machine.state = state
        assert wires(machine.feed(now, input)) == wires(commands)


def test_a_mutable_state_would_be_seen() -> None:
    with pytest.raises(AssertionError, match="a state reaches a list"):
        Frozen().of((1, [2]))


# -------------------------------------------------------------- 3: quiescence


@settings(max_examples=examples(30))
@given(operators, scripts, st.sampled_from(["restart", "relist", "both"]))
def test_law_3_when_the_world_matches_nothing_is_written(
    behaviours: Sequence[Behaviour], script: Script, again: str
) -> None:
    life = live(behaviours, script)
    before, written = final_objects(life), len(life.sent)
    if again in ("relist", "both"):
        for number in life.streams.values():
            life.feed(StreamEnded(number, "refused", 410, "too old"))
        assert life.settle()
    if again in ("restart", "both"):
        life.crash()
        assert life.settle()
    assert life.sent[written:] == []
    assert canonical(final_objects(life)) == canonical(before)


@settings(max_examples=examples(20))
@given(operators, scripts)
def test_law_3_settled_means_that_nothing_is_left_open(
    behaviours: Sequence[Behaviour], script: Script
) -> None:
    life = live(behaviours, script)
    state = life.machine.state
    assert is_settled(state)
    assert not life.machine.live.drives, "a conversation was left behind"
    assert all(known.work is None for known in state.objects.records.values())
    assert {key.name for key in state.objects.records} == {
        each["metadata"]["name"] for each in life.objects(KIND)
    }


# ------------------------------------------------- 5: one effect, one answer; records


@settings(max_examples=examples(20))
@given(operators, scripts)
def test_law_5_every_effect_is_answered_by_exactly_one_outcome(
    behaviours: Sequence[Behaviour], script: Script
) -> None:
    life = live(behaviours, script)
    *_, last = histories = processes(life)
    for steps in histories:
        asked = Counter(
            command.id
            for _, _, commands in steps
            for command in commands
            if isinstance(command, Perform | Fetch)
        )
        answered = Counter(
            input.id for _, input, _ in steps if isinstance(input, Answered)
        )
        assert set(asked.values()) <= {1}, "an id was used twice"
        assert set(answered.values()) <= {1}
        assert answered.keys() <= asked.keys()
        if steps is last:
            assert answered == asked


@settings(max_examples=examples(10))
@given(operators, calm_scripts)
def test_law_5_recording_changes_nothing_and_replaying_shows_no_difference(
    behaviours: Sequence[Behaviour], script: Script
) -> None:
    plain = live(behaviours, script)
    file = io.BytesIO()
    program = Program(handlers_of(behaviours))
    recorder = Recorder(file, header_of(program, "test"), Redaction(b"k" * 16, program))
    recorded = live(behaviours, script, observers=[recorder])
    recorder.finish()
    assert [wires(commands) for *_, commands in recorded.trace.steps] == [
        wires(commands) for *_, commands in plain.trace.steps
    ]
    assert canonical(final_objects(recorded)) == canonical(final_objects(plain))
    file.seek(0)
    records = read_records(file)
    read_header(records)
    found = replay(records, program)
    assert found.difference is None
    assert not found.truncated
    assert found.steps == len(recorded.trace.steps)


def test_law_5_a_replay_of_other_code_shows_the_first_difference() -> None:
    file = io.BytesIO()
    program = Program(handlers_of([plan]))
    recorder = Recorder(file, header_of(program, "test"), Redaction(b"k" * 16, program))
    live([plan], [("create", "one", 1)], observers=[recorder])
    recorder.finish()
    file.seek(0)
    records = read_records(file)
    read_header(records)
    found = replay(records, Program(handlers_of([converse])))
    assert found.difference is not None
    assert found.difference.handler in ("plan", "converse")


# ------------------------------------------------------ R11: one drive in a step


class Counting(Life):
    """A life that counts how often user code is driven in each step."""

    def take(self, place: int = 0) -> tuple[Command, ...]:
        driven: list[str] = []
        advance, cancel = invocation.advance, invocation.cancel

        def counted(name: str, drive: Callable[..., Any]) -> Callable[..., Any]:
            def inner(*arguments: Any) -> Any:
                driven.append(name)
                return drive(*arguments)

            return inner

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(invocation, "advance", counted("advance", advance))
            patch.setattr(invocation, "cancel", counted("cancel", cancel))
            commands = super().take(place)
        assert len(driven) <= 1, driven
        return commands


@settings(max_examples=examples(20))
@given(operators, scripts)
def test_r11_user_code_is_driven_at_most_once_in_a_step(
    behaviours: Sequence[Behaviour], script: Script
) -> None:
    live(behaviours, script, cls=Counting)


# ---------------------------------------------------- `step` is total, whatever comes


@cache
def lived(number: int) -> tuple[Input, ...]:
    """The inputs of a life, as raw material."""
    groups: Mapping[int, Sequence[Behaviour]] = {
        0: (plan, converse, deletes, spies),
        1: (generate, retries, follows, waits, deletes),
        2: (fails, retries_long, crashes, rolls),
    }
    life = live(groups[number], [each for each in SCRIPT if each[0] != "crash"])
    return tuple(input for _, input, _ in life.trace.steps)


texts = st.sampled_from(["", "one", "two", "default", "110", "junk"])
junk = json_values | texts
WELL_FORMED: dict[str, Any] = {
    "name": "one",
    "namespace": "default",
    "uid": "a-uid",
    "resourceVersion": "999",
}
MEMBERS = (
    *WELL_FORMED,
    "labels",
    "annotations",
    "finalizers",
    "deletionTimestamp",
    "ownerReferences",
    "generation",
)
metadata = st.builds(
    lambda change: {**WELL_FORMED, **change},
    st.dictionaries(
        st.sampled_from(MEMBERS),
        junk | texts | st.dictionaries(st.just(MARKER), junk),
        max_size=3,
    ),
)
bodies = st.builds(
    lambda top, meta: Body({**example("one", size=1), "metadata": meta, **top}),
    st.dictionaries(
        st.sampled_from(["kind", "apiVersion", "metadata", "spec", "status"]),
        junk | st.dictionaries(st.just(MARKER), junk),
        max_size=2,
    ),
    metadata,
)
numbers = st.integers(0, 60)
wild_inputs = st.one_of(
    st.builds(Started, texts),
    st.builds(Answered, numbers, all_outcomes),
    st.builds(ListItem, numbers, bodies),
    st.builds(ListDone, numbers, texts, st.none() | texts),
    st.builds(
        WatchEvent, numbers, st.sampled_from(["ADDED", "MODIFIED", "DELETED"]), bodies
    ),
    st.builds(Bookmark, numbers, texts),
    st.builds(
        StreamEnded,
        numbers,
        st.sampled_from(["eof", "silent", "undecodable", "refused", "unreachable"]),
        st.none() | st.sampled_from([401, 403, 404, 410, 500]),
        texts,
    ),
    st.just(AlarmRang()),
)
mishaps = st.lists(
    st.tuples(
        st.sampled_from(["drop", "twice", "swap", "insert", "insert", "late", "stop"]),
        st.integers(0, 80),
        wild_inputs,
    ),
    max_size=12,
)


def addressed(wild: Input, inputs: Sequence[Input]) -> Input:
    """A wild input about a stream or a command that there is, most of the time."""
    for name in ("stream", "id"):
        number = getattr(wild, name, None)
        if number is None or number % 5 == 0:
            continue
        known = sorted({getattr(each, name, 0) for each in inputs})
        return replace(wild, **{name: known[number % len(known)]})
    return wild


MALFORMED: tuple[Any, ...] = (None, 5, True, [], [1, None], {}, {"a": None}, "text")


@pytest.mark.parametrize("member", [*MEMBERS, "spec", "status", "metadata", "kind"])
def test_step_never_raises_on_malformed_members(member: str) -> None:
    inputs = lived(0)
    (watch,) = {each.stream for each in inputs if isinstance(each, WatchEvent)}
    listing = next(each.stream for each in inputs if isinstance(each, ListItem))
    for value in MALFORMED:
        body: dict[str, Any] = {**example("one", size=1), "metadata": WELL_FORMED}
        if member in MEMBERS:
            body["metadata"] = {**WELL_FORMED, member: value}
        else:
            body[member] = value
        for wild in (
            ListItem(listing, Body(body)),
            WatchEvent(watch, "ADDED", Body(body)),
            WatchEvent(watch, "DELETED", Body(body)),
        ):
            machine = Machine(Program(_program_of(0)))
            said: list[Command] = []
            for position, input in enumerate(inputs):
                said += machine.feed(Now(1.8e9 + position, float(position)), input)
                if getattr(input, "stream", None) == wild.stream:
                    said += machine.feed(Now(1.8e9 + position, float(position)), wild)
            # Without a name there is nothing that could be done about an object.
            if member not in ("name", "metadata"):
                assert not any(map(is_unforeseen, said)), value
            machine.close()


def troubled(
    inputs: Sequence[Input], script: Sequence[tuple[str, int, Input]]
) -> list[Input]:
    """Inputs as no API server sends them."""
    found = list(inputs)
    for verb, position, wild in script:
        at = position % max(1, len(found))
        wild = addressed(wild, inputs)
        match verb:
            case "drop" if found:
                del found[at]
            case "twice" if found:
                found.insert(at, found[at])
            case "swap" if found:
                found[at], found[at - 1] = found[at - 1], found[at]
            case "insert":
                found.insert(at, wild)
            case "late" if found:
                found.append(found.pop(at))
            case "stop":
                found.insert(max(at, len(found) - 5), StopRequested("enough"))
            case _:
                pass
    return found


@settings(max_examples=examples(50))
@given(
    st.integers(0, 2),
    mishaps,
    st.lists(st.floats(0, 100), min_size=1, max_size=5),
)
def test_step_never_raises(
    number: int, script: Sequence[tuple[str, int, Input]], pace: Sequence[float]
) -> None:
    machine = Machine(Program(_program_of(number)))
    mono, alarm = 0.0, None
    for position, input in enumerate(troubled(lived(number), script)):
        mono += pace[position % len(pace)]
        commands = machine.feed(Now(1.8e9 + mono, mono), input)
        for command in commands:
            canonical(command_to_wire(command))
            if isinstance(command, Alarm):
                alarm = command.at
    # Then silence: it settles, with nothing but alarms.
    for _ in range(200):
        if alarm is None:
            break
        mono, alarm = max(mono, alarm), None
        for command in machine.feed(Now(1.8e9 + mono, mono), AlarmRang()):
            canonical(command_to_wire(command))
            if isinstance(command, Alarm):
                alarm = command.at
            assert not isinstance(command, Exit) or command.reason
    canonical(Frozen().of(machine.state))
    machine.close()


@cache
def _program_of(number: int) -> tuple[Handler, ...]:
    groups: Mapping[int, Sequence[Behaviour]] = {
        0: (plan, converse, deletes, spies),
        1: (generate, retries, follows, waits, deletes),
        2: (fails, retries_long, crashes, rolls),
    }
    return handlers_of(groups[number])


@settings(max_examples=examples(60))
@given(operators, st.lists(wild_inputs, max_size=30))
def test_step_never_raises_on_nonsense_alone(
    behaviours: Sequence[Behaviour], inputs: Sequence[Input]
) -> None:
    machine = Machine(Program(handlers_of(behaviours)))
    for position, input in enumerate((Started("0"), *inputs, StopRequested("enough"))):
        for command in machine.feed(Now(1.8e9 + position, float(position)), input):
            canonical(command_to_wire(command))
    machine.close()
