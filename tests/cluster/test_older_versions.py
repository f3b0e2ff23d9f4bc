"""Kinds that Kubernetes 1.20 has in an older version alone: CronJobs, v1beta1."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from fnop.adapters.common.loading import handlers_of_file
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from tests.cluster.envtest import ApiServer
from tests.cluster.operated import operated
from tests.cluster.operating import User
from tests.commands import fnop
from tests.simulations import example

OPERATOR = """
import fnop

@fnop.reconcile("fnopexamples", owns=["cronjobs.batch"])
def nightly(name, spec, **_):
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "job:1"}]}
    return fnop.desired({
        "apiVersion": "batch/v1beta1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {
            "schedule": spec["schedule"],
            "suspend": True,
            "jobTemplate": {"spec": {"template": {"spec": pod}}},
        },
    })
"""


def test_children_of_such_kinds_are_kept_planned_and_explained(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    user = User(apiserver, namespace)
    user.define()
    user.create(example("one", schedule="@daily"))
    (tmp_path / "operator.py").write_text(OPERATOR)
    where = f"/apis/batch/v1beta1/namespaces/{namespace}/cronjobs/one"
    config = ("-n", namespace, "--kubeconfig", apiserver.kubeconfig)

    def planned() -> Any:
        plan = ("plan", "operator.py", "-o", "json", "--server-dry-run")
        done = fnop(*plan, *config, folder=tmp_path)
        assert done.status == 0, done.err
        found = json.loads(done.out)
        assert not [e for e in found["notes"] if "cronjobs" in e], found["notes"]
        changes = [e["actions"] for e in found["changes"] if e["kind"] == "CronJob"]
        return changes, [e for e in found["dry_run"] if e["kind"] == "CronJob"]

    def schedule() -> Any:
        status, found = apiserver.raw("GET", where)
        return found["spec"]["schedule"] if status == 200 else None

    assert planned() == ([["create"]], [])
    handlers = handlers_of_file(tmp_path / "operator.py")
    program = Program(handlers, Settings(namespaces=(namespace,)))

    def done() -> bool:
        status = (user.get("fnopexamples", "one") or {}).get("status", {})
        return schedule() == "@daily" and "conditions" in status

    asyncio.run(operated(apiserver, namespace, done, program=program))
    # What is there is as the operator wants it, and a change of one field is that.
    assert planned() == ([], [])
    user.edit("fnopexamples", "one", {"spec": {"schedule": "@hourly"}})
    assert planned() == ([["change"]], [])
    told = fnop("explain", "fnopexamples/one", *config, folder=tmp_path)
    assert told.status == 0, told.err
    assert "cronjob.batch/one  applied" in told.out, told.out
