"""Handlers that are called again and again."""

from typing import Any

import fnop


@fnop.timer("fnopexamples", interval=1)
def every_second(status: fnop.Status, **_: Any) -> fnop.Effect:
    ticks = status.get("ticks", 0)
    return fnop.patch(status={"ticks": min(3, ticks + 1)})


@fnop.timer("fnopexamples", interval=1, sharp=True, labels={"somelabel": fnop.ABSENT})
def for_others(patch: fnop.Patch, **_: Any) -> None:
    patch.status["called"] = True


@fnop.timer("fnopexamples", idle=2)
def when_it_is_quiet(spec: fnop.Spec, **_: Any) -> fnop.Effect:
    """Two seconds after the last change of the object, and once after each."""
    return fnop.patch(status={"quiet": spec["field"]})


@fnop.timer("fnopexamples", cron="0 4 1 1 *")
def in_the_new_year(patch: fnop.Patch, **_: Any) -> None:
    patch.status["year"] = "a new one"


@fnop.timer("fnopexamples", interval=1, initial_delay=1)
def until_it_is_done(status: fnop.Status, logger: fnop.Logger, **_: Any) -> None:
    logger.info("there are %s ticks", status.get("ticks"))
    if status.get("ticks") == 3:
        raise fnop.PermanentError("that is enough")
