"""The cost of work, counted in calls: no load on the machine changes it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType

__all__ = ["calls_in"]


def calls_in(work: Callable[[], object]) -> int:
    """Count the functions, also those in C, that this thread calls in the meantime.

    The garbage collector is off: it would run finalizers of other tests.
    """
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    former, collects = sys.getprofile(), gc.isenabled()
    gc.disable()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(former)
        if collects:
            gc.enable()
    return count
