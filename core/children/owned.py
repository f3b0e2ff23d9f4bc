"""The children of an object at one moment: its objects of the kinds in `owns=`.

A child belongs to the object whose uid is in its owner references. Kubernetes does not
allow such a reference to an owner in another namespace. Neither does it allow one from
a cluster-scoped child to an owner in a namespace (owners and dependents). Such a child
names its owner in an annotation instead. So does a child that is to outlive its owner,
since the garbage collector would delete it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar, overload

from msgspec import Struct

from fnop.core.api.definitions import named
from fnop.core.api.resources import Resource, dotted
from fnop.core.values.body import Body, Key, View
from fnop.core.values.models import Unfit, reader_of
from fnop.core.values.table import NOTHING

__all__ = [
    "OWNER_ANNOTATION",
    "AsDesired",
    "Checked",
    "Children",
    "Owned",
    "Owner",
    "Views",
    "names_its_owner",
    "owner_mark",
    "owners_of",
]

T = TypeVar("T")

# On a child without an owner reference: the name of its owner.
OWNER_ANNOTATION = "fnop.dev/owner"


class Owner(Struct, frozen=True):
    """An owner as its child names it: its uid, its kind, and its place."""

    uid: str
    group: str
    kind: str
    namespace: str
    name: str

    def is_of(self, resource: Resource) -> bool:
        """Whether the owner is of a kind, in any version."""
        return (self.group, self.kind) == (resource.group, resource.kind)

    def key(self, resource: Resource) -> Key:
        """The key of the owner, as one of this kind."""
        place = self.namespace if resource.namespaced else ""
        return Key(resource.key, place, self.name)


def owners_of(body: Body) -> tuple[Owner, ...]:
    """The owners of an object, by its references and by fnop's annotation.

    Malformed references are skipped.

    >>> reference = {"apiVersion": "e.com/v1", "kind": "K", "name": "o", "uid": "u"}
    >>> meta = {"namespace": "n", "ownerReferences": [reference]}
    >>> owners_of(Body({"metadata": meta}))
    (Owner(uid='u', group='e.com', kind='K', namespace='n', name='o'),)
    """
    if body.owners is None:
        body.owners = tuple(_owners_in(body))
    return body.owners


def _owners_in(body: Body) -> Iterator[Owner]:
    references = body.meta.get("ownerReferences")
    for each in references if isinstance(references, list) else ():
        if isinstance(each, dict) and each.get("uid"):
            group = str(each.get("apiVersion")).rpartition("/")[0]
            kind, name = str(each.get("kind")), str(each.get("name"))
            place = body.namespace or ""
            yield Owner(str(each["uid"]), group, kind, place, name)
    mark = body.mapping("annotations").get(OWNER_ANNOTATION)
    parts = mark.split("/") if isinstance(mark, str) else ()
    if len(parts) == 4:
        kind, _, group = parts[0].partition(".")
        yield Owner(parts[3], group, kind, parts[1], parts[2])


def owner_mark(resource: Resource, owner: Body) -> str:
    """The annotation that names an owner: `kind.group/namespace/name/uid`.

    >>> owner = Body({"metadata": {"namespace": "n", "name": "o", "uid": "u"}})
    >>> owner_mark(Resource("e.com", "v1", "ks", "K"), owner)
    'K.e.com/n/o/u'
    """
    kind = f"{resource.kind}.{resource.group}".rstrip(".")
    return f"{kind}/{owner.namespace or ''}/{owner.name}/{owner.uid}"


def names_its_owner(body: Body) -> bool:
    """Whether an object names an owner in fnop's annotation."""
    return OWNER_ANNOTATION in body.mapping("annotations")


class AsDesired(Struct, frozen=True):
    """A child that was as desired: its version, what was applied, and our fields then.

    While `fields`, a digest, is the same, no other client has changed the applied
    fields. A client that changes a field takes it from its manager.
    """

    version: str
    applied: str
    fields: str


Checked: TypeAlias = Mapping[Key, AsDesired]


class Views(Mapping[str, View]):
    """Objects by name; each becomes a view when it is accessed."""

    __slots__ = ("_bodies", "_wall")

    def __init__(self, bodies: Mapping[str, Body], wall: float) -> None:
        self._bodies = bodies
        self._wall = wall

    def __getitem__(self, name: str) -> View:
        return View.of(self._bodies[name].data, self._wall)

    def __iter__(self) -> Iterator[str]:
        return iter(self._bodies)

    def __len__(self) -> int:
        return len(self._bodies)

    def __contains__(self, name: object) -> bool:
        return name in self._bodies

    def __repr__(self) -> str:
        return repr(dict(self))


class Children(Mapping[str, Mapping[str, View]]):
    """The argument `children`: the objects that an object owns, by kind and name.

    `children["services"]["web"]` is the Service web, as the store has it. The kinds are
    the ones in `owns=`, in the same words, or by the plural alone if that is
    unambiguous. A kind without objects is an empty mapping. An object in another
    namespace than its owner has the name `namespace/name`.

    `children[Service]` are objects of a class that is a kind, such as one with a
    definition, or a resource of lightkube.

    >>> children = Children({"services": {}, "statefulsets.apps": {}})
    >>> "services" in children, children["services"].get("web")
    (True, None)
    >>> "statefulsets" in children, "statefulsets.v1.apps" in children
    (True, True)
    >>> "deployments" in children
    False
    """

    __slots__ = ("_kinds",)

    def __init__(self, kinds: Mapping[str, Mapping[str, View]]) -> None:
        self._kinds = kinds

    @overload
    def __getitem__(self, kind: str) -> Mapping[str, View]: ...
    @overload
    def __getitem__(self, kind: type[T]) -> Mapping[str, T]: ...
    def __getitem__(self, kind: Any) -> Mapping[str, Any]:
        if isinstance(kind, type):
            return ReadOnes(self[named(kind)], reader_of(kind))
        found = self._kinds.get(kind)
        if found is not None:
            return found
        alike = [each for each in self._kinds if _may_mean_the_same(each, kind)]
        if len(alike) != 1:
            words = ", ".join(map(repr, self._kinds)) or "none"
            raise KeyError(f"owns= does not name {kind!r}; it names {words}")
        return self._kinds[alike[0]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def __repr__(self) -> str:
        return repr({kind: dict(found) for kind, found in self._kinds.items()})


class ReadOnes(Mapping[str, T]):
    """Objects by their names, each read as a class when it is accessed.

    An object that does not fit raises `Unfit`, with its name.
    """

    __slots__ = ("_read", "_views")

    def __init__(self, views: Mapping[str, View], read: Callable[[Any], T]) -> None:
        self._views, self._read = views, read

    def __getitem__(self, name: str) -> T:
        try:
            return self._read(self._views[name])
        except Unfit as problem:
            raise problem.under(name) from problem.__cause__

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)


def _may_mean_the_same(one: str, other: str) -> bool:
    """Whether two words may name one kind; each of them may lack parts.

    >>> _may_mean_the_same("statefulsets.apps", "statefulsets.v1.apps")
    True
    >>> _may_mean_the_same("a", "a.b.c"), _may_mean_the_same("a.b", "a.c")
    (True, False)
    """
    plurals, *others = zip(dotted(one), dotted(other), strict=True)
    return plurals[0] == plurals[1] and all(
        mine == yours or None in (mine, yours) for mine, yours in others
    )


class Owned(Struct, frozen=True):
    """The children of an object: an immutable value, from the start of an attempt.

    `kinds` are the served kinds by the words of `owns=`; `bodies` the children by key;
    `find` returns any object of these kinds, whichever owner it has. `checked` are the
    children that the last call found as desired. `answer` is the digest of what it
    desired if these were all. `unseen` is the reason why an object may be unknown
    although it exists, else "". `is_blind` is whether the API server refuses to show
    some of these kinds.
    """

    kinds: Mapping[str, Resource]
    bodies: Mapping[Key, Body]
    find: Callable[[Key], Body | None]
    checked: Checked = NOTHING
    answer: str = ""
    unseen: Callable[[Key], str] = lambda _: ""
    is_blind: Callable[[], bool] = lambda: False

    def resource_of(self, manifest: Mapping[str, Any]) -> Resource | None:
        """The owned kind of a manifest."""
        for each in self.kinds.values():
            wanted = manifest.get("apiVersion"), manifest.get("kind")
            if (each.api_version, each.kind) == wanted:
                return each
        return None

    def children(self, namespace: str | None, wall: float) -> Children:
        """The argument `children`, of an owner in this namespace, at a time (Unix)."""
        found: dict[str, dict[str, Body]] = {word: {} for word in self.kinds}
        words = {each.key: word for word, each in self.kinds.items()}
        for key, body in sorted(self.bodies.items()):
            resource, place, name = key
            if place and place != namespace:
                name = f"{place}/{name}"
            found[words[resource]][name] = body
        return Children({kind: Views(each, wall) for kind, each in found.items()})
