"""The options of a command as one value: a dataclass whose fields are the options.

    @dataclass(frozen=True, kw_only=True)
    class GreetOptions:
        name: str = option("--name", default="you", help="Who is greeted.")
        cluster: ClusterOptions

    @click.command()
    @takes(GreetOptions)
    def greet(given: GreetOptions) -> None: ...

A group of options is such a dataclass itself, which several commands share: its options
stand in the place of the field. A `__post_init__` refuses options that do not go
together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, field, fields
from functools import wraps
from typing import Any, TypeVar, get_type_hints

import click

__all__ = ["declared", "filled", "names_in", "option", "takes"]

T = TypeVar("T")
R = TypeVar("R")
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

_OPTION, _NAME = "fnop.option", "fnop.name"


def option(*flags: str, parameter: str = "", **attributes: Any) -> Any:
    """A field that is an option; the `attributes` are those of `click.option`.

    click's name of it, which its variable has, is the field's, or `parameter`.
    """

    def made(name: str) -> Decorator:
        return click.option(*flags, parameter or name, **attributes)

    return field(metadata={_OPTION: made, _NAME: parameter})


def declared(decorator: Decorator) -> Any:
    """A field that a decorator of click declares, which names it as the field."""
    return field(metadata={_OPTION: lambda name: decorator})


def takes(kind: type[T]) -> Callable[[Callable[[T], R]], Callable[..., R]]:
    """Declare the options of a command, which is called with them as one value."""

    def decorate(command: Callable[[T], R]) -> Callable[..., R]:
        @wraps(command)
        def called(**values: Any) -> R:
            return command(filled(kind, values))

        found: Callable[..., R] = called
        for each in reversed([*_decorators(kind)]):
            found = each(found)
        return found

    return decorate


def filled(kind: type[T], values: Mapping[str, Any]) -> T:
    """The dataclass of click's values. Raises `click.UsageError` as it does."""
    found: dict[str, Any] = {}
    for each, inner in _fields(kind):
        if inner is None:
            found[each.name] = values[_parameter(each)]
        else:
            found[each.name] = filled(inner, values)
    return kind(**found)


def names_in(kind: type[Any]) -> tuple[str, ...]:
    """click's names of the options of a dataclass."""
    found: list[str] = []
    for each, inner in _fields(kind):
        found += (_parameter(each),) if inner is None else names_in(inner)
    return tuple(found)


def _decorators(kind: type[Any]) -> Iterator[Decorator]:
    for each, inner in _fields(kind):
        if inner is None:
            yield each.metadata[_OPTION](each.name)
        else:
            yield from _decorators(inner)


def _parameter(one: Field[Any]) -> str:
    return one.metadata.get(_NAME) or one.name


def _fields(kind: type[Any]) -> Iterator[tuple[Field[Any], type[Any] | None]]:
    """The fields, each with its dataclass if it is a group of options."""
    types = get_type_hints(kind)
    for each in fields(kind):
        yield each, None if _OPTION in each.metadata else types[each.name]
