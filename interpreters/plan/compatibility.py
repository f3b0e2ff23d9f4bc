"""Find the breaking changes between two versions of a CustomResourceDefinition.

A change breaks if it can make stored objects or working clients fail. Examples: a
version stops being served, a valid value is rejected, a field is pruned. Every new rule
counts; only `fnop crd --live` evaluates rules, over stored objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from fnop.effects.values import canonical, same_json, shown

__all__ = ["BreakingChange", "breaking_changes"]

Schema = Mapping[str, Any]

_OPEN = "x-kubernetes-preserve-unknown-fields"
_RULES = "x-kubernetes-validations"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"
_LIST_TYPE, _LIST_KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
# Lower limits, with the value that equals no limit, and upper limits.
_LOWER = {"minimum": None, "minLength": 0, "minItems": 0, "minProperties": 0}
_UPPER = ("maximum", "maxLength", "maxItems", "maxProperties")
_COMBINED = ("allOf", "anyOf", "oneOf", "not")
# Pairs of types: the second type accepts all values of the first.
_WIDER = (
    *(("integer", "number"), ("integer", "int or string")),
    ("string", "int or string"),
)
# Formats that accept all numbers.
_WIDE_FORMATS = ("int64", "float", "double")
# Fields of every object, which a definition need not describe.
_OF_ALL = ("apiVersion", "kind", "metadata")


class BreakingChange(Struct, frozen=True):
    """One change: the version ("" for the whole kind), the field, and why it breaks."""

    version: str
    path: str
    why: str

    def __str__(self) -> str:
        place = " ".join(each for each in (self.version, self.path) if each)
        return f"{place}: {self.why}" if place else self.why


def breaking_changes(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[BreakingChange, ...]:
    """The changes from one CustomResourceDefinition to the next that may break.

    `before` is the definition as applied, or as an API server shows it. The server's
    form also names the versions with stored objects (`status.storedVersions`).

    >>> version = {"name": "v1", "served": True, "storage": True}
    >>> names = {"kind": "Claim", "plural": "claims"}
    >>> old = {"spec": {"names": names, "scope": "Namespaced", "versions": [version]}}
    >>> new = {"spec": {**old["spec"], "versions": [{**version, "name": "v2"}]}}
    >>> [*map(str, breaking_changes(old, new))]
    ['v1: it is no longer served']
    """
    return tuple(_changes(before, after))


def _changes(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[BreakingChange]:
    old, new = before["spec"], after["spec"]
    yield from (BreakingChange("", "", why) for why in _reasons_of_kinds(old, new))
    versions = {each["name"]: each for each in new["versions"]}
    stored = (before.get("status") or {}).get("storedVersions") or ()
    for each in old["versions"]:
        name, found = each["name"], versions.get(each["name"])
        if found is None and name in stored:
            why = "it is dropped, and objects are stored in it: the API server refuses"
            yield BreakingChange(name, "", f"{why} that")
        elif each.get("served") and not (found and found.get("served")):
            yield BreakingChange(name, "", "it is no longer served")
        elif found is not None and (each.get("served") or name in stored):
            yield from (
                BreakingChange(name, path or "the object", why)
                for path, why in _changes_of_schemas(_schema(each), _schema(found), "")
            )
            yield from (
                BreakingChange(name, "", why)
                for why in _reasons_besides_schema(each, found)
            )


def _reasons_of_kinds(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    if old.get("scope") != new.get("scope"):
        why = f"the scope is {new.get('scope')}, and was {old.get('scope')}"
        yield f"{why}; it cannot be changed"
    for name in ("kind", "plural"):
        was, now = old["names"].get(name), new["names"].get(name)
        if was != now:
            yield f"the {name} is {now!r}, and was {was!r}"
    converts = [(e.get("conversion") or {}).get("strategy") for e in (old, new)]
    if converts[0] == "Webhook" and converts[1] != "Webhook":
        yield "versions are no longer converted by a webhook"


def _reasons_besides_schema(
    old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[str]:
    """The reasons, apart from the schema, why clients of a version may fail."""
    was, now = (each.get("subresources") or {} for each in (old, new))
    for name in ("status", "scale"):
        if name in was and name not in now:
            yield f"the {name} subresource is gone"
    if "status" in now and "status" not in was:
        yield "the status has a subresource now: writes of the object leave it as it is"
    paths = [
        {e.get("jsonPath") for e in each.get("selectableFields") or ()}
        for each in (old, new)
    ]
    for path in sorted(map(str, paths[0] - paths[1])):
        yield f"field selectors no longer know {path}"


def _schema(version: Mapping[str, Any]) -> Schema:
    """The schema of a version, without the fields of every object."""
    found = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    fields = found.get("properties") or {}
    return {
        **found,
        "properties": {k: v for k, v in fields.items() if k not in _OF_ALL},
        "required": [e for e in found.get("required") or () if e not in _OF_ALL],
    }


def _changes_of_schemas(
    old: Schema, new: Schema, path: str
) -> Iterator[tuple[str, str]]:
    """The fields that now reject or prune some values, each with the reason."""
    if not old or canonical(dict(old)) == canonical(dict(new)):
        return
    yield from ((path, why) for why in _reasons_of_values(old, new))
    yield from _changes_of_fields(old, new, path)
    was, now = old.get("items"), new.get("items")
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        yield from _changes_of_schemas(was, now, f"{path}[]")
    elif isinstance(now, Mapping) and now and not was:
        yield f"{path}[]", "its values have a schema now"


def _reasons_of_values(old: Schema, new: Schema) -> Iterator[str]:
    """The reasons why a value of this schema may no longer be valid."""
    was, now = _type(old), _type(new)
    if was != now and now and (was, now) not in _WIDER:
        yield f"the type is {now}, and was {was or 'any'}"
    if old.get("nullable") and not new.get("nullable"):
        yield "null is no longer valid"
    yield from _reasons_of_enums(old, new)
    yield from _reasons_of_limits(old, new)
    yield from _reasons_of_forms(old, new)
    known = {_rule(each) for each in old.get(_RULES) or ()}
    for each in new.get(_RULES) or ():
        if _rule(each) not in known:
            yield f"the rule {shown(each.get('rule'))} is new"
    for name in _COMBINED:
        if name in new and not same_json(new[name], old.get(name)):
            yield f"{name} is new, or another one"


def _rule(given: Mapping[str, Any]) -> str:
    return " ".join(str(given.get("rule")).split())


def _reasons_of_enums(old: Schema, new: Schema) -> Iterator[str]:
    if "enum" not in new:
        return
    possible = [True, False] if _type(old) == "boolean" else None
    before = old.get("enum", possible)
    if before is None:
        yield f"only {', '.join(map(shown, new['enum']))} are valid now"
        return
    lost = [e for e in before if not any(_is_equal(e, other) for other in new["enum"])]
    if lost:
        yield f"{', '.join(map(shown, lost))} are no longer valid"


def _is_equal(one: Any, other: Any) -> bool:
    numbers = [
        isinstance(e, (int, float)) and not isinstance(e, bool) for e in (one, other)
    ]
    return bool(one == other) if all(numbers) else same_json(one, other)


def _reasons_of_limits(old: Schema, new: Schema) -> Iterator[str]:
    for name, least in _LOWER.items():
        before = old.get(name, least)
        if new.get(name) is not None and (before is None or new[name] > before):
            yield f"{name} is {new[name]}{_former_value(old, name)}"
    for name in _UPPER:
        before = old.get(name)
        if new.get(name) is not None and (before is None or new[name] < before):
            yield f"{name} is {new[name]}{_former_value(old, name)}"
    for side, limit in (
        ("exclusiveMinimum", "minimum"),
        ("exclusiveMaximum", "maximum"),
    ):
        same = old.get(limit) == new.get(limit)
        if new.get(side) and not old.get(side) and same:
            yield f"{side} is new"
    factor, before = new.get("multipleOf"), old.get("multipleOf")
    if factor is not None and (before is None or before % factor):
        yield f"multipleOf is {factor}{_former_value(old, 'multipleOf')}"


def _reasons_of_forms(old: Schema, new: Schema) -> Iterator[str]:
    if new.get("pattern") is not None and new["pattern"] != old.get("pattern"):
        yield f"pattern is {shown(new['pattern'])}{_former_value(old, 'pattern')}"
    form = new.get("format")
    if form is not None and form != old.get("format") and form not in _WIDE_FORMATS:
        yield f"format is {shown(form)}{_former_value(old, 'format')}"
    if new.get("uniqueItems") and not old.get("uniqueItems"):
        yield "uniqueItems is new"
    for name, usual in ((_LIST_TYPE, "atomic"), (_LIST_KEYS, None)):
        now = new.get(name, usual)
        if now != usual and not same_json(now, old.get(name, usual)):
            yield f"{name} is {now}{_former_value(old, name)}"
    if new.get(_EMBEDDED) and not old.get(_EMBEDDED):
        yield "it has to be a whole object now, with apiVersion and kind"


def _former_value(old: Schema, name: str) -> str:
    return f", and was {shown(old[name])}" if old.get(name) is not None else ""


def _type(schema: Schema) -> str:
    return "int or string" if schema.get(_INT_OR_STRING) else schema.get("type", "")


def _changes_of_fields(
    old: Schema, new: Schema, path: str
) -> Iterator[tuple[str, str]]:
    """The fields that are now required or pruned, and those within them."""
    before, after = old.get("properties") or {}, new.get("properties") or {}
    filled_before = _filled_by_clients(old)
    for name in sorted(_filled_by_clients(new)):
        if name not in filled_before:
            yield _path_within(path, name), "it is required now, and has no default"
    yield from _changes_of_others(old, new, path)
    others = new.get("additionalProperties")
    for name, schema in before.items():
        field = _path_within(path, name)
        if name in after:
            yield from _changes_of_schemas(schema, after[name], field)
        elif isinstance(others, Mapping):
            yield from _changes_of_schemas(schema, others, field)
        elif not _is_open(new):
            yield field, "it is gone: stored values are pruned"
    for name in sorted({*after} - {*before}):
        if _is_open(old) and after[name]:
            yield _path_within(path, name), "it has a schema now"


def _filled_by_clients(schema: Schema) -> list[str]:
    """The required fields that have no default."""
    fields = schema.get("properties") or {}
    return [
        name
        for name in schema.get("required") or ()
        if (fields.get(name) or {}).get("default") is None
    ]


def _changes_of_others(
    old: Schema, new: Schema, path: str
) -> Iterator[tuple[str, str]]:
    """The changes for fields that the schema does not name."""
    was, now = old.get("additionalProperties"), new.get("additionalProperties")
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        yield from _changes_of_schemas(was, now, _path_within(path, "*"))
    if _is_open(new) or not (_is_open(old) or isinstance(was, Mapping)):
        return
    if isinstance(now, Mapping):
        if _is_open(old):
            yield path, "its values have a schema now"
    elif _is_open(old) or not new.get("properties"):
        yield path, "unknown fields are pruned now"
    else:
        yield path, "values by other names are pruned now"


def _is_open(schema: Schema) -> bool:
    """Whether fields without a schema are kept."""
    return bool(schema.get(_OPEN)) or schema.get("additionalProperties") is True


def _path_within(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
