"""Changes of the cluster itself: its version, its kinds, and its reachability.

fnop finds them by comparing one discovery with the next. What the first one finds is
not a change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct

from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.effects.regexes import regex
from fnop.effects.structs import replace
from fnop.effects.values import digest

__all__ = [
    "ClusterChange",
    "KindAdded",
    "KindChanged",
    "KindRemoved",
    "Reached",
    "ServedKind",
    "ServerVersion",
    "Unreachable",
    "Upgraded",
    "change_from_json",
    "change_to_json",
    "changed_kinds",
    "served_kinds",
    "told_of",
]

_NUMBER = regex(r"[0-9]{1,9}")


class ServerVersion(NamedTuple):
    """The version of an API server, from its `/version`.

    >>> ServerVersion(1, 36, "v1.36.2") >= (1, 31)
    True
    """

    major: int
    minor: int
    git_version: str = ""

    def __str__(self) -> str:
        return self.git_version or f"v{self.major}.{self.minor}"

    @classmethod
    def of(cls, told: Any) -> ServerVersion | None:
        """The version in a document of `/version`; None for anything else.

        >>> str(ServerVersion.of({"major": "1", "minor": "20+"}))
        'v1.20'
        """
        if not isinstance(told, Mapping):
            return None
        found = [_NUMBER.match(str(told.get(e) or "")) for e in ("major", "minor")]
        if found[0] is None or found[1] is None:
            return None
        numbers = int(found[0][0]), int(found[1][0])
        return cls(*numbers, str(told.get("gitVersion") or ""))


class ServedKind(Struct, frozen=True):
    """A kind that the API server serves.

    `resource` is its preferred version, `versions` are all of them, the preferred one
    first. `schema` is a digest of their schemas; "" if unknown.

    >>> pods = Resource("", "v1", "pods", "Pod")
    >>> ServedKind(pods, ("v1",)).differs_from(ServedKind(pods, ("v1",), "4f3a"))
    False
    """

    resource: Resource
    versions: tuple[str, ...]
    schema: str = ""

    def differs_from(self, other: ServedKind) -> bool:
        """Whether the kind has changed; an unknown part has not.

        A definition that is terminating loses verbs: that is part of its removal.
        """
        was, now = (replace(each.resource, verbs=()) for each in (other, self))
        is_known = bool(self.schema and other.schema)
        return (
            was != now
            or self.versions != other.versions
            or (is_known and self.schema != other.schema)
        )


class Upgraded(Struct, frozen=True):
    """The API server has another version than before, maybe an older one."""

    old: ServerVersion
    new: ServerVersion


class KindAdded(Struct, frozen=True):
    """The API server serves a kind that it did not serve."""

    resource: Resource
    new: ServedKind
    old: None = None


class KindRemoved(Struct, frozen=True):
    """The API server has stopped serving a kind."""

    resource: Resource
    old: ServedKind
    new: None = None


class KindChanged(Struct, frozen=True):
    """A kind has other versions, another schema, or other names."""

    resource: Resource
    old: ServedKind
    new: ServedKind


class Unreachable(Struct, frozen=True):
    """The API server has not answered for `seconds`."""

    seconds: float


class Reached(Struct, frozen=True):
    """The API server answers again, after `seconds`."""

    seconds: float


ClusterChange: TypeAlias = (
    Upgraded | KindAdded | KindRemoved | KindChanged | Unreachable | Reached
)


def served_kinds(
    catalogue: Catalogue, schemas: Mapping[str, str]
) -> dict[tuple[str, str], ServedKind]:
    """The kinds of a catalogue, by group and plural.

    `schemas` are the known digests, by the keys of resources.
    """
    versions: dict[tuple[str, str], list[Resource]] = {}
    for each in catalogue.resources:
        versions.setdefault((each.group, each.plural), []).append(each)
    found = {}
    for place, several in versions.items():
        several.sort(key=lambda each: not each.preferred)
        known = [(e.version, schemas[e.key]) for e in several if e.key in schemas]
        schema = digest(sorted(known)) if len(known) == len(several) else ""
        names = tuple(each.version for each in several)
        found[place] = ServedKind(several[0], names, schema)
    return found


def changed_kinds(
    before: Mapping[tuple[str, str], ServedKind],
    after: Mapping[tuple[str, str], ServedKind],
) -> Iterator[KindAdded | KindRemoved | KindChanged]:
    """The changes between two discoveries, by group and plural.

    >>> pods = ServedKind(Resource("", "v1", "pods", "Pod"), ("v1",))
    >>> [type(each).__name__ for each in changed_kinds({}, {("", "pods"): pods})]
    ['KindAdded']
    """
    for place in sorted(before.keys() | after.keys()):
        old, new = before.get(place), after.get(place)
        if old is None and new is not None:
            yield KindAdded(new.resource, new)
        elif new is None and old is not None:
            yield KindRemoved(old.resource, old)
        elif old is not None and new is not None and new.differs_from(old):
            yield KindChanged(new.resource, old, new)


def told_of(change: ClusterChange) -> str:
    """A change in words.

    >>> told_of(Reached(61.5))
    'the API server answers again, after 62 s'
    """
    match change:
        case Upgraded(old, new):
            return f"the API server is {new}, and was {old}"
        case KindAdded(resource):
            return f"the API server serves {resource.label}"
        case KindRemoved(resource):
            return f"the API server does not serve {resource.label} any more"
        case KindChanged(resource):
            return f"the kind {resource.label} has changed"
        case Unreachable(seconds):
            return f"the API server has not answered for {seconds:.0f} s"
        case Reached(seconds):
            return f"the API server answers again, after {seconds:.0f} s"


# --------------------------------------------------------------------- as JSON

_KINDS: dict[str, type[Any]] = {
    each.__name__: each
    for each in (Upgraded, KindAdded, KindRemoved, KindChanged, Unreachable, Reached)
}


def change_to_json(change: ClusterChange) -> dict[str, Any]:
    """A change as JSON.

    >>> change_to_json(Reached(3.0))
    {'change': 'Reached', 'seconds': 3.0}
    """
    found: dict[str, Any] = {"change": type(change).__name__}
    for name in change.__struct_fields__:
        found[name] = _value_to_json(getattr(change, name))
    return found


def _value_to_json(value: Any) -> Any:
    match value:
        case ServerVersion():
            return {"version": [*value]}
        case ServedKind(resource, versions, schema):
            kind = resource.to_json()
            return {"resource": kind, "versions": [*versions], "schema": schema}
        case Resource():
            return value.to_json()
        case _:
            return value


def change_from_json(found: Mapping[str, Any]) -> ClusterChange:
    """The change from the result of `change_to_json`.

    >>> change = Upgraded(ServerVersion(1, 35), ServerVersion(1, 36))
    >>> change_from_json(change_to_json(change)) == change
    True
    """
    made: ClusterChange = _KINDS[found["change"]](
        **{
            name: _value_from_json(value)
            for name, value in found.items()
            if name != "change"
        }
    )
    return made


def _value_from_json(found: Any) -> Any:
    match found:
        case {"version": [major, minor, git]}:
            return ServerVersion(major, minor, git)
        case {"resource": resource, "versions": versions, "schema": schema}:
            return ServedKind(Resource.from_json(resource), tuple(versions), schema)
        case {"plural": _}:
            return Resource.from_json(found)
        case _:
            return found
