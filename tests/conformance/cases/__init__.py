"""All conformance cases, topic by topic: every module here exports `CASES`.

It also exports `CRDS` if its cases need definitions that are installed before any of
them. `CRDS_136` are definitions that Kubernetes 1.20 would refuse.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from tests.conformance.suite import Case

__all__ = ["CASES", "CRDS", "CRDS_136", "TOPICS"]

TOPICS: dict[str, tuple[Case, ...]] = {}
CRDS: tuple[dict[str, Any], ...] = ()
CRDS_136: tuple[dict[str, Any], ...] = ()
for _found in iter_modules(__path__):
    _module = import_module(f"{__name__}.{_found.name}")
    TOPICS[_found.name] = tuple(_module.CASES)
    CRDS += tuple(getattr(_module, "CRDS", ()))
    CRDS_136 += tuple(getattr(_module, "CRDS_136", ()))
CASES = tuple(case for cases in TOPICS.values() for case in cases)
