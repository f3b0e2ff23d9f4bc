"""The functions that build effects: `fnop.patch(...)`, `fnop.get(...)`.

Each builds one effect value and does nothing. Return it (alone or in a list), yield it,
or await it for its answer.
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
    Rate,
    Remember,
    Requeue,
    Resume,
    Return,
    Sleep,
    Target,
    Wait,
    label_patterns,
)
from fnop.effects.manifests import Manifest, each_manifest, manifest_of
from fnop.effects.names import check_made, check_marks, field_selector, label_selector
from fnop.effects.values import check_seconds, shown, type_name, without_userinfo

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
    "rate",
    "remember",
    "requeue",
    "result",
    "resume",
    "sleep",
    "target",
    "warn",
]

_Any = Any


class _NotGiven:
    """The default of an argument that accepts any value."""

    def __repr__(self) -> str:
        return "<not given>"


_NOT_GIVEN: Any = _NotGiven()
_Targeted = Target | Manifest
P = ParamSpec("P")
R = TypeVar("R")


def _limit_positional(
    places: int, example: str
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function take at most `places` positional arguments; others need names.

    The `example` in the error shows the right call. It has placeholders for arguments
    that are names; any other argument may be a secret.
    """

    def decorate(fn: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(fn)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            if len(args) > places:
                raise TypeError(_advice_to_name(args, places, example))
            return fn(*args, **kwargs)

        return wrapper

    return decorate


def _advice_to_name(args: tuple[_Any, ...], places: int, example: str) -> str:
    given = ", ".join(f"the {type_name(each)}" for each in args[places:])
    names = [shown(each) if isinstance(each, str) else "..." for each in args]
    meant = example.format(*names, "...")
    return f"give {given} by its name, as in {meant}"


def _refuse_names(
    places: int, otherwise: str, **remedies: str
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function take `places` positional arguments, and refuse some names.

    `remedies` maps each refused name to a sentence with the alternative; `otherwise` is
    the sentence for too many arguments.
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


def _take_reason_only(fn: Callable[P, R]) -> Callable[P, R]:
    """Make a builder of Events take a reason and a message, and not the object."""

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


@_limit_positional(1, "fnop.target({}, name={})")
def target(
    kind: str, *, name: str, namespace: str | None = None, uid: str | None = None
) -> Target:
    """Address an object other than the handled one, for an effect on it.

    `kind` names the kind as in `kubectl`: "pods", "Pod", "po", "deployments.apps".
    `name` is the object's name. `namespace` defaults to the handled object's own. With
    a `uid`, the effect is for that object alone: another object of the same name is a
    conflict. Raises `ValueError` for a name or namespace that Kubernetes does not
    allow.

    >>> str(target("deployments.apps", name="web", namespace="prod"))
    'deployments.apps web in prod'
    """
    return Target(kind, name, namespace, uid)


def _target_of(where: _Targeted) -> Target:
    """Return a target from a target, or from an object or manifest that names one."""
    if isinstance(where, Target):
        return where
    try:
        found = manifest_of(where)
        group, _, version = found["apiVersion"].rpartition("/")
        metadata = found["metadata"]
        return Target(
            ".".join((found["kind"], version, group)),
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
            f"{name}= cannot be added to a metadata= of type {type_name(metadata)}; "
            f"give all {name} in one place"
        )
    both = [key for key in values if key in there and there[key] != values[key]]
    if both:
        raise ValueError(
            f"metadata= and {name}= give {shown(both[0])} two values; give it once"
        )
    return {**metadata, name: {**there, **values}}


@_limit_positional(1, "fnop.patch({}, status=...)")
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
    """Change fields of the handled object, or of another one.

    `where` is the other object: a target, a manifest, or an object that was read.
    `fields` are its top-level stanzas, such as `spec={...}` and `status={...}`, as a
    JSON merge patch (RFC 7386). None removes a key; a list is replaced as a whole.
    `labels` and `annotations` extend the ones in `metadata=`; a None removes one.
    `json` takes operations of a JSON patch (RFC 6902) instead of fields. `subresource`
    names an endpoint such as "scale"; the status needs none.

    When awaited, it returns the patched object. Raises `ValueError` for:

    - a patch that changes nothing
    - a patch with both fields and `json`
    - a label or annotation that is not a text
    - two values for one label or annotation

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


def _copy_manifest(manifest: Any, where: str) -> dict[str, Any]:
    """Copy a manifest; raise `ValueError` for one that no server accepts."""
    check_made(manifest, where)
    return dict(manifest)


@overload
def apply(manifest: Manifest, *, force: bool = ...) -> Apply: ...
@overload
def apply(
    manifest: Iterable[Manifest], *, force: bool = ...
) -> builtins.list[Effect]: ...
def apply(manifest: Any, *, force: bool = False) -> Any:
    """Apply a manifest by server-side apply, under this operator's field manager.

    `manifest` has an `apiVersion`, a `kind` and a `metadata.name`; models of client
    libraries work, too. Several manifests make a list of effects, a plan to be
    returned. With `force`, fields that others manage are taken over; without it they
    are a conflict.

    When awaited, it returns the object. Raises `ValueError` for an incomplete manifest
    and for one with `generateName`.

    >>> config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    >>> apply(config, force=True).force
    True
    """

    def applied(one: Manifest) -> Apply:
        return Apply(_copy_manifest(one, "Apply"), force)

    return each_manifest(manifest, applied, flat=True)


@overload
def create(manifest: Manifest) -> Create: ...
@overload
def create(manifest: Iterable[Manifest]) -> builtins.list[Effect]: ...
def create(manifest: Any) -> Any:
    """Create an object; it is a conflict if the name is taken.

    `manifest` has an `apiVersion`, a `kind` and a `metadata.name`. The name must be the
    same at every run, so that a repeated handler finds its own object. Several
    manifests make a list of effects, a plan to be returned. Without a namespace, the
    object is created in the handled object's own.

    When awaited, it returns the object. Raises `ValueError` for an incomplete manifest
    and for one with `generateName`.

    >>> config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    >>> create(config).manifest["metadata"]["name"]
    'a'
    """

    def created(one: Manifest) -> Create:
        return Create(_copy_manifest(one, "Create"))

    return each_manifest(manifest, created, flat=True)


@_limit_positional(1, "fnop.delete({}, name={})")
def delete(
    where: _Targeted | str,
    *,
    name: str | None = None,
    namespace: str | None = None,
    uid: str | None = None,
    resource_version: str | None = None,
    propagation: str | None = None,
) -> Delete:
    """Delete an object, given by its kind and `name`, as a target, or as it was read.

    `where` is a kind such as "pods", or a target, a manifest or an object that was
    read. `name` and `namespace` (the handled object's own by default) go with a kind.
    The object is deleted only if it still has this `uid` and this `resource_version`,
    if given; otherwise it is a conflict. `propagation` is "Background", "Foreground" or
    "Orphan"; None leaves the choice to the API server.

    When awaited, it returns whether such an object existed. Raises `TypeError` for a
    kind without a name.

    >>> delete("pods", name="web", propagation="Foreground").target.name
    'web'
    """
    if isinstance(where, str):
        if name is None:
            raise TypeError(
                f"say which of the {where} to delete, as in "
                f"fnop.delete({where!r}, name=...)"
            )
        where = Target(where, name, namespace)
    found = _target_of(where)
    return Delete(found, uid or found.uid, resource_version, propagation)


@_limit_positional(1, "fnop.get({}, name={})")
def get(kind: str, *, name: str, namespace: str | None = None) -> Get:
    """Read an object from the API server.

    `kind` names the kind as in `kubectl`; `namespace` defaults to the handled object's
    own. When awaited, it returns the object with this `name`, or None if it does not
    exist.

    >>> str(get("secrets", name="password").target)
    'secrets password'
    """
    return Get(Target(kind, name, namespace))


@_limit_positional(1, "fnop.list({}, namespace={})")
def list(
    kind: str,
    *,
    namespace: str | None = None,
    labels: Mapping[str, str] | str | None = None,
    fields: Mapping[str, str] | str | None = None,
) -> List:
    """Read the objects of a kind from the API server.

    `kind` names the kind as in `kubectl`. `namespace` defaults to the handled object's
    own; "*" reads all namespaces. `labels` and `fields` select objects: a mapping of
    names to required values, or a selector's text. Pass values from other people's
    objects in a mapping: it refuses a value that would select something else, with
    `ValueError`.

    When awaited, it returns a list of objects.

    >>> list("pods", labels={"app": "web"}, namespace="*").label_selector
    'app=web'
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
@_refuse_names(1, _OWNER_IS_GIVEN, owner=_OWNER_IS_GIVEN, **_NAMED_SO_OR_SO)
def adopt(
    child: Any,
    *,
    role: str | None = None,
    nested: str | Iterable[str] = (),
    labels: Iterable[str] | None = None,
) -> Any:
    """Ensure that a child exists and is owned by the handled object.

    `child` is a manifest; a child without a name gets a name that is the same at every
    run. Several children make a list of effects, a plan to be returned. `role`
    distinguishes nameless children of one handler, if they do not always all exist.
    `nested` are dotted paths within the child, such as "spec.template", that get the
    owner's labels, too. `labels` are the names, or patterns, of the owner's labels that
    the child gets. None leaves the choice to `Settings(inherited_labels=...)`.

    An existing child stays unchanged. When awaited, the effect returns it. Raises
    `ValueError` for an incomplete manifest, for `generateName`, and for one role with
    several children.

    >>> [each.kind for each in adopt([{"apiVersion": "v1", "kind": "Pod"}])]
    ['Adopt']
    """
    paths = (nested,) if isinstance(nested, str) else tuple(nested)
    chosen = label_patterns(labels)

    def adopted(one: Manifest) -> Adopt:
        return Adopt(_copy_manifest(one, "Adopt"), role, paths, chosen)

    made = each_manifest(child, adopted, flat=True)
    if role is not None and not isinstance(made, Adopt):
        raise ValueError("a role is for one child; adopt each with one of its own")
    return made


@_take_reason_only
def event(
    reason: str,
    message: str = "",
    *,
    type: str = "Normal",
    about: _Targeted | None = None,
) -> Event:
    """Report a Kubernetes Event about the handled object; it never fails a handler.

    `reason` is a word in CamelCase, of at most 128 bytes. `message` is a sentence; fnop
    cuts the middle of a message of more than 1024 bytes. `type` is "Normal" or
    "Warning". `about` is another object: a target, a manifest, or an object that was
    read. Raises `ValueError` for an empty or long reason, and for another type.

    >>> event("Created", "the database is there").type
    'Normal'
    """
    return Event(reason, message, type, None if about is None else _target_of(about))


@_take_reason_only
def info(reason: str, message: str = "", *, about: _Targeted | None = None) -> Event:
    """Report a Kubernetes Event of the type Normal.

    `reason`, `message` and `about` are as for `event`.

    >>> info("Created").type
    'Normal'
    """
    return event(reason, message, about=about)


@_take_reason_only
def warn(reason: str, message: str = "", *, about: _Targeted | None = None) -> Event:
    """Report a Kubernetes Event of the type Warning.

    `reason`, `message` and `about` are as for `event`.

    >>> warn("DiskFull", "90 % of the disk are in use").type
    'Warning'
    """
    return event(reason, message, type="Warning", about=about)


@_take_reason_only
def exception(
    reason: str = "",
    message: str = "",
    *,
    exc: BaseException | None = None,
    about: _Targeted | None = None,
) -> Event:
    """Report a Kubernetes Event of the type Warning about an exception.

    `exc` is the exception; by default it is the one being handled. `reason` defaults to
    its class. `message` precedes its text. `about` is as for `event`. Raises
    `ValueError` without an exception.

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
    # The text is not the author's: the name of a file may be invalid Unicode (PEP 383).
    said = without_userinfo(str(exc)).encode(errors="replace").decode()
    text = ": ".join(part for part in (message, said) if part)
    return warn(reason or name, text or name, about=about)


def sleep(seconds: float) -> Sleep:
    """Wait for some `seconds`, from 0; awaiting it returns a fresh view of the object.

    In a returned list it delays the effects after it. Raises `ValueError` or
    `TypeError` for anything but a number from 0 to ten years.

    >>> sleep(5).seconds
    5
    """
    return Sleep(seconds)


def wait(timeout: float | None = None) -> Wait:
    """Wait until the daemon is to stop; awaiting it returns whether it is.

    `timeout` is the longest wait in seconds; None waits without a limit. A daemon calls
    it as `await stopped.wait(10)`.

    >>> wait(10).seconds
    10
    """
    return Wait(timeout)


def again(after: float, because: str = "") -> Again:
    """Call this handler again after some seconds; the handler must return it.

    `after` is the delay in seconds, from 0. `because` names the awaited event; the
    object shows it in a condition. The wait is not a failure: it counts towards the
    handler's `timeout=`, not towards its `retries=`.

    >>> again(10, because="the disk is being made").after
    10
    """
    return Again(after, because)


def result(value: _Any) -> Return:
    """Return a `value` as the handler's result, if it could be mistaken for a plan.

    A list needs it; other JSON values can be returned as they are. The result is
    written to `status.<handler's id>`. Raises `TypeError` for a value that is not JSON.

    >>> result([1, 2]).value
    [1, 2]
    """
    return Return(value)


def function_name(function: _Any) -> str:
    """The importable name of a function, `module:name`.

    Raises `ValueError` for a function that other processes could not find by its name.

    >>> import json
    >>> function_name(json.dumps)
    'json:dumps'
    """
    name = getattr(function, "__qualname__", None)
    module = getattr(function, "__module__", None)
    if not callable(function) or not name or not module or "<" in name:
        raise ValueError(
            "what runs outside is a function at the top level of a module, not "
            f"{_show_function(function)}; write def work(...): ... there, and "
            "fnop.call(work, name=value)"
        )
    if getattr(function, "__self__", None) is not None and "." in name:
        raise ValueError(
            f"the bound method {name} cannot be named; wrap it in a function at the "
            "top level of a module"
        )
    return f"{module}:{name}"


def _show_function(function: _Any) -> str:
    name = getattr(function, "__qualname__", None)
    if name is None:
        return f"{type(function).__name__} (a function that was called already?)"
    is_lambda = name.endswith("<lambda>")
    return "a lambda" if is_lambda else f"{name}, which is within another function"


def rate(times: float, *, per: float = 1.0, burst: float | None = None) -> Rate:
    """A limit for `fnop.call`: this many `times` per `per` seconds, for all objects.

    `burst` calls may come at once after a quiet time, by default as many as `times`.
    Each process counts by itself. Raises `ValueError` for invalid numbers.

    >>> rate(5, per=60)
    Rate(per_second=0.08333333333333333, burst=5)
    """
    check_seconds(per, "per=", least=0.001)
    most = times if burst is None else burst
    named: tuple[tuple[str, _Any], ...] = (("times", times), ("burst", most))
    for name, value in named:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not (is_number and 0 < value < float("inf")):
            raise ValueError(
                f"{name} of a rate is a number above zero, not {shown(value)}"
            )
    return Rate(times / per, max(most, 1))


@_limit_positional(1, "fnop.call(function, id=...)")
def call(
    function: _Any, /, *, limit: Rate | _Any = _NOT_GIVEN, **arguments: _Any
) -> Call:
    """Run `function(**arguments)` outside of the handler, free to have side effects.

    `function` is at the top level of an importable module. A plain function runs in a
    thread, a coroutine function on the event loop. `arguments` are JSON values. When
    awaited, it returns the function's result, or raises its `PermanentError` or
    `TemporaryError`. It raises `CallFailed` for any other exception. A repeated handler
    calls again: pass the function a token that makes this harmless, such as the
    object's `uid`. With `limit=fnop.rate(...)`, calls of the function wait for their
    turn. An argument `limit` that is not a rate is passed to the function. Raises
    `ValueError` for a lambda or a nested function, and `TypeError` for arguments that
    are not JSON.

    >>> import json
    >>> call(json.dumps, obj=1).function
    'json:dumps'
    """
    if limit is not _NOT_GIVEN and not isinstance(limit, Rate):
        arguments["limit"] = limit
    if not isinstance(limit, Rate):
        return Call(function_name(function), arguments)
    name = function_name(function)
    return Call(name, arguments, per_second=limit.per_second, burst=limit.burst)


def random(size: int, *, secret: bool = False) -> Random:
    """Draw random bytes; awaiting it returns them.

    `size` is the number of bytes, 1 to 1024. With `secret`, for passwords and keys, a
    recording does not hold them. A repeated handler gets other bytes: derive ids that
    must stay the same from the object's uid.

    >>> random(16, secret=True).size
    16
    """
    return Random(size, secret)


@_limit_positional(2, "fnop.log({}, {}, size=...)")
def log(level: str, message: str, **fields: _Any) -> Log:
    """Write a line about the handled object to the operator's log.

    `level` is "debug", "info", "warning" or "error"; `message` is the line; `fields`
    are JSON values that `--log-format json` shows next to it. The argument `logger`
    does the same. Raises `ValueError` for another level.

    >>> log("info", "resized", size=3).fields
    {'size': 3}
    """
    return Log(level, message, fields)


@_limit_positional(0, "fnop.remember(address=...)")
def remember(**changes: _Any) -> Remember:
    """Keep values in the object's memo, for later handlers in this process.

    `changes` are names and JSON values; None removes a name. Handlers read them from
    the argument `memo`.

    >>> remember(address="10.0.0.7").changes
    {'address': '10.0.0.7'}
    """
    return Remember(changes)


def requeue(
    where: _Targeted | str, *, name: str = "", namespace: str | None = None
) -> Requeue:
    """Call the reconcilers of another object again, though nothing has changed.

    `where` is a kind, with a `name` and a `namespace` (by default the handled
    object's); or an object that was read, or a target. fnop writes nothing. It ignores
    an object that this operator does not know. Raises `ValueError` for a kind without a
    name.

    >>> requeue("databases", name="x").target.name
    'x'
    """
    if not isinstance(where, str):
        return Requeue(_target_of(where))
    if not name:
        raise ValueError("fnop.requeue(kind, name=...) needs the name of an object")
    return Requeue(Target(where, name, namespace))


def freeze(reason: str) -> Freeze:
    """Stop the whole operator from serving, until a `resume`.

    fnop closes watch streams and stops daemons; the process stays. `reason` goes to the
    log.

    >>> freeze("the database is being moved").reason
    'the database is being moved'
    """
    return Freeze(reason)


def resume() -> Resume:
    """Serve again after a `freeze`; only a startup handler can return it.

    >>> resume().kind
    'Resume'
    """
    return Resume()
