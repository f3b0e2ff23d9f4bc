"""Smaller failures: fewer faults, actions and fields that show the same violation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fnop.interpreters.actions import ActionRefused, Apply
from fnop.interpreters.check.explore import Case, Explorer, Failure, Verdict
from fnop.interpreters.check.records import Happened
from fnop.interpreters.check.trial import Trial
from fnop.interpreters.scenario import ApplyProblem

__all__ = ["shrunk"]

# The most smaller versions of a failure that are tried.
TRIES_MAX = 60


def shrunk(case: Case, failure: Failure) -> tuple[Case, Failure]:
    """A smaller case and failure with a violation of the same property.

    Each step leaves out one thing, and is kept if the property is still violated, and
    no handler fails of an error that none has failed of before: without a field that a
    handler needs, it would be another failure.
    """
    tries, known = 0, _errors(_trial(Explorer(case), failure))
    going = True
    while going and tries < TRIES_MAX:
        going = False
        for smaller, schedule in _smaller(case, failure):
            tries += 1
            found = _still(smaller, failure._replace(schedule=schedule), known)
            if found is not None:
                case, failure, going = smaller, found, True
                break
            if tries >= TRIES_MAX:
                break
    return case, failure._replace(story=_story(case, failure))


def _story(case: Case, failure: Failure) -> tuple[Happened, ...]:
    return tuple(_trial(Explorer(case), failure).story)


def _trial(explorer: Explorer, failure: Failure) -> Trial:
    """The trial of a failure, played to its end."""
    if not failure.schedule:
        return explorer.reference.benign.seen.trial
    return explorer.trial_of(failure.schedule).play()


def _errors(trial: Trial) -> set[str]:
    """The kinds of errors that handlers have failed of, and nobody has foreseen."""
    return {
        f"{say.handler} {type(say.exception).__name__}"
        for _, say in trial.lines
        if say.exception is not None
    }


def _still(case: Case, failure: Failure, known: set[str]) -> Failure | None:
    """The failure in a smaller case, if it is still one, with no unknown errors."""
    try:
        explorer = Explorer(case)
    except (ApplyProblem, ActionRefused):
        return None
    if explorer.reference.benign.seen.trial.refused:
        return None  # a user whose actions are refused shows something else
    trial = _trial(explorer, failure)
    verdict: Verdict = explorer.benign
    if failure.schedule:
        verdict = explorer.verdict_of(trial, failure.schedule)
    if not verdict.struck or not _errors(trial) <= known:
        return None
    for violation in explorer.confirmed(verdict):
        if violation.property == failure.violation.property:
            return failure._replace(violation=violation)
    return None


def _smaller(case: Case, failure: Failure) -> Iterator[tuple[Case, Any]]:
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
            for manifest in _less(action.manifest):
                changed = (*script[:place], Apply(manifest), *script[place + 1 :])
                yield case._replace(script=changed), schedule


def _less(manifest: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The manifest with one thing less."""
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
