"""The versions of objects that a recording has shown so far."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

from fnop.core.seam.traces import Version
from fnop.core.values.body import Body
from fnop.core.values.packing import Packing

__all__ = ["Packed", "Versions", "objects_in"]

# An attempt may be about a version other than the last one, but not about any version.
KEPT_MAX = 64


class Packed(Body):
    """A body that keeps only compressed text, and parses it at each access.

    >>> Packed({"metadata": {"uid": "u"}}).data
    {'metadata': {'uid': 'u'}}
    """

    __slots__ = ()

    def __init__(self, data: dict[str, Any]) -> None:
        super().__init__(None, orjson.dumps(data))
        self.pack(_ALONE)

    def __getattr__(self, name: str) -> Any:
        """Parse the object, or its metadata, again."""
        match name:
            case "data":
                return orjson.loads(self.raw)
            case "meta":
                return self.stanza("metadata")
            case _:
                return super().__getattr__(name)


# Packing without a similar object as its base.
_ALONE = Packing()


class Versions:
    """The last versions of each object, by its uid.

    `form` makes the kept form of a version: `Body` is fast, `Packed` takes a tenth of
    the memory.
    """

    def __init__(self, form: Callable[[dict[str, Any]], Body] = Body) -> None:
        self._form = form
        self._known: dict[str, OrderedDict[str, Body]] = {}

    def learn(self, input: Mapping[str, Any]) -> None:
        """Take note of the objects that an input shows, in its JSON form."""
        for each in objects_in(input):
            body = self._form(each)
            known = self._known.setdefault(body.uid, OrderedDict())
            known[body.version] = body
            known.move_to_end(body.version)
            if len(known) > KEPT_MAX:
                known.popitem(last=False)

    def find(self, version: Version) -> Body | None:
        """This version of the object; None if the recording has not shown it."""
        known = self._known.get(version.uid)
        return None if known is None else known.get(version.version)

    def of(self, uid: str) -> Iterator[Body]:
        """All known versions of an object, the newest first."""
        known = self._known.get(uid)
        yield from () if known is None else reversed(known.values())


def objects_in(input: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The objects that an input shows: watched, listed, or answered.

    >>> pod = {"metadata": {"name": "p", "uid": "u"}}
    >>> [each["metadata"]["name"] for each in objects_in({"body": pod})]
    ['p']
    """
    outcome = input.get("outcome")
    outcome = outcome if isinstance(outcome, dict) else {}
    value = outcome.get("value")
    items = value.get("items") if isinstance(value, dict) else value
    listed = items if isinstance(items, list) else []
    for each in (input.get("body"), outcome.get("object"), value, *listed):
        if isinstance(each, dict) and isinstance(each.get("metadata"), dict):
            yield each
