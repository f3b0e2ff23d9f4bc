"""Observatories: an operator in a thread of a larger program.

It has several credentials, storages of its own, and daemons which end in all ways.
"""

import asyncio
import base64
import concurrent.futures
import dataclasses
import datetime
import json
import logging
import os
import signal
import threading
import time
import warnings
import zlib

import kopf

KIND = "telescopes"
NAMESPACE = os.environ["REPLICA_NAMESPACE"]
PREFIX = "sky.example.com"
log = logging.getLogger("observatory")


def packed(value):
    text = json.dumps(value, sort_keys=True).encode()
    return base64.b64encode(zlib.compress(text, 9)).decode()


def unpacked(text):
    return json.loads(zlib.decompress(base64.b64decode(text)))


class Ledger(kopf.ProgressStorage):
    """All records are in one annotation, which has a form of its own."""

    name = f"{PREFIX}/ledger"

    def _records(self, body, patch):
        ours = patch.get("metadata", {}).get("annotations", {})
        if self.name in ours:
            text = ours[self.name]
        else:
            text = body.get("metadata", {}).get("annotations", {}).get(self.name)
        return json.loads(text) if text else {}

    def _keep(self, records, body, patch):
        text = json.dumps(records, sort_keys=True) if records else None
        if text or self.name in body.get("metadata", {}).get("annotations", {}):
            patch.meta.annotations[self.name] = text
        elif self.name in patch.get("metadata", {}).get("annotations", {}):
            patch.pop("metadata")  # nothing else is there

    def fetch(self, *, key, body):
        return self._records(body, {}).get(key)

    def store(self, *, key, record, body, patch):
        records = self._records(body, patch)
        kept = {name: value for name, value in record.items() if value is not None}
        self._keep({**records, key: kept}, body, patch)

    def purge(self, *, key, body, patch):
        records = self._records(body, patch)
        if key in records:
            del records[key]
            self._keep(records, body, patch)

    def touch(self, *, body, patch, value):
        if value or f"{PREFIX}/touch-dummy" in body.get("metadata", {}).get(
            "annotations", {}
        ):
            patch.meta.annotations[f"{PREFIX}/touch-dummy"] = value

    def clear(self, *, essence):
        essence = super().clear(essence=essence)
        notes = essence.get("metadata", {}).get("annotations", {})
        for name in [each for each in notes if each.startswith(f"{PREFIX}/")]:
            del notes[name]
        return essence


class Snapshots(kopf.DiffBaseStorage):
    """The essence is compressed, and in the status."""

    def __init__(self, ignored_fields=()):
        super().__init__(ignored_fields=ignored_fields)

    def build(self, *, body, extra_fields=None):
        essence = super().build(body=body, extra_fields=extra_fields)
        notes = essence.get("metadata", {}).get("annotations", {})
        for name in [each for each in notes if each.startswith(f"{PREFIX}/")]:
            del notes[name]
        self.remove_empty_stanzas(essence)
        return essence

    def fetch(self, *, body):
        text = body.get("status", {}).get("snapshot")
        return unpacked(text) if text else None

    def store(self, *, body, patch, essence):
        patch.status["snapshot"] = packed(essence)


@kopf.on.login(id="worn")
async def worn(**kwargs):
    """These credentials come first, and the API server refuses them."""
    found = kopf.login_with_kubeconfig(**kwargs)
    log.info("login with a worn token")
    return dataclasses.replace(
        found,
        certificate_data=None,
        private_key_data=None,
        certificate_path=None,
        private_key_path=None,
        username=None,
        password=None,
        scheme="Bearer",
        token="worn",
        priority=20,
    )


@kopf.on.login(id="none")
def no_login(**_):
    log.info("no login here")


@kopf.on.login(id="good", errors=kopf.ErrorsMode.TEMPORARY, retries=3, backoff=0.2)
def good(retry, memo, **kwargs):
    if retry == 0 and not memo.get("again"):
        raise ConnectionError("the keys are lost")
    memo.again = True
    found = kopf.login_with_kubeconfig(retry=retry, memo=memo, **kwargs)
    later = datetime.datetime(2099, 1, 1, tzinfo=datetime.UTC)
    log.info("login with good keys")
    return dataclasses.replace(found, priority=10, expiration=later)


@kopf.on.startup()
def open_dome(settings, memo, logger, **_):
    settings.persistence.progress_storage = Ledger()
    settings.persistence.diffbase_storage = Snapshots(ignored_fields=["spec.weather"])
    settings.persistence.finalizer = f"{PREFIX}/dome"
    settings.execution.executor = concurrent.futures.ThreadPoolExecutor(12, "dome")
    settings.execution.default_backoff = 0.4
    settings.background.cancellation_polling = 0.3
    settings.background.instant_exit_timeout = 0.2
    settings.background.instant_exit_zero_time_cycles = None
    settings.networking.enforce_retry_after = True
    settings.posting.level = logging.WARNING
    logger.info(f"the dome opens for {memo.owner}")


@kopf.on.cleanup()
def close_dome(memo, logger, **_):
    logger.info(f"the dome closes: {dict(sorted(memo.seen.items()))}")


@kopf.on.create(KIND)
@kopf.on.resume(KIND, id="point")
def point(name, spec, memo, logger, patch, retry, body, **_):
    if spec.get("cloudy") and retry < 2:
        raise OSError(f"clouds {retry}")
    memo.seen[name] = memo.seen.get(name, 0) + 1
    logger.info(
        f"points to {spec.get('target')}, in {threading.current_thread().name[:4]}"
    )
    kopf.warn(body, reason="Pointed", message=str(spec.get("target")))
    kopf.info(body, reason="Unseen", message="below the level")
    return spec.get("target")


@kopf.on.update(KIND)
async def repoint(diff, logger, old, new, **_):
    logger.info(f"changes: {[each[:2] for each in diff]}")
    logger.info(f"{sorted(old)} {'weather' in old.get('spec', new.get('spec', {}))}")


@kopf.on.update(KIND, field="spec.target")
def turn(old, new, patch, logger, retry, **_):
    if retry == 0:
        raise kopf.TemporaryError(f"turns from {old}", delay=0.3)
    patch.status["turns"] = f"{old} to {new}"


@kopf.on.delete(KIND)
async def park(name, memo, logger, status, **_):
    logger.info(f"parks after {sorted(set(status) - {'snapshot'})}")
    memo.seen.pop(name, None)


# ------------------------------------------------------------------------- daemons


def delay_of(spec, **_):
    return spec.get("delay", 0.1)


@kopf.daemon(
    KIND,
    annotations={"track": "yes"},
    initial_delay=delay_of,
    cancellation_backoff=0.3,
    cancellation_timeout=2,
)
async def track(stopped, patch, logger, spec, body, meta, retry, **_):
    """It sees live values, writes them, and cleans up when it is cancelled."""
    logger.info(f"tracks {spec['target']}, {retry}")
    target = None
    try:
        while True:  # no look at `stopped`
            if spec["target"] != target:
                target = body.spec["target"]
                logger.info(f"tracks {target} now")
            await asyncio.sleep(0.1)
    except asyncio.CancelledError:
        await asyncio.sleep(0.1)
        logger.info(f"tracks no more: {stopped.reason}, {bool(stopped)}")
        patch.status["tracked"] = target


@kopf.daemon(KIND, labels={"guide": kopf.PRESENT}, cancellation_polling=0.2)
def guide(stopped: kopf.DaemonStopped, patch, name, labels, logger, param, **_):
    """A sync one, which ends when it is asked to."""
    rounds = 0
    while not stopped.wait(0.1):
        rounds += 1
    logger.info(
        f"guides no more: {stopped.reason}, {rounds > 0}, {labels.get('guide')}"
    )


@kopf.daemon(KIND, field="spec.expose", value=kopf.PRESENT, retries=3, backoff=0.2)
async def expose(spec, retry, logger, patch, started, **_):
    logger.info(f"exposes {spec['expose']}, {retry}")
    patch.status["exposures"] = retry
    kind = spec["expose"][retry]
    if kind == "cloud":
        raise OSError("a cloud")
    if kind == "wait":
        raise kopf.TemporaryError("the moon", delay=0.2)
    if kind == "end":
        raise kopf.PermanentError("it is day")
    return {"image": kind}


@kopf.daemon(KIND, annotations={"stubborn": kopf.PRESENT}, cancellation_timeout=0.3)
async def stubborn(stopped, logger, **_):
    """It is cancelled, and goes on for a while."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        logger.info("'stubborn' goes on")
    await asyncio.sleep(1.0)
    logger.info(f"'stubborn' ends: {stopped.reason}")


@kopf.timer(
    KIND,
    annotations={"dome": kopf.PRESENT},
    interval=300,
    initial_delay=delay_of,
    retries=4,
)
def dome(annotations, retry, patch, logger, status, **_):
    logger.info(f"'dome' turns {annotations['dome']}, {retry}")
    patch.status["turn"] = retry
    if annotations["dome"] == "stuck":
        raise kopf.TemporaryError("stuck", delay=0.2 if retry else 0)
    if annotations["dome"] == "broken":
        raise kopf.PermanentError("broken")
    return {"turned": annotations["dome"]}


# ------------------------------------------------------------------------- program


def main():
    kopf.configure(verbose=True, log_format=kopf.LogFormat.JSON)
    warnings.simplefilter("ignore", ResourceWarning)
    ready, stop = threading.Event(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    memo = kopf.Memo(owner="ann", seen={})
    operator = threading.Thread(
        target=kopf.run,
        name="operator",
        kwargs={
            "standalone": True,
            "namespaces": [NAMESPACE],
            "memo": memo,
            "ready_flag": ready,
            "stop_flag": stop,
            "lifecycle": kopf.lifecycles.one_by_one,
        },
    )
    operator.start()
    ready.wait()
    log.info(f"the observatory is open: {operator.is_alive()}")
    while not stop.is_set():
        time.sleep(0.05)
    operator.join()
    log.info(f"the observatory is shut: {sorted(memo.seen)}")


if __name__ == "__main__":
    main()
