"""CustomResourceDefinitions of an author's classes, as objects and as YAML.

The classes are marked by `fnop.definition`; their types become schemas in
`fnop.adapters.definitions.type_schemas`. The simulated API server, which has the rules
of a real one, judges each definition before it is returned.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import yaml

from fnop.adapters.common.manifests import ManifestProblem, parse_yaml
from fnop.adapters.common.plain import acts, escaped
from fnop.adapters.definitions.problems import DefinitionProblem
from fnop.adapters.definitions.type_fields import is_record
from fnop.adapters.definitions.type_schemas import OBJECT, rule_of, schema_of_class
from fnop.core.api.definitions import Column, Definition, definition_of
from fnop.core.api.resources import version_rank
from fnop.effects.regexes import regex
from fnop.effects.structs import replace
from fnop.interpreters.cluster import answer, empty_cluster
from fnop.interpreters.runtime.clock import EPOCH
from fnop.interpreters.runtime.protocol import ApiRequest

__all__ = [
    "DefinitionProblem",
    "definition_of_version",
    "definitions_of",
    "definitions_yaml",
    "warnings_about",
]

Object = dict[str, Any]

_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_KEEPS = "x-kubernetes-preserve-unknown-fields"
# The server itself defines these fields for every object.
_OF_EVERY_OBJECT = ("apiVersion", "kind", "metadata")


def definitions_of(classes: Iterable[type]) -> list[Object]:
    """The CustomResourceDefinitions of classes that are kinds, sorted by name.

    Raises `DefinitionProblem` if no definition can be made of a class, or if an API
    server would refuse it.
    """
    marked = [(each, found) for each in classes if (found := definition_of(each))]
    marked.sort(key=lambda pair: (_name(pair[1]), version_rank(pair[1].version)))
    return [
        _checked(_definition([*versions]), [cls for cls, _ in versions])
        for versions in (
            [*same] for _, same in groupby(marked, key=lambda pair: _name(pair[1]))
        )
    ]


def definition_of_version(cls: type) -> Object:
    """The CustomResourceDefinition that a class alone would have, as the only version.

    Raises `DefinitionProblem`, also for a class that is not a kind.
    """
    found = definition_of(cls)
    if found is None:
        raise DefinitionProblem(
            f"{cls.__qualname__} is not a kind; decorate it with "
            "@fnop.definition('databases.v1.example.com')"
        )
    return _checked(_definition([(cls, replace(found, storage=True))]), [cls])


def _name(found: Definition) -> str:
    return f"{found.plural}.{found.group}"


# --------------------------------------------------------------------- definitions

Versions = list[tuple[type, Definition]]


def _definition(versions: Versions) -> Object:
    _check_alike(versions)
    found = versions[0][1]
    names = {
        "kind": found.kind,
        "plural": found.plural,
        "singular": found.singular,
        "shortNames": [*found.short_names],
        "categories": [*found.categories],
    }
    stored = _stored_version(versions)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": _name(found)},
        "spec": {
            "group": found.group,
            "scope": found.scope,
            "names": _without_empty(names),
            "versions": [
                _version(cls, each, stored=each is stored) for cls, each in versions
            ],
        },
    }


def _without_empty(parts: Object) -> Object:
    return {name: part for name, part in parts.items() if part not in (None, "", [])}


_ALIKE = ("kind", "singular", "scope", "short_names", "categories")


def _check_alike(versions: Versions) -> None:
    """Refuse versions of a kind that disagree about the kind as a whole."""
    first_class, first = versions[0]
    for cls, each in versions[1:]:
        if each.version == first.version:
            raise DefinitionProblem(
                f"{first_class.__qualname__} and {cls.__qualname__} are both "
                f"{each.key}; give each its own version, or remove one"
            )
        for name in _ALIKE:
            if getattr(each, name) != getattr(first, name):
                raise DefinitionProblem(
                    f"{cls.__qualname__} has {name}={getattr(each, name)!r} and "
                    f"{first_class.__qualname__} {name}={getattr(first, name)!r}, but "
                    "the versions of a kind share it; write it alike in both"
                )
        first_class, first = cls, each


def _stored_version(versions: Versions) -> Definition:
    """The version that is stored: the only one, or the one marked as stored."""
    marked = [each for _, each in versions if each.storage]
    if len(versions) == 1 and versions[0][1].storage is None:
        marked = [versions[0][1]]
    if len(marked) != 1:
        names = ", ".join(cls.__qualname__ for cls, _ in versions)
        have = "none is" if not marked else f"{len(marked)} are"
        raise DefinitionProblem(
            f"{_name(versions[0][1])}: of its versions ({names}) {have} marked as "
            "stored; give storage=True to one"
        )
    return marked[0]


def _version(cls: type, found: Definition, *, stored: bool) -> Object:
    parts: Object = {"name": found.version, "served": found.served, "storage": stored}
    if found.deprecated:
        parts["deprecated"] = True
    if isinstance(found.deprecated, str) and found.deprecated:
        parts["deprecationWarning"] = found.deprecated
    parts["subresources"] = {"status": {}}
    if found.scale is not None:
        parts["subresources"]["scale"] = _without_empty(
            {
                "specReplicasPath": found.scale.spec,
                "statusReplicasPath": found.scale.status,
                "labelSelectorPath": found.scale.selector,
            }
        )
    if found.columns:
        parts["additionalPrinterColumns"] = [*map(_column, found.columns)]
    if found.selectable:
        parts["selectableFields"] = [{"jsonPath": each} for each in found.selectable]
    parts["schema"] = {"openAPIV3Schema": _in_order(_schema(cls, found))}
    return parts


def _column(column: Column) -> Object:
    return _without_empty(
        {
            "name": column.name,
            "type": column.type,
            "format": column.format,
            "description": column.description,
            "priority": column.priority or None,
            "jsonPath": column.path,
        }
    )


# ------------------------------------------------------------------------- schemas


def _schema(cls: type, found: Definition) -> Object:
    """The schema of whole objects."""
    if not is_record(cls):
        raise DefinitionProblem(
            f"{cls.__qualname__} has no fields that can be read; make it a dataclass, "
            "a TypedDict, or a model of pydantic"
        )
    schema = schema_of_class(cls, without=_OF_EVERY_OBJECT)
    properties = schema.setdefault("properties", {})
    properties["status"] = _status(cls, properties.get("status", dict(OBJECT)))
    if found.conditions:
        known = properties["status"].setdefault("properties", {})
        if "conditions" in known:
            raise DefinitionProblem(
                f"{cls.__qualname__}.status: it has conditions of its own, and "
                "conditions=True would define them; leave one out"
            )
        known["conditions"] = _CONDITIONS
    required = [each for each in schema.pop("required", ()) if each != "status"]
    if required:
        schema["required"] = required
    if found.rules:
        rules = schema.setdefault("x-kubernetes-validations", [])
        rules += map(rule_of, found.rules)
    return schema


def _status(cls: type, status: Object) -> Object:
    """The schema of a status, which an operator writes piece by piece.

    fnop keeps its own state there (`fnop.core.memory.storage`), and the results of
    handlers. No schema knows their names beforehand, so unknown fields are kept. The
    state may be there before any other field, so no field can be required. A default by
    the server would be a status that was never observed.
    """
    if status.get("type", "object") != "object":
        raise DefinitionProblem(
            f"{cls.__qualname__}.status: a status is an object; make its type a class"
        )
    status = {
        name: part
        for name, part in status.items()
        if name not in ("required", "default", "additionalProperties")
    }
    if "properties" in status:
        status["properties"] = {
            name: {key: value for key, value in part.items() if key != "default"}
            for name, part in status["properties"].items()
        }
    return {**status, **OBJECT}


# metav1.Condition of k8s.io/apimachinery, with its limits.
_TYPE = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
_CONDITION: Object = {
    "type": "object",
    "required": ["type", "status", "lastTransitionTime", "reason", "message"],
    "properties": {
        "type": {"type": "string", "maxLength": 316, "pattern": _TYPE},
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "reason": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
            "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        },
        "message": {"type": "string", "maxLength": 32768},
    },
}
_CONDITIONS: Object = {
    "description": "The object's present conditions, one of each type.",
    "type": "array",
    "items": _CONDITION,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
}

# The order of a schema's keywords, as people write it; others follow by name.
_FIRST = (
    *("description", "type", "format", "enum", "default", "nullable"),
    *("pattern", "minLength", "maxLength"),
    *("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"),
    *("minItems", "maxItems", "minProperties", "maxProperties"),
    *("required", "properties", "items", "additionalProperties"),
    *("x-kubernetes-list-type", "x-kubernetes-list-map-keys"),
)
_RANKS = {keyword: rank for rank, keyword in enumerate(_FIRST)}


def _in_order(schema: Object) -> Object:
    keys = sorted(schema, key=lambda key: (_RANKS.get(key, len(_RANKS)), key))
    found = {key: schema[key] for key in keys}
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), dict):
            found[key] = _in_order(found[key])
    if "properties" in found:
        parts = found["properties"].items()
        found["properties"] = {name: _in_order(part) for name, part in parts}
    return found


# ------------------------------------------------------------------------ checking


def _post_definition(definition: Mapping[str, Any]) -> Any:
    """The response of an API server to a new definition."""
    body = json.loads(json.dumps(definition))
    _, response, _ = answer(
        empty_cluster(now=EPOCH), ApiRequest("POST", _PATH, (), body), EPOCH
    )
    return response


def warnings_about(definition: Mapping[str, Any]) -> tuple[str, ...]:
    """The warnings of an API server that accepts a definition."""
    found: tuple[str, ...] = _post_definition(definition).warnings
    return found


def _checked(definition: Object, classes: Sequence[type]) -> Object:
    """The definition; raises `DefinitionProblem` if a server would refuse it."""
    response = _post_definition(definition)
    if response.status < 300:
        return definition
    causes = (response.body.get("details") or {}).get("causes") or ()
    for cause in causes:
        where = _place(cause.get("field") or "", definition, classes)
        # A fault in a rule has a drawing of the place after its first line.
        why = (cause.get("message") or "").partition("\n")[0]
        raise DefinitionProblem(f"{where}: an API server would refuse it: {why}")
    raise DefinitionProblem(
        f"{definition['metadata']['name']}: an API server would refuse it: "
        f"{response.body.get('message')}"
    )


_VERSION = regex(r"spec\.versions\[(\d+)\]\.?")
_SCHEMA = regex(r"(spec\.validation|schema)\.openAPIV3Schema\.?")
_PART = regex(r"properties\[([^\]]*)\]")


def _place(field: str, definition: Object, classes: Sequence[type]) -> str:
    """A field of a definition in terms of the classes: `Database.spec.keep: default`.

    If all versions are alike, the server names none of them. Then the first stands for
    all.
    """
    found = _VERSION.match(field)
    cls = classes[int(found[1])] if found else classes[0]
    inside = field[found.end() :] if found else field
    schema = _SCHEMA.match(inside)
    if schema is None:
        return f"{cls.__qualname__} ({field})"
    rest = inside[schema.end() :]
    path = ".".join([cls.__qualname__, *_PART.findall(rest)])
    keyword = _PART.split(rest)[-1].strip(".")
    return f"{path} ({keyword})" if keyword else path


# ---------------------------------------------------------------------------- YAML


class _Dumper(yaml.SafeDumper):
    """YAML as people write it: indented lists, and short ones in brackets."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


_LINE_LENGTH_MAX = 88


def _represent_list(dumper: _Dumper, items: list[Any]) -> Any:
    is_short = not any(isinstance(each, (dict, list)) for each in items) and (
        sum(len(str(each)) + 2 for each in items) < _LINE_LENGTH_MAX
    )
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, is_short)


def _represent_text(dumper: _Dumper, text: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, _style(text))


def _style(text: str) -> str | None:
    """The quotes of a text; "" if it is safe without quotes."""
    if acts(text):
        return '"'  # the only style that can escape characters
    if "\n" in text:
        return "|"
    if '"' in text or "\\" in text:
        return "'"
    if re.search(r"[\[\]{}^$]", text) or not _is_read_as_text(text):
        return '"'
    return None


def _is_read_as_text(text: str) -> bool:
    """Whether kubectl reads the plain text as text, unlike `yes` and `1e3`."""
    try:
        return bool(parse_yaml(text) == text)
    except ManifestProblem:
        return False


_Dumper.add_representer(list, _represent_list)
_Dumper.add_representer(str, _represent_text)


def definitions_yaml(definitions: Iterable[Object]) -> str:
    """The definitions as YAML documents; they and their fields keep their order."""
    return "---\n".join(
        escaped(
            yaml.dump(
                each,
                Dumper=_Dumper,
                sort_keys=False,
                allow_unicode=True,
                default_flow_style=False,
                width=2**31 - 1,
            )
        )
        for each in definitions
    )
