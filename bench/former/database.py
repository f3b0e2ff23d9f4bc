"""The example 19-database, by causes."""

import hashlib
import json
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import fnop

PORT = 5432
MADE = "databases.fnop.dev/made"
OWNED = {"database": fnop.PRESENT}
KIND = "databases"


@fnop.on.create(KIND)
@fnop.on.resume(KIND)
async def made(
    spec: fnop.Spec,
    body: fnop.Body,
    name: str,
    namespace: str | None,
    now: datetime,
    **_: Any,
) -> None:
    settings = settings_of(spec)
    await fnop.apply(owned(config_map(name, settings), body), force=True)
    if await fnop.get("secrets", name=name) is None:
        drawn = await fnop.random(16, secret=True)
        await fnop.create(owned(secret(name, encoded(drawn), now), body))
    await fnop.apply(owned(service(name), body), force=True)
    found = await fnop.get("statefulsets", name=name)
    size = next_size(spec["size"], found or {})
    await with_replacement(workload(name, size, spec["disk"], settings), body)
    endpoint = f"{name}.{namespace}.svc:{PORT}"
    await fnop.patch(status={"endpoint": endpoint})
    await fnop.patch(status=await readiness(body, found or {}, now))


@fnop.on.update(KIND, field="spec.settings")
async def settings_changed(
    spec: fnop.Spec, body: fnop.Body, name: str, **_: Any
) -> None:
    settings = settings_of(spec)
    await fnop.apply(owned(config_map(name, settings), body), force=True)
    found = await fnop.get("statefulsets", name=name)
    size = next_size(spec["size"], found or {})
    await with_replacement(workload(name, size, spec["disk"], settings), body)


@fnop.on.update(KIND, field="spec.size")
@fnop.on.update(KIND, field="spec.disk")
async def shape_changed(
    spec: fnop.Spec, body: fnop.Body, name: str, now: datetime, **_: Any
) -> None:
    found = await fnop.get("statefulsets", name=name)
    size = next_size(spec["size"], found or {})
    await with_replacement(workload(name, size, spec["disk"], settings_of(spec)), body)
    await fnop.patch(status=await readiness(body, found or {}, now))


@fnop.on.event("statefulsets.apps", labels=OWNED, owner=KIND)
async def stateful_set_seen(
    body: fnop.Body, owner: Any, type: str | None, now: datetime, **_: Any
) -> None:
    database = await fnop.get(KIND, name=owner.name)
    if database is None or is_going(database):
        return
    spec, found = database["spec"], {} if type == "DELETED" else body
    size = next_size(spec["size"], found)
    settings = settings_of(spec)
    wanted = workload(owner.name, size, spec["disk"], settings)
    if not found or differs(wanted, found):
        await with_replacement(wanted, database)
    status = await readiness(database, found, now)
    if status["conditions"] != database.get("status", {}).get("conditions"):
        await fnop.patch(database, status=status)


@fnop.on.event("services", labels=OWNED, owner=KIND)
async def service_seen(body: fnop.Body, owner: Any, type: str | None, **_: Any) -> None:
    database = await fnop.get(KIND, name=owner.name)
    if database is None or is_going(database):
        return
    wanted = service(owner.name)
    if type == "DELETED" or differs(wanted, body):
        await fnop.apply(owned(wanted, database), force=True)


@fnop.on.event("configmaps", labels=OWNED, owner=KIND)
async def config_map_seen(
    body: fnop.Body, owner: Any, type: str | None, **_: Any
) -> None:
    database = await fnop.get(KIND, name=owner.name)
    if database is None or is_going(database):
        return
    wanted = config_map(owner.name, settings_of(database["spec"]))
    if type == "DELETED" or differs(wanted, body):
        await fnop.apply(owned(wanted, database), force=True)


@fnop.on.event("secrets", labels=OWNED, owner=KIND)
async def secret_seen(
    body: fnop.Body, owner: Any, type: str | None, now: datetime, **_: Any
) -> None:
    database = await fnop.get(KIND, name=owner.name)
    if database is None or is_going(database):
        return
    if type == "DELETED" or not password_in(body)[0]:
        drawn = await fnop.random(16, secret=True)
        wanted = secret(owner.name, encoded(drawn), now)
        await fnop.apply(owned(wanted, database), force=True)


@fnop.timer(KIND, interval=60)
async def rotate(
    spec: fnop.Spec, body: fnop.Body, name: str, now: datetime, **_: Any
) -> None:
    found = await fnop.get("secrets", name=name)
    password, made = password_in(found)
    if password and made + timedelta(seconds=spec["rotateSeconds"]) > now:
        return
    drawn = await fnop.random(16, secret=True)
    await fnop.apply(owned(secret(name, encoded(drawn), now), body), force=True)


async def with_replacement(wanted: dict[str, Any], database: Any) -> None:
    """Apply a StatefulSet; if its volumes have another size, it is recreated."""
    name = wanted["metadata"]["name"]
    try:
        await fnop.apply(owned(wanted, database), force=True)
    except fnop.Refused as problem:
        if problem.status != 422:
            raise
        await fnop.delete("statefulsets", name=name)
        raise fnop.TemporaryError("the StatefulSet is made anew", delay=1) from None


async def readiness(database: Any, stateful_set: Any, now: datetime) -> dict[str, Any]:
    """The status with the condition Ready merged into the present conditions."""
    size = database["spec"]["size"]
    ready = stateful_set.get("status", {}).get("readyReplicas", 0)
    told = {
        "type": "Ready",
        "status": "True" if ready == size else "False",
        "reason": "Replicas",
        "message": f"{ready}/{size}",
        "observedGeneration": database["metadata"]["generation"],
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    present = database.get("status", {}).get("conditions", [])
    for each in present:
        if each["type"] == "Ready" and each["status"] == told["status"]:
            told["lastTransitionTime"] = each["lastTransitionTime"]
    return {"conditions": [*(e for e in present if e["type"] != "Ready"), told]}


def owned(manifest: dict[str, Any], database: Any) -> dict[str, Any]:
    meta = database["metadata"]
    reference = {
        "apiVersion": "fnop.dev/v1",
        "kind": "Database",
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }
    marks = {"ownerReferences": [reference], "labels": {"database": meta["name"]}}
    return {**manifest, "metadata": {**manifest["metadata"], **marks}}


def is_going(found: Any) -> bool:
    return "deletionTimestamp" in found["metadata"]


def differs(wanted: Any, found: Any) -> bool:
    """Whether a field is not as wanted; the API server fills in others."""
    if isinstance(wanted, dict):
        return any(differs(each, found.get(key, {})) for key, each in wanted.items())
    if isinstance(wanted, list):
        if len(wanted) != len(found):
            return True
        return any(
            differs(one, other) for one, other in zip(wanted, found, strict=True)
        )
    return bool(wanted != found)


def settings_of(spec: Any) -> dict[str, str]:
    return {key: str(value) for key, value in spec.get("settings", {}).items()}


def encoded(drawn: bytes) -> str:
    return b64encode(drawn.hex().encode()).decode()


def password_in(secret: Any) -> tuple[str, datetime]:
    """The password, and when it was made; "" where there is none."""
    try:
        made = datetime.fromisoformat(secret["metadata"]["annotations"][MADE])
        return secret["data"]["password"], made.replace(tzinfo=UTC)
    except (TypeError, KeyError, ValueError):
        return "", datetime.fromtimestamp(0, UTC)


def next_size(wanted: int, stateful_set: Any) -> int:
    """The replicas to request now: decrease one by one, each after the last is gone."""
    asked = stateful_set.get("spec", {}).get("replicas", 0)
    if wanted >= asked:
        return wanted
    seen = stateful_set.get("status", {})
    is_seen = seen.get("observedGeneration") == stateful_set["metadata"]["generation"]
    return int(asked - 1 if is_seen and seen["replicas"] <= asked else asked)


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
