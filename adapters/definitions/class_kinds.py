"""An author's classes that are kinds, and the definitions that an operator needs.

Most operators have no such class. So the modules that make definitions are imported
only if one is needed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from functools import lru_cache
from types import ModuleType
from typing import Any

from fnop.adapters.common.loading import is_authors_module
from fnop.core.api.definitions import Definition, definition_of
from fnop.core.api.resources import Resource, Selector
from fnop.core.handlers.declare.handler import Handler

__all__ = ["definitions_for", "kinds_in"]

Manifest = dict[str, Any]

_DEFINITION = "CustomResourceDefinition"
_VERBS = ("create", "delete", "get", "list", "patch", "update", "watch")


def kinds_in(modules: Iterable[ModuleType]) -> list[type]:
    """The classes with a definition that these modules can name.

    The modules define such a class, import it (`Database`), or import a module of their
    own project that does (`kinds.Database`, `shop.kinds.Database`), also indirectly.
    Modules of installed libraries are not searched. A file that one module imports and
    that is also loaded itself counts once.
    """
    found: dict[tuple[str, str], type] = {}
    left, seen = [*modules], set[int]()
    while left:
        module = left.pop(0)
        if id(module) in seen:
            continue
        seen.add(id(module))
        # A library may fill its module during the search.
        for value in [*vars(module).values()]:
            if definition_of(value) is not None:
                home = sys.modules.get(value.__module__)
                file = getattr(home, "__file__", None) or value.__module__
                found.setdefault((file, value.__qualname__), value)
            elif isinstance(value, ModuleType) and is_authors_module(value):
                left.append(value)
    return [*found.values()]


def definitions_for(
    handlers: Iterable[Handler],
    given: Iterable[Mapping[str, Any]],
    modules: Iterable[ModuleType] = (),
) -> list[Manifest]:
    """Make the definitions of kinds that handlers name and no manifest defines.

    They come from classes that the operator's `modules`, or the modules of its
    handlers, can name. A kind has all its versions. A kind that the `given` manifests
    define is skipped, with any versions. Raises `DefinitionProblem` if no definition
    can be made of a class that is needed.
    """
    handlers = tuple(handlers)
    classes = kinds_in((*modules, *_modules_of(handlers)))
    if not classes:
        return []
    crds = [each for each in given if each.get("kind") == _DEFINITION]
    defined = {(each.get("metadata") or {}).get("name") for each in crds}
    kinds = {
        each: found
        for each in classes
        if (found := definition_of(each)) and _name(found) not in defined
    }
    named = _names_of_kinds(handlers, [*kinds.values()], crds)
    needed = tuple(each for each, found in kinds.items() if _name(found) in named)
    if not needed:
        return []
    return deepcopy(_cached_definitions(needed))


@lru_cache(maxsize=64)
def _cached_definitions(classes: tuple[type, ...]) -> list[Manifest]:
    """The definitions of classes, cached: tests need the same ones again and again."""
    from fnop.adapters.definitions.classes import definitions_of

    return definitions_of(classes)


def _modules_of(handlers: Iterable[Handler]) -> list[ModuleType]:
    """The modules of the handlers' functions."""
    names = (getattr(each.declared, "__module__", "") for each in handlers)
    modules = (sys.modules.get(each) for each in dict.fromkeys(names))
    return [each for each in modules if each is not None]


def _name(found: Definition) -> str:
    return f"{found.plural}.{found.group}"


def _names_of_kinds(
    handlers: Iterable[Handler],
    kinds: Iterable[Definition],
    crds: list[Mapping[str, Any]],
) -> set[str]:
    """The names of the kinds that handlers mean, unless they mean an existing kind."""
    served: tuple[Resource, ...] | None = None
    resources = {_resource(each): _name(each) for each in kinds}
    found: set[str] = set()
    for selector in {each for handler in handlers for each in _selectors(handler)}:
        names = {name for each, name in resources.items() if selector.matches(each)}
        if names <= found:
            continue
        if selector.group is None and not selector.is_broad:
            served = _served_resources(crds) if served is None else served
            if any(map(selector.matches, served)):
                continue
        found |= names
    return found


def _selectors(handler: Handler) -> Iterator[Selector]:
    """The kinds that a handler names, including `owner=`, `owns=` and `to=`."""
    for each in (handler.selector, handler.owner, *(each for _, each in handler.owns)):
        # Selectors of all kinds, and those that a function chooses, have no names.
        if each is not None and not each.everything and each.predicate is None:
            yield each
    if handler.to:
        yield Selector.of(handler.to)


def _resource(found: Definition) -> Resource:
    return Resource(
        found.group,
        found.version,
        found.plural,
        found.kind,
        found.singular,
        found.scope == "Namespaced",
        found.short_names,
        found.categories,
        _VERBS,
        ("scale", "status") if found.scale else ("status",),
    )


def _served_resources(crds: Iterable[Mapping[str, Any]]) -> tuple[Resource, ...]:
    """The kinds of a cluster with these definitions."""
    from fnop.core.handlers.program.program import Program
    from fnop.interpreters.cluster import empty_cluster
    from fnop.interpreters.runtime.clock import EPOCH
    from fnop.interpreters.simulation.scenario import (
        ApplyProblem,
        apply_manifests,
        catalogue_of,
    )
    from fnop.interpreters.simulation.simulation import SimulatedRun

    run = SimulatedRun(Program(()), empty_cluster(now=EPOCH))
    with suppress(ApplyProblem):  # the caller gets the same error, and reports it
        apply_manifests(run, map(dict, crds))
    return catalogue_of(run).resources
