"""Built-in objects as a real API server returns them, restored and updated.

The same requests go to the server, as dry runs, and to the simulated cluster into which
the objects were restored.  Both accept or refuse them, and store the same.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from fnop.adapters.kubernetes.client import connect
from fnop.interpreters.cluster import Cluster, blank_cluster, describing, restored
from fnop.interpreters.plan.source import Cluster as RealCluster
from fnop.interpreters.runtime.protocol import APPLY_PATCH, JSON, MERGE_PATCH
from fnop.interpreters.simulation.assumed import assumed_definitions
from tests.cluster.envtest import ApiServer, running
from tests.conformance.field_faults import (
    ABSENT,
    Fault,
    Fields,
    Place,
    Schemas,
    is_quantity,
    type_of,
)
from tests.conformance.renaming import differences
from tests.conformance.samples import Sample, samples
from tests.conformance.suite import Simulated

Json = dict[str, Any]
Answer = tuple[int, Any]
# Quotas and limits would refuse the other objects of the namespace.
LIMITING = ("LimitRange", "ResourceQuota")
SAMPLES = tuple(each for each in samples() if each.object["kind"] not in LIMITING)
DRY = {"dryRun": "All"}
# What a current server does otherwise than 1.20, by kind and field.
# Kinds that had other fields once are taken to have no schema.
NEWER = {
    ("Event", ""),
    ("EndpointSlice", ""),
    ("HorizontalPodAutoscaler", ""),
    ("Service", "spec"),
    ("Service", "spec.clusterIP"),
    ("StatefulSet", "spec.revisionHistoryLimit"),
}


class Twins:
    """An object on the server, and the same one restored into the simulated cluster."""

    def __init__(
        self, api: ApiServer, base: Cluster, space: str, sample: Sample
    ) -> None:
        self.api, self.base, self.sample = api, base, sample
        self.kind = sample.object["kind"]
        self.name = f"kind-{sample.number}-{space}"
        self.path = sample.at.replace("{ns}", space)
        self.manifest = sample.named(self.name, space)
        status, found = api.raw("POST", self.path, self.manifest)
        assert status == 201, found
        self.read()

    def read(self) -> None:
        status, self.live = self.api.raw("GET", f"{self.path}/{self.name}")
        assert status == 200, self.live
        root, *parts = self.sample.at.strip("/").split("/")
        group, version = ("", parts[0]) if root == "api" else (parts[0], parts[1])
        self.cluster = restored(self.base, (group, version, parts[-1]), [self.live])

    def asked(
        self, method: str, change: Any, content_type: str, query: Any = None
    ) -> tuple[Answer, Answer]:
        """The answers of the server and of the simulated one; `change` is a body, or a
        function of the live object that returns one.
        """
        where = f"{self.path}/{self.name}"
        body = change(self.live) if callable(change) else change
        request = (method, where, body, content_type)
        theirs = self.api.raw(*request, {**(query or {}), **DRY})
        # No dry run: the resourceVersion shows whether something was written.
        return theirs, Simulated(self.cluster).raw(*request, query)

    def differ(self, theirs: Answer, ours: Answer) -> str:
        """The differences of the two answers, in words."""
        if theirs[0] != ours[0]:
            return f"{ours[0]}, not {theirs[0]}: {refusal(ours)} {refusal(theirs)}"
        if theirs[0] >= 400:
            return ""
        return differences(content(ours[1]), content(theirs[1])) or ""


def refusal(answer: Answer) -> str:
    return answer[1].get("message", "") if answer[0] >= 400 else ""


def content(obj: Json) -> Json:
    """The object without its version and its managed fields."""
    result = json.loads(json.dumps(obj))
    for each in ("managedFields", "resourceVersion"):
        result["metadata"].pop(each, None)
    return result  # type: ignore[no-any-return]


async def emptied(api: ApiServer) -> Cluster:
    """A simulated cluster that serves what the server does, as for a plan."""
    found = await connect(kubeconfig=str(api.kubeconfig), context=None)
    try:
        catalogue, problem = await RealCluster(found).catalogue()
    finally:
        await found.close()
    assert problem is None
    served = {(e.group, e.version, e.plural) for e in catalogue.resources}
    cluster = blank_cluster("0", 0, served)
    return describing(cluster, assumed_definitions(catalogue, cluster, []))


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server of its own, without other writers."""
    folder = tmp_path_factory.mktemp("calm")
    with running(folder, controllers=False) as server:
        yield server


@pytest.fixture(scope="module")
def base(calm: ApiServer) -> tuple[Cluster, str]:
    """The cluster with a namespace alone, and its name."""
    cluster, space = asyncio.run(emptied(calm)), calm.namespace()
    status, found = calm.raw("GET", f"/api/v1/namespaces/{space}")
    assert status == 200
    return restored(cluster, ("", "v1", "namespaces"), [found]), space


@pytest.fixture(scope="module")
def twins(calm: ApiServer, base: tuple[Cluster, str]) -> dict[Sample, Twins]:
    return {each: Twins(calm, *base, each) for each in SAMPLES}


def labelled(live: Json) -> Json:
    labels = {**live["metadata"].get("labels", {}), "more": "x"}
    return {**live, "metadata": {**live["metadata"], "labels": labels}}


APPLY = {"fieldManager": "me", "force": "true"}


def test_there_are_many_kinds() -> None:
    kinds = {each.object["kind"] for each in SAMPLES}
    assert len(kinds) >= 30
    assert {"StatefulSet", "CronJob", "Ingress", "PodDisruptionBudget"} <= kinds


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_what_changes_nothing_is_no_write_and_a_label_is_one(
    sample: Sample, twins: dict[Sample, Twins]
) -> None:
    one = twins[sample]
    for what in ("put", "apply", "label"):
        match what:
            case "put":
                answers = one.asked("PUT", lambda live: live, JSON)
            case "apply":
                answers = one.asked("PATCH", one.manifest, APPLY_PATCH, APPLY)
            case _:
                answers = one.asked("PUT", labelled, JSON)
        theirs, ours = answers
        assert theirs[0] == 200, (what, theirs)
        assert one.differ(theirs, ours) == "", what
        # Nothing is lost of what the server has, and no field appears.
        before, after = content(one.live), content(ours[1])
        if what == "label":
            assert after["metadata"]["labels"].pop("more") == "x"
            before["metadata"].setdefault("labels", {})
        assert after == before, what
        version = ours[1]["metadata"]["resourceVersion"]
        is_written = version != one.live["metadata"]["resourceVersion"]
        # An apply by a new client is a write: of managed fields.
        assert is_written == (what != "put"), what
    if one.kind != "Service":  # whose ports get others
        theirs, ours = one.asked("PATCH", one.manifest, MERGE_PATCH)
        assert one.differ(theirs, ours) == ""


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_what_was_applied_is_applied_again_without_a_change(
    sample: Sample, twins: dict[Sample, Twins]
) -> None:
    one = twins[sample]
    where = f"{one.path}/{one.name}"
    status, found = one.api.raw("PATCH", where, one.manifest, APPLY_PATCH, APPLY)
    assert status == 200, found
    one.read()
    _, ours = one.asked("PATCH", one.manifest, APPLY_PATCH, APPLY)
    assert ours[0] == 200, ours
    # Older servers do not say who manages what is empty.
    assert content(ours[1]) == content(one.live)


def others(place: Place) -> Iterator[Any]:
    """Other values of a field, one of them none at all."""
    match type_of(place.schema), place.value:
        case "string", value:
            yield "2" if is_quantity(place.schema) else f"{value}x"
        case "integer", int(value):
            yield value + 1
        case "boolean", value:
            yield not value
        case _:
            pass
    yield ABSENT


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_each_field_may_be_changed_as_on_the_server(
    sample: Sample, twins: dict[Sample, Twins], schemas: Schemas
) -> None:
    one, found = twins[sample], []
    for place in Fields(schemas, sample).present:
        field = ".".join(str(each) for each in place.path)
        if {(one.kind, ""), (one.kind, field)} & NEWER or place.path[0] == "metadata":
            continue
        if "containers." in field and one.kind not in ("Pod", "StatefulSet"):
            continue  # the same for all
        for value in others(place):
            fault = Fault("changed", place.path, value)
            if fault.applied(one.live) in (None, one.live):
                continue
            theirs, ours = one.asked("PUT", fault.applied, JSON, DRY)
            told = one.differ(theirs, ours)
            if theirs[0] != ours[0] or (told and value is not ABSENT):
                found.append(f"{fault}: {told}")
    assert found == []


@pytest.fixture(scope="module")
def schemas(calm: ApiServer) -> Schemas:
    status, found = calm.raw("GET", "/openapi/v2")
    assert status == 200
    return Schemas(deepcopy(found["definitions"]))
