"""Operators within other programs: begun, awaited, ended, and side by side."""

from __future__ import annotations

import asyncio
import inspect
import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

import fnop
from fnop.adapters.running import embedding
from fnop.core.handlers.declare.registry import Registry, default_registry
from fnop.core.peers.peers import Mode
from fnop.core.state.lifecycle import Phase
from fnop.interpreters.runtime.protocol import ApiRequest
from tests.live import COLLECTION, LiveCluster
from tests.patience import patience, soon
from tests.simulations import example

KIND = "fnopexamples"


@pytest.fixture
def diary() -> list[str]:
    """The handlers' notes, in order."""
    return []


@pytest.fixture
def registry(diary: list[str]) -> Registry:
    return noting(diary, "")


def noting(diary: list[str], name: str) -> Registry:
    """Handlers that note that they are called, under this name."""
    registry = Registry()

    @fnop.on.startup(registry=registry)
    def startup(**_: Any) -> None:
        diary.append(f"{name}startup")

    @fnop.on.cleanup(registry=registry)
    def cleanup(**_: Any) -> None:
        diary.append(f"{name}cleanup")

    @fnop.on.create(KIND, registry=registry)
    def created(body: fnop.Body, **_: Any) -> None:
        diary.append(f"{name}created {body.metadata.name}")

    return registry


class Cluster(LiveCluster):
    """One in memory, with the examples' kind."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = False
        self.define()

    def create(self, name: str = "example-1") -> None:
        self.post(COLLECTION, example(name))

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


async def until(what: Callable[[], object]) -> None:
    await soon(what, every=0.002)


# -------------------------------------------------------------------- a block


async def test_it_runs_for_as_long_as_the_block(
    registry: Registry, cluster: Cluster, diary: list[str]
) -> None:
    async with fnop.operator(registry=registry, api=cluster) as running:
        assert not running.health().is_ready
        await running.ready()
        assert running.state.lifecycle.phase is Phase.SERVING
        assert running.health().problems == ()
        cluster.create()
        await until(lambda: "created example-1" in diary)
        assert not running.has_ended
    assert running.has_ended
    assert diary == ["startup", "created example-1", "cleanup"]
    assert cluster.watches == []
    assert not cluster.closed, "it is its owner's"


async def test_nothing_is_left_behind(registry: Registry, cluster: Cluster) -> None:
    tasks = asyncio.all_tasks()
    flags: dict[str, Any] = {
        "ready_flag": asyncio.Event(),
        "stop_flag": threading.Event(),
    }
    async with fnop.operator(registry=registry, api=cluster, **flags) as running:
        await running.ready()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == tasks


async def test_an_error_in_the_block_ends_it_in_order(
    registry: Registry, cluster: Cluster, diary: list[str]
) -> None:
    async def program() -> None:
        async with fnop.operator(registry=registry, api=cluster) as running:
            await running.ready()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await program()
    assert diary == ["startup", "cleanup"]


async def test_a_mistyped_kind_ends_the_operator_with_status_2(
    registry: Registry, cluster: Cluster
) -> None:
    @fnop.on.create("configmapz", registry=registry)
    def created(**_: Any) -> None: ...

    with pytest.raises(fnop.OperatorFailed, match="mean 'configmaps'") as problem:
        await fnop.operator(registry=registry, api=cluster)
    assert problem.value.status == 2


def failing(registry: Registry) -> Registry:
    @fnop.on.startup(registry=registry, id="bad")
    def bad(**_: Any) -> None:
        raise fnop.PermanentError("no")

    return registry


async def test_one_that_cannot_go_on_says_so_to_everybody(
    registry: Registry, cluster: Cluster
) -> None:
    text = "a startup handler failed"
    options: dict[str, Any] = {"registry": failing(registry), "api": cluster}

    async def asking() -> None:
        async with fnop.operator(**options) as running:
            with pytest.raises(fnop.OperatorFailed, match=text):
                await running.ready()
            with pytest.raises(fnop.OperatorFailed, match=text):
                await running.ended()

    async def erring() -> None:
        async with fnop.operator(**options) as running:
            await until(lambda: running.has_ended)
            raise ZeroDivisionError

    with pytest.raises(fnop.OperatorFailed, match=text):
        await asking()
    with pytest.raises(fnop.OperatorFailed, match=text):
        await fnop.operator(**options)
    with pytest.raises(ZeroDivisionError):
        await erring()


async def test_one_that_is_stopped_before_it_is_ready_is_never_ready(
    registry: Registry, cluster: Cluster
) -> None:
    async with fnop.operator(registry=registry, api=cluster) as running:
        running.stop()
        with pytest.raises(fnop.OperatorFailed, match="stopped before"):
            await running.ready()


async def test_a_cluster_that_is_not_configured_is_one_sentence(
    registry: Registry,
) -> None:
    with pytest.raises(embedding.ConfigurationProblem, match="does not exist"):
        await fnop.operator(registry=registry, kubeconfig="/nowhere/config")


# -------------------------------------------------------------------- awaited


async def test_awaited_it_runs_until_a_flag_ends_it(
    registry: Registry, cluster: Cluster, diary: list[str]
) -> None:
    ready, stop = asyncio.Event(), asyncio.Event()
    flags: dict[str, Any] = {"ready_flag": ready, "stop_flag": stop}
    work = fnop.operator(registry=registry, api=cluster, **flags)
    task = asyncio.ensure_future(work)
    async with asyncio.timeout(patience(20)):
        await ready.wait()
        stop.set()
        await task
    assert diary == ["startup", "cleanup"]


async def test_cancelled_it_ends_in_order(
    registry: Registry, cluster: Cluster, diary: list[str]
) -> None:
    ready = asyncio.Event()
    work = fnop.operator(registry=registry, api=cluster, ready_flag=ready)
    task = asyncio.ensure_future(work)
    await ready.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert diary == ["startup", "cleanup"]


async def test_cancelled_again_it_ends_at_once(
    registry: Registry, cluster: Cluster
) -> None:
    @fnop.on.cleanup(registry=registry, id="slow")
    async def slow(**_: Any) -> None:
        await fnop.sleep(50)

    async with asyncio.timeout(patience(20)):
        running: list[fnop.Running] = []

        async def program() -> None:
            async with fnop.operator(registry=registry, api=cluster) as mine:
                running.append(mine)
                await mine.ended()

        task = asyncio.ensure_future(program())
        await until(lambda: running)
        await running[0].ready()
        task.cancel()
        await until(lambda: running[0].state.lifecycle.phase is Phase.CLEANING)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert running[0].has_ended


# ---------------------------------------------------------------------- flags


class Flag:
    """A flag of some kind, used from this thread."""

    def __init__(self, kind: str) -> None:
        loop = asyncio.get_running_loop()
        kinds: dict[str, Callable[[], Any]] = {
            "event": asyncio.Event,
            "future": loop.create_future,
            "thread's event": threading.Event,
            "thread's future": Future,
        }
        self.flag = kinds[kind]()

    def set(self) -> None:
        if hasattr(self.flag, "set_result"):
            self.flag.set_result("a reason")
        else:
            self.flag.set()

    @property
    def is_set(self) -> bool:
        flag = self.flag
        return bool(flag.done() if hasattr(flag, "done") else flag.is_set())


KINDS = ("event", "future", "thread's event", "thread's future")


@pytest.mark.parametrize("kind", KINDS)
async def test_flags_are_events_or_futures(
    kind: str, registry: Registry, cluster: Cluster
) -> None:
    ready, stop = Flag(kind), Flag(kind)
    flags: dict[str, Any] = {"ready_flag": ready.flag, "stop_flag": stop.flag}
    async with fnop.operator(registry=registry, api=cluster, **flags) as running:
        assert not ready.is_set
        await until(lambda: ready.is_set)
        assert running.health().is_ready
        stop.set()
        async with asyncio.timeout(patience(20)):
            await running.ended()


async def test_a_flag_that_is_set_already_is_let_be(
    registry: Registry, cluster: Cluster
) -> None:
    ready = Flag("future")
    ready.set()
    async with fnop.operator(
        registry=registry, api=cluster, ready_flag=ready.flag
    ) as running:
        await running.ready()
        await asyncio.sleep(0)
    assert ready.flag.result() == "a reason"


# ----------------------------------------------------------------- blocking


def test_run_blocks_until_it_is_stopped_from_another_thread(
    registry: Registry, diary: list[str]
) -> None:
    ready, stop = threading.Event(), threading.Event()

    def operate() -> None:
        flags: dict[str, Any] = {"ready_flag": ready, "stop_flag": stop}
        fnop.run(registry=registry, api=Cluster(), **flags)

    thread = threading.Thread(target=operate)
    thread.start()
    try:
        assert ready.wait(patience(20))
        assert thread.is_alive()
    finally:
        stop.set()
        thread.join(patience(20))
    assert not thread.is_alive()
    assert diary == ["startup", "cleanup"]


@pytest.fixture
def heard() -> Iterator[None]:
    """Signals as a program in the foreground has them; tests may run elsewhere."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_in_the_main_thread_signals_end_it_in_order(
    number: signal.Signals, registry: Registry, diary: list[str], heard: None
) -> None:
    """Even if it comes just before the event loop begins to wait."""
    before = signal.getsignal(number)
    ready, late = threading.Event(), threading.Event()
    ended = threading.Event()

    def send() -> None:
        assert ready.wait(patience(20))
        signal.pthread_kill(threading.main_thread().ident or 0, number)
        if not ended.wait(patience(20)):
            late.set()

    thread = threading.Thread(target=send)
    thread.start()
    fnop.run(registry=registry, api=Cluster(), ready_flag=ready, stop_flag=late)
    ended.set()
    thread.join()
    assert not late.is_set(), "the signal has not ended it"
    assert diary == ["startup", "cleanup"]
    assert signal.set_wakeup_fd(-1) == -1
    assert signal.getsignal(number) == before


def test_signals_wake_the_loop(registry: Registry, heard: None) -> None:
    """`signal.set_wakeup_fd`: one that comes just before the wait is not late."""
    found: list[int] = []

    @fnop.on.cleanup(registry=registry)
    def look(**_: Any) -> None:
        found.append(signal.set_wakeup_fd(-1))
        signal.set_wakeup_fd(found[0])

    ready = threading.Event()
    fnop.run(registry=registry, api=Cluster(), ready_flag=ready, stop_flag=ready)
    assert found
    assert found[0] != -1


def test_a_signal_that_is_ignored_stays_so(registry: Registry, heard: None) -> None:
    """As SIGINT is for what a shell runs in the background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ready, stop = threading.Event(), threading.Event()
    found: list[Any] = []

    def look() -> None:
        assert ready.wait(patience(20))
        found.append(signal.getsignal(signal.SIGINT))
        stop.set()

    thread = threading.Thread(target=look)
    thread.start()
    fnop.run(registry=registry, api=Cluster(), ready_flag=ready, stop_flag=stop)
    thread.join()
    assert found == [signal.SIG_IGN]
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_run_raises_what_is_wrong(registry: Registry) -> None:
    with pytest.raises(fnop.OperatorFailed, match="a startup handler failed"):
        fnop.run(registry=failing(registry), api=Cluster())


# ------------------------------------------------------- side by side


async def test_several_in_one_loop_do_not_see_each_other(diary: list[str]) -> None:
    """Clusters, handlers and settings of their own; one ends, the other goes on."""
    one, other = Cluster(), Cluster()
    named = [fnop.Settings("one"), fnop.Settings("other")]
    first = fnop.operator(registry=noting(diary, "1 "), api=one, settings=named[0])
    second = fnop.operator(registry=noting(diary, "2 "), api=other, settings=named[1])
    async with second as running:
        async with first:
            one.create("for-1")
            other.create("for-2")
            await until(lambda: {"1 created for-1", "2 created for-2"} <= {*diary})
        assert diary[-1] == "1 cleanup"
        other.create("later")
        await until(lambda: "2 created later" in diary)
        assert running.health().is_alive
    assert [line for line in diary if line.startswith("1")] == [
        "1 startup",
        "1 created for-1",
        "1 cleanup",
    ]
    assert len(diary) == 7


async def test_several_serve_one_object_under_names_of_their_own(
    diary: list[str], cluster: Cluster
) -> None:
    async with (
        fnop.operator(
            registry=noting(diary, "1 "), api=cluster, settings=fnop.Settings("one")
        ),
        fnop.operator(
            registry=noting(diary, "2 "), api=cluster, settings=fnop.Settings("two")
        ),
    ):
        cluster.create()
        expected = {"1 created example-1", "2 created example-1"}
        await until(lambda: expected <= {*diary})
        await until(lambda: marks(cluster) == {"fnop.dev/one", "fnop.dev/two"})
    assert len(diary) == 6


def marks(cluster: Cluster) -> set[str]:
    found: Any = cluster.request(ApiRequest("GET", f"{COLLECTION}/example-1")).body
    places = found.get("status") or {}
    return {*places, *found["metadata"].get("annotations", {})}


async def test_conversations_in_one_loop_are_not_mixed_up(cluster: Cluster) -> None:
    """The declarations and effects of a driven handler belong to its own operator."""
    registries, others = [Registry(), Registry()], [cluster, Cluster()]

    for number, registry in enumerate(registries):

        @fnop.on.create(KIND, registry=registry, id="parts")
        async def parts(number: int = number, **_: Any) -> None:
            @fnop.subhandler(id=f"part{number}")
            async def part(**_: Any) -> int:
                await fnop.sleep(0.01)
                return number

    async with (
        fnop.operator(registry=registries[0], api=others[0]),
        fnop.operator(registry=registries[1], api=others[1]),
    ):
        for each in others:
            each.create()
        for number, each in enumerate(others):

            def is_done(each: Cluster = each, number: int = number) -> bool:
                path = f"{COLLECTION}/example-1"
                found: Any = each.request(ApiRequest("GET", path)).body
                status = found.get("status", {})
                return bool(status.get(f"parts/part{number}") == number)

            await until(is_done)


# ------------------------------------------------------------------ arguments


@pytest.fixture
def global_registry() -> Iterator[Registry]:
    with default_registry.set_aside():
        yield default_registry


async def test_without_a_registry_it_is_all_that_is_declared(
    global_registry: Registry, cluster: Cluster, diary: list[str]
) -> None:
    @fnop.on.startup()
    def startup(**_: Any) -> None:
        diary.append("startup")

    async with fnop.operator(api=cluster) as running:
        await running.ready()
    assert diary == ["startup"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"namespaces": "default"}, r"such as \['default'\]"),
        ({"namespaces": ["a"], "clusterwide": True}, "either namespaces= or"),
        ({"standalone": True, "peering": "a"}, "either standalone="),
        ({"lease_namespace": "a"}, "lease_namespace= needs leader_elect="),
        ({"stop_flag": "now"}, "a flag is an event or a future"),
        ({"nmespaces": ["a"]}, "unexpected keyword argument"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        fnop.operator(registry=Registry(), **options)


def test_an_operator_without_handlers_is_a_mistake() -> None:
    """For example, a program that does not import the module with the handlers."""
    with pytest.raises(ValueError, match="import the modules that declare them"):
        fnop.run(registry=Registry())


def test_run_takes_what_an_operator_takes() -> None:
    taken = inspect.signature(fnop.operator).parameters
    assert embedding.Options.__annotations__.keys() == taken.keys()


def program_of(**options: Any) -> fnop.Settings:
    found: fnop.Settings = fnop.operator(
        registry=Registry(), **options
    )._program.settings
    return found


def test_what_is_served_can_be_said_in_short() -> None:
    some = fnop.Settings("a", ("b",))
    assert program_of().namespaces is None
    assert program_of(settings=some) == some
    assert program_of(settings=some, namespaces=["c"]).namespaces == ("c",)
    assert program_of(settings=some, clusterwide=True).namespaces is None


def test_it_meets_others_only_where_it_is_asked_to() -> None:
    assert program_of().peering is None
    found = program_of(peering="mine", priority=5).peering
    assert found is not None
    assert (found.name, found.priority, found.mode) == ("mine", 5, Mode.MANDATORY)
    found = program_of(priority=5).peering
    assert found is not None
    assert found.mode is Mode.AUTO
    assert program_of(settings=program_of(priority=5), standalone=True).peering is None


def test_of_several_replicas_one_serves_where_it_is_asked_to() -> None:
    assert program_of().election is None
    billing = fnop.Settings("billing", ("here", "there"))
    found = program_of(settings=billing, leader_elect=True).election
    assert found is not None
    assert (found.namespace, found.name) == ("here", "fnop-billing")
    found = program_of(leader_elect=True, lease_namespace="leases").election
    assert found is not None
    assert (found.namespace, found.name) == ("leases", "fnop-default")
    again = program_of(leader_elect=True, lease_namespace="leases").election
    assert again is not None
    assert again.identity != found.identity, "several may be in one process"
    kept = program_of(settings=fnop.Settings(election=found))
    assert kept.election is found


async def test_a_replica_leads_and_gives_the_lease_back(
    registry: Registry, cluster: Cluster
) -> None:
    lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/fnop-default"
    options: dict[str, Any] = {"registry": registry, "api": cluster}
    async with fnop.operator(leader_elect=True, **options) as running:
        await until(lambda: running.state.lifecycle.phase is Phase.SERVING)
        spec = cluster.request(ApiRequest("GET", lease)).body["spec"]
        assert spec["holderIdentity"]
    spec = cluster.request(ApiRequest("GET", lease)).body["spec"]
    assert not spec["holderIdentity"]


async def test_its_lines_go_to_the_log_of_the_program(
    registry: Registry, cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Which it does not configure."""

    @fnop.on.create(KIND, registry=registry, id="bad", errors=fnop.ErrorsMode.PERMANENT)
    def bad(**_: Any) -> None:
        raise ValueError("oops")

    caplog.set_level(logging.INFO)
    handlers = [*logging.getLogger().handlers]
    async with fnop.operator(registry=registry, api=cluster) as running:
        cluster.create()
        await until(lambda: running.state.notes.failures)
    assert logging.getLogger().handlers == handlers
    (line,) = [text for text in caplog.messages if "oops" in text]
    assert line.startswith("[default/example-1] create handler bad failed for good:")
    assert "ValueError: oops" in line
    assert "test_embedding.py" in line, "with the traceback"


def test_the_facade_has_its_tools_for_tests_when_they_are_asked_for() -> None:
    lines = "import fnop, sys; found = 'fnop.testing' in sys.modules; fnop.testing.load"
    subprocess.run([sys.executable, "-c", f"{lines}; assert not found"], check=True)


def test_the_facade_has_no_other_names() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'oprator'"):
        _ = fnop.oprator  # type: ignore[attr-defined]


# -------------------------------------------------------------------- threads


class Gate:
    """A gate at which called functions wait, each in its thread."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.opened = threading.Event()


gates: dict[str, Gate] = {}


def held(gate: str) -> None:
    gates[gate].waiting.append(threading.current_thread().name)
    assert gates[gate].opened.wait(patience(20))


def calling(gate: str, call_threads: int | None = None) -> Registry:
    """Handlers that call a function which waits at the gate."""
    registry, gates[gate] = Registry(), Gate()

    @fnop.on.startup(registry=registry)
    def startup(settings: fnop.Settings, **_: Any) -> fnop.Settings | None:
        if call_threads is None:
            return None
        return settings.replace(call_threads=call_threads)

    @fnop.on.create(KIND, registry=registry)
    async def created(**_: Any) -> None:
        await fnop.call(held, gate=gate)

    return registry


@pytest.mark.parametrize("threads", [1, 2])
async def test_call_threads_is_how_many_calls_run_at_a_time(
    threads: int, cluster: Cluster
) -> None:
    registry = calling("some", threads)
    gate = gates["some"]
    async with fnop.operator(registry=registry, api=cluster) as running:
        for each in ("a", "b", "c"):
            cluster.create(each)
        await until(
            lambda: running.state.requests.calls == 3 and len(gate.waiting) == threads
        )
        gate.opened.set()
        await until(lambda: not running.state.requests.calls)
    assert len(gate.waiting) == 3
    assert len(set(gate.waiting)) == threads


async def test_calls_run_in_the_threads_of_its_program(cluster: Cluster) -> None:
    threads = ThreadPoolExecutor(1, "mine")
    registry = calling("mine")
    gates["mine"].opened.set()
    async with fnop.operator(registry=registry, api=cluster, executor=threads):
        cluster.create()
        await until(lambda: gates["mine"].waiting)
    assert gates["mine"].waiting == ["mine_0"]
    assert threads.submit(str).result() == "", "they are their owner's"
    threads.shutdown()


def test_what_is_no_executor_is_refused() -> None:
    wrong: Any = 7
    with pytest.raises(TypeError, match="executor= takes an executor of threads"):
        fnop.operator(executor=wrong)
    for number in (0, -1):
        with pytest.raises(ValueError, match="call_threads= must be a whole number"):
            fnop.Settings(call_threads=number)
