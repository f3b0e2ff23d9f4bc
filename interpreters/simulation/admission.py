"""A simulated operator's admission handlers, which its cluster asks directly.

Nothing is registered. The webhooks are those that the operator would keep in a cluster,
for the kinds that the simulated cluster serves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fnop.core.admission.configurations import (
    CONFIGURATIONS,
    Group,
    Registration,
    configurations_of,
    groups_of,
)
from fnop.core.admission.decisions import Decision, response_of
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.reviews import Request, request_in
from fnop.core.handlers.declare.roles import ADMISSION
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.cluster import Cluster
from fnop.interpreters.cluster.admission.questions import (
    Ask,
    Configuration,
    Question,
    Reply,
    Reviewed,
    Unreached,
    allowed,
    unreached,
)
from fnop.interpreters.cluster.admission.webhooks import Webhook
from fnop.interpreters.cluster.values.objects import Resource
from fnop.interpreters.runtime.protocol import User

__all__ = ["ACCOUNT", "OwnWebhooks", "has_admission"]

# The user that a simulated operator with admission handlers writes as.
ACCOUNT = User(
    "system:serviceaccount:fnop:operator",
    (
        "system:serviceaccounts",
        "system:serviceaccounts:fnop",
        "system:authenticated",
    ),
)
# The address of a webhook that is asked directly.
ADDRESS = "https://simulated.fnop.dev"

Sorts = Mapping[Resource, tuple[Webhook, ...]]


def has_admission(program: Program) -> bool:
    """Whether an operator has admission handlers."""
    return any(each.role in ADMISSION for each in program.handlers)


class _Known(NamedTuple):
    """The webhooks for the kinds of a registry, which is kept for its identity."""

    registry: object
    webhooks: Sorts


class OwnWebhooks:
    """The webhooks of one operator in a simulated cluster.

    `decide` asks its handlers about the request of a question, and returns None if they
    cannot be reached. `catalogue` returns the kinds of a cluster; `settings` are those
    in force.
    """

    def __init__(
        self,
        program: Program,
        settings: Callable[[], Settings],
        catalogue: Callable[[Cluster], Catalogue],
        decide: Callable[[Request, frozenset[str]], Decision | None],
        others: Ask = unreached,
    ) -> None:
        self._groups = {each.name: each for each in groups_of(program.handlers)}
        self._by_path = {each.path: each for each in self._groups.values()}
        self._settings = settings
        self._catalogue = catalogue
        self._decide = decide
        self._others = others
        # Whether namespaces have their names as a label: since Kubernetes 1.21.
        self.labelled = True
        self._known: _Known | None = None

    def beside(self, cluster: Cluster, resource: Resource) -> tuple[Webhook, ...]:
        """The webhooks of one sort for the kinds that a cluster has."""
        known = self._known
        if known is None or known.registry is not cluster.registry:
            known = _Known(cluster.registry, self._build_configurations(cluster))
            self._known = known
        return known.webhooks.get(resource, ())

    def _build_configurations(self, cluster: Cluster) -> Sorts:
        settings = self._settings()
        about = Registration(
            settings.domain,
            {"url": ADDRESS},
            account=ACCOUNT.name,
            namespaces=settings.namespaces,
            selector=settings.selector,
            labelled=self.labelled,
        )
        made = configurations_of(self._groups.values(), self._catalogue(cluster), about)
        return {
            (kind.group, kind.plural): self._webhooks(made[role])
            for role, kind in CONFIGURATIONS.items()
        }

    def _webhooks(self, manifest: Mapping[str, Any]) -> tuple[Webhook, ...]:
        configuration = Configuration(manifest["kind"], manifest["metadata"]["name"])
        return tuple(
            Webhook(
                configuration, self._with_own_conditions(spec), spec["clientConfig"]
            )
            for spec in manifest["webhooks"]
        )

    def _with_own_conditions(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """A webhook with only the author's match conditions.

        The other conditions save requests, and the handlers decide the same without
        them: no library for CEL is needed for them here.
        """
        group = self._groups[spec["name"].partition(".")[0]]
        own = dict(group.webhook.match_conditions)
        given = spec.get("matchConditions", ())
        return {**spec, "matchConditions": [e for e in given if e["name"] in own]}

    def ask(self, question: Question) -> Reply:
        """The reply of one of these webhooks; `others` are asked elsewhere."""
        group = self._group_of(question)
        if group is None:
            return self._others(question)
        request = request_in(question.review)
        is_own = request.user == ACCOUNT.name
        if group.webhook.spares(is_ending=request.is_ending, is_own=is_own):
            return allowed(question)  # its match conditions say so
        decision = self._decide(request, group.ids)
        if decision is None:
            seconds = question.seconds
            return Unreached(
                f'Post "{question.client["url"]}?timeout={seconds}s": context deadline '
                "exceeded"
            )
        return Reviewed(response_of(decision))

    def _group_of(self, question: Question) -> Group | None:
        address, _, path = str(question.client.get("url")).rpartition("/")
        return self._by_path.get(path) if address == ADDRESS else None
