"""Operators within other programs, and as programs.

`operator` is for programs with an event loop, `run` for those without. The command line
also runs operators by `serving`. Nothing is global: several operators can run in one
process, and in one event loop, without seeing each other.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
import threading
from collections.abc import (
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import (
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack
from urllib.parse import urlsplit

from fnop.adapters.common.loading import functions_of
from fnop.adapters.common.logs import write
from fnop.adapters.common.yaml_values import teach_yaml
from fnop.adapters.kubernetes import service_account
from fnop.adapters.kubernetes.kubeconfig import (
    ConfigurationProblem,
    find_source,
)
from fnop.adapters.kubernetes.login_and_probes import Surroundings
from fnop.adapters.kubernetes.logins import HandledLogins
from fnop.adapters.running.mistakes import Mistakes
from fnop.adapters.running.otel import Otel, Tracing
from fnop.adapters.serving.endpoints import (
    Endpoint,
    PageFunction,
    endpoint_of,
    serving as answering,
)
from fnop.adapters.serving.probes import Probes, pages_of
from fnop.adapters.webhooks.protocol import WebhookServerProtocol
from fnop.adapters.webhooks.running import Webhooks
from fnop.core.handlers.declare.connection import Impersonation
from fnop.core.handlers.declare.registry import Registry, default_registry
from fnop.core.handlers.declare.roles import Role
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.operator.health import Health, health
from fnop.core.seam.commands import Exit, Say
from fnop.core.state.lifecycle import REPEAT_SECONDS
from fnop.core.state.turn import State
from fnop.effects.structs import replace
from fnop.interpreters.runtime.clock import SystemClock
from fnop.interpreters.runtime.flow import Flow
from fnop.interpreters.runtime.machine import Observer
from fnop.interpreters.runtime.meter import Meter, MeteredApi, MeteredReviews
from fnop.interpreters.runtime.protocol import Api
from fnop.interpreters.runtime.run import Runner

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

__all__ = [
    "ConfigurationProblem",
    "OperatorFailed",
    "Place",
    "Running",
    "operator",
    "run",
    "serving",
    "stopped_by_signals",
]

# A flag that another part of the program sets, or waits for.
Flag: TypeAlias = "asyncio.Event | asyncio.Future[Any] | threading.Event | Future[Any]"
# The polling interval for flags of threads, which cannot wake an event loop.
_LOOK_SECONDS = 0.1


class OperatorFailed(Exception):
    """Raised if an operator has ended because it cannot go on; the text says why.

    `status` is the exit status of a program that ends because of it. It is 1, or 2 if
    the kinds that handlers name are ambiguous or mistyped.

    For example:

        try:
            fnop.run(namespaces=["default"])
        except fnop.OperatorFailed as problem:
            sys.exit(str(problem))
    """

    status: int = 1


class Running:
    """A running operator, as `async with fnop.operator() as running` gives it.

    For example:

        async with fnop.operator(namespaces=["default"]) as running:
            await running.ready()
            running.stop("that was all")
            await running.ended()
    """

    def __init__(
        self,
        runner: Runner,
        task: asyncio.Task[Exit],
        look: Callable[[], Health],
        webhooks: Webhooks,
    ) -> None:
        self._runner = runner
        self._task = task
        self._look = look
        self._webhooks = webhooks

    @property
    def state(self) -> State:
        """The operator's state at this moment (`fnop.core.operator.step`)."""
        return self._runner.state

    @property
    def has_ended(self) -> bool:
        """Whether the operator has ended."""
        return self._task.done()

    def post(self, handler: str, manifest: Mapping[str, Any]) -> None:
        """Create a Kubernetes Event for the code of a handler that runs outside.

        `handler` is its id. `manifest` is a core/v1 Event without a name and without
        times.
        """
        self._runner.post(handler, manifest)

    def health(self) -> Health:
        """Return whether the operator makes progress, and whether it serves."""
        return self._look()

    async def ready(self) -> None:
        """Wait until all served objects have been listed once.

        If the operator serves webhooks, they are registered then, too. Raises
        `OperatorFailed` if the operator ends before that.
        """
        waiting = asyncio.create_task(self._all_ready())
        try:
            await asyncio.wait(
                {waiting, self._task}, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            waiting.cancel()
        if not waiting.done() or waiting.cancelled():
            await self.ended()
            raise OperatorFailed("the operator was stopped before it was ready")

    async def _all_ready(self) -> None:
        await self._runner.ready.wait()
        await self._webhooks.ready.wait()

    def stop(self, reason: str = "it is asked to stop") -> None:
        """Ask the operator to end in order; a second call ends it at once.

        `reason` is for the log. A call counts as the second only if it comes at least a
        second after the first.
        """
        self._runner.stop(reason)

    async def ended(self) -> None:
        """Wait until the operator has ended.

        Raises `OperatorFailed` if it has ended because of an error.
        """
        exit = await asyncio.shield(self._task)
        if exit.status:
            problem = OperatorFailed(exit.reason)
            problem.status = exit.status
            raise problem


@dataclass(frozen=True, kw_only=True)
class Place:
    """The cluster that a program serves, and the addresses of its own endpoints.

    The fields are the arguments of `operator` with the same names. `otel` gets the
    spans of the run; they need `Settings(traces=True)`.
    """

    api: Api | None = None
    kubeconfig: str | None = None
    context: str | None = None
    impersonate: Impersonation | None = None
    liveness: str | None = None
    metrics: str | None = None
    otel: Otel | None = None
    executor: Executor | None = None

    async def connected(self, program: Program, around: Surroundings) -> Api:
        """A new connection to the cluster. Raises `ConfigurationProblem`."""
        from fnop.adapters.kubernetes.client import connect

        handlers = program.activity(Role.LOGIN)
        find = partial(find_source, self.kubeconfig, self.context)
        return await connect(
            kubeconfig=None,
            context=None,
            source=HandledLogins(handlers, around, find) if handlers else find(),
            impersonate=self.impersonate,
            concurrency=program.settings.request_concurrency,
            requests_per_second=program.settings.requests_per_second,
        )


@asynccontextmanager
async def serving(
    program: Program,
    place: Place,
    *,
    observers: Iterable[Observer] = (),
    say: Callable[[Say], None] = write,
) -> AsyncIterator[Running]:
    """Run a program for the duration of the block, at whose end it is stopped.

    Without an `api` of the place it uses the cluster that the user's configuration
    selects. Its endpoints answer until it has ended. Raises `ConfigurationProblem`
    before the block, and `OperatorFailed` after it.
    """
    tracing = None if place.otel is None else Tracing(place.otel)
    say = Mistakes(say if tracing is None else tracing.saying(say)).say
    async with AsyncExitStack() as stack:
        threads = ThreadPoolExecutor(8, "fnop-call-outside")
        stack.callback(threads.shutdown, wait=False, cancel_futures=True)
        around = Surroundings(program, threads, say)
        api = place.api
        if api is None:
            api = await place.connected(program, around)
            stack.push_async_callback(api.close)
        meters = _Meters(api, place.metrics)
        webhooks = Webhooks(program, around, say, service_account.namespace() or "")
        traced = () if tracing is None else (tracing,)
        runner = Runner(
            program,
            meters.api,
            seed=secrets.token_hex(4),
            resolve=functions_of(program.handlers),
            random=os.urandom,
            observers=(*observers, *meters.observers, *traced, *webhooks.observers),
            on_say=say,
            executor=place.executor,
        )
        around.state = meters.flow.state = lambda: runner.state
        if tracing is not None:
            tracing.follow(around.state, _url_of(api))
            stack.callback(tracing.close)
        runner.companion = webhooks

        def look() -> Health:
            seen = meters.meter.seen
            found = health(program, runner.state, seen, around.clock.now())
            return replace(found, unready=(*found.unready, *webhooks.unready))

        reviews = MeteredReviews(runner.review)
        pages: dict[Endpoint, PageFunction] = {}
        if place.liveness:
            probes = Probes(program.activity(Role.PROBE), around)
            stack.push_async_callback(probes.close)
            pages |= pages_of(endpoint_of(place.liveness, "/healthz"), look, probes)
        pages |= meters.pages(program, look, reviews if webhooks.observers else None)
        await stack.enter_async_context(answering(pages))
        task = asyncio.create_task(runner.run())
        webhooks.start(runner, api, reviews if place.metrics else runner.review)
        running = Running(runner, task, look, webhooks)
        try:
            yield running
        finally:
            await _end_run(running, task)
        await running.ended()


class _Meters:
    """The meters of a run: of its streams, and with metrics also of its requests."""

    def __init__(self, api: Api, metrics: str | None) -> None:
        self.meter, self.flow = Meter(), Flow()
        self._metered, self._metrics = MeteredApi(api), metrics
        self._host = _host_of(api)
        self.api: Api = self._metered if metrics else api

    @property
    def observers(self) -> tuple[Observer, ...]:
        return (self.meter, self.flow) if self._metrics else (self.meter,)

    def pages(
        self,
        program: Program,
        look: Callable[[], Health],
        reviews: MeteredReviews | None,
    ) -> dict[Endpoint, PageFunction]:
        """The page of the metrics, if it has an address."""
        if not self._metrics:
            return {}
        from fnop.adapters.serving.metrics import Metrics, page_of

        counted = Metrics(
            *(program.settings, look, self.meter, self._metered),
            *(self._host, self.flow, reviews),
        )
        return {**page_of(endpoint_of(self._metrics, "/metrics"), counted)}


def _host_of(api: Api) -> str:
    """The API server's host, as client-go labels its requests."""
    return urlsplit(_url_of(api)).netloc


def _url_of(api: Api) -> str:
    return str(getattr(api, "server", ""))


async def _end_run(running: Running, task: asyncio.Task[Exit]) -> None:
    """Stop the operator in order; a cancellation meanwhile cancels it."""
    if not task.done():
        running.stop("its program wants it to end")
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        raise
    finally:
        if task.done() and not task.cancelled():
            task.exception()  # retrieve it: a caller may or may not ask for it


@contextmanager
def stopped_by_signals(running: Running) -> Iterator[None]:
    """Let SIGINT and SIGTERM stop the operator in order; in the main thread alone.

    An ignored signal stays ignored, as for a background job of a shell (POSIX: the
    shell, asynchronous lists). The former signal handlers are restored afterwards.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    signals = _Signals(loop, running)
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    heard = [each for each, was in before.items() if was is not signal.SIG_IGN]
    for each in heard:
        # A signal may come between two instructions, just before the loop begins to
        # wait. It would be handled only after the wait. So the descriptor that Python
        # writes to (signal.set_wakeup_fd) wakes the loop, if it has one.
        with suppress(NotImplementedError):
            loop.add_signal_handler(each, _do_nothing)
        signal.signal(each, signals.hear)
    try:
        yield
    finally:
        for each in heard:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(each)
            if before[each] is not None:
                signal.signal(each, before[each])


def _do_nothing() -> None:
    """Do nothing: the loop is awake."""


_BLOCKED = "fnop: ended at once: a handler blocks the operator\n"


class _Signals:
    """Hand signals to the event loop; end the process if the loop is blocked.

    A handler that never returns blocks the loop. Then the operator cannot stop in
    order, and a second signal ends the process at once.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, running: Running) -> None:
        self._loop, self._running = loop, running
        self._unheard: float | None = None

    def hear(self, number: int, _frame: object) -> None:
        """Take a signal, in the main thread, between two of its instructions."""
        now = self._loop.time()
        if self._unheard is None:
            self._unheard = now
        elif now > self._unheard + REPEAT_SECONDS:
            if sys.stderr is not None:
                with suppress(OSError, ValueError):
                    sys.stderr.write(_BLOCKED)
                    sys.stderr.flush()
            os._exit(1)
        name = signal.Signals(number).name
        self._loop.call_soon_threadsafe(self._tell, name)

    def _tell(self, name: str) -> None:
        self._unheard = None
        self._running.stop(name)


# ----------------------------------------------------------------- embedding


class operator:
    """An operator in an event loop: for as long as a block, or awaited until it ends.

        async with fnop.operator(registry=registry, namespaces=["default"]) as running:
            await running.ready()

        await fnop.operator(stop_flag=stopped)

    - `registry`: the `Registry` of its handlers; None takes all handlers that have been
      declared without one.
    - `settings`: its `Settings`. `namespaces` (names or patterns) and `clusterwide` are
      a shorter way to choose the served namespaces.
    - `kubeconfig`, `context`: the file and the context to connect by; by default the
      cluster is found as kubectl finds it. `impersonate`: another user to act as, if
      the credentials permit it. `api`: a connection to use instead.
    - `peering`, `priority`: the name of the peering and the operator's priority among
      its peers; without either, or with `standalone`, it does not look for peers.
    - `leader_elect`: it is one of several replicas; the holder of the lease
      `fnop-<name>` serves. The lease is in the `lease_namespace`, by default the pod's.
    - `liveness`, `metrics`: addresses of the endpoints, such as
      "http://0.0.0.0:8080/healthz".
    - `otel`: a tracer provider of OpenTelemetry, which gets the spans of the run; or
      True for the global one of the process.
    - `webhooks`: a server for its admission handlers, such as `fnop.WebhookServer()`;
      the operator maintains the configurations that point to it. Their name is
      `Settings.admission_managed`, by default the operator's name.
    - `executor`: a thread executor for called functions and impure handlers. By default
      it has `Settings.call_threads` threads.
    - `ready_flag`: is set once all served objects have been listed; `stop_flag` ends
      the operator. Both are events or futures, of asyncio or of threads.

    Cancelled, it ends in order; cancelled again, it ends at once. Raises `TypeError`
    and `ValueError` for wrong arguments, `ConfigurationProblem` if it cannot connect,
    and `OperatorFailed` if it cannot go on.
    """

    def __init__(
        self,
        *,
        registry: Registry | None = None,
        settings: Settings | None = None,
        namespaces: Sequence[str] = (),
        clusterwide: bool = False,
        kubeconfig: str | None = None,
        context: str | None = None,
        impersonate: Impersonation | None = None,
        api: Api | None = None,
        peering: str | None = None,
        priority: int | None = None,
        standalone: bool = False,
        leader_elect: bool = False,
        lease_namespace: str | None = None,
        liveness: str | None = None,
        metrics: str | None = None,
        otel: TracerProvider | bool = False,
        webhooks: WebhookServerProtocol | None = None,
        executor: Executor | None = None,
        ready_flag: Flag | None = None,
        stop_flag: Flag | None = None,
    ) -> None:
        if executor is not None and not isinstance(executor, Executor):
            raise TypeError(
                "executor= takes an executor of threads, such as a ThreadPoolExecutor, "
                f"not {executor!r}"
            )
        for flag in (ready_flag, stop_flag):
            if flag is not None and not isinstance(flag, _FLAGS):
                raise TypeError(f"a flag is an event or a future, not {flag!r}")
        settings = _settings(settings, namespaces, clusterwide)
        if peering is not None or priority is not None:
            if standalone:
                raise TypeError("use either standalone=, or peering= and priority=")
            settings = settings.replace(peering=_member(peering, priority or 0))
        elif standalone:
            settings = settings.replace(peering=None)
        if leader_elect:
            settings = settings.replace(election=_candidate(settings, lease_namespace))
        elif lease_namespace is not None:
            raise TypeError("lease_namespace= needs leader_elect=True")
        if webhooks is not None:
            settings = settings.replace(
                admission_server=webhooks,
                admission_managed=settings.admission_managed or settings.domain,
            )
        if otel is not False:
            settings = settings.replace(traces=True)
        teach_yaml()
        self._program = Program((registry or default_registry).handlers, settings)
        self._place = Place(
            api=api,
            kubeconfig=kubeconfig,
            context=context,
            impersonate=impersonate,
            liveness=liveness,
            metrics=metrics,
            otel=_otel(otel),
            executor=executor,
        )
        self._ready_flag = ready_flag
        self._stop_flag = stop_flag
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Running:
        if not self._program.handlers:
            raise ValueError(
                "there are no handlers; import the modules that declare them before, "
                "or name the registry= that has them"
            )
        stack, tasks = AsyncExitStack(), []
        running = await stack.enter_async_context(serving(self._program, self._place))
        if self._ready_flag is not None:
            tasks.append(_raise_when_ready(running, self._ready_flag))
        if self._stop_flag is not None:
            tasks.append(_stop_when_set(running, self._stop_flag))
        for work in tasks:
            stack.callback(asyncio.create_task(work).cancel)
        self._stack = stack
        return running

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        steps: TracebackType | None,
    ) -> None:
        await self._stack.__aexit__(kind, problem, steps)

    def __await__(self) -> Generator[Any, None, None]:
        return self._run_until_end().__await__()

    async def _run_until_end(self) -> None:
        async with self as running:
            await running.ended()


class Options(TypedDict, total=False):
    """The arguments of `run`, which are the same as those `operator` takes."""

    registry: Registry | None
    settings: Settings | None
    namespaces: Sequence[str]
    clusterwide: bool
    kubeconfig: str | None
    context: str | None
    impersonate: Impersonation | None
    api: Api | None
    peering: str | None
    priority: int | None
    standalone: bool
    leader_elect: bool
    lease_namespace: str | None
    liveness: str | None
    metrics: str | None
    otel: TracerProvider | bool
    webhooks: WebhookServerProtocol | None
    executor: Executor | None
    ready_flag: Flag | None
    stop_flag: Flag | None


def run(**options: Unpack[Options]) -> None:
    """Run an operator until it ends, or a signal (SIGINT, SIGTERM) ends it.

    `options` are the arguments of `operator`. Raises `ConfigurationProblem` and
    `OperatorFailed`.

        if __name__ == "__main__":
            fnop.run(namespaces=["default"], liveness="http://0.0.0.0:8080/healthz")
    """

    async def main() -> None:
        async with operator(**options) as running:
            with stopped_by_signals(running):
                await running.ended()

    asyncio.run(main())


def _settings(
    given: Settings | None, namespaces: Sequence[str], clusterwide: bool
) -> Settings:
    settings = given or Settings()
    if isinstance(namespaces, str):
        raise TypeError(f"namespaces= takes a list, such as [{namespaces!r}]")
    if namespaces and clusterwide:
        raise TypeError("use either namespaces= or clusterwide=")
    if clusterwide:
        return settings.replace(namespaces=None)
    return settings.replace(namespaces=tuple(namespaces)) if namespaces else settings


def _otel(given: Any) -> Otel | None:
    if given is False:
        return None
    if given is not True and not hasattr(given, "get_tracer"):
        raise TypeError(f"otel= takes a tracer provider, or True, not {given!r}")
    return Otel(None if given is True else given)


def _member(peering: str | None, priority: int) -> Any:
    from fnop.adapters.kubernetes.identity import member_of

    wall = SystemClock().now().wall
    return member_of(peering=peering, priority=priority, wall=wall)


def _candidate(settings: Settings, lease_namespace: str | None) -> Any:
    from fnop.adapters.kubernetes.identity import candidate_of

    return candidate_of(settings.operator, settings.namespaces, lease_namespace)


# --------------------------------------------------------------------- flags

_FLAGS = (asyncio.Event, asyncio.Future, threading.Event, Future)


async def _raise_when_ready(running: Running, flag: Flag) -> None:
    with suppress(OperatorFailed):  # the caller that awaits the operator gets it
        await running.ready()
        if isinstance(flag, asyncio.Event | threading.Event):
            flag.set()
        elif not flag.done():
            flag.set_result(None)


async def _stop_when_set(running: Running, flag: Flag) -> None:
    if isinstance(flag, asyncio.Event):
        await flag.wait()
    elif isinstance(flag, asyncio.Future):
        await asyncio.wait({flag})
    else:
        is_set = flag.is_set if isinstance(flag, threading.Event) else flag.done
        while not is_set():
            await asyncio.sleep(_LOOK_SECONDS)
    running.stop("the stop flag is set")
