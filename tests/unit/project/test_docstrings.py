"""Docstrings: parameters, an example, and a plain first line."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import types
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import Enum
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from msgspec import Struct

import fnop
import fnop.testing
from fnop.core.handlers.declare import decorators, options
from tests.simulations import ROOT

FACADES = ("fnop", "fnop.testing")

# Names of the facade without an example in their docstrings, and the reason.
WITHOUT_EXAMPLE = {
    name: "a word of a signature, shown in the table of docs/reference/arguments.md"
    for name in (
        "Annotations",
        "Body",
        "EventType",
        "JSON",
        "Labels",
        "Logger",
        "Patch",
        "Reason",
        "Spec",
        "Status",
    )
} | {"lifecycles": "a module: its functions are shown in its own docstring"}

# Parameters that no author gives.
NOT_FOR_AUTHORS = {
    "Running": ("runner", "task", "look"),  # `fnop.operator` makes it
    "plan_of": ("named",),  # refused, with a sentence
    "Settings": ("places", "ignored", "hidden"),  # derived of the others
}


def _imported() -> Iterator[tuple[str, str, str, str]]:
    """Each public name: its facade, itself, its module, and its name there."""
    for facade in FACADES:
        source = ast.parse(inspect.getsource(importlib.import_module(facade)))
        for node in ast.walk(source):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                "fnop."
            ):
                for each in node.names:
                    if each.asname:
                        yield facade, each.asname, str(node.module), each.name


PUBLIC = sorted(_imported())


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(importlib.import_module(module)))


def _assigned(module: str, name: str) -> str | None:
    """The text below an assignment, which editors show as its docstring."""
    body = _tree(module).body
    for node, after in pairwise(body):
        targets = node.targets if isinstance(node, ast.Assign) else ()
        named = [*targets, getattr(node, "target", None)]
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if is_text and any(getattr(each, "id", None) == name for each in named):
            return inspect.cleandoc(str(after.value.value))  # type: ignore[attr-defined]
    return None


def _docstring(value: Any, module: str, name: str) -> str | None:
    if isinstance(value, (type, types.FunctionType, types.ModuleType)):
        found = _assigned(module, name)
        return found or (inspect.cleandoc(value.__doc__) if value.__doc__ else None)
    if name == "on":
        return inspect.getdoc(decorators.On)
    return _assigned(module, name)


def _parameters(value: Any) -> list[str]:
    """The names to be explained; `_` and `**_` are not for callers."""
    if isinstance(value, type):
        is_plain = not issubclass(value, Enum) and not getattr(
            value, "_is_protocol", False
        )
        if not is_plain:
            return []
        if issubclass(value, Struct):
            found = inspect.signature(value).parameters
        elif "__init__" in vars(value):
            found = inspect.signature(vars(value)["__init__"]).parameters
        else:
            return []
    elif isinstance(value, types.FunctionType):
        found = inspect.signature(value).parameters
    else:
        return []
    hidden = {"self", *NOT_FOR_AUTHORS.get(value.__name__, ())}
    return [name for name in found if name not in hidden and not name.startswith("_")]


def _lacks(docstring: str, names: list[str]) -> list[str]:
    """The parameters that a docstring does not mention in backticks.

    It may refer to another public docstring that does: "those of a `World`".
    """
    others = re.findall(r"(?:those of a|see) `(\w+)`", " ".join(docstring.split()))
    texts = [docstring, *(getattr(fnop.testing, each).__doc__ for each in others)]
    code = " ".join(re.findall(r"`([^`]+)`", " ".join(texts)))
    return [each for each in names if not re.search(rf"\b{each}\b", code)]


def _has_example(docstring: str) -> bool:
    """Whether there is a doctest, a block of code, a line of it, or a page's name."""
    in_line = re.search(r"`[^`]*[({=:]\s?fnop\.\w+[^`]*`", docstring)
    return bool(
        ">>> " in docstring
        or re.search(r"\n\n    \S", docstring)
        or in_line
        or "docs/" in docstring
    )


@pytest.mark.parametrize(("facade", "name", "module", "inner"), PUBLIC)
def test_every_public_name_is_explained(
    facade: str, name: str, module: str, inner: str
) -> None:
    value = getattr(importlib.import_module(facade), name)
    docstring = _docstring(value, module, inner)
    assert docstring, f"{facade}.{name} has no docstring"
    names = _parameters(value)
    assert len(names) <= 1 or not _lacks(docstring, names)
    assert name in WITHOUT_EXAMPLE or _has_example(docstring), docstring


def test_the_exceptions_are_needed() -> None:
    for _, name, module, inner in PUBLIC:
        if name in WITHOUT_EXAMPLE and name != "lifecycles":
            docstring = _docstring(getattr(fnop, name), module, inner)
            assert docstring, name
            assert not _has_example(docstring), name
    assert {name for _, name, _, _ in PUBLIC} >= WITHOUT_EXAMPLE.keys()


def _methods() -> Iterator[tuple[str, Callable[..., Any]]]:
    classes: list[type] = [decorators.On]
    classes += [
        value
        for facade, name, _, _ in PUBLIC
        if isinstance(value := getattr(importlib.import_module(facade), name), type)
        and value.__module__.startswith("fnop.adapters")
    ]
    for owner in classes:
        for name, value in vars(owner).items():
            plain = value.fget if isinstance(value, property) else value
            if isinstance(plain, types.FunctionType) and not name.startswith("_"):
                yield f"{owner.__name__}.{name}", plain


METHODS = dict(_methods())


@pytest.mark.parametrize("name", METHODS)
def test_every_method_of_a_tool_is_explained(name: str) -> None:
    docstring = inspect.getdoc(METHODS[name])
    assert docstring, f"{name} has no docstring"
    names = _parameters(METHODS[name])
    assert len(names) <= 1 or not _lacks(docstring, names)


# The options of each decorator, by the type that lists them.
OPTIONS = {
    decorators.On.startup: options.ActivityOptions,
    decorators.On.cleanup: options.ActivityOptions,
    decorators.On.login: options.LoginOptions,
    decorators.On.probe: options.ProbeOptions,
    decorators.On.create: options.CreateOptions,
    decorators.On.update: options.UpdateOptions,
    decorators.On.delete: options.DeleteOptions,
    decorators.On.resume: options.ResumeOptions,
    decorators.On.field: options.FieldOptions,
    decorators.On.event: options.EventOptions,
    decorators.index: options.IndexOptions,
    decorators.daemon: options.DaemonOptions,
    decorators.timer: options.TimerOptions,
    decorators.subhandler: options.SubhandlerOptions,
}


def _shown_by_help() -> Iterator[tuple[str, Any]]:
    """The public values, and the defaults of all that can be called on them."""
    for facade, name, _, _ in PUBLIC:
        value = getattr(importlib.import_module(facade), name)
        yield name, value
        parts = {name: value}
        if isinstance(value, type) or type(value).__module__.startswith("fnop."):
            inner = [each for each in dir(value) if not each.startswith("_")]
            parts |= {f"{name}.{each}": getattr(value, each) for each in inner}
        for place, part in parts.items():
            with suppress(TypeError, ValueError):  # it has no signature
                for each in inspect.signature(part).parameters.values():
                    yield f"{place}({each.name}=)", each.default


def test_help_shows_no_bare_objects() -> None:
    """`<object object at 0x7f...>` says nothing; a function says its name."""
    shown = dict(_shown_by_help())
    assert repr(shown["call(limit=)"]) == "<not given>"
    bare = [
        place
        for place, value in shown.items()
        if not isinstance(value, type) and repr(value) == object.__repr__(value)
    ]
    assert bare == []


@pytest.mark.parametrize("decorator", OPTIONS, ids=lambda each: str(each.__name__))
def test_every_option_is_explained(decorator: Callable[..., Any]) -> None:
    """By the decorator, or by `fnop.on` for all of them."""
    both = f"{inspect.getdoc(decorator)} {inspect.getdoc(decorators.On)}"
    known = sorted(options.options_of(OPTIONS[decorator]))
    assert known
    assert not _lacks(both, known)


def test_every_setting_is_explained() -> None:
    names = _parameters(fnop.Settings)
    assert len(names) > 20
    assert not _lacks(inspect.getdoc(fnop.Settings) or "", names)


# ---------------------------------------------------------------------- openings

# The rooms whose docstrings and comments begin with their subject.
PLAIN_ROOMS = (
    "adapters",
    "bench",
    "core/api",
    "core/handlers",
    "core/memory",
    "core/objects",
    "core/operator",
    "core/peers",
    "core/seam",
    "core/state",
    "core/streams",
    "core/values",
    "effects",
    "examples",
    "fnop",
    "interpreters",
)

# Clauses that have to be read twice before it is known what the subject is.
CLAUSE = re.compile(
    r"(What|Who|Whoever|Whose|Whatever|How|How many|How much|How often|So many|So much"
    r"|So often|So long|That of|Those that)\b"
)


def _plain_files() -> list[str]:
    # The folder of the facade has links to the other rooms: they are not followed.
    found = [
        path.relative_to(ROOT).as_posix()
        for room in PLAIN_ROOMS
        for path in (
            (ROOT / room).glob("*.py")
            if room == "fnop"
            else (ROOT / room).rglob("*.py")
        )
    ]
    return sorted(found)


def _openings(source: str) -> Iterator[str]:
    """The first lines of all docstrings and comments."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(
            node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        ) and (found := ast.get_docstring(node)):
            yield found.partition("\n")[0]
    before = ""
    for line in map(str.strip, source.splitlines()):
        if line.startswith("# ") and not before.startswith("#"):
            yield line[2:]
        before = line


@pytest.mark.parametrize("path", _plain_files())
def test_texts_begin_with_their_subject(path: str) -> None:
    """`The waits before ...` and `Refuse ...`, not `What is waited before ...`."""
    source = (ROOT / path).read_text()
    assert [each for each in _openings(source) if CLAUSE.match(each)] == []


def test_a_clause_is_found_in_a_docstring_and_in_a_comment() -> None:
    source = '"""What it is."""\n# So many.\nx = 1\n# The sum.\n# What goes on.\n'
    found = [each for each in _openings(source) if CLAUSE.match(each)]
    assert found == ["What it is.", "So many."]
