"""The children of a database, for both operators that are written with Kopf.

Each check reads all of them again and applies the differences, with lightkube.
"""

# Types are checked without the bench extra, too: then neither library is there.
# mypy: disable-error-code="import-not-found"
# mypy: disable-error-code="arg-type, call-overload"

import hashlib
import json
import secrets
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import kopf
from lightkube import ApiError, AsyncClient
from lightkube.codecs import from_dict
from lightkube.generic_resource import create_namespaced_resource
from lightkube.resources.apps_v1 import StatefulSet
from lightkube.resources.core_v1 import ConfigMap, Secret, Service
from lightkube.types import CascadeType, PatchType

PORT = 5432
MADE = "databases.fnop.dev/made"
APPLIED = "databases.fnop.dev/applied"
CHILDREN = {
    "ConfigMap": ConfigMap,
    "Secret": Secret,
    "Service": Service,
    "StatefulSet": StatefulSet,
}
Database = create_namespaced_resource("fnop.dev", "v1", "Database", "databases")
RESYNC_SECONDS = 60.0
Manifest = dict[str, Any]


def owner_of(meta: Any) -> Manifest:
    """The reference to the database that an object belongs to, or {}."""
    found = meta.get("ownerReferences") or ()
    return next((each for each in found if each["kind"] == "Database"), {})


def is_child(meta: kopf.Meta, **_: Any) -> bool:
    """Whether it is a child by its reference, even if it has lost its labels."""
    return owner_of(meta) != {}


async def looked_after(api: AsyncClient, name: str, namespace: str, uid: str) -> float:
    """Make a database's children as desired; return the seconds to the next check."""
    owner = await read(api, Database, name, namespace)
    if owner is None or is_going(owner) or owner["metadata"]["uid"] != uid:
        return RESYNC_SECONDS
    now, spec = datetime.now(UTC), owner["spec"]
    found = {
        kind: await read(api, resource, name, namespace)
        for kind, resource in CHILDREN.items()
    }
    stateful_set = found["StatefulSet"] or {}
    period = timedelta(seconds=spec["rotateSeconds"])
    password, made = password_in(found["Secret"])
    if not password or made + period <= now:
        made, password = now, b64encode(secrets.token_hex(16).encode()).decode()
    settings = {key: str(value) for key, value in spec.get("settings", {}).items()}
    size = next_size(spec["size"], stateful_set)
    problems: list[Exception] = []
    for manifest in (
        config_map(name, settings),
        secret(name, password, made),
        service(name),
        workload(name, size, spec["disk"], settings),
    ):
        try:
            await apply(api, manifest, found[manifest["kind"]], owner)
        except Exception as problem:
            problems.append(problem)
    await tell(api, owner, stateful_set, problems, now)
    if problems:
        raise problems[0]
    return min(RESYNC_SECONDS, (made + period - now).total_seconds())


async def read(
    api: AsyncClient, resource: Any, name: str, namespace: str
) -> Manifest | None:
    try:
        found = await api.get(resource, name, namespace=namespace)
    except ApiError as problem:
        if problem.status.code == 404:
            return None
        raise
    manifest: Manifest = found.to_dict()
    return manifest


async def apply(
    api: AsyncClient, manifest: Manifest, found: Manifest | None, owner: Manifest
) -> None:
    """Apply a child, unless it is as desired, or belongs to another owner.

    A digest of the applied state is kept. A field that is no longer desired is removed
    by the next apply, but comparing the desired with the present state does not show
    it.
    """
    kopf.append_owner_reference(manifest, owner)
    text = json.dumps(manifest, sort_keys=True).encode()
    marks = manifest["metadata"].setdefault("annotations", {})
    marks[APPLIED] = hashlib.sha256(text).hexdigest()[:16]
    kind, namespace = manifest["kind"], owner["metadata"]["namespace"]
    if found and is_going(found):
        raise kopf.TemporaryError(f"the {kind} is being deleted", delay=1)
    if found and owner_of(found["metadata"]).get("uid") != owner["metadata"]["uid"]:
        raise kopf.TemporaryError(f"the {kind} is not of this database", delay=1)
    if found and not differs(manifest, found):
        return
    if found and differs(claims(manifest), claims(found)):
        # A volume's size is immutable in a StatefulSet: it is recreated, and finds the
        # existing volumes.
        name = manifest["metadata"]["name"]
        cascade = CascadeType.BACKGROUND
        await api.delete(CHILDREN[kind], name, namespace=namespace, cascade=cascade)
        raise kopf.TemporaryError(f"the {kind} is made anew", delay=1)
    await api.apply(from_dict(manifest), namespace=namespace, force=True)


async def tell(
    api: AsyncClient,
    owner: Manifest,
    stateful_set: Manifest,
    problems: list[Exception],
    now: datetime,
) -> None:
    """Write the conditions and the endpoint; others' conditions stay."""
    meta, size = owner["metadata"], owner["spec"]["size"]
    status = owner.get("status") or {}
    ready = stateful_set.get("status", {}).get("readyReplicas", 0)
    before = {each["type"]: each for each in status.get("conditions") or ()}
    told = {
        "Ready": (ready == size, "Replicas", f"{ready}/{size}"),
        "Synced": (
            not problems,
            "Failing" if problems else "AsDesired",
            "; ".join(map(message_of, problems)),
        ),
    }
    conditions = before | {
        type: condition(type, *each, meta["generation"], before.get(type, {}), now)
        for type, each in told.items()
    }
    desired = {
        "conditions": [*conditions.values()],
        "endpoint": f"{meta['name']}.{meta['namespace']}.svc:{PORT}",
    }
    if desired != {key: status.get(key) for key in desired}:
        # A merge patch replaces the list: not if another client has changed it
        # meanwhile.
        lock = {"resourceVersion": meta["resourceVersion"]}
        await api.patch(
            Database.Status,
            meta["name"],
            {"metadata": lock, "status": desired},
            namespace=meta["namespace"],
            patch_type=PatchType.MERGE,
        )


def condition(
    type: str,
    is_so: bool,
    reason: str,
    message: str,
    generation: int,
    before: Manifest,
    now: datetime,
) -> Manifest:
    status = "True" if is_so else "False"
    since = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    if before.get("status") == status:
        since = before["lastTransitionTime"]
    return {
        "type": type,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": since,
    }


def message_of(problem: Exception) -> str:
    return str(problem) or repr(problem)


def is_going(found: Manifest) -> bool:
    return "deletionTimestamp" in found["metadata"]


def claims(found: Manifest) -> Any:
    return found["spec"].get("volumeClaimTemplates") if "spec" in found else None


def differs(wanted: Any, found: Any) -> bool:
    """Whether a field is not as wanted; the API server and others add fields."""
    if isinstance(wanted, dict):
        fields = found if isinstance(found, dict) else {}
        return any(differs(each, fields.get(key)) for key, each in wanted.items())
    if isinstance(wanted, list):
        items = found or []
        return len(items) < len(wanted) or any(map(differs, wanted, items))
    return bool(wanted != found)


def password_in(secret: Any) -> tuple[str, datetime]:
    """The password, and when it was made; "" where there is none."""
    try:
        made = datetime.fromisoformat(secret["metadata"]["annotations"][MADE])
        return secret["data"]["password"], made.replace(tzinfo=UTC)
    except (TypeError, KeyError, ValueError):
        return "", datetime.fromtimestamp(0, UTC)


def next_size(wanted: int, stateful_set: Any) -> int:
    """The replicas to request now: decrease one by one, each after the last is gone."""
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
