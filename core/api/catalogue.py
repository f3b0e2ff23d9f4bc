"""The catalogue of the kinds that an API server serves, with lookups by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct

from fnop.core.api.resources import Resource, Selector
from fnop.core.values.similarity import similar

__all__ = ["Catalogue", "parse_aggregated", "parse_resource_list"]

# The least similarity of a mistyped name and its correction (difflib's ratio).
_LIKENESS = 0.75


class Catalogue(Struct, frozen=True):
    """The kinds that the API server serves.

    It is not `complete` if some documents of discovery could not be read. `missed` are
    the kinds that discovery has stopped listing, and since when (monotonic seconds).
    """

    resources: tuple[Resource, ...] = ()
    complete: bool = True
    missed: tuple[tuple[str, float], ...] = ()

    def find(self, selector: Selector) -> tuple[Resource, ...]:
        """The resources that a selector matches, as kubectl finds them.

        They are in their preferred version, unless the selector names another. Full
        names take precedence over short ones, and the core group over others. More than
        one resource means that the selector is ambiguous, unless it `is_broad`.
        """
        if selector.predicate is not None:  # the author's: it may raise
            return tuple(each for each in self.resources if selector.matches(each))
        # By identity: kept with the catalogue, so that no other catalogue can have it.
        key = object.__hash__(self), selector
        known = _FOUND.get(key)
        if known is None:
            if len(_FOUND) >= _FOUND_MAX:
                _FOUND.clear()
            known = _FOUND[key] = self, self._nearest_resources(selector)
        return known[1]

    def _nearest_resources(self, selector: Selector) -> tuple[Resource, ...]:
        named = [(each, selector.nearness(each)) for each in self.resources]
        near = [
            (each, how)
            for each, how in named
            if how is not None and (each.preferred or not how.any_version)
        ]
        nearest = min((how for _, how in near), default=None)
        found = [each for each, how in near if how == nearest]
        is_broad = selector.is_broad or (nearest is not None and nearest.by_category)
        if not is_broad and any(each.group == "" for each in found):
            found = [each for each in found if each.group == ""]
        return tuple(found)

    def is_broad(self, selector: Selector) -> bool:
        """Whether a selector may match several kinds: a pattern, or a category's name.

        >>> pods = Resource("", "v1", "pods", "Pod", categories=("all",))
        >>> names = Selector.of("all"), Selector.of("pods"), Selector.of("po*")
        >>> [Catalogue((pods,)).is_broad(each) for each in names]
        [True, False, True]
        """
        if selector.is_broad or selector.any_name is None:
            return selector.is_broad
        named = map(selector.nearness, self.find(selector))
        return any(how is not None and how.by_category for how in named)

    def lookup(self, name: str) -> Resource | None:
        """The one resource that a selector string matches, or None."""
        try:
            found = self.find(_selector_of(name))
        except ValueError:
            return None
        return found[0] if len(found) == 1 else None

    def nearest(self, selector: Selector) -> str:
        """A suggestion for a mistyped kind, or a kind in a wrong group.

        It is a label such as `deployments.apps`; "" if no kind is similar.

        >>> served = Catalogue((Resource("apps", "v1", "deployments", "Deployment"),))
        >>> served.nearest(Selector.of("deploymnet")), served.nearest(Selector.of("x"))
        ('deployments.apps', '')
        """
        names = (selector.any_name, selector.plural, selector.kind, selector.singular)
        wanted = next((each.lower() for each in names if each), "")
        labels: dict[str, str] = {}
        for each in self.resources:
            for name in each.names():
                labels.setdefault(name.lower(), each.label)
        near = similar(wanted, labels, _LIKENESS)
        return labels[near[0]] if near else ""

    def absence(
        self, name: str, server: str = "the API server", remedy: str = ""
    ) -> str:
        """The error message for a name that `lookup` does not find.

        >>> Catalogue((Resource("", "v1", "pods", "Pod"),)).absence("pds")
        "the API server serves no kind 'pds' (did you mean 'pods'?)"
        """
        try:
            selector = Selector.of(name)
        except ValueError as problem:
            return f"{name!r} is not a kind: {problem}"
        found = self.find(selector)
        if len(found) > 1:
            kinds = ", ".join(each.key for each in found)
            return f"{name!r} is ambiguous: {kinds}; name the group, too"
        near = self.nearest(selector)
        hint = f" (did you mean {near!r}?)" if near else ""
        return f"{server} serves no kind {name!r}{hint}{remedy}"

    def absence_of(
        self, manifest: Mapping[str, Any], server: str = "the API server"
    ) -> str:
        """The error message for a manifest whose kind `of_manifest` does not find.

        >>> deployments = Resource("apps", "v1", "deployments", "Deployment")
        >>> wrong = {"apiVersion": "v1", "kind": "Deployment"}
        >>> Catalogue((deployments,)).absence_of(wrong)
        'the API server serves no Deployment of v1 (did you mean that of apps/v1?)'
        """
        kind, version = manifest.get("kind"), manifest.get("apiVersion")
        # Kinds are compared without case, so that `pod` is similar to `Pod`.
        likely = {each.kind.lower(): each for each in self.resources}
        near = similar(str(kind).lower(), likely, _LIKENESS)
        hint = ""
        if near:
            meant = likely[near[0]]
            what = "that" if meant.kind == kind else meant.kind
            hint = f" (did you mean {what} of {meant.api_version}?)"
        return f"{server} serves no {kind} of {version}{hint}"

    def of_manifest(self, manifest: Mapping[str, Any]) -> Resource | None:
        """The resource of an object with apiVersion and kind, or None."""
        for each in self.resources:
            if (
                each.kind == manifest["kind"]
                and each.api_version == manifest["apiVersion"]
            ):
                return each
        return None


@lru_cache(maxsize=256)
def _selector_of(name: str) -> Selector:
    """Parse a selector once: effects name the same few kinds."""
    return Selector.of(name)


# The last results of `find`: a catalogue gets the same queries again and again.
_FOUND_MAX = 256
_FOUND: dict[tuple[int, Selector], tuple[Catalogue, tuple[Resource, ...]]] = {}


def parse_resource_list(
    document: Any, group: str, version: str, *, preferred: bool
) -> Iterable[Resource]:
    """The resources of one group version's `APIResourceList`."""
    entries = document.get("resources") or []
    subresources: dict[str, list[str]] = {}
    for entry in entries:
        plural, slash, sub = entry["name"].partition("/")
        if slash:
            subresources.setdefault(plural, []).append(sub)
    for entry in entries:
        if "/" in entry["name"]:
            continue
        yield Resource(
            group,
            version,
            entry["name"],
            entry["kind"],
            entry.get("singularName") or entry["kind"].lower(),
            bool(entry.get("namespaced")),
            tuple(entry.get("shortNames") or ()),
            tuple(entry.get("categories") or ()),
            tuple(entry.get("verbs") or ()),
            tuple(sorted(subresources.get(entry["name"], ()))),
            preferred,
        )


def parse_aggregated(
    document: Any, group: str, version: str, *, preferred: bool
) -> Iterable[Resource]:
    """The resources of one group version in an `APIGroupDiscoveryList`.

    An entry with subresources only has no kind, and is skipped.

    >>> pods = {"resource": "pods", "responseKind": {"kind": "Pod"}, "verbs": ["get"],
    ...         "scope": "Namespaced", "singularResource": "pod",
    ...         "subresources": [{"subresource": "status", "verbs": ["get"]}]}
    >>> bare = {"resource": "bare", "subresources": [{"subresource": "x"}]}
    >>> document = {"version": "v1", "resources": [pods, bare]}
    >>> [found] = parse_aggregated(document, "", "v1", preferred=True)
    >>> found, found.namespaced, found.subresources
    (pods.v1, True, ('status',))
    """
    for entry in document.get("resources") or ():
        kind = (entry.get("responseKind") or {}).get("kind")
        if not kind:
            continue
        parts = entry.get("subresources") or ()
        yield Resource(
            group,
            version,
            entry["resource"],
            kind,
            entry.get("singularResource") or kind.lower(),
            entry.get("scope") == "Namespaced",
            tuple(entry.get("shortNames") or ()),
            tuple(entry.get("categories") or ()),
            tuple(entry.get("verbs") or ()),
            tuple(sorted(each["subresource"] for each in parts)),
            preferred,
        )
