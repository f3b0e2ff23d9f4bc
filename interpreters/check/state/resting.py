"""Detection of a trial's rests: everything has settled, or never will."""

from __future__ import annotations

from collections import Counter

from fnop.interpreters.check.state.processes import worker
from fnop.interpreters.check.state.records import Unrest
from fnop.interpreters.check.state.state import Resting, TrialState
from fnop.interpreters.simulation.settling import Despair, Prospects

__all__ = ["is_at_rest", "is_endless", "pass_time", "rest_anew"]

# The rounds after which a run is examined whose timers write for ever.
ROUNDS = 2
# ... and this many while the user waits for an object to go.
PATIENT_ROUNDS = 100
# The turns after which a phase is examined for endlessness.
LOOK_EVERY = 64
# More writes than this without a rest are endless; a second of waiting allows two more.
WRITES_MAX = 250
# An operator that changes nothing for this long (turns, seconds) waits for others.
STILL_TURNS, STILL_SECONDS = 300, 120.0


def rest_anew(state: TrialState) -> None:
    """Begin to wait for the next rest."""
    still = _version_of(state), state.turns, state.run.clock.elapsed
    written = len(state.journal.writes)
    state.resting = Resting(
        begun_at=state.turns, written=written, waited=state.waited, still=still
    )
    for run in (state.run, state.second):
        if run is not None:
            limits = state.limits
            despair = Despair(limits.repeats, limits.waits)
            run.prospects = Prospects(run, despair)


def _version_of(state: TrialState) -> int:
    """The version of the cluster without the operator's own notes."""
    return state.run.cluster.version - state.noted


def pass_time(state: TrialState) -> bool:
    """Let time pass up to what is due next; False if nothing is."""
    clock, user, process = state.run.clock, state.user, worker(state)
    before = clock.elapsed
    if user.until is None:
        passes = process.pass_time()
    else:
        passes = True
        if not process.pass_time(user.until, recurring=True):
            clock.advance_to(user.until)
            user.until = None
    state.waited += clock.elapsed - before
    return passes


def is_at_rest(state: TrialState) -> bool:
    """Whether nothing is left to do, or only what fails again and again."""
    run, calm = worker(state), state.resting.calm
    if state.user.until is not None:
        return False
    if state.in_force.down:
        return True
    if run.prospects.tries_again():
        return False
    rounds = ROUNDS if state.user.blocked is None else PATIENT_ROUNDS
    if calm.lasts(run) or calm.rounds > rounds:
        return True
    reason = run.prospects.despairs()
    if reason:
        state.journal.unsettled[state.phase] = Unrest(
            reason, waits=run.prospects.is_foreseen()
        )
    return bool(reason) or _waits_in_vain(state)


def _waits_in_vain(state: TrialState) -> bool:
    """Whether nothing has changed for so long that nothing is going to."""
    run, resting, version = state.run, state.resting, _version_of(state)
    if version != resting.still[0]:
        resting.still = version, state.turns, run.clock.elapsed
    _, turns, since = resting.still
    if state.turns < turns + STILL_TURNS or run.clock.elapsed < since + STILL_SECONDS:
        return False
    state.journal.unsettled[state.phase] = Unrest(run.prospects.circles(), waits=True)
    return True


def is_endless(state: TrialState) -> bool:
    """Whether the present phase goes on for ever; the reason is noted."""
    taken = state.turns - state.resting.begun_at
    if taken % LOOK_EVERY:
        return False
    reason = worker(state).prospects.restless.reason() or _busyness(state)
    if taken > state.limits.turns and not reason:
        reason = state.run.prospects.circles()
    if reason:
        state.journal.unsettled[state.phase] = Unrest(reason, endless=True)
        state.user.until = None
    return bool(reason)


def _busyness(state: TrialState) -> str:
    """A sentence about the handler that goes on writing; "" if none does."""
    resting = state.resting
    since = state.journal.writes[resting.written :]
    if len(since) <= WRITES_MAX + 2 * (state.waited - resting.waited):
        return ""
    often = Counter(f"`{e.site.verb} {e.site.target}`" for e in since[-WRITES_MAX:])
    what = ", ".join(name for name, _ in often.most_common(3))
    who = since[-1].site.handler or "the operator"
    return f"{who} goes on writing: {what}, {len(since)} writes by now"
