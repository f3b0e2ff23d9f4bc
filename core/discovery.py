"""Which kinds the API server serves, asked document by document.

`/api` and `/apis` name the groups and versions, one document each names the
kinds.  A group version that cannot be read (an aggregated API that is down) is
left out; the rest is served.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from immutables import Map

from fnop.core.evolve import replace
from fnop.core.resources import Catalogue, Resource, parse_resource_list, segment
from fnop.effects.outcomes import Applied, Missing, Outcome, Refused

__all__ = ["ROOTS", "Discovery", "Page", "answered", "begun"]

ROOTS = ("/api", "/apis")


@dataclass(frozen=True, slots=True)
class Page:
    """One document that has been asked for."""

    path: str
    group: str = ""
    version: str = ""
    preferred: bool = True


@dataclass(frozen=True, slots=True)
class Discovery:
    """A round of questions.  `problem` is the first answer that was none.

    `unread` are the groups and versions that are there and could not be read.
    """

    pending: Map[int, Page]
    resources: tuple[Resource, ...] = ()
    problem: str | None = None
    forbidden: bool = False
    unread: frozenset[tuple[str, str]] = frozenset()

    @property
    def catalogue(self) -> Catalogue:
        """What has been found, in an order that does not depend on the answers'."""
        return _sorted(self.resources)

    def after(self, before: Catalogue) -> Catalogue:
        """What is served now; of what could not be read, what was served before."""
        kept = [
            each
            for each in before.resources
            if (each.group, each.version) in self.unread or not self.saw(each.group)
        ]
        return replace(_sorted((*self.resources, *kept)), complete=self.problem is None)

    def saw(self, group: str) -> bool:
        """Whether the document that names a group could be read."""
        return ("/apis" if group else "/api") not in {path for path, _ in self.unread}


def _sorted(resources: Iterable[Resource]) -> Catalogue:
    found = {each.key: each for each in resources}
    return Catalogue(
        tuple(sorted(found.values(), key=lambda each: (each.group, each.key)))
    )


def begun(pages: dict[int, Page]) -> Discovery:
    """A round with these questions under way."""
    return Discovery(Map(pages))


def answered(
    discovery: Discovery, id: int, outcome: Outcome
) -> tuple[Discovery, tuple[Page, ...]]:
    """Take one document in; the pages that are to be asked for next."""
    page = discovery.pending[id]
    discovery = replace(discovery, pending=discovery.pending.delete(id))
    match outcome:
        case Applied(object=dict() as document):
            return _with_document(discovery, page, document)
        case Missing():
            return discovery, ()
        case _:
            return _unread(discovery, page, outcome), ()


def _with_document(
    discovery: Discovery, page: Page, document: dict[str, Any]
) -> tuple[Discovery, tuple[Page, ...]]:
    """Take a document in; one of another shape than is documented is none."""
    try:
        pages, found = _read(page, document)
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        text = f"{page.path} is no document of discovery: {problem!r}"
        return _unread(discovery, page, Refused(200, text)), ()
    resources = (*discovery.resources, *found)
    return replace(discovery, resources=resources), pages


def _unread(discovery: Discovery, page: Page, outcome: Outcome) -> Discovery:
    """A document that is not to be had: what it would say is not known."""
    is_root = page.path in ROOTS
    message = str(getattr(outcome, "message", "no document"))
    refused = isinstance(outcome, Refused) and outcome.status in (401, 403)
    what = (page.path, "") if is_root else (page.group, page.version)
    return replace(
        discovery,
        problem=discovery.problem or f"{page.path}: {message}",
        forbidden=discovery.forbidden or refused,
        unread=discovery.unread | {what},
    )


def _read(
    page: Page, document: dict[str, Any]
) -> tuple[tuple[Page, ...], tuple[Resource, ...]]:
    if page.path == "/api":
        return tuple(
            Page(f"/api/{segment(version)}", "", version)
            for version in document.get("versions") or ()
        ), ()
    if page.path == "/apis":
        return tuple(_group_pages(document)), ()
    return (), tuple(
        parse_resource_list(
            document, page.group, page.version, preferred=page.preferred
        )
    )


def _group_pages(document: dict[str, Any]) -> list[Page]:
    pages = []
    for group in document.get("groups") or ():
        preferred = (group.get("preferredVersion") or {}).get("version")
        for each in group.get("versions") or ():
            version = each["version"]
            pages.append(
                Page(
                    f"/apis/{segment(group['name'])}/{segment(version)}",
                    group["name"],
                    version,
                    version == preferred,
                )
            )
    return pages
