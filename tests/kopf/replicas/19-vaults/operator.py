"""Vaults, guarded by webhooks, with a server of their own around Kopf's.

Registries are made by functions, and one of them becomes the default. The operator runs
in a thread by `kopf.run`; flags say when it is ready, and when it should stop.
"""

import asyncio
import contextvars
import copy
import dataclasses
import functools
import logging
import os
import pathlib
import signal
import threading
import typing

import kopf

KIND = ("replicas.fnop.dev", "v1", "vaults")
PKI = pathlib.Path(os.environ["REPLICA_CERTIFICATES"])
log = logging.getLogger("vaults")


class Memory:
    """The memo: each object has its own notes, and the journal is everybody's."""

    def __init__(self, journal, limit):
        self.journal, self.limit, self.notes = journal, limit, []

    def __copy__(self):
        return Memory(self.journal, self.limit)

    def note(self, text):
        self.notes.append(text)
        with self.journal.lock:
            self.journal.lines.append(text)
        return len(self.notes)


@dataclasses.dataclass
class Journal:
    lines: list = dataclasses.field(default_factory=list)
    lock: typing.Any = dataclasses.field(default_factory=threading.Lock)


class GuardedServer:
    """A webhook server around Kopf's: it counts reviews, and adds a path."""

    reviews = 0

    def __init__(self, *, port, path):
        self.path = path
        self.inner = kopf.WebhookServer(
            addr="127.0.0.1",
            host="127.0.0.1",
            port=port,
            path=path,
            certfile=PKI / "server.crt",
            pkeyfile=PKI / "server.key",
            cafile=PKI / "ca.crt",
        )

    async def __call__(
        self, fn: kopf.WebhookFn
    ) -> typing.AsyncIterator[kopf.WebhookClientConfig]:
        async def reviewed(request, *, webhook=None, headers=None, sslpeer=None):
            type(self).reviews += 1
            answer = await fn(
                request, webhook=webhook, headers=headers, sslpeer=sslpeer
            )
            if not answer["response"]["allowed"]:
                log.info(f"refused by {webhook.partition('/')[0]}")
            return answer

        async for config in self.inner(reviewed):
            log.info(f"the path is {self.path}: {self.path in config['url']}")
            yield config


# ------------------------------------------------------------------------ webhooks


def guards():  # noqa: C901
    """A registry with webhooks alone."""
    registry = kopf.OperatorRegistry()

    @kopf.on.mutate(*KIND, registry=registry, operations=["CREATE", "UPDATE"])
    def defaults(body, spec, patch, warnings, memo, operation, **_):
        items = copy.deepcopy(spec.get("items", []))
        for each in items:
            each.setdefault("count", 1)
        if items != spec.get("items", []):
            patch.spec["items"] = items
        if "lock" not in spec:
            patch.spec["lock"] = {"kind": "wheel"}
            patch.meta.annotations["lock"] = "default"
            warnings.append(f"{operation}: the lock is a wheel")

    @kopf.on.validate(*KIND, registry=registry, id="size", side_effects=False)
    async def size(spec, old, new, diff, memo, operation, namespace, name, **_):
        if spec.get("size", 0) > memo.limit:
            raise kopf.AdmissionError(
                f"{spec['size']} is more than {memo.limit}", code=413
            )
        shrunk = [
            d for d in diff if d.field == ("spec", "size") and d.new < (d.old or 0)
        ]
        if operation == "UPDATE" and shrunk:
            raise kopf.TemporaryError("not before the items are out")

    @kopf.on.validate(*KIND, registry=registry, field="spec.items", value=kopf.PRESENT)
    def items(spec, **_):
        for each in spec["items"]:
            if "name" not in each:
                raise kopf.AdmissionError(f"without a name: {sorted(each.items())}")

    @kopf.on.validate(
        *KIND,
        registry=registry,
        subresource="status",
        operations=["UPDATE"],
        id="status",
    )
    def status_reviewed(status, userinfo, headers, sslpeer, subresource, warnings, **_):
        if status.get("phase") == "robbed":
            groups = "system:masters" in userinfo["groups"]
            raise kopf.PermanentError(
                f"{subresource}: {groups}, {'Content-Type' in headers}, {bool(sslpeer)}"
            )

    @kopf.on.validate(
        "configmaps",
        registry=registry,
        labels={"vault": kopf.PRESENT},
        operation="CREATE",
        ignore_failures=True,
        persistent=True,
    )
    def plans(body, labels, name, **_):
        if "secret" in body["data"]:
            raise kopf.AdmissionError(
                f"{name} is a secret of {labels['vault']}", code=451
            )

    @kopf.on.mutate(
        "configmaps",
        registry=registry,
        labels={"vault": kopf.PRESENT},
        when=lambda name, **_: not name.startswith("secret"),
    )
    async def stamped(patch, body, **_):
        patch.fns.append(lambda raw: raw.setdefault("data", {}).update(stamped="yes"))
        patch["data"] = {"lines": str(len(body["data"]))}

    return registry


# ------------------------------------------------------------------------ handlers


def keepers(registry):
    """The other handlers. The registry is the default, so nobody names it."""
    former = kopf.get_default_registry()
    kopf.set_default_registry(registry)
    try:

        @kopf.on.login(errors=kopf.ErrorsMode.PERMANENT)
        def login(logger, **kwargs):
            return kopf.login_with_kubeconfig(logger=logger, **kwargs)

        @kopf.on.startup()
        async def startup(settings, memo, logger, **_):
            settings.admission.server = GuardedServer(
                port=int(os.environ["REPLICA_PORT"]), path="/guard"
            )
            settings.admission.managed = "vaults.fnop.dev"
            memo.note("startup")
            logger.info(f"limit {memo.limit}, {type(memo).__name__}")

        @kopf.on.create(*KIND)
        @kopf.on.update(*KIND, field="spec.items")
        async def counted(spec, patch, memo, logger, reason, **_):
            noted = memo.note(f"counted by {reason}")
            patch.status["count"] = sum(each["count"] for each in spec.get("items", []))
            logger.info(f"notes: {noted}")

        @kopf.on.create(*KIND, id="opened", timeout=20)
        def opened(retry, body, memo, patch, logger, **_):
            """Events come from a thread of its own, with the handler's context."""
            if retry < 2:
                try:
                    raise OSError(f"the door is stuck, {retry}")
                except OSError:
                    kopf.exception(body, reason="Stuck")
                raise kopf.TemporaryError("stuck", delay=0.4)
            context = contextvars.copy_context()
            tell = functools.partial(kopf.event, body, type="Normal", reason="Open")

            def work():
                try:
                    tell(message="from nowhere")
                except LookupError:
                    context.run(tell, message="from a thread")

            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            return {"notes": memo.note("opened")}

        @kopf.on.delete(*KIND)
        def emptied(memo, logger, **_):
            logger.info(f"emptied: {[each for each in memo.notes if 'c' in each]}")

        @kopf.on.cleanup()
        async def cleanup(memo, logger, **_):
            logger.info(f"journal: {sorted(set(memo.journal.lines))}")
    finally:
        kopf.set_default_registry(former)
    return registry


# A handler of the default registry, which is not the operator's: nobody calls it.
@kopf.on.create(*KIND)
def never(**_):
    raise AssertionError("of another registry")


def main():
    kopf.configure(verbose=True, log_format=kopf.LogFormat.JSON)
    ready, stop = threading.Event(), threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    registry = keepers(guards())
    memory = Memory(Journal(), limit=10)

    def operate():
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        kopf.run(
            loop=loop,
            registry=registry,
            memo=memory,
            standalone=True,
            namespaces=[os.environ["REPLICA_NAMESPACE"]],
            lifecycle=kopf.lifecycles.asap,
            ready_flag=ready,
            stop_flag=stop,
        )

    thread = threading.Thread(target=operate, name="kopf")
    thread.start()
    ready.wait()
    is_default = kopf.get_default_registry() is registry
    log.info(f"ready: {thread.is_alive()}, default: {is_default}")
    stop.wait()
    thread.join()
    log.info(f"the end, reviews: {GuardedServer.reviews > 0}")


if __name__ == "__main__":
    main()
