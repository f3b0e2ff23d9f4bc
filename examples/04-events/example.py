"""Kubernetes Events: what `kubectl describe` shows about an object."""

from typing import Any

import fnop


@fnop.on.create("fnopexamples")
def create_fn(name: str, **_: Any) -> list[fnop.Effect]:
    return [
        fnop.event("Creating", f"{name} is being set up"),
        fnop.warn("OutOfPaper", "the printer is not ready; nobody needs it"),
        fnop.event("Created", f"{name} is there"),
    ]
