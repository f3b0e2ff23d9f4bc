"""The programs of Kopf operators: how they start, and the signals that they handle.

A program has `if __name__ == "__main__":`, and calls `kopf.run` or the like. A check
runs this block, as Python does, and so knows the memo, the settings and the registry.
"""

from __future__ import annotations

import ast
import asyncio
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from msgspec import Struct

from fnop.adapters.common.loading import shown_path
from fnop.adapters.kopf.commands.finder import below_kopf
from fnop.adapters.testing.cases import CheckProblem

__all__ = ["Signals", "Start", "signals_noted", "start_of"]

# The functions of Kopf that start an operator.
_STARTERS = frozenset(
    ("kopf.run", "kopf.operator", "kopf.spawn_tasks", "kopf.cli.main", "kopf.cli.run")
)
# The arguments by which handlers differ; "**" may have them, too.
_TELLING = ("memo", "settings", "registry", "lifecycle", None)


class Start(Struct, frozen=True):
    """The block of a module that starts an operator, and its place: `operator.py:9`."""

    module: str
    code: CodeType
    place: str

    def run(self, modules: Mapping[str, ModuleType]) -> None:
        """Run the block in its module."""
        exec(self.code, vars(modules[self.module]))


class _Call(Struct, frozen=True):
    """One call of Kopf that starts an operator."""

    place: str
    name: str
    given: tuple[str | None, ...]


def start_of(given: Iterable[ModuleType], all: Iterable[ModuleType]) -> Start | None:
    """The block that starts the operator; None if it has no program of its own.

    `given` are the modules that a check is called with, `all` are those of the project.
    Raises `CheckProblem` if a function starts it with arguments that matter, and no
    given module calls this function.
    """
    calls = [call for module in all for call in _calls_in(module)]
    if not calls:
        return None
    for module in given:
        block = _main_block(module)
        if block:
            place = f"{_shown(module)}:{block[0].lineno}"
            body = ast.Module(body=block, type_ignores=[])
            code = compile(body, str(module.__file__), "exec")
            return Start(module.__name__, code, place)
    for call in calls:
        names = [name for name in _TELLING if name in call.given]
        if names:
            what = f"{names[0]}=" if names[0] else "its arguments"
            raise CheckProblem(
                f"{call.place}: {call.name} gets {what} here, which a check does not "
                "know, because no given file runs this line: call the check with a "
                'file whose block `if __name__ == "__main__":` starts the operator'
            )
    return None


def _tree_of(module: ModuleType) -> ast.Module:
    file = getattr(module, "__file__", None)
    if not file or not file.endswith(".py"):
        return ast.Module(body=[], type_ignores=[])
    return ast.parse(Path(file).read_bytes(), file)


def _shown(module: ModuleType) -> str:
    return shown_path(Path(str(module.__file__)))


def _main_block(module: ModuleType) -> list[ast.stmt]:
    """The statements that Python runs only in the main module."""
    return [
        statement
        for node in _tree_of(module).body
        if isinstance(node, ast.If) and _asks_for_main(node.test)
        for statement in node.body
    ]


def _asks_for_main(test: ast.expr) -> bool:
    return ast.unparse(test) in (
        "__name__ == '__main__'",
        "'__main__' == __name__",
    )


def _calls_in(module: ModuleType) -> Iterator[_Call]:
    tree = _tree_of(module)
    names = dict(_names_of_kopf(tree))
    for node in ast.walk(tree) if names else ():
        if isinstance(node, ast.Call):
            head, *rest = ast.unparse(node.func).split(".")
            name = ".".join((names.get(head, ""), *rest))
            if name in _STARTERS:
                given = tuple(each.arg for each in node.keywords)
                yield _Call(f"{_shown(module)}:{node.lineno}", name, given)


def _names_of_kopf(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The names in a module that mean Kopf, or something in it."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for each in names:
                    path = below_kopf(each.name, each.asname)
                    if path is not None:
                        meant = f"kopf.{path}".strip(".")
                        yield each.asname or "kopf", meant if each.asname else "kopf"
            case ast.ImportFrom(module=str(base), names=names, level=0):
                path = below_kopf(base, None)
                for each in names:
                    if base == "fnop" and each.name == "kopf":
                        yield each.asname or "kopf", "kopf"
                    elif path is not None:
                        meant = ".".join(filter(None, ("kopf", path, each.name)))
                        yield each.asname or each.name, meant
            case _:
                pass


class Signals:
    """The handlers of signals of one process, which runs in a thread.

    Python lets only the main thread handle signals.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Callable[[], object]] = {}

    def end(self) -> None:
        """Call the handler of SIGTERM, or else that of SIGINT."""
        for number in (signal.SIGTERM, signal.SIGINT):
            if number in self._handlers:
                with suppress(Exception, SystemExit, KeyboardInterrupt):
                    self._handlers[number]()
                return

    def _note(self, number: int, handler: Any) -> None:
        """As `signal.signal`."""
        if callable(handler):
            self._handlers[number] = partial(handler, number, None)

    def _note_on(
        self, loop: Any, number: int, callback: Callable[..., object], *given: Any
    ) -> None:
        """As `loop.add_signal_handler`."""

        def call() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(callback, *given)

        self._handlers[number] = call


@contextmanager
def signals_noted(present: Callable[[], Signals]) -> Iterator[None]:
    """Note the handlers of signals that other threads than the main one set."""
    signals: Any = signal
    loops: Any = asyncio.SelectorEventLoop
    real, add, remove = (
        signal.signal,
        loops.add_signal_handler,
        loops.remove_signal_handler,
    )

    def is_main() -> bool:
        return threading.current_thread() is threading.main_thread()

    def noted(number: int, handler: Any) -> Any:
        if is_main():
            return real(number, handler)
        return present()._note(number, handler)

    def added(loop: Any, number: int, *given: Any) -> None:
        (add if is_main() else present()._note_on)(loop, number, *given)

    def removed(loop: Any, number: int) -> bool:
        return bool(remove(loop, number)) if is_main() else True

    signals.signal = noted
    loops.add_signal_handler, loops.remove_signal_handler = added, removed
    try:
        yield
    finally:
        signals.signal = real
        loops.add_signal_handler, loops.remove_signal_handler = add, remove
