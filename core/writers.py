"""The familiar arguments `patch` and `logger`: they only collect.

From outside the handler stays a function: what it wrote comes out with its
other effects when the attempt ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fnop.effects import Log, Patch, Witness

__all__ = ["LogWriter", "PatchWriter", "Stopped"]


class Stopped:
    """Whether a daemon is to stop: false until it is told so, and then with a reason.

    >>> bool(Stopped())
    False
    """

    __slots__ = ("reason",)

    def __init__(self) -> None:
        self.reason: str = ""

    def __bool__(self) -> bool:
        return bool(self.reason)

    def is_set(self) -> bool:
        """The same, by the name that events of threads and tasks have for it."""
        return bool(self.reason)

    def __getattr__(self, name: str) -> Any:
        hint = "; await fnop.sleep(...), which is cut short" if name == "wait" else ""
        raise AttributeError(f"stopped has no attribute {name!r}{hint}")

    def __repr__(self) -> str:
        return f"<stopped: {self.reason or 'no'}>"


class _Nest(dict[str, Any]):
    """A mapping whose missing keys are further mappings: `patch.status["a"]["b"]`."""

    def __missing__(self, key: str) -> Any:
        found = self[key] = _Nest()
        return found


class PatchWriter(_Nest):
    """Collects a merge patch of the handled object.

    >>> patch = PatchWriter()
    >>> patch.status["phase"] = "Ready"
    >>> patch.effect().merge
    {'status': {'phase': 'Ready'}}
    """

    @property
    def metadata(self) -> Any:
        return self["metadata"]

    meta = metadata

    @property
    def labels(self) -> Any:
        return self["metadata"]["labels"]

    @property
    def annotations(self) -> Any:
        return self["metadata"]["annotations"]

    @property
    def spec(self) -> Any:
        return self["spec"]

    @property
    def status(self) -> Any:
        return self["status"]

    def effect(self) -> Patch | None:
        """The patch that was written, or None."""
        found = _written(self)
        return Patch(merge=found) if found else None


def _written(nest: dict[str, Any]) -> dict[str, Any]:
    """What was assigned, without the mappings that reading alone has made."""
    found = {}
    for key, value in nest.items():
        if isinstance(value, _Nest):
            value = _written(value)
            if not value:
                continue
        found[key] = value
    return found


class LogWriter:
    """Takes log lines, with the methods of a standard logger."""

    def __init__(self, take: Callable[[Log], None]) -> None:
        self._take = take

    def _log(self, level: str, message: Any, args: tuple[Any, ...]) -> None:
        text = str(message)
        if args:
            try:
                text = text % (args[0] if isinstance(args[0], dict) else args)
            except (TypeError, ValueError, KeyError):
                text = " ".join((text, *map(str, args)))
        # A line that is collected is not an effect that somebody could lose.
        with Witness.looking_away():
            self._take(Log(level, text))

    def debug(self, message: Any, *args: Any, **_: Any) -> None:
        self._log("debug", message, args)

    def info(self, message: Any, *args: Any, **_: Any) -> None:
        self._log("info", message, args)

    def warning(self, message: Any, *args: Any, **_: Any) -> None:
        self._log("warning", message, args)

    warn = warning

    def error(self, message: Any, *args: Any, **_: Any) -> None:
        self._log("error", message, args)

    exception = critical = error
