"""The rights that `fnop rbac` finds, on a real API server with RBAC."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fnop.adapters.cli.main import main
from fnop.adapters.generate.rights import Account, Study, Wishes, studied
from fnop.adapters.generate.roles import manifests_for
from tests.cluster.accounts import an_account
from tests.cluster.deploying import Pod, assert_all_is_well, live_through
from tests.cluster.envtest import ApiServer, end
from tests.cluster.operating import User
from tests.cluster.telling import tell
from tests.example_scenarios import STORIES, Story
from tests.long import parameters
from tests.simulations import ROOT

# A handful: a child, all sorts of changes, filters with owners, indices, timers.
EXAMPLES = (
    *("01-minimal", "02-children", "04-events", "05-handlers", "11-filtering"),
    *("15-timers", "16-indexing"),
)
TOLD = [story for story in STORIES if story.example in EXAMPLES]


def study_of(example: str, namespace: str) -> tuple[Study, Account]:
    account = Account(namespace, "operator")
    file = str(ROOT / "examples" / example / "example.py")
    return studied(Wishes((file,), account, namespaces=(namespace,))), account


@pytest.mark.parametrize(
    "story",
    parameters(TOLD, ("02-children", "11-filtering"), lambda story: story.example),
)
def test_an_example_does_what_it_says_with_its_rights(
    story: Story, apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    found, account = study_of(story.example, namespace)
    made = manifests_for(found.needs, account)
    with an_account(apiserver, made, account, tmp_path) as config:
        lines = tell(story, apiserver, namespace, tmp_path, config)
    assert [each for each in lines if "forbidden" in each or "cannot " in each] == []


def test_the_deployment_lives_with_what_is_printed_for_it(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    """In the whole cluster, as a replica that is elected."""
    user = User(apiserver, namespace)
    user.define()
    account = Account("fnop-operator", "fnop-operator")
    objects = (str(ROOT / "examples/02-children/object.yaml"),)
    file = str(ROOT / "examples/deployment/operator.py")
    found = studied(Wishes((file,), account, elects=True, objects=objects))
    home = {"apiVersion": "v1", "kind": "Namespace"}
    made = [{**home, "metadata": {"name": account.namespace}}]
    with an_account(
        apiserver, [*made, *manifests_for(found.needs, account)], account, tmp_path
    ):
        pod = Pod(apiserver, "leader-elect.yaml", None, tmp_path / "pod-1.log")
        try:
            live_through(user, [pod])
            assert pod.stop() == 0, pod.text
        finally:
            end(pod.process)
    assert_all_is_well(pod.text, namespace)


def verified(example: str, namespace: str, config: Path) -> Result:
    file = str(ROOT / "examples" / example / "example.py")
    scope = ("-n", namespace, "--service-account", f"{namespace}/operator")
    options = (*scope, "--verify", "--kubeconfig", str(config))
    return CliRunner().invoke(main, ["rbac", file, *options])


def test_the_cluster_is_asked_what_is_missing_and_what_is_superfluous(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    User(apiserver, namespace).define()
    found, account = study_of("02-children", namespace)
    made = manifests_for(found.needs, account)
    with an_account(apiserver, made, account, tmp_path) as config:
        done = verified("02-children", namespace, config)
    assert done.exit_code == 0, done.output
    other = copy.deepcopy(made)
    (role,) = [each for each in other if each["kind"] == "Role"]
    (pods,) = [each for each in role["rules"] if each["resources"] == ["pods"]]
    pods["verbs"] = ["list", "watch", "create", "delete"]
    with an_account(apiserver, other, account, tmp_path) as config:
        done = verified("02-children", namespace, config)
    assert done.exit_code == 1, done.output
    assert done.stdout.splitlines() == [
        f"missing: get pods in namespace {namespace} (handler create_pod)",
        f"superfluous: delete pods in namespace {namespace} "
        "(granted in the cluster; nobody needs it)",
    ]


@pytest.mark.parametrize("by", ["a flag", "the kubeconfig"])
def test_whoever_is_impersonated_has_the_rights_of_nobody_else(
    by: str, apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    """The token's owner may do everything; the user as whom requests are made counts.

    Rights of a group count as well (Kubernetes: user impersonation).
    """
    User(apiserver, namespace).define()
    found, account = study_of("02-children", namespace)
    made = manifests_for(found.needs, account)
    file = str(ROOT / "examples" / "02-children" / "example.py")
    accounts_of = f"system:serviceaccounts:{namespace}"
    who = f"system:serviceaccount:{account.namespace}:{account.name}"
    config = tmp_path / "config"

    def verified(user: str, *groups: str) -> Result:
        document = json.loads(apiserver.token_kubeconfig.read_text())
        flags = ["--as", user, *(word for e in groups for word in ("--as-group", e))]
        if by == "the kubeconfig":
            document["users"][0]["user"] |= {"as": user, "as-groups": [*groups]}
            flags = []
        config.write_text(json.dumps(document))
        where = ("--kubeconfig", str(config), "-n", namespace)
        return CliRunner().invoke(main, ["rbac", file, "--verify", *where, *flags])

    with an_account(apiserver, made, account, tmp_path):
        assert "the rights are enough, and none too many" in verified(who).output
        nobody = verified("nobody")
        assert nobody.exit_code == 1
        assert "missing: " in nobody.output
        assert "superfluous: " not in nobody.output
        admin = verified("nobody", "system:masters", accounts_of)
        assert "superfluous: * *.* in namespace" in admin.output
