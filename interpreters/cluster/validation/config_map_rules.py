"""Validation of config maps and secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fnop.interpreters.cluster.values.objects import Object, Resource
from fnop.interpreters.cluster.values.status import Fault, quoted

__all__ = ["config_faults"]

CONFIG_MAPS: Resource = ("", "configmaps")
SECRETS: Resource = ("", "secrets")


# ----------------------------------------------------------------- validation

KEY = re.compile(r"[-._a-zA-Z0-9]+")
NOT_A_KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
    "'[-._a-zA-Z0-9]+')"
)
LOCKED = "Forbidden: field is immutable when `immutable` is set"
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


def config_faults(
    resource: Resource, obj: Object, old: Object | None
) -> Iterator[Fault]:
    """Yield the faults of the content of a config map or a secret."""
    if resource not in (CONFIG_MAPS, SECRETS):
        return
    yield from _key_faults(obj, "data")
    if resource == CONFIG_MAPS:
        yield from _key_faults(obj, "binaryData")
        for key in obj.get("data", {}).keys() & obj.get("binaryData", {}).keys():
            yield _invalid_fault(
                f"data[{key}]", key, "duplicate of key present in binaryData"
            )
    else:
        yield from _typed_faults(obj.get("type", ""), obj)
    yield from _size_faults(obj, "[]" if resource == CONFIG_MAPS else "data")
    if old is not None:
        yield from _change_faults(obj, old)


def _typed_faults(kind: str, obj: Object) -> Iterator[Fault]:
    data = obj.get("data", {})
    for key in REQUIRED.get(kind, ()):
        if key not in data:
            yield Fault(f"data[{key}]", "FieldValueRequired", "Required value")
    keys = ONE_OF.get(kind, ())
    if not any(key in data for key in keys):
        for key in keys:
            field = f"data[%s][{key}]"
            yield Fault(field, "FieldValueRequired", "Required value")


MOST = 1024 * 1024


def _size_faults(obj: Object, field: str) -> Iterator[Fault]:
    texts, coded = obj.get("data"), obj.get("binaryData")
    if field == "data":
        texts, coded = None, texts
    size = 0
    if coded:
        given = [text for text in coded.values() if text]
        size = sum(len(text) // 4 * 3 - text[-2:].count("=") for text in given)
    if texts:
        letters = sum(map(len, texts.values()))
        if 4 * letters > MOST:  # they may have several bytes
            letters = sum(len(text.encode()) for text in texts.values())
        size += letters
    if size > MOST:
        message = f"Too long: may not be more than {MOST} bytes"
        yield Fault(field, "FieldValueTooLong", message)


def _key_faults(obj: Object, part: str) -> Iterator[Fault]:
    for key in obj.get(part, ()):
        if not KEY.fullmatch(key):
            yield _invalid_fault(f"{part}[{key}]", key, NOT_A_KEY)


def _change_faults(obj: Object, old: Object) -> Iterator[Fault]:
    if obj.get("type") != old.get("type"):
        yield _invalid_fault("type", obj.get("type", ""), "field is immutable")
    if not old.get("immutable"):
        return
    if not obj.get("immutable"):
        yield Fault("immutable", "FieldValueForbidden", LOCKED)
    for part in ("data", "binaryData"):
        if obj.get(part) != old.get(part):
            yield Fault(part, "FieldValueForbidden", LOCKED)


def _invalid_fault(field: str, value: str, why: str) -> Fault:
    return Fault(field, "FieldValueInvalid", f"Invalid value: {quoted(value)}: {why}")
