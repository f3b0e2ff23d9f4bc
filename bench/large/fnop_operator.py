"""The operator of the large collection, written with fnop.

BENCH_LARGE names a variant: `streaming` has streaming lists, `index` an index of
all objects.
"""

import os
from collections.abc import Mapping
from typing import Any

import fnop

VARIANT = os.environ.get("BENCH_LARGE")


@fnop.on.create("benchobjects")
def create(spec: Mapping[str, Any], **_: Any) -> dict[str, int]:
    return {"doubled": spec["number"] * 2}


if VARIANT == "streaming":

    @fnop.on.startup()
    def configure(settings: fnop.Settings, **_: Any) -> fnop.Settings:
        return settings.replace(initial_streaming=True)


if VARIANT == "index":

    @fnop.index("benchobjects")
    def specs(name: str, spec: Mapping[str, Any], **_: Any) -> dict[str, Any]:
        return {name: spec}
