"""Names of kinds: their forms, and which served kind each one means."""

import doctest
from typing import Any

import pytest

from fnop.core.api import resources
from fnop.core.api.catalogue import Catalogue, parse_resource_list
from fnop.core.api.resources import Resource, Selector
from fnop.effects.structs import replace


def sel(
    name: str | None = None,
    group: str | None = None,
    version: str | None = None,
    **named: Any,
) -> Selector:
    return Selector(name, group, version, **named)


# The forms of names that Kopf's users know, and what they mean.
FORMS: list[tuple[tuple[str, ...], dict[str, str], Selector]] = [
    (("pods",), {}, sel("pods")),
    (("Pod",), {}, sel("Pod")),
    (("po",), {}, sel("po")),
    (("pods.v1",), {}, sel("pods", None, "v1")),
    (("pods.v1.",), {}, sel("pods", "", "v1")),
    (("deployments.apps",), {}, sel("deployments", "apps")),
    (("deployments.v1beta1.apps",), {}, sel("deployments", "apps", "v1beta1")),
    (("fnx.v1.fnop.dev",), {}, sel("fnx", "fnop.dev", "v1")),
    (("x.foo1.example.com",), {}, sel("x", "foo1.example.com")),
    (("x.v2alpha3.example.com",), {}, sel("x", "example.com", "v2alpha3")),
    (("v1", "pods"), {}, sel("pods", "", "v1")),
    (("apps", "deployments"), {}, sel("deployments", "apps")),
    (("apps/v1", "deployments"), {}, sel("deployments", "apps", "v1")),
    (("fnop.dev/v1", "fnx"), {}, sel("fnx", "fnop.dev", "v1")),
    (("", "v1", "pods"), {}, sel("pods", "", "v1")),
    (("apps", "v1", "deployments"), {}, sel("deployments", "apps", "v1")),
    (("", "pods"), {}, sel("pods", "")),
    ((), {"kind": "Pod"}, sel(kind="Pod")),
    ((), {"plural": "pods"}, sel(plural="pods")),
    ((), {"singular": "pod"}, sel(singular="pod")),
    ((), {"shortcut": "po"}, sel(shortcut="po")),
    (
        (),
        {"kind": "Deployment", "group": "apps", "version": "v1"},
        sel(None, "apps", "v1", kind="Deployment"),
    ),
    (("deployments",), {"group": "apps"}, sel("deployments", "apps")),
]


@pytest.mark.parametrize(("words", "named", "meant"), FORMS)
def test_k_2_1_every_form_of_a_name(
    words: tuple[str, ...], named: dict[str, str], meant: Selector
) -> None:
    assert Selector.of(*words, **named) == meant


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), {}),
        ((), {"group": "apps"}),
        ((), {"group": "apps", "version": "v1"}),
        (("",), {}),
        (("apps", ""), {}),
        (("apps", "v1", ""), {}),
        ((None,), {}),
        ((5,), {}),
        (("pods",), {"kind": "Pod"}),
        ((), {"kind": "Pod", "plural": "pods"}),
        (("a", "b", "c", "d"), {}),
    ],
)
def test_k_2_1_one_name_exactly(words: tuple[Any, ...], named: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="kind"):
        Selector.of(*words, **named)


def test_a_selector_is_shown_as_it_could_be_written() -> None:
    for text in ("pods", "deployments.apps", "fnx.v1.fnop.dev"):
        assert str(Selector.of(text)) == text
        assert Selector.of(str(Selector.of(text))) == Selector.of(text)


# ------------------------------------------------------------------- the catalogue


def served(
    group: str,
    version: str,
    plural: str,
    kind: str,
    *,
    preferred: bool = True,
    short: tuple[str, ...] = (),
) -> Resource:
    return Resource(
        group, version, plural, kind, kind.lower(), True, short, preferred=preferred
    )


PODS = served("", "v1", "pods", "Pod", short=("po",))
METRICS = served("metrics.k8s.io", "v1beta1", "pods", "PodMetrics")
DEPLOYMENTS = served("apps", "v1", "deployments", "Deployment", short=("deploy",))
OLD = served("apps", "v1beta1", "deployments", "Deployment", preferred=False)
ONE = served("one.example.com", "v1", "things", "Thing")
OTHER = served("other.example.com", "v1", "things", "Thing")
CATALOGUE = Catalogue((PODS, METRICS, DEPLOYMENTS, OLD, ONE, OTHER))


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("pods",), (PODS,)),  # the core group is meant if it has the name
        (("pods.metrics.k8s.io",), (METRICS,)),
        (("Pod",), (PODS,)),
        (("pod",), (PODS,)),
        (("po",), (PODS,)),
        (("deploy",), (DEPLOYMENTS,)),
        (("deployments",), (DEPLOYMENTS,)),  # the preferred version
        (("deployments.v1beta1.apps",), (OLD,)),
        (("deployments.v1.apps",), (DEPLOYMENTS,)),
        (("things",), (ONE, OTHER)),  # ambiguous
        (("things.one.example.com",), (ONE,)),
        (("things.v2",), ()),
        (("nothing",), ()),
        (("PODS",), (PODS,)),
        (("PO",), ()),  # short names have one form
        (("DEPLOYMENTS.V1",), ()),
        (("DEPLOYMENT.v1beta1.apps",), (OLD,)),
        (("pods.metrics",), (METRICS,)),
        (("things.one",), (ONE,)),
        (("things.on",), ()),
        (("things.v1.one",), ()),
    ],
)
def test_the_resource_that_is_meant(
    words: tuple[str, ...], found: tuple[Resource, ...]
) -> None:
    assert CATALOGUE.find(Selector.of(*words)) == found
    assert CATALOGUE.lookup(words[0]) == (found[0] if len(found) == 1 else None)


# Kinds whose names and groups are alike.
CRAFT = Resource("sea.dev", "foo1", "crafts", "WaterCraft", "craft", shortcuts=("wc",))
NEWER = replace(CRAFT, version="v1beta1", preferred=False)
NESTED = Resource("v1beta1.sea.dev", "v1", "ferries", "Ferry", "ferry")
SHORT = Resource("air.dev", "v1", "planes", "Plane", "plane", shortcuts=("craft",))
ALIKE = Catalogue((CRAFT, NEWER, NESTED, SHORT))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("craft", CRAFT),  # a full name goes before a short one
        ("craft.air.dev", SHORT),
        ("craft.air", SHORT),
        ("wc", CRAFT),
        ("WC", None),
        ("WaterCraft", CRAFT),
        ("watercraft", CRAFT),
        ("WATERCRAFT", None),  # the kind is not a name of the collection
        ("CRAFTS", CRAFT),
        ("crafts.foo1.sea.dev", CRAFT),  # a version need not begin with a v
        ("wc.v1beta1.sea.dev", NEWER),
        ("WaterCraft.v1beta1.sea.dev", NEWER),
        ("crafts.v2.sea.dev", None),
        ("ferries.v1beta1.sea.dev", NESTED),  # no version, but a group
        ("ferries.v1.v1beta1.sea.dev", NESTED),
        ("crafts.se", None),
    ],
)
def test_names_that_are_alike(name: str, found: Resource | None) -> None:
    assert ALIKE.lookup(name) == found
    assert found is None or Selector.of(name).matches(found)


@pytest.mark.parametrize(
    ("named", "found"),
    [
        ({"kind": "Pod"}, (PODS,)),
        ({"kind": "pods"}, ()),
        ({"plural": "pods", "group": "metrics.k8s.io"}, (METRICS,)),
        ({"plural": "Pod"}, ()),
        ({"singular": "pod"}, (PODS,)),
        ({"shortcut": "deploy"}, (DEPLOYMENTS,)),
        ({"shortcut": "deployments"}, ()),
        ({"kind": "Deployment", "version": "v1beta1"}, (OLD,)),
    ],
)
def test_an_attribute_matches_itself_alone(
    named: dict[str, str], found: tuple[Resource, ...]
) -> None:
    assert CATALOGUE.find(Selector.of(**named)) == found


def test_a_manifest_names_its_kind_exactly() -> None:
    manifest = {"apiVersion": "apps/v1beta1", "kind": "Deployment"}
    assert CATALOGUE.of_manifest(manifest) == OLD
    assert CATALOGUE.of_manifest({"apiVersion": "v1", "kind": "Pod"}) == PODS
    assert CATALOGUE.of_manifest({"apiVersion": "v2", "kind": "Pod"}) is None


# -------------------------------------------------------------------- discovery


def test_a_document_of_discovery() -> None:
    document = {
        "resources": [
            {"name": "pods/status", "kind": "Pod", "namespaced": True},
            {
                "name": "pods",
                "kind": "Pod",
                "singularName": "pod",
                "namespaced": True,
                "shortNames": ["po"],
                "categories": ["all"],
                "verbs": ["get", "list"],
            },
            {"name": "nodes", "kind": "Node", "singularName": "", "namespaced": False},
            {"name": "pods/exec", "kind": "PodExecOptions", "namespaced": True},
        ]
    }
    pods, nodes = parse_resource_list(document, "", "v1", preferred=True)
    assert pods == Resource(
        "",
        "v1",
        "pods",
        "Pod",
        "pod",
        True,
        ("po",),
        ("all",),
        ("get", "list"),
        ("exec", "status"),
        True,
    )
    assert pods.has_status
    assert (nodes.singular, nodes.namespaced, nodes.has_status) == (
        "node",
        False,
        False,
    )
    assert list(parse_resource_list({"resources": None}, "", "v1", preferred=True)) == (
        []
    )


@pytest.mark.parametrize(
    ("group", "built_in"),
    [
        ("", True),
        ("apps", True),
        ("batch", True),
        ("networking.k8s.io", True),
        ("fnop.dev", False),
        ("cert-manager.io", False),
    ],
)
def test_which_groups_are_kubernetes_own(group: str, built_in: bool) -> None:
    assert served(group, "v1", "things", "Thing").is_built_in is built_in


def test_addresses_of_kinds() -> None:
    assert (PODS.key, PODS.api_version) == ("pods.v1.", "v1")
    assert (DEPLOYMENTS.key, DEPLOYMENTS.api_version) == (
        "deployments.v1.apps",
        "apps/v1",
    )


# ---------------------------------------------------------- a resource as a value

PODS = Resource("", "v1", "pods", "Pod", "pod", shortcuts=("po",))
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
BOATS = Resource("harbour.dev", "v2", "boats", "Boat")


def test_k_2_10_it_is_shown_and_taken_apart() -> None:
    assert [repr(each) for each in (PODS, BOATS)] == ["pods.v1", "boats.v2.harbour.dev"]
    group, version, plural = BOATS
    assert (group, version, plural) == ("harbour.dev", "v2", "boats")
    assert "po" in PODS.shortcuts


@pytest.mark.parametrize(
    ("resource", "given", "url"),
    [
        (PODS, {}, "/api/v1/pods"),
        (PODS, {"namespace": "ns"}, "/api/v1/namespaces/ns/pods"),
        (PODS, {"namespace": "ns", "name": "p"}, "/api/v1/namespaces/ns/pods/p"),
        (NODES, {"name": "n", "subresource": "status"}, "/api/v1/nodes/n/status"),
        (BOATS, {"server": "https://k8s"}, "https://k8s/apis/harbour.dev/v2/boats"),
        (
            BOATS,
            {"server": "https://k8s/at/", "params": {"watch": "true", "x": "a b"}},
            "https://k8s/at/apis/harbour.dev/v2/boats?watch=true&x=a+b",
        ),
    ],
)
def test_k_2_10_its_addresses(
    resource: Resource, given: dict[str, Any], url: str
) -> None:
    assert resource.get_url(**given) == url


@pytest.mark.parametrize(
    ("resource", "given", "problem"),
    [
        (PODS, {"namespace": "ns", "subresource": "status"}, "subresource needs a na"),
        (NODES, {"namespace": "ns"}, "in no namespace"),
        (PODS, {"name": "p"}, "needs a namespace"),
        (PODS, {"namespace": "ns", "name": "../p"}, "cannot stand in a path"),
    ],
)
def test_k_2_10_addresses_that_cannot_be(
    resource: Resource, given: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        resource.get_url(**given)


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(resources).failed == 0
