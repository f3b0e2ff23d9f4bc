"""A cursor in a recording: it can move, and answers questions there.

All answers are as of the cursor's step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from fnop.effects.structs import replace
from fnop.interpreters.recording.model.attempts import Attempt
from fnop.interpreters.recording.model.predicates import Predicate
from fnop.interpreters.recording.model.refs import Ref
from fnop.interpreters.recording.model.revisions import Revision
from fnop.interpreters.recording.questions.staleness import (
    Beside,
    View,
    operator_view,
    view_of,
)
from fnop.interpreters.recording.questions.steps import Past, Steps
from fnop.interpreters.recording.questions.timeline import Event

__all__ = ["Cursor", "NoAnswer", "Stretch"]


class NoAnswer(LookupError):
    """There is no such place, or no answer; the message is one sentence."""


class Stretch(NamedTuple):
    """The steps in which something holds; the last one is 0 if it has no end."""

    first: int
    last: int


class Cursor(Struct, frozen=True):
    """A step of a recording, and the object that was chosen, if any.

    A step that is missing in the recording belongs to the last step of its gap.
    """

    steps: Steps
    step: int
    chosen: Ref | None = None

    def choosing(self, ref: Ref | None) -> Cursor:
        """The cursor with an object that was chosen, or without one for None."""
        return replace(self, chosen=ref)

    # --------------------------------------------------------------------- moving

    def goto(self, step: int) -> Cursor:
        """The cursor at a step; in a gap, at its end. Raises `NoAnswer`."""
        steps = self.steps
        if not steps.first <= step <= steps.last:
            kept = f"#{steps.first} to #{steps.last}"
            raise NoAnswer(f"there is no step #{step}: the recording has {kept}")
        return replace(self, step=self._recorded_step(step))

    def moved(self, count: int) -> Cursor:
        """The cursor `count` steps further, or back; at most at an end.

        Raises `NoAnswer`.
        """
        numbers, first = self.steps.numbers, self.steps.place(self.steps.first)
        here = self.steps.place(self.step)
        there = max(first, min(here + count, len(numbers) - 1))
        if there == here:
            end = "last" if count > 0 else "first"
            raise NoAnswer(f"#{self.step} is the {end} step")
        return replace(self, step=numbers[there])

    def sought(
        self, holds: Callable[[Event], bool], what: str, *, back: bool
    ) -> Cursor:
        """The cursor at the next event for which something holds. Raises `NoAnswer`."""
        steps = self.steps
        numbers = (
            range(steps.before(self.step) - 1, -1, -1)
            if back
            else range(steps.after(self.step), len(steps.events))
        )
        found = (each for each in numbers if holds(steps.events[each]))
        return self._cursor_at_next(map(steps.step_of, found), what, back=back)

    def to_call(self, handler: str, *, back: bool) -> Cursor:
        """The cursor at the next call of a handler; "" means any handler.

        The call is for the chosen object, unless the handler is never called for it.
        """
        what = f"call of {handler}" if handler else "call of a handler"
        ref = self.chosen
        if ref and any(_calls(each, handler, ref) for each in self.steps.events):
            what = f"{what} for {ref.label}"
        else:
            ref = None
        return self.sought(lambda each: _calls(each, handler, ref), what, back=back)

    def to_write(self, ref: Ref | None, *, back: bool) -> Cursor:
        """The cursor at the next request that writes an object; None means any."""
        what = f"write to {ref.label}" if ref else "write"
        return self.sought(lambda each: _writes(each, ref), what, back=back)

    def to_change(self, ref: Ref, *, back: bool) -> Cursor:
        """The cursor at the next step that changes an object."""
        since = self._past_of(ref).since
        others = reversed(since) if back else since
        return self._cursor_at_next(others, f"change of {ref.label}", back=back)

    def to_trouble(self, *, back: bool) -> Cursor:
        """The cursor at the next step at which something has gone wrong."""
        troubles = self.steps.troubles
        others = reversed(troubles) if back else troubles
        return self._cursor_at_next(others, "failure", back=back)

    def to_stretch(self, ref: Ref, predicate: Predicate) -> Cursor:
        """The cursor at the next step from which a predicate holds."""
        found = (each.first for each in self.stretches(ref, predicate))
        what = f"step at which {predicate} begins to hold of {ref.label}"
        return self._cursor_at_next(found, what, back=False)

    def _cursor_at_next(self, steps: Iterable[int], what: str, *, back: bool) -> Cursor:
        """The cursor at the first of some steps beyond its present step."""
        first, last = self.steps.first, self.steps.last
        for each in steps:
            step = self._recorded_step(max(each, first))
            if each <= last and (step < self.step if back else step > self.step):
                return replace(self, step=step)
        where = "before" if back else "after"
        raise NoAnswer(f"there is no {what} {where} #{self.step}")

    def _recorded_step(self, step: int) -> int:
        """The step, or the end of the gap that contains it."""
        return self.steps.numbers[self.steps.place(step)]

    # ------------------------------------------------------------------- the step

    @property
    def events(self) -> Sequence[Event]:
        """The events of the step."""
        return self.steps.events_at(self.step)

    @property
    def is_unanswered(self) -> bool:
        """Whether a request of the step is still waiting for its answer."""
        return any(each.request in self.steps.pending for each in self.events)

    @property
    def attempts(self) -> Sequence[Attempt]:
        """The attempts that the step is about, each once."""
        events = [*self.events, *self.steps.answers.get(self.step, ())]
        found = (each for event in events for each in event.attempts)
        return [*{id(each): each for each in found}.values()]

    @property
    def objects(self) -> Sequence[Ref]:
        """The objects that the step is about, those of its calls first."""
        events = [*self.events, *self.steps.answers.get(self.step, ())]
        events.sort(key=lambda each: not each.attempts)
        found = (each.object for each in events)
        return [*dict.fromkeys(each for each in found if each and each.name)]

    @property
    def object(self) -> Ref:
        """The object that was chosen, or else the step's. Raises `NoAnswer`."""
        found = next(iter(self.objects), None) if self.chosen is None else self.chosen
        if found is None:
            raise NoAnswer(
                f"#{self.step} is about no object; choose one, as in object default/web"
            )
        return found

    # ------------------------------------------------------------------ the truth

    def truth(self, ref: Ref) -> Revision:
        """The version of an object that exists at the step. Raises `NoAnswer`."""
        past = self._past_of(ref)
        number = past.at(self.step)
        if number < 0:
            raise NoAnswer(
                f"nothing is known of {ref.label} at #{self.step}: the first that is "
                f"known of it is of #{past.since[0]}"
            )
        found = past.versions[number]
        if found.gone:
            raise NoAnswer(f"{ref.label} is gone since #{past.since[number]}")
        return found

    def present(self, kind: str = "") -> Iterator[Revision]:
        """The existing objects of a kind ("" for all), in their order."""
        wanted = (each for each in self.steps.ordered if kind in ("", each.kind))
        for past in map(self.steps.pasts.__getitem__, wanted):
            number = past.at(self.step)
            if number >= 0 and not past.versions[number].gone:
                yield past.versions[number]

    def views(self) -> list[View]:
        """The objects that the handlers of the step were shown or have read by then."""
        return [view_of(each, self.steps, self.step) for each in self.attempts]

    def shown(self, ref: Ref) -> Beside:
        """The version of an object that the operator had been shown."""
        return operator_view(ref, self.steps, self.step)

    # ------------------------------------------------------------ when did it break

    def stretches(self, ref: Ref, predicate: Predicate) -> list[Stretch]:
        """The steps in which a predicate holds for an object, in all of the run."""
        found: list[Stretch] = []
        for step, holds in self._truth_by_step(self._past_of(ref), predicate):
            is_open = bool(found) and not found[-1].last
            if holds and not is_open:
                found.append(Stretch(step, 0))
            elif is_open and not holds:
                found[-1] = found[-1]._replace(last=step - 1)
        return found

    def _truth_by_step(
        self, past: Past, predicate: Predicate
    ) -> Iterator[tuple[int, bool]]:
        """Whether it holds, at the first step and at each step with a new version.

        If one step has several versions, the last one counts.
        """
        first, last = self.steps.first, self.steps.last
        steps = [first, *(max(first, each) for each in past.since)]
        bodies = [None, *(None if each.gone else each for each in past.versions)]
        later = [*steps[1:], last + 1]
        for step, body, then in zip(steps, bodies, later, strict=True):
            if step < then and step <= last:
                yield step, predicate.holds(None if body is None else body.data)

    def bisected(self, ref: Ref, predicate: Predicate, good: int, bad: int) -> Cursor:
        """The cursor at the step from which a predicate holds, up to `bad`.

        It does not hold at `good`. Raises `NoAnswer` if it holds at both steps, or at
        neither.
        """
        found = self.stretches(ref, predicate)
        state = {each: _holds_at(found, each) for each in (good, bad)}
        if good >= bad or state[good] or not state[bad]:
            told = ", ".join(
                f"{'holds' if holds else 'does not hold'} at #{step}"
                for step, holds in state.items()
            )
            raise NoAnswer(
                f"{predicate} {told}: bisect needs a step at which it does not hold "
                "yet, and a later one at which it does"
            )
        return self.goto(next(each.first for each in found if _is_in(each, bad)))

    def _past_of(self, ref: Ref) -> Past:
        found = self.steps.pasts.get(ref)
        if found is None:
            raise NoAnswer(f"the recording shows no version of {ref.label}")
        return found


def _holds_at(found: Sequence[Stretch], step: int) -> bool:
    return any(_is_in(each, step) for each in found)


def _is_in(stretch: Stretch, step: int) -> bool:
    return stretch.first <= step and (not stretch.last or step <= stretch.last)


def _calls(event: Event, handler: str, ref: Ref | None) -> bool:
    attempt = event.attempt
    if event.sort != "call" or attempt is None or ref not in (None, event.object):
        return False
    return handler in ("", attempt.handler)


def _writes(event: Event, ref: Ref | None) -> bool:
    request = event.request
    is_write = event.sort == "send" and request is not None and request.is_write
    return is_write and ref in (None, event.object)
