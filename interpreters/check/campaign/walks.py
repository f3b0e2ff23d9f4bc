"""Generated scripts: the actions of users on the objects of an operator.

A user creates the objects; edits a field, and reverts that; unsets a field; deletes the
objects, and creates them again. Every fault strikes these scripts. Faults do not strike
*walks*, in which the user changes all fields, one after another. Each field gets
another value, is unset, or is set if it was absent. A user also makes a mistake and
corrects it, and others change the objects that the operator only watches.

A walk takes the changes that the cluster accepts, and with which the operator serves a
new object. If the operator does not serve a change, without an error of its own, the
change is the user's mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct

from fnop.core.handlers.declare.roles import Family
from fnop.core.values.merge import applied
from fnop.effects.structs import replace
from fnop.interpreters.check.campaign.explore import Case, prepared
from fnop.interpreters.check.inputs.redeciding import OWN_ERRORS
from fnop.interpreters.check.scripts.changes import Change, Sort
from fnop.interpreters.check.state.journal import Journal
from fnop.interpreters.check.state.records import Phase
from fnop.interpreters.check.state.scripts import Script
from fnop.interpreters.check.trials.trial import Trial
from fnop.interpreters.runtime.interrupts import interruptible
from fnop.interpreters.simulation.actions import (
    Action,
    ActionRefused,
    Apply,
    Delete,
    Edit,
    Outage,
    Upgrade,
    WriteLog,
    act,
)
from fnop.interpreters.simulation.simulation import SimulatedRun, begin_reviewing

__all__ = [
    "UNFOLLOWED",
    "MadeUp",
    "Subject",
    "scripts_for",
    "scripts_of_the_cluster",
]

# An API server is upgraded to this release. Its outage lasts this much longer than the
# waits of handlers for such times.
RELEASE, AWAY_SECONDS = "1.37", 30.0
# The fields of an object that are edited in scripts with all faults.
STRUCK_MAX = 2
# The fields of an object that a walk changes, and the values that it tries for each.
FIELDS_MAX, VALUES_MAX = 40, 3
# The mistakes of a user that are corrected, and the odd values that are tried for them.
MISTAKES_MAX, ODD_MAX = 2, 16


class Subject(Struct, frozen=True):
    """An object, its name as kind/name, and the changes that a user may make to it.

    Users never delete an object that `stays`. Handlers observe an object that is
    `watched`. Without `followed`, no handler is called for changes of the object, and
    it has none here.
    """

    manifest: Mapping[str, Any]
    where: str
    changes: tuple[Change, ...] = ()
    stays: bool = False
    watched: bool = False
    followed: bool = True

    @property
    def namespace(self) -> str | None:
        """The namespace in its manifest."""
        found = (self.manifest.get("metadata") or {}).get("namespace")
        return found if isinstance(found, str) else None

    def edit(self, changes: Mapping[str, Any]) -> Edit:
        """The action of a user who makes these changes to it."""
        return Edit(self.where, dict(changes), self.namespace)

    @property
    def deletion(self) -> Delete:
        """The action of a user who deletes it."""
        return Delete(self.where, self.namespace)


class MadeUp(Struct, frozen=True):
    """The scripts for some objects, and notes for their author."""

    scripts: tuple[Script, ...]
    notes: tuple[str, ...] = ()


def scripts_for(
    case: Case,
    subjects: Sequence[Subject],
    beside: Sequence[Subject] = (),
    logs: Sequence[WriteLog] = (),
) -> MadeUp:
    """The scripts for the objects that an operator serves, and for other objects.

    Pods write `logs`, one after the other, once all objects exist. Objects in `beside`
    matter if handlers watch them, or read others of their kind, even if they follow the
    changes of served objects. Raises `ActionRefused` if the cluster does not accept the
    objects as they are.
    """
    ground = _Ground(case, subjects)
    create = ground.create
    gone = tuple(each.deletion for each in subjects)
    last = {each.where.partition("/")[0]: each for each in subjects}
    walks: list[Script] = []
    for subject in last.values():
        of = f" of {subject.where}" if len(last) > 1 else ""
        walks += _walk_scripts(ground, subject, of)
    follows = any(each.changes for each in subjects)
    for each in beside:
        kind = each.where.partition("/")[0].partition(".")[0]
        if each.watched or (follows and kind in ground.usual.reads):
            walks += _scripts_for_watched(ground, each)
    scripts = [
        Script("create", create),
        *_scripts_for_faults(ground, subjects[-1]),
        Script("delete", (*create, *gone)),
        Script("delete and recreate", (*create, *gone, *create)),
    ]
    scripts += scripts_of_the_cluster(case, create)
    if logs:
        scripts.append(Script("pods write logs", (*create, *logs)))
    known = [each.actions for each in scripts]
    scripts += [each for each in walks if each.actions not in known]
    if not any(isinstance(e, Edit) for script in scripts for e in script.actions):
        ground.notes.append(_no_edits_note(ground))
    return MadeUp(tuple(scripts), tuple(dict.fromkeys(ground.notes)))


UNFOLLOWED = (
    "no script edits an object: no handler is called for its changes; --script takes "
    "one of yours"
)
"""The note for an operator that ignores changes, as its author may well want it."""


def _no_edits_note(ground: _Ground) -> str:
    """Say why no script edits an object, with the remedy."""
    if ground.denial:
        why, remedy = ground.denial, "give another object with --object"
    elif any(each.followed for each in ground.subjects):
        why, remedy = _reason_without_edits(ground), "--script takes one of yours"
    else:
        return UNFOLLOWED
    return f"no script edits an object: {why}; {remedy}"


def _reason_without_edits(ground: _Ground) -> str:
    if ground.unserved:
        return f"the operator serves none of its changes ({ground.unserved})"
    if ground.refusal:
        return f"each change that was tried is refused ({ground.refusal})"
    return "it has no field that can be changed"


def scripts_of_the_cluster(case: Case, create: tuple[Action, ...]) -> Iterator[Script]:
    """The API server is upgraded, and is away for a while, if handlers notice it."""
    afters = [
        each.after
        for each in case.program.handlers
        if each.rule.family is Family.CLUSTER
    ]
    if afters:
        away = Outage(max(afters) + AWAY_SECONDS)
        yield Script("the cluster changes", (*create, Upgrade(RELEASE), away))


# -------------------------------------------------------------------------- the ground


class _Served(Struct, frozen=True):
    """The outcome of a script without faults: why a handler has failed, or "".

    `verbs` are the verbs of its writes, and `reads` the kinds that it has read.
    """

    trouble: str
    is_error: bool
    verbs: tuple[str, ...]
    reads: frozenset[str]


def _reasons_of_trouble(journal: Journal) -> Iterator[str]:
    """The refusals of the cluster, the failures of handlers, and endless work."""
    yield from journal.refused
    for _, say in journal.lines:
        end = say.ended
        if end is None or end.retried:
            continue
        if end.result in ("error", "timeout"):
            yield say.error or say.message
    for each in journal.unsettled.values():
        yield each.reason


class _Ground:
    """Finds out what the cluster accepts, and what the operator serves."""

    def __init__(self, case: Case, subjects: Sequence[Subject]) -> None:
        self.scene, self.subjects = prepared(case), subjects
        self.namespace = case.namespace
        self.notes: list[str] = []
        # The first reasons why an object was not created, and a change not made.
        self.denial = self.refusal = self.unserved = ""
        self.mistakes: dict[str, list[Change]] = {}
        self._picked: dict[tuple[str, Sort], list[Change]] = {}
        self._edited: dict[int, _Served] = {}
        self.world = self.scene.base.fork()
        begin_reviewing(self.world)
        for each in self.create:
            self._create_object(each)
        self.usual = self.served(self.create)

    def _create_object(self, action: Action) -> None:
        """Create an object, unless the operator's own admission handlers prevent it.

        Raises `ActionRefused` if the cluster refuses the object without them as well.
        """
        try:
            act(self.world, action, self.namespace)
        except ActionRefused as problem:
            unreviewed = self.world.fork()
            unreviewed.admission.is_registered = False
            act(unreviewed, action, self.namespace)
            self.denial = self.denial or f"the operator itself denies it ({problem})"

    @property
    def create(self) -> tuple[Action, ...]:
        """The user creates the objects."""
        return tuple(Apply(dict(each.manifest)) for each in self.subjects)

    def creating(
        self, subject: Subject, manifest: Mapping[str, Any]
    ) -> tuple[Action, ...]:
        """The user creates the objects, one of them from another manifest."""
        return tuple(
            Apply(dict(manifest if each is subject else each.manifest))
            for each in self.subjects
        )

    def served(self, actions: Sequence[Action]) -> _Served:
        """The outcome of a script, once everything rests."""
        trial = Trial(replace(self.scene, script=tuple(actions)))
        with interruptible():
            while trial.phase is Phase.SCRIPT and not trial.journal.unsettled:
                trial.go_on()
        journal = trial.journal
        ends = [say for _, say in journal.lines if say.ended is not None]
        errors = [e.exception for e in ends if isinstance(e.exception, OWN_ERRORS)]
        reasons = [*_reasons_of_trouble(journal)]
        if reasons:  # the operator's own errors say more
            reasons[:0] = [f"{type(each).__name__}: {each}" for each in errors]
        return _Served(
            reasons[0] if reasons else "",
            bool(errors),
            tuple(each.site.verb for each in journal.writes),
            frozenset(
                each.site.target.partition("/")[0]
                for each in journal.visits
                if each.site.verb in ("get", "list")
            ),
        )

    def taken(
        self, world: SimulatedRun, subject: Subject, change: Change
    ) -> SimulatedRun | None:
        """The world after a change; None if it, or the way back, is refused."""
        after = world.fork()
        try:
            act(after, subject.edit(change.there), self.namespace)
            act(after.fork(), subject.edit(change.back), self.namespace)
        except ActionRefused as problem:
            self.refusal = self.refusal or str(problem)
            return None
        return after

    def edited(self, subject: Subject, change: Change) -> _Served:
        """The outcome of a change to the object, once it has been created."""
        key = id(change)  # the cached object keeps the id valid
        if key not in self._edited:
            script = (*self.create, subject.edit(change.there))
            self._edited[key] = self.served(script)
        return self._edited[key]

    def walk(self, subject: Subject, sort: Sort) -> list[Change]:
        """A change of each field that has one of this sort, one after another."""

        def serves(picked: Sequence[Change], change: Change) -> bool:
            manifest = subject.manifest
            for each in (*picked, change):
                manifest = applied(each.there, manifest)
            is_served = self._serves(subject, manifest, change)
            return is_served and not self._is_required(subject, change)

        key = subject.where, sort
        if key not in self._picked:
            self._picked[key] = self._walk(subject, sort, serves)
        return self._picked[key]

    def walk_beside(self, watched: Subject, sort: Sort) -> list[Change]:
        """A change of each field of a watched object, if objects are served with it."""

        def serves(picked: Sequence[Change], change: Change) -> bool:
            edits = (watched.edit(each.there) for each in (*picked, change))
            return not self.served((*edits, *self.create)).trouble

        return self._walk(watched, sort, serves)

    def _walk(
        self,
        subject: Subject,
        sort: Sort,
        serves: Callable[[Sequence[Change], Change], bool],
    ) -> list[Change]:
        """The first change of each field that is accepted by the cluster and served."""
        world, picked = self.world, list[Change]()
        for values in _changes_by_field(subject.changes, sort):
            for change in values[:VALUES_MAX]:
                after = self.taken(world, subject, change)
                if after is not None and serves(picked, change):
                    world = after
                    picked.append(change)
                    break
        return picked

    def _is_required(self, subject: Subject, change: Change) -> bool:
        """Whether handlers need a field that no schema declares as optional."""
        is_open = change.sort is Sort.UNSET and not change.optional
        return is_open and self.edited(subject, change).is_error

    def _serves(
        self, subject: Subject, changed: Mapping[str, Any], change: Change
    ) -> bool:
        """Whether the operator serves an object that is created with a change at once.

        If it does not even serve the object as it is, nothing is known.
        """
        if self.usual.trouble:
            return True
        found = self.served(self.creating(subject, changed))
        if not found.trouble:
            return True
        self.unserved = self.unserved or found.trouble
        if not found.is_error:
            self.mistakes.setdefault(subject.where, []).append(change)
        elif change.optional:
            self.notes.append(
                f"not tried: {subject.where} without {change.path}, which its "
                f"definition does not require, and of which a handler fails "
                f"({found.trouble}); require it there, or do without it"
            )
        return False

    def resumptions(self, subject: Subject) -> list[Change]:
        """The changes that make a paused operator resume, if the cluster accepts them.

        They have no way back: an operator that pauses leaves everything as it is.
        """
        return [
            each
            for each in subject.changes
            if each.resumes and self.taken(self.world, subject, each) is not None
        ]

    def corrected(self, subject: Subject) -> list[Change]:
        """The mistakes that are corrected: odd values, if too few are known."""
        self._try_odd_values(subject)
        return self.mistakes[subject.where][:MISTAKES_MAX]

    def _try_odd_values(self, subject: Subject) -> None:
        known = self.mistakes.setdefault(subject.where, [])
        tries = 0
        for values in _changes_by_field(subject.changes, Sort.ODD):
            for change in values:
                if len(known) >= MISTAKES_MAX or tries >= ODD_MAX:
                    return
                if self.taken(self.world, subject, change) is None:
                    continue
                tries += 1
                changed = applied(change.there, subject.manifest)
                if not self._serves(subject, changed, change):
                    break


def _changes_by_field(changes: Iterable[Change], sort: Sort) -> list[list[Change]]:
    """The changes of a sort, field by field."""
    found = (each for each in changes if each.sort is sort and not each.is_of_pauses)
    return [[*each] for _, each in groupby(found, key=lambda each: each.path)][
        :FIELDS_MAX
    ]


# ------------------------------------------------------------------------- the scripts


def _scripts_for_faults(ground: _Ground, subject: Subject) -> Iterator[Script]:
    """The edits that all faults strike: first those with an effect."""
    usual = len(ground.usual.verbs)

    def verbs(change: Change) -> tuple[str, ...]:
        return ground.edited(subject, change).verbs[usual:]

    found = [*ground.walk(subject, Sort.CHANGE), *ground.walk(subject, Sort.SWITCH)]
    changes = sorted(found, key=lambda each: not verbs(each))
    for change in changes[:STRUCK_MAX]:
        there, back = subject.edit(change.there), subject.edit(change.back)
        yield Script(f"edit {change.path}", (*ground.create, there))
        yield Script(f"edit and revert {change.path}", (*ground.create, there, back))
    for change in ground.resumptions(subject):
        yield Script(
            f"edit {change.path}", (*ground.create, subject.edit(change.there))
        )
    for change in ground.walk(subject, Sort.UNSET):
        if "delete" in verbs(change):
            there = subject.edit(change.there)
            yield Script(f"unset {change.path}", (*ground.create, there))
            return


def _walk_scripts(ground: _Ground, subject: Subject, of: str) -> Iterator[Script]:
    """The walks over the fields of an object, and the mistakes that are corrected."""
    for sort, there, back in (
        (Sort.CHANGE, "change all fields", "and change them back"),
        (Sort.SWITCH, "switch all that has few values", "and switch it back"),
        (Sort.UNSET, "unset all fields", "and set them again"),
        (Sort.SET, "set all absent fields", "and unset them again"),
    ):
        changes = ground.walk(subject, sort)
        edits = tuple(subject.edit(each.there) for each in changes)
        backs = tuple(subject.edit(each.back) for each in reversed(changes))
        if edits:
            forth = (*ground.create, *edits)
            yield Script(f"{there}{of}", forth, calm=True)
            yield Script(f"{there}{of} {back}", (*forth, *backs), calm=True)
    others = {each.path: each.there for each in ground.walk(subject, Sort.CHANGE)}
    for change in ground.corrected(subject):
        # A value other than before, so that the operator's reaction to it shows.
        right = others.get(change.path, change.back)
        edits = subject.edit(change.there), subject.edit(right)
        name = f"correct a mistake in {change.path}{of}"
        yield Script(name, (*ground.create, *edits), calm=True, mistake=True)


def _scripts_for_watched(ground: _Ground, watched: Subject) -> Iterator[Script]:
    """The scripts that let others change an object that the operator does not serve.

    fnop compares the result with a world in which the object has been like that all the
    time.
    """
    create = ground.create
    for sort, said in _OF_WATCHED.items():
        changes = ground.walk_beside(watched, sort)
        edits = tuple(watched.edit(each.there) for each in changes)
        backs = tuple(watched.edit(each.back) for each in reversed(changes))
        if edits:
            name = f"{watched.where} {said}"
            yield Script(name, (*create, *edits), calm=True)
            yield Script(f"{name}, and back", (*create, *edits, *backs), calm=True)
    if watched.stays:
        return
    away, again = watched.deletion, Apply(dict(watched.manifest))
    name = f"{watched.where} comes later"
    yield Script(name, (away, *create, again), calm=True)
    name = f"{watched.where} goes and comes back"
    yield Script(name, (*create, away, again), calm=True)


_OF_WATCHED = {
    Sort.CHANGE: "changes",
    Sort.SWITCH: "is switched",
    Sort.SET: "gets what it does not have",
    Sort.UNSET: "loses what it has",
}
