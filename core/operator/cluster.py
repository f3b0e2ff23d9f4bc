"""The handlers of changes of the cluster itself, and when they are called.

fnop compares each discovery with the previous one. For this, discovery fetches
additional documents, as far as such handlers exist.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from fnop.core.api.catalogue import Catalogue
from fnop.core.api.cluster_changes import (
    ClusterChange,
    KindAdded,
    KindChanged,
    KindRemoved,
    Reached,
    Unreachable,
    Upgraded,
    changed_kinds,
    served_kinds,
    told_of,
)
from fnop.core.api.discovery import SCHEMAS, VERSION, Discovery
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import Role
from fnop.core.operator.activities import begin_change
from fnop.core.state.lifecycle import Phase
from fnop.core.state.survey import looking_by
from fnop.core.state.turn import Turn
from fnop.core.values.table import Table
from fnop.effects.structs import replace

__all__ = [
    "asks_for_kinds",
    "compare",
    "facts_for",
    "listen",
    "lost_contact",
    "outdated",
    "until_heard",
]

# The seconds until a silent API server is asked again. Then the seconds until it is
# asked when no stream shows that it is unavailable.
_SILENCE_SECONDS, _HEAR_SECONDS = 5.0, 10.0
_ROLES = {
    Upgraded: Role.UPGRADED,
    KindAdded: Role.KIND_ADDED,
    KindRemoved: Role.KIND_REMOVED,
    KindChanged: Role.KIND_CHANGED,
    Unreachable: Role.UNREACHABLE,
    Reached: Role.REACHED,
}


def facts_for(turn: Turn) -> Iterator[str]:
    """Yield documents that handlers of the cluster need, in addition to the kinds'."""
    if turn.program.activity(Role.UPGRADED):
        yield VERSION
    if turn.program.activity(Role.KIND_CHANGED):
        yield SCHEMAS


def outdated(turn: Turn, found: Discovery, catalogue: Catalogue) -> frozenset[Resource]:
    """The kinds that handlers compare, with unknown or changed schemas.

    The schemas of built-in kinds change only with the server's version.
    """
    hashes, known = found.hashes, turn.survey
    return frozenset(
        each
        for handler in turn.program.activity(Role.KIND_CHANGED)
        for each in catalogue.resources
        if not each.is_built_in
        and (handler.about is None or handler.about.matches(each))
        and (
            each.key not in known.schemas
            or hashes is None
            or hashes.get(of := (each.group, each.version)) != known.hashes.get(of)
        )
    )


def compare(turn: Turn, found: Discovery, catalogue: Catalogue) -> None:
    """Call handlers for the changes since the previous discovery.

    The first discovery has no previous one.
    """
    if not turn.program.hears_of_cluster:
        return
    before = turn.survey
    served = {each.key for each in catalogue.resources}
    told = {**before.schemas, **found.schemas}
    schemas = Table({key: each for key, each in told.items() if key in served})
    hashes = Table({**before.hashes, **_hashes_read(turn, found, catalogue)})
    version = found.version or before.version
    turn.survey = replace(before, schemas=schemas, hashes=hashes, version=version)
    if turn.lifecycle.phase is Phase.DISCOVERING:
        return
    if version is not None and before.version not in (None, version):
        assert before.version is not None
        _tell(turn, Upgraded(before.version, version))
    if catalogue == before.catalogue and schemas == before.schemas:
        return
    was = served_kinds(before.catalogue, before.schemas)
    for change in changed_kinds(was, served_kinds(catalogue, schemas)):
        _tell(turn, change)


def _hashes_read(
    turn: Turn, found: Discovery, catalogue: Catalogue
) -> dict[tuple[str, str], str]:
    """The hashes of the documents whose schemas this discovery could read.

    The next discovery reads the others.
    """
    unread = {
        (each.group, each.version)
        for each in outdated(turn, found, catalogue)
        if each.key not in found.schemas
    }
    return {of: e for of, e in (found.hashes or {}).items() if of not in unread}


def listen(turn: Turn, found: Discovery) -> None:
    """Note whether the API server has answered; call handlers if that is news."""
    now, survey = turn.now.mono, turn.survey
    if not is_listening(turn):
        return
    since = survey.silent_since
    if not found.is_unanswered:
        if since is not None:
            seconds = now - since
            turn.survey = replace(survey, silent_since=None, told_silence=-1.0)
            _tell(turn, Reached(seconds), least=-1.0, most=seconds)
        return
    if since is None:
        since = now
    seconds = now - since
    told = replace(survey, silent_since=since, told_silence=seconds)
    turn.survey = told
    _tell(turn, Unreachable(seconds), least=survey.told_silence, most=seconds)


def is_listening(turn: Turn) -> bool:
    """Whether any handlers depend on whether the API server is silent."""
    roles = (Role.UNREACHABLE, Role.REACHED, Role.UPGRADED)
    return any(map(turn.program.activity, roles))


def until_heard(turn: Turn) -> float:
    """The seconds until handlers depend on whether the API server answers."""
    if turn.survey.silent_since is not None:
        return _SILENCE_SECONDS
    if is_listening(turn) and not turn.streams.numbers:
        return _HEAR_SECONDS
    return math.inf


def asks_for_kinds(turn: Turn) -> bool:
    """Whether there are handlers for kinds that are added, removed or changed."""
    roles = (Role.KIND_ADDED, Role.KIND_REMOVED, Role.KIND_CHANGED)
    return any(map(turn.program.activity, roles))


def lost_contact(turn: Turn) -> None:
    """A stream broke: check whether the API server answers, if handlers need it.

    It may be silent from now on, or may have restarted with another version.
    """
    if is_listening(turn) and turn.survey.silent_since is None:
        soon = looking_by(turn.survey, turn.now.mono + 1.0)
        turn.survey = replace(soon, silent_since=turn.now.mono)


def _tell(
    turn: Turn, change: ClusterChange, least: float = -1.0, most: float = 0.0
) -> None:
    """Call the handlers of a change.

    A replica that stands by calls none: the leader does. Of handlers for an unreachable
    API server, only those whose `after` exceeds `least` seconds are called.
    """
    handlers = [
        each
        for each in turn.program.activity(_ROLES[type(change)])
        if _is_about(each, change) and least < each.after <= most
    ]
    if not handlers or turn.lifecycle.phase is not Phase.SERVING:
        return
    turn.say("info", told_of(change))
    for each in handlers:
        begin_change(turn, each, change)


def _is_about(handler: Handler, change: ClusterChange) -> bool:
    match change:
        case KindAdded(resource) | KindRemoved(resource) | KindChanged(resource):
            return handler.about is None or handler.about.matches(resource)
        case _:
            return True
