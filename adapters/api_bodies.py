"""Bodies of requests: from bytes to JSON, or to the reason why that fails."""

from __future__ import annotations

import json
from typing import Any

import orjson

from fnop.interpreters.cluster.status import failure
from fnop.interpreters.protocol import ApiResponse, Malformed

__all__ = ["LIMIT_BYTES", "PROTOBUF", "body_of", "too_large"]

LIMIT_BYTES = 3 * 1024 * 1024  # MaxRequestBodyBytes
# Deeper than this no answer could be written: what is nested so is not taken.
DEPTH_MAX = 200
YAML_TYPES = ("application/yaml", "application/apply-patch+yaml")
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
        return Malformed(_why_no_json(content), _excerpt(content))


def _checked(value: Any, content: bytes) -> Any:
    """The value, unless it is nested deeper than what is stored can be written.

    Kubernetes takes 10,000 levels; no object that people write has 20.
    """
    if content.count(b"[") + content.count(b"{") > DEPTH_MAX and _is_deep(value):
        return Malformed("exceeded max depth", _excerpt(content))
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
        from fnop.adapters.manifests import ManifestProblem, parse_yaml

    try:
        found = parse_yaml(content.decode())
        return Malformed("yaml: exceeded max depth", "") if _is_deep(found) else found
    except UnicodeDecodeError:
        return Malformed("yaml: invalid UTF-8", _excerpt(content))
    except (ManifestProblem, RecursionError) as problem:
        return Malformed(f"yaml: {problem}", _excerpt(content))


def _protobuf(content: bytes) -> Any:
    from fnop.adapters.protobuf import NotProtobuf, object_of

    try:
        return object_of(content)
    except NotProtobuf as problem:
        return Malformed(str(problem), _excerpt(content))


# Go's words for what Python's decoder finds.
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


def _why_no_json(content: bytes) -> str:
    """What Go's decoder says of it.

    >>> _why_no_json(b'{"a": 1')
    'unexpected end of JSON input'
    """
    text = content.decode(errors="replace")
    try:
        json.loads(text)
    except json.JSONDecodeError as problem:
        at = problem.pos
        words = _WORDS.get(problem.msg)
        if words is None or at >= len(text.rstrip()):
            return "unexpected end of JSON input"
        return f"invalid character {text[at]!r} {words}"
    except RecursionError:
        return "exceeded max depth"
    return "invalid character in the body"  # NaN and the like


def _excerpt(content: bytes, length: int = 30) -> str:
    """summarizeData: JSON as it is, anything else in hexadecimal.

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
