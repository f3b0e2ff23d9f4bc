"""The requests for an object, counted by the API server itself."""

from __future__ import annotations

import re
import time
from functools import partial
from pathlib import Path

import pytest

from fnop.core.values.pace import LOOP_CHANGES
from tests.cluster.envtest import ApiServer
from tests.cluster.operating import Operator, User, operating
from tests.patience import eventually
from tests.simulations import ROOT, example

OBJECTS = 5
MINIMAL = ROOT / "examples" / "01-minimal" / "example.py"
OPERATORS = Path(__file__).parent / "operators"

_COUNTER = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_READING = {"GET", "LIST", "WATCH"}


def writes(api: ApiServer) -> int:
    """The write requests so far for the examples' kind and its subresources."""
    total = 0
    for labels, count in _COUNTER.findall(api.metrics()):
        found = dict(_LABEL.findall(labels))
        if found["resource"] == "fnopexamples" and found["verb"] not in _READING:
            total += int(float(count))
    return total


def handled(user: User, name: str) -> bool:
    found = user.get("fnopexamples", name)
    return found is not None and "create_fn" in (found.get("status") or {})


def is_serving(operator: Operator) -> bool:
    return any("serving fnopexamples" in line for line in operator.lines)


def is_told(operator: Operator) -> bool:
    return any("has undone this operator" in line for line in operator.lines)


def cost_of_creating(user: User, operator: Operator) -> int:
    """The operator's writes for some objects that are all alike."""
    names = [f"example-{number}" for number in range(OBJECTS)]
    operator.start()
    before = writes(user.api)
    for name in names:
        user.create(example(name, duration="1m"))
    eventually(
        lambda: all(handled(user, name) for name in names),
        otherwise=lambda: "\n".join(operator.lines),
    )
    # What it still meant to write, it has written when it has ended.
    assert operator.stop() == 0
    return writes(user.api) - before - OBJECTS


@pytest.mark.parametrize(
    ("file", "each"),
    [
        pytest.param(MINIMAL, 1, id="a creation handler"),
        pytest.param(OPERATORS / "with_deletion.py", 2, id="a deletion handler, too"),
        pytest.param(OPERATORS / "retrying.py", 1, id="retries without a limit"),
        pytest.param(OPERATORS / "limited.py", 4, id="retries with a limit"),
    ],
)
def test_the_writes_of_a_creation(
    file: Path, each: int, apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    user = User(apiserver, namespace)
    user.define()
    with operating(file, apiserver, namespace, tmp_path) as operator:
        assert cost_of_creating(user, operator) == each * OBJECTS


def test_two_operators_of_one_name_do_not_undo_each_other_without_end(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    """One puts a finalizer on, the other takes it off: two releases, side by side."""
    user = User(apiserver, namespace)
    user.define()
    file, folders = OPERATORS / "with_deletion.py", (tmp_path / "a", tmp_path / "b")
    for folder in folders:
        folder.mkdir()
    with (
        operating(file, apiserver, namespace, folders[0]) as handling,
        operating(MINIMAL, apiserver, namespace, folders[1]) as other,
    ):
        handling.start()
        other.start()
        for operator in (handling, other):
            eventually(partial(is_serving, operator))
        before = writes(apiserver)
        user.create(example(duration="1m"))

        eventually(lambda: is_told(handling) or is_told(other))
        since, told = time.monotonic(), writes(apiserver)
        assert told - before <= 4 * LOOP_CHANGES
        # Load makes this longer. Two of them come at once, and two after each pause.
        # The metrics are long.
        eventually(lambda: writes(apiserver) - told >= 7, every=0.5)
        waited = time.monotonic() - since
        assert waited >= 4.0, "the pauses double: 1, 2, 4 seconds"
        assert other.stop() == 0
        assert handling.stop() == 0


def test_a_handled_object_costs_a_new_process_nothing(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    user = User(apiserver, namespace)
    user.define()
    with operating(MINIMAL, apiserver, namespace, tmp_path) as operator:
        cost_of_creating(user, operator)
        before = writes(apiserver)
        operator.start()
        # A newcomer, handled after those that it found, shows that it is done.
        user.create(example("newcomer", duration="1m"))
        eventually(lambda: handled(user, "newcomer"))
        assert operator.stop() == 0
        assert writes(apiserver) - before == 2
