"""Handlers without any kind, since the API server serves none of theirs.

On a cluster, the operator waits for such a kind: it may be installed later. In a
simulated cluster, which its author has set up, it is most likely a typing error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Selector
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.program.program import Kind
from fnop.core.operator.mistyped import groups_like
from fnop.core.operator.survey import missing_verbs
from fnop.core.values.errors import joined
from fnop.effects.structs import replace

__all__ = ["Unserved", "unserved"]


class Unserved(Struct, frozen=True):
    """A selector that selects no kind, as a sentence.

    It is a `mistake`, unless its whole group is missing and other handlers have kinds.
    Then the operator follows kinds that are optional in a cluster.
    """

    sentence: str
    is_mistake: bool


def unserved(
    handlers: Iterable[Handler],
    kinds: Mapping[str, Kind],
    catalogue: Catalogue,
    server: str = "the API server",
) -> tuple[Unserved, ...]:
    """The selectors whose handlers have never had a kind, each as a sentence.

    `kinds` are the ones that have been served so far. A selector that may select
    several kinds, such as a pattern, may also select none. But then at least one
    handler must have a kind.
    """
    handlers = tuple(handlers)
    served = {
        _identity_of(each) for kind in kinds.values() for each in _handlers_of(kind)
    }
    # Admission handlers are called without following their kinds.
    served |= {_identity_of(each) for each in handlers if _is_asked(each, catalogue)}
    idle: dict[Selector, list[Handler]] = {}
    for each in handlers:
        if each.selector is not None and _identity_of(each) not in served:
            idle.setdefault(each.selector, []).append(each)
        elif each.owner is not None and not _has_any(each.owner, catalogue):
            idle.setdefault(each.owner, []).append(each)
    return tuple(
        _judged(selector, names, catalogue, server, others_work=bool(served))
        for selector, names in idle.items()
        if not (served and catalogue.is_broad(selector))
    )


def _has_any(owner: Selector, catalogue: Catalogue) -> bool:
    """Whether objects may have such owners."""
    return catalogue.is_broad(owner) or bool(catalogue.find(owner))


def _is_asked(handler: Handler, catalogue: Catalogue) -> bool:
    if handler.rule.follows or handler.selector is None:
        return False
    found = catalogue.find(handler.selector)
    return len(found) == 1 or (bool(found) and catalogue.is_broad(handler.selector))


def _handlers_of(kind: Kind) -> tuple[Handler, ...]:
    return (
        *kind.changes,
        *kind.event_handlers,
        *kind.log_handlers,
        *kind.background,
        *kind.reconcilers,
        *kind.indexers,
    )


def _identity_of(handler: Handler) -> tuple[object, ...]:
    """The identity of a handler, whether or not its owners are known yet."""
    return handler.id, handler.role, handler.selector


def _judged(
    selector: Selector,
    handlers: list[Handler],
    catalogue: Catalogue,
    server: str,
    *,
    others_work: bool,
) -> Unserved:
    names = list(dict.fromkeys(each.id for each in handlers))
    so = f"so {joined(names)} {'is' if len(names) == 1 else 'are'} not called"
    if catalogue.is_broad(selector):
        return Unserved(
            f"no kind that {server} serves fits {str(selector)!r}, {so}", True
        )
    found = catalogue.find(selector)
    if len(found) > 1:
        kinds = ", ".join(each.key for each in found)
        text = f"{str(selector)!r} is ambiguous, {so}: {kinds}; name the group, too"
        return Unserved(text, True)
    if found:
        missing = ", ".join(sorted(missing_verbs(handlers[0], found[0])))
        return Unserved(f"{found[0].key} does not support {missing}, {so}", True)
    if _is_foreign(selector, catalogue) and others_work:
        return Unserved(
            f"{server} has nothing of the group {selector.group}, {so}", False
        )
    near = catalogue.nearest(selector)
    hint = f"did you mean {near!r}?" if near else "is its definition missing?"
    return Unserved(f"{server} serves no kind {str(selector)!r}, {so}; {hint}", True)


def _is_foreign(selector: Selector, catalogue: Catalogue) -> bool:
    """Whether its group is missing, and is not a typing error.

    It is a typing error if the group resembles another one, or if a group outside of
    Kubernetes has a kind of the same name.

    >>> from fnop.core.api.resources import Resource
    >>> served = Catalogue((Resource("example.com", "v1", "claims", "Claim"),))
    >>> _is_foreign(Selector.of("claims.exmaple.com"), served)
    False
    >>> _is_foreign(Selector.of("claims.fnop.dev"), served)
    False
    >>> _is_foreign(Selector.of("issuers.cert-manager.io"), served)
    True
    """
    group = selector.group
    if not group or "." not in group:
        return False  # a group without a dot is one of Kubernetes' own
    if groups_like(group, catalogue.resources):
        return False
    same = catalogue.find(replace(selector, group=None, version=None))
    return all(each.is_built_in for each in same)
