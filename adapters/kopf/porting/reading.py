"""Following the statements and expressions of an operator, without running them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from fnop.adapters.kopf.porting.calling import REST, Calls, text_of
from fnop.adapters.kopf.porting.findings import Place, Verdict
from fnop.adapters.kopf.porting.rules import Rule, rule_for
from fnop.adapters.kopf.porting.sources import Parsed, Project
from fnop.adapters.kopf.porting.values import (
    ANYTHING,
    NOTHING,
    Class,
    Data,
    Function,
    Given,
    Instance,
    Known,
    Module,
    Scope,
    Shape,
    Unknown,
    Value,
    Values,
    contents,
    data,
    mapping,
)
from fnop.adapters.kopf.porting.walking import (
    NO_JSON,
    READ_ONLY,
    REMEMBERS,
    canonical,
    path_of,
    shared,
    short,
)
from fnop.core.handlers.declare.roles import Role, kwargs_of

__all__ = ["Reader"]

_AWAITS = Rule(
    Verdict.IMPURE,
    "a pure handler awaits effects alone: await fnop.call(...), or keep impure=True",
)
_CANCELLED = Rule(Verdict.CHANGES, "fnop raises fnop.Cancelled", only_pure=True)
_TYPES = "arguments are subclasses of dict and list: write isinstance(...)"
_GLOBAL = Rule(
    Verdict.IMPURE,
    "it changes a global variable, which a simulation or a replay would change again: "
    "assign it at the top of the module, or keep impure=True",
)
_LARGE = Rule(Verdict.IMPURE, "it calls more functions than were followed")
_DEEP = Rule(Verdict.IMPURE, "it is nested too deeply to be judged")
# Parts of arguments that a handler may write to.
_WRITABLE = ("patch", "warnings", REST)
_ADDING = ("append", "add", "extend", "insert", "update", "setdefault")
# The arguments that handlers may get.
_ARGUMENTS = frozenset().union(*map(kwargs_of, Role))
_Def = ast.FunctionDef | ast.AsyncFunctionDef


class Reader(Calls):
    """A walk through a project: its modules first, and then its handlers."""

    def __init__(self, project: Project) -> None:
        super().__init__(project)
        self._results: list[set[Value]] = []
        self._owner: Class | None = None

    # ------------------------------------------------------------------ modules

    def load(self, name: str) -> Scope:
        """The names of a module; it is followed at the first time."""
        if name in self.scopes:
            return self.scopes[name]
        scope = self.scopes[name] = Scope(name)
        module = self.project.modules[name]
        with self._set_aside(module.shown):
            scope.names["__name__"] = data(Shape.SCALAR)
            self._bind_submodules(module, scope)
            self.run(module.tree.body, scope)
        return scope

    def _bind_submodules(self, module: Parsed, scope: Scope) -> None:
        if module.is_package:
            for each in self.project.modules:
                base, _, name = each.rpartition(".")
                if base == module.name:
                    scope.names[name] = frozenset((Module(each),))

    @contextmanager
    def _set_aside(self, file: str) -> Iterator[None]:
        """Import a module while a handler may be judged."""
        kept = self.judged, self.stack, self.branches, self._owner, self._results
        self.judged, self.stack, self.branches = None, [], 0
        self._owner, self._results = None, []
        self.files.append(file)
        try:
            yield
        finally:
            self.files.pop()
            self.judged, self.stack, self.branches, self._owner, self._results = kept

    def _module(self, path: str, *, is_relative: bool = False) -> Value:
        if self.project.has(path) or (is_relative and path in self.project.modules):
            return Module(path)
        return Unknown(path) if is_relative else Known(canonical(path))

    # --------------------------------------------------------------- statements

    def run(self, body: Iterable[ast.stmt], scope: Scope) -> None:
        """Follow statements."""
        for each in body:
            try:
                self._do(each, scope)
            except RecursionError:
                self.note(each, _DEEP, "...")

    def _do(self, statement: ast.stmt, scope: Scope) -> None:
        step = getattr(self, f"_do_{type(statement).__name__.lower()}", None)
        if step is not None:
            step(statement, scope)
            return
        for inner in ast.iter_child_nodes(statement):
            if isinstance(inner, ast.expr):
                self.value(inner, scope)

    @contextmanager
    def _branch(self) -> Iterator[None]:
        self.branches += 1
        try:
            yield
        finally:
            self.branches -= 1

    def _do_import(self, node: ast.Import, scope: Scope) -> None:
        for each in node.names:
            name = each.asname or each.name.partition(".")[0]
            path = each.name if each.asname else name
            if each.name == "fnop" and each.asname == "kopf":
                path = "kopf"
            if self.project.has(each.name):
                self.load(each.name)
            found = self._module(path)
            if isinstance(found, Known) and self.project.has_below(path):
                found = Unknown(path)
            if path.startswith("kopf._"):
                self.note_path(node, path)
            self.bind(name, frozenset((found,)), scope)

    def _do_importfrom(self, node: ast.ImportFrom, scope: Scope) -> None:
        module = self.project.modules[scope.module]
        base = module.absolute(node.module, node.level)
        source = self._module(base, is_relative=bool(node.level))
        for each in node.names:
            if each.name == "*":
                self._import_all(source, scope)
                continue
            found = self._imported(source, base, each.name)
            self.bind(each.asname or each.name, found, scope)

    def _imported(self, source: Value, base: str, name: str) -> Values:
        match source:
            case Module():
                names = self.load(source.name).names
                if Module(f"{base}.{name}") in names.get(name, ()):
                    return self._submodule(f"{base}.{name}")
                if name in names:
                    return self.as_shared(names[name], name, source.name)
                if self.project.has(f"{base}.{name}"):
                    return self._submodule(f"{base}.{name}")
                return frozenset((Unknown(f"{base}.{name}"),))
            case Known():
                if f"{base}.{name}" in self.project.modules:  # a folder
                    return self._submodule(f"{base}.{name}")
                return frozenset((Known(canonical(f"{source.path}.{name}")),))
            case _:
                if f"{base}.{name}".strip(".") in self.project.modules:
                    return self._submodule(f"{base}.{name}".strip("."))
                return frozenset((Unknown(f"{base}.{name}"),))

    def _submodule(self, path: str) -> Values:
        """A module that is imported by its name: the import runs it."""
        self.load(path)
        return frozenset((Module(path),))

    def _import_all(self, source: Value, scope: Scope) -> None:
        if isinstance(source, Module):
            for name, values in self.load(source.name).names.items():
                if not name.startswith("_"):
                    scope.names[name] = self.as_shared(values, name, source.name)

    def _do_functiondef(self, node: _Def, scope: Scope) -> None:
        values: Values = frozenset((self._function(node, node.name, scope),))
        for each in reversed(node.decorator_list):
            found: set[Value] = set()
            for decorator in self.value(each, scope):
                found |= self.decorated(decorator, values)
            values = frozenset(found)
        self.bind(node.name, values, scope)

    _do_asyncfunctiondef = _do_functiondef

    def _function(self, node: _Def | ast.Lambda, name: str, scope: Scope) -> Function:
        args = node.args
        named = [*args.posonlyargs, *args.args]
        pairs: list[tuple[ast.arg, ast.expr | None]] = [
            *zip(named[len(named) - len(args.defaults) :], args.defaults, strict=True),
            *zip(args.kwonlyargs, args.kw_defaults, strict=True),
        ]
        defaults = {
            each.arg: frozenset(
                shared(value, each.arg, changed=False)
                for value in self.value(default, scope)
            )
            for each, default in pairs
            if default
        }
        owner = self._owner if scope.is_class else None
        outer = scope
        while outer.is_class and outer.outer is not None:
            outer = outer.outer
        return Function(name, node, outer, self.file, owner=owner, defaults=defaults)

    def _do_classdef(self, node: ast.ClassDef, scope: Scope) -> None:
        bases = [self.value(each, scope) for each in node.bases]
        inner = Scope(scope.module, scope, lasts=scope.lasts, is_class=True)
        made = Class(node.name, node, inner, tuple(e for b in bases for e in b))
        kept, self._owner = self._owner, made
        try:
            self.run(node.body, inner)
        finally:
            self._owner = kept
        found: set[Value] = {made}
        for each in node.decorator_list:
            for decorator in self.value(each, scope):
                rule = (
                    rule_for(decorator.path) if isinstance(decorator, Known) else None
                )
                if rule is None or rule.verdict is not Verdict.PURE:
                    found.add(Unknown(node.name))
        self.bind(node.name, frozenset(found), scope)

    def _do_return(self, node: ast.Return, scope: Scope) -> None:
        found = self.value(node.value, scope) if node.value else data(Shape.NONE)
        self._note_result(node, found)

    def _note_result(self, node: ast.Return | ast.Lambda, found: Values) -> None:
        if self._results:
            self._results[-1] |= found
        if self.judged is None or not self.stack:
            return
        if self.stack[-1].node is self.stack[0].innermost.node:
            result = node.value if isinstance(node, ast.Return) else node.body
            place = Place(self.file, node.lineno)
            code = f"return {short(result)}" if result else "return"
            self.judged.results.append((place, code, found))

    def _do_assign(self, node: ast.Assign, scope: Scope) -> None:
        found = self.value(node.value, scope)
        for each in node.targets:
            self.assign(each, found, scope)

    def _do_annassign(self, node: ast.AnnAssign, scope: Scope) -> None:
        if node.value is not None:
            self.assign(node.target, self.value(node.value, scope), scope)

    def _do_augassign(self, node: ast.AugAssign, scope: Scope) -> None:
        found = self.value(node.value, scope)
        if isinstance(node.target, ast.Name):
            name = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
            found |= self.value(name, scope)
        self.assign(node.target, _mixed(found, Shape.ANY), scope)

    def _do_for(self, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
        source = self.value(node.iter, scope)
        for each in source:
            if isinstance(each, Known) and each.shared:
                self.touch(each, node.iter)
        if isinstance(node, ast.AsyncFor):
            self._note_waiting(node.iter)
        with self._branch():
            for _ in range(2):  # what is bound at the end is used at the beginning
                self.assign(node.target, contents(source), scope)
                self.run(node.body, scope)
            self.run(node.orelse, scope)

    _do_asyncfor = _do_for

    def _do_while(self, node: ast.While, scope: Scope) -> None:
        with self._branch():
            for _ in range(2):
                self.value(node.test, scope)
                self.run(node.body, scope)
            self.run(node.orelse, scope)

    def _do_if(self, node: ast.If, scope: Scope) -> None:
        self.value(node.test, scope)
        with self._branch():
            self.run(node.body, scope)
            self.run(node.orelse, scope)

    def _do_with(self, node: ast.With | ast.AsyncWith, scope: Scope) -> None:
        for each in node.items:
            found = self.value(each.context_expr, scope)
            entered: set[Value] = set()
            for value in found:
                entered |= self._entered(value, each.context_expr)
            if isinstance(node, ast.AsyncWith):
                self._note_waiting(each.context_expr)
            if each.optional_vars is not None:
                self.assign(each.optional_vars, frozenset(entered), scope)
        self.run(node.body, scope)

    _do_asyncwith = _do_with

    def _entered(self, value: Value, node: ast.expr) -> Values:
        match value:
            case Known():
                if value.shared or not isinstance(node, ast.Call):
                    self.touch(value, node)
                return frozenset((value,))
            case Instance():
                return frozenset((value,)) | ANYTHING
            case Given() | Unknown():
                self.note_unknown(node)
                return frozenset((Unknown("a context"),))
            case _:
                return contents(frozenset((value,)))

    def _do_try(self, node: ast.Try, scope: Scope) -> None:
        with self._branch():
            self.run(node.body, scope)
            for each in node.handlers:
                found = self.value(each.type, scope) if each.type else NOTHING
                if Known("asyncio.CancelledError") in found | contents(found):
                    self.note(each.type or each, _CANCELLED)
                if each.name:
                    scope.names[each.name] = data(Shape.ANY)
                self.run(each.body, scope)
            self.run(node.orelse, scope)
            self.run(node.finalbody, scope)

    _do_trystar = _do_try

    def _do_match(self, node: ast.Match, scope: Scope) -> None:
        subject = self.value(node.subject, scope)
        with self._branch():
            for case in node.cases:
                for each in ast.walk(case.pattern):
                    name = getattr(each, "name", None) or getattr(each, "rest", None)
                    if isinstance(name, str):
                        self.bind(name, subject | contents(subject), scope)
                if case.guard is not None:
                    self.value(case.guard, scope)
                self.run(case.body, scope)

    def _do_global(self, node: ast.Global | ast.Nonlocal, scope: Scope) -> None:
        scope.outside |= set(node.names)

    _do_nonlocal = _do_global

    def _do_delete(self, node: ast.Delete, scope: Scope) -> None:
        for each in node.targets:
            if isinstance(each, (ast.Subscript, ast.Attribute)):
                self.assign(each, NOTHING, scope)

    # --------------------------------------------------------------- assignments

    def bind(self, name: str, values: Values, scope: Scope) -> None:
        """Bind a name; within a branch its former values are possible, too."""
        if name in scope.outside:
            scope = self._outer_of(name, scope)
            values |= scope.names.get(name, NOTHING)
        elif self.branches:
            values |= scope.names.get(name, NOTHING)
        scope.names[name] = values

    def _outer_of(self, name: str, scope: Scope) -> Scope:
        at = scope
        while at.outer is not None:
            at = at.outer
            if name in at.names:
                break
        return at

    def assign(self, target: ast.expr, values: Values, scope: Scope) -> None:
        """Assign values to a target."""
        match target:
            case ast.Name():
                outer = self._outer_of(target.id, scope)
                if target.id in scope.outside and outer.lasts:
                    self.note(target, _GLOBAL)
                self.bind(target.id, values, scope)
            case ast.Tuple() | ast.List():
                for each in target.elts:
                    self.assign(each, contents(values), scope)
            case ast.Starred():
                self.assign(target.value, data(Shape.LIST, values), scope)
            case ast.Attribute():
                self._assign_attribute(target, values, scope)
            case ast.Subscript():
                self.value(target.slice, scope)
                for owner in self.value(target.value, scope):
                    self._change(owner, target, values)
                self.put(target.value, values, scope, text_of(target.slice))
            case _:
                pass

    def put(self, node: ast.expr, values: Values, scope: Scope, key: str = "") -> None:
        """Add items to the data of a local name, or to data within it."""
        if not isinstance(node, ast.Name):
            key = ""
            if all(isinstance(each, Data) and not each.items for each in values):
                return
        root = node
        while isinstance(root, (ast.Subscript, ast.Attribute)):
            root = root.value
        if isinstance(root, ast.Name) and root.id in scope.names:
            scope.names[root.id] = frozenset(
                each.extended(values, key) if isinstance(each, Data) else each
                for each in scope.names[root.id]
            )

    def _assign_attribute(
        self, target: ast.Attribute, values: Values, scope: Scope
    ) -> None:
        path = path_of(target)
        if path is not None and self.note_setting(target, *path, scope):
            return
        for each in self.value(target.value, scope):
            if isinstance(each, Instance):
                fields = each.of.fields
                fields[target.attr] = fields.get(target.attr, NOTHING) | values
            self._change(each, target, values)

    def _change(self, of: Value, node: ast.expr, values: Values) -> None:
        """Note a write of these values to an object, if it lasts."""
        match of:
            case Given(name="memo"):
                is_object = any(isinstance(e, (Known, Instance)) for e in values)
                self.note_change(node, NO_JSON if is_object else REMEMBERS)
            case Given(name=name):
                if name not in _WRITABLE and name != "settings":
                    self.note_change(node, READ_ONLY)
            case Data(shared=name) if name:
                self.note_state(node)
            case Instance(shared=True) | Module() | Class() | Function():
                self.note_state(node)
            case Known(shared=True):
                self.note_state(node)
                self.touch(of, node)
            case _:
                pass

    # --------------------------------------------------------------- expressions

    def value(self, node: ast.expr | None, scope: Scope) -> Values:
        """The possible values of an expression."""
        if node is None:
            return data(Shape.NONE)
        step = getattr(self, f"_of_{type(node).__name__.lower()}", None)
        if step is not None:
            found: Values = step(node, scope)
            return found
        for each in ast.iter_child_nodes(node):
            if isinstance(each, ast.expr):
                self.value(each, scope)
        return ANYTHING

    def _of_name(self, node: ast.Name, scope: Scope) -> Values:
        return self.lookup(node, scope)

    def _of_constant(self, node: ast.Constant, scope: Scope) -> Values:
        if node.value is None:
            return data(Shape.NONE)
        is_bool = isinstance(node.value, bool)
        return data(Shape.BOOL if is_bool else Shape.SCALAR)

    def _of_joinedstr(self, node: ast.JoinedStr, scope: Scope) -> Values:
        for each in ast.walk(node):
            if isinstance(each, ast.FormattedValue):
                self.value(each.value, scope)
        return data(Shape.SCALAR)

    def _of_attribute(self, node: ast.Attribute, scope: Scope) -> Values:
        return self.attribute(node, scope)

    def _of_call(self, node: ast.Call, scope: Scope) -> Values:
        found = self.call(node, scope)
        func = node.func
        if isinstance(func, ast.Attribute) and func.attr in _ADDING:
            given = [*node.args, *(each.value for each in node.keywords)]
            values = frozenset().union(*(self.value(each, scope) for each in given))
            self.put(func.value, values | contents(values), scope)
        return found

    def _of_await(self, node: ast.Await, scope: Scope) -> Values:
        if isinstance(node.value, ast.Call):
            self.awaited.add(node.value)
            return self.value(node.value, scope)
        found = self.value(node.value, scope)
        self.note(node, _AWAITS)
        return found

    def _note_waiting(self, node: ast.expr) -> None:
        """Note `async with` and `async for`, unless their line is noted already."""
        place = Place(self.file, node.lineno)
        if self.judged is not None and place not in self.judged.lines:
            self.note(node, _AWAITS)

    def _of_list(self, node: ast.List | ast.Tuple | ast.Set, scope: Scope) -> Values:
        found: set[Value] = set()
        for each in node.elts:
            found |= self.value(each, scope)
        return data(Shape.LIST, found)

    _of_tuple = _of_set = _of_list

    def _of_starred(self, node: ast.Starred, scope: Scope) -> Values:
        return contents(self.value(node.value, scope))

    def _of_dict(self, node: ast.Dict, scope: Scope) -> Values:
        found: set[Value] = set()
        entries: dict[str, Values] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            inner = self.value(value, scope)
            if key is None:
                found |= contents(inner)
                continue
            self.value(key, scope)
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                entries[key.value] = inner
            else:
                found |= inner
        if len(entries) == len(node.keys):
            return mapping(entries)
        found |= {each for inner in entries.values() for each in inner}
        return data(Shape.MAPPING, found)

    def _of_listcomp(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope
    ) -> Values:
        return data(Shape.LIST, self.value(node.elt, self._loops(node, scope)))

    _of_setcomp = _of_generatorexp = _of_listcomp

    def _of_dictcomp(self, node: ast.DictComp, scope: Scope) -> Values:
        inner = self._loops(node, scope)
        self.value(node.key, inner)
        return data(Shape.MAPPING, self.value(node.value, inner))

    def _loops(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        scope: Scope,
    ) -> Scope:
        inner = Scope(scope.module, scope, lasts=scope.lasts)
        for each in node.generators:
            source = self.value(each.iter, inner)
            for value in source:
                if isinstance(value, Known) and value.shared:
                    self.touch(value, each.iter)
            if each.is_async:
                self._note_waiting(each.iter)
            self.assign(each.target, contents(source), inner)
            for test in each.ifs:
                self.value(test, inner)
        return inner

    def _of_lambda(self, node: ast.Lambda, scope: Scope) -> Values:
        return frozenset((self._function(node, "<lambda>", scope),))

    def _of_compare(self, node: ast.Compare, scope: Scope) -> Values:
        for each in (node.left, *node.comparators):
            self.value(each, scope)
            is_type = isinstance(each, ast.Call) and short(each.func) == "type"
            if is_type and isinstance(each, ast.Call) and each.args:
                of = self.value(each.args[0], scope)
                if any(isinstance(value, Given) for value in of):
                    self.note_change(node, _TYPES)
        return data(Shape.BOOL)

    def _of_unaryop(self, node: ast.UnaryOp, scope: Scope) -> Values:
        self.value(node.operand, scope)
        return data(Shape.BOOL if isinstance(node.op, ast.Not) else Shape.SCALAR)

    def _of_boolop(self, node: ast.BoolOp, scope: Scope) -> Values:
        return frozenset().union(*(self.value(each, scope) for each in node.values))

    def _of_binop(self, node: ast.BinOp, scope: Scope) -> Values:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        shapes = {e.shape for e in left | right if isinstance(e, Data)}
        is_exact = len(shapes) == 1 and all(isinstance(e, Data) for e in left | right)
        return _mixed(left | right, shapes.pop() if is_exact else Shape.ANY)

    def _of_ifexp(self, node: ast.IfExp, scope: Scope) -> Values:
        self.value(node.test, scope)
        return self.value(node.body, scope) | self.value(node.orelse, scope)

    def _of_namedexpr(self, node: ast.NamedExpr, scope: Scope) -> Values:
        found = self.value(node.value, scope)
        self.assign(node.target, found, scope)
        return found

    def _of_subscript(self, node: ast.Subscript, scope: Scope) -> Values:
        self.value(node.slice, scope)
        found: set[Value] = set()
        for each in self.value(node.value, scope):
            match each:
                case Given(name=given, part=False) if given == REST:
                    key = node.slice
                    is_text = isinstance(key, ast.Constant)
                    text = str(key.value) if isinstance(key, ast.Constant) else ""
                    found.add(Given(text) if is_text else Given(REST, part=True))
                case Given(name="settings"):
                    found.add(each)
                case Data():
                    name = text_of(node.slice)
                    found |= each.at(name) if name else contents(frozenset((each,)))
                case Known(shared=True):
                    self.touch(each, node)
                    found.add(each)
                case Known(path=path) if text_of(node.slice) and _acts(path):
                    found.add(Data())  # the making of it is noted
                case Unknown() | Class():
                    found.add(Unknown("an item"))
                case _:
                    found |= contents(frozenset((each,)))
        return frozenset(found)

    def _of_yield(self, node: ast.Yield, scope: Scope) -> Values:
        found = self.value(node.value, scope)
        if self._results:
            self._results[-1] |= data(Shape.LIST, found)
        return ANYTHING

    def _of_yieldfrom(self, node: ast.YieldFrom, scope: Scope) -> Values:
        found = self.value(node.value, scope)
        if self._results:
            self._results[-1] |= data(Shape.LIST, contents(found))
        return ANYTHING

    # ----------------------------------------------------------------- functions

    def enter(
        self, fn: Function, args: Sequence[Values], kwargs: Mapping[str, Values]
    ) -> Values:
        """Follow a call of a function: the possible results."""
        self.reached.add(fn.node)
        if any(each.node is fn.node for each in self.stack):
            return ANYTHING
        if self.is_exhausted:
            self.note(fn.node, _LARGE, fn.name)
            return ANYTHING
        scope = Scope(fn.scope.module, fn.scope, lasts=self.judged is None)
        scope.names |= _arguments(fn, args, kwargs)
        kept, self.branches = self.branches, 0
        self.stack.append(fn)
        self._results.append(set())
        try:
            if isinstance(fn.node, ast.Lambda):
                self._note_result(fn.node, self.value(fn.node.body, scope))
            else:
                self.run(fn.node.body, scope)
        finally:
            self.stack.pop()
            self.branches = kept
            found = self._results.pop()
        if not isinstance(fn.node, ast.Lambda) and _may_end(fn.node.body):
            found |= data(Shape.NONE)
        return frozenset(found)


def _may_end(body: list[ast.stmt]) -> bool:
    """Whether a function may end without a return."""
    match body[-1]:
        case ast.Return() | ast.Raise():
            return False
        case ast.If(body=first, orelse=second) if second:
            return _may_end(first) or _may_end(second)
        case ast.With(body=inner) | ast.AsyncWith(body=inner):
            return _may_end(inner)
        case _:
            return True


def _arguments(
    fn: Function, args: Sequence[Values], kwargs: Mapping[str, Values]
) -> dict[str, Values]:
    """The values of a function's parameters in a call."""
    spec = fn.node.args
    given = [*args]
    if fn.bound is not None:
        given.insert(0, frozenset((fn.bound,)))
    rest = kwargs.get(REST, NOTHING)
    left = {name: each for name, each in kwargs.items() if name != REST}
    found: dict[str, Values] = {}
    for each in (*spec.posonlyargs, *spec.args):
        if given:
            found[each.arg] = given.pop(0)
        else:
            found[each.arg] = _argument(fn, each.arg, left, rest)
    for each in spec.kwonlyargs:
        found[each.arg] = _argument(fn, each.arg, left, rest)
    if spec.vararg is not None:
        found[spec.vararg.arg] = data(Shape.LIST, frozenset().union(*given))
    if spec.kwarg is not None:
        inner = frozenset().union(*left.values())
        whole = frozenset(e for e in rest if isinstance(e, Given))
        made = data(Shape.MAPPING, inner | contents(rest)) if rest else mapping(left)
        found[spec.kwarg.arg] = whole or made
    return found


def _argument(fn: Function, name: str, left: dict[str, Values], rest: Values) -> Values:
    if name in left:
        return left.pop(name)
    found: set[Value] = set(fn.defaults.get(name, NOTHING))
    for each in rest:
        match each:
            case Given(name=rest_name) if rest_name == REST:
                if name in _ARGUMENTS or name not in fn.defaults:
                    found.add(Given(name))
            case Data(entries=frozenset() as entries):
                found |= each.at(name) if name in dict(entries) else NOTHING
            case _:
                found |= contents(frozenset((each,)))
    return frozenset(found) or frozenset((Unknown(name),))


def _acts(path: str) -> bool:
    rule = rule_for(path)
    return rule is not None and rule.verdict is not Verdict.PURE


def _mixed(values: Values, shape: Shape) -> Values:
    """The result of an operator: a path of a library stays one."""
    known = frozenset(each for each in values if isinstance(each, Known))
    items: set[Value] = set()
    for each in values - known:
        items |= each.items if isinstance(each, Data) else {each}
    return known | data(shape, items)
