"""One decision of one handler, driven by hand: for plain unit tests.

No cluster, no time, no threads: the test gives the handler the object and the answers,
and gets its effects as values.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fnop.adapters.common.loading import handlers_of_function
from fnop.adapters.common.yaml_values import teach_yaml
from fnop.core.api.resources import Resource
from fnop.core.children.owned import Owned
from fnop.core.handlers.declare.forms import Signature
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.registry import Registry, default_registry
from fnop.core.handlers.declare.roles import (
    CHANGES,
    EVENTS,
    LOGS,
    ROLES,
    Family,
    Role,
    kwargs_of,
)
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.declare.writers import DaemonStoppingReason, Transform
from fnop.core.handlers.program.program import kind_of
from fnop.core.handlers.run import invocation as driving
from fnop.core.handlers.run.arguments import PROVIDERS, Keeping, Situation
from fnop.core.handlers.run.invocation import Ending, JournalEntry, LiveCache
from fnop.core.memory.observation import Seen, see
from fnop.core.memory.progress import Failure, Progress, judge_again, judge_failure
from fnop.core.memory.stored_state import Stored
from fnop.core.objects.decide.selection import (
    Circumstances,
    passes,
    reads_log_of,
    sees,
    wants_line,
)
from fnop.core.objects.store.indexing import Index
from fnop.core.seam.effect_rules import AnswerForm, rule_of
from fnop.core.state.record import ObjectRecord
from fnop.core.values.body import Body, Key
from fnop.core.values.cause import Reason
from fnop.core.values.errors import (
    CallFailed,
    NotPure,
    PermanentError,
    Refused,
    TemporaryError,
    number_of,
    text_of,
)
from fnop.core.values.log_lines import NANOS, LogLine
from fnop.core.values.merge import (
    OperationFailed,
    applied,
    difference,
    operated,
    transformed,
)
from fnop.core.values.now import Now
from fnop.effects import (
    Adopt,
    Again,
    Answer,
    Applied,
    Apply,
    Call,
    Create,
    Effect,
    Event,
    Execute,
    Log,
    Missing,
    Outcome,
    Patch,
    Raised,
    Remember,
    Return,
    Sleep,
    Target,
    Wait,
    Witness,
    outcomes,
)
from fnop.effects.desired import Desired
from fnop.effects.structs import replace
from fnop.effects.values import read_only, thaw_json
from fnop.effects.wire import digest_of
from fnop.interpreters.runtime.calls import StopFlag, called
from fnop.interpreters.runtime.clock import EPOCH
from fnop.interpreters.runtime.guard import Guard
from fnop.interpreters.runtime.interrupts import interruptible
from fnop.interpreters.runtime.unawaited import watch_coroutines

__all__ = ["Plan", "matches", "plan_of"]

# A handler that asks for more effects than this will not end.
ASKED_MAX = 1_000

Answers = Mapping[Effect, Any] | Callable[[Any], Any] | Iterable[Any]
Children = Mapping[str, Iterable[Mapping[str, Any]]]
Indices = Mapping[str, Mapping[Any, Iterable[Any]]]

_RESOURCE = Resource("example.com", "v1", "objects", "Object", verbs=("list", "watch"))


@dataclass(frozen=True)
class Plan(Sequence[Any]):
    """The decision of a handler in one attempt.

    As a sequence it is its `effects`: those that the handler has awaited, yielded and
    returned, in their order. The writes through `patch` come last. In addition it has:

    - `result`
    - `again`: the handler's wish to be called again
    - `lines`: its log lines
    - `failure`, and with it `retries_after`
    - `children`: the ids of its sub-handlers
    - `memo`: the memo afterwards
    - `desired`: the objects that a reconcile handler wants to exist

        plan = plan_of(created, {"spec": {"size": 1}})
        assert plan.patched == {"status": {"phase": "Bound"}}
        assert plan.succeeded
    """

    effects: tuple[Effect, ...]
    result: Any = None
    again: Again | None = None
    lines: tuple[Log, ...] = ()
    failure: Failure | None = None
    retries_after: float | None = None
    """Seconds until the next attempt; None where there is none."""
    children: tuple[str, ...] = ()
    """The ids of the sub-handlers that it has declared."""
    memo: Mapping[str, Any] = field(default_factory=dict)
    """The object's memo after the attempt."""
    desired: Desired | None = None
    """What a reconcile handler desires: `children`, `conditions` and `status`."""
    _parts: Mapping[str, Situation] = field(
        default_factory=dict, repr=False, compare=False
    )

    def __getitem__(self, place: Any) -> Any:
        return self.effects[place]

    def __len__(self) -> int:
        return len(self.effects)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.effects)

    @property
    def succeeded(self) -> bool:
        """Whether the attempt ended without an error and is not to be repeated."""
        return self.failure is None and self.again is None

    def failed(self, text: str = "") -> bool:
        """Whether the handler failed for good, with this `text` in its error."""
        is_final = self.failure is not None and self.retries_after is None
        return is_final and text in str(self.failure)

    def part(self, id: str, answers: Answers = ()) -> Plan:
        """The plan of a sub-handler that the handler has declared.

        `id` is the sub-handler's own id; `answers` are as for `plan_of`. Raises
        `KeyError` for any other id, with the declared ones.
        """
        if id not in self._parts:
            there = ", ".join(self.children) or "none"
            raise KeyError(f"there is no sub-handler {id!r}; declared are: {there}")
        return _Drive(self._parts[id], answers).plan()

    def of(self, kind: type[Effect]) -> list[Any]:
        """The effects of one class, the `kind`, such as `fnop.effects.Patch`."""
        return [each for each in self.effects if isinstance(each, kind)]

    @property
    def patched(self) -> dict[str, Any]:
        """All patches of the handled object, merged into one."""
        merged: dict[str, Any] = {}
        for each in self.effects:
            if isinstance(each, Patch) and each.target is None and each.merge:
                merged = _merge_patches(merged, each.merge)
        return merged


def plan_of(
    handler: Callable[..., Any],
    body: Mapping[str, Any] | None = None,
    *,
    old: Mapping[str, Any] | None = None,
    answers: Answers = (),
    reason: str | None = None,
    type: str | None = None,
    line: str | None = None,
    container: str = "main",
    retry: int = 0,
    now: datetime | float = EPOCH,
    started: datetime | float | None = None,
    memo: Mapping[str, Any] | None = None,
    indices: Indices | None = None,
    children: Children | None = None,
    param: Any = None,
    resource: Resource | None = None,
    settings: Settings | None = None,
    registry: Registry | None = None,
    guard: bool = True,
    **named: Any,
) -> Plan:
    """Call a handler once, as the framework would, and return its decision.

    `handler` is the function; its decorator is looked up in the `registry`, by default
    the global one. If it has several, `reason` chooses, such as "resume"; the default
    is `create`, or with `old` the reason for changes. `body` is the object, `old` the
    object when it was last handled. Both get a name, a namespace and a uid if they lack
    them. `type` is the type of a watch event. `line` is a log line that a `container`
    of the pod in `body` has just written. `retry` is the number of the attempt from 0.
    `now` is its time, and `started` the time of the first attempt (datetimes, or Unix
    seconds). `memo`, `param`, `resource` and `settings` are the arguments with these
    names; `resource` is the object's kind.

    `answers` are for the effects that it awaits: a mapping from effects to answers, a
    function of the effect, or a sequence, in the order of asking. An exception as an
    answer is raised. Events, log lines, sleeps and writes need no answer: the answer to
    a write is the object after it. `indices` are given by their names, as mappings from
    keys to values: `{"pods_by_app": {"web": ["web-1", "web-2"]}}`. `children` are the
    objects that a reconcile handler's object owns: manifests, by the words of its
    `owns=`. The objects that it desires are in the plan, and are not created.

    A handler fails if it acts on the world, for example by a connection, without being
    impure. With `guard=False` it may act.

    Raises `AssertionError` for an effect without an answer, for unused answers of a
    sequence if the handler succeeds, and for an index that is not given. Raises
    `TypeError` for a `body` or `old` that is not an object, for `children` of a kind
    that the handler does not own, and for a handler of logs without a `line` that it
    wants.

        asked = fnop.get("secrets", name="s")
        plan = plan_of(bind, {"spec": {"secret": "s"}}, answers={asked: None})
        assert plan.retries_after == 5
    """
    teach_yaml()
    if named:
        raise TypeError(f"plan_of() has no argument {', '.join(sorted(named))}")
    given = _Given(
        handler,
        body,
        old=old,
        reason=reason,
        type=type,
        line=line,
        container=container,
        moment=_moment(now),
        memo=memo or {},
        indices=_indices(indices),
        resource=resource or _RESOURCE,
        settings=_settings(settings, guard),
        registry=registry or default_registry,
        param=param,
    )
    first = given.moment if started is None else _moment(started)
    return _Drive(given.situation(retry, first, children or {}), answers).plan()


@dataclass(frozen=True, kw_only=True)
class _Given:
    """A handler and all that a test gives it: the arguments of `plan_of`, `matches`."""

    function: Callable[..., Any] = field(kw_only=False)
    body: Mapping[str, Any] | None = field(kw_only=False)
    old: Mapping[str, Any] | None
    reason: str | None
    type: str | None
    line: str | None
    container: str
    moment: float
    memo: Mapping[str, Any]
    indices: Mapping[str, Index]
    resource: Resource
    settings: Settings
    registry: Registry
    param: Any = None

    def __post_init__(self) -> None:
        _check_object(self.body, "body")
        _check_object(self.old, "old")

    @property
    def now(self) -> Now:
        return Now(self.moment, 0.0)

    def handler(self) -> Handler:
        """The handler that the function was declared as."""
        return _handler(
            self.function,
            self.reason,
            self.old is not None,
            self.registry,
            self.param,
            self.indices,
        )

    def handled(self) -> Body | None:
        """The object."""
        return None if self.body is None else self._completed(self.body)

    def seen_before(self, handler: Handler) -> Seen | None:
        """The object as it was when the handler last handled it."""
        if self.old is None:
            return None
        return _seen_body(self._completed(self.old), handler, self.settings)

    def _completed(self, given: Mapping[str, Any]) -> Body:
        return Body(_with_object_fields(given, self.resource))

    def situation(self, retry: int, started: float, children: Children) -> Situation:
        """The handler's situation in one attempt."""
        found, handled = self.handler(), self.handled()
        if found.rule.family is Family.ADMISSION:
            raise TypeError(
                f"{found.id} is asked about a write, and not about an object; use "
                "fnop.testing.review(operator, old, new)"
            )
        _check_indices(found, self.indices, found.signature.wants)
        if handled is None:
            _check_needs_none(found)
        return replace(
            Situation(
                found,
                self.settings,
                self.now,
                None if handled is None else self.resource,
                handled,
                self.reason or self.type or _reason_of(found),
                self.seen_before(found) if found.role in CHANGES else None,
                retry,
                started,
                read_only(dict(self.memo)),
                self.indices,
                _given_children(found, children, handled),
            ),
            line=_line(found, self.line, self.moment),
            container=self.container,
        )

    def matches(self) -> bool:
        """Whether the handler's filters let it be called."""
        found, seen = self.handler(), self.handled()
        assert seen is not None
        for each in found.filters.callbacks:
            _check_indices(found, self.indices, each.wants)
        found = replace(found, owner=None)
        with _guard_calls(self.settings):
            if found.role in CHANGES:
                return self._passes(found, seen)
            situation = Situation(
                found,
                self.settings,
                self.now,
                self.resource,
                seen,
                self.type if found.role in EVENTS else None,
                memo=read_only(dict(self.memo)),
                indices=self.indices,
            )
            if found.log is not None:
                return _wants_log_line(situation, self.line, self.container)
            return sees(found, situation)

    def _passes(self, handler: Handler, seen: Body) -> bool:
        """Whether a handler of changes may be called for the object."""
        kind = kind_of(self.resource, [handler], self.settings)
        at = Circumstances(*(kind, self.settings, self.now, ""), indices=self.indices)
        return passes(
            at,
            ObjectRecord(
                seen,
                Stored(self.seen_before(handler)),
                memo=read_only(dict(self.memo)),
            ),
            handler,
            changed=handler.rule.compares,
            reason=self.reason or _reason_of(handler),
        )


def _indices(given: Indices | None) -> dict[str, Index]:
    return {name: _index(name, values) for name, values in (given or {}).items()}


def _line(handler: Handler, text: str | None, now: float) -> LogLine | None:
    """The line for a handler of logs; other handlers get None."""
    if handler.log is None:
        return None
    if text is None:
        raise TypeError(f"{handler.id} is called for a line of a log; give line=")
    regex = handler.log.regex
    if regex is not None and regex.search(text) is None:
        raise TypeError(
            f"{handler.id} is not called for {text!r:.80}: its regex= does not match it"
        )
    return LogLine(handler.id, round(now * NANOS), text)


def _given_children(
    handler: Handler, given: Children, handled: Body | None
) -> Keeping | None:
    """The children for a reconcile handler; other handlers get None."""
    words = [word for word, _ in handler.owns]
    for word in given:
        if word not in words:
            named = ", ".join(map(repr, words)) or "nothing"
            raise TypeError(
                f"children= has {word!r}, and {handler.id} owns {named}; use its words"
            )
    if handler.rule.family is not Family.RECONCILER or handled is None:
        return None
    kinds = {word: Resource("", "", word, word) for word in words}
    bodies = {}
    for word, manifests in given.items():
        for each in manifests:
            body = Body(thaw_json(dict(each)))
            place = body.namespace or handled.namespace or ""
            bodies[Key(kinds[word].key, place, body.name)] = body
    return Keeping(Owned(kinds, bodies, bodies.get), None)


def matches(
    handler: Callable[..., Any],
    body: Mapping[str, Any],
    *,
    old: Mapping[str, Any] | None = None,
    reason: str | None = None,
    type: str | None = None,
    line: str | None = None,
    container: str = "main",
    now: datetime | float = EPOCH,
    memo: Mapping[str, Any] | None = None,
    indices: Indices | None = None,
    resource: Resource | None = None,
    settings: Settings | None = None,
    registry: Registry | None = None,
    guard: bool = True,
) -> bool:
    """Return whether the filters of a handler let it be called for an object.

    `handler`, `body`, `old`, `reason`, `type`, `line`, `container`, `now`, `memo`,
    `indices`, `resource`, `settings`, `registry` and `guard` are as for `plan_of`. The
    filters are `labels=`, `annotations=`, `field=` with its values, and `when=`; for a
    line also `regex=` and `container=`. The filters do not include `owner=`, nor
    whether anything has changed.

    Raises the errors of functions among the filters, and
    `fnop.core.values.errors.NotPure` if a guarded one acts on the world. Raises
    `AssertionError` for an index that is not given.

        assert matches(served, {"metadata": {"labels": {"app": "web"}}})
    """
    given = _Given(
        handler,
        body,
        old=old,
        reason=reason,
        type=type,
        line=line,
        container=container,
        moment=_moment(now),
        memo=memo or {},
        indices=_indices(indices),
        resource=resource or _RESOURCE,
        settings=_settings(settings, guard),
        registry=registry or default_registry,
    )
    return given.matches()


def _wants_log_line(situation: Situation, line: str | None, container: str) -> bool:
    """Whether a handler of logs reads a pod, and wants a line of it."""
    handler, log = situation.handler, situation.handler.log
    assert log is not None
    if not reads_log_of(handler, situation):
        return False
    if line is None:
        return True
    if not log.takes(container) or (log.regex and not log.regex.search(line)):
        return False
    written = LogLine(handler.id, round(situation.now.wall * NANOS), line)
    return wants_line(handler, replace(situation, line=written, container=container))


# These arguments come from the object.
_OF_OBJECT = {"body", "obj", "spec", "status", "meta", "labels", "annotations", "name"}
_OF_OBJECT |= {"namespace", "uid", "owner", "new", "diff", "event"}


def _check_needs_none(handler: Handler) -> None:
    """Raise `TypeError` for a handler with arguments that only an object has."""
    asked = sorted(_OF_OBJECT.intersection(handler.signature.wants))
    if handler.signature.rest and handler.rule.is_about_objects:
        asked.append("**kwargs")
    if asked:
        raise TypeError(
            f"{handler.id} asks for {', '.join(asked)}, and there is no object; give "
            "it as the second argument, such as {'spec': {...}}"
        )


def _check_object(given: Any, name: str) -> None:
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"{name} is to be an object as a mapping, not {given!r:.80}")


def _settings(given: Settings | None, guard: bool) -> Settings:
    settings = given or Settings()
    return settings if guard else settings.replace(guard=False)


@contextmanager
def _guard_calls(settings: Settings) -> Iterator[None]:
    """Forbid the author's code to act on the world, and report violations."""
    if not settings.guard:
        yield
        return
    guard = Guard(refuses=True)
    with guard:
        yield
    for act in guard.news():
        if act.handler is None:
            raise NotPure(act.refusal, act)


def _moment(value: datetime | float) -> float:
    return value.timestamp() if isinstance(value, datetime) else float(value)


def _with_object_fields(body: Mapping[str, Any], resource: Resource) -> dict[str, Any]:
    """The object with the fields that every object of a cluster has."""
    found: dict[str, Any] = thaw_json(dict(body))
    meta = {"name": "object", "uid": "uid-of-object"}
    if resource.namespaced:
        meta["namespace"] = "default"
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**head, **found, "metadata": {**meta, **(found.get("metadata") or {})}}


def _with_identity(given: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """A handled object that is given again, with its identity filled in.

    >>> pod = {"kind": "Pod", "metadata": {"name": "p", "labels": {}}}
    >>> _with_identity({"spec": {}}, pod)
    {'kind': 'Pod', 'spec': {}, 'metadata': {'name': 'p'}}
    """
    found: dict[str, Any] = thaw_json(dict(given))
    head = {key: own[key] for key in ("apiVersion", "kind") if key in own}
    known = own["metadata"]
    meta = {key: known[key] for key in ("name", "namespace", "uid") if key in known}
    return {**head, **found, "metadata": {**meta, **(found.get("metadata") or {})}}


def _reason_of(handler: Handler) -> str | None:
    """The reason that a handler is called for, if the test names none."""
    if handler.rule.compares:
        return Reason.UPDATE.value
    return None if handler.role in EVENTS | LOGS else handler.role.value


# The roles by which a handler with several decorators is called, without a `reason`.
_NEW = frozenset((Role.CREATE,))
_CHANGED = frozenset(role for role, rule in ROLES.items() if rule.compares)


def _handler(
    fn: Callable[..., Any],
    reason: str | None,
    changed: bool,
    registry: Registry,
    param: Any,
    indices: Mapping[str, Index],
) -> Handler:
    """The handler that a function was declared as; a plain one is an `on.create`."""
    declared = [each for each in registry.handlers if each.declared is fn]
    declared = declared or handlers_of_function(fn)
    wanted = [each for each in declared if each.role.value == reason]
    usual = [each for each in declared if each.role in (_CHANGED if changed else _NEW)]
    if declared:
        return (wanted or usual or declared)[0]
    role = Role(reason) if reason in {role.value for role in Role} else Role.CREATE
    name = getattr(fn, "__qualname__", repr(fn))
    signature = Signature.of(fn, kwargs_of(role), name, {*registry.indices, *indices})
    return Handler(name, fn, role, signature, param=param)


def _index(name: str, values: Mapping[Any, Iterable[Any]]) -> Index:
    """An index of objects, each with the next value of every key."""
    columns: dict[Any, list[Any]] = {}
    for key, found in values.items():
        if isinstance(found, (str, Mapping)) or not isinstance(found, Iterable):
            raise TypeError(
                f"indices[{name!r}][{key!r}] is {found!r}, but an index has several "
                f"values of each key: give [{found!r}]"
            )
        columns[key] = [read_only(value) for value in found]
    index = Index()
    for place in range(max(map(len, columns.values()), default=0)):
        row = {key: each[place] for key, each in columns.items() if place < len(each)}
        index = index.with_object(Key("", "", f"{place:09}"), row)
    return index


def _check_indices(
    handler: Handler, given: Mapping[str, Index], asked: Iterable[str]
) -> None:
    """Raise `AssertionError` if an index is requested but not given."""
    for name in asked:
        if name not in PROVIDERS and name not in given:
            raise AssertionError(
                f"{handler.id} asks for the index {name!r}, and it is not given; give "
                f"indices={{{name!r}: {{key: [value, ...]}}}}"
            )


def _seen_body(old: Body, handler: Handler, settings: Settings) -> Seen:
    kind = kind_of(_RESOURCE, [], settings)
    scopes = (handler.field, ())
    return see(old, replace(kind.observation, scopes=scopes, kept=scopes))


# ------------------------------------------------------------------- answers

Answering = Callable[[Any], Any]
_NONE_GIVEN = object()


def _answer_function(answers: Answers) -> Answering:
    """The answers as one function, which returns `_NONE_GIVEN` if it has no answer."""
    if isinstance(answers, Mapping):
        return lambda effect: answers.get(effect, _NONE_GIVEN)
    if callable(answers):
        return answers
    return _InOrder(answers)


class _InOrder:
    """Answers in the order of asking."""

    def __init__(self, answers: Iterable[Any]) -> None:
        self._answers, self._taken = answers, 0
        self._rest = iter(answers)

    def __call__(self, effect: Any) -> Any:
        given = next(self._rest, _NONE_GIVEN)
        self._taken += given is not _NONE_GIVEN
        return given

    @property
    def left(self) -> list[Any]:
        """Unused answers of a sequence."""
        answers = self._answers
        return [*answers[self._taken :]] if isinstance(answers, Sequence) else []


def _outcome(effect: Effect, answer: Any) -> Outcome:
    """The outcome of an effect with this answer."""
    form = rule_of(effect).answer
    match answer, form:
        case BaseException(), _:
            return _outcome_of_error(answer)
        case (None, AnswerForm.OBJECT_OR_NONE) | (False, AnswerForm.EXISTENCE):
            return Missing("there is no such object")
        case _, AnswerForm.EXISTENCE:
            return Applied()
        case bytes(), AnswerForm.BYTES:
            return Answer(answer.hex())
        case Mapping(), AnswerForm.OBJECT | AnswerForm.OBJECT_OR_NONE:
            return Applied(thaw_json(dict(answer)))
        case _:
            return Answer(answer)


def _outcome_of_error(error: BaseException) -> Outcome:
    match error:
        case Refused(status=status, reason=reason):
            return outcomes.Refused(status, text_of(error), reason)
        case CallFailed(type=name):
            return Raised(name, text_of(error).removeprefix(f"{name}: "))
        case TemporaryError(delay=delay):
            return Raised(type(error).__name__, text_of(error), delay)
        case PermanentError():
            return Raised(type(error).__name__, text_of(error), permanent=True)
        case _:
            return Raised(type(error).__name__, text_of(error))


class _AnsweredFlag(StopFlag):
    """The argument `stopped` of an impure daemon: waiting for it returns at once."""

    def __init__(self, answering: Answering) -> None:
        super().__init__()
        self._answering = answering
        self.asked = 0

    def is_set(self) -> bool:
        self.asked += 1
        if self.asked > ASKED_MAX:
            raise SystemExit(f"it has asked {ASKED_MAX} times whether it is to stop")
        return super().is_set()

    def wait(self, timeout: float | None = None) -> Any:
        with Witness.looking_away():
            asked = Wait(timeout)
        given = False if self.reason else self._answering(asked)
        if isinstance(given, BaseException):
            raise given
        if given is True:
            self.set(DaemonStoppingReason.RESOURCE_DELETED.value)
        return self.is_set()


class _AwaitedFlag(_AnsweredFlag):
    """The flag of a coroutine."""

    async def wait(self, timeout: float | None = None) -> bool:
        return bool(super().wait(timeout))


# --------------------------------------------------------------------- drive


def _endless_message(name: str) -> str:
    return (
        f"{name} has asked for {ASKED_MAX} effects and goes on; a test of a daemon "
        "gives an exception as the last answer, such as fnop.Cancelled"
    )


class _Drive:
    """One attempt, from effect to effect."""

    def __init__(self, situation: Situation, answers: Answers) -> None:
        self.situation = situation
        self.answering = _answer_function(answers)
        self.answers = answers
        self.journal: tuple[JournalEntry, ...] = ()
        self.asked: list[Effect] = []
        self.lines: list[Log] = []
        self.memo: dict[str, Any] = dict(situation.memo)
        self.stopped = ""
        self.body: Any = situation.body.data if situation.body else None

    def plan(self) -> Plan:
        watch_coroutines()
        live = LiveCache()
        key = ("plan",)
        for _ in range(ASKED_MAX):
            with interruptible(), _guard_calls(self.situation.settings):
                found = driving.advance(self.situation, self.journal, live, key)
            self.lines += found.lines
            if found.asks is None:
                assert found.end is not None
                self._check_answers(found.end)
                return self._ended(found.end)
            self.asked.append(found.asks)
            try:
                outcome = self._answer(found.asks)
            except BaseException:
                live.clear()
                raise
            if isinstance(found.asks, Wait) and outcome == Answer(True):
                self.stopped = DaemonStoppingReason.RESOURCE_DELETED.value
            wall = self.situation.now.wall
            entry = JournalEntry(digest_of(found.asks), outcome, wall, self.stopped)
            self.journal = (*self.journal, entry)
        live.clear()
        raise AssertionError(_endless_message(self.situation.handler.id))

    def _answer(self, effect: Effect) -> Outcome:
        match effect:
            case Log():
                self.lines.append(effect)
                self.asked.pop()
                return Answer()
            case Event():
                return Answer()
            case Remember(changes=changes):
                self._remember(changes)
                return Answer()
            case _:
                return self._answer_of_world(effect)

    def _call_handler(self, call: Call) -> Outcome:
        """Run an impure handler; the waiting of a daemon gets answers, too."""
        handler = self.situation.handler
        is_awaited = inspect.iscoroutinefunction(handler.fn)
        stopped = (_AwaitedFlag if is_awaited else _AnsweredFlag)(self.answering)
        outcome = called(handler.fn, call, self.lines.append, stopped)
        if stopped.asked > ASKED_MAX:
            raise AssertionError(_endless_message(handler.id))
        return outcome

    def _answer_of_world(self, effect: Effect) -> Outcome:
        if isinstance(effect, Call) and effect.as_handler:
            self.asked.pop()
            return self._call_handler(effect)
        given = self.answering(effect)
        if given is not _NONE_GIVEN:
            return self._outcome_of_answer(effect, given)
        match effect:
            case Sleep():
                return Applied(self.body)
            case Wait():
                return Answer(bool(self.stopped))
            case Patch():
                return self._patch_object(effect)
            case Create(manifest=manifest) | Apply(manifest=manifest):
                return Applied(thaw_json(manifest))
            case Adopt(child=child):
                return Applied(thaw_json(child))
            case _ if rule_of(effect).answer is AnswerForm.EXISTENCE:
                return Applied()
            case Execute(children=children):
                return Answer({name: {"finished": "success"} for name in children})
            case _:
                raise AssertionError(self._unanswered_message(effect))

    def _outcome_of_answer(self, effect: Effect, given: Any) -> Outcome:
        """The outcome of an answer; a sleep shows the handled object after it."""
        if not isinstance(effect, Sleep) or not isinstance(given, Mapping):
            return _outcome(effect, given)
        if self.body is not None:
            self.body = _with_identity(given, self.body)
        return Applied(thaw_json(dict(given)) if self.body is None else self.body)

    def _patch_object(self, effect: Patch) -> Outcome:
        """The object after a patch; for another object, the parts that are known."""
        is_own = effect.target is None
        before = self.body if is_own else self._address_fields(effect.target)
        try:
            after = operated(effect.json, applied(effect.merge or {}, before))
        except OperationFailed as problem:
            if not is_own:  # its fields are not known
                raise AssertionError(self._unanswered_message(effect)) from None
            return outcomes.Refused(422, str(problem), "Invalid")
        if is_own:
            self.body = after
        return Applied(thaw_json(after))

    def _address_fields(self, target: Target | None) -> dict[str, Any]:
        """The fields of an object that its address contains."""
        assert target is not None
        own = self.situation.body
        namespace = target.namespace or (own.namespace if own is not None else None)
        metadata = {"name": target.name, "namespace": namespace, "uid": target.uid}
        return {"metadata": {key: value for key, value in metadata.items() if value}}

    def _unanswered_message(self, effect: Effect) -> str:
        text = f"{self.situation.handler.id} awaits {effect!r}, and no answer is given"
        if isinstance(self.answers, Mapping) and self.answers:
            return f"{text} for it, but for {', '.join(map(repr, self.answers))}"
        return f"{text} for it; give answers={{effect: answer, ...}}"

    def _check_answers(self, end: Ending) -> None:
        """Raise `AssertionError` for answers that a successful handler has not used."""
        left = self.answering.left if isinstance(self.answering, _InOrder) else []
        if left and end.failure is None:
            raise AssertionError(
                f"{self.situation.handler.id} has ended, and nothing has asked for "
                f"{number_of(len(left), 'answer')}: {', '.join(map(repr, left)):.200}"
            )

    def _remember(self, changes: Mapping[str, Any]) -> None:
        kept = {**self.memo, **changes}
        self.memo = {k: v for k, v in kept.items() if v is not None}

    def _ended(self, end: Ending) -> Plan:
        result, again = None, None
        effects = list(self.asked)
        for each in end.plan:
            match each:
                case Return(value=result):
                    pass
                case Again():
                    again = each
                case Log():
                    self.lines.append(each)
                case Remember(changes=changes):
                    self._remember(changes)
                    effects.append(each)
                case _:
                    effects.append(each)
        if end.failure is None:
            effects += self._patches(end.patches)
        return Plan(
            tuple(effects),
            result,
            again,
            tuple(self.lines),
            end.failure,
            self._retries_after(end.failure, again),
            tuple(_own_id(each) for each in end.children),
            self.memo,
            end.desired,
            {_own_id(each): self._situation_of(each) for each in end.children},
        )

    def _patches(self, written: Iterable[Patch | Transform]) -> Iterator[Patch]:
        """The patches of the argument `patch`; for a function, its changes."""
        for each in written:
            merge = each.merge
            if isinstance(each, Transform):
                merge = difference(self.body, transformed(each.change, self.body))
            if merge:
                self.body = applied(thaw_json(merge), self.body)
                yield Patch(merge=merge)

    def _situation_of(self, part: Handler) -> Situation:
        return replace(self.situation, handler=part, retry=0)

    def _retries_after(
        self, failure: Failure | None, again: Again | None
    ) -> float | None:
        situation, handler = self.situation, self.situation.handler
        progress = Progress("", situation.retry, situation.started)
        if failure is not None:
            judged = judge_failure(
                progress,
                failure,
                situation.now,
                errors=handler.errors,
                timeout=handler.timeout,
                retries=handler.retries,
                backoff=handler.backoff_or(situation.settings.default_backoff),
            )
        elif again is not None:
            judged = judge_again(
                progress,
                situation.now,
                after=again.after,
                because=again.because,
                timeout=handler.timeout,
            )
        else:
            return None
        due = judged.progress.due
        if due is None or judged.was_last:
            return None
        return due - situation.now.mono


def _own_id(part: Handler) -> str:
    return part.id.removeprefix(f"{part.parent}/")


def _merge_patches(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Two merge patches as one: the second is applied after the first."""
    found = dict(one)
    for key, value in other.items():
        deeper = isinstance(value, Mapping) and isinstance(found.get(key), Mapping)
        found[key] = _merge_patches(found[key], value) if deeper else thaw_json(value)
    return found
