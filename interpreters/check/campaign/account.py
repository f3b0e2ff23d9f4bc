"""The account of a failure: what its recording shows in addition to the steps.

It lists the actions of the user and the faults, and each change of the cluster. It also
has the run without faults, and the places at which a crash would matter
(`fnop.interpreters.recording.model.account`). The run of the failure is repeated for
it, before an observer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import orjson

from fnop.core.memory.seals import without_seals
from fnop.core.seam.commands import Command
from fnop.core.seam.inputs import Input
from fnop.core.seam.wire import command_to_wire, input_to_wire
from fnop.core.values.now import Now
from fnop.interpreters.check.campaign.explore import Case, Explorer, Failure, observed
from fnop.interpreters.check.properties.evidence import has_struck, seen_by
from fnop.interpreters.check.state.kinds import (
    Place as Kind,
    Schedule,
    Site,
    Trait,
)
from fnop.interpreters.check.state.worlds import ASIDE
from fnop.interpreters.check.trials.differences import Difference, differences
from fnop.interpreters.check.trials.trial import Trial
from fnop.interpreters.cluster import StoredEvent
from fnop.interpreters.cluster.storage.store import events_after
from fnop.interpreters.recording.model.account import (
    Account,
    Change,
    Crash,
    Differing,
    Mark,
    ReferenceLine,
)
from fnop.interpreters.recording.model.revisions import told
from fnop.interpreters.recording.questions.timeline import Timeline
from fnop.interpreters.recording.redaction import Redaction
from fnop.interpreters.simulation.simulation import SimulatedRun

__all__ = ["Step", "account_of", "happened", "record_of", "veiled"]

# Further places are not reported: such a run goes on for ever.
PLACES_MAX = 5_000
CRASHES_MAX = 60
BENIGN = "the run without faults"
FRESH = "the run that creates at once what the script ends with"


class Step(NamedTuple):
    """A step of the operator: its time, its input, and its commands."""

    now: Now
    input: Input
    commands: tuple[Command, ...]


class Watched:
    """Observes a run: its steps, and the cluster's version at each of them."""

    def __init__(self, run: SimulatedRun) -> None:
        self._run = run
        self.steps: list[Step] = []
        self.versions: list[int] = []

    def observe(self, now: Now, input: Input, commands: tuple[Command, ...]) -> None:
        """Note one step."""
        self.steps.append(Step(now, input, commands))
        self.versions.append(self._run.cluster.version)


def account_of(
    case: Case,
    failure: Failure,
    redaction: Callable[[], Redaction],
    has_time: Callable[[], bool] = lambda: True,
    explorer: Explorer | None = None,
) -> tuple[list[Step], Account]:
    """The steps of a failure, and its account without secrets.

    The case's program writes traces. If no time is left, no further crash is tried. An
    `explorer` of the case, whose program need not trace, saves some runs.
    """
    trial, steps, found = happened(case, failure.schedule, redaction())
    explorer = explorer or Explorer(case)
    beside, differing = _differences(explorer, trial, failure)
    crashes, untried = _crashes(explorer, trial, has_time)
    reference: tuple[ReferenceLine, ...] = ()
    if failure.schedule:
        reference = tuple(_lines(case, redaction()))
    return steps, found._replace(
        beside=beside,
        differences=tuple(differing[:PLACES_MAX]),
        reference=reference,
        crashes=tuple(crashes),
        untried=untried,
    )


def happened(
    case: Case, schedule: Schedule, redaction: Redaction
) -> tuple[Trial, list[Step], Account]:
    """The trial of a schedule, its steps, and its account of all events."""
    found: list[Watched] = []

    def observer(run: SimulatedRun) -> Watched:
        found.append(Watched(run))
        return found[0]

    trial = observed(case, schedule, observer)
    return trial, found[0].steps, _account_of_run(trial, found[0], redaction)


def _lines(case: Case, redaction: Redaction) -> Iterator[ReferenceLine]:
    """The events of the run without faults."""
    _, steps, account = happened(case, (), redaction)
    timeline = Timeline(account)
    for each in steps:
        timeline.add(record_of(each))
    timeline.end()
    for event in [*timeline.events][:PLACES_MAX]:
        yield ReferenceLine(event.key, event.text)


def record_of(step: Step) -> dict[str, Any]:
    """A step as its record, with secrets."""
    return {
        "wall": step.now.wall,
        "mono": step.now.mono,
        "input": input_to_wire(step.input),
        "commands": [command_to_wire(each) for each in step.commands],
    }


# -------------------------------------------------------------------------- the events


def _account_of_run(trial: Trial, watched: Watched, redaction: Redaction) -> Account:
    """The marks and the changes of a run."""
    clock = trial.run.clock
    began = clock.now().wall - clock.elapsed + trial.journal.since
    marks = (
        Mark(each.step, began + each.at, each.lane, str(each.what), each.version)
        for each in trial.journal.story[:PLACES_MAX]
        if each.lane != "operator"
    )
    changes: Iterable[Change] = ()
    # After a backup was restored, the versions start from an earlier number again.
    if not has_struck(trial, Trait.REWINDS):
        changes = _changes(trial, watched, redaction)
    return Account(tuple(marks), tuple(changes))


def _changes(trial: Trial, watched: Watched, redaction: Redaction) -> Iterator[Change]:
    end, bare = trial.run.cluster, trial.scene.bare
    given = trial.scene.base.cluster.version
    events = [
        each
        for each in events_after(end, bare.version) or ()
        if each.resource not in ASIDE
        if (each.resource[1], each.object["metadata"]["name"]) not in _BEGINNINGS
    ][:PLACES_MAX]
    for event, body in zip(
        events, _redacted_objects(events, watched, redaction), strict=True
    ):
        by = trial.journal.maker_of(event.version)
        group, plural = event.resource
        meta = event.object["metadata"]
        yield Change(
            bisect_left(watched.versions, event.version) + 1,
            event.version,
            f"{plural}.{group}" if group else plural,
            *(event.namespace or "", str(meta.get("name")), str(meta.get("uid"))),
            *(event.type, "given" if event.version <= given else by),
            told(body),
        )


# The cluster's own controllers create these in each namespace.
_BEGINNINGS = frozenset(
    (("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt"))
)


def _redacted_objects(
    events: Iterable[StoredEvent], watched: Watched, redaction: Redaction
) -> Iterator[dict[str, Any]]:
    """The objects in the form that a recording of the same run would show."""
    _learn(watched.steps, redaction)
    for event in events:
        input = {"in": "WatchEvent", "type": event.type, "body": event.object}
        record = {"wall": 0.0, "mono": 0.0, "input": input, "commands": []}
        (found,) = redaction.scrubbed([record])
        text = without_seals(orjson.dumps(found["input"]["body"]))
        body: dict[str, Any] = orjson.loads(text)
        yield body


def veiled(text: str, steps: Iterable[Step], redaction: Redaction) -> str:
    """A text about a run without the secrets that its steps have shown."""
    _learn(steps, redaction)
    return str(redaction.veiled(text))


def _learn(steps: Iterable[Step], redaction: Redaction) -> None:
    """Learn all secrets first: any of the steps may be the first to show one."""
    for step in steps:
        record = record_of(step)
        redaction.scrubbed([record])


# ------------------------------------------------------------------------- two worlds


def _differences(
    explorer: Explorer, trial: Trial, failure: Failure
) -> tuple[str, list[Differing]]:
    """The differences of the failure's world, and the world it is compared with."""
    benign = explorer.reference.benign
    if failure.schedule:
        found = differences(benign.seen.world, seen_by(trial).world, benign.volatile)
        return BENIGN, [*map(_redacted_difference, found)]
    if failure.violation.property == "history" and benign.fresh is not None:
        found = differences(benign.fresh, benign.seen.world, benign.volatile)
        return FRESH, [*map(_redacted_difference, found)]
    return "", []


def _redacted_difference(found: Difference) -> Differing:
    plain = found.concealed
    return Differing(plain.alias, plain.path.strip("."), plain.expected, plain.found)


# ---------------------------------------------------------------------------- crashes


def _crashes(
    explorer: Explorer, trial: Trial, has_time: Callable[[], bool]
) -> tuple[list[Crash], int]:
    """The result of a crash at each place of the run without faults, in its order."""
    turns = {
        each.site: each.turn
        for each in reversed(explorer.reference.benign.seen.trial.journal.visits)
    }
    places = [e for e in explorer.singles() if e[0].kind.has(Trait.ONLY_CRASHES)]
    places.sort(key=lambda each: turns.get(each[0].site, 0))
    steps = _steps_before(trial)
    found: list[Crash] = []
    for schedule in places[:CRASHES_MAX]:
        if not has_time():
            break
        verdict = explorer.tried(schedule)
        (fault,) = schedule
        if verdict.struck:
            fails = {each.property for each in explorer.confirmed(verdict)}
            step = steps.get(fault.site, 0)
            site = fault.site
            who = (site.handler, site.verb)
            found.append(Crash(step, str(fault), *who, sorted(fails)))
    return found, len(places) - len(found)


def _steps_before(trial: Trial) -> dict[Site, int]:
    """The steps of the sites that a run shares with the run without faults."""
    strikes = [each.step for each in trial.journal.story if each.lane == "fault"]
    end = min(strikes, default=float("inf"))
    return {
        each.site: each.step + (each.site.place is Kind.EVENT)
        for each in reversed(trial.journal.visits)
        if each.step <= end
    }
