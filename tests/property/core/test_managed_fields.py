"""Laws of managed fields and of server-side apply."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from fnop.interpreters.cluster import Cluster, answer, empty_cluster
from fnop.interpreters.cluster.apply import apply as applying
from fnop.interpreters.cluster.apply.fieldsets import (
    Tree,
    canonical,
    difference,
    has,
    interned,
    intersection,
    paths,
    pruned,
    union,
)
from fnop.interpreters.cluster.apply.shapes import DEDUCED, shape_of_source
from fnop.interpreters.cluster.apply.typed import compared, equal, fields_of, merged
from fnop.interpreters.runtime.protocol import APPLY_PATCH, MERGE_PATCH, ApiRequest
from tests.thorough import examples

Path = tuple[str, ...]
Json = dict[str, Any]

# ------------------------------------------------------------ sets of fields

KEYS = st.sampled_from(("f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'))
PATHS = st.lists(KEYS, min_size=1, max_size=3).map(tuple)
MODELS = st.frozensets(PATHS, max_size=8)


def tree_of(model: frozenset[Path]) -> Tree:
    """The tree with exactly these members."""
    tree: Tree = {}
    for path in model:
        node = tree
        for key in path:
            node = node.setdefault(key, {})
        node["."] = {}
    return canonical(tree)


def model_of(tree: Tree) -> frozenset[Path]:
    return frozenset(paths(tree))


@given(MODELS)
def test_a_tree_holds_what_was_put_in(model: frozenset[Path]) -> None:
    tree = tree_of(model)
    assert model_of(tree) == model
    assert all(has(tree, path) for path in model)
    assert interned(tree) == tree
    assert interned(tree) is interned(tree_of(model))


@given(MODELS, MODELS)
def test_the_algebra_is_that_of_sets_of_paths(
    one: frozenset[Path], other: frozenset[Path]
) -> None:
    left, right = tree_of(one), tree_of(other)
    before = interned(left), interned(right)
    for operation, expected in (
        (union, one | other),
        (difference, one - other),
        (intersection, one & other),
        (pruned, frozenset(p for p in one if not is_under(p, other))),
    ):
        found = operation(left, right)
        assert model_of(found) == expected
        # There is one way to write a set down.
        assert found == tree_of(expected)
    assert (left, right) == before


def is_under(path: Path, others: frozenset[Path]) -> bool:
    return any(path[: len(other)] == other for other in others)


@given(MODELS, MODELS)
def test_what_changes_nothing_returns_its_argument(
    one: frozenset[Path], other: frozenset[Path]
) -> None:
    tree = tree_of(one)
    assert union(tree, tree_of(one & other)) is tree
    assert difference(tree, tree_of(other - one)) is tree
    strangers = frozenset(
        p for p in other if not any(is_under(q, frozenset({p})) for q in one)
    )
    assert pruned(tree, tree_of(strangers)) is tree


# ----------------------------------------------------------------- values

NAMES = st.sampled_from(("a", "b", "c"))
SCALARS = st.sampled_from((None, True, 1, 2, "x", "y"))
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=3)


@given(OBJECTS, OBJECTS)
def test_values_without_differences_are_equal(old: Json, new: Json) -> None:
    assert compared(old, new, DEDUCED).is_same == equal(old, new)


@given(OBJECTS, OBJECTS)
def test_differences_are_where_the_fields_are(old: Json, new: Json) -> None:
    differs = compared(old, new, DEDUCED)
    before, after = model_of(fields_of(old, DEDUCED)), model_of(fields_of(new, DEDUCED))
    assert model_of(differs.changed) <= after
    assert model_of(differs.removed) <= before
    assert before - model_of(differs.removed) <= after
    assert after - before <= model_of(differs.changed)


@given(OBJECTS, OBJECTS)
def test_a_merged_configuration_is_in_force(live: Json, config: Json) -> None:
    result = merged(live, config, DEDUCED)
    assert merged(result, config, DEDUCED) == result
    kept = model_of(fields_of(result, DEDUCED))
    assert model_of(fields_of(config, DEDUCED)) <= kept


# -------------------------------------------------------------------- apply

TEXT = {"type": "string"}
SCHEMA: Json = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "part": {"type": "object", "properties": {"a": TEXT, "b": TEXT}},
                "map": {"type": "object", "additionalProperties": TEXT},
                "set": {
                    "type": "array",
                    "items": TEXT,
                    "x-kubernetes-list-type": "set",
                },
                "list": {"type": "array", "items": TEXT},
                "items": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": TEXT, "value": TEXT},
                    },
                },
            },
        }
    },
}
CRD: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "laws.law.dev"},
    "spec": {
        "group": "law.dev",
        "scope": "Namespaced",
        "names": {"plural": "laws", "kind": "Law"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
            }
        ],
    },
}
LAWS = "/apis/law.dev/v1/namespaces/default/laws"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
START = answer(empty_cluster(), ApiRequest("POST", CRDS, body=CRD), 1_700_000_000.0)[0]

WORDS = st.sampled_from(("x", "y", "z"))


def unique(items: list[Json]) -> list[Json]:
    return list({item["name"]: item for item in items}.values())


ITEMS = st.lists(
    st.fixed_dictionaries({"name": WORDS}, optional={"value": WORDS}),
    min_size=1,
    max_size=3,
).map(unique)
# Nothing empty: the server turns what is emptied into null, and refuses that.
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 2),
        "part": st.dictionaries(st.sampled_from("ab"), WORDS, min_size=1),
        "map": st.dictionaries(NAMES, WORDS, min_size=1),
        "set": st.lists(WORDS, unique=True, min_size=1),
        "list": st.lists(WORDS, min_size=1),
        "items": ITEMS,
    },
)
SHAPE = shape_of_source(SCHEMA)


def config(spec: Json, name: str = "one") -> Json:
    return {
        "apiVersion": "law.dev/v1",
        "kind": "Law",
        "metadata": {"name": name},
        "spec": spec,
    }


def apply(
    cluster: Cluster, by: str, spec: Json, *, force: bool = False, now: float = 0.0
) -> tuple[Cluster, int, Any]:
    query = [("fieldManager", by), *([("force", "true")] if force else [])]
    request = ApiRequest(
        "PATCH", f"{LAWS}/one", tuple(query), config(spec), APPLY_PATCH
    )
    cluster, response, _ = answer(cluster, request, 1_700_000_100.0 + now)
    return cluster, response.status, response.body


def owned(obj: Json, manager: str) -> frozenset[Path]:
    """The fields of the spec that a manager manages."""
    found: frozenset[Path] = frozenset()
    for entry in obj["metadata"].get("managedFields", ()):
        if entry["manager"] == manager:
            found |= model_of(entry["fieldsV1"])
    return found


def content(obj: Json) -> frozenset[Path]:
    return model_of(fields_of({"spec": obj.get("spec") or {}}, SHAPE))


@settings(max_examples=examples(50))
@given(SPECS, SPECS)
def test_apply_is_idempotent(first: Json, second: Json) -> None:
    cluster, _, _ = apply(START, "a", first)
    once, status, found = apply(cluster, "b", second, force=True)
    assert status in (200, 201)
    twice, status, again = apply(once, "b", second, force=True, now=60.0)
    assert (status, again) == (200, found)
    assert twice.version == once.version


@given(SPECS, SPECS)
def test_who_applied_manages_exactly_that(first: Json, second: Json) -> None:
    cluster, _, _ = apply(START, "a", first)
    cluster, _, body = apply(cluster, "b", second, force=True)
    assert owned(body, "b") == model_of(fields_of({"spec": second}, SHAPE))
    assert owned(body, "a") <= model_of(fields_of({"spec": first}, SHAPE))
    # (A spec that was applied empty is managed as such.)
    assert owned(body, "a") | owned(body, "b") <= content(body) | {("f:spec",)}


@given(SPECS, SPECS)
def test_appliers_who_agree_commute(first: Json, second: Json) -> None:
    one, _, _ = apply(START, "a", first)
    one, status, ours = apply(one, "b", second)
    other, _, _ = apply(START, "b", second)
    other, reverse, theirs = apply(other, "a", first)
    # The second one meets the conflict, in either order.
    assert (status == 409) == (reverse == 409)
    if status != 409:
        assert content(ours) == content(theirs)
        assert scalars(ours) == scalars(theirs)
        for manager in "ab":
            assert owned(ours, manager) == owned(theirs, manager)


def scalars(obj: Json) -> Json:
    """The spec, its lists that are maps or sets without their order."""
    spec = dict(obj.get("spec") or {})
    if "set" in spec:
        spec["set"] = sorted(spec["set"])
    if "items" in spec:
        spec["items"] = sorted(spec["items"], key=lambda item: str(item["name"]))
    return spec


@given(SPECS, SPECS, SPECS)
@settings(max_examples=examples(120))
def test_what_is_no_longer_applied_goes_unless_others_manage_it(
    first: Json, others: Json, second: Json
) -> None:
    cluster, _, _ = apply(START, "a", first)
    cluster, status, before = apply(cluster, "b", others)
    if status == 409:
        return
    cluster, status, after = apply(cluster, "a", second)
    if status in (409, 422):
        return
    expected = model_of(fields_of({"spec": second}, SHAPE)) | owned(before, "b")
    assert content(after) == expected - {("f:spec",)} | content(after) & {("f:spec",)}
    assert owned(after, "b") == owned(before, "b")


@given(SPECS, SPECS)
def test_force_takes_what_is_contested_and_nothing_else(
    first: Json, second: Json
) -> None:
    cluster, _, before = apply(START, "a", first)
    _, status, refused = apply(cluster, "b", second)
    cluster, _, after = apply(cluster, "b", second, force=True)
    lost = owned(before, "a") - owned(after, "a")
    if status == 409:
        assert len(refused["details"]["causes"]) == len(lost)
        assert lost <= owned(after, "b")
    else:
        assert not lost


@given(SPECS, SPECS)
def test_an_update_takes_what_it_changes(first: Json, second: Json) -> None:
    cluster, _, before = apply(START, "a", first)
    request = ApiRequest(
        "PATCH",
        f"{LAWS}/one",
        body={"spec": second},
        content_type=MERGE_PATCH,
        agent="c/1",
    )
    after, response, _ = answer(cluster, request, 1_700_000_200.0)
    assert response.status == 200
    body = response.body
    changed = compared(before, body, SHAPE).changed.get("f:spec", {})
    gained = owned(body, "c")
    assert gained == frozenset(("f:spec", *path) for path in paths(changed)) | (
        gained & {("f:spec",)}
    )
    assert not owned(body, "a") & gained
    assert owned(body, "a") <= owned(before, "a")
    if before["spec"] == body["spec"]:
        assert not gained
        assert after.version == cluster.version


DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PORTS = st.lists(
    st.fixed_dictionaries(
        {"containerPort": st.integers(1, 2)}, optional={"name": WORDS}
    ),
    max_size=2,
    unique_by=lambda port: port["containerPort"],
)
CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": WORDS, "image": WORDS},
        optional={
            "ports": PORTS,
            "env": st.lists(st.fixed_dictionaries({"name": WORDS}), max_size=1),
            "resources": st.just({}),
        },
    ),
    min_size=1,
    max_size=2,
).map(unique)
VOLUMES = st.lists(
    st.fixed_dictionaries({"name": WORDS}, optional={"emptyDir": st.just({})}),
    max_size=2,
).map(unique)
TEMPLATES = st.fixed_dictionaries(
    {"containers": CONTAINERS}, optional={"volumes": VOLUMES}
)
SOME_LABELS = st.dictionaries(NAMES, WORDS, max_size=2)
STEPS = st.lists(
    st.tuples(
        st.sampled_from("aab"),
        st.sampled_from(("apply", "apply", "apply", "merge")),
        TEMPLATES,
        SOME_LABELS,
        st.booleans(),
    ),
    min_size=2,
    max_size=5,
)


def deployed(
    cluster: Cluster, step: tuple[str, str, Json, Json, bool], now: float
) -> tuple[Cluster, int, Any]:
    by, sort, template, labels, repeats = step
    spec = {
        "selector": {"matchLabels": {"app": "x"}},
        "template": {"metadata": {"labels": {"app": "x"}}, "spec": template},
    }
    body: Json = {"metadata": {"name": "one", "labels": labels}, "spec": spec}
    query = [("fieldManager", by)]
    if sort == "apply":
        body |= {"apiVersion": "apps/v1", "kind": "Deployment"}
        query += [("force", "true")]
    request = ApiRequest(
        "PATCH",
        f"{DEPLOYMENTS}/one",
        tuple(query),
        body,
        APPLY_PATCH if sort == "apply" else MERGE_PATCH,
    )
    for _ in range(1 + repeats):
        cluster, response, _ = answer(cluster, request, 1_700_000_100.0 + now)
    return cluster, response.status, response.body


@given(STEPS)
@settings(max_examples=examples(30), deadline=None)
def test_nothing_is_pruned_of_what_is_applied_again(
    steps: list[tuple[str, str, Json, Json, bool]],
) -> None:
    """The short way of an applier that drops nothing ends like the long one."""
    ends = []
    for is_short in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not is_short:
                patch.setattr(applying, "_is_all_applied", lambda *_: False)
            cluster, found = empty_cluster(), []
            for number, step in enumerate(steps):
                cluster, *seen = deployed(cluster, step, 60.0 * number)
                found.append((seen, cluster.version))
            ends.append(found)
    assert ends[0] == ends[1]
