"""The examples, in the simulated cluster."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.commands import Done, fnop, pytest_of
from tests.example_scenarios import PHASE, STORIES, Story, annotation, told, unmet
from tests.simulated_world import SimulatedWorld
from tests.simulations import (
    ROOT,
    example_calls,
    example_handlers,
    is_definition,
    manifests_of,
)

# The command's cluster runs pods; the servers that play the stories have no kubelet.
RUNNING = {
    "08-event-spies": (annotation("pods", "watched", PHASE, "Running"),),
    "19-database": (told("databases", "Ready", "True", "Replicas"),),
}
EXAMPLES = sorted(path.parent.name for path in ROOT.glob("examples/*/example.py"))


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.example)
def test_the_example_does_what_it_says(story: Story) -> None:
    world = SimulatedWorld(
        example_handlers(story.example),
        [each for each in manifests_of(story.example) if is_definition(each)],
        calls=example_calls(story.example),
    )
    for step in story.steps:
        step.does(world)
        world.expect(step.expected)


@dataclass(frozen=True)
class Printed:
    """The output of a command, as a picture of the cluster and the log."""

    done: Done

    def get(
        self, kind: str, name: str, namespace: str | None = None
    ) -> dict[str, Any] | None:
        for each in self.objects(kind):
            place = each["metadata"].get("namespace", "default")
            if (place, each["metadata"]["name"]) == (namespace or "default", name):
                return each
        return None

    def objects(self, kind: str) -> list[dict[str, Any]]:
        return [
            each for each in self.done.documents if each["kind"].lower() + "s" == kind
        ]

    @property
    def lines(self) -> list[str]:
        return self.done.err.splitlines()


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.example)
def test_its_first_step_is_what_the_command_prints(
    story: Story, tmp_path: Path
) -> None:
    folder = ROOT / "examples" / story.example
    models = folder / "models.py"
    calls = ("--calls", models) if models.exists() else ()
    done = fnop(
        # What repeats is shown once, and each time with -v.
        *("run", folder / "example.py", "-v", "--simulate", folder / "object.yaml"),
        *calls,
        folder=tmp_path,
    )
    assert done.status == (1 if story.failing else 0), done
    printed, otherwise = Printed(done), RUNNING.get(story.example, ())
    assert unmet(otherwise, printed) == [], done
    assert len(unmet(story.steps[0].expected, printed)) == len(otherwise), done


def test_every_example_has_a_story() -> None:
    assert [story.example for story in STORIES] == EXAMPLES


@pytest.mark.parametrize("name", EXAMPLES)
def test_its_readme_shows_commands_that_exist(name: str) -> None:
    folder = ROOT / "examples" / name
    text = (folder / "README.md").read_text()
    docstring = (folder / "example.py").read_text().partition('"""')[2]
    assert docstring.partition('"""')[0] in text
    for file in ("example.py", "object.yaml"):
        assert f"examples/{name}/{file}" in text


TESTED = ["09-testing", "22-admission", "23-logs", "24-cluster"]


@pytest.mark.parametrize("name", TESTED)
def test_the_tests_of_an_example_pass(name: str) -> None:
    """In a process of their own: they import their operator as an author's tests do."""
    # Without this project's settings of pytest, which are for other plugins, too.
    done = pytest_of("-c", os.devnull, f"examples/{name}", folder=ROOT)
    assert done.status == 0, done.out


MODELS = ROOT / "examples" / "17-models"


def shown_in(readme: Path, command: str = "run") -> list[list[str | Path]]:
    """The commands of fnop that a README shows, as their arguments."""
    lines = [line.strip() for line in readme.read_text().splitlines()]
    return [
        [ROOT / each if "/" in each else each for each in line.split()[1:]]
        for line in lines
        if line.startswith(f"fnop {command} ")
    ]


def test_the_models_of_an_example_stand_for_the_world(tmp_path: Path) -> None:
    with_models, without = (
        fnop(*command, folder=tmp_path) for command in shown_in(MODELS / "README.md")
    )
    assert with_models.status == 0, with_models
    (order,) = with_models.documents
    assert order["status"]["total"] == {"euro": 6.5}
    assert order["status"]["mail"] == 202
    assert "again in 30 s" in with_models.err
    assert without.status == 1
    assert "orders:price_of is not simulated" in without.err
    assert "orders:announce is not simulated" in without.err


TYPED = ROOT / "examples" / "18-definitions"


def test_the_definition_of_an_example_is_what_its_types_say(tmp_path: Path) -> None:
    printing, checking = shown_in(TYPED / "README.md", "crd")
    assert printing[2:] == [">", "crd.yaml"]
    printed = fnop(*printing[:2], folder=tmp_path)
    assert (printed.status, printed.err) == (0, "")
    assert printed.out == (TYPED / "crd.yaml").read_text()
    checked = fnop(*checking, folder=tmp_path)
    assert (checked.status, checked.out, checked.err) == (0, "", "")


@pytest.mark.parametrize("name", ["19-database", "21-records", "23-logs"])
def test_the_classes_of_an_example_say_what_its_manifest_says(
    name: str, tmp_path: Path
) -> None:
    """They differ in one thing: the classes name the fields of the status, too."""
    done = fnop("crd", ROOT / "examples" / name / "example.py", folder=tmp_path)
    assert (done.status, done.err) == (0, "")
    (printed,) = done.documents
    (version,) = printed["spec"]["versions"]
    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
    assert status.pop("properties")
    assert [printed] == [each for each in manifests_of(name) if is_definition(each)]


def test_an_operator_of_a_typed_kind_sees_what_the_server_fills_in(
    tmp_path: Path,
) -> None:
    simulated, _ = shown_in(TYPED / "README.md")
    done = fnop(*simulated, folder=tmp_path)
    assert done.status == 0, done
    by_kind = {each["kind"]: each for each in done.documents}
    assert by_kind["Database"]["spec"]["backup"]["keep"] == 7
    assert by_kind["Database"]["status"]["replicas"] == 1
    assert by_kind["ConfigMap"]["data"]["user.bob"] == "read"


def test_no_fault_raises_an_alarm_about_the_typed_kind(tmp_path: Path) -> None:
    (command,) = shown_in(TYPED / "README.md", "check")
    done = fnop(*command, "--budget", "60", "-q", folder=tmp_path)
    assert done.status == 0, done
