"""Peering and leader election within the life of this operator.

`fnop.core.peers.peering` and `fnop.core.peers.election` decide. This module sends their
requests, and passes them the answers and watched objects. Their verdicts become the
phase:

| peers                | lease     | phase    | streams | handlers |
|----------------------|-----------|----------|---------|----------|
| one outranks us      | any       | FROZEN   | closed  | none     |
| none outranks us     | not ours  | STANDBY  | open    | none     |
| none outranks us     | ours      | SERVING  | open    | called   |

A peer outranks us by a higher priority. An operator without peering has no peers, and
one without election always has the lease. A deferred object is listed again before it
is reconciled again: another operator may have stored another state on it meanwhile.
"""

from __future__ import annotations

from fnop.core.api.namespaces import served_namespaces
from fnop.core.api.resources import Resource, Selectors
from fnop.core.peers import election as electing, peering as meeting
from fnop.core.peers.asking import Ask, PeeringPlace
from fnop.core.peers.election import Resign
from fnop.core.peers.lease import LEASES
from fnop.core.peers.memberships import Leave, Looked, PeeringFact, Placed, Unseen
from fnop.core.peers.peering import kinds_for
from fnop.core.peers.peers import Mode
from fnop.core.seam.commands import CloseStream
from fnop.core.seam.inputs import AlarmRang, Answered
from fnop.core.state.address import Address
from fnop.core.state.coordination import ALONE, Coordination
from fnop.core.state.lifecycle import IN_SERVICE, Phase, settled
from fnop.core.state.requests import ForLease, ForPeers
from fnop.core.state.turn import Turn
from fnop.core.streams.stream import Stream, StreamPhase, StreamPurpose
from fnop.core.values.body import Body
from fnop.effects.outcomes import Refused
from fnop.effects.structs import replace

__all__ = [
    "advance_election",
    "advance_peering",
    "begin",
    "discovered",
    "has_gone",
    "is_standing_by",
    "keep_time",
    "lacks_peering",
    "leave",
    "looked_at",
    "peer_streams",
    "refused",
    "settle",
    "wake",
]


def begin(turn: Turn) -> None:
    """Begin peering and the election, as far as the settings configure them."""
    member, candidate = turn.settings.peering, turn.settings.election
    if member is None and candidate is None:
        return
    turn.coordination = Coordination(
        peering=None if member is None else meeting.begin(member),
        election=None if candidate is None else electing.begin(candidate),
    )


def keep_time(turn: Turn) -> None:
    """Advance peering and the election first: a right to serve may have ended."""
    if turn.coordination is ALONE:
        return
    if turn.coordination.peering_is_due(turn.now):
        advance_peering(turn, AlarmRang())
    if turn.coordination.election_is_due(turn.now):
        advance_election(turn, AlarmRang())


def wake(turn: Turn) -> list[float]:
    """The monotonic times when peering and the election are due."""
    return [] if turn.coordination is ALONE else [*turn.coordination.moments]


# --------------------------------------------------------------------- peering


def peer_streams(turn: Turn) -> list[Stream]:
    """The streams of the peering objects."""
    peering = turn.coordination.peering
    if peering is None or peering.member.mode is Mode.STANDALONE:
        return []
    selectors = Selectors(fields=f"metadata.name={peering.member.name}")
    return [
        Stream(resource, namespace, selectors, purpose=StreamPurpose.PEERS)
        for resource in _peer_kinds(turn)
        for namespace in _served_namespaces(turn) or (None,)
    ]


def lacks_peering(turn: Turn) -> bool:
    """Whether a required peering object cannot exist, since its kind is not served."""
    peering = turn.coordination.peering
    if peering is None or peering.member.mode is not Mode.MANDATORY:
        return False
    return not _peer_kinds(turn)


def _peer_kinds(turn: Turn) -> list[Resource]:
    wanted = kinds_for(turn.settings.namespaces)
    return [each for each in turn.survey.catalogue.resources if each.key in wanted]


def _served_namespaces(turn: Turn) -> tuple[str, ...] | None:
    given, found = turn.settings.namespaces, turn.survey.namespaces or ()
    return None if given is None else served_namespaces(given, found)


def discovered(turn: Turn) -> None:
    """Pass the results of discovery to peering and the election; settle the phase."""
    if turn.coordination.peering is not None:
        kinds = tuple(each.key for each in _peer_kinds(turn))
        advance_peering(turn, Placed(kinds, _served_namespaces(turn)))
    if turn.coordination.election_due is None:
        advance_election(turn, AlarmRang())
    settle(turn)


def looked_at(turn: Turn, stream: Stream, body: Body | None) -> None:
    """Take in a peering object that was seen, or that is missing."""
    advance_peering(
        turn, Looked(PeeringPlace(stream.resource.key, stream.namespace), body)
    )


def refused(turn: Turn, stream: Stream, status: int | None, message: str) -> None:
    """Report to peering that a peering object cannot be followed.

    If peering is optional and forbidden, the operator runs without it. Otherwise it
    waits.
    """
    assert turn.coordination.peering is not None
    place = PeeringPlace(stream.resource.key, stream.namespace)
    if status == 403 and turn.coordination.peering.member.mode is Mode.AUTO:
        text = (
            f"the peers in {place.label} cannot be read, so this operator serves "
            f"without them: {message}"
        )
        turn.warn_once(f"peers {place.label}", text)
        advance_peering(turn, Looked(place, None))
    else:
        advance_peering(turn, Unseen(place, message))


def advance_peering(turn: Turn, fact: PeeringFact) -> None:
    """Pass peering a fact, such as an answer, and send what it asks for."""
    if turn.coordination.peering is None:
        return
    decision = meeting.advance(turn.coordination.peering, turn.now, fact, turn.jitter())
    turn.coordination = replace(
        turn.coordination, peering=decision.peering, peering_due=decision.wake
    )
    for line in decision.says:
        turn.emit(line)
    resources = {each.key: each for each in turn.survey.catalogue.resources}
    for ask in decision.asks:
        name = decision.peering.member.name
        address = Address(resources.get(ask.place.kind), ask.place.namespace, name)
        ticket = ForPeers(ask.number)
        turn.perform(ask.effect, address, ticket, None, ask.before)
    settle(turn)


# -------------------------------------------------------------------- election


def advance_election(turn: Turn, fact: electing.ElectionFact) -> None:
    """Pass the election a fact, such as an answer, and send what it asks for."""
    if turn.coordination.election is None:
        return
    decision = electing.advance(
        turn.coordination.election, turn.now, fact, turn.jitter()
    )
    turn.coordination = replace(
        turn.coordination, election=decision.election, election_due=decision.wake
    )
    for line in decision.says:
        turn.emit(line)
    if decision.ask is not None:
        _request_lease(turn, decision.ask)
    settle(turn)


def _request_lease(turn: Turn, ask: Ask) -> None:
    assert turn.coordination.election is not None
    candidate = turn.coordination.election.candidate
    for resource in turn.survey.catalogue.resources:
        if resource.key == LEASES:
            address = Address(resource, candidate.namespace, candidate.name)
            ticket = ForLease(ask.number)
            turn.perform(ask.effect, address, ticket, None, ask.before)
            return
    text = "the API server serves no leases; run without --leader-elect"
    advance_election(turn, Answered(ask.number, Refused(404, text, "NotFound")))


# ----------------------------------------------------------------------- phases


def settle(turn: Turn) -> None:
    """Set the phase that the verdicts require, while the operator is in service."""
    before, is_frozen = turn.lifecycle.phase, turn.lifecycle.frozen is not None
    if before is Phase.SERVING and turn.coordination is ALONE and not is_frozen:
        return  # as in nearly all steps
    if before not in IN_SERVICE:
        return
    after = Phase.FROZEN if is_frozen else turn.coordination.wants(turn.now)
    if before is after:
        return
    turn.lifecycle = settled(turn.lifecycle, after)
    if after is Phase.FROZEN:
        _close_object_streams(turn, StreamPhase.PAUSED)
    elif before is Phase.FROZEN:
        _resume_streams(turn)
        return  # each object is reconciled when it is listed again
    elif after is Phase.SERVING:
        # The watch may have been silent for a long time: relist all before the first
        # action.
        _close_object_streams(turn, StreamPhase.WAITING)
    for key, _ in turn.objects.all():
        turn.objects.due(key)


def _close_object_streams(turn: Turn, phase: StreamPhase) -> None:
    """Close the streams for handlers, to relist them; keep their last version."""
    for stream in turn.streams.each(StreamPurpose.OBJECTS):
        if turn.streams.is_open(stream):
            turn.emit(CloseStream(stream.id))
        before = stream.version or stream.before
        closed = replace(
            stream, phase=phase, version=None, before=before, due=turn.now.mono
        )
        turn.streams.closed(closed)


def _resume_streams(turn: Turn) -> None:
    """Relist everything; the streams are opened by the work of this step."""
    for stream in turn.streams.followed.values():
        if stream.phase is StreamPhase.PAUSED:
            due = replace(stream, phase=StreamPhase.WAITING, due=turn.now.mono)
            turn.streams.put(due)


def is_standing_by(turn: Turn) -> bool:
    """Whether it only waits for another operator, which is normal."""
    return turn.lifecycle.phase is Phase.STANDBY or turn.coordination.is_outranked


# -------------------------------------------------------------------------- end


def leave(turn: Turn) -> None:
    """Leave the peers and release the lease: others may continue at once."""
    advance_peering(turn, Leave())
    advance_election(turn, Resign())


def has_gone(turn: Turn) -> bool:
    """Whether the peers and the lease have been left."""
    return turn.coordination.has_left
