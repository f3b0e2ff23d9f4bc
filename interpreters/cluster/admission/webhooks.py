"""Admission webhooks as they are registered, and the writes that they match."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from immutables import Map
from msgspec import Struct

from fnop.core.kubernetes.label_selectors import matches
from fnop.interpreters.cluster.admission.questions import Configuration
from fnop.interpreters.cluster.kinds.kinds import Kind, Registry
from fnop.interpreters.cluster.storage.store import Cluster, lookup, shelf
from fnop.interpreters.cluster.values.objects import Key, Object, Resource
from fnop.interpreters.cluster.values.status import not_found
from fnop.interpreters.runtime.protocol import User

__all__ = [
    "MUTATING",
    "VALIDATING",
    "Beside",
    "Form",
    "Webhook",
    "Write",
    "kind_for",
    "none_beside",
    "webhooks",
]

GROUP = "admissionregistration.k8s.io"
MUTATING: Resource = (GROUP, "mutatingwebhookconfigurations")
VALIDATING: Resource = (GROUP, "validatingwebhookconfigurations")
NAMESPACES: Resource = ("", "namespaces")


class Form(NamedTuple):
    """The group, version and kind of the objects of a request."""

    group: str
    version: str
    kind: str


class Write(Struct, frozen=True):
    """One write as admission sees it (`admission.Attributes`)."""

    operation: str
    # The kind whose resource the path names, in the version of the path.
    kind: Kind
    subresource: str
    namespace: str
    name: str
    # In the version of the path; a deletion has no new object, a creation no old
    # object.
    object: Object | None
    old: Object | None
    options: Mapping[str, Any]
    user: User
    dry_run: bool
    # The form of the body, if it is not an object of the kind: a Scale, a Binding.
    form: Form | None = None


class Webhook(Struct, frozen=True):
    """One webhook of a configuration, with its rules."""

    configuration: Configuration
    spec: Mapping[str, Any]
    client: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name, which is unique in its configuration."""
        return str(self.spec["name"])

    @property
    def is_ignorable(self) -> bool:
        """Whether the write goes on if the webhook cannot be asked."""
        return self.spec.get("failurePolicy") == "Ignore"


# ------------------------------------------------------------------- registered

Webhooks = tuple[Webhook, ...]
# The webhooks of one sort that are asked without being registered in the cluster. They
# belong to an operator that is simulated with it.
Beside = Callable[[Cluster, Resource], Webhooks]
# The webhooks of collections of configurations, by identity: an unwritten collection is
# the same value. Each is kept with its key, so no identity is used twice.
_compiled: dict[int, tuple[Map[Key, Object], Webhooks]] = {}
MOST_COMPILED = 64


def none_beside(_cluster: Cluster, _resource: Resource) -> Webhooks:
    """Return no webhooks in addition to the registered ones."""
    return ()


def webhooks(
    cluster: Cluster, resource: Resource, beside: Beside = none_beside
) -> Webhooks:
    """The webhooks of a collection of configurations, in the server's order.

    Configurations are ordered by name, and the webhooks of one by its list.
    """
    more = beside(cluster, resource)
    if not more:
        return _registered_webhooks(cluster, resource)
    both = (*_registered_webhooks(cluster, resource), *more)
    return tuple(sorted(both, key=lambda each: each.configuration.name))


def _registered_webhooks(cluster: Cluster, resource: Resource) -> Webhooks:
    found = shelf(cluster, resource)
    if not found:
        return ()
    known = _compiled.get(id(found))
    if known is None:
        if len(_compiled) >= MOST_COMPILED:
            _compiled.clear()
        known = _compiled[id(found)] = found, tuple(_iter_webhooks(found))
    return known[1]


def _iter_webhooks(found: Map[Key, Object]) -> Iterator[Webhook]:
    for (_, name), obj in sorted(found.items()):
        for spec in obj.get("webhooks") or ():
            client = MappingProxyType(spec.get("clientConfig") or {})
            yield Webhook(Configuration(obj["kind"], name), spec, client)


# ---------------------------------------------------------------------- matched


def kind_for(cluster: Cluster, webhook: Webhook, write: Write) -> Kind | None:
    """The kind in whose version a webhook reviews a write; None if it does not.

    This is all of `ShouldCallHook` except the match conditions. Raises `Refusal` if a
    write matches otherwise but its namespace does not exist.
    """
    if write.kind.resource in (MUTATING, VALIDATING):
        return None  # a webhook could make it impossible to repair its configuration
    if not _selects_object(webhook, write):
        return None
    found = _matched_kind(cluster.registry, webhook, write)
    if found is None or not _selects_namespace(cluster, webhook, write):
        return None
    return found


def _selects_object(webhook: Webhook, write: Write) -> bool:
    """Whether the object selector matches the new or the old object."""
    selector = webhook.spec.get("objectSelector")
    if not selector:
        return True
    given = (obj for obj in (write.object, write.old) if obj is not None)
    return any(matches(selector, obj["metadata"].get("labels") or {}) for obj in given)


def _selects_namespace(cluster: Cluster, webhook: Webhook, write: Write) -> bool:
    """Whether the namespace selector matches the labels of a write's namespace.

    Objects without a namespace are never exempted. For a new or changed Namespace, the
    labels that it would have count.
    """
    selector = webhook.spec.get("namespaceSelector")
    of_namespaces = write.kind.resource == NAMESPACES
    if not selector or not (write.namespace or of_namespaces):
        return True
    if of_namespaces and not write.subresource and write.object is not None:
        return matches(selector, write.object["metadata"].get("labels") or {})
    namespace = lookup(cluster, NAMESPACES, ("", write.namespace))
    if namespace is None:
        raise not_found("", "namespaces", write.namespace)
    return matches(selector, namespace["metadata"].get("labels") or {})


def _matched_kind(registry: Registry, webhook: Webhook, write: Write) -> Kind | None:
    rules = webhook.spec.get("rules") or ()
    if any(_rule_matches(rule, write, write.kind) for rule in rules):
        return write.kind
    if webhook.spec.get("matchPolicy") == "Exact":
        return None
    # Earlier rules take precedence.
    others = _equivalents(registry, write.kind)
    for rule in rules:
        for other in others:
            if _rule_matches(rule, write, other):
                return other
    return None


def _equivalents(registry: Registry, kind: Kind) -> list[Kind]:
    """The other kinds that show the same stored objects: other versions and groups."""
    return [
        other
        for other in registry.by_path.values()
        if other.resource == kind.resource and other is not kind and other.served
    ]


def _rule_matches(rule: Mapping[str, Any], write: Write, kind: Kind) -> bool:
    """Whether a rule matches a write as if it were of that kind (rules.Matcher)."""
    return (
        _is_in_scope(rule.get("scope", "*"), write)
        and _is_among(write.operation, rule.get("operations"))
        and _is_among(kind.group, rule.get("apiGroups"))
        and _is_among(kind.version, rule.get("apiVersions"))
        and any(
            _is_named(text, kind.plural, write.subresource)
            for text in rule.get("resources") or ()
        )
    )


def _is_in_scope(scope: str, write: Write) -> bool:
    is_cluster = write.kind.resource == NAMESPACES or not write.namespace
    return scope == "*" or (scope == "Cluster") == is_cluster


def _is_among(value: str, known: Any) -> bool:
    return "*" in (known or ()) or value in (known or ())


def _is_named(text: str, plural: str, subresource: str) -> bool:
    """Whether a resource of a rule, such as `pods`, `pods/*` or `*/scale`, names this.

    >>> _is_named("*", "pods", ""), _is_named("*", "pods", "status")
    (True, False)
    """
    resource, _, inside = text.partition("/")
    return resource in ("*", plural) and inside in ("*", subresource)
