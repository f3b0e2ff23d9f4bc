"""01-minimal with a deletion handler, which needs a finalizer."""

from typing import Any

import fnop


@fnop.on.create("fnopexamples")
def create_fn(name: str, **_: Any) -> dict[str, Any]:
    return {"message": f"hello {name}"}


@fnop.on.delete("fnopexamples")
def delete_fn(name: str, logger: Any, **_: Any) -> None:
    logger.info("goodbye %s", name)
