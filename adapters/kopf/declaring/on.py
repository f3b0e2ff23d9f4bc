"""The decorators of Kopf, `kopf.on.create` and the like: they note declarations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, TypeVar

from msgspec import Struct

from fnop.adapters.kopf.declaring.context import current_call
from fnop.adapters.kopf.declaring.registry import Entry, get_default_registry
from fnop.core.api.resources import EVERYTHING, Resource, Selector
from fnop.core.handlers.declare.roles import Role

__all__ = [
    "cleanup",
    "create",
    "daemon",
    "delete",
    "event",
    "field",
    "index",
    "login",
    "mutate",
    "probe",
    "register",
    "resume",
    "startup",
    "subhandler",
    "timer",
    "update",
    "validate",
]

Fn = TypeVar("Fn", bound=Callable[..., Any])
Decorator = Callable[[Fn], Fn]

_COMMON = ("id", "param", "registry")
_RETRIES = ("errors", "timeout", "retries", "backoff")
_KINDS = ("group", "version", "kind", "plural", "singular", "shortcut", "category")
_FILTERS = ("labels", "annotations", "when", "field", "value")
_CHANGES = (*_COMMON, *_RETRIES, *_KINDS, *_FILTERS)
_BACKGROUND = (*_CHANGES, "initial_delay")
_ADMISSION = (
    *(*_COMMON, *_KINDS, *_FILTERS, "operation", "operations", "subresource"),
    *("persistent", "side_effects", "ignore_failures"),
)
# The options of each decorator, as Kopf has them.
OPTIONS: Mapping[Role, tuple[str, ...]] = {
    Role.STARTUP: (*_COMMON, *_RETRIES),
    Role.CLEANUP: (*_COMMON, *_RETRIES),
    Role.LOGIN: (*_COMMON, *_RETRIES),
    Role.PROBE: (*_COMMON, *_RETRIES),
    Role.CREATE: _CHANGES,
    Role.UPDATE: (*_CHANGES, "old", "new"),
    Role.DELETE: (*_CHANGES, "optional"),
    Role.RESUME: (*_CHANGES, "deleted"),
    Role.FIELD: (*_CHANGES, "old", "new"),
    Role.EVENT: (*_COMMON, *_KINDS, *_FILTERS),
    Role.INDEX: _CHANGES,
    Role.DAEMON: (
        *_BACKGROUND,
        *("cancellation_backoff", "cancellation_timeout", "cancellation_polling"),
    ),
    Role.TIMER: (*_BACKGROUND, "interval", "sharp", "idle"),
    Role.VALIDATE: _ADMISSION,
    Role.MUTATE: _ADMISSION,
}


def _declare(
    role: Role, words: tuple[Any, ...], options: dict[str, Any]
) -> Decorator[Any]:
    label = f"kopf.on.{role.value}"
    for name in options:
        if name not in OPTIONS[role]:
            raise TypeError(f"{label}() got an unexpected keyword argument {name!r}")
    if len(words) > 3:
        raise TypeError(f"{label}() takes at most three words for a kind")
    _check_values(options, label)
    registry = options.pop("registry", None) or get_default_registry()
    given = {name: value for name, value in options.items() if value is not None}
    if "kind" in OPTIONS[role]:
        try:
            words = _kinds_of(words, given)
        except ValueError as problem:
            raise TypeError(f"{label}(): {problem}") from None

    def decorate(fn: Fn) -> Fn:
        entry = Entry(role, words, given, fn)
        _ = entry.id  # raises ValueError for a function without a name
        registry.add(entry)
        return fn

    return decorate


def _check_values(options: Mapping[str, Any], label: str) -> None:
    """Refuse values that Kopf refuses, with its kinds of errors."""
    values = [name for name in ("value", "old", "new") if options.get(name) is not None]
    if values and options.get("field") is None:
        raise TypeError(f"{label}(): {values[0]}= needs field=")
    if "value" in values and len(values) > 1:
        raise TypeError(f"{label}(): use either value=, or old= and new=")
    for name in ("labels", "annotations"):
        if None in (options.get(name) or {}).values():
            raise ValueError(
                f"{label}(): None in {name}= is ambiguous; use kopf.PRESENT or "
                "kopf.ABSENT"
            )
    if not isinstance(options.get("field"), (str, list, tuple, NoneType)):
        raise ValueError(f"{label}(): field= is a dotted path, or a list of its keys")
    if options.get("operations") is not None and not options["operations"]:
        raise ValueError(f"{label}(): operations= is empty; omit it for all of them")


def selector_of(words: Any) -> Selector:
    """The selector of kinds that a word, a function, or a tuple of words means.

    Raises `ValueError` if it means none.

    >>> str(selector_of(("kopf.dev", "kopfexamples")))
    'kopfexamples.kopf.dev'
    """
    options: dict[str, Any] = {}
    given = words if isinstance(words, tuple) else (words,)
    return Selector.of(*_kinds_of(given, options), **options)


def _kinds_of(words: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...]:
    """The words for kinds in fnop's form; the group and version may be options.

    Raises `ValueError` for words and options that do not name a kind.
    """
    words = tuple(each for each in words if each is not None)
    if len(words) > 1 and words[-1] is EVERYTHING:
        scope = Selector.of(*words[:-1], "any")
        found = {"group": scope.group, "version": scope.version}
        options |= {key: value for key, value in found.items() if value is not None}
        words = (EVERYTHING,)
    if words and callable(words[0]):
        scoped = _Predicate(
            words[0], options.pop("group", None), options.pop("version", None)
        )
        words = (scoped, *words[1:])
    Selector.of(*words, **{key: options[key] for key in _KINDS if key in options})
    return words


class _Predicate(Struct, frozen=True):
    """A function that selects kinds, of one group and version if they are given."""

    fn: Callable[[Resource], bool]
    group: str | None
    version: str | None

    def __call__(self, resource: Resource) -> bool:
        return (
            self.group in (None, resource.group)
            and self.version in (None, resource.version)
            and bool(self.fn(resource))
        )


def _activity(role: Role, options: dict[str, Any]) -> Decorator[Any]:
    return _declare(role, (), options)


def startup(**options: Any) -> Decorator[Any]:
    """Declare a handler that runs once before the operator serves."""
    return _activity(Role.STARTUP, options)


def cleanup(**options: Any) -> Decorator[Any]:
    """Declare a handler that runs once after the operator has served."""
    return _activity(Role.CLEANUP, options)


def login(**options: Any) -> Decorator[Any]:
    """Declare a handler that returns credentials."""
    return _activity(Role.LOGIN, options)


def probe(**options: Any) -> Decorator[Any]:
    """Declare a handler whose result is in the answer of the liveness endpoint."""
    return _activity(Role.PROBE, options)


def create(*words: Any, **options: Any) -> Decorator[Any]:
    """Declare a handler of new objects."""
    return _declare(Role.CREATE, words, options)


def update(*words: Any, **options: Any) -> Decorator[Any]:
    """Declare a handler of changed objects."""
    return _declare(Role.UPDATE, words, options)


def delete(*words: Any, **options: Any) -> Decorator[Any]:
    """Declare a handler of deleted objects."""
    return _declare(Role.DELETE, words, options)


def resume(*words: Any, **options: Any) -> Decorator[Any]:
    """Declare a handler of objects that exist when the operator starts."""
    return _declare(Role.RESUME, words, options)


def field(*words: Any, field: Any, **options: Any) -> Decorator[Any]:
    """Declare a handler of a changed field."""
    return _declare(Role.FIELD, words, {**options, "field": field})


def event(*words: Any, **options: Any) -> Decorator[Any]:
    """Declare a handler of raw watch events."""
    return _declare(Role.EVENT, words, options)


def index(*words: Any, **options: Any) -> Decorator[Any]:
    """Declare a function whose results are an index for all handlers."""
    return _declare(Role.INDEX, words, options)


def daemon(*words: Any, **options: Any) -> Decorator[Any]:
    """Declare a function that runs as long as its object exists."""
    return _declare(Role.DAEMON, words, options)


def timer(*words: Any, **options: Any) -> Decorator[Any]:
    """Declare a function that runs again and again while its object exists."""
    return _declare(Role.TIMER, words, options)


def validate(*words: Any, **options: Any) -> Decorator[Any]:
    """Declare a handler that may deny a write."""
    return _declare(Role.VALIDATE, words, options)


def mutate(*words: Any, **options: Any) -> Decorator[Any]:
    """Declare a handler that may change an object before it is stored."""
    return _declare(Role.MUTATE, words, options)


def subhandler(**options: Any) -> Decorator[Any]:
    """Declare a sub-handler of the running handler."""

    def decorate(fn: Fn) -> Fn:
        register(fn, **options)
        return fn

    return decorate


def register(fn: Fn, **options: Any) -> Any:
    """Declare a function as a sub-handler of the running handler."""
    current_call().declare(fn, options)
    return subhandler(**options)
