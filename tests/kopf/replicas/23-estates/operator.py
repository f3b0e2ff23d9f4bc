"""Estates of the cluster: the official client makes children of models in namespaces.

An estate holds its objects by a finalizer of its own, which the client adds.
"""

import logging

import kopf
from kubernetes import client, config
from kubernetes.client.rest import ApiException

ESTATE = ("replicas.fnop.dev", "v1", "estates")
OWN = "estates.replicas.fnop.dev/deeds"
PART = {"part-of": "estate"}
logging.getLogger("kubernetes").setLevel(logging.WARNING)


@kopf.on.login(retries=2, backoff=0.5)
def login(logger, retry, **kwargs):
    if retry == 0:
        raise RuntimeError("the gate is shut")
    config.load_kube_config()
    return kopf.login_via_client(logger=logger, **kwargs)


@kopf.on.startup()
async def configure(settings, **_):
    settings.persistence.finalizer = "estates.replicas.fnop.dev/kopf"
    settings.persistence.progress_storage = kopf.SmartProgressStorage(name="office")
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(
        prefix="estates.replicas.fnop.dev", key="registry", v1=False
    )
    settings.posting.level = logging.ERROR
    settings.scanning.disabled = False


def house(spec, home):
    return client.V1Deployment(
        api_version="apps/v1",
        kind="Deployment",
        metadata=client.V1ObjectMeta(labels={"keep": "mine"}, namespace=home),
        spec=client.V1DeploymentSpec(
            replicas=0,
            selector=client.V1LabelSelector(match_labels=PART),
            template=client.V1PodTemplateSpec(
                metadata=client.V1ObjectMeta(labels=dict(PART)),
                spec=client.V1PodSpec(
                    containers=[client.V1Container(name="house", image=spec["image"])]
                ),
            ),
        ),
    )


def gate(home):
    return client.V1Service(
        metadata=client.V1ObjectMeta(name="gate", namespace=home),
        spec=client.V1ServiceSpec(
            cluster_ip="None",
            selector=PART,
            ports=[client.V1ServicePort(port=80)],
        ),
    )


def deeds(name, home, text):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-deeds", "namespace": home},
        "data": {"text": text},
    }


def ignore(status, call, *args):
    """The client's call, or None if its answer has this status."""
    try:
        return call(*args)
    except ApiException as error:
        if error.status != status:
            raise
        return None


def sealed(name, *, add):
    """Add or remove the finalizer of its own, with the client."""
    api = client.CustomObjectsApi()
    body = api.get_cluster_custom_object(*ESTATE, name)
    held = [each for each in body["metadata"].get("finalizers", []) if each != OWN]
    patch = {"metadata": {"finalizers": [*held, OWN] if add else held}}
    api.patch_cluster_custom_object(*ESTATE, name, patch)


# ------------------------------------------------------------------------ estates


@kopf.on.create(*ESTATE, id="found")
@kopf.on.resume(*ESTATE, id="found")
def found(name, spec, body, meta, patch, logger, reason, labels, **_):
    home = spec["home"]
    if not spec.get("free"):
        sealed(name, add=True)
    apps, core = client.AppsV1Api(), client.CoreV1Api()
    deployment, service = house(spec, home), gate(home)
    kopf.append_owner_reference([deployment, service], body)
    kopf.harmonize_naming([deployment, service], strict=True)
    kopf.label([deployment, service], nested=["spec.template", "spec.nothing"])
    kopf.label((deployment,), {"keep": "yours", **PART})
    kopf.label([service], {"estate": name}, forced=True)
    paper = deeds(name, home, spec.get("text", ""))
    try:
        kopf.adopt(paper)
    except Exception as error:
        logger.error(f"not adopted: {type(error).__name__}")
    paper["metadata"]["namespace"] = home
    logger.info(f"paper: {sorted(paper['metadata'])} {paper['metadata']['labels']}")
    made = {
        "house": ignore(409, apps.create_namespaced_deployment, home, deployment),
        "gate": ignore(409, core.create_namespaced_service, home, service),
        "deeds": ignore(409, core.create_namespaced_config_map, home, paper),
    }
    patch.status["made"] = sorted(key for key, each in made.items() if each)
    logger.info(f"{reason}: made {patch.status['made']} for {labels.get('lord')}")
    for each in made.values():
        if each:
            child = client.ApiClient().sanitize_for_serialization(each)
            kind = {"V1Deployment": "apps/v1 Deployment", "V1Service": "v1 Service"}
            words = kind.get(type(each).__name__, "v1 ConfigMap").split()
            child |= dict(zip(("apiVersion", "kind"), words, strict=True))
            kopf.event(child, type="Normal", reason="Founded", message=f"for {name}")
    kopf.event([body], type="Deed", reason="Founded", message=f"{len(made)} parts")
    return {"home": home}


@kopf.on.update(*ESTATE, field="spec.text")
def rewritten(name, spec, old, new, body, logger, **_):
    core = client.CoreV1Api()
    paper = core.read_namespaced_config_map(f"{name}-deeds", spec["home"])
    paper.data = {"text": new or "", "former": old or ""}
    kopf.label(paper, {"rewritten": "yes"})
    kopf.append_owner_reference(paper, body)  # it has it already
    core.replace_namespaced_config_map(f"{name}-deeds", spec["home"], paper)
    both = [body, deeds(name, spec["home"], "")]
    kopf.info(both, reason="Rewritten", message=str(new))
    logger.info(f"{len(paper.metadata.owner_references)} owner")


@kopf.on.update(
    *ESTATE,
    labels={"lord": kopf.PRESENT},
    field="metadata.labels.lord",
    retries=3,
    backoff=0.4,
)
async def inherited(name, old, new, retry, patch, spec, logger, body, **_):
    if new == "nobody":
        try:
            raise LookupError(f"{name} has no heir")
        except LookupError:
            kopf.exception(body, reason="NoHeir", message="dispute:")
            if retry < 1:
                raise
            raise kopf.PermanentError("no heir") from None
    logger.info(f"{old} -> {new}")
    patch.meta.annotations["estate/former-lord"] = old or "none"


@kopf.on.delete(*ESTATE, when=lambda spec, **_: not spec.get("free"), backoff=0.5)
def dissolve(name, spec, status, retry, logger, patch, **_):
    core = client.CoreV1Api()
    if ignore(404, core.read_namespaced_config_map, f"{name}-debts", spec["home"]):
        patch.status["debts"] = retry + 1 if retry < 2 else "many"
        raise kopf.TemporaryError("there are debts", delay=1)
    sealed(name, add=False)
    logger.info("the deeds are returned")


@kopf.on.delete(*ESTATE, when=lambda spec, **_: spec.get("free"), optional=True)
def forgotten(logger, **_):
    logger.info("a free estate goes")


# ----------------------------------------------------------------------- children


def estate_of(meta):
    owners = meta.get("ownerReferences", [])
    return next((each["name"] for each in owners if each["kind"] == "Estate"), None)


def is_ours(meta, **_):
    return estate_of(meta) is not None


@kopf.on.update("apps", "v1", "deployments", when=is_ours, field="spec.replicas")
def resized(meta, old, new, logger, **_):
    name = estate_of(meta)
    body = {"status": {"rooms": new}}
    client.CustomObjectsApi().patch_cluster_custom_object_status(*ESTATE, name, body)
    logger.info(f"{name} has {new} rooms, after {old}")


@kopf.on.delete("configmaps", when=is_ours)
async def deeds_lost(meta, name, logger, annotations, **_):
    logger.warning(f"{name} of {estate_of(meta)} are lost")


@kopf.on.event("services", when=is_ours)
def gate_lost(type, meta, name, namespace, labels, logger, **_):
    """It is made again, if there is an estate."""
    if type != "DELETED":
        return
    owner = estate_of(meta)
    custom = client.CustomObjectsApi()
    body = ignore(404, custom.get_cluster_custom_object, *ESTATE, owner)
    if body is None or body["metadata"].get("deletionTimestamp"):
        logger.info("a gate to nowhere goes")
        return
    service = gate(namespace)
    kopf.append_owner_reference(service, owner=body)
    kopf.label(service, {**labels, "again": "yes"})
    kopf.harmonize_naming(service, name="another", strict=True)  # it has a name
    client.CoreV1Api().create_namespaced_service(namespace, service)
    logger.info(f"{service.metadata.name} is made again")


@kopf.on.cleanup()
def count(logger, **_):
    found = client.CustomObjectsApi().list_cluster_custom_object(*ESTATE)["items"]
    logger.info(f"estates: {[each['metadata']['name'] for each in found]}")
