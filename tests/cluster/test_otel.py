"""Traces of an operator on a real API server, as a collector receives them."""

from __future__ import annotations

import json
from pathlib import Path

from fnop.interpreters.recording.replay.replay import read_header, read_records
from tests.cluster.envtest import ApiServer
from tests.cluster.operating import User, operating
from tests.collectors import attributes_of, collecting
from tests.patience import eventually
from tests.simulations import ROOT, example

OPERATOR = ROOT / "examples" / "01-minimal" / "example.py"


def test_a_span_leads_to_its_step_and_a_log_line_to_its_span(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    options = ("--standalone", "--otel", "--log-format=json")
    with (
        collecting() as collector,
        operating(OPERATOR, apiserver, namespace, tmp_path, *options) as operator,
    ):
        operator.variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        user = User(apiserver, namespace)
        user.define()
        operator.start(record=True)
        user.create(example(duration="1m"))
        eventually(
            lambda: "shall run" in str(user.get("fnopexamples", "example-1")),
            otherwise=lambda: "\n".join(operator.lines),
        )
        assert operator.stop() == 0, operator.lines
        spans = collector.spans
    (attempt,) = (each for each in spans if each.name == "create_fn")
    (write,) = (each for each in spans if each.name.startswith("PATCH "))
    (reconcile,) = (each for each in spans if each.name == "reconcile FnopExample")
    assert write.parent_span_id == attempt.span_id
    assert attempt.parent_span_id == reconcile.span_id
    assert attributes_of(write)["http.response.status_code"] == 200
    assert attributes_of(write)["url.path"].endswith("/fnopexamples/example-1/status")
    assert attributes_of(write)["server.address"] == "127.0.0.1"

    (recording,) = operator.recordings
    assert attributes_of(attempt)["fnop.recording"] == str(recording)
    with recording.open("rb") as file:
        records = read_records(file)
        read_header(records)
        steps = [each for each in records if each is not None]
    for span, command in ((attempt, "Began"), (write, "Perform")):
        step = steps[attributes_of(span)["fnop.step"] - 1]
        assert command in [each["do"] for each in step["commands"]]

    lines = [json.loads(each) for each in operator.lines if each.startswith("{")]
    (ended,) = (each for each in lines if "create_fn succeeded" in each["message"])
    assert ended["trace_id"] == attempt.trace_id.hex()
    assert ended["span_id"] == attempt.span_id.hex()
