"""Handlers that act on the world by themselves, on the real API server."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.envtest import ApiServer
from tests.cluster.operating import (
    Operator,
    User,
    assert_replays,
    operating,
)
from tests.patience import eventually
from tests.simulations import example

FILE = Path(__file__).parent / "operators" / "outside.py"
KIND = "fnopexamples"


def test_impure_handlers(apiserver: ApiServer, namespace: str, tmp_path: Path) -> None:
    """Daemons see the changes of their object; who fails after its acts does not act
    again; and a replay acts not at all."""
    user = User(apiserver, namespace)
    user.define()
    with operating(FILE, apiserver, namespace, tmp_path) as operator:
        operator.start(record=True)
        user.create(example(size=1))
        until_said(operator, "the size is 1", "the labels are {}")
        change = {"spec": {"size": 2}, "metadata": {"labels": {"a": "b"}}}
        user.edit(KIND, "example-1", change)
        until_said(operator, "the size is 2", "the labels are {'a': 'b'}")
        until_said(operator, "answer failed for good", "drop failed for good")
        user.delete(KIND, "example-1")
        eventually(lambda: user.get(KIND, "example-1") is None)
        until_said(operator, "told: resource_deleted")
        assert operator.stop() == 0
    text = "\n".join(operator.lines)
    assert text.count("it answers") == text.count("it drops an effect") == 1
    assert "needs fnop.result([...])" in text
    lines = FILE.read_text().splitlines()
    number = 1 + next(n for n, line in enumerate(lines) if "fnop.event(" in line)
    assert f"outside.py:{number} has no effect: return it" in text
    assert_replays(operator.recordings[0], FILE)


def until_said(operator: Operator, *texts: str) -> None:
    def is_said() -> bool:
        lines = "\n".join(operator.lines)
        return all(text in lines for text in texts)

    eventually(is_said, otherwise=lambda: "\n".join(operator.lines))
