"""`fnop crd --live` on a real API server: breaking changes, and objects that break."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.cluster.envtest import ApiServer
from tests.commands import fnop
from tests.patience import eventually

KIND = """
from dataclasses import dataclass
from typing import Annotated

import fnop


@dataclass(frozen=True)
class Spec:
    size: {size} = 1


@fnop.definition("lvwidgets.v1.live.dev")
@dataclass(frozen=True)
class LvWidget:
    spec: Spec
"""
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "/apis/live.dev/v1"


def widget(name: str, size: int) -> dict[str, Any]:
    meta = {"name": name, "finalizers": ["live.dev/held"]}
    head = {"apiVersion": "live.dev/v1", "kind": "LvWidget"}
    return {**head, "metadata": meta, "spec": {"size": size}}


def test_objects_that_would_not_be_valid_are_named(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    limited = "Annotated[int, fnop.schema(maximum=5)]"
    (tmp_path / "old.py").write_text(KIND.format(size="int"))
    (tmp_path / "new.py").write_text(KIND.format(size=limited))
    live = ("--live", "--kubeconfig", str(apiserver.kubeconfig))
    assert fnop("crd", "new.py", *live, folder=tmp_path).status == 0  # a new kind
    (definition,) = yaml.safe_load_all(fnop("crd", "old.py", folder=tmp_path).out)
    assert apiserver.raw("POST", CRDS, definition)[0] == 201
    place = f"{GROUP}/namespaces/{namespace}/lvwidgets"
    eventually(lambda: apiserver.raw("GET", place)[0] == 200)
    for name, size in (("small", 5), ("large", 6)):
        assert apiserver.raw("POST", place, widget(name, size))[0] == 201
    same = fnop("crd", "old.py", *live, folder=tmp_path)
    assert (same.status, same.out, same.err) == (0, "", "")
    other = fnop("crd", "new.py", *live, folder=tmp_path)
    assert other.status == 1
    first, second = other.out.splitlines()
    assert first == "lvwidgets.live.dev v1 spec.size: maximum is 5"
    assert second.startswith(
        f"lvwidgets.live.dev {namespace}/large is no longer valid: "
    )
    assert "spec.size" in second
