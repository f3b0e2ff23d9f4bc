"""The decisions of a run, made again with other inputs, and the defects they show.

A handler may read something without using it
(`fnop.interpreters.check.inputs.unused_inputs`). It may ask for an argument without a
need, or fail if an object is gone. It may also never succeed, now or later.
"""

from __future__ import annotations

import dis
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from types import CodeType
from typing import Any

from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import Family
from fnop.core.handlers.run.arguments import Situation
from fnop.core.handlers.run.invocation import Journal
from fnop.core.seam.effect_rules import Needs, rule_of
from fnop.core.values.cause import Reason
from fnop.core.values.errors import described
from fnop.effects import Again, Get, List, Outcome
from fnop.effects.structs import replace
from fnop.effects.values import digest
from fnop.effects.wire import encode
from fnop.interpreters.check.inputs.input_reads import below, looks_at
from fnop.interpreters.check.inputs.likely import constants_of, others_of
from fnop.interpreters.check.inputs.redeciding import (
    ABSENT,
    Attempt,
    Decision,
    Path,
    code_of,
    quietly,
)
from fnop.interpreters.check.inputs.unused_inputs import Looked, asked_for, looked_at

__all__ = ["CHANGING", "Heeding"]

# The number of different attempts of each function that are recorded, and decided
# again.
HEARD_MAX, ATTEMPTS_MAX = 24, 6
# Arguments that change while a handler waits.
CHANGING = frozenset(
    ("status", "memo", "now", "runtime", "started", "children", "conditions", "stopped")
)
_RETRIES = (0, 1, 2, 3, 5, 10, 60)


class Heeding:
    """Hears the attempts of one run; it decides them again on demand."""

    def __init__(self, handlers: Iterable[Handler] = ()) -> None:
        self._handlers = tuple(handlers)
        self._begun: dict[int, tuple[Situation, Journal]] = {}
        # Those of other runs of the operator: an input that matters there is heeded.
        self.beside: Sequence[Heeding] = ()

    def drove(self, situation: Situation, journal: Journal) -> None:
        """Keep an attempt as far as it has progressed."""
        if situation.handler.function:
            return  # it is impure
        _, known = self._begun.get(id(situation), (None, ()))
        if len(journal) >= len(known):
            self._begun[id(situation)] = situation, journal

    @cached_property
    def looked(self) -> Looked:
        """The inputs that the attempts have looked at, and their effects."""
        with quietly():
            return looked_at(self._sampled_attempts, [*self._attempts_of_uncalled()])

    @cached_property
    def unheeded(self) -> tuple[str, ...]:
        """A sentence for each input that is looked at without any effect."""
        beside = (each.looked for each in self.beside) if self.looked.left else ()
        found = [*self.looked.unheeded(beside)]
        with quietly():
            found += [
                each
                for one in self._attempts_by_function
                for each in _unused_arguments(one)
            ]
        return tuple(dict.fromkeys(found))

    @cached_property
    def unforeseen(self) -> tuple[str, ...]:
        """A sentence for each error that occurs when a found object is gone."""
        with quietly():
            found = [
                sentence
                for each in self._sampled_attempts
                for sentence in _without(each)
            ]
        return tuple(dict.fromkeys(found))

    @cached_property
    def fruitless(self) -> tuple[str, ...]:
        """A sentence for each handler that has never succeeded, and never will."""
        with quietly():
            return tuple(
                each
                for one in self._attempts_by_function
                for each in _fruitless_functions(one)
            )

    @cached_property
    def _attempts(self) -> list[Attempt]:
        """The attempts of the run, without those that got the same inputs."""
        answers: dict[bytes, Outcome] = {}
        found: dict[tuple[Any, ...], Attempt] = {}
        numbers: Counter[CodeType] = Counter()
        for situation, journal in self._begun.values():
            code = code_of(situation.handler.declared)
            if code is None or numbers[code] >= HEARD_MAX:
                continue
            attempt = Attempt(situation, journal, answers)
            answers.update((encode(e.effect), e.outcome) for e in attempt.asked)
            shown = [
                *map(_stable_object, (attempt.inputs.object, *attempt.inputs.answers))
            ]
            key = code, situation.reason, situation.retry, digest(shown)
            numbers[code] += key not in found
            found.setdefault(key, attempt)
        return [*found.values()]

    @property
    def _attempts_by_function(self) -> list[list[Attempt]]:
        several: dict[CodeType | None, list[Attempt]] = {}
        for each in self._attempts:
            several.setdefault(code_of(each.handler.declared), []).append(each)
        return [*several.values()]

    @cached_property
    def _sampled_attempts(self) -> list[Attempt]:
        """Some attempts of each function: the first ones, and the last ones."""
        half = ATTEMPTS_MAX // 2
        return [
            each
            for one in self._attempts_by_function
            for each in (*one[:half], *one[half:][-half:])
        ]

    def _attempts_of_uncalled(self) -> Iterator[Attempt]:
        """Attempts of handlers that the run has not called: they may share a helper."""
        known = {code_of(each.handler.declared) for each in self._attempts}
        shown = {each.situation.resource: each.situation for each in self._attempts}
        for handler in self._handlers:
            code, selector = code_of(handler.declared), handler.selector
            if handler.function or code in known or selector is None:
                continue
            if handler.rule.family is Family.RECONCILER:
                continue  # it is called in every state
            reason = str(next(iter(handler.rule.reasons), "")) or None
            for resource, situation in shown.items():
                if resource is not None and selector.matches(resource):
                    yield Attempt(replace(situation, handler=handler, reason=reason))


def _stable_object(found: Any) -> Any:
    """An object without the metadata that differs each time."""
    if isinstance(found, list):
        return [*map(_stable_object, found)]
    if not isinstance(found, dict) or not isinstance(found.get("metadata"), dict):
        return found
    aside = ("uid", "resourceVersion", "managedFields", "creationTimestamp")
    meta = {key: each for key, each in found["metadata"].items() if key not in aside}
    return {**found, "metadata": meta}


# -------------------------------------------------------------------- missing objects


def _without(attempt: Attempt) -> Iterator[str]:
    """The errors that occur when one of the found objects is gone."""
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
                f"{attempt.handler.id} raises {described(error)}, where "
                f"`{asked_for(asked.effect)}` finds nothing"
            )


# -------------------------------------------------------------------------- no success


def _fruitless_functions(attempts: Sequence[Attempt]) -> Iterator[str]:
    """A sentence about a function without a single successful attempt."""
    ends = [each.decided(each.inputs).end for each in attempts]
    failures = [None if each is None else each.failure for each in ends]
    who, parent = attempts[0].handler.id, attempts[0].handler.parent
    if all(each is not None and each.permanent for each in failures):
        created = any(each.situation.reason == Reason.CREATE for each in attempts)
        if created and not parent:  # the parent knows the results of its parts
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
    """Whether only an edit of the spec, which calls it again, could help."""
    handler, inputs = attempt.handler, attempt.inputs
    wants = {*handler.signature.wants}
    if attempt.asked or handler.retries is not None or handler.timeout is not None:
        return False
    if wants & {*CHANGING, *attempt.situation.indices}:
        return False
    if any(path[:2] != ("object", "spec") for path, _ in looks_at(attempt)):
        return False
    ends = (attempt.decided(replace(inputs, retry=each)).end for each in _RETRIES)
    return all(each is not None and each.failure is not None for each in ends)


# -------------------------------------------------------------------- arguments


def _unused_arguments(attempts: Sequence[Attempt]) -> Iterator[str]:
    """A sentence for each argument that a function requests without a need."""
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
    """Whether any decision of an attempt may have to be made again."""
    inputs, known = attempt.inputs, constants_of(attempt.handler.declared)
    several = [replace(inputs, retry=each) for each in _RETRIES]
    spec: Path = ("object", "spec")
    for path in below(spec, inputs.at(spec)):
        others = (ABSENT, *others_of(inputs.at(path), known))
        several += [inputs.with_(path, other) for other in others]
    return bool(attempt.asked) or any(map(_is_again, map(attempt.decided, several)))


def _is_again(decision: Decision) -> bool:
    if decision.error is not None:
        return False  # such a retry is not requested
    end = decision.end
    if end is None or end.failure is not None:
        return True
    return any(
        isinstance(each, Again) or rule_of(each).needs is not Needs.NOTHING
        for each in end.plan
    )
