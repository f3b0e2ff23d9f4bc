"""An API server that does not let the operator in."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.envtest import ApiServer
from tests.cluster.operating import User
from tests.commands import fnop
from tests.simulations import ROOT

MINIMAL = ROOT / "examples" / "01-minimal" / "example.py"


def test_a_user_without_rights_is_told_so(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    User(apiserver, namespace).define()
    done = fnop(
        *("run", MINIMAL, "--namespace", namespace),
        *("--kubeconfig", apiserver.nobody_kubeconfig),
        folder=tmp_path,
        limit=20,
    )
    assert (done.status, done.out) == (1, ""), done
    assert "Traceback" not in done.err
    assert done.complaint.startswith("fnop: nothing can be served: ")
    assert "grant the verbs list and watch" in done.err


def test_a_wrong_token_is_told_so(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    text = apiserver.nobody_kubeconfig.read_text()
    (tmp_path / "config").write_text(text.replace("token-of-nobody", "no-such-token"))
    done = fnop(
        *("run", MINIMAL, "--namespace", namespace, "--kubeconfig", "config"),
        folder=tmp_path,
        limit=20,
    )
    assert (done.status, done.out) == (1, ""), done
    assert "Traceback" not in done.err
    assert "check the credentials" in done.complaint
