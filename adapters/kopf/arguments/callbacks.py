"""The types of handlers' functions, which some operators import for annotations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from fnop.core.handlers.declare.filters import all_, any_, none_, not_

__all__ = [
    "ActivityFn",
    "ChangingFn",
    "DaemonFn",
    "DelayFn",
    "IndexingFn",
    "MetaFilterFn",
    "SpawningFn",
    "TimerFn",
    "WatchingFn",
    "WebhookFn",
    "WhenFilterFn",
    "all_",
    "any_",
    "none_",
    "not_",
]

_Fn: TypeAlias = Callable[..., Any]
ActivityFn = ChangingFn = DaemonFn = DelayFn = IndexingFn = MetaFilterFn = _Fn
SpawningFn = TimerFn = WatchingFn = WebhookFn = WhenFilterFn = _Fn
