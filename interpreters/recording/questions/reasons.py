"""The reasons of calls, as far as earlier commands and traces show them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fnop.core.api.resources import Resource
from fnop.core.values.body import is_behind
from fnop.interpreters.recording.model.attempts import Attempt
from fnop.interpreters.recording.model.fields import listed

__all__ = ["Reasons"]

Json = Mapping[str, Any]


class _Requeue(NamedTuple):
    """An object to be handled: its kind, the asking handler, and the step."""

    kind: str
    by: str
    step: int


class _Again(NamedTuple):
    """A wish to be called again: the step with it, and the time (Unix seconds)."""

    step: int
    due: float


@dataclass
class Reasons:
    """The calls that were requested and have not come yet."""

    _requeued: dict[tuple[str, str], list[_Requeue]] = field(default_factory=dict)
    _again: dict[tuple[str, str], _Again] = field(default_factory=dict)
    _failed: dict[tuple[str, str], int] = field(default_factory=dict)
    # The version for which each handler was called last, by the object.
    _given: dict[tuple[str, str], str] = field(default_factory=dict)
    # Reconcile handlers: only they are called on the request of others.
    _reconcilers: set[str] = field(default_factory=set)
    # Handlers that were once called only because their time had come.
    _timed: set[str] = field(default_factory=set)

    def note(self, trace: Json, attempt: Attempt, step: int) -> None:
        """Take note of a trace of an attempt."""
        key = _key(attempt)
        match trace:
            case {"do": "Asked", "effect": effect}:
                self._note_effect(effect, attempt, step)
            case {"do": "Desires", "desired": desired}:
                self._is_reconciler(attempt)
                if desired.get("again") is not None:
                    self._again[key] = _again(desired["again"], attempt, step)
            case {"do": "Ended"}:
                for effect in trace.get("plan", ()):
                    self._note_effect(effect, attempt, step)
                if trace.get("failure"):
                    self._failed[key] = step
            case _:
                pass

    def miss(self) -> None:
        """Steps are missing: the calls may have come in them."""
        self._requeued.clear()
        self._again.clear()
        self._failed.clear()
        self._given.clear()

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
            case {"is": "Again", "after": seconds}:
                self._again[_key(attempt)] = _again(seconds, attempt, step)
            case {"is": "Requeue", "target": {"name": str(name)} as target}:
                own = "" if attempt.object is None else attempt.object.namespace
                place = str(target.get("namespace") or own), name
                sake = f" for {attempt.where}" if attempt.where else ""
                kind = str(target.get("kind") or target.get("resource") or "")
                found = _Requeue(kind, f"{attempt.handler}{sake}", step)
                self._requeued.setdefault(place, []).append(found)
            case _:
                pass

    def of(
        self, attempt: Attempt, newest: str, resource: Resource | None
    ) -> Iterator[str]:
        """The reasons for a call, which are used up by it.

        `newest` is the version that the recording has shown last.
        """
        key = _key(attempt)
        failed, again = self._failed.pop(key, 0), self._again.pop(key, None)
        if attempt.retry and failed:
            yield f"again after its failure at #{failed}"
        elif again is not None and again.due <= attempt.now.wall:
            yield f"again, as it asked at #{again.step}"
        if attempt.handler in self._reconcilers:
            yield from self._requeue_reasons(attempt, resource)
        if self._is_former(attempt, newest):
            yield "the former one"
        if attempt.body is not None:
            self._given[key] = attempt.body.version

    def _is_former(self, attempt: Attempt, newest: str) -> bool:
        """Whether a mapping is called for the object as it was before.

        It was already called for that version when the version was the present one. An
        `on.event` handler may be called late, and is called once for each version.
        """
        if attempt.body is None or attempt.reason not in _EVENTS or attempt.retry:
            return False
        version = attempt.body.version
        return self._given.get(_key(attempt)) == version and is_behind(version, newest)

    def is_timed(self, attempt: Attempt, *, at_its_time: bool) -> bool:
        """Whether a call without another reason comes because its time has come.

        `at_its_time` means that nothing else has happened in this step. Timers that are
        due together are called one after the other.
        """
        if attempt.reason is not None:
            return False
        if at_its_time and attempt.handler not in self._reconcilers:
            self._timed.add(attempt.handler)
        return at_its_time or attempt.handler in self._timed

    def _requeue_reasons(
        self, attempt: Attempt, resource: Resource | None
    ) -> Iterator[str]:
        if attempt.object is None or resource is None:
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
            steps = dict.fromkeys(f"#{e.step}" for e in ours if e.by == by)
            yield f"requeued by {by} at {listed(steps)}"


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
