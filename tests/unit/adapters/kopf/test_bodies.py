"""Objects as handlers of Kopf see them: live, read-only, and dicts for libraries."""

from __future__ import annotations

import copy
import doctest
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from fnop.adapters.kopf.arguments import bodies
from fnop.adapters.kopf.arguments.bodies import (
    Body,
    Cell,
    MappingView,
    Meta,
    Spec,
    Status,
    view_at,
)

theirs = pytest.importorskip("kopf")

SAMPLE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "a",
        "namespace": "default",
        "uid": "u1",
        "labels": {"app": "db"},
        "annotations": {"note": "x"},
        "creationTimestamp": "2020-01-01T00:00:00Z",
        "deletionTimestamp": "2020-01-02T00:00:00Z",
    },
    "spec": {"containers": [{"image": "i"}], "size": 1},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
FEW = settings(max_examples=15)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "name": st.text(max_size=4),
                "labels": st.dictionaries(st.text(max_size=3), st.text(max_size=3)),
                "annotations": st.dictionaries(st.text(max_size=3), st.text()),
            },
        ),
        "spec": st.dictionaries(st.text(max_size=4), JSON, max_size=3),
        "status": st.dictionaries(st.text(max_size=4), JSON, max_size=3),
    },
)


def test_the_examples_in_the_docstrings_hold() -> None:
    found = doctest.testmod(bodies)
    assert found.attempted
    assert found.failed == 0


@FEW
@given(OBJECTS)
def test_the_views_show_what_those_of_kopf_show(data: dict[str, Any]) -> None:
    ours, kopf = Body(data), theirs.Body(data)
    for name in ("metadata", "meta", "spec", "status"):
        assert dict(getattr(ours, name)) == dict(getattr(kopf, name))
    for name in ("labels", "annotations"):
        assert dict(getattr(ours.meta, name)) == dict(getattr(kopf.meta, name))
    assert ours.meta.name == kopf.meta.name
    assert ours == data == dict(kopf)
    assert len(ours) == len(kopf)
    assert [*ours] == [*kopf]


def test_the_metadata_have_attributes_as_in_kopf() -> None:
    names = ("uid", "name", "namespace", "creation_timestamp", "deletion_timestamp")
    for data in (SAMPLE, {}):
        ours, kopf = Body(data).metadata, theirs.Body(data).metadata
        assert [getattr(ours, n) for n in names] == [getattr(kopf, n) for n in names]


@pytest.mark.parametrize(
    ("cls", "stanza"), [(Meta, "metadata"), (Spec, "spec"), (Status, "status")]
)
def test_a_stanza_of_a_body_of_a_cell_and_of_an_object(
    cls: Callable[[Any], MappingView], stanza: str
) -> None:
    wanted = SAMPLE.get(stanza, {})
    for source in (Body(SAMPLE), Cell(SAMPLE), SAMPLE):
        assert cls(source) == wanted
    assert cls({"other": 1}) == {}
    assert cls({stanza: None}) == {}
    assert cls({stanza: ["no", "mapping"]}) == {}


LIBRARIES: dict[str, Callable[[Any], Any]] = {
    "json": lambda value: json.loads(json.dumps(value)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "dict": dict,
    "own copy": lambda value: value.copy(),
    "stars": lambda value: {**value},
    "or": lambda value: value | {},
    "or on the right": lambda value: {} | value,
    "update": lambda value: _updated({}, value),
}


def _updated(target: dict[str, Any], value: Any) -> dict[str, Any]:
    target.update(value)
    return target


@pytest.mark.parametrize("name", LIBRARIES)
@FEW
@given(data=OBJECTS)
def test_libraries_make_plain_dicts_of_views(name: str, data: dict[str, Any]) -> None:
    body = Body(data)
    for view in (body, body.meta, body.meta.labels, body.spec, body.status):
        made = LIBRARIES[name](view)
        assert type(made) is dict
        assert made == dict(view)


def test_libraries_see_what_is_newest() -> None:
    cell = Cell({"spec": {"size": 1}})
    view = Body(cell).spec
    for size, (name, make) in enumerate(LIBRARIES.items(), start=2):
        cell.data = {"spec": {"size": size}}
        assert make(view) == {"size": size}, name


@pytest.mark.parametrize("dump", [yaml.dump, yaml.safe_dump])
def test_yaml_shows_views_as_mappings(dump: Callable[[Any], str]) -> None:
    body = Body(SAMPLE)
    assert dump(body) == dump(SAMPLE)
    given = {"spec": body.spec, "labels": [body.meta.labels]}
    wanted = {"spec": SAMPLE["spec"], "labels": [{"app": "db"}]}
    assert dump(given) == dump(wanted)


def test_views_follow_the_newest_object() -> None:
    cell = Cell({"spec": {"size": 1}, "metadata": {"labels": {"a": "1"}}})
    body = Body(cell)
    spec, labels = body.spec, body.metadata.labels
    cell.data = {"spec": {"size": 2, "more": 3}, "metadata": {"labels": {"b": "2"}}}
    assert spec["size"] == 2
    assert spec.get("more") == 3
    assert "more" in spec
    assert len(spec) == 2
    assert [*spec] == ["size", "more"]
    assert {*spec.keys()} == {"size", "more"}
    assert {*spec.values()} == {2, 3}
    assert {*spec.items()} == {("size", 2), ("more", 3)}
    assert spec == {"size": 2, "more": 3}
    assert spec != {"size": 2}
    assert repr(labels) == "{'b': '2'}"
    cell.data = {}
    assert not spec
    assert not labels


def test_an_access_looks_for_the_newest_object() -> None:
    sizes = iter(range(100))
    cell = Cell({})

    def look() -> None:
        cell.data = {"spec": {"size": next(sizes)}}

    cell.look = look
    spec = Body(cell).spec
    first = spec["size"]
    assert spec["size"] == first + 1


@pytest.mark.parametrize(
    "write",
    [
        lambda view: view.__setitem__("a", 1),
        lambda view: view.__delitem__("size"),
        lambda view: view.clear(),
        lambda view: view.pop("size"),
        lambda view: view.popitem(),
        lambda view: view.setdefault("a", 1),
        lambda view: view.update({"a": 1}),
        lambda view: view.__ior__({"a": 1}),
    ],
    ids=["set", "delete", "clear", "pop", "popitem", "setdefault", "update", "ior"],
)
def test_views_refuse_writes_and_name_the_remedy(write: Callable[[Any], Any]) -> None:
    view = Body(SAMPLE).spec
    with pytest.raises(TypeError, match=r"Spec is read-only; .* patch"):
        write(view)
    assert view == SAMPLE["spec"]


def test_a_copy_can_be_changed_alone() -> None:
    body = Body(SAMPLE)
    made = copy.deepcopy(body)
    made["spec"]["containers"].append({})
    assert len(body.spec["containers"]) == 1


def test_a_view_is_not_hashable_as_a_dict() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Body({}))


def test_a_view_of_any_depth() -> None:
    cell = Cell(SAMPLE)
    assert view_at(cell, "metadata", "labels") == {"app": "db"}
    assert view_at(cell, "metadata", "name", "deeper") == {}
