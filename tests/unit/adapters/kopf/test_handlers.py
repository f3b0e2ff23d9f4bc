"""Handlers of Kopf operators, called by fnop in the simulated cluster."""

from __future__ import annotations

import asyncio
import doctest
import logging
import math
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from fnop import kopf
from fnop.adapters.kopf.declaring.registry import OperatorRegistry
from fnop.adapters.kopf.running import handlers as module
from fnop.adapters.kopf.running.handlers import label_of
from fnop.adapters.kopf.running.logs import write
from fnop.adapters.kopf.running.operator import Operator
from fnop.core.handlers.declare import lifecycles
from fnop.core.handlers.declare.roles import Role
from fnop.core.handlers.declare.writers import PatchWriter
from fnop.core.values.body import Body as CoreBody
from fnop.effects import Return
from tests.patience import patience, soon
from tests.unit.adapters.kopf.simulated import (
    KIND,
    Simulated,
    author_loop,
    example,
    simulated,
)

Diary = list[Any]
# The arguments that handlers of Kopf get, by its documentation.
ABOUT_OBJECTS = {
    *("retry", "started", "runtime", "memo", "param", "logger", "patch", "resource"),
    *("body", "spec", "meta", "status", "uid", "name", "namespace"),
    *("labels", "annotations"),
}
OF_CHANGES = ABOUT_OBJECTS | {"reason", "diff", "old", "new"}


def test_the_examples_in_the_docstrings_hold() -> None:
    found = doctest.testmod(module)
    assert found.attempted
    assert found.failed == 0


def test_each_kind_of_handler_has_its_name_in_the_log() -> None:
    names = {role: label_of(role, "a").partition(" ")[0] for role in Role}
    assert names[Role.UPDATE] == names[Role.EVENT] == "Handler"
    assert (names[Role.DAEMON], names[Role.TIMER]) == ("Daemon", "Timer")
    assert (names[Role.INDEX], names[Role.MUTATE]) == ("Indexer", "Webhook")
    assert names[Role.STARTUP] == names[Role.LOGIN] == names[Role.PROBE] == "Activity"


# ------------------------------------------------------------------- the life of one


def test_an_object_is_created_updated_and_deleted(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.create(KIND, id="created", registry=registry)
    def created(spec: kopf.Spec, reason: Any, old: Any, **_: Any) -> None:
        diary.append((str(reason), dict(spec), old))

    @kopf.on.update(KIND, id="updated", registry=registry)
    async def updated(reason: Any, diff: kopf.Diff, **_: Any) -> None:
        diary.append((str(reason), [tuple(each) for each in diff]))

    @kopf.on.delete(KIND, id="deleted", registry=registry)
    def deleted(reason: Any, name: str, **_: Any) -> None:
        diary.append((str(reason), name))

    @kopf.on.field(KIND, id="sized", field="spec.size", registry=registry)
    def sized(old: Any, new: Any, diff: Any, **_: Any) -> None:
        diary.append(("size", old, new, [tuple(each) for each in diff]))

    with simulated(registry, example(size=1)) as run:
        held = run.get()["metadata"]
        assert held["finalizers"] == [run.operator.settings.persistence.finalizer]
        assert diary == [
            ("create", {"size": 1}, None),
            ("size", None, 1, [("add", (), None, 1)]),
        ]
        diary.clear()
        run.edit(spec={"size": 2})
        assert diary == [
            ("update", [("change", ("spec", "size"), 1, 2)]),
            ("size", 1, 2, [("change", (), 1, 2)]),
        ]
        diary.clear()
        run.edit(status={"own": 1}).edit(metadata={"finalizers": held["finalizers"]})
        assert diary == [], "nothing essential has changed"
        run.delete()
        assert diary == [("delete", "example-1")]
        assert run.get() is None
        assert run.errors() == []


def test_an_object_that_was_there_is_resumed_once(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.create(KIND, id="seen", registry=registry)
    @kopf.on.resume(KIND, registry=registry)
    def seen(reason: Any, **_: Any) -> None:
        diary.append(str(reason))

    with simulated(registry, example(size=1)) as first:
        assert diary == ["create"]
        cluster = first.sim.cluster
    with simulated(registry, cluster=cluster) as second:
        assert diary == ["create", "resume"]
        second.edit(spec={"size": 2})
        assert diary == ["create", "resume"]


def test_a_reason_is_a_member_of_its_enumeration(
    registry: OperatorRegistry, diary: Diary
) -> None:
    def is_wanted(reason: Any, **_: Any) -> bool:
        diary.append(reason)
        return True

    @kopf.on.create(KIND, registry=registry, when=is_wanted)
    def made(reason: Any, **_: Any) -> None:
        diary.append(reason)
        kopf.register(part, id="part")

    def part(reason: Any, **_: Any) -> None:
        diary.append(reason)

    with simulated(registry, example()) as run:
        assert run.errors() == []
    assert len(diary) > 2
    for reason in diary:
        assert reason is kopf.Reason.CREATE
        assert (reason.name, reason.value, str(reason)) == ("CREATE", *2 * ["create"])


def test_an_object_whose_handlers_are_optional_is_not_held(
    registry: OperatorRegistry,
) -> None:
    @kopf.on.delete(KIND, id="fn", optional=True, registry=registry)
    @kopf.on.create(KIND, registry=registry)
    def fn(**_: Any) -> None: ...

    with simulated(registry, example()) as run:
        assert "finalizers" not in run.get()["metadata"]


def test_watch_events_are_handled_as_they_come(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.event(KIND, id="seen", registry=registry)
    def seen(event: Any, type: Any, patch: kopf.Patch, name: str, **_: Any) -> Any:
        assert event["type"] == type
        assert event["object"]["metadata"]["name"] == name
        diary.append(type)
        if type == "ADDED":
            patch.status["seen"] = True

    with simulated(registry, example()) as run:
        assert diary[0] in (None, "ADDED")
        run.edit(spec={"size": 1})
        assert diary[-1] == "MODIFIED"
        run.delete()
        assert diary[-1] == "DELETED"


# ------------------------------------------------------------------------ arguments


def test_a_handler_gets_the_arguments_of_kopf(
    registry: OperatorRegistry, diary: Diary
) -> None:
    def note(**kwargs: Any) -> None:
        diary.append(kwargs)

    kopf.on.create(KIND, id="a", param=7, registry=registry)(note)
    kopf.index(KIND, id="names", registry=registry)(lambda name, **_: name)
    thing = example(size=1)
    thing["metadata"] |= {"labels": {"app": "db"}, "annotations": {"note": "x"}}
    with simulated(registry, thing) as run:
        (found,) = diary
        assert found.keys() == OF_CHANGES | {"names"}
        body = found["body"]
        assert body == {**body, "spec": {"size": 1}, "kind": "FnopExample"}
        assert (found["spec"], found["status"]) == ({"size": 1}, {})
        assert (found["labels"], found["meta"].labels) == ({"app": "db"},) * 2
        assert found["annotations"]["note"] == "x"
        assert (found["name"], found["namespace"]) == ("example-1", "default")
        assert found["uid"] == run.get()["metadata"]["uid"]
        assert (found["param"], found["retry"]) == (7, 0)
        assert found["resource"].plural == KIND
        assert found["started"].tzinfo is not None
        assert found["runtime"].total_seconds() == 0
        assert isinstance(found["patch"], kopf.Patch)
        assert isinstance(found["memo"], kopf.Memo)
        assert isinstance(found["logger"], kopf.ObjectLogger)


def test_the_log_names_the_change_that_a_handler_is_called_for(
    registry: OperatorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "kopf.objects")
    for declare in (kopf.on.create, kopf.on.update, kopf.on.delete):
        declare(KIND, registry=registry)(lambda **_: None)
    with simulated(registry, example(size=1)) as run:
        run.edit(spec={"size": 2}).delete()
    found = [each for each in caplog.messages if "Handler" not in each]
    assert [each.partition(": ")[0] for each in found] == [
        "Creation is in progress",
        "Updating is in progress",
        "Updating diff",
        "Deletion is in progress",
    ]
    assert found[0].startswith("Creation is in progress: {'apiVersion': ")
    assert found[2].endswith(": (('change', ('spec', 'size'), 1, 2),)")


def test_the_log_does_without_the_change_unless_it_is_verbose(
    registry: OperatorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "kopf.objects")
    kopf.on.create(KIND, id="a", registry=registry)(lambda **_: None)
    with simulated(registry, example()):
        assert caplog.messages == ["Handler 'a' succeeded."]


def test_a_diff_looks_as_in_kopf(registry: OperatorRegistry, diary: Diary) -> None:
    @kopf.on.update(KIND, id="a", registry=registry)
    def updated(diff: kopf.Diff, **_: Any) -> None:
        diary.append(repr(diff))

        @kopf.subhandler(id="b", field="spec.size")
        def sized(diff: kopf.Diff, **_: Any) -> None:
            diary.append(repr(diff))

    with simulated(registry, example(size=1)) as run:
        run.edit(spec={"size": 2})
    assert diary == [
        "(('change', ('spec', 'size'), 1, 2),)",
        "(('change', (), 1, 2),)",
    ]


def test_a_handler_of_watch_events_gets_its_own(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.event(KIND, id="a", registry=registry)
    def note(**kwargs: Any) -> None:
        diary.append(kwargs)

    with simulated(registry) as run:
        run.apply(example()).settle()
    assert diary[0].keys() == ABOUT_OBJECTS | {"type", "event"}


class Stopped:
    """Stands for the argument of fnop's daemons."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.reason = "RESOURCE_DELETED"

    async def wait(self) -> None:
        await self.event.wait()


BODY = {"metadata": {"name": "a", "uid": "u"}, "spec": {"size": 1}}


async def in_background(
    registry: OperatorRegistry, stopped: Stopped, patch: PatchWriter
) -> Any:
    """Call a daemon or a timer as fnop does."""
    operator = Operator(
        registry, kopf.OperatorSettings(), None, asyncio.get_running_loop()
    )
    (handler,) = module.handlers_of(operator)
    found = handler.fn(
        body=CoreBody(BODY).data,
        resource="resource",
        retry=2,
        started=datetime.fromtimestamp(0, UTC),
        patch=patch,
        stopped=stopped,
    )
    try:
        return await found
    finally:
        operator.settings.execution.executor.shutdown()


@pytest.mark.parametrize("name", ["timer", "daemon"])
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_daemons_and_timers_get_theirs(
    registry: OperatorRegistry, diary: Diary, name: str, kind: str
) -> None:
    def sync(**kwargs: Any) -> Any:
        diary.append(kwargs)
        kwargs["patch"].status["seen"] = kwargs["retry"]
        kwargs["patch"].fns.append(print)
        return "done"

    async def coroutine(**kwargs: Any) -> Any:
        return sync(**kwargs)

    options = {"interval": 60} if name == "timer" else {}
    fn = sync if kind == "sync" else coroutine
    getattr(kopf.on, name)(KIND, id="a", param=3, registry=registry, **options)(fn)
    patch = PatchWriter()
    result = await in_background(registry, Stopped(), patch)
    assert result == Return("done")
    assert patch == {"status": {"seen": 2}}
    assert patch.fns == [print]
    assert diary[0].keys() == ABOUT_OBJECTS | {"stopped"}
    assert (diary[0]["param"], diary[0]["spec"]) == (3, {"size": 1})
    assert not diary[0]["stopped"]


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_daemon_is_asked_to_stop(registry: OperatorRegistry, kind: str) -> None:
    stopped, loop = Stopped(), asyncio.get_running_loop()

    @kopf.daemon(KIND, id="a", registry=registry)
    def sync(stopped: Any, **_: Any) -> Any:
        loop.call_soon_threadsafe(flag.set)
        return bool(stopped.wait()) and stopped.reason.name

    async def coroutine(stopped: Any, **_: Any) -> Any:
        flag.set()
        return bool(await stopped.wait()) and stopped.reason.name

    flag = asyncio.Event()
    if kind == "async":
        registry.entries.clear()
        kopf.daemon(KIND, id="a", registry=registry)(coroutine)
    running = asyncio.create_task(in_background(registry, stopped, PatchWriter()))
    asked = asyncio.create_task(flag.wait())
    await asyncio.wait({asked, running}, return_when=asyncio.FIRST_COMPLETED)
    assert not running.done()
    stopped.event.set()
    assert await running == Return("RESOURCE_DELETED")


@pytest.mark.parametrize("first", ["sync", "async"])
@pytest.mark.parametrize("second", ["sync", "async"])
def test_handlers_of_one_object_are_called_one_after_the_other(
    registry: OperatorRegistry, diary: Diary, first: str, second: str
) -> None:
    began, end = threading.Event(), threading.Event()

    def holds(**_: Any) -> None:
        began.set()
        assert end.wait(patience(20))
        diary.append("first")

    async def holds_as_well(**_: Any) -> None:
        await asyncio.to_thread(holds)

    def follows(**_: Any) -> None:
        diary.append("second")

    async def follows_as_well(**_: Any) -> None:
        follows()

    one = holds if first == "sync" else holds_as_well
    other = follows if second == "sync" else follows_as_well
    kopf.on.event(KIND, id="first", registry=registry)(one)
    kopf.on.event(KIND, id="second", registry=registry)(other)

    async def play(operator: Operator) -> None:
        found = {
            "body": CoreBody(BODY).data,
            "type": "ADDED",
            "resource": "resource",
            "started": datetime.fromtimestamp(0, UTC),
            "patch": PatchWriter(),
        }
        calls = [each.fn(**found) for each in module.handlers_of(operator)]
        running = asyncio.create_task(calls[0])
        await soon(began.is_set)
        waiting = asyncio.create_task(calls[1])
        done, _ = await asyncio.wait({waiting}, timeout=0.01)
        assert not done
        end.set()
        await asyncio.wait_for(asyncio.gather(running, waiting), patience(20))

    with author_loop() as authors:
        operator = Operator(registry, kopf.OperatorSettings(), None, authors)
        asyncio.run(play(operator))
        operator.settings.execution.executor.shutdown()
    assert diary == ["first", "second"]


def ended(
    registry: OperatorRegistry,
    daemon: Callable[..., Any],
    began: threading.Event,
    go_on: Callable[[Stopped, asyncio.Task[Any]], None],
    settings: kopf.OperatorSettings | None = None,
    **options: Any,
) -> asyncio.Task[Any]:
    """Stop a daemon of another loop by `go_on` after it `began`; its ended call."""
    kopf.daemon(KIND, id="a", registry=registry, **options)(daemon)

    async def play(operator: Operator) -> asyncio.Task[Any]:
        (handler,), stopped = module.handlers_of(operator), Stopped()
        found = {
            "body": CoreBody(BODY).data,
            "resource": "resource",
            "retry": 0,
            "started": datetime.fromtimestamp(0, UTC),
            "patch": PatchWriter(),
            "stopped": stopped,
        }
        running = asyncio.create_task(handler.fn(**found))
        await soon(began.is_set)
        go_on(stopped, running)
        await asyncio.wait({running}, timeout=patience(20))
        return running

    with author_loop() as authors:
        settings = settings or kopf.OperatorSettings()
        operator = Operator(registry, settings, None, authors)
        running = asyncio.run(play(operator))
        operator.settings.execution.executor.shutdown()
    return running


def stop_and_cancel(stopped: Stopped, running: asyncio.Task[Any]) -> None:
    stopped.event.set()
    running.cancel()


def test_a_cancelled_daemon_is_waited_for(
    registry: OperatorRegistry, diary: Diary
) -> None:
    began = threading.Event()

    async def tidies(stopped: Any, **_: Any) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            diary.append(stopped.reason)
            raise

    running = ended(registry, tidies, began, stop_and_cancel, cancellation_timeout=20)
    assert running.cancelled()
    reasons = kopf.DaemonStoppingReason
    assert diary == [reasons.RESOURCE_DELETED | reasons.DAEMON_CANCELLED]


def test_a_daemon_that_catches_its_cancellation_has_a_result(
    registry: OperatorRegistry,
) -> None:
    began = threading.Event()

    async def tidies(**_: Any) -> Any:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return {"a": 1}

    running = ended(registry, tidies, began, stop_and_cancel, cancellation_timeout=20)
    assert running.result() == Return({"a": 1})


def test_a_daemon_that_looks_at_the_flag_ends_before_it_is_cancelled(
    registry: OperatorRegistry, diary: Diary
) -> None:
    began = threading.Event()

    async def follows(stopped: Any, **_: Any) -> None:
        began.set()
        await stopped
        diary.append(stopped.reason)

    ended(registry, follows, began, stop_and_cancel, cancellation_timeout=20)
    assert diary == [kopf.DaemonStoppingReason.RESOURCE_DELETED]


def test_a_daemon_in_a_thread_may_end_before_it_is_cancelled(
    registry: OperatorRegistry, diary: Diary, caplog: pytest.LogCaptureFixture
) -> None:
    began, end = threading.Event(), threading.Event()

    def follows(stopped: Any, **_: Any) -> None:
        began.set()
        stopped.wait()
        end.wait()
        diary.append(stopped.reason)

    def leaves(stopped: Stopped, running: asyncio.Task[Any]) -> None:
        stop_and_cancel(stopped, running)
        asyncio.get_running_loop().call_soon(end.set)

    caplog.set_level(logging.INFO)
    settings = kopf.OperatorSettings()
    settings.background.instant_exit_timeout = patience(20)
    ended(registry, follows, began, leaves, settings, cancellation_timeout=20)
    assert diary == [kopf.DaemonStoppingReason.RESOURCE_DELETED]
    assert caplog.messages == ["Daemon 'a' succeeded."]


def test_a_daemon_that_goes_on_after_its_cancellation_is_left_alone(
    registry: OperatorRegistry, diary: Diary, caplog: pytest.LogCaptureFixture
) -> None:
    began, end = threading.Event(), threading.Event()

    async def stays(stopped: Any, **_: Any) -> None:
        began.set()
        while not end.is_set():
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                diary.append("cancelled")

    def leaves(stopped: Stopped, running: asyncio.Task[Any]) -> None:
        stop_and_cancel(stopped, running)
        running.add_done_callback(lambda _: end.set())

    running = ended(registry, stays, began, leaves, cancellation_timeout=0.1)
    assert running.cancelled()
    assert diary == ["cancelled"]
    assert "Daemon 'a' did not exit in time. Leaving it orphaned." in caplog.messages


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, (math.inf, None)),
        ({"cancellation_timeout": 5}, (0, 5)),
        ({"cancellation_timeout": 5, "cancellation_backoff": 3}, (3, 5)),
        ({"cancellation_polling": 5}, (math.inf, None)),
    ],
    ids=range(4),
)
def test_a_daemon_without_a_timeout_is_never_cancelled(
    registry: OperatorRegistry, given: dict[str, Any], wanted: tuple[Any, ...]
) -> None:
    kopf.daemon(KIND, id="a", registry=registry, **given)(lambda **_: None)
    with author_loop() as loop:
        operator = Operator(registry, kopf.OperatorSettings(), None, loop)
        (handler,) = module.handlers_of(operator)
    backoff, timeout = wanted
    if backoff == math.inf:
        assert (handler.cancellation_backoff or 0) > 365 * 86_400
    else:
        assert handler.cancellation_backoff == backoff
        assert handler.cancellation_timeout == timeout


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_handlers_run_outside_of_the_steps(
    registry: OperatorRegistry, diary: Diary, kind: str
) -> None:
    def sync(**_: Any) -> None:
        diary.append(threading.current_thread().name)

    async def coroutine(**_: Any) -> None:
        diary.append(threading.current_thread().name)

    kopf.on.create(KIND, registry=registry)(sync if kind == "sync" else coroutine)
    with simulated(registry, example()):
        (name,) = diary
        assert name != threading.current_thread().name
        assert (name == "author") is (kind == "async")


def test_a_function_within_another_one_is_a_handler(registry: OperatorRegistry) -> None:
    @kopf.on.create(KIND, registry=registry)
    def made(**_: Any) -> str:
        return "x"

    kopf.on.create(KIND, registry=registry)(lambda **_: "y")
    with simulated(registry, example()) as run:
        assert run.errors() == []
        name = (
            f"{test_a_function_within_another_one_is_a_handler.__name__}.<locals>.made"
        )
        assert run.status()[name] == "x"
        assert "y" in run.status().values()


# -------------------------------------------------------------------------- outcomes


def test_results_and_patches_are_written(registry: OperatorRegistry) -> None:
    @kopf.on.create(KIND, id="mapping", registry=registry)
    def mapping(patch: kopf.Patch, **_: Any) -> Any:
        patch.status["phase"] = "Ready"
        patch.spec["size"] = 3
        patch.meta.labels["app"] = "db"
        return {"a": [1]}

    @kopf.on.create(KIND, id="text", registry=registry)
    def number(**_: Any) -> Any:
        return 5

    @kopf.on.create(KIND, id="nothing", registry=registry)
    def nothing(**_: Any) -> None: ...

    with simulated(registry, example(size=1)) as run:
        assert run.status() == {"phase": "Ready", "mapping": {"a": [1]}, "text": 5}
        assert run.get()["spec"] == {"size": 3}
        assert run.get()["metadata"]["labels"] == {"app": "db"}


def test_functions_of_a_patch_change_the_object(registry: OperatorRegistry) -> None:
    @kopf.on.create(KIND, id="made", registry=registry)
    def made(patch: kopf.Patch, **_: Any) -> None:
        patch.status["count"] = 1
        patch.fns.append(
            lambda body: body["status"].update(seen=body["status"]["count"])
        )
        patch.fns.append(lambda body: body["spec"].pop("old"))

    with simulated(registry, example(size=1, old=2)) as run:
        assert run.status() == {"count": 1, "seen": 1}
        assert run.get()["spec"] == {"size": 1}


def test_a_result_without_a_form_in_json_is_not_stored(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.create(KIND, id="made", retries=1, registry=registry)
    def made(**_: Any) -> Any:
        diary.append(1)
        return object()

    with simulated(registry, example()) as run:
        assert "made" not in run.status()
        assert diary == [1]


def test_a_temporary_error_is_retried(registry: OperatorRegistry, diary: Diary) -> None:
    @kopf.on.create(KIND, id="made", registry=registry)
    def made(retry: int, runtime: Any, patch: kopf.Patch, **_: Any) -> Any:
        diary.append((retry, runtime.total_seconds()))
        if retry < 2:
            patch.status["tried"] = retry
            raise kopf.TemporaryError("not yet", delay=10)
        return "done"

    with simulated(registry, example()) as run:
        assert [retry for retry, _ in diary] == [0, 1, 2]
        assert [round(runtime) for _, runtime in diary] == [0, 10, 20]
        assert run.status() == {"tried": 1, "made": "done"}, "patches of failures count"
        names = [*run.get()["metadata"]["annotations"]]
        assert names == ["kopf.zalando.org/last-handled-configuration"]


@pytest.mark.parametrize(
    ("options", "problem", "tries"),
    [
        ({}, kopf.PermanentError("no"), 1),
        ({"retries": 3, "backoff": 1}, ValueError("x"), 3),
        ({"errors": kopf.ErrorsMode.PERMANENT}, ValueError("x"), 1),
        ({"errors": kopf.ErrorsMode.IGNORED}, ValueError("x"), 1),
        ({"timeout": 25, "backoff": 10}, ValueError("x"), 3),
        ({"retries": 2}, kopf.TemporaryError("x", delay=1), 2),
    ],
    ids=range(6),
)
def test_a_handler_gives_up(
    registry: OperatorRegistry,
    diary: Diary,
    options: dict[str, Any],
    problem: Exception,
    tries: int,
) -> None:
    @kopf.on.create(KIND, id="made", registry=registry, **options)
    def made(**_: Any) -> None:
        diary.append(1)
        raise problem

    @kopf.on.update(KIND, id="updated", registry=registry)
    def updated(**_: Any) -> None:
        diary.append("updated")

    with simulated(registry, example(size=1)) as run:
        assert diary == [1] * tries
        run.edit(spec={"size": 2})
        assert diary[-1] == "updated", "the creation has ended"


def test_the_settings_have_the_default_backoff(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.create(KIND, id="made", registry=registry)
    def made(retry: int, runtime: Any, **_: Any) -> None:
        diary.append(round(runtime.total_seconds()))
        if retry < 1:
            raise ValueError("x")

    settings = kopf.OperatorSettings()
    settings.execution.default_backoff = 7
    with simulated(registry, example(), settings=settings):
        assert diary == [0, 7]


@pytest.mark.parametrize(
    ("lifecycle", "stored"),
    [(lifecycles.asap, [[], ["one", "two"]]), (lifecycles.all_at_once, [[], []])],
    ids=["one in a pass", "all at once"],
)
def test_the_end_of_a_handler_is_stored_before_the_next_call(
    registry: OperatorRegistry, diary: Diary, lifecycle: Any, stored: list[list[str]]
) -> None:
    def note(annotations: Any, **_: Any) -> None:
        diary.append([name.partition("/")[2] for name in annotations])

    kopf.on.create(KIND, id="one", registry=registry)(note)
    kopf.on.create(KIND, id="two", registry=registry)(note)
    with simulated(registry, example(), lifecycle=lifecycle):
        assert diary == stored


def test_an_attempt_after_the_deadline_never_comes(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.create(KIND, id="a", registry=registry, timeout=5, backoff=7)
    def late(**_: Any) -> None:
        diary.append("late")
        raise ValueError("no")

    @kopf.on.create(KIND, id="b", registry=registry, timeout=5, backoff=3)
    def again(retry: int, **_: Any) -> None:
        diary.append(retry)
        raise ValueError("no")

    with simulated(registry, example()) as run:
        began = run.sim.clock.elapsed
        assert {*diary} == {"late", 0, 1}
        assert diary.count("late") == 1
        # It ends with the last attempt, and does not wait for the deadline.
        assert began < 5
        notes = run.get()["metadata"]["annotations"]
        assert [*notes] == ["kopf.zalando.org/last-handled-configuration"]


def test_the_end_of_a_change_is_told_in_kopfs_words(
    registry: OperatorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(**_: Any) -> None:
        raise kopf.PermanentError("no")

    kopf.on.create(KIND, id="one", registry=registry)(lambda **_: None)
    kopf.on.create(KIND, id="two", registry=registry)(fails)
    kopf.on.resume(KIND, id="three", registry=registry)(lambda **_: None)
    kopf.on.delete(KIND, id="four", registry=registry, optional=True)(lambda **_: None)
    caplog.set_level(logging.INFO)
    with simulated(registry, example()) as run:
        run.edit(spec={"size": 2}).delete()
        for each in run.said:
            write(each, run.operator.settings)
    found = [line for line in caplog.messages if "processed" in line]
    # No handler is for the update, and so nothing is said about it.
    assert found == ["Creation is processed: 1 succeeded; 1 failed."]
    record = next(each for each in caplog.records if "processed" in each.message)
    assert record.name == "kopf.objects"
    assert vars(record)["k8s_ref"]["name"] == "example-1"
    assert vars(record)["settings"] is run.operator.settings


def test_a_change_before_the_end_of_another_is_told_in_kopfs_words(
    registry: OperatorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    @kopf.on.resume(KIND, id="waits", registry=registry)
    @kopf.on.update(KIND, id="waits", registry=registry)
    @kopf.on.create(KIND, id="waits", registry=registry)
    def waits(**_: Any) -> None:
        raise kopf.TemporaryError("not yet", delay=3600)

    @kopf.on.delete(KIND, id="leaves", registry=registry)
    def leaves(retry: int, **_: Any) -> None:
        if retry < 2:
            raise kopf.TemporaryError("not yet", delay=1)

    kopf.on.create(KIND, id="begins", registry=registry)(lambda **_: None)
    caplog.set_level(logging.INFO)
    with simulated(registry, example()) as run:
        run.delete()
        for each in run.said:
            write(each, run.operator.settings)
    # Once, although the deletion has several attempts.
    assert [line for line in caplog.messages if "superseded" in line] == [
        "Creation is superseded by deletion: 1 succeeded; 0 failed; "
        "1 left to the moment."
    ]


def test_an_index_function_may_take_indices_of_other_kinds(
    registry: OperatorRegistry,
) -> None:
    seen: Diary = []
    labels = {"app": "mine"}

    @kopf.index(KIND, id="examples", registry=registry)
    @kopf.index("configmaps", id="settings", registry=registry, labels=labels)
    def plain(name: str, **_: Any) -> Any:
        return {None: name}

    # Each kind has an index that the other one needs: what is listed first, waits.
    @kopf.index(KIND, id="first", registry=registry)
    def first(name: str, settings: Any, **_: Any) -> Any:
        seen.append(("first", name, [*settings.get(None, ())]))
        return {name: True}

    @kopf.index("configmaps", id="second", registry=registry, labels=labels)
    def second(name: str, examples: Any, **_: Any) -> Any:
        seen.append(("second", name, [*examples.get(None, ())]))
        return {name: True}

    meta = {"name": "c", "labels": labels}
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    with author_loop() as loop:
        run = Simulated(registry, loop)
        run.apply(example(), other).settle()
    assert sorted(seen) == [
        ("first", "example-1", ["c"]),
        ("second", "c", ["example-1"]),
    ]


@pytest.mark.parametrize("is_async", [True, False])
def test_a_handler_that_exits_ends_the_operator(
    registry: OperatorRegistry, caplog: pytest.LogCaptureFixture, is_async: bool
) -> None:
    async def exits(**_: Any) -> None:
        sys.exit(4)

    def exits_in_a_thread(**_: Any) -> None:
        sys.exit(4)

    fn = exits if is_async else exits_in_a_thread
    kopf.on.create(KIND, id="exits", registry=registry, retries=1)(fn)
    with simulated(registry, example()) as run:
        assert run.operator.exit is not None
        assert run.operator.exit.code == 4
    assert "Handler 'exits' ends the operator: SystemExit: 4" in caplog.messages


def test_a_deletion_without_handlers_supersedes_a_change_and_leaves_no_records(
    registry: OperatorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    @kopf.on.create(KIND, id="waits", registry=registry)
    def waits(**_: Any) -> None:
        raise kopf.TemporaryError("not yet", delay=3600)

    @kopf.daemon(KIND, id="holds", registry=registry)
    async def holds(stopped: kopf.DaemonStopped, **_: Any) -> None:
        await stopped.wait()

    mine = example()
    mine["metadata"]["finalizers"] = ["example.com/other"]
    caplog.set_level(logging.INFO)
    with simulated(registry, mine) as run:
        assert "kopf.zalando.org/waits" in run.get()["metadata"]["annotations"]
        run.delete()
        for each in run.said:
            write(each, run.operator.settings)
        left = run.get()["metadata"]
    assert left["finalizers"] == ["example.com/other"]
    assert "kopf.zalando.org/waits" not in left.get("annotations", {})
    assert [line for line in caplog.messages if "superseded" in line] == [
        "Creation is superseded by deletion: 0 succeeded; 0 failed; "
        "1 left to the moment."
    ]


# --------------------------------------------------------------------------- filters


def test_filters_are_those_of_kopf(registry: OperatorRegistry, diary: Diary) -> None:
    def declare(id: str, **filters: Any) -> None:
        kopf.on.create(KIND, id=id, registry=registry, **filters)(
            lambda **_: diary.append(id)
        )

    is_db = lambda value, name, **_: value == "db" and name == "example-1"  # noqa: E731
    declare("label", labels={"app": "db"})
    declare("label of another value", labels={"app": "web"})
    declare("present", labels={"app": kopf.PRESENT}, annotations={"x": kopf.ABSENT})
    declare("absent", labels={"app": kopf.ABSENT})
    declare("function", labels={"app": is_db})
    declare("when", when=lambda spec, reason, **_: spec["size"] > 0 and bool(reason))
    declare("when not", when=lambda body, **_: body.spec["size"] > 1)
    declare("all", when=kopf.all_([lambda **_: True, lambda memo, **_: memo == {}]))
    declare("none", when=kopf.none_([lambda **_: True]))
    declare("not", labels={"app": kopf.not_(is_db)})
    declare("value", field="spec.size", value=lambda value, **_: value == 1)
    declare("another value", field="spec.size", value=2)
    thing = example(size=1)
    thing["metadata"]["labels"] = {"app": "db"}
    with simulated(registry, thing) as run:
        assert diary == ["label", "present", "function", "when", "all", "value"]
        assert run.errors() == []


def test_old_and_new_values_are_filters(
    registry: OperatorRegistry, diary: Diary
) -> None:
    def declare(id: str, **filters: Any) -> None:
        kopf.on.update(KIND, id=id, registry=registry, field="spec.size", **filters)(
            lambda **_: diary.append(id)
        )

    declare("from 1", old=1)
    declare("from 2", old=2)
    declare("to 2", new=lambda value, **_: value == 2)
    declare("to none", new=kopf.ABSENT)
    with simulated(registry, example(size=1)) as run:
        run.edit(spec={"size": 2})
        assert diary == ["from 1", "to 2"]
        diary.clear()
        run.edit(spec={"size": None})
        assert diary == ["from 2", "to none"]


def test_an_absent_field_is_a_mark_for_functions_as_in_kopf(
    registry: OperatorRegistry, diary: Diary
) -> None:
    def declare(on: Any, id: str, **filters: Any) -> None:
        on(KIND, id=id, registry=registry, field="spec.size", **filters)(
            lambda **_: diary.append(id)
        )

    declare(kopf.on.create, "absent-before", value=kopf.ABSENT)
    declare(kopf.on.create, "not-None", value=lambda value, **_: value is not None)
    declare(kopf.on.create, "another", value=lambda value, **_: value != 1)
    declare(kopf.on.create, "equal", value=lambda value, **_: value == 1)
    declare(kopf.on.update, "from-any", old=lambda value, **_: value is not None)
    declare(kopf.on.update, "to-any", new=lambda value, **_: bool(value))
    declare(kopf.on.event, "seen", value=lambda value, **_: value is not None)
    thing = example(size=1)
    with simulated(registry, thing) as run:
        assert {*diary} == {"seen", "absent-before", "not-None", "another", "equal"}
        diary.clear()
        run.edit(spec={"size": None})
        assert {*diary} == {"seen", "from-any", "to-any"}
        assert run.errors() == []


def test_combinations_within_combinations_answer_with_any_value(
    registry: OperatorRegistry, diary: Diary
) -> None:
    def declare(id: str, **filters: Any) -> None:
        kopf.on.create(KIND, id=id, registry=registry, **filters)(
            lambda **_: diary.append(id)
        )

    is_paused = lambda spec, **_: spec.get("paused")  # noqa: E731
    starts = lambda value, **_: value and value[0]  # noqa: E731
    declare("runs", when=kopf.all_([lambda spec, **_: spec, kopf.not_(is_paused)]))
    declare("paused", when=kopf.any_([kopf.all_([is_paused])]))
    declare("label", labels={"app": kopf.not_(kopf.any_([kopf.none_([starts])]))})
    thing = example(size=1)
    thing["metadata"]["labels"] = {"app": "db"}
    with simulated(registry, thing) as run:
        assert diary == ["runs", "label"]
        assert run.errors() == []


def test_filters_of_values_get_the_change(
    registry: OperatorRegistry, diary: Diary
) -> None:
    def grows(value: Any, old: Any, new: Any, diff: Any, reason: Any, **_: Any) -> Any:
        if old is not None:
            diary.append((str(reason), old["spec"], new["spec"], tuple(diff[0])))
        return value == 2

    @kopf.on.update(KIND, id="up", registry=registry, field="spec.size", new=grows)
    def up(old: Any, new: Any, **_: Any) -> None:
        diary.append((old, new))

    with simulated(registry, example(size=1)) as run:
        run.edit(spec={"size": 2})
        assert (1, 2) in diary
        change = ("change", ("spec", "size"), 1, 2)
        assert ("update", {"size": 1}, {"size": 2}, change) in diary
        assert run.errors() == []


def test_filters_of_a_field_get_the_change_of_the_whole_object(
    registry: OperatorRegistry, diary: Diary
) -> None:
    def is_other(old: Any, new: Any, diff: Any, **_: Any) -> bool:
        sizes = old and old["spec"]["size"], new["spec"]["size"]
        return sizes == (1, 2) and [item.field for item in diff] == [("spec", "size")]

    @kopf.on.update(KIND, id="a", registry=registry, field="spec.size", when=is_other)
    def resized(old: Any, new: Any, **_: Any) -> None:
        diary.append((old, new))

    kopf.on.create(KIND, id="made", registry=registry)(lambda **_: None)
    with simulated(registry, example(size=1)) as run:
        run.edit(spec={"size": 2}).edit(spec={"size": 3})
        assert diary == [(1, 2)]
        assert run.errors() == []


def test_additions_come_first_in_a_diff(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.update(KIND, id="a", registry=registry)
    def updated(diff: kopf.Diff, **_: Any) -> None:
        diary.append([(str(item.op), item.field[-1]) for item in diff])

    kopf.on.create(KIND, id="made", registry=registry)(lambda **_: None)
    with simulated(registry, example(a=1, b=1)) as run:
        run.edit(spec={"a": 2, "b": None, "z": 1})
        assert diary == [[("add", "z"), ("remove", "b"), ("change", "a")]]


def test_filters_of_values_get_the_event(
    registry: OperatorRegistry, diary: Diary
) -> None:
    def is_seen(value: Any, type: Any, event: Any, **_: Any) -> Any:
        return value == "db" and event["type"] == type == "ADDED"

    @kopf.on.event(KIND, id="seen", registry=registry, labels={"app": is_seen})
    def seen(type: Any, **_: Any) -> None:
        diary.append(type)

    thing = example(size=1)
    thing["metadata"]["labels"] = {"app": "db"}
    with simulated(registry, thing) as run:
        run.edit(spec={"size": 2})
        assert diary == ["ADDED"]
        assert run.errors() == []


async def test_filters_of_admission_get_the_request(registry: OperatorRegistry) -> None:
    def is_forced(value: Any, operation: str, userinfo: Any, **_: Any) -> bool:
        return bool(value) and operation == "DELETE" and userinfo["username"] == "ann"

    @kopf.on.validate(
        KIND,
        id="a",
        registry=registry,
        labels={"app": is_forced},
        when=lambda operation, old, **_: operation and old.spec,
    )
    def validated(**_: Any) -> None: ...

    settings = kopf.OperatorSettings()
    operator = Operator(registry, settings, None, asyncio.get_running_loop())
    (handler,) = module.handlers_of(operator)
    settings.execution.executor.shutdown()
    request = dict.fromkeys(("subresource", "dryrun", "headers", "sslpeer", "new"))
    request |= {"operation": "DELETE", "userinfo": {"username": "ann"}, "diff": None}
    request |= {"old": {"spec": {"size": 1}}, "body": CoreBody(BODY).data}
    ((_, callback),) = handler.filters.labels
    assert callback.fn("db", **request, resource="resource")
    assert handler.filters.when is not None
    assert handler.filters.when.fn(**request, resource="resource")


# ------------------------------------------------------------------ Events by call


def test_handlers_post_events(registry: OperatorRegistry) -> None:
    @kopf.on.create(KIND, id="made", registry=registry)
    def made(body: kopf.Body, **_: Any) -> None:
        kopf.info(body, reason="Made", message="by a thread")

    @kopf.on.create(KIND, id="awaited", registry=registry)
    async def awaited(body: kopf.Body, **_: Any) -> None:
        kopf.warn(body, reason="Awaited", message="by a task")

    with simulated(registry, example()) as run:
        found = {each["reason"]: each for each in run.events()}
        assert found.keys() == {"Made", "Awaited"}
        assert found["Awaited"]["type"] == "Warning"
        assert found["Made"]["involvedObject"]["uid"] == run.get()["metadata"]["uid"]


def test_children_are_adopted_without_naming_the_owner(
    registry: OperatorRegistry, diary: Diary
) -> None:
    @kopf.on.create(KIND, id="made", registry=registry)
    def made(**_: Any) -> None:
        child: dict[str, Any] = {"kind": "Pod"}
        kopf.adopt(child)
        diary.append(child["metadata"])

    with simulated(registry, example()) as run:
        (meta,) = diary
        assert meta["namespace"] == "default"
        assert meta["ownerReferences"][0]["uid"] == run.get()["metadata"]["uid"]


@pytest.mark.parametrize(("operation", "count"), [("CREATE", 1), ("UPDATE", 2)])
async def test_a_review_keeps_the_memo_of_an_object_that_exists(
    registry: OperatorRegistry, diary: Diary, operation: str, count: int
) -> None:
    @kopf.on.validate(KIND, id="a", registry=registry)
    def checked(memo: kopf.Memo, **_: Any) -> None:
        memo.count = memo.get("count", 0) + 1
        diary.append(memo.count)

    settings = kopf.OperatorSettings()
    operator = Operator(registry, settings, None, asyncio.get_running_loop())
    (handler,) = module.handlers_of(operator)
    names = ("subresource", "dryrun", "userinfo", "headers", "sslpeer", "old", "new")
    given = {**dict.fromkeys(names), "diff": (), "resource": "resource"}
    given |= {"body": CoreBody(BODY).data, "operation": operation, "warnings": []}
    for _ in range(2):
        begun = datetime.fromtimestamp(0, UTC)
        await handler.fn(**given, patch=PatchWriter(), started=begun)
    settings.execution.executor.shutdown()
    assert diary == [1, count]


@pytest.mark.parametrize("name", ["validate", "mutate"])
@pytest.mark.parametrize("given", [{}, {"side_effects": False}])
async def test_an_admission_handler_is_called_for_all_requests(
    registry: OperatorRegistry, name: str, given: dict[str, Any]
) -> None:
    getattr(kopf.on, name)(KIND, id="a", registry=registry, **given)(print)
    settings = kopf.OperatorSettings()
    operator = Operator(registry, settings, None, asyncio.get_running_loop())
    (handler,) = module.handlers_of(operator)
    assert handler.webhook is not None
    assert handler.webhook.side_effects
    assert not handler.webhook.spares(is_ending=True, is_own=True)


ERRORS = {
    "errors": kopf.ErrorsMode.TEMPORARY,
    "timeout": 60,
    "retries": 2,
    "backoff": 1,
}


@pytest.mark.parametrize("option", ERRORS)
@pytest.mark.parametrize(
    "declare",
    [
        *(kopf.on.create, kopf.on.update, kopf.on.delete, kopf.on.resume),
        *(kopf.index, kopf.daemon, kopf.timer),
    ],
    ids=lambda declare: declare.__name__,
)
def test_an_operator_starts_with_each_option_about_errors(
    registry: OperatorRegistry, declare: Any, option: str
) -> None:
    more = {"interval": 60} if declare.__name__ == "timer" else {}
    declare(KIND, registry=registry, **{option: ERRORS[option]}, **more)(str)
    with simulated(registry) as run:
        assert not run.errors()


@pytest.mark.parametrize("role", ["create", "event"])
def test_a_fault_of_fnop_is_logged_and_not_tried_again_in_silence(
    role: str,
    registry: OperatorRegistry,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def breaks(*_: Any) -> Any:
        raise NameError("a fault")

    getattr(kopf.on, role)(KIND, id="made", registry=registry)(lambda **_: None)
    monkeypatch.setattr(Operator, "indices", breaks)
    with simulated(registry) as run:
        run.apply(example()).settle(seconds=1)
    (line,) = {each for each in caplog.messages if "fault of fnop" in each}
    assert line.startswith("Handler 'made' cannot be called, for a fault of fnop: Name")


@pytest.mark.parametrize("is_patch", [False, True], ids=["result", "patch"])
@pytest.mark.parametrize("role", ["create", "event"])
def test_a_value_that_is_not_json_costs_no_second_call(
    registry: OperatorRegistry, diary: Diary, role: str, is_patch: bool
) -> None:
    """As with Kopf: a client's object is returned by mistake, and its work is done."""
    uses = {"kept": 1, "lost": object()}

    def made(patch: kopf.Patch, **_: Any) -> Any:
        diary.append("called")
        if is_patch:
            patch.status.update(uses)
        return None if is_patch else uses

    getattr(kopf.on, role)(KIND, id="made", registry=registry)(made)
    with simulated(registry, example()) as run:
        run.settle(3600)
        # An event handler is called for its own write, too.
        assert len(diary) == (2 if role == "event" else 1)
        found = run.status()
        assert (found if is_patch else found["made"]) == {"kept": 1}
        assert run.errors() == []
