"""An operator with every kind of handler, which keeps a ledger of its calls.

Each call of a handler is a line of JSON in the file that CHURN_LEDGER names: its time,
its process, and the handler's view. The view is also the handler's result. So a judge
can see which state was handled, and whether that was stored before.
"""

import json
import os
import time
from datetime import timedelta
from typing import Any

import fnop

KIND = "fnopexamples"
TOUCHED = "churn.example/touched"
CHANGED = "churn.example/changed"


def note(**line: Any) -> None:
    """Add a line; lines of several processes do not mix (POSIX: O_APPEND)."""
    line |= {"at": time.time(), "pid": os.getpid()}
    text = json.dumps(line, separators=(",", ":")) + "\n"
    file = os.open(os.environ["CHURN_LEDGER"], os.O_APPEND | os.O_WRONLY | os.O_CREAT)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def seen(body: Any) -> dict[str, Any]:
    """The handler's view: the generation counts the states of the spec."""
    annotations = body["metadata"].get("annotations", {})
    return {
        "generation": body["metadata"]["generation"],
        "touched": int(annotations.get(TOUCHED, "0")),
        "mark": annotations.get(CHANGED, ""),
        "value": body["spec"]["value"],
        "other": body["spec"]["other"],
    }


def called(handler: str, body: Any, **more: Any) -> Any:
    metadata = body["metadata"]
    return fnop.call(
        note,
        handler=handler,
        uid=metadata["uid"],
        name=metadata["name"],
        **seen(body),
        **more,
    )


def config_map(body: Any, role: str) -> dict[str, Any]:
    metadata = {"name": f"{body['metadata']['name']}-{role}"}
    data = {"value": str(body["spec"]["value"])}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@fnop.on.startup()
def configure(settings: fnop.Settings, **_: Any) -> fnop.Settings:
    """Silence is found out soon."""
    return settings.replace(
        watch_silence_seconds=15.0, watch_timeout_seconds=10, list_page_limit=50
    )


@fnop.on.create(KIND, id="made", backoff=1.0)
async def made(body: fnop.Body, retry: int, **_: Any) -> dict[str, Any]:
    await called("made", body, retry=retry)
    if body["spec"]["value"] % 5 == 0 and retry == 0:
        raise fnop.TemporaryError("the first attempt is in vain", delay=0.3)
    child = config_map(body, "made")
    del child["metadata"]["name"]
    await fnop.adopt(child)
    return seen(body)


@fnop.on.update(KIND, id="changed", backoff=1.0)
async def changed(
    body: fnop.Body, retry: int, patch: fnop.Patch, **_: Any
) -> dict[str, Any]:
    await called("changed", body, retry=retry)
    value = body["spec"]["value"]
    if value % 7 == 0 and retry == 0:
        raise fnop.TemporaryError("the first attempt is in vain", delay=0.3)
    await fnop.apply(fnop.owned(config_map(body, "follower"), body))
    if value % 2:
        patch.metadata["annotations"] = {CHANGED: str(value)}
    return seen(body)


@fnop.on.field(KIND, field="spec.other", id="fielded", backoff=1.0)
async def fielded(body: fnop.Body, retry: int, runtime: timedelta, **_: Any) -> Any:
    await called("fielded", body, retry=retry)
    # Waiting is not a failure, so `retry` does not count it.
    if body["spec"]["other"] % 5 == 0 and runtime.total_seconds() < 0.4:
        return fnop.again(after=0.5, because="the field is not ready")
    return seen(body)


@fnop.on.delete(KIND, id="ended", backoff=1.0)
async def ended(body: fnop.Body, retry: int, **_: Any) -> None:
    await called("ended", body, retry=retry)
    if body["spec"]["value"] % 3 == 0 and retry == 0:
        raise fnop.TemporaryError("the first attempt is in vain", delay=0.3)


@fnop.daemon(KIND, id="followed")
async def followed(body: fnop.Body, stopped: fnop.Stopped, **_: Any) -> None:
    await called("followed", body, phase="begins")
    await stopped.wait()
    await called("followed", body, phase="ends")
