"""Kinds of the API server: resources, and the selectors that name them.

The author writes a selector (`"pods"`, `"deployments.v1.apps"`). The server serves a
`Resource`. A `Catalogue` finds the resources of a selector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import lru_cache
from sys import intern
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from msgspec import Struct

from fnop.core.values.patterns import is_pattern, matches
from fnop.effects.regexes import regex
from fnop.effects.structs import as_dataclass

__all__ = [
    "EVERYTHING",
    "Everything",
    "Nearness",
    "Resource",
    "Selector",
    "Selectors",
    "dotted",
    "group_parts",
    "path_of",
    "segment",
    "version_rank",
]


class Everything(Enum):
    """The selector of all kinds: `@fnop.on.event(fnop.EVERYTHING)`."""

    EVERYTHING = "everything"


EVERYTHING = Everything.EVERYTHING
"""The selector of all kinds but Events: `@fnop.on.event(fnop.EVERYTHING)`."""


@as_dataclass
class Resource(Struct, frozen=True):
    """One served kind, as API discovery describes it (`APIResource`).

    `group`, `version`, `plural` and `kind` name it; `group` "" is the core group;
    `singular`, `shortcuts` and `categories` are its other names. `namespaced` is
    whether its objects are in namespaces; `verbs` and `subresources` are the ones that
    the server offers. `preferred` is whether this is the kind's preferred version: the
    group's, or the newest one if the group's preferred version does not have the kind.

    >>> pods = Resource("", "v1", "pods", "Pod")
    >>> pods, tuple(pods)
    (pods.v1, ('', 'v1', 'pods'))
    """

    group: str
    version: str
    plural: str
    kind: str
    singular: str = ""
    namespaced: bool = True
    shortcuts: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    preferred: bool = True

    @property
    def key(self) -> str:
        """`plural.version.group`: unique within one API server."""
        return intern(f"{self.plural}.{self.version}.{self.group}")

    @property
    def label(self) -> str:
        """`plural.group`, as in log lines and in kubectl.

        >>> Resource("apps", "v1", "deployments", "Deployment").label
        'deployments.apps'
        """
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """`group/version`, or `version` alone for the legacy core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def is_built_in(self) -> bool:
        """Whether Kubernetes itself defines the kind: then its schema is closed.

        Groups without a dot, and groups under k8s.io, are reserved for Kubernetes.
        """
        return "." not in self.group or self.group.endswith(".k8s.io")

    @property
    def has_status(self) -> bool:
        """Whether the kind has a status subresource."""
        return "status" in self.subresources

    def get_url(
        self,
        *,
        server: str | None = None,
        namespace: str | None = None,
        name: str | None = None,
        subresource: str | None = None,
        params: Mapping[str, str] | None = None,
    ) -> str:
        """The address of a collection, an object, or a subresource of an object.

        It is for code that sends requests itself; effects need no addresses. Without a
        server the result is the path. Raises `ValueError` for:

        - a subresource without a name
        - the name of a namespaced object without its namespace
        - the namespace of a cluster-scoped kind
        - names that cannot be in a path

        >>> pods = Resource("", "v1", "pods", "Pod")
        >>> pods.get_url(namespace="prod", name="web", subresource="log")
        '/api/v1/namespaces/prod/pods/web/log'
        >>> pods.get_url(server="https://k8s/", params={"labelSelector": "app=x"})
        'https://k8s/api/v1/pods?labelSelector=app%3Dx'
        """
        if subresource and not name:
            raise ValueError("the address of a subresource needs a name")
        if namespace and not self.namespaced:
            raise ValueError(f"{self.label} are in no namespace; leave it out")
        if name and self.namespaced and not namespace:
            raise ValueError(f"the address of one of {self.label} needs a namespace")
        path = path_of(self, namespace, name, subresource or "")
        query = f"?{urlencode(params)}" if params else ""
        return f"{(server or '').rstrip('/')}{path}{query}"

    def __iter__(self) -> Iterator[str]:
        return iter((self.group, self.version, self.plural))

    def __repr__(self) -> str:
        return self.key.rstrip(".")

    def to_json(self) -> dict[str, Any]:
        """The resource as a JSON value."""
        return {
            name: _list_or_value(getattr(self, name)) for name in self.__struct_fields__
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Resource:
        """The resource from the result of `to_json`.

        >>> pods = Resource("", "v1", "pods", "Pod", verbs=("get",))
        >>> Resource.from_json(pods.to_json()) == pods
        True
        """
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, (list, tuple)) else value
            for name, value in found.items()
        }
        return cls(**given)

    def names(self) -> frozenset[str]:
        """The names that an unqualified selector may use for the kind."""
        return frozenset((self.plural, self.kind, self.singular, *self.shortcuts))


def path_of(
    resource: Resource, namespace: str | None, name: str | None = None, sub: str = ""
) -> str:
    """The path of a collection or of an object.

    >>> path_of(Resource("apps", "v1", "deployments", "Deployment"), "ns", "x")
    '/apis/apps/v1/namespaces/ns/deployments/x'
    """
    inside = ("namespaces", namespace) if namespace and resource.namespaced else ()
    ends = tuple(part for part in (name, sub or None) if part is not None)
    parts = (*group_parts(resource.group), resource.version, *inside, resource.plural)
    return "/" + "/".join(map(segment, (*parts, *ends)))


def group_parts(group: str) -> tuple[str, ...]:
    """The first segments of the paths of a group."""
    return ("apis", group) if group else ("api",)


# RFC 3986: the characters that need no escape in a segment (`pchar`).
_PLAIN = regex(r"[A-Za-z0-9._~!$&'()*+,;=:@-]+")
_SAFE = "!$&'()*+,;=:@"


@lru_cache(maxsize=4096)
def segment(name: str) -> str:
    """A name as one segment of a path, with escapes.

    >>> segment("system:node"), segment("a b?c")
    ('system:node', 'a%20b%3Fc')

    Raises `ValueError` for names that no escape makes safe: servers read %2F as a
    slash, and %2E%2E as two dots.
    """
    if name in ("", ".", "..") or "/" in name:
        raise ValueError(f"{name!r} cannot stand in a path")
    return name if _PLAIN.fullmatch(name) else quote(name, safe=_SAFE)


_RANKED = regex(r"v(\d+)(?:(alpha|beta)(\d+))?")


def version_rank(version: str) -> tuple[int, int, int, str]:
    """The sort key of a version in API discovery: v2, v1, v1beta1, v1alpha1, others.

    >>> sorted(["v1beta2", "v1", "v1alpha3", "x", "v10", "v1beta10"], key=version_rank)
    ['v10', 'v1', 'v1beta10', 'v1beta2', 'v1alpha3', 'x']
    """
    found = _RANKED.fullmatch(version)
    if found is None:
        return 3, 0, 0, version
    major, stage, minor = found.groups()
    return [None, "beta", "alpha"].index(stage), -int(major), -int(minor or 0), ""


def _list_or_value(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


# Broad selectors do not include Events: a handler of all kinds does not mean them, and
# a handler that answers each with an Event would never end.
EVENTS = (("", "events"), ("events.k8s.io", "events"))
_VERSION = regex(r"v\d+((alpha|beta)\d+)?")


class Selectors(Struct, frozen=True):
    """A label and a field selector for the API server; "" selects all objects.

    >>> Selectors("a=b").joined(Selectors("c", "spec.size=1"))
    Selectors(labels='a=b,c', fields='spec.size=1')
    """

    labels: str = ""
    fields: str = ""

    def joined(self, other: Selectors) -> Selectors:
        """The selectors of the objects that both select."""
        pairs = ((self.labels, other.labels), (self.fields, other.fields))
        return Selectors(*(",".join(filter(None, each)) for each in pairs))


class Selector(Struct, frozen=True):
    """A selector of one kind, or several; unset parts match anything.

    Names, groups and versions may be patterns of `*` and `?`. A `predicate` is called
    with each `Resource`.
    """

    any_name: str | None = None
    group: str | None = None
    version: str | None = None
    kind: str | None = None
    plural: str | None = None
    singular: str | None = None
    shortcut: str | None = None
    category: str | None = None
    predicate: Callable[[Resource], Any] | None = None
    everything: bool = False

    @classmethod
    def of(cls, *words: Any, **named: str | None) -> Selector:
        """Parse the forms of Kopf and kubectl for kinds, and patterns.

        >>> Selector.of("deployments.v1.apps") == Selector.of("apps/v1", "deployments")
        True
        >>> Selector.of("pods.v1.").group
        ''
        >>> Selector.of("*.example.com").group
        'example.com'

        Raises `ValueError` for no names, two names, or unclear names.
        """
        group, version = named.get("group"), named.get("version")
        if words == (EVERYTHING,) and not named.keys() - {"group", "version"}:
            return cls(group=group, version=version, everything=True)
        if len(words) == 1 and callable(words[0]) and not named:
            return cls(predicate=words[0])
        if not all(isinstance(word, str) for word in words) or "" in words[-1:]:
            raise ValueError("the name of a kind must be a non-empty string")
        group, version = named.pop("group", None), named.pop("version", None)
        name: str | None = None
        match words:
            case ():
                pass
            case (name,):
                name, version, group = dotted(name, version, group)
            case (prefix, name):
                group, version = _split_api_version(prefix)
            case (group, version, name):
                pass
            case _:
                raise ValueError("a kind is named by at most group, version and name")
        given = [each for each in (name, *named.values()) if each]
        if len(given) != 1:
            raise ValueError(
                "name exactly one kind, such as 'pods', 'deployments.apps' or "
                f"kind='Pod'; got {len(given)} names"
            )
        parts: dict[str, Any] = dict(named)
        return cls(name, group, version, **parts)

    @property
    def is_broad(self) -> bool:
        """Whether it may match several kinds, so that several matches are valid."""
        texts = (self.any_name, self.kind, self.plural, self.singular, self.group)
        return (
            self.everything
            or self.category is not None
            or self.predicate is not None
            or any(text is not None and is_pattern(text) for text in texts)
        )

    def matches(self, resource: Resource) -> bool:
        """Whether the selector may match this resource, of a preferred version or not.

        `Catalogue.find` returns the resources that it matches among all served ones.
        """
        return self.nearness(resource) is not None

    def nearness(self, resource: Resource) -> Nearness | None:
        """The selector's way of naming this resource; None if it does not."""
        if self.is_broad and (resource.group, resource.plural) in EVENTS:
            return None
        if self.predicate is not None:
            return _EXACTLY if self.predicate(resource) else None
        if self.any_name is not None and not self.is_broad:
            return _nearness_of(self.any_name, self.group, self.version, resource)
        is_meant = (
            _is_match(self.group, (resource.group,))
            and _is_match(self.version, (resource.version,))
            and _is_match(self.any_name, resource.names())
            and _is_match(self.kind, (resource.kind,))
            and _is_match(self.plural, (resource.plural,))
            and _is_match(self.singular, (resource.singular,))
            and _is_match(self.shortcut, resource.shortcuts)
            and _is_match(self.category, resource.categories)
        )
        if not is_meant:
            return None
        return _EXACTLY._replace(any_version=self.version is None)

    def __str__(self) -> str:
        if self.predicate is not None:
            return getattr(self.predicate, "__qualname__", repr(self.predicate))
        name = self.any_name or self.kind or self.plural or self.singular
        if self.everything:
            name = "*"
        elif self.category is not None:
            name = self.category
        parts = (name or self.shortcut or "", self.version, self.group)
        return ".".join(part for part in parts if part)


class Nearness(NamedTuple):
    """A text's way of naming a kind; less is nearer, and the nearest kinds win.

    kubectl looks for names before kinds. It reads the first part of a group as a
    version before it reads it as a part of the group. It prefers full names to short
    ones, and groups to those that begin with them (client-go's restmapper, and
    cli-runtime's `mappingFor`). A text that names no kind may name a category. With
    `any_version`, the kind's preferred version is meant.
    """

    by_category: bool = False
    by_kind: bool = False
    reading: int = 0
    is_short: bool = False
    any_version: bool = True


_EXACTLY = Nearness()


def _nearness_of(
    name: str, group: str | None, version: str | None, resource: Resource
) -> Nearness | None:
    by_kind = is_short = False
    if name.lower() in (resource.plural, resource.singular):
        pass
    elif name in resource.shortcuts:
        is_short = True
    elif name in (resource.kind, resource.kind.lower()):
        by_kind = True
    elif group is version is None and name in resource.categories:
        return Nearness(by_category=True)
    else:
        return None
    for reading, place in enumerate(_possible_places(group, version)):
        if place.fits(resource):
            return Nearness(False, by_kind, reading, is_short, place.version is None)
    return None


class _Place(Struct, frozen=True):
    """A group, or all that `begin` with its name, and a version to look for a kind."""

    group: str | None
    version: str | None
    begin: bool = False

    def fits(self, resource: Resource) -> bool:
        """Whether the resource is in this place."""
        if self.begin:
            return resource.group.startswith(f"{self.group}.")
        return _is_match(self.group, (resource.group,)) and _is_match(
            self.version, (resource.version,)
        )


@lru_cache(maxsize=1024)
def _possible_places(group: str | None, version: str | None) -> tuple[_Place, ...]:
    """The places that a group and version may refer to, in kubectl's order.

    `foo.example.com` is version foo of example.com, else a group; versions need not
    begin with a v. kubectl accepts any prefix of a group's name; here a prefix must end
    at a dot, since an operator must not take example.com for its example.co.
    """
    if not group:
        return (_Place(group, version),)
    if version is not None:
        return _Place(group, version), _Place(f"{version}.{group}", None)
    head, dot, tail = group.partition(".")
    as_version = (_Place(tail, head),) if dot else ()
    return *as_version, _Place(group, None), _Place(group, None, begin=True)


def _is_match(wanted: str | None, names: Iterable[str]) -> bool:
    if wanted is None:
        return True
    if not is_pattern(wanted):
        return wanted in names
    return any(matches(wanted, name) for name in names)


def dotted(
    text: str, version: str | None = None, group: str | None = None
) -> tuple[str, str | None, str | None]:
    """Split `name`, `name.group`, `name.version.group` and `name.version.`.

    The `version` and the `group` replace those that the text lacks.

    >>> dotted("statefulsets.v1.apps"), dotted("events.events.k8s.io")
    (('statefulsets', 'v1', 'apps'), ('events', None, 'events.k8s.io'))
    """
    name, _, rest = text.partition(".")
    if not rest:
        return name, version, group
    head, dot, tail = rest.partition(".")
    if _VERSION.fullmatch(head):
        return name, head, tail if dot else group
    return name, version, rest


def _split_api_version(text: str) -> tuple[str | None, str | None]:
    group, slash, version = text.rpartition("/")
    if slash:
        return group, version
    return ("", text) if _VERSION.fullmatch(text) else (text, None)
