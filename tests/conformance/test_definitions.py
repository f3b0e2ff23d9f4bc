"""Definitions of well-known projects: the simulated cluster and Kubernetes 1.36.

The simulated cluster stores and refuses the definitions, and objects generated from
their schemas, as Kubernetes 1.36 does.

FNOP_DEFINITIONS names the folder with the packages from `python -m
tests.conformance.packaged`: `make definitions` does both. FNOP_SAMPLES is the number of
objects that are tried of each version.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.envtest import ApiServer
from tests.conformance.differential import DECODER, with_each_cause_once
from tests.conformance.made_objects import samples
from tests.conformance.packaged import PACKAGES, Package, definitions_of
from tests.conformance.renaming import Renaming, differences
from tests.conformance.servers import DEFINITIONS, install, missing, running
from tests.conformance.suite import Raw, Simulated
from tests.patience import eventually, happens

Json = dict[str, Any]
Answer = tuple[int, Any]

SAMPLES = int(os.environ.get("FNOP_SAMPLES") or 4)
SPACE = "definitions"


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Kubernetes 1.36 without any definition."""
    if (reason := missing("1.36")) is not None:
        pytest.skip(reason)
    with running("1.36", tmp_path_factory.mktemp("definitions")) as api:
        yield api


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: str(package.name))
def test_both_take_the_same(package: Package, folder: Path, real: ApiServer) -> None:
    if not (folder / package.archive).exists():
        pytest.skip(f"{package.archive} could not be fetched")
    pair = Pair(real)
    for definition in definitions_of(package, folder):
        pair.compare(definition)
    print(f"\n{package.name} {package.version}: {pair.told()}")
    assert pair.counts["definitions"]
    assert pair.found == []


class Pair:
    """Both servers, and how they differ."""

    def __init__(self, real: ApiServer) -> None:
        self.real = real
        self.simulated = Simulated()
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
        assert self.simulated.raw("POST", "/api/v1/namespaces", body)[0] == 201
        self.counts: Counter[str] = Counter()
        self.found: list[str] = []

    def told(self) -> str:
        """The comparisons, in words."""
        return ", ".join(f"{count} {what}" for what, count in self.counts.items())

    def compare(self, definition: Json) -> None:
        """A definition, from its creation to its end, and objects of its versions."""
        self.counts["definitions"] += 1
        name = definition["metadata"]["name"]
        self._compare(name, DEFINITIONS, definition, {"dryRun": "All"})
        if self.simulated.raw("POST", DEFINITIONS, definition)[0] != 201:
            self.counts["refused definitions"] += 1
            return
        install(self.real, (definition,))
        self._compare_stored(name)
        spec = definition["spec"]
        inside = "" if spec["scope"] == "Cluster" else f"/namespaces/{SPACE}"
        for version in spec["versions"]:
            path = f"/apis/{spec['group']}/{version['name']}{inside}"
            for sample in samples(definition, version, SAMPLES):
                what = f"{name} {version['name']} {sample['metadata']['name']}"
                self._compare(what, f"{path}/{spec['names']['plural']}", sample, {})
        self._remove(name)

    def _compare(self, what: str, path: str, body: Json, query: dict[str, str]) -> None:
        ours = self.simulated.raw("POST", path, body, query=query)
        theirs = self.real.raw("POST", path, body, query=query)
        self.counts[f"answers {theirs[0]}"] += 1
        unlike = differences(
            *(Renaming(SPACE).of(comparable(x)) for x in (ours, theirs))
        )
        if unlike:
            self.found.append(f"{what}: {unlike}")

    def _compare_stored(self, name: str) -> None:
        """The definition once all controllers have seen it."""
        ours = stored_definition(self.simulated, name)

        def unlike() -> str:
            return differences(ours, stored_definition(self.real, name))

        if not happens(lambda: not unlike(), every=0.02):
            self.found.append(f"{name} as it is stored: {unlike()}")

    def _remove(self, name: str) -> None:
        """Other packages have a definition of the same name."""
        path = f"{DEFINITIONS}/{name}"
        self.simulated.raw("DELETE", path)
        self.simulated.settle()
        self.real.raw("DELETE", path)
        eventually(
            lambda: self.real.raw("GET", path)[0] == 404,
            otherwise=lambda: f"{name} does not end",
        )


def stored_definition(server: Raw, name: str) -> Json:
    """A definition without what no two servers have in common."""
    status, found = server.raw("GET", f"{DEFINITIONS}/{name}")
    assert status == 200, found
    metadata = found["metadata"]
    for volatile in ("managedFields", "resourceVersion"):
        metadata.pop(volatile, None)
    # Two controllers add their conditions, in any order.
    found["status"]["conditions"].sort(key=lambda condition: str(condition["type"]))
    renamed: Json = Renaming(SPACE).of(found)
    return renamed


def comparable(answer: Answer) -> Json:
    """The common part of two servers' answers."""
    status, body = answer
    if status < 400:
        return {"code": status, "answer": body}
    if DECODER.search(str(body.get("message"))):
        return {"code": status, "reason": body["reason"]}
    return {"code": status, "answer": with_each_cause_once(body)}
