"""Breaking changes of a definition (CRD): what the one before it accepted or served.

A change breaks if an object that is stored, or a client that works, may fail with it:
a version is no longer served, a value is no longer valid, a field is pruned.  New
rules are not evaluated here; whoever has objects asks whether these are valid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fnop.effects.values import canonical, shown

__all__ = ["BreakingChange", "breaking_changes"]

Schema = Mapping[str, Any]

_OPEN = "x-kubernetes-preserve-unknown-fields"
_RULES = "x-kubernetes-validations"
_INT_OR_STRING = "x-kubernetes-int-or-string"
# Limits that allow less if they are raised, and if they are lowered.
_LOWER = ("minimum", "minLength", "minItems", "minProperties")
_UPPER = ("maximum", "maxLength", "maxItems", "maxProperties")
# Types that take all values of another one.
_WIDER = (
    *(("integer", "number"), ("integer", "int or string")),
    ("string", "int or string"),
)
_EXACT = ("pattern", "format", "multipleOf", "x-kubernetes-list-type")


class BreakingChange(NamedTuple):
    """One change: the version, "" for all of the kind, the field, and why it breaks."""

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

    `before` is as it was applied, or as an API server shows it; of that, versions with
    stored objects are known (`status.storedVersions`).

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
    if old.get("scope") != new.get("scope"):
        why = f"the scope is {new.get('scope')}, and was {old.get('scope')}"
        yield BreakingChange("", "", f"{why}; it cannot be changed")
    for name in ("kind", "plural"):
        was, now = old["names"].get(name), new["names"].get(name)
        if was != now:
            yield BreakingChange("", "", f"the {name} is {now!r}, and was {was!r}")
    versions = {each["name"]: each for each in new["versions"]}
    stored = (before.get("status") or {}).get("storedVersions") or ()
    for each in old["versions"]:
        name, found = each["name"], versions.get(each["name"])
        if found is None and name in stored:
            why = "it is dropped, and objects are stored in it: the API server refuses"
            yield BreakingChange(name, "", f"{why} that")
        elif each.get("served") and not (found and found.get("served")):
            yield BreakingChange(name, "", "it is no longer served")
        elif found is not None:
            yield from (
                BreakingChange(name, path or "the object", why)
                for path, why in _of_schemas(_schema(each), _schema(found), "")
            )
            if _status(each) and not _status(found):
                yield BreakingChange(name, "", "the status subresource is gone")


def _schema(version: Mapping[str, Any]) -> Schema:
    return (version.get("schema") or {}).get("openAPIV3Schema") or {}


def _status(version: Mapping[str, Any]) -> bool:
    return "status" in (version.get("subresources") or {})


def _of_schemas(old: Schema, new: Schema, path: str) -> Iterator[tuple[str, str]]:
    """The fields of which some values are no longer valid, or kept, each with why."""
    if not old or canonical(dict(old)) == canonical(dict(new)):
        return
    yield from ((path, why) for why in _of_values(old, new))
    yield from _of_fields(old, new, path)
    was, now = old.get("additionalProperties"), new.get("additionalProperties")
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        yield from _of_schemas(was, now, f"{path}.*" if path else "*")
    was, now = old.get("items"), new.get("items")
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        yield from _of_schemas(was, now, f"{path}[]")


def _of_values(old: Schema, new: Schema) -> Iterator[str]:
    """The reasons why a value of this schema may no longer be valid."""
    was, now = _type(old), _type(new)
    if was != now and now and (was, now) not in _WIDER:
        yield f"the type is {now}, and was {was or 'any'}"
    if old.get("nullable") and not new.get("nullable"):
        yield "null is no longer valid"
    yield from _of_enums(old, new)
    yield from _of_limits(old, new)
    known = {each.get("rule") for each in old.get(_RULES) or ()}
    for each in new.get(_RULES) or ():
        if each.get("rule") not in known:
            yield f"the rule {shown(each.get('rule'))} is new"


def _of_enums(old: Schema, new: Schema) -> Iterator[str]:
    if "enum" not in new:
        return
    values = [canonical(each) for each in new["enum"]]
    lost = [e for e in old.get("enum", ()) if canonical(e) not in values]
    if "enum" not in old:
        yield f"only {', '.join(map(shown, new['enum']))} are valid now"
    elif lost:
        yield f"{', '.join(map(shown, lost))} are no longer valid"


def _of_limits(old: Schema, new: Schema) -> Iterator[str]:
    for name in _LOWER:
        if new.get(name) is not None and new[name] > old.get(name, float("-inf")):
            yield f"{name} is {new[name]}{_was(old, name)}"
    for name in _UPPER:
        if new.get(name) is not None and new[name] < old.get(name, float("inf")):
            yield f"{name} is {new[name]}{_was(old, name)}"
    for name in _EXACT:
        if new.get(name) is not None and new[name] != old.get(name):
            yield f"{name} is {shown(new[name])}{_was(old, name)}"
    for name in ("exclusiveMinimum", "exclusiveMaximum", "uniqueItems"):
        if new.get(name) and not old.get(name):
            yield f"{name} is new"


def _was(old: Schema, name: str) -> str:
    return f", and was {shown(old[name])}" if old.get(name) is not None else ""


def _type(schema: Schema) -> str:
    return "int or string" if schema.get(_INT_OR_STRING) else schema.get("type", "")


def _of_fields(old: Schema, new: Schema, path: str) -> Iterator[tuple[str, str]]:
    """The fields that are required now, that are pruned, and those within them."""
    before, after = old.get("properties") or {}, new.get("properties") or {}
    required = {*(new.get("required") or ())} - {*(old.get("required") or ())}
    for name in sorted(required):
        field = f"{path}.{name}".lstrip(".")
        if "default" not in (after.get(name) or {}):
            yield field, "it is required now, and has no default"
    is_open = bool(new.get(_OPEN)) or "additionalProperties" in new
    if old.get(_OPEN) and not is_open:
        yield path, "unknown fields are pruned now"
    for name, schema in before.items():
        field = f"{path}.{name}".lstrip(".")
        if name in after:
            yield from _of_schemas(schema, after[name], field)
        elif not is_open:
            yield field, "it is gone: stored values are pruned"
