"""Databases on a shared server, with one function for everything that happens to them.

The server is ready when a ConfigMap says so. Passwords are in Secrets, made with the
client's models; the Service is made from a template of text.
"""

import copy
import dataclasses
import datetime
import hashlib
import json
import typing

import kopf
import kubernetes
import yaml

API = "replicas.fnop.dev"
ENGINES = {"postgres": 5432, "mysql": 3306}

SERVICE = """
apiVersion: v1
kind: Service
metadata:
  name: "{name}-db"
  annotations:
    engine: "{engine}:{version}"
spec:
  type: ExternalName
  externalName: "{host}"
"""


@dataclasses.dataclass
class User:
    name: str
    admin: bool = False

    @property
    def password(self):
        return hashlib.md5(self.name.encode()).hexdigest()


@kopf.on.startup()
def startup(settings, **kwargs):
    settings.persistence.finalizer = f"databases.{API}/drop"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(
        prefix=f"databases.{API}", touch_key="kick"
    )
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(
        prefix=f"databases.{API}",
        key="last-applied",
        ignored_fields=["spec.description"],
    )
    settings.posting.level = 30


def host_of(engine, namespace):
    """The address of the server, once somebody has written it down."""
    core = kubernetes.client.CoreV1Api()
    try:
        server = core.read_namespaced_config_map(f"server-{engine}", namespace)
    except kubernetes.client.exceptions.ApiException as e:
        if e.status == 404:
            raise kopf.TemporaryError(f"no server of {engine}", delay=1)  # noqa: B904
        raise
    if (server.data or {}).get("state") != "ready":
        raise kopf.TemporaryError(f"the server of {engine} starts", delay=1)
    return server.data["host"]


def condition(patch, status, type, ok, message=""):
    """Replace the condition of this type, among those of earlier calls."""
    conditions = [dict(c) for c in status.get("conditions", []) if c["type"] != type]
    conditions.append(
        {
            "type": type,
            "status": "True" if ok else "False",
            "message": message,
            "lastTransitionTime": datetime.datetime.now().isoformat() + "Z",  # noqa: DTZ005, TID251
        }
    )
    patch.status["conditions"] = sorted(conditions, key=lambda c: c["type"])


def apply_secret(core, namespace, name, users):
    secret = kubernetes.client.V1Secret(
        metadata=kubernetes.client.V1ObjectMeta(name=f"{name}-users"),
        string_data={user.name: user.password for user in users},
    )
    kopf.adopt(secret)
    try:
        core.create_namespaced_secret(namespace, secret)
        return "created"
    except kubernetes.client.exceptions.ApiException as e:
        if json.loads(e.body)["reason"] != "AlreadyExists":
            raise
    core.replace_namespaced_secret(f"{name}-users", namespace, secret)
    return "replaced"


@kopf.on.resume(API, "v1", "databases")
@kopf.on.create(API, "v1", "databases", timeout=600)
@kopf.on.update(API, "v1", "databases", backoff=2)
@kopf.on.delete(API, "v1", "databases", retries=10)
def reconcile(
    spec: kopf.Spec,
    meta: kopf.Meta,
    status: kopf.Status,
    body: kopf.Body,
    patch: kopf.Patch,
    reason: str,
    retry: int,
    started: datetime.datetime,
    runtime: datetime.timedelta,
    logger: typing.Any,
    diff=None,
    **kwargs,
):
    name, namespace = meta["name"], meta["namespace"]
    core = kubernetes.client.CoreV1Api()

    if reason == "delete":
        if retry < 2:
            patch["status"] = {"phase": f"Dropping{retry}"}
            raise kopf.TemporaryError(f"{name} has connections", delay=0.5)
        logger.info(
            f"dropped {name} after {retry} retries: {runtime >= datetime.timedelta(0)}"
        )
        return None

    engine = spec["engine"]
    if engine not in ENGINES:
        patch.status["phase"] = "Invalid"
        condition(patch, status, "Ready", False, f"no engine {engine}")
        raise kopf.PermanentError(f"unknown engine {engine!r}, not in {list(ENGINES)}")

    patch.status["phase"] = "Pending"
    host = host_of(engine, namespace)

    users = [User(**user) for user in spec.get("users", [])] or [User(name)]
    done = apply_secret(core, namespace, name, users)
    text = SERVICE.format(name=name, host=host, **{"version": "?", **spec})
    service = yaml.safe_load(text)
    kopf.append_owner_reference([service], owner=body)
    kopf.label([service], {"database": name, **dict(meta.labels)})
    try:
        core.create_namespaced_service(body=service, namespace=namespace)
    except kubernetes.client.exceptions.ApiException as e:
        if e.status != 409:
            raise kopf.TemporaryError(e.reason, delay=3) from e
        core.patch_namespaced_service(
            name=service["metadata"]["name"], namespace=namespace, body=service
        )

    if diff:
        for op, field, old, new in sorted(diff, key=lambda item: item.field):
            logger.info(
                "%s %s: %r -> %r",
                op,
                ".".join(field) or "all",
                type(old).__name__,
                type(new).__name__,
            )
    original = copy.deepcopy(dict(spec))
    patch.status["phase"] = "Ready"
    patch.status["after"] = str(reason)
    patch.status["url"] = f"{engine}://{host}:{ENGINES[engine]}/{name}"
    patch.status["observedGeneration"] = meta["generation"]
    patch.status["spec"] = json.dumps(original, sort_keys=True)
    patch.status["users"] = {user.name: dataclasses.asdict(user) for user in users}
    condition(patch, status, "Ready", True)
    logger.warning(f"{name} is ready for {reason}; the secret is {done}")
    return {"secret": f"{name}-users", "users": len(users), "retries": retry}


@kopf.on.field(API, "v1", "databases", field="spec.storage")
def resize(old, new, status, patch, name, logger, **kwargs):
    if old is None:
        logger.info(f"storage begins with {new}")
        return new
    if new is None or new < old:
        patch.spec["storage"] = old
        condition(patch, status, "Resized", False, "a disk does not shrink")
        raise kopf.PermanentError(f"a disk does not shrink from {old} to {new}")
    condition(patch, status, "Resized", True, f"{old} -> {new}")
    return {"from": old, "to": new}


@kopf.on.update(
    API,
    "v1",
    "databases",
    field=("spec", "version"),
    old="13",
    new=kopf.PRESENT,
    backoff=1,
)
def upgrade(old, new, diff, patch, logger, retry, **kwargs):
    if retry == 0:
        raise Exception("the dump failed")
    logger.info(f"upgraded: {[tuple(d) for d in diff]}")
    return f"{old}->{new}"


# In 60 seconds it would be called again, so its backoff is short.
upgrade_again = kopf.on.field(
    API, "v1", "databases", field="metadata.labels", id="labels", backoff=1, retries=2
)


@upgrade_again
def labelled(new, retry, logger, namespace, name, **_):
    """Write the labels to the Secret, which may be missing."""
    secret = kubernetes.client.CoreV1Api().patch_namespaced_secret(
        f"{name}-users", namespace, {"metadata": {"labels": dict(new or {})}}
    )
    logger.info(f"labels of the secret: {sorted(secret.metadata.labels or {})}")


@kopf.on.event("secrets", when=lambda name, **_: name.endswith("-users"))
def secret_event(event, name, namespace, logger, **_):
    if event["type"] != "DELETED":
        return
    owner = event["object"]["metadata"]["ownerReferences"][0]
    api = kubernetes.client.CustomObjectsApi()
    try:
        found = api.get_namespaced_custom_object(
            API, "v1", namespace, "databases", owner["name"]
        )
    except kubernetes.client.exceptions.ApiException:
        return
    if "deletionTimestamp" in found["metadata"]:
        return
    api.patch_namespaced_custom_object(
        API,
        "v1",
        namespace,
        "databases",
        owner["name"],
        {"metadata": {"annotations": {"secret-lost": name}}},
    )
    logger.info(f"told {owner['kind']} {owner['name']}")
