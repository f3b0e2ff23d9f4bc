"""Validation of roles and their bindings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fnop.interpreters.cluster.validation.faults import bad
from fnop.interpreters.cluster.validation.rules import Spec, must, one_of
from fnop.interpreters.cluster.validation.selector_rules import label_selector
from fnop.interpreters.cluster.validation.tables import (
    each,
    has,
    needed,
    table,
    unless,
    when,
)
from fnop.interpreters.cluster.values.objects import Object
from fnop.interpreters.cluster.values.status import Fault

__all__ = [
    "BINDING",
    "CLUSTER_BINDING",
    "CLUSTER_ROLE",
    "GROUP",
    "ROLE",
    "binding_changes",
]

GROUP = "rbac.authorization.k8s.io"


def _one_sort(rule: Spec, path: str) -> Iterator[Fault]:
    names = ("apiGroups", "resources", "resourceNames")
    if any(rule.get(name) for name in names):
        why = "rules cannot apply to both regular resources and non-resource URLs"
        yield bad(f"{path}.nonResourceURLs", rule["nonResourceURLs"], why)


def _of_urls(rule: Spec) -> Any:
    return rule.get("nonResourceURLs")


NO_URLS = must(
    lambda urls: not urls, "namespaced rules cannot apply to non-resource URLs"
)
VERBS = table("verbs: needed (verbs must contain at least one value)")
POLICY_RULE = table(
    when(_of_urls, _one_sort),
    unless(
        _of_urls,
        "apiGroups: needed (resource rules must supply at least one api group)",
        "resources: needed (resource rules must supply at least one resource)",
    ),
)
ROLE = table(("rules[]", VERBS, table(("nonResourceURLs", NO_URLS)), POLICY_RULE))


def _aggregated(selector: Spec, path: str) -> Iterator[Fault]:
    wrong = [*label_selector(selector, path)]
    yield from wrong
    if wrong:
        yield bad(path, selector, "invalid label selector.")


NO_SELECTOR = "at least one clusterRoleSelector required if aggregationRule is non-nil"
CLUSTER_ROLE = table(
    ("rules[]", VERBS, POLICY_RULE),
    (
        "aggregationRule?.clusterRoleSelectors",
        needed(each(_aggregated), why=NO_SELECTOR),
    ),
)
SUBJECT = table(
    "name: needed",
    when(
        has("kind", "ServiceAccount"),
        "name: filled; subdomain",
        ("apiGroup", one_of("")),
    ),
    when(has("kind", "User", "Group"), ("apiGroup", one_of(GROUP))),
    "kind: ServiceAccount | User | Group",
)
CLUSTER_SUBJECT = when(has("kind", "ServiceAccount"), "namespace: needed")
BINDING = table(
    ("roleRef.apiGroup", one_of(GROUP)),
    "roleRef.kind: Role | ClusterRole",
    "roleRef.name: needed; path segment",
    ("subjects[]", SUBJECT),
)
CLUSTER_BINDING = table(
    ("roleRef.apiGroup", one_of(GROUP)),
    ("roleRef.kind", one_of("ClusterRole")),
    "roleRef.name: needed; path segment",
    ("subjects[]", SUBJECT, CLUSTER_SUBJECT),
)


def binding_changes(new: Object, old: Object) -> Iterator[Fault]:
    """Yield a changed reference to the role."""
    target = new["roleRef"]
    if target != old.get("roleRef"):
        names = (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))
        shown = {go_name: target.get(name, "") for go_name, name in names}
        yield bad("roleRef", shown, "cannot change roleRef")
