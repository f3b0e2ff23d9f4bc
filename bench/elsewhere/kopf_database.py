"""The example 19-database, with Kopf: a daemon for each database, woken by events.

Only the daemon writes, so a database and its children have one order, and the daemon
retries failures.
"""

# Types are checked without the bench extra, too: then Kopf is missing.
# mypy: disable-error-code="import-not-found, untyped-decorator, arg-type"

import asyncio
import contextlib
from typing import Any

import kopf
from lightkube import AsyncClient

from bench.elsewhere.kopf_children import is_child, looked_after, message_of, owner_of


@kopf.on.startup()
async def connect(memo: kopf.Memo, **_: Any) -> None:
    memo.api = AsyncClient(field_manager="kopf-databases")
    memo.woken = dict[str, asyncio.Event]()


@kopf.on.cleanup()
async def disconnect(memo: kopf.Memo, **_: Any) -> None:
    await memo.api.close()


@kopf.on.event("configmaps", when=is_child)
@kopf.on.event("secrets", when=is_child)
@kopf.on.event("services", when=is_child)
@kopf.on.event("statefulsets.apps", when=is_child)
async def child_seen(meta: kopf.Meta, memo: kopf.Memo, **_: Any) -> None:
    wake(memo, owner_of(meta)["uid"])


@kopf.on.event("databases")
async def database_seen(uid: str, memo: kopf.Memo, **_: Any) -> None:
    wake(memo, uid)


def wake(memo: kopf.Memo, uid: str) -> None:
    if uid in memo.woken:
        memo.woken[uid].set()


@kopf.daemon("databases", cancellation_timeout=5)
async def database(
    uid: str,
    name: str,
    namespace: str,
    memo: kopf.Memo,
    stopped: Any,
    logger: kopf.Logger,
    **_: Any,
) -> None:
    """Check again and again; repeat a failed check after a growing pause."""
    failures, woken = 0, memo.woken.setdefault(uid, asyncio.Event())
    try:
        while not stopped:
            woken.clear()
            try:
                pause = await looked_after(memo.api, name, namespace, uid)
            except Exception as problem:
                failures += 1
                logger.warning("not as desired yet: %s", message_of(problem))
                await asyncio.sleep(min(2.0**failures, 60.0))
            else:
                failures = 0
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(woken.wait(), pause)
    finally:
        del memo.woken[uid]
