"""Definitions that simulations take from the classes of an operator's kinds."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import find

import fnop
from fnop.adapters.definitions.class_kinds import definitions_for
from fnop.adapters.definitions.classes import definitions_of
from fnop.adapters.definitions.problems import DefinitionProblem
from fnop.testing import Simulation, checks, create, explore, manifests, review
from tests.commands import fnop as command
from tests.patience import patience
from tests.simulations import ROOT


@dataclass
class Old:
    size: int = 1


@dataclass
class New:
    size: Annotated[int, fnop.schema(maximum=9)] = 2
    colour: str = "green"


@fnop.definition("vases.v1beta1.shop.example.com", storage=False)
@dataclass
class Vase:
    spec: Old = field(default_factory=Old)


@fnop.definition("vases.v1.shop.example.com", kind="Vase", storage=True)
@dataclass
class VaseOfToday:
    spec: New = field(default_factory=New)


@fnop.definition("oxen.v1.shop.example.com", kind="Ox", short_names=["pods"])
@dataclass
class Ox:
    spec: New = field(default_factory=New)


@fnop.definition("halves.v1.shop.example.com")
@dataclass
class Half:
    spec: dict[int, str]


VASES, OXEN = "vases.shop.example.com", "oxen.shop.example.com"
VASE = {
    "apiVersion": "shop.example.com/v1",
    "kind": "Vase",
    "metadata": {"name": "x"},
    "spec": {},
}


def of_another_group(plural: str) -> dict[str, Any]:
    """A definition of a kind that only has the plural of another one."""
    (found,) = definitions_of([VaseOfToday])
    found["metadata"]["name"] = f"{plural}.example.org"
    names = {"plural": plural, "singular": plural, "kind": plural.title()}
    found["spec"].update(group="example.org", names=names)
    return found


Declare = Callable[[fnop.Registry], Callable[[Any], Any]]


@pytest.mark.parametrize(
    ("declare", "names"),
    [
        (lambda r: fnop.on.create(VaseOfToday, registry=r), [VASES]),
        (lambda r: fnop.on.create(Vase, registry=r), [VASES]),
        (lambda r: fnop.on.create("vases", registry=r), [VASES]),
        (lambda r: fnop.on.create(kind="Ox", registry=r), [OXEN]),
        (lambda r: fnop.on.create("v*.shop.example.com", registry=r), [VASES]),
        (lambda r: fnop.on.create("v*.shop.example.org", registry=r), []),
        (lambda r: fnop.on.event("pods", owner=Vase, registry=r), [VASES]),
        (lambda r: fnop.reconcile("pods", owns=[Ox], registry=r), [OXEN]),
        (lambda r: fnop.maps("configmaps", to=Ox, registry=r), [OXEN]),
        # These are names of built-in kinds, or no names.
        (lambda r: fnop.on.create("pods", registry=r), []),
        (lambda r: fnop.on.event(fnop.EVERYTHING, registry=r), []),
        (lambda r: fnop.on.event(lambda resource: True, registry=r), []),
        (lambda r: fnop.on.startup(registry=r), []),
    ],
)
def test_the_kinds_that_handlers_name_are_defined(
    declare: Declare, names: list[str]
) -> None:
    registry = fnop.Registry()

    def handler(**_: Any) -> Any: ...

    declare(registry)(handler)
    found = definitions_for(registry.handlers, ())
    assert [each["metadata"]["name"] for each in found] == names


def on_create(*words: Any) -> fnop.Registry:
    """A registry whose one handler has a result of what the spec is."""
    registry = fnop.Registry()

    @fnop.on.create(*words, id="told", registry=registry)
    def told(spec: Any, **_: Any) -> Any:
        return dict(spec)

    return registry


def test_a_simulation_takes_the_definition_from_the_class_with_all_versions() -> None:
    sim = Simulation(on_create(VaseOfToday), objects=VASE).settle()
    assert sim["vases/x"].status["told"] == {"size": 2, "colour": "green"}
    old = {**VASE, "apiVersion": "shop.example.com/v1beta1", "metadata": {"name": "y"}}
    sim.apply(old).settle()
    assert sim["vases/y"].status["told"] == {"size": 1, "colour": "green"}
    with pytest.raises(AssertionError, match=r"spec\.size"):
        sim.edit("vases/x", spec={"size": 10})


def test_what_is_made_for_one_simulation_is_not_changed_by_another() -> None:
    handlers = on_create(Ox).handlers
    (first,) = definitions_for(handlers, ())
    first["spec"].clear()
    (second,) = definitions_for(handlers, ())
    assert second["spec"]["group"] == "shop.example.com"


@pytest.mark.parametrize("where", ["crds", "objects"])
def test_a_given_definition_wins_with_its_versions(where: str) -> None:
    (given,) = definitions_of([Vase, VaseOfToday])
    (version,) = [each for each in given["spec"]["versions"] if each["name"] == "v1"]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["default"] = {"size": 7}
    given["spec"]["versions"] = [version]
    body = {key: each for key, each in VASE.items() if key != "spec"}
    crds, objects = ([given], [body]) if where == "crds" else ([], [given, body])
    sim = Simulation(on_create(VaseOfToday), crds=crds, objects=objects).settle()
    assert sim["vases/x"].status["told"] == {"size": 7, "colour": "green"}
    old = {**VASE, "apiVersion": "shop.example.com/v1beta1", "metadata": {"name": "y"}}
    with pytest.raises(AssertionError, match="v1beta1"):
        sim.apply(old)


def test_a_short_name_that_a_given_definition_has_is_left_to_it() -> None:
    handlers = on_create("vases").handlers
    assert definitions_for(handlers, [of_another_group("vases")]) == []
    assert definitions_for(handlers, [of_another_group("jugs")])


def test_with_faults_the_class_counts_too() -> None:
    sim = Simulation(on_create(VaseOfToday), objects=VASE, faults=[])
    assert sim.settle()["vases/x"].status["told"]["colour"] == "green"


def test_the_explorers_take_the_class() -> None:
    explore(on_create(VaseOfToday), create(VASE), budget=3).must("same_end", "settles")
    found = checks(on_create(Ox), budget=1)
    assert {each.case.definitions[0]["metadata"]["name"] for each in found} == {OXEN}


def test_a_review_takes_the_class() -> None:
    registry = fnop.Registry()

    @fnop.on.validate(Ox, id="heavy", registry=registry)
    def heavy(**_: Any) -> None: ...

    body = {"apiVersion": "shop.example.com/v1", "kind": "Ox", "metadata": {}}
    assert review(registry, None, body).asked == ("heavy",)


def test_a_class_that_cannot_be_defined_fails_what_needs_it_alone() -> None:
    registry, why = on_create(Half), r"Half\.spec"
    with pytest.raises(DefinitionProblem, match=why):
        Simulation(registry)
    with pytest.raises(AssertionError, match=why):
        explore(registry, create(VASE))
    with pytest.raises(AssertionError, match=why):
        checks(registry)
    assert Simulation(on_create("vases")).settle().settled


def test_objects_are_drawn_from_a_class_by_its_own_version() -> None:
    found = find(manifests(Vase), lambda each: True)
    assert found["apiVersion"] == "shop.example.com/v1beta1"
    assert "colour" not in found.get("spec", {})
    low = find(manifests(VaseOfToday), lambda each: each.get("spec", {}).get("size", 0))
    assert low["spec"]["size"] <= 9
    with pytest.raises(DefinitionProblem, match="New is not a kind"):
        manifests(New)


# ------------------------------------------------------------------------- commands

KINDS = """
from dataclasses import dataclass
import fnop

@dataclass
class JugSpec:
    size: int = 3

@fnop.definition("jugs.v1.shop.example.com")
@dataclass
class Jug:
    spec: JugSpec
"""
OPERATOR = """
from kinds import Jug
import fnop

@fnop.on.create(Jug)
def told(spec, **_):
    return spec["size"]
"""
JUG = """
apiVersion: shop.example.com/v1
kind: Jug
metadata: {name: x}
spec: {}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "kinds.py").write_text(KINDS)
    (tmp_path / "op.py").write_text(OPERATOR)
    (tmp_path / "jug.yaml").write_text(JUG)
    return tmp_path


def test_commands_take_the_definition_from_the_class(project: Path) -> None:
    ran = command("run", "op.py", "--simulate", "jug.yaml", folder=project)
    assert ran.status == 0, ran
    assert ran.documents[0]["status"]["told"] == 3
    tried = command("check", "op.py", "--budget", "1", "--fast", folder=project)
    assert "took the definition of jugs.shop.example.com from its class" in tried.err
    assert "made up a definition" not in tried.err


def test_commands_show_why_a_class_cannot_be_defined(project: Path) -> None:
    broken = KINDS.replace("size: int", "size: complex")
    (project / "kinds.py").write_text(broken)
    calls = [
        ("run", "op.py", "--simulate", "jug.yaml"),
        ("check", "op.py"),
        ("rbac", "op.py"),
    ]
    for each in calls:
        done = command(*each, folder=project)
        assert done.status == 2, done
        assert "JugSpec.size" in done.err


def test_nothing_is_imported_for_an_operator_without_classes() -> None:
    script = (
        "import sys\n"
        "from fnop.testing import Simulation\n"
        "folder = 'examples/01-minimal/'\n"
        "Simulation(folder + 'example.py', crds=folder + 'object.yaml').settle()\n"
        "assert 'fnop.adapters.definitions.classes' not in sys.modules\n"
    )
    subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, check=True, timeout=patience(20)
    )
