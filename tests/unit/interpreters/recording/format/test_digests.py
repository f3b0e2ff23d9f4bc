"""Digests of code: equal for what does the same, another for what does not."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from fnop.adapters.common.codes import Code, code_lines
from fnop.adapters.common.loading import handlers_of_file
from fnop.effects.structs import replace
from fnop.interpreters.recording.format.digests import (
    KIND,
    PYTHON,
    code_digest,
    digests_of,
)
from tests.simulations import ROOT

OPERATOR = """
import fnop
import helpers

LIMIT = 3
UNUSED = 1

class Size:
    def __init__(self, value):
        self.value = value

    def doubled(self):
        return self.value * 2

def price(size):
    return helpers.rate() * size

def unused():
    return 1

def allowed(spec, **_):
    return spec.get("size", 0) < 10

@fnop.on.create("fnopexamples", when=allowed)
def made(spec, **_):
    size = Size(min(spec["size"], LIMIT)).doubled()
    return fnop.patch(status={"price": price(size)})

@fnop.on.update("fnopexamples")
def changed(spec, **_):
    return fnop.patch(status={"other": True})
"""
HELPERS = """
def rate():
    return 7

def other():
    return 8
"""


Digests = Callable[..., dict[str, str]]


@pytest.fixture
def digests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Digests:
    """The digests of an operator that is given with its module of helpers."""
    numbers = count()

    def found(operator: str, helpers: str = HELPERS) -> dict[str, str]:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        (folder / "operator.py").write_text(operator)
        (folder / "helpers.py").write_text(helpers)
        monkeypatch.syspath_prepend(folder)
        monkeypatch.delitem(sys.modules, "helpers", raising=False)
        return digests_of(handlers_of_file(str(folder / "operator.py")))

    return found


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("self.value * 2", "self.value * 3"),
        ("helpers.rate() * size", "helpers.rate() + size"),
        ('{"price": price(size)}', '{"cost": price(size)}'),
        ('spec.get("size", 0) < 10', 'spec.get("size", 0) < 11'),
        ("def made(spec, **_):", "def made(spec, name='x', **_):"),
        ('"fnopexamples", when=allowed', '"fnopexamples", when=allowed, retries=3'),
    ],
)
def test_what_a_handler_does_is_in_its_digest(
    digests: Digests, was: str, now: str
) -> None:
    assert was in OPERATOR
    before = digests(OPERATOR)
    after = digests(OPERATOR.replace(was, now))
    assert after["made"] != before["made"]
    assert after["changed"] == before["changed"]


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("UNUSED = 1", "UNUSED = 2"),
        ("def unused():\n    return 1", "def unused():\n    return 2"),
        ("LIMIT = 3", "\n\n# a comment\nLIMIT = 3"),
        ('{"other": True}', '{"other": False}'),
    ],
)
def test_what_does_not_concern_a_handler_is_not(
    digests: Digests, was: str, now: str
) -> None:
    assert was in OPERATOR
    before = digests(OPERATOR)
    assert digests(OPERATOR.replace(was, now))["made"] == before["made"]


def test_modules_of_the_author_count(digests: Digests) -> None:
    before = digests(OPERATOR)
    other = digests(OPERATOR, HELPERS.replace("return 8", "return 9"))
    assert other == before
    used = digests(OPERATOR, HELPERS.replace("return 7", "return 9"))
    assert used["made"] != before["made"]
    assert used["changed"] == before["changed"]


def test_they_are_the_same_in_every_process() -> None:
    """Under any hash seed: sets have another order then."""
    script = (
        "from fnop.interpreters.recording.format.digests import code_digest\n"
        "names = {'a', 'b', 'c', 'd'}\n"
        "def f(x): return x in names and x in {'e', 'f', 'g'}\n"
        "print(code_digest(f))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


STRANGE = """
import fnop
from os import environ

class Proxy:
    def __call__(self): ...
    def __getattr__(self, name):
        return self

class Hidden:
    def __repr__(self):
        raise RuntimeError("nobody may look")

PROXY = Proxy()

@fnop.on.create("fnopexamples")
def proxied(**_):
    return PROXY()

@fnop.on.create("fnopexamples")
def hidden(held={Hidden()}, **_):
    return held

@fnop.on.create("fnopexamples")
def told(**_):
    return environ["HOME"]
"""


def test_what_cannot_be_looked_at_has_no_digest(
    digests: Digests, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = digests(STRANGE)
    assert {*found} == {"proxied", "told"}
    # The environment is not code.
    monkeypatch.setenv("HOME", "/elsewhere")
    assert digests(STRANGE)["told"] == found["told"]


CHANGING = """
import itertools, os, time
import fnop
from helpers import RATES, SIZE as size

BORN = time.time()
CACHE = {}
TIMES = [0]
if BORN:
    LATE = next(itertools.count(os.getpid()))
WHOLE = size + sum(RATES)

def age():
    return time.time() - BORN + LATE

@fnop.on.create("fnopexamples")
def made(**_):
    CACHE[len(CACHE)] = age()
    return [size, RATES, WHOLE, TIMES]
"""
VALUES = "RATES = [1, 2]\nSIZE = 3\nOTHER = 4\n"


def test_values_that_differ_between_processes_or_change_are_no_code(
    digests: Digests,
) -> None:
    before = digests(CHANGING, VALUES)
    time.sleep(0.01)
    assert digests(CHANGING, VALUES) == before
    assert digests(CHANGING, VALUES.replace("OTHER = 4", "OTHER = 5")) == before


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("CACHE = {}", "CACHE = {1: 1}"),
        ("TIMES = [0]", "TIMES = [1]"),
        ("time.time()\n", "time.monotonic()\n"),
        ("size + sum", "size - sum"),
        ("next(", "hash("),
    ],
)
def test_how_a_value_is_made_is_code(digests: Digests, was: str, now: str) -> None:
    assert was in CHANGING
    assert digests(CHANGING.replace(was, now), VALUES) != digests(CHANGING, VALUES)


@pytest.mark.parametrize("was", ["1, 2", "SIZE = 3"])
def test_a_value_of_another_module_is_told_by_its_text(
    digests: Digests, was: str
) -> None:
    other = VALUES.replace(was, f"{was} + 0" if "SIZE" in was else "1, 7")
    assert digests(CHANGING, other) != digests(CHANGING, VALUES)


def test_what_changes_while_the_operator_runs_does_not_change_the_digest(
    tmp_path: Path,
) -> None:
    imported = "from helpers import RATES, SIZE as size"
    text = CHANGING.replace(imported, "RATES, size = [1], 2")
    (tmp_path / "operator.py").write_text(text)
    handlers = handlers_of_file(str(tmp_path / "operator.py"))
    before = digests_of(handlers)
    handlers[0].fn()
    assert digests_of(handlers) == before


def test_what_refers_to_itself_has_a_digest() -> None:
    things: list[object] = []
    things.append(things)

    def again(number: int) -> object:
        return again(number - 1) if number else things

    assert code_digest(again) == code_digest(again)


def test_digests_of_an_earlier_release_are_not_compared() -> None:
    """They were made in another way: nothing is reported about the code."""
    header = {"fnop": "1", "python": PYTHON, "code": {"a": "1"}}
    now = Code("2", PYTHON, {"a": "2"})
    assert [*code_lines(Code.recorded(header), now)] == []
    present = {**header, "digests": KIND}
    assert [*code_lines(Code.recorded(present), now)] == [
        "the code of a is another one"
    ]


def test_the_handlers_with_other_code_are_told() -> None:
    was = Code("1", "3.12", {"a": "1", "b": "2", "c": "3"})
    now = Code("1", "3.12", {"a": "1", "b": "4", "d": "3"})
    (line,) = code_lines(was, now)
    assert line == "the code of b is another one; that of 1 handler is the same"
    assert [*code_lines(was, was)] == ["the code of all handlers is the same"]
    # An earlier release, or another Python, shows nothing.
    assert [*code_lines(Code("1", "", {}), now)] == []
    assert [*code_lines(replace(was, python="3.11"), now)] == []
