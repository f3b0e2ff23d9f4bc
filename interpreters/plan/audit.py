"""The audit of a cluster: objects that would be refused or changed if written now.

The auditor asks the admission handlers about a user's update that changes nothing.
Rules are not ratcheted for that: a stored object counts as newly written. The auditor
only reads the cluster. If a handler reads another object, the auditor reads that object
and asks the handler again. Kinds that cannot be read are reported; the others are
audited.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from fnop.core.admission.configurations import kinds_of, labels_namespaces
from fnop.core.admission.decisions import Decision
from fnop.core.admission.reviewing import is_excusable
from fnop.core.api.namespaces import served_namespaces
from fnop.core.api.resources import Resource, Selectors, path_of
from fnop.core.api.reviews import Request
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import ADMISSION, INDICES, Role
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import Perform
from fnop.effects import Call, Outcome, Random
from fnop.effects.structs import replace
from fnop.interpreters.plan.audited import Answer, Audit, Finding
from fnop.interpreters.plan.facts import Place, Unread, sources_of
from fnop.interpreters.plan.fields import (
    FieldChange,
    changed_fields,
    without_server_fields,
)
from fnop.interpreters.plan.observations import place_in
from fnop.interpreters.plan.planner import Planner, PlanProblem
from fnop.interpreters.plan.rehearsal import NAMESPACES, Rehearsal
from fnop.interpreters.plan.source import Known, Need
from fnop.interpreters.runtime.answers import message_of
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse
from fnop.interpreters.runtime.reading import ReadProblem
from fnop.interpreters.runtime.webhook_keeping import version_by
from fnop.interpreters.simulation.director import Director

__all__ = ["Auditor"]

Json = dict[str, Any]
# Masks the secrets in two states of an object.
Shown = Callable[[Json | None, Json | None], tuple[Json | None, Json | None]]


class _Lacking(Exception):
    """A handler reads an object that has not been read yet."""

    def __init__(self, need: Need) -> None:
        super().__init__()
        self.need = need


class _Unanswered(Exception):
    """A handler cannot answer; the text says what it waits for."""


class Auditor(Planner):
    """Asks the admission handlers of an operator about the objects of a cluster.

    It is constructed like a `Planner`, and raises the same errors.
    """

    async def audit(self) -> Audit:
        """Read all objects of the admission handlers' kinds, and ask about each."""
        base, basis = await self._restored()
        questioned = _Questioned(self._program, base, seed=self._seed, wall=self._wall)
        questioned.is_labelled(labels_namespaces(await version_by(self._api)))
        questioned.learn(basis)
        await self._rehearse(questioned, 1)
        if not questioned.run.admission.is_registered:
            why = "; ".join(questioned.hindrances()) or "its startup does not end"
            raise PlanProblem(
                f"the operator would not serve: {self._masking.text(why)}"
            )
        objects, unread = await self._objects(questioned, basis)
        self._masking.learn(questioned.found.values())
        findings = [
            e for one in objects for e in await self._answers_about(questioned, *one)
        ]
        return Audit(
            tuple(map(self._masked_finding, findings)),
            len(objects),
            self.source.reads,
            tuple(unread),
            tuple(
                map(
                    self._masking.text,
                    (*self.notes, *_notes_about_unasked(self._program)),
                )
            ),
        )

    async def _objects(
        self, questioned: _Questioned, basis: list[Known]
    ) -> tuple[list[tuple[Resource, dict[str, Any]]], list[Unread]]:
        """The objects of the handlers' kinds, and the kinds that cannot be read.

        Raises `PlanProblem` if nothing can be read.
        """
        needs = dict.fromkeys(_needs_of(questioned, basis))
        answers = await asyncio.gather(*map(self._known, needs))
        found = [*{id(each): each for each in answers}.values()]
        questioned.learn(found)
        unread = [*_unread_kinds(found)]
        if unread and len(unread) == len(found):
            why = "; ".join(dict.fromkeys(each.why for each in unread))
            raise PlanProblem(f"nothing that the handlers are for can be read: {why}")
        objects = [(known.need.resource, e) for known in found for e in known.objects]
        return objects, unread

    async def _answers_about(
        self, questioned: _Questioned, resource: Resource, body: dict[str, Any]
    ) -> list[Finding]:
        """The answers about one object, once everything the handlers read is known."""
        while True:
            try:
                return questioned.answers(resource, body, self._masking.shown)
            except _Lacking as lacking:
                questioned.learn([await self._known(lacking.need)])

    async def _known(self, need: Need) -> Known:
        """The answer to a need; an unreadable one counts as a refusal."""
        try:
            (found,) = await self.source.read([need])
        except ReadProblem as problem:
            return Known(need, refusal=ApiResponse(502, {"message": str(problem)}))
        return found

    def _masked_finding(self, found: Finding) -> Finding:
        return replace(found, message=self._masking.text(found.message))


def _needs_of(questioned: _Questioned, basis: list[Known]) -> Iterator[Need]:
    """The collections of the kinds that admission handlers are for."""
    places = _audited_namespaces(questioned, basis)
    chosen = Selectors(labels=questioned.run.machine.settings.selector)
    for kind in questioned.kinds():
        for place in places:
            yield Need(kind, place if kind.namespaced else None, "", chosen)


def _audited_namespaces(
    questioned: _Questioned, basis: list[Known]
) -> Sequence[str | None]:
    """The namespaces to read; None stands for all of them."""
    given = questioned.run.machine.settings.namespaces
    # The author's own namespace selector takes precedence over `-n`.
    if given is None or any(
        each.webhook is not None and each.webhook.namespace_selector
        for each in questioned.run.machine.program.handlers
    ):
        return [None]
    every = next((e for e in basis if e.need.resource == NAMESPACES), None)
    present = [e["metadata"]["name"] for e in every.objects] if every else []
    return [*(served_namespaces(given, present) or given)]


def _unread_kinds(found: Iterable[Known]) -> Iterator[Unread]:
    for each in found:
        if each.refusal is not None:
            place = place_in(each.need.resource, "", "*")
            yield Unread(1, place, message_of(each.refusal), (), None)


def _notes_about_unasked(program: Program) -> Iterator[str]:
    """A note about handlers that are asked only about other requests."""
    names = [
        each.id
        for each in program.handlers
        if each.webhook is not None
        and not any(each.webhook.is_about(e, "") for e in ("UPDATE", "DELETE"))
    ]
    if names:
        others = "they are about neither updates nor deletions"
        yield f"not asked, since {others}: {', '.join(names)}"


def _strict_handler(handler: Handler) -> Handler:
    """The handler with the rules that it applies to a new object."""
    assert handler.webhook is not None, "admission handlers have the options of one"
    return replace(handler, webhook=replace(handler.webhook, ratcheting=False))


class _Questioned(Rehearsal):
    """An operator that only answers reviews, in the restored cluster."""

    def __init__(self, program: Program, *given: Any, **options: Any) -> None:
        handlers = tuple(
            _strict_handler(each) if each.role in ADMISSION else each
            for each in program.handlers
            if each.role in (*ADMISSION, *INDICES, Role.STARTUP)
        )
        super().__init__(Program(handlers, program.settings), *given, **options)
        # In a cluster, these handlers excuse mistakes that the stored object already
        # has.
        self._lenient = {
            each.id
            for each in program.handlers
            if each.role in ADMISSION and is_excusable(each)
        }

    def is_labelled(self, labelled: bool) -> None:
        """Say whether the API server labels namespaces with their names."""
        self.run.admission.label_namespaces(are_labelled=labelled)

    def kinds(self) -> list[Resource]:
        """The kinds that admission handlers are for, each in one version.

        Kinds that cannot be listed, such as TokenReview, are skipped.
        """
        found: dict[tuple[str, str], Resource] = {}
        catalogue = self.run.machine.state.survey.catalogue
        for handler in self.run.machine.program.handlers:
            if handler.role in ADMISSION and handler.selector is not None:
                for each in kinds_of(handler.selector, catalogue):
                    if not each.verbs or "list" in each.verbs:
                        found.setdefault((each.group, each.plural), each)
        return [*found.values()]

    def answers(
        self, resource: Resource, body: dict[str, Any], shown: Shown
    ) -> list[Finding]:
        """The answers about an object that is written unchanged.

        `shown` masks two states of it. Raises `_Lacking`.
        """
        metadata = body["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        self._have_namespace(resource, namespace)
        path = path_of(resource, namespace or None, name)
        found = self.run.request(ApiRequest("GET", path)).body
        witness = _Witness(self, place_in(resource, namespace, name), shown)
        before, self.run.director = self.run.cluster, witness
        try:
            response = self.run.request(ApiRequest("PUT", path, body=found))
        finally:
            self.run.cluster, self.run.director = before, self
        if response.status >= 300 and witness.changers:
            why = f"after its change: {message_of(response)}"
            witness.tell(Answer.REFUSED, witness.changers[-1], why)
        return [*witness.findings, *self._kept(path, witness)]

    def _kept(self, path: str, updated: _Witness) -> Iterator[Finding]:
        """The denials of a deletion; an object already being deleted has none."""
        witness = _Witness(self, updated.place, updated.shown)
        before, self.run.director = self.run.cluster, witness
        try:
            self.run.request(ApiRequest("DELETE", path))
        finally:
            self.run.cluster, self.run.director = before, self
        # Handlers do not deny a deletion because of faults that the object has anyway.
        forgiven = {each for each in updated.meant if each[0] in self._lenient}
        for each in witness.findings:
            told = each.source.handler, each.message
            if each.answer is Answer.REFUSED and told not in forgiven:
                yield replace(each, answer=Answer.KEPT)

    def informs(self, command: Perform, read: Callable[[], Outcome]) -> Outcome:
        """The outcome of a request of a review. Raises `_Lacking`, `_Unanswered`."""
        match command.effect:
            case Call() as call:
                raise _Unanswered(f"{call.function.rpartition(':')[2]} is not called")
            case Random():
                return read()
            case _:
                pass
        need = self._need_of(command)
        if need is None or self._has_known(need):
            return read()
        refusal = self._knows.refused.get(need)
        if refusal is None:
            raise _Lacking(need)
        raise _Unanswered(f"{need.path} cannot be read: {message_of(refusal)}")


class _Witness(Director):
    """Asks one handler after the other, and notes each answer about an object."""

    def __init__(self, questioned: _Questioned, place: Place, shown: Shown) -> None:
        self.questioned, self.place, self.shown = questioned, place, shown
        self.findings: list[Finding] = []
        self.changers: list[Handler] = []
        # The denials that the authors intended: the handlers' ids, and the messages.
        self.meant: set[tuple[str, str]] = set()

    def choose(self, inbox: Any) -> int | None:
        """None: the operator does nothing else."""
        return None

    def informs(self, command: Perform, read: Callable[[], Outcome]) -> Outcome:
        """The outcome of a request of a review, as far as it is known."""
        return self.questioned.informs(command, read)

    def reviews(
        self, request: Request, asks: frozenset[str], decide: Callable[[], Decision]
    ) -> Decision:
        """Let the request through as the mutations leave it, to ask all handlers."""
        given = request
        for handler in self.questioned.run.machine.program.handlers:
            if handler.id not in asks:
                continue
            try:
                found = self.questioned.run.admission.decide(request, (handler.id,))
            except _Unanswered as problem:
                self.tell(Answer.UNKNOWN, handler, str(problem))
                continue
            self._note(handler, request, found)
            if found.allowed:
                request = request._replace(object=found.object)
        return Decision(given, object=request.object)

    def _note(self, handler: Handler, request: Request, found: Decision) -> None:
        for denial in found.denials:
            self.tell(Answer.REFUSED, handler, denial.message, field=denial.field)
            if denial.meant:
                self.meant.add((handler.id, denial.message))
        for warning in found.warnings:
            self.tell(Answer.WARNED, handler, warning)
        if found.allowed and found.object != request.object:
            self.changers.append(handler)
            states = self.shown(request.object, found.object)
            plain = (without_server_fields(each or {}) for each in states)
            self.tell(Answer.CHANGED, handler, fields=changed_fields(*plain))

    def tell(
        self,
        answer: Answer,
        handler: Handler,
        message: str = "",
        fields: tuple[FieldChange, ...] = (),
        field: str = "",
    ) -> None:
        """Note an answer of a handler."""
        (source,) = sources_of([handler], handler.id)
        found = Finding(answer, source, self.place, message, fields, field)
        self.findings.append(found)
