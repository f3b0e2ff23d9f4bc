"""Predicates on an object, as people write them: `status.phase = Failed`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson
from msgspec import Struct

from fnop.core.values.paths import FieldPath, find, parse_path, path_text
from fnop.effects.values import same_json

__all__ = ["OPERATORS", "Predicate", "parse_predicate"]

# A path, which may contain anything in brackets; an operator; and a value.
_TERM = re.compile(
    r"\s*((?:[^\[\]=!<>~\s]|\[[^\[\]]*\])+)\s*(==|!=|<=|>=|=|<|>|~|$|\s(?=\S))\s*(.*?)\s*",
    re.DOTALL,
)
_WORDS = ("exists", "absent")
OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "~", *_WORDS)
"""What may stand between a field and a value; `exists` and `absent` have no value."""

_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Predicate(Struct, frozen=True):
    """A field, an operator, and a value: as text, and as the JSON that it may be."""

    path: FieldPath
    operator: str
    text: str = ""
    value: Any = None

    def __str__(self) -> str:
        return " ".join((path_text(self.path), self.operator, self.text)).rstrip()

    def holds(self, data: Mapping[str, Any] | None) -> bool:
        """Whether it holds for an object; None is an object that does not exist.

        For an object that does not exist, only the absence of a field holds.

        >>> parse_predicate("spec.size >= 3").holds({"spec": {"size": 3}})
        True
        >>> parse_predicate("spec.size = 3").holds({"spec": {"size": "3"}})
        True
        """
        found = None if data is None else find(data, self.path)
        match self.operator:
            case "absent":
                return found is None
            case _ if data is None:
                return False
            case "exists":
                return found is not None
            case "=":
                return self._is_equal(found)
            case "!=":
                return not self._is_equal(found)
            case "~":
                return self.text in _text(found)
            case order:
                return self._is_ordered(found, _ORDERS[order])

    def _is_equal(self, found: Any) -> bool:
        return same_json(found, self.value) or (
            isinstance(found, str) and found == self.text
        )

    def _is_ordered(self, found: Any, order: Callable[[Any, Any], bool]) -> bool:
        """Compare numbers as numbers, and texts (and times) by their letters."""
        if _is_number(found) and _is_number(self.value):
            return order(found, self.value)
        return isinstance(found, str) and order(found, self.text)


def parse_predicate(words: str) -> Predicate:
    """The predicate that a person has written.

    Raises `ValueError` with a sentence for anything else.

    >>> str(parse_predicate("status.conditions[type=Ready].status=False"))
    'status.conditions[type=Ready].status = False'
    >>> str(parse_predicate("metadata.deletionTimestamp exists"))
    'metadata.deletionTimestamp exists'
    """
    found = _TERM.fullmatch(words)
    field, sign, text = found.groups() if found else ("", "", "")
    if not sign.strip():
        sign, text = text, ""
        if sign not in _WORDS:
            raise ValueError(
                f"{words.strip()!r} is not a predicate; write FIELD OPERATOR VALUE, as "
                f"in status.phase = Failed, with one of {' '.join(OPERATORS)}"
            )
    elif not text:
        raise ValueError(f"a value is missing after {words.strip()!r}")
    sign = "=" if sign == "==" else sign
    return Predicate(parse_path(field), sign, text, _parsed_json(text))


def _parsed_json(text: str) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        return text


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
