"""The RBAC authorizer: it reads roles and bindings and decides about requests.

Nothing here is stored twice. The meaning of a policy is derived from the roles and
bindings in the cluster, and remembered as long as these stay the same values. The rules
come from `plugin/pkg/auth/authorizer/rbac` in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from immutables import Map
from msgspec import Struct

from fnop.core.kubernetes.label_selectors import matches
from fnop.interpreters.cluster.requests.request import Attributes, Call, attributes_of
from fnop.interpreters.cluster.storage.store import Cluster, lookup, shelf
from fnop.interpreters.cluster.values.objects import Key, Object, Resource
from fnop.interpreters.cluster.values.status import Refusal, failure, quoted
from fnop.interpreters.runtime.protocol import APPLY_PATCH, ApiRequest, User

__all__ = [
    "GROUP",
    "MASTERS",
    "Decision",
    "Grant",
    "MissingRole",
    "Rule",
    "aggregated",
    "authorize",
    "authorize_creation",
    "decide",
    "forbidden_by",
    "grants_of",
    "is_path_in",
    "missing_roles",
    "not_permitted",
    "rules_of",
    "rules_of_reference",
]

GROUP = "rbac.authorization.k8s.io"
ROLES: Resource = (GROUP, "roles")
CLUSTER_ROLES: Resource = (GROUP, "clusterroles")
ROLE_BINDINGS: Resource = (GROUP, "rolebindings")
CLUSTER_ROLE_BINDINGS: Resource = (GROUP, "clusterrolebindings")
# Members of this group may do everything, regardless of the roles.
MASTERS = "system:masters"
# The number of answers that a policy remembers before it forgets them all.
REMEMBERED = 10_000


class Rule(Struct, frozen=True):
    """One rule of a role."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    def covers_resource(self, verb: str, group: str, combined: str) -> bool:
        """Whether the rule covers this, regardless of the object's name.

        >>> scaling = Rule(("get",), ("*",), ("*/scale",))
        >>> scaling.covers_resource("get", "apps", "deployments/scale")
        True
        >>> scaling.covers_resource("get", "apps", "deployments")
        False
        """
        if verb not in self.verbs and "*" not in self.verbs:
            return False
        if group not in self.groups and "*" not in self.groups:
            return False
        if combined in self.resources or "*" in self.resources:
            return True
        _, slash, subresource = combined.partition("/")
        return bool(slash) and f"*/{subresource}" in self.resources

    def covers_path(self, verb: str, path: str) -> bool:
        """Whether the rule covers a path that is not a resource.

        >>> Rule(("get",), urls=("/healthz/*",)).covers_path("get", "/healthz/etcd")
        True
        """
        if verb not in self.verbs and "*" not in self.verbs:
            return False
        return any(is_path_in(path, url) for url in self.urls)


def is_path_in(path: str, url: str) -> bool:
    """Whether a rule's path, which may end in "*", covers a path."""
    if url in ("*", path):
        return True
    return url.endswith("*") and path.startswith(url.rstrip("*"))


class Grant(Struct, frozen=True):
    """The rules that one binding grants, and its description for reasons."""

    rules: tuple[Rule, ...]
    why: str
    # The plural and name of a role that does not exist.
    missing: tuple[str, str] | None = None


class Decision(Struct, frozen=True):
    """Whether something is allowed; the reason is what the server says about it."""

    allowed: bool
    reason: str = ""


class MissingRole(Exception):
    """A binding refers to a role that does not exist."""

    def __init__(self, plural: str, name: str) -> None:
        super().__init__(name)
        self.plural, self.name = plural, name


# ------------------------------------------------------------ roles as they are


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _dicts(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    return [item for item in value if isinstance(item, dict)]


def rules_of(role: Object) -> tuple[Rule, ...]:
    """The rules of a role or cluster role."""
    return tuple(
        Rule(
            _texts(rule.get("verbs")),
            _texts(rule.get("apiGroups")),
            _texts(rule.get("resources")),
            _texts(rule.get("resourceNames")),
            _texts(rule.get("nonResourceURLs")),
        )
        for rule in _dicts(role.get("rules"))
    )


def aggregated(cluster: Cluster, role: Object) -> list[dict[str, Any]] | None:
    """The rules that an aggregated role should have; None if it has them.

    The clusterrole-aggregation controller writes them: the rules of all roles that its
    selectors match, selector by selector, in the order of the names.
    """
    rule = role.get("aggregationRule")
    if not isinstance(rule, dict):
        return None
    rules: list[dict[str, Any]] = []
    others = sorted(shelf(cluster, CLUSTER_ROLES).items())
    for selector in _dicts(rule.get("clusterRoleSelectors")):
        for (_, name), other in others:
            labels = other["metadata"].get("labels", {})
            if name == role["metadata"]["name"] or not matches(selector, labels):
                continue
            for each in _dicts(other.get("rules")):
                if each not in rules:
                    rules.append(each)
    return None if rules == (role.get("rules") or []) else rules


class _Sources:
    """The four collections of a policy: equal only if they are the same values."""

    __slots__ = ("bindings", "cluster_bindings", "cluster_roles", "roles")

    def __init__(self, cluster: Cluster) -> None:
        self.roles = shelf(cluster, ROLES)
        self.cluster_roles = shelf(cluster, CLUSTER_ROLES)
        self.bindings = shelf(cluster, ROLE_BINDINGS)
        self.cluster_bindings = shelf(cluster, CLUSTER_ROLE_BINDINGS)

    def __hash__(self) -> int:
        return id(self.roles) ^ id(self.cluster_roles) ^ id(self.bindings)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Sources)
            and self.roles is other.roles
            and self.cluster_roles is other.cluster_roles
            and self.bindings is other.bindings
            and self.cluster_bindings is other.cluster_bindings
        )


class _Bound(NamedTuple):
    """One subject of one binding; they sort in the order of the authorizer."""

    binding: str
    number: int
    subject: str
    role: tuple[str, str]  # plural, name


# Subject -> its bindings. A subject is "User/NAME" or "Group/NAME".
_Index = dict[str, list[_Bound]]


def _subject(subject: dict[str, Any], namespace: str) -> tuple[str, str] | None:
    """The key and the description of a subject (describeSubject)."""
    kind, name = subject.get("kind"), subject.get("name")
    if kind in ("User", "Group"):
        return f"{kind}/{name}", f"{kind} {quoted(str(name))}"
    where = subject.get("namespace") or namespace
    if kind != "ServiceAccount" or not where:
        return None
    user = f"User/system:serviceaccount:{where}:{name}"
    return user, f"{kind} {quoted(f'{name}/{where}')}"


def _add_to_indices(
    bindings: Iterable[tuple[Key, Object]], indices: dict[str, _Index]
) -> None:
    for (namespace, name), binding in bindings:
        reference = binding.get("roleRef") or {}
        plural = "roles" if reference.get("kind") == "Role" else "clusterroles"
        role = (plural, str(reference.get("name")))
        index = indices.setdefault(namespace, {})
        for number, subject in enumerate(_dicts(binding.get("subjects"))):
            found = _subject(subject, namespace)
            if found is not None:
                bound = _Bound(name, number, found[1], role)
                index.setdefault(found[0], []).append(bound)


class _Policy:
    """The policy that the four collections of roles and bindings make."""

    def __init__(self, sources: _Sources) -> None:
        self.sources = sources
        # By namespace; "" is the whole cluster.
        self.indices: dict[str, _Index] = {}
        _add_to_indices(sources.cluster_bindings.items(), self.indices)
        _add_to_indices(sources.bindings.items(), self.indices)
        # Answers already given: only a cache, never a state.
        self._grants: dict[tuple[User, str], tuple[Grant, ...]] = {}
        self._matches: dict[Any, tuple[tuple[frozenset[str], str], ...]] = {}

    def grants(self, user: User, namespace: str) -> tuple[Grant, ...]:
        """The grants of a user in a namespace, cluster role bindings first."""
        found = self._grants.get((user, namespace))
        if found is None:
            if len(self._grants) > REMEMBERED:
                self._grants.clear()
            found = tuple(self._iter_grants(user, ""))
            if namespace:
                found += tuple(self._iter_grants(user, namespace))
            self._grants[user, namespace] = found
        return found

    def _iter_grants(self, user: User, namespace: str) -> Iterator[Grant]:
        index = self.indices.get(namespace, {})
        subjects = [f"User/{user.name}", *(f"Group/{group}" for group in user.groups)]
        bound = sorted(b for subject in subjects for b in index.get(subject, ()))
        # If a binding names the user twice, the first subject counts.
        first: dict[str, _Bound] = {}
        for each in bound:
            first.setdefault(each.binding, each)
        for each in first.values():
            yield self._grant(each, namespace)

    def _grant(self, bound: _Bound, namespace: str) -> Grant:
        plural, name = bound.role
        kind = "Role" if plural == "roles" else "ClusterRole"
        own = "RoleBinding" if namespace else "ClusterRoleBinding"
        called = f"{bound.binding}/{namespace}" if namespace else bound.binding
        why = f"{own} {quoted(called)} of {kind} {quoted(name)} to {bound.subject}"
        try:
            return Grant(self.rules(plural, name, namespace), why)
        except MissingRole:
            return Grant((), why, bound.role)

    def rules(self, plural: str, name: str, namespace: str) -> tuple[Rule, ...]:
        """The rules of a role that a binding in this namespace refers to."""
        roles: Map[Key, Object] = self.sources.cluster_roles
        if plural == "roles":
            roles = self.sources.roles
        role = roles.get((namespace if plural == "roles" else "", name))
        if role is None:
            raise MissingRole(plural, name)
        return rules_of(role)

    def decide(self, user: User, wanted: Attributes) -> Decision:
        """The first rule that allows it, or the reason why none does."""
        # The name is not part of the cache key: there are too many names.
        asked = (user, wanted[:5], wanted.path)
        matches = self._matches.get(asked)
        if matches is None:
            if len(self._matches) > REMEMBERED:
                self._matches.clear()
            matches = self._matches[asked] = tuple(self._matching_rules(user, wanted))
        for names, why in matches:
            if not names or wanted.name in names:
                return Decision(True, f"RBAC: allowed by {why}")
        missing = missing_roles(self.grants(user, wanted.namespace))
        return Decision(False, f"RBAC: {missing}" if missing else "")

    def _matching_rules(
        self, user: User, wanted: Attributes
    ) -> Iterator[tuple[frozenset[str], str]]:
        verb, combined = wanted.verb, wanted.combined
        for grant in self.grants(user, wanted.namespace):
            for rule in grant.rules:
                if wanted.path:
                    if rule.covers_path(verb, wanted.path):
                        yield frozenset(), grant.why
                elif rule.covers_resource(verb, wanted.group, combined):
                    yield frozenset(rule.names), grant.why


def missing_roles(grants: Iterable[Grant], *, plural: bool = False) -> str:
    """The sentence about roles that do not exist; "" if all do.

    The authorizer's lister names their resource in the singular. The storage that the
    check of escalations asks names it in the plural.
    """
    missing = dict.fromkeys(grant.missing for grant in grants if grant.missing)
    texts = [
        f"{kind if plural else kind[:-1]}.{GROUP} {quoted(name)} not found"
        for kind, name in missing
    ]
    # Several errors as Go's aggregate prints them.
    return f"[{', '.join(texts)}]" if len(texts) > 1 else "".join(texts)


@lru_cache(maxsize=16)
def _policy_of(sources: _Sources) -> _Policy:
    return _Policy(sources)


def _policy(cluster: Cluster) -> _Policy:
    return _policy_of(_Sources(cluster))


# --------------------------------------------------------------------- deciding


def decide(cluster: Cluster, user: User, wanted: Attributes) -> Decision:
    """Whether a user may do something."""
    if not cluster.rbac or MASTERS in user.groups:
        return Decision(True)
    return _policy(cluster).decide(user, wanted)


def grants_of(cluster: Cluster, user: User, namespace: str) -> tuple[Grant, ...]:
    """Everything that bindings grant to a user, in a namespace or ("") everywhere."""
    return _policy(cluster).grants(user, namespace)


def rules_of_reference(
    cluster: Cluster, reference: dict[str, Any], namespace: str
) -> tuple[Rule, ...]:
    """The rules that a roleRef stands for. Raises `MissingRole`."""
    plural = "roles" if reference.get("kind") == "Role" else "clusterroles"
    return _policy(cluster).rules(plural, str(reference.get("name")), namespace)


def authorize(cluster: Cluster, request: ApiRequest) -> None:
    """Refuse a request that its user may not make.

    A request without a user is not checked. This comes before any look-up: a user who
    may not know whether something exists learns nothing about it.
    """
    user = request.user
    if user is None or not cluster.rbac:
        return
    wanted = attributes_of(request)
    decision = decide(cluster, user, wanted)
    if not decision.allowed:
        raise not_permitted(user, wanted, decision.reason)


def authorize_creation(cluster: Cluster, call: Call) -> None:
    """Refuse a PUT or apply that would create an object, if its user may not create."""
    kind, request = call.kind, call.request
    applies = request.content_type.startswith(APPLY_PATCH)
    creates = (request.method == "PUT" and kind.creates_on_update) or (
        request.method == "PATCH" and applies
    )
    if request.user is None or not creates or call.route.subresource:
        return
    if lookup(cluster, kind.resource, call.key) is not None:
        return
    wanted = attributes_of(request)._replace(verb="create")
    decision = decide(cluster, request.user, wanted)
    if not decision.allowed:
        # The handler reports only what the authorizer says (withAuthorization).
        raise forbidden_by(wanted, decision.reason)


def not_permitted(user: User, wanted: Attributes, reason: str = "") -> Refusal:
    """403 from authorization (responsewriters.Forbidden).

    >>> wanted = Attributes("get", path="/metrics")
    >>> not_permitted(User("x"), wanted).response.body["message"]
    'forbidden: User "x" cannot get path "/metrics"'
    """
    what = f"User {quoted(user.name)} cannot {wanted.verb} "
    if wanted.path:
        what += f"path {quoted(wanted.path)}"
    else:
        scope = "at the cluster scope"
        if wanted.namespace:
            scope = f"in the namespace {quoted(wanted.namespace)}"
        what += (
            f"resource {quoted(wanted.combined)} in API group {quoted(wanted.group)} "
            f"{scope}"
        )
    return forbidden_by(wanted, f"{what}: {reason}" if reason else what)


def forbidden_by(wanted: Attributes, why: str) -> Refusal:
    """403 about the object that a request names (errors.NewForbidden)."""
    details = {"name": wanted.name, "group": wanted.group, "kind": wanted.resource}
    subject = wanted.resource
    if wanted.group and subject:
        subject = f"{subject}.{wanted.group}"
    if wanted.name and subject:
        subject = f"{subject} {quoted(wanted.name)}"
    message = f"{subject} is forbidden: {why}" if subject else f"forbidden: {why}"
    return failure(403, "Forbidden", message, {k: v for k, v in details.items() if v})
