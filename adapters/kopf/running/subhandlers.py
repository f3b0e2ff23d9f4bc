"""Sub-handlers: they run within the call of the handler that declares them.

As in Kopf, the parent is called again for each round, and declares them again. The
lifecycle selects those that a round calls. Their progress is in the storage of the
operator, under `parent/child`; the parent ends when all of them have ended.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from fnop.adapters.kopf.arguments.bodies import Body
from fnop.adapters.kopf.arguments.patches import Patch
from fnop.adapters.kopf.arguments.types import Diff
from fnop.adapters.kopf.declaring.context import CurrentCall, current_call
from fnop.adapters.kopf.declaring.registry import OperatorRegistry, id_of
from fnop.adapters.kopf.declaring.storages import ProgressRecord
from fnop.adapters.kopf.running.calls import (
    ABSENT_VALUE,
    Attempt,
    answer_of,
    logged,
    run_function,
    stored_part,
    times as times_of,
)
from fnop.adapters.kopf.running.operator import Operator
from fnop.adapters.kopf.running.states import children_in, progress_in, record_of
from fnop.core.handlers.declare.filters import Presence
from fnop.core.handlers.declare.lifecycles import Candidate, order_of
from fnop.core.handlers.run.invocation import failure_of
from fnop.core.memory.progress import (
    Progress,
    judge_failure,
    seconds_left,
    succeeded,
    time_out,
)
from fnop.core.values.diff import parse_field, reduce, resolve
from fnop.core.values.errors import ErrorsMode, TemporaryError
from fnop.effects.structs import replace

__all__ = ["ChildrenRetry", "SubHandlers", "execute"]

Json = dict[str, Any]
# A function that is declared as a sub-handler, with its options.
Declared = tuple[Callable[..., Any], Mapping[str, Any]]


class ChildrenRetry(TemporaryError):
    """Raised in a parent whose sub-handlers have not ended: it is called again."""

    is_of_children = True


class _Child(Struct, frozen=True):
    """A declared sub-handler."""

    id: str
    fn: Callable[..., Any]
    options: Mapping[str, Any]


class SubHandlers:
    """The sub-handlers of one call of a handler.

    `kwargs` are the arguments of the parent, and `patch` is the one of its call.
    """

    def __init__(
        self,
        operator: Operator,
        call: CurrentCall,
        kwargs: Json,
        patch: Patch,
        reason: str,
        *,
        needs_change: bool = False,
    ) -> None:
        self._operator, self._call, self._clock = operator, call, operator.clock
        self._kwargs, self._patch = kwargs, patch
        self._reason, self._needs_change = reason, needs_change
        # An explicit `kopf.execute()` replaces the round after the parent.
        self.has_run = False
        # The ids of all that were ever declared for the present change.
        self.children: tuple[str, ...] = ()

    async def run_on_loop(self) -> None:
        """Do the same as `run`, on the author's loop, where coroutines belong."""
        await self._operator.on_loop(self.run())

    async def run(
        self, given: Iterable[Declared] | None = None, lifecycle: Any = None
    ) -> None:
        """Call the sub-handlers that are due; raise `ChildrenRetry` if any is left.

        They are those that are `given`, or once in a call those that it has declared.
        """
        if given is None:
            if self.has_run:
                return
            self.has_run = True
        declared = self._call.children if given is None else given
        children = [*self._selected(declared)]
        self._store_children([each.id for each in children])
        all_progress = {each.id: self._progress_of(each) for each in children}
        now = self._clock.now()
        due = [
            Candidate(each, all_progress[each.id], order_of("", "", each.id))
            for each in children
            if not all_progress[each.id].is_finished
            and all_progress[each.id].due_at(now) <= now.mono
        ]
        select = lifecycle or self._operator.lifecycle
        for candidate in select(due):
            child: Any = candidate.handler
            all_progress[child.id] = await self._call_child(child, candidate.progress)
        left = [each for each in all_progress.values() if not each.is_finished]
        if left:
            now = self._clock.now()
            delay = min(max(0.0, each.due_at(now) - now.mono) for each in left)
            raise ChildrenRetry("sub-handlers are under way", delay=delay)

    def _store_children(self, ids: Iterable[str]) -> None:
        """Store the ids of sub-handlers in the record of their parent, by the patch.

        So whatever removes this record, also in another process, knows which ones to
        remove with it.
        """
        storage = self._operator.settings.persistence.progress_storage
        body: Body = self._kwargs["body"]
        record = storage.fetch(key=self._call.handler, body=body)
        known = children_in(record)
        self.children = tuple(sorted({*known, *self.children, *ids}))
        if self.children == known:
            return
        begun = record or {"purpose": self._reason}
        storage.store(
            key=self._call.handler,
            record=ProgressRecord(**{**begun, "subrefs": [*self.children]}),
            body=body,
            patch=self._patch,
        )

    def _selected(self, declared: Iterable[Declared]) -> Iterable[_Child]:
        for fn, options in declared:
            own = id_of(fn, options.get("id"))
            child = _Child(f"{self._call.handler}/{own}", fn, options)
            if _is_wanted(options, self._kwargs, needs_change=self._needs_change):
                yield child

    def _progress_of(self, child: _Child) -> Progress:
        storage = self._operator.settings.persistence.progress_storage
        record = storage.fetch(key=child.id, body=self._kwargs["body"])
        if record is None:
            return Progress(f"{self._reason}:", started=self._clock.now().wall)
        # The record may be of an earlier handling: Kopf continues it in this one.
        found = progress_in(record, f"{record.get('purpose') or self._reason}:")
        return (
            found if found.started else replace(found, started=self._clock.now().wall)
        )

    async def _call_child(self, child: _Child, progress: Progress) -> Progress:
        """Call one sub-handler, and store its progress by the patch."""
        options, settings = child.options, self._operator.settings
        started = progress.started or self._clock.now().wall
        errors = options.get("errors") or ErrorsMode.TEMPORARY
        backoff = options.get("backoff", settings.execution.default_backoff)
        timeout, retries = options.get("timeout"), options.get("retries")
        if (
            timeout is not None
            and seconds_left(progress, timeout, self._clock.now()) <= 0
        ):
            runtime = times_of(started, self._clock.now().wall)["runtime"]
            line = f"Handler {child.id!r} has timed out after {runtime}."
            self._kwargs["logger"].error(line)
            ended = time_out(progress, timeout, progress.message or "")
            return self._stored(child, ended.progress, ())
        attempt = Attempt(
            *(f"Handler {child.id!r}", errors, backoff, timeout, retries),
            *(progress.retries, started),
        )
        call = CurrentCall(
            child.id, self._call.owner, self._call.post, self._call.posting
        )
        kwargs = {**self._kwargs, "param": options.get("param")}
        kwargs |= times_of(started, self._clock.now().wall)
        kwargs["retry"] = progress.retries
        kwargs |= _of_field(parse_field(options.get("field")), self._kwargs)
        call.family = SubHandlers(
            *(self._operator, call, kwargs, self._patch, self._reason),
            needs_change=self._needs_change,
        )
        work = functools.partial(
            run_function, child.fn, kwargs, call, settings.execution.executor
        )
        try:
            value = await logged(attempt, kwargs["logger"], self._clock, work)
        except ChildrenRetry as retry:
            now = self._clock.now()
            after = replace(
                progress,
                retries=progress.retries + 1,
                until=now.wall + (retry.delay or 0),
                due=now.mono + (retry.delay or 0),
            )
        except Exception as problem:
            self._operator.heed_exit(problem)
            after = judge_failure(
                progress,
                failure_of(problem),
                self._clock.now(),
                errors=errors,
                timeout=timeout,
                retries=retries,
                backoff=backoff,
                as_kopf=True,
            ).progress
        else:
            after = succeeded(progress)
            source = f"{attempt.name}: result"
            result = stored_part(value, source, self._kwargs["logger"])
            if result is not None:
                self._patch.status[child.id] = result
        return self._stored(child, after, call.family.children)

    def _stored(
        self, child: _Child, after: Progress, children: tuple[str, ...]
    ) -> Progress:
        """Store the progress of a sub-handler, and its own children, by the patch."""
        storage = self._operator.settings.persistence.progress_storage
        body: Body = self._kwargs["body"]
        known = children or children_in(storage.fetch(key=child.id, body=body))
        record = record_of(after, known)
        storage.store(key=child.id, record=record, body=body, patch=self._patch)
        return after


def _of_field(field: tuple[str, ...], kwargs: Json) -> Json:
    """The arguments of a sub-handler about its own field."""
    if not field or "diff" not in kwargs:
        return {}
    return {
        "old": resolve(kwargs["old"], field),
        "new": resolve(kwargs["new"], field),
        "diff": Diff(reduce(kwargs["diff"], field)),
    }


def _is_wanted(options: Mapping[str, Any], kwargs: Json, *, needs_change: bool) -> bool:
    """Whether the filters of a sub-handler select the object, or its change.

    With `needs_change`, its field has to change, as the one of its parent.
    """
    for name in ("labels", "annotations"):
        for key, wanted in (options.get(name) or {}).items():
            if not _fits(kwargs[name].get(key), wanted, kwargs):
                return False
    if field := parse_field(options.get("field")):
        old, new = resolve(kwargs["old"], field), resolve(kwargs["new"], field)
        value = options.get("value")
        value = Presence.PRESENT if value is None else value
        if not any(_fits(each, value, kwargs) for each in (new, old)):
            return False
        if needs_change and old == new:
            return False
        for found, wanted in ((old, options.get("old")), (new, options.get("new"))):
            if wanted is not None and not _fits(found, wanted, kwargs):
                return False
    when = options.get("when")
    return when is None or answer_of(when, **kwargs)


def _fits(value: Any, wanted: Any, kwargs: Json) -> bool:
    match wanted:
        case Presence.PRESENT:
            return value is not None
        case Presence.ABSENT:
            return value is None
        case _ if callable(wanted):
            there = ABSENT_VALUE if value is None else value
            return answer_of(wanted, there, **kwargs)
        case _:
            return bool(value == wanted)


async def execute(
    *,
    fns: Any = None,
    handlers: Any = None,
    registry: OperatorRegistry | None = None,
    lifecycle: Any = None,
    cause: Any = None,
) -> None:
    """Call the sub-handlers of the running handler now.

    These are `fns`, a mapping of ids to functions or an iterable of functions; those of
    a `registry`; or those that were declared before. Code after it runs when all of
    them have ended. Raises `TypeError` for several of these at once, and `LookupError`
    outside of handlers of changes.
    """
    if sum(each is not None for each in (fns, handlers, registry)) > 1:
        raise TypeError("execute() takes only one of fns=, handlers= and registry=")
    if handlers is not None or cause is not None:
        raise TypeError(
            "execute() takes fns= or registry= here: handlers= and cause= are parts of "
            "Kopf itself"
        )
    call = current_call()
    if call.family is None:
        raise LookupError("only handlers of changes have sub-handlers")
    children: list[Declared] | None = None
    if isinstance(fns, Mapping):
        children = [(fn, {"id": id}) for id, fn in fns.items()]
    elif fns is not None:
        children = [(fn, {}) for fn in fns]
    elif registry is not None:
        children = [(each.fn, each.options) for each in registry.entries]
    await call.family.run(children, lifecycle)
