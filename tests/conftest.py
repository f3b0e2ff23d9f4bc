"""Fixtures and hooks that all tests share."""

import gc
import signal
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from fnop.adapters.common.collector import calm_collector
from fnop.core.handlers.declare.registry import default_registry
from tests.cpu_budget import CpuBudget
from tests.distribution import GroupScheduling, in_order
from tests.thorough import IS_THOROUGH

# The first draw of a text strategy builds its tables, which is slow and no fault
# of the test; timings of single examples say nothing on a shared machine.  A change is
# judged by the same examples as the one before; `make thorough` draws others each time.
settings.register_profile(
    "fnop",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not IS_THOROUGH,
)
settings.load_profile("fnop")

# As pytest-xdist calls it on the command line: `--dist loadgroup`.
GROUPS = "loadgroup"

# A shell lets what it starts in the background ignore Ctrl-C, and so all that these
# tests start would: they send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(CpuBudget())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    addressed = [each.nodeid for each in items if " at 0x" in each.nodeid]
    if addressed:
        raise pytest.UsageError(
            f"{addressed[0]} has an address in its name, which differs in each process "
            "of a run: give its parameters ids="
        )
    in_order(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(
    config: pytest.Config, log: Any
) -> GroupScheduling | None:
    return GroupScheduling(config, log) if config.getvalue("dist") == GROUPS else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests, kept to the end: garbage is looked for only after them.

    To look for it meanwhile takes as long as to collect the tests, in each process.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()
        calm_collector()  # as the command does


@pytest.fixture(autouse=True)
def declared() -> Iterator[None]:
    """Remove after a test all that it declares without a registry, or loads."""
    before = default_registry.handlers
    yield
    if default_registry.handlers != before:
        default_registry.clear()
        for each in before:
            default_registry.add(each)
