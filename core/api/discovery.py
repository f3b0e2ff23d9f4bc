"""API discovery: the kinds that the API server serves.

Since Kubernetes 1.27 the two roots, `/api` and `/apis`, list all kinds (aggregated
discovery, KEP-3352). The roots of older servers list only the groups and versions; one
document for each of these lists the kinds. A group version that cannot be read (an
aggregated API that is down) is skipped; the others are served.

Once the kinds are known, further documents describe the statuses of the kinds that
handlers name (fnop.core.api.statuses). Others show the server's version, and which
schemas have changed. It is not an error if these cannot be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any

from immutables import Map
from msgspec import Struct, field

from fnop.core.api.catalogue import Catalogue, parse_aggregated, parse_resource_list
from fnop.core.api.cluster_changes import ServerVersion
from fnop.core.api.resources import Resource, group_parts, segment, version_rank
from fnop.core.api.statuses import (
    DEFINITIONS,
    StatusSchema,
    definition_path,
    document_path,
    only_statuses,
    schemas_in,
    statuses_in,
)
from fnop.core.values.table import NOTHING, Table
from fnop.effects.outcomes import Applied, Missing, Outcome, Refused, Unreachable
from fnop.effects.structs import replace
from fnop.effects.values import ReadOnlyDict

__all__ = [
    "GRACE_SECONDS",
    "ROOTS",
    "SCHEMAS",
    "VERSION",
    "Discovery",
    "Document",
    "answered",
    "begun",
    "describing",
    "lists_kinds",
    "patience_seconds",
    "trimmed",
]

ROOTS = ("/api", "/apis")
VERSION = "/version"
# Lists the schema documents, each with a hash (OpenAPI v3; Kubernetes 1.24).
SCHEMAS = "/openapi/v3"
_PLAIN = "application/json"
_AGGREGATED = "APIGroupDiscoveryList"
# Servers answer in the first form that they support: v2 since 1.30, v2beta1 since 1.27.
_ACCEPT = ",".join(
    [
        *(
            f"{_PLAIN};g=apidiscovery.k8s.io;v={version};as={_AGGREGATED}"
            for version in ("v2", "v2beta1")
        ),
        _PLAIN,
    ]
)
# The grace period of a kind that has disappeared from discovery: it still counts as
# served.
GRACE_SECONDS = 15.0


class Document(Struct, frozen=True):
    """One document of discovery to request.

    Some documents `describe` the statuses of resources.
    """

    path: str
    group: str = ""
    version: str = ""
    preferred: bool = True
    describes: tuple[Resource, ...] = ()

    @property
    def accept(self) -> str:
        """The request's Accept header."""
        return _ACCEPT if self.path in ROOTS else _PLAIN


# The place of a group and version in the group's list; the preferred version has 0.
Ranks = Mapping[tuple[str, str], int]


class Contents(Struct, frozen=True):
    """The content of a document: kinds, documents to read next, and stale ones.

    Documents that list groups have the `ranks` of their versions.
    """

    resources: tuple[Resource, ...] = ()
    pages: tuple[Document, ...] = ()
    stale: tuple[Document, ...] = ()
    ranks: Ranks = NOTHING


class Discovery(Struct, frozen=True):
    """A round of discovery: pending requests, and resources found so far.

    `parts` are the contents of each document. `problem` is the first error. `unread`
    are the groups and versions that exist but could not be read. `advice_seconds` is
    the server's advice (Retry-After). `statuses` are the statuses of kinds, None until
    requested; `types` are the types of the operator's conditions. `schemas` are digests
    of schemas, by the keys of resources. `hashes` are the hashes of whole schema
    documents, by group and version, None if no server provides them. `version` is the
    server's.
    """

    pending: Map[int, Document]
    types: tuple[str, ...] = ()
    parts: tuple[Contents, ...] = ()
    problem: str | None = None
    forbidden: bool = False
    unread: frozenset[tuple[str, str]] = frozenset()
    advice_seconds: float = 0.0
    statuses: Table[str, StatusSchema] | None = None
    schemas: Table[str, str] = field(default_factory=Table)
    hashes: Table[tuple[str, str], str] | None = None
    version: ServerVersion | None = None

    @property
    def is_unanswered(self) -> bool:
        """Whether the API server has not answered at all."""
        return self.problem is not None and not self.parts and not self.forbidden

    @property
    def resources(self) -> tuple[Resource, ...]:
        """The resources found so far."""
        return tuple(chain.from_iterable(each.resources for each in self.parts))

    @property
    def ranks(self) -> Ranks:
        """The places of the versions in their groups, as far as groups are listed."""
        return {of: rank for each in self.parts for of, rank in each.ranks.items()}

    @property
    def catalogue(self) -> Catalogue:
        """The found resources, in an order independent of the answers' order."""
        known = _CATALOGUES.get(key := tuple(map(id, self.parts)))
        if known is None:
            if len(_CATALOGUES) >= _KEPT_MAX:
                _CATALOGUES.clear()
            known = _CATALOGUES[key] = (
                self.parts,
                _sort_resources(self.resources, self.ranks),
            )
        return known[1]

    def after(self, before: Catalogue, now: float) -> Catalogue:
        """The catalogue at the monotonic time `now`, from this round and the last.

        Kinds of groups that could not be read stay as they were. Kinds that have
        disappeared stay for `GRACE_SECONDS`: an API server that has just started does
        not know all of its kinds yet.
        """
        fresh = self.catalogue
        was_same = before.resources is fresh.resources or not before.resources
        if was_same and self.problem is None:
            return fresh
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
        known = _sort_resources((*self.resources, *unread, *kept), self.ranks, missed)
        is_complete = self.problem is None
        return Catalogue(known.resources, is_complete, tuple(missed.items()))

    def saw(self, group: str) -> bool:
        """Whether the document that lists a group could be read."""
        return ("/apis" if group else "/api") not in {path for path, _ in self.unread}


def _sort_resources(
    resources: Iterable[Resource], ranks: Ranks, missed: Container[str] = ()
) -> Catalogue:
    """The catalogue in its order, with one preferred version of each kind.

    The resources with the keys `missed` have disappeared.
    """
    found = {each.key: each for each in resources}
    versions: dict[tuple[str, str], list[Resource]] = {}
    for each in found.values():
        versions.setdefault((each.group, each.plural), []).append(each)
    every = chain.from_iterable(
        _rank_versions(some, ranks, missed) for some in versions.values()
    )
    return Catalogue(tuple(sorted(every, key=lambda each: (each.group, each.key))))


def _rank_versions(
    versions: list[Resource], ranks: Ranks, missed: Container[str]
) -> Iterable[Resource]:
    """The versions of a kind, one of them preferred.

    As in kubectl (client-go's restmapper), the preferred version is the group's.
    Otherwise it is the first in the group's list that has the kind. A version that
    could not be read and was unknown before does not hide another. A version that has
    disappeared comes last.
    """

    def place(each: Resource) -> tuple[Any, ...]:
        rank = ranks.get((each.group, each.version), _UNLISTED)
        age = version_rank(each.version)
        return each.key in missed, rank, not each.preferred, age

    best = min(versions, key=place)
    return [
        each
        if each.preferred == (each is best)
        else replace(each, preferred=each is best)
        for each in versions
    ]


# The rank of a version that its group does not list: after all others.
_UNLISTED = 1 << 16

# An answer takes a fraction of a second; a lost request is never answered.
_PATIENCE_SECONDS, _PATIENCE_MAX_SECONDS = 10.0, 60.0


def patience_seconds(tries: int) -> float:
    """The timeout of a discovery request, after a number of failed rounds.

    It grows, so that even a slow server is eventually read.

    >>> [patience_seconds(tries) for tries in (0, 1, 2, 3, 10_000)]
    [10.0, 20.0, 40.0, 60.0, 60.0]
    """
    return min(_PATIENCE_SECONDS * 2.0 ** min(tries, 8), _PATIENCE_MAX_SECONDS)


def begun(pages: dict[int, Document], types: tuple[str, ...] = ()) -> Discovery:
    """A round that has requested these documents, by request id.

    The operator reports about objects with conditions of these `types`.
    """
    return Discovery(Map(pages), types)


def describing(
    discovery: Discovery, resources: Iterable[Resource]
) -> tuple[Discovery, tuple[Document, ...]]:
    """The round, and the documents that describe these resources' statuses."""
    groups: dict[tuple[str, str], list[Resource]] = {}
    for each in resources:
        groups.setdefault((each.group, each.version), []).append(each)
    pages = (Document(document_path(*of), *of, True, (*e,)) for of, e in groups.items())
    return replace(discovery, statuses=discovery.statuses or NOTHING), tuple(pages)


def answered(
    discovery: Discovery, id: int, outcome: Outcome
) -> tuple[Discovery, tuple[Document, ...]]:
    """Add one answer to the round; return it and the documents to request next."""
    page = discovery.pending[id]
    discovery = replace(discovery, pending=discovery.pending.delete(id))
    if page.describes:
        return _add_statuses(discovery, page, outcome)
    if page.path in (VERSION, SCHEMAS):
        return _with_fact(discovery, page, outcome), ()
    match outcome:
        case Applied(object=dict() as document):
            return _with_document(discovery, page, document)
        case Missing():
            return discovery, ()
        case _:
            return _add_unread(discovery, page, outcome), ()


def lists_kinds(path: str) -> bool:
    """Whether a path's document lists kinds; others describe their statuses."""
    return path.startswith(ROOTS) and not path.startswith(DEFINITIONS)


def trimmed(path: str, document: Any) -> Any:
    """Return the document of a path, without the parts that the operator never reads.

    >>> trimmed("/openapi/v3/apis/example.com/v1", {"openapi": "3.0.0", "info": {}})
    {'components': {'schemas': {}}}
    """
    if lists_kinds(path) or path in (VERSION, SCHEMAS):
        return document
    try:
        return only_statuses(document)
    except (AttributeError, KeyError, TypeError):
        return document  # malformed, so it is never read


def _with_fact(discovery: Discovery, page: Document, outcome: Outcome) -> Discovery:
    """Add the version, or the hashes of schemas, to the round, if present."""
    told = outcome.object if isinstance(outcome, Applied) else None
    if page.path == VERSION:
        return replace(discovery, version=ServerVersion.of(told))
    paths = told.get("paths") if isinstance(told, dict) else None
    if not isinstance(paths, dict):
        return discovery
    hashes: dict[tuple[str, str], str] = {}
    for path, where in paths.items():
        url = where.get("serverRelativeURL") if isinstance(where, dict) else None
        match str(path).split("/"):
            case ["apis", group, version] if isinstance(url, str):
                hashes[group, version] = url.partition("?hash=")[2]
            case _:
                pass
    return replace(discovery, hashes=Table(hashes))


def _add_statuses(
    discovery: Discovery, page: Document, outcome: Outcome
) -> tuple[Discovery, tuple[Document, ...]]:
    """Add statuses to the round; read definitions for kinds that are missing.

    Servers before 1.24 have no such document. Others take a while until theirs has a
    new kind. If no document describes it, fnop finds out by trial.
    """
    found: Table[str, StatusSchema] = NOTHING
    schemas = discovery.schemas
    if isinstance(outcome, Applied) and isinstance(outcome.object, dict):
        with suppress(AttributeError, KeyError, TypeError, ValueError):
            found = statuses_in(outcome.object, page.describes, discovery.types)
            schemas = Table({**schemas, **schemas_in(outcome.object, page.describes)})
    statuses = Table({**(discovery.statuses or NOTHING), **found})
    missing = [each for each in page.describes if each.key not in found]
    pages = (Document(definition_path(each), describes=(each,)) for each in missing)
    is_final = page.path.startswith(DEFINITIONS)
    discovery = replace(discovery, statuses=statuses, schemas=schemas)
    return discovery, () if is_final else tuple(pages)


def _with_document(
    discovery: Discovery, page: Document, document: dict[str, Any]
) -> tuple[Discovery, tuple[Document, ...]]:
    """Add a document to the round; a malformed one counts as unread."""
    try:
        told = _contents_of(page, document)
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        text = f"{page.path} is not a discovery document: {problem!r}"
        return _add_unread(discovery, page, Refused(200, text)), ()
    discovery = replace(discovery, parts=(*discovery.parts, told))
    for stale in told.stale:
        discovery = _add_unread(discovery, stale, _STALE)
    return discovery, told.pages


# The aggregated API behind it did not answer the server (APIVersionDiscovery).
_STALE = Unreachable("what the API server says of it is out of date")


def _add_unread(discovery: Discovery, page: Document, outcome: Outcome) -> Discovery:
    """Add a document that could not be read to the round."""
    is_root = page.path in ROOTS
    message = str(getattr(outcome, "message", "no document"))
    refused = isinstance(outcome, Refused) and outcome.status in (401, 403)
    what = (page.path, "") if is_root else (page.group, page.version)
    advice = getattr(outcome, "retry_after_seconds", None) or 0.0
    return replace(
        discovery,
        problem=discovery.problem or f"{page.path}: {message}",
        forbidden=discovery.forbidden or refused,
        unread=discovery.unread | {what},
        advice_seconds=max(discovery.advice_seconds, advice),
    )


# The contents of read-only documents, and the catalogues made from them, by identity. A
# simulated API server sends the same ones again and again.
_KEPT_MAX = 8
_TOLD: dict[tuple[int, Document], tuple[dict[str, Any], Contents]] = {}
_CATALOGUES: dict[tuple[int, ...], tuple[tuple[Contents, ...], Catalogue]] = {}


def _contents_of(page: Document, document: dict[str, Any]) -> Contents:
    """The content of a document, which is parsed once if it cannot change."""
    if not isinstance(document, ReadOnlyDict):
        return _read(page, document)
    known = _TOLD.get(key := (id(document), page))
    if known is None:
        if len(_TOLD) >= _KEPT_MAX:
            _TOLD.clear()
        # Kept with the document, so that no other document can have its identity.
        known = _TOLD[key] = document, _read(page, document)
    return known[1]


def _read(page: Document, document: dict[str, Any]) -> Contents:
    if page.path not in ROOTS:
        found = parse_resource_list(
            document, page.group, page.version, preferred=page.preferred
        )
        return Contents(tuple(found))
    if document.get("kind") == _AGGREGATED:
        return _read_aggregated(page, document)
    if page.path == "/api":
        pages = _documents_of_group("", document.get("versions") or ())
    else:
        pages = _group_documents(document)
    return Contents(pages=pages, ranks=_ranks_of(pages))


def _read_aggregated(root: Document, document: dict[str, Any]) -> Contents:
    """The kinds of all groups of a root; stale versions have none."""
    resources: list[Resource] = []
    stale: list[Document] = []
    pages: list[Document] = []
    for item in document.get("items") or ():
        group = "" if root.path == "/api" else item["metadata"]["name"]
        versions = item.get("versions") or ()
        # The first version is the preferred one.
        listed = _documents_of_group(group, [each["version"] for each in versions])
        pages += listed
        for each, page in zip(versions, listed, strict=True):
            if each.get("freshness") == "Stale":
                stale.append(page)
            else:
                resources += parse_aggregated(
                    each, group, page.version, preferred=page.preferred
                )
    return Contents(tuple(resources), stale=tuple(stale), ranks=_ranks_of(pages))


def _group_documents(document: dict[str, Any]) -> tuple[Document, ...]:
    pages: list[Document] = []
    for group in document.get("groups") or ():
        preferred = (group.get("preferredVersion") or {}).get("version")
        versions = [each["version"] for each in group.get("versions") or ()]
        versions.sort(key=lambda version: version != preferred)
        pages += _documents_of_group(group["name"], versions)
    return tuple(pages)


def _documents_of_group(group: str, versions: Iterable[str]) -> tuple[Document, ...]:
    """The documents of a group's versions; the first one is preferred."""
    return tuple(
        Document(
            "/" + "/".join(map(segment, (*group_parts(group), version))),
            group,
            version,
            preferred=rank == 0,
        )
        for rank, version in enumerate(versions)
    )


def _ranks_of(pages: Iterable[Document]) -> Ranks:
    """The place of each version in its group, from documents in the groups' order."""
    ranks: dict[tuple[str, str], int] = {}
    counts: Counter[str] = Counter()
    for page in pages:
        ranks[page.group, page.version] = counts[page.group]
        counts[page.group] += 1
    return Table(ranks)
