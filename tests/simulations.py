"""Operators in the simulated cluster, as tests want to have them."""

from __future__ import annotations

import importlib.util
import runpy
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import yaml

from fnop.adapters.testing.models import models_for
from fnop.core.api.resources import path_of
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.registry import Registry, default_registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import Say
from fnop.interpreters.cluster import Off, empty_cluster, paced
from fnop.interpreters.runtime.clock import EPOCH
from fnop.interpreters.runtime.machine import Observer
from fnop.interpreters.runtime.protocol import MERGE_PATCH, ApiRequest
from fnop.interpreters.simulation.scenario import apply_manifests, catalogue_of
from fnop.interpreters.simulation.simulation import SimulatedRun

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ("01-minimal", "02-children", "03-exceptions", "04-events", "05-handlers")


def example_handlers(name: str) -> tuple[Handler, ...]:
    """The handlers of an example, freshly imported."""
    return handlers_in(ROOT / "examples" / name / "example.py")


def handlers_in(file: Path) -> tuple[Handler, ...]:
    """The handlers that a file declares, freshly imported."""
    default_registry.clear()
    name = f"example_{file.parent.name[:2]}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    handlers = default_registry.handlers
    default_registry.clear()
    return handlers


def example_calls(name: str) -> dict[str, Callable[..., Any]]:
    """The models of an example, freshly imported, by the names of what they model."""
    file = ROOT / "examples" / name / "models.py"
    return models_for(runpy.run_path(str(file))["CALLS"]) if file.exists() else {}


def is_definition(manifest: dict[str, Any]) -> bool:
    return bool(manifest["kind"] == "CustomResourceDefinition")


def manifests_of(name: str) -> list[dict[str, Any]]:
    """The objects of an example, its definition among them."""
    text = (ROOT / "examples" / name / "object.yaml").read_text()
    return [each for each in yaml.safe_load_all(text) if each]


# Made by the controllers of every cluster.
_OWN = ("kube-root-ca.crt", "default")

DEFINITION = manifests_of("01-minimal")[0]


def example(name: str = "example-1", **spec: Any) -> dict[str, Any]:
    """A FnopExample."""
    return {
        "apiVersion": "fnop.dev/v1",
        "kind": "FnopExample",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def condition_of(found: dict[str, Any] | None, type: str) -> dict[str, Any]:
    """The condition of this type of an object, or `{}`; the object may be gone."""
    every = ((found or {}).get("status") or {}).get("conditions") or ()
    return next((each for each in every if each["type"] == type), {})


class Scenario(SimulatedRun):
    """A simulated run with the verbs of a user."""

    def __init__(
        self,
        handlers: Registry | Iterable[Handler],
        manifests: Iterable[dict[str, Any]] = (),
        *,
        settings: Settings | None = None,
        observers: Iterable[Observer] = (),
        **options: Any,
    ) -> None:
        if isinstance(handlers, Registry):
            handlers = handlers.handlers
        self.said: list[Say] = []
        program = Program(tuple(handlers), settings or Settings())
        super().__init__(
            program,
            # Like the real servers of the stories, without a kubelet.
            paced(empty_cluster(now=EPOCH), {"kubelet": Off()}),
            observers=observers,
            on_say=lambda say, wall: self.said.append(say),
            **options,
        )
        manifests = list(manifests)
        # An example may define the kind in its own way.
        kinds = [each["metadata"]["name"] for each in manifests]
        if DEFINITION["metadata"]["name"] not in kinds:
            manifests.insert(0, DEFINITION)
        apply_manifests(self, manifests)

    def apply(self, *manifests: dict[str, Any]) -> Scenario:
        apply_manifests(self, manifests)
        return self

    def path(
        self, kind: str, name: str | None = None, namespace: str | None = None
    ) -> str:
        resource = catalogue_of(self).lookup(kind)
        assert resource is not None, kind
        return path_of(resource, namespace or "default", name)

    def get(
        self, kind: str, name: str = "example-1", namespace: str | None = None
    ) -> dict[str, Any] | None:
        response = self.request(ApiRequest("GET", self.path(kind, name, namespace)))
        return None if response.status == 404 else response.body

    def objects(self, kind: str) -> list[dict[str, Any]]:
        """All of a kind but those that the cluster makes in every namespace."""
        response = self.request(ApiRequest("GET", self.path(kind)))
        items: list[dict[str, Any]] = response.body["items"]
        return [each for each in items if each["metadata"]["name"] not in _OWN]

    def edit(self, kind: str, name: str = "example-1", **change: Any) -> Scenario:
        """A user's merge patch; `name` may have a subresource, as in `a/scale`."""
        name, slash, subresource = name.partition("/")
        path = f"{self.path(kind, name)}{slash}{subresource}"
        response = self.request(ApiRequest("PATCH", path, (), change, MERGE_PATCH))
        assert response.status == 200, response
        return self

    def delete(self, kind: str, name: str = "example-1") -> Scenario:
        response = self.request(ApiRequest("DELETE", self.path(kind, name)))
        assert response.status == 200, response
        return self

    @property
    def lines(self) -> list[str]:
        """The lines of the log, without those about the served kinds."""
        lines = [say.message for say in self.said]
        return [line for line in lines if not line.startswith("serving ")]

    @property
    def writes(self) -> list[str]:
        """The operator's own write requests, as `METHOD path`."""
        return [
            f"{each.method} {each.path}"
            for each in self.requests
            if each.method != "GET"
        ]
