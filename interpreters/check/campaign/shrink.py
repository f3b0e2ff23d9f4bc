"""Smaller failures: fewer faults, actions and fields that show the same violation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fnop.effects.structs import replace
from fnop.interpreters.check.campaign.explore import Case, Explorer, Failure, Verdict
from fnop.interpreters.check.properties.evidence import Violation
from fnop.interpreters.check.state.scripts import ScriptProblem
from fnop.interpreters.check.trials.trial import Trial
from fnop.interpreters.simulation.actions import ActionRefused, Apply
from fnop.interpreters.simulation.scenario import ApplyProblem

__all__ = ["TRIES_MAX", "shrinking", "with_story"]

# The most smaller versions of a failure that are tried.
TRIES_MAX = 60


def shrinking(
    explorer: Explorer, failure: Failure, goes_on: Callable[[], bool] = lambda: True
) -> Iterator[tuple[Explorer, Failure] | None]:
    """Try ever smaller versions of a failure while `goes_on`; yield once for each try.

    The item is the smaller failure, with the explorer of its case, or None if the
    version does not show it. Each try omits one thing. It counts if the same property
    is still violated, and no handler fails with a new kind of error. Without a field
    that a handler needs, it would be another failure.
    """
    tries, known = 0, _errors(_trial(explorer, failure))
    going = True
    while going:
        going = False
        for case, schedule in _smaller_cases(explorer.case, failure):
            if tries >= TRIES_MAX or not goes_on():
                return
            tries += 1
            found = _still(case, replace(failure, schedule=schedule), known)
            yield found
            if found is not None:
                (explorer, failure), going = found, True
                break


def with_story(explorer: Explorer, failure: Failure) -> Failure:
    """The failure with its story."""
    return replace(failure, story=tuple(_trial(explorer, failure).journal.story))


def _trial(explorer: Explorer, failure: Failure) -> Trial:
    """The trial of a failure, played to its end."""
    if not failure.schedule:
        return explorer.reference.benign.seen.trial
    return explorer.trial_of(failure.schedule).play()


def _errors(trial: Trial) -> set[str]:
    """The kinds of errors with which handlers have failed, except foreseen ones."""
    return {
        f"{say.handler} {type(say.exception).__name__}"
        for _, say in trial.journal.lines
        if say.exception is not None
    }


def _still(
    case: Case, failure: Failure, known: set[str]
) -> tuple[Explorer, Failure] | None:
    """The failure in a smaller case, if it persists, with no unknown errors."""
    try:
        return _matching_failure(Explorer(case), failure, known)
    except (ApplyProblem, ActionRefused, ScriptProblem):
        return None


def _matching_failure(
    explorer: Explorer, failure: Failure, known: set[str]
) -> tuple[Explorer, Failure] | None:
    if explorer.reference.benign.seen.trial.journal.refused or explorer.mistakes:
        return None  # a user whose actions are refused shows something else
    trial = _trial(explorer, failure)
    verdict: Verdict = explorer.benign
    if failure.schedule:
        verdict = explorer.verdict_of(trial, failure.schedule)
    if not verdict.struck or not _errors(trial) <= known:
        return None
    for violation in explorer.confirmed(verdict):
        if _is_like(violation, failure.violation):
            return explorer, replace(failure, violation=violation)
    return None


def _is_like(found: Violation, before: Violation) -> bool:
    """Whether a smaller case violates the property in the same way.

    In a script with fewer events, the inputs of a handler have fewer effects.
    """
    is_same = found.message == before.message or before.property not in _BY_MESSAGE
    return found.property == before.property and is_same


_BY_MESSAGE = frozenset(("heeds", "idle"))


def _smaller_cases(case: Case, failure: Failure) -> Iterator[tuple[Case, Any]]:
    schedule = failure.schedule
    if schedule:
        for place in range(len(schedule)):
            yield case, (*schedule[:place], *schedule[place + 1 :])
    script = case.script
    for place in reversed(range(1, len(script))):
        less = (*script[:place], *script[place + 1 :])
        yield case._replace(script=less), schedule
    for place in range(len(case.given)):
        less_given = (*case.given[:place], *case.given[place + 1 :])
        yield case._replace(given=less_given), schedule
    for place in range(len(case.restored)):
        fewer = (*case.restored[:place], *case.restored[place + 1 :])
        yield case._replace(restored=fewer), schedule
    for place, action in enumerate(script):
        if isinstance(action, Apply):
            for manifest in _smaller_manifests(action.manifest):
                changed = (*script[:place], Apply(manifest), *script[place + 1 :])
                yield case._replace(script=changed), schedule


def _smaller_manifests(manifest: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The manifest with one element less, in every way."""
    spec = manifest.get("spec")
    if isinstance(spec, dict):
        for key in spec:
            less = {name: value for name, value in spec.items() if name != key}
            yield {**manifest, "spec": less}
    meta = manifest["metadata"]
    for stanza in ("labels", "annotations"):
        if meta.get(stanza):
            less = {key: value for key, value in meta.items() if key != stanza}
            yield {**manifest, "metadata": less}
