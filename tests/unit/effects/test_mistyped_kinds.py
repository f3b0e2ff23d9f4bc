"""Mistyped kinds: the error names similar kinds."""

from __future__ import annotations

import re
from typing import Any

import pytest

import fnop
from fnop.adapters.serving.cluster_client import ObjectProblem, kind_called
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.registry import Registry
from fnop.interpreters.cluster.kinds.kinds import builtin_registry
from tests.mistakes import pod
from tests.simulations import Scenario, example

KIND = "fnopexamples"


SERVED = Catalogue(
    (
        Resource("", "v1", "pods", "Pod", "pod", shortcuts=("po",)),
        Resource("", "v1", "configmaps", "ConfigMap", "configmap", shortcuts=("cm",)),
        Resource("apps", "v1", "deployments", "Deployment", "deployment"),
        Resource("a.io", "v1", "things", "Thing", "thing"),
        Resource("b.io", "v1", "things", "Thing", "thing"),
    )
)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("pds", "serves no kind 'pds' (did you mean 'pods'?)"),
        ("confgmap", "serves no kind 'confgmap' (did you mean 'configmaps'?)"),
        ("deployments.app", "(did you mean 'deployments.apps'?)"),
        ("deployments.v2.apps", "(did you mean 'deployments.apps'?)"),
        ("Deploymnet", "(did you mean 'deployments.apps'?)"),
        ("zzz", "the API server serves no kind 'zzz'"),
        (
            "things",
            "'things' is ambiguous: things.v1.a.io, things.v1.b.io; name the gr",
        ),
        ("", "'' is not a kind: the name of a kind must be a non-empty string"),
    ],
)
def test_a_mistyped_kind_is_told_what_it_is_like(name: str, sentence: str) -> None:
    assert SERVED.lookup(name) is None
    assert sentence in SERVED.absence(name)
    assert SERVED.absence("zzz", "it", "; see").endswith("it serves no kind 'zzz'; see")


@pytest.mark.parametrize(
    ("version", "kind", "sentence"),
    [
        ("v1", "Deployment", "no Deployment of v1 (did you mean that of apps/v1?)"),
        ("v1", "pod", "serves no pod of v1 (did you mean Pod of v1?)"),
        ("v1", "ConfgMap", "(did you mean ConfigMap of v1?)"),
        ("v1", "Zzz", "the API server serves no Zzz of v1"),
    ],
)
def test_a_manifest_of_no_kind_is_told_what_it_is_like(
    version: str, kind: str, sentence: str
) -> None:
    manifest = {"apiVersion": version, "kind": kind}
    assert SERVED.of_manifest(manifest) is None
    assert sentence in SERVED.absence_of(manifest)


def test_a_mistyped_kind_is_told_to_its_handler() -> None:
    registry, told = Registry(), []

    @fnop.on.create(KIND, registry=registry)
    async def create(**_: Any) -> None:
        wrong = {**pod(), "apiVersion": "apps/v1"}
        for effect in (fnop.get("secrts", name="a"), fnop.create(wrong)):
            try:
                await effect
            except fnop.Refused as problem:
                told.append(str(problem))

    @fnop.on.create("fnopexmples", registry=registry)
    def never(**_: Any) -> None: ...

    @fnop.on.event("pods", owner="fnopexampels", registry=registry)
    def owned(**_: Any) -> None: ...

    @fnop.on.event("pods", owner=("apps", "replicaset"), registry=registry, id="made")
    def found(**_: Any) -> None: ...

    @fnop.on.event("pods", owner="zzz", registry=registry)
    def nowhere(**_: Any) -> None: ...

    settings = fnop.Settings(wait_for_kinds=True)
    run = Scenario(registry, [example()], settings=settings)
    run.settle()
    assert told == [
        "the API server serves no kind 'secrts' (did you mean 'secrets'?)",
        "the API server serves no Pod of apps/v1 (did you mean that of v1?)",
    ]
    (line,) = [line for line in run.lines if "fnopexmples" in line]
    assert line.endswith("installed, or did you mean 'fnopexamples.fnop.dev'?")
    (line,) = [line for line in run.lines if "fnopexampels" in line]
    assert line.endswith("such owners; did you mean 'fnopexamples.fnop.dev'?")
    (line,) = [line for line in run.lines if "'zzz'" in line]
    assert line.endswith("such owners")
    assert not [line for line in run.lines if "replicaset" in line]


def test_a_mistyped_kind_is_told_to_a_test() -> None:
    from fnop.testing import Simulation

    with pytest.raises(AssertionError, match=re.escape("did you mean 'configmaps'?")):
        Simulation(Registry()).get("confgmaps/a")


def test_a_mistyped_kind_is_told_to_a_client_of_the_simulated_cluster() -> None:
    for name, meant in (("deploymnts", "deployments.apps"), ("pdo", "pods")):
        with pytest.raises(ObjectProblem, match=f"no kind {name} .*mean '{meant}'"):
            kind_called(builtin_registry(), name)
    with pytest.raises(ObjectProblem, match=r"has no kind zzz$"):
        kind_called(builtin_registry(), "zzz")
