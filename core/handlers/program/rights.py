"""The rights that an operator needs, in RBAC's terms.

A command says which right its request requires. The table of replies says which right
it may require afterwards: fnop looks up a lost answer. A handler that was never seen at
work needs at least the rights that the framework itself uses for its role.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct

from fnop.core.api.namespaces import has_patterns
from fnop.core.api.resources import EVENTS, Resource
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import LOGS, Family
from fnop.core.peers.lease import Candidate
from fnop.core.peers.peering import kinds_for
from fnop.core.seam.commands import Command, FollowLog, ListPage, Perform, Watch
from fnop.core.seam.effect_rules import rule_of
from fnop.core.seam.replies import NEXT, EffectPurpose, Next
from fnop.core.values.patterns import is_pattern
from fnop.effects import Effect, Patch

__all__ = [
    "VERBS",
    "Need",
    "Right",
    "Who",
    "by_right",
    "least",
    "needs_of",
    "needs_of_broad",
    "needs_of_children",
    "needs_of_election",
    "needs_of_handler",
    "needs_of_peering",
    "role_namespaces",
]

# The verbs of requests to objects, in their usual order.
VERBS = (
    *("get", "list", "watch", "create", "update", "patch", "delete"),
    "deletecollection",
)
ANY = "*"
# The families whose handlers store no state on their objects.
_STATELESS = frozenset((Family.EVENT, Family.LOG, Family.INDEX))
# The kind of leases; each operator has one lease.
_LEASES = ("coordination.k8s.io", "leases")


class Right(NamedTuple):
    """One verb on one kind, or on its subresource; with a `name`, on that object.

    >>> print(Right("patch", "example.com", "databases", "status"))
    patch databases/status.example.com
    >>> print(Right("get", "", "configmaps", name="settings"))
    get configmaps "settings"
    """

    verb: str
    group: str
    resource: str
    subresource: str = ""
    name: str = ""

    @property
    def combined(self) -> str:
        """The resource as the rules of roles name it."""
        sub = f"/{self.subresource}" if self.subresource else ""
        return f"{self.resource}{sub}"

    def __str__(self) -> str:
        group = f".{self.group}" if self.group else ""
        name = f' "{self.name}"' if self.name else ""
        return f"{self.verb} {self.combined}{group}{name}"

    def covers(self, other: Right) -> bool:
        """Whether a subject with this right has the other one, too.

        >>> Right("list", "*", "*").covers(Right("list", "apps", "deployments"))
        True
        """
        return (
            self.verb in (ANY, other.verb)
            and self.group in (ANY, other.group)
            and self.combined in (ANY, other.combined)
            and self.name in ("", other.name)
        )


class Who(Struct, frozen=True):
    """The subject of a right: a handler by its id, or a part of the operator."""

    name: str
    is_handler: bool = True

    def __str__(self) -> str:
        return f"handler {self.name}" if self.is_handler else self.name


class Need(NamedTuple):
    """A right, the place of its use, and the subject that needs it.

    `namespace` is None if the right is needed in the whole cluster: for a kind without
    namespaces, or for objects of all namespaces.
    """

    right: Right
    namespace: str | None
    who: Who


def needs_of(command: Command, who: Who) -> Iterator[Need]:
    """The rights that a command requires, and those that its answer may require."""
    match command:
        case ListPage(resource=resource, namespace=namespace):
            yield _need_on(resource, namespace, "list", who)
        case Watch(resource=resource, namespace=namespace):
            yield _need_on(resource, namespace, "watch", who)
            if not command.version:  # the server may not have streaming lists
                yield _need_on(resource, namespace, "list", who)
        case FollowLog(namespace=namespace):
            yield Need(Right("get", "", "pods", "log"), namespace, who)
        case Perform(resource=Resource() as resource, namespace=namespace):
            for verb, sub in _verbs_of_effect(command, resource):
                yield _need_on(resource, namespace, verb, who, sub)
            yield from _needs_of_granting(command.effect, resource, namespace, who)
        case _:
            return


_RBAC = "rbac.authorization.k8s.io"
_ROLES = {"Role": "roles", "ClusterRole": "clusterroles"}


def _needs_of_granting(
    effect: Effect, resource: Resource, namespace: str | None, who: Who
) -> Iterator[Need]:
    """The right to grant the permissions that a role or a binding grants.

    A subject that writes a role needs all of its rights or the verb `escalate`. A
    subject that binds a role needs the same or the verb `bind` (Kubernetes: RBAC,
    privilege escalation prevention).
    """
    manifest = getattr(effect, "manifest", None) or getattr(effect, "child", None)
    if resource.group != _RBAC or not isinstance(manifest, Mapping):
        return
    if resource.plural in _ROLES.values():
        yield _need_on(resource, namespace, "escalate", who)
        return
    wanted = manifest.get("roleRef") or {}
    plural, name = _ROLES.get(str(wanted.get("kind"))), wanted.get("name")
    if plural is not None and name:
        place = namespace if plural == "roles" else None
        yield Need(Right("bind", _RBAC, plural, name=str(name)), place, who)


def _need_on(
    resource: Resource, namespace: str | None, verb: str, who: Who, sub: str = ""
) -> Need:
    place = namespace if resource.namespaced else None
    return Need(Right(verb, resource.group, resource.plural, sub), place, who)


def _verbs_of_effect(command: Perform, resource: Resource) -> Iterator[tuple[str, str]]:
    """The verbs of an effect, each with its subresource."""
    effect = command.effect
    if (resource.group, resource.plural) in EVENTS and command.subject is not None:
        # A report, which is not awaited; a repeated one increases the count.
        yield "create", ""
        yield "patch", ""
        return
    # Not the rights of peering and of leader election, which follow their own rules.
    is_of_work = command.subject is not None or bool(command.handler)
    if (resource.group, resource.plural) == ("", "namespaces") and not is_of_work:
        return  # whether it exists: without the right there is no warning
    rule = rule_of(effect)
    sub = (isinstance(effect, Patch) and effect.subresource) or rule.subresource
    for verb in rule.verbs:
        yield verb, sub
    if rule.verbs and is_of_work and _may_look(rule.purpose):
        yield "get", ""


def _may_look(purpose: EffectPurpose | None) -> bool:
    """Whether fnop reads the request's object after some answer, or after none."""
    return purpose is not None and Next.LOOK in NEXT[purpose]


# --------------------------------------------------------------- without having seen it


def needs_of_handler(
    handler: Handler, resource: Resource, namespace: str | None
) -> Iterator[Need]:
    """The rights that the framework needs for a handler, whatever the handler does.

    fnop follows its objects. It stores its state with their status if they have one,
    and otherwise next to the finalizer on the object itself. An admission handler has
    neither.
    """
    who = Who(handler.id)
    if not handler.rule.follows:
        return
    for verb in ("list", "watch"):
        yield _need_on(resource, namespace, verb, who)
    if handler.role in LOGS:
        yield _need_on(resource, namespace, "get", who, "log")
    if handler.rule.family in _STATELESS:
        return
    yield _need_on(resource, namespace, "get", who)
    if resource.has_status:
        yield _need_on(resource, namespace, "patch", who, "status")
    if handler.holds or not resource.has_status:
        yield _need_on(resource, namespace, "patch", who)


def needs_of_children(
    handler: Handler, kinds: Iterable[Resource], namespace: str | None
) -> Iterator[Need]:
    """The rights of a reconciler to the kinds that it owns.

    fnop follows and applies desired children, and reads them after a lost answer. It
    deletes them when they are not desired any longer, which scripts need not show.
    """
    for kind in kinds:
        for verb in ("get", "list", "watch", "create", "patch", "delete"):
            yield _need_on(kind, namespace, verb, Who(handler.id))


def needs_of_broad(handler: Handler) -> Iterator[Need]:
    """The rights to follow all kinds of a group, or all of the cluster.

    RBAC has no pattern except `*`: a handler with a pattern has a right for each kind.
    """
    selector = handler.selector
    if selector is None or not selector.everything or not handler.rule.follows:
        return
    group = selector.group
    if group is None or is_pattern(group):
        group = ANY
    for verb in ("list", "watch"):
        yield Need(Right(verb, group, ANY), None, Who(handler.id))


def needs_of_election(candidate: Candidate) -> Iterator[Need]:
    """The rights of a candidate to its lease, which has a constant name.

    For RBAC, an object that is being created has no name yet.
    """
    who = Who("leader election", is_handler=False)
    for verb, name in (
        ("create", ""),
        ("get", candidate.name),
        ("patch", candidate.name),
    ):
        right = Right(verb, *_LEASES, name=name)
        yield Need(right, candidate.namespace, who)


def role_namespaces(namespaces: tuple[str, ...] | None) -> tuple[str | None, ...]:
    """The namespaces whose Roles an operator needs; None is a ClusterRole.

    RBAC has no patterns, so an operator with patterns needs a ClusterRole.

    >>> role_namespaces(("a", "b")), role_namespaces(("team-*",)), role_namespaces(None)
    (('a', 'b'), (None,), (None,))
    """
    if namespaces is None or has_patterns(namespaces):
        return (None,)
    return namespaces


def needs_of_peering(namespaces: tuple[str, ...] | None) -> Iterator[Need]:
    """The rights of an operator among peers to fnop's own peering kinds."""
    who = Who("peering", is_handler=False)
    plural, _, group = kinds_for(namespaces)[0].partition(".v1.")
    for place in role_namespaces(namespaces):
        for verb in ("list", "watch", "patch"):
            yield Need(Right(verb, group, plural), place, who)


# ------------------------------------------------------------------------ all of them


def by_right(
    needs: Iterable[Need],
) -> Mapping[tuple[Right, str | None], tuple[Who, ...]]:
    """Each right in each place, with the subjects that need it, handlers first."""
    found: dict[tuple[Right, str | None], set[Who]] = {}
    for right, namespace, who in needs:
        found.setdefault((right, namespace), set()).add(who)
    return {
        key: tuple(sorted(found[key], key=lambda who: (not who.is_handler, who.name)))
        for key in sorted(found, key=_order_key)
    }


def _order_key(key: tuple[Right, str | None]) -> tuple[object, ...]:
    right, namespace = key
    verb = VERBS.index(right.verb) if right.verb in VERBS else -1
    return (namespace or "", *right[1:], verb)


def least(needs: Iterable[Need]) -> tuple[Need, ...]:
    """The needs without those that others include.

    >>> who = Who("f")
    >>> one = Need(Right("get", "", "pods"), "default", who)
    >>> least([one, one._replace(namespace=None)]) == (one._replace(namespace=None),)
    True
    """
    found = [*dict.fromkeys(needs)]
    return tuple(
        each for each in found if not any(_is_broader(other, each) for other in found)
    )


def _is_broader(one: Need, other: Need) -> bool:
    """Whether a broader need makes the other one superfluous."""
    wider = one.namespace is None or one.namespace == other.namespace
    same = one[:2] == other[:2]
    return not same and wider and one.right.covers(other.right)
