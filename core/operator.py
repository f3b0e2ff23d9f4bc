"""The operator as a fold: `step(program, state, now, input) -> (state', commands)`.

One step takes one fact from the world in, then does at most one piece of due
work; when more is due, the alarm it asks for is due at once.  It never raises,
never blocks, reads no clock, and drives the author's code at most once.

The walk of a watch event: `fold` puts the object into the store and its key
into the work queue; `serve` (fnop.core.lanes) takes the key out and makes the
moves that `reconcile` decides on.
"""

from __future__ import annotations

from fnop.core import discovery as discovering
from fnop.core.arguments import Situation, filter_arguments
from fnop.core.backoff import backoff_seconds
from fnop.core.cause import Reason
from fnop.core.commands import CloseStream, Command, Exit, Fetch, ListPage, Ready
from fnop.core.evolve import replace
from fnop.core.filters import Sight
from fnop.core.fusion import stored_text
from fnop.core.inputs import (
    AlarmRang,
    Answered,
    Bookmark,
    Input,
    ListDone,
    ListItem,
    Started,
    StopRequested,
    StreamEnded,
    WatchEvent,
)
from fnop.core.known import Cycle, Known, Sighting, Work
from fnop.core.lanes import answer_errand, let_go, serve
from fnop.core.last_seen import Seen, Stored, Unreadable, read_stored, see
from fnop.core.now import Now
from fnop.core.objects import Body, Key
from fnop.core.program import Kind, Program, kind_of
from fnop.core.registry import Handler, Role
from fnop.core.resources import Resource
from fnop.core.turn import ACTIVITY, NEW, Phase, State, Ticket, Turn
from fnop.core.watcher import (
    Phase as StreamPhase,
    Stream,
    ended,
    listed,
    opened,
    reopened,
)
from fnop.core.writing import answer_echo, answer_write
from fnop.effects.outcomes import Outcome

__all__ = ["NEW", "State", "is_settled", "step"]

# How long a stopping operator waits for what is under way.
STOP_SECONDS = 10.0
# An API server that cannot be reached at the start is tried this many times.
DISCOVERY_TRIES_MAX = 3
# A spy that is slower than its events loses the oldest.
SIGHTINGS_MAX = 100


def step(
    program: Program, state: State, now: Now, input: Input
) -> tuple[State, tuple[Command, ...]]:
    """One fact in, the next state and what to do about it out.

    Total and pure: equal arguments give equal results, in any process.
    """
    turn = Turn(program, state, now)
    _fold(turn, input)
    _work(turn)
    turn.enqueue()
    _advance_phase(turn)
    turn.enqueue()
    turn.set_alarm(_next_alarm(turn))
    if isinstance(input, (ListItem, WatchEvent)):
        input.body.forget()  # what is kept for long is kept as bytes
    return turn.close(), tuple(turn.commands)


def is_settled(state: State) -> bool:
    """Whether nothing is under way and nothing is due, now or later."""
    return state.phase is Phase.ENDED or (
        state.phase is Phase.SERVING
        and not state.pending
        and not len(state.queue)
        and state.discovery is None
        and all(each.phase is StreamPhase.WATCHING for each in state.followed.values())
    )


# -------------------------------------------------------------------- fold


def _fold(turn: Turn, input: Input) -> None:
    match input:
        case WatchEvent(stream, type, body):
            _on_watch_event(turn, stream, type, body)
        case Answered(id, outcome):
            _on_answer(turn, id, outcome)
        case AlarmRang():
            turn.alarm = None
        case ListItem(stream, body):
            _on_list_item(turn, stream, body)
        case ListDone(stream, version, token):
            _on_list_done(turn, stream, version, token)
        case Bookmark(stream, version):
            _on_bookmark(turn, stream, version)
        case StreamEnded():
            _on_stream_ended(turn, input)
        case Started(seed):
            _on_started(turn, seed)
        case StopRequested(reason):
            _on_stop(turn, reason)


def _on_started(turn: Turn, seed: str) -> None:
    if turn.phase is not Phase.NEW:
        return
    turn.seed = seed
    turn.phase = Phase.STARTING
    _begin_activity(turn, Role.STARTUP)


def _begin_activity(turn: Turn, role: Role) -> None:
    handlers = turn.program.activity(role)
    if not handlers:
        return
    cycle = Cycle(Reason.NOOP, False, Body({}), Seen({}), None, handlers)
    known = Known(Body({}), Stored(), work=Work(cycle=cycle))
    turn.objects = turn.objects.set(ACTIVITY, known)
    turn.due(ACTIVITY)


def _on_answer(turn: Turn, number: int, outcome: Outcome) -> None:
    ticket = turn.pending.get(number)
    if ticket is None:
        return
    turn.pending = turn.pending.remove(number)
    match ticket.kind:
        case "errand":
            answer_errand(turn, number, ticket, outcome)
        case "write":
            answer_write(turn, number, ticket, outcome)
        case "echo":
            answer_echo(turn, ticket, outcome)
        case "event":
            _on_event_posted(turn, ticket, outcome)
        case _:
            _on_document(turn, number, outcome)


def _on_event_posted(turn: Turn, ticket: Ticket, outcome: Outcome) -> None:
    message = getattr(outcome, "message", None)
    if message:
        text = f"a Kubernetes Event could not be reported: {message}"
        turn.say("debug", text, key=ticket.key)


def _on_stop(turn: Turn, reason: str) -> None:
    if turn.phase in (Phase.STOPPING, Phase.CLEANING, Phase.ENDED):
        return
    turn.say("info", f"stopping: {reason}")
    turn.phase = Phase.STOPPING
    turn.stop_by = turn.now.mono + STOP_SECONDS
    for number in turn.streams:
        turn.emit(CloseStream(number))
    turn.streams = NEW.streams
    turn.followed = NEW.followed
    turn.discovery = None
    turn.discovery_due = None
    for key, known in turn.objects.items():
        if known.work is not None:
            turn.due(key)


# --------------------------------------------------------------- discovery


def _discover(turn: Turn) -> None:
    turn.discovery_due = None
    turn.discovery = discovering.begun({})
    _fetch(turn, tuple(map(discovering.Page, discovering.ROOTS)))


def _fetch(turn: Turn, pages: tuple[discovering.Page, ...]) -> None:
    assert turn.discovery is not None
    pending = turn.discovery.pending
    for page in pages:
        number = turn.next_serial()
        pending = pending.set(number, page)
        turn.pending = turn.pending.set(number, Ticket("fetch"))
        turn.emit(Fetch(number, page.path))
    turn.discovery = replace(turn.discovery, pending=pending)


def _on_document(turn: Turn, number: int, outcome: Outcome) -> None:
    if turn.discovery is None or number not in turn.discovery.pending:
        return
    turn.discovery, pages = discovering.answered(turn.discovery, number, outcome)
    _fetch(turn, pages)
    if not turn.discovery.pending:
        found, turn.discovery = turn.discovery, None
        _on_discovered(turn, found)


def _on_discovered(turn: Turn, found: discovering.Discovery) -> None:
    if found.problem is not None and not found.resources:
        _on_undiscovered(turn, found)
        return
    turn.discovery_tries = 0
    turn.catalogue = found.catalogue
    turn.phase = Phase.SERVING
    complete = _serve_kinds(turn)
    if not complete:
        turn.discovery_tries += 1
        turn.discovery_due = turn.now.mono + backoff_seconds(8, turn.jitter())
    _announce_ready(turn)


def _on_undiscovered(turn: Turn, found: discovering.Discovery) -> None:
    turn.discovery_tries += 1
    first = turn.phase is Phase.DISCOVERING
    if first and (found.forbidden or turn.discovery_tries >= DISCOVERY_TRIES_MAX):
        word = "refuses us" if found.forbidden else "cannot be reached"
        remedy = (
            "check the credentials of the kubeconfig's context"
            if found.forbidden
            else "check the server's address in the kubeconfig, and that it is up"
        )
        _exit(turn, 1, f"the API server {word}: {found.problem}; {remedy}")
        return
    wait = backoff_seconds(turn.discovery_tries, turn.jitter())
    turn.discovery_due = turn.now.mono + wait


def _serve_kinds(turn: Turn) -> bool:
    """Follow the kinds that handlers name; False when one is not served yet."""
    by_resource: dict[str, list[Handler]] = {}
    resources: dict[str, Resource] = {}
    complete = True
    for handler in turn.program.handlers:
        if handler.selector is None:
            continue
        found = turn.catalogue.find(handler.selector)
        if len(found) != 1:
            complete = complete and bool(found)
            _warn_unserved(turn, handler, found)
            continue
        resources[found[0].key] = found[0]
        by_resource.setdefault(found[0].key, []).append(handler)
    for key, handlers in by_resource.items():
        turn.kinds = turn.kinds.set(key, kind_of(resources[key], handlers))
        _follow(turn, resources[key])
    return complete


def _warn_unserved(turn: Turn, handler: Handler, found: tuple[Resource, ...]) -> None:
    selector = str(handler.selector)
    if found:
        names = ", ".join(each.key for each in found)
        text = (
            f"{selector!r} is ambiguous, so {handler.id} is not called: {names}; "
            "name the group too"
        )
    else:
        text = (
            f"the API server serves no {selector!r} yet, so {handler.id} waits for it; "
            "is its CustomResourceDefinition installed?"
        )
    turn.warn_once(f"unserved {selector} {handler.id}", text)


def _follow(turn: Turn, resource: Resource) -> None:
    namespaces: tuple[str | None, ...] = (None,)
    if resource.namespaced and turn.settings.namespaces is not None:
        namespaces = turn.settings.namespaces
    for namespace in namespaces:
        stream = Stream(resource, namespace)
        if stream.key not in turn.followed:
            _open(turn, stream)


# ----------------------------------------------------------------- streams


def _open(turn: Turn, stream: Stream) -> None:
    number = turn.next_serial()
    turn.streams = turn.streams.discard(stream.id)
    stream, command = opened(stream, number, turn.step, turn.now, turn.settings)
    turn.streams = turn.streams.set(number, stream.key)
    turn.followed = turn.followed.set(stream.key, stream)
    turn.emit(command)


def _stream(turn: Turn, number: int) -> Stream | None:
    """The stream of an input; None when the input is a late one."""
    key = turn.streams.get(number)
    return None if key is None else turn.followed[key]


def _on_list_item(turn: Turn, number: int, body: Body) -> None:
    stream = _stream(turn, number)
    if stream is None:
        return
    key = Key(stream.resource.key, body.namespace or "", body.name)
    # Items of a listing come without their kind (Kubernetes API conventions).
    body = _typed(body, stream.resource)
    _observe(turn, stream, key, None, body)


def _typed(body: Body, resource: Resource) -> Body:
    if "kind" in body.data:
        return body
    return Body(
        {"apiVersion": resource.api_version, "kind": resource.kind, **body.data}
    )


def _on_list_done(turn: Turn, number: int, version: str, token: str | None) -> None:
    stream = _stream(turn, number)
    if stream is None:
        return
    if token is not None:
        limit = turn.settings.list_page_limit
        more = ListPage(number, stream.resource, stream.namespace, limit, token)
        turn.emit(more)
        return
    if stream.lists:
        _miss_the_vanished(turn, stream)
    _open(turn, listed(stream, version))
    _announce_ready(turn)


def _miss_the_vanished(turn: Turn, stream: Stream) -> None:
    """What a later listing does not have was deleted while nobody watched."""
    for key, known in turn.objects.items():
        if (
            key.resource == stream.resource.key
            and stream.namespace in (None, key.namespace)
            and known.listing != stream.id
            and not known.gone
        ):
            _observe(turn, stream, key, "DELETED", known.body)


def _announce_ready(turn: Turn) -> None:
    if turn.ready or turn.phase is not Phase.SERVING:
        return
    if all(each.lists for each in turn.followed.values()):
        turn.ready = True
        turn.emit(Ready())


def _on_bookmark(turn: Turn, number: int, version: str) -> None:
    stream = _stream(turn, number)
    if stream is not None:
        turn.followed = turn.followed.set(stream.key, reopened(stream, version))


def _on_watch_event(turn: Turn, number: int, type: str, body: Body) -> None:
    stream = _stream(turn, number)
    if stream is None:
        return
    turn.followed = turn.followed.set(stream.key, reopened(stream, body.version))
    key = Key(stream.resource.key, body.namespace or "", body.name)
    _observe(turn, stream, key, type, body)


def _on_stream_ended(turn: Turn, end: StreamEnded) -> None:
    stream = _stream(turn, end.stream)
    if stream is None:
        return
    jitter = turn.jitter()
    after = ended(stream, end, turn.now, jitter)
    turn.streams = turn.streams.discard(end.stream)
    turn.followed = turn.followed.set(stream.key, after)
    if after.refusal and not stream.refusal:
        turn.say(
            "error",
            f"may not follow {stream.resource.plural}: {end.message}; "
            "grant the verbs list and watch to this operator",
        )
    elif after.failures in (1, 5) and end.status != 410 and not after.refusal:
        text = f"the stream of {stream.resource.plural} broke: {end.reason}"
        turn.say("warning", f"{text} {end.message}".rstrip())
    if not turn.ready and all(each.refusal for each in turn.followed.values()):
        _exit(turn, 1, f"nothing can be served: {end.message}")


# ----------------------------------------------------------------- objects


def _observe(
    turn: Turn, stream: Stream, key: Key, type: str | None, body: Body
) -> None:
    """Put what was seen of an object into the store; its key is due."""
    if turn.phase is not Phase.SERVING:
        return
    known = turn.objects.get(key)
    if known is not None and known.body.uid != body.uid:
        _replaced(turn, key, known)
        known = None
    if known is None:
        if type == "DELETED":
            return
        known = _first_sight(turn, key, body, listed=type is None and not stream.lists)
    else:
        known = _refreshed(turn, known, stream, type, body)
    if type is None:
        known = replace(known, listing=stream.id)
    kind = turn.kinds[key.resource]
    if kind.spies:
        known = _sighted(turn, key, known, kind, type, body)
    turn.objects = turn.objects.set(key, known)
    turn.due(key)


def _replaced(turn: Turn, key: Key, known: Known) -> None:
    """Another object has the name: what is under way was for the one before."""
    let_go(turn, key, known)
    turn.objects = turn.objects.discard(key)
    turn.queue = turn.queue.discard(key)


def _first_sight(turn: Turn, key: Key, body: Body, *, listed: bool) -> Known:
    text, _ = stored_text(body, turn.settings.marker)
    stored = read_stored(text, body.uid)
    match stored:
        case Unreadable(problem):
            turn.say(
                "warning",
                "its stored state cannot be read and is left as it is; the object "
                f"counts as handled before: {problem}",
                key=key,
                body=body,
            )
            seen = see(body, turn.kinds[key.resource].observation)
            return Known(body, Stored(seen), readable=False, initial=listed)
        case None:
            return Known(body, Stored(), initial=listed)
        case _:
            return Known(body, stored, initial=listed)


def _refreshed(
    turn: Turn, known: Known, stream: Stream, type: str | None, body: Body
) -> Known:
    """Take a newer state in; one from before an own write is known to be old."""
    if type == "DELETED":
        return replace(known, body=body, gone=True, echo=None)
    echo = known.echo
    if echo is None:
        return replace(known, body=body)
    if body.version == echo.version or (type is None and stream.begun > echo.step):
        return replace(known, body=body, echo=None)
    return known


def _sighted(
    turn: Turn, key: Key, known: Known, kind: Kind, type: str | None, body: Body
) -> Known:
    fresh = tuple(
        Sighting(handler, type, body)
        for handler in kind.spies
        if _spy_wants(turn, key, kind, handler, type, body)
    )
    if not fresh:
        return known
    work = known.work or Work()
    sightings = (*work.sightings, *fresh)
    if len(sightings) > SIGHTINGS_MAX:
        sightings = sightings[-SIGHTINGS_MAX:]
        turn.warn_once(
            f"sightings {key}",
            "watch events come faster than the on.event handlers look at them; "
            "the oldest are left out",
            key,
        )
    return replace(known, work=replace(work, sightings=sightings))


def _spy_wants(
    turn: Turn, key: Key, kind: Kind, handler: Handler, type: str | None, body: Body
) -> bool:
    if handler.filters.is_trivial:
        return True
    situation = Situation(handler, turn.settings, turn.now, kind.resource, body, type)
    sight = Sight(
        body.mapping("labels"),
        body.mapping("annotations"),
        body.at(handler.field) if handler.field else None,
        None,
        False,
        lambda wants, rest: filter_arguments(situation, wants, rest),
    )
    try:
        return handler.filters.prematch(sight)
    except (Exception, SystemExit) as problem:
        text = f"{problem.__class__.__name__}: {problem}"
        turn.say(
            "error",
            f"a filter of {handler.id} failed, so it is not called: {text}",
            key=key,
            body=body,
            handler=handler.id,
            error=text,
            exception=problem,
        )
        return False


# -------------------------------------------------------------------- work


def _work(turn: Turn) -> None:
    """Do one piece of due work, if there is one and a request may be sent."""
    for stream in tuple(turn.followed.values()):
        if stream.phase is StreamPhase.WAITING and stream.due <= turn.now.mono:
            _open(turn, stream)
    if turn.discovery_due is not None and turn.discovery_due <= turn.now.mono:
        _discover(turn)
    if not turn.has_slot():
        return
    key = turn.take_due()
    if key is not None:
        serve(turn, key)


def _advance_phase(turn: Turn) -> None:
    """From one phase of the operator's life to the next."""
    if turn.phase is Phase.STARTING and ACTIVITY not in turn.objects:
        if turn.exit_status:
            _exit(turn, 1, "a startup handler failed, so the operator does not start")
            return
        turn.phase = Phase.DISCOVERING
        _discover(turn)
    if turn.phase is Phase.STOPPING and _is_quiet(turn):
        turn.phase = Phase.CLEANING
        turn.objects = NEW.objects
        turn.queue = NEW.queue
        turn.program.live.clear()
        _begin_activity(turn, Role.CLEANUP)
    if turn.phase is Phase.CLEANING and ACTIVITY not in turn.objects:
        _exit(turn, turn.exit_status, "stopped")


def _is_quiet(turn: Turn) -> bool:
    """Whether a stopping operator has nothing under way, or waited long enough."""
    if turn.stop_by is not None and turn.stop_by <= turn.now.mono:
        return True
    due = turn.queue.next_due()
    return not turn.pending and (due is None or due > turn.now.mono)


def _exit(turn: Turn, status: int, reason: str) -> None:
    if turn.phase is Phase.ENDED:
        return
    for number in turn.streams:
        turn.emit(CloseStream(number))
    turn.streams = NEW.streams
    turn.followed = NEW.followed
    turn.phase = Phase.ENDED
    turn.emit(Exit(status, reason))


def _next_alarm(turn: Turn) -> float | None:
    """When something is due next, if nothing happens before."""
    if turn.phase is Phase.ENDED:
        return None
    moments = [
        stream.due
        for stream in turn.followed.values()
        if stream.phase is StreamPhase.WAITING
    ]
    if turn.has_slot():
        due = turn.queue.next_due()
        if due is not None:
            moments.append(due)
    for moment in (turn.discovery_due, turn.stop_by):
        if moment is not None:
            moments.append(moment)
    return min(moments, default=None)
