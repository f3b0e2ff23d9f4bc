"""Roles and bindings as manifests: written for needs, and compared with them.

The rules of roles are read as the simulated API server's authorizer reads them
(`fnop.interpreters.cluster.access.rbac`).
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import yaml
from msgspec import Struct

from fnop.adapters.generate.rights import Account
from fnop.core.handlers.program.rights import VERBS, Need, Right, Who, by_right
from fnop.interpreters.cluster.access.rbac import GROUP, Rule, rules_of

__all__ = [
    "Difference",
    "Granted",
    "Grants",
    "NoAccount",
    "accounts_in",
    "compared",
    "granted_by",
    "line_of",
    "manifests_for",
    "only_account",
    "rules_for",
    "shown",
]

Manifest = dict[str, Any]
_COLUMNS = 88


# ------------------------------------------------------------------------ written


class _Clause(Struct, frozen=True):
    """A rule of a role, with the handlers that need it."""

    rule: Manifest
    whose: tuple[Who, ...]


def manifests_for(needs: Iterable[Need], account: Account) -> list[Manifest]:
    """The account, its roles, and their bindings.

    Rights in the whole cluster are in a ClusterRole, the others in a Role in each
    namespace.
    """
    found: list[Manifest] = [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": account.name, "namespace": account.namespace},
        }
    ]
    for place, clauses in _clauses_by_place(needs).items():
        prefix = "" if place else "Cluster"
        meta = {"name": account.name, **({"namespace": place} if place else {})}
        version = f"{GROUP}/v1"
        subject = {"kind": "ServiceAccount", **account._asdict()}
        role = {"kind": f"{prefix}Role", "name": account.name}
        found += [
            {
                "apiVersion": version,
                "kind": f"{prefix}Role",
                "metadata": meta,
                "rules": [each.rule for each in clauses],
            },
            {
                "apiVersion": version,
                "kind": f"{prefix}RoleBinding",
                "metadata": meta,
                "roleRef": {"apiGroup": GROUP, **role},
                "subjects": [subject],
            },
        ]
    return found


def rules_for(needs: Iterable[Need]) -> dict[str | None, list[Manifest]]:
    """The rules of the needs, by namespace; None is the whole cluster."""
    return {
        place: [each.rule for each in clauses]
        for place, clauses in _clauses_by_place(needs).items()
    }


def _clauses_by_place(needs: Iterable[Need]) -> dict[str | None, list[_Clause]]:
    places: dict[str | None, list[Need]] = {}
    for each in sorted(needs, key=lambda need: need.namespace or ""):
        places.setdefault(each.namespace, []).append(each)
    return {place: _clauses(found) for place, found in places.items()}


def _clauses(needs: Iterable[Need]) -> list[_Clause]:
    """A clause for all kinds of a group that need the same verbs."""
    kinds: dict[tuple[str, str, str], dict[str, tuple[Who, ...]]] = {}
    for (right, _), whose in by_right(needs).items():
        key = (right.group, right.combined, right.name)
        kinds.setdefault(key, {})[right.verb] = whose
    merged: dict[tuple[Any, ...], list[str]] = {}
    for (group, resource, name), verbs in kinds.items():
        whose = tuple(dict.fromkeys(who for found in verbs.values() for who in found))
        whose = tuple(sorted(whose, key=lambda who: (not who.is_handler, who.name)))
        merged.setdefault((group, name, tuple(verbs), whose), []).append(resource)
    return [
        _Clause(
            {
                "apiGroups": [group],
                "resources": resources,
                **({"resourceNames": [name]} if name else {}),
                "verbs": [*verbs],
            },
            whose,
        )
        for (group, name, verbs, whose), resources in merged.items()
    ]


def shown(
    needs: Iterable[Need], account: Account, others: Iterable[Manifest] = ()
) -> str:
    """The `others` and the manifests as YAML.

    A comment above each rule names those who need it.
    """
    needs = tuple(needs)
    places = iter(_clauses_by_place(needs).values())
    documents = []
    for each in (*others, *manifests_for(needs, account)):
        rules = each.pop("rules", None)
        text = yaml.safe_dump(each, sort_keys=False)
        if rules is not None:
            text += "rules:\n" + "".join(map(_clause_text, next(places)))
        documents.append(text)
    return "---\n".join(documents)


def _clause_text(clause: _Clause) -> str:
    names = ", ".join(map(_name_of, clause.whose))
    comment = textwrap.fill(
        names, _COLUMNS, initial_indent="  # ", subsequent_indent="  # "
    )
    lines = [
        f"{key}: {yaml.safe_dump(value, default_flow_style=True, width=10**6).strip()}"
        for key, value in clause.rule.items()
    ]
    return f"{comment}\n  - " + "\n    ".join(lines) + "\n"


def _name_of(who: Who) -> str:
    return who.name


# --------------------------------------------------------------------------- read


class NoAccount(Exception):
    """The account is ambiguous or missing: one sentence with the remedy."""


class Granted(Struct, frozen=True):
    """A rule, its namespace (None: the whole cluster), and the role it is from."""

    rule: Rule
    namespace: str | None
    role: str


class Grants(Struct, frozen=True):
    """The rules that manifests grant to an account, and notes on the rest."""

    granted: tuple[Granted, ...]
    notes: tuple[str, ...] = ()


def accounts_in(manifests: Sequence[Mapping[str, Any]]) -> list[Account]:
    """The service accounts that bindings, and pods' templates, name."""
    found = []
    for each in manifests:
        meta = each.get("metadata") or {}
        for subject in each.get("subjects") or ():
            if subject.get("kind") == "ServiceAccount":
                place = subject.get("namespace") or meta.get("namespace") or "default"
                found.append(Account(place, str(subject.get("name"))))
    return [*dict.fromkeys(found)]


def granted_by(
    manifests: Sequence[Mapping[str, Any]], account: Account | None
) -> Grants:
    """The rules that the bindings among some manifests grant to an account.

    Without an account, the only bound account is taken. Raises `NoAccount`.
    """
    if account is None:
        account = only_account(manifests)
    roles = _roles_in(manifests)
    granted: list[Granted] = []
    notes: list[str] = []
    for binding in manifests:
        if not _binds(binding, account):
            continue
        place = _place_of_binding(binding)
        reference = binding.get("roleRef") or {}
        kind, name = str(reference.get("kind")), str(reference.get("name"))
        role = roles.get((kind, place or "" if kind == "Role" else "", name))
        label = f"{kind} {name}"
        if role is None:
            notes.append(
                f"{label} is bound and is in none of the files, so what it grants is "
                "not known; add its file with --against"
            )
            continue
        if role.get("aggregationRule"):
            notes.append(
                f"{label} is the sum of other roles (aggregationRule), which is not "
                "understood: only the rules that stand in it count"
            )
        found = rules_of({"rules": role.get("rules") or []})
        granted += [Granted(each, place, label) for each in found]
    return Grants(tuple(granted), tuple(notes))


def _roles_in(
    manifests: Sequence[Mapping[str, Any]],
) -> dict[tuple[str, str, Any], Mapping[str, Any]]:
    """The roles, by kind, namespace ("" for a ClusterRole) and name."""
    found = {}
    for each in manifests:
        if each.get("kind") in ("Role", "ClusterRole"):
            meta = each.get("metadata") or {}
            found[each["kind"], meta.get("namespace") or "", meta.get("name")] = each
    return found


def _binds(binding: Mapping[str, Any], account: Account) -> bool:
    """Whether a manifest binds a role to an account, or to a group that it is in."""
    return binding.get("kind") in ("RoleBinding", "ClusterRoleBinding") and (
        account in accounts_in([binding]) or _is_in_group(binding, account)
    )


def _place_of_binding(binding: Mapping[str, Any]) -> str | None:
    """The namespace in which a binding grants its role; None for all of them."""
    if binding["kind"] == "ClusterRoleBinding":
        return None
    return (binding.get("metadata") or {}).get("namespace") or None


def _is_in_group(binding: Mapping[str, Any], account: Account) -> bool:
    groups = {"system:serviceaccounts", f"system:serviceaccounts:{account.namespace}"}
    return any(
        each.get("kind") == "Group" and each.get("name") in groups
        for each in binding.get("subjects") or ()
    )


def only_account(manifests: Sequence[Mapping[str, Any]]) -> Account:
    """The account that is bound in some manifests. Raises `NoAccount`."""
    found = accounts_in(manifests)
    if len(found) == 1:
        return found[0]
    if not found:
        raise NoAccount("no ServiceAccount is bound to a role in these files")
    names = ", ".join(map(str, found))
    raise NoAccount(
        f"several accounts are bound ({names}); name one with --service-account"
    )


# ----------------------------------------------------------------------- compared


class Difference(NamedTuple):
    """The missing and the superfluous rights, a line for each."""

    missing: tuple[str, ...]
    superfluous: tuple[str, ...]


def compared(needs: Iterable[Need], granted: Sequence[Granted]) -> Difference:
    """Compare the needed rights with the granted ones."""
    wanted = by_right(needs)
    missing = [
        line_of(right, place, whose)
        for (right, place), whose in wanted.items()
        if not any(_grants(each, right, place) for each in granted)
    ]
    extra = [line for each in granted for line in _superfluous_parts(each, [*wanted])]
    return Difference(tuple(missing), tuple(dict.fromkeys(extra)))


def line_of(right: Right, place: str | None, whose: Iterable[Who]) -> str:
    """A right, the namespace that it is needed in, and those who need it.

    >>> line_of(Right("get", "", "pods"), "prod", [Who("f"), Who("g")])
    'get pods in namespace prod (handler f, handler g)'
    """
    return f"{right}{_namespace_clause(place)} ({', '.join(map(str, whose))})"


def _namespace_clause(place: str | None) -> str:
    return f" in namespace {place}" if place else ""


def _grants(granted: Granted, right: Right, place: str | None) -> bool:
    """Whether a rule allows all of a right."""
    rule = granted.rule
    return (
        granted.namespace in (None, place)
        and rule.covers_resource(right.verb, right.group, right.combined)
        and (not rule.names or right.name in rule.names)
    )


def _superfluous_parts(
    granted: Granted, wanted: Sequence[tuple[Right, str | None]]
) -> Iterator[str]:
    """The parts of a rule that are not needed, or that grant more than is needed."""
    rule, role = granted.rule, granted.role
    for url in rule.urls:
        yield f"{', '.join(rule.verbs)} {url} ({role}; fnop asks for no such path)"
    within = [
        right
        for right, place in wanted
        if granted.namespace is None or granted.namespace == place
    ]
    where = _namespace_clause(granted.namespace)
    for part in _parts(rule):
        used = [right for right in within if _is_used(part, right)]
        if not used:
            if not _is_of_another_group(part, rule, within):
                yield f"{part}{where} ({role}; nobody needs it)"
        elif beyond := _lesser_rights(part, used):
            yield f"{part}{where} ({role}; needed: {beyond})"
        elif granted.namespace is None and (names := _lesser_places(used, wanted)):
            yield f"{part} in the whole cluster ({role}; needed: in namespace {names})"


def _lesser_rights(part: Right, used: Sequence[Right]) -> str:
    """The rights, or the names, that would do in place of a part of a rule; or ""."""
    if "*" in part.verb + part.group + part.combined and part not in used:
        return ", ".join(map(str, used))
    if not part.name and all(right.name for right in used):
        names = ", ".join(sorted({f'"{right.name}"' for right in used}))
        return f"of {names}"
    return ""


def _lesser_places(
    used: Sequence[Right], wanted: Sequence[tuple[Right, str | None]]
) -> str:
    """The namespaces that need some rights; "" if the whole cluster needs any."""
    places = {place for right, place in wanted if right in used}
    return "" if None in places else ", ".join(sorted(filter(None, places)))


def _parts(rule: Rule) -> Iterator[Right]:
    """Each verb on each resource of each group of a rule, and of each name."""
    for group in rule.groups:
        for resource in rule.resources:
            plural, _, sub = resource.partition("/")
            for verb in sorted(rule.verbs, key=_rank):
                for name in rule.names or ("",):
                    yield Right(verb, group, plural, sub, name)


def _rank(verb: str) -> int:
    return VERBS.index(verb) if verb in VERBS else -1


def _is_used(part: Right, right: Right) -> bool:
    """Whether a part of a rule allows a right."""
    rule = Rule(
        (part.verb,), (part.group,), (part.combined,), (part.name,) if part.name else ()
    )
    return rule.covers_resource(right.verb, right.group, right.combined) and (
        not part.name or part.name == right.name
    )


def _is_of_another_group(part: Right, rule: Rule, within: Sequence[Right]) -> bool:
    """Whether a rule of several groups names a kind only because of another group.

    `apiGroups: ["", apps]` with `resources: [pods, deployments]` grants apps/pods as
    well, which does not exist.
    """
    others = [each for each in rule.groups if each != part.group]
    return any(
        _is_used(part._replace(group=each), r) for each in others for r in within
    )
