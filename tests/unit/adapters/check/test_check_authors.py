"""An author's parts of a check are used, or reported as wrong: nothing is ignored."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fnop.adapters.cli.main import main
from fnop.adapters.testing.exploring import Check
from fnop.core.handlers.declare.registry import default_registry
from fnop.testing import (
    Simulation,
    World,
    checks,
    crash,
    create,
    delete,
    edit,
    explore,
    fault,
    stabilise,
)
from tests.checks import (
    BUGGY,
    CALLING,
    CRD,
    FIXED,
    OBJECT,
    called,
    folder as folder,
    operator,
)
from tests.commands import fnop as command, pytest_of
from tests.long import parameters

HEAD = f"from fnop.testing import apply, edit, expect, delete\nX = {OBJECT}\n"
OPTIONS = ("--crd", "crd.yaml", "--script", "own.py", "--without", "pure")


def with_spec(**schema: Any) -> dict[str, Any]:
    """The definition with a schema of the spec, which is required."""
    found: dict[str, Any] = json.loads(json.dumps(CRD))
    whole = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    whole["properties"]["spec"] = {"type": "object", **schema}
    return found


NARROW = with_spec(properties={"size": {"type": "integer", "maximum": 5}})


def checked(folder: Path, script: str, *more: str, source: str = FIXED) -> Any:
    (folder / "own.py").write_text(HEAD + script)
    return called(operator(folder, source), *OPTIONS, *more)


CREATES = """
import fnop

@fnop.on.create("xs.example.com")
def made(spec, **_):
    return fnop.patch(status={"size": spec["size"]})
"""


EDITS = CREATES.replace("on.create", "on.update").replace("made", "edited")


@pytest.mark.parametrize("source", [CREATES, CREATES + EDITS])
def test_that_no_script_edits_is_told(folder: Path, source: str) -> None:
    found = called(operator(folder, source), "--without", "pure", "--budget", "12")
    assert found.exit_code == 0, found.output
    is_told = "no script edits an object: no handler is called for" in found.stderr
    assert is_told == (source == CREATES)


NEVER = """
@fnop.on.validate("xs.example.com")
def never(**_):
    raise fnop.Denied("xs are over")
"""
PICKY = """
@fnop.on.validate("xs.example.com")
def picky(spec, old, **_):
    if old and old["spec"] != spec:
        raise fnop.Denied("xs stay as they are")
"""
ONE = CREATES.replace('spec["size"]}', '{1: "one"}[spec["size"]]}')
SIZES = {"size": {"type": "integer"}}
REQUIRED = with_spec(properties=SIZES, required=["size"])
FIXED_SPEC = with_spec(
    properties=SIZES,
    required=["size"],
    **{
        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "it stays"}]
    },
)
EMPTY_SPEC = with_spec(properties={})


@pytest.mark.parametrize(
    ("source", "definition", "why"),
    [
        (CREATES, CRD, "no handler is called for its changes; --script"),
        (CREATES + EDITS, FIXED_SPEC, "each change that was tried is refused (PATCH "),
        (CREATES + EDITS, FIXED_SPEC, "it stays); --script takes one of yours"),
        (CREATES + PICKY, CRD, "xs stay as they are); --script"),
        (CREATES + NEVER, NARROW, "the operator itself denies it (POST "),
        (CREATES + NEVER, NARROW, "xs are over); give another object with --object"),
        (ONE + EDITS, REQUIRED, "serves none of its changes (KeyError: 2); --script"),
        (EDITS, EMPTY_SPEC, "it has no field that can be changed; --script"),
    ],
)
def test_the_reason_is_told_why_no_script_edits(
    folder: Path, source: str, definition: dict[str, Any], why: str
) -> None:
    (folder / "crd.yaml").write_text(json.dumps(definition))
    if definition is EMPTY_SPEC:
        (folder / "object.yaml").write_text(json.dumps({**OBJECT, "spec": {}}))
    if definition is NARROW:  # an object that is given is tried as a stored one
        (folder / "object.yaml").unlink()
    found = called(operator(folder, source), "--budget", "1", "--property", "total")
    (line,) = (e for e in found.stderr.splitlines() if "no script edits" in e)
    assert why in line


@pytest.mark.filterwarnings("ignore")
def test_a_test_warns_of_what_the_command_tells(folder: Path) -> None:
    (folder / "object.yaml").unlink()
    file = operator(folder, CREATES + NEVER)
    told = called(file, "--budget", "1").stderr
    with pytest.warns(UserWarning, match="no script edits an object: the") as warned:
        found = World(file, crds=CRD).checks()
    sentences = [str(each.message) for each in warned]
    assert "denies `apply X x` of the script 'create', which goes on " in sentences[1]
    assert all(f"fnop: {each}\n" in told for each in sentences)
    assert {each.filename for each in warned} == {__file__}
    found[0]()  # no property is violated: the warning alone says that little is known


def test_a_test_of_an_operator_that_ignores_edits_needs_no_warning(
    folder: Path,
) -> None:
    assert checks(operator(folder, CREATES), crds=CRD, objects=OBJECT)


def test_an_exploration_warns_of_an_action_that_the_operator_denies(
    folder: Path,
) -> None:
    file = operator(folder, CREATES + NEVER)
    with pytest.warns(UserWarning, match="never .* denies `apply X x`") as warned:
        explore(file, create(OBJECT), crds=CRD, budget=1)
    assert [each.filename for each in warned] == [__file__]


def test_an_entry_of_the_history_that_names_nothing_is_told(folder: Path) -> None:
    entries = "HISTORY = ('xs/', 'secrets/x-', 'nodes/')"
    script = f"SCRIPTS = {{'it': [apply(X)]}}\n{entries}"
    found = checked(folder, script, "--budget", "3", "--property", "history")
    (first, second) = (e for e in found.stderr.splitlines() if "HISTORY" in e)
    assert "HISTORY has 'xs/', and no script ends with such an object" in first
    assert first.endswith("; did you mean 'xs.example.com/'?")
    assert "HISTORY has 'nodes/'" in second


# --------------------------------------------------------------- refused actions


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (
            "[apply({'apiVersion': 'a.b/v1', 'kind': 'Q', 'metadata': {'name': 'q'}})]",
            "the cluster serves no Q of a.b/v1; give its definition with crds= (--crd)",
        ),
        ("[apply(X), edit('xs/nope', spec={'size': 2})]", '"nope" not found'),
        ("[apply(X), edit('ys/x', spec={'size': 2})]", "serves no kind 'ys'"),
        ("[apply(X), delete('xs/nope')]", "name what is there by then"),
        ("[apply(X), edit('xs/x', spec={'size': 9})]", "less than or equal to 5"),
        ("[apply({**X, 'spec': {'size': 9}})]", "let the script do what the cluster"),
    ],
)
def test_a_script_that_the_cluster_refuses_is_a_wrong_call(
    folder: Path, script: str, reason: str
) -> None:
    (folder / "crd.yaml").write_text(json.dumps(NARROW))
    found = checked(folder, f"SCRIPTS = {{'it': {script}}}", "--budget", "3")
    assert found.exit_code == 2, found.output
    assert "fnop: the cluster refuses `" in found.stderr
    assert reason in found.stderr


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("[apply([X])]", "apply(...) takes one manifest, a dict, not a list"),
        ("[apply(X), wait(-5)]", "wait(-5): no time goes back; seconds are >= 0"),
        (
            "[apply(X)]}\n@expect('xs')\ndef is_there(x):\n    return {True",
            "@expect('xs'): is_there takes the object, and the world around it: "
            "def is_there(obj, world)",
        ),
    ],
)
def test_an_action_that_is_none_has_a_sentence(
    folder: Path, script: str, sentence: str
) -> None:
    head = "from fnop.testing import wait\n"
    found = checked(folder, f"{head}SCRIPTS = {{'it': {script}}}", "--budget", "3")
    assert found.exit_code == 2, found.output
    assert sentence in found.stderr


def test_an_action_under_faults_alone_may_be_refused(folder: Path) -> None:
    """A crash keeps the child from being made that the user deletes."""
    script = "SCRIPTS = {'it': [apply(X), delete('secrets/x-b')]}"
    found = checked(folder, script, "--budget", "30", "--property", "total")
    assert found.exit_code == 0, found.output


def test_what_is_refused_is_not_explored(folder: Path) -> None:
    bad = operator(folder, BUGGY)
    with pytest.raises(AssertionError, match=r"serves no X of example\.com/v1"):
        explore(bad, create(OBJECT))
    large = {**OBJECT, "spec": {"size": 9}}
    with pytest.raises(AssertionError, match="less than or equal to 5"):
        explore(bad, create(large), crds=NARROW)
    with pytest.raises(AssertionError, match="no apiVersion: a manifest is a dict"):
        explore(bad, create({"kind": "X"}), crds=NARROW)


def test_what_is_refused_under_faults_as_without_fails_the_test(folder: Path) -> None:
    file = operator(folder, BUGGY)
    large = {**OBJECT, "spec": {"size": 9}}
    faults = [crash.at_rest(1)]
    sim = Simulation(file, crds=NARROW, faults=faults).apply(large).settle()
    with pytest.raises(AssertionError, match="less than or equal to 5"):
        sim.heal()
    # Without faults it is reported at once: so a refusal is tested.
    with pytest.raises(AssertionError, match="less than or equal to 5"):
        Simulation(file, crds=NARROW).apply(large)


def test_a_script_that_is_refused_is_no_benign_one(folder: Path) -> None:
    """Even if it ends before the refusal is requested."""
    sim = Simulation(operator(folder, BUGGY), crds=NARROW, faults=[])
    sim.apply(OBJECT).delete("xs/nope").settle()
    with pytest.raises(AssertionError, match='"nope" not found'):
        sim.must_equal_benign()


LOCKS = """
import fnop

@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
def locked(spec, patch, **_):
    patch.status["locked"] = spec["size"]
"""


def test_a_made_up_edit_that_the_operator_forbids_is_left_out(folder: Path) -> None:
    """Only once the status says so: that is not known when scripts are made up."""
    rule = "!has(oldSelf.status) || self.spec.size == oldSelf.spec.size"
    sizes = {"type": "object", "properties": {"size": {"type": "integer"}}}
    definition = json.loads(json.dumps(CRD))
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"] = {"spec": sizes, "status": schema["properties"]["status"]}
    schema["x-kubernetes-validations"] = [{"rule": rule, "message": "it is locked"}]
    (folder / "crd.yaml").write_text(json.dumps(definition))
    file = operator(folder, LOCKS)
    found = called(file, "--without", "pure", "--budget", "10")
    assert found.exit_code == 0, found.output
    assert "left out the script 'edit spec.size': PATCH" in found.stderr
    assert "it is locked" in found.stderr
    assert "of 3 scripts" in found.stdout


# ------------------------------------------------------------------ nothing known


def test_an_exploration_of_nothing_is_no_success(folder: Path) -> None:
    good = operator(folder, FIXED)
    with pytest.raises(ValueError, match="there is no action to explore"):
        explore(good, crds="crd.yaml")
    none = explore(good, create(OBJECT), crds="crd.yaml", budget=0)
    with pytest.raises(AssertionError, match="nothing is known of "):
        none.must(stabilise)
    benign = explore(good, create(OBJECT), crds="crd.yaml", budget=1)
    with pytest.raises(AssertionError, match="nothing is known of "):
        benign.must(stabilise)
    with pytest.raises(AssertionError, match="charge is not simulated; give a model"):
        explore(operator(folder, CALLING, "calls"), create(OBJECT), crds="crd.yaml")


def test_nothing_comes_after_healing(folder: Path) -> None:
    sim = Simulation(operator(folder, FIXED), crds="crd.yaml", faults=[])
    sim.apply(OBJECT).settle().heal().must_equal_benign()
    sim.settle().heal().must_equal_benign()  # there is nothing more to do
    with pytest.raises(AssertionError, match=r"`delete xs/x` comes after heal\(\)"):
        sim.delete("xs/x")
    with pytest.raises(AssertionError, match=r"comes after heal\(\)"):
        sim.wait(5)


# ---------------------------------------------------------------------- hash seeds


def ordered(*words: str) -> str:
    return FIXED.replace('"ab"', f"{{{', '.join(map(repr, words))}}}")


@pytest.mark.parametrize("seed", parameters(["1", "random"], ["1"]))
def test_the_verdict_on_orders_does_not_depend_on_the_own_hash_seed(
    folder: Path, seed: str
) -> None:
    file = operator(folder, ordered("red", "blue"))
    limits = ("--property", "pure", "--budget", "3", "-q")
    found = command(
        *("check", file, *limits), variables={"PYTHONHASHSEED": seed}, folder=folder
    )
    assert found.status == 1
    assert "goes otherwise under another PYTHONHASHSEED: a handler" in found.out


def test_the_places_of_objects_in_memory_are_no_order_of_a_set(folder: Path) -> None:
    file = operator(
        folder, FIXED.replace('f"{name}-{each}"', 'f"{name}-{id(object())}"')
    )
    limits = ("--property", "pure", "--budget", "3", "-q")
    found = command("check", file, *limits, folder=folder)
    assert found.status == 1
    assert "goes otherwise in another process: a handler depends on id()" in found.out


# ------------------------------------------------------------- what stands in a file


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("HISTORY = 'pods/'", "HISTORY is not a tuple of texts but 'pods/'"),
        ("HISTORY = ('pods/', '')", "HISTORY is not a tuple of texts"),
        ("GIVEN = [{'kind': 'Secret'}]", "GIVEN[0] has no apiVersion: a manifest is"),
        ("GIVEN = X", "GIVEN is not a list of manifests"),
        ("CRDS = 'crd.yaml'", "CRDS is not a list of manifests"),
        ("CRDS = ['crd.yaml']", "CRDS[0] is not a manifest but 'crd.yaml'"),
        ("RIVALS = [print]", "RIVALS is not a dict from kinds to functions"),
        ("RIVALS = {'secrets': 5}", "RIVALS is not a dict from kinds to functions"),
        ("CALLS = [print]", "is not a mapping from functions"),
        ("SCRIPT = [apply({'kind': 'X'})]", "that SCRIPT applies has no apiVersion"),
    ],
)
def test_what_is_of_a_wrong_type_is_told(
    folder: Path, text: str, complaint: str
) -> None:
    found = checked(folder, text, "--budget", "3")
    assert found.exit_code == 2, found.output
    assert complaint in found.stderr
    assert found.stderr.count("\n") == 1 + found.stderr.count("fnop: made up")


@pytest.mark.parametrize(
    ("rival", "complaint"),
    [
        (
            "{'secrets': lambda found: 1 / 0}",
            "RIVALS['secrets'] raises ZeroDivisionError: division by zero (own.py, ",
        ),
        ("{'secrets': lambda found: 'x'}", "RIVALS['secrets'] answers 'x'; let it"),
        ("{'secretz': lambda found: None}", "RIVALS['secretz']: the cluster serves no"),
    ],
)
def test_a_rival_that_can_do_nothing_is_told(
    folder: Path, rival: str, complaint: str
) -> None:
    found = checked(folder, f"SCRIPT = [apply(X)]\nRIVALS = {rival}", "--budget", "3")
    assert found.exit_code == 2, found.output
    assert complaint in found.stderr


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_rival_that_fails_under_a_fault_is_told(folder: Path, jobs: str) -> None:
    """The fault labels the child, and the rival cannot do with that."""
    rival = "lambda found: {} if 'annotations' not in found['metadata'] else 1 / 0"
    text = f"SCRIPT = [apply(X)]\nRIVALS = {{'secrets': {rival}}}"
    found = checked(folder, text, "--jobs", jobs)
    assert found.exit_code == 2, found.output
    assert "RIVALS['secrets'] raises ZeroDivisionError" in found.stderr


def test_a_rival_that_fails_is_told_by_fnop_rbac(folder: Path) -> None:
    text = "SCRIPT = [apply(X)]\nRIVALS = {'secrets': lambda found: 1 / 0}"
    (folder / "own.py").write_text(HEAD + text)
    with default_registry.set_aside():
        found = CliRunner().invoke(
            main, ["rbac", operator(folder, FIXED), *OPTIONS[:-2], "-n", "default"]
        )
    assert found.exit_code == 2, found.output
    assert "RIVALS['secrets'] raises ZeroDivisionError" in found.stderr


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("{'apiVersion': 'v1', 'kind': 'Sercet', 'metadata': {'name': 's'}}", "Sercet"),
        (
            "{'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'name': 'S'}}",
            "RFC 1123",
        ),
    ],
)
def test_what_is_given_and_refused_is_told(
    folder: Path, given: str, complaint: str
) -> None:
    text = f"SCRIPT = [apply(X)]\nGIVEN = [{given}]"
    found = checked(folder, text, "--budget", "3")
    assert found.exit_code == 2, found.output
    assert complaint in found.stderr
    assert "(as GIVEN, --crd or --object)" in found.stderr


OLD = "{**X, 'metadata': {'name': 'old'}}"


@pytest.mark.parametrize(
    "script",
    [
        "SCRIPT = [edit('xs/old', metadata={'labels': {'a': 'b'}})]",
        "SCRIPT = [apply(X), delete('xs/old')]",
        "",  # those that are made up
    ],
    ids=["edit", "delete", "made up"],
)
def test_a_given_object_of_a_served_kind_is_there(folder: Path, script: str) -> None:
    text = f"{script}\nGIVEN = [{OLD}]"
    found = checked(folder, text, "--budget", "12")
    assert found.exit_code == 0, found.output
    assert "not found" not in found.stderr


def test_a_check_in_a_test_has_what_is_given(folder: Path) -> None:
    text = f"SCRIPT = [edit('xs/old', spec={{'size': 2}})]\nGIVEN = [{OLD}]"
    (folder / "own.py").write_text(HEAD + text)
    found = checks(operator(folder, FIXED), crds="crd.yaml", script="own.py", budget=3)
    assert found


def test_a_rival_is_named_as_in_kubectl(folder: Path) -> None:
    text = "RIVALS = {'secret': lambda found: 1 / 0}\nSCRIPT = [apply(X)]"
    found = checked(folder, text, "--budget", "3")
    assert "RIVALS['secret'] raises ZeroDivisionError" in found.stderr


# -------------------------------------------------------------------- expectations

RAISING = """
@expect('xs.example.com')
def has_both(x, world):
    return world['secrets/x-a'] and world['secrets/x-b']
"""


def test_an_expectation_that_raises_without_faults_is_a_wrong_call(
    folder: Path,
) -> None:
    text = f"SCRIPT = [apply(X)]\n{RAISING.replace('x-b', 'x-c')}"
    found = checked(folder, text, "--budget", "5")
    assert found.exit_code == 2, found.output
    words = "the expectation has_both itself raises KeyError: 'secrets/x-c' (own.py, "
    assert f"{words}line 7) for xs.example.com/x; let it answer False" in found.stderr


def test_an_expectation_that_raises_under_a_fault_is_told_as_its_own_error(
    folder: Path,
) -> None:
    limits = ("--budget", "5", "--property", "matches")
    found = checked(folder, f"SCRIPT = [apply(X)]\n{RAISING}", *limits, source=BUGGY)
    assert found.exit_code == 1, found.output
    words = "matches: the expectation has_both itself raises KeyError: 'secrets/x-b'"
    assert f"{words} (own.py, line 7)" in found.stdout


# --------------------------------------------------------------------- pytest items


def test_only_sorts_with_schedules_have_checks(folder: Path) -> None:
    found = checks(operator(folder, FIXED), crds="crd.yaml", objects="object.yaml")
    codes = {each.code for each in found}
    assert {"", "F1", "F10", "F14"} <= codes
    assert codes.isdisjoint({"F15", "F17", "F20", "F21"})
    assert "create-F13" not in {e.__name__ for e in found}  # it takes another action


def test_special_faults_fail_where_they_are_asked_for(folder: Path) -> None:
    former = operator(folder, FIXED.replace("{each}", "{each}-old"), "former")
    given: dict[str, Any] = {"crds": "crd.yaml", "objects": "object.yaml"}
    found = checks(
        operator(folder, FIXED), **given, former=former, special=True, budget=60
    )
    by_name = {each.__name__: each for each in found}
    with pytest.raises(AssertionError, match="by special faults"):
        by_name["create-F15"]()


def test_the_scripts_of_a_file_are_spread(folder: Path) -> None:
    (folder / "own.py").write_text(
        f"{HEAD}CRDS = [{CRD}]\nSCRIPTS = {{'one': [apply(X)], 'two': [apply(X)]}}\n"
        "RIVALS = {'secrets': lambda found: None}\nHISTORY = ('secrets/',)\n"
        "@expect('xs')\ndef never(x, world):\n    return False\n"
    )
    (folder / "former.py").write_text(FIXED)
    file = operator(folder, FIXED)
    found = checks(file, script="own.py", former="former.py")
    assert {each.case.name for each in found} == {"one", "two"}
    assert "one-F20" in {each.__name__ for each in found}
    case = found[0].case
    assert ([*case.rivals], case.history) == (["secrets"], ("secrets/",))
    with pytest.raises(AssertionError, match="never does not hold for xs/x"):
        found[0]()


def test_a_budget_is_of_each_script(folder: Path) -> None:
    found = checks(
        operator(folder, FIXED), crds="crd.yaml", objects="object.yaml", budget=4
    )
    by_script: dict[str, list[Check]] = {}
    for each in found:
        by_script.setdefault(each.case.name, []).append(each)
    assert {*by_script} == {"create", "delete", "delete and recreate"}
    assert all(sum(len(e.tasks) for e in one) == 4 for one in by_script.values())


def test_a_script_is_explored_with_what_stands_in_a_file(folder: Path) -> None:
    (folder / "own.py").write_text(
        f"{HEAD}CRDS = [{CRD}]\nSCRIPTS = {{'no': [delete('xs/no')]}}\n"
        "CALLS = {'charge': lambda who: None}\n"
        "@expect('xs')\ndef never(x, world):\n    return False\n"
    )
    file = operator(folder, CALLING)
    found = explore(file, create(OBJECT), script="own.py", budget=3)
    assert found.case.name == "script"
    with pytest.raises(AssertionError, match="never does not hold for xs/x"):
        found.must("matches")
    own = explore(
        file, create(OBJECT), script="own.py", calls={"charge": len}, budget=1
    )
    assert own.case.calls.get("op:charge") is len


def test_former_code_is_explored(folder: Path) -> None:
    former = FIXED.replace("{name}-{each}", "{name}-{each}-old")
    old = operator(folder, former, "old")
    found = explore(
        operator(folder, FIXED), create(OBJECT), crds="crd.yaml", former=old
    )
    with pytest.raises(AssertionError, match="the former code"):
        found.must(stabilise)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda file: checks(file, script="own.py"),
        lambda file: explore(file, create(OBJECT), script="own.py"),
        lambda file: Simulation(file, faults=[], script="own.py"),
    ],
)
def test_a_file_that_is_wrong_is_told_in_tests(
    folder: Path, wrong: Callable[[str], Any]
) -> None:
    (folder / "own.py").write_text("HISTORY = 'pods/'\n")
    with pytest.raises(AssertionError, match="HISTORY is not a tuple of texts"):
        wrong(operator(folder, FIXED))


def test_sites_of_checks_are_those_of_faults(folder: Path) -> None:
    """Actions and faults of a test that goes on are the same as before."""
    faults = [fault("F13:after", "certify", create="secrets/x-a")]
    sim = Simulation(operator(folder, FIXED), crds="crd.yaml", faults=faults)
    sim.apply(OBJECT).edit("xs/x", spec={"size": 2}).settle().heal()
    sim.must_equal_benign()


# ------------------------------------------------------------------ made-up objects


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string", "pattern": "^[0-9]+(Gi|Mi)$"}, "1Gi"),
        ({"type": "string", "pattern": "^[^a]b?$", "minLength": 2}, "1b"),
        ({"type": "string", "format": "uuid"}, "123e4567-e89b-42d3-a456-426614174000"),
        ({"type": "string", "minLength": 3}, "xxx"),
        ({"type": "integer", "minimum": 3, "exclusiveMinimum": True}, 4),
        ({"type": "number", "maximum": 0, "exclusiveMaximum": True}, -1),
        ({"type": "integer", "minimum": 10, "multipleOf": 7}, 14),
        (
            {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "minProperties": 2,
            },
            {"x": "x", "x1": "x"},
        ),
    ],
)
def test_a_made_up_object_is_valid(
    folder: Path, schema: dict[str, Any], value: Any
) -> None:
    definition = with_spec(properties={"it": schema}, required=["it"])
    (folder / "crd.yaml").write_text(json.dumps(definition))
    (found, *_) = checks(operator(folder, FIXED), crds="crd.yaml")
    (made,) = found.case.script
    assert made == create({**OBJECT, "spec": {"it": value}})


def test_rules_of_several_fields_are_kept_by_what_is_drawn(folder: Path) -> None:
    number = {"type": "integer"}
    definition = with_spec(
        properties={"low": number, "high": number},
        required=["low", "high"],
        **{"x-kubernetes-validations": [{"rule": "self.low < self.high"}]},
    )
    file = operator(folder, FIXED)
    (folder / "crd.yaml").write_text(json.dumps(definition))
    found = checks(file, crds="crd.yaml", budget=1)[0].case.script[0]
    assert found == checks(file, crds="crd.yaml", budget=1)[0].case.script[0]
    spec = found.manifest["spec"]  # type: ignore[union-attr]
    assert spec["low"] < spec["high"]


def test_an_unmodelled_function_is_named_as_who_writes_a_model_names_it(
    folder: Path,
) -> None:
    file = operator(folder, CALLING)
    found = called(file, "--budget", "3")
    name = f"{Path(file).stem}:charge"
    assert f"fnop: {name} is not simulated" in found.stderr
    explored = explore(
        file, create(OBJECT), crds="crd.yaml", calls={name: lambda who: None}, budget=1
    )
    assert explored.report.tried == 1


def test_edits_and_deletions_are_explored(folder: Path) -> None:
    actions = create(OBJECT), edit("xs/x", spec={"size": 2}), delete("xs/x")
    explore(operator(folder, FIXED), *actions, crds="crd.yaml", budget=30).must()


def test_the_test_of_a_failure_finds_its_files(folder: Path) -> None:
    """Wherever it is put below them, and from wherever it is called."""
    (folder / "own.py").write_text(f"{HEAD}SCRIPT = [apply(X)]")
    file = operator(folder, BUGGY)
    limits = ("--budget", "60", "--property", "same_end")
    done = called(file, *OPTIONS[:-2], *limits)
    recording = done.stdout.partition("   recording ")[2].splitlines()[0]
    text = called("--as-test", recording).stdout
    below = folder / "tests" / "unit"
    below.mkdir(parents=True)
    (below / "test_found.py").write_text(text)
    told = pytest_of("test_found.py", folder=below).out
    assert "same_end: secrets/x-b is missing" in told, told
    (below / "test_lost.py").write_text(text.replace(file, "lost.py"))
    told = pytest_of("test_lost.py", folder=below).out
    assert "there is no lost.py beside test_lost.py, nor in a folder above" in told


# ------------------------------------------------------------------------ worlds


def test_the_calls_of_a_world_are_those_of_the_functions(folder: Path) -> None:
    file = operator(folder, BUGGY)
    world = World(file, crds=iter([CRD]), objects=iter([OBJECT]))
    alone = Simulation(file, crds=CRD, objects=OBJECT).settle()
    for _ in range(2):  # a world is not used up
        sim = world.simulate().settle()
        assert sim["xs/x"] == alone["xs/x"]
        assert sim.log == alone.log
    assert repr(world.checks()) == repr(checks(file, crds=CRD, objects=OBJECT))
    found = World(file, crds=CRD).explore(create(OBJECT), budget=3)
    other = explore(file, create(OBJECT), crds=CRD, budget=3)
    assert found.report.failures == other.report.failures


def test_a_world_has_its_script_and_former_code_for_faults_alone(
    folder: Path,
) -> None:
    (folder / "own.py").write_text("HISTORY = ('secrets/',)\n")
    file = operator(folder, FIXED)
    world = World(file, crds=CRD, script=folder / "own.py", former=file)
    assert world.simulate().settle().settled
    sim = world.simulate(faults=[])
    assert sim.apply(OBJECT).settle().settled


def test_rivals_of_a_world_act_in_its_simulations(folder: Path) -> None:
    def rival(body: dict[str, Any]) -> dict[str, Any]:
        return {"metadata": {"annotations": {"rival": "was here"}}}

    file = operator(folder, CREATES)
    world = World(file, crds=CRD, rivals={"xs": rival})
    sim = world.simulate(faults=[]).apply(OBJECT).settle()
    assert sim["xs/x"].annotations["rival"] == "was here"
