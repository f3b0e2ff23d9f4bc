"""A run, and its report."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.cluster.churn.failing import Faults, Outages, Process
from tests.cluster.churn.judging import Judge, Ledger, bad_lines
from tests.cluster.churn.plans import Plan
from tests.cluster.churn.users import User, unmet
from tests.cluster.fault_proxy import (
    Upstream,
    proxying,
)
from tests.cluster.servers import Servers

__all__ = ["Report", "churn"]

# A whole operator with some hundred objects takes less than 100 MB.
MEMORY_MB_MAX = 400
RECORDS_MAX = 2_000


@dataclass
class Report:
    """The actions of a run, and the violations."""

    plan: Plan
    changes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    requests: int = 0
    struck: int = 0
    recovery: float | None = None
    stops: list[float] = field(default_factory=list)
    memory_mb: float = 0.0
    trace: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        def counted(what: Counter[str]) -> str:
            return ", ".join(f"{name} {n}" for name, n in sorted(what.items()))

        plan, recovery = self.plan, self.recovery
        ended = "never" if recovery is None else f"{recovery:.1f} s"
        return "\n".join(
            (
                f"seed {plan.seed}, {plan.seconds:g} s, {plan.objects} objects, "
                f"{plan.replicas} replicas",
                f"changes: {counted(self.changes)}",
                f"faults: {counted(self.faults)}",
                f"calls: {counted(self.calls)}",
                f"requests: {self.requests}, struck {self.struck}",
                f"all well after the last fault: {ended}",
                f"stops: {len(self.stops)}, longest {max(self.stops, default=0):.1f} s",
                f"largest memory: {self.memory_mb:.0f} MB",
                f"violations: {len(self.violations)}",
                *(f"  {each}" for each in self.violations[:50]),
            )
        )


async def churn(plan: Plan, folder: Path) -> Report:
    """Make a run on servers of its own in the folder."""
    servers = Servers(folder, managed=True)
    try:
        await servers.aside(partial(servers.start, *servers.names))
        return await _churned(plan, folder, servers)
    finally:
        servers.close()


async def _churned(plan: Plan, folder: Path, servers: Servers) -> Report:
    report, judge, upstream = (
        Report(plan),
        Judge(alone=plan.replicas == 1),
        Upstream(servers.api),
    )
    user = User(upstream, "churn", judge, plan)
    try:
        await user.define()
        async with proxying(upstream) as proxy:
            proxy.records = deque(maxlen=RECORDS_MAX)
            proxy.heard = judge.heard
            kubeconfig = proxy.kubeconfig(folder)
            processes = [
                Process(kubeconfig, user.namespace, folder, plan, number + 1)
                for number in range(plan.replicas)
            ]
            faults, outages = Faults(proxy, plan), Outages(servers, plan)
            try:
                failing = [faults.go_on()]
                for process in processes:
                    process.start()
                    failing.append(process.go_on())
                failing += [outages.go_on()] if plan.outages else []
                ledger = Ledger(processes[0].ledger)
                await _trouble(plan, user, judge, ledger, failing)
                await outages.over()
                await _collecting(servers)
                looks = partial(unmet, user, processes, collected=servers.managed)
                report.recovery = await _settled(
                    plan, user, judge, ledger, processes, looks
                )
                for process in processes:
                    process.measure()
                    await process.end()
                judge.judge(ledger.read())
            finally:
                for process in processes:
                    process.close()
    finally:
        await upstream.close()
    report.changes, report.calls = user.changes, judge.calls
    report.faults = faults.counts + outages.counts
    report.requests = judge.answers
    report.struck = faults.struck
    report.violations += judge.violations
    for process in processes:
        report.faults += process.counts
        report.stops += process.stops
        report.violations += process.violations
        report.memory_mb = max(report.memory_mb, process.memory_mb)
        with process.log.open(errors="replace") as lines:
            report.violations += bad_lines(lines)
    if report.memory_mb > MEMORY_MB_MAX:
        report.violations.append(f"it took {report.memory_mb:.0f} MB")
    report.trace = list(judge.trace)
    (folder / "trace.log").write_text("\n".join(report.trace))
    (folder / "report.txt").write_text(str(report))
    return report


async def _collecting(servers: Servers) -> None:
    """Restart the controllers, so that orphans are collected.

    The garbage collector knows owners by its watches, and may have missed the ends of
    some while the API server was away (seen with 1.20). A new one checks whether they
    exist.
    """
    if servers.managed:
        name = "kube-controller-manager"
        await servers.aside(partial(servers.end, name))
        await servers.aside(partial(servers.start, name))


async def _trouble(
    plan: Plan,
    user: User,
    judge: Judge,
    ledger: Ledger,
    failing: list[Any],
) -> None:
    """Let everything fail for its time, while the user goes on."""
    tasks = [asyncio.create_task(each) for each in failing]
    until = time.monotonic() + plan.seconds
    acting = asyncio.create_task(_acting(user, until))
    try:
        while not acting.done():
            for task in tasks:
                if task.done():
                    task.result()
            judge.judge(ledger.read())
            await asyncio.sleep(0.5)
        acting.result()
    finally:
        for task in (*tasks, acting):
            task.cancel()
        await asyncio.gather(*tasks, acting, return_exceptions=True)


async def _acting(user: User, until: float) -> None:
    looked = time.monotonic()
    while time.monotonic() < until:
        await user.act()
        await user.release()
        if time.monotonic() > looked + 5:
            await user.look()
            looked = time.monotonic()
        filling = len(user.items) < user.plan.objects / 2
        await asyncio.sleep(0.02 if filling else 1 / user.plan.per_second)


async def _settled(
    plan: Plan,
    user: User,
    judge: Judge,
    ledger: Ledger,
    processes: Sequence[Process],
    looks: Callable[[], Awaitable[list[str]]],
) -> float | None:
    """Measure the time until all is well; return None and violations if it is never."""
    began = time.monotonic()
    while True:
        for process in processes:
            if (status := await process.ended(0)) is not None:
                process.counts[f"exit {status}"] += 1
                process.start()
        await user.look()
        judge.judge(ledger.read())
        problems = await looks()
        judge.judge(ledger.read())
        took = time.monotonic() - began
        if not problems:
            return took
        if took > plan.bound:
            judge.violations += [f"after {took:.0f} s: {each}" for each in problems]
            return None
        await asyncio.sleep(0.5)
