"""Backups, made by timers and by daemons, with Events, a thread and log filters."""

import logging
import queue
import threading
import time

import kopf
from kubernetes import client

BACKUPS = dict(group="replicas.fnop.dev", version="v1", plural="backups")

jobs = queue.Queue()
worker = None


class Discreet(logging.Filter):
    """Hides lines with secrets, and shortens others, in all handlers' logs."""

    def filter(self, record):
        text = record.getMessage()
        if "password" in text:
            return False
        if text.startswith("long:"):
            record.msg, record.args = text[:12] + "...", ()
        return True


logging.getLogger("kopf.objects").addFilter(Discreet())


def work():
    """The thread: it writes a ConfigMap for each finished backup."""
    while (job := jobs.get()) is not None:
        name, namespace, runs = job
        body = client.V1ConfigMap(
            metadata=client.V1ObjectMeta(
                name=f"{name}-{runs}", labels={"backup-of": name}
            ),
            data={"runs": str(runs)},
        )
        client.CoreV1Api().create_namespaced_config_map(namespace, body)


@kopf.on.startup()
def start_worker(settings: kopf.OperatorSettings, **_):
    global worker
    settings.posting.level = logging.INFO
    settings.background.cancellation_polling = 0.5
    worker = threading.Thread(target=work, name="backups", daemon=True)
    worker.start()


@kopf.on.cleanup()
def stop_worker(logger, **_):
    jobs.put(None)
    worker.join(5)
    logger.info(f"the worker is alive: {worker.is_alive()}")


@kopf.on.create(**BACKUPS)
def accept(body: kopf.Body, spec: kopf.Spec, memo: kopf.Memo, logger, **_):
    memo.began = time.perf_counter()
    kopf.info(body, reason="Accepted", message=f"keeps {spec['keep']}")
    kopf.event(body, type="Special", reason="Source", message=spec["source"])
    if spec["keep"] > 2:
        kopf.warn(body, reason="Expensive", message="that many need room")
    try:
        int(spec["source"])
    except ValueError:
        kopf.exception(body, reason="Unparsed", message="the source is no number")
    logger.info("the password is mellon")
    logger.info("long: a line of which the filter keeps a part")


def is_due(spec, status, **_):
    return status.get("runs", 0) < spec.get("keep", 0)


@kopf.timer(**BACKUPS, interval=1.0, initial_delay=0.5, sharp=True, when=is_due)
def back_up(name, namespace, status, patch, memo, **_):
    runs = status.get("runs", 0) + 1
    jobs.put((name, namespace, runs))
    patch.status["runs"] = runs
    memo.lasted = time.perf_counter() - memo.began


@kopf.timer(**BACKUPS, interval=3600, idle=2.0)
def rest(logger, patch, status, **_):
    logger.info("nothing has changed for a while")
    patch.status["rested"] = True
    return "rested"


def is_unchecked(status, **_):
    return "checked" not in status


@kopf.timer(
    **BACKUPS, interval=2, retries=3, backoff=0.5, id="check", when=is_unchecked
)
async def checked(retry, patch, **_):
    """Fail in two ways. A failure for good ends the attempts, but not the timer."""
    if retry < 1:
        raise kopf.TemporaryError("not yet checked", delay=0.5)
    patch.status["checked"] = retry
    raise kopf.PermanentError("never to be checked again")


@kopf.daemon(**BACKUPS, cancellation_backoff=1, cancellation_timeout=5)
def guard(stopped, logger, name, **_):
    logger.info("the guard begins")
    turns = 0
    while not stopped.wait(0.2):
        turns += 1
    logger.info(f"the guard ends: {turns > 0}, {stopped.reason is not None}")


@kopf.on.event("v1", "configmaps", labels={"backup-of": kopf.PRESENT})
def on_copy(event, logger, **_):
    kind = event["type"]
    if kind in ("ADDED", None):
        logger.info(f"a copy: {event['object']['data']['runs']}")
    elif kind == "DELETED":
        logger.warning("a copy is gone")


@kopf.on.event(**BACKUPS)
async def on_backup(event, type, memo, logger, **_):
    """Count what happens to the object, and log only its first and its last sight."""
    memo.sights = memo.get("sights", 0) + 1
    if memo.sights == 1 or type == "DELETED":
        logger.info(f"sight of type {event['type']}")
