"""Deletion handlers with parts that never succeed."""

from typing import Any

import fnop


def part(**_: Any) -> None:
    raise fnop.TemporaryError("no", delay=0.5)


@fnop.on.delete("fnopexamples", labels={"how": "declares"}, timeout=2, retries=2)
def declares(**_: Any) -> None:
    fnop.register(part, id="part")


@fnop.on.delete("fnopexamples", labels={"how": "executes"}, timeout=2)
async def executes(**_: Any) -> None:
    await fnop.execute({"part": part})


@fnop.on.delete("fnopexamples", labels={"how": "waits"}, timeout=2)
def waits(**_: Any) -> fnop.Effect:
    return fnop.again(after=3600, because="it drains")
