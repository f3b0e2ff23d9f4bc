"""Kinds of Python types on all servers: definitions, defaults, refusals.

The simulated cluster and the real servers get the same requests; Kubernetes 1.20 knows
no CEL rules, and drops them. Random kinds are made there for a trial (`dryRun`).
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

import fnop
from fnop.adapters.definitions.classes import definitions_of
from fnop.interpreters.cluster import Cluster
from fnop.interpreters.runtime.protocol import APPLY_PATCH, MERGE_PATCH
from tests.conformance.servers import (
    DEFINITIONS,
    NAMESPACE,
    SERVERS,
    Real,
    fork,
)
from tests.conformance.suite import Raw
from tests.long import parameters
from tests.patience import eventually
from tests.type_trees import Kind, kinds

Json = dict[str, Any]

SIMULATED = "simulated"
COUNT = max(1, int(os.environ.get("FNOP_SEQUENCES") or 60) // 2)
SEED = int(os.environ.get("FNOP_SEED") or 1)


@dataclass(frozen=True)
class Backup:
    """When backups are made, and how many are kept."""

    schedule: Annotated[str, fnop.schema(pattern=r"^(\S+ ){4}\S+$", max_length=99)]
    keep: Annotated[int, fnop.schema(minimum=1)] = 7


@dataclass(frozen=True)
class User:
    name: str
    rights: Literal["read", "write"] = "read"


@fnop.schema(rules=[fnop.rule("self.low <= self.high", "low is not above high")])
@dataclass(frozen=True)
class Range:
    low: int = 0
    high: int = 9


@dataclass(frozen=True)
class StoreSpec:
    size: fnop.Quantity
    replicas: Annotated[int, fnop.schema(minimum=1, exclusive_maximum=10)] = 1
    engine: Literal["postgres", "mysql"] = "postgres"
    backup: Backup | None = None
    nightly: Backup = Backup("0 0 * * *")
    users: Annotated[
        tuple[User, ...], fnop.schema(list_type="map", list_keys=["name"], max_items=9)
    ] = ()
    tags: frozenset[str] = frozenset()
    range: Range = Range()
    opened: datetime = datetime(2026, 1, 2, tzinfo=UTC)
    extra: Any = None
    template: Annotated[Any, fnop.schema(embedded=True)] = None


@dataclass(frozen=True)
class StoreStatus:
    replicas: int = 0
    selector: str = ""


@fnop.definition(
    "stores.v1.typed.conf.dev",
    short_names=["sto"],
    categories=["all"],
    columns=[
        fnop.column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        fnop.column("Age", ".metadata.creationTimestamp", type="date"),
    ],
    scale=fnop.scale(
        spec=".spec.replicas", status=".status.replicas", selector=".status.selector"
    ),
    rules=[fnop.rule("self.spec.replicas <= 8", "at most eight replicas")],
    conditions=True,
    storage=True,
)
@dataclass(frozen=True)
class Store:
    """A store of data."""

    spec: StoreSpec
    status: StoreStatus = StoreStatus()


@fnop.definition(
    "stores.v1beta1.typed.conf.dev",
    kind="Store",
    singular="store",
    short_names=["sto"],
    categories=["all"],
    deprecated="use v1",
)
@dataclass(frozen=True)
class FormerStore:
    spec: StoreSpec


FILLED = {
    "size": "1Gi",
    "replicas": 1,
    "engine": "postgres",
    "nightly": {"schedule": "0 0 * * *", "keep": 7},
    "users": [],
    "tags": [],
    "range": {"low": 0, "high": 9},
    "opened": "2026-01-02T00:00:00Z",
}
BAD: list[Json] = [
    {},
    {"size": "much"},
    {"size": 0.5},
    {"size": 1, "replicas": 0},
    {"size": 1, "replicas": 10},
    {"size": 1, "replicas": "1"},
    {"size": 1, "engine": "sqlite"},
    {"size": 1, "backup": {}},
    {"size": 1, "backup": {"schedule": "daily"}},
    {"size": 1, "users": [{"name": "a"}, {"name": "a"}]},
    {"size": 1, "users": [{"rights": "read"}]},
    {"size": 1, "tags": ["a", "a"]},
    {"size": 1, "opened": "today"},
    {"size": 1, "template": {"kind": "Pod"}},
]
BY_RULES: list[Json] = [
    {"size": 1, "replicas": 9},
    {"size": 1, "range": {"low": 10}},
]


@dataclass
class Place:
    """A server with the kind in it."""

    version: str
    server: Raw
    namespace: str

    def path(self, name: str = "", version: str = "v1") -> str:
        root = f"/apis/typed.conf.dev/{version}/namespaces/{self.namespace}/stores"
        return f"{root}/{name}" if name else root

    def create(self, name: str, **spec: Any) -> tuple[int, Any]:
        body = {"apiVersion": "typed.conf.dev/v1", "kind": "Store", "spec": spec}
        return self.server.raw(
            "POST", self.path(), {**body, "metadata": {"name": name}}
        )


# The older server takes long: random kinds are accepted by all at once.
@pytest.fixture(params=parameters([SIMULATED, *SERVERS], {SIMULATED, SERVERS[-1]}))
def place(
    request: pytest.FixtureRequest, base: Cluster, real: Callable[[str], Real]
) -> Iterator[Place]:
    """Serve the kind on one server, and remove it afterwards."""
    version: str = request.param
    if version == SIMULATED:
        found = Place(version, fork(base), NAMESPACE)
    else:
        server = real(version)
        found = Place(version, server.api, server.namespace())
    (definition,) = definitions_of([Store, FormerStore])
    status, answer = found.server.raw("POST", DEFINITIONS, definition)
    assert status == 201, answer
    # A real server serves a kind a while after it has been defined.
    eventually(lambda: found.create("trial", size=1)[0] == 201)
    yield found
    if version == SIMULATED:
        return  # a fork, which no other test sees
    path = f"{DEFINITIONS}/stores.typed.conf.dev"
    found.server.raw("DELETE", path)
    eventually(lambda: found.server.raw("GET", path)[0] == 404)


def without_rules(value: Any) -> Any:
    if isinstance(value, list):
        return [*map(without_rules, value)]
    if not isinstance(value, dict):
        return value
    return {
        name: without_rules(each)
        for name, each in value.items()
        if name != "x-kubernetes-validations"
    }


def test_the_server_keeps_all_of_the_definition(place: Place) -> None:
    (definition,) = definitions_of([Store, FormerStore])
    path = f"{DEFINITIONS}/stores.typed.conf.dev"
    status, found = place.server.raw("GET", path)
    assert status == 200
    wanted = definition["spec"]
    if place.version == "1.20":
        wanted = without_rules(wanted)
    assert found["spec"]["versions"] == wanted["versions"]
    assert found["spec"]["names"] == {**wanted["names"], "listKind": "StoreList"}
    accepted = {each["type"]: each["status"] for each in found["status"]["conditions"]}
    assert accepted.get("NonStructuralSchema", "False") == "False"


def test_defaults_are_filled_in_and_bad_objects_refused(place: Place) -> None:
    status, found = place.create("good", size="1Gi", extra={"any": [1]}, backup=None)
    assert status == 201, found
    assert found["spec"] == {**FILLED, "extra": {"any": [1]}}
    for spec in BAD:
        status, answer = place.create("bad", **spec)
        assert status == 422, (spec, answer)
    for spec in BY_RULES:
        status, answer = place.create("bad", **spec)
        assert status == (201 if place.version == "1.20" else 422), (spec, answer)
        place.server.raw("DELETE", place.path("bad"))


def test_the_former_version_has_the_same_objects(place: Place) -> None:
    assert place.create("old", size="1Gi")[0] == 201
    status, found = place.server.raw("GET", place.path("old", "v1beta1"))
    assert (status, found["spec"]) == (200, FILLED)


def test_the_status_keeps_fnops_state_and_conditions_are_a_map(place: Place) -> None:
    assert place.create("seen", size=1)[0] == 201
    path = f"{place.path('seen')}/status"
    state = {"fnop.dev/default": "{}", "created": {"any": "result"}}
    patch = {"status": {**state, "replicas": 1}}
    status, found = place.server.raw("PATCH", path, patch, MERGE_PATCH)
    assert (status, found["status"]) == (200, {**state, "replicas": 1})
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Fine",
        "message": "all is fine",  # 1.20 takes an empty text for null
        "lastTransitionTime": "2026-01-02T00:00:00Z",
    }
    body = {"apiVersion": "typed.conf.dev/v1", "kind": "Store"}
    for kind in ("Ready", "fnop.dev/default"):
        status, found = place.server.raw(
            "PATCH",
            path,
            {**body, "status": {"conditions": [{**ready, "type": kind}]}},
            APPLY_PATCH,
            {"fieldManager": kind.replace("/", "-"), "force": "true"},
        )
        assert status == 200, found
    types = [each["type"] for each in found["status"]["conditions"]]
    # 1.20 forgets its knowledge of an object that keeps unknown fields when it applies
    # to it: there the list is one value.
    alone = ["fnop.dev/default"]
    assert sorted(types) == (alone if place.version == "1.20" else ["Ready", *alone])
    for wrong in (
        {**ready, "status": "yes"},
        {"type": "Ready"},
        {**ready, "reason": ""},
    ):
        patch = {"status": {"conditions": [wrong]}}
        assert place.server.raw("PATCH", path, patch, MERGE_PATCH)[0] == 422
    status, found = place.server.raw("GET", f"{place.path('seen')}/scale")
    assert (status, found["spec"], found["status"]) == (
        200,
        {"replicas": 1},
        {"replicas": 1},
    )


def test_random_kinds_are_accepted_for_a_trial(
    base: Cluster, real: Callable[[str], Real]
) -> None:
    servers: dict[str, Raw] = {version: real(version).api for version in SERVERS}
    servers[SIMULATED] = fork(base)
    counts: Counter[str] = Counter()

    @settings(
        max_examples=COUNT,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @seed(SEED)
    @given(kinds())
    def play(kind: Kind) -> None:
        (definition,) = definitions_of([kind.cls])
        for version, server in servers.items():
            if version == "1.20" and '""' in json.dumps(definition):
                continue  # its validator takes an empty text for null
            counts[version] += 1
            status, answer = server.raw(
                "POST", DEFINITIONS, definition, query={"dryRun": "All"}
            )
            assert status == 201, answer["message"]

    play()
    print(f"\nseed {SEED}: {dict(counts)}")
    assert counts["1.20"] > counts["1.36"] / 4
