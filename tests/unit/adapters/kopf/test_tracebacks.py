"""The tracebacks of an operator's errors: they begin at the author's own line."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from fnop import kopf
from fnop.adapters.kopf.commands.planning import author_loop
from fnop.adapters.kopf.declaring.registry import OperatorRegistry
from fnop.adapters.kopf.declaring.settings import OperatorSettings
from fnop.adapters.kopf.running import logs
from fnop.adapters.kopf.running.handlers import run_activity
from fnop.adapters.kopf.running.operator import Operator
from tests.unit.adapters.kopf.simulated import KIND, example, simulated

Declare = Callable[[OperatorRegistry, Callable[..., Any]], Any]


def breaks(**_: Any) -> Any:
    raise LookupError("broken")


async def breaks_later(**_: Any) -> Any:
    await asyncio.sleep(0)
    raise LookupError("broken")


def chained(**_: Any) -> Any:
    try:
        breaks()
    except LookupError as problem:
        raise OSError("outer") from problem


def ends_the_process(**_: Any) -> Any:
    raise SystemExit(3)


def stops_an_iteration(**_: Any) -> Any:
    raise StopIteration("none")


async def grouped(**_: Any) -> Any:
    async with asyncio.TaskGroup() as group:
        group.create_task(breaks_later())
        group.create_task(kopf.execute(fns={"part": breaks}))


class Diary(logging.Handler):
    """Notes the tracebacks as any log handler of an operator would print them."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            text = logging.Formatter().formatException(record.exc_info)
            self.texts.append(text)


@pytest.fixture
def printed() -> Iterator[list[str]]:
    """The tracebacks in Kopf's log."""
    found, logger = Diary(), logging.getLogger("kopf")
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(found)
    yield found.texts
    logger.removeHandler(found)
    logger.setLevel(level)


def tracebacks(text: str) -> Iterator[list[str]]:
    """The frames of each traceback in a text, which may have causes and groups."""
    for part in text.split("Traceback (most recent call last):")[1:]:
        lines = [line.strip(" |+-") for line in part.splitlines()]
        yield [line for line in lines if line.startswith("File ")]


def parts(registry: OperatorRegistry, fn: Callable[..., Any]) -> None:
    @kopf.on.create(KIND, registry=registry)
    def parent(**_: Any) -> None:
        kopf.register(fn, id="part")


def in_a_filter(registry: OperatorRegistry, fn: Callable[..., Any]) -> None:
    @kopf.on.create(KIND, when=fn, registry=registry)
    def made(**_: Any) -> None: ...


def in_a_value(registry: OperatorRegistry, fn: Callable[..., Any]) -> None:
    def value(_: Any, **kwargs: Any) -> Any:
        return fn(**kwargs)

    @kopf.on.create(KIND, field="spec.duration", value=value, registry=registry)
    def made(**_: Any) -> None: ...


def in_a_label(registry: OperatorRegistry, fn: Callable[..., Any]) -> None:
    def label(_: Any, **kwargs: Any) -> Any:
        return fn(**kwargs)

    @kopf.on.event(KIND, labels={"somelabel": label}, registry=registry)
    def seen(**_: Any) -> None: ...


def declared(decorator: Callable[..., Any], **options: Any) -> Declare:
    def declare(registry: OperatorRegistry, fn: Callable[..., Any]) -> Any:
        return decorator(KIND, registry=registry, **options)(fn)

    return declare


FILTERS: dict[str, Declare] = {
    "when": in_a_filter,
    "value": in_a_value,
    "labels": in_a_label,
}
HANDLERS: dict[str, Declare] = {
    "create": declared(kopf.on.create),
    "event": declared(kopf.on.event),
    "field": declared(kopf.on.field, field="spec"),
    "daemon": declared(kopf.daemon),
    "timer": declared(kopf.timer, interval=600),
    "index": declared(kopf.index),
    "sub-handler": parts,
}
CASES = [
    *((name, HANDLERS[name], breaks) for name in ("create", "event", "field")),
    *((name, HANDLERS[name], breaks) for name in ("index", "sub-handler")),
    *((name, declare, breaks) for name, declare in FILTERS.items()),
    *((name, declare, breaks_later) for name, declare in HANDLERS.items()),
    *(("create", HANDLERS["create"], fn) for fn in (chained, grouped)),
    *(
        ("create", HANDLERS["create"], fn)
        for fn in (ends_the_process, stops_an_iteration)
    ),
]


@pytest.mark.parametrize(
    ("name", "declare", "fn"),
    CASES,
    ids=[f"{name}-{fn.__name__}" for name, _, fn in CASES],
)
def test_it_begins_at_the_line_of_the_author(
    name: str,
    declare: Declare,
    fn: Callable[..., Any],
    registry: OperatorRegistry,
    printed: list[str],
) -> None:
    declare(registry, fn)
    with simulated(registry) as world:
        world.apply(example()).settle(seconds=1)
        for say in world.said:
            logs.write(say, world.operator.settings)
    assert printed
    for text in printed:
        for frames in tracebacks(text):
            assert __file__ in frames[0], text
    assert any("broken" in text or fn in ENDS for text in printed)


ENDS = (ends_the_process, stops_an_iteration)


def test_those_of_causes_and_groups_begin_there_too(
    registry: OperatorRegistry, printed: list[str]
) -> None:
    declared(kopf.on.create, id="chained")(registry, chained)
    declared(kopf.on.create, id="grouped")(registry, grouped)
    with simulated(registry) as world:
        world.apply(example()).settle(seconds=1)
    texts = {"outer" in text: text for text in printed}
    assert len([*tracebacks(texts[True])]) == 2
    assert len([*tracebacks(texts[False])]) == 2


def wants_too_little(spec: Any) -> None: ...


async def wants_too_much(unknown: Any, **_: Any) -> None: ...


@pytest.mark.parametrize("fn", [wants_too_little, wants_too_much])
def test_for_parameters_that_do_not_fit_it_is_the_place_of_the_function(
    fn: Callable[..., Any], registry: OperatorRegistry, printed: list[str]
) -> None:
    declared(kopf.on.create)(registry, fn)
    with simulated(registry) as world:
        world.apply(example()).settle(seconds=1)
    (text,) = printed
    error, note = text.splitlines()
    assert error.startswith("TypeError: ")
    place = f"{__file__}, line {fn.__code__.co_firstlineno}"
    assert note == f"{place}: let its parameters be Kopf's arguments and **kwargs"


@pytest.mark.parametrize("fn", [breaks, breaks_later])
@pytest.mark.parametrize("role", ["startup", "cleanup", "login", "probe"])
def test_that_of_an_activity_begins_at_the_line_of_the_author(
    role: str,
    fn: Callable[..., Any],
    registry: OperatorRegistry,
    printed: list[str],
) -> None:
    getattr(kopf.on, role)(registry=registry)(fn)
    settings = OperatorSettings()
    with author_loop() as loop:
        mine = Operator(registry, settings, None, loop)
        work = partial(run_activity, mine, registry.entries[0], 0, 0.0)
        with pytest.raises(LookupError):
            mine.to_its_end(work())
        settings.execution.executor.shutdown()
    (text,) = printed
    (frames,) = tracebacks(text)
    assert __file__ in frames[0]
