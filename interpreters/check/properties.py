"""The properties that each trial is judged by.

Each is a function of the benign run and of a trial, and answers the violations that it
finds; the benign run is judged as well. None looks at the operator's code, and those
that need no input from an author are always on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from fnop.core.children.applying import is_immutable
from fnop.core.children.marks import KEEP_ANNOTATION
from fnop.core.handlers.handler import Handler
from fnop.core.values.diff import diff
from fnop.interpreters.check.expectations import Picture
from fnop.interpreters.check.heeding import Heeding
from fnop.interpreters.check.orphans import (
    is_shared,
    left_by_fault,
    left_outside,
    uids_in,
)
from fnop.interpreters.check.records import Phase, Write
from fnop.interpreters.check.redeciding import OWN_ERRORS
from fnop.interpreters.check.references import missing_in
from fnop.interpreters.check.sequels import Sequel, owned_in, trespasses
from fnop.interpreters.check.strikes import RIVAL
from fnop.interpreters.check.trial import Trial
from fnop.interpreters.check.worlds import (
    UID,
    Difference,
    Volatile,
    World,
    alias_of,
    differences,
    objects_in,
    records_in,
    rolling_in,
    world_of,
)
from fnop.interpreters.cluster import Cluster, StoredEvent
from fnop.interpreters.cluster.storage.store import events_after
from fnop.interpreters.externals import externals_of
from fnop.interpreters.scenario import catalogue_of

__all__ = ["PROPERTIES", "Benign", "Violation", "judged", "seen_by"]

# Kinds whose loss is a loss of data.
_DATA = frozenset((("", "persistentvolumeclaims"), ("", "secrets")))
# The trial may take so many times the benign run's writes, and some more.
WORK_FACTOR, WORK_MORE = 3, 12


class Violation(NamedTuple):
    """A property that does not hold, and how that shows.

    `details` are lines such as the differences of two worlds.
    """

    property: str
    message: str
    details: tuple[str, ...] = ()


class Seen(NamedTuple):
    """A finished trial, prepared for the judges.

    `events` are all changes since its beginning; `writes` its operator's writes by the
    versions that they made; `world` is that after the first restart, `healed` the one
    before it.
    """

    trial: Trial
    events: tuple[StoredEvent, ...]
    writes: Mapping[int, Write]
    world: World
    healed: World


class Followed(NamedTuple):
    """A sequel of the script, and the trial in which it has followed.

    `waited` are the clusters of `rests` if the user had done nothing instead, where the
    operator has timers or daemons.
    """

    sequel: Sequel
    seen: Seen
    waited: tuple[Cluster, ...] = ()

    @property
    def times(self) -> list[float]:
        """The times of `rests`, without that of the end."""
        return [self.seen.trial.rest_times[each] for each in self._numbers]

    @property
    def rests(self) -> list[Cluster]:
        """The cluster before the sequel, after each action of it, and at the end."""
        trial = self.seen.trial
        found = [trial.rests[each] for each in self._numbers]
        return [*found, trial.ends[Phase.RESTARTED]]

    @property
    def _numbers(self) -> list[int]:
        """The numbers of actions after which all has come to rest."""
        trial, length = self.seen.trial, len(self.sequel.actions)
        since = len(trial.scene.script) - length
        numbers = range(since, since + length + 1)
        return [each for each in numbers if each in trial.rests]


class Benign(NamedTuple):
    """The run without faults, which the others are compared with.

    `handled` are the kinds that the operator has handlers for (`claims.example.com`);
    `fresh` is the world of a user who creates at once what the script ends with; where
    the script is `straight`, and deletes nothing, it is that of the script as well,
    except for what begins like one of `history`. `impure` says which pure
    handlers have asked the world, `unsteady` which numbers in status two benign runs
    have written otherwise.
    """

    seen: Seen
    volatile: Volatile
    handled: frozenset[str]
    background: bool
    fresh: World | None = None
    history: tuple[str, ...] = ()
    impure: tuple[str, ...] = ()
    unsteady: frozenset[tuple[str, str]] = frozenset()
    straight: bool = True
    idle: tuple[str, ...] = ()
    heeding: Heeding = Heeding()
    followed: tuple[Followed, ...] = ()


def seen_by(trial: Trial) -> Seen:
    """Prepare a finished trial for the judges."""
    end = trial.run.cluster
    events = tuple(events_after(end, trial.first_version) or ())
    writes = {
        version: each
        for each in trial.writes
        for version in range(each.before + 1, each.after + 1)
    }
    base, calls = trial.scene.bare, trial.run.calls
    before, after = trial.ends[Phase.HEALED], trial.ends[Phase.RESTARTED]
    world = world_of(after, base, calls)
    healed = world if before is after else world_of(before, base, trial.healed_calls)
    return Seen(trial, events, writes, world, healed)


def handled_kinds(trial: Trial) -> frozenset[str]:
    """The kinds that handlers are called for, as aliases name them."""
    kinds = trial.run.machine.state.survey.kinds
    return frozenset(
        f"{each.resource.plural}.{each.resource.group}".rstrip(".")
        for each in kinds.values()
    )


Judge = Callable[[Benign, Seen], Iterator[Violation]]


def judged(
    benign: Benign, seen: Seen, only: Collection[str] | None = None
) -> list[Violation]:
    """The violations of all properties, or of some."""
    names = set(PROPERTIES if only is None else only)
    if any(each.kind.code == "F21" for each in seen.trial.struck):
        names &= _OF_THE_END  # versions count again from the backup on
    return [
        found
        for name, judge in PROPERTIES.items()
        if name in names
        for found in judge(benign, seen)
    ]


# The properties that look at the end alone, and not at what was before.
_OF_THE_END = frozenset(
    ("matches", "settles", "total", "deletes", "same_end", "no_more_writes")
)


def _merges(trial: Trial) -> bool:
    return any(each.kind.merges for each in trial.struck)


def _skips(trial: Trial) -> bool:
    """Whether a state in between may not have come about, or not been seen.

    A controller that is stuck makes nothing of what the operator asks for meanwhile.
    """
    return _merges(trial) or any(e.kind.name == "F14:stuck" for e in trial.struck)


def _tampers(trial: Trial) -> bool:
    return any(each.kind.tampers for each in trial.struck)


# ----------------------------------------------------------------- the end (P1, P10)


def same_end(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """After the faults the world becomes that of the benign run."""
    if _tampers(seen.trial) or seen is benign.seen or _gave_up(benign, seen):
        return
    merges = _merges(seen.trial)
    bare = benign.handled if merges else frozenset[str]()
    found = differences(
        benign.seen.world, seen.world, benign.volatile, without_status=bare
    )
    if not found and not seen.trial.crashes:
        # A restart may repair what nobody would have repaired without one.
        found = differences(
            benign.seen.healed, seen.healed, benign.volatile, without_status=bare
        )
    if benign.background:  # what timers do outside depends on when they do it
        found = [each for each in found if "/" in each.alias]
    if found and _skips(seen.trial):  # it has another history
        depends = benign.history or ("\0",)
        rolling = _rolling(benign.seen) | _rolling(seen)
        found = [
            each
            for each in found
            if not f"{each.alias} {each.path}".startswith(depends)
            and each.alias.partition(" (")[0] not in rolling
        ]
    fresh = None if benign.straight else benign.fresh
    if found and fresh is not None and _skips(seen.trial):
        # It may not have seen what was there for a while, or not come to it.
        other = differences(fresh, seen.world, benign.volatile, without_status=bare)
        wrong = {each.alias for each in other}
        wrong -= _partial_records(benign.seen, fresh, seen)
        found = [each for each in found if each.alias in wrong]
    usual = {each.partition(": ")[0] for each in benign.seen.trial.refused}
    refused = [
        f"the user's action is refused: {each}"
        for each in seen.trial.refused
        if each.partition(": ")[0] not in usual
    ]
    if found or refused:
        details = tuple([*map(str, found), *refused])
        yield Violation("same_end", details[0], details)


def _partial_records(benign: Seen, fresh: World, seen: Seen) -> set[str]:
    """The records outside of some of the lives of the benign run, and of no other.

    Those of what is there at last are among them.
    """
    worlds = fresh, seen.world, benign.world
    found = set()
    for alias in records_in(seen.trial.run.calls):
        kept = [orjson.loads(each[alias])[""] for each in worlds]
        if all(isinstance(each, list) for each in kept):
            least, now, most = (Counter(map(orjson.dumps, each)) for each in kept)
            if least <= now <= most:
                found.add(alias)
    return found


def _rolling(seen: Seen) -> frozenset[str]:
    """The aliases of what a rollout that waits has kept."""
    return rolling_in(seen.trial.ends[Phase.RESTARTED])


def _gave_up(benign: Benign, seen: Seen) -> bool:
    """Whether a handler has had as many attempts, or as much time, as it is given.

    Its author wants it to end so, and it is not called again.
    """
    handlers = seen.trial.scene.program.handlers
    return any(
        _is_spent(each, seen.trial) and not _is_spent(each, benign.seen.trial)
        for each in handlers
        if each.retries is not None or each.timeout is not None
    )


def _is_spent(handler: Handler, trial: Trial) -> bool:
    failed = [
        say.ended
        for _, say in trial.lines
        if say.handler == handler.id
        and say.ended is not None
        and say.ended.result in ("error", "timeout")
    ]
    if all(each.retried for each in failed):
        return False
    return handler.timeout is not None or len(failed) >= (handler.retries or 0)


def history(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """The end does not depend on how the object became what it is."""
    if seen is not benign.seen or benign.fresh is None or seen.trial.unsettled:
        return  # one that waits for somebody is not at its end
    if not benign.straight:
        return
    rolling = _rolling(seen)
    found = [
        f"after the edits {each}, as after one creation"
        for each in differences(
            benign.fresh, seen.world, benign.volatile, without_status=benign.handled
        )
        if not (benign.background and "/" not in each.alias)
        and each.alias.partition(" (")[0] not in rolling
        and not f"{each.alias} {each.path}".startswith(benign.history or ("\0",))
    ]
    found += _conditions_of_the_past(benign, seen)
    yield from _told("history", found)


def _conditions_of_the_past(benign: Benign, seen: Seen) -> Iterator[str]:
    """The conditions that are otherwise after one creation.

    A status may tell what has happened; a condition tells what is (API conventions).
    """
    now = _conditions(seen.world, benign.handled)
    for place, fresh in _conditions(benign.fresh or {}, benign.handled).items():
        alias, name = place
        depends = f"{alias} status.conditions".startswith(benign.history or ("\0",))
        is_volatile = any(
            each == alias and path.startswith("status.conditions")
            for each, path in benign.volatile.paths
        )
        if now.get(place, fresh) != fresh and not depends and not is_volatile:
            yield (
                f"after the edits {alias} says {name}={now[place]}, and {name}={fresh} "
                "as after one creation"
            )


def _conditions(world: World, kinds: Collection[str]) -> dict[tuple[str, str], str]:
    """The status of each condition of objects of these kinds, by alias and type."""
    return {
        (alias, str(each["type"])): str(each["status"])
        for alias, text in world.items()
        if alias.partition("/")[0] in kinds
        for each in (orjson.loads(text).get("status") or {}).get("conditions") or ()
        if isinstance(each, dict) and {"type", "status"} <= each.keys()
    }


# ------------------------------------------------------------------- rest (P2, P3)


def settles(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """After the faults all comes to rest."""
    known = benign.seen.trial.unsettled
    for phase, found in seen.trial.unsettled.items():
        if seen is not benign.seen and (phase is Phase.SCRIPT or phase in known):
            continue
        if seen is benign.seen and found.waits:
            continue  # for what nobody does in the script
        if found.endless or not _tampers(seen.trial):
            yield Violation("settles", found.reason)
            return


def no_more_writes(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """The last restart at the end changes nothing: the second one, or the third.

    Timers and daemons may tell in their own object, again and again, that they are
    alive, and make what has the time in its name, as they would have done without the
    restart; what else they have made stays as it is.
    """
    last = max(seen.trial.ends)
    if last in seen.trial.unsettled:
        return
    again = [
        each
        for each in seen.trial.writes
        if each.phase is last
        and not (benign.background and _kind_of(each) in benign.handled)
    ]
    if again and any(_moment_of(benign, each) for each in again):
        due = {
            _due(benign, each)
            for each in seen.trial.written_by_time()
            if _moment_of(benign, each) is not None
        }
        again = [each for each in again if _due(benign, each) not in due]
    if again:
        what = ", ".join(str(each.site) for each in again[:3])
        yield Violation(
            "no_more_writes", f"a restart at the end changes something again: {what}"
        )


def _due(benign: Benign, write: Write) -> tuple[str, str, str | None]:
    """The sort of a write, which a timer makes whenever it is called."""
    return write.site.handler, write.site.verb, _moment_of(benign, write)


def _moment_of(benign: Benign, write: Write) -> str | None:
    """The alias of what is written without the moment in it, if one is in it."""
    *_, namespace, name = ("", "", *write.path.split("/"))
    if not name and isinstance(write.body, Mapping):
        name = (write.body.get("metadata") or {}).get("name") or ""
    where = f" in {namespace}" if namespace not in ("", "default") else ""
    return benign.volatile.moment_in(f"{_kind_of(write)}/{name}{where}")


def _kind_of(write: Write) -> str:
    """The kind of what is written, as aliases name it."""
    group, _, rest = write.path.partition("/")
    return f"{rest.partition('/')[0]}.{group}".rstrip(".")


def bounded_work(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """The operator writes at most three times as often as in the benign run."""
    usual, now = len(benign.seen.trial.writes), len(seen.trial.writes)
    # An operator that waits may look again every second.
    waited = max(0.0, seen.trial.waited - benign.seen.trial.waited)
    most = WORK_FACTOR * usual + WORK_MORE + 2 * waited
    if now > most and not benign.background:
        yield Violation(
            "bounded_work", f"{now} writes, where the benign run has {usual}"
        )


# -------------------------------------------------------- children and data (P5-P8)


def no_orphans(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """An object that was created for one that is gone is gone as well."""
    if _tampers(seen.trial):
        return  # whoever takes an owner away answers for what is left
    yield from _of_sequels(no_orphans, benign, seen)
    if seen is benign.seen and left_outside(seen.trial):
        yield Violation("no_orphans", _LEFT_OUTSIDE)
    if seen is not benign.seen:
        yield from _left_by_fault(benign, seen)
    end = seen.trial.ends[Phase.RESTARTED]
    base = seen.trial.scene.base.cluster
    living = uids_in(end)
    made = {
        each["metadata"]["uid"]: alias_of(resource, each)
        for resource, each in objects_in(end, base)
        if KEEP_ANNOTATION not in (each["metadata"].get("annotations") or {})
    }
    left = set(seen.world) if seen is not benign.seen else set[str]()
    for write in seen.trial.writes:
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
                continue  # the benign run leaves it, too, and has been told so
            yield Violation("no_orphans", f"{alias} is left, its object is gone")
            return


_LEFT_OUTSIDE = (
    "what was made outside is as it was before the deletion: let the deletion handler "
    "take it away, or say `keeps_records = True` in the class of a model of which "
    "nothing is to be taken away"
)


def _left_by_fault(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """The things outside that a deletion handler takes away, but for a fault.

    It is part of what the faults change of the end (`same_end`), and no more is told.
    """
    systems = left_by_fault(benign.seen.trial, seen.trial)
    for violation in same_end(benign, seen) if systems else ():
        found = [each for each in violation.details if each.startswith(tuple(systems))]
        yield from _told(
            "no_orphans", [f"its object is gone: {each}" for each in found]
        )


def _of_sequels(judge: Judge, benign: Benign, seen: Seen) -> Iterator[Violation]:
    """The first violation in the sequels of a benign run, which delete objects."""
    for followed in benign.followed if seen is benign.seen else ():
        own = benign._replace(seen=followed.seen, followed=())
        for each in judge(own, followed.seen):
            when = f"after `{followed.sequel.actions[-1]}`"
            yield each._replace(message=f"{each.message} {when}")
            return


def deletes(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """A deleted object disappears."""
    yield from _of_sequels(deletes, benign, seen)
    end = seen.trial.ends[Phase.RESTARTED]
    for resource, found in objects_in(end, seen.trial.scene.base.cluster):
        meta = found["metadata"]
        if "deletionTimestamp" not in meta:
            continue
        held = ", ".join(meta.get("finalizers") or ()) or "nothing"
        alias = alias_of(resource, found)
        yield Violation("deletes", f"{alias} does not go; it is held by {held}")
        return


def keeps_data(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """Claims, Secrets and replicas go only where the benign run lets them go."""
    if _tampers(seen.trial) or seen is benign.seen:
        return
    usual, found = _losses(benign.seen), _losses(seen)
    more = found - usual
    for alias, number in (usual - found).items():
        # A value is lost instead of the whole: that is less.
        more -= Counter({f"a value of {alias}": number})
    for alias, number in more.items():
        yield Violation("keeps_data", f"{alias} is lost {_times(number)} more often")
        return
    lowest, least = _replicas(benign.seen), _replicas(seen)
    for alias, replicas in least.items():
        if alias in lowest and replicas < lowest[alias]:
            message = f"{alias} is scaled to {replicas}, never below {lowest[alias]}"
            yield Violation("keeps_data", f"{message} in the benign run")
            return


def _loses_owner(trial: Trial) -> bool:
    """Whether somebody has taken a child away from its owner."""
    return any(each.kind.name == "F19:owner" for each in trial.struck)


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _losses(seen: Seen) -> Counter[str]:
    """The number of times that each Secret or claim was deleted, or lost a value."""
    lost: Counter[str] = Counter()
    late = _born_orphans(seen)
    for event in seen.events:
        if event.resource not in _DATA:
            continue
        if event.object["metadata"]["uid"] in seen.trial.stray | late:
            continue  # it was never part of what the operator knew, or never in use
        if event.type == "DELETED":
            lost[alias_of(event.resource, event.object)] += 1
        elif event.previous is not None and event.version in seen.writes:
            was, now = event.previous.get("data") or {}, event.object.get("data") or {}
            if any(now.get(key) != value for key, value in was.items()):
                lost[f"a value of {alias_of(event.resource, event.object)}"] += 1
    return lost


def _born_orphans(seen: Seen) -> set[str]:
    """The uids of objects that were made for an owner that was gone by then.

    The operator had yet to see that, and the garbage collector deletes them at once.
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


def _replicas(seen: Seen) -> dict[str, int]:
    """The lowest number of replicas that the operator has set, by object."""
    least: dict[str, int] = {}
    for event in seen.events:
        replicas = (event.object.get("spec") or {}).get("replicas")
        if event.version not in seen.writes or not isinstance(replicas, int):
            continue
        was = _at(event.previous, ("spec", "replicas"))
        if event.type == "MODIFIED" and was != replicas:
            alias = alias_of(event.resource, event.object)
            least[alias] = min(replicas, least.get(alias, replicas))
    return least


def creates_once(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """Nothing is there twice, or is made outside more often than in the benign run."""
    if seen is benign.seen:
        return
    usual, most = _most_alive(benign.seen), _most_alive(seen)
    for alias, number in most.items():
        if number > max(1, usual.get(alias, 0)) and not _loses_owner(seen.trial):
            message = f"{number} of {alias} live at once, {usual.get(alias, 0)}"
            yield Violation("creates_once", f"{message} in the benign run")
            return
    expected = _made_outside(benign.seen.trial)
    total, usually = _made_outside(seen.trial).total(), expected.total()
    if total > usually and not benign.background and not _merges(seen.trial):
        message = f"{total} things are made outside, {usually} in the benign run"
        yield Violation("creates_once", message)
        return
    for name, number in _made_outside(seen.trial).items():
        if number > max(expected.get(name, 0), 1):
            was = expected.get(name, 0)
            message = f"{name} is made {number} times outside, {was} in the benign run"
            yield Violation("creates_once", message)
            return


def _most_alive(seen: Seen) -> dict[str, int]:
    """The largest number of objects under one generated name that live at once.

    Those that are being deleted do not count, nor do those of another owner, nor what
    the cluster's own controllers make: a set has as many pods as it says.
    """
    theirs = _made_by_the_cluster(seen)
    alive: dict[tuple[str, str], set[str]] = {}
    most: dict[str, int] = {}
    for event in seen.events:
        meta = event.object["metadata"]
        if event.resource[1] == "events" or meta["uid"] in theirs:
            continue
        alias = alias_of(event.resource, event.object)
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
    """The uids of what the cluster's own controllers have created."""
    return {
        event.object["metadata"]["uid"]
        for event in seen.events
        if event.type == "ADDED" and seen.trial.maker_of(event.version) == "cluster"
    }


def _made_outside(trial: Trial) -> Counter[str]:
    made: Counter[str] = Counter()
    for system in externals_of(trial.run.calls):
        for key, number in system.creations().items():
            made[UID.sub("<uid>", key)] += number
    return made


# ------------------------------------------------------------- others' work (P7, P11)


def no_clobber(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """No write takes back what others have changed since the handler looked."""
    if _tampers(seen.trial):
        return  # to repair its own objects is its task
    for event in seen.events:
        write = seen.writes.get(event.version)
        if write is None or write.view is None or event.previous is None:
            continue
        if not write.path.endswith(f"/{event.object['metadata']['name']}"):
            continue
        for field in _foreign(seen, event, write.view):
            was, now = _at(event.previous, field), _at(event.object, field)
            if was != now and _takes_back(field, was, now):
                where = alias_of(event.resource, event.object)
                message = f"{write.site} takes back {'.'.join(field)} of {where}"
                yield Violation(
                    "no_clobber", f"{message}, which was changed after it had looked"
                )
                return


def right_object(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """Nothing is deleted or changed that only has the name of what was looked at.

    A handler that never looked is not judged: it means whatever has the name.
    """
    for event in seen.events:
        write = seen.writes.get(event.version)
        if write is None or write.uid is None or event.previous is None:
            continue
        meta = event.object["metadata"]
        where = f"{'/'.join(event.resource)}/{meta.get('namespace') or ''}"
        if write.path != f"{where}/{meta['name']}" or write.uid == meta["uid"]:
            continue
        if write.site.verb in ("patch", "delete"):
            alias = alias_of(event.resource, event.object)
            message = f"{write.site} strikes another {alias} than the one it had seen"
            yield Violation("right_object", message)
            return


_NOT_THEIRS = frozenset(("resourceVersion", "managedFields", "generation"))


def _foreign(seen: Seen, event: StoredEvent, view: int) -> set[tuple[str, ...]]:
    """The fields that others have changed between the view and the write."""
    uid = event.object["metadata"]["uid"]
    return {
        field
        for each in seen.events
        if view < each.version < event.version
        and each.version not in seen.writes
        and each.previous is not None
        and each.object["metadata"]["uid"] == uid
        for item in diff(each.previous, each.object)
        for field in _leaves(item.field, item.old, item.new)
        if not (field[0] == "metadata" and field[1] in _NOT_THEIRS)
        and not (seen.trial.hooked and field[-1] == RIVAL)
        and field[0] != "status"
    }


def _leaves(field: tuple[str, ...], old: Any, new: Any) -> Iterator[tuple[str, ...]]:
    """The fields within a change of a mapping as a whole."""
    whole = new if isinstance(new, Mapping) else old
    if isinstance(whole, Mapping) and whole:
        for key in whole:
            yield from _leaves((*field, key), None, whole[key])
    else:
        yield field


def _at(found: Any, field: tuple[str, ...]) -> Any:
    for key in field:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _takes_back(field: tuple[str, ...], was: Any, now: Any) -> bool:
    """Whether it is lost: of a list of finalizers, an element; else the value."""
    if field == ("metadata", "finalizers"):
        return RIVAL in (was or ()) and RIVAL not in (now or ())
    return True


# -------------------------------------------------------------------- status (P9)


def honest_status(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """A status tells what was observed: no generation, no number is made up."""
    yield from _invented(benign, seen)
    for event in seen.events:
        write = seen.writes.get(event.version)
        if write is None or event.previous is None:
            continue
        now = _observed(event.object)
        was = _observed(event.previous)
        if now is None or now == was:
            continue
        where = alias_of(event.resource, event.object)
        generation = event.object["metadata"].get("generation")
        seen_up_to = write.generation if write.generation is not None else generation
        if seen_up_to is not None and now > seen_up_to:
            message = f"{where} says observedGeneration {now}; the handler saw"
            yield Violation("honest_status", f"{message} {seen_up_to}")
            return
        if was is not None and now < was:
            message = f"observedGeneration of {where} goes back from {was} to {now}"
            yield Violation("honest_status", message)
            return


def _invented(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """A number in a status that no benign run shows was not observed, but made up."""
    if seen is benign.seen or _merges(seen.trial) or _tampers(seen.trial):
        return
    usual = _numbers(benign.seen)
    for (alias, path), values in _numbers(seen).items():
        if (alias, path) not in usual or (alias, path) in benign.unsteady:
            continue
        if min(values) < min(usual[alias, path]):
            message = f"{alias} says {path} {min(values):g}, which no benign run shows"
            yield Violation("honest_status", message)
            return


def _numbers(seen: Seen) -> dict[tuple[str, str], set[float]]:
    """The numbers that the operator has written to each field of a status."""
    found: dict[tuple[str, str], set[float]] = {}
    for event in seen.events:
        status = event.object.get("status")
        if event.version not in seen.writes or not isinstance(status, dict):
            continue
        alias = alias_of(event.resource, event.object)
        for key, value in status.items():
            if value == _at(event.previous, ("status", key)):
                continue
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                found.setdefault((alias, f"status.{key}"), set()).add(value)
    return found


def unsteady(one: Seen, other: Seen) -> frozenset[tuple[str, str]]:
    """The numbers in status that two runs have written otherwise."""
    mine, yours = _numbers(one), _numbers(other)
    return frozenset(
        each for each in {*mine, *yours} if mine.get(each) != yours.get(each)
    )


def _observed(found: Mapping[str, Any]) -> int | None:
    value = (found.get("status") or {}).get("observedGeneration")
    return value if isinstance(value, int) else None


# ------------------------------------------------------------ totality (P14, P19)


def total(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """No handler fails of an error of its own, in Python's sense."""
    known = _own_errors(benign.seen.trial) if seen is not benign.seen else {}
    for (who, name), message in _own_errors(seen.trial).items():
        if (who, name) not in known:
            yield Violation("total", f"{who} raises {name}: {message}")
            return
    if seen is benign.seen:
        yield from _told("total", benign.heeding.unforeseen)


def _own_errors(trial: Trial) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for _, say in trial.lines:
        if isinstance(say.exception, OWN_ERRORS):
            name = type(say.exception).__name__
            found[say.handler or "the operator", name] = str(say.exception)
    return found


def no_refused_writes(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """No write is refused as invalid, unless a fault says so.

    That a field cannot be changed is how a handler learns to replace the object
    (`on_immutable=`): then it deletes it. What fnop itself has asked otherwise then, as
    lists of a child, is not refused (`Trial.rejections`).
    """
    if seen is not benign.seen:
        return
    deleted = {
        (each.site.handler, each.site.target)
        for each in seen.trial.writes
        if each.site.verb == "delete"
    }
    for site, outcome, _ in seen.trial.rejections:
        if outcome.status == 422:
            is_replaced = (site.handler, site.target) in deleted
            if is_replaced and is_immutable(outcome.message):
                continue
            yield Violation(
                "no_refused_writes", f"{site} is refused: {outcome.message}"
            )
            return


# ------------------------------------------------------------------- the author's


def matches(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """The expectations of the author hold after the faults, and stay true."""
    trial = seen.trial
    if _tampers(trial):
        return
    catalogue = catalogue_of(trial.run)
    wall = trial.run.clock.now().wall
    for phase in (Phase.HEALED, Phase.RESTARTED, Phase.AGAIN):
        picture = Picture(trial.ends[phase], catalogue, wall, trial.scene.namespace)
        for kind, holds in trial.scene.expectations:
            for each in picture.objects(kind):
                if each.metadata.deletion_timestamp is None and not holds(
                    each, picture
                ):
                    name = getattr(holds, "__name__", "the expectation")
                    message = f"{name} does not hold for {kind}/{each.name}"
                    yield Violation("matches", message)
                    return


def pure(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """Handlers decide by their arguments alone.

    That the run is the same in another process is for the caller to find out.
    """
    if seen is benign.seen and benign.impure:
        yield Violation("pure", benign.impure[0], benign.impure)


def idle(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """Handlers do something: if not in this state, then in another one."""
    if seen is benign.seen:
        for each in benign.idle:
            yield Violation("idle", f"{each} does nothing, in whatever state")


def heeds(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """Each input that a handler looks at matters to one of its decisions."""
    if seen is benign.seen:
        yield from _told("heeds", benign.heeding.unheeded)


def serves(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """The operator starts, and each handler that is called may come to a good end."""
    if seen is not benign.seen:
        return
    ended = seen.trial.scene.booted.exit
    if ended is not None and ended.status:
        yield Violation("serves", f"the operator does not start: {ended.reason}")
    yield from _told("serves", benign.heeding.fruitless)


def apart(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """Objects share nothing: what one has, or a stranger, is no affair of another."""
    if seen is not benign.seen:
        return
    found = [
        each
        for followed in benign.followed
        for each in (*_trespasses(benign, followed), *_changes(benign, followed))
    ]
    yield from _told("apart", found)


def _trespasses(benign: Benign, followed: Followed) -> Iterator[str]:
    """The children of others that are gone or taken, and by which write."""
    end, trial = benign.seen.trial.ends[Phase.RESTARTED], followed.seen.trial
    if len(trial.refused) > len(benign.seen.trial.refused):
        return  # the cluster takes no other object like these
    for known, words in trespasses(
        followed.sequel, followed.rests, end, followed.waited
    ):
        where = "/".join((*known.resource, *known.key))
        sites = [each.site for each in trial.writes if each.path == where]
        by = f" by {sites[-1]}" if sites else ""
        yield (
            f"{known.alias} {words}{by}, and belongs to somebody else: the uid in its "
            "owner references tells whose it is"
        )


def _changes(benign: Benign, followed: Followed) -> Iterator[str]:
    """The changes of one object's children by another that comes and goes."""
    if followed.sequel.ends:
        return
    changes = _changed(benign.seen.world, followed, benign)
    if changes and followed.waited:  # some may come with time
        usual = world_of(followed.waited[-1], benign.seen.trial.scene.bare)
        others = {(e.alias, e.path) for e in _changed(usual, followed, benign)}
        changes = [each for each in changes if (each.alias, each.path) in others]
    for each in changes:
        if each.path and not f"{each.alias} {each.path}".startswith(
            benign.history or ("\0",)
        ):
            actions = " and ".join(f"`{e}`" for e in followed.sequel.actions[-2:])
            yield f"after {actions} {each}"


def _changed(usual: World, followed: Followed, benign: Benign) -> list[Difference]:
    """The differences of a sequel from a run without it, in the children of before."""
    end = benign.seen.trial.ends[Phase.RESTARTED]
    children = {each.alias for each in owned_in(end, followed.sequel.owners)}
    expected, found = (
        {alias: text for alias, text in world.items() if alias in children}
        for world in (usual, followed.seen.world)
    )
    return differences(expected, found, benign.volatile)


def refers(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """Each pod that the operator makes, or describes, finds what it refers to."""
    if seen is not benign.seen:
        return
    trial = seen.trial
    end = trial.ends[Phase.RESTARTED]
    made = {w.body["metadata"].get("uid"): w.site for w in trial.writes if _makes(w)}
    found = [
        f"{alias_of(resource, each)} needs {need}, which is not there: make it beside "
        f"{site}, or let the script apply it"
        for resource, each in objects_in(end, trial.scene.base.cluster)
        if (site := made.get(each["metadata"]["uid"])) is not None
        if "deletionTimestamp" not in each["metadata"]
        for need in missing_in(end, each)
    ]
    yield from _told("refers", found)


def _makes(write: Write) -> bool:
    """Whether a write is one that makes an object, which it tells."""
    named = isinstance(write.body, Mapping) and "metadata" in write.body
    return named and write.site.verb in ("create", "adopt", "apply")


def _told(name: str, sentences: Sequence[str]) -> Iterator[Violation]:
    """A violation of a property that tells all of it."""
    if sentences:
        yield Violation(name, sentences[0], tuple(sentences))


PROPERTIES: dict[str, Judge] = {
    "matches": matches,
    "settles": settles,
    "total": total,
    "keeps_data": keeps_data,
    "creates_once": creates_once,
    "no_clobber": no_clobber,
    "right_object": right_object,
    "deletes": deletes,
    "no_orphans": no_orphans,
    "honest_status": honest_status,
    "same_end": same_end,
    "history": history,
    "no_more_writes": no_more_writes,
    "no_refused_writes": no_refused_writes,
    "bounded_work": bounded_work,
    "pure": pure,
    "idle": idle,
    "heeds": heeds,
    "serves": serves,
    "apart": apart,
    "refers": refers,
}
