"""Recordings on a real API server of an operator that handles a Secret."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.cluster.envtest import ApiServer
from tests.cluster.operating import User, assert_replays, operating
from tests.patience import eventually
from tests.recordings import text_of
from tests.simulations import ROOT, example

OPERATOR = ROOT / "tests" / "cluster" / "operators" / "copying.py"


@pytest.mark.parametrize("password", ["default", "1", "hC7!kq/+Zt9$wMv2#pL"])
def test_copies_of_a_secret_replay_identically_whatever_it_is(
    password: str, apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    with operating(OPERATOR, apiserver, namespace, tmp_path) as operator:
        user = User(apiserver, namespace)
        user.define()
        user.create(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "s"},
                "data": {"password": base64.b64encode(password.encode()).decode()},
            }
        )
        operator.start(record=True)
        user.create({**example(field="x"), "metadata": {"name": "one"}})
        eventually(
            lambda: (
                "created" in (user.get("fnopexamples", "one") or {}).get("status", {})
            ),
            otherwise=lambda: "\n".join(operator.lines),
        )
        user.delete("fnopexamples", "one")
        eventually(
            lambda: user.get("fnopexamples", "one") is None,
            otherwise=lambda: "\n".join(operator.lines),
        )
        assert operator.stop() == 0, operator.lines
    (recording,) = operator.recordings
    text = text_of(recording.read_bytes())
    assert (password in text) == (len(password) < 12)
    assert '"finalizers":["fnop.dev/default"]' in text
    assert_replays(recording, OPERATOR)
