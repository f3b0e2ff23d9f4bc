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


def planned(
    folder: Path,
    *objects: dict[str, Any],
    more: tuple[str, ...] = ("-o", "json"),
    operator: str = OPERATOR,
) -> Done:
    write(folder, "operator_with_kopf.py", operator)
    cluster = SimulatedCluster()
    cluster.apply([DEFINITION, *objects])
    with cluster.serve() as served:
        done = fnop(
            *("plan", "--kopf", "operator_with_kopf.py", *more),
            folder=folder,
            variables={"KUBECONFIG": str(served.kubeconfig)},
        )
    assert not (folder / "called").exists(), "handlers of objects do not run"
    return done


TAKEOVER = ("-o", "json", "--takeover")


def test_handled_objects_are_not_handled_again(tmp_path: Path) -> None:
    done = planned(tmp_path, handled("x", {"size": 1}), more=TAKEOVER)
    assert done.status == 0, done
    found = json.loads(done.out)
    assert (found["takeover"], found["due"], found["calls"]) == ([], [], [])


def test_a_misspelt_namespace_is_no_good_news(tmp_path: Path) -> None:
    done = planned(tmp_path, more=("--takeover", "-n", "defualt"))
    assert done.status == 3, done
    assert "--takeover: the namespace defualt does not exist" in done.err


def test_handlers_of_new_and_changed_objects_are_listed_with_their_places(
    tmp_path: Path,
) -> None:
    objects = (example("new", size=1), handled("changed", {"size": 2}))
    done = planned(tmp_path, *objects, more=TAKEOVER)
    assert done.status == 0, done
    found = json.loads(done.out)
    assert found["takeover"] == []
    assert {
        (each["why"], each["reason"], each["handler"], each["line"], place["name"])
        for each in found["due"]
        for place in each["objects"]
    } == {
        ("first", "create", "handle", "operator_with_kopf.py:12", "new"),
        ("first", "update", "handle", "operator_with_kopf.py:12", "changed"),
    }
    assert {each["object"]["name"] for each in found["calls"]} == {"new", "changed"}


def test_an_object_whose_state_is_not_found_is_handled_again_and_fails(
    tmp_path: Path,
) -> None:
    moved = handled("moved", {"size": 1})
    del moved["metadata"]["finalizers"]
    operator = OPERATOR.replace("AnnotationsDiffBase", "StatusDiffBase").replace(
        'prefix="my.example.com"', ""
    )
    done = planned(tmp_path, moved, more=("--takeover",), operator=operator)
    assert done.status == 3, done
    assert "handlers would be called again: handle" in done.err
    assert "would be called again for the creation of" in done.out


def test_changes_of_an_object_whose_state_is_not_found_fail(tmp_path: Path) -> None:
    changed = handled("changed", {"size": 2})
    operator = OPERATOR.replace('prefix="my', 'prefix="other')
    done = planned(tmp_path, changed, more=("--takeover",), operator=operator)
    assert done.status == 3, done
    assert "objects whose state is not found: 1" in done.err
    assert "changes until now are not handled for fnopexamples.fnop.dev/ch" in done.out
    assert "no handler would be called again" not in done.out


def test_writes_that_kopf_makes_for_itself_are_bookkeeping(tmp_path: Path) -> None:
    stale = handled("stale", {"size": 1})
    kopf = "kopf.zalando.org"
    reverted = {"purpose": "update", "retries": 1, "success": False}
    stale["metadata"]["annotations"] |= {
        f"{kopf}/touch-dummy": "now",
        f"{kopf}/handle": json.dumps(reverted),
    }
    unheld = handled("unheld", {"size": 1})
    del unheld["metadata"]["finalizers"]
    gate = ("--takeover", "--fail-on", "change")
    done = planned(tmp_path, stale, unheld, more=gate)
    assert done.status == 0, done
    assert "~ bookkeeping: state " in done.out
    assert "~ bookkeeping: finalizer added" in done.out
    assert "0 to change, 0 to delete, 2 bookkeeping only. " in done.out


INDEXED = """
import kopf

@kopf.index("fnopexamples")
def sizes(name, spec, **_):
    return {name: spec["size"]}

@kopf.on.create("fnopexamples", when=lambda name, sizes, **_: 1 in sizes[name])
def chosen(**_):
    pass

@kopf.on.update("fnopexamples", field="metadata.name")
def renamed(**_):
    pass
"""


def test_filters_see_indices_and_fields_that_handlers_name_are_compared(
    tmp_path: Path,
) -> None:
    essence = json.dumps({"spec": {"size": 1}, "metadata": {"name": "known"}})
    known = example("known", size=1)
    known["metadata"]["annotations"] = {
        "kopf.zalando.org/last-handled-configuration": essence
    }
    objects = (example("one", size=1), example("two", size=2), known)
    done = planned(tmp_path, *objects, more=TAKEOVER, operator=INDEXED)
    assert done.status == 0, done
    assert [
        (each["why"], each["handler"], [place["name"] for place in each["objects"]])
        for each in json.loads(done.out)["due"]
    ] == [("first", "chosen", ["one"])]


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
