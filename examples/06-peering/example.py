"""One of several operators: the one of the highest priority serves."""

from typing import Any

import fnop


@fnop.on.create("fnopexamples")
@fnop.on.update("fnopexamples")
def handle(spec: fnop.Spec, logger: fnop.Logger, **_: Any) -> fnop.Result:
    logger.info("handled here, and nowhere else")
    return {"field": spec["field"]}


@fnop.timer("fnopexamples", interval=30)
def look(logger: fnop.Logger, **_: Any) -> None:
    """Frozen operators have no timers: this line comes from the one that serves."""
    logger.info("looked after")
