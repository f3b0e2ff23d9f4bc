"""The garbage collector in fnop's own processes."""

from __future__ import annotations

import gc

__all__ = ["calm_collector"]


def calm_collector() -> None:
    """Let the garbage collector run less often.

    States of operators and clusters are values that share values, with hardly any
    cycles. At Python's default thresholds, a sixth of the time goes into looking for
    cycles.
    """
    gc.set_threshold(20_000, 20, 50)
