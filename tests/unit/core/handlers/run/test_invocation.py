"""Calls of handlers: plans, async and generator handlers, and what is refused."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

import fnop
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.run.arguments import Situation
from fnop.core.handlers.run.invocation import (
    Advance,
    Journal,
    JournalEntry,
    LiveCache,
    advance,
    cancel,
)
from fnop.core.values.body import Body, View
from fnop.core.values.now import Now
from fnop.effects import (
    Answer,
    Applied,
    Conflict,
    Get,
    Missing,
    Outcome,
    Raised,
    Return,
    Sleep,
)
from fnop.effects.wire import digest_of

EXAMPLES = Resource("fnop.dev", "v1", "fnopexamples", "FnopExample")
BODY = Body(
    {
        "apiVersion": "fnop.dev/v1",
        "kind": "FnopExample",
        "metadata": {"name": "x", "namespace": "ns", "uid": "u"},
        "spec": {"size": 1, "nested": {"items": [1]}},
    }
)


def situation(fn: Callable[..., Any], **options: Any) -> Situation:
    registry = Registry()
    fnop.on.create("fnopexamples", registry=registry, id="h", **options)(fn)
    (handler,) = registry.handlers
    return Situation(handler, Settings(), Now(100.0, 1.0), EXAMPLES, BODY, "create")


def drive(fn: Callable[..., Any], *outcomes: Outcome) -> Advance:
    """Drive from the start, answering each effect in turn."""
    journal: Journal = ()
    at, live = situation(fn), LiveCache()
    found = advance(at, journal, live, ("k",))
    for outcome in outcomes:
        assert found.asks is not None, "the handler ended before all answers"
        journal = (*journal, JournalEntry(digest_of(found.asks), outcome, 101.0))
        found = advance(at, journal, live, ("k",))
    live.clear()
    return found


def failure_of(found: Advance) -> str:
    assert found.end is not None
    assert found.end.failure is not None, found
    return f"{found.end.failure.type}: {found.end.failure.message}"


# ------------------------------------------------------------ R2: what a plan is


def test_r2_a_list_of_effects_is_a_plan_and_so_is_an_empty_one() -> None:
    event = drive(lambda: [fnop.event("A"), fnop.patch(status={"a": 1})])
    assert event.end is not None
    assert [effect.kind for effect in event.end.plan] == ["Event", "Patch"]
    empty = drive(lambda: [])
    assert empty.end is not None
    assert empty.end.plan == ()


def test_r2_a_single_effect_is_a_plan() -> None:
    found = drive(lambda: fnop.event("A"))
    assert found.end is not None
    assert [effect.kind for effect in found.end.plan] == ["Event"]


def test_r2_a_plain_value_is_a_result() -> None:
    found = drive(lambda: {"a": 1})
    assert found.end is not None
    assert found.end.plan == (Return({"a": 1}),)


def test_r2_mixing_effects_and_values_is_an_error() -> None:
    assert "mixes effects with other values" in failure_of(
        drive(lambda: [fnop.event("A"), 1])
    )


def test_r2_a_list_as_a_result_needs_the_word() -> None:
    assert "fnop.result([...])" in failure_of(drive(lambda: [1, 2]))
    found = drive(lambda: fnop.result([1, 2]))
    assert found.end is not None
    assert found.end.plan == (Return([1, 2]),)


def test_r2_a_result_that_is_no_json_is_an_error() -> None:
    assert "set is not a JSON value" in failure_of(drive(lambda: {"a": {1}}))


# ------------------------------------------------- R3: no effect is silently lost


def test_r3_an_effect_that_is_dropped_fails_and_names_the_line() -> None:
    def handler() -> None:
        fnop.event("Lost")

    message = failure_of(drive(handler))
    line = handler.__code__.co_firstlineno + 1
    assert f"{__file__}:{line}" in message
    assert "return it, yield it or await it" in message


def test_r3_an_effect_dropped_in_a_conversation_fails_too() -> None:
    async def handler() -> None:
        await fnop.sleep(1)
        fnop.patch(status={"a": 1})

    assert "the Patch built at" in failure_of(drive(handler, Applied({})))


def test_r3_awaited_yielded_and_returned_effects_are_not_lost() -> None:
    async def awaited() -> Any:
        await fnop.sleep(1)
        return fnop.event("A")

    def yielded() -> Iterator[Any]:
        yield fnop.sleep(1)

    for handler in (awaited, yielded):
        found = drive(handler, Applied({}))
        assert found.end is not None
        assert found.end.failure is None


def test_r3_what_raised_anyway_is_reported_as_that() -> None:
    def handler() -> None:
        fnop.event("Lost")
        raise fnop.PermanentError("bad spec")

    assert failure_of(drive(handler)) == "PermanentError: bad spec"


# ------------------------------------------------------------- conversations


async def provision() -> Any:
    secret = await fnop.get("secrets", name="s")
    if secret is None:
        raise fnop.TemporaryError("no secret", delay=5)
    answer = await fnop.call(print, token="u")
    return {"secret": secret.name, "answer": answer}


def generate() -> Generator[Any, Any, Any]:
    secret = yield fnop.get("secrets", name="s")
    answer = yield fnop.call(print, token="u")
    return {"secret": secret.name, "answer": answer}


@pytest.mark.parametrize("handler", [provision, generate])
def test_both_forms_of_a_conversation(handler: Any) -> None:
    found = drive(handler, Applied({"metadata": {"name": "s"}}), Answer([1]))
    assert found.end is not None
    assert found.end.plan == (Return({"secret": "s", "answer": [1]}),)


def test_a_missing_object_answers_none() -> None:
    found = drive(provision, Missing("no such secret"))
    assert found.end is not None
    assert found.end.failure is not None
    assert found.end.failure.temporary == 5


def test_refusals_are_raised_in_the_handler() -> None:
    async def handler() -> Any:
        try:
            await fnop.create(
                {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
            )
        except fnop.Refused as refusal:
            return {"status": refusal.status, "reason": refusal.reason}

    found = drive(handler, Conflict("taken", "AlreadyExists"))
    assert found.end is not None
    assert found.end.plan == (Return({"status": 409, "reason": "AlreadyExists"}),)


def test_what_a_call_raised_is_raised_again() -> None:
    async def handler() -> Any:
        try:
            await fnop.call(print)
        except fnop.CallFailed as problem:
            return problem.type

    found = drive(handler, Raised("KeyError", "'x'"))
    assert found.end is not None
    assert found.end.plan == (Return("KeyError"),)
    assert drive(handler, Raised("TemporaryError", "later", 7.0)).end is not None


def test_sleep_answers_a_fresh_view_with_its_own_time() -> None:
    seen: list[View] = []

    async def handler(spec: Any, now: Any) -> None:
        seen.append(await fnop.sleep(10))

    drive(handler, Applied({"spec": {"size": 2}}))
    assert seen[0].spec["size"] == 2
    assert seen[0].now == 101.0


# ------------------------------------------------------------ R6: read-only views


@pytest.mark.parametrize(
    "change",
    [
        lambda spec: spec.update(a=1),
        lambda spec: spec["nested"].clear(),
        lambda spec: spec["nested"]["items"].append(2),
        lambda spec: spec.__setitem__("size", 2),
    ],
)
def test_r6_a_view_cannot_be_changed(change: Callable[[Any], None]) -> None:
    def handler(spec: Any) -> None:
        change(spec)

    assert "return fnop.patch(...)" in failure_of(drive(handler))


# ------------------------------------------------ R11: determinism of the drive


def journal_of(*pairs: tuple[Any, Outcome]) -> Journal:
    return tuple(
        JournalEntry(digest_of(asked), outcome, 101.0) for asked, outcome in pairs
    )


def test_r11_a_live_conversation_and_a_redriven_one_agree() -> None:
    at = situation(provision)
    journal = journal_of(
        (Get(fnop.target("secrets", name="s")), Applied({"metadata": {"name": "s"}}))
    )
    live, cold = LiveCache(), LiveCache()
    advance(at, (), live, ("k",))
    one = advance(at, journal, live, ("k",))
    other = advance(at, journal, cold, ("k",))
    assert one == other
    live.clear()
    cold.clear()


def test_r11_a_mismatch_on_redrive_fails_and_names_both() -> None:
    async def handler() -> None:
        await fnop.sleep(2)

    journal = journal_of((Sleep(1), Applied({})))
    message = failure_of(advance(situation(handler), journal, LiveCache(), ("k",)))
    assert "not deterministic" in message
    assert "effect 0 is now Sleep" in message
    assert digest_of(Sleep(1)) in message


def test_a_mismatch_on_redrive_quotes_no_field() -> None:
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}

    async def handler() -> None:
        await fnop.create({**manifest, "stringData": {"password": "s3cr3t"}})

    journal = journal_of((Sleep(1), Applied({"data": {"password": "s3cr3t"}})))
    message = failure_of(advance(situation(handler), journal, LiveCache(), ("k",)))
    assert "effect 0 is now Create of secret/s" in message
    assert "s3cr3t" not in message


def test_r11_lines_before_the_tip_are_not_repeated() -> None:
    async def handler(logger: Any) -> None:
        logger.info("before")
        await fnop.sleep(1)
        logger.info("after")

    at, live = situation(handler), LiveCache()
    first = advance(at, (), live, ("k",))
    assert [line.message for line in first.lines] == ["before"]
    journal = journal_of((Sleep(1), Applied({})))
    for cache in (live, LiveCache()):
        second = advance(at, journal, cache, ("k",))
        assert [line.message for line in second.lines] == ["after"]


def test_r11_the_cache_is_keyed_by_the_exact_journal_and_taken_out_on_use() -> None:
    at, live = situation(provision), LiveCache()
    advance(at, (), live, ("k",))
    secret = Get(fnop.target("secrets", name="s"))
    there = journal_of((secret, Applied({"metadata": {"name": "s"}})))
    absent = journal_of((secret, Missing("gone")))
    assert advance(at, there, live, ("k",)).asks is not None
    # The same beginning with another answer: a miss, driven again.
    assert advance(at, absent, live, ("k",)).end is not None
    assert live.drives == {}


def test_r11_an_event_loop_is_never_visible_to_a_pure_handler() -> None:
    async def handler() -> None:
        asyncio.get_running_loop()

    failure = failure_of(drive(handler))
    assert failure.startswith("RuntimeError: no running event loop; ")
    assert "fnop.sleep" in failure
    assert "impure=True" in failure


def test_awaiting_something_else_names_the_door() -> None:
    class Foreign:
        def __await__(self) -> Generator[Any, Any, Any]:
            yield object()

    async def handler() -> None:
        await Foreign()

    assert "goes through fnop.call" in failure_of(drive(handler))


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), SystemExit(3), AssertionError("y"), KeyboardInterrupt("z")],
)
def test_r11_exceptions_and_system_exit_become_failures(error: BaseException) -> None:
    def handler() -> None:
        raise error

    assert failure_of(drive(handler)).startswith(type(error).__name__)


# --------------------------------------------------------------- R16: cancelling


def cancelled(handler: Callable[..., Any], *, warm: bool) -> list[str]:
    at, live = situation(handler), LiveCache()
    if warm:
        advance(at, (), live, ("k",))
    lines, _ = cancel(at, (), live, ("k",))
    assert live.drives == {}
    return [line.message for line in lines if line.message != "begin"]


@pytest.mark.parametrize("warm", [True, False])
def test_r16_a_cancelled_conversation_can_catch_it(warm: bool) -> None:
    async def handler(logger: Any) -> None:
        try:
            await fnop.sleep(100)
        except fnop.Cancelled:
            logger.info("caught")
            raise
        finally:
            logger.info("tidy")

    assert cancelled(handler, warm=warm) == ["caught", "tidy"]


@pytest.mark.parametrize("warm", [True, False])
def test_r16_no_effect_can_be_awaited_in_finally(warm: bool) -> None:
    async def handler() -> None:
        try:
            await fnop.sleep(100)
        finally:
            await fnop.sleep(1)

    (line,) = cancelled(handler, warm=warm)
    assert "asked for Sleep" in line
    assert "on.delete" in line


@pytest.mark.parametrize("warm", [True, False])
def test_r16_a_cancelled_handler_goes_on_with_no_answer(warm: bool) -> None:
    """Not even with the latest answer: its end would be lost."""

    async def handler(logger: Any) -> str:
        try:
            logger.info("called")
            await fnop.sleep(100)
        except fnop.Cancelled:
            logger.info("cancelled")
            raise
        logger.info("woken")
        return "done"

    at, live = situation(handler), LiveCache()
    assert advance(at, (), live, ("k",)).asks is not None
    if not warm:
        live.clear()
    lines, failure = cancel(at, (), live, ("k",))
    assert ([each.message for each in lines], failure) == (["cancelled"], None)
    assert live.drives == {}


# ------------------------------------------------------------------ registration


def test_the_patch_argument_collects() -> None:
    def handler(patch: Any) -> None:
        patch.status["a"]["b"] = 1
        patch.metadata["labels"]["x"] = "y"
        assert patch.spec.get("nothing") is None

    found = drive(handler)
    assert found.end is not None
    assert found.end.patches[0].merge == {
        "status": {"a": {"b": 1}},
        "metadata": {"labels": {"x": "y"}},
    }


def test_the_patch_argument_has_the_labels_of_its_metadata() -> None:
    def handler(patch: Any) -> None:
        patch.metadata.labels["x"] = "y"
        patch.meta.annotations["a"] = "b"
        patch.labels["z"] = None

    found = drive(handler)
    assert found.end is not None
    assert found.end.patches[0].merge == {
        "metadata": {"labels": {"x": "y", "z": None}, "annotations": {"a": "b"}}
    }


def test_what_would_be_lost_of_a_patch_is_refused() -> None:
    def sets(patch: Any) -> None:
        patch.status.phase = "Ready"

    def replaces(patch: Any) -> None:
        patch.status = {"phase": "Ready"}

    def appends(patch: Any) -> None:
        patch.status["hosts"].append("a")

    for handler in (sets, replaces, appends):
        told = failure_of(drive(handler))
        assert "its fields are keys" in told or "write its keys" in told


def test_the_logger_is_used_as_a_standard_one() -> None:
    def handler(logger: Any) -> None:
        logger.log(logging.WARNING, "%s of %d", "one", 2)
        logger.critical("caf\udce9")
        try:
            raise OSError("it is engaged")
        except OSError as problem:
            logger.exception("no answer")
            logger.warning("no answer", exc_info=problem)
        logger.error("nothing", exc_info=True)

    lines = drive(handler).lines
    assert [(line.level, line.message) for line in lines] == [
        ("warning", "one of 2"),
        ("error", "caf\\udce9"),
        ("error", "no answer"),
        ("warning", "no answer"),
        ("error", "nothing"),
    ]
    kinds = [type(line.exception) for line in lines]
    assert kinds == [type(None), type(None), OSError, OSError, type(None)]


def test_what_a_standard_logger_takes_as_extra_are_fields() -> None:
    def handler(logger: Any) -> None:
        logger.info("grown", extra={"size": 3, "of": {"a": [1]}, "by": Path("x")})
        logger.log(logging.INFO, "again", extra=None, stacklevel=2)

    lines = drive(handler).lines
    found = {"size": 3, "of": {"a": [1]}, "by": "x"}
    assert [line.fields for line in lines] == [found, {}]


def test_a_result_that_contains_itself_is_a_failure_of_its_handler() -> None:
    def handler() -> Any:
        found: dict[str, Any] = {}
        found["self"] = found
        return found

    assert "it contains itself" in failure_of(drive(handler))


def test_both_awaiting_and_yielding_is_refused() -> None:
    async def handler() -> AsyncIterator[Any]:
        yield fnop.sleep(1)

    with pytest.raises(fnop.RegistrationError, match="both awaits and yields"):
        situation(handler)
