"""The words of the object and the log about failing handlers, on a real API server."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.envtest import ApiServer
from tests.cluster.operating import User, operating
from tests.example_scenarios import MARKER
from tests.patience import eventually
from tests.simulations import condition_of, example

OPERATOR = Path(__file__).parent / "operators" / "told.py"


def test_what_is_told_of_failures_is_so(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    user = User(apiserver, namespace)
    user.define()
    with operating(OPERATOR, apiserver, namespace, tmp_path) as operator:
        operator.start()
        user.create(example("one", size=1))

        def all_told() -> bool:
            found = user.get("fnopexamples", "one")
            text = condition_of(found, MARKER).get("message", "")
            return all(f"{name}: " in text for name in ("twice", "labels", "chooses"))

        eventually(all_told, otherwise=lambda: "\n".join(operator.lines))
        found = user.get("fnopexamples", "one")
        assert found is not None
        told = condition_of(found, MARKER)
        assert found["metadata"]["generation"] == 2
        assert told["observedGeneration"] == 2
        assert "no disk for <object object at 0x...>" in told["message"]
        assert "has been created before by this attempt" in told["message"]
        made = user.get("configmaps", "one")
        assert made is not None
        assert made["data"] == {"value": "first"}
        assert found["status"]["counts"] == {"count": 1}
        assert operator.stop() in (0, 1)
        succeeded = [line for line in operator.lines if "succeeded" in line]
        assert len(succeeded) == 1, succeeded
        assert "handler counts succeeded" in succeeded[0]
