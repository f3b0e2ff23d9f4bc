"""The same with a limit: a restart has to know how many attempts are left."""

from typing import Any

import fnop


@fnop.on.create("fnopexamples", retries=5)
def create_fn(retry: int, **_: Any) -> dict[str, int]:
    if retry < 3:
        raise fnop.TemporaryError("not yet", delay=0.2)
    return {"attempts": retry + 1}
