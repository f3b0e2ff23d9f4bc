"""The vocabulary: an operator's possible requests to the world, as values.

An effect is frozen, JSON-able and validated when it is built. It can be returned from a
handler, yielded, or awaited for its answer; building one does nothing. The lower-case
functions in `fnop.effects.builders` are the usual way to build them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from types import CoroutineType, FrameType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from msgspec import Struct, field
from msgspec.structs import force_setattr

from fnop.effects.names import check_name, check_namespace, check_subresource
from fnop.effects.structs import beside
from fnop.effects.values import (
    check_seconds,
    freeze_json,
    freeze_written,
    plain_text,
    read_only,
    shown,
    without_addresses,
)

__all__ = [
    "Adopt",
    "Again",
    "Apply",
    "Call",
    "Create",
    "Delete",
    "Effect",
    "Event",
    "Freeze",
    "Get",
    "List",
    "Log",
    "Patch",
    "Random",
    "Rate",
    "Remember",
    "Requeue",
    "Resume",
    "Return",
    "Sleep",
    "Target",
    "Wait",
    "Witness",
    "check_manifest",
    "line_of",
    "unanswered",
]

# Kubernetes limits an Event's message to 1024 bytes and its reason to 128
# (core/v1 Event validation).
EVENT_MESSAGE_LENGTH_MAX = 1024
EVENT_REASON_LENGTH_MAX = 128

LEVELS = ("debug", "info", "warning", "error")
_PROPAGATIONS = (None, "Background", "Foreground", "Orphan")


_OWN_MODULES = __name__.rpartition(".")[0] + "."


def _is_own(module: dict[str, Any]) -> bool:
    return str(module.get("__name__")).startswith(_OWN_MODULES)


def line_of(frame: FrameType) -> str:
    """The current line of a frame, as `file:line`."""
    file = frame.f_globals.get("__file__") or frame.f_code.co_filename
    return f"{file}:{frame.f_lineno}"


def _too_many_unawaited(effect: Any, where: str) -> BaseException:
    return TypeError(
        f"{Witness.UNASKED_MAX} effects were built and not awaited, the last of them "
        f"the {effect.kind} at {where}: await each effect, or return a shorter plan"
    )


class Witness:
    """Record the effects that are built while a handler is driven, and their lines.

    A handler that builds an effect and drops it has forgotten a `return`, a `yield` or
    an `await`. Nothing else can detect that. Threads other than the drive's have
    witnesses of their own. `most` limits how many it remembers, for code that may run
    forever.

    `refused` is the forbidden side effect of the handler, if any. It fails the handler,
    even if the handler catches the error. `unasked` counts the effects that were built
    since the handler's last request: a loop that forgets its await never ends.

    If it `is_driven`, a dropped coroutine of a helper counts as well: `dropped` is the
    error for the first one. `made` are the settings that were made from others, each
    with those and with its line.
    """

    UNASKED_MAX: ClassVar[int] = 10_000

    current: ClassVar[ContextVar[Witness | None]] = ContextVar("witness", default=None)

    def __init__(self, most: int = sys.maxsize, *, is_driven: bool = False) -> None:
        self.built: list[tuple[Any, str]] = []
        self.refused: BaseException | None = None
        self.dropped: TypeError | None = None
        self.made: list[tuple[Any, Any, str]] = []
        self.is_driven = is_driven
        self.unasked = 0
        self._most = most

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Note the effects that are built in this context."""
        outer = self.current.set(self)
        try:
            yield
        finally:
            self.current.reset(outer)

    @classmethod
    @contextmanager
    def looking_away(cls) -> Iterator[None]:
        """Build effects that are not the author's own."""
        outer = cls.current.set(None)
        try:
            yield
        finally:
            cls.current.reset(outer)

    def saw(self, effect: Any) -> None:
        if len(self.built) >= self._most:
            return
        self.unasked += 1
        frame = sys._getframe(2)
        # Skip the builders, and the __init__ that dataclasses generate. By the names of
        # modules: Python reports each look at a frame's code to audit hooks.
        while frame.f_back and _is_own(frame.f_globals):
            frame = frame.f_back
        where = line_of(frame)
        if self.unasked > self.UNASKED_MAX:
            self.refused = self.refused or _too_many_unawaited(effect, where)
            raise self.refused
        self.built.append((effect, where))

    def saw_made(self, made: Any, base: Any) -> None:
        """Note that the author has made other settings from these."""
        self.made.append((made, base, line_of(sys._getframe(2))))

    def saw_dropped(self, coroutine: CoroutineType[Any, Any, Any]) -> None:
        """Note a coroutine that can never be awaited now."""
        if self.dropped is None:
            self.dropped = TypeError(
                f"{coroutine.__qualname__}(...){_place_of_coroutine(coroutine)} was "
                "not awaited, so it has done nothing: write "
                f"`await {coroutine.__name__}(...)`"
            )


def _place_of_coroutine(coroutine: CoroutineType[Any, Any, Any]) -> str:
    """The place of a coroutine's creation, if Python has kept it (`cr_origin`)."""
    origin = coroutine.cr_origin
    return f" at {origin[0][0]}:{origin[0][1]}" if origin else ""


class _Effect(Struct, frozen=True):
    """The base of all effects: they can be awaited, and validate their own fields."""

    def __post_init__(self) -> None:
        self._check()
        witness = Witness.current.get()
        if witness is not None:
            witness.saw(self)

    def _check(self) -> None:
        """Validate and freeze the fields."""

    def _freeze(
        self,
        name: str,
        kind: type | None = None,
        frozen: Callable[[Any, str], Any] = freeze_json,
    ) -> None:
        value = getattr(self, name)
        where = f"{type(self).__name__}.{name}"
        if kind is not None and not isinstance(value, kind):
            raise TypeError(
                f"{where} must be a {kind.__name__}, not {type(value).__name__}"
            )
        force_setattr(self, name, frozen(value, where))

    def __await__(self) -> Generator[Any, Any, Any]:
        return (yield self)

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        _refuse_change(self)

    def __delitem__(self, key: Any) -> NoReturn:
        _refuse_change(self)

    @property
    def kind(self) -> str:
        """The name of the effect: `Patch`, `Event`, …"""
        return type(self).__name__


class _Asking(_Effect, frozen=True):
    """An effect with an answer, which is available only by awaiting the effect."""

    def __getitem__(self, key: Any) -> NoReturn:
        part = "items" if isinstance(key, int) else f"[{key!r}]"
        raise TypeError(_words_for_unawaited(self, f"has no {part}"))

    if not TYPE_CHECKING:  # a type checker knows the attributes

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("__"):
                raise AttributeError(f"{self.kind} has no attribute {name!r}")
            raise AttributeError(_words_for_unawaited(self, f"has no .{name}"))


class _Question(_Asking, frozen=True):
    """An effect that is built only for its answer, such as a read."""

    def __len__(self) -> int:
        raise TypeError(_words_for_unawaited(self, "has no length"))

    def __bool__(self) -> bool:
        raise TypeError(_words_for_unawaited(self, "is neither true nor false"))


def _refuse_change(effect: _Effect) -> NoReturn:
    raise TypeError(
        f"{_builder_call(effect)} cannot be changed once it is built: change the "
        "manifest before, or the object that it answers, by a patch"
    )


def _builder_call(effect: _Effect) -> str:
    return f"{_BUILT_BY.get(effect.kind, f'fnop.{effect.kind.lower()}')}(...)"


def _words_for_unawaited(effect: _Effect, lack: str) -> str:
    call = _builder_call(effect)
    return (
        f"{call} was not awaited, so it {lack}: write `await {call}` in an async "
        f"handler, or `yield {call}` in a generator"
    )


_BUILT_BY = {"Wait": "stopped.wait"}


def unanswered(effect: Any) -> str | None:
    """Explain why an effect cannot be part of a plan: its answer would be lost.

    None for any other effect, which a plan may contain.
    """
    if not isinstance(effect, _Question):
        return None
    return _words_for_unawaited(effect, "answers nobody")


def _check_text(effect: Struct, name: str, *, optional: bool = False) -> None:
    value = getattr(effect, name)
    if optional and value is None:
        return
    if not isinstance(value, str) or not value:
        raise ValueError(
            f"{type(effect).__name__}.{name} must be a non-empty string, not "
            f"{shown(value)}"
        )
    _set_plain_texts(effect, name)


def _set_plain_texts(effect: Struct, *names: str) -> None:
    """Convert some fields to plain texts: `f"{Colour.RED}"` is not a `Colour` value."""
    for name in names:
        value = getattr(effect, name)
        if value is not None and (type(value) is not str or not value.isascii()):
            found = plain_text(value, f"{type(effect).__name__}.{name}")
            force_setattr(effect, name, found)


def _check_selector(effect: Struct, name: str) -> None:
    if getattr(effect, name):
        _check_text(effect, name)


class Target(Struct, frozen=True):
    """The address of an object: its kind, its namespace, its name.

    `resource` names the kind in any form that `kubectl` accepts. `namespace` None means
    the handled object's own, for namespaced kinds. With a `uid`, an effect is for that
    object alone: it is a conflict if another object has the `name`. Build it with
    `fnop.target`.

    >>> str(Target("pods", "web", "prod"))
    'pods web in prod'
    """

    resource: str
    name: str
    namespace: str | None = None
    uid: str | None = None

    def __post_init__(self) -> None:
        _check_text(self, "resource")
        _check_text(self, "uid", optional=True)
        check_name(self.name, "name")
        if self.namespace is not None:
            check_namespace(self.namespace, "namespace")
        _set_plain_texts(self, "name", "namespace")

    @classmethod
    def existing(
        cls, resource: str, name: str, namespace: str | None, uid: str | None = None
    ) -> Target:
        """The address of an object that the API server has returned.

        Its name is not checked: some kinds may have unusual names (Kubernetes:
        IsValidPathSegmentName), and the object exists.
        """
        target = copy(_ANY)  # which checks nothing
        force_setattr(target, "resource", resource)
        force_setattr(target, "name", name)
        force_setattr(target, "namespace", namespace)
        force_setattr(target, "uid", uid)
        return target

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.resource} {self.name}{where}"


_ANY = Target("any", "any")


class Patch(_Asking, frozen=True):
    """Change an object; without a target, the handled one.

    `merge` is a JSON merge patch (RFC 7386), `json` a tuple of RFC 6902 operations.
    Changes of the handled object are fused into one write.
    """

    target: Target | None = None
    merge: Any = None
    json: tuple[Any, ...] = ()
    subresource: str | None = None

    def _check(self) -> None:
        if self.merge is not None:
            self._freeze("merge", dict, freeze_written)
        if self.json != ():
            self._check_operations()
        if self.subresource is not None:
            check_subresource(self.subresource, "Patch.subresource")
            _set_plain_texts(self, "subresource")
        if self.merge is None and not self.json:
            raise ValueError(
                "Patch changes nothing; give fields, such as patch(status={...})"
            )

    @classmethod
    def of_parts(cls, merge: dict[str, Any], subresource: str | None) -> Patch:
        """Return a merge patch of the handled object, made from effects and objects.

        Their values are known to be JSON: they are made read-only, and not checked.

        >>> Patch.of_parts({"status": {"size": 1}}, "status").merge["status"]
        {'size': 1}
        """
        patch = copy(_EMPTY)  # which checks nothing
        force_setattr(patch, "merge", read_only(merge))
        force_setattr(patch, "subresource", subresource)
        return patch

    def _check_operations(self) -> None:
        operations = tuple(
            freeze_written(operation, f"Patch.json[{n}]")
            for n, operation in enumerate(self.json)
        )
        for n, operation in enumerate(operations):
            problem = _fault_of_operation(operation)
            if problem:
                raise ValueError(
                    f"Patch.json[{n}] {problem}; it takes RFC 6902 operations such as "
                    '{"op": "add", "path": "/spec/x", "value": 1}'
                )
        force_setattr(self, "json", operations)
        if self.merge is not None and operations:
            raise ValueError("Patch takes either fields or json=, not both")


_EMPTY = Patch(merge={})

# The part that each operation of a JSON patch needs next to its path (RFC 6902).
_OPERATIONS = {
    "add": "value",
    "replace": "value",
    "test": "value",
    "remove": "path",
    "move": "from",
    "copy": "from",
}


def _fault_of_operation(operation: Any) -> str:
    """The reason why no server accepts an operation of a JSON patch; "" if one may.

    >>> _fault_of_operation({"op": "add", "path": "spec/x", "value": 1})
    "has the path 'spec/x', which does not begin with a /"
    """
    if not isinstance(operation, dict) or not {"op", "path"} <= set(operation):
        return f"is {operation!r:.80}, without op and path"
    op, path = operation["op"], operation["path"]
    if op not in _OPERATIONS:
        return f"has the op {op!r:.80}, and there are {', '.join(_OPERATIONS)}"
    for name in ("path", "from"):
        place = operation.get(name, "")
        if not isinstance(place, str) or (place and not place.startswith("/")):
            return f"has the {name} {place!r:.80}, which does not begin with a /"
    lack = _OPERATIONS[op]
    return "" if lack in operation else f"has no {lack}: {op} {path}"


def _check_manifest(effect: _Effect, name: str = "manifest", *, named: bool) -> None:
    effect._freeze(name, dict, freeze_written)
    check_manifest(getattr(effect, name), type(effect).__name__, named=named)


_NAME_CHECKS = (("name", check_name), ("namespace", check_namespace))


def check_manifest(manifest: Any, label: str, *, named: bool) -> None:
    """Raise `ValueError` for a manifest that no API server accepts."""
    for key in ("apiVersion", "kind"):
        if not isinstance(manifest.get(key), str) or not manifest[key]:
            raise ValueError(f"{label}: the manifest has no {key}")
    metadata = manifest.get("metadata", {})
    if not isinstance(metadata, dict):
        raise ValueError(f"{label}: the manifest's metadata is not a mapping")
    for key in ("labels", "annotations"):
        if not isinstance(metadata.get(key) or {}, Mapping):
            raise ValueError(f"{label}: metadata.{key} is not a mapping")
    for key, check in _NAME_CHECKS:
        if metadata.get(key) not in (None, ""):  # which has the same form in a manifest
            check(metadata[key], f"{label}: metadata.{key}")
    if named and not metadata.get("name"):
        raise ValueError(f"{label}: {_reason_without_name(metadata)}")


def _reason_without_name(metadata: Mapping[str, Any]) -> str:
    """The reason to refuse a nameless manifest; a handler may run more than once."""
    if metadata.get("generateName"):
        return (
            "generateName would make a new object at every run; give metadata.name, "
            "one that is the same at every run"
        )
    return (
        "the manifest has no metadata.name; a name that is the same at every run lets "
        "a repeated run find its own object"
    )


class Apply(_Asking, frozen=True):
    """Server-side apply of a manifest under this operator's field manager."""

    manifest: Any
    force: bool = False

    def _check(self) -> None:
        _check_manifest(self, named=True)


class Create(_Asking, frozen=True):
    """Create an object; it is an error if it exists."""

    manifest: Any

    def _check(self) -> None:
        _check_manifest(self, named=True)


class Delete(_Asking, frozen=True):
    """Delete an object, if its uid and resourceVersion are still the given ones."""

    target: Target
    uid: str | None = None
    resource_version: str | None = None
    propagation: str | None = None

    def _check(self) -> None:
        _check_text(self, "uid", optional=True)
        _check_text(self, "resource_version", optional=True)
        if self.propagation not in _PROPAGATIONS:
            raise ValueError(
                "Delete.propagation is Background, Foreground or Orphan, "
                f"not {shown(self.propagation)}"
            )
        _set_plain_texts(self, "propagation")


class Get(_Question, frozen=True):
    """Read an object live; the answer is None when it does not exist."""

    target: Target


class List(_Question, frozen=True):
    """Read a collection live.

    `namespace` None is the handled object's namespace, `"*"` means all.
    """

    resource: str
    namespace: str | None = None
    label_selector: str | None = None
    field_selector: str | None = None

    def _check(self) -> None:
        _check_text(self, "resource")
        _check_selector(self, "label_selector")
        _check_selector(self, "field_selector")
        if self.namespace not in (None, "*"):
            check_namespace(self.namespace, "List.namespace")
        _set_plain_texts(self, "namespace")


def label_patterns(given: Any) -> tuple[str, ...] | None:
    """The names of labels, or patterns of names, as a tuple; None stays None.

    Raises `TypeError` for anything but several texts.

    >>> label_patterns(["app", "example.com/*"]), label_patterns(None)
    (('app', 'example.com/*'), None)
    """
    if given is None:
        return None
    is_several = isinstance(given, Iterable) and not isinstance(given, (str, Mapping))
    found = tuple(given) if is_several else ()
    if not is_several or not all(isinstance(each, str) for each in found):
        raise TypeError(
            "labels= names those of the owner's labels that a child gets, such as "
            f"['app', 'example.com/*'], not {shown(given)}; what is to be added goes "
            "into the child, or through fnop.label"
        )
    return found


class Adopt(_Asking, frozen=True):
    """Ensure that a child of the handled object exists and is owned by it.

    A child without a name gets a deterministic one. It is made from the owner's uid,
    the handler's id and `role` (or the child's place among the handler's children).
    `nested` are dotted paths within the child that get the owner's labels, too.
    `labels` are the names, or patterns, of the labels that it gets; None leaves the
    choice to the settings.
    """

    child: Any
    role: str | None = None
    nested: tuple[str, ...] = ()
    labels: tuple[str, ...] | None = None

    def _check(self) -> None:
        _check_manifest(self, "child", named=False)
        if self.child.get("metadata", {}).get("generateName"):
            raise ValueError(
                "Adopt: generateName would make a new child at every run; leave the "
                "name out (a stable one is made) or give metadata.name"
            )
        _check_text(self, "role", optional=True)
        force_setattr(self, "labels", label_patterns(self.labels))
        if "" in self.nested:
            raise ValueError(
                f"Adopt.nested takes dotted paths such as 'spec.template', not "
                f"{self.nested!r}"
            )


class Event(_Effect, frozen=True):
    """Report a Kubernetes Event about an object; it can never fail a handler."""

    reason: str
    message: str = ""
    type: str = "Normal"
    target: Target | None = None

    def _check(self) -> None:
        _check_text(self, "reason")
        if len(self.reason.encode()) > EVENT_REASON_LENGTH_MAX:
            raise ValueError(
                f"Event.reason is longer than {EVENT_REASON_LENGTH_MAX} bytes; it is "
                "a short CamelCase word, the sentence goes to the message"
            )
        if not isinstance(self.message, str):
            raise TypeError("Event.message must be a string")
        _set_plain_texts(self, "message", "type")
        if self.type not in ("Normal", "Warning"):
            raise ValueError(f"Event.type is Normal or Warning, not {shown(self.type)}")
        message = _shorten(without_addresses(self.message))
        force_setattr(self, "message", message)


def _shorten(message: str) -> str:
    """Cut a message to the API server's limit, keeping its start and end."""
    raw = message.encode()
    if len(raw) <= EVENT_MESSAGE_LENGTH_MAX:
        return message
    half = EVENT_MESSAGE_LENGTH_MAX // 2 - 3
    start, end = raw[:half].decode(errors="ignore"), raw[-half:].decode(errors="ignore")
    return f"{start}...{end}"


class Sleep(_Asking, frozen=True):
    """Continue this conversation, or this plan, after some seconds."""

    seconds: float

    def _check(self) -> None:
        _check_seconds(self, "seconds")


class Wait(_Question, frozen=True):
    """Wait until a daemon is to stop; return whether it is.

    `seconds` is the longest wait; None waits without a limit.
    """

    seconds: float | None = None

    def _check(self) -> None:
        if self.seconds is not None:
            _check_seconds(self, "seconds")


def _check_seconds(effect: Struct, name: str) -> None:
    check_seconds(getattr(effect, name), f"{type(effect).__name__}.{name}")


class Again(_Effect, frozen=True):
    """Run this handler again later: it is waiting, which is not a failure.

    Counts towards the handler's `timeout`, not towards its `retries`.
    """

    after: float
    because: str = ""

    def _check(self) -> None:
        _check_seconds(self, "after")
        if not isinstance(self.because, str):
            raise TypeError(
                f"Again.because is what it waits for, in words, not "
                f"{shown(self.because)}"
            )
        _set_plain_texts(self, "because")
        force_setattr(self, "because", without_addresses(self.because))


class Execute(_Asking, frozen=True):
    """Run the sub-handlers that this handler has declared, by their own ids.

    Returns a mapping of each id to its end: `finished` is "success" or "failure", and
    `message` explains a failure.
    """

    children: tuple[str, ...]

    def _check(self) -> None:
        force_setattr(self, "children", tuple(self.children))


class Return(_Effect, frozen=True):
    """The handler's result, for `status.<handler id>`: any JSON value."""

    value: Any

    def _check(self) -> None:
        self._freeze("value")


class Freeze(_Effect, frozen=True):
    """The operator stops serving: streams close, daemons stop."""

    reason: str

    def _check(self) -> None:
        _check_text(self, "reason")


class Resume(_Effect, frozen=True):
    """The operator serves again after a `Freeze`."""


class Call(_Asking, frozen=True):
    """Run a function outside of the pure core: the only way to have side effects.

    `function` is its importable name, `module:qualified.name`; `arguments` are keyword
    arguments in JSON, so that a log can show the call and a replay can answer it.
    `as_handler` means that the function is an impure handler. It gets a handler's
    arguments, made from these, and may return a handler's results. With `per_second`,
    the function is called at most this often, for all objects together. Before that,
    the first `burst` calls may come at once.
    """

    function: str
    arguments: Any = field(default_factory=dict)
    as_handler: bool = False
    per_second: float | None = None
    burst: float = 1.0

    def _check(self) -> None:
        _check_text(self, "function")
        if ":" not in self.function or "<" in self.function:
            raise ValueError(
                f"Call.function {self.function!r} is not importable; pass a function "
                "defined at the top level of a module"
            )
        self._freeze("arguments", dict)


class Rate(Struct, frozen=True):
    """A limit of calls, built by `fnop.rate`.

    There are this many calls `per_second`, after the first `burst`, which may come at
    once.

    >>> Rate(per_second=2.0, burst=1).burst
    1
    """

    per_second: float
    burst: float


class Random(_Question, frozen=True):
    """Fresh random bytes, as a recorded answer.

    Bytes of a `secret` are not written into recordings: others replace them there.
    """

    size: int
    secret: bool = False

    def _check(self) -> None:
        if not isinstance(self.secret, bool):
            raise ValueError(
                f"Random.secret is True or False, not {shown(self.secret)}"
            )
        size: Any = self.size
        if not isinstance(size, int) or not 1 <= size <= 1024:
            raise ValueError(f"Random.size is 1 to 1024 bytes, not {shown(size)}")


@beside("exception")
class Log(_Effect, frozen=True):
    """Write a line to the operator's log, prefixed with the handled object.

    The traceback of a live `exception` is shown; it is not part of the value.
    """

    level: str
    message: str
    fields: Any = field(default_factory=dict)
    exception: BaseException | None = None

    def _check(self) -> None:
        if self.level not in LEVELS:
            raise ValueError(f"Log.level is one of {', '.join(LEVELS)}")
        if not isinstance(self.message, str):
            raise TypeError("Log.message must be a string")
        _set_plain_texts(self, "message")
        force_setattr(self, "message", without_addresses(self.message))
        self._freeze("fields", dict)


class Requeue(_Effect, frozen=True):
    """Call the reconcilers of an object again, though it has not changed."""

    target: Target


class Remember(_Effect, frozen=True):
    """Merge changes into the object's memo; None removes a key."""

    changes: Any

    def _check(self) -> None:
        self._freeze("changes", dict)


Effect = (
    Patch
    | Apply
    | Create
    | Delete
    | Get
    | List
    | Adopt
    | Event
    | Sleep
    | Wait
    | Again
    | Execute
    | Return
    | Freeze
    | Resume
    | Call
    | Random
    | Log
    | Remember
    | Requeue
)
"""Any effect: the type of one entry of a plan.

For example:

    def plan(name: str, **_: Any) -> list[fnop.Effect]:
        return [fnop.event("Creating", name), fnop.patch(status={"phase": "New"})]
"""
