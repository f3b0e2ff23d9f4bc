"""The marks that turn an author's classes into kinds (CustomResourceDefinitions).

A class with a `Definition` is a kind: decorators of handlers accept it as the name, and
`fnop crd` prints its CustomResourceDefinition. The other marks are parts of one. The
translation of types is in `fnop.adapters.definitions.type_schemas`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import (
    Annotated,
    Any,
    Literal,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
)

from msgspec import Struct

from fnop.core.kubernetes.quantities import PATTERN
from fnop.core.values.errors import RegistrationError, hint_of
from fnop.effects.regexes import regex
from fnop.effects.structs import replace

__all__ = [
    "OPTIONS",
    "Column",
    "Definition",
    "Given",
    "IntOrString",
    "Quantity",
    "Rule",
    "Scale",
    "Schema",
    "column",
    "definition",
    "definition_of",
    "named",
    "rule",
    "scale",
    "schema",
    "schema_marks",
]

# pytest omits these frames from tracebacks, and shows the author's line.
__tracebackhide__ = True

Class = TypeVar("Class", bound=type)
Part = TypeVar("Part")
_DEFINITION, _SCHEMAS = "__fnop_definition__", "__fnop_schemas__"


# ------------------------------------------------------------------ parts of kinds


class Rule(Struct, frozen=True):
    """A CEL rule, as an entry of `x-kubernetes-validations`."""

    rule: str
    message: str | None
    message_expression: str | None
    reason: str | None
    field_path: str | None
    optional_old_self: bool | None


def rule(
    rule: str,
    message: str | None = None,
    *,
    message_expression: str | None = None,
    reason: str | None = None,
    field_path: str | None = None,
    optional_old_self: bool | None = None,
) -> Rule:
    """A CEL rule for writes, which the API server checks (Kubernetes 1.25 and later).

    `rule` is an expression about `self`, the value that has the rule. A rule that names
    `oldSelf` is about changes, with `optional_old_self` also about creations. `message`
    explains the error to a user, `message_expression` computes such a text. `reason`
    and `field_path` go into the refusal.

    >>> rule("self.low <= self.high", "low is not above high").message
    'low is not above high'
    """
    return Rule(
        rule, message, message_expression, reason, field_path, optional_old_self
    )


class Column(Struct, frozen=True):
    """A column of `kubectl get`."""

    name: str
    path: str
    type: str
    description: str | None
    format: str | None
    priority: int


def column(
    name: str,
    path: str,
    *,
    type: Literal["boolean", "date", "integer", "number", "string"] = "string",
    description: str | None = None,
    format: str | None = None,
    priority: int = 0,
) -> Column:
    """A column of `kubectl get`.

    `name` is its heading, `path` is a JSON path in the object. `type` is the type of
    the values; a "date" is shown as an age. `description` is for people, `format` is as
    in a schema. `kubectl` shows columns with a `priority` above 0 only with `-o wide`.

    >>> column("Age", ".metadata.creationTimestamp", type="date").type
    'date'
    """
    return Column(name, path, type, description, format, priority)


class Scale(Struct, frozen=True):
    """The paths of the scale subresource."""

    spec: str
    status: str
    selector: str | None


def scale(*, spec: str, status: str, selector: str | None = None) -> Scale:
    """The scale subresource, for `kubectl scale` and autoscalers.

    `spec` is the path of the desired number of replicas, `status` is the path of the
    present number. `selector` is the path of a text that selects the pods, which
    autoscalers need.

    >>> scale(spec=".spec.replicas", status=".status.replicas").selector is None
    True
    """
    return Scale(spec, status, selector)


# ------------------------------------------------------------------------- schemas


class Given:
    """A value that was passed; equal only to itself, so that a mark can be hashed."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)


class SchemaOptions(TypedDict, total=False):
    """The options of `fnop.schema`."""

    name: str
    description: str
    default: Any
    rules: Sequence[Rule]
    format: str
    nullable: bool
    minimum: float
    maximum: float
    exclusive_minimum: float
    exclusive_maximum: float
    multiple_of: float
    pattern: str
    min_length: int
    max_length: int
    min_items: int
    max_items: int
    min_properties: int
    max_properties: int
    list_type: Literal["atomic", "set", "map"]
    list_keys: Sequence[str]
    map_type: Literal["atomic", "granular"]
    preserve_unknown: bool
    embedded: bool


# The schema keyword for each option that becomes one unchanged.
_KEYWORDS = {
    "description": "description",
    "format": "format",
    "nullable": "nullable",
    "minimum": "minimum",
    "maximum": "maximum",
    "exclusive_minimum": "minimum",
    "exclusive_maximum": "maximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_properties": "minProperties",
    "max_properties": "maxProperties",
    "list_type": "x-kubernetes-list-type",
    "list_keys": "x-kubernetes-list-map-keys",
    "map_type": "x-kubernetes-map-type",
    "preserve_unknown": "x-kubernetes-preserve-unknown-fields",
    "embedded": "x-kubernetes-embedded-resource",
}
OPTIONS = {keyword: option for option, keyword in reversed(_KEYWORDS.items())} | {
    "exclusiveMinimum": "exclusive_minimum",
    "exclusiveMaximum": "exclusive_maximum",
}
"""The option of `fnop.schema` for each keyword."""

# OpenAPI 3.0: a limit, and an accompanying flag that excludes the limit itself.
_FLAGS = {
    "exclusive_minimum": "exclusiveMinimum",
    "exclusive_maximum": "exclusiveMaximum",
}


class Schema(Struct, frozen=True):
    """A mark of a type: keywords of its schema, by their names in OpenAPI."""

    keywords: tuple[tuple[str, Any], ...] = ()
    name: str | None = None
    default: Given | None = None
    rules: tuple[Rule, ...] = ()

    @property
    def renames(self) -> str | None:
        """The name of the field in objects (`fnop.effects.hints.named`)."""
        return self.name

    def __call__(self, cls: Class) -> Class:
        """Mark a class; all fields of this type then have the mark."""
        if not isinstance(cls, type):
            raise RegistrationError(
                f"@fnop.schema(...) decorates classes, and {cls!r:.60} is none; a "
                "field has it in its type: Annotated[str, fnop.schema(...)]"
            )
        if self.name is not None or self.default is not None:
            raise RegistrationError(
                f"@fnop.schema of the class {cls.__qualname__}: name= and default= are "
                "those of one field; write them in its type"
            )
        setattr(cls, _SCHEMAS, (*schema_marks(cls), self))
        return cls


_SAMPLES: dict[type, str] = {
    str: "['db']",
    Column: "[fnop.column('Size', '.spec.size')]",
    Rule: "[fnop.rule('self.low <= self.high')]",
}


def _check_parts(
    kind: type[Part], given: Sequence[Part], label: str
) -> tuple[Part, ...]:
    """Return the given parts; raise `RegistrationError` for others.

    A text in place of a list of texts would be a list of letters.
    """
    parts = None if isinstance(given, (str, kind)) else tuple(given)
    if parts is None or not all(isinstance(each, kind) for each in parts):
        raise RegistrationError(
            f"{label} takes a list, such as {_SAMPLES[kind]}, not {given!r:.60}"
        )
    return parts


def schema(**options: Unpack[SchemaOptions]) -> Schema:
    """A mark that describes a field beyond its type: limits, texts, rules.

    It is in the type of a field, `Annotated[int, fnop.schema(minimum=1)]`, or decorates
    the class of an object inside of others. The `options` are

    - `name`: the field's name in objects, if Python does not allow it; `description`;
      `default`, if the class cannot define it; `rules`, of `fnop.rule`;
    - `format`, such as "email"; `nullable`: null is a valid value, and stays;
    - of numbers `minimum`, `maximum`, `exclusive_minimum`, `exclusive_maximum`,
      `multiple_of`;
    - of texts `pattern`, `min_length`, `max_length`;
    - of lists `min_items`, `max_items`; `list_type`: "atomic", "set", or "map" of
      `list_keys`, so that several clients may write one list by server-side apply;
    - of objects `min_properties`, `max_properties`; `map_type`; `preserve_unknown`:
      unnamed fields are kept; `embedded`: it is itself a Kubernetes object, with a kind
      and metadata.

    Raises `RegistrationError` for other options.

    >>> schema(exclusive_minimum=0).keywords
    (('minimum', 0), ('exclusiveMinimum', True))
    """
    keywords: dict[str, Any] = {}
    for option, value in options.items():
        if option in _KEYWORDS:
            frozen = tuple(value) if isinstance(value, list) else value
            keywords[_KEYWORDS[option]] = frozen
        elif option not in SchemaOptions.__annotations__:
            hint = hint_of(option, SchemaOptions.__annotations__)
            raise RegistrationError(f"fnop.schema has no option {option!r}; {hint}")
        if option in _FLAGS:
            keywords[_FLAGS[option]] = True
    default = Given(options["default"]) if "default" in options else None
    rules = _check_parts(Rule, options.get("rules", ()), "fnop.schema: rules=")
    return Schema(tuple(keywords.items()), options.get("name"), default, rules)


def schema_marks(cls: type) -> tuple[Schema, ...]:
    """The marks that decorators have put on the class itself."""
    found: tuple[Schema, ...] = vars(cls).get(_SCHEMAS, ())
    return found


IntOrString: TypeAlias = int | str
"""A number or a text, as ports and percentages are: `port: fnop.IntOrString = "http"`.

The schema has `x-kubernetes-int-or-string`.
"""

Quantity: TypeAlias = Annotated[int | str, schema(pattern=PATTERN)]
"""An amount with a unit, as of memory: `storage: fnop.Quantity = "10Gi"`.

`fnop.quantity` is the number that it stands for.
"""


# ---------------------------------------------------------------------- kinds


class Definition(Struct, frozen=True):
    """One version of a kind."""

    plural: str
    version: str
    group: str
    kind: str
    singular: str
    scope: str
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    columns: tuple[Column, ...]
    scale: Scale | None
    rules: tuple[Rule, ...]
    selectable: tuple[str, ...]
    conditions: bool
    storage: bool | None
    served: bool
    deprecated: bool | str

    @property
    def key(self) -> str:
        """`plural.version.group`, as a selector."""
        return f"{self.plural}.{self.version}.{self.group}"

    @property
    def api_version(self) -> str:
        """`group/version`."""
        return f"{self.group}/{self.version}"

    def with_names_of(self, cls: type) -> Definition:
        """Name the kind and its singular after a class if the author named neither."""
        kind = self.kind or cls.__name__
        return replace(self, kind=kind, singular=self.singular or kind.lower())


_NAME = regex(
    r"([a-z0-9-]+)\.(v[0-9]+(?:(?:alpha|beta)[0-9]+)?)\.([a-z0-9-]+(?:\.[a-z0-9-]+)+)"
)
_SCOPES = ("Namespaced", "Cluster")


def definition(
    name: str,
    *,
    kind: str | None = None,
    singular: str | None = None,
    short_names: Sequence[str] = (),
    categories: Sequence[str] = (),
    scope: Literal["Namespaced", "Cluster"] = "Namespaced",
    columns: Sequence[Column] = (),
    scale: Scale | None = None,
    rules: Sequence[Rule] = (),
    selectable: Sequence[str] = (),
    conditions: bool = False,
    storage: bool | None = None,
    served: bool = True,
    deprecated: bool | str = False,
) -> Callable[[Class], Class]:
    """Make a class a kind: a dataclass, a TypedDict, or a model of pydantic.

    Decorators of handlers accept the class in place of the kind's name. `fnop crd`
    prints its CustomResourceDefinition (docs/how-to/define-a-kind.md).

    - `name` is plural, version and group: "databases.v1.example.com".
    - `kind` is the class's name by default, `singular` is the same in lower case;
      `short_names` and `categories` are for kubectl. `scope` is "Cluster" for objects
      without a namespace.
    - `columns` are the columns of `kubectl get` (`fnop.column`). `scale` is the scale
      subresource (`fnop.scale`). `rules` are about whole objects (`fnop.rule`).
      `selectable` are paths that field selectors may use (Kubernetes 1.30 and later).
    - `conditions`: the status has conditions of the standard form, one of each type.
    - Several classes with the same plural and group are versions of one kind; `storage`
      marks the stored version. A version that is not `served` is only kept for old
      objects. `deprecated` makes the server warn, with this text if it is one.

    Raises `RegistrationError` for a name or a scope that no kind can have.

        @fnop.definition("databases.v1.example.com", short_names=["db"])
        @dataclass(frozen=True)
        class Database:
            spec: DatabaseSpec
    """
    label = f"fnop.definition({name!r})"
    declared = Definition(
        *_split_name(name),
        kind or "",
        singular or "",
        _check_scope(scope, label),
        _check_parts(str, short_names, f"{label}: short_names="),
        _check_parts(str, categories, f"{label}: categories="),
        _check_parts(Column, columns, f"{label}: columns="),
        scale,
        _check_parts(Rule, rules, f"{label}: rules="),
        _check_parts(str, selectable, f"{label}: selectable="),
        conditions,
        storage,
        served,
        deprecated,
    )

    def decorate(cls: Class) -> Class:
        setattr(cls, _DEFINITION, declared.with_names_of(cls))
        return cls

    return decorate


def _split_name(name: str) -> tuple[str, str, str]:
    """The plural, the version and the group; refuses any other name."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise RegistrationError(
            f"fnop.definition: {name!r} must be plural, version and group, such as "
            "'databases.v1.example.com'"
        )
    return match[1], match[2], match[3]


def _check_scope(scope: str, label: str) -> str:
    """Return the scope; raise `RegistrationError` for a scope that no kind can have."""
    if scope not in _SCOPES:
        raise RegistrationError(
            f"{label}: scope={scope!r} must be {_SCOPES[0]!r} or {_SCOPES[1]!r}"
        )
    return scope


def definition_of(value: Any) -> Definition | None:
    """The definition of a class; None for other values, and for its subclasses."""
    found = vars(value).get(_DEFINITION) if isinstance(value, type) else None
    return found if isinstance(found, Definition) else None


def named(word: Any) -> Any:
    """A word of a selector; for a class that is a kind, the name of the kind.

    Such a class has a definition. Or it is a resource of lightkube, which has it in
    `_api_info`.

    >>> named(definition("databases.v1.example.com")(type("Database", (), {})))
    'databases.v1.example.com'
    >>> named("pods")
    'pods'
    """
    found = definition_of(word)
    if found is not None:
        return found.key
    about = getattr(word, "_api_info", None) if isinstance(word, type) else None
    if about is None:
        return word
    return f"{about.plural}.{about.resource.version}.{about.resource.group}"
