"""The webhooks of an operator, and the configurations that register them.

Handlers with equal options share a webhook. So one request calls all of them, and the
user sees all errors at once. The rules follow admissionregistration.k8s.io/v1.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from fnop.core.admission import own_writes
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.cluster_changes import ServerVersion
from fnop.core.api.namespaces import has_patterns, steps_of
from fnop.core.api.resources import Resource, Selector
from fnop.core.api.reviews import Request
from fnop.core.handlers.declare.filters import Callback, Filters, Presence
from fnop.core.handlers.declare.forms import Form
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import ADMISSION, ROLES, Role
from fnop.core.handlers.declare.webhook import OPERATIONS, Webhook
from fnop.core.kubernetes.label_selectors import matches, requirements
from fnop.core.values.body import Body
from fnop.core.values.cel import SIZE_MAX, is_name, is_sayable, literal
from fnop.core.values.diff import Path
from fnop.core.values.patterns import is_pattern
from fnop.effects.structs import replace
from fnop.effects.values import digest

__all__ = [
    "CONFIGURATIONS",
    "NAME_LABEL",
    "Group",
    "Registration",
    "UnknownWebhook",
    "asked_by",
    "configurations_of",
    "groups_of",
    "is_asked",
    "kinds_of",
    "labels_namespaces",
    "persistent",
]

GROUP = "admissionregistration.k8s.io"
_SORTS = {True: "Mutating", False: "Validating"}
# The kinds of the two configurations, by role.
CONFIGURATIONS: Mapping[Role, Resource] = {
    role: Resource(
        *(GROUP, "v1", f"{kind.lower()}s", kind, kind.lower()),
        namespaced=False,
    )
    for role in ROLES
    if role in ADMISSION
    for kind in (f"{_SORTS[ROLES[role].mutates]}WebhookConfiguration",)
}
# Since Kubernetes 1.21 each namespace has its name as a label.
NAME_LABEL = "kubernetes.io/metadata.name"
# The cluster needs these namespaces to repair itself; nodes are alive by the Leases of
# the second.
SYSTEM = ("kube-system", "kube-node-lease")


class UnknownWebhook(KeyError):
    """The operator has no webhook with this name."""


class Group(Struct, frozen=True):
    """Handlers that share a webhook, with the options that they have in common.

    `name` is the first part of the webhook's name, and mostly one label.
    """

    name: str
    role: Role
    handlers: tuple[Handler, ...]
    webhook: Webhook
    filters: Filters

    @property
    def ids(self) -> frozenset[str]:
        """The ids of its handlers."""
        return frozenset(each.id for each in self.handlers)

    @property
    def path(self) -> str:
        """The last part of the webhook's path, which identifies the webhook.

        If several handlers share a webhook, another version of the operator may have
        the same webhook with other handlers.
        """
        if self.webhook.own_name:
            return self.handlers[0].id
        if len(self.handlers) == 1:
            return self.name
        return f"{self.name}-{digest(sorted(self.ids))[:8]}"


class Registration(Struct, frozen=True):
    """The facts for configurations that do not come from the handlers.

    `name` is the name of the configurations. `client` is a `WebhookClientConfig`: a
    `url`, or a `service`, and a `caBundle`; each webhook adds its own path. `account`
    is the user as whom the operator writes, `manager` is its field manager, and
    `namespace` is the one that it runs in. Each is "" if unknown. `namespaces` and
    `selector` restrict what it serves. Namespaces are `labelled` with their names since
    Kubernetes 1.21. Before, handlers are called for all namespaces, and let others
    through.
    """

    name: str
    client: Mapping[str, Any]
    account: str = ""
    namespace: str = ""
    namespaces: tuple[str, ...] | None = None
    selector: str = ""
    manager: str = ""
    labelled: bool = True


def labels_namespaces(version: Any) -> bool:
    """Whether an API server labels namespaces with their names, by its `/version`.

    >>> labels_namespaces({"major": "1", "minor": "20+"}), labels_namespaces(None)
    (False, True)
    """
    found = ServerVersion.of(version)
    return found is None or found >= (1, 21)


def groups_of(handlers: Iterable[Handler]) -> tuple[Group, ...]:
    """The webhooks of admission handlers, in the order of their calls.

    A mutation sees the changes of the mutations before it, so only neighbours share a
    webhook.
    """
    found: list[Group] = []
    for handler in handlers:
        if handler.role not in ADMISSION or handler.webhook is None:
            continue
        webhook = replace(handler.webhook, operations=(), subresource=None)
        filters = _expressible_filters(handler.filters)
        own = Group("", handler.role, (handler,), webhook, filters)
        place = _place_of_group(found, own)
        if place is None:
            found.append(own)
        else:
            found[place] = replace(
                found[place], handlers=(*found[place].handlers, handler)
            )
    return tuple(_name_groups(found))


def _place_of_group(found: Sequence[Group], own: Group) -> int | None:
    """The position of the group that a handler joins."""
    alike = [
        place
        for place, each in enumerate(found)
        if each.role is own.role
        and each.webhook == own.webhook
        and each.filters == own.filters
    ]
    if not alike:
        return None
    if not own.handlers[0].rule.mutates:
        return alike[0]
    last = max(n for n, each in enumerate(found) if each.role is own.role)
    return last if last in alike else None


def _name_groups(groups: Iterable[Group]) -> Iterator[Group]:
    """The groups with names: a single handler's own name, else the role's."""
    taken: set[str] = set()
    for each in groups:
        alone = len(each.handlers) == 1
        base = each.webhook.own_name or _dns_label(
            each.handlers[0].id if alone else each.role.value
        )
        name, number = base, 1
        while name in taken:
            number += 1
            name = f"{base[:59]}-{number}"
        taken.add(name)
        yield replace(each, name=name)


def _dns_label(text: str) -> str:
    """A DNS label (RFC 1123) that resembles a text.

    >>> _dns_label("Claims.shrinks_not/spec.size")
    'claims-shrinks-not-spec-size'
    """
    found = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:63].rstrip("-")
    return found or "webhook"


def _expressible_filters(filters: Filters) -> Filters:
    """The filters that a configuration can express; handlers check the rest.

    They are labels with a value, present or absent, and a field.
    """
    labels = tuple(
        (name, want)
        for name, want in filters.labels
        if isinstance(want, (str, Presence))
    )
    value = None if isinstance(filters.value, Callback) else filters.value
    return Filters(labels=labels, field=filters.field, value=value)


def asked_by(groups: Iterable[Group], name: str) -> frozenset[str]:
    """The ids of the handlers behind the last part of a webhook's path.

    This part is the path of a group, or the id of one handler, as in Kopf. Raises
    `UnknownWebhook` for any other name.
    """
    groups = tuple(groups)
    for each in groups:  # configurations use paths of groups, so they come first
        if each.path == name:
            return each.ids
    if any(name in each.ids for each in groups):
        return frozenset((name,))
    raise UnknownWebhook(name)


# -------------------------------------------------------------- the configurations


def configurations_of(
    groups: Iterable[Group], catalogue: Catalogue, about: Registration
) -> dict[Role, dict[str, Any]]:
    """The manifests of both configurations, by role; one without webhooks is empty.

    A group whose kinds are not served has no webhook.
    """
    found: dict[Role, dict[str, Any]] = {}
    for role, resource in CONFIGURATIONS.items():
        webhooks = [
            spec
            for each in groups
            if each.role is role
            and (spec := _webhook_spec(each, catalogue, about)) is not None
        ]
        found[role] = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": about.name},
            "webhooks": webhooks,
        }
    return found


def persistent(
    manifest: Mapping[str, Any], groups: Iterable[Group]
) -> list[Mapping[str, Any]]:
    """The webhooks that stay registered while the operator is down."""
    end = f".{manifest['metadata']['name']}"
    kept = {f"{each.name}{end}" for each in groups if each.webhook.persistent}
    return [spec for spec in manifest["webhooks"] if spec["name"] in kept]


def _webhook_spec(
    group: Group, catalogue: Catalogue, about: Registration
) -> dict[str, Any] | None:
    """A webhook of a configuration; None if it has no rules."""
    rules = _rules_of(group, catalogue)
    if not rules:
        return None
    webhook = group.webhook
    spec: dict[str, Any] = {
        "name": f"{group.name}.{about.name}",
        "clientConfig": _client_config(about.client, group.path),
        "rules": rules,
        "failurePolicy": "Ignore" if webhook.ignore_failures else "Fail",
        "matchPolicy": webhook.match_policy,
        "namespaceSelector": _namespace_selector(webhook, about),
        "objectSelector": _object_selector(webhook, group.filters, about.selector),
        "sideEffects": _side_effects(group),
        "timeoutSeconds": webhook.timeout,
        "admissionReviewVersions": [*webhook.review_versions],
    }
    if conditions := _match_conditions(group, about):
        spec["matchConditions"] = conditions
    if ROLES[group.role].mutates:
        policy = "IfNeeded" if webhook.reinvocation else "Never"
        spec["reinvocationPolicy"] = policy
    return spec


def _side_effects(group: Group) -> str:
    """In a dry run, the API server calls no webhook that may have side effects.

    An impure handler is called, and so is a conversation, which may make calls. It
    refuses if it does not declare its behaviour in a dry run.
    """
    if group.webhook.says_harmless:
        return "None"
    acts = group.webhook.side_effects or any(
        each.function or each.signature.form is not Form.PLAN for each in group.handlers
    )
    return "NoneOnDryRun" if acts else "None"


def _client_config(client: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The client configuration of one webhook, with its name at the end of the path."""
    found = dict(client)
    if (url := found.get("url")) is not None:
        found["url"] = f"{str(url).rstrip('/')}/{quote(name)}"
    if (service := found.get("service")) is not None:
        path = f"{str(service.get('path') or '').rstrip('/')}/{quote(name)}"
        found["service"] = {**service, "path": path}
    return found


def _rules_of(group: Group, catalogue: Catalogue) -> list[dict[str, Any]]:
    """The rules of a webhook; handlers of one version and operations share a rule."""
    found: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for handler in group.handlers:
        assert handler.selector is not None, "they are about kinds"
        assert handler.webhook is not None, "groups are of admission handlers"
        operations = _operations_of(handler, handler.webhook)
        for each in kinds_of(handler.selector, catalogue):
            key = each.group, each.version, operations
            names = found.setdefault(key, [])
            names += (
                name
                for name in _resources_of(each.plural, handler.webhook.subresource)
                if name not in names
            )
    return [
        {
            "apiGroups": [api_group],
            "apiVersions": [version],
            "operations": [*operations],
            "resources": [*_without_covered(resources)],
            "scope": "*",
        }
        for (api_group, version, operations), resources in found.items()
    ]


def kinds_of(selector: Selector, catalogue: Catalogue) -> tuple[Resource, ...]:
    """The served kinds whose requests lead to a handler's call.

    A handler for all kinds is not called for kinds that the API server does not store,
    such as TokenReviews. Otherwise, while the operator is down, its failure policy
    would deny every login. Neither is it called for the kinds that nodes need to join a
    cluster: the operator itself would have to run on one of these nodes.
    """
    found = catalogue.find(selector)
    if not catalogue.is_broad(selector):
        return found
    return tuple(
        each
        for each in found
        if (not each.verbs or "get" in each.verbs)
        and (each.group, each.plural) not in _OF_NODES
    )


_OF_NODES = frozenset(
    (
        ("", "nodes"),
        ("storage.k8s.io", "csinodes"),
        ("certificates.k8s.io", "certificatesigningrequests"),
    )
)


def _operations_of(handler: Handler, webhook: Webhook) -> tuple[str, ...]:
    if webhook.operations:
        return webhook.operations
    if handler.rule.mutates and not webhook.own_name:  # nothing to change in deletions
        return tuple(each for each in OPERATIONS if each != "DELETE")
    return ("*",)


def _resources_of(plural: str, subresource: str | None) -> tuple[str, ...]:
    if subresource is None:
        return (plural,)
    return (
        (plural, f"{plural}/*") if subresource == "*" else (f"{plural}/{subresource}",)
    )


def _without_covered(resources: Collection[str]) -> Iterator[str]:
    """The resources of a rule without the subresources that `x/*` covers.

    The API server refuses a rule with both.

    >>> [*_without_covered(["pods", "pods/status", "pods/*", "jobs/status"])]
    ['pods', 'pods/*', 'jobs/status']
    """
    for each in resources:
        plural, _, subresource = each.partition("/")
        if subresource in ("", "*") or f"{plural}/*" not in resources:
            yield each


def _namespace_selector(webhook: Webhook, about: Registration) -> dict[str, Any]:
    """The namespaces whose requests lead to a call of the webhook.

    A webhook that is down and may not be ignored must not keep the cluster from
    repairing itself, nor the operator from starting. So the system's namespaces and the
    operator's own are excluded, unless they are named.
    """
    if webhook.namespace_selector:
        return dict(webhook.namespace_selector)
    if not about.labelled:
        return {}
    named = about.namespaces
    if named is not None and not has_patterns(named):
        return {"matchExpressions": [_name_expression("In", named)]}
    if webhook.ignore_failures:
        return {}
    spared = [each for each in (*SYSTEM, about.namespace) if each]
    return {"matchExpressions": [_name_expression("NotIn", sorted({*spared}))]}


def is_asked(webhook: Webhook, about: Registration, request: Request) -> bool | None:
    """Whether the selectors of a webhook select a request.

    None if that depends on facts that no request has: the labels of its namespace. The
    author's match conditions count as unknown, too.

    >>> request = Request("1", "CREATE", "", "v1", "pods", "Pod", namespace="prod")
    >>> about = Registration("me", {}, namespaces=("prod",))
    >>> is_asked(Webhook(), about, request)
    True
    >>> is_asked(Webhook(), about, request._replace(namespace="kube-system"))
    False
    """
    found = (
        _selects_object(webhook, request),
        _selects_namespace(_namespace_selector(webhook, about), request),
        None if webhook.match_conditions else True,
    )
    return False if False in found else None if None in found else True


def _selects_object(webhook: Webhook, request: Request) -> bool:
    """Whether the author's object selector matches the new or the old object."""
    if not webhook.object_selector:
        return True
    objects = (each for each in (request.object, request.old) if each is not None)
    return any(
        matches(webhook.object_selector, Body(each).mapping("labels"))
        for each in objects
    )


def _selects_namespace(selector: Mapping[str, Any], request: Request) -> bool | None:
    """Whether a namespace selector matches the namespace of a request, by its name.

    Objects without a namespace are never exempt, except a Namespace itself.
    """
    is_one = (request.group, request.plural) == ("", "namespaces")
    name = request.name if is_one else request.namespace
    if not selector or not name:
        return True
    labels = {NAME_LABEL: name}
    if is_one:
        labels = {**Body(request.present).mapping("labels"), **labels}
    keys = {*selector.get("matchLabels", ())}
    keys |= {each["key"] for each in selector.get("matchExpressions", ())}
    is_known = is_one or keys <= {NAME_LABEL}
    return matches(selector, labels) if is_known else None


def _name_expression(operator: str, values: Iterable[str]) -> dict[str, Any]:
    return {"key": NAME_LABEL, "operator": operator, "values": [*values]}


def _object_selector(
    webhook: Webhook, filters: Filters, selector: str
) -> dict[str, Any]:
    """The labels of the objects whose requests lead to a call of the webhook.

    It calls it if the new object has them, or the old one.
    """
    found = {key: value for key, value in webhook.object_selector.items()}
    given = found.get("matchLabels", {})
    labels = {n: want for n, want in filters.labels if isinstance(want, str)}
    # A label of both options must have both values.
    twice = labels.keys() & given.keys()
    if labels:
        found["matchLabels"] = {**labels, **given}
    expressions: list[dict[str, Any]] = [
        {"key": name, "operator": "In", "values": [labels[name]]}
        for name in sorted(twice)
        if labels[name] != given[name]
    ]
    expressions += [
        {
            "key": name,
            "operator": "Exists" if want is Presence.PRESENT else "DoesNotExist",
        }
        for name, want in filters.labels
        if isinstance(want, Presence)
    ]
    # Manifests have no Gt and Lt: the core alone evaluates these.
    expressions += [
        {
            "key": e.key,
            "operator": e.operator,
            **({"values": [*e.values]} if e.values else {}),
        }
        for e in requirements(selector)
        if e.operator not in ("Gt", "Lt")
    ]
    if expressions:
        found["matchExpressions"] = [*found.get("matchExpressions", ()), *expressions]
    return found


# ------------------------------------------------------------- match conditions


def _match_conditions(group: Group, about: Registration) -> list[dict[str, str]]:
    """The conditions for calls by the API server, in CEL (Kubernetes 1.27).

    An older server drops them; the handlers' filters decide the same.
    """
    webhook = group.webhook
    found = dict(webhook.match_conditions)
    if not webhook.deleted:
        found["not-being-deleted"] = _NOT_ENDING
    if about.account and not webhook.own_writes:
        found["not-by-the-operator"] = own_writes.condition(
            about.account, about.manager
        )
    namespaces = about.namespaces
    if namespaces and has_patterns(namespaces) and not webhook.namespace_selector:
        found["namespace"] = _namespace_condition(namespaces)
    field = "" if webhook.own_name else _field_condition(group.filters)
    if field:
        found["field"] = field
    return [{"name": name, "expression": cel} for name, cel in found.items()]


_NOT_ENDING = (
    "request.operation == 'CREATE' || oldObject == null || "
    "!has(oldObject.metadata.deletionTimestamp)"
)


def _namespace_condition(given: Iterable[str]) -> str:
    """The condition that the namespace is served; cluster-scoped objects always are.

    A label selector supports no patterns. Without this, the failure policy would decide
    in namespaces that the operator does not serve.

    >>> for each in _namespace_condition(["!kube-*"]).split(" || "): print(each)
    !has(request.namespace)
    request.namespace == ''
    (request.namespace.matches('^.*$') && !request.namespace.matches('^kube-.*$'))
    """
    options = []
    for each in given:
        said = ""
        for adds, pattern in steps_of(each):
            fits = _namespace_expression(pattern)
            if adds:
                said = f"({said} || {fits})" if said else fits
            else:
                said = f"({said} && !{fits})"
        options.append(said)
    nowhere = "!has(request.namespace) || request.namespace == ''"
    return " || ".join((nowhere, *options))


def _namespace_expression(pattern: str) -> str:
    if not is_pattern(pattern):
        return f"(request.namespace == {literal(pattern)})"
    text = pattern.replace("*", ".*").replace("?", ".")
    return f"request.namespace.matches({literal(f'^{text}$')})"


def _field_condition(filters: Filters) -> str:
    """The condition that the object has a field and value; "" if CEL cannot say it.

    If CEL cannot express a name or a value, or not briefly enough, only the handler's
    filter decides.

    In match conditions `object` and `oldObject` are of the type dyn, whatever the
    schema of their kind (apiserver: admission/plugin/cel/compile.go). They are maps
    with the JSON names as keys. Escapes of typed schemas, such as `__slash__`, do not
    apply to them.
    """
    path = filters.field
    if not path or not all(map(is_sayable, path)):
        return ""
    now, before = (
        _field_expression(each, path, filters.value) for each in ("object", "oldObject")
    )
    found = f"object == null ? {before} : {now}" if now else ""
    return found if len(found) <= SIZE_MAX else ""


def _field_expression(root: str, path: Path, value: Any) -> str:
    """The condition that an object has a field and value; never an error. "" as above.

    For the filter, a null is absent. `has` and `in` fail if the parent is not a map.

    >>> _field_expression("object", ("spec", "a-b"), "x").split(" && ")[:2]
    ['has(object.spec)', 'type(object.spec) == map']
    >>> _field_expression("object", ("spec", "a-b"), "x").split(" && ")[2:4]
    ["'a-b' in object.spec", "object.spec['a-b'] != null"]
    """
    steps, parent = [], root
    for name in path:
        if parent != root:
            steps.append(f"type({parent}) == map")
        if is_name(name):
            place = f"{parent}.{name}"
            steps.append(f"has({place})")
        else:
            place = f"{parent}[{literal(name)}]"
            steps.append(f"{literal(name)} in {parent}")
        parent = place
    present = " && ".join((*steps, f"{parent} != null"))
    match value:
        case None | Presence.PRESENT:
            return present
        case Presence.ABSENT:
            return f"!({present})"
        case str() | bool() | int() if is_sayable(value):
            return f"{present} && {parent} == {literal(value)}"
        case _:
            return ""
