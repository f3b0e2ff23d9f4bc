"""Handlers of changes: partials, wrappers, threads that use the loop."""

import asyncio
import contextvars
from functools import partial

import kopf

from . import web
from .common import KIND, translated, unnamed

attempt = contextvars.ContextVar("attempt", default=0)


@kopf.on.create(*KIND)
@kopf.on.update(*KIND, field="spec.paths")
@translated(delay=0.5)
async def load(spec, memo, patch, retry, logger, **kwargs):
    attempt.set(attempt.get() + 1)
    paths = spec.get("paths", [])
    timeout = 0.3 if retry == 0 else 5.0
    wanted = [p for p in paths if not (p == "slow" and retry > 0)]
    async with memo.lock:
        found = await asyncio.gather(
            *(web.fetch(memo.server.address, p, timeout) for p in wanted)
        )
    was = type(kwargs.get("old")).__name__
    logger.info(f"loaded {len(found)}, context {attempt.get()}, old {was}")
    patch.status.setdefault("loads", {}).update({"count": len(found)})
    return found


async def refreshed(how, *, name, memo, namespace, **kwargs):
    """It waits for the background task, which has the same loop."""
    done = asyncio.get_running_loop().create_future()
    await memo.queue.put((name, done))
    count = await asyncio.wait_for(done, 10)
    kwargs["logger"].info(f"{how}: refreshed {count}")
    return {"how": how, "count": count}


# The id is that of the function: both are one handler for Kopf, unless an id is given.
kopf.on.create(*KIND)(partial(refreshed, "new"))
kopf.on.field(*KIND, field="spec.title", id="retitled")(partial(refreshed, "title"))


@kopf.on.resume(*KIND)
@translated()
def from_thread(memo, name, logger, patch, **_):
    """A plain function asks the loop from its thread."""
    future = asyncio.run_coroutine_threadsafe(
        refreshed("thread", name=name, memo=memo, namespace=None, logger=logger),
        memo["loop"],
    )
    patch.status["threaded"] = future.result(10)["how"]


@kopf.on.update(*KIND, field="spec.title", new=lambda value, **_: value is not None)
@unnamed
async def notify(memo, old, new, logger, **_):
    async with memo.changed:
        memo.changed.notify_all()
    logger.info(f"all are told: {old} -> {new}")


@kopf.on.delete(*KIND, optional=True)
async def bye(memo, name, logger, **_):
    tasks = [asyncio.create_task(asyncio.sleep(0.01, n)) for n in range(3)]
    done, pending = await asyncio.wait(tasks)
    logger.info(f"{name} is closed: {sorted(t.result() for t in done)} {len(pending)}")


@kopf.on.event(*KIND)
async def on_event(memo, event, name, logger, patch, spec, status, **_):
    if event["type"] == "DELETED":
        logger.info(f"refreshed until the end: {memo.refreshed.pop(name, 0) > 0}")
    elif (
        "loads" in status
        and spec.get("title")
        and status.get("upper") != spec["title"].upper()
    ):
        patch.status["upper"] = spec["title"].upper()
