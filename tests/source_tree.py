"""The imports and bindings of fnop's source, read from its text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.simulations import ROOT


@cache
def names_in(file: str) -> frozenset[str]:
    """Everything that a module, or a class in it, binds; methods as Class.method."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / file).read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            inner = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            found |= {f"{node.name}.{each.name}" for each in inner}
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        if isinstance(node, ast.Dict):  # such as the settings of a command
            keys = [each.value for each in node.keys if isinstance(each, ast.Constant)]
            found |= {each for each in keys if isinstance(each, str)}
    return frozenset(found)


# Imports, as they are found, and not the trees of all modules, which are large.
@cache
def statements(source: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    return tuple(
        node
        for node in ast.walk(ast.parse(source.read_text(), source.name))
        if isinstance(node, ast.Import | ast.ImportFrom)
    )


def imports(source: Path) -> Iterator[tuple[int, str]]:
    for node in statements(source):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        else:
            assert node.level == 0, f"{source}:{node.lineno} relative import"
            yield node.lineno, node.module or ""


# Packages with wings: each wing may import those before it, and itself.
WINGS = {
    "core": (
        "kubernetes",
        "values",
        "api",
        "seam",
        "memory",
        "children",
        "peers",
        "handlers",
        "streams",
        "state",
        "objects",
        "admission",
        "operator",
    ),
    "core/handlers": ("declare", "program", "run"),
    "core/objects": ("decide", "report", "write", "attempt", "store", "execute"),
    "interpreters": (
        "runtime",
        "cluster",
        "explain",
        "recording",
        "simulation",
        "plan",
        "check",
        "shadow",
    ),
    "interpreters/cluster": (
        "values",
        "schema",
        "kinds",
        "validation",
        "apply",
        "storage",
        "admission",
        "requests",
        "access",
        "output",
        "api",
        "controllers",
    ),
    "interpreters/recording": (
        "identities",
        "redaction",
        "format",
        "model",
        "questions",
        "comparison",
        "replay",
    ),
    "interpreters/check": (
        "inputs",
        "state",
        "faults",
        "trials",
        "scripts",
        "admission",
        "incidents",
        "properties",
        "campaign",
    ),
    "adapters": (
        "common",
        "kubernetes",
        "definitions",
        "serving",
        "webhooks",
        "running",
        "recordings",
        "reports",
        "testing",
        "check",
        "generate",
        "kopf",
        "cli",
        "pyinstaller",
    ),
    "adapters/kopf": (
        *("arguments", "declaring", "running", "commands"),
        *("checking", "porting"),
    ),
}


def names_imported(source: Path) -> Iterator[str]:
    """The dotted names that a file imports, those inside of modules included.

    Imports for type checking count.
    """
    for node in statements(source):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from (f"{module}.{each.name}" for each in names)
            case _:
                pass
