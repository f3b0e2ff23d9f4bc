"""The tables of validation rules, in the order of the real server's checks.

A *table* is the rule of an object. It consists of rows, and of rules that read several
fields. A row has the path of a field, or of several ones, and the rules of its value.
As a text it is "path: rule; rule". `WORDS` has the rules of a name, and:

- `A | B`: one of these texts. `1..9`, `0..`: a number of this range.
- `needed; ...`, `present; ...`: the value is required; for `present` it may be empty.
- `filled; ...`, `given; ...`: the rest applies unless the value is empty, or missing.
- `zero; ...`: a missing number counts as 0.
- `unset`: the value must be missing. `true`: it must not be empty.

A sentence in brackets replaces the usual one. In paths, `[]` stands for each item of a
list, `[*]` for the same if the real server does not number the items, and `?` for "if
it is given". "a as b" is the field `a` that the real server reports as `b`.

>>> server = table(
...     "port: 1..65535",
...     "mode: needed; Fast | Safe",
...     "tls?.secret: needed (what for?)",
...     ("hosts[]", unique("name")),
... )
>>> hosts = [{"name": "a"}, {"name": "a"}]
>>> for fault in server({"port": 0, "tls": {}, "hosts": hosts}, "spec"):
...     print(f"{fault.field}: {fault.message}")
spec.port: Invalid value: 0: must be between 1 and 65535, inclusive
spec.mode: Required value
spec.tls.secret: Required value: what for?
spec.hosts[1].name: Duplicate value: "a"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from fnop.interpreters.cluster.validation.faults import duplicate, required
from fnop.interpreters.cluster.validation.field_rules import WORDS
from fnop.interpreters.cluster.validation.rules import (
    Rule,
    between,
    in_order,
    must,
    one_of,
    unset,
)
from fnop.interpreters.cluster.values.status import Fault

__all__ = [
    "Among",
    "each",
    "entries",
    "filled",
    "given",
    "has",
    "needed",
    "of_spec",
    "present",
    "row",
    "table",
    "unique",
    "unless",
    "when",
]


@dataclass(frozen=True)
class Among:
    """For items: a rule that also gets a set, for what earlier items of a list had."""

    check: Callable[[Any, str, set[Any]], Iterable[Fault]]

    def begin(self) -> Rule:
        """The rule for the items of one list."""
        seen: set[Any] = set()
        return lambda item, path: self.check(item, path, seen)


Part = str | tuple[str, *tuple[Rule | Among, ...]] | Rule


# ---------------------------------------------------------------------- structure


def table(*parts: Part) -> Rule:
    """The rule of an object: all parts, in this order."""
    return in_order(*(rule for part in parts for rule in _rules_of(part)))


def of_spec(*parts: Part) -> Rule:
    """The rule of an object whose spec, or an empty one, has these parts."""
    rule = table(*parts)
    return lambda obj, path: rule(obj.get("spec") or {}, "spec")


def row(names: str, *rules: Rule | Among) -> list[Rule]:
    """The rules of an object that apply `rules` to each of its fields `names`."""
    return [_at(STEP.findall(path), rules) for path in names.split(", ")]


def _rules_of(part: Part) -> list[Rule]:
    if isinstance(part, str):
        names, _, text = part.partition(": ")
        if text.startswith(("given; ", "filled; ")) or RANGE.match(text):
            # Most fields are missing: the rule need not be asked.
            names = re.sub(r"(?<=\w)(?=, |$)", "?", names)
        return row(names, _rule_of_text(text))
    return row(*part) if isinstance(part, tuple) else [part]


STEP = re.compile(r"(.+?)(\?|\[\]|\[\*\]|$)\.?")


def _at(steps: list[tuple[str, str]], rules: Iterable[Rule | Among]) -> Rule:
    """The rule of an object that applies `rules` at the end of a path below it."""
    (text, kind), *further = steps
    if further:
        rules = (_at(further, rules),)
    if kind.startswith("["):
        rules = (each(*rules, numbered=kind == "[]"),)
    name, _, shown = text.partition(" as ")
    names, shown, is_optional = name.split("."), shown or name, bool(kind)
    rule = in_order(*(rule for rule in rules if not isinstance(rule, Among)))

    def check(owner: Any, path: str) -> Iterable[Fault]:
        value = owner
        for part in names:
            value = value.get(part) if value else None
        if value is None and is_optional:
            return ()
        return rule(value, f"{path}.{shown}" if path else shown)

    return check


def each(*rules: Rule | Among, numbered: bool = True) -> Rule:
    """The rule of a list: these rules apply to each item."""

    def check(items: Any, path: str) -> list[Fault]:
        found: list[Fault] = []
        if not items:
            return found
        begun = [rule.begin() if isinstance(rule, Among) else rule for rule in rules]
        for index, item in enumerate(items):
            field = f"{path}[{index}]" if numbered else path
            for rule in begun:
                found += rule(item, field)
        return found

    return check


def unique(name: str, *, counted: bool = False) -> Among:
    """For items: no two of them have the same value in a field.

    An empty value may occur again, unless it is `counted`.
    """

    def check(item: Any, path: str, seen: set[Any]) -> Iterable[Fault]:
        value = item.get(name) or ""
        if value in seen and (value or counted):
            return (duplicate(f"{path}.{name}", value),)
        seen.add(value)
        return ()

    return Among(check)


def entries(check: Callable[[str, Any, str], Iterable[Fault]]) -> Rule:
    """The rule of a map: `check` gets each key, its value, and their path."""

    def rule(values: Any, path: str) -> list[Fault]:
        items = (values or {}).items()
        return [
            fault
            for key, value in items
            for fault in check(key, value, f"{path}[{key}]")
        ]

    return rule


# ---------------------------------------------------------------------- conditions


def when(test: Callable[[Any], Any], *parts: Part) -> Rule:
    """The parts apply if the value passes a test."""
    rule = table(*parts)
    return lambda value, path: rule(value, path) if test(value) else ()


def unless(test: Callable[[Any], Any], *parts: Part) -> Rule:
    """The parts apply if the value does not pass a test."""
    return when(lambda value: not test(value), *parts)


def has(name: str, *values: str) -> Callable[[Any], bool]:
    """A test for `when`: a field of the object has one of these values."""
    return lambda owner: ((owner or {}).get(name) or "") in values


def given(*parts: Part) -> Rule:
    """The parts apply unless the value is missing."""
    rule = table(*parts)
    return lambda value, path: () if value is None else rule(value, path)


def filled(*parts: Part) -> Rule:
    """The parts apply unless the value is missing or empty."""
    rule = table(*parts)
    return lambda value, path: rule(value, path) if value else ()


def needed(*parts: Part, why: str = "") -> Rule:
    """The value is required; the parts apply to it."""
    rule = table(*parts)
    return lambda value, path: rule(value, path) if value else (required(path, why),)


def present(*parts: Part, why: str = "") -> Rule:
    """The value is required, but may be empty; the parts apply to it."""
    rule = table(*parts)
    return lambda value, path: (
        (required(path, why),) if value is None else rule(value, path)
    )


# ---------------------------------------------------------------------- texts

TERM = re.compile(r"(.*?)(?: \((.*?)\))?(?:; |$)")
INFINITE = float("inf")
RANGE = re.compile(r"(-?[0-9]*)\.\.([0-9]*)")


def _rule_of_text(text: str) -> Rule:
    """The rule of a row's right side."""
    found = TERM.match(text)
    assert found is not None, text
    word, why, rest = found[1], found[2] or "", text[found.end() :]
    further = (_rule_of_text(rest),) if rest else ()
    match word:
        case "needed":
            return needed(*further, why=why)
        case "present":
            return present(*further, why=why)
        case "given":
            return given(*further)
        case "filled":
            return filled(*further)
        case "zero":
            rule = in_order(*further)
            return lambda value, path: rule(value or 0, path)
        case _:
            return in_order(_rule_of_word(word, why), *further)


def _rule_of_word(word: str, why: str) -> Rule:
    if word == "unset":
        return unset(why)
    if word == "true":
        return must(bool, why)
    if bounds := RANGE.fullmatch(word):
        least, most = bounds.groups()
        return between(
            int(least) if least else -INFINITE, int(most) if most else INFINITE, why
        )
    return one_of(*word.split(" | ")) if " | " in word else WORDS[word]
