"""The laws of admission handlers: each finds the faults of a write or an object.

Each law is a question to the handlers, in the world of a moment (`Ground`). The answer
is a sentence for each defect, with the handler and its line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from fnop.core.admission.decisions import Decision, Denial
from fnop.core.admission.reviewing import reviewer_of
from fnop.core.api.resources import path_of
from fnop.core.api.reviews import Request
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.roles import ADMISSION
from fnop.core.handlers.program.program import Program
from fnop.core.objects.store.indexing import empty_indices
from fnop.core.operator.step import State
from fnop.core.values.diff import diff
from fnop.core.values.now import Now
from fnop.effects.structs import replace
from fnop.effects.values import canonical, thaw_json
from fnop.interpreters.check.inputs.likely import constants_of
from fnop.interpreters.check.inputs.redeciding import (
    Attempt,
    Decision as Ending,
)
from fnop.interpreters.check.inputs.unused_inputs import endings_of
from fnop.interpreters.check.state.grounds import (
    STRICT,
    Asked,
    Ground,
    Stored,
    Tried,
    fresh,
    named,
    placed,
)
from fnop.interpreters.check.state.sites import object_path
from fnop.interpreters.check.state.worlds import digests_of
from fnop.interpreters.cluster.access.reviews import ADMIN
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse, User
from fnop.interpreters.simulation.admission import ACCOUNT
from fnop.interpreters.simulation.externals import externals_of

__all__ = [
    "changes_again",
    "is_frozen",
    "is_held",
    "leaves_traces",
    "spoils",
    "stays",
    "unjudged",
    "wavers",
]

# The most other states that an object may be changed to, if it cannot stay as it is.
STATES_MAX = 20
# A value is shown with this number of characters.
TEXT_MAX = 60
GARBAGE_COLLECTOR = User(
    "system:serviceaccount:kube-system:generic-garbage-collector",
    ("system:serviceaccounts", "system:serviceaccounts:kube-system"),
)
# A finalizer of another controller, and a label without any meaning.
FOREIGN, LABEL = "other.example.com/cleanup", "other.example.com/note"
# The finalizer that makes the garbage collector delete the dependents first.
FOREGROUND = "foregroundDeletion"


def _mutations(asked: Asked) -> list[Handler]:
    return _handlers_asked(asked, mutates=True)


def _handlers_asked(asked: Asked, *, mutates: bool) -> list[Handler]:
    return [
        each
        for each in asked.ground.program.handlers
        if each.id in asked.decision.asked and each.rule.mutates is mutates
    ]


def _text(value: Any) -> str:
    text = canonical(value).decode()
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}..."


# ------------------------------------------------------------------------ mutations


def changes_again(asked: Asked) -> Iterator[str]:
    """A mutation that changes its own result, for each field."""
    if not asked.decision.patch:
        return
    # Once more from the beginning: the time is later now.
    first_time = asked.ground.decision(asked.decision.request, asked.decision.asked)
    request = asked.decision.request._replace(object=first_time.object)
    for handler in _mutations(asked):
        again = asked.ground.decision(request, (handler.id,))
        if not again.allowed or again.object == request.object:
            continue
        first = diff(request.object, again.object)[0]
        yield (
            f"{placed(handler)} changes again what it has changed: "
            f"{'.'.join(first.field)} is {_text(first.old)}, and becomes "
            f"{_text(first.new)}; let it look at what is there, for it is asked again "
            "at each update, and by the API server itself"
        )


def spoils(asked: Asked) -> Iterator[str]:
    """Refusals of a changed object, if the original object is accepted."""
    decision, ground = asked.decision, asked.ground
    if not decision.patch or decision.object is None:
        return
    mutations = ", ".join(map(placed, _mutations(asked)))
    request = decision.request
    changed = request._replace(object=decision.object)
    validations = [
        each.id
        for each in ground.program.handlers
        if each.role in ADMISSION and not each.rule.mutates
    ]
    if validations:
        before = ground.decision(request, validations)
        after = ground.decision(changed, validations)
        if before.allowed:
            for denial in after.denials:
                yield (
                    f"{mutations} makes of {request.plural}/{request.label} what "
                    f"{named(denial)} denies: {denial.message}; without the change it "
                    "is admitted"
                )
    given, made = (
        _unreviewed_response(ground, request, each)
        for each in (request.object, decision.object)
    )
    if given is not None and made is not None and given.status < 300 <= made.status:
        yield (
            f"{mutations} makes of {request.plural}/{request.label} what the schema "
            f"refuses: {made.body.get('message')}"
        )


def _unreviewed_response(
    ground: Ground, request: Request, found: Any
) -> ApiResponse | None:
    """The response to a write of this object, unreviewed; None for other requests."""
    if request.subresource not in ("", "status"):
        return None
    path = object_path(ground.run(), request.present, request.namespace or "")
    if path is None:
        return None
    write = ApiRequest("POST", path.rpartition("/")[0], STRICT, fresh(found))
    if request.operation == "UPDATE":
        sub = f"/{request.subresource}" if request.subresource else ""
        write = ApiRequest("PUT", f"{path}{sub}", STRICT, found)
    return ground.tried(write, is_reviewed=False).response


# ------------------------------------------------------------------ nothing is left


def leaves_traces(asked: Asked) -> Iterator[str]:
    """Effects outside of a write that is denied, or of a dry run."""
    ground, request = asked.ground, asked.decision.request
    if not externals_of(ground.calls):
        return
    for is_dry in (False, True):
        for handler in (*_mutations(asked), *_handlers_asked(asked, mutates=False)):
            run = ground.run()
            before = digests_of(run.calls.models)
            found = run.admission.decide(
                request._replace(dry_run=is_dry), (handler.id,)
            )
            after = digests_of(run.calls.models)
            if before == after or not (is_dry or not found.allowed):
                continue
            what = next(each for each in after if before.get(each) != after[each])
            why = "in a dry run" if is_dry else "for a write that it denies"
            yield (
                f"{placed(handler)} changes {what} {why}: {request.operation} of "
                f"{request.plural}/{request.label}; nothing is stored, so nobody will "
                "take it back"
            )


# ----------------------------------------------------------------------- one answer


def wavers(asked: Asked) -> Iterator[str]:
    """Validations that answer the same question in two ways, or by their order."""
    validations = _handlers_asked(asked, mutates=False)
    ids = [each.id for each in validations]
    if not ids:
        return
    request, ground = asked.decision.request, asked.ground
    first = _denial_messages(ground.decision(request, ids))
    again = _denial_messages(ground.decision(request, ids))
    program = ground.program
    backwards = Program(program.handlers[::-1], program.settings)
    other = _denial_messages(replace(ground, program=backwards).decision(request, ids))
    for later, when in ((again, "asked again"), (other, "asked before the others")):
        for handler in validations:
            one, two = (each.get(handler.id) for each in (first, later))
            if one != two:
                yield (
                    f"{placed(handler)} answers otherwise when it is {when}, about "
                    f"{request.operation} of {request.plural}/{request.label}: first "
                    f"it {_denial_phrase(one)}, then it {_denial_phrase(two)}; let it "
                    "decide by its arguments alone"
                )


def _denial_messages(decision: Decision) -> dict[str, str]:
    return {each.handler: each.message for each in decision.denials}


def _denial_phrase(denial: str | None) -> str:
    return "admits it" if denial is None else f"denies it ({denial})"


# --------------------------------------------------------------------------- deletions


def stays(stored: Stored) -> Iterator[str]:
    """Denials of a deletion that hold for such an object in every state."""
    tried = stored.ground.tried(stored.sends("DELETE"))
    for decision in tried.decisions:
        for denial in decision.denials:
            handler = _handler(stored.ground.program, denial)
            if _other_inputs(handler, tried, stored.ground):
                continue  # see `unjudged`
            if _may_admit(handler, decision.request, stored.ground):
                continue  # its author protects some objects, and releases others
            remedy = _remedy(
                denial, "let a label or a field protect it, which a user can change"
            )
            yield (
                f"{named(denial)} denies each deletion of {stored.name}, whatever is "
                f"in it: {denial.message}; its namespace cannot be deleted either: "
                f"{remedy}"
            )


def unjudged(stored: Stored) -> Iterator[tuple[Handler, str]]:
    """The handlers that deny a deletion because of other things, and these things.

    Handlers are skipped if they admit the deletion in another state of the object, or
    if the things that they read do not exist.
    """
    tried = stored.ground.tried(stored.sends("DELETE"))
    for decision in tried.decisions:
        for denial in decision.denials:
            handler = _handler(stored.ground.program, denial)
            looked_at = _other_inputs(handler, tried, stored.ground)
            if looked_at and not _admits_deletion(
                handler, decision.request, tried, stored
            ):
                yield handler, " and ".join(looked_at)


def _admits_deletion(
    handler: Handler, request: Request, tried: Tried, stored: Stored
) -> bool:
    """Whether a handler that looks at more than its object admits its deletion."""
    if handler.function:
        return False  # its actions outside must not be repeated
    bare = _without_what_is_read(stored.ground, tried, stored)
    bare = replace(bare, state=_without_indices(bare))
    if bare.decision(request, (handler.id,)).allowed:
        return True
    return not tried.reads and _may_admit(handler, request, stored.ground)


def _other_inputs(handler: Handler, tried: Tried, ground: Ground) -> list[str]:
    """The words for a handler's inputs other than its object and the user."""
    wants = {*handler.signature.wants}
    reads = [e for e in tried.reads if e.handler == handler.id]
    words = sorted(wants & {"memo", *ground.state.objects.indices})
    words += [e.resource.plural for e in reads if e.resource is not None]
    if handler.function or any(each.resource is None for each in reads):
        words.append("systems outside")
    return [*dict.fromkeys(words)]


def _without_indices(ground: Ground) -> State:
    """The operator's state if no object were in an index."""
    objects = replace(ground.state.objects, indices=empty_indices(ground.program))
    return replace(ground.state, objects=objects)


def _remedy(denial: Denial, meant: str) -> str:
    """The remedy for a denial that its author has `meant`, or for an error."""
    return meant if denial.meant else "let it answer, or ask it for other operations="


def _handler(program: Program, denial: Denial) -> Handler:
    return next(each for each in program.handlers if each.id == denial.handler)


def _attempt(handler: Handler, request: Request, ground: Ground) -> Attempt:
    """The attempt of a handler to answer, which can be decided again."""
    reviewer = reviewer_of(ground.program, ground.state, ACCOUNT.name)
    found: Any = thaw_json(request.present)
    meta = {"labels": {}, "annotations": {}, **found["metadata"]}
    whole = {"spec": {}, "status": {}, **found, "metadata": meta}
    about, resource = request.about(whole), reviewer.resource_of(request)
    now = Now(ground.wall, 0.0)
    return Attempt(reviewer.situation(handler, about, resource, now))


def _may_admit(handler: Handler, request: Request, ground: Ground) -> bool:
    """Whether a handler that denies may admit an object in another state.

    Handlers with filters are not asked about other states.
    """
    webhook = handler.webhook
    if not handler.filters.is_trivial:
        return True
    if webhook and (webhook.match_conditions or webhook.object_selector):
        return True
    attempt = _attempt(handler, request, ground)
    if any(_admits(ending) for _, ending in endings_of(attempt)):
        return True
    return _may_others(handler, request, ground)


def _may_others(handler: Handler, request: Request, ground: Ground) -> bool:
    """Whether a handler that denies one user admits another."""
    if "userinfo" not in handler.signature.wants:
        return False
    return any(
        ground.decision(request._replace(user_info=each), (handler.id,)).allowed
        for each in _other_users(handler)
    )


def _admits(ending: Ending) -> bool:
    return ending.end is not None and ending.end.failure is None


def _other_users(handler: Handler) -> Iterator[Mapping[str, Any]]:
    """Users that the code may mean."""
    for each in ("somebody", *constants_of(handler.declared)):
        if isinstance(each, str):
            yield {"username": each, "groups": ["system:authenticated"]}
            yield {"username": ADMIN.name, "groups": [each, *ADMIN.groups]}


def is_held(stored: Stored) -> Iterator[str]:
    """Denials of a finalizer's removal, which keep an object under deletion."""
    program = stored.ground.program
    if not any(e.webhook is not None and e.webhook.deleted for e in program.handlers):
        return
    own = program.settings.marker
    held = [*stored.found["metadata"].get("finalizers", ())]
    every = [*held, *(each for each in (own, FOREIGN, FOREGROUND) if each not in held)]
    ground = stored.ground.after(
        stored.sends("PATCH", {"metadata": {"finalizers": every}}),
        stored.sends("DELETE"),
    )
    if ground is None:
        return
    for finalizer, user, who in (
        (own, ACCOUNT, "the operator"),
        (FOREIGN, ADMIN, "a user or another controller"),
        (FOREGROUND, GARBAGE_COLLECTOR, "the garbage collector"),
    ):
        left = [each for each in every if each != finalizer]
        request = stored.sends("PATCH", {"metadata": {"finalizers": left}}, user)
        tried = ground.tried(request)
        if not tried.is_denied:
            tried = _without_what_is_read(ground, tried, stored).tried(request)
        for denial in tried.denials:
            yield (
                f"{named(denial)} keeps {stored.name} for ever once it is deleted: "
                f"{who} cannot remove the finalizer {finalizer}: {denial.message}; do "
                "without deleted=True, or admit what changes nothing but finalizers"
            )


def _without_what_is_read(ground: Ground, tried: Tried, stored: Stored) -> Ground:
    """The world without the objects that handlers have read.

    A namespace under deletion loses its objects in any order.
    """
    now = {"gracePeriodSeconds": 0}
    for read in tried.reads:
        if read.resource is None:
            continue
        kind = read.resource.group, read.resource.plural
        for resource, found in ground.objects():
            meta = found["metadata"]
            if resource != kind or meta["uid"] == stored.found["metadata"]["uid"]:
                continue
            if read.name not in (None, meta["name"]):
                continue
            path = path_of(read.resource, meta.get("namespace"), meta["name"])
            ground = ground.after(ApiRequest("DELETE", path, body=now)) or ground
    return ground


# ---------------------------------------------------------------------------- updates


def is_frozen(stored: Stored) -> Iterator[str]:
    """Denials of an update that changes nothing, or only a label."""
    requests = {
        "an update that changes nothing": stored.sends("PUT", stored.found),
        "a new label": stored.sends("PATCH", {"metadata": {"labels": {LABEL: "x"}}}),
        "the operator's own update of the status": stored.sends(
            "PUT", stored.found, ACCOUNT, "/status"
        ),
    }
    for what, request in requests.items():
        tried = stored.ground.tried(request)
        for decision in tried.decisions:
            for denial in decision.denials:
                if _may_go_on(stored, decision.request, denial):
                    continue
                remedy = _remedy(
                    denial,
                    "do without ratcheting=False, or deny only what differs from old",
                )
                yield (
                    f"{named(denial)} freezes {stored.name}: it denies {what}: "
                    f"{denial.message}; {remedy}"
                )
        if tried.is_denied:
            return


def _may_go_on(stored: Stored, request: Request, denial: Denial) -> bool:
    """Whether a user can change the object to a state that is not frozen.

    Then the state is a lock, which its author intends. It is not a lock if each new
    object has it, or an object that existed before the operator. If another user can
    change the object, this user only lacks a right.
    """
    ground = stored.ground
    handler = _handler(ground.program, denial)
    if _may_others(handler, request, ground):
        return True
    if stored.is_given or stored.is_new:
        return False
    if handler.function:
        return True
    attempt = _attempt(handler, request, ground)
    free = (inputs for inputs, ending in endings_of(attempt) if _admits(ending))
    return any(
        ground.decision(request._replace(object=thaw_json(each.object))).allowed
        for each in islice(free, STATES_MAX)
    )
