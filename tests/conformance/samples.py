"""One valid object of every built-in kind that operators write (`samples.yaml`)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

__all__ = ["Sample", "samples"]

Json = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Sample:
    """A valid object, and the path at which both servers serve its kind."""

    number: int
    at: str
    now: str
    object: Json

    def __str__(self) -> str:
        return f"{self.object['kind']} {self.number}"

    def named(self, name: str, namespace: str) -> Json:
        """The object under that name, as the old server has it."""
        text = json.dumps(self.object).replace("{ns}", namespace)
        body: Json = json.loads(text)
        body["metadata"]["name"] = name
        return body

    @property
    def api_version(self) -> str:
        """The version of the kind on a current server."""
        root, *parts = self.now.removeprefix("/").split("/")
        return parts[0] if root == "api" else "/".join(parts[:2])

    @property
    def old_type(self) -> tuple[str, str, str]:
        """Group, version and kind."""
        group, _, version = self.object["apiVersion"].rpartition("/")
        return group, version, self.object["kind"]

    @property
    def type(self) -> tuple[str, str, str]:
        group, _, version = self.api_version.rpartition("/")
        return group, version, self.object["kind"]


@cache
def samples() -> tuple[Sample, ...]:
    """The valid objects."""
    text = Path(__file__).with_suffix(".yaml").read_text()
    return tuple(
        Sample(number, one["at"], one.get("now", one["at"]), one["object"])
        for number, one in enumerate(yaml.safe_load(text))
    )
