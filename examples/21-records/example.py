"""Records in a name server outside of the cluster, and an index of them inside."""

import json
import os
import urllib.request
from typing import Any

import fnop


def put_records(owner: str, records: dict[str, str]) -> None:
    """Make these the records of the owner, and leave it no others."""
    url = f"{os.environ.get('RECORDS_URL', 'https://dns.example.com')}/{owner}"
    body = json.dumps(records).encode()
    request = urllib.request.Request(url, body, method="PUT")
    urllib.request.urlopen(request, timeout=10).close()


@fnop.reconcile("records", owns="configmaps")
async def record(
    spec: fnop.Spec, name: str, uid: str, children: Any, **_: Any
) -> fnop.Desired:
    """The index tells what the name server has for sure; nothing, while it is told.

    So a crash, or a change that is taken back halfway, leaves no doubt.
    """
    wanted = {f"{host}.{spec['zone']}": spec["address"] for host in spec["hosts"]}
    index = children["configmaps"].get(name)
    noted = None if index is None else index.get("data", {})
    if noted == wanted:
        ready = fnop.condition("Ready", True, "Published")
        return fnop.desired(index_of(name, noted), conditions=ready)
    if noted != {}:
        pending = fnop.condition("Ready", False, "Publishing")
        return fnop.desired(index_of(name, {}), conditions=pending)
    await fnop.call(put_records, owner=uid, records=wanted)
    return fnop.desired(index_of(name, wanted), status={"records": len(wanted)})


@fnop.on.delete("records")
async def forget(uid: str, **_: Any) -> None:
    await fnop.call(put_records, owner=uid, records={})


def index_of(name: str, records: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"records": "published"}},
        "data": records,
    }
