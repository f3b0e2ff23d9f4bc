"""A kind of one's own, defined by Python types, and an operator of it."""

from typing import Any

from kinds import Database, DatabaseSpec, DatabaseStatus

import fnop


@fnop.reconcile(Database, owns="configmaps")
def settings(name: str, spec: DatabaseSpec, **_: Any) -> fnop.Desired:
    """The server has checked the spec and filled in what it lacked."""
    config = {"engine": spec.engine, "size": str(spec.size)}
    rights = {f"user.{each.name}": each.rights for each in spec.users}
    child = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-settings", "labels": dict(spec.labels)},
        "data": {**config, **rights},
    }
    # For the scale subresource: kubectl scale db/example-1 --replicas 3
    scale = DatabaseStatus(spec.replicas, selector=f"database={name}")
    return fnop.desired([child], status=scale)


@fnop.on.create(Database)
def made(spec: DatabaseSpec, **_: Any) -> fnop.Effect:
    return fnop.event("Made", f"{spec.engine} with {spec.size}")
