"""Fixtures of the tests of Kopf's API on fnop."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from fnop.adapters.kopf.declaring import lifecycles, registry as registries
from fnop.adapters.kopf.declaring.registry import OperatorRegistry


@pytest.fixture(autouse=True)
def default_registry(monkeypatch: pytest.MonkeyPatch) -> OperatorRegistry:
    """An empty registry, and the default lifecycle, for one test."""
    found = OperatorRegistry()
    monkeypatch.setattr(registries.OperatorRegistry, "default", found)
    monkeypatch.setattr(lifecycles, "_default", [lifecycles.asap])
    return found


@pytest.fixture
def registry() -> OperatorRegistry:
    """A registry for the handlers of one operator."""
    return OperatorRegistry()


@pytest.fixture
def diary() -> list[Any]:
    """Where handlers note that they were called."""
    return []


@pytest.fixture
def restored_log() -> Iterator[None]:
    """Restore the log of the process, which commands configure."""
    root, other = logging.getLogger(), logging.getLogger("asyncio")
    before = root.level, root.handlers[:], other.level, other.propagate
    yield
    root.level, root.handlers[:], other.level, other.propagate = before


@pytest.fixture
def without_kopf() -> Iterator[None]:
    """Let this process seem to have never imported Kopf, for one test."""
    finders = [*sys.meta_path]
    kopf = _kopf_modules()
    for name in kopf:
        del sys.modules[name]
    yield
    sys.meta_path[:] = finders
    for name in _kopf_modules():
        del sys.modules[name]
    sys.modules.update(kopf)


def _kopf_modules() -> dict[str, ModuleType]:
    return {
        name: module
        for name, module in sys.modules.items()
        if name == "kopf" or name.startswith("kopf.")
    }
