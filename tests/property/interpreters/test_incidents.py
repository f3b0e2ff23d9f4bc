"""`fnop replay --as-test`: the same operator passes the test of its own recording."""

from __future__ import annotations

from typing import Any

import pytest

from fnop.adapters.check.incident_tests import incident_test
from fnop.interpreters.check.incidents.incidents import incident_of
from fnop.interpreters.recording.model.excerpt import excerpt_of
from tests.recorded_examples import recorded
from tests.recordings import TRACED
from tests.simulations import ROOT

NAMES = ("01-minimal", "02-children", "05-handlers", "16-indexing", "19-database")


def source_of(name: str, step: int | None, until: int | None = None) -> str:
    excerpt = excerpt_of(lambda: iter(recorded(name)), step, until)
    incident = incident_of(excerpt)
    assert not incident.left_out
    file = ROOT / "examples" / name / "example.py"
    return incident_test(incident, excerpt.step, "run.fnop", [str(file)], TRACED)


def run(source: str) -> None:
    names: dict[str, Any] = {"__name__": "test_incident"}
    exec(compile(source, "test_incident.py", "exec"), names)
    names["test_incident"]()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("share", [None, 0.3, 0.7])
def test_the_same_operator_passes_the_test(name: str, share: float | None) -> None:
    steps = len(recorded(name))
    source = source_of(name, None if share is None else max(1, round(share * steps)))
    run(source)


@pytest.mark.parametrize("name", [each for each in NAMES if each != "02-children"])
def test_it_fails_where_something_else_is_expected(name: str) -> None:
    source = source_of(name, None)
    assert "EXPECTED = [{" in source
    other = source.replace(
        "sim.must_have(EXPECTED)",
        "EXPECTED[0]['metadata']['labels'] = {'nobody': 'has-it'}\n"
        "    sim.must_have(EXPECTED)",
    )
    with pytest.raises(AssertionError, match="labels"):
        run(other)
