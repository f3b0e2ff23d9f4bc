"""Handlers that are called for no kind, since the API server serves none of theirs.

On a cluster such a kind is waited for: it may come.  Who runs an operator in a cluster
of their own making, a simulated one, has most likely mistyped it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import NamedTuple

from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Selector
from fnop.core.handlers.handler import Handler
from fnop.core.handlers.program import Kind
from fnop.core.operator.survey import missing_verbs
from fnop.core.values.errors import joined
from fnop.core.values.evolve import replace

__all__ = ["Unserved", "unserved"]

# How much a group is like another one that may have been meant (difflib's ratio):
# more than `networking.gke.io` is like `networking.k8s.io`, which are two (0.88).
_LIKENESS_OF_GROUPS = 0.9


class Unserved(NamedTuple):
    """What a selector has found nothing for, in a sentence.

    It is a `mistake`, unless nothing of its whole group is there and other handlers
    have kinds: who follows what others may have installed does without.
    """

    sentence: str
    is_mistake: bool


def unserved(
    handlers: Iterable[Handler],
    kinds: Mapping[str, Kind],
    catalogue: Catalogue,
    server: str = "the API server",
) -> tuple[Unserved, ...]:
    """What there is to say of each selector whose handlers have never had a kind.

    `kinds` are those that have been served so far.  What several kinds may fit, such as
    a pattern, may fit none; unless no handler of all has one.
    """
    served = {_mark(each) for kind in kinds.values() for each in _all_of(kind)}
    idle: dict[Selector, list[Handler]] = {}
    for each in handlers:
        if each.selector is not None and _mark(each) not in served:
            idle.setdefault(each.selector, []).append(each)
        elif each.owner is not None and not _has_any(each.owner, catalogue):
            idle.setdefault(each.owner, []).append(each)
    return tuple(
        _judged(selector, names, catalogue, server, others_work=bool(served))
        for selector, names in idle.items()
        if not (selector.is_broad and served)
    )


def _has_any(owner: Selector, catalogue: Catalogue) -> bool:
    """Whether objects may have such owners."""
    return owner.is_broad or bool(catalogue.find(owner))


def _all_of(kind: Kind) -> tuple[Handler, ...]:
    return (*kind.changes, *kind.event_handlers, *kind.background, *kind.indexers)


def _mark(handler: Handler) -> tuple[object, ...]:
    """What tells a handler from others, whatever is known of its owners by now."""
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
    if selector.is_broad:
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
    """Whether it names a group of which nothing is there, and that is no slip.

    It is one where the group is like another one, or has a kind of the same name as
    a group that is not of Kubernetes.

    >>> from fnop.core.api.resources import Resource
    >>> served = Catalogue((Resource("example.com", "v1", "claims", "Claim"),))
    >>> _is_foreign(Selector.of("claims.exmaple.com"), served)
    False
    >>> _is_foreign(Selector.of("claims.fnop.dev"), served)
    False
    >>> _is_foreign(Selector.of("issuers.cert-manager.io"), served)
    True
    """
    groups = {each.group for each in catalogue.resources}
    group = selector.group
    if not group or "." not in group or group in groups:
        return False  # a group without a dot is one of Kubernetes' own
    if get_close_matches(group, groups, 1, _LIKENESS_OF_GROUPS):
        return False
    same = catalogue.find(replace(selector, group=None, version=None))
    return all(each.is_built_in for each in same)
