"""Following the calls of an operator: its own functions, libraries, and arguments."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from fnop.adapters.kopf.porting.findings import Verdict
from fnop.adapters.kopf.porting.names import CALLS, DECORATORS, SUBHANDLERS
from fnop.adapters.kopf.porting.rules import (
    MUTATORS,
    READERS,
    TRANSPARENT,
    Rule,
    rule_for,
)
from fnop.adapters.kopf.porting.values import (
    ANYTHING,
    NOTHING,
    Blocked,
    Class,
    Data,
    Declarer,
    Function,
    Given,
    Instance,
    Known,
    Module,
    Partial,
    Scope,
    Shape,
    Unknown,
    Value,
    Values,
    contents,
    data,
    inner_items,
    mapping,
    pairs,
)
from fnop.adapters.kopf.porting.walking import (
    READ_ONLY,
    REMEMBERS,
    Declared,
    Walk,
    annotated_fields,
    changed_fields,
)

__all__ = ["REST", "Arguments", "Calls", "text_of"]

# The name of all arguments that a handler does not name.
REST = "**"


class Arguments(Struct, frozen=True):
    """The arguments of a call; `rest` are the values of its mappings (`**options`)."""

    node: ast.Call
    args: tuple[Values, ...]
    kwargs: Mapping[str, Values]
    rest: Values

    @property
    def number(self) -> int:
        return len(self.args) + len(self.kwargs) + len(self.rest)

    @property
    def all(self) -> Values:
        return frozenset().union(*self.args, *self.kwargs.values(), self.rest)

    @property
    def named(self) -> dict[str, Values]:
        """The named arguments, with the mappings under the name of all others."""
        return {**self.kwargs, **({REST: self.rest} if self.rest else {})}


_RESULTS: Mapping[str, Shape] = {
    **dict.fromkeys(
        ("len", "int", "float", "abs", "round", "str", "repr", "format", "ord", "chr"),
        Shape.SCALAR,
    ),
    **dict.fromkeys(("bytes", "hex", "oct", "bin", "ascii"), Shape.SCALAR),
    **dict.fromkeys(
        ("bool", "isinstance", "issubclass", "any", "all", "callable", "hasattr"),
        Shape.BOOL,
    ),
    **dict.fromkeys(
        ("list", "tuple", "set", "frozenset", "sorted", "reversed", "range", "zip"),
        Shape.LIST,
    ),
    **dict.fromkeys(("enumerate", "filter", "map"), Shape.LIST),
    "dict": Shape.MAPPING,
    "print": Shape.NONE,
    **dict.fromkeys(("sum", "min", "max", "next", "iter", "pow", "divmod"), Shape.ANY),
    **dict.fromkeys(("vars", "dir", "slice", "type", "getattr"), Shape.ANY),
}
_METHODS: Mapping[str, Shape] = {
    **dict.fromkeys(
        ("startswith", "endswith", "isdigit", "isalpha", "isalnum", "issubset"),
        Shape.BOOL,
    ),
    **dict.fromkeys(("islower", "isupper", "isdisjoint", "issuperset"), Shape.BOOL),
    **dict.fromkeys(
        ("join", "format", "strip", "lstrip", "rstrip", "lower", "upper", "title"),
        Shape.SCALAR,
    ),
    **dict.fromkeys(("replace", "encode", "decode", "count", "find"), Shape.SCALAR),
    **dict.fromkeys(("isoformat", "strftime", "total_seconds"), Shape.SCALAR),
    **dict.fromkeys(("items", "keys", "values", "split", "splitlines"), Shape.LIST),
}
# Arguments that collect what a handler writes, and that have any method.
_WRITERS = ("patch", "logger", "warnings", "resource", REST)
# Methods that clients have as well as data.
_AMBIGUOUS = ("get", "copy", "count", "index", "start", "end", "update", "group")
_UNAWAITED = "write async def and await stopped.wait(...), or keep impure=True"
_EXECUTE = "fnop.execute takes functions alone: await fnop.execute(...)"


class Calls(Walk):
    """A walk that follows calls."""

    def call(self, node: ast.Call, scope: Scope) -> Values:
        """Follow a call expression: the possible results."""
        args: list[Values] = []
        for each in node.args:
            found = self.value(each, scope)
            args.append(contents(found) if isinstance(each, ast.Starred) else found)
        kwargs = {e.arg: self.value(e.value, scope) for e in node.keywords if e.arg}
        rest = [self.value(e.value, scope) for e in node.keywords if not e.arg]
        given = Arguments(node, tuple(args), kwargs, frozenset().union(*rest))
        result: set[Value] = set()
        if isinstance(node.func, ast.Attribute):
            for owner in self.value(node.func.value, scope):
                result |= self.call_method(owner, node.func, given)
        else:
            for called in self.value(node.func, scope):
                result |= self.call_value(called, given)
        return frozenset(result)

    # -------------------------------------------------------------- by the value

    def call_value(self, value: Value, given: Arguments) -> Values:
        """Follow a call of a value."""
        match value:
            case Function():
                return self.enter(value, given.args, given.named)
            case Partial():
                both = (*value.args, *given.args)
                named = {**value.kwargs, **given.kwargs}
                merged = Arguments(given.node, both, named, given.rest)
                return self.call_value(value.fn, merged)
            case Blocked():
                self.note_decorator(value, given.node)
                return self.call_value(value.fn, given)
            case Class():
                return self.make(value, given)
            case Known():
                return self.call_known(value, given)
            case Declarer():
                return self.declare(value, given)
            case _:
                return self.call_object(value, given)

    def call_object(self, value: Value, given: Arguments) -> Values:
        """Follow a call of an object itself."""
        if isinstance(value, Instance):
            node = ast.Attribute(given.node.func, "__call__", ast.Load())
            return self.call_method(value, ast.copy_location(node, given.node), given)
        self.note_unknown(given.node)
        return frozenset((Unknown("a result"),))

    def note_decorator(self, value: Blocked, node: ast.AST) -> None:
        rule = rule_for(value.path)
        if rule is None:
            self.note_unknown(node)
        else:
            self.note(node, rule)

    def make(self, of: Class, given: Arguments) -> Values:
        """Follow the making of an object, with all methods that Python calls itself."""
        made = Instance(of, shared=self.judged is None)
        for name in sorted(_methods_of(of)):
            is_init = name == "__init__"
            if not is_init and name != "__post_init__" and self.judged is None:
                continue
            for each in self.member_of_class(of, made, name):
                if isinstance(each, Function) and not each.kind:
                    args = given.args if is_init else ()
                    self.enter(each, args, given.named if is_init else {})
        makers = self.member_of_class(of, made, "__init__")
        if not any(isinstance(each, Function) for each in makers):
            _fill_fields(of, given)
        self._make_bases(of, given)
        return frozenset((made,))

    def meet(self, of: Instance) -> None:
        """Follow the methods that Python may call by itself, such as `__iter__`."""
        if self.judged is None or of.of in self.judged.met:
            return
        self.judged.met.add(of.of)
        for name in sorted(_methods_of(of.of)):
            for each in self.member_of_class(of.of, of, name):
                is_making = name in ("__init__", "__post_init__", "__new__")
                if isinstance(each, Function) and not each.kind and not is_making:
                    self.enter(each, (), {})

    def _make_bases(self, of: Class, given: Arguments) -> None:
        """Note the making of the part that comes from libraries."""
        for base in of.bases:
            match base:
                case Known():
                    rule = rule_for(base.path)
                    if rule is None:
                        self.note_unknown(given.node)
                    else:
                        self.note(given.node, rule)
                case Class():
                    self._make_bases(base, given)
                case _:
                    self.note_unknown(given.node)

    # ----------------------------------------------------------------- libraries

    def call_known(self, value: Known, given: Arguments) -> Values:
        """Follow a call of a library."""
        path = value.path
        if path in DECORATORS:
            return self._call_decorator(path, given)
        if path in CALLS:
            self.note(given.node, CALLS[path])
            self._follow_callbacks(given)
            return ANYTHING
        if path.startswith("kopf."):
            return self._call_kopf(path, given)
        special = _SPECIAL.get(path)
        if special is not None:
            return special(self, given)
        if value.made and path in TRANSPARENT:
            return self.decorated(value, given.args[0]) if given.args else NOTHING
        rule = rule_for(path, given.number)
        if rule is None:
            if path.rpartition(".")[2].endswith(("Error", "Exception")):
                return frozenset((Known(path, made=True),))
            self.note_unknown(given.node)
            return frozenset((Known(path, made=True),))
        self.note(given.node, rule)
        found = self._follow_callbacks(given)
        if rule.gives_data:
            return ANYTHING
        if path.startswith("builtins."):
            shape = _RESULTS.get(path.removeprefix("builtins."))
            if path == "builtins.dict" and not given.args and not given.rest:
                return mapping(given.kwargs)
            if shape is not None:
                plain = frozenset(e for e in given.all if not _function_in(e))
                return _built(path, shape, contents(plain) | found)
        parts = frozenset(each for each in found if isinstance(each, Given))
        return parts | _carried(path, given.all) | {Known(path, made=True)}

    def _follow_callbacks(self, given: Arguments) -> Values:
        """Call the functions among the arguments, as a library may do."""
        found: set[Value] = set()
        values = given.all
        for each in _called_back(given):
            match each:
                case Known(made=False):
                    inner = Arguments(given.node, (ANYTHING,), {}, NOTHING)
                    found |= self.call_known(each, inner)
                case Unknown():
                    self.note_unknown(given.node)
                case _:
                    pass
        for each in values:
            if isinstance(each, (Function, Partial, Blocked)):
                others = contents(frozenset(v for v in values if v is not each))
                inner = Arguments(given.node, (others | ANYTHING,), {}, NOTHING)
                found |= self.call_value(each, inner)
        return frozenset(found)

    def _call_kopf(self, path: str, given: Arguments) -> Values:
        name = path.removeprefix("kopf.")
        if name in ("not_", "all_", "any_", "none_"):
            return given.all | contents(given.all)
        if name == "execute":
            return self._execute(given)
        return frozenset((Known(path, made=True),))

    def _execute(self, given: Arguments) -> Values:
        if {*given.kwargs} - {"fns"}:
            self.note_change(given.node, _EXECUTE)
        fns = given.kwargs.get("fns", given.args[0] if given.args else NOTHING)
        for each in _parts_of(fns):
            self.add(Declarer("subhandler", given.node, self.file, {}, True), each)
        return ANYTHING

    # -------------------------------------------------------------- declarations

    def _call_decorator(self, path: str, given: Arguments) -> Values:
        name = DECORATORS[path]
        options = dict(given.kwargs)
        is_complete = True
        for each in given.rest:
            if isinstance(each, Data) and each.entries is not None:
                options |= dict(each.entries)
            else:
                is_complete = False
        declarer = Declarer(name, given.node, self.file, options, is_complete)
        if name == "register":
            fn = options.pop("fn", given.args[0] if given.args else ANYTHING)
            for each in fn:
                self.add(declarer, each)
            return fn
        return frozenset((declarer,))

    def declare(self, declarer: Declarer, given: Arguments) -> Values:
        """Note that a decorator is applied to a function, and return the function."""
        target = given.args[0] if given.args else NOTHING
        for each in target:
            self.add(declarer, each)
        return target

    def add(self, declarer: Declarer, target: Value) -> None:
        within = self.stack[0] if self.stack and self.judged is not None else None
        if declarer.name in SUBHANDLERS and within is None:
            return
        if self.judged is not None:
            self.judged.declares = True
        self.declared.append(
            Declared(
                declarer.name,
                target,
                declarer.call,
                declarer.file,
                declarer.options,
                declarer.is_complete,
                within,
            )
        )

    def decorated(self, decorator: Value, values: Values) -> Values:
        """The values of functions with one more decorator."""
        found: set[Value] = set()
        for each in values:
            match decorator:
                case Known(path=path):
                    found.add(_decorated(each, decorator, path))
                case Declarer():
                    self.add(decorator, each)
                    found.add(each)
                case Function() | Partial():
                    found |= self._import(decorator, each)
                case _:
                    found.add(Blocked("?", each))
        return frozenset(found)

    def _import(self, decorator: Value, value: Value) -> Values:
        node = ast.copy_location(
            ast.Call(ast.Name("decorator", ast.Load()), [], []),
            getattr(value, "node", ast.Pass(lineno=1, col_offset=0)),
        )
        given = Arguments(node, (frozenset((value,)),), {}, NOTHING)
        return self.call_value(decorator, given) or frozenset((Unknown("?"),))

    # ------------------------------------------------------------------- methods

    def call_method(self, of: Value, node: ast.Attribute, given: Arguments) -> Values:
        """Follow a call of a method."""
        match of:
            case Data():
                return self._call_of_data(of, node, given)
            case Given():
                return self._call_of_argument(of, node, given)
            case _:
                found: set[Value] = set()
                if isinstance(of, Known) and of.shared and node.attr in MUTATORS:
                    self.note_state(given.node)
                for each in self.member(of, node):
                    found |= self.call_value(each, given)
                if isinstance(of, Instance) and of.shared:
                    self._note_state(of, node)
                return frozenset(found)

    def _note_state(self, of: Instance, node: ast.Attribute) -> None:
        """Note a method of a lasting object that changes the object."""
        for method in of.of.node.body:
            if getattr(method, "name", "") == node.attr and changed_fields([method]):
                self.note_state(node)

    def _call_of_data(self, of: Data, node: ast.Attribute, given: Arguments) -> Values:
        name = node.attr
        if of.shape is Shape.NONE:  # this would be an error
            return NOTHING
        if name in MUTATORS:
            if of.shared:
                self.note_state(given.node)
            return contents(frozenset((of,)))
        if name in READERS:
            self._follow_callbacks(given)
            items = contents(frozenset((of,)))
            key = text_of(given.node.args[0]) if given.node.args else ""
            if name == "get" and key:
                items = of.at(key).union(*given.args[1:])
            if name == "items":
                return pairs(items)
            return data(_METHODS[name], items) if name in _METHODS else items
        if of.items:
            found: set[Value] = set()
            for each in of.items:
                found |= self.call_method(each, node, given)
            return frozenset(found)
        self.note_unknown(given.node)
        return frozenset((Unknown("a result"),))

    def _call_of_argument(
        self, of: Given, node: ast.Attribute, given: Arguments
    ) -> Values:
        name = node.attr
        if of.name == "patch":
            self._follow_callbacks(given)
            return frozenset((Given("patch", part=True),))
        if of.name == "stopped":
            return self._call_of_stopped(name, given)
        if of.name == "memo" and of.part and name in _AMBIGUOUS:
            self.note_unknown(given.node)
            return frozenset((Unknown("a result"),))
        if of.name == "memo" and name in MUTATORS:
            self.note_change(given.node, REMEMBERS)
            return frozenset((Given("memo", part=True),))
        if of.name in _WRITERS:
            return self._call_of_writer(of, name, given)
        if name in MUTATORS:
            self.note_change(given.node, READ_ONLY)
        elif name not in READERS:
            self.note_unknown(given.node)
            return frozenset((Unknown("a result"),))
        self._follow_callbacks(given)
        part = Given(of.name, part=True)
        if name in _METHODS:
            return data(_METHODS[name], (part,))
        defaults = frozenset().union(*given.args[1:])
        return frozenset((part,)) | defaults

    def _call_of_writer(self, of: Given, name: str, given: Arguments) -> Values:
        if of.name == REST and given.node.args:
            named = text_of(given.node.args[0])
            if name in ("get", "pop") and named:
                return frozenset((Given(named),))
        if of.name == "logger" and not of.part:
            return data(Shape.NONE)
        return frozenset((Given(of.name, part=True),))

    def _call_of_stopped(self, name: str, given: Arguments) -> Values:
        if name == "wait" and given.node not in self.awaited:
            self.note(given.node, Rule(Verdict.CHANGES, _UNAWAITED, only_pure=True))
        elif name not in ("wait", "is_set"):
            self.note_unknown(given.node)
        return data(Shape.BOOL)


# ------------------------------------------------------------------- special calls

_Special = Callable[[Calls, Arguments], Values]


def _partial(walk: Calls, given: Arguments) -> Values:
    first = given.args[0] if given.args else NOTHING
    return frozenset(Partial(each, given.args[1:], given.named) for each in first)


def _wraps(walk: Calls, given: Arguments) -> Values:
    shown = [e for e in (given.args[0] if given.args else ()) if _function_in(e)]
    wrapped = _function_in(shown[0]) if shown else None
    return frozenset((Known("functools.wraps", made=True, shown=wrapped),))


def _getattr(walk: Calls, given: Arguments) -> Values:
    name = text_of(given.node.args[1]) if len(given.node.args) > 1 else ""
    found: set[Value] = set()
    for each in given.args[0] if given.args else ():
        if name:
            node = ast.Attribute(given.node.args[0], name, ast.Load())
            found |= walk.member(each, ast.copy_location(node, given.node))
        else:
            found |= contents(frozenset((each,)))
    return frozenset(found).union(*given.args[2:])


def _setattr(walk: Calls, given: Arguments) -> Values:
    for each in given.args[0] if given.args else ():
        match each:
            case Given(name="memo"):
                walk.note_change(given.node, REMEMBERS)
            case _:
                walk.note_state(given.node)
    return data(Shape.NONE)


def _super(walk: Calls, given: Arguments) -> Values:
    fn = walk.stack[-1] if walk.stack else None
    if fn is None or fn.owner is None or not isinstance(fn.bound, Instance):
        return frozenset((Known("builtins.super", made=True),))
    found: set[Value] = set()
    for base in fn.owner.bases:
        match base:
            case Class():
                found.add(Instance(base, fn.bound.shared))
            case Known():
                found.add(Known(base.path, made=True, shared=fn.bound.shared))
            case _:
                found.add(base)
    return frozenset(found or {Known("builtins.object", made=True)})


def _next(walk: Calls, given: Arguments) -> Values:
    for each in given.args[0] if given.args else ():
        if getattr(each, "shared", ""):
            walk.note_state(given.node)
    return frozenset().union(*map(contents, given.args)) | ANYTHING


def _import_module(walk: Calls, given: Arguments) -> Values:
    """A module of the operator that a call imports by its name."""
    found = [e.name for e in walk.project.loads if e.call is given.node]
    for name in filter(walk.project.has, found):
        walk.load(name)
        return frozenset((Module(name),))
    rule = rule_for("importlib.import_module")
    assert rule is not None, "the table has it"
    walk.note(given.node, rule)
    return frozenset((Unknown("a module"),))


_SPECIAL: Mapping[str, _Special] = {
    "importlib.import_module": _import_module,
    "builtins.next": _next,
    "functools.partial": _partial,
    "functools.wraps": _wraps,
    "builtins.getattr": _getattr,
    "builtins.setattr": _setattr,
    "builtins.super": _super,
}


_PAIRS = ("builtins.enumerate", "builtins.zip")


def _built(path: str, shape: Shape, items: Values) -> Values:
    """The result of a function of Python."""
    if path in _PAIRS:
        return pairs(items)
    return items | ANYTHING if shape is Shape.ANY else data(shape, items)


_TAKES_FUNCTION = ("map", "filter", "reduce")
_FUNCTION_NAMES = ("key", "default", "default_factory", "object_hook", "function")


def _parts_of(fns: Values) -> Iterator[Value]:
    """The sub-handlers of `execute`, or what stands for those that only a run knows."""
    for each in fns:
        if isinstance(each, Data):
            yield from each.items or ANYTHING
        else:
            yield each


def _called_back(given: Arguments) -> Values:
    """The arguments that a library may call."""
    named = [given.kwargs[name] for name in _FUNCTION_NAMES if name in given.kwargs]
    func = given.node.func
    name = getattr(func, "attr", "") or getattr(func, "id", "")
    if name in _TAKES_FUNCTION and given.args:
        named.append(given.args[0])
    return frozenset().union(*named)


# Libraries whose functions return what they are given, or a part of it.
_CARRYING = ("collections", "contextlib", "copy", "functools", "itertools", "operator")


def _carried(path: str, values: Values) -> Values:
    """The arguments that may come out of a pure library again: clients and others."""
    if path.partition(".")[0] not in _CARRYING:
        return NOTHING
    return frozenset(
        each
        for each in inner_items(values)
        if isinstance(each, (Unknown, Instance, Known))
    )


def _function_in(value: Value) -> Function | None:
    match value:
        case Function():
            return value
        case Partial() | Blocked():
            return _function_in(value.fn)
        case _:
            return None


def _decorated(value: Value, decorator: Known, path: str) -> Value:
    """A function with a decorator of a library."""
    if not isinstance(value, Function):
        return value if path in TRANSPARENT else Blocked(path, value)
    kinds = {
        "builtins.property": "property",
        "functools.cached_property": "property",
        "builtins.staticmethod": "staticmethod",
        "builtins.classmethod": "classmethod",
    }
    shown = decorator.shown if path == "functools.wraps" else None
    if path not in kinds and path not in TRANSPARENT:
        return Blocked(path, value)
    return Function(
        value.name,
        value.node,
        value.scope,
        value.file,
        kinds.get(path, value.kind),
        value.owner,
        value.bound,
        shown or value.shown,
        value.defaults,
    )


def _fill_fields(of: Class, given: Arguments) -> None:
    """Note the fields of a dataclass, which has no `__init__` of its own."""
    names = annotated_fields(of)
    values = {**dict(zip(names, given.args, strict=False)), **given.kwargs}
    for name in names:
        found = values.get(name, contents(given.rest))
        of.fields[name] = of.fields.get(name, NOTHING) | found


def _methods_of(of: Class) -> frozenset[str]:
    """The methods that Python calls by itself, such as `__init__` and `__iter__`."""
    own = {name for name in of.scope.names if name.startswith("__")}
    inherited = [_methods_of(each) for each in of.bases if isinstance(each, Class)]
    return frozenset(own).union(*inherited)


def text_of(node: ast.expr) -> str:
    """The text of a constant; "" for all else."""
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return str(node.value) if isinstance(node, ast.Constant) and is_text else ""
