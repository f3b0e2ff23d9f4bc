"""Text from elsewhere: it forges no log line, and does not control the terminal."""

import io
import json
import logging
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from fnop.adapters.common.logs import Console, configure
from fnop.adapters.common.manifests import dump_yaml
from fnop.adapters.common.plain import plain
from fnop.core.seam.commands import Say, Subject
from tests.thorough import examples

# Characters that have been used against terminals and readers, in addition to any text.
SAMPLES = (
    "\n[2026-01-01 12:00:00,000] fnop [ERROR] forged",
    "\r\nforged",
    "\x1b[31mred\x1b[0m",
    "\x9b31m",
    "\x1b]0;title\x07",
    "\u202edesrever\u202c",
    "zero\u200bwidth",
    "\u2028line\u2029paragraph",
    "\x85next\x0bup\x0cfeed",
    "\u3164blank\u2800",
    "tag\U000e0041",
    "\ud800half",
    "\x00",
    " leading",
    "",
)
hostile = st.one_of(
    st.sampled_from(SAMPLES),
    st.text(st.characters(codec=None), max_size=30),
    st.lists(st.sampled_from(SAMPLES), max_size=3).map("".join),
)
# Controls, formats, surrogates, separators of lines and of paragraphs, invisible ones.
ACTING = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
FORMATS = st.sampled_from(("text", "plain", "full"))


class Raised(Exception):
    """An error with foreign text."""


def raised(text: str) -> Raised:
    try:
        raise Raised(text)
    except Raised as problem:
        return problem


@st.composite
def says(draw: st.DrawFn) -> Say:
    text = draw(hostile)
    subject = Subject("k", draw(hostile), draw(hostile), "u", "K", "v1")
    failure = draw(st.none() | hostile)
    return Say(
        draw(st.sampled_from(("info", "error"))),
        text,
        draw(st.sampled_from((None, subject))),
        fields=tuple(
            (name, draw(hostile)) for name in draw(st.lists(hostile, max_size=2))
        ),
        error=failure,
        exception=None if failure is None or draw(st.booleans()) else raised(failure),
    )


@contextmanager
def logged(format: str) -> Iterator[tuple[Console, io.StringIO]]:
    root, stream = logging.getLogger(), io.StringIO()
    others, root.handlers = root.handlers, []  # pytest's, which keep the text as it is
    console = configure(level="info", format=format, prefix=None, stream=stream)
    try:
        yield console, stream
    finally:
        console.close()
        root.handlers = others


def acting(text: str) -> list[str]:
    """The characters that do something, or that are invisible."""
    return [
        letter
        for letter in text
        if unicodedata.category(letter) in ACTING
        or letter in "\u3164\u2800\u115f\ufe00"
    ]


def begun(text: str) -> list[str]:
    """The lines that count as lines of the log: those that are not indented."""
    return [line for line in text.split("\n")[:-1] if not line.startswith("  ")]


@settings(max_examples=examples(50))
@given(FORMATS, st.lists(says(), min_size=1, max_size=3))
def test_each_line_of_the_core_is_one_line(format: str, lines: list[Say]) -> None:
    with logged(format) as (console, stream):
        for line in lines:
            console.say(line)
    shown = stream.getvalue()
    assert len(begun(shown)) == len(lines)
    assert acting(shown.replace("\n", "")) == []


@given(FORMATS, hostile, hostile, st.none() | hostile)
def test_each_line_of_a_library_is_one_line(
    format: str, name: str, message: str, failure: str | None
) -> None:
    problem = None if failure is None else raised(failure)
    with logged(format) as (_, stream):
        logging.getLogger(f"x{name}").error("%s", message, exc_info=problem)
    shown = stream.getvalue()
    assert len(begun(shown)) == 1
    assert acting(shown.replace("\n", "")) == []


@given(says())
def test_a_json_line_is_json_and_has_the_text_as_it_was(line: Say) -> None:
    with logged("json") as (console, stream):
        console.say(line)
    shown = stream.getvalue()
    assert shown.count("\n") == 1
    assert json.loads(shown)["message"] == line.message


@pytest.mark.parametrize("value", [2**70, "\ud800", {1, 2}])
def test_what_one_encoder_refuses_is_logged_all_the_same(value: object) -> None:
    with logged("json") as (console, stream):
        console.say(Say("info", "hello", fields=(("odd", value),)))
    assert json.loads(stream.getvalue())["message"] == "hello"


@given(hostile)
def test_a_report_of_the_command_line_is_one_report(text: str) -> None:
    report = plain(f"fnop: {text}")
    first, *rest = report.split("\n")
    assert first.startswith("fnop: ")
    assert all(line.startswith("  ") for line in rest)
    assert acting(report.replace("\n", "")) == []


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))
def test_ordinary_text_stays(first: str, second: str) -> None:
    letters = "".join(c for c in first + second if unicodedata.category(c)[0] in "LNP")
    kept = "".join(c for c in letters if c not in "\u3164\u115f\u1160\uffa0")
    assert plain(f"{kept} ✅ ⚠️ {kept}") == f"{kept} ✅ ⚠️ {kept}"


# Half a surrogate pair is in no object: JSON on the wire is UTF-8.
@given(
    hostile.map(lambda text: text.replace("\ud800", "")).filter(
        lambda text: (
            text.isascii() or not any(unicodedata.category(c) == "Cs" for c in text)
        )
    )
)
def test_objects_are_printed_in_full_and_do_nothing(text: str) -> None:
    body = {"apiVersion": "v1", "data": {"key": text, f"k{text}": "x\n" + text}}
    printed = dump_yaml([body])
    assert yaml.safe_load(printed) == body
    assert acting(printed.replace("\n", "").replace("\t", "")) == []
