"""Channels of a message broker, by asyncio: one session, a lock, a cancelled daemon.

The broker is a small HTTP server in the same loop, so that the replica needs nothing.
"""

import asyncio
import hashlib
import logging

import aiohttp
import aiohttp.web
import kopf

KIND = "channels.replicas.fnop.dev"

log = logging.getLogger("channels")


class Doubling:
    """Pauses between requests that fail: as many as are needed, each is longer."""

    def __iter__(self):
        pause = 0.5
        while True:
            yield pause
            pause = min(pause * 2, 30)


class Broker:
    """Topics by name. `flaky` fails once, and `down` always."""

    def __init__(self):
        self.topics, self.failed = {}, set()

    async def put(self, request):
        name = request.match_info["name"]
        if name == "down" or (name == "flaky" and name not in self.failed):
            self.failed.add(name)
            return aiohttp.web.Response(status=503)
        self.topics[name] = await request.text()
        return aiohttp.web.json_response({"topic": name})

    async def delete(self, request):
        return aiohttp.web.json_response(
            {"was": self.topics.pop(request.match_info["name"], None)}
        )


@kopf.on.startup()
async def connect(settings, memo, **_):
    settings.networking.error_backoffs = Doubling()
    settings.networking.connect_timeout = 10
    settings.networking.request_timeout = 60
    settings.execution.max_workers = 4
    settings.posting.enabled = False
    memo.broker = Broker()
    application = aiohttp.web.Application()
    application.router.add_put("/{name}", memo.broker.put)
    application.router.add_delete("/{name}", memo.broker.delete)
    memo.runner = aiohttp.web.AppRunner(application, access_log=None)
    await memo.runner.setup()
    site = aiohttp.web.TCPSite(memo.runner, "127.0.0.1", 0)
    await site.start()
    memo.url = "http://{}:{}".format(*memo.runner.addresses[0])
    memo.session = aiohttp.ClientSession(raise_for_status=True)
    memo.lock = asyncio.Lock()
    log.info("the broker listens")


@kopf.on.cleanup()
async def disconnect(memo, logger, **_):
    await memo.session.close()
    await memo.runner.cleanup()
    logger.info("the broker is closed")


@kopf.on.probe(id="topics")
async def topics(memo, **_):
    return sorted(memo.broker.topics)


@kopf.on.probe()
def sync_probe(**_):
    return {"is": "alive"}


async def opened(memo, topic, digest):
    async with memo.session.put(f"{memo.url}/{topic}", data=digest) as answer:
        return (await answer.json())["topic"]


@kopf.on.create(KIND, retries=3, backoff=1.0)
@kopf.on.update(KIND, retries=3, backoff=1.0, field="spec.topics")
async def open_topics(spec, name, memo, logger, retry, **_):
    async with memo.lock:
        digest = await asyncio.to_thread(
            lambda: hashlib.sha256(name.encode()).hexdigest()[:8]
        )
        wanted = spec.get("topics", [])
        try:
            done = await asyncio.gather(*(opened(memo, t, digest) for t in wanted))
        except aiohttp.ClientResponseError as error:
            logger.warning(f"attempt {retry + 1}: the broker answered {error.status}")
            raise RuntimeError("the broker failed") from error
    return {"topics": done, "digest": digest}


@kopf.on.delete(KIND)
async def close_topics(spec, memo, logger, **_):
    for topic in spec.get("topics", []):
        async with memo.session.delete(f"{memo.url}/{topic}") as answer:
            was = (await answer.json())["was"]
            logger.info(f"closed {topic}: {'open' if was else 'unknown'}")


@kopf.daemon(KIND, cancellation_timeout=1.0)
async def listen(name, logger, patch, **_):
    logger.info(f"listening to {name}")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        logger.info(f"{name} falls silent")
        raise


@kopf.daemon(KIND, cancellation_backoff=0.1, initial_delay=0.2)
async def greet(stopped, patch, memo, **kwargs):
    patch.status["greeted"] = kwargs["name"]
    memo["greetings"] = memo.get("greetings", 0) + 1
    # It returns, and is not called again.
