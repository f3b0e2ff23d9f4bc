"""The bodies of requests, as bytes."""

from __future__ import annotations

from typing import Any

import orjson

from fnop.effects.regexes import regex

__all__ = ["YAML_TYPES", "written"]

YAML_TYPES = ("application/yaml", "application/apply-patch+yaml")

# Characters that YAML lacks, or reads as a line break (YAML 1.1: 5.1).
_NOT_YAML = regex("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def written(content_type: str, body: Any) -> bytes:
    r"""The bytes of a body; servers read a body of server-side apply as YAML.

    >>> written("application/apply-patch+yaml", {"a": "\x7f"})
    b'{"a":"\\u007f"}'
    """
    raw = orjson.dumps(body)
    if content_type not in YAML_TYPES:
        return raw
    return _NOT_YAML.sub(lambda sign: f"\\u{ord(sign[0]):04x}", raw.decode()).encode()
