"""Digests of handlers' code: whether two operators would decide by the same code.

A digest covers what a function does: its instructions and constants, and the functions
and classes of its author that it refers to. For a value that a module holds, it covers
how the module's text makes the value. The value itself may differ in each process, or
later. Comments, file names and line numbers are not included. Python's instructions
differ between its versions, so only digests of the same version can be compared.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from msgspec import Struct

from fnop.core.handlers.declare.filters import Filters
from fnop.core.handlers.declare.handler import Handler
from fnop.interpreters.recording.format.sources import bindings_of, names_in
from fnop.interpreters.runtime.installed import is_installed

__all__ = ["KIND", "PYTHON", "code_digest", "digests_of"]

# Earlier releases made digests of the values in modules. These are of kind 1 and cannot
# be compared.
KIND = 2
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
# A proxy may answer with itself endlessly.
_WRAPPERS_MAX = 100
# A larger container is treated as data: only its size is part of the digest.
_ITEMS_MAX = 10_000
_PLAIN = (str, bytes, int, float, complex, bool, type(None))
# Options that decide when and how often a handler is called, in addition to its
# filters.
_OPTIONS = ("errors", "timeout", "retries", "backoff", "resync", "schedule")


def digests_of(handlers: tuple[Handler, ...]) -> dict[str, str]:
    """The digest of each handler's code and filters, by the handler's id.

    A handler has no digest if the author's values cannot be inspected. That error must
    not end a run.
    """
    parts: dict[str, list[str]] = {}
    strange: set[str] = set()
    for each in handlers:  # one may be declared several times, for several kinds
        try:
            parts.setdefault(each.id, []).extend(_parts_of(each))
        except Exception:  # the author's: repr(), a property, or unlimited depth
            strange.add(each.id)
    return {id: _hash(texts) for id, texts in parts.items() if id not in strange}


def _parts_of(handler: Handler) -> list[str]:
    options = (getattr(handler, name) for name in _OPTIONS)
    filters = (getattr(handler.filters, each) for each in Filters.__struct_fields__)
    code = handler.author or handler.fn
    return [handler.role.value, *_texts((code, *options, *filters))]


def code_digest(function: Callable[..., Any]) -> str:
    """A digest of what a function does: 12 hexadecimal digits.

    >>> code_digest(lambda x: x + 1) == code_digest(lambda x: x + 1)
    True
    >>> code_digest(lambda x: x + 1) == code_digest(lambda x: x + 2)
    False
    """
    return _hash(_texts((function,)))


def _hash(parts: list[str]) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=6).hexdigest()


def _texts(values: tuple[Any, ...]) -> list[str]:
    packages = {_package_name(each) for each in values if callable(each)}
    walk = _Walk(frozenset(packages))
    return [text for each in values for text in walk.value(each)]


def _module_name(value: Any) -> str:
    return str(getattr(_unwrapped_function(value), "__module__", None) or "")


def _unwrapped_function(value: Any) -> Any:
    """The function behind a method, a partial one, or a wrapper."""
    for _ in range(_WRAPPERS_MAX):
        match value:
            case MethodType():
                value = value.__func__
            case partial():
                value = value.func
            case _ if callable(value) and hasattr(value, "__wrapped__"):
                value = value.__wrapped__
            case _:
                return value
    return value


class _Walk:
    """The walk through everything a function refers to; each thing is visited once."""

    def __init__(self, packages: frozenset[str]) -> None:
        self._packages = packages  # the author's packages, which may be installed, too
        self._known: set[int] = set()
        self._within: set[int] = set()  # prevents endless recursion
        self._told: set[tuple[str, str]] = set()  # names from modules

    def value(self, value: Any) -> Iterator[str]:
        """The texts of a value; in full if it belongs to the author."""
        match value:
            case bool() | str() | bytes() | int() | float() | complex() | None | Enum():
                yield repr(value)
            case tuple() | list() | set() | frozenset() | dict():
                yield from self._items(value)
            case CodeType():
                yield from self._texts_of_code(value, {}, {})
            case partial():
                yield from self.value((value.func, value.args, value.keywords))
            case _ if is_dataclass(value) and not isinstance(value, type):
                yield type(value).__name__
                for each in fields(value):
                    yield from self.value(getattr(value, each.name))
            case Struct() if type(value).__module__.startswith("fnop."):
                yield type(value).__name__
                for name in value.__struct_fields__:
                    yield from self.value(getattr(value, name))
            case _:
                yield from self._texts_of_object(value)

    def _items(self, value: Any) -> Iterator[str]:
        yield f"{type(value).__name__} {len(value)}"
        if id(value) in self._within or len(value) > _ITEMS_MAX:
            return
        # Equal constants may be one object or several, depending on how Python loaded
        # them.
        self._within.add(id(value))
        yield from self._texts_of_items(value)
        self._within.remove(id(value))

    def _texts_of_items(self, value: Any) -> Iterator[str]:
        match value:
            case tuple() | list():
                for each in value:
                    yield from self.value(each)
            case set() | frozenset():
                yield from sorted(repr(each) for each in value)
            case _:
                for key, each in value.items():
                    yield repr(key) if isinstance(key, _PLAIN) else type(key).__name__
                    yield from self.value(each)

    def _texts_of_object(self, value: Any) -> Iterator[str]:
        bare = _unwrapped_function(value)
        name = str(getattr(bare, "__qualname__", type(bare).__qualname__))
        yield name if self._is_own(bare) else f"{_module_name(bare)}:{name}"
        if id(bare) in self._known or not self._is_own(bare):
            return
        self._known.add(id(bare))
        if isinstance(bare, FunctionType):
            yield from self._texts_of_function(bare)
        elif isinstance(bare, type):
            for key, each in vars(bare).items():
                if not key.startswith("__") or callable(each):
                    yield key
                    yield from self.value(_function_behind(each))
        if value is not bare and isinstance(value, FunctionType):
            yield from self._texts_of_function(
                value
            )  # a wrapper, such as one from a decorator

    def _is_own(self, value: Any) -> bool:
        """Whether the value is a function or a class of the author."""
        if not isinstance(value, FunctionType | type):
            return False
        module = sys.modules.get(_module_name(value))
        return module is None or self._is_authors(module)

    def _is_authors(self, module: ModuleType) -> bool:
        package = module.__name__.partition(".")[0]
        return package in self._packages or _is_loose(module)

    def _texts_of_function(self, function: FunctionType) -> Iterator[str]:
        cells = function.__closure__ or ()
        free = function.__code__.co_freevars
        held = {
            name: _cell_content(cell) for name, cell in zip(free, cells, strict=True)
        }
        yield from self.value((function.__defaults__, function.__kwdefaults__))
        yield from self._texts_of_code(function.__code__, held, function.__globals__)

    def _texts_of_code(
        self, code: CodeType, held: Mapping[str, Any], module: Mapping[str, Any]
    ) -> Iterator[str]:
        yield code.co_code.hex()
        yield " ".join(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        for each in code.co_consts:
            if isinstance(each, CodeType):
                yield from self._texts_of_code(each, held, module)
            else:
                yield from self.value(each)
        for name in (*code.co_names, *code.co_freevars):
            yield name
            found = module.get(name)
            if name in held:
                yield from self.value(held[name])
            elif isinstance(found, ModuleType) and self._is_authors(found):
                for each in code.co_names:  # including attributes that the code reads
                    yield from self._texts_of_global(vars(found), each)
            else:
                yield from self._texts_of_global(module, name)

    def _texts_of_global(self, module: Mapping[str, Any], name: str) -> Iterator[str]:
        """The texts of a name's value in a module."""
        if name not in module:
            return
        value, bindings = module[name], None
        if not (callable(value) or isinstance(value, ModuleType)):
            bindings = bindings_of(module, name)
        if bindings is None:
            yield from self.value(value)
            return
        told = str(module.get("__file__")), name
        if told in self._told:
            return
        self._told.add(told)
        for each in bindings:
            yield from self._texts_of_binding(module, name, each)

    def _texts_of_binding(
        self, module: Mapping[str, Any], name: str, statement: ast.stmt
    ) -> Iterator[str]:
        """The texts of a statement that makes a value, and of its references."""
        if isinstance(statement, ast.ImportFrom):
            origin = sys.modules.get(_origin(module, statement))
            if origin is not None and self._is_authors(origin):
                names = {
                    each.asname or each.name: each.name for each in statement.names
                }
                yield from self._texts_of_global(vars(origin), names[name])
                return
        yield ast.dump(statement)
        for each in names_in(statement):
            yield from self._texts_of_global(module, each)


def _origin(module: Mapping[str, Any], statement: ast.ImportFrom) -> str:
    """The name of the module that something is imported from."""
    if not statement.level:
        return statement.module or ""
    package = str(module.get("__package__") or "").split(".")
    parts = package[: len(package) - statement.level + 1]
    return ".".join([*parts, statement.module] if statement.module else parts)


def _package_name(value: Any) -> str:
    return _module_name(value).partition(".")[0]


def _is_loose(module: ModuleType) -> bool:
    """Whether a module is neither fnop's, nor Python's, nor of an installed package."""
    if module.__name__.partition(".")[0] == "fnop":
        return False
    file = getattr(module, "__file__", None)
    if file is None:
        return module.__name__ not in sys.builtin_module_names
    return not is_installed(file)


def _cell_content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the cell is not filled yet
        return None


def _function_behind(attribute: Any) -> Any:
    """The function of a method or a property."""
    match attribute:
        case staticmethod() | classmethod():
            return attribute.__func__
        case property():
            return attribute.fget
        case _:
            return attribute
