"""Properties of lives: objects created once, deleted with their owner, or kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fnop.core.children.marks import KEEP_ANNOTATION
from fnop.effects.structs import replace
from fnop.interpreters.check.properties.ends import same_end
from fnop.interpreters.check.properties.evidence import (
    Benign,
    Judge,
    Property,
    Scope,
    Seen,
    Violation,
    has_struck,
    merges,
    tampers,
    told,
    value_at,
)
from fnop.interpreters.check.properties.leaks import left_partly
from fnop.interpreters.check.properties.orphans import (
    is_shared,
    left_by_fault,
    left_outside,
    uids_in,
)
from fnop.interpreters.check.state.kinds import Trait
from fnop.interpreters.check.state.records import Phase
from fnop.interpreters.check.state.worlds import UID, objects_in
from fnop.interpreters.check.trials.trial import Trial
from fnop.interpreters.simulation.externals import externals_of

__all__ = ["PROPERTIES", "creates_once", "deletes", "keeps_data", "no_orphans"]

# Kinds whose loss means a loss of data.
_DATA = frozenset((("", "persistentvolumeclaims"), ("", "secrets")))


def no_orphans(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """An object that was created for a deleted one is deleted as well."""
    if tampers(seen.trial):
        return  # the client that removes an owner answers for what is left
    yield from _follow_up_violation(no_orphans, benign, seen)
    if seen is benign.seen:
        yield from _violations_outside(seen.trial)
    else:
        yield from _violations_by_fault(benign, seen)
    end = seen.trial.journal.ends[Phase.RESTARTED].cluster
    base = seen.trial.scene.base.cluster
    living = uids_in(end)
    made = {
        each["metadata"]["uid"]: seen.alias_of(resource, each)
        for resource, each in objects_in(end, base)
        if KEEP_ANNOTATION not in (each["metadata"].get("annotations") or {})
    }
    left = set(seen.world) if seen is not benign.seen else set[str]()
    for write in seen.trial.journal.writes:
        body, subject = write.body, write.subject
        if write.site.verb not in ("create", "adopt", "apply") or not body:
            continue
        uid = body["metadata"].get("uid")
        is_new = body["metadata"].get("resourceVersion") is not None
        if not subject or subject in living or not is_new or uid not in made:
            continue
        if not is_shared(seen.trial, seen.events, subject, uid, living):
            alias = made[uid]
            if alias in benign.seen.world and left:
                continue  # the benign run leaves it, too, and that was reported
            yield Violation("no_orphans", f"{alias} is left, its object is gone")
            return


_LEFT_OUTSIDE = (
    "what was made outside is as it was before the deletion, in {}: let a deletion "
    "handler take it away, before a patch of it lets the object go; a model of which "
    "nothing is to be taken away says so by `keeps_records = True` in its class"
)


_LEFT_PARTLY = (
    "which was made before the deletion, and is left by a deletion that takes others "
    "away: let the deletion handler take away all that was made for the object, also "
    "under its former names; a model of which nothing is to be taken away says so by "
    "`keeps_records = True` in its class"
)


def _violations_outside(trial: Trial) -> Iterator[Violation]:
    """The things outside that deletions do not remove: all of them, or some."""
    systems = left_outside(trial)
    if systems:
        yield Violation("no_orphans", _LEFT_OUTSIDE.format(", ".join(systems)))
        return
    parts = left_partly(trial)
    yield from told("no_orphans", [f"{each}, {_LEFT_PARTLY}" for each in parts])


def _violations_by_fault(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """The things outside that a deletion handler leaves only because of a fault.

    They are a part of the faults' effect on the end (`same_end`), and nothing else is
    reported.
    """
    systems = left_by_fault(benign.seen.trial, seen.trial)
    for violation in same_end(benign, seen) if systems else ():
        found = [each for each in violation.details if each.startswith(tuple(systems))]
        yield from told("no_orphans", [f"its object is gone: {each}" for each in found])


def _follow_up_violation(
    judge: Judge, benign: Benign, seen: Seen
) -> Iterator[Violation]:
    """The first violation in the follow-ups of a benign run, which delete objects."""
    for followed in benign.followed if seen is benign.seen else ():
        own = replace(benign, seen=followed.seen, followed=())
        for each in judge(own, followed.seen):
            message = f"{each.message} after `{followed.follow_up.actions[-1]}`"
            details = message, *each.details[1:], str(followed.follow_up)
            yield each._replace(message=message, details=details)
            return


def deletes(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """A deleted object disappears."""
    yield from _follow_up_violation(deletes, benign, seen)
    end = seen.trial.journal.ends[Phase.RESTARTED].cluster
    for resource, found in objects_in(end, seen.trial.scene.base.cluster):
        meta = found["metadata"]
        if "deletionTimestamp" not in meta:
            continue
        held = ", ".join(meta.get("finalizers") or ()) or "nothing"
        alias = seen.alias_of(resource, found)
        yield Violation("deletes", f"{alias} does not go; it is held by {held}")
        return


def keeps_data(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """Claims, Secrets and replicas are lost only if the benign run loses them."""
    if tampers(seen.trial) or seen is benign.seen:
        return
    usual, found = _losses(benign.seen), _losses(seen)
    more = found - usual
    for alias, number in (usual - found).items():
        # A value is lost instead of the whole, which is less.
        more -= Counter({f"a value of {alias}": number})
    for alias, number in more.items():
        yield Violation(
            "keeps_data", f"{alias} is lost {_times_in_words(number)} more often"
        )
        return
    lowest, least = _lowest_replicas(benign.seen), _lowest_replicas(seen)
    for alias, replicas in least.items():
        if alias in lowest and replicas < lowest[alias]:
            message = f"{alias} is scaled to {replicas}, never below {lowest[alias]}"
            yield Violation("keeps_data", f"{message} in the benign run")
            return


def _times_in_words(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _losses(seen: Seen) -> Counter[str]:
    """The number of times that each Secret or claim was deleted, or lost a value."""
    lost: Counter[str] = Counter()
    late = _born_orphans(seen)
    for event in seen.events:
        if event.resource not in _DATA:
            continue
        if event.object["metadata"]["uid"] in seen.trial.journal.stray | late:
            continue  # it was never part of what the operator knew, or never in use
        if event.type == "DELETED":
            lost[seen.alias_of(event.resource, event.object)] += 1
        elif event.previous is not None and event.version in seen.writes:
            was, now = event.previous.get("data") or {}, event.object.get("data") or {}
            if any(now.get(key) != value for key, value in was.items()):
                lost[f"a value of {seen.alias_of(event.resource, event.object)}"] += 1
    return lost


def _born_orphans(seen: Seen) -> set[str]:
    """The uids of objects that were created for an owner that was already gone.

    The operator had not seen that yet, and the garbage collector deletes them at once.
    """
    gone: set[str] = set()
    found: set[str] = set()
    for event in seen.events:
        meta = event.object["metadata"]
        if event.type == "DELETED":
            gone.add(meta["uid"])
        elif event.type == "ADDED":
            owners = {each["uid"] for each in meta.get("ownerReferences") or ()}
            if owners & gone:
                found.add(meta["uid"])
    return found


def _lowest_replicas(seen: Seen) -> dict[str, int]:
    """The lowest number of replicas that the operator has set, by object."""
    least: dict[str, int] = {}
    for event in seen.events:
        if event.version not in seen.writes:
            continue
        replicas = (event.object.get("spec") or {}).get("replicas")
        if not isinstance(replicas, int):
            continue
        was = value_at(event.previous, ("spec", "replicas"))
        if event.type == "MODIFIED" and was != replicas:
            alias = seen.alias_of(event.resource, event.object)
            least[alias] = min(replicas, least.get(alias, replicas))
    return least


def creates_once(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """Nothing exists twice, or is made outside more often than in the benign run."""
    if seen is benign.seen:
        return
    usual, most = _most_alive(benign.seen), _most_alive(seen)
    for alias, number in most.items():
        is_disowned = has_struck(seen.trial, Trait.DISOWNS)
        if number > max(1, usual.get(alias, 0)) and not is_disowned:
            message = f"{number} of {alias} live at once, {usual.get(alias, 0)}"
            yield Violation("creates_once", f"{message} in the benign run")
            return
    expected = _creations_outside(benign.seen.trial)
    total, usually = _creations_outside(seen.trial).total(), expected.total()
    if total > usually and not benign.aftermath.systems and not merges(seen.trial):
        message = f"{total} things are made outside, {usually} in the benign run"
        yield Violation("creates_once", message)
        return
    for name, number in _creations_outside(seen.trial).items():
        if number > max(expected.get(name, 0), 1):
            was = expected.get(name, 0)
            message = f"{name} is made {number} times outside, {was} in the benign run"
            yield Violation("creates_once", message)
            return


def _most_alive(seen: Seen) -> dict[str, int]:
    """The largest number of objects under one generated name that live at once.

    Objects under deletion do not count, nor do objects of another owner. Objects that
    the cluster's own controllers create do not count either: a set has as many pods as
    it says.
    """
    theirs = _made_by_the_cluster(seen)
    alive: dict[tuple[str, str], set[str]] = {}
    most: dict[str, int] = {}
    for event in seen.events:
        meta = event.object["metadata"]
        if event.resource[1] == "events" or meta["uid"] in theirs:
            continue
        alias = seen.alias_of(event.resource, event.object)
        if "*" not in alias:
            continue
        owners = sorted(each["uid"] for each in meta.get("ownerReferences") or ())
        found = alive.setdefault((alias, ",".join(owners)), set())
        if event.type == "DELETED" or "deletionTimestamp" in meta:
            found.discard(meta["uid"])
        else:
            found.add(meta["uid"])
        most[alias] = max(most.get(alias, 0), len(found))
    return most


def _made_by_the_cluster(seen: Seen) -> set[str]:
    """The uids of the objects that the cluster's own controllers have created."""
    return {
        event.object["metadata"]["uid"]
        for event in seen.events
        if event.type == "ADDED"
        and seen.trial.journal.maker_of(event.version) == "cluster"
    }


def _creations_outside(trial: Trial) -> Counter[str]:
    made: Counter[str] = Counter()
    for system in externals_of(trial.run.calls.models):
        for key, number in system.creations().items():
            made[UID.sub("<uid>", key)] += number
    return made


PROPERTIES = (
    Property(
        keeps_data,
        "claims, Secrets and replicas go only where the benign run lets them",
        40,
    ),
    Property(
        creates_once,
        "nothing is there twice, or is made outside more often",
        50,
    ),
    Property(
        deletes,
        "a deleted object disappears",
        80,
        Scope.END,
    ),
    Property(
        no_orphans,
        "what was created for an object goes with it",
        90,
    ),
)
