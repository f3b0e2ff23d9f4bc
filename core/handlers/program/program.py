"""An operator's code as one immutable value: its handlers and its settings."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from fnop.core.api.resources import Resource, Selectors
from fnop.core.api.statuses import UNDESCRIBED, StatusSchema
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import (
    BACKGROUND,
    CHANGES,
    EVENTS,
    INDICES,
    LOGS,
    RECONCILERS,
    Family,
    Role,
)
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.pushdown import needs_metadata_alone, selectors_of
from fnop.core.memory.observation import Observation
from fnop.core.values.entries import is_of_entries
from fnop.effects.structs import derived, replace

__all__ = ["Kind", "OwnedBy", "Program", "kind_of"]

# Not `id`: Python reports each call of it to audit hooks, such as the guard's.
identity_of = object.__hash__

_SETTINGS = Settings()


class OwnedBy(Struct, frozen=True):
    """A kind that owns objects of another kind, for one of its handlers.

    `sees_all` is whether all its objects are followed: then an unknown object does not
    exist.
    """

    resource: Resource
    handler: Handler
    sees_all: bool


class Kind(Struct, frozen=True):
    """The handlers of one served resource, and the fields that they observe.

    `selectors` are the selectors that the API server applies to its objects. With
    `remembers` the decisions after a restart depend on the last-handled state;
    otherwise fnop stores nothing on the objects. It is `owned_by` the kinds whose
    reconcilers name it in `owns=`. Its `status` is the schema's description of it.
    """

    resource: Resource
    changes: tuple[Handler, ...]
    event_handlers: tuple[Handler, ...]
    observation: Observation
    deleters: tuple[Handler, ...]
    remembers: bool
    background: tuple[Handler, ...] = ()
    indexers: tuple[Handler, ...] = ()
    reconcilers: tuple[Handler, ...] = ()
    log_handlers: tuple[Handler, ...] = ()
    owned_by: tuple[OwnedBy, ...] = ()
    selectors: Selectors = Selectors()
    # No handler reads more of its objects than their metadata.
    metadata_only: bool = False
    status: StatusSchema = UNDESCRIBED

    def observing(self, indices: Mapping[str, Any]) -> Kind:
        """Return the same kind with the indices whose entries its handlers observe."""
        observation = replace(self.observation, indices=indices)
        return replace(self, observation=observation)

    @property
    def is_owned(self) -> bool:
        """Whether a reconciler owns objects of this kind."""
        return bool(self.owned_by)

    @property
    def has_handlers(self) -> bool:
        """Whether it has handlers of its own, and is not only owned."""
        others = self.background or self.indexers or self.log_handlers
        return bool(self.may_loop or others)

    def author_of(self, name: str, known: Container[str]) -> str:
        """The id of the handler that has returned the result of this name.

        It is the name itself, except for a call by an index. Then it is the name of one
        of the `known` handlers, which keep their results under the names of others.
        """
        for each in self.changes:
            head, part = each.repeats, name.removeprefix(each.repeats)
            is_its = head and name.startswith(head) and part[:1] in ("", "/")
            if is_its and each.id + part in known:
                return each.id + part
        return name

    @property
    def may_loop(self) -> bool:
        """Whether a change of an object by its handlers may lead to a call of one."""
        return bool(self.changes or self.event_handlers or self.reconcilers)

    @property
    def overlooks(self) -> bool:
        """Whether a change of an object may bring it its first update handlers."""
        return any(
            each.rule.compares and not each.rule.is_for_new and not each.takes_all
            for each in self.changes
        )

    @property
    def waits_for_idleness(self) -> bool:
        """Whether a timer of this kind waits until its object is idle."""
        return any(
            each.schedule is not None and each.schedule.idle is not None
            for each in self.background
        )


def _observation_of(
    changes: tuple[Handler, ...], resource: Resource, settings: Settings
) -> Observation:
    """The parts of an object that its handlers of changes compare."""
    observers = [
        each
        for each in changes
        if each.rule.compares or (each.rule.has_past and each.observes_old)
    ]
    scopes = {each.scope for each in observers}
    kept = {each.field for each in observers if each.observes_old}
    if changes and settings.places.format is not None:
        # The format of another framework keeps the whole object for any handler, and
        # all filters of fields see both values, those of creations, too.
        fields = {each.field for each in changes if each.field}
        scopes |= {(), *fields}
        kept |= fields
    return Observation(
        tuple(sorted(scopes)),
        tuple(sorted(kept)),
        settings.ignored,
        settings.places.paths,
        settings.hidden,
        resource.key,
        has_entries=any(map(is_of_entries, scopes)),
    )


def kind_of(
    resource: Resource,
    handlers: Iterable[Handler],
    settings: Settings = _SETTINGS,
    *,
    owned_by: tuple[OwnedBy, ...] = (),
    status: StatusSchema = UNDESCRIBED,
) -> Kind:
    """The part of a program for one resource."""
    handlers = tuple(handlers)

    def of(roles: frozenset[Role]) -> tuple[Handler, ...]:
        return tuple(each for each in handlers if each.role in roles)

    changes = of(CHANGES)
    return Kind(
        resource,
        changes,
        of(EVENTS),
        _observation_of(changes, resource, settings),
        tuple(each for each in changes if each.holds),
        any(each.rule.remembers for each in changes),
        of(BACKGROUND),
        of(INDICES),
        of(RECONCILERS),
        of(LOGS),
        owned_by,
        # fnop must see children, whatever the handlers of their own kind select.
        selectors_of(
            () if owned_by else handlers,
            Selectors() if owned_by else settings.selectors_for(resource),
        ),
        # A recording needs whole objects.
        not (owned_by or settings.traces) and needs_metadata_alone(handlers),
        status,
    )


# The most kinds that a program keeps.
_KINDS_MAX = 512


class Program(Struct, frozen=True, eq=False):
    """The immutable input of every step: the author's handlers, and the settings."""

    handlers: tuple[Handler, ...]
    settings: Settings = _SETTINGS
    # The results of `kind`, each with its resource and settings.
    _kinds: dict[Any, tuple[Resource, Settings, Kind]] = derived()
    # The roles of the handlers, by their ids.
    roles: Mapping[str, Role] = derived()
    # The indices whose entries are observed, with the indices that hold objects' keys.
    observers: Mapping[str, tuple[str, ...]] = derived()

    def __post_init__(self) -> None:
        force_setattr(self, "_kinds", {})
        roles = {each.id: each.role for each in self.handlers}
        force_setattr(self, "roles", roles)
        force_setattr(self, "observers", _observers_by_index(self.handlers))

    def kind(
        self,
        resource: Resource,
        handlers: tuple[Handler, ...],
        settings: Settings,
        *,
        owned_by: tuple[OwnedBy, ...] = (),
        status: StatusSchema = UNDESCRIBED,
    ) -> Kind:
        """Return `kind_of`, computed once for the very same resource and settings.

        This saves time when a simulated operator restarts again and again.
        """
        # By identity: while they are kept with their result, no other object can have
        # it.
        key = identity_of(resource), handlers, identity_of(settings), owned_by, status
        known = self._kinds.get(key)
        if known is None:
            if len(self._kinds) >= _KINDS_MAX:
                self._kinds.clear()
            kind = kind_of(
                resource, handlers, settings, owned_by=owned_by, status=status
            )
            known = self._kinds[key] = resource, settings, kind
        return known[2]

    @property
    def hears_of_cluster(self) -> bool:
        """Whether there are handlers of changes of the cluster itself."""
        return any(each.rule.family is Family.CLUSTER for each in self.handlers)

    def activity(self, role: Role) -> tuple[Handler, ...]:
        """The handlers of an activity, in the order of their declaration."""
        return tuple(each for each in self.handlers if each.role is role)


def _observers_by_index(handlers: Iterable[Handler]) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for each in handlers:
        if each.entries:
            _, index, keys = each.entries
            found[index] = (*found.get(index, ()), keys)
    return found
