"""The status of a deployment: its numbers, and its conditions."""

from __future__ import annotations

from typing import Any

from fnop.interpreters.cluster.controllers.deployment_state import Deployment
from fnop.interpreters.cluster.controllers.turns import (
    is_going,
    key_of,
    moment,
)
from fnop.interpreters.cluster.values.objects import timestamp

__all__ = ["Report"]

Conditions = list[dict[str, Any]]


class Report:
    """The status of a deployment at the end of a turn.

    `note` is the reason and the message of what the turn has done, if it is of note.
    """

    def __init__(self, of: Deployment, note: tuple[str, str] | None) -> None:
        self.of, self.note = of, note

    def write(self) -> None:
        """Write the status."""
        present = self.of.desk.get(("apps", "deployments"), key_of(self.of.deployment))
        if present is None:
            return
        self.of.refresh()
        old = present.get("status") or {}
        counts = self.of.counts()
        conditions = list(old.get("conditions") or [])
        if not is_going(self.of.deployment):
            # Conditions of this turn come before those that follow from the numbers.
            conditions = self._noted(conditions)
            conditions = self._availability(conditions, counts)
            conditions = self._progress(conditions, counts, old)
        status: dict[str, Any] = {
            "observedGeneration": self.of.deployment["metadata"]["generation"],
            **{name: number for name, number in counts.items() if number},
        }
        if "collisionCount" in old:
            status["collisionCount"] = old["collisionCount"]
        if conditions:
            status["conditions"] = conditions
        self.of.desk.status(present, status)

    def _noted(self, conditions: Conditions) -> Conditions:
        """Add what this turn has done, in the condition Progressing."""
        if self.note is None or self.of.spec.get("progressDeadlineSeconds") is None:
            return conditions
        status = "Unknown" if self.note[0].startswith("Deployment") else "True"
        return self._said(conditions, "Progressing", status, *self.note)

    def _availability(
        self, conditions: Conditions, counts: dict[str, int]
    ) -> Conditions:
        good = counts["availableReplicas"] >= self.of.replicas - self.of.lost
        reason = "MinimumReplicasAvailable" if good else "MinimumReplicasUnavailable"
        has = "has" if good else "does not have"
        text = f"Deployment {has} minimum availability."
        return self._said(conditions, "Available", str(good), reason, text)

    def _said(
        self,
        conditions: Conditions,
        type: str,
        status: str,
        reason: str,
        message: str,
    ) -> Conditions:
        """SetDeploymentCondition: the same status and reason are not a change."""
        now = timestamp(self.of.desk.now)
        before = next((each for each in conditions if each["type"] == type), None)
        since = now
        if before is not None:
            if before["status"] == status and before["reason"] == reason:
                return conditions
            if before["status"] == status:
                since = before["lastTransitionTime"]
        new = {
            "type": type,
            "status": status,
            "lastUpdateTime": now,
            "lastTransitionTime": since,
            "reason": reason,
            "message": message,
        }
        return [*(each for each in conditions if each is not before), new]

    def _progress(
        self,
        conditions: Conditions,
        counts: dict[str, int],
        old: dict[str, Any],
    ) -> Conditions:
        """syncRolloutStatus: whether it is complete, in progress, or too late."""
        deadline = self.of.spec.get("progressDeadlineSeconds")
        if deadline is None:
            return [each for each in conditions if each["type"] != "Progressing"]
        if self.of.spec.get("paused"):
            return conditions
        now = next((c for c in conditions if c["type"] == "Progressing"), None)
        done = now is not None and now["reason"] == "NewReplicaSetAvailable"
        if counts["replicas"] == counts["updatedReplicas"] and done:
            return conditions
        new = self.of.current()
        name = (
            f'ReplicaSet "{new["metadata"]["name"]}"'
            if new is not None
            else f'Deployment "{self.of.deployment["metadata"]["name"]}"'
        )
        if self.of.is_complete():
            text = f"{name} has successfully progressed."
            return self._said(
                conditions, "Progressing", "True", "NewReplicaSetAvailable", text
            )
        if _is_progressing(counts, old):
            text = f"{name} is progressing."
            return self._timed(self._updated(conditions, now, text), deadline)
        if now is not None and self._is_late(now, deadline):
            text = f"{name} has timed out progressing."
            return self._said(
                conditions, "Progressing", "False", "ProgressDeadlineExceeded", text
            )
        return self._timed(conditions, deadline)

    def _updated(
        self, conditions: Conditions, now: dict[str, Any] | None, text: str
    ) -> Conditions:
        """The condition Progressing, updated: it keeps the time of its transition."""
        rest = [each for each in conditions if each["type"] != "Progressing"]
        fresh = self._said(rest, "Progressing", "True", "ReplicaSetUpdated", text)
        if now is None or now["status"] != "True":
            return fresh
        return [
            *rest,
            {**fresh[-1], "lastTransitionTime": now["lastTransitionTime"]},
        ]

    def _timed(self, conditions: Conditions, deadline: int) -> Conditions:
        """Look again when the deadline has passed."""
        for each in conditions:
            if each["type"] == "Progressing" and each["status"] == "True":
                self.of.desk.remind(moment(each["lastUpdateTime"]) + deadline)
        return conditions

    def _is_late(self, now: dict[str, Any], deadline: int) -> bool:
        """DeploymentTimedOut."""
        if now["reason"] == "ProgressDeadlineExceeded":
            return True
        if now["status"] != "True":
            return False
        return moment(now["lastUpdateTime"]) + deadline <= self.of.desk.now


def _is_progressing(counts: dict[str, int], old: dict[str, Any]) -> bool:
    """DeploymentProgressing."""
    before = old.get("replicas", 0) - old.get("updatedReplicas", 0)
    return bool(
        counts["updatedReplicas"] > old.get("updatedReplicas", 0)
        or counts["replicas"] - counts["updatedReplicas"] < before
        or counts["readyReplicas"] > old.get("readyReplicas", 0)
        or counts["availableReplicas"] > old.get("availableReplicas", 0)
    )
