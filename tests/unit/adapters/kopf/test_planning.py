"""`fnop plan --kopf`: what a Kopf operator would do on a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fnop.adapters.testing.cluster_fixture import SimulatedCluster
from tests.commands import Done, fnop, write
from tests.simulations import DEFINITION, example

OPERATOR = """
import pathlib
import kopf

@kopf.on.startup()
async def configure(settings, **_):
    settings.persistence.finalizer = "my.example.com/finalizer"
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(
        prefix="my.example.com"
    )

@kopf.on.create("fnopexamples")
@kopf.on.update("fnopexamples")
def handle(**_):
    pathlib.Path("called").touch()

@kopf.on.delete("fnopexamples")
def delete(**_):
    pathlib.Path("called").touch()
"""
FINALIZER = "my.example.com/finalizer"
LAST = "my.example.com/last-handled-configuration"


def handled(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """An object as the operator has left it, when its spec was `spec`."""
    found = example(name, size=1)
    note = {LAST: json.dumps({"spec": spec}) + "\n"}
    meta = {**found["metadata"], "annotations": note, "finalizers": [FINALIZER]}
    return {**found, "metadata": meta}


def planned(folder: Path, *objects: dict[str, Any], more: tuple[str, ...] = ()) -> Done:
    write(folder, "operator_with_kopf.py", OPERATOR)
    cluster = SimulatedCluster()
    cluster.apply([DEFINITION, *objects])
    with cluster.serve() as served:
        done = fnop(
            *("plan", "--kopf", "operator_with_kopf.py", "-o", "json", *more),
            folder=folder,
            variables={"KUBECONFIG": str(served.kubeconfig)},
        )
    assert not (folder / "called").exists(), "only startup handlers run"
    return done


def test_handled_objects_are_not_handled_again(tmp_path: Path) -> None:
    done = planned(tmp_path, handled("x", {"size": 1}), more=("--takeover",))
    assert done.status == 0, done
    found = json.loads(done.out)
    assert (found["takeover"], found["calls"]) == ([], [])


def test_handlers_of_new_and_changed_objects_are_listed_with_their_places(
    tmp_path: Path,
) -> None:
    objects = (example("new", size=1), handled("changed", {"size": 2}))
    done = planned(tmp_path, *objects, more=("--takeover",))
    assert done.status == 3, done
    found = json.loads(done.out)
    [again] = found["takeover"]
    assert [each["name"] for each in again["objects"]] == ["changed"]
    assert (again["handler"], again["line"]) == ("handle", "operator_with_kopf.py:12")
    assert {each["object"]["name"] for each in found["calls"]} == {"new", "changed"}


@pytest.mark.parametrize("option", [("-l", "a=b"), ("--state-key-file", "/dev/null")])
def test_options_of_fnops_own_state_are_refused(
    tmp_path: Path, option: tuple[str, ...]
) -> None:
    done = planned(tmp_path, more=option)
    assert done.status == 1
    assert "has no --selector and no --state-key-file" in done.err


def test_an_operator_that_does_not_start_has_no_plan(tmp_path: Path) -> None:
    text = OPERATOR.replace(
        "    settings.pers", "    raise kopf.PermanentError(1)\n#", 1
    )
    write(tmp_path, "broken.py", text)
    done = fnop("plan", "--kopf", "broken.py", folder=tmp_path)
    assert done.status == 1
    assert "the startup handler configure has failed: 1" in done.err
