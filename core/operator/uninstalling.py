"""Remove an operator's marks from its objects, so that none is held forever.

The marks of an operator on an object, all under its name `fnop.dev/<operator>`, are

- its finalizer, which holds the object when a user deletes it,
- its stored state, in the status or in an annotation, unless its settings have another
  place for it (`fnop.core.memory.storage`),
- its condition in `status.conditions`.

Everything else stays: the changes of handlers, and everything of others. Results of
handlers belong to the author, and stay. Only results that had no place in the status,
and are part of the state (`fnop.core.memory.stored_state`), are removed with it.

One request per endpoint is enough. Each is decided from the freshest body, and bound to
its version. A request that conflicts has changed nothing, and is decided again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec import Struct

from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import ADMISSION, Role
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.run.arguments import Situation
from fnop.core.handlers.run.invocation import LiveCache, advance
from fnop.core.memory.conditions import conditions_in, is_of
from fnop.core.peers.lease import parse_lease
from fnop.core.peers.peers import Peer, parse_peers
from fnop.core.values.body import Body
from fnop.core.values.finalizers import without_finalizer
from fnop.core.values.merge import applied, difference
from fnop.core.values.now import Now, parse_time

__all__ = [
    "Marks",
    "Tally",
    "alive_peers",
    "kinds_named",
    "lease_holder",
    "marks_of",
    "next_removal",
    "settings_told",
    "tallied",
]


# ------------------------------------------------------------------- settings


def settings_told(
    handlers: Iterable[Handler], settings: Settings, now: Now
) -> tuple[Settings, tuple[str, ...]]:
    """The settings from startup handlers, and the ids of handlers without an answer.

    Only handlers that take the settings are called. A handler that awaits an effect
    before it returns them has no answer. Neither has one that fails.
    """
    silent: list[str] = []
    for each in handlers:
        names_them = "settings" in each.signature.wants or each.signature.rest
        if each.role is not Role.STARTUP or each.function or not names_them:
            continue
        live = LiveCache()
        situation = Situation(
            each, settings, now, reason=each.role.value, started=now.wall
        )
        end = advance(situation, (), live, ("settings",)).end
        live.clear()
        if end is None or end.failure is not None:
            silent.append(each.id)
        elif end.settings is not None:
            settings = end.settings
    return settings, tuple(silent)


# --------------------------------------------------------------------- marks


class Marks(Struct, frozen=True):
    """The marks that an object carries, and whether it waits for its deletion."""

    finalizer: bool
    state: bool
    condition: bool
    deleting: bool = False

    @property
    def any(self) -> bool:
        return self.finalizer or self.state or self.condition


def marks_of(body: Body, settings: Settings) -> Marks:
    """The marks of the operator with these settings on an object.

    >>> marks_of(Body({"metadata": {"finalizers": ["fnop.dev/a"]}}), Settings("a"))
    Marks(finalizer=True, state=False, condition=False, deleting=False)
    """
    marker, status = settings.marker, body.stanza("status")
    return Marks(
        settings.own_finalizer in body.finalizers,
        any(settings.places.removals(body)),
        any(is_of(each, marker) for each in conditions_in(status)),
        body.is_deleting,
    )


def next_removal(
    body: Body, resource: Resource, settings: Settings, *, without: Iterable[str] = ()
) -> tuple[str, dict[str, Any]] | None:
    """The endpoint ("status" or "") and the merge patch that are due next.

    None if no mark remains. The finalizer is in the last patch: after it the object may
    be gone. `without` are endpoints that have refused: fnop continues with the others.

    >>> pods = Resource("", "v1", "pods", "Pod", subresources=("status",))
    >>> meta = {"resourceVersion": "7", "finalizers": ["x", "fnop.dev/a"]}
    >>> next_removal(Body({"metadata": meta}), pods, Settings("a"))
    ('', {'metadata': {'finalizers': ['x'], 'resourceVersion': '7'}})
    """
    change = difference(body.data, _without_marks(body, settings))
    parts = {"": change}
    if resource.has_status and "status" in change:
        parts["status"] = {"status": change.pop("status")}
    refused = frozenset(without)
    for endpoint in ("status", ""):
        part = parts.get(endpoint)
        if part and endpoint not in refused:
            meta = {**part.get("metadata", {}), "resourceVersion": body.version}
            return endpoint, {**part, "metadata": meta}
    return None


def _without_marks(body: Body, settings: Settings) -> dict[str, Any]:
    """The object without the operator's marks."""
    marker, marks = settings.marker, marks_of(body, settings)
    target: dict[str, Any] = body.data
    if marks.finalizer:
        names = without_finalizer(body.finalizers, settings.own_finalizer)
        target = applied({"metadata": {"finalizers": names}}, target)
    for patch in settings.places.removals(body):
        target = applied(patch, target)
    if marks.condition:
        # An empty list stays: a schema may require one.
        status = body.stanza("status")
        others = [each for each in conditions_in(status) if not is_of(each, marker)]
        target = applied({"status": {"conditions": others}}, target)
    return target


# --------------------------------------------------------------------- counts


class Tally(NamedTuple):
    """The numbers of objects with each mark; `seen` counts all objects."""

    seen: int = 0
    objects: int = 0
    finalizers: int = 0
    states: int = 0
    conditions: int = 0
    deleting: int = 0


def tallied(tally: Tally, marks: Marks) -> Tally:
    """The tally with one more object. `deleting` counts only objects that are held.

    >>> tallied(Tally(), Marks(True, False, False, deleting=True))
    Tally(seen=1, objects=1, finalizers=1, states=0, conditions=0, deleting=1)
    """
    return Tally(
        tally.seen + 1,
        tally.objects + marks.any,
        tally.finalizers + marks.finalizer,
        tally.states + marks.state,
        tally.conditions + marks.condition,
        tally.deleting + (marks.finalizer and marks.deleting),
    )


# ---------------------------------------------------------------------- kinds


def kinds_named(
    handlers: Iterable[Handler], catalogue: Catalogue
) -> tuple[tuple[Resource, ...], tuple[str, ...]]:
    """The kinds that handlers name, each once, and the names that select no kind.

    A kind that is served in several versions has the same objects in each of them.
    Kinds that cannot be listed or written have no marks. Admission handlers leave no
    marks either.
    """
    found: dict[tuple[str, str], Resource] = {}
    unserved: list[str] = []
    for selector in [
        each.selector
        for each in handlers
        if each.selector and each.role not in ADMISSION
    ]:
        resources = catalogue.find(selector)
        for each in resources:
            if not each.verbs or {"list", "patch"} <= set(each.verbs):
                found.setdefault((each.group, each.plural), each)
        if not resources and not selector.is_broad and str(selector) not in unserved:
            unserved.append(str(selector))
    return tuple(found[key] for key in sorted(found)), tuple(unserved)


# ---------------------------------------------------- operators that still run


def lease_holder(body: Body, wall: float) -> str | None:
    """The holder of a lease at this moment (Unix time), as far as clocks agree.

    None if it was released, or has expired: a leader that was killed does not release
    it.

    >>> spec = {"holderIdentity": "pod-1", "leaseDurationSeconds": 15,
    ...         "renewTime": "1970-01-01T00:00:01.000000Z"}
    >>> lease_holder(Body({"spec": spec}), 15.0), lease_holder(Body({"spec": spec}), 17)
    ('pod-1', None)
    """
    lease = parse_lease(body)
    try:
        renewed = parse_time(str(body.stanza("spec").get("renewTime")))
    except ValueError:
        return None
    return lease.holder or None if renewed + (lease.seconds or 0.0) > wall else None


def alive_peers(body: Body, wall: float) -> tuple[Peer, ...]:
    """The operators whose records in a peering object are alive (`wall`: Unix time)."""
    peers, _ = parse_peers(body.stanza("status"))
    return tuple(
        each
        for each in peers
        if each.lastseen is None or each.lastseen + each.lifetime > wall
    )
