"""The checks of a handler's declaration, which raise `RegistrationError`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from msgspec import Struct

from fnop.core.handlers.declare.forms import Form, Signature, form_of
from fnop.core.handlers.declare.signatures import (
    AdmissionHandler,
    ChangeHandler,
    names_in,
)
from fnop.core.values.backoff import Backoff
from fnop.core.values.errors import (
    ErrorsMode,
    RegistrationError,
    listed,
    nearest,
)
from fnop.effects.builders import function_name
from fnop.effects.values import check_seconds, shown

__all__ = [
    "Declared",
    "check_daemon",
    "check_duration",
    "check_index",
    "check_map",
    "check_options",
    "check_outside",
    "check_reconcile",
    "function_of",
    "unchecked",
]

# pytest omits these frames from tracebacks, and shows the author's line.
__tracebackhide__ = True

_DURATIONS = (
    "timeout",
    "backoff",
    "idle",
    "cancellation_backoff",
    "cancellation_timeout",
)


def check_options(
    options: Mapping[str, Any], known: Collection[str], label: str
) -> None:
    if "cancellation_polling" in options:
        raise RegistrationError(
            f"{label} has no option cancellation_polling=: a daemon is notified at "
            "once; leave it out"
        )
    for name in options:
        if name not in known:
            near = nearest(name, set(known) - {"registry"})
            hint = f"did you mean {near}=?" if near else f"it takes {listed(known)}"
            raise RegistrationError(f"{label} has no option {name}=; {hint}")
    for name in _DURATIONS:
        if not (name == "backoff" and isinstance(options.get(name), Backoff)):
            check_duration(options, name, label)
    retries = options.get("retries")
    if retries is not None and (type(retries) is not int or retries < 1):
        raise RegistrationError(
            f"{label}: retries= must be a number of attempts, whole and at least "
            f"one, not {shown(retries)}"
        )
    if not isinstance(options.get("errors"), (ErrorsMode, type(None))):
        raise RegistrationError(
            f"{label}: errors= takes fnop.ErrorsMode.IGNORED, TEMPORARY or PERMANENT"
        )


def check_duration(
    options: Mapping[str, Any], name: str, label: str, least: float = 0
) -> None:
    value = options.get(name)
    if value is None:
        return
    try:
        check_seconds(value, f"{name}=", least=least)
    except (TypeError, ValueError) as problem:
        raise RegistrationError(f"{label}: {problem}") from None


def function_of(fn: Callable[..., Any], options: Mapping[str, Any], label: str) -> str:
    """The importable name of an impure handler (R9); "" for a pure one."""
    if not options.get("impure"):
        return ""
    if "settings" in inspect.signature(fn).parameters:
        raise RegistrationError(
            f"{label}: an impure handler runs outside, where there are no settings; "
            "let a pure one look at them"
        )
    if form_of(fn, label) is Form.GENERATOR:
        raise RegistrationError(
            f"{label}: an impure handler cannot yield; let it return its effects"
        )
    try:
        return function_name(fn)
    except ValueError as problem:
        raise RegistrationError(f"{label}: {problem}") from None


class Declared(Struct, frozen=True):
    """The facts about a handler that may make its role refuse its declaration.

    `indices` are the indices that are declared before it.
    """

    label: str
    id: str
    signature: Signature
    is_impure: bool
    indices: Collection[str]

    @property
    def name(self) -> str:
        return f"{self.label} {self.id}"


def unchecked(_declared: Declared) -> None:
    """Refuse nothing."""


def check_daemon(declared: Declared) -> None:
    """Refuse a plain function: it would end at once, or block the operator."""
    if declared.signature.form is Form.PLAN and not declared.is_impure:
        raise RegistrationError(
            f"{declared.name}: a daemon awaits something, such as fnop.sleep(5); "
            "make it async, or let it run in a thread with impure=True"
        )


def check_reconcile(declared: Declared) -> None:
    """Refuse an impure handler: its desired children depend on its arguments alone."""
    if declared.is_impure:
        raise RegistrationError(
            f"{declared.name}: a reconcile handler is pure; let it ask the world by "
            "fnop.call(function, ...)"
        )


def check_map(declared: Declared) -> None:
    """Refuse a conversation: a mapping is a plain function of an object."""
    if declared.signature.form is not Form.PLAN or declared.is_impure:
        raise RegistrationError(
            f"{declared.name}: a mapping is a plain function that answers names; it "
            "can await and yield nothing"
        )


def check_outside(declared: Declared) -> None:
    """Refuse a generator: fnop performs no effects outside of a step."""
    if declared.signature.form is Form.GENERATOR:
        raise RegistrationError(
            f"{declared.name} has no effects to yield; let it act by itself, and "
            "return what it has found"
        )


_ARGUMENTS = names_in(ChangeHandler) | names_in(AdmissionHandler)


def check_index(declared: Declared) -> None:
    """Refuse a name that is not an argument, and a function that cannot end at once.

    Handlers get an index as an argument, and fnop computes it within a step.
    """
    if not declared.id.isidentifier() or declared.id in _ARGUMENTS:
        raise RegistrationError(
            f"{declared.label}: {declared.id!r} cannot be the name of an index, for "
            "handlers ask for it as an argument; give another id=..."
        )
    for name in declared.signature.wants:
        if name in declared.indices:
            raise RegistrationError(
                f"{declared.name}: an index is made of its objects alone, and not "
                f"of another index, such as {name!r}"
            )
    if declared.signature.form is not Form.PLAN:
        raise RegistrationError(
            f"{declared.name}: an index is a plain function of an object; it can "
            "await and yield nothing"
        )
