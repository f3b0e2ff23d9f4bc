"""The names of Kopf that a project uses, and that fnop lacks, or has otherwise."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from msgspec import Struct

from fnop.adapters.kopf.commands.finder import below_kopf
from fnop.adapters.kopf.porting.findings import NameUse, Place
from fnop.adapters.kopf.porting.names import (
    DECORATORS,
    OTHER_MEANING,
    advice_for,
    sort_of,
)
from fnop.adapters.kopf.porting.sources import Parsed, Project

__all__ = ["Use", "name_uses", "used_in"]


class Use(Struct, frozen=True):
    """One use of a name, which is relative to Kopf, such as `on.create`."""

    name: str
    sort: str
    advice: str
    place: Place
    code: str


def name_uses(uses: Iterable[Use]) -> tuple[NameUse, ...]:
    """The names with all their places, sorted by their sort and name."""
    places: dict[tuple[str, str, str], list[Place]] = {}
    for each in uses:
        places.setdefault((each.sort, each.name, each.advice), []).append(each.place)
    return tuple(
        NameUse(name, sort, advice, tuple(dict.fromkeys(found)))
        for (sort, name, advice), found in sorted(places.items())
    )


def used_in(project: Project) -> Iterator[Use]:
    """The uses in all modules, in the order of their lines."""
    for module in project.modules.values():
        found = [*_used_in_module(module)]
        yield from sorted(found, key=lambda use: (use.place.line, use.name))


def _used_in_module(module: Parsed) -> Iterator[Use]:
    aliases: dict[str, str] = {}
    for node in ast.walk(module.tree):
        match node:
            case ast.Import(names=names):
                for each in names:
                    path = below_kopf(each.name, each.asname)
                    if path is not None:
                        yield from _use(module, node, path)
                        aliases[each.asname or "kopf"] = path if each.asname else ""
            case ast.ImportFrom(module=base, names=names, level=0) if base:
                path = below_kopf(base, None)
                for each in names:
                    name = each.asname or each.name
                    if base == "fnop" and each.name == "kopf":
                        aliases[name] = ""
                    elif path is not None:
                        inner = f"{path}.{each.name}".strip(".")
                        aliases[name] = inner
                        yield from _use(module, node, inner)
            case _:
                pass
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute):
            found = _path(node, aliases)
            if found is not None:
                yield from _use(module, node, found)


_MODULES = ("on", "lifecycles")


def _path(node: ast.Attribute, aliases: dict[str, str]) -> str | None:
    names: list[str] = []
    at: ast.expr = node
    while isinstance(at, ast.Attribute):
        names.insert(0, at.attr)
        at = at.value
    if not isinstance(at, ast.Name) or at.id not in aliases:
        return None
    base = aliases[at.id]
    if base and base.partition(".")[0] not in _MODULES:
        return None  # an attribute of a value, whose import is reported
    # Only the first name below the module: the rest are attributes of a value.
    kept = names[:2] if not base and names[0] in ("on", "lifecycles") else names[:1]
    if len(kept) < len(names):
        return None
    return ".".join([base, *kept] if base else kept)


def _use(module: Parsed, node: ast.AST, name: str) -> Iterator[Use]:
    if not name or (f"kopf.{name}" in DECORATORS and advice_for(name) is None):
        return
    sort = sort_of(name)
    if sort is None:
        return
    advice = advice_for(name) or OTHER_MEANING.get(name, "")
    place = Place(module.shown, getattr(node, "lineno", 1))
    yield Use(name, sort, advice, place, f"kopf.{name}")
