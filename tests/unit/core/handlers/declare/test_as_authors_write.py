"""Operators and mistakes as authors write them; real servers run the same ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fnop.testing import Simulation
from tests.author_scenarios import (
    OPERATOR,
    SLIPS,
    SPEED,
    check,
    check_slips,
    long_subject,
    subject,
)
from tests.simulations import DEFINITION


def test_an_operator_as_authors_write_it(tmp_path: Path) -> None:
    file = tmp_path / "simulated.py"
    file.write_text(OPERATOR)
    sim = Simulation(file, crds=[DEFINITION], objects=[SPEED])
    sim.apply(subject()).wait(3)
    made = [sim.get(f"configmaps/{name}") for name in ("adopted", "applied")]
    found: Any = sim.get("fnopexamples/example-1")
    check(found, *made)


def test_slips_as_authors_make_them(tmp_path: Path) -> None:
    file = tmp_path / "slips.py"
    file.write_text(SLIPS)
    sim = Simulation(file, crds=[DEFINITION])
    sim.apply(long_subject()).settle()
    found: Any = sim.get("fnopexamples/example-1")
    check_slips(found)
    assert sim.get("configmaps/lost") is None
