"""The example 21-records, by causes."""

import json
import os
import urllib.request
from typing import Any

import fnop

OF_RECORD = {"record": fnop.PRESENT}


def put_records(owner: str, records: dict[str, str]) -> None:
    """Make these the records of the owner, and leave it no others."""
    url = f"{os.environ.get('RECORDS_URL', 'https://dns.example.com')}/{owner}"
    body = json.dumps(records).encode()
    request = urllib.request.Request(url, body, method="PUT")
    urllib.request.urlopen(request, timeout=10).close()


@fnop.on.create("records")
@fnop.on.update("records")
async def publish(
    spec: fnop.Spec, body: fnop.Body, uid: str, now: Any, **_: Any
) -> None:
    wanted = wanted_by(spec)
    await fnop.patch(status=told(body, False, "Changing", now))
    await fnop.call(put_records, owner=uid, records=wanted)
    await fnop.apply(index_of(body, wanted), force=True)
    status = told(body, True, "Published", now)
    await fnop.patch(status={**status, "records": len(wanted)})


@fnop.on.resume("records")
async def resumed(spec: fnop.Spec, body: fnop.Body, name: str, **_: Any) -> None:
    """Undo changes to the index while no operator ran."""
    found = await fnop.get("configmaps", name=name)
    if found is None or differs(index_of(body, wanted_by(spec)), found):
        await fnop.apply(index_of(body, wanted_by(spec)), force=True)


@fnop.on.event("configmaps", labels=OF_RECORD, owner="records")
async def index_seen(body: fnop.Body, owner: Any, type: str | None, **_: Any) -> None:
    found = await fnop.get("records", name=owner.name)
    if found is None or "deletionTimestamp" in found["metadata"]:
        return
    index = index_of(found, wanted_by(found["spec"]))
    if type == "DELETED" or differs(index, body):
        await fnop.apply(index, force=True)


@fnop.on.delete("records")
async def forget(uid: str, **_: Any) -> None:
    await fnop.call(put_records, owner=uid, records={})


def wanted_by(spec: Any) -> dict[str, str]:
    return {f"{host}.{spec['zone']}": spec["address"] for host in spec["hosts"]}


def told(body: Any, ready: bool, reason: str, now: Any) -> dict[str, Any]:
    """The status with the condition Ready merged into the present conditions."""
    condition = {
        "type": "Ready",
        "status": "True" if ready else "False",
        "reason": reason,
        "message": "",
        "observedGeneration": body["metadata"]["generation"],
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    present = body.get("status", {}).get("conditions", [])
    for each in present:
        if each["type"] == "Ready" and each["status"] == condition["status"]:
            condition["lastTransitionTime"] = each["lastTransitionTime"]
    return {"conditions": [*(e for e in present if e["type"] != "Ready"), condition]}


def index_of(body: Any, records: dict[str, str]) -> dict[str, Any]:
    meta = body["metadata"]
    reference = {
        "apiVersion": "fnop.dev/v1",
        "kind": "Record",
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": meta["name"],
            "labels": {"record": meta["name"]},
            "ownerReferences": [reference],
        },
        "data": records,
    }


def differs(wanted: Any, found: Any) -> bool:
    """Whether a field is not as wanted; the API server fills in others."""
    if isinstance(wanted, dict):
        return any(differs(each, found.get(key, {})) for key, each in wanted.items())
    if isinstance(wanted, list):
        if len(wanted) != len(found):
            return True
        return any(
            differs(one, other) for one, other in zip(wanted, found, strict=True)
        )
    return bool(wanted != found)
