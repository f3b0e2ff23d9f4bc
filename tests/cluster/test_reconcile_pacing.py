"""Handlers without end, in parallel, and mapped: on a real API server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cluster import crd_server
from tests.cluster.crd_front import in_front_of
from tests.cluster.envtest import ApiServer
from tests.cluster.operating import Operator, User, operating, serve
from tests.patience import eventually
from tests.reconciler_driver import BED, GARDEN
from tests.simulations import condition_of, example

OPERATOR = Path(__file__).parent / "operators" / "restless.py"


def lines(operator: Operator, *words: str) -> list[str]:
    return [line for line in operator.lines if all(each in line for each in words)]


def case(name: str) -> dict[str, Any]:
    found = example(name)
    found["metadata"]["labels"] = {"case": name}
    return found


def template(value: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "template", "labels": {"template": "yes"}},
        "data": {"value": value},
    }


def test_who_never_rests_is_slowed_down_and_all_is_told(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    user = User(apiserver, namespace)
    user.define()
    with operating(OPERATOR, apiserver, namespace, tmp_path) as operator:
        operator.start()

        def told() -> str:
            return "\n".join(operator.lines)

        for each in ("restless", "requeues", "two", "mapped"):
            user.create(case(each))
        eventually(lambda: len(lines(operator, "growing pauses")) == 2, otherwise=told)
        eventually(lambda: "turn" in _data(user, "restless"), otherwise=told)
        (child,) = lines(operator, "restless is called again and again")
        assert "changes configmap/restless data.turn" in child
        (itself,) = lines(operator, "requeues is called again and again")
        assert "requeues itself" in itself

        def two() -> dict[str, Any]:
            return condition_of(user.get("fnopexamples", "two"), "Synced")

        eventually(two, otherwise=told)
        assert two()["status"] == "False"
        assert "the handlers first and second" in two()["message"]
        assert _data(user, "shared") == {"by": "first"}

        user.create(template("one"))  # the mapping fails, and is tried again
        eventually(lambda: _value(user) == "one", otherwise=told)
        user.edit("configmaps", "template", {"data": {"value": "two"}})
        eventually(lambda: _value(user) == "two", otherwise=told)
        assert len(lines(operator, "users failed, again in 1 s")) == 1

        # By now it would have been changed a thousand times.
        assert int(_data(user, "restless")["turn"]) < 60
        assert operator.stop() == 0, told()


def test_what_a_server_does_not_keep_is_told_once(tmp_path: Path) -> None:
    """A status in a manifest: Kubernetes 1.20 says that it keeps it, and does not."""
    if (reason := crd_server.missing()) is not None:
        pytest.skip(reason)
    (tmp_path / "servers").mkdir()
    with (
        crd_server.running(tmp_path / "servers") as api,
        in_front_of(api.url, tmp_path) as kubeconfig,
    ):
        for each in (GARDEN, BED):
            serve(api, each)
        gardens = "/apis/fnop.dev/v1/namespaces/default/gardens"
        bed = "/apis/fnop.dev/v1/namespaces/default/beds/one"
        garden = {
            "apiVersion": "fnop.dev/v1",
            "kind": "Garden",
            "metadata": {"name": "one"},
        }
        eventually(lambda: api.raw("POST", gardens, garden)[0] in (201, 409))
        file = OPERATOR.with_name("unkept.py")
        with operating(file, api, "default", tmp_path, config=kubeconfig) as operator:
            operator.start()

            def calls() -> int:
                status = api.raw("GET", f"{gardens}/one")[1].get("status") or {}
                return int(status.get("calls", 0))

            eventually(lambda: calls() > 5, otherwise=lambda: str(operator.lines))
            assert len(lines(operator, "does not keep")) == 1, operator.lines
            (line,) = lines(operator, "does not keep")
            assert "status.flowering" in line
            version = api.raw("GET", bed)[1]["metadata"]["resourceVersion"]
            before = calls()
            eventually(lambda: calls() > before + 3)
            assert api.raw("GET", bed)[1]["metadata"]["resourceVersion"] == version
            assert operator.stop() == 0, operator.lines


def _data(user: User, name: str) -> dict[str, str]:
    found = user.get("configmaps", name)
    return {} if found is None else dict(found.get("data") or {})


def _value(user: User) -> str:
    found = user.get("fnopexamples", "mapped")
    return str(((found or {}).get("status") or {}).get("value"))
