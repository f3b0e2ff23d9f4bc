"""The source of an operator: its modules, and those next to them that they import."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import PurePath

from msgspec import Struct

__all__ = [
    "Loading",
    "Parsed",
    "Project",
    "SourceProblem",
    "choices",
    "parsed",
    "projects_of",
]


class SourceProblem(ValueError):
    """A file that cannot be parsed; the text has the file and the line."""


class Parsed(Struct, frozen=True):
    """A parsed file.

    `name` is the module's dotted name below the folder that it is imported from.
    `shown` is the file's name in reports. The file is `given` by the user, or it is
    imported by another file.
    """

    name: str
    shown: str
    tree: ast.Module
    is_package: bool = False
    given: bool = True

    @property
    def package(self) -> str:
        """The package that relative imports begin from."""
        return self.name if self.is_package else self.name.rpartition(".")[0]

    def absolute(self, module: str | None, level: int) -> str:
        """The dotted name of an imported module; `level` counts the leading dots.

        >>> here = Parsed("shop.handlers.books", "books.py", ast.parse(""))
        >>> here.absolute("prices", 2)
        'shop.prices'
        """
        return _absolute(self.package, module, level)


def _absolute(package: str, module: str | None, level: int) -> str:
    if not level:
        return module or ""
    parts = package.split(".") if package else []
    kept = parts[: len(parts) - level + 1]
    return ".".join([*kept, module] if module else kept)


class Loading(Struct, frozen=True):
    """A call in a module that loads another one at run time.

    `name` is the name of the loaded module; "" if the call does not have it as a text.
    """

    module: Parsed
    call: ast.Call
    name: str = ""


class Project:
    """The modules of an operator by their names."""

    def __init__(self, modules: Iterable[Parsed]) -> None:
        self.modules: Mapping[str, Parsed] = {each.name: each for each in modules}

    @cached_property
    def loads(self) -> tuple[Loading, ...]:
        """The calls that load modules at run time."""
        return tuple(found for each in self.modules.values() for found in loads(each))

    @cached_property
    def begun(self) -> tuple[str, ...]:
        """The names of the given modules, and of those that calls load by their names.

        All others are imported by these.
        """
        given = [each.name for each in self.modules.values() if each.given]
        loaded = dict.fromkeys(each.name for each in self.loads)
        return (*given, *filter(self.has, loaded))

    def has(self, name: str) -> bool:
        """Whether a module of this name is a part of the operator.

        Modules of Python come first, also before a file called `operator.py`.
        """
        return name in self.modules and name not in sys.stdlib_module_names

    def has_below(self, name: str) -> bool:
        """Whether a folder of this name has modules of the operator."""
        return any(each.startswith(f"{name}.") for each in self.modules)


def parsed(
    text: bytes, name: str, shown: str, *, is_package: bool = False, given: bool = True
) -> Parsed:
    """Parse a file; raise `SourceProblem` if it is no Python."""
    try:
        tree = ast.parse(text)
    except SyntaxError as problem:
        raise SourceProblem(
            f"{shown}:{problem.lineno or 1}: this is not Python: {problem.msg}"
        ) from None
    except (ValueError, RecursionError, MemoryError) as problem:
        raise SourceProblem(f"{shown}:1: this cannot be parsed: {problem}") from None
    return Parsed(name, shown, tree, is_package, given)


def wanted(module: Parsed) -> Iterator[str]:
    """The dotted names of the modules that a module may import."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = module.absolute(node.module, node.level)
            yield base
            prefix = f"{base}." if base else ""
            yield from (f"{prefix}{each.name}" for each in node.names)
    yield from (each.name for each in loads(module) if each.name)


# Functions that import a module when they are called, and some that run a file.
_IMPORTS = ("importlib.import_module", "__import__")
_RUNS = (
    *("runpy.run_module", "runpy.run_path"),
    *("importlib.util.spec_from_file_location", "importlib.machinery.SourceFileLoader"),
)


def loads(module: Parsed) -> Iterator[Loading]:
    """The calls that load a module at run time."""
    names = dict(_imported_names(module.tree))
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            head, *rest = ast.unparse(node.func).split(".")
            path = ".".join((names.get(head, head), *rest))
            if path in _IMPORTS:
                yield Loading(module, node, _loaded_name(node, module))
            elif path in _RUNS or (rest and rest[-1] == "load_module"):
                yield Loading(module, node)


_OF_KOPF = ("kopf", "kopf.on", "fnop.kopf", "fnop.kopf.on")


def choices(module: Parsed) -> Iterator[ast.Call]:
    """The calls that choose a decorator of Kopf by a name that only a run knows."""
    names = dict(_imported_names(module.tree))
    for node in ast.walk(module.tree):
        match node:
            case ast.Call(func=ast.Name(id="getattr"), args=[of, name, *_]):
                head, *rest = ast.unparse(of).split(".")
                path = ".".join((names.get(head, head), *rest))
                if path in _OF_KOPF and not _text_of(name):
                    yield node
            case _:
                pass


def _imported_names(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The names of imports, each with what it means."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((e.asname, e.name) for e in node.names if e.asname)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for each in node.names:
                yield each.asname or each.name, f"{node.module}.{each.name}"


def _loaded_name(node: ast.Call, module: Parsed) -> str:
    """The dotted name of the module that a call imports; "" if it is not written."""
    given = {str(each.arg): each.value for each in node.keywords}
    given |= dict(zip(("name", "package"), node.args, strict=False))
    name, package = _text_of(given.get("name")), given.get("package")
    last = name.lstrip(".")
    match package:
        case ast.Name(id="__package__"):
            base = module.package
        case ast.Name(id="__name__"):
            base = module.name
        case _:
            base = _text_of(package)
    is_known = bool(last) and (base or not name.startswith("."))
    return _absolute(base, last, len(name) - len(last)) if is_known else ""


def _text_of(node: ast.expr | None) -> str:
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return str(node.value) if isinstance(node, ast.Constant) and is_text else ""


Read = Callable[[PurePath], bytes | None]


def projects_of(
    paths: Iterable[PurePath], read: Read, here: PurePath
) -> tuple[Project, ...]:
    """The projects of these files: one for each folder that modules are imported from.

    A project has the files, with the files that they import, and so on. Paths are
    absolute. `read` returns the content of a file, or None if there is no such file.
    Reports name the files below `here` relative to it. Raises `SourceProblem` for a
    file that cannot be parsed.
    """
    by_root: dict[PurePath, dict[PurePath, str]] = {}
    for path in paths:
        name, root = _module_of(path, read)
        by_root.setdefault(root, {})[path] = name
    return tuple(_project(root, given, read, here) for root, given in by_root.items())


def _project(
    root: PurePath, given: Mapping[PurePath, str], read: Read, here: PurePath
) -> Project:
    found: dict[str, Parsed] = {}
    seen: set[PurePath] = set()
    waiting = [(path, name) for path, name in given.items()]
    while waiting:
        path, name = waiting.pop(0)
        text = None if path in seen or name in found else read(path)
        seen.add(path)
        if text is None:
            continue
        shown = path.relative_to(here) if path.is_relative_to(here) else path
        is_package = path.name == "__init__.py"
        module = parsed(
            text, name, shown.as_posix(), is_package=is_package, given=path in given
        )
        found[name] = module
        for each in wanted(module):
            waiting += _files(each, root)
    return Project(found.values())


def _module_of(path: PurePath, read: Read) -> tuple[str, PurePath]:
    """The name of a file's module, and the folder that it is imported from."""
    parts = [] if path.name == "__init__.py" else [path.stem]
    folder = path.parent
    while folder.name and read(folder / "__init__.py") is not None:
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts) or path.parent.name, folder


def _files(name: str, root: PurePath) -> Iterator[tuple[PurePath, str]]:
    """The files that an import may run: each package above the module, and itself."""
    parts = name.split(".")
    if not all(parts) or parts[0] in sys.stdlib_module_names:
        return
    for count in range(1, len(parts) + 1):
        dotted, place = ".".join(parts[:count]), root.joinpath(*parts[:count])
        yield place / "__init__.py", dotted
        yield place.with_name(f"{place.name}.py"), dotted
