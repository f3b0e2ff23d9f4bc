"""Check that written roles and bindings grant no more rights than their writer has.

`pkg/registry/rbac/*/policybased` and `pkg/registry/rbac/validation` in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

from fnop.effects.structs import replace
from fnop.interpreters.cluster.access.rbac import (
    GROUP,
    MASTERS,
    MissingRole,
    Rule,
    decide,
    forbidden_by,
    grants_of,
    is_path_in,
    missing_roles,
    rules_of,
    rules_of_reference,
)
from fnop.interpreters.cluster.requests.request import Attributes, Call, attributes_of
from fnop.interpreters.cluster.storage.store import Cluster, lookup
from fnop.interpreters.cluster.values.objects import Object, same
from fnop.interpreters.cluster.values.status import not_found, quoted
from fnop.interpreters.runtime.protocol import User

__all__ = ["check_escalation", "uncovered"]

ROLE_KINDS = ("roles", "clusterroles")
BINDING_KINDS = ("rolebindings", "clusterrolebindings")
EVERYTHING = (
    Rule(("*",), ("*",), ("*",)),
    Rule(("*",), urls=("*",)),
)


def check_escalation(cluster: Cluster, call: Call, new: Any) -> None:
    """Refuse to write a role or binding that grants more than its writer has.

    `cluster` is the cluster before the write, and `new` is the object to be stored.
    """
    user, kind = call.request.user, call.kind
    if user is None or not cluster.rbac or kind.group != GROUP:
        return
    if not isinstance(new, dict) or not isinstance(new.get("metadata"), dict):
        return  # the decoder will report it
    if MASTERS in user.groups or _is_housekeeping(cluster, call, new):
        return
    if kind.plural in ROLE_KINDS:
        _check_role(cluster, call, user, new)
    elif kind.plural in BINDING_KINDS:
        _check_binding(cluster, call, user, new)


def _is_housekeeping(cluster: Cluster, call: Call, new: Object) -> bool:
    """Whether a write changes finalizers and owners only, as the collector does."""
    old = lookup(cluster, call.kind.resource, call.key)
    return old is not None and same(_without_volatile(old), _without_volatile(new))


VOLATILE = ("finalizers", "ownerReferences", "managedFields", "resourceVersion")


def _without_volatile(obj: Object) -> Object:
    metadata = {k: v for k, v in obj["metadata"].items() if k not in VOLATILE}
    return {**obj, "metadata": metadata}


def _check_role(cluster: Cluster, call: Call, user: User, role: Object) -> None:
    asked = attributes_of(call.request)._replace(verb="escalate")
    if decide(cluster, user, asked).allowed:
        return
    namespace = call.route.namespace or ""
    _confirm(cluster, call, user, rules_of(role), role, namespace)
    if role.get("aggregationRule") and _missing_rules(cluster, user, EVERYTHING, ""):
        why = "must have cluster-admin privileges to use the aggregationRule"
        raise forbidden_by(_attributes_of(call, role), why)


def _check_binding(cluster: Cluster, call: Call, user: User, binding: Object) -> None:
    reference, namespace = binding.get("roleRef"), call.route.namespace or ""
    if not isinstance(reference, dict):
        return
    plural = "roles" if reference.get("kind") == "Role" else "clusterroles"
    name = str(reference.get("name"))
    asked = Attributes("bind", GROUP, plural, "", namespace, name)
    if decide(cluster, user, asked).allowed:
        return
    try:
        rules = rules_of_reference(cluster, reference, namespace)
    except MissingRole:
        raise not_found(GROUP, plural, name) from None
    _confirm(cluster, call, user, rules, binding, namespace)


def _attributes_of(call: Call, obj: Object) -> Attributes:
    name = obj["metadata"].get("name", "")
    return Attributes("", call.kind.group, call.kind.plural, name=name)


def _confirm(
    cluster: Cluster,
    call: Call,
    user: User,
    rules: Sequence[Rule],
    obj: Object,
    namespace: str,
) -> None:
    """ConfirmNoEscalation: the writer has every right that the rules give."""
    lacking = _missing_rules(cluster, user, rules, namespace)
    if not lacking:
        return
    lines = sorted({_rule_text(rule) for rule in compacted(lacking)})
    why = (
        f"user {quoted(user.name)} (groups={_list_text(user.groups)}) is attempting to "
        "grant RBAC permissions not currently held:\n" + "\n".join(lines)
    )
    missing = missing_roles(grants_of(cluster, user, namespace), plural=True)
    if missing:
        why += f"; resolution errors: [{missing}]"
    raise forbidden_by(_attributes_of(call, obj), why)


def _missing_rules(
    cluster: Cluster, user: User, rules: Iterable[Rule], namespace: str
) -> list[Rule]:
    grants = grants_of(cluster, user, namespace)
    return uncovered([rule for grant in grants for rule in grant.rules], rules)


def uncovered(owned: Sequence[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """The smallest rules of `wanted` that no rule of `owned` covers alone.

    >>> owned = [Rule(("get",), ("",), ("pods",))]
    >>> uncovered(owned, [Rule(("get", "list"), ("",), ("pods",))])[0].verbs
    ('list',)
    """
    return [
        single
        for rule in wanted
        for single in _split_rule(rule)
        if not any(_covers(own, single) for own in owned)
    ]


def _split_rule(rule: Rule) -> Iterator[Rule]:
    """A rule as rules of one verb for one thing each (BreakdownRule)."""
    names: list[tuple[str, ...]] = [(name,) for name in rule.names] or [()]
    for group, resource, verb in product(rule.groups, rule.resources, rule.verbs):
        for name in names:
            yield Rule((verb,), (group,), (resource,), name)
    for url in rule.urls:
        for verb in rule.verbs:
            yield Rule((verb,), urls=(url,))


def _covers(own: Rule, single: Rule) -> bool:
    if single.verbs[0] not in own.verbs and "*" not in own.verbs:
        return False
    if single.urls:
        url = single.urls[0]
        return any(url == held or is_path_in(url, held) for held in own.urls)
    # Rights on some names only do not cover rights on all names.
    if own.names and not (single.names and single.names[0] in own.names):
        return False
    # A rule about "*/scale" of everything is not a rule about one's own name.
    return own.covers_resource(single.verbs[0], single.groups[0], single.resources[0])


def compacted(rules: Iterable[Rule]) -> list[Rule]:
    """The rules, with those that differ only by their verbs merged (CompactRules).

    >>> [rule.verbs for rule in compacted([Rule(("get",), ("",), ("pods",)),
    ...                                    Rule(("list",), ("",), ("pods",))])]
    [('get', 'list')]
    """
    found: dict[Any, Rule] = {}
    for rule in rules:
        key = rule if rule.urls else replace(rule, verbs=())
        have = found.get(key)
        verbs = (*have.verbs, *rule.verbs) if have and not rule.urls else rule.verbs
        found[key] = replace(rule, verbs=verbs)
    return list(found.values())


def _rule_text(rule: Rule) -> str:
    parts = (
        ("APIGroups", rule.groups),
        ("Resources", rule.resources),
        ("NonResourceURLs", rule.urls),
        ("ResourceNames", rule.names),
        ("Verbs", rule.verbs),
    )
    shown = (f"{name}:{_list_text(values)}" for name, values in parts if values)
    return f"{{{', '.join(shown)}}}"


def _list_text(texts: Iterable[str]) -> str:
    """Go's %q of a list of strings."""
    return f"[{' '.join(map(quoted, texts))}]"
