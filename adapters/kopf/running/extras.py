"""Options that Kopf does not have, for operators whose programs do not know of fnop.

`kopf.run()` and `kopf.operator()` take `record=` and the like as arguments. A program
that stays unchanged gets them from `python -m fnop.kopf`, or from variables. They are
for all operators of its process.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fnop.adapters.kubernetes.kubeconfig import ConfigurationProblem

__all__ = ["CLUSTER", "claimed_metrics", "claimed_path", "extra", "extras_given"]

# The options that choose the cluster.
CLUSTER = ("kubeconfig", "context")
# The options with a variable that holds for programs, too.
_VARIABLES = {"record": "KOPF_RUN_RECORD", "metrics": "KOPF_RUN_METRICS"}

_given: dict[str, str | None] = {}
# Set when an operator asks for its options: so it has begun.
_asked = threading.Event()
_lock = threading.Lock()
# The recordings and the endpoints of the operators that run now.
_taken: set[str] = set()


@contextmanager
def extras_given(
    options: Mapping[str, str | None],
) -> Iterator[Callable[[], bool]]:
    """Give these options to all operators that begin within the block.

    The block gets a function that returns whether an operator has begun.
    """
    before = {**_given}
    _given.update(options)
    _asked.clear()
    try:
        yield _asked.is_set
    finally:
        _given.clear()
        _given.update(before)


def extra(options: Mapping[str, Any], name: str) -> str | None:
    """An option of one operator: as its program gives it, or as it is for all."""
    _asked.set()
    found: str | None = options.get(name) or _given.get(name)
    return found or os.environ.get(_VARIABLES.get(name, "")) or None


@contextmanager
def claimed_path(path: str) -> Iterator[Path]:
    """The file of one operator's recording, within the block.

    Operators that run at once have files of their own: `run.fnop`, `run-2.fnop`.
    """
    place, number = Path(path), 1
    with _lock:
        while str(found := _numbered(place, number)) in _taken:
            number += 1
        _taken.add(str(found))
    try:
        yield found
    finally:
        _taken.discard(str(found))


def _numbered(place: Path, number: int) -> Path:
    """
    >>> _numbered(Path("run.fnop"), 1).name, _numbered(Path("run.fnop"), 2).name
    ('run.fnop', 'run-2.fnop')
    """
    if number == 1:
        return place
    return place.with_name(f"{place.stem}-{number}{place.suffix}")


@contextmanager
def claimed_metrics(url: str | None) -> Iterator[None]:
    """Keep other operators of this process from the endpoint, within the block.

    Raises `ConfigurationProblem` if one of them has it.
    """
    if url is None:
        yield
        return
    with _lock:
        if url in _taken:
            raise ConfigurationProblem(
                f"another operator of this program serves metrics at {url}; give each "
                "operator an endpoint of its own: kopf.operator(metrics=...)"
            )
        _taken.add(url)
    try:
        yield
    finally:
        _taken.discard(url)
