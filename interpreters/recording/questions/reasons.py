"""The reasons of calls, as far as earlier commands and traces show them.

A reason is a value; `words_of` has the words for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from fnop.core.api.resources import Resource
from fnop.core.memory.observation import essence_of
from fnop.core.values.body import Body, Key, is_behind
from fnop.core.values.diff import Diff
from fnop.effects import Again, Requeue
from fnop.interpreters.recording.model import records
from fnop.interpreters.recording.model.attempts import Attempt
from fnop.interpreters.recording.model.fields import changes_of, fields_text, listed
from fnop.interpreters.recording.model.history import History

__all__ = ["Reason", "Reasons", "words_of"]

Json = Mapping[str, Any]


class Retried(Struct, frozen=True):
    """The call before has failed, at a step."""

    failed: int


class CalledAgain(Struct, frozen=True):
    """The call before asked for another one, at a step."""

    asked: int


class Requeued(Struct, frozen=True):
    """Another handler has requeued the object, at these steps."""

    by: str
    steps: tuple[int, ...]


class Former(Struct, frozen=True):
    """A mapping names the object as it was before."""

    what: str = "former"


class FirstOfProcess(Struct, frozen=True):
    """A process calls the handler for the object for the first time."""

    what: str = "first"


class Changed(Struct, frozen=True):
    """The object differs from the one that was shown to the call before."""

    fields: Diff


class ChildrenChanged(Struct, frozen=True):
    """Children differ from those of the call before: `pods/web`."""

    children: tuple[str, ...]


class Due(Struct, frozen=True):
    """The time of a timer, or of a handler that waits, has come."""

    what: str = "due"


class NothingNew(Struct, frozen=True):
    """The recording shows no reason, and the object is the same in its essence."""

    what: str = "nothing"


Reason = (
    Retried
    | CalledAgain
    | Requeued
    | Former
    | FirstOfProcess
    | Changed
    | ChildrenChanged
    | Due
    | NothingNew
)


def words_of(reason: Reason) -> str:
    """The words for the reason of a call.

    >>> words_of(Requeued("checked for default/a", (3, 5)))
    'requeued by checked for default/a at #3, #5'
    """
    match reason:
        case Retried(failed):
            return f"again after its failure at #{failed}"
        case CalledAgain(asked):
            return f"again, as it asked at #{asked}"
        case Requeued(by, steps):
            return f"requeued by {by} at {listed(f'#{each}' for each in steps)}"
        case Former():
            return "the former one"
        case FirstOfProcess():
            return "the first call of this process"
        case Changed(fields):
            return f"changed: {fields_text(fields)}"
        case ChildrenChanged(children):
            return f"changed children: {listed(children)}"
        case Due():
            return "its time has come"
        case NothingNew():
            return "nothing new in its essence"


class _Requeue(Struct, frozen=True):
    """An object to be handled: its kind, the asking handler, and the step."""

    kind: str
    by: str
    step: int


class _Again(Struct, frozen=True):
    """A wish to be called again: the step with it, and the time (Unix seconds)."""

    step: int
    due: float


class _View(Struct, frozen=True):
    """The object that a call was shown, the versions of children, and its process."""

    body: Body
    children: Mapping[Key, str]
    process: int


@dataclass
class Reasons:
    """The calls that were requested and have not come yet, and the last view of each.

    Keys are the handler and the object's uid.
    """

    history: History
    _last: dict[tuple[str, str], _View] = field(default_factory=dict)
    _requeued: dict[tuple[str, str], list[_Requeue]] = field(default_factory=dict)
    _again: dict[tuple[str, str], _Again] = field(default_factory=dict)
    _failed: dict[tuple[str, str], int] = field(default_factory=dict)
    # The version for which each handler was called last, by the object.
    _given: dict[tuple[str, str], str] = field(default_factory=dict)
    # Reconcile handlers: only they are called on the request of others.
    _reconcilers: set[str] = field(default_factory=set)
    # Handlers that were once called only because their time had come.
    _timed: set[str] = field(default_factory=set)

    def note(self, trace: records.Command, attempt: Attempt, step: int) -> None:
        """Take note of a trace of an attempt."""
        key = _key(attempt)
        match trace:
            case records.Asked(effect=effect):
                self._note_effect(effect, attempt, step)
            case records.Desires(decision={"desired": desired}):
                self._is_reconciler(attempt)
                if desired.get("again") is not None:
                    self._again[key] = _again(desired["again"], attempt, step)
            case records.Ended(decision=decision):
                for effect in decision.get("plan", ()):
                    self._note_effect(effect, attempt, step)
                if decision.get("failure"):
                    self._failed[key] = step
            case _:
                pass

    def miss(self) -> None:
        """Steps are missing: the calls may have come in them."""
        self._requeued.clear()
        self._again.clear()
        self._failed.clear()
        self._given.clear()
        self._last.clear()

    def _is_reconciler(self, attempt: Attempt) -> None:
        """Note a reconcile handler; its first call met the earlier requests."""
        if attempt.handler in self._reconcilers or attempt.object is None:
            return
        self._reconcilers.add(attempt.handler)
        place = attempt.object.namespace, attempt.object.name
        asked = self._requeued.get(place, [])
        asked[:] = [each for each in asked if each.step > attempt.step]

    def _note_effect(self, effect: Json, attempt: Attempt, step: int) -> None:
        match effect:
            case {"is": Again.__name__, "after": seconds}:
                self._again[_key(attempt)] = _again(seconds, attempt, step)
            case {"is": Requeue.__name__, "target": {"name": str(name)} as target}:
                own = "" if attempt.object is None else attempt.object.namespace
                place = str(target.get("namespace") or own), name
                sake = f" for {attempt.where}" if attempt.where else ""
                kind = str(target.get("kind") or target.get("resource") or "")
                found = _Requeue(kind, f"{attempt.handler}{sake}", step)
                self._requeued.setdefault(place, []).append(found)
            case _:
                pass

    def of(self, attempt: Attempt, *, timed: bool) -> list[Reason]:
        """The reasons for a call, which are used up by it.

        `timed` means that nothing has happened in this step except that a time has
        come.
        """
        key, body = _key(attempt), attempt.body
        was = self._last.pop(key, None)
        if body is None:
            return []
        children = {key: each.version for key, each in attempt.children.items()}
        view = _View(body, children, self.history.processes)
        if attempt.unknown:  # the recording lacks a part of its view
            was = None
        else:
            self._last[key] = view
        requested = [*self._requests_for(attempt)]
        if was is None:
            return requested
        found = [*requested, *_differences(was, view)]
        return found or [*self._other_reasons(attempt, was, timed=timed)]

    def _requests_for(self, attempt: Attempt) -> Iterator[Reason]:
        """The requests for a call, and that it is for a former version."""
        key = _key(attempt)
        failed, again = self._failed.pop(key, 0), self._again.pop(key, None)
        if attempt.retry and failed:
            yield Retried(failed)
        elif again is not None and again.due <= attempt.now.wall:
            yield CalledAgain(again.step)
        if attempt.handler in self._reconcilers:
            yield from self._requeue_reasons(attempt)
        if self._is_former(attempt):
            yield Former()
        if attempt.body is not None:
            self._given[key] = attempt.body.version

    def _other_reasons(
        self, attempt: Attempt, was: _View, *, timed: bool
    ) -> Iterator[Reason]:
        """The reason for a call without a request or a change of the essence."""
        assert attempt.body is not None
        beside = changes_of(was.body.data, attempt.body.data)
        if self._is_timed(attempt, at_its_time=timed):
            yield Due()
        elif beside:
            yield Changed(beside)
        elif attempt.reason is None:
            yield NothingNew()

    def _is_former(self, attempt: Attempt) -> bool:
        """Whether a mapping is called for the object as it was before.

        It was already called for that version when the version was the present one. An
        `on.event` handler may be called late, and is called once for each version.
        """
        if attempt.body is None or attempt.reason not in _EVENTS or attempt.retry:
            return False
        version = attempt.body.version
        shown = self.history.versions.of(attempt.body.uid)
        newest = next((each.version for each in shown), "")
        return self._given.get(_key(attempt)) == version and is_behind(version, newest)

    def _is_timed(self, attempt: Attempt, *, at_its_time: bool) -> bool:
        """Whether a call without another reason comes because its time has come.

        `at_its_time` means that nothing else has happened in this step. Timers that are
        due together are called one after the other.
        """
        if attempt.reason is not None:
            return False
        if at_its_time and attempt.handler not in self._reconcilers:
            self._timed.add(attempt.handler)
        return at_its_time or attempt.handler in self._timed

    def _requeue_reasons(self, attempt: Attempt) -> Iterator[Reason]:
        if attempt.object is None:
            return
        resource = self.history.resource(attempt.object.resource)
        if resource is None:
            return
        place = attempt.object.namespace, attempt.object.name
        asked = self._requeued.get(place, [])
        ours = [each for each in asked if _is_of(resource, each.kind)]
        rest = [each for each in asked if each not in ours]
        if rest:
            self._requeued[place] = rest
        else:
            self._requeued.pop(place, None)
        for by in dict.fromkeys(each.by for each in ours):
            steps = dict.fromkeys(each.step for each in ours if each.by == by)
            yield Requeued(by, tuple(steps))


def _differences(was: _View, now: _View) -> Iterator[Reason]:
    """The differences from the call before."""
    if was.process != now.process:
        yield FirstOfProcess()
    found = changes_of(essence_of(was.body), essence_of(now.body))
    both = {**was.children, **now.children}
    changed = [
        each for each in both if was.children.get(each) != now.children.get(each)
    ]
    names = sorted(f"{key.resource.partition('.')[0]}/{key.name}" for key in changed)
    if found:
        yield Changed(found)
    if names:
        yield ChildrenChanged(tuple(names))


def _again(seconds: float, attempt: Attempt, step: int) -> _Again:
    """The wish of an attempt: its time is not earlier, because the call takes time."""
    return _Again(step, attempt.now.wall + seconds)


_EVENTS = frozenset(("ADDED", "MODIFIED", "DELETED"))


def _key(attempt: Attempt) -> tuple[str, str]:
    return attempt.handler, "" if attempt.object is None else attempt.object.uid


def _is_of(resource: Resource, word: str) -> bool:
    """Whether a handler's word for a kind means this resource."""
    names = resource.plural, resource.singular, resource.kind, *resource.shortcuts
    return word.partition(".")[0].lower() in {each.lower() for each in names}
