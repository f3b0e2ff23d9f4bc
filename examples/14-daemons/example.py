"""Conversations that go on for as long as their object lives."""

from typing import Any

import fnop


@fnop.daemon("fnopexamples")
async def follow(spec: fnop.Spec, **_: Any) -> None:
    """Looks at the object every second, and shows what it has seen."""
    while True:
        await fnop.patch(status={"followed": spec["field"]})
        view = await fnop.sleep(1)
        spec = view.spec


@fnop.daemon("fnopexamples", labels={"somelabel": "somevalue"})
async def listen(stopped: fnop.Stopped, logger: fnop.Logger, **_: Any) -> None:
    """Is told when it is to stop, and has time to end well."""
    logger.info("listening")
    while not stopped:
        await fnop.sleep(60)
    logger.info("done listening: %s", stopped.reason)


@fnop.daemon("fnopexamples", initial_delay=1)
async def once(name: str, **_: Any) -> dict[str, str]:
    """Ends by itself, and is not begun again."""
    await fnop.sleep(1)
    return {"said": f"goodbye, {name}"}
