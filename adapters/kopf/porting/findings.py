"""The findings about an operator's source: verdicts, places, and advice."""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct

__all__ = ["Finding", "Load", "NameUse", "Place", "Ported", "Porting", "Verdict"]


class Verdict(IntEnum):
    """The effort for a handler: the largest of its findings decides."""

    PURE = 0
    CHANGES = 1
    IMPURE = 2


class Place(Struct, frozen=True):
    """A line of a file; lines begin at 1.

    >>> str(Place("operator.py", 12))
    'operator.py:12'
    """

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Finding(Struct, frozen=True):
    """One expression that stands in the way, and the alternative in fnop.

    `code` is the expression in short. `via` names the functions between the handler and
    the line, outermost first; it is empty for the handler's own lines. A finding that
    is `only_pure` needs no change if the handler stays impure.
    """

    verdict: Verdict
    place: Place
    code: str
    advice: str
    via: tuple[str, ...] = ()
    only_pure: bool = False


class Ported(Struct, frozen=True):
    """The verdict about one handler, which several decorators may declare.

    `label` is the verdict in words. `decorators` are the names of the decorators, such
    as `on.create`.
    """

    name: str
    decorators: tuple[str, ...]
    place: Place
    verdict: Verdict
    label: str
    findings: tuple[Finding, ...]


class NameUse(Struct, frozen=True):
    """A name of Kopf that fnop lacks, or has with another meaning; and its lines."""

    name: str
    sort: str
    advice: str
    places: tuple[Place, ...]


class Load(Struct, frozen=True):
    """A call that loads modules, or declares handlers, in a way that only a run knows.

    None of these modules is read, and none of these handlers is judged.
    """

    place: Place
    code: str


class Porting(Struct, frozen=True):
    """The report about an operator."""

    handlers: tuple[Ported, ...]
    names: tuple[NameUse, ...]
    loads: tuple[Load, ...] = ()
    choices: tuple[Load, ...] = ()

    def count(self, verdict: Verdict) -> int:
        """The number of handlers with this verdict."""
        return sum(each.verdict is verdict for each in self.handlers)
