"""`fnop freeze` and `fnop resume` where no peering object exists."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import fnop, kubeconfig
from tests.served_clusters import serving


@pytest.mark.parametrize(
    ("arguments", "name", "where"),
    [
        (("freeze", "-A"), "default", "in the cluster"),
        (
            ("resume", "-n", "default", "--peering", "shop"),
            "shop",
            "in default",
        ),
    ],
)
def test_a_missing_peering_object_is_one_sentence_with_a_remedy(
    tmp_path: Path, arguments: tuple[str, ...], name: str, where: str
) -> None:
    with serving() as client:
        host, port = client.address
        kubeconfig(tmp_path, f"http://{host}:{port}")
        done = fnop(*arguments, "--kubeconfig", "kubeconfig", folder=tmp_path)
    assert done.status == 1
    assert done.err.splitlines() == [
        f"fnop: the peering object {name!r} does not exist {where}; create it, or name "
        "the one that your operators use with --peering (see "
        "docs/how-to/run-beside-another-operator.md)"
    ]
