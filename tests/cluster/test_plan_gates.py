"""`fnop plan` as a gate on a real API server: statuses, secrets, allocations."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from fnop.adapters.common.loading import handlers_of_file
from fnop.adapters.generate.rights import Account
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.cluster.values.objects import Object
from fnop.interpreters.plan.fields import known_part
from tests.cluster.accounts import an_account
from tests.cluster.envtest import ApiServer
from tests.cluster.operated import operated
from tests.cluster.operating import User
from tests.commands import Done, fnop
from tests.simulations import ROOT, example

EXPOSING = ROOT / "tests/cluster/operators/exposing.py"
TOKEN = "9f86d081884c7d659a2feaa0"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# Each option that could make a gate of a plan, and none.
GATES: tuple[tuple[str, ...], ...] = (
    (),
    ("--fail-on", "raise"),
    ("--detailed-exitcode", "--fail-on", "raise,unread"),
    ("--detailed-exitcode", "-o", "json"),
)
STARTING = """
import fnop

@fnop.on.startup()
def configure(**_):
    raise {error}("no config")

@fnop.on.create("fnopexamples")
def created(**_):
    pass
"""
LACKING = """
import fnop

@fnop.index("configmaps")
def templates(name, **_):
    return {name: name}

@fnop.reconcile("fnopexample2s", owns="configmaps")
def keep(**_):
    return fnop.desired([])

@fnop.maps("configmaps", to="fnopexample2s")
def mapped(**_):
    return []
"""
SEEING = """
import fnop

@fnop.on.event("fnopexamples")
def seen(**_):
    raise RuntimeError("not today")
"""


@pytest.fixture
def user(apiserver: ApiServer, namespace: str) -> User:
    user = User(apiserver, namespace)
    user.define()
    return user


def thing(name: str, **spec: Any) -> dict[str, Any]:
    made = example(name, apiToken=TOKEN, **spec)
    made["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(made)}
    return made


def plan(
    user: User, folder: Path, file: str | Path, *words: str, config: Path | None = None
) -> Done:
    place = () if "-n" in words else ("-n", user.namespace)
    kubeconfig = config or user.api.kubeconfig
    return fnop(
        *("plan", file, *place, *words, "--kubeconfig", kubeconfig), folder=folder
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            STARTING.format(error="fnop.PermanentError"),
            "startup handler configure fails for good: PermanentError: no config",
        ),
        (
            STARTING.format(error="RuntimeError"),
            "startup handler configure fails each time: RuntimeError: no config",
        ),
        (LACKING, "the API server serves no kind 'fnopexample2s'"),
    ],
)
def test_an_operator_that_would_not_serve_ends_with_1(
    text: str, why: str, user: User, tmp_path: Path
) -> None:
    (tmp_path / "operator.py").write_text(text)
    user.create(thing("a"))
    for words in GATES:
        done = plan(user, tmp_path, "operator.py", *words)
        assert done.status == 1, (words, done.out, done.err)
        assert f"fnop: the operator would not serve: {why}" in done.err
        assert done.out == ""


def test_a_handler_that_fails_is_no_empty_plan(user: User, tmp_path: Path) -> None:
    (tmp_path / "operator.py").write_text(SEEING)
    user.create(thing("a"))
    for words, status in (
        ((), 0),
        (("--detailed-exitcode",), 2),
        (("--fail-on", "raise"), 3),
    ):
        done = plan(user, tmp_path, "operator.py", "--rounds", "2", *words)
        assert done.status == status, (words, done.out, done.err)
        assert done.out.count("RuntimeError: not today") == 1
        assert "0 to create, 0 to change, 0 to delete, 1 failing." in done.out


READER = "reader"


def in_a_namespace(namespace: str, *resources: str) -> list[dict[str, Any]]:
    """An account that may read these in one namespace, and knows of no other."""
    group = "rbac.authorization.k8s.io"
    about = {"name": READER, "namespace": namespace}
    rule = {"apiGroups": ["*"], "resources": [*resources], "verbs": ["get", "list"]}
    subject = {"kind": "ServiceAccount", **about}
    role = {"apiGroup": group, "kind": "Role", "name": READER}
    version = f"{group}/v1"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about},
        {"apiVersion": version, "kind": "Role", "metadata": about, "rules": [rule]},
        {
            "apiVersion": version,
            "kind": "RoleBinding",
            "metadata": about,
            "roleRef": role,
            "subjects": [subject],
        },
    ]


def test_a_namespace_that_is_not_there_is_told_where_it_may_be_read(
    user: User, tmp_path: Path
) -> None:
    nope, told = f"{user.namespace}-nope", "note: the namespace {} does not exist"
    done = plan(user, tmp_path, EXPOSING, "-n", nope)
    assert done.status == 0, done.err
    assert told.format(nope) in done.out
    account = Account(user.namespace, READER)
    served = in_a_namespace(user.namespace, *SERVED)
    with an_account(user.api, served, account, tmp_path) as config:
        done = plan(user, tmp_path, EXPOSING, config=config)
    assert done.status == 0, done.err
    assert "namespaces cannot be read" in done.out
    assert "does not exist" not in done.out


SERVED = ("fnopexamples", "services", "configmaps", "secrets")


def test_no_secret_is_printed_and_all_is_done(
    user: User, apiserver: ApiServer, tmp_path: Path
) -> None:
    user.create(thing("a"))
    user.create(thing("b", size=-1))
    forms = (TOKEN, base64.b64encode(TOKEN.encode()).decode())
    for words in ((), ("-o", "json"), ("--bookkeeping", "--server-dry-run")):
        done = plan(user, tmp_path, EXPOSING, *words)
        assert done.status == 0, done.err
        assert not [each for each in forms if each in done.out + done.err]
        assert "postgres://u:(secret)@db" in done.out
        assert "PermanentError: no size of (secret)" in done.out
    done = plan(user, tmp_path, EXPOSING, "--show-secrets")
    assert f"postgres://u:{TOKEN}@db" in done.out
    done = plan(user, tmp_path, EXPOSING, "--redact", "data.dsn")
    assert 'data.dsn: "(secret)"' in done.out
    done = plan(user, tmp_path, EXPOSING, "--redact", "")
    assert done.status == 1
    assert "--redact: '' names no field" in done.err


def test_what_is_certain_of_a_service_is_true(
    user: User, apiserver: ApiServer, tmp_path: Path
) -> None:
    user.create(thing("a"))
    done = plan(user, tmp_path, EXPOSING, "--server-dry-run", "-o", "json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert [each for each in found["dry_run"] if each["kind"] == "Service"] == []
    (planned,) = (each for each in found["changes"] if each["kind"] == "Service")
    unknown = planned["after_unknown"]
    assert unknown["spec"] == {
        "clusterIP": True,
        "clusterIPs": True,
        "healthCheckNodePort": True,
        "ports": [{"nodePort": True}],
    }
    (status,) = (each for each in found["changes"] if each["kind"] == "FnopExample")
    assert status["after_unknown"]["status"]["at"] is True

    def made() -> list[Object]:
        return user.objects("services")

    program = Program(
        handlers_of_file(EXPOSING), Settings(namespaces=(user.namespace,))
    )
    asyncio.run(
        operated(apiserver, user.namespace, lambda: bool(made()), program=program)
    )
    (real,) = made()
    assert known_part(real["spec"], unknown["spec"]) == planned["after"]["spec"]


def test_what_the_server_refuses_is_a_gate(user: User, tmp_path: Path) -> None:
    user.create(thing("good"))
    gate = ("--server-dry-run", "--fail-on", "refused")
    assert plan(user, tmp_path, EXPOSING, *gate).status == 0
    user.create(thing("bad", port=99_999_999))
    done = plan(user, tmp_path, EXPOSING, *gate)
    assert done.status == 3, (done.out, done.err)
    assert "--fail-on refused: objects whose requests the server refuses: 1" in done.err
    assert f"dry run: services/bad in {user.namespace} is refused: " in done.out
    # One failure, though the handler and its write fail, in each round.
    done = plan(user, tmp_path, EXPOSING, "--rounds", "3")
    assert ", 1 failing." in done.out
    assert done.out.count("  x ") == 1
    done = plan(user, tmp_path, EXPOSING, "--fail-on", "refused")
    assert done.status == 1
    assert "--fail-on refused needs --server-dry-run" in done.err
