"""The served kinds: from discovery to kinds, and from kinds to streams.

fnop follows the kinds that handlers name as soon as the API server serves them. It
opens a stream again after its end (fnop.core.streams.stream decides when and how).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fnop.core.api import discovery as discovering
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.namespaces import has_patterns, served_namespaces
from fnop.core.api.resources import Resource, Selector, Selectors
from fnop.core.api.statuses import UNDESCRIBED
from fnop.core.children.siblings import SYNCED
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import Family
from fnop.core.handlers.program.program import Kind, OwnedBy
from fnop.core.handlers.program.pushdown import selectors_of, without_fields
from fnop.core.operator.cluster import (
    asks_for_kinds,
    compare,
    facts_for,
    listen,
    outdated,
    until_heard,
)
from fnop.core.operator.coordination import (
    discovered,
    lacks_peering,
    peer_streams,
)
from fnop.core.operator.following import announce_ready, follow, leave, move, unfollow
from fnop.core.operator.mistyped import mistaken
from fnop.core.seam.commands import Fetch
from fnop.core.state.lifecycle import Milestone, Phase, advance
from fnop.core.state.requests import ForDiscovery
from fnop.core.state.survey import looking_by
from fnop.core.state.turn import Turn
from fnop.core.streams.stream import (
    Stream,
    StreamKey,
    StreamPurpose,
)
from fnop.core.values.backoff import backoff_seconds, growing_seconds, heeding
from fnop.core.values.errors import described, joined
from fnop.core.values.table import NOTHING, Table
from fnop.effects.outcomes import Outcome, Unknown
from fnop.effects.structs import replace

__all__ = [
    "SOON_SECONDS",
    "discover",
    "look_at_peers",
    "look_in",
    "look_soon",
    "missing_verbs",
    "on_document",
    "serve_kinds",
]

# The kinds whose objects show new and removed kinds and namespaces.
DEFINITIONS = "customresourcedefinitions.v1.apiextensions.k8s.io"
NAMESPACES = "namespaces.v1."

# Several definitions often come together, and the server needs a moment to serve them.
SOON_SECONDS = 0.3
_RESTLESS_SECONDS = 5.0
# The seconds until the next discovery while kinds are missing that were served before.
_MISSED_SECONDS = 3.0


def discover(turn: Turn) -> None:
    turn.survey = replace(turn.survey, due=None)
    roots = tuple(map(discovering.Document, (*discovering.ROOTS, *facts_for(turn))))
    _fetch_documents(turn, discovering.begun({}, (turn.settings.marker, SYNCED)), roots)


def _fetch_documents(
    turn: Turn,
    discovery: discovering.Discovery,
    pages: tuple[discovering.Document, ...],
) -> None:
    """Fetch these documents, too."""
    pending = discovery.pending
    for page in pages:
        number = turn.next_serial()
        pending = pending.set(number, page)
        turn.requests = turn.requests.sent(number, ForDiscovery())
        seconds = discovering.patience_seconds(turn.survey.tries)
        turn.emit(Fetch(number, page.path, page.accept, seconds))
    asked = replace(discovery, pending=pending)
    turn.survey = replace(turn.survey, discovery=asked)


def on_document(turn: Turn, number: int, outcome: Outcome) -> None:
    discovery = turn.survey.discovery
    if discovery is None or number not in discovery.pending:
        return
    discovery, pages = _with_document(discovery, number, outcome)
    if not pages and not discovery.pending and discovery.statuses is None:
        told_of = _undescribed_kinds(turn, discovery)
        discovery, pages = discovering.describing(discovery, told_of)
    if pages or discovery.pending:
        _fetch_documents(turn, discovery, pages)
    else:
        turn.survey = replace(turn.survey, discovery=None)
        _on_discovered(turn, discovery)


def _with_document(
    discovery: discovering.Discovery, number: int, outcome: Outcome
) -> tuple[discovering.Discovery, tuple[discovering.Document, ...]]:
    """Return the discovery with one document; a malformed one counts as missing."""
    path = discovery.pending[number].path
    try:
        return discovering.answered(discovery, number, outcome)
    except Exception as problem:  # it comes from outside and may have any shape
        unread = Unknown(f"{path} cannot be read: {described(problem)}")
        return discovering.answered(discovery, number, unread)


def _undescribed_kinds(turn: Turn, found: discovering.Discovery) -> Iterator[Resource]:
    """The kinds that the operator writes to and whose status no document describes.

    The schemas of built-in kinds are closed.
    """
    catalogue = found.after(turn.survey.catalogue, turn.now.mono)
    known: set[Resource] = set()
    for each in turn.program.handlers:
        if each.selector is None or each.rule.family not in _TELLING:
            continue
        known.update(_found(turn, each, each.selector, catalogue) or ())
    changed = outdated(turn, found, catalogue)
    for resource in sorted({*known, *changed}, key=lambda each: each.key):
        is_told = resource.key in turn.survey.statuses and resource not in changed
        if not resource.is_built_in and not is_told:
            yield resource


_TELLING = frozenset((Family.CHANGE, Family.BACKGROUND, Family.RECONCILER))


def _on_discovered(turn: Turn, found: discovering.Discovery) -> None:
    listen(turn, found)
    has_any = found.resources or turn.survey.catalogue.resources
    if found.problem is not None and not has_any:
        _on_undiscovered(turn, found)
        return
    before = turn.survey.catalogue
    catalogue = found.after(before, turn.now.mono)
    statuses = Table({**turn.survey.statuses, **(found.statuses or NOTHING)})
    compare(turn, found, catalogue)
    turn.survey = replace(turn.survey, catalogue=catalogue, statuses=statuses)
    if turn.lifecycle.phase is Phase.STARTING:
        # It was for an effect of a startup handler: no objects are served yet.
        turn.survey = replace(turn.survey, tries=0, wanted=False)
        return
    if _is_mistaken(turn, is_known=found.problem is None):
        return
    turn.lifecycle = advance(turn.lifecycle, turn.now, Milestone.DISCOVERED)
    if found.problem is not None:
        turn.warn_once(
            f"unread {sorted(found.unread)}",
            f"not all kinds of the API server are known: {found.problem}",
        )
    discovered(turn)
    served = serve_kinds(turn, is_known=found.problem is None)
    complete = served and not lacks_peering(turn)
    look_around(turn, complete=complete)
    # A user must install the missing kind, and that may take long.
    waits = not complete or turn.survey.wanted
    in_vain = found.problem is not None or (waits and turn.survey.catalogue == before)
    tries = turn.survey.tries + 1 if in_vain else 0
    turn.survey = replace(turn.survey, tries=tries, wanted=False)
    look_in(turn, _seconds_to_next_look(turn, found, complete))
    announce_ready(turn)


def _is_mistaken(turn: Turn, *, is_known: bool) -> bool:
    """Whether the start must end, because handlers name mistyped kinds."""
    is_first = turn.lifecycle.phase is Phase.DISCOVERING
    if not is_first or turn.settings.wait_for_kinds:
        return False
    handlers, catalogue = turn.program.handlers, turn.survey.catalogue
    mistake = mistaken(handlers, catalogue, is_known=is_known)
    if mistake:
        turn.end(2, mistake)
    return bool(mistake)


def _seconds_to_next_look(
    turn: Turn, found: discovering.Discovery, complete: bool
) -> float:
    """The seconds until the next discovery."""
    wait = turn.settings.rediscovery_seconds
    if found.problem is not None:
        wait = _backoff_of(turn, found)
    elif not complete:
        wait = growing_seconds(turn.survey.tries, turn.jitter(), most=wait)
    wait = min(wait, until_heard(turn))
    if turn.survey.restless_until > turn.now.mono:
        wait = min(wait, turn.survey.restless_until - turn.now.mono)
    if turn.survey.catalogue.missed:
        wait = min(wait, _MISSED_SECONDS)
    return wait


def look_soon(turn: Turn) -> None:
    """Repeat discovery soon: the API server needs time to process a definition."""
    restless_until = turn.now.mono + _RESTLESS_SECONDS
    turn.survey = replace(turn.survey, restless_until=restless_until, tries=0)
    look_in(turn, SOON_SECONDS)


def look_in(turn: Turn, seconds: float) -> None:
    """Repeat discovery after at most this many seconds."""
    turn.survey = looking_by(turn.survey, turn.now.mono + seconds)


def _on_undiscovered(turn: Turn, found: discovering.Discovery) -> None:
    """Retry discovery after a backoff: the operator may start before its API server."""
    tries = turn.survey.tries + 1
    first = turn.lifecycle.phase is Phase.DISCOVERING
    if first and found.forbidden:
        remedy = "check the credentials of the kubeconfig's context"
        turn.end(1, f"the API server refuses this operator: {found.problem}; {remedy}")
        return
    wait = heeding(found.advice_seconds, backoff_seconds(tries, turn.jitter()))
    turn.survey = replace(turn.survey, tries=tries, due=turn.now.mono + wait)
    if first:
        text = f"the API server cannot be reached: {found.problem}"
        turn.say("warning", f"{text}; it is asked again in {wait:.1f} s{_REMEDY}")


_REMEDY = " (if this goes on, check the server's address in the kubeconfig)"


def _backoff_of(turn: Turn, found: discovering.Discovery) -> float:
    """The backoff for an API server in trouble (seconds)."""
    wait = backoff_seconds(turn.survey.tries, turn.jitter())
    return heeding(found.advice_seconds, wait)


def serve_kinds(turn: Turn, *, is_known: bool = True) -> bool:
    """Follow the kinds that handlers name; False if one is not served yet.

    `is_known` is False if some documents could not be read: a kind may be missing for
    that reason.
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
        is_broad = turn.survey.catalogue.is_broad(handler.selector)
        if not found or (len(found) > 1 and not is_broad):
            if found or is_known:
                _warn_unserved(turn, handler, found)
            continue
        handler, has_owners = _with_owners(turn, handler, is_known=is_known)
        handler, has_owned = _with_owned(turn, handler, is_known=is_known)
        complete = complete and has_owners and has_owned
        if not handler.rule.follows:
            continue
        for resource in found:
            if _may_be_served(turn, handler, resource):
                resources[resource.key] = resource
                by_resource.setdefault(resource.key, []).append(handler)
    _follow_all(turn, by_resource, resources)
    return complete


def _follow_all(
    turn: Turn, by_resource: dict[str, list[Handler]], resources: dict[str, Resource]
) -> None:
    """Follow these kinds for handlers, and no others."""
    wanted: dict[StreamKey, Stream] = {}
    owned_by = _owners_by_kind(turn, by_resource, resources)
    owners = Table({k: tuple(e.resource for e in v) for k, v in owned_by.items()})
    before = turn.objects.family.owners
    if owners != before:
        # Objects of kinds that are left, or move, have stopped being children.
        _put_owners(turn, Table({**before, **owners}))
    for key, handlers in by_resource.items():
        kind = turn.program.kind(
            resources[key],
            tuple(handlers),
            turn.settings,
            owned_by=owned_by.get(key, ()),
            status=turn.survey.statuses.get(key, UNDESCRIBED),
        )
        turn.survey = turn.survey.with_kind(kind)
        for stream in _streams_of(turn, kind):
            wanted[stream.key] = stream
    for stream in wanted.values():
        other = _in_another_version(turn, stream, wanted)
        if other is None:
            follow(turn, stream)
        else:
            move(turn, other, stream)
    for present in turn.streams.each(StreamPurpose.OBJECTS):
        if present.key not in wanted:
            leave(turn, present)
    if owners != before:
        _put_owners(turn, owners)


def _put_owners(turn: Turn, owners: Table[str, tuple[Resource, ...]]) -> None:
    turn.objects.family = replace(turn.objects.family, owners=owners)


def _in_another_version(
    turn: Turn, stream: Stream, wanted: Mapping[StreamKey, Stream]
) -> Stream | None:
    """The stream of the same objects in a version that no handler needs now."""
    if stream.key in turn.streams.followed:
        return None
    collection = stream.resource.label, stream.namespace
    for each in turn.streams.each(StreamPurpose.OBJECTS):
        same = (each.resource.label, each.namespace) == collection
        if same and each.key not in wanted:
            return each
    return None


def _owners_by_kind(
    turn: Turn, by_resource: dict[str, list[Handler]], resources: dict[str, Resource]
) -> dict[str, tuple[OwnedBy, ...]]:
    """The kinds that own others, by the owned kind; owned kinds are followed, too."""
    found: dict[str, tuple[OwnedBy, ...]] = {}
    for key, handlers in tuple(by_resource.items()):
        owning = [each for each in handlers if each.owned]
        given = turn.settings.selectors_for(resources[key])
        selects = owning and selectors_of(handlers, given)
        for handler in owning:
            owner = OwnedBy(resources[key], handler, selects == Selectors())
            for owned in handler.owned.values():
                by_resource.setdefault(owned.key, [])
                resources.setdefault(owned.key, owned)
                found[owned.key] = (*found.get(owned.key, ()), owner)
    return found


def _with_owned(
    turn: Turn, handler: Handler, *, is_known: bool
) -> tuple[Handler, bool]:
    """The handler with the kinds of `owns=`; False if one is missing."""
    if not handler.owns:
        return handler, True
    owned: dict[str, Resource] = {}
    for word, selector in handler.owns:
        found = _found(turn, handler, selector) or ()
        if len(found) == 1:
            owned[word] = found[0]
        elif is_known:
            near = turn.survey.catalogue.nearest(selector)
            hint = f"; did you mean {near!r}?" if near and not found else ""
            lack = "several kinds of the name" if found else "no"
            text = (
                f"the API server serves {lack} {word!r}, which {handler.id} owns{hint}"
            )
            turn.warn_once(f"owned {word} {handler.id}", text)
    return replace(handler, owned=Table(owned)), len(owned) == len(handler.owns)


def _found(
    turn: Turn,
    handler: Handler,
    selector: Selector,
    catalogue: Catalogue | None = None,
) -> tuple[Resource, ...] | None:
    """The kinds that a handler selects; None if its own function fails."""
    try:
        return (catalogue or turn.survey.catalogue).find(selector)
    except BaseException as problem:
        about = f"selector {handler.id}"
        if turn.is_first(about):
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
    """The handler with the kinds of `owner=`; False if they are missing."""
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
    """The verbs that this handler needs and a kind does not support."""
    follows = ("list", "watch") if handler.rule.follows else ()
    needed = {*follows, *handler.rule.verbs}
    if "delete" in resource.verbs:
        # While a definition is terminating, discovery omits the verbs that create and
        # change objects. Clients can still remove finalizers (apiextensions-apiserver).
        needed -= {"patch"}
    return frozenset(needed.difference(resource.verbs) if resource.verbs else ())


def _may_be_served(turn: Turn, handler: Handler, resource: Resource) -> bool:
    """Whether a kind can be followed, and written if the handler needs to."""
    missing = missing_verbs(handler, resource)
    if not missing:
        return True
    selector = handler.selector
    if selector is not None and turn.survey.catalogue.is_broad(selector):
        return False  # no handler names exactly this kind
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


def _streams_of(turn: Turn, kind: Kind) -> list[Stream]:
    """The streams of a kind: one for the cluster, or one for each namespace."""
    resource = kind.resource
    refused = turn.survey.unselectable.get(resource.key, frozenset())
    selectors = without_fields(kind.selectors, refused)
    given = turn.settings.namespaces
    if not resource.namespaced or given is None:
        places: tuple[str | None, ...] = (None,)
    else:
        places = served_namespaces(given, turn.survey.namespaces or ())
    return [
        Stream(resource, each, selectors, metadata_only=kind.metadata_only)
        for each in places
    ]


# ------------------------------------ definitions, namespaces, peering objects


def look_around(turn: Turn, *, complete: bool) -> None:
    """Follow the definitions and namespaces, if the operator depends on them.

    An operator that is restricted to named namespaces requests nothing outside them.
    """
    given = turn.settings.namespaces
    patterns = given is not None and has_patterns(given)
    selectors = [each.selector for each in turn.program.handlers if each.selector]
    if (given is None or patterns) and (
        not complete
        or any(map(turn.survey.catalogue.is_broad, selectors))
        or asks_for_kinds(turn)
    ):
        _follow_kind(turn, DEFINITIONS, StreamPurpose.KINDS)
    if patterns:
        _follow_kind(turn, NAMESPACES, StreamPurpose.NAMESPACES)
    look_at_peers(turn)


def look_at_peers(turn: Turn) -> None:
    """Follow the peering objects that exist, and no others."""
    wanted = {each.key: each for each in peer_streams(turn)}
    for stream in turn.streams.each(StreamPurpose.PEERS):
        if stream.key not in wanted:
            unfollow(turn, stream)
    for stream in wanted.values():
        follow(turn, stream)


def _follow_kind(turn: Turn, key: str, purpose: StreamPurpose) -> None:
    for resource in turn.survey.catalogue.resources:
        if resource.key == key:
            follow(turn, Stream(resource, None, purpose=purpose))
