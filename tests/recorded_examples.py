"""Recordings of examples, whose users do the same to each."""

from __future__ import annotations

from functools import cache
from typing import Any

from tests.recordings import TRACED, Recording
from tests.simulations import (
    Scenario,
    example_calls,
    example_handlers,
    is_definition,
    manifests_of,
)

__all__ = ["recorded"]

KIND = "fnopexamples"


class Handlers:
    """As a registry, for a recording."""

    def __init__(self, name: str) -> None:
        self.handlers = example_handlers(name)


@cache
def recorded(name: str) -> list[dict[str, Any]]:
    """An example whose user edits, adds and deletes objects."""
    recording = Recording(Handlers(name), TRACED)  # type: ignore[arg-type]
    program = recording.program
    run = Scenario(
        program.handlers,
        settings=TRACED,
        observers=[recording.recorder],
        calls=example_calls(name),
    )
    kinds = [each for each in manifests_of(name) if not is_definition(each)]
    definitions = [each for each in manifests_of(name) if is_definition(each)]
    run.apply(*(e for e in definitions if e["spec"]["names"]["plural"] != KIND))
    run.apply(*kinds).wait(20)
    for each in kinds:
        plural = f"{each['kind'].lower()}s"
        run.edit(plural, each["metadata"]["name"], metadata={"labels": {"a": "b"}})
        run.wait(5)
    other = {**kinds[-1], "metadata": {**kinds[-1]["metadata"], "name": "other"}}
    run.apply(other).wait(5)
    run.delete(f"{kinds[0]['kind'].lower()}s", kinds[0]["metadata"]["name"])
    run.wait(60)
    _, records = recording.records()
    return [each for each in records if each is not None]
