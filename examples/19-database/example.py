"""A database: what should exist, as one function of what there is."""

import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from lightkube.resources.apps_v1 import StatefulSet

import fnop

PORT = 5432
MADE = "databases.fnop.dev/made"


@dataclass(frozen=True)
class DatabaseSpec:
    size: Annotated[int, fnop.schema(minimum=1, maximum=9)] = 1
    disk: Annotated[str, fnop.schema(pattern="^[1-9][0-9]*Gi$")] = "1Gi"
    rotate_seconds: Annotated[int, fnop.schema(name="rotateSeconds", minimum=60)] = (
        30 * 24 * 60 * 60
    )
    settings: Mapping[str, str] | None = None


@dataclass(frozen=True)
class DatabaseStatus:
    endpoint: str = ""


@fnop.definition(
    "databases.v1.fnop.dev",
    short_names=["db"],
    columns=[
        fnop.column("Ready", '.status.conditions[?(@.type=="Ready")].message'),
        fnop.column("Endpoint", ".status.endpoint"),
    ],
)
@dataclass(frozen=True)
class Database:
    spec: DatabaseSpec
    status: DatabaseStatus = DatabaseStatus()


@fnop.reconcile(Database, owns=[StatefulSet, "services", "configmaps", "secrets"])
async def database(
    spec: DatabaseSpec,
    name: str,
    namespace: str,
    children: fnop.Children,
    now: datetime,
    **_: Any,
) -> fnop.Desired:
    """Called for any change of the database, or of what it owns; never twice at once.

    Nothing is remembered: the password is in the Secret, and how far the StatefulSet is
    on its way to fewer replicas is in the StatefulSet.
    """
    size, period = spec.size, timedelta(seconds=spec.rotate_seconds)
    stateful_set = children[StatefulSet].get(name)
    password, made = password_in(children["secrets"].get(name))
    if not password or made + period <= now:
        made, drawn = now, await fnop.random(16, secret=True)
        password = b64encode(drawn.hex().encode()).decode()
    settings = dict(spec.settings or {})
    ready = ready_replicas(stateful_set)
    return fnop.desired(
        [
            config_map(name, settings),
            secret(name, password, made),
            service(name),
            # A volume's size is for good in a StatefulSet: it is made anew, and finds
            # the volumes that are there.
            fnop.child(
                workload(name, next_size(size, stateful_set), spec.disk, settings),
                on_immutable="replace",
            ),
        ],
        conditions=fnop.condition(
            "Ready", ready == size, "Replicas", f"{ready}/{size}"
        ),
        status=DatabaseStatus(endpoint=f"{name}.{namespace}.svc:{PORT}"),
        again=(made + period - now).total_seconds(),
    )


def password_in(secret: Any) -> tuple[str, datetime]:
    """The password, and when it was made; "" where there is none."""
    try:
        made = datetime.fromisoformat(secret["metadata"]["annotations"][MADE])
        return secret["data"]["password"], made.replace(tzinfo=UTC)
    except (TypeError, KeyError, ValueError):
        return "", datetime.fromtimestamp(0, UTC)


def ready_replicas(stateful_set: StatefulSet | None) -> int:
    """The number of its pods that are ready."""
    if stateful_set is None or stateful_set.status is None:
        return 0
    return stateful_set.status.readyReplicas or 0


def next_size(wanted: int, stateful_set: StatefulSet | None) -> int:
    """The replicas to ask for now: fewer only one by one, each when the last went."""
    if stateful_set is None or stateful_set.spec is None:
        return wanted
    asked = stateful_set.spec.replicas or 0
    if wanted >= asked:
        return wanted
    seen, meta = stateful_set.status, stateful_set.metadata
    if seen is None or meta is None or seen.observedGeneration != meta.generation:
        return asked
    return asked - 1 if seen.replicas <= asked else asked


def config_map(name: str, settings: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": settings,
    }


def secret(name: str, password: str, made: datetime) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "annotations": {MADE: made.isoformat()}},
        "data": {"password": password},
    }


def service(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {
            "clusterIP": "None",
            "selector": {"database": name},
            "ports": [{"name": "sql", "port": PORT, "protocol": "TCP"}],
        },
    }


def workload(
    name: str, size: int, disk: str, settings: dict[str, str]
) -> dict[str, Any]:
    """Its pods are made again when the settings change."""
    text = json.dumps(settings, sort_keys=True).encode()
    mark = {"databases.fnop.dev/settings": hashlib.sha256(text).hexdigest()[:8]}
    password = {"secretKeyRef": {"name": name, "key": "password"}}
    container = {
        "name": "database",
        "image": "database:1",
        "ports": [{"containerPort": PORT, "protocol": "TCP"}],
        "env": [{"name": "PASSWORD", "valueFrom": password}],
        "envFrom": [{"configMapRef": {"name": name}}],
    }
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": disk}},
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "serviceName": name,
            "replicas": size,
            "selector": {"matchLabels": {"database": name}},
            "template": {
                "metadata": {"labels": {"database": name}, "annotations": mark},
                "spec": {"containers": [container]},
            },
            "volumeClaimTemplates": [claim],
        },
    }
