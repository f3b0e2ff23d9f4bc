"""The world of a run at one moment, as an author's expectations see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from fnop.core.api.catalogue import Catalogue
from fnop.core.values.body import View
from fnop.interpreters.check.state.sites import target_of
from fnop.interpreters.cluster import Cluster, StoredEvent
from fnop.interpreters.simulation.externals import forked, model_of

__all__ = ["Change", "Past", "Picture", "Request"]

Verb = Literal["create", "update", "delete"]
VERBS: Mapping[str, Verb] = {
    "ADDED": "create",
    "MODIFIED": "update",
    "DELETED": "delete",
}


class Change(Struct, frozen=True):
    """A change of the cluster: what was done to the `target`, such as `pods/a`.

    `object` is the target after the change, or the last one before its deletion.
    `verb` is what was done. Generated parts of a name are `*` in `target`, as in the
    sites of faults.

        made = [each.target for each in world.changes("pods") if each.verb == "create"]
    """

    verb: Verb
    target: str
    object: View

    def __str__(self) -> str:
        return f"{self.verb} {self.target}"


class Request(Struct, frozen=True):
    """A request or a call of the operator, with its `handler` and the kind of answer.

    `verb` is the effect's, such as `create`, `apply`, `get` or `call`, and `target` is
    its object, such as `pods/a`. `answer` is
    "accepted", "conflict", "missing", "refused", "unreachable", "unknown" (without a
    reply), "raised" (by a call), or "" if the operator crashed before the answer.

        lost = [each for each in world.requests if each.answer == "unknown"]
    """

    verb: str
    target: str
    handler: str
    answer: str

    def __str__(self) -> str:
        return f"{self.verb} {self.target}"


class Past(Struct, frozen=True):
    """The past of a picture, which is looked up only on demand."""

    events: Callable[[], Sequence[StoredEvent]] = lambda: ()
    requests: Callable[[], Sequence[Request]] = lambda: ()
    calls: Mapping[Any, Any] = {}
    drawn: Sequence[bytes] = ()


class Picture:
    """The objects of a cluster at one moment, and the events until then.

    They are named as in kubectl, by kind/name:

        @expect("databases")
        def has_its_claim(database: View, world: Picture) -> bool:
            return f"pvc/{database.name}" in world

    It is made of a `cluster` and the `catalogue` of its kinds, at the time `wall` (Unix
    seconds), with the `past` of that moment. `namespace` applies to names without one.
    """

    def __init__(
        self,
        cluster: Cluster,
        catalogue: Catalogue,
        wall: float,
        namespace: str = "default",
        past: Past = Past(),  # noqa: B008 (an immutable value)
    ) -> None:
        self._cluster, self._catalogue = cluster, catalogue
        self.wall, self._namespace = wall, namespace
        self._past = past
        self._calls: Mapping[Any, Any] | None = None

    def objects(self, kind: str) -> list[View]:
        """Read all objects of a `kind`; empty if the cluster does not know it."""
        resource = self._catalogue.lookup(kind)
        if resource is None:
            return []
        shelf = self._cluster.shelves.get((resource.group, resource.plural))
        return [View.of(each, self.wall) for _, each in sorted((shelf or {}).items())]

    def get(self, where: str, *, namespace: str | None = None) -> View | None:
        """Read the object at `where`, kind/name, or None if it does not exist.

        `namespace` is the scenario's by default; kinds without namespaces ignore it.
        """
        kind, _, name = where.partition("/")
        resource = self._catalogue.lookup(kind)
        if resource is None:
            return None
        place = (namespace or self._namespace) if resource.namespaced else ""
        shelf = self._cluster.shelves.get((resource.group, resource.plural))
        found = None if shelf is None else shelf.get((place, name))
        return None if found is None else View.of(found, self.wall)

    def __contains__(self, where: str) -> bool:
        return self.get(where) is not None

    def __getitem__(self, where: str) -> View:
        found = self.get(where)
        if found is None:
            raise KeyError(where)
        return found

    def changes(self, *kinds: str) -> list[Change]:
        """List the changes of the cluster since the script began, oldest first.

        They concern objects of these `kinds`, or of all.
        """
        found = [*map(self._catalogue.lookup, kinds)]
        wanted = {(each.group, each.plural) for each in found if each is not None}
        return [
            self.change_of(each)
            for each in self._past.events()
            if not kinds or each.resource in wanted
        ]

    def change_of(self, event: StoredEvent) -> Change:
        """The change that an event shows."""
        target = target_of(event.resource[1], event.object, self._past.drawn)
        return Change(VERBS[event.type], target, View.of(event.object, self.wall))

    @property
    def requests(self) -> list[Request]:
        """The requests and calls of the operator since the script began, in order."""
        return [*self._past.requests()]

    def model(self, function: str) -> Any:
        """The model that answers calls of a `function`, in its state at this moment.

        It is the `External` whose method answers; changes to it have no effect. Raises
        `KeyError` if the function has no model.
        """
        if self._calls is None:
            self._calls = forked(self._past.calls)
        return model_of(self._calls, function)
