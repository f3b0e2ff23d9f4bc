"""One fault in one field of a built-in object: the simulated and the real server refuse
it for the same fields, or store the same.

FNOP_FIELD_FAULTS says how many are tried, FNOP_SEED which: `make field-faults` tries
6,000.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conformance.field_faults import (
    ABSENT,
    Difference,
    Duel,
    Fault,
    report,
    trials,
)
from tests.conformance.samples import Sample, samples
from tests.conformance.servers import missing, running
from tests.conformance.suite import Simulated

COUNT = int(os.environ.get("FNOP_FIELD_FAULTS") or 100)
SEED = int(os.environ.get("FNOP_SEED") or 1)
# Of a hundred trials; docs/explanation/differences-of-kinds.md lists the rest.
ALLOWED = 1


def test_both_refuse_and_store_the_same(tmp_path: Path) -> None:
    if (reason := missing("1.20")) is not None:
        pytest.skip(reason)
    with running("1.20", tmp_path, controllers=False) as api:
        duel = Duel(api, Simulated())
        found: list[Difference] = []
        for trial in trials(duel.schemas, COUNT, SEED):
            difference = duel.run(trial)
            if difference is not None:
                found.append(difference)
    unknown = [one for one in found if not one.known]
    told = f"seed {SEED}: {duel.told()}, {len(unknown)} differences"
    print(f"\n{told}\n{report(found)}")
    assert len(unknown) * 100 <= COUNT * ALLOWED, f"{told}\n{report(unknown)}"


@pytest.mark.parametrize("sample", samples(), ids=str)
def test_samples_are_valid(sample: Sample) -> None:
    space = "a"
    server = Simulated()
    body = {"metadata": {"name": space}}
    assert server.raw("POST", "/api/v1/namespaces", body)[0] == 201
    path, obj = sample.now.replace("{ns}", space), sample.named("one", space)
    status, found = server.raw("POST", path, {**obj, "apiVersion": sample.api_version})
    assert status == 201, found


def test_a_fault_is_sent_whole_and_as_a_patch() -> None:
    obj = {"spec": {"ports": [{"port": 80}], "type": "A"}}
    one = Fault("empty", ("spec", "ports", 0, "port"), 0)
    spoiled = one.applied(obj)
    assert spoiled == {"spec": {"ports": [{"port": 0}], "type": "A"}}
    assert one.patch(spoiled) == {"spec": {"ports": [{"port": 0}]}}
    gone = Fault("dropped", ("spec", "type"), ABSENT)
    spoiled = gone.applied(obj)
    assert spoiled == {"spec": {"ports": [{"port": 80}]}}
    assert gone.patch(spoiled) == {"spec": {"type": None}}
    assert gone.applied({}) is None
