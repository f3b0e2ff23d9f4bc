"""Which kinds the API server serves, asked document by document.

`/api` and `/apis` name the groups and versions, one document each names the
kinds.  A group version that cannot be read (an aggregated API that is down) is
left out; the rest is served.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from immutables import Map

from fnop.core.resources import Catalogue, Resource, parse_resource_list
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
    """A round of questions.  `problem` is the first answer that was none."""

    pending: Map[int, Page]
    resources: tuple[Resource, ...] = ()
    problem: str | None = None
    forbidden: bool = False

    @property
    def catalogue(self) -> Catalogue:
        """What has been found, in an order that does not depend on the answers'."""
        return Catalogue(
            tuple(sorted(self.resources, key=lambda each: (each.group, each.key)))
        )


def begun(pages: dict[int, Page]) -> Discovery:
    """A round with these questions under way."""
    return Discovery(Map(pages))


def answered(
    discovery: Discovery, id: int, outcome: Outcome
) -> tuple[Discovery, tuple[Page, ...]]:
    """Take one document in; the pages that are to be asked for next."""
    page = discovery.pending[id]
    pending = discovery.pending.delete(id)
    match outcome:
        case Applied(object=dict() as document):
            pages, found = _read(page, document)
            resources = (*discovery.resources, *found)
            return (
                Discovery(pending, resources, discovery.problem, discovery.forbidden),
                pages,
            )
        case Missing():
            return Discovery(
                pending, discovery.resources, discovery.problem, discovery.forbidden
            ), ()
        case _:
            message = str(getattr(outcome, "message", "no document"))
            problem = message if page.path in ROOTS else None
            return Discovery(
                pending,
                discovery.resources,
                discovery.problem or problem,
                discovery.forbidden
                or (isinstance(outcome, Refused) and outcome.status in (401, 403)),
            ), ()


def _read(
    page: Page, document: dict[str, Any]
) -> tuple[tuple[Page, ...], tuple[Resource, ...]]:
    if page.path == "/api":
        return tuple(
            Page(f"/api/{version}", "", version)
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
                    f"/apis/{group['name']}/{version}",
                    group["name"],
                    version,
                    version == preferred,
                )
            )
    return pages
