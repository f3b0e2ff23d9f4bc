"""The review of one write: the handlers that are called, and the consequences.

It runs outside of `step`: a review waits in no queue, changes no state, and is decided
in every phase of the operator's life. It is a conversation with its caller. It yields
effects to perform, such as a `get`, and the caller sends it the outcomes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from msgspec import Struct

from fnop.core.admission.configurations import kinds_of
from fnop.core.admission.decisions import Decision, Denial
from fnop.core.admission.own_writes import is_own
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.namespaces import served_namespaces
from fnop.core.api.resources import Resource
from fnop.core.api.reviews import Request
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import ADMISSION
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.declare.webhook import Webhook
from fnop.core.handlers.declare.writers import Transform
from fnop.core.handlers.program.program import Program
from fnop.core.handlers.run.arguments import Situation
from fnop.core.handlers.run.invocation import (
    Ending,
    Journal,
    JournalEntry,
    LiveCache,
    advance,
    failure_of,
)
from fnop.core.memory.progress import Failure
from fnop.core.objects.decide.selection import sees
from fnop.core.objects.store.indexing import empty_indices
from fnop.core.seam.commands import Perform, Say, Subject
from fnop.core.seam.effect_rules import rule_of
from fnop.core.state.lifecycle import Phase
from fnop.core.state.turn import State, settings_of
from fnop.core.values.body import Body, Key
from fnop.core.values.callables import texts_in
from fnop.core.values.diff import Path
from fnop.core.values.errors import NotPure, act_of, shortened
from fnop.core.values.label_selectors import fits
from fnop.core.values.merge import OperationFailed, applied, operated, transformed
from fnop.core.values.now import Now
from fnop.core.values.paths import find, names_of, parse_path
from fnop.core.values.table import NOTHING
from fnop.effects import (
    Answer,
    Call,
    Effect,
    Get,
    List,
    Log,
    Outcome,
    Patch,
    Random,
    Return,
)
from fnop.effects.outcomes import Refused
from fnop.effects.values import ReadOnlyDict, same_json, thaw_json
from fnop.effects.wire import digest_of

__all__ = ["Review", "Reviewer", "is_excusable", "review", "reviewer_of"]

# The conversation of a review. It requests effects, receives the time and outcome of
# each answer, and ends with the decision.
Review: TypeAlias = Generator[Perform, tuple[Now, Outcome], Decision]


# The message of a denial, and the path of its field up to the first list.
_Said: TypeAlias = tuple[str, tuple[str, ...]]
# The arguments that identify the caller.
_CALLER = frozenset(("userinfo", "sslpeer", "headers"))
# The HTTP statuses of answers.
_CODE_LEAST, _CODE_MOST = 200, 599
# The maximum number of denials in one log line.
_TOLD_MAX = 10


class Reviewer(Struct, frozen=True):
    """The facts that a review depends on, in addition to its request.

    The `indices` are not `filled` until all objects have been listed once. `memo_of`
    returns the memo of an object by the key and the uid. `account` is the user as whom
    the operator itself writes, "" if unknown.
    """

    handlers: tuple[Handler, ...]
    settings: Settings = Settings()
    catalogue: Catalogue = Catalogue()
    indices: Mapping[str, Any] = NOTHING
    filled: bool = True
    memo_of: Callable[[Key, str], ReadOnlyDict] = lambda key, uid: ReadOnlyDict()
    account: str = ""

    def resource_of(self, request: Request) -> Resource:
        """The served kind of a request; created from the request if unknown."""
        wanted = request.group, request.version, request.plural
        for each in self.catalogue.resources:
            if (each.group, each.version, each.plural) == wanted:
                return each
        namespaced = request.namespace is not None
        kind = request.kind if not request.subresource else ""
        return Resource(*wanted, kind, kind.lower(), namespaced)

    def situation(
        self, handler: Handler, request: Request, resource: Resource, now: Now
    ) -> Situation:
        """The facts for computing the arguments of a handler.

        `resource` is the kind of the request, as `resource_of` finds it.
        """
        body = Body(request.present)
        key = Key(resource.key, request.namespace or "", body.name)
        return Situation(
            handler,
            self.settings,
            now,
            resource,
            body,
            started=now.wall,
            memo=self.memo_of(key, body.uid),
            indices=self.indices,
            request=request,
        )

    def is_about(self, handler: Handler, request: Request) -> bool:
        """Whether the kind of a request is one of a handler's, in any version."""
        selector = handler.selector
        assert selector is not None, "admission handlers are about kinds"
        found = kinds_of(selector, self.catalogue)
        if not found:
            return selector.matches(self.resource_of(request))
        return any(
            (each.group, each.plural) == (request.group, request.plural)
            and selector.version in (None, request.version)
            for each in found
        )


def reviewer_of(program: Program, state: State, account: str = "") -> Reviewer:
    """The facts for reviews in this state of an operator."""
    records = state.objects.records

    def memo_of(key: Key, uid: str) -> ReadOnlyDict:
        record = records.get(key)
        is_known = record is not None and record.body.uid == uid
        return record.memo if record and is_known else state.lifecycle.memo

    life = state.lifecycle
    is_new = life.phase is Phase.NEW  # it knows no objects without a cluster
    return Reviewer(
        program.handlers,
        settings_of(program, life),
        state.survey.catalogue,
        empty_indices(program) if is_new else state.objects.indices,
        is_new or life.ready,
        memo_of,
        account,
    )


def review(
    reviewer: Reviewer, request: Request, now: Now, asks: Collection[str] = ()
) -> Review:
    """Decide about a request.

    `asks` are the ids of the handlers to call; without them all are called. Mutations
    go first, in the order of their declaration, and each sees the changes of those
    before it. Then all validations are called for the result, whatever others decide.
    """
    course = _Course(reviewer, reviewer.resource_of(request), request, now, request)
    handlers = [
        each
        for each in reviewer.handlers
        if each.role in ADMISSION and (not asks or each.id in asks)
    ]
    for mutates in (True, False):
        for handler in handlers:
            if handler.rule.mutates is mutates:
                yield from course.ask(handler)
        if course.denials:
            break  # a denied object is not validated, as in the API server
    return course.decision()


@dataclass(slots=True)
class _Course:
    """A review under way: the present object, and the answers so far."""

    reviewer: Reviewer
    # The kind of the request, which no mutation changes.
    resource: Resource
    request: Request
    now: Now
    # The request as it came, before any mutation.
    given: Request
    asked: list[str] = field(default_factory=list)
    denials: list[Denial] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    lines: list[Say] = field(default_factory=list)
    # The outcomes of calls: an equal call is not made twice, as for the stored object.
    called: dict[str, Outcome] = field(default_factory=dict)
    serial: int = 0

    def decision(self) -> Decision:
        """The decision, if no other handler is called."""
        return Decision(
            self.given,
            tuple(self.asked),
            tuple(self.denials),
            tuple(self.warnings),
            self.request.object,
            tuple(self.lines),
            self._subject_of_request() if self.denials else None,
        )

    # ------------------------------------------------------------- one handler

    def ask(self, handler: Handler) -> Generator[Perform, tuple[Now, Outcome], None]:
        """Call a handler, if the request concerns it."""
        webhook = handler.webhook
        assert webhook is not None, "admission handlers have the options of a webhook"
        try:
            if not self._is_called_for(handler, webhook):
                return
        except BaseException as problem:
            self.asked.append(handler.id)
            yield from self._weigh_failure(handler, webhook, failure_of(problem))
            return
        self.asked.append(handler.id)
        if not self.reviewer.filled and self._asks_index(handler):
            self._apply_failure_policy(handler, webhook, _NOT_FILLED)
            return
        if handler.function and self.request.dry_run and not webhook.side_effects:
            self._apply_failure_policy(handler, webhook, _NO_DRY_RUN)
            return
        self._warn_unread_object(handler)
        ending = yield from self._run_attempt(handler, self.request)
        result, after = self._result_of_attempt(handler, ending)
        self.warnings += ending.warnings
        if result is None:
            self.request = after
        else:
            yield from self._weigh_failure(handler, webhook, result)

    def _warn_unread_object(self, handler: Handler) -> None:
        """Warn if a handler judges without the old object, because it cannot read it.

        Rules that compare with the old object do not hold then.
        """
        if handler.typed is None or self.request.old is None:
            return
        problem = handler.typed.misfit("old", self.request.old)
        if problem is not None:
            text = f"judges without the stored object, which it cannot read: {problem}"
            self.warnings.append(f"{handler.id} {text}")
            said = f"{handler.label} {text}"
            self.lines.append(
                Say("warning", said, self._subject_of_request(), handler.id)
            )

    def _weigh_failure(
        self, handler: Handler, webhook: Webhook, failure: Failure
    ) -> Generator[Perform, tuple[Now, Outcome], None]:
        """Deny, warn, or apply the failure policy, depending on a failure's meaning."""
        if failure.misfit and webhook.ratcheting and self._cannot_read_stored(failure):
            self._admit_unjudged(handler, failure)
        elif meant := _intended_denials(failure):
            yield from self._judge_failures(handler, webhook, meant)
        else:
            self._apply_failure_policy(handler, webhook, failure)

    def _cannot_read_stored(self, failure: Failure) -> bool:
        """Whether only the stored object does not fit, but the new one does.

        A repair replaces that object, and a deletion removes it.
        """
        return failure.misfit == "former" or self.request.operation == "DELETE"

    def _admit_unjudged(self, handler: Handler, failure: Failure) -> None:
        """Admit a write without answer from a handler that cannot read the object."""
        text = f"{handler.id} is not asked, as it cannot read the stored object"
        self.warnings.append(f"{text}: {_words_of_failure(failure)}")
        said = f"{handler.label} is not asked: {failure}"
        self.lines.append(Say("warning", said, self._subject_of_request(), handler.id))

    def _judge_failures(
        self, handler: Handler, webhook: Webhook, meant: tuple[Failure, ...]
    ) -> Generator[Perform, tuple[Now, Outcome], None]:
        """Deny new errors of the write, and warn about errors that existed before."""
        before: Counter[_Said] = Counter()
        is_misfit = all(each.misfit for each in meant)
        if is_excusable(handler) or (is_misfit and webhook.ratcheting):
            before = yield from self._former_denials(handler, webhook, always=is_misfit)
        new, old = [], []
        for each in meant:
            said = _said_by_denial(each)
            if before[said] and not self._has_changed_field(each.field):
                before[said] -= 1
                old.append(each)
            else:
                new.append(each)
        self.denials += (_denial_of(handler, each) for each in new)
        self.warnings += (
            f"{_words_of_failure(e)} (as it was before this change)" for e in old
        )
        if new:
            self._log_denials(handler, "denied", new)
        elif old:
            self._log_denials(handler, "warned of what was wrong before", old)

    def _has_changed_field(self, field: str) -> bool:
        """Whether the write changes the field that a denial names.

        For a mapping or a list, it is unknown which part is wrong. An element of a list
        may have moved.
        """
        request = self.request
        if not field or request.old is None or request.object is None:
            return False
        try:
            path = parse_path(field)
        except ValueError:
            return False
        if any(isinstance(part, int) for part in path):
            return False
        was, now = (find(each, path) for each in (request.old, request.object))
        are_alike = any(
            isinstance(was, kind) and isinstance(now, kind) for kind in (dict, list)
        )
        return not are_alike and not same_json(was, now)

    def _is_called_for(self, handler: Handler, webhook: Webhook) -> bool:
        """Whether a handler is called for the request; raises the error of a filter."""
        request = self.request
        return (
            webhook.is_about(request.operation, request.subresource)
            and not webhook.spares(is_ending=request.is_ending, is_own=self._is_own())
            and _may_change(handler, request.operation)
            and self.reviewer.is_about(handler, request)
            and self._is_served(webhook)
            and sees(handler, self._situation_of(handler, request))
        )

    def _labels_of_objects(self) -> Iterator[Mapping[str, Any]]:
        """The labels of the new object, and of the old one.

        A webhook is called if either is selected (Kubernetes: objectSelector).
        """
        for each in (self.request.object, self.request.old):
            if each is not None:
                yield Body(each).mapping("labels")

    def _is_served(self, webhook: Webhook) -> bool:
        """Whether the operator serves the namespace and the labels (`-n`, `-l`).

        An author's own namespace selector replaces `-n`.
        """
        request, settings = self.request, self.reviewer.settings
        if settings.selector and not any(
            fits(settings.selector, labels) for labels in self._labels_of_objects()
        ):
            return False
        given, place = settings.namespaces, request.namespace
        if given is None or place is None or webhook.namespace_selector:
            return True
        return place in served_namespaces(given, (place,))

    def _asks_index(self, handler: Handler) -> bool:
        indices, signature = self.reviewer.indices, handler.signature
        if signature.rest or handler.filters.asks_indices:
            return bool(indices)
        return any(name in indices for name in signature.wants)

    def _is_own(self) -> bool:
        reviewer = self.reviewer
        return is_own(self.request, reviewer.account, reviewer.settings.marker)

    def _situation_of(self, handler: Handler, request: Request) -> Situation:
        return self.reviewer.situation(handler, request, self.resource, self.now)

    def _run_attempt(
        self, handler: Handler, request: Request
    ) -> Generator[Perform, tuple[Now, Outcome], Ending]:
        """One attempt of a handler to answer, with all its requests."""
        live, journal = LiveCache(), Journal()
        situation = self._situation_of(handler, request)
        while True:
            found = advance(situation, journal, live, ())
            self._tell(handler, found.lines)
            if found.end is not None:
                return found.end
            effect = found.asks
            assert effect is not None, "an attempt asks for something, or ends"
            now, outcome = yield from self._perform_effect(handler, effect)
            entry = JournalEntry(digest_of(effect), outcome, now.wall)
            journal = (*journal, entry)

    def _perform_effect(
        self, handler: Handler, effect: Effect
    ) -> Generator[Perform, tuple[Now, Outcome], tuple[Now, Outcome]]:
        """Return the outcome of an effect of a conversation, which may only read."""
        if isinstance(effect, Log):
            self._tell(handler, (effect,))
            return self.now, Answer()
        if not (rule_of(effect).reads or isinstance(effect, Call)):
            return self.now, Refused(400, _refusal_of_effect(effect), "NotHere")
        if isinstance(effect, Call) and self._is_dry(handler):
            return self.now, Refused(400, _NO_CALL_IN_DRY_RUN, "DryRun")
        key = digest_of(effect)
        if key in self.called:
            return self.now, self.called[key]
        asked = self._command_for(handler, effect)
        if isinstance(asked, Refused):
            return self.now, asked
        self.now, outcome = yield asked
        if isinstance(effect, Call):
            self.called[key] = outcome
        return self.now, outcome

    def _is_dry(self, handler: Handler) -> bool:
        """Whether the handler must have no side effects: the API server promised it."""
        webhook = handler.webhook
        acts = webhook is not None and webhook.side_effects
        return self.request.dry_run and not acts

    def _command_for(self, handler: Handler, effect: Effect) -> Perform | Refused:
        """The command for a read or a call; `Refused` for a kind that is not served."""
        self.serial += 1
        match effect:
            case Get(target=target):
                kind, name, namespace = target.resource, target.name, target.namespace
            case List(resource=kind, namespace=namespace):
                name = ""
            case Call() | Random():
                return Perform(
                    self.serial,
                    effect,
                    subject=self._subject_of_request(),
                    handler=handler.id,
                )
            case _:
                raise AssertionError("only reads and calls are performed here")
        resource = self.reviewer.catalogue.lookup(kind)
        if resource is None:
            absence = self.reviewer.catalogue.absence(kind)
            return Refused(404, absence, "NotFound")
        within: str | None = namespace or self.request.namespace or "default"
        if not resource.namespaced or namespace == "*":
            within = None
        return Perform(
            *(self.serial, effect, resource, within, name or None),
            subject=self._subject_of_request(),
            handler=handler.id,
        )

    # ------------------------------------------------------------- what follows

    def _result_of_attempt(
        self, handler: Handler, ending: Ending
    ) -> tuple[Failure | None, Request]:
        """Return an attempt's failure, else the request with the changed object."""
        if ending.failure is not None:
            return ending.failure, self.request
        changes: list[Patch | Transform] = [*ending.patches]
        for effect in ending.plan:
            match effect:
                case Patch(target=None, subresource=None):
                    changes.append(effect)
                case Log():
                    self._tell(handler, (effect,))
                case Return(value=value) if _is_refusal(value):
                    return _misuse_failure(_NO_VERDICT), self.request
                case Return(value=value):
                    if value is not True:
                        text = f"{handler.label}: {_NO_RESULT}"
                        self._tell(handler, (Log("warning", text),))
                case _:
                    return _misuse_failure(_refusal_of_effect(effect)), self.request
        if not changes:
            return None, self.request
        if not handler.rule.mutates:
            return _misuse_failure(_ONLY_LOOKS), self.request
        if self.request.object is None:
            return None, self.request  # a deletion changes nothing
        try:
            after = _apply_changes(self.request.object, changes)
        except OperationFailed as problem:
            return _misuse_failure(str(problem)), self.request
        self._warn_lost_change(handler, after)
        return None, self.request._replace(object=after)

    def _warn_lost_change(self, handler: Handler, after: Mapping[str, Any]) -> None:
        """Log that the API server will ignore a change for another endpoint.

        If a kind has a status subresource, a write of the object keeps the status, and
        a write of the status keeps the spec.
        """
        found, subresource = self.request.object, self.request.subresource
        if found is None or not self.resource.has_status:
            return
        field = {"": "status", "status": "spec"}.get(subresource, "")
        if not field or same_json(found.get(field), after.get(field)):
            return
        remedy = "subresource='status'" if not subresource else "no subresource="
        text = (
            f"{handler.label} changes {field}, which the API server keeps as it is in "
            f"a write of {'/'.join(filter(None, (self.resource.plural, subresource)))}"
            f"; declare a handler with {remedy} for that"
        )
        self.lines.append(Say("warning", text, self._subject_of_request(), handler.id))

    def _former_denials(
        self, handler: Handler, webhook: Webhook, *, always: bool
    ) -> Generator[Perform, tuple[Now, Outcome], Counter[_Said]]:
        """The denial texts that an update to the stored object itself would get.

        This change, or this deletion, did not cause them. Without this rule no user
        could update an object that breaks a new validation. If the handler's filters do
        not select the stored object, the result is empty. A handler with side effects
        is called as in a dry run. It is `always` called to find out whether it can read
        the object.
        """
        request = self.request
        is_about = webhook.is_about("UPDATE", request.subresource)
        if request.old is None or not (is_about or always):
            return Counter()
        is_dry = request.dry_run or webhook.side_effects
        same = request._replace(operation="UPDATE", object=request.old, dry_run=is_dry)
        try:
            if not sees(handler, self._situation_of(handler, same)):
                return Counter()
        except BaseException as problem:  # a filter failed: its answer is unknown
            failure = failure_of(problem)
            return Counter(
                map(
                    _said_by_denial,
                    _intended_denials(failure) if failure.misfit else (),
                )
            )
        said = len(self.lines)
        ending = yield from self._run_attempt(handler, same)
        del self.lines[said:]  # it has already logged that
        if ending.failure is None:
            return Counter()
        return Counter(map(_said_by_denial, _intended_denials(ending.failure)))

    def _apply_failure_policy(
        self, handler: Handler, webhook: Webhook, failure: Failure
    ) -> None:
        """A handler gave no answer: apply its failure policy."""
        self._log_no_answer(handler, failure)
        if webhook.ignore_failures:
            unchecked = f"{handler.id} gave no answer, so this write is not checked"
            self.warnings.append(f"{unchecked}: {_words_of_failure(failure)}")
        else:
            self.denials.append(_denial_of(handler, failure))

    def _log_no_answer(self, handler: Handler, failure: Failure) -> None:
        shown = None if failure.is_expected else failure.exception
        self.lines.append(
            Say(
                "error",
                f"{handler.label} gave no answer: {failure}",
                self._subject_of_request(),
                handler.id,
                error=str(failure),
                exception=shown,
                act=act_of(failure.exception) if failure.exception else None,
            )
        )

    def _log_denials(
        self, handler: Handler, verb: str, failures: Sequence[Failure]
    ) -> None:
        """Log denials, or excused ones, with the user, in one line."""
        request = self.request
        who = f" by {shortened(request.user)}" if request.user else ""
        words = shortened(_words_of_failures(failures))
        self.lines.append(
            Say(
                "debug" if request.dry_run else "info",
                f"{handler.label} {verb} the {request.operation}{who}: {words}",
                self._subject_of_request(),
                handler.id,
            )
        )

    def _tell(self, handler: Handler, lines: tuple[Log, ...]) -> None:
        for line in lines:
            self.lines.append(
                Say(
                    line.level,
                    line.message,
                    self._subject_of_request(),
                    handler.id,
                    tuple(sorted(line.fields.items())),
                    exception=line.exception,
                )
            )

    def _subject_of_request(self) -> Subject:
        request, body = self.request, Body(self.request.present)
        return Subject(
            self.resource.key,
            request.namespace,
            request.name or body.name,
            body.uid or None,
            self.resource.kind,
            self.resource.api_version,
        )


def _may_change(handler: Handler, operation: str) -> bool:
    """Whether a handler of this role may be called for the operation.

    A mutation has nothing to change in a deletion. So it must explicitly ask for
    deletions alone.
    """
    if not handler.rule.mutates or operation != "DELETE":
        return True
    return handler.webhook is not None and handler.webhook.operations == ("DELETE",)


def _apply_changes(
    found: dict[str, Any], changes: list[Patch | Transform]
) -> dict[str, Any]:
    """The object after the changes of one handler, in their order."""
    after: Any = found
    for change in changes:
        if isinstance(change, Transform):
            after = transformed(change.change, after)
            continue
        if change.merge is not None:
            path = next(_lost_paths(change.merge, after), None)
            if path is not None:
                raise OperationFailed(
                    f"{'.'.join(path)} is not a mapping, and the patch would replace it"
                )
            after = applied(change.merge, after)
        after = operated(change.json, after)
    result: dict[str, Any] = _thaw_value(after, found)
    return result


def _lost_paths(
    merge: Mapping[str, Any], found: Any, path: Path = ()
) -> Iterator[Path]:
    """The fields that are not mappings, but are mappings in the merge patch.

    The user made a mistake there, and the patch would hide it.

    >>> [*_lost_paths({"spec": {"a": 1}}, {"spec": "x"})], [*_lost_paths({"a": {}}, {})]
    ([('spec',)], [])
    """
    for key, value in merge.items():
        there = found.get(key) if isinstance(found, Mapping) else None
        if not isinstance(value, Mapping) or there is None:
            continue
        if isinstance(there, Mapping):
            yield from _lost_paths(value, there, (*path, key))
        else:
            yield (*path, key)


def _thaw_value(value: Any, found: Any) -> Any:
    """Return a plain value; unchanged parts are shared, to avoid comparing them."""
    if value is found:
        return value
    if isinstance(value, dict) and isinstance(found, dict):
        return {key: _thaw_value(item, found.get(key)) for key, item in value.items()}
    return thaw_json(value)


def _words_of_failure(failure: Failure) -> str:
    """The text of a failure for the user: the author's text, if there is one."""
    if failure.is_expected or failure.code is not None:
        return failure.message or failure.type
    return str(failure)


def _words_of_failures(failures: Sequence[Failure]) -> str:
    """The messages of the first failures, and the number of further ones."""
    texts = [*dict.fromkeys(map(_words_of_failure, failures[:_TOLD_MAX]))]
    more = len(failures) - _TOLD_MAX
    return "; ".join([*texts, f"and {more} more"] if more > 0 else texts)


def _said_by_denial(failure: Failure) -> _Said:
    """The message of a denial, and the path of its field up to the first list.

    An element of a list may have moved.
    """
    try:
        return _words_of_failure(failure), names_of(parse_path(failure.field))
    except ValueError:
        return _words_of_failure(failure), (failure.field,)


def is_excusable(handler: Handler) -> bool:
    """Whether a handler's denial is excused if the stored object is denied likewise.

    A mutation that has denied has not changed the object: to let that through would
    store an object that no mutation has seen. Permissions depend on the caller, and not
    on the stored object.
    """
    webhook = handler.webhook
    ratchets = webhook is not None and webhook.ratcheting
    return ratchets and not handler.rule.mutates and not _asks_who(handler)


def _asks_who(handler: Handler) -> bool:
    """Whether a handler takes the caller, so that its denial may depend on it.

    It may find the caller in `**kwargs`: then its code contains the argument's name as
    a text.
    """
    filters = handler.filters.callbacks
    wants = (handler.signature.wants, *(each.wants for each in filters))
    if any(not _CALLER.isdisjoint(each) for each in wants):
        return True
    rests = [each.fn for each in filters if each.rest]
    if handler.signature.rest:
        rests.append(handler.declared)
    return any(not _CALLER.isdisjoint(texts_in(each)) for each in rests)


def _denial_of(handler: Handler, failure: Failure) -> Denial:
    words = _words_of_failure(failure)
    if not failure.is_expected:
        words = f"{handler.id} gave no answer: {words}"
    code = failure.code
    if code is None or not _CODE_LEAST <= code <= _CODE_MOST:
        code = 500  # for others the API server panics, or cannot read the answer
    return Denial(
        handler.id,
        handler.place,
        words,
        code,
        failure.field,
        meant=_is_meant(failure),
        first=failure.code is not None,
    )


def _intended_denials(failure: Failure) -> tuple[Failure, ...]:
    """The denials that the author intended; empty if there are other errors."""
    found = failure.parts or (failure,)
    return found if all(map(_is_meant, found)) else ()


def _is_meant(failure: Failure) -> bool:
    """Whether the author has denied; else the handler gave no answer."""
    return failure.permanent and not isinstance(failure.exception, NotPure)


def _is_refusal(result: Any) -> bool:
    """Whether the author probably intended this result as a denial."""
    if isinstance(result, Mapping):
        return result.get("allowed") is False
    return result is False


def _misuse_failure(text: str) -> Failure:
    return Failure("TypeError", text, misuse=True)


def _refusal_of_effect(effect: Effect) -> str:
    return (
        f"{effect.kind} has no place in a review, which decides about one write and "
        "stores nothing; let a handler of changes, or @fnop.reconcile, do that"
    )


_NOT_FILLED = Failure(
    "TemporaryError",
    "the operator is starting, and has not listed all objects of its indices yet",
    temporary=0.0,
)
_ONLY_LOOKS = "a validation changes nothing; declare it with @fnop.on.mutate"
_NO_VERDICT = (
    "its result would deny, and results of admission handlers have no effect; raise "
    "fnop.Denied('...') to deny"
)
_NO_RESULT = (
    "its result has no effect, as nothing is stored for a review; change the object by "
    "patch.spec[...] or fnop.patch(...), deny by fnop.Denied('...'), and warn by "
    "warnings.append('...')"
)
_NO_CALL_IN_DRY_RUN = (
    "this is a dry run, and the handler does not say what it does then; declare it "
    "with side_effects=True, and look at dryrun before fnop.call"
)
_NO_DRY_RUN = Failure(
    "TypeError",
    "this is a dry run, and the impure handler does not say what it does then; declare "
    "it with side_effects=True, and let it look at dryrun",
)
