"""The smallest operator: one handler, whose result goes to the object's status."""

from typing import Any

import fnop


@fnop.on.create("fnopexamples")
def create_fn(spec: fnop.Spec, name: str, **_: Any) -> dict[str, str]:
    return {"message": f"{name} shall run for {spec['duration']}"}
