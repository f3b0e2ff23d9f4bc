"""The expectations of an author: predicates on an object and its world."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from traceback import walk_tb
from typing import Any, NamedTuple

from fnop.core.api.catalogue import Catalogue
from fnop.core.values.body import View
from fnop.core.values.errors import described
from fnop.interpreters.cluster import Cluster

__all__ = [
    "Expectation",
    "Picture",
    "Predicate",
    "error_in",
    "expect",
    "expectations_in",
]

_MARK = "__fnop_expects__"


class Picture:
    """The objects of a cluster at one moment.

    They are named as in kubectl, by kind/name; `wall` is the time (Unix seconds).
    """

    def __init__(
        self,
        cluster: Cluster,
        catalogue: Catalogue,
        wall: float,
        namespace: str = "default",
    ) -> None:
        self._cluster, self._catalogue = cluster, catalogue
        self.wall, self._namespace = wall, namespace

    def objects(self, kind: str) -> list[View]:
        """Read all objects of a `kind`; none where the cluster does not know it."""
        resource = self._catalogue.lookup(kind)
        if resource is None:
            return []
        shelf = self._cluster.shelves.get((resource.group, resource.plural))
        return [View.of(each, self.wall) for _, each in sorted((shelf or {}).items())]

    def get(self, where: str, *, namespace: str | None = None) -> View | None:
        """Read the object at `where`, kind/name, or None where there is none.

        `namespace` is the scenario's by default; kinds without namespaces ignore it.
        """
        kind, _, name = where.partition("/")
        resource = self._catalogue.lookup(kind)
        if resource is None:
            return None
        place = (namespace or self._namespace) if resource.namespaced else ""
        shelf = self._cluster.shelves.get((resource.group, resource.plural))
        found = None if shelf is None else shelf.get((place, name))
        return None if found is None else View.of(found, self.wall)

    def __contains__(self, where: str) -> bool:
        return self.get(where) is not None

    def __getitem__(self, where: str) -> View:
        found = self.get(where)
        if found is None:
            raise KeyError(where)
        return found


Predicate = Callable[[View, Picture], Any]


class Expectation(NamedTuple):
    """A predicate that holds for each object of a kind, once all has come to rest."""

    kind: str
    holds: Predicate


def expect(kind: str) -> Callable[[Predicate], Predicate]:
    """Declare what holds of each object of a `kind` when all has come to rest.

    The function gets the object, and the world around it; what it answers counts as
    true or false. It stands in the file of a script, or beside the operator:

        @expect("databases")
        def has_its_claim(database, world):
            return f"pvc/{database.name}" in world

    Raises TypeError for a function that does not take these two.
    """

    def marked(holds: Predicate) -> Predicate:
        name = getattr(holds, "__name__", "the function")
        with suppress(ValueError):  # of one in C nobody knows what it takes
            try:
                inspect.signature(holds).bind(None, None)
            except TypeError:
                raise TypeError(
                    f"@expect({kind!r}): {name} takes the object, and the world around "
                    f"it: def {name}(obj, world)"
                ) from None
        setattr(holds, _MARK, kind)
        return holds

    return marked


def expectations_in(names: Mapping[str, Any]) -> tuple[Expectation, ...]:
    """The expectations among the names of a module."""
    return tuple(
        Expectation(getattr(each, _MARK), each)
        for each in names.values()
        if callable(each) and hasattr(each, _MARK)
    )


def error_in(function: Callable[..., Any], problem: BaseException) -> str:
    """An error of an author's function, with the line: `KeyError: 'a' (s.py, line 4)`.

    The line is the function's own, or that of another function in its file.
    """
    code = getattr(function, "__code__", None)
    frames = [
        (frame.f_code.co_filename, line)
        for frame, line in walk_tb(problem.__traceback__)
    ]
    own = [each for each in frames if code and each[0] == code.co_filename]
    file, line = (own or frames)[-1]
    return f"{described(problem)} ({os.path.basename(file)}, line {line})"
