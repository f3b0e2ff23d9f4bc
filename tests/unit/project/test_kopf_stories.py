"""The comparison of Kopf operators: traces, their differences, and the listed ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kopf.__main__ import HERE
from tests.kopf.trace import Judge, Trace, differences
from tests.simulations import ROOT


def test_each_listed_difference_has_its_row_on_a_page() -> None:
    judge = Judge(HERE / "listed.yaml", ROOT)
    line = "log stderr: - ValueError: nothing to sweep"
    assert judge.row_of(line) is not None
    assert judge.row_of(line.replace("sweep", "lose")) is None


@pytest.mark.parametrize(
    ("one", "two", "found"),
    [
        ({"a": [1]}, {"a": [1]}, []),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, ["a b: - 1", "a b: + 2"]),
        ({"a": 1}, {"c": ["x", "y"]}, ["a: - 1", "c: + x", "c: + y"]),
        ({"a": ["x", "y"]}, {"a": ["y", "z"]}, ["a: - x", "a: + z"]),
        ({"a": '{"b": 1}'}, {"a": '{"b": 1, "c": 2}'}, ["a c: + 2"]),
        (
            {"a": [{"name": "n", "b": 1}, {"name": "m"}]},
            {"a": [{"name": "m"}, {"name": "n", "b": 2}]},
            ["a n b: - 1", "a n b: + 2"],
        ),
    ],
    ids=["equal", "values", "keys", "lists", "annotations", "names"],
)
def test_a_difference_names_its_place(one: Any, two: Any, found: list[str]) -> None:
    assert list(differences(one, two)) == found


def test_a_trace_sorts_lines_by_what_they_are_about() -> None:
    trace = Trace(loose_lines=[": ping"], apart=["watch"], namespace="ns")
    ref = {"kind": "Page", "name": "a", "namespace": "ns"}

    def line(message: str, **more: Any) -> str:
        return json.dumps({"message": message, "severity": "info", **more})

    for each in (
        line("Handler 'made' is invoked.", object=ref),
        line("Handler 'made' succeeded.", object=ref),
        line("ping 1", object=ref),
        line("ping 1", object=ref),
        line("Daemon 'watch' succeeded.", object=ref),
        line("is stopping"),
        "[2026-11-29 19:00:00,000] kopf.objects  [INFO    ] [ns/b] plain",
        "[2026-11-29 19:00:00,000] kopf.objects  [DEBUG   ] [ns/b] quiet",
        "printed",
        "printed",
        "Traceback (most recent call last):",
    ):
        trace.add(each, {"Page": "pages"}, "rival ")
    assert trace.calls == {"rival pages/a": ["made"]}
    assert trace.background == {"rival pages/a": {"line info: ping 1": 2}}
    assert trace.log == {
        "rival pages/a": ["info: Handler 'made' succeeded."],
        "rival pages/a watch": ["info: Daemon 'watch' succeeded."],
        "rival operator": ["info: is stopping"],
        "rival ns/b": ["info: plain"],
        "rival stderr": ["printed", "printed"],
    }
