"""What the decisions of handlers tell, when they are made again with other inputs.

What a handler looks at it needs for something.  Where nothing ever comes of it,
whatever it is, what should have come of it was forgotten: a write, a condition, a
branch.  An input *matters* if there are two situations which differ in it alone, and
two decisions.  It is judged by the function that looks: what a helper reads is for all
who call it.
"""

from __future__ import annotations

import dis
import os
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from types import CodeType
from typing import Any, NamedTuple

from fnop.core.handlers.arguments import Situation
from fnop.core.handlers.handler import Handler
from fnop.core.handlers.invocation import Journal
from fnop.core.handlers.roles import Family
from fnop.core.seam.effect_rules import Needs, rule_of
from fnop.core.values.cause import Reason
from fnop.effects import Again, Effect, Get, List, Outcome
from fnop.effects.values import digest
from fnop.effects.wire import encode
from fnop.interpreters.check.likely import constants_of, other_objects, others_of
from fnop.interpreters.check.looking import Look, below, looks_at
from fnop.interpreters.check.redeciding import (
    ABSENT,
    Attempt,
    Decision,
    Inputs,
    Path,
    code_of,
    quietly,
)

__all__ = ["Heeding"]

# So many different attempts of each function are heard, and so many decided again.
HEARD_MAX, ATTEMPTS_MAX = 24, 6
# An input of which nothing has come yet is tried in so many random situations.
TRIES = 150
# It is not judged unless so many other values of it lead to any decision at all.
DECISIONS_MIN = 2
# So many other values of it may lead the code to look at further inputs.
FURTHER_MAX = 6
# Arguments that change while a handler waits.
_CHANGING = frozenset(
    ("status", "memo", "now", "runtime", "started", "children", "conditions", "stopped")
)
_RETRIES = (0, 1, 2, 3, 5, 10, 60)


class Input(NamedTuple):
    """An input: the field of the object, or of the answer to what was asked for."""

    field: str
    asked: str = ""

    def __str__(self) -> str:
        answer = f"the answer to `{self.asked}`" if self.asked else ""
        return (
            f"{self.field} of {answer}"
            if self.field and answer
            else (self.field or answer)
        )

    def holds(self, other: Input) -> bool:
        """Whether another input is a part of it."""
        return self.asked == other.asked and other.field.startswith(self.field)


class Heeding:
    """Hears the attempts of one run; it decides them again when it is asked."""

    def __init__(self, handlers: Iterable[Handler] = ()) -> None:
        self._handlers = tuple(handlers)
        self._begun: dict[int, tuple[Situation, Journal]] = {}

    def drove(self, situation: Situation, journal: Journal) -> None:
        """Keep an attempt as far as it has come."""
        if situation.handler.function:
            return  # it is impure
        _, known = self._begun.get(id(situation), (None, ()))
        if len(journal) >= len(known):
            self._begun[id(situation)] = situation, journal

    @cached_property
    def unheeded(self) -> tuple[str, ...]:
        """A sentence for each input that is looked at, and comes to nothing."""
        with quietly():
            judge = _Judge(self._several, [*self._uncalled()])
            lonely = (each for one in self._by_function for each in _lonely(one))
            return tuple(dict.fromkeys([*judge.unheeded(), *lonely]))

    @cached_property
    def unforeseen(self) -> tuple[str, ...]:
        """A sentence for each error where what was found is not there any more."""
        with quietly():
            found = [sentence for each in self._several for sentence in _without(each)]
        return tuple(dict.fromkeys(found))

    @cached_property
    def fruitless(self) -> tuple[str, ...]:
        """A sentence for each handler that has come to no good end, and never will."""
        with quietly():
            return tuple(each for one in self._by_function for each in _fruitless(one))

    @cached_property
    def _attempts(self) -> list[Attempt]:
        """The attempts of the run, without those that were shown the same."""
        answers: dict[bytes, Outcome] = {}
        found: dict[tuple[Any, ...], Attempt] = {}
        numbers: Counter[CodeType] = Counter()
        for situation, journal in self._begun.values():
            code = code_of(situation.handler.declared)
            if code is None or numbers[code] >= HEARD_MAX:
                continue
            attempt = Attempt(situation, journal, answers)
            answers.update((encode(e.effect), e.outcome) for e in attempt.asked)
            shown = [*map(_told, (attempt.inputs.object, *attempt.inputs.answers))]
            key = code, situation.reason, situation.retry, digest(shown)
            numbers[code] += key not in found
            found.setdefault(key, attempt)
        return [*found.values()]

    @property
    def _by_function(self) -> list[list[Attempt]]:
        several: dict[CodeType | None, list[Attempt]] = {}
        for each in self._attempts:
            several.setdefault(code_of(each.handler.declared), []).append(each)
        return [*several.values()]

    @cached_property
    def _several(self) -> list[Attempt]:
        """Some attempts of each function: the first ones, and the last ones."""
        half = ATTEMPTS_MAX // 2
        return [
            each
            for one in self._by_function
            for each in (*one[:half], *one[half:][-half:])
        ]

    def _uncalled(self) -> Iterator[Attempt]:
        """Attempts of handlers that the run has not called: they may share a helper."""
        known = {code_of(each.handler.declared) for each in self._attempts}
        shown = {each.situation.resource: each.situation for each in self._attempts}
        for handler in self._handlers:
            code, selector = code_of(handler.declared), handler.selector
            if handler.function or code in known or selector is None:
                continue
            if handler.rule.family is Family.LEVEL:
                continue  # it is called for each state
            reason = str(next(iter(handler.rule.reasons), "")) or None
            for resource, situation in shown.items():
                if resource is not None and selector.matches(resource):
                    yield Attempt(situation._replace(handler=handler, reason=reason))


def _told(found: Any) -> Any:
    """What an object says, without what is another one each time."""
    if isinstance(found, list):
        return [*map(_told, found)]
    if not isinstance(found, dict) or not isinstance(found.get("metadata"), dict):
        return found
    aside = ("uid", "resourceVersion", "managedFields", "creationTimestamp")
    meta = {key: each for key, each in found["metadata"].items() if key not in aside}
    return {**found, "metadata": meta}


# ------------------------------------------------------------------ what is not there


def _without(attempt: Attempt) -> Iterator[str]:
    """The errors where one of the objects that were found is not there any more."""
    inputs = attempt.inputs
    if attempt.decided(inputs).error is not None:
        return
    for number, asked in enumerate(attempt.asked):
        if not inputs.answers[number] or not isinstance(asked.effect, (Get, List)):
            continue
        gone: Any = None if isinstance(asked.effect, Get) else []
        error = attempt.decided(inputs.with_(("answers", number), gone)).error
        if error is not None:
            yield (
                f"{attempt.handler.id} raises {type(error).__name__}: {error}, where "
                f"`{_asked_for(asked.effect)}` finds nothing"
            )


# ------------------------------------------------------------------------- no good end


def _fruitless(attempts: Sequence[Attempt]) -> Iterator[str]:
    """A sentence about a function of which no attempt has come to a good end."""
    ends = [each.decided(each.inputs).end for each in attempts]
    failures = [None if each is None else each.failure for each in ends]
    who, parent = attempts[0].handler.id, attempts[0].handler.parent
    if all(each is not None and each.permanent for each in failures):
        created = any(each.situation.reason == Reason.CREATE for each in attempts)
        if created and not parent:  # which knows how its parts have ended
            yield (
                f"{who} fails for good on what the script creates: {failures[0]}; let "
                "it take the object, or let the script apply one that it takes"
            )
        return
    waits = all(each is not None and each.temporary is not None for each in failures)
    if waits and all(map(_waits_for_nothing, attempts)):
        yield (
            f"{who} is tried again for ever: {failures[0]}; it looks at nothing that "
            "changes by waiting: raise fnop.PermanentError, or look at what it waits "
            "for"
        )


def _waits_for_nothing(attempt: Attempt) -> bool:
    """Whether only an edit of the spec, which calls it anew, could help."""
    handler, inputs = attempt.handler, attempt.inputs
    wants = {*handler.signature.wants}
    if attempt.asked or handler.retries is not None or handler.timeout is not None:
        return False
    if wants & {*_CHANGING, *attempt.situation.indices}:
        return False
    if any(path[:2] != ("object", "spec") for path, _ in looks_at(attempt)):
        return False
    ends = (attempt.decided(inputs._replace(retry=each)).end for each in _RETRIES)
    return all(each is not None and each.failure is not None for each in ends)


# -------------------------------------------------------------------- arguments


def _lonely(attempts: Sequence[Attempt]) -> Iterator[str]:
    """A sentence for each argument that a function asks for without a need."""
    handler = attempts[0].handler
    code = code_of(handler.declared)
    assert code is not None
    if "patch" in handler.signature.wants and not _uses(code, "patch"):
        yield (
            f"{handler.id} asks for `patch`, and never uses it: write what it is to "
            "write, or leave the argument out"
        )
    if "retry" in handler.signature.wants and not any(map(_may_try_again, attempts)):
        yield (
            f"{handler.id} asks for `retry`, and is never to be tried again, whatever "
            "it is shown: raise fnop.TemporaryError where it is, or leave the argument "
            "out"
        )


def _uses(code: CodeType, name: str) -> bool:
    """Whether code reads one of its arguments, or a function in it does."""
    return any(
        each.argval == name and each.opname.startswith("LOAD_")
        for each in dis.get_instructions(code)
    ) or any(_uses(e, name) for e in code.co_consts if isinstance(e, CodeType))


def _may_try_again(attempt: Attempt) -> bool:
    """Whether any decision of an attempt is to be made again, or may have to be."""
    inputs, known = attempt.inputs, constants_of(attempt.handler.declared)
    several = [inputs._replace(retry=each) for each in _RETRIES]
    spec: Path = ("object", "spec")
    for path in below(spec, inputs.at(spec)):
        others = (ABSENT, *others_of(inputs.at(path), known))
        several += [inputs.with_(path, other) for other in others]
    return bool(attempt.asked) or any(map(_is_again, map(attempt.decided, several)))


def _is_again(decision: Decision) -> bool:
    end = decision.end
    if end is None or end.failure is not None:
        return True
    return any(
        isinstance(each, Again) or rule_of(each).needs is not Needs.NOTHING
        for each in end.plan
    )


# ---------------------------------------------------------------------- the judge

# An input, and the code that looks at it.
_Key = tuple[CodeType, Input]


class _Judge:
    """Judges the inputs of attempts; `others` are of handlers that were not called."""

    def __init__(self, real: Sequence[Attempt], others: Sequence[Attempt]) -> None:
        self._random = random.Random(0)
        self._known = {
            each: constants_of(each.handler.declared) for each in (*real, *others)
        }
        self._looks: dict[_Key, tuple[str, Look]] = {}
        self._places: dict[_Key, list[tuple[Attempt, Path]]] = {}
        self._paths: dict[Attempt, list[Path]] = {}
        for each in real:
            for path, look in (*looks_at(each), *_questions(each)):
                key = look.code, _input_at(each, path)
                self._looks.setdefault(key, (each.handler.id, look))
                self._note(key, each, path)
        for each in others:
            with suppress(Exception):  # it never was in such a situation
                for path, look in looks_at(each):
                    key = look.code, _input_at(each, path)
                    if key in self._looks:
                        self._note(key, each, path)

    def _note(self, key: _Key, attempt: Attempt, path: Path) -> None:
        self._places.setdefault(key, []).append((attempt, path))
        self._paths.setdefault(attempt, []).append(path)

    def unheeded(self) -> Iterator[str]:
        """A sentence for each input that comes to nothing, the outermost alone."""
        matters = {key[1] for key, each in self._places.items() if self._matters(each)}
        left = {
            key: told
            for key, told in self._looks.items()
            if not any(map(key[1].holds, matters))
        }
        for (code, input), (who, look) in left.items():
            if any(other != input and other.holds(input) for _, other in left):
                continue
            file = os.path.basename(code.co_filename)
            yield (
                f"{who} looks at {input} ({file}, line {look.line}), and nothing ever "
                "comes of it: let it do what should follow from it, or not look"
            )

    def _matters(self, places: Sequence[tuple[Attempt, Path]]) -> bool:
        """Whether an input does, or nobody can tell."""
        decisions = 0
        for attempt, path in places:
            inputs = attempt.inputs
            usual = attempt.decided(inputs)
            for other in self._others(attempt, path, inputs.at(path)):
                decision = attempt.decided(inputs.with_(path, other))
                if decision.differs(usual):
                    return True
                decisions += decision.error is None
        if decisions < DECISIONS_MIN:
            return True  # nobody knows what it could be
        for attempt, path in places[:2]:
            self._look_further(attempt, path)
        return any(self._matters_elsewhere(places) for _ in range(TRIES))

    def _look_further(self, attempt: Attempt, path: Path) -> None:
        """Find what is looked at where an input is another one: it may take both."""
        inputs, paths = attempt.inputs, self._paths[attempt]
        others = self._others(attempt, path, inputs.at(path))
        for other in islice(others, FURTHER_MAX):
            for found, _ in looks_at(attempt, inputs.with_(path, other)):
                if found not in paths and inputs.at(found) is not ABSENT:
                    paths.append(found)

    def _matters_elsewhere(self, places: Sequence[tuple[Attempt, Path]]) -> bool:
        """Whether it does in a random situation, in which others are others as well."""
        attempt, path = self._random.choice(places)
        inputs = attempt.inputs._replace(retry=self._random.choice(_RETRIES))
        paths = [each for each in self._paths[attempt] if each != path]
        number = self._random.randint(0, min(4, len(paths)))
        for each in self._random.sample(paths, number):
            inputs = self._changed(attempt, inputs, each)
        other = self._changed(attempt, inputs, path)
        return attempt.decided(other).differs(attempt.decided(inputs))

    def _changed(self, attempt: Attempt, inputs: Inputs, path: Path) -> Inputs:
        """The inputs with another value at a path, if there is any."""
        value = inputs.at(path)
        others = [] if value is ABSENT else [*self._others(attempt, path, value)]
        return inputs.with_(path, self._random.choice(others)) if others else inputs

    def _others(self, attempt: Attempt, path: Path, value: Any) -> Iterator[Any]:
        """Other values that an input could have had."""
        if path[0] == "object" or len(path) > 2:
            yield ABSENT
            yield from others_of(value, self._known[attempt])
        elif isinstance(value, dict):
            yield None
            yield from other_objects(value)
        elif isinstance(value, list):
            yield from others_of(value)


def _questions(attempt: Attempt) -> Iterator[tuple[Path, Look]]:
    """The answers to what an attempt asks for: to ask is to look."""
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
    return Input(field, _asked_for(attempt.asked[int(path[1])].effect))


def _asked_for(effect: Effect) -> str:
    match effect:
        case Get(target=target):
            return f"get {target.resource}"
        case List(resource=resource):
            return f"list {resource}"
        case _:
            return effect.kind.lower()
