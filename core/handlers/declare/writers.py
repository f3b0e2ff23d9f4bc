"""The arguments `patch`, `logger` and `stopped`: the writers only collect.

From outside, the handler is still a function: its writes come out with its other
effects when the attempt ends.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar, NoReturn, TypedDict, Unpack

from msgspec import Struct

from fnop.core.values.callables import is_awaited, takes_values
from fnop.core.values.errors import as_unicode
from fnop.effects import Log, Patch, Witness
from fnop.effects.builders import wait
from fnop.effects.effects import line_of
from fnop.effects.names import check_marks
from fnop.effects.values import freeze_json, freeze_written, thaw_json, type_name

__all__ = [
    "DaemonStoppingReason",
    "LogWriter",
    "Nest",
    "PatchWriter",
    "Stopped",
    "Transform",
    "texts",
]


class DaemonStoppingReason(StrEnum):
    """The reasons why a daemon is to stop, as in `stopped.reason`.

    >>> DaemonStoppingReason.RESOURCE_DELETED == "resource_deleted"
    True
    """

    FILTERS_MISMATCH = "filters_mismatch"
    RESOURCE_DELETED = "resource_deleted"
    OPERATOR_EXITING = "operator_exiting"
    OPERATOR_PAUSING = "operator_pausing"


class Stopped:
    """The argument `stopped` of daemons and timers: true once the daemon is to stop.

    `stopped.reason` is then one of `DaemonStoppingReason`; before that it is "". `await
    stopped.wait(10)` waits for 10 seconds, or until the daemon is to stop if that is
    earlier. It returns whether the daemon is to stop.

    >>> bool(Stopped())
    False
    """

    __slots__ = ("reason",)

    # An effect like any other, which must be awaited.
    wait = staticmethod(wait)

    def __init__(self) -> None:
        self.reason: str = ""

    def __bool__(self) -> bool:
        return bool(self.reason)

    def is_set(self) -> bool:
        """Whether the daemon is to stop; threading events have this method, too."""
        return bool(self.reason)

    def __repr__(self) -> str:
        return f"<stopped: {self.reason or 'no'}>"


class Nest(dict[str, Any]):
    """A mapping whose missing keys are further mappings: `patch.status["a"]["b"]`.

    A copy of it is a plain mapping. `lines` are the author's lines that wrote its keys.
    fnop checks their values at the end, when the mapping is complete.
    """

    __slots__ = ("lines",)
    lines: dict[Any, str]

    def __init__(self, *fields: Any, **more: Any) -> None:
        super().__init__(*fields, **more)
        object.__setattr__(self, "lines", {})

    def _add_nest(self, key: str, nest: Nest) -> Nest:
        super().__setitem__(key, nest)
        return nest

    def __missing__(self, key: str) -> Any:
        return self._add_nest(key, Nest())

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        self.lines[key] = line_of(sys._getframe(1))

    def update(self, *others: Any, **more: Any) -> None:
        """Write several fields, as a `dict` does."""
        found = dict(*others, **more)
        super().update(found)
        self.lines.update(dict.fromkeys(found, line_of(sys._getframe(1))))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the field as this patch writes it; write the default if it was not."""
        if key not in self:
            super().__setitem__(key, default)
            self.lines[key] = line_of(sys._getframe(1))
        return self[key]

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {key: thaw_json(value) for key, value in self.items()}

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)

    def __getattr__(self, name: str) -> NoReturn:
        _refuse_attribute(name)

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(getattr(type(self), name, None), property):
            raise AttributeError(
                f"the {name} of a patch is not assigned as a whole: write its keys, as "
                f"in patch.{name}['key'] = ..., or patch.{name}.update(...)"
            )
        _refuse_attribute(name)

    def __delitem__(self, key: str) -> None:
        self.pop(key)

    def pop(self, key: str, *default: Any) -> Any:
        """Take back a written field; `KeyError` if it was not written."""
        if not default and key not in self:
            raise KeyError(
                f"this patch does not write {key!r}; to remove it from the object, set "
                "it to None"
            )
        return super().pop(key, *default)


def _refuse_attribute(name: str) -> NoReturn:
    raise AttributeError(
        f"a patch has no attribute {name!r}: its fields are keys, as in "
        "patch.status['phase'] = 'Ready', and a list is written as a whole"
    )


class _Metadata(Nest):
    """The metadata of a patch: `patch.metadata.labels["a"]`."""

    __slots__ = ()

    @property
    def labels(self) -> Any:
        return self["labels"]

    @property
    def annotations(self) -> Any:
        return self["annotations"]


class Transform(Struct, frozen=True):
    """A change of the handled object by a function."""

    change: Callable[[dict[str, Any]], object]
    # The attributes of a `Patch`: a transform has neither of them.
    merge: ClassVar[None] = None
    json: ClassVar[tuple[Any, ...]] = ()


class PatchWriter(Nest):
    """The argument `patch`: it collects changes of the handled object.

    Its keys and attributes (`spec`, `status`, `metadata`, `labels`, `annotations`)
    build a JSON merge patch; None removes a field. All changes are written together
    when the attempt ends.

    A function in `fns` gets the object as it is at the time of the write, as a mutable
    copy. It changes the copy in place; its result is ignored. After a conflict it is
    called again, with the object as it is then.

    >>> patch = PatchWriter()
    >>> patch.status["phase"] = "Ready"
    >>> patch.effect().merge
    {'status': {'phase': 'Ready'}}
    >>> patch.fns.append(lambda body: body["spec"]["hosts"].remove("gone"))
    """

    def __missing__(self, key: str) -> Any:
        return self._add_nest(key, _Metadata() if key == "metadata" else Nest())

    def __setattr__(self, name: str, value: object) -> None:
        if name != "fns":
            super().__setattr__(name, value)
        object.__setattr__(self, name, value)

    @cached_property
    def fns(self) -> list[Callable[[dict[str, Any]], object]]:
        return []

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
        """Return the collected patch, or None.

        Raises `ValueError` for labels and annotations that are not texts. Raises
        `TypeError` or `ValueError` for values that are not JSON. The error names the
        line that wrote the value.
        """
        found = _assigned_fields(self)
        try:
            check_marks(found.get("metadata"), "patch")
            return Patch(merge=found) if found else None
        except (TypeError, ValueError) as problem:
            where = next(filter(None, _refused_lines(self, ())), "")
            if not where:
                raise
            raise type(problem)(f"{problem}; it was written at {where}") from None

    def changes(self) -> tuple[Patch | Transform, ...]:
        """Return all collected changes, in the order of their application.

        Raises `TypeError` for a value that is neither JSON nor a function.
        """
        patch = self.effect()
        transforms = tuple(map(_transform_of, self.__dict__.get("fns", ())))
        return transforms if patch is None else (patch, *transforms)


def texts(given: Iterable[object]) -> tuple[str, ...]:
    """The values that were appended to the argument `warnings`, as texts.

    >>> texts(["no", 1])
    ('no', '1')
    """
    return tuple(as_unicode(str(each)) for each in given)


def _transform_of(change: Any) -> Transform:
    is_plain = callable(change) and not is_awaited(change)
    if not is_plain or not takes_values(change, 1):
        raise TypeError(
            "patch.fns takes plain functions of one argument, the object, which they "
            f"change, not {type_name(change)}"
        )
    return Transform(change)


def _assigned_fields(nest: dict[str, Any]) -> dict[str, Any]:
    """The assigned fields, without empty mappings that only reading has created."""
    found = {}
    for key, value in nest.items():
        if isinstance(value, Nest):
            value = _assigned_fields(value)
            if not value:
                continue
        found[key] = value
    return found


def _refused_lines(nest: Nest, path: tuple[str, ...]) -> Iterator[str]:
    """The lines that wrote a value that is refused, also if written alone."""
    for key, value in nest.items():
        if isinstance(value, Nest):
            yield from _refused_lines(value, (*path, key))
            continue
        alone: Any = {key: value}
        for part in reversed(path):
            alone = {part: alone}
        try:
            check_marks(alone.get("metadata"), "patch")
            freeze_written(alone, "patch")
        except (TypeError, ValueError):
            yield nest.lines.get(key, "")


class _More(TypedDict, total=False):
    """The options of a standard logger's methods; only the first two have an effect."""

    exc_info: Any
    extra: Mapping[str, Any] | None
    stack_info: bool
    stacklevel: int


def _json_or_text(value: Any) -> Any:
    """Return a value of a log line's field: JSON as it is, anything else as text.

    >>> _json_or_text({"size": 1}), _json_or_text({1}), _json_or_text(float("nan"))
    ({'size': 1}, '{1}', 'nan')
    """
    try:
        return freeze_json(value, "extra")
    except (TypeError, ValueError):
        return as_unicode(str(value))


class LogWriter:
    """The argument `logger`: it takes log lines, with the methods of a standard logger.

    Each method takes a message, arguments for its `%` signs, `exc_info=`, and `extra=`.
    The fields of `extra=` appear in JSON logs, values that are not JSON as texts. The
    lines are logged when the handler reaches its next `await`, or its end; `take` gets
    each of them.

        def created(logger, name, **_):
            logger.info("%s is there", name)
    """

    def __init__(self, take: Callable[[Log], None]) -> None:
        self._take = take

    def _write_line(
        self,
        level: str,
        message: Any,
        args: tuple[Any, ...],
        exc_info: Any = None,
        extra: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> None:
        text = str(message)
        if args:
            try:
                text = text % (args[0] if isinstance(args[0], dict) else args)
            except (TypeError, ValueError, KeyError):
                text = " ".join((text, *map(str, args)))
        fields = {
            str(key): _json_or_text(value) for key, value in (extra or {}).items()
        }
        # A collected line is not an effect that the author could lose.
        with Witness.looking_away():
            self._take(Log(level, as_unicode(text), fields, _exception_of(exc_info)))

    def debug(self, message: Any, *args: Any, **more: Unpack[_More]) -> None:
        self._write_line("debug", message, args, **more)

    def info(self, message: Any, *args: Any, **more: Unpack[_More]) -> None:
        self._write_line("info", message, args, **more)

    def warning(self, message: Any, *args: Any, **more: Unpack[_More]) -> None:
        self._write_line("warning", message, args, **more)

    def error(self, message: Any, *args: Any, **more: Unpack[_More]) -> None:
        self._write_line("error", message, args, **more)

    def exception(self, message: Any, *args: Any, **more: Unpack[_More]) -> None:
        more.setdefault("exc_info", True)
        self._write_line("error", message, args, **more)

    def log(self, level: int, message: Any, *args: Any, **more: Unpack[_More]) -> None:
        found = next((name for least, name in _LEVELS if level >= least), "debug")
        self._write_line(found, message, args, **more)

    warn, critical, fatal = warning, error, error

    # Code that was written for a standard logger reads these. The code that writes the
    # lines decides which levels are shown.

    name = "fnop.objects"
    level = 10

    @property
    def logger(self) -> LogWriter:
        """Return the logger itself, as a `logging.LoggerAdapter` does."""
        return self

    @property
    def extra(self) -> Mapping[str, Any]:
        """No fields: fnop adds the object's fields when it writes the lines."""
        return {}

    def isEnabledFor(self, level: int) -> bool:
        """True: the logger takes every line."""
        return True

    def getEffectiveLevel(self) -> int:
        """The lowest level that exists."""
        return self.level

    def setLevel(self, level: Any) -> None:
        """Do nothing: `--verbose` and similar options decide."""

    def hasHandlers(self) -> bool:
        """True: the lines are written."""
        return True


# The numbers of the standard library's levels.
_LEVELS = ((40, "error"), (30, "warning"), (20, "info"))


def _exception_of(exc_info: Any) -> BaseException | None:
    """The exception that `exc_info=` of a standard logger means."""
    if isinstance(exc_info, tuple):
        exc_info = exc_info[1]
    if isinstance(exc_info, BaseException):
        return exc_info
    return sys.exception() if exc_info else None
