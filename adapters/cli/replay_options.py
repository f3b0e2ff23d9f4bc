"""The options of `fnop replay`: the purpose of a call, and its details."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

import click
from msgspec import Struct

from fnop.core.values.paths import FieldPath, parse_path
from fnop.interpreters.recording.comparison.sorts import WORDS

__all__ = ["Mode", "Wish", "wish_of"]


class Mode(Enum):
    """The purposes of a call of the command."""

    STORY = "the story"
    WHY = "--why"
    STEP = "--step"
    PICTURES = "--html or --perfetto"
    VERIFY = "the comparison"
    SHADOW = "--shadow"
    GO_ON = "--from"
    EXPLORE = "--explore"
    TEST = "--as-test"


class Files(Enum):
    """Whether the files of an operator are given."""

    NEVER = "never"
    ALWAYS = "always"
    PERHAPS = "perhaps"


class _Rule(Struct, frozen=True):
    """The files and the options that a mode allows."""

    files: Files
    options: tuple[str, ...] = ()


_PART = ("about", "until", "crds")
_RULES: Mapping[Mode, _Rule] = {
    Mode.STORY: _Rule(Files.NEVER, ("about", "changes_only", "every_line")),
    Mode.WHY: _Rule(Files.NEVER, ("about", "at")),
    Mode.STEP: _Rule(Files.NEVER, ("about", "at")),
    Mode.PICTURES: _Rule(Files.NEVER),
    Mode.VERIFY: _Rule(Files.ALWAYS),
    Mode.SHADOW: _Rule(Files.ALWAYS, ("fail_on",)),
    Mode.GO_ON: _Rule(Files.ALWAYS, ("calls",)),
    Mode.EXPLORE: _Rule(
        Files.ALWAYS,
        (*_PART, "begin", "calls", "budget", "seconds", "jobs", "save"),
    ),
    Mode.TEST: _Rule(Files.PERHAPS, (*_PART, "at")),
}
# The options that choose a mode; --from may also belong to another one.
_CHOICES = {
    "why": Mode.WHY,
    "step": Mode.STEP,
    "html": Mode.PICTURES,
    "perfetto": Mode.PICTURES,
    "shadow": Mode.SHADOW,
    "begin": Mode.GO_ON,
    "explore": Mode.EXPLORE,
    "as_test": Mode.TEST,
}
_SPELLED = {
    "about": "--object",
    "begin": "--from",
    "crds": "--crd",
    "seconds": "--time",
}


class Wish(NamedTuple):
    """The options of a call, which fit together."""

    mode: Mode
    field: FieldPath | None
    fail_on: frozenset[str]
    about: str | None
    at: int | None
    begin: int | None
    until: int | None
    calls: Sequence[str]
    crds: Sequence[str]
    save: str | None
    budget: int | None
    jobs: int | None
    seconds: float | None
    changes_only: bool
    every_line: bool
    html: str | None
    perfetto: str | None


def wish_of(options: Mapping[str, Any], *, has_files: bool) -> Wish:
    """The options, if they fit together; `has_files` means that there is an operator.

    Raises `click.UsageError`.
    """
    given = [name for name, value in options.items() if value not in (None, False, ())]
    mode = _mode(given, has_files=has_files)
    _check(mode, given, has_files=has_files)
    values = {name: options[name] for name in Wish._fields if name in options}
    why = options["why"]
    return Wish(
        **{
            **values,
            "mode": mode,
            "field": None if why is None else _field(why),
            "fail_on": _parse_fail_on(options["fail_on"]),
        }
    )


def _mode(given: Sequence[str], *, has_files: bool) -> Mode:
    chosen = [*dict.fromkeys(_CHOICES[each] for each in given if each in _CHOICES)]
    if Mode.EXPLORE in chosen and Mode.GO_ON in chosen:
        chosen.remove(Mode.GO_ON)
    if {*chosen} == {Mode.TEST, Mode.GO_ON}:
        raise click.UsageError("--as-test begins at the step of --at, not of --from")
    if len(chosen) > 1:
        words = [
            _option_name(name)
            for name, mode in _CHOICES.items()
            if name in given and mode in chosen
        ]
        raise click.UsageError(f"use one of {_join_words(words, 'and')} at a time")
    if chosen:
        return chosen[0]
    return Mode.VERIFY if has_files else Mode.STORY


def _check(mode: Mode, given: Sequence[str], *, has_files: bool) -> None:
    """Refuse the options that a mode does not allow."""
    for name in given:
        if _CHOICES.get(name) is not mode and name not in _RULES[mode].options:
            raise click.UsageError(_misplaced_option(name, mode, has_files=has_files))
    if mode is Mode.WHY and "about" not in given:
        raise click.UsageError("--why needs --object, as in --object default/orders")
    match _RULES[mode].files:
        case Files.NEVER if has_files:
            raise click.UsageError(
                f"{mode.value} asks the recording alone: leave the files out"
            )
        case Files.ALWAYS if not has_files:
            raise click.UsageError(f"{mode.value} needs the files of an operator")
        case _:
            pass


def _misplaced_option(name: str, mode: Mode, *, has_files: bool) -> str:
    """The sentence about an option that a mode does not allow."""
    if name == "at" and mode is Mode.EXPLORE:
        return "--explore begins at the step of --from, not of --at"
    takers = [each for each, rule in _RULES.items() if name in rule.options]
    wrong = Files.NEVER if has_files else Files.ALWAYS
    here = [each.value for each in takers if _RULES[each].files is not wrong]
    there = [each.value for each in takers if _RULES[each].files is wrong]
    goes = f"{_option_name(name)} goes with {_join_words(here or there, 'or')}"
    if not there:
        return goes
    remedy = "leave the files out" if has_files else "name the files of an operator"
    if not here:
        return f"{goes}: {remedy}"
    return f"{goes}; or {remedy}, for {_join_words(there, 'or')}"


def _option_name(name: str) -> str:
    return _SPELLED.get(name, f"--{name.replace('_', '-')}")


def _join_words(words: Sequence[str], last: str) -> str:
    *first, end = words
    return f"{', '.join(first)} {last} {end}" if first else end


def _field(why: str) -> FieldPath:
    try:
        return parse_path(why)
    except ValueError as problem:
        raise click.UsageError(f"--why {problem}") from problem


def _parse_fail_on(fail_on: str | None) -> frozenset[str]:
    if fail_on is None:
        return frozenset()
    found = frozenset(each.strip() for each in fail_on.split(","))
    unknown = sorted(found - {*WORDS})
    if unknown:
        names = ", ".join(WORDS)
        raise click.UsageError(f"--fail-on knows {names}, and not {unknown[0]!r}")
    return found
