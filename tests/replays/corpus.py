"""The recordings that are kept, and how they replay."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tests.commands import Done, fnop
from tests.simulations import ROOT

__all__ = [
    "FOLDER",
    "INDEX",
    "Recorded",
    "counted_recordings",
    "read_index",
    "replayed",
]

FOLDER = Path(__file__).parent
INDEX = FOLDER / "index.json"


@dataclass(frozen=True)
class Recorded:
    """A recording, `name`.fnop: its operator's file, and the number of its steps.

    The recording of a killed process is `cut_off`. The name of an earlier format begins
    with a folder, such as `format-2`. Some of these are decided differently on purpose
    since then, from the step `otherwise` on.
    """

    name: str
    operator: str
    steps: int
    cut_off: bool = False
    otherwise: int | None = None

    @property
    def is_traced(self) -> bool:
        """Whether it holds what handlers were shown and decided."""
        return "/" not in self.name

    @property
    def file(self) -> Path:
        return FOLDER / f"{self.name}.fnop"


def read_index() -> Mapping[str, Recorded]:
    """The entries of the corpus, by name."""
    if not INDEX.exists():
        return MappingProxyType({})
    found = json.loads(INDEX.read_text())
    return MappingProxyType(
        {name: Recorded(name, **about) for name, about in found.items()}
    )


def counted_recordings() -> Mapping[str, Recorded]:
    """The recordings whose steps can be taken again by a machine alone, by name.

    Secrets are tokens in a recording, which cannot answer calls; and functions are
    called by the name of the module, which differs next to a second example.py.
    """
    return {
        name: each
        for name, each in read_index().items()
        if each.operator not in _UNCOUNTED and each.otherwise is None
    }


_UNCOUNTED = ("examples/19-database/example.py", "examples/21-records/example.py")


def replayed(file: Path, operator: str, folder: Path) -> Done:
    """Replay it with the operator's file as it is now."""
    return fnop("replay", file, ROOT / operator, folder=folder, limit=60)
