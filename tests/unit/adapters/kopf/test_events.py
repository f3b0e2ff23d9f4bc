"""Kubernetes Events by call, and of log lines."""

from __future__ import annotations

import doctest
import logging
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import Any

import pytest

from fnop.adapters.kopf.arguments.bodies import Body
from fnop.adapters.kopf.declaring.context import CURRENT, CurrentCall
from fnop.adapters.kopf.declaring.settings import OperatorSettings, PostingSettings
from fnop.adapters.kopf.running import events
from fnop.adapters.kopf.running.events import LinePoster
from fnop.adapters.kopf.running.logs import LocalObjectLogger, ObjectLogger

BODY = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "shop", "uid": "u"},
    "spec": {"secret": 1},
}
REFERENCE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "name": "a",
    "namespace": "shop",
    "uid": "u",
}
Post = Callable[..., list[Any]]


@pytest.fixture
def settings() -> PostingSettings:
    return PostingSettings()


@pytest.fixture
def posted(settings: PostingSettings) -> Post:
    """A function that calls another as a handler does; it returns what is posted."""

    def call(work: Callable[[], Any], handler: str = "a") -> list[Any]:
        found: list[Any] = []

        def run() -> None:
            post = lambda *given: found.append(given)  # noqa: E731
            CURRENT.set(CurrentCall(handler, BODY, post, settings))
            work()

        copy_context().run(run)
        return found

    return call


def test_the_examples_in_the_docstrings_hold() -> None:
    found = doctest.testmod(events)
    assert found.attempted
    assert found.failed == 0


def test_an_event_has_the_fields_of_kopfs_events(posted: Post) -> None:
    ((handler, manifest),) = posted(
        lambda: events.event(Body(BODY), type="Odd", reason="Seen", message="hello"),
        handler="mine",
    )
    assert handler == "mine"
    assert manifest == {
        "apiVersion": "v1",
        "kind": "Event",
        "action": "Action?",
        "type": "Odd",
        "reason": "Seen",
        "message": "hello",
        "reportingComponent": "kopf",
        "reportingInstance": "dev",
        "source": {"component": "kopf"},
        "involvedObject": REFERENCE,
    }


def test_an_event_about_an_object_in_no_namespace_is_in_the_default_one(
    posted: Post,
) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    ((_, manifest),) = posted(lambda: events.info(node, reason="R"))
    assert manifest["involvedObject"]["namespace"] == "default"


def test_the_settings_name_the_reporter(
    posted: Post, settings: PostingSettings
) -> None:
    settings.reporting_component, settings.reporting_instance = "mine", "i-1"
    ((_, manifest),) = posted(lambda: events.info(BODY, reason="r"))
    assert manifest["source"] == {"component": "mine"}
    assert manifest["reportingComponent"] == "mine"
    assert manifest["reportingInstance"] == "i-1"


def fail(**given: Any) -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        events.exception(BODY, **given)


@pytest.mark.parametrize(
    ("work", "wanted"),
    [
        (lambda: events.info(BODY, reason="R", message="m"), ("Normal", "R", "m")),
        (lambda: events.warn(BODY, reason="R", message="m"), ("Warning", "R", "m")),
        (lambda: events.warn(BODY, reason="R"), ("Warning", "R", "")),
        (fail, ("Error", "ValueError", "broken")),
        (lambda: fail(reason="R", message="m:"), ("Error", "R", "m: broken")),
        (
            lambda: events.exception(BODY, exc=KeyError("k"), message="m"),
            ("Error", "KeyError", "m 'k'"),
        ),
        (lambda: events.exception(BODY, exc=KeyError()), ("Error", "KeyError", "")),
        (
            lambda: events.exception(BODY, reason="R", message="m"),
            ("Error", "R", "m"),
        ),
        (
            lambda: events.event(BODY, type="T", reason="R", message="m", backoffs=[1]),
            ("T", "R", "m"),
        ),
    ],
    ids=range(9),
)
def test_types_reasons_and_messages(
    posted: Post, work: Callable[[], None], wanted: tuple[str, ...]
) -> None:
    ((_, manifest),) = posted(work)
    found = tuple(manifest[key] for key in ("type", "reason", "message"))
    assert found == wanted


class OfPykube:
    def __init__(self, obj: Any) -> None:
        self.obj = obj


def test_each_of_several_objects_has_its_event(posted: Post) -> None:
    other = {"kind": "Node", "metadata": {"name": "n"}}

    def bodies() -> Iterator[Any]:
        yield [BODY, (other,)]
        yield OfPykube(other)
        yield None

    found = posted(lambda: events.info(bodies(), reason="r"))
    assert [each["involvedObject"]["name"] for _, each in found] == ["a", "n", "n"]
    assert posted(lambda: events.info([], reason="r")) == []


@pytest.mark.parametrize("wrong", ["text", 5])
def test_an_event_is_about_an_object(posted: Post, wrong: Any) -> None:
    with pytest.raises(TypeError, match=type(wrong).__name__):
        posted(lambda: events.info(wrong, reason="r"))


def test_a_long_message_keeps_its_beginning_and_its_end(posted: Post) -> None:
    text = "begin" + "x" * 3000 + "end"
    ((_, manifest),) = posted(lambda: events.info(BODY, reason="r", message=text))
    message = manifest["message"]
    assert len(message) == events.MESSAGE_LENGTH_MAX
    assert message.startswith("beginx")
    assert message.endswith("xend")
    assert message[511:514] == "..."  # as Kopf cuts it
    ((_, manifest),) = posted(
        lambda: events.info(BODY, reason="r", message=text[-1024:])
    )
    assert manifest["message"] == text[-1024:]


POSTS = {
    "event": lambda: events.event(BODY, type="T", reason="r"),
    "info": lambda: events.info(BODY, reason="r"),
    "warn": lambda: events.warn(BODY, reason="r"),
    "exception": lambda: events.exception(BODY, reason="r"),
}


@pytest.mark.parametrize(
    ("enabled", "level", "wanted"),
    [
        (True, logging.INFO, {"event", "info", "warn", "exception"}),
        (True, logging.WARNING, {"event", "warn", "exception"}),
        (True, logging.ERROR, {"event", "exception"}),
        (True, logging.CRITICAL, {"event"}),
        # Kopf posts warnings even so.
        (False, logging.INFO, {"warn"}),
    ],
)
def test_the_settings_select_events(
    posted: Post,
    settings: PostingSettings,
    enabled: bool,
    level: int,
    wanted: set[str],
) -> None:
    settings.enabled, settings.level = enabled, level
    assert {name for name, work in POSTS.items() if posted(work)} == wanted


@pytest.mark.parametrize("name", POSTS)
def test_only_handlers_of_objects_post(name: str) -> None:
    with pytest.raises(LookupError, match="no handler"):
        POSTS[name]()

    def activity() -> None:
        CURRENT.set(CurrentCall("a", None, None))
        POSTS[name]()

    with pytest.raises(LookupError, match="handlers of objects"):
        copy_context().run(activity)


# ------------------------------------------------------------------- of log lines


@pytest.fixture
def operator() -> OperatorSettings:
    found = OperatorSettings()
    found.posting.loggers = True
    return found


@pytest.fixture
def lines(operator: OperatorSettings) -> Iterator[list[Any]]:
    """What the log lines of an operator post."""
    found: list[Any] = []
    logger = logging.getLogger("kopf.objects")
    poster = LinePoster(operator, lambda *given: found.append(given))
    level = logger.level
    logger.addHandler(poster)
    logger.setLevel(1)
    yield found
    logger.removeHandler(poster)
    logger.setLevel(level)


@pytest.mark.parametrize(
    ("level", "type"),
    [
        (5, "Debug"),
        (logging.DEBUG, "Debug"),
        (15, "Normal"),
        (logging.INFO, "Normal"),
        (25, "Warning"),
        (logging.WARNING, "Warning"),
        (logging.ERROR, "Error"),
        (logging.CRITICAL, "Fatal"),
        (90, "Fatal"),
    ],
)
def test_a_line_is_an_event_of_a_type(
    operator: OperatorSettings, lines: list[Any], level: int, type: str
) -> None:
    operator.posting.level = 1
    ObjectLogger(body=BODY, settings=operator).log(level, "size %d", 3)
    ((_, manifest),) = lines
    assert (manifest["type"], manifest["reason"]) == (type, "Logging")
    assert manifest["message"] == "size 3"
    assert manifest["involvedObject"]["uid"] == "u"


def test_the_event_of_a_line_has_its_traceback(
    operator: OperatorSettings, lines: list[Any]
) -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        ObjectLogger(body=BODY, settings=operator).exception("it failed")
    ((_, manifest),) = lines
    first, *_, last = manifest["message"].splitlines()
    assert (first, last) == ("it failed", "ValueError: broken")


def test_only_own_lines_of_a_level_are_posted(
    operator: OperatorSettings, lines: list[Any]
) -> None:
    logger = ObjectLogger(body=BODY, settings=operator)
    LocalObjectLogger(body=BODY, settings=operator).info("of a watch event")
    ObjectLogger(body=BODY, settings=OperatorSettings()).info("of another operator")
    logging.getLogger("kopf.objects").info("of no object")
    logger.debug("below the level")
    logger.info("skipped", extra={"k8s_skip": True})
    assert lines == []
    operator.posting.loggers = False
    logger.info("not asked for")
    operator.posting.loggers, operator.posting.enabled = True, False
    logger.info("off")
    assert lines == []
    operator.posting.enabled = True
    logger.info("on")
    assert [each["message"] for _, each in lines] == ["on"]


def test_a_line_about_an_object_in_no_namespace_is_posted_in_the_default_one(
    operator: OperatorSettings, lines: list[Any]
) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}
    ObjectLogger(body=node, settings=operator).info("on")
    ((_, manifest),) = lines
    reference = {"apiVersion": "v1", "kind": "Node", "name": "a"}
    assert manifest["involvedObject"] == {**reference, "namespace": "default"}
