"""A simulated operator's admission handlers, which its cluster asks directly.

Nothing is registered. The webhooks are those that the operator would keep in a cluster,
for the kinds that the simulated cluster serves.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from msgspec import Struct

from fnop.core.admission.configurations import (
    CONFIGURATIONS,
    Group,
    Registration,
    configurations_of,
    groups_of,
)
from fnop.core.admission.decisions import Decision, denied_writes, response_of
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.reviews import Request, request_in
from fnop.core.handlers.declare.roles import ADMISSION
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import Command, Perform, Say
from fnop.effects import Outcome
from fnop.interpreters.cluster import Cluster, answer
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
from fnop.interpreters.runtime.clock import VirtualClock
from fnop.interpreters.runtime.machine import Machine
from fnop.interpreters.runtime.protocol import User
from fnop.interpreters.simulation.director import Director
from fnop.interpreters.simulation.documents import discovered
from fnop.interpreters.simulation.watches import Inbox

__all__ = ["ACCOUNT", "OwnWebhooks", "Reviews", "has_admission"]

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


class _Known(Struct, frozen=True):
    """The webhooks for the kinds of a registry, which is kept for its identity."""

    registry: object
    webhooks: Sorts


class Run(Protocol):
    """The parts of a simulated run that take part in a review."""

    clock: VirtualClock
    machine: Machine
    inbox: Inbox

    @property
    def cluster(self) -> Cluster:
        """The cluster that asks."""
        ...

    @property
    def director(self) -> Director:
        """The director that lets requests reach the handlers, or not."""
        ...

    @property
    def listener(self) -> Callable[[Command], None] | None:
        """Receives each request of a review."""
        ...

    def read(self, command: Perform) -> Outcome:
        """The outcome of a request by a review: a read, or a call."""
        ...

    def note_log_line(self, say: Say) -> None:
        """Take in a line of the log."""
        ...


class Reviews:
    """The reviews of an operator's admission handlers, which its cluster asks.

    The cluster asks them once the webhooks are registered: the operator has been ready
    once.
    """

    __slots__ = ("_own", "_run", "is_registered")

    def __init__(self, run: Run, *, is_registered: bool = False) -> None:
        # A run owns this object, and is freed at once when its last user drops it.
        self._run: Run = weakref.proxy(run)
        self.is_registered = is_registered
        program = run.machine.program
        self._own = OwnWebhooks(program, self._run) if has_admission(program) else None

    @property
    def has_handlers(self) -> bool:
        """Whether the operator has admission handlers."""
        return self._own is not None

    @property
    def webhooks(self) -> OwnWebhooks | None:
        """The webhooks that the cluster asks, if any."""
        return self._own if self.is_registered else None

    def label_namespaces(self, *, are_labelled: bool) -> None:
        """Say whether namespaces have their names as a label."""
        if self._own is not None:
            self._own.labelled = are_labelled

    def decide(self, request: Request, asks: Collection[str] = ()) -> Decision:
        """The decision of the admission handlers about a write.

        `asks` are the ids of the handlers to ask; without them all are asked.
        """
        return _decision_of(self._run, request, asks)


def _decision_of(run: Run, request: Request, asks: Collection[str]) -> Decision:
    now = run.clock.now()
    conversation = run.machine.review(now, request, asks, ACCOUNT.name)
    try:
        command = next(conversation)
        while True:
            if run.listener is not None:
                run.listener(command)
            command = conversation.send((now, run.read(command)))
    except StopIteration as stop:
        decision: Decision = stop.value
    for line in decision.lines:
        run.note_log_line(line)
    for denied in denied_writes(decision, run.machine.settings):
        run.inbox.add(denied)
    return decision


class OwnWebhooks:
    """The webhooks of one operator in a simulated cluster.

    `others` answers about webhooks that are asked elsewhere.
    """

    def __init__(self, program: Program, run: Run, others: Ask = unreached) -> None:
        self._groups = {each.name: each for each in groups_of(program.handlers)}
        self._by_path = {each.path: each for each in self._groups.values()}
        self._run = run
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
        settings = self._run.machine.settings
        about = Registration(
            settings.domain,
            {"url": ADDRESS},
            account=ACCOUNT.name,
            namespaces=settings.namespaces,
            selector=settings.selector,
            labelled=self.labelled,
        )
        catalogue = self._catalogue_of(cluster)
        made = configurations_of(self._groups.values(), catalogue, about)
        return {
            (kind.group, kind.plural): self._webhooks(made[role])
            for role, kind in CONFIGURATIONS.items()
        }

    def _catalogue_of(self, cluster: Cluster) -> Catalogue:
        """The kinds that a cluster serves."""
        wall = self._run.clock.now().wall
        return discovered(lambda request: answer(cluster, request, wall)[1])

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

    def _decide(self, request: Request, asks: frozenset[str]) -> Decision | None:
        """The decision, as far as the director lets requests reach the handlers."""
        run = self._run

        def decide() -> Decision:
            return _decision_of(run, request, asks)

        return run.director.reviews(request, asks, decide)

    def _group_of(self, question: Question) -> Group | None:
        address, _, path = str(question.client.get("url")).rpartition("/")
        return self._by_path.get(path) if address == ADDRESS else None
