"""Daemons that begin and end with a label, and that end in several ways."""

import asyncio
import time

import kopf

from .common import KIND


@kopf.daemon(*KIND, labels={"live": "yes"}, cancellation_timeout=2.0, initial_delay=0.1)
async def follow(stopped: kopf.DaemonStopped, spec, name, logger, memo, labels, **_):
    logger.info(f"{name} is live: {dict(labels)}")
    rounds = 0
    while not stopped:
        rounds += 1
        if rounds == 2:
            logger.info("the second round")
        await stopped.wait(spec.get("pause", 0.2))
    logger.info(f"{name} is no longer live: {stopped.reason}")


@kopf.daemon(
    *KIND, labels={"live": "yes"}, cancellation_backoff=1.0, cancellation_timeout=2.0
)
async def stubborn(name, logger, stopped, **_):
    """It does not look at the flag, and needs the cancellation."""
    try:
        while True:
            await asyncio.sleep(0.1)
    except asyncio.CancelledError:
        logger.info(f"{name} is cancelled, stopped: {bool(stopped)}")
        await asyncio.sleep(0.1)
        raise


@kopf.daemon(*KIND, field="spec.title", value=kopf.PRESENT)
async def wait_for_news(memo, logger, stopped, body, spec, **_):
    """The body is a live view: after a wait it has new contents."""
    while not stopped:
        try:
            async with memo.changed:
                await asyncio.wait_for(memo.changed.wait(), 0.05)
        except TimeoutError:
            continue
        deadline = time.perf_counter() + 5
        while spec.get("title") == "old" and time.perf_counter() < deadline:
            await asyncio.sleep(0.05)
        logger.info(f"the news: {spec.get('title')}, {body['spec'].get('title')}")


@kopf.daemon(
    *KIND,
    when=lambda spec, **_: len(spec.get("paths", [])) > 2,
    retries=2,
    backoff=0.2,
    initial_delay=1,
)
async def busy(retry, logger, **_):
    if retry == 0:
        raise RuntimeError("too many paths at once")
    logger.info("busy, and done")


@kopf.daemon(
    *KIND,
    annotations={"watch": kopf.PRESENT},
    cancellation_backoff=5,
    cancellation_timeout=1,
)
def threaded(stopped, annotations, logger, **_):
    logger.info(f"watched by {annotations['watch']}")
    while not stopped.wait(0.1):
        pass
    logger.info(f"unwatched: {stopped.is_set()}")
