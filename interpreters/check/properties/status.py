"""The status of handled objects: its generation, and its claims about the cluster.

Clients wait for a status. It names its generation, it does not repeat facts from before
an edit, and it agrees with the pods about pods.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import orjson
from msgspec import Struct

from fnop.interpreters.check.properties.evidence import Benign, Seen, tampers
from fnop.interpreters.check.state.kinds import Trait
from fnop.interpreters.check.state.records import Phase
from fnop.interpreters.check.state.worlds import World, is_builtin, world_of
from fnop.interpreters.check.trials.differences import Difference, leaves
from fnop.interpreters.check.trials.trial import Trial
from fnop.interpreters.cluster import Cluster
from fnop.interpreters.recording.identities.metadata import OWN
from fnop.interpreters.simulation.actions import Edit

__all__ = ["boasts", "given_up", "left_over", "misread", "unobserved"]

Object = Mapping[str, Any]


def _handled_objects(
    benign: Benign, seen: Seen, cluster: Cluster
) -> Iterator[tuple[str, Object]]:
    """The objects of custom kinds with handlers, with their aliases."""
    for resource, shelf in sorted(cluster.shelves.items()):
        kind = f"{resource[1]}.{resource[0]}"
        if is_builtin(resource[0]) or kind not in benign.handled:
            continue
        for each in shelf.values():
            if "deletionTimestamp" not in each["metadata"]:
                yield seen.alias_of(resource, each), each


def given_up(trial: Trial) -> frozenset[str]:
    """The uids of objects for which a handler has failed for good: they lag behind."""
    return frozenset(
        say.subject.uid
        for _, say in trial.journal.lines
        if say.ended is not None
        and not say.ended.retried
        and say.subject is not None
        and say.subject.uid is not None
    )


# -------------------------------------------------------------------------- generations


def unobserved(benign: Benign, seen: Seen) -> Iterator[str]:
    """The objects at rest whose status names another generation.

    A client that waits for a change waits until `observedGeneration` equals the
    object's generation (API conventions), and would wait for ever.
    """
    trial = seen.trial
    if trial.journal.unsettled or tampers(trial):
        return
    telling, behind = {*_uids_with_generation(seen)}, given_up(trial)
    for alias, each in _handled_objects(
        benign, seen, trial.journal.ends[Phase.RESTARTED].cluster
    ):
        meta = each["metadata"]
        if meta["uid"] not in telling or meta["uid"] in behind:
            continue
        for field, number in _generations(each).items():
            if number != meta["generation"]:
                yield (
                    f"{alias} says {field} {number} at rest, and is of generation "
                    f"{meta['generation']}: write it in the handler of each change"
                )


def _uids_with_generation(seen: Seen) -> Iterator[str]:
    """The uids of objects whose status gets a generation from the operator.

    If a kind has no status subresource, the write itself creates another generation.
    """
    for event in seen.events:
        if event.version not in seen.writes or event.previous is None:
            continue
        meta, was = event.object["metadata"], event.previous["metadata"]
        tells = _generations(event.object) != _generations(event.previous)
        if tells and meta.get("generation") == was.get("generation"):
            yield meta["uid"]


def _generations(found: Object) -> dict[str, int]:
    """The generations that a status names: for the whole, and for each condition."""
    status = found.get("status")
    if not isinstance(status, dict):
        return {}
    said: dict[str, Any] = {"observedGeneration": status.get("observedGeneration")}
    for each in status.get("conditions") or ():
        if isinstance(each, dict) and not str(each.get("type")).startswith(OWN):
            name = f"observedGeneration of the condition {each.get('type')}"
            said[name] = each.get("observedGeneration")
    return {name: each for name, each in said.items() if isinstance(each, int)}


# ----------------------------------------------------------- values from before an edit


def left_over(benign: Benign, seen: Seen) -> Iterator[Difference]:
    """The values in the status of objects that were true only before the edits.

    Such a value is still as it was after the creation, but a creation with the edits
    gives another one. So it depends on the spec, but does not follow the spec. Values
    whose names refer to the past do not count, nor does the result of a handler, which
    its status keeps.
    """
    trial, created = seen.trial, benign.created
    edits = (isinstance(each, Edit) for each in trial.scene.script)
    first = next((number for number, is_edit in enumerate(edits) if is_edit), -1)
    if created is None or first not in trial.journal.rests:
        return
    before = world_of(
        *(trial.journal.rests[first].cluster, trial.scene.bare, None),
        *(trial.drawn, trial.storage),
    )
    results = {each.id.partition("/")[0] for each in trial.scene.program.handlers}
    behind = given_up(trial)
    for alias, each in _handled_objects(
        benign, seen, trial.journal.ends[Phase.RESTARTED].cluster
    ):
        if each["metadata"]["uid"] in behind:
            continue
        if alias not in before or alias not in created.world:
            continue
        worlds = before, created.world, seen.world
        for path, fresh, now in _kept(
            *(_status_values(world, alias) for world in worlds)
        ):
            is_result = re.split(r"[.\[]", path)[0] in results
            if not (is_result or _is_past(path) or _is_volatile(benign, alias, path)):
                yield Difference(alias, f"status.{path}", fresh, now)


_Said = Mapping[str, Any]


def _kept(was: _Said, fresh: _Said, now: _Said) -> Iterator[tuple[str, Any, Any]]:
    """The values that stay as they were, but differ in a fresh status.

    A list that has grown is a record of the past.
    """
    grown = {_list_of(path) for path in now.keys() - was.keys()} - {""}
    for path in {**fresh, **now}:
        before, there, other = (each.get(path) for each in (was, now, fresh))
        if before == there != other and _list_of(path) not in grown:
            yield path, other, there


def _is_volatile(benign: Benign, alias: str, path: str) -> bool:
    """Whether two runs without faults differ there, or in any condition."""
    where = f"status.{path.partition('[')[0]}"
    return any(
        each == alias and place.startswith(where)
        for each, place in benign.volatile.paths
    )


def _status_values(world: World, alias: str) -> dict[str, Any]:
    """The plain values in the status of an object, with conditions by their types."""
    status = orjson.loads(world.get(alias, b"{}")).get("status")
    if not isinstance(status, dict):
        return {}
    conditions = status.pop("conditions", None)
    for each in conditions if isinstance(conditions, list) else ():
        if isinstance(each, dict) and "type" in each:
            kept = {key: each[key] for key in ("reason", "message") if key in each}
            status[f"conditions[{each['type']}]"] = kept
    return dict(leaves("", status))


def _list_of(path: str) -> str:
    """The path of the list that a path leads into; "" if it leads into none.

    >>> _list_of("log[0].text"), _list_of("size")
    ('log', '')
    """
    return path.partition("[")[0] if re.search(r"\[\d+\]", path) else ""


# Words in names of facts about the past.
_PAST = frozenset(
    (
        *("last", "previous", "prior", "former", "old", "first", "initial", "original"),
        *("history", "log", "logs", "event", "events", "since", "created", "started"),
        *("at", "time", "timestamp"),
    )
)


def _is_past(path: str) -> bool:
    words = {*_words(path)}
    return not _PAST.isdisjoint(words) or words >= {"resource", "version"}


def _words(name: str) -> list[str]:
    """The words of a name.

    >>> _words("status.lastSeenAt")
    ['status', 'last', 'seen', 'at']
    """
    return [each.lower() for each in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", name)]


# ------------------------------------------------------------- claims about the cluster


def boasts(benign: Benign, seen: Seen) -> Iterator[str]:
    """The claims of a status about pods while a controller of the cluster is stuck.

    Such pods are not ready then, and Jobs have not ended.
    """
    trial = seen.trial
    stuck = [each for each in trial.struck if each.kind.has(Trait.STOPS_CONTROLLER)]
    if not stuck or len(stuck) < len(trial.struck):
        return
    rests = sorted((number, e.cluster) for number, e in trial.journal.rests.items())
    for number, cluster in rests:
        for alias, each in _handled_objects(benign, seen, cluster) if number else ():
            made = _objects_made_for(each, cluster, seen)
            for claim in _claims(each.get("status")):
                there = _number_of(claim, made)
                if there is not None and there < claim.number:
                    yield (
                        f"{alias} says {claim} while the controller "
                        f"{stuck[0].site.target} is stuck, and {there} of its pods are "
                        f"{claim.word}: let it say what the status of its children says"
                    )


def misread(benign: Benign, seen: Seen) -> Iterator[str]:
    """The numbers of pods in a status that disagree with its only workload at rest."""
    trial = seen.trial
    if seen is not benign.seen or trial.journal.unsettled:
        return
    cluster = trial.journal.ends[Phase.HEALED].cluster
    for alias, each in _handled_objects(benign, seen, cluster):
        made = _objects_made_for(each, cluster, seen)
        workloads = [found for kind, found in made if kind in _WORKLOADS]
        if len(workloads) != 1:
            continue
        (workload,) = workloads
        theirs = workload.get("status") or {}
        for name in sorted(_COUNTS & {*(each.get("status") or {})}):
            mine, real = each["status"][name], theirs.get(name, 0)
            if type(mine) is int and mine != real:
                child = f"{workload['kind']} {workload['metadata']['name']}"
                yield f"{alias} says {name} {mine} at rest, and the {child} says {real}"


class _Claim(Struct, frozen=True):
    """A claim of a status: at least `number` pods are ready, or have succeeded."""

    field: str
    value: Any
    number: int
    word: str

    def __str__(self) -> str:
        return f"{self.field}={orjson.dumps(self.value).decode()}"


# The words of a status for pods that serve, and for Jobs that have ended.
_READY = frozenset(("ready", "available", "running", "healthy"))
_DONE = frozenset(("succeeded", "completed", "complete", "finished"))
# ... and the fields whose value is such a word.
_TELLING = frozenset(("phase", "state", "status", "health"))
# Words that keep the meaning of such a claim, unlike those for an available port.
_OF_THE_SAME = frozenset(
    (
        *("replicas", "pods", "pod", "jobs", "job", "members", "instances", "workers"),
        *("nodes", "number", "count", "all", "is", "deployment", "workload", "current"),
    )
)
_WORKLOADS = frozenset(
    ("apps", each) for each in ("deployments", "statefulsets", "daemonsets")
)
_COUNTS = frozenset(
    ("readyReplicas", "availableReplicas", "numberReady", "numberAvailable")
)


def _claims(status: Any) -> Iterator[_Claim]:
    """The claims of a status about ready pods, and about Jobs that have succeeded."""
    for name, value in status.items() if isinstance(status, dict) else ():
        words = {*_words(name)}
        if isinstance(value, str) and words & _TELLING:
            yield from _claimed(name, value, 1, {*words - _TELLING, value.lower()})
        elif isinstance(value, int):
            yield from _claimed(name, value, int(value), words)
    conditions = status.get("conditions") if isinstance(status, dict) else None
    for each in conditions if isinstance(conditions, list) else ():
        if isinstance(each, dict) and each.get("status") == "True":
            name = str(each.get("type"))
            if "/" not in name:
                yield from _claimed(name, "True", 1, {*_words(name)})


def _claimed(
    name: str, value: Any, number: int, words: Collection[str]
) -> Iterator[_Claim]:
    known = {*words} & (_READY | _DONE)
    if number > 0 and len(known) == 1 and {*words} <= known | _OF_THE_SAME:
        yield _Claim(name, value, number, *known)


_Made = tuple[tuple[str, str], Object]


def _objects_made_for(owner: Object, cluster: Cluster, seen: Seen) -> list[_Made]:
    """The objects that belong to one, by their owners or by their creator."""
    uids = {owner["metadata"]["uid"]}
    mine = {
        event.object["metadata"]["uid"]
        for event in seen.events
        if event.previous is None
        and event.version in seen.writes
        and seen.writes[event.version].subject in uids
    }
    found: dict[str, _Made] = {}
    for kind in (*_OF_PODS, _PODS):  # an owner comes before the objects it owns
        for each in cluster.shelves.get(kind, {}).values():
            meta = each["metadata"]
            owners = {one["uid"] for one in meta.get("ownerReferences") or ()}
            if owners & uids or meta["uid"] in mine:
                uids.add(meta["uid"])
                found[meta["uid"]] = kind, each
    return [*found.values()]


_PODS = ("", "pods")
_JOBS = ("batch", "jobs")
_OF_PODS = (*sorted(_WORKLOADS), ("apps", "replicasets"), ("batch", "cronjobs"), _JOBS)


def _number_of(claim: _Claim, made: Collection[_Made]) -> int | None:
    """The number of such pods, as they and their owners say; None if irrelevant."""
    is_done = claim.word in _DONE
    jobs = [each for kind, each in made if kind == _JOBS]
    pods = [each for kind, each in made if kind == _PODS]
    if is_done:
        counts = [(each.get("status") or {}).get("succeeded", 0) for each in jobs]
        return sum(counts) if jobs else None
    sets = [each for kind, each in made if kind in _WORKLOADS]
    if jobs or not (pods or any(map(_wants_pods, sets))):
        return None
    said = [_most_ready(each.get("status") or {}) for each in sets]
    return max(sum(said), sum(map(_is_ready, pods)))


def _wants_pods(found: Object) -> bool:
    return bool(found["spec"].get("replicas", 1))


def _most_ready(status: Object) -> int:
    return max((status.get(each, 0) for each in _COUNTS), default=0)


def _is_ready(pod: Object) -> bool:
    """Whether a pod is ready, or runs as far as it ever does."""
    status = pod.get("status") or {}
    return any(
        each.get("type") == "Ready" and each.get("status") == "True"
        for each in status.get("conditions") or ()
    ) or status.get("phase") in ("Running", "Succeeded")
