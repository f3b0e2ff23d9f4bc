"""Hypothesis strategies of Kubernetes objects, from the schema of their definition.

Drawn objects are valid: they have passed the same validation as in the simulated
cluster, including rules in CEL. The parts of a schema determine how to draw. For
conditions that they cannot express, drawing is tried a few times.
"""

from __future__ import annotations

import base64
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, Literal

import orjson
from hypothesis import HealthCheck, find, reject, settings, strategies as st
from hypothesis.errors import HypothesisException
from hypothesis.strategies import DrawFn, SearchStrategy

from fnop.adapters.common.manifests import read_manifests
from fnop.core.kubernetes.quantities import PATTERN
from fnop.effects.structs import replace
from fnop.interpreters.cluster.schema.cel import compile_laws
from fnop.interpreters.cluster.schema.regex import in_python
from fnop.interpreters.cluster.schema.rules import format_of
from fnop.interpreters.cluster.schema.schema import (
    Schema as Compiled,
    compile_root,
    compile_schema,
    object_faults,
)

__all__ = ["manifests", "smallest", "values_of_schema"]

Json = Any
Schema = Mapping[str, Any]

# The most items of a list or mapping without a bound of its own; fewer in deeper parts:
# large values are slow to shrink.
ITEMS_MAX = 4
# The most optional fields of an object at a time; fewer in deeper parts.
FIELDS_MAX = 8
# Without bounds, numbers stay in a range in which arithmetic is meaningful.
NUMBER_MAX = 10**9
# The most tries to draw a text or number that fits.
TRIES_MAX = 12
# The most parts of a faulty value that are removed in turn to fix it.
MENDING_MAX = 60

_NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
# Text as people write it, and some unexpected text; no surrogates: they are not JSON.
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
# A null is omitted if the schema does not allow it.
_SOMETHING = _ANYTHING.filter(lambda value: value is not None)


def manifests(
    definition: str | Path | Mapping[str, Any] | type,
    kind: str | None = None,
    *,
    name: str | SearchStrategy[str] | None = None,
    namespace: str = "default",
    status: bool = False,
) -> SearchStrategy[dict[str, Any]]:
    """A Hypothesis strategy for objects of a kind, by its CustomResourceDefinition.

    `definition` is a manifest, a file, or a class with `@fnop.definition`. `kind`
    chooses if the file defines several. `name` is the objects' name, or a strategy for
    names; by default it is the kind's. `namespace` is for objects of namespaced kinds.
    With `status` the objects have one, too. Raises `ValueError` if there is no such
    definition, or it has no schema. Raises `DefinitionProblem` for a class that cannot
    be defined.

        @given(manifests("crd.yaml"))
        def test_every_claim_settles(claim):
            sim = Simulation("operator.py", crds="crd.yaml", objects=claim)
            assert sim.settle().settled
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
    # Rules about the whole object also see its names, so they are evaluated at the end.
    for keyword in ("x-kubernetes-preserve-unknown-fields", _RULES):
        kept.pop(keyword, None)
    names = (
        name
        if isinstance(name, SearchStrategy)
        else st.just(name or _name_of_kind(spec))
    )
    meta: dict[str, SearchStrategy[Any]] = {"name": names}
    if spec["scope"] == "Namespaced":
        meta["namespace"] = st.just(namespace)
    head = {
        "apiVersion": f"{spec['group']}/{version['name']}",
        "kind": spec["names"]["kind"],
    }
    whole = st.builds(
        lambda found, metadata: {**head, "metadata": metadata, **found},
        _values_of_part(kept, 0),
        st.fixed_dictionaries(meta),
    )
    faults = _faults_of(compile_root(schema))
    return whole.map(lambda found: _mend_value(found, faults)).filter(_is_taken(faults))


def smallest(
    definition: Mapping[str, Any], is_taken: Callable[[Json], bool], most: int
) -> dict[str, Any] | None:
    """The smallest object named x that `is_taken`, if one is among the first drawn.

    It is the same in each process. At most `most` objects are drawn.
    """
    drawn, taken = itertools.count(), list[dict[str, Any]]()
    objects = manifests(definition, name="x")

    @st.composite
    def soon(draw: DrawFn) -> Json:
        # Hypothesis continues for a thousand objects if it finds none.
        return draw(objects) if next(drawn) < most else None

    def is_one(found: Json) -> bool:
        if found is None or not is_taken(found):
            return False
        taken.append(found)
        return True

    usual = settings(
        database=None,
        deadline=None,
        derandomize=True,
        suppress_health_check=[*HealthCheck],
    )
    with suppress(HypothesisException):
        find(soon(), is_one, settings=usual, random=Random(0))
    return min(taken, key=lambda found: len(orjson.dumps(found)), default=None)


def _name_of_kind(spec: Schema) -> str:
    return str(spec["names"]["kind"]).lower()


def _definition(
    given: str | Path | Mapping[str, Any] | type, kind: str | None
) -> dict[str, Any]:
    if isinstance(given, type):
        from fnop.adapters.definitions.classes import definition_of_version

        found = [definition_of_version(given)]
    elif isinstance(given, Mapping):
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
    """A Hypothesis strategy for values that an OpenAPI v3 structural `schema` accepts.

    >>> from hypothesis import find
    >>> three = {"type": "integer", "minimum": 3, "maximum": 3}
    >>> find(values_of_schema(three), lambda value: True)
    3
    """
    faults = _faults_of(_compile_part(schema))
    return _values_of_part(schema, 0).filter(_is_taken(faults))


# ------------------------------------------------------------------ validation

_RULES = "x-kubernetes-validations"
# Keywords that drawing alone cannot guarantee: the drawn value must be validated.
_ASKED = frozenset(
    (
        *("not", "anyOf", "oneOf", "allOf", _RULES),
        *("minProperties", "maxProperties", "uniqueItems", "x-kubernetes-list-type"),
        *("pattern", "format", "multipleOf"),
    )
)

# A function that counts the faults of a value; 0 means that it is accepted.
Faults = Callable[[Json], int]


def _compile_part(schema: Schema) -> Compiled | None:
    """A part of a schema with its rules, as the server has the whole."""
    found = compile_schema(dict(schema))
    if found is None:
        return None
    return replace(found, laws=compile_laws(dict(schema), root=False))


def _faults_of(compiled: Compiled | None) -> Faults:
    """Count the faults that the server finds: it fills in defaults, then validates."""
    if compiled is None:
        return lambda _: 0
    return lambda value: len([*object_faults(compiled, compiled.filled(value))])


def _is_taken(faults: Faults) -> Callable[[Json], bool]:
    return lambda value: not faults(value)


def _values_without_faults(
    values: SearchStrategy[Json], faults: Faults
) -> SearchStrategy[Json]:
    """The values without faults, even if they are few."""

    @st.composite
    def tried(draw: DrawFn) -> Json:
        for _ in range(TRIES_MAX):
            value = draw(values)
            if not faults(value):
                return value
        return reject()

    return tried()


def _mend_value(value: Json, faults: Faults) -> Json:
    """The value without parts that increase the number of its faults.

    Nothing is drawn for this: most faults come from parts that must not occur together.
    """
    left = faults(value)
    # The last and the innermost come first, so that the places of the others do not
    # change.
    for path in [*_paths(value)][::-1][:MENDING_MAX]:
        if not left:
            break
        other = _without_part(value, path)
        fewer = faults(other)
        if fewer < left:
            value, left = other, fewer
    return value


def _paths(value: Json) -> Iterator[tuple[Any, ...]]:
    inside: Iterable[tuple[Any, Json]] = ()
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list):
        inside = enumerate(value)
    for key, part in inside:
        yield (key,)
        yield from ((key, *path) for path in _paths(part))


def _without_part(value: Json, path: tuple[Any, ...]) -> Json:
    key, *rest = path
    other = value.copy()
    if rest:
        other[key] = _without_part(value[key], tuple(rest))
    else:
        del other[key]
    return other


def _values_of_part(schema: Schema, depth: int) -> SearchStrategy[Json]:
    """Values that one part of a schema accepts."""
    if _ASKED.isdisjoint(schema):
        values = _values_of_type(schema, depth, None)
    else:
        faults = _faults_of(_compile_part(schema))
        values = _values_of_choices(schema, depth, faults)
        if schema.get("type") in ("object", "array"):
            values = values.filter(_is_taken(faults))
        else:
            values = _values_without_faults(values, faults)
    if schema.get("nullable") and None in schema.get("enum", (None,)):
        return st.none() | values
    return values


# ---------------------------------------------------------------- alternatives

_COMBINED = ("allOf", "anyOf", "oneOf")


def _values_of_choices(
    schema: Schema, depth: int, faults: Faults | None
) -> SearchStrategy[Json]:
    """Values by their type, and by one of several further conditions."""
    plain = {k: v for k, v in schema.items() if k not in _COMBINED}
    alternatives = [plain]
    for part in schema.get("allOf") or ():
        alternatives = _combined_schemas(alternatives, [part], ())
    for keyword in ("anyOf", "oneOf"):
        parts = schema.get(keyword) or ()
        # Integers and strings in one are drawn as such anyway.
        if not all(set(part) <= {"type"} for part in parts):
            others = parts if keyword == "oneOf" else ()
            alternatives = _combined_schemas(alternatives, parts, others)
    denied = schema.get("not") or {}
    found = [_without(each, denied.get("anyOf") or [denied]) for each in alternatives]
    return st.one_of([_values_of_type(each, depth, faults) for each in found])


def _combined_schemas(
    wholes: Iterable[dict[str, Any]], parts: Iterable[Schema], others: Iterable[Schema]
) -> list[dict[str, Any]]:
    """Each of the schemas with each condition, and without the others' conditions."""
    return [
        _without(
            _merge_schemas(whole, part), [each for each in others if each is not part]
        )
        for whole in wholes
        for part in parts
    ]


def _merge_schemas(one: Schema, other: Schema) -> dict[str, Any]:
    """A schema whose values fulfil both, as far as one schema can express that."""
    found = dict(one)
    for keyword, value in other.items():
        had = found.get(keyword)
        found[keyword] = value if had is None else _merge_keyword(keyword, had, value)
    return found


def _merge_keyword(keyword: str, one: Any, other: Any) -> Any:
    match keyword:
        case "properties":
            common = {
                name: _merge_schemas(one.get(name, {}), other[name]) for name in other
            }
            return {**one, **common}
        case "items" | "additionalProperties" if isinstance(one, Mapping):
            return _merge_schemas(one, other) if isinstance(other, Mapping) else one
        case "required":
            return [*one, *(each for each in other if each not in one)]
        case "allOf":
            return [*one, *other]
        case "enum":
            return [each for each in one if each in other]
        case "minimum" | "minLength" | "minItems" | "minProperties":
            return max(one, other)
        case "maximum" | "maxLength" | "maxItems" | "maxProperties":
            return min(one, other)
        case _:
            return other


def _without(schema: dict[str, Any], others: Iterable[Schema]) -> dict[str, Any]:
    """A schema whose values lack something that each of the others requires."""
    properties = dict(schema.get("properties") or {})
    required = set(schema.get("required") or ())
    for each in others:
        names = set(each.get("required") or ()) - required
        if names and set(each) == {"required"}:
            properties.pop(min(names), None)
    return {**schema, "properties": properties} if properties else schema


# ---------------------------------------------------------------------- types


def _values_of_type(
    schema: Schema, depth: int, faults: Faults | None
) -> SearchStrategy[Json]:
    if not set(_COMBINED).isdisjoint(schema):
        return _values_of_choices(schema, depth, faults)
    if "enum" in schema:
        return st.sampled_from(schema["enum"]) if schema["enum"] else st.nothing()
    if schema.get("x-kubernetes-int-or-string") and "type" not in schema:
        return _integers(schema) | _strings(schema)
    if schema.get("x-kubernetes-embedded-resource"):
        return _embedded_objects(schema, depth, faults)
    match schema.get("type"):
        case "object":
            return _objects(schema, depth, faults)
        case "array":
            items = _arrays(schema, depth)
            if faults is None:
                return items
            return items.map(lambda found: _mend_value(found, faults))
        case "integer":
            return _integers(schema)
        case "number":
            return _integers(schema) | _numbers(schema)
        case "boolean":
            return st.booleans()
        case "string":
            return _strings(schema)
        case _:
            return _SOMETHING


def _objects(
    schema: Schema, depth: int, faults: Faults | None
) -> SearchStrategy[dict[str, Json]]:
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    if not others and schema.get("x-kubernetes-preserve-unknown-fields"):
        others = True
    values = (
        _values_of_part(others, depth + 1)
        if isinstance(others, Mapping)
        else _SOMETHING
    )
    fields = {
        name: _values_of_part(part, depth + 1) for name, part in properties.items()
    }
    required = list(schema.get("required") or ())
    fields |= {name: values for name in required if name not in fields and others}
    choices = {name: fields[name] for name in fields if name not in required}
    chosen = _some_names([*choices], max(3, FIELDS_MAX - depth))
    more = _further_fields(schema, values, properties, depth) if others else st.just({})

    @st.composite
    def objects(draw: DrawFn) -> dict[str, Json]:
        names = {*required, *draw(chosen)}
        known = {name: draw(part) for name, part in fields.items() if name in names}
        found = {**draw(more), **known}
        if faults is None:
            return found
        return _add_optional(_mend_value(found, faults), faults, choices, draw)

    return objects()


def _some_names(names: list[str], most: int) -> SearchStrategy[set[str]]:
    """Some of the names: about half of the few, and half of `most` among many.

    They are decided one after the other, so that shrinking can remove each.
    """
    odds = max(1, -(-2 * len(names) // most) - 1)
    chances = [st.integers(0, odds)] * len(names)
    return st.tuples(*chances).map(
        lambda drawn: {
            name for name, chance in zip(names, drawn, strict=True) if chance == odds
        }
    )


def _further_fields(
    schema: Schema,
    values: SearchStrategy[Json],
    properties: Mapping[str, Schema],
    depth: int,
) -> SearchStrategy[dict[str, Json]]:
    """Fields that are not specified, or the items of a mapping."""
    least, size = _sizes(schema, "Properties", depth)
    names = _NAMES.filter(lambda name: name not in properties)
    return st.dictionaries(
        names, values, min_size=0 if properties else least, max_size=size
    )


def _add_optional(
    found: dict[str, Json],
    faults: Faults,
    optional: Mapping[str, SearchStrategy[Json]],
    draw: DrawFn,
) -> dict[str, Json]:
    """The object with more of the optional fields, if it has fewer faults then."""
    left = faults(found)
    for name in optional:
        if left and name not in found:
            other = {**found, name: draw(optional[name])}
            fewer = faults(other)
            if fewer < left:
                found, left = other, fewer
    return found


def _embedded_objects(
    schema: Schema, depth: int, faults: Faults | None
) -> SearchStrategy[dict[str, Json]]:
    given: Mapping[str, Schema] = schema.get("properties") or {}
    properties: dict[str, Any] = {
        "apiVersion": {"enum": ["v1"]},
        "kind": {"enum": ["ConfigMap"]},
        "metadata": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string", "format": "k8s-short-name"}},
        },
    }
    for name in ("apiVersion", "kind"):
        if "enum" in given.get(name, ()):
            properties[name] = dict(given[name])
    required = [*(schema.get("required") or ()), *properties]
    plain = {**schema, "properties": {**given, **properties}, "required": required}
    return _objects(plain, depth, faults)


def _arrays(schema: Schema, depth: int) -> SearchStrategy[list[Json]]:
    items: Schema = schema.get("items") or {}
    least, size = _sizes(schema, "Items", depth)
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    parts = items.get("properties") or {}

    def identity(item: Any) -> bytes:
        if keys and isinstance(item, Mapping):
            defaults = {key: parts.get(key, {}).get("default") for key in keys}
            item = [item.get(key, defaults[key]) for key in keys]
        return orjson.dumps(item, option=orjson.OPT_SORT_KEYS)

    kind = schema.get("x-kubernetes-list-type")
    unique = identity if kind in ("set", "map") or schema.get("uniqueItems") else None
    drawn = _values_of_part(items, depth + 1)
    return st.lists(drawn, min_size=least, max_size=size, unique_by=unique)


def _sizes(schema: Schema, what: str, depth: int) -> tuple[int, int]:
    """The least and the greatest number of items to draw."""
    least, most = int(schema.get(f"min{what}") or 0), schema.get(f"max{what}")
    usual = max(1, ITEMS_MAX - depth // 2)
    return least, max(least, usual if most is None else min(int(most), usual))


# -------------------------------------------------------------------- scalars

# Formats of integers, by their bits.
_BITS = {"int32": 31, "int64": 63}


def _integers(schema: Schema) -> SearchStrategy[int]:
    low, high = _bounds(schema)
    step = schema.get("multipleOf") or 1
    if step != int(step):
        step = 1  # whole multiples of it come by chance
    step = int(step)
    first, last = -(-low // step), high // step
    if first > last:
        return st.nothing()  # a number between two integers, or a contradiction
    return st.integers(first, last).map(lambda n: n * step)


def _bounds(schema: Schema) -> tuple[int, int]:
    """The least and the greatest integer; by default of a usual size."""
    low, high = schema.get("minimum"), schema.get("maximum")
    limit = 2 ** _BITS.get(format_of(dict(schema)), 63)
    least = None if low is None else max(-limit, -int(-low // 1))
    if least == low and schema.get("exclusiveMinimum") and least is not None:
        least += 1
    most = None if high is None else min(limit - 1, int(high // 1))
    if most == high and schema.get("exclusiveMaximum") and most is not None:
        most -= 1
    if least is None:
        least = max(-limit, min(-NUMBER_MAX, (most or 0) - NUMBER_MAX))
    if most is None:
        most = min(limit - 1, max(NUMBER_MAX, least + NUMBER_MAX))
    return least, most


def _numbers(schema: Schema) -> SearchStrategy[float]:
    low, high, step = (
        schema.get(each) for each in ("minimum", "maximum", "multipleOf")
    )
    usual = float(NUMBER_MAX)
    bottom = min(-usual, 2.0 * (high or 0)) if low is None else float(low)
    top = max(usual, 2.0 * bottom) if high is None else float(high)
    if step:
        first, last = int(-(-bottom // step)), int(top // step)
        return st.integers(first, max(first, last)).map(lambda n: n * step)
    return st.floats(
        bottom,
        top,
        exclude_min=bool(schema.get("exclusiveMinimum")) and low is not None,
        exclude_max=bool(schema.get("exclusiveMaximum")) and high is not None,
        allow_nan=False,
        allow_infinity=False,
        allow_subnormal=False,
    )


def _like(pattern: str) -> SearchStrategy[str]:
    return st.from_regex(pattern, fullmatch=True)


def _digits(
    count: int, weights: Sequence[int], base: int, *, begin: str = ""
) -> SearchStrategy[str]:
    """Digits with a check digit: their weighted sum is a multiple of `base`."""

    def checked(found: list[int]) -> str:
        digits = [*map(int, begin), *found]
        pairs = zip(digits, itertools.cycle(weights), strict=False)
        rest = -sum(digit * weight for digit, weight in pairs) % base
        return "".join(map(str, digits)) + ("X" if rest == 10 else str(rest))

    size = count - len(begin)
    return st.lists(st.integers(0, 9), min_size=size, max_size=size).map(checked)


def _luhn() -> SearchStrategy[str]:
    """Numbers of credit cards: every second digit counts twice, by its own digits."""

    def checked(found: list[int]) -> str:
        digits = [4, *found]
        twice = [sum(divmod(2 * digit, 10)) for digit in digits[::2]]
        return "".join(map(str, digits)) + str(-sum([*twice, *digits[1::2]]) % 10)

    return st.lists(st.integers(0, 9), min_size=14, max_size=14).map(checked)


_FORMATS: dict[str, SearchStrategy[str]] = {
    "date-time": st.datetimes().map(lambda at: at.isoformat(timespec="seconds") + "Z"),
    "date": st.dates().map(lambda day: day.isoformat()),
    "duration": st.integers(0, 10_000).map(lambda n: f"{n}s"),
    "byte": st.binary(max_size=12).map(lambda raw: base64.b64encode(raw).decode()),
    "email": _NAMES.map(lambda name: f"{name}@example.com"),
    "hostname": _NAMES.map(lambda name: f"{name}.example.com"),
    "ipv4": st.ip_addresses(v=4).map(str),
    "ipv6": st.ip_addresses(v=6).map(str),
    "cidr": st.ip_addresses(v=4).map(lambda address: f"{address}/32"),
    "mac": _like("[0-9a-f]{2}(:[0-9a-f]{2}){5}"),
    "uri": _NAMES.map(lambda name: f"https://example.com/{name}"),
    "uuid": st.uuids().map(str),
    "uuid3": st.uuids(version=3).map(str),
    "uuid4": st.uuids(version=4).map(str),
    "uuid5": st.uuids(version=5).map(str),
    "hexcolor": _like("#[0-9a-f]{6}"),
    "rgbcolor": _like("rgb\\([1-9]?[0-9],[1-9]?[0-9],[1-9]?[0-9]\\)"),
    "bsonobjectid": _like("[0-9a-f]{24}"),
    "ssn": _like("[0-9]{3}-[0-9]{2}-[0-9]{4}"),
    "creditcard": _luhn(),
    "isbn": _digits(12, (1, 3), 10, begin="978"),
    "isbn10": _digits(9, range(10, 1, -1), 11),
    "isbn13": _digits(12, (1, 3), 10, begin="978"),
    "k8s-short-name": _NAMES,
    "k8s-long-name": _NAMES.map(lambda name: f"{name}.example.com"),
}
_FORMATS["datetime"] = _FORMATS["date-time"]


# controller-gen's pattern of quantities accepts `1e.5`, which no parser accepts: a
# definition with that pattern means quantities.
_NUMBER = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
_LATIN = 0xFF  # the last character of Latin-1
_EXACT = {
    rf"^(\+|-)?{_NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_NUMBER}))?$": PATTERN
}


def _strings(schema: Schema) -> SearchStrategy[str]:
    if "pattern" in schema:
        given = str(schema["pattern"])
        given = _EXACT.get(given, given)
        # Kubernetes searches for the pattern anywhere in the text (RE2, not anchored).
        pattern = re.compile(in_python(given, _LATIN), re.ASCII)
        return st.from_regex(pattern, alphabet=_LETTERS)
    known = _FORMATS.get(format_of(dict(schema)))
    if known is not None:
        return known
    least, most = int(schema.get("minLength") or 0), schema.get("maxLength")
    size = max(least, 20 if most is None else min(int(most), 20))
    return st.text(_LETTERS, min_size=least, max_size=size)
