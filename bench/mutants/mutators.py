"""Mutations of an operator's source: each is one mistake that an author could make.

A mutator reads one node of the syntax tree and returns possible replacements. Nothing
in this module knows a property: the choice of mistakes does not depend on the mistakes
that are found.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from typing import NamedTuple

__all__ = ["OPERATORS", "Mutant", "mutants_of"]

# Effects that change something, and effects that only report, or keep something at
# hand.
_WRITES = frozenset(("adopt", "apply", "call", "create", "delete", "patch"))
_EFFECTS = _WRITES | frozenset(("event", "info", "warn", "remember"))
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class Mutant(NamedTuple):
    """A source with one mistake: its sort, its line, and a description."""

    operator: str
    line: int
    words: str
    source: str


class Change(NamedTuple):
    """A replacement of a node: nodes of the same sort, or nothing."""

    words: str
    instead: tuple[ast.AST, ...]


class Known(NamedTuple):
    """A mutator's knowledge of the module.

    `writers` are the module's own asynchronous functions that write.
    """

    writers: frozenset[str]


Mutator = Callable[[ast.AST, Known], Iterator[Change]]


def mutants_of(source: str) -> list[Mutant]:
    """All mutants of a source, in the order of its lines, each once.

    >>> [(each.operator, each.words) for each in mutants_of("if a < 1: raise B")][:2]
    [('precondition', 'without the guard `a < 1`'), ('precondition', 'not (a < 1)')]
    """
    tree = ast.parse(source)
    known = Known(_writers(tree))
    seen = {ast.unparse(tree)}
    found: list[Mutant] = []
    for operator, mutate in OPERATORS.items():
        for path, node in _nodes(tree):
            for change in mutate(node, known):
                text = ast.unparse(_with(tree, path, change.instead))
                if text not in seen:
                    seen.add(text)
                    line = getattr(node, "lineno", 0)
                    found.append(Mutant(operator, line, change.words, text + "\n"))
    return found


# ----------------------------------------------------------------------- the tree

# The path to a node: fields, and indices in lists.
_Path = tuple[tuple[str, int | None], ...]


def _nodes(node: ast.AST, path: _Path = ()) -> Iterator[tuple[_Path, ast.AST]]:
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield (*path, (field, None)), value
            yield from _nodes(value, (*path, (field, None)))
        elif isinstance(value, list):
            for place, each in enumerate(value):
                if isinstance(each, ast.AST) and not _is_main(each):
                    yield (*path, (field, place)), each
                    yield from _nodes(each, (*path, (field, place)))


def _is_main(node: ast.AST) -> bool:
    """Whether a statement runs the program if the file is not only imported.

    It is not a decision of an operator, and without its guard a mutant would run.
    """
    return isinstance(node, ast.If) and any(
        isinstance(each, ast.Name) and each.id == "__name__"
        for each in ast.walk(node.test)
    )


def _with(tree: ast.AST, path: _Path, instead: tuple[ast.AST, ...]) -> ast.AST:
    """The tree with other nodes at the end of a path; an empty body is `pass`."""
    twin = copy.deepcopy(tree)
    parent = twin
    for field, place in path[:-1]:
        parent = getattr(parent, field)
        parent = parent if place is None else parent[place]
    field, place = path[-1]
    if place is None:
        (only,) = instead
        setattr(parent, field, only)
    else:
        siblings = getattr(parent, field)
        siblings[place : place + 1] = instead
        if field == "body" and not siblings:
            siblings.append(ast.Pass())
    return ast.fix_missing_locations(twin)


def _effect(node: ast.AST | None, names: frozenset[str] = _EFFECTS) -> str | None:
    """The name of the effect that an expression is, awaited or not."""
    if isinstance(node, ast.Await):
        node = node.value
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    owner, name = node.func.value, node.func.attr
    is_ours = isinstance(owner, ast.Name) and owner.id == "fnop"
    return name if is_ours and name in names else None


def _writers(tree: ast.AST) -> frozenset[str]:
    return frozenset(
        each.name
        for each in ast.walk(tree)
        if isinstance(each, ast.AsyncFunctionDef)
        and not each.decorator_list
        and any(_effect(inner, _WRITES) for inner in ast.walk(each))
    )


def _written(node: ast.AST, known: Known) -> bool:
    """Whether a statement is nothing but an effect, or a call of a writer."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Await):
        return False
    call = node.value.value
    if not isinstance(call, ast.Call):
        return False
    is_writer = isinstance(call.func, ast.Name) and call.func.id in known.writers
    return is_writer or _effect(call) is not None


def _is_patched(node: ast.AST) -> bool:
    """Whether a statement sets something of the handler's `patch`."""
    if not isinstance(node, ast.Assign):
        return False
    root: ast.AST = node.targets[0]
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    is_whole = root is node.targets[0]
    return isinstance(root, ast.Name) and root.id == "patch" and not is_whole


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return f"`{text}`" if len(text) <= 60 else f"`{text[:57]}...`"


# ------------------------------------------------------------------- the mutators


def _dropped_write(node: ast.AST, known: Known) -> Iterator[Change]:
    """Remove an effect that is awaited, returned, or one of several."""
    if _written(node, known) or _is_patched(node):
        yield Change(f"without {_short(node)}", ())
    elif isinstance(node, ast.Return) and _effect(node.value):
        nothing = ast.Return(ast.Constant(None))
        yield Change(f"without {_short(node)}", (nothing,))
    elif isinstance(node, ast.List):
        for place, each in enumerate(node.elts):
            if _effect(each):
                rest = [*node.elts[:place], *node.elts[place + 1 :]]
                yield Change(f"without {_short(each)}", (ast.List(rest, ast.Load()),))


def _swapped(node: ast.AST, known: Known) -> Iterator[Change]:
    """Swap two consecutive effects."""
    if isinstance(node, ast.List):
        elements = node.elts
        for place in range(len(elements) - 1):
            if _effect(elements[place]) and _effect(elements[place + 1]):
                first, second = elements[place : place + 2]
                rest = [*elements[:place], second, first, *elements[place + 2 :]]
                words = f"{_short(second)} before {_short(first)}"
                yield Change(words, (ast.List(rest, ast.Load()),))
    for field in ("body", "orelse"):
        body = getattr(node, field, None)
        if not isinstance(body, list) or isinstance(node, ast.Module):
            continue
        for place in range(len(body) - 1):
            one, other = body[place : place + 2]
            if not (_acts(one, known) and _acts(other, known)):
                continue
            if _bound(one) & _used(other) or _bound(other) & _used(one):
                continue
            twin = copy.copy(node)
            setattr(twin, field, [*body[:place], other, one, *body[place + 2 :]])
            yield Change(f"{_short(other)} before {_short(one)}", (twin,))


def _acts(node: ast.AST, known: Known) -> bool:
    """Whether a statement, with its content, writes and then continues."""
    if isinstance(node, (ast.Return, ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    return any(
        _effect(each, _WRITES) or _written(each, known) for each in ast.walk(node)
    )


def _bound(node: ast.AST) -> set[str]:
    names = (each for each in ast.walk(node) if isinstance(each, ast.Name))
    return {each.id for each in names if isinstance(each.ctx, ast.Store)}


def _used(node: ast.AST) -> set[str]:
    names = (each for each in ast.walk(node) if isinstance(each, ast.Name))
    return {each.id for each in names if isinstance(each.ctx, ast.Load)}


def _precondition(node: ast.AST, known: Known) -> Iterator[Change]:
    """Remove or negate a guard, or drop one of its conditions."""
    if not isinstance(node, ast.If) or node.orelse:
        return
    test = _short(node.test)
    if isinstance(node.body[-1], _LEAVES):
        yield Change(f"without the guard {test}", ())
    elif any(_acts(each, known) for each in node.body):
        yield Change(f"without the condition {test}", tuple(node.body))
    else:
        return
    negated = ast.UnaryOp(ast.Not(), node.test)
    yield Change(f"not ({test[1:-1]})", (ast.If(negated, node.body, []),))
    if isinstance(node.test, ast.BoolOp):
        for place, each in enumerate(node.test.values):
            rest = [*node.test.values[:place], *node.test.values[place + 1 :]]
            whole = rest[0] if len(rest) == 1 else ast.BoolOp(node.test.op, rest)
            words = f"without {_short(each)} in {test}"
            yield Change(words, (ast.If(whole, node.body, []),))


_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.GtE,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}


def _comparison(node: ast.AST, known: Known) -> Iterator[Change]:
    """Turn `==` into `>=`, and include or exclude a bound."""
    if not isinstance(node, ast.Compare):
        return
    for place, each in enumerate(node.ops):
        other = _COMPARED.get(type(each))
        if other is not None:
            ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
            twin = ast.Compare(node.left, ops, node.comparators)
            yield Change(f"{_short(twin)} for {_short(node)}", (twin,))


def _off_by_one(node: ast.AST, known: Known) -> Iterator[Change]:
    """Increase a whole number by one."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        more = node.value + 1
        yield Change(f"{more} for {node.value}", (ast.Constant(more),))


def _dropped_retry(node: ast.AST, known: Known) -> Iterator[Change]:
    """Let a handler that should be retried give up, silently or for good."""
    nothing = ast.Return(ast.Constant(None))
    if isinstance(node, ast.Return) and _effect(node.value, frozenset(("again",))):
        yield Change(f"`return None` for {_short(node)}", (nothing,))
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        name = node.exc.func
        if isinstance(name, ast.Attribute) and name.attr == "TemporaryError":
            yield Change(f"`return None` for {_short(node)}", (nothing,))
            permanent = ast.Attribute(name.value, "PermanentError", ast.Load())
            error = ast.Call(permanent, node.exc.args, [])
            yield Change("PermanentError for TemporaryError", (ast.Raise(error, None),))


def _dropped_cleanup(node: ast.AST, known: Known) -> Iterator[Change]:
    """Let the handler of deletions do nothing."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    decorators = [ast.unparse(each) for each in node.decorator_list]
    if not any(each.startswith("fnop.on.delete") for each in decorators):
        return
    twin = copy.copy(node)
    twin.body = [ast.Pass()]
    yield Change(f"{node.name} does nothing", (twin,))


def _dropped_owner(node: ast.AST, known: Known) -> Iterator[Change]:
    """Create a child without its owner."""
    if not isinstance(node, ast.Call):
        return
    name = _effect(node, frozenset(("adopt", "owned", "append_owner_reference")))
    if name == "adopt":
        create = ast.Attribute(ast.Name("fnop", ast.Load()), "create", ast.Load())
        yield Change(
            f"create for {_short(node)}", (ast.Call(create, node.args[:1], []),)
        )
    elif name is not None:
        yield Change(f"without the owner of {_short(node)}", (node.args[0],))


def _dropped_version(node: ast.AST, known: Known) -> Iterator[Change]:
    """Write to any version, or to any object with the name."""
    if isinstance(node, ast.Dict):
        keys = [getattr(each, "value", None) for each in node.keys]
        if "resourceVersion" in keys:
            place = keys.index("resourceVersion")
            twin = ast.Dict(
                [*node.keys[:place], *node.keys[place + 1 :]],
                [*node.values[:place], *node.values[place + 1 :]],
            )
            yield Change(f"without the resourceVersion in {_short(node)}", (twin,))
    if _effect(node, frozenset(("delete", "patch"))) and isinstance(node, ast.Call):
        where = node.args[0] if node.args else None
        # An `owner` is a target: it has only a name and a uid.
        if isinstance(where, ast.Name) and where.id != "owner":
            named = ast.parse(_BY_NAME.format(it=where.id), mode="eval").body
            twin_ = ast.Call(node.func, [named, *node.args[1:]], node.keywords)
            yield Change(f"by name, without the uid: {_short(node)}", (twin_,))


_BY_NAME = (
    "{{'apiVersion': {it}['apiVersion'], 'kind': {it}['kind'], 'metadata': "
    "{{'name': {it}['metadata']['name'], "
    "'namespace': {it}['metadata'].get('namespace')}}}}"
)


def _force(node: ast.AST, known: Known) -> Iterator[Change]:
    """Let an apply take over the fields of others, or stop doing so."""
    if not isinstance(node, ast.Call) or not _effect(node, frozenset(("apply",))):
        return
    rest = [each for each in node.keywords if each.arg != "force"]
    if len(rest) == len(node.keywords):
        rest = [*rest, ast.keyword("force", ast.Constant(True))]
        words = f"with force: {_short(node)}"
    else:
        words = f"without force: {_short(node)}"
    yield Change(words, (ast.Call(node.func, node.args, rest),))


OPERATORS: dict[str, Mutator] = {
    "write": _dropped_write,
    "order": _swapped,
    "precondition": _precondition,
    "comparison": _comparison,
    "number": _off_by_one,
    "retry": _dropped_retry,
    "cleanup": _dropped_cleanup,
    "owner": _dropped_owner,
    "version": _dropped_version,
    "force": _force,
}
