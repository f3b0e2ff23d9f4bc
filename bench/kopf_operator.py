"""The same work, written with Kopf."""

# Types are checked without the bench extra, too: then Kopf is missing.
# mypy: disable-error-code="import-not-found, untyped-decorator"

import os
from typing import Any

import kopf


@kopf.on.create("benchobjects")
def create(spec: kopf.Spec, **_: Any) -> dict[str, int]:
    return {"doubled": spec["number"] * 2}


if "BENCH_UPDATE" in os.environ:
    kopf.on.update("benchobjects", id="create")(create)


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    if "BENCH_CHUNKED" in os.environ:
        settings.watching.chunk_size = 500
    if "BENCH_STREAMING" in os.environ:
        settings.watching.initial_streaming = True


if "BENCH_DELETE" in os.environ:

    @kopf.on.delete("benchobjects")
    def delete(**_: Any) -> None:
        pass
