"""Sensors that are read in the background: daemons in threads, and timers of all sorts.

It has its own tests, with Kopf's runner.
"""

import collections
import concurrent.futures
import contextvars
import functools
import logging
import random
import threading
import time

import kopf
import pykube

SENSORS, GAUGES = "sensors.replicas.fnop.dev", "gauges.replicas.fnop.dev"
readings = collections.defaultdict(list)
lock = threading.RLock()
stopping = threading.Event()
pool = concurrent.futures.ThreadPoolExecutor(2)


class Gauge(pykube.objects.NamespacedAPIObject):
    version, endpoint, kind = "replicas.fnop.dev/v1", "gauges", "Gauge"


@kopf.on.startup()
def setup(settings: kopf.OperatorSettings, logger, **_):
    settings.posting.level = logging.ERROR
    settings.background.cancellation_polling = 0.2
    settings.background.instant_exit_timeout = 0.5
    settings.persistence.finalizer = "sensors.fnop.dev/stop"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(
        prefix="sensors.fnop.dev"
    )
    settings.execution.max_workers = 12
    random.seed(1)
    logger.info("ready to read")


@kopf.on.cleanup()
def teardown(logger, **_):
    stopping.set()
    pool.shutdown()
    logger.info(f"read: {sorted(readings)}")


@kopf.index(SENSORS)
def modes(name, spec, namespace, **_):
    return {(namespace, spec["place"], spec.get("mode")): spec.get("limit", 0)}


def is_measured(namespace, spec, modes: kopf.Index, **_):
    """A filter with an index of another kind."""
    return (namespace, spec.get("of"), spec.get("mode")) in modes


# ------------------------------------------------------------------------- daemons


@kopf.daemon(SENSORS, initial_delay=lambda spec, **_: spec["every"] / 4, id="reader")
def read(stopped, spec, name, patch, logger, body, retry, **_):
    """A thread, which starts a thread; its patch is applied when it has ended."""
    with lock:
        readings[name].append("begin")
    logger.info(f"reads {name}, attempt {retry}")
    worker = threading.Thread(target=sample, args=(stopped, name), daemon=True)
    worker.start()
    while not stopped:
        if stopped.wait(timeout=spec.get("every", 1)):
            break
    worker.join()
    logger.info(f"{name} is read no more; set: {stopped.is_set()}")


def sample(stopped, name):
    while not stopped.wait(0.1):
        with lock:
            readings[name].append(random.random())


@kopf.daemon(
    SENSORS,
    annotations={"broken": kopf.PRESENT},
    retries=3,
    backoff=0.3,
    errors=kopf.ErrorsMode.TEMPORARY,
)
async def repair(retry, body, logger, patch, started, runtime, **_):
    """It fails for good. Each attempt writes to the status."""
    patch.status["repairs"] = retry + 1
    kopf.warn(body, reason="Repair", message=f"attempt {retry}")
    raise OSError(f"no tool for attempt {retry}")


@kopf.daemon(SENSORS, field="spec.mode", value="fast", cancellation_timeout=1)
def fast(stopped, name, logger, field=None, **kwargs):
    """It polls the flag by itself, and says why it has stopped."""
    logger.info(f"{name} is fast: {kwargs['spec']['mode']}, {field}")
    while not stopped.is_set():
        time.sleep(0.05)
    reasons = str(stopped.reason)
    logger.info(f"{name} is not fast: {'FILTERS' in reasons or 'DELETED' in reasons}")


@kopf.daemon(
    SENSORS,
    errors=kopf.ErrorsMode.IGNORED,
    when=lambda spec, **_: spec.get("limit") == 0,
)
async def unlimited(logger, **_):
    raise LookupError("no limit")


@kopf.daemon(SENSORS, labels={"area": "north"}, timeout=1.2, backoff=0.5)
async def impatient(retry, logger, **_):
    logger.info(f"attempt {retry}")
    raise kopf.TemporaryError("too cold", delay=0.5)


# -------------------------------------------------------------------------- timers


def below_limit(status, spec, **_):
    return status.get("samples", 0) < spec.get("limit", 0)


@kopf.timer(SENSORS, interval=0.5, sharp=True, initial_delay=0.2, when=below_limit)
def count(status, patch, spec, **_):
    samples = status.get("samples", 0) + 1
    patch.status["samples"] = samples
    if samples == spec["limit"]:
        patch.meta.annotations["full"] = str(samples)


def is_unquiet(spec, status, **_):
    probes = len(spec.get("probes") or [])
    return probes > 0 and (status.get("quiet") or {}).get("probes") != probes


@kopf.timer(SENSORS, interval=3, idle=1.5, when=is_unquiet)
async def quiet(patch, spec, status, logger, **_):
    """After each change of the essence it waits again, and has a result each time."""
    logger.info(f"quiet with {spec['probes']}")
    return {"probes": len(spec["probes"]), "place": spec["place"]}


@kopf.timer(SENSORS, interval=600, retries=2, backoff=0.3, annotations={"shaky": "yes"})
def shaky(retry, name, logger, memo, patch, **_):
    """Two failures end it, and an annotation that comes back begins it again."""
    memo.shaken = memo.get("shaken", 0) + 1
    patch.status["shaken"] = memo.shaken
    raise ConnectionError(f"shaken {memo.shaken}")


@kopf.timer(
    GAUGES,
    interval=0.6,
    initial_delay=0.3,
    when=is_measured,
    annotations={"measured": kopf.ABSENT},
    param="m",
)
async def measured(name, namespace, spec, modes, patch, param, logger, memo, **_):
    """It is called for a sensor that is indexed, and writes down the end."""
    limits = list(modes.get((namespace, spec["of"], spec["mode"]), ()))
    if limits != memo.get("limits"):
        memo.limits = limits
        logger.info(f"{param}: limits of {spec['of']}: {limits}")
    memo.turns = memo.get("turns", 0) + 1
    if memo.turns == 3:
        patch.meta.annotations["measured"] = str(sum(limits))


@kopf.timer(GAUGES, interval=600, idle=0.8, initial_delay=0.4)
def lonely(name, status, patch, logger, **_):
    logger.info(f"{name} was seen: {(status or {}).get('seen')}")
    patch.status["seen"] = 1 + (status.get("seen") or 0)
    patch.status["unknown"] = True  # the schema has no place for it


# ------------------------------------------------------------------------- changes


@kopf.on.create(SENSORS)
@kopf.on.update(SENSORS, field="spec.probes")
def probe_all(spec, name, namespace, body, **_):
    """A sub-handler for each probe; what is in a pool of its own has Events, too."""
    for each in spec.get("probes", []):
        kopf.register(functools.partial(one, each), id=each, retries=2, backoff=0.3)


def one(probe, *, body, retry, logger, **_):
    if probe == "rain" and retry == 0:
        raise RuntimeError("no rain yet")
    context = contextvars.copy_context()
    done = pool.submit(
        context.run,
        kopf.event,
        body,
        type="Probe",
        reason="Probed",
        message=f"{probe} by a pool",
    )
    done.result(5)
    logger.info(f"{probe} is fine")
    return f"{probe}-{retry}"


@kopf.on.update(SENSORS, field="spec.mode", retries=1)
async def mode_changed(old, new, body, **_):
    kopf.info(body, reason="Mode", message=f"{old} to {new}")
    if new == "odd":
        raise kopf.PermanentError("an odd mode")


@kopf.on.delete(SENSORS, retries=2, backoff=0.2)
def removed(name, retry, logger, **_):
    with lock:
        had = len(readings.pop(name, [])) > 1
    if retry == 0:
        raise TimeoutError("still read")
    logger.info(f"removed, retry {retry}, had {had}")


@kopf.on.event(SENSORS)
def pushed(name, namespace, status, type, logger, **_):
    """A watch event of one kind writes to another kind."""
    if type == "DELETED" or not status.get("samples"):
        return
    api = pykube.HTTPClient(pykube.KubeConfig.from_env())
    for gauge in Gauge.objects(api).filter(namespace=namespace):
        if gauge.obj["spec"]["of"] == name and "samples" not in gauge.annotations:
            gauge.patch({"metadata": {"annotations": {"samples": "some"}}})
            logger.info(f"pushed to {gauge.name}")
