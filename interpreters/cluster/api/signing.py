"""Certificate signing requests: the requester's fields, and the conditions.

The cluster does not sign anything: a client that acts as the signer writes the
certificate to the status.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fnop.interpreters.cluster.access.reviews import ADMIN
from fnop.interpreters.cluster.values.objects import Object, Resource
from fnop.interpreters.cluster.values.status import Fault, quoted
from fnop.interpreters.runtime.protocol import User

__all__ = ["SIGNING", "asked_by", "condition_faults", "unchanged"]

SIGNING: Resource = ("certificates.k8s.io", "certificatesigningrequests")
# The requester's fields; the registry's strategy overwrites them.
WHO = ("username", "uid", "groups", "extra")
DECISIONS = ("Approved", "Denied")


def asked_by(user: User | None, obj: Object) -> Object:
    """A new request with its sender in spec, regardless of the body.

    >>> asked_by(User("anna"), {"spec": {"username": "bob", "groups": ["x"]}})
    {'spec': {'username': 'anna'}}
    """
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return obj
    who = user or ADMIN
    said: dict[str, Any] = {
        "username": who.name,
        "uid": who.uid,
        "groups": [*who.groups],
        "extra": {name: [*values] for name, values in who.extra},
    }
    asked = {name: item for name, item in spec.items() if name not in WHO}
    return {**obj, "spec": {**asked, **{k: v for k, v in said.items() if v}}}


def unchanged(new: Object, old: Object) -> Object:
    """A changed request with its old spec, which cannot be changed."""
    return {**new, "spec": old["spec"]} if "spec" in old else new


def condition_faults(new: Object, old: Object, *, deciding: bool) -> Iterator[Fault]:
    """Yield the faults of changed conditions: only `/approval` adds decisions."""
    for type in (*DECISIONS, "Failed"):
        more = _count(new, type) - _count(old, type)
        if more < 0:
            why = f"updates may not remove a condition of type {quoted(type)}"
        elif more > 0 and type in DECISIONS and not deciding:
            why = f"updates may not add a condition of type {quoted(type)}"
        else:
            continue
        yield Fault("status.conditions", "FieldValueForbidden", f"Forbidden: {why}")
    seen: set[str] = set()
    for index, type in enumerate(_types(new)):
        if type in DECISIONS and seen & {*DECISIONS} - {type}:
            why = "Approved and Denied conditions are mutually exclusive"
            message = f"Invalid value: {quoted(type)}: {why}"
            field = f"status.conditions[{index}].type"
            yield Fault(field, "FieldValueInvalid", message)
        seen.add(type)


def _types(obj: Object) -> list[str]:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return [each.get("type", "") for each in conditions]


def _count(obj: Object, type: str) -> int:
    return _types(obj).count(type)
