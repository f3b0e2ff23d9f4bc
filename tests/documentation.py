"""The pages of the documentation, and the Python in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.simulations import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


# The tutorial's pages build on each other: test_tutorial follows them.
ALONE = [each for each in PAGES if each.parent.name != "tutorial"]


def title(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(text: str) -> list[str]:
    """The Python in a page."""
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def manifests(text: str) -> Iterator[dict[str, Any]]:
    """The manifests in a page, in YAML or in its Python.

    Names and texts that only a run knows are "example"; other such fields are left out.
    """
    for block in re.findall(r"^```ya?ml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for found in yaml.safe_load_all(block):
            if isinstance(found, dict) and {"apiVersion", "kind"} <= found.keys():
                yield found
    for block in re.findall(r"^```py\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        tree = ast.parse(block)
        names = {
            target.id: node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            found = _literal(node, names) if isinstance(node, ast.Dict) else {}
            if isinstance(found, dict) and {"apiVersion", "kind"} <= found.keys():
                yield found


_UNKNOWN = object()
# Fields of texts: whatever a run has there, the object is accepted with another one.
_TEXTS = ("generateName", "image", "name")


def _literal(node: ast.expr, names: Mapping[str, ast.expr]) -> Any:
    """The value of an expression, as far as the source shows it; or `_UNKNOWN`."""
    match node:
        case ast.Constant():
            return node.value
        case ast.JoinedStr():
            return "example"
        case ast.Name(id=name) if name in names:
            others = {key: each for key, each in names.items() if key != name}
            return _literal(names[name], others)
        case ast.List():
            found = [_literal(each, names) for each in node.elts]
            return [each for each in found if each is not _UNKNOWN]
        case ast.Dict():
            return _mapping(node, names)
        case _:
            return _UNKNOWN


def _mapping(node: ast.Dict, names: Mapping[str, ast.expr]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        inner = _literal(value, names)
        if key is None:
            found |= inner if isinstance(inner, dict) else {}
            continue
        name = _literal(key, names)
        if inner is _UNKNOWN and name in _TEXTS:
            inner = "example"
        if inner is not _UNKNOWN:
            found[str(name)] = inner
    return found
