"""Deletions that only `timeout=` ends, on a real API server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.envtest import ApiServer
from tests.cluster.operating import User, assert_replays, operating
from tests.patience import eventually
from tests.simulations import example

FILE = Path(__file__).parent / "operators" / "deadlines.py"
KIND = "fnopexamples"
ENDS = {
    "declares": "declares has timed out after 2 s: its sub-handler declares/part",
    "executes": "executes failed for good: HandlerTimeoutError: not done within 2 s",
    "waits": "waits has timed out after 2 s: it drains",
}


@pytest.mark.parametrize("killed", [False, True])
def test_a_deletion_with_a_timeout_ends(
    apiserver: ApiServer, namespace: str, tmp_path: Path, killed: bool
) -> None:
    user = User(apiserver, namespace)
    user.define()
    with operating(FILE, apiserver, namespace, tmp_path) as operator:

        def lines() -> str:
            return "\n".join(operator.lines)

        operator.start(record=True)
        for how in ENDS:
            manifest = example(how)
            manifest["metadata"]["labels"] = {"how": how}
            user.create(manifest)
        eventually(lambda: all(is_held(user, each) for each in ENDS), otherwise=lines)
        for how in ENDS:
            user.delete(KIND, how)
        eventually(lambda: "executes/part failed, again" in lines(), otherwise=lines)
        if killed:
            operator.kill()
            operator.start()
        eventually(lambda: not user.objects(KIND), otherwise=lines)
        said = lines()
        assert operator.stop() in (0, 1)
    if not killed:
        assert [end for end in ENDS.values() if end not in said] == []
        _, _, after = said.partition(ENDS["declares"])
        assert "declares/part failed" not in after
        _, _, after = said.partition(ENDS["executes"])
        assert "executes/part failed" not in after
        assert_replays(operator.recordings[0], FILE)


def is_held(user: User, name: str) -> bool:
    found = user.get(KIND, name)
    return found is not None and bool(found["metadata"].get("finalizers"))
