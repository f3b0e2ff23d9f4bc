"""Single decisions, and stories of a cluster that changes."""

from pathlib import Path
from typing import Any

import yaml

import fnop
from fnop.testing import Simulation, load, plan_of

HERE = Path(__file__).parent
example = load(HERE / "example.py")
SHOPS, MONITORS, SHOP = yaml.safe_load_all((HERE / "object.yaml").read_text())


def monitored(sim: Simulation) -> Any:
    conditions = sim["shops/example-1"].status["conditions"]
    return {each["type"]: each["status"] for each in conditions}["Monitored"]


def without_monitors() -> Simulation:
    return Simulation(example, crds=[SHOPS], objects=[SHOP]).settle()


def test_a_shop_without_monitors_is_no_failure() -> None:
    missing = fnop.Refused(404, "NotFound", "the API server serves no Monitor")
    plan = plan_of(example.shop, SHOP, answers=[missing])
    assert plan.desired is not None
    (condition,) = plan.desired.conditions
    assert condition == fnop.condition("Monitored", False, "NotInstalled")


def test_the_kind_comes_and_goes() -> None:
    sim = without_monitors()
    assert monitored(sim) == "False"
    sim.apply(MONITORS).settle()
    assert monitored(sim) == "True"
    assert sim["monitors/example-1"].spec["host"] == "shop.example.org"
    # It counts as removed when it has been missed for a while.
    sim.delete("customresourcedefinitions/monitors.fnop.dev").wait(30)
    assert monitored(sim) == "False"
    assert "no shop is monitored any more" in sim.log


def test_a_kind_that_comes_while_the_operator_is_down_is_found() -> None:
    sim = without_monitors()
    sim.apply(MONITORS).restart().settle()
    assert monitored(sim) == "True"


def test_it_tells_upgrades_and_long_outages() -> None:
    sim = without_monitors()
    sim.upgrade("1.37").wait(30).outage(5).wait(30).outage(90).wait(200)
    assert "an upgrade, from v1.36.0 to v1.37.0" in sim.log
    (told,) = [line for line in sim.log if line.startswith("nothing was done")]
    assert 90 <= int(told.split()[-2]) < 180
