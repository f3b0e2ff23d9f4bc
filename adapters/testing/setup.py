"""The operator of a test, and the world around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from fnop.adapters.common.loading import SCRIPT, handlers_of_file, module_of_file
from fnop.adapters.common.manifests import read_manifests
from fnop.adapters.definitions.class_kinds import definitions_for
from fnop.adapters.kubernetes.identity import replicated
from fnop.adapters.testing.models import Models, models_for, models_in
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.registry import Registry, default_registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.explore import Case
from fnop.interpreters.check.state.records import Rival

__all__ = ["Manifests", "Operator", "Setup", "manifests_in"]

# pytest shows the author's line, and skips the lines of this module.
__tracebackhide__ = True

Manifests = str | Path | Mapping[str, Any] | Iterable[Any]
Operator = str | Path | ModuleType | Registry | Iterable[Handler | str | Path] | None


@dataclass(frozen=True)
class Setup:
    """An operator and its world, as `fnop.testing.World` describes them."""

    operator: Operator = None
    _: KW_ONLY
    crds: Manifests = ()
    objects: Manifests = ()
    namespace: str = "default"
    settings: Settings | None = None
    leader_elect: bool = False
    guard: bool = True
    calls: Mapping[Any, Callable[..., Any]] | None = None
    rivals: Mapping[str, Rival] | None = None
    script: str | Path | None = None
    former: Operator = None

    def __post_init__(self) -> None:
        """Keep what can be iterated only once: several calls read it."""
        for name in ("operator", "crds", "objects", "former"):
            given = getattr(self, name)
            if isinstance(given, Iterable) and not isinstance(given, (str, Mapping)):
                object.__setattr__(self, name, tuple(given))

    def program(self) -> Program:
        """The operator's handlers with its settings."""
        return Program(_handlers_of(self.operator), self._settings())

    def add_others(self, cases: Iterable[Case]) -> list[Case]:
        """The cases with the former code, and with rivals if the test gives some."""
        former = None
        if self.former is not None:
            former = Program(_handlers_of(self.former), self._settings())
        found = [each._replace(former=former) for each in cases]
        if self.rivals is None:
            return found
        return [each._replace(rivals=self.rivals) for each in found]

    def _settings(self) -> Settings:
        found = self.settings or Settings()
        if self.leader_elect:
            found = replicated(found)
        return found if self.guard else found.replace(guard=False)

    def modules(self) -> list[ModuleType]:
        """The operator's modules, if it is given as files or modules."""
        return _modules_of(self.operator)

    def class_definitions(
        self, program: Program, given: Iterable[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        """The definitions of classes for kinds that no manifest of `given` defines."""
        return definitions_for(program.handlers, given, self.modules())

    def script_module(self) -> ModuleType | None:
        """The module of the script's file."""
        return None if self.script is None else module_of_file(self.script)

    def models(self, module: ModuleType | None = None) -> Models:
        """The models that the test gives, followed by those of a script's module."""
        if isinstance(self.calls, Models) or module is None:
            return models_for(self.calls)
        return models_for({**models_in(module), **(self.calls or {})})


def _handlers_of(operator: Operator) -> tuple[Handler, ...]:
    """The handlers of a file, a module, a registry, or the given handlers."""
    if operator is None:
        return default_registry.handlers
    if isinstance(operator, Registry):
        return operator.handlers
    if isinstance(operator, (str, Path)):
        return _check_declared(handlers_of_file(operator), str(operator))
    if isinstance(operator, ModuleType):
        return _handlers_of_module(operator)
    found: list[Handler] = []
    for each in iter(operator):
        found += (each,) if isinstance(each, Handler) else _handlers_of(each)
    return tuple(found)


def _modules_of(operator: Operator) -> list[ModuleType]:
    """The modules of an operator that is given as files or modules."""
    if isinstance(operator, (str, Path)):
        return [module_of_file(operator)]
    if isinstance(operator, ModuleType):
        return [operator]
    if operator is None or isinstance(operator, Registry):
        return []
    several = [each for each in iter(operator) if not isinstance(each, Handler)]
    return [found for each in several for found in _modules_of(each)]


def _handlers_of_module(module: ModuleType) -> tuple[Handler, ...]:
    """The handlers that a module or package has declared, without others."""
    if module.__name__.startswith(SCRIPT) and module.__file__:
        return _check_declared(handlers_of_file(module.__file__), module.__file__)
    inside = f"{module.__name__}."
    found = tuple(
        each
        for each in default_registry.handlers
        if f"{each.declared.__module__}.".startswith(inside)
    )
    return _check_declared(found, module.__name__)


def _check_declared(handlers: tuple[Handler, ...], where: str) -> tuple[Handler, ...]:
    if not handlers:
        raise AssertionError(f"{where} declares no handlers")
    return handlers


def manifests_in(given: Manifests) -> list[dict[str, Any]]:
    """The manifests of files and folders, or the given manifests."""
    if isinstance(given, (str, Path)):
        return read_manifests([str(given)])
    if isinstance(given, Mapping):
        return [dict(given)]
    return [found for each in given for found in manifests_in(each)]
