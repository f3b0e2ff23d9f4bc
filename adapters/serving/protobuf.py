"""Kubernetes' protobuf bodies: kubectl sends them for built-in kinds.

They become the JSON that the same client would have sent.  The numbers of the fields
are those that Kubernetes 1.33 publishes (`generated.proto` of its API groups). In
protobuf_fields.json each message has, by number, a field's JSON name and its kind. A
kind is s(tring), b(ytes), i(nteger), u(nsigned), ?(bool), d(ouble), f(loat), or a
message. `[]` is a list, `{}` a map of strings, `~` a part whose fields are its owner's.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

import orjson

__all__ = ["NotProtobuf", "object_of"]

MAGIC = b"k8s\x00"
VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5

# Go also writes empty values, which the JSON of the same object omits.
_DROPPED_EMPTY = frozenset(
    [
        "metadata",
        "spec",
        "status",
        "strategy",
        "updateStrategy",
        "resources",
        "loadBalancer",
    ]
)
# Pointers: a missing value differs from false or zero there.
_KEPT_FALSE = frozenset(
    [
        "automountServiceAccountToken",
        "enableServiceLinks",
        "allowPrivilegeEscalation",
        "allocateLoadBalancerNodePorts",
        "hostUsers",
        "suspend",
        "immutable",
        "optional",
    ]
)
_KEPT_ZERO = frozenset(
    [
        "replicas",
        "minReplicas",
        "partition",
        "parallelism",
        "completions",
        "backoffLimit",
        "runAsUser",
        "runAsGroup",
        "fsGroup",
        "terminationGracePeriodSeconds",
        "gracePeriodSeconds",
        "mode",
        "defaultMode",
        "ttlSecondsAfterFinished",
        "revisionHistoryLimit",
        "tolerationSeconds",
        "successfulJobsHistoryLimit",
        "failedJobsHistoryLimit",
        "priority",
        "activeDeadlineSeconds",
    ]
)


class NotProtobuf(Exception):
    """A body that is not protobuf, or whose type is not known."""


def object_of(content: bytes) -> dict[str, Any]:
    """The object in a body of type application/vnd.kubernetes.protobuf.

    >>> body = b"\\n\\x0f\\n\\x02v1\\x12\\tNamespace\\x12\\x07\\n\\x05\\n\\x03abc"
    >>> object_of(MAGIC + body)
    {'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': 'abc'}}

    Raises `NotProtobuf`.
    """
    if not content.startswith(MAGIC):
        raise NotProtobuf(
            "provided data does not appear to be a protobuf message, expected prefix "
            "[107 56 115 0]"
        )
    try:
        # runtime.Unknown: typeMeta = 1, raw = 2.
        envelope = dict(_fields(content[len(MAGIC) :]))
        meta = dict(_fields(envelope[1]))
        api_version, kind = meta.get(1, b"").decode(), meta.get(2, b"").decode()
        body = _message(_message_name(api_version, kind), envelope.get(2, b""))
    except NotProtobuf:
        raise
    except (ValueError, KeyError, IndexError, AttributeError, TypeError, struct.error):
        raise NotProtobuf("proto: illegal wireType or unexpected EOF") from None
    return {"apiVersion": api_version, "kind": kind, **body}


@cache
def _field_table() -> dict[str, dict[int, tuple[str, str]]]:
    text = files(__package__).joinpath("protobuf_fields.json").read_bytes()
    return {
        name: {int(number): _split_name(each) for number, each in fields.items()}
        for name, fields in orjson.loads(text).items()
    }


def _split_name(text: str) -> tuple[str, str]:
    name, _, kind = text.partition(" ")
    return name, kind


def _message_name(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    package = group.partition(".")[0] or "core"
    name = f"{package}.{version}.{kind}"
    if kind == "DeleteOptions":
        name = "meta.v1.DeleteOptions"
    if name not in _field_table():
        raise NotProtobuf(f"no kind {kind} of {api_version} is known as protobuf")
    return name


# ------------------------------------------------------------------ the wire


def _fields(content: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message by number: integers, or bytes."""
    at, end = 0, len(content)
    while at < end:
        tag, at = _varint(content, at)
        number, wire = tag >> 3, tag & 7
        if wire == VARINT:
            value, at = _varint(content, at)
            yield number, value
            continue
        if wire == BYTES:
            size, at = _varint(content, at)
        elif wire in (EIGHT, FOUR):
            size = 8 if wire == EIGHT else 4
        else:
            raise ValueError(f"wire type {wire}")
        if at + size > end:
            raise ValueError("unexpected EOF")
        yield number, content[at : at + size]
        at += size


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("varint overflow")


def _message(name: str, content: bytes) -> dict[str, Any]:
    table = _field_table()[name]
    found: dict[str, Any] = {}
    for number, raw in _fields(content):
        if number not in table:
            continue  # of another version
        field, kind = table[number]
        if kind.startswith("[]"):
            found.setdefault(field, []).append(_value(kind[2:], raw))
        elif kind.startswith("{}"):
            entry = dict(_fields(raw))
            key, value = entry.get(1, b"").decode(), entry.get(2, b"")
            found.setdefault(field, {})[key] = _value(kind[2:], value)
        elif kind.startswith("~"):
            found |= _message(kind[1:], raw)
        else:
            value = _value(kind, raw)
            if not _is_left_out(field, value):
                found[field] = value
    return found


def _is_left_out(field: str, value: Any) -> bool:
    if value is None or value == "":
        return True
    if value is False:
        return field not in _KEPT_FALSE
    if value == 0 and isinstance(value, int):
        return field not in _KEPT_ZERO
    return value == {} and field in _DROPPED_EMPTY


def _value(kind: str, raw: Any) -> Any:
    scalar = _SCALARS.get(kind)
    if scalar is not None:
        return scalar(raw)
    special = _SPECIAL.get(kind)
    return _message(kind, raw) if special is None else special(raw)


def _signed_integer(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


_SCALARS: dict[str, Callable[[Any], Any]] = {
    "s": lambda raw: raw.decode(),
    "b": lambda raw: base64.b64encode(raw).decode(),
    "i": _signed_integer,
    "u": int,
    "?": bool,
    "d": lambda raw: struct.unpack("<d", raw)[0],
    "f": lambda raw: struct.unpack("<f", raw)[0],
}


# ------------------------------------------- messages with a JSON of their own


def _moment(raw: bytes, *, micro: bool = False) -> str | None:
    parts = dict(_fields(raw))
    if not parts:
        return None
    moment = datetime.fromtimestamp(_signed_integer(parts.get(1, 0)), UTC)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{parts.get(2, 0) // 1000:06d}Z" if micro else f"{text}Z"


def _number_or_text(raw: bytes) -> Any:
    parts = dict(_fields(raw))
    if parts.get(1, 0) == 1:
        return parts.get(3, b"").decode()
    return _signed_integer(parts.get(2, 0))


def _json(raw: bytes) -> Any:
    text = dict(_fields(raw)).get(1)
    return orjson.loads(text) if text else None


def _texts(raw: bytes) -> list[str]:
    return [each.decode() for number, each in _fields(raw) if number == 1]


_SPECIAL: dict[str, Callable[[bytes], Any]] = {
    "meta.v1.Time": _moment,
    "meta.v1.MicroTime": lambda raw: _moment(raw, micro=True),
    "meta.v1.FieldsV1": _json,
    "runtime.RawExtension": _json,
    "api.resource.Quantity": lambda raw: dict(_fields(raw)).get(1, b"0").decode(),
    "util.intstr.IntOrString": _number_or_text,
    "authentication.v1.ExtraValue": _texts,
    "authorization.v1.ExtraValue": _texts,
    "certificates.v1.ExtraValue": _texts,
}
