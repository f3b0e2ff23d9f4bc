"""Coroutines that a handler has created and dropped: their work is lost.

When Python frees a coroutine that was never awaited, it prints a warning on standard
error. A handler that forgets an `await` before a helper of its own would succeed with
nothing done, like one that drops an effect (R3). The core is informed, and fails the
attempt. The moment is the same in each run and replay, since Python counts references.
A coroutine that only the garbage collector has found does not belong to any drive.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from types import CoroutineType
from typing import Any

from fnop.effects import Witness

__all__ = ["watch_coroutines"]

_Told = Callable[[Any], None]
_installed = False


def watch_coroutines() -> None:
    """Let the witness of a drive see the coroutines that are dropped in it.

    Python warns of all others as usual. It is done once for the process. Python calls
    the function of this name for each such coroutine. Filters and
    `warnings.showwarning` come after it, and would let only the first one through.
    """
    global _installed
    if not _installed:
        _installed = True
        name = "_warn_unawaited_coroutine"
        setattr(warnings, name, _hook_for(getattr(warnings, name)))


def _hook_for(otherwise: _Told) -> _Told:
    def tell(
        coroutine: CoroutineType[Any, Any, Any],
        # Bound here, because at the end of the process the module is empty.
        witnesses: Any = Witness.current,
        is_garbage: Callable[[Any], bool] = gc.is_finalized,
    ) -> None:
        witness = witnesses.get()
        if witness is None or not witness.is_driven or is_garbage(coroutine):
            otherwise(coroutine)
        else:
            witness.saw_dropped(coroutine)

    return tell
