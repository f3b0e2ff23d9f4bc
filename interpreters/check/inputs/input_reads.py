"""The looks of an author's functions at the inputs of a handler, line by line.

There are two kinds of looks. The author's code fetches an input by its name, as in
`spec["size"]`, or does anything with it: compares it, adds it, tests its truth. The
objects that the code gets report the first kind. A value in the input's place that
fails on every operation reports the second. A library's own reading is not a look, for
example when it reads a whole spec into a model.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import CodeType, FrameType
from typing import Any, NoReturn

from msgspec import Struct

from fnop.core.handlers.run.arguments import Writers, arguments_for
from fnop.effects import Call, List
from fnop.effects.values import ReadOnlyDict, read_only
from fnop.interpreters.check.inputs.redeciding import Attempt, Inputs, Path
from fnop.interpreters.runtime.installed import is_library

__all__ = ["Look", "below", "fetched", "looks_at", "unsaid"]

# The number of elements of a list that are searched.
ELEMENTS_MAX = 3
# The fields of metadata whose content counts as an input.
_META = ("labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp")
_HEAD = ("apiVersion", "kind", "metadata")


class Look(Struct, frozen=True):
    """A look at an input: the author's function, and the line."""

    code: CodeType
    line: int


def looks_at(attempt: Attempt) -> Iterator[tuple[Path, Look]]:
    """The inputs of an attempt that the author's code looks at, only the innermost."""
    inputs = attempt.inputs
    by_name = fetched(attempt, inputs)

    def looks(path: Path) -> list[tuple[Path, Look]]:
        look = by_name.get(path) or _first_look_at(attempt, inputs, path)
        if look is None:
            return []
        inner = [e for each in below(path, inputs.at(path)) for e in looks(each)]
        return inner or [(path, look)]

    for path in _roots(attempt, inputs):
        if path[0] == "object" or _first_look_at(attempt, inputs, path):
            for each in below(path, inputs.at(path)):
                yield from looks(each)


def _roots(attempt: Attempt, inputs: Inputs) -> Iterator[Path]:
    """The parts of objects below which fields are searched."""
    if isinstance(inputs.object, dict):
        yield from _stanzas(("object",), inputs.object)
    for number, asked in enumerate(attempt.asked):
        answer = inputs.answers[number]
        if isinstance(answer, dict) and not isinstance(asked.effect, Call):
            yield from _stanzas(("answers", number), answer)
        elif isinstance(answer, list) and isinstance(asked.effect, List):
            for place, each in enumerate(answer[:ELEMENTS_MAX]):
                yield from _stanzas(("answers", number, place), each)


def _stanzas(path: Path, found: Mapping[str, Any]) -> Iterator[Path]:
    yield from ((*path, key) for key in found if key not in _HEAD)
    meta = found.get("metadata") or {}
    yield from ((*path, "metadata", key) for key in _META if key in meta)


def below(path: Path, value: Any) -> Iterator[Path]:
    """The paths of the fields, or of the first elements, of a value.

    >>> [*below(("object",), {"a": 1})], [*below(("answers",), [1, 2])]
    ([('object', 'a')], [('answers', 0), ('answers', 1)])
    """
    if isinstance(value, dict):
        yield from ((*path, key) for key in value)
    elif isinstance(value, list):
        yield from ((*path, place) for place in range(min(len(value), ELEMENTS_MAX)))


def _look(frame: FrameType | None) -> Look | None:
    """The author's function that looks; None if a library looks."""
    while frame is not None:
        if not str(frame.f_globals.get("__name__")).startswith("fnop."):
            code = frame.f_code
            is_theirs = is_library(code.co_filename)
            return None if is_theirs else Look(code, frame.f_lineno)
        frame = frame.f_back
    return None


# ------------------------------------------------------------- fetched by its name


def fetched(attempt: Attempt, inputs: Inputs) -> dict[Path, Look]:
    """The fields that the author's code requests by name, existing or not."""
    looks: dict[Path, Look | None] = {}

    def report(path: Path) -> None:
        looks.setdefault(path, _look(sys._getframe(2)))

    for path in _roots(attempt, inputs):
        inputs = inputs.with_(path, _noticing_value(inputs.at(path), path, report))
    attempt.decided(inputs)
    return {path: look for path, look in looks.items() if look is not None}


def unsaid(attempt: Attempt) -> Iterator[Path]:
    """The parts of metadata that an object of an attempt could also have had."""
    inputs = attempt.inputs
    objects: list[Path] = [("object",)]
    objects += [("answers", number) for number in range(len(attempt.asked))]
    for path in objects:
        found = inputs.at(path)
        meta = found.get("metadata") if isinstance(found, dict) else None
        if isinstance(meta, dict):
            names = (each for each in _META if each not in meta)
            yield from ((*path, "metadata", each) for each in names)


def _noticing_value(value: Any, path: Path, report: Callable[[Path], None]) -> Any:
    if isinstance(value, dict):
        fields = {
            key: _noticing_value(e, (*path, key), report) for key, e in value.items()
        }
        return _Noticing(fields, path, report)
    if isinstance(value, list):
        several = [_noticing_value(e, (*path, n), report) for n, e in enumerate(value)]
        return read_only(several)
    return value


class _Noticing(ReadOnlyDict):
    """A JSON object that reports which of its fields are fetched."""

    __slots__ = ("_path", "_report")

    _path: Path
    _report: Callable[[Path], None]

    def __init__(
        self, fields: dict[str, Any], path: Path, report: Callable[[Path], None]
    ) -> None:
        super().__init__(fields)
        object.__setattr__(self, "_path", path)
        object.__setattr__(self, "_report", report)

    def __getitem__(self, key: str) -> Any:
        self._report((*self._path, key))
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Fetch a field, and report it."""
        self._report((*self._path, key))
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        if isinstance(key, str):
            self._report((*self._path, key))
        return super().__contains__(key)


# ------------------------------------------------------------------------ touched


def _first_look_at(attempt: Attempt, inputs: Inputs, path: Path) -> Look | None:
    """The first look of an author's function that does anything with a value."""
    poison = _Poison()
    inputs = inputs.with_(path, poison)
    # The value may become part of an effect, and is not JSON.
    with suppress(TypeError, _Touched):
        arguments_for(attempt.with_(inputs), Writers())
        attempt.decided(inputs)
    return poison.look


class _Touched(BaseException):
    """The code has touched a poison."""


class _Poison:
    """A value that fails on every operation: it keeps a look of the first attempt."""

    def __init__(self) -> None:
        self.look: Look | None = None

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # Python asks for its type
            raise AttributeError(name)
        _touch(self)


def _touch(poison: _Poison, *_: Any) -> NoReturn:
    poison.look = poison.look or _look(sys._getframe(1))
    raise _Touched


for _name in (
    *("eq", "ne", "lt", "le", "gt", "ge", "hash", "bool", "len", "iter", "contains"),
    *("getitem", "str", "repr", "format", "int", "float", "index", "neg", "abs"),
    *("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv"),
    *("mod", "rmod", "and", "rand", "or", "ror", "call", "reversed", "round"),
):
    setattr(_Poison, f"__{_name}__", _touch)
