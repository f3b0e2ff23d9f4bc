"""`python -m bench.styles`: the lines of three operators by levels and by causes.

It counts lines of code, without blank lines, comments and docstrings. Parts that both
need are counted separately: manifests, and the functions that talk to the world. The
database is counted with other frameworks, too.
"""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path
from typing import NamedTuple

__all__ = ["DATABASES", "PAIRS", "Lines", "counted", "databases", "declared"]

ROOT = Path(__file__).resolve().parents[1]
PAIRS = {
    "19-database": "database.py",
    "20-tenants": "tenants.py",
    "21-records": "records.py",
}

FORMER, ELSEWHERE = ROOT / "bench" / "former", ROOT / "bench" / "elsewhere"
# The database operator, each time in all of its files.
DATABASES = {
    "fnop, levels": [ROOT / "examples" / "19-database" / "example.py"],
    "fnop, causes": [FORMER / "database.py"],
    "Kopf, a daemon": [ELSEWHERE / "kopf_children.py", ELSEWHERE / "kopf_database.py"],
    "Kopf, causes": [ELSEWHERE / "kopf_children.py", ELSEWHERE / "kopf_causes.py"],
    "Metacontroller": [ELSEWHERE / "metacontroller_database.py"],
}


class Lines(NamedTuple):
    """Lines of code by levels and by causes, with and without their common parts."""

    levels: int
    causes: int
    shared: int

    @property
    def share(self) -> float:
        return self.levels / self.causes

    @property
    def share_of_own(self) -> float:
        """The same without the functions that are equal in both."""
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


def databases() -> dict[str, tuple[int, int]]:
    """The lines of the database operators, and the lines that only each one has.

    The second number excludes common parts: functions that are the same in each, which
    are the manifests, and reading a password.
    """
    texts = {
        name: [file.read_text() for file in files] for name, files in DATABASES.items()
    }
    known = [
        {key: text for each in parts for key, text in functions(each).items()}
        for parts in texts.values()
    ]
    same = {
        text
        for name, text in known[0].items()
        if all(each.get(name) == text for each in known)
    }
    shared = sum(code_lines(text + "\n") for text in same)
    lines = {name: sum(map(code_lines, parts)) for name, parts in texts.items()}
    return {name: (found, found - shared) for name, found in lines.items()}


def declared() -> int:
    """The lines of the manifest that declares the hook to Metacontroller."""
    lines = (ELSEWHERE / "metacontroller.yaml").read_text().splitlines()
    return sum(bool(line.partition("#")[0].strip()) for line in lines)


def main() -> None:
    print(f"{'':12} {'levels':>6} {'causes':>6}  share  without what is shared")
    for example in PAIRS:
        found = counted(example)
        print(
            f"{example:12} {found.levels:6} {found.causes:6}  {found.share:5.0%}  "
            f"{found.levels - found.shared} of {found.causes - found.shared}: "
            f"{found.share_of_own:.0%}"
        )
    print("\nthe database, and without what all have")
    for name, (lines, own) in databases().items():
        print(f"{name:14} {lines:4} {own:4}")
    print(f"and {declared()} lines of YAML for Metacontroller")


if __name__ == "__main__":
    main()
