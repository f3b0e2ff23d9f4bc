"""The filters of handlers: by labels, annotations, fields, and functions.

A filter looks at the current object. For changes, `field` with `value` looks at the new
and then at the old value, and `old`/`new` look at each side.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from typing import Any

from msgspec import Struct

from fnop.core.handlers.declare.signatures import INDEX
from fnop.core.handlers.declare.typed import Typed, typed
from fnop.core.values.callables import is_awaited, parameters_of
from fnop.core.values.diff import Path
from fnop.core.values.errors import RegistrationError
from fnop.effects.structs import beside
from fnop.effects.values import read_only, same_json, type_name

__all__ = [
    "ABSENT",
    "PRESENT",
    "UNKNOWN",
    "Callback",
    "Combination",
    "Filters",
    "Presence",
    "Sight",
    "all_",
    "any_",
    "none_",
    "not_",
    "text_of_field",
]


class Presence(Enum):
    """Filters for a value that is present (`PRESENT`), or absent (`ABSENT`).

    For example:

        @fnop.on.create("pods", labels={"app": fnop.PRESENT, "skip": fnop.ABSENT})
        def created(name, **_): ...
    """

    PRESENT = "present"
    ABSENT = "absent"


PRESENT = Presence.PRESENT
"""The filter for any value that is there: `labels={"app": fnop.PRESENT}`."""
ABSENT = Presence.ABSENT
"""The filter for a value that is not there: `annotations={"skip": fnop.ABSENT}`."""


@beside("typed")
class Callback(Struct, frozen=True):
    """A user's filter function and the kwargs that its signature names."""

    fn: Callable[..., Any]
    wants: tuple[str, ...]
    rest: bool
    typed: Typed | None = None

    @classmethod
    def of(
        cls,
        fn: Callable[..., Any],
        *,
        takes_value: bool,
        known: Collection[str] = (),
    ) -> Callback:
        """The callback of a function; with `takes_value` its first argument is a value.

        An argument with a default is the author's own, unless it is a `known` one.
        `known` arguments are passed as they are to handlers. Raises `RegistrationError`
        for a function that cannot be called like this.
        """
        if isinstance(fn, Combination):
            return fn.callback(takes_value=takes_value, known=known)
        name = getattr(fn, "__name__", repr(fn))
        if is_awaited(fn):
            raise RegistrationError(
                f"{name} is async, but a filter answers at once; write it without async"
            )
        try:
            parameters = parameters_of(fn)
        except ValueError:  # a built-in function without a signature
            return cls(fn, (), False)
        if takes_value:
            parameters = _without_value(parameters, name)
        _check_by_name(parameters, name)
        rest = any(
            each.kind is each.VAR_KEYWORD and not each.name.startswith("_")
            for each in parameters
        )
        return cls(fn, _argument_names(parameters, known), rest, typed(fn))

    def call(self, values: tuple[Any, ...], arguments: Mapping[str, Any]) -> Any:
        """Call it; raise `Unfit` for an object of another form."""
        if self.typed is not None:
            arguments = self.typed.read(arguments)
        return self.fn(*values, **arguments)

    def asks_for(self, names: Collection[str]) -> bool:
        """Whether it takes any of these arguments."""
        return not set(self.wants).isdisjoint(names) or (self.rest and bool(names))


def _argument_names(
    parameters: Iterable[inspect.Parameter], known: Collection[str]
) -> tuple[str, ...]:
    """The names of the arguments that a function gets."""
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return tuple(
        each.name
        for each in parameters
        if each.kind in by_name
        and (each.default is each.empty or each.default is INDEX or each.name in known)
    )


def _check_by_name(parameters: Iterable[inspect.Parameter], name: str) -> None:
    """Refuse parameters that cannot be passed by name."""
    for each in parameters:
        if each.kind is each.POSITIONAL_ONLY and each.default is each.empty:
            raise RegistrationError(
                f"{name}: {each.name!r} is positional, but a function in an option "
                "is called with keyword arguments; remove the / after it"
            )


def _without_value(
    parameters: tuple[inspect.Parameter, ...], name: str
) -> tuple[inspect.Parameter, ...]:
    """The parameters after the value, which is passed by position."""
    first = parameters[0] if parameters else None
    if first is None or first.kind in (first.KEYWORD_ONLY, first.VAR_KEYWORD):
        raise RegistrationError(
            f"{name} takes no value; its first argument is what is there, as in "
            "lambda value, **_: value > 1"
        )
    return parameters if first.kind is first.VAR_POSITIONAL else parameters[1:]


class Combination(Struct, frozen=True):
    """Several filter functions as one; for `when=` and for values alike."""

    verdict: Callable[[Iterable[bool]], bool]
    fns: tuple[Callable[..., Any], ...]

    def __call__(self, *values: Any, **arguments: Any) -> bool:
        each = (
            Callback.of(fn, takes_value=bool(values), known=arguments)
            for fn in self.fns
        )
        return self.verdict(_call_filter(one, values, arguments) for one in each)

    def callback(self, *, takes_value: bool, known: Collection[str] = ()) -> Callback:
        """The callback of all functions; it takes the arguments of each of them."""
        parts = [
            Callback.of(fn, takes_value=takes_value, known=known) for fn in self.fns
        ]
        wants = dict.fromkeys(name for part in parts for name in part.wants)

        def fn(*values: Any, **arguments: Any) -> bool:
            return self.verdict(_call_filter(part, values, arguments) for part in parts)

        return Callback(fn, tuple(wants), any(part.rest for part in parts))


def _call_filter(
    part: Callback, values: tuple[Any, ...], arguments: Mapping[str, Any]
) -> bool:
    given = arguments if part.rest else {name: arguments[name] for name in part.wants}
    return _check_answer(part.call(values, given))


def _check_answer(answer: Any) -> bool:
    """Return a filter's answer; raise `TypeError` for others, as without `return`."""
    if isinstance(answer, bool):
        return answer
    raise TypeError(f"a filter answers True or False, not {type_name(answer)}")


def all_(fns: Iterable[Callable[..., Any]]) -> Combination:
    """Combine filter functions: the filter holds if all of them do.

    `fns` are functions as for `when=`, or of a value as for `labels=`. They return True
    or False.

    >>> all_([lambda value, **_: value > 1, lambda value, **_: value < 3])(2)
    True
    """
    return Combination(all, tuple(fns))


def any_(fns: Iterable[Callable[..., Any]]) -> Combination:
    """Combine filter functions: the filter holds if at least one of them does.

    `fns` are functions as for `when=`, or of a value as for `labels=`. They return True
    or False.

    >>> any_([lambda value, **_: value < 1, lambda value, **_: value > 3])(2)
    False
    """
    return Combination(any, tuple(fns))


def none_(fns: Iterable[Callable[..., Any]]) -> Combination:
    """Combine filter functions: the filter holds if none of them does.

    `fns` are functions as for `when=`, or of a value as for `labels=`. They return True
    or False.

    >>> none_([lambda value, **_: value < 1, lambda value, **_: value > 3])(2)
    True
    """
    return Combination(_is_none_true, tuple(fns))


def not_(fn: Callable[..., Any]) -> Combination:
    """Negate a filter function: the filter holds if `fn` does not.

    >>> not_(lambda value, **_: value > 1)(2)
    False
    """
    return Combination(_is_none_true, (fn,))


def _is_none_true(verdicts: Iterable[bool]) -> bool:
    return not any(verdicts)


class _Unknown:
    """The previous value of a field, known only by its digest."""

    def __repr__(self) -> str:
        return "<some value>"


UNKNOWN = _Unknown()

# A filter compares with a value, a presence or a callback; None means no filter.
Wanted = Any


class Sight(Struct, frozen=True):
    """The facts that filters are applied to; `now` and `before` are a field's values.

    `changes` is whether there is a previous value at all. `arguments` computes the
    keyword arguments of a callback. `at` returns the value of any field.
    """

    labels: Mapping[str, Any]
    annotations: Mapping[str, Any]
    now: Any
    before: Any
    changes: bool
    arguments: Callable[[tuple[str, ...], bool], dict[str, Any]]
    at: Callable[[Path], Any] = lambda _: None

    def call(self, callback: Callback, *values: Any) -> bool:
        arguments = self.arguments(callback.wants, callback.rest)
        return _check_answer(callback.call(values, arguments))


class Filters(Struct, frozen=True):
    """All filters of one handler; filters that are not set match anything.

    `asks_reason` and `asks_indices` are whether any function among them takes these
    arguments.
    """

    labels: tuple[tuple[str, Wanted], ...] = ()
    annotations: tuple[tuple[str, Wanted], ...] = ()
    when: Callback | None = None
    field: Path = ()
    value: Wanted = None
    old: Wanted = None
    new: Wanted = None
    asks_reason: bool = False
    asks_indices: bool = False
    fields: tuple[tuple[Path, Wanted], ...] = ()

    @property
    def callbacks(self) -> tuple[Callback, ...]:
        """The author's functions among the filters."""
        pairs = (*self.labels, *self.annotations, *self.fields)
        wanted = [each for _, each in pairs]
        wanted += [self.when, self.value, self.old, self.new]
        return tuple(each for each in wanted if isinstance(each, Callback))

    @property
    def is_trivial(self) -> bool:
        """Whether all objects match."""
        named = self.labels or self.annotations or self.fields
        return not (named or self.when or self.field)

    def prematch(self, sight: Sight) -> bool:
        """Whether the object matches, apart from `old` and `new`."""
        return self.selects(sight) and (self.when is None or sight.call(self.when))

    def selects(self, sight: Sight) -> bool:
        """Whether the object matches, apart from `when`, `old` and `new`."""
        return (
            all(
                _is_value_wanted(want, sight.labels.get(key), sight)
                for key, want in self.labels
            )
            and all(
                _is_value_wanted(want, sight.annotations.get(key), sight)
                for key, want in self.annotations
            )
            and all(_is_field_selected(path, want, sight) for path, want in self.fields)
            and self._has_wanted_value(sight)
        )

    def change_fits(self, sight: Sight) -> bool:
        """Whether the field's change matches `old` and `new`."""
        return (
            self.old is None or _is_value_wanted(self.old, sight.before, sight)
        ) and (self.new is None or _is_value_wanted(self.new, sight.now, sight))

    def _has_wanted_value(self, sight: Sight) -> bool:
        if not self.field:
            return True
        candidates = [sight.now, sight.before] if sight.changes else [sight.now]
        want = PRESENT if self.value is None else self.value
        return any(_is_value_wanted(want, candidate, sight) for candidate in candidates)


def _is_value_wanted(want: Wanted, have: Any, sight: Sight) -> bool:
    match want:
        case Presence.PRESENT:
            return have is not None
        case Presence.ABSENT:
            return have is None
        case _ if have is UNKNOWN:
            return False
        case Callback():
            return sight.call(want, read_only(have))
        case _:
            return have is not None and same_json(want, have)


# Fields of built-in kinds that field selectors know, and that are not texts. An absent
# field has the zero value of its type.
_ZEROS: dict[Path, str] = {
    ("spec", "unschedulable"): "false",
    ("spec", "hostNetwork"): "false",
    ("status", "replicas"): "0",
    ("status", "successful"): "0",
}


def text_of_field(have: Any) -> str | None:
    """The text that field selectors compare a value with; None without one.

    >>> text_of_field(True), text_of_field(8080), text_of_field("a"), text_of_field([1])
    ('true', '8080', 'a', None)
    """
    match have:
        case bool():
            return "true" if have else "false"
        case str() | int() | float():
            return str(have)
        case _:
            return None


def _is_field_selected(path: Path, want: Wanted, sight: Sight) -> bool:
    """Whether a field has a value, as the API server's field selectors decide."""
    have = sight.at(path)
    text = text_of_field(have)
    match want:
        case Presence.PRESENT:
            return have is not None and text != ""
        case Presence.ABSENT:
            return have is None or text == ""
        case Callback():
            return sight.call(want, read_only(have))
        case _ if have is None:
            return want in ("", _ZEROS.get(path, ""))
        case _:
            return bool(text == want)
