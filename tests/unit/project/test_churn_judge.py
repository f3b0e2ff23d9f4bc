"""`make churn`: what its judge takes for a mistake of the operator."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cluster.churn.judging import Judge, bad_lines
from tests.cluster.fault_proxy import Record

SEEN = {"generation": 2, "touched": 1, "mark": "", "value": 5, "other": 7}


def call(handler: str, at: float, **seen: Any) -> dict[str, Any]:
    line = {"handler": handler, "uid": "u", "name": "n", "pid": 1, "at": at}
    return {**line, **SEEN, **seen}


def judged(
    handler: str, stored: str, fielded: dict[str, Any] | None = None, **seen: Any
) -> list[str]:
    """The report about a call a second after another handler's success is stored."""
    judge = Judge()
    for generation, other in ((2, 7), (3, 8), (4, 7)):
        metadata = {"name": "n", "uid": "u", "generation": generation}
        judge.saw({"metadata": metadata, "spec": {"other": other}})
    judge.store("u", stored, 100.0, SEEN)
    if stored == "made":
        judge.store("u", "fielded", 100.0, fielded or SEEN)
    judge.judge([call(handler, 101.0, **seen)])
    return judge.violations


@pytest.mark.parametrize(
    ("handler", "stored", "seen"),
    [
        ("made", "made", {}),
        ("made", "made", {"generation": 3}),
        ("changed", "changed", {}),
        ("changed", "changed", {"generation": 1}),
        ("changed", "made", {}),
        ("fielded", "fielded", {}),
        ("fielded", "fielded", {"touched": 2}),
    ],
)
def test_a_repetition_is_found(handler: str, stored: str, seen: dict[str, Any]) -> None:
    assert len(judged(handler, stored, **seen)) == 1


@pytest.mark.parametrize(
    ("handler", "stored", "seen"),
    [
        ("changed", "changed", {"generation": 3}),
        ("changed", "changed", {"touched": 2}),
        ("changed", "changed", {"mark": "5"}),
        ("fielded", "fielded", {"generation": 3, "other": 8}),
        ("fielded", "fielded", {"generation": 4}),
        ("ended", "made", {}),
    ],
)
def test_another_change_is_no_repetition(
    handler: str, stored: str, seen: dict[str, Any]
) -> None:
    assert judged(handler, stored, **seen) == []


def test_what_one_of_a_creation_has_not_seen_is_an_update() -> None:
    assert judged("changed", "made", {**SEEN, "touched": 0}) == []


def test_a_later_success_is_not_that_of_the_creation() -> None:
    """The first call's success may be stored, although its answer was lost."""
    judge = Judge()
    judge.store("u", "made", 100.0, SEEN)
    judge.store("u", "fielded", 102.0, SEEN)
    before = [call("fielded", 99.0, generation=1), call("fielded", 101.0)]
    judge.judge([*before, call("changed", 103.0)])
    assert judge.violations == []


def test_a_success_counts_from_when_the_server_has_stored_it() -> None:
    """A handler that was called before could not know."""
    judge = Judge()
    body = {
        "metadata": {"name": "n", "uid": "u", "generation": 2},
        "spec": {"value": 5, "other": 7},
        "status": {"changed": SEEN},
    }
    sent = json.dumps({"status": {"changed": SEEN}}).encode()
    path = "/apis/fnop.dev/v1/namespaces/churn/fnopexamples/n/status"
    record = Record(0.0, "PATCH", path, sent, answered=200)
    judge.heard(record, json.dumps(body).encode())
    at, result = judge.stored["u", "changed"]
    assert result == SEEN
    judge.judge([call("changed", at - 1), call("changed", at + 1)])
    assert len(judge.violations) == 1


def test_one_daemon_at_a_time() -> None:
    judge = Judge()
    begins, ends = ({"phase": phase} for phase in ("begins", "ends"))
    judge.judge(
        [
            call("followed", 1, **begins),
            call("followed", 2, **ends),
            call("followed", 3, **begins),
            call("followed", 4, **begins),
        ]
    )
    assert [each.split()[0] for each in judge.violations] == ["4.000"]


def test_a_refusal_is_the_only_traceback_that_a_log_may_have() -> None:
    expected = ["Traceback", "  here", "fnop.core.values.errors.Refused: no", "fine"]
    assert list(bad_lines(expected)) == []
    found = bad_lines(["Traceback", "  here", "ValueError: x", "Unclosed client"])
    assert list(found) == [
        "the log says: Traceback: ValueError: x",
        "the log says: Unclosed client",
    ]
