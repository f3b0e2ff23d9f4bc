"""Handlers of an operator, made of the declarations in its registry.

Each handler runs outside of the core, as one recorded call. It asks the core only for
facts: the object, the change, the attempt. The rest of Kopf's arguments are live values
of the process: memo, param, indices and logger.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import re
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import contextmanager, nullcontext, suppress
from contextvars import copy_context
from typing import Any

from fnop.adapters.kopf.arguments.bodies import Body, Cell
from fnop.adapters.kopf.arguments.indices import Index, kept
from fnop.adapters.kopf.arguments.patches import Patch
from fnop.adapters.kopf.arguments.stopping import DaemonStopped
from fnop.adapters.kopf.arguments.types import Diff
from fnop.adapters.kopf.declaring.context import CURRENT, CurrentCall
from fnop.adapters.kopf.declaring.registry import Entry
from fnop.adapters.kopf.running.calls import (
    ABSENT_VALUE,
    Attempt,
    answer_of,
    is_async,
    logged,
    plain_result,
    report_failure,
    run_function,
    stored_part,
    times as times_of,
)
from fnop.adapters.kopf.running.logins import connection_of
from fnop.adapters.kopf.running.logs import TITLES
from fnop.adapters.kopf.running.operator import Operator, activity_of
from fnop.adapters.kopf.running.subhandlers import ChildrenRetry, SubHandlers
from fnop.core.handlers.declare.declaring import handler_outside
from fnop.core.handlers.declare.filters import Combination, Presence
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import (
    ADMISSION,
    BACKGROUND,
    CHANGES,
    EVENTS,
    INDICES,
    OUTSIDE,
    ROLES,
    Family,
    Role,
)
from fnop.core.handlers.declare.webhook import SECONDS, Webhook
from fnop.core.values.cause import Reason
from fnop.core.values.diff import parse_field
from fnop.core.values.errors import PermanentError
from fnop.effects import Return
from fnop.effects.structs import replace
from fnop.effects.values import thaw_json

__all__ = ["handlers_of", "run_activity"]

Json = dict[str, Any]


def handlers_of(operator: Operator, more: Iterable[Entry] = ()) -> tuple[Handler, ...]:
    """The handlers of an operator, and of more entries, but those of its startup."""
    made = _Maker(operator)
    entries = [*operator.registry.entries, *more]
    return tuple(made.handler(e) for e in entries if e.role is not Role.STARTUP)


_LABELS: Mapping[Family, str] = {
    Family.ACTIVITY: "Activity",
    Family.OUTSIDE: "Activity",
    Family.INDEX: "Indexer",
    Family.ADMISSION: "Webhook",
}


def label_of(role: Role, id: str) -> str:
    """The handler as Kopf's log lines name it.

    >>> label_of(Role.CREATE, "create_fn"), label_of(Role.TIMER, "tick")
    ("Handler 'create_fn'", "Timer 'tick'")
    """
    rule = ROLES[role]
    label = _LABELS.get(rule.family, "Handler")
    if rule.family is Family.BACKGROUND:
        label = "Daemon" if rule.lasts else "Timer"
    return f"{label} {id!r}"


_OF_ATTEMPTS = frozenset({"timeout", "retries", "backoff"})
_NOT_IN_NAMES = str.maketrans({":": ".", "<": "_", ">": "_"})


class _Maker:
    """Makes handlers for one operator; their calls have names of their own."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._names: dict[str, int] = {}

    def handler(self, entry: Entry) -> Handler:
        """The handler of a declaration."""
        options = self._options(entry)
        if entry.role in INDICES:
            return self._index(entry, options)
        call = _Outside(self._operator, entry)
        function = "" if entry.role in OUTSIDE else self._name(entry.id)
        fn = call.as_function()
        handler = _outside(
            entry, options, fn, function, self._operator.registry.indices
        )
        if handler.webhook is not None:
            webhook = _as_kopf_registers(handler.webhook, handler.id, entry.options)
            handler = replace(handler, webhook=webhook)
        call.handler = handler
        return handler

    def _index(self, entry: Entry, options: Json) -> Handler:
        fn = _index_function(self._operator, entry)
        # A failed function is called again at the next event of its object.
        options = {k: v for k, v in options.items() if k not in _OF_ATTEMPTS}
        needs = _other_indices(entry, self._operator.registry.indices)
        return replace(_outside(entry, options, fn, ""), needs=needs)

    def _name(self, id: str) -> str:
        """A name that no other call of the operator has; it cannot be imported."""
        # The name of a function within another one has `<locals>`, which calls refuse.
        base = f"kopf:{id.translate(_NOT_IN_NAMES)}"
        count = self._names[base] = self._names.get(base, 0) + 1
        return base if count == 1 else f"{base}#{count}"

    def _options(self, entry: Entry) -> Json:
        """The options of a declaration in fnop's terms."""
        role, given = entry.role, dict(entry.options)
        given["id"] = entry.id
        given.pop("cancellation_polling", None)
        operation = given.pop("operation", None)
        if operation is not None:
            given["operations"] = [*given.get("operations", ()), operation]
        if role in BACKGROUND:
            # In Kopf timers hold their objects, too.
            given |= {"finalizer": True, **_cancellation(given)}
        if role in ADMISSION:
            # Kopf calls each handler in a dry run, too: it has the argument `dryrun`.
            # And for objects that are being deleted, and for the operator's own writes.
            given |= {"side_effects": True, "deleted": True, "own_writes": True}
        for name in ("labels", "annotations"):
            if name in given:
                given[name] = {
                    key: self._filter(entry, value)
                    for key, value in given[name].items()
                }
        for name in ("value", "old", "new"):
            if name in given:
                given[name] = self._filter(entry, given[name], absent=ABSENT_VALUE)
        if "when" in given:
            given["when"] = self._filter(entry, given["when"])
        for name in ("initial_delay", "interval"):
            if callable(given.get(name)):
                indices = _asked_indices(given[name], self._operator.registry.indices)
                given[name] = self._callback(entry, given[name], indices=indices)
        return given

    def _filter(self, entry: Entry, given: Any, *, absent: Any = None) -> Any:
        """A filter of a declaration: a function gets Kopf's arguments.

        Its value is `absent` if there is none.
        """
        if not callable(given) or isinstance(given, Presence):
            return given
        fn = functools.partial(answer_of, given)
        indices = _asked_indices(given, self._operator.registry.indices)
        return self._callback(entry, fn, absent=absent, indices=indices)

    def _callback(
        self,
        entry: Entry,
        fn: Callable[..., Any],
        *,
        absent: Any = None,
        indices: Collection[str] = (),
    ) -> Any:
        """A function of an option. Filters of a value get it by position.

        fnop calls it amid a step, and passes the `indices` as they are there.
        """
        operator, role = self._operator, entry.role
        field = parse_field(entry.options.get("field"))

        def call(
            fn: Callable[..., Any],
            values: tuple[Any, ...],
            body: Any,
            resource: Any,
            found: Json,
        ) -> Any:
            cell, is_new = Cell(thaw_json(body)), role in ADMISSION
            kwargs = _object_kwargs(operator, cell, resource, is_new=is_new) | found
            if role in CHANGES and field:
                # The handler itself gets the change of its field alone.
                kwargs |= operator.states.change_of(cell.data, field, found["old"])
            there = [absent if each is None else thaw_json(each) for each in values]
            return fn(*there, **kwargs)

        def of_change(
            fn: Callable[..., Any],
            *values: Any,
            body: Any,
            resource: Any,
            reason: Any,
            old: Any,
            new: Any,
            diff: Any,
            **indices: Any,
        ) -> Any:
            found = {"reason": Reason(reason), "diff": Diff.of(diff)}
            found |= {"old": thaw_json(old), "new": thaw_json(new)}
            return call(fn, values, body, resource, found | _as_now(indices))

        def of_event(
            fn: Callable[..., Any],
            *values: Any,
            body: Any,
            resource: Any,
            type: Any,
            **indices: Any,
        ) -> Any:
            event = {"type": type, "object": thaw_json(body)}
            found = {"type": type, "event": event, **_as_now(indices)}
            return call(fn, values, body, resource, found)

        def of_review(
            fn: Callable[..., Any],
            *values: Any,
            body: Any,
            resource: Any,
            operation: Any,
            subresource: Any,
            dryrun: Any,
            userinfo: Any,
            headers: Any,
            sslpeer: Any,
            old: Any,
            new: Any,
            diff: Any,
        ) -> Any:
            found = _review(
                operation,
                subresource,
                dryrun,
                userinfo,
                headers,
                sslpeer,
                old,
                new,
                diff,
            )
            return call(fn, values, body, resource, {**found, "warnings": []})

        def of_object(
            fn: Callable[..., Any],
            *values: Any,
            body: Any,
            resource: Any,
            **indices: Any,
        ) -> Any:
            return call(fn, values, body, resource, _as_now(indices))

        asked: Callable[..., Any] = of_object
        if role in CHANGES:
            asked = of_change
        elif role in ADMISSION:
            asked = of_review
        elif role in EVENTS:
            asked = of_event
        if role not in ADMISSION:
            _ask_for(asked, () if role in INDICES else indices)
        # Digests of code look into partial functions, and so cover the author's.
        return functools.partial(asked, fn)


def _outside(
    entry: Entry,
    options: Json,
    fn: Callable[..., Any],
    function: str,
    indices: Collection[str] = (),
) -> Handler:
    return handler_outside(
        entry.role,
        entry.words,
        options,
        fn,
        function,
        author=entry.fn,
        indices=indices,
    )


def _as_kopf_registers(webhook: Webhook, id: str, given: Mapping[str, Any]) -> Webhook:
    """The webhook of a handler as Kopf registers it: each handler has its own.

    Kopf says what the author says of side effects, and calls the handler in dry runs in
    any case. It waits as long as the API server may, and judges each update as a whole.
    """
    return replace(
        webhook,
        own_name=_webhook_name(id),
        says_harmless=not given.get("side_effects"),
        ratcheting=False,
        timeout=SECONDS[-1],
        review_versions=("v1", "v1beta1"),
    )


_NOT_IN_WEBHOOKS = re.compile(r"[^\w.-]")


def _webhook_name(id: str) -> str:
    """The first part of the name of Kopf's webhook for a handler.

    >>> _webhook_name("no_trolls/spec.keeper"), _webhook_name("<lambda>")
    ('no-trolls.spec.keeper', '3clambda3e')
    """
    name = id.replace("/", ".").replace("_", "-")
    return _NOT_IN_WEBHOOKS.sub(lambda found: found[0].encode().hex(), name)


# Kopf waits for ever for daemons that it must not cancel.
_FOR_EVER_SECONDS = 10 * 365 * 86_400.0


def _cancellation(given: Json) -> Json:
    """The options for the end of a daemon or a timer, as Kopf means them.

    Without `cancellation_timeout=` it is never cancelled. With it alone, it is
    cancelled if it does not end at once, see `Operator.on_loop`.

    >>> _cancellation({"cancellation_timeout": 5})
    {'cancellation_backoff': 0.0, 'cancellation_timeout': 5}
    """
    timeout = given.get("cancellation_timeout")
    if timeout is None:
        return {"cancellation_backoff": _FOR_EVER_SECONDS}
    return {
        "cancellation_backoff": given.get("cancellation_backoff") or 0.0,
        "cancellation_timeout": timeout,
    }


def _object_kwargs(
    operator: Operator, cell: Cell, resource: Any, *, is_new: bool = False
) -> Json:
    """The arguments about an object, for handlers and filters alike.

    An object that `is_new` may be refused: its memo is not kept.
    """
    body = Body(cell)
    meta = body.meta
    return {
        "resource": resource,
        "patch": Patch(body=body),
        "body": body,
        "spec": body.spec,
        "meta": meta,
        "status": body.status,
        "uid": meta.uid,
        "name": meta.name,
        "namespace": meta.namespace,
        "labels": meta.labels,
        "annotations": meta.annotations,
        "memo": operator.memos.of(meta.uid or "", keep=not is_new),
        "logger": operator.logger(body, posts=False),
        **operator.indices(),
    }


def _review(
    operation: Any,
    subresource: Any,
    dryrun: Any,
    userinfo: Any,
    headers: Any,
    sslpeer: Any,
    old: Any,
    new: Any,
    diff: Any,
) -> Json:
    """The arguments about a request, for admission handlers and their filters."""
    return {
        "operation": operation,
        "subresource": subresource,
        "dryrun": dryrun,
        "userinfo": thaw_json(userinfo),
        "headers": thaw_json(headers),
        "sslpeer": thaw_json(sslpeer),
        "old": None if old is None else Body(thaw_json(old)),
        "new": None if new is None else Body(thaw_json(new)),
        "diff": None if diff is None else Diff.of(diff),
    }


class _Outside:
    """The calls of one handler; its functions take facts and return effects."""

    def __init__(self, operator: Operator, entry: Entry) -> None:
        self._operator, self._entry = operator, entry
        self._is_async = is_async(entry.fn)
        self.handler: Handler | None = None

    def as_function(self) -> Callable[..., Any]:
        """The function that takes the facts of its role."""
        role = self._entry.role
        if role in CHANGES:
            return self._of_change()
        if role in EVENTS:
            return self._of_event()
        if role in BACKGROUND:
            return self._of_background()
        if role in ADMISSION:
            return self._of_review()
        return self._of_activity()

    def _of_change(self) -> Callable[..., Any]:
        async def change(
            *,
            body: Any,
            old: Any,
            new: Any,
            diff: Any,
            reason: Any,
            resource: Any,
            retry: int,
            started: Any,
            patch: Any,
        ) -> Any:
            found = {"reason": Reason(reason), "diff": Diff.of(diff)}
            found |= {"old": thaw_json(old), "new": thaw_json(new)}
            cell = Cell(thaw_json(body))
            return await self._about(cell, resource, found, patch, retry, started)

        return change

    def _of_event(self) -> Callable[..., Any]:
        async def event(
            *, body: Any, type: Any, resource: Any, patch: Any, started: Any
        ) -> Any:
            data = thaw_json(body)
            found = {"type": type, "event": {"type": type, "object": data}}
            return await self._about(Cell(data), resource, found, patch, 0, started)

        return event

    def _of_background(self) -> Callable[..., Any]:
        async def background(
            *,
            body: Any,
            resource: Any,
            retry: int,
            started: Any,
            patch: Any,
            stopped: Any,
        ) -> Any:
            operator = self._operator
            cell = Cell(thaw_json(body))
            loop = operator.loop if self._is_async else None
            flag = operator.stop_flag(loop)
            watching = asyncio.ensure_future(_pass_on(stopped, flag))
            try:
                with operator.live(cell):
                    found = {"stopped": flag}
                    given = (cell, resource, found, patch, retry, started)
                    return await self._about(*given)
            finally:
                watching.cancel()
                if flag.is_abandoned:
                    name = self._attempt(retry, 0.0).name
                    line = f"{name} did not exit in time. Leaving it orphaned."
                    operator.logger(cell.data, posts=True).warning(line)

        return background

    def _of_review(self) -> Callable[..., Any]:
        async def review(
            *,
            body: Any,
            resource: Any,
            patch: Any,
            warnings: Any,
            operation: Any,
            subresource: Any,
            dryrun: Any,
            userinfo: Any,
            headers: Any,
            sslpeer: Any,
            old: Any,
            new: Any,
            diff: Any,
            started: Any,
        ) -> Any:
            found = _review(
                operation,
                subresource,
                dryrun,
                userinfo,
                headers,
                sslpeer,
                old,
                new,
                diff,
            )
            found["warnings"] = warnings
            cell = Cell(thaw_json(body))
            try:
                await self._about(cell, resource, found, patch, 0, started)
            except PermanentError:
                raise
            except Exception as problem:
                # It denies whatever it raises, with the text of that.
                raise PermanentError(str(problem) or repr(problem)) from problem

        return review

    def _of_activity(self) -> Callable[..., Any]:
        async def activity(*, retry: int, started: Any) -> Any:
            operator, entry = self._operator, self._entry
            work = run_activity(operator, entry, retry, started.timestamp())
            return await operator.on_loop(work)

        return activity

    async def _about(
        self,
        cell: Cell,
        resource: Any,
        found: Json,
        patch: Any,
        retry: int,
        started: Any,
    ) -> Any:
        """Call the author's function about an object, and take over its changes."""
        operator, entry = self._operator, self._entry
        assert self.handler is not None, "it is called after it is made"
        since = started.timestamp()
        attempt = self._attempt(retry, since)
        # A review is denied with the text of the error.
        is_review = entry.role in ADMISSION
        logger = operator.logger(cell.data, posts=False)
        with nullcontext() if is_review else _naming_faults(attempt.name, logger):
            is_new = is_review and found["operation"] == "CREATE"
            kwargs = _object_kwargs(operator, cell, resource, is_new=is_new)
            kwargs["logger"] = operator.logger(kwargs["body"], posts=self._posts)
            given: Patch = kwargs["patch"]
            more = {**found, "param": entry.options.get("param"), "retry": retry}
            clock = operator.clock
            kwargs |= {**more, **times_of(since, clock.now().wall)}
            kwargs |= operator.indices()  # an index replaces any argument of its name
            owner = copy_of(cell)
            call = CurrentCall(
                self.handler.id, owner, operator.post, operator.settings.posting
            )
            if entry.role in CHANGES:
                reason = str(found["reason"])
                call.family = SubHandlers(
                    *(operator, call, kwargs, given, reason),
                    needs_change=ROLES[entry.role].compares,
                )
            executor = operator.settings.execution.executor
            work = functools.partial(run_function, entry.fn, kwargs, call, executor)
            work = functools.partial(logged, attempt, kwargs["logger"], clock, work)
            if entry.role in CHANGES:
                work = functools.partial(_announced, operator, owner, found, work)
            flag: DaemonStopped | None = found.get("stopped")
            work = functools.partial(self._at_its_place, work, flag)
        try:
            if entry.role in CHANGES | EVENTS:
                uid = (owner.get("metadata") or {}).get("uid") or ""
                kind = f"{owner.get('apiVersion')} {owner.get('kind')}"
                value = await operator.in_turn(uid, kind, work)
            else:
                value = await work()
        except ChildrenRetry:
            # As in Kopf, a round of sub-handlers is an attempt of their parent.
            if attempt.retries is not None and retry + 1 >= attempt.retries:
                line = f"{attempt.name} has exceeded {retry + 1} retries."
                kwargs["logger"].error(line)
            raise
        except Exception as problem:
            operator.heed_exit(problem)
            raise
        finally:
            self._take_over(given, patch, f"{attempt.name}: patch", kwargs["logger"])
        source = f"{attempt.name}: result"
        result = self._storable(value, source, kwargs["logger"])
        return None if result is None else Return(result)

    def _take_over(self, given: Patch, patch: Any, source: str, logger: Any) -> None:
        """Hand over the author's changes: fields, and functions of the object."""
        fields = self._storable(dict(given), source, logger) or {}
        for key, value in fields.items():
            patch[key] = value
        patch.fns.extend(given.fns)

    def _storable(self, value: Any, source: str, logger: Any) -> Any:
        """A result or a patch as JSON. A review fails if a part of it is lost."""
        if self._entry.role in ADMISSION:
            return plain_result(value)
        return stored_part(value, source, logger)

    async def _at_its_place(
        self, work: Callable[[], Coroutine[Any, Any, Any]], flag: DaemonStopped | None
    ) -> Any:
        """Do work on the author's loop, if the function is a coroutine function.

        A function in a thread needs no loop of the author: two switches less. That of a
        daemon has a task of its own, since it may end before it is cancelled.
        """
        seconds = self._entry.options.get("cancellation_timeout")
        if self._is_async:
            return await self._operator.on_loop(work(), flag, seconds)
        if flag is not None:
            return await self._operator.in_thread(work(), flag, seconds)
        return await work()

    @property
    def _posts(self) -> bool:
        """Whether its log lines may become Events: not for each watch event."""
        return self._entry.role in CHANGES | BACKGROUND

    def _attempt(self, retry: int, started: float) -> Attempt:
        handler, settings = self.handler, self._operator.settings
        assert handler is not None, "it is called after it is made"
        backoff: Any = handler.backoff_or(settings.execution.default_backoff)
        return Attempt(
            label_of(handler.role, handler.id),
            handler.errors,
            backoff,
            handler.timeout,
            handler.retries,
            retry,
            started,
        )


@contextmanager
def _naming_faults(name: str, logger: Any) -> Iterator[None]:
    """Log an error of fnop itself; in silence, a handler would be tried for ever."""
    try:
        yield
    except Exception as problem:
        line = f"{name} cannot be called, for a fault of fnop: {problem!r}"
        logger.error(line, exc_info=problem)
        raise


async def _announced(
    operator: Operator, body: Json, found: Json, work: Callable[[], Awaitable[Any]]
) -> Any:
    """Log the change that a handler is called for, as Kopf does; tests look for it."""
    logger = operator.logger(body, posts=False)
    if logger.isEnabledFor(logging.DEBUG):
        title = TITLES[str(found["reason"])]
        logger.debug(f"{title} is in progress: {body!r}")
        if found["diff"] and found["old"] is not None and found["new"] is not None:
            logger.debug(f"{title} diff: {found['diff']!r}")
    return await work()


def copy_of(cell: Cell) -> Json:
    """The object of a call as it is now."""
    return dict(cell.data)


async def _pass_on(stopped: Any, flag: DaemonStopped) -> None:
    """Ask the author's daemon to stop."""
    await stopped.wait()
    flag.set(stopped.reason)


def _other_indices(entry: Entry, indices: Collection[str]) -> tuple[str, ...]:
    """The indices that the parameters of an index function name."""
    try:
        taken = inspect.signature(entry.fn).parameters
    except (TypeError, ValueError):  # of a function that Python does not describe
        return ()
    return tuple(each for each in indices if each in taken and each != entry.id)


def _asked_indices(fn: Any, indices: Collection[str]) -> tuple[str, ...]:
    """The indices that the author's filter asks for, by their names or as `**kwargs`.

    Arguments in `**_` count as unused.
    """
    if isinstance(fn, Combination):
        found = {name for each in fn.fns for name in _asked_indices(each, indices)}
        return tuple(name for name in indices if name in found)
    try:
        taken = inspect.signature(fn).parameters
    except (TypeError, ValueError):  # of a function that Python does not describe
        return ()
    takes_all = any(
        each.kind is each.VAR_KEYWORD and not each.name.startswith("_")
        for each in taken.values()
    )
    return tuple(each for each in indices if takes_all or each in taken)


def _ask_for(fn: Any, indices: Collection[str]) -> None:
    """Let a function ask for indices, in the place of its `**indices`."""
    found = inspect.signature(fn)
    own = [each for each in found.parameters.values() if each.name != "indices"]
    taken = {each.name for each in own}
    more = [
        inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY)
        for each in indices
        if each not in taken and each.isidentifier()
    ]
    fn.__signature__ = found.replace(parameters=[*own, *more])


def _as_now(indices: Mapping[str, Any]) -> dict[str, Index]:
    """Indices of the core as an author's function gets them."""
    return {
        name: Index(functools.partial(_same, each)) for name, each in indices.items()
    }


def _same(found: Any) -> Any:
    return found


def _index_function(operator: Operator, entry: Entry) -> Callable[..., Any]:
    """The function of an index, within a step: it keeps live values in the process."""

    def index(*, body: Any, resource: Any) -> Any:
        cell = Cell(thaw_json(body))
        kwargs = _object_kwargs(operator, cell, resource)
        logger = operator.terse_logger(kwargs["body"])
        started = operator.clock.now().wall
        kwargs |= {"param": entry.options.get("param"), "retry": 0, "logger": logger}
        kwargs |= times_of(started, started)
        attempt = _attempt_of(operator, entry, 0, started)
        call = CurrentCall(entry.id, copy_of(cell), None)
        try:
            found = kept(_indexed(operator, entry, kwargs, call))
        except Exception as problem:
            report_failure(attempt, logger, problem, started)
            with suppress(AttributeError):
                problem.is_told = True  # type: ignore[attr-defined]
            raise
        logger.info(f"{attempt.name} succeeded.")
        return found

    return index


def _indexed(operator: Operator, entry: Entry, kwargs: Json, call: CurrentCall) -> Any:
    if not is_async(entry.fn):
        return copy_context().run(_called, call, entry.fn, kwargs)
    executor = operator.settings.execution.executor
    return operator.to_its_end(run_function(entry.fn, kwargs, call, executor))


def _called(call: CurrentCall, fn: Callable[..., Any], kwargs: Json) -> Any:
    CURRENT.set(call)
    return fn(**kwargs)


def _attempt_of(
    operator: Operator, entry: Entry, retry: int, started: float
) -> Attempt:
    """One attempt of a handler that the core knows only by its declaration."""
    options = entry.options
    return Attempt(
        label_of(entry.role, entry.id),
        operator.errors_of(entry),
        options.get("backoff", operator.settings.execution.default_backoff),
        options.get("timeout"),
        options.get("retries"),
        retry,
        started,
    )


async def run_activity(
    operator: Operator, entry: Entry, retry: int, started: float
) -> Any:
    """Call the function of an activity on the author's loop."""
    settings, options = operator.settings, entry.options
    logger = operator.activity_logger(entry.role)
    kwargs = {
        "logger": logger,
        "memo": operator.memos.own,
        "param": options.get("param"),
        "retry": retry,
        "settings": settings,
        "activity": activity_of(entry.role),
        **times_of(started, operator.clock.now().wall),
        **operator.indices(),
    }
    if entry.role is Role.LOGIN:
        kwargs |= operator.cluster
    call = CurrentCall(entry.id, None, None)
    attempt = _attempt_of(operator, entry, retry, started)
    work = functools.partial(
        run_function, entry.fn, kwargs, call, settings.execution.executor
    )
    try:
        value = await logged(attempt, logger, operator.clock, work)
    except Exception as problem:
        operator.heed_exit(problem)
        raise
    if entry.role is Role.LOGIN:
        return connection_of(value)
    return value
