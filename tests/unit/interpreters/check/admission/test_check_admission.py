"""The laws of admission handlers: what a check finds, and what is meant so."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from fnop.adapters.common.loading import handlers_of_file
from fnop.adapters.testing.cases import CheckProblem, cases_of, sound, subjects_of
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.campaign import Campaign
from fnop.interpreters.check.campaign.explore import Case, Explorer
from fnop.interpreters.check.properties import OF_ADMISSION
from fnop.interpreters.check.state.kinds import Fault, Place, Site
from fnop.interpreters.check.trials.catalogue import BY_NAME
from fnop.interpreters.simulation.externals import PostService
from fnop.testing import apply, edit
from tests.unit.interpreters.check.made_up import NUMBER, alarms, cases, definition, x

LIST = {"type": "array", "items": {"type": "string"}}
CRD = definition(size=NUMBER, tags=LIST)
SERVES = """
@fnop.on.create("xs.example.com")
def made(name, **_):
    return fnop.adopt(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    )
"""


def case_of(folder: Path, code: str, **spec: Any) -> Case:
    """The case of a user who creates an object."""
    several, _ = cases(folder, SERVES + code, x(**spec), CRD)
    return several[0]


def found(folder: Path, code: str, **spec: Any) -> set[str]:
    """The properties that creating an object violates."""
    return alarms([case_of(folder, code, **spec)]).get("create", set())


BUGS = {
    "a mutation appends at each update": (
        "idempotent",
        """
@fnop.on.mutate("xs.example.com")
def tagged(spec, patch, **_):
    patch.spec["tags"] = [*spec.get("tags", ()), "x"]
""",
    ),
    "a mutation makes what a validation denies": (
        "accepted",
        """
@fnop.on.mutate("xs.example.com")
def sized(spec, patch, **_):
    if "tags" not in spec:
        patch.spec["tags"] = ["", "x"]

@fnop.on.validate("xs.example.com")
def named(spec, **_):
    if "" in spec.get("tags", ()):
        raise fnop.Denied("a tag has no name", field="spec.tags")
""",
    ),
    "a mutation makes what the schema refuses": (
        "accepted",
        """
@fnop.on.mutate("xs.example.com")
def sized(spec, patch, **_):
    if spec.get("size") == 0:
        patch.spec["size"] = "1Gi"
""",
    ),
    "no deletion is admitted": (
        "deletable",
        """
@fnop.on.validate("xs.example.com", operations=["DELETE"])
def kept(**_):
    raise fnop.Denied("objects are kept")
""",
    ),
    "a validation does not think of deletions": (
        "deletable",
        """
@fnop.on.validate("xs.example.com")
def small(new, **_):
    if new["spec"].get("size", 0) > 100:
        raise fnop.Denied("it is too large")
""",
    ),
    "what is deleted cannot be changed": (
        "deletable",
        """
@fnop.on.validate("xs.example.com", deleted=True, ratcheting=False)
def ending(meta, operation, **_):
    if operation == "UPDATE" and meta.get("deletionTimestamp"):
        raise fnop.Denied("it is being deleted")
""",
    ),
    "what is deleted needs what is gone": (
        "deletable",
        """
@fnop.on.validate("xs.example.com", deleted=True, ratcheting=False)
async def mapped(name, operation, **_):
    gone = await fnop.get("serviceaccounts", name="default") is None
    if operation == "UPDATE" and gone:
        raise fnop.Denied("no account")
""",
    ),
    "an update has to change the spec": (
        "updatable",
        """
@fnop.on.validate("xs.example.com", operations=["UPDATE"], ratcheting=False)
def changed(old, new, **_):
    if old["spec"] == new["spec"]:
        raise fnop.Denied("nothing changes")
""",
    ),
    "nothing may change, not even a label": (
        "updatable",
        """
@fnop.on.validate("xs.example.com", operations=["UPDATE"])
def sealed(old, new, **_):
    if old != new:
        raise fnop.Denied("it is immutable")
""",
    ),
    "updates alone need a label": (
        "updatable",
        """
@fnop.on.validate("xs.example.com", operations=["UPDATE"], ratcheting=False)
def owned(labels, **_):
    if "team" not in labels:
        raise fnop.Denied("a team is missing")
""",
    ),
    "the operator denies its own children": (
        "admits_itself",
        """
@fnop.on.validate("configmaps", own_writes=True)
def labelled(labels, **_):
    if "team" not in labels:
        raise fnop.Denied("a team is missing")
""",
    ),
    "every second answer is another one": (
        "steady",
        """
TIMES = []

@fnop.on.validate("xs.example.com", operations=["UPDATE"])
def seldom(**_):
    pass

@fnop.on.validate("xs.example.com")
def first(spec, **_):
    if spec.get("size", 0) > 1:
        TIMES.append(1)
        if len(TIMES) % 2:
            raise fnop.Denied("once more")
""",
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_defect_of_admission_is_found_without_any_fault(
    bug: str, tmp_path: Path
) -> None:
    law, code = BUGS[bug]
    assert law in found(tmp_path, code, size=1)


def test_the_pods_of_a_deployment_are_made_on_the_operators_behalf(
    tmp_path: Path,
) -> None:
    code = """
@fnop.on.create("xs.example.com")
def deployed(name, **_):
    labels = {"app": name}
    containers = [{"name": "main", "image": "main"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return fnop.adopt({"apiVersion": "apps/v1", "kind": "Deployment",
                       "metadata": {"name": name}, "spec": spec})

@fnop.on.validate("pods")
def limited(spec, **_):
    if any("limits" not in e.get("resources", {}) for e in spec["containers"]):
        raise fnop.Denied("a container has no limits")
"""
    assert found(tmp_path, code) == {"admits_itself"}


MEANT = {
    "a label protects": """
@fnop.on.validate("xs.example.com", operations=["DELETE"])
def kept(labels, **_):
    if labels.get("allow-deletion") != "yes":
        raise fnop.Denied("it is protected")
""",
    "a state protects": """
@fnop.on.validate("xs.example.com", operations=["DELETE"])
def kept(old, status, **_):
    if old["spec"].get("size", 0) > 0 and status.get("phase") != "Released":
        raise fnop.Denied("it is in use")
""",
    "some users delete": """
@fnop.on.validate("xs.example.com", operations=["DELETE"])
def kept(userinfo, **_):
    if "admins" not in userinfo["groups"]:
        raise fnop.Denied("admins delete it")
""",
    "children protect": """
@fnop.on.validate("xs.example.com", operations=["DELETE"])
async def kept(name, **_):
    if await fnop.get("configmaps", name=name) is not None:
        raise fnop.Denied("its ConfigMap is there")
""",
    "a field is fixed, and the operator's finalizer is its own": """
@fnop.on.validate("xs.example.com", operations=["UPDATE"], ratcheting=False)
def fixed(old, spec, **_):
    if old["spec"].get("size") != spec.get("size"):
        raise fnop.Denied("the size is fixed", field="spec.size")

@fnop.on.validate("xs.example.com", deleted=True, operations=["UPDATE"])
def finalized(old, new, userinfo, **_):
    before, after = ({*each["metadata"].get("finalizers", ())} for each in (old, new))
    if "fnop.dev/default" in before - after and "fnop" not in userinfo["username"]:
        raise fnop.Denied("the operator removes its finalizer")
""",
    "defaults, and what must not shrink": """
@fnop.on.mutate("xs.example.com")
def sized(spec, patch, **_):
    tags = spec.get("tags", ())
    if "x" not in tags:
        patch.spec["tags"] = [*tags, "x"]

@fnop.on.validate("xs.example.com", own_writes=True)
def shrinks_not(spec, old, **_):
    if old is not None and spec.get("size", 0) < old["spec"].get("size", 0):
        raise fnop.Denied("it must not shrink", field="spec.size")
""",
}


@pytest.mark.parametrize("rule", MEANT)
def test_what_is_meant_so_is_no_alarm(rule: str, tmp_path: Path) -> None:
    assert found(tmp_path, MEANT[rule], size=1) == set()


MODEL = """
def reserve(size):
    raise NotImplementedError

@fnop.on.validate("xs.example.com"{options})
async def reserved(spec, **_):
    {before}
    await fnop.call(reserve, size=spec.get("size"))
    {after}
"""
DENIES = 'if spec.get("size", 0) > 9: raise fnop.Denied("too large")'


@pytest.mark.parametrize(
    ("options", "after", "laws"),
    [
        ("", DENIES, {"traceless"}),
        (", side_effects=True", "pass", {"traceless"}),  # in a dry run
        ("", "pass", set[str]()),  # it is not called in a dry run
    ],
    ids=["denied", "dry run", "never"],
)
def test_what_is_not_stored_leaves_nothing_outside(
    options: str, after: str, laws: set[str], tmp_path: Path
) -> None:
    code = SERVES + MODEL.format(options=options, before="pass", after=after)
    several, _ = cases(
        tmp_path, code, x(size=5), CRD, calls={"reserve": _Stock().reserve}
    )
    assert alarms(several[:1]).get("create", set()) & {"traceless"} == laws


class _Stock(PostService):
    def reserve(self, size: int | None) -> None:
        """Keep a thing of this size."""
        self.create({"size": size})


def test_an_object_that_the_operator_denies_was_stored_before(tmp_path: Path) -> None:
    code = """
@fnop.on.validate("xs.example.com", operations=["CREATE", "UPDATE"]{option})
def small(spec, **_):
    if spec.get("size", 0) > 100:
        raise fnop.Denied("it is too large", field="spec.size")
"""
    folders = [tmp_path / "safe", tmp_path / "strict"]
    for each in folders:
        each.mkdir()
    safe, notes = cases(folders[0], SERVES + code.format(option=""), x(size=500), CRD)
    assert any("tried as one that was stored before the rule" in e for e in notes)
    assert alarms(safe[:1]) == {}
    strict, _ = cases(
        folders[1], SERVES + code.format(option=", ratcheting=False"), x(size=500), CRD
    )
    assert alarms(strict[:1]) == {"create": {"updatable"}}


SMALL = """
@fnop.on.validate("xs.example.com", ratcheting=False)
def small(new, **_):
    if new is not None and new["spec"].get("size", 0) > 100:
        {raises}
"""
RAISES = ('raise fnop.Denied("it is too large")', 'raise RuntimeError("no answer")')
OTHERS = {
    "no other handler": "",
    "a creation handler": SERVES,
    "a reconcile handler": """
@fnop.reconcile("xs.example.com", owns=["configmaps"])
def children(name, **_):
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return fnop.desired([config])
""",
    "a timer": """
@fnop.timer("xs.example.com", interval=60)
def looks(**_):
    return fnop.patch(status={"looked": True})
""",
}


@pytest.mark.parametrize("raises", RAISES, ids=["denied", "failed"])
@pytest.mark.parametrize("others", OTHERS)
def test_a_frozen_object_is_found_beside_any_handler(
    others: str, raises: str, tmp_path: Path
) -> None:
    code = OTHERS[others] + SMALL.format(raises=raises)
    several, notes = cases(tmp_path, code, x(size=500), CRD)
    assert any("tried as one that was stored before the rule" in e for e in notes)
    assert "updatable" in alarms(several)["create"]


NOBODY = """
@fnop.on.validate("xs.example.com")
def none(**_):
    raise fnop.Denied("there are no owners")
"""
OPEN = {"x-kubernetes-preserve-unknown-fields": True}


def test_an_object_that_is_made_up_is_denied_with_a_note(tmp_path: Path) -> None:
    file = tmp_path / "operator.py"
    file.write_text(f"import fnop\n{NOBODY}")
    program = Program(tuple(handlers_of_file(str(file))), Settings())
    subjects = subjects_of(program, [CRD])
    explorers = [Explorer(each) for each in cases_of(program, subjects)]
    _, notes = sound(explorers)
    assert any(each.startswith("none (") and " denies " in each for each in notes)


@pytest.mark.parametrize(
    ("schema", "spec"),
    [({"type": "object", **OPEN}, {"spec": {}}), ({"type": "object"}, {})],
    ids=["open", "closed"],
)
def test_an_object_is_made_up_of_a_schema_without_fields(
    schema: dict[str, Any], spec: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "operator.py"
    file.write_text(f"import fnop\n{NOBODY}")
    program = Program(tuple(handlers_of_file(str(file))), Settings())
    crd = deepcopy(CRD)
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    (made,) = subjects_of(program, [crd]).subjects
    assert {each: made[each] for each in made if each == "spec"} == spec


SPOILING = """
@fnop.on.mutate("xs.example.com", operations=[{operation!r}])
def spoilt(spec, patch, **_):
    patch.spec["size"] = "large"
"""


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_a_mutation_that_spoils_a_write_is_a_finding(
    operation: str, tmp_path: Path
) -> None:
    code = SPOILING.format(operation=operation)
    several, _ = cases(tmp_path, code, x(size=1), CRD)
    assert alarms(several)["create"] == {"accepted"}


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_a_script_goes_on_without_what_a_mutation_spoils(
    operation: str, tmp_path: Path
) -> None:
    code = SPOILING.format(operation=operation)
    script = (apply(x(size=1)), edit("xs/x", spec={"size": 2}))
    case = case_of(tmp_path, code, size=1)._replace(script=script, made_up=False)
    kept, notes = sound([Explorer(case)])
    assert [each.case for each in kept] == [case]
    assert any(each.startswith("spoilt (") for each in notes)


def test_a_script_of_what_is_not_there_is_a_mistake_beside_a_denial(
    tmp_path: Path,
) -> None:
    code = SMALL.format(raises=RAISES[0])
    script = (apply(x(size=500)), edit("xs/other", spec={"size": 2}))
    case = case_of(tmp_path, code, size=1)._replace(script=script, made_up=False)
    with pytest.raises(CheckProblem, match="other"):
        sound([Explorer(case)])


# Of each handler: the properties that a run without such an object cannot show.
UNASKED = {
    "a value of a field": (
        '@fnop.on.mutate("xs.example.com", field="spec.tags", value=["rare"])',
        {"updatable", "idempotent", "accepted", "traceless"},
    ),
    "a kind without an object": (
        '@fnop.on.validate("deployments.apps", operations=["UPDATE"])',
        {"updatable", "traceless", "steady"},
    ),
    "a label's value": (
        '@fnop.on.validate("xs.example.com", labels={"tier": "gold"})',
        {"deletable", "updatable", "traceless", "steady"},
    ),
    "each object": ('@fnop.on.mutate("xs.example.com")', set()),
    "deletions": ('@fnop.on.validate("xs.example.com", operations=["DELETE"])', set()),
    "a status": ('@fnop.on.validate("xs.example.com", subresource="status")', set()),
}


@pytest.mark.parametrize("sort", UNASKED)
def test_nothing_is_known_of_a_handler_that_is_never_asked(
    sort: str, tmp_path: Path
) -> None:
    decorator, laws = UNASKED[sort]
    code = f"{SERVES}\n{decorator}\ndef asked(**_):\n    pass\n"
    several, _ = cases(tmp_path, code, x(size=1), CRD)
    campaign = Campaign(several)
    _, notes = sound(campaign.explorers)
    tasks = [each for each in campaign.tasks() if not each.schedule]
    report = campaign.report(campaign.run(tasks), tasks)
    assert {each for each in report.unsure if each in OF_ADMISSION} == laws
    assert any("is never asked" in each for each in notes) == bool(laws)
    assert all(": asked" in report.unsure[each] for each in laws)


INDEX = """
@fnop.index("configmaps")
def maps(name, **_):
    return {name: name}

@fnop.on.validate("xs.example.com", operations=["DELETE"])
"""
# Deletion rules by what else is there, and the words for what is not judged.
BLIND = {
    "what an index has protects": (
        """
def kept(name, maps=fnop.INDEX, **_):
    if maps.get(name):
        raise fnop.Denied("its ConfigMap is there")
""",
        "",
    ),
    "a label lifts it": (
        """
def kept(labels, maps=fnop.INDEX, **_):
    if "force" not in labels and len(maps) < 99:
        raise fnop.Denied("there are too few")
""",
        "",
    ),
    "what an index lacks protects": (
        """
def kept(name, maps=fnop.INDEX, **_):
    if not maps.get(f"{name}-gone"):
        raise fnop.Denied("it was not released")
""",
        "maps",
    ),
    "what is not stored protects": (
        """
async def kept(name, **_):
    if await fnop.get("secrets", name="release") is None:
        raise fnop.Denied("it was not released")
""",
        "secrets",
    ),
}


@pytest.mark.parametrize("rule", BLIND)
def test_a_rule_of_deletions_by_what_else_is_there_is_told(
    rule: str, tmp_path: Path
) -> None:
    code, words = BLIND[rule]
    several, _ = cases(tmp_path, SERVES + INDEX + code.strip(), x(size=1), CRD)
    assert alarms(several) == {}
    campaign = Campaign(several)
    _, notes = sound(campaign.explorers)
    tasks = [each for each in campaign.tasks() if not each.schedule]
    report = campaign.report(campaign.run(tasks), tasks)
    assert ("deletable" in report.unsure) == bool(words)
    told = [each for each in notes if f"is not judged: it reads {words}" in each]
    assert bool(told) == bool(words)


def test_a_label_that_its_user_removes_protects(tmp_path: Path) -> None:
    code = """
@fnop.on.validate("xs.example.com", operations=["DELETE"], labels={"keep": "yes"})
def kept(**_):
    raise fnop.Denied("it is kept")
"""
    given = x(size=1)
    meta = {**given["metadata"], "labels": {"keep": "yes"}}
    several, _ = cases(tmp_path, SERVES + code, {**given, "metadata": meta}, CRD)
    assert alarms(several[:1]) == {}


def test_a_new_rule_is_tried_on_what_the_former_code_admits(tmp_path: Path) -> None:
    former = case_of(tmp_path, "", size=5).program
    strict = tmp_path / "strict"
    strict.mkdir()
    code = """
@fnop.on.validate("xs.example.com", operations=["CREATE", "UPDATE"], ratcheting=False)
def small(spec, **_):
    if spec.get("size", 0) > 5:
        raise fnop.Denied("it is too large", field="spec.size")
"""
    case = case_of(strict, code, size=5)
    assert alarms([case]) == {}
    assert alarms([case._replace(former=former)]) == {"create": {"updatable"}}


def test_pods_that_the_run_does_not_make_are_tried(tmp_path: Path) -> None:
    code = """
@fnop.on.mutate("pods", operations=["CREATE"], labels={"inject": "yes"})
def injected(spec, patch, **_):
    more = {"name": f"more-{len(spec['containers'])}", "image": "more"}
    patch.spec["containers"] = [*spec["containers"], more]
"""
    assert found(tmp_path, code) == {"idempotent"}


def test_the_time_of_a_change_may_be_noted(tmp_path: Path) -> None:
    code = """
@fnop.on.mutate("xs.example.com")
def dated(patch, now, **_):
    patch.metadata.annotations["example.com/at"] = now.isoformat()
"""
    assert found(tmp_path, code, size=1) == set()


OUTAGES = {"F23:down", "F23:slow"}


def test_the_user_tries_again_while_webhooks_are_not_reached(tmp_path: Path) -> None:
    case = case_of(tmp_path, MEANT["defaults, and what must not shrink"], size=1)
    (action,) = case.script
    case = case._replace(script=(action, edit("xs/x", spec={"size": 2})))
    explorer = Explorer(case)
    outages = [e for e in explorer.singles() if e[0].kind.name in OUTAGES]
    assert {each[0].kind.name for each in outages} == OUTAGES
    for schedule in outages:
        trial = explorer.played(schedule)
        assert trial.journal.reviews.unanswered
        assert not trial.journal.refused
        assert not explorer.verdict_of(trial, schedule).violations


def test_ignored_failures_let_a_write_go_on_without_its_mutation(
    tmp_path: Path,
) -> None:
    code = """
@fnop.on.mutate("xs.example.com", ignore_failures=True)
def sized(spec, patch, **_):
    if "tags" not in spec:
        patch.spec["tags"] = ["x"]
"""
    explorer = Explorer(case_of(tmp_path, code, size=1))
    site = Site(Place.REST, "", "", "0")
    schedule = (Fault(BY_NAME["F23:down"], site),)
    trial = explorer.played(schedule)
    (found,) = trial.run.cluster.shelves["example.com", "xs"].values()
    assert "tags" not in found["spec"]
    assert not explorer.verdict_of(trial, schedule).violations


def test_operators_without_admission_have_no_such_faults(tmp_path: Path) -> None:
    several, _ = cases(tmp_path, SERVES, x(size=1), CRD)
    case = several[0]._replace(script=(apply(x(size=1)),))
    kinds = {fault.kind.name for (fault,) in Explorer(case).singles()}
    assert not kinds & OUTAGES
