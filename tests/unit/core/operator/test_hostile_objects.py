"""Objects made to do harm: only their own handlers fail."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import fnop
from fnop.adapters.cli.main import main
from fnop.core.handlers.declare.registry import Registry
from fnop.core.peers.lease import Candidate
from fnop.core.peers.peers import Member
from fnop.interpreters.cluster import Off, paced
from tests.simulations import DEFINITION, example
from tests.stories import Story

KIND = "fnopexamples"
NAMES = (
    "../secrets/x",
    "..",
    "a/b",
    "x?force=true",
    "x#y",
    "%2e%2e",
    "a b",
    "a\r\nDELETE /api/v1/nodes",
    "nul\x00",
    "",
    "x" * 254,
)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_from_a_spec_hurts_one_handler(name: str) -> None:
    registry = Registry()

    @fnop.on.create(KIND, registry=registry, errors=fnop.ErrorsMode.PERMANENT)
    async def removes(spec: Any, **_: Any) -> None:
        await fnop.delete("configmaps", name=spec["ref"])

    @fnop.on.create(KIND, registry=registry, errors=fnop.ErrorsMode.PERMANENT)
    def places(spec: Any, **_: Any) -> Any:
        meta = {"name": "x", "namespace": spec["ref"] or ".."}
        return fnop.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})

    @fnop.on.create(KIND, registry=registry)
    def works(**_: Any) -> Any:
        return fnop.patch(status={"done": True})

    story = Story(registry, [example("a", ref=name), example("b", ref="fine")])
    story.settle(seconds=60)
    assert story.status("a") == {"done": True}
    assert all(
        "/configmaps/fine" in each.path
        or "configmaps" not in each.path
        or each.path.endswith("/namespaces/fine/configmaps/x")
        for each in story.requests
    )
    said = [each for each in story.said_at("error") if "failed for good" in each]
    assert sum("cannot be a" in each for each in said) == 2
    assert all("\n" not in each for each in said)


@pytest.mark.parametrize("name", ["../x", "a b", "x\n", "ü"])
def test_an_owner_of_an_impossible_name_ends_nothing(name: str) -> None:
    """The API server takes any text as the name of an owner."""
    registry = Registry()
    seen = []

    @fnop.on.event(KIND, owner="configmaps", registry=registry)
    def child(name: str, **_: Any) -> None:
        seen.append(name)

    @fnop.on.create(KIND, registry=registry)
    def works(**_: Any) -> Any:
        return fnop.patch(status={"done": True})

    def owned(own: str, owner: str) -> dict[str, Any]:
        body = example(own)
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner}
        body["metadata"]["ownerReferences"] = [
            {**reference, "uid": "u-1", "controller": True}
        ]
        return body

    story = Story(registry)
    story.cluster = paced(story.cluster, {"garbage": Off()})  # which would delete them
    story.apply(owned("a", name), owned("b", "fine")).settle(seconds=1)
    assert story.status("a") == {"done": True}
    assert {*seen} == {"b"}
    assert story.exit is None


def test_a_role_may_have_a_name_that_few_people_write() -> None:
    """Kubernetes: names of roles are only segments of a path."""
    registry = Registry()
    name = "my role? #1"

    @fnop.on.create("clusterroles", registry=registry)
    def marks(**_: Any) -> Any:
        return [fnop.patch(labels={"seen": "yes"}), fnop.event("Seen", "it is there")]

    @fnop.on.delete("clusterroles", registry=registry)
    def cleans(**_: Any) -> None: ...

    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [],
    }
    story = Story(registry, [role])
    story.settle(seconds=60)
    found = story.get("clusterroles", name)
    assert found is not None
    assert found["metadata"]["labels"] == {"seen": "yes"}
    paths = {
        each.path.rpartition("/")[2]
        for each in story.requests
        if each.method == "PATCH"
    }
    assert paths == {"my%20role%3F%20%231"}
    assert story.said_at("error") == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", __file__, "--peering", "a/b"),
        ("run", __file__, "--leader-elect", "--lease-namespace", "A_b"),
        ("freeze", "-A", "--peering", "../x"),
        ("freeze", "-n", "a/b"),
        ("resume", "-n", "A b"),
        ("uninstall", __file__, "--peering", "a b"),
    ],
)
def test_an_impossible_name_is_a_wrong_call(arguments: tuple[str, ...]) -> None:
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 2, done.output
    assert done.output.count("Error:") == 1
    assert "cannot be a name" in done.output or "namespace" in done.output


def test_a_peering_and_a_lease_have_names_that_can_be() -> None:
    with pytest.raises(ValueError, match="peering: 'a/b' cannot be a name"):
        Member("me", name="a/b")
    with pytest.raises(ValueError, match="election: 'A_b' cannot be a namespace"):
        Candidate("me", "A_b", "lease")


OPERATOR = """
import fnop

@fnop.on.create("fnopexamples", errors=fnop.ErrorsMode.PERMANENT)
def tells(spec, logger, **_):
    logger.info(spec["text"])
    raise ValueError(spec["text"])
"""


@pytest.mark.parametrize("format", ["text", "plain", "full"])
def test_a_simulated_run_prints_nothing_that_acts(tmp_path: Path, format: str) -> None:
    text = "\n[2026] forged\r\x1b[2J\x9b31m\u202e\u2028\ufeff"
    operator, manifest = tmp_path / "hostile_operator.py", tmp_path / "object.yaml"
    operator.write_text(OPERATOR)
    objects = (DEFINITION, example("a", text=text))
    manifest.write_text("\n---\n".join(map(json.dumps, objects)))
    arguments = ["run", str(operator), "--simulate", str(manifest)]
    done = subprocess.run(
        [sys.executable, "-m", "fnop", *arguments, "--log-format", format],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1, done
    for shown in (done.stdout.decode(), done.stderr.decode()):
        lines = shown.split("\n")
        assert all(line.isprintable() for line in lines)
        assert not any(line.startswith("[2026] forged") for line in lines)
    assert yaml.safe_load(done.stdout)["spec"]["text"] == text


@pytest.mark.parametrize(
    "command", [("run", __file__, "--simulate"), ("cluster", "-f")]
)
def test_a_manifest_is_in_a_namespace_that_can_be(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    manifest = tmp_path / "object.yaml"
    meta = {"name": "x", "namespace": "../x"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    manifest.write_text(json.dumps(body))
    operator = tmp_path / "operator_of_nothing.py"
    operator.write_text(OPERATOR)
    arguments = [str(operator) if each == __file__ else each for each in command]
    done = CliRunner().invoke(main, [*arguments, str(manifest)])
    assert done.exit_code == 1
    assert "the namespace '../x' cannot be a namespace" in done.output


HUGE = 5_000_000


def huge(**_: Any) -> Any:
    raise ValueError("an answer: " + "x" * HUGE)


def test_the_text_of_an_error_is_told_in_part() -> None:
    """As some libraries put a whole answer of their server into it."""
    registry = Registry()
    often: dict[str, Any] = {"registry": registry, "retries": 1}
    fnop.on.create(KIND, id="plain", **often)(huge)
    fnop.on.create(KIND, id="outside", impure=True, **often)(huge)
    fnop.on.create(KIND, id="filtered", when=huge, **often)(lambda **_: None)
    fnop.on.event(KIND, id="event", registry=registry)(huge)
    fnop.index(KIND, id="index", registry=registry)(huge)

    @fnop.on.create(KIND, **often)
    async def calls(**_: Any) -> None:
        await fnop.call(huge)

    @fnop.on.create(KIND, **often)
    def changes(patch: Any, **_: Any) -> None:
        patch.fns.append(lambda body: huge())

    calls_ = {f"{__name__}:huge": huge}
    story = Story(registry, [example()], calls=calls_)
    story.settle(seconds=60)
    told = [say for say in story.said if "an answer: xxx" in say.message]
    said = " ".join(f"{say.handler} {say.message}" for say in told)
    for name in ("plain", "outside", "filtered", "event", "index", "calls", "changes"):
        assert name in said
    assert all("characters left out" in say.message for say in told)
    assert max(len(say.message) + len(say.error or "") for say in story.said) < 10_000
    assert max(len(json.dumps(body, default=str)) for _, body in story.bodies) < 10_000
