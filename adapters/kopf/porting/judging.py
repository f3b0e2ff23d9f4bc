"""The verdict about each handler of a project, and the names that fnop lacks."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from fnop.adapters.kopf.porting.calling import REST
from fnop.adapters.kopf.porting.findings import (
    Finding,
    Load,
    Place,
    Ported,
    Porting,
    Verdict,
)
from fnop.adapters.kopf.porting.names import DECORATORS, OTHER_MEANING
from fnop.adapters.kopf.porting.reading import Reader
from fnop.adapters.kopf.porting.rules import CREATES, Rule
from fnop.adapters.kopf.porting.signatures import (
    declaration_advice,
    inner_function,
    role_of,
    signature_advice,
    wanted,
)
from fnop.adapters.kopf.porting.sources import Project, choices
from fnop.adapters.kopf.porting.used_names import Use, name_uses, used_in
from fnop.adapters.kopf.porting.values import (
    Blocked,
    Class,
    Data,
    Function,
    Given,
    Instance,
    Known,
    Partial,
    Shape,
    Unknown,
    Value,
    Values,
    contents,
)
from fnop.adapters.kopf.porting.walking import REMEMBERS, Declared, Judged, short
from fnop.core.handlers.declare.roles import (
    ACTIVITIES,
    ADMISSION,
    BACKGROUND,
    CHANGES,
    EVENTS,
    INDICES,
    OUTSIDE,
    ROLES,
    Role,
)

__all__ = ["ported"]

_TARGETS_MOST = 8
_IGNORED = "Kopf ignores this result, and fnop does not: return None"
_LIST = "a list as a result is written fnop.result([...]): this may be one"
_ADMITS = "fnop does not ignore the answer of an admission handler: return None"
_PATCHES = "a validation cannot patch: declare it by @fnop.on.mutate"
_IS_BOOL = "a filter returns True or False: write bool(...), unless it is one of them"
_FILTER_ASKS = "a filter has no such argument: let the handler use it"
_FILTER_ASYNC = "a filter is a plain function: write def"
_FILTER_ACTS = (
    "a filter cannot be impure: let a handler write what it needs into the object"
)
_FILTER_REMEMBERS = "a filter cannot change the memo: let a handler do it"
_INDEX_ACTS = (
    "an index cannot be impure: let a handler write what it needs into the object"
)
_WAITS = "an index and a filter cannot wait: let a handler do it"
_TOP_LEVEL = (
    "an impure handler is a function at the top level of a module: move it there"
)
_NO_SETTINGS = (
    "an impure handler gets no settings: let another startup handler return them"
)
_WITHOUT_SETTINGS = "an impure handler gets no settings: leave out the argument"
_PASS_SETTINGS = (
    "an impure handler gets no settings: let a pure one pass them to "
    "fnop.call(function, ...)"
)
_NO_PARTS = (
    "an impure handler declares no sub-handlers: give those impure=True, and not this"
)
_NO_SOURCE = "the source of this handler was not found"
_TWO = "two handlers have this id: give one of them id="

LABELS = {
    Verdict.PURE: "pure already",
    Verdict.CHANGES: "pure after changes",
    Verdict.IMPURE: "keep impure=True",
}
_STAYS = "impure, and stays as it is"
_STAYS_CHANGED = "impure, and stays so after changes"
_SPLIT = "split it: the settings are pure, the rest has impure=True"
_NO_IMPURE = "impure, but cannot have impure=True"


def ported(projects: Iterable[Project]) -> Porting:
    """The report about these projects: all handlers, in the order of their lines."""
    handlers: list[Ported] = []
    names = []
    found: list[Load] = []
    chosen: list[Load] = []
    for each in projects:
        uses = [*used_in(each)]
        handlers += _Judge(each, uses).handlers()
        names += uses
        found += _unread(each)
        chosen += _chosen(each)
    handlers.sort(key=lambda one: (one.place.file, one.place.line, one.name))
    return Porting(tuple(handlers), name_uses(names), tuple(found), tuple(chosen))


def _unread(project: Project) -> Iterator[Load]:
    """The calls that load modules whose names only a run knows."""
    for each in project.loads:
        if not each.name:
            yield Load(Place(each.module.shown, each.call.lineno), short(each.call))


def _chosen(project: Project) -> Iterator[Load]:
    """The calls that choose decorators of Kopf by names that only a run knows."""
    for module in project.modules.values():
        for call in choices(module):
            yield Load(Place(module.shown, call.lineno), short(call))


class _Judge:
    """Judges the handlers of one project."""

    def __init__(self, project: Project, uses: Sequence[Use]) -> None:
        self.project, self.uses = project, uses
        self.reader = Reader(project)
        self.indices: list[tuple[int, str]] = []

    def handlers(self) -> list[Ported]:
        """Find the handlers, and judge each of them."""
        for name in self.project.begun:
            self.reader.load(name)
        self._call_the_rest()
        self.indices = [
            (position, name)
            for position, each in enumerate(self.reader.declared)
            if role_of(each.decorator) in INDICES
            for name in _names_of(each)
        ]
        done = 0
        found: list[Ported] = []
        while done < len(self.reader.declared):  # sub-handlers are added meanwhile
            fresh = self.reader.declared[done:]
            done = len(self.reader.declared)
            for group in _grouped(fresh):
                found.append(self._judge(group))
        return _merged(found)

    def _call_the_rest(self) -> None:
        """Follow functions that declare handlers, and that no module calls itself."""
        for name, scope in [*self.reader.scopes.items()]:
            self.reader.files.append(self.project.modules[name].shown)
            for values in [*scope.names.values()]:
                for each in values:
                    self._call_if_declaring(each)
            self.reader.files.pop()

    def _call_if_declaring(self, value: Value) -> None:
        if isinstance(value, Class):
            for values in [*value.scope.names.values()]:
                for each in values:
                    if isinstance(each, Function):
                        self._call_if_declaring(_of_object(each, value))
            return
        fn = inner_function(value)
        if fn is None or fn.node in self.reader.reached or not _declares(fn.node):
            return
        self.reader.enter(fn, (), {})

    # ----------------------------------------------------------------- one handler

    def _judge(self, group: Sequence[Declared]) -> Ported:
        first = group[0]
        indices = frozenset(name for _, name in self.indices)
        reader = self.reader
        reader.judged = judged = Judged()
        reader.stack, reader.branches = [], 0
        roles = [role_of(each.decorator) for each in group]
        filters: list[Finding] = []
        reader.files.append(first.file)
        try:
            for target in _distinct(each.target for each in group):
                self._run(target, first, roles, indices)
            for each in group:
                filters += self._filters(each)
        finally:
            reader.files.pop()
            reader.judged = None
            reader.stack = []
        findings = [*judged.findings.values(), *filters]
        findings += self._about_declarations(group)
        findings += _about_results(judged, roles)
        return _verdict(group, roles, findings, judged)

    def _run(
        self,
        target: Value,
        declared: Declared,
        roles: Sequence[Role],
        indices: frozenset[str],
    ) -> None:
        """Follow a handler's function with its arguments."""
        reader = self.reader
        fn = inner_function(target)
        if isinstance(target, Known):
            reader.note_path(declared.call, target.path)
            if not target.path.startswith("kopf."):
                reader.touch(target, declared.call)
            return
        if fn is None:
            reader.note(declared.call, Rule(Verdict.IMPURE, _NO_SOURCE))
            return
        if isinstance(target, Blocked):
            reader.files.append(fn.file)
            reader.note_decorator(target, fn.node)
            reader.files.pop()
        kwargs: dict[str, Values] = {
            name: frozenset((Given(name),)) for name in wanted(target, roles, indices)
        }
        args: tuple[Values, ...] = ()
        at: Value = target
        while isinstance(at, (Partial, Blocked)):
            if isinstance(at, Partial):
                args = (*at.args, *args)
                kwargs |= at.kwargs
            at = at.fn
        spec = fn.node.args
        if spec.kwarg is not None:
            kwargs[REST] = frozenset((Given(REST),))
        own = {each.arg for each in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
        if spec.kwarg is None:
            kwargs = {name: each for name, each in kwargs.items() if name in own}
        reader.enter(fn, args, kwargs)

    # --------------------------------------------------------------------- filters

    def _filters(self, declared: Declared) -> list[Finding]:
        """The findings about the functions in a decorator's options."""
        found: list[Finding] = []
        for name in ("when", "labels", "annotations", "value", "old", "new"):
            values = declared.options.get(name, frozenset())
            for each in values | contents(values):
                fn = inner_function(each)
                if fn is not None:
                    found += self._filter(fn)
        return found

    def _filter(self, fn: Function) -> list[Finding]:
        reader = self.reader
        kept, reader.judged = reader.judged, Judged()
        params = [e.arg for e in (*fn.node.args.args, *fn.node.args.kwonlyargs)]
        kwargs: dict[str, Values] = {
            name: frozenset((Given(name),))
            for name in params
            if name not in fn.defaults
        }
        if fn.node.args.kwarg is not None:
            kwargs[REST] = frozenset((Given(REST),))
        if fn.bound is not None and params:
            kwargs.pop(params[0], None)
        results = reader.enter(fn, (), kwargs)
        reader.files.append(fn.file)
        judged = reader.judged
        if fn.is_async:
            reader.note_change(fn.node, _FILTER_ASYNC)
        for name in {"patch", "logger"} & {*params}:
            reader.note(fn.node, Rule(Verdict.CHANGES, _FILTER_ASKS), name)
        if any(not _is_bool(each) for each in results):
            reader.note(fn.node, Rule(Verdict.CHANGES, _IS_BOOL), fn.name)
        for key, each in [*judged.findings.items()]:
            if each.advice == REMEMBERS:
                place, code = each.place, each.code
                judged.findings[key] = Finding(
                    Verdict.IMPURE, place, code, _FILTER_REMEMBERS, each.via
                )
        for key, each in [*judged.findings.items()]:
            judged.findings[key] = _unwaited(each)
        if any(e.verdict is Verdict.IMPURE for e in judged.findings.values()):
            reader.note(fn.node, Rule(Verdict.IMPURE, _FILTER_ACTS), fn.name)
        reader.files.pop()
        reader.judged = kept
        return [*judged.findings.values()]

    # ---------------------------------------------------------------- declarations

    def _about_declarations(self, group: Sequence[Declared]) -> Iterator[Finding]:
        for each in group:
            place = Place(each.file, each.call.lineno)
            for code, advice in declaration_advice(each):
                yield Finding(Verdict.CHANGES, place, code, advice)
            fn = inner_function(each.target)
            spans = [(each.file, _lines(each.call))]
            if fn is not None:
                spans.append((fn.innermost.file, _lines(fn.innermost.node.args)))
                position = self.reader.declared.index(each)
                above = {name for at, name in self.indices if at < position}
                names = {name for _, name in self.indices}
                yield from signature_advice(each, fn, above, names)
            for use in self.uses:
                is_near = any(
                    use.place.file == file and use.place.line in lines
                    for file, lines in spans
                )
                if is_near and use.sort in ("missing", "private"):
                    yield Finding(Verdict.CHANGES, use.place, use.code, use.advice)
        for each in _doubled(group, self.reader.declared):
            place = Place(each.file, each.call.lineno)
            yield Finding(Verdict.CHANGES, place, short(each.call), _TWO)


def _lines(node: ast.AST) -> range:
    inner = [e for e in ast.walk(node) if hasattr(e, "lineno")]
    if not inner:
        return range(0)
    first = min(getattr(e, "lineno", 1) for e in inner)
    last = max(getattr(e, "end_lineno", 1) or 1 for e in inner)
    return range(first, last + 1)


def _of_object(fn: Function, of: Class) -> Function:
    return Function(
        fn.name,
        fn.node,
        fn.scope,
        fn.file,
        fn.kind,
        fn.owner,
        Instance(of, shared=True),
        fn.shown,
        fn.defaults,
    )


_LAST = frozenset(each.rpartition(".")[2] for each in DECORATORS)


def _declares(node: ast.AST) -> bool:
    """Whether a function may declare handlers: it names a decorator of Kopf."""
    return any(
        (isinstance(each, ast.Attribute) and each.attr in _LAST)
        or (isinstance(each, ast.Name) and each.id in _LAST)
        for each in ast.walk(node)
    )


def _grouped(declared: Iterable[Declared]) -> list[list[Declared]]:
    """The declarations by their function: several decorators are one handler."""
    groups: dict[object, list[Declared]] = {}
    for each in declared:
        fn = inner_function(each.target)
        key: object = each.call if fn is None else fn.innermost.node
        groups.setdefault(key, []).append(each)
    return [*groups.values()]


def _distinct(targets: Iterable[Value]) -> list[Value]:
    found: list[Value] = []
    for each in targets:
        if each not in found:
            found.append(each)
    return found[:_TARGETS_MOST]


def _merged(found: Iterable[Ported]) -> list[Ported]:
    """One report for each handler, also if several functions declare it."""
    by_place: dict[tuple[Place, str], Ported] = {}
    for each in found:
        key = each.place, each.name
        other = by_place.get(key)
        if other is None or other.verdict < each.verdict:
            by_place[key] = each
    return [*by_place.values()]


def _names_of(declared: Declared) -> Iterator[str]:
    """The name of an index: its `id=`, or the function's name."""
    for keyword in declared.call.keywords:
        if keyword.arg == "id" and isinstance(keyword.value, ast.Constant):
            yield str(keyword.value.value)
            return
    fn = inner_function(declared.target)
    if fn is not None:
        yield fn.innermost.name


def _doubled(
    group: Sequence[Declared], others: Sequence[Declared]
) -> Iterator[Declared]:
    """The declarations whose id another function has for the same kind."""
    for one in group:
        key, own = _key(one), inner_function(one.target)
        for each in others:
            fn = inner_function(each.target)
            if fn is None or own is None or key is None or _key(each) != key:
                continue
            if fn.innermost.node is not own.innermost.node:
                yield one
                break


def _key(declared: Declared) -> tuple[str, ...] | None:
    """The id, the field and the kind, as fnop compares them; None if unknown."""
    call, fn = declared.call, inner_function(declared.target)
    given = {each.arg or "**": each.value for each in call.keywords}
    if fn is None or "**" in given or declared.within is not None:
        return None
    own = fn.innermost
    name = f"{own.owner.name}.{own.name}" if own.owner else own.name
    if "id" in given:
        text = given["id"]
        if not isinstance(text, ast.Constant):
            return None
        name = str(text.value)
    elif not own.scope.is_module or name == "<lambda>":
        return None
    rest = sorted(name for name in given if name in _DISTINGUISHING)
    shown = [f"{each}={ast.unparse(given[each])}" for each in rest]
    return (name, *map(ast.unparse, call.args), *shown)


_DISTINGUISHING = (
    *("category", "field", "group", "kind", "plural", "registry"),
    *("shortcut", "singular", "version"),
)


# ------------------------------------------------------------------------- results


def _is_bool(value: Value) -> bool:
    match value:
        case Data(shape=Shape.BOOL):
            return True
        case Known(path="builtins.bool"):
            return True
        case _:
            return False


def _may_be_list(value: Value) -> bool:
    match value:
        case Data(shape=shape):
            return shape in (Shape.LIST, Shape.ANY)
        case Given(name=name, part=part):
            return part or name in ("old", "new", "diff", "param", "value")
        case Unknown():
            return True
        case Known():
            return not value.path.startswith("fnop.")
        case _:
            return False


def _about_results(judged: Judged, roles: Sequence[Role]) -> Iterator[Finding]:
    """The findings about what a handler returns."""
    stored = any(each in CHANGES | BACKGROUND | ACTIVITIES for each in roles)
    ignored = any(each in EVENTS for each in roles)
    admits = any(each in ADMISSION for each in roles)
    for place, code, values in judged.results:
        is_some = any(e != Data(Shape.NONE) for e in values)
        if stored and any(map(_may_be_list, values)):
            yield Finding(Verdict.CHANGES, place, code, _LIST)
        if ignored and is_some:
            yield Finding(Verdict.CHANGES, place, code, _IGNORED)
        if admits and is_some:
            yield Finding(Verdict.CHANGES, place, code, _ADMITS)


# ------------------------------------------------------------------------- verdicts


def _verdict(
    group: Sequence[Declared],
    roles: Sequence[Role],
    findings: Sequence[Finding],
    judged: Judged,
) -> Ported:
    first = group[0]
    fn = inner_function(first.target)
    validates = any(each in ADMISSION and not ROLES[each].mutates for each in roles)
    if validates and "patch" in judged.used and fn is not None:
        place = Place(fn.innermost.file, fn.innermost.node.lineno)
        findings = [*findings, Finding(Verdict.CHANGES, place, "patch", _PATCHES)]
    findings = _without_clients(findings)
    if any(each in INDICES for each in roles):
        findings = [_unwaited(each) for each in findings]
    label = ""
    if all(each in OUTSIDE for each in roles):
        findings, verdict = _without_purity(findings), Verdict.IMPURE
        label = _STAYS_CHANGED if findings else _STAYS
    else:
        verdict = max((e.verdict for e in findings), default=Verdict.PURE)
    if verdict is Verdict.IMPURE and not label:
        findings = [each for each in findings if not each.only_pure]
        findings += _about_impure(group, roles, judged)
        acts = {each.advice for each in findings}
        if {_FILTER_ACTS, _INDEX_ACTS} & acts:
            label = _NO_IMPURE
        elif _NO_SETTINGS in acts:
            label = _SPLIT
    place, name = Place(first.file, first.call.lineno), short(first.call)
    if fn is not None:
        own = fn.innermost
        place = Place(own.file, own.node.lineno)
        name = f"{own.owner.name}.{own.name}" if own.owner else own.name
    elif isinstance(first.target, Known):
        name = first.target.path
    in_order = sorted(group, key=lambda each: each.call.lineno)
    decorators = [*dict.fromkeys(each.decorator for each in in_order)]
    ordered = sorted(
        dict.fromkeys(findings), key=lambda e: (e.place.file, e.place.line, e.advice)
    )
    return Ported(
        name, tuple(decorators), place, verdict, label or LABELS[verdict], (*ordered,)
    )


def _without_clients(findings: Sequence[Finding]) -> list[Finding]:
    """Lower what a client creates to a change, if the handler adopts the object."""
    adopts = any(each.advice == OTHER_MEANING["adopt"] for each in findings)
    if not adopts:
        return [*findings]
    return [
        Finding(Verdict.CHANGES, e.place, e.code, e.advice, e.via, e.only_pure)
        if e.advice == CREATES.advice
        else e
        for e in findings
    ]


def _unwaited(finding: Finding) -> Finding:
    """The finding about an index or a filter, which are plain functions."""
    if finding.verdict is Verdict.CHANGES and "await fnop." in finding.advice:
        return Finding(Verdict.IMPURE, finding.place, finding.code, _WAITS, finding.via)
    return finding


def _without_purity(findings: Sequence[Finding]) -> list[Finding]:
    """The findings about a handler that fnop runs outside of its steps anyway."""
    return [e for e in findings if e.verdict is Verdict.CHANGES and not e.only_pure]


def _about_impure(
    group: Sequence[Declared], roles: Sequence[Role], judged: Judged
) -> Iterator[Finding]:
    """The further changes of an impure handler, such as its place in a module."""
    first = group[0]
    call = Place(first.file, first.call.lineno)
    if any(each in INDICES for each in roles):
        yield Finding(Verdict.IMPURE, call, short(first.call), _INDEX_ACTS)
    fn = inner_function(first.target)
    if fn is None:
        return
    own = fn.innermost
    place = Place(own.file, own.node.lineno)
    is_own = isinstance(first.target, Function) and own is fn
    is_plain = (is_own or fn.shown is not None) and own.scope.is_module
    if isinstance(first.target, Blocked):
        pass  # its decorator is noted, and may return such a function
    elif not is_plain or own.owner or own.name == "<lambda>":
        yield Finding(Verdict.CHANGES, place, own.name, _TOP_LEVEL)
    if "settings" in {e.arg for e in (*own.node.args.args, *own.node.args.kwonlyargs)}:
        if "settings" not in judged.used:
            advice = _WITHOUT_SETTINGS
        else:
            advice = _NO_SETTINGS if Role.STARTUP in roles else _PASS_SETTINGS
        yield Finding(Verdict.CHANGES, place, "settings", advice)
    if judged.declares:
        yield Finding(Verdict.CHANGES, place, own.name, _NO_PARTS)
