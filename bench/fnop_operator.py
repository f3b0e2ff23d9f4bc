"""The same work, written with fnop."""

import os
from collections.abc import Mapping
from typing import Any

import fnop


@fnop.on.create("benchobjects")
def create(spec: Mapping[str, Any], **_: Any) -> dict[str, int]:
    return {"doubled": spec["number"] * 2}


if "BENCH_UPDATE" in os.environ:
    fnop.on.update("benchobjects", id="create")(create)


if "BENCH_STREAMING" in os.environ:

    @fnop.on.startup()
    def configure(settings: fnop.Settings, **_: Any) -> fnop.Settings:
        return settings.replace(initial_streaming=True)


if "BENCH_DELETE" in os.environ:

    @fnop.on.delete("benchobjects")
    def delete(**_: Any) -> None:
        pass
