"""`x-kubernetes-validations`: the rules of custom kinds in CEL.

A rule is compiled twice. When its definition is written, it is checked against the
types of the schema, which a protobuf description gives to the library (`rule_faults`).
For evaluation it is compiled again without types, and works on plain values (`Laws`).
The library is loaded when the first rule is met.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any

import orjson
from msgspec import Struct

from fnop.effects.structs import replace
from fnop.interpreters.cluster.schema.cel_library import FUNCTIONS, Function
from fnop.interpreters.cluster.schema.rules import Place, place_text
from fnop.interpreters.cluster.values.status import Fault

if TYPE_CHECKING:
    from cel_expr_python import cel

__all__ = ["Laws", "compile_laws", "escaped", "field_path", "rule_faults"]

RULES = "x-kubernetes-validations"
ADVICE = "rules need the package cel-expr-python: pip install 'fnop[cel]'"


# ---------------------------------------------------------------- the library

# The types of values at run time; `dyn` may be any of them.
AT_RUN_TIME = ("int", "double", "bool", "string", "bytes", "timestamp", "duration",
               "list(dyn)", "map(dyn,dyn)", "null")  # fmt: skip


def _type(name: str, *, exact: bool) -> cel.Type:
    from cel_expr_python import cel

    simple = {
        "int": cel.Type.INT, "double": cel.Type.DOUBLE, "bool": cel.Type.BOOL,
        "string": cel.Type.STRING, "bytes": cel.Type.BYTES, "dyn": cel.Type.DYN,
        "timestamp": cel.Type.TIMESTAMP, "duration": cel.Type.DURATION,
        "null": cel.Type.NULL,
    }  # fmt: skip
    if name in simple:
        return simple[name]
    if name.startswith("list("):
        return cel.Type.List(_type(name[5:-1] if exact else "dyn", exact=exact))
    if name.startswith("map("):
        key, _, value = name[4:-1].partition(",")
        return cel.Type.Map(
            _type(key if exact else "dyn", exact=exact),
            _type(value if exact else "dyn", exact=exact),
        )
    # Opaque types exist for the checker only.
    if exact:
        return cel.Type.AbstractType(f"kubernetes.{name}")
    return cel.Type.Map(cel.Type.DYN, cel.Type.DYN)


def _at_run_time(name: str) -> str:
    if name in AT_RUN_TIME or name == "dyn":
        return name
    return "list(dyn)" if name.startswith("list(") else "map(dyn,dyn)"


def _run_time_overloads(function: Function) -> Iterator[Function]:
    """The overloads of a function as they are distinguished at run time."""
    options: list[tuple[str, ...]] = [()]
    for parameter in map(_at_run_time, function.parameters):
        kinds = AT_RUN_TIME if parameter == "dyn" else (parameter,)
        options = [(*before, kind) for before in options for kind in kinds]
    for parameters in options:
        yield replace(function, parameters=parameters, result="dyn")


def _declare_functions(*, exact: bool) -> list[cel.FunctionDecl]:
    from cel_expr_python import cel

    overloads: dict[str, dict[tuple[bool, tuple[str, ...]], Function]] = {}
    for function in FUNCTIONS:
        if exact and "dyn" in function.parameters:
            continue  # the checker distinguishes its other overloads
        for one in (function,) if exact else _run_time_overloads(function):
            known = overloads.setdefault(one.name, {})
            known.setdefault((one.is_member, one.parameters), one)
    numbers = count()
    return [
        cel.FunctionDecl(
            name,
            [
                cel.Overload(
                    f"kubernetes_{next(numbers)}",
                    return_type=_type(one.result, exact=exact),
                    parameters=[_type(p, exact=exact) for p in one.parameters],
                    is_member=one.is_member,
                    impl=one.call,
                )
                for one in known.values()
            ],
        )
        for name, known in overloads.items()
    ]


def _extensions() -> list[cel.CelExtensionBase]:
    """The environment that type-checks rules; their evaluation also needs bindings."""
    from cel_expr_python.ext import ext_optional

    return [ext_optional.ExtOptional()]


@lru_cache(maxsize=1)
def _runtime() -> cel.Env:
    """The environment that evaluates rules, with dynamic types."""
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_bindings

    dyn = cel.Type.DYN
    return cel.NewEnv(
        variables={"self": dyn, "oldSelf": dyn, "oldSelves": dyn},
        functions=_declare_functions(exact=False),
        extensions=[*_extensions(), ext_bindings.ExtBindings()],
    )


@lru_cache(maxsize=4096)
def _program(rule: str, *, optional: bool = False) -> cel.Expression:
    if optional:
        # The library does not accept optional values from outside.
        old = "size(oldSelves) == 0 ? optional.none() : optional.of(oldSelves[0])"
        rule = f"cel.bind(oldSelf, {old}, {rule}\n)"
    return _runtime().compile(rule)


CONDITIONS = ("object", "oldObject", "request")


@lru_cache(maxsize=1)
def _condition_env() -> cel.Env:
    """The environment of match conditions: reviewed input, without types."""
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_bindings

    return cel.NewEnv(
        variables=dict.fromkeys(CONDITIONS, cel.Type.DYN),
        functions=_declare_functions(exact=False),
        extensions=[*_extensions(), ext_bindings.ExtBindings()],
    )


@lru_cache(maxsize=1024)
def _condition(text: str) -> cel.Expression:
    return _condition_env().compile(text)


# The fields of a request that Go omits if they are empty.
EMPTY_REQUEST = {
    "subResource": "",
    "requestSubResource": "",
    "name": "",
    "namespace": "",
}
EMPTY_USER: dict[str, Any] = {"username": "", "uid": "", "groups": [], "extra": {}}


def condition(text: str, request: Mapping[str, Any]) -> bool | str:
    """The value of a match condition for the request of a review, or its error."""
    user = {**EMPTY_USER, **request["userInfo"]}
    parts = ("object", "oldObject")
    shown = {name: part for name, part in request.items() if name not in parts}
    data = {
        "object": request["object"],
        "oldObject": request["oldObject"],
        "request": {**EMPTY_REQUEST, **shown, "userInfo": user},
    }
    try:
        result = _condition(text).eval(data=data)
    except ImportError:
        return ADVICE  # it came from a cluster that could check it
    except RuntimeError as error:
        return str(error)
    error_text = _error_of(result)
    if error_text is not None:
        return error_text
    found = result.value()
    return (
        found if isinstance(found, bool) else "cel expression must evaluate to a bool"
    )


def condition_fault(text: str) -> str:
    """The reason to refuse a match condition, in the words of cel-go, or "".

    Raises `ImportError` if the library is not installed.
    """
    from cel_expr_python import cel

    try:
        found = _condition_env().compile(text).return_type()
    except RuntimeError as error:
        return f"compilation failed: {_error_in_go(str(error), text)}"
    if found in (cel.Type.BOOL, cel.Type.DYN):
        return ""
    return "must evaluate to bool"


@lru_cache(maxsize=2)
def _reader(function: str) -> cel.Expression:
    return _runtime().compile(f"{function}(self)")


def _read(function: str, text: Any) -> Any:
    """A timestamp or duration as the library takes it; other texts stay texts."""
    from google.protobuf import duration_pb2, timestamp_pb2

    found = _reader(function).eval(data={"self": text})
    if _error_of(found) is not None:
        return text
    if function == "timestamp":
        moment = timestamp_pb2.Timestamp()
        moment.FromDatetime(found.value())
        return moment
    span = duration_pb2.Duration()
    span.FromTimedelta(found.value())
    return span


def _error_of(value: cel.Value) -> str | None:
    """The error of an evaluation in the words of cel-go, or None."""
    if value.type().name() != "ERROR":
        return None
    text = re.sub(r"^[A-Z_]+: ", "", str(value.value()))
    if found := re.match(r'Key not found in map : "?(.*?)"?$', text):
        return f"no such key: {found[1]}"
    if found := re.match(r"cannot convert (\w+) to (\w+)$", text):
        return f"type conversion error from '{found[1]}' to '{found[2]}'"
    if found := re.match(r"Index error: index=(-?\d+)", text):
        return f"index out of bounds: {found[1]}"
    if text.startswith(("No matching overloads", "Applying SELECT")):
        return "no such overload"
    return GO_ERRORS.get(text, text)


GO_ERRORS = {
    "divide by zero": "division by zero",
    "modulus by zero": "modulus by zero",
}


# --------------------------------------------------------------------- values

Convert = Callable[[Any], Any]

RESERVED = frozenset(
    (
        "true", "false", "null", "in", "as", "break", "const", "continue", "else",
        "for", "function", "if", "import", "let", "loop", "package", "namespace",
        "return",
    )
)  # fmt: skip
FIELD = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*\Z")
SIGNS = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


@lru_cache(maxsize=4096)
def escaped(name: str) -> str | None:
    """A field's name as CEL writes it; None if it cannot.

    >>> escaped("a-b"), escaped("namespace"), escaped("a b")
    ('a__dash__b', '__namespace__', None)
    """
    if name in RESERVED:
        return f"__{name}__"
    if not FIELD.match(name):
        return None
    return re.sub(r"__|[./-]", lambda sign: SIGNS[sign[0]], name)


TEXTS: dict[str, Convert] = {
    "date-time": lambda text: _read("timestamp", text),
    "datetime": lambda text: _read("timestamp", text),
    "date": lambda text: _read("timestamp", f"{text}T00:00:00Z"),
    "duration": lambda text: _read("duration", text),
    "byte": lambda text: b64decode(text),
}
META = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
NAMES = {"name": {"type": "string"}, "generateName": {"type": "string"}}
OBJECT_META = {"type": "object", "properties": NAMES}


def _fields(schema: Mapping[str, Any], *, root: bool) -> dict[str, Any]:
    """The fields that rules can see."""
    properties = schema.get("properties") or {}
    if root or schema.get("x-kubernetes-embedded-resource"):
        return {**properties, **META, "metadata": OBJECT_META}
    return dict(properties)


def _converter(schema: Mapping[str, Any], *, root: bool = False) -> Convert | None:
    """A converter from JSON to CEL values; None if they are the same."""
    if schema.get("x-kubernetes-int-or-string"):
        return None
    match schema.get("type"):
        case "number":
            return _number
        case "string":
            read = TEXTS.get(schema.get("format") or "")
            return None if read is None else _if_text(read)
        case "array":
            item = _converter(schema.get("items") or {})
            return None if item is None else _convert_items(item)
        case "object":
            additional = schema.get("additionalProperties")
            if isinstance(additional, dict):
                value = _converter(additional)
                return None if value is None else _values(value)
            return _object(schema, root=root)
        case _:
            return None


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, int) else value


def _if_text(read: Convert) -> Convert:
    return lambda value: read(value) if isinstance(value, str) else value


def _convert_items(item: Convert) -> Convert:
    return lambda value: value if value is None else [item(part) for part in value]


def _values(convert: Convert) -> Convert:
    return lambda value: (
        value if value is None else {k: convert(v) for k, v in value.items()}
    )


def _object(schema: Mapping[str, Any], *, root: bool) -> Convert | None:
    fields = [
        (name, called, _converter(part))
        for name, part in _fields(schema, root=root).items()
        if (called := escaped(name)) is not None
    ]
    # Only specified fields are visible: others can exist if unknown fields are kept.
    is_closed = not (root or schema.get("x-kubernetes-preserve-unknown-fields"))
    is_plain = not any(
        part.get("nullable") for part in _fields(schema, root=root).values()
    )
    if (
        is_closed
        and is_plain
        and all(name == called and part is None for name, called, part in fields)
    ):
        return None

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {
            called: value[name] if part is None else part(value[name])
            for name, called, part in fields
            # Rules treat null like a missing value.
            if value.get(name) is not None
        }

    return convert


# ---------------------------------------------------------------------- rules


class Rule(Struct, frozen=True):
    """One rule: its text, and its compiled form."""

    text: str
    message: str
    message_expression: str
    reason: str
    path: tuple[str, ...]
    uses_old: bool
    optional_old: bool

    @property
    def shown(self) -> str:
        return self.message or self.text


class Laws(Struct, frozen=True):
    """The CEL rules of a schema node and of the nodes inside it."""

    kind: str
    convert: Convert | None
    rules: tuple[Rule, ...]
    properties: dict[str, Laws]
    additional: Laws | None
    items: Laws | None
    # The fields that identify old items; if empty, old items are not found.
    keys: tuple[str, ...]
    atomic: bool

    def faults(
        self, value: Any, old: Any, place: Place, tolerated: list[Fault], same: bool
    ) -> Iterator[Fault]:
        """Yield the rules' refusals; unchanged parts are `tolerated`.

        A refusal of an update goes to `tolerated` if the value is unchanged there.
        `old` is None if there is nothing to compare with.
        """
        if value is None:
            return
        same = same or (old is not None and _is_equal(value, old))
        if self.rules:
            for fault, is_transition in self._broken_rules(value, old, place):
                if same and not is_transition:
                    tolerated.append(fault)
                else:
                    yield fault
        for laws, item, earlier, part in self._parts(value, old):
            yield from laws.faults(item, earlier, (place, part), tolerated, same)

    def _parts(self, value: Any, old: Any) -> Iterator[tuple[Laws, Any, Any, Any]]:
        """The parts of a value: their laws, the part, its old value, and its place."""
        if isinstance(value, dict):
            before = old if isinstance(old, dict) and not self.atomic else {}
            for name, item in value.items():
                inner = self.properties.get(name, self.additional)
                if inner is not None:
                    # Keys of maps are shown in brackets, fields are not.
                    part = name if name in self.properties else [name]
                    yield inner, item, before.get(name), part
        elif isinstance(value, list) and self.items is not None:
            known = self._known(old)
            for index, item in enumerate(value):
                earlier = known.get(self._identity(item)) if known else None
                yield self.items, item, earlier, index

    def _known(self, old: Any) -> dict[bytes, Any]:
        if not self.keys or not isinstance(old, list):
            return {}
        return {self._identity(item): item for item in old}

    def _identity(self, item: Any) -> bytes:
        return orjson.dumps([item.get(key) for key in self.keys])

    def _broken_rules(
        self, value: Any, old: Any, place: Place
    ) -> Iterator[tuple[Fault, bool]]:
        convert = self.convert
        data = {"self": value if convert is None else convert(value)}
        if old is not None and any(rule.uses_old for rule in self.rules):
            data["oldSelf"] = old if convert is None else convert(old)
        data["oldSelves"] = [data["oldSelf"]] if "oldSelf" in data else []
        activation = None
        for rule in self.rules:
            if rule.uses_old and old is None and not rule.optional_old:
                continue  # there is no transition
            try:
                if activation is None:
                    activation = _runtime().Activation(data=data)
                program = _program(rule.text, optional=rule.optional_old)
                result = program.eval(activation)
                error = _error_of(result)
                holds = error is None and bool(result.value())
            except RuntimeError as caught:
                error, holds = re.sub(r" \[[A-Z_]+\]$", "", str(caught)), False
            if holds:
                continue
            if error is not None:
                yield self._evaluation_fault(rule, error, place), False
            else:
                yield self._rule_fault(rule, value, data, place), rule.uses_old

    def _evaluation_fault(self, rule: Rule, error: str, place: Place) -> Fault:
        why = f"{error} evaluating rule: {rule.shown}"
        if error == "no such overload":
            why = (
                f"'{error}': call arguments did not match a supported operator, "
                f"function or macro signature for rule: {rule.shown}"
            )
        field = place_text(place) or "<nil>"
        return Fault(field, "FieldValueInvalid", f'Invalid value: "{self.kind}": {why}')

    def _rule_fault(
        self, rule: Rule, value: Any, data: dict[str, Any], place: Place
    ) -> Fault:
        for part in rule.path:
            place = (place, part)
        field = place_text(place) or "<nil>"
        why = (
            _message_of_rule(rule, data) or rule.message or f"failed rule: {rule.text}"
        )
        match rule.reason:
            case "FieldValueForbidden":
                return Fault(field, rule.reason, f"Forbidden: {why}")
            case "FieldValueRequired":
                return Fault(field, rule.reason, f"Required value: {why}")
            case "FieldValueDuplicate":
                return Fault(field, rule.reason, f"Duplicate value{_value(value)}")
            case _:
                text = f"Invalid value{_value(value)}: {why}"
                return Fault(field, "FieldValueInvalid", text)


def _value(value: Any) -> str:
    """A value in a message; lists and objects are not shown."""
    if isinstance(value, dict | list):
        return ""
    return f": {orjson.dumps(value).decode()}"


def _is_equal(value: Any, old: Any) -> bool:
    return value is old or (type(value) is type(old) and bool(value == old))


def _message_of_rule(rule: Rule, data: dict[str, Any]) -> str:
    """The text of a messageExpression; "" if it yields none."""
    if not rule.message_expression:
        return ""
    try:
        program = _program(rule.message_expression, optional=rule.optional_old)
        result = program.eval(data=data)
        text = result.value() if _error_of(result) is None else ""
    except RuntimeError:
        return ""
    if not isinstance(text, str) or len(text) > 5120 or "\n" in text.strip():
        return ""
    return text.strip()


USES_OLD = re.compile(r"(?<![\w.])oldSelf\b")
LITERAL = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\"""")


def _uses_old(rule: str) -> bool:
    """
    >>> _uses_old("self == oldSelf"), _uses_old("self.oldSelf == 'oldSelf'")
    (True, False)
    """
    return USES_OLD.search(LITERAL.sub("''", rule)) is not None


def compile_laws(schema: Mapping[str, Any], *, root: bool = False) -> Laws | None:
    """The rules of a schema and its parts; None if there are none."""
    is_object = root or bool(schema.get("x-kubernetes-embedded-resource"))
    rules = tuple(map(_compile_rule, schema.get(RULES) or ()))
    properties = {
        name: laws
        for name, part in (schema.get("properties") or {}).items()
        if (laws := compile_laws(part)) is not None
    }
    inside = _compile_part(schema.get("additionalProperties"))
    item = _compile_part(schema.get("items"))
    if not (rules or properties or inside or item):
        return None
    is_map = schema.get("x-kubernetes-list-type") == "map"
    return Laws(
        kind=schema.get("type") or "",
        convert=_converter(schema, root=is_object),
        rules=rules,
        properties=properties,
        additional=inside,
        items=item,
        keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()) if is_map else (),
        atomic=schema.get("x-kubernetes-map-type") == "atomic",
    )


def _compile_rule(rule: Mapping[str, Any]) -> Rule:
    return Rule(
        text=rule["rule"].strip(),
        message=(rule.get("message") or "").strip(),
        message_expression=rule.get("messageExpression") or "",
        reason=rule.get("reason") or "",
        path=_parsed_path(rule.get("fieldPath") or ""),
        uses_old=_uses_old(rule["rule"]),
        optional_old=bool(rule.get("optionalOldSelf")),
    )


def _compile_part(part: Any) -> Laws | None:
    """The rules of a part that may be absent or, as a schema, a bool."""
    return compile_laws(part) if isinstance(part, dict) else None


# ------------------------------------------------------------ paths of fields

PATH = re.compile(r"\.([^.\[\]']+)|\['((?:[^'\\]|\\.)*)'\]")


def _parsed_path(text: str) -> tuple[str, ...]:
    return tuple(
        found[1] or re.sub(r"\\(.)", r"\1", found[2]) for found in PATH.finditer(text)
    )


def field_path(text: str, schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The part of a schema at a path like `.spec['a-b']`, if there is one."""
    if "".join(found[0] for found in PATH.finditer(text)) != text:
        return None
    for name in _parsed_path(text):
        properties = schema.get("properties")
        additional = schema.get("additionalProperties")
        inner = (properties or {}).get(name) if properties else additional
        if not isinstance(inner, dict):
            return None
        schema = inner
    return schema


# --------------------------------------------------------- rules when written


def rule_faults(
    schema: Mapping[str, Any], where: str, *, root: bool = False
) -> Iterator[Fault]:
    """Yield the faults of the rules of one schema node, without those inside."""
    rules = schema.get(RULES) or ()
    checker: Checker | None = None
    for index, rule in enumerate(rules):
        at = f"{where}.{RULES}[{index}]"
        yield from _form_faults(rule, schema, at)
        if not (rule.get("rule") or "").strip():
            continue
        try:
            checker = checker or Checker(schema, root=root)
        except ImportError:
            yield Fault(f"{at}.rule", "FieldValueForbidden", f"Forbidden: {ADVICE}")
            return
        yield from _type_faults(checker, rule, at)


REASONS = (
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
)


def _form_faults(
    rule: dict[str, Any], schema: Mapping[str, Any], at: str
) -> Iterator[Fault]:
    text, message = rule.get("rule") or "", rule.get("message") or ""
    path, reason = rule.get("fieldPath") or "", rule.get("reason")
    if not text.strip():
        why = "Required value: rule is not specified"
        yield Fault(f"{at}.rule", "FieldValueRequired", why)
    yield from _message_faults(text, message, f"{at}.message")
    expression = rule.get("messageExpression") or ""
    if expression and not expression.strip():
        why = "Required value: must be non-empty if specified"
        yield Fault(f"{at}.messageExpression", "FieldValueRequired", why)
    if reason is not None and reason not in REASONS:
        known = ", ".join(f'"{name}"' for name in REASONS)
        why = f'Unsupported value: "{reason}": supported values: {known}'
        yield Fault(f"{at}.reason", "FieldValueNotSupported", why)
    if path and (path != path.strip() or field_path(path, schema) is None):
        yield _invalid_fault(f"{at}.fieldPath", path, "must be a valid path")


def _message_faults(text: str, message: str, at: str) -> Iterator[Fault]:
    """Yield the fault of the message of a rule with this text."""
    if message and not message.strip():
        yield _invalid_fault(at, message, "message must be non-empty if specified")
    elif "\n" in message.strip():
        yield _invalid_fault(at, message, "must not contain line breaks")
    elif "\n" in text.strip() and not message:
        why = "Required value: message must be specified if rule contains line breaks"
        yield Fault(at, "FieldValueRequired", why)


def _invalid_fault(field: str, value: Any, why: str) -> Fault:
    shown = orjson.dumps(value).decode()
    return Fault(field, "FieldValueInvalid", f"Invalid value: {shown}: {why}")


def _type_faults(checker: Checker, rule: dict[str, Any], at: str) -> Iterator[Fault]:
    optional = bool(rule.get("optionalOldSelf"))
    if "optionalOldSelf" in rule and not _uses_old(rule["rule"]):
        why = "may not be set if oldSelf is not used in rule"
        yield _invalid_fault(f"{at}.optionalOldSelf", optional, why)
    if fault := checker.fault(rule["rule"], "bool", optional=optional):
        why = f"compilation failed: {fault}"
        if fault == WRONG_TYPE:
            why = "cel expression must evaluate to a bool"
        yield Fault(f"{at}.rule", "FieldValueInvalid", f"{_rule_text(rule)}: {why}")
    expression = rule.get("messageExpression") or ""
    if not expression.strip():
        return
    if fault := checker.fault(expression, "string", optional=optional):
        why = f"messageExpression compilation failed: {fault}"
        if fault == WRONG_TYPE:
            why = "messageExpression must evaluate to a string"
        text = f"{_rule_text(rule)}: {why}"
        yield Fault(f"{at}.messageExpression", "FieldValueInvalid", text)


def _rule_text(rule: dict[str, Any]) -> str:
    """A rule as Go prints its struct."""
    text = orjson.dumps(
        {
            "Rule": rule["rule"],
            "Message": rule.get("message") or "",
            "MessageExpression": rule.get("messageExpression") or "",
            "Reason": rule.get("reason"),
            "FieldPath": rule.get("fieldPath") or "",
            "OptionalOldSelf": rule.get("optionalOldSelf"),
        }
    ).decode()
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return f"Invalid value: {text}"


WRONG_TYPE = "type"


class Checker:
    """Checks whether rules fit the types of a schema node.

    Raises `ImportError` if the library is not installed.
    """

    def __init__(self, schema: Mapping[str, Any], *, root: bool) -> None:
        from cel_expr_python import cel

        types = Types()
        self_type = types.of(schema, root=root) or cel.Type.DYN
        pool = types.pool()
        self._envs = [
            cel.NewEnv(
                descriptor_pool=pool,
                variables={"self": self_type, "oldSelf": old},
                functions=_declare_functions(exact=True),
                extensions=_extensions(),
            )
            # The library's variables cannot be optional.
            for old in (self_type, cel.Type.DYN)
        ]

    def fault(self, text: str, result: str, *, optional: bool) -> str | None:
        """The reason to refuse an expression, or None.

        It is `WRONG_TYPE` if the result has another type.
        """
        from cel_expr_python import cel

        try:
            found = self._envs[optional].compile(text).return_type()
        except RuntimeError as error:
            return _error_in_go(str(error), text)
        wanted = cel.Type.BOOL if result == "bool" else cel.Type.STRING
        return None if found in (wanted, cel.Type.DYN) else WRONG_TYPE


OVERLOAD = re.compile(
    r"(ERROR: <input>:(\d+):(\d+): found no matching overload for '([^']+)' "
    r"applied to ')\((.*)\)'"
)


# The library's words, and cel-go's words for the same.
IN_GO = (
    ("null_type", "null"),
    (r"google\.protobuf\.(Timestamp|Duration)", lambda found: found[1].lower()),
    (
        r"expression of type ('.*?') cannot be the operand of a select operation",
        r"type \1 does not support field selection",
    ),
    ("cannot be the range of a comprehension", "cannot be range of a comprehension"),
    (r"has\(\) argument must be a field selection", "invalid argument to has() macro"),
)


def _error_in_go(error: str, rule: str) -> str:
    """The library's error in the words of cel-go."""
    text = re.sub(r"^[A-Z_]+: ", "", re.sub(r" \[[A-Z_]+\]$", "", error))
    text = re.sub(r"undefined field '([^']*)' not found in struct '[^']*'",
                  r"undefined field '\1'", text)  # fmt: skip
    for pattern, ours in IN_GO:
        text = re.sub(pattern, ours, text)
    # cel-go does not report errors that follow from another error.
    text = re.sub(r"\nERROR: [^\n]*'\*error\*'[^\n]*(\n \|[^\n]*)*", "", text)
    lines = rule.split("\n")

    def member(found: re.Match[str]) -> str:
        before, line, column, name, types = found.groups()
        source = lines[int(line) - 1][: int(column) - 1]
        if not source.endswith(f".{name}"):
            return found[0]
        receiver, rest = _first(types)
        return f"{before}{receiver}.({rest})'"

    return OVERLOAD.sub(member, text)


def _first(types: str) -> tuple[str, str]:
    """The first of listed types, and the others.

    >>> _first("map(string, int), int")
    ('map(string, int)', 'int')
    """
    depth = 0
    for index, char in enumerate(types):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            return types[:index], types[index + 2 :]
    return types, ""


class Types:
    """A schema's types, described as protobuf messages."""

    def __init__(self) -> None:
        from google.protobuf import descriptor_pb2

        self._file = descriptor_pb2.FileDescriptorProto(
            name="schema.proto",
            package="schema",
            dependency=[f"google/protobuf/{name}.proto" for name in IMPORTS],
        )

    def pool(self) -> Any:
        """The described types, for the library."""
        from google.protobuf import (
            descriptor_pool,
            duration_pb2,
            struct_pb2,
            timestamp_pb2,
        )

        pool = descriptor_pool.DescriptorPool()
        for module in (duration_pb2, struct_pb2, timestamp_pb2):
            pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
        pool.AddSerializedFile(self._file.SerializeToString())
        return pool

    def of(self, schema: Mapping[str, Any], *, root: bool = False) -> cel.Type | None:
        """The type of a node's values; None if rules cannot see them."""
        from cel_expr_python import cel

        if schema.get("x-kubernetes-int-or-string"):
            return cel.Type.DYN
        match schema.get("type"):
            case "array":
                item = self.of(schema.get("items") or {})
                return None if item is None else cel.Type.List(item)
            case "object":
                additional = schema.get("additionalProperties")
                if isinstance(additional, dict):
                    value = self.of(additional)
                    if value is None:
                        return None
                    return cel.Type.Map(cel.Type.STRING, value)
                return cel.Type(f"schema.{self._message(schema, root=root)}")
            case "string":
                name = STRINGS.get(schema.get("format") or "", "string")
                return _type(name, exact=True)
            case "boolean" | "integer" | "number" as name:
                return _type(SCALARS[name], exact=True)
            case _:
                return None

    def _message(self, schema: Mapping[str, Any], *, root: bool = False) -> str:
        message = self._file.message_type.add()
        message.name = name = f"Type{len(self._file.message_type)}"
        fields = _fields(schema, root=root)
        for number, (field, part) in enumerate(sorted(fields.items()), 1):
            called = escaped(field)
            if called is not None:
                self._field(message, called, number, part)
        return name

    def _field(
        self, message: Any, name: str, number: int, schema: Mapping[str, Any]
    ) -> None:
        field = message.field.add()
        field.name, field.number, field.label = name, number, OPTIONAL
        described: tuple[int, str] | None
        if schema.get("type") == "array":
            items = schema.get("items") or {}
            if items.get("type") == "array" or _is_map(items):
                described = (MESSAGE, ".google.protobuf.ListValue")
            else:
                described = self._proto_type(items)
                field.label = REPEATED
        elif _is_map(schema):
            described = self._map(message, field, schema["additionalProperties"])
        else:
            described = self._proto_type(schema)
        if described is None:
            del message.field[-1]
            return
        field.type = described[0]
        if described[1]:
            field.type_name = described[1]

    def _proto_type(self, schema: Mapping[str, Any]) -> tuple[int, str] | None:
        """The protobuf type of a value that is neither list nor map."""
        if schema.get("x-kubernetes-int-or-string"):
            return MESSAGE, ".google.protobuf.Value"
        match schema.get("type"):
            case "object":
                return MESSAGE, f".schema.{self._message(schema)}"
            case "string":
                return PROTO_STRINGS[STRINGS.get(schema.get("format") or "", "string")]
            case "boolean" | "integer" | "number" as name:
                return PROTO_SCALARS[name], ""
            case _:
                return None

    def _map(
        self, message: Any, field: Any, values: Mapping[str, Any]
    ) -> tuple[int, str] | None:
        if values.get("type") == "array" or _is_map(values):
            return MESSAGE, ".google.protobuf.Struct"
        described = self._proto_type(values)
        if described is None:
            return None
        name = _entry_name(field.name)
        if any(known.name == name for known in message.nested_type):
            return MESSAGE, ".google.protobuf.Struct"
        entry = message.nested_type.add()
        entry.name = name
        entry.options.map_entry = True
        for number, name, (kind, type_name) in (
            (1, "key", (PROTO_STRING, "")),
            (2, "value", described),
        ):
            part = entry.field.add()
            part.name, part.number, part.label, part.type = name, number, OPTIONAL, kind
            if type_name:
                part.type_name = type_name
        field.label = REPEATED
        return MESSAGE, f".schema.{message.name}.{entry.name}"


def _entry_name(field: str) -> str:
    """The name of protobuf's message behind a map field.

    >>> _entry_name("a__dash__b")
    'ADashBEntry'
    """
    parts = field.split("_")
    return "".join(part[:1].upper() + part[1:] for part in parts) + "Entry"


def _is_map(schema: Mapping[str, Any]) -> bool:
    return isinstance(schema.get("additionalProperties"), dict)


IMPORTS = ("duration", "struct", "timestamp")
STRINGS = {
    "date-time": "timestamp",
    "datetime": "timestamp",
    "date": "timestamp",
    "duration": "duration",
    "byte": "bytes",
}
SCALARS = {"boolean": "bool", "integer": "int", "number": "double"}
# google.protobuf.FieldDescriptorProto's numbers.
OPTIONAL, REPEATED = 1, 3
MESSAGE, PROTO_STRING = 11, 9
PROTO_SCALARS = {"boolean": 8, "integer": 3, "number": 1}
PROTO_STRINGS = {
    "string": (PROTO_STRING, ""),
    "bytes": (12, ""),
    "timestamp": (MESSAGE, ".google.protobuf.Timestamp"),
    "duration": (MESSAGE, ".google.protobuf.Duration"),
}
