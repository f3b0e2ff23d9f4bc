"""The clock and the chance of a simulated world, for the modules of an operator.

In these modules, the functions of the standard library that read the clock, sleep, or
draw random values are replaced. So a run is the same each time, and its time is
virtual. Other libraries keep the real ones.
"""

from __future__ import annotations

import asyncio
import base64
import datetime
import random
import secrets
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from fnop.adapters.kopf.checking.strands import HASTE, STRAND, waits_for_task
from fnop.interpreters.runtime.clock import VirtualClock

__all__ = ["simulate_values"]

# After this number of turns of the loop, a task waits for another one if it does so.
_TURNS = 3
# Draws random bytes; they are a secret if the second argument says so.
Draw = Callable[..., bytes]


def simulate_values(
    modules: Iterable[ModuleType], clock: VirtualClock, draw: Draw
) -> None:
    """Replace functions and modules, wherever a module has them as a global name."""
    found = {
        id(real): simulated
        for module, names in _simulated(clock, draw).items()
        for real, simulated in (
            (module, _Simulated(module, names)),
            *((getattr(module, name), each) for name, each in names.items()),
        )
    }
    for module in modules:
        for name, value in [*vars(module).items()]:
            if id(value) in found:
                setattr(module, name, found[id(value)])


class _Simulated(ModuleType):
    """A module with some names replaced."""

    def __init__(self, module: ModuleType, names: Mapping[str, Any]) -> None:
        super().__init__(module.__name__, module.__doc__)
        self.__dict__.update(names)
        self._real = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def _simulated(
    clock: VirtualClock, draw: Draw
) -> Mapping[ModuleType, Mapping[str, Any]]:
    """The names that are replaced in each module."""

    def wall() -> float:
        return clock.now().wall

    def mono() -> float:
        return clock.now().mono

    def token(size: int | None = None) -> bytes:
        return draw(secrets.DEFAULT_ENTROPY if size is None else size, secret=True)

    def urlsafe(size: int | None = None) -> str:
        return base64.urlsafe_b64encode(token(size)).rstrip(b"=").decode()

    def below(limit: int) -> int:
        return int.from_bytes(token(16)) % limit

    return {
        time: {
            "time": wall,
            "time_ns": lambda: int(wall() * 1e9),
            "monotonic": mono,
            "monotonic_ns": lambda: int(mono() * 1e9),
            "perf_counter": mono,
            "perf_counter_ns": lambda: int(mono() * 1e9),
            "sleep": _sleep,
            "gmtime": lambda at=None: time.gmtime(wall() if at is None else at),
            "localtime": lambda at=None: time.localtime(wall() if at is None else at),
            "strftime": lambda form, at=None: time.strftime(
                form, time.localtime(wall()) if at is None else at
            ),
        },
        asyncio: {"sleep": _asleep, "wait_for": _wait_for},
        datetime: {"datetime": _datetime_at(wall), "date": _date_at(wall)},
        uuid: {"uuid4": lambda: uuid.UUID(bytes=draw(16), version=4)},
        secrets: {
            "token_bytes": token,
            "token_hex": lambda size=None: token(size).hex(),
            "token_urlsafe": urlsafe,
            "randbelow": below,
            "choice": lambda several: several[below(len(several))],
        },
        random: {"SystemRandom": random.Random},
    }


def _sleep(seconds: float) -> None:
    """Let virtual time pass in a handler, no time in an activity, or else real time."""
    strand, haste = STRAND.get(None), HASTE.get(None)
    if strand is None or seconds <= 0:
        is_skipped = haste is not None and haste.skips(seconds)
        time.sleep(0 if is_skipped else seconds)
    else:
        strand.sleep(seconds)


async def _asleep(delay: float, result: Any = None) -> Any:
    """Let virtual time pass in a handler, no time in an activity, or else real time."""
    strand, haste = STRAND.get(None), HASTE.get(None)
    if strand is None or delay <= 0:
        is_skipped = haste is not None and haste.skips(delay)
        return await asyncio.sleep(0 if is_skipped else delay, result)
    await strand.asleep(delay)
    return result


async def _wait_for(awaited: Awaitable[Any], timeout: float | None) -> Any:
    """Wait in virtual time, in a handler, if it waits for another task.

    An answer from a socket comes in real time.
    """
    strand = STRAND.get(None)
    if strand is None or timeout is None or timeout <= 0:
        return await asyncio.wait_for(awaited, timeout)
    work = asyncio.ensure_future(awaited)
    try:
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        if not waits_for_task(work):
            return await asyncio.wait_for(work, timeout)
        pause = asyncio.ensure_future(strand.asleep(timeout))
        try:
            await asyncio.wait((work, pause), return_when=asyncio.FIRST_COMPLETED)
        finally:
            pause.cancel()
        if work.done():
            return work.result()
    finally:
        work.cancel()
    await asyncio.wait((work,))
    raise TimeoutError


def _datetime_at(wall: Callable[[], float]) -> type:
    """The class `datetime` with a virtual clock."""
    real = datetime.datetime

    def now(_: type, tz: datetime.tzinfo | None = None) -> datetime.datetime:
        return real.fromtimestamp(wall(), tz)

    def utcnow(_: type) -> datetime.datetime:
        return real.fromtimestamp(wall(), datetime.UTC).replace(tzinfo=None)

    return _class_like(real, {"now": now, "today": now, "utcnow": utcnow})


def _date_at(wall: Callable[[], float]) -> type:
    """The class `date` with a virtual clock."""
    real = datetime.date

    def today(_: type) -> datetime.date:
        return real.fromtimestamp(wall())

    return _class_like(real, {"today": today})


def _class_like(real: type, methods: Mapping[str, Callable[..., Any]]) -> type:
    """A class with other class methods; its objects are those of the real class."""

    class Like(type):
        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, real)

        def __subclasscheck__(cls, other: type) -> bool:
            return issubclass(other, real)

    def new(_: type, *given: Any, **named: Any) -> Any:
        return real(*given, **named)

    names: dict[str, Any] = {name: classmethod(each) for name, each in methods.items()}
    return Like(real.__name__, (real,), {**names, "__new__": new})
