"""Find the first decision that differs in two recorded runs, and what differed.

The lanes of two runs are compared pair by pair, each up to its first decision that
differs. Of the differences found, the first by causality is reported. The others are
its consequences.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cached_property
from itertools import accumulate, islice, zip_longest
from typing import Any, NamedTuple

from msgspec import Struct

from fnop.core.values.body import Body
from fnop.core.values.diff import Diff
from fnop.effects import Patch, Random
from fnop.effects.structs import replace
from fnop.interpreters.recording.comparison.ages import ages_of, is_delay, is_one_moment
from fnop.interpreters.recording.comparison.pairs import (
    Eras,
    Lane,
    common_length,
    decided,
    lanes_of,
)
from fnop.interpreters.recording.comparison.runs import Call, Item, Moment, Run
from fnop.interpreters.recording.identities.volatile import Renaming, has_token
from fnop.interpreters.recording.model.history import Request

__all__ = ["Alignment", "Divergence", "LaneCount", "Sort", "Unlike"]

Json = Mapping[str, Any]
Steps = tuple[int | None, int | None]
"""A step of each run; None where it has none."""


class Sort(IntEnum):
    """The sorts of differences; of several at one place the first sort is reported."""

    ENDED = 0  # the process of one run has ended
    ANSWER = 1  # to a request; or no answer has come
    VIEW = 2  # the handler was shown another input
    CALL = 3  # one run calls the handler, and the other does not
    DECISION = 4  # the handler asks for something else, or ends otherwise
    WRITE = 5  # fnop writes something else to the object


class Unlike(Struct, frozen=True):
    """An object, or a fact such as the reason, that two calls were shown differently.

    `what` is "" for the handled object, a label for a child, and the name of a fact.
    """

    what: str
    fields: Diff
    values: tuple[Any, Any]

    @property
    def is_object(self) -> bool:
        """Whether it is an object rather than a fact."""
        return any(isinstance(each, Body) for each in self.values)


class Divergence(Struct, frozen=True):
    """A difference: its sort, its lane, its two calls or requests, and their steps.

    `fields` are the differences of the answers or of the decisions. For a `VIEW`,
    `unlike` lists all that differs. An answer is the answer to `effect`. If a process
    has ended, `side` is its run, 0 or 1, and `process` is its number. `before` is the
    first input that differs before a call decides differently.
    """

    sort: Sort
    lane: Lane
    items: tuple[Item | None, Item | None]
    steps: Steps
    fields: Diff = ()
    values: tuple[Any, Any] = (None, None)
    effect: Json | None = None
    unlike: tuple[Unlike, ...] = ()
    side: int = 0
    process: int = 0
    before: Divergence | None = None

    @property
    def is_decision(self) -> bool:
        """Whether a decision differs: an input may differ without any consequence."""
        return self.sort in (Sort.CALL, Sort.DECISION, Sort.WRITE)


class LaneCount(NamedTuple):
    """The decisions of a handler for an object: equal ones, and ones in one run."""

    handler: str
    resource: str
    where: str
    equal: int
    ours: int
    theirs: int


class Alignment:
    """Two runs side by side, and the differences found in each lane."""

    def __init__(self, ours: Run, theirs: Run) -> None:
        self.runs = ours, theirs
        self.renaming = Renaming(ours.names, theirs.names)
        self.eras = Eras.of(ours, theirs)
        self.lanes = lanes_of(ours, theirs, self.eras)
        # Of each lane: the first difference, its place, and the first decision that
        # differs.
        self._firsts: dict[Lane, Divergence] = {}
        self._places: dict[Lane, int] = {}
        self._parted: dict[Lane, Divergence] = {}
        # The steps of equal items in both runs.
        self._equal: list[tuple[int, int]] = []
        self._walk()

    def findings(self) -> list[Divergence]:
        """The first difference of each lane, and the first decision that differs."""
        ended = (
            self._ended(Lane(era, "", "", "", ""), (None, None), side, number)
            for side in (0, 1)
            for number, (era, _) in enumerate(self.eras.places[side], 1)
            if self.eras.is_cut_short(side, number)
        )
        found = [*ended, *self._firsts.values(), *self._parted.values()]
        found += self._first_calls_after_end()
        return [*{id(each): each for each in found}.values()]

    def _first_calls_after_end(self) -> Iterator[Divergence]:
        """The first calls of processes that began after another one ended early."""
        for lane, found in self._parted.items():
            if found.sort is Sort.ENDED:
                calls = [e for e in self.lanes[lane][found.side] if isinstance(e, Call)]
                side = found.side
                later = (e for e in calls if self.eras.life(side, e.process))
                for call in islice(later, 1):
                    yield self._divergence_of_one(Sort.CALL, lane, side, call)

    # ------------------------------------------------------------------ comparing

    def _walk(self) -> None:
        """Compare the pairs of all lanes, in the order of our run."""
        pairs = [
            (mine.step, place, lane, mine, yours)
            for lane, both in self.lanes.items()
            for place, (mine, yours) in enumerate(zip(*both, strict=False))
        ]
        for _, place, lane, *pair in sorted(pairs, key=lambda each: each[:2]):
            if lane not in self._parted:
                self._note(lane, place, *self._compare_items(lane, *pair))
                self._note_equal(lane, *pair)
        for lane, both in self.lanes.items():
            place = min(map(len, both))
            for side, items in enumerate(both):
                is_alone = len(items) > place and not self._may_come(1 - side, lane)
                if lane not in self._parted and is_alone:
                    self._note(
                        lane, place, *self._difference_of_one(lane, side, items[place])
                    )

    def _may_come(self, side: int, lane: Lane) -> bool:
        """Whether a run may have done more in a lane than its recording shows."""
        run = self.runs[side]
        if not run.started:
            return run.is_open
        return run.is_open and lane.era >= self.eras.era(side, len(run.started))

    def _note(self, lane: Lane, place: int, *found: Divergence) -> None:
        for each in found:
            self._firsts.setdefault(lane, each)
            self._places.setdefault(lane, place)
            if each.is_decision or each.sort is Sort.ENDED:
                self._parted.setdefault(lane, each)

    def _note_equal(self, lane: Lane, mine: Item, yours: Item) -> None:
        if lane in self._firsts:
            return
        self._equal.append((mine.step, yours.step))
        match mine, yours:
            case Request(ended=one), Request(ended=other) if one and other:
                self._equal.append((one, other))
            case _:
                pass

    def _compare_items(
        self, lane: Lane, mine: Item, yours: Item
    ) -> Iterator[Divergence]:
        lives = [
            self.eras.life(side, item.process)
            for side, item in enumerate((mine, yours))
        ]
        if lives[0] != lives[1]:
            side = 0 if lives[0] > lives[1] else 1
            process = (mine, yours)[side].process - abs(lives[0] - lives[1])
            yield self._ended(lane, (mine, yours), side, process)
        elif isinstance(mine, Call) and isinstance(yours, Call):
            yield from self._compare_calls(lane, mine, yours)
        elif isinstance(mine, Request) and isinstance(yours, Request):
            yield from self._compare_requests(lane, mine, yours)

    def _difference_of_one(
        self, lane: Lane, side: int, item: Item
    ) -> Iterator[Divergence]:
        """The difference if only one run has an item.

        A handler's request follows from an effect that it asks for, or from an answer.
        So it does not count as a difference itself.
        """
        life = self.eras.life(side, item.process)
        if life:
            items = (item, None) if side == 0 else (None, item)
            yield self._ended(lane, items, side, item.process - life)
        elif isinstance(item, Call):
            yield self._divergence_of_one(Sort.CALL, lane, side, item)
        elif _is_own(item):
            yield self._divergence_of_one(Sort.WRITE, lane, side, item)

    def _divergence_of_one(
        self, sort: Sort, lane: Lane, side: int, item: Item
    ) -> Divergence:
        if side == 0:
            return Divergence(sort, lane, (item, None), (item.step, None))
        return Divergence(sort, lane, (None, item), (None, item.step))

    def _ended(
        self,
        lane: Lane,
        items: tuple[Item | None, Item | None],
        side: int,
        process: int,
    ) -> Divergence:
        step = self.runs[side].ended(process)
        steps = (step, None) if side == 0 else (None, step)
        return Divergence(Sort.ENDED, lane, items, steps, side=side, process=process)

    def _compare_calls(
        self, lane: Lane, mine: Call, yours: Call
    ) -> Iterator[Divergence]:
        self.renaming.knows_secrets = lambda: all(map(_knows_secrets, (mine, yours)))
        unlike = (*self._objects(mine, yours), *self._differing_facts(mine, yours))
        before: Divergence | None = None
        if unlike:
            steps = mine.step, yours.step
            before = Divergence(Sort.VIEW, lane, (mine, yours), steps, unlike=unlike)
            yield before
        for each in self._compare_moments(lane, mine, yours):
            yield replace(each, before=before) if each.is_decision else each
            before = before or each

    def _objects(self, mine: Call, yours: Call) -> Iterator[Unlike]:
        """The objects that the two calls were shown differently."""
        shown = [
            {
                (key.resource, key.namespace, run.names.name(key.name)): body
                for key, body in call.attempt.children.items()
            }
            for run, call in zip(self.runs, (mine, yours), strict=True)
        ]
        bodies: list[tuple[str, Body | None, Body | None]] = [
            ("", mine.attempt.body, yours.attempt.body)
        ]
        for key in sorted({*shown[0], *shown[1]}):
            names = (key[0].partition(".")[0], *key[1:])
            label = "/".join(each for each in names if each)
            bodies.append((label, shown[0].get(key), shown[1].get(key)))
        for what, one, other in bodies:
            fields = self._fields(one and one.data, other and other.data)
            if fields:
                yield Unlike(what, fields, (one, other))

    def _differing_facts(self, mine: Call, yours: Call) -> Iterator[Unlike]:
        one, other = mine.attempt, yours.attempt
        for what, *values in (
            ("reason", one.reason, other.reason),
            ("attempt", one.retry + 1, other.retry + 1),
            ("memo", dict(one.memo), dict(other.memo)),
            ("former state", one.before is not None, other.before is not None),
        ):
            fields = self._fields(*values)
            if fields:
                yield Unlike(what, fields, (values[0], values[1]))

    def _compare_moments(
        self, lane: Lane, mine: Call, yours: Call
    ) -> Iterator[Divergence]:
        """The differences of answers, up to the first decision that differs."""
        items, effect = (mine, yours), None
        for one, other in zip_longest(mine.moments, yours.moments):
            if one is None or other is None:
                side = 0 if one is None else 1
                yield from self._difference_of_cut(
                    lane, items, side, one or other, effect
                )
                return
            steps = one.step, other.step
            if one.kind != other.kind:
                yield Divergence(Sort.DECISION, lane, items, steps, (), (one, other))
                return
            is_answer = one.kind == "given"
            fields = self._fields(one.what, other.what, decided=not is_answer)
            fields = fields if is_answer else self._without_delays(fields, mine, yours)
            values = (one.what.get("outcome"), other.what.get("outcome"))
            if fields and not is_answer:
                yield Divergence(
                    Sort.DECISION, lane, items, steps, fields, (one, other)
                )
                return
            if fields:
                yield Divergence(
                    Sort.ANSWER, lane, items, steps, fields, values, effect
                )
            effect = one.what if one.kind == "asks" else None

    def _without_delays(self, fields: Diff, mine: Call, yours: Call) -> Diff:
        """The differences without delays that end at the same moment."""
        if not any(map(is_delay, fields)):
            return fields
        ours, theirs = self.runs
        ages = ages_of(ours, mine), ages_of(theirs, yours)
        return tuple(each for each in fields if not is_one_moment(each, *ages))

    def _difference_of_cut(
        self,
        lane: Lane,
        items: tuple[Call, Call],
        side: int,
        there: Moment,
        effect: Json | None,
    ) -> Iterator[Divergence]:
        """The difference if a call does not go on in one run, as far as is known."""
        if self.runs[side].may_go_on(items[side].process):
            return
        if self.eras.is_cut_short(side, items[side].process):
            yield self._ended(lane, items, side, items[side].process)
        elif there.kind == "given":
            steps = (None, there.step) if side == 0 else (there.step, None)
            outcome = there.what["outcome"]
            values = (None, outcome) if side == 0 else (outcome, None)
            yield Divergence(Sort.ANSWER, lane, items, steps, (), values, effect)

    def _compare_requests(
        self, lane: Lane, mine: Request, yours: Request
    ) -> Iterator[Divergence]:
        items = mine, yours
        fields = self._fields(mine.effect, yours.effect, decided=True)
        if fields and _is_own(mine):
            steps = mine.step, yours.step
            values = mine.effect, yours.effect
            yield Divergence(Sort.WRITE, lane, items, steps, fields, values)
        for side, other in ((0, 1), (1, 0)):
            lost = items[side].outcome is None and items[other].outcome is not None
            if lost and self.runs[side].may_go_on(items[side].process):
                return
            if lost and self.eras.is_cut_short(side, items[side].process):
                yield self._ended(lane, items, side, items[side].process)
                return
        if mine.verb == yours.verb == Random.__name__:
            return
        outcomes = mine.outcome, yours.outcome
        fields = self._fields(*outcomes)
        if fields:
            ended = mine.ended or None, yours.ended or None
            yield Divergence(
                Sort.ANSWER, lane, items, ended, fields, outcomes, mine.effect
            )

    def _fields(self, one: Any, other: Any, *, decided: bool = False) -> Diff:
        return tuple(self.renaming.differences(one, other, decided=decided))

    # ------------------------------------------------------------------ causality

    def earliest(self, found: Iterable[Divergence]) -> Divergence | None:
        """The first difference by causality: none of the others can have caused it.

        An item that a run lacks is placed after everything that precedes it in the
        other run.
        """
        known = [(_place_of(each), each) for each in found]
        pairs = [
            (mine, yours)
            for (mine, yours), _ in known
            if mine is not None and yours is not None
        ]
        clock = _Clock([*self._equal_places, *pairs])
        placed = [(clock.completed(place), each) for place, each in known]
        minimal: list[tuple[_Place, Divergence]] = []
        for place, each in sorted(placed, key=lambda each: each[0]):
            last = minimal[-1][0] if minimal else None
            if last is None or place[1] < last[1] or place == last:
                minimal.append((place, each))
        best = min(minimal, key=_rank, default=None)
        return None if best is None else best[1]

    def counterpart(self, side: int, step: int) -> int:
        """The last step of the other run that equals a step up to this one."""
        return self._clock.before(side, _PARTS * (step + 1)) // _PARTS

    @property
    def _equal_places(self) -> Iterator[_Place]:
        return ((_PARTS * one, _PARTS * other) for one, other in self._equal)

    @cached_property
    def _clock(self) -> _Clock:
        return _Clock([*self._equal_places])

    # -------------------------------------------------------------------- counting

    def counts(self) -> Iterator[LaneCount]:
        """Count the decisions of each handler for each object."""
        total: dict[tuple[str, str, str], list[int]] = {}
        for lane, both in self.lanes.items():
            if lane.effect:
                continue
            key = lane.handler, lane.resource, lane.where
            numbers = total.setdefault(key, [0, 0, 0])
            for place, each in enumerate(self._count(lane, both)):
                numbers[place] += each
        for key, (equal, ours, theirs) in total.items():
            yield LaneCount(*key, equal, ours, theirs)

    def _count(
        self, lane: Lane, both: tuple[Sequence[Any], Sequence[Any]]
    ) -> tuple[int, int, int]:
        place = self._places.get(lane)
        if place is None:
            return min(map(len, both)), 0, 0
        ends = [
            len(both[1 - side]) if self._may_come(1 - side, lane) else None
            for side in (0, 1)
        ]
        mine, yours = (
            [decided(each, run.names) for each in calls[place:end]]
            for run, calls, end in zip(self.runs, both, ends, strict=True)
        )
        equal = common_length(mine, yours)
        return place + equal, len(mine) - equal, len(yours) - equal


# The parts of a step in their order: its input, the decisions, and what follows.
_PARTS = 3
_Place = tuple[int, int]


def _place_of(found: Divergence) -> Steps:
    """The place of a difference in each run, by steps and their parts.

    An answer is an input, so it precedes all decisions of its step. The end of a
    process comes after its step.
    """
    part = {Sort.ANSWER: 0, Sort.ENDED: 2}.get(found.sort, 1)
    mine, yours = (
        None if each is None else _PARTS * each + part for each in found.steps
    )
    return mine, yours


def _rank(placed: tuple[_Place, Divergence]) -> tuple[int, int, bool]:
    """The sort key for differences that do not precede each other."""
    place, found = placed
    return sum(place), found.sort, not found.lane.effect


class _Clock:
    """Pairs of places in two runs, to estimate one place from the other."""

    def __init__(self, pairs: Sequence[_Place]) -> None:
        self._places: list[list[int]] = []
        self._others: list[list[int]] = []
        for side in (0, 1):
            found = sorted((each[side], each[1 - side]) for each in pairs)
            self._places.append([place for place, _ in found])
            self._others.append([*accumulate((other for _, other in found), max)])

    def before(self, side: int, place: int) -> int:
        """The last place of the other run that belongs to a place before this one."""
        number = bisect_left(self._places[side], place)
        return self._others[side][number - 1] if number else 0

    def completed(self, place: Steps) -> _Place:
        """The place in both runs, with an estimate for a run that lacks it."""
        mine, yours = place
        if mine is None:
            mine = self.before(1, yours or 0)
        if yours is None:
            yours = self.before(0, mine)
        return mine, yours


def _knows_secrets(call: Call) -> bool:
    """Whether a call was shown or given a token for a secret, or has drawn a secret."""
    asked = (each.what["is"] for each in call.moments if each.kind == "asks")
    if Random.__name__ in asked:
        return True
    bodies = [call.attempt.body, *call.attempt.children.values()]
    found = [each.data for each in bodies if each is not None]
    return has_token([*found, *(each.what for each in call.moments)])


def _is_own(request: Request) -> bool:
    """Whether fnop writes the handled object: for handlers, or for its own needs."""
    return not request.handler or (
        request.verb == Patch.__name__ and request.where == request.subject
    )
