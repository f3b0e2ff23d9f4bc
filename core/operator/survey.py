"""What is served: from discovery to kinds, from kinds to streams, and their life.

Kinds that handlers name are followed as soon as the API server serves them; a
stream that ends is opened again (fnop.core.streams.stream decides when and how).
"""

from __future__ import annotations

from collections.abc import Iterable

from fnop.core.api import discovery as discovering
from fnop.core.api.namespaces import has_patterns, served_namespaces
from fnop.core.api.resources import Resource, Selector
from fnop.core.handlers.handler import Handler, Role
from fnop.core.handlers.program import kind_of
from fnop.core.handlers.pushdown import selectors_of
from fnop.core.objects.store import observe
from fnop.core.operator.coordination import (
    discovered,
    is_standing_by,
    lacks_peering,
    looked_at,
    peer_streams,
    refused,
)
from fnop.core.seam.commands import CloseStream, Fetch, ListPage, Ready
from fnop.core.seam.inputs import StreamEnded
from fnop.core.state.context import Context
from fnop.core.state.lifecycle import Event, Phase, advance
from fnop.core.state.requests import Ticket
from fnop.core.state.survey import looking_by
from fnop.core.state.turn import Turn
from fnop.core.streams.stream import (
    Phase as StreamPhase,
    Purpose,
    Stream,
    StreamKey,
    ended,
    listed,
    opened,
    reopened,
    told,
)
from fnop.core.values.backoff import backoff_seconds, growing_seconds, heeding
from fnop.core.values.body import Body, Key, is_behind
from fnop.core.values.errors import described, joined
from fnop.core.values.evolve import replace
from fnop.effects.outcomes import Outcome, Unknown

__all__ = [
    "discover",
    "missing_verbs",
    "on_bookmark",
    "on_document",
    "on_list_done",
    "on_list_item",
    "on_stream_ended",
    "on_watch_event",
    "open_stream",
]

# What tells of kinds and namespaces that come and go.
DEFINITIONS = "customresourcedefinitions.v1.apiextensions.k8s.io"
NAMESPACES = "namespaces.v1."

# Several definitions often come together; and the server is not done with them at once.
_SOON_SECONDS = 0.3
_RESTLESS_SECONDS = 5.0
# Kinds that are missed are looked for so often.
_MISSED_SECONDS = 3.0


def discover(turn: Turn) -> None:
    turn.survey = turn.survey._replace(due=None, discovery=discovering.begun({}))
    _fetch(turn, tuple(map(discovering.Page, discovering.ROOTS)))


def _fetch(turn: Turn, pages: tuple[discovering.Page, ...]) -> None:
    assert turn.survey.discovery is not None
    pending = turn.survey.discovery.pending
    for page in pages:
        number = turn.next_serial()
        pending = pending.set(number, page)
        turn.requests = turn.requests.sent(number, Ticket("fetch"))
        seconds = discovering.patience_seconds(turn.survey.tries)
        turn.emit(Fetch(number, page.path, page.accept, seconds))
    discovery = replace(turn.survey.discovery, pending=pending)
    turn.survey = turn.survey._replace(discovery=discovery)


def on_document(turn: Turn, number: int, outcome: Outcome) -> None:
    discovery = turn.survey.discovery
    if discovery is None or number not in discovery.pending:
        return
    discovery, pages = _with_document(discovery, number, outcome)
    turn.survey = turn.survey._replace(discovery=discovery)
    _fetch(turn, pages)
    if not pages and not discovery.pending:
        turn.survey = turn.survey._replace(discovery=None)
        _on_discovered(turn, discovery)


def _with_document(
    discovery: discovering.Discovery, number: int, outcome: Outcome
) -> tuple[discovering.Discovery, tuple[discovering.Page, ...]]:
    """Take one document in; one of another shape is as good as none."""
    path = discovery.pending[number].path
    try:
        return discovering.answered(discovery, number, outcome)
    except Exception as problem:  # of any shape: it comes from outside
        unread = Unknown(f"{path} cannot be read: {described(problem)}")
        return discovering.answered(discovery, number, unread)


def _on_discovered(turn: Turn, found: discovering.Discovery) -> None:
    has_any = found.resources or turn.survey.catalogue.resources
    if found.problem is not None and not has_any:
        _on_undiscovered(turn, found)
        return
    before = turn.survey.catalogue
    catalogue = found.after(before, turn.now.mono)
    turn.survey = turn.survey._replace(catalogue=catalogue)
    turn.lifecycle = advance(turn.lifecycle, turn.now, Event.DISCOVERED)
    if found.problem is not None:
        turn.warn_once(
            f"unread {sorted(found.unread)}",
            f"not all kinds of the API server are known: {found.problem}",
        )
    discovered(turn)
    served = _serve_kinds(turn, is_known=found.problem is None)
    complete = served and not lacks_peering(turn)
    look_around(turn, complete=complete)
    # Somebody has to install what is missing, and that may take long.
    waits = not complete or turn.survey.wanted
    in_vain = found.problem is not None or (waits and turn.survey.catalogue == before)
    tries = turn.survey.tries + 1 if in_vain else 0
    turn.survey = turn.survey._replace(tries=tries, wanted=False)
    _look_in(turn, _until_next_look(turn, found, complete))
    _announce_ready(turn)


def _until_next_look(turn: Turn, found: discovering.Discovery, complete: bool) -> float:
    """How long what was discovered is taken for what there is (seconds)."""
    wait = turn.settings.rediscovery_seconds
    if found.problem is not None:
        wait = _pause(turn, found)
    elif not complete:
        wait = growing_seconds(turn.survey.tries, turn.jitter(), most=wait)
    if turn.survey.restless_until > turn.now.mono:
        wait = min(wait, turn.survey.restless_until - turn.now.mono)
    if turn.survey.catalogue.missed:
        wait = min(wait, _MISSED_SECONDS)
    return wait


def _look_in(turn: Turn, seconds: float) -> None:
    """Look for kinds after so long at the latest."""
    turn.survey = looking_by(turn.survey, turn.now.mono + seconds)


def _on_undiscovered(turn: Turn, found: discovering.Discovery) -> None:
    """Nothing is known: an operator may well be there before its API server is."""
    turn.survey = turn.survey._replace(tries=turn.survey.tries + 1)
    first = turn.lifecycle.phase is Phase.DISCOVERING
    if first and found.forbidden:
        remedy = "check the credentials of the kubeconfig's context"
        turn.end(1, f"the API server refuses us: {found.problem}; {remedy}")
        return
    wait = _pause(turn, found)
    turn.survey = turn.survey._replace(due=turn.now.mono + wait)
    if first:
        text = f"the API server cannot be reached: {found.problem}"
        turn.say("warning", f"{text}; it is asked again in {wait:.1f} s{_REMEDY}")


_REMEDY = " (if this goes on, check the server's address in the kubeconfig)"


def _pause(turn: Turn, found: discovering.Discovery) -> float:
    """How long an API server in trouble is left alone (seconds)."""
    wait = backoff_seconds(turn.survey.tries, turn.jitter())
    return heeding(found.advice_seconds, wait)


def _serve_kinds(turn: Turn, *, is_known: bool = True) -> bool:
    """Follow the kinds that handlers name; False when one is not served yet.

    `is_known` is False where something could not be read, and may be missing for that.
    """
    by_resource: dict[str, list[Handler]] = {}
    resources: dict[str, Resource] = {}
    complete = True
    for handler in turn.program.handlers:
        if handler.selector is None:
            continue
        found = _found(turn, handler, handler.selector)
        if found is None:
            continue
        complete = complete and bool(found)
        if not found or (len(found) > 1 and not handler.selector.is_broad):
            if found or is_known:
                _warn_unserved(turn, handler, found)
            continue
        handler, has_owners = _with_owners(turn, handler, is_known=is_known)
        complete = complete and has_owners
        for resource in found:
            if _may_be_served(turn, handler, resource):
                resources[resource.key] = resource
                by_resource.setdefault(resource.key, []).append(handler)
    _follow_all(turn, by_resource, resources)
    return complete


def _follow_all(
    turn: Turn, by_resource: dict[str, list[Handler]], resources: dict[str, Resource]
) -> None:
    """Follow these kinds for handlers, and no others any more."""
    wanted: dict[StreamKey, Stream] = {}
    for key, handlers in by_resource.items():
        kind = kind_of(resources[key], handlers, turn.settings)
        turn.survey = turn.survey.with_kind(kind)
        for stream in _streams_of(turn, resources[key], handlers):
            wanted[stream.key] = stream
    for stream in wanted.values():
        follow(turn, stream)
    for present in turn.streams.each(Purpose.OBJECTS):
        if present.key not in wanted:
            _leave(turn, present)


def _found(
    turn: Turn, handler: Handler, selector: Selector
) -> tuple[Resource, ...] | None:
    """The kinds that a handler means; None where its own function fails."""
    try:
        return turn.survey.catalogue.find(selector)
    except KeyboardInterrupt:
        raise
    except BaseException as problem:
        about = f"selector {handler.id}"
        if about not in turn.notes.warned:
            turn.notes = turn.notes.warned_of(about)
            turn.failed()
            text = described(problem)
            turn.say(
                "error",
                f"{handler.id} is called for no kind: its selector failed: {text}",
                handler=handler.id,
                error=text,
                exception=problem,
            )
        return None


def _with_owners(
    turn: Turn, handler: Handler, *, is_known: bool
) -> tuple[Handler, bool]:
    """The handler with the kinds that `owner=` means; False when they are missing."""
    if handler.owner is None:
        return handler, True
    found = _found(turn, handler, handler.owner) or ()
    if not found and is_known:
        near = turn.survey.catalogue.nearest(handler.owner)
        text = (
            f"the API server serves no {str(handler.owner)!r} yet, so {handler.id} "
            "waits for its objects to have such owners"
            + (f"; did you mean {near!r}?" if near else "")
        )
        turn.warn_once(f"owner {handler.owner} {handler.id}", text)
    owners = frozenset((each.group, each.kind) for each in found)
    return replace(handler, owners=owners), bool(found)


def missing_verbs(handler: Handler, resource: Resource) -> frozenset[str]:
    """The verbs of a kind that it does not have, and this handler cannot do without."""
    needed = {"list", "watch"} | (set() if handler.role is Role.EVENT else {"patch"})
    if "delete" in resource.verbs:
        # While a definition is terminating, discovery leaves out what makes and changes
        # objects; finalizers can be taken off all the same (apiextensions-apiserver).
        needed -= {"patch"}
    return frozenset(needed.difference(resource.verbs) if resource.verbs else ())


def _may_be_served(turn: Turn, handler: Handler, resource: Resource) -> bool:
    """Whether a kind can be followed, and written where the handler needs that."""
    missing = missing_verbs(handler, resource)
    if not missing:
        return True
    if handler.selector is not None and handler.selector.is_broad:
        return False  # nobody has asked for just this kind
    turn.warn_once(
        f"verbs {resource.key} {handler.id}",
        f"{resource.key} does not support {', '.join(sorted(missing))}, so "
        f"{handler.id} is not called for it",
    )
    return False


def _warn_unserved(turn: Turn, handler: Handler, found: tuple[Resource, ...]) -> None:
    selector = str(handler.selector)
    if found:
        names = ", ".join(each.key for each in found)
        text = (
            f"{selector!r} is ambiguous, so {handler.id} is not called: {names}; "
            "name the group too"
        )
    else:
        near = handler.selector and turn.survey.catalogue.nearest(handler.selector)
        others = (e for e in turn.program.handlers if e.selector == handler.selector)
        waiting = list(dict.fromkeys(each.id for each in others))
        text = (
            f"the API server serves no {selector!r} yet, so {joined(waiting)} "
            f"{'waits' if len(waiting) == 1 else 'wait'} for it; is its "
            "CustomResourceDefinition installed"
            + (f", or did you mean {near!r}?" if near else "?")
        )
        turn.warn_once(f"unserved {selector}", text)
        return
    turn.warn_once(f"unserved {selector} {handler.id}", text)


def _streams_of(
    turn: Turn, resource: Resource, handlers: Iterable[Handler]
) -> list[Stream]:
    """What is to be followed of a kind: the cluster, or each of some namespaces."""
    selectors = selectors_of(handlers, turn.settings.selector)
    given = turn.settings.namespaces
    if not resource.namespaced or given is None:
        return [Stream(resource, None, selectors)]
    found = served_namespaces(given, turn.survey.namespaces or ())
    return [Stream(resource, namespace, selectors) for namespace in found]


def follow(turn: Turn, stream: Stream) -> None:
    """Follow a collection, if it is not yet, with these selectors."""
    present = turn.streams.followed.get(stream.key)
    if present is None:
        if stream.purpose is Purpose.OBJECTS:
            turn.say("info", f"serving {_place(stream)}")
        if stream.purpose is Purpose.OBJECTS and turn.lifecycle.phase is Phase.FROZEN:
            paused = stream._replace(phase=StreamPhase.PAUSED)
            turn.streams = turn.streams.put(paused)
        else:
            open_stream(turn, stream)
    elif present.phase is StreamPhase.PAUSED:
        paused = present._replace(selectors=stream.selectors)
        turn.streams = turn.streams.put(paused)
    elif present.selectors != stream.selectors:
        # Other handlers are for the kind than before: list it anew.
        turn.emit(CloseStream(present.id))
        lists, listings = present.lists, present.listings
        anew = stream._replace(id=present.id, lists=lists, listings=listings)
        open_stream(turn, anew)


def _place(stream: Stream) -> str:
    where = f" in {stream.namespace}" if stream.namespace else ""
    return f"{stream.resource.label}{where}"


def _leave(turn: Turn, stream: Stream) -> None:
    """A kind is not served any more, or a namespace has gone, with all objects."""
    turn.say("info", f"serving {_place(stream)} no more: it is not there")
    _miss_the_vanished(turn, stream._replace(id=0))
    unfollow(turn, stream)


def unfollow(turn: Turn, stream: Stream) -> None:
    """Close a stream for good."""
    if turn.streams.is_open(stream):
        turn.emit(CloseStream(stream.id))
    turn.streams = turn.streams.without(stream)


def _on_namespaces(turn: Turn) -> None:
    """Other namespaces are meant than before."""
    discovered(turn)
    _serve_kinds(turn)
    _look_at_peers(turn)


# ----------------------------------------------------- what else is looked at


def look_around(turn: Turn, *, complete: bool) -> None:
    """Follow what tells of kinds and namespaces that come and go, where it matters.

    Nothing beyond the named namespaces is asked for by who is restricted to them.
    """
    given = turn.settings.namespaces
    patterns = given is not None and has_patterns(given)
    selectors = [each.selector for each in turn.program.handlers if each.selector]
    if (given is None or patterns) and (
        not complete or any(each.is_broad for each in selectors)
    ):
        _look_at(turn, DEFINITIONS, Purpose.KINDS)
    if patterns:
        _look_at(turn, NAMESPACES, Purpose.NAMESPACES)
    _look_at_peers(turn)


def _look_at_peers(turn: Turn) -> None:
    """Follow the peering objects that there are, and no others."""
    wanted = {each.key: each for each in peer_streams(turn)}
    for stream in turn.streams.each(Purpose.PEERS):
        if stream.key not in wanted:
            unfollow(turn, stream)
    for stream in wanted.values():
        follow(turn, stream)


def _look_at(turn: Turn, key: str, purpose: Purpose) -> None:
    for resource in turn.survey.catalogue.resources:
        if resource.key == key:
            follow(turn, Stream(resource, None, purpose=purpose))


def _noticed(turn: Turn, stream: Stream, type: str | None, body: Body) -> None:
    """A definition or a namespace has come, changed or gone."""
    match stream.purpose:
        case Purpose.KINDS if type is not None:
            # The server takes a moment to serve a new kind, or to forget one.
            restless_until = turn.now.mono + _RESTLESS_SECONDS
            turn.survey = turn.survey._replace(restless_until=restless_until, tries=0)
            _look_in(turn, _SOON_SECONDS)
        case Purpose.PEERS:
            named = stream._replace(names=stream.names | {body.name})
            turn.streams = turn.streams.put(named)
            looked_at(turn, stream, None if type == "DELETED" else body)
        case Purpose.NAMESPACES if type is None:
            named = stream._replace(names=stream.names | {body.name})
            turn.streams = turn.streams.put(named)
        case Purpose.NAMESPACES:
            known = turn.survey.namespaces or frozenset()
            gone = type == "DELETED"
            now = known - {body.name} if gone else known | {body.name}
            turn.survey = turn.survey._replace(namespaces=now)
            _on_namespaces(turn)
        case _:
            pass


def open_stream(turn: Turn, stream: Stream) -> None:
    number = turn.next_serial()
    step = turn.counters.step
    stream_then, command = opened(stream, number, step, turn.now, turn.settings)
    turn.streams = turn.streams.opened(stream_then, before=stream.id)
    turn.emit(command)


def on_list_item(turn: Turn, number: int, body: Body) -> None:
    stream = turn.streams.of(number)
    if stream is not None and not stream.is_asking:
        _seen(turn, stream, None, body)


def _seen(turn: Turn, stream: Stream, type: str | None, body: Body) -> None:
    if stream.purpose is Purpose.OBJECTS:
        key = Key(stream.resource.key, body.namespace or "", body.name)
        observe(Context(turn, key), stream, type, body)
    else:
        _noticed(turn, stream, type, body)


def on_list_done(turn: Turn, number: int, version: str, token: str | None) -> None:
    stream = turn.streams.of(number)
    if stream is None:
        return
    if stream.is_asking:
        after = told(stream, version)
        if after.version is None:
            _gone_back(turn, stream, stream.version, version)
        open_stream(turn, after)
        return
    if token is not None:
        limit = turn.settings.list_page_limit
        more = ListPage(
            number, stream.resource, stream.namespace, limit, token, stream.selectors
        )
        turn.emit(more)
        return
    if stream.listings > 1 and stream.purpose is Purpose.OBJECTS:
        _miss_the_vanished(turn, stream)
    _level_graves(turn, stream)
    if is_behind(version, stream.before):
        _gone_back(turn, stream, stream.before, version)
    if stream.listings > 1 and stream.purpose is Purpose.KINDS:
        _look_in(turn, _SOON_SECONDS)  # some may have been missed
    open_stream(turn, listed(stream, version))
    if stream.purpose is Purpose.NAMESPACES:
        turn.survey = turn.survey._replace(namespaces=stream.names)
        _on_namespaces(turn)
    if stream.purpose is Purpose.PEERS and not stream.names:
        looked_at(turn, stream, None)
    _announce_ready(turn)


def _gone_back(turn: Turn, stream: Stream, known: str | None, version: str) -> None:
    """The server's storage was restored: what it lists is the truth, however old.

    It will give out versions a second time, so those that were seen are forgotten.
    """
    turn.say(
        "warning",
        f"the API server has gone back from version {known} to {version}, as "
        f"after a restore from a backup; {_place(stream)} is read anew",
    )
    for key, each in turn.objects.all():
        if key.resource == stream.resource.key and each.shown:
            turn.objects.put(key, each._replace(shown=()))


def _miss_the_vanished(turn: Turn, stream: Stream) -> None:
    """What a later listing does not have was deleted while nobody watched."""
    for key, known in turn.objects.all():
        if (
            key.resource == stream.resource.key
            and stream.namespace in (None, key.namespace)
            and known.listing != stream.id
            and not known.gone
        ):
            observe(Context(turn, key), stream, "DELETED", known.body)


def _level_graves(turn: Turn, stream: Stream) -> None:
    """A watch from the version of a listing shows nothing older than it."""
    for key in sorted(turn.objects.graves):
        if (
            key.resource == stream.resource.key
            and stream.namespace in (None, key.namespace)
            and turn.objects.graves[key].step < stream.begun
        ):
            turn.objects.exhume(key)


def _waits_for_namespaces(turn: Turn) -> bool:
    given = turn.settings.namespaces
    if given is None or not has_patterns(given) or turn.survey.namespaces is not None:
        return False
    return not any(each.refusal for each in turn.streams.each(Purpose.NAMESPACES))


def _announce_ready(turn: Turn) -> None:
    if turn.lifecycle.ready or _waits_for_namespaces(turn):
        return
    if turn.lifecycle.phase is not Phase.SERVING and not is_standing_by(turn):
        return
    served = turn.streams.each(Purpose.OBJECTS)
    if turn.lifecycle.phase is Phase.FROZEN or all(each.lists for each in served):
        turn.lifecycle = turn.lifecycle._replace(ready=True)
        turn.emit(Ready())


def on_bookmark(turn: Turn, number: int, version: str) -> None:
    stream = turn.streams.of(number)
    if stream is not None:
        turn.streams = turn.streams.put(reopened(stream, version))


def on_watch_event(turn: Turn, number: int, type: str, body: Body) -> None:
    stream = turn.streams.of(number)
    if stream is None:
        return
    turn.streams = turn.streams.put(reopened(stream, body.version))
    _seen(turn, stream, type, body)


def on_stream_ended(turn: Turn, end: StreamEnded) -> None:
    stream = turn.streams.of(end.stream)
    if stream is None:
        return
    jitter = turn.jitter()
    after = ended(stream, end, turn.now, jitter)
    turn.streams = turn.streams.closed(after)
    if stream.purpose is Purpose.PEERS:
        refused(turn, stream, end.status, end.message or end.reason)
    elif after.refusal and not stream.refusal:
        _say_refused(turn, stream, end.message)
    elif after.failures in (1, 5) and end.status != 410 and not after.refusal:
        text = f"the stream of {stream.resource.plural} broke: {end.reason}"
        turn.say("warning", f"{text} {end.message}".rstrip())
    served = turn.streams.each(Purpose.OBJECTS)
    if served and not turn.lifecycle.ready and all(each.refusal for each in served):
        turn.end(1, f"nothing can be served: {end.message}")


def _say_refused(turn: Turn, stream: Stream, message: str) -> None:
    match stream.purpose:
        case Purpose.OBJECTS:
            remedy = "grant the verbs list and watch to this operator"
            plural = stream.resource.plural
            turn.say("error", f"may not follow {plural}: {message}; {remedy}")
        case Purpose.PEERS:
            pass  # peering has its own words for it
        case Purpose.KINDS:
            pause = f"every {turn.settings.rediscovery_seconds:g} s"
            text = f"may not follow definitions: {message}"
            turn.say("info", f"{text}; kinds that come later are looked for {pause}")
        case Purpose.NAMESPACES:
            text = f"may not follow namespaces: {message}"
            remedy = "grant list and watch, or name each namespace"
            turn.say("error", f"{text}; patterns of namespaces mean none; {remedy}")
            _announce_ready(turn)
