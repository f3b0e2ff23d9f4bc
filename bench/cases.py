"""The cases of the benchmark: what waits for an operator, and who does the work."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

FLOOR, FNOP = "floor", "fnop"
CONTENDERS = (FLOOR, FNOP, "kopf", "kopf-chunked")
# With streaming lists, if the server has them (Kubernetes 1.32 and later).
STREAMING = ("fnop-streaming", "kopf-streaming")
# An unchanged Kopf operator on fnop.
ON_FNOP = "kopf-on-fnop"
# Those on a server that has streaming lists.
OF_STREAMS = (FLOOR, FNOP, "fnop-streaming", *CONTENDERS[2:], "kopf-streaming", ON_FNOP)
# The others take part only by `--only`, also the same operator with a recording.
FURTHER = (*STREAMING, "fnop-ring", "fnop-full", ON_FNOP)
# These do the work of `operator.py` alone.
_OF_RESULTS = (*CONTENDERS, *FURTHER)


@dataclass(frozen=True, slots=True)
class Case:
    """A number of objects, and the work that they are.

    - `backlog`: new objects wait when the operator starts;
    - `edits`: a client edits objects that the operator has handled;
    - `latency`: a client creates objects at an even pace.
    """

    name: str
    words: str
    work: Literal["backlog", "edits", "latency"]
    objects: int
    size: int = 1300  # bytes of one object, as the server sends it
    contenders: Sequence[str] = _OF_RESULTS
    operator: Literal["results", "parents", "indexed", "daemons"] = "results"
    is_long: bool = False  # only if its name is given


# A chunk has 500 objects: smaller lists do not differ.
_UNCHUNKED = tuple(each for each in _OF_RESULTS if each != "kopf-chunked")
CASES = {
    each.name: each
    for each in (
        Case("backlog", "a backlog of new objects", "backlog", 1000),
        Case("backlog-5000", "a larger backlog", "backlog", 5000, is_long=True),
        Case("large", "large objects", "backlog", 200, 28_000, _UNCHUNKED),
        Case("edits", "edits of handled objects", "edits", 1000, contenders=_UNCHUNKED),
        Case("latency", "20 creations a second", "latency", 200, contenders=_UNCHUNKED),
        Case(
            "children",
            "parents with 4 children each",
            "backlog",
            1000,
            contenders=(FNOP, "kopf"),
            operator="parents",
        ),
        Case(
            "index",
            "objects in an index",
            "backlog",
            10_000,
            contenders=(FLOOR, FNOP, "kopf"),
            operator="indexed",
            is_long=True,
        ),
        Case(
            "daemons",
            "objects with a daemon each",
            "backlog",
            5000,
            contenders=(FLOOR, FNOP, "kopf"),
            operator="daemons",
            is_long=True,
        ),
    )
}
ALL = "all"


def named(names: str) -> list[Case]:
    """The cases that an option names; raises `KeyError` for an unknown name.

    >>> [each.name for each in named("edits,latency")]
    ['edits', 'latency']
    >>> len(named("all")) == len(CASES)
    True
    """
    if names == ALL:
        return [*CASES.values()]
    return [CASES[name] for name in names.split(",")]


USUAL = ",".join(each.name for each in CASES.values() if not each.is_long)
