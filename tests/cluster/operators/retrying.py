"""A handler that succeeds at its fourth attempt, with no limit to its attempts."""

from typing import Any

import fnop


@fnop.on.create("fnopexamples")
def create_fn(retry: int, **_: Any) -> dict[str, int]:
    if retry < 3:
        raise fnop.TemporaryError("not yet", delay=0.2)
    return {"attempts": retry + 1}
