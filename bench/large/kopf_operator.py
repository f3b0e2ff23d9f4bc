"""The operator of the large collection, written with Kopf.

BENCH_LARGE names a variant: `pages` lists by pages, `streaming` has streaming lists,
`index` has an index of all objects.
"""

# Types are checked without the bench extra, too: then Kopf is missing.
# mypy: disable-error-code="import-not-found, untyped-decorator"

import os
from typing import Any

import kopf

VARIANT = os.environ.get("BENCH_LARGE")


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    if VARIANT == "pages":
        settings.watching.chunk_size = 500
    if VARIANT == "streaming":
        settings.watching.initial_streaming = True


@kopf.on.create("benchobjects")
def create(spec: kopf.Spec, **_: Any) -> dict[str, int]:
    return {"doubled": spec["number"] * 2}


if VARIANT == "index":

    @kopf.index("benchobjects")
    def specs(name: str, spec: kopf.Spec, **_: Any) -> dict[str, Any]:
        return {name: dict(spec)}
