"""The metrics and labels in an expression of PromQL, as far as dashboards need it.

It accepts only the functions, operators and aggregations that are named here. Anything
else raises `ValueError`: an expression is read in full, or not at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

__all__ = ["Expression", "Selector", "parsed"]

FUNCTIONS = {"absent", "histogram_quantile", "increase", "rate"}
AGGREGATIONS = {"count", "max", "min", "sum"}
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)
      | (?P<number>\d+(?:\.\d+)?)
      | (?P<text>"[^"]*")
      | (?P<range>\[(?:\d+[smhd]|\$__rate_interval|\$__range)\])
      | (?P<sign>=~|!~|!=|==|>=|<=|[-+*/<>=(){},])
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Selector:
    """The series of a metric with some labels; `function` takes them, if one does."""

    metric: str
    labels: tuple[str, ...]
    is_range: bool
    function: str


@dataclass
class Expression:
    """The selectors of an expression, and the labels that it groups by."""

    selectors: list[Selector] = field(default_factory=list)
    by: set[str] = field(default_factory=set)


def parsed(text: str) -> Expression:
    """Read an expression. Raises `ValueError` for one that is not understood.

    >>> found = parsed('sum by (code) (rate(requests_total{method="GET"}[5m])) > 0')
    >>> found.selectors, found.by
    ([Selector(metric='requests_total', labels=('method',), is_range=True, \
function='rate')], {'code'})
    """
    reader = _Reader(text)
    reader.expression()
    if reader.next:
        raise ValueError(f"{reader.next!r} is left over in {text!r}")
    return reader.found


class _Reader:
    def __init__(self, text: str) -> None:
        self.found = Expression()
        self._text = text
        self._tokens: list[str] = []
        place = 0
        while text[place:].strip():
            match = _TOKEN.match(text, place)
            if match is None:
                raise ValueError(f"{text[place:]!r} is not PromQL")
            self._tokens.append(match.group().strip())
            place = match.end()

    @property
    def next(self) -> str:
        return self._tokens[0] if self._tokens else ""

    def take(self, *expected: str) -> str:
        if not self._tokens or (expected and self.next not in expected):
            raise ValueError(f"{self.next!r} instead of {expected} in {self._text!r}")
        return self._tokens.pop(0)

    def expression(self, function: str = "") -> None:
        self.operand(function)
        while self.next in ("+", "-", "*", "/", "==", "!=", ">", "<", ">=", "<="):
            self.take()
            self.operand(function)

    def operand(self, function: str) -> None:
        if self.next == "(":
            self.take()
            self.expression(function)
            self.take(")")
        elif self.next in AGGREGATIONS:
            self.take()
            if self.next == "by":
                self.take()
                self.found.by |= {*self.names()}
            self.arguments("")
        elif self.next in FUNCTIONS:
            self.arguments(self.take())
        elif self.next[:1].isdigit():
            self.take()
        else:
            self.selector(function)

    def arguments(self, function: str) -> None:
        self.take("(")
        self.expression(function)
        while self.next == ",":
            self.take()
            self.expression(function)
        self.take(")")

    def names(self) -> list[str]:
        self.take("(")
        found = [self.name()]
        while self.next == ",":
            self.take()
            found.append(self.name())
        self.take(")")
        return found

    def name(self) -> str:
        if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", self.next):
            raise ValueError(f"{self.next!r} is not a name in {self._text!r}")
        return self.take()

    def selector(self, function: str) -> None:
        metric, labels = self.name(), []
        if self.next == "(":
            raise ValueError(f"the function {metric} is not known")
        if self.next == "{":
            self.take()
            while self.next != "}":
                labels.append(self.name())
                self.take("=", "!=", "=~", "!~")
                if not self.take().startswith('"'):
                    raise ValueError(f"a label needs a text in {self._text!r}")
                if self.next == ",":
                    self.take()
            self.take("}")
        is_range = self.next.startswith("[")
        if is_range:
            self.take()
        self.found.selectors.append(Selector(metric, tuple(labels), is_range, function))
