"""Common slips of authors: each is told in one sentence, with its remedy."""

from __future__ import annotations

import copy
import doctest
import gc
import math
import pickle
import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

import fnop
from fnop.adapters.cluster_client import ObjectProblem, kind_called
from fnop.core.api import resources
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.core.handlers.invocation import failure_of
from fnop.core.handlers.registry import Registry
from fnop.core.peers.lease import Timing
from fnop.effects.builders import wait
from fnop.effects.effects import _BUILT_BY, Execute, Witness
from fnop.interpreters.cluster.kinds.kinds import builtin_registry
from fnop.interpreters.unawaited import watch_coroutines
from fnop.testing import plan_of
from tests.simulations import Scenario, example

KIND = "fnopexamples"


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(resources).failed == 0


def said(slip: Callable[[], Any]) -> str:
    with pytest.raises((TypeError, AttributeError, ValueError)) as caught:
        slip()
    return str(caught.value)


# ----------------------------------------------------------------- a forgotten await


def called(**_: Any) -> None: ...


ASKING: dict[str, Callable[[], Any]] = {
    "get": lambda: fnop.get("pods", name="a"),
    "list": lambda: fnop.list("pods"),
    "random": lambda: fnop.random(8),
    "patch": lambda: fnop.patch(status={}),
    "apply": lambda: fnop.apply(pod()),
    "create": lambda: fnop.create(pod()),
    "adopt": lambda: fnop.adopt(pod()),
    "delete": lambda: fnop.delete("pods", name="a"),
    "sleep": lambda: fnop.sleep(1),
    "call": lambda: fnop.call(called),
    "execute": lambda: Execute(()),
}


def config(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def pod() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}


@pytest.mark.parametrize("name", ASKING)
@pytest.mark.parametrize(
    ("use", "lack"),
    [
        (lambda asked: asked.spec, "has no .spec"),
        (lambda asked: asked.get("spec"), "has no .get"),
        (lambda asked: asked["spec"], "has no ['spec']"),
        (lambda asked: [*asked], "has no items"),
        (lambda asked: "a" in asked, "has no items"),
    ],
)
def test_an_answer_is_there_after_await(
    name: str, use: Callable[[Any], Any], lack: str
) -> None:
    text = said(lambda: use(ASKING[name]()))
    assert text == (
        f"fnop.{name}(...) was not awaited, so it {lack}: write `await fnop.{name}"
        f"(...)` in an async handler, or `yield fnop.{name}(...)` in a generator"
    )


def test_a_daemon_that_forgets_to_await_its_pause_does_not_run_for_ever() -> None:
    async def follow(stopped: Any) -> None:
        while stopped.wait(5):
            pass

    plan = plan_of(follow, {}, reason="daemon")
    assert "stopped.wait(...) was not awaited, so it is neither" in str(plan.failure)


@pytest.mark.parametrize("name", ["get", "list", "random"])
def test_what_is_only_asked_is_not_true(name: str) -> None:
    asked = ASKING[name]()
    assert "is neither true nor false: write `await" in said(lambda: bool(asked))
    assert "has no length: write `await" in said(lambda: len(asked))


READS = {**{name: ASKING[name] for name in ("get", "list", "random")}, "wait": wait}


def reads_in_vain(**_: Any) -> Any:
    return fnop.list("pods")


@pytest.mark.parametrize("name", READS)
def test_what_is_only_asked_is_no_plan(name: str) -> None:
    read = READS[name]
    for handler in (lambda **_: read(), lambda **_: [fnop.event("Made"), read()]):
        text = str(plan_of(handler, example()).failure)
        assert "(...) was not awaited, so it answers nobody: write `await " in text


def test_what_is_only_asked_is_no_plan_of_an_impure_handler() -> None:
    fnop.on.create(KIND, registry=Registry(), impure=True)(reads_in_vain)
    text = str(plan_of(reads_in_vain, example()).failure)
    assert "fnop.list(...) was not awaited, so it answers nobody" in text


def listing() -> Any:
    yield fnop.list("pods")


AWAIT = "coroutine is not a JSON value; it was not awaited; write `await` before it"
RAISE = "PermanentError is not a JSON value; it is an error: write `raise` before it"
RETURNED: dict[str, tuple[Callable[[], Any], str]] = {
    "a coroutine": (lambda: helper(), f"Return.value: {AWAIT}"),
    "several": (lambda: [helper(), helper()], f"the plan[0]: {AWAIT}"),
    "one in a plan": (lambda: [fnop.event("A"), helper()], f"the plan[0]: {AWAIT}"),
    "in a mapping": (lambda: {"a": [helper()], "b": helper()}, f"a[0]: {AWAIT}"),
    "a generator": (lambda: listing(), "generator is not a JSON value; write `yield"),
    "an error": (lambda: fnop.PermanentError("x"), f"Return.value: {RAISE}"),
    "an error's class": (lambda: fnop.PermanentError, "write `raise` before it"),
    "a function": (lambda: fnop.again, "it is a function: call it, as in again(...)"),
    "a class": (lambda: dict, "type is not a JSON value; use str, int"),
}


@pytest.mark.parametrize("name", RETURNED)
def test_what_is_no_answer_is_told_with_its_remedy(name: str) -> None:
    """Python warns of no coroutine that the error has told of: it would fail this."""
    make, sentence = RETURNED[name]
    assert sentence in str(plan_of(lambda **_: make(), example()).failure)


def assigned(patch: Any, *path: str) -> None:
    for name in path[:-1]:
        patch = getattr(patch, name)
    setattr(patch, path[-1], {"x": 1})


def deleted(patch: Any) -> None:
    del patch.spec["size"]


PATCHED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "the status": (
        lambda patch: assigned(patch, "status"),
        "the status of a patch is not assigned as a whole: write its keys, as in "
        "patch.status['key'] = ..., or patch.status.update(...)",
    ),
    "labels": (
        lambda patch: assigned(patch, "metadata", "labels"),
        "or patch.labels.update(...)",
    ),
    "a field of the status": (
        lambda patch: assigned(patch, "status", "phase"),
        "a patch has no attribute 'phase': its fields are keys",
    ),
    "deleted": (
        deleted,
        "does not write 'size'; to remove it from the object, set it to None",
    ),
    "popped": (lambda patch: patch.spec.pop("size"), "set it to None"),
}


@pytest.mark.parametrize("name", PATCHED)
def test_a_patch_is_written_by_its_keys(name: str) -> None:
    slip, sentence = PATCHED[name]

    def handle(patch: Any, **_: Any) -> None:
        slip(patch)

    assert sentence in str(plan_of(handle, example(size=1)).failure)


def test_what_was_written_to_a_patch_can_be_taken_back() -> None:
    def handle(patch: Any, **_: Any) -> None:
        patch.status.update({"a": 1, "b": 2, "c": 3})
        del patch.status["a"]
        assert patch.status.pop("b") == 2
        assert patch.status.pop("zzz", None) is None

    plan = plan_of(handle, example())
    assert plan.failure is None
    assert plan.patched == {"status": {"c": 3}}


def test_what_is_done_may_be_told_from_none() -> None:
    plan = [fnop.patch(status={}), None, fnop.event("Made")]
    assert [each.kind for each in filter(None, plan)] == ["Patch", "Event"]


def test_an_effect_without_an_answer_has_none() -> None:
    event: Any = fnop.event("Made")
    assert said(lambda: event.spec) == "'Event' object has no attribute 'spec'"


@pytest.mark.parametrize("name", ASKING)
def test_effects_are_still_values(name: str) -> None:
    asked = ASKING[name]()
    assert pickle.loads(pickle.dumps(asked)) == asked
    assert copy.deepcopy(asked) == copy.copy(asked) == asked
    assert {asked: 1}[ASKING[name]()] == 1
    assert not hasattr(asked, "__array__")
    assert asked.kind not in _BUILT_BY


def test_the_slip_is_told_where_it_is_made() -> None:
    def create(spec: Any) -> Any:
        secret: Any = fnop.get("secrets", name="a")
        return {"keys": sorted(secret["data"])}

    plan = plan_of(create, {})
    assert "fnop.get(...) was not awaited, so it has no ['data']" in str(plan.failure)


async def helper() -> int:
    return 1


@pytest.mark.parametrize(
    "build",
    [
        lambda value: fnop.patch(status={"a": value}),
        lambda value: fnop.result([value]),
        lambda value: fnop.call(called, a=value),
        lambda value: fnop.remember(a=value),
    ],
)
def test_what_was_not_awaited_is_no_part_of_an_effect(build: Any) -> None:
    text = said(lambda: build(fnop.get("pods", name="a")))
    assert text.endswith(
        "Get is not a JSON value; it was not awaited; write `await` "
        "before it, and use its answer"
    )
    forgotten = helper()
    assert "coroutine is not a JSON value; it was not awaited" in said(
        lambda: build(forgotten)
    )
    forgotten.close()


# ---------------------------------------- R3: a helper's coroutine that is dropped


async def make_child() -> None:
    await fnop.create(config("a"))


make: Any = make_child  # no type checker is to find the slips


def drops_it() -> None:
    make()


async def drops_it_before_an_answer(**_: Any) -> None:
    make()
    await fnop.sleep(1)


async def drops_it_after_an_answer(**_: Any) -> None:
    await fnop.sleep(1)
    make()


async def keeps_it_to_the_end(**_: Any) -> None:
    kept = make()
    await fnop.sleep(1)
    assert kept


async def drops_it_in_a_helper(**_: Any) -> None:
    async def helper() -> None:
        make()

    await helper()


def drops_it_in_a_plan(**_: Any) -> Any:
    drops_it()
    return fnop.event("Made")


def drops_it_in_a_generator(**_: Any) -> Any:
    make()
    yield fnop.sleep(1)


DROPPING = [
    drops_it_before_an_answer,
    drops_it_after_an_answer,
    keeps_it_to_the_end,
    drops_it_in_a_helper,
    drops_it_in_a_plan,
    drops_it_in_a_generator,
]


@pytest.mark.parametrize("handler", DROPPING)
def test_r3_a_coroutine_that_nobody_awaits_fails_the_attempt(handler: Any) -> None:
    registry = Registry()
    fnop.on.create(KIND, registry=registry, id="create", retries=2, backoff=1)(handler)
    run = Scenario(registry, [example()])
    run.settle()
    assert run.objects("configmaps") == []
    first, second = (say.message for say in run.said if say.level == "error")
    for line in (first, second):
        assert f"make_child(...) at {__file__}:" in line, "told each time, and where"
        assert (
            "was not awaited, so it has done nothing: write `await make_child(" in line
        )
    assert "make_child(...) at" in str(plan_of(handler, example()).failure)


def test_r3_a_coroutine_is_missed_as_often_as_a_conversation_is_told_anew() -> None:
    """A conversation that is let go of halfway has yet to await what it keeps."""
    registry = Registry()

    @fnop.on.create(KIND, registry=registry)
    async def create(**_: Any) -> None:
        later = make()
        await fnop.sleep(5)
        await later

    run = Scenario(registry, [example()])
    run.wait(2)
    run.machine.close()  # as where the operator ends
    run.settle()
    assert [each["metadata"]["name"] for each in run.objects("configmaps")] == ["a"]
    assert not [say for say in run.said if say.level == "error"]


def test_r3_what_was_raised_is_told_before_what_was_dropped() -> None:
    async def handler() -> None:
        make()
        raise fnop.PermanentError("bad spec")

    assert str(plan_of(handler, example()).failure) == "PermanentError: bad spec"


def test_r3_a_coroutine_of_somebody_else_is_warned_of_by_python() -> None:
    """One that the garbage collector finds within a drive, and one outside of all."""
    watch_coroutines()

    def handler() -> None:
        knot: list[Any] = []
        knot.append((knot, make()))
        del knot
        gc.collect(0)  # it has just been made

    with pytest.warns(RuntimeWarning, match="'make_child' was never awaited"):
        assert plan_of(handler, example()).failure is None
    with pytest.warns(RuntimeWarning, match="'make_child' was never awaited"):
        make()


def test_a_daemon_that_asks_can_be_stopped() -> None:
    """The core looks at what is asked, and must not ask whether it is true."""
    registry, ended = Registry(), []

    @fnop.daemon(KIND, registry=registry)
    async def follow(stopped: Any, **_: Any) -> None:
        while not stopped:
            await fnop.get(KIND, name="example-1")
            await fnop.sleep(1)
        ended.append(stopped.reason)

    run = Scenario(registry, [example()])
    run.wait(5)
    run.delete(KIND)
    run.wait(5)
    assert ended == ["resource_deleted"]
    assert not [say.message for say in run.said if say.level == "error"]


# ------------------------------------------------------------ arguments by their places


@pytest.mark.parametrize(
    ("slip", "sentence"),
    [
        (
            lambda: get("pod", "x"),
            "give 'x' by its name, as in fnop.get('pod',",
        ),
        (lambda: get("pod", "x"), "fnop.get('pod', name='x')"),
        (lambda: get("pod", "x", "ns"), "give 'x', 'ns' by its name"),
        (lambda: listed("pods", "ns"), "fnop.list('pods', namespace='ns')"),
        (lambda: delete("pods", "x"), "fnop.delete('pods', name='x')"),
        (lambda: delete("pods"), "say which of the pods to delete, as in fnop.delete("),
        (lambda: target("pods", "x"), "fnop.target('pods', name='x')"),
        (lambda: call(called, 1), "give 1 by its name, as in fnop.call("),
        (lambda: remember({"a": 1}), "give {'a': 1} by its name, as in"),
        (lambda: log("info", "text", 5), "fnop.log('info', 'text', size=...)"),
    ],
)
def test_arguments_are_named(slip: Callable[[], Any], sentence: str) -> None:
    assert sentence in said(slip)


get: Any = fnop.get
any_event: Any = fnop.event
info: Any = fnop.info
warn: Any = fnop.warn
exception: Any = fnop.exception
adopt: Any = fnop.adopt
patch: Any = fnop.patch
label: Any = fnop.label
append_owner_reference: Any = fnop.append_owner_reference
remove_owner_reference: Any = fnop.remove_owner_reference
harmonize_naming: Any = fnop.harmonize_naming
adjust_namespace: Any = fnop.adjust_namespace
listed: Any = fnop.list
delete: Any = fnop.delete
target: Any = fnop.target
call: Any = fnop.call
remember: Any = fnop.remember
log: Any = fnop.log


# -------------------------------------------------------------------------- settings


def test_settings_are_replaced() -> None:
    settings: Any = fnop.Settings()

    def setting(name: str, value: Any) -> Callable[[], None]:
        return lambda: setattr(settings, name, value)

    assert said(setting("posting_level", "info")) == (
        "settings are immutable; a startup handler returns others: "
        "return settings.replace(posting_level='info')"
    )
    assert said(setting("postng_level", 5)) == (
        "there is no setting 'postng_level'; did you mean 'posting_level'?"
    )
    assert "there is no setting 'posting'" in said(lambda: settings.posting.level)
    assert settings == fnop.Settings()


def test_settings_are_named_as_they_are() -> None:
    made: Any = fnop.Settings
    assert "did you mean 'operator'?" in said(lambda: made(oprator="a"))
    assert "there is no setting 'x'; there are operator, " in said(lambda: made(x=1))
    assert "such as ('default',)" in said(lambda: made(namespaces="default"))
    replaced: Any = fnop.Settings().replace
    assert "did you mean 'operator'?" in said(lambda: replaced(oprator="a"))


# ------------------------------------------------------------------- mistyped kinds

SERVED = Catalogue(
    (
        Resource("", "v1", "pods", "Pod", "pod", shortcuts=("po",)),
        Resource("", "v1", "configmaps", "ConfigMap", "configmap", shortcuts=("cm",)),
        Resource("apps", "v1", "deployments", "Deployment", "deployment"),
        Resource("a.io", "v1", "things", "Thing", "thing"),
        Resource("b.io", "v1", "things", "Thing", "thing"),
    )
)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("pds", "serves no kind 'pds' (did you mean 'pods'?)"),
        ("confgmap", "serves no kind 'confgmap' (did you mean 'configmaps'?)"),
        ("deployments.app", "(did you mean 'deployments.apps'?)"),
        ("deployments.v2.apps", "(did you mean 'deployments.apps'?)"),
        ("Deploymnet", "(did you mean 'deployments.apps'?)"),
        ("zzz", "the API server serves no kind 'zzz'"),
        (
            "things",
            "'things' is ambiguous: things.v1.a.io, things.v1.b.io; name the gr",
        ),
        ("", "'' is not a kind: the name of a kind must be a non-empty string"),
    ],
)
def test_a_mistyped_kind_is_told_what_it_is_like(name: str, sentence: str) -> None:
    assert SERVED.lookup(name) is None
    assert sentence in SERVED.absence(name)
    assert SERVED.absence("zzz", "it", "; see").endswith("it serves no kind 'zzz'; see")


@pytest.mark.parametrize(
    ("version", "kind", "sentence"),
    [
        ("v1", "Deployment", "no Deployment of v1 (did you mean that of apps/v1?)"),
        ("v1", "pod", "serves no pod of v1 (did you mean Pod of v1?)"),
        ("v1", "ConfgMap", "(did you mean ConfigMap of v1?)"),
        ("v1", "Zzz", "the API server serves no Zzz of v1"),
    ],
)
def test_a_manifest_of_no_kind_is_told_what_it_is_like(
    version: str, kind: str, sentence: str
) -> None:
    manifest = {"apiVersion": version, "kind": kind}
    assert SERVED.of_manifest(manifest) is None
    assert sentence in SERVED.absence_of(manifest)


def test_a_mistyped_kind_is_told_to_its_handler() -> None:
    registry, told = Registry(), []

    @fnop.on.create(KIND, registry=registry)
    async def create(**_: Any) -> None:
        wrong = {**pod(), "apiVersion": "apps/v1"}
        for effect in (fnop.get("secrts", name="a"), fnop.create(wrong)):
            try:
                await effect
            except fnop.Refused as problem:
                told.append(str(problem))

    @fnop.on.create("fnopexmples", registry=registry)
    def never(**_: Any) -> None: ...

    @fnop.on.event("pods", owner="fnopexampels", registry=registry)
    def owned(**_: Any) -> None: ...

    @fnop.on.event("pods", owner=("apps", "replicaset"), registry=registry, id="made")
    def found(**_: Any) -> None: ...

    @fnop.on.event("pods", owner="zzz", registry=registry)
    def nowhere(**_: Any) -> None: ...

    run = Scenario(registry, [example()])
    run.settle()
    assert told == [
        "the API server serves no kind 'secrts' (did you mean 'secrets'?)",
        "the API server serves no Pod of apps/v1 (did you mean that of v1?)",
    ]
    (line,) = [line for line in run.lines if "fnopexmples" in line]
    assert line.endswith("installed, or did you mean 'fnopexamples.fnop.dev'?")
    (line,) = [line for line in run.lines if "fnopexampels" in line]
    assert line.endswith("such owners; did you mean 'fnopexamples.fnop.dev'?")
    (line,) = [line for line in run.lines if "'zzz'" in line]
    assert line.endswith("such owners")
    assert not [line for line in run.lines if "replicaset" in line]


MARKED: dict[str, Callable[[Any], Any]] = {
    "labels": lambda value: fnop.patch(labels={"n": value}),
    "annotations": lambda value: fnop.patch(annotations={"n": value}),
    "metadata": lambda value: fnop.patch(metadata={"annotations": {"n": value}}),
    "of another": lambda value: fnop.patch(pod(), labels={"n": value}),
    "created": lambda value: fnop.create(marked(value)),
    "applied": lambda value: fnop.apply([marked(value)]),
    "adopted": lambda value: fnop.adopt(marked(value)),
}


def marked(value: Any) -> dict[str, Any]:
    return {**pod(), "metadata": {"name": "a", "labels": {"n": value}}}


@pytest.mark.parametrize("value", [5, True, 1.5, {"a": "b"}])
@pytest.mark.parametrize("name", MARKED)
def test_labels_and_annotations_are_texts(name: str, value: Any) -> None:
    text = said(lambda: MARKED[name](value))
    assert text.endswith(f"'n' must be a text, not {value!r}; write str(...)")
    assert MARKED[name]("5")
    assert MARKED[name](None), "it is removed, or left out"


def test_what_a_patch_writes_of_labels_is_texts() -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, retries=1)
    def create(patch: Any, **_: Any) -> None:
        patch.metadata["annotations"] = {"x": 1}

    run = Scenario(registry, [example()])
    run.settle()
    (line,) = [say.message for say in run.said if say.level == "error"]
    assert "patch: the annotation 'x' must be a text, not 1; write str(...)" in line
    assert "a mapping of texts, not 'a'" in said(
        lambda: fnop.patch(metadata={"labels": "a"})
    )


def test_a_refusal_does_not_repeat_the_whole_object() -> None:
    """Kubernetes quotes it where a patch makes an object that cannot be decoded."""
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, retries=1)
    async def create(**_: Any) -> None:
        steps = [{"op": "add", "path": "/metadata/labels", "value": {"n": 5}}]
        await fnop.patch(json=steps)

    run = Scenario(registry, [example(text='a "long" one ' * 300)])
    run.settle()
    (line,) = [say.message for say in run.said if say.level == "error"]
    assert 'Invalid value: "{' in line
    assert len(line) < 500


def test_an_object_that_the_server_would_name_is_not_created() -> None:
    """A repeated handler could not find it, and would make another one."""
    registry = Registry()
    unnamed = {**config(""), "metadata": {"generateName": "x-"}}

    @fnop.on.create(KIND, registry=registry, retries=3, backoff=1)
    async def create(**_: Any) -> None:
        await fnop.create(unnamed)

    run = Scenario(registry, [example()])
    run.settle()
    assert run.objects("configmaps") == []
    assert any("generateName would make a new object" in line for line in run.lines)
    for build in (fnop.create, fnop.apply):
        assert said(partial(build, unnamed)).endswith("the same at every run")
        assert said(partial(build, {**pod(), "metadata": {}})).startswith(
            f"{build.__name__.title()}: the manifest has no metadata.name"
        )
    both = {**pod(), "metadata": {"name": "a", "generateName": "x-"}}
    assert fnop.create(both).manifest == both, "the name counts"


def test_a_mistyped_kind_is_told_to_a_test() -> None:
    from fnop.testing import Simulation

    with pytest.raises(AssertionError, match=re.escape("did you mean 'configmaps'?")):
        Simulation(Registry()).get("confgmaps/a")


def test_a_mistyped_kind_is_told_to_a_client_of_the_simulated_cluster() -> None:
    for name, meant in (("deploymnts", "deployments.apps"), ("pdo", "pods")):
        with pytest.raises(ObjectProblem, match=f"no kind {name} .*mean '{meant}'"):
            kind_called(builtin_registry(), name)
    with pytest.raises(ObjectProblem, match=r"has no kind zzz$"):
        kind_called(builtin_registry(), "zzz")


@pytest.mark.parametrize("how", ["wait", "sleep"])
def test_a_forgotten_await_in_a_daemon_s_loop_ends_it_with_its_line(how: str) -> None:
    registry = Registry()

    @fnop.daemon("fnopexamples", registry=registry, retries=1)
    async def watch(stopped: Any, **_: Any) -> None:
        while not stopped:
            if how == "wait":
                stopped.wait(10)
            else:
                fnop.sleep(10)

    run = Scenario(registry, [example()])
    run.wait(5)
    (line,) = [say.message for say in run.said if say.level == "error"]
    assert "10000 effects were built and not awaited" in line
    assert "test_slips.py:" in line


def test_a_daemon_that_awaits_each_effect_goes_on() -> None:
    registry = Registry()
    calls: list[int] = []

    @fnop.daemon("fnopexamples", registry=registry)
    async def watch(**_: Any) -> None:
        while True:
            await fnop.sleep(1)
            calls.append(1)

    run = Scenario(registry, [example()])
    witness = Witness.UNASKED_MAX
    try:
        Witness.UNASKED_MAX = 5
        run.wait(30)
    finally:
        Witness.UNASKED_MAX = witness
    assert len(calls) > 20


def test_a_timer_that_always_finds_itself_overdue_leaves_a_moment_to_others() -> None:
    registry = Registry()
    calls: list[int] = []

    @fnop.timer("fnopexamples", registry=registry, interval=lambda **_: -5)
    def tick(**_: Any) -> None:
        calls.append(1)

    run = Scenario(registry, [example()])
    run.wait(10)
    assert len(calls) <= 11


# ------------------------------------------------------------------- durations


def declared(**options: Any) -> None:
    @fnop.timer(KIND, registry=Registry(), **options)
    def tick(**_: Any) -> None: ...


TIMED: dict[str, Callable[[Any], Any]] = {
    "TemporaryError.delay": lambda it: fnop.TemporaryError("not yet", delay=it),
    "Sleep.seconds": lambda it: fnop.sleep(it),
    "Again.after": lambda it: fnop.again(it),
    "Wait.seconds": lambda it: wait(it),
    "timeout=": lambda it: declared(timeout=it),
    "backoff=": lambda it: declared(backoff=it),
    "interval=": lambda it: declared(interval=it),
    "idle=": lambda it: declared(idle=it),
    "initial_delay=": lambda it: declared(initial_delay=it),
    "cancellation_timeout=": lambda it: declared(cancellation_timeout=it),
    "Backoff.first": lambda it: fnop.Backoff(first=it),
    "Backoff.most": lambda it: fnop.Backoff(most=it),
    "default_backoff=": lambda it: fnop.Settings(default_backoff=it),
    "rediscovery_seconds=": lambda it: fnop.Settings(rediscovery_seconds=it),
    "election: retry_seconds": lambda it: Timing(retry_seconds=it),
}
NO_DURATIONS = {
    "nan": (math.nan, "to ten years, not nan"),
    "infinite": (math.inf, "to ten years, not inf"),
    "below zero": (-5, "to ten years, not -5"),
    "a text": ("x", "not 'x'"),
    "true": (True, "not True"),
    "a timedelta": (
        timedelta(seconds=5),
        "not a timedelta: write its .total_seconds()",
    ),
}


@pytest.mark.parametrize("place", TIMED)
@pytest.mark.parametrize("name", NO_DURATIONS)
def test_what_is_no_duration_is_refused_where_it_is_given(
    place: str, name: str
) -> None:
    value, sentence = NO_DURATIONS[name]
    text = said(lambda: TIMED[place](value))
    if (place, name) == ("default_backoff=", "a text"):
        assert "a number of seconds, or fnop.Backoff" in text
        return
    assert f"{place} must be a number of seconds" in text
    assert text.endswith(sentence)


@pytest.mark.parametrize("place", TIMED)
def test_a_duration_is_taken(place: str) -> None:
    TIMED[place](1)


@pytest.mark.parametrize("value", [math.nan, "2"])
def test_a_backoff_grows_by_a_number(value: Any) -> None:
    assert "grows by a factor" in said(lambda: fnop.Backoff(factor=value))


@pytest.mark.parametrize("interval", [0, 1e-9])
def test_a_timer_that_lets_no_time_pass_is_refused(interval: float) -> None:
    text = said(lambda: declared(interval=interval))
    assert "interval= must be a number of seconds from 0.05 to ten years" in text


@pytest.mark.parametrize("sharp", [False, True])
@pytest.mark.parametrize("interval", [0, 1e-9, 0.01])
def test_a_timer_whose_function_lets_no_time_pass_leaves_a_moment_to_others(
    interval: float, sharp: bool
) -> None:
    registry, calls = Registry(), []

    @fnop.timer(KIND, registry=registry, interval=lambda **_: interval, sharp=sharp)
    def tick(**_: Any) -> None:
        calls.append(1)

    Scenario(registry, [example()]).wait(2)
    assert 2 <= len(calls) <= 41


@pytest.mark.parametrize("retries", [0, 0.5, math.nan, "3", True, -1])
def test_attempts_are_counted_in_whole_numbers(retries: Any) -> None:
    text = said(lambda: declared(retries=retries))
    assert "retries= must be a number of attempts, whole and at least one" in text


def test_an_error_of_a_class_of_its_own_has_the_usual_delay() -> None:
    class NotReady(fnop.TemporaryError):
        def __init__(self, what: str) -> None:
            Exception.__init__(self, f"{what} is not ready")

    failure = failure_of(NotReady("it"))
    assert (str(failure), failure.temporary) == ("NotReady: it is not ready", 60.0)


# ------------------------------------------------- forms that are known from elsewhere

HANDLED = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "uid": "u"}}
ADOPTED = "fnop.adopt makes the handled object the owner: leave the owner out; "
FORMS: dict[str, tuple[Callable[[], Any], str]] = {
    **{
        f"{name} about a body": (
            partial(report, HANDLED, reason="Made", message="it is there"),
            f"fnop.{name} takes a reason and a message in words, and is about the "
            f"handled object: write fnop.{name}(reason, message), with about=... for "
            "another object",
        )
        for name, report in {
            "event": any_event,
            "info": info,
            "warn": warn,
            "exception": exception,
        }.items()
    },
    "event of a type": (
        lambda: any_event(HANDLED, type="Normal", reason="Made"),
        "write fnop.event(reason, message)",
    ),
    "info about a third": (
        lambda: info("Made", "it is there", HANDLED),
        "with about=... for another object",
    ),
    "adopt for an owner": (lambda: adopt(pod(), owner=HANDLED), ADOPTED),
    "adopt for an owner by place": (lambda: adopt(pod(), HANDLED), ADOPTED),
    "adopt by force": (lambda: adopt(pod(), forced=True), "leave forced= out"),
    "adopt strictly": (lambda: adopt(pod(), strict=True), "leave strict= out"),
    "adopted and changed": (
        lambda: adopt(pod()).__setitem__("spec", {}),
        "fnop.adopt(...) cannot be changed once it is built: "
        "change the manifest before",
    ),
    "created and taken from": (
        lambda: fnop.create(pod()).__delitem__("spec"),
        "fnop.create(...) cannot be changed once it is built",
    ),
    "a patch of a mapping": (
        lambda: patch(HANDLED, {"status": {}}),
        "by its name, as in fnop.patch(..., status=...)",
    ),
    "labels of nobody": (
        lambda: label(pod()),
        "give labels, as in child = fnop.label(child, labels)",
    ),
    "an owner of nobody": (
        lambda: append_owner_reference(pod()),
        "give owner, as in child = fnop.append_owner_reference(child, body)",
    ),
    "no owner": (
        lambda: remove_owner_reference(pod()),
        "give owner, as in child = fnop.remove_owner_reference(child, body)",
    ),
    "a name of nobody": (
        lambda: harmonize_naming(pod()),
        "give name, as in child = fnop.harmonize_naming(child, name)",
    ),
    "a namespace of nobody": (
        lambda: adjust_namespace(pod()),
        "give namespace, as in child = fnop.adjust_namespace(child, namespace)",
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_that_is_known_from_elsewhere_is_told_what_to_write(name: str) -> None:
    form, sentence = FORMS[name]
    text = said(form)
    assert sentence in text
    assert "argument" not in text


def change_all(memo: Any) -> None:
    memo |= {"x": 1}


MEMOS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "an item": (lambda memo: memo.__setitem__("x", 1), "fnop.remember(x=...)"),
    "an attribute": (lambda memo: setattr(memo, "x", 1), "fnop.remember(x=...)"),
    "no identifier": (
        lambda memo: memo.__setitem__("x-y", 1),
        "fnop.remember(**{'x-y': ...})",
    ),
    "no item": (lambda memo: memo.__delitem__("x"), "fnop.remember(x=...), or None"),
    "no attribute": (lambda memo: delattr(memo, "x"), "fnop.remember(x=...), or None"),
    "a default": (lambda memo: memo.setdefault("x", []), "fnop.remember(x=...)"),
    "taken out": (lambda memo: memo.pop("x"), "fnop.remember(x=...)"),
    "several": (lambda memo: memo.update(x=1), "fnop.remember(x=...)"),
    "a mapping": (lambda memo: memo.update({"x": 1}), "fnop.remember(key=...)"),
    "merged": (change_all, "fnop.remember(key=...)"),
    "none": (lambda memo: memo.clear(), "fnop.remember(key=...)"),
    "within": (lambda memo: memo["list"].append(1), "fnop.remember(...)"),
}


@pytest.mark.parametrize("name", MEMOS)
def test_a_memo_is_changed_by_remembering(name: str) -> None:
    slip, sentence = MEMOS[name]

    @fnop.on.create(KIND, registry=Registry())
    def handle(memo: Any, **_: Any) -> None:
        slip(memo)

    text = str(plan_of(handle, example(), memo={"x": 1, "list": []}).failure)
    assert sentence in text
    assert "memo" in text
