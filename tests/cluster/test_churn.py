"""Half a minute of churn under faults; `make churn` is an hour of it with more objects.

It is recorded, and the recordings are asked (`CHURN_RECORDED=1`).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.churn.plans import Plan
from tests.cluster.churn.proving import proved
from tests.cluster.churn.running import churn
from tests.patience import patience

PLAN = Plan(seconds=25, seed=20260101, objects=30, bound=patience(20), recorded=True)


@pytest.mark.long
async def test_after_the_last_fault_all_is_as_it_has_to_be(tmp_path: Path) -> None:
    """Nothing was done twice, nothing is missing, and the log has what it may have."""
    report = await churn(PLAN, tmp_path)
    print(report)
    assert report.violations == [], str(report)
    # What did not happen cannot have gone well.
    assert report.changes["create"] > PLAN.objects / 2
    assert report.changes["delete"]
    assert report.struck
    assert {"made", "changed", "fielded", "ended", "followed"} <= report.calls.keys()
    proof = proved(sorted(tmp_path.glob("operator-*.fnop")), tmp_path)
    assert proof.problems == [], str(proof)
    assert proof.decisions
