"""Secrets and ConfigMaps that are copied to other namespaces, in the whole cluster.

A Broadcast is of no namespace; its data is at the top level of the object. Annotated
ConfigMaps are followed by watch events alone, annotated Secrets by changes.
"""

import base64
import logging
import re

import kopf
from kubernetes import client, config
from kubernetes.client.rest import ApiException

PREFIX = "mirrors.fnop.dev"
TO = f"{PREFIX}/to"
FROM = f"{PREFIX}/from"
COPY = {f"{PREFIX}/copy": kopf.PRESENT}
TEAMS = {"team": kopf.PRESENT, f"{PREFIX}/skip": kopf.ABSENT}

# What is known: by the uid of the Broadcast.
broadcasts = {}

try:
    config.load_incluster_config()
except config.ConfigException:
    config.load_kube_config()
v1 = client.CoreV1Api()


@kopf.on.startup()
def setup(settings: kopf.OperatorSettings, logger, **_):
    settings.scanning.disabled = True
    settings.posting.enabled = True
    settings.posting.level = logging.WARNING
    settings.posting.loggers = True
    settings.watching.server_timeout = 120
    settings.watching.client_timeout = 150
    settings.watching.connect_timeout = 20
    settings.watching.reconnect_backoff = 1
    settings.persistence.finalizer = f"{PREFIX}/finalizer"
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(
        prefix=PREFIX, key="last-handled"
    )
    logger.debug("the client is ready")


# ------------------------------------------------------------------ helpers


def teams():
    found = v1.list_namespace(label_selector=f"team,!{PREFIX}/skip")
    return [ns.metadata.name for ns in found.items if ns.status.phase == "Active"]


def matched(body):
    wanted = body.get("matchNamespace") or [".*"]
    avoided = body.get("avoidNamespaces") or []
    for ns in teams():
        if any(re.match(each, ns) for each in wanted) and not any(
            re.match(each, ns) for each in avoided
        ):
            yield ns


def write_secret(logger, name, namespace, data, source):
    meta = client.V1ObjectMeta(
        name=name,
        namespace=namespace,
        labels={f"{PREFIX}/copy": "yes"},
        annotations={FROM: source},
    )
    secret = client.V1Secret(metadata=meta, type="Opaque", data=data)
    try:
        v1.create_namespaced_secret(namespace=namespace, body=secret)
        logger.info(f"secret {name} created in {namespace}")
    except ApiException as e:
        if e.status != 409:
            logger.warning(f"secret {name} in {namespace}: {e.status} {e.reason}")
            return
        v1.replace_namespaced_secret(name=name, namespace=namespace, body=secret)
        logger.info(f"secret {name} replaced in {namespace}")


def encoded(data):
    return {k: base64.b64encode(v.encode()).decode() for k, v in (data or {}).items()}


# --------------------------------------------------------------- broadcasts


@kopf.on.resume("replicas.fnop.dev", "v1", "broadcasts")
@kopf.on.create("replicas.fnop.dev", "v1", "broadcasts")
async def on_create(body, uid, name, logger: logging.Logger, **_):
    done = []
    for ns in matched(body):
        write_secret(logger, name, ns, encoded(body.get("data")), f"broadcast/{name}")
        done.append(ns)
    broadcasts[uid] = {"body": body, "namespaces": done}
    return {"syncedns": done}


@kopf.on.field("replicas.fnop.dev", "v1", "broadcasts", field="data")
def on_data(old, new, body, name, uid, meta, logger, **kwargs):
    if old is None:
        logger.debug("new: the other handler has it")
        return
    for ns in body["status"].get("on_create", {}).get("syncedns", []):
        write_secret(logger, name, ns, encoded(new), f"broadcast/{name}")
    gone = [k for k in old if k not in new]
    if gone:
        logger.warning(f"keys are gone: {gone}")


@kopf.on.update("replicas.fnop.dev", "v1", "broadcasts", field="matchNamespace")
def on_match(name, body, uid, logger, patch, diff, **_):
    before = body["status"]["on_create"]["syncedns"]
    now = list(matched(body))
    for ns in set(before) - set(now):
        v1.delete_namespaced_secret(name, ns)
        logger.info(f"secret {name} deleted in {ns}")
    for ns in now:
        if ns not in before:
            data = encoded(body.get("data"))
            write_secret(logger, name, ns, data, f"broadcast/{name}")
    patch.status["on_create"] = {"syncedns": now}
    broadcasts[uid] = {"body": body, "namespaces": now}
    for op, path, a, b in diff:
        logger.info(f"{op} {'.'.join(path)}: {a} -> {b}")


@kopf.on.delete("replicas.fnop.dev", "v1", "broadcasts")
def on_delete(body, uid, name, logger, **_):
    for ns in body["status"].get("on_create", {}).get("syncedns", []):
        try:
            v1.delete_namespaced_secret(name, ns)
        except ApiException as e:
            logger.warning(f"secret {name} in {ns} is not deleted: {e.status}")
    if uid in broadcasts:
        broadcasts.pop(uid)


# --------------------------------------------------------------- namespaces


@kopf.on.create("", "v1", "namespaces", labels=TEAMS)
async def namespace_created(name, body, logger, **_):
    """A new team gets everything that is for it."""
    for known in list(broadcasts.values()):
        source = known["body"]
        title = source.metadata.name
        if name in matched(source):
            data = encoded(source.get("data"))
            write_secret(logger, title, name, data, f"broadcast/{title}")
            client.CustomObjectsApi().patch_cluster_custom_object_status(
                "replicas.fnop.dev",
                "v1",
                "broadcasts",
                title,
                {"status": {"on_create": {"syncedns": [*known["namespaces"], name]}}},
            )
            known["namespaces"].append(name)
    kopf.warn(body, reason="Populated", message=f"{len(broadcasts)} broadcasts")


@kopf.on.field("namespaces", field="metadata.labels", labels={"team": kopf.PRESENT})
def relabelled(old, new, logger, name, **_):
    changed = sorted(k for k in {*(old or {}), *new} if (old or {}).get(k) != new[k])
    logger.info(f"{name} is of {new['team']}: {changed}")


# ------------------------------------------------------- annotated objects


def is_source(value, name, **_):
    """The annotation names namespaces by an expression."""
    return bool(value) and not name.startswith("kube-")


@kopf.on.event("", "v1", "configmaps", annotations={TO: is_source})
def mirror_config(event, body, name, namespace, meta, logger, type, **_):
    for ns in teams():
        if ns == namespace or not re.fullmatch(meta["annotations"][TO], ns):
            continue
        if type == "DELETED" or "deletionTimestamp" in meta:
            try:
                v1.delete_namespaced_config_map(name, ns)
                logger.warning(f"{name} is deleted in {ns}")
            except ApiException as e:
                if e.status != 404:
                    raise
            continue
        copy = {
            "metadata": {"name": name, "labels": {f"{PREFIX}/copy": "yes"}},
            "data": dict(body.get("data", {})),
        }
        try:
            v1.create_namespaced_config_map(ns, copy)
            logger.info(f"{name} is new in {ns}")
        except ApiException as e:
            if e.status != 409:
                raise
            v1.patch_namespaced_config_map(name, ns, copy)


@kopf.on.create(
    "secrets",
    annotations={TO: kopf.PRESENT},
    labels={**COPY, f"{PREFIX}/copy": kopf.ABSENT},
)
@kopf.on.update(
    "secrets",
    annotations={TO: kopf.PRESENT},
    when=lambda labels, **_: f"{PREFIX}/copy" not in labels,
)
@kopf.on.resume("secrets", annotations={TO: kopf.PRESENT})
def mirror_secret(name, namespace, annotations, body, logger, patch, reason, **_):
    targets = [ns for ns in teams() if ns != namespace]
    targets = [ns for ns in targets if re.fullmatch(annotations[TO], ns)]
    for ns in targets:
        write_secret(logger, name, ns, body.get("data"), f"{namespace}/{name}")
    patch.metadata.annotations[f"{PREFIX}/mirrored"] = ",".join(targets)
    logger.info(f"mirrored after {reason.value}: {sorted(patch['metadata'])}")


# Annotations with the prefix of the storage are no changes, so there is another one.
@kopf.on.update(
    "secrets",
    annotations={
        "unmirror": "yes",
        TO: kopf.ABSENT,
        f"{PREFIX}/mirrored": kopf.PRESENT,
    },
)
def unmirrored(name, annotations, logger, patch, **_):
    for ns in annotations[f"{PREFIX}/mirrored"].split(","):
        v1.delete_namespaced_secret(name, ns)
    patch.meta.annotations[f"{PREFIX}/mirrored"] = None
    logger.warning("no longer mirrored")


@kopf.on.event("secrets", labels=COPY)
def copy_event(event, meta, name, namespace, logger, **_):
    """Copies that are deleted by hand are lost, and somebody should know it."""
    if event["type"] == "DELETED":
        logger.warning(f"a copy is gone; it was from {meta['annotations'].get(FROM)}")
