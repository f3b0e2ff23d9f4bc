"""Properties of a check under names that read well in authors' tests."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from fnop.interpreters.check.properties import PROPERTIES

__all__ = [
    "Law",
    "keep_data",
    "leave_no_orphans",
    "names_of",
    "never_create_twice",
    "stabilise",
]


class Law(Struct, frozen=True):
    """A few `properties` of docs/reference/properties.md under one `name`."""

    name: str
    properties: tuple[str, ...]


stabilise = Law("stabilise", ("settles", "same_end"))
"""All comes to rest, and the world is then that of the benign run.

    explore("operator.py", create(claim), crds="crd.yaml").must(stabilise)

This is `settles` and `same_end` of docs/reference/properties.md.
"""

leave_no_orphans = Law("leave_no_orphans", ("no_orphans", "deletes"))
"""A deleted object disappears, and all that was created for it goes with it.

    explore("operator.py", create(c), delete("claims/c")).must(leave_no_orphans)

This is `no_orphans` and `deletes` of docs/reference/properties.md.
"""

never_create_twice = Law("never_create_twice", ("creates_once",))
"""Nothing is there twice, and nothing is made outside more often than it is asked for.

    explore("operator.py", create(claim), crds="crd.yaml").must(never_create_twice)

This is `creates_once` of docs/reference/properties.md.
"""

keep_data = Law("keep_data", ("keeps_data", "no_clobber"))
"""Claims, Secrets, replicas and the changes of others stay as in the benign run.

    explore("operator.py", create(claim), crds="crd.yaml").must(keep_data)

This is `keeps_data` and `no_clobber` of docs/reference/properties.md.
"""


def names_of(properties: Iterable[str | Law]) -> frozenset[str]:
    """The names of these properties; without any, the names of all.

    Raises `ValueError` for an unknown name.

    >>> sorted(names_of(["total", stabilise]))
    ['same_end', 'settles', 'total']
    """
    found: set[str] = set()
    for each in properties:
        found.update(each.properties if isinstance(each, Law) else (each,))
    unknown = sorted(found - set(PROPERTIES))
    if unknown:
        raise ValueError(
            f"there is no property {unknown[0]!r}; choose from {', '.join(PROPERTIES)}"
        )
    return frozenset(found or PROPERTIES)
