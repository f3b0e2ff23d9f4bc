"""Game servers, scaled by one controller: an object whose methods are the handlers.

Players are counted by an asyncio server that runs beside the operator in one loop.
"""

import asyncio
import contextlib
import functools
import json
import logging
import os
import signal

import kopf
from kubernetes import client

KIND = ("replicas.fnop.dev", "v1", "servers")
log = logging.getLogger("controller")


class Lobby:
    """Lines of text over TCP: `join NAME`, `leave NAME`, and answers with a count."""

    def __init__(self):
        self.players = {}
        self.address = None

    async def serve(self, ready):
        server = await asyncio.start_server(self.talk, "127.0.0.1", 0)
        async with server:
            self.address = server.sockets[0].getsockname()
            ready.set()
            await server.serve_forever()

    async def talk(self, reader, writer):
        while line := await reader.readline():
            verb, name = line.decode().split()
            count = self.players.get(name, 0) + {"join": 1, "leave": -1, "ask": 0}[verb]
            self.players[name] = count
            writer.write(json.dumps({"players": count}).encode() + b"\n")
            await writer.drain()
        writer.close()

    async def ask(self, verb, name):
        reader, writer = await asyncio.open_connection(*self.address)
        writer.write(f"{verb} {name}\n".encode())
        answer = json.loads(await reader.readline())
        writer.close()
        return answer["players"]


class Controller:
    causes = ("create", "update", "resume")

    def __init__(self, lobby):
        self.lobby = lobby
        self.registry = kopf.OperatorRegistry()
        self.settings = kopf.OperatorSettings()
        self.failed = set()
        self.registry_of_handlers()

    def registry_of_handlers(self):
        own = {"registry": self.registry}
        kopf.on.login(**own)(kopf.login_via_client)
        kopf.on.startup(**own)(self.configure)
        for cause in self.causes:
            method = getattr(self, f"on_{cause}")
            getattr(kopf.on, cause)(*KIND, **own)(method)
        kopf.on.update(*KIND, field="spec.replicas", id="scale", **own)(self.scale)
        kopf.on.field(*KIND, field="spec.mods", **own)(self.modded)
        kopf.on.delete(*KIND, **own, retries=3, backoff=1)(self.on_delete)
        kopf.on.event("", "v1", "configmaps", labels={"game": kopf.PRESENT}, **own)(
            Controller.seen
        )

    def configure(self, settings, **_):
        assert settings is self.settings
        settings.posting.enabled = False
        settings.execution.max_workers = 3
        settings.persistence.finalizer = "servers.fnop.dev"
        settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(
            prefix="servers.fnop.dev", v1=False
        )

    # ------------------------------------------------------------------ handlers

    async def on_create(self, spec, name, patch, logger, **kwargs):
        """Two stages: the disks, and then the maps. Each stage has its parts."""
        logger.info(f"{name} is for {spec['game']}")
        await kopf.execute(
            fns={"disk": self.disk, "saves": functools.partial(self.disk, "saves")}
        )
        logger.info("the disks are there")
        await kopf.execute(
            fns={each: functools.partial(self.load, each) for each in spec["maps"]}
        )
        logger.info("the maps are loaded")
        patch.status["replicas"] = spec["replicas"]
        return {"players": await self.lobby.ask("join", name)}

    async def on_update(self, spec, old, diff, logger, **_):
        """Parts for the maps that are new, and for those that have gone."""
        former, wanted = set(old["spec"].get("maps", [])), set(spec.get("maps", []))
        for each in sorted(wanted - former):
            fn = functools.partial(self.load, each)
            kopf.register(fn, id=each, retries=3, backoff=0.5)
        for each in sorted(former - wanted):

            @kopf.subhandler(id=f"drop-{each}", timeout=60)
            def dropped(name, namespace, each=each, **_):
                api = client.CoreV1Api()
                api.delete_namespaced_config_map(file_name(name, each), namespace)
                return "dropped"

        @kopf.subhandler(when=kopf.all_([self.is_modded, lambda diff, **_: diff]))
        async def rules(spec, retry, **_):
            @kopf.subhandler()
            def deeper(logger, param, **_):
                logger.info(f"rules of {sorted(spec['mods'])}: {param}")
                return len(spec["mods"])

            if retry < 1:
                raise kopf.TemporaryError("the rules are not written", delay=0.5)

        @kopf.subhandler(field="spec.game", id="game", param="p")
        def game_changed(old, new, param, logger, **_):
            logger.info(f"game {old} -> {new} with {param}")

        logger.info(f"{len(diff)} changes")

    async def on_resume(self, name, patch, logger, **_):
        logger.info(f"{name} goes on with {await self.lobby.ask('ask', name)}")

    async def scale(self, old, new, patch, logger, **_):
        logger.info(f"{old} -> {new} replicas")
        patch.status["replicas"] = new

    def modded(self, old, new, diff, logger, **_):
        logger.info(f"mods: {[(str(op), path, a, b) for op, path, a, b in diff]}")

    def on_delete(self, name, namespace, retry, logger, **_):
        if retry == 0:
            raise ConnectionError("players are still there")
        self.lobby.players.pop(name, None)
        logger.info("everybody is gone")

    @staticmethod
    def seen(event, name, memo, logger, **_):
        if "seen" not in memo:
            memo.seen = True
            logger.info(f"seen {event['object']['data']}")

    # --------------------------------------------------------------------- parts

    @staticmethod
    def is_modded(spec, **_):
        return spec.get("mods")

    def disk(self, what="disk", *, name, logger, **_):
        logger.info(f"the {what} of {name}")
        return f"{what}-{name}"

    async def load(self, each, *, name, namespace, logger, retry, **_):
        if each.startswith("slow") and each not in self.failed:
            self.failed.add(each)
            raise kopf.TemporaryError(f"{each} is big", delay=0.5)
        if each.startswith("odd") and retry < 1:
            raise ValueError(f"{each} is odd")
        body = client.V1ConfigMap(
            metadata=client.V1ObjectMeta(
                name=file_name(name, each), labels={"game": name}
            ),
            data={"map": each},
        )
        kopf.adopt(body)
        with contextlib.suppress(client.ApiException):
            await asyncio.to_thread(
                client.CoreV1Api().create_namespaced_config_map, namespace, body
            )
        logger.info(f"loaded {each}")
        return each


def file_name(name, each):
    return f"{name}-{each}".replace("_", "-").lower()


async def main():
    kopf.configure(verbose=True, log_format=kopf.LogFormat.JSON)
    kopf.set_default_lifecycle(kopf.lifecycles.one_by_one)
    loop = asyncio.get_running_loop()
    ready, stop = asyncio.Event(), asyncio.Event()
    loop.add_signal_handler(signal.SIGINT, stop.set)
    lobby = Lobby()
    controller = Controller(lobby)
    serving = asyncio.create_task(lobby.serve(ready), name="lobby")
    await ready.wait()
    tasks = await kopf.spawn_tasks(
        registry=controller.registry,
        settings=controller.settings,
        namespaces=[os.environ["REPLICA_NAMESPACE"]],
        standalone=True,
        stop_flag=stop,
    )
    try:
        await kopf.run_tasks([*tasks, serving])
    finally:
        log.info(f"players at the end: {lobby.players}, served: {serving.done()}")


if __name__ == "__main__":
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(main())
