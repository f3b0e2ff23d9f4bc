"""Label selectors in the simulated cluster: the index finds what a full scan finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings, strategies as st

from fnop.core.kubernetes.label_selectors import matches
from fnop.interpreters.cluster.kinds.kinds import Registry
from fnop.interpreters.cluster.storage.selections import (
    labelled,
    selecting,
    selector_of,
)
from fnop.interpreters.cluster.storage.store import Cluster, bare, put, remove, shelf
from fnop.interpreters.cluster.values.objects import Key, Resource
from tests.thorough import examples

PODS, SERVICES, SETS = ("", "pods"), ("", "services"), ("apps", "replicasets")
NAMES, NAMESPACES = ("a", "b", "c"), ("one", "two")

labels = st.dictionaries(st.sampled_from("xyz"), st.sampled_from("12"), max_size=3)
expressions = st.fixed_dictionaries(
    {
        "key": st.sampled_from("xyz"),
        "operator": st.sampled_from(["Exists", "DoesNotExist"]),
    }
)
label_selectors = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "matchLabels": labels,
        "matchExpressions": st.lists(expressions, max_size=1),
    },
)
metadata = st.fixed_dictionaries({}, optional={"labels": st.none() | labels})


def of(selectors: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects, or none, with labels and with one of the selectors."""
    spec = st.fixed_dictionaries({}, optional={"selector": selectors})
    return st.fixed_dictionaries(
        {"metadata": metadata}, optional={"spec": st.none() | spec}
    )


writes = st.tuples(
    st.sampled_from(NAMESPACES),
    st.sampled_from(NAMES),
    st.tuples(st.just(PODS), st.none() | of(st.none()))
    | st.tuples(st.just(SERVICES), st.none() | of(st.none() | labels))
    | st.tuples(st.just(SETS), st.none() | of(label_selectors)),
)


def written(steps: list[Any]) -> Cluster:
    """A cluster after these writes; None removes what is there."""
    cluster = bare("0", 0, Registry({}, {}))
    for namespace, name, (resource, obj) in steps:
        key = namespace, name
        old = shelf(cluster, resource).get(key)
        if obj is not None:
            cluster, _ = put(cluster, resource, key, obj, old)
        elif old is not None:
            cluster, _ = remove(cluster, resource, key)
    return cluster


def beside(cluster: Cluster, resource: Resource, namespace: str) -> Iterator[Key]:
    return (key for key in sorted(shelf(cluster, resource)) if key[0] == namespace)


@settings(max_examples=examples(50))
@given(st.lists(writes, max_size=20), label_selectors)
def test_a_selector_finds_those_whose_labels_it_meets(
    steps: list[Any], selector: Any
) -> None:
    cluster = written(steps)
    for resource in (PODS, SETS):
        found = shelf(cluster, resource)

        def met(keys: Any, found: Any = found) -> list[Key]:
            labels_of = {
                key: found[key]["metadata"].get("labels") or {} for key in keys
            }
            return [key for key in keys if matches(selector, labels_of[key])]

        for namespace in NAMESPACES:
            every = [*beside(cluster, resource, namespace)]
            some = labelled(cluster.selections, resource, namespace, selector)
            assert met(every if some is None else some) == met(every)


@settings(max_examples=examples(50))
@given(st.lists(writes, max_size=20), labels)
def test_labels_find_those_that_select_them(
    steps: list[Any], wanted: dict[str, str]
) -> None:
    cluster = written(steps)
    for resource in (SERVICES, SETS):
        found = shelf(cluster, resource)

        def met(keys: Any, resource: Resource = resource, found: Any = found) -> Any:
            return [
                each
                for each in keys
                if matches(selector_of(resource, found[each]), wanted)
            ]

        for namespace in NAMESPACES:
            some = selecting(cluster.selections, resource, namespace, wanted)
            assert met(some) == met(beside(cluster, resource, namespace))


@settings(max_examples=examples(50))
@given(st.lists(writes, max_size=20))
def test_of_what_is_gone_nothing_is_kept(steps: list[Any]) -> None:
    ends = [
        (namespace, name, (resource, None))
        for namespace in NAMESPACES
        for name in NAMES
        for resource in (PODS, SERVICES, SETS)
    ]
    assert not written([*steps, *ends]).selections
