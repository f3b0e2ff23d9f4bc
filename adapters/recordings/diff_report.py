"""Two runs compared: for people, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from fnop.adapters.common.codes import Code, code_lines, versions
from fnop.core.values.diff import DiffItem, Path
from fnop.core.values.errors import number_of
from fnop.interpreters.recording.comparison.causes import Comparison, Input, Told
from fnop.interpreters.recording.comparison.divergence import (
    Divergence,
    LaneCount,
    Sort,
)
from fnop.interpreters.recording.comparison.runs import Call, Item, Moment
from fnop.interpreters.recording.model.effects import named
from fnop.interpreters.recording.model.history import Request
from fnop.interpreters.recording.questions.provenance import Shown
from fnop.interpreters.recording.questions.story import (
    desired_told,
    end_told,
    outcome_told,
)

__all__ = ["FORMAT_VERSION", "Side", "as_json", "diff_lines"]

FORMAT_VERSION = 1
_LETTERS = "ab"
_FIELDS_SHOWN = 6
_OBJECTS_SHOWN = 4
_OPEN_SHOWN = 5
_MOMENTS_SHOWN = 6
_VALUE_LENGTH = 80


class Side(Struct, frozen=True):
    """One of the two recordings, by its header; `places` are its handlers' lines.

    After its `steps` it is `truncated`, or `missing` is the number of lost steps.
    `damage` is the reason why it cannot be read further.
    """

    file: str
    fnop: str
    operator: str
    handlers: frozenset[str]
    places: Mapping[str, str]
    steps: int
    truncated: bool
    code: Code
    missing: int = 0
    damage: str = ""

    @property
    def is_open(self) -> bool:
        """Whether the steps after its last one are unknown."""
        return self.truncated or self.missing > 0


Sides = tuple[Side, Side]


def diff_lines(sides: Sides, found: Comparison) -> Iterator[str]:
    """The first difference, the first decision that differs, and counts of the rest."""
    for letter, side in zip(_LETTERS, sides, strict=True):
        about = f"fnop {side.fnop}, operator {side.operator}"
        yield f"{letter}: {side.file} ({about}, {number_of(side.steps, 'step')})"
    ours, theirs = (each.code for each in sides)
    if theirs.others(ours):
        yield from code_lines(ours, theirs)
    if found.first is None:
        decisions = sum(each.equal for each in found.lanes)
        yield f"no difference in {number_of(decisions, 'decision')} of handlers"
        return
    first, decision = found.first, found.decision
    yield from _section_lines("first difference", _Told(sides, first))
    if decision is not None and decision.found is not first.found:
        known = decision.found.before is first.found
        told = _Told(sides, decision, known=known)
        yield from _section_lines("first decision that differs", told)
    yield ""
    yield from _summary(sides, found)


def _section_lines(title: str, told: _Told) -> Iterator[str]:
    head, *rest = told.lines()
    yield ""
    yield f"{title}: {head}"
    yield from rest


def _summary(sides: Sides, found: Comparison) -> Iterator[str]:
    """The decisions that differ, with equal lanes folded."""
    if found.shorter is not None:
        letter, other = _LETTERS[found.shorter], _LETTERS[1 - found.shorter]
        end = f"it ends at #{sides[found.shorter].steps}"
        yield f"{letter} does nothing that {other} does not do; {end}"
    differing = [each for each in found.lanes if each.ours or each.theirs]
    count = sum(max(each.ours, each.theirs) for each in differing)
    verb = "differs" if count == 1 else "differ"
    yield f"{number_of(count, 'decision')} of handlers {verb}"
    for handler in dict.fromkeys(each.handler for each in differing):
        lanes = [each for each in differing if each.handler == handler]
        yield from _handler_lines(handler, lanes)
    yield from _equal_lines(found)


def _equal_lines(found: Comparison) -> Iterator[str]:
    """A line that counts the decisions of the lanes without a difference, if any."""
    # A decision that the other run may have made after it was cut off is not compared.
    equal = [e for e in found.lanes if e.equal and not (e.ours or e.theirs)]
    if equal:
        decisions = number_of(sum(each.equal for each in equal), "decision")
        handlers = number_of(len({each.handler for each in equal}), "handler")
        yield f"all others are equal: {decisions} of {handlers}"


def _handler_lines(handler: str, lanes: Sequence[LaneCount]) -> Iterator[str]:
    """A line for each object, or one line for a handler with many differences."""
    for each in lanes[:_OBJECTS_SHOWN]:
        of = f" of {each.where}" if each.where else ""
        yield f"  {handler}{of}: {_lane_counts([each])}"
    rest = lanes[_OBJECTS_SHOWN:]
    if rest:
        objects = number_of(len(rest), "other object")
        yield f"  {handler} of {objects}: {_lane_counts(rest)}"


def _lane_counts(lanes: Sequence[LaneCount]) -> str:
    counts = {
        "equal": sum(each.equal for each in lanes),
        "in a alone": sum(each.ours for each in lanes),
        "in b alone": sum(each.theirs for each in lanes),
    }
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count)


# ----------------------------------------------------------------- one difference


class _Told:
    """The lines about one difference; its causes may be `known` already."""

    def __init__(self, sides: Sides, told: Told, *, known: bool = False) -> None:
        self._sides = sides
        self._found, self._cause = told
        self._known = known

    def lines(self) -> Iterator[str]:
        """The difference, with its causes indented below."""
        yield from self._cause_lines()
        if self._known:
            yield "  by the first difference"
            return
        for each in self._cause.inputs:
            yield from self._input(each)
        before = self._found.before
        if before is not None and before.sort is Sort.ANSWER:
            told = _Told(self._sides, Told(before, self._cause))
            yield from (f"  {line}" for line in told._answer())
        elif self._found.sort is Sort.DECISION and not self._cause.inputs:
            yield f"  its inputs are equal: {self._code_text()}"

    def _code_text(self) -> str:
        """Whether the handler's code differs, as far as known."""
        handler = self._found.lane.handler
        ours, theirs = (each.code for each in self._sides)
        match theirs.is_other(ours, handler):
            case None:
                return "the code differs"
            case True:
                was, now = versions(ours, theirs, handler)
                return f"the code differs (a: {was}; b: {now})"
            case False:
                return "the code is the same, and decides by what no recording holds"

    def _cause_lines(self) -> Iterator[str]:
        match self._found.sort:
            case Sort.ENDED:
                yield from self._ended()
            case Sort.ANSWER:
                yield from self._answer()
            case Sort.VIEW:
                yield f"what {self._who()} was shown, {self._calls()}"
            case Sort.CALL:
                yield from self._call_lines()
            case Sort.DECISION:
                yield f"what {self._who()} decides, {self._calls()}"
                yield from self._decision()
            case Sort.WRITE:
                yield from self._write()

    # ------------------------------------------------------------------- the sorts

    def _ended(self) -> Iterator[str]:
        letter, other = _LETTERS[self._found.side], _LETTERS[1 - self._found.side]
        step = self._found.steps[self._found.side]
        yield f"the process of {letter} ended at #{step}, and another one began"
        for each in self._cause.open[:_OPEN_SHOWN]:
            yield f"  before the answer to {self._request(each)}, sent at #{each.step}"
        more = len(self._cause.open) - _OPEN_SHOWN
        if more > 0:
            yield f"  and to {number_of(more, 'other request')}"
        if self._cause.open:
            return
        yield "  no request was under way"
        following = self._cause.following
        if following is not None:
            way = _way_and_step(following)
            yield f"  {other} goes on with {_object(following)}, {way}"

    def _answer(self) -> Iterator[str]:
        found, requests = self._found, self._cause.requests
        request = next((each for each in requests if each is not None), None)
        effect = named(found.effect or {"is": "a request"})
        what = self._request(request) if request else f"{effect}, for {self._who()}"
        yield f"the answer to {what}"
        sides = zip(_LETTERS, found.steps, found.values, strict=True)
        for letter, step, value in sides:
            told = "none" if value is None else f"{outcome_told(value)} (#{step})"
            yield f"  {letter}: {told}"
        kinds = {None if each is None else each["is"] for each in found.values}
        if len(kinds) == 1:
            yield from _fields(found.fields, "    ")

    def _call_lines(self) -> Iterator[str]:
        side = 0 if self._found.items[0] is not None else 1
        call, letter = self._found.items[side], _LETTERS[side]
        assert isinstance(call, Call)
        attempt = call.attempt
        called = f"{self._who()}{attempt.reason_text}{attempt.retry_text}"
        yield f"{letter} alone calls {called}, at #{call.step}"
        yield f"  it {'; '.join(_call_summary(call))}"
        if attempt.handler not in self._sides[1 - side].handlers:
            yield f"  {_LETTERS[1 - side]} has no handler {attempt.handler}"
        elif not self._cause.inputs:
            yield f"  brought by {_input_text(call)}"

    def _decision(self) -> Iterator[str]:
        one, other = self._found.values
        if self._found.fields:
            yield f"  it {_decision_text(one, self._found.items[0])}"
            yield from _fields(self._found.fields, "    ")
            return
        moments = zip(_LETTERS, (one, other), self._found.items, strict=True)
        for letter, moment, call in moments:
            yield f"  {letter}: it {_decision_text(moment, call)} (#{moment.step})"

    def _write(self) -> Iterator[str]:
        write = next(each for each in self._found.items if each is not None)
        assert isinstance(write, Request)
        yield f"what fnop writes, {self._request(write)}"
        for letter, item in zip(_LETTERS, self._found.items, strict=True):
            sent = "never sent" if item is None else f"sent at #{item.step}"
            yield f"  {letter}: {sent}"
        yield from _fields(self._found.fields, "    ")

    # ------------------------------------------------------------------- the inputs

    def _input(self, each: Input) -> Iterator[str]:
        match each.kind:
            case "time":
                is_write = self._found.sort is Sort.WRITE
                whose = "the inputs of its calls" if is_write else "its inputs"
                yield f"  {whose} are equal but for the time since"
                yield from _fields(each.fields, "    ", unit=" s")
                yield f"  it decides by the time, or {self._code_text()}"
            case "fact":
                yield from _fields(each.fields, f"  {each.what}")
            case "index":
                yield from _fields(each.fields, f"  index {each.what}")
            case "order":
                yield from self._order(each)
            case "trigger":
                yield from self._trigger(each)
            case "object":
                yield f"  {each.what}"
                yield from _fields(each.fields, "    ")
                yield from self._sight_lines(each)

    def _order(self, each: Input) -> Iterator[str]:
        """An object that was shown before the answer in only one of the runs."""
        for side, shown in enumerate(each.same):
            step, other = self._found.steps[side], each.same[1 - side]
            if shown is None or step is None or shown.step > step:
                continue
            never = self._never_shown(1 - side, "never")
            then = f"after it, {_way_and_step(other)}" if other else never
            before = (
                f"{_LETTERS[side]} was shown {_object(shown)}, {_way_and_step(shown)}"
            )
            yield f"  before that {before}; {_LETTERS[1 - side]} {then}"
            return

    def _trigger(self, each: Input) -> Iterator[str]:
        side = 0 if each.shown[0] is not None else 1
        shown, same = each.shown[side], each.same[1 - side]
        assert shown is not None
        letter, other = _LETTERS[side], _LETTERS[1 - side]
        yield f"  {letter} was shown {_object(shown)}, {_way_and_step(shown)}"
        yield from _fields(each.fields, "    ", letters=("before", "then"))
        never = self._never_shown(1 - side, "never was")
        yield (
            f"  {other} was shown that, {_way_and_step(same)}"
            if same
            else f"  {other} {never}"
        )

    def _sight_lines(self, each: Input) -> Iterator[str]:
        """The path of each run to its state, and the other run's path to that state."""
        for side, letter in enumerate(_LETTERS):
            shown, same = each.shown[side], each.same[1 - side]
            if shown is None:
                yield f"    {letter}: not there"
                continue
            other = _LETTERS[1 - side]
            never = self._never_shown(1 - side, "never")
            elsewhere = (
                f"in {other} {_way_and_step(same)}" if same else f"{never} in {other}"
            )
            way = f"version {shown.body.version}, {_way_and_step(shown)}"
            yield f"    {letter}: {way} ({elsewhere})"

    def _never_shown(self, side: int, never: str) -> str:
        """The words for a thing never shown to a run, as far as its recording goes."""
        run = self._sides[side]
        return f"up to #{run.steps} {never}" if run.is_open else never

    # ------------------------------------------------------------------- the words

    def _who(self) -> str:
        lane = self._found.lane
        where = lane.subject if lane.effect else lane.where
        about = f" of {where}" if where else ""
        return f"{lane.handler}{about}{self._place(lane.handler)}"

    def _place(self, handler: str) -> str:
        """The line of a handler; both lines if they differ."""
        found = [side.places.get(handler, "") for side in self._sides]
        known = dict.fromkeys(each for each in found if each)
        return f" ({', '.join(known)})" if known else ""

    def _calls(self) -> str:
        steps = [each.step for each in self._found.items if isinstance(each, Call)]
        return f"called at #{steps[0]} in a, #{steps[1]} in b"

    def _request(self, request: Request) -> str:
        place = f"{request.namespace}/" if request.namespace else ""
        resource = request.resource.partition(".")[0]
        about = f"{resource}/{place}{request.name}" if resource else ""
        what = named(request.effect, about)
        if not request.handler:
            return what
        of = f" of {request.subject}" if request.subject else ""
        return f"{what}, for {request.handler}{of}{self._place(request.handler)}"


def _input_text(call: Call) -> str:
    """The input that caused a call, if it shows no object."""
    match type(call.brought.input).__name__:
        case "AlarmRang":
            return "an alarm: it is a retry, a timer, or has waited"
        case "Answered":
            return "an answer"
        case "ListDone":
            return "the end of a listing"
        case "Started":
            return "the start of the process"
        case kind:
            return f"the input {kind}"


def _call_summary(call: Call) -> Iterator[str]:
    """A call in a few words: its requests, its answers, its end."""
    for each in call.moments[:_MOMENTS_SHOWN]:
        if each.kind == "given":
            outcome = each.what["outcome"]
            told = outcome_told(outcome) if isinstance(outcome, Mapping) else "nothing"
            yield f"is answered {told}"
        else:
            yield _decision_text(each, call)
    if len(call.moments) > _MOMENTS_SHOWN:
        yield "and goes on"
    elif call.attempt.end is None:
        yield "never ends"


def _decision_text(moment: Moment, call: Item | None) -> str:
    match moment.kind:
        case "asks":
            return f"asks for {named(moment.what)}"
        case "desires":
            return f"desires {desired_told(moment.what.get('desired') or {})}"
        case "ends" if isinstance(call, Call):
            return end_told(moment.what, call.attempt)
        case _:
            return "is given an answer"


def _object(shown: Shown) -> str:
    body = shown.body
    where = f"{body.namespace}/{body.name}" if body.namespace else body.name
    return f"{body.data.get('kind')} {where}, version {body.version}"


def _way_and_step(shown: Shown) -> str:
    how = "as an answer" if shown.by == "answered" else shown.by
    return f"{how} at #{shown.step}"


def _fields(
    fields: Sequence[DiffItem],
    lead: str,
    *,
    unit: str = "",
    letters: tuple[str, str] = ("a", "b"),
) -> Iterator[str]:
    """A line for each field, with both values; `lead` is an indent, and a name."""
    one, other = letters
    for each in fields[:_FIELDS_SHOWN]:
        name = _dotted_path(each.field)
        gap = " " if name and lead.strip() else ""
        old, new = _brief_text(each.old), _brief_text(each.new)
        values = f"{one} {old}{unit}, {other} {new}{unit}"
        yield f"{lead}{gap}{name}: {values}"
    more = len(fields) - _FIELDS_SHOWN
    if more > 0:
        yield f"    and {number_of(more, 'other field')}"


def _dotted_path(field: Path) -> str:
    """A path as people write it, with items of lists in brackets.

    >>> _dotted_path(("spec", "containers", "[main]", "image"))
    'spec.containers[main].image'
    """
    return ".".join(field).replace(".[", "[")


def _brief_text(value: Any) -> str:
    if value is None:
        return "nothing"
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=dict)
    return text if len(text) <= _VALUE_LENGTH else f"{text[: _VALUE_LENGTH - 3]}..."


# ----------------------------------------------------------------------------- JSON


def as_json(sides: Sides, found: Comparison) -> dict[str, Any]:
    """The comparison as JSON; `version` changes if its meaning does."""
    return {
        "version": FORMAT_VERSION,
        "runs": [
            {
                "file": each.file,
                "fnop": each.fnop,
                "operator": each.operator,
                "steps": each.steps,
                "truncated": each.truncated,
                "missing": each.missing,
            }
            for each in sides
        ],
        "other_code": sides[1].code.others(sides[0].code),
        "differs": found.first is not None,
        "shorter": found.shorter,
        "first": _told_json(sides, found.first),
        "decision": _told_json(sides, found.decision),
        "handlers": [each._asdict() for each in found.lanes],
    }


def _told_json(sides: Sides, told: Told | None) -> dict[str, Any] | None:
    if told is None:
        return None
    found, cause = told
    lane = found.lane
    return {
        "sort": found.sort.name.lower(),
        "handler": lane.handler,
        "object": lane.subject if lane.effect else lane.where,
        "resource": "" if lane.effect else lane.resource,
        "places": [each.places.get(lane.handler) for each in sides],
        "steps": [*found.steps],
        "fields": _fields_json(found),
        "values": [_value(each) for each in found.values],
        "run": found.side if found.sort is Sort.ENDED else None,
        "inputs": [_input_json(each) for each in cause.inputs],
        "requests": [each and _request_json(each) for each in cause.requests],
        "open": [_request_json(each) for each in cause.open],
        "following": cause.following and _shown_json(cause.following),
        "text": "\n".join(_Told(sides, told).lines()),
    }


def _fields_json(found: Divergence) -> list[dict[str, Any]]:
    return [_item_json(each) for each in found.fields]


def _item_json(item: DiffItem) -> dict[str, Any]:
    return {"field": [*item.field], "a": item.old, "b": item.new}


def _value(value: Any) -> Any:
    if isinstance(value, Moment):
        return {"kind": value.kind, "step": value.step, "what": value.what}
    return value


def _input_json(each: Input) -> dict[str, Any]:
    return {
        "kind": each.kind,
        "what": each.what,
        "fields": [_item_json(item) for item in each.fields],
        "shown": [one and _shown_json(one) for one in each.shown],
        "same": [one and _shown_json(one) for one in each.same],
    }


def _shown_json(shown: Shown) -> dict[str, Any]:
    body = shown.body
    return {
        "kind": body.data.get("kind"),
        "namespace": body.namespace,
        "name": body.name,
        "version": body.version,
        "by": shown.by,
        "step": shown.step,
    }


def _request_json(request: Request) -> dict[str, Any]:
    return {
        "handler": request.handler,
        "object": request.subject,
        "effect": request.effect["is"],
        "resource": request.resource,
        "namespace": request.namespace,
        "name": request.name or str(request.effect.get("function") or ""),
        "step": request.step,
        "answered": request.ended or None,
    }
