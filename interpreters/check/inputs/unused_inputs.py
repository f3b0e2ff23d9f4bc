"""Inputs without effect: the code looks at them, and they never matter.

A handler needs the inputs that it looks at for something. If an input never has an
effect, for any value, the author forgot the effect: a write, a condition, a branch. An
input *matters* if two situations that differ only in it lead to two decisions, of any
handler. An input that a helper reads counts for all its callers. The situations are
searched for. First comes another value in an attempt of the run, then situations that
make the code look further than it did, then random ones.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec import Struct

from fnop.effects import Effect, Get, List
from fnop.effects.structs import replace
from fnop.interpreters.check.inputs.input_reads import Look, fetched, looks_at, unsaid
from fnop.interpreters.check.inputs.likely import (
    constants_at,
    constants_of,
    one_more,
    other_objects,
    others_of,
)
from fnop.interpreters.check.inputs.redeciding import (
    ABSENT,
    Attempt,
    Decision,
    Inputs,
    Path,
    code_of,
)

__all__ = ["Looked", "asked_for", "endings_of", "looked_at"]

# An input without effect so far is tried in this number of random situations.
TRIES = 1000
# It is judged only if this number of its other values lead to any decision at all.
DECISIONS_MIN = 2
# To find where the code looks further, each attempt is decided this number of times,
# and this number of situations are kept.
STEPS_MAX, SITUATIONS_MAX = 400, 12
# The likeliest values of an input: those that are tried to look further, and those that
# are tried more often than the others.
LIKELY, LIKELIEST = 12, 5
# The number of attempts whose further situations are searched for.
PLACES_MAX = 3
_RETRIES = (0, 0, 0, 1, 3, 10)
# The steps, in seconds, by which the clock is moved ahead: an age is an input as well.
_LATER = (2.0, 60.0, 3600.0, 1e5, 1e8)


class Input(Struct, frozen=True):
    """An input: a field of the object, or of the answer to a request."""

    field: str
    asked: str = ""

    def __str__(self) -> str:
        answer = f"the answer to `{self.asked}`"
        if not self.asked:
            return self.field
        return f"{self.field} of {answer}" if self.field else answer

    def holds(self, other: Input) -> bool:
        """Whether another input is a part of it."""
        return self.asked == other.asked and other.field.startswith(self.field)


class Place(NamedTuple):
    """The place of a look: the attempt, and the input in it."""

    attempt: Attempt
    path: Path


class Looked(Struct, frozen=True):
    """The inputs that were looked at: those that matter, and a sentence for others."""

    matter: frozenset[Input] = frozenset()
    left: Mapping[Input, str] = MappingProxyType({})

    def unheeded(self, beside: Iterable[Looked]) -> Iterator[str]:
        """A sentence for each input without effect, in other runs either.

        The sentence about the outermost input covers its parts.
        """
        matter = {each for other in beside for each in other.matter}
        left = [each for each in self.left if not any(map(each.holds, matter))]
        for input in left:
            if not any(other != input and other.holds(input) for other in left):
                yield self.left[input]


def looked_at(real: Sequence[Attempt], others: Sequence[Attempt]) -> Looked:
    """The inputs of `real` attempts, and their effects.

    They may matter to `others`, too: attempts of handlers that were not called.
    """
    source = random.Random(0)
    ways = {each: _Ways(each, source) for each in (*real, *others)}
    looks: dict[Input, tuple[str, Look]] = {}
    places: dict[Input, list[Place]] = {}
    for each in real:
        for path, look in (*looks_at(each), *_questions(each)):
            input = _input_at(each, path)
            looks.setdefault(input, (each.handler.id, look))
            places.setdefault(input, []).append(Place(each, path))
            ways[each].looks[path] = look
    for each in others:
        with suppress(Exception):  # the code never was in such a situation
            for path, look in looks_at(each):
                ways[each].looks[path] = look
                if (input := _input_at(each, path)) in looks:
                    places[input].append(Place(each, path))
    matters = {input: _matters(places[input], ways, source) for input in looks}
    doubtful = [input for input, does in matters.items() if does is not False]
    left = {
        input: _unheeded_message(input, *found)
        for input, found in looks.items()
        if not any(map(input.holds, doubtful))
    }
    return Looked(frozenset(input for input, does in matters.items() if does), left)


def _unheeded_message(input: Input, who: str, look: Look) -> str:
    file = os.path.basename(look.code.co_filename)
    return (
        f"{who} looks at {input} ({file}, line {look.line}), and nothing ever "
        "comes of it: let it do what should follow from it, or not look"
    )


def _questions(attempt: Attempt) -> Iterator[tuple[Path, Look]]:
    """The answers to an attempt's requests: a request counts as a look."""
    code = code_of(attempt.handler.declared)
    assert code is not None
    for number, asked in enumerate(attempt.asked):
        if isinstance(asked.effect, (Get, List)) and attempt.inputs.answers[number]:
            yield ("answers", number), Look(code, code.co_firstlineno)


def _input_at(attempt: Attempt, path: Path) -> Input:
    rest = path[1:] if path[0] == "object" else path[2:]
    field = "".join(f".{each}" if isinstance(each, str) else "[]" for each in rest)
    field = field.removeprefix("[]").removeprefix(".")
    if path[0] == "object":
        return Input(field)
    return Input(field, asked_for(attempt.asked[int(path[1])].effect))


def asked_for(effect: Effect) -> str:
    """The requested effect, in words: `get secrets`."""
    match effect:
        case Get(target=target):
            return f"get {target.resource}"
        case List(resource=resource):
            return f"list {resource}"
        case _:
            return effect.kind.lower()


# ------------------------------------------------------------------------ the search


def _matters(
    places: Sequence[Place], ways: dict[Attempt, _Ways], source: random.Random
) -> bool | None:
    """Whether an input matters; None if that cannot be decided."""
    decisions = 0
    for attempt, path in places:
        inputs = attempt.inputs
        usual = attempt.decided(inputs)
        others = [*ways[attempt].others(path, inputs.at(path))]
        for other in others:
            decision = attempt.decided(inputs.with_(path, other))
            if decision.differs(usual):
                return True
            decisions += decision.error is None
        if any(_differs_later(attempt, path, others[:LIKELY])):
            return True
    if decisions < DECISIONS_MIN:
        return None  # its other values are unknown
    few = places[:PLACES_MAX]
    for attempt, _ in few:
        ways[attempt].go_further()
    chosen = (source.choice(few) for _ in range(TRIES))
    return any(ways[attempt].differs_at(path) for attempt, path in chosen)


def _differs_later(
    attempt: Attempt, path: Path, others: Sequence[Any]
) -> Iterator[bool]:
    """Whether other values lead to another decision when time has passed."""
    for seconds in _LATER:
        inputs = replace(attempt.inputs, later=seconds)
        usual = attempt.decided(inputs)
        for other in others:
            yield attempt.decided(inputs.with_(path, other)).differs(usual)


def endings_of(attempt: Attempt) -> Iterator[tuple[Inputs, Decision]]:
    """The decisions of an attempt in all situations that are searched."""
    ways = _Ways(attempt, random.Random(0))
    ways.go_further()
    for inputs in ways.situations():
        yield inputs, attempt.decided(inputs)


class _Ways:
    """The situations of one attempt, and the ways that make its code look further."""

    def __init__(self, attempt: Attempt, source: random.Random) -> None:
        self.looks: dict[Path, Look | None] = {}
        self._attempt, self._random = attempt, source
        self._known = constants_of(attempt.handler.declared)
        self._situations = [attempt.inputs]
        self._has_gone = False

    def go_further(self) -> None:
        """Find situations that make the code look at more than before."""
        if self._has_gone:
            return
        self._has_gone = True
        attempt = self._attempt
        self.looks.update(fetched(attempt, attempt.inputs))
        for path in unsaid(attempt):
            self.looks.setdefault(path, None)
        for seconds in _LATER:
            self._keep_if_new(replace(attempt.inputs, later=seconds))
        steps = 0
        for inputs in self._situations:  # it grows meanwhile
            for path in [*self.looks]:
                for other in islice(self.others(path, inputs.at(path)), LIKELY):
                    steps += 1
                    self._keep_if_new(inputs.with_(path, other))
                    if steps >= STEPS_MAX or len(self._situations) >= SITUATIONS_MAX:
                        return

    def situations(self) -> Iterator[Inputs]:
        """All situations that were found, with one input changed, and with a few."""
        for inputs in self._situations:
            yield inputs
            for path in self.looks:
                for other in self.others(path, inputs.at(path)):
                    yield inputs.with_(path, other)
        paths = [*self.looks]
        for _ in range(TRIES if paths else 0):
            inputs = self._random.choice(self._situations)
            number = self._random.randint(1, min(4, len(paths)))
            for each in self._random.sample(paths, number):
                inputs = self._inputs_with_change(inputs, each)
            yield inputs

    def _keep_if_new(self, inputs: Inputs) -> None:
        """Keep a situation in which the code looks at something for the first time."""
        looks = fetched(self._attempt, inputs)
        if not looks.keys() <= self.looks.keys():
            self.looks.update(looks)
            self._situations.append(inputs)

    def differs_at(self, path: Path) -> bool:
        """Whether an input matters in a random one of the situations."""
        inputs = self._random.choice(self._situations)
        inputs = replace(
            inputs,
            retry=self._random.choice(_RETRIES),
            later=self._random.choice((*3 * (inputs.later,), *_LATER)),
        )
        paths = [each for each in self.looks if each != path]
        number = self._random.randint(0, min(3, len(paths)))
        for each in self._random.sample(paths, number):
            inputs = self._inputs_with_change(inputs, each)
        one, other = inputs, self._inputs_with_change(inputs, path)
        return self._attempt.decided(other).differs(self._attempt.decided(one))

    def _inputs_with_change(self, inputs: Inputs, path: Path) -> Inputs:
        """The inputs with another value at a path, if one exists."""
        others = [*self.others(path, inputs.at(path))]
        if not others:
            return inputs
        likely = others[:LIKELIEST] if self._random.random() < 0.6 else others
        return inputs.with_(path, self._random.choice(likely))

    def others(self, path: Path, value: Any) -> Iterator[Any]:
        """Other values that an input could have had, the likeliest first."""
        if path[0] == "answers" and len(path) == 2:
            owner = self._attempt.inputs.object
            if isinstance(value, dict):
                yield None
                yield from other_objects(value, owner)
            elif isinstance(value, list):
                yield []
                for other in other_objects(value[0], owner) if value else ():
                    yield [other, *value[1:]]
                yield from ([*value, each] for each in one_more(value))
                yield from others_of(value)
            return
        look = self.looks.get(path)
        near = [] if look is None else constants_at(look.code, look.line)
        if value is ABSENT:
            yield from (True, *near, 1, "x", ["x"], {"x": "x"}, *self._known)
            return
        yield from (
            each for each in near if type(each) is type(value) and each != value
        )
        if path[0] == "answers" and isinstance(value, str):
            yield from self._own_names()
        yield from others_of(value)
        yield ABSENT
        yield from others_of(value, self._known)

    def _own_names(self) -> Iterator[str]:
        """The texts that others may use to refer to the handled object."""
        meta = (self._attempt.inputs.object or {}).get("metadata", {})
        yield from (meta[key] for key in ("name", "uid") if key in meta)
