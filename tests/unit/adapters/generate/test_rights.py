"""The rights of operators: enough, and none too many; printed, and verified."""

from __future__ import annotations

import asyncio
import copy
import subprocess
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

import fnop
from fnop.adapters.cli.main import main
from fnop.adapters.common.manifests import namespace_for
from fnop.adapters.generate import reviews
from fnop.adapters.generate.rights import Account, Study, Wishes, studied
from fnop.adapters.generate.roles import (
    Granted,
    NoAccount,
    compared,
    granted_by,
    manifests_for,
    shown,
)
from fnop.adapters.testing.cases import cases_of
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.handlers.program.rights import (
    Need,
    Right,
    Who,
    by_right,
    least,
    needs_of,
    needs_of_handler,
)
from fnop.core.peers.peers import Member, Mode
from fnop.core.seam.commands import Command, Perform, Subject, Watch
from fnop.effects.structs import replace
from fnop.interpreters import cluster as simulated
from fnop.interpreters.check.campaign import explore
from fnop.interpreters.check.campaign.explore import Case, Explorer
from fnop.interpreters.check.campaign.observed_requests import (
    played,
    schedules_of,
    stopped,
)
from fnop.interpreters.cluster import empty_cluster
from fnop.interpreters.cluster.requests.request import attributes_of
from fnop.interpreters.runtime.clock import EPOCH
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse, User
from fnop.interpreters.runtime.requests import watch_request
from fnop.interpreters.simulation.scenario import apply_manifests
from fnop.interpreters.simulation.simulation import SimulatedRun
from tests.long import parameters
from tests.simulations import DEFINITION, ROOT, example

EXAMPLES = ROOT / "examples"
ACCOUNT = Account("fnop-operator", "fnop-operator")
USER = User(
    "system:serviceaccount:fnop-operator:fnop-operator",
    (
        "system:serviceaccounts",
        "system:serviceaccounts:fnop-operator",
        "system:authenticated",
    ),
)
DEPLOYMENT = "deployment/operator.py"
# Scripts that settle soon, one way or another.
FILES = (
    "01-minimal/example.py",
    "02-children/example.py",
    "03-exceptions/example.py",
    "04-events/example.py",
    "05-handlers/example.py",
    "06-peering/example.py",
    "07-subhandlers/example.py",
    "08-event-spies/example.py",
    "10-builtins/example.py",
    "11-filtering/example.py",
    "12-embedded/example.py",
    "13-hooks/example.py",
    "15-timers/example.py",
    "16-indexing/example.py",
    "17-models/orders.py",
    "18-definitions/databases.py",
    "19-database/example.py",
    "20-tenants/example.py",
    "21-records/example.py",
    "22-admission/example.py",
    "23-logs/example.py",
    "24-cluster/example.py",
    DEPLOYMENT,
)


def wishes(file: str, **more: Any) -> Wishes:
    path = EXAMPLES / file
    if file == DEPLOYMENT:
        more.setdefault("objects", (str(EXAMPLES / "02-children/object.yaml"),))
    return Wishes((str(path),), ACCOUNT, **more)


# Schedules that show the rights of an example, and others to try them in.
SCHEDULES = 30
OTHERS = 15


@cache
def study(file: str, **more: Any) -> Study:
    return studied(wishes(file, budget=SCHEDULES, **more))


# ---------------------------------------------------------- enough, and none too many


class Restricted(SimulatedRun):
    """An operator that has just the rights of its account."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.account = USER

    def request(self, request: ApiRequest) -> ApiResponse:
        response = super().request(request)
        if request.user is not None:
            note(request, response)
        return response

    def perform(self, command: Command) -> None:
        if isinstance(command, Watch):
            request = replace(watch_request(command), user=USER)
            found = simulated.backlog(self.cluster, request)
            if isinstance(found, ApiResponse):
                note(request, found)
        super().perform(command)


REFUSED: set[Right] = set()


def note(request: ApiRequest, response: ApiResponse) -> None:
    if response.status == 403:
        asked = attributes_of(request)
        REFUSED.add(Right(asked.verb, asked.group, asked.resource, asked.subresource))


@contextmanager
def restricted() -> Iterator[None]:
    """Let operators have just the rights of their account."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(explore, "SimulatedRun", Restricted)
        patched.setattr(explore, "empty_cluster", partial(empty_cluster, rbac=True))
        yield


def cases(found: Study, needs: tuple[Need, ...], place: str = "default") -> list[Case]:
    """The scripts of a study, in a cluster with these rights."""
    home = {"metadata": {"name": ACCOUNT.namespace}}
    roles = [
        {"apiVersion": "v1", "kind": "Namespace", **home},
        *manifests_for(needs, ACCOUNT),
    ]
    made = cases_of(found.program, found.subjects, namespace=place)
    return [
        each._replace(definitions=[*each.definitions, *roles], given=each.given)
        for each in made
    ]


def refusals(
    found: Study, needs: tuple[Need, ...], *, heard: bool = False
) -> Generator[frozenset[Right], None, None]:
    """All refusals, in all scripts and with faults of many sorts.

    With `heard`, the faults that the study used come first.
    """
    made = cases(found, needs)  # which is done with all rights
    REFUSED.clear()
    with restricted():
        for case in made if heard else ():  # most are asked for without any fault
            explore.benign_run(case)
            yield frozenset(REFUSED)
        explorers = []
        for case in made:
            explorers.append(Explorer(case, watched=False))
            yield frozenset(REFUSED)
        stopped(explorers[0])
        schedules = [*schedules_of(explorers)]
        first = schedules[:SCHEDULES] if heard else []
        some = schedules[:: 1 + len(schedules) // OTHERS]
        for explorer, schedule in (*first, *some):
            played(explorer.trial_of(schedule))
            yield frozenset(REFUSED)


# Each of the others takes some seconds, or needs the same rights as one of these:
# 06-peering by itself and 07-subhandlers need the rights of 01-minimal.
AT_ONCE = (
    *("01-minimal/example.py", "02-children/example.py", "04-events/example.py"),
    *("11-filtering/example.py", "13-hooks/example.py", "16-indexing/example.py"),
    "17-models/orders.py",
)


@pytest.mark.parametrize("file", parameters(FILES, AT_ONCE))
def test_the_rights_of_an_example_are_enough(file: str) -> None:
    """The rights found with the first faults are enough with others."""
    found = study(file)
    assert [each for each in refusals(found, found.needs) if each] == []


@pytest.mark.parametrize(
    "file",
    parameters(
        [
            "01-minimal/example.py",
            "05-handlers/example.py",
            "08-event-spies/example.py",
            "16-indexing/example.py",
            DEPLOYMENT,  # which does all that 02-children does
        ],
        ["01-minimal/example.py", "08-event-spies/example.py"],
    ),
)
def test_without_any_one_of_them_that_very_thing_is_refused(file: str) -> None:
    found = study(file)
    unneeded = []
    for right, place in by_right(found.needs):
        rest = tuple(e for e in found.needs if (e.right, e.namespace) != (right, place))
        # Close it, so that it restricts no other test until it is garbage-collected.
        with closing(refusals(found, rest, heard=True)) as tried:
            if not any(right in each for each in tried):
                unneeded.append(right)
    assert unneeded == []


def test_all_examples_are_looked_at() -> None:
    """But for two that take long: their daemons and waits are in other tests."""
    folders = {each.parent.name for each in EXAMPLES.glob("[0-9]*/*.py")}
    left = {"09-testing", "14-daemons"}
    assert folders - {Path(file).parent.name for file in FILES} == left


# ----------------------------------------------------------------------- deciding

CLAIMS = Resource(
    "example.com", "v1", "claims", "Claim", subresources=("status", "scale")
)
MAPS = Resource("", "v1", "configmaps", "ConfigMap")
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}
TARGET = fnop.effects.Target("configmaps", "m")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
ABOUT = Subject("claims.v1.example.com", "default", "x")


def asked(effect: Any, resource: Resource = MAPS) -> set[str]:
    command = Perform(1, effect, resource, "default", "m", ABOUT, "f")
    return {str(each.right) for each in needs_of(command, Who("f"))}


@pytest.mark.parametrize(
    ("effect", "rights"),
    [
        (fnop.effects.Create(MAP), "create get"),
        (fnop.effects.Apply(MAP), "create get patch"),
        (fnop.effects.Patch(TARGET, {"data": {"a": "1"}}), "get patch"),
        (fnop.effects.Delete(TARGET), "delete"),
        (fnop.effects.Get(TARGET), "get"),
        (fnop.effects.List("configmaps"), "list"),
    ],
)
def test_an_effect_takes_its_verb_and_what_its_answers_call_for(
    effect: Any, rights: str
) -> None:
    assert asked(effect) == {f"{verb} configmaps" for verb in rights.split()}


def test_a_subresource_is_a_resource_of_its_own() -> None:
    target = fnop.effects.Target("claims", "x")
    effect = fnop.effects.Patch(target, {"spec": {"replicas": 1}}, subresource="scale")
    assert asked(effect, CLAIMS) == {
        "patch claims/scale.example.com",
        "get claims.example.com",
    }


def test_a_report_may_be_counted_up() -> None:
    events = Resource("", "v1", "events", "Event")
    assert asked(fnop.effects.Create(MAP), events) == {"create events", "patch events"}


def test_kinds_without_namespaces_are_of_the_cluster() -> None:
    command = Watch(1, NODES, "default", "1", 60, 60.0)
    (need,) = needs_of(command, Who("f"))
    assert need == Need(Right("watch", "", "nodes"), None, Who("f"))


@pytest.mark.parametrize(
    ("decorator", "verbs"),
    [
        ("create", "list watch get status"),
        ("delete", "list watch get status patch"),
        ("event", "list watch"),
    ],
)
def test_a_handler_that_was_never_seen_has_the_needs_of_its_role(
    decorator: str, verbs: str
) -> None:
    registry = fnop.Registry()
    declare = getattr(fnop.on, decorator)("claims", registry=registry, id="f")
    declare(lambda **_: None)
    (handler,) = registry.handlers
    rights = {
        each.right.subresource or each.right.verb
        for each in needs_of_handler(handler, CLAIMS, None)
    }
    assert rights == {*verbs.split()}


def test_what_another_right_includes_is_not_said_again() -> None:
    everything = Need(Right("list", "*", "*"), None, Who("seen"))
    one = Need(Right("list", "", "pods"), "default", Who("other"))
    other = one._replace(right=Right("get", "", "pods"))
    assert least([one, everything, other]) == (everything, other)
    status = one._replace(right=Right("list", "", "pods", "status"))
    assert least([one, status]) == (one, status)


# ---------------------------------------------------------------------- verifying


def all_parts() -> Iterator[tuple[str, int, int, str]]:
    """Each verb of each rule of each role that is printed for some examples."""
    for file in ("02-children/example.py", "10-builtins/example.py", DEPLOYMENT):
        for at, each in enumerate(manifests_for(study(file).needs, ACCOUNT)):
            for number, rule in enumerate(each.get("rules", ())):
                for verb in rule["verbs"]:
                    yield file, at, number, verb


def difference(file: str, manifests: list[dict[str, Any]]) -> Any:
    return compared(study(file).needs, granted_by(manifests, ACCOUNT).granted)


# Those that are studied at once for other tests.
STUDIED = (*AT_ONCE, "10-builtins/example.py", DEPLOYMENT)


@pytest.mark.parametrize("file", parameters(FILES, STUDIED))
def test_what_is_printed_is_verified(file: str) -> None:
    made = manifests_for(study(file).needs, ACCOUNT)
    assert difference(file, made) == ((), ())
    text = shown(study(file).needs, ACCOUNT)
    assert [*yaml.safe_load_all(text)] == made
    assert max(map(len, text.splitlines())) <= 150


def test_each_removed_verb_is_found() -> None:
    tried = 0
    for file, at, number, verb in all_parts():
        made = copy.deepcopy(manifests_for(study(file).needs, ACCOUNT))
        rule = made[at]["rules"][number]
        rule["verbs"].remove(verb)
        found = difference(file, made)
        tried += 1
        assert found.superfluous == ()
        named = [each.split()[:2] for each in found.missing]
        assert [each[0] for each in named] == [verb] * len(rule["resources"])
        for resource, (_, combined) in zip(
            sorted(rule["resources"]), sorted(named), strict=True
        ):
            group = rule["apiGroups"][0]
            assert combined == (f"{resource}.{group}" if group else resource)
        assert all("(handler " in e or "(the operator" in e for e in found.missing)
    assert tried >= 25


def test_each_added_verb_is_found() -> None:
    tried = 0
    for file, at, number, _ in {(f, a, n, "") for f, a, n, _ in all_parts()}:
        known = manifests_for(study(file).needs, ACCOUNT)[at]["rules"][number]
        for verb in ("update", "delete", "deletecollection", "get", "watch", "*"):
            if verb in known["verbs"]:
                continue
            made = copy.deepcopy(manifests_for(study(file).needs, ACCOUNT))
            made[at]["rules"][number]["verbs"].append(verb)
            found = difference(file, made)
            tried += 1
            assert found.missing == ()
            assert len(found.superfluous) == len(known["resources"])
            assert all(each.startswith(f"{verb} ") for each in found.superfluous)
            assert all("ClusterRole fnop-operator" in e for e in found.superfluous)
    assert tried >= 25


def needs(*rights: str, namespace: str | None = None) -> list[Need]:
    found = []
    for each in rights:
        verb, resource = each.split()
        plural, _, sub = resource.partition("/")
        found.append(Need(Right(verb, "", plural, sub), namespace, Who("f")))
    return found


def granted(
    verbs: str,
    resources: str,
    groups: str = ",",
    *,
    names: str = "",
    namespace: str | None = None,
) -> Granted:
    from fnop.interpreters.cluster.access.rbac import Rule

    rule = Rule(
        tuple(verbs.split(",")),
        tuple(dict.fromkeys(groups.split(","))),
        tuple(resources.split(",")),
        tuple(names.split(",")) if names else (),
    )
    return Granted(rule, namespace, "Role r")


@pytest.mark.parametrize(
    ("rule", "extra"),
    [
        (granted("*", "pods"), ["* pods (Role r; needed: get pods, list pods)"]),
        (
            granted("get,list", "*"),
            [
                "get * (Role r; needed: get pods)",
                "list * (Role r; needed: list pods)",
            ],
        ),
        (
            granted("get,list", "pods", "*"),
            [
                "get pods.* (Role r; needed: get pods)",
                "list pods.* (Role r; needed: list pods)",
            ],
        ),
        (granted("get,list", "pods,deployments", ",apps"), None),
    ],
)
def test_wildcards_are_understood(rule: Granted, extra: list[str] | None) -> None:
    found = compared(needs("get pods", "list pods"), [rule])
    assert found.missing == ()
    if extra is not None:
        assert [*found.superfluous] == extra
    else:  # apps/pods does not exist; deployments do, but no handler needs them
        assert all("deployments" in each for each in found.superfluous)


def test_a_subresource_is_not_in_the_right_to_its_kind() -> None:
    found = compared(needs("patch pods/status"), [granted("patch", "pods")])
    assert found.missing == ("patch pods/status (handler f)",)
    assert found.superfluous == ("patch pods (Role r; nobody needs it)",)
    assert compared(needs("patch pods/status"), [granted("patch", "*/status")])[0] == ()


def test_a_right_to_some_objects_is_not_enough_for_all() -> None:
    found = compared(needs("get pods"), [granted("get", "pods", names="a")])
    assert found.missing == ("get pods (handler f)",)
    one = needs("get pods")[0]
    one = one._replace(right=one.right._replace(name="a"))
    assert compared([one], [granted("get", "pods", names="a")]) == ((), ())
    assert compared([one], [granted("get", "pods", names="a,b")]).superfluous == (
        'get pods "b" (Role r; nobody needs it)',
    )
    assert compared([one], [granted("get", "pods")]).superfluous == (
        'get pods (Role r; needed: of "a")',
    )


def test_a_right_in_a_namespace_holds_there() -> None:
    here = needs("get pods", namespace="a")
    assert compared(here, [granted("get", "pods", namespace="a")]) == ((), ())
    found = compared(here, [granted("get", "pods", namespace="b")])
    assert found.missing == ("get pods in namespace a (handler f)",)
    assert found.superfluous == ("get pods in namespace b (Role r; nobody needs it)",)
    wide = compared(here, [granted("get", "pods")])
    assert wide.missing == ()
    assert wide.superfluous == (
        "get pods in the whole cluster (Role r; needed: in namespace a)",
    )


def bound(role: dict[str, Any], **reference: Any) -> list[dict[str, Any]]:
    subject = {"kind": "ServiceAccount", **ACCOUNT._asdict()}
    return [
        {"kind": "ClusterRole", "metadata": {"name": "r"}, **role},
        {
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "b"},
            "roleRef": {"kind": "ClusterRole", "name": "r", **reference},
            "subjects": [subject],
        },
    ]


def test_sums_of_roles_are_told_as_not_understood() -> None:
    selectors = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    found = granted_by(bound({"aggregationRule": selectors, "rules": []}), ACCOUNT)
    (note,) = found.notes
    assert "ClusterRole r is the sum of other roles" in note
    assert "not understood" in note


def test_a_role_that_is_in_no_file_is_told() -> None:
    found = granted_by(bound({}, name="view"), ACCOUNT)
    assert found.granted == ()
    (note,) = found.notes
    assert "ClusterRole view is bound and is in none of the files" in note


def test_several_accounts_need_a_choice() -> None:
    manifests = bound({})
    manifests[1]["subjects"].append({"kind": "ServiceAccount", "name": "other"})
    with pytest.raises(NoAccount, match="name one with --service-account"):
        granted_by(manifests, None)
    with pytest.raises(NoAccount, match="no ServiceAccount is bound"):
        granted_by([], None)


# -------------------------------------------------------------------- the command


# The runs without faults alone.
QUICK = ("--budget", "0")


# A script in which the deployment's operator makes all its possible requests.
LIFE = f"""
import yaml
from fnop.testing import apply, delete, edit

with open({str(EXAMPLES / "02-children/object.yaml")!r}) as file:
    *_, PARENT = yaml.safe_load_all(file)
NAME = "fnopexamples/example-1"
SCRIPTS = {{
    "life": [apply(PARENT), edit(NAME, spec={{"image": "other"}}), delete(NAME)]
}}
"""


@pytest.fixture
def deployed(tmp_path: Path) -> tuple[str, ...]:
    """The deployment's operator, and its object's life."""
    script = tmp_path / "life.py"
    script.write_text(LIFE)
    objects = ("--object", str(EXAMPLES / "02-children/object.yaml"))
    return str(EXAMPLES / DEPLOYMENT), *objects, "--script", str(script), *QUICK


def run(*args: str) -> Result:
    return CliRunner().invoke(main, ["rbac", *args])


def test_the_rights_of_the_deployment_are_those_that_are_printed(
    deployed: tuple[str, ...],
) -> None:
    folder = EXAMPLES / "deployment"
    operator = (*deployed, "--verify")
    cluster = ("--against", str(folder / "rbac.yaml"))
    for more in (
        cluster,
        ("-n", "default", "--against", str(folder / "rbac-namespaced.yaml")),
        (*cluster, "--leader-elect", "--against", str(folder / "leader-elect.yaml")),
    ):
        found = run(*operator, *more)
        assert found.exit_code == 0, found.output
        assert "the rights are enough, and none too many" in found.stdout


def test_what_is_missing_is_told_with_who_needs_it(
    tmp_path: Path, deployed: tuple[str, ...]
) -> None:
    text = (EXAMPLES / "deployment/rbac.yaml").read_text()
    file = tmp_path / "rbac.yaml"
    file.write_text(
        text.replace(
            "verbs: [create, get, list, watch]", "verbs: [list, watch, delete]"
        )
    )
    found = run(*deployed, "--verify", "--against", str(file))
    assert found.exit_code == 1
    assert found.stdout.splitlines() == [
        "missing: get pods (handler create_pod)",
        "missing: create pods (handler create_pod)",
        "superfluous: delete pods (ClusterRole fnop-operator; nobody needs it)",
    ]


OPERATOR = """
import fnop

@fnop.on.create("claims")
def made(spec, **_):
    return fnop.delete("pods", name="p")

@fnop.on.create("claims", labels={"never": "there"})
def never(**_):
    return fnop.delete("secrets", name="x")
"""


def test_what_was_not_seen_is_told(tmp_path: Path) -> None:
    file = tmp_path / "claiming.py"
    file.write_text(OPERATOR)
    found = run(str(file), *QUICK)
    assert found.exit_code == 0, found.output
    assert "made up a definition of claims that takes any spec; give --crd" in (
        found.stderr
    )
    (line,) = [each for each in found.stderr.splitlines() if "never called" in each]
    assert "create handler never was never called, so what it asks for is not" in line
    assert "--object or --script" in line
    assert run(str(file), *QUICK, "--quiet").stderr == ""
    (tmp_path / "roles.yaml").write_text(found.stdout)
    verified = run(
        str(file), *QUICK, "--verify", "--against", str(tmp_path / "roles.yaml")
    )
    assert verified.exit_code == 0, verified.output
    assert "none too many, as far as was seen: " in verified.stdout


def test_a_wrong_call_is_told() -> None:
    file = str(EXAMPLES / "01-minimal/example.py")
    for args, text in (
        ((), "name the operator's file"),
        ((file, "--against", file), "--against needs --verify"),
        ((file, "-A", "-n", "x"), "use either -n/--namespace or -A"),
        ((file, "--lease-namespace", "x"), "--lease-namespace needs --leader-elect"),
        ((file, "-n", "NO"), "is neither the name of a namespace nor a pattern"),
    ):
        found = run(*args)
        assert found.exit_code == 2, found.output
        assert text in found.stderr


# ------------------------------------------------------------------- the namespaces


def test_one_role_for_each_namespace_that_is_served() -> None:
    found = study("02-children/example.py", namespaces=("a", "b"))
    made = manifests_for(found.needs, ACCOUNT)
    roles = [each for each in made if each["kind"] == "Role"]
    assert [each["metadata"]["namespace"] for each in roles] == ["a", "b"]
    assert roles[0]["rules"] == roles[1]["rules"]
    wide = manifests_for(study("02-children/example.py").needs, ACCOUNT)
    (cluster,) = [each for each in wide if each["kind"] == "ClusterRole"]
    assert cluster["rules"] == roles[0]["rules"]
    assert not [each for each in made if each["kind"].startswith("Cluster")]


def test_patterns_of_namespaces_take_rights_in_the_whole_cluster() -> None:
    found = study("02-children/example.py", namespaces=("team-*",))
    rights = {str(right) for right, place in by_right(found.needs) if place is None}
    assert {"list namespaces", "watch namespaces", "create pods"} <= rights
    assert any("the rights are for the whole cluster" in each for each in found.notes)


def test_a_recording_may_have_asked_for_more(tmp_path: Path) -> None:
    """The handler that no script calls was called in a real run."""
    file = tmp_path / "recorded.py"
    file.write_text(OPERATOR)
    claim = {
        "apiVersion": "example.com/v1",
        "kind": "Claim",
        "metadata": {"name": "c", "labels": {"never": "there"}},
        "spec": {},
    }
    (tmp_path / "claim.yaml").write_text(yaml.safe_dump(claim))
    crd = studied(Wishes((str(file),), ACCOUNT, budget=0)).subjects.definitions
    (tmp_path / "definition.yaml").write_text(yaml.safe_dump_all(crd))
    made = ("definition.yaml", "claim.yaml")
    command = [sys.executable, "-m", "fnop", "run", str(file)]  # its own process
    command += ["--record", str(tmp_path / "run.fnop"), "--simulate"]
    command += [str(tmp_path / each) for each in made]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (tmp_path / "script.py").write_text(CREATION)
    script = ("--script", str(tmp_path / "script.py"))
    without = run(str(file), *script, *QUICK)
    assert "secrets" not in without.stdout
    found = run(str(file), *script, *QUICK, "--seen", str(tmp_path / "run.fnop"))
    assert "secrets" in found.stdout
    assert "never called" not in found.stderr
    bad = run(str(file), *QUICK, "--seen", str(file))
    assert bad.exit_code == 2
    assert "not a recording of fnop" in bad.stderr


# ---------------------------------------------------------------------- the cluster


class Asked:
    """The simulated cluster, as the account asks it."""

    def __init__(self, manifests: list[dict[str, Any]]) -> None:
        self.cluster = empty_cluster(now=EPOCH, rbac=True)
        run = SimulatedRun(Program(()), self.cluster)
        home = {"metadata": {"name": ACCOUNT.namespace}}
        place = {"apiVersion": "v1", "kind": "Namespace", **home}
        apply_manifests(run, [place, *manifests])
        self.cluster = run.cluster

    async def send(self, request: ApiRequest) -> ApiResponse:
        asked = replace(request, user=USER)
        self.cluster, response, _ = simulated.answer(self.cluster, asked, EPOCH)
        return response


def verified(file: str, manifests: list[dict[str, Any]]) -> Any:
    told: list[str] = []
    api: Any = Asked(manifests)
    found = asyncio.run(reviews.reviewed(api, study(file).needs, told.append))
    assert told == []
    return found


def test_the_cluster_is_asked_for_each_right() -> None:
    for file in (DEPLOYMENT, "10-builtins/example.py"):
        made = manifests_for(study(file).needs, ACCOUNT)
        assert verified(file, made) == ((), ()), file


def test_the_cluster_tells_what_is_missing_and_what_is_superfluous() -> None:
    made = copy.deepcopy(manifests_for(study(DEPLOYMENT).needs, ACCOUNT))
    (role,) = [each for each in made if each["kind"] == "ClusterRole"]
    (pods,) = [each for each in role["rules"] if each["resources"] == ["pods"]]
    pods["verbs"] = ["list", "watch", "create", "delete"]
    found = verified(DEPLOYMENT, made)
    assert found.missing == ("get pods (handler create_pod)",)
    assert found.superfluous == (
        "delete pods (granted in the cluster; nobody needs it)",
    )


def test_a_list_that_is_not_complete_is_told() -> None:
    class Api:
        async def send(self, request: ApiRequest) -> ApiResponse:
            status = {"allowed": True, "incomplete": True, "evaluationError": "webhook"}
            return ApiResponse(201, {"status": status})

    told: list[str] = []
    api: Any = Api()
    asyncio.run(reviews.reviewed(api, needs("get pods"), told.append))
    (line,) = told
    assert "is not complete (webhook)" in line


def test_a_cluster_that_does_not_answer_is_told() -> None:
    class Api:
        async def send(self, request: ApiRequest) -> ApiResponse:
            return ApiResponse(403, {"message": "no"})

    api: Any = Api()
    with pytest.raises(reviews.ReviewProblem, match="no SelfSubjectAccessReview: no"):
        asyncio.run(reviews.reviewed(api, needs("get pods"), print))


# --------------------------------------------------------------- among other operators


def test_the_rights_to_peering_objects_are_enough_and_least() -> None:
    """Next to another operator, whose record must be cleaned up."""
    folder = EXAMPLES / "06-peering"
    file = "06-peering/example.py"
    peers = study(file, peers=True).needs
    member = Member("me", mode=Mode.MANDATORY)
    given = [
        *yaml.safe_load_all((folder / "peering.yaml").read_text()),
        *yaml.safe_load_all((folder / "default.yaml").read_text()),
    ]

    def lived(needs: Iterable[Need]) -> set[Right]:
        REFUSED.clear()
        handlers = study(file).program.handlers
        program = Program(handlers, Settings(peering=member))
        run = Restricted(program, empty_cluster(now=EPOCH, rbac=True))
        home = {"metadata": {"name": ACCOUNT.namespace}}
        place = {"apiVersion": "v1", "kind": "Namespace", **home}
        definitions = study(file).subjects.definitions
        roles = manifests_for(needs, ACCOUNT)
        apply_manifests(run, [*map(dict, definitions), place, *roles])
        apply_manifests(run, given[:-1])
        while run.control():
            pass
        apply_manifests(run, given[-1:])
        run.wait(90)
        run.stop()
        run.wait(30)
        return {*REFUSED}

    assert lived(peers) == set()
    own = [each for each in peers if each.who.name == "peering"]
    assert len(own) == 3
    for need in own:
        rest = [each for each in peers if each != need]
        assert lived(rest) == {need.right}


# ------------------------------------------------------------------ what is unknown

UNKNOWING = """
import fnop

def outside(): ...

@fnop.on.create("claims")
async def calls(**_):
    await fnop.call(outside)
    await fnop.delete("secrets", name="x")

@fnop.on.create("claims")
def waits(**_):
    raise fnop.TemporaryError("not yet", delay=86_400)

@fnop.on.event(group="fnop.*", kind="*")
def looks(**_): ...

@fnop.index("claims")
def known(name, **_):
    return {name: 1}
"""
CREATION = """
from fnop.testing import apply
CLAIM = {"apiVersion": "example.com/v1", "kind": "Claim", "metadata": {"name": "c"}}
SCRIPTS = {"create": [apply(CLAIM)]}
"""


def test_all_that_is_unknown_is_told(tmp_path: Path) -> None:
    file = tmp_path / "unknowing.py"
    file.write_text(UNKNOWING)
    (tmp_path / "script.py").write_text(CREATION)
    found = run(str(file), "--script", str(tmp_path / "script.py"), *QUICK)
    assert found.exit_code == 0, found.output
    lines = found.stderr.splitlines()
    for words in (
        "create handler calls was called and has never succeeded",
        "create handler waits was called and has never succeeded",
        "outside is not simulated; give a model of it",
        "what functions outside (outside) ask of the API server with clients of their",
        "event handler looks is for all kinds that",
    ):
        assert len([each for each in lines if words in each]) == 1, (words, lines)
    assert not [each for each in lines if "handler known" in each]
    assert "secrets" not in found.stdout


def test_a_budget_leaves_something_out_and_says_so() -> None:
    found = run(str(EXAMPLES / "02-children/example.py"), "--budget", "0")
    assert "schedules of faults were not tried" in found.stderr
    assert "raise --budget" in found.stderr
    # What an effect may take is known all the same.
    assert [*yaml.safe_load_all(found.stdout)] == [
        namespace_for(ACCOUNT.namespace),
        *manifests_for(study("02-children/example.py").needs, ACCOUNT),
    ]


@pytest.mark.parametrize(
    ("options", "namespaces", "account"),
    [
        ((), ["fnop-operator"], "fnop-operator/fnop-operator"),
        (("--name", "shop"), ["shop"], "shop/shop"),
        (("--service-account", "ops/shop"), [], "ops/shop"),
    ],
)
def test_the_account_and_its_namespace_are_printed(
    options: tuple[str, ...], namespaces: list[str], account: str
) -> None:
    found = run(str(EXAMPLES / "02-children/example.py"), *QUICK, *options)
    documents = [*yaml.safe_load_all(found.stdout)]
    named = {
        kind: [each["metadata"] for each in documents if each["kind"] == kind]
        for kind in ("Namespace", "ServiceAccount")
    }
    assert [each["name"] for each in named["Namespace"]] == namespaces
    (own,) = named["ServiceAccount"]
    assert f"{own['namespace']}/{own['name']}" == account
    bindings = [each for each in documents if each["kind"].endswith("Binding")]
    subjects = [subject for each in bindings for subject in each["subjects"]]
    assert subjects
    assert all(f"{e['namespace']}/{e['name']}" == account for e in subjects)
    # An object is applied after its namespace.
    assert documents.index(
        next(e for e in documents if e["kind"] == "ServiceAccount")
    ) == len(namespaces)


def test_a_kind_that_rbac_does_not_know_is_told(tmp_path: Path) -> None:
    (tmp_path / "operator.py").write_text(
        "import fnop\n\n\n@fnop.reconcile('fnopexamples', owns='widgets.example.com')\n"
        "def keep(**_):\n    return fnop.desired()\n"
    )
    (tmp_path / "crd.yaml").write_text(yaml.safe_dump(DEFINITION))
    (tmp_path / "object.yaml").write_text(yaml.safe_dump(example()))
    done = CliRunner().invoke(main, ["rbac", str(tmp_path / "operator.py")])
    assert done.exit_code == 0, done.output
    assert "widgets" in done.output


# ------------------------------------------------------------------------ admission

ADMITTING = """
import fnop

@fnop.on.validate("claims.example.com")
async def judged(spec, **_):
    await fnop.get("configmaps", name="limits")

@fnop.on.validate("pods", labels={"never": "there"})
def never(**_): ...
"""


def test_a_kind_with_admission_handlers_alone_is_not_followed(tmp_path: Path) -> None:
    file = tmp_path / "operator.py"
    file.write_text(ADMITTING)
    found = run(str(file), *QUICK)
    assert found.exit_code == 0, found.output
    (role,) = [
        each
        for each in yaml.safe_load_all(found.stdout)
        if each["kind"] == "ClusterRole"
    ]
    (local,) = [
        each for each in yaml.safe_load_all(found.stdout) if each["kind"] == "Role"
    ]
    assert local["metadata"]["namespace"] == "fnop-operator"
    secrets = {"apiGroups": [""], "resources": ["secrets"]}
    name = "fnop-webhooks-default"
    assert local["rules"] == [
        {**secrets, "verbs": ["create"]},
        {**secrets, "resourceNames": [name], "verbs": ["get", "patch"]},
    ]
    group = "admissionregistration.k8s.io"
    configurations = [
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
    ]
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
        {
            "apiGroups": [group],
            "resources": configurations,
            "resourceNames": ["default.fnop.dev"],
            "verbs": ["get", "patch"],
        },
        {"apiGroups": [group], "resources": configurations[1:], "verbs": ["create"]},
        {
            "apiGroups": ["authentication.k8s.io"],
            "resources": ["selfsubjectreviews"],
            "verbs": ["create"],
        },
    ]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("--name", "billing"), "billing.fnop.dev"),
        (("--webhook-name", "hooks.dev"), "hooks.dev"),
    ],
)
def test_the_configurations_are_named_in_the_rights(
    tmp_path: Path, words: tuple[str, ...], name: str
) -> None:
    file = tmp_path / "operator.py"
    file.write_text(ADMITTING)
    found = run(str(file), *QUICK, *words)
    assert f"resourceNames: [{name}]" in found.stdout
