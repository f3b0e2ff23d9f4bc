"""The JSONPath of printer columns: what `k8s.io/client-go/util/jsonpath` finds.

It has fields, indices, slices, wildcards, filters and recursive descent. A missing part
is not an error: the path just finds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import orjson

__all__ = ["first", "printed"]

Step = Callable[[Any], Iterator[Any]]

FIELD = re.compile(r"\.?(?:\*|((?:[^.\[\]\\\s]|\\.)+))", re.DOTALL)
QUOTED = re.compile(r"""\[\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*\]""")
DOTTED = re.compile(r"(?:[^.\\]|\\.)+", re.DOTALL)
INDEX = re.compile(r"\[\s*(-?\d+)\s*\]")
SLICE = re.compile(r"\[\s*(-?\d*)\s*:\s*(-?\d*)\s*(?::\s*(-?\d*)\s*)?\]")
WILDCARD = re.compile(r"\[\s*\*\s*\]|\.\*")
FILTER = re.compile(r"""\[\?\(((?:'[^']*'|"[^"]*"|[^'")])*)\)\]""")
CONDITION = re.compile(r"(.+?)\s*(==|!=|<=|>=|<|>)\s*(.+)")
DESCENT = re.compile(r"\.\.")


def first(path: str, value: Any) -> tuple[Any, ...]:
    """The first value that a path finds, or nothing.

    >>> first(".spec.sizes[1]", {"spec": {"sizes": [3, 4]}})
    (4,)
    >>> pods = {"c": [{"type": "A", "is": 1}, {"type": "Ready", "is": 2}]}
    >>> first('.c[?(@.type=="Ready")].is', pods)
    (2,)
    >>> first(".spec.size", {})
    ()
    """
    steps = _steps(path.strip())
    if steps is None:
        return ()
    for found in _found(steps, value):
        return (found,)
    return ()


def printed(value: Any) -> str:
    """A value as the text of a cell: Go's `%v`, and JSON for lists and maps.

    >>> printed(1.5), printed(True), printed({"a": [1]}), printed(12345678.9)
    ('1.5', 'true', '{"a":[1]}', '1.23456789e+07')
    """
    if value is None:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    if isinstance(value, float):
        return _float(value)
    return str(value)


def _float(value: float) -> str:
    """Go's `%v`: with an exponent below 1e-4 and from 1e6 on."""
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        return repr(value).removesuffix(".0")
    digits, _, exponent = f"{value:.17e}".partition("e")
    for precision in range(17):  # the shortest text of the same number
        text = f"{value:.{precision}e}"
        if float(text) == value:
            digits, _, exponent = text.partition("e")
            break
    return f"{digits}e{exponent}"


def _found(steps: Iterable[Step], value: Any) -> Iterator[Any]:
    values: Iterable[Any] = (value,)
    for step in steps:
        values = _apply_step(step, values)
    return iter(values)


def _apply_step(step: Step, values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        yield from step(value)


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[Step, ...] | None:
    """A path as steps, or None if it is not a valid path."""
    path = path.removeprefix("$").removeprefix("@")
    steps: list[Step] = []
    position = 0
    while position < len(path):
        for pattern, make in PARTS:
            if match := pattern.match(path, position):
                steps.append(make(match))
                position = match.end()
                break
        else:
            return None
    return tuple(steps)


def _without_escapes(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _field(match: re.Match[str]) -> Step:
    if match[1] is None:
        return _children
    return _field_step(_without_escapes(match[1]))


def _quoted_field(match: re.Match[str]) -> Step:
    """Split a quoted name at its dots, as the original does."""
    text = match[1] if match[1] is not None else match[2]
    names = [_field_step(_without_escapes(name)) for name in DOTTED.findall(text)]
    return lambda value: _found(names, value)


def _field_step(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from (value[name] for name in sorted(value))
    elif isinstance(value, list):
        yield from value


def _wildcard(match: re.Match[str]) -> Step:
    return _children


def _iter_descendants(value: Any) -> Iterator[Any]:
    yield value
    for child in _children(value):
        yield from _iter_descendants(child)


def _descent_step(match: re.Match[str]) -> Step:
    return _iter_descendants


def _index(match: re.Match[str]) -> Step:
    index = int(match[1][:18])

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _slice(match: re.Match[str]) -> Step:
    start, end, stride = (int(text[:18]) if text else None for text in match.groups())

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and stride != 0:
            yield from value[start:end:stride]

    return step


def _filter(match: re.Match[str]) -> Step:
    text = match[1].strip()
    condition = CONDITION.fullmatch(text)
    if condition is None:
        return _filter_step(lambda item: bool(first(text, item)))
    left, operator, right = condition.groups()
    compare = COMPARISONS[operator]

    def holds(item: Any) -> bool:
        one, other = _operand(left, item), _operand(right, item)
        if not one or not other:
            return False
        try:
            return bool(compare(one[0], other[0]))
        except TypeError:
            return False

    return _filter_step(holds)


def _filter_step(holds: Callable[[Any], bool]) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from (item for item in value if holds(item))

    return step


def _operand(text: str, item: Any) -> tuple[Any, ...]:
    if text.startswith("@"):
        return first(text, item)
    if text[:1] in ("'", '"'):
        return (text[1:-1],)
    if text in ("true", "false"):
        return (text == "true",)
    try:
        return (float(text),)
    except ValueError:
        return ()


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
PARTS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Step]], ...] = (
    (FILTER, _filter),
    (WILDCARD, _wildcard),
    (QUOTED, _quoted_field),
    (INDEX, _index),
    (SLICE, _slice),
    (DESCENT, _descent_step),
    (FIELD, _field),
)
