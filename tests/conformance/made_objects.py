"""Objects made up from the schema of a definition: good ones, and faulty ones.

The same seed makes the same objects.  They need not be valid: two servers have to
agree on them, whatever they say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random
from typing import Any

__all__ = ["samples"]

Json = dict[str, Any]

DEEPEST = 7
TEXTS = (
    *("a", "abc", "A", "true", "10s", "1h", "500m", "1Gi", "10%", "http", "x.dev/y"),
    *("example.com", "https://example.com/x", "/path", "*", "*.example.com", "v1"),
    *("10.0.0.0/8", "10.0.0.1", "2020-01-01T00:00:00Z", "AQ==", "None", "Exact", "1"),
    *("Kind", "GET", "gateway.networking.k8s.io", "Service", "/", "not a match"),
)
ODD: tuple[Any, ...] = (None, 1, -1, 1.5, "text", "", [], ["a"], {}, {"a": 1}, True)
NUMBERS = (0, 1, 2, 80, 8080, 65535, 100)
# One part in this number of a faulty object has another type.
FAULTS = 12


def samples(definition: Json, version: Json, count: int) -> Iterator[Json]:
    """Objects of one version; every second one has faults."""
    spec = definition["spec"]
    schema = version["schema"]["openAPIV3Schema"]
    for number in range(count):
        seed = f"{definition['metadata']['name']} {version['name']} {number}"
        maker = Maker(Random(seed), faulty=bool(number % 2))
        made = maker.object(schema, 0)
        yield {
            **made,
            "apiVersion": f"{spec['group']}/{version['name']}",
            "kind": spec["names"]["kind"],
            "metadata": {"name": f"sample-{version['name']}-{number}"},
        }


class Maker:
    """Makes one object."""

    def __init__(self, random: Random, *, faulty: bool) -> None:
        self.random, self.faulty = random, faulty

    def value(self, schema: Json, depth: int) -> Any:
        """A value of a schema, or something odd in its place."""
        random = self.random
        if self.faulty and depth and not random.randrange(FAULTS):
            return random.choice(ODD)
        if "default" in schema and not random.randrange(3):
            return schema["default"]
        if schema.get("enum"):
            return random.choice(schema["enum"])
        if schema.get("x-kubernetes-int-or-string"):
            return random.choice((5, "5", "50%", "1Gi", "http"))
        if schema.get("nullable") and not random.randrange(8):
            return None
        make = MAKERS.get(schema.get("type", ""))
        if make is None:
            return {"free": {"x": [1, "a"]}}
        return make(self, schema, depth)

    def object(self, schema: Json, depth: int) -> Json:
        """An object with what is required, and less of the rest the deeper it is."""
        random = self.random
        wanted = {*schema.get("required", ()), *self._chosen(schema)}
        properties = schema.get("properties") or {}
        found = {
            name: self.value(part, depth + 1)
            for name, part in properties.items()
            if name not in ("apiVersion", "kind", "metadata")
            and depth < DEEPEST
            and (name in wanted or not random.randrange(1 + depth))
        }
        additional = schema.get("additionalProperties")
        if isinstance(additional, dict):
            for name in random.sample(("k", "a.dev/b", "two"), random.randrange(3)):
                found[name] = self.value(additional, depth + 1)
        if schema.get("x-kubernetes-embedded-resource"):
            found |= {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
        if self.faulty and not random.randrange(FAULTS):
            found["unknown"] = random.choice(ODD)
        return found

    def _chosen(self, schema: Json) -> list[str]:
        """The requirements of one of the alternatives."""
        choices = schema.get("oneOf") or schema.get("anyOf")
        if not choices:
            return []
        found: list[str] = self.random.choice(choices).get("required", [])
        return found

    def array(self, schema: Json, depth: int) -> list[Any]:
        """A list; of sets and maps each item only once, if it is not to be faulty."""
        least = schema.get("minItems", 0)
        count = self.random.randint(least, max(least, 2)) if depth < DEEPEST else least
        items = [self.value(schema.get("items", {}), depth + 1) for _ in range(count)]
        if self.faulty or "x-kubernetes-list-type" not in schema:
            return items
        keys = schema.get("x-kubernetes-list-map-keys", ())
        unique = {
            repr([item.get(key) for key in keys] if keys else item): item
            for item in items
        }
        return [*unique.values()]

    def string(self, schema: Json, depth: int) -> str:
        """A text that fits, if there is one at hand."""
        pattern = schema.get("pattern")
        fitting = [
            text
            for text in TEXTS
            if schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", 99)
            and (not pattern or _matches(pattern, text))
        ]
        if schema.get("format") == "date-time":
            return "2020-01-01T00:00:00Z"
        return self.random.choice(fitting or TEXTS)

    def number(self, schema: Json, depth: int) -> float:
        """A number within the bounds, if there are such."""
        least = schema.get("minimum", -10)
        most = schema.get("maximum", 10**9)
        fitting = [number for number in NUMBERS if least <= number <= most]
        found: float = self.random.choice(fitting or [least])
        return found

    def boolean(self, schema: Json, depth: int) -> bool:
        """Either."""
        return self.random.choice((True, False))


MAKERS: dict[str, Any] = {
    "object": Maker.object,
    "array": Maker.array,
    "string": Maker.string,
    "integer": Maker.number,
    "number": Maker.number,
    "boolean": Maker.boolean,
}


def _matches(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:  # Go's expressions are not all Python's
        return False
