"""Properties of the end: it equals the end of the benign run, and of one creation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from enum import Enum

import orjson

from fnop.core.handlers.declare.handler import Handler
from fnop.interpreters.check.properties.aging import ages, is_aged
from fnop.interpreters.check.properties.evidence import (
    Benign,
    Property,
    Scope,
    Seen,
    Violation,
    has_struck,
    merges,
    skips,
    tampers,
    told,
)
from fnop.interpreters.check.properties.followed import calls_for_edits
from fnop.interpreters.check.properties.status import given_up, left_over
from fnop.interpreters.check.scripts.allotments import given_by, in_turn
from fnop.interpreters.check.state.kinds import Trait
from fnop.interpreters.check.state.records import Phase
from fnop.interpreters.check.state.worlds import World, records_in, rolling_in
from fnop.interpreters.check.trials.differences import Difference, differences
from fnop.interpreters.check.trials.trial import Trial

__all__ = ["PROPERTIES", "history", "same_end"]


def same_end(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """After the faults the world reaches the state of the benign run."""
    if tampers(seen.trial) or seen is benign.seen or _has_given_up(benign, seen):
        return
    if _is_reviewed_otherwise(benign, seen):
        return
    found = [
        *map(
            str, _erroneous_differences(benign, seen, benign.seen.world, _End.RESTARTED)
        )
    ]
    # A restart may repair what would stay broken without one.
    found = found or [f"{each}{_UNTIL}" for each in _mended_differences(benign, seen)]
    usual = {each.partition(": ")[0] for each in benign.seen.trial.journal.refused}
    found += [
        f"the user's action is refused: {each}"
        for each in seen.trial.journal.refused
        if each.partition(": ")[0] not in usual
    ]
    yield from told("same_end", found)


def _is_reviewed_otherwise(benign: Benign, seen: Seen) -> bool:
    """Whether the operator let the user do something else than without faults.

    Its denials may depend on other objects. Requests that the API server ignores while
    the operator is down are neither denied nor mutated.
    """
    usual, trial = benign.seen.trial, seen.trial
    if trial.journal.reviews.are_skipped and any(
        each.decision.denials or each.decision.patch
        for each in usual.journal.reviews.decided
    ):
        return True
    return trial.journal.denied != usual.journal.denied


class _End(Enum):
    """A time at which worlds are compared: before the restart at the end, or after."""

    HEALED = "healed"
    RESTARTED = "world"

    def of(self, seen: Seen) -> World:
        """The world of a trial at that time."""
        return seen.healed if self is _End.HEALED else seen.world


_UNTIL = " until the operator restarts"


def _mended_differences(benign: Benign, seen: Seen) -> list[Difference]:
    """The differences before the restart at the end that disappear after it.

    An operator that has crashed may have resumed, or not yet. It equals neither the
    state before the restart of the benign run nor the state after it. Timers may not
    have been called yet after a crash, or after an unseen event.
    """
    if benign.background and (seen.trial.journal.healed.crashes or skips(seen.trial)):
        return []
    found = _erroneous_differences(benign, seen, benign.seen.healed, _End.HEALED)
    if not (found and seen.trial.journal.healed.crashes):
        return found
    if has_struck(seen.trial, Trait.SPECIAL | Trait.LANDS_LATE):
        return []  # no handler sees that a request of a dead process has landed late
    resumed = _erroneous_differences(benign, seen, benign.seen.world, _End.HEALED)
    both = {(each.alias, each.path) for each in resumed}
    return [each for each in found if (each.alias, each.path) in both]


def _erroneous_differences(
    benign: Benign, seen: Seen, usual: World, end: _End
) -> list[Difference]:
    """The differences of a world from the usual one that are errors."""
    bare = benign.handled if merges(seen.trial) else frozenset[str]()
    now = end.of(seen)
    found = differences(usual, now, benign.volatile, without_status=bare)
    # A system that timers change depends on the moment of the look.
    aged = ages(benign.seen) | ages(seen)
    found = [each for each in found if not _depends_on_time(benign, aged, each)]
    given = given_by(seen.trial.scene.script)
    found = in_turn(usual, now, found, benign.handled, given)
    if not (found and skips(seen.trial)):
        return found
    rolling = _rolling_objects(benign.seen, end) | _rolling_objects(seen, end)
    found = [each for each in found if not _has_a_past(benign, each, rolling)]
    if found and not benign.straight and benign.created is not None:
        # The operator may have missed something temporary, or not have got to it.
        fresh = end.of(benign.created)
        other = differences(fresh, now, benign.volatile, without_status=bare)
        wrong = {each.alias for each in other}
        wrong -= _partial_records(usual, fresh, now, seen.trial)
        found = [each for each in found if each.alias in wrong]
    return found


def _depends_on_time(
    benign: Benign, aged: frozenset[tuple[str, str]], each: Difference
) -> bool:
    """Whether a difference depends on the moment of the look."""
    return benign.aftermath.explains(each.alias, each.path) or is_aged(each, aged)


def _has_a_past(benign: Benign, each: Difference, rolling: Collection[str]) -> bool:
    """Whether a difference depends on the past, by the author or by the cluster."""
    is_excepted = f"{each.alias} {each.path}".startswith(benign.history or ("\0",))
    return is_excepted or each.alias.partition(" (")[0] in rolling


def _partial_records(usual: World, fresh: World, now: World, trial: Trial) -> set[str]:
    """The systems whose records all come from lives of the benign run.

    Records about objects that exist at the end must be among them; others may be
    missing.
    """
    found = set()
    for alias in records_in(trial.run.calls.models):
        kept = [orjson.loads(each[alias])[""] for each in (fresh, now, usual)]
        if all(isinstance(each, list) for each in kept):
            least, present, most = (Counter(map(orjson.dumps, each)) for each in kept)
            if least <= present <= most:
                found.add(alias)
    return found


def _rolling_objects(seen: Seen, end: _End) -> frozenset[str]:
    """The aliases of objects that a waiting rollout has kept."""
    is_healed = end is _End.HEALED
    return rolling_in(
        seen.trial.journal.ends[Phase.HEALED if is_healed else Phase.RESTARTED].cluster
    )


def _has_given_up(benign: Benign, seen: Seen) -> bool:
    """Whether a handler has used up its attempts, or its time.

    Its author wants it to end so, and fnop does not call it again.
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
        for _, say in trial.journal.lines
        if say.handler == handler.id
        and say.ended is not None
        and say.ended.result in ("error", "timeout")
    ]
    if all(each.retried for each in failed):
        return False
    return handler.timeout is not None or len(failed) >= (handler.retries or 0)


def history(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """The end does not depend on the way in which the object became what it is."""
    if seen is not benign.seen or benign.created is None:
        return
    if not benign.mistake and seen.trial.journal.unsettled:
        return  # a handler that waits for others is not at its end
    if not benign.straight or _is_mutated_otherwise(benign, benign.created):
        return
    if not benign.mistake and given_up(seen.trial):
        return  # nor is one that the operator has refused to follow
    found = [
        _after_edits(each)
        for each in _differences_from_past(benign, benign.created, _End.RESTARTED)
    ]
    found += _conditions_of_the_past(benign, seen)
    if not _depends_on_past(benign, benign.created):
        found += map(_after_edits, left_over(benign, seen))
    found = found or [
        _after_edits(each, f",{_UNTIL}")
        for each in _differences_from_past(benign, benign.created, _End.HEALED)
    ]
    objects = tuple(dict.fromkeys(alias for alias, _ in found))
    for violation in told("history", [sentence for _, sentence in found]):
        yield violation._replace(calls=calls_for_edits(seen.trial), objects=objects)


def _after_edits(found: Difference, until: str = "") -> tuple[str, str]:
    """The alias of an object that differs, and the sentence that says so."""
    return found.alias, f"after the edits {found}, as after one creation{until}"


def _is_mutated_otherwise(benign: Benign, created: Seen) -> bool:
    """Whether a mutation has changed the object of the user who creates at once.

    Then the two users do not want the same.
    """
    trial = benign.seen.trial
    mutated = {
        f"{request.plural}.{request.group}".rstrip(".")
        for one in (trial, created.trial)
        for request in (
            e.decision.request for e in one.journal.reviews.decided if e.decision.patch
        )
    }
    return any(
        each.alias.partition("/")[0] in mutated
        for each in differences(
            created.world, benign.seen.world, benign.volatile, without_status=mutated
        )
    )


def _depends_on_past(benign: Benign, created: Seen) -> bool:
    """Whether part of the world has another past, by its author or by the cluster.

    A status may report the past.
    """
    rolling = _rolling_objects(benign.seen, _End.RESTARTED)
    found = differences(created.world, benign.seen.world, benign.volatile)
    return bool(rolling) or any(_has_a_past(benign, each, rolling) for each in found)


def _differences_from_past(
    benign: Benign, created: Seen, end: _End
) -> Iterator[Difference]:
    """The differences from the end of one creation, except in the status."""
    expected, now = end.of(created), end.of(benign.seen)
    rolling, aged = (
        _rolling_objects(benign.seen, end),
        ages(benign.seen) | ages(created),
    )
    for each in differences(
        expected, now, benign.volatile, without_status=benign.handled
    ):
        if _depends_on_time(benign, aged, each):
            continue
        if _has_a_past(benign, each, rolling):
            continue
        if not (_keeps_data(each) or _keeps_address(each)):
            yield each


def _keeps_address(each: Difference) -> bool:
    """Whether a Service keeps its addresses and ports.

    The API server assigns them at the creation, and an update without them changes
    nothing ("patchAllocatedValues").
    """
    kind, path = each.alias.partition("/")[0], each.path.strip(".")
    return kind == "services" and (
        path.startswith(("spec.clusterIP", "spec.healthCheckNodePort"))
        or path.endswith(".nodePort")
    )


def _keeps_data(each: Difference) -> bool:
    """Whether an object keeps its grown size, with its data.

    A claim does not shrink ("requested storage can not be less"), and deleting it loses
    its data. The claim templates of a StatefulSet cannot be changed.
    """
    kind, path = each.alias.partition("/")[0], each.path.strip(".")
    if kind == "statefulsets.apps":
        return path.startswith("spec.volumeClaimTemplates")
    is_left = not path and each.expected is None
    return kind == "persistentvolumeclaims" and (
        is_left or path.startswith("spec.resources")
    )


def _conditions_of_the_past(benign: Benign, seen: Seen) -> Iterator[tuple[str, str]]:
    """The conditions that differ after one creation, with the aliases of their objects.

    A status may report the past; a condition describes the present (API conventions).
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
                alias,
                f"after the edits {alias} says {name}={now[place]}, and {name}={fresh} "
                "as after one creation",
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


PROPERTIES = (
    Property(
        same_end,
        "after the faults the world is that of the benign run",
        110,
        Scope.END,
    ),
    Property(
        history,
        "the end does not depend on how the object became what it is",
        120,
        Scope.FAULTLESS,
    ),
)
