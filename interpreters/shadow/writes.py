"""Ask admission handlers about the writes that a recording shows.

A recording holds each version of the objects that the operator has watched. It
therefore shows each write, by the operator and by others: an object before and after.
Handlers are asked about each write as it would have come to the API server. These
handlers need not have existed then. Nothing can act, and nothing is read: a decision
that depends on more than the request is not reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

from msgspec import Struct

from fnop.core.admission.configurations import Registration, is_asked
from fnop.core.admission.decisions import Decision
from fnop.core.admission.reviewing import Reviewer, review
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.core.api.reviews import Request
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import ADMISSION, INDICES
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.values.body import Body
from fnop.core.values.now import Now
from fnop.effects.structs import replace
from fnop.interpreters.plan.fields import changed_fields, without_server_fields
from fnop.interpreters.recording.model.world import authors_of
from fnop.interpreters.runtime.guard import Guard
from fnop.interpreters.shadow.guesses import guesses
from fnop.interpreters.simulation.admission import ACCOUNT

__all__ = ["Reviewed", "Secrets", "ShadowedWrites"]

Json = dict[str, Any]
Tell = Callable[[Any], Any]


class Reviewed(Struct, frozen=True):
    """A recorded write that would have been denied or changed, and by which handler.

    `answer` is "denied" or "changed"; `fields` are the paths that a mutation changes.
    """

    answer: str
    handler: Handler
    operation: str
    label: str
    wall: float
    message: str = ""
    fields: tuple[str, ...] = ()


class Secrets(Struct, frozen=True):
    """Three ways to render a value with tokens: as it is, with others, with a text."""

    tell: Tell
    vary: Tell
    guess: Callable[[str], Tell]


class ShadowedWrites:
    """The writes of a recording, and the answers of a program's handlers to them.

    `asked` counts the writes that any handler was asked about. `untold` counts the
    answers that cannot be known, by the reason.
    """

    def __init__(self, program: Program) -> None:
        self._handlers = [e for e in program.handlers if e.role in ADMISSION]
        self._indices = {e.id for e in program.handlers if e.role in INDICES}
        self._guard = Guard(refuses=True) if program.settings.guard else None
        self.asked = 0
        self.found: list[Reviewed] = []
        self.untold: Counter[str] = Counter()

    def sees(
        self,
        known: Body | None,
        seen: Body,
        type: str,
        now: Now,
        catalogue: Catalogue,
        settings: Settings,
        secrets: Secrets | None,
    ) -> None:
        """Ask about the write that lies between two versions of an object.

        `type` is the type of a watch event; for the answer to a request it is
        "MODIFIED".
        """
        if not self._handlers:
            return
        request = _request(known, seen, type, catalogue, settings)
        if request is None:
            return
        reviewer = Reviewer(tuple(self._handlers), settings, catalogue)
        reviewer = replace(reviewer, account=ACCOUNT.name)
        answers = [
            self._answer(reviewer, e, request, now, secrets) for e in self._handlers
        ]
        self.asked += any(answers)

    def _answer(
        self,
        reviewer: Reviewer,
        handler: Handler,
        request: Request,
        now: Now,
        secrets: Secrets | None,
    ) -> bool:
        """Ask one handler, and note its answer; whether the write concerns it."""
        told = request if secrets is None else _request_retold(request, secrets.tell)
        webhook, settings = handler.webhook, reviewer.settings
        assert webhook is not None, "admission handlers have the options of a webhook"
        about = Registration(settings.domain, {}, namespaces=settings.namespaces)
        is_selected = is_asked(webhook, about, told)
        if is_selected is not is_asked(webhook, replace(about, labelled=False), told):
            is_selected = None  # the recording does not show the server's version
        if is_selected is False:
            return False
        decision = self._decide_by_handler(reviewer, handler, told, now)
        if decision is None:
            self.untold[_BY_READS] += 1
            return True
        if handler.id not in decision.asked:
            return False
        if {"memo", *self._indices} & {*handler.signature.wants}:
            self.untold[_BY_MORE] += 1
            return True
        ways = () if secrets is None else _other_values(handler, secrets)
        for tell in ways:
            other = self._decide_by_handler(
                reviewer, handler, _request_retold(request, tell), now
            )
            if other is None or _shape(other) != _shape(decision):
                self.untold[_BY_SECRETS] += 1
                return True
        reviewed = _changed_review(decision, handler, request, now)
        if reviewed is not None and is_selected is None:
            self.untold[_BY_OPTIONS] += 1
        elif reviewed is not None:
            self.found.append(reviewed)
        return True

    def _decide_by_handler(
        self, reviewer: Reviewer, handler: Handler, request: Request, now: Now
    ) -> Decision | None:
        """The decision of one handler; None if it asks for something else."""
        conversation = review(reviewer, request, now, (handler.id,))
        with self._guard or nullcontext():
            try:
                next(conversation)
            except StopIteration as stop:
                decision: Decision = stop.value
                return decision
            finally:
                conversation.close()
        return None


_BY_MORE = "it depends on indices or memos, which are not those of then"
_BY_OPTIONS = "the API server asks by conditions, labels of namespaces, or its version"
_BY_READS = "its handler asks for what the recording does not hold"
_BY_SECRETS = "it depends on secrets, and the recording holds tokens in their place"


def _request(
    known: Body | None,
    seen: Body,
    type: str,
    catalogue: Catalogue,
    settings: Settings,
) -> Request | None:
    """The request that made an object what it is; None if there was no request."""
    resource = catalogue.of_manifest(seen.data)
    if resource is None:
        return None
    if known is not None and known.version == seen.version:
        if type != "ADDED":
            return None
        known = None  # the answer to its creation came first
    operation = _operation(known, seen, type)
    if operation is None:
        return None
    after: Json | None = seen.data
    before = None if known is None else known.data
    authors = authors_of(known, seen)
    is_own = settings.marker in authors
    is_of_status = _is_of_status(resource, before, after)
    if operation == "DELETE":
        after, is_own, is_of_status = None, False, False
    return Request(
        uid="",
        operation=operation,
        group=resource.group,
        version=resource.version,
        plural=resource.plural,
        kind=resource.kind,
        subresource="status" if is_of_status else "",
        namespace=seen.namespace if resource.namespaced else None,
        name=seen.name,
        object=after,
        old=before,
        user_info={"username": ACCOUNT.name if is_own else ", ".join(authors)},
    )


def _operation(known: Body | None, seen: Body, type: str) -> str | None:
    """The operation that a watch event shows; None if it shows no request.

    A deletion is requested when the object gets its time of deletion, or is gone at
    once.
    """
    match type:
        case "ADDED" if known is None:
            return "CREATE"
        case "MODIFIED" if known is not None:
            is_deletion = seen.is_deleting and not known.is_deleting
            return "DELETE" if is_deletion else "UPDATE"
        case "DELETED" if known is not None and not known.is_deleting:
            return "DELETE"
        case _:
            return None


def _is_of_status(resource: Resource, before: Json | None, after: Json | None) -> bool:
    """Whether a write changes the status, which has a subresource of its own."""
    if not resource.has_status or before is None or after is None:
        return False
    old, new = map(without_server_fields, (before, after))
    is_other = old.pop("status", None) != new.pop("status", None)
    return is_other and old == new


def _changed_review(
    decision: Decision, handler: Handler, request: Request, now: Now
) -> Reviewed | None:
    told = Reviewed(
        "denied",
        handler,
        request.operation,
        f"{request.plural}/{request.label}",
        now.wall,
    )
    for denial in decision.denials:
        return replace(told, message=denial.message)
    if decision.object == decision.request.object:
        return None
    states = (decision.request.object or {}, decision.object or {})
    fields = changed_fields(*map(without_server_fields, states))
    return replace(told, answer="changed", fields=tuple(each.path for each in fields))


def _shape(decision: Decision) -> tuple[Any, ...]:
    """The parts of a decision that do not name values: texts may quote a secret."""
    states = (decision.request.object or {}, decision.object or {})
    fields = changed_fields(*map(without_server_fields, states))
    return decision.allowed, tuple(each.path for each in fields)


def _request_retold(request: Request, tell: Tell) -> Request:
    return request._replace(object=tell(request.object), old=tell(request.old))


def _other_values(handler: Handler, secrets: Secrets) -> Iterator[Tell]:
    """The other ways to render tokens: a secret may be anything that the code knows."""
    yield secrets.vary
    yield from map(secrets.guess, guesses(handler.fn, ()))
