"""The names of metrics: what is exported, documented, drawn and watched is the same."""

from __future__ import annotations

import asyncio
import doctest
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
import yaml

import fnop
from fnop.adapters.serving.endpoints import Endpoint, HttpAnswer
from fnop.adapters.serving.metrics import Metrics, page_of
from fnop.core.handlers.declare.registry import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.operator.health import Health, health
from fnop.core.peers.lease import Candidate
from fnop.effects.structs import replace
from fnop.interpreters.runtime.flow import Flow
from fnop.interpreters.runtime.meter import Histogram, Meter, MeteredApi, MeteredReviews
from fnop.interpreters.runtime.protocol import Api
from tests import promql
from tests.promql import parsed
from tests.simulations import ROOT, Scenario, example

FOLDER = ROOT / "examples" / "monitoring"
KIND = "fnopexamples"
# Prometheus adds these to each series, and renames the label of a metric that is one.
TARGET = {"namespace", "pod", "job"}


class Family(NamedTuple):
    """The type of a metric, and its labels."""

    type: str
    labels: frozenset[str]


class Run:
    """A simulated operator whose metrics are all there."""

    def __init__(self) -> None:
        registry = Registry()

        @fnop.on.create(KIND, registry=registry, id="called")
        async def called(name: str, **_: Any) -> None:
            await fnop.call(greet, name=name)

        @fnop.on.create(KIND, registry=registry, id="failing")
        def failing(**_: Any) -> None:
            raise fnop.PermanentError("no")

        meter, flow = Meter(), Flow()
        candidate = Candidate("a", "default", "fnop-x")
        settings = Settings(operator="x")
        sim = Scenario(
            registry,
            [example()],
            settings=settings,
            observers=[meter, flow],
            calls={greet: lambda name: name},
        )
        flow.state = lambda: sim.machine.state
        sim.settle()
        meter.lines["reader"] += 1
        meter.dropped["reader"] += 1
        meter.ends["eof"] += 1
        api, reviews = MeteredApi(cast(Api, None)), MeteredReviews(cast(Any, None))
        api.answers["GET", "200"] += 1
        reviews.answers["hook", "200"] += 1
        reviews.results["checked", "allowed"] += 1
        for times, name in ((api.times, "GET"), (reviews.times, "hook")):
            times[name] = Histogram((1.0,))

        def look() -> Health:
            found = health(
                sim.machine.program, sim.machine.state, meter.seen, sim.clock.now()
            )
            return replace(found, logs=(("reading", 1),))

        self.metrics = Metrics(
            settings.replace(election=candidate),
            *(look, meter, api, "cluster.example", flow, reviews),
        )


def greet(name: str) -> str:
    raise AssertionError("a simulated call is answered by its model")


@cache
def exported() -> dict[str, Family]:
    """Each series on the page, without the names of their parts, with its labels."""
    return {
        sample: Family(family.type, labels)
        for family in Run().metrics.collect()
        for sample, labels in samples_of(family)
    }


def samples_of(family: Any) -> Iterator[tuple[str, frozenset[str]]]:
    assert family.samples, f"{family.name} is not exported in this run"
    for each in family.samples:
        yield each.name, frozenset(each.labels)


@cache
def page() -> str:
    """The page that Prometheus reads."""
    endpoint = Endpoint("localhost", 9090, "/metrics")

    async def answer() -> HttpAnswer:
        return await page_of(endpoint, Run().metrics)[endpoint]({}, {})

    return asyncio.run(answer()).body.decode()


# -------------------------------------------------------------------- the page


def documented() -> dict[str, frozenset[str]]:
    """The metrics of docs/reference/metrics.md with their labels."""
    text = (ROOT / "docs/reference/metrics.md").read_text()
    _, _, table = text.partition("\n| name | labels | meaning |\n")
    rows = [each for each in table.partition("\n\n")[0].splitlines()[1:]]
    found = {}
    for row in rows:
        names, labels, *_ = row.strip("|").split("|")
        for name in re.findall(r"`([^`]+)`", names):
            found[name] = frozenset(re.findall(r"`([^`]+)`", labels))
    return found


def test_each_documented_metric_is_exported_and_each_exported_one_documented() -> None:
    found: dict[str, frozenset[str]] = {}
    for name, family in exported().items():
        if family.type == "histogram":
            name = re.sub(r"_(bucket|count|sum)$", "", name)
        found[name] = (found.get(name, frozenset()) | family.labels) - {"le"}
    assert documented() == found


def test_the_page_has_the_metrics_and_those_of_the_process() -> None:
    text = page()
    names = set(re.findall(r"^([a-z_]+)[ {]", text, re.MULTILINE))
    assert names >= {*exported(), "process_cpu_seconds_total"}


# -------------------------------------------------------------- the dashboard


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text())
    return found


PANELS = [each for each in dashboard()["panels"] if each["type"] != "row"]


def rules() -> list[dict[str, Any]]:
    found = yaml.safe_load((FOLDER / "alerts.yaml").read_text())
    return [rule for group in found["spec"]["groups"] for rule in group["rules"]]


RULES = {each["alert"]: each for each in rules()}
EXPRESSIONS = [
    *(
        pytest.param(target["expr"], id=f"{panel['title']} {target['refId']}")
        for panel in PANELS
        for target in panel["targets"]
    ),
    *(pytest.param(each["expr"], id=name) for name, each in RULES.items()),
]


def labels_of(metric: str) -> set[str]:
    """The labels of a metric's series in Prometheus."""
    if metric.startswith("process_"):
        return {*TARGET}
    own = exported()[metric].labels
    return {f"exported_{each}" if each in TARGET else each for each in own} | TARGET


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions_are_about_exported_metrics_and_labels(
    expression: str,
) -> None:
    found = parsed(expression)
    assert found.selectors
    process = set(re.findall(r"^(process_[a-z_]+) ", page(), re.MULTILINE))
    for each in found.selectors:
        assert each.metric in {*exported()} | process
        assert {*each.labels} <= labels_of(each.metric)
        assert found.by <= labels_of(each.metric)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_counters_are_read_as_rates_and_gauges_as_they_are(expression: str) -> None:
    for each in parsed(expression).selectors:
        is_counter = each.metric.endswith(("_total", "_bucket"))
        assert each.is_range == is_counter == (each.function in ("rate", "increase"))


@pytest.mark.parametrize("panel", PANELS, ids=lambda each: str(each["title"]))
def test_panels_show_the_chosen_operator_with_the_labels_of_their_groups(
    panel: dict[str, Any],
) -> None:
    assert panel["description"]
    assert panel["datasource"]["uid"] == "${datasource}"
    for target in panel["targets"]:
        text, legend = target["expr"], target["legendFormat"]
        selected = text.count('namespace="$namespace", job="$name"')
        assert selected == len(parsed(text).selectors)
        shown = set(re.findall(r"{{(\w+)}}", legend))
        assert shown == parsed(text).by - {"le"}


def test_each_metric_is_on_the_dashboard() -> None:
    drawn = {
        selector.metric
        for panel in PANELS
        for target in panel["targets"]
        for selector in parsed(target["expr"]).selectors
    }
    others = {
        name
        for name, family in exported().items()
        if not (family.type == "histogram" and not name.endswith("_bucket"))
    }
    # The work of a queue is the attempts of handlers, in another scale.
    assert others - drawn == {"workqueue_work_duration_seconds_bucket"}


def test_panels_do_not_overlap() -> None:
    cells: set[tuple[int, int]] = set()
    for each in dashboard()["panels"]:
        place = each["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in cells, each["title"]
                cells.add((x, y))
    ids = [each["id"] for each in dashboard()["panels"]]
    assert len({*ids}) == len(ids)


def test_variables_choose_the_source_the_namespace_and_the_operator() -> None:
    found = dashboard()["templating"]["list"]
    assert [each["name"] for each in found] == ["datasource", "namespace", "name"]
    for each in found[1:]:
        query = each["query"]["query"]
        inner = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
        assert inner is not None
        (selector,) = parsed(inner[1]).selectors
        assert selector.metric in exported()
        assert inner[2] in TARGET


# ------------------------------------------------------------------- the alerts


@pytest.mark.parametrize("name", RULES)
def test_an_alert_says_what_it_means_and_what_to_do(name: str) -> None:
    rule, text = RULES[name], (FOLDER / "README.md").read_text()
    notes = rule["annotations"]
    assert rule["labels"]["severity"] in ("warning", "critical")
    assert notes["summary"].endswith(".")
    assert notes["description"].endswith(".")
    assert notes["runbook"] == f"examples/monitoring/README.md#{name.lower()}"
    assert f"\n### {name}\n" in text
    by, selectors = parsed(rule["expr"]).by, parsed(rule["expr"]).selectors
    known = by or set.union(*(labels_of(each.metric) for each in selectors))
    assert set(re.findall(r"\$labels\.(\w+)", str(notes))) <= known


def test_each_section_about_an_alert_has_one() -> None:
    text = (FOLDER / "README.md").read_text()
    assert re.findall(r"^### (\w+)$", text, re.MULTILINE) == [*RULES]


@pytest.mark.skipif(not shutil.which("promtool"), reason="there is no promtool")
def test_prometheus_accepts_the_rules(tmp_path: Path) -> None:
    spec = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["spec"]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump(spec))
    command = ["promtool", "check", "rules", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_monitor_and_the_patch_fit_the_deployment() -> None:
    def read(name: str) -> dict[str, Any]:
        found: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text())
        return found

    monitor, patch = read("podmonitor.yaml"), read("metrics.yaml")
    text = (ROOT / "examples" / "deployment" / "deployment.yaml").read_text()
    deployment = yaml.safe_load(text)
    template = deployment["spec"]["template"]
    (container,) = template["spec"]["containers"]
    (patched,) = patch["spec"]["template"]["spec"]["containers"]
    assert patched["name"] == container["name"]
    (port,) = patched["ports"]
    (variable,) = patched["env"]
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] == port["name"]
    assert variable["value"].endswith(f":{port['containerPort']}{endpoint['path']}")
    labels = template["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"] == labels
    job = labels[monitor["spec"]["jobLabel"]]
    assert f'absent(fnop_alive{{job="{job}"}})' == RULES["FnopAbsent"]["expr"]
    namespaces = {each["metadata"]["namespace"] for each in (monitor, deployment)}
    assert namespaces == {"fnop-operator"}


# ------------------------------------------------------------------- the reader


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(promql).failed == 0


@pytest.mark.parametrize(
    "text",
    [
        *("rate(x[5m]", "rates(x[5m])", "x{a=1}", "sum by (a b) (x)", "x y", "x @ 5"),
        *("", "x{a!}", "rate(x[5y])", "sum(x) by"),
    ],
)
def test_other_texts_are_not_understood(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parsed(text)
