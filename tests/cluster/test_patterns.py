"""A real API server finds patterns of models in the same texts as the models."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from fnop.adapters.definitions.patterns import go_of_python, go_of_rust
from tests.cluster.envtest import ApiServer
from tests.conformance.servers import DEFINITIONS
from tests.model_patterns import PYTHON, RUST, TEXTS
from tests.patience import eventually

NAMES = {"plural": "texts", "singular": "text", "kind": "Text", "listKind": "TextList"}


def definition(properties: Mapping[str, Any]) -> dict[str, Any]:
    spec = {"type": "object", "properties": properties}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "texts.patterns.conf.dev"},
        "spec": {
            "group": "patterns.conf.dev",
            "scope": "Namespaced",
            "names": NAMES,
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def in_go(pattern: Any) -> str:
    by_rust = isinstance(pattern, str)
    return go_of_rust(pattern) if by_rust else go_of_python(pattern)


def reader(pattern: Any) -> Any:
    hint: Any = Annotated[str, Field(pattern=pattern)]
    return TypeAdapter(hint).validator


def test_the_server_finds_patterns_as_models_do(
    apiserver: ApiServer, namespace: str
) -> None:
    with warnings.catch_warnings(action="ignore", category=FutureWarning):
        compiled = {f"python{n}": re.compile(each) for n, each in enumerate(PYTHON)}
    given: dict[str, Any] = {f"rust{n}": each for n, each in enumerate(RUST)} | compiled
    reading = {n: TypeAdapter(str).validator for n in given}
    for name, pattern in given.items():
        hint: Any = Field(pattern=pattern)
        reading[name] = TypeAdapter(Annotated[str, hint]).validator
    properties = {
        name: {
            "type": "string",
            "pattern": go_of_rust(each)
            if isinstance(each, str)
            else go_of_python(each),
        }
        for name, each in given.items()
    }
    status, answer = apiserver.raw("POST", DEFINITIONS, definition(properties))
    assert status == 201, answer["message"]
    path = f"/apis/patterns.conf.dev/v1/namespaces/{namespace}/texts"

    def refused(text: str) -> set[str]:
        """The fields in which the server refuses a text."""
        body = {"apiVersion": "patterns.conf.dev/v1", "kind": "Text"}
        spec = dict.fromkeys(given, text)
        made = {**body, "metadata": {"generateName": "text-"}, "spec": spec}
        status, answer = apiserver.raw("POST", path, made)
        if status == 201:
            return set()
        assert status == 422, answer
        causes = answer["details"]["causes"]
        return {each["field"].removeprefix("spec.") for each in causes}

    # A real server serves a kind a while after it has been defined.
    eventually(lambda: apiserver.raw("GET", path)[0] == 200)
    for text in filter(None, TEXTS):  # the validator of 1.20 takes "" for null
        others = {n for n, each in reading.items() if not each.isinstance_python(text)}
        assert refused(text) == others, text
