"""Accounts, by a class in a thread: own registry, own storages, own finalizer.

The main thread does something else, and stops the operator by a flag.
"""

import asyncio
import functools
import hashlib
import json
import logging
import os
import signal
import threading

import kopf

GROUP, VERSION, PLURAL = "replicas.fnop.dev", "v1", "accounts"
FINALIZER = f"{PLURAL}.{GROUP}/close"
DIGEST = f"{GROUP}/digest"

log = logging.getLogger("accounts")


class DigestStorage(kopf.AnnotationsDiffBaseStorage):
    """Keeps a digest next to the essence, and ignores notes."""

    def build(self, *, body, extra_fields=None):
        essence = super().build(body=body, extra_fields=extra_fields)
        essence.get("spec", {}).pop("note", None)
        meta = essence.get("metadata", {})
        # Else each digest would be a change, which has another digest.
        annotations = meta.get("annotations", {})
        annotations.pop(DIGEST, None)
        if not annotations:
            meta.pop("annotations", None)
        if not meta:
            essence.pop("metadata", None)
        return essence

    def store(self, *, body, patch, essence):
        super().store(body=body, patch=patch, essence=essence)
        text = json.dumps(essence, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        patch.metadata.annotations[DIGEST] = digest


class CountingStorage(kopf.StatusProgressStorage):
    """Counts the records that it stores, by handler."""

    def __init__(self, counts):
        super().__init__(name="accounts", field="status.{name}.progress")
        self.counts = counts

    def store(self, *, key, record, body, patch):
        self.counts[key] = self.counts.get(key, 0) + 1
        super().store(key=key, record=record, body=body, patch=patch)


def storages(
    counts: dict[str, int],
) -> tuple[kopf.StatusProgressStorage, kopf.AnnotationsDiffBaseStorage]:
    return CountingStorage(counts), DigestStorage(prefix=f"bank.{GROUP}")


def counted(**expected):
    """Decorate a handler: its calls are counted, and its errors are turned."""

    def decorator(fn):
        @functools.wraps(fn)
        async def wrapper(self, *args, **kwargs):
            self.calls[fn.__name__] = self.calls.get(fn.__name__, 0) + 1
            try:
                return await fn(self, *args, **kwargs, **expected)
            except KeyError as error:
                raise kopf.PermanentError(f"there is no right {error}") from error

        return wrapper

    return decorator


class Bank:
    prices = {"read": 1, "write": 5}  # noqa: RUF012

    def __init__(self, registry, settings):
        self.calls, self.counts = {}, {}
        progress, diffbase = storages(self.counts)
        settings.persistence.progress_storage = progress
        settings.persistence.diffbase_storage = diffbase
        settings.persistence.finalizer = f"bank.{GROUP}/kopf"
        settings.scanning.disabled = True
        settings.peering.name = "bank"
        settings.peering.priority = 100
        settings.peering.standalone = True
        settings.queueing.worker_limit = 10
        settings.queueing.idle_timeout = 3
        where = (GROUP, VERSION, PLURAL)
        given = {"registry": registry}
        kopf.on.startup(**given)(self.on_startup)
        kopf.on.cleanup(**given)(self.on_cleanup)
        kopf.on.create(*where, **given)(self.opened)
        kopf.on.resume(*where, **given)(self.opened)
        kopf.on.update(*where, **given, id="changed")(self.opened)
        told = functools.partial(self.told, "rights")
        kopf.on.field(*where, **given, field="spec.rights", id="told")(told)
        kopf.on.event(*where, **given, id="closing")(self.closing)

    async def on_startup(self, logger, **_):
        logger.info("the bank opens")

    def on_cleanup(self, logger, **_):
        logger.info(f"calls: {self.calls}")

    @counted(currency="EUR")
    async def opened(self, spec, patch, body, reason, currency, **_):
        price = sum(self.prices[right] for right in spec.get("rights", []))
        if FINALIZER not in body.metadata.get("finalizers", []):
            patch.fns.append(self.hold)
        patch.status["price"] = f"{price} {currency}"
        patch.status["reason"] = str(reason)

    @staticmethod
    def hold(body):
        finalizers = body["metadata"].setdefault("finalizers", [])
        if FINALIZER not in finalizers:
            finalizers.append(FINALIZER)

    def told(self, what, old, new, logger, **_):
        gained = sorted(set(new or []) - set(old or []))
        lost = sorted(set(old or []) - set(new or []))
        logger.info(f"{what}: +{gained} -{lost}")

    async def closing(self, event, meta, patch, logger, **_):
        """Its own finalizer is removed here, and Kopf's by Kopf."""
        if event["type"] == "DELETED" or not meta.get("deletionTimestamp"):
            return
        if FINALIZER in meta.get("finalizers", []):
            logger.info("the account is closed")
            kept = [each for each in meta["finalizers"] if each != FINALIZER]
            patch.metadata["finalizers"] = kept


def serve(ready, stop):
    async def serving():
        registry, settings = kopf.OperatorRegistry(), kopf.OperatorSettings()
        # A registry of its own has no logins, unless they are asked for.
        kopf.on.login(registry=registry)(kopf.login_with_kubeconfig)
        bank = Bank(registry, settings)
        tasks = await kopf.spawn_tasks(
            registry=registry,
            settings=settings,
            namespaces=[os.environ["REPLICA_NAMESPACE"]],
            ready_flag=ready,
            stop_flag=stop,
        )
        await kopf.run_tasks(tasks)
        log.info("stored: %s", sorted(bank.counts))

    asyncio.run(serving())


def main():
    kopf.configure(verbose=True, log_format=kopf.LogFormat.JSON)
    ready, stop = threading.Event(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    thread = threading.Thread(target=serve, args=(ready, stop))
    thread.start()
    ready.wait()
    log.info("the operator is ready")
    stop.wait()
    thread.join()
    log.info("the program ends")


if __name__ == "__main__":
    main()
