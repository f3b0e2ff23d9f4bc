"""This operator among others: peering and leader election in its life.

`fnop.core.peering` and `fnop.core.election` decide; here their questions are asked,
what is seen and answered is handed to them, and their verdicts become the phase:

| peers             | lease     | phase    | streams | handlers |
|-------------------|-----------|----------|---------|----------|
| one goes before   | any       | FROZEN   | closed  | none     |
| none goes before  | not ours  | STANDBY  | open    | none     |
| none goes before  | ours      | SERVING  | open    | called   |

Whoever does not take part in one of them is as one that none goes before, or whose the
lease is.  An object that is put aside is read anew before it is acted upon again: who
served meanwhile has left another state on it.
"""

from __future__ import annotations

from fnop.core import election as electing, peering as meeting
from fnop.core.commands import CloseStream
from fnop.core.election import LEASES, Resign, has_resigned, may_start
from fnop.core.errands import Address
from fnop.core.freezing import Frozen, Serving, Why
from fnop.core.inputs import AlarmRang, Answered
from fnop.core.namespaces import served_namespaces
from fnop.core.objects import Body
from fnop.core.peering import Leave, Looked, Place, Placed, Unseen, has_left, kinds_for
from fnop.core.peers import Mode
from fnop.core.resources import Resource, Selectors
from fnop.core.turn import HELD, Phase, Ticket, Turn
from fnop.core.watcher import Phase as StreamPhase, Purpose, Stream
from fnop.effects.outcomes import Outcome, Refused

__all__ = [
    "answered",
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
    """The operator starts: it has met nobody yet."""
    if turn.settings.peering is not None:
        turn.peering = meeting.begin(turn.settings.peering)
    if turn.settings.election is not None:
        turn.election = electing.begin(turn.settings.election)


def keep_time(turn: Turn) -> None:
    """What is due by now comes before all else: a right to serve may have ended."""
    if turn.peering is not None and _is_due(turn, turn.peering_due):
        _meet(turn, AlarmRang())
    if turn.election is not None and _is_due(turn, turn.election_due):
        _compete(turn, AlarmRang())


def _is_due(turn: Turn, moment: float | None) -> bool:
    return moment is not None and moment <= turn.now.mono


def wake(turn: Turn) -> list[float]:
    """When to come again (monotonic)."""
    return [each for each in (turn.peering_due, turn.election_due) if each is not None]


# --------------------------------------------------------------------- peering


def peer_streams(turn: Turn) -> list[Stream]:
    """The peering objects that are to be followed."""
    if turn.peering is None or turn.peering.member.mode is Mode.STANDALONE:
        return []
    selectors = Selectors(fields=f"metadata.name={turn.peering.member.name}")
    return [
        Stream(resource, namespace, selectors, purpose=Purpose.PEERS)
        for resource in _peer_kinds(turn)
        for namespace in _namespaces(turn) or (None,)
    ]


def lacks_peering(turn: Turn) -> bool:
    """Whether a peering object is waited for whose very kind is not there."""
    if turn.peering is None or turn.peering.member.mode is not Mode.MANDATORY:
        return False
    return not _peer_kinds(turn)


def _peer_kinds(turn: Turn) -> list[Resource]:
    wanted = kinds_for(turn.settings.namespaces)
    return [each for each in turn.catalogue.resources if each.key in wanted]


def _namespaces(turn: Turn) -> tuple[str, ...] | None:
    given = turn.settings.namespaces
    return None if given is None else served_namespaces(given, turn.namespaces or ())


def discovered(turn: Turn) -> None:
    """It is known what is served where: there the peers are met."""
    if turn.peering is not None:
        kinds = tuple(each.key for each in _peer_kinds(turn))
        _meet(turn, Placed(kinds, _namespaces(turn)))
    if turn.election is not None and turn.election_due is None:
        _compete(turn, AlarmRang())
    settle(turn)


def looked_at(turn: Turn, stream: Stream, body: Body | None) -> None:
    """A peering object was seen, or is known not to be there."""
    _meet(turn, Looked(Place(stream.resource.key, stream.namespace), body))


def refused(turn: Turn, stream: Stream, status: int | None, message: str) -> None:
    """A peering object cannot be looked at.

    Who need not take part does not, where it may not; others wait until they may.
    """
    assert turn.peering is not None
    place = Place(stream.resource.key, stream.namespace)
    if status == 403 and turn.peering.member.mode is Mode.AUTO:
        text = (
            f"peers in {place.label} may not be looked at, so they are not: {message}"
        )
        turn.warn_once(f"peers {place.label}", text)
        _meet(turn, Looked(place, None))
    else:
        _meet(turn, Unseen(place, message))


def _meet(turn: Turn, fact: meeting.Fact) -> None:
    if turn.peering is None:
        return
    move = meeting.advance(turn.peering, turn.now, fact, turn.jitter())
    turn.peering, turn.peering_due = move.peering, move.wake
    for line in move.says:
        turn.emit(line)
    resources = {each.key: each for each in turn.catalogue.resources}
    for ask in move.asks:
        name = move.peering.member.name
        address = Address(resources.get(ask.place.kind), ask.place.namespace, name)
        ticket = Ticket("peer", serial=ask.number)
        turn.perform(ask.effect, address, ticket, None, ask.before)
    settle(turn)


# -------------------------------------------------------------------- election


def _compete(turn: Turn, fact: electing.Fact) -> None:
    if turn.election is None:
        return
    move = electing.advance(turn.election, turn.now, fact, turn.jitter())
    turn.election, turn.election_due = move.election, move.wake
    for line in move.says:
        turn.emit(line)
    if move.ask is not None:
        _ask_for_lease(turn, move.ask)
    settle(turn)


def _ask_for_lease(turn: Turn, ask: electing.Ask) -> None:
    assert turn.election is not None
    candidate = turn.election.candidate
    for resource in turn.catalogue.resources:
        if resource.key == LEASES:
            address = Address(resource, candidate.namespace, candidate.name)
            ticket = Ticket("lease", serial=ask.number)
            turn.perform(ask.effect, address, ticket, None, ask.before)
            return
    text = "the API server serves no leases; run without --leader-elect"
    _compete(turn, Answered(ask.number, Refused(404, text, "NotFound")))


def answered(turn: Turn, ticket: Ticket, outcome: Outcome) -> None:
    """A question of peering or of the election is answered."""
    fact = Answered(ticket.serial, outcome)
    if ticket.kind == "peer":
        _meet(turn, fact)
    else:
        _compete(turn, fact)


# ----------------------------------------------------------------------- phases


def settle(turn: Turn) -> None:
    """Let the phase be what the verdicts call for, while the operator is in service."""
    if turn.phase not in (Phase.SERVING, *HELD):
        return
    before, after = turn.phase, _wanted(turn)
    if before is after:
        return
    turn.phase = after
    if after is Phase.FROZEN:
        _let_go(turn, StreamPhase.PAUSED)
    elif before is Phase.FROZEN:
        _go_on(turn)
        return  # each object comes into its own again when it is listed
    elif after is Phase.SERVING:
        # Who waits may have been deaf for long: before its first act it lists all.
        _let_go(turn, StreamPhase.WAITING)
    for key, _ in turn.all_known():
        turn.due(key)


def _wanted(turn: Turn) -> Phase:
    if turn.frozen is not None:
        return Phase.FROZEN
    if turn.peering is not None and not isinstance(turn.peering.verdict, Serving):
        return Phase.FROZEN
    if turn.election is not None and not may_start(turn.election, turn.now):
        return Phase.STANDBY
    return Phase.SERVING


def _let_go(turn: Turn, phase: StreamPhase) -> None:
    """Close what is followed for handlers, to be listed anew; where it was, is kept."""
    for stream in turn.followed.values():
        if stream.purpose is not Purpose.OBJECTS:
            continue
        if stream.id in turn.streams:
            turn.emit(CloseStream(stream.id))
        turn.streams = turn.streams.discard(stream.id)
        before = stream.version or stream.before
        closed = stream._replace(
            phase=phase, version=None, before=before, due=turn.now.mono
        )
        turn.followed = turn.followed.set(stream.key, closed)


def _go_on(turn: Turn) -> None:
    """List everything anew; the streams are opened by the work of this step."""
    for stream in turn.followed.values():
        if stream.phase is StreamPhase.PAUSED:
            due = stream._replace(phase=StreamPhase.WAITING, due=turn.now.mono)
            turn.followed = turn.followed.set(stream.key, due)


def is_standing_by(turn: Turn) -> bool:
    """Whether it only waits for one that goes before: it is in order."""
    if turn.phase is Phase.STANDBY or turn.peering is None:
        return turn.phase is Phase.STANDBY
    verdict = turn.peering.verdict
    return isinstance(verdict, Frozen) and verdict.why is Why.OUTRANKED


# -------------------------------------------------------------------------- end


def leave(turn: Turn) -> None:
    """All that the operator did has ended: others may go on at once."""
    _meet(turn, Leave())
    _compete(turn, Resign())


def has_gone(turn: Turn) -> bool:
    """Whether nothing more is waited for."""
    left = turn.peering is None or has_left(turn.peering)
    return left and (turn.election is None or has_resigned(turn.election))
