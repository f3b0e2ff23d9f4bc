"""The simulated API server: verbs, errors, and that it is a pure function."""

from __future__ import annotations

import copy
import doctest
import importlib
import json
import pkgutil
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import fnop.interpreters.cluster
from fnop.interpreters.cluster import (
    Cluster,
    StoredEvent,
    answer,
    backlog,
    empty_cluster,
    seen_by,
    selects,
    tick,
)
from fnop.interpreters.runtime.protocol import (
    APPLY_PATCH,
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    ApiRequest,
    ApiResponse,
)
from tests.conformance.cases import CRDS
from tests.thorough import examples

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FOOS = "/apis/conf.dev/v1/namespaces/default/foos"
MAPS = "/api/v1/namespaces/default/configmaps"
(FOO,) = (crd for crd in CRDS if crd["spec"]["names"]["kind"] == "Foo")


def ask(
    cluster: Cluster,
    method: str,
    path: str,
    body: Any = None,
    content_type: str = JSON,
    **query: str,
) -> tuple[Cluster, ApiResponse, tuple[StoredEvent, ...]]:
    request = ApiRequest(method, path, tuple(query.items()), body, content_type)
    return answer(cluster, request, 1_700_000_000.0)


def after(cluster: Cluster, *requests: tuple[Any, ...]) -> Cluster:
    for request in requests:
        cluster, response, _ = ask(cluster, *request)
        assert response.status in (200, 201), response
    return cluster


def foo(name: str, **parts: Any) -> dict[str, Any]:
    metadata = {"name": name, **parts.pop("metadata", {})}
    return {"apiVersion": "conf.dev/v1", "kind": "Foo", "metadata": metadata, **parts}


def configmap(name: str, **metadata: Any) -> dict[str, Any]:
    named = {"name": name, **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named}


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return after(empty_cluster(), *(("POST", DEFINITIONS, crd) for crd in CRDS))


def modules() -> list[str]:
    package = fnop.interpreters.cluster
    inside = f"{package.__name__}."
    return [found.name for found in pkgutil.walk_packages(package.__path__, inside)]


@pytest.mark.parametrize("name", modules())
def test_examples_in_documentation(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_a_cluster_is_a_value(cluster: Cluster) -> None:
    one = after(cluster, ("POST", FOOS, foo("a", spec={"x": 1})))
    two = after(one, ("PATCH", FOOS + "/a", {"spec": {"x": 2}}, MERGE_PATCH))
    gone = after(two, ("DELETE", FOOS + "/a"))
    seen = [ask(state, "GET", FOOS + "/a")[1] for state in (cluster, one, two, gone)]
    assert [response.status for response in seen] == [404, 200, 200, 404]
    assert [seen[1].body["spec"], seen[2].body["spec"]] == [{"x": 1}, {"x": 2}]


def test_the_same_requests_make_the_same_cluster(cluster: Cluster) -> None:
    def story(seed: str) -> dict[str, Any]:
        state = after(empty_cluster(seed), ("POST", DEFINITIONS, FOO))
        body = {**foo(""), "metadata": {"generateName": "x-"}}
        found: dict[str, Any] = ask(state, "POST", FOOS, body)[1].body
        return found

    assert story("1") == story("1")
    assert story("1")["metadata"]["uid"] != story("2")["metadata"]["uid"]
    assert story("1")["metadata"]["name"] != story("2")["metadata"]["name"]


STORY = """
import json
from fnop.interpreters.cluster import answer, empty_cluster, tick
from fnop.interpreters.runtime.protocol import ApiRequest

path = "/api/v1/namespaces/default/configmaps"
cluster, seen = tick(empty_cluster(), 0.0)[0], []

def send(method, path, body=None):
    global cluster
    cluster, response, events = answer(cluster, ApiRequest(method, path, (), body), 0.0)
    seen.append([response.body, [[e.type, e.version] for e in events]])
    return response.body

owner = send("POST", path, {"metadata": {"name": "owner"}})
reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
             "uid": owner["metadata"]["uid"]}
for name in "abcdefgh":
    send("POST", path, {"metadata": {"name": name, "ownerReferences": [reference]}})
send("DELETE", path + "/owner")
cluster, events = tick(cluster, 0.0)
seen.append([[e.type, e.object["metadata"]["name"]] for e in events])
send("GET", "/apis")
print(json.dumps(seen))
"""


def test_hash_seeds_change_nothing() -> None:
    def told(seed: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", STORY],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    found = told("1")
    assert found == told("2")
    assert json.loads(found)[-2] == [["DELETED", name] for name in "abcdefgh"]


# ------------------------------------------------------------------- totality

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from([1.0, 1.5, 1e30])
    | st.sampled_from(["", "a", "b", "x/y", "v1", "Foo", "default", "Foreground", "1"])
)
WORDS = (
    "apiVersion kind metadata name generateName namespace labels annotations uid "
    "finalizers ownerReferences resourceVersion deletionTimestamp generation spec "
    "status data stringData versions names plural group scope schema type properties "
    "items default required served storage subresources scale replicas preconditions "
    "propagationPolicy gracePeriodSeconds op path from value $patch containers ports "
    "terminationGracePeriodSeconds nodeName conditions template list map free size "
    "deletionGracePeriodSeconds openAPIV3Schema"
)
NAMES = st.sampled_from(WORDS.split(" "))
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4)
    ),
    max_leaves=12,
)
PATHS = st.sampled_from(
    [
        FOOS,
        FOOS + "/a",
        FOOS + "/a/status",
        FOOS.replace("foos", "vals"),
        FOOS.replace("foos", "vals") + "/a",
        FOOS.replace("foos", "sizes") + "/a",
        FOOS.replace("foos", "sizes") + "/a/scale",
        MAPS,
        MAPS + "/a",
        "/api/v1/namespaces/default/pods",
        "/api/v1/namespaces/default/pods/a",
        "/api/v1/namespaces/default/secrets/a",
        "/api/v1/namespaces/default/events/a",
        "/apis/events.k8s.io/v1/namespaces/default/events",
        "/apis/apps/v1/namespaces/default/deployments/a",
        "/apis/apps/v1/namespaces/default/deployments/a/scale",
        "/api/v1/namespaces",
        "/api/v1/namespaces/other",
        DEFINITIONS,
        DEFINITIONS + "/foos.conf.dev",
        DEFINITIONS + "/foos.conf.dev/status",
        "/",
        "",
        "/apis",
        "/apis/apps",
        "/apis/apps/v1",
        "/api/v1/x/y/z/w",
        "/%",
        "/version",
    ]
)
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": st.sampled_from(
            ["v1", "conf.dev/v1", "apps/v1", "apiextensions.k8s.io/v1", 1]
        ),
        "kind": st.sampled_from(
            ["Foo", "Val", "ConfigMap", "Pod", "CustomResourceDefinition", "Scale"]
        ),
        "metadata": st.dictionaries(NAMES, VALUES, max_size=4)
        | st.builds(lambda more: {**more, "name": "a"}, st.dictionaries(NAMES, VALUES)),
        "spec": VALUES | st.dictionaries(NAMES, VALUES),
        "status": VALUES,
    },
)
OPERATIONS = st.lists(
    st.fixed_dictionaries(
        {
            "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
            "path": st.sampled_from(
                ["", "/", "/spec", "/metadata/name", "/metadata/x", "/spec/a/0", "x", 1]
            ),
        },
        optional={"value": VALUES, "from": st.sampled_from(["", "/spec", "/no", 1])},
    ),
    max_size=3,
)
OPTIONS = (
    "labelSelector fieldSelector limit continue resourceVersion watch dryRun "
    "gracePeriodSeconds propagationPolicy"
)
QUERIES = st.lists(
    st.tuples(
        st.sampled_from(OPTIONS.split(" ")),
        st.sampled_from(
            ["", "1", "x", "a=b", "a in (b)", "!a", "metadata.name=a", "true", "All"]
        ),
    ),
    max_size=2,
).map(tuple)


@st.composite
def mutated(draw: st.DrawFn, body: Any) -> Any:
    """A valid body with one part, somewhere, replaced by another value."""
    if not isinstance(body, dict | list) or not body or draw(st.integers(0, 3)) == 0:
        return draw(VALUES)
    names = list(body) if isinstance(body, dict) else list(range(len(body)))
    name = draw(st.sampled_from(names))
    result = body.copy()
    result[name] = draw(mutated(body[name]))
    return result


OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "1"}
FULL = {
    "name": "b",
    "labels": {"l": "1"},
    "annotations": {"a": "1"},
    "finalizers": ["x/y"],
    "ownerReferences": [OWNER],
}
SPEC = {
    "size": 1,
    "name": "abc",
    "list": [{"k": "a"}],
    "map": {"a": 1},
    "free": {"known": {"a": 1}},
    "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}},
    "keyed": [{"k": "a"}],
    "one": {"a": 1},
    "when": "2020-01-01T00:00:00Z",
}
PODS = {"containers": [{"name": "c", "ports": [{"port": 1}]}], "nodeName": "n"}
VALID: list[tuple[str, dict[str, Any]]] = [
    (FOOS.replace("foos", "vals"), {**foo("b", spec=SPEC), "kind": "Val"}),
    (FOOS, foo("b", metadata=FULL, spec={"x": 1}, status={"y": 1})),
    (MAPS, {**configmap("b"), "metadata": FULL, "data": {"k": "v"}}),
    ("/api/v1/namespaces/default/pods", {"metadata": FULL, "spec": PODS}),
    (
        "/api/v1/namespaces/default/secrets",
        {"metadata": FULL, "stringData": {"a": "b"}, "data": {"c": "ZA=="}},
    ),
    (
        "/apis/apps/v1/namespaces/default/deployments",
        {
            "metadata": FULL,
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"spec": PODS},
            },
        },
    ),
    ("/api/v1/namespaces", {"metadata": FULL, "spec": {"finalizers": ["a"]}}),
    *(
        (DEFINITIONS, {**crd, "metadata": {"name": crd["metadata"]["name"]}})
        for crd in CRDS
    ),
]
PATCHES = [MERGE_PATCH, STRATEGIC_PATCH]
MUTATED = st.sampled_from(VALID).flatmap(
    lambda found: st.builds(
        lambda body, verb, options: [
            ApiRequest("POST", found[0], (), body),
            ApiRequest(
                verb[0],
                f"{found[0]}/{found[1]['metadata']['name']}{verb[2]}",
                (),
                body if verb[0] != "DELETE" else options,
                verb[1],
            ),
        ],
        mutated(found[1]),
        st.sampled_from(
            [
                *(("PATCH", kind, "") for kind in PATCHES),
                ("PATCH", MERGE_PATCH, "/status"),
                ("PUT", JSON, ""),
                ("DELETE", JSON, ""),
            ]
        ),
        mutated({"propagationPolicy": "Foreground", "preconditions": {"uid": "1"}}),
    )
)
REQUESTS = st.builds(
    ApiRequest,
    st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "bogus"]),
    PATHS,
    QUERIES,
    BODIES | OPERATIONS | VALUES,
    st.sampled_from(
        [JSON, MERGE_PATCH, JSON_PATCH, STRATEGIC_PATCH, APPLY_PATCH, "text/plain"]
    ),
)


def test_a_definition_whose_version_loses_its_name_is_refused(cluster: Cluster) -> None:
    path = f"{DEFINITIONS}/foos.{FOOS.split('/')[2]}"
    definition = ask(cluster, "GET", path)[1].body
    (version,) = definition["spec"]["versions"]
    nameless = {"spec": {"versions": [{**version, "name": None}]}}
    _, response, _ = ask(cluster, "PATCH", path, nameless, MERGE_PATCH)
    assert response.status == 422
    assert "spec.versions[0].name" in response.body["message"]


# A failure is shown as it is, however long its example.
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@settings(max_examples=examples(80), deadline=None)
@given(
    requests=st.lists(MUTATED | st.lists(REQUESTS, max_size=2), max_size=4).map(
        lambda groups: [request for group in groups for request in group]
    )
)
def test_every_request_has_an_answer(
    cluster: Cluster, requests: list[ApiRequest]
) -> None:
    for name in ("foos", "vals", "sizes"):
        body = foo("a", spec={"size": 1}, metadata={"finalizers": ["x/y"]})
        body["kind"] = name[:-1].capitalize()
        cluster = after(cluster, ("POST", FOOS.replace("foos", name), body))
    cluster = after(cluster, ("POST", MAPS, configmap("a")))
    for request in requests:
        before = copy.deepcopy(request)
        cluster, response, events = answer(cluster, request, 0.0)
        assert 200 <= response.status < 600
        assert request == before
        assert isinstance(response.body, dict | str)
        for event in events:
            assert event.object["metadata"]["resourceVersion"] == str(event.version)
            selects(request, event, cluster.registry)
        backlog(cluster, request)
        cluster, _ = tick(cluster, 0.0)


# --------------------------------------------------------------------- watches


def watch(path: str, version: int | str | None, **more: str) -> ApiRequest:
    query = {"watch": "true", **more}
    if version is not None:
        query["resourceVersion"] = str(version)
    return ApiRequest("GET", path, tuple(query.items()))


def test_backlog_and_live_events_agree(cluster: Cluster) -> None:
    start, state, live = cluster.version, cluster, []
    request = watch(FOOS, start, labelSelector="l=1")
    for step in (
        ("POST", FOOS, foo("a", metadata={"labels": {"l": "1"}})),
        ("POST", FOOS, foo("b")),
        ("POST", MAPS, configmap("a")),
        ("PATCH", FOOS + "/b", {"metadata": {"labels": {"l": "1"}}}, MERGE_PATCH),
        ("PATCH", FOOS + "/a", {"metadata": {"labels": None}}, MERGE_PATCH),
        ("PATCH", FOOS + "/a", {"spec": {"x": 1}}, MERGE_PATCH),
        ("DELETE", FOOS + "/b"),
    ):
        state, _, events = ask(state, *step)
        views = (seen_by(request, e, state.registry) for e in events)
        live += [seen for seen in views if seen is not None]
    assert [e.type for e in live] == ["ADDED", "ADDED", "DELETED", "DELETED"]
    assert list(backlog(state, request)) == live  # type: ignore[arg-type]


def test_a_selection_shows_the_object_as_it_left(cluster: Cluster) -> None:
    state = after(cluster, ("POST", FOOS, foo("a", metadata={"labels": {"l": "1"}})))
    gone = {"metadata": {"labels": {"l": "2"}}}
    _, _, (event,) = ask(state, "PATCH", FOOS + "/a", gone, MERGE_PATCH)
    seen = seen_by(watch(FOOS, 0, labelSelector="l=1"), event, state.registry)
    assert seen is not None
    assert seen.type == "DELETED"
    assert seen.object["metadata"]["labels"] == {"l": "1"}
    assert seen.object["metadata"]["resourceVersion"] == str(event.version)


def test_other_collections_do_not_see_an_event(cluster: Cluster) -> None:
    _, _, (event,) = ask(cluster, "POST", FOOS, foo("a"))
    kinds = cluster.registry
    assert selects(watch(FOOS, None), event, kinds)
    assert selects(watch("/apis/conf.dev/v1/foos", None), event, kinds)
    assert not selects(watch(FOOS.replace("default", "other"), None), event, kinds)
    assert not selects(watch(FOOS.replace("foos", "bars"), None), event, kinds)
    assert not selects(watch("/version", None), event, kinds)
    by_name = watch(FOOS, None, fieldSelector="metadata.name=b")
    assert not selects(by_name, event, kinds)


def test_old_versions_are_expired() -> None:
    state = after(empty_cluster(), ("POST", MAPS, configmap("a")))
    start = state.version
    for number in range(10_001):
        change = {"data": {"n": str(number)}}
        state = ask(state, "PATCH", MAPS + "/a", change, MERGE_PATCH)[0]
    refused = backlog(state, watch(MAPS, start))
    assert isinstance(refused, tuple)
    assert [event.type for event in refused] == ["ERROR"]
    assert refused[0].object["code"] == 410
    assert refused[0].object["reason"] == "Expired"
    recent = backlog(state, watch(MAPS, state.version - 4_000))
    assert isinstance(recent, tuple)
    assert [e.version for e in recent] == list(
        range(state.version - 3_999, state.version + 1)
    )


def test_a_definition_is_established_at_once() -> None:
    state, response, events = ask(empty_cluster(), "POST", DEFINITIONS, FOO)
    assert response.body["status"]["conditions"] is None
    assert [event.type for event in events] == ["ADDED", "MODIFIED", "MODIFIED"]
    assert ask(state, "GET", FOOS)[1].status == 200


# ----------------------------------------------------------------- controllers


def settled(cluster: Cluster) -> Cluster:
    while True:
        cluster, events = tick(cluster, 0.0)
        if not events:
            return cluster


def child(owner: dict[str, Any], name: str, **more: Any) -> dict[str, Any]:
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        **more,
    }
    return configmap(name, ownerReferences=[reference])


def test_nothing_to_do_is_the_same_cluster(cluster: Cluster) -> None:
    settled = tick(tick(cluster, 0.0)[0], 0.0)[0]
    state = after(settled, ("POST", MAPS, configmap("a")))
    assert tick(state, 0.0) == (state, ())


def test_generations_of_dependents_go_one_after_another(cluster: Cluster) -> None:
    state, made, _ = ask(cluster, "POST", MAPS, configmap("g0"))
    for number in range(1, 4):
        body = child(made.body, f"g{number}")
        state, made, _ = ask(state, "POST", MAPS, body)
    state = settled(state)
    state = after(state, ("DELETE", MAPS + "/g0"))
    rounds = []
    while True:
        state, events = tick(state, 0.0)
        if not events:
            break
        rounds.append([event.object["metadata"]["name"] for event in events])
    assert rounds == [["g1"], ["g2"], ["g3"]]


def test_a_name_taken_anew_is_another_owner(cluster: Cluster) -> None:
    state, made, _ = ask(cluster, "POST", MAPS, configmap("owner"))
    state = after(state, ("POST", MAPS, child(made.body, "child")))
    state = after(state, ("DELETE", MAPS + "/owner"))
    state = after(state, ("POST", MAPS, configmap("owner")))
    assert ask(settled(state), "GET", MAPS + "/child")[1].status == 404


def test_an_owner_of_an_unknown_kind_may_live(cluster: Cluster) -> None:
    owner = {"metadata": {"name": "x", "uid": "1"}}
    state = after(cluster, ("POST", MAPS, child(owner, "child", kind="Unknown")))
    assert ask(settled(state), "GET", MAPS + "/child")[1].status == 200


def test_a_namespace_takes_everything_with_it(cluster: Cluster) -> None:
    there = FOOS.replace("default", "there")
    state = after(
        cluster,
        ("POST", "/api/v1/namespaces", {"metadata": {"name": "there"}}),
        ("POST", MAPS.replace("default", "there"), configmap("a")),
        ("POST", there, foo("a", metadata={"finalizers": ["x/y"]})),
        ("DELETE", "/api/v1/namespaces/there"),
    )
    state = settled(state)
    assert ask(state, "GET", MAPS.replace("default", "there"))[1].body["items"] == []
    assert ask(state, "GET", "/api/v1/namespaces/there")[1].status == 200
    released = {"metadata": {"finalizers": None}}
    state = settled(after(state, ("PATCH", there + "/a", released, MERGE_PATCH)))
    assert ask(state, "GET", "/api/v1/namespaces/there")[1].status == 404
