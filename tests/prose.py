"""The prose of the project: docstrings, comments and pages, as sentences."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.simulations import ROOT

# The rooms whose docstrings and comments are read.
ROOMS = ("adapters", "bench", "core", "effects", "fnop", "interpreters")

_CODE = re.compile(r"`[^`\n]*`|\"[^\"\n]*\"|https?://\S+|(?<=\])\([^)\s]*\)")
_FENCE = re.compile(r"```.*?```", re.DOTALL)
_DOCTEST = re.compile(
    r"^ *>>> .*(\n *\.\.\. .*)*(\n(?! *$)(?! *>>> ).*)*", re.MULTILINE
)
_END = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z`(*]|fnop\b)|\n\s*\n|\n\s*[-*|] |\|")


def sources() -> list[Path]:
    """The Python files of the rooms, without links and without generated projects."""
    return sorted(
        path
        for room in ROOMS
        for path in (
            (ROOT / room).glob("*.py")
            if room == "fnop"
            else (ROOT / room).rglob("*.py")
        )
        if "scaffold" not in path.parts
    )


def pages() -> list[Path]:
    """The pages at the top, and those of the documentation without the decisions."""
    docs = (e for e in (ROOT / "docs").rglob("*.md") if e.parent.name != "decisions")
    top = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
    return [*(ROOT / each for each in top), *sorted(docs)]


def prose_of(path: Path) -> Iterator[str]:
    """The texts of a file, without code."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        lines = _FENCE.sub("", text).split("\n")
        yield _CODE.sub("X", "\n".join(e for e in lines if not e.startswith("    ")))
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(
            node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        ) and (found := ast.get_docstring(node)):
            yield _CODE.sub("X", _DOCTEST.sub("", found))
    block: list[str] = []
    last = -1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or token.string.startswith(("#!", "# type")):
            continue
        if token.start[0] != last + 1 and block:
            yield _CODE.sub("X", " ".join(block))
            block = []
        last = token.start[0]
        block.append(token.string.lstrip("# "))
    if block:
        yield _CODE.sub("X", " ".join(block))


def sentences_of(text: str) -> list[str]:
    """The sentences of a text; items of lists and cells of tables count as such.

    >>> sentences_of("One two. Three:\\n\\n- four five\\n- six")
    ['One two.', 'Three:', 'four five', 'six']
    """
    found = (each.strip(" \n-*|") for each in _END.split(text))
    return [each for each in found if each]
