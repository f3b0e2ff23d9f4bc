"""Doctests: the examples in docstrings hold."""

from __future__ import annotations

import doctest
import importlib

import pytest

from tests.simulations import ROOT

MODULES = [
    ".".join(("fnop", *source.relative_to(ROOT).with_suffix("").parts))
    for room in ("core", "effects", "interpreters", "adapters")
    for source in sorted((ROOT / room).rglob("*.py"))
    if source.stem != "__init__" and ">>> " in source.read_text()
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_hold(name: str) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=flags).failed == 0
