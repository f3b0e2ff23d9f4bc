"""The declaration of handlers: from a decorator's options to a `Handler`.

fnop refuses a declaration that cannot work here, in a sentence with the remedy. The
decorators themselves are in `fnop.core.handlers.declare.decorators`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from typing import Any, ClassVar, NamedTuple, TypeVar

from msgspec import Struct

from fnop.core.api.definitions import named
from fnop.core.api.resources import EVERYTHING, Selector
from fnop.core.handlers.declare.checks import (
    Declared,
    check_duration,
    check_options,
    function_of,
)
from fnop.core.handlers.declare.filters import Callback, Filters, Presence
from fnop.core.handlers.declare.forms import Signature
from fnop.core.handlers.declare.handler import Handler, Within
from fnop.core.handlers.declare.log_selection import log_selection_of
from fnop.core.handlers.declare.options import (
    KindOptions,
    SubhandlerOptions,
    options_of,
)
from fnop.core.handlers.declare.plans import mapped
from fnop.core.handlers.declare.registry import Registry, default_registry
from fnop.core.handlers.declare.requeueing import requeue_of
from fnop.core.handlers.declare.roles import (
    ADMISSION,
    BACKGROUND,
    CHANGES,
    INDICES,
    LOGS,
    ROLES,
    Family,
    Finalizer,
    Role,
    RoleRule,
    kwargs_of,
)
from fnop.core.handlers.declare.schedule import (
    INTERVAL_SECONDS_MIN,
    Schedule,
    checked_cron,
)
from fnop.core.handlers.declare.signatures import (
    AdmissionHandler,
    ChangeHandler,
    LogHandler,
    ObjectCallback,
    names_in,
)
from fnop.core.handlers.declare.typed import check_typed
from fnop.core.handlers.declare.webhook import Webhook, webhook_of
from fnop.core.values.backoff import Backoff
from fnop.core.values.callables import is_awaited
from fnop.core.values.cause import Reason
from fnop.core.values.diff import Path, parse_field
from fnop.core.values.errors import (
    ErrorsMode,
    RegistrationError,
    hint_of,
    joined,
)
from fnop.effects.names import check_label
from fnop.effects.structs import replace
from fnop.effects.values import plain_text, shown

__all__ = ["Declaring", "declare", "declaring", "handler_outside"]

# pytest omits these frames from tracebacks, and shows the author's line.
__tracebackhide__ = True

Fn = TypeVar("Fn", bound=Callable[..., Any])


_ANY_KWARGS = frozenset().union(*map(kwargs_of, Role))
_IN_CALLBACKS = names_in(ObjectCallback)
_IN_PARTS = options_of(SubhandlerOptions)
_SELECTORS = options_of(KindOptions)
# Facts of a request, which only filters of admission handlers get.
_OF_REVIEWS = _IN_CALLBACKS & names_in(AdmissionHandler) - names_in(ChangeHandler)
# Facts of a line, which only the function in `when=` of log handlers gets.
_OF_LINES = _IN_CALLBACKS & names_in(LogHandler) - names_in(ChangeHandler)


_SUBHANDLER = "@fnop.subhandler"


class Declaring:
    """The collector of the sub-handlers that a handler declares while it runs.

    Other threads do not declare any.
    """

    current: ClassVar[ContextVar[Declaring | None]] = ContextVar(
        "declaring", default=None
    )

    def __init__(self, parent: Handler, indices: Collection[str] = ()) -> None:
        self.parent = parent
        self.indices = indices
        self.children: list[Handler] = []

    def add(self, fn: Callable[..., Any], options: Mapping[str, Any]) -> Handler:
        """Declare a sub-handler; its id begins with its parent's."""
        label, role = _SUBHANDLER, self.parent.role
        if role not in CHANGES:
            raise RegistrationError(
                f"{label}: only handlers of changes have sub-handlers, and "
                f"{self.parent.id} is one of {role.value}"
            )
        check_options(options, _IN_PARTS, label)
        own_id = self._unused_id(fn, options.get("id"))
        full_id = f"{self.parent.id}/{own_id}"
        name = f"{label} {full_id}"
        check_typed(fn, name, of_value=bool(options.get("field")))
        child = replace(
            self.parent,
            id=full_id,
            fn=fn,
            signature=Signature.of(fn, kwargs_of(role), name, self.indices),
            filters=_filters_of(options, label, role, self.indices),
            errors=options.get("errors") or ErrorsMode.TEMPORARY,
            timeout=options.get("timeout"),
            retries=options.get("retries"),
            backoff=options.get("backoff"),
            param=options.get("param"),
            function=function_of(fn, options, name),
            owner=None,
            owners=None,
            parent=self.parent.id,
            repeats=f"{self.parent.repeats}/{own_id}" if self.parent.repeats else "",
        )
        self._check_old(child)
        self.children.append(child)
        return child

    def _unused_id(self, fn: Callable[..., Any], given: Any) -> str:
        """The id of a sub-handler within its parent; refuses an id that is in use."""
        own_id = _id_of(fn, given) if given else _id_of(fn, None).rpartition(".")[2]
        if any(each.id == f"{self.parent.id}/{own_id}" for each in self.children):
            raise RegistrationError(
                f"{_SUBHANDLER}: {self.parent.id} declares two of the id {own_id!r}; "
                "give each its own id=..."
            )
        return own_id

    def _check_old(self, child: Handler) -> None:
        """Refuse a child that observes the old state if its parent does not."""
        if child.observes_old and not self.parent.observes_old:
            raise RegistrationError(
                f"{_SUBHANDLER}: {child.id} asks for the object's earlier state; that "
                f"is kept only where {self.parent.id} does so: name old or diff there "
                "too"
            )


def declaring() -> Declaring:
    """The collector of the running handler; raises `RegistrationError` without one."""
    found = Declaring.current.get()
    if found is None:
        raise RegistrationError(
            "sub-handlers are declared by a handler while it runs, and not by an "
            "impure one; at the top of a module use fnop.on...."
        )
    return found


def _id_of(fn: Callable[..., Any], explicit: Any) -> str:
    """The id of a handler, which names its result and its progress."""
    if explicit is not None:
        try:
            return plain_text(explicit, "id=")
        except (AttributeError, TypeError, ValueError):
            raise RegistrationError(
                f"id= is a handler's name, in Unicode, not {shown(explicit)}"
            ) from None
    inner: Any = fn
    while isinstance(inner, functools.partial):
        inner = inner.func
    name = getattr(inspect.unwrap(inner), "__qualname__", None)
    if not name or "<lambda>" in name:
        raise RegistrationError(f"{fn!r} has no name to serve as its id; give id=...")
    return str(name)


class _Asking(Struct, frozen=True):
    """The arguments that functions in a decorator's options may name."""

    label: str
    role: Role
    indices: Collection[str]

    def callback(self, fn: Any, name: str, *, takes_value: bool = False) -> Callback:
        """The callback of this option; refuses arguments that it cannot have."""
        known = self._known()
        if self.role in LOGS and name == "when":
            known |= _OF_LINES
        try:
            found = Callback.of(fn, takes_value=takes_value, known=known)
        except RegistrationError as problem:
            raise RegistrationError(f"{self.label}: {name}=: {problem}") from None
        for each in found.wants:
            if each not in known:
                where = f"{self.label}: the function in {name}= asks for"
                raise RegistrationError(
                    f"{where} {self._reason_of_refusal(each, known)}"
                )
        return found

    def _known(self) -> frozenset[str]:
        known = _IN_CALLBACKS | frozenset(self.indices)
        if self.role not in CHANGES:
            known -= {"reason"}
        if self.role not in ADMISSION:
            known -= _OF_REVIEWS
        known -= _OF_LINES
        return known - frozenset(self.indices) if self.role in INDICES else known

    def _reason_of_refusal(self, name: str, known: Collection[str]) -> str:
        if name in ("logger", "patch"):
            return (
                f"{name!r}, but a filter only answers, and is called at any time and "
                "any number of times; let the handler write"
            )
        if name in ("retry", "started", "runtime", "stopped"):
            return f"{name!r}, but it is asked before there is an attempt; leave it out"
        if name in _OF_REVIEWS:
            return f"{name!r}, but only filters of on.validate and on.mutate have one"
        if name in _OF_LINES:
            return f"{name!r}, but only the when= of on.log is asked about lines"
        if name == "reason":
            changes = joined([role.value for role in ROLES if role in CHANGES])
            return f"'reason', but only filters of changes have one: of on.{changes}"
        if name in self.indices:
            return (
                f"{name!r}, but an index is made of its objects alone, and not of "
                "another index"
            )
        return f"an unknown argument {name!r}; {hint_of(name, known)}"

    def wanted(self, value: Any, name: str) -> Any:
        """The value, or the callback, that a filter compares with."""
        if callable(value) and not isinstance(value, Presence):
            return self.callback(value, name, takes_value=True)
        return value


def _presence_criteria(
    values: Mapping[str, Any] | None, name: str, asking: _Asking
) -> tuple[Any, ...]:
    if values is not None and not isinstance(values, Mapping):
        raise RegistrationError(
            f"{asking.label}: {name}= takes a mapping, such as {{'app': 'db'}}, not "
            f"{shown(values)}"
        )
    for key, value in (values or {}).items():
        if value is None:
            raise RegistrationError(
                f"{asking.label}: {name}={{{key!r}: None}} is ambiguous; say "
                "fnop.PRESENT or fnop.ABSENT, or give a value"
            )
        is_value = not callable(value) and not isinstance(value, Presence)
        _check_mark(name, key, value if is_value else "", asking.label)
    return tuple(
        (key, asking.wanted(value, name))
        for key, value in sorted((values or {}).items())
    )


def _fields(
    values: Mapping[str, Any] | None, asking: _Asking
) -> tuple[tuple[Path, Any], ...]:
    """The fields in `fields=`, by their paths."""
    if values is not None and not isinstance(values, Mapping):
        raise RegistrationError(
            f"{asking.label}: fields= takes a mapping, such as "
            f"{{'spec.nodeName': 'n1'}}, not {shown(values)}"
        )
    found = []
    for name, value in sorted((values or {}).items(), key=str):
        try:
            path = parse_field(name)
        except ValueError as problem:
            raise RegistrationError(f"{asking.label}: fields=: {problem}") from None
        is_text = isinstance(value, (str, Presence))
        if not path or not (is_text or callable(value)):
            raise RegistrationError(
                f"{asking.label}: fields={{{name!r:.60}: {shown(value)}}} takes a text "
                "for a dotted path, as field selectors compare texts, fnop.PRESENT, "
                "fnop.ABSENT or a function"
            )
        found.append((path, asking.wanted(value, "fields")))
    return tuple(found)


def _check_mark(name: str, key: Any, value: Any, label: str) -> None:
    """Raise `RegistrationError` for a label or annotation that no object can have."""
    if not isinstance(value, str):
        raise RegistrationError(
            f"{label}: {name}={{{key!r:.60}: {value!r:.60}}} fits no object, for its "
            f"values are texts; write {str(value)!r:.60}"
        )
    if name == "labels":
        try:
            check_label(key, value)
        except ValueError as problem:
            raise RegistrationError(f"{label}: {problem}") from None


_RESTLESS = (("metadata", "resourceVersion"), ("metadata", "managedFields"))


def _filters_of(
    options: Mapping[str, Any], label: str, role: Role, indices: Collection[str]
) -> Filters:
    try:
        field = parse_field(options.get("field"))
    except ValueError as problem:
        raise RegistrationError(f"{label}: {problem}") from None
    _check_filters(options, label, role, field)
    when = options.get("when")
    asking = _Asking(label, role, indices)
    fields = _fields(options.get("fields"), asking)
    found = Filters(
        _presence_criteria(options.get("labels"), "labels", asking),
        _presence_criteria(options.get("annotations"), "annotations", asking),
        None if when is None else asking.callback(when, "when"),
        field,
        asking.wanted(options.get("value"), "value"),
        asking.wanted(options.get("old"), "old"),
        asking.wanted(options.get("new"), "new"),
        fields=fields,
    )
    callbacks = found.callbacks
    if not callbacks:
        return found
    return replace(
        found,
        asks_reason=any(each.asks_for(("reason",)) for each in callbacks),
        asks_indices=any(each.asks_for(indices) for each in callbacks),
    )


def _check_filters(
    options: Mapping[str, Any], label: str, role: Role, field: Path
) -> None:
    """Raise `RegistrationError` if the filters exclude each other, or cannot work."""
    if field[:2] in _RESTLESS and ROLES[role].compares:
        raise RegistrationError(
            f"{label}: field={options['field']!r} changes with each write, also with "
            "those of this operator, which would call the handler again and again; "
            "name what it depends on, such as 'spec' or 'metadata.labels'"
        )
    sides = [name for name in ("old", "new") if options.get(name) is not None]
    if not field and (sides or options.get("value") is not None):
        raise RegistrationError(f"{label}: value=, old= and new= need field=")
    if sides and options.get("value") is not None:
        raise RegistrationError(f"{label}: use either value= or old=/new=, not both")
    when = options.get("when")
    if when is not None and not callable(when):
        raise RegistrationError(f"{label}: when= takes a function, not {shown(when)}")


def _selector_of(
    words: tuple[Any, ...], options: Mapping[str, Any], label: str
) -> Selector:
    words = tuple(map(named, words))
    for word in words:
        if isinstance(word, type):
            raise RegistrationError(
                f"{label}: the class {word.__qualname__} is not a kind; decorate it "
                "with @fnop.definition('plural.version.group')"
            )
    if not all(isinstance(word, str) or _is_broad_word(word) for word in words):
        raise RegistrationError(
            f"{label}: use it with parentheses and name the kind, such as "
            f"{label}('pods')"
        )
    try:
        return Selector.of(
            *words, **{name: options[name] for name in _SELECTORS if name in options}
        )
    except ValueError as problem:
        raise RegistrationError(f"{label}: {problem}") from None


def _owner_selector(options: Mapping[str, Any], label: str) -> Selector | None:
    given = options.get("owner")
    if given is None:
        return None
    words = given if isinstance(given, tuple) else (given,)
    return _selector_of(words, {}, f"{label}: owner=")


def _owned_selectors(
    options: Mapping[str, Any], label: str
) -> tuple[tuple[str, Selector], ...]:
    """The kinds in `owns=`, each by its word."""
    given = options.get("owns") or ()
    words = (given,) if isinstance(given, str) or not _is_several(given) else given
    found = []
    for word in map(named, words):
        selector = _selector_of((word,), {}, f"{label}: owns=")
        if selector.is_broad or not isinstance(word, str):
            raise RegistrationError(
                f"{label}: owns= names each kind by a text such as 'services', not "
                f"{word!r:.40}"
            )
        found.append((word, selector))
    return tuple(found)


def _is_several(given: Any) -> bool:
    return isinstance(given, (list, tuple, set, frozenset))


def _is_broad_word(word: Any) -> bool:
    """Whether a word is EVERYTHING, or a function that selects kinds.

    A function with a handler's arguments is one, decorated without parentheses.
    """
    if word is EVERYTHING:
        return True
    if not callable(word) or is_awaited(word):
        return False
    parameters = list(inspect.signature(word).parameters.values())
    names = {
        each.name
        for each in parameters
        if each.default is each.empty and each.kind is not each.VAR_KEYWORD
    }
    return len(names) == 1 and not names & _ANY_KWARGS - {"resource"}


def _schedule_of(
    role: Role, options: Mapping[str, Any], label: str, indices: Collection[str]
) -> Schedule | None:
    if role not in BACKGROUND:
        return None
    asking = _Asking(label, role, indices)
    delay, interval = (
        _seconds_option(options, name, asking) for name in ("initial_delay", "interval")
    )
    cron = options.get("cron")
    if cron is not None and interval is not None:
        raise RegistrationError(f"{label}: use either interval= or cron=, not both")
    if options.get("sharp") and interval is None:
        raise RegistrationError(f"{label}: sharp= needs interval=")
    try:
        cron = None if cron is None else checked_cron(cron)
    except ValueError as problem:
        raise RegistrationError(f"{label}: {problem}") from None
    sharp = bool(options.get("sharp"))
    return Schedule(interval, sharp, options.get("idle"), cron, delay or 0.0)


def _seconds_option(options: Mapping[str, Any], name: str, asking: _Asking) -> Any:
    """The duration in an option, or the function of the object that returns one."""
    value = options.get(name)
    if callable(value):
        return asking.callback(value, name)
    least = INTERVAL_SECONDS_MIN if name == "interval" else 0
    check_duration(options, name, asking.label, least)
    return value


# Examples of the options that a role needs.
_EXAMPLES = {"field": "spec.size", "to": "databases"}


def _check_needs(
    rule: RoleRule, words: tuple[Any, ...], options: Mapping[str, Any]
) -> None:
    """Refuse a handler without an option that its role needs, or with a needless kind.

    Raises `RegistrationError`.
    """
    label = rule.decorator
    for name in rule.needs:
        if not options.get(name):
            example = f"{name}={_EXAMPLES[name]!r}"
            raise RegistrationError(f"{label} needs {name}=, such as {example}")
    if words and not (rule.is_about_objects or rule.is_about_kinds):
        raise RegistrationError(f"{label} is about no object; use it as {label}()")


def declare(
    role: Role, words: tuple[Any, ...], options: Mapping[str, Any]
) -> Callable[[Fn], Fn]:
    """The decorator for a role, for the kinds that `words` name, with these options."""
    decorator = _decorator_of(role, words, options)
    registry, label = decorator.registry, ROLES[role].decorator
    fields = decorator.read_options()
    requeue = requeue_of(options, label, registry)

    def decorate(fn: Fn) -> Fn:
        handler = decorator.make_handler(fn, fields)
        for each in () if requeue is None else requeue.handlers(handler, label):
            registry.add(each)
        registry.add(handler)
        return fn

    return decorate


def handler_outside(
    role: Role,
    words: tuple[Any, ...],
    options: Mapping[str, Any],
    fn: Callable[..., Any],
    function: str,
    author: Callable[..., Any],
    indices: Collection[str] = (),
) -> Handler:
    """The handler of a function that runs outside, as the recorded call `function`.

    `fn` calls the `author`'s function, to which places in the code refer. `fn` need
    not be importable: interpreters find it in the program, by the name `function`.
    Filters may ask for `indices`. Nothing is added to a registry. Raises
    `RegistrationError`.
    """
    decorator = _decorator_of(role, words, options)
    handler = decorator.make_handler(fn, decorator.read_options(indices))
    return replace(handler, function=function, author=author)


def _decorator_of(
    role: Role, words: tuple[Any, ...], options: Mapping[str, Any]
) -> _Decorator:
    rule = ROLES[role]
    check_options(options, options_of(rule.options), rule.decorator)
    _check_needs(rule, words, options)
    if role in LOGS:
        words, options = _options_for_pods(words, options, rule.decorator)
    return _Decorator(role, words, options, options.get("registry") or default_registry)


class _Decorator(NamedTuple):
    """One use of a decorator: its role, the words for its kinds, and its options."""

    role: Role
    words: tuple[Any, ...]
    options: Mapping[str, Any]
    registry: Registry

    def read_options(self, more_indices: Collection[str] = ()) -> dict[str, Any]:
        """The fields of a `Handler` that the options determine.

        Functions in the options may also ask for indices outside of the registry.
        Raises `RegistrationError` for the first impossible option.
        """
        role, words, options, registry = self
        rule, indices = ROLES[role], {*registry.indices, *more_indices}
        label = rule.decorator
        asking = _Asking(label, role, indices)
        names_kinds = rule.is_about_kinds and words
        return {
            "selector": (
                _selector_of(words, options, label) if rule.is_about_objects else None
            ),
            "filters": _filters_of(options, label, role, indices),
            "schedule": _schedule_of(role, options, label, indices),
            "owner": _owner_selector(options, label),
            "owns": _owned_selectors(options, label),
            "resync": _resync_of(options, label),
            "to": _kind_in_to(options, label),
            "about": _selector_of(words, {}, label) if names_kinds else None,
            "after": _delay_after(rule, options),
            "webhook": webhook_of(options, label) if role in ADMISSION else None,
            "log": (
                log_selection_of(options, label, asking.callback)
                if role in LOGS
                else None
            ),
            **_plain_options(role, options),
        }

    def make_handler(
        self, fn: Callable[..., Any], fields: Mapping[str, Any]
    ) -> Handler:
        """The handler of a function, with the `fields` that `read_options` returned.

        Raises `RegistrationError` for a function that its role cannot call.
        """
        role, _, options, registry = self
        rule, indices = ROLES[role], registry.indices
        own_id = _own_id(fn, role, options.get("id"), fields["filters"])
        name = f"{rule.decorator} {own_id}"
        signature = Signature.of(fn, kwargs_of(role), name, indices)
        if rule.is_about_objects:
            self._check_annotations(fn, name, fields["webhook"])
        function = function_of(fn, options, name)
        rule.check(Declared(rule.decorator, own_id, signature, bool(function), indices))
        called = Within(mapped, fn, fields["to"]) if fields["to"] else fn
        return Handler(own_id, called, role, signature, function=function, **fields)

    def _check_annotations(
        self, fn: Callable[..., Any], name: str, webhook: Webhook | None
    ) -> None:
        """Refuse a function whose annotations do not fit the objects that it gets."""
        words = self.words
        check_typed(
            fn,
            name,
            words[0] if len(words) == 1 and isinstance(words[0], type) else None,
            of_value=bool(self.options.get("field")) and webhook is None,
            may_be_new=_may_be_new(ROLES[self.role], webhook),
        )


# The words for pods, and for their version.
_PODS = frozenset(("pods", "pod", "po", "v1"))


def _options_for_pods(
    words: tuple[Any, ...], options: Mapping[str, Any], label: str
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The words and options of a log handler, whose kind is always the same.

    Raises `RegistrationError` for any other kind.
    """
    given = [options[name] for name in _SELECTORS if options.get(name)]
    if not {str(each).lower() for each in (*words, *given)} <= _PODS:
        raise RegistrationError(
            f"{label}: only pods have logs; use it as {label}('pods', labels=...), and "
            "select the pods by their labels"
        )
    rest = {name: each for name, each in options.items() if name not in _SELECTORS}
    return ("v1", "pods"), rest


# The seconds after which an API server that does not answer counts as unreachable.
AFTER_SECONDS = 30.0


def _resync_of(options: Mapping[str, Any], label: str) -> Any:
    check_duration(options, "resync", label, INTERVAL_SECONDS_MIN)
    return options.get("resync")


def _delay_after(rule: RoleRule, options: Mapping[str, Any]) -> float:
    if "after" not in options_of(rule.options):
        return 0.0
    check_duration(options, "after", rule.decorator, 0)
    given = options.get("after")
    return AFTER_SECONDS if given is None else float(given)


def _may_be_new(rule: RoleRule, webhook: Webhook | None) -> bool:
    """Whether a handler is called for creations, which have no old object."""
    if webhook is None:
        return rule.reasons == (Reason.CREATE,)
    if webhook.subresource in ("status", "scale"):  # are parts of existing ones
        return False
    return not webhook.operations or "CREATE" in webhook.operations


def _own_id(
    fn: Callable[..., Any], role: Role, given: str | None, filters: Filters
) -> str:
    """The id of a handler; with `field=` the field's path is a part of it."""
    own_id = _id_of(fn, given)
    if role in INDICES:  # its bare name is an argument of handlers
        return own_id.rpartition(".")[2]
    return f"{own_id}/{'.'.join(filters.field)}" if filters.field else own_id


def _kind_in_to(options: Mapping[str, Any], label: str) -> str:
    """The kind in `to=`; "" without it."""
    word = named(options.get("to"))
    if word is None:
        return ""
    if not isinstance(word, str) or _selector_of((word,), {}, f"{label}: to=").is_broad:
        raise RegistrationError(
            f"{label}: to= names one kind by a text such as 'databases', not "
            f"{word!r:.40}"
        )
    return word


_AS_GIVEN = (
    *("timeout", "retries", "backoff", "param"),
    *("cancellation_backoff", "cancellation_timeout"),
)
_FLAGS = ("optional", "deleted", "write_ahead")


def _plain_options(role: Role, options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a handler that are plain options, with their defaults."""
    found = {name: options.get(name) for name in _AS_GIVEN}
    found |= {name: bool(options.get(name)) for name in _FLAGS}
    if role in ADMISSION:
        found["timeout"] = None  # the option is the API server's, for one answer
    rule = ROLES[role]
    usual = rule.finalizer is Finalizer.UNLESS_DECLINED
    if rule.family is Family.RECONCILER and found["backoff"] is None:
        found["backoff"] = Backoff()
    return {
        **found,
        "errors": options.get("errors") or rule.errors,
        "finalizer": bool(options.get("finalizer", usual)),
    }
