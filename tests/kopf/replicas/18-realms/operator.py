"""Realms of the whole cluster, and citizens in namespaces, next to built-in kinds.

A realm keeps a finalizer of its own, creates namespaces, and sees each labelled object.
"""

import asyncio
import logging
import time

import kopf
from kubernetes import client
from kubernetes.client.rest import ApiException

GROUP = "replicas.fnop.dev"
OWN = f"{GROUP}/taxes"
OURS = {"realm": kopf.PRESENT}
log = logging.getLogger("realms")

ledger: dict[str, dict] = {}


@kopf.on.startup()
async def configure(settings: kopf.OperatorSettings, **_):
    settings.posting.level = logging.WARNING
    settings.posting.loggers = True
    settings.watching.server_timeout = 300
    settings.watching.reconnect_backoff = 0.5
    settings.persistence.consistency_timeout = 3
    settings.peering.standalone = True


def town(name, realm):
    """A namespace, which the realm owns; its labels are those of the realm."""
    body = client.V1Namespace(metadata=client.V1ObjectMeta(name=name))
    kopf.label(body, {"realm": realm})
    kopf.append_owner_reference(body, controller=False, block_owner_deletion=False)
    try:
        client.CoreV1Api().create_namespace(body)
    except ApiException as error:
        if error.status != 409:
            raise
        return "found"
    return "founded"


# ------------------------------------------------------------------------- realms


@kopf.on.create(GROUP, "v1", "realms", backoff=0.5, retries=20)
async def crown(name, spec, meta, patch, logger, retry, body, **_):
    """It needs a seal, so it fails until there is one; it may go before that."""
    if OWN not in meta.get("finalizers", []):
        patch.fns.append(
            lambda raw: raw["metadata"].setdefault("finalizers", []).append(OWN)
        )
    if spec.get("sealed"):
        seals = client.CoreV1Api().list_secret_for_all_namespaces(
            label_selector=f"realm={name}"
        )
        if not seals.items:
            patch.status["waiting"] = "for a seal"
            raise kopf.TemporaryError("there is no seal", delay=9.0)
    done = await asyncio.gather(
        *(asyncio.to_thread(town, each, name) for each in spec.get("towns", []))
    )
    patch.status["waiting"] = None
    patch.status["towns"] = dict(zip(spec.get("towns", []), done, strict=True))
    kopf.info(body, reason="Crowned", message=f"with {len(done)} towns")
    logger.info(f"crowned, after failures: {retry > 0}")


@kopf.on.update(GROUP, "v1", "realms", field="spec.tax")
def taxed(name, old, new, body, patch, logger, **_):
    """It takes long: somebody edits the realm in the meantime."""
    client.CustomObjectsApi().patch_cluster_custom_object(
        GROUP, "v1", "realms", name, {"spec": {"edict": f"tax {new}"}}
    )
    time.sleep(0.7)
    logger.info(f"tax {old} -> {new}; edict {body.spec.get('edict', 'none')!r}")
    patch.status["tax"] = new


@kopf.on.update(GROUP, "v1", "realms", field="spec.edict")
async def edict(old, new, diff, logger, **_):
    logger.info(f"edict {old} -> {new} by {[str(item.operation) for item in diff]}")
    return {"edict": new}


@kopf.on.field("realms", field="spec.towns", new=kopf.PRESENT, old=kopf.PRESENT)
def towns_changed(name, old, new, diff, patch, status, **_):
    gained = [each for each in new if each not in old]
    made = {each: town(each, name) for each in gained}
    patch.status["towns"] = {**status.get("towns", {}), **made}
    for each in old:
        if each not in new:
            patch.status["towns"][each] = None
            free_town(each, name)
    log.info(f"towns: +{gained}")


def free_town(name, realm):
    """The namespace stays, but is no more the realm's."""
    api = client.CoreV1Api()
    found = api.read_namespace(name)
    kopf.remove_owner_reference(found)
    found.metadata.labels.pop("realm", None)
    api.replace_namespace(name, found)


@kopf.on.resume("realms.replicas.fnop.dev", deleted=True)
async def resumed(name, meta, logger, status, **_):
    ledger[name] = {"deleted": bool(meta.deletion_timestamp)}
    logger.info(f"resumed; it goes: {ledger[name]['deleted']}")


@kopf.on.delete(GROUP, "v1", "realms", retries=4, backoff=0.5)
def abdicate(name, meta, patch, retry, logger, status, **_):
    """Taxes are paid first: then the own finalizer goes, by a function."""
    if retry == 0:
        patch.status["abdication"] = "begun"
        raise kopf.TemporaryError("taxes are due", delay=0.5)
    if retry == 1:
        raise kopf.TemporaryError("taxes are still due", delay=1.0)
    for each in status.get("towns") or {}:
        free_town(each, name)

    def paid(raw):
        left = raw["metadata"].get("finalizers", [])
        raw["metadata"]["finalizers"] = [each for each in left if each != OWN]

    patch.fns.append(paid)
    logger.info(f"abdicated after {retry} attempts")


# ----------------------------------------------------------------------- citizens


@kopf.on.event(GROUP, "v1", "citizens")
def settle(event, body, spec, name, namespace, type, logger, **_):
    """An event handler alone creates the child, as many operators do."""
    if type == "DELETED":
        logger.info("has left")
        return
    child = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "data": {"trade": spec["trade"]},
    }
    kopf.harmonize_naming(child, name=f"{name}-house", forced=True, strict=True)
    kopf.adjust_namespace(child, forced=True)
    kopf.append_owner_reference(child, owner=body)
    kopf.label([child], {"realm": spec["realm"]}, forced=True, nested=["spec.template"])
    core = client.CoreV1Api()
    try:
        core.create_namespaced_config_map(namespace, child)
        logger.info(f"{child['metadata']['name']} is built")
    except ApiException as error:
        if error.status != 409:
            raise
        found = core.read_namespaced_config_map(f"{name}-house", namespace)
        if found.data != child["data"]:
            core.patch_namespaced_config_map(f"{name}-house", namespace, child)
            logger.info("is rebuilt")


@kopf.on.create(GROUP, "v1", "citizens", id="register")
@kopf.on.update(GROUP, "v1", "citizens", id="register", field="spec.realm")
def register(spec, patch, body, retry, logger, namespace, **_):
    api = client.CustomObjectsApi()
    try:
        realm = api.get_cluster_custom_object(GROUP, "v1", "realms", spec["realm"])
    except ApiException as error:
        kopf.exception(
            body,
            reason="Stateless",
            message=f"no {spec['realm']}:",
            exc=KeyError(spec["realm"]),
        )
        raise kopf.PermanentError(f"{spec['realm']}: {error.status}") from None
    kopf.warn([body, realm], reason="Citizen", message=f"of {spec['realm']}")
    patch.meta.labels["realm"] = spec["realm"]
    patch.status["tax"] = realm["spec"]["tax"]


@kopf.on.delete(GROUP, "v1", "citizens", when=lambda labels, **_: "realm" in labels)
async def bury(labels, meta, logger, **_):
    logger.info(
        f"a citizen of {labels['realm']}, dated: {meta.creation_timestamp is not None}"
    )


# ----------------------------------------------------------------- built-in kinds


@kopf.on.create("apps", "deployments", labels=OURS, annotations={"off": kopf.ABSENT})
@kopf.on.update(
    "apps",
    "deployments",
    labels=OURS,
    annotations={"off": kopf.ABSENT},
    field="metadata.labels",
)
async def workload(resource, labels, diff, reason, patch, logger, **_):
    paths = sorted(".".join(each.field) for each in diff if each.field)
    logger.info(f"{reason} of {resource.plural}.{resource.group}: {paths}")
    patch.metadata.annotations["crown/shift"] = labels.get("shift", "none")


@kopf.on.field("deploy", field="metadata.labels.shift", labels=OURS)
@kopf.on.field("secrets", field="metadata.labels.shift", labels=OURS)
def shifted(old, new, resource, logger, **_):
    logger.info(f"{resource.singular}: shift {old} -> {new}")


@kopf.on.field(
    "deployments.apps",
    field="spec.replicas",
    new=lambda value, **_: value == 0,
    labels=OURS,
)
async def idle(old, new, name, logger, **_):
    logger.warning(f"{name} is idle: {old} -> {new}")


@kopf.on.create("namespaces", labels=OURS)
async def town_seen(name, labels, body, logger, patch, **_):
    owners = [each["kind"] for each in body["metadata"].get("ownerReferences", [])]
    logger.info(f"{name} is a town of {labels['realm']}, of {owners}")
    patch.meta.annotations["crown/seen"] = "yes"


@kopf.on.delete("secrets", labels=OURS, optional=True)
def broken_seal(name, **_):
    log.warning("the seal %s is broken", name)


@kopf.on.event(kopf.EVERYTHING, labels=OURS)
async def everything(resource, name, type, logger, **_):
    """All kinds of the cluster, known or not."""
    if name not in ledger.setdefault(resource.plural, {}):
        ledger[resource.plural][name] = type
        logger.info(f"{name} of {resource.plural} belongs to somebody")


@kopf.on.cleanup()
def audit(logger, **_):
    logger.info(f"kinds: {sorted(ledger)}")
