"""Docks by region and size: an index of pairs, which filters and probes look into."""

import functools

import kopf
from kubernetes import client

from ..decorators import RetryError, announced, retrying, span  # noqa: TID252
from ._kinds import GROUP

DOCKS, SHIPS = (GROUP, "v1", "docks"), (GROUP, "v1", "ships")


@kopf.index(*DOCKS)
def berths(spec, name, namespace, **_):
    return {(spec["region"], spec["size"]): {"dock": name, "namespace": namespace}}


@kopf.index(*SHIPS, id="cargoes")
def by_cargo(spec, name, **_):
    return {each["kind"]: (name, each["tons"]) for each in spec.get("cargo", [])}


@kopf.on.probe(id="berths")
def free_berths(berths: kopf.Index, **_):
    return {"/".join(key): len(store) for key, store in sorted(berths.items())}


@kopf.on.probe()
async def cargo(cargoes, memo, **_):
    return sum(tons for store in cargoes.values() for _, tons in store)


def has_berth(spec, berths, **_):
    return (spec.get("region"), spec.get("size")) in berths


def is_cargo(value, cargoes, **_):
    return bool(value) and len(cargoes) > 0


class Pilot:
    """Handlers that are methods of all sorts."""

    calls = 0

    @classmethod
    def lead(cls, *, spec, berths, name, namespace, logger, **_):
        cls.calls += 1
        berth = next(iter(berths[spec["region"], spec["size"]]))
        body = {"metadata": {}, "data": {"dock": berth["dock"]}}
        kopf.harmonize_naming(body, name=f"{name}-berth", strict=True)
        kopf.adjust_namespace(body, namespace)
        kopf.append_owner_reference(body, block_owner_deletion=False)
        kopf.label(body, {"dock": berth["dock"]})
        put(namespace, body)
        logger.info(f"led to {berth['dock']} by call {cls.calls}")
        return berth

    @staticmethod
    @announced
    def leave(*, name, logger, **_):
        logger.info(f"{name} leaves")


failures = iter([ConnectionError("fog"), ConnectionError("storm"), None, None])


@retrying(ConnectionError, attempts=3)
@span("put")
def put(namespace, body):
    failure = next(failures, None)
    if failure:
        raise failure
    api = client.CoreV1Api()
    try:
        api.create_namespaced_config_map(namespace, body)
    except client.ApiException as error:
        if error.status != 409:
            raise
        api.patch_namespaced_config_map(body["metadata"]["name"], namespace, body)


kopf.on.create(*SHIPS, id="lead", when=has_berth)(Pilot.lead)
kopf.on.update(*SHIPS, id="lead", when=has_berth)(Pilot.lead)
kopf.on.delete(*SHIPS)(Pilot.leave)


@kopf.on.create(*SHIPS, when=kopf.not_(has_berth), errors=kopf.ErrorsMode.PERMANENT)
@retrying(LookupError, attempts=2)
@announced
def lost(spec, logger, **_):
    raise LookupError(f"no berth in {spec['region']}")


@kopf.on.update(*SHIPS, field="spec.cargo", value=is_cargo, retries=2, backoff=0.3)
@announced
async def loaded(new, old, cargoes, retry, logger, **_):
    tons = {key: sum(tons for _, tons in store) for key, store in cargoes.items()}
    logger.info(f"attempt {retry}: {len(old or [])} -> {len(new)}; {sorted(tons)}")
    if any(each["tons"] > 9 for each in new):
        raise RetryError("too heavy")
    return functools.reduce(lambda total, each: total + each["tons"], new, 0)


@kopf.on.delete(*DOCKS, retries=3, backoff=0.4)
async def closed(name, retry, cargoes, logger, **_):
    if retry < 1:
        raise kopf.TemporaryError("ships are there", delay=0.4)
    logger.info(f"{name} is closed")
