"""The example 19-database, with Kopf: by causes, as its documentation suggests.

It checks all children for each change of a database, for each event of a child, and
every minute. Nothing orders the checks of one database. Kopf does not call a failed
event handler again: the next event repairs it, or the timer.
"""

# Types are checked without the bench extra, too: then Kopf is missing.
# mypy: disable-error-code="import-not-found, untyped-decorator, arg-type"

from typing import Any

import kopf
from lightkube import AsyncClient

from bench.elsewhere.kopf_children import is_child, looked_after, owner_of


@kopf.on.startup()
async def connect(memo: kopf.Memo, **_: Any) -> None:
    memo.api = AsyncClient(field_manager="kopf-databases")


@kopf.on.cleanup()
async def disconnect(memo: kopf.Memo, **_: Any) -> None:
    await memo.api.close()


@kopf.on.create("databases", backoff=2)
@kopf.on.update("databases", field="spec", backoff=2)
@kopf.on.resume("databases", backoff=2)
@kopf.timer("databases", interval=60, initial_delay=60, backoff=2)
async def database(
    uid: str, name: str, namespace: str, memo: kopf.Memo, **_: Any
) -> None:
    await looked_after(memo.api, name, namespace, uid)


@kopf.on.event("configmaps", when=is_child)
@kopf.on.event("secrets", when=is_child)
@kopf.on.event("services", when=is_child)
@kopf.on.event("statefulsets.apps", when=is_child)
async def child_seen(
    meta: kopf.Meta, namespace: str, memo: kopf.Memo, **_: Any
) -> None:
    owner = owner_of(meta)
    await looked_after(memo.api, owner["name"], namespace, owner["uid"])
