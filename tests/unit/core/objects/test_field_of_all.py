"""A field handler of a field that own writes change, too: it settles."""

from __future__ import annotations

from typing import Any

import pytest

import fnop
from fnop.core.handlers.declare.registry import Registry
from fnop.core.values.errors import RegistrationError
from tests.simulations import Scenario, example

KIND = "fnopexamples"


@pytest.mark.parametrize(
    "field",
    [
        *("metadata", "metadata.annotations", "metadata.labels", "metadata.finalizers"),
        *("metadata.generation", "metadata.ownerReferences", "spec", "status"),
    ],
)
@pytest.mark.parametrize("decorate", [fnop.on.field, fnop.on.update])
def test_it_is_called_until_nothing_changes(decorate: Any, field: str) -> None:
    registry = Registry()
    seen: list[Any] = []

    def watching(new: Any, **_: Any) -> Any:
        seen.append(new)
        return "a result"

    decorate(KIND, field=field, registry=registry, id="watching")(watching)
    run = Scenario(registry)
    run.apply(example("one", size=1))
    assert run.settle(seconds=60), run.lines
    before = len(seen)
    labels = {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}
    run.edit(KIND, "one", spec={"size": 2}, **labels)
    assert run.settle(seconds=60), run.lines
    assert before <= 2
    assert len(seen) - before <= 2
    if field == "metadata":
        assert seen[-1] == {"labels": {"a": "b"}, "annotations": {"c": "d"}}


@pytest.mark.parametrize(
    "field",
    [
        "metadata.resourceVersion",
        "metadata.managedFields",
        ["metadata", "managedFields"],
    ],
)
def test_what_each_write_changes_is_refused(field: Any) -> None:
    registry = Registry()
    with pytest.raises(RegistrationError, match="changes with each write, also with"):

        @fnop.on.field(KIND, field=field, registry=registry)
        def watching(**_: Any) -> None: ...
