"""`python -m bench.styles`: the lines of three operators by levels and by causes.

Counted are lines of code: no blank lines, comments and docstrings. What both have to
say is told apart: manifests, and the functions that talk to the world.
"""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path
from typing import NamedTuple

__all__ = ["PAIRS", "Lines", "counted"]

ROOT = Path(__file__).resolve().parents[1]
PAIRS = {
    "19-database": "database.py",
    "20-tenants": "tenants.py",
    "21-records": "records.py",
}


class Lines(NamedTuple):
    """Lines of code by levels and by causes, with and without what both have."""

    levels: int
    causes: int
    shared: int

    @property
    def share(self) -> float:
        return self.levels / self.causes

    @property
    def share_of_own(self) -> float:
        """The same without the functions that are the same in both."""
        return (self.levels - self.shared) / (self.causes - self.shared)


def code_lines(text: str) -> int:
    """The lines with code in a module, or a part of one.

    >>> code_lines('# no\\n\\ndef f():\\n    "neither"\\n    return 1\\n')
    2
    """
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE}
    skipped |= {tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    found: set[int] = set()
    for each in tokenize.generate_tokens(io.StringIO(text).readline):
        if each.type not in skipped:
            found |= {*range(each.start[0], each.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if ast.get_docstring(node) is not None and first is not None:
                assert first.end_lineno is not None
                found -= {*range(first.lineno, first.end_lineno + 1)}
    return len(found)


def functions(text: str) -> dict[str, str]:
    """The functions of a module that no decorator has, by name."""
    return {
        node.name: ast.get_source_segment(text, node) or ""
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and not node.decorator_list
    }


def counted(example: str) -> Lines:
    """The lines of an example in both styles."""
    levels = (ROOT / "examples" / example / "example.py").read_text()
    causes = (ROOT / "bench" / "former" / PAIRS[example]).read_text()
    ours, theirs = functions(levels), functions(causes)
    same = (text for name, text in ours.items() if theirs.get(name) == text)
    shared = sum(code_lines(text + "\n") for text in same)
    return Lines(code_lines(levels), code_lines(causes), shared)


def main() -> None:
    print(f"{'':12} {'levels':>6} {'causes':>6}  share  without what is shared")
    for example in PAIRS:
        found = counted(example)
        print(
            f"{example:12} {found.levels:6} {found.causes:6}  {found.share:5.0%}  "
            f"{found.levels - found.shared} of {found.causes - found.shared}: "
            f"{found.share_of_own:.0%}"
        )


if __name__ == "__main__":
    main()
