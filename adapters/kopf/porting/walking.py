"""Following the source of an operator: the state of a walk, its notes and names.

`reading` adds statements and expressions, and `calling` adds calls.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from msgspec import Struct

from fnop.adapters.kopf.porting.findings import Finding, Place, Verdict
from fnop.adapters.kopf.porting.names import advice_for, advice_for_setting
from fnop.adapters.kopf.porting.rules import (
    BUILTINS,
    MUTATORS,
    Rule,
    rule_for,
    rule_of_use,
)
from fnop.adapters.kopf.porting.sources import Project
from fnop.adapters.kopf.porting.values import (
    Class,
    Data,
    Function,
    Given,
    Instance,
    Known,
    Module,
    Scope,
    Unknown,
    Value,
    Values,
)

__all__ = [
    "NOT_FOUND",
    "NO_JSON",
    "READ_ONLY",
    "REMEMBERS",
    "Declared",
    "Judged",
    "Walk",
    "annotated_fields",
    "canonical",
    "changed_fields",
    "path_of",
    "shared",
    "short",
]

NOT_FOUND = "its source was not found, so it may act: look, or keep impure=True"
REMEMBERS = "the memo is read-only: return fnop.remember(key=value)"
READ_ONLY = "arguments are read-only: change a copy, as copy.deepcopy makes it"
_STATE = (
    "it is kept in the process, which a simulation or a replay would change again: "
    "keep impure=True"
)
_STATE_READ = (
    "it is kept in the process, and functions change it: keep impure=True, or use the "
    "memo or the status"
)
NO_JSON = "the memo holds JSON, and not such an object: make it at the top of a module"
_JSON = (
    "the memo holds JSON, which has no attributes: make the object at the top of a "
    "module"
)
_CODE_MOST = 60
_DEPTH_MOST = 40
# Calls that are followed for one handler, before it counts as too large.
_CALLS_MOST = 3000


class Declared(Struct, frozen=True, eq=False):
    """A declaration: the decorator's name, its call, and the declared function.

    `within` is the function that declares a sub-handler.
    """

    decorator: str
    target: Value
    call: ast.Call
    file: str
    options: Mapping[str, Values]
    is_complete: bool
    within: Function | None


@dataclass(eq=False)
class Judged:
    """One handler while it is judged: the findings, and what it uses and returns."""

    findings: dict[tuple[Place, str], Finding] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    states: set[str] = field(default_factory=set)
    results: list[tuple[Place, str, Values]] = field(default_factory=list)
    declares: bool = False
    met: set[Class] = field(default_factory=set)
    calls: int = 0

    @property
    def lines(self) -> set[Place]:
        return {place for place, _ in self.findings}


class Walk(ABC):
    """The state of a walk through a project.

    While `judged` is None, modules are imported: nothing is noted. Otherwise a handler
    is judged. `stack` are the functions that are being followed, the handler first.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.scopes: dict[str, Scope] = {}
        self.declared: list[Declared] = []
        self.judged: Judged | None = None
        self.stack: list[Function] = []
        self.files: list[str] = []
        self.reached: set[ast.AST] = set()
        self.awaited: set[ast.AST] = set()
        self.branches = 0

    @abstractmethod
    def value(self, node: ast.expr | None, scope: Scope) -> Values:
        """The possible values of an expression."""

    @abstractmethod
    def enter(
        self,
        fn: Function,
        args: Sequence[Values],
        kwargs: Mapping[str, Values],
    ) -> Values:
        """Follow a call of a function: the possible results."""

    @abstractmethod
    def meet(self, of: Instance) -> None:
        """Follow the methods of an object that Python may call by itself."""

    @abstractmethod
    def load(self, name: str) -> Scope:
        """The names of a module, which is imported if necessary."""

    # ------------------------------------------------------------------- notes

    @property
    def file(self) -> str:
        return self.stack[-1].file if self.stack else self.files[-1]

    def note(self, node: ast.AST, rule: Rule, code: str = "") -> None:
        """Note a finding about an expression, if a handler is judged."""
        if self.judged is None or rule.verdict is Verdict.PURE:
            return
        place = Place(self.file, getattr(node, "lineno", 1))
        finding = Finding(
            rule.verdict,
            place,
            code or short(node),
            rule.advice,
            self._via,
            rule.only_pure,
        )
        self.judged.findings.setdefault((place, rule.advice), finding)

    @property
    def _via(self) -> tuple[str, ...]:
        """The functions between the handler and the present line."""
        own = self.stack[0].innermost.node if self.stack else None
        inner = (each.innermost for each in self.stack[1:])
        return tuple(each.name for each in inner if each.node is not own)

    def note_unknown(self, node: ast.AST) -> None:
        """Note an expression whose effects are not known."""
        self.note(node, Rule(Verdict.IMPURE, NOT_FOUND))

    def note_change(self, node: ast.AST, advice: str) -> None:
        self.note(node, Rule(Verdict.CHANGES, advice))

    def note_state(self, node: ast.AST) -> None:
        self.note(node, Rule(Verdict.IMPURE, _STATE))

    def touch(self, value: Value, node: ast.AST) -> None:
        """Note the use of an object of a library, as by `with` or by `for`."""
        match value:
            case Known(path=path):
                rule = rule_for(f"{path}.__use__")
                if rule is None:
                    self.note_unknown(node)
                else:
                    self.note(node, rule)
            case Unknown():
                self.note_unknown(node)
            case _:
                pass

    @property
    def is_exhausted(self) -> bool:
        """Whether the handler calls more than can be followed."""
        if self.judged is None:
            return len(self.stack) > _DEPTH_MOST
        self.judged.calls += 1
        return len(self.stack) > _DEPTH_MOST or self.judged.calls > _CALLS_MOST

    # ------------------------------------------------------------------- names

    def lookup(self, node: ast.Name, scope: Scope) -> Values:
        """The values of a name."""
        name, at = node.id, scope
        while True:
            if name in at.names:
                found = at.names[name]
                if at.lasts and at is not scope:
                    found = self.as_shared(found, name, at.module)
                self._note_name(node, found)
                return found
            if at.outer is None:
                break
            at = at.outer
        if name in BUILTINS:
            return frozenset((Known(f"builtins.{name}"),))
        if name.startswith("__"):
            return frozenset((Data(),))
        if self.judged is not None:
            self.note_unknown(node)
        return frozenset((Unknown(name),))

    def _note_name(self, node: ast.AST, found: Values) -> None:
        if self.judged is None:
            return
        for each in found:
            match each:
                case Data(changed=True, shared=state) | Known(changed=True, path=state):
                    if state not in self.judged.states:
                        self.judged.states.add(state)
                        self.note(node, Rule(Verdict.IMPURE, _STATE_READ))
                case Instance(shared=True):
                    self.meet(each)
                case Given(name=name, part=False):
                    self.judged.used.add(name)
                case Known(path=path):
                    self.note_path(node, path)
                case _:
                    pass

    def note_path(self, node: ast.AST, path: str) -> None:
        """Note a name that acts without a call, or that fnop lacks."""
        rule = rule_of_use(path)
        if rule is not None:
            self.note(node, rule)
        if path.startswith("kopf."):
            advice = advice_for(path.removeprefix("kopf."))
            if advice is not None:
                self.note_change(node, advice)

    def as_shared(self, values: Values, name: str, module: str) -> Values:
        """The values of a module's name, as its functions see them."""
        changed = (module, name) in self.changed or ("", name) in self.changed
        return frozenset(shared(each, name, changed) for each in values)

    @cached_property
    def changed(self) -> frozenset[tuple[str, str]]:
        """The names of modules that functions change; without a module: of any."""
        return frozenset(
            found
            for module in self.project.modules.values()
            for found in _changes(module.tree, module.name)
        )

    @cached_property
    def changed_fields(self) -> frozenset[str]:
        """The attributes of objects that functions change after they were made."""
        trees = (each.tree for each in self.project.modules.values())
        return changed_fields(node for tree in trees for node in ast.walk(tree))

    # -------------------------------------------------------------- attributes

    def attribute(self, node: ast.Attribute, scope: Scope) -> Values:
        """The values of an attribute."""
        path = path_of(node)
        if path is not None and self.note_setting(node, *path, scope):
            return frozenset((Given("settings", part=True),))
        found: set[Value] = set()
        for each in self.value(node.value, scope):
            found |= self.member(each, node)
        return frozenset(found)

    def note_setting(
        self, node: ast.AST, root: ast.Name, names: Sequence[str], scope: Scope
    ) -> bool:
        """Note a setting, if the path begins with the argument `settings`."""
        at = self.value(root, scope)
        if not any(isinstance(each, Given) and each.name == "settings" for each in at):
            return False
        self.note_change(node, advice_for_setting(".".join(names)))
        return True

    def member(self, of: Value, node: ast.Attribute) -> Values:
        """The values of one object's attribute."""
        name = node.attr
        match of:
            case Known():
                path = canonical(f"{of.path}.{name}")
                known = Known(path, of.made, of.shared, of.changed)
                self.note_path(node, known.path)
                return frozenset((known,))
            case Module():
                return self._member_of_module(of, node)
            case Class():
                return self.member_of_class(of, of, name) or frozenset((Data(),))
            case Instance():
                return self._member_of_instance(of, node)
            case Given(name="stopped") if name == "reason":
                self.note_change(
                    node, "it is the first reason: compare it by == with one reason"
                )
            case Given(name="memo", part=True):
                self.note_change(node, _JSON)
            case _:
                pass
        match of:
            case Given():
                return frozenset((Given(of.name, part=True),))
            case Data():
                inner = Data(shared=of.shared, changed=of.changed)
                return of.items | {inner}
            case Unknown():
                return frozenset((Unknown(f"{of.what}.{name}"),))
            case _:
                return frozenset((Data(),))

    def _member_of_module(self, of: Module, node: ast.Attribute) -> Values:
        names, name = self.load(of.name).names, node.attr
        if name in names:
            found = self.as_shared(names[name], name, of.name)
            self._note_name(node, found)
            return found
        if self.project.has(f"{of.name}.{name}"):
            return frozenset((Module(f"{of.name}.{name}"),))
        return frozenset((Unknown(f"{of.name}.{name}"),))

    def member_of_class(self, of: Class, bound: Value, name: str) -> Values:
        if name in of.scope.names:
            changed = name in self.changed_fields
            path = f"{of.name}.{name}"
            values = of.scope.names[name]
            found = frozenset(shared(_bound(e, bound), path, changed) for e in values)
            self._note_name(of.node, found)
            return found
        inherited: set[Value] = set()
        for base in of.bases:
            match base:
                case Class():
                    inherited |= self.member_of_class(base, bound, name)
                case Known():
                    inherited.add(Known(f"{base.path}.{name}", made=True))
                case _:
                    inherited.add(Unknown(f"{of.name}.{name}"))
        return frozenset(inherited)

    def _member_of_instance(self, of: Instance, node: ast.Attribute) -> Values:
        name = node.attr
        fields = _fields_of(of.of, name)
        if fields:
            if not of.shared:
                return fields
            changed = name in self.changed_fields
            found = frozenset(
                shared(e, f"{of.of.name}.{name}", changed) for e in fields
            )
            self._note_name(node, found)
            return found
        found = self.member_of_class(of.of, of, name)
        result: set[Value] = set()
        for each in found:
            if isinstance(each, Function) and each.kind == "property":
                result |= self.enter(each, [], {})
            else:
                result.add(each)
        if not found:
            if name not in annotated_fields(of.of):
                self.note_unknown(node)
            return frozenset((Unknown(f"{of.of.name}.{name}"),))
        return frozenset(result)


def canonical(path: str) -> str:
    """The path of a name of Kopf, which operators import in several ways.

    >>> canonical("fnop.kopf.on.create"), canonical("fnop.event")
    ('kopf.on.create', 'fnop.event')
    """
    is_ours = f"{path}.".startswith("fnop.kopf.")
    return path.removeprefix("fnop.") if is_ours else path


def shared(value: Value, name: str, changed: bool) -> Value:
    """A value that outlives the call of a handler."""
    match value:
        case Data():
            return Data(value.shape, value.items, name, changed, value.entries)
        case Known(made=True):
            return Known(value.path, True, True, changed)
        case Instance():
            return Instance(value.of, shared=True)
        case _:
            return value


def short(node: ast.AST) -> str:
    """An expression in one short line; the arguments of a call are left out.

    >>> short(ast.parse("client.create(name, [1, 2])").body[0].value)
    'client.create(...)'
    """
    if isinstance(node, ast.Call):
        empty = "(...)" if node.args or node.keywords else "()"
        return short(node.func) + empty
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        return f"{'class' if isinstance(node, ast.ClassDef) else 'def'} {node.name}"
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _CODE_MOST else f"{text[: _CODE_MOST - 3]}..."


def _bound(value: Value, to: Value) -> Value:
    """A member of a class as the attribute of an object, or of the class."""
    if not isinstance(value, Function) or value.kind == "staticmethod":
        return value
    owner = to.of if isinstance(to, Instance) and value.kind == "classmethod" else to
    if isinstance(to, Class) and value.kind != "classmethod":
        return value
    return Function(
        value.name,
        value.node,
        value.scope,
        value.file,
        value.kind,
        value.owner,
        owner,
        value.shown,
        value.defaults,
    )


def _fields_of(of: Class, name: str) -> Values:
    found = set(of.fields.get(name, ()))
    for base in of.bases:
        if isinstance(base, Class):
            found |= _fields_of(base, name)
    return frozenset(found)


def annotated_fields(of: Class) -> list[str]:
    """The names that a class and its bases annotate, as a dataclass does."""
    bases = [annotated_fields(each) for each in of.bases if isinstance(each, Class)]
    own = [
        each.target.id
        for each in of.node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    ]
    return [name for names in (*bases, own) for name in names]


def path_of(node: ast.Attribute) -> tuple[ast.Name, list[str]] | None:
    """The name and the attributes of a dotted path."""
    names: list[str] = []
    at: ast.expr = node
    while isinstance(at, ast.Attribute):
        names.insert(0, at.attr)
        at = at.value
    return (at, names) if isinstance(at, ast.Name) else None


# ------------------------------------------------------------------ what is changed

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _changes(tree: ast.Module, module: str) -> Iterator[tuple[str, str]]:
    """The names at the top of modules that functions of this module change."""
    for function in ast.walk(tree):
        if not isinstance(function, (*_FUNCTIONS, ast.Lambda)):
            continue
        inner = [*ast.walk(function)]
        outer = {
            each
            for node in inner
            if isinstance(node, ast.Global)
            for each in node.names
        }
        own = _own_names(function, inner) - outer
        yield from ((module, each) for each in outer)
        for root, attribute in _changed_roots(inner):
            if root not in own:
                yield module, root
                if attribute:  # of another module: `state.tasks.append(...)`
                    yield "", attribute


def _own_names(function: ast.AST, inner: list[ast.AST]) -> set[str]:
    named = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    return named | {
        node.id
        for node in inner
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _changed_roots(nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    """The names whose content is changed, each with its first attribute."""
    for node in nodes:
        changed: ast.expr | None = None
        if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(
            node.ctx, ast.Load
        ):
            changed = node.value
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in MUTATORS
        ):
            changed = node.func.value
        attribute = ""
        while isinstance(changed, (ast.Attribute, ast.Subscript, ast.Call)):
            if isinstance(changed, ast.Attribute):
                attribute = changed.attr
            changed = changed.func if isinstance(changed, ast.Call) else changed.value
        if isinstance(changed, ast.Name):
            yield changed.id, attribute


_MAKING = ("__init__", "__post_init__", "__new__", "__set_name__")


# Objects that handlers write to, and that are not the operator's own.
_WRITTEN = ("patch", "memo", "settings")


def changed_fields(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The attributes that these functions change, but for those that make objects."""
    found: set[str] = set()
    for method in nodes:
        if not isinstance(method, _FUNCTIONS) or method.name in _MAKING:
            continue
        inner = [*ast.walk(method)]
        roots = [
            (path[0].id, path[1][0])
            for each in inner
            if isinstance(each, ast.Attribute)
            and not isinstance(each.ctx, ast.Load)
            and (path := path_of(each)) is not None
        ]
        for root, attribute in (*roots, *_changed_roots(inner)):
            if attribute and root not in _WRITTEN:
                found.add(attribute)
    return frozenset(found)
