"""Bodies of requests: from bytes to JSON, or to the reason of a failure."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

import orjson

from fnop.adapters.common.bodies import YAML_TYPES
from fnop.interpreters.cluster.values.status import failure
from fnop.interpreters.runtime.protocol import ApiResponse, MalformedBody

__all__ = ["LIMIT_BYTES", "PROTOBUF", "body_of", "too_large"]

LIMIT_BYTES = 3 * 1024 * 1024  # MaxRequestBodyBytes
# Values nested deeper than this are refused: no answer with them could be written.
DEPTH_MAX = 200
PROTOBUF = "application/vnd.kubernetes.protobuf"


def body_of(content_type: str, content: bytes) -> Any:
    """The JSON value of a body of this type.

    >>> body_of("application/yaml", b"a: 1")
    {'a': 1}
    >>> body_of("application/json", b"{bad").message
    "invalid character 'b' looking for beginning of object key string"
    """
    if content_type in YAML_TYPES:
        return _yaml(content)
    if content_type == PROTOBUF:
        return _protobuf(content)
    try:
        return _checked(orjson.loads(content), content)
    except orjson.JSONDecodeError:
        return _malformed_body(content)


def _checked(value: Any, content: bytes) -> Any:
    """Return the value; raise if it is nested too deeply to be stored.

    Kubernetes accepts 10,000 levels; objects that people write have fewer than 20.
    """
    if content.count(b"[") + content.count(b"{") > DEPTH_MAX and _is_deep(value):
        return MalformedBody("exceeded max depth", _excerpt(content))
    return value


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEPTH_MAX):
        level = [
            item
            for each in level
            if isinstance(each, dict | list)
            for item in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True


def _yaml(content: bytes) -> Any:
    try:  # JSON is YAML, and most YAML that clients send is JSON
        return _checked(orjson.loads(content), content)
    except orjson.JSONDecodeError:
        from fnop.adapters.common.manifests import ManifestProblem, parse_yaml

    try:
        found = parse_yaml(content.decode())
        return (
            MalformedBody("yaml: exceeded max depth", "") if _is_deep(found) else found
        )
    except UnicodeDecodeError:
        return MalformedBody("yaml: invalid UTF-8", _excerpt(content))
    except (ManifestProblem, RecursionError) as problem:
        return MalformedBody(f"yaml: {problem}", _excerpt(content))


def _protobuf(content: bytes) -> Any:
    from fnop.adapters.serving.protobuf import NotProtobuf, object_of

    try:
        return object_of(content)
    except NotProtobuf as problem:
        return MalformedBody(str(problem), _excerpt(content))


# Go's words for the errors of Python's decoder.
_WORDS = {
    "Expecting property name enclosed in double quotes": (
        "looking for beginning of object key string"
    ),
    "Expecting value": "looking for beginning of value",
    "Expecting ':' delimiter": "after object key",
    "Expecting ',' delimiter": "after object key:value pair",
    "Extra data": "after top-level value",
    "Invalid control character at": "in string literal",
    "Invalid \\escape": "in string escape code",
}


def _malformed_body(content: bytes) -> MalformedBody:
    """The error of Go's JSON decoder for a body that it cannot decode.

    >>> _malformed_body(b'{"a": 1').message
    'unexpected end of JSON input'
    >>> _malformed_body(b'{"a": NaN}').message
    "invalid character 'N' looking for beginning of value"
    >>> _malformed_body(b'{"a": 1e400}').number
    '1e400'
    """
    excerpt, text = _excerpt(content), content.decode(errors="replace")
    numbers: list[str] = []

    def note(number: str) -> None:
        if math.isinf(float(number)):
            numbers.append(number)

    try:
        json.loads(
            text, parse_int=note, parse_float=note, parse_constant=_refuse_number
        )
    except json.JSONDecodeError as problem:
        at = problem.pos
        words = _WORDS.get(problem.msg)
        if words is None or at >= len(text.rstrip()):
            return MalformedBody("unexpected end of JSON input", excerpt)
        return MalformedBody(f"invalid character {text[at]!r} {words}", excerpt)
    except _NoNumber as problem:
        return MalformedBody(f"invalid character {problem}", excerpt)
    except RecursionError:
        return MalformedBody("exceeded max depth", excerpt)
    if numbers:
        return MalformedBody("a number is out of range", excerpt, numbers[0])
    return MalformedBody("invalid character in the body", excerpt)


class _NoNumber(Exception):
    """A number for Python that is not one in JSON, such as NaN."""


def _refuse_number(name: str) -> NoReturn:
    """Raise for NaN, Infinity or -Infinity, in the words of Go's decoder."""
    sign, _, rest = name.rpartition("-")
    where = "in numeric literal" if name[0] == "-" else _WORDS["Expecting value"]
    raise _NoNumber(f"{(rest or sign)[0]!r} {where}")


def _excerpt(content: bytes, length: int = 30) -> str:
    """Show the beginning of a body, as summarizeData does: JSON as text, or in hex.

    >>> _excerpt(b"hello"), _excerpt(b"{bad")
    ('68656c6c6f', '{bad')
    """
    begin = content[:length]
    text = begin.decode(errors="replace") if begin[:1] == b"{" else begin.hex()
    return f"{text} ..." if len(content) > length else text


def too_large() -> ApiResponse:
    """413, in the words of the real server."""
    message = f"Request entity too large: limit is {LIMIT_BYTES}"
    return failure(413, "RequestEntityTooLarge", message).response
