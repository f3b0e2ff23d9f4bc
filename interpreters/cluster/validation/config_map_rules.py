"""Validation of config maps and secrets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fnop.interpreters.cluster.validation.faults import (
    bad,
    forbidden,
    immutable,
    required,
    too_long,
)
from fnop.interpreters.cluster.validation.field_rules import config_key
from fnop.interpreters.cluster.validation.rules import Rule
from fnop.interpreters.cluster.validation.tables import entries, table
from fnop.interpreters.cluster.values.objects import Object, Resource
from fnop.interpreters.cluster.values.status import Fault

__all__ = ["config_faults"]

CONFIG_MAPS: Resource = ("", "configmaps")
SECRETS: Resource = ("", "secrets")
# The keys that secrets of a type must have.
REQUIRED: dict[str, tuple[str, ...]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
# Keys, one of which must exist; the strange path is the real server's.
ONE_OF: dict[str, tuple[str, ...]] = {
    "kubernetes.io/basic-auth": ("username", "password"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
MOST = 1024 * 1024


def config_faults(
    resource: Resource, obj: Object, old: Object | None
) -> Iterator[Fault]:
    """Yield the faults of the content of a config map or a secret."""
    if resource not in RULES:
        return
    yield from RULES[resource](obj, "")
    if old is not None:
        yield from _change_faults(obj, old)


def _keys_once(obj: Object, path: str) -> Iterator[Fault]:
    for key in obj.get("data", {}).keys() & obj.get("binaryData", {}).keys():
        yield bad(f"data[{key}]", key, "duplicate of key present in binaryData")


def _typed_keys(obj: Object, path: str) -> Iterator[Fault]:
    kind, data = obj.get("type", ""), obj.get("data", {})
    for key in REQUIRED.get(kind, ()):
        if key not in data:
            yield required(f"data[{key}]")
    keys = ONE_OF.get(kind, ())
    if not any(key in data for key in keys):
        for key in keys:
            yield required(f"data[%s][{key}]")


def _coded_bytes(coded: Iterable[str]) -> int:
    return sum(len(text) // 4 * 3 - text[-2:].count("=") for text in coded if text)


def _bytes(texts: Iterable[str]) -> int:
    letters = sum(map(len, texts))
    if 4 * letters > MOST:  # they may have several bytes
        letters = sum(len(text.encode()) for text in texts)
    return letters


def _size_of_map(obj: Object, path: str) -> Iterator[Fault]:
    coded = _coded_bytes((obj.get("binaryData") or {}).values())
    if coded + _bytes((obj.get("data") or {}).values()) > MOST:
        yield too_long("[]", MOST)


def _size_of_secret(obj: Object, path: str) -> Iterator[Fault]:
    if _coded_bytes((obj.get("data") or {}).values()) > MOST:
        yield too_long("data", MOST)


_keys = entries(lambda key, value, path: config_key(key, path))
RULES: dict[Resource, Rule] = {
    CONFIG_MAPS: table(("data, binaryData", _keys), _keys_once, _size_of_map),
    SECRETS: table(("data", _keys), _typed_keys, _size_of_secret),
}


def _change_faults(obj: Object, old: Object) -> Iterator[Fault]:
    yield from immutable(obj, old, "", "type")
    if not old.get("immutable"):
        return
    why = "field is immutable when `immutable` is set"
    if not obj.get("immutable"):
        yield forbidden("immutable", why)
    for part in ("data", "binaryData"):
        if obj.get(part) != old.get(part):
            yield forbidden(part, why)
