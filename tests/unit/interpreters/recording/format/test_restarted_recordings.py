"""Recordings of a restarted operator: fields that an earlier process has applied."""

from __future__ import annotations

import io
from typing import Any

import pytest

import fnop
from fnop.core.children.restoring import applied_digests, recorded_digest
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.program.program import Program
from fnop.interpreters.recording.format.recorder import Recorder, header_of
from fnop.interpreters.recording.redaction import Redaction
from fnop.interpreters.recording.replay.replay import replay_file
from tests.recordings import TRACED
from tests.simulations import Scenario, example, example_handlers, manifests_of

texts = fnop.Registry()
PASSWORD = "hC7!kq/+Zt9$wMv2#pL"


@fnop.reconcile("fnopexamples", owns=["secrets", "configmaps"], registry=texts)
def keep(name: str, spec: Any, **_: object) -> fnop.Desired:
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {"a": "b"}},
        "data": {"dsn": f"postgres://u:{spec['field']}@host"},
    }
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": {"a": "b"}},
        "stringData": {"password": spec["field"]},
    }
    return fnop.desired([secret, fnop.child(config, after=f"secret/{name}")])


workloads = fnop.Registry()


@fnop.reconcile("fnopexamples", owns=["deployments.apps"], registry=workloads)
def run(name: str, spec: Any, **_: object) -> fnop.Desired:
    labels = {"app": name}
    container = {
        "name": "main",
        "image": "main",
        "args": ["--dsn", f"postgres://u:{spec['field']}@host"],
        "env": [{"name": "FOO", "value": spec["field"]}, {"name": "MODE", "value": ""}],
        "ports": [{"containerPort": 80}],  # its protocol is a key, with a default
        "resources": {"limits": {"memory": "1Gi"}},
    }
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    return fnop.desired(deployment)


CASES: dict[str, tuple[tuple[Handler, ...], list[dict[str, Any]]]] = {
    "a drawn password": (
        example_handlers("19-database"),
        manifests_of("19-database"),
    ),
    "a copied password": (texts.handlers, [example(field=PASSWORD)]),
    "a password in a list": (workloads.handlers, [example(field=PASSWORD)]),
}


class Switched:
    """An observer that passes steps to the recorder of the present process."""

    def __init__(self) -> None:
        self.recorder: Recorder | None = None

    def observe(self, *step: Any) -> None:
        if self.recorder is not None:
            self.recorder.observe(*step)


@pytest.mark.parametrize("case", CASES)
def test_a_later_process_replays_identically(case: str) -> None:
    handlers, manifests = CASES[case]
    program, switched = Program(handlers, TRACED), Switched()
    sim = Scenario(handlers, settings=TRACED, observers=[switched])
    sim.apply(*manifests).settle()
    sim.crash()
    file = io.BytesIO()
    redaction = Redaction(b"k" * 16, program, ["spec.field"])
    switched.recorder = Recorder(file, header_of(program, "test"), redaction)
    before = len(sim.requests)
    sim.settle()
    assert not [each for each in sim.requests[before:] if each.method != "GET"]
    switched.recorder.finish()
    assert PASSWORD.encode() not in file.getvalue()
    found = replay_file(file, Program(handlers, TRACED))
    assert (found.difference, found.truncated) == (None, False)
    assert found.steps > 5


@pytest.mark.parametrize("case", CASES)
def test_what_was_applied_is_made_anew_from_the_object(case: str) -> None:
    handlers, manifests = CASES[case]
    sim = Scenario(handlers, settings=TRACED)
    sim.apply(*manifests).settle()
    kinds = ("secrets", "configmaps", "deployments")
    found = [sim.get(kind, "example-1") for kind in kinds]
    children = [each for each in found if each is not None]
    assert children
    for live in children:
        assert recorded_digest(live) in applied_digests(live)


def test_what_is_no_child_has_no_digest() -> None:
    others: list[dict[str, Any]] = [{}, {"metadata": {"annotations": {"a": "b"}}}]
    for live in others:
        assert (recorded_digest(live), [*applied_digests(live)]) == ("", [])
