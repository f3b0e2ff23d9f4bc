"""Managed fields that a manager has lost, and the owners of an object."""

from typing import Any

import pytest

from fnop.core.children.fields import lost_fields, managers_of
from fnop.core.children.owned import OWNER_ANNOTATION, Children, Owner, owners_of
from fnop.core.values.body import Body

ME = "fnop.dev/default"


def live(fields: dict[str, Any], **entry: Any) -> dict[str, Any]:
    ours = {"manager": ME, "operation": "Apply", "fieldsV1": fields, **entry}
    spec = {"replicas": 1, "memory": "1Gi"}
    return {"metadata": {"managedFields": [ours]}, "spec": spec}


PORTS = {
    "f:spec": {
        "f:ports": {
            'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:name": {}}
        },
        "f:selector": {},
        "f:replicas": {},
        "f:memory": {},
        "f:args": {'v:"a"': {}},
    },
    "f:metadata": {"f:labels": {"f:app": {}}},
}


@pytest.mark.parametrize(
    ("manifest", "lost"),
    [
        pytest.param({"spec": {"ports": [{"port": 80}]}}, [], id="a key's default"),
        pytest.param(
            {"spec": {"ports": [{"port": 80, "protocol": "UDP"}]}},
            ["spec.ports[0].port", "spec.ports[0].protocol"],
            id="another key",
        ),
        pytest.param(
            {"spec": {"ports": [{"port": 80, "nodePort": 1}]}},
            ["spec.ports[0].nodePort"],
            id="a field of an element",
        ),
        pytest.param({"spec": {"selector": {"a": "b"}}}, [], id="owned as a whole"),
        pytest.param({"spec": {"replicas": 3}}, ["spec.replicas"], id="another number"),
        pytest.param({"spec": {"replicas": 1}}, [], id="the same number"),
        pytest.param({"spec": {"memory": "1024Mi"}}, [], id="another form"),
        pytest.param({"spec": {"args": ["a"]}}, [], id="an element of a set"),
        pytest.param({"spec": {"args": ["a", "b"]}}, ["spec.args[1]"], id="another"),
        pytest.param({"spec": {"x": None}}, [], id="None is no field"),
        pytest.param({"data": {"a": {"b": 1}}}, ["data.a.b"], id="a tree that is gone"),
        pytest.param(
            {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "uid": "u"}},
            [],
            id="names of the object",
        ),
        pytest.param(
            {"metadata": {"name": "n", "labels": {"app": "x", "tier": "y"}}},
            ["metadata.labels.tier"],
            id="a label",
        ),
    ],
)
def test_fields_that_are_lost(manifest: dict[str, Any], lost: list[str]) -> None:
    assert lost_fields(manifest, live(PORTS), ME) == lost


def test_only_what_was_applied_to_the_object_itself_counts() -> None:
    manifest = {"metadata": {"labels": {"app": "x"}}}
    for other in ({"manager": "other"}, {"operation": "Update"}, {"subresource": "s"}):
        assert lost_fields(manifest, live(PORTS, **other), ME), other


@pytest.mark.parametrize("broken", [None, 1, "text", [], [1], [{"fieldsV1": "text"}]])
def test_malformed_managed_fields_are_none(broken: Any) -> None:
    found = {"metadata": {"managedFields": broken}}
    assert lost_fields({"data": {"a": "b"}}, found, ME) == ["data.a"]
    assert managers_of(found, "data.a") == []


def test_owners_by_references_and_by_the_annotation() -> None:
    reference = {"apiVersion": "v1", "kind": "K", "name": "o", "uid": "u"}
    marks = {OWNER_ANNOTATION: "Tenant.example.com//acme/u-2"}
    body = Body({"metadata": {"ownerReferences": [reference], "annotations": marks}})
    assert owners_of(body) == (
        Owner("u", "", "K", "", "o"),
        Owner("u-2", "example.com", "Tenant", "", "acme"),
    )


@pytest.mark.parametrize("mark", ["", "a/b", "a/b/c/d/e", 1, None])
@pytest.mark.parametrize("references", [None, 1, [1], [{}], [{"uid": ""}]])
def test_malformed_owners_are_none(mark: Any, references: Any) -> None:
    meta = {"ownerReferences": references, "annotations": {OWNER_ANNOTATION: mark}}
    assert owners_of(Body({"metadata": meta})) == ()


def test_a_kind_that_is_not_owned_is_told() -> None:
    with pytest.raises(
        KeyError, match="owns= does not name 'pods'; it names 'secrets'"
    ):
        Children({"secrets": {}})["pods"]


@pytest.mark.parametrize("given", [{}, {"data": {}}])
def test_what_is_empty_may_be_dropped(given: dict[str, Any]) -> None:
    """API servers drop empty mappings and lists of built-in kinds (`omitempty`)."""
    manifest = {"data": {}, "metadata": {"labels": {"app": "a"}}}
    found = {**live({"f:metadata": {"f:labels": {"f:app": {}}}}), **given}
    assert lost_fields(manifest, found, ME) == []


# Kubernetes 1.20: the managed fields of a Deployment that was applied with this spec,
# and of a NetworkPolicy; after merge patches of the same fields by another client.
DEFAULTS = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3}}
SURGE: dict[str, Any] = {"f:strategy": {"f:rollingUpdate": {"f:maxSurge": {}}}}


@pytest.mark.parametrize(
    ("spec", "present", "theirs", "lost"),
    [
        pytest.param({"strategy": {}}, DEFAULTS, {}, [], id="defaults"),
        pytest.param({"strategy": {}}, DEFAULTS, SURGE, [], id="fields of others"),
        pytest.param(
            {"strategy": {"rollingUpdate": {}}}, DEFAULTS, SURGE, [], id="below"
        ),
        pytest.param(
            {"podSelector": {}},
            {"matchLabels": {"a": "b"}},
            {"f:podSelector": {}},
            ["spec.podSelector"],
            id="replaced as a whole",
        ),
    ],
)
def test_an_empty_mapping_is_lost_to_who_has_it_as_a_whole(
    spec: dict[str, Any], present: Any, theirs: dict[str, Any], lost: list[str]
) -> None:
    found = live({"f:spec": {"f:selector": {}}})
    found["metadata"]["managedFields"].append(
        {"manager": "o", "operation": "Update", "fieldsV1": {"f:spec": theirs}}
    )
    found["spec"] = dict.fromkeys(spec, present)
    assert lost_fields({"spec": spec}, found, ME) == lost


def test_an_empty_list_is_lost_to_who_fills_it() -> None:
    manifest: dict[str, Any] = {"subjects": []}
    assert lost_fields(manifest, {**live({}), "subjects": [{"name": "x"}]}, ME) == [
        "subjects"
    ]
    assert lost_fields(manifest, live({}), ME) == []


# Kubernetes 1.36, custom resource, a field with x-kubernetes-preserve-unknown-fields;
# after a merge patch {"spec": {"any": {"x": {"y": 2}}}} by another client.
UNTYPED = {
    "metadata": {
        "managedFields": [
            {
                "manager": ME,
                "operation": "Apply",
                "fieldsV1": {"f:spec": {"f:any": {"f:x": {}}}},
            },
            {
                "manager": "kubectl-patch",
                "operation": "Update",
                "fieldsV1": {"f:spec": {"f:any": {"f:x": {"f:y": {}}}}},
            },
        ]
    },
    "spec": {"any": {"x": {"y": 2}}},
}


# Kubernetes 1.20, custom resource, `m` is a map of texts: each map has its own item
# there, `".": {}`, which is written `{}` when it is the last one.
TYPED = {
    "metadata": {
        "managedFields": [
            {"manager": ME, "operation": "Apply", "fieldsV1": {"f:spec": {"f:m": {}}}},
            {
                "manager": "kubectl-patch",
                "operation": "Update",
                "fieldsV1": {"f:spec": {"f:m": {"f:a": {}}}},
            },
        ]
    },
    "spec": {"m": {"a": "theirs"}},
}


@pytest.mark.parametrize(
    ("manifest", "live", "path"),
    [
        pytest.param(
            {"spec": {"any": {"x": {"y": 1}}}}, UNTYPED, "spec.any.x.y", id="1.36"
        ),
        pytest.param({"spec": {"m": {"a": "b"}}}, TYPED, "spec.m.a", id="1.20"),
    ],
)
def test_the_last_field_of_a_mapping_is_lost(
    manifest: Any, live: Any, path: str
) -> None:
    assert lost_fields(manifest, live, ME) == [path]


def test_who_has_changed_a_key_with_a_dot() -> None:
    entry = {
        "manager": "kubectl",
        "operation": "Update",
        "fieldsV1": {"f:data": {"f:app.conf": {}}},
    }
    live = {"metadata": {"managedFields": [entry]}, "data": {"app.conf": "2"}}
    (path,) = lost_fields({"data": {"app.conf": "1"}}, live, ME)
    assert managers_of(live, path) == ["kubectl"]
