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

__all__ = ["GRACE_SECONDS", "ROOTS", "Discovery", "Page", "answered", "begun"]

ROOTS = ("/api", "/apis")
# So long a kind that the API server serves no more counts as served.
GRACE_SECONDS = 15.0


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

    def after(self, before: Catalogue, now: float) -> Catalogue:
        """What is served at the monotonic time `now`.

        Of what could not be read, that is what was served before; and so it is for a
        while of what is there no more: an API server that has just started does not
        know all of its kinds yet.
        """
        found = {each.key for each in self.resources}
        unread = [
            each
            for each in before.resources
            if (each.group, each.version) in self.unread or not self.saw(each.group)
        ]
        found.update(each.key for each in unread)
        since = dict(before.missed)
        missed = {
            each.key: since.get(each.key, now)
            for each in before.resources
            if each.key not in found and now < since.get(each.key, now) + GRACE_SECONDS
        }
        kept = [each for each in before.resources if each.key in missed]
        return replace(
            _sorted((*self.resources, *unread, *kept)),
            complete=self.problem is None,
            missed=tuple(missed.items()),
        )

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
