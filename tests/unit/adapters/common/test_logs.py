"""The appearance of a line of the core in each format."""

import asyncio
import errno
import importlib
import io
import json
import logging
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest

import fnop
from fnop.adapters.common import loading
from fnop.adapters.common.loading import load
from fnop.adapters.common.logs import Console, configure
from fnop.adapters.running.mistakes import Mistakes
from fnop.core.handlers.declare.registry import Registry
from fnop.core.seam.commands import AttemptEnded, Say, Subject
from fnop.effects.values import canonical
from fnop.testing import plan_of
from tests.effort import calls_in
from tests.live import operating
from tests.simulations import ROOT, example

SUBJECT = Subject("examples.v1.dev", "default", "example", "uid-1", "Example", "dev/v1")
# 2026-01-01 12:00:00.250 UTC
NOON = 1767268800.25


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def console(stream: io.StringIO) -> Iterator[Callable[..., Console]]:
    made: list[Console] = []
    before = logging.getLogger().level

    def make(format: str = "text", **options: Any) -> Console:
        given = {"level": "info", "prefix": None, "stream": stream} | options
        made.append(configure(format=format, **given))
        return made[-1]

    yield make
    for each in made:
        each.close()
    logging.getLogger().setLevel(before)


Make = Callable[..., Console]


@pytest.mark.parametrize(
    ("format", "line"),
    [
        (
            "text",
            "[2026-01-01 12:00:00,250] fnop.objects [INFO] [default/example] hello",
        ),
        ("plain", "[default/example] hello"),
        (
            "full",
            "[2026-01-01 12:00:00,250] fnop.objects         [INFO    ] "
            "[default/example] hello",
        ),
    ],
)
def test_the_forms_of_text(
    console: Make, stream: io.StringIO, format: str, line: str
) -> None:
    console(format).say(Say("info", "hello", SUBJECT), at=NOON)
    assert stream.getvalue() == line + "\n"


def test_lines_of_the_operator_have_no_prefix(
    console: Make, stream: io.StringIO
) -> None:
    console().say(Say("warning", "hello"), at=NOON)
    assert stream.getvalue() == "[2026-01-01 12:00:00,250] fnop [WARNING] hello\n"


def test_the_prefix_can_be_chosen(console: Make, stream: io.StringIO) -> None:
    console("plain", prefix=False).say(Say("info", "one", SUBJECT))
    console("json", prefix=True).say(Say("info", "two", SUBJECT))
    first, second = stream.getvalue().splitlines()
    assert first == "one"
    assert json.loads(second)["message"] == "[default/example] two"


def test_a_json_line_has_the_object(console: Make, stream: io.StringIO) -> None:
    fields = (("count", 3), ("severity", "mine"), ("odd", {1}))
    say = Say("error", "hello", SUBJECT, "create", fields, "ValueError: x")
    console("json").say(say, at=NOON)
    assert json.loads(stream.getvalue()) == {
        "timestamp": "2026-01-01T12:00:00.250+00:00",
        "severity": "error",
        "logger": "fnop.objects",
        "message": "hello",
        "object": {
            "apiVersion": "dev/v1",
            "kind": "Example",
            "name": "example",
            "namespace": "default",
            "uid": "uid-1",
        },
        "handler": "create",
        "error": "ValueError: x",
        "count": 3,
        "odd": "{1}",
    }


ACTING = "\x9b31m\x85\u202e\u2066\u200b\u2028\U000e0041\x7f"


@pytest.mark.parametrize("format", ["json", "text", "plain", "full"])
def test_nothing_in_a_line_acts_on_a_terminal(
    console: Make, stream: io.StringIO, format: str
) -> None:
    made = console(format)
    made.say(Say("info", f"hello {ACTING} é", SUBJECT, fields=(("more", ACTING),)))
    logging.getLogger("app").info("hello %s", ACTING, extra={"more": [ACTING]})
    text = stream.getvalue()
    assert [letter for letter in text if not letter.isprintable()] == ["\n", "\n"]
    assert "é" in text
    if format == "json":
        ours, theirs = map(json.loads, text.splitlines())
        assert ours["message"].endswith(f"hello {ACTING} é")
        assert (ours["more"], theirs["more"]) == (ACTING, [ACTING])


def test_now_is_the_time_of_a_real_line(console: Make, stream: io.StringIO) -> None:
    before = time.strftime("[%Y-%m-%d %H:%M:%S")
    console().say(Say("info", "hello"))
    after = time.strftime("[%Y-%m-%d %H:%M:%S")
    assert before <= stream.getvalue()[: len(before)] <= after


def test_an_expected_error_is_one_line(console: Make, stream: io.StringIO) -> None:
    make = console("plain")
    make.say(Say("warning", "create failed", error="not yet"))
    make.say(Say("warning", "create failed: not yet", error="not yet"))
    assert stream.getvalue().splitlines() == ["create failed: not yet"] * 2


def test_fields_follow_the_message(console: Make, stream: io.StringIO) -> None:
    console("plain").say(Say("info", "hello", fields=(("a", 1), ("b", "x y"))))
    assert stream.getvalue() == "hello a=1 b='x y'\n"


def authors_code() -> None:
    canonical({"x": object()})


def test_a_traceback_begins_with_the_authors_code(
    console: Make, stream: io.StringIO
) -> None:
    # As when fnop calls a handler, which calls fnop.
    frame = {"__name__": "fnop.core.somewhere", "call": authors_code}
    try:
        exec("def drive():\n    call()\ndrive()", frame)
    except Exception as problem:
        caught = problem
    console("plain").say(Say("error", "failed", error="TypeError", exception=caught))
    lines = stream.getvalue().splitlines()
    assert lines[:2] == ["failed", "  Traceback (most recent call last):"]
    # The test itself called fnop here, so its own frame comes first.
    shown = [line for line in lines if line.startswith("    File ")]
    assert "in test_a_traceback" in shown[0]

    stream.truncate(0)
    assert caught.__traceback__ is not None
    caught.__traceback__ = caught.__traceback__.tb_next
    console("plain").say(Say("error", "failed", exception=caught))
    shown = [line for line in stream.getvalue().splitlines() if "  File " in line]
    assert "in authors_code" in shown[0]
    assert "in canonical" in shown[1]


class ClientError(Exception):
    """As HTTP clients have one."""


def wrapped(own: Exception, inner: Exception, *, is_cause: bool = False) -> Exception:
    """An error of a client that was raised while another one was handled."""
    try:
        try:
            raise inner
        except type(inner) as problem:
            if is_cause:
                raise own from problem
            raise own  # noqa: B904 (as many libraries do it)
    except type(own) as problem:
        return problem


REFUSED = ConnectionRefusedError(111, "Connection refused")
UNREACHED: list[Callable[[], Exception]] = [
    lambda: wrapped(REFUSED, OSError("before")),
    lambda: wrapped(TimeoutError("timed out"), OSError("before")),
    lambda: wrapped(socket.gaierror(-2, "Name or service not known"), OSError()),
    lambda: wrapped(OSError(errno.EHOSTUNREACH, "No route to host"), KeyError("x")),
    lambda: wrapped(URLError("refused"), REFUSED),
    lambda: wrapped(ClientError("cannot connect"), REFUSED, is_cause=True),
    lambda: wrapped(ClientError("x"), wrapped(ClientError("y"), REFUSED)),
]
MISTAKES: list[Callable[[], Exception]] = [
    lambda: wrapped(KeyError("x"), REFUSED),
    lambda: wrapped(FileNotFoundError(2, "No such file", "x"), KeyError("x")),
    lambda: wrapped(ClientError("answered 503"), KeyError("x")),
]


@pytest.mark.parametrize("level", ["info", "verbose", "debug"])
@pytest.mark.parametrize("is_called", [False, True])
@pytest.mark.parametrize(
    ("make", "is_short"),
    [*((each, True) for each in UNREACHED), *((each, False) for each in MISTAKES)],
)
def test_what_is_not_reached_is_one_line_with_its_place(
    make: Callable[[], Exception],
    is_short: bool,
    is_called: bool,
    level: str,
    console: Make,
    stream: io.StringIO,
) -> None:
    problem = make()
    if is_called:
        failed = fnop.CallFailed(type(problem).__name__, str(problem))
        failed.__cause__, problem = problem, failed
    lines = lines_of(stream, console("plain", level=level), problem)
    if is_short and level == "info":
        (line,) = lines
        assert re.search(
            r" \(at tests/unit/adapters/common/test_logs\.py:\d+\)$", line
        ), line
    else:
        assert any("Traceback" in each for each in lines)
    stream.truncate(stream.seek(0))
    console("json", level=level).say(Say("error", "failed", exception=problem))
    told = json.loads(stream.getvalue())
    assert ("place" in told) is (is_short and level == "info")
    assert ("traceback" in told) is not ("place" in told)


def lines_of(stream: io.StringIO, make: Console, problem: BaseException) -> list[str]:
    """The shown lines of a failure, except for the marks below the source lines."""
    text = f"{type(problem).__name__}: {problem}"
    make.say(Say("error", "failed", error=text, exception=problem))
    return [line for line in stream.getvalue().splitlines() if line.strip(" ~^")]


def failure_of(handler: Callable[..., Any], **given: Any) -> BaseException:
    failure = plan_of(handler, {"spec": {}}, **given).failure
    assert failure is not None
    assert failure.exception is not None
    return failure.exception


def test_a_misuse_of_fnop_ends_at_the_authors_line(
    console: Make, stream: io.StringIO
) -> None:
    def misuse() -> Any:
        return fnop.patch(status={"x": object()})

    lines = lines_of(stream, console("plain"), failure_of(misuse))
    assert lines[:2] == ["failed", "  Traceback (most recent call last):"]
    assert "in misuse" in lines[2]
    assert lines[3] == '      return fnop.patch(status={"x": object()})'
    assert lines[4].startswith(
        "  TypeError: Patch.merge.status.x: object is not a JSON"
    )
    assert len(lines) == 5


def test_a_refusal_is_shown_where_it_was_awaited(
    console: Make, stream: io.StringIO
) -> None:
    async def ask() -> None:
        await fnop.list("pods")

    problem = failure_of(ask, answers=[fnop.Refused(403, "Forbidden", "not you")])
    lines = lines_of(stream, console("plain"), problem)
    assert "in ask" in lines[2]
    assert lines[3:] == [
        '      await fnop.list("pods")',
        "  fnop.core.values.errors.Refused: not you",
    ]


def dials(number: int) -> None:
    raise LookupError(f"{number} is engaged")


async def dials_on_the_loop(number: int) -> None:
    dials(number)


@pytest.mark.parametrize("function", [dials, dials_on_the_loop])
def test_what_a_called_function_raises_is_shown_where_it_was_raised(
    console: Make, stream: io.StringIO, function: Callable[..., Any]
) -> None:
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    async def ask(**_: Any) -> None:
        await fnop.call(function, number=5)

    async def story() -> Say:
        async with operating(registry, [example()]) as run:
            await run.until(lambda: any(say.error for say in run.said))
            return next(say for say in run.said if say.error)

    console("plain").say(asyncio.run(story()))
    lines = [line for line in stream.getvalue().splitlines() if line.strip(" ~^")]
    assert lines[1] == "  Traceback (most recent call last):"
    assert "test_logs.py" in lines[2]
    assert '      raise LookupError(f"{number} is engaged")' in lines
    assert "  LookupError: 5 is engaged" in lines
    assert lines[-2] == "      await fnop.call(function, number=5)"
    assert not any("calls.py" in line for line in lines)


def forgets() -> None:
    fnop.event("Lost", "nobody returns it")


def mixes() -> Any:
    return [fnop.event("Lost", "nobody returns it"), 1]


async def awaits_the_end() -> None:
    await fnop.again(1, "never")


@pytest.mark.parametrize("handler", [forgets, mixes, awaits_the_end])
def test_what_is_wrong_with_no_line_of_the_author_is_one_line(
    console: Make, stream: io.StringIO, handler: Callable[..., Any]
) -> None:
    problem = failure_of(handler)
    lines = lines_of(stream, console("plain"), problem)
    assert lines == [f"failed: TypeError: {problem}"]
    stream.truncate(0)
    stream.seek(0)
    console("json").say(Say("error", "failed", exception=problem))
    assert "traceback" not in json.loads(stream.getvalue())


def test_errors_of_libraries_keep_the_lines_of_the_library(
    console: Make, stream: io.StringIO
) -> None:
    def reads() -> Any:
        return json.loads("{")

    lines = lines_of(stream, console("plain"), failure_of(reads))
    files = [line for line in lines if line.startswith("    File ")]
    assert "in reads" in files[0]
    assert "in raw_decode" in files[-1]


def test_a_traceback_has_an_end(console: Make, stream: io.StringIO) -> None:
    def fails(**_: Any) -> None:
        raise ValueError("an answer: " + "x" * 5_000_000)

    lines = lines_of(stream, console("plain"), failure_of(fails))
    assert any("in fails" in line for line in lines)
    assert any("ValueError: an answer: xxx" in line for line in lines)
    assert any("characters left out" in line for line in lines)
    assert len("".join(lines)) < 40_000


def test_a_fault_of_ours_is_whole(console: Make, stream: io.StringIO) -> None:
    with pytest.raises(TypeError) as caught:
        canonical({"x": object()})
    problem = caught.value
    assert problem.__traceback__ is not None
    problem.__traceback__ = problem.__traceback__.tb_next
    console("json").say(Say("error", "failed", exception=problem))
    assert "in canonical" in json.loads(stream.getvalue())["traceback"]


@pytest.mark.parametrize(
    ("level", "shown"),
    [("debug", "dwe"), ("verbose", "dwe"), ("info", "we"), ("warning", "we")],
)
def test_levels(console: Make, stream: io.StringIO, level: str, shown: str) -> None:
    make = console("plain", level=level)
    for name in ("debug", "warning", "error"):
        make.say(Say(name, name[0]))
    assert stream.getvalue().split() == [*shown]


def test_what_authors_log_themselves_is_shown(
    console: Make, stream: io.StringIO
) -> None:
    console("json")
    author = logging.getLogger("my_operator")
    try:
        raise ValueError("x")
    except ValueError:
        author.exception("about %s", "it")
    line = json.loads(stream.getvalue())
    assert (line["logger"], line["message"]) == ("my_operator", "about it")
    assert line["traceback"].endswith("ValueError: x")


def test_what_authors_give_as_extra_is_in_json(
    console: Make, stream: io.StringIO
) -> None:
    console("json")
    about = {"size": 3, "by": object, "timestamp": "mine"}
    logging.getLogger("my_operator").warning("grown", extra=about)
    line = json.loads(stream.getvalue())
    assert (line["message"], line["size"]) == ("grown", 3)
    assert "object" in line["by"]
    assert line["timestamp"] != "mine"
    known = {"message", "timestamp", "severity", "logger"}
    assert line.keys() == known | about.keys()


LIBRARIES = ("asyncio", "aiohttp.client", "kubernetes_asyncio.client.rest")


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("debug", ["author debug", "library debug", "author info", "library info"]),
        ("verbose", ["author debug", "author info", "library info"]),
        ("info", ["author info", "library info"]),
        ("warning", []),
    ],
)
@pytest.mark.parametrize("library", LIBRARIES)
def test_verbose_is_about_fnop_and_the_operator(
    console: Make, stream: io.StringIO, library: str, level: str, shown: list[str]
) -> None:
    console("plain", level=level)
    # The origin of a line shows its author, under any logger name.
    folder = os.path.dirname(os.__file__)
    places = {"author": __file__, "library": f"{folder}/site-packages/x.py"}
    if library == "asyncio":
        places["library"] = f"{folder}/asyncio/selector_events.py"
    for word in ("debug", "info"):
        for who, name in (("author", "operator"), ("library", library)):
            number = getattr(logging, word.upper())
            place = places[who]
            line = logging.LogRecord(
                name, number, place, 1, f"{who} {word}", None, None
            )
            logger = logging.getLogger(name)
            if logger.isEnabledFor(number):
                logger.handle(line)
    assert stream.getvalue().splitlines() == shown


def test_verbose_shows_operators_that_are_installed(
    console: Make, stream: io.StringIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site-packages" / "installed_operator"
    package.mkdir(parents=True)
    text = "import logging\ndef f(): logging.getLogger(__name__).debug('hello')"
    (package / "__init__.py").write_text(text)
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setattr(loading, "_PACKAGES", set())
    console("plain", level="verbose")
    importlib.import_module("installed_operator").f()
    assert stream.getvalue() == ""
    load([], ["installed_operator"])[0].f()
    assert stream.getvalue() == "hello\n"
    del sys.modules["installed_operator"]


def test_configured_twice_a_line_comes_once(console: Make, stream: io.StringIO) -> None:
    other = io.StringIO()
    console("plain", stream=other)
    console("plain").say(Say("info", "hello"))
    assert (other.getvalue(), stream.getvalue()) == ("", "hello\n")


def test_a_closed_stream_is_no_error(
    console: Make, stream: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    make = console("plain")
    stream.close()
    make.say(Say("info", "hello"))
    assert capsys.readouterr().err == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_are_for_terminals(
    console: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for setting, coloured in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", setting)
        terminal = Terminal()
        console("text", stream=terminal).say(Say("error", "hello"))
        assert ("\x1b[31mERROR\x1b[0m" in terminal.getvalue()) is coloured


@pytest.mark.parametrize("format", ["text", "json"])
def test_a_line_is_cheap(
    console: Make, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's own
    make = console(format, stream=io.StringIO())
    say = Say("info", "hello", SUBJECT, "create")
    make.say(say)
    assert calls_in(lambda: make.say(say)) <= 100


def test_it_is_imported_without_the_cluster() -> None:
    code = "import fnop.adapters.common.logs, sys; print('aiohttp' in sys.modules)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "False"


def test_a_programming_error_is_shown_once_with_a_count() -> None:
    shown: list[Say] = []
    mistakes = Mistakes(shown.append)

    def fails(problem: Exception, uid: str = "a", *, retried: bool = True) -> None:
        subject = Subject("examples.v1.dev", "default", uid, uid, "Example", "dev/v1")
        ended, error = AttemptEnded("error", retried=retried), repr(problem)
        mistakes.say(
            Say("error", "failed", subject, "made", (), error, problem, ended=ended)
        )

    for _ in range(100):
        fails(KeyError("size"))
    first, *rest = [each for each in shown if each.level == "error"]
    assert first.exception is not None
    assert [each.exception for each in rest] == [None, None]
    assert [each.message for each in rest] == [
        "failed (10 times by now)",
        "failed (100 times by now)",
    ]
    shown.clear()
    for uid in ("b", "b", "c"):
        fails(KeyError("size"), uid)
    fails(KeyError("size"), "b", retried=False)
    assert [each.level for each in shown] == ["error", "debug", "error", "error"]
    shown.clear()
    for _ in range(3):
        fails(ValueError("not yet"))
    assert [each.level for each in shown] == ["error"] * 3, "it may pass"
    assert all(each.exception for each in shown)


class Textless:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize("form", ["json", "text"])
@pytest.mark.parametrize(
    ("message", "given", "shown"),
    [
        ("%d of 3", ("x",), "%d of 3 with ('x',) is not a message: TypeError: "),
        ("done", ("x",), "done with ('x',) is not a message: TypeError: not all"),
        (
            "%s",
            (Textless(),),
            "(a tuple that has no text) is not a message: RuntimeError",
        ),
    ],
)
def test_a_malformed_call_of_logging_is_one_line(
    console: Make,
    stream: io.StringIO,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    message: str,
    given: tuple[Any, ...],
    shown: str,
) -> None:
    console(form)
    root = logging.getLogger()
    ours = [each for each in root.handlers if getattr(each, "stream", None) is stream]
    monkeypatch.setattr(root, "handlers", ours)  # pytest's own raise
    logging.getLogger("mine").warning(message, *given)
    [line] = stream.getvalue().splitlines()
    assert shown in line
    assert "(at test_logs.py:" in line
    if form == "json":
        assert json.loads(line)["severity"] == "warning"
    assert capsys.readouterr().err == ""


def test_a_field_without_a_text_is_told_so(console: Make, stream: io.StringIO) -> None:
    console("json")
    logging.getLogger("mine").warning("it", extra={"what": Textless()})
    line = json.loads(stream.getvalue())
    assert line["what"] == "(a Textless that has no text)"
    assert line["message"] == "it"
