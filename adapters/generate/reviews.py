"""The rights of a cluster's present user, as the cluster itself reviews them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fnop.adapters.generate.roles import Difference, Granted, compared, line_of
from fnop.core.handlers.declare.connection import Impersonation
from fnop.core.handlers.program.rights import Need, Right, Who, by_right
from fnop.effects.structs import replace
from fnop.interpreters.cluster.access.rbac import Rule
from fnop.interpreters.runtime.answers import message_of
from fnop.interpreters.runtime.protocol import Api, ApiRequest

__all__ = ["ReviewProblem", "reviewed", "reviewed_by"]

_GROUP = "authorization.k8s.io"
_PATH = f"/apis/{_GROUP}/v1"
# The groups about which every authenticated user may ask (system:basic-user).
_EVERYBODYS = frozenset((_GROUP, "authentication.k8s.io"))
# The owner of a need does not matter in the search for superfluous rights.
_NOBODY = Who("")


class ReviewProblem(Exception):
    """The cluster does not return its user's rights; the text is one sentence."""


async def reviewed_by(
    needs: Iterable[Need],
    *,
    kubeconfig: str | None,
    context: str | None,
    impersonate: Impersonation | None = None,
    tell: Callable[[str], None],
) -> Difference:
    """Connect to the cluster, and compare."""
    from fnop.adapters.kubernetes.client import connect

    api = await connect(kubeconfig=kubeconfig, context=context, impersonate=impersonate)
    try:
        return await reviewed(api, needs, tell)
    finally:
        await api.close()


async def reviewed(
    api: Api, needs: Iterable[Need], tell: Callable[[str], None]
) -> Difference:
    """Compare the needs with the rights of the user who asks.

    Each need has its own request, which is exact (SelfSubjectAccessReview). Superfluous
    rights are found in the list of all rules (SelfSubjectRulesReview), which a server
    may mark as incomplete. Raises `ReviewProblem`.
    """
    wanted = by_right(needs)
    missing = [
        line_of(right, place, whose)
        for (right, place), whose in wanted.items()
        if not await _is_allowed(api, right, place)
    ]
    places = sorted({place for _, place in wanted if place}) or ["default"]
    granted = [each for place in places for each in await _rules(api, place, tell)]
    local = [Need(right, place, _NOBODY) for right, place in wanted]
    if any(place is None for _, place in wanted):
        # The list does not distinguish rules for the whole cluster.
        granted = [replace(each, namespace=None) for each in granted]
        local = [each._replace(namespace=None) for each in local]
    return Difference(tuple(missing), compared(local, granted).superfluous)


async def _is_allowed(api: Api, right: Right, namespace: str | None) -> bool:
    attributes = {**right._asdict(), "namespace": namespace or ""}
    spec = {"resourceAttributes": {k: v for k, v in attributes.items() if v}}
    status = await _review(api, "SelfSubjectAccessReview", spec)
    return bool(status.get("allowed"))


async def _rules(
    api: Api, namespace: str, tell: Callable[[str], None]
) -> list[Granted]:
    status = await _review(api, "SelfSubjectRulesReview", {"namespace": namespace})
    if status.get("incomplete"):
        why = status.get("evaluationError") or "an authorizer does not list its rules"
        tell(
            f"the list of rules in namespace {namespace} is not complete ({why}), so "
            "superfluous rights may be missing here"
        )
    found = []
    for each in status.get("resourceRules") or ():
        groups = tuple(g for g in each.get("apiGroups") or () if g not in _EVERYBODYS)
        rule = Rule(
            tuple(each.get("verbs") or ()),
            groups,
            tuple(each.get("resources") or ()),
            tuple(each.get("resourceNames") or ()),
        )
        found.append(Granted(rule, namespace, "granted in the cluster"))
    return found


async def _review(api: Api, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    body = {"apiVersion": f"{_GROUP}/v1", "kind": kind, "spec": spec}
    response = await api.send(ApiRequest("POST", f"{_PATH}/{kind.lower()}s", (), body))
    if response.status != 201:
        raise ReviewProblem(f"the cluster answers no {kind}: {message_of(response)}")
    found: dict[str, Any] = response.body.get("status") or {}
    return found
