"""Dumping of handlers' arguments to YAML, as plain mappings and lists.

YAML libraries look at the exact class of a value, and write a subclass of `dict` as a
Python object, or refuse it.  A representer, registered once, applies to all their
dumpers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from fnop.core.handlers.declare.writers import DaemonStoppingReason, Nest
from fnop.core.objects.store.indexing import Index
from fnop.core.values.diff import DiffItem
from fnop.effects.values import ReadOnlyDict, ReadOnlyList

__all__ = ["show_in_yaml", "teach_yaml"]

_PLAIN: dict[type, Callable[[Any], Any]] = {
    ReadOnlyDict: dict,
    ReadOnlyList: list,
    Nest: dict,
    Index: dict,
    DiffItem: lambda item: [item.operation, [*item.field], item.old, item.new],
    DaemonStoppingReason: str,
}
# Other YAML libraries; they get representers if the operator has imported them.
_OTHERS = ("ruamel.yaml",)


def teach_yaml() -> None:
    """Let imported YAML libraries write the arguments of handlers."""
    imported: list[Any] = [sys.modules[each] for each in _OTHERS if each in sys.modules]
    for library in (yaml, *imported):
        for representer in _representers(library.representer.SafeRepresenter):
            for kind, plain in _PLAIN.items():
                representer.add_multi_representer(kind, _represent_as(plain))


def show_in_yaml(kind: type, plain: Callable[[Any], Any]) -> None:
    """Let YAML libraries write the values of one more class as plain values."""
    _PLAIN[kind] = plain
    teach_yaml()


def _representers(safe: Any) -> Iterator[Any]:
    """The class, and the classes that have already copied its table."""
    yield safe
    for each in safe.__subclasses__():
        yield from _representers(each)


def _represent_as(plain: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def represent(dumper: Any, value: Any) -> Any:
        return dumper.represent_data(plain(value))

    return represent


teach_yaml()
