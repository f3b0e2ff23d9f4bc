"""The recorded answers of called functions, for a run that goes on differently.

The answer of a function may change with time, like the length of a queue. So an answer
is given again at about the time at which it was asked for.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import orjson

from fnop.effects import Call, Outcome
from fnop.effects.values import digest, same_json
from fnop.effects.wire import digest_of, encode, from_wire, portable
from fnop.interpreters.recording.identities.tokens import MARK, TOKEN, draws_secret
from fnop.interpreters.recording.identities.volatile import UID, has_token
from fnop.interpreters.recording.model.history import History, Question, Request, Step

__all__ = ["Calls", "Recorded", "Replies", "alike", "fits", "last_answers", "part_of"]


class Recorded(NamedTuple):
    """A call, its answer, the step of the answer, and the time of the call."""

    call: Call
    outcome: Outcome
    step: int
    wall: float


@dataclass
class Calls(Question):
    """The answers of `fnop.call` in a recording, in their order.

    `drawn` are the random bytes that were a secret, in hexadecimal. If a call is given
    bytes that its own handler has drawn, a token stands for them.
    """

    history: History = field(default_factory=History)
    answers: list[Recorded] = field(default_factory=list)
    drawn: list[str] = field(default_factory=list)
    # The last drawn bytes of each handler and object, in the forms that a call may be
    # given.
    _tokens: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    _asked: dict[Request, Call] = field(default_factory=dict)

    def see(self, step: Step) -> None:
        """Take one step in."""
        if step.request is not None:
            self._note_answer(step.request, step)
        for request in step.requests.values():
            if request.verb == Call.__name__:
                tokens = self._tokens.get(_asker_of(request), {})
                self._asked[request] = from_wire(
                    _effect_with_tokens(request.effect, tokens)
                )

    def _note_answer(self, request: Request, step: Step) -> None:
        if draws_secret(request.effect):
            for drawn in _drawn_texts(request.outcome or {}):
                self.drawn.append(drawn)
                self._tokens[_asker_of(request)] = dict(_tokens_for(drawn))
        if (call := self._asked.pop(request, None)) is not None:
            answer = from_wire(request.outcome)
            self.answers.append(Recorded(call, answer, step.number, request.wall))


def _asker_of(request: Request) -> tuple[str, str]:
    """The handler of a request, and the object that it is called for."""
    return request.handler, request.subject


def _tokens_for(drawn: str) -> Iterator[tuple[str, str]]:
    """The texts that are derived from drawn bytes, and the token for each."""
    raw = bytes.fromhex(drawn)
    token = MARK + (digest(drawn) + digest([drawn]))[:24]
    for form in (raw.hex(), base64.b64encode(raw), base64.urlsafe_b64encode(raw)):
        text = form if isinstance(form, str) else form.decode().rstrip("=")
        if len(text) >= _DRAWN_MIN:
            yield text, token


# A shorter text may be there by chance.
_DRAWN_MIN = 8


def _effect_with_tokens(
    effect: dict[str, Any], tokens: Mapping[str, str]
) -> dict[str, Any]:
    """An effect with tokens in the place of drawn bytes."""
    if not tokens:
        return effect
    text = orjson.dumps(effect).decode()
    for drawn, token in tokens.items():
        text = text.replace(drawn, token)
    found: dict[str, Any] = orjson.loads(text)
    return found


_BYTES = re.compile(r"(?:[0-9a-f]{2})+")


def _drawn_texts(outcome: Mapping[str, Any]) -> Iterator[str]:
    value = outcome.get("value")
    if isinstance(value, str) and _BYTES.fullmatch(value):
        yield value


def part_of(
    answers: Iterable[Recorded], step: int, until: int | None
) -> list[Recorded]:
    """The answers for a part of a run: for each call, the answers after a step.

    If a call has no answer in the part, the last one before counts, and else the next
    one.
    """
    found: list[Recorded] = []
    for each in _grouped_answers(digest_of, answers):
        end = each[-1].step if until is None else until
        before = [one for one in each if one.step <= step]
        within = [one for one in each if step < one.step <= end]
        found += within or before[-1:] or each[:1]
    return sorted(found, key=lambda each: each.step)


def last_answers(answers: Iterable[Recorded]) -> list[Recorded]:
    """The last answer to each call."""
    return [each[-1] for each in _grouped_answers(digest_of, answers)]


def _grouped_answers(
    key: Callable[[Call], str], answers: Iterable[Recorded]
) -> Iterable[list[Recorded]]:
    """The answers in groups of equal calls, each in its order."""
    found: dict[str, list[Recorded]] = {}
    for each in answers:
        found.setdefault(key(each.call), []).append(each)
    return found.values()


def alike(call: Call) -> str:
    """The text that equal calls share if they are about different uids of an object."""
    return UID.sub("", encode(call).decode())


def fits(recorded: Any, given: Any) -> bool:
    """Whether an argument may equal the recorded one, which conceals a secret.

    A text with a token stands for any text, and a uid for any other.

    >>> told = {"user": "a", "password": "redacted-0123456789abcdef01234567"}
    >>> fits(told, {"user": "a", "password": "x"}), fits(told, {"user": "b"})
    (True, False)
    """
    if isinstance(recorded, str) and isinstance(given, str):
        if TOKEN.search(recorded):
            return True
        return UID.sub("", recorded) == UID.sub("", given)
    if isinstance(recorded, Mapping) and isinstance(given, Mapping):
        return recorded.keys() == given.keys() and all(
            fits(each, given[name]) for name, each in recorded.items()
        )
    if isinstance(recorded, Sequence) and isinstance(given, Sequence):
        return len(recorded) == len(given) and all(map(fits, recorded, given))
    return same_json(recorded, given)


# An answer may be given this much earlier: two runs do not have the same timing.
_ABOUT_SECONDS = 1.0


class Replies:
    """Recorded answers, given again to equal calls in their order and at their time.

    A call with another uid counts as equal. So does a call with another text if the
    recording conceals a secret there, such as a password that is drawn again.

    The first call gets the first answer. An answer stays until about the time of the
    next one. Answers that are past by then are skipped, and the last one stays. `until`
    is a time: a caller that keeps the recorded pace has been given all last answers by
    then.
    """

    def __init__(self, answers: Iterable[Recorded]) -> None:
        kept = [*answers]
        self._exactly = {
            digest_of(each[0].call): each for each in _grouped_answers(digest_of, kept)
        }
        self._alike = {
            alike(each[0].call): each for each in _grouped_answers(alike, kept)
        }
        self._given: dict[str, int] = {}
        self._functions = {portable(each.call.function) for each in kept}
        self._concealing = {
            key: each[0].call
            for key, each in self._exactly.items()
            if has_token(each[0].call.arguments)
        }
        self.until = max(map(_time_of_repetition, self._exactly.values()), default=0.0)

    def knows(self, function: str) -> bool:
        """Whether calls of a function were answered, with any arguments."""
        return portable(function) in self._functions

    def answer(self, call: Call, wall: float) -> Outcome | None:
        """The answer to a call at a time; None for a call that was never made."""
        key, other = digest_of(call), alike(call)
        found = self._exactly.get(key)
        if found is None:
            key, found = other, self._alike.get(other)
        if found is None:
            key = next(self._fitting_calls(call), "")
            found = self._exactly.get(key)
        if found is None:
            return None
        place = _due_answer(found, self._given.get(key), wall)
        self._given[key] = place
        return found[place].outcome

    def _fitting_calls(self, call: Call) -> Iterator[str]:
        """The calls that differ from this one only in concealed parts."""
        name = portable(call.function)
        for key, each in self._concealing.items():
            is_of = portable(each.function) == name
            if is_of and fits(each.arguments, call.arguments):
                yield key


def _due_answer(answers: Sequence[Recorded], last: int | None, wall: float) -> int:
    """The number of the answer that is due, after the `last` one that was given."""
    past = sum(each.wall <= wall - _ABOUT_SECONDS for each in answers) - 1
    if last is None:
        return max(0, past)
    after = min(last + 1, len(answers) - 1)
    due = after if answers[after].wall <= wall + _ABOUT_SECONDS else last
    return max(past, due)


def _time_of_repetition(answers: Sequence[Recorded]) -> float:
    """The time of the last answer, plus the time between the last two answers."""
    gaps = [two.wall - one.wall for one, two in pairwise(answers)]
    return answers[-1].wall + (gaps[-1] if gaps else 0.0)
