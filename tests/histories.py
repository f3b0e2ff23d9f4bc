"""Recorded runs with several writers, and the contents of their recordings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fnop.core.handlers.declare.registry import Registry
from fnop.core.values.paths import FieldPath, parse_path
from fnop.interpreters.recording.model.contents import Contents
from fnop.interpreters.recording.model.refs import Named
from fnop.interpreters.recording.questions.provenance import Provenance, Why
from fnop.interpreters.recording.questions.story import Line, Story
from fnop.interpreters.runtime.protocol import MERGE_PATCH, ApiRequest
from tests.recordings import TRACED, Recording
from tests.simulations import Scenario, example

__all__ = ["OURS", "History", "config", "in_former_words", "leaves"]

OURS = "fnop.dev/default"


def config(name: str, **data: str) -> dict[str, Any]:
    """A ConfigMap."""
    metadata = {"name": name, "namespace": "default"}
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    return {**kind, "metadata": metadata, "data": data}


def in_former_words(record: dict[str, Any]) -> dict[str, Any]:
    """A record as earlier releases wrote it: what is returned is all of the status."""
    return {**record, "commands": [*map(_former, record["commands"])]}


def _former(command: dict[str, Any]) -> dict[str, Any]:
    if command["do"] != "Wrote":
        return command
    fields: dict[str, list[str]] = {}
    for name, pointers in command["fields"]:
        at = f"/status/{name.replace('/', '~1')}"
        is_returned = all(each == at or each.startswith(f"{at}/") for each in pointers)
        told = ["/status"] if is_returned else pointers
        fields[name] = [*fields.get(name, []), *told]
    return {**command, "fields": [[name, told] for name, told in fields.items()]}


class History:
    """A run that is recorded; users and managers write, the operator writes."""

    def __init__(
        self,
        registry: Registry,
        *objects: dict[str, Any],
        calls: Iterable[Callable[..., Any]] = (),
        rests: bool = True,
    ) -> None:
        self.recording = Recording(registry)
        self._records: list[dict[str, Any]] | None = None
        found = {f"{each.__module__}:{each.__qualname__}": each for each in calls}
        self.run = Scenario(
            registry,
            objects or [example(n=1)],
            settings=TRACED,
            observers=(self.recording.recorder,),
            calls=found,
        )
        if rests:
            assert self.run.settle()
        else:  # until no handler waits, it would go on for a week
            self.run.settle(seconds=2 * 3600.0)

    def writes(self, manager: str, kind: str, name: str, **change: Any) -> History:
        """Send another client's merge patch; then let the operator react."""
        path, writer = self.run.path(kind, name), (("fieldManager", manager),)
        request = ApiRequest("PATCH", path, writer, change, MERGE_PATCH)
        assert self.run.request(request).status == 200
        assert self.run.settle()
        return self

    def deletes(self, kind: str, name: str = "example-1") -> History:
        """A user's deletion."""
        self.run.delete(kind, name)
        assert self.run.settle()
        return self

    def why(
        self, about: str, field: str, at: int | None = None, manager: str = OURS
    ) -> Why | None:
        """The answer to `--why`."""
        records = self.records()[:at]
        found = Provenance(*self.named(about, at), manager)
        for each in records:
            found.add(each)
        return found.why(parse_path(field))

    def named(self, about: str, at: int | None = None) -> Named:
        """The object with the name."""
        contents = Contents()
        for each in self.records()[:at]:
            contents.add(each)
        return contents.named(about)

    def lines(self) -> list[Line]:
        """The story."""
        story = Story(manager=OURS)
        return [line for each in self.records() for line in story.add(each)]

    def told(self, *sorts: str) -> list[str]:
        """The texts of the story, of some sorts of lines."""
        return [each.text for each in self.lines() if not sorts or each.sort in sorts]

    def is_told(self, *records: dict[str, Any]) -> None:
        """From now on these are the records."""
        self._records = [*records]

    def records(self) -> list[dict[str, Any]]:
        """The records; the recording ends with the first look at them."""
        if self._records is None:
            _, records = self.recording.records()
            self._records = [each for each in records if each is not None]
        return self._records


def leaves(value: Any, path: FieldPath = ()) -> Iterator[FieldPath]:
    """All fields, within lists, too, and the lists."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from leaves(item, (*path, name))
        return
    yield path
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from leaves(item, (*path, number))
