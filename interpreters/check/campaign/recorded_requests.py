"""The requests of operators in real runs, read from their recordings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from fnop.core.api.resources import Resource
from fnop.core.seam.commands import Perform, Subject
from fnop.effects.wire import from_wire
from fnop.interpreters.recording.format.reader import read_header, read_records

__all__ = ["commands_in"]


def commands_in(file: BinaryIO) -> Iterator[Perform]:
    """The requests of a recording that are about an object, or come from a handler.

    The set of watched kinds, and the meeting of peers and replicas, depend on the way
    that run was started. Raises
    `fnop.interpreters.recording.format.reader.RecordingProblem`.
    """
    records = read_records(file)
    read_header(records)
    for record in records:
        for wire in (record or {}).get("commands") or ():
            command = _command(wire) if isinstance(wire, Mapping) else None
            if command is not None:
                yield command


def _command(wire: Mapping[str, Any]) -> Perform | None:
    key, namespace = wire.get("resource"), wire.get("namespace")
    about, handler = wire.get("subject"), wire.get("handler")
    if wire.get("do") != "Perform" or not isinstance(key, str):
        return None
    if not about and not handler:
        return None
    try:
        effect = from_wire(wire.get("effect"))
    except ValueError:  # a token in the place of a secret, or an effect of a newer fnop
        return None
    resource = _resource(key, namespaced=namespace is not None)
    subject = Subject("", None, "") if about else None
    return Perform(0, effect, resource, namespace, None, subject, handler)


def _resource(key: str, *, namespaced: bool) -> Resource:
    """The kind of a key: a recording has no more than the key.

    >>> _resource("databases.v1.example.com", namespaced=True).group
    'example.com'
    """
    plural, _, rest = key.partition(".")
    version, _, group = rest.partition(".")
    return Resource(group, version, plural, plural, namespaced=namespaced)
