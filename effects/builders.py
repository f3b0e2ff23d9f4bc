"""The words in which operators are written: `fnop.patch(...)`, `fnop.get(...)`.

Each builds one effect value and does nothing.  Return it (alone or in a list),
yield it, or await it for its answer.
"""

from __future__ import annotations

import builtins
import functools
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar, overload

from fnop.effects.effects import (
    Adopt,
    Again,
    Apply,
    Call,
    Create,
    Delete,
    Effect,
    Event,
    Freeze,
    Get,
    List,
    Log,
    Patch,
    Random,
    Remember,
    Resume,
    Return,
    Sleep,
    Target,
    Wait,
    label_patterns,
)
from fnop.effects.manifests import Manifest, each_manifest, manifest_of
from fnop.effects.names import check_marks, field_selector, label_selector

__all__ = [
    "adopt",
    "again",
    "apply",
    "call",
    "create",
    "delete",
    "event",
    "exception",
    "freeze",
    "get",
    "info",
    "list",
    "log",
    "patch",
    "random",
    "remember",
    "result",
    "resume",
    "sleep",
    "target",
    "warn",
]

_Any = Any
_Targeted = Target | Manifest
P = ParamSpec("P")
R = TypeVar("R")


def _named_after(
    places: int, example: str
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function of so many arguments by their places; others have to be named.

    The example shows how, with the first two arguments in it.
    """

    def decorate(fn: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(fn)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            if len(args) > places:
                raise TypeError(_unnamed(args, places, example))
            return fn(*args, **kwargs)

        return wrapper

    return decorate


def _unnamed(args: tuple[_Any, ...], places: int, example: str) -> str:
    given = ", ".join(f"{each!r:.40}" for each in args[places:])
    shown = [f"{each!r:.40}" if isinstance(each, str) else "..." for each in args]
    meant = example.format(*shown, "...")
    return f"say what {given} is, by its name, as in {meant}"


def _instead(
    places: int, otherwise: str, **remedies: str
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function of so many arguments by their places, and none of these names.

    For each name there is a sentence that says what to write instead; `otherwise` says
    it for too many arguments.
    """

    def decorate(fn: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(fn)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in kwargs:
                if name in remedies:
                    raise TypeError(remedies[name])
            if len(args) > places:
                raise TypeError(otherwise)
            return fn(*args, **kwargs)

        return wrapper

    return decorate


def _reporting(fn: Callable[P, R]) -> Callable[P, R]:
    """A function of a reason and a message, and not of the object that it is about."""

    @functools.wraps(fn)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        if len(args) > 2 or not all(isinstance(each, str) for each in args):
            raise TypeError(
                f"fnop.{fn.__name__} takes a reason and a message in words, and is "
                f"about the handled object: write fnop.{fn.__name__}(reason, message), "
                "with about=... for another object"
            )
        return fn(*args, **kwargs)

    return wrapper


@_named_after(1, "fnop.target({}, name={})")
def target(
    kind: str, *, name: str, namespace: str | None = None, uid: str | None = None
) -> Target:
    """The address of an object, for effects on objects other than the handled one."""
    return Target(kind, name, namespace, uid)


def _target_of(where: _Targeted) -> Target:
    """A target from a target, or from an object or manifest that names one."""
    if isinstance(where, Target):
        return where
    try:
        found = manifest_of(where)
        group, _, version = found["apiVersion"].rpartition("/")
        metadata = found["metadata"]
        return Target(
            f"{found['kind']}.{version}.{group}",
            metadata["name"],
            metadata.get("namespace"),
            metadata.get("uid"),
        )
    except (KeyError, TypeError, AttributeError):
        raise TypeError(
            "the target must be an object with apiVersion, kind and metadata.name, "
            "or fnop.target(kind, name=..., namespace=...)"
        ) from None


def _with_marks(metadata: Any, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a merge patch with more labels, or annotations.

    >>> _with_marks({"labels": {"a": "1"}}, "labels", {"b": "2"})
    {'labels': {'a': '1', 'b': '2'}}
    """
    there = metadata.get(name, {}) if isinstance(metadata, Mapping) else None
    if not isinstance(there, Mapping):
        raise ValueError(
            f"{name}= cannot be added to metadata={metadata!r:.80}; give all {name} in "
            "one place"
        )
    both = [key for key in values if key in there and there[key] != values[key]]
    if both:
        raise ValueError(
            f"metadata= and {name}= give {both[0]!r} two values, {there[both[0]]!r} "
            f"and {values[both[0]]!r}; give it once"
        )
    return {**metadata, name: {**there, **values}}


@_named_after(1, "fnop.patch({}, status={})")
def patch(
    where: _Targeted | None = None,
    /,
    *,
    labels: Mapping[str, str | None] | None = None,
    annotations: Mapping[str, str | None] | None = None,
    json: Iterable[Mapping[str, Any]] = (),
    subresource: str | None = None,
    **fields: _Any,
) -> Patch:
    """Change fields of the handled object, or of the one given.

    `fields` are top-level stanzas as a JSON merge patch: None removes a key.  Raises
    `ValueError` where `metadata=` gives a label or annotation another value than
    `labels=` or `annotations=`, and for one that is no text.

    >>> patch(status={"phase": "Ready"}).merge
    {'status': {'phase': 'Ready'}}
    """
    merge: dict[str, Any] = dict(fields)
    for name, values in (("labels", labels), ("annotations", annotations)):
        if values is not None:
            merge["metadata"] = _with_marks(
                merge.get("metadata", {}), name, dict(values)
            )
    check_marks(merge.get("metadata"), "Patch")
    return Patch(
        None if where is None else _target_of(where),
        merge or None,
        tuple(json),
        subresource,
    )


def _marked_with_texts(manifest: Any, where: str) -> dict[str, Any]:
    """A copy of a manifest; raises `ValueError` for labels that are no texts."""
    check_marks(manifest.get("metadata"), where)
    return dict(manifest)


@overload
def apply(manifest: Manifest, *, force: bool = ...) -> Apply: ...
@overload
def apply(
    manifest: Iterable[Manifest], *, force: bool = ...
) -> builtins.list[Effect]: ...
def apply(manifest: Any, *, force: bool = False) -> Any:
    """Server-side apply under this operator's field manager.

    Of several manifests it is a plan, to be returned.
    """

    def applied(one: Manifest) -> Apply:
        return Apply(_marked_with_texts(one, "Apply"), force)

    return each_manifest(manifest, applied, flat=True)


@overload
def create(manifest: Manifest) -> Create: ...
@overload
def create(manifest: Iterable[Manifest]) -> builtins.list[Effect]: ...
def create(manifest: Any) -> Any:
    """Create an object; give it a name that is the same at every run.

    Of several manifests it is a plan, to be returned.
    """

    def created(one: Manifest) -> Create:
        return Create(_marked_with_texts(one, "Create"))

    return each_manifest(manifest, created, flat=True)


@_named_after(1, "fnop.delete({}, name={})")
def delete(
    where: _Targeted | str,
    *,
    name: str | None = None,
    namespace: str | None = None,
    uid: str | None = None,
    resource_version: str | None = None,
    propagation: str | None = None,
) -> Delete:
    """Delete an object given as such, or as a kind with `name=`."""
    if isinstance(where, str):
        if name is None:
            raise TypeError(
                f"say which of the {where} to delete, as in "
                f"fnop.delete({where!r}, name=...)"
            )
        where = Target(where, name, namespace)
    found = _target_of(where)
    return Delete(found, uid or found.uid, resource_version, propagation)


@_named_after(1, "fnop.get({}, name={})")
def get(kind: str, *, name: str, namespace: str | None = None) -> Get:
    """Read an object live; awaiting it answers the object, or None."""
    return Get(Target(kind, name, namespace))


@_named_after(1, "fnop.list({}, namespace={})")
def list(
    kind: str,
    *,
    namespace: str | None = None,
    labels: Mapping[str, str] | str | None = None,
    fields: Mapping[str, str] | str | None = None,
) -> List:
    """Read a collection live; `namespace="*"` reads all namespaces.

    Give what comes from others as a mapping, not within a selector's text: a value that
    would select something else is refused.
    """
    if isinstance(labels, Mapping):
        labels = label_selector(labels)
    if isinstance(fields, Mapping):
        fields = field_selector(fields)
    return List(kind, namespace, labels, fields)


_OWNER_IS_GIVEN = (
    "fnop.adopt makes the handled object the owner: leave the owner out; the child of "
    "another one is made by fnop.owned(child, owner), and created"
)
_NAMED_SO_OR_SO = {
    name: f"fnop.adopt keeps the name that a child has, and makes a lasting one where "
    f"it has none: leave {name}= out"
    for name in ("forced", "strict")
}


@overload
def adopt(
    child: Manifest,
    *,
    role: str | None = ...,
    nested: str | Iterable[str] = ...,
    labels: Iterable[str] | None = ...,
) -> Adopt: ...
@overload
def adopt(
    child: Iterable[Manifest],
    *,
    nested: str | Iterable[str] = ...,
    labels: Iterable[str] | None = ...,
) -> builtins.list[Effect]: ...
@_instead(1, _OWNER_IS_GIVEN, owner=_OWNER_IS_GIVEN, **_NAMED_SO_OR_SO)
def adopt(
    child: Any,
    *,
    role: str | None = None,
    nested: str | Iterable[str] = (),
    labels: Iterable[str] | None = None,
) -> Any:
    """A child that shall exist and be owned by the handled object.

    It gets the owner's labels, as do the `nested` parts of it: `"spec.template"`.
    `labels` are the names, or patterns, of those that it gets; None leaves that to
    `Settings(inherited_labels=...)`.  Of several children it is a plan, to be
    returned; a `role` is for one.

    >>> [each.kind for each in adopt([{"apiVersion": "v1", "kind": "Pod"}])]
    ['Adopt']
    """
    paths = (nested,) if isinstance(nested, str) else tuple(nested)
    chosen = label_patterns(labels)

    def adopted(one: Manifest) -> Adopt:
        return Adopt(_marked_with_texts(one, "Adopt"), role, paths, chosen)

    made = each_manifest(child, adopted, flat=True)
    if role is not None and not isinstance(made, Adopt):
        raise ValueError("a role is for one child; adopt each with one of its own")
    return made


@_reporting
def event(
    reason: str,
    message: str = "",
    *,
    type: str = "Normal",
    about: _Targeted | None = None,
) -> Event:
    """A Kubernetes Event about the handled object, or about another one."""
    return Event(reason, message, type, None if about is None else _target_of(about))


@_reporting
def info(reason: str, message: str = "", *, about: _Targeted | None = None) -> Event:
    """A Kubernetes Event of the type Normal."""
    return event(reason, message, about=about)


@_reporting
def warn(reason: str, message: str = "", *, about: _Targeted | None = None) -> Event:
    """A Kubernetes Event of the type Warning."""
    return event(reason, message, type="Warning", about=about)


@_reporting
def exception(
    reason: str = "",
    message: str = "",
    *,
    exc: BaseException | None = None,
    about: _Targeted | None = None,
) -> Event:
    """A Kubernetes Event of the type Warning about an exception.

    The exception is the one that is being handled, unless one is given.  Its class is
    the reason, unless there is one; its text ends the message.  Raises `ValueError`
    where there is no exception.

    >>> report = exception(message="no disk", exc=OSError("full"))
    >>> report.reason, report.message
    ('OSError', 'no disk: full')
    """
    if exc is None:
        exc = sys.exception()
    if exc is None:
        raise ValueError(
            "there is no exception; call fnop.exception where one is handled, or give "
            "exc="
        )
    name = type(exc).__name__
    text = ": ".join(part for part in (message, str(exc)) if part)
    return warn(reason or name, text or name, about=about)


def sleep(seconds: float) -> Sleep:
    """Wait; awaiting it answers a fresh view of the object."""
    return Sleep(seconds)


def wait(timeout: float | None = None) -> Wait:
    """Wait until the daemon is to stop; awaiting it answers whether it is.

    `stopped.wait` is this: at most so many seconds, or for as long as it takes.
    """
    return Wait(timeout)


def again(after: float, because: str = "") -> Again:
    """Not yet: run this handler again after so many seconds."""
    return Again(after, because)


def result(value: _Any) -> Return:
    """A result that would not be taken for one, such as a list."""
    return Return(value)


def function_name(function: _Any) -> str:
    """The importable name of a function, `module:name`.

    Raises `ValueError` for what no other process could find by its name.

    >>> import json
    >>> function_name(json.dumps)
    'json:dumps'
    """
    name = getattr(function, "__qualname__", None)
    module = getattr(function, "__module__", None)
    if not callable(function) or not name or not module or "<" in name:
        raise ValueError(
            "what runs outside is a function at the top level of a module, not "
            f"{name or type(function).__name__}"
        )
    if getattr(function, "__self__", None) is not None and "." in name:
        raise ValueError(
            f"the bound method {name} cannot be named; wrap it in a function at the "
            "top level of a module"
        )
    return f"{module}:{name}"


@_named_after(1, "fnop.call(function, id={1})")
def call(function: _Any, /, **arguments: _Any) -> Call:
    """Run `function(**arguments)` outside; awaiting it answers what it returned.

    The function must stand at the top level of an importable module, and the
    arguments must be JSON values.
    """
    return Call(function_name(function), arguments)


def random(size: int, *, secret: bool = False) -> Random:
    """Fresh random bytes; ids that must survive a re-run derive from the uid.

    With `secret` a recording does not hold them, for passwords and keys.
    """
    return Random(size, secret)


@_named_after(2, "fnop.log({}, {}, size=...)")
def log(level: str, message: str, **fields: _Any) -> Log:
    """A log line about the handled object."""
    return Log(level, message, fields)


@_named_after(0, "fnop.remember(address=...)")
def remember(**changes: _Any) -> Remember:
    """Keep values in the object's memo, for later runs in this process."""
    return Remember(changes)


def freeze(reason: str) -> Freeze:
    """Stop serving until `resume()`."""
    return Freeze(reason)


def resume() -> Resume:
    """Serve again."""
    return Resume()
