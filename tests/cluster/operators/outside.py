"""Handlers that act on the world by themselves: a daemon, and two that go wrong."""

from typing import Any

import fnop


@fnop.daemon("fnopexamples", impure=True)
def follow(spec: Any, stopped: Any, logger: Any, **_: Any) -> None:
    said = None
    while not stopped.wait(0.05):
        if said != spec["size"]:
            said = spec["size"]
            logger.info("the size is %s", said)
    logger.info("told: %s", stopped.reason)


@fnop.daemon("fnopexamples", impure=True)
async def follow_on_the_loop(
    labels: Any, stopped: fnop.Stopped, logger: Any, **_: Any
) -> None:
    said = None
    while not await stopped.wait(0.05):
        if said != dict(labels):
            said = dict(labels)
            logger.info("the labels are %s", said)


@fnop.on.create("fnopexamples", impure=True, backoff=0)
def answer(logger: Any, **_: Any) -> Any:
    logger.info("it answers")
    return ["a", "list"]


@fnop.on.create("fnopexamples", impure=True, backoff=0)
def drop(logger: Any, **_: Any) -> None:
    logger.info("it drops an effect")
    fnop.event("Lost", "nobody returns it")
