"""The options of one call of `fnop check`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["CheckOptions"]


@dataclass(frozen=True)
class CheckOptions:
    """The options of one call, named as the command's parameters.

    `seconds` is the time limit. `answers` are recorded answers of functions, by name,
    which no option gives: `fnop replay --explore` takes them from a recording.
    """

    kopf: bool
    module: tuple[str, ...]
    crds: tuple[str, ...]
    objects: tuple[str, ...]
    script: str | None
    calls: tuple[str, ...]
    former: str | None
    leader_elect: bool
    depth: int | None
    randoms: int
    budget: int | None
    seconds: float | None
    fast: bool
    fail_fast: bool
    jobs: int
    shard: tuple[int, int]
    seed: int
    only: tuple[str, ...]
    without: tuple[str, ...]
    name: str
    save: str
    output: str
    junit: str | None
    results: str | None
    merge: str | None
    digests: bool
    quiet: bool
    answers: Mapping[str, Any] | None = None
