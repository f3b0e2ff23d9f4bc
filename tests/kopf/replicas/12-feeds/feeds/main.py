"""The modules of the handlers, and what all of them share."""

import asyncio
import contextlib
import logging

import kopf

from . import changes, daemons, web  # noqa: F401
from .common import KIND, Counter

log = logging.getLogger(__name__)


async def refresh(memo: kopf.Memo):
    """The background task: it works off the queue, until it is cancelled."""
    try:
        while True:
            name, done = await memo.queue.get()
            memo.refreshed[name] = memo.refreshed.get(name, 0) + 1
            done.set_result(memo.refreshed[name])
            memo.queue.task_done()
    except asyncio.CancelledError:
        log.info("the refresher is cancelled")
        raise


@kopf.on.startup()
async def begin(memo: kopf.Memo, settings: kopf.OperatorSettings, **_):
    settings.execution.max_workers = 2
    settings.background.cancellation_polling = 0.5
    settings.posting.enabled = False
    memo.stack = contextlib.AsyncExitStack()
    memo.server = await memo.stack.enter_async_context(web.Server())
    memo.queue = asyncio.Queue()
    memo.refreshed = {}
    memo.lock = asyncio.Lock()
    memo.changed = asyncio.Condition()
    memo.task = asyncio.create_task(refresh(memo), name="refresher")
    log.info(f"the server is at {memo.server.address[0]}")


@kopf.on.startup()
async def same_loop(memo, **_):
    loop = asyncio.get_running_loop()
    loop.call_soon(log.info, "a callback of the loop")
    memo["loop"] = loop


@kopf.on.cleanup()
async def end(memo: kopf.Memo, logger, **_):
    memo.task.cancel()
    results = await asyncio.gather(memo.task, return_exceptions=True)
    logger.info(f"ended with {[type(each).__name__ for each in results]}")
    await memo.stack.aclose()
    logger.info(
        f"refreshed: {sorted(memo.refreshed)}, asked: {memo.server.requests > 0}"
    )


kopf.on.create(*KIND, id="counter")(Counter())
