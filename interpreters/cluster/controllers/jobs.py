"""Jobs: pods that run to completion (`pkg/controller/job`)."""

from __future__ import annotations

from typing import Any

from fnop.interpreters.cluster.controllers.replicasets import is_active, pod_of
from fnop.interpreters.cluster.controllers.turns import (
    Desk,
    Turn,
    condition,
    is_going,
    is_ready,
    key_of,
    moment,
    phase,
)
from fnop.interpreters.cluster.storage.store import Cluster, Task, lookup
from fnop.interpreters.cluster.values.objects import Object, timestamp

__all__ = ["acted", "is_finished"]

JOBS = ("batch", "jobs")
FIRST_DELAY, LONGEST_DELAY = 10.0, 360.0


def is_finished(job: Object) -> bool:
    """Whether a job is complete or has failed."""
    found = (condition(job, type) for type in ("Complete", "Failed"))
    return any(each is not None and each["status"] == "True" for each in found)


def acted(cluster: Cluster, task: Task, now: float) -> Turn:
    """One turn of one job."""
    job = lookup(cluster, task.resource, task.key)
    if job is None or is_going(job):
        return Turn(cluster)
    desk = Desk(cluster, now)
    if is_finished(job):
        _expire(desk, job)
        return desk.turn()
    pods = [*desk.controlled(("", "pods"), job)]
    _Run(desk, job, pods).turn()
    return desk.turn()


def _expire(desk: Desk, job: Object) -> None:
    """The ttlafterfinished controller."""
    seconds = job["spec"].get("ttlSecondsAfterFinished")
    if seconds is None:
        return
    ends = (
        moment(each.get("lastTransitionTime"))
        for each in job["status"]["conditions"]
        if each["type"] in ("Complete", "Failed")
    )
    at = min(ends) + seconds
    if at > desk.now:
        desk.remind(at)
    else:
        desk.delete(job, "Foreground")


class _Run:
    def __init__(self, desk: Desk, job: Object, pods: list[Object]) -> None:
        self.desk, self.job, self.spec, self.pods = desk, job, job["spec"], pods
        self.active = [pod for pod in pods if is_active(pod)]
        self.failed = [pod for pod in pods if phase(pod) == "Failed"]
        self.succeeded = sum(phase(pod) == "Succeeded" for pod in pods)
        self.status = dict(job.get("status") or {})
        self.conditions = list(self.status.get("conditions") or [])

    def turn(self) -> None:
        suspended = bool(self.spec.get("suspend"))
        if "startTime" not in self.status and not suspended:
            self.status["startTime"] = timestamp(self.desk.now)
        why = self.failure()
        if why is not None:
            self.drop(self.active)
            self.finish("Failed", *why)
        elif suspended:
            self.drop(self.active)
            self.suspend()
        else:
            self.resume()
            self.manage()
            if self.is_complete():
                self.status["completionTime"] = timestamp(self.desk.now)
                text = "Reached expected number of succeeded pods"
                self.finish("Complete", "CompletionsReached", text)
        self.report()

    def failure(self) -> tuple[str, str] | None:
        """The reason and message of the job's failure, if it has failed."""
        restarts = sum(
            each.get("restartCount", 0)
            for pod in self.active
            if pod["spec"].get("restartPolicy") == "OnFailure"
            for each in (pod.get("status") or {}).get("containerStatuses") or ()
        )
        limit = self.spec.get("backoffLimit", 6)
        if len(self.failed) > limit or (restarts and restarts >= limit):
            text = "Job has reached the specified backoff limit"
            return "BackoffLimitExceeded", text
        seconds = self.spec.get("activeDeadlineSeconds")
        if seconds is None or self.spec.get("suspend"):
            return None
        end = moment(self.status.get("startTime")) + seconds
        if end <= self.desk.now:
            return "DeadlineExceeded", "Job was active longer than specified deadline"
        self.desk.remind(end)
        return None

    def is_complete(self) -> bool:
        wanted = self.spec.get("completions")
        if wanted is None:
            # A work queue is done when one pod has found it empty, and all have ended.
            return self.succeeded > 0 and not self.active
        return bool(self.succeeded >= wanted)

    def wanted(self) -> int:
        """The number of pods that should run now."""
        parallelism: int = self.spec.get("parallelism", 1)
        completions: int | None = self.spec.get("completions")
        if completions is None:
            return len(self.active) if self.succeeded else parallelism
        return min(parallelism, max(0, completions - self.succeeded))

    def manage(self) -> None:
        """manageJob."""
        surplus = len(self.active) - self.wanted()
        if surplus > 0:
            order = sorted(
                self.active, key=lambda pod: (is_ready(pod), pod["metadata"]["name"])
            )
            self.drop(order[:surplus])
        elif surplus < 0 and not self.is_waiting():
            template = self.spec.get("template") or {}
            for _ in range(-surplus):
                made = self.desk.create(self.pod(template))
                if made is not None:
                    self.active.append(made)

    def pod(self, template: dict[str, Any]) -> Object:
        pod = pod_of(self.job, template)
        if self.spec.get("completionMode") != "Indexed":
            return pod
        used = {_index(each) for each in self.pods if phase(each) != "Failed"}
        used |= {_index(each) for each in self.active}
        number = next(str(n) for n in range(10**6) if str(n) not in used)
        name = "batch.kubernetes.io/job-completion-index"
        metadata = pod["metadata"]
        metadata["annotations"] = {**metadata.get("annotations", {}), name: number}
        metadata["labels"] = {**metadata.get("labels", {}), name: number}
        metadata["generateName"] = f"{self.job['metadata']['name']}-{number}-"
        return {
            **pod,
            "spec": {**pod["spec"], "hostname": metadata["generateName"][:-1]},
        }

    def is_waiting(self) -> bool:
        """Whether the next pod waits after failures: 10 s, 20 s, ... six minutes."""
        if not self.failed:
            return False
        last = max(_end_time(pod) for pod in self.failed)
        delay = min(FIRST_DELAY * 2 ** (len(self.failed) - 1), LONGEST_DELAY)
        if last + delay <= self.desk.now:
            return False
        self.desk.remind(last + delay)
        return True

    def drop(self, pods: list[Object]) -> None:
        for pod in pods:
            self.desk.delete(pod)
        gone = {pod["metadata"]["uid"] for pod in pods}
        self.active = [p for p in self.active if p["metadata"]["uid"] not in gone]

    def add(self, type: str, status: str, reason: str, message: str) -> None:
        now = timestamp(self.desk.now)
        new = {
            "type": type,
            "status": status,
            "lastProbeTime": now,
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        }
        self.conditions = [*(c for c in self.conditions if c["type"] != type), new]

    def finish(self, type: str, reason: str, message: str) -> None:
        self.add(type, "True", reason, message)

    def suspended(self) -> bool:
        return any(
            each["type"] == "Suspended" and each["status"] == "True"
            for each in self.conditions
        )

    def suspend(self) -> None:
        self.status.pop("startTime", None)
        if not self.suspended():
            self.add("Suspended", "True", "JobSuspended", "Job suspended")

    def resume(self) -> None:
        if self.suspended():
            self.add("Suspended", "False", "JobResumed", "Job resumed")
            self.status["startTime"] = timestamp(self.desk.now)

    def report(self) -> None:
        present = self.desk.get(JOBS, key_of(self.job))
        if present is None:
            return
        numbers = {
            "active": len(self.active),
            "succeeded": self.succeeded,
            "failed": len(self.failed),
        }
        for name, number in numbers.items():
            self.status.pop(name, None)
            if number:
                self.status[name] = number
        self.status["ready"] = sum(map(is_ready, self.active))
        if self.conditions:
            self.status["conditions"] = self.conditions
        self.desk.status(present, self.status)


def _index(pod: Object) -> str:
    name = "batch.kubernetes.io/job-completion-index"
    found: str = pod["metadata"].get("annotations", {}).get(name, "")
    return found


def _end_time(pod: Object) -> float:
    """The time at which a pod failed, as far as its status shows."""
    times = [
        moment(((each.get("state") or {}).get("terminated") or {}).get("finishedAt"))
        for each in (pod.get("status") or {}).get("containerStatuses") or ()
    ]
    return max(times, default=0.0) or moment(pod["metadata"]["creationTimestamp"])
