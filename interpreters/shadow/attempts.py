"""Ask every recorded attempt again, with other handlers than those that decided it.

Nothing can act: the guard refuses what the author's code tries to do to the world, and
impure handlers are not asked.

The recording may have tokens in place of secrets. An attempt that then decides
otherwise is asked once more, with other tokens. A difference between the two decisions
depends on a secret. The recorded decision cannot be compared there, so the present one
replaces it. Code that looks at the secret itself treats all tokens alike. It is
therefore also asked with other texts in their places, such as the constants of the code
(`guesses`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import INDICES
from fnop.core.handlers.program.program import Program
from fnop.core.objects.store.indexing import empty_indices
from fnop.core.seam.traces import Version
from fnop.core.values.body import Body, is_behind
from fnop.effects.values import canonical, same_json
from fnop.interpreters.recording.comparison.retelling import Tell, as_recorded, retold
from fnop.interpreters.recording.comparison.shadow import (
    Changed,
    Same,
    Surroundings,
    Untold,
    Verdict,
    asked_again,
    by_name,
    decided,
    in_order,
    with_decision,
)
from fnop.interpreters.recording.format.reader import Unsupported, is_review, understood
from fnop.interpreters.recording.identities.tokens import (
    another_token,
    draws_secret,
    replaced_token,
)
from fnop.interpreters.recording.model import records
from fnop.interpreters.recording.model.attempts import Attempt
from fnop.interpreters.recording.model.history import History, Step
from fnop.interpreters.recording.model.refs import Place
from fnop.interpreters.recording.redaction import (
    TOKEN_LENGTH,
    forms,
    has_token,
    rewritten,
)
from fnop.interpreters.recording.redaction.likeness import MISSING, Likeness, Retold
from fnop.interpreters.runtime.guard import Act, Guard
from fnop.interpreters.shadow.guesses import guesses
from fnop.interpreters.shadow.reviews import Redecided, ShadowedReviews
from fnop.interpreters.shadow.writes import Reviewed, Secrets, ShadowedWrites

__all__ = ["Judged", "Shadow", "shadow"]


class Judged(Struct, frozen=True):
    """An attempt with its decision, which differs from the recorded one."""

    attempt: Attempt
    handler: Handler
    changed: Changed


@dataclass
class Shadow:
    """The verdict on a recording: the number of decisions, and those that change.

    `untold` counts the attempts that could not be asked again, by the reason.
    `concealed` are the attempts that differ only in parts that depend on secrets.
    `indexed` counts the values of objects in indices, and `reindexed` are the values
    that change. `missing` counts the decisions of handlers that no longer exist, and
    `unindexed` the values of such indices. `new` are handlers that the recorded
    operator did not have. `lost` are steps that the recording lacks, and `acts` are the
    actions that the guard refused to the author's code.

    `writes` counts the recorded writes that admission handlers are asked about.
    `reviewed` are the writes that would have been denied or changed. `unreviewed`
    counts the writes that cannot be asked about, by the reason. `reviews` counts the
    recorded reviews. `redecided` are the reviews whose decision changes, and
    `undecided` counts those that cannot be compared, by the reason.
    """

    attempts: int = 0
    changed: list[Judged] = field(default_factory=list)
    untold: Counter[str] = field(default_factory=Counter)
    concealed: list[Judged] = field(default_factory=list)
    indexed: int = 0
    reindexed: list[Judged] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)
    unindexed: Counter[str] = field(default_factory=Counter)
    new: tuple[Handler, ...] = ()
    lost: int = 0
    truncated: bool = False
    acts: tuple[Act, ...] = ()
    writes: int = 0
    reviewed: list[Reviewed] = field(default_factory=list)
    unreviewed: Counter[str] = field(default_factory=Counter)
    reviews: int = 0
    redecided: list[Redecided] = field(default_factory=list)
    undecided: Counter[str] = field(default_factory=Counter)


def shadow(
    records: Iterator[dict[str, Any] | None],
    header: Mapping[str, Any],
    program: Program,
) -> Shadow:
    """Ask all attempts of a recording again; `records` are those after the header.

    Reviews among them are asked again, too. Raises `RecordingProblem` for a recording
    without traces, and for records that cannot be understood.
    """
    if header.get("traces") is not True:
        raise Unsupported(
            "the recording does not hold what handlers were shown: an earlier "
            f"release ({header.get('fnop')!r:.40}) made it; leave out --shadow, "
            "or record the run again"
        )
    run = _Shadow(program)
    number = 0
    for record in records:
        if record is None:
            run.found.truncated = True
            break
        number += not is_review(record)
        with understood(number):
            run.add(record)
    return run.end(header)


class _Shadow:
    """A recording that is being read, and its verdict so far."""

    def __init__(self, program: Program) -> None:
        self.history = History()
        self.found = Shadow()
        self._program = program
        self._handlers = {each.id: each for each in program.handlers}
        self._settings = program.settings
        self._empty = empty_indices(program)
        self._guard = Guard(refuses=True) if program.settings.guard else None
        # Attempts of sub-handlers that end before the attempt that declares them.
        self._waiting: dict[str, list[Attempt]] = {}
        self._writes = ShadowedWrites(program)
        self._reviews = ShadowedReviews(program, self._guard)
        # Set at the first record with a token.
        self._secrets: _Secrets | None = None
        # The requests for random bytes that serve as a secret.
        self._drawing: set[int] = set()
        # The last version of each object.
        self._bodies: dict[Place, Body] = {}

    def add(self, record: dict[str, Any]) -> None:
        if record.get("redacted") and self._secrets is None:
            self._secrets = _Secrets(self._program, self._drawing)
        if is_review(record):
            known = self.history.catalogue, self._settings
            ways = self._rendering_ways if record.get("redacted") else None
            self._reviews.add(record, *known, ways)
            return
        step = self.history.read(record)
        if isinstance(step, records.Gap):
            self.found.lost += step.steps
            self._bodies.clear()  # there may be later versions
            return
        self._draw(step)
        self._note_objects(step)
        for each in step.ended:
            self._ask(each)
        for command in step.commands:
            if isinstance(command, records.Indexed):
                self._index(command, step)

    def _draw(self, step: Step) -> None:
        """Note random bytes that serve as a secret."""
        if step.is_start:
            self._drawing.clear()
        input = dict(step.wire)
        if input.get("id") in self._drawing and self._secrets is not None:
            self._secrets.draw(input)
        for number, each in step.requests.items():
            if draws_secret(each.effect):
                self._drawing.add(number)

    def end(self, header: Mapping[str, Any]) -> Shadow:
        for each in self.history.attempts.cut_off():
            self._ask(each)
        is_partial = self.found.lost > 0 or bool(header.get("dropped"))
        for name, waiting in self._waiting.items():
            self.found.attempts += len(waiting)
            if is_partial and name.rpartition("/")[0] in self._handlers:
                self.found.untold[_UNDECLARED] += len(waiting)
            else:
                self.found.missing[name] += len(waiting)
        self._compare(header.get("handlers"))
        if self._guard is not None:
            self.found.acts = tuple(self._guard.news())
        writes = self._writes
        self.found.writes, self.found.reviewed = writes.asked, writes.found
        self.found.unreviewed = writes.untold
        reviews = self._reviews
        self.found.reviews, self.found.redecided = reviews.asked, reviews.found
        self.found.undecided = reviews.untold
        return self.found

    @property
    def _rendering_ways(self) -> Secrets | None:
        """The ways to render tokens, if there were any."""
        secrets = self._secrets
        if secrets is None:
            return None
        return Secrets(secrets.tell, secrets.vary, secrets.guess)

    def _compare(self, names: Any) -> None:
        """Find new handlers, and handlers that are gone although they decided."""
        if not isinstance(names, list):
            return
        known = set(map(str, names))
        program = self._program.handlers
        self.found.new = tuple(each for each in program if each.id not in known)
        for name in known - {each.id for each in program} - {*self.found.unindexed}:
            self.found.missing[name] += 0

    def _ask(self, attempt: Attempt) -> None:
        handler = self._handlers.get(attempt.handler)
        if handler is None:
            self._waiting.setdefault(attempt.handler, []).append(attempt)
            return
        self.found.attempts += 1
        verdict = self._judge_attempt(attempt, handler, self.found.changed)
        if isinstance(verdict, Same):
            self._settings = verdict.settings or self._settings
        if not isinstance(verdict, Untold):
            self._register_parts(verdict.parts)

    def _judge_attempt(
        self, attempt: Attempt, handler: Handler, changed: list[Judged]
    ) -> Verdict:
        """Ask a handler again, and note the verdict."""
        told, verdict, concealed = self._verdict(attempt, handler)
        match verdict:
            case Changed():
                changed.append(Judged(told, handler, verdict))
            case Untold(why):
                self.found.untold[why] += 1
            case Same() if concealed is not None:
                self.found.concealed.append(Judged(told, handler, concealed))
            case Same():
                pass
        return verdict

    def _register_parts(self, parts: tuple[Handler, ...]) -> None:
        """Register sub-handlers, and ask those of their attempts that have ended."""
        for each in parts:
            self._handlers[each.id] = each
            for attempt in self._waiting.pop(each.id, ()):
                self._ask(attempt)

    def _verdict(
        self, attempt: Attempt, handler: Handler
    ) -> tuple[Attempt, Verdict, Changed | None]:
        """The rendered attempt, the verdict, and the change due only to secrets.

        The last item is the first difference of that kind.
        """
        secrets = self._secrets
        if secrets is None:
            return attempt, self._ask_handler(attempt, handler, as_recorded), None
        told, concealed = retold(attempt, secrets.tell), None
        settled: set[int] = set()
        while True:
            verdict = self._ask_handler(told, handler, secrets.tell)
            if not isinstance(verdict, Changed):
                return told, verdict, concealed
            if verdict.number in settled:
                return self._verdict_by_guess(
                    attempt, told, handler, verdict, concealed
                )
            twin = retold(attempt, secrets.vary)
            other = self._decide_again(twin, handler, verdict.number, secrets.vary)
            if other is None:
                return self._verdict_by_guess(
                    attempt, told, handler, verdict, concealed
                )
            if _shape(other) != _shape(verdict.now):
                return told, Same(parts=verdict.parts), concealed or verdict
            recorded = secrets.likened(verdict.recorded, verdict.now, other)
            if same_json(recorded, verdict.recorded):
                return self._verdict_by_guess(
                    attempt, told, handler, verdict, concealed
                )
            concealed = concealed or verdict
            told = with_decision(told, verdict.number, recorded)
            settled.add(verdict.number)

    def _verdict_by_guess(
        self,
        attempt: Attempt,
        told: Attempt,
        handler: Handler,
        changed: Changed,
        concealed: Changed | None,
    ) -> tuple[Attempt, Verdict, Changed | None]:
        """The same for a change that other texts explain, not tokens."""
        assert self._secrets is not None
        if not _has_tokens(attempt):
            return told, changed, concealed
        recorded = changed.recorded
        for text in guesses(handler.fn, _names_of(attempt)):
            tell = self._secrets.guess(text)
            other = self._decide_again(
                retold(attempt, tell), handler, changed.number, tell
            )
            if other is None:
                continue
            if _shape(changed.recorded) == _shape(changed.now) == _shape(other):
                recorded = _without_dependent(recorded, changed.now, other)
            elif _shape(changed.now) != _shape(other) == _shape(changed.recorded):
                return told, Same(parts=changed.parts), concealed or changed
        if same_json(recorded, changed.recorded):
            return told, changed, concealed
        told = with_decision(told, changed.number, recorded)
        verdict = self._ask_handler(told, handler, self._secrets.tell)
        return told, verdict, concealed or changed

    def _ask_handler(self, attempt: Attempt, handler: Handler, tell: Tell) -> Verdict:
        around = self._surroundings_for(tell)
        if self._guard is None:
            return asked_again(attempt, handler, around)
        with self._guard:
            return asked_again(attempt, handler, around)

    def _decide_again(
        self, attempt: Attempt, handler: Handler, number: int, tell: Tell
    ) -> Any:
        around = self._surroundings_for(tell)
        if self._guard is None:
            return decided(attempt, handler, around, number)
        with self._guard:
            return decided(attempt, handler, around, number)

    def _surroundings_for(self, tell: Tell) -> Surroundings:
        history = self.history
        known = history.catalogue, self._settings, history.versions
        return Surroundings(*known, self._empty, tell)

    # -------------------------------------------------------------------- indices

    def _note_objects(self, step: Step) -> None:
        type = getattr(step.input, "type", "MODIFIED")
        for body in step.shown:
            place = Place.of(body.data)
            known = self._bodies.get(place)
            is_older = known is not None and is_behind(body.version, known.version)
            if (
                isinstance(step.input, records.WatchEvent | records.Answered)
                and not is_older
            ):
                self._writes.sees(
                    *(known, body, type, step.now),
                    *(self.history.catalogue, self._settings, self._rendering_ways),
                )
            if step.is_gone:
                self._bodies.pop(place, None)
            elif not is_older:
                self._bodies[place] = body

    def _index(self, trace: records.Indexed, step: Step) -> None:
        """Ask an index function again for the values of an object, as it was then."""
        name = trace.name
        handler = self._handlers.get(name)
        if handler is None or handler.role not in INDICES:
            self.found.unindexed[name] += 1
            return
        kind = self.history.resource(trace.object.resource)
        names = ("", "") if kind is None else (kind.api_version, kind.kind)
        body = self._bodies.get(Place(*names, *trace.object[1:]))
        if body is None and not trace.values:
            return  # the object is deleted: the operator asked no function
        self.found.indexed += 1
        if body is None:
            self.found.untold["the object of an index is not in the recording"] += 1
            return
        version = Version(*trace.object, body.uid, body.version)
        end = {"values": trace.values, "unknown": trace.unknown}
        at = step.number, step.now
        attempt = Attempt(0, name, *at, version, body, end=end)
        self._judge_attempt(attempt, handler, self.found.reindexed)


_UNDECLARED = "the recording lacks the call that has declared it"


# ---------------------------------------------------------------------- secrets


class _Secrets:
    """The texts that depend on secrets, as far as they are known."""

    def __init__(self, program: Program, drawing: Container[int]) -> None:
        self._told, self._twin = (
            Retold(program),
            Retold(program, another_token, drawing),
        )
        self._likeness = Likeness(self._told, self._twin, {})
        self._program = program

    def guess(self, text: str) -> Tell:
        """A function that renders a value with this text in the place of each token."""
        guessed = Retold(self._program, lambda token: replaced_token(token, text))
        guessed.texts = self._told.texts
        return lambda value: _rendered_value(value, guessed)

    def tell(self, value: Any) -> Any:
        """A recorded value, with the texts that handlers now make of their tokens."""
        return _rendered_value(value, self._told)

    def vary(self, value: Any) -> Any:
        """The same with other tokens."""
        return _rendered_value(value, self._twin)

    def draw(self, input: dict[str, Any]) -> None:
        """Note random bytes: with the other tokens, there are other bytes, too.

        Handlers often encode their text once more, as in the data of a Secret.
        """
        told = self._twin.input(input)
        drawn, others = (each["outcome"].get("value") for each in (input, told))
        if drawn != others:
            for text, instead in forms(drawn.encode(), others):
                self._twin.texts.add(text, instead)

    def likened(self, recorded: Any, now: Any, other: Any) -> Any:
        """The recorded decision, with its secret-dependent parts as they are now.

        `now` and `other` are the decisions with the one set of tokens and with the
        other.
        """
        named = map(by_name, (recorded, now, other))
        return in_order(self._without_secret_parts(*named))

    def _without_secret_parts(self, recorded: Any, now: Any, other: Any) -> Any:
        match recorded, now:
            case dict(), dict():
                others = other if isinstance(other, dict) else {}
                names = dict.fromkeys((*recorded, *now))
                given = (
                    [each.get(name, MISSING) for each in (recorded, now, others)]
                    for name in names
                )
                told = (self._without_secret_parts(*each) for each in given)
                found = zip(names, told, strict=True)
                return {name: each for name, each in found if each is not MISSING}
            case list(), list() if len(recorded) == len(now):
                is_alike = isinstance(other, list) and len(other) == len(now)
                items = other if is_alike else [MISSING] * len(now)
                return [*map(self._without_secret_parts, recorded, now, items)]
            case (dict() | list(), _) | (_, dict() | list()):
                return (
                    now
                    if _type_and_length(now) != _type_and_length(other)
                    else recorded
                )
            case _:
                return (
                    now if self._depends_on_secret(recorded, now, other) else recorded
                )

    def _depends_on_secret(self, recorded: Any, now: Any, other: Any) -> bool:
        """Whether a text or a number differs only because of a secret."""
        if recorded is MISSING or now is MISSING:
            return (now is MISSING) != (other is MISSING)
        if same_json(recorded, now):
            return False
        is_alike = self._likeness.alike(recorded, now, other)
        return is_alike or self._likeness.is_derived


def _rendered_value(value: Any, retold: Retold) -> Any:
    """A value as a replay renders it: with known texts, then with its tokens."""
    told = _known(value, retold)
    if has_token(canonical(told)):
        told = _known(rewritten(told, retold.text, TOKEN_LENGTH), retold)
    return told


def _known(value: Any, retold: Retold) -> Any:
    told = retold.command({"value": value})
    assert told is not None
    return told["value"]


def _has_tokens(attempt: Attempt) -> bool:
    """Whether a handler got a token in the attempt."""
    found = False

    def look(value: Any) -> Any:
        nonlocal found
        found = found or has_token(canonical(value))
        return value

    retold(attempt, look)
    return found


def _names_of(attempt: Attempt) -> tuple[str, ...]:
    """The names of the attempt's object: code compares references with them."""
    if attempt.body is None:
        return ()
    name, place = attempt.body.name, attempt.body.namespace
    return (name, place, f"{place}/{name}", f"{name}.{place}") if place else (name,)


def _without_dependent(recorded: Any, now: Any, other: Any) -> Any:
    """The recorded decision, with the present one for parts that depend on a secret.

    `other` is decided with another text in the secret's place.
    """
    match recorded, now, other:
        case dict(), dict(), dict():
            names = dict.fromkeys((*recorded, *now))
            told = {
                name: _without_dependent(
                    *(each.get(name, MISSING) for each in (recorded, now, other))
                )
                for name in names
            }
            return {name: each for name, each in told.items() if each is not MISSING}
        case list(), list(), list() if len(recorded) == len(now) == len(other):
            return [*map(_without_dependent, recorded, now, other)]
    if MISSING in (now, other):
        return recorded if now is other else now
    return recorded if same_json(now, other) else now


def _shape(decision: dict[str, Any]) -> tuple[Any, ...]:
    """The kind of a decision: its effect, or the way it ends."""
    return decision.get("is"), "failure" in decision


def _type_and_length(value: Any) -> tuple[type, int]:
    """The type of a value, and the length of a list."""
    return type(value), len(value) if isinstance(value, list) else 0
