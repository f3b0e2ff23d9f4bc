"""The causes of differences: the input that differs in two runs, and since when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from fnop.core.seam.traces import Version
from fnop.core.values.body import Body
from fnop.core.values.diff import Diff, DiffItem
from fnop.interpreters.recording.comparison.ages import ages_of, differing_ages
from fnop.interpreters.recording.comparison.divergence import (
    Alignment,
    Divergence,
    LaneCount,
    Sort,
    Unlike,
)
from fnop.interpreters.recording.comparison.pairs import Lane
from fnop.interpreters.recording.comparison.runs import Call, Run
from fnop.interpreters.recording.identities.volatile import Renaming
from fnop.interpreters.recording.model.history import Request
from fnop.interpreters.recording.questions.provenance import Shown

__all__ = ["Cause", "Comparison", "Input", "Told", "compared"]

Both = tuple[Shown | None, Shown | None]
Calls = tuple[Call | None, Call | None]

_INPUTS_MAX = 8
# One object overtakes another within this number of steps.
_LOOK_BACK = 100


class Input(Struct, frozen=True):
    """An input that differs in the two runs, in its state or in its order.

    - An `object` was shown in different states.
    - A `trigger` brought a call that the other run lacks.
    - In another `order` the runs were shown `same`, and the inputs that brought their
      calls.
    - A `fact` is the reason of a call and the like.
    - An `index` is the values of an object in an index.
    - A `time` is an age in seconds.

    `shown` says how each run came to its state. `same` is the step in which each run
    was shown the state of the other run.
    """

    kind: Literal["object", "trigger", "order", "fact", "index", "time"]
    what: str
    fields: Diff = ()
    shown: Both = (None, None)
    same: Both = (None, None)


class Cause(Struct, frozen=True):
    """The cause of a difference.

    `requests` are the requests that got different answers. If a process has ended,
    `open` are its requests without an answer, and `following` is the next thing that
    the other run was shown.
    """

    inputs: tuple[Input, ...] = ()
    requests: tuple[Request | None, Request | None] = (None, None)
    open: tuple[Request, ...] = ()
    following: Shown | None = None


class Told(NamedTuple):
    """A difference, and its cause."""

    found: Divergence
    cause: Cause


class Comparison(Struct, frozen=True):
    """Two runs compared.

    `first` is the first difference by causality, and `decision` is the first decision
    that differs. Each is None if there is no such difference. `shorter` is the run, 0
    or 1, that lacks everything that differs and does nothing else instead.
    """

    first: Told | None
    decision: Told | None
    lanes: tuple[LaneCount, ...]
    shorter: int | None = None


def compared(ours: Run, theirs: Run) -> Comparison:
    """Compare two runs from their beginnings; their decisions must have been traced."""
    alignment = Alignment(ours, theirs)
    found = alignment.findings()
    first = alignment.earliest(found)
    decision = alignment.earliest(each for each in found if each.is_decision)
    return Comparison(
        None if first is None else Told(first, _cause(alignment, first)),
        None if decision is None else Told(decision, _cause(alignment, decision)),
        tuple(alignment.counts()),
        _side_without_items(found),
    )


def _side_without_items(found: Sequence[Divergence]) -> int | None:
    """The run that has none of the differing items, or None."""
    has = {
        side
        for each in found
        for side in (0, 1)
        if each.sort is Sort.ENDED or each.steps[side] is not None
    }
    return 1 - has.pop() if len(has) == 1 else None


def _cause(alignment: Alignment, found: Divergence) -> Cause:
    match found.sort:
        case Sort.ENDED:
            return _cause_of_end(alignment, found)
        case Sort.ANSWER:
            return _cause_of_answer(alignment, found)
        case Sort.VIEW:
            return Cause(
                tuple(_input_of_view(alignment, found, e) for e in found.unlike)
            )
        case Sort.CALL:
            return Cause(tuple(_inputs_of_call(alignment, found)))
        case Sort.WRITE if None in found.items:
            return Cause(tuple(_inputs_of_subject(alignment, found)))
        case Sort.DECISION if found.before is not None:
            return _cause(alignment, found.before)
        case _:
            inputs = _inputs_of_decision(alignment, found)
            return Cause(tuple(islice(inputs, _INPUTS_MAX)))


# ------------------------------------------------------------------------ objects


def _input_of_view(alignment: Alignment, found: Divergence, unlike: Unlike) -> Input:
    if not unlike.is_object:
        return Input("fact", unlike.what, unlike.fields)
    calls = found.items
    assert isinstance(calls[0], Call)
    assert isinstance(calls[1], Call)
    ours, theirs = alignment.runs
    mine, yours = unlike.values
    shown = (
        _input_that_brought(ours, mine, calls[0]),
        _input_that_brought(theirs, yours, calls[1]),
    )
    same = _input_shown_to(alignment, 0, yours), _input_shown_to(alignment, 1, mine)
    what = unlike.what or _label(found.lane)
    return Input("object", what, unlike.fields, shown, same)


def _label(lane: Lane) -> str:
    return f"{lane.resource.partition('.')[0]}/{lane.where}"


def _name(body: Body) -> str:
    """
    >>> _name(Body({"kind": "Pod", "metadata": {"name": "p", "namespace": "n"}}))
    'Pod n/p'
    """
    where = f"{body.namespace}/{body.name}" if body.namespace else body.name
    return f"{_kind(body)} {where}"


def _kind(body: Body) -> str:
    return str(body.data.get("kind"))


def _input_that_brought(run: Run, body: Body | None, call: Call) -> Shown | None:
    """The input that brought a version: the call's own, or the first with it."""
    own = _object_in_input(call)
    if body and own and (own.uid, own.version) == (body.uid, body.version):
        return Shown(call.step, call.attempt.now.wall, call.brought.way, own)
    return _first(run, body, call.step)


def _object_in_input(call: Call) -> Body | None:
    """The object in the input that brought a call."""
    return next(iter(call.brought.shown), None)


def _first(run: Run, body: Body | Version | None, step: int) -> Shown | None:
    """The first step, up to the given one, in which the run was shown this version."""
    shown = () if body is None else run.shown.get(body.uid, ())
    known = (each for each in shown if body and each.body.version == body.version)
    return next((each for each in known if each.step <= step), None)


def _input_shown_to(alignment: Alignment, side: int, body: Body | None) -> Shown | None:
    """The input in which a run was shown a state of the other run.

    An answer is returned only if no other input has that state.
    """
    if body is None:
        return None
    run, other = alignment.runs[side], alignment.runs[1 - side]
    known = run.of_name(_kind(body), body.namespace, other.names.name(body.name))
    wanted = _state(body)
    for shown in sorted(known, key=lambda each: each.by == "answered"):
        states = _state(shown.body), wanted
        if alignment.renaming.is_same(states[side], states[1 - side]):
            return shown
    return None


def _state(body: Body) -> Mapping[str, Any]:
    """An object without its generation, which only counts earlier changes."""
    meta = {key: each for key, each in body.meta.items() if key != "generation"}
    return {**body.data, "metadata": meta}


def _changed_fields(run: Run, shown: Shown) -> Diff:
    """The fields that differ from the version that was shown before."""
    known = run.shown.get(shown.body.uid, ())
    before = [each for each in known if each.step < shown.step]
    if not before:
        return ()
    renaming = Renaming(run.names, run.names)
    return tuple(renaming.differences(before[-1].body.data, shown.body.data))


# ------------------------------------------------------------ what one run alone has


def _value_on_side(side: int, value: Any) -> tuple[Any, Any]:
    return (value, None) if side == 0 else (None, value)


def _side_with_item(found: Divergence) -> int:
    return 0 if found.items[0] is not None else 1


def _inputs_of_call(alignment: Alignment, found: Divergence) -> Iterator[Input]:
    """The input that brought a call that one run lacks, or the call's object before it.

    A call may have waited for others. Then the input is about another object.
    """
    side = _side_with_item(found)
    call = found.items[side]
    assert isinstance(call, Call)
    run = alignment.runs[side]
    own = _first(run, call.attempt.object, call.step)
    is_known = own is None or _input_shown_to(alignment, 1 - side, own.body) is not None
    shown = _input_that_brought(run, _object_in_input(call), call) if is_known else own
    if shown is not None:
        yield _trigger_input(alignment, side, shown)


def _inputs_of_subject(alignment: Alignment, found: Divergence) -> Iterator[Input]:
    """The version of the object that only one run writes to."""
    side = _side_with_item(found)
    write, run = found.items[side], alignment.runs[side]
    assert isinstance(write, Request)
    name = run.names.name(write.name)
    known = run.of_name(run.kind_of(write.resource), write.namespace, name)
    before = [each for each in known if each.step <= write.step]
    if before:
        yield _trigger_input(alignment, side, before[-1])


def _trigger_input(alignment: Alignment, side: int, shown: Shown) -> Input:
    """An object that one run was shown, and when the other was shown the same."""
    same = _input_shown_to(alignment, 1 - side, shown.body)
    news = _changed_fields(alignment.runs[side], shown)
    both = _value_on_side(side, shown), _value_on_side(1 - side, same)
    return Input("trigger", _name(shown.body), news, *both)


def _cause_of_end(alignment: Alignment, found: Divergence) -> Cause:
    """The requests without an answer, and what the other run was shown next."""
    side, run = found.side, alignment.runs[found.side]
    open = tuple(
        each
        for each in run.requests
        if each.process == found.process and not each.is_finished
    )
    end = run.ended(found.process)
    for each in alignment.runs[1 - side].shown_after(alignment.counterpart(side, end)):
        same = _input_shown_to(alignment, side, each.body)
        if same is None or same.step > end:
            return Cause(open=open, following=each)
    return Cause(open=open)


# ------------------------------------------------------------------------ answers


def _cause_of_answer(alignment: Alignment, found: Divergence) -> Cause:
    """The inputs that caused another answer: the object's state, or their order."""
    ours, theirs = (
        _answered(run, found, side) for side, run in enumerate(alignment.runs)
    )
    calls = _calls_behind(alignment, found)
    inputs: Iterator[Input] = iter(())
    if None not in calls:
        has_both = None not in found.steps
        inputs = (_inputs_in_order if has_both else _object_since)(
            alignment, found, calls
        )
    return Cause(tuple(islice(inputs, 1)), (ours, theirs))


def _answered(run: Run, found: Divergence, side: int) -> Request | None:
    """The request that was answered in the step, or that has no answer."""
    item, step = found.items[side], found.steps[side]
    if isinstance(item, Request) or item is None:
        return item
    handler, where = item.attempt.handler, item.attempt.where
    about = [e for e in run.requests if (e.handler, e.subject) == (handler, where)]
    return next((each for each in about if each.ended == step), None)


def _object_since(
    alignment: Alignment, found: Divergence, calls: Calls
) -> Iterator[Input]:
    """The object of a call that does not go on, as the run was shown it since then."""
    side = found.steps.index(None)
    call, run = calls[side], alignment.runs[side]
    if call is None or call.attempt.object is None:
        return
    since = max([call.step, *(each.step for each in call.moments)])
    shown = run.shown.get(call.attempt.object.uid, ())
    for each in shown:
        if each.step >= since and each.by != "answered":
            same = _input_shown_to(alignment, 1 - side, each.body)
            both = _value_on_side(side, each), _value_on_side(1 - side, same)
            yield Input("object", _name(each.body), _changed_fields(run, each), *both)


def _inputs_in_order(
    alignment: Alignment, found: Divergence, calls: Calls
) -> Iterator[Input]:
    """An object that one run was shown before the answer, and the other after it."""
    mine, yours = (
        None if call is None else _input_that_brought(run, _object_in_input(call), call)
        for run, call in zip(alignment.runs, calls, strict=True)
    )
    known = (_name(each.body) for each in (mine, yours) if each is not None)
    what = next(known, _label(found.lane))
    for late in (1, 0):
        here, there = found.steps[late] or 0, found.steps[1 - late] or 0
        since = alignment.counterpart(1 - late, there) - _LOOK_BACK
        for each in alignment.runs[late].shown_after(since):
            if each.step >= here:
                break
            other = _equally_often_shown(alignment, late, each)
            if other is None or other.step > there:
                same = (other, each) if late else (each, other)
                yield Input("order", what, (), (mine, yours), same)


def _equally_often_shown(alignment: Alignment, side: int, shown: Shown) -> Shown | None:
    """The input that showed the other run the same state, equally often.

    An object may return to a state: for example if it is scaled down and up again. So
    the first occurrence is matched with the first, and the second with the second.
    """
    known = _first_of_stretches(alignment, side, side, shown.body)
    times = len([each for each in known if each.step <= shown.step])
    others = _first_of_stretches(alignment, side, 1 - side, shown.body)
    if times <= len(others):
        return others[times - 1]
    return _input_shown_to(alignment, 1 - side, shown.body)


def _first_of_stretches(
    alignment: Alignment, of: int, side: int, body: Body
) -> list[Shown]:
    """The first version of each stretch in which a run is shown a state of run `of`."""
    run, origin = alignment.runs[side], alignment.runs[of]
    same_run = Renaming(run.names, run.names)
    renaming = same_run if of == side else alignment.renaming
    name = origin.names.name(body.name)
    found, was_same = [], False
    for each in run.of_name(_kind(body), body.namespace, name):
        if each.by == "answered":
            continue
        states = _state(body), _state(each.body)
        is_same = renaming.is_same(*(states[::-1] if of > side else states))
        if is_same and not was_same:
            found.append(each)
        was_same = is_same
    return found


# ---------------------------------------------------------------------- decisions


def _inputs_of_decision(alignment: Alignment, found: Divergence) -> Iterator[Input]:
    """The inputs that may differ although all objects and answers shown were equal."""
    for each in found.fields:
        if each.field[-1:] == ("resourceVersion",):
            yield from _inputs_of_version(alignment, each)
    mine, yours = _calls_behind(alignment, found)
    if mine is None or yours is None:
        return
    indices = [*_inputs_of_indices(alignment, mine, yours)]
    yield from indices
    ours, theirs = alignment.runs
    ages = differing_ages(ages_of(ours, mine), ages_of(theirs, yours))
    if ages and not indices:
        yield Input("time", "", ages)


def _inputs_of_version(alignment: Alignment, item: DiffItem) -> Iterator[Input]:
    """The object, if the decisions refer to different versions of it."""
    ours, theirs = alignment.runs
    mine = ours.names.versions.get(str(item.old))
    yours = theirs.names.versions.get(str(item.new))
    if mine is None or yours is None:
        return
    fields = tuple(alignment.renaming.differences(mine.data, yours.data))
    shown = _first(ours, mine, ours.steps), _first(theirs, yours, theirs.steps)
    same = _input_shown_to(alignment, 0, yours), _input_shown_to(alignment, 1, mine)
    yield Input("object", _name(mine), fields, shown, same)


def _calls_behind(alignment: Alignment, found: Divergence) -> Calls:
    """The calls behind a difference; for requests, earlier calls of their handler."""
    one, other = found.items
    if isinstance(one, Call) and isinstance(other, Call):
        return one, other
    steps = [None if each is None else each.step for each in found.items]
    for lane, both in alignment.lanes.items():
        is_author = lane.handler in found.lane.handler.split(", ")
        if lane.effect or lane.where != found.lane.subject or not is_author:
            continue
        before = [
            len([each for each in calls if step is not None and each.step <= step])
            for step, calls in zip(steps, both, strict=True)
        ]
        place = min(filter(None, before), default=0) - 1
        pair = [calls[place] for calls in both if len(calls) > place >= 0]
        match pair:
            case [Call() as mine, Call() as yours]:
                return mine, yours
            case _:
                pass
    return None, None


def _inputs_of_indices(
    alignment: Alignment, mine: Call, yours: Call
) -> Iterator[Input]:
    """The objects whose values in an index differ."""
    ours, theirs = alignment.runs
    here, there = ours.indexed(mine.step), theirs.indexed(yours.step)
    for key in sorted({*here, *there}):
        fields = tuple(alignment.renaming.differences(here.get(key), there.get(key)))
        if fields:
            index, resource, namespace, name = key
            where = f"{namespace}/{name}" if namespace else name
            label = f"{index}: {resource.partition('.')[0]}/{where}"
            one, other = (
                next(run.of_name(run.kind_of(resource), namespace, name), None)
                for run in alignment.runs
            )
            yield Input("index", label, fields, (one, other))
