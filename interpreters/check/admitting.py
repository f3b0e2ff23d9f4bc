"""The writes of a run, tried again: the laws that admission handlers keep.

A webhook is asked about the writes of everybody, so its defects stop others: objects
that nobody can delete, stored objects that nobody can change, an operator that denies
what it writes itself. The handlers are functions of the request. So the writes of a run
without faults are tried again in the world of then, with other objects too, and with
those writes that each stored object will meet: by users, the garbage collector, and the
operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from fnop.core.admission.decisions import Decision, Denial
from fnop.core.admission.reviewing import reviewer_of
from fnop.core.api.resources import Resource, path_of
from fnop.core.api.reviews import Request
from fnop.core.handlers.handler import Handler
from fnop.core.handlers.program import Program
from fnop.core.handlers.roles import ADMISSION
from fnop.core.values.diff import diff
from fnop.core.values.now import Now
from fnop.effects.values import canonical, thaw_json
from fnop.interpreters.admission import ACCOUNT, has_admission
from fnop.interpreters.check.grounds import Ground, Tried
from fnop.interpreters.check.likely import constants_of, others_of
from fnop.interpreters.check.looking import below
from fnop.interpreters.check.mattering import endings_of
from fnop.interpreters.check.redeciding import (
    ABSENT,
    Attempt,
    Decision as Ending,
    Inputs,
    quietly,
)
from fnop.interpreters.check.sites import object_path
from fnop.interpreters.check.trial import Trial
from fnop.interpreters.check.worlds import digests_of
from fnop.interpreters.cluster.access.reviews import ADMIN
from fnop.interpreters.externals import externals_of
from fnop.interpreters.protocol import MERGE_PATCH, ApiRequest, User
from fnop.interpreters.scenario import is_own

__all__ = ["Admitting"]

# The creations of a run that are tried with other objects, and how many of these.
CREATIONS_MAX, OTHERS_MAX = 4, 40
# The values of one field that are tried, and the states of objects.
VALUES_MAX, OBJECTS_MAX = 6, 40
# Other states that an object may be changed to, if it cannot stay as it is.
STATES_MAX = 20
# A value is told by so many characters.
TEXT_MAX = 60
GARBAGE_COLLECTOR = User(
    "system:serviceaccount:kube-system:generic-garbage-collector",
    ("system:serviceaccounts", "system:serviceaccounts:kube-system"),
)
# A finalizer of another controller, and a label that means nothing to anybody.
FOREIGN, LABEL = "other.example.com/cleanup", "other.example.com/note"
# The finalizer by which the garbage collector deletes the dependents first.
FOREGROUND = "foregroundDeletion"
_STRICT = (("fieldValidation", "Strict"),)


class Asked(NamedTuple):
    """A decision, and the world in which it was made."""

    decision: Decision
    ground: Ground


class Stored(NamedTuple):
    """A stored object, the world in which it is, and its path there.

    It `is_new` as long as nobody has changed it since it was created, or given.
    """

    found: dict[str, Any]
    ground: Ground
    path: str
    name: str
    is_given: bool
    is_new: bool

    def sends(
        self, method: str, body: Any = None, user: User = ADMIN, sub: str = ""
    ) -> ApiRequest:
        """A request about it."""
        kind = MERGE_PATCH if method == "PATCH" else "application/json"
        return ApiRequest(
            method, f"{self.path}{sub}", (), body, content_type=kind, user=user
        )

    def asked(self, request: ApiRequest) -> list[Asked]:
        """The decisions about a request."""
        found = self.ground.tried(request).decisions
        return [Asked(each, self.ground) for each in found]


class Admitting:
    """The defects of a run's admission handlers: a few sentences for each law."""

    def __init__(self, trial: Trial | None = None) -> None:
        is_asked = trial is not None and has_admission(trial.scene.program)
        self._trial = trial if is_asked else None

    # --------------------------------------------------------------------- the laws

    @cached_property
    def idempotent(self) -> tuple[str, ...]:
        """Mutations that change again what they have changed already."""
        return self._told(_changes_again(each) for each in self._asked)

    @cached_property
    def accepted(self) -> tuple[str, ...]:
        """Mutations that make of a good object one that is refused."""
        return self._told(_spoils(each) for each in self._asked)

    @cached_property
    def traceless(self) -> tuple[str, ...]:
        """Handlers that act outside though nothing is stored."""
        return self._told(_leaves_traces(each) for each in self._asked)

    @cached_property
    def steady(self) -> tuple[str, ...]:
        """Validations that answer one question in two ways."""
        return self._told(_wavers(each) for each in self._asked)

    @cached_property
    def deletable(self) -> tuple[str, ...]:
        """Objects that nobody can delete, or that never go once they are deleted."""
        return self._told(
            sentences
            for each in self._latest
            for sentences in (_stays(each), _is_held(each))
        )

    @cached_property
    def updatable(self) -> tuple[str, ...]:
        """Objects that nobody can change any more."""
        stored = (*self._stored, *self._formerly_stored)
        return self._told(_is_frozen(each) for each in stored)

    @cached_property
    def admits_itself(self) -> tuple[str, ...]:
        """Writes of the operator, or on its behalf, that it denies for ever."""
        return self._told((self._own_denials(), self._denials_on_behalf()))

    def _told(self, found: Iterable[Iterable[str]]) -> tuple[str, ...]:
        if self._trial is None:
            return ()
        with quietly():
            return tuple(dict.fromkeys(each for one in found for each in one))

    # ------------------------------------------------------------- what is asked about

    @cached_property
    def _asked(self) -> list[Asked]:
        """The decisions of the run, and those about objects like the created ones."""
        if self._trial is None:
            return []
        found = [Asked(e.decision, self._ground_of(e)) for e in self._trial.reviewed]
        for each in self._creations:
            found += _others_like(each)
        for stored in self._latest:  # the cluster's controllers make some
            found += stored.asked(stored.sends("PUT", stored.found))
        return [*found, *self._unmade()]

    def _unmade(self) -> Iterator[Asked]:
        """The decisions about objects of kinds of which the run makes none."""
        assert self._trial is not None
        trial = self._trial
        place = max(trial.rests, default=None)
        if place is None:
            return
        reviewed = {e.decision.request.plural for e in trial.reviewed}
        reviewed |= {each.name.partition("/")[0] for each in self._stored}
        state = trial.rest_states[place]
        ground = self._ground_at(place)
        for kind in _kinds_of(trial.scene.program, state).values():
            if kind.plural not in reviewed:
                path = path_of(kind, trial.scene.namespace if kind.namespaced else None)
                post = ApiRequest("POST", path, (), _bare(kind, trial.scene.program))
                if ground.after(post) is not None:
                    for decision in ground.tried(post).decisions:
                        yield Asked(decision, ground)

    def _ground_at(self, place: int) -> Ground:
        """The world at the rest after so many actions."""
        assert self._trial is not None
        trial = self._trial
        cluster, state = trial.rests[place], trial.rest_states[place]
        wall = trial.run.clock.now().wall
        return Ground(trial.scene.program, wall, cluster, state, trial.run.calls)

    def _ground_of(self, found: Any) -> Ground:
        assert self._trial is not None
        program, wall = self._trial.scene.program, self._trial.run.clock.now().wall
        return Ground(program, wall, found.cluster, found.state, found.calls)

    @cached_property
    def _stored(self) -> list[Stored]:
        """The objects of the run that handlers may be asked about, in each state."""
        if self._trial is None:
            return []
        trial, known = self._trial, dict[tuple[str, str], Stored]()
        given = _uids(trial.scene.base.cluster)
        seen: set[str] = set()
        for place in sorted(trial.rests):
            ground = self._ground_at(place)
            reviewed = _kinds_of(trial.scene.program, ground.state)
            for resource, found in ground.objects():
                meta = found["metadata"]
                key = meta["uid"], meta["resourceVersion"]
                if resource not in reviewed or "deletionTimestamp" in meta:
                    continue
                if is_own(reviewed[resource].kind, meta["name"]):
                    continue  # the cluster makes it
                path = object_path(trial.run, found, meta.get("namespace", ""))
                if path is None or key in known:
                    continue
                name = f"{resource[1]}/{meta['name']}"
                is_given, is_new = meta["uid"] in given, meta["uid"] not in seen
                body = ground.tried(ApiRequest("GET", path)).response.body
                known[key] = Stored(body, ground, path, name, is_given, is_new)
                seen.add(meta["uid"])
        return [*known.values()][:OBJECTS_MAX]

    @cached_property
    def _formerly_stored(self) -> list[Stored]:
        """Objects that the former code has admitted, or would have."""
        former = None if self._trial is None else self._trial.scene.former
        if former is None:
            return []
        found = []
        for each in self._creations:
            before = each.ground._replace(program=former)
            given = _fresh(each.decision.request.object or {})
            path = object_path(
                before.run(), given, each.decision.request.namespace or ""
            )
            if path is None:
                continue
            own = ApiRequest("POST", path.rpartition("/")[0], (), given)
            for post in (own, *_creations_like(each)):
                tried = before.tried(post)
                if tried.response.status < 300:
                    ground = each.ground._replace(cluster=tried.cluster)
                    name = f"{each.decision.request.plural}/{given['metadata']['name']}"
                    body = tried.response.body
                    found.append(
                        Stored(body, ground, path, name, is_given=True, is_new=True)
                    )
        return found

    @property
    def _creations(self) -> list[Asked]:
        """Some reviewed creations of the run."""
        assert self._trial is not None
        found = [
            Asked(each.decision, self._ground_of(each))
            for each in self._trial.reviewed
            if each.decision.request.operation == "CREATE"
        ]
        return found[:CREATIONS_MAX]

    @property
    def _latest(self) -> list[Stored]:
        """Each object in its last state."""
        return [
            *{each.found["metadata"]["uid"]: each for each in self._stored}.values()
        ]

    # ----------------------------------------------------------------- own writes

    def _own_denials(self) -> Iterator[str]:
        assert self._trial is not None
        last: dict[tuple[str, ...], Decision] = {}
        for each in self._trial.reviewed:
            request = each.decision.request
            if request.user == ACCOUNT.name:
                key = request.plural, request.label, request.operation
                last[key] = each.decision
        for (plural, label, operation), decision in last.items():
            for denial in decision.denials:
                yield (
                    f"{_named(denial)} denies the operator's own write, and the "
                    f"operator never gets it through: {operation} of {plural}/{label}: "
                    f"{denial.message}; let it pass, or do without own_writes=True"
                )

    def _denials_on_behalf(self) -> Iterator[str]:
        """Denials of objects that the controllers of the cluster have made."""
        assert self._trial is not None
        mine = {e.body["metadata"]["uid"] for e in self._trial.writes if _is_whole(e)}
        reviewed = {
            (each.decision.request.plural, each.decision.request.label)
            for each in self._trial.reviewed
        }
        for each in self._stored:
            meta = each.found["metadata"]
            owners = [e for e in meta.get("ownerReferences", ()) if e.get("controller")]
            label = "/".join(filter(None, (meta.get("namespace"), meta["name"])))
            kind = each.name.partition("/")[0]
            if each.is_given or not owners or meta["uid"] in mine:
                continue
            if (kind, label) in reviewed or not _is_of_controllers(owners[0]):
                continue
            controller = owners[0]["kind"].lower()
            user = User(f"system:serviceaccount:kube-system:{controller}-controller")
            gone = each.ground.after(each.sends("DELETE", {"gracePeriodSeconds": 0}))
            if gone is None:
                continue
            body = _fresh(each.found)
            path = each.path.rpartition("/")[0]
            tried = gone.tried(ApiRequest("POST", path, (), body, user=user))
            for denial in _denials(tried):
                yield (
                    f"{_named(denial)} denies what the cluster makes on the operator's "
                    f"behalf: the {controller} controller cannot create {each.name}: "
                    f"{denial.message}"
                )


def _uids(cluster: Any) -> frozenset[str]:
    return frozenset(
        found["metadata"]["uid"]
        for shelf in cluster.shelves.values()
        for found in shelf.values()
    )


def _kinds_of(program: Program, state: Any) -> dict[tuple[str, str], Resource]:
    """The kinds that admission handlers are asked about, by group and plural."""
    return {
        (each.group, each.plural): each
        for handler in program.handlers
        if handler.role in ADMISSION and handler.selector is not None
        for each in state.survey.catalogue.find(handler.selector)
    }


def _bare(kind: Resource, program: Program) -> dict[str, Any]:
    """A new object of a kind with the labels that handlers ask for, and little else."""
    labels = {
        name: value if isinstance(value, str) else "x"
        for handler in program.handlers
        if handler.role in ADMISSION
        for name, value in handler.filters.labels
    }
    containers = [{"name": "main", "image": "main"}]
    spec = {"spec": {"containers": containers}} if kind.kind == "Pod" else {}
    meta = {"name": "x", "labels": labels}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **spec}


def _is_whole(write: Any) -> bool:
    return isinstance(write.body, dict) and "uid" in (write.body.get("metadata") or {})


def _is_of_controllers(owner: Mapping[str, Any]) -> bool:
    """Whether the objects of an owner are made by the cluster's own controllers."""
    group = str(owner.get("apiVersion")).rpartition("/")[0]
    return group in ("apps", "batch")


_OF_SERVERS = frozenset(
    (
        *("uid", "resourceVersion", "generation", "creationTimestamp"),
        *("managedFields", "selfLink", "deletionTimestamp"),
    )
)


def _fresh(found: Mapping[str, Any]) -> dict[str, Any]:
    """The object as somebody creates it."""
    meta = {k: each for k, each in found["metadata"].items() if k not in _OF_SERVERS}
    body = {key: each for key, each in found.items() if key != "status"}
    return {**body, "metadata": meta}


def _denials(tried: Tried) -> list[Denial]:
    return [each for one in tried.decisions for each in one.denials]


def _named(denial: Denial) -> str:
    """The handler of a denial, with its place."""
    return f"{denial.handler} ({denial.place})" if denial.place else denial.handler


def _who(handler: Handler) -> str:
    return f"{handler.id} ({handler.place})" if handler.place else handler.id


# --------------------------------------------------------------------- other objects

_LABELS = ("metadata", "labels")


def _others_like(asked: Asked) -> Iterator[Asked]:
    """The decisions about objects that differ in one field from a created one."""
    for post in _creations_like(asked):
        for decision in asked.ground.tried(post).decisions:
            yield Asked(decision, asked.ground)


def _creations_like(asked: Asked) -> Iterator[ApiRequest]:
    """The creations of such objects, as far as the cluster takes them."""
    request, ground = asked.decision.request, asked.ground
    found = request.object or {}
    path = object_path(ground.run(), found, request.namespace or "")
    if path is None:
        return
    known = [
        constant
        for handler in ground.program.handlers
        if handler.id in asked.decision.asked
        for constant in constants_of(handler.declared)
    ]
    whole = Inputs(_fresh(found), ())
    stanzas = [("object", *each) for each in (("spec",), ("data",), _LABELS)]
    fields = [path for each in stanzas for path in below(each, whole.at(each))]
    fields += [each for each in stanzas if whole.at(each) is not ABSENT]
    others = (
        whole.with_(field, value).object
        for field in fields
        for value in (
            ABSENT,
            *islice(others_of(whole.at(field), known), VALUES_MAX),
        )
    )
    for body in islice(others, OTHERS_MAX):
        post = ApiRequest("POST", path.rpartition("/")[0], _STRICT, body)
        if ground.after(post) is not None:
            yield post


def _mutations(asked: Asked) -> list[Handler]:
    return _of(asked, mutates=True)


def _of(asked: Asked, *, mutates: bool) -> list[Handler]:
    return [
        each
        for each in asked.ground.program.handlers
        if each.id in asked.decision.asked and each.rule.mutates is mutates
    ]


def _text(value: Any) -> str:
    text = canonical(value).decode()
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}..."


# ------------------------------------------------------------------------ mutations


def _changes_again(asked: Asked) -> Iterator[str]:
    """A mutation that changes its own result, for each field."""
    if not asked.decision.patch:
        return
    # Once more from the beginning: it is later than then.
    first_time = asked.ground.decision(asked.decision.request, asked.decision.asked)
    request = asked.decision.request._replace(object=first_time.object)
    for handler in _mutations(asked):
        again = asked.ground.decision(request, (handler.id,))
        if not again.allowed or again.object == request.object:
            continue
        first = diff(request.object, again.object)[0]
        yield (
            f"{_who(handler)} changes again what it has changed: "
            f"{'.'.join(first.field)} is {_text(first.old)}, and becomes "
            f"{_text(first.new)}; let it look at what is there, for it is asked again "
            "at each update, and by the API server itself"
        )


def _spoils(asked: Asked) -> Iterator[str]:
    """Refusals of a changed object, if the object as it came is accepted."""
    decision, ground = asked.decision, asked.ground
    if not decision.patch or decision.object is None:
        return
    mutations = ", ".join(map(_who, _mutations(asked)))
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
                    f"{_named(denial)} denies: {denial.message}; without the change it "
                    "is admitted"
                )
    if request.operation != "CREATE" or request.subresource:
        return
    path = object_path(ground.run(), decision.object, request.namespace or "")
    if path is None:
        return
    given, made = (
        ground.tried(
            ApiRequest("POST", path.rpartition("/")[0], _STRICT, _fresh(each)),
            is_reviewed=False,
        ).response
        for each in (request.object or {}, decision.object)
    )
    if given.status < 300 <= made.status:
        yield (
            f"{mutations} makes of {request.plural}/{request.label} what the schema "
            f"refuses: {made.body.get('message')}"
        )


# ------------------------------------------------------------------ nothing is left


def _leaves_traces(asked: Asked) -> Iterator[str]:
    """Effects outside of a write that is denied, or of a dry run."""
    ground, request = asked.ground, asked.decision.request
    if not externals_of(ground.calls):
        return
    for is_dry in (False, True):
        for handler in (*_mutations(asked), *_of(asked, mutates=False)):
            run = ground.run()
            before = digests_of(run.calls)
            found = run.decide(request._replace(dry_run=is_dry), (handler.id,))
            after = digests_of(run.calls)
            if before == after or not (is_dry or not found.allowed):
                continue
            what = next(each for each in after if before.get(each) != after[each])
            why = "in a dry run" if is_dry else "for a write that it denies"
            yield (
                f"{_who(handler)} changes {what} {why}: {request.operation} of "
                f"{request.plural}/{request.label}; nothing is stored, so nobody will "
                "take it back"
            )


# ----------------------------------------------------------------------- one answer


def _wavers(asked: Asked) -> Iterator[str]:
    """Validations that answer the same question in two ways, or by their order."""
    validations = _of(asked, mutates=False)
    ids = [each.id for each in validations]
    if not ids:
        return
    request, ground = asked.decision.request, asked.ground
    first = _answers(ground.decision(request, ids))
    again = _answers(ground.decision(request, ids))
    program = ground.program
    backwards = Program(program.handlers[::-1], program.settings)
    other = _answers(ground._replace(program=backwards).decision(request, ids))
    for later, when in ((again, "asked again"), (other, "asked before the others")):
        for handler in validations:
            one, two = (each.get(handler.id) for each in (first, later))
            if one != two:
                yield (
                    f"{_who(handler)} answers otherwise when it is {when}, about "
                    f"{request.operation} of {request.plural}/{request.label}: first "
                    f"it {_in_words(one)}, then it {_in_words(two)}; let it decide by "
                    "its arguments alone"
                )


def _answers(decision: Decision) -> dict[str, str]:
    return {each.handler: each.message for each in decision.denials}


def _in_words(denial: str | None) -> str:
    return "admits it" if denial is None else f"denies it ({denial})"


# --------------------------------------------------------------------------- deletions


def _stays(stored: Stored) -> Iterator[str]:
    """Denials of a deletion that hold for such an object in whatever state it is."""
    tried = stored.ground.tried(stored.sends("DELETE"))
    for decision in tried.decisions:
        for denial in decision.denials:
            handler = _handler(stored.ground.program, denial)
            if tried.reads or _may_admit(handler, decision.request, stored.ground):
                continue  # its author protects some objects, and lets others go
            remedy = _remedy(
                denial, "let a label or a field protect it, which a user can change"
            )
            yield (
                f"{_named(denial)} denies each deletion of {stored.name}, whatever is "
                f"in it: {denial.message}; its namespace cannot be deleted either: "
                f"{remedy}"
            )


def _remedy(denial: Denial, meant: str) -> str:
    """The remedy for a denial that its author has `meant`, or for one of an error."""
    return meant if denial.meant else "let it answer, or ask it for other operations="


def _handler(program: Program, denial: Denial) -> Handler:
    return next(each for each in program.handlers if each.id == denial.handler)


def _attempt(handler: Handler, request: Request, ground: Ground) -> Attempt:
    """The attempt of a handler to answer, which can be decided again."""
    reviewer = reviewer_of(ground.program, ground.state, ACCOUNT.name)
    found: Any = thaw_json(request.present)
    meta = {"labels": {}, "annotations": {}, **found["metadata"]}
    whole = {"spec": {}, "status": {}, **found, "metadata": meta}
    situation = reviewer.situation(handler, request.about(whole), Now(ground.wall, 0.0))
    return Attempt(situation)


def _may_admit(handler: Handler, request: Request, ground: Ground) -> bool:
    """Whether a handler that denies may admit an object in another state.

    What it decides by systems outside, indices or memos is not known: then it may.
    """
    if handler.function:
        return True
    if {"memo", *ground.state.objects.indices} & {*handler.signature.wants}:
        return True
    attempt = _attempt(handler, request, ground)
    if any(_admits(ending) for _, ending in endings_of(attempt)):
        return True
    return _may_others(handler, request, ground)


def _may_others(handler: Handler, request: Request, ground: Ground) -> bool:
    """Whether a handler that denies a user admits another one."""
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


def _is_held(stored: Stored) -> Iterator[str]:
    """Denials that keep an object which is being deleted: of a finalizer's removal."""
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
        for denial in _denials(tried):
            yield (
                f"{_named(denial)} keeps {stored.name} for ever once it is deleted: "
                f"{who} cannot remove the finalizer {finalizer}: {denial.message}; do "
                "without deleted=True, or admit what changes nothing but finalizers"
            )


def _without_what_is_read(ground: Ground, tried: Tried, stored: Stored) -> Ground:
    """The world in which the objects are gone that handlers have read.

    A namespace that is deleted loses its objects in any order.
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


def _is_frozen(stored: Stored) -> Iterator[str]:
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
                    f"{_named(denial)} freezes {stored.name}: it denies {what}: "
                    f"{denial.message}; {remedy}"
                )
        if tried.is_denied:
            return


def _may_go_on(stored: Stored, request: Request, denial: Denial) -> bool:
    """Whether a user can change the object to a state that is not frozen.

    Then the state is a lock, which its author means. One that each new object has, or
    an object that was there before the operator, is none. Another user who can change
    it is a right that this one has not.
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
