"""A stub of scheduler and kubelet: pods are bound, run and end.

Annotations of a pod say how it behaves (`10`, `10s`, `500ms`, `2m`, `1h`):

    annotation                        meaning                              default
    --------------------------------  -----------------------------------  ---------
    simulated.fnop.dev/start-after    Pending until then                   0s
    simulated.fnop.dev/ready-after    not ready until so long after the    0s
                                      start; `never`: not at all
    simulated.fnop.dev/run-for        its containers end so long after     for ever;
                                      the start                            1s if
                                                                           restartPolicy
                                                                           is not Always
    simulated.fnop.dev/exit-code      with this code                       0
    simulated.fnop.dev/stop-after     how long it takes to end when it is  0s
                                      deleted, the grace at most
    simulated.fnop.dev/log            the lines that its containers write
                                      when they start, and again after a
                                      restart
    simulated.fnop.dev/log.NAME       the same for one container

A running container also writes the lines that are added to its annotation later.

Init containers end when the pod starts; those with restartPolicy Always run as long as
the others. Containers that end are restarted after 10 s, 20 s, 40 s, ... and stay in
CrashLoopBackOff after five times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from math import inf
from typing import Any

from fnop.interpreters.cluster.api.logs import annotated, statuses_of
from fnop.interpreters.cluster.controllers.turns import (
    Desk,
    Turn,
    condition,
    is_going,
    moment,
    phase,
    with_condition,
)
from fnop.interpreters.cluster.storage.commit import removed
from fnop.interpreters.cluster.storage.store import Cluster, Task, lookup
from fnop.interpreters.cluster.values.objects import Object, timestamp

__all__ = ["acted", "seconds_of"]

NODE = "stub-node"
PREFIX = "simulated.fnop.dev/"
UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
RESTARTS_MAX = 5


def seconds_of(text: str) -> float | None:
    """The seconds of a duration, or None if it is not a duration.

    >>> seconds_of("500ms"), seconds_of("2m"), seconds_of("3"), seconds_of("soon")
    (0.5, 120.0, 3.0, None)
    """
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|)", text)
    return float(found[1]) * UNITS[found[2]] if found else None


def _annotation_seconds(pod: Object, name: str, default: float) -> float:
    text = pod["metadata"].get("annotations", {}).get(PREFIX + name)
    if text == "never":
        return inf
    found = None if text is None else seconds_of(text)
    return default if found is None else found


def _node_of(cluster: Cluster) -> str:
    return f"{NODE}-{cluster.variant}" if cluster.variant else NODE


def acted(cluster: Cluster, task: Task, now: float) -> Turn:
    """Bring one pod, or the node itself, a step further."""
    desk = Desk(cluster, now, "kubelet")
    if task.resource == ("", "nodes"):
        _create_node(desk)
        return desk.turn()
    pod = lookup(cluster, task.resource, task.key)
    if pod is None:
        return desk.turn()
    # Before its containers end, and after they have started.
    _write_logs(desk, pod)
    _act(desk, pod, task)
    after = desk.get(task.resource, task.key)
    if after is not None and after is not pod:
        _write_logs(desk, after)
    return desk.turn()


def _write_logs(desk: Desk, pod: Object) -> None:
    for status in statuses_of(pod):
        desk.cluster = annotated(desk.cluster, pod, status, desk.now)


def _act(desk: Desk, pod: Object, task: Task) -> None:
    if is_going(pod):
        _stop(desk, pod, task)
    elif phase(pod) in ("Succeeded", "Failed"):
        pass
    elif not pod["spec"].get("nodeName"):
        _bind(desk, pod)
    elif phase(pod) == "Pending":
        _start_pod(desk, pod)
    else:
        _run(desk, pod)


def _create_node(desk: Desk) -> None:
    """Create the node of the stub, if it does not exist."""
    name = _node_of(desk.cluster)
    if desk.get(("", "nodes"), ("", name)) is not None:
        return
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    node = desk.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
    if node is not None:
        heartbeat = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "the stub is ready",
            "lastHeartbeatTime": timestamp(desk.now),
            "lastTransitionTime": timestamp(desk.now),
        }
        desk.status(node, {"conditions": [heartbeat]})


def _stop(desk: Desk, pod: Object, task: Task) -> None:
    """End the containers of a deleted pod, then remove the pod."""
    metadata = pod["metadata"]
    grace = metadata.get("deletionGracePeriodSeconds", 0)
    asked = moment(metadata["deletionTimestamp"]) - grace
    end = asked + min(grace, _annotation_seconds(pod, "stop-after", 0.0))
    if end > desk.now:
        desk.remind(end)
    elif _is_serving(pod):
        # Watches show the pod stopped before it is gone.
        _end_containers(desk, pod)
    elif not metadata.get("finalizers"):
        kind = desk.kind(pod)
        desk.cluster, events = removed(desk.cluster, kind, task.key)
        desk.events += events
    elif grace:
        # The last request of a kubelet is a deletion without grace.
        free = {**metadata, "deletionGracePeriodSeconds": 0}
        desk.store({**pod, "metadata": free}, pod)


def _is_serving(pod: Object) -> bool:
    """Whether the status of a pod shows a running container."""
    return any(
        "running" in (each.get("state") or {})
        for each in (pod.get("status") or {}).get("containerStatuses") or ()
    )


def _end_containers(desk: Desk, pod: Object) -> None:
    """Set the containers of a deleted pod to ended; its phase stays."""
    first = pod["status"]["containerStatuses"][0].get("state") or {}
    since = (first.get("running") or {}).get("startedAt") or timestamp(desk.now)
    code = int(_annotation_seconds(pod, "exit-code", 0.0))
    status = _ended(pod, code, since, desk.now)
    desk.status(pod, _with_inits_stopped(status, desk.now))


def _condition(type: str, good: bool, now: float, reason: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": type,
        "status": "True" if good else "False",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(now),
    }
    return {**found, "reason": reason} if reason else found


def _bind(desk: Desk, pod: Object) -> None:
    _create_node(desk)
    name = _node_of(desk.cluster)
    bound = {**pod, "spec": {**pod["spec"], "nodeName": name}}
    status = pod.get("status") or {}
    conditions = with_condition(
        status.get("conditions") or [], _condition("PodScheduled", True, desk.now)
    )
    desk.store({**bound, "status": {**status, "conditions": conditions}}, pod)


def _containers(pod: Object, group: str = "containers") -> Iterator[dict[str, Any]]:
    for container in pod["spec"].get(group) or ():
        if isinstance(container, dict):
            yield container


def _address(pod: Object) -> str:
    """An address in the pods' network, from the uid: the same in every run."""
    number = int(pod["metadata"]["uid"].replace("-", "")[:8], 16)
    return f"10.244.{number >> 8 & 255}.{number % 254 + 1}"


def _statuses(
    pod: Object, state: dict[str, Any], *, ready: bool, restarts: int
) -> list[dict[str, Any]]:
    before = {
        each.get("name"): each
        for each in (pod.get("status") or {}).get("containerStatuses") or ()
    }
    return [
        _status(
            pod,
            container,
            state,
            ready=ready,
            restarts=restarts,
            last=_last_state(before.get(container.get("name")), state),
        )
        for container in _containers(pod)
    ]


def _status(
    pod: Object,
    container: dict[str, Any],
    state: dict[str, Any],
    *,
    ready: bool,
    restarts: int = 0,
    last: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The status of a container; its containerID names this instance of it."""
    name = container.get("name", "")
    source = f"{pod['metadata']['uid']}/{name}/{restarts}".encode()
    identity = f"stub://{blake2b(source, digest_size=32).hexdigest()}"
    if "terminated" in state:
        state = {"terminated": {**state["terminated"], "containerID": identity}}
    return {
        "name": name,
        "image": container.get("image", ""),
        "imageID": "",
        "containerID": identity,
        "lastState": last or {},
        "ready": ready,
        "restartCount": restarts,
        "started": "running" in state,
        "state": state,
    }


def _last_state(
    before: dict[str, Any] | None, state: dict[str, Any]
) -> dict[str, Any] | None:
    """The last state of a container: the end of its previous instance."""
    if before is None:
        return None
    ended = (before.get("state") or {}).get("terminated")
    if ended and "terminated" not in state:
        return {"terminated": ended}
    last: dict[str, Any] | None = before.get("lastState")
    return last


def _with_inits_stopped(status: dict[str, Any], now: float) -> dict[str, Any]:
    inits = status.get("initContainerStatuses")
    if not inits:
        return status
    stopped = [_stopped_init_status(each, now) for each in inits]
    return {**status, "initContainerStatuses": stopped}


def _init_statuses(pod: Object, since: str) -> list[dict[str, Any]]:
    """The statuses of init containers in a pod that starts: they have completed."""
    return [
        _status(
            pod,
            container,
            {"running": {"startedAt": since}}
            if container.get("restartPolicy") == "Always"
            else {"terminated": _terminated_state(since, since)},
            ready=True,
        )
        for container in _containers(pod, "initContainers")
    ]


def _stopped_init_status(status: dict[str, Any], now: float) -> dict[str, Any]:
    """The status of an init container when its pod ends."""
    state = status.get("state") or {}
    if "running" not in state:
        return status
    since = state["running"].get("startedAt")
    ended = _terminated_state(since, timestamp(now))
    ended["containerID"] = status.get("containerID", "")
    return {**status, "ready": False, "started": False, "state": {"terminated": ended}}


def _restarts(pod: Object) -> int:
    for each in (pod.get("status") or {}).get("containerStatuses") or ():
        found: int = each.get("restartCount", 0)
        return found
    return 0


def _start_pod(desk: Desk, pod: Object) -> None:
    bound = condition(pod, "PodScheduled") or {}
    at = moment(bound.get("lastTransitionTime")) + _annotation_seconds(
        pod, "start-after", 0.0
    )
    if at > desk.now:
        if at < inf:
            desk.remind(at)
        return
    status = dict(pod.get("status") or {})
    address, host = _address(pod), f"10.0.0.{2 + desk.cluster.variant}"
    status |= {
        "phase": "Running",
        "startTime": timestamp(desk.now),
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": address,
        "podIPs": [{"ip": address}],
    }
    inits = _init_statuses(pod, timestamp(desk.now))
    if inits:
        status["initContainerStatuses"] = inits
    ready = _annotation_seconds(pod, "ready-after", 0.0) <= 0
    _write_running(desk, pod, status, timestamp(desk.now), ready=ready, restarts=0)


def _write_running(
    desk: Desk,
    pod: Object,
    status: dict[str, Any],
    since: str,
    *,
    ready: bool,
    restarts: int,
) -> None:
    conditions = status.get("conditions") or []
    for type in ("Initialized", "Ready", "ContainersReady"):
        good = ready or type == "Initialized"
        reason = "" if good else "ContainersNotReady"
        conditions = with_condition(
            conditions, _condition(type, good, desk.now, reason)
        )
    state = {"running": {"startedAt": since}}
    containers = _statuses(pod, state, ready=ready, restarts=restarts)
    desk.status(
        pod, {**status, "conditions": conditions, "containerStatuses": containers}
    )


def _run(desk: Desk, pod: Object) -> None:
    """Make a running pod ready, end it, or restart it."""
    status = pod.get("status") or {}
    containers = status.get("containerStatuses") or []
    state = containers[0].get("state", {}) if containers else {}
    if "running" not in state:
        _restart(desk, pod, state)
        return
    since = state["running"].get("startedAt")
    policy = pod["spec"].get("restartPolicy", "Always")
    end = moment(since) + _annotation_seconds(
        pod, "run-for", inf if policy == "Always" else 1.0
    )
    if end <= desk.now:
        _end_pod(desk, pod, policy, since)
        return
    ready_at = moment(since) + _annotation_seconds(pod, "ready-after", 0.0)
    is_ready = containers[0].get("ready", False)
    if ready_at <= desk.now and not is_ready:
        restarts = _restarts(pod)
        _write_running(desk, pod, status, since, ready=True, restarts=restarts)
    waits = [at for at in (end, ready_at) if desk.now < at < inf]
    if waits:
        desk.remind(min(waits))


def _end_pod(desk: Desk, pod: Object, policy: str, since: str) -> None:
    code = int(_annotation_seconds(pod, "exit-code", 0.0))
    final = policy == "Never" or (policy == "OnFailure" and not code)
    status = _ended(pod, code, since, desk.now)
    if final:
        status["phase"] = "Failed" if code else "Succeeded"
        status = _with_inits_stopped(status, desk.now)
    desk.status(pod, status)


def _terminated_state(since: str, until: str, code: int = 0) -> dict[str, Any]:
    """The state of an instance of a container that has ended."""
    return {
        "exitCode": code,
        "reason": "Error" if code else "Completed",
        "startedAt": since,
        "finishedAt": until,
    }


def _ended(pod: Object, code: int, since: str, now: float) -> dict[str, Any]:
    """The pod's status when its containers have ended with this code."""
    ended = _terminated_state(since, timestamp(now), code)
    status = dict(pod.get("status") or {})
    conditions = status.get("conditions") or []
    reason = "PodFailed" if code else "PodCompleted"
    for type in ("Ready", "ContainersReady"):
        conditions = with_condition(conditions, _condition(type, False, now, reason))
    status["conditions"] = conditions
    status["containerStatuses"] = _statuses(
        pod, {"terminated": ended}, ready=False, restarts=_restarts(pod)
    )
    return status


def _restart(desk: Desk, pod: Object, state: dict[str, Any]) -> None:
    """The kubelet's back-off: twice as long each time, five minutes at most."""
    restarts = _restarts(pod)
    if "terminated" not in state:
        return
    status = pod.get("status") or {}
    if restarts >= RESTARTS_MAX:
        waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
        containers = _statuses(pod, waiting, ready=False, restarts=restarts)
        desk.status(pod, {**status, "containerStatuses": containers})
        return
    at = moment(state["terminated"].get("finishedAt")) + min(10 * 2**restarts, 300)
    if at > desk.now:
        desk.remind(at)
        return
    ready = _annotation_seconds(pod, "ready-after", 0.0) <= 0
    now = timestamp(desk.now)
    _write_running(desk, pod, status, now, ready=ready, restarts=restarts + 1)
