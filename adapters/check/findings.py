"""The failures of a check as shown: each run once, shrunk as far as possible."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterator, Sequence

from fnop.adapters.check.folder import Folder
from fnop.adapters.check.limits import Limits
from fnop.adapters.reports.check_report import Shown
from fnop.interpreters.check.campaign.campaign import Campaign
from fnop.interpreters.check.campaign.explore import Explorer, Failure
from fnop.interpreters.check.campaign.reports import SHOWN_MAX, Report
from fnop.interpreters.check.campaign.shrink import TRIES_MAX, shrinking, with_story
from fnop.interpreters.check.properties.evidence import Violation

__all__ = ["Findings"]


class Findings:
    """The failures of a campaign: shrunk within the limits, and recorded."""

    def __init__(self, campaign: Campaign, limits: Limits, folder: Folder) -> None:
        self._campaign, self._limits, self._folder = campaign, limits, folder

    def shown(self, report: Report) -> Iterator[Shown]:
        """Yield the failures to show, at most `SHOWN_MAX`: each property first."""
        told: set[tuple[str, ...]] = set()
        left = {_sentence(each.violation) for each, _ in report.failures}
        tries = SHOWN_MAX
        for failure, number in _each_property_first(report.failures):
            if not tries or _sentence(failure.violation) not in left:
                continue  # a run that is shown has this failure, too
            tries -= 1
            explorer = self._campaign.explorer_of(failure.case)
            if failure.violation.property == "pure":  # needs two processes
                yield Shown(explorer.case, failure, number)
                continue
            explorer, smaller = self._shrink_failure(explorer, failure)
            same = smaller.violation.property, *smaller.violation.details
            if len(same) > 1 and same in told:
                continue  # another site shows the same
            told.add(same)
            files = self._folder.saved(explorer, smaller)
            left -= {_sentence(failure.violation), _sentence(smaller.violation)}
            beside = self._other_violations(explorer, smaller, left)
            left -= {*map(_sentence, beside)}
            yield Shown(explorer.case, smaller, number, *files, beside)

    def _shrink_failure(
        self, explorer: Explorer, failure: Failure
    ) -> tuple[Explorer, Failure]:
        """Return the smallest failure found within the limits, with its story."""
        limits, name = self._limits, failure.violation.property
        if limits.may_shrink():
            if not sys.stderr.isatty():
                limits.say(f"looking for the smallest schedule that violates {name}")
            with (
                limits.interruptible(),
                limits.progress(TRIES_MAX, f"shrinking {name}") as bar,
            ):
                for found in shrinking(explorer, failure, limits.takes_a_try):
                    bar.update(1)
                    explorer, failure = found or (explorer, failure)
        with limits.interruptible():
            failure = with_story(explorer, failure)
        return explorer, failure

    def _other_violations(
        self, explorer: Explorer, shown: Failure, left: Container[tuple[str, str]]
    ) -> tuple[Violation, ...]:
        """Return the other failures of this run that are not shown yet."""
        found: Sequence[Violation] = ()
        with self._limits.interruptible():
            is_benign = not shown.schedule
            run = explorer.benign if is_benign else explorer.tried(shown.schedule)
            found = run.violations
        return tuple(each for each in found if _sentence(each) in left)


def _sentence(violation: Violation) -> tuple[str, str]:
    """A failure as it is shown in one line."""
    return violation.property, violation.message


def _each_property_first(
    failures: Sequence[tuple[Failure, int]],
) -> list[tuple[Failure, int]]:
    """Order failures: the first of each property, so that each verdict is explained.

    Then all others. The numbers count the failures like each one.
    """
    kinds = {each.violation.property: (each, number) for each, number in failures[::-1]}
    first = [*kinds.values()][::-1]
    return [*first, *(each for each in failures if each not in first)]
