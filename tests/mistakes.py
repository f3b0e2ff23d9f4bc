"""Mistakes of authors: the error that one ends with, and manifests to make it with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

__all__ = ["called", "config", "pod", "said"]


def said(mistake: Callable[[], Any]) -> str:
    """The words that refuse the mistake."""
    with pytest.raises((TypeError, AttributeError, ValueError)) as caught:
        mistake()
    return str(caught.value)


def called(**_: Any) -> None: ...


def config(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def pod() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
