"""The spans of a run: reconciles, attempts of handlers, requests, and calls.

`Spans` folds steps into spans that open and close. It reads no clock, so a recording
has the same spans as its run.

- A *reconcile* begins when an object becomes due, if that leads to an attempt or to a
  request. It ends when nothing about the object is under way or due. A retry after a
  pause is another reconcile, as in controller-runtime.
- An *attempt* ends when its effects are performed, and its changes are written. Daemons
  and activities have no reconcile around them: their attempts have no parent.
- A *request* to the API server, or a *call* of a function, is within its attempt. If it
  is of several handlers or of none, it is within the reconcile.

The spans of a tree have times on one clock: the wall clock at the first step, continued
by the monotonic one. So children lie within their parents even if the wall clock jumps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, TypeAlias
from urllib.parse import unquote

from msgspec import Struct

from fnop.core.api.resources import Resource, path_of
from fnop.core.operator.step import State
from fnop.core.seam.commands import (
    AttemptEnded,
    CloseStream,
    Command,
    Fetch,
    ListPage,
    Perform,
    Say,
    Subject,
)
from fnop.core.seam.inputs import (
    Answered,
    Input,
    ListDone,
    ListItem,
    StreamEnded,
    WatchEvent,
)
from fnop.core.seam.traces import Began, Ended, Version
from fnop.core.state.invocation import Invocation
from fnop.core.state.record import IDLE, ObjectRecord, Work
from fnop.core.state.requests import ForEffect
from fnop.core.state.turn import NEW
from fnop.core.values.body import Key
from fnop.core.values.now import Now
from fnop.effects import (
    Answer,
    Applied,
    Call,
    Conflict,
    Create,
    Get,
    List,
    Missing,
    Outcome,
    Patch,
    Raised,
    Random,
    Refused,
)
from fnop.interpreters.runtime.flow import served
from fnop.interpreters.runtime.protocol import ApiRequest
from fnop.interpreters.runtime.requests import (
    fetch_request,
    list_request,
    request_for,
)

__all__ = ["Change", "Closed", "Opened", "Span", "Spans"]

SpanKind = Literal["reconcile", "attempt", "request", "call"]


@dataclass(slots=True, eq=False)
class Span:
    """One span, open until it has an `end`; both times are Unix seconds.

    `step` is the step in which it opened, and `ended` the one in which it closed, from
    1 as in a recording. `about` is the object; None for discovery, leases and
    activities. An attempt has a `handler`, a `retry` and a `reason`; a call has a
    `function`. A request has the `request` and the `template` of its path, and the HTTP
    `status` if the outcome determines it. `result` is one of `AttemptEnded` for
    attempts and reconciles, and the outcome's name for requests and calls. `error` is
    the text of a failure.
    """

    kind: SpanKind
    step: int
    begin: float
    parent: Span | None = None
    about: Subject | None = None
    handler: str = ""
    retry: int = 0
    reason: str = ""
    function: str = ""
    request: ApiRequest | None = None
    template: str = ""
    result: str = ""
    error: str = ""
    status: int | None = None
    end: float | None = None
    ended: int = 0
    # The children that are open.
    inside: int = 0


class Opened(Struct, frozen=True):
    """A span has begun."""

    span: Span


class Closed(Struct, frozen=True):
    """A span has ended: all about it is known."""

    span: Span


Change: TypeAlias = Opened | Closed


@dataclass(slots=True)
class _Busy:
    """The open spans about one object, or about no object."""

    reconcile: Span | None = None
    attempts: dict[int, Span] = field(default_factory=dict)

    def attempt_of(self, handler: str) -> Span | None:
        """The open attempt of a handler; of several the oldest without a result."""
        found = [each for each in self.attempts.values() if each.handler == handler]
        return min(found, key=lambda each: bool(each.result), default=None)


class _Asked(Struct, frozen=True):
    """A request or a call without an answer, and the key of its object."""

    span: Span
    key: Key | None
    command: Perform | Fetch | ListPage


class Spans:
    """The fold of steps to spans, which needs `Settings(traces=True)`.

    `state` returns the operator's state after the step. Only what is open is kept.
    """

    def __init__(self, state: Callable[[], State] = lambda: NEW) -> None:
        self.state = state
        self._step = 0
        self._first: Now | None = None
        self._time = 0.0
        self._before = NEW.objects
        self._busy: dict[Key | None, _Busy] = {}
        # The open attempts, by their numbers.
        self._attempts: dict[int, Span] = {}
        self._asked: dict[int, _Asked] = {}
        self._pages: dict[int, _Asked] = {}
        # Objects that are due, and about which nothing is under way.
        self._due: set[Key | None] = set()
        self._changes: list[Change] = []

    def take(
        self, now: Now, input: Input, commands: Iterable[Command]
    ) -> tuple[Change, ...]:
        """Take one step; return the spans that it opens and closes, in order."""
        self._begin_step(now)
        state = self.state()
        touched = self._due | self._answered(input)
        touched |= {key for key, _ in served(self._before.queue, state, now.mono)}
        for command in commands:
            touched |= self._on_command(command, state, now)
        if len(state.objects.records) < len(self._before.records):
            touched |= self._busy.keys()
        if None in self._busy:
            touched.add(None)
        for key in sorted(touched & self._busy.keys(), key=lambda key: key or ()):
            self._settle(key, state, now)
        self._before = state.objects
        return tuple(self._changes)

    def end(self) -> tuple[Change, ...]:
        """Close all spans: the process ends at the time of the last step."""
        self._changes = []
        for asked in (*self._asked.values(), *self._pages.values()):
            asked.span.error = "the operator has ended before the answer"
            self._close(asked.span)
        for busy in self._busy.values():
            for attempt in busy.attempts.values():
                self._close_attempt(attempt)
            if busy.reconcile is not None:
                self._close(busy.reconcile)
        for open in (self._asked, self._pages, self._busy, self._attempts, self._due):
            open.clear()
        return tuple(self._changes)

    def span_of(self, subject: Subject | None, handler: str | None) -> Span | None:
        """The span that a log line belongs to; spans of the last step count, too."""
        key = None if subject is None else subject.key
        busy = self._busy.get(key, _Busy())
        ended = [
            change.span
            for change in reversed(self._changes)
            if isinstance(change, Closed) and _is_about(change.span, key)
        ]
        spans = (
            busy.attempt_of(handler or ""),
            *(each for each in ended if handler and each.handler == handler),
            busy.reconcile,
            *(each for each in ended if each.kind == "reconcile"),
        )
        return next((each for each in spans if each is not None), None)

    # ------------------------------------------------------------------- the step

    def _begin_step(self, now: Now) -> None:
        self._step += 1
        self._changes = []
        first = self._first = self._first or now
        # A step never is before an earlier one.
        self._time = max(self._time, first.wall + (now.mono - first.mono))

    def _answered(self, input: Input) -> set[Key | None]:
        """Close what the input answers; return the key of the object."""
        match input:
            case Answered(number, outcome) if number in self._asked:
                asked = self._asked.pop(number)
                _judge(asked, outcome)
            case ListDone(stream) if stream in self._pages:
                asked = self._pages.pop(stream)
                asked.span.status, asked.span.result = 200, Applied.__name__
            case StreamEnded(stream) if stream in self._pages:
                asked = self._pages.pop(stream)
                span = asked.span
                span.status, span.result = input.status, input.reason
                span.error = input.message or input.reason
            case WatchEvent(stream, _, body) | ListItem(stream, body):
                numbers = self.state().streams.numbers
                resource = numbers.get(stream, ("",))[0]
                return {Key(resource, body.namespace or "", body.name)}
            case _:
                return set()
        self._close(asked.span)
        return {asked.key}

    def _on_command(self, command: Command, state: State, now: Now) -> set[Key | None]:
        """Open what a command begins; return the key of the object."""
        match command:
            case Began():
                return {self._open_attempt(command, state, now)}
            case Ended(attempt, failure=failure):
                self._note_end(attempt, failed=failure is not None)
            case Say(subject=subject, handler=str(handler), ended=AttemptEnded()):
                key = None if subject is None else subject.key
                self._note_result(key, handler, command)
                return {key}
            case Perform(effect=Random()):
                pass  # not a request
            case Perform(subject=subject):
                key = None if subject is None else subject.key
                self._open_request(command, key, state, now)
                return {key}
            case Fetch(number):
                span = self._open("request", None, None)
                span.request = fetch_request(command)
                span.template = span.request.path
                self._asked[number] = _Asked(span, None, command)
            case ListPage(stream):
                span = self._open("request", None, None)
                span.request = list_request(command)
                span.template = _template(
                    command.resource, bool(command.namespace), named=False
                )
                self._pages[stream] = _Asked(span, None, command)
            case CloseStream(stream) if stream in self._pages:
                span = self._pages.pop(stream).span
                span.result = "closed"
                self._close(span)
            case _:
                pass
        return set()

    # ---------------------------------------------------------------------- spans

    def _open(self, kind: SpanKind, about: Subject | None, parent: Span | None) -> Span:
        span = Span(kind, self._step, self._time, parent, about)
        if parent is not None:
            parent.inside += 1
        self._changes.append(Opened(span))
        return span

    def _close(self, span: Span) -> None:
        span.end, span.ended = self._time, self._step
        if span.parent is not None:
            span.parent.inside -= 1
        self._changes.append(Closed(span))

    def _close_attempt(self, span: Span) -> None:
        span.result = span.result or "cancelled"
        parent = span.parent
        if parent is not None:
            parent.result = max(parent.result, span.result, key=_severity)
            if span.error and not parent.error:
                parent.error = f"{span.handler}: {span.error}"
        self._close(span)

    def _reconcile(self, key: Key, about: Subject, now: Now) -> Span:
        """The open reconcile of an object, or a new one since the object is due."""
        busy = self._busy.setdefault(key, _Busy())
        if busy.reconcile is None:
            busy.reconcile = self._open("reconcile", about, None)
            busy.reconcile.result = "success"
            due = self._before.queue.due.get(key)
            if due is not None and due[0] < now.mono:
                busy.reconcile.begin -= now.mono - due[0]
        return busy.reconcile

    def _open_attempt(self, began: Began, state: State, now: Now) -> Key | None:
        key = about = parent = None
        if began.object is not None:
            version = began.object
            key = Key(version.resource, version.namespace, version.name)
            about = _subject_of(version, state)
            if not _is_daemon(state.objects.records.get(key), began.attempt):
                parent = self._reconcile(key, about, now)
        span = self._open("attempt", about, parent)
        span.handler, span.retry = began.handler, began.retry
        span.reason = began.reason or ""
        self._busy.setdefault(key, _Busy()).attempts[began.attempt] = span
        self._attempts[began.attempt] = span
        return key

    def _open_request(
        self, command: Perform, key: Key | None, state: State, now: Now
    ) -> None:
        parent, about = None, command.subject
        ticket = state.requests.pending.get(command.id)
        busy = self._busy.get(key, _Busy())
        if isinstance(ticket, ForEffect):
            parent = self._attempts.get(ticket.serial)
        elif command.handler:
            parent = busy.attempt_of(command.handler)
        if parent is None and key is not None and about is not None:
            parent = self._reconcile(key, about, now)
        effect, resource = command.effect, command.resource
        span = self._open("call" if resource is None else "request", about, parent)
        span.handler = command.handler or ""
        if isinstance(effect, Call):
            span.function = effect.function
        elif resource is not None:
            span.request = request_for(command, "")
            sub = effect.subresource or "" if isinstance(effect, Patch) else ""
            # The request of a creation has no name in its path.
            named = command.name is not None and span.request.method != "POST"
            named = named and not isinstance(effect, List)
            span.template = _template(resource, bool(command.namespace), named, sub)
        self._asked[command.id] = _Asked(span, key, command)

    # ---------------------------------------------------------------------- ends

    def _note_end(self, serial: int, *, failed: bool) -> None:
        """Note that the author's function has ended; its effects may follow."""
        span = self._attempts.get(serial)
        if span is not None:
            span.result = "error" if failed else "success"

    def _note_result(self, key: Key | None, handler: str, say: Say) -> None:
        busy, ended = self._busy.get(key), say.ended
        span = None if busy is None else busy.attempt_of(handler)
        if span is None or ended is None:
            return
        span.result = ended.result
        if ended.result in ("error", "timeout"):
            span.error = say.error or say.message

    def _settle(self, key: Key | None, state: State, now: Now) -> None:
        """Close the spans about an object that have ended by this step."""
        busy = self._busy[key]
        work = _work_of(key, state)
        running = {each.serial for each in _invocations(key, state)}
        unwritten = {handler.id for handler, _ in work.successes}
        for serial, span in tuple(busy.attempts.items()):
            waits = span.handler in unwritten and span.result == "success"
            if serial not in running and not waits and not span.inside:
                del busy.attempts[serial], self._attempts[serial]
                self._close_attempt(span)
        self._due.discard(key)
        reconcile = busy.reconcile
        if reconcile is not None and not reconcile.inside:
            due = state.objects.queue.due.get(key)
            if due is not None and due[0] <= now.mono:
                self._due.add(key)
            else:
                self._close(reconcile)
                busy.reconcile = None
        if busy.reconcile is None and not busy.attempts:
            del self._busy[key]


def _is_about(span: Span, key: Key | None) -> bool:
    return (None if span.about is None else span.about.key) == key


def _subject_of(version: Version, state: State) -> Subject:
    kind = state.survey.kinds.get(version.resource)
    resource = kind.resource if kind else None
    return Subject(
        version.resource,
        version.namespace or None,
        version.name,
        version.uid,
        resource.kind if resource else "",
        resource.api_version if resource else "",
    )


def _work_of(key: Key | None, state: State) -> Work:
    record = None if key is None else state.objects.records.get(key)
    return record.work or IDLE if record is not None else IDLE


def _invocations(key: Key | None, state: State) -> Iterator[Invocation]:
    """The attempts about an object, or those of all activities."""
    if key is not None:
        yield from _work_of(key, state).invocations
        return
    for activity in state.lifecycle.activities.values():
        yield from (activity.record.work or IDLE).invocations


def _is_daemon(record: ObjectRecord | None, serial: int) -> bool:
    """Whether the attempt runs as long as its object exists."""
    runs = record.work.background_runs if record and record.work else ()
    return any(each.serial == serial and each.handler.rule.lasts for each in runs)


_SEVERITIES = ("", "delegated", "success", "cancelled", "requeue", "error", "timeout")


def _severity(result: str) -> int:
    return _SEVERITIES.index(result)


def _judge(asked: _Asked, outcome: Outcome) -> None:
    """Note the outcome of a request or a call, and its HTTP status if it is certain.

    The outcome of a deletion or an apply does not distinguish 200, 201 and 202.
    """
    span, command = asked.span, asked.command
    span.result = type(outcome).__name__
    match outcome:
        case Applied() | Answer(exception=None):
            effect = command.effect if isinstance(command, Perform) else None
            if isinstance(command, Fetch) or isinstance(effect, (Get, List, Patch)):
                span.status = 200
            elif isinstance(effect, Create):
                span.status = 201
        case Answer(exception=problem):
            span.error = f"{type(problem).__name__}: {problem}"
        case Missing(message):
            span.status, span.error = 404, message
        case Conflict(message):
            span.status, span.error = 409, message
        case Refused(status, message):
            span.status, span.error = status, message
        case Raised(kind, message):
            span.error = f"{kind}: {message}"
        case failed:
            span.error = failed.message


@lru_cache(maxsize=1024)
def _template(
    resource: Resource, namespaced: bool, named: bool, subresource: str = ""
) -> str:
    """The path of a request with names for its parameters.

    >>> _template(Resource("", "v1", "pods", "Pod"), True, True, "status")
    '/api/v1/namespaces/{namespace}/pods/{name}/status'
    """
    namespace = "{namespace}" if namespaced else None
    name = "{name}" if named else None
    return unquote(path_of(resource, namespace, name, subresource))
