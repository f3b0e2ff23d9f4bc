"""Hubs: a program of its own runs the operator beside other tasks, with a peering.

Handlers are in a registry; the storages are subclasses; the cleanup deletes a lease.
"""

import asyncio
import dataclasses
import datetime
import json
import logging
import os
import signal
import time
import urllib.error
import urllib.request

import kopf
from kubernetes import client, config
from kubernetes.client.rest import ApiException

HUB = ("replicas.fnop.dev", "v1", "hubs")
NAMESPACE, PORT = os.environ["REPLICA_NAMESPACE"], os.environ["REPLICA_PORT"]
registry = kopf.OperatorRegistry()
log = logging.getLogger("hubs")


@dataclasses.dataclass
class Desk:
    """The memo of the program, with a copy for each object."""

    queue: asyncio.Queue
    served: dict = dataclasses.field(default_factory=dict)
    seen: int = 0

    def __copy__(self):
        return Desk(self.queue, self.served, seen=100)


class Progress(kopf.AnnotationsProgressStorage):
    """It counts in a note of its own how many records are open."""

    def store(self, *, key, record, body, patch):
        super().store(key=key, record=record, body=body, patch=patch)
        patch.meta.annotations[f"hub-open/{key.partition('/')[0]}"] = record["purpose"]

    def purge(self, *, key, body, patch):
        super().purge(key=key, body=body, patch=patch)
        patch.meta.annotations[f"hub-open/{key.partition('/')[0]}"] = None

    def clear(self, *, essence):
        essence = super().clear(essence=essence)
        notes = essence.get("metadata", {}).get("annotations", {})
        for each in [each for each in notes if each.startswith("hub-open/")]:
            del notes[each]
        return essence


class DiffBase(kopf.StatusDiffBaseStorage):
    """Heartbeats are no changes."""

    def build(self, *, body, extra_fields=None):
        essence = super().build(body=body, extra_fields=extra_fields)
        essence.get("spec", {}).pop("heartbeat", None)
        return essence


def settings_of_hubs():
    settings = kopf.OperatorSettings()
    settings.persistence.finalizer = "hubs.replicas.fnop.dev/hold"
    settings.persistence.progress_storage = kopf.MultiProgressStorage(
        [
            Progress(prefix="hubs.replicas.fnop.dev", v1=False),
            kopf.StatusProgressStorage(),
        ]
    )
    settings.persistence.diffbase_storage = kopf.MultiDiffBaseStorage(
        [
            DiffBase(name="hub"),
            kopf.AnnotationsDiffBaseStorage(prefix="hubs.replicas.fnop.dev"),
        ]
    )
    settings.peering.lifetime = 60
    settings.posting.enabled = False
    settings.execution.default_backoff = 0.5
    return settings


kopf.on.login(registry=registry)(kopf.login_with_kubeconfig)


@kopf.on.startup(registry=registry)
async def lease(memo, logger, settings, **_):
    lease = {"metadata": {"name": "lease"}, "data": {"seen": str(memo.seen)}}
    try:
        await asyncio.to_thread(
            client.CoreV1Api().create_namespaced_config_map, NAMESPACE, lease
        )
    except ApiException as error:
        logger.info(f"the lease is there: {error.status}")
    logger.info(f"as {settings.peering.name} {settings.peering.priority}")


@kopf.on.cleanup(registry=registry, errors=kopf.ErrorsMode.PERMANENT)
async def unlease(memo, logger, **_):
    await asyncio.to_thread(
        client.CoreV1Api().delete_namespaced_config_map, "lease", NAMESPACE
    )
    logger.info(f"the lease is off, with {sorted(memo.served)}")


@kopf.on.probe(registry=registry, id="desk")
def probe(memo, **_):
    return {"served": len(memo.served)}


@kopf.on.probe(registry=registry)
async def now(**_):
    return datetime.date(2030, 1, 1).isoformat()


@kopf.on.create(*HUB, registry=registry)
async def open_hub(name, spec, memo, logger, patch, retry, **_):
    if retry == 0 and spec.get("jam"):
        raise ConnectionError("jammed")
    memo.seen += 1
    memo.served[name] = spec.get("ports", [])
    await memo.queue.put(("open", name))
    logger.info(f"open, {memo.seen}")
    patch.status["phase"] = "Open"


@kopf.on.create(*HUB, registry=registry)
def greet(name, memo, logger, **_):
    memo.seen += 1
    logger.info(f"greets, {memo.seen}")
    return "hello"


@kopf.on.update(*HUB, registry=registry)
async def change(diff, old, new, logger, memo, patch, **_):
    memo.seen += 1
    for op, path, was, now in diff:
        logger.info(f"{op} {'.'.join(path)}: {was} -> {now}")
    patch.status["changes"] = memo.seen


@kopf.on.update(*HUB, registry=registry, field="spec.ports")
def ports(old, new, logger, spec, **_):
    logger.info(f"ports {old} -> {new}; {spec.get('heartbeat')}")


@kopf.on.update(*HUB, registry=registry, field="spec.dial")
def dial(new, logger, patch, **_):
    logger.info(f"dials {new}")
    time.sleep(3)
    patch.status["dialled"] = new
    return {"number": new}


@kopf.on.resume(*HUB, registry=registry)
async def back(name, memo, logger, spec, **_):
    memo.served.setdefault(name, spec.get("ports", []))
    await memo.queue.put(("back", name))
    logger.info(f"is back, {memo.seen}")


@kopf.daemon(
    *HUB, registry=registry, field="spec.ring", value=True, cancellation_timeout=1
)
async def ring(stopped, logger, memo, **_):
    logger.info("'ring/spec.ring' rings")
    await stopped.wait()
    logger.info(f"'ring/spec.ring' rings no more: {stopped.reason}")


@kopf.on.delete(*HUB, registry=registry)
async def close(name, memo, logger, **_):
    memo.served.pop(name, None)
    await memo.queue.put(("close", name))
    logger.info("is closed")


async def clerk(queue, stop):
    """Another task of the program, which takes what the handlers put there."""
    while True:
        verb, name = await queue.get()
        log.info(f"clerk: {verb} {name}")


def ask(url):
    while True:
        try:
            with urllib.request.urlopen(url) as answer:
                return json.load(answer)
        except urllib.error.URLError:
            time.sleep(0.1)


async def main():
    kopf.configure(verbose=True, log_format=kopf.LogFormat.JSON)
    config.load_kube_config()
    logging.getLogger("kubernetes").setLevel(logging.WARNING)
    stop, ready = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    desk = Desk(asyncio.Queue())
    operator = asyncio.create_task(
        kopf.operator(
            registry=registry,
            settings=settings_of_hubs(),
            memo=desk,
            lifecycle=kopf.lifecycles.all_at_once,
            identity="hub-desk",
            peering_name="hubs",
            priority=int(os.environ.get("HUB_PRIORITY", "50")),
            namespaces=[NAMESPACE],
            liveness_endpoint=f"http://127.0.0.1:{PORT}/healthz",
            stop_flag=stop,
            ready_flag=ready,
        )
    )
    other = asyncio.create_task(clerk(desk.queue, stop))
    await ready.wait()
    log.info("the desk is ready")
    probed = await asyncio.to_thread(ask, f"http://127.0.0.1:{PORT}/healthz")
    log.info(f"the probe says {sorted(probed)} {type(probed['desk']).__name__}")
    try:
        await operator
    finally:
        other.cancel()
        log.info(f"the desk is shut: {json.dumps(desk.served, sort_keys=True)}")


if __name__ == "__main__":
    asyncio.run(main())
