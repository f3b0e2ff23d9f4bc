"""Options of commands that are names: an invalid name is a wrong call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from fnop.effects.names import check_name, check_namespace, check_webhooks_name

__all__ = ["a_name", "a_namespace", "a_webhooks_name"]

Check = Callable[[Any, str], None]
OptionCallback = Callable[[click.Context, click.Parameter, Any], Any]


def _checked(check: Check) -> OptionCallback:
    def callback(_: click.Context, parameter: click.Parameter, value: Any) -> Any:
        given = value if isinstance(value, tuple) else (value,)
        try:
            for each in given:
                if each is not None:
                    check(each, f"--{parameter.name}".replace("_", "-"))
        except ValueError as problem:
            raise click.UsageError(str(problem)) from problem
        return value

    return callback


a_name = _checked(check_name)
a_namespace = _checked(check_namespace)
a_webhooks_name = _checked(check_webhooks_name)
