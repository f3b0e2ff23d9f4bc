"""`fnop explain` on a real API server."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.envtest import ApiServer
from tests.cluster.operating import User
from tests.commands import fnop
from tests.explain_scenarios import play
from tests.simulations import example


def test_an_operator_s_objects_are_explained(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    user = User(apiserver, namespace)
    user.define()
    play(user, apiserver.kubeconfig, namespace, tmp_path)


def test_who_may_not_read_is_told_so(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    user = User(apiserver, namespace)
    user.define()
    user.create(example("one"))
    done = fnop(
        *("explain", "fnopexamples/one", "-n", namespace),
        *("--kubeconfig", apiserver.nobody_kubeconfig),
        folder=tmp_path,
    )
    assert done.status == 1
    assert "'one' in the namespace" in done.complaint
    assert "cannot be read" in done.complaint
    assert "forbidden" in done.complaint
