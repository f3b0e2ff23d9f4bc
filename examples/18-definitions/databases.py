"""A kind of one's own, defined by Python types, and an operator of it."""

from typing import Any

from kinds import Database

import fnop


@fnop.on.create(Database)
@fnop.on.update(Database, field="spec")
@fnop.on.resume(Database)
def settings(
    name: str, spec: fnop.Spec, body: fnop.Body, patch: fnop.Patch, **_: Any
) -> fnop.Effect:
    """The server has checked the spec and filled in what it lacked."""
    config = {"engine": spec["engine"], "size": str(spec["size"])}
    rights = {f"user.{each['name']}": each["rights"] for each in spec["users"]}
    # For the scale subresource: kubectl scale db/example-1 --replicas 3
    patch.status["replicas"] = spec["replicas"]
    patch.status["selector"] = f"database={name}"
    child = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-settings", "labels": dict(spec["labels"])},
        "data": {**config, **rights},
    }
    return fnop.apply(fnop.owned(child, body))
