"""Properties of the end: it is that of the benign run, and what its author expects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

import orjson

from fnop.core.handlers.handler import Handler
from fnop.interpreters.check.differences import differences
from fnop.interpreters.check.expectations import Picture, error_in
from fnop.interpreters.check.properties.evidence import (
    Benign,
    Seen,
    Violation,
    merges,
    skips,
    tampers,
    told,
)
from fnop.interpreters.check.records import Phase
from fnop.interpreters.check.trial import Trial
from fnop.interpreters.check.worlds import World, records_in, rolling_in
from fnop.interpreters.scenario import catalogue_of

__all__ = ["errors_of_expectations", "history", "matches", "same_end"]


def same_end(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """After the faults the world becomes that of the benign run."""
    if tampers(seen.trial) or seen is benign.seen or _gave_up(benign, seen):
        return
    bare = benign.handled if merges(seen.trial) else frozenset[str]()
    found = differences(
        benign.seen.world, seen.world, benign.volatile, without_status=bare
    )
    before_restart = not found and not seen.trial.crashes
    if before_restart:
        # A restart may repair what nobody would have repaired without one.
        found = differences(
            benign.seen.healed, seen.healed, benign.volatile, without_status=bare
        )
    # A system that timers change depends on when it is looked at.
    found = [each for each in found if each.alias not in benign.ticking]
    if found and skips(seen.trial):  # it has another history
        depends = benign.history or ("\0",)
        rolling = _rolling(benign.seen) | _rolling(seen)
        found = [
            each
            for each in found
            if not f"{each.alias} {each.path}".startswith(depends)
            and each.alias.partition(" (")[0] not in rolling
        ]
    fresh = None if benign.straight else benign.fresh
    if found and fresh is not None and skips(seen.trial):
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
        until = " until the operator restarts" if before_restart else ""
        details = tuple([*(f"{each}{until}" for each in found), *refused])
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
    if seen is not benign.seen or benign.fresh is None:
        return
    if not benign.mistake and seen.trial.unsettled:
        return  # one that waits for somebody is not at its end
    if not benign.straight:
        return
    rolling = _rolling(seen)
    found = [
        f"after the edits {each}, as after one creation"
        for each in differences(
            benign.fresh, seen.world, benign.volatile, without_status=benign.handled
        )
        if each.alias not in benign.ticking
        and each.alias.partition(" (")[0] not in rolling
        and not f"{each.alias} {each.path}".startswith(benign.history or ("\0",))
    ]
    found += _conditions_of_the_past(benign, seen)
    yield from told("history", found)


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


def matches(benign: Benign, seen: Seen) -> Iterator[Violation]:
    """The expectations of the author hold after the faults, and stay true."""
    if tampers(seen.trial):
        return
    for message, _ in _unmet(seen.trial):
        yield Violation("matches", message)
        return


def errors_of_expectations(trial: Trial) -> tuple[str, ...]:
    """A sentence for each expectation that fails itself, and cannot tell anything."""
    errors = (message for message, is_error in _unmet(trial) if is_error)
    return tuple(dict.fromkeys(errors))


def _unmet(trial: Trial) -> Iterator[tuple[str, bool]]:
    """The expectations that do not hold at a rest; whether by an error of theirs."""
    catalogue = catalogue_of(trial.run)
    wall = trial.run.clock.now().wall
    for phase in (Phase.HEALED, Phase.RESTARTED, Phase.AGAIN):
        picture = Picture(trial.ends[phase], catalogue, wall, trial.scene.namespace)
        for kind, holds in trial.scene.expectations:
            name = getattr(holds, "__name__", "the expectation")
            for each in picture.objects(kind):
                if each.metadata.deletion_timestamp is not None:
                    continue
                where = f"{kind}/{each.name}"
                try:
                    if not holds(each, picture):
                        yield f"{name} does not hold for {where}", False
                except Exception as problem:
                    error = error_in(holds, problem)
                    yield (
                        f"the expectation {name} itself raises {error} for {where}; "
                        "let it answer False where something is missing",
                        True,
                    )
