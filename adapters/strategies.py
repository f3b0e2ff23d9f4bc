"""Hypothesis strategies of Kubernetes objects, from the schema of their definition.

What is drawn is valid: it has passed the same validation as in the simulated cluster.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from fnop.adapters.manifests import read_manifests
from fnop.interpreters.cluster.schema import compile_schema

__all__ = ["manifests", "values_of_schema"]

Json = Any
Schema = Mapping[str, Any]

# How many items a list or mapping gets that has no bound of its own.
ITEMS_MAX = 4
# Without bounds, numbers stay where arithmetic with them means something.
NUMBER_MAX = 10**9

_NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
# Text as people write it, and some that nobody expects; no surrogates: not JSON.
_SURROGATES: tuple[Literal["Cs"], ...] = ("Cs",)
_LETTERS = st.characters(exclude_categories=_SURROGATES)
_TEXT = st.text(_LETTERS, max_size=20)
_SCALARS = st.none() | st.booleans() | st.integers(-NUMBER_MAX, NUMBER_MAX) | _TEXT
_ANYTHING = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3)
    ),
    max_leaves=8,
)


def manifests(
    definition: str | Path | Mapping[str, Any],
    kind: str | None = None,
    *,
    name: str | SearchStrategy[str] | None = None,
    namespace: str = "default",
    status: bool = False,
) -> SearchStrategy[dict[str, Any]]:
    """Objects of a kind, from its CustomResourceDefinition (or the file of it).

    `kind` tells which, where the file defines several.  They are all called like their
    kind, unless `name` says otherwise.  `status` is left out unless it is asked for.

    Raises `ValueError` where there is no such definition, or it has no schema.
    """
    crd = _definition(definition, kind)
    spec = crd["spec"]
    version = next(each for each in spec["versions"] if each["storage"])
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if not schema:
        raise ValueError(f"the definition {crd['metadata']['name']} has no schema")
    left_out = {"apiVersion", "kind", "metadata"} | (set() if status else {"status"})
    properties = dict(schema.get("properties") or {})
    kept = {
        **schema,
        "properties": {k: v for k, v in properties.items() if k not in left_out},
        "required": [k for k in schema.get("required") or () if k not in left_out],
    }
    kept.pop("x-kubernetes-preserve-unknown-fields", None)
    names = name if isinstance(name, SearchStrategy) else st.just(name or _called(spec))
    meta: dict[str, SearchStrategy[Any]] = {"name": names}
    if spec["scope"] == "Namespaced":
        meta["namespace"] = st.just(namespace)
    head = {"apiVersion": f"{spec['group']}/{version['name']}"}
    return st.builds(
        lambda found, metadata: {
            **head,
            "kind": spec["names"]["kind"],
            "metadata": metadata,
            **found,
        },
        values_of_schema(kept),
        st.fixed_dictionaries(meta),
    )


def _called(spec: Schema) -> str:
    return str(spec["names"]["kind"]).lower()


def _definition(
    given: str | Path | Mapping[str, Any], kind: str | None
) -> dict[str, Any]:
    if isinstance(given, Mapping):
        found = [dict(given)]
    else:
        found = read_manifests([str(given)])
    crds = [each for each in found if each.get("kind") == "CustomResourceDefinition"]
    fitting = [
        each for each in crds if kind is None or each["spec"]["names"]["kind"] == kind
    ]
    if len(fitting) != 1:
        kinds = ", ".join(each["spec"]["names"]["kind"] for each in crds) or "none"
        raise ValueError(f"name one kind that is defined there, with kind=: {kinds}")
    return fitting[0]


def values_of_schema(schema: Schema) -> SearchStrategy[Json]:
    """Values that an OpenAPI v3 structural schema lets through.

    >>> values_of_schema({"type": "integer", "minimum": 3, "maximum": 3}).example()
    3
    """
    drawn = _drawn(schema)
    compiled = compile_schema(dict(schema))
    if compiled is None:
        return drawn
    return drawn.filter(lambda value: not any(compiled.faults(value, None)))


def _drawn(schema: Schema) -> SearchStrategy[Json]:
    """Values by the parts of a schema that say how to make one."""
    values = _typed(schema)
    return st.none() | values if schema.get("nullable") else values


def _typed(schema: Schema) -> SearchStrategy[Json]:
    if "enum" in schema:
        return st.sampled_from(list(schema["enum"]))
    if schema.get("x-kubernetes-int-or-string"):
        return _integers(schema) | _strings(schema)
    if schema.get("x-kubernetes-embedded-resource"):
        return _embedded(schema)
    match schema.get("type"):
        case "object":
            return _objects(schema)
        case "array":
            return _arrays(schema)
        case "integer":
            return _integers(schema)
        case "number":
            return _integers(schema) | _numbers(schema)
        case "boolean":
            return st.booleans()
        case "string":
            return _strings(schema)
        case _:
            return _ANYTHING


def _objects(schema: Schema) -> SearchStrategy[dict[str, Json]]:
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    required = set(schema.get("required") or ())
    # A value that only one of several alternatives requires is in them all.
    drawn = {name: _drawn(part) for name, part in properties.items()}
    listed = st.fixed_dictionaries(
        {name: part for name, part in drawn.items() if name in required},
        optional={name: part for name, part in drawn.items() if name not in required},
    )
    others = schema.get("additionalProperties")
    if not others and not schema.get("x-kubernetes-preserve-unknown-fields"):
        return listed
    values = _drawn(others) if isinstance(others, Mapping) else _ANYTHING
    least = int(schema.get("minProperties") or 0)
    most = schema.get("maxProperties")
    size = max(least, ITEMS_MAX if most is None else min(int(most), ITEMS_MAX))
    more = st.dictionaries(_NAMES, values, min_size=least, max_size=size)
    return st.builds(lambda rest, known: {**rest, **known}, more, listed)


def _embedded(schema: Schema) -> SearchStrategy[dict[str, Json]]:
    head = {
        "apiVersion": st.just("v1"),
        "kind": st.just("ConfigMap"),
        "metadata": st.fixed_dictionaries({"name": _NAMES}),
    }
    properties = {
        name: part
        for name, part in (schema.get("properties") or {}).items()
        if name not in head
    }
    plain = {**schema, "properties": properties, "required": []}
    return st.builds(
        lambda rest, known: {**rest, **known},
        _objects(plain),
        st.fixed_dictionaries(head),
    )


def _arrays(schema: Schema) -> SearchStrategy[list[Json]]:
    items = _drawn(schema.get("items") or {})
    least = int(schema.get("minItems") or 0)
    most = schema.get("maxItems")
    size = max(least, ITEMS_MAX if most is None else min(int(most), ITEMS_MAX))
    match schema.get("x-kubernetes-list-type"):
        case "set":
            unique: Any = repr
        case "map":
            keys = schema.get("x-kubernetes-list-map-keys") or ()
            unique = lambda item: repr([item.get(key) for key in keys])  # noqa: E731
        case _:
            unique = repr if schema.get("uniqueItems") else None
    return st.lists(items, min_size=least, max_size=size, unique_by=unique)


def _bounds(schema: Schema) -> tuple[float | None, float | None]:
    return schema.get("minimum"), schema.get("maximum")


def _integers(schema: Schema) -> SearchStrategy[int]:
    low, high = _bounds(schema)
    bits = 31 if schema.get("format") == "int32" else 62
    least = -min(NUMBER_MAX, 2**bits) if low is None else int(-(-low // 1))
    most = min(NUMBER_MAX, 2**bits) if high is None else int(high // 1)
    if schema.get("exclusiveMinimum") and least == low:
        least += 1
    if schema.get("exclusiveMaximum") and most == high:
        most -= 1
    step = schema.get("multipleOf")
    if not step or int(step) != step:
        return st.integers(least, max(least, most))
    step = int(step)
    return st.integers(-(-least // step), most // step).map(lambda n: n * step)


def _numbers(schema: Schema) -> SearchStrategy[float]:
    low, high = _bounds(schema)
    return st.floats(
        -float(NUMBER_MAX) if low is None else low,
        float(NUMBER_MAX) if high is None else high,
        exclude_min=bool(schema.get("exclusiveMinimum")) and low is not None,
        exclude_max=bool(schema.get("exclusiveMaximum")) and high is not None,
        allow_nan=False,
        allow_infinity=False,
        width=32,
    )


_FORMATS: dict[str, SearchStrategy[str]] = {
    "date-time": st.datetimes().map(lambda at: at.strftime("%Y-%m-%dT%H:%M:%SZ")),
    "date": st.dates().map(lambda day: day.isoformat()),
    "duration": st.integers(0, 10_000).map(lambda n: f"{n}s"),
    "byte": st.binary(max_size=12).map(lambda raw: base64.b64encode(raw).decode()),
    "email": _NAMES.map(lambda name: f"{name}@example.com"),
    "hostname": _NAMES.map(lambda name: f"{name}.example.com"),
    "ipv4": st.ip_addresses(v=4).map(str),
    "ipv6": st.ip_addresses(v=6).map(str),
    "cidr": st.ip_addresses(v=4).map(lambda address: f"{address}/32"),
    "uri": _NAMES.map(lambda name: f"https://example.com/{name}"),
    "uuid": st.uuids().map(str),
    "uuid4": st.uuids(version=4).map(str),
}


def _strings(schema: Schema) -> SearchStrategy[str]:
    if "pattern" in schema:
        # Kubernetes looks for the pattern anywhere in the text (RE2, not anchored).
        pattern: str = schema["pattern"]
        return st.from_regex(pattern).map(lambda text: text.rstrip("\n"))
    known = _FORMATS.get(schema.get("format") or "")
    if known is not None:
        return known
    least = int(schema.get("minLength") or 0)
    most = schema.get("maxLength")
    size = max(least, 20 if most is None else min(int(most), 20))
    return st.text(_LETTERS, min_size=least, max_size=size)
