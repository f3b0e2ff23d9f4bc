"""Open streams, and close streams that are not needed any longer."""

from __future__ import annotations

from fnop.core.api.namespaces import has_patterns
from fnop.core.api.resources import Selectors
from fnop.core.objects.store.store import moved, observe
from fnop.core.operator.absent_namespaces import look_for_namespaces
from fnop.core.operator.coordination import (
    is_standing_by,
)
from fnop.core.seam.commands import CloseStream, Ready
from fnop.core.state.context import Context
from fnop.core.state.lifecycle import Phase
from fnop.core.state.turn import Turn
from fnop.core.streams.stream import (
    Stream,
    StreamPhase,
    StreamPurpose,
    opened,
)
from fnop.effects.structs import replace

__all__ = [
    "announce_ready",
    "follow",
    "leave",
    "miss_the_vanished",
    "move",
    "open_stream",
    "unfollow",
]


def follow(turn: Turn, stream: Stream) -> None:
    """Follow a collection with these selectors, unless it is followed already."""
    present = turn.streams.followed.get(stream.key)
    if present is None:
        if stream.purpose is StreamPurpose.OBJECTS:
            part = " (metadata only)" if stream.metadata_only else ""
            turn.say("info", f"serving {stream.label}{part}")
        _begin_stream(turn, stream)
    elif present.phase is StreamPhase.PAUSED:
        paused = replace(
            present, selectors=stream.selectors, metadata_only=stream.metadata_only
        )
        turn.streams.put(paused)
    elif _request_of(present) != _request_of(stream):
        # The handlers of the kind have changed: relist it.
        turn.emit(CloseStream(present.id))
        anew = replace(
            stream,
            id=present.id,
            lists=present.lists,
            listings=present.listings,
            in_pages=present.in_pages,
        )
        open_stream(turn, anew)


def _request_of(stream: Stream) -> tuple[Selectors, bool]:
    """The objects that the API server is asked for, and how much of them."""
    return stream.selectors, stream.metadata_only


def _begin_stream(turn: Turn, stream: Stream) -> None:
    is_frozen = turn.lifecycle.phase is Phase.FROZEN
    if stream.purpose is StreamPurpose.OBJECTS and is_frozen:
        paused = replace(stream, phase=StreamPhase.PAUSED)
        turn.streams.put(paused)
    else:
        open_stream(turn, stream)


def move(turn: Turn, before: Stream, stream: Stream) -> None:
    """Follow a collection in another version: its objects are the same, and known.

    They are listed in that version before fnop does anything about them.
    """
    was, version = before.resource.version, stream.resource.version
    turn.say("info", f"serving {stream.label} in version {version}, no longer in {was}")
    for key, record in turn.objects.all():
        if (
            key.resource == before.resource.key
            and before.namespace in (None, key.namespace)
            and not record.gone
        ):
            moved(
                Context(turn, key), record, key._replace(resource=stream.resource.key)
            )
    unfollow(turn, before)
    listings, in_pages = before.listings, before.in_pages
    _begin_stream(turn, replace(stream, listings=listings, in_pages=in_pages))


def leave(turn: Turn, stream: Stream) -> None:
    """Close a stream whose kind or namespace is gone, with all its objects."""
    turn.say(
        "info",
        f"no longer serving {stream.label}: the API server has it no more",
    )
    miss_the_vanished(turn, replace(stream, id=0))
    unfollow(turn, stream)


def unfollow(turn: Turn, stream: Stream) -> None:
    """Close a stream permanently."""
    if turn.streams.is_open(stream):
        turn.emit(CloseStream(stream.id))
    turn.streams.drop(stream)


def open_stream(turn: Turn, stream: Stream) -> None:
    number = turn.next_serial()
    step = turn.counters.step
    stream_then, command = opened(stream, number, step, turn.now, turn.settings)
    turn.streams.opened(stream_then, before=stream.id)
    turn.emit(command)


def miss_the_vanished(turn: Turn, stream: Stream) -> None:
    """Process the deletion of objects that are missing in a later listing."""
    for key, record in turn.objects.all():
        if (
            key.resource == stream.resource.key
            and stream.namespace in (None, key.namespace)
            and record.listing != stream.id
            and not record.gone
        ):
            observe(Context(turn, key), stream, "DELETED", record.body)


def _waits_for_namespaces(turn: Turn) -> bool:
    given = turn.settings.namespaces
    if given is None or not has_patterns(given) or turn.survey.namespaces is not None:
        return False
    return not any(each.refusal for each in turn.streams.each(StreamPurpose.NAMESPACES))


def announce_ready(turn: Turn) -> None:
    if turn.lifecycle.ready or _waits_for_namespaces(turn):
        return
    if turn.lifecycle.phase is not Phase.SERVING and not is_standing_by(turn):
        return
    served = turn.streams.each(StreamPurpose.OBJECTS)
    if turn.lifecycle.phase is Phase.FROZEN or all(each.lists for each in served):
        turn.lifecycle = replace(turn.lifecycle, ready=True)
        if turn.program.hears_of_cluster:
            turn.say("info", "serving changes of the cluster itself")
        turn.emit(Ready())
        look_for_namespaces(turn)
