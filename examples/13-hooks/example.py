"""The operator's own life: its start, its end, its credentials, its probes."""

import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import fnop


@fnop.on.startup(retries=3)
def prepare(retry: int, **_: Any) -> fnop.Effect:
    if retry == 0:
        raise fnop.TemporaryError("the database is not up yet", delay=1)
    return fnop.remember(attempts=retry + 1)  # all handlers have it in their memo


@fnop.on.cleanup()
def leave(logger: fnop.Logger, **_: Any) -> None:
    logger.info("the operator leaves")


@fnop.on.login()
def log_in(now: datetime, **_: Any) -> fnop.ConnectionInfo | None:
    folder = os.environ.get("EXAMPLE_CREDENTIALS")
    if folder is None:
        return None  # then it is the kubeconfig, or the account of the pod
    return fnop.ConnectionInfo(
        server=Path(folder, "server").read_text().strip(),
        token=Path(folder, "token").read_text().strip(),
        ca_path=str(Path(folder, "ca.crt")),
        expiration=now + timedelta(seconds=30),  # then it is asked for again
    )


@fnop.on.probe(id="now")
def tell_the_time(now: datetime, **_: Any) -> str:
    return now.isoformat()


@fnop.on.probe(id="attempts", timeout=1)
async def tell_the_attempts(memo: fnop.Memo, **_: Any) -> Any:
    return memo.get("attempts")


@fnop.on.create("fnopexamples")
def greet(name: str, memo: fnop.Memo, **_: Any) -> dict[str, str]:
    return {"message": f"hello, {name}, after {memo['attempts']} attempts"}
