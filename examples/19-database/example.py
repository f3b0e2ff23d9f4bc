"""A database: what should exist, as one function of what there is."""

import hashlib
import json
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import fnop

PORT = 5432
MADE = "databases.fnop.dev/made"
OWNS = ["statefulsets.apps", "services", "configmaps", "secrets"]


@fnop.reconcile("databases", owns=OWNS)
async def database(
    spec: fnop.Spec, name: str, namespace: str, children: Any, now: datetime, **_: Any
) -> fnop.Desired:
    """Called for any change of the database, or of what it owns; never twice at once.

    Nothing is remembered: the password is in the Secret, and how far the StatefulSet is
    on its way to fewer replicas is in the StatefulSet.
    """
    size, period = spec["size"], timedelta(seconds=spec["rotateSeconds"])
    stateful_set = children["statefulsets.apps"].get(name, {})
    password, made = password_in(children["secrets"].get(name))
    if not password or made + period <= now:
        made, drawn = now, await fnop.random(16, secret=True)
        password = b64encode(drawn.hex().encode()).decode()
    settings = {key: str(value) for key, value in spec.get("settings", {}).items()}
    ready = stateful_set.get("status", {}).get("readyReplicas", 0)
    return fnop.desired(
        [
            config_map(name, settings),
            secret(name, password, made),
            service(name),
            # A volume's size is for good in a StatefulSet: it is made anew, and finds
            # the volumes that are there.
            fnop.child(
                workload(name, next_size(size, stateful_set), spec["disk"], settings),
                on_immutable="replace",
            ),
        ],
        conditions=fnop.condition(
            "Ready", ready == size, "Replicas", f"{ready}/{size}"
        ),
        status={"endpoint": f"{name}.{namespace}.svc:{PORT}"},
        again=(made + period - now).total_seconds(),
    )


def password_in(secret: Any) -> tuple[str, datetime]:
    """The password, and when it was made; "" where there is none."""
    try:
        made = datetime.fromisoformat(secret["metadata"]["annotations"][MADE])
        return secret["data"]["password"], made.replace(tzinfo=UTC)
    except (TypeError, KeyError, ValueError):
        return "", datetime.fromtimestamp(0, UTC)


def next_size(wanted: int, stateful_set: Any) -> int:
    """The replicas to ask for now: fewer only one by one, each when the last went."""
    asked: int = stateful_set.get("spec", {}).get("replicas", 0)
    if wanted >= asked:
        return wanted
    seen = stateful_set.get("status", {})
    is_seen = seen.get("observedGeneration") == stateful_set["metadata"]["generation"]
    return asked - 1 if is_seen and seen["replicas"] <= asked else asked


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
    """Its pods are made anew when the settings change."""
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
