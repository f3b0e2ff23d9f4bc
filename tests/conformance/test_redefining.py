"""A definition that is edited while its objects exist.

Both servers read, count and refuse alike.

FNOP_SEQUENCES and FNOP_SEED are the same as for the random sequences. Each takes a few
seconds, as the real server takes its time to serve a definition again.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st

from fnop.interpreters.runtime.protocol import APPLY_PATCH, JSON, MERGE_PATCH
from tests.cluster.envtest import ApiServer
from tests.conformance.differential import DECODER, UNTYPED, with_each_cause_once
from tests.conformance.renaming import Renaming, differences
from tests.conformance.servers import DEFINITIONS, install, missing, running
from tests.conformance.suite import Raw, Simulated
from tests.patience import eventually

Json = dict[str, Any]
Step = tuple[str, str, Any]

COUNT = max(1, int(os.environ.get("FNOP_SEQUENCES") or 60) // 20)
SEED = int(os.environ.get("FNOP_SEED") or 1)
GROUP, SPACE = "redefining.conf.dev", "redefining"

INTEGER: Json = {"type": "integer"}
TEXT: Json = {"type": "string"}
# What a field may become.
VARIANTS: dict[str, list[Json | None]] = {
    "a": [None, INTEGER, {**INTEGER, "maximum": 2}, {**INTEGER, "default": 1}],
    "b": [None, TEXT, {**TEXT, "default": "x"}, {**TEXT, "enum": ["x", "y"]}],
    "c": [
        None,
        {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        {"type": "array", "items": TEXT},
        {"type": "object", "additionalProperties": INTEGER},
    ],
    "d": [
        None,
        {"type": "object", "properties": {"x": INTEGER}},
        {"type": "object", "properties": {"x": {**INTEGER, "default": 3}}},
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        {"type": "foo"},
        {"type": "array"},
        {**INTEGER, "default": "x"},
    ],
}
SCHEMAS = st.fixed_dictionaries({k: st.sampled_from(v) for k, v in VARIANTS.items()})
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "a": st.sampled_from([1, 2, 3, "x"]),
        "b": st.sampled_from(["x", "z", None, 1]),
        "c": st.sampled_from([["p"], ["p", "p"], {"k": 1}, []]),
        "d": st.sampled_from([{}, {"x": 1}, {"y": 2}, {"x": "t"}]),
    },
)
NAMES = st.sampled_from(["o", "p"])
VERBS = ["create", "merge", "merge", "apply", "status", "get", "list", "put"]
STEPS = st.tuples(st.sampled_from(VERBS), NAMES, SPECS)
EDITS = st.tuples(st.just("redefine"), st.just(""), SCHEMAS)
SEQUENCES = st.lists(
    st.tuples(EDITS, st.lists(STEPS, min_size=2, max_size=6)), min_size=2, max_size=4
).map(lambda parts: [s for edit, steps in parts for s in (edit, *steps)])


def definition(plural: str, fields: Json, mark: int) -> Json:
    """The definition with these fields, and a mark that shows that it is served."""
    known = {name: part for name, part in fields.items() if part is not None}
    known["mark"] = {**INTEGER, "default": mark}
    spec = {"type": "object", "default": {}, "properties": known}
    parts = {"spec": spec, "status": {"type": "object", "properties": {"phase": TEXT}}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": parts}},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": plural.capitalize()},
            "versions": [version],
        },
    }


class Player:
    """One server, with a sequence played on it."""

    def __init__(self, server: Raw, plural: str) -> None:
        self.server, self.plural, self.marks = server, plural, itertools.count(1)
        self.path = f"/apis/{GROUP}/v1/namespaces/{SPACE}/{plural}"
        self.names = Renaming(SPACE, "1.36")

    def body(self, name: str, **parts: Any) -> Json:
        head = {"apiVersion": f"{GROUP}/v1", "kind": self.plural.capitalize()}
        return {**head, "metadata": {"name": name}, **parts}

    def play(self, verb: str, name: str, part: Any) -> Any:
        """The comparable answer to one step."""
        if verb == "redefine":
            return self._redefine(part)
        status, found = self._send(verb, f"{self.path}/{name}", name, part)
        message = str(found.get("message"))
        if status >= 400 and (DECODER.search(message) or UNTYPED in message):
            return {"code": status}
        if status >= 400:
            found = with_each_cause_once(found)
        return self.names.of({"code": status, "answer": found})

    def _send(self, verb: str, path: str, name: str, part: Any) -> tuple[int, Any]:
        send = self.server.raw
        match verb:
            case "create":
                return send("POST", self.path, self.body(name, spec=part))
            case "put":
                _, live = send("GET", path)
                return send("PUT", path, {**live, "spec": part})
            case "merge":
                return send("PATCH", path, {"spec": part}, MERGE_PATCH)
            case "apply":
                query = {"fieldManager": "m", "force": "true"}
                return send(
                    "PATCH", path, self.body(name, spec=part), APPLY_PATCH, query
                )
            case "status":
                patch = {"status": {"phase": str(len(part))}}
                return send("PATCH", f"{path}/status", patch, MERGE_PATCH)
            case "list":
                return send("GET", self.path)
            case _:
                return send("GET", path, None, JSON)

    def _redefine(self, fields: Json) -> Any:
        mark = next(self.marks)
        body = definition(self.plural, fields, mark)
        path = f"{DEFINITIONS}/{self.plural}.{GROUP}"
        patch = {"spec": {"versions": body["spec"]["versions"]}}
        status, found = self.server.raw("PATCH", path, patch, MERGE_PATCH)
        if status >= 400:
            return self.names.of({"code": status, "answer": found})
        self._await(mark)
        return {"code": status, "spec": found["spec"]}

    def _await(self, mark: int) -> None:
        tried: tuple[int, Any] = (0, None)

        def is_served() -> bool:
            nonlocal tried
            tried = self.server.raw(
                "POST", self.path, self.body("tried"), query={"dryRun": "All"}
            )
            return tried[0] == 201 and bool(tried[1]["spec"]["mark"] == mark)

        eventually(is_served, otherwise=lambda: tried, every=0.02)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Kubernetes 1.36 without any definition."""
    if (reason := missing("1.36")) is not None:
        pytest.skip(reason)
    with running("1.36", tmp_path_factory.mktemp("redefining")) as api:
        yield api


def test_both_read_through_the_definition_of_today(real: ApiServer) -> None:
    numbers = itertools.count(1)
    counts = {"sequences": 0, "steps": 0}

    @settings(
        max_examples=COUNT,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @seed(SEED)
    @given(SEQUENCES)
    def play(steps: list[Step]) -> None:
        plural = f"kind{next(numbers)}s"
        first = definition(plural, {"a": INTEGER, "b": TEXT}, 0)
        simulated = Simulated()
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
        assert simulated.raw("POST", "/api/v1/namespaces", space)[0] == 201
        assert simulated.raw("POST", DEFINITIONS, first)[0] == 201
        install(real, (first,))
        ours, theirs = Player(simulated, plural), Player(real, plural)
        counts["sequences"] += 1
        for step in steps:
            counts["steps"] += 1
            mine, other = ours.play(*step), theirs.play(*step)
            found = differences(mine, other)
            assert not found, f"{step}\n{found}\nsimulated: {mine}\nreal: {other}"

    play()
    print(f"\nseed {SEED}: {counts['sequences']} sequences, {counts['steps']} steps")
