"""Records in a name server outside of the cluster, and an index of them inside."""

import json
import os
import urllib.request
from dataclasses import dataclass
from typing import Annotated, Any

import fnop

NOTED, CHANGING = "records.fnop.dev/noted", "changing"

Host = Annotated[str, fnop.schema(pattern="^[a-z]+$")]


@dataclass(frozen=True)
class RecordSpec:
    zone: Annotated[str, fnop.schema(pattern="^[a-z.]+$")]
    address: Annotated[str, fnop.schema(pattern="^[0-9.]+$")]
    hosts: Annotated[tuple[Host, ...], fnop.schema(min_items=1)]


@dataclass(frozen=True)
class RecordStatus:
    records: int = 0


@fnop.definition("records.v1.fnop.dev")
@dataclass(frozen=True)
class Record:
    spec: RecordSpec
    status: RecordStatus = RecordStatus()


def put_records(owner: str, records: dict[str, str]) -> None:
    """Make these the records of the owner, and leave it no others."""
    url = f"{os.environ.get('RECORDS_URL', 'https://dns.example.com')}/{owner}"
    body = json.dumps(records).encode()
    request = urllib.request.Request(url, body, method="PUT")
    urllib.request.urlopen(request, timeout=10).close()


@fnop.reconcile(Record, owns="configmaps")
async def record(
    spec: RecordSpec, name: str, uid: str, children: fnop.Children, **_: Any
) -> fnop.Desired:
    """The index notes what the name server has for sure: nothing, while it is told.

    So a crash, or a change that is taken back halfway, leaves no doubt.
    """
    wanted = {f"{host}.{spec.zone}": spec.address for host in spec.hosts}
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
        status=RecordStatus(records=len(wanted)),
    )


@fnop.on.delete(Record)
async def forget(uid: str, **_: Any) -> None:
    await fnop.call(put_records, owner=uid, records={})


def index_of(name: str, noted: str, records: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "annotations": {NOTED: noted}},
        "data": records,
    }
