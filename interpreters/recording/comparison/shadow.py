"""Ask a recorded attempt again: what would this handler have decided in its place?

The handler gets the recorded view, and the recorded answers as long as it asks for the
same effects. So each attempt is judged by itself: the further consequences of another
decision do not matter here. Index functions are asked in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import orjson
from msgspec import Struct

from fnop.core.api.catalogue import Catalogue
from fnop.core.children.owned import Owned
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import INDICES, LOGS, Family
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.declare.writers import Transform
from fnop.core.handlers.run.arguments import Keeping, Situation
from fnop.core.handlers.run.invocation import (
    Advance,
    Ending,
    JournalEntry,
    LiveCache,
    advance,
)
from fnop.core.memory.observation import (
    FormerValues,
    Observation,
    Seen,
    see,
    value_at,
)
from fnop.core.memory.progress import Failure
from fnop.core.objects.store.indexing import keeps_former, values_for
from fnop.core.values.diff import Diff, diff
from fnop.core.values.errors import text_of
from fnop.core.values.log_lines import LogLine
from fnop.core.values.table import Table
from fnop.effects import Effect
from fnop.effects.desired import label_of
from fnop.effects.structs import replace
from fnop.effects.values import canonical, digest_in_order, same_json
from fnop.effects.wire import desired_to_wire, digest_of, encode, to_wire
from fnop.interpreters.recording.comparison.retelling import Tell, as_recorded
from fnop.interpreters.recording.identities.volatile import has_token
from fnop.interpreters.recording.model.attempts import Attempt, Exchange
from fnop.interpreters.recording.model.versions import Versions

__all__ = [
    "Changed",
    "Same",
    "Surroundings",
    "Untold",
    "Verdict",
    "asked_again",
    "by_name",
    "decided",
    "end_to_wire",
    "in_order",
    "with_decision",
]


class Surroundings(NamedTuple):
    """The surroundings of an attempt: the kinds, the settings, and versions of objects.

    `empty` are the handlers' indices without values. `tell` replaces the texts in the
    former state, as in the attempt itself.
    """

    catalogue: Catalogue
    settings: Settings
    versions: Versions
    empty: Mapping[str, Any]
    tell: Tell = as_recorded


Sort = Literal["raises", "asks", "ends", "indexes"]


class Same(Struct, frozen=True):
    """The decision equals the recorded one; `settings` are those that it has made."""

    settings: Settings | None = None
    parts: tuple[Handler, ...] = ()


class Changed(Struct, frozen=True):
    """The first decision that differs: the effect `number`, from 0, or the end.

    `recorded` and `now` are JSON, and `fields` are their differences. `parts` are the
    sub-handlers that the handler has declared. `sort` is one of these:

    - `raises`: the handler raises now.
    - `asks`: it asks for something else.
    - `ends`: it ends otherwise.
    - `indexes`: an index function returns other values.
    """

    sort: Sort
    number: int
    recorded: Any
    now: Any
    fields: Diff
    failure: Failure | None = None
    parts: tuple[Handler, ...] = ()


class Untold(Struct, frozen=True):
    """The attempt cannot be asked again, and the reason."""

    why: str


Verdict = Same | Changed | Untold


def asked_again(attempt: Attempt, handler: Handler, around: Surroundings) -> Verdict:
    """Drive a handler through a recorded attempt, up to the first difference."""
    lacks = _missing_view(attempt, handler) or _missing_index(attempt, handler, around)
    if lacks:
        return Untold(lacks)
    situation = _situation_of(attempt, handler, around)
    if situation is None:
        return Untold("the state that it compares with is not in the recording")
    if handler.role in INDICES:
        return _repeat_index(attempt, situation)
    return _replay_attempt(attempt, situation)


def _missing_view(attempt: Attempt, handler: Handler) -> str:
    """The reason why an attempt cannot be shown its object again; "" if it can."""
    family = handler.rule.family
    if handler.function:
        return "it is impure: it would act again"
    if attempt.unknown:
        return attempt.unknown
    if family is Family.RECONCILER and attempt.reason is not None:
        return "fnop ends it without the author's function"
    if family is Family.CLUSTER:
        return "it is about a change of the cluster, which is not told again"
    if attempt.body is None and family is not Family.ACTIVITY:
        return "its object is not in the recording"
    if handler.role in LOGS and (attempt.line is None or has_token(attempt.line[2])):
        return "its line is not in the recording as it was"
    return ""


def _missing_index(attempt: Attempt, handler: Handler, around: Surroundings) -> str:
    """The index that an attempt reads and the recording lacks, in words, or ""."""
    lacks = [each for each in attempt.unindexed if handler.signature.takes(each)]
    if lacks:
        return f"the index {lacks[0]} has values that are no JSON"
    reads = [each for each in around.empty if handler.signature.takes(each)]
    if attempt.missed and reads:
        return f"steps are missing, and with them values of the index {reads[0]}"
    return ""


def _replay_attempt(attempt: Attempt, situation: Situation) -> Verdict:
    live, key = LiveCache(), ("shadow",)
    journal: tuple[JournalEntry, ...] = ()
    try:
        for number, exchange in enumerate(attempt.exchanges):
            found = advance(situation, journal, live, key)
            asks = found.asks
            if asks is None or encode(asks) != canonical(exchange.asked):
                return _changed_decision(number, dict(exchange.asked), found)
            if exchange.outcome is None:
                return Same(parts=found.children)  # its answer was not recorded
            journal = (*journal, _journal_entry(exchange, asks))
        recorded = _recorded_end(attempt, situation.handler)
        if recorded is None:
            return Same()  # it was cut off
        found = advance(situation, journal, live, key)
    finally:
        live.clear()
    now = None if found.end is None else end_to_wire(found.end)
    if now is not None and canonical(now) == canonical(recorded):
        return Same(found.end.settings if found.end else None, found.children)
    return _changed_decision(len(attempt.exchanges), recorded, found)


def _changed_decision(number: int, recorded: Any, found: Advance) -> Changed:
    end = found.end
    if end is None:
        assert found.asks is not None
        asks = _as_json(to_wire(found.asks))
        return _changed_verdict("asks", number, recorded, asks, None, found.children)
    now, failure = end_to_wire(end), end.failure
    raises = failure is not None and "failure" not in recorded
    sort: Sort = "raises" if raises else "ends"
    return _changed_verdict(sort, number, recorded, now, failure, found.children)


def _changed_verdict(
    sort: Sort,
    number: int,
    recorded: Any,
    now: Any,
    failure: Failure | None = None,
    parts: tuple[Handler, ...] = (),
) -> Changed:
    fields = diff(by_name(recorded), by_name(now))
    return Changed(sort, number, recorded, now, fields, failure, parts)


def _as_json(value: Any) -> Any:
    """The value as JSON has it: with lists instead of tuples."""
    return orjson.loads(canonical(value))


def decided(
    attempt: Attempt, handler: Handler, around: Surroundings, number: int
) -> Any:
    """The effect that the handler asks for, or its end, after `number` answers.

    It is not checked whether the handler asked for the same effects before. Return None
    if the attempt cannot be asked.
    """
    situation = _situation_of(attempt, handler, around)
    if situation is None:
        return None
    if handler.role in INDICES:
        found, _ = _current_index_values(situation)
        return found
    live, key = LiveCache(), ("shadow",)
    journal: tuple[JournalEntry, ...] = ()
    try:
        found = advance(situation, journal, live, key)
        for each in attempt.exchanges[:number]:
            if found.asks is None:
                break
            journal = (*journal, _journal_entry(each, found.asks))
            found = advance(situation, journal, live, key)
    finally:
        live.clear()
    if found.asks is not None:
        return _as_json(to_wire(found.asks))
    return None if found.end is None else end_to_wire(found.end)


def _journal_entry(exchange: Exchange, asks: Effect) -> JournalEntry:
    given = exchange.outcome, exchange.wall, exchange.stopped
    return JournalEntry(digest_of(asks), *given)


def with_decision(
    attempt: Attempt, number: int, decision: Mapping[str, Any]
) -> Attempt:
    """The attempt with another decision at its effect `number`, or at its end."""
    if "index" in decision:
        return replace(attempt, end={"values": [*decision["index"].items()]})
    if number < len(attempt.exchanges):
        exchanges = [*attempt.exchanges]
        exchanges[number] = replace(exchanges[number], asked=decision)
        return replace(attempt, exchanges=exchanges)
    if attempt.desires is not None:
        return replace(attempt, desires=_trace_with_decision(attempt.desires, decision))
    return replace(attempt, end=_trace_with_decision(attempt.end or {}, decision))


# The parts of a decision at the end.
_DECIDED = ("plan", "patches", "failure", "desired", "parts")


def _trace_with_decision(
    trace: Mapping[str, Any], decision: Mapping[str, Any]
) -> dict[str, Any]:
    """A trace with another decision."""
    rest = {name: each for name, each in trace.items() if name not in _DECIDED}
    return {**rest, **decision}


def by_name(end: dict[str, Any]) -> dict[str, Any]:
    """An end with the desired children by their names, so that it can be compared."""
    desired = end.get("desired")
    if not isinstance(desired, dict) or not desired.get("children"):
        return end
    if not isinstance(desired["children"], list):
        return end  # it already is in this form
    children = {label_of(each["manifest"]): each for each in desired["children"]}
    return {**end, "desired": {**desired, "children": children}}


def in_order(end: dict[str, Any]) -> dict[str, Any]:
    """The end with a list of children again, after `by_name` has named them."""
    desired = end.get("desired")
    if not isinstance(desired, dict) or not isinstance(desired.get("children"), dict):
        return end
    children = [*desired["children"].values()]
    return {**end, "desired": {**desired, "children": children}}


def _recorded_end(attempt: Attempt, handler: Handler) -> dict[str, Any] | None:
    """The author's decision at the end, without empty parts.

    An empty list of desired children is kept: it deletes all children.
    """
    end = attempt.end if attempt.desires is None else attempt.desires
    if end is None:
        return None
    found = {name: end[name] for name in _DECIDED if end.get(name)}
    if "desired" in end:
        found["desired"] = end["desired"]
    return _without_conditions(found, handler)


def _without_conditions(end: dict[str, Any], handler: Handler) -> dict[str, Any]:
    """The end without the conditions that fnop adds for a reconcile handler."""
    if handler.rule.family is not Family.RECONCILER:
        return end
    patches = [each for each in end.pop("patches", ()) if each is not None]
    return {**end, "patches": patches} if patches else end


def end_to_wire(end: Ending) -> dict[str, Any]:
    """The author's decision at the end as JSON, without empty parts."""
    found: dict[str, Any] = {}
    if end.plan:
        found["plan"] = [to_wire(each) for each in end.plan]
    if end.patches:
        found["patches"] = [
            None if isinstance(each, Transform) else to_wire(each)
            for each in end.patches
        ]
    if end.failure is not None:
        found["failure"] = end.failure.to_wire()
    if end.children:
        found["parts"] = [each.id for each in end.children]
    found = {name: value for name, value in found.items() if value}
    if end.desired is not None:
        found["desired"] = desired_to_wire(end.desired)
    return {name: _as_json(value) for name, value in found.items()}


# ---------------------------------------------------------------------- the indices


def _repeat_index(attempt: Attempt, situation: Situation) -> Verdict:
    """Ask an index function again for the values of an object.

    The attempt has the recorded values at its end, as pairs of a key and a value.
    """
    handler, trace = situation.handler, attempt.end or {}
    if trace.get("unknown"):
        return Untold(f"the index {handler.id} has values that are no JSON")
    if "memo" in handler.signature.wants:
        return Untold("it takes the memo, which is not recorded for an index function")
    recorded = {"index": dict(map(_named_value, trace.get("values", ())))}
    now, failure = _current_index_values(situation)
    if now is None:
        return Untold(f"the index {handler.id} has values that are no JSON now")
    if same_json(now, recorded):
        return Same()
    return _changed_verdict("indexes", 0, recorded, now, failure)


def _current_index_values(situation: Situation) -> tuple[Any, Failure | None]:
    """The values by key, and the failure, of an index function.

    The values are None if they cannot be written as JSON. A function that keeps the
    former values returns nothing: the recording contains only new values.
    """
    found, failure = None, None
    try:
        found = values_for(situation.handler, situation)
    except BaseException as problem:
        failure = Failure(type(problem).__name__, text_of(problem))
        if not keeps_former(situation.handler, problem):
            found = {}
    if found is None:
        return {}, failure
    with suppress(TypeError):
        return {"index": _as_json(dict(map(_named_value, found.items())))}, failure
    return None, failure


def _named_value(pair: Any) -> tuple[str, Any]:
    """A key of an index as text, and the value."""
    key, value = pair
    return key if isinstance(key, str) else canonical(key).decode(), value


# ------------------------------------------------------------------ the situation


def _situation_of(
    attempt: Attempt, handler: Handler, around: Surroundings
) -> Situation | None:
    catalogue, settings, versions, empty, _ = around
    handler = _handler_with_kinds(handler, catalogue)
    where = attempt.object
    resource = next(
        (e for e in catalogue.resources if where and e.key == where.resource), None
    )
    before = _former_state(attempt, handler, settings, versions)
    if before is not None:
        told = before.values and FormerValues(around.tell(before.values.parsed))
        before = Seen(before.digests, told)
    is_kept = attempt.before is not None and attempt.before.old is not None
    if before is None and is_kept and handler.observes_old:
        return None
    keeping = None
    if handler.rule.family is Family.RECONCILER:
        known = {each.key for each in handler.owned.values()}
        bodies = {k: e for k, e in attempt.children.items() if k.resource in known}
        keeping = Keeping(Owned(handler.owned, bodies, bodies.get), None)
    line = attempt.line
    return Situation(
        handler,
        settings,
        attempt.now,
        resource,
        attempt.body,
        attempt.reason,
        before or _digests(attempt),
        attempt.retry,
        attempt.started,
        attempt.memo,  # type: ignore[arg-type]
        {**empty, **attempt.indices},
        keeping,
        line=None if line is None else LogLine(handler.id, line[1], line[2]),
        container="" if line is None else line[0],
    )


def _handler_with_kinds(handler: Handler, catalogue: Catalogue) -> Handler:
    """The handler with the served kinds of `owns=` and `owner=`."""
    if handler.owns:
        found = {word: catalogue.find(selector) for word, selector in handler.owns}
        owned = {word: kinds[0] for word, kinds in found.items() if kinds}
        handler = replace(handler, owned=Table(owned))
    if handler.owner is not None:
        kinds = catalogue.find(handler.owner)
        owners = frozenset((each.group, each.kind) for each in kinds)
        handler = replace(handler, owners=owners)
    return handler


def _digests(attempt: Attempt) -> Seen | None:
    return None if attempt.before is None else Seen(attempt.before.digests)


def _former_state(
    attempt: Attempt, handler: Handler, settings: Settings, versions: Versions
) -> Seen | None:
    """The earlier state with its values, from the version with the recorded digest."""
    seen = attempt.before
    if seen is None or attempt.object is None or seen.old is None:
        return None
    if not handler.observes_old:
        return None
    observation = Observation(
        (handler.field,),
        (handler.field,),
        settings.ignored,
        settings.places.paths,
        settings.hidden,
    )
    for each in versions.of(attempt.object.uid):
        found = see(each, observation)
        # A state that was read from the object has sorted keys.
        for known in (found, _seen_as_json(found)):
            if digest_in_order(value_at(known, handler.field)) == seen.old:
                return Seen(seen.digests, known.values)
    return None


def _seen_as_json(seen: Seen) -> Seen:
    if seen.values is None:
        return seen
    values = orjson.loads(canonical(dict(seen.values.parsed)))
    return Seen(seen.digests, FormerValues(values))
