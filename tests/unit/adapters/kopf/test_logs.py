"""The log of Kopf operators: the same lines, loggers and levels as with Kopf."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from fnop import kopf
from fnop.adapters.kopf.declaring.settings import OperatorSettings
from fnop.adapters.kopf.running.logs import (
    LocalObjectLogger,
    LogFormat,
    ObjectLogger,
    TerseObjectLogger,
    activity_logger,
    configure,
    write,
)
from fnop.core.seam.commands import Say, Subject

theirs = pytest.importorskip("kopf")

BODY = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "shop", "uid": "u"},
}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "v"}}


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    """Restore the process's loggers after a test."""
    found = [logging.getLogger(name) for name in ("", "asyncio", "kopf.objects")]
    before = [(each.level, each.handlers[:], each.propagate) for each in found]
    yield
    for each, (level, handlers, propagate) in zip(found, before, strict=True):
        each.setLevel(level)
        each.handlers[:] = handlers
        each.propagate = propagate


def speak(
    body: dict[str, Any] | None, level: int, extra: dict[str, Any] | None
) -> None:
    """Log one line about an object, or about none."""
    logger: Any = logging.getLogger("kopf.objects")
    if body is not None:
        logger = ObjectLogger(body=body, settings=OperatorSettings())
    logger.log(level, "size %s of 100%%", 3, extra=extra)


FORMATS: list[dict[str, Any]] = [
    {},
    {"log_format": "PLAIN"},
    {"log_format": "FULL", "log_prefix": True},
    {"log_format": "PLAIN", "log_prefix": None},
    {"log_format": "PLAIN", "log_prefix": False},
    {"log_format": "JSON"},
    {"log_format": "JSON", "log_prefix": None},
    {"log_format": "JSON", "log_prefix": True},
    {"log_format": "JSON", "log_refkey": "about"},
    {"log_format": "%(levelname)s %(message)s"},
    {"log_format": "%(levelname)s %(message)s", "log_prefix": True},
]


def line_of(
    module: Any,
    capsys: pytest.CaptureFixture[str],
    format: dict[str, Any],
    body: Any,
    level: int,
    extra: Any,
) -> str:
    """The line that a module's `configure` makes of the same record."""
    given = dict(format)
    if given.get("log_format") in LogFormat.__members__:
        given["log_format"] = module.LogFormat[given["log_format"]]
    root = logging.getLogger()
    root.handlers[:] = []
    module.configure(debug=True, **given)
    speak(body, level, extra)
    return capsys.readouterr().err


@pytest.mark.parametrize("format", FORMATS, ids=range(len(FORMATS)))
@pytest.mark.parametrize("body", [BODY, NODE, None], ids=["pod", "node", "none"])
def test_lines_are_those_of_kopf(
    capsys: pytest.CaptureFixture[str], format: dict[str, Any], body: Any
) -> None:
    for level in (10, 20, 25, 30, 40, 50, 60):
        extra = {"shelf": 1} if level == 20 else None
        ours = line_of(kopf, capsys, format, body, level, extra)
        wanted = line_of(theirs, capsys, format, body, level, extra)
        if format.get("log_format") == "JSON":
            assert content_of(ours) == content_of(wanted)
        else:
            assert without_time(ours) == without_time(wanted)


def content_of(line: str) -> dict[str, Any]:
    """A line of JSON without its time."""
    found: dict[str, Any] = json.loads(line)
    assert found.pop("timestamp").startswith("20")
    return found


def without_time(line: str) -> str:
    return line.partition("]")[2] if line.startswith("[20") else line


@pytest.mark.parametrize("module", [kopf, theirs], ids=["fnop", "kopf"])
@pytest.mark.parametrize("format", ["PLAIN", "JSON"])
def test_a_traceback_is_in_its_line(
    capsys: pytest.CaptureFixture[str], module: Any, format: str
) -> None:
    module.configure(log_format=module.LogFormat[format])
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("kopf.objects").exception("failed")
    text = capsys.readouterr().err
    if format == "JSON":
        (line,) = text.splitlines()
        found = json.loads(line)
        assert found["message"] == "failed"
        text = found["exc_info"]
    assert text.rstrip().endswith("ValueError: broken")


@pytest.mark.parametrize(
    ("options", "level"),
    [
        ({}, logging.INFO),
        ({"verbose": True}, logging.DEBUG),
        ({"debug": True}, logging.DEBUG),
        ({"quiet": True}, logging.WARNING),
        ({"quiet": True, "verbose": True}, logging.DEBUG),
        ({"quiet": True, "debug": True}, logging.DEBUG),
    ],
    ids=range(6),
)
def test_levels_are_those_of_kopf(options: dict[str, Any], level: int) -> None:
    for module in (theirs, kopf):
        module.configure(**options)
        assert logging.getLogger().level == level


def test_a_second_configuration_replaces_the_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure()
    configure(log_format=LogFormat.PLAIN)
    logging.getLogger("kopf").info("once")
    assert capsys.readouterr().err.splitlines() == ["once"]


@pytest.mark.parametrize("level", [logging.DEBUG, logging.ERROR])
def test_the_log_of_asyncio_is_shown_on_request(
    capsys: pytest.CaptureFixture[str], level: int
) -> None:
    for debug in (False, True):
        configure(debug=debug, verbose=True, log_format=LogFormat.PLAIN)
        logging.getLogger("asyncio").log(level, "a loop")
        assert ("a loop" in capsys.readouterr().err) is debug


# -------------------------------------------------------------------------- loggers


def test_a_record_has_its_object(caplog: pytest.LogCaptureFixture) -> None:
    settings = OperatorSettings()
    with caplog.at_level(logging.INFO, "kopf.objects"):
        ObjectLogger(body=BODY, settings=settings).info("a", extra={"shelf": 1})
        LocalObjectLogger(body=BODY, settings=settings).info("b", extra={"shelf": 2})
    first, second = map(vars, caplog.records)
    for each in (first, second):
        assert each["name"] == "kopf.objects"
        assert each["k8s_ref"]["uid"] == "u"
        assert each["settings"] is settings
    assert (first["k8s_skip"], first["shelf"]) == (False, 1)
    assert (second["k8s_skip"], second["shelf"]) == (True, 2)


def test_a_record_of_an_object_in_no_namespace_has_all_keys(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "uid": "u"}}
    ObjectLogger(body=node).warning("x")
    write(Say("warning", "y", Subject("nodes.v1.", None, "a", "u", "Node", "v1")), None)
    expected = {"kind": "Node", "name": "a", "uid": "u", "namespace": None}
    for each in caplog.records:
        assert vars(each)["k8s_ref"] == {"apiVersion": "v1", **expected}


def test_activities_have_loggers_of_their_own() -> None:
    assert activity_logger("startup").name == "kopf.activities.startup"


SUBJECT = Subject("pods.v1.", "shop", "a", "u", "Pod", "v1")


@pytest.mark.parametrize(
    ("level", "wanted"),
    [
        ("debug", logging.DEBUG),
        ("info", logging.DEBUG),
        ("warning", logging.WARNING),
        ("error", logging.ERROR),
    ],
)
def test_lines_of_fnop_go_to_kopfs_loggers(
    caplog: pytest.LogCaptureFixture, level: Any, wanted: int
) -> None:
    caplog.set_level(logging.DEBUG)
    write(Say(level, "about a pod", SUBJECT), None)
    write(Say(level, "about none"), None)
    first, second = caplog.records
    assert (first.name, second.name) == ("kopf.objects", "kopf.fnop")
    assert first.levelno == second.levelno == wanted
    assert vars(first)["k8s_ref"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "a",
        "namespace": "shop",
        "uid": "u",
    }


def test_fields_of_an_author_make_no_line_of_kopf(
    caplog: pytest.LogCaptureFixture,
) -> None:
    write(Say("error", "stuck", SUBJECT, fields=(("handled", "create"),)), None)
    assert caplog.messages == ["stuck"]


def test_a_line_of_fnop_has_its_exception(caplog: pytest.LogCaptureFixture) -> None:
    problem = ValueError("x")
    write(Say("error", "failed", exception=problem), None)
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[1] is problem


@pytest.mark.parametrize(
    ("level", "wanted"),
    [("INFO", ["warning"]), ("DEBUG", ["info", "warning"])],
    ids=["normal", "verbose"],
)
def test_a_terse_logger_is_for_verbose_operators(
    level: str, wanted: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(level, "kopf.objects")
    logger = TerseObjectLogger(body={"kind": "Pod"})
    for each in ("debug", "info", "warning"):
        getattr(logger, each)(each)
    assert caplog.messages == wanted
    assert all(each.k8s_skip for each in caplog.records)  # type: ignore[attr-defined]
