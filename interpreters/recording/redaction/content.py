"""The content of a record: everything except keys and names."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

__all__ = ["ENVELOPE", "IDENTITY", "Content"]

# Fields of inputs, commands and effects that say what something is, and its place.
ENVELOPE = frozenset(
    ("in", "do", "is", "resource", "namespace", "name", "uid", "subject", "handler")
) | {
    *("version", "continue_token", "level", "type", "subresource", "reason"),
    *("function", "container"),
}
_NESTED_ENVELOPES = frozenset(("effect", "outcome", "target"))
IDENTITY = frozenset(
    ("name", "generateName", "namespace", "uid", "resourceVersion", "finalizers")
) | {"ownerReferences", "managedFields", "selfLink", "creationTimestamp"}
_NAMING = re.compile(r"/(kind|apiVersion|metadata/(" + "|".join(IDENTITY) + r"))(/|$)")


class Content:
    """Rewrites the texts of a record that are neither keys nor names."""

    def __init__(self, rewrite: Callable[[str], str]) -> None:
        self._rewrite = rewrite

    def record(self, record: Any) -> Any:
        """An input, a command, or the record of a step."""
        if "commands" in record:
            return {
                **record,
                "input": self.record(record["input"]),
                "commands": [self.record(each) for each in record["commands"]],
            }
        return {
            name: item
            if name in ENVELOPE and isinstance(item, str)
            else self.record(item)
            if name in _NESTED_ENVELOPES and isinstance(item, dict)
            else self.value(item)
            for name, item in record.items()
        }

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._rewrite(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if not isinstance(value, dict):
            return value
        if _is_naming(value):
            return value
        is_object = "metadata" in value or "apiVersion" in value
        return {
            name: item
            if is_object and name in ("kind", "apiVersion")
            else self._metadata(item)
            if name == "metadata" and isinstance(item, dict)
            else self.value(item)
            for name, item in value.items()
        }

    def _metadata(self, metadata: dict[str, Any]) -> dict[str, Any]:
        return {
            name: item if name in IDENTITY else self.value(item)
            for name, item in metadata.items()
        }


def _is_naming(value: dict[str, Any]) -> bool:
    """Whether it is an operation of a JSON patch on a naming field of an object."""
    path = value.get("path")
    return "op" in value and isinstance(path, str) and bool(_NAMING.match(path))
