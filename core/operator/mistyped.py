"""Kinds that handlers can never find: ambiguous names, and typing errors.

They end the start of the operator: it would serve nothing, and the user would not
notice. A kind that resembles no other may be defined later, so fnop waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource, Selector
from fnop.core.handlers.declare.handler import Handler
from fnop.core.values.errors import joined
from fnop.core.values.similarity import similar
from fnop.effects.structs import replace

__all__ = ["groups_like", "mistaken"]

# The least similarity (difflib's ratio) of a group that counts as a typing error of
# another. It is higher than the similarity of `networking.gke.io` and
# `networking.k8s.io`, which are two groups (0.88). If the other group has a kind of the
# same name, less is enough.
_LIKENESS_OF_GROUPS = 0.9
_LIKENESS_OF_GROUPS_WITH_THE_KIND = 0.8


class _Named(NamedTuple):
    """A kind that an author names, and its use."""

    selector: Selector
    text: str
    use: str


def mistaken(
    handlers: Iterable[Handler], catalogue: Catalogue, *, is_known: bool = True
) -> str:
    """The reason why the operator must not start: ambiguous or mistyped kinds.

    It is "" without any. `is_known` is False if some documents of discovery could not
    be read: a kind may be missing for that reason.
    """
    naming: dict[_Named, list[Handler]] = {}
    for handler in handlers:
        for named in _selectors_of(handler):
            naming.setdefault(named, []).append(handler)
    found = (_doubt_about(each, naming[each], catalogue, is_known) for each in naming)
    text = "; ".join(filter(None, found))
    return f"{text} (or let it wait for kinds with --wait-for-kinds)" if text else ""


def _selectors_of(handler: Handler) -> Iterator[_Named]:
    if handler.selector is not None:
        yield _Named(handler.selector, str(handler.selector), "handles")
    if handler.owner is not None:
        yield _Named(handler.owner, str(handler.owner), "takes for owners")
    for word, selector in handler.owns:
        yield _Named(selector, word, "owns")


def _doubt_about(
    named: _Named, handlers: list[Handler], catalogue: Catalogue, is_known: bool
) -> str:
    selector, text, use = named
    if catalogue.is_broad(selector):
        return ""
    found = catalogue.find(selector)
    ids = joined([_label_of(each) for each in handlers])
    if len(found) > 1 and use != "takes for owners":  # owners may be of several kinds
        kinds = joined([each.label for each in found])
        first = found[0].label
        return (
            f"{text!r}, which {ids} {use}, means {kinds}: name the group too, such as "
            f"{first!r}"
        )
    near = "" if found or not is_known else _nearest_kind(selector, catalogue)
    if not near:
        return ""
    return (
        f"the API server serves no kind {text!r}, which {ids} {use}: did you mean "
        f"{near}?"
    )


def _label_of(handler: Handler) -> str:
    return f"{handler.id} ({handler.place})" if handler.place else handler.id


def _nearest_kind(selector: Selector, catalogue: Catalogue) -> str:
    """The intended kind if the selector has a typing error, else "".

    A group that does not exist, and resembles no other, may be defined later with all
    its kinds. A group without a dot belongs to Kubernetes itself, and comes with the
    API server.

    >>> kinds = (Resource("example.com", "v1", "claims", "Claim"),)
    >>> names = ("clams", "claims.exmaple.com", "boats", "claims.fnop.dev")
    >>> [_nearest_kind(Selector.of(each), Catalogue(kinds)) for each in names]
    ["'claims.example.com'", "'claims.example.com'", '', '']
    >>> _nearest_kind(Selector.of("claims.v2.example.com"), Catalogue(kinds))
    "'claims.v1.example.com'"
    """
    versions = catalogue.find(replace(selector, version=None))
    if versions:
        return joined([repr(each.key.rstrip(".")) for each in versions])
    group = selector.group
    if group is not None and "." in group:
        groups = groups_like(group, catalogue.resources) or _groups_with(
            selector, group, catalogue
        )
        some = tuple(each for each in catalogue.resources if each.group in groups)
        catalogue = replace(catalogue, resources=some)
    near = catalogue.nearest(selector)
    return repr(near) if near else ""


def groups_like(group: str, resources: Iterable[Resource]) -> list[str]:
    """The served group of this name, or those that it may be a typing error of."""
    groups = {each.group for each in resources}
    if group in groups:
        return [group]
    return similar(group, groups, _LIKENESS_OF_GROUPS)


def _groups_with(selector: Selector, group: str, catalogue: Catalogue) -> list[str]:
    """The groups with a kind of this name that may be intended; not Kubernetes' own."""
    same = catalogue.find(replace(selector, group=None, version=None))
    groups = {each.group for each in same if not each.is_built_in}
    return similar(group, groups, _LIKENESS_OF_GROUPS_WITH_THE_KIND)
