"""The cluster: a kind that comes and goes, upgrades, and outages."""

from datetime import timedelta
from typing import Any

import fnop

# A kind that another team installs, or does not.
MONITORS = "monitors.fnop.dev"


@fnop.reconcile("shops")
async def shop(body: fnop.Body, spec: fnop.Spec, name: str, **_: Any) -> fnop.Desired:
    """Give it a monitor, if the cluster has monitors; say in a condition whether."""
    monitor = {
        "apiVersion": "fnop.dev/v1",
        "kind": "Monitor",
        "metadata": {"name": name},
        "spec": {"host": spec["host"]},
    }
    try:
        await fnop.apply(fnop.owned(monitor, body))
    except fnop.Refused as refusal:
        if refusal.status != 404:
            raise
        return fnop.desired(
            conditions=fnop.condition("Monitored", False, "NotInstalled")
        )
    return fnop.desired(conditions=fnop.condition("Monitored", True, "Applied"))


@fnop.on.cluster.kind_added(MONITORS)
@fnop.on.cluster.kind_removed(MONITORS)
async def look_again(**_: Any) -> None:
    """Reconcile all shops again, as at each start."""
    for each in await fnop.list("shops", namespace="*"):
        await fnop.requeue(each)


@fnop.on.cluster.kind_removed(MONITORS)
def gone(logger: fnop.Logger, **_: Any) -> None:
    logger.warning("no shop is monitored any more")


@fnop.on.cluster.upgraded()
def upgraded(
    old: fnop.ServerVersion, new: fnop.ServerVersion, logger: fnop.Logger, **_: Any
) -> None:
    words = "an upgrade" if new > old else "a downgrade"
    logger.info(f"{words}, from {old} to {new}")


@fnop.on.cluster.reached(after=60)
def back(downtime: timedelta, logger: fnop.Logger, **_: Any) -> None:
    logger.warning(f"nothing was done for {downtime.total_seconds():.0f} s")
