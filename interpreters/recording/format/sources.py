"""The values of a module's names, as far as the module's text defines them.

The value of a name may differ in each process, such as the result of `time.time()`. It
may also change while the operator runs, such as a mapping. The text is the same.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

__all__ = ["bindings_of", "names_in"]

# Statements that bind names in an inner scope, not in the module.
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_KEPT = 64


def bindings_of(module: Mapping[str, Any], name: str) -> tuple[ast.stmt, ...] | None:
    """The statements that bind a name in a module, given the module's globals.

    None if the module's text cannot be read, or does not bind the name.
    """
    file = module.get("__file__")
    try:
        found = os.stat(str(file))
        names = _read_bindings(str(file), found.st_mtime_ns, found.st_size)
    except (OSError, SyntaxError, ValueError):
        return None
    return names.get(name)


@lru_cache(_KEPT)
def _read_bindings(
    file: str, _changed: int, _size: int
) -> dict[str, tuple[ast.stmt, ...]]:
    with open(file, "rb") as text:
        tree = ast.parse(text.read())
    found: dict[str, tuple[ast.stmt, ...]] = {}
    for statement in _statements(tree.body):
        for name in _bound_names(statement):
            found[name] = (*found.get(name, ()), statement)
    return found


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, including those under a condition."""
    for each in body:
        if isinstance(each, _INNER):
            continue
        yield each
        for name in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(each, name, []))
        for handler in getattr(each, "handlers", []):
            yield from _statements(handler.body)


def _bound_names(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.Assign(targets=targets):
            found: list[ast.expr] = targets
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            found = [target]
        case ast.ImportFrom(names=names):
            yield from (each.asname or each.name for each in names)
            return
        case _:
            return
    for each in found:
        for inner in ast.walk(each):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                yield inner.id


def names_in(statement: ast.stmt) -> list[str]:
    """The names that a statement reads.

    >>> names_in(ast.parse("a = b + c(d)").body[0])
    ['b', 'c', 'd']
    """
    found = {
        each.id
        for each in ast.walk(statement)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
    }
    return sorted(found)
