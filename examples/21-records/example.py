"""Records in a name server outside of the cluster, and an index of them inside."""

import json
import os
import urllib.request
from typing import Any

import fnop

NOTED, CHANGING = "records.fnop.dev/noted", "changing"


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
    """The index notes what the name server has for sure: nothing, while it is told.

    So a crash, or a change that is taken back halfway, leaves no doubt.
    """
    wanted = {f"{host}.{spec['zone']}": spec["address"] for host in spec["hosts"]}
    text = json.dumps(wanted, sort_keys=True)
    index = children["configmaps"].get(name)
    noted = index.annotations.get(NOTED) if index else None
    if noted == CHANGING:
        await fnop.call(put_records, owner=uid, records=wanted)
        noted = text
    known = noted == text
    return fnop.desired(
        index_of(name, text, wanted) if known else index_of(name, CHANGING, {}),
        conditions=fnop.condition("Ready", known, "Published" if known else "Changing"),
        status={"records": len(wanted)},
    )


@fnop.on.delete("records")
async def forget(uid: str, **_: Any) -> None:
    await fnop.call(put_records, owner=uid, records={})


def index_of(name: str, noted: str, records: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "annotations": {NOTED: noted}},
        "data": records,
    }
