"""Lists, watches and tables of the simulated cluster, if no case compares them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from fnop.interpreters.cluster import (
    Cluster,
    answer,
    backlog,
    bookmark,
    content_type,
    empty_cluster,
    is_served,
    is_watch,
    presented,
    seen_by,
    wants_yaml,
)
from fnop.interpreters.cluster.kinds.kinds import builtin_registry
from fnop.interpreters.cluster.output.ages import human_duration
from fnop.interpreters.cluster.output.jsonpath import first
from fnop.interpreters.cluster.output.table import cells_of
from fnop.interpreters.runtime.protocol import (
    JSON,
    MERGE_PATCH,
    ApiRequest,
    ApiResponse,
)
from tests.thorough import examples

NOW = 1_700_000_000.0
MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TABLE = f"{JSON};as=Table;v=v1;g=meta.k8s.io"
START = empty_cluster()


def ask(
    cluster: Cluster,
    method: str,
    path: str,
    body: Any = None,
    content_type: str = JSON,
    accept: str = JSON,
    **query: str,
) -> tuple[Cluster, ApiResponse]:
    pairs = tuple(query.items())
    request = ApiRequest(method, path, pairs, body, content_type, accept)
    cluster, response, _ = answer(cluster, request, NOW)
    return cluster, response


def watch(path: str, accept: str = JSON, **query: str) -> ApiRequest:
    pairs = tuple({"watch": "true", **query}.items())
    return ApiRequest("GET", path, pairs, accept=accept)


def configmap(name: str, **parts: Any) -> dict[str, Any]:
    head = {"apiVersion": "v1", "kind": "ConfigMap"}
    return {**head, "metadata": {"name": name}, **parts}


def crd(**version: Any) -> dict[str, Any]:
    found = {"name": "v1", "served": True, "storage": True, **version}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.read.dev"},
        "spec": {
            "group": "read.dev",
            "scope": "Namespaced",
            "names": {"plural": "foos", "kind": "Foo"},
            "versions": [{**found, "schema": {"openAPIV3Schema": schema}}],
        },
    }


# ------------------------------------------------------------------------ pages

WRITES = st.lists(
    st.tuples(st.sampled_from(["put", "delete"]), st.sampled_from("abcdefg")),
    max_size=12,
)


def written(cluster: Cluster, writes: list[tuple[str, str]]) -> Cluster:
    for number, (verb, name) in enumerate(writes):
        path = f"{MAPS}/{name}"
        if verb == "delete":
            cluster, _ = ask(cluster, "DELETE", path)
            continue
        change = {"data": {"n": str(number)}}
        state, response = ask(cluster, "PATCH", path, change, MERGE_PATCH)
        if response.status == 404:
            state, response = ask(cluster, "POST", MAPS, configmap(name, **change))
        assert response.status in (200, 201)
        cluster = state
    return cluster


@settings(max_examples=30, deadline=None)
@given(WRITES, st.lists(WRITES, max_size=4), st.integers(1, 3))
def test_all_pages_together_are_the_state_of_the_first(
    before: list[tuple[str, str]], between: list[list[tuple[str, str]]], limit: int
) -> None:
    start = cluster = written(START, before)
    whole = ask(start, "GET", MAPS)[1].body["items"]
    found: list[Any] = []
    more = {"limit": str(limit)}
    while True:
        page = ask(cluster, "GET", MAPS, **more)[1].body
        assert page["metadata"]["resourceVersion"] == str(start.version)
        found += page["items"]
        token = page["metadata"].get("continue")
        if not token:
            break
        assert page["metadata"]["remainingItemCount"] == len(whole) - len(found)
        more["continue"] = token
        if between:
            cluster = written(cluster, between.pop())
    assert found == whole
    exact = {
        "resourceVersion": str(start.version),
        "resourceVersionMatch": "Exact",
    }
    assert ask(cluster, "GET", MAPS, **exact)[1].body["items"] == whole


# ---------------------------------------------------------------------- watches


def test_what_is_a_watch() -> None:
    assert is_watch(watch(MAPS))
    assert not is_watch(watch(f"{MAPS}/a"))
    assert not is_watch(ApiRequest("GET", MAPS, (("watch", "0"),)))
    assert not is_watch(ApiRequest("GET", MAPS))
    assert not is_watch(ApiRequest("DELETE", MAPS, (("watch", "1"),)))
    old = MAPS.replace("/v1/", "/v1/watch/")
    assert is_watch(ApiRequest("GET", old))
    assert is_watch(ApiRequest("GET", f"{old}/a"))
    assert not is_watch(ApiRequest("GET", "/api/v1/watch"))
    assert not is_watch(watch("/version"))


def test_an_old_path_of_one_object_follows_that_object() -> None:
    request = ApiRequest("GET", f"{MAPS}/a".replace("/v1/", "/v1/watch/"))
    cluster = empty_cluster()
    seen = []
    for name in "ab":
        create = ApiRequest("POST", MAPS, body=configmap(name))
        cluster, _, (event,) = answer(cluster, create, NOW)
        seen.append(seen_by(request, event, cluster.registry) is not None)
    assert seen == [True, False]
    found = backlog(cluster, request)
    assert isinstance(found, tuple)
    assert [event.object["metadata"]["name"] for event in found] == ["a"]


def test_a_bookmark_is_sent_to_those_who_ask() -> None:
    cluster = empty_cluster()
    asked = watch(MAPS, allowWatchBookmarks="true")
    found = bookmark(cluster, asked, NOW)
    assert found is not None
    assert found.type == "BOOKMARK"
    assert found.object == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": str(cluster.version)},
    }
    assert bookmark(cluster, watch(MAPS), NOW) is None
    assert bookmark(cluster, watch(MAPS, allowWatchBookmarks="0"), NOW) is None
    nothing = watch("/api/v1/nothings", allowWatchBookmarks="1")
    assert bookmark(cluster, nothing, NOW) is None


def test_events_in_other_forms() -> None:
    create = ApiRequest("POST", MAPS, body=configmap("a", data={"k": "v"}))
    cluster, _, (event,) = answer(empty_cluster(), create, NOW)
    assert presented(cluster, watch(MAPS), event, NOW) is event
    rows = presented(cluster, watch(MAPS, TABLE), event, NOW + 60, headed=True)
    assert rows is not None
    assert rows.object["rows"][0]["cells"] == ["a", 1, "60s"]
    assert len(rows.object["columnDefinitions"]) == 3
    later = presented(cluster, watch(MAPS, TABLE), event, NOW)
    assert later is not None
    assert later.object["columnDefinitions"] is None
    strange = watch("/api/v1/nothings", TABLE)
    assert presented(cluster, strange, event, NOW) is None


def test_a_stream_ends_with_its_kind() -> None:
    request = watch("/apis/read.dev/v1/foos")
    opened = ask(empty_cluster(), "POST", DEFINITIONS, crd())[0]
    assert is_served(opened, request)
    other = ask(opened, "POST", MAPS, configmap("a"))[0]
    assert is_served(other, request, opened)
    path = f"{DEFINITIONS}/foos.read.dev"
    change = {"spec": {"names": {"shortNames": ["f"]}}}
    changed, response = ask(opened, "PATCH", path, change, MERGE_PATCH)
    assert response.status == 200
    assert not is_served(changed, request, opened)
    assert is_served(changed, request)
    assert not is_served(empty_cluster(), request)


# ---------------------------------------------------------------------- notation


def test_notations() -> None:
    assert wants_yaml("application/yaml")
    assert not wants_yaml(f"application/yaml;q=0.5,{JSON}")
    assert not wants_yaml("")
    cluster = empty_cluster()
    discovery = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    for path, accept, wanted in (
        ("/apis", discovery, discovery),
        ("/apis", JSON, JSON),
        ("/apis", "application/yaml", "application/yaml"),
        ("/healthz", "application/yaml", "text/plain; charset=utf-8"),
    ):
        request = ApiRequest("GET", path, accept=accept)
        response = answer(cluster, request, NOW)[1]
        assert content_type(request, response) == wanted


def test_what_is_written_is_written_also_where_it_cannot_be_shown() -> None:
    accept = f"{JSON};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    cluster, response = ask(
        empty_cluster(), "POST", MAPS, configmap("a"), accept=accept
    )
    assert response.status == 406
    assert ask(cluster, "GET", f"{MAPS}/a")[1].status == 200


# ------------------------------------------------------------------------ tables


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "<invalid>"),
        (119, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (10_799, "179m"),
        (10_800, "3h"),
        (11_000, "3h3m"),
        (172_799, "47h"),
        (172_800, "2d"),
        (180_000, "2d2h"),
        (691_200, "8d"),
        (63_072_000, "2y"),
        (63_158_400, "2y1d"),
        (260_000_000, "8y"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


def cells(group: str, plural: str, **parts: Any) -> list[Any]:
    kinds = builtin_registry().by_path.values()
    kind = next(k for k in kinds if (k.group, k.plural) == (group, plural))
    return cells_of(kind, {"metadata": {"name": "a"}, **parts}, NOW)


def test_the_state_of_a_job() -> None:
    def state(*conditions: str, **metadata: Any) -> str:
        found = [{"type": name, "status": "True"} for name in conditions]
        obj: dict[str, Any] = {"status": {"conditions": found}}
        if metadata:
            obj["metadata"] = {"name": "a", **metadata}
        return str(cells("batch", "jobs", **obj)[1])

    assert state() == "Running"
    assert state("Complete") == "Complete"
    assert state("Suspended") == "Suspended"
    assert state("FailureTarget", "Failed") == "Failed"
    assert state(deletionTimestamp="2020-01-01T00:00:00Z") == "Terminating"


def test_how_long_a_job_took() -> None:
    status = {
        "startTime": "2020-01-01T00:00:00Z",
        "completionTime": "2020-01-01T00:01:30Z",
        "succeeded": 1,
    }
    found = cells("batch", "jobs", status=status, spec={"parallelism": 2})
    assert found[2:4] == ["1/1 of 2", "90s"]


def test_the_targets_of_an_autoscaler() -> None:
    metrics = [
        {
            "type": "Resource",
            "resource": {
                "name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 50},
            },
        }
    ]
    spec = {
        "scaleTargetRef": {"kind": "Deployment", "name": "d"},
        "metrics": metrics,
        "maxReplicas": 3,
    }
    found = cells("autoscaling", "horizontalpodautoscalers", spec=spec)
    assert found[1:6] == ["Deployment/d", "cpu: <unknown>/50%", "<unset>", 3, 0]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "spec", "status", "name"]), inner)
    ),
    max_leaves=12,
)


@settings(max_examples=examples(50), deadline=None)
@given(JSON_VALUES, st.sampled_from(sorted(builtin_registry().by_path)))
def test_no_object_breaks_a_table(body: Any, path: tuple[str, str, str]) -> None:
    kind = builtin_registry().by_path[path]
    for obj in (
        {"metadata": {"name": "a"}, "spec": body, "status": body},
        {"metadata": {"name": "a"}, **(body if isinstance(body, dict) else {})},
    ):
        assert isinstance(cells_of(kind, obj, NOW), list)


@settings(max_examples=80, deadline=None)
@given(st.text(alphabet=".[]*'\"\\?@()=<>ab01:-", max_size=14), JSON_VALUES)
def test_no_path_breaks_a_column(path: str, value: Any) -> None:
    assert len(first(path, value)) <= 1


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["labelSelector", "fieldSelector", "continue", "limit"]),
    st.text(alphabet=".[]*'\"\\!()=<>ab01:-, innotAZ/\u00e9\n", max_size=16),
    st.text(max_size=12),
)
def test_no_option_breaks_a_list(name: str, text: str, accept: str) -> None:
    query = {name: text}
    _, response = ask(START, "GET", MAPS, accept=accept, **query)
    assert response.status in (200, 400, 406, 410, 422, 504)
    backlog(START, watch(MAPS, accept, **query))
