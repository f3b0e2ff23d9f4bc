"""Label selectors, in objects and in requests.

In objects they are `matchLabels` and `matchExpressions` (`metav1.LabelSelector`), in
requests texts such as `app=db,tier in (web, api),!legacy` (`labels.Parse`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct

__all__ = [
    "OPERATORS",
    "Parser",
    "Requirement",
    "Unreadable",
    "matches",
    "requirements",
    "whole_number",
]

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def matches(selector: Any, labels: Mapping[str, str]) -> bool:
    """Whether labels match a `metav1.LabelSelector`; an absent one matches none.

    >>> matches({"matchLabels": {"app": "web"}}, {"app": "web", "tier": "1"})
    True
    >>> matches({}, {}), matches(None, {})
    (True, False)
    """
    if not isinstance(selector, Mapping):
        return False
    # A loop, because each pod is tested for each service: a generator would take twice
    # as long.
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for each in selector.get("matchExpressions") or ():
        operator, value = each.get("operator"), labels.get(each.get("key", ""))
        if operator not in OPERATORS:
            return False
        if not _is_met(operator, each.get("values") or (), value):
            return False
    return True


class Requirement(Struct, frozen=True):
    """One clause of a selector, as `matchExpressions` has it.

    `operator` is In, NotIn, Exists or DoesNotExist. Only texts may also have Gt or Lt.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, Any]) -> bool:
        """Whether labels satisfy this clause."""
        return _is_met(self.operator, self.values, labels.get(self.key))


def _is_met(operator: str, values: Collection[str], value: Any) -> bool:
    """Whether the value of a label, None if it is absent, satisfies a clause."""
    match operator:
        case "In":
            return value in values
        case "NotIn":
            # An absent label is not in any set, so it satisfies `notin` and `!=`.
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return _is_beyond(operator, values, value)


def _is_beyond(operator: str, bounds: Collection[str], value: Any) -> bool:
    (bound,) = bounds
    number, limit = whole_number(value), whole_number(bound)
    if number is None or limit is None:
        return False
    return number > limit if operator == "Gt" else number < limit


_INTEGER = re.compile(r"[+-]?[0-9]+")


def whole_number(text: Any) -> int | None:
    """The number of a text with at most 64 bits, as strconv.ParseInt reads it.

    >>> whole_number("-2"), whole_number("x"), whole_number(str(2**63))
    (-2, None, None)
    """
    if not isinstance(text, str) or not _INTEGER.fullmatch(text):
        return None
    number = int(text) if len(text) < 32 else 2**64
    return number if -(2**63) <= number < 2**63 else None


# ---------------------------------------------------------------------- texts

# labels.Lexer: special symbols, the longest first, and words between them.
_TOKEN = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!(),<>])|([^=!(),<> \t\r\n]+))")
SYMBOLS = {
    "in": "In",
    "=": "In",
    "==": "In",
    "notin": "NotIn",
    "!=": "NotIn",
    ">": "Gt",
    "<": "Lt",
}


class Token(Struct, frozen=True):
    """A symbol, a word, or (with neither) the end of the string."""

    text: str
    word: bool = False

    @property
    def is_end(self) -> bool:
        return not self.text


def _tokens(selector: str) -> Iterator[Token]:
    position = 0
    while match := _TOKEN.match(selector, position):
        yield Token(match[1]) if match[1] else Token(match[2], word=True)
        position = match.end()
    yield Token("")


class Unreadable(Exception):
    """A selector cannot be parsed; the message says why."""


class Parser:
    """labels.Parser: one token of look-ahead; `in` and `notin` are also words.

    `check` gets each clause twice, first without operator and values. It raises
    `Unreadable` for labels that cannot exist.
    """

    def __init__(
        self, selector: str, check: Callable[[Requirement], None] = lambda _: None
    ) -> None:
        self.tokens = list(_tokens(selector))
        self.position = 0
        self.check = check

    @property
    def next(self) -> Token:
        return self.tokens[self.position]

    def take(self) -> Token:
        token = self.next
        if not token.is_end:
            self.position += 1
        return token

    def clauses(self) -> Iterator[Requirement]:
        while not self.next.is_end:
            if not (self.next.word or self.next.text == "!"):
                raise Unreadable(
                    f"found '{self.next.text}', "
                    "expected: !, identifier, or 'end of string'"
                )
            try:
                yield self.clause()
            except Unreadable as problem:
                raise Unreadable(f"unable to parse requirement: {problem}") from None
            end = self.take()
            if end.is_end:
                return
            if end.text != ",":
                raise Unreadable(
                    f"found '{end.text}', expected: ',' or 'end of string'"
                )
            if not (self.next.word or self.next.text == "!"):
                raise Unreadable(
                    f"found '{self.next.text}', expected: identifier after ','"
                )

    def clause(self) -> Requirement:
        token = self.take()
        is_absent = token.text == "!"
        if is_absent:
            token = self.take()
        if not token.word:
            raise Unreadable(f"found '{token.text}', expected: identifier")
        key = token.text
        self.check(Requirement(key, ""))
        if is_absent:
            return Requirement(key, "DoesNotExist")
        if self.next.is_end or self.next.text == ",":
            return Requirement(key, "Exists")
        symbol = self.take().text
        if symbol not in SYMBOLS:
            raise Unreadable(
                f"found '{symbol}', expected: in, notin, =, ==, !=, gt, lt"
            )
        values = self.values() if symbol in ("in", "notin") else self.value()
        requirement = Requirement(key, SYMBOLS[symbol], values)
        self.check(requirement)
        return requirement

    def value(self) -> tuple[str, ...]:
        if self.next.is_end or self.next.text == ",":
            return ("",)
        token = self.take()
        if not token.word:
            raise Unreadable(f"found '{token.text}', expected: identifier")
        return (token.text,)

    def values(self) -> tuple[str, ...]:
        opening = self.take()
        if opening.text != "(":
            raise Unreadable(f"found '{opening.text}' expected: '('")
        if self.next.text == ")":
            self.take()
            return ("",)
        if not (self.next.word or self.next.text == ","):
            raise Unreadable(
                f"found '{self.next.text}', expected: ',', ')' or identifier"
            )
        return tuple(self.members())

    def members(self) -> Iterator[str]:
        """The values in the brackets; two adjacent commas enclose an empty value."""
        expected = True
        while True:
            token = self.take()
            if token.word:
                yield token.text
                if self.next.text not in (",", ")"):
                    raise Unreadable(f"found '{self.next.text}', expected: ',' or ')'")
                expected = False
            elif token.text == ",":
                if expected or self.next.text == ")":
                    yield ""
                expected = True
            elif token.text == ")":
                return
            else:
                raise Unreadable(f"found '{token.text}', expected: ',', or identifier")


@lru_cache(maxsize=1024)
def requirements(selector: str) -> tuple[Requirement, ...]:
    """The clauses of a selector. Raises `Unreadable`.

    >>> [each.operator for each in requirements("app=db, tier in (web,api),!old,x,n>3")]
    ['In', 'In', 'DoesNotExist', 'Exists', 'Gt']
    >>> requirements("tier notin (web, api)")[0].values
    ('web', 'api')
    """
    return tuple(Parser(selector).clauses())
