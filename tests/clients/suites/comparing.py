"""The results of a suite's runs, side by side: pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Outcome", "Verdict", "outcomes_of", "table", "verdict"]


class Outcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


def outcomes_of(lines: Iterable[str]) -> dict[str, Outcome]:
    """Each test's outcome, by node id, from the reports of its phases.

    The phases of a test report one after the other. A test whose preparation or
    clean-up fails has failed. A test that has reported only its preparation was
    interrupted, and has failed, too.  A repeated test counts as its last run.

    >>> list(outcomes_of([
    ...     '{"node": "a", "phase": "setup", "outcome": "passed"}',
    ...     '{"node": "a", "phase": "call", "outcome": "passed"}',
    ...     '{"node": "b", "phase": "setup", "outcome": "passed"}']).values())
    [<Outcome.PASSED: 'passed'>, <Outcome.FAILED: 'failed'>]
    """
    found: dict[str, Outcome] = {}
    for line in lines:
        told = json.loads(line)
        node, outcome = told["node"], told["outcome"]
        match told["phase"], outcome:
            case "setup", "passed":
                found[node] = Outcome.FAILED  # until its call reports
            case "teardown", "passed" | "skipped":
                pass
            case _, "passed" | "skipped":
                found[node] = Outcome(outcome)
            case _:
                found[node] = Outcome.FAILED
    return found


@dataclass(frozen=True)
class Verdict:
    """One suite on both servers; the lists are node ids.

    `real` is None if there was no real server.
    """

    suite: str
    simulated: Mapping[str, Outcome]
    real: Mapping[str, Outcome] | None
    differing: Sequence[str]
    """Failed on the simulated cluster, whatever the real server makes of them."""
    unexplained: Sequence[str]
    """Failed on the real server without a reason in the catalogue."""

    @property
    def ok(self) -> bool:
        return not self.differing and not self.unexplained and bool(self.simulated)


def verdict(
    suite: str, simulated: Mapping[str, Outcome], real: Mapping[str, Outcome] | None
) -> Verdict:
    """Compare; what the real server lacks did not run there.

    >>> passed, failed = Outcome.PASSED, Outcome.FAILED
    >>> verdict("s", {"a": passed, "b": failed}, {"a": failed, "c": passed}).differing
    ['b', 'c']
    """
    passing = {n for n, outcome in (real or {}).items() if outcome == Outcome.PASSED}
    differing = sorted(
        node
        for node in simulated.keys() | passing
        if simulated.get(node, Outcome.FAILED) == Outcome.FAILED
        or (node in passing and simulated[node] == Outcome.SKIPPED)
    )
    unexplained = sorted(
        node for node, outcome in (real or {}).items() if outcome == Outcome.FAILED
    )
    return Verdict(suite, simulated, real, differing, unexplained)


def table(verdicts: Iterable[Verdict]) -> str:
    """The figures as a table of Markdown."""
    rows = ["| suite | passed on the real server | passed here |", "|---|---|---|"]
    for each in verdicts:
        real = "not run" if each.real is None else counted(each.real)
        rows.append(f"| {each.suite} | {real} | {counted(each.simulated)} |")
    return "\n".join(rows)


def counted(outcomes: Mapping[str, Outcome]) -> str:
    """The number of passed tests, out of all.

    >>> counted({"a": Outcome.PASSED, "b": Outcome.FAILED, "c": Outcome.SKIPPED})
    '1 of 2, 1 skipped'
    """
    passed, failed, skipped = (
        sum(outcome == kind for outcome in outcomes.values()) for kind in Outcome
    )
    return f"{passed} of {passed + failed}" + (f", {skipped} skipped" * bool(skipped))
