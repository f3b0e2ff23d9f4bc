"""`fnop plan` on a real API server: what it says and sends, and what comes of it."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import orjson
import pytest

import fnop as fnop_api
from fnop.adapters.cli.plan import audited
from fnop.adapters.common.loading import handlers_of_file
from fnop.adapters.generate.rights import Account
from fnop.adapters.kubernetes.client import connect
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.effects.values import thaw_json
from fnop.interpreters.plan.audited import Audit
from fnop.interpreters.plan.dry_run import DryRunOnly
from fnop.interpreters.plan.facts import Place, Plan, Write
from fnop.interpreters.plan.planner import Planner
from fnop.interpreters.runtime.clock import SystemClock
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse
from tests.cluster.accounts import an_account
from tests.cluster.envtest import ApiServer
from tests.cluster.operated import KEEPER, operated, program_for
from tests.cluster.operating import User
from tests.commands import fnop
from tests.plans import labels, sent_as_planned
from tests.simulations import ROOT, example, manifests_of

OWN = ("19-database", "20-tenants")
OBJECTS, DRIFTED = 300, (17, 42, 256)
# Discovery, and a list of each kind: objects are not read one by one.
MOST_READS = OBJECTS // 4
# The server's own controllers write too, now and then.  A plan would do so each time.
TRIES = 3
WRITES = re.compile(
    r'apiserver_request_total\{[^}]*resource="(?:fnopexamples|configmaps|events|'
    r'secrets|namespaces|customresourcedefinitions)"[^}]*'
    r'verb="(?:POST|PUT|PATCH|APPLY|DELETE|DELETECOLLECTION)"[^}]*\} (\S+)'
)


@pytest.fixture(scope="module")
def kept(apiserver: ApiServer) -> tuple[User, str]:
    """A namespace in which the operator handled 300 objects; three have drifted."""
    namespace = apiserver.namespace()
    user = User(apiserver, namespace)
    user.define()
    for number in range(OBJECTS):
        user.create(example(f"e{number}", size=number))

    def done() -> bool:
        statuses = [each.get("status", {}) for each in user.objects("fnopexamples")]
        return all("size" in each and "conditions" in each for each in statuses)

    asyncio.run(operated(apiserver, namespace, done))
    assert asyncio.run(planned(apiserver, namespace))[1].is_empty
    for number in DRIFTED[:2]:
        user.edit("configmaps", f"e{number}", {"data": {"size": "drifted"}})
    user.delete("configmaps", f"e{DRIFTED[2]}")
    return user, namespace


async def planned(
    api: ApiServer, namespace: str, program: Program | None = None
) -> tuple[Planner, Plan]:
    found = await connect(kubeconfig=str(api.kubeconfig), context=None)
    try:
        wall = SystemClock().now().wall
        planner = Planner(program or program_for(namespace), found, wall=wall)
        return planner, await planner.plan()
    finally:
        await found.close()


def written(api: ApiServer) -> float:
    """The writes that the API server has counted, of what a plan could touch."""
    return sum(float(each) for each in WRITES.findall(api.metrics()))


def test_an_audit_asks_about_live_objects_and_writes_nothing(
    kept: tuple[User, str], apiserver: ApiServer
) -> None:
    _, namespace = kept
    registry = Registry()

    @fnop_api.on.validate(
        "fnopexamples", id="small", operations=["UPDATE"], registry=registry
    )
    def small(spec: fnop_api.Spec, **_: Any) -> None:
        if spec["size"] >= OBJECTS - 2:
            raise fnop_api.Denied("it is too large", field="spec.size")

    program = Program(registry.handlers, Settings(namespaces=(namespace,)))

    async def asked() -> Audit:
        api = await connect(kubeconfig=str(apiserver.kubeconfig), context=None)
        try:
            return await audited(program, api)
        finally:
            await api.close()

    before = written(apiserver)
    audit = asyncio.run(asked())
    assert written(apiserver) == before
    assert audit.asked == OBJECTS
    told = [(each.source.handler, each.place.name) for each in audit.findings]
    large = [("small", f"e{number}") for number in (OBJECTS - 2, OBJECTS - 1)]
    assert sorted(told) == large


READER = "reader"


def reader_of(namespace: str) -> list[dict[str, Any]]:
    """An account that may get, list and watch everything, and nothing else."""
    group = "rbac.authorization.k8s.io"
    name = f"reader-{namespace}"
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": READER, "namespace": namespace},
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": [
                {
                    "apiGroups": ["*"],
                    "resources": ["*"],
                    "verbs": ["get", "list", "watch"],
                }
            ],
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [
                {"kind": "ServiceAccount", "name": READER, "namespace": namespace}
            ],
        },
    ]


def test_three_of_300_are_shown_without_a_write_by_who_may_only_read(
    kept: tuple[User, str], apiserver: ApiServer, tmp_path: Path
) -> None:
    _, namespace = kept
    account = Account(namespace, READER)
    with an_account(apiserver, reader_of(namespace), account, tmp_path) as config:
        for _ in range(TRIES):
            before = written(apiserver)
            done = fnop(
                *("plan", KEEPER, "-n", namespace, "-o", "json"),
                *("--detailed-exitcode", "--kubeconfig", config),
                folder=tmp_path,
            )
            wrote = written(apiserver) - before
            if not wrote:
                break
    assert wrote == 0
    assert done.status == 2, done.err
    found = json.loads(done.out)
    assert found["reads"] <= MOST_READS
    assert {each["name"]: each["actions"] for each in found["changes"]} == {
        "e17": ["change"],
        "e42": ["change"],
        "e256": ["create"],
    }
    assert all(each["kind"] == "ConfigMap" for each in found["changes"])
    assert found["writes"] == 0
    assert found["stale"] == []


def test_an_unwanted_plan_has_a_status_of_its_own(
    kept: tuple[User, str], apiserver: ApiServer, tmp_path: Path
) -> None:
    _, namespace = kept
    command = ("plan", KEEPER, "-n", namespace, "--kubeconfig", apiserver.kubeconfig)
    for words, status in (
        (("--fail-on", "create,raise"), 3),
        (("--fail-on", "delete", "--detailed-exitcode"), 2),
        (("--fail-on", "delete"), 0),
        (("--fail-on", "explode"), 1),
        (("--takeover",), 1),
    ):
        done = fnop(*command, *words, folder=tmp_path)
        assert done.status == status, (words, done.out, done.err)
        if status == 3:
            assert "--fail-on create: objects would be created: 1" in done.err
        if status == 0:
            assert "Plan: 1 to create, 2 to change, 0 to delete." in done.out


def test_a_dry_run_is_answered_and_nothing_is_kept(
    kept: tuple[User, str], apiserver: ApiServer, tmp_path: Path
) -> None:
    user, namespace = kept
    before = user.objects("configmaps")
    done = fnop(
        *("plan", KEEPER, "-n", namespace, "--server-dry-run", "-o", "json"),
        *("--kubeconfig", apiserver.kubeconfig),
        folder=tmp_path,
    )
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert (found["dry_runs"], found["dry_run"]) == (3, [])
    place = Place("v1", "ConfigMap", "configmaps", namespace, "e1")
    path, kind = user.path("configmaps", "e1"), "application/json"
    uid = {"preconditions": {"uid": before[0]["metadata"]["uid"]}}

    async def delete(body: Any) -> ApiResponse:
        api = await connect(kubeconfig=str(apiserver.kubeconfig), context=None)
        facts = (1, place, "", None, "DELETE", path, (), body, kind, None, None, 200)
        try:
            return await DryRunOnly(api).ask(Write(*facts))
        finally:
            await api.close()

    assert asyncio.run(delete(None)).status == 200
    assert asyncio.run(delete(uid)).status in (200, 409)
    assert user.objects("configmaps") == before


@pytest.mark.parametrize("name", ["01-minimal", "05-handlers", "12-embedded", *OWN])
def test_the_first_round_of_an_example_is_done_in_full(
    name: str, apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    user = User(apiserver, namespace)
    user.define(name)
    for manifest in manifests_of(name)[1:]:
        user.create(manifest)
    handlers = handlers_of_file(ROOT / "examples" / name / "example.py")
    # The children of tenants are in namespaces of their own.
    served = None if name == "20-tenants" else (namespace,)
    program = Program(handlers, Settings(namespaces=served))
    planner, plan = asyncio.run(planned(apiserver, namespace, program))
    assert not plan.is_empty
    assert plan.failures == ()

    def done(sent: list[ApiRequest]) -> bool:
        return not [e for e in sent_as_planned(planner, sent) if "not sent" in e]

    recorded: list[ApiRequest] = []
    try:
        asyncio.run(
            operated(
                *(apiserver, namespace, lambda: done(recorded)),
                program=program,
                requests=recorded,
            )
        )
    except TimeoutError:
        assert sent_as_planned(planner, recorded) == []


def test_the_operator_does_what_was_planned_byte_for_byte(
    kept: tuple[User, str], apiserver: ApiServer
) -> None:
    user, namespace = kept
    planner, plan = asyncio.run(planned(apiserver, namespace))
    assert len(labels(plan)) == len(DRIFTED)

    def done() -> bool:
        found = {
            each["metadata"]["name"]: each["data"].get("size")
            for each in user.objects("configmaps")
            if each["metadata"]["name"] != "kube-root-ca.crt"
        }
        is_told = len(reports_in(sent)) == len(plan.events)
        return is_told and found == {f"e{n}": str(n) for n in range(OBJECTS)}

    sent: list[ApiRequest] = []
    asyncio.run(operated(apiserver, namespace, done, requests=sent))
    assert sent_as_planned(planner, sent) == []
    assert planner.first is not None
    writes = [each for each in sent if each.method != "GET"]
    reports = reports_in(sent)
    assert {text_of(each) for each in writes if each not in reports} == {
        (e.method, e.path, e.query, e.content_type, orjson.dumps(e.body))
        for e in planner.first.seen.writes
        if not e.is_event
    }
    # Events have the process's number in their names, and the time.
    assert sorted((e.body["reason"], e.body["message"]) for e in reports) == sorted(
        (each.reason, each.message) for each in plan.events
    )


def reports_in(sent: list[ApiRequest]) -> list[ApiRequest]:
    """The requests that write Events: discovery reads of that group, too."""
    return [e for e in sent if e.method != "GET" and "/events" in e.path]


def text_of(request: ApiRequest) -> tuple[Any, ...]:
    """A request as it goes over the wire."""
    body = orjson.dumps(thaw_json(request.body))
    return request.method, request.path, request.query, request.content_type, body


SUCCESSOR = """
import fnop

@fnop.on.startup()
def takes_over(settings, **_):
    return settings.replace(takes_over="kopf.zalando.org")

@fnop.on.create("fnopexamples")
def created(**_):
    return {"made": True}

@fnop.on.resume("fnopexamples")
def resumed(**_):
    pass
"""


def test_a_successor_of_kopf_is_told_what_it_would_call_again(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    user, kopf = User(apiserver, namespace), "kopf.zalando.org"
    user.define()
    (tmp_path / "successor.py").write_text(SUCCESSOR)
    last = {f"{kopf}/last-handled-configuration": json.dumps({"spec": {"size": 1}})}
    # An attempt that has begun, and has not succeeded.
    record = {"started": "2026-01-01T00:00:00", "purpose": "create", "retries": 1}
    begun = {f"{kopf}/created": json.dumps(record)}
    # The settings do not say that the Kopf operator had this prefix.
    moved = {"example.com/last-handled-configuration": json.dumps({"spec": {}})}
    command = ("plan", "successor.py", "-n", namespace, "--takeover", "-o", "json")
    config = ("--kubeconfig", apiserver.kubeconfig)
    for name, notes, status in (
        ("handled", last, 0),
        ("begun", begun, 0),
        ("moved", moved, 3),
    ):
        thing = example(name, size=1)
        thing["metadata"]["annotations"] = notes
        if name != "moved":
            thing["metadata"]["finalizers"] = [f"{kopf}/KopfFinalizerMarker"]
        user.create(thing)
        done = fnop(*command, *config, folder=tmp_path)
        assert done.status == status, (done.out, done.err)
    found = json.loads(done.out)
    (again,) = found["takeover"]
    assert (again["handler"], again["line"]) == ("created", "successor.py:8")
    assert [each["name"] for each in again["objects"]] == ["moved"]
    whys = {each["why"]: each["objects"][0]["name"] for each in found["due"]}
    assert whys == {"again": "moved", "retry": "begun", "start": "handled"}
    for name in ("handled", "begun"):
        user.edit("fnopexamples", name, {"metadata": {"finalizers": None}})


STATEFUL = """
import fnop

@fnop.reconcile("fnopexamples", owns=["statefulsets.apps"])
def keep(name, spec, **_):
    labels = {"app": name}
    pod = {"containers": [{"name": "db", "image": spec["image"]}]}
    storage = {"requests": {"storage": f"{spec['size']}Gi"}}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": storage}
    return fnop.desired(fnop.child({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "serviceName": name,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
        },
    }, on_immutable="replace"))
"""


def test_only_what_the_server_would_refuse_is_replaced(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    user = User(apiserver, namespace)
    user.define()
    user.create(example("db", image="db:1", size=1))
    (tmp_path / "operator.py").write_text(STATEFUL)
    command = ("plan", "operator.py", "-n", namespace, "-o", "json")
    config = ("--server-dry-run", "--kubeconfig", apiserver.kubeconfig)

    def actions() -> list[list[str]]:
        done = fnop(*command, *config, folder=tmp_path)
        assert done.status == 0, done.err
        found = json.loads(done.out)
        assert not [e for e in found["notes"] if "simulated" in e]
        return [e["actions"] for e in found["changes"] if e["kind"] == "StatefulSet"]

    def done() -> bool:
        status = (user.get("fnopexamples", "db") or {}).get("status", {})
        return user.get("statefulsets", "db") is not None and "conditions" in status

    handlers = handlers_of_file(tmp_path / "operator.py")
    program = Program(handlers, Settings(namespaces=(namespace,)))
    asyncio.run(operated(apiserver, namespace, done, program=program))
    assert actions() == []
    user.edit("fnopexamples", "db", {"spec": {"image": "db:2"}})
    assert actions() == [["change"]]
    user.edit("fnopexamples", "db", {"spec": {"size": 2}})
    assert actions() == [["delete", "create"]]
