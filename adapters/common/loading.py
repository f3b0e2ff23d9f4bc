"""Operator files as modules, and the functions in them by their names.

A file is loaded as `fnop_script_<its stem>`. The name is the same in every process, and
no other module has it. So files may be called `operator.py` or `yaml.py`.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import (
    find_spec,
    module_from_spec,
    spec_from_file_location,
    spec_from_loader,
)
from linecache import getline
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any

from fnop.adapters.common.yaml_values import teach_yaml
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.registry import default_registry
from fnop.core.values.errors import text_of
from fnop.effects.builders import function_name

__all__ = [
    "OF_KOPF",
    "SCRIPT",
    "Alias",
    "LoadProblem",
    "authors_place",
    "functions_of",
    "handlers_of_file",
    "handlers_of_function",
    "is_authors_code",
    "is_authors_file",
    "is_authors_module",
    "load",
    "module_of_file",
    "near",
    "resolve",
    "shown_path",
]

# pytest shows the author's line, and skips the lines of this module.
__tracebackhide__ = True

SCRIPT = "fnop_script_"
OF_KOPF = (
    "it is written with Kopf: fnop run, check, plan and replay take it with --kopf "
    "(docs/how-to/run-a-kopf-operator.md)"
)
_MANIFESTS = (".yaml", ".yml", ".json")
_INSTALLED = ("site-packages", "dist-packages")
_LIBRARY = str(Path(os.__file__).parent) + os.sep
# Folders that were made importable because a file was loaded from there.
_FOLDERS: set[Path] = set()
# The packages of modules that were loaded by their names, in any place.
_PACKAGES: set[str] = set()


class LoadProblem(Exception):
    """A file or a function cannot be loaded; the text is for its author."""


def load(paths: Sequence[str], modules: Sequence[str] = ()) -> list[ModuleType]:
    """Import files, then modules by name, in this order.

    Each is run only once, even if one of them imports another. They can import modules
    from the folder of each file and, with named modules, from the working directory.
    Raises `LoadProblem`.
    """
    files = [_checked(path) for path in paths]
    names = _names(files)
    _FOUND.know(names, files)
    return _loaded_from(files, names, modules)


def _loaded_from(
    files: Sequence[Path], names: dict[Path, str], modules: Sequence[str] = ()
) -> list[ModuleType]:
    for file in files:
        _import_installed(file.stem, file)
    for file in files:
        _make_importable(file.parent)
    loaded = [_load_file(file, names[file]) for file in files]
    if modules:
        with suppress(FileNotFoundError):  # it is gone
            _make_importable(Path.cwd())
    loaded += [_load_module(name) for name in modules]
    teach_yaml()
    return loaded


# The handlers of the files that were loaded separately.
_APART: dict[str, tuple[Handler, ...]] = {}


def module_of_file(path: str | Path) -> ModuleType:
    """Load the module of an operator's file, and keep its handlers separate.

    `path` is the file; it may have any name. It is run once in a process, even if it is
    loaded several times. Raises `LoadProblem` if it cannot be loaded.

        operator = load("operator.py")
        assert plan_of(operator.created, {"spec": {"size": 1}}).succeeded
    """
    return _load_apart(str(Path(path).resolve()))


def near(test: str | Path, file: str | Path) -> str:
    """Find a `file` next to a `test`, or in a folder above it.

    The last place is the working directory. Raises `LoadProblem` if it is not found.

        sim = Simulation(near(__file__, "operator.py"))
    """
    above = Path(test).resolve().parents
    for folder in (*above, Path.cwd()):
        if (folder / file).exists():
            return str(folder / file)
    raise LoadProblem(
        f"there is no {file} beside {shown_path(Path(test).resolve())}, nor in a "
        "folder above it: write where it is, or put the test below the folder that "
        "has it"
    )


def handlers_of_file(path: str | Path) -> tuple[Handler, ...]:
    """The handlers that an operator's file declares."""
    module = module_of_file(path)
    return _APART[module.__name__] or _declared_by(module)


def handlers_of_function(function: Callable[..., Any]) -> list[Handler]:
    """The handlers that a function was declared as, in a separately loaded file."""
    found = _APART.get(getattr(function, "__module__", ""), ())
    return [each for each in found if each.declared is function]


@cache
def _load_apart(path: str) -> ModuleType:
    with default_registry.set_aside():
        file = _checked(path)
        (module,) = _loaded_from([file], _names([file]))
        _APART[module.__name__] = default_registry.handlers
    return module


def _declared_by(module: ModuleType) -> tuple[Handler, ...]:
    """The handlers of a file that was loaded before, in the usual way."""
    name = module.__name__
    return tuple(e for e in default_registry.handlers if e.declared.__module__ == name)


def resolve(name: str) -> Callable[..., Any]:
    """The function that `module:qualified.name` names.  Raises `LoadProblem`."""
    module_name, _, qualified = name.partition(":")
    try:
        found: Any = sys.modules.get(module_name) or importlib.import_module(
            module_name
        )
        for part in qualified.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as problem:
        advice = "load its file first" if module_name.startswith(SCRIPT) else problem
        raise LoadProblem(f"{name} cannot be found: {advice}") from problem
    except AttributeError as problem:
        raise LoadProblem(f"{name} cannot be found: {problem}") from problem
    if not callable(found):
        raise LoadProblem(f"{name} is not a function but {found!r}")
    return found  # type: ignore[no-any-return]  # callable() says no more


def functions_of(handlers: Iterable[Handler]) -> Callable[[str], Callable[..., Any]]:
    """The lookup of functions for the calls of a program, by their names.

    It knows the handlers whose names cannot be imported, and is `resolve` for all other
    names. The lookup raises `LoadProblem`.
    """
    own = {e.function: e.fn for e in handlers if e.function and not _is_importable(e)}

    def find(name: str) -> Callable[..., Any]:
        return own[name] if name in own else resolve(name)

    return find


def _is_importable(handler: Handler) -> bool:
    """Whether the name of an impure handler says where its function is."""
    with suppress(ValueError):
        return function_name(handler.declared) == handler.function
    return False


# -------------------------------------------------------------------- names


def _checked(path: str) -> Path:
    file = Path(path)
    if file.is_dir():
        raise LoadProblem(
            f"{path} is a directory; name a file in it, or a package with -m"
        )
    if not file.is_file():
        raise LoadProblem(f"there is no file {path}")
    if file.suffix in _MANIFESTS:
        raise LoadProblem(
            f"{path} is, by its name, a manifest and not a Python file; fnop run takes "
            "manifests after --simulate"
        )
    return file.resolve()


def _names(files: Iterable[Path]) -> dict[Path, str]:
    """A module name for each file: its stem, with parent folders if that is taken."""
    names = _loaded_scripts()
    left, depth = {*files} - names.keys(), 1
    while left:
        if depth > max(len(file.parts) for file in left):
            both = " and ".join(sorted(map(shown_path, left)))
            raise LoadProblem(f"{both} cannot be told apart by name; rename one")
        found = {file: _name(file, depth) for file in left}
        taken = [*found.values(), *names.values()]
        clear = {file: name for file, name in found.items() if taken.count(name) == 1}
        names |= clear
        left -= clear.keys()
        depth += 1
    return names


def _loaded_scripts() -> dict[Path, str]:
    return {
        Path(str(module.__file__)): name
        for name, module in sys.modules.items()
        if name.startswith(SCRIPT)
    }


def _name(file: Path, depth: int) -> str:
    """
    >>> _name(Path("/home/me/my-operator.py"), 2)
    'fnop_script_me_my_operator'
    """
    parts = file.with_suffix("").parts[1:][-depth:]
    return SCRIPT + re.sub(r"\W", "_", "_".join(parts))


# ------------------------------------------------------------------ imports


def _load_file(file: Path, name: str) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    loader = SourceFileLoader(name, str(file))
    spec = spec_from_file_location(name, file, loader=loader)
    assert spec is not None
    # Before it is run: dataclasses and the like look their module up.
    module = sys.modules[name] = module_from_spec(spec)
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as problem:
        del sys.modules[name]
        raise LoadProblem(_sentence(problem, shown_path(file))) from problem
    return module


class _Found(MetaPathFinder):
    """Find the operator's files, as they are loaded, when they import each other.

    Otherwise a file would be run twice, under two names, and declare its handlers
    twice.
    """

    def __init__(self) -> None:
        # The files given together, and the names of their modules.
        self._names: dict[Path, str] = {}

    def know(self, names: dict[Path, str], files: Iterable[Path]) -> None:
        """Find these files from now on."""
        self._names |= {file: names[file] for file in files}
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """The module of a given file, if this name means one."""
        stem = fullname.rpartition(".")[2]
        if not any(file.stem == stem for file in self._names):
            return None
        found = PathFinder.find_spec(fullname, path, target)
        file = Path(found.origin).resolve() if found and found.origin else Path()
        name = self._names.get(file)
        if name is None:
            return None
        return spec_from_loader(fullname, Alias(partial(_load_file, file, name)))


class Alias(Loader):
    """Returns the module that `find` returns or loads, under a second name."""

    def __init__(self, find: Callable[[], ModuleType]) -> None:
        self._find = find
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The one module; the import system then sets another spec."""
        module = self._find()
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Run nothing: the module has been run."""
        module.__spec__ = self._spec


_FOUND = _Found()


def _load_module(name: str) -> ModuleType:
    _PACKAGES.add(name.partition(".")[0])
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as problem:
        raise LoadProblem(_sentence(problem, name)) from problem


def _import_installed(name: str, file: Path) -> None:
    """Import the installed module that has the name of the file, if one exists.

    Then the name is taken, and the file cannot shadow it.
    """
    if not name.isidentifier() or name in sys.stdlib_module_names:
        return  # the standard library comes first on the path anyway
    # A module that cannot be imported is not missed.
    with suppress(Exception):
        spec = find_spec(name)
        if spec is not None and not _is_script(spec.origin or "", file):
            importlib.import_module(name)


def _is_script(origin: str, file: Path) -> bool:
    """Whether a module is the file itself, or next to one loaded before it."""
    return origin == str(file) or Path(origin).parent in _FOLDERS


def _make_importable(folder: Path) -> None:
    """Let modules in the folder be imported, after the standard library's."""
    if str(folder) in sys.path:
        return
    _FOLDERS.add(folder)
    places = [Path(entry).name for entry in sys.path]
    installed = (places.index(each) for each in _INSTALLED if each in places)
    sys.path.insert(min(installed, default=len(places)), str(folder))
    importlib.invalidate_caches()


# ------------------------------------------------------------------ problems


def _sentence(problem: BaseException, what: str) -> str:
    """The reason why importing failed, in terms of the author's own lines."""
    if isinstance(problem, SyntaxError):
        where = _place(problem.filename or what, problem.lineno)
        text = (problem.text or "").strip()
        return f"{where}: {problem.msg}" + (f": {text}" if text else "")
    file, line = _authors_line(problem)
    where = _place(file, line) if file else what
    if isinstance(problem, ModuleNotFoundError):
        came = f" (imported at {where})" if file else ""
        return f"{problem}{came}; {_advice(problem.name or '')}"
    if isinstance(problem, SystemExit):
        return f"{where}: ends the process: {_source(file, line)}"
    # The sentences of fnop's own errors need no class name in front.
    ours = type(problem).__module__.startswith("fnop.")
    kind = "" if ours else f"{type(problem).__name__}: "
    source = _source(file, line)
    return f"{where}: {kind}{text_of(problem)}" + (f"\n    {source}" if source else "")


def _advice(module: str) -> str:
    """Advice on a module that cannot be found."""
    package, _, inside = module.partition(".")
    if package == "fnop":
        if hasattr(sys.modules[package], inside):
            return f"{module} is not a module: write import fnop, and {module}.NAME"
        return "fnop has no such part; write import fnop"
    if package == "kopf":
        return OF_KOPF
    return "install it or put it next to the file"


def authors_place(problem: BaseException) -> str:
    """The place in the author's own code that raised: `operator.py:4`, or ""."""
    file, line = _authors_line(problem)
    return _place(file, line) if file else ""


def _authors_line(problem: BaseException) -> tuple[str, int | None]:
    """The file and line of the innermost frame that is the author's."""
    found: tuple[str, int | None] = "", None
    for frame, line in walk_tb(problem.__traceback__):
        file = frame.f_code.co_filename
        if is_authors_code(file, str(frame.f_globals.get("__name__"))):
            found = file, line
    return found


def is_authors_code(file: str, module: str) -> bool:
    """Whether code is the author's: not fnop's, nor Python's or a library's."""
    is_ours = module == "fnop" or module.startswith("fnop.")
    return not is_ours and is_authors_file(file, module)


def is_authors_module(module: ModuleType) -> bool:
    """Whether a module belongs to the author's project.

    It has a file, or is a folder.
    """
    places = [getattr(module, "__file__", None), *(getattr(module, "__path__", ()))]
    files = [each for each in places if each]
    return bool(files) and is_authors_code(files[0], module.__name__)


def is_authors_file(file: str, module: str) -> bool:
    """Whether code is the author's: neither Python's nor an installed library's.

    The code of an installed operator counts as its author's.
    """
    if module.partition(".")[0] in _PACKAGES:
        return True
    if file.startswith("<") or any(_holds(each, file) for each in _INSTALLED):
        return False
    return not file.startswith(_LIBRARY)


def _holds(folder: str, file: str) -> bool:
    return f"{os.sep}{folder}{os.sep}" in file


def _source(file: str, line: int | None) -> str:
    return getline(file, line).strip() if file and line else ""


def _place(file: str, line: int | None) -> str:
    return shown_path(Path(file)) + (f":{line}" if line else "")


def shown_path(file: Path) -> str:
    """The path for messages: relative if it is below the working directory."""
    # The directory may be gone, or the file be elsewhere.
    with suppress(OSError, ValueError):
        return str(file.relative_to(Path.cwd()))
    return str(file)
