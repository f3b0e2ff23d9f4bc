"""Inputs of streams, passed on to the store, to peering, or to the survey."""

from __future__ import annotations

from sys import intern

from fnop.core.handlers.program.pushdown import (
    fields_in,
    refused_fields,
    without_fields,
)
from fnop.core.objects.store.indexing import call_observers, index_the_rest
from fnop.core.objects.store.store import observe
from fnop.core.operator.cluster import lost_contact
from fnop.core.operator.coordination import (
    discovered,
    looked_at,
    refused,
)
from fnop.core.operator.following import (
    announce_ready,
    miss_the_vanished,
    open_stream,
)
from fnop.core.operator.survey import (
    SOON_SECONDS,
    look_at_peers,
    look_in,
    look_soon,
    serve_kinds,
)
from fnop.core.seam.commands import CloseStream
from fnop.core.seam.inputs import StreamEnded
from fnop.core.state.context import Context
from fnop.core.state.turn import Turn
from fnop.core.streams.stream import (
    Stream,
    StreamPhase,
    StreamPurpose,
    answered_version,
    ended,
    heard_at,
    lacks_initial_events,
    listed,
    page,
)
from fnop.core.values.backoff import growing_seconds
from fnop.core.values.body import Body, Key, is_behind
from fnop.effects.structs import replace

__all__ = [
    "on_bookmark",
    "on_list_done",
    "on_list_item",
    "on_stream_ended",
    "on_watch_event",
]

# The failures of a stream until which a server may still list a kind that is gone.
_SOON_MOST = 3


def _on_namespaces(turn: Turn, names: frozenset[str]) -> None:
    """Take in the names of the cluster's namespaces: patterns may match others now."""
    turn.survey = replace(turn.survey, namespaces=names)
    discovered(turn)
    serve_kinds(turn)
    look_at_peers(turn)


def _notice_change(turn: Turn, stream: Stream, type: str | None, body: Body) -> None:
    """Process a new, changed or removed definition, namespace or peering object."""
    match stream.purpose:
        case StreamPurpose.KINDS if type is not None:
            # The server needs a moment to serve a new kind, or to forget one.
            look_soon(turn)
        case StreamPurpose.PEERS:
            named = replace(stream, names=stream.names | {body.name})
            turn.streams.put(named)
            looked_at(turn, stream, None if type == "DELETED" else body)
        case StreamPurpose.NAMESPACES if stream.phase is StreamPhase.LISTING:
            before, gone = stream.names, type == "DELETED"
            names = before - {body.name} if gone else before | {body.name}
            turn.streams.put(replace(stream, names=names))
        case StreamPurpose.NAMESPACES:
            before = turn.survey.namespaces or frozenset()
            gone = type == "DELETED"
            _on_namespaces(turn, before - {body.name} if gone else before | {body.name})
        case _:
            pass


def on_list_item(turn: Turn, number: int, body: Body) -> None:
    stream = turn.streams.of(number)
    if stream is not None and not stream.is_asking:
        _dispatch_object(turn, stream, None, body)


def _dispatch_object(turn: Turn, stream: Stream, type: str | None, body: Body) -> None:
    """Pass an object to the stream's users: handlers, peering, or the survey."""
    if stream.purpose is StreamPurpose.OBJECTS:
        namespace = intern(body.namespace or "")  # many objects share it
        key = Key(stream.resource.key, namespace, body.name)
        observe(Context(turn, key), stream, type, body)
    else:
        _notice_change(turn, stream, type, body)


def on_list_done(turn: Turn, number: int, version: str, token: str | None) -> None:
    stream = turn.streams.of(number)
    if stream is None:
        return
    if stream.is_asking:
        after = answered_version(stream, version)
        if after.version is None:
            _relist_after_restore(turn, stream, stream.version, version)
        open_stream(turn, after)
        return
    if token is not None:
        turn.emit(page(stream, turn.settings.list_page_limit, token))
        return
    if stream.listings > 1 and stream.purpose is StreamPurpose.OBJECTS:
        miss_the_vanished(turn, stream)
    _remove_tombstones(turn, stream)
    if is_behind(version, stream.before):
        _relist_after_restore(turn, stream, stream.before, version)
    if stream.listings > 1 and stream.purpose is StreamPurpose.KINDS:
        look_in(turn, SOON_SECONDS)  # some may be missing
    after = listed(stream, version)
    if stream.streamed:
        # The age of the watch counts from here on, as it does after pages.
        turn.streams.put(replace(after, opened_at=turn.now.mono))
    else:
        open_stream(turn, after)
    if stream.purpose is StreamPurpose.OBJECTS and not stream.lists:
        kind = turn.survey.kinds[stream.resource.key]
        index_the_rest(turn, kind)
        call_observers(turn, kind)
    if stream.purpose is StreamPurpose.NAMESPACES:
        _on_namespaces(turn, stream.names)
    if stream.purpose is StreamPurpose.PEERS and not stream.names:
        looked_at(turn, stream, None)
    announce_ready(turn)


def _relist_after_restore(
    turn: Turn, stream: Stream, known: str | None, version: str
) -> None:
    """Warn that the server's storage was restored: its lists are valid, even if old.

    It will assign versions a second time. So fnop forgets the versions seen before, and
    relists all that it follows. Otherwise another stream may be resumed when the server
    has reached the stream's version again, by another history.
    """
    turn.say(
        "warning",
        f"the API server has gone back from version {known} to {version}, as "
        "after a restore from a backup; all is read anew",
    )
    for key, each in turn.objects.all():
        if each.shown:
            turn.objects.put(key, replace(each, shown=()))
    for other in (*turn.streams.followed.values(),):
        if other.key != stream.key and other.version is not None:
            _read_anew(turn, other)


def _read_anew(turn: Turn, stream: Stream) -> None:
    """List a collection again, at once if it is being watched."""
    anew = replace(stream, version=None, before=None, doubted=False)
    if turn.streams.is_open(stream):
        turn.emit(CloseStream(stream.id))
        open_stream(turn, anew)
    else:
        turn.streams.put(anew)


def _remove_tombstones(turn: Turn, stream: Stream) -> None:
    """Remove old tombstones: after a listing, the watch shows nothing older than it."""
    for key in sorted(turn.objects.tombstones):
        if (
            key.resource == stream.resource.key
            and stream.namespace in (None, key.namespace)
            and turn.objects.tombstones[key].step < stream.begun
        ):
            turn.objects.drop_tombstone(key)


def on_bookmark(turn: Turn, number: int, version: str) -> None:
    stream = turn.streams.of(number)
    if stream is not None and stream.phase is StreamPhase.WATCHING:
        turn.streams.put(heard_at(stream, version))


def on_watch_event(turn: Turn, number: int, type: str, body: Body) -> None:
    """Take in a watch event; drop it if its stream is already closed."""
    stream = turn.streams.of(number)
    if stream is None:
        return
    if stream.phase is StreamPhase.WATCHING:  # else a streamed listing continues
        turn.streams.put(heard_at(stream, body.version))
    _dispatch_object(turn, stream, type, body)


def on_stream_ended(turn: Turn, end: StreamEnded) -> None:
    stream = turn.streams.of(end.stream)
    if stream is None:
        return
    jitter = turn.jitter()
    after = ended(stream, end, turn.now, jitter)
    turn.streams.closed(after)
    if end.reason == "unreachable":
        lost_contact(turn)
    if end.status == 400 and _drop_selectors(turn, stream, end.message):
        return
    if lacks_initial_events(stream, end):
        _list_in_pages(turn, stream)
        return
    if end.status == 404:
        # A collection without objects is empty; here the kind or its version is gone.
        look_in(turn, _seconds_to_look_for_kind(turn, after.failures))
    _report_end(turn, stream, after, end)
    served = turn.streams.each(StreamPurpose.OBJECTS)
    if served and not turn.lifecycle.ready and all(each.refusal for each in served):
        turn.end(1, f"nothing can be served: {end.message}")


def _report_end(turn: Turn, stream: Stream, after: Stream, end: StreamEnded) -> None:
    """Report the end of a stream, if it is new that it fails or is refused."""
    if stream.purpose is StreamPurpose.PEERS:
        refused(turn, stream, end.status, end.message or end.reason)
    elif after.refusal and not stream.refusal:
        _say_refused(turn, stream, end.message)
    elif after.failures == 1 and end.status == 404:
        pass  # a kind that has been removed: the next discovery closes the stream
    elif after.failures in (1, 5) and end.status != 410 and not after.refusal:
        text = f"the stream of {stream.resource.plural} broke: {end.reason}"
        turn.say("warning", f"{text} {end.message}".rstrip())


def _drop_selectors(turn: Turn, stream: Stream, message: str) -> bool:
    """Follow a kind with other selectors if the API server refuses its fields."""
    is_listing = stream.phase is StreamPhase.LISTING
    required = turn.settings.selectors_for(stream.resource)
    refused = refused_fields(stream.selectors, message) - fields_in(required)
    if stream.purpose is not StreamPurpose.OBJECTS or not (is_listing and refused):
        return False
    key, known = stream.resource.key, turn.survey.unselectable
    names = known.get(key, frozenset()) | refused
    turn.survey = replace(turn.survey, unselectable=known.set(key, names))
    turn.say(
        "info",
        f"the API server does not select {stream.resource.plural} by "
        f"{', '.join(sorted(refused))}: all are followed, and fnop selects",
    )
    selectors = without_fields(stream.selectors, refused)
    open_stream(turn, replace(stream, selectors=selectors, failures=0))
    return True


def _list_in_pages(turn: Turn, stream: Stream) -> None:
    """List a collection page by page: the API server has no streaming lists.

    If a kind is followed in several namespaces, this is logged once.
    """
    of_kind = (
        each
        for each in turn.streams.followed.values()
        if each.resource.key == stream.resource.key
    )
    if not any(each.in_pages for each in of_kind):
        turn.say(
            "info",
            f"the API server does not stream the list of {stream.resource.plural}: it "
            "is listed page by page",
        )
    open_stream(turn, replace(stream, in_pages=True))


def _seconds_to_look_for_kind(turn: Turn, failures: int) -> float:
    """The seconds until the next discovery, after this many 404s of a stream.

    fnop does not forever ask an API server that lists a kind which it does not serve.
    """
    if failures <= _SOON_MOST:
        return SOON_SECONDS
    most = turn.settings.rediscovery_seconds
    return growing_seconds(failures - _SOON_MOST, 0.0, most=most)


def _say_refused(turn: Turn, stream: Stream, message: str) -> None:
    match stream.purpose:
        case StreamPurpose.OBJECTS:
            remedy = "grant the verbs list and watch to this operator"
            plural = stream.resource.plural
            turn.say("error", f"may not follow {plural}: {message}; {remedy}")
        case StreamPurpose.PEERS:
            pass  # peering logs it itself
        case StreamPurpose.KINDS:
            pause = f"every {turn.settings.rediscovery_seconds:g} s"
            text = f"may not follow definitions: {message}"
            turn.say("info", f"{text}; kinds that come later are looked for {pause}")
        case StreamPurpose.NAMESPACES:
            text = f"may not follow namespaces: {message}"
            remedy = "grant list and watch, or name each namespace"
            turn.say("error", f"{text}; patterns of namespaces match none; {remedy}")
            announce_ready(turn)
