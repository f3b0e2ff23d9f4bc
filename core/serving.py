"""What is served: from discovery to kinds, from kinds to streams, and their life.

Kinds that handlers name are followed as soon as the API server serves them; a
stream that ends is opened again (fnop.core.watcher decides when and how).
"""

from __future__ import annotations

from collections.abc import Iterable

from fnop.core import discovery as discovering
from fnop.core.backoff import backoff_seconds
from fnop.core.commands import CloseStream, Fetch, ListPage, Ready
from fnop.core.evolve import replace
from fnop.core.inputs import StreamEnded
from fnop.core.objects import Body, Key
from fnop.core.program import kind_of
from fnop.core.pushdown import selectors_of
from fnop.core.registry import Handler, Role
from fnop.core.resources import Resource
from fnop.core.store import observe
from fnop.core.turn import Phase, Ticket, Turn
from fnop.core.watcher import Stream, ended, listed, opened, reopened
from fnop.effects.outcomes import Outcome

__all__ = [
    "discover",
    "on_bookmark",
    "on_document",
    "on_list_done",
    "on_list_item",
    "on_stream_ended",
    "on_watch_event",
    "open_stream",
]

# An API server that cannot be reached at the start is tried this many times.
DISCOVERY_TRIES_MAX = 3


def discover(turn: Turn) -> None:
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


def on_document(turn: Turn, number: int, outcome: Outcome) -> None:
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
    turn.catalogue = found.catalogue
    turn.phase = Phase.SERVING
    complete = _serve_kinds(turn)
    turn.discovery_tries = 0 if complete else turn.discovery_tries + 1
    if not complete:
        # Somebody has to install what is missing: that may take long.
        wait = backoff_seconds(turn.discovery_tries, turn.jitter(), most=30.0)
        turn.discovery_due = turn.now.mono + wait
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
        turn.end(1, f"the API server {word}: {found.problem}; {remedy}")
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
        complete = complete and bool(found)
        if not found or (len(found) > 1 and not handler.selector.is_broad):
            _warn_unserved(turn, handler, found)
            continue
        handler, has_owners = _with_owners(turn, handler)
        complete = complete and has_owners
        for resource in found:
            if _may_be_served(turn, handler, resource):
                resources[resource.key] = resource
                by_resource.setdefault(resource.key, []).append(handler)
    for key, handlers in by_resource.items():
        turn.kinds = turn.kinds.set(key, kind_of(resources[key], handlers))
        _follow(turn, resources[key], handlers)
    return complete


def _with_owners(turn: Turn, handler: Handler) -> tuple[Handler, bool]:
    """The handler with the kinds that `owner=` means; False when they are missing."""
    if handler.owner is None:
        return handler, True
    found = turn.catalogue.find(handler.owner)
    if not found:
        text = (
            f"the API server serves no {str(handler.owner)!r} yet, so {handler.id} "
            "waits for its objects to have such owners"
        )
        turn.warn_once(f"owner {handler.owner} {handler.id}", text)
    owners = frozenset((each.group, each.kind) for each in found)
    return replace(handler, owners=owners), bool(found)


def _may_be_served(turn: Turn, handler: Handler, resource: Resource) -> bool:
    """Whether a kind can be followed, and written where the handler needs that."""
    needed = {"list", "watch"} | (set() if handler.role is Role.EVENT else {"patch"})
    missing = needed.difference(resource.verbs)
    if not resource.verbs or not missing:
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
        text = (
            f"the API server serves no {selector!r} yet, so {handler.id} and others of "
            "this kind wait for it; is its CustomResourceDefinition installed?"
        )
        turn.warn_once(f"unserved {selector}", text)
        return
    turn.warn_once(f"unserved {selector} {handler.id}", text)


def _follow(turn: Turn, resource: Resource, handlers: Iterable[Handler]) -> None:
    selectors = selectors_of(handlers, turn.settings.selector)
    namespaces: tuple[str | None, ...] = (None,)
    if resource.namespaced and turn.settings.namespaces is not None:
        namespaces = turn.settings.namespaces
    for namespace in namespaces:
        stream = Stream(resource, namespace, selectors)
        present = turn.followed.get(stream.key)
        if present is None:
            where = f" in {namespace}" if namespace else ""
            turn.say("info", f"serving {resource.label}{where}")
            open_stream(turn, stream)
        elif present.selectors != selectors:
            # Other handlers are for the kind than before: list it anew.
            turn.emit(CloseStream(present.id))
            open_stream(turn, replace(stream, id=present.id, lists=present.lists))


def open_stream(turn: Turn, stream: Stream) -> None:
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


def on_list_item(turn: Turn, number: int, body: Body) -> None:
    stream = _stream(turn, number)
    if stream is None:
        return
    key = Key(stream.resource.key, body.namespace or "", body.name)
    observe(turn, stream, key, None, body)


def on_list_done(turn: Turn, number: int, version: str, token: str | None) -> None:
    stream = _stream(turn, number)
    if stream is None:
        return
    if token is not None:
        limit = turn.settings.list_page_limit
        more = ListPage(
            number, stream.resource, stream.namespace, limit, token, stream.selectors
        )
        turn.emit(more)
        return
    if stream.lists:
        _miss_the_vanished(turn, stream)
    open_stream(turn, listed(stream, version))
    _announce_ready(turn)


def _miss_the_vanished(turn: Turn, stream: Stream) -> None:
    """What a later listing does not have was deleted while nobody watched."""
    for key, known in turn.all_known():
        if (
            key.resource == stream.resource.key
            and stream.namespace in (None, key.namespace)
            and known.listing != stream.id
            and not known.gone
        ):
            observe(turn, stream, key, "DELETED", known.body)


def _announce_ready(turn: Turn) -> None:
    if turn.ready or turn.phase is not Phase.SERVING:
        return
    if all(each.lists for each in turn.followed.values()):
        turn.ready = True
        turn.emit(Ready())


def on_bookmark(turn: Turn, number: int, version: str) -> None:
    stream = _stream(turn, number)
    if stream is not None:
        turn.followed = turn.followed.set(stream.key, reopened(stream, version))


def on_watch_event(turn: Turn, number: int, type: str, body: Body) -> None:
    stream = _stream(turn, number)
    if stream is None:
        return
    turn.followed = turn.followed.set(stream.key, reopened(stream, body.version))
    key = Key(stream.resource.key, body.namespace or "", body.name)
    observe(turn, stream, key, type, body)


def on_stream_ended(turn: Turn, end: StreamEnded) -> None:
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
        turn.end(1, f"nothing can be served: {end.message}")
