"""Functions for children: they change manifests in place, as those of Kopf do."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import Any, cast

import pytest
from hypothesis import given, settings, strategies as st

from fnop.adapters.kopf.arguments.bodies import Body
from fnop.adapters.kopf.declaring.context import CURRENT, CurrentCall
from fnop.adapters.kopf.running import hierarchies

theirs = pytest.importorskip("kopf")
client = pytest.importorskip("kubernetes_asyncio.client")

OWNER: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Shelf",
    "metadata": {
        "name": "oak",
        "namespace": "shop",
        "uid": "u1",
        "labels": {"app": "db", "tier": "back"},
    },
}
REFERENCE = {
    "apiVersion": "example.com/v1",
    "kind": "Shelf",
    "name": "oak",
    "uid": "u1",
    "controller": True,
    "blockOwnerDeletion": True,
}
LABELS = st.dictionaries(st.sampled_from(["app", "own"]), st.just("x"), max_size=2)
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "name": st.just("own"),
        "generateName": st.just("own-"),
        "namespace": st.just("elsewhere"),
        "labels": LABELS,
        "ownerReferences": st.lists(
            st.sampled_from([REFERENCE, {"uid": "other", "name": "x"}]), max_size=2
        ),
    },
)
MANIFESTS = st.fixed_dictionaries(
    {"kind": st.just("Job")},
    optional={
        "metadata": METADATA,
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "template": st.fixed_dictionaries({}, optional={"metadata": METADATA}),
            },
        ),
    },
)
FLAGS = st.fixed_dictionaries({"forced": st.booleans()})
NESTED = st.sampled_from(
    [
        None,
        "spec.template",
        ["spec.template"],
        [["spec", "template"]],
        ("spec.template", "spec.none"),
    ]
)
# For each function: strategies of its arguments after the manifests.
CALLS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "append_owner_reference": st.fixed_dictionaries(
        {"owner": st.just(OWNER)},
        optional={
            "controller": st.none() | st.booleans(),
            "block_owner_deletion": st.none() | st.booleans(),
        },
    ),
    "remove_owner_reference": st.just({"owner": OWNER}),
    "label": st.fixed_dictionaries(
        {"labels": LABELS | st.just({"none": None}), "forced": st.booleans()},
        optional={"nested": NESTED},
    ),
    "harmonize_naming": st.fixed_dictionaries(
        {"name": st.just("oak"), "forced": st.booleans(), "strict": st.booleans()}
    ),
    "adjust_namespace": st.fixed_dictionaries(
        {"namespace": st.none() | st.just("shop"), "forced": st.booleans()}
    ),
    "adopt": st.fixed_dictionaries(
        {
            "owner": st.just(OWNER) | st.just(Body(OWNER)),
            "forced": st.booleans(),
            "strict": st.booleans(),
        },
        optional={"nested": NESTED},
    ),
}


@pytest.mark.parametrize("name", CALLS)
@settings(max_examples=25)
@given(data=st.data())
def test_manifests_become_what_kopf_makes_of_them(name: str, data: Any) -> None:
    shapes = st.sampled_from(
        [lambda a, b: a, lambda a, b: [a, [b]], lambda a, b: (b, a)]
    )
    shape = data.draw(shapes)
    pair = data.draw(st.tuples(MANIFESTS, MANIFESTS))
    given = data.draw(CALLS[name])
    ours, kopf = copy.deepcopy(pair), copy.deepcopy(pair)
    assert getattr(hierarchies, name)(objs=shape(*ours), **given) is None
    getattr(theirs, name)(objs=shape(*kopf), **given)
    assert ours == kopf


def pod(**meta: Any) -> Any:
    return client.V1Pod(metadata=client.V1ObjectMeta(**meta) if meta else None)


MODELS = st.builds(
    pod,
    name=st.none() | st.just("own"),
    generate_name=st.none() | st.just("own-"),
    namespace=st.none() | st.just("elsewhere"),
    labels=st.none() | LABELS,
    owner_references=st.none()
    | st.just([])
    | st.builds(
        lambda uid: [
            client.V1OwnerReference(api_version="v1", kind="A", name="a", uid=uid)
        ],
        st.sampled_from(["u1", "other"]),
    ),
) | st.builds(pod)


@pytest.mark.parametrize("name", CALLS)
@settings(max_examples=15)
@given(data=st.data())
def test_models_of_clients_become_what_kopf_makes_of_them(name: str, data: Any) -> None:
    model = data.draw(MODELS)
    given = data.draw(CALLS[name])
    given.pop("nested", None)
    if None in (given.get("controller", 0), given.get("block_owner_deletion", 0)):
        return  # Kopf itself fails with a KeyError
    ours, kopf = copy.deepcopy(model), copy.deepcopy(model)
    getattr(hierarchies, name)([ours], **given)
    getattr(theirs, name)([kopf], **given)
    assert as_dict(ours) == as_dict(kopf)


def as_dict(model: Any) -> Any:
    return client.ApiClient.sanitize_for_serialization(_NO_CLIENT, model)


class _Sanitizer:
    """What the serialization of models needs of their client."""

    PRIMITIVE_TYPES = client.ApiClient.PRIMITIVE_TYPES

    def sanitize_for_serialization(self, value: Any) -> Any:
        return client.ApiClient.sanitize_for_serialization(self, value)


_NO_CLIENT = _Sanitizer()


def test_a_nested_model_is_labelled_in_place() -> None:
    template = client.V1PodTemplateSpec()
    spec = client.V1JobSpec(template=template)
    job = client.V1Job(spec=spec)
    hierarchies.label(job, {"app": "db"}, nested="spec.template")
    assert template.metadata.labels == {"app": "db"}
    assert job.metadata.labels == {"app": "db"}
    assert isinstance(template.metadata, client.V1ObjectMeta)


def test_a_model_gets_models_of_references() -> None:
    found = pod()
    hierarchies.append_owner_reference(found, OWNER)
    (reference,) = found.metadata.owner_references
    assert isinstance(reference, client.V1OwnerReference)
    assert (reference.uid, reference.block_owner_deletion) == ("u1", True)


class OfPykube:
    """An object of pykube, which has its manifest in `obj`."""

    def __init__(self, obj: dict[str, Any]) -> None:
        self.obj = obj


def test_objects_of_pykube_change_their_manifests() -> None:
    found, plain = OfPykube({"kind": "Pod"}), cast(Any, {"kind": "Pod"})
    hierarchies.adopt([found], OWNER)
    hierarchies.adopt(plain, OWNER)
    assert found.obj == plain
    assert plain["metadata"]["ownerReferences"] == [REFERENCE]


def test_labels_and_references_are_changed_in_place() -> None:
    labels, references = {"own": "1"}, [{"uid": "other"}]
    for module in (hierarchies, theirs):
        found = {"metadata": {"labels": labels, "ownerReferences": references}}
        module.adopt(found, OWNER)
        assert found["metadata"]["labels"] is labels
        assert found["metadata"]["ownerReferences"] is references
        assert len(references) == 2
        module.remove_owner_reference(found, OWNER)
        assert references == [{"uid": "other"}]
    assert labels == {"own": "1", "app": "db", "tier": "back"}


def test_adoption_twice_is_adoption_once() -> None:
    once: dict[str, Any] = {}
    hierarchies.adopt(once, OWNER, nested="spec.template")
    twice = copy.deepcopy(once)
    hierarchies.adopt(twice, OWNER, nested="spec.template")
    assert twice == once


@pytest.mark.parametrize("name", ["append_owner_reference", "label", "adopt"])
def test_nothing_is_nothing(name: str) -> None:
    given = {"labels": {}} if name == "label" else {"owner": OWNER}
    for module in (hierarchies, theirs):
        getattr(module, name)(None, **given)
        getattr(module, name)([None, []], **given)


@pytest.mark.parametrize(
    "wrong", [5, "text", b"bytes", object()], ids=["int", "text", "bytes", "object"]
)
def test_what_is_no_manifest_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match=type(wrong).__name__):
        hierarchies.label(wrong, {"a": "b"})


# ---------------------------------------------------------------- within a handler


def within(owner: Any, work: Callable[[], Any]) -> Any:
    """Do something as a handler of an object does it."""

    def run() -> Any:
        CURRENT.set(CurrentCall("a", owner, None))
        return work()

    return copy_context().run(run)


BY_HANDLER: list[tuple[str, dict[str, Any]]] = [
    ("append_owner_reference", {"owner": OWNER}),
    ("remove_owner_reference", {"owner": OWNER}),
    ("label", {"labels": OWNER["metadata"]["labels"]}),
    ("harmonize_naming", {"name": "oak"}),
    ("adjust_namespace", {"namespace": "shop"}),
    ("adopt", {"owner": OWNER}),
]


@pytest.mark.parametrize(("name", "same"), BY_HANDLER)
def test_the_handled_object_is_the_owner(name: str, same: dict[str, Any]) -> None:
    wanted, found = {}, {}  # type: ignore[var-annotated]
    getattr(theirs, name)(wanted, **same)
    within(OWNER, lambda: getattr(hierarchies, name)(found))
    assert found == wanted


@pytest.mark.parametrize("name", CALLS)
def test_outside_of_handlers_an_owner_is_needed(name: str) -> None:
    for module in (hierarchies, theirs):
        with pytest.raises(LookupError):
            getattr(module, name)({})
    with pytest.raises(LookupError, match="name the owner"):
        within(None, lambda: getattr(hierarchies, name)({}))


def test_a_name_is_needed() -> None:
    for module in (hierarchies, theirs):
        with pytest.raises(LookupError, match=r"(?i)name"):
            module.harmonize_naming({}, None)


def everything() -> Iterator[Any]:
    for metadata in ({}, OWNER["metadata"], {"name": "a"}):
        yield {"apiVersion": "v1", "kind": "Node", "metadata": metadata}


def test_references_are_those_of_kopf() -> None:
    for body in everything():
        wanted = theirs.build_object_reference(theirs.Body(body))
        assert hierarchies.build_object_reference(Body(body)) == wanted
    wanted = theirs.build_owner_reference(theirs.Body(OWNER), controller=False)
    assert hierarchies.build_owner_reference(Body(OWNER), controller=False) == wanted
