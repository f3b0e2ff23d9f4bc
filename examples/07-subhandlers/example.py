"""Parts of a handler, each with progress, retries and a result of its own."""

from typing import Any

import fnop


@fnop.on.create("fnopexamples")
@fnop.on.update("fnopexamples")
def build(spec: fnop.Spec, **_: Any) -> None:
    """Declares a part for each item; it has succeeded when all of them have."""
    for item in spec["items"]:

        @fnop.subhandler(id=item["name"])
        def part(
            item: dict[str, Any] = item, retry: int = 0, **_: Any
        ) -> dict[str, int]:
            if retry < item.get("fails", 0):
                raise fnop.TemporaryError("not yet", delay=1)
            return {"attempts": retry + 1}


@fnop.on.create("fnopexamples")
async def check(patch: fnop.Patch, **_: Any) -> None:
    """Or it awaits its parts, and looks at how they have ended."""
    ends = await fnop.execute({"good": good, "bad": bad})
    patch.status["checked"] = {name: end["finished"] for name, end in ends.items()}


def good(**_: Any) -> None: ...


def bad(**_: Any) -> None:
    raise fnop.PermanentError("this one never works")
