"""Objects of one name: each life of it, and who has written what in it."""

from __future__ import annotations

from typing import Any

from fnop.adapters.story_report import written
from fnop.core.api.resources import Resource
from fnop.core.history.provenance import Provenance
from fnop.core.values.paths import parse_path

RESOURCE = Resource("", "v1", "configmaps", "ConfigMap")
PATH = parse_path("data.size")


def step(
    uid: str, version: str, size: str, manager: str, type: str = "MODIFIED"
) -> dict[str, Any]:
    """The step in which a version is shown, of an object in one of its lives."""
    fields: dict[str, Any] = {"f:data": {"f:size": {}}}
    entry = {"manager": manager, "operation": "Update", "fieldsV1": fields}
    meta = {"name": "x", "namespace": "n", "uid": uid, "resourceVersion": version}
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**meta, "managedFields": [entry]},
        "data": {"size": size},
    }
    input = {"in": "WatchEvent", "stream": 1, "type": type, "body": body}
    return {"input": input, "commands": [], "wall": 0.0, "mono": 0.0}


def told(*steps: dict[str, Any], manager: str = "me") -> Provenance:
    found = Provenance(RESOURCE, "n", "x", manager)
    for each in steps:
        found.add(each)
    return found


def test_each_life_of_an_object_has_its_writers() -> None:
    provenance = told(
        step("u-1", "5", "1", "alice", "ADDED"),
        step("u-1", "6", "2", "bob"),
        step("u-1", "7", "2", "bob", "DELETED"),
        step("u-2", "8", "2", "carol", "ADDED"),
        step("u-2", "9", "3", "carol"),
    )
    changes = provenance.changes(PATH)
    assert [(e.value, e.shown.body.uid, *e.managers) for e in changes] == [
        ("1", "u-1", "alice"),
        ("2", "u-1", "bob"),
        ("2", "u-2", "carol"),
        ("3", "u-2", "carol"),
    ]
    # The question of now is about the last life.
    why = provenance.why(PATH)
    assert why is not None
    assert (why.value, why.former) == ("3", "2")


def test_a_write_without_an_answer_is_the_operators_own_by_its_name() -> None:
    own = told(step("u-1", "5", "1", "me", "ADDED")).why(PATH)
    assert own is not None
    assert "by this operator, with a request that is not recorded" in written(own, {})
    other = told(step("u-1", "5", "1", "alice", "ADDED")).why(PATH)
    assert other is not None
    assert "by somebody else; managers of the field: alice" in written(other, {})
    # Nobody knows the operator's name.
    nameless = told(step("u-1", "5", "1", "me", "ADDED"), manager="").why(PATH)
    assert nameless is not None
    assert "by somebody else" in written(nameless, {})
