"""The refusals of fnop at registration: options, arguments, forms of functions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

from fnop.adapters.kopf.porting.findings import Finding, Place, Verdict
from fnop.adapters.kopf.porting.names import SUBHANDLERS
from fnop.adapters.kopf.porting.values import Blocked, Class, Function, Partial, Value
from fnop.adapters.kopf.porting.walking import Declared
from fnop.core.handlers.declare.options import SubhandlerOptions, options_of
from fnop.core.handlers.declare.roles import (
    ADMISSION,
    CHANGES,
    INDICES,
    ROLES,
    Role,
    kwargs_of,
)

__all__ = [
    "declaration_advice",
    "inner_function",
    "role_of",
    "signature_advice",
    "wanted",
]

_OTHER_OPTION = "fnop has no such option of this decorator: leave it out"
_POLLING = "fnop notifies a daemon at once: leave it out"
_OPTIONS = "these options were not found: compare them with those of fnop"
_REGISTRY = "it takes a fnop.Registry()"
_ID = "fnop needs a name for it: give id="
_STARS = "fnop calls handlers with keywords alone: remove this parameter"
_ARGUMENT = "fnop has no such argument of this handler, and no index of this name"
_ABOVE = "declare this index above the handler"
_REST = "fnop passes nothing to a **{0}: rename it, such as **kwargs"
_NAMED = "**kwargs never has it: name it in the signature"
_CLASS = "fnop reads the argument as this class: annotate fnop.Body, fnop.Spec or dict"
_INDEX = "an index is a plain function: write def"
_DAEMON = "a daemon is an async def, and awaits fnop.sleep or stopped.wait"
_READ = ("body", "spec", "status", "old", "new")


def role_of(decorator: str) -> Role:
    """The role of a decorator; sub-handlers are like handlers of changes."""
    name = "create" if decorator in SUBHANDLERS else decorator.removeprefix("on.")
    return Role(name)


def inner_function(value: Value) -> Function | None:
    """The function of the operator that is called at last; None if it is no one."""
    while isinstance(value, (Partial, Blocked)):
        value = value.fn
    return value if isinstance(value, Function) else None


def declaration_advice(declared: Declared) -> Iterator[tuple[str, str]]:
    """The options that fnop does not have, each with the advice."""
    role = role_of(declared.decorator)
    is_part = declared.decorator in SUBHANDLERS
    known = options_of(SubhandlerOptions if is_part else ROLES[role].options)
    for name in declared.options:
        if name not in known:
            advice = _POLLING if name == "cancellation_polling" else _OTHER_OPTION
            yield f"{name}=", advice
        elif name == "registry":
            yield f"{name}=", _REGISTRY
    if not declared.is_complete:
        yield "**", _OPTIONS


def wanted(
    target: Value, roles: Sequence[Role], indices: Iterable[str]
) -> Iterator[str]:
    """The arguments that a handler gets by their names."""
    fn = inner_function(target)
    known = frozenset(indices).union(*(kwargs_of(each) for each in roles))
    if fn is None:
        return
    bound = _bound_names(target)
    for each in dict.fromkeys((*_parameters(fn), *_parameters(fn.innermost))):
        is_default = each in fn.defaults or each in fn.innermost.defaults
        if each not in bound and (each in known or not is_default):
            yield each


def _bound_names(target: Value) -> frozenset[str]:
    """The parameters that a partial has bound."""
    found: set[str] = set()
    at = target
    positions = 0
    while isinstance(at, (Partial, Blocked)):
        if isinstance(at, Partial):
            found |= {*at.kwargs}
            positions += len(at.args)
        at = at.fn
    if isinstance(at, Function):
        found |= {*_parameters(at)[:positions]}
    return frozenset(found)


def _parameters(fn: Function) -> tuple[str, ...]:
    spec = fn.node.args
    names = [each.arg for each in (*spec.posonlyargs, *spec.args)]
    if fn.bound is not None or (fn.owner is not None and fn.kind != "staticmethod"):
        names = names[1:]
    return (*names, *(each.arg for each in spec.kwonlyargs))


def signature_advice(
    declared: Declared, fn: Function, above: Iterable[str], indices: Iterable[str]
) -> Iterator[Finding]:
    """The findings about a handler's parameters and its form.

    `above` are the indices that are declared before the handler, of all `indices`.
    """
    own = fn.innermost
    role = role_of(declared.decorator)
    if own.name == "<lambda>" and "id" not in declared.options:
        yield _finding(own, own.node, "lambda", _ID)
    if ROLES[role].lasts and not (fn.is_async or own.is_async):
        yield _finding(own, own.node, f"def {own.name}", _DAEMON, only_pure=True)
    if role in INDICES and own.is_async:
        yield _finding(own, own.node, f"async def {own.name}", _INDEX)
    own_names = kwargs_of(role)
    known = own_names if role in INDICES else own_names | frozenset(above)
    for node, advice in _parameters_refused(declared, own, known):
        is_below = node.arg in indices and role not in INDICES
        is_refused = advice != _ARGUMENT or not is_below
        yield _finding(own, node, node.arg, advice if is_refused else _ABOVE)
    yield from _about_rest(own)
    if role in CHANGES | ADMISSION:
        yield from _about_classes(own)


def _parameters_refused(
    declared: Declared, own: Function, known: Iterable[str]
) -> Iterator[tuple[ast.arg, str]]:
    spec = own.node.args
    bound = _bound_names(declared.target)
    free = {*_parameters(own)} - bound
    stars = [each for each in spec.posonlyargs if each.arg in free]
    if spec.vararg is not None:
        stars.append(spec.vararg)
    for each in stars:
        yield each, _STARS
    for each in (*spec.args, *spec.kwonlyargs):
        is_own = each.arg in own.defaults or each.arg not in free
        if not is_own and each.arg not in known:
            yield each, _ARGUMENT


def _about_rest(own: Function) -> Iterator[Finding]:
    """Uses of `**_`, and of arguments that `**kwargs` lacks."""
    rest = own.node.args.kwarg
    if rest is None:
        return
    inner = [*ast.walk(own.node)]
    names = [e for e in inner if isinstance(e, ast.Name) and e.id == rest.arg]
    stored = any(not isinstance(each.ctx, ast.Load) for each in names)
    if rest.arg.startswith("_") and not stored:
        for each in names[:1]:
            yield _finding(own, each, f"**{rest.arg}", _REST.format(rest.arg))
    for node in inner:
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            of, key = node.value, node.slice.value
            is_rest = isinstance(of, ast.Name) and of.id == rest.arg
            if is_rest and key in ("old", "diff"):
                yield _finding(own, node, f"{rest.arg}[{key!r}]", _NAMED)


_PLAIN: Mapping[str, frozenset[str]] = {
    name: frozenset(("str", "int", "float", "bytes", "list", "tuple", "set"))
    for name in ("body", "spec", "status")
}


def _about_classes(own: Function) -> Iterator[Finding]:
    """Annotations by which fnop would read the argument as an object."""
    for each in (*own.node.args.args, *own.node.args.kwonlyargs):
        if each.arg not in _READ or each.annotation is None:
            continue
        for node in ast.walk(each.annotation):
            if not isinstance(node, ast.Name):
                continue
            values = own.scope.names.get(node.id, frozenset())
            is_class = any(isinstance(value, Class) for value in values)
            if is_class or node.id in _PLAIN.get(each.arg, ()):
                yield _finding(own, each, ast.unparse(each), _CLASS)
                break


def _finding(
    own: Function, node: ast.AST, code: str, advice: str, *, only_pure: bool = False
) -> Finding:
    place = Place(own.file, getattr(node, "lineno", own.node.lineno))
    return Finding(Verdict.CHANGES, place, code, advice, (), only_pure)
