"""Harbours: one operator for kinds in namespaces and in none.

Kinds come and go while it runs. It has selectors of all forms.
"""

import collections
import json
import logging
import os
from typing import Any

import kopf
from kubernetes import client, config
from kubernetes.client.rest import ApiException

GROUP = "replicas.fnop.dev"
LANE = ("metadata", "labels", f"{GROUP}/lane")
NAMESPACE = os.environ["REPLICA_NAMESPACE"]
log = logging.getLogger("harbours")
logging.getLogger("kubernetes").setLevel(logging.WARNING)


def floats(resource: kopf.Resource) -> bool:
    return (
        resource.group == GROUP
        and "docks" in resource.categories
        and resource.namespaced is True
        and resource.preferred
    )


def is_deep(value: Any, **_: Any) -> bool:
    return isinstance(value, int) and value >= 10


def is_shallow(value: Any, **kwargs: Any) -> bool:
    return not is_deep(value, **kwargs)


def foreign_pilot(value, name, meta, **_):
    return value is not None and value != name and "pilot" not in meta.labels


def in_use(labels, spec, old=None, **_):
    return labels.get("closed") != "yes" and not spec.get("dry")


@kopf.on.login(retries=2)
def login(**kwargs):
    config.load_kube_config()
    return kopf.login_via_client(**kwargs)


@kopf.on.startup(id="tide-table", param={"ebb": 6})
def configure(settings: kopf.OperatorSettings, memo: kopf.Memo, param, logger, **_):
    settings.posting.level = logging.INFO
    settings.posting.reporting_instance = "harbour-master"
    settings.posting.event_name_prefix = "harbour-"
    settings.execution.default_backoff = 0.5
    settings.watching.server_timeout = 120
    settings.watching.client_timeout = 150
    settings.watching.chunk_size = 2
    settings.networking.connect_timeout = 5
    settings.networking.request_timeout = 30
    memo.table = collections.Counter(param)
    memo["ships"] = []
    logger.info(f"tides: {dict(memo.table)}, {len(memo)} memos, {'ships' in memo}")


@kopf.index(GROUP, "v1", "berths", labels={"closed": kopf.ABSENT})
def berths_of(spec, namespace, name, **_):
    return {spec["harbour"]: (namespace, name)} if "harbour" in spec else None


@kopf.index(singular="harbour", id="depths")
async def depth_of(name, spec, **_):
    return {name: spec.get("depth", 0)}


@kopf.on.event(category="docks", labels={"buoy": kopf.ABSENT})
def watch(type, resource, name, memo, logger, **_):
    memo["seen"] = memo.get("seen", 0) + 1
    if type in (None, "ADDED", "DELETED"):
        logger.info(f"{type or 'LISTED'} {resource.plural}/{name} {resource.kind}")


@kopf.on.event("v1", "configmaps", labels={"harbour": kopf.PRESENT})
def chart(type, body, labels, memo, logger, namespace, **_):
    if type == "DELETED":
        logger.info(f"the chart of {labels['harbour']} is lost in {namespace}")


@kopf.on.event(f"{GROUP}/v1beta1", "berths", field="spec.sounding")
def old_version(type, body, value=None, *, spec, resource, logger, **_):
    if type != "MODIFIED":
        sounding = spec["sounding"]
        logger.info(f"{body['apiVersion']} ({resource.version}): {sounding}")


@kopf.on.create(shortcut="hb")
@kopf.on.resume(shortcut="hb")
def open_harbour(
    name, namespace, resource, body, patch, reason, memo, depths, berths_of, logger, **_
):
    memo["ships"].append(name)
    chart = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"chart-{name}", "namespace": NAMESPACE},
        "data": {"depth": json.dumps(list(depths.get(name, ())))},
    }
    buoy = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"b": ""}}
    kopf.adopt(buoy)
    logger.info(f"{reason}: {namespace} {resource.namespaced} {buoy['metadata']}")
    kopf.append_owner_reference(chart, controller=False, block_owner_deletion=False)
    kopf.label(chart, {"harbour": name}, nested="spec.template")
    api = client.CoreV1Api()
    try:
        api.create_namespaced_config_map(NAMESPACE, chart)
        kopf.info(body, reason="Charted", message=f"{'~' * 600}{name}{'~' * 600}")
    except ApiException as error:
        logger.info(f"chart: {error.reason}")
    patch.status["berths"] = sorted(f"{n}/{b}" for n, b in berths_of.get(name, ()))
    return {"charts": [f"chart-{name}"], "ships": name in memo["ships"]}


@kopf.on.field(kind="Harbour", id="depth", field="spec.depth", param="m")
@kopf.on.field(kind="Harbour", id="tide", field=["spec", "tide"], param="cm")
@kopf.on.field(kind="Harbour", id="channels", field="spec.channels")
@kopf.on.field(kind="Harbour", id="lane", field=LANE, param="lane")
def gauge(old, new, diff, param, reason, logger, **_):
    shown = [(op, ".".join(path), was, now) for op, path, was, now in diff]
    logger.info(f"{param} on {reason}: {old!r} -> {new!r}, {shown}")


@kopf.on.update(
    f"harbours.v1.{GROUP}", field="spec.depth", old=is_shallow, new=is_deep, when=in_use
)
async def dredged(name, old, new, logger, **_):
    logger.info(f"{name} is dredged from {old} to {new}")


@kopf.on.update(
    f"harbours.{GROUP}", field="spec.depth", old=kopf.PRESENT, new=is_shallow
)
async def silted(name, old, new, logger, body, **_):
    logger.warning(f"{name} has silted up, from {old} to {new}")
    kopf.event(
        [body, {**body, "metadata": {**body["metadata"], "labels": {"silt": "yes"}}}],
        type="Silt",
        reason="Silted",
        message=f"{old} to {new}",
        backoffs=[0.1],
    )


@kopf.on.update(GROUP, kopf.EVERYTHING, annotations={"pilot": foreign_pilot}, retries=5)
def piloted(resource, annotations, patch, logger, retry, **_):
    logger.info(f"a {resource.singular} has the pilot {annotations['pilot']}, {retry}")
    if annotations["pilot"] == "nobody":
        raise kopf.TemporaryError("nobody comes", delay=None if retry < 2 else 0.0)
    patch.metadata.annotations["pilot"] = None
    patch.meta.annotations["piloted-by"] = annotations["pilot"]


@kopf.on.create("bth", group=GROUP)
def moor(body, spec, patch, depths, logger, **_):
    """Its child's name is generated, and may be invalid."""
    slip = {"apiVersion": "v1", "kind": "Secret", "metadata": {}}
    slip["metadata"]["generateName"] = spec.get("slips", "slip-")
    slip["stringData"] = {"depth": str(sum(depths.get(spec.get("harbour"), [0])))}
    kopf.harmonize_naming(slip, forced=False)
    kopf.adjust_namespace(slip, NAMESPACE)
    kopf.append_owner_reference([slip], body, controller=True)
    kopf.label([slip, None], {"berth": body.meta.name})
    try:
        made = client.CoreV1Api().create_namespaced_secret(NAMESPACE, slip)
    except ApiException as error:
        code = json.loads(error.body)["code"]
        raise kopf.PermanentError(f"no slip: {code}") from error
    patch.status["slip"] = made.metadata.name.startswith(spec.get("slips", "slip-"))
    patch.spec["moored"] = True


@kopf.on.delete(floats, optional=True)
def cast_off(resource, name, logger, finalizers=None, *, meta, **_):
    logger.info(f"{resource.plural}/{name} is cast off, {meta.get('finalizers')}")


@kopf.on.delete("harbours", labels={"keep": "yes"})
def close(name, labels, memo, logger, retry, **_):
    if retry < 2:
        raise kopf.TemporaryError(f"still ships: {retry}", delay=0.3)
    logger.info(f"is closed, {sorted(set(memo['ships']) & {name})}")


@kopf.on.create("lights")
@kopf.on.resume("lights")
@kopf.on.update("lights", labels={"colour": lambda value, **_: value != "white"})
def light(reason, spec, labels, logger, resource, **_):
    logger.info(f"{reason}: {resource} {labels.get('colour')} {spec.get('every')}")
    return spec.get("every")


@kopf.on.update("lights", field="status.lit", new=True, labels={"off": kopf.ABSENT})
def lit(old, new, status, patch, logger, **_):
    logger.info(f"lit: {old} -> {new}")
    patch.status["times"] = status.get("times", 0) + 1


@kopf.on.cleanup()
async def leave(memo, logger, **_):
    logger.info(f"tides at the end: {sorted(memo.table)}")
