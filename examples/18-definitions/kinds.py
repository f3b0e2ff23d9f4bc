"""The kind of `databases.py`: its definition (CRD) is made of these types."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

import fnop


@dataclass(frozen=True)
class Backup:
    """When backups are made, and how many are kept."""

    schedule: Annotated[str, fnop.schema(pattern=r"^(\S+ ){4}\S+$")]
    """A cron expression, in UTC."""
    keep: Annotated[int, fnop.schema(minimum=1)] = 7


@dataclass(frozen=True)
class User:
    """Somebody who may use the database."""

    name: Annotated[str, fnop.schema(min_length=1, max_length=63)]
    rights: Literal["read", "write"] = "read"


@fnop.schema(
    rules=[
        fnop.rule(
            "self.engine == oldSelf.engine", "an engine cannot be exchanged for another"
        )
    ]
)
@dataclass(frozen=True)
class DatabaseSpec:
    size: fnop.Quantity
    replicas: Annotated[int, fnop.schema(minimum=1, maximum=9)] = 1
    engine: Literal["postgres", "mysql"] = "postgres"
    backup: Backup | None = None
    users: Annotated[
        tuple[User, ...],
        fnop.schema(list_type="map", list_keys=["name"], max_items=100),
    ] = ()
    labels: dict[str, str] = field(default_factory=dict)
    """Labels of everything that belongs to the database."""


@dataclass(frozen=True)
class DatabaseStatus:
    replicas: int = 0
    selector: str = ""


@fnop.definition(
    "databases.v1.fnop.dev",
    short_names=["db"],
    columns=[
        fnop.column("Engine", ".spec.engine"),
        fnop.column("Replicas", ".status.replicas", type="integer"),
        fnop.column("Age", ".metadata.creationTimestamp", type="date"),
    ],
    scale=fnop.scale(
        spec=".spec.replicas", status=".status.replicas", selector=".status.selector"
    ),
    conditions=True,
)
@dataclass(frozen=True)
class Database:
    """A database with its replicas, users and backups."""

    spec: DatabaseSpec
    status: DatabaseStatus = DatabaseStatus()
