"""Selectors for the API server, made from the filters of handlers.

fnop sends the server the filters for labels and fields that all handlers of a kind
share. Objects that match no handler are then neither sent nor stored. A server selects
a kind by some of its fields. It refuses the others, and fnop then omits them.

In a watch with a selector, an object that leaves the selection looks deleted
(Kubernetes API concepts). So fnop does not do this for kinds with handlers of
deletions, event handlers, or finalizers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from fnop.core.api.resources import Selectors
from fnop.core.handlers.declare.filters import Presence
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import Family, kwargs_of
from fnop.effects.regexes import regex
from fnop.effects.structs import replace

__all__ = [
    "fields_in",
    "needs_metadata_alone",
    "refused_fields",
    "selectors_of",
    "without_fields",
]

# The fields that can select every kind (Kubernetes: field selectors).
_FIELDS: dict[tuple[str, ...], str] = {("metadata", "name"): "metadata.name"}
# Fields that are texts on any server: the absent value of other fields is unknown.
_TEXTS = (
    *("spec.nodeName", "spec.serviceAccountName", "spec.schedulerName"),
    *("status.podIP", "status.nominatedNodeName", "status.phase", "type"),
)
_PLAIN = regex(r"[A-Za-z0-9]+")
# A comma that is not part of a value.
_SEPARATOR = regex(r"(?<!\\),")


def selectors_of(handlers: Iterable[Handler], given: Selectors) -> Selectors:
    """The selectors for a kind's handlers; `given` are those of the settings."""
    handlers = tuple(handlers)
    if not handlers or any(_tells_departures(each) for each in handlers):
        return given
    labels = _common_items(_label_requirements(each) for each in handlers)
    fields = _common_items(_fields(each) for each in handlers)
    return given.joined(Selectors(",".join(labels), ",".join(fields)))


# The arguments that need only an object's metadata. A patch may be made by functions of
# the whole object.
_OF_METADATA = frozenset(
    (
        *("meta", "labels", "annotations", "name", "namespace", "uid", "owner"),
        *("resource", "type", "logger", "memo", "param"),
        *("retry", "started", "runtime", "now"),
    )
)
_LOOKING = frozenset((Family.EVENT, Family.INDEX))


def needs_metadata_alone(handlers: Iterable[Handler]) -> bool:
    """Whether handlers of a kind read only the metadata of its objects.

    Then the API server sends no more (PartialObjectMetadata). Handlers with a state,
    and handlers with side effects, get whole objects.
    """
    handlers = tuple(handlers)
    return bool(handlers) and all(map(_looks_at_metadata_alone, handlers))


def _looks_at_metadata_alone(handler: Handler) -> bool:
    if handler.rule.family not in _LOOKING or handler.function:
        return False
    signature, filters = handler.signature, handler.filters
    paths = (handler.field, *(path for path, _ in filters.fields))
    return (
        not signature.rest
        and _OF_METADATA.issuperset(_own_arguments(handler, signature.wants))
        and all(path[:1] in ((), ("metadata",)) for path in paths)
        and all(
            not each.rest
            and _OF_METADATA.issuperset(_own_arguments(handler, each.wants))
            for each in filters.callbacks
        )
    )


def _own_arguments(handler: Handler, wants: Iterable[str]) -> frozenset[str]:
    """The arguments of a function that are not indices."""
    return frozenset(wants) & kwargs_of(handler.role)


def _tells_departures(handler: Handler) -> bool:
    """Whether a handler must distinguish deleted objects from unselected ones.

    A handler that owns others may hold the object for them with a finalizer.
    """
    return handler.rule.tells_ends or handler.holds or bool(handler.owns)


def _common_items(each: Iterable[list[str]]) -> list[str]:
    """The items that are in all of the lists, in the order of the first list."""
    first, *others = each
    return [one for one in first if all(one in other for other in others)]


def _label_requirements(handler: Handler) -> list[str]:
    found = []
    for name, want in handler.filters.labels:
        if want is Presence.PRESENT:
            found.append(name)
        elif want is Presence.ABSENT:
            found.append(f"!{name}")
        elif isinstance(want, str):  # registration has checked it
            found.append(f"{name}={want}")
    return found


def _fields(handler: Handler) -> list[str]:
    """The requirements on fields; fnop cannot send a filter with a function."""
    found = []
    for path, want in handler.filters.fields:
        name = ".".join(path)
        if not all(map(_PLAIN.fullmatch, path)):
            continue
        if want is Presence.PRESENT and name in _TEXTS:
            found.append(f"{name}!=")
        elif want in (Presence.ABSENT, "") and name in _TEXTS:
            found.append(f"{name}=")
        elif isinstance(want, str) and want:
            found.append(f"{name}={_escape_value(want)}")
    own, value = _FIELDS.get(handler.field), handler.filters.value
    if own is not None and isinstance(value, str):
        found.append(f"{own}={_escape_value(value)}")
    return found


def _escape_value(value: str) -> str:
    r"""A value as field selectors contain it (apimachinery: fields.EscapeValue).

    >>> print(_escape_value("a,b=c"))
    a\,b\=c
    """
    return re.sub(r"([\\,=])", r"\\\1", value)


def without_fields(selectors: Selectors, refused: Collection[str]) -> Selectors:
    """The selectors without the fields that the API server refuses for a kind.

    >>> without_fields(Selectors("", "a.b=1,c!=,d=2"), {"c", "d"})
    Selectors(labels='', fields='a.b=1')
    """
    if not (selectors.fields and refused):
        return selectors
    kept = [
        e
        for e in _SEPARATOR.split(selectors.fields)
        if _name_in_requirement(e) not in refused
    ]
    return replace(selectors, fields=",".join(kept))


def fields_in(selectors: Selectors) -> frozenset[str]:
    """The names of the fields in a field selector.

    >>> sorted(fields_in(Selectors("", "metadata.name=a,spec.size!=1")))
    ['metadata.name', 'spec.size']
    """
    parts = _SEPARATOR.split(selectors.fields)
    return frozenset(_name_in_requirement(each) for each in parts if each)


def refused_fields(selectors: Selectors, message: str) -> frozenset[str]:
    """The fields that the API server refuses as selectors, as its message says.

    >>> selectors = Selectors("", "metadata.name=a,spec.size=1,spec.of=b")
    >>> sorted(refused_fields(selectors, "field label not supported: spec.size"))
    ['spec.size']
    >>> sorted(refused_fields(selectors, "no"))
    []
    """
    names = fields_in(selectors) - {"metadata.name", "metadata.namespace"}
    about = (rf"(?<![\w.]){re.escape(each)}(?![\w.=!])" for each in names)
    found = zip(names, about, strict=True)
    return frozenset(name for name, each in found if re.search(each, message))


def _name_in_requirement(requirement: str) -> str:
    return re.split("[!=]", requirement, maxsplit=1)[0]
