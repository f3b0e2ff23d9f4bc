"""A deployment, its replica sets, and the numbers of its strategy."""

from __future__ import annotations

from typing import Any

from fnop.interpreters.cluster.controllers.turns import Desk
from fnop.interpreters.cluster.values.objects import Object, same, without_nulls

__all__ = [
    "BASE",
    "HASH",
    "REVISION",
    "SETS",
    "Deployment",
    "age",
    "available_replicas",
    "count",
    "number",
    "resolved",
    "revision_of",
    "status_number",
]

SETS = ("apps", "replicasets")
HASH = "pod-template-hash"
BASE = "deployment.kubernetes.io/"
REVISION = f"{BASE}revision"


def resolved(value: Any, total: int, *, up: bool) -> int:
    """A number or a share of the replicas (`GetScaledValueFromIntOrPercent`).

    >>> resolved("25%", 5, up=True), resolved("25%", 5, up=False)
    (2, 1)
    """
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdecimal():
        share = int(value[:-1]) * total
        return -(-share // 100) if up else share // 100
    return value if isinstance(value, int) else 0


class Deployment:
    """A deployment, its replica sets, and the numbers of its strategy."""

    def __init__(self, desk: Desk, deployment: Object) -> None:
        spec = deployment["spec"]
        self.desk, self.deployment, self.spec = desk, deployment, spec
        self.replicas: int = spec.get("replicas", 1)
        strategy = spec.get("strategy") or {}
        self.rolling = strategy.get("type", "RollingUpdate") == "RollingUpdate"
        rules = strategy.get("rollingUpdate") or {}
        surge = resolved(rules.get("maxSurge", "25%"), self.replicas, up=True)
        lost = resolved(rules.get("maxUnavailable", "25%"), self.replicas, up=False)
        if surge == 0 and lost == 0:
            lost = 1  # ResolveFenceposts: something must move
        self.surge = surge if self.rolling else 0
        self.lost = min(lost, self.replicas) if self.rolling else 0
        self.sets: list[Object] = []
        self._template: dict[str, Any] | None = None
        self._current: Object | None = None

    def refresh(self) -> None:
        """Read the replica sets again."""
        self.sets = sorted(self.desk.controlled(SETS, self.deployment), key=age)
        self._current = self._found()

    def current(self) -> Object | None:
        """FindNewReplicaSet: the oldest set of this very template."""
        return self._current

    def _found(self) -> Object | None:
        if not self.sets:
            return None
        if self._template is None:  # the spec is the same for the whole turn
            template = _without_hash(self.spec.get("template") or {})
            self._template = without_nulls(template)
        for each in self.sets:
            template = _without_hash(each["spec"].get("template") or {})
            if same(template, self._template) or same(
                without_nulls(template), self._template
            ):
                return each
        return None

    def others(self) -> list[Object]:
        """The sets of other templates, the oldest first."""
        new = self.current()
        return [each for each in self.sets if each is not new]

    def counts(self) -> dict[str, int]:
        """calculateStatus, the numbers."""
        new = self.current()
        replicas = sum(status_number(each, "replicas") for each in self.sets)
        available = sum(map(available_replicas, self.sets))
        asked = sum(map(count, self.sets))
        return {
            "replicas": replicas,
            "updatedReplicas": 0 if new is None else status_number(new, "replicas"),
            "readyReplicas": sum(
                status_number(each, "readyReplicas") for each in self.sets
            ),
            "availableReplicas": available,
            "unavailableReplicas": max(0, asked - available),
        }

    def is_complete(self) -> bool:
        """DeploymentComplete, with the present numbers."""
        counts = self.counts()
        wanted = ("updatedReplicas", "replicas", "availableReplicas")
        return all(counts[name] == self.replicas for name in wanted)


def _without_hash(template: dict[str, Any]) -> dict[str, Any]:
    """A template without its hash.

    Templates are compared without nulls, which Go treats as absent: a server writes
    `creationTimestamp: null` into templates.
    """
    metadata = template.get("metadata") or {}
    labels = {k: v for k, v in (metadata.get("labels") or {}).items() if k != HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def age(rs: Object) -> tuple[str, str]:
    return rs["metadata"]["creationTimestamp"], rs["metadata"]["name"]


def count(rs: Object) -> int:
    found: int = rs["spec"].get("replicas", 1)
    return found


def status_number(rs: Object, name: str) -> int:
    found: int = (rs.get("status") or {}).get(name, 0)
    return found


def available_replicas(rs: Object) -> int:
    return status_number(rs, "availableReplicas")


def number(rs: Object, name: str) -> int | None:
    text = rs["metadata"].get("annotations", {}).get(name, "")
    return int(text) if text.isdecimal() else None


def revision_of(rs: Object) -> int:
    return number(rs, REVISION) or 0
