"""Ask the admission handlers of another program about recorded reviews.

A recording has the request of each review, and the answers to the reads of its
handlers. No handler can act or read: it gets the recorded answer that fits its request.
If there is none, or if a handler uses something that the recording lacks, the review is
not comparable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any

from msgspec import Struct

from fnop.core.admission.decisions import Decision
from fnop.core.admission.reviewing import Reviewer, review
from fnop.core.admission.wire import Review, decision_to_wire, review_from_wire
from fnop.core.api.catalogue import Catalogue
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import ADMISSION, INDICES
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.values.body import Body
from fnop.core.values.label_selectors import fits
from fnop.core.values.now import Now
from fnop.effects import Answer, Applied, Effect, Get, List, Missing, Outcome
from fnop.effects.structs import replace
from fnop.effects.values import same_json
from fnop.interpreters.plan.fields import changed_fields, without_server_fields
from fnop.interpreters.runtime.guard import Guard
from fnop.interpreters.shadow.guesses import guesses
from fnop.interpreters.shadow.writes import Secrets, Tell

__all__ = ["Redecided", "ShadowedReviews"]

Json = dict[str, Any]


class Redecided(Struct, frozen=True):
    """A recorded review whose decision changes.

    `was` and `answer` are "admitted" or "denied". `handler` denies now, or denied then,
    and `place` is its file and line; it is None without a denial. `message` is the
    denial, or the changed warnings. `fields` are the paths whose mutation changes.
    """

    was: str
    answer: str
    handler: str | None
    place: str
    operation: str
    label: str
    message: str = ""
    fields: tuple[str, ...] = ()

    @property
    def is_denied_anew(self) -> bool:
        """Whether the review was admitted, and would now be denied."""
        return (self.was, self.answer) == ("admitted", "denied")


class ShadowedReviews:
    """The reviews of a recording, and the decisions of a program's handlers about them.

    `asked` counts the reviews, `untold` those that cannot be compared, by the reason.
    """

    def __init__(self, program: Program, guard: Guard | None) -> None:
        self._handlers = {e.id: e for e in program.handlers if e.role in ADMISSION}
        self._indices = [e.id for e in program.handlers if e.role in INDICES]
        self._guard = guard
        self.asked = 0
        self.found: list[Redecided] = []
        self.untold: Counter[str] = Counter()

    def add(
        self,
        record: Mapping[str, Any],
        catalogue: Catalogue,
        settings: Settings,
        secrets: Secrets | None,
    ) -> None:
        """Ask about a recorded review.

        Raises `ValueError` and similar errors if the record does not hold a review.
        """
        self.asked += 1
        now = Now(record["wall"], record["mono"])
        (was,) = record["commands"]
        asking = _Asking(self._handlers, catalogue, settings, self._indices, now)
        with self._guard or nullcontext():
            found = _compare_decision(asking, record["input"], was, secrets)
        if isinstance(found, str):
            self.untold[found] += 1
        elif found is not None:
            self.found.append(found)


_BY_HANDLERS = "its handlers are none now"
_BY_MORE = "it depends on indices, memos or headers, which are not those of then"
_BY_READS = "its handler asks for what was not answered then"
_BY_SECRETS = "it depends on secrets, and the recording holds tokens in their place"
# The arguments that a recorded request lacks.
_MORE = frozenset(("headers", "memo", "sslpeer"))


def _compare_decision(
    asking: _Asking, input: Json, was: Json, secrets: Secrets | None
) -> Redecided | str | None:
    """The changed decision, None if it is the same, or why it is not comparable."""
    tell = secrets.tell if secrets is not None else _unchanged
    told, was = review_from_wire(tell(input)), tell(was)
    decision = asking.decided(told)
    if isinstance(decision, str):
        return decision
    is_same = _is_same(told, was, decision, exact=secrets is None)
    if secrets is not None and any(
        not _is_alike(asking.decided(review_from_wire(way(input))), decision)
        for way in _other_values(asking, told, secrets)
    ):
        return _BY_SECRETS
    return None if is_same else _changed_review(asking, told, was, decision)


def _unchanged(value: Any) -> Any:
    return value


class _Asking(Struct, frozen=True):
    """The facts about a review that a recording has."""

    handlers: Mapping[str, Handler]
    catalogue: Catalogue
    settings: Settings
    indices: list[str]
    now: Now

    def those_of(self, told: Review) -> tuple[Handler, ...]:
        """The present handlers of a review; all handlers if the review names none."""
        known = self.handlers.values()
        return tuple(e for e in known if not told.asks or e.id in told.asks)

    def decided(self, told: Review) -> Decision | str:
        """The decision about a review, or why it is not comparable."""
        handlers = self.those_of(told)
        if not handlers:
            return _BY_HANDLERS
        looked: list[str] = []
        indices = {name: _Unknown(looked, name) for name in self.indices}
        reviewer = Reviewer(handlers, self.settings, self.catalogue, indices)
        conversation = review(
            replace(reviewer, account=told.account), told.request, self.now
        )
        answers = _Answers(told.answers, self.catalogue)
        try:
            asked = next(conversation)
            while (found := answers.to(asked.effect)) is not None:
                asked = conversation.send(found)
        except StopIteration as stop:
            decision: Decision = stop.value
            wanted = {
                name
                for each in handlers
                if each.id in decision.asked
                for name in each.signature.wants
            }
            return _BY_MORE if looked or wanted & _MORE else decision
        finally:
            conversation.close()
        return _BY_READS


class _Unknown(Mapping[Any, Any]):
    """An index that the recording lacks; it notes that a handler reads it."""

    def __init__(self, looked: list[str], name: str) -> None:
        self._looked, self._name = looked, name

    def _found(self) -> Json:
        self._looked.append(self._name)
        return {}

    def __getitem__(self, key: Any) -> Any:
        return self._found()[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._found())

    def __len__(self) -> int:
        return len(self._found())


class _Answers:
    """The recorded answers of a review, without their requests."""

    def __init__(
        self, answers: tuple[tuple[Now, Outcome], ...], catalogue: Catalogue
    ) -> None:
        self._left = [*answers]
        self._given: dict[str, tuple[Now, Outcome]] = {}
        self._catalogue = catalogue

    def to(self, effect: Effect) -> tuple[Now, Outcome] | None:
        """The next answer that fits the effect, or the former answer to the same.

        None if no answer fits. The selector of a list is not recorded: a list fits if
        all of its objects do.
        """
        for number, answer in enumerate(self._left):
            if self._is_about(effect, answer[1]):
                self._given[repr(effect)] = self._left.pop(number)
                break
        return self._given.get(repr(effect))

    def _is_about(self, effect: Effect, outcome: Outcome) -> bool:
        match effect, outcome:
            case Get(target), Applied(dict() as found):
                metadata = found.get("metadata") or {}
                place = target.namespace or metadata.get("namespace")
                is_there = place == metadata.get("namespace")
                is_named = metadata.get("name") == target.name and is_there
                return is_named and self._is_of(target.resource, found)
            case Get(target), Missing(message):
                kind = self._catalogue.lookup(target.resource)
                label = f"{kind.label} " if kind is not None else ""
                return f'{label}"{target.name}"' in message
            case List(resource) as listing, Answer(list() as items):
                return all(
                    self._is_of(resource, each) and _is_selected(listing, Body(each))
                    for each in items
                )
            case _:
                return False

    def _is_of(self, resource: str, found: Json) -> bool:
        """Whether an object may be of a kind; True if the kind is unknown."""
        kind = self._catalogue.lookup(resource)
        return kind is None or kind.kind == found.get("kind")


def _is_selected(effect: List, item: Body) -> bool:
    """Whether an object may be in a listing, by its namespace and its labels."""
    if effect.namespace not in (None, "*", item.namespace):
        return False
    selector = effect.label_selector
    return not selector or fits(selector, item.mapping("labels"))


# ------------------------------------------------------------------- comparing


def _is_same(told: Review, was: Json, decision: Decision, *, exact: bool) -> bool:
    """Whether a decision equals the recorded one; without `exact`, texts may differ."""
    now = decision_to_wire(decision)
    if exact:
        return same_json(was, now)
    return _shape(told, was) == _shape(told, now)


def _is_alike(other: Decision | str, decision: Decision) -> bool:
    """Whether other tokens lead to the same decision, apart from its texts."""
    if isinstance(other, str):
        return False
    return _shape_of(other) == _shape_of(decision)


def _shape_of(decision: Decision) -> tuple[Any, ...]:
    return _shape(Review(decision.request), decision_to_wire(decision))


def _shape(told: Review, wire: Json) -> tuple[Any, ...]:
    """A decision without texts, which may quote a secret."""
    denials = [(e["handler"], e["code"], e["field"]) for e in wire["denials"]]
    changes = _paths(told.request.object, wire.get("object", told.request.object))
    return wire["allowed"], denials, len(wire["warnings"]), changes


def _paths(old: Json | None, new: Json | None) -> tuple[str, ...]:
    states = (without_server_fields(each or {}) for each in (old, new))
    return tuple(each.path for each in changed_fields(*states))


def _other_values(asking: _Asking, told: Review, secrets: Secrets) -> Iterator[Tell]:
    """Other values for the tokens: a secret may be any value in the code."""
    yield secrets.vary
    for handler in asking.those_of(told):
        yield from map(secrets.guess, guesses(handler.fn, ()))


def _changed_review(
    asking: _Asking, told: Review, was: Json, decision: Decision
) -> Redecided:
    now, request = decision_to_wire(decision), told.request
    denials = now["denials"] or was["denials"]
    found = Redecided(
        _verdict_word(was),
        _verdict_word(now),
        None,
        "",
        request.operation,
        f"{request.plural}/{request.label}",
    )
    if denials:
        name = denials[0]["handler"]
        handler = asking.handlers.get(name)
        place = "" if handler is None else handler.place
        message = denials[0]["message"]
        return replace(found, handler=name, place=place, message=message)
    objects = (each.get("object", request.object) for each in (was, now))
    if fields := _paths(*objects):
        return replace(found, fields=fields)
    return replace(found, message="; ".join(now["warnings"]) or "no warning")


def _verdict_word(wire: Json) -> str:
    return "admitted" if wire["allowed"] else "denied"
