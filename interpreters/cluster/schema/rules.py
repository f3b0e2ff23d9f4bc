"""The value rules of JSON schema, with the messages of the real validator."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from fnop.core.kubernetes.durations import duration
from fnop.interpreters.cluster.schema.regex import BadPattern, compiled
from fnop.interpreters.cluster.values.golang import go_json
from fnop.interpreters.cluster.values.objects import same
from fnop.interpreters.cluster.values.status import Fault, quoted

__all__ = [
    "Place",
    "Rule",
    "format_of",
    "label_fault",
    "place_text",
    "rules_of",
    "type_name",
]

# The place of a value: (the place of its parent, its name or index there). Names are
# joined only if there is a fault to report.
Place = tuple[Any, Any] | None
Rule = Callable[[Any, Place], Fault | None]


def place_text(place: Place) -> str:
    """A place as errors print it.

    >>> place_text((((None, "spec"), "list"), 1))
    'spec.list[1]'
    """
    if place is None:
        return ""
    parent, part = place
    before = place_text(parent)
    if isinstance(part, int):
        return f"{before}[{part}]"
    if isinstance(part, list):  # a key of a map
        return f"{before}[{part[0]}]"
    return f"{before}.{part}" if before else str(part)


def type_name(value: Any) -> str:
    """The JSON schema type of a value.

    >>> type_name(True), type_name(1), type_name(1.5)
    ('boolean', 'integer', 'number')
    """
    names = {
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        list: "array",
        dict: "object",
        type(None): "null",
    }
    return names[type(value)]


NOT_LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character (e.g. "
    "'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def label_fault(text: str) -> str:
    """The fault in the name of a kind or a version; "" if it is valid."""
    if len(text) > 63:
        return "must be no more than 63 characters"
    return "" if LABEL.fullmatch(text) else NOT_LABEL


def _invalid_fault(place: Place, value: Any, why: str) -> Fault:
    field = place_text(place)
    shown = go_json(value)
    return Fault(
        field, "FieldValueInvalid", f"Invalid value: {shown}: {field} in body {why}"
    )


def _too_many(place: Place, count: int, limit: int) -> Fault:
    return Fault(
        place_text(place),
        "FieldValueTooMany",
        f"Too many: {count}: must have at most {limit} item{'s' * (limit != 1)}",
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _bound(schema: dict[str, Any], value: float, name: str) -> Any:
    """A bound in the type of the value: for integers, its fraction is cut off.

    Go does the same.
    """
    limit = schema[name]
    is_whole = schema.get("type") != "integer" and isinstance(value, int)
    return int(limit) if is_whole else limit


def _minimum(schema: dict[str, Any]) -> Rule:
    exclusive = bool(schema.get("exclusiveMinimum"))

    def rule(value: Any, place: Place) -> Fault | None:
        if not _is_number(value):
            return None
        limit = _bound(schema, value, "minimum")
        if value > limit or (value == limit and not exclusive):
            return None
        word = "greater than" if exclusive else "greater than or equal to"
        return _invalid_fault(place, value, f"should be {word} {_number_text(limit)}")

    return rule


def _maximum(schema: dict[str, Any]) -> Rule:
    exclusive = bool(schema.get("exclusiveMaximum"))

    def rule(value: Any, place: Place) -> Fault | None:
        if not _is_number(value):
            return None
        limit = _bound(schema, value, "maximum")
        if value < limit or (value == limit and not exclusive):
            return None
        word = "less than" if exclusive else "less than or equal to"
        return _invalid_fault(place, value, f"should be {word} {_number_text(limit)}")

    return rule


def _number_text(number: float) -> str:
    """A number as Go's `%v` prints it.

    >>> _number_text(5.0), _number_text(1e21), _number_text(0.1)
    ('5', '1e+21', '0.1')
    """
    if number == int(number) and abs(number) < 1e21:
        return str(int(number))
    return str(number)


def _multiple_of(schema: dict[str, Any]) -> Rule:
    whole = schema["multipleOf"]

    def rule(value: Any, place: Place) -> Fault | None:
        if not _is_number(value):
            return None
        factor = int(whole) if isinstance(value, int) else whole
        if not factor:
            field = place_text(place)
            why = f"factor MultipleOf declared for {field} must be positive: 0"
            return Fault(field, "FieldValueInvalid", f"Invalid value: 0: {why}")
        if isinstance(value, int):
            whole_number = value % factor == 0
            return None if whole_number else _multiple_fault(place, value, factor)
        quotient = value / factor if factor >= 1 else value * (1 / factor)
        # Go compares fractions only to this precision (swag.IsFloat64AJSONInteger).
        if abs(quotient - round(quotient)) <= 1e-9 * max(1.0, abs(quotient)):
            return None
        return _multiple_fault(place, value, factor)

    return rule


def _multiple_fault(place: Place, value: float, factor: float) -> Fault:
    return _invalid_fault(
        place, value, f"should be a multiple of {_number_text(factor)}"
    )


def _min_length(schema: dict[str, Any]) -> Rule:
    limit = schema["minLength"]

    def rule(value: Any, place: Place) -> Fault | None:
        if not isinstance(value, str) or len(value) >= limit:
            return None
        return _invalid_fault(place, value, f"should be at least {limit} chars long")

    return rule


def _max_length(schema: dict[str, Any]) -> Rule:
    limit = schema["maxLength"]

    def rule(value: Any, place: Place) -> Fault | None:
        if not isinstance(value, str) or len(value) <= limit:
            return None
        return Fault(
            place_text(place),
            "FieldValueTooLong",
            f"Too long: may not be more than {limit} byte{'s' * (limit != 1)}",
        )

    return rule


def _pattern(schema: dict[str, Any]) -> Rule:
    pattern = schema["pattern"]
    try:
        expression = compiled(pattern)
    except BadPattern:  # refused when the CRD is written
        return lambda value, place: None

    def rule(value: Any, place: Place) -> Fault | None:
        if not isinstance(value, str) or expression.search(value):
            return None
        return _invalid_fault(place, value, f"should match '{pattern}'")

    return rule


def _enum(schema: dict[str, Any]) -> Rule:
    allowed = schema["enum"]
    texts = frozenset(item for item in allowed if isinstance(item, str))
    listed = ", ".join(
        quoted(item if isinstance(item, str) else go_json(item)) for item in allowed
    )

    def rule(value: Any, place: Place) -> Fault | None:
        if isinstance(value, str):
            if value in texts:
                return None
        elif any(_is_converted(value, item) for item in allowed):
            return None
        return Fault(
            place_text(place),
            "FieldValueNotSupported",
            f"Unsupported value: {go_json(value)}: supported values: {listed}",
        )

    return rule


def _is_converted(value: Any, wanted: Any) -> bool:
    """Whether they are equal in Go, once the value has the other's type.

    A null does not equal anything, and a number may become a letter.

    >>> _is_converted(1.5, 1), _is_converted(65, "A"), _is_converted(None, None)
    (True, True, False)
    """
    if value is None or wanted is None:
        return False
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(wanted, int) and isinstance(value, float):
        return int(value) == wanted
    if isinstance(wanted, str) and isinstance(value, int):
        return 0 <= value <= 0x10FFFF and chr(value) == wanted
    return same(value, wanted) if type(value) is not float else bool(value == wanted)


def _min_items(schema: dict[str, Any]) -> Rule:
    limit = schema["minItems"]

    def rule(value: Any, place: Place) -> Fault | None:
        if not isinstance(value, list) or len(value) >= limit:
            return None
        return _invalid_fault(place, len(value), f"should have at least {limit} items")

    return rule


def _max_items(schema: dict[str, Any]) -> Rule:
    limit = schema["maxItems"]

    def rule(value: Any, place: Place) -> Fault | None:
        if not isinstance(value, list) or len(value) <= limit:
            return None
        return _too_many(place, len(value), limit)

    return rule


def _min_properties(schema: dict[str, Any]) -> Rule:
    limit = schema["minProperties"]

    def rule(value: Any, place: Place) -> Fault | None:
        if not isinstance(value, dict) or len(value) >= limit:
            return None
        return _invalid_fault(
            place, len(value), f"should have at least {limit} properties"
        )

    return rule


def _max_properties(schema: dict[str, Any]) -> Rule:
    limit = schema["maxProperties"]

    def rule(value: Any, place: Place) -> Fault | None:
        if not isinstance(value, dict) or len(value) <= limit:
            return None
        return _too_many(place, len(value), limit)

    return rule


# ------------------------------------------------------------------- formats

MOMENT = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)"
)


def _is_moment(text: str) -> bool:
    if not MOMENT.fullmatch(text):
        return False
    return _is_day(text[:10])


def _is_day(text: str) -> bool:
    try:
        datetime.strptime(text, "%Y-%m-%d")  # noqa: DTZ007 (a day has no zone)
    except ValueError:
        return False
    return len(text) == 10


def _is_address(version: int) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        # Go's netutils still accept leading zeros in IPv4.
        plain = re.sub(r"(?<![\da-fA-F:])0+(?=\d)", "", text) if version == 4 else text
        try:
            return ip_address(plain).version == version
        except ValueError:
            return False

    return check


def _is_network(text: str) -> bool:
    head, slash, bits = text.partition("/")
    if not slash or not bits.isdecimal():
        return False
    try:
        return int(bits) <= ip_address(head).max_prefixlen
    except ValueError:
        return False


def _is_base64(text: str) -> bool:
    try:
        b64decode(text, validate=True)
    except ValueError:
        return False
    return bool(text)


def _is_uri(text: str) -> bool:
    """Whether a URI is absolute, by scheme or by path (url.ParseRequestURI)."""
    if not text or any(ord(char) < 0x21 or ord(char) == 0x7F for char in text):
        return False
    try:
        return bool(urlsplit(text).scheme) or text.startswith("/")
    except ValueError:
        return False


def _is_duration(text: str) -> bool:
    try:
        duration(text)
    except ValueError:
        return False
    return True


def _like(pattern: str, flags: int = 0) -> Callable[[str], bool]:
    # Few schemas have formats, so a pattern is compiled when a text is first judged.
    compiled = cache(lambda: re.compile(pattern, flags))
    return lambda text: compiled().fullmatch(text) is not None


def _uuid(version: str, variant: str = "[0-9a-f]") -> Callable[[str], bool]:
    return _like(
        f"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{version}[0-9a-f]{{3}}-?{variant}[0-9a-f]{{3}}"
        "-?[0-9a-f]{12}",
        re.IGNORECASE,
    )


NAME = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
# As in strfmt: one label with at most one dash early on, or a whole domain.
LETTER = r"a-zA-Z0-9+<=>|~$^`\u00aa-\uffff"
HOST = (
    rf"[{LETTER}](-?[{LETTER}]{{0,62}})?|"
    rf"([{LETTER}]([-{LETTER}]{{0,61}}[{LETTER}])?\.)+[a-zA-Z\u00aa-\uffff]{{2,63}}"
)
FORMATS: dict[str, Callable[[str], bool]] = {
    "date-time": _is_moment,
    "datetime": _is_moment,
    "date": _is_day,
    "duration": _is_duration,
    "byte": _is_base64,
    "email": _like(r"([^<>@]*<\s*)?[^\s<>@,]+@[^\s<>@,]+>?"),
    "hostname": _like(HOST),
    "ipv4": _is_address(4),
    "ipv6": _is_address(6),
    "cidr": _is_network,
    "mac": _like(
        r"[0-9a-f]{2}([:-][0-9a-f]{2}){5}(([:-][0-9a-f]{2}){2})?|"
        r"[0-9a-f]{4}(\.[0-9a-f]{4}){2,3}",
        re.IGNORECASE,
    ),
    "uri": _is_uri,
    "uuid": _uuid("[0-9a-f]"),
    "uuid3": _uuid("3"),
    "uuid4": _uuid("4", "[89ab]"),
    "uuid5": _uuid("5", "[89ab]"),
    "hexcolor": _like(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _like(
        r"rgb\(\s*({n})\s*,\s*({n})\s*,\s*({n})\s*\)".replace(
            "{n}", r"0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5]"
        )
    ),
    "bsonobjectid": _like("[0-9a-fA-F]{24}"),
    "ssn": _like(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "creditcard": _like(r"\d{13,19}"),
    "isbn": _like(r"(\d[- ]?){9}[\dX]|(\d[- ]?){13}"),
    "isbn10": _like(r"(\d[- ]?){9}[\dX]"),
    "isbn13": _like(r"(\d[- ]?){13}"),
    "k8s-short-name": _like(NAME),
    "k8s-long-name": _like(rf"(?=.{{1,253}}$){NAME}(\.{NAME})*"),
}
SIZES = {"int32": 2**31, "int64": 2**63}
# The formats that have a meaning in each type; elsewhere they are ignored.
TEXT_FORMATS = frozenset((*FORMATS, "password"))
KNOWN_FORMATS: dict[str, frozenset[str]] = {
    "integer": frozenset(SIZES),
    "number": frozenset(("float", "double")),
    "string": TEXT_FORMATS,
    "": TEXT_FORMATS,
}


def format_of(schema: dict[str, Any]) -> str:
    """The format of a schema's values, "" if it has no meaning to the server.

    >>> format_of({"type": "integer", "format": "int32"}), format_of({"format": "x"})
    ('int32', '')
    """
    given: str = schema.get("format") or ""
    kind = schema.get("type") or ""
    if schema.get("x-kubernetes-int-or-string"):
        return ""
    return given if given in KNOWN_FORMATS.get(kind, ()) else ""


def _format(schema: dict[str, Any]) -> Rule:
    name = format_of(schema)
    if name in SIZES:
        return _size(name)
    if name == "float":
        return _check_float32
    # Unknown formats are ignored, as the API conventions demand.
    check = FORMATS.get(name)

    def rule(value: Any, place: Place) -> Fault | None:
        if check is None or not isinstance(value, str) or check(value):
            return None
        field, shown = place_text(place), quoted(value)
        message = (
            f"Invalid value: {shown}: {field} in body must be of type {name}: {shown}"
        )
        return Fault(field, "FieldValueTypeInvalid", message)

    return rule


def _size(name: str) -> Rule:
    limit = SIZES[name]

    def rule(value: Any, place: Place) -> Fault | None:
        if not isinstance(value, int) or -limit <= value < limit:
            return None
        return _unfit_type(f"integer with format {name}", place)

    return rule


def _check_float32(value: Any, place: Place) -> Fault | None:
    """Check that a number fits 32 bits."""
    if not _is_number(value) or abs(value) <= 3.4028234663852886e38:
        return None
    return _unfit_type("number with format float", place)


def _unfit_type(wanted: str, place: Place) -> Fault:
    why = f"Checked value must be of type {wanted} in {place_text(place)}"
    return Fault("<nil>", "FieldValueInvalid", f'Invalid value: "": {why}')


# In the order in which the real validator checks a value.
KEYWORDS: dict[str, Callable[[dict[str, Any]], Rule]] = {
    "format": _format,
    "multipleOf": _multiple_of,
    "minimum": _minimum,
    "maximum": _maximum,
    "minItems": _min_items,
    "maxItems": _max_items,
    "enum": _enum,
    "minProperties": _min_properties,
    "maxProperties": _max_properties,
}


def _first(rules: list[Rule]) -> Rule:
    def rule(value: Any, place: Place) -> Fault | None:
        return next((f for f in (one(value, place) for one in rules) if f), None)

    return rule


def rules_of(schema: dict[str, Any]) -> tuple[Rule, ...]:
    """The rules that a schema node has for its value."""
    return tuple(_rules(schema))


# Of these, only a text's first fault is reported.
TEXTUAL: dict[str, Callable[[dict[str, Any]], Rule]] = {
    "maxLength": _max_length,
    "minLength": _min_length,
    "pattern": _pattern,
}


def _rules(schema: dict[str, Any]) -> Iterator[Rule]:
    texts = [make(schema) for name, make in TEXTUAL.items() if schema.get(name)]
    if schema.get("maxLength") == 0:
        texts.insert(0, _max_length(schema))
    if texts:
        yield _first(texts) if len(texts) > 1 else texts[0]
    for keyword, make in KEYWORDS.items():
        if keyword == "format" and not format_of(schema):
            continue
        if schema.get(keyword) is not None:
            yield make(schema)
