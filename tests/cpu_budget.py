"""The CPU seconds of the tests by folder, next to a budget.

Each run prints them.  `make budget` fails over a budget; other runs never do, as a
busy machine makes everything dearer.  The seconds are those of the test's process and
of the processes that it has started and awaited.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Generator
from functools import cache
from typing import Any

import pytest

from tests import forked

__all__ = ["CpuBudget"]

# CPU seconds on a calm core of 2024, with the servers that the tests start.
BUDGETS = {
    "clients": 30.0,
    "cluster": 200.0,
    "conformance": 60.0,
    "property": 45.0,
    "replays": 12.0,
    "unit": 350.0,
}
_PROPERTY = "cpu_seconds"
_IS_ENFORCED = bool(os.environ.get("FNOP_TESTS_BUDGET"))


class CpuBudget:
    """A plugin of pytest: it counts in each process, and sums up in the first one."""

    def __init__(self) -> None:
        self._began = 0.0
        self._spent: defaultdict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, Any, Any]:
        self._began = _used()
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> None:
        if call.when == "teardown":
            item.user_properties.append((_PROPERTY, _used() - self._began))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            folder = report.nodeid.removeprefix("tests/").partition("/")[0]
            found = dict(report.user_properties).get(_PROPERTY, 0.0)
            self._spent[folder] += float(str(found))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if _IS_ENFORCED and self._over() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self._spent:
            return
        factor = _slowness()
        terminalreporter.section(f"CPU seconds (this machine: x {factor:.1f})")
        for folder, seconds in sorted(self._spent.items()):
            budget = BUDGETS.get(folder, 0.0) * factor
            over = "  over budget" if folder in self._over() else ""
            line = f"{folder:<12} {seconds:7.1f} of {budget:6.1f}{over}"
            terminalreporter.write_line(line)

    def _over(self) -> list[str]:
        """The folders that took more than their budget on this machine."""
        factor = _slowness()
        return [
            folder
            for folder, seconds in self._spent.items()
            if seconds > BUDGETS.get(folder, 0.0) * factor
        ]


@cache
def _slowness() -> float:
    """The CPU time of a fixed piece of work, as a multiple of a calm core of 2024."""
    tries = []
    for _ in range(5):
        began, total = time.process_time(), 0
        for number in range(1_000_000):
            total += number
        tries.append(time.process_time() - began)
    return max(1.0, min(tries) / 0.05)


def _used() -> float:
    """The CPU seconds so far of this process and of its children."""
    found = os.times()
    own = found.user + found.system
    return own + found.children_user + found.children_system + forked.seconds_used()
