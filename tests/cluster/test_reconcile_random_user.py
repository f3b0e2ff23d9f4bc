"""A few runs of the random user; `make reconciler-driver` plays fifty of each kind."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cluster import crd_server
from tests.cluster.envtest import ApiServer
from tests.cluster.reconciler_runs import drive, on_crds_alone
from tests.long import parameters
from tests.reconciler_driver import ELSEWHERE, SUBJECTS


@pytest.mark.parametrize("seed", [1])
@pytest.mark.parametrize("kind", parameters(SUBJECTS, ["databases"]))
def test_whatever_happens_the_end_is_what_is_desired(
    kind: str, seed: int, apiserver: ApiServer, tmp_path: Path
) -> None:
    found = drive(SUBJECTS[kind], apiserver, tmp_path, seed)
    assert found == [], "\n".join(found)


@pytest.mark.parametrize("kind", parameters(ELSEWHERE, []))
def test_the_same_user_with_operators_of_others(
    kind: str, apiserver: ApiServer, tmp_path: Path
) -> None:
    for library in ("kopf", "lightkube"):
        if find_spec(library) is None:
            pytest.skip(f"needs {library}: pip install '.[bench]'")
    found = drive(ELSEWHERE[kind], apiserver, tmp_path, seed=1)
    assert found == [], "\n".join(found)


def test_whatever_happens_on_a_current_server(tmp_path: Path) -> None:
    if (reason := crd_server.missing()) is not None:
        pytest.skip(reason)
    assert on_crds_alone(tmp_path, range(1, 2)) == []
